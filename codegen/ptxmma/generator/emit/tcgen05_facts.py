"""Products of ``tcgen05.mma`` in C: the expressions of what conditions of the spec test, and how C writes its values."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog import resolution
from ptxmma.catalog.chosen_product import argument_of
from ptxmma.catalog.cplusplus import enumerator
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.product_rules import TYPES
from ptxmma.catalog.product_types import QUALIFIERS
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_conditions import Fact, Write
from ptxmma.model import DescriptorField, DescriptorFormat, Spec

FAMILY = "tcgen05"


def multiplies(catalog: Catalog) -> list[Instruction]:
    """The opcodes whose shapes and types an instruction descriptor chooses."""
    return list(catalog.all(lambda entry: entry.operation == resolution.OPERATION))


def known_facts() -> dict[str, Fact]:
    """The facts that conditions test: the C expression of each fact of a product ``p``, and the function that writes its values."""
    types = {name: (f"p.{name}", type_macro) for name in (*TYPES, "stype")}
    sizes = {name: (f"p.{name}", str) for name in "mnk"}
    qualifiers = {name: (f"p.{name}", _writer(name)) for name in QUALIFIERS}
    sides = {f"{name}_majorness": (f"p.{name}_majorness", lambda value: f"PTXMMA_MAJORNESS_{value}") for name in "ab"}
    sparse = ("(uint32_t)ptxmma_tcgen05_product_is_sparse(p)", str)
    kind = ("p.kind", lambda value: enumerator(FAMILY, value))
    return {"name": ("p.opcode", enumerator), "kind": kind, "sparse": sparse, **types, **sizes, **qualifiers, **sides}


def type_macro(name: str) -> str:
    """The enumerator of an element type."""
    return f"PTXMMA_TYPE_{c_text.macro(name)}"


def _writer(qualifier: str) -> Write:
    """The function that writes the values of a qualifier in C, also where it is left out."""
    return lambda value: enumerator(FAMILY, value or f"no_{qualifier}")


def instruction_formats(spec: Spec) -> list[DescriptorFormat]:
    """The formats of instruction descriptors."""
    return [format for format in spec.descriptors if format.describes == "instruction" and format.family == FAMILY]


def open_fields(format: DescriptorFormat) -> Iterator[DescriptorField]:
    """The fields of an instruction descriptor that a product leaves open; not those that only some targets have."""
    known = known_facts()
    for field in format.fields:
        others = [case for case in field.cases if any(case.values.values())]
        some = bool(others) and all(case.targets for case in others)
        if field.fixed is None and (argument_of(field.name) or field.name) not in known and not some:
            yield field
