"""Published peaks of the chips that have an instruction."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Instruction
from ptxmma.model import matches


class Peak(NamedTuple):
    """The peak rate of a chip's tensor cores with operands of an instruction's types.

    It is published for the chip; what one instruction reaches may be less.

    Attributes:
        chip: name, e.g. ``"NVIDIA A100 (SXM4)"``.
        target: its name in PTX, e.g. ``"sm_80"``.
        operations: operations of each SM in each clock; a multiplication and an addition count as two, and the zeros of a sparse A count.
        sms: streaming multiprocessors of the chip.
        clock: MHz at which ``published`` holds.
        published: the maker's own number for the whole chip, in 10**12 operations a second.
        source: the document that states it.
    """

    chip: str
    target: str
    operations: int
    sms: int
    clock: int
    published: str
    source: str


def peaks(instruction: Instruction) -> list[Peak]:
    """The published peaks for an instruction, chip by chip; empty where nothing is published."""
    spec = instruction.database.spec
    targets = requirements.targets_of(spec).by_name
    numbers = {targets[name].number for name in instruction.accepted_by()}
    peaks_of_chips = []
    for chip in spec.throughput:
        for rate in chip.rates:
            operations = rate.sparse if instruction.sparse else rate.dense
            if operations and targets[chip.target].number in numbers and matches(rate.of, instruction.variant.facts):
                published = rate.published[-1 if instruction.sparse else 0]
                peaks_of_chips.append(Peak(chip.chip, chip.target, operations, chip.sms, chip.clock, published, chip.source))
    return peaks_of_chips
