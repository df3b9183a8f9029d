"""The emulator against the chip: every instruction that sm_90a runs, every operand form and selector, random operands."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernels import Chip, Kernel

import ptxmma
from ptxmma import elements, layouts, shared_memory, sparse
from ptxmma.elements import Array
from ptxmma.emulator import Emulated, emulate
from ptxmma.instructions import Instruction
from ptxmma.model import ElementType
from ptxmma.operands import Operand
from ptxmma.shared_memory import SharedLayout

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]
_BATCH = 4
#: wgmma with every combination of its constants; other N have the defaults.
_N_WITH_ALL_CONSTANTS = 24
_SWIZZLES = ("none", "32B", "64B", "128B")
_FAMILIES = ("mma", "mma.sp", "wgmma", "wgmma.sp")


def kernels(family: str) -> Iterator[Kernel]:
    """Every instruction of a family, every operand form, all selectors; wgmma's other constants for one N."""
    for instruction in ptxmma.instructions(family=family, target="sm_90a"):
        if instruction.shape is None:
            continue
        for form in instruction.forms:
            choices: dict[str, Any] = {}
            for operand in form.operands:
                every = operand.kind == "immediate" and instruction.shape[1] == _N_WITH_ALL_CONSTANTS
                if operand.kind == "selector" or every:
                    choices[operand.name] = operand.immediates
            for values in itertools.product(*choices.values()):
                yield Kernel(instruction, form, dict(zip(choices, values, strict=True)))


class Case:
    """Random operands of one kernel, for the chip and for the emulator."""

    def __init__(self, kernel: Kernel, seed: int) -> None:
        self._kernel = kernel
        self._random = np.random.default_rng(seed)
        instruction = kernel.instruction
        self._spread = seed % 4  # narrow, wide, a few large among many small, and next to the smallest numbers
        self.registers: dict[str, Array] = {}
        self.arguments: dict[str, Any] = {}
        self.image: Array | None = None
        self.descriptors: dict[str, int] = {}
        self._swizzle = _SWIZZLES[seed // 4 % 4]
        self.arguments |= {_keyword(name): value for name, value in kernel.immediates.items()}
        self.scale_d = True
        names = [operand.name for operand in kernel.form.operands]
        if "scale-d" in names:
            self.scale_d = self.arguments["scale_d"] = bool(self._random.integers(4))
        for operand in kernel.inputs:
            if operand.kind == "metadata":
                self._metadata(operand, instruction)
            else:
                self._fragment(operand)
        if kernel.descriptors:
            self._memory(instruction)

    def _fragment(self, operand: Operand) -> None:
        assert operand.element is not None
        computations = (operand.computations,) if operand.computations > 1 else ()
        matrix = self._values(
            (_BATCH, *computations, operand.rows, operand.cols), operand.element, accumulator=operand.kind == "accumulator"
        )
        packed = operand.pack(matrix)
        self.registers[operand.name] = packed
        self.arguments["c" if operand.name == "d" else operand.name] = packed

    def _metadata(self, operand: Operand, instruction: Instruction) -> None:
        metadata = instruction.metadata
        legal = [int(value, 2) for value in metadata.legal]
        fields = self._random.choice(legal, (_BATCH, metadata.rows, metadata.chunks)).astype(np.uint8)
        selector = self._kernel.immediates.get(operand.name.replace("sp-meta", "sp-sel") if operand.name == "sp-meta" else "f", 0)
        registers = metadata.pack(sparse.from_fields(fields), selector)
        held = metadata.pack(sparse.from_fields(np.full_like(fields, 15)), selector) != 0
        poison = self._random.integers(0, 1 << 32, registers.shape, np.uint32)  # what other lanes hold must not matter
        registers = np.where(held, registers, poison)
        self.registers[operand.name] = registers[..., None]
        self.arguments["metadata"] = registers

    def _memory(self, instruction: Instruction) -> None:
        assert instruction.shape is not None
        m, n, k = instruction.shape
        spec = instruction.database.spec
        images = []
        start = 0
        for name in self._kernel.descriptors:
            matrix = name.partition("-")[0]
            element = layouts.element_type(spec, instruction.qualifiers[f"{matrix}type"])
            depth = k // 2 if instruction.sparse and matrix == "a" else k
            x = m if matrix == "a" else n
            majorness = ("K", "MN")[self._kernel.immediates.get(f"imm-trans-{matrix}", 0)]
            layout = self._layout(element, majorness, x, depth, start)
            images.append(layout.store(self._values((layout.x, layout.k), element)))
            descriptor = layout.descriptor(*self._corner(layout, x, depth), x_extent=x, k_extent=depth)
            self.descriptors[name] = self.arguments[matrix] = descriptor.encode()
            start += -(-layout.size // 1024) * 1024
            images.append(np.zeros(start - sum(map(len, images)), np.uint8))
        self.image = self.arguments["memory"] = np.concatenate(images)

    def _layout(self, element: ElementType, majorness: str, x: int, k: int, start: int) -> SharedLayout:
        """An image with room for the operand and more."""
        facts = self._kernel.instruction.database.spec.shared_memory
        assert facts is not None
        panel = next(mode.bytes for mode in facts.swizzles if mode.name == self._swizzle) * 8 // element.bits
        contiguous = -(-(k if majorness == "K" else x) // panel) * panel * int(self._random.integers(1, 3))
        other = (x if majorness == "K" else k) + 8 * int(self._random.integers(2))
        extents = (other, contiguous) if majorness == "K" else (contiguous, other)
        return shared_memory.SharedLayout(element.name, majorness, self._swizzle, *extents, start=start)

    def _corner(self, layout: SharedLayout, x: int, k: int) -> tuple[int, int]:
        """Where the operand lies in the image: anywhere that a descriptor reaches."""
        corners = [(row, column) for row in range(0, layout.x - x + 1, 8) for column in range(0, layout.k - k + 1, max(k, 1))]
        row, column = corners[self._random.integers(len(corners))]
        try:
            layout.descriptor(row, column, x_extent=x, k_extent=k)
        except ValueError:
            return 0, 0
        return row, column

    def _values(self, shape: tuple[int, ...], element: ElementType, accumulator: bool = False) -> Array:
        """Random numbers of a type: integers of the whole range; floating point with spread exponents, some zeros."""
        random = self._random
        if element.form != "float":
            bits = random.integers(0, 1 << min(element.bits, 32), shape, np.uint64)
            if accumulator and self._spread:
                bits = random.choice(np.array([2**31 - 1, 2**31, 2**31 - 9, 2**31 + 9], np.uint64), shape)  # next to the limits
            return bits.astype(elements.bits_dtype(element))
        lowest, highest = {0: (-1, 2), 1: (-12, 6), 2: (-12, -8), 3: (-element.bias - element.mantissa, 2 - element.bias)}[self._spread]
        if self._spread < 3:  # 3: subnormal numbers too
            lowest = max(lowest, 2 - element.bias)
        exponents = random.integers(lowest, max(highest, lowest + 1), shape)
        if self._spread == 2:
            exponents = np.where(random.random(shape) < 0.1, 6, exponents)
        if self._spread == 3 and not accumulator:
            exponents = np.where(random.random(shape) < 0.5, 0, exponents)
        numbers = random.choice([-1, 1], shape) * (1 + random.random(shape)) * 2.0**exponents * (random.random(shape) > 0.1)
        return numbers.astype(elements.dtype(element))

    def emulated(self) -> Emulated:
        """What the emulator says."""
        return emulate(self._kernel.instruction, **self.arguments)


def _keyword(name: str) -> str:
    return "selector" if name in ("f", "sp-sel") else name.replace("-", "_")


@pytest.mark.parametrize("family", _FAMILIES)
def test_the_emulator_agrees_with_the_chip(family: str, gpu: str, nvcc: str, root: Path, tmp_path: Path) -> None:
    found = list(kernels(family))
    chip = Chip(nvcc, root / "generated/include", tmp_path, found)
    name = gpu.removeprefix("NVIDIA ")
    wrong, beyond = [], 0
    for number, kernel in enumerate(found):
        case = Case(kernel, zlib.crc32(kernel.instruction.canonical.encode()) + number)
        d = chip.run(number, case.registers, image=case.image, descriptors=case.descriptors, scale_d=case.scale_d)
        emulated = case.emulated()
        seen = emulated.observed.get(name)
        admitted = emulated.admits(d) if seen is None else emulated.admits(d, name)
        if not admitted.all():
            wrong.append(f"{kernel.instruction.canonical} {kernel.form.name} {dict(kernel.immediates)}: {(~admitted).mean():.0%} of D")
        elif seen is not None:
            beyond += int((~emulated.admits(d)).any())
    assert found
    assert not wrong, f"{len(wrong)} of {len(found)} kernels:\n" + "\n".join(wrong[:40])
    # FP8 alone keeps fewer bits than the manual promises, of mma with f16 and of wgmma.sp: without such results this would not tell.
    assert beyond or family in ("mma.sp", "wgmma")
