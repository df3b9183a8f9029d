"""Launches that can be repeated without the chip: a seed and two descriptors for the inputs, and a digest of D.

The registers and the memory are drawn as bare words, without the library's layouts, so that an emulator with a wrong layout computes
another D than the chip.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import register_type
from ptxmma.matrices.emulator import emulate
from ptxmma.model import ElementType
from ptxmma_proof.silicon import transferred
from ptxmma_proof.silicon.drawn_operands import Builder, Operands, keyword
from ptxmma_proof.silicon.kernels import Chip, Kernel
from ptxmma_proof.silicon.products import Drawn
from ptxmma_proof.silicon.transferred import Transfer

#: Launches of the chip of ``spec/evidence/silicon.jsonl``: of warp-level instructions without a state space, and of some N of warpgroups'
#: instructions.
RECORDED = Path(__file__).parent.parent / "recorded" / "launches.jsonl"


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A launch that can be repeated.

    Attributes:
        instruction: canonical spelling.
        form: name of the operand form.
        constants: the constants, by the operands' names.
        seed: the seed of the words in registers and memory.
        image: bytes of shared memory.
        descriptors: the descriptors, by the operands' names, for shared memory that starts at 0.
        d: digest of D's registers.
    """

    instruction: str
    form: str = ""
    constants: dict[str, int] = msgspec.field(default_factory=dict)
    seed: int
    image: int = 0
    descriptors: dict[str, int] = msgspec.field(default_factory=dict)
    d: str


def read(path: Path = RECORDED) -> list[Launch]:
    """The launches in a file, one on each line.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is not a launch.
    """
    return msgspec.json.Decoder(Launch).decode_lines(path.read_bytes())


def write(path: Path, launches: Iterable[Launch]) -> None:
    """Write launches, one on each line.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_bytes(msgspec.json.Encoder().encode_lines(sorted(launches, key=lambda each: (each.instruction, each.form, each.seed))))


class Words(NamedTuple):
    """Registers by the operands' names, shared memory, and whether the addend counts."""

    registers: dict[str, Array]
    image: Array | None
    scale_d: bool


def record(chip: Chip, number: int, kernel: Kernel, seed: int) -> Launch:
    """Launch a kernel on the chip; the seed decides whether it adds the addend."""
    if kernel.instruction.operation != "multiply":
        made = transferred.drawn(kernel, seed)
        left = chip.run(number, made.registers, image=made.image, stride=made.stride)
        return Launch(instruction=kernel.instruction.canonical, form=kernel.form_name, seed=seed, d=digest(left))
    random = np.random.default_rng(seed)
    places = Builder(kernel, random, Drawn(kernel.instruction, random)).build() if kernel.descriptors else Operands()
    size = 0 if places.image is None else len(places.image)
    registers, image, scale_d = words(kernel, seed, size)
    left = chip.run(number, registers, image=image, descriptors=places.descriptors, scale_d=scale_d)
    return Launch(
        instruction=kernel.instruction.canonical, form=kernel.form_name, constants=dict(kernel.immediates), seed=seed, image=size,
        descriptors=places.descriptors, d=digest(left),
    )  # fmt: skip


def kernel_of(instruction: Instruction, launch: Launch) -> Kernel:
    """The kernel of a launch.

    Raises:
        StopIteration: the instruction has no such operand form.
    """
    kernels = (Kernel(instruction, form, launch.constants) for form in instruction.forms or (OperandForm("", "", ()),))
    return next(kernel for kernel in kernels if kernel.form_name == launch.form)


def drawn(kernel: Kernel, launch: Launch) -> Words | Transfer:
    """The operands of a launch."""
    if kernel.instruction.operation != "multiply":
        return transferred.drawn(kernel, launch.seed)
    return words(kernel, launch.seed, launch.image)


def emulated(kernel: Kernel, launch: Launch, given: Words | Transfer | None = None) -> str:
    """The digest of the emulator's result, from the operands of the launch or from those given.

    Raises:
        ValueError: the library refuses the operands.
    """
    operands = given or drawn(kernel, launch)
    if isinstance(operands, Transfer):
        return digest(transferred.emulated(kernel, operands))
    registers, image, scale_d = operands
    named: dict[str, Any] = {keyword(name): value for name, value in launch.constants.items()}
    for operand in kernel.inputs:
        words = registers[operand.name]
        if operand.kind == "metadata":
            named["metadata"] = words[..., 0]
        else:
            named["c" if operand.name == "d" else operand.name] = words
    named |= {name.partition("-")[0]: value for name, value in launch.descriptors.items()}
    if any(operand.kind == "predicate" for operand in kernel.form.operands):
        named["scale_d"] = scale_d
    return digest(emulate(kernel.instruction, memory=image, **named).d)


def digest(registers: Array) -> str:
    """The first 16 digits of the SHA-256 of the registers or the memory after a launch, little-endian."""
    return hashlib.sha256(np.ascontiguousarray(registers).tobytes()).hexdigest()[:16]


def words(kernel: Kernel, seed: int, image_bytes: int) -> Words:
    """The words of a launch."""
    random = np.random.default_rng(seed + 1)
    draw = Drawn(kernel.instruction, random)
    scale_d = bool(random.integers(4))
    registers = {operand.name: _registers(operand, kernel, draw, random) for operand in kernel.inputs}
    image = None
    if image_bytes:
        types = [Builder(kernel, random, draw).type(name.partition("-")[0]) for name in kernel.descriptors]
        image = _memory(types, image_bytes, draw, random)
    return Words(registers, image, scale_d)


def _memory(types: list[ElementType], size: int, draw: Drawn, random: np.random.Generator) -> Array:
    """Bytes that are small numbers in each of the types, since any of the matrices may lie anywhere."""
    count = size * 8 // types[0].bits
    if types[0] == types[-1] or types[0].form != "float":
        return _side_by_side(draw((count,), types[0], False), types[0], 8)
    codes = np.arange(1 << types[0].bits).astype(elements.bits_dtype(types[0]))
    halves = [np.nan_to_num(elements.numbers(codes, element), nan=9, posinf=9, neginf=9) * 2 for element in types]
    small = [codes[(np.abs(number) <= 4) & (number % 1 == 0)] for number in halves]
    return _side_by_side(random.choice(np.intersect1d(*small), count), types[0], 8)


def _registers(operand: Operand, kernel: Kernel, draw: Drawn, random: np.random.Generator) -> Array:
    if operand.kind == "metadata":
        metadata = kernel.instruction.metadata
        fields = random.choice([int(value, 2) for value in metadata.legal], (1, kernel.threads, 32 // metadata.width))
        return np.asarray((fields << np.arange(0, 32, metadata.width)).sum(-1, keepdims=True).astype(np.uint32))
    assert operand.element is not None
    width = register_type(kernel.instruction.database.spec, operand.register_types[0]).bits
    drawn = draw((1, kernel.threads, operand.registers, width // operand.element.bits), operand.element, operand.kind == "accumulator")
    registers = _side_by_side(drawn, operand.element, width)[..., 0]
    copied = operand.elements * kernel.threads > operand.rows * operand.cols * max(1, operand.computations)
    return operand.pack(operand.unpack(registers)) if copied else registers  # copies of an element are equal


def _side_by_side(drawn: Array, element: ElementType, width: int) -> Array:
    """Elements as words of ``width`` bits, the first one lowest."""
    codes = elements.codes(drawn, element)
    if element.bits >= 8:
        return np.ascontiguousarray(codes).view(f"u{width // 8}")
    each = 8 // element.bits
    parts = codes.reshape(*codes.shape[:-1], -1, each) << np.arange(0, 8, element.bits, dtype=np.uint8)
    return np.ascontiguousarray(parts.sum(-1).astype(np.uint8)).view(f"u{width // 8}")
