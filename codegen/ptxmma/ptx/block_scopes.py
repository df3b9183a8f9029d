"""The scopes of a function, and names for the registers that they declare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_DECLARED = re.compile(rb"([\w$%]+)(?:<(\d+)>)?")
#: Registers that an inner scope may declare; of more, it is not followed.
_MOST_DECLARED = 4096


class BlockScopes:
    """The scopes of a function, by numbers.

    Attributes:
        now: the innermost scope that is open: 0 is the function's body, -1 what follows it.
        lost: whether a scope declares too many registers.
    """

    def __init__(self) -> None:
        self.now = 0
        self.lost = False
        self._parents = [-1]
        self._own: dict[int, set[bytes]] = {}  # names that an inner scope declares

    def brace(self, brace: bytes) -> None:
        """Open or close a scope."""
        if brace == b"{":
            self._parents.append(self.now)
            self.now = len(self._parents) - 1
        else:
            self.now = self._parents[self.now]

    def declare(self, text: bytes) -> None:
        """Add what a directive declares, unless its scope is that of the function."""
        own = self._own.setdefault(self.now, set()) if self.now else set[bytes]()
        for name, count in _DECLARED.findall(text) if self.now else ():
            if count and int(count) > _MOST_DECLARED:
                self.lost = True
            else:
                own |= {b"%s%d" % (name, number) for number in range(int(count))} if count else {name}

    def outwards(self, scope: int) -> Iterator[int]:
        """A scope, and those around it."""
        while scope >= 0:
            yield scope
            scope = self._parents[scope]

    def names(self, scope: int, names: Sequence[bytes]) -> Sequence[bytes]:
        """Registers' names, distinct from those of other scopes."""
        while scope > 0:
            own = self._own.get(scope)
            if own is not None and not own.isdisjoint(names):
                names = [b"%s in scope %d" % (name, scope) if name in own else name for name in names]
            scope = self._parents[scope]
        return names


def plain(name: bytes) -> bytes:
    """A register's name as it is written."""
    return name.partition(b" ")[0]
