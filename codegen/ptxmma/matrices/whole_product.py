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
from ptxmma.arrays.metadata_bytes import row_major
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.instructions import instruction as find
from ptxmma.matrices import arithmetic, sparse
from ptxmma.matrices.arithmetic import Factors, Products
from ptxmma.matrices.guarantees import MANUAL, Bound, admitted, guarantees, judged, refuse_unobserved, rounded
from ptxmma.matrices.product_operands import Multiplicand, ProductOperands, product_operands, scale_blocks, takes_scales
from ptxmma.matrices.tensor_emulation import refuse_shift, refuse_undefined
from ptxmma.model import ElementType, Semantics

#: Elements of D that are computed at a time, so that intermediate results stay in a cache, and the fewest rows of them.
_CACHED, _LEAST_ROWS = 1 << 14, 8


class Product(msgspec.Struct, frozen=True, eq=False):
    """The product of two whole matrices.

    Attributes:
        instruction: the instruction that multiplies.
        d: the result (..., M, N) in the type of D, rounded to nearest; a tensor if a, b or c was one.
        matrix: the result as exact numbers: ``int64``, or ``float64``.
        bound: how far from ``matrix`` the manual lets each element of a kernel's result be, ``float64``; 0 for integers, infinite where
            nothing is promised.
        observed: the same as chips were seen to compute, by the chip's name.
    """

    instruction: Instruction
    d: Any
    matrix: Array
    bound: Array
    observed: dict[str, Array]

    def admits(self, d: Any, chip: str | None = None) -> Array:
        """Which elements of a kernel's result (..., M, N) may be right: by the manual, or as observed on a chip.

        A result of a narrower type than the instruction's D, such as bf16 for f32, may be rounded once more, in any direction.

        Args:
            d: numbers of any floating-point type; for instructions with an integer D, integers.
            chip: one of :attr:`observed`.

        Raises:
            ValueError: another shape, no numbers of that kind, or a chip of which nothing is observed.
        """
        refuse_unobserved(chip, self.observed, self.instruction)
        answer = elements.as_array(d, "d")
        element = product_operands(self.instruction).d.element
        assert element is not None
        if answer.shape != self.matrix.shape:
            raise ValueError(f"d has shape {answer.shape}; the product has {self.matrix.shape}")
        if element.form != "float":
            if answer.dtype.kind not in "iu":
                raise ValueError(f"d has dtype {answer.dtype}; the result of {self.instruction.canonical} is integers")
            return np.asarray((answer == self.matrix) | np.isinf(self.bound))
        if answer.dtype.kind in "biu":
            raise ValueError(f"d has dtype {answer.dtype}; pass numbers, not bits: .view() gives them their type")
        bounds = {name: _converted(self.matrix, bound, element, answer.dtype) for name, bound in self.observed.items()}
        answer = answer.astype(np.float64)
        if chip is not None:
            return admitted(answer, self.matrix, bounds[chip])
        return judged(answer, self.matrix, _converted(self.matrix, self.bound, element, elements.as_array(d).dtype), bounds)


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
    """Multiply whole matrices as a kernel does that executes one instruction again and again, and bound what it may answer.

    The kernel goes along K from the first element to the last, as many in a step as the instruction takes.  Each step adds to the result of
    the step before, and each may round, as :func:`ptxmma.emulate` says: the bound adds up.  Where K ends within a step, the rest is zeros,
    as TMA and ``cp.async`` fill tiles.  How the kernel cuts M and N into tiles does not matter: they may have any size.

    For a kernel that visits K in another order, permute the columns of A and the rows of B in the same way.

    Args:
        instruction: one that multiplies.
        a: (..., M, K) of A's type or its bits; of a sparse instruction the values that
            :func:`ptxmma.matrices.sparse.compress` gives, (..., M, K/2).
        b: (..., K, N), of B's type or its bits.
        c: what is added once, (..., M, N) of the addend's type; None means zeros.
        metadata: row-major metadata of a sparse A, as :func:`ptxmma.matrices.sparse.compress` gives it.
        scale_a: the scale factors of a block-scaled instruction, as :func:`ptxmma.matrices.scaling.quantise` gives them: (..., M, K/block).
        scale_b: those of B, (..., K/block, N).
        split_k: in how many parts of neighbouring steps K is cut.  Each is summed from zero, the first from C, and the parts are added
            in D's type, in any order.  That is split-K, and also an accumulator outside the tensor cores to which D is added again and
            again.
        sums: the type whose precision the sums of ``tcgen05.mma`` are assumed to have at least, of which the manual promises none.

    Raises:
        UnknownInstruction: no such instruction.
        Missing: an instruction that does not multiply.
        TypeError: ``split_k`` is not an integer.
        ValueError: an operand that the instruction lacks or needs, a wrong shape or dtype, illegal metadata, more parts than steps, or
            several steps of an instruction whose addend is narrower than its result.
    """
    known = instruction if isinstance(instruction, Instruction) else find(instruction)
    if known.operation not in ("multiply", "tensor-multiply"):
        raise Missing(f"{known.canonical} does not multiply")
    given = _WholeOperands(known, a, b, c, metadata, {"a": scale_a, "b": scale_b})
    parts = given.parts(split_k)
    result = _floats(given, parts, guarantees(known, sums)) if given.product.a.element.form == "float" else _integers(given)
    tensor = next((operand for operand in (a, b, c) if elements.is_tensor(operand)), None)
    return msgspec.structs.replace(result, d=elements.like(result.d, tensor))


class _WholeOperands:
    """The matrices of a product, checked, as bits; A with zeros for what a sparse one drops."""

    def __init__(self, instruction: Instruction, a: Any, b: Any, c: Any, metadata: Any, scales: dict[str, Any]) -> None:
        self.instruction = instruction
        self.product: ProductOperands = product_operands(instruction)
        refuse_shift(instruction)
        self.semantics: Semantics | None = next(iter(instruction.semantics()), None)  # the manual says nothing of tensor memory
        self.step = instruction.extents["k"]
        self.b = self._codes("b", b, self.product.b)
        self.a, self.kept = self._expanded(self._codes("a", a, self.product.a), metadata)
        if self.a.shape[-1] != self.b.shape[-2]:
            raise ValueError(f"a reaches over K = {self.a.shape[-1]}, b over K = {self.b.shape[-2]}: b is (..., K, N)")
        self.depth = self.b.shape[-2]
        self.scales = self._scales(scales)
        self.c = self._addend(c)

    def _codes(self, name: str, given: Any, matrix: Multiplicand) -> Array:
        codes = elements.codes(given, matrix.element, name)
        if codes.ndim < 2 or not codes.size:
            raise ValueError(f"{name} has shape {codes.shape}; it has rows and columns, at least one of each")
        kept: Array = codes & ~codes.dtype.type((1 << (self.semantics.truncates if self.semantics else 0)) - 1)
        return kept

    def _expanded(self, stored: Array, metadata: Any) -> tuple[Array, Array]:
        """A (..., M, K), and which of its elements are stored."""
        if (metadata is not None) != self.instruction.sparse:
            what = "needs metadata: ptxmma.sparse.compress gives it" if self.instruction.sparse else "takes no metadata"
            raise ValueError(f"{self.instruction.canonical} {what}")
        if metadata is None:
            return stored, np.ones(stored.shape, bool)
        rows = row_major(metadata)
        if self.semantics is None:
            refuse_undefined(self.instruction, rows)
        else:
            self.instruction.metadata.refuse_illegal(rows)
        kept = sparse.decompress(np.ones(stored.shape, np.uint8), rows, self.instruction)
        return sparse.decompress(stored, rows, self.instruction), kept.astype(bool)

    def _scales(self, given: dict[str, Any]) -> dict[str, Array]:
        """The bits of the scale factors of A and B, one for each element."""
        scales = {}
        scaled = takes_scales(self.instruction)
        for name, factors in given.items():
            if (factors is not None) != scaled:
                raise ValueError(f"{self.instruction.canonical} {'needs' if scaled else 'takes no'} scale_{name}")
            if factors is None:
                continue
            matrix, codes = (self.product.a, self.a) if name == "a" else (self.product.b, self.b)
            element, blocks = scale_blocks(self.instruction, matrix)
            along, block = -1 if name == "a" else -2, self.step // blocks
            wanted = list(codes.shape)
            wanted[along] = -(-wanted[along] // block)
            bits = elements.codes(factors, element, f"scale_{name}")
            if bits.shape != tuple(wanted):
                raise ValueError(
                    f"scale_{name} has shape {bits.shape}; {name} of shape {codes.shape} has blocks of {block}, which are {tuple(wanted)}"
                )
            scales[name] = np.take(bits, np.arange(codes.shape[along]) // block, axis=along)
        return scales

    def _addend(self, given: Any) -> Array:
        """C's numbers (..., M, N)."""
        element = self.product.c.element
        assert element is not None
        shape = (*np.broadcast_shapes(self.a.shape[:-2], self.b.shape[:-2]), self.a.shape[-2], self.b.shape[-1])
        if given is None:
            return np.zeros(shape, np.float64 if element.form == "float" else np.int64)
        addend = elements.numbers(elements.codes(given, element, "c"), element)
        if addend.shape != shape:
            raise ValueError(f"c has shape {addend.shape}; the product has {shape}")
        return addend

    def parts(self, split_k: int) -> list[list[slice]]:
        """The steps along K, in as many parts."""
        steps = [slice(first, first + self.step) for first in range(0, self.depth, self.step)]
        count = integer("split_k", split_k)
        if not 1 <= count <= len(steps):
            raise ValueError(f"split_k = {count} is out of range: K = {self.depth} has {len(steps)} steps of {self.step}")
        return [steps[len(steps) * part // count : len(steps) * (part + 1) // count] for part in range(count)]

    def factors(self, name: str) -> Factors:
        """A or B with its scale factors."""
        matrix, codes = (self.product.a, self.a) if name == "a" else (self.product.b, self.b)
        factors = Factors.of(codes, matrix.element)
        if name not in self.scales:
            return factors
        return factors.times(Factors.of(self.scales[name], scale_blocks(self.instruction, matrix)[0]))


def _integers(given: _WholeOperands) -> Product:
    """Sums of integers or single bits: exact, unless they saturate somewhere on the way."""
    a = elements.numbers(given.a, given.product.a.element).astype(np.float64)
    b = elements.numbers(given.b, given.product.b.element).astype(np.float64)
    products, most = a @ b, np.abs(a) @ np.abs(b)  # exact: far below 2**53
    if given.semantics is not None and given.semantics.bitwise == "xor":
        products = a.sum(-1, keepdims=True) + b.sum(-2, keepdims=True) - 2 * products
    total, limits = products.astype(np.int64) + given.c, np.iinfo(np.int32)
    bound = np.zeros(total.shape)
    if given.semantics is not None and given.semantics.overflow == "saturate":
        bound = np.where(np.abs(given.c) + most > limits.max, np.inf, 0)  # which sum saturates depends on the order
        total = np.clip(total, limits.min, limits.max)
    d = total.astype(np.int32)
    return Product(given.instruction, d, d.astype(np.int64), bound, {})


def _floats(given: _WholeOperands, parts: list[list[slice]], bounds: dict[str, Bound]) -> Product:
    """Sums of floating-point numbers."""
    c_type, d_type = given.product.c.element, given.product.d.element
    assert c_type is not None
    assert d_type is not None
    if c_type.mantissa < d_type.mantissa and max(map(len, parts)) > 1:
        raise ValueError(
            f"{given.instruction.canonical} adds {c_type.name} and gives {d_type.name}: its result cannot be its next addend; K = "
            f"{given.depth} needs {sum(map(len, parts))} steps"
        )
    a, b = given.factors("a"), given.factors("b")
    columns = {along.start: b.each(operator.itemgetter((..., along, slice(None)))) for steps in parts for along in steps}
    tiles = []
    for rows in _tiles(given.c.shape):
        lines, kept = a.each(operator.itemgetter((..., rows, slice(None)))), given.kept[..., rows, :]
        sums: list[tuple[Array, dict[str, Array]]] = []
        for steps in parts:
            value, spread = np.zeros(()) if sums else given.c[..., rows, :], dict.fromkeys(bounds, np.zeros(()))
            for along in steps:
                part = lines.each(operator.itemgetter((..., along)))
                terms = Products(part, kept[..., along], columns[along.start], value, c_type)
                spread = {name: bound(terms, spread[name]) for name, bound in bounds.items()}
                value = terms.value
            sums.append((value, spread))
        tiles.append(_added(sums, d_type))
    value = np.concatenate([value for value, _ in tiles], axis=-2)
    spread = {name: np.concatenate([spread[name] for _, spread in tiles], axis=-2) for name in bounds}
    return Product(given.instruction, rounded(value, d_type), value, spread.pop(MANUAL), spread)


def _tiles(shape: tuple[int, ...]) -> Iterator[slice]:
    """Rows of D that a cache holds with all that is known of them, as many in each tile: one alone would be summed in another order."""
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
