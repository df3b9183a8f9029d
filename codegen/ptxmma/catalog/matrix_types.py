"""The matrices of an instruction: which it multiplies, and the types of their elements.

A matrix has the name of the operand that holds it, or that its descriptor is ``of``.
"""

from __future__ import annotations

from ptxmma.catalog.variants import Variant
from ptxmma.model import InstructionSet

#: The kinds of operands that are a matrix that is multiplied, wherever it lies.
_MULTIPLIED = ("fragment", "descriptor")


def operand_names(syntax: str) -> list[str]:
    """The names in an operand list such as ``"d, a, scale-a-data, {byte-id-a, thread-id-a}"``."""
    return [name.strip(" {}[]") for name in syntax.split(",")] if syntax else []


def matrix_types(variant: Variant) -> dict[str, str]:
    """The element type of each matrix of a variant: ``{"d": "f32", "a": "f16", "b": "f16"}``."""
    kinds = variant.instruction.operand_kinds
    matrices = {name: entry for name, entry in kinds.items() if entry.kind in (*_MULTIPLIED, "accumulator")}
    types = {_matrix(name, entry.of): str(variant.facts.get(entry.type, "")) for name, entry in matrices.items()}
    return {name: element for name, element in types.items() if element}


def multiplicands(instruction: InstructionSet) -> tuple[str, ...]:
    """The matrices that an instruction multiplies, in the order of its operand lists: A, B."""
    kinds = instruction.operand_kinds
    names = (name for texts in instruction.operands.values() for text in texts for name in operand_names(text) if name in kinds)
    return tuple(dict.fromkeys(_matrix(name, kinds[name].of) for name in names if kinds[name].kind in _MULTIPLIED))


def _matrix(name: str, of: str) -> str:
    return of or name
