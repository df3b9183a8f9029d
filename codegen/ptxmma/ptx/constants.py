"""The values that a constant of C++ may take, as far as the text of its file says."""

from __future__ import annotations

import functools
import re

from ptxmma.ptx.literals import integer

_INITIALISED = re.compile(r"\b(?:constexpr|const)\b[^;={}()]*?\b(\w+)\s*(?:\[\s*\]\s*)?=\s*([^;]+);")
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\\]+)$", re.MULTILINE)
_CHOICE = re.compile(r"[^?]*\?([^?:]+):([^?:]+)")
_STRING = re.compile(r'"([\w.:]*)"')
_NAME = re.compile(r"(?:[\w\s]+(?:<[^;]*>)?\s*:\s*:\s*)*(\w+)")


class Constants:
    """The constants that a source defines.

    Args:
        text: the source's text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, tuple[str, ...]] = {}  # by name

    def values(self, expression: str) -> tuple[str, ...]:
        """The values that an expression may have: several where a template or a condition chooses; none where one of them is unknown.

        Of a name such as ``T::value``, any definition of ``value`` may be meant.
        """
        expression = expression.strip()
        if direct := _value(expression):
            return (direct,)
        name = _NAME.fullmatch(expression)
        if name is None:
            return ()
        if name[1] not in self._found:
            self._found[name[1]] = self._defined(name[1])
        return self._found[name[1]]

    def _defined(self, name: str) -> tuple[str, ...]:
        if re.search(rf"\btemplate\s*<[^;{{}}()]*[\w.]\s+{name}\s*[,>=]", self._text):  # a parameter of a template
            return ()
        values: list[str] = []
        for definition in self._all.get(name, ()):
            choice = _CHOICE.fullmatch(definition)
            known = [_value(part.strip()) for part in (choice.groups() if choice else (definition,))]
            if not all(known):
                return ()
            values += known
        return tuple(dict.fromkeys(values))

    @functools.cached_property
    def _all(self) -> dict[str, list[str]]:
        """Every definition of each name."""
        definitions: dict[str, list[str]] = {}
        for pattern in (_INITIALISED, _DEFINED):
            for name, value in pattern.findall(self._text):
                definitions.setdefault(name, []).append(value.split("//")[0].strip())
        return definitions


def _value(text: str) -> str:
    """The text that a literal puts into an opcode; empty for what is not one."""
    if match := _STRING.fullmatch(text):
        return match[1]
    number = integer(text.strip("() ").encode("utf-8", "replace"))
    return "" if number is None else str(number)
