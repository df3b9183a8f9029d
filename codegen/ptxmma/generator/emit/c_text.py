"""How names and text of the spec become C: identifiers, macro names, string literals and comments that cannot be broken out of."""

from __future__ import annotations

import re
import textwrap

#: Columns of a generated line.
WIDTH = 100

_NOT_A_WORD = re.compile(r"\W", re.ASCII)


def identifier(name: str) -> str:
    """A name as part of an identifier: ``sp::ordered_metadata`` becomes ``sp__ordered_metadata``."""
    return _NOT_A_WORD.sub("_", name)


def macro(name: str) -> str:
    """A name as part of a macro or an enumerator: ``wgmma_m64nNk16_a_b16`` becomes ``WGMMA_M64NNK16_A_B16``."""
    return identifier(name).upper()


def string(text: str) -> str:
    """A string literal, in quotes; whatever is not plain ASCII is spelt in octal, and no trigraph can arise."""
    return '"' + "".join(_character(byte) for byte in text.encode("utf-8")) + '"'


def _character(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':
        return "\\" + character
    return character if " " <= character <= "~" else f"\\{byte:03o}"


def comment(text: str) -> str:
    """Text inside ``/* … */``: it cannot end the comment, begin another, or hide its end behind invisible characters."""
    visible = "".join(character if character.isprintable() else " " for character in text)
    return visible.replace("*/", "* /").replace("/*", "/ *")


def paragraph(text: str, indent: str = " * ") -> list[str]:
    """Text as lines of a comment block."""
    return textwrap.wrap(comment(text), WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
