"""Whole matrices as images in shared memory, with the descriptors and the tensor-map boxes that fit them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ptxmma.arguments import in_range, integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import cropped, not_empty, whole
from ptxmma.matrices.shared.box import tensor_maps_of
from ptxmma.matrices.shared.canonical import Geometry, extent
from ptxmma.matrices.shared.descriptor import Descriptor
from ptxmma.matrices.shared.reading import Places, contiguous_bytes


class TensorMapBox(NamedTuple):
    """The tensor map's swizzle and box with which TMA writes an image.

    For packed elements narrower than a byte the tensor map is one of bytes, and ``inner`` counts bytes.  For padded ones it has the type
    ``CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B`` or ``16U6_ALIGN16B``, and ``inner`` counts elements.  A
    note of ``spec/shared_memory.yaml`` has the sources of what an mbarrier counts for these.
    """

    swizzle: str  # "CU_TENSOR_MAP_SWIZZLE_128B"
    inner: int  # elements along the contiguous dimension; bytes, where elements are narrower
    outer: int  # elements along the other
    boxes: int  # boxes of which the image consists
    transaction_bytes: int  # that all boxes count on an mbarrier; padding does not count


class SharedLayout(Geometry):
    """A whole matrix as one image in shared memory, in a canonical layout; it cannot be changed.

    The dimension that the majorness names is contiguous; it is cut into panels of ``span`` bytes, the swizzle's width.  Inside a panel
    the lines of the other dimension follow each other, in groups (atoms) of 8.  One of ``lbo`` and ``sbo`` leads from panel to panel,
    the other from group to group: which one is which, the canonical layout says.  By default all is dense, which is what TMA boxes
    whose inner extent is the span write.

    Attributes:
        element: the type of the elements.
        padded: true if 16 elements of 4 or 6 bits lie in each 16 bytes, as ``kind::f8f6f4`` and ``kind::mxf8f6f4`` read them; without it
            elements of ``e2m1`` are packed, as ``kind::mxf4`` and ``kind::mxf4nvf4`` read them.
        majorness: ``"K"`` or ``"MN"``.
        swizzle: name of the swizzle mode.
        x: rows of A or columns of B.
        k: depth; for a sparse A the packed one.
        panel: elements of a panel along the contiguous dimension.
        lbo: leading dimension byte offset.
        sbo: stride dimension byte offset.
        start: shared address of the image.
        base_offset: the number that the swizzle subtracts: 0, as for TMA, where it follows absolute addresses; :func:`base_offset` of
            the start where the pattern is to start with the image.
        family: the family of the instructions that read it; by default the database's first with matrix descriptors: ``"wgmma"``.
        size: bytes of the image.

    The arguments are these attributes but for ``panel`` and ``size``; ``lbo`` and ``sbo`` may be given for padding between groups or
    panels.

    Raises:
        TypeError: an extent, stride, start or base offset that is not an integer.
        ValueError: a type that is unknown or cannot be read with that majorness, extents that do not fill panels and groups or lead out of
            a descriptor's reach, a start or stride that is not aligned, strides with which elements overlap, a base offset that a
            descriptor cannot hold.
    """

    def _finish(self) -> None:
        """Find the place of each 16 bytes."""
        self._units = self._places()

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_units"):  # set last
            raise AttributeError(f"{name} of a SharedLayout cannot be changed; create another layout")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} of a SharedLayout cannot be deleted")

    def __eq__(self, other: object) -> bool:
        """Return whether both lay the same matrices out in the same way."""
        return self._key() == other._key() if isinstance(other, SharedLayout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        """All that makes it what it is; whatever else it holds follows from this."""
        own = (self.element, self.padded, self.majorness, self.swizzle, self.x, self.k, self.lbo, self.sbo, self.start, self.base_offset)
        return (type(self), *own, self.family)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.element.name} {self.majorness}-major {self.swizzle}: {self.x} x {self.k} in {self.size} bytes "
            f"at {self.start}, lbo {self.lbo}, sbo {self.sbo}>"
        )

    def _places(self) -> Places:
        """The places of each 16 bytes of each line in the image, counted in 16 bytes: (lines, 16 bytes of a line)."""
        alignment = self._canonical.memory.alignment
        inner, outer = self._ordered
        first = self._place(np.arange(0, inner, self.per_unit), np.arange(outer)[:, np.newaxis])
        addresses = self._canonical.swizzled(self.start + self._offset(*first), self.base_offset)
        places: Places = (addresses - self.start) // alignment
        order = np.argsort(places, axis=None, kind="stable")
        shared = np.flatnonzero(np.diff(places.ravel()[order]) == 0)
        if len(shared):
            raise self._overlap(*map(int, order[shared[0] :][:2]))
        return places

    # --- elements -----------------------------------------------------------------------------------------------------------

    def address(self, x: Any, k: Any) -> Any:
        """Absolute address of the byte in which element (x, k) starts, swizzled; integers or arrays, which broadcast.

        Elements narrower than a byte lie in it from the low bits up.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: outside the matrix, or an array of other things than integers.
        """
        return super().address(_positions("x", x, self.x), _positions("k", k, self.k))

    def store_xk(self, matrix: Any) -> Any:
        """The image, ``uint8`` (..., size), of a matrix (..., x, k) of the type's dtype or its raw bits; bytes of padding are 0.

        Raises:
            ValueError: another shape or dtype, or a matrix without elements.
        """
        codes = elements.codes(matrix, self.element)
        if codes.shape[-2:] != (self.x, self.k):
            raise ValueError(
                f"the matrix has shape {codes.shape}; this layout takes (..., {self.x}, {self.k}): store_tiles_xk takes larger matrices"
            )
        not_empty(codes, "the matrix")
        return elements.like(self._image(codes), matrix)

    def load_xk(self, image: Any) -> Any:
        """The matrix (..., x, k), of the type's dtype, of an image (..., size): the inverse of :meth:`store_xk`.

        Raises:
            ValueError: no contiguous array of bytes, an empty one, or another size.
        """
        return elements.like(elements.typed(self._codes(image, "image", "(..., {})"), self.element), image)

    def store_tiles_xk(self, matrix: Any, *, pad: bool = False) -> Any:
        """The images of all tiles of a whole matrix: (..., X, K) to ``uint8`` (..., X/x, K/k, size).

        Each image is what :meth:`store_xk` gives for its tile: all have the same ``start``.

        Args:
            matrix: as :meth:`store_xk` takes it, X and K multiples of ``x`` and ``k``.
            pad: fill up with zeros to such multiples.

        Raises:
            ValueError: another dtype, a matrix without elements, or sizes that are not multiples without ``pad``.
        """
        codes = elements.codes(matrix, self.element)
        if codes.ndim < 2:
            raise ValueError(f"the matrix has shape {codes.shape}; it takes (..., X, K)")
        not_empty(codes, "the matrix")
        codes = whole(codes, (self.x, self.k), "the matrix", pad)
        *batch, rows, depth = codes.shape
        tiles = codes.reshape(*batch, rows // self.x, self.x, depth // self.k, self.k).swapaxes(-3, -2)
        return elements.like(self._image(tiles), matrix)

    def load_tiles_xk(self, images: Any, shape: Sequence[int] | None = None) -> Any:
        """A whole matrix from the images of its tiles: the inverse of :meth:`store_tiles_xk`.

        Args:
            images: (..., X/x, K/k, size).
            shape: the matrix's own, where it was padded: all of it, or (X, K).

        Raises:
            ValueError: no contiguous array of bytes, an empty one, another size, or a shape that needs another number of tiles.
        """
        tiles = self._codes(images, "images", "(..., X/x, K/k, {})", least=3)
        *batch, down, across = tiles.shape[:-2]
        codes = tiles.swapaxes(-3, -2).reshape(*batch, down * self.x, across * self.k)
        return elements.like(elements.typed(cropped(codes, shape, (self.x, self.k), "images"), self.element), images)

    def _image(self, codes: Array) -> Array:
        """Bits of elements (..., x, k) to bytes (..., size)."""
        lines = codes if self.majorness == "K" else codes.swapaxes(-1, -2)
        units = self._joined(lines).view(self._unit).reshape(*codes.shape[:-2], self._units.size)
        sources, padding = self._sources
        image = np.take(units, sources, axis=-1)
        image[..., padding] = np.zeros((), self._unit)
        return image.view(np.uint8)

    def _codes(self, image: Any, what: str, wanted: str, least: int = 1) -> Array:
        """Bytes (..., size), checked, to bits of elements (..., x, k)."""
        content = contiguous_bytes(image, what)
        if content.shape[-1] != self.size or content.ndim < least:
            raise ValueError(f"{what} of shape {content.shape}: this layout takes {wanted.format(self.size)}")
        units = np.take(content.view(self._unit), self._units, axis=-1)
        lines = self._split(units)
        return lines if self.majorness == "K" else lines.swapaxes(-1, -2)

    def _joined(self, lines: Array) -> Array:
        """Bits of elements, line by line, as the bytes of whole 16."""
        if not self.padded:
            return elements.joined(lines, self.element.bits)
        return elements.grouped(lines, self.element.bits, self.per_unit, self._unit.itemsize)

    def _split(self, units: Array) -> Array:
        """The inverse of :meth:`_joined`."""
        if not self.padded:
            return elements.split(units.view(elements.bits_dtype(self.element)), self.element.bits)
        return elements.ungrouped(units.view(np.uint8), self.element.bits, self.per_unit, self._unit.itemsize)

    @functools.cached_property
    def _sources(self) -> tuple[Places, Places]:
        """For each 16 bytes of the image, their index in the matrix, and which ones are padding."""
        sources = np.full(self.size // self._unit.itemsize, -1)
        sources[self._units.ravel()] = np.arange(self._units.size)
        return sources, np.flatnonzero(sources < 0)

    @functools.cached_property
    def _unit(self) -> np.dtype[Any]:
        """The bytes that a swizzle moves together, as a dtype."""
        return np.dtype((np.void, self._canonical.memory.alignment))

    # --- descriptors --------------------------------------------------------------------------------------------------------

    def descriptor(self, x: int = 0, k: int = 0, x_extent: int | None = None, k_extent: int | None = None) -> Descriptor:
        """The descriptor of the sub-tile whose first element is (x, k); its extents reach to the matrix's end where none are given.

        A sub-tile has a descriptor if the canonical layout, counted from the sub-tile's start, leads to each of its elements.

        Raises:
            TypeError: a position or an extent that is not an integer.
            ValueError: a sub-tile outside the matrix, one without a descriptor, or a field that has no encoding.
        """
        x, k = in_range("x", integer("x", x), self.x), in_range("k", integer("k", k), self.k)
        rows = extent("x_extent", self.x - x if x_extent is None else x_extent)
        depth = extent("k_extent", self.k - k if k_extent is None else k_extent)
        if x + rows > self.x or k + depth > self.k:
            raise ValueError(f"the sub-tile of {rows} x {depth} at ({x}, {k}) does not lie in the matrix of {self.x} x {self.k}")
        first = self._offset(x, k)
        along_x, along_k = np.arange(rows)[:, np.newaxis], np.arange(depth)
        wrong = self._offset(x + along_x, k + along_k) != first + self._offset(along_x, along_k)
        if wrong.any():
            at = tuple(map(int, np.unravel_index(wrong.argmax(), wrong.shape)))
            raise ValueError(
                f"the sub-tile of {rows} x {depth} at ({x}, {k}) has no descriptor: counted from its start, its element {at} does not lie "
                f"where this layout has it; panels are {self.panel} elements wide along {self._names[0]}, "
                f"groups {self._canonical.layout.lines} lines: let the sub-tile start or end with them"
            )
        descriptor = msgspec.structs.replace(Descriptor.of(self), start_address=self.start + int(first))
        descriptor.encode(database=self._database)
        return descriptor

    def steps(self, k_extent: int, x: int = 0, x_extent: int | None = None) -> list[Descriptor]:
        """The descriptors of the sub-tiles that follow each other along k, each ``k_extent`` deep, rows as in :meth:`descriptor`.

        Raises:
            TypeError: a position or an extent that is not an integer.
            ValueError: a depth that is not a multiple of ``k_extent``, or what :meth:`descriptor` raises.
        """
        if self.k % extent("k_extent", k_extent):
            raise ValueError(f"k = {self.k} is not a multiple of k_extent = {k_extent}")
        return [self.descriptor(x, k, x_extent, k_extent) for k in range(0, self.k, k_extent)]

    @property
    def tma(self) -> TensorMapBox:
        """The swizzle and the largest box with which TMA writes this image, box after box: groups first, then panels.

        Raises:
            ValueError: the swizzle does not follow absolute addresses, or a box would start at an address that is not aligned.
        """
        mode, layout, (inner, outer) = self._canonical.mode, self._canonical.layout, self._ordered
        lines = layout.lines
        allowed = tensor_maps_of(self._database).limits
        if self.padded and self.panel != allowed.padded_box:
            message = f"TMA writes padded elements in boxes of {allowed.padded_box}; swizzle {self.swizzle} has panels of {self.panel}"
            raise ValueError(message)
        if self._canonical.swizzled(0, self.base_offset):
            raise ValueError(f"TMA swizzles by absolute addresses: with base_offset = {self.base_offset} no mode of it writes this image")
        dense = outer == lines or getattr(self, layout.group_stride) == lines * mode.bytes
        together = outer if dense else lines  # lines that follow each other without a gap
        box = max(size for size in range(lines, min(together, allowed.largest_box) + 1, lines) if together % size == 0)
        first = self._place(np.arange(0, inner, self.panel), np.arange(0, outer, box)[:, np.newaxis])
        starts = self.start + self._offset(*first)
        if (starts % allowed.alignment).any():
            wrong = starts[starts % allowed.alignment != 0][0]
            raise ValueError(f"TMA writes boxes to multiples of {allowed.alignment} bytes; one of this image would start at {wrong}")
        stored = mode.bytes * box * starts.size
        counted = stored * self.element.bits // self.width
        return TensorMapBox(mode.tma, mode.bytes * 8 // max(self.width, 8), box, starts.size, counted)


def _positions(name: str, value: Any, limit: int) -> Any:
    if getattr(value, "shape", ()) == ():
        return in_range(name, integer(name, value, "an integer or an array of integers"), limit)
    array = elements.as_array(value, name)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {array.dtype}; positions are integers")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < limit:
        raise ValueError(f"{name} reaches from {array.min()} to {array.max()}; allowed: 0..{limit - 1}")
    return array.astype(np.int64)
