"""``ptxmma validate``."""

from __future__ import annotations

from pathlib import Path

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import read, spec_options


@click.command("validate", cls=Command)
@spec_options
def command(spec: Path, overlay: Path | None) -> None:
    """Check the spec and list every problem.

    Also lists what is unproven, or was proven before a fact changed; that is not an error.  Needs the extra generate.

    \b
    Example:
      ptxmma validate --spec my-spec
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.generator.proven import gaps

    catalog = read(spec, overlay)
    variants, layouts = sum(1 for _ in catalog.all()), len(catalog.database.layouts)
    click.echo(f"{spec}: valid; {len(catalog.database.spec.instructions)} instructions, {variants} variants, {layouts} layouts")
    for gap in gaps(catalog):
        click.echo(gap, err=True)
