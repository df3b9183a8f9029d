"""Operands that name tensor memory: addresses, and numbers of columns."""

from __future__ import annotations

from ptxmma.catalog.operands.role import Context, Known, Role


class TensorAddress(Role):
    """A 32-bit address in tensor memory: the lane in the upper half, the column in the lower."""


class TensorMatrix(TensorAddress):
    """The address of a matrix in tensor memory."""

    describes = True
    alone = True
    varies = True


class TensorAccumulator(TensorMatrix):
    """The address of the matrix in tensor memory that products are added to."""

    varies = False

    def describe(self, context: Context) -> Known:
        """It is written."""
        return super().describe(context) | {"writes": True}


class TensorMetadata(TensorAddress):
    """The address of the metadata of a sparse matrix."""

    describes = True
    alone = True


class TensorScales(TensorAddress):
    """The address of the scale factors of a matrix."""

    describes = True
    alone = True


class LookupTable(TensorAddress):
    """The address of the table with the values of a matrix that is stored as indices."""

    describes = True
    alone = True


class Columns(Role):
    """A number of columns of tensor memory."""

    def describe(self, context: Context) -> Known:
        """Its unit."""
        return super().describe(context) | {"unit": context.entry.unit}
