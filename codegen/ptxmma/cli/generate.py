"""``ptxmma generate``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from ptxmma import paths
from ptxmma.cli.command import Command
from ptxmma.cli.options import DIRECTORY, completed, read, spec_options


def _outputs(_context: click.Context) -> list[str]:
    from ptxmma.generator.emit import EMITTERS

    return list(EMITTERS)


@click.command("generate", cls=Command)
@spec_options
@click.option(
    "--out",
    type=DIRECTORY,
    default=None if paths.INSTALLED else paths.CHECKOUT,
    show_default="this checkout",
    help="Where generated/ and docs/ go; an installed ptxmma needs it.",
)
@click.option("--only", multiple=True, metavar="NAME", shell_complete=completed(_outputs), help="Make only this output; may be repeated.")
@click.option("--check", is_flag=True, help="Write nothing; show what is stale, missing or orphaned, and exit 1 if anything is.")
def command(spec: Path, overlay: Path | None, out: Path | None, only: tuple[str, ...], check: bool) -> None:
    """Generate headers, CUDA wrappers, Python, JavaScript and the database from the spec; `--only docs` the pages of the reference.

    \b
    Example:
      ptxmma generate --check
    """  # noqa: D301  # click's mark for lines that stay as they are
    import sqlite3

    from ptxmma.generator import pipeline, sqlite, write
    from ptxmma.generator.emit import EMITTERS

    if out is None:
        raise click.UsageError("this ptxmma is installed and has no checkout to write to: say where with --out DIRECTORY")
    for name in only:
        if name not in EMITTERS:
            raise click.BadParameter(f"{name!r} is not an output; the outputs are {', '.join(EMITTERS)}", param_hint="--only")
    catalog = read(spec, overlay)
    try:
        changes = pipeline.changes(catalog, out, only)
        if not check:
            write.write(changes, out)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot be read: {error.strerror}; nothing was changed") from None
    except (write.ClashError, write.WriteError) as error:
        raise click.ClickException(str(error)) from None
    if not check:
        for change in changes:
            if change.state == "orphaned":
                click.echo(f"deleted: {change.path}")
        click.echo(f"{len(changes)} files changed" if changes else "everything is up to date")
        try:
            sqlite.refresh(out)
        except (OSError, sqlite3.Error) as error:
            script = out / sqlite.SCRIPT
            raise click.ClickException(f"the files are written, but {script.with_suffix('.sqlite')} is not: {error}") from None
        return
    for change in changes:
        click.echo(f"{change.state}: {change.path}")
        click.echo(change.diff())
    if changes:
        again = ["ptxmma", "generate"]
        if (spec, overlay, out) != (paths.SPEC, None, paths.CHECKOUT):
            again += [
                part for key, value in (("spec", spec), ("overlay", overlay), ("out", out)) if value for part in (f"--{key}", str(value))
            ]
        again += [part for name in only for part in ("--only", name)]
        click.echo(f"{len(changes)} files differ from the spec; mend with: {shlex.join(again)}", err=True)
        sys.exit(1)
