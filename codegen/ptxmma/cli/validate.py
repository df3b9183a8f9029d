"""``ptxmma validate``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ptxmma.cli.options import read, spec_options


@click.command("validate")
@spec_options
def command(spec: Path, overlay: Path | None) -> None:
    """Check the spec and its evidence, and say everything that is wrong.

    Evidence that cannot be read is an error. Evidence that is missing or about another spec is reported, and is no error.

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
    sys.exit(1 if broken else 0)
