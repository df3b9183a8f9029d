"""One operand in tensor memory, as users see it."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.tensor_places import Place, TensorPlaces


class TensorOperand(Operand, frozen=True, kw_only=True):
    """One operand in tensor memory; other attributes as :class:`Operand` has them.

    Attributes:
        tensor: where it lies; None for an opcode alone, and where no source says it.
        why: why there is none.
    """

    tensor: TensorPlaces | None = None
    why: str = ""

    def __repr__(self) -> str:
        sizes = " x ".join(f"{size} {axis}s" for axis, size in self.sizes.items() if axis in self.axes)
        return f"<TensorOperand {self.name}: {sizes or self.kind}>"

    @property
    def axes(self) -> tuple[str, ...]:
        """The coordinates that :meth:`locate` takes, in order: ``("row", "col")``; empty without a layout."""
        return self.tensor.coordinates if self.tensor is not None else ()

    @property
    def rows(self) -> int:
        """Rows of the matrix that lies there; 0 without a layout."""
        return self.sizes.get("row", 0)

    @property
    def cols(self) -> int:
        """Columns of the matrix that lies there; 0 without a layout."""
        return self.sizes.get("col", 0)

    @property
    def columns(self) -> int:
        """Columns of tensor memory that it takes, from its address on.

        Raises:
            ValueError: it has no layout.
        """
        return self._tensor().columns

    def locate(self, *coordinates: Any, check: bool = True, **named: Any) -> Place:
        """Where something of it lies: ``locate(37, 200)`` is ``Place(cta=0, lane=37, column=200, bit=0)`` for D of M = 128.

        The coordinates are those of :attr:`axes`, in order or by name, integers or arrays.  What numbers copies of the same data, and what
        the instruction descriptor selects, is 0 unless named: ``locate(77, 3, copy=1, scale_id=0)``.

        Raises:
            TypeError: a coordinate is neither an integer nor an array, missing, unknown or given twice.
            ValueError: it has no layout, or a number is out of range.
        """
        return self._tensor().locate(*coordinates, check=check, **named)

    def coords(  # type: ignore[override]  # its places have columns and bits, not the numbers of elements
        self, lane: Any, column: Any, bit: Any = 0, cta: Any = 0, **selections: int
    ) -> tuple[Any, ...]:
        """What lies at a place of tensor memory, a number for each of :attr:`sizes`: the inverse of :meth:`locate`.

        Raises:
            TypeError: an unknown selection.
            ValueError: it has no layout, or nothing of it lies there.
        """
        return self._tensor().coords(lane, column, bit, cta, **selections)

    def _tensor(self) -> TensorPlaces:
        if self.tensor is None:
            raise ValueError(self.why)
        return self.tensor
