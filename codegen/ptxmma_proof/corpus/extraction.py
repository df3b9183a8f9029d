"""Finds the matrix instructions in a module that a compiler wrote.

Comments and declarations are read by the checker's own reader.  Statements are not: every piece of a module must match a rule here, so that
an instruction that the checker overlooks is counted all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.roles import register
from ptxmma.ptx import lines as ptx
from ptxmma.ptx import tokens
from ptxmma.ptx.scopes import Scopes

#: Lines and sections without instructions.
_SKIPPED = r"\.(?:file|loc|address_size)\b[^\n]*|\.section\b[^{]*\{[^}]*\}"
_PARTS = re.compile(
    rf"""\s*(?:
      \.version\s+(?P<version>[\d.]+)
    | \.target\s+(?P<target>\w+)[^\n]*
    | {_SKIPPED}
    | \.reg\s[^;]*;
    | [{{}}]
    | [\w$%]+\s*:(?!:)                                                # a label
    | (?:@!?[\w$%]+\s+)?(?P<opcode>[a-z][\w.:]*)(?P<operands>[^;]*);  # a statement
    | \.[^;{{=]*(?:=[^;]*;|;|(?=\{{))                                 # a directive, up to its end or its body
    )""",
    re.VERBOSE,
)
_NAME = re.compile(r"(?<![\w$%])[%$_A-Za-z][\w$]*")


class Found(NamedTuple):
    """A matrix instruction.

    Attributes:
        offset: the offset of its opcode in the text.
        line: the instruction with its registers renamed by the types that they are declared with, see :mod:`ptxmma.ptx.lines`.
        names: the names that its registers have in the text, by those in ``line``.
    """

    offset: int
    line: str
    names: Mapping[str, str]

    def named(self, line: str) -> str | None:
        """Another line with the names of the text; None if it has a register that this one lacks."""
        used = set(_NAME.findall(ptx.line("", ptx.split(line)[1])))
        return _NAME.sub(lambda match: self.names.get(match[0], match[0]), line) if used <= self.names.keys() else None


class Module(NamedTuple):
    """A module: its version, its target and its matrix instructions."""

    version: str
    target: str
    instructions: tuple[Found, ...]


class UnreadableError(ValueError):
    """The text is not a module as compilers write them."""


def module(text: str, stems: Sequence[str]) -> Module:
    """The matrix instructions of a module.

    Args:
        text: the text of the module.
        stems: the beginnings of the wanted instructions: ``"mma"``, ``"fence.proxy.async"``.

    Raises:
        UnreadableError: no rule reads a piece of the text; the message shows it.
    """
    data = text.encode("latin-1", "replace")  # a byte for each character
    code = b"".join(clean for _, clean in tokens.cleaned([data]))
    registers = Scopes(code)
    said = {"version": "", "target": ""}
    instructions = []
    for part in _parts(code.decode("latin-1")):
        if part["opcode"] and begins(part["opcode"], stems):
            instructions.append(_found(part, registers.at(part.start("opcode"))))
        said |= {name: part[name] for name in said if part[name]}
    return Module(said["version"], said["target"], tuple(instructions))


def stems(catalog: Catalog) -> list[str]:
    """The beginnings of our instructions: the name of a family of one word, or an opcode."""
    families = {entry.family for entry in catalog.database.spec.instructions}
    opcodes = {entry.opcode or entry.syntax.split(".")[0] for entry in catalog.database.spec.instructions}
    return sorted({first if (first := opcode.split(".")[0]) in families else opcode for opcode in opcodes})


def begins(spelling: str, stems: Sequence[str]) -> bool:
    """Return whether an instruction begins with one of the stems."""
    return any(spelling == stem or spelling.startswith(f"{stem}.") for stem in stems)


def _parts(text: str) -> Iterator[re.Match[str]]:
    place, end = 0, len(text.rstrip())
    while place < end:
        part = _PARTS.match(text, place)
        if part is None:
            raise UnreadableError(f"cannot read {text[place : place + 80].strip()!r}")
        yield part
        place = part.end()


def _found(part: re.Match[str], registers: Scopes) -> Found:
    """The instruction with its registers named by type and numbered in order of appearance."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def renamed(match: re.Match[str]) -> str:
        if match[0] not in names:
            bank = registers.known[match[0].encode("latin-1")]
            names[match[0]] = register(bank, counts.get(bank, 0)) if bank else match[0]
            counts[bank] = counts.get(bank, 0) + 1
        return names[match[0]]

    line = ptx.line(part["opcode"], [_NAME.sub(renamed, text) for text in _operands(part["operands"])])
    return Found(part.start("opcode"), line, {given: name for name, given in names.items()})


def _operands(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", item).replace("{ ", "{").replace(" }", "}") for item in ptx.items(text)]


def rewritten(text: str, changes: Mapping[int, str]) -> str:
    """A text in which statements are replaced, each from its offset to the next semicolon."""
    parts, place = [], 0
    for offset, statement in sorted(changes.items()):
        parts += [text[place:offset], statement]
        place = text.index(";", offset) + 1
    return "".join([*parts, text[place:]])
