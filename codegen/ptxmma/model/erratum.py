"""Places where the manual contradicts itself, an assembler or a chip."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ptxmma.model.fields import SOME, Condition, CudaRelease, Entry, FamilyName, Name, Positive, Source, TargetName, Text


class Quirk(Entry, frozen=True, kw_only=True):
    """A rule: what a tool accepts or refuses as an operand, contrary to the manual.

    Conditions see the facts of the variant and of the operand: its kind (``operand``), ``access``, the ``matrix`` that it holds or
    describes, and ``takes``, which is ``"any"`` where it takes every register of 32 bits.  Of several rules that hold, the last one counts.
    """

    tool: Name  # "ptxas"
    since: CudaRelease  # the first release that does so: "12.8"
    until: CudaRelease = ""  # the last one: "13.0"; empty where the newest does so, too
    lowest: TargetName = ""  # targets from this one's number on: "sm_100"
    highest: TargetName = ""  # targets up to this one's number
    when: tuple[Condition, ...] = ()
    registers: Annotated[tuple[str, ...], SOME] = ()  # types, "_" in a list, "{}" around a register; empty: the own types
    count: Positive = 0  # registers in a list; 0: as many as the operand has
    bare: bool = False  # the register of an address, without brackets
    constants: bool = False  # integers instead of registers: those from `least` to `most`
    least: int | None = None
    most: int | None = None
    multiple: Positive = 1  # constants: those that are multiples of it
    accepted: bool
    generates: bool = False  # constants: every release that accepts them generates code for them, too


class Overwriting(Entry, frozen=True, kw_only=True):
    """A bug of a tool: of the instructions that it makes of one, some write registers of D that others still read as C.

    The code is wrong where a register of D is a later one of C: the results are written in the order of the list.
    """

    tool: Name  # "ptxas"
    since: CudaRelease  # the first release that does so: "12.4"
    until: CudaRelease = ""  # the last one; empty where the newest does so, too
    lowest: TargetName  # targets from this one's number on: "sm_90"
    highest: TargetName  # targets up to this one's number
    when: tuple[Condition, ...]


#: The fate of code that follows the manual: it computes something else, an assembler refuses it, nothing happens since assemblers accept
#: more than the manual has, or nothing happens since only the text is wrong.
Bite = Literal["wrong data", "refused", "accepted", "misprint"]


class Erratum(Entry, frozen=True, kw_only=True):
    """A place where the manual contradicts itself, the assembler or the chip."""

    id: Name  # "f64-k16-a-col"
    section: Source
    says: Text
    holds: Text
    known: Text  # the evidence, in words
    family: FamilyName = ""
    when: Annotated[tuple[Condition, ...], Meta(description="the variants of the family that it concerns; all where it is absent")] = ()
    bites: Annotated[Bite, Meta(description="what becomes of code that follows the manual")]
    rules: tuple[Quirk, ...] = ()  # rules that a checker applies
    overwriting: tuple[Overwriting, ...] = ()  # instructions for which an assembler generates wrong code
    unsettled: Annotated[
        tuple[Condition, ...],
        Meta(description="products on which the sources disagree, by their opcodes and the fields of their descriptors"),
    ] = ()
    textual: Annotated[bool, Meta(description="the manual against itself or against arithmetic: no tool takes part")] = False

    def __post_init__(self) -> None:
        """Rules say what a tool does."""
        if self.textual and (self.rules or self.overwriting):
            raise ValueError("rules and overwriting say what a tool does; a textual erratum has neither")
