"""One product in registers: an instruction with the registers of its threads, or with descriptors of shared memory.

Integers and single bits are exact.  In floating point the order of accumulation and the rounding of sums are not specified, so that the
manual guarantees a bound around the exact value and not a single value: see :mod:`ptxmma.matrices.products.arithmetic`.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.matrices import shared_memory
from ptxmma.matrices.product_operands import ADDEND, ADDS, IN_REGISTERS, METADATA, A, B, check_given, product_operands, scales_of
from ptxmma.matrices.products.guarantees import MANUAL, guarantees, judged, refuse_unobserved, rounded
from ptxmma.matrices.products.matrices import Matrices, check_batches
from ptxmma.matrices.products.register_operands import RegisterOperands
from ptxmma.model import ElementType


class Emulated(msgspec.Struct, frozen=True, eq=False):
    """The result of a multiplication.

    Attributes:
        instruction: the instruction.
        d: the registers of D, (..., threads, registers), a tensor if a, b or c was one.  Floating point: ``matrix``, rounded to
            nearest.
        matrix: D as a matrix of numbers, (..., m, n): ``int64``, or ``float64`` before that rounding.
        bound: the largest distance from ``matrix`` that the manual lets each element have, ``float64`` (..., m, n); 0 for integers,
            infinite where nothing is promised.
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
        """The largest distance from the numbers in :attr:`d` that the manual allows: the ``c_bound`` of a product that adds to ``d``."""
        with np.errstate(all="ignore"):
            lost = np.abs(self.matrix.astype(elements.dtype(self._d_type)).astype(np.float64) - self.matrix)
        return np.asarray(self.bound + np.where(np.isnan(lost), 0, lost))

    @property
    def _d_type(self) -> ElementType:
        return product_operands(self.instruction).result_type

    def admits(self, registers: Any, chip: str | None = None) -> Array:
        """Return which elements of D, (..., m, n), may have the values in these registers: by the manual, or as observed on a chip.

        Raises:
            ValueError: registers of another shape or width, a batch that does not fit, or a chip for which nothing is observed.
        """
        refuse_unobserved(chip, self.observed, self.instruction)
        answer = elements.numbers(elements.codes(product_operands(self.instruction).d.unpack(registers), self._d_type), self._d_type)
        check_batches({"registers": answer, "D": self.matrix})
        return judged(answer, self.matrix, self.bound, self.observed, chip)


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
    operands = RegisterOperands(instruction, _form(instruction, a), constants, memory, memory_start)
    optional = {"metadata": metadata, "scale_a_data": scale_a_data, "scale_b_data": scale_b_data}
    check_given(instruction, [operands.form], IN_REGISTERS, a=a, b=b, **optional)
    given = {A: a, B: b, ADDEND: c, METADATA: metadata, scales_of(A): scale_a_data, scales_of(B): scale_b_data}
    read = operands.matrices(given)
    names = {part: name for name, part in IN_REGISTERS.items()}
    check_batches({names[part]: matrix for part, matrix in read.items()})
    spread = _checked_c_bound(c_bound, read[ADDEND].shape, operands.product.a.element)
    matrices = Matrices.of(instruction, read, operands.negated)
    bounds: dict[str, Array]
    if operands.product.a.element.form == "float":
        terms, spread = matrices.terms(), spread if operands.constant(ADDS, 1) else np.zeros(())
        bounds = {name: bound(terms, spread) for name, bound in guarantees(instruction).items()}
        value = terms.value
        d = rounded(value, operands.product.result_type)
    else:
        saturates = any(statement.overflow == "saturate" for statement in instruction.semantics()[:1])
        value, _ = matrices.integers(saturate=saturates)
        bounds = {MANUAL: np.zeros(value.shape)}
        d = value.astype(elements.dtype(operands.product.result_type))
    tensor = next((operand for operand in (a, b, c) if elements.is_tensor(operand)), None)
    return Emulated(instruction, elements.like(operands.product.d.pack(d), tensor), value, bounds.pop(MANUAL), bounds)


def _form(instruction: Instruction, a: Any) -> OperandForm:
    """The operand list that fits where A comes from."""
    described = isinstance(a, shared_memory.Descriptor) or (not isinstance(a, bool) and isinstance(a, (int, np.integer)))
    for form in instruction.forms:
        if (form.name == "descriptor") == described:
            return form
    raise ValueError(f"a must be an array of registers, not {a!r}: {instruction.canonical} takes no descriptor of A")


def _checked_c_bound(given: Any, shape: tuple[int, ...], element: ElementType) -> Array:
    """The largest distance of addends of that shape from C, checked: 0 or more; 0 where the elements of A are integers."""
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
