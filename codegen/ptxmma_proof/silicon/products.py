"""Matrix products that are exact in every type, so that every misplaced element shows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.model import ElementType
from ptxmma_proof.silicon.drawn_operands import Builder, Operands
from ptxmma_proof.silicon.kernels import Chip, Kernel


class Result(NamedTuple):
    """The outcome of one launch: its operands, the number of elements of D, and the number of wrong ones."""

    operands: Operands
    elements: int
    wrong: int


def run(chip: Chip, number: int, kernel: Kernel, seed: int, swizzle: str | None = None) -> Result:
    """Launch with random whole numbers, and compare with NumPy's product of the matrices."""
    random = np.random.default_rng(seed)
    made = Builder(kernel, random, Drawn(kernel.instruction, random), swizzle=swizzle).build()
    registers = chip.run(number, made.registers, image=made.image, descriptors=made.descriptors, scale_d=made.scale_d)
    d = kernel.instruction.operand("d")
    assert d.element is not None
    computed = elements.numbers(elements.codes(d.unpack(registers), d.element), d.element)
    wanted = np.broadcast_to(product(kernel, made), computed.shape)
    return Result(made, wanted.size, int((computed != wanted).sum()))


class Drawn:
    """Draws whole numbers: integers of the whole range, and floating-point numbers so small that no sum is rounded."""

    def __init__(self, instruction: Instruction, random: np.random.Generator) -> None:
        self._instruction, self._random = instruction, random

    def __call__(self, shape: tuple[int, ...], element: ElementType, addend: bool) -> Array:
        """A matrix of a type, e.g. of A, or of the addend."""
        random = self._random
        if element.form == "float":
            most = self._largest(element, addend)
            return random.integers(-most, most, shape, endpoint=True).astype(np.float64).astype(elements.dtype(element))
        bits = random.integers(0, 1 << element.bits, shape, np.uint64)
        if addend and random.integers(2):  # next to the limits, where sums wrap or saturate
            half = 1 << element.bits - 1
            bits = (half + random.integers(-(1 << 16), 1 << 16, shape)).astype(np.uint64)
        return elements.typed(bits.astype(elements.bits_dtype(element)), element)

    def _largest(self, element: ElementType, addend: bool) -> int:
        """The largest number with which every partial sum is exact."""
        assert self._instruction.shape is not None
        k = self._instruction.shape[2]
        room = 1 << self._bits() - 2  # half of the sum for the products, half for the addend
        most = room if addend else math.isqrt(room // k)
        return min(most, 2 << element.mantissa, 1 << 10)

    def _bits(self) -> int:
        """Bits of the shortest significand of a sum: of C's or D's type, or what chips were observed to keep."""
        spec, qualifiers = self._instruction.database.spec, self._instruction.qualifiers
        types = {qualifiers[name] for name in ("ctype", "dtype") if name in qualifiers}
        kept = [layouts.element_type(spec, name).mantissa for name in types]
        kept += [seen.fraction_bits for entry in self._instruction.semantics() for seen in entry.observed if seen.fraction_bits]
        return 1 + min(kept)


def product(kernel: Kernel, made: Operands) -> Array:
    """D as numbers, (batch, m, n): the product of the matrices and the addend, by NumPy."""
    a, b = made.matrices["a"], made.matrices["b"]
    semantics = kernel.instruction.semantics()[0]
    if semantics.bitwise == "xor":
        total = (a[..., :, :, np.newaxis] ^ b[..., np.newaxis, :, :]).sum(-2)
    else:
        total = a @ b * made.keywords.get("imm_scale_a", 1) * made.keywords.get("imm_scale_b", 1)
    if made.scale_d:
        total = total + made.matrices["c"]
    d = kernel.instruction.operand("d").element
    assert d is not None
    if d.form == "float":
        return np.asarray(total)
    least, most = -(1 << d.bits - 1), (1 << d.bits - 1) - 1
    if semantics.overflow == "saturate":
        return np.asarray(np.clip(total, least, most))
    return np.asarray((total - least) % (1 << d.bits) + least)
