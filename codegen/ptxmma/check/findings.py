"""The findings of a check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

#: ``error``: an assembler refuses it; ``warning``: undefined behaviour, an undocumented form, or a probable mistake; ``note``: advice.
Severity = Literal["error", "warning", "note"]


class Fix(msgspec.Struct, frozen=True):
    """The repair of a finding's token.

    Attributes:
        old: the token.
        new: the text that replaces it.
        safe: whether the meaning stays the same; otherwise the author must know that it is right.
    """

    old: str
    new: str
    safe: bool = True


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A remark about a place in a file.

    Attributes:
        file: its name as given; ``"-"`` for standard input.
        line, column: the place of the token, both from 1; columns count characters (code points), a tab is one.
        severity: see :data:`Severity`.
        rule: the rule that is broken: a key of :data:`ptxmma.check.rules.RULES`, ``"register-count"``.
        instruction: the opcode and its modifiers as written; ``""`` if the finding is not about an instruction.
        message: one line of plain text, without the place.
        length: characters of the token, at least 1; it may go on beyond the end of the line.
        source: the line, cut to a few hundred characters around the token if it is long; ``""`` where it is not available.
        caret: index of the token's first character in ``source``.
        fix: the repair; None where there is no mechanical one.
        cause: the same for all findings of a module that one wrong ``.target`` or ``.version`` causes; ``""`` for all others.
        ignored: the rules that comments on its line name, ``// ptxmma: ignore[rule]``, known or not; ``""`` for a comment that names none.
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
    fix: Fix | None = None
    cause: str = ""
    ignored: tuple[str, ...] = ()


class Findings(msgspec.Struct, frozen=True):
    """The result of a check.

    Attributes:
        instructions: the number of matrix instructions that were judged.
        findings: ordered by place, and at the same place by severity, errors first.
        uncovered: the number of matrix instructions that were not judged, because a macro, a template or an expression completes them.
        hidden: the number of notes that are only counted.
        repeated: the number of findings that are left out because an earlier one has the same cause.
    """

    instructions: int
    findings: tuple[Finding, ...]
    uncovered: int = 0
    hidden: int = 0
    repeated: int = 0

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def clean(self) -> bool:
        """True if there is neither an error nor a warning."""
        return all(finding.severity == "note" for finding in self.findings)
