"""Products and the C++ types that name them: ``ptxmma::tcgen05_mma<ptxmma::shape<128, 256>, …>``, or as a compiler prints them."""

from __future__ import annotations

import re

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.cplusplus import identifier
from ptxmma.catalog.names.product_family import ProductFamily, families, family_of
from ptxmma.catalog.products import resolution
from ptxmma.catalog.products.product_rules import TYPES, sized, typed

_TEMPLATE = re.compile(r"\b(\w+)\s*<")
_SHAPE = re.compile(r"\bshape\s*<([^<>]*)>")
_CAST = re.compile(r"\(\w+\)")
#: An enumerator as nvcc prints it in an error: ``(ptxmma_tcgen05_kind)1``.
_NUMBERED = re.compile(r"\(ptxmma_(\w+)\)(\d+)")
_WORD = re.compile(r"\w+")
#: The type of scale factors that a type leaves out.
USUAL_SCALE = "ue8m0"


def product_of_type(catalog: Catalog, text: str) -> Instruction | None:
    """The product that a type names; None where the text is not such a type, or no opcode has its qualifiers.

    Raises:
        IllegalProductError: the opcode has no such product; the message lists what is legal.
    """
    shape, words = _SHAPE.search(text), _TEMPLATE.findall(text)
    if shape is None:
        return None
    for family in families(catalog):
        stems = {opcode.variant.instruction.stem: opcode.variant.instruction.name for opcode in family.opcodes}
        template = next((word for word in words if word in stems or word == f"{family.stem}_product"), None)
        if template is None:
            continue
        usual = {name: family.usual(name) for name in family.qualifiers if name != "kind"}
        chosen = usual | ({"opcode": stems[template]} if template in stems else {}) | _chosen(family, text)
        opcode = family.plain.get(tuple(chosen.get(name, "") for name in ("opcode", *family.qualifiers)))
        return opcode and opcode.resolved(**_sizes(shape[1]), **_types(catalog, opcode, text[shape.end() :]))
    return None


def type_of_product(instruction: Instruction) -> str:
    """Return the type of a product; of an opcode, the type of the largest of its products with its first types.

    Empty where no type names the opcode: it does not multiply in tensor memory, has qualifiers that types leave out, or types that no
    rule knows.
    """
    family, opcode = family_of(instruction), instruction.variant
    plain = family.plain.get((opcode.instruction.name, *family.values(instruction).values())) if family is not None else None
    if family is None or plain is None or plain.variant.canonical != opcode.canonical:
        return ""
    types = {name: str(opcode.facts[name]) for name in TYPES} if opcode.chosen else next(typed(family.rules, opcode.facts))
    legal = [choice.values for choice in sized(family.rules, opcode.facts, types)]
    alike = (values for values in legal if (values["k"], values.get("stype")) == (legal[0]["k"], legal[0].get("stype")))
    chosen = dict(opcode.chosen) or max(alike, key=lambda values: (values["m"], values["n"]))
    sizes = [str(chosen[name]) for name in "mnk" if name != "k" or chosen["k"] != legal[0]["k"]]
    given = {name: family.enumerator(name, value) for name, value in family.values(instruction).items()}
    usual = {name: family.enumerator(name, family.usual(name)) for name in given}
    arguments = [f"ptxmma::shape<{', '.join(sizes)}>", *([given.pop("kind")] if "kind" in given else [])]
    arguments += [f"ptxmma::{identifier(types[name])}" for name in TYPES]
    given["stype"], usual["stype"] = (f"ptxmma::{identifier(name)}" for name in (str(chosen.get("stype") or USUAL_SCALE), USUAL_SCALE))
    while given and given[last := next(reversed(given))] == usual[last]:
        del given[last]
    return f"ptxmma::{opcode.instruction.stem}<{', '.join([*arguments, *given.values()])}>"


def _chosen(family: ProductFamily, text: str) -> dict[str, str]:
    """The opcode and the qualifiers that enumerators in the text name."""
    words = set(_WORD.findall(text))
    chosen = {what: values[word] for what, values in family.enumerators.items() for word in values if word in words}
    for type, number in _NUMBERED.findall(text):
        values = list(family.enumerators.get(type.removeprefix(f"{family.stem}_"), {}).values())
        if int(number) < len(values):
            chosen[type.removeprefix(f"{family.stem}_")] = values[int(number)]
    return chosen


def _sizes(text: str) -> dict[str, int]:
    return dict(zip("mnk", map(int, re.findall(r"\d+", _CAST.sub("", text))), strict=False))


def _types(catalog: Catalog, opcode: Instruction, text: str) -> dict[str, str]:
    """Return the types of D, A and B, and the scale factors' where there are some."""
    known = {identifier(entry.name): entry.name for entry in catalog.database.spec.types.elements}
    scaled = ["stype"] if resolution.types(catalog.database.spec, opcode.variant)["stype"] else []
    named = [known[word] for word in _WORD.findall(text) if word in known]
    return dict.fromkeys(scaled, USUAL_SCALE) | dict(zip([*TYPES, *scaled], named, strict=False))
