"""Which elements of a sparse matrix are kept: the metadata, and the selector of the threads that give it."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog.operands.immediate_role import Constant
from ptxmma.catalog.operands.role import Context, Known, Role


class MetadataWord(Role):
    """A register with the indices of the kept elements."""

    layout_kind = "metadata"
    axes = ("row", "chunk", "selector")
    describes = True
    sparse = True

    def describe(self, context: Context) -> Known:
        """One register, and which field lies where."""
        return super().describe(context) | context.layout()


class Selector(Constant):
    """Which threads of each quad give the metadata; the layout of the metadata says how many choices there are."""

    describes = True
    sparse = True
    beside = "metadata"

    def immediates(self, context: Context) -> Sequence[int]:
        """The numbers of the layout's axis ``selector``."""
        return tuple(range(context.neighbour(self.beside).plan().axes["selector"]))
