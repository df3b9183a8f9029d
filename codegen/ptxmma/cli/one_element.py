"""``ptxmma layout`` about one element: which thread holds it where, or which element stands in a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxmma.cli.matrices import within
from ptxmma.cli.place_names import Answer, place_answer

if TYPE_CHECKING:
    from ptxmma.matrices.arrangements import Arrangement


def one_element(table: Arrangement, operand: str, asked: dict[str, Any]) -> Answer | None:
    """The answer to a question about one element; None where the table is asked for."""
    row, col, lane, bits = asked["row"], asked["col"], asked["lane"], asked["bits"]
    packed = operand == "metadata"
    if row is not None:
        columns = table.cols * table.instruction.metadata.granularity.kept if packed else table.cols
        within("row", row, table.rows)
        within("col", col, columns)
        if packed:
            return _index(table, row, col, bits)
        place = {axis: at for axis, at in zip(table.axes, (row, col), strict=True) if axis}
        return place | table.fixed | place_answer(table.locate(row, col), table, operand, bits) | _origin(table, col)
    if lane is not None:
        within("lane", lane, table.threads)
        if packed:
            within("bit", asked["bit"], table.elements * table.instruction.metadata.width)
            return _described(table, lane, asked["bit"])
        within("element", asked["element"], table.elements)
        at = table.at(lane, asked["element"])
        return place_answer(table.place(lane, asked["element"]), table, operand, bits) | at | _origin(table, at[table.axes[1]])
    return None


def _origin(table: Arrangement, col: int) -> Answer:
    """Of a sparse A: the columns of the full matrix that an element may come from."""
    if table.operand.sparsity is None:
        return {}
    return {"from columns": " or ".join(map(str, table.instruction.metadata.columns(col)))}


def _index(table: Arrangement, row: int, col: int, bits: bool) -> Answer:
    """Where the index of an element of the packed A stands."""
    metadata, selector = table.instruction.metadata, table.fixed["selector"]
    lane, low, width = metadata.index(row, col, selector)
    chunk = col // metadata.granularity.kept
    index = _range(low, width)
    where: Answer = {"place": f"lane {lane}, {table.operand.name}[{index}]"} if bits else {"lane": lane, "bits": index}
    field = _range(*metadata.locate(row, chunk, selector)[1:])
    columns = " or ".join(map(str, metadata.columns(col)))
    return {"row": row, "col": col, "selector": selector, **where, "chunk": chunk, "field": field, "from columns": columns}


def _described(table: Arrangement, lane: int, bit: int) -> Answer:
    """What a bit of a thread's metadata describes."""
    metadata = table.instruction.metadata
    pattern = metadata.granularity
    field, inside = divmod(bit, metadata.width)
    at = table.at(lane, field)
    index = inside // pattern.index_bits
    described = pattern.kept // pattern.indices  # elements to an index
    first = at["chunk"] * pattern.kept + index * described
    cols = str(first) if described == 1 else f"{first} to {first + described - 1}"
    low = field * metadata.width
    bits, whole = _range(low + index * pattern.index_bits, pattern.index_bits), _range(low, metadata.width)
    chosen, row, chunk = (at[name] for name in ("selector", "row", "chunk"))
    return {"lane": lane, "bits": bits, "field": whole, "selector": chosen, "row": row, "chunk": chunk, "cols": cols}


def _range(low: int, width: int) -> str:
    return f"{low + width - 1}:{low}" if width > 1 else str(low)


def show_answer(answer: Answer, form: str) -> None:
    """Print an answer about one element."""
    from ptxmma.cli.render import Table, draw, emit

    if form == "json":
        emit(answer)
    else:
        draw(Table([name.replace("_", "-") for name in answer], [list(answer.values())]), form)
