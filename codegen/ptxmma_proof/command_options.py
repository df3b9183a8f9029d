"""The common part of the commands: options, the outcome of a run, and how a run ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import click

from ptxmma import paths
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line
from ptxmma_proof.assemblers import Assembler

_EVIDENCE = paths.SPEC / "evidence"
FOLDER_PATH = click.Path(exists=True, file_okay=False, path_type=Path)
ptxas_option = click.option(
    "--ptxas",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, dir_okay=False),
    help="Ask this ptxas instead of those that `make assemblers` fetches; may be repeated.",
)
families_option = click.option("--family", "families", multiple=True, metavar="NAME", help="Only this family; may be repeated.")
date_option = click.option(
    "--date", type=click.DateTime(["%Y-%m-%d"]), default=None, show_default="today", help="Of the run, for the record."
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), default=None, show_default="one for each processor", help="How much at a time."
)


class Result(NamedTuple):
    """The outcome of a run: in words, as lines of its record, and whether everything agrees."""

    words: Iterable[str]
    lines: list[Line]
    agrees: bool


def recording(command: click.decorators.FC) -> click.decorators.FC:
    """Options of a run whose result can be recorded: ``--record`` and ``--date``."""
    record = click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Write the result to this file.")
    return record(date_option(command))


def finish(run: Callable[[str], Result], record: Path | None, date: datetime | None, partial: Sequence[object] = ()) -> None:
    """Run, write the record, print the outcome, and exit."""
    if record is not None and not record.parent.is_dir():
        raise click.BadParameter(f"there is no directory {record.parent}", param_hint="--record")
    if record is not None and any(partial) and record.resolve().parent == _EVIDENCE.resolve():
        raise click.BadParameter(f"this run asks for a part; {_EVIDENCE} holds the evidence of the whole", param_hint="--record")
    sys.exit(0 if concluded(run, record, date) else 1)


def concluded(run: Callable[[str], Result], record: Path | None, date: datetime | None) -> bool:
    """Run, write the record, print the outcome, and return whether everything agrees."""
    try:
        report = run(f"{date or datetime.now():%Y-%m-%d}")
        if record is not None:
            witnesses.write(record, report.lines)
    except (OSError, RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for line in report.words:
        click.echo(line)
    return report.agrees


def assemblers_of(ptxas: Sequence[str]) -> list[Assembler]:
    """The assemblers at some paths, or without any those that are fetched.

    Raises:
        RuntimeError: none is fetched.
    """
    from ptxmma_proof import assemblers

    chosen = [assemblers.identify(path) for path in ptxas] or assemblers.fetched()
    if not chosen:
        raise RuntimeError("no assemblers are here: fetch the pinned ones with `make assemblers`, or name one with --ptxas PATH")
    return chosen
