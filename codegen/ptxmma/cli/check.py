"""``ptxmma check``."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, completed, database_option, named_option, named_target, schema_option, usage_errors
from ptxmma.ptx.languages import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ptxmma.check import Finding, Findings, Severity
    from ptxmma.check.compiled import Compilation
    from ptxmma.check.configuration import Configuration

#: Wide enough for any line where the output is not a terminal.
_ENDLESS = 1 << 16
#: New objects after which Python looks for cycles, of which a check makes few: the usual 700 take a fifth of its time.
_MOST_OBJECTS = 100_000
FORMATS = ("text", "json", "sarif", "github")
SEVERITIES = ("error", "warning", "note")


def _rule_names(_context: click.Context) -> list[str]:
    from ptxmma.check.rules import RULES

    return list(RULES)


@click.command("check", cls=Command)
@click.argument("files", metavar="[FILE|DIRECTORY|-]...", nargs=-1, type=click.Path())
@named_option("--target", "target", "Check for this target, whatever the module says: sm_90a, 90, H100.")
@named_option("--ptx", "ptx", "Check for this PTX ISA version, whatever the module says.")
@click.option("--language", type=click.Choice(LANGUAGES), help="Read named files in this language, whatever their names say.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="How to print the findings.")
@click.option("--json", "form", flag_value="json", help="Short for --format json.")
@schema_option
@click.option(
    "--select",
    metavar="RULE,...",
    multiple=True,
    shell_complete=completed(_rule_names),
    help="Report only findings of these rules.",
)
@click.option(
    "--ignore",
    metavar="RULE,...",
    multiple=True,
    shell_complete=completed(_rule_names),
    help="Report no findings of these rules.",
)
@click.option("--severity", type=click.Choice(SEVERITIES), help="Report findings from this severity on; by default warning.")
@click.option("--statistics", is_flag=True, help="Print how many findings each rule has, notes included, in place of the findings.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are errors or warnings.")
@click.option("--fix", is_flag=True, help="Mend files in place where the meaning stays the same, also what is only a note.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix, mend also what is right only if the author knows more than the checker.")
@click.option(
    "--no-flow", is_flag=True, help="Judge instructions one by one: neither follow registers of wgmma nor judge kernels as a whole; faster."
)
@click.option("--nvcc", metavar="OPTIONS", help="Compile .cu files with nvcc and these options, and check the PTX; '-arch=sm_90a'.")
@click.option(
    "--compile-commands", metavar="FILE", type=click.Path(), help="Compile .cu files as this compile_commands.json says, and check the PTX."
)
@click.option("--isolated", is_flag=True, help="Read neither ptxmma.toml nor pyproject.toml.")
@database_option
def command(
    files: tuple[str, ...],
    target: str | None,
    ptx: str | None,
    language: str | None,
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: Severity | None,
    statistics: bool,
    exit_zero: bool,
    fix: bool,
    unsafe_fixes: bool,
    no_flow: bool,
    nvcc: str | None,
    compile_commands: str | None,
    isolated: bool,
    database: str | None,
) -> None:
    """Check the matrix instructions of PTX files, of inline assembly, or of standard input.

    Of a directory, all PTX, C++, CUDA, LLVM IR and Python files below it are checked, except those that .gitignore names.

    Notes are reported only with --severity note. ptxmma.toml, or [tool.ptxmma.check] in pyproject.toml, selects rules as the options do.

    A call of a wrapper is checked in PTX: with --nvcc or --compile-commands a .cu file is compiled, and findings are shown at the source.

    Exits with 1 if an error or a warning is reported, and with 2 if a named file cannot be read; the other files are still checked.

    \b
    Example:
      ptxmma check kernel.ptx
      ptxmma check --nvcc '-arch=sm_90a -Iinclude' kernel.cu
      nvcc -ptx -arch=sm_90a -o - kernel.cu | ptxmma check --format github
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.check import Checker
    from ptxmma.cli.checked_files import Reader, Run

    if statistics and form not in ("text", "json"):
        raise click.UsageError(f"--statistics prints text or JSON: leave out --format {form}, or --statistics")
    if select and not _rules(select):
        raise click.UsageError("--select names no rule: leave it out for all rules")
    configured = _configured(_rules(select), _rules(ignore), severity or ("note" if statistics else None), isolated=isolated)
    with usage_errors():
        spec_target = target and named_target(catalog_of(database).database.spec, target)
        notes = fix or configured.selection.least == "note"
        checker = Checker(database, target=spec_target, ptx=ptx, follow=not no_flow, notes=notes)
    if unsafe_fixes and not fix:
        raise click.UsageError("--unsafe-fixes says what --fix mends: add --fix")
    if fix and "-" in (files or ("-",)):
        raise click.UsageError("--fix needs the names of files: the standard input cannot be mended")
    if not files and (nvcc is not None or compile_commands is not None):
        raise click.UsageError(
            f"{'--compile-commands' if nvcc is None else '--nvcc'} says how to compile .cu files: name them, or their directory"
        )
    gc.freeze()  # the facts of instructions stay
    gc.set_threshold(_MOST_OBJECTS)
    reader = Reader(checker, configured, fix=fix, unsafe=unsafe_fixes, compilation=_compilation(nvcc, compile_commands))
    run = Run(reader, language or "")
    parts = run.parts(files or ("-",))
    clean = _statistics(form, parts) if statistics else _text(parts) if form == "text" else _whole(form, parts)
    click.echo(run.summary(), err=True)
    sys.exit(2 if run.unread else 0 if clean or exit_zero else 1)


def _compilation(nvcc: str | None, commands: str | None) -> Callable[[str], Compilation | None] | None:
    """The compilation of each source, None for one without; None if all are read as they are."""
    from ptxmma.check import compiled

    if nvcc is not None and commands is not None:
        raise click.UsageError("--nvcc and --compile-commands both say how to compile: leave one out")
    try:
        if nvcc is not None:
            every = compiled.of_options(nvcc)
            return lambda _: every
        if commands is not None:
            of_file = compiled.of_database(commands)
            return lambda file: of_file.get(Path(file).resolve())
    except IsADirectoryError:
        raise click.UsageError(f"{commands} is a directory; name the file in it: {commands}/compile_commands.json") from None
    except OSError as error:
        raise click.UsageError(f"{commands}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise click.UsageError(str(error) if commands else f"--nvcc {error}") from None
    return None


def _rules(options: tuple[str, ...]) -> tuple[str, ...]:
    """The rules that an option names, which may list several."""
    return tuple(name for option in options for name in option.replace(",", " ").split())


def _configured(select: tuple[str, ...], ignore: tuple[str, ...], severity: Severity | None, *, isolated: bool) -> Configuration:
    """The configuration of the working directory, or none if isolated, with what the options say."""
    import msgspec

    from ptxmma.check.configuration import Configuration, Selection, configuration

    with usage_errors():
        selection, root, _ = Configuration(Selection(), Path.cwd()) if isolated else configuration(Path.cwd())
        changes = {"select": select, "ignore": (*selection.ignore, *ignore), "severity": severity}
        given = {name: value for name, value in changes.items() if value}
        return Configuration(msgspec.structs.replace(selection, **given), root)


def _statistics(form: str, parts: Iterable[Findings]) -> bool:
    """Print how many findings each rule has; whether there is neither an error nor a warning."""
    from ptxmma.check.configuration import counts
    from ptxmma.cli.render import emit

    rows = counts(finding for part in parts for finding in part)
    if form == "json":
        emit([{"rule": rule, "severity": severity, "findings": number} for number, severity, rule in rows])
        return all(severity == "note" for _, severity, _ in rows)
    for number, severity, rule in rows:
        click.echo(f"{number:>9,}  {severity:<7}  {rule}")
    return all(severity == "note" for _, severity, _ in rows)


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

    count = uncovered = repeated = 0
    kept: list[Finding] = []
    for part in parts:
        count += part.instructions
        uncovered += part.uncovered
        repeated += part.repeated
        kept += part.findings
    findings = Findings(count, tuple(kept), uncovered, repeated=repeated)
    document = (
        formats.as_json(findings) if form == "json" else formats.github(findings) if form == "github" else formats.sarif(findings, RULES)
    )
    click.echo(document, nl=False)
    return findings.clean
