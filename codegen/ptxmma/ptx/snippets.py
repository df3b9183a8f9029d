"""Strings with PTX in the source text of another language."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping

from ptxmma.ptx.mapped_text import Source, Text, TextBuilder, places_of_bytes
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.operand_values import ANYTHING
from ptxmma.ptx.scopes import Scopes
from ptxmma.ptx.statements import Function, Module, Statement
from ptxmma.ptx.tokens import Cleaner, Piece

_NAMES = re.compile(rb"[A-Za-z_$%][\w$%]*(?:\.[xyzwrgba]\b)?")
_NUMBERED = re.compile(rb"[%$]\d+")
#: A placeholder that is a part of an opcode.
_HOLE = re.compile(rb"\.[%$]|[%$]\w+(?:\.|\s*[\[{])")


class Snippet(Function):
    """A string of PTX; names that it does not declare are unknown.

    Args:
        source: the file that contains the string.
        text: the string.
        opcodes: the first words of matrix instructions.
        types: the type of each operand that is known, by its name in the string.
        wanted: whether a statement is an instruction at all, and not a word in a sentence.
        numbered: whether every operand is known; compilers refuse other numbers.
        known: whether the string is all there is; otherwise its instructions are counted, not judged.

    Attributes:
        alternatives: the same string as it may also be completed.
    """

    def __init__(
        self,
        source: Source,
        text: Text,
        opcodes: Opcodes,
        types: Mapping[str, str],
        wanted: Callable[[Statement], bool],
        *,
        numbered: bool = False,
        known: bool = True,
    ) -> None:
        raw = text.chars.encode("utf-8", "replace")
        cleaner = Cleaner()
        module = Module()
        self.alternatives: tuple[Snippet, ...] = ()
        super().__init__(module, [Piece(raw, cleaner.clean(raw) + cleaner.rest(), 1, 1)], opcodes)
        module.read(self.text)
        self._source, self._places, self._wanted, self._known = source, places_of_bytes(text), wanted, known
        given = dict.fromkeys(_NAMES.findall(self.text), ANYTHING)
        given.pop(b"_", None)
        if numbered:
            given = {name: kind for name, kind in given.items() if not _NUMBERED.fullmatch(name)}
        self.registers = Scopes(self.text, given=given | {name.encode(): kind for name, kind in types.items()})

    @functools.cached_property
    def _statements(self) -> list[Statement]:
        return [*super().statements()]

    def statements(self) -> Iterator[Statement]:
        """Its matrix instructions, in order, as far as they are known."""
        return filter(self.is_meant, self._statements)

    def is_meant(self, statement: Statement, /) -> bool:
        """Return whether it is a known instruction, and not a word in a sentence."""
        return self._is_known(statement) and self._wanted(statement)

    @functools.cached_property
    def uncovered(self) -> int:  # type: ignore[override]  # of a module it is zero
        """Instructions of which only a compiler knows the whole."""
        return sum(not self._is_known(statement) and self._wanted(statement) for statement in self._statements)

    def _is_known(self, statement: Statement) -> bool:
        return self._known and not _HOLE.match(self.text, statement.start + len(statement.opcode))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column in the source, both from 1."""
        return self._source.position(self._place(offset))

    def source(self, offset: int) -> tuple[str, int]:
        """The line of the source, and the byte's place in it."""
        return self._source.line(self._place(offset))

    def line_at(self, offset: int) -> str:
        """The whole line of the source."""
        return self._source.line_at(self._place(offset))

    def _place(self, offset: int) -> int:
        return self._places[min(offset, len(self._places) - 1)]


def replaced(text: Text, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> Text:
    """A text with every match of a pattern replaced."""
    maker = TextBuilder(text)
    start = 0
    for match in pattern.finditer(text.chars):
        maker.keep(start, match.start())
        maker.put(by(match), match.start())
        start = match.end()
    maker.keep(start, len(text.chars))
    return maker.made()
