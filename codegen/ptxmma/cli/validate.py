"""``ptxmma validate``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxmma.cli.options import read, spec_options

if TYPE_CHECKING:
    from ptxmma.instructions import Catalog


@click.command("validate")
@spec_options
def command(spec: Path, overlay: Path | None) -> None:
    """Check the spec and say everything that is wrong with it."""
    catalog = read(spec, overlay)
    variants, layouts = sum(1 for _ in catalog.all()), len(catalog.database.layouts)
    click.echo(f"{spec}: valid; {len(catalog.database.spec.instructions)} instructions, {variants} variants, {layouts} layouts")
    for kind, count in _stale(catalog).items():
        click.echo(f"stale: {kind}.json is about another spec for {count} of them; make it again with `ptxmma verify`", err=True)


def _stale(catalog: Catalog) -> dict[str, int]:
    """Reports whose answers were given to another spec, and the number of instructions for which that is so."""
    from ptxmma.evidence import summary

    return Counter(kind for row in summary.of(catalog.database).instructions.values() for kind in row.stale)
