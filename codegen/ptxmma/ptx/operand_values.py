"""What assemblers look at of an operand, its *value*.

It is the type of a register (``"b32"``), the number of an integer constant, :data:`FLOAT` or :data:`DOUBLE` for other constants, one of
the other names below, or a tuple of these for a list in braces.
"""

from __future__ import annotations

import re

from ptxmma.ptx import literals
from ptxmma.ptx.lines import VECTOR
from ptxmma.ptx.scopes import Scopes
from ptxmma.ptx.statements import Token

FLOAT, DOUBLE = "constant f32", "constant f64"
UNDECLARED = "undeclared"  # a name without a declaration
SINK = "_"
NEGATED = "negated predicate"  # !%p
UNREGISTERED = "no register"  # a special register or a variable: in lists it has its type
ADDRESS = "address"  # [...]
BROKEN = "broken"  # text that cannot be read
ANYTHING = "anything"  # a placeholder, which fits everywhere

#: The type of a predicate.
PREDICATE = "pred"

Scalar = str | int
Value = Scalar | tuple[Scalar, ...]

_NAME = re.compile(rb"[A-Za-z_$%][\w$%]*(?:\.\w+)?")
_NEGATED = re.compile(rb"!\s*([A-Za-z_$%][\w$%]*)")
_VECTOR = re.compile(r"v([248])\.(\w+)")
_CONSTANT_KINDS = {"f32": FLOAT, "f64": DOUBLE}


def of_compact(text: str) -> Value:
    """The value of an operand as :func:`ptxmma.ptx.lines.compact` writes it: ``4f32``, ``{b32,f32}``, ``[b64]``, ``0``."""
    if text.startswith("["):
        return ADDRESS
    if text.startswith("{"):
        return tuple(map(_compact_scalar, text[1:-1].split(",")))
    match = VECTOR.fullmatch(text)
    return (match[2],) * int(match[1]) if match else _compact_scalar(text)


def _compact_scalar(text: str) -> Scalar:
    number = literals.integer(text.encode())
    return _CONSTANT_KINDS.get(literals.floating(text.encode()), text) if number is None else number


def values(operands: tuple[bytes, ...], registers: Scopes) -> tuple[Value, ...]:
    """The value of each operand of a statement, at the place to which ``registers`` went."""
    return tuple([_list(text, registers) if text.startswith(b"{") else _single(text, registers) for text in operands])


def elements(operand: Token) -> list[Token]:
    """The elements of a list in braces, or the operand itself."""
    if not operand.text.startswith(b"{"):
        return [operand]
    tokens = []
    place = operand.offset + 1
    for part in operand.text[1:-1].split(b","):
        tokens.append(Token(part.strip(), place + len(part) - len(part.lstrip())))
        place += len(part) + 1
    return tokens


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
    """The value of a list element that is not a register."""
    other = _other(text, registers)
    return (other == UNDECLARED and registers.unregistered(text)) or other


def _other(text: bytes, registers: Scopes) -> Scalar:
    """The value of what is not the name of a register."""
    number = literals.integer(text) if text else None
    if number is not None:
        return number
    if text == b"_":
        return SINK
    if _NAME.fullmatch(text):
        return UNDECLARED
    if kind := literals.floating(text):
        return _CONSTANT_KINDS[kind]
    if match := _NEGATED.fullmatch(text):
        kind = registers.known[match[1]]
        return NEGATED if kind in ("pred", ANYTHING) else UNDECLARED if not kind else BROKEN
    return ADDRESS if text.startswith(b"[") and text.endswith(b"]") else BROKEN
