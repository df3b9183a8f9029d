"""Registers of tcgen05.ld and tcgen05.st as peers fill them, and the comparison with ours, element by element."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma.model import Layout
from ptxmma_proof.peers.tensor_cases import LANE_BITS, Values, text

#: The operand of the registers, for the differences.
OPERAND = "registers of a load or store"
_LANES, _CELL = 32, 32


class Load(NamedTuple):
    """The registers of an instruction as a peer fills them.

    Attributes:
        peer: ``"CuTe"`` or ``"Triton"``.
        subject: the peer's definition.
        opcode: the instruction.
        split: the columns from the first access to the second, of shapes with two.
        places: the places of each lane's elements, (lanes, elements): lane * 2**21 + column * 32 + bit, from the instruction's address.
    """

    peer: str
    subject: str
    opcode: str
    split: int
    places: Values


class Loaded(NamedTuple):
    """The comparison of a load: our layout, and where the first element differs in both words; ``wrong`` of ``of`` elements differ."""

    load: Load
    layout: Layout
    theirs: str
    ours: str
    wrong: int
    of: int


def compare(catalog: Catalog, loads: Iterable[Load]) -> list[Loaded]:
    """Compare peers' registers with a catalog.

    Raises:
        UnknownInstruction: the database lacks an instruction of a peer.
    """
    return [_compared(catalog, load) for load in loads]


def _compared(catalog: Catalog, load: Load) -> Loaded:
    layout, own = ours(catalog, load.opcode, load.split)
    if own.shape != load.places.shape:
        said = tuple(f"{each.shape[1]} elements in each of {each.shape[0]} threads" for each in (load.places, own))
        return Loaded(load, layout, said[0], said[1], load.places.size, load.places.size)
    wrong = np.argwhere(own != load.places)
    said = ("", "")
    if len(wrong):
        at = tuple(wrong[0])
        said = tuple(f"thread {at[0]}, element {at[1]}: {text(int(each[at]), _CELL)}" for each in (load.places, own))
    return Loaded(load, layout, said[0], said[1], len(wrong), load.places.size)


def ours(catalog: Catalog, opcode: str, split: int) -> tuple[Layout, Values]:
    """Return our layout of an instruction's registers, and the places of each lane's elements as in :class:`Load`.

    Raises:
        UnknownInstruction: the database lacks the instruction.
    """
    registers = next(operand for operand in catalog.find(opcode).forms[0].operands if operand.layout is not None)
    assert registers.layout is not None
    lanes, elements = np.arange(_LANES)[:, np.newaxis], np.arange(registers.elements)
    axes = dict(zip(registers.axes, registers.coords(lanes, elements), strict=True))
    column = axes["col"] + split * axes.get("access", 0)
    return registers.layout, (np.asarray(axes["row"]) << LANE_BITS) + np.asarray(column) * _CELL + 0 * (lanes + elements)
