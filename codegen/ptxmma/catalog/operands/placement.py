"""Where the elements of an operand lie: from threads and elements to places of the matrix, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ptxmma.arguments import in_range
from ptxmma.model import Layout


class Placement(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The part of an :class:`~ptxmma.Operand` that its layout decides.

    Attributes:
        name, title, elements, sizes, layout: as in :class:`~ptxmma.Operand`.
    """

    name: str
    title: str
    elements: int = 0
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    layout: Layout | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The coordinates that :meth:`coords` returns and :meth:`locate` takes, in order: ``("row", "col")``; empty without a layout."""
        return self.layout.coordinates if self.layout is not None else ()

    @property
    def rows(self) -> int:
        """Rows of the matrix whose elements it holds; 0 without one."""
        return self._along(0)

    @property
    def cols(self) -> int:
        """Columns of the matrix whose elements it holds; 0 without one."""
        return self._along(1)

    def _along(self, side: int) -> int:
        """Rows (0) or columns (1) of its matrix."""
        if self.layout is None:
            return 0
        return self.sizes.get(self.layout.plane[side], int(self.layout.kind == "fragment"))

    @property
    def computations(self) -> int:
        """Independent products that the instruction computes: 4 for ``m8n8k4`` with f16, else 1."""
        return self.sizes.get("computation", 1)

    def coords(self, lane: Any, i: Any = 0, *, check: bool = True) -> Any:
        """The place of element ``i`` of thread ``lane``, a number for each of :attr:`axes`: ``(row, col)``.

        ``lane`` runs over 0..31, for warpgroup instructions over 0..127; ``i`` over 0..elements-1, from the lowest bits of register 0 on.
        For a sparse A, ``col`` is the column in the packed matrix.  Integers, or arrays (whatever has a shape);
        ``check=False`` leaves the range of arrays unchecked.  Of an address, which has no elements: the row of memory that begins at the
        address of thread ``lane``, or None where the instruction ignores that address.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: the operand has no layout, a number is out of range, or an array has threads whose addresses are ignored.
        """
        layout = self._placed()
        lane = in_range("lane", lane, layout.threads, check=check)
        place = layout.to_axes.apply({"lane": lane, "i": in_range("i", i, max(self.elements, 1), check=check)})
        if layout.kind == "address":
            ignored = (lane >> layout.to_axes.inputs["lane"]) != 0
            for axis in layout.growing:
                ignored = ignored | (place[axis] >= self.sizes[axis])
            if isinstance(lane, int) and ignored:
                return None
            if not isinstance(lane, int) and ignored.any():
                raise ValueError(f"lane of operand {self.name!r} names threads whose addresses the instruction ignores")
        return tuple(place[axis] for axis in self.axes)

    def computation(self, lane: Any, i: Any) -> Any:
        """Which of the instruction's independent products the element belongs to; 0 except for ``m8n8k4`` with f16."""
        layout = self.fragment()
        place = layout.to_axes.apply({"lane": in_range("lane", lane, layout.threads), "i": in_range("i", i, self.elements)})
        return place.get("computation", 0)

    def locate(self, *coordinates: Any, check: bool = True, **named: Any) -> Any:
        """``(lane, i)`` of the element at a place: the inverse of :meth:`coords`; of an address, ``lane``.

        The coordinates are those of :attr:`axes`, in order or by name: ``locate(9, 3)``, ``locate(row=9, col=3)``.  Where an element is
        stored in copies, it is the first of them; with ``computation=``, that of one of several independent products.
        ``check=False`` leaves the range of arrays unchecked.

        Raises:
            TypeError: a coordinate that is neither an integer nor an array, missing, unknown or given twice.
            ValueError: the operand has no layout, or a place lies outside the matrix.
        """
        layout = self._placed()
        place = self._place(layout, coordinates, named, check=check)
        element = layout.to_axes.inverse().apply(place)
        return (element["lane"], element["i"]) if "i" in element else element["lane"]

    def places(self, *coordinates: Any, **named: Any) -> list[Any]:
        """Every ``(lane, i)`` that holds the element at a place, ascending; of an address, every ``lane``.

        Raises:
            TypeError, ValueError: as :meth:`locate`.
        """
        layout = self._placed()
        place = self._place(layout, coordinates, named)
        for axis in layout.apart:
            place[axis] = 0
        copies = [place]
        for axis in layout.apart:
            if axis not in named:
                copies = [copy | {axis: number} for copy in copies for number in range(self.sizes[axis])]
            else:
                copies = [copy | {axis: named[axis]} for copy in copies]
        back = (layout.to_axes.inverse().apply(copy) for copy in copies)
        return sorted((copy["lane"], copy["i"]) if "i" in copy else copy["lane"] for copy in back)

    def _place(self, layout: Layout, coordinates: Sequence[Any], named: dict[str, Any], *, check: bool = True) -> dict[str, Any]:
        """The number of each axis, checked; 0 for those that tell copies and products apart and are not given."""
        names = (*self.axes, *layout.apart)
        if len(coordinates) > len(names):
            raise TypeError(f"operand {self.name!r} has the coordinates {', '.join(self.axes)}; {len(coordinates)} were given")
        given = dict(zip(names, coordinates, strict=False))
        if unknown := (named.keys() - set(names)) | (named.keys() & given.keys()):
            raise TypeError(f"operand {self.name!r} has the coordinates {', '.join(self.axes)}; {', '.join(sorted(unknown))} does not fit")
        given |= named
        if missing := [axis for axis in self.axes if axis not in given]:
            lacks = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            raise TypeError(f"operand {self.name!r} has the coordinates {', '.join(self.axes)}; {lacks}")
        return {axis: in_range(axis, given.get(axis, 0), self.sizes[axis], check=check) for axis in layout.axes}

    def fragment(self) -> Layout:
        """The layout of its elements.

        Raises:
            ValueError: it has none.
        """
        layout = self._placed()
        if layout.kind == "address":
            raise ValueError(f"operand {self.name!r} is an address and holds no elements: coords() says which row each thread's begins")
        return layout

    def _placed(self) -> Layout:
        """The layout of its elements, or of the rows that its addresses name."""
        if self.layout is None or self.layout.kind not in ("fragment", "address"):
            raise ValueError(f"operand {self.name!r} holds no elements of a matrix; its role: {self.title}")
        return self.layout
