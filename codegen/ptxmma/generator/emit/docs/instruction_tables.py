"""The tables of an instruction: its operands and their register types, its arithmetic, facts in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction, operand_names
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.model import (
    Accumulation,
    Carrier,
    Condition,
    InstructionSet,
    Semantics,
    Spec,
    Statement,
    matches,
)

# --- operands ---------------------------------------------------------------------------------------------------------------


def representatives(instructions: Iterable[Instruction]) -> list[Instruction]:
    """One instruction for each set of operands: those that differ in n only have the same."""
    first: dict[tuple[object, ...], Instruction] = {}
    for instruction in instructions:
        first.setdefault(layouts.key(instruction.variant), instruction)
    return list(first.values())


def described_operands(entry: InstructionSet, representatives: Iterable[Instruction]) -> dict[str, list[Operand]]:
    """Each operand as the instructions have it, in the order of the operand lists."""
    described: dict[str, list[Operand]] = {name: [] for texts in entry.operands.values() for text in texts for name in operand_names(text)}
    for instruction in representatives:
        for operand in instruction.operands:
            described[operand.name].append(operand)
    return described


def register_type_table(
    spec: Spec, entry: InstructionSet, representatives: Iterable[Instruction], described: dict[str, list[Operand]]
) -> str:
    """The register types of each operand: what the spec says of carriers, as far as it is about this instruction."""
    merged: dict[tuple[object, ...], Carrier] = {}
    variants = [instruction.variant for instruction in representatives]
    for carrier in spec.types.carriers:
        names = tuple(name for name in described if name in carrier.operands)
        carried = {operand.element_type or "" for name in names for operand in described[name]}
        elements = tuple(element for element in carrier.elements if element in carried)
        if not names or bool(elements) != bool(carrier.elements):
            continue
        if any(matches(carrier.when, {**variant.facts, "operand": name}) for name in names for variant in variants):
            when = _here(carrier.when, entry)
            key = (names, rest.condition(when), carrier.registers, carrier.spaces, carrier.source)
            before = merged[key].elements if key in merged else ()
            merged[key] = msgspec.structs.replace(carrier, operands=names, elements=before + elements, when=when)
    return struct_tables.table(
        merged.values(),
        titles={"operands": "Operand", "elements": "Type", "registers": "Register types", "spaces": "Variables in"},
        cells={"when": lambda carrier: rest.condition(carrier.when)},
        first=("operands", "elements", "when"),
    )


def _here(when: Sequence[Condition], entry: InstructionSet) -> tuple[Condition, ...]:
    """A condition without the parts that name the family, since the page is about it."""
    about = ("family", "name")
    parts = [part for part in when if all(getattr(entry, name) in part.get(name, (getattr(entry, name),)) for name in about)]
    left = tuple({name: values for name, values in part.items() if name not in about} for part in parts)
    return left if all(left) else ()


class _Row(msgspec.Struct):
    """An operand of an instruction, with what its forms say of it."""

    operand: str
    title: Annotated[str, Meta(title="meaning")]
    kind: str
    access: str
    type: tuple[str, ...]
    constraint: tuple[str, ...]
    alignment: Annotated[tuple[int, ...], Meta(title="alignment in bytes")]
    row_bytes: Annotated[tuple[int, ...], Meta(title="bytes from each address")]
    unit: str
    immediates: str
    default: tuple[int, ...]
    uniform: Annotated[str, Meta(title="same value across")]


def operand_table(entry: InstructionSet, described: dict[str, list[Operand]]) -> str:
    """A description of each operand; a column may have a value for each form."""

    def row(name: str, seen: Sequence[Operand]) -> _Row:
        kind = entry.operand_kinds[name]
        elements = dict.fromkeys(operand.element_type for operand in seen if operand.element_type)
        immediates = dict.fromkeys(rest.numbers(operand.immediates) for operand in seen if operand.immediates)
        return _Row(
            operand=name,
            title=kind.title,
            kind=kind.kind.replace("-", " "),
            access=kind.access,
            type=(f".{kind.type}",) if kind.type else tuple(elements),
            constraint=tuple(dict.fromkeys(operand.constraint for operand in seen if operand.constraint)),
            alignment=tuple({operand.alignment for operand in seen if operand.alignment}),
            row_bytes=tuple({operand.row_bytes for operand in seen if operand.row_bytes}),
            unit=" ".join(dict.fromkeys(operand.unit for operand in seen)),
            immediates="; ".join(immediates) + (" (by form)" if len(immediates) > 1 else ""),
            default=tuple({operand.default for operand in seen if operand.default is not None}),
            uniform=f"the {kind.uniform}" if kind.uniform else "",
        )

    return struct_tables.table((row(name, seen) for name, seen in described.items()), code=("operand",))


# --- arithmetic, and facts in words -----------------------------------------------------------------------------------------


def statements(entries: Iterable[Statement]) -> str:
    """Facts in words, as a list."""
    return rest.bullets(
        (f"Where {rest.condition(entry.when)}: " if entry.when else "")
        + rest.text(entry.text)
        + (f" (over the {entry.over}; {rest.source(entry.source)})" if entry.over else f" ({rest.source(entry.source)})")
        for entry in entries
    )


def semantics_table(promises: Sequence[Semantics]) -> str:
    """The promises about arithmetic."""
    overflow = {"wrap": "wraps", "saturate": "is clamped"}
    return struct_tables.table(
        promises,
        titles={
            "multiply": "Products",
            "accumulate": "Sums",
            "rounds": "Rounding",
            "truncates": "Ignored low bits",
            "text": "In words",
        },
        cells={
            "rounds": lambda promise: rest.text(f"to {promise.rounds}" if promise.rounds else ""),
            "overflow": lambda promise: rest.text(overflow.get(promise.overflow, promise.overflow)),
            "unspecified": lambda promise: rest.text(", ".join(promise.unspecified)),
        },
        first=("when", "text"),
        without=("sums",),
    )


def accumulation_table(promises: Iterable[Semantics]) -> str:
    """The observed ways in which chips sum."""
    observed: dict[Accumulation, list[Semantics]] = {}
    for promise in promises:
        for seen in promise.observed:
            observed.setdefault(seen, []).append(promise)
    return struct_tables.table(
        observed,
        titles={"where": "Where", "text": "In words", "fraction_bits": "Bits kept below the leading one of the largest term"},
        cells={"where": lambda seen: _where(observed[seen])},
        first=("chip", "where", "text"),
        without=("target",),
    )


def _where(promises: Sequence[Semantics]) -> str:
    """The variants for which some promises hold."""
    return (
        rest.condition([part for promise in promises for part in promise.when]) if all(promise.when for promise in promises) else "always"
    )
