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
        self._written: dict[bytes, list[Write]] = {}

    def writes(self, name: bytes) -> list[Write]:
        """The instructions that write a register, in the order of the text."""
        return self._writes.get(name, [])

    @functools.cached_property
    def _writes(self) -> dict[bytes, list[Write]]:
        """The instructions that write each register."""
        writes: dict[bytes, list[Write]] = {}
        blocks = self._blocks()
        starts = [block.start for block in blocks]
        for match in _WRITES.finditer(self._text):
            opcode, target, operands = match.groups()
            offset = match.start(1)
            number = bisect.bisect(starts, offset) - 1 if starts else -1
            own = blocks[number].own if number >= 0 and offset < blocks[number].end else {}
            if own:
                operands = b"".join(own.get(word, word) for word in _APART.split(operands))
            for place, name in enumerate((target,) if target[1:].isalnum() else named_in(target)):
                for known in (name, own[name]) if name in own else (name,):
                    found = writes.get(known)
                    if found is None:
                        writes[known] = [(opcode, place, operands, offset)]
                        continue
                    again = len(found) == 1 and opcode.startswith(b"mov.")
                    selected = self._selected(writes, known, operands, offset, own) if again else None
                    if selected is not None:
                        found[0] = selected
                    else:
                        found.append((opcode, place, operands, offset))
        return writes

    def _selected(
        self, writes: dict[bytes, list[Write]], name: bytes, operand: bytes, offset: int, own: dict[bytes, bytes]
    ) -> Write | None:
        """The selection that a copy under a predicate makes, if the only write before is a copy, too, and nothing comes between."""
        opcode, _, before, place = writes[name][0]
        guard = predicate_before(self._text, offset) if opcode.startswith(b"mov.") else b""
        once = guard and self._text.count(name, place, offset) == 1
        if not once or self._is_parted(place, offset) or predicate_before(self._text, place):
            return None
        copied = writes.get(before.strip(), [])
        if len(copied) == 1 and copied[0][0].startswith(b"mov.") and not self._is_parted(copied[0][3], place):
            before = copied[0][2]
        chosen = (operand, before) if not guard.startswith(b"!") else (before, operand)
        guard = guard.lstrip(b"!")
        return b"selp" + opcode[len(b"mov") :], 0, b", ".join((*chosen, own.get(guard, guard))), offset

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
