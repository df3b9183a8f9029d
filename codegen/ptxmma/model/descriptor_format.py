"""Descriptors: the numbers of 32 or 64 bits that instructions read, as fields."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ptxmma.model.fields import SOME, Binary, Condition, Entry, Formula, Identifier, Name, Natural, Positive, Source, TargetName, Text, like
from ptxmma.model.instruction import Statement

_Bit = Annotated[int, Meta(ge=0, le=63)]


class FieldCase(Entry, frozen=True, kw_only=True):
    """The legal values of a field where ``when`` holds."""

    when: tuple[Condition, ...] = ()  # conditions on the kind and on other fields: {kind: "kind::f16", sparse: 0}
    values: dict[
        Annotated[str, like(r"^[A-Za-z0-9_]+$", "a value")], Natural
    ] = {}  # values, each with the number in the field; any number if empty
    below: Natural = 0  # the first number that is too large, where any number is legal; 0: all that fit are legal
    targets: Annotated[tuple[TargetName, ...], SOME] = ()  # these targets and all that include one of them; all targets if empty
    source: Source = ""

    def __post_init__(self) -> None:
        """A bound is of numbers."""
        if self.values and self.below:
            raise ValueError("values list what is legal: leave below out")

    def admits(self, number: int, value: int) -> bool:
        """Return whether a field may hold a number, which means a value."""
        return number in self.values.values() if self.values else not self.below or value < self.below


class DescriptorField(Entry, frozen=True, kw_only=True):
    """A field of a descriptor."""

    name: Identifier  # "start_address"
    title: Text
    low: _Bit  # lowest bit
    width: Annotated[int, Meta(ge=1, le=64)]
    upper: int | None = None  # one more bit, the highest of the value, where it lies apart from the others
    shift: Natural = 0  # the field holds value >> shift
    less: Natural = 0  # the field holds value - less
    unit: Literal["", "bytes", "columns", "lanes"] = ""
    default: int | None = None  # the number that the field holds unless the user gives another
    fixed: int | None = None  # the only number that the field holds
    cases: tuple[FieldCase, ...] = ()  # the legal values; where none of several cases applies, the field is 0
    source: Source

    def __post_init__(self) -> None:
        """A field that always holds one number has no other, and each number has one meaning at a time."""
        if self.fixed is not None and (self.default is not None or self.cases):
            raise ValueError(f"the field always holds {self.fixed}: leave default and cases out")
        for case in self.cases:
            if len(set(case.values.values())) < len(case.values):
                raise ValueError("two values of one case have the same number: a descriptor could not tell them apart")
            if self.unit and (names := [name for name in case.values if not name.isdigit()]):
                raise ValueError(f"the field counts {self.unit}, and {names[0]!r} is not a number")


class DescriptorFormat(Entry, frozen=True, kw_only=True):
    """A format of a descriptor: what each of its bits means."""

    name: Identifier  # "tcgen05_instruction": start of its identifiers
    title: Text
    describes: Literal["matrix", "instruction", "columns", "sparsity"]  # the thing that it describes to an instruction
    family: Name  # "tcgen05": the family of the instructions that read it, or the start of their families
    qualifier: Annotated[str, Meta(description='the qualifier of an instruction that decides on the format; "" for none')] = ""  # "kind"
    kinds: tuple[Name, ...] = ()  # the values of that qualifier for which it is; for all if empty
    bits: Literal[32, 64]
    spare: Literal["ignored", "zero"]  # the treatment of bits that belong to no field
    fields: Annotated[tuple[DescriptorField, ...], SOME]
    notes: tuple[Statement, ...] = ()
    source: Source

    def __post_init__(self) -> None:
        """Kinds are values of a qualifier."""
        if bool(self.qualifier) != bool(self.kinds):
            raise ValueError("kinds are values of a qualifier; give both qualifier and kinds, or leave both out")

    @property
    def short_kinds(self) -> dict[str, str]:
        """The kinds by their names without the qualifier's: ``{"f16": "kind::f16"}``."""
        return {kind.removeprefix(f"{self.qualifier}::"): kind for kind in self.kinds}

    def chosen_by(self, kind: str) -> dict[str, str]:
        """The fact that the cases of fields test for a kind: ``{"kind": "kind::f16"}``; none where the format has no kinds."""
        return {self.qualifier: kind} if self.qualifier else {}


class MaskExample(Entry, frozen=True, kw_only=True):
    """A mask that the manual prints: the lowest columns of each part, the first on the right."""

    m: Positive
    fields: dict[Identifier, Natural]  # the fields of the descriptor; fields that are left out are 0
    masks: Annotated[tuple[Binary, ...], SOME, Meta(extra_json_schema={"uniqueItems": False})]  # the mask of each part
    source: Source


class ColumnMask(Entry, frozen=True, kw_only=True):
    """The columns of B that a product takes as zeros, by the fields of a descriptor."""

    descriptor: Identifier  # the name of its format
    parts: dict[Annotated[str, like(r"^[0-9]+$", "an M")], Positive]  # parts of equal size into which N columns fall, for each M
    #: 1 for a column that is taken as zeros.  The formula reads ``column`` of the part and the descriptor's fields; a field whose name ends
    #: with the number of the part is read by its name without this number.
    zero: Formula
    examples: tuple[MaskExample, ...] = ()
    source: Source
