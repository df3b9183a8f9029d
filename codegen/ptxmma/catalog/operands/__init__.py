"""Operands: the roles that instructions are composed of, and the description of one operand of one variant.

A family whose operands have these roles needs no Python.
"""

from __future__ import annotations

from ptxmma.catalog.operand_keys import OperandKeys
from ptxmma.catalog.operands.cluster_role import CtaMask
from ptxmma.catalog.operands.fragment_role import Accumulator, Fragment
from ptxmma.catalog.operands.immediate_role import Immediate, Majorness, Negation
from ptxmma.catalog.operands.memory_role import Address, Descriptor, Location, SharedDescriptor, Stride
from ptxmma.catalog.operands.metadata_role import MetadataWord, Selector
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.predicate_role import Predicate
from ptxmma.catalog.operands.reduction_role import Indices, Reduction
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role, register, register_type, vector
from ptxmma.catalog.operands.scale_role import ByteId, ScaleData, ThreadId
from ptxmma.catalog.operands.tensor_memory_role import (
    Columns,
    LookupTable,
    TensorAccumulator,
    TensorAddress,
    TensorCopy,
    TensorMatrix,
    TensorMetadata,
    TensorScales,
)  # fmt: skip
from ptxmma.catalog.operands.tensor_operand import TensorOperand
from ptxmma.catalog.operands.tensor_product_role import ColumnMask, InstructionDescriptor, LaneMask
from ptxmma.catalog.variants import Variant
from ptxmma.model import Database, InstructionSet, Kind, operand_names

__all__ = [
    "ROLES", "Operand", "Parameter", "Role", "TensorOperand", "describe", "matrices", "matrix_types", "multiplicands", "register",
    "register_type", "vector",
]  # fmt: skip

#: The role of each kind of operand.
ROLES: dict[Kind, Role] = {
    "fragment": Fragment(),
    "accumulator": Accumulator(),
    "descriptor": Descriptor(),
    "address": Address(),
    "stride": Stride(),
    "predicate": Predicate(),
    "metadata": MetadataWord(),
    "selector": Selector(),
    "immediate": Immediate(),
    "majorness": Majorness(),
    "negation": Negation(),
    "scale-data": ScaleData(),
    "byte-id": ByteId(),
    "thread-id": ThreadId(),
    "location": Location(),
    "shared-descriptor": SharedDescriptor(),
    "tensor-address": TensorAddress(),
    "columns": Columns(),
    "cta-mask": CtaMask(),
    "tensor-matrix": TensorMatrix(),
    "tensor-accumulator": TensorAccumulator(),
    "tensor-metadata": TensorMetadata(),
    "tensor-scales": TensorScales(),
    "lookup-table": LookupTable(),
    "instruction-descriptor": InstructionDescriptor(),
    "lane-mask": LaneMask(),
    "column-mask": ColumnMask(),
    "reduction": Reduction(),
    "indices": Indices(),
    "tensor-copy": TensorCopy(),
}


def describe(database: Database, variant: Variant, name: str) -> Operand:
    """Operand ``name`` of a variant; variants that agree in all that an operand can depend on share one object."""
    keys: OperandKeys | None = database.memo.get("operand keys")
    if keys is None:
        keys = database.memo["operand keys"] = OperandKeys(database.spec)
    key = keys.exact(variant, name)
    operand: Operand | None = database.memo.get(key)
    if operand is None:
        entry = variant.instruction.operand_kinds[name]
        known: Known = {"of": entry.of, "access": entry.access, "default": entry.default, "uniform": entry.uniform}
        known["bracketed"] = any(f"[{name}]" in text for texts in variant.instruction.operands.values() for text in texts)
        known |= ROLES[entry.kind].describe(Context(database, variant, name, entry))
        operand = ROLES[entry.kind].operand_type(name=name, kind=entry.kind, title=entry.title, source=entry.source, **known)
        database.memo[key] = operand
    return operand


def matrices(instruction: InstructionSet) -> dict[str, str]:
    """The qualifier with the element type of each matrix, wherever it lies: ``{"d": "dtype", "a": "atype", "b": "btype"}``.

    A matrix has the name of the operand that holds it, or that its descriptor is ``of``.
    """
    made: dict[str, str] | None = instruction.memo.get("matrices")
    if made is None:
        entries = [(name, entry) for name, entry in instruction.operand_kinds.items() if ROLES[entry.kind].matrix]
        made = instruction.memo["matrices"] = {entry.of or name: entry.type for name, entry in entries}
    return made


def matrix_types(variant: Variant) -> dict[str, str]:
    """The element type of each matrix: ``{"d": "f32", "a": "f16", "b": "f16"}``."""
    types = {name: str(variant.facts.get(qualifier, "")) for name, qualifier in matrices(variant.instruction).items()}
    return {name: element for name, element in types.items() if element}


def multiplicands(instruction: InstructionSet) -> tuple[str, ...]:
    """The matrices that it multiplies, in the order of its operand lists: A, B."""
    names = (name for texts in instruction.operands.values() for text in texts for name in operand_names(text))
    entries = ((name, instruction.operand_kinds[name]) for name in names if name in instruction.operand_kinds)
    return tuple(dict.fromkeys(entry.of or name for name, entry in entries if ROLES[entry.kind].multiplied))
