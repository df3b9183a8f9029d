"""``ptxmma explore``."""

from __future__ import annotations

import click

from ptxmma import paths
from ptxmma.cli import Failure
from ptxmma.cli.command import Command
from ptxmma.cli.options import find, spellings


@click.command("explore", cls=Command)
@click.argument("spelling", metavar="[INSTRUCTION]", required=False, shell_complete=spellings)
@click.option("--print", "printed", is_flag=True, help="Print the address of the page, and open nothing.")
def command(spelling: str | None, printed: bool) -> None:
    """Open the explorer in a browser: a page that shows where every element lies.

    It is one file, and needs neither a server nor a network.

    \b
    Example:
      ptxmma explore --print wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.catalog.names.links import explorer

    if not paths.EXPLORER.is_file():
        raise Failure(f"{paths.EXPLORER} is missing: `ptxmma generate --only javascript` makes it")
    address = paths.EXPLORER.as_uri() + (explorer(i=find(spelling, None).canonical) if spelling else "")
    if printed:
        click.echo(address)
        return
    import webbrowser  # only where something is to be opened

    if not webbrowser.open(address):
        raise Failure(f"no browser could be started; open {address}")
