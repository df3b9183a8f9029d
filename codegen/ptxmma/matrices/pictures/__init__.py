"""Layouts as SVG: small tables of cells, coloured by thread, with what a person wants to read in each.

A module for each kind of picture; ``svg_sheet`` draws them.
"""

from __future__ import annotations

from ptxmma.matrices.pictures.fragments import block, by_register, element_letter, fragment, period, seen, shown_columns, size
from ptxmma.matrices.pictures.memory import atom, canonical_layout, image
from ptxmma.matrices.pictures.operands import addresses, metadata, operand, scales, storage
from ptxmma.matrices.pictures.sheet import BLANK, TIMES, colour
from ptxmma.matrices.pictures.sheet import COLOURS as COLOURS
from ptxmma.matrices.pictures.tables import Field, Mark, bit_fields, table
from ptxmma.matrices.pictures.tensor_memory import tensor
from ptxmma.matrices.pictures.way import way

__all__ = [
    "BLANK", "TIMES", "Field", "Mark", "addresses", "atom", "bit_fields", "block", "by_register", "canonical_layout", "colour",
    "element_letter", "fragment", "image", "metadata", "operand", "period", "scales", "seen", "shown_columns", "size", "storage", "table",
    "tensor", "way",
]  # fmt: skip
