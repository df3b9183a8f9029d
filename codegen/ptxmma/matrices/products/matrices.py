"""The matrices of a product: as callers give them, and as they are multiplied.

Multiplied are a sparse A in full, and elements negated and with their scale factors.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import row_major
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices import sparse
from ptxmma.matrices.product_operands import (
    ADDEND,
    AS_MATRICES,
    METADATA,
    A,
    B,
    Part,
    ProductOperands,
    product_operands,
    scale_blocks,
    scales_of,
)
from ptxmma.matrices.products.arithmetic import Factors, Products
from ptxmma.model import ElementType, Semantics

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
        name, (element, blocks) = _NAMES[scales_of(part)], scale_blocks(instruction, part.of)
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


class Matrices(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The matrices of D = A times B plus C.

    Attributes:
        instruction: the instruction that multiplies.
        bits: the elements of A and B as bits, (..., m, k) and (..., k, n), with zeros for the elements that a sparse A drops.
        kept: the elements of A that are stored, bool (..., m, k).
        addend: the numbers of C, (..., m, n).
        scales: the bits of the scale factor of each element of A and B, where they are scaled.
        negated: the multiplicands that are negated.
    """

    instruction: Instruction
    bits: dict[Part, Array]
    kept: Array
    addend: Array
    scales: dict[Part, Array]
    negated: frozenset[Part]

    @classmethod
    def of(cls, instruction: Instruction, given: Mapping[Part, Array], negated: frozenset[Part] = frozenset()) -> Matrices:
        """The matrices of an instruction, or of several along K.

        Args:
            instruction: the instruction that multiplies.
            given: the bits of the stored elements of A and B; the numbers of the addend; the metadata of a sparse A, row-major; the bits of
                the scale factors, one for each block, of which the last may be cut short.
            negated: the multiplicands that are negated.

        Raises:
            ValueError: metadata that is illegal, or that does not fit A.
        """
        cut = functools.partial(_without_ignored, statements=instruction.semantics())
        a, b = cut(given[A]), cut(given[B])
        a, kept = _expanded(instruction, a, given.get(METADATA))
        bits = {A: a, B: b}
        scales = {}
        for part, axis in ((A, -1), (B, -2)):
            if (factors := given.get(scales_of(part))) is not None:
                _, blocks = scale_blocks(instruction, part.of)
                each = np.repeat(factors, instruction.extents["k"] // blocks, axis=axis)
                scales[part] = each[..., : a.shape[-1]] if part == A else each[..., : b.shape[-2], :]
        return cls(instruction, bits, kept, given[ADDEND], scales, negated)

    @functools.cached_property
    def operands(self) -> ProductOperands:
        """The operands of the product."""
        return product_operands(self.instruction)

    def factors(self, part: Part) -> Factors:
        """A or B as numbers: negated, and times the scale factors."""
        factors = Factors.of(self.bits[part], self.operands.multiplicand(part).element, int(self._sign(part)))
        if part not in self.scales:
            return factors
        return factors.times(Factors.of(self.scales[part], scale_blocks(self.instruction, part.of)[0]))

    def _sign(self, part: Part) -> float:
        """-1 for a multiplicand that is negated, else 1."""
        return -1.0 if part in self.negated else 1.0

    def terms(self) -> Products:
        """The terms of sums of floating-point numbers."""
        return Products(self.factors(A), self.kept, self.factors(B), self.addend, self.operands.addend_type)

    def integers(self, *, saturate: bool) -> tuple[Array, Array]:
        """The sums of integers or single bits, ``int64`` of numbers that D holds; and which of them may saturate on the way there."""
        a, b = (self._sign(part) * elements.numbers(self.bits[part], self.operands.multiplicand(part).element) for part in (A, B))
        products = a @ b  # exact: far below 2**53
        if any(statement.bitwise == "xor" for statement in self.instruction.semantics()[:1]):
            products = a.sum(-1, keepdims=True) + b.sum(-2, keepdims=True) - 2 * products
        total, held = products.astype(np.int64) + self.addend, elements.dtype(self.operands.result_type)
        if not saturate:
            return total.astype(held).astype(np.int64), np.zeros(total.shape, bool)
        limits = np.iinfo(held)
        passing = np.abs(self.addend) + np.abs(a) @ np.abs(b) > limits.max
        return np.clip(total, limits.min, limits.max), passing


def _without_ignored(bits: Array, statements: list[Semantics]) -> Array:
    """Elements with zeros in the low bits that the instruction ignores."""
    ignored = statements[0].truncates if statements else 0
    kept: Array = bits & ~bits.dtype.type((1 << ignored) - 1) if ignored else bits
    return kept


def _expanded(instruction: Instruction, stored: Array, metadata: Array | None) -> tuple[Array, Array]:
    """The bits of the full A (..., m, k), and which of its elements are stored."""
    if metadata is None:
        return stored, np.ones(stored.shape, bool)
    batch = np.broadcast_shapes(stored.shape[:-2], metadata.shape[:-2])
    values, rows = (np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (stored, metadata))
    kept: Array = sparse.decompress(np.ones((*metadata.shape[:-1], stored.shape[-1]), np.uint8), metadata, instruction).astype(bool)
    return np.asarray(sparse.decompress(values, rows, instruction)), kept


def check_batches(matrices: Mapping[str, Any]) -> None:
    """Check that the leading dimensions of matrices, by the names that an error shows, fit together.

    Raises:
        ValueError: they do not.
    """
    try:
        np.broadcast_shapes(*[matrix.shape[:-2] for matrix in matrices.values()])
    except ValueError:
        shapes = ", ".join(f"{name} {matrix.shape[:-2]}" for name, matrix in matrices.items())
        raise ValueError(f"the batches do not fit together: {shapes}") from None
