"""The files below a directory that are checked, and mending them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from ptxmma.check.findings import Finding
from ptxmma.ptx.languages import SUFFIXES, UNREAD


class Discovered(NamedTuple):
    """The files below a directory.

    Attributes:
        files: the names of the files in a language that is read, in order.
        skipped: the number of files in a language that is not read.
    """

    files: list[str]
    skipped: int


def discover(directory: str) -> Discovered:
    """The files below a directory, chosen by the endings of their names.

    In a work tree of git, these are the files that git tracks or would add: what ``.gitignore`` names is left out.  Elsewhere they are
    all files but those in directories whose names begin with a dot.

    Raises:
        OSError: the directory cannot be read.
    """
    os.scandir(directory).close()  # the walk would be silent
    names = sorted(map(os.path.normpath, _of_git(directory) or _of_walk(directory)))
    suffixes = [PurePath(name).suffix.lower() for name in names]
    files = [name for name, suffix in zip(names, suffixes, strict=True) if suffix in SUFFIXES]
    return Discovered(files, sum(suffix in UNREAD for suffix in suffixes))


def _of_git(directory: str) -> list[str]:
    """The files below a directory that git tracks or would track; none without git or outside a work tree."""
    # The repository may be anyone's: none of the programs that its configuration names is started.
    command = ["git", "-C", directory, "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    import subprocess  # only directories need it

    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return []
    names = (os.path.join(directory, os.fsdecode(name)) for name in done.stdout.split(b"\0") if name)
    # Git also names submodules, and files that were deleted; a link that leads nowhere is one that cannot be read.
    return [name for name in dict.fromkeys(names) if os.path.lexists(name) and not Path(name).is_dir()] if done.returncode == 0 else []


def _of_walk(directory: str) -> Iterator[str]:
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(folder, name) for name in files)


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
