"""Arrays of other libraries as NumPy arrays: DLPack, also of the types that NumPy does not import (bf16 and FP8).

The structures come from DLPack's ``dlpack.h``, with and without a version.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

#: The host's memory, as `__dlpack_device__` gives it.
_HOST = (1, 0)
#: The kinds of numbers by their code, as the name of a dtype without its bits.
_KINDS = {0: "int", 1: "uint", 2: "float", 6: "bool"}
#: The types that have a code of their own.
_NARROW = {
    (4, 16): "bfloat16", (7, 8): "float8_e3m4", (8, 8): "float8_e4m3", (9, 8): "float8_e4m3b11fnuz", (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu", (6, 8): "bool",
}  # fmt: skip


class Tensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def copied(value: Any, what: str) -> npt.NDArray[Any]:
    """A copy of an array that offers ``__dlpack__``, in the host's memory.

    Raises:
        ValueError: an array on a device that its library does not copy, or of a type that no dtype holds one element of.
    """
    capsule = _capsule(value, what)
    tensor = tensor_of(capsule)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if (tensor.device_type, tensor.device_id) != _HOST:
        raise ValueError(_elsewhere(value, what))
    name = _NARROW.get((tensor.code, tensor.bits)) or (f"{_KINDS.get(tensor.code)}{tensor.bits}" if tensor.bits >= 8 else "")
    try:
        dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    except TypeError:
        dtype = None
    if not name or dtype is None or tensor.lanes != 1:
        raise ValueError(
            f"{what} has a DLPack type that no dtype holds: code {tensor.code}, {tensor.bits} bits, {tensor.lanes} in each element"
        )
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = [tensor.strides[axis] for axis in range(tensor.ndim)] if tensor.strides else None
    return _read(tensor.data + tensor.byte_offset, shape, strides, dtype)


def _read(address: int, shape: tuple[int, ...], strides: list[int] | None, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A copy of what lies at an address; strides count elements, without any the array has no gaps."""
    plain, size = np.dtype(f"u{dtype.itemsize}"), dtype.itemsize
    steps = np.cumprod([1, *shape[:0:-1]])[::-1].tolist() if strides is None else strides
    offsets = [step * (extent - 1) for step, extent in zip(steps, shape, strict=True)]
    first, last = sum(min(0, offset) for offset in offsets), sum(max(0, offset) for offset in offsets)
    memory = (ctypes.c_char * ((last - first + 1) * size)).from_address(address + first * size)
    view: npt.NDArray[Any] = np.ndarray(shape, plain, memory, -first * size, [step * size for step in steps])
    result: npt.NDArray[Any] = view.copy().view(dtype)
    return result


def _capsule(value: Any, what: str) -> Any:
    """The capsule of an array in the host's memory, which its library copies there if need be."""
    on_host = tuple(map(int, value.__dlpack_device__())) == _HOST if hasattr(value, "__dlpack_device__") else True
    try:
        return value.__dlpack__(max_version=(1, 0), dl_device=_HOST)
    except (TypeError, BufferError, NotImplementedError):
        if not on_host:
            raise ValueError(_elsewhere(value, what)) from None
        return value.__dlpack__()  # a library that knows neither versions nor copies


def _elsewhere(value: Any, what: str) -> str:
    return f"{what} is a {type(value).__name__} that is not in the host's memory, and its library does not copy it; copy it first"


def tensor_of(capsule: Any) -> Tensor:
    """The tensor in a capsule.  The capsule stays the owner of the memory."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    address = api.PyCapsule_GetPointer(capsule, name)
    tensor: Tensor = _Versioned.from_address(address).tensor if name == b"dltensor_versioned" else Tensor.from_address(address)
    return tensor
