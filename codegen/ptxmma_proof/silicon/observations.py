"""Asks a chip what the manual leaves open.  The answers are observations of one chip, never rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.descriptors.bits import spare
from ptxmma.catalog.descriptors.shared_formats import matrix_format, read_by
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.matrices import sparse
from ptxmma.model import DescriptorFormat, ElementType, Granularity, SharedMemory
from ptxmma_proof.silicon.drawn_operands import BATCH, Builder, Operands
from ptxmma_proof.silicon.kernels import Chip, Kernel
from ptxmma_proof.silicon.products import Drawn, product

#: Parts of a tf32 element: the chip reads an index of tf32 as two indices of 16-bit halves.
_HALVES = 2
#: A bound of the rounding of sums with mixed elements, as a share of the sum of all magnitudes.
_ROUNDING = 2.0**-16
#: Launches with different operands for each question about descriptors.
_SEEDS = 4


class Seen(NamedTuple):
    """A question that the manual leaves open, and the chip's answer."""

    question: str
    instruction: str
    tried: str
    seen: str


def observe(catalog: Catalog, target: str, nvcc: str, include: Path, folder: Path) -> list[Seen]:
    """All answers, in order."""
    asked = [
        *((kernel, _illegal_fields) for kernel in _one_for_each_metadata_layout(catalog, target)),
        *((kernel, ask) for ask in (_unused_descriptor_bits, _idle_base_offset) for kernel in _by_descriptors(catalog, target)),
        *((kernel, _saturation) for kernel in _saturating(catalog, target)),
    ]
    chip = Chip(nvcc, target, include, folder, [kernel for kernel, _ in asked])
    return [answer for number, (kernel, ask) in enumerate(asked) for answer in ask(chip, number, kernel)]


def _instructions(catalog: Catalog, target: str) -> Iterator[Instruction]:
    return (instruction for instruction in catalog.all() if instruction.operation == "multiply" and target in instruction.accepted_by())


def _run(chip: Chip, number: int, kernel: Kernel, made: Operands) -> Array:
    """D as numbers."""
    registers = chip.run(number, made.registers, image=made.image, descriptors=made.descriptors, scale_d=made.scale_d)
    d = kernel.instruction.operand("d")
    assert d.element is not None
    return elements.numbers(elements.codes(d.unpack(registers), d.element), d.element)


def _build(kernel: Kernel, seed: int, swizzle: str | None = None) -> Operands:
    random = np.random.default_rng(seed)
    made = Builder(kernel, random, Drawn(kernel.instruction, random), swizzle=swizzle).build()
    made.keywords["scale_d"] = True
    return made


# --- metadata -------------------------------------------------------------------------------------------------------------------


def _one_for_each_metadata_layout(catalog: Catalog, target: str) -> Iterator[Kernel]:
    """One instruction for each metadata layout and set of legal fields, A in registers."""
    seen = set()
    for instruction in _instructions(catalog, target):
        if instruction.sparse:
            metadata = instruction.metadata
            key = metadata.layout.name, metadata.legal, metadata.granularity.name
            if key not in seen:
                seen.add(key)
                yield Kernel(instruction, instruction.forms[0])


def _illegal_fields(chip: Chip, number: int, kernel: Kernel) -> Iterator[Seen]:
    """Each field value that the manual does not list, in all fields of the matrix at once."""
    metadata = kernel.instruction.metadata
    legal = {int(value, 2) for value in metadata.legal}
    answers: dict[str, list[str]] = {}
    for value in sorted(set(range(1 << metadata.width)) - legal):
        made = _build(kernel, value)
        fields = np.full((BATCH, metadata.rows, metadata.chunks), value, np.uint8)
        operand = next(operand for operand in kernel.inputs if operand.kind == "metadata")
        registers = metadata.pack(sparse.from_fields(fields), made.keywords.get("selector", 0), check=False)
        made.registers[operand.name] = registers[..., np.newaxis]
        seen = _run(chip, number, kernel, made)
        answer = "no product of the kept values with rows of B was recognised"
        for reading in _readings(kernel, made, value):
            made.matrices |= reading.matrices
            if (np.abs(seen - product(kernel, made)) <= reading.slack).all():
                answer = reading.words
                break
        answers.setdefault(answer, []).append(f"0b{value:0{metadata.width}b}")
    for answer, values in answers.items():
        tried = f"{', '.join(values)} in all fields"
        yield Seen(question="metadata", instruction=kernel.instruction.canonical, tried=tried, seen=answer)


class _Reading(NamedTuple):
    """A possible meaning of an illegal field: in words, as matrices, and how far their product may be from D."""

    words: str
    matrices: dict[str, Array]
    slack: Array | float = 0.0


def _readings(kernel: Kernel, made: Operands, field: int) -> Iterator[_Reading]:
    metadata = kernel.instruction.metadata
    pattern = metadata.granularity
    a = kernel.instruction.operand("a")
    assert a.element is not None
    values = elements.numbers(elements.codes(a.unpack(made.registers["a"]), a.element), a.element)
    if pattern.indices > 1:
        yield _Reading(
            "each value counts in the column that its own index names", {"a": _placed(values, _indices(field, pattern), pattern)}
        )
    for value in metadata.legal:
        yield _Reading(f"the same as {value}", {"a": _placed(values, pattern.kept_units(value), pattern)})
    if pattern.indices == 1 and 1 << pattern.index_bits // _HALVES == pattern.units * _HALVES:
        b = _mixed(
            made.matrices["b"],
            field,
            pattern,
            layouts.element_type(kernel.instruction.database.spec, kernel.instruction.qualifiers["btype"]),
        )
        yield _Reading(
            "each half of the field names a half of an element of B: these two halves are multiplied as one element",
            {"a": values, "b": b},
            _ROUNDING * (np.abs(values) @ np.abs(b)),
        )


def _indices(field: int, pattern: Granularity) -> tuple[int, ...]:
    mask = (1 << pattern.index_bits) - 1
    return tuple(field >> pattern.index_bits * place & mask for place in range(pattern.indices))


def _mixed(b: Array, field: int, pattern: Granularity, element: ElementType) -> Array:
    """B with one element for each chunk, made of the two halves of the chunk's elements that the field names."""
    half = element.bits // _HALVES
    codes = elements.codes(b.astype(elements.dtype(element)), element)
    chunks = codes.reshape(*codes.shape[:-2], -1, pattern.units, codes.shape[-1])
    low, high = (field >> pattern.index_bits // _HALVES * place & pattern.units * _HALVES - 1 for place in range(_HALVES))
    part = [chunks[..., index // _HALVES, :] >> index % _HALVES * half & (1 << half) - 1 for index in (low, high)]
    spare = element.bits - element.sign - element.exponent - element.mantissa  # low bits that are not read
    return elements.numbers(((part[0] | part[1] << half) >> spare << spare).astype(codes.dtype), element)


def _placed(values: Array, units: tuple[int, ...], pattern: Granularity) -> Array:
    """A with every kept unit added at its place in the tuple; two units may share a place."""
    chunks = values.shape[-1] // pattern.kept
    parts = values.reshape(*values.shape[:-1], chunks, len(units), pattern.unit)
    full = np.zeros((*values.shape[:-1], chunks, pattern.units, pattern.unit), values.dtype)
    for place, unit in enumerate(units):
        full[..., unit, :] += parts[..., place, :]
    return full.reshape(*values.shape[:-1], chunks * pattern.chunk)


# --- descriptors ----------------------------------------------------------------------------------------------------------------


def _by_descriptors(catalog: Catalog, target: str) -> Iterator[Kernel]:
    """One instruction of each family and width of A's elements that reads both matrices through descriptors."""
    seen = set()
    for instruction in _instructions(catalog, target):
        form = next((form for form in instruction.forms if sum(operand.kind == "descriptor" for operand in form.operands) > 1), None)
        if form is None:
            continue
        width = layouts.element_type(instruction.database.spec, instruction.qualifiers["atype"]).bits
        if (instruction.family, width) not in seen:
            seen.add((instruction.family, width))
            yield Kernel(instruction, form)


def _unused_descriptor_bits(chip: Chip, number: int, kernel: Kernel) -> Iterator[Seen]:
    """Each bit outside the fields, set alone, and all of them together, with each swizzle."""
    memory = _memory(kernel)
    unused = [bit for low, width in spare(_format(kernel)) for bit in range(low, low + width)]
    swizzles = [mode.name for mode in memory.swizzles]
    effect = [bit for bit in unused if _with_bits(chip, number, kernel, 1 << bit, swizzles)]
    together = _with_bits(chip, number, kernel, sum(1 << bit for bit in unused), swizzles)
    said = f"bits {', '.join(map(str, effect))} change the product" if effect else "none of them changes the product"
    launches = len(swizzles) * _SEEDS
    tried = (
        f"bits {', '.join(map(str, unused))}, in no field, set in both descriptors, {launches} launches each: every swizzle {_SEEDS} times"
    )
    seen = f"{said}; {'all together do' if together else 'neither do all together'}"
    yield Seen(question="descriptor", instruction=kernel.instruction.canonical, tried=tried, seen=seen)


def _idle_base_offset(chip: Chip, number: int, kernel: Kernel) -> Iterator[Seen]:
    """Each base offset without a swizzle for it to move."""
    memory = _memory(kernel)
    field = next(field for field in _format(kernel).fields if field.name == "base_offset")
    plain = min(memory.swizzles, key=lambda mode: mode.bytes).name
    offsets = range(1, 1 << field.width)
    effect = [offset for offset in offsets if _with_bits(chip, number, kernel, offset << field.low, [plain])]
    tried = f"base offsets {', '.join(map(str, offsets))} without swizzle in both descriptors, {_SEEDS} launches each"
    seen = f"base offsets {', '.join(map(str, effect))} change the product" if effect else "none of them changes the product"
    yield Seen(question="base offset", instruction=kernel.instruction.canonical, tried=tried, seen=seen)


def _with_bits(chip: Chip, number: int, kernel: Kernel, bits: int, swizzles: Iterable[str]) -> int:
    """The number of launches in which these bits, set in all descriptors, change the product."""
    changed = 0
    for swizzle in swizzles:
        for seed in range(_SEEDS):
            made = _build(kernel, seed, swizzle)
            for name in made.descriptors:
                made.descriptors[name] |= bits
            changed += not np.array_equal(_run(chip, number, kernel, made), product(kernel, made))
    return changed


def _memory(kernel: Kernel) -> SharedMemory:
    """The descriptors that its family reads."""
    spec = kernel.instruction.database.spec
    assert spec.shared_memory is not None
    return read_by(spec, spec.shared_memory, kernel.instruction.variant.instruction.family)


def _format(kernel: Kernel) -> DescriptorFormat:
    return matrix_format(kernel.instruction.database.spec, kernel.instruction.variant.instruction.family)


# --- saturation -----------------------------------------------------------------------------------------------------------------


def _saturating(catalog: Catalog, target: str) -> Iterator[Kernel]:
    """One saturating instruction for each family and signed type of A."""
    seen = set()
    for instruction in _instructions(catalog, target):
        a = instruction.qualifiers.get("atype", "")
        key = instruction.family, a
        if instruction.semantics()[0].overflow == "saturate" and instruction.operand("a").element.sign and key not in seen:  # type: ignore[union-attr]
            seen.add(key)
            yield Kernel(instruction, instruction.forms[0])


def _saturation(chip: Chip, number: int, kernel: Kernel) -> Iterator[Seen]:
    """The largest addends with products of opposite signs at many pairs of places along K."""
    differing = 0
    rounds = 64
    for seed in range(rounds):
        random = np.random.default_rng(seed)
        made = Builder(kernel, random, _Opposed(random)).build()
        made.keywords["scale_d"] = True
        differing += int((_run(chip, number, kernel, made) != product(kernel, made)).sum())
    tried = f"addends next to both limits, products that leave the range and come back, {rounds} launches"
    said = "the exact sum saturates once" if not differing else f"{differing} elements differ from the exact sum, saturated once"
    yield Seen(question="satfinite", instruction=kernel.instruction.canonical, tried=tried, seen=said)


class _Opposed:
    """Draws numbers of the largest magnitudes, half of them negative, and addends at the limits."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def __call__(self, shape: tuple[int, ...], element: ElementType, addend: bool) -> Array:
        """A matrix of a type."""
        highest = (1 << element.bits - (1 if element.sign else 0)) - 1
        lowest = -highest if element.sign else highest
        numbers = self._random.choice([lowest, highest], shape)
        if addend:
            numbers = numbers - np.sign(numbers) * self._random.integers(0, 1 << 8, shape)
        return numbers.astype(np.int64).astype(elements.dtype(element))
