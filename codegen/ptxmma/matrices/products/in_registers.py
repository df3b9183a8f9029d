"""One product in registers: an instruction with the registers of its threads, or with descriptors of shared memory.

Integers and single bits are exact.  In floating point the order of accumulation and the rounding of sums are not specified, so that the
manual guarantees a bound around the exact value and not a single value: see :mod:`ptxmma.matrices.products.arithmetic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.matrices import shared_memory
from ptxmma.matrices.product_operands import (
    ADDEND,
    ADDS,
    IN_REGISTERS,
    METADATA,
    SELECTOR,
    A,
    B,
    Part,
    check_given,
    product_operands,
    scales_of,
)
from ptxmma.matrices.products.guarantees import MANUAL, guarantees, judged, refuse_unobserved, rounded
from ptxmma.matrices.products.matrices import Matrices, check_batches
from ptxmma.model import ElementType

#: The parameter of each part.
_NAMES = {part: name for name, part in IN_REGISTERS.items()}


class RegisterOperands:
    """One instruction with one operand list, its constants, and the memory that its descriptors read.

    Attributes:
        instruction: the instruction that multiplies.
        form: the operand list.
        product: the operands by what they do.
    """

    def __init__(self, instruction: Instruction, form: OperandForm, constants: dict[str, Any], memory: Any, memory_start: int) -> None:
        self.instruction = instruction
        self.form = form
        if memory is not None and not any(operand.kind == "descriptor" for operand in form.operands):
            raise ValueError(f"{instruction.canonical} reads no shared memory: leave memory out")
        self._memory, self._memory_start = memory, memory_start
        self.product = product_operands(instruction)
        self._operands = {self.product.part(operand): operand for operand in form.operands}
        self._constants = {IN_REGISTERS.get(name, Part("")): self._checked(name, value) for name, value in constants.items()}

    def _checked(self, name: str, value: Any) -> int:
        """A constant of the operand list."""
        operand = self._operands.get(IN_REGISTERS.get(name, Part("")))
        if operand is None or operand.immediates is None:
            raise ValueError(f"{name} = {value}: {self.instruction.canonical} has no such operand in {self.form.syntax!r}")
        number = int(value) if operand.kind == "predicate" and isinstance(value, np.bool_) else integer(name, value)
        if number not in operand.immediates:
            allowed = ", ".join(map(str, operand.immediates))
            raise ValueError(f"{name} = {value} is not allowed for {self.instruction.canonical}; allowed: {allowed}")
        return number

    def constant(self, part: Part, absent: int = 0) -> int:
        """A constant as given, or its default, which is the default of the wrappers; ``absent`` without either."""
        operand = self._operands.get(part)
        usual = absent if operand is None or operand.default is None else operand.default
        return self._constants.get(part, usual)

    @property
    def negated(self) -> frozenset[Part]:
        """The multiplicands that a constant negates."""
        return frozenset(part for part in (A, B) if self.constant(Part("negation", part.of), 1) < 0)

    def matrices(self, given: Mapping[Part, Any]) -> dict[Part, Array]:
        """The matrices that registers and descriptors hold: bits, of C numbers; parts of None are left out.

        Raises:
            TypeError, ValueError: as :func:`ptxmma.emulate`.
        """
        read = {A: self._codes(A, given[A]), B: self._codes(B, given[B]), ADDEND: self._addend(given[ADDEND])}
        if given[METADATA] is not None:
            read[METADATA] = self._metadata(given[METADATA])
        scaled = [matrix for matrix in (A, B) if given[scales_of(matrix)] is not None]
        return read | {scales_of(matrix): self._scales(matrix, given[scales_of(matrix)]) for matrix in scaled}

    def _codes(self, part: Part, given: Any) -> Array:
        """The bits of A's elements (..., m, k), of a sparse A the stored ones, or of B's (..., k, n)."""
        operand = self._operands[part]
        values = self._described(part, given) if operand.kind == "descriptor" else operand.unpack(given)
        return elements.codes(values, self.product.multiplicand(part).element, _NAMES[part])

    def _described(self, part: Part, given: Any) -> Array:
        """A or B as a descriptor describes it."""
        name, matrix = _NAMES[part], self.product.multiplicand(part)
        if getattr(given, "shape", ()) != ():
            raise ValueError(f"{name} is one descriptor for all threads, not an array of shape {tuple(given.shape)}")
        if not isinstance(given, shared_memory.Descriptor):
            wanted = "a descriptor: an integer or a ptxmma.shared_memory.Descriptor"
            if isinstance(given, (bool, np.bool_)):
                raise TypeError(f"{name} must be {wanted}, not {type(given).__name__}")
            given = integer(name, given, wanted)
        if self._memory is None:
            raise ValueError(f"{name} is a descriptor: pass the image of shared memory that it describes as memory")
        values = shared_memory.read_operand(
            given, self._memory, matrix.element, matrix.lines, matrix.depth, self._majorness(part), self._memory_start,
            database=self.instruction.database,
        )  # fmt: skip
        return values if part == A else values.swapaxes(-1, -2)

    def _majorness(self, matrix: Part) -> str:
        """The majorness of a matrix in shared memory: what its constant says, or K."""
        part = Part("majorness", matrix.of)
        operand = self._operands.get(part)
        if operand is None:
            return "K"
        value = self.constant(part)
        return next(meaning for meaning, number in operand.meanings.items() if number == value)

    def _addend(self, given: Any) -> Array:
        """C's numbers, (..., m, n)."""
        element = self.product.addend_type
        if given is None or not self.constant(ADDS, 1):
            shape = self.instruction.extents["m"], self.instruction.extents["n"]
            return np.zeros(shape, np.float64 if element.form == "float" else np.int64)
        return elements.numbers(elements.codes(self.product.c.unpack(given), element, _NAMES[ADDEND]), element)

    def _metadata(self, registers: Any) -> Array:
        """Row-major metadata (..., m, chunks / 2), all of it legal."""
        layout, selector = self.instruction.metadata, self.constant(SELECTOR)
        registers = elements.as_array(registers, _NAMES[METADATA])
        if problems := layout.problems(registers, selector):
            raise ValueError(f"the behaviour of {self.instruction.canonical} is undefined with this metadata: {problems[0]}")
        return np.asarray(layout.unpack(registers, selector))

    def _scales(self, matrix: Part, registers: Any) -> Array:
        """The bits of the scale factors of the blocks of A (..., m, blocks) or B (..., blocks, n)."""
        layout = self.instruction.scales(self.product.multiplicand(matrix).name)
        byte, thread = (self.constant(Part(kind, matrix.of)) for kind in ("byte-id", "thread-id"))
        return elements.codes(layout.unpack(registers, byte, thread), layout.element)


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
    return Emulated(instruction, elements.like(operands.product.d.pack(d), a, b, c), value, bounds.pop(MANUAL), bounds)


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
