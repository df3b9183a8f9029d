"""Other projects as they are at hand: a checkout at a commit, or an installed package at its version."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.evidence.witnesses import Tool

#: Digits of a commit that are recorded.
_DIGITS = 12


class MissingPeerError(RuntimeError):
    """A project or the compiler that reads it is missing; the message says what to give or install."""


class Source(NamedTuple):
    """A project.

    Attributes:
        name: its name in the records.
        folder: the folder with its files.
        version: the commit of a checkout, the version of a package.
        files: the files of a package whose digest is recorded, as a pattern.
    """

    name: str
    folder: Path
    version: str
    files: str = ""

    def tool(self, date: str) -> Tool:
        """The project for the record."""
        read = sorted(self.folder.glob(self.files)) if self.files else []
        digest = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in read)).hexdigest() if read else ""
        return Tool(kind="peer", name=self.name, version=self.version, sha256=digest, date=date)


def checkouts(texts: Iterable[str]) -> dict[str, Source]:
    """The checkouts that texts ``NAME=DIR`` name, or ``NAME=DIR@COMMIT`` for a folder that is not under version control.

    Raises:
        ValueError: a text has another form, or nothing tells the commit.
    """
    found = {}
    for text in texts:
        name, _, rest = text.partition("=")
        place, _, commit = rest.partition("@")
        folder = Path(place)
        if not name or not place or not folder.is_dir():
            raise ValueError(f"{text!r} is not NAME=DIR with a folder DIR")
        version = commit or _commit(folder)
        if not version:
            raise ValueError(f"{folder} is not a checkout: say which commit it is, with {name}={folder}@COMMIT")
        found[name] = Source(name, folder, version[:_DIGITS])
    return found


def _commit(folder: Path) -> str:
    done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def checkout(given: Mapping[str, Source], name: str) -> Source:
    """Return the checkout of a project.

    Raises:
        MissingPeerError: none was given.
    """
    if name not in given:
        raise MissingPeerError(f"no checkout of {name}: give one with --checkout {name}=DIR")
    return given[name]


def installed(name: str, package: str, folder: str, files: str) -> Source:
    """Return an installed package with a folder in it and the pattern of its files.

    Raises:
        MissingPeerError: it is not installed.
    """
    try:
        found = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        raise MissingPeerError(f"{name} is not installed: pip install {package}") from None
    return Source(name, Path(str(found.locate_file(folder))), found.version, files)
