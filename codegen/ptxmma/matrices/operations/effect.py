"""Instructions whose effect is not on matrices in registers: there are no elements to follow."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.roles import matrices
from ptxmma.matrices.operations.operation import Operation
from ptxmma.matrices.places import operand_of
from ptxmma.model import InstructionSet


class Effect(Operation):
    """Changes something other than matrices."""

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """No matrix, beside what it needs."""
        yield from super().lacks(entry)
        if names := matrices(entry):
            yield f"an instruction that {self.verb} has no matrix; it has {', '.join(names)}"

    def statement(self, instruction: Instruction) -> str:  # noqa: ARG002  # all of them are alike
        """No matrix in registers changes."""
        return self.verb

    def refusal(self, instruction: Instruction) -> Missing:
        """No matrix is moved."""
        return Missing(f"{instruction.canonical} neither loads, stores nor multiplies matrices: it {self.verb}")


class Synchronise(Effect, name="synchronise"):
    """Orders other instructions, or waits for them."""

    verb = "orders other instructions"

    def statement(self, instruction: Instruction) -> str:
        """Nothing changes at all."""
        return f"{super().statement(instruction)}; no matrix changes"


class Compute(Effect, name="compute"):
    """Computes a number, such as an address, or elects a thread."""

    verb = "gives each thread a value"


class Allocate(Effect, name="allocate"):
    """Allocates or frees tensor memory or registers, or gives up the right to."""

    verb = "changes what is allocated"


class Copy(Effect, name="copy"):
    """Copies bytes from one place in memory to another."""

    verb = "copies bytes"
    needs = (("destination", "read"), ("source", "read"))

    def statement(self, instruction: Instruction) -> str:
        """The two addresses."""
        destination, source = (operand_of(instruction, kind).name for kind in ("destination", "source"))
        return f"memory[{destination} + i] = memory[{source} + i] for each byte i"


class CopyBox(Effect, name="copy-box"):
    """Copies a box of a tensor, or combines one with it."""

    verb = "copies a box of a tensor"
    needs = (("tensormap", "read"),)


class Write(Effect, name="write"):
    """Writes values to memory, or combines them with those that are there."""

    verb = "writes values to memory"
    needs = (("destination", "read"),)


class Prefetch(Effect, name="prefetch"):
    """Fetches memory into a cache."""

    verb = "fetches memory into a cache"


class TensorCopy(Effect, name="tensor-copy"):
    """Copies shared memory into tensor memory."""

    verb = "copies shared memory into tensor memory"
    needs = (("tensor-copy", "read"), ("shared-descriptor", "read"))

    def refusal(self, instruction: Instruction) -> Missing:
        """Bytes have no type."""
        target = operand_of(instruction, "tensor-copy").name
        return Missing(
            f"{instruction.canonical} copies bytes, which have no type: `ptxmma layout` with --operand {target} says where each lies"
        )

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The rows take the place of their descriptor."""
        return {name: {"shared_descriptor": "rows"}.get(kind, kind) for name, kind in super().arguments(instruction).items()}


class Shift(Effect, name="shift"):
    """Moves rows of tensor memory."""

    verb = "shifts rows of tensor memory"
    needs = (("tensor-address", "read"),)

    def refusal(self, instruction: Instruction) -> Missing:
        """Rows of bytes have no elements."""
        return Missing(f"{instruction.canonical} moves rows of bytes, which have no elements to follow; ptxmma.emulate moves them")
