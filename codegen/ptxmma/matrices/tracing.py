"""What feeds one element of D: every element of A, B and C, the metadata that picks them, and the factors that scale them.

>>> import ptxmma
>>> ins = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
>>> found = trace(ins, 9, 3)
>>> found.d.lane, found.d.element, len(found.terms)
(5, 3, 16)
"""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, Missing, OperandForm
from ptxmma.matrices.arrangements import Arrangement, Place, arrangement, names


class Source(NamedTuple):
    """An element of A or B that a term may multiply."""

    row: int
    col: int
    place: Place | None  # None: in shared memory, found through a descriptor
    scale: Place | None  # its scale factor, where there is one
    fields: tuple[str, ...] = ()  # sparse: the values of the metadata's field that pick it; empty where nothing is picked


class Term(NamedTuple):
    """One product of the sum: an element of A times an element of B."""

    a: Source
    pick: Place | None  # sparse: the bits of the index that picks the row of B
    b: tuple[Source, ...]  # dense: one; sparse: every row of B that the index may pick


class Trace(NamedTuple):
    """What feeds ``D[row][col]``; D is the sum of the terms and of C."""

    row: int
    col: int
    d: Place
    c: Place | None  # None: the instruction adds to what D holds, and has no C of its own
    terms: tuple[Term, ...]


def trace(
    instruction: Instruction,
    row: int,
    col: int,
    *,
    form: str | None = None,
    computation: int = 0,
    selector: int | None = None,
    scale_ids: dict[str, int] | None = None,
) -> Trace:
    """Every register, and every bit of metadata, that feeds one element of D.

    Args:
        instruction: one that multiplies matrices.
        row: row of D, 0..m-1.
        col: column of D, 0..n-1.
        form: ``"registers"`` or ``"descriptor"`` where A may come from either; by default the first, registers.
        computation: which of several products at once, 0..3 for ``m8n8k4`` with f16.
        selector: the sparsity selector of a sparse instruction; 0 by default.
        scale_ids: the scale ids that are not their first legal value, by operand: ``{"byte-id-a": 2}``.

    Raises:
        Missing: the instruction has no D, no such form, or nothing of what is given.
        ValueError: a place outside D, or a value that is not legal.
    """
    if instruction.operation != "multiply":
        raise Missing(f"{instruction.canonical} multiplies no matrices")
    if selector is not None and not instruction.sparse:
        raise Missing(f"{instruction.canonical} is not sparse: it has no selector")
    operands = operand_form(instruction, form)
    several = {"computation": computation} if computation else {}
    held = {operand.name for operand in operands.operands}
    tables = {name: arrangement(instruction, name, **_several(instruction, name, several)) for name in ("d", "c", "a", "b") if name in held}
    metadata = arrangement(instruction, "metadata", selector=selector or 0) if instruction.sparse else None
    scales = _scales(instruction, operands, scale_ids or {})
    d = tables["d"].locate(row, col)
    c = tables["c"].locate(row, col) if "c" in tables else None
    depth = instruction.extents["k"]

    def scale(matrix: str, k: int) -> Place | None:
        table = scales.get(matrix)
        if table is None:
            return None
        blocks = table.cols if matrix == "a" else table.rows
        block = k * blocks // depth
        return table.locate(row, block) if matrix == "a" else table.locate(block, col)

    def b(k: int, fields: tuple[str, ...] = ()) -> Source:
        return Source(k, col, tables["b"].locate(k, col) if "b" in tables else None, scale("b", k), fields)

    def a(k: int, first: int) -> Source:
        return Source(row, k, tables["a"].locate(row, k) if "a" in tables else None, scale("a", first))

    if metadata is None:
        return Trace(row, col, d, c, tuple(Term(a(k, k), None, (b(k),)) for k in range(depth)))
    facts = instruction.metadata
    terms = []
    for packed in range(facts.chunks * facts.granularity.kept):
        columns = facts.columns(packed)
        lane, low, width = facts.index(row, packed, selector or 0)
        pick = Place(lane, low // facts.width, 0, low, width)
        terms.append(Term(a(packed, min(columns)), pick, tuple(b(k, fields) for k, fields in columns.items())))
    return Trace(row, col, d, c, tuple(terms))


def operand_form(instruction: Instruction, name: str | None = None) -> OperandForm:
    """The operand list of that name, or the first one; :class:`Missing` where there is none."""
    for form in instruction.forms:
        if name in (None, form.name):
            return form
    known = [form.name for form in instruction.forms if form.name]
    has = f"it has {' and '.join(known)}" if known else "its operands come in one way only"
    raise Missing(f"{instruction.canonical} has no form {name!r}: {has}")


def _several(instruction: Instruction, name: str, chosen: dict[str, int]) -> dict[str, int]:
    """What is chosen, where the operand has it to choose; of D it must have it, so that nothing is ignored."""
    return chosen if name == "d" or set(chosen) <= set(arrangement(instruction, name).fixed) else {}


def _scales(instruction: Instruction, form: OperandForm, ids: dict[str, int]) -> dict[str, Arrangement]:
    """The tables of the scale factors by matrix, with the ids that are given."""
    kinds = instruction.variant.instruction.operand_kinds
    known = [operand.name for operand in form.operands if operand.kind in ("byte-id", "thread-id")]
    for name in ids:
        if name not in known:
            raise Missing(f"{instruction.canonical} has no {name}{': it has ' + ', '.join(known) if known else ''}")
    found = {}
    for matrix in ("a", "b"):
        if f"scale-{matrix}" in names(instruction):
            chosen = {name[: -len(matrix) - 1].replace("-", "_"): value for name, value in ids.items() if kinds[name].of == matrix}
            found[matrix] = arrangement(instruction, f"scale-{matrix}", **chosen)
    return found
