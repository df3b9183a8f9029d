"""Our layouts in the notations of CuTe and Triton, and CuTe's texts read back.

CuTe writes a layout as ``shape:stride``: :func:`to_cute`, :func:`from_cute`.  Triton writes what each bit of the register, the lane
and the warp adds to the coordinates: :func:`to_triton`.  Both say just what the layout's bit map says.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from ptxmma.arguments import integer
from ptxmma.catalog.cute_layout import CuteLayout, Modes, Swizzle, coalesced, nested
from ptxmma.catalog.cute_text import from_cute
from ptxmma.model import COPY, Layout
from ptxmma.model.bitmap import BitMap

__all__ = ["Bases", "CuteLayout", "Modes", "Swizzle", "from_cute", "to_cute", "to_triton"]

#: What each bit of ``register``, ``lane`` and ``warp`` adds to the coordinates, lowest bit first.
Bases = dict[str, list[list[int]]]


class _Mode(NamedTuple):
    """A coordinate 0..size-1 that moves by ``weight`` along ``dimension``; along ``""`` it leads to copies and does not move."""

    size: int
    dimension: str
    weight: int


class _View(NamedTuple):
    """A layout as a function of the thread and of the number of what it holds, the fastest modes first."""

    extents: dict[str, int]  # of the matrix, in the order in which CuTe counts
    threads: list[_Mode]
    values: list[_Mode]


def to_cute(layout: Layout, n: int | None = None) -> str:
    """CuTe's text of a layout in the fewest modes: ``((threads),(values)):((strides),(strides))``.

    It leads from a thread and the number of what it holds to a place, as ``ALayout``, ``BLayout`` and ``CLayout`` of CuTe's
    ``MMA_Traits`` do.  Places are counted column by column: A as (M, K), B as (N, K), C and D as (M, N).  A sparse A is the packed
    matrix of K/2 columns.  Several matrices, and the independent products of ``m8n8k4`` with f16, lie one behind the other.  What leads to
    copies of an element has the stride 0.  For metadata, values are the fields of a register and places are (row, chunk, selector); for
    scale factors, values are the bytes of a register and places are (row, block, byte id, thread id), where a row is a column of B for the
    scale factors of B.

    Args:
        layout: any layout but that of addresses.
        n: columns of the matrix, which a layout of many N needs; :meth:`ptxmma.Operand.to_cute` knows its own.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: the layout is one of addresses, has no ``n`` columns, or has many N and ``n`` is left out.
    """
    view = _view(layout, n)
    strides = dict(zip(view.extents, itertools.accumulate([1, *view.extents.values()], int.__mul__), strict=False)) | {"": 0}
    modes = [coalesced((mode.size, strides[mode.dimension] * mode.weight) for mode in part) for part in (view.threads, view.values)]
    shape, stride = zip(*map(nested, modes), strict=True)
    return str(CuteLayout(shape, stride))


def to_triton(layout: Layout, n: int | None = None) -> Bases:
    """Triton's bases of a layout: ``{"register": [[row, col], …], "lane": [[row, col], …], "warp": [[row, col], …]}``.

    The coordinates of an element are the XOR of the bases of all bits that are set.  ``register`` counts elements, not 32-bit
    registers; ``lane`` has the bits of a thread's number in its warp, ``warp`` the bits above them: two for a warpgroup,
    none for a warp.  A is (M, K), B is (K, N), C and D are (M, N); a sparse A is the packed matrix of K/2 columns.  Several matrices, and
    the independent products of ``m8n8k4`` with f16, are a dimension in front.  What leads to copies of an element adds nothing: its basis
    is 0.  Metadata and scale factors have the dimensions of :func:`to_cute`.

    Args:
        layout: any layout but that of addresses.
        n: columns of the matrix, which a layout of many N needs; :meth:`ptxmma.Operand.to_triton` knows its own.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: the layout is one of addresses, has no ``n`` columns, or has many N and ``n`` is left out, or ``n`` is not a power of
            two: linear layouts have no other sizes.
    """
    view = _view(layout, n)
    order = [name for name in (*_leads(layout), *layout.plane) if name] if layout.kind == "fragment" else list(view.extents)

    def bases(modes: list[_Mode]) -> list[list[int]]:
        places = [(mode.dimension, mode.weight << bit) for mode in modes for bit in range(mode.size.bit_length() - 1)]
        return [[weight if name == dimension else 0 for name in order] for dimension, weight in places]

    if any(mode.size & mode.size - 1 for mode in view.values):
        raise ValueError(f"n = {n}: Triton's linear layouts need a power of two")
    threads, warp = bases(view.threads), 5
    return {"register": bases(view.values), "lane": threads[:warp], "warp": threads[warp:]}


def _view(layout: Layout, n: int | None) -> _View:
    if layout.kind == "fragment":
        return _fragment(layout, n)
    if layout.kind == "address":
        raise ValueError(f"{layout.name} places no elements: it says which thread gives the address of which row; ask Operand.coords")
    if n is not None:
        raise ValueError(f"{layout.name} has no columns of N: leave n out")
    back = layout.map.inverse()
    values = next(name for name in back.inputs if name != "lane")
    return _View({name: 1 << width for name, width in back.outputs.items()}, _modes(back, "lane"), _modes(back, values))


def _fragment(layout: Layout, n: int | None) -> _View:
    sizes = {name: 1 << width for name, width in layout.map.outputs.items()}
    values = _modes(layout.map, "i")
    row, col = layout.plane
    most = step = sizes[col]
    if layout.growing:
        step = layout.grows_by
        if n is None:
            raise ValueError(f"{layout.name} serves every N: pass n, or ask the operand of an instruction, which knows its own")
    columns = most if n is None else integer("n", n)
    if not 0 < columns <= most or columns % step:
        allowed = f"{step} columns" if step == most else f"a multiple of {step} columns, {most} at most"
        raise ValueError(f"n = {columns}: {layout.name} has {allowed}")
    sizes[col] = columns
    values = values[: len(values) - (most // step).bit_length() + 1]
    # CuTe counts along K last: B is (N, K).
    matrix = (col, row) if layout.summed == row else (row, col)
    extents = {name: sizes[name] for name in (*matrix, *_leads(layout)) if name}
    return _View(extents, _modes(layout.map, "lane"), [*values, _Mode(columns // step, col, step)])


def _modes(bits: BitMap, name: str) -> list[_Mode]:
    """The bits of one input as modes."""
    return [_Mode(2, "" if output == COPY else output, 1 << bit) for output, bit in bits.bits[name]]


def _leads(layout: Layout) -> list[str]:
    """The axes that tell the matrices of a fragment apart."""
    return [axis for axis in layout.axes if axis not in (*layout.plane, COPY)]
