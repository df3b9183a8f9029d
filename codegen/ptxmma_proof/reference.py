"""Finds the examples in the text of a reference, and takes them apart.

A reference is a directory of Markdown or plain text.  Its code is fenced, indented by four columns, or follows a line that says ``ptx``
(the label of a code block in the text of a web page).  A block of code often has several examples, each with declarations of its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ptxmma.ptx import lines as ptx

_HEADING = re.compile(r"#*\s*(\d+(?:\.\d+)+)\.?\s+\S")
_FENCE = "```"
_LABEL = "ptx"
_INDENT = " " * 4
#: The text that ends code below a label: prose, a heading.
_PROSE = re.compile(r"[A-Z#\d]")
#: A line of a syntax section: the values of a qualifier, or a qualifier that may be left out.
_PATTERN = re.compile(r"^\s*\.\w+\s*=|\{\s*\.", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ELLIPSIS = re.compile(r"^[ \t]*\.\.\.[ \t]*$", re.MULTILINE)
_DECLARATION = re.compile(r"\.reg\s+\.(\w+)\s+(.*?)(?=\.reg|$)", re.DOTALL)
_DECLARED = re.compile(r"([%\w$]+)(?:<(\d+)>)?")
#: A name: of a register or of a number.
NAME = re.compile(r"(?<![\w$%])[%A-Za-z_$][\w$]*")


class NoExamplesError(ValueError):
    """The directory has no example of a matrix instruction."""


class Statement(NamedTuple):
    """One instruction of an example.

    Attributes:
        spelling: opcode and modifiers.
        operands: the texts of its operands; braces hold one together.
    """

    spelling: str
    operands: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names among its operands, each once."""
        return names(" ".join(self.operands))

    def __str__(self) -> str:
        return ptx.line(self.spelling, self.operands)


class Example(NamedTuple):
    """One example as it is printed.

    Attributes:
        section: number of the section that has it.
        ordinal: its number among the examples of the section, from 1.
        text: its lines, without blank ones.
    """

    section: str
    ordinal: int
    text: str

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return len(self.text.splitlines())

    @property
    def sha256(self) -> str:
        """The first 16 digits of a digest of its text, whatever its spaces."""
        squeezed = (" ".join(line.split()) for line in self.text.splitlines())
        return hashlib.sha256("\n".join(squeezed).encode()).hexdigest()[:16]

    @property
    def whole(self) -> str:
        """Its text without the dots for what is not printed; its lines keep their numbers."""
        return _ELLIPSIS.sub("", self.text)

    @property
    def declared(self) -> dict[str, str]:
        """The registers that it declares, with their types; faulty declarations are read as intended."""
        banks: dict[str, str] = {}
        for part in self._parts():
            for bank, rest in _DECLARATION.findall(part):
                for name, count in _DECLARED.findall(rest):
                    banks |= {f"{name}{number}": bank for number in range(int(count))} if count else {name: bank}
        return banks

    @property
    def statements(self) -> list[Statement]:
        """Its instructions in their order."""
        split = [ptx.split(part) for part in self._parts() if not part.startswith(".")]
        return [Statement(spelling, tuple(operands)) for spelling, operands in split]

    def _parts(self) -> Iterator[str]:
        for part in _COMMENT.sub("", self.whole).split(";"):
            if part.strip():
                yield " ".join(part.split())


def names(text: str) -> list[str]:
    """The names in a text of operands, each once."""
    return list(dict.fromkeys(NAME.findall(text)))


def find(reference: Path, opcodes: Iterable[str]) -> list[Example]:
    """Every example with one of some instructions, in the order of the files and of their lines.

    An example that a second file has too, in the same section, is listed once.  Syntax sections are not examples, where they have
    qualifiers to choose.

    Args:
        reference: directory of text files.
        opcodes: the first words of the instructions' spellings: ``"mma"``.

    Raises:
        NoExamplesError: the directory has no such example.
        OSError: a file cannot be read.
    """
    wanted = re.compile(rf"^\s*(?:{'|'.join(map(re.escape, sorted(opcodes)))})(?!\w)[^;]*;", re.MULTILINE)
    by_section: dict[str, list[Example]] = {}
    for path in sorted(reference.glob("*")):
        if path.is_file():
            before = {(section, example.sha256) for section, examples in by_section.items() for example in examples}
            for section, block in blocks(path.read_text(encoding="utf-8", errors="replace")):
                if _PATTERN.search(block) or not wanted.search(block):
                    continue
                for text in _apart(block):
                    example = Example(section, len(by_section.get(section, ())) + 1, text)
                    if wanted.search(text) and (section, example.sha256) not in before:
                        by_section.setdefault(section, []).append(example)
    if not by_section:
        raise NoExamplesError(f"{reference}: no example of a matrix instruction; give a directory with the sections of the PTX ISA as text")
    return [example for examples in by_section.values() for example in examples]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The blocks of code in a text, each with the number of its section."""
    section, mode, block = "", "", list[str]()
    for raw in [*text.splitlines(), "END"]:
        line = raw.lstrip(" >") if mode == _FENCE else raw
        bare = raw.strip(" >")
        ends = (
            bare.startswith(_FENCE)
            if mode == _FENCE
            else _PROSE.match(raw)
            if mode == _LABEL
            else (bool(bare) and not raw.startswith(_INDENT)) or bare.startswith(_FENCE)
        )
        if not ends:
            block.append(line)
            continue
        if any(map(str.strip, block)):
            yield section, "\n".join(block)
        block = []
        opens = bare.startswith(_FENCE) and mode != _FENCE
        mode = _FENCE if opens else _LABEL if bare == _LABEL else ""
        if not mode and (heading := _HEADING.match(raw)):
            section = heading[1]


def _apart(block: str) -> Iterator[str]:
    """The examples of a block: declarations after an instruction begin another one, with the comments right above them."""
    lines: list[str] = []
    begun = 0  # how many of the lines there are up to the last one with an instruction
    for line in filter(str.strip, block.splitlines()):
        bare = _COMMENT.sub("", line).strip()
        if begun and bare.startswith(".reg"):
            yield "\n".join(lines[:begun])
            lines, begun = lines[begun:], 0
        lines.append(line)
        if bare and not bare.startswith("."):
            begun = len(lines)
    yield "\n".join(lines)
