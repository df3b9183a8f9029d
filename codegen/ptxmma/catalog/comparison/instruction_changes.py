"""Instructions: names, targets, operand lists, metadata, operands and the elements that moved, and the statements about them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.model import Database, Layout
from ptxmma.model.bitmap import domain

#: A change without its subject: kind, text, and whether it breaks consumers.
Difference = tuple[str, str, bool]


def shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None or value == "":
        return "nothing"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def several(values: Sequence[object]) -> str:
    """Values in a sentence."""
    if isinstance(values, range) and values:
        return f"{values[0]}..{values[-1]}"
    return " ".join(map(str, values)) or "none"


def of_instructions(old: Catalog, new: Catalog) -> Iterator[tuple[str, Difference]]:
    """Instructions by their canonical spellings."""
    same = _same_sets(old.database, new.database)
    ours, theirs = (
        {
            instruction.canonical: instruction
            for entry in catalog.database.spec.instructions
            if entry.name not in same
            for instruction in catalog.of(entry.name)
        }
        for catalog in (old, new)
    )
    comparer = OperandComparer()
    for spelling, before in ours.items():
        after = theirs.get(spelling)
        if after is None:
            yield spelling, ("instruction", "removed", True)
            continue
        differences = [
            *_names(before, after),
            *_acceptance(before, after),
            *_forms(before, after, comparer),
            *_metadata(before, after),
            *_statements(before, after),
        ]
        for difference in differences:
            yield spelling, difference
    for spelling in theirs:
        if spelling not in ours:
            yield spelling, ("instruction", "added", False)


#: The parts of the spec that decide on the variants of an instruction, besides its own entry.
_COMMON = ("scopes", "types", "targets", "register_layouts", "granularities", "choices", "block_scaling")


def _same_sets(old: Database, new: Database) -> set[str]:
    """The instructions whose variants need no comparison: all that they are worked out from is the same."""
    if old.layouts != new.layouts or any(getattr(old.spec, section) != getattr(new.spec, section) for section in _COMMON):
        return set()
    there = {entry.name: entry for entry in new.spec.instructions}
    return {entry.name for entry in old.spec.instructions if there.get(entry.name) == entry}


def _names(before: Instruction, after: Instruction) -> Iterator[Difference]:
    if before.identifier != after.identifier:
        yield "function", f"identifier {before.identifier} is now {after.identifier}", True
    if before.documented != after.documented:
        yield "instruction", "is now documented" if after.documented else "is no longer documented", False


def _acceptance(before: Instruction, after: Instruction) -> Iterator[Difference]:
    """Targets and the first PTX ISA version on each; where these are the same, the rules that the manual states."""
    old, new = before.accepted_by(), after.accepted_by()
    lost, gained = ([name for name in one if name not in other] for one, other in ((old, new), (new, old)))
    if lost:
        yield "targets", f"no longer accepted by {' '.join(lost)}", True
    if gained:
        yield "targets", f"now accepted by {' '.join(gained)}", False
    moved: dict[tuple[str, str], list[str]] = {}
    for name in old:
        if name in new and old[name] != new[name]:
            moved.setdefault((old[name], new[name]), []).append(name)
    for (first, now), names in moved.items():
        yield "targets", f"from PTX ISA {now} on instead of {first} on {' '.join(names)}", now > first
    if old == new and before.documented == after.documented:
        rules = [{(rule.ptx, rule.targets) for rule in instruction.requirements()} for instruction in (before, after)]
        if rules[0] != rules[1]:
            yield "requirements", "the manual's rules are others, with the same result", False


def _forms(before: Instruction, after: Instruction, comparer: OperandComparer) -> Iterator[Difference]:
    """Operand lists: those with the same operands belong together, of the others those in the same place."""
    old, new = list(before.forms), list(after.forms)
    pairs: list[tuple[OperandForm, OperandForm]] = []
    for form in before.forms:
        same = next((other for other in new if other.syntax == form.syntax), None)
        if same is not None:
            pairs.append((form, same))
            old.remove(form)
            new.remove(same)
    for form, other in itertools.zip_longest(old, new):
        if other is None:
            yield "operand", f"form {form.syntax!r} is gone", True
        elif form is None:
            yield "operand", f"form {other.syntax!r} is new", False
        else:
            yield "operand", f"form {form.syntax!r} is now {other.syntax!r}", True
            pairs.append((form, other))
    for form, other in pairs:
        there = {operand.name: operand for operand in other.operands}
        for operand in form.operands:
            if operand.name in there:
                yield from comparer.compare(operand, there[operand.name])


def _metadata(before: Instruction, after: Instruction) -> Iterator[Difference]:
    if not (before.variant.instruction.metadata and after.variant.instruction.metadata):
        return
    old, new = before.metadata, after.metadata
    if old.granularity.name != new.granularity.name:
        yield "metadata", f"pattern {old.granularity.name} is now {new.granularity.name}", True
    elif set(old.legal) != set(new.legal):
        yield "metadata", f"legal fields {' '.join(old.legal)} are now {' '.join(new.legal)}", not set(old.legal) <= set(new.legal)
    if old.padding != new.padding:
        yield "metadata", f"the field of zeros {old.padding} is now {new.padding}", True


def _statements(before: Instruction, after: Instruction) -> Iterator[Difference]:
    arithmetic = ("multiply", "accumulate", "sums", "overflow", "rounds", "truncates", "unspecified")
    old, new = (
        [tuple(getattr(entry, field) for field in arithmetic) for entry in instruction.semantics()] for instruction in (before, after)
    )
    if old != new:
        yield "semantics", "its arithmetic promises something else", False
    for kind in ("undefined", "uniform", "notes"):
        texts, others = ([entry.text for entry in getattr(instruction, kind)()] for instruction in (before, after))
        for text in texts:
            if text not in others:
                yield kind, f"no longer stated: {text}", False
        for text in others:
            if text not in texts:
                yield kind, f"now stated: {text}", False


class OperandComparer:
    """Compares operands, which many instructions share, once each."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Operand, Operand, list[Difference]]] = {}

    def compare(self, before: Operand, after: Operand) -> list[Difference]:
        """The differences between two operands of one name."""
        key = id(before), id(after)
        if key not in self._known:
            self._known[key] = before, after, [*_operand(before, after)]
        return self._known[key][2]


#: The fields of an operand that code relies on.
_RELIED_ON = (
    "kind", "access", "element_type", "bits", "shift", "axes", "sizes", "elements", "registers", "c_type", "constraint", "alignment",
    "row_bytes", "unit",
)  # fmt: skip


def _operand(before: Operand, after: Operand) -> Iterator[Difference]:
    name = before.name
    for field in _RELIED_ON:
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield "operand", f"{name}: {field.replace('_', ' ')} {shown(old)} is now {shown(new)}", True
    yield from _sets(f"{name}: register types", before.register_types, after.register_types)
    yield from _sets(f"{name}: immediates", before.immediates or (), after.immediates or ())
    if before.takes_register != after.takes_register:
        verb = "now takes" if after.takes_register else "no longer takes"
        yield "operand", f"{name}: {verb} a register", before.takes_register
    if before.default != after.default:
        yield "operand", f"{name}: default {shown(before.default)} is now {shown(after.default)}", before.default is not None
    if before.uniform != after.uniform:
        yield "operand", f"{name}: the same over {shown(before.uniform)} is now over {shown(after.uniform)}", bool(after.uniform)
    if before.layout is not None and after.layout is not None:
        yield from _moved(name, before.layout, after.layout, min(before.elements, after.elements))


def _sets(what: str, old: Sequence[object], new: Sequence[object]) -> Iterator[Difference]:
    if old != new:
        yield "operand", f"{what} {several(old)} are now {several(new)}", not _within(old, new)


def _within(some: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether every value is among the others; ranges may be far too long to go through."""
    if isinstance(some, range) and isinstance(others, range):
        return others.start <= some.start and some.stop <= others.stop
    return len(some) <= len(others) and all(value in others for value in some)


def _moved(name: str, old: Layout, new: Layout, elements: int) -> Iterator[Difference]:
    """Elements, fields or scale factors that moved."""
    if old.map == new.map:
        return
    if old.map.inputs.keys() != new.map.inputs.keys() or old.map.outputs.keys() != new.map.outputs.keys():
        yield "layout", f"{name}: a layout of another kind", True
        return
    points = domain({field: min(width, new.map.inputs[field]) for field, width in old.map.inputs.items()})
    if elements:
        kept = [place for place, i in enumerate(points["i"]) if i < elements]
        points = {field: [column[place] for place in kept] for field, column in points.items()}
    before, after = old.map.evaluate(points), new.map.evaluate(points)
    count = len(next(iter(points.values())))
    moved = [place for place in range(count) if any(before[field][place] != after[field][place] for field in before)]
    if moved:
        at, was, now = (_place(columns, moved[0]) for columns in (points, before, after))
        yield "layout", f"{name}: {len(moved)} of {count} moved; {at} was {was}, is {now}", True


def _place(columns: Mapping[str, Sequence[int]], place: int) -> str:
    return ", ".join(f"{field} {column[place]}" for field, column in columns.items())
