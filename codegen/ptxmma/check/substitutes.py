"""Substitutes for an instruction on a target that has nothing like it."""

from __future__ import annotations

import math

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.product_rules import TYPES
from ptxmma.catalog.resolution import OPERATION
from ptxmma.check.operand_faults import listing
from ptxmma.model import matches

#: Products: those into tensor memory, and all others.
_PRODUCTS = (OPERATION, "multiply")


class Substitutes:
    """Advises by a database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        spec = catalog.database.spec
        self._numbers = {entry.name: entry.number for entry in spec.targets}
        self._bits = {element.name: element.bits for element in spec.types.elements}
        into_memory = {entry.family for entry in spec.instructions if entry.operation == OPERATION}
        #: The families that need tensor memory.
        self._of_memory = {family for entry in spec.protocols if into_memory & {*entry.families} for family in entry.families}

    def advice(self, instruction: Instruction, target: str) -> str:
        """Advice for a target that does not have an instruction; empty where nothing is known.

        A target with the same number may have it; otherwise the target's own products replace a product.
        """
        if target not in self._numbers:
            return ""
        if siblings := [name for name in instruction.accepted_by() if self._numbers[name] == self._numbers[target]]:
            return f"compile for {listing(siblings)}"
        products = [each for each in self._catalog.all(lambda entry: entry.operation in _PRODUCTS) if target in each.accepted_by()]
        instead = self._instead(instruction, products) if instruction.operation in _PRODUCTS else None
        if instruction.family in self._of_memory and not any(each.family in self._of_memory for each in products):
            return f"{target} has no tensor memory" + (f"; it multiplies with {instead.canonical}" if instead is not None else "")
        return f"{target} multiplies with {instead.canonical}" if instead is not None else ""

    def _instead(self, instruction: Instruction, products: list[Instruction]) -> Instruction | None:
        """The product that has the most in common with one that is missing; an asynchronous one where there are such."""
        fitting = [each for each in products if each.sparse == instruction.sparse]
        asynchronous = [each for each in fitting if each.variant.instruction.asynchronous]
        families = [each.family for each in asynchronous or fitting]  # the plain one comes first
        own = self._traits(instruction)

        def likeness(other: Instruction) -> tuple[int, bool, int, int]:
            size = math.prod(other.extents.get(extent, 1) for extent in "mnk")
            return len(own & self._traits(other)), other.documented, self._bits.get(other.qualifiers.get("dtype", ""), 0), size

        return max((each for each in fitting if each.family in families[:1]), key=likeness, default=None)

    def _traits(self, instruction: Instruction) -> set[tuple[str, str]]:
        """The qualifiers of a product and its types, those that its descriptor may choose included."""
        rules = self._catalog.database.spec.tensor_products
        traits = {(name, value) for name, value in instruction.qualifiers.items() if value}
        if instruction.operation == OPERATION and rules is not None:
            rows = [row for row in rules.types if matches(row.of, instruction.variant.facts)]
            traits |= {(name, value) for row in rows for name in TYPES for value in getattr(row, name)}
        return traits
