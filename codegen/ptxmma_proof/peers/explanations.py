"""Reasons why peers differ: each difference with the reason that a person wrote down for it."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from ptxmma.catalog.evidence import witnesses
from ptxmma_proof.peers.compared import Difference

#: The reasons, written by a person.
_REASONS = Path(__file__).with_name("explained.yaml")


class Explanation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The reason why a peer differs; all fields but ``why`` are patterns, as for file names."""

    peer: str
    subject: str
    operand: str
    theirs: str = "*"
    why: str

    def speaks_of(self, other: Difference) -> bool:
        """Return whether it explains a difference."""
        return all(fnmatch.fnmatchcase(getattr(other, name), getattr(self, name)) for name in ("peer", "subject", "operand", "theirs"))


class Explained(NamedTuple):
    """A difference and its reason, ``""`` without one."""

    difference: Difference
    why: str


def read(path: Path = _REASONS) -> list[Explanation]:
    """The explanations of differences, which people write.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a list of explanations.
    """
    return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), list[Explanation])


def explain(differences: Iterable[Difference]) -> list[Explained]:
    """Each difference with the first explanation that speaks of it."""
    written = read()
    return [Explained(each, next((one.why for one in written if one.speaks_of(each)), "")) for each in differences]


def unexplained(differences: Iterable[Explained]) -> int:
    """The number of differences without a reason."""
    return sum(not each.why for each in differences)


def words(differences: Iterable[Explained]) -> Iterator[str]:
    """The differences in words."""
    for one, why in differences:
        yield f"{one.peer}, {one.subject}, {one.operand}: {one.theirs}; {one.ours} ({one.places} of {one.of} places)"
        yield f"    explained: {why}" if why else "    NOT EXPLAINED"


def lines(differences: Iterable[Explained]) -> Iterator[witnesses.Difference]:
    """The differences as lines of evidence, one for all subjects that differ in the same way for the same reason."""
    subjects: dict[tuple[str, str, str, str, str], dict[str, None]] = {}
    for one, why in differences:
        subjects.setdefault((one.peer, one.operand, one.theirs, one.ours, why), {})[f"{one.peer}: {one.subject}"] = None
    for (_, operand, theirs, ours, why), named in subjects.items():
        yield witnesses.Difference(subjects=tuple(named), operand=operand, theirs=theirs, ours=ours, why=why)
