"""Where the scale factors of a block-scaled instruction are, and matrices of them in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxmma.arguments import in_range, integer
from ptxmma.model import ElementType, Layout


class Scales:
    """The scale factors of one multiplicand of a block-scaled instruction (PTX ISA 9.7.14.3).

    Attributes:
        matrix: ``"a"`` or ``"b"``.
        line: ``"row"`` or ``"col"``: what of the matrix has scale factors of its own.
        operand: the operand that carries them: ``"scale-a-data"``.
        element: the spec's entry of their type.
        rows: rows of A, columns of B.
        blocks: scale factors of each row, along K.
        shape: of a matrix of them, as A or B itself lies: (rows, blocks) of A, (blocks, columns) of B.
        byte_ids, thread_ids: the legal values of these immediates.
    """

    def __init__(self, layout: Layout, matrix: str, element: ElementType, operand: str) -> None:
        self.layout = layout
        self.matrix, self.operand, self.element = matrix, operand, element
        self.line, *_ = layout.axes  # "row" of A, "col" of B
        self.rows, self.blocks = layout.axes[self.line], layout.axes["block"]
        self.shape = (self.rows, self.blocks) if self.line == "row" else (self.blocks, self.rows)
        self.byte_ids, self.thread_ids = (
            tuple(number * layout.steps.get(axis, 1) for number in range(layout.axes[axis])) for axis in ("byte_id", "thread_id")
        )

    def __repr__(self) -> str:
        return f"<Scales of {self.matrix}: {self.rows} rows x {self.blocks} blocks of {self.element.name}>"

    def locate(self, row: Any, block: Any, *, byte_id: int = 0, thread_id: int = 0, check: bool = True) -> tuple[Any, Any]:
        """``(lane, byte)`` of the scale factor of ``block`` of ``row`` (of B: of a column); integers or arrays.

        ``check=False`` leaves the range of arrays unchecked.

        Raises:
            TypeError: something that is neither an integer nor an array, or an id that is not an integer.
            ValueError: a number out of range, or an id that is not legal.
        """
        limits = ((self.line, row, self.rows), ("block", block, self.blocks))
        place = {name: in_range(name, value, limit, check=check) for name, value, limit in limits}
        for name, value, legal in (("byte_id", byte_id, self.byte_ids), ("thread_id", thread_id, self.thread_ids)):
            chosen = integer(name, value)
            if chosen not in legal:
                raise ValueError(f"{name} = {chosen} is not legal: {', '.join(map(str, legal))}")
            place[name] = legal.index(chosen)
        register = self.layout.map.apply(place)
        return register["lane"], register["byte"]

    def pack(self, scales: Any, byte_id: int = 0, thread_id: int = 0, registers: Any = None) -> Any:
        """The scale factors of one tile to the registers of all threads; leading dimensions are batches of tiles.

        Args:
            scales: (..., rows, blocks), of B (..., blocks, columns), of the scale type's dtype, or its bits as uint8.
            byte_id: which bytes of the registers hold them.
            thread_id: which threads hold them.
            registers: what the other bytes hold, (..., threads), so that several sets share registers; None: zeros.

        Returns:
            uint32 of shape (..., threads).

        Raises:
            TypeError: an id that is not an integer.
            ValueError: another shape or dtype, a negative scale factor, or an id that is not legal.
        """
        from ptxmma.catalog.registers import scale_words as packing

        return packing.pack(self, scales, byte_id, thread_id, registers)

    def unpack(self, registers: Any, byte_id: int = 0, thread_id: int = 0) -> Any:
        """The scale factors that registers (..., threads) hold, in the shape that :meth:`pack` takes: its inverse.

        Raises:
            TypeError: an id that is not an integer.
            ValueError: another shape or dtype, or an id that is not legal.
        """
        from ptxmma.catalog.registers import scale_words as packing

        return packing.unpack(self, registers, byte_id, thread_id)

    def pack_tiles(self, scales: Any, byte_id: int | None = 0, thread_id: int = 0, registers: Any = None, *, pad: bool = False) -> Any:
        """The scale factors of a whole matrix to the registers of each of its tiles.

        Args:
            scales: (..., R, blocks along K), of B (..., blocks along K, C), of the types that :meth:`pack` takes.
            byte_id: as in :meth:`pack`; then every tile has registers of its own.  With None, as many K-tiles as there are byte ids share
                each register: an instruction reads K-tile ``t`` with register ``t // len(byte_ids)`` and byte id
                ``byte_ids[t % len(byte_ids)]``.
            thread_id: as in :meth:`pack`.
            registers: as in :meth:`pack`.
            pad: fill up with zero bits to whole tiles.

        Returns:
            uint32 of shape (..., R/rows, K-tiles, threads), of B (..., K-tiles, C/columns, threads): in the order of the matrix's tiles.
            Where K-tiles share registers, K-tiles / len(byte_ids), rounded up.

        Raises:
            TypeError: a thread id that is not an integer, or a byte id that is neither an integer nor None.
            ValueError: as :meth:`pack`, or sizes that are not multiples of a tile's without ``pad``.
        """
        from ptxmma.catalog.registers import scale_words as packing

        return packing.pack_tiles(self, scales, byte_id, thread_id, registers, pad=pad)

    def unpack_tiles(self, registers: Any, byte_id: int | None = 0, thread_id: int = 0, shape: Sequence[int] | None = None) -> Any:
        """The scale factors of a whole matrix: the inverse of :meth:`pack_tiles`; ``shape`` is their own, where they were padded.

        Raises:
            TypeError: an id that is not an integer.
            ValueError: as :meth:`unpack`, or a shape that needs another number of tiles.
        """
        from ptxmma.catalog.registers import scale_words as packing

        return packing.unpack_tiles(self, registers, byte_id, thread_id, shape)
