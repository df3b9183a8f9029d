"""Layouts in CuTe's sense: a shape and strides, nested alike, and a swizzle of the index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from ptxmma.arguments import in_range, integer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Sizes or strides as CuTe nests them: ``((4, 8), 2)``.
Modes: TypeAlias = "int | tuple[Modes, ...]"

_INDEX_BITS = 63  # what an index of an array holds
_MOST_PLACES = 1 << 26  # about a second
_PART = 1 << 16  # places looked at together: they stay in the cache


class Swizzle(msgspec.Struct, frozen=True):
    """CuTe's ``Swizzle<B,M,S>``: XORs ``bits`` bits of an index from bit ``base`` on with those ``shift`` above (below, if negative).

    Raises:
        TypeError: anything but integers.
        ValueError: ``bits`` or ``base`` below 0, a ``shift`` of fewer than ``bits`` places, so that the two ranges overlap, or bits
            beyond the errors of an index.
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
    same coordinates, however those modes are split: ``(4,2):(1,4)`` differs from ``8:1``, but
    ``((4,2),3):((1,4),8)`` equals ``(8,3):(1,8)``.  Layouts with different swizzles are compared place by place, which raises a
    ``ValueError`` for more than 2**26 places.

    Attributes:
        shape: sizes, 1 or more, nested in tuples: ``((4, 8), (2, 2))``.
        stride: strides, 0 or more, with the nesting of ``shape``.
        swizzle: applied to the index; None where there is none.
        offset: added before the swizzle.

    Raises:
        TypeError: sizes or strides that are neither integers nor tuples of them; an offset that is not an integer.
        ValueError: strides whose nesting differs from the shape's, numbers out of range, or indices of more than 63 bits.
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
                is an integer, an array of integers that are wide enough for the index, or a tuple of them that is nested as the
                mode is.

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
        """The number of its top-level modes."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def size(self) -> int:
        """The number of its places."""
        return _size(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CuteLayout):
            return NotImplemented
        if self._sizes() != other._sizes():
            return False
        if self.swizzle == other.swizzle:  # a swizzle never gives two indices one place
            return self.offset == other.offset and self._coalesced() == other._coalesced()
        import numpy as np  # only where places are compared

        return all(np.array_equal(self._at(places), other._at(places)) for places in self._places())

    def __hash__(self) -> int:
        return hash(tuple(self._sizes()))

    def _largest(self) -> int:
        """The largest index before the swizzle."""
        return self.offset + sum((size - 1) * stride for size, stride in _flat(self.shape, self.stride))

    def _places(self) -> Iterator[npt.NDArray[np.int64]]:
        """The numbers of all places, part by part."""
        if self.size > _MOST_PLACES:
            raise ValueError(f"{self} has {self.size} places; swizzled layouts are compared place by place, up to {_MOST_PLACES} places")
        import numpy as np

        return (np.arange(first, min(first + _PART, self.size)) for first in range(0, self.size, _PART))

    def _at(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The indices at places that are counted through all modes."""
        import numpy as np

        index = np.full(places.shape, self.offset)
        for size, stride in _coalesced(_flat(self.shape, self.stride)):
            index += places % size * stride
            places = places // size
        return self.swizzle(index) if self.swizzle else index

    def _sizes(self) -> list[int]:
        """The size of each top-level mode."""
        return [_size(mode) for mode in (self.shape if isinstance(self.shape, tuple) else (self.shape,))]

    def _coalesced(self) -> list[list[tuple[int, int]]]:
        """Each top-level mode in the fewest modes, which do not depend on how it was split."""
        if isinstance(self.shape, tuple) and isinstance(self.stride, tuple):
            return [_coalesced(_flat(shape, stride)) for shape, stride in zip(self.shape, self.stride, strict=True)]
        return [_coalesced(_flat(self.shape, self.stride))]

    def __str__(self) -> str:
        text = f"{_text(self.shape)}:{_text(self.stride)}"
        return f"{self.swizzle or Swizzle(0, 0, 0)} o {self.offset} o {text}" if self.swizzle or self.offset else text


def _plain(what: str, modes: Modes) -> Modes:
    """Converts integers of any kind, nested in tuples, to ``int``."""
    return (
        tuple(_plain(what, mode) for mode in modes) if isinstance(modes, tuple) else integer(what, modes, "an integer or a tuple of them")
    )


def _congruent(shape: Modes, stride: Modes) -> bool:
    """Return whether both are nested alike, without empty tuples."""
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
