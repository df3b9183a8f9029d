"""Block scaling: a matrix to narrow elements with a scale factor for each block, and back.

A block is a run of neighbouring elements along K that share one scale factor; an element stands for its own number times that
factor.  How the factor of a block is chosen follows from its type:

* without a mantissa (ue8m0) it is the largest power of two in the block's magnitudes over the largest power of two among the
  elements' numbers, as the OCP Microscaling Formats v1.0, section 6.3, say;
* with one (ue4m3) it is the largest magnitude over the largest number of the elements, rounded to nearest even.

Both are held within the range of their type.  Elements are the numbers over the factor, rounded to nearest even and saturated:
they are never NaN or infinite.  A block of zeros gets the smallest factor.

Types with a mantissa have a small range: the factors of ue4m3 reach from 2**-9 to 448.  With them the whole matrix is divided by a
:func:`tensor_scale` first.  Without one, a block whose factor would be rounded to zero, so that its numbers were lost, is an error.

>>> import numpy as np
>>> quantised = quantise(np.full((1, 32), 6.5, np.float32), "mxfp4")
>>> float(quantised.elements[0, 0]), float(quantised.scales[0, 0])
(6.0, 1.0)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements as types
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import cropped, not_empty, whole
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import DatabaseLike, Instruction, catalog
from ptxmma.model import ElementType

#: What a matrix may hold: two types are computed in float32, float64 in itself.
_INPUTS = tuple(map(np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)))
#: Elements that are worked on at once: what is computed of them stays in the cache.
_SLAB = 1 << 16


class Format(msgspec.Struct, frozen=True):
    """Elements and scale factors of a block-scaled matrix.

    Attributes:
        element: type of the elements.
        scale: type of the scale factors.
        block: neighbouring elements that share a scale factor.
        axis: along which they are neighbours: -1 for A (m x k), -2 for B (k x n).
    """

    element: ElementType
    scale: ElementType
    block: int
    axis: int = -1

    def __repr__(self) -> str:
        return f"<Format {self.element.name}, {self.scale.name} for each {self.block} along axis {self.axis}>"


class Quantised(NamedTuple):
    """A block-scaled matrix.

    Attributes:
        elements: of the element type's dtype, in the shape of the matrix (padded where that was asked for).
        scales: of the scale type's dtype; the same shape, but one for each block along the blocks' axis.  Those of A are as
            ``instruction.scales("a").pack`` takes them, those of B as ``instruction.scales("b").pack`` does.
    """

    elements: Any
    scales: Any


# --- formats ----------------------------------------------------------------------------------------------------------------


def formats(*, database: DatabaseLike = None) -> dict[str, Format]:
    """The formats that have a name: ``"mxfp8_e4m3"``, ``"mxfp4"``, ``"nvfp4"`` … (OCP MX v1.0, table 1; PTX ISA 9.7.14.3)."""
    spec = catalog(database).database.spec
    return {
        entry.name: Format(layouts.element_type(spec, entry.element), layouts.element_type(spec, entry.scale), entry.block)
        for entry in spec.block_formats
    }


def custom(element_type: str, scale_type: str, block: int, *, axis: int = -1, database: DatabaseLike = None) -> Format:
    """A format without a name, e.g. ``custom("e2m1", "ue8m0", 16)``.

    Raises:
        TypeError: a block or an axis that is no integer.
        ValueError: a type that no named format has for its elements or scale factors, or a block of no elements.
    """
    known = formats(database=database).values()
    element = _one_of("element type", element_type, {entry.element.name: entry.element for entry in known})
    scale = _one_of("scale type", scale_type, {entry.scale.name: entry.scale for entry in known})
    size = integer("block", block)
    if size < 1:
        raise ValueError(f"block = {size}: a block has 1 element or more")
    return Format(element, scale, size, integer("axis", axis))


def of(instruction: Instruction, operand: str = "a") -> Format:
    """The format in which a block-scaled instruction reads ``"a"`` or ``"b"``: K / scale factors elements share one.

    For a sparse A the blocks count along the full K, zeros included: quantise first, then compress the elements (PTX ISA 9.7.14.3).

    Raises:
        ValueError: the instruction has no scale factors for that operand.
    """
    held = instruction.scales(operand)
    element = instruction.operand(operand).element
    assert element is not None
    assert instruction.shape is not None
    return Format(element, held.element, instruction.shape[2] // held.blocks, -1 if operand == "a" else -2)


def _one_of(what: str, name: str, known: dict[str, Any]) -> Any:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(known)}")
    return known[name]


def _format(given: Format | str, axis: int | None, database: DatabaseLike) -> Format:
    found: Format = given if isinstance(given, Format) else _one_of("format", given, formats(database=database))
    return found if axis is None else msgspec.structs.replace(found, axis=axis)


# --- codes ------------------------------------------------------------------------------------------------------------------


class _Float(NamedTuple):
    """The type that is computed in: its dtype, that of its bits, and the widths of its fields."""

    dtype: np.dtype[Any]
    bits: np.dtype[Any]
    exponent: int
    mantissa: int

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1


_FLOAT32 = _Float(np.dtype(np.float32), np.dtype(np.uint32), 8, 23)
_FLOAT64 = _Float(np.dtype(np.float64), np.dtype(np.uint64), 11, 52)


@functools.cache
def _encoder(element: ElementType, work: _Float) -> tuple[int, Array]:
    """``(shift, table)``: the code of a number is ``table[bits >> shift]``, once the bits that fall off are ORed into the last.

    Two bits below the mantissa tell how to round: whether the rest is at least a half, and whether it is more than just that.  The table
    holds what the cast of ``ml_dtypes`` makes of one number of each kind: it rounds to nearest even.
    """
    shift = work.mantissa - (element.mantissa + 2)
    count = 1 << 1 + work.exponent + element.mantissa + 2
    sample = (np.arange(count, dtype=work.bits) << work.bits.type(shift)).view(work.dtype)
    top = element.largest
    with np.errstate(invalid="ignore"):
        rounded = np.clip(np.nan_to_num(sample, nan=top, posinf=top, neginf=-top), -top, top).astype(types.dtype(element))
    table: Array = rounded.view(types.bits_dtype(element))
    table.flags.writeable = False
    return shift, table


def _encode(values: Array, element: ElementType, work: _Float) -> Array:
    """The codes of finite numbers, rounded to nearest even and saturated; ``values`` are overwritten."""
    shift, table = _encoder(element, work)
    bits = values.view(work.bits)
    rest = work.bits.type((1 << shift) - 1)
    sticky = bits & rest
    sticky += rest  # reaches the last bit that counts unless all below it are 0
    bits |= sticky
    bits >>= work.bits.type(shift)
    return table.take(bits)


@functools.cache
def _decoder(element: ElementType) -> Array:
    """The number of every code as float32."""
    every = np.arange(1 << element.bits, dtype=types.bits_dtype(element))
    table = types.typed(every, element).astype(np.float32)
    table.flags.writeable = False
    return table


# --- there ------------------------------------------------------------------------------------------------------------------


def quantise(
    matrix: Any,
    format: Format | str,
    *,
    axis: int | None = None,
    tensor_scale: float | None = None,
    pad: bool = False,
    database: DatabaseLike = None,
) -> Quantised:
    """A matrix as narrow elements and one scale factor for each block.

    Args:
        matrix: float16, bfloat16, float32 or float64, of any number of dimensions; an array, or a torch tensor on the CPU.
        format: the name of one of the :func:`formats`, or a :class:`Format`, as :func:`of` and :func:`custom` give them.
        axis: along which the elements of a block lie; by default the format's own: the last, for B of an instruction (k x n) the one
            before it.
        tensor_scale: one float32 by which all is divided first, as NVFP4 has it; see :func:`tensor_scale`.  With one, blocks that are too
            small beside the largest become zeros.
        pad: whether to append zeros where the matrix ends within a block.
        database: whose formats a name means.

    Returns:
        Elements and scale factors, tensors where the matrix was one.  A type that torch does not have comes as ``uint8`` bits.

    Raises:
        TypeError: an axis that is no integer.
        ValueError: a NaN or an infinity (the first is named), another dtype, an empty matrix, no such axis, a size that is no multiple of
            the block, a tensor scale that is no positive number, or without one a block that is not zero and whose factor would be.
    """
    form = _format(format, axis, database)
    array = _input(matrix)
    place = _checked_axis(array, form)
    array = whole(array, _steps(array, place, form)[place:], "the matrix", pad)
    divisor = None if tensor_scale is None else _checked_scale(tensor_scale)
    work = _FLOAT64 if array.dtype == np.float64 else _FLOAT32

    blocks = _in_blocks(array, place, form.block)
    codes = np.empty(blocks.shape, types.bits_dtype(form.element))
    factors = np.empty(blocks.shape[:2] + blocks.shape[3:], types.bits_dtype(form.scale))
    for part in _slabs(blocks.shape):
        values = blocks[part].astype(work.dtype, order="C")
        if divisor is not None:
            with np.errstate(over="ignore"):
                values /= work.dtype.type(divisor)
        peaks = (values.view(work.bits) & work.bits.type((1 << work.exponent + work.mantissa) - 1)).max(axis=2)
        if int(peaks.max()) >= work.infinity:
            raise ValueError(_not_finite(array, divisor))
        factors[part] = _factors(peaks, form, work)
        if divisor is None and form.scale.mantissa and ((factors[part] == 0) & (peaks != 0)).any():
            raise ValueError(_lost(array, place, form, work))
        by = _decoder(form.scale).take(factors[part]).astype(work.dtype, copy=False)
        by[by == 0] = np.inf  # a factor that was rounded to zero leaves zeros, each with its sign
        values /= by[:, :, None]
        codes[part] = _encode(values, form.element, work)

    scales = factors.reshape(*array.shape[:place], -1, *array.shape[place + 1 :])
    return Quantised(_returned(codes.reshape(array.shape), form.element, matrix), _returned(scales, form.scale, matrix))


def _factors(peaks: Array, form: Format, work: _Float) -> Array:
    """The codes of the scale factors of blocks whose largest magnitudes have these bits."""
    if form.scale.mantissa:
        return _encode(peaks.view(work.dtype) / work.dtype.type(form.element.largest), form.scale, work)
    exponents = (peaks >> work.bits.type(work.mantissa)).astype(np.int32)  # of subnormal numbers 0: still less than the smallest factor
    codes: Array = np.clip(exponents + (form.scale.bias - work.bias - form.element.emax), 0, form.scale.largest_code)
    return codes


def tensor_scale(matrix: Any, format: Format | str, *, database: DatabaseLike = None) -> np.float32:
    """The scale of a whole matrix with which its largest block uses the largest scale factor: NVFP4's second level.

    It is the largest magnitude over the largest element and the largest scale factor, 1 for a matrix of zeros.  ``format`` and
    ``database`` are as for :func:`quantise`.

    Raises:
        ValueError: a NaN or an infinity (the first is named), another dtype, an empty matrix, numbers so large that their scale is beyond
            float32, or a format whose factors are powers of two: they reach all of float32 without a second level.
    """
    form = _format(format, None, database)
    if not form.scale.mantissa:
        raise ValueError(f"{form} takes no tensor scale: factors of {form.scale.name} reach all of float32 by themselves")
    array = _input(matrix)
    not_empty(array, "the matrix")
    with np.errstate(invalid="ignore"):
        peak = max(abs(float(array.max())), abs(float(array.min())))
    if not math.isfinite(peak):
        raise ValueError(_not_finite(array, None))
    scale, floats = peak / form.element.largest / form.scale.largest, np.finfo(np.float32)
    if scale > float(floats.max):
        raise ValueError(f"the matrix reaches {peak}: its tensor scale, {scale}, is beyond float32; divide the matrix first")
    found: np.float32 = np.float32(max(scale, float(floats.smallest_normal)) if peak else 1)
    return found


def _lost(array: Array, place: int, form: Format, work: _Float) -> str:
    """What to say of a matrix with blocks whose factors would be rounded to zero: which is the first, and how many there are."""
    peaks = np.abs(_in_blocks(array, place, form.block)).max(axis=2).astype(work.dtype)
    peaks = peaks.reshape(*array.shape[:place], -1, *array.shape[place + 1 :])
    with np.errstate(invalid="ignore"):  # a NaN further on has not been found yet
        lost = (peaks != 0) & (_factors(peaks.view(work.bits), form, work) == 0)
    index = tuple(map(int, np.unravel_index(int(lost.argmax()), lost.shape)))
    count = int(lost.sum())
    return (
        f"scales[{', '.join(map(str, index))}] would be 0: its block reaches {float(peaks[index])}, too little for {form.scale.name}, and"
        f" {count} {'block is' if count == 1 else 'blocks are'} like that; divide the whole matrix first, with"
        f" tensor_scale=tensor_scale(matrix, format)"
    )


def _not_finite(array: Array, divisor: np.float32 | None) -> str:
    """What to say of a matrix with a NaN or an infinity; it may have come from a tensor scale that is too small."""
    finite = np.isfinite(array)
    if finite.all():
        return f"tensor_scale = {divisor} is too small: the matrix divided by it is beyond float32"
    index = tuple(map(int, np.unravel_index(int(finite.argmin()), array.shape)))
    where = f"element {index[0]}" if array.ndim == 1 else f"row {index[-2]}, column {index[-1]}"
    where += f" of matrix {', '.join(map(str, index[:-2]))}" if array.ndim > 2 else ""
    return f"the matrix holds {float(array[index])} at {where}: scale factors follow from magnitudes, so all must be finite numbers"


# --- and back ---------------------------------------------------------------------------------------------------------------


def dequantise(
    elements: Any,
    scales: Any,
    format: Format | str,
    *,
    axis: int | None = None,
    tensor_scale: float | None = None,
    shape: Sequence[int] | None = None,
    database: DatabaseLike = None,
) -> Any:
    """The float32 matrix that elements and scale factors stand for: each element times its block's factor.

    Exact but for what lies beyond float32 (infinite) and for the tensor scale, by which the products are multiplied, rounded once.
    Where a scale factor is NaN, all of its block are (OCP MX v1.0, section 6.3).

    Args:
        elements: of the element type's dtype or its bits, in any number of dimensions.
        scales: of the scale type's dtype or its bits; as many along ``axis`` as there are blocks.
        format: a name or a :class:`Format`, as for :func:`quantise`.
        axis: along which the elements of a block lie; by default the format's own.
        tensor_scale: the one that the matrix was divided by.
        shape: the matrix's own, where it was padded: all of it, or the last two sizes.
        database: whose formats a name means.

    Raises:
        TypeError: an axis that is no integer.
        ValueError: another dtype, bits beyond the types' widths, shapes that do not fit, or a tensor scale that is no positive number.
    """
    form = _format(format, axis, database)
    codes = types.codes(elements, form.element, "elements")
    factors = types.codes(scales, form.scale, "scales")
    width = form.scale.exponent + form.scale.mantissa
    place = _checked_axis(codes, form)
    wanted = (*codes.shape[:place], codes.shape[place] // form.block, *codes.shape[place + 1 :])
    if codes.shape[place] % form.block or factors.shape != wanted:
        raise ValueError(
            f"elements of shape {codes.shape} and scales of shape {factors.shape} do not fit: "
            f"along axis {form.axis} each {form.block} elements share one scale"
        )
    if not form.scale.sign and int(factors.max()) >> width:
        raise ValueError(f"scales hold {int(factors.max()):#x}: {form.scale.name} has no sign, so its codes are 0..{(1 << width) - 1:#x}")
    multiplier = None if tensor_scale is None else _checked_scale(tensor_scale)

    blocks = _in_blocks(codes, place, form.block)
    factors = factors.reshape(blocks.shape[:2] + blocks.shape[3:])
    result = np.empty(blocks.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _slabs(blocks.shape):
            values = _decoder(form.element).take(blocks[part])
            values *= _decoder(form.scale).take(factors[part])[:, :, None]
            if multiplier is not None:
                values *= multiplier
            result[part] = values
    return types.like(
        cropped(result.reshape(codes.shape), shape, _steps(codes, place, form)[min(place, codes.ndim - 2) :], "elements"), elements
    )


# --- arrays -----------------------------------------------------------------------------------------------------------------


def _input(matrix: Any) -> Array:
    """A matrix of numbers that can be quantised."""
    array = types.as_array(matrix)
    if array.dtype not in _INPUTS:
        raise ValueError(f"the matrix has dtype {array.dtype}; it must be {', '.join(map(str, _INPUTS))}")
    return array


def _checked_axis(array: Array, form: Format) -> int:
    """The axis of the blocks, counted from the first."""
    axis = integer("axis", form.axis)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis = {axis} is out of range: the matrix has shape {array.shape}")
    not_empty(array, "the matrix")
    return axis % array.ndim


def _steps(array: Array, place: int, form: Format) -> list[int]:
    """Of which the sizes of a matrix must be multiples."""
    return [form.block if axis == place else 1 for axis in range(array.ndim)]


def _checked_scale(value: float) -> np.float32:
    try:
        with np.errstate(over="ignore"):
            scale: np.float32 = np.float32(math.fsum([value]))  # of any real number, but of no text
    except (TypeError, ValueError, OverflowError):
        scale = np.float32(np.nan)
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"tensor_scale = {value!r}; it must be a positive number that float32 holds")
    return scale


def _in_blocks(array: Array, place: int, size: int) -> Array:
    """An array as (all before the axis, blocks, elements of a block, all behind the axis); a view wherever strides allow it."""
    return array.reshape(math.prod(array.shape[:place]), -1, size, math.prod(array.shape[place + 1 :]))


def _slabs(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Whole blocks of an array, as many as are worked on at once, in order."""
    outer, blocks, size, inner = shape
    most = max(_SLAB // (size * inner), 1)
    rows, run = max(most // blocks, 1), min(most, blocks)
    for row in range(0, outer, rows):
        for first in range(0, blocks, run):
            yield slice(row, row + rows), slice(first, first + run)


def _returned(codes: Array, element: ElementType, given: Any) -> Any:
    """Codes in the kind and dtype that the caller gets."""
    typed = types.typed(codes, element)
    if types.is_tensor(given):
        import torch  # here already: the caller has a tensor

        return types.like(typed if hasattr(torch, typed.dtype.name) else codes, given)
    return typed
