"""``ptxmma validate``."""

from __future__ import annotations

import sys
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
    if not broken and _mutants_are_stale(spec, overlay, evidence.attached(catalog)):
        click.echo(
            f"{spec / 'evidence' / 'mutation.json'}: it is stale: the mutants were made of other facts; make it again with `make mutate`",
            err=True,
        )
    sys.exit(1 if broken else 0)


def _mutants_are_stale(spec: Path, overlay: Path | None, told: Reports | None) -> bool:
    """Whether the mutants of the report were made of other facts than those of a spec; false without a report."""
    from ptxmma.generator.load import load
    from ptxmma.verify.mutation.report import facts_sha256

    return told is not None and bool(told.mutation) and told.mutation["facts"] != facts_sha256(load(spec, overlay))
