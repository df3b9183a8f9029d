"""Instructions with one thing changed.

Mutants are made of text: of the lines of a corpus, and of the modifiers and register types of the database.  What is legal is not asked
here; some mutants are.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.ptx import lines as ptx

_REGISTER = re.compile(r"%([a-z]\w*)_(\d+)")
_NUMBER = re.compile(r"-?\d+")
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
#: Constants that stand for all that an immediate may be: small ones, and the ends of what registers hold.
_CONSTANTS = (
    "-1",
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "15",
    "16",
    "31",
    "32",
    "255",
    "256",
    "65536",
    "2147483648",
    "4294967296",
    "0x1",
    "1.0",
)
_INVENTED = "unheard_of"


class Mutant(NamedTuple):
    """A line that one change made of another."""

    line: str
    kind: str  # of change, in words


class Vocabulary(NamedTuple):
    """What mutants are made of."""

    modifiers: tuple[str, ...]
    banks: tuple[str, ...]

    @classmethod
    def of(cls, catalog: Catalog) -> Vocabulary:
        """All modifiers of a database, one that nobody has, and its register types."""
        modifiers = {token for found in catalog.all() for token in found.canonical.split(".")[1:]}
        # Predicates do not stand for other registers: ptxas takes some, and breaks down when it makes code.
        banks = [entry.name for entry in catalog.database.spec.types.registers if entry.bits > 1]
        return cls((*sorted(modifiers), _INVENTED), tuple(banks))


@functools.lru_cache(maxsize=1 << 12)
def mutants(line: str, vocabulary: Vocabulary, most: int) -> tuple[Mutant, ...]:
    """Mutants of a line, each once: all of a kind, or ``most`` of them, chosen by the line's own text."""
    changes: dict[str, str] = {}
    for text, kind in [*_spelt(line, vocabulary), *_operated(line, vocabulary)]:
        changes.setdefault(text, kind)
    kinds: dict[str, list[str]] = {}
    for text, kind in changes.items():
        if text != line:
            kinds.setdefault(kind, []).append(text)
    chance = random.Random(line)
    chosen = {kind: texts if len(texts) <= most else chance.sample(texts, most) for kind, texts in kinds.items()}
    return tuple(Mutant(text, kind) for kind, texts in chosen.items() for text in texts)


def _spelt(line: str, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """The spelling changes, the operands stay."""
    spelling, operands = ptx.split(line)
    for tokens, kind in _respelt(spelling.split("."), vocabulary.modifiers):
        yield ptx.line(".".join(tokens), operands), kind


def _respelt(tokens: list[str], modifiers: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    for place, token in enumerate(tokens):
        if not place:
            continue  # another instruction
        before, after = tokens[:place], tokens[place + 1 :]
        yield [*before, *after], "modifier dropped"
        yield [*before, token, token, *after], "modifier twice"
        yield [*before, token.swapcase(), *after], "letter case"
        yield from (([*before, other, *after], "modifier replaced") for other in modifiers)
        yield from (([*before, other, token, *after], "modifier added") for other in modifiers)
        yield from (([*before, near, *after], "size changed") for near in _near(token))
        for other in range(1, place):
            swapped = list(tokens)
            swapped[other], swapped[place] = token, tokens[other]
            yield swapped, "modifiers swapped"
    yield from (([*tokens, other], "modifier added") for other in modifiers)


def _near(token: str) -> Iterator[str]:
    """A shape with one size halved, doubled, or a step away."""
    if match := _SHAPE.fullmatch(token):
        sizes = [int(size) for size in match.groups()]
        for place, size in enumerate(sizes):
            for other in (size // 2, size * 2, size - 8, size + 8, size + 1, 0):
                yield "m{}n{}k{}".format(*sizes[:place], other, *sizes[place + 1 :])


def _operated(line: str, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """The operands change, the spelling stays."""
    spelling, operands = ptx.split(line)
    for more in ("0", *(ptx.register(bank) for bank in vocabulary.banks)):
        yield ptx.line(spelling, [*operands, more]), "operand added"
    for place, text in enumerate(operands):
        before, after = operands[:place], operands[place + 1 :]
        yield ptx.line(spelling, [*before, *after]), "operand dropped"
        yield ptx.line(spelling, [*before, text, text, *after]), "operand twice"
        for other in range(place):
            yield ptx.line(spelling, [*operands[:other], text, *operands[other + 1 : place], operands[other], *after]), "operands swapped"
        for changed, kind in _changed(text, vocabulary.banks):
            yield ptx.line(spelling, [*before, changed, *after]), kind


def _changed(text: str, banks: Sequence[str]) -> Iterator[tuple[str, str]]:
    """An operand's text, changed."""
    yield "_", "operand ignored"
    if text.startswith("{"):
        yield from _list_changed(ptx.items(text[1:-1]), banks)
        return
    yield "{" + text + "}", "braces put"
    yield from _item_changed(text, banks)


def _list_changed(parts: list[str], banks: Sequence[str]) -> Iterator[tuple[str, str]]:
    for kind, others in (
        ("list shorter", [parts[:-1], parts[1:], parts[: len(parts) // 2]]),
        ("list longer", [[*parts, parts[-1]], [*parts, *parts], [*parts, "0"]]),
    ):
        yield from ((_list(other), kind) for other in others)
    if len(parts) == 1:
        yield parts[0], "braces taken"
    for bank in banks:
        yield _list([_REGISTER.sub(rf"%{bank}_\2", part) for part in parts]), "registers of another type"
    for place in {0, len(parts) - 1}:
        for item, kind in _item_changed(parts[place], banks):
            yield _list([*parts[:place], item, *parts[place + 1 :]]), f"{kind} in a list"
        yield _list([*parts[:place], "{" + parts[place] + "}", *parts[place + 1 :]]), "braces put"


def _item_changed(text: str, banks: Sequence[str]) -> Iterator[tuple[str, str]]:
    if _REGISTER.fullmatch(text):
        yield from ((ptx.register(bank), "register of another type") for bank in banks)
        yield from ((value, "immediate for a register") for value in _CONSTANTS)
    elif _NUMBER.fullmatch(text):
        yield from ((value, "immediate changed") for value in _CONSTANTS)
        yield from ((ptx.register(bank), "register for an immediate") for bank in banks)
    yield "%undeclared", "undeclared register"


def _list(parts: Sequence[str]) -> str:
    return "{" + ", ".join(parts) + "}"
