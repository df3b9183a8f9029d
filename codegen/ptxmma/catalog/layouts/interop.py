"""Our layouts in the notations of CuTe and Triton, and CuTe's texts read back.

CuTe writes a layout as ``shape:stride``: :func:`to_cute`, :func:`from_cute`.  Triton writes what each bit of the register, the lane
and the warp adds to the coordinates: :func:`to_triton`.  Both say just what the layout's bit map says.
"""

from __future__ import annotations

from ptxmma.arguments import integer
from ptxmma.catalog.layouts.cute_layout import CuteLayout, Modes, Swizzle
from ptxmma.catalog.layouts.cute_text import from_cute
from ptxmma.model import COPY, Layout
from ptxmma.model.digit_map import DigitMap

__all__ = ["Bases", "CuteLayout", "Modes", "Swizzle", "from_cute", "to_cute", "to_triton"]

#: The steps that each bit of ``register``, ``lane`` and ``warp`` adds to the coordinates, lowest bit first.
Bases = dict[str, list[list[int]]]


def to_cute(layout: Layout, n: int | None = None) -> str:
    """CuTe's text of a layout in the fewest modes: ``((threads),(values)):((strides),(strides))``.

    It leads from a thread and the number of what it holds to a place, as ``ALayout``, ``BLayout`` and ``CLayout`` of CuTe's
    ``MMA_Traits`` do.  Places are counted column by column: A as (M, K), B as (N, K), C and D as (M, N).  A sparse A is the packed
    matrix of K/2 columns.  Several matrices, and the independent products of ``m8n8k4`` with f16, lie one after the other.  What leads to
    copies of an element has the stride 0.  For metadata, values are the fields of a register and places are (row, chunk, selector); for
    scale factors, values are the bytes of a register and places are (row, block, byte id, thread id), where a row is a column of B for the
    scale factors of B.

    Args:
        layout: any layout but one of addresses.
        n: columns of the matrix, which a layout of many N needs; :meth:`ptxmma.Operand.to_cute` knows its own.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: the layout is one of addresses, has no ``n`` columns, or has many N and ``n`` is left out.
    """
    places, thread, value = _places(layout, n)
    return places.linear(*_counted(layout, places)).to_cute(thread, value)


def to_triton(layout: Layout, n: int | None = None) -> Bases:
    """Triton's bases of a layout: ``{"register": [[row, col], …], "lane": [[row, col], …], "warp": [[row, col], …]}``.

    The coordinates of an element are the XOR of the bases of all bits that are set.  ``register`` counts elements, not 32-bit
    registers; ``lane`` has the bits of a thread's number in its warp, ``warp`` the bits above them: two for a warpgroup,
    none for a warp.  A is (M, K), B is (K, N), C and D are (M, N); a sparse A is the packed matrix of K/2 columns.  Several matrices, and
    the independent products of ``m8n8k4`` with f16, are a dimension in front.  What leads to copies of an element adds nothing: its basis
    is 0.  Metadata and scale factors have the dimensions of :func:`to_cute`.

    Args:
        layout: any layout but one of addresses.
        n: columns of the matrix, which a layout of many N needs; :meth:`ptxmma.Operand.to_triton` knows its own.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: the layout is one of addresses, has no ``n`` columns, or has many N and ``n`` is left out, or ``n`` is not a power of
            two: linear layouts have no other sizes.
    """
    places, thread, value = _places(layout, n)
    if places.axes[value] & places.axes[value] - 1:
        raise ValueError(f"n = {n}: Triton's linear layouts need a power of two")
    order = [name for name in (*_leads(layout), *layout.plane) if name] if layout.kind == "fragment" else list(places.coordinates)
    bases, warp = places.bases(*order), layout.lane_bits
    return {"register": bases[value], "lane": bases[thread][:warp], "warp": bases[thread][warp:]}


def _places(layout: Layout, n: int | None) -> tuple[DigitMap, str, str]:
    """The map from the thread and the number of what it holds to a place, and the names of these two axes."""
    if layout.kind == "address":
        raise ValueError(f"{layout.name} places no elements: it says which thread gives the address of which row; ask Operand.coords")
    if layout.kind == "fragment":
        return _of_columns(layout, n), "lane", "i"
    if n is not None:
        raise ValueError(f"{layout.name} has no columns of N: leave n out")
    places = layout.map.inverse().to_digits()
    return places, "lane", next(name for name in places.axes if name != "lane")


def _of_columns(layout: Layout, n: int | None) -> DigitMap:
    """The map of a fragment, of one that serves every N with ``n`` columns."""
    places = layout.map.to_digits().drop(COPY)
    most = step = places.coordinates[layout.plane[1]]
    if layout.growing:
        step = layout.grows_by
        if n is None:
            raise ValueError(f"{layout.name} serves every N: pass n, or ask the operand of an instruction, which knows its own")
    columns = most if n is None else integer("n", n)
    if not 0 < columns <= most or columns % step:
        allowed = f"{step} columns" if step == most else f"a multiple of {step} columns, {most} at most"
        raise ValueError(f"n = {columns}: {layout.name} has {allowed}")
    return places.restrict(i=places.axes["i"] * columns // most)


def _counted(layout: Layout, places: DigitMap) -> list[str]:
    """The axes in the order in which CuTe counts: along K last, so that B is (N, K), and several matrices one after the other."""
    if layout.kind != "fragment":
        return list(places.coordinates)
    row, col = layout.plane
    return [name for name in ((col, row) if layout.summed == row else (row, col)) + tuple(_leads(layout)) if name]


def _leads(layout: Layout) -> list[str]:
    """The axes that tell the matrices of a fragment apart."""
    return [axis for axis in layout.axes if axis not in (*layout.plane, COPY)]
