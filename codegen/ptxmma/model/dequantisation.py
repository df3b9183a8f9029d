"""Dequantisation: narrow codes in a register to pairs of 16-bit numbers, as steps of PTX."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ptxmma.model.fields import SOME, ElementName, Entry, Natural, PtxVersion, Source, TargetName, Text, like

#: One instruction on registers that have names; it ends with a semicolon.
Step = Annotated[
    str,
    like(r"^[a-z0-9_.]+ [a-z0-9_{}, ]+;$", "a PTX instruction on named registers, e.g. lop3.b32 t, codes, 0x000f000f, 0x64006400, 0xea;"),
]


class Steps(Entry, frozen=True, kw_only=True):
    """Instructions that have no loop and touch no memory, and the first PTX ISA version and target that have them.

    A register that no step writes is an input.  ``out0``, ``out1`` … are the results; no input is read after the first of them is written.
    """

    steps: Annotated[tuple[Step, ...], SOME]
    ptx: PtxVersion
    targets: Annotated[tuple[TargetName, ...], SOME]
    text: Text
    source: Source


class Dequantisation(Steps, frozen=True, kw_only=True):
    """The steps from ``codes``, a register full of codes, to registers of two numbers each.

    The order of the codes follows from the steps: each number depends on one code.  Inputs ``zero0`` and ``zero1`` are zero points,
    integers given twice, in the low and in the high half; ``zero0`` is subtracted in the even and ``zero1`` in the odd registers.
    """

    codes: ElementName  # the element type of a code: "u4"
    to: ElementName  # the element type of a number: "f16"
    largest_zero: Annotated[Natural, Meta(description="the largest zero point; 0: none is subtracted")] = 0
    finite: Annotated[bool, Meta(description="exact for finite codes; a NaN or an infinity becomes a number")] = False


class ScaleSteps(Steps, frozen=True, kw_only=True):
    """The steps from ``value``, two numbers, to ``out0``, their products with ``scale``, plus ``offset`` if a step reads it."""

    of: ElementName  # the element type of a number: "f16"
