"""What makes the database short: values that are written once, and records without what is absent."""

from __future__ import annotations

from typing import Any

import msgspec


class Interned:
    """Values that are written once, each with its number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.values: list[Any] = []

    def number(self, value: Any) -> int:
        """The number of a value that equals this one."""
        key = msgspec.json.encode(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def without_empty(**values: Any) -> dict[str, Any]:
    """Without what is absent: zeros, what is empty, None and False."""
    return {key: value for key, value in values.items() if value}
