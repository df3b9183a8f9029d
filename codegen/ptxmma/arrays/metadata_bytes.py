"""Row-major sparsity metadata: two fields of 4 bits in each byte, the first in the low bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxmma.arrays.elements import as_array, like

Bytes = npt.NDArray[np.uint8]

#: Bits of a field.
FIELD_BITS = 4
#: Fields in a byte.
FIELDS = 8 // FIELD_BITS


def fields(metadata: Any) -> Any:
    """The fields of row-major metadata: uint8 (..., R, chunks / 2) to uint8 (..., R, chunks) of 0..15."""
    return like(split(row_major(metadata)), metadata)


def from_fields(fields: Any) -> Any:
    """Row-major metadata of fields: integers 0..15, (..., R, chunks), to uint8 (..., R, chunks / 2).

    Raises:
        ValueError: no integers, a field out of range, or an odd number of chunks.
    """
    array = as_array(fields, "fields")
    if array.dtype.kind not in "iu" or array.ndim < 1 or not array.size:
        raise ValueError(f"fields are integers (..., rows, chunks), at least one; these are {array.dtype} of shape {array.shape}")
    if array.shape[-1] % FIELDS:
        raise ValueError(f"{array.shape[-1]} chunks do not fill whole bytes; a row must have a multiple of {FIELDS}")
    if int(array.min()) < 0 or int(array.max()) >> FIELD_BITS:
        raise ValueError(f"fields must be 0..{(1 << FIELD_BITS) - 1}; these are {array.min()}..{array.max()}")
    pairs = array.astype(np.uint8)
    return like(pairs[..., 0::2] | pairs[..., 1::2] << FIELD_BITS, fields)


def row_major(metadata: Any) -> Bytes:
    """Row-major metadata as an array.

    Raises:
        ValueError: no uint8 array (..., R, chunks / 2), or an empty one.
    """
    marks = as_array(metadata, "metadata")
    if marks.dtype != np.uint8 or marks.ndim < 2 or not marks.size:
        raise ValueError(
            f"row-major metadata is uint8 (..., rows, chunks / {FIELDS}), at least one; this is {marks.dtype} of shape {marks.shape}"
        )
    return marks


def split(marks: Bytes) -> Bytes:
    """The fields in bytes, side by side."""
    return np.stack([marks & (1 << FIELD_BITS) - 1, marks >> FIELD_BITS], axis=-1).reshape(*marks.shape[:-1], -1)
