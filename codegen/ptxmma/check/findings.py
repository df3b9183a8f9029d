"""What a check finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

#: ``error``: an assembler refuses it; ``warning``: undefined behaviour, or a form that the manual does not have; ``note``: advice.
Severity = Literal["error", "warning", "note"]

#: Characters of a source line that a finding keeps on each side of its place: lines may be as long as files.
_AROUND = 120


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to say about one place.

    Attributes:
        file: as it was named; ``"-"`` for standard input.
        line, column: where the token stands, both from 1; columns count characters (code points), a tab is one.
        severity: see :data:`Severity`.
        rule: what is broken: a key of :data:`ptxmma.check.rules.RULES`, ``"register-count"``.
        instruction: the opcode with its modifiers as it is written, ``""`` where the finding is about no instruction.
        message: one line of plain text, without the place.
        length: characters of the token, at least 1; it may go on beyond the end of the line.
        source: the line, cut to some hundred characters round the token where it is long; ``""`` where it is not at hand.
        caret: index of the token's first character in ``source``.
    """

    file: str
    line: int
    column: int
    severity: Severity
    rule: str
    instruction: str
    message: str
    length: int = 1
    source: str = ""
    caret: int = 0


class Findings(msgspec.Struct, frozen=True):
    """What a check says: the number of matrix instructions that were read, and the findings in the order of their places.

    Those of one place stand in the order of their severity, errors first.
    """

    instructions: int
    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def clean(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return all(found.severity == "note" for found in self.findings)


def excerpt(line: str, index: int) -> tuple[str, int]:
    """A line cut round its character ``index``, as :class:`Finding` has it: ``source`` and ``caret``."""
    start = max(0, index - _AROUND)
    return line[start : index + _AROUND], index - start
