"""Matrices of types narrower than a byte with several elements in each byte, and back to one in each."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.model import ElementType


def pack_bytes(matrix: Any, element: ElementType | str, *, database: DatabaseLike = None) -> Any:
    """A matrix (..., C) of a type narrower than a byte, one element in each byte, as ``uint8`` (..., C * bits / 8): low bits first.

    That is how C and CUDA hold such matrices.  With two e2m1 in a byte it is what ``torch.float4_e2m1fn_x2`` holds: ``.view`` the
    tensor as that.

    Args:
        matrix: the elements in the type's dtype, or their codes as ``uint8``; an array, or a torch tensor on the CPU.
        element: a type of 1, 2, 4 or 8 bits, by its name in PTX: ``"e2m1"``.
        database: the database with the type; the packaged one by default.

    Raises:
        ValueError: an unknown type or one that does not fill bytes, another dtype, an empty array, or columns that do not fill bytes.
    """
    kind = _filling(element, database)
    codes = elements.codes(matrix, kind)
    each = 8 // kind.bits
    if not codes.ndim or not codes.size or codes.shape[-1] % each:
        raise ValueError(
            f"the matrix has shape {codes.shape}; the last size must be a multiple of {each}, the {kind.name} in a byte, 1 or more"
        )
    return elements.like(elements.joined(codes, kind.bits), matrix)


def unpack_bytes(packed: Any, element: ElementType | str, *, database: DatabaseLike = None) -> Any:
    """The matrix (..., C) of the type's dtype that bytes (..., C * bits / 8) hold: the inverse of :func:`pack_bytes`.

    Args:
        packed: ``uint8``, or a tensor of ``torch.float4_e2m1fn_x2``, for which the result is ``uint8`` codes: torch has no other dtype
            for them.
        element: as for :func:`pack_bytes`.
        database: as for :func:`pack_bytes`.

    Raises:
        ValueError: an unknown type or one that does not fill bytes, no bytes, or an empty array.
    """
    kind = _filling(element, database)
    if elements.is_tensor(packed) and str(packed.dtype).endswith(f"{elements.dtype(kind).name}_x2"):
        packed = packed.view(sys.modules["torch"].uint8)
    array = elements.as_array(packed, "packed")
    if array.dtype != np.uint8 or not array.ndim or not array.size:
        raise ValueError(f"packed must be uint8 (..., bytes), at least one; this is {array.dtype} of shape {array.shape}")
    return elements.like(elements.typed(elements.split(array, kind.bits), kind), packed)


def _filling(element: ElementType | str, database: DatabaseLike) -> ElementType:
    """A type of which several, or one, fill a byte."""
    known = {entry.name: entry for entry in catalog(database).database.spec.types.elements if 8 % entry.bits == 0}
    name = element.name if isinstance(element, ElementType) else element
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{name!r} is not an element type that fills bytes; those that do: {', '.join(known)}")
    return known[name]
