"""``ptxmma show``."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from ptxmma.cli.options import find, instruction_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.instructions import Instruction


@click.command("show")
@instruction_argument
def command(spelling: str, database: str | None) -> None:
    """Say everything that is known of one instruction."""
    found = find(spelling, database)
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
