"""``ptxmma layout`` about operands in registers: where elements are, what a thread or a register holds, or a whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from ptxmma.cli.command import numbers_of, within
from ptxmma.cli.layout_in_tensor_memory import operands
from ptxmma.cli.layout_tables import Answer, place_answer, show
from ptxmma.cli.tiles import elsewhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.cli.command import Question
    from ptxmma.matrices.arrangements import Arrangement


class InRegisters(NamedTuple):
    """The operand of a name, or without a name all operands that a thread holds."""

    instruction: Instruction
    operand: str | None

    def answer(self, question: Question) -> None:
        """Print the elements that the options name, and otherwise a table of the operand."""
        tables = self._tables(question)
        query = _Query(question.lane, question.register, question.element, question.bit, [self._axes(table, question) for table in tables])
        if query.anywhere(tables):
            if question.given("by_lane", "transpose", "whole") or question.form == "svg":
                raise click.UsageError("--by-lane, --transpose, --all and --format svg are for whole tables: leave out the place, or them")
            _show_elements(tables, query, question)
            return
        (table,), (axes,) = tables, query.axes
        show(table._replace(fixed=table.fixed | axes), question, usual=not axes)

    def _tables(self, question: Question) -> list[Arrangement]:
        """The tables of the operands; exits with 2 where the name is missing or is not an operand in registers."""
        from ptxmma.matrices.arrangements import arrangement, names, short_name

        known, tensor = names(self.instruction), operands(self.instruction)
        if self.operand is None and not known and tensor:
            raise click.UsageError(f"say which --operand: {', '.join(tensor)}")
        fragments = [each for name in known if (each := arrangement(self.instruction, name)).layout.kind == "fragment"]
        if self.operand is None and question.lane is None and len(fragments) == 1:
            return fragments
        if self.operand is None and (question.lane is None or not known):
            raise click.UsageError(
                f"say which --operand: {', '.join(known)}; or --lane N for all that a thread holds"
                if known
                else f"{self.instruction.canonical} has no operands in registers"
            )
        try:
            chosen = known if self.operand is None else [short_name(self.instruction, self.operand)]
        except ValueError as error:
            hint = elsewhere(self.instruction, str(self.operand).lower())
            rest = [f"ask {hint}" if hint else "", f"in tensor memory: {', '.join(tensor)}" if tensor else ""]
            raise click.UsageError("; ".join(filter(None, [str(error), *rest]))) from None
        return [arrangement(self.instruction, name) for name in chosen]

    def _axes(self, table: Arrangement, question: Question) -> dict[str, int]:
        """The numbers that are given for the axes of an operand."""
        legal = table.axis_numbers
        if table.layout.kind == "metadata":
            legal["col"] = range(table.cols * self.instruction.metadata.granularity.kept)
        return numbers_of(question.numbers, legal, f"{table.name} of {self.instruction.canonical}")


class _Query(NamedTuple):
    """The elements that the user selects; None and absent axes select all."""

    lane: int | None
    register: int | None
    element: int | None
    bit: int | None
    axes: Sequence[dict[str, int]]  # numbers by axis, one mapping for each operand; metadata also has the column in the packed A

    @property
    def by_thread(self) -> bool:
        """True if the elements are selected by thread or register."""
        return not (self.lane is self.register is self.element is self.bit is None)

    def anywhere(self, tables: Sequence[Arrangement]) -> bool:
        """Return whether some elements are selected, not whole tables."""
        return self.by_thread or any(axes.keys() - table.fixed.keys() for table, axes in zip(tables, self.axes, strict=True))


def _show_elements(tables: Sequence[Arrangement], query: _Query, question: Question) -> None:
    """Print the selected elements: a line for each, in JSON a single object if one element is named."""
    from ptxmma.cli.render import Table, draw, emit

    answers: list[Answer] = []
    for table, axes in zip(tables, query.axes, strict=True):
        records = _of_operand(table, query, axes, question.bits)
        seen: Answer = {"observed": table.operand.observed} if table.operand.observed else {}
        several: Answer = {"operand": table.name} if len(tables) > 1 else {}
        answers += [several | record | seen for record in records]
    if not answers:
        raise click.UsageError("no element lies there and has this place: leave out the lane and the register, or the row and the column")
    if question.form != "json":
        columns = list(dict.fromkeys(name for answer in answers for name in answer))
        rows = [[answer.get(name) for name in columns] for answer in answers]
        draw(Table([name.replace("_", "-") for name in columns], rows), question.form)
    elif len(tables) == 1 and _is_one(tables[0], query):
        emit(answers[0])
    else:
        operand: Answer = {"operand": tables[0].name} if len(tables) == 1 else {}
        emit({"instruction": tables[0].instruction.canonical, **operand, "elements": answers})


def _is_one(table: Arrangement, query: _Query) -> bool:
    """Return whether the query names one element: by its thread and its number, or by its row and its column."""
    (axes,) = query.axes
    by_column = table.layout.kind == "metadata" and "col" in axes
    plane = {"row", "col"} if by_column else {axis for axis in table.axes if axis}
    return (query.lane is not None and not query.element is query.bit is None) or plane <= axes.keys()


def _of_operand(table: Arrangement, query: _Query, axes: dict[str, int], bits: bool) -> list[Answer]:
    """The elements of one operand."""
    operand = table.operand
    for name, value, limit in (
        ("lane", query.lane, table.threads),
        ("register", query.register, max(operand.registers, 1)),
        ("element", query.element, table.elements),
    ):
        if value is not None:
            within(name, value, limit)
    if table.layout.kind == "metadata" and "col" in axes:
        return _indices(table, axes, query, bits)
    if query.bit is not None:
        return [_described(table, query)]
    fixed = {} if query.by_thread else table.fixed  # of a place the first of several tables, of a thread all that it holds
    wanted = fixed | axes
    answers = []
    for place, at in table.everything():
        if (
            query.lane in (None, place.lane)
            and query.register in (None, place.register)
            and query.element in (None, place.element)
            and all(at[axis] == number for axis, number in wanted.items())
        ):
            where = place_answer(place, table, bits)
            answers.append({**where, **at, **_origin(table, at)} if query.by_thread else {**at, **where, **_origin(table, at)})
    return answers if query.by_thread else sorted(answers, key=lambda answer: [answer[axis] for axis in table.axis_numbers])


def _origin(table: Arrangement, at: dict[str, int]) -> Answer:
    """The columns of the full matrix that an element of a sparse A may come from."""
    if table.operand.sparsity is None:
        return {}
    return {"from columns": " or ".join(map(str, table.instruction.metadata.columns(at[table.axes[1]])))}


def _indices(table: Arrangement, axes: dict[str, int], query: _Query, bits: bool) -> list[Answer]:
    """The places of the indices of elements of the packed A: of one row, or of all."""
    if query.by_thread or "chunk" in axes:
        raise click.UsageError("--col of metadata is a column of the packed A: leave out --chunk, --lane, --register, --element and --bit")
    selector = axes.get("selector", table.fixed["selector"])
    rows = [axes["row"]] if "row" in axes else range(table.rows)
    return [_index(table, row, axes["col"], selector, bits) for row in rows]


def _index(table: Arrangement, row: int, col: int, selector: int, bits: bool) -> Answer:
    """The place of the index of an element of the packed A."""
    from ptxmma.catalog.descriptors.bits import bit_range

    metadata = table.instruction.metadata
    lane, low, width = metadata.index(row, col, selector)
    chunk = col // metadata.granularity.kept
    index = bit_range(low, width)
    where: Answer = {"place": f"lane {lane}, {table.operand.name}[{index}]"} if bits else {"lane": lane, "bits": index}
    field = bit_range(*metadata.locate(row, chunk, selector)[1:])
    columns = " or ".join(map(str, metadata.columns(col)))
    return {"row": row, "col": col, "selector": selector, **where, "chunk": chunk, "field": field, "from columns": columns}


def _described(table: Arrangement, query: _Query) -> Answer:
    """The index or chunk that a bit of a thread's metadata describes."""
    if table.layout.kind != "metadata" or query.lane is None or query.element is not None:
        raise click.UsageError(f"--bit is for metadata, with --lane and without --element; {table.name} has no fields of bits")
    assert query.bit is not None
    from ptxmma.catalog.descriptors.bits import bit_range

    metadata = table.instruction.metadata
    within("bit", query.bit, table.elements * metadata.width)
    pattern = metadata.granularity
    field, inside = divmod(query.bit, metadata.width)
    at = table.at(query.lane, field)
    index = inside // pattern.index_bits
    described = pattern.kept // pattern.indices  # elements to an index
    first = at["chunk"] * pattern.kept + index * described
    cols = str(first) if described == 1 else f"{first} to {first + described - 1}"
    low = field * metadata.width
    bits, whole = bit_range(low + index * pattern.index_bits, pattern.index_bits), bit_range(low, metadata.width)
    chosen, row, chunk = (at[name] for name in ("selector", "row", "chunk"))
    return {"lane": query.lane, "bits": bits, "field": whole, "selector": chosen, "row": row, "chunk": chunk, "cols": cols}
