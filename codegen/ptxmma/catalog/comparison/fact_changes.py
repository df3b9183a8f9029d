"""Facts beside the variants: what the variants of an instruction share, types, targets, shared memory, errata."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from ptxmma.catalog.comparison.instruction_changes import Difference, shown
from ptxmma.catalog.instructions import Catalog
from ptxmma.model import DescriptorField, SharedMemory, Spec, formula
from ptxmma.model.formula import FormulaError

_Entry = TypeVar("_Entry", bound=msgspec.Struct)

#: Prose and origins.
_WORDS = frozenset({"title", "text", "note", "source", "lbo", "sbo", "known"})


def of_facts(old: Catalog, new: Catalog) -> Iterator[tuple[str, Difference]]:
    """Entries of the spec by their names, and what the variants of an instruction share."""
    ours, theirs = old.database.spec, new.database.spec
    if ours.document != theirs.document:
        yield theirs.document, ("document", f"instead of {ours.document}", False)
    yield from _sets_of_instructions(ours, theirs)
    yield from _entries("element type", ours.types.elements, theirs.types.elements, lambda entry: entry.name)
    yield from _entries("register type", ours.types.registers, theirs.types.registers, lambda entry: entry.name)
    # Instructions show what changes of these do to them.
    yield from _entries("target", ours.targets, theirs.targets, lambda entry: entry.name, changed=False)
    yield from _entries("PTX ISA version", ours.isa_versions, theirs.isa_versions, lambda entry: entry.version, changed=False)
    yield from _entries("compression", ours.choices, theirs.choices, lambda entry: f"{entry.units} units")
    yield from _entries("block format", ours.block_formats, theirs.block_formats, lambda entry: entry.name)
    yield from _shared_memory(ours, theirs)
    yield from _tensor_maps(ours, theirs)
    yield from _entries("descriptor field", _fields(ours), _fields(theirs), lambda entry: entry.name)
    chips = (ours.throughput, theirs.throughput)
    yield from _entries("throughput", *chips, lambda entry: f"{entry.chip} at {entry.clock} MHz", removed=False, changed=False)
    orderings = [[order for entry in spec.protocols for order in entry.orderings] for spec in (ours, theirs)]
    yield from _entries(
        "ordering", orderings[0], orderings[1], lambda entry: f"{entry.earlier}; {entry.later}", removed=False, changed=False
    )
    yield from _entries("erratum", ours.errata, theirs.errata, lambda entry: entry.id, removed=False, changed=False)


def _entries(
    kind: str,
    old: Iterable[_Entry],
    new: Iterable[_Entry],
    key: Callable[[_Entry], str],
    *,
    removed: bool = True,
    changed: bool = True,
) -> Iterator[tuple[str, Difference]]:
    """Entries of one list by name; ``removed`` and ``changed`` say whether that breaks consumers."""
    ours, theirs = ({key(entry): entry for entry in entries} for entries in (old, new))
    for name, entry in ours.items():
        if name not in theirs:
            yield name, (kind, "removed", removed)
            continue
        for field in entry.__struct_fields__:
            before, after = getattr(entry, field), getattr(theirs[name], field)
            if field not in _WORDS and before != after and not (_is_formula(field) and same_formula(before, after)):
                yield name, (kind, f"{field.replace('_', ' ')} {shown(before)} is now {shown(after)}", changed)
    for name in theirs:
        if name not in ours:
            yield name, (kind, "added", False)


def _fields(spec: Spec) -> list[DescriptorField]:
    """The fields of every descriptor, each with the name of its descriptor before its own."""
    return [msgspec.structs.replace(field, name=f"{format.name}.{field.name}") for format in spec.descriptors for field in format.fields]


def _shared_memory(ours: Spec, theirs: Spec) -> Iterator[tuple[str, Difference]]:
    old, new = ours.shared_memory, theirs.shared_memory
    if old is None or new is None:
        yield from _entries("shared memory", filter(None, [old]), filter(None, [new]), lambda _: "shared memory")
        return
    yield from _entries("swizzle", old.swizzles, new.swizzles, lambda entry: entry.name)
    yield from _entries("canonical layout", old.layouts, new.layouts, lambda entry: f"{entry.majorness}-major, {' '.join(entry.swizzles)}")
    yield from _entries("shared memory", [_sizes(old)], [_sizes(new)], lambda _: "shared memory")


def _tensor_maps(ours: Spec, theirs: Spec) -> Iterator[tuple[str, Difference]]:
    old, new = ours.tensor_maps, theirs.tensor_maps
    if old is None or new is None:
        yield from _entries("tensor maps", filter(None, [old]), filter(None, [new]), lambda _: "tensor maps")
        return
    yield from _entries("data type of tensor maps", old.types, new.types, lambda entry: entry.name)
    yield from _entries("interleave", old.interleaves, new.interleaves, lambda entry: entry.name)
    yield from _entries("swizzle of tensor maps", old.swizzles, new.swizzles, lambda entry: entry.name)
    yield from _entries("fill", old.fills, new.fills, lambda entry: entry.name)
    yield from _entries("box", [old.limits], [new.limits], lambda _: "limits of boxes")
    rules = (old.rules, new.rules)
    yield from _entries(
        "rule of tensor maps", *rules, lambda rule: " ".join(filter(None, (rule.argument, *rule.modes, rule.when, rule.need)))
    )


class _Sizes(msgspec.Struct):
    """The parts of shared memory of which there is one."""

    alignment: int
    banks: tuple[int, int]
    swizzle_formula: str
    base_offset_formula: str


def _sizes(memory: SharedMemory) -> _Sizes:
    banks = (memory.banks.count, memory.banks.bytes)
    return _Sizes(memory.alignment, banks, memory.swizzle_formula, memory.base_offset)


def _is_formula(field: str) -> bool:
    return field == "offset" or field.endswith("formula")


#: Values that every variable of a formula takes in turn: odd, even, powers of two and none.
_TRIED = (1, 2, 7, 16, 40, 136)


def same_formula(one: str, other: str) -> bool:
    """Return whether two formulas have the same value wherever it was tried: at every combination of a few values of their variables."""
    if one == other:
        return True
    trees = formula.parse(one), formula.parse(other)
    names = sorted({name for tree in trees for name in formula.names(tree)})
    points = list(zip(*itertools.product(_TRIED, repeat=len(names)), strict=True))
    variables = {name: list(column) for name, column in zip(names, points, strict=True)}
    try:
        return bool(formula.evaluate(trees[0], variables) == formula.evaluate(trees[1], variables))
    except FormulaError:
        return False


def _sets_of_instructions(ours: Spec, theirs: Spec) -> Iterator[tuple[str, Difference]]:
    """The facts that all variants of an instruction share: how they may be spelled, and who executes them."""
    there = {entry.name: entry for entry in theirs.instructions}
    for entry in ours.instructions:
        other = there.get(entry.name)
        if other is None:
            continue
        for field in ("opcode", "ordered", "repeatable", "ignored", "scope", "operation", "extents", "asynchronous", "memory"):
            before, after = getattr(entry, field), getattr(other, field)
            if before != after:
                yield entry.name, ("instruction", f"{field} {shown(before)} is now {shown(after)}", True)
        for name, qualifier in entry.qualifiers.items():
            values = [[(each.value, each.when) for each in one.default] for one in (qualifier, other.qualifiers.get(name, qualifier))]
            if values[0] != values[1]:
                yield entry.name, ("instruction", f"leaving out {name} means something else", True)
