"""What the operands of a statement are to an assembler: see :mod:`ptxmma.check.values`."""

from __future__ import annotations

import re

from ptxmma.check import constants
from ptxmma.check.reader import Token
from ptxmma.check.scopes import Scopes
from ptxmma.check.values import ADDRESS, ANYTHING, BROKEN, DOUBLE, FLOAT, NEGATED, SINK, UNDECLARED, UNREGISTERED, Scalar, Value

_NAME = re.compile(rb"[A-Za-z_$%][\w$%]*(?:\.\w+)?")
_NEGATED = re.compile(rb"!\s*([A-Za-z_$%][\w$%]*)")
_VECTOR = re.compile(r"v([248])\.(\w+)")
_CONSTANT_KINDS = {"f32": FLOAT, "f64": DOUBLE}


def values(operands: tuple[bytes, ...], registers: Scopes) -> tuple[Value, ...]:
    """The value of each operand of a statement, at the place to which ``registers`` went."""
    return tuple([_list(text, registers) if text.startswith(b"{") else _single(text, registers) for text in operands])


def elements(operand: Token) -> list[Token]:
    """The elements of a list in braces, or the operand itself."""
    if not operand.text.startswith(b"{"):
        return [operand]
    found = []
    place = operand.offset + 1
    for part in operand.text[1:-1].split(b","):
        found.append(Token(part.strip(), place + len(part) - len(part.lstrip())))
        place += len(part) + 1
    return found


def _list(text: bytes, registers: Scopes) -> Value:
    known = registers.known
    parts = text[1:-1].replace(b", ", b",").split(b",")
    kinds = tuple(map(known.__getitem__, parts))
    if "" in kinds:  # other blanks, constants
        return tuple([known[part] or _member(part, registers) for part in map(bytes.strip, parts)])
    return kinds


def _single(text: bytes, registers: Scopes) -> Value:
    kind = registers.known[text]
    if kind.startswith("v") and (vector := _VECTOR.fullmatch(kind)):
        return (vector[2],) * int(vector[1])
    if kind:
        return kind
    other = _other(text, registers)
    return UNREGISTERED if other == UNDECLARED and registers.unregistered(text) else other


def _member(text: bytes, registers: Scopes) -> Scalar:
    """The value of a list's member that is no register."""
    other = _other(text, registers)
    return (other == UNDECLARED and registers.unregistered(text)) or other


def _other(text: bytes, registers: Scopes) -> Scalar:
    """The value of what no register is named."""
    number = constants.integer(text) if text else None
    if number is not None:
        return number
    if text == b"_":
        return SINK
    if _NAME.fullmatch(text):
        return UNDECLARED
    if kind := constants.floating(text):
        return _CONSTANT_KINDS[kind]
    if match := _NEGATED.fullmatch(text):
        kind = registers.known[match[1]]
        return NEGATED if kind in ("pred", ANYTHING) else UNDECLARED if not kind else BROKEN
    return ADDRESS if text.startswith(b"[") and text.endswith(b"]") else BROKEN
