"""Citations of the manual: a source names a section by its number in the release that the spec follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ptxmma.model import Spec

#: A section's number, with the release where the text names one: ``"9.7.14.1"`` or ``"PTX ISA 9.4, 9.7.16.1"``.  Not the numbers
#: that :func:`cited` adds, nor one to which it has added them.
_CITATION = re.compile(r"(?:PTX ISA (?P<release>\d+\.\d+), )?(?<![\d.])(?<!\d: )(?P<number>\d+(?:\.\d+){2,})(?!\w|\.\d| \[\d)")


def release(spec: Spec) -> str:
    """The release of the manual that the spec follows: ``"9.1"``."""
    return spec.document.rpartition(" ")[2]


def citations(spec: Spec, text: str) -> Iterator[tuple[str, str]]:
    """The release and the number of each section that a text cites."""
    for match in _CITATION.finditer(text):
        yield match["release"] or release(spec), match["number"]


def elsewhere(spec: Spec) -> dict[str, str]:
    """Each section's number, with its numbers in other releases: ``{"9.7.14.1": "9.7.14.1 [9.4: 9.7.16.1]"}``."""
    own, known = release(spec), {}
    for section in spec.sections:
        others = [f"{version}: {number}" for version, number in section.numbers.items() if version != own]
        if own in section.numbers and others:
            known[section.numbers[own]] = f"{section.numbers[own]} [{', '.join(others)}]"
    return known


def cited(text: str, known: Mapping[str, str]) -> str:
    """The text with every section that it cites, followed by the section's numbers in other releases.

    A citation that names its release stays as it is, and so does a text that this function returned.

    Args:
        text: a source, or any text with sources in it.
        known: the answer of :func:`elsewhere`.
    """

    def number(match: re.Match[str]) -> str:
        return match[0] if match["release"] else known.get(match["number"], match["number"])

    return _CITATION.sub(number, text)
