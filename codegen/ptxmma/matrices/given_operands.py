"""Reads and checks the operands of one multiplication: as bits and numbers of whole matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.matrices import shared_memory
from ptxmma.matrices.product_operands import ADDEND, ADDS, NAMES, SELECTOR, A, Multiplicand, Part, argument, product_operands
from ptxmma.model import ElementType, Semantics


class GivenOperands:
    """One instruction with one operand list, its constants, and the memory that its descriptors read.

    Operands go by what they are to the product; constants come by the names of the emulator's parameters.
    """

    def __init__(self, instruction: Instruction, form: OperandForm, constants: dict[str, Any], memory: Any, memory_start: int) -> None:
        self.instruction = instruction
        self.form = form
        if memory is not None and not any(operand.kind == "descriptor" for operand in form.operands):
            raise ValueError(f"{instruction.canonical} reads no shared memory: leave memory out")
        self._memory, self._memory_start = memory, memory_start
        self.product = product_operands(instruction)
        self._operands = {self.product.part(operand): operand for operand in form.operands}
        named = {argument(self.product, operand): operand for operand in form.operands}
        checked = [(named.get(name), self._checked(name, value, named.get(name))) for name, value in constants.items()]
        self._constants = {self.product.part(operand): number for operand, number in checked if operand is not None}

    def _checked(self, name: str, value: Any, operand: Operand | None) -> int:
        """A constant of the operand list."""
        if operand is None or operand.immediates is None:
            raise ValueError(f"{name} = {value}: {self.instruction.canonical} has no such operand in {self.form.syntax!r}")
        number = int(value) if operand.kind == "predicate" and isinstance(value, np.bool_) else integer(name, value)
        if number not in operand.immediates:
            allowed = ", ".join(map(str, operand.immediates))
            raise ValueError(f"{name} = {value} is not allowed for {self.instruction.canonical}; allowed: {allowed}")
        return number

    def constant(self, part: Part, absent: int = 0) -> int:
        """A constant as given, or its default, which is that of the wrappers; ``absent`` without either."""
        operand = self._operands.get(part)
        usual = absent if operand is None or operand.default is None else operand.default
        return self._constants.get(part, usual)

    def check_present(self, part: Part, value: Any) -> None:
        """Check that an operand is given if and only if the instruction has it."""
        has = part in self._operands
        if (value is not None) != has:
            verb = "needs" if has else "takes no"
            raise ValueError(f"{self.instruction.canonical} {verb} {NAMES[part]}; its operands are {self.form.syntax}")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """M, N and K."""
        extents = self.instruction.extents
        return extents["m"], extents["n"], extents["k"]

    @property
    def c_type(self) -> ElementType:
        """The type of the addend."""
        assert self.product.c.element is not None
        return self.product.c.element

    @property
    def d_type(self) -> ElementType:
        """The type of the result."""
        assert self.product.d.element is not None
        return self.product.d.element

    @functools.cached_property
    def semantics(self) -> Semantics:
        """The guarantees of the arithmetic."""
        return self.instruction.semantics()[0]

    def codes(self, part: Part, given: Any) -> Array:
        """The bits of A's (..., m, k) or B's elements (..., k, n), of a sparse A those that are stored (..., m, k * kept / chunk).

        The low bits that the instruction ignores are 0.
        """
        operand = self._operands[part]
        values = self._described(part, given) if operand.kind == "descriptor" else operand.unpack(given)
        bits = elements.codes(values, self.multiplicand(part).element, NAMES[part])
        kept: Array = bits & ~bits.dtype.type((1 << self.semantics.truncates) - 1)
        return kept

    def multiplicand(self, part: Part) -> Multiplicand:
        """A or B, which the part is or belongs to."""
        return self.product.a if part.of == A.of else self.product.b

    def _described(self, part: Part, given: Any) -> Array:
        """A or B as a descriptor describes it."""
        name, matrix = NAMES[part], self.multiplicand(part)
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
        """The majorness of a matrix in shared memory: that of its constant, or K."""
        part = Part("majorness", matrix.of)
        operand = self._operands.get(part)
        if operand is None:
            return "K"
        value = self.constant(part)
        return next(meaning for meaning, number in operand.meanings.items() if number == value)

    def addend(self, given: Any) -> Array:
        """C's numbers, (..., m, n)."""
        if given is None or not self.constant(ADDS, 1):
            m, n, _ = self.sizes
            return np.zeros((m, n), np.float64 if self.c_type.form == "float" else np.int64)
        return elements.numbers(elements.codes(self.product.c.unpack(given), self.c_type, NAMES[ADDEND]), self.c_type)

    def metadata(self, registers: Any) -> Array:
        """Row-major metadata (..., m, chunks / 2), all of it legal."""
        layout, selector = self.instruction.metadata, self.constant(SELECTOR)
        registers = elements.as_array(registers, "metadata")
        if problems := layout.problems(registers, selector):
            raise ValueError(f"the behaviour of {self.instruction.canonical} is undefined with this metadata: {problems[0]}")
        return np.asarray(layout.unpack(registers, selector))

    def scales(self, matrix: Part, registers: Any) -> Array:
        """The bits of a scale factor for each element of A (..., m, k) or B (..., k, n)."""
        layout = self.instruction.scales(self.multiplicand(matrix).name)
        byte, thread = (self.constant(Part(kind, matrix.of)) for kind in ("byte-id", "thread-id"))
        factors = layout.unpack(registers, byte, thread)
        return np.repeat(elements.codes(factors, layout.element), self.sizes[2] // layout.blocks, axis=-1 if matrix == A else -2)


def check_batches(matrices: dict[str, Array]) -> None:
    """Check that the leading dimensions of matrices, by the names that an error shows, fit together."""
    try:
        np.broadcast_shapes(*[matrix.shape[:-2] for matrix in matrices.values()])
    except ValueError:
        shapes = ", ".join(f"{name} {matrix.shape[:-2]}" for name, matrix in matrices.items())
        raise ValueError(f"the batches do not fit together: {shapes}") from None
