"""Products and the C++ types that name them: ``ptxmma::tcgen05_mma<ptxmma::shape<128, 256>, …>``, or as a compiler prints them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ptxmma.catalog import resolution
from ptxmma.catalog.cplusplus import enumerator, identifier
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.product_rules import TYPES, sized, typed
from ptxmma.model import InstructionSet

#: The header of the types without their calls.
HEADER = "cuda/tcgen05_product.cuh"

_TEMPLATE = re.compile(r"\b(\w+)\s*<")
_SHAPE = re.compile(r"\bshape\s*<([^<>]*)>")
_CAST = re.compile(r"\(\w+\)")
#: An enumerator as nvcc prints it in an error: ``(ptxmma_tcgen05_kind)1``.
_NUMBERED = re.compile(r"\(ptxmma_\w+?_(opcode|kind|cta_group|scale_vec)\)(\d+)")
_WORD = re.compile(r"\w+")
#: What a type leaves out.
_USUAL = {"cta_group": "cta_group::1", "scale_vec": ""}
_USUAL_SCALE = "ue8m0"
#: The qualifiers of an opcode on which rules depend, beside the kind.
QUALIFIERS = tuple(_USUAL)


def calls_header(instruction: Instruction) -> str:
    """The header of the types with the calls of an opcode: ``"cuda/tcgen05_mma_product.cuh"``."""
    return f"cuda/{instruction.variant.instruction.stem}_product.cuh"


def product_of_type(catalog: Catalog, text: str) -> Instruction | None:
    """The product that a type names; None where the text is not such a type, or no opcode has its qualifiers.

    Raises:
        IllegalProductError: the opcode has no such product; the message lists what is legal.
    """
    multiplies = list(catalog.all(lambda entry: entry.operation == resolution.OPERATION))
    stems = {each.variant.instruction.stem: each.variant.instruction.name for each in multiplies}
    families = {f"{stem.partition('_')[0]}_product" for stem in stems}
    template = next((word for word in _TEMPLATE.findall(text) if word in stems or word in families), None)
    shape = _SHAPE.search(text)
    if template is None or shape is None:
        return None
    chosen = _USUAL | ({"opcode": stems[template]} if template in stems else {}) | _chosen(catalog, multiplies, text)
    if not {"opcode", "kind"} <= chosen.keys():
        return None
    name = chosen.pop("opcode")
    for opcode in multiplies:
        others = {qualifier for qualifier, value in opcode.qualifiers.items() if value} - {*chosen, "block_scale"}
        if opcode.variant.instruction.name == name and not others and _has(opcode, chosen):
            return opcode.resolved(**_sizes(shape[1]), **_types(catalog, opcode, text[shape.end() :]))
    return None


def type_of_product(instruction: Instruction) -> str:
    """The type of a product; of an opcode, that of the largest of its products with its first types.

    Empty where no type names the opcode: it does not multiply in tensor memory, has qualifiers that types leave out, or types that no
    rule knows.
    """
    entry, facts, rules = instruction.variant.instruction, instruction.variant.facts, instruction.database.spec.tensor_products
    stated = {*_USUAL, "kind", "block_scale"}
    if (
        entry.operation != resolution.OPERATION
        or rules is None
        or any(value for name, value in instruction.qualifiers.items() if name not in stated)
    ):
        return ""
    types = {name: str(facts[name]) for name in TYPES} if instruction.variant.chosen else next(typed(rules, facts), None)
    if types is None:
        return ""
    legal = [choice.values for choice in sized(rules, facts, types)]
    alike = (values for values in legal if (values["k"], values.get("stype")) == (legal[0]["k"], legal[0].get("stype")))
    chosen = dict(instruction.variant.chosen) or max(alike, key=lambda values: (values["m"], values["n"]))
    sizes = [str(chosen[name]) for name in "mnk" if name != "k" or chosen["k"] != legal[0]["k"]]
    arguments = [f"ptxmma::shape<{', '.join(sizes)}>", _enumerator(entry, instruction.qualifiers["kind"])]
    arguments += [f"ptxmma::{identifier(types[name])}" for name in TYPES]
    given = {name: instruction.qualifiers.get(name, "") for name in _USUAL} | {"stype": str(chosen.get("stype") or _USUAL_SCALE)}
    usual = _USUAL | {"stype": _USUAL_SCALE}
    while given and given[last := next(reversed(given))] == usual[last]:
        del given[last]
    arguments += [
        f"ptxmma::{identifier(value)}" if name == "stype" else _enumerator(entry, value or f"no_{name}") for name, value in given.items()
    ]
    return f"ptxmma::{entry.stem}<{', '.join(arguments)}>"


def _enumerator(entry: InstructionSet, text: str) -> str:
    return enumerator(entry.stem.partition("_")[0], text)


def _has(opcode: Instruction, chosen: Mapping[str, str]) -> bool:
    return all(opcode.qualifiers.get(qualifier, "") == value for qualifier, value in chosen.items())


def _chosen(catalog: Catalog, multiplies: list[Instruction], text: str) -> dict[str, str]:
    """The opcode and the qualifiers that enumerators in the text name."""
    names = enumerators(catalog, multiplies)
    words = set(_WORD.findall(text))
    chosen = {what: values[word] for what, values in names.items() for word in values if word in words}
    for what, number in _NUMBERED.findall(text):
        values = list(names[what].values())
        if int(number) < len(values):
            chosen[what] = values[int(number)]
    return chosen


def enumerators(catalog: Catalog, multiplies: list[Instruction]) -> dict[str, dict[str, str]]:
    """The enumerators of ``ptxmma/tcgen05_products.h`` and ``ptxmma/descriptors.h`` in their order, each with its text in PTX."""
    entries = [each.variant.instruction for each in multiplies]
    names = {"opcode": {enumerator(entry.name): entry.name for entry in entries}}
    kinds = (kind for format in catalog.database.spec.descriptors for kind in format.kinds)
    names["kind"] = {_enumerator(entries[0], kind): kind for kind in kinds}
    for qualifier in QUALIFIERS:
        values = sorted({each.qualifiers.get(qualifier, "") for each in multiplies})
        names[qualifier] = {_enumerator(entries[0], value or f"no_{qualifier}"): value for value in values}
    return names


def _sizes(text: str) -> dict[str, int]:
    return dict(zip("mnk", map(int, re.findall(r"\d+", _CAST.sub("", text))), strict=False))


def _types(catalog: Catalog, opcode: Instruction, text: str) -> dict[str, str]:
    """The types of D, A and B, and that of the scale factors where there are some."""
    known = {identifier(entry.name): entry.name for entry in catalog.database.spec.types.elements}
    scaled = ["stype"] if resolution.types(catalog.database.spec, opcode.variant)["stype"] else []
    named = [known[word] for word in _WORD.findall(text) if word in known]
    return dict.fromkeys(scaled, _USUAL_SCALE) | dict(zip([*TYPES, *scaled], named, strict=False))
