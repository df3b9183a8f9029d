"""Elements of a matrix, or addresses of its rows, in the registers of threads."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxmma.arguments import AnyArray, Numbers, in_range
from ptxmma.catalog.operands.held import PLANE, Held
from ptxmma.catalog.operands.operand import Operand
from ptxmma.model import COPY, Layout
from ptxmma.model.bitmap import BitMap
from ptxmma.model.digit_map import Digit, DigitMap

if TYPE_CHECKING:
    from ptxmma.arrays.elements import Array
    from ptxmma.arrays.tiling import Tiling

#: The name that a tiling has for the number of a matrix.
_MATRIX = "matrix"


class RegisterOperand(Operand, frozen=True, kw_only=True):
    """An operand that holds elements of a matrix in registers; attributes as :class:`Operand` has them."""

    def locate(self, *coordinates: Numbers, check: bool = True, **named: Numbers) -> Any:
        """Return ``(lane, i)`` of the element at a place: the inverse of :meth:`coords`.

        The coordinates are numbers of the :attr:`axes`, in order or by name: ``locate(9, 3)``, ``locate(row=9, col=3)``.  Where an element
        is stored in copies, it is the first of them; with ``computation=``, the element of one of several independent products.
        ``check=False`` leaves the range of arrays unchecked.

        Raises:
            TypeError: a coordinate that is neither an integer nor an array, missing, unknown or given twice.
            ValueError: a place lies outside the matrix.
        """
        return super().locate(*coordinates, check=check, **named)

    def places(self, *coordinates: Numbers, **named: Numbers) -> list[Any]:
        """Return every ``(lane, i)`` that holds the element at a place, ascending.

        Raises:
            TypeError, ValueError: as :meth:`locate`.
        """
        return super().places(*coordinates, **named)

    def _at(self, point: Mapping[str, Any]) -> Any:
        element = self.fragment().to_axes.inverse().apply(point)
        return element["lane"], element["i"]

    def coords(self, lane: Numbers, i: Numbers = 0, *, check: bool = True) -> tuple[Any, ...]:  # type: ignore[override]  # it names its coordinates
        """Return the place of element ``i`` of thread ``lane``, a number for each of :attr:`axes`: ``(row, col)``.

        ``lane`` runs over 0..31, for warpgroup instructions over 0..127; ``i`` over 0..elements-1, from the lowest bits of register 0 on.
        For a sparse A, ``col`` is the column in the packed matrix.  Integers, or arrays (whatever has a shape);
        ``check=False`` leaves the range of arrays unchecked.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: a number is out of range.
        """
        place = self._numbers(lane, i, check=check)
        return tuple(place[axis] for axis in self.axes)

    def computation(self, lane: Any, i: Any) -> Any:
        """Return the number of the independent product that the element belongs to; 0 except for ``m8n8k4`` with f16."""
        return self._numbers(lane, i).get("computation", 0)

    def _numbers(self, lane: Any, i: Any, *, check: bool = True) -> dict[str, Any]:
        """Return the number of an element on every axis."""
        layout = self.fragment()
        lane = in_range("lane", lane, layout.threads, check=check)
        return layout.to_axes.apply({"lane": lane, "i": in_range("i", i, self.elements, check=check)})

    def held(self) -> Held:
        """Return its elements as threads hold them; of a layout that serves every N as few columns as repeat."""
        layout = self.fragment()
        # The terms of a sum may be in any order, and the columns of what is stored; metadata fixes the order of a packed A.
        stored = layout.plane[1] if self.kind == "fragment" and self.access == "read" else ""
        return Held(
            name=self.name,
            layout=layout.name,
            type=str(self.element_type),
            bits=self.bits,
            per_register=self.elements_per_register,
            elements=self._tile().compose(layout.to_axes),
            called=dict(zip(layout.axes, layout.axes, strict=True)) | dict(zip(layout.plane, PLANE, strict=True)),
            ordered="" if self.sparsity else layout.summed or stored,
            summed=bool(layout.summed),
        )

    def _tile(self) -> DigitMap:
        """The number of an element and the thread, from the numbers that count within a warp."""
        layout = self.fragment()
        kept = [
            axis not in layout.growing or 1 << number < layout.grows_by or bit < self.elements_per_register.bit_length() - 1
            for bit, (axis, number) in enumerate(layout.to_axes.bits["i"])
        ]
        sizes = {"i": 1 << sum(kept), "lane": 1 << layout.lane_bits, "warp": layout.warps}
        weights = {"i": ("i", 1), "lane": ("lane", 1), "warp": ("lane", sizes["lane"])}
        return DigitMap.made(sizes, ("i", "lane"), [Digit(name, 1, size, *weights[name]) for name, size in sizes.items()])

    # --- matrices -----------------------------------------------------------------------------------------------------------
    # These functions import NumPy, without which most questions are answered.

    def pack(self, matrix: AnyArray) -> Any:  # type: ignore[override]  # it names its data
        """One tile of a matrix to the registers of all threads; leading dimensions are batches of tiles.

        ``matrix`` has shape (..., rows, cols), of several matrices (``ldmatrix.x4``, ``m8n8k4`` with f16) (..., 4, rows, cols), and the
        dtype of the element type, or holds its bits as unsigned integers; narrow types have one element in each byte.  A torch tensor
        gives a tensor.  The result is (..., threads, registers) in the type that the CUDA wrappers have for a register; element ``i`` of
        thread ``lane`` lies at the place that :meth:`coords` gives.  An element that several threads hold goes to all of them.
        Padding bits of containers are 0.

        Raises:
            ValueError: another shape or dtype, a code that the type does not have, or an operand without elements.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import batch_of

        codes, expected = self._codes(matrix), (*self._leads.values(), self.rows, self.cols)
        if codes.shape[-len(expected) :] != expected:
            raise ValueError(f"{self.name} has shape {codes.shape}; one tile is {batch_of(*expected)}: pack_tiles takes larger matrices")
        return elements.like(self._packed(codes)[..., 0, 0, :, :], matrix)

    def unpack(self, registers: AnyArray) -> Any:  # type: ignore[override]  # it names its data
        """Return the matrix in the registers of all threads: the inverse of :meth:`pack`.

        ``registers`` has shape (..., threads, registers) and any dtype of a register's size, whose bits are read; padding bits of
        containers are ignored.  Of copies of an element the first is read.  The result is (..., rows, cols), of several matrices
        (..., matrices, rows, cols), in the dtype of the element type.  A torch tensor gives a tensor; where torch has no usable dtype, as
        for 4-bit and 6-bit types, it is one of ``uint8`` codes, which :meth:`pack` takes back.

        Raises:
            ValueError: another shape, a dtype of another size, or an operand without elements.
        """
        from ptxmma.arrays import elements

        return elements.like(self._unpacked(self._words(registers)[..., None, None, :, :]), registers)

    def pack_tiles(self, matrix: AnyArray, *, pad: bool = False) -> Any:  # type: ignore[override]  # it names its data
        """A whole matrix to the registers of each of its tiles: (..., R, C) to (..., R/rows, C/cols, threads, registers).

        Args:
            matrix: as :meth:`pack` takes it, R and C multiples of ``rows`` and ``cols``.
            pad: fill up with zeros to such multiples.

        Raises:
            ValueError: as :meth:`pack`, or sizes that are not multiples without ``pad``.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import whole

        return elements.like(self._packed(whole(self._codes(matrix), (self.rows, self.cols), self.name, pad)), matrix)

    def unpack_tiles(self, registers: AnyArray, shape: Sequence[int] | None = None) -> Any:  # type: ignore[override]  # it names its data
        """Return a whole matrix from the registers of its tiles: the inverse of :meth:`pack_tiles`.

        Args:
            registers: (..., R/rows, C/cols, threads, registers), as :meth:`unpack` reads them.
            shape: the matrix's own, where it was padded: all of it, or (R, C).

        Raises:
            ValueError: as :meth:`unpack`, or a shape that needs another number of tiles.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import cropped

        words = self._words(registers)
        if words.ndim < 4:
            axes = f"(..., R/{self.rows}, C/{self.cols}, {self.fragment().threads}, {self.registers})"
            raise ValueError(f"registers have shape {words.shape}; a grid of tiles is {axes}")
        return elements.like(cropped(self._unpacked(words), shape, (self.rows, self.cols), "registers"), registers)

    @functools.cached_property
    def tiling(self) -> Tiling:
        """The order of its elements in the registers; worked out once."""
        from ptxmma.arrays.tiling import Tiling

        layout, sizes = self.fragment(), (self._matrices, self.rows, self.cols)
        return Tiling(_plane_map(layout, list(self._leads)), sizes, layout.threads, self.bits, _MATRIX)

    @functools.cached_property
    def _leads(self) -> dict[str, int]:
        """The axes that tell several matrices apart, with their sizes."""
        around = (*self.fragment().plane, COPY)
        return {axis: size for axis, size in self.sizes.items() if axis not in around and size > 1}

    @property
    def _matrices(self) -> int:
        """The number of matrices that it holds."""
        return math.prod(self._leads.values())

    @property
    def _container(self) -> str:
        """The dtype of the container of an element."""
        return f"u{max(self.bits // 8, 1)}"

    def _codes(self, matrix: Any) -> Array:
        """Return the bits of a matrix of the operand's type, checked as far as they do not depend on the number of tiles."""
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import not_empty

        self.fragment()
        assert self.element is not None
        codes = elements.codes(matrix, self.element, self.name)
        leads = tuple(self._leads.values())
        if codes.ndim < len(leads) + 2 or codes.shape[-2 - len(leads) : -2] != leads:
            raise ValueError(f"{self.name} has shape {codes.shape}; it takes (..., {''.join(f'{size}, ' for size in leads)}R, C)")
        not_empty(codes, self.name)
        return codes

    def _words(self, registers: Any) -> Array:
        """Return the registers of all threads as unsigned integers, checked."""
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import not_empty

        wanted = (self.fragment().threads, self.registers)
        words = elements.bits(registers, self.register_dtype.itemsize, "registers")
        if words.shape[-2:] != wanted:
            axes = f"(..., {wanted[0]}, {wanted[1]})"
            raise ValueError(f"registers have shape {words.shape}; {self.name} takes {axes}: threads, registers of each")
        not_empty(words, "registers")
        return words

    def _packed(self, codes: Array) -> Array:
        """Return the registers of whole tiles."""
        import numpy as np

        shifted = codes.astype(self._container, copy=False)
        if self.shift:
            shifted = shifted << self.shift
        shifted = shifted.reshape(*shifted.shape[: shifted.ndim - 2 - len(self._leads)], self._matrices, *shifted.shape[-2:])
        if shifted.strides[-2] == shifted.itemsize != shifted.strides[-1]:
            order = self.tiling.transposed
            packed = np.ascontiguousarray(order.pack(order.fold(shifted.swapaxes(-1, -2))).swapaxes(-4, -3))
        else:
            packed = self.tiling.pack(self.tiling.fold(shifted))
        return packed.view(self.register_dtype)

    def _unpacked(self, words: Array) -> Array:
        """Return the whole tiles of a grid of registers."""
        import numpy as np

        from ptxmma.arrays import elements

        assert self.element is not None
        codes = self.tiling.unfold(self.tiling.unpack(words, np.dtype(self._container)))
        codes = codes.reshape(*codes.shape[:-3], *self._leads.values(), *codes.shape[-2:])
        if self.shift:
            codes >>= self.shift
        if self.bits > self.element.bits:
            codes &= (1 << self.element.bits) - 1
        return elements.typed(codes.astype(elements.bits_dtype(self.element), copy=False), self.element)


class RowAddress(Operand, frozen=True, kw_only=True):
    """An operand with the address of a row of memory in each thread, or of a whole matrix; the place of a row is the thread alone."""

    def _without_data(self) -> ValueError:
        if self.layout is None:
            return super()._without_data()
        return ValueError(f"operand {self.name!r} is an address and holds no elements: coords() says which row each thread's begins")

    def _require(self) -> None:
        self._rows()

    def _rows(self) -> Layout:
        """The layout of the rows that its addresses name."""
        if self.layout is None:
            raise self._without_data()
        return self.layout

    def _at(self, point: Mapping[str, Any]) -> Any:
        return self._rows().to_axes.inverse().apply(point)["lane"]

    def coords(self, lane: Any, i: Any = 0, *, check: bool = True) -> Any:  # type: ignore[override]  # it names its coordinates
        """Return the row of memory that begins at the address of thread ``lane``, or None where the instruction ignores that address.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: it is the address of a whole matrix, a number is out of range, or an array has threads whose addresses are ignored.
        """
        layout = self._rows()
        lane, to_axes = in_range("lane", lane, layout.threads, check=check), layout.to_axes
        in_range("i", i, 1, check=check)
        place = to_axes.apply({"lane": lane})
        ignored = (lane >> to_axes.inputs["lane"]) != 0
        for axis in layout.growing:
            ignored = ignored | (place[axis] >= self.sizes[axis])
        if isinstance(lane, int) and ignored:
            return None
        if not isinstance(lane, int) and ignored.any():
            raise ValueError(f"lane of operand {self.name!r} names threads whose addresses the instruction ignores")
        return tuple(place[axis] for axis in self.axes)


def _plane_map(layout: Layout, leads: Sequence[str]) -> BitMap:
    """Return the map of a layout with one number for the matrix, and rows and columns called so."""
    names = dict(zip(layout.plane, (("row", 0), ("col", 0)), strict=True))
    width = 0
    for axis in reversed(leads):
        names[axis] = _MATRIX, width
        width += layout.map.outputs[axis]
    outputs = {names.get(axis, (axis, 0))[0]: size for axis, size in layout.map.outputs.items()} | ({_MATRIX: width} if leads else {})
    bits = {
        source: tuple((names[axis][0], names[axis][1] + bit) if axis in names else (axis, bit) for axis, bit in targets)
        for source, targets in layout.map.bits.items()
    }
    return BitMap(layout.map.inputs, outputs, bits)
