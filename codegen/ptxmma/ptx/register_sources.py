"""The registers from which a function computes others.

Neither branches nor the order of instructions count, and registers of one name in several scopes count as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ptxmma.ptx.flow_events import words_of

#: An instruction that writes registers: what it writes, and what it reads.
_WRITES = re.compile(rb"(?<![\w$%.])[a-z]\w*\.[\w.:]*\s+(\{[^{};]*\}|[\w$%|]+)\s*,([^;]*)")


class RegisterSources:
    """The registers that the instructions of a text read, by the registers that they write."""

    def __init__(self, text: bytes) -> None:
        self._read: dict[bytes, list[bytes]] = {}  # the operands that are read
        for written, read in _WRITES.findall(text):
            for name in words_of(written):
                self._read.setdefault(name, []).append(read)

    def of(self, names: Iterable[bytes]) -> set[bytes]:
        """Registers, and all from which they are computed, at any remove."""
        found = {*names}
        waiting = [*found]
        while waiting:
            for operands in self._read.get(waiting.pop(), ()):
                fresh = [name for name in words_of(operands) if name not in found]
                found.update(fresh)
                waiting += fresh
        return found
