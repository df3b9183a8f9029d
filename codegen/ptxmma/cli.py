"""The command line: ``ptxmma``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxmma import __version__, paths

if TYPE_CHECKING:
    from ptxmma.instructions import Catalog

_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="ptxmma")
@click.option("--include-dir", is_flag=True, help="Print the directory of the C and CUDA headers.")
@click.option("--cmake-dir", is_flag=True, help="Print the directory for CMake's ptxmma_DIR.")
@click.pass_context
def main(context: click.Context, include_dir: bool, cmake_dir: bool) -> None:
    """A machine-readable specification of NVIDIA's PTX matrix instructions."""
    if include_dir:
        click.echo(paths.INCLUDE)
    if cmake_dir:
        click.echo(paths.CMAKE)
    if context.invoked_subcommand is None and not (include_dir or cmake_dir):
        click.echo(context.get_help())


def _spec_options(command: click.decorators.FC) -> click.decorators.FC:
    overlay = click.option("--overlay", type=_DIRECTORY, help="More YAML: its files join those of the spec, or replace them by name.")
    spec = click.option("--spec", type=_DIRECTORY, default=paths.SPEC, show_default="the packaged spec", help="Directory of YAML files.")
    return spec(overlay(command))


@main.command()
@_spec_options
@click.option(
    "--out",
    type=_DIRECTORY,
    default=paths.CHECKOUT,
    show_default="this checkout, or the working directory",
    help="Where generated/ and docs/ go.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Make only this output; may be repeated.")
@click.option("--check", is_flag=True, help="Write nothing; show what is stale, missing or orphaned, and exit 1 if anything is.")
def generate(spec: Path, overlay: Path | None, out: Path, only: tuple[str, ...], check: bool) -> None:
    """Turn the spec into headers, Python, CUDA wrappers, database and docs."""
    from ptxmma.generator import pipeline, sqlite, write
    from ptxmma.generator.emit import EMITTERS

    for name in only:
        if name not in EMITTERS:
            raise click.BadParameter(f"{name!r} is no output; one of {', '.join(EMITTERS)}", param_hint="--only")
    catalog = _read(spec, overlay)
    changes = pipeline.changes(catalog, out, only)
    if not check:
        try:
            write.write(changes, out)
            sqlite.refresh(out)
        except OSError as error:
            raise click.ClickException(f"{error.filename}: cannot be written: {error.strerror}; nothing was changed") from None
        click.echo(f"{len(changes)} files changed" if changes else "everything is up to date")
        return
    for change in changes:
        click.echo(f"{change.state}: {change.path}")
        click.echo(change.diff())
    if changes:
        again = "".join(f" --{key} {value}" for key, value in (("spec", spec), ("overlay", overlay), ("out", out)) if value is not None)
        shown = "ptxmma generate" + (again if (spec, overlay, out) != (paths.SPEC, None, paths.CHECKOUT) else "")
        click.echo(f"{len(changes)} files differ from the spec; mend with: {shown}", err=True)
        sys.exit(1)


@main.command()
@_spec_options
def validate(spec: Path, overlay: Path | None) -> None:
    """Check the spec and say everything that is wrong with it."""
    catalog = _read(spec, overlay)
    variants, layouts = sum(1 for _ in catalog.all()), len(catalog.database.layouts)
    click.echo(f"{spec}: valid; {len(catalog.database.spec.instructions)} instructions, {variants} variants, {layouts} layouts")


def _read(spec: Path, overlay: Path | None) -> Catalog:
    from ptxmma.generator import pipeline
    from ptxmma.generator.problems import SpecError

    try:
        return pipeline.read(spec, overlay)
    except SpecError as error:
        click.echo(error, err=True)
        click.echo(f"{len(error.problems)} problem{'s' if len(error.problems) > 1 else ''} in the spec; nothing was written", err=True)
        sys.exit(1)
