"""Operands: their types, registers and defaults, and which elements moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmma.catalog.comparison.differences import Difference, several, shown
from ptxmma.catalog.operands import Operand
from ptxmma.model import Layout
from ptxmma.model.bitmap import domain


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
    "kind",
    "access",
    "element_type",
    "bits",
    "shift",
    "axes",
    "sizes",
    "elements",
    "registers",
    "c_type",
    "constraint",
    "alignment",
    "row_bytes",
    "unit",
)


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
