"""The files below a directory that are checked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

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
