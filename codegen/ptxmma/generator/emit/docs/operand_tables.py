"""The operands of an instruction: what each one is, and in which registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog, Instruction, operand_names
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit.docs import rest
from ptxmma.model import (
    Condition,
    InstructionSet,
    Spec,
    matches,
)


def representatives(catalog: Catalog, entry: InstructionSet) -> list[Instruction]:
    """One instruction for each set of operands: those that differ in n only have the same."""
    first: dict[tuple[object, ...], Instruction] = {}
    for instruction in catalog.of(entry.name):
        first.setdefault(layouts.key(instruction.variant), instruction)
    return list(first.values())


def described_operands(entry: InstructionSet, representatives: Iterable[Instruction]) -> dict[str, list[Operand]]:
    """Each operand as the instructions have it, in the order of the operand lists."""
    described: dict[str, list[Operand]] = {name: [] for texts in entry.operands.values() for text in texts for name in operand_names(text)}
    for instruction in representatives:
        for form in instruction.forms:
            for operand in form.operands:
                described[operand.name].append(operand)
    return described


def register_type_table(
    spec: Spec, entry: InstructionSet, representatives: Iterable[Instruction], described: dict[str, list[Operand]]
) -> str:
    """The register types of each operand: what the spec says of carriers, as far as it is about this instruction."""
    lines = []
    variants = [instruction.variant for instruction in representatives]
    for carrier in spec.types.carriers:
        names = [name for name in described if name in carrier.operands]
        carried = {operand.element_type or "" for name in names for operand in described[name]}
        elements = [element for element in carrier.elements if element in carried]
        if not names or bool(elements) != bool(carrier.elements):
            continue
        if any(matches(carrier.when, {**variant.facts, "operand": name}) for name in names for variant in variants):
            when = _here(carrier.when, entry)
            lines.append((rest.codes(names), rest.codes(elements), when, rest.codes(carrier.registers), rest.source(carrier.source)))
    return rest.table(*rest.dense(("Operand", "Type", "Where", "Register types", "Source"), lines))


def _here(when: Sequence[Condition], entry: InstructionSet) -> str:
    """A condition on the page of a family: what is about the family itself goes without saying."""
    about = ("family", "name")
    parts = [part for part in when if all(getattr(entry, name) in part.get(name, (getattr(entry, name),)) for name in about)]
    left = [{name: values for name, values in part.items() if name not in about} for part in parts]
    return rest.condition(left) if all(left) else ""


def operand_table(entry: InstructionSet, described: dict[str, list[Operand]]) -> str:
    """What each operand is."""

    def cells(name: str, seen: Sequence[Operand]) -> tuple[str, ...]:
        kind = entry.operand_kinds[name]
        elements = dict.fromkeys(operand.element_type for operand in seen if operand.element_type)
        immediates = dict.fromkeys(rest.numbers(operand.immediates) for operand in seen if operand.immediates)
        return (
            rest.code(name),
            rest.text(kind.title),
            kind.kind.replace("-", " "),
            kind.access,
            rest.code(f".{kind.type}") if kind.type else rest.codes(elements),
            rest.codes(dict.fromkeys(operand.constraint for operand in seen if operand.constraint)),
            "; ".join(map(rest.text, immediates)) + (" (by form)" if len(immediates) > 1 else ""),
            "" if kind.default is None else str(kind.default),
            f"the {kind.uniform}" if kind.uniform else "",
        )

    header = ("Operand", "Meaning", "Kind", "Access", "Type", "Constraint", "Immediates", "Default", "One value over")
    return rest.table(*rest.dense(header, (cells(name, seen) for name, seen in described.items())))
