"""``ptxmma trace`` about an element of a product."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from ptxmma.cli.render import coloured
from ptxmma.cli.tiles import elsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.catalog.operands.tensor_fragment import RegisterPlace
    from ptxmma.cli.render import Cell
    from ptxmma.matrices.places import MemoryPlace, Spot
    from ptxmma.matrices.product_operands import Multiplicand, ProductOperands
    from ptxmma.matrices.shared.canonical import Geometry
    from ptxmma.matrices.tracing import Source, Term, Trace

#: The place of data for which no source has one.
_UNKNOWN = "not known"


def show(
    instruction: Instruction,
    operand: Operand,
    traced: Trace,
    form: str,
    described: Mapping[str, Multiplicand],
    images: Mapping[str, Geometry],
) -> None:
    """Print the terms of an element of D.

    Args:
        instruction: the product.
        operand: D.
        traced: the element's trace by :func:`ptxmma.matrices.tracing.trace`.
        form: the form of the output.
        described: the matrices that are in shared memory, by their letters.
        images: their images, where the layouts are known, by the names of the matrices.
    """
    if form == "json":
        _json(instruction, operand, traced)
        return
    _table(instruction, traced, form, {each.name for each in described.values()})
    if form == "grid":
        for letter, matrix in described.items():
            click.echo(f"{letter.upper()} is read through a descriptor: {_image(instruction, matrix, images.get(matrix.name))}")
        for sentence in traced.unknown:
            click.echo(f"{_UNKNOWN}: {sentence}")


# --- as a table -------------------------------------------------------------------------------------------------------------


def _table(instruction: Instruction, traced: Trace, form: str, described: Set[str]) -> None:
    from ptxmma.cli.render import Table, draw
    from ptxmma.matrices.product_operands import product_operands

    operands = product_operands(instruction)
    words = _Words(operands, _names(instruction), described, instruction.extents.get("ctas", 1) > 1)
    rows: list[list[str | int | Cell | None]] = []
    for term in traced.terms:
        rows += words.rows(term, once=form == "grid")
    columns = ["A", "A in", "A scaled by", "picked by", "if", "B", "B in", "B scaled by"]
    if form != "grid":  # what is above a grid, in every row
        columns += ["D", "D in", "D in registers", "C", "C in", "observed"]
        loaded = words.registers(traced.register) if traced.register else None
        about = [f"D{_at(traced)}", words.where(traced.d, operands.d.name), loaded, f"C{_at(traced)}", words.before(traced)]
        rows = [[*row, *about, operands.d.observed or None] for row in rows]
    filled = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    title = _title(instruction, words, traced) if form == "grid" else ""
    draw(Table([columns[place] for place in filled], [[row[place] for place in filled] for row in rows], title), form)


def _image(instruction: Instruction, matrix: Multiplicand, image: Geometry | None) -> str:
    """The image that a descriptor describes, or the command that shows it."""
    if image is None:
        return f"{elsewhere(instruction, matrix.name)} says where its elements are."
    whose = f"the image of {image.x} x {image.k} elements of its CTA" if instruction.extents.get("ctas", 1) > 1 else ""
    return (
        f"bytes from the start of {whose or f'an image of {image.x} x {image.k} elements'}, {image.majorness}-major, "
        f"swizzle {image.swizzle}, LBO {image.lbo}, SBO {image.sbo}"
    )


class _Words(NamedTuple):
    """Places in words.

    Attributes:
        operands: the operands of the product.
        names: the manual's names of the operands in registers, by our short ones.
        described: the names of the matrices in shared memory.
        pair: whether a pair of CTAs executes the product, so that a place belongs to one of them.
    """

    operands: ProductOperands
    names: Mapping[str, str]
    described: Set[str]
    pair: bool

    def rows(self, term: Term, *, once: bool) -> list[list[str | int | Cell | None]]:
        """A row for each row of B that the term may read; ``once``: what belongs to the term alone is in the first row only."""
        a = [f"A[{term.a.row}][{term.a.col}]", *self.source(term.a, self.operands.a.name)]
        pick = None if term.pick is None else self.where(term.pick, self.names.get("metadata", ""), register=False)
        rows: list[list[str | int | Cell | None]] = []
        for source in term.b:
            b = [f"B[{source.row}][{source.col}]", *self.source(source, self.operands.b.name)]
            rows.append([*a, pick, " ".join(source.fields) or None, *b])
            if once:
                a, pick = [None, None, None], None
        return rows

    def source(self, source: Source, name: str) -> list[str | Cell | None]:
        """The place of an element, and of its scale factor."""
        place = "shared memory" if source.place is None and name in self.described else self.where(source.place, name)
        scale = None if source.scale is None else self.where(source.scale, self.names.get(f"scale-{name}", ""), register=False)
        return [place, scale]

    def where(self, place: Spot, name: str, *, register: bool = True) -> Cell | str:
        """``"lane 13, r1[31:16]"``, ``"byte 432"``, ``"byte 431 [7:4] of CTA 1"`` or ``"lane 37, column 200, [31:0]"``.

        Args:
            place: the place.
            name: the name of the operand in registers.
            register: whether to add the number of the register.
        """
        from ptxmma.matrices.tracing import MemoryPlace, TensorPlace

        if place is None:
            return _UNKNOWN
        if isinstance(place, MemoryPlace):
            bits = "" if place.low == 0 and place.width % 8 == 0 else f" [{place.bits}]"
            return f"byte {place.byte}{bits}{self._of_cta(place.cta)}{_origin(place)}"
        if isinstance(place, TensorPlace):
            every = (place, *place.copies)
            lanes = list(dict.fromkeys(str(copy.lane) for copy in every))
            owner = " of both CTAs" if len({copy.cta for copy in every}) > 1 else self._of_cta(place.cta)
            return coloured(f"lane{'s' * (len(lanes) > 1)} {' '.join(lanes)}, column {place.column}, [{place.bits}]{owner}", place.lane)
        return coloured(f"lane {place.lane}, {name}{place.register if register else ''}[{place.bits}]", place.lane)

    def registers(self, place: RegisterPlace) -> Cell:
        """The register that a load puts the element of D into, or a store takes it from."""
        from ptxmma.catalog.descriptors.bits import bit_range

        d = self.operands.d
        assert d.element is not None
        bits = bit_range(place.bit, d.element.bits)
        thread = f"warp {place.warp}, lane {place.lane}"
        return coloured(f"taddr {place.address:#x}: {thread}, r{place.register}[{bits}]{self._of_cta(place.cta)}", place.lane)

    def before(self, traced: Trace) -> Cell | str:
        """The place of the element of C."""
        return self.where(traced.c, self.operands.c.name) if traced.c else f"the previous value of D{_at(traced)}"

    def _of_cta(self, cta: int) -> str:
        return f" of CTA {cta}" if self.pair else ""


def _origin(place: MemoryPlace) -> str:
    """``" from (64, 137)"``; empty where no copy is known."""
    if place.origin is None:
        return ""
    at = ", ".join(map(str, place.origin.at))
    return f" from ({at})" if place.origin.byte is not None else f" filled: ({at}) is outside"


def _names(instruction: Instruction) -> dict[str, str]:
    """The manual's names of the operands in registers, by our short ones."""
    from ptxmma.matrices.arrangements import arrangement, names

    return {name: arrangement(instruction, name).operand.name for name in names(instruction)}


def _title(instruction: Instruction, words: _Words, traced: Trace) -> str:
    from ptxmma.cli.render import plain
    from ptxmma.matrices.pictures import seen

    kinds, d = instruction.variant.instruction.operand_kinds, words.operands.d
    without = [name for name, kind in kinds.items() if kind.kind == "predicate"] if traced.c is None else []
    leave_out = "".join(f"; {name} may leave it out" for name in without)
    lines = [instruction.canonical]
    lines += [", ".join(f"{name} = {value}" for name, value in instruction.variant.chosen)] if instruction.variant.chosen else []
    lines += [seen(d.observed)] if d.observed else []
    lines.append(f"D{_at(traced)}: {plain(words.where(traced.d, d.name))}")
    if traced.register:
        lines.append(f"  in registers, {plain(words.registers(traced.register))}")
    return "\n".join([*lines, f"C{_at(traced)}: {plain(words.before(traced))}{leave_out}"])


def _at(traced: Trace) -> str:
    return f"[{traced.row}][{traced.col}]"


# --- for programs -----------------------------------------------------------------------------------------------------------


def _json(instruction: Instruction, operand: Operand, traced: Trace) -> None:
    from ptxmma.cli.render import emit

    several = {axis: traced.apart.get(axis, 0) for axis in operand.layout.apart} if operand.layout else {}
    observed = {"observed": operand.observed} if operand.observed else {}
    about = {"instruction": instruction.canonical, **dict(instruction.variant.chosen), "row": traced.row, "col": traced.col}
    terms = [{"a": _source(term.a), "picked_by": _record(term.pick), "b": [_source(source) for source in term.b]} for term in traced.terms]
    loaded = {"register": traced.register._asdict()} if traced.register else {}
    unknown = {"unknown": list(traced.unknown)} if traced.unknown else {}
    emit({**about, **several, **observed, "d": _record(traced.d), **loaded, "c": _record(traced.c), "terms": terms, **unknown})


def _source(source: Source) -> dict[str, object]:
    picked = {"fields": list(source.fields)} if source.fields else {}
    return {"row": source.row, "col": source.col, "in": _record(source.place), "scale": _record(source.scale), **picked}


def _record(place: Spot) -> dict[str, object] | None:
    from ptxmma.matrices.tracing import MemoryPlace, TensorPlace

    if place is None:
        return None
    if isinstance(place, MemoryPlace):
        origin = {"tensor": {"at": place.origin.at, "byte": place.origin.byte}} if place.origin else {}
        return {"cta": place.cta, "byte": place.byte, "bits": place.bits, **origin}
    if isinstance(place, TensorPlace):
        copies = {"copies": [_record(copy) for copy in place.copies]} if place.copies else {}
        return {"cta": place.cta, "lane": place.lane, "column": place.column, "bits": place.bits, **copies}
    return {"lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}
