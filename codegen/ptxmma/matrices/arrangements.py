"""Whole tables of an operand: which thread holds which element where, and which element a thread holds.

One :class:`Arrangement` for whatever is spread over the threads' registers: the elements of a matrix, the sparsity metadata of A,
the scale factors of A or B.

>>> import ptxmma
>>> ins = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
>>> a = arrangement(ins, "a")
>>> a.locate(9, 3)
Place(lane=5, element=3, register=1, low=16, width=16)
>>> a.at(5, 3)
{'row': 9, 'col': 3}
>>> names(ins)
['d', 'a', 'b', 'c']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand, in_range
from ptxmma.model import Layout
from ptxmma.model.bitmap import BitMap

#: Bits of the registers that metadata and scale factors come in.
_REGISTER_BITS = 32


class Place(NamedTuple):
    """Where something stands in the threads' registers."""

    lane: int  # of the warp; for warpgroup instructions of the warpgroup
    element: int  # of the thread, through all registers; of scale factors the byte, of metadata the field
    register: int  # of the operand
    low: int  # lowest bit in the register
    width: int  # bits

    @property
    def bits(self) -> str:
        """The bits as PTX writes them: ``"31:16"``, ``"0"`` for one alone."""
        return f"{self.low + self.width - 1}:{self.low}" if self.width > 1 else str(self.low)


class Arrangement(NamedTuple):
    """How an operand's matrix is spread over the registers of the threads.

    The matrix of metadata has the rows of A and a column for each chunk; that of scale factors lies as A or B does.
    """

    instruction: Instruction
    operand: Operand
    axes: tuple[str, str]  # what its rows and columns are: ("row", "col"), ("row", "chunk"), ("row", "block"), ("block", "col")
    rows: int
    cols: int
    elements: int  # of each thread
    fixed: dict[str, int]  # what is chosen: {"computation": 0}, {"selector": 1}, {"byte_id": 0, "thread_id": 2}
    to_place: BitMap  # (row, col, what is chosen) to (lane, element), by the names that the layout has for them
    names: dict[str, str]  # those names: {"row": "row", "col": "chunk", "element": "field"}
    legal: dict[str, tuple[int, ...]]  # the values of what is chosen, as instructions write them

    @property
    def layout(self) -> Layout:
        """The layout behind it."""
        assert self.operand.layout is not None
        return self.operand.layout

    @property
    def threads(self) -> int:
        """Threads that hold it together."""
        return self.layout.threads

    @property
    def per_register(self) -> int:
        """Elements in one register."""
        return self.elements // max(self.operand.registers, 1)

    def locate(self, row: int, col: int) -> Place:
        """Where the element at ``row``, ``col`` stands.

        Raises:
            ValueError: outside the matrix.
        """
        at = {self.names["row"]: in_range(self.axes[0], row, self.rows), self.names["col"]: in_range(self.axes[1], col, self.cols)}
        found = self.to_place.apply(at | self._chosen())
        return self.place(found["lane"], found[self.names["element"]])

    def at(self, lane: int, element: int) -> dict[str, int]:
        """What a thread holds: its place in the matrix, by the names of the axes, and what must be chosen so that it is read.

        Raises:
            ValueError: no such thread, or no such element in its registers.
        """
        held = {"lane": in_range("lane", lane, self.threads), self.names["element"]: in_range("element", element, self.elements)}
        found = self.to_place.inverse().apply(held)
        place = {self.axes[0]: found[self.names["row"]], self.axes[1]: found[self.names["col"]]}
        return place | {name: self.legal[name][found[name]] for name in self.fixed}

    def places(self, rows: Iterable[int], cols: Iterable[int]) -> list[list[Place]]:
        """Where the elements of some rows and columns stand, row by row; nothing is checked."""
        rows, cols = list(rows), list(cols)
        points: dict[str, Sequence[int]] = {
            self.names["row"]: [row for row in rows for _ in cols],
            self.names["col"]: cols * len(rows),
        }
        points |= {name: [value] * (len(rows) * len(cols)) for name, value in self._chosen().items()}
        found = self.to_place.evaluate(points)
        flat = list(map(self.place, found["lane"], found[self.names["element"]]))
        return [flat[first : first + len(cols)] for first in range(0, len(flat), len(cols))]

    def held(self, lanes: Iterable[int], elements: Iterable[int]) -> list[list[tuple[int, int] | None]]:
        """The rows and columns of some elements of some threads, thread by thread; None where what is chosen leaves it unread."""
        lanes, elements = list(lanes), list(elements)
        points = {"lane": [lane for lane in lanes for _ in elements], self.names["element"]: elements * len(lanes)}
        found = self.to_place.inverse().evaluate(points)
        chosen = self._chosen()
        read = [all(found[name][index] == value for name, value in chosen.items()) for index in range(len(points["lane"]))]
        flat = [
            (row, col) if taken else None for row, col, taken in zip(found[self.names["row"]], found[self.names["col"]], read, strict=True)
        ]
        return [flat[first : first + len(elements)] for first in range(0, len(flat), len(elements))]

    def place(self, lane: int, element: int) -> Place:
        """Register and bits of an element of a thread; nothing is checked."""
        width = self.operand.element.bits if self.operand.element else self.layout.field_bits
        spacing = self.operand.bits or width
        register, slot = divmod(element, self.per_register)
        return Place(lane, element, register, slot * spacing + self.operand.shift, width)

    def _chosen(self) -> dict[str, int]:
        """What is chosen, as the layout counts it: by its place among the legal values."""
        return {name: self.legal[name].index(value) for name, value in self.fixed.items()}


def names(instruction: Instruction) -> list[str]:
    """What :func:`arrangement` knows of an instruction: ``["d", "a", "b", "c", "metadata", "scale-a", …]``."""
    return list(_spread(instruction))


def arrangement(instruction: Instruction, name: str, **chosen: int) -> Arrangement:
    """The table of an operand in registers.

    Args:
        instruction: the instruction.
        name: a matrix (``"a"``), ``"metadata"``, or the scale factors of a matrix (``"scale-a"``).
        chosen: ``computation`` of ``m8n8k4`` with f16, ``selector`` of metadata, ``byte_id`` and ``thread_id`` of scale factors; by
            default the first that is legal.

    Raises:
        Missing: the instruction has no such operand, or only a descriptor of it.
        ValueError: something to choose that the operand has not, or a value that is not legal.
    """
    operands = _spread(instruction)
    if name not in operands:
        described = [each for form in instruction.forms for each in form.operands if each.kind == "descriptor"]
        if any(each.name.startswith(f"{name}-") for each in described):
            raise Missing(f"{instruction.canonical} reads {name} from shared memory, through a descriptor: no register holds it")
        has = f"it has {', '.join(operands)}" if operands else "no operand of it is spread over threads"
        raise Missing(f"{instruction.canonical} has no operand {name!r} in registers; {has}")
    found = _arranged(instruction, operands[name])
    for key, value in chosen.items():
        if key not in found.fixed:
            raise ValueError(f"{name} of {instruction.canonical} has no {key.replace('_', '-')} to choose")
        if value not in found.legal[key]:
            allowed = ", ".join(map(str, found.legal[key]))
            raise ValueError(f"{key.replace('_', '-')} = {value} is not legal for {name}: {allowed}")
    return found._replace(fixed=found.fixed | chosen)


def _spread(instruction: Instruction) -> dict[str, Operand]:
    """The operands that are spread over threads, by the names that users give them."""
    found: dict[str, Operand] = {}
    for form in instruction.forms:
        for operand in form.operands:
            if operand.layout is None:
                continue
            kind = operand.layout.kind
            name = operand.name if kind == "fragment" else kind if kind == "metadata" else f"scale-{_scaled(instruction, operand)}"
            found.setdefault(name, operand)
    return found


def _scaled(instruction: Instruction, operand: Operand) -> str:
    return instruction.variant.instruction.operand_kinds[operand.name].of


def _arranged(instruction: Instruction, operand: Operand) -> Arrangement:
    layout = operand.layout
    assert layout is not None
    if layout.kind == "fragment":
        choices = {"computation": tuple(range(operand.computations))} if "computation" in layout.map.outputs else {}
        axes, called, size = ("row", "col"), {"row": "row", "col": "col", "element": "i"}, (operand.rows, operand.cols)
        to_place, elements = layout.map.inverse(), operand.elements
    elif layout.kind == "metadata":
        choices = {"selector": tuple(range(instruction.metadata.selectors))}
        axes, called, size = ("row", "chunk"), {"row": "row", "col": "chunk", "element": "field"}, (layout.rows, layout.cols)
        to_place, elements = layout.map, _REGISTER_BITS // layout.field_bits
    else:
        scales = instruction.scales(_scaled(instruction, operand))
        choices = {"byte_id": scales.byte_ids, "thread_id": scales.thread_ids}
        by_row = scales.matrix == "a"
        axes = ("row", "block") if by_row else ("block", "col")
        called = {"row": "row", "col": "block", "element": "byte"} if by_row else {"row": "block", "col": "row", "element": "byte"}
        to_place, elements, size = layout.map, _REGISTER_BITS // operand.bits, scales.shape
    fixed = {key: values[0] for key, values in choices.items()}
    return Arrangement(instruction, operand, axes, *size, elements, fixed, to_place, called, choices)
