"""Copies of boxes between tensors and images of shared memory, as TMA makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.copied_tile import CopiedTile, Copy


class TensorMap(BoxGeometry):
    """A tensor map whose copies move arrays.

    A tensor is an array of the element type (or its raw bits) with the dimensions of :attr:`shape` outermost first, as NumPy has them;
    with interleave one more at the end, the elements of a slice.  An image is the array of the bytes from the destination on,
    ``uint8`` (size).
    """

    def load(self, tensor: Any, at: Sequence[int], *, offsets: Sequence[int] = (), destination: int = 0, image: Any = None) -> Any:
        """The image of the box at some coordinates, which may lie outside of the tensor.

        Args:
            tensor: the whole tensor.
            at: the coordinates of the copy, innermost first.
            offsets: distances along W, H, D of im2col; ``wOffset`` of im2col::w.
            destination: the shared address of the image, which decides how it is swizzled.
            image: the bytes before the copy, of which it leaves some as they are; zeros by default.

        Raises:
            ValueError: a tensor of another shape or dtype, coordinates or an image of another length.
            IllegalBoxError: a copy that traps.
        """
        codes = self._codes(tensor)
        places, inside = self._places(at, offsets)
        values = np.where(inside[..., np.newaxis] if self._unit else inside, codes[places], self._outside(codes.dtype))
        made, addresses = self._empty(image), self._bytes(destination)
        written = self._written
        made[addresses[:, written]] = self._joined(values)[:, written]
        return elements.like(made, tensor)

    def store(self, image: Any, tensor: Any, at: Sequence[int], *, destination: int = 0) -> Any:
        """The tensor after the box is written to it; elements of the box outside of the tensor are not.

        A chip writes whole 16 bytes along dimension 0, also beyond the end of the tensor there.  A ``scatter4`` may write a row twice.

        Args:
            image: the bytes of shared memory from ``destination`` on.
            tensor: the tensor before; it is not changed.
            at: the coordinates of the copy, innermost first.
            destination: the shared address of the image.

        Raises:
            ValueError: a tensor of another shape or dtype, coordinates or an image of another length.
            IllegalBoxError: a copy that traps.
        """
        codes = self._codes(tensor).copy()
        places, inside = self._places(at, store=True)
        values = self._split(self._empty(image)[self._bytes(destination)])
        written = tuple(place[inside] for place in places)
        codes[written] = values.astype(codes.dtype, copy=False)[inside]
        return elements.like(codes.view(elements.as_array(tensor).dtype), tensor)

    def load_tile(self, tensor: Any, tile: CopiedTile) -> Any:
        """The image of a matrix after all copies of a tile of this tensor map.

        Raises:
            ValueError: a tensor of another shape or dtype.
        """
        image = np.zeros(tile.layout.size, np.uint8)
        for copy, part in self._parts(image, tile):
            part[...] = elements.as_array(self.load(tensor, copy.at, destination=copy.destination))
        return elements.like(image, tensor)

    def store_tile(self, image: Any, tensor: Any, tile: CopiedTile) -> Any:
        """The tensor after each box of the image of a tile of this tensor map is written to it; the tensor before is not changed.

        Raises:
            ValueError: a tensor of another shape or dtype, or an image of another length.
            IllegalBoxError: a copy that traps.
        """
        for copy, part in self._parts(elements.as_array(image, "the image"), tile):
            tensor = self.store(part, tensor, copy.at, destination=copy.destination)
        return tensor

    def _parts(self, image: Array, tile: CopiedTile) -> Iterator[tuple[Copy, Array]]:
        """Each copy of a tile, and its bytes in the image of the whole."""
        for copy in tile.copies:
            start = copy.destination - tile.layout.start
            yield copy, image[start : start + self.size]

    def _codes(self, tensor: Any) -> Array:
        """The bits of the elements of a tensor, checked."""
        array = elements.as_array(tensor, "the tensor")
        codes = (
            elements.codes(array, self.element, "the tensor")
            if self.element
            else elements.bits(array, max(self._type.bits // 8, 1), "the tensor")
        )
        wanted = self.shape[::-1] + ((self._unit * 8 // self._type.bits,) if self._unit else ())
        if codes.shape != wanted:
            raise ValueError(f"the tensor has shape {codes.shape}; this tensor map takes {wanted}: dimension 0 last")
        return codes

    def _places(self, at: Sequence[int], offsets: Sequence[int] = (), *, store: bool = False) -> tuple[tuple[Array, ...], Array]:
        """Indices into a tensor of each element of each line, outermost dimension first, and which ones lie inside."""
        lines = np.array(list(self.lines(at, offsets, store=store)), np.int64)[:, np.newaxis, :]
        along = np.zeros((1, self.counts[0], len(self.shape)), np.int64)
        along[0, :, 0] = np.arange(self.counts[0]) * self._step
        places = lines + along
        inside: Array = np.all((places >= 0) & (places < np.array(self.shape)), axis=-1)
        kept = np.where(inside[..., np.newaxis], places, 0)
        return tuple(kept[..., dim] for dim in reversed(range(len(self.shape)))), inside

    def _outside(self, dtype: np.dtype[Any]) -> Any:
        """The bits of an element outside of the tensor."""
        halfwords = np.full(max(dtype.itemsize // 2, 1), self._fill.halfword, np.uint16)
        return halfwords.view(dtype)[0] if self._fill.halfword else dtype.type(0)

    def _bytes(self, destination: int) -> Array:
        """The index in the image of each byte of each line."""
        self._obey("destination", destination=integer("destination", destination))
        size = self._line // 8
        lines = np.arange(self.size // max(self._pitch // 8, 1) if not self._unit else np.prod(self.counts[1:], dtype=np.int64))
        before = destination + lines[:, np.newaxis] * (self._pitch // 8) + np.arange(size)
        return np.asarray(self.swizzled(before) - destination)

    def _empty(self, image: Any) -> Array:
        if image is None:
            return np.zeros(self.size, np.uint8)
        array = elements.as_array(image, "the image")
        if array.dtype != np.uint8 or array.shape != (self.size,):
            raise ValueError(f"the image is {array.dtype} of shape {array.shape}; it takes uint8 of ({self.size},)")
        return np.array(array)

    def _joined(self, values: Array) -> Array:
        """Bits of elements, line by line, as bytes."""
        lines = values.reshape(values.shape[0], -1)
        if self.padded:
            return elements.grouped(lines, self._type.bits, self._type.group, 16).view(np.uint8).reshape(len(lines), -1)
        return elements.joined(lines, self._type.bits).view(np.uint8).reshape(len(lines), -1)

    @property
    def _written(self) -> Array:
        """The bytes of a line that a load writes: padding stays as it was."""
        places = np.arange(self._line // 8)
        return places[places % 16 < self._type.group * self._type.bits // 8] if self.padded else places

    def _split(self, lines: Array) -> Array:
        """The elements of lines as a store reads them: the inverse of :meth:`_joined`, but padded elements take a byte each."""
        contiguous = np.ascontiguousarray(lines)
        if self.padded:
            values = contiguous & ((1 << self._type.bits) - 1)
        elif self._type.bits < 8:
            values = elements.split(contiguous, self._type.bits)
        else:
            values = contiguous.view(f"u{self._type.bits // 8}")
        shape = (self.counts[0], self._unit * 8 // self._type.bits) if self._unit else (self.counts[0],)
        return values.reshape(len(lines), *shape)
