"""Operands that are addresses in tensor memory."""

from __future__ import annotations

from typing import ClassVar

from ptxmma.catalog import layouts
from ptxmma.catalog.operands.tensor_operand import TensorOperand
from ptxmma.catalog.products import resolution
from ptxmma.catalog.products.resolution import Product
from ptxmma.catalog.roles.role import Context, Known, Role


class TensorAddress(Role, kinds=("tensor-address",)):
    """A 32-bit address in tensor memory: the lane in the upper half, the column in the lower."""

    def describe(self, context: Context) -> Known:
        """The bytes of the row that begins there."""
        return super().describe(context) | {"row_bytes": layouts.size(context.entry.row_bytes or "0", {})}


class Placed(TensorAddress):
    """The address of something with a layout.

    Attributes:
        chosen: true if the layout depends on what the instruction descriptor chooses, false if it follows from the qualifiers.
    """

    chosen: ClassVar[bool] = True
    operand_type = TensorOperand
    describes = True

    def describe(self, context: Context) -> Known:
        """Its memory, and its layout or the reason why it has none."""
        spec, variant = context.spec, context.variant
        known = super().describe(context) | {"memory": spec.tensor_memory_of(variant.facts)}
        if self.chosen and not isinstance(variant, Product):
            missing = resolution.unstated(spec, variant)
            arguments = ", ".join(f"{name}=..." for name in missing)
            named = f"{context.name} of {variant.instruction.name}"  # opcodes that leave the same open share an operand
            stated = f"the opcode does not state {', '.join(missing)}: give them to ptxmma.instruction(opcode, {arguments})"
            return known | {"why": f"{named}: {stated}"}
        placed = resolution.places(spec, variant, context.entry.kind, context.entry.of)
        if placed is None:
            shape = ", ".join(f"{name} = {value}" for name, value in variant.chosen)
            return known | {"why": f"no source says where {context.name} of {variant.canonical} lies" + (f" with {shape}" if shape else "")}
        return known | {"tensor": placed, "sizes": placed.sizes} | self.contents(context)

    def contents(self, context: Context) -> Known:  # noqa: ARG002  # of metadata and bytes there is none
        """The type of what lies there."""
        return {}


class TensorCopy(Placed, kinds=("tensor-copy",)):
    """The address of a copy of shared memory."""

    chosen = False
    describes = False


class TensorMatrix(Placed, kinds=("tensor-matrix",)):
    """The address of a matrix in tensor memory."""

    alone = True
    varies = True

    def contents(self, context: Context) -> Known:
        """The type of its elements."""
        return context.element(f"{context.entry.of}type")


class TensorAccumulator(TensorMatrix, kinds=("tensor-accumulator",)):
    """The address of the matrix in tensor memory that products are added to."""

    varies = False

    def describe(self, context: Context) -> Known:
        """It is written."""
        return super().describe(context) | {"writes": True}


class TensorMetadata(Placed, kinds=("tensor-metadata",)):
    """The address of the metadata of a sparse matrix."""

    alone = True


class TensorScales(Placed, kinds=("tensor-scales",)):
    """The address of the scale factors of a matrix."""

    alone = True

    def contents(self, context: Context) -> Known:
        """The type of the scale factors."""
        return context.element("stype")


class LookupTable(TensorAddress, kinds=("lookup-table",)):
    """The address of the table with the values of a matrix that is stored as indices."""

    describes = True
    alone = True
