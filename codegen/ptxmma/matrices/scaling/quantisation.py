"""Matrices as narrow elements with a scale factor for each block, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements as types
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import cropped, not_empty, whole
from ptxmma.catalog.instructions import DatabaseLike
from ptxmma.matrices.scaling.float_codes import FLOAT32, FLOAT64, Float, decoder, encode
from ptxmma.matrices.scaling.scale_formats import Format, format_of
from ptxmma.model import ElementType

#: The types that a matrix may hold: the narrow ones are computed in float32, float64 in itself.
_INPUTS = tuple(map(np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)))
#: Elements that are processed at once, so that intermediate results stay in the cache.
_SLAB = 1 << 16


class Quantised(NamedTuple):
    """A block-scaled matrix.

    Attributes:
        elements: the elements in their type's dtype, in the shape of the matrix (padded where that was asked for).
        scales: the scale factors in their type's dtype; the same shape, but one for each block along the blocks' axis.
            ``instruction.scales("a").pack`` takes the factors of A so, ``instruction.scales("b").pack`` the factors of B; of a product of
            ``tcgen05.mma`` ``instruction.operand("scale-A-tmem").pack`` and :func:`to_tensor_memory` do.
    """

    elements: Any
    scales: Any


# --- there ------------------------------------------------------------------------------------------------------------------


def quantise(
    matrix: Any,
    format: Format | str,
    *,
    axis: int | None = None,
    tensor_scale: float | None = None,
    pad: bool = False,
    saturate: bool = False,
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
        saturate: whether blocks that are too large get the largest factor, so that their numbers beyond the largest element times that
            factor become that product.
        database: whose formats a name means.

    Returns:
        Elements and scale factors, tensors where the matrix was one.  A type that torch does not have comes as ``uint8`` bits.

    Raises:
        TypeError: an axis that is not an integer.
        ValueError: a NaN or an infinity (the message names the first), another dtype, an empty matrix, an axis out of range, a size that
            is not a multiple of the block, a tensor scale that is not a positive number, without one, a block of small numbers whose
            factor would be zero, or, without ``saturate``, a block of large numbers whose factor its type does not reach.
    """
    form = format_of(format, axis, database)
    array = _checked_input(matrix)
    place = _checked_axis(array, form)
    array = whole(array, _steps(array, place, form)[place:], "the matrix", pad)
    divisor = None if tensor_scale is None else _checked_scale(tensor_scale)
    work = FLOAT64 if array.dtype == np.float64 else FLOAT32

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
        if divisor is None and form.scale.mantissa and _vanishing(peaks, form, work).any():
            raise ValueError(_lost(array, place, form, work))
        if not saturate and _beyond(peaks, form, work).any():
            raise ValueError(_too_large(array, place, form, work, divisor))
        by = decoder(form.scale).take(factors[part]).astype(work.dtype, copy=False)
        by[by == 0] = np.inf  # a factor that was rounded to zero leaves zeros, each with its sign
        values /= by[:, :, None]
        codes[part] = encode(values, form.element, work)

    scales = factors.reshape(*array.shape[:place], -1, *array.shape[place + 1 :])
    return Quantised(_returned(codes.reshape(array.shape), form.element, matrix), _returned(scales, form.scale, matrix))


def _factors(peaks: Array, form: Format, work: Float) -> Array:
    """The codes of the scale factors of blocks whose largest magnitudes have these bits."""
    if form.scale.mantissa:
        return encode(peaks.view(work.dtype) / work.dtype.type(form.element.largest), form.scale, work)
    codes: Array = np.clip(_exponents(peaks, form, work), 0, form.scale.largest_code)
    return codes


def _exponents(peaks: Array, form: Format, work: Float) -> Array:
    """The codes of scale factors without a mantissa, as if they had no bounds."""
    exponents = (peaks >> work.bits.type(work.mantissa)).astype(np.int32)  # of subnormal numbers 0: still less than the smallest factor
    codes: Array = exponents + (form.scale.bias - work.bias - form.element.emax)
    return codes


def _vanishing(peaks: Array, form: Format, work: Float) -> Array:
    """Return which blocks, not all zeros, would have a factor of zero."""
    return np.asarray((peaks != 0) & (_factors(peaks, form, work) == 0))


def _beyond(peaks: Array, form: Format, work: Float) -> Array:
    """Return which blocks would have a factor that rounds to more than the largest of its type."""
    if form.scale.mantissa:
        return np.asarray(peaks.view(work.dtype) / work.dtype.type(form.element.largest) > work.dtype.type(form.scale.rounds_to_largest))
    return np.asarray(_exponents(peaks, form, work) > form.scale.largest_code)


def tensor_scale(matrix: Any, format: Format | str, *, database: DatabaseLike = None) -> np.float32:
    """The scale of a whole matrix with which its largest block uses the largest scale factor: NVFP4's second level.

    It is the largest magnitude over the largest element and the largest scale factor, 1 for a matrix of zeros.  ``format`` and
    ``database`` are as for :func:`quantise`.

    Raises:
        ValueError: a NaN or an infinity (the first is named), another dtype, an empty matrix, numbers so large that their scale is beyond
            float32, or a format whose factors are powers of two: they reach all of float32 without a second level.
    """
    form = format_of(format, None, database)
    if not form.scale.mantissa:
        raise ValueError(f"{form} takes no tensor scale: factors of {form.scale.name} reach all of float32 by themselves")
    array = _checked_input(matrix)
    not_empty(array, "the matrix")
    with np.errstate(invalid="ignore"):
        peak = max(abs(float(array.max())), abs(float(array.min())))
    if not math.isfinite(peak):
        raise ValueError(_not_finite(array, None))
    scale, floats = peak / form.element.largest / form.scale.largest, np.finfo(np.float32)
    if scale > float(floats.max):
        raise ValueError(f"the matrix reaches {peak}: its tensor scale, {scale}, is beyond float32; divide the matrix first")
    result: np.float32 = np.float32(max(scale, float(floats.smallest_normal)) if peak else 1)
    return result


def _lost(array: Array, place: int, form: Format, work: Float) -> str:
    """The message for a matrix with blocks whose factors would be rounded to zero."""
    index, peak, others = _first(array, place, form, work, None, _vanishing)
    return (
        f"{index} would be 0: its block reaches {peak}, too little for {form.scale.name}, and {others}; divide the whole matrix first, with"
        f" tensor_scale=tensor_scale(matrix, format)"
    )


def _too_large(array: Array, place: int, form: Format, work: Float, divisor: np.float32 | None) -> str:
    """The message for a matrix with blocks whose factors would be above the largest."""
    index, peak, others = _first(array, place, form, work, divisor, _beyond)
    reached = f"reaches {peak}" if divisor is None else f"divided by tensor_scale = {divisor} reaches {peak}"
    scaled = "divide the whole matrix first, with tensor_scale=tensor_scale(matrix, format)" if form.scale.mantissa else "divide it first"
    return (
        f"{index} would be above {form.scale.largest}, the largest {form.scale.name}: its block {reached}, more than"
        f" {form.element.largest * form.scale.largest}, and {others}; {scaled}, or pass saturate=True"
    )


def _first(
    array: Array,
    place: int,
    form: Format,
    work: Float,
    divisor: np.float32 | None,
    wrong: Callable[[Array, Format, Float], Array],
) -> tuple[str, float, str]:
    """The first block with a wrong factor: the factor's place and the block's largest magnitude; and how many there are, in words."""
    peaks = np.abs(_in_blocks(array, place, form.block)).max(axis=2).astype(work.dtype)
    peaks = peaks.reshape(*array.shape[:place], -1, *array.shape[place + 1 :])
    with np.errstate(all="ignore"):  # there may be a NaN further on
        if divisor is not None:
            peaks /= work.dtype.type(divisor)
        marked = wrong(peaks.view(work.bits), form, work)
    index = tuple(map(int, np.unravel_index(int(marked.argmax()), marked.shape)))
    count = int(marked.sum())
    return f"scales[{', '.join(map(str, index))}]", float(peaks[index]), f"{count} {'block is' if count == 1 else 'blocks are'} like that"


def _not_finite(array: Array, divisor: np.float32 | None) -> str:
    """The message for a matrix with a NaN or an infinity, which may come from a tensor scale that is too small."""
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
    """The float32 matrix of elements and scale factors: each element times its block's factor.

    Exact but for what lies beyond float32 (infinite) and for the tensor scale, by which the products are multiplied, rounded once.
    Where a scale factor is NaN, all of its block are (OCP MX v1.0, section 6.3).

    Args:
        elements: the elements in their type's dtype or as its bits, in any number of dimensions.
        scales: the scale factors in their type's dtype or as its bits; as many along ``axis`` as there are blocks.
        format: a name or a :class:`Format`, as for :func:`quantise`.
        axis: along which the elements of a block lie; by default the format's own.
        tensor_scale: the one that the matrix was divided by.
        shape: the matrix's own, where it was padded: all of it, or the last two sizes.
        database: whose formats a name means.

    Raises:
        TypeError: an axis that is not an integer.
        ValueError: another dtype, bits beyond the types' widths, shapes that do not fit, or a tensor scale that is not a positive number.
    """
    form = format_of(format, axis, database)
    codes = types.codes(elements, form.element, "elements")
    factors = types.codes(scales, form.scale, "scales")
    place = _checked_axis(codes, form)
    wanted = (*codes.shape[:place], codes.shape[place] // form.block, *codes.shape[place + 1 :])
    if codes.shape[place] % form.block or factors.shape != wanted:
        raise ValueError(
            f"elements of shape {codes.shape} and scales of shape {factors.shape} do not fit: "
            f"along axis {form.axis} each {form.block} elements share one scale"
        )
    multiplier = None if tensor_scale is None else _checked_scale(tensor_scale)

    blocks = _in_blocks(codes, place, form.block)
    factors = factors.reshape(blocks.shape[:2] + blocks.shape[3:])
    result = np.empty(blocks.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _slabs(blocks.shape):
            values = decoder(form.element).take(blocks[part])
            values *= decoder(form.scale).take(factors[part])[:, :, None]
            if multiplier is not None:
                values *= multiplier
            result[part] = values
    return types.like(
        cropped(result.reshape(codes.shape), shape, _steps(codes, place, form)[min(place, codes.ndim - 2) :], "elements"), elements
    )


# --- arguments and parts ----------------------------------------------------------------------------------------------------


def _checked_input(matrix: Any) -> Array:
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
    """The numbers of which the sizes of a matrix must be multiples."""
    return [form.block if axis == place else 1 for axis in range(array.ndim)]


def _checked_scale(value: float) -> np.float32:
    """A scale of a whole matrix: a positive number that float32 holds."""
    try:
        with np.errstate(over="ignore"):
            scale: np.float32 = np.float32(math.fsum([value]))  # takes any real number, but no text
    except (TypeError, ValueError, OverflowError):
        scale = np.float32(np.nan)
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"tensor_scale = {value!r}; it must be a positive number that float32 holds")
    return scale


def _in_blocks(array: Array, place: int, size: int) -> Array:
    """An array as (all before the axis, blocks, elements of a block, all after the axis); a view wherever strides allow it."""
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
