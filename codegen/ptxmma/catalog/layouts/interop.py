"""Our layouts in the notations of CuTe and Triton, and CuTe's texts read back.

CuTe writes a layout as ``shape:stride``: :func:`to_cute`, :func:`from_cute`.  Triton writes what each bit of the register, the lane
and the warp adds to the coordinates: :func:`to_triton`.  Both say just what the layout's bit map says.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ptxmma.arguments import integer
from ptxmma.catalog.layouts.cute_layout import CuteLayout, Modes, Swizzle
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


# --- the text that CuTe prints and the types in its headers ----------------------------------------------------------------

_BLANKS = re.compile(r"(?:\s|cute::)*")
_INTEGER = re.compile(r"(?:Int|C)\s*<\s*([0-9]{1,18})\s*>|_?([0-9]{1,18})\b")  # no index of 64 bits is longer
_OPENING = re.compile(r"\(|(?:Shape|Stride|tuple)\s*<")
_LAYOUT = re.compile(r"Layout\s*<")
_SWIZZLE = re.compile(r"(?:Swizzle|Sw|S)\s*<\s*_?([0-9]{1,2})\s*,\s*_?([0-9]{1,2})\s*,\s*_?(-?[0-9]{1,2})\s*>")
_POINTER = re.compile(r"smem_ptr\s*\[\s*([0-9]{1,9})b\s*\]\s*\(\s*unset\s*\)")
_DEPTH = 32  # CuTe's own layouts nest three or four deep


def from_cute(text: str) -> CuteLayout:
    """Parses a layout as CuTe prints it or as its headers spell its type.

    ``((4,8),(2,2)):((32,1),(16,8))``; integers also as ``_8``, ``Int<8>`` or ``C<8>``, and tuples as ``Shape<…>``, ``Stride<…>`` or
    ``tuple<…>``; ``Layout<Shape<…>,Stride<…>>``; all with or without ``cute::``.  A swizzled layout is ``Sw<3,4,3> o 0 o (8,64):(64,1)``.
    With ``smem_ptr[16b](unset)`` for the offset, the swizzle applies to byte addresses and the strides count elements of 16 bits.  It is
    converted to a swizzle of element indices, ``Sw<3,3,3>``.

    A text describes the layout of an operand if ``from_cute(text) == from_cute(operand.to_cute())``.

    Raises:
        TypeError: ``text`` is not a string.
        ValueError: the text is not a layout; the message names the column, from 1, and what is expected there, or what is wrong with the
            layout.
    """
    reader = _Reader(text)
    swizzle, offset = reader.composition()
    shape, stride = reader.layout()
    reader.end()
    return CuteLayout(shape, stride, swizzle, offset)


class _Reader:
    """Reads a text of CuTe from left to right."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"CuTe's text must be a string, not {type(text).__name__}")
        self.text = text
        self.at = 0

    def composition(self) -> tuple[Swizzle | None, int]:
        """``Sw<3,4,3> o 0 o``, if it is there."""
        swizzle, offset = self.swizzle(), 0
        if swizzle is None:
            return None, 0
        self._take("o", '"o" after the swizzle')
        if pointer := self._take(_POINTER):
            swizzle = _of_elements(swizzle, int(pointer[1]))
        else:
            offset = self._integer("an offset or smem_ptr[16b](unset)")
        self._take("o", '"o" after the offset')
        return swizzle if swizzle.bits else None, offset

    def swizzle(self) -> Swizzle | None:
        """``Sw<3,4,3>``, if it is there."""
        match = self._take(_SWIZZLE)
        return Swizzle(*map(int, match.groups())) if match else None

    def layout(self) -> tuple[Modes, Modes]:
        """Shape and stride."""
        typed = self._take(_LAYOUT)
        shape = self._modes()
        separator = "," if typed else ":"
        self._take(separator, f'"{separator}" and the strides')
        stride = self._modes()
        if typed:
            self._take(">", '">" after the strides')
        return shape, stride

    def end(self) -> None:
        self._take(re.compile(r"\Z"), "the end of the text")

    def _modes(self, depth: int = 0) -> Modes:
        """Integers, nested in tuples."""
        if depth > _DEPTH:
            self._fail(f"no more than {_DEPTH} parentheses within each other")
        opening = self._take(_OPENING)
        if not opening:
            return self._integer('an integer of at most 18 digits or "("')
        closing = ")" if opening[0] == "(" else ">"
        modes = [self._modes(depth + 1)]
        while not self._take(closing):
            self._take(",", f'"," or "{closing}"')
            if closing == ")" and self._take(closing):  # Python writes a tuple of one as (8,)
                break
            modes.append(self._modes(depth + 1))
        return tuple(modes)

    def _integer(self, expected: str) -> int:
        match = self._take(_INTEGER, expected)
        assert match
        return int(match[1] or match[2])

    def _take(self, token: str | re.Pattern[str], expected: str = "") -> re.Match[str] | None:
        """Takes ``token`` if it comes next; with ``expected``, which names it in the error, it must."""
        blanks = _BLANKS.match(self.text, self.at)
        assert blanks
        self.at = blanks.end()
        match = re.compile(re.escape(token) if isinstance(token, str) else token).match(self.text, self.at)
        if match:
            self.at = match.end()
        elif expected:
            self._fail(expected)
        return match

    def _fail(self, expected: str) -> NoReturn:
        remaining = self.text[self.at :]
        ahead = repr(remaining[:12]) if remaining else "the end of the text"
        raise ValueError(f"column {self.at + 1}: expected {expected}, not {ahead}")


def _of_elements(swizzle: Swizzle, bits: int) -> Swizzle:
    """Converts a swizzle of byte addresses to one of indices of elements of ``bits`` bits."""
    power = bits.bit_length() - 1
    if bits < 1 or bits & bits - 1 or swizzle.base + 3 < power:
        raise ValueError(f"smem_ptr[{bits}b]: {swizzle} does not keep elements of {bits} bits whole")
    return Swizzle(swizzle.bits, swizzle.base + 3 - power, swizzle.shift)
