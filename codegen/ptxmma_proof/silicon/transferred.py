"""Loads, stores and transpositions of random words at random addresses: the library's result and the chip's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ptxmma.arrays.elements import Array
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import register_type
from ptxmma.matrices.emulator import emulate
from ptxmma_proof.silicon.kernels import Chip, Kernel

#: The alignment of a matrix's lines in bytes.  The manual asks for less, which is not enough for loads from shared memory
#: (erratum wmma-shared-alignment).
_LINE = 16
#: The address in threads whose addresses the instruction ignores.
_ANYTHING = 0xDEADBEE1


class Transfer(NamedTuple):
    """The operands of one launch."""

    given: dict[str, Any]  # as emulate takes it, by the operands' names
    registers: dict[str, Array]  # the registers, by name, (1, threads, registers); of addresses: bytes from the start of the memory
    image: Array | None = None  # memory before
    stride: int = 0


def run(chip: Chip, number: int, kernel: Kernel, seed: int) -> bool:
    """Return whether the chip's result equals the library's, bit for bit."""
    made = drawn(kernel, seed)
    left = chip.run(number, made.registers, image=made.image, stride=made.stride)
    return left.tobytes() == emulated(kernel, made).tobytes()


def emulated(kernel: Kernel, made: Transfer) -> Array:
    """The library's result: registers, (threads, registers), or the memory after a store."""
    left = emulate(kernel.instruction, **made.given)
    return np.ascontiguousarray(left.registers if left.memory is None else left.memory)


def drawn(kernel: Kernel, seed: int) -> Transfer:
    """The operands of a launch; the same for the same seed."""
    random = np.random.default_rng(seed)
    given: dict[str, Any] = {}
    registers: dict[str, Array] = {}
    image, stride = None, 0
    for operand in kernel.form.operands:
        if operand.kind == "address":
            places, size, stride = _places(kernel, operand, random)
            image = given["memory"] = random.integers(0, 256, size, np.uint8)
            registers[operand.name] = places.reshape(1, -1, 1)
            given[operand.name] = places if operand.layout else int(places[0])
        elif operand.kind == "stride":
            given[operand.name] = stride
        elif operand.access == "read":
            given[operand.name] = _words(kernel, operand, random)
            registers[operand.name] = given[operand.name][np.newaxis]
    return Transfer(given, registers, image, stride)


def _words(kernel: Kernel, operand: Operand, random: np.random.Generator) -> Array:
    words = register_type(kernel.instruction.database.spec, operand.register_types[0]).bits // 32
    return random.integers(0, 1 << 32, (kernel.threads, operand.registers * words), np.uint32).view(f"u{4 * words}")


def _places(kernel: Kernel, address: Operand, random: np.random.Generator) -> tuple[Array, int, int]:
    """The address of each thread, the bytes of memory that they need, and the stride in elements, if the instruction takes one."""
    if address.layout is not None:  # a row from each of the first threads: in any order, with gaps
        count = 1 << address.layout.to_axes.inputs["lane"]
        step = -(-address.row_bytes // address.alignment) * address.alignment
        places = np.full(kernel.threads, _ANYTHING, np.uint32)
        places[:count] = random.permutation(2 * count)[:count] * step
        return places, 2 * count * step, 0
    matrix = next(operand for operand in kernel.form.operands if operand.kind == "fragment")
    lines, length = (matrix.rows, matrix.cols) if kernel.instruction.qualifiers["layout"] == "row" else (matrix.cols, matrix.rows)
    alignment, stride = max(address.alignment, _LINE), length
    if any(operand.kind == "stride" for operand in kernel.form.operands):
        aligned = alignment * 8 // matrix.bits
        stride = -(-length // aligned) * aligned + aligned * int(random.integers(4))
    start = alignment * int(random.integers(4))
    return np.full(kernel.threads, start, np.uint32), start + lines * stride * matrix.bits // 8 + alignment, stride
