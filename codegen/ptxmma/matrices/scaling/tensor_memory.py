"""Scale factors of a whole K as they lie in tensor memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.operands import tensor_places
from ptxmma.catalog.operands.tensor_places import Place, TensorPlaces
from ptxmma.model import Space, TensorLayout

_BYTE = 8
#: The lanes over which scale factors of any matrix may lie.
_USUAL = 32


class Step(NamedTuple):
    """The place of the scale factors of an instruction.

    Attributes:
        column: the number of columns to add to the address of the first factors.
        scale_id: the number for the instruction descriptor.
    """

    column: int
    scale_id: int


def to_tensor_memory(scales: Any, axis: int = -1, *, lanes: int = _USUAL, database: DatabaseLike = None) -> Array:
    """Scale factors of a whole K as they lie in tensor memory: what ``tcgen05.cp.32x128b.warpx4`` makes of cuBLAS's order.

    Args:
        scales: (rows, blocks) of any type of 8 bits, of at most 256 rows of A or columns of B; rows and blocks that are not there are 0.
        axis: along which the blocks lie: -1 for A, -2 for B.
        lanes: the lanes over which they lie: 32, or 128 for the rows of A in one CTA, as products with ``scale_a_lanes=128`` read them.
        database: another than the packaged one.

    Returns:
        uint32 of shape (128, columns); over 32 lanes, all four quarters of the lanes hold the same.

    Raises:
        ValueError: another shape or type, or another axis.
    """
    check_axis(axis, lanes)
    codes = turned(elements.as_array(scales, "scales"), axis)
    most = _most_lines(lanes, database)
    if codes.ndim != 2 or codes.dtype.itemsize != 1 or not codes.size or len(codes) > most:
        raise ValueError(
            f"scales has shape {np.shape(scales)} and dtype {codes.dtype}; it takes (rows, blocks) of 8 bits, 1 to {most} rows"
        )
    rows, blocks = codes.shape
    place, columns = _places(rows, blocks, lanes, database)
    image = np.zeros((_memory(database).most("lane"), columns), np.uint32)
    values = codes.view(np.uint8).astype(np.uint32)[..., np.newaxis] << np.asarray(place.bit, np.uint32)
    np.bitwise_or.at(image, (place.lane, place.column), values)
    return image


def from_tensor_memory(image: Any, shape: Sequence[int], axis: int = -1, *, lanes: int = _USUAL, database: DatabaseLike = None) -> Array:
    """The scale factors that lie in tensor memory: the inverse of :func:`to_tensor_memory`, from the first quarter of the lanes.

    Args:
        image: (128, columns) of 32 bits, from the column of their address on.
        shape: the shape of the scale factors: (rows, blocks) of A, (blocks, columns) of B.
        axis: as for :func:`to_tensor_memory`.
        lanes: as for :func:`to_tensor_memory`.
        database: another than the packaged one.

    Returns:
        uint8 of that shape.

    Raises:
        TypeError: a size that is not an integer.
        ValueError: another image or axis, or a shape that the image does not hold.
    """
    check_axis(axis, lanes)
    cells, sizes = elements.as_array(image, "image"), [integer("shape", size) for size in shape]
    lines, *blocks = sizes if axis == -1 else reversed(sizes)
    most = _most_lines(lanes, database)
    if len(blocks) != 1 or min(sizes) < 1 or lines > most:
        raise ValueError(f"shape {tuple(sizes)} with axis {axis} is not that of scale factors: (rows, blocks), 1 to {most} rows")
    place, columns = _places(lines, blocks[0], lanes, database)
    if cells.ndim != 2 or cells.shape[0] != _memory(database).most("lane") or cells.shape[1] < columns or cells.dtype.itemsize != 4:
        raise ValueError(
            f"image is {cells.dtype} of shape {cells.shape}; it takes ({_memory(database).most('lane')}, {columns}) or more of 32-bit cells"
        )
    stored = np.ascontiguousarray(cells).view(np.uint32)[place.lane[..., 0], place.column[..., 0]]
    codes: Array = (stored >> np.asarray(place.bit[..., 0], np.uint32)).astype(np.uint8)
    return turned(codes, axis)


def check_axis(axis: int, lanes: int = _USUAL) -> None:
    """Refuse an axis along which no instruction reads blocks, over so many lanes."""
    if axis not in (-1, -2):
        raise ValueError(f"axis = {axis!r} is not legal: -1 for (rows, blocks) of A, -2 for (blocks, columns) of B")
    if lanes != _USUAL and axis != -1:
        raise ValueError(f"lanes = {lanes} is for scale factors of A alone: axis -1")


def turned(array: Array, axis: int) -> Array:
    """Scale factors with their blocks along the last axis, and back."""
    return array if axis == -1 else array.swapaxes(-1, -2)


def _places(lines: int, blocks: int, lanes: int, database: DatabaseLike) -> tuple[Place, int]:
    """The place of each factor, as arrays over lines, blocks and copies; and the columns that all take."""
    placed = of_lines(lines, blocks, lanes, database=database)
    every = np.meshgrid(*map(np.arange, (lines, blocks, placed.sizes.get("copy", 1))), indexing="ij")
    copies: dict[str, Any] = {"copy": every[2]} if placed.apart else {}
    place = placed.locate(*every[:2], **copies)
    known = Place(*(np.broadcast_to(value, every[0].shape) for value in place))
    return known, step(lines, 1, -(-blocks // blocks_of_cell(database)) * blocks_of_cell(database), lanes=lanes, database=database).column


def _scales(lanes: int, database: DatabaseLike) -> tuple[Space, TensorLayout]:
    """A layout of scale factors over so many lanes, and its memory.

    Over 32 it is the first one of B, which lie as the ones of any A or B of one CTA do.

    Raises:
        ValueError: the database has none.
    """
    found: dict[int, tuple[Space, TensorLayout]] = {}
    for memory in catalog(database).database.spec.tensor_memories:
        for layout in memory.layouts:
            if layout.operand == "tensor-scales":
                stated = {each for when in layout.of for each in when.get("scale_a_lanes", ()) if isinstance(each, int)} - {_USUAL}
                for each in {_USUAL} if layout.matrix == "b" else stated:
                    found.setdefault(each, (memory, layout))
    if lanes not in found:
        legal = " or ".join(map(str, sorted(found))) or "none in this database"
        raise ValueError(f"lanes = {lanes}: scale factors do not lie over so many lanes of tensor memory; legal: {legal}")
    return found[lanes]


def _memory(database: DatabaseLike) -> Space:
    """The memory in which scale factors lie."""
    return _scales(_USUAL, database)[0]


def _most_lines(lanes: int, database: DatabaseLike) -> int:
    """The rows or columns of a matrix of which an instruction can read the factors in one CTA."""
    _scales(lanes, database)
    if lanes != _USUAL:
        return lanes
    products = catalog(database).database.spec.tensor_products
    return max(each.last for shape in products.shapes for each in shape.n) if products is not None else 0


def blocks_of_cell(database: DatabaseLike = None) -> int:
    """The factors of a line in one cell."""
    return _memory(database).cell // _BYTE


def step(lines: int, factors: int, number: int, *, lanes: int = _USUAL, database: DatabaseLike = None) -> Step:
    """Return the place of the scale factors of the instruction for the K-step ``number`` among the ones of :func:`to_tensor_memory`.

    Args:
        lines: rows of A or columns of B that have factors there, 1 to 256.
        factors: the factors that an instruction reads for each line: 1, 2, 3, 4, 6 or 8.
        number: the number of the step, from 0 on.
        lanes: as for :func:`to_tensor_memory`.
        database: another than the packaged one.

    Raises:
        TypeError: an argument that is not an integer.
        ValueError: an argument out of range.
    """
    lines, factors, number = integer("lines", lines), integer("factors", factors), integer("number", number)
    most = _most_lines(lanes, database)
    if not 1 <= lines <= most:
        raise ValueError(f"lines = {lines} is out of range: 1..{most}")
    if factors not in (legal := [count for count in range(1, 9) if _starts(lines, count, lanes, database)]):
        raise ValueError(f"factors = {factors}: no instruction reads so many for a line; allowed: {', '.join(map(str, legal))}")
    if number < 0:
        raise ValueError(f"number = {number} is out of range: steps count from 0 on")
    first = of_lines(lines, number * factors + 1, lanes, database=database).locate(0, number * factors)
    return Step(int(first.column), int(first.bit) // _BYTE)


def _starts(lines: int, factors: int, lanes: int, database: DatabaseLike) -> tuple[int, ...]:
    """The scale IDs at which an instruction that reads so many factors of each line may start; empty where there is none."""
    return _layout(lines, factors, lanes, database).selections.get("scale_id", ())


def of_lines(lines: int, blocks: int, lanes: int = _USUAL, *, database: DatabaseLike = None) -> TensorPlaces:
    """The layout of the factors of so many lines and blocks, from the first column on."""
    return msgspec.structs.replace(_layout(lines, blocks, lanes, database), selections={"scale_id": (0,)})


def _layout(lines: int, blocks: int, lanes: int, database: DatabaseLike) -> TensorPlaces:
    """The layout of the spec for so many lines and blocks."""
    numbers = {"m": lines, "n": lines, "blocks": blocks, "ctas": 1, "ratio": 1}
    return tensor_places.with_numbers(*_scales(lanes, database), numbers)
