"""Conditions, and the base of all entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from ptxmma.model.fields import like

#: The values that a condition reads: qualifiers, ``family``, ``m``, ``n``, ``k``, ``bits`` … of one variant or operand.
Facts = Mapping[str, str | int]


#: The values that a condition allows: tokens or numbers.
Values = tuple[str | int, ...]

#: Each key must have one of its listed values; several conditions in a list: any of them.
Condition = Annotated[
    dict[Annotated[str, like(r"^[a-z_]+$", "a qualifier or another fact")], Values],
    msgspec.Meta(min_length=1, description="each key must have one of its values"),
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
