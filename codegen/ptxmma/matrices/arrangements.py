"""Tables of an operand: which thread holds which element, and which element a thread holds.

An :class:`Arrangement` describes everything that is spread over the registers of threads: elements of a matrix, sparsity metadata, scale
factors, addresses of rows in memory.

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

from ptxmma.arguments import in_range
from ptxmma.catalog.descriptors.bits import bit_range
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.instructions.user_names import named_part
from ptxmma.catalog.operands import Operand
from ptxmma.model import Layout
from ptxmma.model.bitmap import BitMap


class Place(NamedTuple):
    """A place in the threads' registers."""

    lane: int  # the thread of the warp; for warpgroup instructions of the warpgroup
    element: int  # its number in the thread, through all registers; of scale factors the byte, of metadata the field, of addresses 0
    register: int  # the register of the operand
    low: int  # lowest bit in the register
    width: int  # bits

    @property
    def bits(self) -> str:
        """The bits as PTX writes them: ``"31:16"``, ``"0"`` for one alone."""
        return bit_range(self.low, self.width)


class Arrangement(NamedTuple):
    """The spread of an operand's matrix over the registers of the threads.

    The matrix of metadata has the rows of A and a column for each chunk.  The matrix of scale factors is oriented as A or B.  The matrix of
    addresses has a row for each matrix and a column for each of its rows.  If a layout has more than two coordinates, the last two are the
    rows and columns, and the others are chosen.  A layout with one coordinate is a single row, and the axis of the rows is ``""``.
    """

    instruction: Instruction
    name: str  # the operand's name among :func:`names`
    operand: Operand
    axes: tuple[str, str]  # the axes that are its rows and columns: ("row", "col"), ("row", "chunk"), ("row", "block"), ("block", "col")
    rows: int
    cols: int
    elements: int  # the number of elements of each thread
    fixed: dict[str, int]  # the choices: {"matrix": 3}, {"computation": 0}, {"copy": 0}, {"selector": 1}, {"byte_id": 0, "thread_id": 2}
    to_place: BitMap  # (axes, what is chosen) to (lane, element)
    counter: str  # the layout's name of the element: "i", "bit", "byte"; "" where a thread has one
    legal: dict[str, tuple[int, ...]]  # the values of what is chosen, as instructions write them

    @property
    def layout(self) -> Layout:
        """The layout that it shows."""
        assert self.operand.layout is not None
        return self.operand.layout

    @property
    def threads(self) -> int:
        """Threads that hold it together; of addresses those whose addresses count."""
        return 1 << self.to_place.outputs["lane"]

    @property
    def per_register(self) -> int:
        """Elements in one register."""
        return self.elements // max(self.operand.registers, 1)

    @property
    def axis_numbers(self) -> dict[str, Sequence[int]]:
        """The legal numbers of every axis: of what is chosen, of the rows and of the columns."""
        chosen: dict[str, Sequence[int]] = {axis: self.legal[axis] for axis in self.layout.axes if axis in self.legal}
        inner = {axis: range(self.operand.sizes[axis]) for axis in self.operand.axes if axis not in self.legal}
        return chosen | inner

    def locate(self, row: int, col: int) -> Place:
        """The place of the element at ``row``, ``col``.

        Raises:
            ValueError: outside the matrix.
        """
        at = {self.axes[0]: in_range(self.axes[0] or "row", row, self.rows), self.axes[1]: in_range(self.axes[1], col, self.cols)}
        place = self.to_place.apply(at | self._chosen())
        return self.place(place["lane"], place.get(self.counter, 0))

    def at(self, lane: int, element: int) -> dict[str, int]:
        """The place of a thread's element in the matrix, by the names of the axes, and the choices with which the instruction reads it.

        Raises:
            ValueError: no such thread, one that holds nothing, or no such element in its registers.
        """
        place = {"lane": in_range("lane", lane, self.threads), self.counter: in_range("element", element, self.elements)}
        numbers = self.to_place.inverse().apply(place)
        return {name: numbers[name] for name in self.axes if name} | {name: self.legal[name][numbers[name]] for name in self.fixed}

    def places(self, rows: Iterable[int], cols: Iterable[int]) -> list[list[Place]]:
        """The places of the elements of some rows and columns, row by row; nothing is checked."""
        rows, cols = list(rows), list(cols)
        points: dict[str, Sequence[int]] = {self.axes[0]: [row for row in rows for _ in cols], self.axes[1]: cols * len(rows)}
        points |= {name: [value] * (len(rows) * len(cols)) for name, value in self._chosen().items()}
        places = self.to_place.evaluate(points)
        flat = list(map(self.place, places["lane"], places.get(self.counter, [0] * len(places["lane"]))))
        return [flat[first : first + len(cols)] for first in range(0, len(flat), len(cols))]

    def contents(self, lanes: Iterable[int], elements: Iterable[int]) -> list[list[tuple[int, int] | None]]:
        """The rows and columns of some elements of some threads, thread by thread; None for what the chosen table does not read."""
        lanes, elements = list(lanes), list(elements)
        points = {"lane": [lane for lane in lanes for _ in elements], self.counter: elements * len(lanes)}
        numbers = self.to_place.inverse().evaluate(points)
        wanted = [(numbers[name], value) for name, value in self._chosen().items()]
        rows, cols = (numbers.get(axis, [0] * len(points["lane"])) for axis in self.axes)
        flat = [
            (rows[index], cols[index]) if lane < self.threads and all(column[index] == value for column, value in wanted) else None
            for index, lane in enumerate(points["lane"])
        ]
        return [flat[first : first + len(elements)] for first in range(0, len(flat), len(elements))]

    def everything(self) -> list[tuple[Place, dict[str, int]]]:
        """Every element of every thread with its place on every axis, thread by thread."""
        lanes = [lane for lane in range(self.threads) for _ in range(self.elements)]
        elements = list(range(self.elements)) * self.threads
        counted = self.to_place.inverse().evaluate({"lane": lanes, self.counter: elements})
        numbers = {axis: [legal[number] for number in counted[axis]] for axis, legal in self.axis_numbers.items()}
        places = map(self.place, lanes, elements)
        return [(place, {axis: numbers[axis][index] for axis in numbers}) for index, place in enumerate(places)]

    def place(self, lane: int, element: int) -> Place:
        """Register and bits of an element of a thread; nothing is checked."""
        width = self.operand.element.bits if self.operand.element else self.layout.steps.get("bit", self._register_bits)
        spacing = self.operand.bits or width
        register, slot = divmod(element, self.per_register)
        return Place(lane, element, register, slot * spacing + self.operand.shift, width)

    @property
    def _register_bits(self) -> int:
        usual = self.operand.register_types[0]
        return next(entry.bits for entry in self.instruction.database.spec.types.registers if entry.name == usual)

    def _chosen(self) -> dict[str, int]:
        """The choices as indices into the legal values, which is how the layout counts them."""
        return {name: self.legal[name].index(value) for name, value in self.fixed.items()}


def names(instruction: Instruction) -> list[str]:
    """The names that :func:`arrangement` accepts for an instruction: ``["d", "a", "b", "c", "metadata", "scale-a", …]``."""
    return list(_spread(instruction))


def arrangement(instruction: Instruction, name: str, **chosen: int) -> Arrangement:
    """The table of an operand in registers.

    Args:
        instruction: the instruction.
        name: a matrix (``"a"``), ``"metadata"``, the scale factors of a matrix (``"scale-a"``), or the manual's name of any of them
            (``"e"``, ``"scale-a-data"``), in upper or lower case.
        chosen: ``matrix`` of several, ``computation`` of ``m8n8k4`` with f16, ``copy`` of elements that threads hold more than once,
            ``selector`` of metadata, ``byte_id`` and ``thread_id`` of scale factors; by default the first that is legal.

    Raises:
        Missing: the instruction has no such operand, or only a descriptor of it.
        ValueError: an axis that the operand lacks, or a value that is not legal.
    """
    short = short_name(instruction, name)
    table = _arranged(instruction, short, _spread(instruction)[short])
    for key, value in chosen.items():
        if key not in table.fixed:
            raise ValueError(f"{name} of {instruction.canonical} has no {key.replace('_', '-')} to choose")
        if value not in table.legal[key]:
            allowed = ", ".join(map(str, table.legal[key]))
            raise ValueError(f"{key.replace('_', '-')} = {value} is not legal for {name}: {allowed}")
    return table._replace(fixed=table.fixed | chosen)


def short_name(instruction: Instruction, name: str) -> str:
    """The name of :func:`names` for an operand in registers, from that name or the manual's, in upper or lower case.

    >>> import ptxmma
    >>> short_name(ptxmma.instruction("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), "E")
    'metadata'

    Raises:
        Missing: the instruction has no such operand, or only a descriptor of it.
    """
    operands, lowered = _spread(instruction), name.lower()
    meant = named_part(instruction.database.spec.operand_names, name)
    for short, operand in operands.items():
        if {lowered, meant} & {short, operand.name}:
            return short
    described = [each for each in instruction.operands if each.kind == "descriptor"]
    for each in described:
        if lowered in (each.of, each.name):
            raise Missing(f"{instruction.canonical} reads {each.of} from shared memory, through a descriptor: no register holds it")
    laid_out = f"operands with a layout: {', '.join(operands)}" if operands else "no operand in registers has a layout"
    if any(lowered == each.name for each in instruction.operands):
        raise Missing(f"operand {name!r} of {instruction.canonical} has no layout; {laid_out}")
    raise Missing(f"{instruction.canonical} has no operand {name!r}; {laid_out}")


def _spread(instruction: Instruction) -> dict[str, Operand]:
    """The operands that are spread over threads, by the names that users give them."""
    operands: dict[str, Operand] = {}
    for operand in instruction.operands:
        if operand.layout is not None:
            names = {"metadata": "metadata", "scale": f"scale-{operand.of}"}
            operands.setdefault(names.get(operand.layout.kind, operand.name), operand)
    return operands


def _arranged(instruction: Instruction, name: str, operand: Operand) -> Arrangement:
    layout = operand.layout
    assert layout is not None
    *others, first, second = layout.coordinates if len(layout.coordinates) > 1 else ("", *layout.coordinates)
    axes = (second, first) if first == "col" else (first, second)  # columns run across
    to_place = layout.to_axes.inverse()
    counter = next((name for name in to_place.outputs if name != "lane"), "")
    legal = {axis: tuple(n * layout.steps.get(axis, 1) for n in range(operand.sizes[axis])) for axis in (*others, *layout.apart)}
    elements = operand.elements or (1 << to_place.outputs[counter] if counter else 1)
    fixed = {axis: values[0] for axis, values in legal.items()}
    rows, cols = (operand.sizes.get(axis, 1) for axis in axes)
    return Arrangement(instruction, name, operand, axes, rows, cols, elements, fixed, to_place, counter, legal)
