"""What tests of the emulator and of traces share: one instruction of each kind, and random operands of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import ptxmma
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices import shared_memory, sparse
from ptxmma.model import ElementType

#: How a test draws the elements of a matrix.
Draw = Callable[[ElementType, tuple[int, ...], np.random.Generator], Array]


def small(element: ElementType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Small integers that every type has, so that sums are exact."""
    numbers = random.integers(0 if not element.sign else -1, 2, shape)
    return numbers.astype(elements.dtype(element))


@functools.cache
def one_of_each() -> list[Instruction]:
    """The instructions that multiply; one of those that differ only in n or in the order of metadata."""
    by_layouts: dict[object, Instruction] = {}
    for instruction in ptxmma.instructions():
        if instruction.operation == "multiply" and (not instruction.variant.ranging or instruction.extents["n"] <= 16):
            facts = {name: value for name, value in instruction.variant.facts.items() if name not in ("spvariant", "aligned")}
            if instruction.variant.ranging:
                facts |= {"n": 0, "shape": ""}
            by_layouts.setdefault(tuple(facts.items()), instruction)
    return list(by_layouts.values())


class Operands:
    """Random operands of one instruction, as registers or in an image.

    ``a``, ``b`` and ``c`` are matrices of the types' dtypes, ``a`` without sparsity; ``kept`` says which of its elements are stored,
    and ``scales`` has a scale factor for each element.
    """

    def __init__(
        self, instruction: Instruction, random: np.random.Generator, draw: Draw = small, *, from_memory: bool = False, selector: int = 0
    ) -> None:
        assert instruction.shape is not None
        m, n, k = instruction.shape
        spec = instruction.database.spec
        a_type, b_type = (layouts.element_type(spec, instruction.qualifiers[f"{name}type"]) for name in "ab")
        d = instruction.operand("d")
        addend = instruction.operand("c" if "c" in instruction.variant.instruction.operand_kinds else "d")
        assert addend.element is not None
        computations = (d.computations,) if d.computations > 1 else ()
        self.a, self.b = draw(a_type, (*computations, m, k), random), draw(b_type, (*computations, k, n), random)
        self.c = draw(addend.element, (*computations, m, n), random)
        self.kept = np.ones(self.a.shape, bool)
        self._exclusive = instruction.qualifiers.get("bitop") == "xor"
        self.arguments: dict[str, Any] = {"c": addend.pack(self.c)}
        values = self.a
        if instruction.sparse:
            metadata = instruction.metadata
            fields = random.choice([int(field, 2) for field in metadata.legal], (m, metadata.chunks)).astype(np.uint8)
            rows, pattern = sparse.from_fields(fields), metadata.granularity
            values = self.a[:, : k * pattern.kept // pattern.chunk]
            self.a = sparse.decompress(values, rows, pattern.name)
            self.kept = sparse.decompress(np.ones(values.shape, np.uint8), rows, pattern.name) > 0
            self.arguments |= {"metadata": metadata.pack(rows, selector), "selector": selector}
        self._place(instruction, "a", a_type, values, from_memory)
        self._place(instruction, "b", b_type, self.b, from_memory)
        self.scales: dict[str, Array] = {}
        if instruction.qualifiers.get("block_scale"):
            self.scales = {name: self._scale(instruction, random, draw, name) for name in "ab"}

    def product(self) -> Array:
        """The exact product of small integers, or of single bits under exclusive or."""
        a, b, c = (matrix.astype(np.float64) for matrix in (self.a, self.b, self.c))
        if self._exclusive:
            return np.asarray((a[..., :, :, None] != b[..., None, :, :]).sum(-2) + c)
        if self.scales:
            a, b = a * self.scales["a"].astype(np.float64), b * self.scales["b"].astype(np.float64)
        return np.asarray(a @ b + c)

    def _place(self, instruction: Instruction, name: str, element: ElementType, matrix: Array, from_memory: bool) -> None:
        kinds = instruction.variant.instruction.operand_kinds
        if f"{name}-desc" not in kinds or (name == "a" and not from_memory):
            self.arguments[name] = instruction.operand(name).pack(matrix)
            return
        rows = matrix if name == "a" else matrix.T
        layout = shared_memory.SharedLayout(element.name, "K", "none", *rows.shape, start=self.arguments.get("memory", np.zeros(0)).size)
        memory = self.arguments.get("memory", np.zeros(0, np.uint8))
        self.arguments["memory"] = np.concatenate([memory, layout.store_xk(rows), np.zeros(-layout.size % 1024, np.uint8)])
        self.arguments[name] = layout.descriptor().encode()

    def _scale(self, instruction: Instruction, random: np.random.Generator, draw: Draw, name: str) -> Array:
        """Random scale factors, which go into the arguments: one for each element."""
        scales = instruction.scales(name)
        if draw is small:
            factors = (2.0 ** random.integers(-2, 3, scales.shape)).astype(elements.dtype(scales.element))
        else:
            factors = draw(scales.element, scales.shape, random)
        byte_id, thread_id = int(random.choice(scales.byte_ids)), int(random.choice(scales.thread_ids))
        self.arguments |= {f"byte_id_{name}": byte_id, f"thread_id_{name}": thread_id}
        self.arguments[f"scale_{name}_data"] = scales.pack(factors, byte_id, thread_id)
        axis = -1 if name == "a" else -2
        return np.repeat(factors, getattr(self, name).shape[axis] // scales.blocks, axis=axis)
