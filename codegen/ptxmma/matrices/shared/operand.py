"""An operand of an instruction as an image in shared memory, its matrices as they lie in the product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.matrices.product_operands import described
from ptxmma.matrices.shared.image import SharedLayout
from ptxmma.matrices.shared.readable_types import memory_of


class SharedOperand(SharedLayout):
    """The image of A or B that an instruction reads through a descriptor.

    A :class:`SharedLayout`, padded where the instruction reads padding.  It also takes matrices as :meth:`ptxmma.Operand.pack` does: A
    (m, k), B (k, n).  Positions of :meth:`~SharedLayout.address` and :meth:`~SharedLayout.descriptor` stay ``x`` (row of A,
    column of B) and ``k``.

    Attributes:
        shape: rows and columns of the matrix: (x, k) of A, (k, x) of B.
    """

    shape: tuple[int, int]

    def __init__(
        self, instruction: Instruction, operand: str, majorness: str, swizzle: str, x: int | None, k: int | None, **places: Any
    ) -> None:
        matrices = described(instruction)
        letter, chosen = next(((letter, each) for letter, each in matrices.items() if each.name == operand), ("", None))
        if chosen is None:
            raise Missing(f"{instruction.canonical} takes no descriptor of {operand!r}{'' if matrices else ', or states no shape'}")
        lines, depth = chosen.lines if x is None else x, chosen.depth if k is None else k
        alignment = memory_of(instruction.database).alignment
        if not chosen.padded and alignment * 8 % chosen.element.bits:
            what = f"{chosen.element.name} without padding"
            raise ValueError(f"no source says how {what} lies in a tile: {alignment} bytes hold no whole number of elements")
        self._turned = letter == "b"
        self.shape = (depth, lines) if self._turned else (lines, depth)
        places |= {"padded": chosen.padded, "family": instruction.variant.instruction.family, "database": instruction.database}
        super().__init__(chosen.element, majorness, swizzle, lines, depth, **places)

    def _key(self) -> tuple[object, ...]:
        """The key of a :class:`SharedLayout`, and which of the two matrices it is."""
        return (*super()._key(), self._turned)

    def store(self, matrix: Any) -> Any:
        """The image, ``uint8`` (..., size), of a matrix ``(..., *shape)`` of the type's dtype or its raw bits; bytes of padding are 0.

        Raises:
            ValueError: another shape or dtype, or a matrix without elements.
        """
        array = elements.as_array(matrix)
        if array.shape[-2:] != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise ValueError(f"the matrix has shape {array.shape}; this operand takes (..., {wanted}): store_tiles takes larger matrices")
        return elements.like(self.store_xk(self._swapped(array)), matrix)

    def load(self, image: Any) -> Any:
        """The matrix ``(..., *shape)``, of the type's dtype, of an image (..., size): the inverse of :meth:`store`.

        Raises:
            ValueError: no contiguous array of bytes, an empty one, or another size.
        """
        return self._swapped(self.load_xk(image))

    def store_tiles(self, matrix: Any, *, pad: bool = False) -> Any:
        """The images of all tiles of a whole matrix (..., R, C), in the order of its tiles: ``uint8`` (..., R/rows, C/cols, size).

        Args:
            matrix: as :meth:`store` takes it, R and C multiples of ``shape``.
            pad: fill up with zeros to such multiples.

        Raises:
            ValueError: another dtype, a matrix without elements, or sizes that are not multiples without ``pad``.
        """
        array = elements.as_array(matrix)
        if array.ndim < 2:
            raise ValueError(f"the matrix has shape {array.shape}; it has rows and columns")
        return elements.like(self._swapped(self.store_tiles_xk(self._swapped(array), pad=pad), -3), matrix)

    def load_tiles(self, images: Any, shape: Sequence[int] | None = None) -> Any:
        """A whole matrix from the images of its tiles: the inverse of :meth:`store_tiles`.

        Args:
            images: (..., R/rows, C/cols, size).
            shape: the matrix's own, where it was padded: all of it, or (R, C).

        Raises:
            ValueError: no contiguous array of bytes, an empty one, another size, or a shape that needs another number of tiles.
        """
        array = elements.as_array(images, "images")
        if array.ndim < 3:
            raise ValueError(f"images of shape {array.shape}: this operand takes (..., R/rows, C/cols, {self.size})")
        turned = shape if shape is None or not self._turned else (*shape[:-2], *reversed(shape[-2:]))
        contiguous = np.ascontiguousarray(self._swapped(array, -3))
        return elements.like(self._swapped(self.load_tiles_xk(contiguous, turned)), images)

    def _swapped(self, array: Any, first: int = -2) -> Any:
        """The array with the two axes from ``first`` on swapped, of B; itself of A."""
        return array.swapaxes(first, first + 1) if self._turned else array


def of(
    instruction: Instruction,
    operand: str,
    swizzle: str,
    majorness: str = "K",
    *,
    x: int | None = None,
    k: int | None = None,
    lbo: int | None = None,
    sbo: int | None = None,
    start: int = 0,
    base_offset: int = 0,
) -> SharedOperand:
    """The image of an operand, whose matrices lie as :meth:`ptxmma.Operand.pack` takes them: A (m, k), B (k, n).

    Args:
        instruction: one that reads the operand through a descriptor; of ``tcgen05.mma`` with its shape and types.
        operand: ``"a"`` or ``"b"``.
        swizzle: as of :class:`SharedLayout`.
        majorness: as of :class:`SharedLayout`.
        x: rows of A or columns of B; the number of the instruction by default, of one thread block where it spans two.
        k: depth, of a sparse A the packed one; the depth of the instruction by default.
        lbo: as of :class:`SharedLayout`.
        sbo: as of :class:`SharedLayout`.
        start: as of :class:`SharedLayout`.
        base_offset: as of :class:`SharedLayout`.

    Raises:
        Missing: the instruction takes no descriptor of that operand.
        TypeError, ValueError: as :class:`SharedLayout`; a matrix of types of 6 bits without padding, which no source lays out.
    """
    return SharedOperand(instruction, operand, majorness, swizzle, x, k, lbo=lbo, sbo=sbo, start=start, base_offset=base_offset)
