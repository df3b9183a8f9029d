"""Elements as arrays: the dtype of each type, its bits, its numbers, and torch tensors without a copy.

A matrix of some element type is an array of the type's own dtype (NumPy's, or ``ml_dtypes``'s for bf16, fp8, fp6, fp4 and the
4-bit integers), or an array of unsigned integers of the same size that hold the bits.  Types that have no dtype, ue5m3 and s1z4m11, are
always the bits.  Types narrower than a byte have one element
in each byte; :func:`ptxmma.pack_bytes` and :func:`ptxmma.unpack_bytes` convert to several in each, and back.  A torch tensor
serves as well: on the CPU its memory is used as it is, and from a device it is copied.  So are arrays that offer DLPack or
``__array_interface__``, such as the arrays of CuPy and JAX.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxmma.arrays import dlpack
from ptxmma.model import ElementType

#: An array of any dtype.
Array = npt.NDArray[Any]


@functools.cache
def dtype(element: ElementType) -> np.dtype[Any]:
    """The dtype that holds one element, e.g. ``float8_e4m3fn`` for e4m3."""
    return _named(element.numpy)


def _named(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def bits_dtype(element: ElementType) -> np.dtype[Any]:
    """The unsigned integer that holds the bits of one element, e.g. ``uint8`` for e4m3."""
    return np.dtype(f"u{dtype(element).itemsize}")


def is_tensor(value: object) -> bool:
    """Return whether ``value`` is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any, what: str = "the matrix") -> Array:
    """``value`` as a NumPy array; a tensor's dtype becomes the dtype of the same name.

    Arrays and tensors on the CPU are not copied, what is on a device or comes through DLPack is.

    Raises:
        ValueError: neither an array of numbers in this machine's byte order nor a tensor that is a plain array; an array with a mask,
            which nothing here would heed; an array on a device that its library does not copy.
    """
    if is_tensor(value):
        return _shared(value, what)
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__"):
            return dlpack.copied(value, what)
        if isinstance(value, np.generic) or not hasattr(value, "__array_interface__"):
            raise ValueError(f"{what} must be a NumPy array, a torch tensor or an array with __dlpack__, not {type(value).__name__}")
        value = np.asarray(value)
    if type(value) is not np.ndarray:
        if isinstance(value, np.ma.MaskedArray):
            raise ValueError(f"{what} is a masked array, whose mask would be lost; fill the masked places: .filled(0)")
        value = value.view(np.ndarray)  # without what a subclass such as numpy.matrix does in its own way
    array: Array = value
    if not array.dtype.isnative:
        raise ValueError(f"{what} has dtype {array.dtype}, of the other byte order; convert it with .astype({array.dtype.name!r})")
    if array.dtype.kind not in "biuf" and array.dtype.type.__module__ != ml_dtypes.__name__:
        raise ValueError(f"{what} has dtype {array.dtype}, which is not a number")
    return array


def _shared(tensor: Any, what: str) -> Array:
    """A tensor's memory as an array."""
    import torch  # here already: the caller has a tensor

    if tensor.device.type == "meta":
        raise ValueError(f"{what} is a tensor on the device meta, which has no elements")
    if tensor.layout != torch.strided:
        raise ValueError(f"{what} is a tensor of layout {tensor.layout}; convert it with .to_dense()")
    name = str(tensor.dtype).removeprefix("torch.")
    if name.endswith("_x2"):
        raise ValueError(f"{what} has dtype torch.{name}, two elements in a byte; ptxmma.unpack_bytes gives one in each")
    plain = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(tensor.dtype.itemsize)
    try:
        dtype = _named(name)
    except TypeError:
        plain = None
    if plain is None or tensor.dtype.is_complex:
        raise ValueError(f"{what} has dtype torch.{name}, which no array of numbers has")
    try:
        array: Array = tensor.detach().cpu().resolve_conj().resolve_neg().view(plain).numpy().view(dtype)
    except (NotImplementedError, RuntimeError, TypeError) as error:
        if type(tensor) is torch.Tensor:
            raise
        raise ValueError(
            f"{what} is a {type(tensor).__name__}, whose memory is not that of a matrix; pass a plain tensor, such as its .to_dense()"
        ) from error
    return array


def bits(value: Any, itemsize: int, what: str) -> Array:
    """An array of any dtype of that many bytes as unsigned integers; the same memory.

    Raises:
        ValueError: for the reasons of :func:`as_array`, or a dtype of another size.
    """
    array = as_array(value, what)
    if array.dtype.itemsize != itemsize:
        raise ValueError(
            f"{what} has dtype {array.dtype}; it takes {np.dtype(f'u{itemsize}')}, or any dtype of {itemsize} bytes, for its bits"
        )
    return array.view(f"u{itemsize}")


def like(result: Array, *given: Any) -> Any:
    """``result`` as what the caller gave: a tensor on the same memory if one of that was a tensor.

    Where torch does not have the dtype, or has no more than its name, as for the 4-bit integers, the tensor is one of the bits.
    """
    if not any(map(is_tensor, given)):
        return result
    import torch

    plain = torch.from_numpy(result.view(f"u{result.dtype.itemsize}"))
    dtype = None if result.dtype in _named_only() else getattr(torch, result.dtype.name, None)
    return plain if dtype is None else plain.view(dtype)


@functools.cache
def _named_only() -> list[np.dtype[Any]]:
    """Dtypes whose torch namesakes cannot compute: integers narrower than a byte."""
    return [np.dtype(getattr(ml_dtypes, name)) for name in ("int4", "uint4")]


def codes(value: Any, element: ElementType, what: str = "the matrix") -> Array:
    """The bits of every element as unsigned integers, narrow types in the low bits; the same memory, not a copy.

    Raises:
        ValueError: not an array, another dtype than the type's own or the unsigned integer of its size, or bits beyond its width,
            such as the sign of a scale factor.  For s8, s16 and s32, unsigned integers are refused: they are numbers, not bits.
            Signed integers narrower than a byte may also be ``int8``, and s1z4m11 ``int16`` (a copy then), if all are in the type's
            range.
    """
    array = as_array(value, what)
    own, plain = dtype(element), bits_dtype(element)
    if array.dtype == np.int8 and element.form == "signed" and element.bits < 8:
        return _narrowed(array, element, what)
    if array.dtype == np.int16 and element.form == "sign-magnitude":
        return _signed_magnitudes(array, element, what)
    if array.dtype == plain and own.kind == "i":
        raise ValueError(f"{what} has dtype {plain}, {element.name} takes {own}: .view({own.name!r}) says that these are its bits")
    if array.dtype not in (own, plain):
        other = "" if own == plain or own.kind == "i" else f", or {plain} for raw bits"
        raise ValueError(f"{what} has dtype {array.dtype}; {element.name} takes {own}{other}")
    array = array.view(plain)
    unsigned = element.form == "float" and not element.sign
    width = element.exponent + element.mantissa if unsigned else element.bits
    if width < 8 and array.size and int(array.max()) >> width:
        reason = "no sign" if unsigned else f"{width} bit{'s' * (width > 1)}"
        raise ValueError(f"{what} holds {int(array.max()):#x}: {element.name} has {reason}, so its codes are 0..{(1 << width) - 1:#x}")
    if element.form == "sign-magnitude":
        unused = plain.type((1 << element.bits - 1) - (1 << element.mantissa))
        if (array & unused).any():
            code = int(array[(array & unused) != 0].flat[0])
            raise ValueError(f"{what} holds {code:#06x}: the bits {unused:#06x} of {element.name} must be 0")
    return array


def _signed_magnitudes(array: Array, element: ElementType, what: str) -> Array:
    """Integers as a sign and a magnitude."""
    limit = (1 << element.mantissa) - 1
    if array.size and not -limit <= int(array.min()) <= int(array.max()) <= limit:
        raise ValueError(f"{what} reaches from {array.min()} to {array.max()}; {element.name} is {-limit}..{limit}")
    signs = (array < 0).astype(bits_dtype(element)) << bits_dtype(element).type(element.bits - 1)
    return np.asarray(signs | np.abs(array).view(bits_dtype(element)))


def _narrowed(array: Array, element: ElementType, what: str) -> Array:
    """Integers in bytes as the bits of a narrower signed type."""
    limit = 1 << element.bits - 1
    if array.size and not -limit <= int(array.min()) <= int(array.max()) < limit:
        raise ValueError(f"{what} reaches from {array.min()} to {array.max()}; {element.name} is {-limit}..{limit - 1}")
    kept: Array = array.view(np.uint8) & np.uint8(2 * limit - 1)
    return kept


def typed(bits: Array, element: ElementType) -> Array:
    """Unsigned integers that hold bits, as an array of the type's own dtype; the same memory."""
    return bits.view(dtype(element))


def numbers(bits: Array, element: ElementType) -> Array:
    """The numbers that bits encode: ``float64`` for floating point, ``int64`` for integers and single bits."""
    if element.form == "sign-magnitude":
        magnitudes = (bits & bits_dtype(element).type((1 << element.mantissa) - 1)).astype(np.int64)
        signed: Array = np.where(bits >> bits_dtype(element).type(element.bits - 1), -magnitudes, magnitudes)
        return signed
    if lacks_dtype(element):
        return _every_number(element).take(bits)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return typed(np.ascontiguousarray(bits), element).astype(np.float64 if element.form == "float" else np.int64)


def nearest(numbers: Array, element: ElementType) -> Array:
    """The codes of the floating-point numbers nearest to finite ones; of two that are as near, the even one."""
    if not lacks_dtype(element):
        return numbers.astype(dtype(element)).view(bits_dtype(element))
    every = _every_number(element)[: element.largest_code + 1]
    middles = (every[:-1] + every[1:]) / 2
    below, above = np.searchsorted(middles, numbers, "left"), np.searchsorted(middles, numbers, "right")
    return np.where(below % 2, above, below).astype(bits_dtype(element))


def lacks_dtype(element: ElementType) -> bool:
    """Return true for a floating-point type without a dtype of its own; such a type has no sign."""
    return element.form == "float" and dtype(element).kind == "u"


@functools.cache
def _every_number(element: ElementType) -> Array:
    """The number of each code of a floating-point type without sign and infinity."""
    exponents, fractions = np.divmod(np.arange(1 << element.bits), 1 << element.mantissa)
    significands = fractions * element.unit + (exponents > 0)
    table: Array = np.ldexp(significands, np.maximum(exponents, 1) - element.bias)
    table[element.largest_code + 1 :] = np.nan
    return table


def extended(array: Array, shape: tuple[int, ...], fill: int = 0) -> Array:
    """The array with elements of the bits ``fill`` after its own, up to ``shape``; itself where it has that shape."""
    if array.shape == shape:
        return array
    result = np.full(shape, fill, f"u{array.dtype.itemsize}").view(array.dtype)  # 0 as a number is a NaN of ue8m0, which has no zero
    result[tuple(map(slice, array.shape))] = array
    return result


def joined(codes: Array, bits: int) -> Array:
    """Codes of so many bits, narrow ones one in each byte, as contiguous full bytes along the last axis, low bits first."""
    if bits >= 8:
        return np.ascontiguousarray(codes)
    each = 8 // bits
    packed = codes[..., ::each]
    for place in range(1, each):
        packed = packed | codes[..., place::each] << np.uint8(place * bits)
    return np.ascontiguousarray(packed)


def grouped(codes: Array, bits: int, count: int, size: int) -> Array:
    """Codes of so many bits, one in each byte, as groups of ``size`` bytes with ``count`` of them, low bits first, and then zeros."""
    single = np.unpackbits(codes.astype(np.uint8)[..., np.newaxis], axis=-1, count=bits, bitorder="little")
    packed = np.packbits(single.reshape(*codes.shape[:-1], -1, count * bits), axis=-1, bitorder="little")
    groups = np.zeros((*packed.shape[:-1], size), np.uint8)
    groups[..., : packed.shape[-1]] = packed
    return groups.reshape(*codes.shape[:-1], -1)


def ungrouped(packed: Array, bits: int, count: int, size: int) -> Array:
    """The inverse of :func:`grouped`; what fills groups up is ignored."""
    groups = packed.reshape(*packed.shape[:-1], -1, size)[..., : -(-count * bits // 8)]
    single = np.unpackbits(groups, axis=-1, count=count * bits, bitorder="little")
    codes = np.packbits(single.reshape(*packed.shape[:-1], -1, bits), axis=-1, bitorder="little")
    return np.ascontiguousarray(codes[..., 0])


def split(packed: Array, bits: int) -> Array:
    """The inverse of :func:`joined`."""
    if bits >= 8:
        return packed
    each: Array = packed[..., np.newaxis] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return each.reshape(*packed.shape[:-1], -1)
