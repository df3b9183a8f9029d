"""Spellings: the ways in which assemblers let an instruction be written, and which variant each means."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence

from ptxmma.catalog.variants import Variant, fixed_tokens, qualifier_values
from ptxmma.model import Hint, Ignored, InstructionSet, matches

#: A spelling without what assemblers ignore: its unordered tokens, sorted, and the tokens of each ordered group as they come.
SpellingKey = tuple[tuple[str, ...], ...]


def ordered_tokens(instruction: InstructionSet) -> dict[str, int]:
    """The tokens whose order counts, each with the number of its group."""
    return {
        token: index
        for index, names in enumerate(instruction.ordered)
        for name in names
        for token in (qualifier_values(instruction, name) if name in instruction.qualifiers else (name,))
    }


def has_opcode(instruction: InstructionSet, spelling: str) -> bool:
    """Return whether a spelling begins with the opcode of an instruction; a value may go on with a colon: ``async``, ``async::generic``."""
    opcode = instruction.opcode or instruction.syntax.partition(".")[0]
    return spelling.startswith(opcode) and spelling[len(opcode) : len(opcode) + 1] in ("", ".", ":")


def without_ignored(
    instruction: InstructionSet, everywhere: Sequence[Ignored], spelling: str, first: int = 0
) -> Iterator[tuple[str, tuple[Ignored, ...]]]:
    """A spelling without the modifiers that assemblers ignore, by one entry or several from the first on, and these entries.

    An entry of ``everywhere`` concerns instructions that say nothing of its modifiers.
    """
    own = {*fixed_tokens(instruction.syntax), *(modifier for entry in instruction.ignored for modifier in entry.modifiers)}
    own.update(*(qualifier_values(instruction, name) for name in instruction.qualifiers))
    entries = [*instruction.ignored, *(entry for entry in everywhere if own.isdisjoint(entry.modifiers))]
    for number, entry in enumerate(entries[first:], first + 1):
        start = _end(instruction, entry.behind, spelling) if entry.behind else 0
        rest, count = _modifiers(entry.modifiers).subn("", spelling[start:])
        if 0 < count <= (entry.most or count):
            shorter = spelling[:start] + rest
            yield shorter, (entry,)
            yield from ((shortest, (entry, *others)) for shortest, others in without_ignored(instruction, everywhere, shorter, number))


def _end(instruction: InstructionSet, name: str, spelling: str) -> int:
    """Return the end of the last value of a qualifier in a spelling; its length where there is none."""
    values = [match.end() for match in _modifiers(tuple(qualifier_values(instruction, name))).finditer(spelling)]
    return values[-1] if values else len(spelling)


@functools.cache
def _modifiers(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Finds any of these modifiers, the longest where one begins like another."""
    return re.compile(rf"\.(?:{'|'.join(map(re.escape, sorted(texts, key=len, reverse=True)))})(?![^.])")


def with_defaults(instruction: InstructionSet, tokens: list[str]) -> Iterator[tuple[list[str], str, str]]:
    """The spelling with each default spelt out that it leaves open: ``(tokens, qualifier, value)``."""
    for name, qualifier in instruction.qualifiers.items():
        if qualifier.default and not qualifier_values(instruction, name) & set(tokens):
            for default in qualifier.default:
                yield [*tokens, default.value], name, default.value


def without_hints(instruction: InstructionSet, tokens: Iterable[str]) -> tuple[list[str], tuple[tuple[Hint, str], ...]]:
    """The tokens of a spelling without those that are values of its hints, and these with their hints, in the order of the hints."""
    known = {value: hint for hint in instruction.hints for value in hint.values}
    rest: list[str] = []
    values: list[str] = []
    for token in tokens:
        (values if token in known else rest).append(token)
    return rest, tuple((hint, value) for hint in instruction.hints for value in values if value in hint.values)


def takes(variant: Variant, hints: tuple[tuple[Hint, str], ...]) -> bool:
    """Return whether a variant takes these values of hints, one of each hint."""
    each_once = len({hint.name for hint, _ in hints}) == len(hints)
    return each_once and all(matches(hint.when, variant.facts) and matches(hint.values[value].when, variant.facts) for hint, value in hints)


def hint_values(entries: Iterable[InstructionSet]) -> set[str]:
    """The values of all hints of some instructions."""
    return {value for entry in entries for hint in entry.hints for value in hint.values}


def without_own_hints(variant: Variant, tokens: list[str]) -> list[str]:
    """The tokens of a spelling without the values of hints that a variant takes."""
    rest, hints = without_hints(variant.instruction, tokens)
    return rest if takes(variant, hints) else tokens


class Spellings:
    """Finds the variant of any spelling that assemblers accept, for the variants of one instruction."""

    def __init__(self, instruction: InstructionSet, variants: Iterable[Variant]) -> None:
        self._instruction = instruction
        self._ordered = ordered_tokens(instruction)
        self._index = {self._key(variant.canonical.split(".")): variant for variant in variants}

    def find(self, spelling: str) -> Variant | None:
        """The variant that ``spelling`` means, or None."""
        if not has_opcode(self._instruction, spelling):
            return None
        tokens = spelling.split(".")
        for token in self._instruction.repeatable:
            while tokens.count(token) > 1:
                tokens.remove(token)
        variant = self._index.get(self._key(tokens))
        if variant is not None:
            return variant
        for fuller, name, value in with_defaults(self._instruction, tokens):
            variant = self._index.get(self._key(fuller))
            if variant is not None and any(
                default.value == value and matches(default.when, variant.facts) for default in self._instruction.qualifiers[name].default
            ):
                return variant
        return None

    def _key(self, tokens: list[str]) -> SpellingKey:
        loose: list[str] = []
        groups: list[list[str]] = [[] for _ in self._instruction.ordered]
        for token in tokens:
            group = self._ordered.get(token)
            (loose if group is None else groups[group]).append(token)
        return (tuple(sorted(loose)), *map(tuple, groups))
