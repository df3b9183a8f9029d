"""Layouts as SVG: small tables of cells, coloured by thread, with what a person wants to read in each.

A module for each kind of picture; ``svg_sheet`` draws them.
"""

from __future__ import annotations

from ptxmma.matrices.pictures.fragments import block, by_register, element_letter, fragment, period, seen, shown_columns, size
from ptxmma.matrices.pictures.memory import Ends, atom, canonical_layout, image, way
from ptxmma.matrices.pictures.operands import addresses, metadata, operand, scales, storage
from ptxmma.matrices.pictures.sheet import BLANK, COLOURS, TIMES, colour
from ptxmma.matrices.pictures.tables import Field, Mark, bit_fields, table
from ptxmma.matrices.pictures.tensor_memory import tensor
