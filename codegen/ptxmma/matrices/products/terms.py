"""The terms of one element of D, and the place of everything that feeds them."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands.tensor_fragment import RegisterPlace
from ptxmma.matrices.arrangements import Place
from ptxmma.matrices.places import Spot, TensorPlace
from ptxmma.matrices.product_operands import A, B
from ptxmma.matrices.products.inputs import Inputs


class Source(NamedTuple):
    """An element of A or B that a term may multiply."""

    row: int
    col: int
    place: Spot  # its place; in shared memory from the start of the image that is given, None without one
    scale: Spot  # its scale factor, where there is one
    fields: tuple[str, ...] = ()  # sparse: the values of the metadata's field that pick it; empty where nothing is picked


class Term(NamedTuple):
    """One product of the sum: an element of A times an element of B."""

    a: Source
    pick: Spot  # sparse: the bits of the index that picks the row of B
    b: tuple[Source, ...]  # dense: one; sparse: every row of B that the index may pick


class Trace(NamedTuple):
    """The inputs of ``D[row][col]``; D is the sum of the terms and of C."""

    row: int
    col: int
    d: Place | TensorPlace
    c: Place | None  # None: the instruction adds to D and has no C
    terms: tuple[Term, ...]
    apart: dict[str, int]  # the number of this product, of several at once: {"computation": 2}; empty where there is one
    register: RegisterPlace | None = None  # for D in tensor memory: the register that a given load puts it into
    unknown: tuple[str, ...] = ()  # reasons why places are None that no source says


def terms(instruction: Instruction, inputs: Inputs, row: int, col: int) -> tuple[Term, ...]:
    """The terms of an element of D: one for each row of B, or for each stored element of a row of a sparse A."""

    def a(column: int, k: int) -> Source:
        return Source(row, column, inputs.element(A, row, column), inputs.scale(A, row, k))

    def b(k: int, fields: tuple[str, ...] = ()) -> Source:
        return Source(k, col, inputs.element(B, k, col), inputs.scale(B, col, k), fields)

    pattern = layouts.granularity(instruction.database.spec, instruction.variant)
    if pattern is None:
        return tuple(Term(a(k, k), None, (b(k),)) for k in range(instruction.extents["k"]))
    legal, every = pattern.admitted(instruction.variant.facts), []
    for stored in range(inputs.product.a.depth):
        columns = pattern.columns(stored, legal)
        picked = tuple(b(k, fields) for k, fields in columns.items())
        every.append(Term(a(stored, min(columns)), inputs.index(row, stored), picked))
    return tuple(every)
