"""The elements of an operand that threads hold in registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ptxmma.model.digit_map import DigitMap

#: The names of a matrix's axes in every family.
PLANE = ("row", "col")


class Held(NamedTuple):
    """One tile of an operand in the registers of threads.

    Attributes:
        name: the operand's name.
        layout: the name of its layout.
        type: the element type; ``""`` where the instruction does not state it.
        bits: distance of neighbouring elements in a register.
        per_register: elements in a register.
        elements: the map from ``i``, the number of an element in its thread, ``lane``, ``warp`` and ``cta`` to the axes of the layout.
        called: the axes by the names that they have in every family: rows and columns of a matrix, or copies.
        ordered: the axis whose order may change, so long as what reads the operand follows; ``""`` for none.
        summed: true where a product adds up along that axis: it is K.
    """

    name: str
    layout: str
    type: str
    bits: int
    per_register: int
    elements: DigitMap
    called: Mapping[str, str]
    ordered: str
    summed: bool
