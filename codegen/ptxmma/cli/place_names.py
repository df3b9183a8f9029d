"""The names of an element's place in answers: its register, its number, its bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxmma.matrices.arrangements import Arrangement, Place

Answer = dict[str, str | int]


def cell_text(place: Place, table: Arrangement) -> str:
    """``"r1 a3"``; an element that fills its register has no second name."""
    from ptxmma.matrices.pictures import element_letter

    if table.layout.kind == "metadata":
        return f"[{place.bits}]"
    if table.layout.kind == "scale":
        return f"byte {place.element}"
    if table.layout.kind == "address":
        return table.name
    element = f"{element_letter(table.name)}{place.element}"
    return element if table.per_register == 1 else f"r{place.register} {element}"


def place_bits(place: Place, table: Arrangement) -> str:
    """``"lane 3, a1[15:0]"``."""
    return f"lane {place.lane}, {named_bits(place, table)}"


def named_bits(place: Place, table: Arrangement) -> str:
    """``"a1[15:0]"``."""
    return f"{register_name(place, table)}[{place.bits}]"


def register_name(place: Place, table: Arrangement) -> str:
    """``"a1"``; an operand of one register has no number."""
    return f"{table.name}{place.register}" if table.layout.kind == "fragment" else table.operand.name


def place_answer(place: Place, table: Arrangement, bits: bool) -> Answer:
    """The place of an element: named by its bits, or by thread, register and number."""
    if bits:
        return {"place": place_bits(place, table)}
    if table.layout.kind == "address":
        return {"lane": place.lane}
    return {"lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}
