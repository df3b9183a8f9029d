"""Mutants: the spec with one fact changed.

Every document is walked; each place that holds a fact gives some mutants.  What is prose is said in
:mod:`ptxmma_proof.mutation.prose`; which values may stand for one another, in :func:`_slot`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ptxmma.generator.load import Document, Path_
from ptxmma_proof.mutation import formulas
from ptxmma_proof.mutation.prose import holds_facts, left_out
from ptxmma_proof.mutation.vocabulary import vocabulary

#: Keys of conditions, where the value is not a formula.
_CONDITIONS = frozenset({"when", "of", "ordered_when"})
#: Keys of formulas, where the value is a string.
_FORMULAS = frozenset({"row", "col", "computation", "lane", "bit", "byte", "first", "last", "is", "when", "rows", "cols", "offset"}) | {
    "swizzle_formula",
    "base_offset",
    "formula",
}
#: Sections whose conditions and formulas are worked out into tables, for each variant and each layout.
_WORKED_OUT = frozenset(
    {"qualifiers", "semantics", "carriers", "containers", "fragments", "granularities", "metadata", "scales", "block_formats", "throughput"}
) | {"swizzle_formula", "base_offset", "swizzles"}
#: Keys of texts of which only the numbers are changed.
_NUMBERED = frozenset({"cute"})
_BITS = re.compile(r"0b[01]+")
_SYNTAX_PART = re.compile(r"\{\.\w+\}|\.?(?:\{\w+\}|[\w:]+)")
#: Other values that one value is swapped for: the neighbours in the sorted list of all.
_SWAPS = 2
#: A sample has at least so many mutants of each file.
_LEAST = 10
#: Letters of a value that is dropped: lists of lists are long.
_BRIEF = 100


class Mutant(NamedTuple):
    """One change of one fact: ``after`` stands at ``path`` of a document, or nothing where it is None."""

    file: str  # "types.yaml", or "types.yaml#2" for its second document
    number: int  # of the document among all
    path: Path_
    kind: str
    before: Any
    after: Any

    @property
    def yaml(self) -> str:
        """The file, whichever of its documents it is."""
        return self.file.partition("#")[0]

    @property
    def is_printed(self) -> bool:
        """Whether it changes a formula or a worked example that the manual prints: these are witnesses, which facts are held against."""
        return "stated" in self.path or self.path[0] == "examples"

    @property
    def is_wording(self) -> bool:
        """Whether it changes a condition, a rule or a formula: what is worked out from them may stay the same."""
        keys = [key for key in self.path if isinstance(key, str)]
        if "stated" in keys:
            return "of" in keys
        if keys[0] == "forms":  # a qualifier may be written as another one
            return any(str(value).startswith("=") for value in (self.before, self.after))
        inside = _FORMULAS.union(_CONDITIONS, _NUMBERED, {"let"}).intersection(keys)
        return keys[0] in ("syntax", "ordered", "requires", "observed") or (keys[0] in _WORKED_OUT and bool(inside))

    @property
    def identity(self) -> str:
        """File, place and change: ``types.yaml: elements/0/bits: 16 -> 17``."""
        before = _brief(self.before)
        if self.after is None:
            change = f"{before if len(before) <= _BRIEF else before[:_BRIEF] + '…'} -> nothing"
        else:
            change = f"{before} -> {_brief(self.after)}"
        return f"{self.file}: {'/'.join(map(str, self.path))}: {change}"


def mutants(documents: Sequence[Document]) -> list[Mutant]:
    """Every mutant of a spec, in the order of files and places."""
    spots = [spot for number, document in enumerate(documents) for spot in _walk(document.data, (), number, documents)]
    values: dict[str, set[str]] = {}
    for spot in spots:
        for value in spot.value if isinstance(spot.value, list) else [spot.value]:
            if isinstance(value, str):
                values.setdefault(spot.slot, set()).add(value)
    known = {slot: sorted(found) for slot, found in values.items()}
    names = _names(documents)
    found: dict[str, Mutant] = {}
    for spot in spots:
        for kind, path, before, after in _changes(spot, known.get(spot.slot, [])):
            mutant = Mutant(names[spot.number], spot.number, path, kind, before, after)
            found.setdefault(mutant.identity, mutant)
    return list(found.values())


def sample(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """``count`` of the mutants or a few more, every file by its share and none by less than :data:`_LEAST`; all for a count of 0."""
    if count <= 0 or count >= len(found):
        return list(found)
    by_file: dict[str, list[Mutant]] = {}
    for mutant in found:
        by_file.setdefault(mutant.yaml, []).append(mutant)
    chosen: set[str] = set()
    for file, group in by_file.items():
        share = min(len(group), max(_LEAST, -(-count * len(group) // len(found))))
        chosen.update(mutant.identity for mutant in random.Random(f"{seed} {file}").sample(group, share))
    return [mutant for mutant in found if mutant.identity in chosen]


def applied(documents: Sequence[Document], mutant: Mutant) -> list[Document]:
    """The documents with the change; whatever it does not touch is shared."""
    before = documents[mutant.number]
    changed = Document(_replaced(before.data, mutant.path, mutant.after), before.positions, before.keys, before.containers)
    return [*documents[: mutant.number], changed, *documents[mutant.number + 1 :]]


def _replaced(data: Any, path: Path_, after: Any) -> Any:
    if not path:
        return after
    key, *rest = path
    result = data.copy()
    if rest or after is not None:
        result[key] = _replaced(data[key], tuple(rest), after)
    else:
        del result[key]
    return result


def _names(documents: Sequence[Document]) -> list[str]:
    """The files of the documents below the spec's top folder; the second document of one is ``file.yaml#2``."""
    files = [document.positions[()].file for document in documents]
    # A spec's top folder holds the one document of kind spec.
    top = next((file.rpartition("/")[0] for file, document in zip(files, documents, strict=True) if document.data["kind"] == "spec"), "")
    shown = [file.removeprefix(f"{top}/") for file in files]
    before = [shown[:number].count(file) for number, file in enumerate(shown)]
    return [f"{file}#{count + 1}" if count else file for file, count in zip(shown, before, strict=True)]


# --- places -----------------------------------------------------------------------------------------------------------------


class _Spot(NamedTuple):
    """A place that holds a fact: a scalar, a list, or a mapping."""

    number: int
    kind: str  # of its document
    path: Path_
    keys: tuple[str, ...]  # the names among the path
    value: Any
    slot: str  # equal for places whose values may stand for one another
    context: tuple[str, ...]  # formulas: the variables that its neighbours read


def _walk(value: Any, path: Path_, number: int, documents: Sequence[Document], context: tuple[str, ...] = ()) -> Iterator[_Spot]:
    keys = tuple(key for key in path if isinstance(key, str))
    is_fact = not left_out(keys)
    if not is_fact and not holds_facts(keys):
        return
    if isinstance(value, dict):
        context = tuple(sorted(set(_variables(value)) | set(context)))
        for key, part in value.items():
            yield from _walk(part, (*path, key), number, documents, context)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(part, (*path, index), number, documents, context)
    if is_fact:
        kind = documents[number].data["kind"]
        yield _Spot(number, kind, path, keys, value, _slot(keys, kind), context)


def _variables(entry: dict[str, Any]) -> Iterator[str]:
    """The variables that the formulas of an entry read, and those that it defines."""
    for key, value in entry.items():
        if key == "let":
            yield from value
        if key in _FORMULAS | {"let"}:
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
            for part in parts:
                texts = part.values() if isinstance(part, dict) else [part]
                yield from (name for text in texts if isinstance(text, str) for name in formulas.variables(text))


def _slot(keys: Sequence[str], kind: str) -> str:
    """Qualifiers and what conditions test mean the same in all documents, other keys the same in documents of one kind."""
    if any(key in (*_CONDITIONS, "forms") for key in keys):
        return keys[-1]
    return f"{kind}:{'/'.join(keys[-1:])}"


# --- changes ----------------------------------------------------------------------------------------------------------------

#: Kind, path, before, after.
_Change = tuple[str, Path_, Any, Any]


def _changes(spot: _Spot, known: Sequence[str]) -> Iterable[_Change]:
    path, value = spot.path, spot.value
    if isinstance(value, bool):
        return [("flag", path, value, not value)]
    if isinstance(value, int):
        return [("number", path, value, other) for other in formulas.numbers(value)]
    if isinstance(value, str):
        return _of_text(spot, known)
    if isinstance(value, list):
        return _of_list(spot, known)
    if isinstance(value, dict):
        return _of_mapping(spot)
    return []


def _is_condition(spot: _Spot) -> bool:
    return spot.keys[-1:] != () and spot.keys[-1] in _CONDITIONS


def _of_mapping(spot: _Spot) -> Iterator[_Change]:
    """A mapping without one of its keys; a flag that is dropped is a flag that is turned over."""
    mandatory = vocabulary(spot.kind).mandatory
    for name, part in spot.value.items():
        if _is_condition(spot) or (name not in mandatory and not isinstance(part, bool) and not left_out((*spot.keys, name))):
            yield "condition" if _is_condition(spot) or name in _CONDITIONS else "key", (*spot.path, name), f"{name}: {_brief(part)}", None


def _of_text(spot: _Spot, known: Sequence[str]) -> Iterator[_Change]:
    path, text, key = spot.path, spot.value, spot.keys[-1]
    if key in _FORMULAS or "let" in spot.keys[:-1]:
        yield from ((kind, path, text, other) for kind, other in formulas.changed(text, spot.context))
    elif key in _NUMBERED:
        yield from (("number", path, text, other) for other in formulas.numbers_changed(text))
    elif _BITS.fullmatch(text):
        for place in range(2, len(text)):
            yield "bit", path, text, text[:place] + "10"[int(text[place])] + text[place + 1 :]
    elif key == "syntax":
        yield from (("list", path, text, "".join(parts)) for parts in _shorter_and_swapped(_SYNTAX_PART.findall(text)))
    elif spot.keys[0] == "operands" and "," in text:
        yield from (("list", path, text, ", ".join(parts)) for parts in _shorter_and_swapped(text.split(", ")))
    else:
        listed = vocabulary(spot.kind).values.get(key, frozenset())
        others = _neighbours(text, sorted(listed.union(known)) if text in listed else known)
        # Where there is no other value, it loses its last letter.
        yield from (("value", path, text, other) for other in others or [text[:-1]] if other != text)


def _of_list(spot: _Spot, known: Sequence[str]) -> Iterator[_Change]:
    path, members = spot.path, spot.value
    inside = any(key in _CONDITIONS for key in spot.keys[:-1])
    for index, member in enumerate(members):
        yield "condition" if inside or _is_condition(spot) else "list", (*path, index), _brief(member), None
    if members and all(isinstance(member, str) for member in members):
        others = [other for other in _neighbours(members[-1], known) if other not in members]
        if others:
            yield "list", path, members, [*members, others[0]]
    elif members and all(isinstance(member, int) for member in members):
        yield "list", path, members, [*members, members[-1] + 1]


def _neighbours(text: str, known: Sequence[str]) -> list[str]:
    """The values next to one in a sorted list of all, round its ends."""
    if text not in known or len(known) < 2:
        return []
    place = known.index(text)
    return list(dict.fromkeys(known[(place + step) % len(known)] for step in (1, -1)[:_SWAPS]))


def _shorter_and_swapped(parts: list[str]) -> Iterator[list[str]]:
    """The parts without one of them, and with two neighbours swapped."""
    for place in range(len(parts)):
        yield parts[:place] + parts[place + 1 :]
        if place and parts[place] != parts[place - 1]:
            yield [*parts[: place - 1], parts[place], parts[place - 1], *parts[place + 1 :]]


def _brief(value: Any) -> str:
    """A value in one line, without its prose."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_brief(part)}" for key, part in value.items() if key == "kind" or not left_out([key])) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_brief, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
