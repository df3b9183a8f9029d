"""JSON that people read and compare: one line for each part that is short enough."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def lines(value: Any, longest: int, indent: str = "") -> str:
    """The value as JSON; a part longer than ``longest`` characters is broken into a line for each of its own parts."""
    text = msgspec.json.encode(value).decode()
    if len(text) <= longest or not isinstance(value, (dict, list, tuple)):
        return text
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {lines(part, longest, inner)}" for key, part in value.items()]
        opening, closing = "{", "}"
    else:
        parts = [lines(part, longest, inner) for part in value]
        opening, closing = "[", "]"
    separator = f",\n{inner}"
    return f"{opening}\n{inner}{separator.join(parts)}\n{indent}{closing}"
