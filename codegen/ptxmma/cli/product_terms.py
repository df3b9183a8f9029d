"""``ptxmma trace`` about an element of a product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.matrices import coloured, elsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.cli.render import Cell
    from ptxmma.matrices.canonical import Geometry
    from ptxmma.matrices.product_operands import ProductOperands
    from ptxmma.matrices.tracing import Place, Source, Term, Trace


def show(instruction: Instruction, operand: Operand, traced: Trace, form: str, images: Mapping[str, Geometry]) -> None:
    """Print what feeds an element of D; ``images`` has the matrices in shared memory whose layout is known."""
    from ptxmma.matrices.product_operands import product_operands

    if form == "json":
        _json(instruction, operand, traced)
    else:
        _table(instruction, product_operands(instruction), traced, form, images)


# --- as a table -------------------------------------------------------------------------------------------------------------


def _table(instruction: Instruction, operands: ProductOperands, traced: Trace, form: str, images: Mapping[str, Geometry]) -> None:
    from ptxmma.cli.render import Table, draw

    names = _names(instruction)
    rows: list[list[str | int | Cell | None]] = []
    for term in traced.terms:
        rows += _rows(term, operands, names, once=form == "grid")
    columns = ["A", "A in", "A scaled by", "picked by", "if", "B", "B in", "B scaled by"]
    if form != "grid":  # what is above a grid, in every row
        columns += ["D", "D in", "C", "C in", "observed"]
        d, c = _where(traced.d, operands.d.name), _before(traced, operands)
        about = [f"D{_at(traced)}", d, f"C{_at(traced)}", c, operands.d.observed or None]
        rows = [[*row, *about] for row in rows]
    filled = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    title = _title(instruction, operands, traced) if form == "grid" else ""
    draw(Table([columns[place] for place in filled], [[row[place] for place in filled] for row in rows], title), form)
    if form == "grid":
        for letter, matrix, source in (("A", operands.a, traced.terms[0].a), ("B", operands.b, traced.terms[0].b[0])):
            if image := images.get(matrix.name):
                click.echo(
                    f"{letter} is read through a descriptor: bytes from the start of an image of {image.x} x {image.k} elements, "
                    f"{image.majorness}-major, swizzle {image.swizzle}, LBO {image.lbo}, SBO {image.sbo}"
                )
            elif source.place is None:
                click.echo(f"{letter} is read through a descriptor: {elsewhere(instruction, matrix.name)} says where its elements are.")


def _rows(term: Term, operands: ProductOperands, names: dict[str, str], *, once: bool) -> list[list[str | int | Cell | None]]:
    """A row for each row of B that the term may read; ``once``: what belongs to the term alone is in the first row only."""
    a_name, b_name = operands.a.name, operands.b.name
    a: list[Cell | str | None] = [
        f"A[{term.a.row}][{term.a.col}]",
        _element(term.a, a_name),
        _scale(term.a, names.get(f"scale-{a_name}", "")),
    ]
    pick: Cell | None = None
    if term.pick is not None:
        pick = coloured(f"lane {term.pick.lane}, {names['metadata']}[{term.pick.bits}]", term.pick.lane)
    rows: list[list[str | int | Cell | None]] = []
    for source in term.b:
        b = [f"B[{source.row}][{source.col}]", _element(source, b_name), _scale(source, names.get(f"scale-{b_name}", ""))]
        rows.append([*a, pick, " ".join(source.fields) or None, *b])
        if once:
            a, pick = [None, None, None], None
    return rows


def _names(instruction: Instruction) -> dict[str, str]:
    """The manual's names of the operands in registers, by our short ones."""
    from ptxmma.matrices.arrangements import arrangement, names

    return {name: arrangement(instruction, name).operand.name for name in names(instruction)}


def _where(place: Place, name: str) -> Cell:
    return coloured(f"lane {place.lane}, {name}{place.register}[{place.bits}]", place.lane)


def _element(source: Source, name: str) -> Cell | str:
    if source.place:
        return _where(source.place, name)
    return "shared memory" if source.address is None else f"byte {source.address}"


def _scale(source: Source, name: str) -> Cell | None:
    return coloured(f"lane {source.scale.lane}, {name}[{source.scale.bits}]", source.scale.lane) if source.scale else None


def _title(instruction: Instruction, operands: ProductOperands, traced: Trace) -> str:
    from ptxmma.matrices.pictures import seen

    kinds = instruction.variant.instruction.operand_kinds
    without = [name for name, kind in kinds.items() if kind.kind == "predicate"] if traced.c is None else []
    d, c = _where(traced.d, operands.d.name).value, _before(traced, operands)
    leave_out = "".join(f"; {name} may leave it out" for name in without)
    observed = f"\n{seen(operands.d.observed)}" if operands.d.observed else ""
    return f"{instruction.canonical}{observed}\nD{_at(traced)}: {d}\nC{_at(traced)}: {c}{leave_out}"


def _at(traced: Trace) -> str:
    return f"[{traced.row}][{traced.col}]"


def _before(traced: Trace, operands: ProductOperands) -> str:
    """Where the element of C is."""
    return str(_where(traced.c, operands.c.name).value) if traced.c else f"the previous value of D{_at(traced)}"


# --- for programs -----------------------------------------------------------------------------------------------------------


def _json(instruction: Instruction, operand: Operand, traced: Trace) -> None:
    from ptxmma.cli.render import emit

    several = {axis: traced.apart.get(axis, 0) for axis in operand.layout.apart} if operand.layout else {}
    observed = {"observed": operand.observed} if operand.observed else {}
    about = {"instruction": instruction.canonical, "row": traced.row, "col": traced.col, **several, **observed}
    terms = [{"a": _source(term.a), "picked_by": _record(term.pick), "b": [_source(source) for source in term.b]} for term in traced.terms]
    emit({**about, "d": _record(traced.d), "c": _record(traced.c), "terms": terms})


def _source(source: Source) -> dict[str, object]:
    picked = {"fields": list(source.fields)} if source.fields else {}
    shared = {} if source.address is None else {"address": source.address}
    return {"row": source.row, "col": source.col, "in": _record(source.place), **shared, "scale": _record(source.scale), **picked}


def _record(place: Place | None) -> dict[str, str | int] | None:
    if place is None:
        return None
    return {"lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}
