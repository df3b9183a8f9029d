"""``ptxmma trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.matrices import coloured, elsewhere, within
from ptxmma.cli.options import find, instruction_argument, table_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.cli.render import Cell
    from ptxmma.matrices.arrangements import Place
    from ptxmma.matrices.tracing import Source, Term, Trace

_SCALE_IDS = ("byte-id-a", "thread-id-a", "byte-id-b", "thread-id-b")


def _scale_id_options(command: click.decorators.FC) -> click.decorators.FC:
    for name in reversed(_SCALE_IDS):
        command = click.option(f"--{name}", type=int, help="Of scale factors; the first that is legal where none is given.")(command)
    return command


@click.command("trace")
@instruction_argument
@click.option("--row", type=int, required=True, help="The row of the element of D.")
@click.option("--col", type=int, required=True, help="Its column.")
@click.option("--computation", type=int, default=0, help="Which of several products at once; the first where none is given.")
@click.option("--a-from", type=click.Choice(["registers", "descriptor"]), help="Where A is, if it may be in either; registers otherwise.")
@click.option("--selector", type=int, help="The sparsity selector; 0 where none is given.")
@_scale_id_options
@table_options()
def command(
    spelling: str,
    database: str | None,
    row: int,
    col: int,
    computation: int,
    a_from: str | None,
    selector: int | None,
    form: str,
    **scale_ids: int | None,
) -> None:
    """Say what feeds one element of D.

    Every element of A, B and C with its lane and its bits, the metadata that picks rows of B, and the scale factors.  The sum has a
    term for each row: of a sparse A for each stored element, with every row of B that its index may pick.

    \b
    Example:
      ptxmma trace mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 --row 9 --col 3
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.matrices.tracing import trace

    instruction = find(spelling, database)
    if instruction.shape is not None:
        within("row", row, instruction.shape[0])
        within("col", col, instruction.shape[1])
    ids = {name: value for name in _SCALE_IDS if (value := scale_ids[name.replace("-", "_")]) is not None}
    try:
        found = trace(instruction, row, col, form=a_from, computation=computation, selector=selector, scale_ids=ids)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if form == "json":
        _json(instruction, found, computation)
    else:
        _table(instruction, found, form)


# --- as a table -------------------------------------------------------------------------------------------------------------


def _table(instruction: Instruction, found: Trace, form: str) -> None:
    from ptxmma.cli.render import Table, draw

    names = {kind: _name(instruction, kind) for kind in ("metadata", "scale-a", "scale-b")}
    rows: list[list[str | int | Cell | None]] = []
    for term in found.terms:
        rows += _rows(term, names, once=form == "grid")
    columns = ["A", "A in", "A scaled by", "picked by", "if", "B", "B in", "B scaled by"]
    if form != "grid":  # what stands above a grid, for every row
        columns += ["D", "D in", "C", "C in"]
        about: list[str | int | Cell | None] = [f"D{_at(found)}", _where(found.d, "d"), f"C{_at(found)}", _before(found)]
        rows = [[*row, *about] for row in rows]
    filled = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    title = _title(instruction, found) if form == "grid" else ""
    draw(Table([columns[place] for place in filled], [[row[place] for place in filled] for row in rows], title), form)
    if form == "grid":
        for matrix, source in (("A", found.terms[0].a), ("B", found.terms[0].b[0])):
            if source.place is None:
                click.echo(f"{matrix} is read through a descriptor: {elsewhere(instruction, matrix.lower())} says where its elements lie.")


def _rows(term: Term, names: dict[str, str], *, once: bool) -> list[list[str | int | Cell | None]]:
    """A row for each row of B that the term may read; ``once``: what belongs to the term alone stands in the first only."""
    a: list[Cell | str | None] = [f"A[{term.a.row}][{term.a.col}]", _element(term.a, "a"), _scale(term.a, names["scale-a"])]
    pick: Cell | None = None
    if term.pick is not None:
        pick = coloured(f"lane {term.pick.lane}, {names['metadata']}[{term.pick.bits}]", term.pick.lane)
    rows: list[list[str | int | Cell | None]] = []
    for source in term.b:
        b = [f"B[{source.row}][{source.col}]", _element(source, "b"), _scale(source, names["scale-b"])]
        rows.append([*a, pick, " ".join(source.fields) or None, *b])
        if once:
            a, pick = [None, None, None], None
    return rows


def _where(place: Place, name: str) -> Cell:
    return coloured(f"lane {place.lane}, {name}{place.register}[{place.bits}]", place.lane)


def _element(source: Source, name: str) -> Cell | str:
    return _where(source.place, name) if source.place else "shared memory"


def _scale(source: Source, name: str) -> Cell | None:
    return coloured(f"lane {source.scale.lane}, {name}[{source.scale.bits}]", source.scale.lane) if source.scale else None


def _name(instruction: Instruction, kind: str) -> str:
    """The manual's name of an operand that is spread over threads."""
    from ptxmma.matrices.arrangements import arrangement, names

    return arrangement(instruction, kind).operand.name if kind in names(instruction) else ""


def _title(instruction: Instruction, found: Trace) -> str:
    kinds = instruction.variant.instruction.operand_kinds
    without = [name for name, kind in kinds.items() if kind.kind == "predicate"] if found.c is None else []
    d, c = _where(found.d, "d").value, _before(found)
    leave_out = "".join(f"; {name} may leave it out" for name in without)
    return f"{instruction.canonical}\nD{_at(found)}: {d}\nC{_at(found)}: {c}{leave_out}"


def _at(found: Trace) -> str:
    return f"[{found.row}][{found.col}]"


def _before(found: Trace) -> str:
    """Where the element of C is."""
    return str(_where(found.c, "c").value) if found.c else f"what D{_at(found)} held before"


# --- for programs -----------------------------------------------------------------------------------------------------------


def _json(instruction: Instruction, found: Trace, computation: int) -> None:
    from ptxmma.cli.render import emit

    about = {"instruction": instruction.canonical, "row": found.row, "col": found.col, "computation": computation}
    terms = [{"a": _source(term.a), "picked_by": _record(term.pick), "b": [_source(source) for source in term.b]} for term in found.terms]
    emit({**about, "d": _record(found.d), "c": _record(found.c), "terms": terms})


def _source(source: Source) -> dict[str, object]:
    fields: Sequence[str] = source.fields
    picked = {"fields": list(fields)} if fields else {}
    return {"row": source.row, "col": source.col, "in": _record(source.place), "scale": _record(source.scale), **picked}


def _record(place: Place | None) -> dict[str, str | int] | None:
    if place is None:
        return None
    return {"lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}
