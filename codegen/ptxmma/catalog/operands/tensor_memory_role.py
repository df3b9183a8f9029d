"""Operands that name tensor memory: addresses, and numbers of columns."""

from __future__ import annotations

from ptxmma.catalog.operands.role import Context, Known, Role


class TensorAddress(Role):
    """A 32-bit address in tensor memory: the lane in the upper half, the column in the lower."""


class Columns(Role):
    """A number of columns of tensor memory."""

    def describe(self, context: Context) -> Known:
        """Its unit."""
        return super().describe(context) | {"unit": context.entry.unit}
