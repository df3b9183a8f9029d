"""The result of a multiplication, in registers and as a matrix.

Integers and single bits are exact.  In floating point the order of accumulation and the rounding of sums are not specified, so that the
manual guarantees a bound around the exact value and not a single value: see :mod:`ptxmma.matrices.arithmetic`.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.matrices import shared_memory, sparse
from ptxmma.matrices.arithmetic import Factors, Products
from ptxmma.matrices.given_operands import GivenOperands, check_batches
from ptxmma.matrices.guarantees import MANUAL, admitted, guarantees, judged, refuse_unobserved, rounded
from ptxmma.matrices.product_operands import ADDEND, ADDS, METADATA, NAMES, A, B, Part, product_operands
from ptxmma.model import ElementType


class Emulated(msgspec.Struct, frozen=True, eq=False):
    """The result of a multiplication.

    Attributes:
        instruction: the instruction.
        d: the registers of D, (..., threads, registers), a tensor if a, b or c was one.  Floating point: ``matrix``, rounded to
            nearest.
        matrix: D as a matrix of numbers, (..., m, n): ``int64``, or ``float64`` before that rounding.
        bound: how far from ``matrix`` the manual lets each element be, ``float64`` (..., m, n); 0 for integers, infinite where nothing
            is promised.
        observed: the same as chips were seen to compute, by the chip's name: subnormal inputs count there, and some instructions keep
            fewer bits than the manual promises.
    """

    instruction: Instruction
    d: Any
    matrix: Array
    bound: Array
    observed: dict[str, Array]

    @property
    def d_bound(self) -> Array:
        """How far from the numbers in :attr:`d` the manual lets each element be: the ``c_bound`` of a product that adds to ``d``."""
        with np.errstate(all="ignore"):
            lost = np.abs(self.matrix.astype(elements.dtype(self._d_type)).astype(np.float64) - self.matrix)
        return np.asarray(self.bound + np.where(np.isnan(lost), 0, lost))

    @property
    def _d_type(self) -> ElementType:
        element = product_operands(self.instruction).d.element
        assert element is not None
        return element

    def admits(self, registers: Any, chip: str | None = None) -> Array:
        """Which elements of D, (..., m, n), may have the values in these registers: by the manual, or as observed on a chip.

        Raises:
            ValueError: registers of another shape or width, a batch that does not fit, or a chip for which nothing is observed.
        """
        refuse_unobserved(chip, self.observed, self.instruction)
        answer = elements.numbers(elements.codes(product_operands(self.instruction).d.unpack(registers), self._d_type), self._d_type)
        check_batches({"registers": answer, "D": self.matrix})
        if chip is not None:
            return admitted(answer, self.matrix, self.observed[chip])
        return judged(answer, self.matrix, self.bound, self.observed)


def multiply(
    instruction: Instruction,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    metadata: Any = None,
    scale_a_data: Any = None,
    scale_b_data: Any = None,
    c_bound: Any = 0,
    memory: Any = None,
    memory_start: int = 0,
    **constants: Any,
) -> Emulated:
    """Multiply; see :func:`ptxmma.emulate`."""
    given = GivenOperands(instruction, _form(instruction, a), constants, memory, memory_start)
    scales = {A: scale_a_data, B: scale_b_data}
    for part, value in {A: a, B: b, METADATA: metadata, **{_scales_of(matrix): value for matrix, value in scales.items()}}.items():
        given.check_present(part, value)
    matrices = {A: given.codes(A, a), B: given.codes(B, b), ADDEND: given.addend(c)}
    if metadata is not None:
        matrices[METADATA] = given.metadata(metadata)
    matrices |= {_scales_of(matrix): given.scales(matrix, registers) for matrix, registers in scales.items() if registers is not None}
    check_batches({NAMES[part]: matrix for part, matrix in matrices.items()})
    spread = _checked_c_bound(c_bound, matrices[ADDEND].shape, given.product.a.element)
    if given.product.a.element.form == "float":
        result = _floats(given, matrices, spread if given.constant(ADDS, 1) else np.zeros(()))
    else:
        result = _integers(given, matrices)
    tensor = next((operand for operand in (a, b, c) if elements.is_tensor(operand)), None)
    return msgspec.structs.replace(result, d=elements.like(result.d, tensor))


def _scales_of(matrix: Part) -> Part:
    """The scale factors of A or B."""
    return Part("scale-data", matrix.of)


def _form(instruction: Instruction, a: Any) -> OperandForm:
    """The operand list that fits where A comes from."""
    described = isinstance(a, shared_memory.Descriptor) or (not isinstance(a, bool) and isinstance(a, (int, np.integer)))
    for form in instruction.forms:
        if (form.name == "descriptor") == described:
            return form
    raise ValueError(f"a must be an array of registers, not {a!r}: {instruction.canonical} takes no descriptor of A")


def _expanded(given: GivenOperands, matrices: dict[Part, Array]) -> tuple[Array, Array]:
    """The bits of the full A (..., m, k), with zeros for the elements that a sparse A drops, and which elements it keeps."""
    stored = matrices[A]
    if METADATA not in matrices:
        return stored, np.ones(stored.shape, bool)
    instruction, rows = given.instruction, matrices[METADATA]
    pattern = sparse.pattern(instruction.metadata.granularity.name, database=instruction.database)
    kept = sparse.decompress(np.ones((*rows.shape[:-1], given.product.a.depth), np.uint8), rows, pattern).astype(bool)
    batch = np.broadcast_shapes(stored.shape[:-2], rows.shape[:-2])
    values, fields = (np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (stored, rows))
    return sparse.decompress(values, fields, pattern), kept


def _integers(given: GivenOperands, matrices: dict[Part, Array]) -> Emulated:
    """D of integers or single bits."""
    codes = {A: _expanded(given, matrices)[0], B: matrices[B]}
    a, b = (elements.numbers(bits, given.multiplicand(part).element).astype(np.float64) for part, bits in codes.items())
    products = a @ b  # exact: far below 2**53
    if given.semantics.bitwise == "xor":
        products = a.sum(-1, keepdims=True) + b.sum(-2, keepdims=True) - 2 * products
    total = products.astype(np.int64) + matrices[ADDEND]
    limits = np.iinfo(np.int32)
    if given.semantics.overflow == "saturate":
        total = np.clip(total, limits.min, limits.max)
    d = total.astype(np.int32)
    return Emulated(given.instruction, given.product.d.pack(d), d.astype(np.int64), np.zeros(total.shape), {})


def _floats(given: GivenOperands, matrices: dict[Part, Array], c_bound: Array) -> Emulated:
    """D of floating-point numbers."""
    a, kept = _expanded(given, matrices)
    left, right = _factors(given, A, a, matrices), _factors(given, B, matrices[B], matrices)
    products = Products(left, kept, right, matrices[ADDEND], given.c_type)
    bounds = {name: bound(products, c_bound) for name, bound in guarantees(given.instruction).items()}
    value = products.value
    return Emulated(given.instruction, given.product.d.pack(rounded(value, given.d_type)), value, bounds.pop(MANUAL), bounds)


def _factors(given: GivenOperands, part: Part, codes: Array, matrices: dict[Part, Array]) -> Factors:
    """The elements of A or B, negated where a constant says so, with their scale factors."""
    matrix = given.multiplicand(part)
    factors = Factors.of(codes, matrix.element, given.constant(Part("negation", part.of), 1))
    scales = matrices.get(_scales_of(part))
    return factors if scales is None else factors.times(Factors.of(scales, given.instruction.scales(matrix.name).element))


def _checked_c_bound(given: Any, shape: tuple[int, ...], element: ElementType) -> Array:
    """How far addends of that shape may be from C, checked: 0 or more; 0 where the elements of A are integers."""
    try:
        spread = np.asarray(given, np.float64)
        fits = np.broadcast_shapes(spread.shape, shape)[-2:] == shape[-2:] and bool((spread >= 0).all())
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(f"c_bound says how far each addend may be from C: numbers, 0 or more, (..., {shape[-2]}, {shape[-1]})")
    if element.form != "float" and spread.any():
        raise ValueError(f"c_bound must be 0: sums of {element.name} are exact")
    return spread
