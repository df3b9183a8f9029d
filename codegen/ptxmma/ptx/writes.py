"""The instructions of a function that write its registers: the index by which a value is followed back to what it is computed from."""

from __future__ import annotations

import bisect
import functools
import re
from collections import Counter
from collections.abc import Iterable, Set
from typing import NamedTuple

from ptxmma.ptx import literals
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.graphs import reachable
from ptxmma.ptx.text_loops import labels_of

#: An instruction that writes registers, after a blank or a mark: so the search is fast.
_WRITES = re.compile(rb"[\s;{}]([a-z]\w*\.[\w.:]*)\s+((?!\d)[\w$%|]+|\{[^{};]*\})\s*,([^;]*)")
#: The opcode, the first operand and the others of each such instruction in a text.
written_in = _WRITES.findall
#: Names; special registers with their dimension.
named_in = re.compile(rb"[\w$%]+(?:\.[xyzw]\b)?").findall
_LISTED = re.compile(rb"\s+\{([^{}]*)")
#: A label to which no branch goes: LLVM writes it for debuggers.
_OF_DEBUGGERS = b"$L__tmp"
#: A block of inline assembly that begins with a declaration and has no block in it; names that it declares one by one.
_BLOCK = re.compile(rb"\{\s*\.reg\b(?:[^{}]{0,1000}\{[^{};]*\}){0,8}[^{}]{0,1000}\}")
_DECLARED = re.compile(rb"\.reg\s*\.\w+\s+([^;<{}]*);")
_APART = re.compile(rb"([^\w$%]+)")
_PREDICATE = re.compile(rb"@\s*(!?)\s*([\w$%]+)\s*")
_LONGEST_PREDICATE = 128
#: An instruction that writes a register: its opcode, the register's place in the first operand, the other operands, and its own place.
Write = tuple[bytes, int, bytes, int]


class _Block(NamedTuple):
    """A block of inline assembly.

    Attributes:
        start: its place.
        end: the place after it.
        own: names for its registers that no other block has, of registers whose names others have, too.
    """

    start: int
    end: int
    own: dict[bytes, bytes]


def predicate_before(text: bytes, place: int) -> bytes:
    """The predicate of an instruction at a place of a text, ``b"!%p1"``; empty without one, or where it cannot be read."""
    at = text.rfind(b"@", max(0, place - _LONGEST_PREDICATE), place)
    match = _PREDICATE.fullmatch(text, at, place) if at >= 0 else None
    return match[1] + match[2] if match else b""


class Writes:
    """The instructions that write the registers of a function.

    A register of one name in several blocks of inline assembly is the block's own where an instruction of the block reads it.  Elsewhere
    registers of one name in several scopes count as one that changes.

    Args:
        text: the function's text.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._writes: dict[bytes, list[Write]] = {}
        self._written: dict[bytes, list[Write]] = {}

    def writes(self, name: bytes) -> list[Write]:
        """The instructions that write a register, in the order of the text."""
        known = self._writes.get(name)
        if known is None:
            known = self._writes[name] = self._found(name)
            selected = self._selected(name, known[0], known[1]) if len(known) > 1 else None
            if selected is not None:
                known[:2] = [selected]
        return known

    @functools.cached_property
    def _matches(self) -> dict[bytes, list[re.Match[bytes]]]:
        """The instructions that write registers, by their first operand as it is written, which may be a list."""
        matches: dict[bytes, list[re.Match[bytes]]] = {}
        for match in _WRITES.finditer(self._text):
            target = match[2]
            if target in matches:
                matches[target].append(match)
            else:
                matches[target] = [match]
        return matches

    @functools.cached_property
    def _lists(self) -> dict[bytes, list[tuple[bytes, int]]]:
        """The lists that name a register, each with the register's place in it."""
        lists: dict[bytes, list[tuple[bytes, int]]] = {}
        for target in self._matches:
            for place, name in enumerate(() if target[1:].isalnum() else named_in(target)):
                lists.setdefault(name, []).append((target, place))
        return lists

    def _found(self, name: bytes) -> list[Write]:
        """The instructions that write a register, one by one."""
        owner = self._owners.get(name)
        if owner is not None:
            return [write for write in self._found(owner[1]) if owner[0].start < write[3] < owner[0].end]
        found = [(match, 0) for match in self._matches.get(name, ())] if name[1:].isalnum() else []
        if name in self._lists:
            found += [(match, place) for target, place in self._lists[name] for match in self._matches[target]]
            found.sort(key=lambda each: each[0].start())
        return [(match[1], place, self._renamed(match), match.start(1)) for match, place in found]

    def _renamed(self, match: re.Match[bytes]) -> bytes:
        """The operands that an instruction reads, with the names that its block of inline assembly has for its own registers."""
        own = self._own(match.start(1))
        return b"".join(own.get(word, word) for word in _APART.split(match[3])) if own else match[3]

    def _own(self, place: int) -> dict[bytes, bytes]:
        """The names that the block of inline assembly at a place has for its own registers."""
        number = bisect.bisect(self._blocks, (place,)) - 1
        return self._blocks[number].own if number >= 0 and place < self._blocks[number].end else {}

    def _selected(self, name: bytes, first: Write, last: Write) -> Write | None:
        """The selection that a copy under a predicate makes, if the write before it is a copy, too, and nothing comes between."""
        (opcode, _, before, place), (*_, operand, offset) = first, last
        moves = opcode.startswith(b"mov.") and last[0].startswith(b"mov.")
        guard = predicate_before(self._text, offset) if moves else b""
        once = guard and self._text.count(name, place, offset) == 1
        if not once or self._is_parted(place, offset) or predicate_before(self._text, place):
            return None
        copied = [write for write in self._found(before.strip()) if write[3] < offset]
        if len(copied) == 1 and copied[0][0].startswith(b"mov.") and not self._is_parted(copied[0][3], place):
            before = copied[0][2]
        chosen = (operand, before) if not guard.startswith(b"!") else (before, operand)
        guard = guard.lstrip(b"!")
        return b"selp" + opcode[len(b"mov") :], 0, b", ".join((*chosen, self._own(offset).get(guard, guard))), offset

    @functools.cached_property
    def _blocks(self) -> list[_Block]:
        """The blocks of inline assembly that declare registers."""
        declared = [
            (match, {name for names in _DECLARED.findall(match[0]) for name in named_in(names)}) for match in _BLOCK.finditer(self._text)
        ]
        count = Counter(name for _, names in declared for name in names)
        return [
            _Block(match.start(), match.end(), {name: b"%b$%d" % (name, match.start()) for name in names if count[name] > 1})
            for match, names in declared
        ]

    @functools.cached_property
    def _owners(self) -> dict[bytes, tuple[_Block, bytes]]:
        """The blocks of registers that are a block's own, each with the register's name there."""
        return {own: (block, name) for block in self._blocks for name, own in block.own.items()}

    def is_of_list(self, write: Write) -> bool:
        """Return whether an instruction writes the registers of a list in braces."""
        return _LISTED.match(self._text, write[3] + len(write[0])) is not None

    def count(self, write: Write) -> int:
        """The number of registers that an instruction writes."""
        listed = _LISTED.match(self._text, write[3] + len(write[0]))
        return listed[1].count(b",") + 1 if listed is not None else 1

    def values_written(self, name: bytes) -> list[Write]:
        """The instructions that write a register, with the constant or the variable in place of a copied register that holds one.

        Compilers begin the registers of a loop with copies of one of them.
        """
        if name not in self._written:
            self._written[name] = [
                (opcode, place, self.constant_before(operands.strip(), offset) if opcode.startswith(b"mov.") else operands, offset)
                for opcode, place, operands, offset in self.writes(name)
            ]
        return self._written[name]

    def constant_before(self, source: bytes, offset: int) -> bytes:
        """A register, or the constant or variable that the last instruction before a place gives it, if no label comes between."""
        before = self.write_before(source, offset)
        constant = before[2].strip() if before is not None and before[0].startswith(b"mov.") else b""
        if not constant or (literals.integer(constant) is None and (constant.startswith(b"%") or self.writes(constant))):
            return source
        return constant

    def write_before(self, name: bytes, offset: int) -> Write | None:
        """The last instruction before a place that writes a register, if no label comes between; None where another may write it."""
        before = next((write for write in reversed(self.writes(name)) if write[3] < offset), None)
        return None if before is None or self._is_parted(before[3], offset) else before

    def _is_parted(self, first: int, last: int) -> bool:
        """Return whether a label lies between two places, from which a branch may come."""
        number = bisect.bisect(self._labels, first)
        return number < len(self._labels) and self._labels[number] < last

    @functools.cached_property
    def _labels(self) -> list[int]:
        """The places of the labels to which a branch may go."""
        return [place for name, place in labels_of(self._text) if not name.startswith(_OF_DEBUGGERS)]

    def sources(self, names: Iterable[bytes]) -> Set[bytes]:
        """Registers, and all from which they are computed, at any remove."""
        return reachable(names, lambda name: (word for _, _, operands, _ in self.writes(name) for word in words_of(operands))).keys()
