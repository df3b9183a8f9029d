"""Spaces in which data lies: their coordinates, addresses and parts, and the layouts of what lies in an on-chip memory."""

from __future__ import annotations

from typing import Annotated, Any

from ptxmma.model.fields import SOME, Condition, Entry, Identifier, Natural, Positive, Source, TargetName, Text
from ptxmma.model.instruction import Statement
from ptxmma.model.tensor_layout import TensorLayout, UnknownPlace

#: The name of the space whose layouts are in ``register_layouts``.
REGISTERS = "registers"


class CoordinateSize(Entry, frozen=True, kw_only=True):
    """The size of a coordinate on some targets, or on all."""

    targets: tuple[TargetName, ...] = ()  # these, and those that include one of them; all that the rows before do not name
    size: Positive  # 512
    source: Source = ""


class Space(Entry, frozen=True, kw_only=True):
    """A space with named coordinates: registers, shared memory, tensor memory."""

    name: Identifier  # "tensor": of an on-chip memory the start of the names of its files and of its functions in C
    title: Text  # "tensor memory"
    of: tuple[Condition, ...] = ()  # the instructions that reach it; none: those that no other memory names
    coordinates: Annotated[dict[Identifier, tuple[CoordinateSize, ...]], SOME]  # the size of each; none: as many as an instruction takes
    address: dict[Identifier, Natural] = {}  # the lowest bit of each part of an address: {"column": 0, "lane": 16}
    address_bits: Natural = 0  # 32; 0: it has no addresses
    partition: dict[Identifier, Positive] = {}  # the part that a warp reaches: {"lane": 32}
    allocation: dict[Identifier, Positive] = {}  # a unit of allocation: {"column": 32}
    notes: tuple[Statement, ...] = ()
    source: Source
    layouts: tuple[TensorLayout, ...] = ()
    unknown: tuple[UnknownPlace, ...] = ()  # operands whose place no source gives

    def most(self, coordinate: str) -> int:
        """The size of a coordinate on the target that has most."""
        return max(one.size for one in self.coordinates[coordinate])

    def least(self, coordinate: str) -> int:
        """The size of a coordinate that every target has."""
        return min(one.size for one in self.coordinates[coordinate])

    @property
    def cell(self) -> int:
        """The bits at the other coordinates."""
        return self.most("bit")

    @property
    def addresses(self) -> range:
        """Every number that an address can be."""
        high = max(self.address, key=lambda name: self.address[name])
        return range(self.most(high) << self.address[high])

    def address_width(self, part: str) -> int:
        """The bits of an address that a part has."""
        low = self.address[part]
        return min([other for other in self.address.values() if other > low], default=self.address_bits) - low

    def address_of(self, **place: Any) -> Any:
        """The address of a place, from the coordinates that addresses have: integers, or arrays that are wide enough."""
        return sum(place[name] << low for name, low in self.address.items())

    def parts(self, address: Any) -> dict[str, Any]:
        """The coordinates that an address has, or an array of addresses."""
        return {name: address >> low & (1 << self.address_width(name)) - 1 for name, low in self.address.items()}

    def layout(self, name: str) -> TensorLayout:
        """The layout of that name."""
        return next(entry for entry in self.layouts if entry.name == name)
