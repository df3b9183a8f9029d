"""Mends files: replaces the tokens of findings that have a fix."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ptxmma.check.findings import Finding

#: A fix may show what else there is to mend; nothing takes more rounds than this.
MOST_ROUNDS = 5


def fixable(finding: Finding, *, unsafe: bool) -> bool:
    """Return whether a finding has a fix: one that keeps the meaning, or any if ``unsafe``."""
    return finding.fix is not None and (finding.fix.safe or unsafe)


def fixed(text: bytes, findings: Iterable[Finding]) -> tuple[bytes, int]:
    """A file's text with the fixes of findings, and how many there are.

    A fix is left out where the text does not have the token as the checker read it, because an escape or the border of two literals
    divides it, and where another fix changes the same line after it.
    """
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    count = 0
    borders: dict[int, int] = {}  # for each changed line, the column from which on it is changed
    for finding in sorted(findings, key=lambda finding: (finding.line, finding.column), reverse=True):
        line, start = finding.line - 1, finding.column - 1
        if finding.fix is None or line >= len(lines):
            continue
        stop = start + len(finding.fix.old)
        if lines[line][start:stop] == finding.fix.old and stop <= borders.get(line, stop):
            lines[line] = lines[line][:start] + finding.fix.new + lines[line][stop:]
            borders[line] = start
            count += 1
    return "\n".join(lines).encode("utf-8", "surrogateescape"), count


def rewrite(file: str, text: bytes) -> None:
    """Replace a file as a whole, or leave it as it is; one with several names is written in place, so that all of them show the change.

    Raises:
        OSError: it cannot be written.
    """
    path = Path(file).resolve()
    if path.stat().st_nlink > 1:
        path.write_bytes(text)
        return
    import shutil  # files are seldom mended
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text)
        shutil.copymode(path, name)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
