"""Layouts of operands in tensor memory, with the numbers of one instruction."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from ptxmma.arguments import in_range
from ptxmma.catalog import layouts
from ptxmma.catalog.operands.placement import Placement
from ptxmma.model import Facts, Space, TensorLayout, UnknownPlace, formula, matches
from ptxmma.model.digit_map import DigitMap

_Entry = TypeVar("_Entry", TensorLayout, UnknownPlace)

#: The number that the unit of a layout reads where elements of the matrix lie there: the width of one, or of its container.
_ELEMENT = "bits"


class _Bit(NamedTuple):
    cta: Any
    lane: Any
    column: Any
    bit: Any


class Place(_Bit):
    """A place in tensor memory, from the operand's address on.

    Attributes:
        cta: the CTA of a pair: its ``%cluster_ctarank`` modulo 2; 0 without a pair.
        lane: counted from the lane of the operand's address: 0..127.
        column: counted from the column of the operand's address, in cells.
        bit: lowest bit of what lies there.
        operand: the layout of the operand that this is a place of; None for a place of tensor memory itself.
    """

    operand: TensorPlaces | None = None

    def address(self, base: Any = 0) -> Any:
        """Return the address of the cell for an operand at the address ``base``: the lane in the upper half, the column in the lower.

        Raises:
            TypeError: the base is neither an integer nor an array.
            ValueError: the base is not an address, the operand cannot start there or would leave tensor memory, or this place
                is not one of an operand.
        """
        if self.operand is None:
            raise ValueError("a place of tensor memory itself has no base; an address is of a place that `locate` of an operand gives")
        memory = self.operand.memory
        base = in_range("base", base, len(memory.addresses))
        self.operand.start(base)
        return in_range("address", base + memory.address_of(lane=self.lane, column=self.column), len(memory.addresses))


class TensorPlaces(Placement, msgspec.Struct, frozen=True, dict=True):
    """The layout of one operand of one instruction in tensor memory.

    Attributes:
        memory: the spec's tensor memory.
        layout: the spec's entry: formulas there and back.
        sizes: the size of each axis: ``{"row": 128, "col": 256}``.
        numbers: the other numbers that the formulas read: extents, ``bits`` …
        selections: the legal values of each number of the instruction descriptor that selects a part: ``{"scale_id": (0, 2)}``.
        unit: bits at a place: of an element, or of its container where elements are narrow.
        shift: the lowest bit of an element in its container.
    """

    memory: Space
    layout: TensorLayout
    sizes: dict[str, int]
    numbers: dict[str, int]
    selections: dict[str, tuple[int, ...]]
    unit: int
    shift: int = 0

    @property
    def name(self) -> str:
        """The title of the layout."""
        return self.layout.title

    @property
    def apart(self) -> tuple[str, ...]:
        """The axes that number copies of the same data."""
        return self.layout.apart

    def _at(self, point: Mapping[str, Any]) -> Place:
        at = self.digits({name: point[name] for name in self.selections}).apply(point)
        place = Place(at.get("cta", 0), at["lane"], at["column"], at["bit"] + self.shift)
        place.operand = self
        return place

    def digits(self, chosen: Mapping[str, int]) -> DigitMap:
        """Return the map from the axes to the coordinates, with what the instruction descriptor selects.

        Raises:
            FormulaError, NotDigitsError: the spec's formulas are not such a map; no generated database has such formulas.
        """
        key = tuple(chosen.items())
        if key not in self._maps:
            self._maps[key] = DigitMap.of(self.layout.terms, self.sizes, self.memory.coordinates, {**self.numbers, **chosen})
        return self._maps[key]

    def whole_cells(self) -> DigitMap:
        """Return the map with all that the cells have room for: scale factors of several steps, and columns up to a whole number of lanes.

        Raises:
            FormulaError, NotDigitsError: as :meth:`digits`.
        """
        sizes = dict(self.sizes)
        for axis in sizes:
            if added := {name for term in self.layout.terms if term.axis == axis for name in term.added}:
                each = self.memory.cell // self.unit
                sizes[axis] = -(-(sizes[axis] + sum(max(self.selections[name]) for name in added)) // each) * each
        made = DigitMap.of(self.layout.terms, sizes, self.memory.coordinates, self.numbers | dict.fromkeys(self.selections, 0))
        ends = {axis: [digit.end for digit in made.of_axis(axis)] for axis in sizes}
        return msgspec.structs.replace(made, axes={axis: max([size, *ends[axis]]) for axis, size in sizes.items()})

    @functools.cached_property
    def _maps(self) -> dict[tuple[tuple[str, int], ...], DigitMap]:
        return {}

    def coords(self, lane: Any, column: Any, bit: Any = 0, cta: Any = 0, **selections: int) -> tuple[Any, ...]:
        """Return the part at a place, a number for each of :attr:`sizes`: the inverse of :meth:`locate`.

        All bits of a container lead to its element.

        Raises:
            ValueError: nothing lies there.
        """
        given = {"cta": cta, "lane": lane, "column": column, "bit": bit}
        found = self.digits(self._selected(selections)).read(given)
        inside = found.fits & (found.rest["bit"] < self.unit)
        for name in ("cta", "lane", "column"):
            inside = inside & (found.rest.get(name, given[name]) == 0)
        if not _all(inside):
            where = ", ".join(f"{name} = {value}" for name, value in given.items())
            raise ValueError(f"nothing of the operand lies at {where}; its layout is {self.layout.title}")
        return tuple(found.point[axis] for axis in self.sizes)

    def to_cute(self, **selections: int) -> str:
        """CuTe's text of the layout: ``((16,4,2),256):((1@lane,32@lane,1@cta),1@column)`` for rows and columns; copies come last.

        Raises:
            TypeError, ValueError: an unknown or illegal selection.
        """
        return self.digits(self._selected(selections)).coalesce().to_cute(*self.axes, *self.apart)

    def to_triton(self, **selections: int) -> dict[str, list[list[int]]]:
        """Return the step that each bit of each coordinate of tensor memory adds to the axes, as Triton's linear layouts say it.

        Raises:
            TypeError: an unknown selection.
            ValueError: an illegal selection, or a size that is not a power of two.
        """
        return self.digits(self._selected(selections)).inverse().bases(*self.axes, *self.apart)

    def selected_for(self, axis: str, number: int) -> dict[str, int] | None:
        """Return the number and the selections that read past the end of an axis, as a later step along K does; None if nothing does.

        A cell holds the scale factors of several steps: ``selected_for("block", 3)`` is ``{"block": 0, "scale_id": 3}``.
        """
        added = {name for term in self.layout.terms if term.axis == axis for name in term.added}
        for values in itertools.product(*self.selections.values()):
            chosen = dict(zip(self.selections, values, strict=True))
            own = number - sum(chosen[name] for name in added)
            if 0 <= own < self.sizes[axis]:
                return {axis: own} | chosen
        return None

    @property
    def columns(self) -> int:
        """Columns that it takes, from its address on."""
        return self.digits({name: values[-1] for name, values in self.selections.items()}).reach("column") + 1

    @property
    def first_lanes(self) -> str:
        """The lanes at which it may start, in words: ``"0 or 16"``, ``"0..31"``."""
        lanes = self.layout.align
        return f"{lanes[0]}..{lanes[-1]}" if len(lanes) > 2 else " or ".join(map(str, lanes))

    def start(self, base: Any) -> Place:
        """Return the place that an address names, checked as the start of the operand.

        Raises:
            TypeError: the address is neither an integer nor an array.
            ValueError: this cannot start there, or would leave tensor memory.
        """
        at = self.memory.parts(in_range("base", base, len(self.memory.addresses)))
        lane, column = at["lane"], at["column"]
        misplaced = True
        for allowed in self.layout.align:
            misplaced = misplaced & (lane != allowed)
        if _any(misplaced | (column > self.memory.most("column") - self.columns)):
            text = f" = {base:#x}" if isinstance(base, int) else ""
            columns = ", ".join(f"0..{row.size - self.columns} on {' and '.join(row.targets)}" for row in self.memory.coordinates["column"])
            raise ValueError(f"base{text}: the operand takes {self.columns} columns; allowed: lane {self.first_lanes}; column {columns}")
        return Place(0, lane, column, 0)


def _any(truth: Any) -> bool:
    return bool(truth.any()) if hasattr(truth, "any") else bool(truth)


def _all(truth: Any) -> bool:
    return bool(truth.all()) if hasattr(truth, "all") else bool(truth)


def covering(entries: Iterable[_Entry], kind: str, matrix: str, facts: Facts) -> Iterator[_Entry]:
    """Return the entries that are for an operand of a kind that describes a matrix; of all entries of a memory one, in a valid spec."""
    return (entry for entry in entries if entry.operand == kind and entry.matrix in ("", matrix) and matches(entry.of, facts))


def of(memory: Space, kind: str, matrix: str, facts: Facts, numbers: Mapping[str, int]) -> TensorPlaces | None:
    """Return the layout of an operand of a kind that describes a matrix, or None where the spec has none.

    ``facts`` are the facts of a resolved instruction, ``numbers`` the numbers that formulas read.
    """
    entry = next(covering(memory.layouts, kind, matrix, facts), None)
    return None if entry is None else with_numbers(memory, entry, numbers)


def with_numbers(memory: Space, entry: TensorLayout, numbers: Mapping[str, int]) -> TensorPlaces:
    """Return an entry of the spec with the numbers that its formulas read."""
    known = dict(numbers)
    shift = known.get("shift", 0) if _ELEMENT in formula.names(formula.parse(entry.unit)) else 0
    legal = {one.name: one.values for one in entry.selections if matches(one.when, known)}
    return TensorPlaces(memory, entry, layouts.sizes(entry.axes, known), known, legal, layouts.size(entry.unit, known), shift)
