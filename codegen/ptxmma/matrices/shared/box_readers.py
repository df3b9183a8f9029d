"""Matrix descriptors that read what TMA copies: the image of a box against the canonical layouts of each family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog.descriptors.shared_formats import matrix_formats
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.canonical import Geometry, packing
from ptxmma.matrices.shared.descriptor import Descriptor
from ptxmma.matrices.shared.readable_types import majornesses, paddings, readable
from ptxmma.model import ElementType


class Reader(NamedTuple):
    """A family that reads the element type of a box, and its descriptor of the box as a matrix.

    Attributes:
        family: ``"wgmma"``.
        majorness: ``"K"`` or ``"MN"``: the dimension along the rows of the image.
        x: rows of A or columns of B.
        k: depth.
        descriptor: the descriptor of the whole matrix; None where no canonical layout has the image.
        fault: the reason why none has it, with the first element that differs.
    """

    family: str
    majorness: str
    x: int
    k: int
    descriptor: Descriptor | None
    fault: str = ""


def readers(box: BoxGeometry, start: int = 0, *, database: DatabaseLike = None) -> list[Reader]:
    """The families that read the elements of a box at a shared address, with each majorness that they read them with.

    A row of the image is a row of a K-major matrix, or a column of an MN-major one; all rows of the box follow each other.
    """
    if box.element is None:
        return []
    return [_reader(box, box.element, family, majorness, start, database) for family, majorness in _reading(box, box.element, database)]


def _reading(box: BoxGeometry, element: ElementType, database: DatabaseLike) -> Iterator[tuple[str, str]]:
    """The families and majornesses with which an element type is read."""
    for format in matrix_formats(catalog(database).database.spec):
        entries = paddings(format.family, database) if box.padded else majornesses(format.family, database)
        for majorness in dict.fromkeys(entry.majorness for entry in entries):
            if element.name in readable(majorness, database, family=format.family, padded=box.padded):
                yield format.family, majorness


def _reader(box: BoxGeometry, element: ElementType, family: str, majorness: str, start: int, database: DatabaseLike) -> Reader:
    rows = box.rows
    across = packing(element, family, database, padded=box.padded).fitting(rows.pitch)
    x, k = (rows.number, across) if majorness == "K" else (across, rows.number)
    reader = Reader(family, majorness, x, k, None)
    try:
        layout = Geometry(element, majorness, box.swizzle, x, k, start=start, padded=box.padded, family=family, database=database)
    except ValueError as error:
        return reader._replace(fault=str(error).partition("; store_tiles")[0])
    if wrong := box.difference(layout):
        place = f"row {wrong.x}, column {wrong.k}"
        return reader._replace(fault=f"{place}: the copy writes it to {wrong.copied}, the canonical layout has it at {wrong.expected}")
    return reader._replace(descriptor=Descriptor.of(layout))
