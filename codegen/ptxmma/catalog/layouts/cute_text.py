"""Parses CuTe's layouts: the text that CuTe prints and the types in its headers."""

from __future__ import annotations

import re
from typing import NoReturn

from ptxmma.catalog.layouts.cute_layout import CuteLayout, Modes, Swizzle

_BLANKS = re.compile(r"(?:\s|cute::)*")
_INTEGER = re.compile(r"(?:Int|C)\s*<\s*([0-9]{1,18})\s*>|_?([0-9]{1,18})\b")  # no index of 64 bits is longer
_OPENING = re.compile(r"\(|(?:Shape|Stride|tuple)\s*<")
_LAYOUT = re.compile(r"Layout\s*<")
_SWIZZLE = re.compile(r"(?:Swizzle|Sw|S)\s*<\s*_?([0-9]{1,2})\s*,\s*_?([0-9]{1,2})\s*,\s*_?(-?[0-9]{1,2})\s*>")
_POINTER = re.compile(r"smem_ptr\s*\[\s*([0-9]{1,9})b\s*\]\s*\(\s*unset\s*\)")
_DEPTH = 32  # CuTe's own layouts nest three or four deep


def from_cute(text: str) -> CuteLayout:
    """Parses a layout as CuTe prints it or as its headers spell its type.

    ``((4,8),(2,2)):((32,1),(16,8))``; integers also as ``_8``, ``Int<8>`` or ``C<8>``, and tuples as ``Shape<…>``, ``Stride<…>`` or
    ``tuple<…>``; ``Layout<Shape<…>,Stride<…>>``; all with or without ``cute::``.  A swizzled layout is ``Sw<3,4,3> o 0 o (8,64):(64,1)``.
    With ``smem_ptr[16b](unset)`` for the offset, the swizzle applies to byte addresses and the strides count elements of 16 bits.  It is
    converted to a swizzle of element indices, ``Sw<3,3,3>``.

    A text describes the layout of an operand if ``from_cute(text) == from_cute(operand.to_cute())``.

    Raises:
        TypeError: ``text`` is not a string.
        ValueError: the text is not a layout; the message names the column, from 1, and what is expected there, or what is wrong with the
            layout.
    """
    reader = _Reader(text)
    swizzle, offset = reader.composition()
    shape, stride = reader.layout()
    reader.end()
    return CuteLayout(shape, stride, swizzle, offset)


class _Reader:
    """Reads a text of CuTe from left to right."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"CuTe's text must be a string, not {type(text).__name__}")
        self.text = text
        self.at = 0

    def composition(self) -> tuple[Swizzle | None, int]:
        """``Sw<3,4,3> o 0 o``, if it is there."""
        swizzle, offset = self.swizzle(), 0
        if swizzle is None:
            return None, 0
        self._take("o", '"o" after the swizzle')
        if pointer := self._take(_POINTER):
            swizzle = _of_elements(swizzle, int(pointer[1]))
        else:
            offset = self._integer("an offset or smem_ptr[16b](unset)")
        self._take("o", '"o" after the offset')
        return swizzle if swizzle.bits else None, offset

    def swizzle(self) -> Swizzle | None:
        """``Sw<3,4,3>``, if it is there."""
        match = self._take(_SWIZZLE)
        return Swizzle(*map(int, match.groups())) if match else None

    def layout(self) -> tuple[Modes, Modes]:
        """Shape and stride."""
        typed = self._take(_LAYOUT)
        shape = self._modes()
        separator = "," if typed else ":"
        self._take(separator, f'"{separator}" and the strides')
        stride = self._modes()
        if typed:
            self._take(">", '">" after the strides')
        return shape, stride

    def end(self) -> None:
        self._take(re.compile(r"\Z"), "the end of the text")

    def _modes(self, depth: int = 0) -> Modes:
        """Integers, nested in tuples."""
        if depth > _DEPTH:
            self._fail(f"no more than {_DEPTH} parentheses within each other")
        opening = self._take(_OPENING)
        if not opening:
            return self._integer('an integer of at most 18 digits or "("')
        closing = ")" if opening[0] == "(" else ">"
        modes = [self._modes(depth + 1)]
        while not self._take(closing):
            self._take(",", f'"," or "{closing}"')
            if closing == ")" and self._take(closing):  # Python writes a tuple of one as (8,)
                break
            modes.append(self._modes(depth + 1))
        return tuple(modes)

    def _integer(self, expected: str) -> int:
        match = self._take(_INTEGER, expected)
        assert match
        return int(match[1] or match[2])

    def _take(self, token: str | re.Pattern[str], expected: str = "") -> re.Match[str] | None:
        """Takes ``token`` if it comes next; with ``expected``, which names it in the error, it must."""
        blanks = _BLANKS.match(self.text, self.at)
        assert blanks
        self.at = blanks.end()
        match = re.compile(re.escape(token) if isinstance(token, str) else token).match(self.text, self.at)
        if match:
            self.at = match.end()
        elif expected:
            self._fail(expected)
        return match

    def _fail(self, expected: str) -> NoReturn:
        remaining = self.text[self.at :]
        ahead = repr(remaining[:12]) if remaining else "the end of the text"
        raise ValueError(f"column {self.at + 1}: expected {expected}, not {ahead}")


def _of_elements(swizzle: Swizzle, bits: int) -> Swizzle:
    """Converts a swizzle of byte addresses to one of indices of elements of ``bits`` bits."""
    power = bits.bit_length() - 1
    if bits < 1 or bits & bits - 1 or swizzle.base + 3 < power:
        raise ValueError(f"smem_ptr[{bits}b]: {swizzle} does not keep elements of {bits} bits whole")
    return Swizzle(swizzle.bits, swizzle.base + 3 - power, swizzle.shift)
