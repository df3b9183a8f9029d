"""One operand in tensor memory, as users see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.tensor_fragment import TensorFragment
from ptxmma.catalog.tensor_places import Place, TensorPlaces

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction


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
        return self.placed().columns

    def locate(self, *coordinates: Any, check: bool = True, **named: Any) -> Place:
        """Where something of it lies: ``locate(37, 200)`` is ``Place(cta=0, lane=37, column=200, bit=0)`` for D of M = 128.

        The coordinates are those of :attr:`axes`, in order or by name, integers or arrays.  What numbers copies of the same data, and what
        the instruction descriptor selects, is 0 unless named: ``locate(77, 3, copy=1, scale_id=0)``.

        Raises:
            TypeError: a coordinate is neither an integer nor an array, missing, unknown or given twice.
            ValueError: it has no layout, or a number is out of range.
        """
        return self.placed().locate(*coordinates, check=check, **named)

    def coords(  # type: ignore[override]  # its places have columns and bits, not the numbers of elements
        self, lane: Any, column: Any, bit: Any = 0, cta: Any = 0, **selections: int
    ) -> tuple[Any, ...]:
        """What lies at a place of tensor memory, a number for each of :attr:`sizes`: the inverse of :meth:`locate`.

        Raises:
            TypeError: an unknown selection.
            ValueError: it has no layout, or nothing of it lies there.
        """
        return self.placed().coords(lane, column, bit, cta, **selections)

    def pack(self, matrix: Any, memory: Any = None, *, address: int = 0, **selections: int) -> Any:
        """What lies there to an image of tensor memory, all copies of it.

        Args:
            matrix: (rows, cols) of the element type's dtype, or its bits as unsigned integers; of scale factors (rows, blocks) of A or
                (blocks, cols) of B; of metadata row-major ``uint8`` (rows, chunks / 2) as :meth:`ptxmma.Metadata.pack` takes it; of what
                ``tcgen05.cp`` copies ``uint8`` (rows, bytes).
            memory: the image, (128, columns) of 32 bits, (2, 128, columns) for a pair of CTAs, which is written to; None: a new one of
                zeros with 512 columns.
            address: the operand's.
            selections: what the instruction descriptor selects: ``scale_id=1``.

        Returns:
            The image, ``uint32`` if it is new.

        Raises:
            TypeError: an unknown selection.
            ValueError: another shape or dtype, an address or a selection that is not legal, columns that the image does not have, or an
                operand without layout.
        """
        from ptxmma.catalog.registers import tensor_cells

        return tensor_cells.pack(self, matrix, memory, address, selections)

    def unpack(self, registers: Any, *, address: int = 0, **selections: int) -> Any:
        """What lies in an image of tensor memory: the inverse of :meth:`pack`; of copies the first is read.

        ``registers`` is the image.

        Raises:
            TypeError, ValueError: as :meth:`pack`.
        """
        from ptxmma.catalog.registers import tensor_cells

        return tensor_cells.unpack(self, registers, address, selections)

    def to_cute(self, **selections: int) -> str:
        """CuTe's text of its layout, a mode for each axis with the coordinates of tensor memory as strides:
        ``((16,4,2),256):((1@lane,32@lane,1@cta),1@column)``.

        Raises:
            TypeError: an unknown selection.
            ValueError: it has no layout, or a selection that is not legal.
        """  # noqa: D205  # one sentence
        return self.placed().to_cute(**selections)

    def to_triton(self, **selections: int) -> dict[str, list[list[int]]]:
        """Triton's bases of its layout: what each bit of ``cta``, ``lane``, ``column`` and ``bit`` adds to its axes.

        Raises:
            TypeError: an unknown selection.
            ValueError: it has no layout, a selection that is not legal, or a size that is not a power of two.
        """
        return self.placed().to_triton(**selections)

    def through(self, transfer: Instruction) -> TensorFragment:
        """Its elements in the registers of a load or store of tensor memory: which register of which thread takes ``D[row][col]``.

        Raises:
            TypeError: ``transfer`` is not an instruction.
            ValueError: it has no layout, the instruction is not such a load or store, or it takes other columns or bits.
        """
        if not hasattr(transfer, "forms"):
            raise TypeError(f"transfer must be a tcgen05.ld or tcgen05.st from ptxmma.instruction, not {type(transfer).__name__}")
        fragments = {operand.kind: operand for form in transfer.forms for operand in form.operands}
        if not {"fragment", "tensor-address"} <= fragments.keys():
            raise ValueError(f"{transfer.canonical} does not move registers to or from tensor memory; tcgen05.ld and tcgen05.st do")
        return TensorFragment(self.placed(), fragments["fragment"])

    def placed(self) -> TensorPlaces:
        """Where it lies.

        Raises:
            ValueError: it has no layout.
        """
        if self.tensor is None:
            raise ValueError(self.why)
        return self.tensor
