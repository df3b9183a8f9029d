"""Matrices in shared memory: images, addresses, matrix descriptors and bank conflicts (PTX ISA 9.7.15.5.1.2).

A matrix operand has its rows (A) or columns (B) along x and its depth along k.  Its image in shared memory is an array of bytes,
``uint8``; ``start`` is the shared address of the first.  Element types are named as in PTX (``"bf16"``), majorness is ``"K"`` or
``"MN"``, swizzles are ``"none"``, ``"32B"``, ``"64B"`` and ``"128B"``.

>>> layout = SharedLayout("f16", "K", "128B", x=64, k=128)
>>> layout
<SharedLayout f16 K-major 128B: 64 x 128 in 16384 bytes at 0, lbo 8192, sbo 1024>
>>> [step.start_address for step in layout.steps(16)]
[0, 32, 64, 96, 8192, 8224, 8256, 8288]
>>> layout.tma
TensorMapBox(swizzle='CU_TENSOR_MAP_SWIZZLE_128B', inner=64, outer=64, boxes=2)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxmma.arguments import in_range, integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import cropped, not_empty, whole
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.matrices.canonical import Geometry, aligned, canonical, element_of, extent, memory_of
from ptxmma.matrices.descriptors import Descriptor as Descriptor  # these belong to what this module offers
from ptxmma.matrices.descriptors import base_offset as base_offset
from ptxmma.model import ElementType

_Places = npt.NDArray[np.int64]

#: Bytes that one access of a thread covers: ``ld`` and ``st`` of 8 to 64 bits, ``.v2`` and ``.v4``.
_WIDTHS = (1, 2, 4, 8, 16)


# --- reading through a descriptor -------------------------------------------------------------------------------------------


def read_operand(
    descriptor: Descriptor | int,
    memory: Any,
    element: ElementType | str,
    x: int,
    k: int,
    majorness: str,
    memory_start: int = 0,
    *,
    database: DatabaseLike = None,
) -> Array:
    """The matrix (..., x, k) that an instruction reads through a descriptor, of the element type's dtype.

    Args:
        descriptor: its 64 bits, or the fields.
        memory: an image of shared memory, ``uint8`` (..., size), or ``bytes``, a ``bytearray`` or a ``memoryview``.
        element: type of the elements.
        x: rows of A or columns of B.
        k: depth; for a sparse A the packed one.
        majorness: ``"K"`` or ``"MN"``.
        memory_start: shared address of the first byte of ``memory``, a multiple of the alignment.
        database: where the facts come from; the packaged database by default.

    Raises:
        TypeError: a descriptor, an extent or an address that is no integer.
        ValueError: a descriptor that leaves the memory or is none, memory that is no contiguous array of bytes or has none, a type that
            is unknown or cannot be read with that majorness, an extent below 1.
    """
    if not isinstance(descriptor, Descriptor):
        descriptor = Descriptor.decode(descriptor, database=database)
    facts = memory_of(database)
    canonical(facts, majorness, descriptor.swizzle)
    kind = element_of(element, majorness, database)
    held = _bytes(memory, "memory")
    addresses = operand_addresses(descriptor, x, k, kind, majorness, database=database)
    start = aligned("memory_start", memory_start, facts.alignment)
    size, width = held.shape[-1], elements.bits_dtype(kind).itemsize
    outside = (addresses < start) | (addresses > start + size - width)
    if outside.any():
        raise ValueError(
            f"{descriptor} reads address {addresses[outside][0]} for a {majorness}-major {kind.name} matrix of {x} x {k}; "
            f"the memory holds {start}..{start + size - 1}"
        )
    words = held[..., : size // width * width].view(elements.bits_dtype(kind))
    found = np.take(words, (addresses - start) // width, axis=-1)
    if kind.bits < 8:
        along = np.arange(k) if majorness == "K" else np.arange(x)[:, np.newaxis]
        found = found >> (along * kind.bits % 8).astype(np.uint8) & np.uint8((1 << kind.bits) - 1)
    return elements.typed(found, kind)


def operand_addresses(
    descriptor: Descriptor, x: int, k: int, element: ElementType, majorness: str, *, database: DatabaseLike = None
) -> _Places:
    """Absolute addresses (x, k) of the bytes in which the elements of an operand start, as instructions read them.

    Elements narrower than a byte lie in it from the low bits up.

    Raises:
        ValueError: a field without an encoding, or an unknown majorness.
    """
    descriptor.encode(database=database)
    layout = canonical(memory_of(database), majorness, descriptor.swizzle)
    rows, depth = np.arange(extent("x", x))[:, np.newaxis], np.arange(extent("k", k))
    offsets = layout.offset(rows, depth, element.bits, descriptor.leading_byte_offset, descriptor.stride_byte_offset)
    addresses: _Places = layout.swizzled(descriptor.start_address + offsets, descriptor.base_offset)
    return addresses


def _bytes(memory: Any, what: str) -> npt.NDArray[np.uint8]:
    if isinstance(memory, (bytes, bytearray, memoryview)):
        memory = np.asarray(memoryview(memory))
    array = elements.as_array(memory, what)
    if array.dtype != np.uint8 or not array.ndim:
        raise ValueError(f"{what} must be an array of uint8, not {array.dtype} of shape {array.shape}")
    not_empty(array, what)
    if not array.flags.c_contiguous:
        raise ValueError(f"{what} is not contiguous; pass a copy: numpy.ascontiguousarray({what})")
    return array


# --- images -----------------------------------------------------------------------------------------------------------------


class TensorMapBox(NamedTuple):
    """How TMA writes the image: the tensor map's swizzle and box.

    Tensor maps have no type narrower than a byte.  Theirs is then a map of the packed bytes, and ``inner`` counts those.
    """

    swizzle: str  # "CU_TENSOR_MAP_SWIZZLE_128B"
    inner: int  # elements along the contiguous dimension; bytes, where elements are narrower
    outer: int  # elements along the other
    boxes: int  # boxes of which the image consists


class SharedLayout(Geometry):
    """A whole matrix as one image in shared memory, in a canonical layout; it cannot be changed.

    The dimension that the majorness names is contiguous; it is cut into panels of ``span`` bytes, the swizzle's width.  Inside a panel
    the lines of the other dimension follow each other, in groups (atoms) of 8.  One of ``lbo`` and ``sbo`` leads from panel to panel,
    the other from group to group: which one is which, the canonical layout says.  By default all is dense, which is what TMA boxes
    whose inner extent is the span write.

    Attributes:
        element: the type of the elements.
        majorness: ``"K"`` or ``"MN"``.
        swizzle: name of the swizzle mode.
        x: rows of A or columns of B.
        k: depth; for a sparse A the packed one.
        panel: elements of a panel along the contiguous dimension.
        lbo: leading dimension byte offset.
        sbo: stride dimension byte offset.
        start: shared address of the image.
        base_offset: what the swizzle subtracts: 0, as for TMA, where it follows absolute addresses; :func:`base_offset` of the start
            where the pattern is to start with the image.
        size: bytes of the image.
    """

    def __init__(
        self,
        element: ElementType | str,
        majorness: str,
        swizzle: str,
        x: int,
        k: int,
        *,
        lbo: int | None = None,
        sbo: int | None = None,
        start: int = 0,
        base_offset: int = 0,
        database: DatabaseLike = None,
    ) -> None:
        """The arguments are the attributes above; ``lbo`` and ``sbo`` may be given for padding between groups or panels.

        Raises:
            TypeError: an extent, stride, start or base offset that is no integer.
            ValueError: a type that is unknown or cannot be read with that majorness, extents that do not fill panels and groups or
                lead out of a descriptor's reach, a start or stride that is not aligned, strides with which elements overlap, a base
                offset that a descriptor cannot hold.
        """
        super().__init__(element, majorness, swizzle, x, k, lbo=lbo, sbo=sbo, start=start, base_offset=base_offset, database=database)
        self._units = self._places()

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_units"):  # the last that is set: all else follows from what was given
            raise AttributeError(f"{name} of a SharedLayout cannot be changed; make another layout")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} of a SharedLayout cannot be deleted")

    def __repr__(self) -> str:
        return (
            f"<SharedLayout {self.element.name} {self.majorness}-major {self.swizzle}: {self.x} x {self.k} in {self.size} bytes "
            f"at {self.start}, lbo {self.lbo}, sbo {self.sbo}>"
        )

    def _places(self) -> _Places:
        """Where each 16 bytes of each line lie in the image, counted in 16 bytes: (lines, 16 bytes of a line)."""
        alignment = self._canonical.memory.alignment
        inner, outer = self._ordered
        first = self._place(np.arange(0, inner, self.per_unit), np.arange(outer)[:, np.newaxis])
        addresses = self._canonical.swizzled(self.start + self._offset(*first), self.base_offset)
        places: _Places = (addresses - self.start) // alignment
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

    def store(self, matrix: Any) -> Any:
        """The image, ``uint8`` (..., size), of a matrix (..., x, k) of the type's dtype or its raw bits; bytes of padding are 0.

        Raises:
            ValueError: another shape or dtype, or a matrix without elements.
        """
        codes = elements.codes(matrix, self.element)
        if codes.shape[-2:] != (self.x, self.k):
            raise ValueError(
                f"the matrix has shape {codes.shape}; this layout takes (..., {self.x}, {self.k}): store_tiles takes larger matrices"
            )
        not_empty(codes, "the matrix")
        return elements.like(self._image(codes), matrix)

    def load(self, image: Any) -> Any:
        """The matrix (..., x, k), of the type's dtype, of an image (..., size): the inverse of :meth:`store`.

        Raises:
            ValueError: no contiguous array of bytes, an empty one, or another size.
        """
        return elements.like(elements.typed(self._codes(image, "image", "(..., {})"), self.element), image)

    def store_tiles(self, matrix: Any, *, pad: bool = False) -> Any:
        """The images of all tiles of a whole matrix: (..., X, K) to ``uint8`` (..., X/x, K/k, size).

        Each image is what :meth:`store` gives for its tile: all have the same ``start``.

        Args:
            matrix: as :meth:`store` takes it, X and K multiples of ``x`` and ``k``.
            pad: fill up with zeros to such multiples.

        Raises:
            ValueError: another dtype, a matrix without elements, or sizes that are no multiples without ``pad``.
        """
        codes = elements.codes(matrix, self.element)
        if codes.ndim < 2:
            raise ValueError(f"the matrix has shape {codes.shape}; it takes (..., X, K)")
        not_empty(codes, "the matrix")
        codes = whole(codes, (self.x, self.k), "the matrix", pad)
        *batch, rows, depth = codes.shape
        tiles = codes.reshape(*batch, rows // self.x, self.x, depth // self.k, self.k).swapaxes(-3, -2)
        return elements.like(self._image(tiles), matrix)

    def load_tiles(self, images: Any, shape: Sequence[int] | None = None) -> Any:
        """A whole matrix from the images of its tiles: the inverse of :meth:`store_tiles`.

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
        units = elements.joined(lines, self.element.bits).view(self._unit).reshape(*codes.shape[:-2], self._units.size)
        sources, padding = self._sources
        image = np.take(units, sources, axis=-1)
        image[..., padding] = np.zeros((), self._unit)
        return image.view(np.uint8)

    def _codes(self, image: Any, what: str, wanted: str, least: int = 1) -> Array:
        """Bytes (..., size), checked, to bits of elements (..., x, k)."""
        held = _bytes(image, what)
        if held.shape[-1] != self.size or held.ndim < least:
            raise ValueError(f"{what} of shape {held.shape}: this layout takes {wanted.format(self.size)}")
        units = np.take(held.view(self._unit), self._units, axis=-1)
        lines = elements.split(units.view(elements.bits_dtype(self.element)), self.element.bits)
        return lines if self.majorness == "K" else lines.swapaxes(-1, -2)

    @functools.cached_property
    def _sources(self) -> tuple[_Places, _Places]:
        """Which 16 bytes of the matrix each 16 bytes of the image are, and which ones of the image are padding."""
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
            TypeError: a position or an extent that is no integer.
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
                f"groups {self._canonical.lines} lines: let the sub-tile start or end with them"
            )
        found = Descriptor(
            start_address=self.start + first,
            leading_byte_offset=self.lbo,
            stride_byte_offset=self.sbo,
            base_offset=self.base_offset,
            swizzle=self.swizzle,
        )
        found.encode(database=self._database)
        return found

    def steps(self, k_extent: int, x: int = 0, x_extent: int | None = None) -> list[Descriptor]:
        """The descriptors of the sub-tiles that follow each other along k, each ``k_extent`` deep, rows as in :meth:`descriptor`.

        Raises:
            TypeError: a position or an extent that is no integer.
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
        mode, lines, (inner, outer) = self._canonical.mode, self._canonical.lines, self._ordered
        if self._canonical.swizzled(0, self.base_offset):
            raise ValueError(f"TMA swizzles by absolute addresses: with base_offset = {self.base_offset} no mode of it writes this image")
        allowed = self._canonical.memory.tensor_map
        dense = outer == lines or self._offset(*self._place(0, lines)) == lines * mode.bytes
        together = outer if dense else lines  # lines that follow each other without a gap
        box = max(size for size in range(lines, min(together, allowed.largest_box) + 1, lines) if together % size == 0)
        first = self._place(np.arange(0, inner, self.panel), np.arange(0, outer, box)[:, np.newaxis])
        starts = self.start + self._offset(*first)
        if (starts % allowed.alignment).any():
            wrong = starts[starts % allowed.alignment != 0][0]
            raise ValueError(f"TMA writes boxes to multiples of {allowed.alignment} bytes; one of this image would start at {wrong}")
        return TensorMapBox(mode.tma, mode.bytes * 8 // max(self.element.bits, 8), box, starts.size)


def _positions(name: str, value: Any, limit: int) -> Any:
    if getattr(value, "shape", ()) == ():
        return in_range(name, integer(name, value, "an integer or an array of integers"), limit)
    array = elements.as_array(value, name)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {array.dtype}; positions are integers")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < limit:
        raise ValueError(f"{name} reaches from {array.min()} to {array.max()}; allowed: 0..{limit - 1}")
    return array.astype(np.int64)


# --- bank conflicts ---------------------------------------------------------------------------------------------------------


class BankConflicts(NamedTuple):
    """What an access of a warp costs; integers for one access, arrays for many."""

    wavefronts: Any  # cycles in which the banks serve it
    least: int  # without conflicts and with all lanes: one for each part of the warp that is served together
    words: Array  # (..., least, banks): different words that each part asks of each bank


def bank_conflicts(addresses: Any, width: int = 4, active: Any = None, *, database: DatabaseLike = None) -> BankConflicts:
    """How many wavefronts shared memory needs for an access of a warp.

    Each bank serves one word at a time; lanes that ask for the same word, or for bytes of it, are served together.  Of accesses of 8
    bytes half a warp is served at a time, of 16 bytes a quarter.  Each part costs as many wavefronts as its busiest bank has different
    words.

    Args:
        addresses: of the first byte that each lane accesses, (..., 32): lane after lane.
        width: bytes that each lane accesses: 1, 2, 4, 8 or 16.
        active: which lanes take part, bool (32,) or of the shape of ``addresses``; all by default.  What is given for the others is
            ignored.
        database: where the facts come from; the packaged database by default.

    Raises:
        TypeError: a width that is no integer.
        ValueError: another width or shape, no integers, an empty array, a negative or unaligned address.

    >>> import numpy as np
    >>> bank_conflicts(np.arange(32) * 128).wavefronts, bank_conflicts(np.arange(32) * 16, width=16).wavefronts
    (32, 4)
    """
    banks, lanes = memory_of(database).banks, catalog(database).database.spec.scopes["warp"]
    if integer("width", width) not in _WIDTHS:
        raise ValueError(f"width = {width}; a lane accesses {', '.join(map(str, _WIDTHS))} bytes")
    held = elements.as_array(addresses, "addresses")
    if held.dtype.kind not in "iu" or held.shape[-1:] != (lanes,):
        raise ValueError(f"addresses must be integers of shape (..., {lanes}), not {held.dtype} of shape {held.shape}")
    not_empty(held, "addresses")
    asking = _active(active, held.shape)
    wrong = asking & ((held < 0) | (held % width != 0))
    if wrong.any():
        raise ValueError(f"address {held[wrong][0]} of lane {int(np.argwhere(wrong)[0, -1])} is not a multiple of {width}, 0 or more")

    least = -(-width // banks.bytes)
    words = np.where(asking, held // banks.bytes, 0).astype(np.int64)[..., np.newaxis] + np.arange(least)
    words[~asking] = -1
    words = np.sort(words.reshape(*held.shape[:-1], least, lanes), axis=-1)
    different = words >= 0
    different[..., 1:] &= words[..., 1:] != words[..., :-1]
    parts = np.arange(words.size // lanes).reshape(*words.shape[:-1], 1)
    asked = np.bincount((parts * banks.count + words % banks.count)[different], minlength=parts.size * banks.count)
    asked = asked.reshape(*words.shape[:-1], banks.count)
    wavefronts = asked.max(axis=-1).sum(axis=-1)
    return BankConflicts(wavefronts if wavefronts.ndim else int(wavefronts), least, asked)


def _active(active: Any, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Which lanes take part, in the shape of the addresses."""
    if active is None:
        return np.ones(shape, np.bool_)
    held = elements.as_array(active, "active")
    if held.dtype != np.bool_ or held.shape not in (shape, shape[-1:]):
        raise ValueError(f"active must be bool of shape {shape} or {shape[-1:]}, not {held.dtype} of shape {held.shape}")
    return np.broadcast_to(held, shape)
