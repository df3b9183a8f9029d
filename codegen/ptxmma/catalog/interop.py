"""Our layouts in the notations of CuTe and Triton, and CuTe's texts read back.

CuTe writes a layout as ``shape:stride``: :func:`to_cute`, :func:`from_cute`.  Triton writes what each bit of the register, the lane
and the warp adds to the coordinates: :func:`to_triton`.  Both say just what the layout's bit map says.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import force_setattr

from ptxmma.arguments import in_range, integer
from ptxmma.model import COPY, Layout
from ptxmma.model.bitmap import BitMap

#: Sizes or strides as CuTe nests them: ``((4, 8), 2)``.
Modes: TypeAlias = "int | tuple[Modes, ...]"
#: What each bit of ``register``, ``lane`` and ``warp`` adds to the coordinates, lowest bit first.
Bases = dict[str, list[list[int]]]

_INDEX_BITS = 63  # what an index of an array holds
_MOST_PLACES = 1 << 26  # about a second
_PART = 1 << 16  # places looked at together: they stay in the cache


# --- our layouts ------------------------------------------------------------------------------------------------------------


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
        n: columns of the matrix, which a layout of many N must be told; :meth:`ptxmma.Operand.to_cute` knows its own.

    Raises:
        TypeError: ``n`` is no integer.
        ValueError: the layout is one of addresses, has no ``n`` columns, or has many N and ``n`` is left out.
    """
    view = _view(layout, n)
    strides = dict(zip(view.extents, itertools.accumulate([1, *view.extents.values()], int.__mul__), strict=False)) | {"": 0}
    modes = [_coalesced((mode.size, strides[mode.dimension] * mode.weight) for mode in part) for part in (view.threads, view.values)]
    shape, stride = zip(*map(_nested, modes), strict=True)
    return str(CuteLayout(shape, stride))


def to_triton(layout: Layout, n: int | None = None) -> Bases:
    """Triton's bases of a layout: ``{"register": [[row, col], …], "lane": [[row, col], …], "warp": [[row, col], …]}``.

    The coordinates of an element are the XOR of the bases of all bits that are set.  ``register`` counts elements, not 32-bit
    registers; ``lane`` has the five bits of a thread's number in its warp, ``warp`` what is above them: two bits for a warpgroup,
    none for a warp.  A is (M, K), B is (K, N), C and D are (M, N); a sparse A is the packed matrix of K/2 columns.  Several matrices, and
    the independent products of ``m8n8k4`` with f16, are a dimension in front.  What leads to copies of an element adds nothing: its basis
    is 0.  Metadata and scale factors have the dimensions of :func:`to_cute`.

    Args:
        layout: any layout but that of addresses.
        n: columns of the matrix, which a layout of many N must be told; :meth:`ptxmma.Operand.to_triton` knows its own.

    Raises:
        TypeError: ``n`` is no integer.
        ValueError: the layout is one of addresses, has no ``n`` columns, or has many N and ``n`` is left out, or ``n`` is no power of
            two: linear layouts have no other sizes.
    """
    view = _view(layout, n)
    order = [*_leads(view.extents), "row", "col"] if layout.kind == "fragment" else list(view.extents)

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
    held = next(name for name in back.inputs if name != "lane")
    return _View({name: 1 << width for name, width in back.outputs.items()}, _modes(back, "lane"), _modes(back, held))


def _fragment(layout: Layout, n: int | None) -> _View:
    sizes = {name: 1 << width for name, width in layout.map.outputs.items()}
    values = _modes(layout.map, "i")
    most = step = sizes["col"]
    if layout.growing:  # the highest bits of i repeat the first columns up to N
        while values and values[-1] == (2, "col", step // 2):
            step = values.pop().weight
        if n is None:
            raise ValueError(f"{layout.name} serves every N: pass n, or ask the operand of an instruction, which knows its own")
    columns = most if n is None else integer("n", n)
    if not 0 < columns <= most or columns % step:
        allowed = f"{step} columns" if step == most else f"a multiple of {step} columns, {most} at most"
        raise ValueError(f"n = {columns}: {layout.name} has {allowed}")
    sizes["col"] = columns
    matrix = ("col", "row") if "b" in layout.operands else ("row", "col")  # CuTe's B is (N, K)
    extents = {name: sizes[name] for name in (*matrix, *_leads(sizes))}
    return _View(extents, _modes(layout.map, "lane"), [*values, _Mode(columns // step, "col", step)])


def _modes(held: BitMap, name: str) -> list[_Mode]:
    """The bits of one input as modes."""
    return [_Mode(2, "" if output == COPY else output, 1 << bit) for output, bit in held.bits[name]]


def _leads(axes: Iterable[str]) -> list[str]:
    """The axes that tell the matrices of a fragment apart."""
    return [axis for axis in axes if axis not in ("row", "col", COPY)]


# --- CuTe's layouts ---------------------------------------------------------------------------------------------------------


class Swizzle(msgspec.Struct, frozen=True):
    """CuTe's ``Swizzle<B,M,S>``: XORs ``bits`` bits of an index from bit ``base`` on with those ``shift`` above (below, if negative).

    Raises:
        TypeError: anything but integers.
        ValueError: ``bits`` or ``base`` below 0, a ``shift`` of fewer than ``bits`` places, with which the two would overlap, or more
            bits than an index has.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            force_setattr(self, name, integer(name, getattr(self, name)))
        if min(self.bits, self.base) < 0 or abs(self.shift) < self.bits:
            raise ValueError(f"{self}: B and M must not be negative, and S must be B places or more")
        if self.bits + self.base + abs(self.shift) > _INDEX_BITS:
            raise ValueError(f"{self}: it reaches beyond the {_INDEX_BITS} bits of an index")

    def __call__(self, index: Any) -> Any:
        """The swizzled index; an integer or an array."""
        ones = (1 << self.bits) - 1
        if self.shift < 0:
            return index ^ ((index >> self.base & ones) << self.base - self.shift)
        return index ^ ((index >> self.base + self.shift & ones) << self.base)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


class CuteLayout(msgspec.Struct, frozen=True, eq=False):
    """A layout in CuTe's sense: a function from coordinates to an index, ``swizzle(offset + coordinates · stride)``.

    ``str()`` gives CuTe's text.  Two layouts are equal where they have equally many top-level modes and give the same index for the
    same coordinates, however those modes are split: ``(4,2):(1,4)`` is another function than ``8:1``, but
    ``((4,2),3):((1,4),8)`` equals ``(8,3):(1,8)``.  Layouts with different swizzles are compared place by place, which raises a
    ``ValueError`` beyond 2**26 places.

    Attributes:
        shape: sizes, 1 or more, nested in tuples: ``((4, 8), (2, 2))``.
        stride: as many strides, 0 or more, nested alike.
        swizzle: applied to the index; None where there is none.
        offset: added before the swizzle.

    Raises:
        TypeError: sizes or strides that are neither integers nor tuples of them; an offset that is no integer.
        ValueError: strides that are nested otherwise than the shape, numbers out of range, or indices of more than 63 bits.
    """

    shape: Modes
    stride: Modes
    swizzle: Swizzle | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "shape", _plain("a size", self.shape))
        force_setattr(self, "stride", _plain("a stride", self.stride))
        force_setattr(self, "offset", integer("offset", self.offset))
        if not _congruent(self.shape, self.stride):
            raise ValueError(f"the strides {_text(self.stride)} do not fit the shape {_text(self.shape)}")
        flat = list(_flat(self.shape, self.stride))
        if min(size for size, _ in flat) < 1 or min(self.offset, *(stride for _, stride in flat)) < 0:
            raise ValueError(f"{self}: sizes must be 1 or more, strides and offsets 0 or more")
        if self._largest() >> _INDEX_BITS:
            raise ValueError(f"{self}: its largest index, {self._largest()}, has more than {_INDEX_BITS} bits")

    def __call__(self, *coordinates: Any) -> Any:
        """The index at a place.

        Args:
            coordinates: one for each top-level mode, or a single one that counts through all modes, the first one fastest.  Each
                is an integer, an array of integers (which is not checked, and must be wide enough for the index), or a tuple of them
                that is nested as the mode is.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: a coordinate out of range, or too few or too many of them.
        """
        place = coordinates[0] if len(coordinates) == 1 and self.rank != 1 else coordinates
        shape, stride = (self.shape, self.stride) if isinstance(self.shape, tuple) else ((self.shape,), (self.stride,))
        index = _index(place, shape, stride) + self.offset
        return self.swizzle(index) if self.swizzle else index

    @property
    def rank(self) -> int:
        """How many top-level modes it has."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def size(self) -> int:
        """How many places it has."""
        return _size(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CuteLayout):
            return NotImplemented
        if self._sizes() != other._sizes():
            return False
        if self.swizzle == other.swizzle:  # a swizzle never gives two indices one place
            return self.offset == other.offset and self._coalesced() == other._coalesced()
        return all(np.array_equal(self._at(places), other._at(places)) for places in self._places())

    def __hash__(self) -> int:
        return hash(tuple(self._sizes()))

    def _largest(self) -> int:
        """The largest index before the swizzle."""
        return self.offset + sum((size - 1) * stride for size, stride in _flat(self.shape, self.stride))

    def _places(self) -> Iterator[npt.NDArray[np.int64]]:
        """The numbers of all places, part by part."""
        if self.size > _MOST_PLACES:
            raise ValueError(f"{self} has {self.size} places: too many to look at each; swizzled layouts may have {_MOST_PLACES} here")
        return (np.arange(first, min(first + _PART, self.size)) for first in range(0, self.size, _PART))

    def _at(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The indices at places that are counted through all modes."""
        index = np.full(places.shape, self.offset)
        for size, stride in _coalesced(_flat(self.shape, self.stride)):
            index += places % size * stride
            places = places // size
        return self.swizzle(index) if self.swizzle else index

    def _sizes(self) -> list[int]:
        """The size of each top-level mode."""
        return [_size(mode) for mode in (self.shape if isinstance(self.shape, tuple) else (self.shape,))]

    def _coalesced(self) -> list[list[tuple[int, int]]]:
        """Each top-level mode in the fewest modes: the same for all ways to split it."""
        if isinstance(self.shape, tuple) and isinstance(self.stride, tuple):
            return [_coalesced(_flat(shape, stride)) for shape, stride in zip(self.shape, self.stride, strict=True)]
        return [_coalesced(_flat(self.shape, self.stride))]

    def __str__(self) -> str:
        text = f"{_text(self.shape)}:{_text(self.stride)}"
        return f"{self.swizzle or Swizzle(0, 0, 0)} o {self.offset} o {text}" if self.swizzle or self.offset else text


def _plain(what: str, modes: Modes) -> Modes:
    """Integers of any kind, nested in tuples, as ``int``."""
    return (
        tuple(_plain(what, mode) for mode in modes) if isinstance(modes, tuple) else integer(what, modes, "an integer or a tuple of them")
    )


def _congruent(shape: Modes, stride: Modes) -> bool:
    """Whether both are nested alike, without empty tuples."""
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        return len(shape) == len(stride) > 0 and all(map(_congruent, shape, stride))
    return isinstance(shape, int) and isinstance(stride, int)


def _flat(shape: Modes, stride: Modes) -> Iterator[tuple[int, int]]:
    """Sizes with their strides, without nesting."""
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        for modes in zip(shape, stride, strict=True):
            yield from _flat(*modes)
    elif isinstance(shape, int) and isinstance(stride, int):
        yield shape, stride


def _nested(flat: Sequence[tuple[int, int]]) -> tuple[Modes, Modes]:
    """Sizes and strides apart; a single mode stands without parentheses."""
    if len(flat) == 1:
        return flat[0]
    return tuple(size for size, _ in flat), tuple(stride for _, stride in flat)


def _coalesced(flat: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same function in the fewest modes, which are unique."""
    modes: list[tuple[int, int]] = []
    for size, stride in flat:
        if modes and stride == modes[-1][0] * modes[-1][1] and size > 1:
            modes[-1] = (modes[-1][0] * size, modes[-1][1])
        elif size > 1:
            modes.append((size, stride))
    return modes or [(1, 0)]


def _size(shape: Modes) -> int:
    return math.prod(_size(mode) for mode in shape) if isinstance(shape, tuple) else shape


def _index(place: Any, shape: Modes, stride: Modes) -> Any:
    if not isinstance(shape, tuple) or not isinstance(stride, tuple):
        if isinstance(place, tuple):
            raise ValueError(f"coordinates {place} do not fit the mode {shape}: it takes one number")
        return in_range("coordinate", place, _size(shape)) * stride
    if isinstance(place, tuple):
        if len(place) != len(shape):
            raise ValueError(f"coordinates {place} do not fit the modes {_text(shape)}: they take {len(shape)}, or one number for all")
        return sum(_index(*each) for each in zip(place, shape, stride, strict=True))
    place = in_range("coordinate", place, _size(shape))
    index = 0
    for mode, step in zip(shape, stride, strict=True):
        index = index + _index(place % _size(mode), mode, step)
        place = place // _size(mode)
    return index


def _text(modes: Modes) -> str:
    return f"({','.join(map(_text, modes))})" if isinstance(modes, tuple) else str(modes)


# --- CuTe's texts -----------------------------------------------------------------------------------------------------------


def from_cute(text: str) -> CuteLayout:
    """Reads what CuTe prints, or the type that its headers write.

    ``((4,8),(2,2)):((32,1),(16,8))``; integers also as ``_8``, ``Int<8>`` or ``C<8>``, and tuples as ``Shape<…>``, ``Stride<…>`` or
    ``tuple<…>``; ``Layout<Shape<…>,Stride<…>>``; all with or without ``cute::``.  A swizzled layout is ``Sw<3,4,3> o 0 o (8,64):(64,1)``.
    With ``smem_ptr[16b](unset)`` for the offset, the swizzle is one of byte addresses and the strides count elements of 16 bits: it
    becomes the swizzle of their indices, ``Sw<3,3,3>``.

    A text describes one of our operands where ``from_cute(text) == from_cute(operand.to_cute())``.

    Raises:
        TypeError: no string.
        ValueError: anything else; the message names the column, from 1, and what was expected there, or what is wrong with the layout.
    """
    reader = _Reader(text)
    swizzle, offset = reader.composition()
    shape, stride = reader.layout()
    reader.end()
    return CuteLayout(shape, stride, swizzle, offset)


_BLANKS = re.compile(r"(?:\s|cute::)*")
_INTEGER = re.compile(r"(?:Int|C)\s*<\s*([0-9]{1,18})\s*>|_?([0-9]{1,18})\b")  # no index of 64 bits is longer
_OPENING = re.compile(r"\(|(?:Shape|Stride|tuple)\s*<")
_LAYOUT = re.compile(r"Layout\s*<")
_SWIZZLE = re.compile(r"(?:Swizzle|Sw|S)\s*<\s*_?([0-9]{1,2})\s*,\s*_?([0-9]{1,2})\s*,\s*_?(-?[0-9]{1,2})\s*>")
_POINTER = re.compile(r"smem_ptr\s*\[\s*([0-9]{1,9})b\s*\]\s*\(\s*unset\s*\)")
_DEPTH = 32  # CuTe's own layouts nest three or four deep


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
        found = self._take(_SWIZZLE)
        return Swizzle(*map(int, found.groups())) if found else None

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

    def _integer(self, wanted: str) -> int:
        found = self._take(_INTEGER, wanted)
        assert found
        return int(found[1] or found[2])

    def _take(self, token: str | re.Pattern[str], wanted: str = "") -> re.Match[str] | None:
        """What is next, if it is this; what is ``wanted`` must be there."""
        blanks = _BLANKS.match(self.text, self.at)
        assert blanks
        self.at = blanks.end()
        found = re.compile(re.escape(token) if isinstance(token, str) else token).match(self.text, self.at)
        if found:
            self.at = found.end()
        elif wanted:
            self._fail(wanted)
        return found

    def _fail(self, wanted: str) -> NoReturn:
        rest = self.text[self.at :]
        found = repr(rest[:12]) if rest else "the end of the text"
        raise ValueError(f"column {self.at + 1}: expected {wanted}, not {found}")


def _of_elements(swizzle: Swizzle, bits: int) -> Swizzle:
    """A swizzle of byte addresses as one of elements of so many bits."""
    power = bits.bit_length() - 1
    if bits < 1 or bits & bits - 1 or swizzle.base + 3 < power:
        raise ValueError(f"smem_ptr[{bits}b]: {swizzle} does not keep elements of {bits} bits whole")
    return Swizzle(swizzle.bits, swizzle.base + 3 - power, swizzle.shift)
