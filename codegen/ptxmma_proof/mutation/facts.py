"""Mutants: the spec with one fact changed.

Every YAML document is walked.  A number becomes another one, a flag its opposite, a formula differs in one token, a value becomes another
one that the spec has in such a place; a member of a list or a part of a condition goes.  Prose and citations stay.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ptxmma.generator.yaml_document import Document, Path_
from ptxmma_proof.mutation import formulas

#: Keys of prose, of citations and of our own names, in any document.
_WORDS = frozenset(
    {"source", "section", "title", "text", "note", "notes", "undefined", "says", "holds", "known", "earlier", "later", "by", "id", "term"}
    | {"stem", "label", "usual", "document", "example", "releases", "contributors", "unspecified", "steps", "textual", "definitions"}
)
#: Documents without facts about instructions: the edition of the spec, the sections of the manual, and the pinned programs.
_NO_FACTS = frozenset({"spec", "sections", "assemblers"})
#: Keys for what the manual prints: a witness in the spec rather than a fact of it.
_PRINTED = frozenset({"stated", "examples"})
#: Keys whose values are formulas.
_FORMULAS = frozenset({"first", "last", "is", "offset", "formula", "swizzle_formula", "base_offset", "alignment", "row_bytes"})
#: Keys whose values are tables of formulas.
_TABLES = frozenset({"let", "at", "axes"})
_CONDITIONS = frozenset({"when", "of", "ordered_when"})
_BITS = re.compile(r"0b[01]+")
_PARTS = re.compile(r"\{\.\w+\}|\.?(?:\{\w+\}|[\w:]+)")
#: The least mutants of each file in a sample.
_LEAST = 10
#: The most letters of a value in an identity.
_BRIEF = 100


class Mutant(NamedTuple):
    """One change of one fact: ``after`` replaces the value at ``path`` of a document; None removes it."""

    file: str
    number: int  # the number of the document
    path: Path_
    before: Any
    after: Any

    @property
    def identity(self) -> str:
        """File, place and change: ``types.yaml: elements/0/bits: 16 -> 17``."""
        after = "nothing" if self.after is None else _brief(self.after)
        return f"{self.file}: {'/'.join(map(str, self.path))}: {_brief(self.before)} -> {after}"


def mutants(documents: Sequence[Document]) -> list[Mutant]:
    """Every mutant of a spec, each once, in the order of files and places."""
    places = [(number, *place) for number, document in enumerate(documents) for place in _facts(document)]
    values: dict[str, set[str]] = {}
    for number, path, value in places:
        if isinstance(value, str):
            values.setdefault(_slot(documents[number], path), set()).add(value)
    by_identity: dict[str, Mutant] = {}
    for number, path, value in places:
        document = documents[number]
        known = sorted(values.get(_slot(document, path), ()))
        for where, after in _changes(path, value, known, document):
            mutant = Mutant("/".join(Path(document.places.file).parts[-2:]), number, where, _at(document.data, where), after)
            by_identity.setdefault(mutant.identity, mutant)
    return list(by_identity.values())


def sample(every: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """About ``count`` of the mutants, each file by its share but at least :data:`_LEAST`; all of them for 0."""
    if count <= 0 or count >= len(every):
        return list(every)
    by_file: dict[str, list[Mutant]] = {}
    for mutant in every:
        by_file.setdefault(mutant.file, []).append(mutant)
    chosen: list[Mutant] = []
    for file, group in by_file.items():
        share = min(len(group), max(_LEAST, -(-count * len(group) // len(every))))
        chosen += random.Random(f"{seed} {file}").sample(group, share)
    return chosen


def applied(documents: Sequence[Document], mutant: Mutant) -> list[Document]:
    """The documents with the change applied; the rest is shared."""
    before = documents[mutant.number]
    changed = Document(_replaced(before.data, mutant.path, mutant.after), before.places)
    return [*documents[: mutant.number], changed, *documents[mutant.number + 1 :]]


def _replaced(data: Any, path: Path_, after: Any) -> Any:
    """A copy of ``data`` with another value at a place."""
    if not path:
        return after
    key, rest = path[0], path[1:]
    gone = not rest and after is None
    if isinstance(data, dict):
        return {name: _replaced(part, rest, after) if name == key else part for name, part in data.items() if not (gone and name == key)}
    return [_replaced(part, rest, after) if index == key else part for index, part in enumerate(data) if not (gone and index == key)]


def _at(data: Any, path: Path_) -> Any:
    for key in path:
        data = data[key]
    return data


# --- places -----------------------------------------------------------------------------------------------------------------


def _facts(document: Document) -> Iterator[tuple[Path_, Any]]:
    """The places of a document that hold a fact, each with its value: scalars, lists and mappings."""
    if document.data["kind"] not in _NO_FACTS:
        yield from _walk(document.data, (), frozenset({"kind", "version"} if "isa_versions" not in document.data else {"kind"}))


def _walk(value: Any, path: Path_, words: frozenset[str] = frozenset()) -> Iterator[tuple[Path_, Any]]:
    if path:
        yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if key not in _WORDS and key not in words and key not in _PRINTED:
            yield from _walk(part, (*path, key))


def _names(path: Path_) -> list[str]:
    return [key for key in path if isinstance(key, str)]


def _slot(document: Document, path: Path_) -> str:
    """A key that places with interchangeable values share."""
    names = _names(path)
    return names[-1] if _CONDITIONS.intersection(names) or "forms" in names else f"{document.data['kind']}: {names[-1]}"


# --- changes ----------------------------------------------------------------------------------------------------------------


def _changes(path: Path_, value: Any, known: Sequence[str], document: Document) -> Iterator[tuple[Path_, Any]]:
    """The changes at a place: another value, or one part less."""
    names = _names(path)
    if isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int):
        yield from ((path, other) for other in formulas.numbers(value))
    elif isinstance(value, str) and (names[-1] in _FORMULAS or _TABLES.intersection(names[:-1])):
        known = sorted(set(formulas.variables(" ".join(_texts(_at(document.data, path[:-1]))))))
        yield from ((path, other) for other in formulas.changed(value, known))
    elif isinstance(value, str):
        yield from ((path, other) for other in _other_texts(names[-1], value, known))
    elif isinstance(value, list) or names[-1] in _CONDITIONS:
        yield from (((*path, key), None) for key in (value if isinstance(value, dict) else range(len(value))))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


def _other_texts(key: str, text: str, known: Sequence[str]) -> Iterable[str]:
    if _BITS.fullmatch(text):
        return [text[:place] + "10"[int(text[place])] + text[place + 1 :] for place in range(2, len(text))]
    if key == "syntax":
        return ["".join(parts) for parts in _without_and_swapped(_PARTS.findall(text))]
    if ", " in text:
        return [", ".join(parts) for parts in _without_and_swapped(text.split(", "))]
    place = known.index(text)
    others = {known[(place + step) % len(known)] for step in (1, -1)} - {text}
    return sorted(others) or [text[:-1]]  # if there is no other value, it loses its last letter


def _without_and_swapped(parts: list[str]) -> Iterator[list[str]]:
    """The parts without one of them, and with two neighbours swapped."""
    for place in range(len(parts)):
        yield parts[:place] + parts[place + 1 :]
        if place and parts[place] != parts[place - 1]:
            yield [*parts[: place - 1], parts[place], parts[place - 1], *parts[place + 1 :]]


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…"
