"""Names, texts and conditions of the spec in C.

Identifiers, macro names, string literals, comments that cannot be broken out of, and expressions over a struct of the facts that
conditions test.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from ptxmma.catalog.names.cplusplus import part_of_name
from ptxmma.model import Condition

#: A name as part of an identifier.
identifier = part_of_name
#: Columns of a generated line of text; code and formulas may be longer.
WIDTH = 100

_NOT_PLAIN = re.compile(rb"[^ !#->@-\[\]-~]")


def macro(name: str) -> str:
    """A name as part of a macro or an enumerator: ``wgmma_m64nNk16_a_b16`` becomes ``WGMMA_M64NNK16_A_B16``."""
    return identifier(name).upper()


def string(text: str) -> str:
    """A string literal, in quotes; quotes, backslashes, ``?`` (trigraphs) and all but printable ASCII are spelt in octal."""
    plain = _NOT_PLAIN.sub(lambda match: b"\\%03o" % match[0][0], text.encode("utf-8"))
    return f'"{plain.decode("ascii")}"'


def comment(text: str) -> str:
    """Text inside ``/* … */``: it cannot end the comment, begin another, form a trigraph or hide by invisible characters."""
    visible = text if text.isprintable() else "".join(character if character.isprintable() else " " for character in text)
    return visible.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def paragraph(text: str) -> list[str]:
    """Text as lines inside a block comment."""
    return [f" * {line}" for line in textwrap.wrap(comment(text), WIDTH - 3, break_long_words=False, break_on_hyphens=False)]


def listing(items: Iterable[str]) -> list[str]:
    """Definitions as indented lines inside a block comment, as many on a line as fit; none is broken."""
    lines: list[str] = []
    for item in map(comment, items):
        if lines and len(lines[-1]) + len(item) + 2 <= WIDTH:
            lines[-1] += f", {item}"
        else:
            lines.append(f" *     {item}")
    return lines


#: The function that writes a value of a fact in C.
Write = Callable[[str], str]
#: The C expression of a fact, and the function that writes its values.
Fact = tuple[str, Write]


def any_of(conditions: Sequence[Condition], facts: Mapping[str, Fact]) -> str:
    """An expression that is true where any of the conditions holds; ``1`` for an empty list.

    Args:
        conditions: conditions of the spec.
        facts: the C expression of each fact, and the function that writes its values.
    """
    return _joined((all_of(condition, facts) for condition in conditions), " || ") or "1"


def all_of(condition: Condition, facts: Mapping[str, Fact]) -> str:
    """An expression that is true where each fact of a condition has one of its values."""
    return _joined((among(*facts[key], values) for key, values in condition.items()), " && ")


def among(expression: str, write: Write, values: Iterable[str | int]) -> str:
    """An expression that is true where a fact has one of some values."""
    return _joined((f"{expression} == {value if isinstance(value, int) else write(value)}" for value in values), " || ")


def _joined(parts: Iterable[str], operator: str) -> str:
    """Parts under one operator, each in parentheses where it has another."""
    every = list(parts)
    if len(every) == 1:
        return every[0]
    return operator.join(f"({part})" if " || " in part or " && " in part else part for part in every)
