"""Scale factors in registers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxmma.arguments import AnyArray, Numbers, in_range
from ptxmma.catalog.operands.operand import Operand
from ptxmma.model import ElementType, Layout

if TYPE_CHECKING:
    import numpy as np

    from ptxmma.arrays.elements import Array


class Scales(Operand, frozen=True, kw_only=True):
    """The scale factors of one multiplicand of a block-scaled instruction (PTX ISA 9.7.14.3).

    ``locate(row, block, byte_id=0, thread_id=0)``, of B ``locate(col, block, …)``, is ``(lane, byte)`` of a scale factor; ids go by name.

    Attributes are as :class:`Operand` has them; ``sizes`` counts ids, too: ``{"row": 16, "block": 2, "byte_id": 2, "thread_id": 2}``,
    of B with ``col``.
    """

    layout: Layout
    element: ElementType

    def __repr__(self) -> str:
        return f"<Scales of {self.matrix}: {self.rows} rows x {self.blocks} blocks of {self.element.name}>"

    @property
    def matrix(self) -> str:
        """The matrix that they scale: ``"a"`` or ``"b"``."""
        return self.of

    @property
    def operand(self) -> str:
        """The name of the operand that carries them: ``"scale-a-data"``."""
        return self.name

    @property
    def line(self) -> str:
        """The axis of the matrix along which scale factors differ: ``"row"`` of A, ``"col"`` of B."""
        return self.axes[0]

    @property
    def rows(self) -> int:
        """Rows of A, columns of B."""
        return self.sizes[self.line]

    @property
    def blocks(self) -> int:
        """Scale factors of each row, along K."""
        return self.sizes["block"]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a matrix of them, as A or B itself lies: (rows, blocks) of A, (blocks, columns) of B."""
        return (self.rows, self.blocks) if self.line == "row" else (self.blocks, self.rows)

    @property
    def byte_ids(self) -> tuple[int, ...]:
        """The legal values of the byte id."""
        return self.selections["byte_id"]

    @property
    def thread_ids(self) -> tuple[int, ...]:
        """The legal values of the thread id."""
        return self.selections["thread_id"]

    @property
    def apart(self) -> tuple[str, ...]:
        """No axes: the ids are selections."""
        return ()

    @functools.cached_property
    def selections(self) -> dict[str, tuple[int, ...]]:
        """The legal ids: ``{"byte_id": (0, 2), "thread_id": (0, 1)}``."""
        return {axis: tuple(n * self.layout.steps.get(axis, 1) for n in range(self.sizes[axis])) for axis in self.layout.apart}

    def _require(self) -> None:
        pass

    def _at(self, point: Mapping[str, Any]) -> tuple[Any, Any]:
        numbered = {name: legal.index(point[name]) for name, legal in self.selections.items()}
        place = self.layout.map.apply({**point, **numbered})
        return place["lane"], place["byte"]

    def coords(self, lane: Numbers, byte: Numbers = 0, *, check: bool = True) -> tuple[Any, ...]:  # type: ignore[override]  # it names its coordinates
        """Return the row and the block of the scale factor in a byte of the register of ``lane``: the inverse of :meth:`locate`.

        The byte and thread id that select this byte follow: ``(row, block, byte_id, thread_id)``.

        Raises:
            TypeError: a number is neither an integer nor an array.
            ValueError: a number is out of range.
        """
        back = self.layout.map.inverse()
        limits = {"lane": (lane, self.layout.threads), "byte": (byte, 1 << back.inputs["byte"])}
        point = back.apply({name: in_range(name, value, limit, check=check) for name, (value, limit) in limits.items()})
        ids = (point[name] * self.layout.steps.get(name, 1) for name in self.selections)
        return (point[self.line], point["block"], *ids)

    def pack(self, scales: AnyArray, byte_id: int = 0, thread_id: int = 0, registers: Any = None) -> Any:  # type: ignore[override]  # it names its data
        """The scale factors of one tile to the registers of all threads; leading dimensions are batches of tiles.

        Args:
            scales: (..., rows, blocks), of B (..., blocks, columns), of the scale type's dtype, or its bits as uint8.
            byte_id: the bytes of the registers that hold them.
            thread_id: the threads that hold them.
            registers: the registers with the other bytes, (..., threads), so that several sets share registers; None: zeros.

        Returns:
            uint32 of shape (..., threads).

        Raises:
            TypeError: an id that is not an integer.
            ValueError: another shape or dtype, a negative scale factor, or an id that is not legal.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import batch_of

        codes = self._codes(scales)
        if codes.shape[-2:] != self.shape:
            raise ValueError(f"scales have shape {codes.shape}; one tile is {batch_of(*self.shape)}: pack_tiles takes larger matrices")
        return elements.like(self._registers_of(codes, byte_id, thread_id, registers), scales)

    def unpack(self, registers: AnyArray, byte_id: int = 0, thread_id: int = 0) -> Any:  # type: ignore[override]  # it names its data
        """Return the scale factors that registers (..., threads) hold, in the shape that :meth:`pack` takes: its inverse.

        Raises:
            TypeError: an id that is not an integer.
            ValueError: another shape or dtype, or an id that is not legal.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import words

        return elements.like(self._tiles_of(words(registers, self.layout.threads), byte_id, thread_id), registers)

    def pack_tiles(self, scales: AnyArray, byte_id: int | None = 0, thread_id: int = 0, registers: Any = None, *, pad: bool = False) -> Any:  # type: ignore[override]  # it names its data
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
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import whole

        codes = whole(self._codes(scales), self.shape, "scales", pad)
        (*batch, height, width), (rows, cols) = codes.shape, self.shape
        tiles = codes.reshape(*batch, height // rows, rows, width // cols, cols).swapaxes(-3, -2)
        if byte_id is not None:
            return elements.like(self._registers_of(tiles, byte_id, thread_id, registers), scales)
        count, along = len(self.byte_ids), tiles.ndim - (3 if self.line == "row" else 4)  # the axis of the K-tiles
        shared = list(tiles.shape)
        shared[along] = -(-shared[along] // count) * count
        tiles = elements.extended(tiles, tuple(shared))
        for number, chosen in enumerate(self.byte_ids):
            every = (slice(None),) * along + (slice(number, None, count),)
            registers = self._registers_of(tiles[every], chosen, thread_id, registers)
        return elements.like(registers, scales)

    def unpack_tiles(self, registers: AnyArray, byte_id: int | None = 0, thread_id: int = 0, shape: Sequence[int] | None = None) -> Any:  # type: ignore[override]  # it names its data
        """Return the scale factors of a whole matrix: the inverse of :meth:`pack_tiles`; ``shape`` is their own, where they were padded.

        Raises:
            TypeError: an id that is not an integer.
            ValueError: as :meth:`unpack`, or a shape that needs another number of tiles.
        """
        import numpy as np

        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import cropped, words

        grid = words(registers, self.layout.threads)
        if grid.ndim < 3:
            axes = f"(..., {self._shape_text(f'/{self.shape[0]}', f'/{self.shape[1]}')}, {self.layout.threads})"
            raise ValueError(f"registers have shape {grid.shape}; a grid of tiles is {axes}")
        ids, after = (byte_id,) if byte_id is not None else self.byte_ids, -3 if self.line == "row" else -4
        each = [self._tiles_of(grid, chosen, thread_id) for chosen in ids]
        tiles = np.stack(each, after)  # after the axis of the K-tiles
        tiles = tiles.reshape(*tiles.shape[: after - 1], -1, *tiles.shape[after + 1 :])
        *batch, down, across, rows, cols = tiles.shape
        matrix = tiles.swapaxes(-3, -2).reshape(*batch, down * rows, across * cols)
        step = (rows, cols * len(ids)) if self.line == "row" else (rows * len(ids), cols)
        return elements.like(cropped(matrix, shape, step, "registers"), registers)

    def _codes(self, scales: Any) -> Array:
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import not_empty

        codes = elements.codes(scales, self.element, "scales")
        if codes.ndim < 2:
            raise ValueError(f"scales have shape {codes.shape}; they are (..., {self._shape_text()})")
        not_empty(codes, "scales")
        return codes

    def _shape_text(self, first: str = "", second: str = "") -> str:
        """The names of the two axes of a matrix of scale factors, each with a suffix."""
        return f"rows{first}, blocks{second}" if self.line == "row" else f"blocks{first}, columns{second}"

    def _turned(self, codes: Array) -> Array:
        """Scale factors as their matrix lies, to (..., rows, blocks), and back."""
        import numpy as np

        return np.ascontiguousarray(codes if self.line == "row" else codes.swapaxes(-1, -2))

    def _word_places(self, byte_id: int, thread_id: int) -> tuple[np.dtype[Any], Array]:
        """The word that is moved in one piece, and the place of each word in the registers of all threads.

        The word is a whole row where its factors lie side by side, else one factor.
        """
        import numpy as np

        from ptxmma.arrays.shapes import REGISTER

        lane, byte = self.locate(np.arange(self.rows)[:, None], np.arange(self.blocks), byte_id=byte_id, thread_id=thread_id)
        places, blocks = lane * REGISTER.itemsize + byte, self.blocks
        together = np.array_equal(places, places[:, :1] + np.arange(blocks)) and not (places[:, 0] % blocks).any()
        return (np.dtype(f"u{blocks}"), places[:, :1] // blocks) if together else (np.dtype(np.uint8), places)

    def _registers_of(self, codes: Array, byte_id: int, thread_id: int, registers: Any) -> Array:
        import numpy as np

        from ptxmma.arrays.shapes import REGISTER, words

        (word, places), threads = self._word_places(byte_id, thread_id), self.layout.threads
        shape = (*codes.shape[:-2], threads)
        if registers is None:
            packed = np.zeros(shape, REGISTER)
        else:
            packed = words(registers, threads).copy()
            if packed.shape != shape:
                raise ValueError(f"registers have shape {packed.shape}; for scales of this shape they are {shape}")
        packed.view(word)[..., places] = self._turned(codes).view(word)
        return packed

    def _tiles_of(self, registers: Array, byte_id: int, thread_id: int) -> Array:
        import numpy as np

        from ptxmma.arrays import elements

        word, places = self._word_places(byte_id, thread_id)
        factors = np.take(registers.view(word), places, axis=-1)
        return elements.typed(self._turned(factors.view(np.uint8)), self.element)
