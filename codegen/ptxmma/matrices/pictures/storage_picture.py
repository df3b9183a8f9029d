"""Sparse storage: a row of a matrix, as it is stored, and its metadata."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.matrices.pictures.svg_sheet import BLANK, CELL_WIDTH, Panel, sheet
from ptxmma.model import Granularity

#: Columns and chunks that an example of sparse storage has at most; the strength of its colours.
_EXAMPLE, _CHUNKS = 16, 4
_STRONG = 2


def storage(pattern: Granularity) -> str:
    """An example of sparse storage: a row of the full matrix, the packed row, and the metadata that tells one from the other."""
    values = [field for field in pattern.legal if not pattern.ordered or field in pattern.ordered]
    chunks = min(_EXAMPLE // pattern.chunk, _CHUNKS)
    chosen = [values[index * len(values) // chunks if len(values) >= chunks else index % len(values)] for index in range(chunks)]
    width = pattern.index_bits * pattern.indices
    full, packed, fields = [], [], []
    for index, field in enumerate(chosen):
        units = pattern.kept_units(field)
        first = index * pattern.chunk
        full += [(f"x{first + place}", index) if place // pattern.unit in units else ("0", BLANK) for place in range(pattern.chunk)]
        packed += [(f"x{first + unit * pattern.unit + part}", index) for unit in units for part in range(pattern.unit)]
        fields.append(f"keeps {', '.join(map(str, units))}")
    panels = [
        _strip("a row of the matrix", "column", full),
        _strip("the row as it is stored", "column", packed),
        _strip("its metadata", "bits", [(field, index) for index, field in enumerate(chosen)], fields, CELL_WIDTH * pattern.chunk, width),
    ]
    unit = "each has" if pattern.unit == 1 else f"each {pattern.unit} together have"
    notes = [f"Of {pattern.chunk} columns (a chunk, one colour) {pattern.kept} are stored; {unit} an index of {pattern.index_bits} bits."]
    return sheet(f"Sparse storage {pattern.name}", notes, panels, stacked=True)


def _strip(
    head: str, corner: str, cells: Sequence[tuple[str, int]], labels: Sequence[str] = (), cell: int = CELL_WIDTH, bits: int = 0
) -> Panel:
    """A panel of one row; ``cells`` are texts with the chunk that colours them, numbered, or each so many ``bits`` of a register."""
    return Panel(
        head=head,
        corner=corner,
        rows=[""],
        cols=[f"[{bits * index + bits - 1}:{bits * index}]" if bits else str(index) for index in range(len(cells))],
        colours=[[chunk if chunk == BLANK else _STRONG + 4 * chunk for _, chunk in cells]],
        tops=[[text for text, _ in cells]],
        labels=[labels] if labels else [],
        cell=cell,
    )
