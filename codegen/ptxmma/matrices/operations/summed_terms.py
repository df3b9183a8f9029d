"""What feeds an element of a product, wherever the matrices lie: registers, shared memory, tensor memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ptxmma.catalog.operands.tensor_fragment import RegisterPlace
from ptxmma.matrices.arrangements import Place
from ptxmma.matrices.operations.operation import MemoryPlace, TensorPlace
from ptxmma.matrices.shared.canonical import Geometry

#: Where something is; None: in shared memory, where a descriptor says, or where no source says.
Spot = Place | MemoryPlace | TensorPlace | None


class Source(NamedTuple):
    """An element of A or B that a term may multiply."""

    row: int
    col: int
    place: Spot  # in shared memory: from the start of the image that is given; None without one
    scale: Place | TensorPlace | None  # its scale factor, where there is one
    fields: tuple[str, ...] = ()  # sparse: the values of the metadata's field that pick it; empty where nothing is picked


class Term(NamedTuple):
    """One product of the sum: an element of A times an element of B."""

    a: Source
    pick: Place | TensorPlace | None  # sparse: the bits of the index that picks the row of B
    b: tuple[Source, ...]  # dense: one; sparse: every row of B that the index may pick


class Trace(NamedTuple):
    """What feeds ``D[row][col]``; D is the sum of the terms and of C."""

    row: int
    col: int
    d: Place | TensorPlace
    c: Place | None  # None: the instruction adds to D and has no C
    terms: tuple[Term, ...]
    apart: dict[str, int]  # which of several products at once: {"computation": 2}; empty where there is one
    register: RegisterPlace | None = None  # of D in tensor memory: where a load that is given puts it
    unknown: tuple[str, ...] = ()  # why places are None that no source says


class Picking(NamedTuple):
    """How metadata picks rows of B.

    Attributes:
        stored: kept elements of a row of A.
        columns: the rows of B that a kept element may meet, each with the values of the field that say so.
        place: where the index of a kept element is.
    """

    stored: int
    columns: Callable[[int], dict[int, tuple[str, ...]]]
    place: Callable[[int], Place | TensorPlace | None]


def terms(
    depth: int, a: Callable[[int, int], Source], b: Callable[[int, tuple[str, ...]], Source], picking: Picking | None
) -> tuple[Term, ...]:
    """The terms of an element of D.

    Args:
        depth: K.
        a: the element of A in a stored column, whose scale factor is that of row ``k`` of B.
        b: the element of B in a row, with the values of the field that pick it.
        picking: of a sparse A; None for a dense one.
    """
    if picking is None:
        return tuple(Term(a(k, k), None, (b(k, ()),)) for k in range(depth))
    sparse = []
    for packed in range(picking.stored):
        columns = picking.columns(packed)
        rows = tuple(b(k, fields) for k, fields in columns.items())
        sparse.append(Term(a(packed, min(columns)), picking.place(packed), rows))
    return tuple(sparse)


def in_image(image: Geometry, line: int, along: int, cta: int = 0) -> MemoryPlace:
    """Where an element is in an image: ``line`` is a row of A or a column of B."""
    return MemoryPlace(None, int(image.address(line, along)), int(image.bit(line, along)), image.element.bits, cta)
