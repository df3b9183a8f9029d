"""``ptxmma diff``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import json_option
from ptxmma.cli.render import blocks, emit

if TYPE_CHECKING:
    from ptxmma.catalog.comparison import Change
    from ptxmma.catalog.instructions import Catalog
    from ptxmma.cli.answers import Changes

#: So many subjects of one change are shown; JSON has them all.
_SHOWN = 3


@click.command("diff", cls=Command)
@click.argument("old")
@click.argument("new")
@json_option
def command(old: str, new: str, as_json: bool) -> None:
    """Compare two databases by what they mean.

    OLD and NEW are ptxmma.json files, directories of YAML, or revisions of the git repository here, each with the database that is
    checked in.  Prose, sources and the wording of formulas do not count.

    Exits with 1 if a consumer would break: an instruction or target is gone, an element has moved, a name has changed.

    \b
    Examples:
      ptxmma diff HEAD~1 spec
      ptxmma diff old/ptxmma.json generated/database/ptxmma.json --json
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.catalog.comparison import compare

    changes = compare(_read(old, "OLD"), _read(new, "NEW"))
    broken = sum(change.breaking for change in changes)
    if as_json:
        answer: Changes = {"breaking": broken > 0, "changes": [change._asdict() for change in changes]}
        emit(answer)
    elif changes:
        click.echo(f"changes: {len(changes)}, breaking: {broken}")
        _print(changes)
    else:
        click.echo("both mean the same")
    sys.exit(1 if broken else 0)


def _print(changes: list[Change]) -> None:
    for title, breaking in (("breaks consumers", True), ("does not", False)):
        blocks({title: [_line(change) for change in changes if change.breaking == breaking]})


def _line(change: Change) -> str:
    from ptxmma.catalog.summaries.listing import few

    return f"{change.kind}: {change.text}: {few(change.subjects, _SHOWN)}"


def _read(name: str, what: str) -> Catalog:
    """One of the two; exits with 2 if it cannot be read."""
    from ptxmma.generator import revisions
    from ptxmma.generator.problems import SpecError

    try:
        return revisions.read(name)
    except SpecError as error:
        click.echo(error, err=True)
        raise click.BadParameter(f"the spec {name} has {len(error.problems)} problems", param_hint=what) from None
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint=what) from None
