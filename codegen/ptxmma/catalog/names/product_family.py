"""Families of products: instructions whose shapes and types one family of instruction descriptors says, and their names in C and C++."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.instructions import Catalog, Instruction, catalog
from ptxmma.catalog.names.cplusplus import enumerator, identifier
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.legal_products import Rule, admitted, facts_of
from ptxmma.model import Condition, DescriptorFormat, InstructionSet, Space, TensorLayout, TensorProducts, matches

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
        self.callable = tuple(each for each in opcodes if _without_tables(each) and self._has_types(each))
        known = {qualifier for each in opcodes for qualifier in each.qualifiers}
        stating = msgspec.structs.replace(self.rules, limits=())  # which an option may leave or not
        read = {name for of in product_rules.conditions(stating) for when in of for name in when}
        read |= {name for layout in self.layouts for when in layout.of for name in when}
        read |= {"kind"} if any(format.kinds for format in formats) else set()
        self.options = tuple(sorted(name for name in known - read if self._is_flag(name, known & read)))
        self.qualifiers = tuple(sorted(name for name in known - set(self.options) if name in read or self._varies(name, known & read)))

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
        kinds = {(each.kind, each.of) for opcode in self.opcodes for form in opcode.forms for each in form.operands}
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
            kinds = [kind for format in self.formats for kind in format.kinds] if qualifier == "kind" else []
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
        """Of conditions, the alternatives and the values that its opcodes have; None where none can hold.

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

    def _has_types(self, opcode: Instruction) -> bool:
        return any(matches(row.of, opcode.variant.facts) for row in self.rules.types)

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
    return bool(opcode.forms) and not any(operand.kind in _WITHOUT for form in opcode.forms for operand in form.operands)
