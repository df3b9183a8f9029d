"""Reads a database from a ``ptxmma.json``, a directory of YAML, or a revision of the git repository around the working directory.

Of a revision it reads the database that is checked in; it generates nothing from an old spec.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from ptxmma.catalog.instructions import Catalog, catalog
from ptxmma.model import Database

#: The place of the database in a repository.
_DATABASE = "generated/database/ptxmma.json"


def read(name: str) -> Catalog:
    """The database that ``name`` refers to: an existing file or directory, or else a git revision.

    Raises:
        SpecError: a spec with mistakes.
        OSError: a file that cannot be read.
        ValueError: a file that is not a database, a name that is neither a path nor a revision, a revision without a database, or with one
            that this version of ptxmma cannot read.
    """
    path = Path(name)
    if path.is_file():
        return catalog(path)
    if path.is_dir():
        from ptxmma.generator import pipeline  # YAML and all that goes with it: databases need none of it

        return pipeline.read(path)
    text = _checked_in(name)
    try:
        return Catalog(msgspec.json.decode(text, type=Database))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"this version of ptxmma cannot read the database of revision {name!r}, which another version wrote: {error}"
        ) from None


def _checked_in(revision: str) -> bytes:
    """The text of the database of a revision."""
    if _git("rev-parse", "--git-dir") is None:
        raise ValueError(f"{revision!r} is neither a file nor a directory; it cannot be a revision, since this is not a git repository")
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise ValueError(f"{revision!r} is neither a file nor a directory nor a git revision")
    text = _git("show", f"{commit.decode().strip()}:{_DATABASE}")
    if text is None:
        raise ValueError(f"the revision {revision!r} has no {_DATABASE}")
    return text


def _git(*arguments: str) -> bytes | None:
    """The output of git; None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
