"""Means to keep the database short: values that are written once, records without absent values, and tables of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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


def table(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Records with the same keys, each key written once: the commonest first, so that what is absent is at the end of most rows."""
    counts = Counter(key for record in records for key in record)
    columns = [key for key, _ in counts.most_common()]
    rows = [[record.get(key) for key in columns] for record in records]
    for row in rows:
        while row and row[-1] is None:
            row.pop()
    return {"columns": columns, "rows": rows}
