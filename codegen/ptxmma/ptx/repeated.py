"""Statements that are the same but for the numbers of their registers: compilers give every value a register of its own."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ptxmma.ptx.opcodes import BEFORE

if TYPE_CHECKING:
    from ptxmma.ptx.statements import Function, Statement

_Verdict = TypeVar("_Verdict")

#: Numbers of equal length look the same.
_ZEROS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
#: The number of a register, after its stem, or a constant.
_NUMBER = re.compile(rb"(?<![\w$%.])(%[A-Za-z]+)([0-9]+)(?![\w$%.])|[0-9]+")
#: Bytes of the longest statement that is remembered.
_LONGEST = 1 << 12
#: Different statements of a function that are remembered at a time.
_MOST = 1 << 12


class _Numbers(NamedTuple):
    """Numbers of operands, of one length, that may not all be as large as that allows: they must be less than ``limit``."""

    of: Callable[[bytes], tuple[bytes, ...]]
    limit: bytes


@dataclass(frozen=True, slots=True)  # Python 3.10 has no generic named tuples
class _Alike(Generic[_Verdict]):
    """Statements that are the same but for digits: the numbers of their registers, and their constants."""

    numbers: list[_Numbers]
    constants: Callable[[bytes], tuple[bytes, ...]] | None  # None where there are none
    verdicts: dict[tuple[bytes, ...], _Verdict]  # the verdicts by the constants


class Repeated(Generic[_Verdict]):
    """The verdict on statements of a function that are written alike, with registers of the same types.

    Args:
        function: the function; its registers must be at the place that is asked for.
    """

    def __init__(self, function: Function) -> None:
        self._text, self._registers = function.text, function.registers
        self._known: dict[tuple[int, bytes, bytes], _Alike[_Verdict]] = {}
        self._room = _MOST

    def find(self, start: int) -> tuple[int, _Verdict] | None:
        """The end of the statement at a place, and its verdict; None if it is new, or anything but a blank precedes it."""
        text = self._text
        end = text.find(b";", start, start + _LONGEST)
        opcode, _, operands = text[start:end].partition(b" ")
        alike = self._known.get((self._registers.visible, opcode, operands.translate(_ZEROS)))
        if alike is None or end < 0 or text[max(0, start - BEFORE) : start].rstrip()[-1:] not in b";{}:":
            return None
        verdict = alike.verdicts.get(alike.constants(operands) if alike.constants else ())
        if verdict is None:
            return None
        for numbers_of, limit in alike.numbers:
            if max(numbers_of(operands)) >= limit:
                return None
        return end, verdict

    def remember(self, statement: Statement, verdict: _Verdict) -> None:
        """Remember the verdict on a statement, if it does not depend on the numbers of the registers."""
        if statement.end - statement.start >= _LONGEST or not self._room:
            return
        opcode, _, operands = self._text[statement.start : statement.end].partition(b" ")
        limited: dict[bytes, list[slice]] = {}
        counts: dict[bytes, int] = {}  # the registers of each stem
        places: list[slice] = []
        for match in _NUMBER.finditer(operands):
            stem, number = match.groups()
            if stem is None:
                places.append(slice(*match.span()))
                continue
            count = counts.get(stem)
            if count is None:
                count = counts[stem] = self._registers.numbered(stem)
            if not count:
                return
            if 10 ** len(number) > count:
                limited.setdefault(b"%0*d" % (len(number), count), []).append(slice(*match.span(2)))
        numbers = [_Numbers(_parts_at(spans), limit) for limit, spans in limited.items()]
        constants_of = _parts_at(places) if places else None
        key = (self._registers.visible, opcode, operands.translate(_ZEROS))
        alike = self._known.setdefault(key, _Alike(numbers, constants_of, {}))
        alike.verdicts[constants_of(operands) if constants_of else ()] = verdict
        self._room -= 1


def _parts_at(places: list[slice]) -> Callable[[bytes], tuple[bytes, ...]]:
    """A getter of the parts of a text at some places; of a single one, itemgetter() alone would give no tuple."""
    return operator.itemgetter(*places, places[0])
