"""What a matrix instruction leaves in its registers: the answer that a kernel can be tested against without a GPU.

Integers and single bits are exact.  In floating point the order of accumulation and the rounding of sums are not specified, so that
no single value is promised but a bound around the exact one: see :mod:`ptxmma.arithmetic`.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import msgspec
import numpy as np

from ptxmma import arithmetic, elements, layouts, shared_memory, sparse
from ptxmma.arithmetic import Factors, Products
from ptxmma.elements import Array
from ptxmma.instructions import Instruction, OperandForm
from ptxmma.instructions import instruction as find
from ptxmma.model import ElementType, Semantics
from ptxmma.operands import Operand, register_type

_MAJORNESS = ("K", "MN")  # by the value of imm-trans-a and imm-trans-b


class Emulated(msgspec.Struct, frozen=True, eq=False):
    """What an instruction leaves behind.

    Attributes:
        instruction: the instruction.
        d: the registers of D, (..., threads, registers), a tensor if a, b or c was one.  Floating point: the exact sum, rounded to
            nearest once.
        matrix: D as a matrix of numbers, (..., m, n): ``int64``, or ``float64`` before that rounding.
        bound: how far from ``matrix`` the manual lets each element be, ``float64`` (..., m, n); 0 for integers.
        observed: the same as chips were seen to compute, by the chip's name: subnormal inputs count there, and some instructions keep
            fewer bits than the manual promises.
    """

    instruction: Instruction
    d: Array
    matrix: Array
    bound: Array
    observed: dict[str, Array]

    def admits(self, registers: Any, chip: str | None = None) -> Array:
        """Which elements of D, (..., m, n), may be what these registers hold: by the manual, or as observed on a chip.

        Raises:
            ValueError: registers of another shape or width, or a chip for which nothing is observed.
        """
        if chip is not None and chip not in self.observed:
            known = ", ".join(self.observed) or "none"
            raise ValueError(
                f"nothing is observed of {chip!r} that differs from the manual for {self.instruction.canonical}; known: {known}"
            )
        bound = self.bound if chip is None else self.observed[chip]
        d = self.instruction.operand("d")
        assert d.element is not None
        held = elements.numbers(elements.codes(d.unpack(registers), d.element), d.element)
        if d.element.form != "float":
            return np.asarray(held == self.matrix)
        with np.errstate(invalid="ignore"):
            near = np.abs(held - self.matrix) <= bound
        same = (held == self.matrix) | (np.isnan(held) & np.isnan(self.matrix))
        return np.asarray(near | same | np.isinf(bound))


def emulate(
    instruction: Instruction | str,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    metadata: Any = None,
    selector: int = 0,
    scale_a_data: Any = None,
    byte_id_a: int = 0,
    thread_id_a: int = 0,
    scale_b_data: Any = None,
    byte_id_b: int = 0,
    thread_id_b: int = 0,
    scale_d: bool = True,
    imm_scale_a: int = 1,
    imm_scale_b: int = 1,
    imm_trans_a: int = 0,
    imm_trans_b: int = 0,
    memory: Any = None,
    memory_start: int = 0,
) -> Emulated:
    """Execute one instruction for all its threads.

    Registers are arrays (..., threads, registers) as :meth:`Operand.pack` makes them, of any dtype of the registers' width; leading
    dimensions are a batch.  Except for ``metadata`` and ``selector`` the operands have their names of PTX.

    Args:
        instruction: an instruction or a spelling of one.
        a: registers, or a descriptor (an integer or a :class:`ptxmma.shared_memory.Descriptor`) where the instruction takes one.
        b: the same.
        c: registers of the addend; for wgmma those of D before.  None stands for zeros.
        metadata: the metadata registers of a sparse instruction, (..., threads).
        selector: its sparsity selector.
        scale_a_data: the registers with A's scale factors of a block-scaled instruction, (..., threads).
        byte_id_a: which of their bytes hold them.
        thread_id_a: which threads of each quad.
        scale_b_data: the same for B.
        byte_id_b: the same for B.
        thread_id_b: the same for B.
        scale_d: wgmma: false leaves the addend out.
        imm_scale_a: wgmma: -1 negates A.
        imm_scale_b: wgmma: -1 negates B.
        imm_trans_a: wgmma: 1 reads A MN-major.
        imm_trans_b: wgmma: 1 reads B MN-major.
        memory: an image of shared memory that descriptors read, bytes.
        memory_start: shared address of its first byte.

    Raises:
        UnknownInstruction: no such instruction.
        ValueError: an operand that the instruction does not have, lacks, or cannot take: wrong shape or width, a selector, id or
            constant out of range, illegal metadata, a descriptor that leaves the memory.
    """
    found = instruction if isinstance(instruction, Instruction) else find(instruction)
    if found.variant.shape is None:
        raise ValueError(f"{found.canonical} multiplies no matrices")
    given = {
        "selector": selector, "byte_id_a": byte_id_a, "thread_id_a": thread_id_a, "byte_id_b": byte_id_b, "thread_id_b": thread_id_b,
        "scale_d": scale_d, "imm_scale_a": imm_scale_a, "imm_scale_b": imm_scale_b, "imm_trans_a": imm_trans_a,
        "imm_trans_b": imm_trans_b,
    }  # fmt: skip
    machine = _Machine(found, _form(found, a), memory, memory_start)
    machine.check_constants(given)
    machine.check_present("metadata", metadata, found.sparse)
    scaled = any(operand.kind == "scale-data" for operand in machine.form.operands)
    machine.check_present("scale_a_data", scale_a_data, scaled)
    machine.check_present("scale_b_data", scale_b_data, scaled)

    left, kept = machine.a(a, _MAJORNESS[imm_trans_a], metadata, selector)
    right = machine.b(b, _MAJORNESS[imm_trans_b])
    addend = machine.addend(c if scale_d else None)
    _check_batches(a=left, b=right, c=addend)
    if machine.type("a").form != "float":
        return machine.integers(left, right, addend)
    scales = (machine.scales("a", scale_a_data, byte_id_a, thread_id_a), machine.scales("b", scale_b_data, byte_id_b, thread_id_b))
    factors = (Factors.of(imm_scale_a * left, machine.type("a"), scales[0]), Factors.of(imm_scale_b * right, machine.type("b"), scales[1]))
    return machine.floats(Products(factors[0], kept, factors[1], addend, machine.c_type))


def _form(found: Instruction, a: Any) -> OperandForm:
    """The operand list that fits where A comes from."""
    described = isinstance(a, shared_memory.Descriptor) or (not isinstance(a, bool) and isinstance(a, (int, np.integer)))
    for form in found.forms:
        if any(operand.name == "a-desc" for operand in form.operands) == described:
            return form
    raise ValueError(f"a must be an array of registers, not {a!r}: {found.canonical} takes no descriptor of A")


class _Machine:
    """One instruction with one operand list: its operands read and its result written."""

    def __init__(self, found: Instruction, form: OperandForm, memory: Any, memory_start: int) -> None:
        self.instruction = found
        self.form = form
        if memory is not None and not any(operand.kind == "descriptor" for operand in form.operands):
            raise ValueError(f"{found.canonical} reads no shared memory: leave memory out")
        self._memory, self._memory_start = memory, memory_start
        self._names = {operand.name.replace("-", "_") if operand.kind != "selector" else "selector": operand for operand in form.operands}

    def check_constants(self, given: dict[str, int]) -> None:
        """The constants that the form has are legal, and those that it does not have keep their defaults."""
        for name, value in given.items():
            operand = self._names.get(name)
            legal = _NEUTRAL[name] if operand is None else operand.immediates
            assert legal is not None
            try:
                fits = operator.index(value) in legal
            except TypeError:
                raise ValueError(f"{name} must be an integer, not {type(value).__name__}") from None
            if not fits and operand is None:
                raise ValueError(f"{name} = {value}: {self.instruction.canonical} has no such operand in {self.form.syntax!r}")
            if not fits:
                raise ValueError(f"{name} = {value} is not allowed for {self.instruction.canonical}; allowed: {', '.join(map(str, legal))}")

    def check_present(self, name: str, value: Any, wanted: bool) -> None:
        """An operand is given exactly where the instruction has it."""
        if (value is not None) != wanted:
            raise ValueError(
                f"{self.instruction.canonical} {'needs' if wanted else 'takes no'} {name}; its operands are {self.form.syntax}"
            )

    def type(self, matrix: str) -> ElementType:
        """The element type of A ("a"), B, C or D."""
        spec = self.instruction.database.spec
        return layouts.element_type(spec, self.instruction.qualifiers[f"{matrix}type"])

    @property
    def d(self) -> Operand:
        """The result."""
        return self._names["d"]

    @property
    def c_type(self) -> ElementType:
        """The type of the addend: wgmma has it in D."""
        return self.type("c" if "c" in self._names else "d")

    @functools.cached_property
    def semantics(self) -> Semantics:
        """What the arithmetic promises."""
        return self.instruction.semantics()[0]

    # --- operands -----------------------------------------------------------------------------------------------------------

    def a(self, given: Any, majorness: str, metadata: Any, selector: int) -> tuple[Array, Array]:
        """A's numbers (..., m, k), zeros where a sparse A keeps nothing, and which of its elements take part."""
        m, _, k = self._shape()
        if not self.instruction.sparse:
            numbers = self._numbers("a", given, m, k, majorness)
            return numbers, np.ones(numbers.shape, bool)
        held = self.instruction.metadata
        pattern = held.granularity
        values = self._numbers("a", given, m, k * pattern.kept // pattern.chunk, majorness)
        registers = elements.as_array(metadata, "metadata")
        if found := held.problems(registers, selector):
            raise ValueError(f"the behaviour of {self.instruction.canonical} is undefined with this metadata: {found[0]}")
        values, rows = _batched(values, held.unpack(registers, selector))
        kept = sparse.decompress(np.ones(values.shape, np.uint8), rows, pattern.name).astype(bool)
        return sparse.decompress(values, rows, pattern.name), kept

    def b(self, given: Any, majorness: str) -> Array:
        """B's numbers, (..., k, n)."""
        _, n, k = self._shape()
        return self._numbers("b", given, k, n, majorness)

    def addend(self, given: Any) -> Array:
        """C's numbers, (..., m, n)."""
        c = self._names.get("c", self.d)
        assert c.element is not None
        if given is None:
            given = np.zeros((layouts.THREADS[self.instruction.variant.instruction.scope], c.registers), f"u{self._register_bytes(c)}")
        return elements.numbers(elements.codes(c.unpack(given), c.element, "c"), c.element)

    def scales(self, matrix: str, registers: Any, byte_id: int, thread_id: int) -> Array | float:
        """A scale factor for each element of A (..., m, k) or B (..., k, n)."""
        if registers is None:
            return 1.0
        held = self.instruction.scales(matrix)
        numbers = elements.numbers(elements.codes(held.unpack(registers, byte_id, thread_id), held.element), held.element)
        return np.repeat(numbers, self._shape()[2] // held.blocks, axis=-1 if matrix == "a" else -2)

    def _numbers(self, matrix: str, given: Any, rows: int, cols: int, majorness: str) -> Array:
        """A's or B's numbers, without the low bits that the instruction ignores."""
        element = self.type(matrix)
        operand = self._names.get(matrix)
        if operand is not None:
            if given is None:
                raise ValueError(f"{self.instruction.canonical} needs {matrix}; its operands are {self.form.syntax}")
            held = operand.unpack(given)
        elif self._memory is None:
            raise ValueError(f"{matrix} is a descriptor: pass the image of shared memory that it describes as memory")
        else:
            x, k = (rows, cols) if matrix == "a" else (cols, rows)
            held = shared_memory.read_operand(
                given, self._memory, element, x, k, majorness, self._memory_start, database=self.instruction.database
            )
            held = held if matrix == "a" else held.swapaxes(-1, -2)
        bits = elements.codes(held, element, matrix)
        return elements.numbers(bits & ~bits.dtype.type((1 << self.semantics.truncates) - 1), element).astype(np.float64)

    def _register_bytes(self, operand: Operand) -> int:
        return register_type(self.instruction.database.spec, operand.register_types[0]).bits // 8

    def _shape(self) -> tuple[int, int, int]:
        assert self.instruction.shape is not None
        return self.instruction.shape

    # --- results ------------------------------------------------------------------------------------------------------------

    def integers(self, a: Array, b: Array, c: Array) -> Emulated:
        """D of integers or single bits, from the numbers of A, B and C."""
        products = a @ b  # exact: far below 2**53
        if self.semantics.multiply == "exclusive or":
            products = a.sum(-1, keepdims=True) + b.sum(-2, keepdims=True) - 2 * products
        total = products.astype(np.int64) + c
        limits = np.iinfo(np.int32)
        if self.semantics.overflow == "saturate":
            total = np.clip(total, limits.min, limits.max)
        held = total.astype(np.int32)
        return Emulated(self.instruction, self.d.pack(held), held.astype(np.int64), np.zeros(total.shape), {})

    def floats(self, products: Products) -> Emulated:
        """D of floating-point numbers."""
        semantics, result = self.semantics, self.type("d")
        sums = layouts.element_type(self.instruction.database.spec, semantics.sums)
        nearest = semantics.rounds == "nearest"
        known = "subnormal inputs" not in semantics.unspecified
        bound = arithmetic.bound(products, sums, result, nearest=nearest, subnormals=known)
        observed = {}
        for seen in semantics.observed:
            if seen.target in self.instruction.accepted_by():
                observed[seen.chip] = (
                    arithmetic.cut_off_bound(products, seen.fraction_bits, result)
                    if seen.fraction_bits
                    else arithmetic.chip_bound(products, sums, result)
                )
        value = products.value()
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = value.astype(elements.dtype(result))
        return Emulated(self.instruction, self.d.pack(rounded), value, bound, observed)


#: The values of operands that an instruction does not have.
_NEUTRAL = {
    "selector": (0,), "byte_id_a": (0,), "thread_id_a": (0,), "byte_id_b": (0,), "thread_id_b": (0,), "scale_d": (1,),
    "imm_scale_a": (1,), "imm_scale_b": (1,), "imm_trans_a": (0,), "imm_trans_b": (0,),
}  # fmt: skip


def _check_batches(**matrices: Array) -> None:
    """The leading dimensions fit together."""
    try:
        np.broadcast_shapes(*[matrix.shape[:-2] for matrix in matrices.values()])
    except ValueError:
        shapes = ", ".join(f"{name} {matrix.shape[:-2]}" for name, matrix in matrices.items())
        raise ValueError(f"the batches do not fit together: {shapes}") from None


def _batched(*arrays: Array) -> list[Array]:
    """The arrays with equal leading dimensions, all but the last two."""
    batch = np.broadcast_shapes(*[array.shape[:-2] for array in arrays])
    return [np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in arrays]
