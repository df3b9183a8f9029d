"""An operand in tensor memory as tcgen05.ld and tcgen05.st reach it: which register of which thread takes which of its elements.

The loads tile the operand: each warp of a warpgroup has 32 lanes, and a load takes the 16 or 32 lanes and the columns of its shape.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ptxmma.arguments import in_range, integer
from ptxmma.catalog.operands.held import PLANE, Held
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.model import COPY, Space, formula
from ptxmma.model.digit_map import Digit, DigitMap
from ptxmma.model.digits import NotDigitsError


class RegisterPlace(NamedTuple):
    """The place of an element after a load from tensor memory, or before a store.

    Attributes:
        cta: the CTA of a pair: its ``%cluster_ctarank`` modulo 2; 0 without a pair.
        warp: 0..3: ``%warpid % 4`` of the warp that executes the instruction.
        lane: 0..31: the thread of that warp.
        register: its number in the list of the instruction.
        bit: lowest bit of the element in that register.
        address: the ``taddr`` of the instruction.
    """

    cta: Any
    warp: Any
    lane: Any
    register: Any
    bit: Any
    address: Any


def first_lanes(memory: Space, registers: Operand) -> range:
    """The lanes of tensor memory at which a load or store may start: it takes all lanes of a warp, or half of them."""
    return range(0, memory.most("lane"), registers.sizes["row"])


class TensorFragment(msgspec.Struct, frozen=True):
    """The elements of an operand in tensor memory, in the registers of a load or store; see :meth:`ptxmma.TensorOperand.through`.

    Attributes:
        places: the operand's layout in tensor memory.
        registers: the fragment of the load or store.
    """

    places: TensorPlaces
    registers: Operand

    def __post_init__(self) -> None:
        """Check that the registers take the operand.

        Raises:
            ValueError: the shape has two accesses, or packs columns of which the operand uses more than the lower half.
        """
        registers = self.registers
        if registers.axes != ("row", "col"):
            raise ValueError("a shape of two accesses has columns that immHalfSplitoff chooses; take another one")
        if registers.bits < self.places.memory.cell and "bit" in self.places.layout.at:
            raise ValueError(
                f"{self.places.layout.title} fills whole cells; with .pack::16b and .unpack::16b a register has lower halves only"
            )
        if registers.bits < (width := self.places.numbers.get("bits", self.places.unit)):
            raise ValueError(
                f"its elements have {width} bits; .pack::16b and .unpack::16b move the lower {registers.bits} bits of each column: "
                f"take the instruction without them"
            )

    def locate(self, *coordinates: Any, base: Any = 0, **named: Any) -> RegisterPlace:
        """The register of an element of the operand whose address is ``base``; coordinates as :meth:`ptxmma.TensorOperand.locate` has them.

        >>> import ptxmma
        >>> product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=256, dtype="f32", atype="bf16", btype="bf16")
        >>> load = ptxmma.instruction("tcgen05.ld.sync.aligned.32x32b.x32.b32")
        >>> product.operand("d-tmem").through(load).locate(37, 200, base=64)
        RegisterPlace(cta=0, warp=1, lane=5, register=8, bit=0, address=2097408)

        Raises:
            TypeError: a coordinate is neither an integer nor an array, missing, unknown or given twice.
            ValueError: a number is out of range, or the operand cannot start at ``base``.
        """
        # Not the inverse of `elements`: the lane and the column of the base choose the load, and loads may take more than the operand.
        place = self.places.locate(*coordinates, **named)
        registers, memory = self.registers, self.places.memory
        first = self.places.start(base)
        lane, column = first.lane + place.lane, first.column + place.column
        row, col = lane % registers.rows, place.column % registers.cols
        thread, element = registers.locate(row, col)
        register, part = element // registers.elements_per_register, element % registers.elements_per_register
        address = memory.address_of(lane=lane - row, column=column - col)
        return RegisterPlace(place.cta, lane // memory.partition["lane"], thread, register, place.bit + part * registers.bits, address)

    def coords(
        self, address: Any, lane: Any, register: Any, bit: Any = 0, *, base: Any = 0, cta: Any = 0, **selections: int
    ) -> tuple[Any, ...]:
        """The element at a bit of a register of thread ``lane``, where ``address`` is the ``taddr`` of the instruction: the inverse of
        :meth:`locate`, a number for each of the operand's sizes.

        Raises:
            TypeError: an unknown selection.
            ValueError: a number is out of range, nothing of the operand lies there, or it cannot start at ``base``.
        """  # noqa: D205  # one sentence
        registers, start, first = self.registers, self.places.memory.parts(address), self.places.start(base)
        register = in_range("register", register, registers.registers)
        part, inside = bit // registers.bits, bit % registers.bits
        row, col = registers.coords(lane, register * registers.elements_per_register + part)
        return self.places.coords(start["lane"] + row - first.lane, start["column"] + col - first.column, inside, cta, **selections)

    def addresses(self, warp: int, base: int = 0) -> tuple[int, ...]:
        """The ``taddr`` of each load of a warp, 0..3, that together take the operand; its columns first.

        Raises:
            TypeError: a number is not an integer.
            ValueError: ``warp`` is out of range, or the operand cannot start at ``base``.
        """
        start, memory = integer("base", base), self.places.memory
        self.places.start(start)
        first = in_range("warp", warp, memory.most("lane") // memory.partition["lane"]) * memory.partition["lane"]
        columns = range(0, self.places.columns, self.registers.cols)
        return tuple(start + memory.address_of(lane=first + lane, column=column) for lane in self._lanes() for column in columns)

    def to_triton(self) -> dict[str, list[list[int]]]:
        """Triton's bases of the operand in registers: ``register`` counts elements through the loads of a warp, in the order of
        :meth:`addresses`; ``lane``, ``warp``, and ``block`` for a pair of CTAs.

        Raises:
            ValueError: a size is not a power of two, or the loads take more than the operand.
        """  # noqa: D205  # one sentence
        columns, each = self.places.columns, self.registers.cols
        if columns % each or any(size & size - 1 for size in (*self.places.sizes.values(), columns)):
            raise ValueError(f"{columns} columns in loads of {each}: Triton's linear layouts need powers of two")
        return self.elements().bases(*self.places.sizes)

    def elements(self) -> DigitMap:
        """The element at each place in registers: the loads of all warps, composed with the layout of the operand.

        ``register`` counts elements through the loads of a warp, in the order of :meth:`addresses`; ``lane``, ``warp``, and ``block`` for
        a pair of CTAs.

        Raises:
            ValueError: the loads take more than the operand.
        """
        return self._cells().compose(self.places.digits(dict.fromkeys(self.places.selections, 0)).inverse())

    def held(self) -> Held:
        """Return its elements as threads hold them: registers lead to cells, and cells to elements.

        Loads whose number is not a power of two are several tiles.

        Raises:
            ValueError: the loads take more than the operand.
        """
        registers, places = self.registers, self.places
        if places.columns % registers.cols:
            raise ValueError(
                f"loads of {registers.cols} columns take more than the operand, which has {places.columns}; "
                f"take a shape of {places.columns & -places.columns} or fewer"
            )
        cells, loads = self._cells(), places.columns // registers.cols
        if (beside := loads & -loads) != loads:
            cells = cells.restrict(register=cells.axes["register"] // (loads * len(self._lanes())) * beside)
        try:
            elements = cells.rename(register="i", block="cta").compose(places.whole_cells().inverse())
        except NotDigitsError:
            raise ValueError(
                f"nothing of the operand lies in some cells of a load; take a shape of fewer lanes or columns: "
                f"its layout is {places.layout.title}"
            ) from None
        along = [axis for axis, size in places.layout.axes.items() if "k" in formula.names(formula.parse(size))]
        unit = min(places.unit, registers.bits)
        return Held(
            name=registers.name,
            layout=places.layout.title,
            type="",
            bits=unit,
            per_register=registers.bits // unit * registers.elements_per_register,
            elements=elements,
            called=self._called(),
            ordered=along[0] if along and places.numbers["ratio"] == 1 else "",
            summed=True,
        )

    def _called(self) -> dict[str, str]:
        """The axes by common names: blocks of A or chunks are columns of a matrix, blocks of B rows, and copies have no axis."""
        axes = self.places.axes
        lacking, other = ([name for name in one if name not in two] for one, two in ((PLANE, axes), (axes, PLANE)))
        called = {axis: axis for axis in axes} | dict.fromkeys(self.places.apart, COPY)
        return called | (dict(zip(other, lacking, strict=True)) if len(other) == len(lacking) else {})

    def _cells(self) -> DigitMap:
        """The cell and the bit that each place in registers takes."""
        registers, memory, unit = self.registers, self.places.memory, min(self.places.unit, self.registers.bits)
        held = registers.fragment().to_axes.to_digits().restrict(i=registers.elements).rename(i="register", row="lane", col="column")
        inside, lanes, loads = registers.bits // unit, self._lanes(), self.places.columns // registers.cols
        count = inside * registers.elements
        warps = memory.most("lane") // memory.partition["lane"]
        digits = [
            Digit("register", 1, inside, "bit", unit),
            *(digit._replace(step=digit.step * inside) for digit in held.of_axis("register")),
            Digit("register", count, loads, "column", registers.cols),
            Digit("register", count * loads, len(lanes), "lane", registers.sizes["row"]),
            *held.of_axis("lane"),
            Digit("warp", 1, warps, "lane", memory.partition["lane"]),
        ]
        axes = {"register": count * loads * len(lanes), "lane": held.axes["lane"], "warp": warps}
        if (ctas := self.places.numbers["ctas"]) > 1:
            digits.append(Digit("block", 1, ctas, "cta", 1))
            axes["block"] = ctas
        return DigitMap.made(axes, memory.coordinates, digits)

    def _lanes(self) -> list[int]:
        """The lanes of a warp, counted from its first, at which its loads begin."""
        every = first_lanes(self.places.memory, self.registers)
        return [lane for lane in every if lane < self.places.memory.partition["lane"] and self._used(lane)]

    def _used(self, lane: int) -> bool:
        try:
            self.places.coords(lane, 0)
        except ValueError:
            return False
        return True
