"""The page of element types and registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxmma.catalog.links import EXPLORER
from ptxmma.generator.emit.docs import struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.matrices import pictures
from ptxmma.model import Container, ElementType, Spec


def page(spec: Spec, gallery: Gallery) -> dict[str, Any]:
    """The values for the page's template."""
    types = spec.types
    by_name = {element.name: element for element in types.elements}
    return {
        "elements": struct_tables.table(
            types.elements, titles={"name": "Type", "title": "Meaning", "form": "Kind"}, first=("name", "numpy"), code=("name", "numpy")
        ),
        "containers": struct_tables.table(
            types.containers,
            titles={"elements": "Types", "bits": "Container", "shift": "Lowest bit"},
            cells={"bits": lambda element: f"{element.bits} bits"},
        ),
        "registers": struct_tables.table(
            types.registers, titles={"name": "Register type", "title": "Meaning"}, code=("name", "c_type", "constraint")
        ),
        "carriers": struct_tables.table(
            types.carriers, titles={"elements": "With elements", "registers": "Register types", "spaces": "Variables in"}
        ),
        "explorer": f"../{EXPLORER}",
        "picture_name": gallery.other("types", lambda: _types_picture(types.elements)) if types.elements else "",
        "container_picture": gallery.other("containers", lambda: _containers_picture(types.containers, by_name))
        if types.containers
        else "",
    }


def _type_fields(element: ElementType, low: int = 0) -> list[pictures.Field]:
    """The fields of an element whose lowest bit is ``low``."""
    if element.form != "float":
        return [pictures.Field(low, element.bits, f"{element.bits} bits" if element.bits > 1 else "1", 0)]
    above = [("sign", int(element.sign), 1), ("exponent", element.exponent, 5), ("mantissa", element.mantissa, 9)]
    used = sum(width for _, width, _ in above)
    # A float without a sign leaves the place of its sign empty; any other ends above bits that are ignored.
    top = low + (element.bits if element.sign else used)
    fields = [pictures.Field(low + used, element.bits - used, "0", pictures.BLANK)] if top < low + element.bits else []
    for name, width, colour in above:
        if width:
            top -= width
            fields.append(pictures.Field(top, width, name, colour))
    return [*fields, pictures.Field(low, top - low, "ignored", pictures.BLANK)] if top > low else fields


def _types_picture(elements: Sequence[ElementType]) -> str:
    words = [(element.name, element.bits, _type_fields(element)) for element in elements]
    return pictures.bit_fields("Element types", ["The highest bit is on the left."], words, per_line=32, cell=28)


def _containers_picture(containers: Sequence[Container], elements: dict[str, ElementType]) -> str:
    words = []
    for container in containers:
        for name in container.elements:
            element = elements[name]
            fields = _type_fields(element, container.shift)
            spare = [pictures.Field(0, container.shift, "0", pictures.BLANK)] if container.shift else []
            above = container.shift + element.bits
            spare += [pictures.Field(above, container.bits - above, "0", pictures.BLANK)] if above < container.bits else []
            words.append((name, container.bits, fields + spare))
    return pictures.bit_fields("Elements in wider containers", [], words, per_line=32, cell=36)
