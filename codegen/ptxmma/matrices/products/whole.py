"""Products of whole matrices as kernels compute them: one instruction after another along K."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.lookup import instruction as find
from ptxmma.matrices.product_operands import (
    ADDEND,
    AS_MATRICES,
    METADATA,
    A,
    B,
    check_given,
    product_operands,
    scales_of,
)
from ptxmma.matrices.products import arithmetic
from ptxmma.matrices.products.arithmetic import Products
from ptxmma.matrices.products.guarantees import MANUAL, Bound, guarantees, judged, refuse_unobserved, rounded
from ptxmma.matrices.products.matrices import Matrices, read
from ptxmma.model import ElementType

#: Elements of D that are computed at a time, so that intermediate results stay in a cache, and the fewest rows of them.
_CACHED, _LEAST_ROWS = 1 << 14, 8


class Product(msgspec.Struct, frozen=True, eq=False):
    """The product of two whole matrices.

    Attributes:
        instruction: the instruction that multiplies.
        d: the result (..., M, N) in the type of D, rounded to nearest; a tensor if a, b or c was one.
        matrix: the result as exact numbers: ``int64``, or ``float64``.
        bound: the largest distance from ``matrix`` that the manual lets each element of a kernel's result have, ``float64``; 0 for
            integers, infinite where nothing is promised.
        observed: the same as chips were seen to compute, by the chip's name.
    """

    instruction: Instruction
    d: Any
    matrix: Array
    bound: Array
    observed: dict[str, Array]

    def admits(self, d: Any, chip: str | None = None) -> Array:
        """Return which elements of a kernel's result (..., M, N) may be right: by the manual, or as observed on a chip.

        A result of a narrower type than the instruction's D, such as bf16 for f32, may be rounded once more, in any direction.

        Args:
            d: numbers of any floating-point type; for instructions with an integer D, integers.
            chip: one of :attr:`observed`.

        Raises:
            ValueError: another shape, no numbers of that kind, or a chip of which nothing is observed.
        """
        refuse_unobserved(chip, self.observed, self.instruction)
        answer, element = elements.as_array(d, "d"), product_operands(self.instruction).result_type
        if answer.shape != self.matrix.shape:
            raise ValueError(f"d has shape {answer.shape}; the product has {self.matrix.shape}")
        if element.form != "float":
            if answer.dtype.kind not in "iu":
                raise ValueError(f"d has dtype {answer.dtype}; the result of {self.instruction.canonical} is integers")
            return np.asarray((answer == self.matrix) | np.isinf(self.bound))
        if answer.dtype.kind in "biu":
            raise ValueError(f"d has dtype {answer.dtype}; pass numbers, not bits: .view() gives them their type")
        bound, observed = (
            {name: _converted(self.matrix, bound, element, answer.dtype) for name, bound in bounds.items()}
            for bounds in ({MANUAL: self.bound}, self.observed)
        )
        return judged(answer.astype(np.float64), self.matrix, bound[MANUAL], observed, chip)


def _converted(value: Array, bound: Array, element: ElementType, dtype: np.dtype[Any]) -> Array:
    """The bound after one more rounding, in any direction, where ``dtype`` is narrower than D; infinite where it may overflow."""
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    unit = float(limits.eps)
    if unit <= element.unit and float(limits.max) >= element.largest:
        return bound
    with np.errstate(all="ignore"):
        reach = np.abs(value) + bound
        last = np.ldexp(unit, np.frexp(np.maximum(reach, float(limits.smallest_normal)))[1] - 1)
        wider = np.where(reach > float(limits.max), np.inf, bound + last)
    return np.where(np.isfinite(value), wider, bound)


def matmul(
    instruction: Instruction | str,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    metadata: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    split_k: int = 1,
    sums: str = "f32",
) -> Product:
    """Multiply whole matrices as a kernel does that executes one instruction again and again, and bound its answer.

    The kernel goes along K from the first element to the last, as many in a step as the instruction takes.  Each step adds to the result of
    the step before, and each may round, as :func:`ptxmma.emulate` says: the bound adds up.  Where K ends within a step, the rest is zeros,
    as TMA and ``cp.async`` fill tiles.  How the kernel cuts M and N into tiles does not matter: they may have any size.

    For a kernel that visits K in another order, permute the columns of A and the rows of B in the same way.

    Args:
        instruction: one that multiplies.
        a: (..., M, K) of A's type or its bits; of a sparse instruction the values that
            :func:`ptxmma.matrices.sparse.compress` gives, (..., M, K/2).
        b: (..., K, N), of B's type or its bits.
        c: the addend, which is added once, (..., M, N) of the addend's type; None means zeros.
        metadata: row-major metadata of a sparse A, as :func:`ptxmma.matrices.sparse.compress` gives it.
        scale_a: the scale factors of a block-scaled instruction, as :func:`ptxmma.matrices.scaling.quantise` gives them: (..., M, K/block).
        scale_b: the scale factors of B, (..., K/block, N).
        split_k: the number of parts of neighbouring steps into which K is cut.  Each is summed from zero, the first from C, and the parts
            are added in D's type, in any order.  That is split-K, and also an accumulator outside the tensor cores to which D is added
            again and again.
        sums: the type whose precision the sums of ``tcgen05.mma`` are assumed to have at least, of which the manual promises none.

    Raises:
        UnknownInstruction: no such instruction.
        Missing: an instruction that does not multiply.
        TypeError: ``split_k`` is not an integer.
        ValueError: an operand that the instruction lacks or needs, a wrong shape or dtype, illegal metadata, more parts than steps, or
            several steps of an instruction whose addend is narrower than its result.
    """
    known = instruction if isinstance(instruction, Instruction) else find(instruction)
    operands = product_operands(known)
    if known.sparse and metadata is None:
        raise ValueError(f"{known.canonical} needs metadata: ptxmma.sparse.compress gives it")
    check_given(known, known.forms, AS_MATRICES, metadata=metadata, scale_a=scale_a, scale_b=scale_b)
    given = {A: a, B: b, ADDEND: c, METADATA: metadata, scales_of(A): scale_a, scales_of(B): scale_b}
    matrices = Matrices.of(known, read(known, given, "c"))
    parts = _parts(known, matrices.kept.shape[-1], split_k)
    if operands.a.element.form == "float":
        value, bounds = _floats(matrices, parts, guarantees(known, sums))
        d = rounded(value, operands.result_type)
    else:
        saturates = any(statement.overflow == "saturate" for statement in known.semantics()[:1])
        value, passing = matrices.integers(saturate=saturates)
        bounds = {MANUAL: np.where(passing, np.inf, 0)}  # which sum saturates depends on the order
        d = value.astype(elements.dtype(operands.result_type))
    return Product(known, elements.like(d, a, b, c), value, bounds.pop(MANUAL), bounds)


def _parts(instruction: Instruction, depth: int, split_k: int) -> list[list[slice]]:
    """The steps along K, in as many parts."""
    step = instruction.extents["k"]
    steps = [slice(first, first + step) for first in range(0, depth, step)]
    count = integer("split_k", split_k)
    if not 1 <= count <= len(steps):
        raise ValueError(f"split_k = {count} is out of range: K = {depth} has {len(steps)} steps of {step}")
    return [steps[len(steps) * part // count : len(steps) * (part + 1) // count] for part in range(count)]


def _floats(matrices: Matrices, parts: list[list[slice]], bounds: dict[str, Bound]) -> tuple[Array, dict[str, Array]]:
    """Sums of floating-point numbers, and how far from them a kernel's may be."""
    instruction, addend = matrices.instruction, matrices.addend
    c_type, d_type = matrices.operands.addend_type, matrices.operands.result_type
    if c_type.mantissa < d_type.mantissa and max(map(len, parts)) > 1:
        raise ValueError(
            f"{instruction.canonical} adds {c_type.name} and gives {d_type.name}: its result cannot be its next addend; K = "
            f"{matrices.kept.shape[-1]} needs {sum(map(len, parts))} steps"
        )
    a, b = matrices.factors(A), matrices.factors(B)
    columns = {along.start: b.each(operator.itemgetter((..., along, slice(None)))) for steps in parts for along in steps}
    tiles = []
    for rows in _tiles(addend.shape):
        lines, kept = a.each(operator.itemgetter((..., rows, slice(None)))), matrices.kept[..., rows, :]
        sums: list[tuple[Array, dict[str, Array]]] = []
        for steps in parts:
            value, spread = np.zeros(()) if sums else addend[..., rows, :], dict.fromkeys(bounds, np.zeros(()))
            for along in steps:
                part = lines.each(operator.itemgetter((..., along)))
                terms = Products(part, kept[..., along], columns[along.start], value, c_type)
                spread = {name: bound(terms, spread[name]) for name, bound in bounds.items()}
                value = terms.value
            sums.append((value, spread))
        tiles.append(_added(sums, d_type))
    value = np.concatenate([value for value, _ in tiles], axis=-2)
    return value, {name: np.concatenate([spread[name] for _, spread in tiles], axis=-2) for name in bounds}


def _tiles(shape: tuple[int, ...]) -> Iterator[slice]:
    """Tiles of D, equal numbers of rows that a cache holds with all intermediate results: one row would be summed in another order."""
    rows = shape[-2]
    count = -(-rows // max(_LEAST_ROWS, _CACHED * rows // math.prod(shape)))
    yield from (slice(rows * tile // count, rows * (tile + 1) // count) for tile in range(count))


def _added(sums: list[tuple[Array, dict[str, Array]]], element: ElementType) -> tuple[Array, dict[str, Array]]:
    """The sum of several sums, added in the type of D, in any order and rounded in any direction."""
    if len(sums) == 1:
        return sums[0]
    values, spread = np.stack(np.broadcast_arrays(*(value for value, _ in sums))), {}
    with np.errstate(all="ignore"):
        total = values.sum(0)
        for name in sums[0][1]:
            each = np.stack(np.broadcast_arrays(*(bounds[name] for _, bounds in sums)))
            reach = (np.where(np.isfinite(values), np.abs(values), 0) + each).sum(0)
            lost = arithmetic.rounding(np.asarray(len(sums) - 1), reach, element.unit, element.smallest_normal * element.unit)
            fits, known = reach + lost <= element.largest, np.isfinite(each).all(0)
            spread[name] = np.select([np.isnan(total) & known, ~fits, ~np.isfinite(total)], [0, np.inf, 0], each.sum(0) + lost)
    return total, spread
