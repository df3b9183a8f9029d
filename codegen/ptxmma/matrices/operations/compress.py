"""Vectors of each thread, compressed to the elements that a pattern of sparsity keeps, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.matrices.operations.operation import Refusing, lacks_operands
from ptxmma.matrices.places import operand_of
from ptxmma.model import InstructionSet


class Compress(Refusing):
    """Keeps some elements of a vector, and says which."""

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """The vectors before and after, the indices, and a descriptor."""
        yield from lacks_operands(entry, "compresses a vector", "vector", "read", "write")
        yield from lacks_operands(entry, "compresses a vector", "indices", "write")
        yield from lacks_operands(entry, "compresses a vector", "sparsity-descriptor", "read")

    def statement(self, instruction: Instruction) -> str:
        """The part that is kept."""
        kept, indices, of = _named(instruction)
        return f"{kept} = the two elements of each four of {of} that the descriptor chooses; {indices} = their places among the four"

    def _refusal(self, instruction: Instruction) -> Missing:
        kept, indices, _ = _named(instruction)
        return Missing(
            f"{instruction.canonical}: no source says in which order {kept} has the two kept elements, where {indices} has their indices, "
            f"and which of equal elements are kept; PTX ISA 9.4 has a figure, and leaves the last to the implementation"
        )


class Decompress(Refusing):
    """Writes the elements of a vector to the places that indices name, and zeros elsewhere."""

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """The vectors before and after, and the indices."""
        yield from lacks_operands(entry, "decompresses a vector", "vector", "read", "write")
        yield from lacks_operands(entry, "decompresses a vector", "indices", "read")

    def statement(self, instruction: Instruction) -> str:
        """The place where each element goes."""
        extents, (source, indices, target) = instruction.extents, _named(instruction)
        kept, group = extents["kept"], extents["group"]
        return f"{target}[{group} * g + {indices}[{kept} * g + s]] = {source}[{kept} * g + s] for s < {kept}; 0 elsewhere"

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The parameters of the function that decompresses."""
        kinds = {"vector": "source"}
        return {name: kinds.get(kind, kind) for name, kind in super().arguments(instruction).items()}

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on arrays."""
        from ptxmma.matrices.transfers import vectors

        return vectors.decompress

    def _refusal(self, instruction: Instruction) -> Missing:
        return Missing(f"{instruction.canonical} moves elements of vectors, not of matrices; `ptxmma.emulate` says where each goes")


def _named(instruction: Instruction) -> tuple[str, str, str]:
    """The names of the compressed vector, of the indices and of the whole vector."""
    indices = operand_of(instruction, "indices")
    vectors = {operand.access: operand.name for operand in instruction.forms[0].operands if operand.kind == "vector"}
    whole = {"write": "read", "read": "write"}[indices.access]  # indices are written where the whole vector is read
    return vectors[indices.access], indices.name, vectors[whole]
