"""Reads and checks the operands of one multiplication: as bits and numbers of whole matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.matrices import shared_memory
from ptxmma.matrices.product_operands import Multiplicand, argument, product_operands
from ptxmma.model import ElementType, Semantics


class GivenOperands:
    """One instruction with one operand list, its constants, and the memory that its descriptors read.

    Operands go by the names of the emulator's parameters: see :func:`ptxmma.matrices.product_operands.argument`.
    """

    def __init__(self, instruction: Instruction, form: OperandForm, constants: dict[str, Any], memory: Any, memory_start: int) -> None:
        self.instruction = instruction
        self.form = form
        if memory is not None and not any(operand.kind == "descriptor" for operand in form.operands):
            raise ValueError(f"{instruction.canonical} reads no shared memory: leave memory out")
        self._memory, self._memory_start = memory, memory_start
        self.product = product_operands(instruction)
        self._operands = {argument(self.product, operand): operand for operand in form.operands}
        self._constants = {name: self._constant(name, value) for name, value in constants.items()}

    def _constant(self, name: str, value: Any) -> int:
        """A constant of the operand list, checked."""
        operand = self._operands.get(name)
        if operand is None or operand.immediates is None:
            raise ValueError(f"{name} = {value}: {self.instruction.canonical} has no such operand in {self.form.syntax!r}")
        number = int(value) if operand.kind == "predicate" and isinstance(value, np.bool_) else integer(name, value)
        if number not in operand.immediates:
            allowed = ", ".join(map(str, operand.immediates))
            raise ValueError(f"{name} = {value} is not allowed for {self.instruction.canonical}; allowed: {allowed}")
        return number

    def constant(self, name: str, absent: int = 0) -> int:
        """A constant as given, or its default, which is that of the wrappers; ``absent`` without either."""
        operand = self._operands.get(name)
        usual = absent if operand is None or operand.default is None else operand.default
        return self._constants.get(name, usual)

    def check_present(self, name: str, value: Any) -> None:
        """Check that an operand is given if and only if the instruction has it."""
        has = name in self._operands
        if (value is not None) != has:
            raise ValueError(f"{self.instruction.canonical} {'needs' if has else 'takes no'} {name}; its operands are {self.form.syntax}")

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

    def codes(self, name: str, given: Any) -> Array:
        """The bits of A's (..., m, k) or B's elements (..., k, n), of a sparse A those that are stored (..., m, k * kept / chunk).

        The low bits that the instruction ignores are 0.
        """
        operand, matrix = self._operands[name], self.multiplicand(name)
        values = self._described(name, matrix, given) if operand.kind == "descriptor" else operand.unpack(given)
        bits = elements.codes(values, matrix.element, name)
        kept: Array = bits & ~bits.dtype.type((1 << self.semantics.truncates) - 1)
        return kept

    def multiplicand(self, name: str) -> Multiplicand:
        """``"a"`` or ``"b"``."""
        return self.product.a if name == "a" else self.product.b

    def _described(self, name: str, matrix: Multiplicand, given: Any) -> Array:
        """A or B as a descriptor describes it."""
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
            given, self._memory, matrix.element, matrix.lines, matrix.depth, self._majorness(name), self._memory_start,
            database=self.instruction.database,
        )  # fmt: skip
        return values if name == "a" else values.swapaxes(-1, -2)

    def _majorness(self, name: str) -> str:
        """The majorness of a matrix in shared memory: that of its constant, or K."""
        operand = self._operands.get(f"imm_trans_{name}")
        if operand is None:
            return "K"
        value = self.constant(f"imm_trans_{name}")
        return next(meaning for meaning, number in operand.meanings.items() if number == value)

    def addend(self, given: Any) -> Array:
        """C's numbers, (..., m, n)."""
        if given is None or not self.constant("scale_d", 1):
            m, n, _ = self.sizes
            return np.zeros((m, n), np.float64 if self.c_type.form == "float" else np.int64)
        return elements.numbers(elements.codes(self.product.c.unpack(given), self.c_type, "c"), self.c_type)

    def metadata(self, registers: Any) -> Array:
        """Row-major metadata (..., m, chunks / 2), all of it legal."""
        layout, selector = self.instruction.metadata, self.constant("selector")
        registers = elements.as_array(registers, "metadata")
        if problems := layout.problems(registers, selector):
            raise ValueError(f"the behaviour of {self.instruction.canonical} is undefined with this metadata: {problems[0]}")
        return np.asarray(layout.unpack(registers, selector))

    def scales(self, name: str, registers: Any) -> Array:
        """The bits of a scale factor for each element of A (..., m, k) or B (..., k, n)."""
        layout = self.instruction.scales(self.multiplicand(name).name)
        factors = layout.unpack(registers, self.constant(f"byte_id_{name}"), self.constant(f"thread_id_{name}"))
        return np.repeat(elements.codes(factors, layout.element), self.sizes[2] // layout.blocks, axis=-1 if name == "a" else -2)


def check_batches(matrices: dict[str, Array]) -> None:
    """Check that the leading dimensions fit together."""
    try:
        np.broadcast_shapes(*[matrix.shape[:-2] for matrix in matrices.values()])
    except ValueError:
        shapes = ", ".join(f"{name} {matrix.shape[:-2]}" for name, matrix in matrices.items())
        raise ValueError(f"the batches do not fit together: {shapes}") from None
