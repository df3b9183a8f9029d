"""Statements that are the same but for the numbers of their registers: compilers give every value a register of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ptxmma.ptx.opcodes import BEFORE

if TYPE_CHECKING:
    from ptxmma.ptx.statements import Function, Statement

_Verdict = TypeVar("_Verdict")

#: Numbers of equal length look the same.
_ZEROS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_REGISTER = re.compile(rb"(?<![\w$%.])(%[A-Za-z]+)([0-9]+)(?![\w$%.])")
_DIGIT = re.compile(rb"[0-9]")
#: Bytes of the longest statement that is remembered.
_LONGEST = 1 << 12
#: Different statements of a function that are remembered at a time.
_MOST = 1 << 12


class _Numbers(NamedTuple):
    """Places of numbers that not every number of that length may take: it must be less than ``limit``, which is as long."""

    start: int
    stop: int
    limit: bytes


class Repeated(Generic[_Verdict]):
    """What is known of statements of a function that are written alike, with registers of the same types.

    Args:
        function: the function; its registers must be at the place that is asked for.
    """

    def __init__(self, function: Function) -> None:
        self._text, self._registers = function.text, function.registers
        self._known: dict[tuple[bytes, bytes], tuple[_Verdict, list[_Numbers]]] = {}
        self._changes = 0

    def find(self, start: int) -> tuple[int, _Verdict] | None:
        """The end of the statement at a place and what is known of it; None if it is new, or anything but a blank precedes it."""
        if self._changes != self._registers.changes:
            self._known.clear()
            self._changes = self._registers.changes
        if not self._known:
            return None
        text = self._text
        end = text.find(b";", start, start + _LONGEST)
        opcode, _, operands = text[start:end].partition(b" ")
        verdict, numbers = self._known.get((opcode, operands.translate(_ZEROS)), (None, []))
        if verdict is None or end < 0 or not text[max(0, start - BEFORE) : start].rstrip().endswith((b";", b"{", b"}", b":")):
            return None
        for first, stop, limit in numbers:
            if operands[first:stop] >= limit:
                return None
        return end, verdict

    def remember(self, statement: Statement, verdict: _Verdict) -> None:
        """Remember what is known of a statement, if that does not depend on the numbers of its registers."""
        if statement.end - statement.start >= _LONGEST or len(self._known) >= _MOST:
            return
        opcode, _, operands = self._text[statement.start : statement.end].partition(b" ")
        if _DIGIT.search(_REGISTER.sub(b"", operands)):
            return  # a constant
        numbers = []
        for match in _REGISTER.finditer(operands):
            count = self._registers.numbered(match[1])
            if not count:
                return
            if 10 ** len(match[2]) > count:
                numbers.append(_Numbers(*match.span(2), b"%0*d" % (len(match[2]), count)))
        self._known[opcode, operands.translate(_ZEROS)] = verdict, numbers
