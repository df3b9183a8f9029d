"""The command line: ``ptxmma``."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxmma import __version__, paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.instructions import Catalog, Instruction

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
    import sqlite3

    from ptxmma.generator import pipeline, sqlite, write
    from ptxmma.generator.emit import EMITTERS

    for name in only:
        if name not in EMITTERS:
            raise click.BadParameter(f"{name!r} is no output; one of {', '.join(EMITTERS)}", param_hint="--only")
    catalog = _read(spec, overlay)
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


@main.command()
@_spec_options
def validate(spec: Path, overlay: Path | None) -> None:
    """Check the spec and say everything that is wrong with it."""
    catalog = _read(spec, overlay)
    variants, layouts = sum(1 for _ in catalog.all()), len(catalog.database.layouts)
    click.echo(f"{spec}: valid; {len(catalog.database.spec.instructions)} instructions, {variants} variants, {layouts} layouts")
    for kind, count in _stale(catalog).items():
        click.echo(f"stale: {kind}.json is about another spec for {count} of them; make it again with `ptxmma verify`", err=True)


def _stale(catalog: Catalog) -> dict[str, int]:
    """Reports whose answers were given to another spec, and the number of instructions for which that is so."""
    from ptxmma.evidence import summary

    return Counter(kind for row in summary.of(catalog.database).instructions.values() for kind in row.stale)


def _read(spec: Path, overlay: Path | None) -> Catalog:
    from ptxmma.generator import pipeline
    from ptxmma.generator.problems import SpecError

    try:
        return pipeline.read(spec, overlay)
    except SpecError as error:
        click.echo(error, err=True)
        click.echo(f"{len(error.problems)} problem{'s' if len(error.problems) > 1 else ''} in the spec; nothing was written", err=True)
        sys.exit(1)
    except ValueError as error:  # a report in spec/evidence/
        raise click.ClickException(str(error)) from None


@main.command()
@_spec_options
@click.option("--assembler", is_flag=True, help="Ask ptxas: every instruction on every target in every version, and what lies near.")
@click.option("--silicon", is_flag=True, help="Run every instruction on the GPU of this machine, through the generated wrappers.")
@click.option("--peers", is_flag=True, help="Compare with CuTe's atoms and PyTorch's conversions.")
@click.option("--reference", type=_DIRECTORY, help="Assemble every example in this text of the manual, and all that the errata say.")
@click.option(
    "--ptxas",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, dir_okay=False),
    help="Ask this ptxas instead of those that `make assemblers` fetches; may be repeated.",
)
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Only this target; may be repeated.")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only this family; may be repeated.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, show_default="one for each processor", help="How much at a time.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write what was found to this file, as evidence.")
@click.option("--date", type=click.DateTime(["%Y-%m-%d"]), default=None, show_default="today", help="The date of the run, for the report.")
def verify(
    spec: Path,
    overlay: Path | None,
    assembler: bool,
    silicon: bool,
    peers: bool,
    reference: Path | None,
    ptxas: tuple[str, ...],
    targets: tuple[str, ...],
    families: tuple[str, ...],
    jobs: int | None,
    report: Path | None,
    date: datetime | None,
) -> None:
    """Hold the database against one witness, and exit with 1 where they disagree.

    The assemblers' answers are kept: an interrupted run goes on where it stopped.
    """
    if sum((assembler, silicon, peers, reference is not None)) != 1:
        raise click.UsageError("say what to hold it against: one of --assembler, --silicon, --peers, --reference")
    if report is not None and not report.parent.is_dir():
        raise click.BadParameter(f"there is no directory {report.parent}", param_hint="--report")
    from ptxmma.verify import commands

    day = f"{date or datetime.now():%Y-%m-%d}"
    processes = jobs or -1
    try:
        if silicon:
            found = commands.silicon(day, targets, families, processes)
        elif peers:
            found = commands.peers(_read(spec, overlay), day)
        elif reference is not None:
            found = commands.reference(_read(spec, overlay), day, reference, ptxas, processes)
        else:
            found = commands.assembler(_read(spec, overlay), day, ptxas, targets, families, processes)
    except commands.VerifyError as error:
        raise click.ClickException(str(error)) from None
    if report is not None:
        try:
            report.write_text(found.text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{error.filename}: cannot be written: {error.strerror}") from None
    for line in found.lines:
        click.echo(line)
    sys.exit(0 if found.agrees else 1)


@main.command()
@click.argument("spelling")
@click.option("--database", type=click.Path(exists=True, dir_okay=False), help="Another ptxmma.json than the packaged one.")
def show(spelling: str, database: str | None) -> None:
    """Say everything that is known of one instruction."""
    from ptxmma.instructions import UnknownInstruction, instruction

    try:
        found = instruction(spelling, database=database)
    except UnknownInstruction as error:
        click.echo(error, err=True)
        sys.exit(2)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--database") from None
    status = "documented" if found.documented else "not documented: assemblers accept it, the manual does not have it"
    click.echo(f"{found.canonical}\n{status}")
    syntax = [f"{found.canonical} {form.syntax}".rstrip() for form in found.forms]
    blocks = {"syntax": syntax, "operands": _operands(found), "requirements": _requirements(found), "accepted by": _targets(found)}
    blocks["evidence"] = _evidence(found)
    for title, lines in blocks.items():
        if lines:
            click.echo("\n  ".join([f"\n{title}", *lines]))


def _evidence(found: Instruction) -> list[str]:
    """What stands behind it, witness by witness."""
    proof = found.evidence
    lines = []
    for names, releases in groupby(proof.assembled.items(), key=lambda pair: pair[1]):
        lines.append(f"assembled by ptxas of CUDA {_span([release for release, _ in releases])}: {' '.join(names)}")
    for ran in proof.executed:
        how = "natively" if ran.native else "through code that the assembler put in its place"
        wrong = f", {ran.wrong} of them wrong" if ran.wrong else ""
        lines.append(f"run on {ran.chip}, {how} ({' or '.join(ran.machine)}): {ran.launches} launches{wrong}")
    if not proof.executed:
        lines.append("not executed: no chip that was asked runs it")
    lines += [f"the same layouts in CuTe: {atom}" for atom in proof.peers]
    lines += [f"other layouts in CuTe: {atom}" for atom in proof.differing]
    return lines + [f"stale: {kind} answered about another spec" for kind in proof.stale]


def _span(releases: Sequence[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _operands(found: Instruction) -> list[str]:
    """A row for each operand: name, kind, element type, registers, constraint, elements, legal immediates."""
    rows = []
    for operand in {operand.name: operand for form in found.forms for operand in form.operands}.values():
        registers = f"{operand.registers} x {operand.register_types[0]}" if operand.registers else ""
        elements = f"{operand.elements} elements" if operand.elements else ""
        legal = _immediates(operand.immediates)
        constraint = f'"{operand.constraint}"'
        rows.append((operand.name, operand.kind, operand.element_type or "", registers, constraint, elements, legal))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip() for row in rows]


def _immediates(legal: Sequence[int] | None) -> str:
    if legal is None:
        return ""
    return "immediate " + (f"{legal[0]}..{legal[-1]}" if isinstance(legal, range) else " or ".join(map(str, legal)))


def _requirements(found: Instruction) -> list[str]:
    """The manual's rules, and what assemblers do instead, each with its source."""

    def line(ptx: str, targets: tuple[str, ...], more: str, source: str) -> str:
        asked = (f"PTX ISA {ptx}" if ptx else "", " or ".join(targets), more)
        return f"{', '.join(filter(None, asked))} ({source})"

    stated = [line(rule.ptx, rule.targets, rule.note, rule.source) for rule in found.requirements()]
    return stated + [f"assemblers: {line(seen.ptx, seen.targets, seen.releases, seen.source)}" for seen in found.observed()]


def _targets(found: Instruction) -> list[str]:
    """The accepting targets by the first PTX ISA version, and where releases of the assembler differ."""
    from ptxmma.requirements import version_key

    accepted = found.accepted_by()
    lines = []
    for version in sorted(set(accepted.values()), key=version_key):
        lines.append(f"PTX ISA {version}: {' '.join(target for target, first in accepted.items() if first == version)}")
    return lines + [f"{subject}: {text}" for subject, text in found.releases().items()]
