"""The scopes of a function, and names for the registers that they declare."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator, Mapping, Sequence

from ptxmma.ptx.opcodes import BEFORE

#: An opening brace of a block, not of a list.
_OPENS = re.compile(rb"\{(?!%[\w$%]+\s*[,}]|\s*[^\s{};:][^{};:]*\})")
#: A closing brace after the end of a statement; many blanks may be between them, but before most braces is one at most.
_CLOSES = re.compile(rb"\}(?:(?<=[;{}:]\})|(?<=[;{}:]\s\})|(?<=\s\s\})())")
_CLOSING = b"}"[0]
_DECLARATION = re.compile(rb"\.reg\b(?:\s*\.\w+(?:\s+\d+)?)*([^;]*)")
_DECLARED = re.compile(rb"([\w$%]+)(?:<(\d+)>)?")
#: Registers that an inner scope may declare; of more, it is not followed.
_MOST_DECLARED = 4096
#: Names that all inner scopes of a function may declare.
_MOST_NAMES = 1 << 18


#: Numbers of scopes, ascending, and for each the scope whose declaration holds from there on.
_Declaring = tuple[list[int], list[int]]
_NONE: _Declaring = ([], [])


class BlockScopes:
    """The scopes of a function, by numbers: 0 is its body.

    Attributes:
        parents: the scope around each; -1 round the body.
        stop: the end of the body; the end of the text where the body has none.
        renamed: whether names() renamed any register so far.
        lost: whether the scopes cannot be followed: one is not closed, or one declares too many registers.

    Args:
        text: the function's text.
        start: the start of the body.
    """

    def __init__(self, text: bytes, start: int) -> None:
        self.stop = len(text)
        self.parents = [-1]
        self._places, self._scopes = [start], [0]  # scopes from places on
        now = 0
        closes = [match for match in _CLOSES.finditer(text, start) if match[1] is None or _ends_statement(text, match.start())]
        for place in sorted([match.start() for each in (closes, _OPENS.finditer(text, start)) for match in each]):
            if text[place] == _CLOSING:
                now = self.parents[now]
                if now < 0:
                    self.stop = place
                    break
            else:
                self.parents.append(now)
                now = len(self.parents) - 1
            self._places.append(place)
            self._scopes.append(now)
        self.renamed, self.lost = False, now > 0
        own: dict[int, frozenset[bytes]] = {}  # names that an inner scope declares
        for match in _DECLARATION.finditer(text, start, self.stop):
            if scope := self.at(match.start()):
                names, lost = _names(match[1])
                own[scope] = own[scope] | names if scope in own else names
                self.lost |= lost
        self.lost |= sum(map(len, own.values())) > _MOST_NAMES
        self._declaring = {} if self.lost else self._changes(own)

    def at(self, place: int) -> int:
        """The innermost scope at a place of the body."""
        return self._scopes[bisect.bisect(self._places, place) - 1]

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a text that lie in one scope each: start, stop, and the scope."""
        first, last = bisect.bisect(self._places, start), bisect.bisect_left(self._places, stop)
        for number in range(first, last + 1):
            end = self._places[number] if number < last else stop
            yield start, end, self._scopes[number - 1]
            start = end + 1

    def names(self, scope: int, names: Sequence[bytes]) -> Sequence[bytes]:
        """Registers' names, distinct from the names in other scopes."""
        if scope == 0 or self._declaring.keys().isdisjoint(names):
            return names
        return [self._named(scope, name) for name in names]

    def _named(self, scope: int, name: bytes) -> bytes:
        firsts, declaring = self._declaring.get(name, _NONE)
        place = bisect.bisect(firsts, scope) - 1
        if place < 0 or not declaring[place]:
            return name
        self.renamed = True
        return b"%s in scope %d" % (name, declaring[place])

    def _changes(self, own: Mapping[int, frozenset[bytes]]) -> dict[bytes, _Declaring]:
        """The scopes, by number, from which on another scope's declaration of a name holds, and that scope; 0 is the body."""
        last = [*range(len(self.parents))]  # the last scope inside each
        for scope in range(len(last) - 1, 0, -1):
            last[self.parents[scope]] = max(last[self.parents[scope]], last[scope])
        changes: dict[bytes, _Declaring] = {}
        opened: dict[bytes, list[int]] = {}  # the scopes that declare a name, the innermost last

        def close(name: bytes, before: int) -> None:
            scopes, (firsts, declaring) = opened[name], changes[name]
            while scopes and last[scopes[-1]] < before:
                firsts.append(last[scopes.pop()] + 1)
                declaring.append(scopes[-1] if scopes else 0)

        for scope in sorted(own):
            for name in own[scope]:
                firsts, declaring = changes.setdefault(name, ([], []))
                opened.setdefault(name, [])
                close(name, scope)
                opened[name].append(scope)
                firsts.append(scope)
                declaring.append(scope)
        for name in opened:
            close(name, len(last))
        return changes


@functools.lru_cache(maxsize=1 << 8)
def _names(text: bytes) -> tuple[frozenset[bytes], bool]:
    """The names that a directive declares, and whether they are too many; compilers repeat assembly's declarations in blocks of its own."""
    names = set[bytes]()
    lost = False
    for name, count in _DECLARED.findall(text):
        if count and int(count) > _MOST_DECLARED:
            lost = True
        else:
            names |= {b"%s%d" % (name, number) for number in range(int(count))} if count else {name}
    return frozenset(names), lost


def _ends_statement(text: bytes, place: int) -> bool:
    """Return whether nothing but blanks lies between a place and the end of a statement before it, or many blanks."""
    return text[max(0, place - BEFORE) : place].rstrip()[-1:] in b";{}:"


def plain(name: bytes) -> bytes:
    """A register's name as it is written."""
    return name.partition(b" ")[0]
