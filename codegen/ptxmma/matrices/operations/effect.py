"""Instructions whose effect is not on matrices in registers: there are no elements to follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.roles import matrices
from ptxmma.matrices.operations.operation import Refusing, lacks_operands
from ptxmma.matrices.places import operand_of
from ptxmma.model import InstructionSet


class Effect(Refusing):
    """Changes something other than matrices.

    Attributes:
        verb: its effect in words: ``"orders other instructions"``.
    """

    verb: ClassVar[str]

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """Nothing, but it has no matrix."""
        if names := matrices(entry):
            yield f"an instruction that {self.verb} has no matrix; it has {', '.join(names)}"

    def statement(self, instruction: Instruction) -> str:  # noqa: ARG002  # all of them are alike
        """No matrix in registers changes."""
        return self.verb

    def _refusal(self, instruction: Instruction) -> Missing:
        return Missing(f"{instruction.canonical} neither loads, stores nor multiplies matrices: it {self.verb}")


class Synchronise(Effect):
    """Orders other instructions, or waits for them."""

    verb = "orders other instructions"

    def statement(self, instruction: Instruction) -> str:
        """Nothing changes at all."""
        return f"{super().statement(instruction)}; no matrix changes"


class Compute(Effect):
    """Computes a number, such as an address, or elects a thread."""

    verb = "computes a number of each thread"


class Allocate(Effect):
    """Allocates or frees tensor memory or registers, or gives up the right to."""

    verb = "manages an allocation"


class Copy(Effect):
    """Copies bytes from one place in memory to another."""

    verb = "copies bytes"

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """Two addresses."""
        yield from super().lacks(entry)
        for kind in ("destination", "source"):
            yield from lacks_operands(entry, "copies", kind, "read")

    def statement(self, instruction: Instruction) -> str:
        """The two addresses."""
        destination, source = (operand_of(instruction, kind).name for kind in ("destination", "source"))
        return f"memory[{destination} + i] = memory[{source} + i] for each byte i"


class Prefetch(Effect):
    """Fetches memory into a cache."""

    verb = "fetches memory into a cache"


class TensorCopy(Effect):
    """Copies shared memory into tensor memory."""

    verb = "copies shared memory into tensor memory"

    def _refusal(self, instruction: Instruction) -> Missing:
        target = operand_of(instruction, "tensor-copy").name
        return Missing(
            f"{instruction.canonical} copies bytes, which have no type: `ptxmma layout` with --operand {target} says where each lies"
        )

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """An address and a descriptor."""
        yield from super().lacks(entry)
        yield from lacks_operands(entry, "copies", "tensor-copy", "read")
        yield from lacks_operands(entry, "copies", "shared-descriptor", "read")

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The rows take the place of their descriptor."""
        kinds = {"shared-descriptor": "rows", "tensor-copy": "tensor_copy"}
        return {name: kinds.get(kind, kind) for name, kind in super().arguments(instruction).items()}

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:
        """Works on arrays.

        Raises:
            Missing: no source says which shared memory a pair copies from.
        """
        from ptxmma.matrices.transfers import tensor_memory as tensor_transfers

        if instruction.qualifiers.get("cta_group", "").endswith("::2"):
            raise Missing(f"{instruction.canonical}: versions of the manual differ about the shared memory that is copied to the other CTA")
        return tensor_transfers.copy


class Shift(Effect):
    """Moves rows of tensor memory."""

    verb = "shifts rows of tensor memory"

    def _refusal(self, instruction: Instruction) -> Missing:
        return Missing(f"{instruction.canonical} moves rows of bytes, which have no elements to follow; ptxmma.emulate moves them")

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """The address of the rows."""
        yield from super().lacks(entry)
        yield from lacks_operands(entry, "shifts", "tensor-address", "read")

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The kinds of the operands, as Python names."""
        return {name: kind.replace("-", "_") for name, kind in super().arguments(instruction).items()}

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on arrays."""
        from ptxmma.matrices.transfers import tensor_memory as tensor_transfers

        return tensor_transfers.shift
