"""The cost of the usual accesses of a warp to a matrix in shared memory.

Without NumPy, for one image at a time; :func:`ptxmma.matrices.shared_memory.bank_conflicts` takes any accesses, many at once.

>>> from ptxmma.matrices.shared.canonical import Geometry
>>> for pattern in access_patterns(Geometry("bf16", "K", "128B", 64, 64)):
...     print(pattern.wavefronts, pattern.least, pattern.name)
4 4 16 bytes of each of 32 lines, as ldmatrix and stmatrix
4 1 one element of each of 32 lines
4 4 whole lines, 16 bytes in each lane
1 1 a register of a fragment of A
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.roles import multiplicands
from ptxmma.matrices.shared.canonical import Geometry
from ptxmma.matrices.shared.readable_types import memory_of
from ptxmma.model import Banks, Layout

#: The address that each lane accesses, in the order of the lanes; None for an inactive lane.
Access = Sequence[int | None]


class AccessPattern(NamedTuple):
    """The cost of one way to access a whole image: the cost of its most expensive access."""

    name: str  # "16 bytes of each of 32 lines, as ldmatrix and stmatrix"
    width: int  # bytes that each lane accesses
    lanes: int  # lanes that take part
    accesses: int  # accesses of a warp for the whole image
    wavefronts: int  # wavefronts of the access that costs most
    least: int  # the minimum of wavefronts for as many bytes


def wavefronts(access: Access, width: int, banks: Banks) -> int:
    """Wavefronts that an access of a warp needs: see :func:`ptxmma.matrices.shared_memory.bank_conflicts`."""
    together = banks.count * banks.bytes // max(width, banks.bytes)  # all banks at once
    total = 0
    for first in range(0, len(access), together):
        active = (address for address in access[first : first + together] if address is not None)
        words = {word for address in active for word in range(address // banks.bytes, -(-(address + width) // banks.bytes))}
        total += max(Counter(word % banks.count for word in words).values(), default=0)
    return total


def access_patterns(layout: Geometry, *, database: DatabaseLike = None) -> list[AccessPattern]:
    """The cost of the usual accesses of a warp to an image: rows of matrix loads, a column, whole lines, a register of a fragment.

    A line is a row of a K-major image, a column of an MN-major one.  ``database`` provides the layout of a fragment.

    Raises:
        ValueError: strides with which elements overlap.
    """
    units, warp = layout.units(), catalog(database).database.spec.lanes
    memory, bits = memory_of(database), layout.width
    unit, banks, single = memory.alignment, memory.banks, max(bits // 8, 1)
    flat = [address for line in units for address in line]
    groups = [units[first : first + warp] for first in range(0, len(units), warp)]
    columns = [[line[place] for line in group] for group in groups for place in range(len(units[0]))]
    # Elements of one word cost the same: one of them is enough.
    inside = range(0, unit, max(single, banks.bytes))
    lines = f"each of {min(len(units), warp)} lines"
    elements_of_lines = [[address + byte for address in column] for column in columns for byte in inside]
    return [
        _worst(f"{unit} bytes of {lines}, as ldmatrix and stmatrix", columns, unit, banks),
        _worst(f"one element of {lines}", elements_of_lines, single, banks)._replace(accesses=len(columns) * layout.per_unit),
        _worst(f"whole lines, {unit} bytes in each lane", [flat[first : first + warp] for first in range(0, len(flat), warp)], unit, banks),
        *_of_fragment(layout, units, database),
    ]


def _worst(name: str, accesses: Sequence[Access], width: int, banks: Banks) -> AccessPattern:
    kept = different(accesses, banks)
    costs = [wavefronts(access, width, banks) for access in kept]
    worst = max(costs)
    lanes = sum(address is not None for address in kept[costs.index(worst)])
    return AccessPattern(name, width, lanes, len(accesses), worst, -(-lanes * width // (banks.count * banks.bytes)))


def different(accesses: Iterable[Access], banks: Banks) -> list[Access]:
    """One of each set of accesses that use the banks in the same way and cost the same."""
    row = banks.count * banks.bytes
    firsts: dict[Access, Access] = {}
    for access in accesses:
        base = next((address for address in access if address is not None), 0) // row * row
        firsts.setdefault(tuple([None if address is None else address - base for address in access]), access)
    return list(firsts.values())


def _of_fragment(layout: Geometry, units: Sequence[Sequence[int]], database: DatabaseLike) -> list[AccessPattern]:
    """The registers of a fragment of A, one store of each lane for each; single elements if they are apart in memory."""
    by_row, bits = layout.majorness == "K", layout.width
    fragment = _fragment(bits, database)
    if fragment is None:
        return []
    each = max(catalog(database).database.spec.registers.cell // bits, 1) if by_row else 1
    width = max(each * bits // 8, 1)
    per_unit = layout.per_unit

    def address(x: int, k: int) -> int | None:
        if x >= layout.x or k >= layout.k:
            return None
        line, along = (x, k) if by_row else (k, x)
        place, element = divmod(along, per_unit)
        return units[line][place] + element * bits // 8 // width * width

    registers = list(_places(fragment, each))
    corners = [(x, k) for x in range(0, layout.x, fragment.rows) for k in range(0, layout.k, fragment.cols)]
    accesses = [[address(x + row, k + col) for row, col in places] for x, k in corners for places in registers]
    return [_worst(f"{'a register' if by_row else 'an element'} of a fragment of A", accesses, width, memory_of(database).banks)]


def _fragment(bits: int, database: DatabaseLike) -> Layout | None:
    """The first layout of an A with elements of that width in the registers of a warp; None if the database has none."""
    source = catalog(database).database
    a = {multiplicands(entry)[0] for entry in source.spec.instructions if entry.operation == "multiply"}
    for layout in source.layouts:
        of_a_warp = layout.kind == "fragment" and a.intersection(layout.operands) and layout.threads == source.spec.lanes
        if of_a_warp and layout.bits == bits and not layout.apart:
            return layout
    return None


def _places(fragment: Layout, each: int) -> Iterable[list[tuple[int, int]]]:
    """The row and column of every ``each``-th element of a thread, in all lanes."""
    lanes = list(range(fragment.threads))
    for element in range(0, 1 << fragment.map.inputs["i"], each):
        at = fragment.map.evaluate({"lane": lanes, "i": [element] * len(lanes)})
        yield list(zip(at["row"], at["col"], strict=True))
