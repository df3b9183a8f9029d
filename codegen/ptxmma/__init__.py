"""ptxmma: a machine-readable specification of NVIDIA's PTX matrix instructions.

>>> import ptxmma
>>> ins = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
>>> ins.operand("a").coords(lane=5, i=3)
(9, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxmma.release import __version__

if TYPE_CHECKING:
    from ptxmma.catalog.conversion import Conversion, convert
    from ptxmma.catalog.instructions import Instruction, OperandForm, UnknownInstruction
    from ptxmma.catalog.layouts import interop
    from ptxmma.catalog.lookup import AmbiguousInstruction, instruction, instructions
    from ptxmma.catalog.operands import Operand, RegisterOperand, TensorOperand
    from ptxmma.catalog.operands.metadata import Metadata
    from ptxmma.catalog.operands.scales import Scales
    from ptxmma.catalog.products.product_rules import IllegalProductError
    from ptxmma.matrices import descriptors, quantised, scaling, shared_memory, sparse
    from ptxmma.matrices.emulator import Emulated, Moved, TensorEmulated, emulate
    from ptxmma.matrices.packed_bytes import pack_bytes, unpack_bytes
    from ptxmma.matrices.products.whole import Product, matmul
    from ptxmma.matrices.shared.tensor_map import TensorMap

__all__ = [
    "AmbiguousInstruction", "Conversion", "Emulated", "IllegalProductError", "Instruction", "Metadata", "Moved", "Operand", "OperandForm",
    "Product", "RegisterOperand", "Scales", "TensorEmulated", "TensorMap", "TensorOperand", "UnknownInstruction", "convert", "descriptors",
    "emulate", "instruction", "instructions", "interop", "matmul", "pack_bytes", "quantised", "scaling", "shared_memory", "sparse",
    "unpack_bytes", "__version__",
]  # fmt: skip

#: The module of each name that is imported when it is first asked for, or that the module is: a command imports what it uses.
_ON_DEMAND = {
    name: module
    for module, names in {
        "catalog.instructions": "Instruction OperandForm UnknownInstruction",
        "catalog.lookup": "AmbiguousInstruction instruction instructions",
        "catalog.operands": "Operand RegisterOperand TensorOperand",
        "catalog.operands.metadata": "Metadata",
        "catalog.operands.scales": "Scales",
        "catalog.products.product_rules": "IllegalProductError",
        "matrices.emulator": "Emulated TensorEmulated Moved emulate",
        "matrices.descriptors": "descriptors",
        "catalog.layouts.interop": "interop",
        "matrices.packed_bytes": "pack_bytes unpack_bytes",
        "catalog.conversion": "Conversion convert",
        "matrices.products.whole": "Product matmul",
        "matrices.quantised": "quantised",
        "matrices.scaling": "scaling",
        "matrices.shared.tensor_map": "TensorMap",
        "matrices.shared_memory": "shared_memory",
        "matrices.sparse": "sparse",
    }.items()
    for name in names.split()
}


def __dir__() -> list[str]:
    return sorted(__all__)  # the rest of the namespace is not for users


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"{__name__}.{_ON_DEMAND[name]}")
    value = module if _ON_DEMAND[name].endswith(f".{name}") else getattr(module, name)
    globals()[name] = value
    return value
