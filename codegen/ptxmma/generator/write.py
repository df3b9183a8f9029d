"""Stage 6, write: (path, text) pairs -> files; nothing is half-written, and only what changed is touched.

Checking is the same path with the disk off: :func:`compare` finds what differs, :func:`write` carries it out.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ptxmma.generator.emit import Output

#: Lines of difference shown for one file.
_LONGEST_DIFF = 40


class Change(NamedTuple):
    """One file that is not as it should be."""

    path: str
    state: str  # "missing", "stale" or "orphaned"
    old: str
    new: str

    def diff(self) -> str:
        """A unified diff from what is there to what should be, cut where it grows long."""
        names = f"{self.path} (now)", f"{self.path} (generated)"
        lines = list(difflib.unified_diff(self.old.splitlines(), self.new.splitlines(), *names, lineterm=""))
        if len(lines) > _LONGEST_DIFF:
            lines = [*lines[:_LONGEST_DIFF], f"... and {len(lines) - _LONGEST_DIFF} more lines"]
        return "\n".join(lines)


def compare(outputs: Iterable[Output], root: Path, owned: Iterable[str]) -> list[Change]:
    """How the files below ``root`` differ from ``outputs``; files in the ``owned`` folders that no output has are orphaned."""
    changes: list[Change] = []
    expected: set[str] = set()
    for output in outputs:
        if output.path in expected:
            raise ValueError(f"two outputs claim {output.path}")
        expected.add(output.path)
        old = _read(root / output.path)
        new = output.text
        if output.section:
            if old is None:
                continue  # a part of a hand-written file: without the file there is no place for it
            new = _spliced(old, output)
        if old != new:
            changes.append(Change(output.path, "missing" if old is None else "stale", old or "", new))
    for folder in owned:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and name not in expected and not _ignored(path):
                changes.append(Change(name, "orphaned", path.read_bytes().decode("utf-8", errors="replace"), ""))
    return changes


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _spliced(old: str, output: Output) -> str:
    """The file with the output in its section; a file without that section stays as it is."""
    begin, end = f"<!-- begin {output.section} -->\n", f"<!-- end {output.section} -->"
    before, found, rest = old.partition(begin)
    _, closed, after = rest.partition(end)
    return before + begin + output.text + end + after if found and closed else old


def _ignored(path: Path) -> bool:
    """What tools leave beside generated files and git ignores."""
    return "__pycache__" in path.parts or path.suffix in (".pyc", ".sqlite")


def write(changes: Iterable[Change], root: Path) -> None:
    """Carry out changes.

    All new texts are first written beside their targets and then renamed, so that no reader and no interruption ever sees half
    a file, and a directory that cannot be written to leaves everything as it was.

    Raises:
        OSError: a place that cannot be written to; nothing has changed then.
    """
    staged: list[tuple[str, Path]] = []
    orphans: list[Path] = []
    try:
        for change in changes:
            target = root / change.path
            if change.state == "orphaned":
                orphans.append(target)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            staged.append((name, target))
            with os.fdopen(handle, "wb") as file:
                file.write(change.new.encode("utf-8"))
            os.chmod(name, 0o644)
    except BaseException:
        for name, _ in staged:
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise
    for name, target in staged:
        os.replace(name, target)
    for target in orphans:
        target.unlink()
        with contextlib.suppress(OSError):
            target.parent.rmdir()  # only if it is empty now
