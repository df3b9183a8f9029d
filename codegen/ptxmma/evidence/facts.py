"""Digests of what the database says, by which evidence knows whether it still belongs to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from ptxmma.instructions import Catalog, Instruction, OperandForm
from ptxmma.model import Layout
from ptxmma.operands import Operand


def executed(instruction: Instruction) -> str:
    """What a run on a chip proves of an instruction: its operands, their registers, layouts and constants, and its arithmetic.

    Names of layouts, prose and sources do not count.
    """
    told: list[object] = [[form.name, form.syntax, [_operand(operand) for operand in form.operands]] for form in instruction.forms]
    if instruction.sparse:
        told += [_layout(instruction.metadata.layout), instruction.metadata.legal]
    told += [[entry.multiply, entry.sums, entry.overflow, entry.truncates] for entry in instruction.semantics()]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:12]


def operands(instruction: Instruction, form: OperandForm) -> str:
    """What a peer's layouts are compared with: the registers of a form's operands, and where each element stands."""
    told = [
        [operand.name, operand.kind, operand.registers, operand.elements, operand.rows, operand.cols, operand.computations, held]
        for operand in form.operands
        for held in [operand.layout.map if operand.layout else None]
    ]
    return hashlib.sha256(msgspec.json.encode([instruction.canonical, told])).hexdigest()[:16]


def accepted(catalog: Catalog) -> dict[str, str]:
    """What the assemblers are asked, as a digest for each family.

    It is the SHA-256 over its instructions: spelling, operand forms with their registers and constants, and the targets that the database
    says accept it, each with the first version.
    """
    found: dict[str, list[object]] = {}
    for instruction in catalog.all():
        forms = [[form.syntax, [_registers(operand) for operand in form.operands]] for form in instruction.forms]
        told = [instruction.canonical, forms, sorted(instruction.accepted_by().items())]
        found.setdefault(instruction.family, []).append(told)
    return {family: hashlib.sha256(msgspec.json.encode(told)).hexdigest() for family, told in found.items()}


def stale(told: Mapping[str, str], catalog: Catalog) -> list[str]:
    """The families of a catalog of which answers with these digests do not, or no longer, speak."""
    return [family for family, digest in accepted(catalog).items() if told.get(family) != digest]


def of_lines(lines: Iterable[str]) -> str:
    """The SHA-256 of lines of text, sorted."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _operand(operand: Operand) -> list[object]:
    return [operand.name, operand.kind, operand.element_type, _registers(operand), _layout(operand.layout)]


def _registers(operand: Operand) -> list[object]:
    return [operand.register_types, operand.registers, repr(operand.immediates)]


def _layout(layout: Layout | None) -> object:
    return None if layout is None else [layout.rows, layout.cols, layout.map]
