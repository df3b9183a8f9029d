"""The operations of instructions, a module for each; the emulator, ``trace``, ``show`` and the reference use them."""

from __future__ import annotations

from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices.operations.compress import Compress, Decompress
from ptxmma.matrices.operations.effect import Allocate, Compute, Copy, CopyBox, Prefetch, Shift, Synchronise, TensorCopy, Write
from ptxmma.matrices.operations.multiply import Multiply, TensorMultiply
from ptxmma.matrices.operations.operation import Operation
from ptxmma.matrices.operations.transfer import Load, Store, TensorCompress, TensorLoad, TensorReduce, TensorStore, Transpose

__all__ = ["OPERATIONS", "Operation", "operation"]

#: The operations by the name that the spec has for each.
OPERATIONS: dict[str, Operation] = {
    "multiply": Multiply(),
    "load": Load(),
    "store": Store(),
    "transpose": Transpose(),
    "copy": Copy(),
    "copy-box": CopyBox(),
    "write": Write(),
    "prefetch": Prefetch(),
    "compute": Compute(),
    "allocate": Allocate(),
    "shift": Shift(),
    "tensor-copy": TensorCopy(),
    "tensor-multiply": TensorMultiply(),
    "tensor-load": TensorLoad(),
    "tensor-reduce": TensorReduce(),
    "tensor-compress": TensorCompress(),
    "tensor-store": TensorStore(),
    "compress": Compress(),
    "decompress": Decompress(),
    "synchronise": Synchronise(),
}


def operation(instruction: Instruction) -> Operation:
    """Return the operation of an instruction."""
    return OPERATIONS[instruction.operation]
