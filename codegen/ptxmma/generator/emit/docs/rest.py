"""reStructuredText: escaping, tables and the small phrases that pages are made of.

Whatever comes from the spec passes through :func:`text` or :func:`code` before it gets to a page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ptxmma.catalog.evidence.witnesses import Run
from ptxmma.catalog.summaries.listing import runs
from ptxmma.matrices import pictures
from ptxmma.model import Condition

#: Characters that could be markup: ``_`` ends a reference only at the end of a word, ``:`` matters before text or at the end.
_MARKUP = re.compile(r"[\\`*|]|_(?![A-Za-z0-9])|:(?=\S|$)")
#: Text that starts a list, a directive, a field, a doctest … at the start of a line; a line of nothing but punctuation underlines.
_STARTS_BLOCK = re.compile(r"[-+*\u2022\u2023\u2043]( |$)|\.\.|__|>>>|[:|/]|-|\(?(\w|#|[ivxlcdmIVXLCDM]+|\d+)[.)]( |$)|[^\w\s]+$")
#: The mark of an empty cell.
NOTHING = "\u2013"
#: A multiplication sign that does not break from its factors.
TIMES = pictures.TIMES
#: A space at which no line breaks.
SPACE = "\u00a0"
#: A place inside a word at which a line may break.
SOFT_BREAK = "\u200b"
#: The places in a cell at which a line is indented; blank lines stay empty.
_BREAK, _INDENTED = re.compile(r"\n(?=[^\n])"), "\n   "
_SECTION = re.compile(r"\d+(\.\d+)+(, Table \d+)?")


def text(plain: str) -> str:
    """``plain`` as running text that means exactly itself, anywhere on a line."""
    escaped = _MARKUP.sub(r"\\\g<0>", plain)
    return rf"\ {escaped}" if _STARTS_BLOCK.match(plain) else escaped


def code(plain: str) -> str:
    """``plain`` as literal text; what literals cannot hold is escaped instead."""
    if not plain or "`" in plain or plain != plain.strip() or plain.endswith("\\"):
        return text(plain)
    return f"``{plain}``"


def codes(items: Iterable[str]) -> str:
    """Several literals."""
    return ", ".join(map(code, items))


def link(shown: str, label: str) -> str:
    """A reference to a label."""
    return f":ref:`{text(shown).replace('<', chr(92) + '<')} <{label}>`"


def label(*parts: str) -> str:
    """The name of a label made of names of the spec."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in parts)


def source(where: str) -> str:
    """The source of a fact: a section of the manual, or the tool or chip that showed it."""
    return f"§{where}" if _SECTION.fullmatch(where) else text(where)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table; cells are reStructuredText and may have several lines.  No rows, no table."""
    lines = [_row(row) for row in rows]
    if not lines:
        return ""
    classes = f"   :class: {kind}\n" if kind else ""
    return f".. csv-table::\n   :header-rows: 1\n   :widths: auto\n{classes}\n{_row(header)}{''.join(lines)}"


def _row(cells: Sequence[str]) -> str:
    quoted = ",".join(f'"{_BREAK.sub(_INDENTED, cell)}"' for cell in (cell.replace('"', '""') for cell in cells))
    return f"   {quoted}\n"


def dense(header: Sequence[str], rows: Iterable[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that no row fills; single empty cells get a dash."""
    body = list(rows)
    filled = [column for column in range(len(header)) if any(row[column] for row in body)]
    return [header[column] for column in filled], [[row[column] or NOTHING for column in filled] for row in body]


def bullets(items: Iterable[str]) -> str:
    """A bullet list."""
    return "".join(f"- {item}\n" for item in items)


def totals(run: Run | None) -> dict[str, str]:
    """The totals of a witness, with a dash for a total that it lacks; empty without a run."""
    return defaultdict(lambda: NOTHING, {name: f"{count:,}" for name, count in run.totals.items()}) if run else {}


def condition(of: Sequence[Condition]) -> str:
    """The condition of a rule, in words: qualifiers and numbers with their values."""
    return "; or ".join(" and ".join(f"{code(name)} is {_alternatives(name, values)}" for name, values in part.items()) for part in of)


def _alternatives(name: str, values: Sequence[str | int]) -> str:
    """The values of a qualifier; one that is named like its only value is there or not."""
    words = {"": "absent", name: "present"}
    shown = [words[value] if isinstance(value, str) and value in words else code(str(value)) for value in values]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def numbers(values: Iterable[int]) -> str:
    """Numbers as people write them: ``0..3``, ``8..256 step 8``, ``-1, 1``."""
    return ", ".join(
        ", ".join(map(str, run)) if len(run) < 3 else f"{run[0]}..{run[-1]}" + (f" step {run.step}" if run.step != 1 else "")
        for run in runs(values)
    )
