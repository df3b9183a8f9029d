"""``ptxmma validate``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxmma.cli.options import read, spec_options

if TYPE_CHECKING:
    from ptxmma.generator.evidence import Reports


@click.command("validate")
@spec_options
def command(spec: Path, overlay: Path | None) -> None:
    """Check the spec and its evidence, and say everything that is wrong.

    Evidence that is broken, or that no run can have made, is an error; that it is missing, or about another spec, is only told.

    \b
    Example:
      ptxmma validate --spec my-spec
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.generator import evidence

    catalog = read(spec, overlay)
    variants, layouts = sum(1 for _ in catalog.all()), len(catalog.database.layouts)
    click.echo(f"{spec}: valid; {len(catalog.database.spec.instructions)} instructions, {variants} variants, {layouts} layouts")
    found = evidence.findings(catalog)
    for finding in found:
        click.echo(finding, err=True)
    broken = any(finding.error for finding in found)
    told = None if broken else evidence.attached(catalog)
    for what in _mutants_are_stale(spec, overlay, told) if told is not None and told.mutation else ():
        click.echo(f"{spec / 'evidence' / 'mutation.json'}: it is stale: {what}; make it again with `make mutate`", err=True)
    sys.exit(1 if broken else 0)


def _mutants_are_stale(spec: Path, overlay: Path | None, told: Reports) -> Iterator[str]:
    """Why the report of the mutants is about something else than a spec and the evidence beside it."""
    from ptxmma.generator.load import load
    from ptxmma.verify.mutation.report import changed, facts_sha256

    if told.mutation["facts"] != facts_sha256(load(spec, overlay)):
        yield "the mutants were made of other facts"
    if files := changed(told.mutation["evidence"], told.folder):
        yield f"they were held against other evidence: {', '.join(files)}"
