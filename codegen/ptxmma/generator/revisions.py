"""Specs where they lie: a directory of YAML, a ``ptxmma.json``, or a revision of the git repository around the working directory."""

from __future__ import annotations

import io
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog, catalog

#: Where a repository keeps its spec.
_FOLDER = "spec"


class Found(NamedTuple):
    """A database, and whether it comes from a spec, from which everything can be generated."""

    catalog: Catalog
    spec: bool


def read(name: str) -> Found:
    """What ``name`` means: an existing directory or file, or else a git revision.

    Raises:
        SpecError: a spec with mistakes.
        OSError: a file that cannot be read.
        ValueError: a file that is no database, a name that is nothing of all this, a revision without a spec, or with one that this
            version of ptxmma does not understand.
    """
    path = Path(name)
    if path.is_file():
        return Found(catalog(path), spec=False)
    from ptxmma.generator import pipeline  # YAML and all that goes with it: two databases need none of it
    from ptxmma.generator.problems import SpecError

    if path.is_dir():
        return Found(pipeline.read(path), spec=True)
    with tempfile.TemporaryDirectory(prefix="ptxmma-") as scratch:
        _extract(name, Path(scratch))
        try:
            return Found(pipeline.read(Path(scratch) / _FOLDER), spec=True)
        except SpecError as error:
            told = str(error).replace(f"{scratch}/", f"{name}:")
            raise ValueError(f"the spec of revision {name!r} is none that this version of ptxmma understands:\n{told}") from None


def _extract(revision: str, target: Path) -> None:
    """The folder ``spec/`` of a revision, below ``target``."""
    top = _git("rev-parse", "--show-toplevel")
    if top is None:
        raise ValueError(f"there is no file or directory {revision!r}, and no git repository here in which it could be a revision")
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise ValueError(f"{revision!r} is no file, no directory and no git revision")
    archive = _git("archive", "--format=zip", commit.decode().strip(), _FOLDER, folder=top.decode().rstrip("\n"))
    if archive is None:
        raise ValueError(f"the revision {revision!r} has no directory {_FOLDER}/")
    with zipfile.ZipFile(io.BytesIO(archive)) as members:
        members.extractall(target)


def _git(*arguments: str, folder: str | None = None) -> bytes | None:
    """What git prints; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
