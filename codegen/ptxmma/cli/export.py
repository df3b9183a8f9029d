"""``ptxmma export``."""

from __future__ import annotations

from pathlib import Path

import click

from ptxmma.cli import Failure
from ptxmma.cli.command import Command
from ptxmma.cli.options import completed, database_option

FORMATS = ("sqlite", "json", "csv")


def _tables(context: click.Context) -> list[str]:
    from ptxmma.catalog.summaries import exports

    connection = exports.connect(context.params.get("database"))
    return [*exports.tables(connection), *exports.views(connection)]


@click.command("export", cls=Command)
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What to make of the database.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to; all tables as csv go to a directory or a .zip file.")
@click.option(
    "--table", "name", metavar="NAME", shell_complete=completed(_tables), help="Only this table or view; without --out to stdout."
)
@database_option
def command(form: str, out: Path | None, name: str | None, database: str | None) -> None:
    """Export the database to other tools.

    Every format has the same tables.  ptxmma.sql describes them; start with the view variant_targets.

    \b
    Examples:
      ptxmma export --format sqlite --out ptxmma.sqlite
      ptxmma export --format csv --table variant_targets
    """  # noqa: D301  # click's mark for lines that stay as they are
    if form == "sqlite" and (name is not None or out is None):
        raise click.UsageError("a SQLite file has all tables and needs a place: --format sqlite --out FILE")
    if form == "csv" and name is None and out is None:
        raise click.UsageError("all tables as csv are many files: give --out DIRECTORY, --out FILE.zip, or one --table NAME")
    if form == "csv" and name is None and out is not None and out.suffix == ".csv":
        raise click.UsageError(f"all tables as csv are many files: give --out DIRECTORY or --out FILE.zip, not {out}")
    from ptxmma.catalog.summaries import exports

    try:
        connection = exports.connect(database)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--database") from None
    try:
        if form == "sqlite":
            assert out is not None
            exports.save_sqlite(connection, out)
        elif name is None and form != "json":
            assert out is not None
            exports.save_csv(connection, out)
        elif name is None:
            _write(exports.all_json(connection), out)
        else:
            _write(exports.TABLE_FORMATS[form](exports.relation(connection, name)), out)
    except exports.UnknownTableError as error:
        raise click.BadParameter(str(error), param_hint="--table") from None
    except OSError as error:
        if out is None:
            raise
        raise Failure(f"{out}: cannot be written: {error.strerror}") from None


def _write(data: bytes, out: Path | None) -> None:
    from ptxmma.catalog.summaries import exports

    if out is None:
        click.echo(data, nl=False)
    else:
        exports.save(data, out)
