"""Reads the operands of a product that callers give as matrices: of whole matrices, or of one product in tensor memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import row_major
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices.product_operands import ADDEND, AS_MATRICES, METADATA, A, B, Part, product_operands, scale_blocks, scales_of
from ptxmma.matrices.products.matrices import check_batches
from ptxmma.model import ElementType

#: The parameter of each part.
_NAMES = {part: name for name, part in AS_MATRICES.items()}


def read(instruction: Instruction, given: Mapping[Part, Any], addend: str) -> dict[Part, Array]:
    """The matrices of a product of any M, N and K: bits, of the addend numbers; metadata as it is.

    Args:
        instruction: the instruction that multiplies.
        given: the stored elements of A (..., M, K) and B (..., K, N), the addend (..., M, N), the row-major metadata of a sparse A, and the
            scale factors of A (..., M, blocks) and B (..., blocks, N); None for what is left out.
        addend: the caller's name of the addend.

    Raises:
        ValueError: shapes or batches that do not fit together, or another dtype.
    """
    product, k = product_operands(instruction), instruction.extents["k"]
    matrices = {part: elements.codes(given[part], product.multiplicand(part).element, _NAMES[part]) for part in (A, B)}
    for part, codes in matrices.items():
        if codes.ndim < 2 or not codes.size:
            raise ValueError(f"{_NAMES[part]} has shape {codes.shape}; it has rows and columns, at least one of each")
    reached = matrices[A].shape[-1]
    if given[METADATA] is not None:
        matrices[METADATA] = row_major(given[METADATA])
        reached = reached * k // product.a.depth
    rows, depth, columns = matrices[A].shape[-2], matrices[B].shape[-2], matrices[B].shape[-1]
    if reached != depth:
        raise ValueError(f"a reaches over K = {reached}, b over K = {depth}: b is (..., K, N)")
    for part, shape in ((A, (rows, depth)), (B, (depth, columns))):
        if given[scales_of(part)] is None:
            continue
        name, (element, blocks) = _NAMES[scales_of(part)], scale_blocks(instruction, part)
        block = k // blocks
        count = -(-depth // block)
        wanted = (rows, count) if part == A else (count, columns)
        factors = elements.codes(given[scales_of(part)], element, name)
        if factors.shape[-2:] != wanted:
            raise ValueError(f"{name} has shape {factors.shape}; {_NAMES[part]} of shape {shape} has blocks of {block}, which are {wanted}")
        matrices[scales_of(part)] = factors
    check_batches({_NAMES[part]: matrix for part, matrix in matrices.items()})
    batch = np.broadcast_shapes(matrices[A].shape[:-2], matrices[B].shape[:-2])
    return matrices | {ADDEND: _numbers(product.addend_type, given[ADDEND], addend, (*batch, rows, columns))}


def _numbers(element: ElementType, given: Any, name: str, shape: tuple[int, ...]) -> Array:
    """The numbers of the addend of a product of that shape; zeros by default."""
    if given is None:
        return np.zeros(shape, np.float64 if element.form == "float" else np.int64)
    addend = elements.numbers(elements.codes(given, element, name), element)
    if addend.shape[-2:] != shape[-2:]:
        raise ValueError(f"{name} has shape {addend.shape}; the product has {shape}")
    check_batches({name: addend, "the product": np.broadcast_to(0, shape)})
    return addend
