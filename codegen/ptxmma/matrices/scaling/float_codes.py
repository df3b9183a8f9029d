"""The codes of narrow floating-point numbers, looked up: to nearest even and saturated, and back."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ptxmma.arrays import elements as types
from ptxmma.arrays.elements import Array
from ptxmma.model import ElementType


class Float(NamedTuple):
    """A type for computing: its dtype, the dtype of its bits, and the widths of its fields."""

    dtype: np.dtype[Any]
    bits: np.dtype[Any]
    exponent: int
    mantissa: int

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def bias(self) -> int:
        """The number that is added to an exponent to store it."""
        return (1 << self.exponent - 1) - 1


FLOAT32 = Float(np.dtype(np.float32), np.dtype(np.uint32), 8, 23)
FLOAT64 = Float(np.dtype(np.float64), np.dtype(np.uint64), 11, 52)


@functools.cache
def _encoder(element: ElementType, work: Float) -> tuple[int, Array]:
    """``(shift, table)``: the code of a number is ``table[bits >> shift]``, once the bits that fall off are ORed into the last.

    Two bits below the mantissa tell how to round: whether the rest is at least a half, and whether it is more than just that.  The table
    holds the code nearest to one number of each kind, of two the even one.
    """
    shift = work.mantissa - (element.mantissa + 2)
    count = 1 << 1 + work.exponent + element.mantissa + 2
    sample = (np.arange(count, dtype=work.bits) << work.bits.type(shift)).view(work.dtype)
    top = element.largest
    with np.errstate(invalid="ignore"):
        table = types.nearest(np.clip(np.nan_to_num(sample, nan=top, posinf=top, neginf=-top), -top, top), element)
    table.flags.writeable = False
    return shift, table


def encode(values: Array, element: ElementType, work: Float) -> Array:
    """The codes of finite numbers, rounded to nearest even and saturated; ``values`` are overwritten."""
    shift, table = _encoder(element, work)
    bits = values.view(work.bits)
    rest = work.bits.type((1 << shift) - 1)
    sticky = bits & rest
    sticky += rest  # reaches the last bit that counts unless all below it are 0
    bits |= sticky
    bits >>= work.bits.type(shift)
    return table.take(bits.view(f"i{bits.itemsize}"))  # NumPy before 2.1 takes no places of 64 unsigned bits


@functools.cache
def decoder(element: ElementType) -> Array:
    """The number of every code as float32."""
    every = np.arange(1 << element.bits, dtype=types.bits_dtype(element))
    table = types.numbers(every, element).astype(np.float32)
    table.flags.writeable = False
    return table
