"""The tables of operands, and of the bits of each layout.  A struct is a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ptxmma.catalog.instructions import OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit.database.relations import Relations
from ptxmma.generator.emit.database.sql_tables import Table, Value, table
from ptxmma.model import Layout

#: A number that other rows know this one by.
Id = Annotated[int, Meta(extra={"key": True})]
Position = Annotated[int, Meta(extra={"key": True})]


class OperandRow(msgspec.Struct):
    """An operand of one or more operand lists."""

    id: Id
    name: Annotated[str, Meta(description="the manual's: 'a', 'b-desc'")]
    kind: str
    title: str
    access: Annotated[str, Meta(description="'read', 'write' or 'read-write'")]
    element_type: Annotated[str | None, Meta(extra={"references": "element_types"})]
    bits: Annotated[int, Meta(description="between neighbouring elements; 0 without elements, as the next four")]
    rows: int
    cols: int
    elements: Annotated[int, Meta(description="in each thread")]
    registers: Annotated[int, Meta(description="in each thread")]
    asm_constraint: Annotated[str, Meta(description="of inline assembly")]
    takes_register: bool
    takes_immediate: bool
    default: Annotated[int | None, Meta(description="immediate that wrappers assume")]
    uniform: Annotated[str, Meta(description="scope over which it must have one value; '' for none")]
    layout: Annotated[str | None, Meta(extra={"references": "layouts"})]
    granularity: Annotated[int | None, Meta(description="of a sparse A", extra={"references": "granularities"})]
    source: str


class OperandRegister(msgspec.Struct):
    """The register types that assemblers take, the usual one at position 0."""

    operand: Annotated[int, Meta(extra={"key": True, "references": "operands"})]
    position: Position
    register_type: Annotated[str, Meta(extra={"references": "register_types"})]


class OperandImmediate(msgspec.Struct):
    """The legal immediates: all values in these spans."""

    operand: Annotated[int, Meta(extra={"key": True, "references": "operands"})]
    first: Annotated[int, Meta(extra={"key": True})]
    last: int


class OperandList(msgspec.Struct):
    """A list of operands as an instruction takes it."""

    id: Id
    form: Annotated[str, Meta(description="'registers' or 'descriptor', by where A comes from; '' where there is one list")]
    syntax: Annotated[str, Meta(description="'d, a, b, c'")]


class OperandListMember(msgspec.Struct):
    """The operands of a list in their order."""

    operand_list: Annotated[int, Meta(extra={"key": True, "references": "operand_lists"})]
    position: Position
    operand: Annotated[int, Meta(extra={"references": "operands"})]


class LayoutBit(msgspec.Struct):
    """A layout moves each bit of its inputs to one bit of one output."""

    layout: Annotated[str, Meta(extra={"key": True, "references": "layouts"})]
    input: Annotated[str, Meta(description="'lane'", extra={"key": True})]
    bit: Annotated[int, Meta(extra={"key": True})]
    output: Annotated[str, Meta(description="'row'")]
    output_bit: int


class Numbers(dict[Any, int]):
    """Numbers things from 1 in the order in which they are first asked for."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self) + 1
        return self[key]


class Operands:
    """The rows of operands and of lists of them, each distinct one once."""

    def __init__(self, model: Relations) -> None:
        self._model = model
        self._numbers, self._lists = Numbers(), Numbers()
        self._seen: dict[int, int] = {}  # many variants share one object

    def list_number(self, form: OperandForm) -> int:
        """The number of an operand list's row."""
        return self._lists[form.name, form.syntax, tuple([self._number(operand) for operand in form.operands])]

    def _number(self, operand: Operand) -> int:
        number = self._seen.get(id(operand))
        if number is None:
            key = (self._row(operand), operand.register_types, tuple(spans(operand.immediates or ())))
            number = self._seen[id(operand)] = self._numbers[key]
        return number

    def tables(self) -> Iterator[Table]:
        """The tables of the operands and lists whose numbers were asked for."""
        yield table(OperandRow, (OperandRow(number, *row) for (row, *_), number in self._numbers.items()), name="operands")
        registers = [(number, pair) for (_, types, _), number in self._numbers.items() for pair in enumerate(types)]
        yield table(OperandRegister, (OperandRegister(number, *pair) for number, pair in registers))
        immediates = [(number, span) for (*_, values), number in self._numbers.items() for span in values]
        yield table(OperandImmediate, (OperandImmediate(number, *span) for number, span in immediates))
        yield table(OperandList, (OperandList(number, form, syntax) for (form, syntax, _), number in self._lists.items()))
        places = [(number, pair) for (*_, members), number in self._lists.items() for pair in enumerate(members)]
        yield table(OperandListMember, (OperandListMember(number, *pair) for number, pair in places))

    def _row(self, operand: Operand) -> tuple[Value, ...]:
        """The columns of :class:`OperandRow` after the first."""
        layout = operand.layout.name if operand.layout is not None else None
        pattern = self._model.number(operand.sparsity) if operand.sparsity is not None else None
        what = (operand.name, operand.kind, operand.title, operand.access, operand.element_type, operand.bits, operand.rows, operand.cols)
        carried = (operand.elements, operand.registers, operand.constraint, operand.takes_register, operand.immediates is not None)
        return (*what, *carried, operand.default, operand.uniform, layout, pattern, operand.source)


def spans(values: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of neighbouring values, as first and last."""
    if isinstance(values, range) and values.step == 1:  # it may be too long to look at each
        return [(values[0], values[-1])]
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and runs[-1][1] + 1 == value:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs


def layout_bits(layouts: Sequence[Layout]) -> Table:
    """A row for each input bit of each layout."""
    return table(
        LayoutBit,
        (
            LayoutBit(layout.name, source, bit, output, place)
            for layout in layouts
            for source, targets in layout.map.bits.items()
            for bit, (output, place) in enumerate(targets)
        ),
    )
