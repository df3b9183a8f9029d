"""What a multiplication leaves in its registers.

Integers and single bits are exact.  In floating point the order of accumulation and the rounding of sums are not specified, so that
no single value is promised but a bound around the exact one: see :mod:`ptxmma.matrices.arithmetic`.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.matrices import arithmetic, shared_memory, sparse
from ptxmma.matrices.arithmetic import Factors, Products
from ptxmma.model import ElementType, Semantics


class Emulated(msgspec.Struct, frozen=True, eq=False):
    """What an instruction leaves behind.

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

    def admits(self, registers: Any, chip: str | None = None) -> Array:
        """Which elements of D, (..., m, n), may be what these registers hold: by the manual, or as observed on a chip.

        Raises:
            ValueError: registers of another shape or width, a batch that does not fit, or a chip for which nothing is observed.
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
        _check_batches({"registers": held, "D": self.matrix})
        if d.element.form != "float":
            return np.asarray(held == self.matrix)
        with np.errstate(all="ignore"):
            near = np.abs(held - self.matrix) <= bound
        same = (held == self.matrix) | (np.isnan(held) & np.isnan(self.matrix))
        return np.asarray(near | same | np.isinf(bound))


def multiply(
    found: Instruction,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    metadata: Any = None,
    scale_a_data: Any = None,
    scale_b_data: Any = None,
    memory: Any = None,
    memory_start: int = 0,
    **constants: Any,
) -> Emulated:
    """Multiply; see :func:`ptxmma.emulate`."""
    machine = _Machine(found, _form(found, a), constants, memory, memory_start)
    scaled = any(operand.kind == "scale-data" for operand in machine.form.operands)
    for name, value, wanted in (
        ("a", a, True), ("b", b, True), ("metadata", metadata, found.sparse),
        ("scale_a_data", scale_a_data, scaled), ("scale_b_data", scale_b_data, scaled),
    ):  # fmt: skip
        machine.check_present(name, value, wanted)

    held = {"a": machine.codes("a", a), "b": machine.codes("b", b), "c": machine.addend(c)}
    if found.sparse:
        held["metadata"] = machine.metadata(metadata)
    if scaled:
        held |= {"scale_a_data": machine.scales("a", scale_a_data), "scale_b_data": machine.scales("b", scale_b_data)}
    _check_batches(held)
    result = machine.floats(held) if machine.type("a").form == "float" else machine.integers(held)
    tensor = next((given for given in (a, b, c) if elements.is_tensor(given)), None)
    return msgspec.structs.replace(result, d=elements.like(result.d, tensor))


def _form(found: Instruction, a: Any) -> OperandForm:
    """The operand list that fits where A comes from."""
    described = isinstance(a, shared_memory.Descriptor) or (not isinstance(a, bool) and isinstance(a, (int, np.integer)))
    for form in found.forms:
        if (form.name == "descriptor") == described:
            return form
    raise ValueError(f"a must be an array of registers, not {a!r}: {found.canonical} takes no descriptor of A")


class _Machine:
    """One instruction with one operand list: its operands read and its result written."""

    def __init__(self, found: Instruction, form: OperandForm, constants: dict[str, Any], memory: Any, memory_start: int) -> None:
        self.instruction = found
        self.form = form
        if memory is not None and not any(operand.kind == "descriptor" for operand in form.operands):
            raise ValueError(f"{found.canonical} reads no shared memory: leave memory out")
        self._memory, self._memory_start = memory, memory_start
        self._names = {operand.name.replace("-", "_") if operand.kind != "selector" else "selector": operand for operand in form.operands}
        self._constants = {name: self._constant(name, value) for name, value in constants.items()}

    def _constant(self, name: str, value: Any) -> int:
        """A constant that the form has, checked."""
        operand = self._names.get(name)
        if operand is None or operand.immediates is None:
            raise ValueError(f"{name} = {value}: {self.instruction.canonical} has no such operand in {self.form.syntax!r}")
        found = int(value) if operand.kind == "predicate" and isinstance(value, np.bool_) else integer(name, value)
        if found not in operand.immediates:
            allowed = ", ".join(map(str, operand.immediates))
            raise ValueError(f"{name} = {value} is not allowed for {self.instruction.canonical}; allowed: {allowed}")
        return found

    def constant(self, name: str, absent: int = 0) -> int:
        """A constant as given, or else its default, the same as a wrapper's; ``absent`` where there is neither."""
        operand = self._names.get(name)
        usual = absent if operand is None or operand.default is None else operand.default
        return self._constants.get(name, usual)

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

    def codes(self, matrix: str, given: Any) -> Array:
        """The bits of A's (..., m, k) or B's elements (..., k, n), of a sparse A those that are stored (..., m, k * kept / chunk).

        The low bits that the instruction ignores are 0.
        """
        operand, element = self._names.get(matrix), self.type(matrix)
        held = self._described(matrix, given) if operand is None else operand.unpack(given)
        bits = elements.codes(held, element, matrix)
        kept: Array = bits & ~bits.dtype.type((1 << self.semantics.truncates) - 1)
        return kept

    def _described(self, matrix: str, given: Any) -> Array:
        """A or B as a descriptor describes it."""
        if getattr(given, "shape", ()) != ():
            raise ValueError(f"{matrix} is one descriptor for all threads, not an array of shape {tuple(given.shape)}")
        if not isinstance(given, shared_memory.Descriptor):
            wanted = "a descriptor: an integer or a ptxmma.shared_memory.Descriptor"
            if isinstance(given, (bool, np.bool_)):
                raise TypeError(f"{matrix} must be {wanted}, not {type(given).__name__}")
            given = integer(matrix, given, wanted)
        if self._memory is None:
            raise ValueError(f"{matrix} is a descriptor: pass the image of shared memory that it describes as memory")
        m, n, k = self._shape()
        x, depth = (m, self._stored()) if matrix == "a" else (n, k)
        majorness = self._majorness(matrix)
        database = self.instruction.database
        held = shared_memory.read_operand(
            given, self._memory, self.type(matrix), x, depth, majorness, self._memory_start, database=database
        )
        return held if matrix == "a" else held.swapaxes(-1, -2)

    def _majorness(self, matrix: str) -> str:
        """How a matrix lies in shared memory: as its constant says, or K-major."""
        for name, operand in self._names.items():
            if operand.kind == "majorness" and operand.of == matrix:
                value = self.constant(name)
                return next(meaning for meaning, each in operand.meanings.items() if each == value)
        return "K"

    def addend(self, given: Any) -> Array:
        """C's numbers, (..., m, n)."""
        c = self._names.get("c", self.d)
        assert c.element is not None
        if given is None or not self.constant("scale_d", 1):
            m, n, _ = self._shape()
            return np.zeros((m, n), np.float64 if c.element.form == "float" else np.int64)
        return elements.numbers(elements.codes(c.unpack(given), c.element, "c"), c.element)

    def metadata(self, registers: Any) -> Array:
        """Row-major metadata (..., m, chunks / 2), all of it legal."""
        held, selector = self.instruction.metadata, self.constant("selector")
        registers = elements.as_array(registers, "metadata")
        if found := held.problems(registers, selector):
            raise ValueError(f"the behaviour of {self.instruction.canonical} is undefined with this metadata: {found[0]}")
        return np.asarray(held.unpack(registers, selector))

    def scales(self, matrix: str, registers: Any) -> Array:
        """The bits of a scale factor for each element of A (..., m, k) or B (..., k, n)."""
        held = self.instruction.scales(matrix)
        factors = held.unpack(registers, self.constant(f"byte_id_{matrix}"), self.constant(f"thread_id_{matrix}"))
        return np.repeat(elements.codes(factors, held.element), self._shape()[2] // held.blocks, axis=-1 if matrix == "a" else -2)

    def _expanded(self, held: dict[str, Array]) -> tuple[Array, Array]:
        """The bits of all of A (..., m, k), zeros where a sparse A keeps nothing, and which elements it keeps."""
        stored = held["a"]
        if not self.instruction.sparse:
            return stored, np.ones(stored.shape, bool)
        database, rows = self.instruction.database, held["metadata"]
        pattern = sparse.pattern(self.instruction.metadata.granularity.name, database=database)
        kept = sparse.decompress(np.ones((*rows.shape[:-1], self._stored()), np.uint8), rows, pattern).astype(bool)
        batch = np.broadcast_shapes(stored.shape[:-2], rows.shape[:-2])
        values, fields = (np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (stored, rows))
        return sparse.decompress(values, fields, pattern), kept

    def _stored(self) -> int:
        """Elements of each row of A that are stored."""
        k = self._shape()[2]
        if not self.instruction.sparse:
            return k
        pattern = self.instruction.metadata.granularity
        return k * pattern.kept // pattern.chunk

    def _shape(self) -> tuple[int, int, int]:
        extents = self.instruction.extents
        return extents["m"], extents["n"], extents["k"]

    # --- results ------------------------------------------------------------------------------------------------------------

    def integers(self, held: dict[str, Array]) -> Emulated:
        """D of integers or single bits."""
        codes = {"a": self._expanded(held)[0], "b": held["b"]}
        a, b = (elements.numbers(bits, self.type(name)).astype(np.float64) for name, bits in codes.items())
        products = a @ b  # exact: far below 2**53
        if self.semantics.multiply == "exclusive or":
            products = a.sum(-1, keepdims=True) + b.sum(-2, keepdims=True) - 2 * products
        total = products.astype(np.int64) + held["c"]
        limits = np.iinfo(np.int32)
        if self.semantics.overflow == "saturate":
            total = np.clip(total, limits.min, limits.max)
        d = total.astype(np.int32)
        return Emulated(self.instruction, self.d.pack(d), d.astype(np.int64), np.zeros(total.shape), {})

    def floats(self, held: dict[str, Array]) -> Emulated:
        """D of floating-point numbers."""
        semantics, result = self.semantics, self.type("d")
        a, kept = self._expanded(held)
        products = Products(self._factors("a", a, held), kept, self._factors("b", held["b"], held), held["c"], self.c_type)
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
        with np.errstate(all="ignore"):
            rounded = value.astype(elements.dtype(result))
        return Emulated(self.instruction, self.d.pack(rounded), value, bound, observed)

    def _factors(self, matrix: str, codes: Array, held: dict[str, Array]) -> Factors:
        """The elements of A or B, negated where a constant says so, with their scale factors."""
        factors = Factors.of(codes, self.type(matrix), self.constant(f"imm_scale_{matrix}", 1))
        scales = held.get(f"scale_{matrix}_data")
        return factors if scales is None else factors.times(Factors.of(scales, self.instruction.scales(matrix).element))


def _check_batches(matrices: dict[str, Array]) -> None:
    """The leading dimensions fit together."""
    try:
        np.broadcast_shapes(*[matrix.shape[:-2] for matrix in matrices.values()])
    except ValueError:
        shapes = ", ".join(f"{name} {matrix.shape[:-2]}" for name, matrix in matrices.items())
        raise ValueError(f"the batches do not fit together: {shapes}") from None
