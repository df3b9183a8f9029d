"""``ptxmma trace`` about an element that is loaded, stored or transposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxmma.cli.matrices import coloured

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.cli.render import Cell
    from ptxmma.matrices.tracing import MemoryPlace, Move, Moves, Place, TensorPlace


def show(instruction: Instruction, operand: Operand, traced: Moves, form: str) -> None:
    """Print the moves of an element: several where threads hold it in copies."""
    from ptxmma.cli.render import Table, draw, emit
    from ptxmma.matrices.pictures import seen

    if form == "json":
        observed = {"observed": operand.observed} if operand.observed else {}
        moves = [
            {"from": _record(move.source, move.source_operand), "to": _record(move.target, move.target_operand)} for move in traced.moves
        ]
        emit({"instruction": instruction.canonical, "operand": traced.operand, **traced.at, **observed, "moves": moves})
        return
    columns, rows = ["element", "from", "to"], [_row(traced, move) for move in traced.moves]
    if operand.observed and form != "grid":
        columns, rows = [*columns, "observed"], [[*row, operand.observed] for row in rows]
    title = "\n".join([instruction.canonical, *([seen(operand.observed)] if operand.observed else [])])
    draw(Table(columns, rows, title), form)


def _row(traced: Moves, move: Move) -> list[str | Cell]:
    element = traced.operand + "".join(f"[{number}]" for number in traced.at.values())
    return [element, _where(move.source, move.source_operand), _where(move.target, move.target_operand)]


def _where(place: Place | MemoryPlace | TensorPlace, operand: str) -> str | Cell:
    """``"lane 13, r1[31:16]"``, ``"p of lane 11 + 10 bytes, [15:0]"``, or ``"taddr + lane 3, column 5, [31:0]"``."""
    from ptxmma.matrices.tracing import MemoryPlace, TensorPlace

    if isinstance(place, TensorPlace):
        return f"{operand}{' of the second access' if place.access else ''} + lane {place.lane}, column {place.column}, [{place.bits}]"

    if not isinstance(place, MemoryPlace):
        return coloured(f"lane {place.lane}, {operand}{place.register}[{place.bits}]", place.lane)
    owner = "" if place.lane is None else f" of lane {place.lane}"
    text = f"{operand}{owner} + {place.byte} bytes, [{place.bits}]"
    return text if place.lane is None else coloured(text, place.lane)


def _record(place: Place | MemoryPlace | TensorPlace, operand: str) -> dict[str, str | int | None]:
    from ptxmma.matrices.tracing import MemoryPlace, TensorPlace

    if isinstance(place, TensorPlace):
        return {"tensor_address": operand, "access": place.access, "lane": place.lane, "column": place.column, "bits": place.bits}

    if isinstance(place, MemoryPlace):
        return {"address": operand, "lane": place.lane, "byte": place.byte, "bits": place.bits}
    return {"operand": operand, "lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}
