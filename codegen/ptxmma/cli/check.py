"""``ptxmma check``."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from ptxmma.cli.options import catalog_of, database_option, named_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ptxmma.check import Checker, Finding, Findings

#: Nothing is cut where no terminal reads it.
_ENDLESS = 1 << 16
FORMATS = ("text", "json", "sarif", "github")


@click.command("check")
@click.argument("files", metavar="[FILE|-]...", nargs=-1, type=click.Path())
@click.option("--target", metavar="TARGET", help="Check for this target, whatever the module says: sm_90a, 90, H100.")
@click.option("--ptx", metavar="VERSION", help="Check for this PTX ISA version, whatever the module says.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="How to print the findings.")
@click.option("--json", "form", flag_value="json", help="Short for --format json.")
@click.option("--no-flow", is_flag=True, help="Do not follow registers of wgmma from instruction to instruction; faster.")
@database_option
def command(files: tuple[str, ...], target: str | None, ptx: str | None, form: str, no_flow: bool, database: str | None) -> None:
    """Check the matrix instructions of PTX files, or of standard input.

    Exits with 1 if there is an error or a warning, and with 2 if a file cannot be read; the other files are still checked.

    \b
    Example:
      ptxmma check kernel.ptx
      nvcc -ptx -arch=sm_90a -o - kernel.cu | ptxmma check --format github
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.check import Checker

    try:
        checker = Checker(database, target=target and named_target(catalog_of(database).database.spec, target), ptx=ptx, follow=not no_flow)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    unread: list[str] = []
    parts = _parts(checker, files or ("-",), unread)
    clean = _text(parts) if form == "text" else _whole(form, parts)
    sys.exit(2 if unread else 0 if clean else 1)


def _parts(checker: Checker, files: Iterable[str], unread: list[str]) -> Iterator[Findings]:
    """The findings, function by function; files that cannot be read are reported on standard error and added to ``unread``."""
    from ptxmma.check import formats

    for file in files:
        try:
            yield from checker.parts_of_file(file)
        except (OSError, ValueError) as error:  # a name may have a NUL
            reason = error.strerror if isinstance(error, OSError) else error
            click.echo(f"error: {formats.printable(file)}: cannot be read: {reason}", err=True)
            unread.append(file)


def _text(parts: Iterable[Findings]) -> bool:
    """Print findings as they come; returns whether there is neither an error nor a warning."""
    from ptxmma.check import formats

    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size().columns if terminal else _ENDLESS
    clean = True
    for part in parts:
        clean = clean and part.clean
        if part.findings:
            click.echo(formats.text(part, colour=colour, width=width), nl=False)
    return clean


def _whole(form: str, parts: Iterable[Findings]) -> bool:
    """Print one document; whether there is neither an error nor a warning."""
    from ptxmma.check import Findings, formats
    from ptxmma.check.rules import RULES

    count = 0
    kept: list[Finding] = []
    for part in parts:
        count += part.instructions
        kept += part.findings
    findings = Findings(count, tuple(kept))
    document = (
        formats.as_json(findings) if form == "json" else formats.github(findings) if form == "github" else formats.sarif(findings, RULES)
    )
    click.echo(document, nl=False)
    return findings.clean
