"""Operands that name thread blocks of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog.operands.role import Context, Role, register_type


class CtaMask(Role):
    """A set of thread blocks, a bit for each; bit ``i`` is the block whose ``%cluster_ctarank`` is ``i``."""

    def immediates(self, context: Context) -> Sequence[int]:
        """Whatever fits into its register."""
        return range(1 << register_type(context.spec, context.carried()["register_types"][0]).bits)
