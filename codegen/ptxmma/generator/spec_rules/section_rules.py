"""Sections of the manual: every section that a source cites exists, where the table has its chapter."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ptxmma.catalog.citations import citations
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext


def problems(context: RuleContext) -> Iterator[Problem]:
    """Sections with the number of another, and sources that cite a section that no release has."""
    spec = context.spec
    known: dict[str, set[str]] = {}
    for index, section in enumerate(spec.sections):
        for release, number in section.numbers.items():
            if number in known.setdefault(release, set()):
                yield Problem(context.at("sections", index), f"a second section {number} of PTX ISA {release}")
            known[release].add(number)
    chapters = {release: {_chapter(number) for number in numbers} for release, numbers in known.items()}
    for place, source in _sources(spec, ()):
        for release, number in citations(spec, source):
            if _chapter(number) in chapters.get(release, ()) and number not in known[release]:
                message = f"PTX ISA {release} has no section {number}; sections.yaml lists those of {_chapter(number)}"
                yield Problem(context.at(*place), message)


def _chapter(number: str) -> str:
    return ".".join(number.split(".")[:3])


def _sources(part: object, place: Place) -> Iterator[tuple[Place, str]]:
    """Every source of the model with its place."""
    if isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if name in ("source", "section") and isinstance(value, str):
                yield (*place, name), value
            else:
                yield from _sources(value, (*place, name))
    elif isinstance(part, tuple):
        for index, each in enumerate(part):
            yield from _sources(each, (*place, index))
