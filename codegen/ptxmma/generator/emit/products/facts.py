"""Products in C: the expressions of what conditions of the spec test, and how C writes its values."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ptxmma.catalog.descriptors.chosen_product import argument_of
from ptxmma.catalog.names.cplusplus import enumerator
from ptxmma.catalog.names.product_family import ProductFamily
from ptxmma.catalog.operands.tensor_places import Place
from ptxmma.catalog.products.product_rules import OPTIONS, TYPES
from ptxmma.catalog.requirements import targets_of
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_text import Fact, Write, among
from ptxmma.generator.emit.cuda.functions import Guards
from ptxmma.model import DescriptorField, DescriptorFormat, Spec, formula


def known_facts(family: ProductFamily) -> dict[str, Fact]:
    """The facts that conditions test: the C expression of each fact of a product ``p``, and the function that writes its values."""
    types = {name: (f"p.{name}", type_macro) for name in (*TYPES, *(["stype"] if family.rules.scales else []))}
    sizes = {name: (f"p.{name}", str) for name in "mnk"}
    qualifiers = {name: (f"p.{name}", writer(family, name)) for name in family.qualifiers}
    sides = {f"{name}_majorness": (f"p.{name}_majorness", majorness_macro) for name in family.sides}
    sparse = (f"(uint32_t)ptxmma_{family.stem}_product_is_sparse(p)" if family.sparse else "0", str)
    return {"name": ("p.opcode", enumerator), "sparse": sparse, **types, **sizes, **qualifiers, **_extents(family, qualifiers), **sides}


def type_macro(name: str) -> str:
    """The enumerator of an element type."""
    return f"PTXMMA_TYPE_{c_text.macro(name)}"


def majorness_macro(name: str) -> str:
    """The enumerator of a majorness."""
    return f"PTXMMA_MAJORNESS_{name}"


def writer(family: ProductFamily, qualifier: str) -> Write:
    """The function that writes the values of a qualifier in C, also where it is left out."""
    return lambda value: family.enumerator(qualifier, value)


def _extents(family: ProductFamily, qualifiers: dict[str, Fact]) -> dict[str, Fact]:
    """The sizes that the values of a qualifier spell: ``{"ctas": "(p.cta_group == PTXMMA_TCGEN05_CTA_GROUP_2 ? 2 : 1)"}``."""
    sizes: dict[tuple[str, str], dict[int, dict[str, None]]] = {}
    for opcode in family.opcodes:
        for qualifier, value in family.values(opcode).items():
            extents = opcode.variant.instruction.extents.get(qualifier)
            for name in (*extents.values.get(value, ()), *formula.placeholders(extents.pattern)) if extents else ():
                sizes.setdefault((name, qualifier), {}).setdefault(opcode.extents[name], {})[value] = None
    facts: dict[str, Fact] = {}
    for (name, qualifier), numbers in sizes.items():
        smallest, *others = sorted(numbers)
        chain = "".join(f"{among(*qualifiers[qualifier], numbers[number])} ? {number} : " for number in others)
        facts[name] = f"({chain}{smallest})" if chain else str(smallest), str
    return facts


def open_fields(known: Collection[str], format: DescriptorFormat) -> Iterator[DescriptorField]:
    """The fields of an instruction descriptor beside the known facts of a product; of those that only some targets have, the options."""
    for field in format.fields:
        others = [case for case in field.cases if any(case.values.values())]
        some = field.name not in OPTIONS and bool(others) and all(case.targets for case in others)
        if field.fixed is None and (argument_of(field.name) or field.name) not in known and not some:
            yield field


def passes_of(spec: Spec, targets: Collection[str]) -> str:
    """The condition that a pass compiles for one of these targets, for one that includes one, or for a plain one of their numbers."""
    taking = targets_of(spec).including(targets)
    plain = [target for target in spec.targets if not target.suffix and target.number in {each.number for each in taking}]
    return Guards(spec).passes(target.name for target in (*taking, *plain))


def coordinates(family: ProductFamily) -> tuple[str, ...]:
    """The coordinates of a place of D; ``bit`` only where several elements share a cell."""
    return tuple(name for name in Place._fields if name != "bit" or any(name in layout.at for layout in family.layouts))


def scale_ids(family: ProductFamily) -> dict[str, str]:
    """For each number of scale factors that an instruction reads of a line, where they may begin in a cell: both as conditions in C."""
    ids: dict[tuple[int, ...], dict[int, None]] = {}
    for layout in family.memory.layouts if family.memory and family.rules.scales else ():
        for selection in layout.selections if layout.operand == "tensor-scales" else ():
            ids.setdefault(selection.values, {}).update(dict.fromkeys(int(count) for when in selection.when for count in when["blocks"]))
    return {among("factors", str, sorted(counts)): among("id", str, values) for values, counts in ids.items()}
