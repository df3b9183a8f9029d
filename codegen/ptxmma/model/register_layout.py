"""Formulas for where data lies in registers."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ptxmma.model.fields import SOME, Condition, Entry, Formula, Identifier, Let, Name, Positive, Source, TargetName, Text, like


class Case(Entry, frozen=True, kw_only=True):
    """``is`` where ``when`` holds; the last case has no condition."""

    value: Formula = msgspec.field(name="is")
    when: Formula = ""


#: The axis that tells copies of one element apart.
COPY = "copy"

#: The names that printed formulas of a sparse matrix have beside its axes: the columns from which a register's elements are picked.
WINDOW = ("first", "last")

#: A formula, or guarded cases of which the first with a true condition holds.
Cases = tuple[Case, ...]


class Stated(Entry, frozen=True, kw_only=True):
    """The manual's own formula for one shape: it must agree with ours, or differ where ``erratum`` says so."""

    section: Source
    of: tuple[Condition, ...]  # conditions on its instances
    let: Let = {}
    at: dict[Identifier, Cases] = {}  # axes; "first" and "last": the window of columns of a sparse A
    registers: Positive = 0
    erratum: Name = ""  # key in errata.yaml: the printed formula is known to be wrong


class RegisterLayout(Entry, frozen=True, kw_only=True):
    """The layout of data in the registers of the threads: one formula for a set of shapes and types.

    It goes one way or the other.  Formulas for the axes give the place of a thread's element ``i`` in the matrix.  Formulas for ``lane``
    and ``bit`` (or ``byte``) give the thread and the bits of its register that hold the data of a place.
    """

    operands: Annotated[tuple[Name, ...], SOME]  # ("c", "d")
    name: Annotated[str, like(r"^[a-z0-9_]*(\{[a-z]\w*\}[a-z0-9_]*)*$", "lower-case letters, digits, '_' and names in braces")] = (
        ""  # end of its name, with qualifiers and bits in braces: "a_row_b{bits}"; "": the operands and the bits
    )
    of: tuple[Condition, ...]
    axes: Annotated[
        dict[Identifier, Formula], SOME
    ]  # the sizes, as formulas over extents, bits and ratio: {"row": "m", "col": "k // ratio"}
    apart: tuple[Identifier, ...] = ()  # axes that tell independent products, or copies, apart: they belong to no coordinates
    steps: dict[Identifier, Formula] = {}  # axes whose numbers are multiples of a number, as formulas: {"byte_id": "blocks"}
    let: Let = {}
    at: Annotated[dict[Identifier, Cases], SOME]
    text: Text = ""  # the threads that hold it, in words
    observed: TargetName = ""  # the target on which it was measured; "": the manual states it
    stated: tuple[Stated, ...] = ()
    source: Source
