"""The composition of a measured fragment from fragments that the manual states.

Both are permutations of bits.  A fragment begins with a stated one where the bits of the lane, and the low bits of the element's number,
lead to the same bits of row and column, or of column and row.  The other bits of the element's number then count blocks, each of them such
a fragment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.pictures.sheet import TO
from ptxmma.model import COPY, Layout


class Made(NamedTuple):
    """A fragment that is made of stated ones."""

    instruction: Instruction  # the instruction of the stated fragment
    operand: Operand
    transposed: bool
    blocks: tuple[str, ...]  # the registers of each block, with its place where there are several: "0-1 (col 0-7)"
    copies: bool  # whether further registers hold copies of them


class Relations:
    """Finds the fragments of multiplications of which others are made."""

    def __init__(self, catalog: Catalog) -> None:
        self._layouts = catalog.database.layout
        self._stated: dict[str, list[tuple[Instruction, Operand]]] = {}  # by their layout
        self._measured: dict[str, tuple[Instruction, Operand]] = {}
        for instruction in catalog.all():
            if instruction.operation == "multiply":
                self._enter(instruction)

    def _enter(self, instruction: Instruction) -> None:
        for operand in instruction.operands:
            layout = operand.layout
            if layout is None or layout.kind != "fragment":
                continue
            if operand.observed:
                self._measured.setdefault(layout.name, (instruction, operand))
            elif operand.sparsity is None and not layout.growing and not layout.apart:
                self._stated.setdefault(layout.name, []).append((instruction, operand))

    def of(self, layout: Layout) -> Made | None:
        """The largest stated fragment of the same kind with which a measured one begins; None without one, or for a stated layout."""
        if layout.name not in self._measured:
            return None
        instruction, operand = self._measured[layout.name]
        best: tuple[tuple[int, bool, int], Made] | None = None
        for name, transposed in itertools.product(self._stated, (False, True)):
            part = self._layouts[name]
            if not _begins(layout, part, transposed=transposed):
                continue
            for other, stated in self._stated[name]:
                same = sum(instruction.extents.get(name) == size for name, size in other.extents.items())
                rank = (len(part.map.bits["i"]), not transposed, same)
                if stated.kind == operand.kind and (best is None or rank > best[0]):
                    best = rank, _made(other, stated, layout, operand.elements_per_register, transposed=transposed)
        return best[1] if best else None


def _begins(whole: Layout, part: Layout, *, transposed: bool) -> bool:
    """Return whether a layout begins with another one."""
    if (whole.bits, whole.threads) != (part.bits, part.threads):
        return False
    axes = dict(zip(part.plane, reversed(whole.plane) if transposed else whole.plane, strict=True))
    lanes, elements = (tuple((axes[axis], bit) for axis, bit in part.map.bits[name]) for name in ("lane", "i"))
    return whole.map.bits["lane"] == lanes and whole.map.bits["i"][: len(elements)] == elements


def _made(instruction: Instruction, stated: Operand, whole: Layout, per_register: int, *, transposed: bool) -> Made:
    elements = whole.map.bits["i"]
    further = elements[stated.elements.bit_length() - 1 :]
    sizes = dict(zip(whole.plane, (stated.cols, stated.rows) if transposed else (stated.rows, stated.cols), strict=True))
    count = stated.elements // per_register
    blocks = []
    for number, place in _places(further):
        where = ", ".join(f"{axis} {_span(first, sizes[axis])}" for axis, first in place.items())
        blocks.append(_span(number * count, count) + (f" ({where})" if where else ""))
    return Made(instruction, stated, transposed, tuple(blocks), any(axis == COPY for axis, _ in further))


def _places(further: tuple[tuple[str, int], ...]) -> Iterator[tuple[int, dict[str, int]]]:
    """The number of each block, copies left out, with the row and column where it begins as far as blocks differ in them."""
    for number in range(1 << len(further)):
        place: dict[str, int] = {}
        for source, (axis, bit) in enumerate(further):
            place[axis] = place.get(axis, 0) + ((number >> source & 1) << bit)
        if not place.pop(COPY, 0):
            yield number, place


def _span(first: int, count: int) -> str:
    return f"{first}{TO}{first + count - 1}" if count > 1 else str(first)
