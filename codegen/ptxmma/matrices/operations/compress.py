"""Vectors of each thread, compressed to the elements that a pattern of sparsity keeps, and back."""

from __future__ import annotations

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.matrices.operations.operation import Operation
from ptxmma.matrices.places import operand_of


class Compress(Operation, name="compress"):
    """Keeps some elements of a vector, and says which."""

    verb = "compresses a vector"
    needs = (("vector", "read", "write"), ("indices", "write"), ("sparsity-descriptor", "read"))

    def statement(self, instruction: Instruction) -> str:
        """The part that is kept."""
        kept, indices, of = _named(instruction)
        return f"{kept} = the two elements of each four of {of} that the descriptor chooses; {indices} = their places among the four"

    def refusal(self, instruction: Instruction) -> Missing:
        """No source gives the order of what is kept."""
        kept, indices, _ = _named(instruction)
        return Missing(
            f"{instruction.canonical}: no source says in which order {kept} has the two kept elements, where {indices} has their indices, "
            f"and which of equal elements are kept; PTX ISA 9.4 has a figure, and leaves the last to the implementation"
        )


class Decompress(Operation, name="decompress"):
    """Writes the elements of a vector to the places that indices name, and zeros elsewhere."""

    verb = "decompresses a vector"
    needs = (("vector", "read", "write"), ("indices", "read"))

    def statement(self, instruction: Instruction) -> str:
        """The place where each element goes."""
        extents, (source, indices, target) = instruction.extents, _named(instruction)
        kept, group = extents["kept"], extents["group"]
        return f"{target}[{group} * g + {indices}[{kept} * g + s]] = {source}[{kept} * g + s] for s < {kept}; 0 elsewhere"

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The parameters of the function that decompresses."""
        kinds = {"vector": "source"}
        return {name: kinds.get(kind, kind) for name, kind in super().arguments(instruction).items()}

    def refusal(self, instruction: Instruction) -> Missing:
        """Vectors are no matrices."""
        return Missing(f"{instruction.canonical} moves elements of vectors, not of matrices; `ptxmma.emulate` says where each goes")


def _named(instruction: Instruction) -> tuple[str, str, str]:
    """The names of the compressed vector, of the indices and of the whole vector."""
    indices = operand_of(instruction, "indices")
    vectors = {operand.access: operand.name for operand in instruction.forms[0].operands if operand.kind == "vector"}
    whole = {"write": "read", "read": "write"}[indices.access]  # indices are written where the whole vector is read
    return vectors[indices.access], indices.name, vectors[whole]
