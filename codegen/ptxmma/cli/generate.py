"""``ptxmma generate``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxmma import paths
from ptxmma.cli import Failure
from ptxmma.cli.command import Command
from ptxmma.cli.options import DIRECTORY, completed, progress, refused, spec_options

if TYPE_CHECKING:
    from ptxmma.generator.write import Change


#: The output directory without ``--out``.
_OUT = None if paths.INSTALLED else paths.CHECKOUT


def _outputs(_context: click.Context) -> list[str]:
    from ptxmma.generator.emit import EMITTERS, installed

    return [*EMITTERS, *installed()]


@click.command("generate", cls=Command)
@spec_options
@click.option(
    "--out",
    type=DIRECTORY,
    default=_OUT,
    show_default="this checkout",
    help="Where generated/ and docs/ go; an installed ptxmma needs it.",
)
@click.option("--only", multiple=True, metavar="NAME", shell_complete=completed(_outputs), help="Make only this output; may be repeated.")
@click.option("--emitter", "modules", multiple=True, metavar="MODULE", help="Make only the output of this Python module; may be repeated.")
@click.option("--check", is_flag=True, help="Write nothing; show what is stale, missing or orphaned, and exit 1 if anything is.")
def command(spec: Path, overlay: Path | None, out: Path | None, only: tuple[str, ...], modules: tuple[str, ...], check: bool) -> None:
    """Generate headers, CUDA wrappers, Python, JavaScript and the database from the spec; `--only docs` the pages of the reference.

    An output of one's own is a module with emit(catalog) and FOLDERS: --emitter names it, and --only if an installed package
    registers it as an entry point of the group ptxmma.emitters.

    \b
    Examples:
      ptxmma generate --check
      ptxmma generate --emitter rust_constants --out out
    """  # noqa: D301  # click's mark for lines that stay as they are
    import contextlib
    import sqlite3

    from ptxmma.generator import pipeline, sqlite, write
    from ptxmma.generator.emit import EMITTERS, EmitterError, installed, load

    if out is None:
        raise click.UsageError("this ptxmma is installed and has no checkout to write to: say where with --out DIRECTORY")
    registered = installed() if only else {}
    for name in only:
        if name not in EMITTERS and name not in registered:
            raise click.BadParameter(
                f"{name!r} is not an output; the outputs are {', '.join([*EMITTERS, *registered])}", param_hint="--only"
            )
    folder = out

    def waits() -> None:
        click.echo(f"another ptxmma generate works on {folder}; waiting until it ends", err=True)

    try:
        others = {name: load(registered[name]) for name in only if name not in EMITTERS} | {name: load(name) for name in modules}
        # The spec is read once the lock is held: the run that ends last has the newest.
        with refused(), contextlib.nullcontext() if check and not out.exists() else write.locked(out, waits):
            progress(f"reading {spec}")
            catalog, checks = pipeline.unproven(spec, overlay)
            progress("making the outputs")
            changes = pipeline.changes(catalog, out, [name for name in only if name in EMITTERS], others, checks)
            if not check:
                progress(f"writing {len(changes)} files to {out}")
                write.write(changes, out)
                try:
                    sqlite.refresh(out)
                except (OSError, sqlite3.Error) as error:
                    script = out / sqlite.SCRIPT
                    raise click.ClickException(f"the files are written, but {script.with_suffix('.sqlite')} is not: {error}") from None
    except EmitterError as error:
        raise Failure(f"{error}\nnothing was changed") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot be read: {error.strerror}; nothing was changed") from None
    except (write.ClashError, write.WriteError) as error:
        raise click.ClickException(str(error)) from None
    if not check:
        for change in changes:
            if change.state == "orphaned":
                click.echo(f"deleted: {change.path}")
        where = "" if out == _OUT else f" in {out}"
        click.echo(f"{len(changes)} files changed{where}" if changes else f"everything is up to date{where}")
        return
    _show(changes)
    if changes:
        again = ["ptxmma", "generate"]
        for option, value, usual in (("--spec", spec, paths.SPEC), ("--overlay", overlay, None), ("--out", out, _OUT)):
            again += [option, str(value)] if value != usual else []
        again += [part for name in only for part in ("--only", name)]
        again += [part for name in modules for part in ("--emitter", name)]
        click.echo(f"{len(changes)} files differ from the spec; mend with: {shlex.join(again)}", err=True)
        sys.exit(1)


def _show(changes: list[Change]) -> None:
    for change in changes:
        click.echo(f"{change.state}: {change.path}")
        click.echo(change.diff())
