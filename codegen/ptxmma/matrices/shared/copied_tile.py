"""A matrix in shared memory that boxes of a tensor fill, and the element of the tensor from which each of its elements comes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.canonical import Geometry


class Copy(NamedTuple):
    """One copy of a box.

    Attributes:
        at: the coordinates that the instruction gives, innermost first.
        destination: the shared address.
    """

    at: tuple[int, ...]
    destination: int


class Origin(NamedTuple):
    """An element of a tensor in global memory.

    Attributes:
        at: its coordinates, innermost first, which may lie outside of the tensor; with interleave the ones of its slice.
        byte: bytes from the tensor's address to it; None outside of the tensor, where the copy fills.
        low: its lowest bit in that byte.
    """

    at: tuple[int, ...]
    byte: int | None
    low: int


class CopiedTile:
    """A matrix that copies of a box fill, one after the other: first down its rows in memory, then along them.

    Attributes:
        map: the tensor map.
        layout: the place of the matrix in shared memory.
        at: the coordinates of its first element in the tensor, innermost first.
        copies: the copies, in the order of their addresses.
        transaction_bytes: bytes that all copies count on an mbarrier.
    """

    def __init__(self, map: BoxGeometry, layout: Geometry, at: Sequence[int]) -> None:
        """Take the attributes.

        Raises:
            ValueError: the boxes write elements elsewhere than the layout has them, or do not follow each other along one dimension.
            IllegalBoxError: a copy that traps.
        """
        if wrong := map.difference(layout):
            raise ValueError(
                f"row {wrong.x}, column {wrong.k}: the copy writes it to {wrong.copied}, the layout has it at {wrong.expected}"
            )
        self.map, self.layout, self.at = map, layout, tuple(at)
        inner, outer = (layout.k, layout.x) if layout.majorness == "K" else (layout.x, layout.k)
        self._across = map.rows.pitch * 8 // layout.width
        boxes = itertools.product(range(inner // self._across), range(outer // map.rows.number))
        places = [map.neighbour(self.at, across, down) for across, down in boxes]
        for place in places:
            map.source(place, point={})
        self.copies = tuple(Copy(place, layout.start + number * map.size) for number, place in enumerate(places))
        self.transaction_bytes = len(self.copies) * map.transaction_bytes

    def origin(self, x: int, k: int) -> Origin:
        """The element of the tensor that is copied to element (x, k).

        ``x`` may go on beyond the matrix: the second CTA of a pair has a matrix like this one after it.

        Raises:
            ValueError: a place that no copy writes, or one at which a copy traps.
        """
        along, line = (k, x) if self.layout.majorness == "K" else (x, k)
        (across, within), (down, row) = divmod(along, self._across), divmod(line, self.map.rows.number)
        first, *others = self.map.axes
        point = {first: within}
        for axis in others:
            row, point[axis] = divmod(row, self.map.digits.axes[axis])
        place = self.map.source(self.map.neighbour(self.at, across, down), point=point)
        offset = self.map.offset(place, within if first == "slice" else 0)
        return Origin(place, None if offset is None else offset // 8, 0 if offset is None else offset % 8)
