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


def renumbered(spec: Spec) -> dict[str, dict[str, str]]:
    """The beginnings of sections' numbers in other releases: ``{"9.4": {"9.7.14": "9.7.16"}}``, where the last that a number has counts."""
    own = release(spec)
    sections = [section.numbers for section in spec.sections if own in section.numbers]
    releases: dict[str, dict[str, str]] = {version: {} for numbers in sections for version in numbers if version != own}
    for numbers in sorted(sections, key=lambda each: [int(part) for part in each[own].split(".")]):
        for version, beginnings in releases.items():
            if version in numbers and _begun(numbers[own], beginnings) != numbers[version]:
                beginnings[numbers[own]] = numbers[version]
    return releases


def _begun(number: str, beginnings: Mapping[str, str]) -> str:
    """A number with another beginning; ``""`` where it has none of them."""
    found = [begin for begin in beginnings if f"{number}.".startswith(f"{begin}.")]
    return beginnings[found[-1]] + number.removeprefix(found[-1]) if found else ""


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
