"""One operand in tensor memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ptxmma.arguments import AnyArray, Numbers, integer
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.operand_form import OperandForm
from ptxmma.catalog.operands.tensor_fragment import TensorFragment
from ptxmma.catalog.operands.tensor_places import Place, TensorPlaces

if TYPE_CHECKING:
    from ptxmma.arrays.elements import Array

_BYTE = 8


class Transfer(Protocol):
    """A :class:`ptxmma.Instruction` that may move registers to or from tensor memory."""

    canonical: str

    @property
    def forms(self) -> tuple[OperandForm, ...]:
        """Its operand lists."""


class TensorOperand(Operand, frozen=True, kw_only=True):
    """One operand in tensor memory; other attributes as :class:`Operand` has them.

    Attributes:
        tensor: its layout; None for an opcode alone, and where no source states one.
    """

    tensor: TensorPlaces | None = None

    def __repr__(self) -> str:
        sizes = " x ".join(f"{size} {axis}s" for axis, size in self.sizes.items() if axis in self.axes)
        return f"<TensorOperand {self.name}: {sizes or self.kind}>"

    @property
    def apart(self) -> tuple[str, ...]:
        """The axes that number copies of the same data."""
        return self.tensor.apart if self.tensor is not None else ()

    @property
    def selections(self) -> Mapping[str, Sequence[int]]:
        """The legal values of each number of the instruction descriptor that selects a part: ``{"scale_id": (0, 2)}``."""
        return self.tensor.selections if self.tensor is not None else {}

    @property
    def plane(self) -> tuple[int, int]:
        """The sizes of its axes of rows and of columns; 0 for an axis that it lacks."""
        return self.sizes.get("row", 0), self.sizes.get("col", 0)

    @property
    def columns(self) -> int:
        """Columns of tensor memory that it takes, from its address on.

        Raises:
            ValueError: it has no layout.
        """
        return self.placed().columns

    def placed(self) -> TensorPlaces:
        """Return its layout.

        Raises:
            ValueError: it has none.
        """
        if self.tensor is None:
            raise ValueError(self.why)
        return self.tensor

    def _require(self) -> None:
        self.placed()

    def locate(self, *coordinates: Numbers, check: bool = True, **named: Numbers) -> Place:
        """Return the place of a part: ``locate(37, 200)`` is ``Place(cta=0, lane=37, column=200, bit=0)`` for D of M = 128.

        The coordinates are numbers of the :attr:`axes`, in order or by name, integers or arrays.  The number of a copy of the same data,
        and a number that the instruction descriptor selects, is 0 unless named: ``locate(77, 3, copy=1, scale_id=0)``.

        Raises:
            TypeError: a coordinate is neither an integer nor an array, missing, unknown or given twice.
            ValueError: it has no layout, or a number is out of range.
        """
        place: Place = super().locate(*coordinates, check=check, **named)
        return place

    def _without_data(self) -> ValueError:
        return ValueError(f"operand {self.name!r} is in no registers; through() says in which ones a load or store has it")

    def _at(self, point: Mapping[str, Any]) -> Place:
        return self.placed()._at(point)

    def coords(  # type: ignore[override]  # it names its coordinates
        self, lane: Numbers, column: Numbers, bit: Numbers = 0, cta: Numbers = 0, **selections: int
    ) -> tuple[Any, ...]:
        """Return the part at a place of tensor memory, a number for each of :attr:`sizes`: the inverse of :meth:`locate`.

        Raises:
            TypeError: an unknown selection.
            ValueError: it has no layout, or nothing of it lies there.
        """
        return self.placed().coords(lane, column, bit, cta, **selections)

    def through(self, transfer: Transfer) -> TensorFragment:
        """Return its elements in the registers of a load or store of tensor memory: the register of each thread that takes ``D[row][col]``.

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

    # --- matrices -----------------------------------------------------------------------------------------------------------

    def pack(self, matrix: AnyArray, memory: Any = None, *, address: int = 0, **selections: int) -> Any:  # type: ignore[override]  # it names its data
        """A matrix, scale factors, metadata or bytes to an image of tensor memory, all copies of it.

        Args:
            matrix: (rows, cols) of the element type's dtype, or its bits as unsigned integers; of scale factors (rows, blocks) of A or
                (blocks, cols) of B; of metadata row-major ``uint8`` (rows, chunks / 2) as :meth:`ptxmma.Metadata.pack` takes it; of what
                ``tcgen05.cp`` copies ``uint8`` (rows, bytes).
            memory: the image, (128, columns) of 32 bits, (2, 128, columns) for a pair of CTAs, which is written to; None: a new one of
                zeros with 512 columns.
            address: the operand's address.
            selections: the numbers by which the instruction descriptor selects a part: ``scale_id=1``.

        Returns:
            The image, ``uint32`` if it is new.

        Raises:
            TypeError: an unknown selection.
            ValueError: another shape or dtype, an address or a selection that is not legal, columns that the image does not have, or an
                operand without layout.
        """
        import numpy as np

        placed = self.placed()
        codes = self._codes(matrix)
        image = self._image(memory)
        cells = image.reshape(placed.numbers["ctas"], *image.shape[-2:])
        word = image.dtype.type
        mask = (1 << min(placed.unit, placed.memory.cell)) - 1
        for place in self._copies((), {**self._everything(), **selections}):
            for bit in np.unique(place.bit):
                here = np.broadcast_to(place.bit, codes.shape) == bit
                at = self._cells(Place(*(np.broadcast_to(part, codes.shape)[here] for part in place)), address, image.shape[-1])
                kept = cells[at] & ~word(mask << int(bit) - placed.shift)
                cells[at] = kept | codes[here].astype(word) << word(bit)
        return image

    def unpack(self, registers: AnyArray, *, address: int = 0, **selections: int) -> Any:  # type: ignore[override]  # it names its data
        """Return the operand's data in an image of tensor memory: the inverse of :meth:`pack`; of copies the first is read.

        ``registers`` is the image.

        Raises:
            TypeError, ValueError: as :meth:`pack`.
        """
        import numpy as np

        from ptxmma.arrays import elements

        placed = self.placed()
        image = self._image(registers)
        cells = image.reshape(placed.numbers["ctas"], *image.shape[-2:])
        place = next(self._copies((), {**self._everything(), **selections}))
        shape = tuple(self.sizes[axis] for axis in self.axes)
        at = self._cells(Place(*(np.broadcast_to(part, shape) for part in place)), address, image.shape[-1])
        width = min(placed.unit, self.element.bits) if self.element is not None else placed.unit
        codes = cells[at] >> np.broadcast_to(place.bit, shape).astype(image.dtype) & image.dtype.type((1 << width) - 1)
        return elements.like(self._matrix(codes), registers)

    def _everything(self) -> dict[str, Any]:
        """Return all numbers of every axis, each along a dimension of its own."""
        import numpy as np

        return dict(zip(self.axes, np.ogrid[tuple(slice(self.sizes[axis]) for axis in self.axes)], strict=True))

    def _cells(self, place: Place, address: int, columns: int) -> tuple[Array, Array, Array]:
        """Return the cells of places, counted from an address, as an index.

        Raises:
            ValueError: they leave the memory, or the address is not at a lane at which the operand may start.
        """
        placed, base = self.placed(), integer("address", address)
        lane, column = (placed.memory.parts(base)[name] for name in ("lane", "column"))
        if base < 0 or lane not in placed.layout.align:
            raise ValueError(f"address {base:#x} is lane {lane}; it must be lane {placed.first_lanes}")
        last = int(place.column.max()) + column
        if last >= columns:
            raise ValueError(f"columns reach from {column} to {last}; the memory has {columns}")
        return place.cta, place.lane + lane, place.column + column

    def _image(self, memory: Any) -> Array:
        """Return the image of tensor memory, checked; a new one of zeros for None."""
        import numpy as np

        from ptxmma.arrays import elements

        placed = self.placed()
        lanes, ctas = placed.memory.most("lane"), placed.numbers["ctas"]
        shape = (lanes,) if ctas == 1 else (ctas, lanes)
        if memory is None:
            return np.zeros((*shape, placed.memory.least("column")), f"u{placed.memory.cell // _BYTE}")
        image = elements.bits(memory, placed.memory.cell // _BYTE, "memory")
        if image.shape[:-1] != shape:
            wanted = ", ".join(map(str, shape))
            raise ValueError(f"memory has shape {image.shape}; it takes ({wanted}, columns) of {placed.memory.cell} bits")
        return image

    def _codes(self, matrix: Any) -> Array:
        """Return the bits of everything that lies there, over the axes in their order.

        Raises:
            ValueError: another shape or dtype.
        """
        from ptxmma.arrays import elements, metadata_bytes

        unit, sizes = self.placed().unit, tuple(self.sizes[axis] for axis in self.axes)
        if self.element is None:
            what = "the data" if unit == _BYTE else "metadata"
            rows = elements.bits(matrix, 1, what) if unit == _BYTE else metadata_bytes.row_major(matrix)
            wanted = (sizes[0], sizes[1] * unit // _BYTE)
            if rows.shape != wanted:
                raise ValueError(f"{what} has shape {rows.shape}; it takes ({wanted[0]}, {wanted[1]})")
            return elements.split(rows, unit)
        codes = elements.codes(matrix, self.element, self.name)
        if codes.shape != self._shape:
            raise ValueError(f"{self.name} has shape {codes.shape}; it takes ({', '.join(map(str, self._shape))})")
        return codes if self._shape == sizes else codes.swapaxes(-1, -2)

    def _matrix(self, codes: Array) -> Array:
        """Return the matrix that :meth:`_codes` takes."""
        import numpy as np

        from ptxmma.arrays import elements

        if self.element is None:
            return elements.joined(codes.astype(np.uint8), self.placed().unit)
        turned = codes if self._shape == codes.shape else codes.swapaxes(-1, -2)
        return elements.typed(np.ascontiguousarray(turned).astype(elements.bits_dtype(self.element)), self.element)

    @property
    def _shape(self) -> tuple[int, ...]:
        """The shape of a matrix as A or B itself lies: what belongs to columns has them last."""
        return tuple(self.sizes[axis] for axis in sorted(self.axes, key=lambda axis: axis == "col"))

    # --- other notations ----------------------------------------------------------------------------------------------------

    def to_cute(self, **selections: int) -> str:
        """Return CuTe's text of its layout, a mode for each axis with the coordinates of tensor memory as strides:
        ``((16,4,2),256):((1@lane,32@lane,1@cta),1@column)``.

        Raises:
            TypeError: an unknown selection.
            ValueError: it has no layout, or a selection that is not legal.
        """  # noqa: D205  # one sentence
        return self.placed().to_cute(**selections)

    def to_triton(self, **selections: int) -> dict[str, list[list[int]]]:
        """Return Triton's bases of its layout: what each bit of ``cta``, ``lane``, ``column`` and ``bit`` adds to its axes.

        Raises:
            TypeError: an unknown selection.
            ValueError: it has no layout, a selection that is not legal, or a size that is not a power of two.
        """
        return self.placed().to_triton(**selections)
