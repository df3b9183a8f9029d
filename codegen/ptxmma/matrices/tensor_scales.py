"""Scale factors of a whole K as they lie in tensor memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import tensor_places
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.tensor_places import TensorPlaces
from ptxmma.model import Facts

#: Lines of A or B that share a lane.
_LINES = 32
_BYTE = 8
#: Lines that an instruction can read the factors of.
_MOST_LINES = 256


class Step(NamedTuple):
    """Where an instruction finds its scale factors.

    Attributes:
        column: to be added to the address of the first ones.
        scale_id: for the instruction descriptor.
    """

    column: int
    scale_id: int


def to_tensor_memory(scales: Any, axis: int = -1, *, database: DatabaseLike = None) -> Array:
    """Scale factors of a whole K as they lie in tensor memory: what ``tcgen05.cp.32x128b.warpx4`` makes of cuBLAS's order.

    Args:
        scales: (rows, blocks) of any type of 8 bits, of at most 256 rows of A or columns of B; rows and blocks that are not there are 0.
        axis: along which the blocks lie: -1 for A, -2 for B.
        database: another than the packaged one.

    Returns:
        uint32 of shape (128, columns); all four quarters of the lanes hold the same.

    Raises:
        ValueError: another shape or type.
    """
    codes = elements.as_array(scales, "scales")
    codes = codes if axis == -1 else codes.swapaxes(-1, -2)
    if codes.ndim != 2 or codes.dtype.itemsize != 1 or axis not in (-1, -2) or not codes.size or len(codes) > _MOST_LINES:
        raise ValueError(f"scales has shape {np.shape(scales)} and dtype {codes.dtype}; it takes (rows, blocks) of 8 bits, 1 to 256 rows")
    placed = _placed(codes.shape[0], codes.shape[1], database)
    lines, blocks, copies = np.meshgrid(*map(np.arange, (*codes.shape, placed.sizes["copy"])), indexing="ij", sparse=True)
    place = placed.locate(lines, blocks, copy=copies)
    columns = _columns(codes.shape[0]) * -(-codes.shape[1] // (placed.memory.cell // _BYTE))
    image = np.zeros((placed.memory.lanes, columns), np.uint32)
    values = codes.view(np.uint8).astype(np.uint32)[..., np.newaxis] << np.asarray(place.bit, np.uint32)
    np.bitwise_or.at(image, (place.lane, place.column), values)
    return image


def step(lines: int, factors: int, number: int, *, database: DatabaseLike = None) -> Step:
    """Where the instruction for the K-step ``number`` finds its scale factors among those of :func:`to_tensor_memory`.

    Args:
        lines: rows of A or columns of B that have factors there, 1 to 256.
        factors: those that an instruction reads for each line: 1, 2, 3, 4 or 6.
        number: of the step, from 0 on.
        database: another than the packaged one.

    Raises:
        TypeError: an argument that is not an integer.
        ValueError: an argument out of range.
    """
    lines, factors, number = integer("lines", lines), integer("factors", factors), integer("number", number)
    if not 1 <= lines <= _MOST_LINES:
        raise ValueError(f"lines = {lines} is out of range: 1..{_MOST_LINES}")
    if factors not in (legal := [count for count in range(1, 9) if _starts(lines, count, database)]):
        raise ValueError(f"factors = {factors}: no instruction reads so many for a line; allowed: {', '.join(map(str, legal))}")
    if number < 0:
        raise ValueError(f"number = {number} is out of range: steps count from 0 on")
    cell = _placed(lines, 1, database).memory.cell // _BYTE
    column, first = divmod(number * factors, cell)
    return Step(column * _columns(lines), first)


def _columns(lines: int) -> int:
    """Columns that four factors of each line take: whole groups of 128 lines."""
    return -(-lines // (4 * _LINES)) * 4


def _starts(lines: int, factors: int, database: DatabaseLike) -> tuple[int, ...]:
    """The scale IDs at which an instruction that reads so many factors of each line may start; empty where there is none."""
    return _layout(lines, factors, database).selections.get("scale_id", ())


def _placed(lines: int, blocks: int, database: DatabaseLike) -> TensorPlaces:
    """The layout of the factors of so many lines and blocks, from the first column on."""
    return msgspec.structs.replace(_layout(lines, blocks, database), selections={"scale_id": (0,)})


def _layout(lines: int, blocks: int, database: DatabaseLike) -> TensorPlaces:
    """The layout of the spec for so many lines and blocks."""
    memory = catalog(database).database.spec.tensor_memory
    facts: Facts = {"name": "tcgen05.mma", "cta_group": "cta_group::1", "m": 128, "blocks": 1}
    numbers = {"m": 128, "n": lines, "blocks": blocks, "ctas": 1, "ratio": 1}
    placed = tensor_places.of(memory, "tensor-scales", "b", facts, numbers) if memory is not None else None
    if placed is None:
        raise ValueError("the database has no scale factors in tensor memory")
    return placed
