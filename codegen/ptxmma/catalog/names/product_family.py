"""Families of products: instructions whose shapes and types one family of instruction descriptors says, and their names in C and C++.

A product is a C++ type: ``ptxmma::tcgen05_mma<ptxmma::shape<128, 256>, …>``, or as a compiler prints it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import msgspec

from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.instructions import Catalog, Instruction, catalog
from ptxmma.catalog.names.cplusplus import enumerator, identifier
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.legal_products import Rule, admitted, facts_of
from ptxmma.catalog.products.product_rules import TYPES, sized, typed
from ptxmma.model import Condition, DescriptorFormat, InstructionSet, Space, TensorLayout, TensorProducts

#: Operands that products in C++ cannot have: tables that no source lays out.
_WITHOUT = {"lookup-table"}


class ProductFamily:
    """The products of the instructions that read instruction descriptors of one family.

    Attributes:
        stem: the start of its names in C and C++: ``"tcgen05"``.
        formats: its instruction descriptors.
        opcodes: its instructions.
        rules: the rules of the spec for products that its opcodes can meet.
        callable: the opcodes with products that C++ can name and call.
        qualifiers: the qualifiers on which its products depend, by name.
        options: the other qualifiers that tell callable opcodes apart: flags of a call.
    """

    def __init__(self, name: str, formats: Sequence[DescriptorFormat], opcodes: Sequence[Instruction], rules: TensorProducts) -> None:
        """The family of these descriptors and opcodes, of which there is one at least."""
        self.stem, self.formats, self.opcodes = identifier(name), tuple(formats), tuple(opcodes)
        self._facts = [facts_of(each.database.spec, each.variant) for each in opcodes]
        lists = {name: self._own(getattr(rules, name)) for name in rules.__struct_fields__}
        self.rules = msgspec.structs.replace(rules, **lists)
        self.callable = tuple(each for each in opcodes if _without_tables(each) and self.rules.fitting.types(each.variant.facts))
        known = {qualifier for each in opcodes for qualifier in each.qualifiers}
        stating = msgspec.structs.replace(self.rules, limits=())  # which an option may leave or not
        read = {name for of in product_rules.conditions(stating) for when in of for name in when}
        read |= {name for layout in self.layouts for when in layout.of for name in when}
        read |= {self.kind} if self.kind else set()
        self.options = tuple(sorted(name for name in known - read if self._is_flag(name, known & read)))
        self.qualifiers = tuple(sorted(name for name in known - set(self.options) if name in read or self._varies(name, known & read)))

    @property
    def kind(self) -> str:
        """The qualifier that decides on the format of its descriptors; ``""`` for none."""
        return self.formats[0].qualifier

    @property
    def header(self) -> str:
        """The header of its products as C++ types, without their calls."""
        return f"cuda/{self.stem}_product.cuh"

    def calls_header(self, opcode: Instruction) -> str:
        """The header of the products of an opcode with their calls: ``"cuda/tcgen05_mma_product.cuh"``."""
        header = f"cuda/{opcode.variant.instruction.stem}_product.cuh"
        return header if header != self.header else f"cuda/{opcode.variant.instruction.stem}_calls.cuh"

    @property
    def memory(self) -> Space | None:
        """The memory in which D lies."""
        return self.opcodes[0].database.spec.tensor_memory_of(self.opcodes[0].variant.facts)

    @functools.cached_property
    def layouts(self) -> tuple[TensorLayout, ...]:
        """The layouts of D."""
        every = (layout for layout in self.memory.layouts if layout.operand == "tensor-accumulator") if self.memory else ()
        return self._own(tuple(every))

    @functools.cached_property
    def sparse(self) -> tuple[str, ...]:
        """The names of its instructions with a sparse A."""
        return tuple(dict.fromkeys(each.variant.instruction.name for each in self.opcodes if each.sparse))

    @functools.cached_property
    def sides(self) -> tuple[str, ...]:
        """The matrices in shared memory whose majorness an instruction descriptor says: ``("a", "b")``."""
        fields = {field.name for format in self.formats for field in format.fields}
        kinds = {(each.kind, each.of) for opcode in self.opcodes for each in opcode.operands}
        return tuple(side for side in "ab" if f"{side}_majorness" in fields and ("shared-descriptor", side) in kinds)

    @functools.cached_property
    def plain(self) -> dict[tuple[str, ...], Instruction]:
        """The callable opcodes without options, by their names and their values of the qualifiers."""
        plain: dict[tuple[str, ...], Instruction] = {}
        for opcode in self.callable:
            if not any(opcode.qualifiers.get(option) for option in self.options):
                plain.setdefault((opcode.variant.instruction.name, *self.values(opcode).values()), opcode)
        return plain

    @functools.cached_property
    def enumerators(self) -> dict[str, dict[str, str]]:
        """The enumerators of its opcodes and of each qualifier in the order of their numbers, with their texts in PTX."""
        names = dict.fromkeys(each.variant.instruction.name for each in self.opcodes)
        every = {"opcode": {enumerator(name): name for name in names}}
        for qualifier in self.qualifiers:
            kinds = [kind for format in self.formats for kind in format.kinds] if qualifier == self.kind else []
            values = kinds or sorted({each.qualifiers.get(qualifier, "") for each in self.opcodes})
            every[qualifier] = {self.enumerator(qualifier, value): value for value in values}
        return every

    def enumerator(self, qualifier: str, value: str) -> str:
        """The enumerator of a value of a qualifier; of one that is left out, too."""
        return enumerator(self.stem, value or f"no_{qualifier}")

    def usual(self, qualifier: str) -> str:
        """The value of a qualifier that a C++ type leaves out: the first that is enumerated."""
        return next(iter(self.enumerators[qualifier].values()))

    def values(self, opcode: Instruction) -> dict[str, str]:
        """The value of each qualifier of an opcode; ``""`` for one that it leaves out."""
        own = opcode.qualifiers
        return {name: own.get(name, "") for name in self.qualifiers}

    def conditions(self, of: Sequence[Condition]) -> tuple[Condition, ...] | None:
        """The alternatives and the values of conditions that its opcodes have; None where none can hold.

        Families of instructions become names of instructions.
        """
        admitted_of = admitted(of, self._facts)
        return None if admitted_of is None else tuple(map(self._by_name, admitted_of))

    def _own(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """The rules that its opcodes can meet."""
        return tuple(msgspec.structs.replace(rule, of=of) for rule in rules if (of := self.conditions(rule.of)) is not None)

    def _by_name(self, condition: Condition) -> Condition:
        if "family" not in condition:
            return condition
        named = {str(facts["name"]): None for facts in self._facts if facts["family"] in condition["family"]}
        others = {key: values for key, values in condition.items() if key != "family"}
        return {**others, "name": tuple(name for name in named if name in others.get("name", (name,)))}

    def _varies(self, qualifier: str, others: set[str]) -> bool:
        """Return whether callable opcodes differ in a qualifier that agree in name and in others."""
        seen: dict[tuple[str, ...], set[str]] = {}
        for each in self.callable:
            key = (each.variant.instruction.name, *(each.qualifiers.get(name, "") for name in sorted(others)))
            seen.setdefault(key, set()).add(each.qualifiers.get(qualifier, ""))
        return any(len(values) > 1 for values in seen.values())

    def _is_flag(self, qualifier: str, others: set[str]) -> bool:
        """Return whether such a qualifier has one value that may be left out."""
        values = {each.qualifiers.get(qualifier, "") for each in self.callable}
        return self._varies(qualifier, others) and len(values) == 2 and "" in values


def families(entries: Catalog) -> list[ProductFamily]:
    """The families of products of a catalog, in the order of their descriptors."""
    memo, spec = entries.database.memo, entries.database.spec
    if "product families" not in memo:
        formats: dict[str, list[DescriptorFormat]] = {}
        for format in spec.descriptors if spec.tensor_products is not None else ():
            if format.describes == "instruction":
                formats.setdefault(format.family, []).append(format)
        opcodes = {name: [*entries.all(functools.partial(_multiplies, name))] for name in formats}
        assert spec.tensor_products is not None or not formats
        memo["product families"] = [
            ProductFamily(name, formats[name], own, spec.tensor_products) for name, own in opcodes.items() if own and spec.tensor_products
        ]
    made: list[ProductFamily] = memo["product families"]
    return made


def family_of(opcode: Instruction) -> ProductFamily | None:
    """The family of the products of an opcode; None where the opcode states its shape itself."""
    every = families(catalog(opcode.database)) if opcode.operation == resolution.OPERATION else []
    name = opcode.variant.instruction.name
    return next((family for family in every if name in family.enumerators["opcode"].values()), None)


def _multiplies(family: str, entry: InstructionSet) -> bool:
    return entry.operation == resolution.OPERATION and reads(entry.family, family)


def _without_tables(opcode: Instruction) -> bool:
    return bool(opcode.forms) and not any(operand.kind in _WITHOUT for operand in opcode.operands)


# --- types of C++ ---------------------------------------------------------------------------------------------------------

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
        usual = {name: family.usual(name) for name in family.qualifiers if name != family.kind}
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
    arguments = [f"ptxmma::shape<{', '.join(sizes)}>", *([given.pop(family.kind)] if family.kind in given else [])]
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
