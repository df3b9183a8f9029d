"""Constant expressions of PTX, as assemblers evaluate them: 64 bits, in two's complement (PTX ISA 4.5)."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable

_LITERAL = re.compile(rb"0[xX]([0-9a-fA-F]+)U?|0[bB]([01]+)U?|0([0-7]*)U?|([1-9]\d*)U?")
_FLOAT = re.compile(rb"[-+\s]*(?:0([fF])[0-9a-fA-F]{8}|0([dD])[0-9a-fA-F]{16}|(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)")
_ZERO = re.compile(rb"[+\s]*(?:0[dD]0{16}|(?:0+\.0*|\.0+)(?:[eE][-+]?\d+)?|0+[eE][-+]?\d+)")
_TOKEN = re.compile(rb"\s*(\(\s*\.[su]64\s*\)|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?|WARP_SZ|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|!~()?:])")
_SIMPLE = re.compile(rb"-?(?:0|[1-9]\d{0,17})")
#: Characters of the longest expression that is evaluated.
_LONGEST = 200
_WARP_SIZE = 32
_SIGN = 1 << 63

_BINARY: dict[bytes, tuple[int, Callable[[int, int], int]]] = {
    b"||": (1, lambda a, b: int(bool(a or b))),
    b"&&": (2, lambda a, b: int(bool(a and b))),
    b"|": (3, operator.or_),
    b"^": (4, operator.xor),
    b"&": (5, operator.and_),
    b"==": (6, operator.eq),
    b"!=": (6, operator.ne),
    b"<": (7, operator.lt),
    b"<=": (7, operator.le),
    b">": (7, operator.gt),
    b">=": (7, operator.ge),
    b"<<": (8, lambda a, b: a << b if 0 <= b < 64 else 0),
    b">>": (8, lambda a, b: a >> b if 0 <= b < 64 else 0),
    b"+": (9, operator.add),
    b"-": (9, operator.sub),
    b"*": (10, operator.mul),
    b"/": (10, lambda a, b: _divided(a, b)),
    b"%": (10, lambda a, b: a - b * _divided(a, b)),
}
_UNARY: dict[bytes, Callable[[int], int]] = {b"-": operator.neg, b"+": operator.pos, b"~": operator.invert, b"!": operator.not_}


@functools.lru_cache(maxsize=1 << 12)
def integer(text: bytes) -> int | None:
    """The value of an integer constant expression, -2**63..2**63-1; None where the text is not one."""
    if _SIMPLE.fullmatch(text):
        return int(text)
    if len(text) > _LONGEST:
        return None
    tokens: list[bytes] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return None
        tokens.append(match[1])
        place = match.end()
    try:
        value = _Expression(tokens).value()
    except (ValueError, ZeroDivisionError, RecursionError):
        return None
    return value


def floating(text: bytes) -> str:
    """``"f32"`` or ``"f64"`` for a floating-point constant, ``"0.0"`` for one of f64 without a set bit, ``""`` for anything else."""
    match = _FLOAT.fullmatch(text)
    if match is None or ((match[1] or match[2]) and text[:1] != b"0"):
        return ""
    return "f32" if match[1] else "0.0" if _ZERO.fullmatch(text) else "f64"


class _Expression:
    """Tokens of an expression, read by the precedence of their operators."""

    def __init__(self, tokens: list[bytes]) -> None:
        self._tokens = tokens
        self._place = 0

    def value(self) -> int:
        value = self._conditional()
        if self._place < len(self._tokens):
            raise ValueError
        return value

    def _next(self) -> bytes:
        if self._place == len(self._tokens):
            raise ValueError
        self._place += 1
        return self._tokens[self._place - 1]

    def _peek(self) -> bytes:
        return self._tokens[self._place] if self._place < len(self._tokens) else b""

    def _conditional(self) -> int:
        condition = self._binary(1)
        if self._peek() != b"?":
            return condition
        self._next()
        chosen = self._conditional()
        if self._next() != b":":
            raise ValueError
        other = self._conditional()
        return chosen if condition else other

    def _binary(self, least: int) -> int:
        left = self._unary()
        while self._peek() in _BINARY and (binary := _BINARY[self._peek()])[0] >= least:
            self._next()
            left = _wrapped(int(binary[1](left, self._binary(binary[0] + 1))))
        return left

    def _unary(self) -> int:
        token = self._next()
        if token in _UNARY:
            return _wrapped(int(_UNARY[token](self._unary())))
        if token.startswith(b"(") and token.endswith(b")"):  # a cast to signed or unsigned leaves the bits as they are
            return self._unary()
        if token == b"(":
            value = self._conditional()
            if self._next() != b")":
                raise ValueError
            return value
        if token == b"WARP_SZ":
            return _WARP_SIZE
        match = _LITERAL.fullmatch(token)
        if match is None:
            raise ValueError
        for digits, base in zip(match.groups(), (16, 2, 8, 10), strict=True):
            if digits is not None:
                return _wrapped(int(digits or b"0", base))
        raise ValueError


def _wrapped(value: int) -> int:
    return (value + _SIGN) % (2 * _SIGN) - _SIGN


def _divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
