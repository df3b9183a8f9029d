"""The *value* of an operand: what assemblers judge it by.

It is the type of a register (``"b32"``), the state space of a variable with a dot (``".shared"``), the number of an integer constant, one
of :data:`FLOATING` for other constants, one of the other names below, a tuple of these for a list in braces or a pair, an
:class:`Address`, or :class:`Several` operands in brackets.
"""

from __future__ import annotations

import functools
import math
import re

import msgspec

from ptxmma.ptx import literals
from ptxmma.ptx.lines import VECTOR, items
from ptxmma.ptx.scopes import Scopes
from ptxmma.ptx.statements import OPERAND, Token

FLOAT, DOUBLE = "constant f32", "constant f64"
ZERO = "constant f64 0.0"  # all of its bits are 0, as all bits of the f32 are
FLOATING = frozenset({FLOAT, DOUBLE, ZERO})
UNDECLARED = "undeclared"  # a name without a declaration
SINK = "_"
NEGATED = "negated predicate"  # !%p
UNREGISTERED = "no register"  # a special register, or a member of a variable: in lists it has its type
BROKEN = "broken"  # text that cannot be read
ANYTHING = "anything"  # a placeholder, which fits everywhere

#: The type of a predicate.
PREDICATE = "pred"

#: The largest alignment in bytes that is distinguished from larger ones.
ALIGNED = 128


class Address(msgspec.Struct, frozen=True):
    """An address in brackets.

    Attributes:
        base: the type of its register, the state space of its variable with a dot (``".shared"``), a constant's number, or a name above.
        offset: the largest power of two up to :data:`ALIGNED` that divides its offset in bytes.
        aligned: the alignment with which its variable is declared, in bytes; 0 for a register.
    """

    base: str | int
    offset: int = ALIGNED
    aligned: int = 0


Scalar = str | int


class Several(msgspec.Struct, frozen=True):
    """An address with more operands in its brackets: ``[tensorMap, {x, y}]``.

    Attributes:
        parts: the value of each, the address first.
    """

    parts: tuple[Value, ...]


Value = Scalar | tuple[Scalar, ...] | Address | Several

_NAME = re.compile(rb"[A-Za-z_$%][\w$%]*(?:\.\w+)?")
_WORDS = re.compile(rb"[A-Za-z_$%][\w$%]*")
_NEGATED = re.compile(rb"!\s*([A-Za-z_$%][\w$%]*)")
_VECTOR = re.compile(r"v([248])\.(\w+)")
_ADDRESS = re.compile(rb"\[\s*([A-Za-z_$%][\w$%]*)\s*(?:\+([^\[\]]*))?\]")
_SUM = re.compile(rb"([A-Za-z_$%][\w$%]*)\s*\+(.*)", re.DOTALL)
_CONSTANT_KINDS = {"f32": FLOAT, "f64": DOUBLE, "0.0": ZERO}


def of_compact(text: str) -> Value:
    """The value of an operand as :func:`ptxmma.ptx.lines.compact` writes it: ``4f32``, ``{b32,f32}``, ``[b64]``, ``pred|pred``, ``0``."""
    if text.startswith("["):
        address, *others = items(text[1:-1])
        made = Address(_compact_scalar(address))
        return Several((made, *map(of_compact, others))) if others else made
    if text.startswith("{"):
        return tuple(map(_compact_scalar, text[1:-1].split(",")))
    if "|" in text:
        return tuple(map(_compact_scalar, text.split("|")))
    match = VECTOR.fullmatch(text)
    return (match[2],) * int(match[1]) if match else _compact_scalar(text)


def _compact_scalar(text: str) -> Scalar:
    number = literals.integer(text.encode())
    return _CONSTANT_KINDS.get(literals.floating(text.encode()), text) if number is None else number


def values(operands: tuple[bytes, ...], registers: Scopes) -> tuple[Value, ...]:
    """The value of each operand of a statement, at the place to which ``registers`` went."""
    return tuple([_several(text, registers) if text.startswith(b"{") or b"|" in text else _single(text, registers) for text in operands])


def element_texts(operand: bytes) -> list[bytes]:
    """The texts of :func:`elements`."""
    if operand.startswith(b"{"):
        return [part.strip() for part in operand[1:-1].split(b",")]
    return [token.text for token in elements(Token(operand, 0))]


def elements(operand: Token) -> list[Token]:
    """The elements of a list in braces, the base of an address, both of an address with a list, or the operand itself."""
    if base := _ADDRESS.match(operand.text):
        return [Token(base[1], operand.offset + base.start(1))]
    if operand.text.startswith(b"[") and b"," in operand.text:
        parts = OPERAND.finditer(operand.text, 1, len(operand.text) - 1)
        return [each for part in parts for each in elements(Token(part[0].strip(), operand.offset + part.start()))]
    if not operand.text.startswith(b"{"):
        return [operand]
    tokens = []
    place = operand.offset + 1
    for part in operand.text[1:-1].split(b","):
        tokens.append(Token(part.strip(), place + len(part) - len(part.lstrip())))
        place += len(part) + 1
    return tokens


def _several(text: bytes, registers: Scopes) -> Value:
    if not text.startswith(b"{"):
        return tuple([registers.known[part] or _member(part, registers) for part in map(bytes.strip, text.split(b"|"))])
    if alike := registers.alike(text):
        return alike
    known = registers.known
    parts = [*map(bytes.strip, text[1:-1].split(b","))]
    kinds = tuple(map(known.__getitem__, parts))
    if "" in kinds:  # constants
        return tuple([known[part] or _member(part, registers) for part in parts])
    return kinds


def _single(text: bytes, registers: Scopes) -> Value:
    if text.startswith(b"["):
        return _in_brackets(text, registers) if b"," in text else _address(text, registers)
    kind = registers.known[text]
    if kind.startswith("v") and (vector := _VECTOR.fullmatch(kind)):
        return (vector[2],) * int(vector[1])
    if kind:
        return kind
    other = _other(text, registers)
    summands = _SUM.fullmatch(text) if other == BROKEN else None
    summed = summands is not None and literals.integer(summands[2].strip()) is not None
    name = summands[1] if summands and summed else text
    if (other == UNDECLARED or summed) and (variable := registers.variable(name)):
        return f".{variable.space}" if variable.space else ANYTHING
    if summed:
        return registers.known[name] or (ANYTHING if registers.unregistered(name) else UNDECLARED)
    return UNREGISTERED if other == UNDECLARED and registers.unregistered(text) else other


def _in_brackets(text: bytes, registers: Scopes) -> Several:
    """The values of several operands in brackets: here assemblers take no offset with the address."""
    address, *others = map(bytes.strip, OPERAND.findall(text[1:-1])) or [b""]
    first = _address(b"[%b]" % address, registers) if _NAME.fullmatch(address) else _made(BROKEN)
    return Several((first, *values(tuple(others), registers)))


def _address(text: bytes, registers: Scopes) -> Address:
    """The value of an address: assemblers take a register or a variable, and after a plus sign a constant offset."""
    base, offset = _parts(text)
    kind = registers.known[base]
    if kind == ANYTHING:
        return _made(ANYTHING)
    if not offset:  # PTX has no such address, unless something in it is unknown
        unknown = any(registers.known[word] == ANYTHING for word in _WORDS.findall(text))
        number = literals.integer(text[1:-1].strip())
        return _made(ANYTHING if unknown else BROKEN if number is None else number)
    if not kind and (variable := registers.variable(base)):
        return _made(f".{variable.space}", offset, variable.alignment) if variable.space else _made(ANYTHING)
    return _made(kind or registers.unregistered(base) or UNDECLARED, offset)


@functools.lru_cache(maxsize=1 << 12)
def _parts(text: bytes) -> tuple[bytes, int]:
    """The name in an address and the power of two that divides its offset; 0 where it is not a name and a constant."""
    match = _ADDRESS.fullmatch(text)
    offset = 0 if match and match[2] is None else literals.integer(match[2].strip()) if match else None
    return (b"", 0) if match is None or offset is None else (match[1], math.gcd(offset, ALIGNED))


_made = functools.lru_cache(maxsize=1 << 10)(Address)


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
    return BROKEN
