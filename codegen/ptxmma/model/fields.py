"""The base of all entries, conditions, and the types of fields, most of them strings with a pattern.

The JSON Schemas of the spec and of the database come from these annotations.  msgspec itself does not match the patterns: the
generator holds the YAML against the schemas, so that the library reads the database without matching thousands of strings again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta


def like(pattern: str, expected: str, longest: int = 0) -> Meta:
    """A string that matches ``pattern``, of at most ``longest`` characters (0: of any length).

    ``expected`` describes in words what matches, for error messages and editors.
    """
    return Meta(extra_json_schema={"pattern": pattern, "patternErrorMessage": expected} | ({"maxLength": longest} if longest else {}))


def names(what: str) -> Meta:
    """A name of an entry of the spec; ``what`` says of which kind, in the words of errors."""
    return Meta(extra={"names": what})


Name = Annotated[str, like(r"^[A-Za-z][A-Za-z0-9_.:-]*$", "letters, digits, '_', '.', ':' and '-', a letter first", 60)]
Identifier = Annotated[str, like(r"^[a-z][a-z0-9_]*$", "lower-case letters, digits and '_', a letter first", 60)]
Token = Annotated[str, like(r"^[A-Za-z0-9_]+(::?[A-Za-z0-9_]+)*$", "a PTX modifier without its dot, e.g. f16 or sp::ordered_metadata", 60)]
VersionText = Annotated[str, like(r"^[0-9]+\.[0-9]+$", 'a version in quotes, e.g. "8.0"')]
NewTarget = Annotated[str, like(r"^sm_[0-9]+[af]?$", "a target, e.g. sm_90a")]
Source = Annotated[
    str,
    like(r"^[0-9A-Za-z][^\n\"\\]*$", 'a section ("9.7.14.6.3"), or who observed the fact ("ptxas 13.5", "H200")', 120),
    names("source"),
]
#: No line break, backslash or comment mark: it ends up in comments of C, Python and SQL.
Text = Annotated[str, like(r"^[^\n\\*/]([^\n\\*]|\*[^/\n\\])*$", "plain text on one line", 600)]
Formula = Annotated[
    str,
    like(r"^[A-Za-z0-9_ +*/%&|^<>=!()-]+$", "a formula: integers, names, + - * // % & | ^ << >>, comparisons, and/or/not", 200),
]
#: Helper definitions of formulas by name; each may use those before it.
Let = dict[Annotated[str, like(r"^[a-z][a-z_0-9]*$", "lower-case letters, digits and '_'")], Formula]
Binary = Annotated[str, like(r"^0b[01]+$", "a binary number, e.g. 0b0100")]

# Names of entries: the rules of the spec refuse one that names none.
TargetName = Annotated[NewTarget, names("target")]
PtxVersion = Annotated[VersionText, names("PTX ISA version")]
CudaRelease = Annotated[VersionText, names("CUDA release")]
ElementName = Annotated[Name, names("element type")]
ScopeName = Annotated[Name, names("scope")]
FamilyName = Annotated[Name, names("family")]
InstructionName = Annotated[Name, names("instruction")]

Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
#: A list with at least one entry: ``Annotated[tuple[Name, ...], SOME]``.
SOME = Meta(min_length=1)

#: The values that a condition reads: qualifiers, ``family``, ``m``, ``n``, ``k``, ``bits`` … of one variant or operand.
Facts = Mapping[str, str | int]
#: The values that a condition allows: tokens or numbers.
Values = tuple[str | int, ...]

#: Each key must have one of its listed values; several conditions in a list: any of them.
Condition = Annotated[
    dict[Annotated[str, like(r"^[a-z_]+$", "a qualifier or another fact")], Values],
    Meta(min_length=1, description="each key must have one of its values"),
]


def matches(conditions: Sequence[Condition], facts: Facts) -> bool:
    """Tell whether any of the conditions holds; an empty list always does.  A missing fact counts as ``""``."""
    if not conditions:
        return True
    for condition in conditions:
        for key, allowed in condition.items():
            if facts.get(key, "") not in allowed:
                break
        else:
            return True
    return False


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all entries: immutable; unknown keys are errors."""
