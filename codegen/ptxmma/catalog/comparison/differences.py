"""A difference, and values in the words that say what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

#: A change without its subject: kind, text, and whether it breaks consumers.
Difference = tuple[str, str, bool]


def shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None or value == "":
        return "nothing"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def several(values: Sequence[object]) -> str:
    """Values in a sentence."""
    if isinstance(values, range) and values:
        return f"{values[0]}..{values[-1]}"
    return " ".join(map(str, values)) or "none"
