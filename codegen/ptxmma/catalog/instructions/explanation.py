"""Explains why a spelling is not an instruction, and finds the closest legal instructions."""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ptxmma.arguments import shortened
from ptxmma.catalog.instructions.facts import Instruction
from ptxmma.catalog.instructions.spellings import hint_values, ordered_tokens, without_own_hints
from ptxmma.catalog.variants import qualifier_values, sizes_in

#: So many numbers are listed one by one.
_FEW = 6
#: Tokens of a spelling that are compared: a few more than any instruction has.
_MOST_TOKENS = 20
#: A number in a token; longer ones are slips.
_NUMBER = re.compile(r"\d{1,9}")


def explain(
    spelling: str, instructions: Sequence[Instruction], meaning: Callable[[str], Instruction | None]
) -> tuple[str, list[Instruction]]:
    """The reason why ``spelling`` is not one of the instructions, and the closest instructions, nearest first.

    ``meaning`` gives the instruction that a legal spelling means.
    """
    opcode, *rest = spelling.split(".")
    opcodes = sorted({instruction.canonical.split(".")[0] for instruction in instructions})
    if not opcode and rest:
        shared = {each: len({*rest}.intersection(each.canonical.split("."))) for each in instructions}
        most = max(shared.values())  # a short instruction of another family needs few changes and shares little
        sharing = [instruction for instruction, count in shared.items() if count == most > 0]
        return f"it begins with a dot; the opcode comes first: {', '.join(opcodes)}", closest(sharing, rest)
    if opcode not in opcodes:
        likely = difflib.get_close_matches(opcode.lower(), opcodes, 1)
        return f"{shortened(opcode)!r} is not covered; covered are {', '.join(opcodes)}", closest(instructions, [*likely, *rest], least=0.5)
    if meant := _of_every_size(spelling, instructions, meaning):
        numbers = {extent: sorted({each.extents[extent] for each in meant}) for extent in meant[0].variant.ranging}
        reasons = [f"{extent.upper()} is a placeholder; write a number: {_listed(sizes)}" for extent, sizes in numbers.items()]
        return "; ".join(reasons), meant[:3]
    hints = hint_values(instructions[0].database.spec.instructions)
    bare = [token for token in (opcode, *rest) if token not in hints]
    # The longest opcode that the spelling begins with: ``cp.async.bulk.tensor``, not ``cp.async``.
    opening = max(
        (each.variant.instruction.opcode for each in instructions if f"{spelling}.".startswith(f"{each.variant.instruction.opcode}.")),
        key=len,
        default=opcode,
    )
    nearest = closest((each for each in instructions if f"{each.canonical}.".startswith(f"{opening}.")), bare)
    known = hints.union(*(instruction.canonical.split(".") for instruction in instructions))
    own = without_own_hints(nearest[0].variant, [opcode, *rest])
    return shortened("; ".join(dict.fromkeys(_differences(own, nearest[0], known)))), nearest


def _of_every_size(spelling: str, instructions: Iterable[Instruction], meaning: Callable[[str], Instruction | None]) -> list[Instruction]:
    """The instructions that match a spelling with capital letters for sizes, ``m64nNk16``; empty for other spellings."""
    tokens = spelling.split(".")
    sizes: dict[str, tuple[int, ...]] = {}
    for instruction in instructions:
        variant = instruction.variant
        if variant.ranging and (label := variant.shape_label) in tokens:
            sizes.setdefault(spelling.replace(label, variant.shape), tuple(variant.extents[extent] for extent in variant.ranging))
    meanings = (meaning(text) for text in sorted(sizes, key=lambda text: sizes[text]))
    return [instruction for instruction in meanings if instruction is not None]


def closest(instructions: Iterable[Instruction], tokens: list[str], count: int = 3, least: float = 0.0) -> list[Instruction]:
    """The instructions that need the fewest :func:`changes`, nearest first.

    Ties are broken by the number of changes in place, then by the length of the common prefix, the similarity of the tokens and the
    distance of the sizes.

    Args:
        instructions: those to choose from.
        tokens: the tokens of the spelling.
        count: the greatest number of them.
        least: the share of common tokens below which an instruction is not near.
    """
    tokens = tokens[:_MOST_TOKENS]
    wanted = Counter(tokens)
    ranked = []
    for instruction in instructions:
        own = instruction.canonical.split(".")
        if 2 * (Counter(own) & wanted).total() >= least * (len(own) + len(tokens)):
            ranked.append((changes(instruction, wanted), instruction))
    ranked.sort(key=lambda rank: rank[0])
    last = ranked[:count][-1][0] if ranked else 0
    near = [rank for rank in ranked if rank[0] <= last]
    return [rank[1] for rank in sorted(near, key=lambda rank: (rank[0], *_unlikeness(rank[1], tokens)))[:count]]


def changes(instruction: Instruction, wanted: Counter[str]) -> float:
    """Return the tokens of a spelling to replace, add or remove, in any order; another size in a shape counts as half a change."""
    own = Counter(instruction.canonical.split("."))
    shape = instruction.variant.shape
    resized = shape and shape not in wanted and any(_resized(shape, token) for token in wanted if token not in own)
    return max(own.total(), wanted.total()) - (own & wanted).total() - (0.5 if resized else 0)


def _unlikeness(instruction: Instruction, tokens: list[str]) -> tuple[int, int, int, float, int, str]:
    """A sort key for instructions that need equally many changes: smaller for a more similar one."""
    own = instruction.canonical.split(".")
    start = next((place for place, pair in enumerate(zip(own, tokens, strict=False)) if pair[0] != pair[1]), len(own))
    pairs = [(mine, other) for mine in own if mine not in tokens for other in tokens if other not in own]
    similar = sum(_similarity(mine, other) for mine, other in pairs)
    sizes = sum(_distance(mine, other) for mine, other in pairs if _same_words(mine, other))
    return _changes_in_place(own, tokens), _optional(instruction, tokens), -start, -similar, sizes, instruction.canonical


def _optional(instruction: Instruction, tokens: list[str]) -> int:
    """Return the number of optional tokens of an instruction that a spelling lacks."""
    lacking = [name for name, value in instruction.qualifiers.items() if value and value not in tokens]
    forms = instruction.variant.instruction.forms
    return sum(any("" in form.qualifiers.get(name, ()) for form in forms) for name in lacking)


@functools.lru_cache(maxsize=1 << 14)
def _similarity(one: str, other: str) -> float:
    """Return the likeness of two tokens, up to 1 for tokens that differ in numbers alone."""
    return 1.0 if _same_words(one, other) else difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _changes_in_place(own: list[str], tokens: list[str]) -> int:
    """The smallest number of tokens to replace, add or remove so that one list becomes the other (Levenshtein)."""
    before = list(range(len(tokens) + 1))
    for row, mine in enumerate(own, 1):
        now = [row]
        for column, other in enumerate(tokens):
            now.append(min(before[column] + (mine != other), before[column + 1] + 1, now[column] + 1))
        before = now
    return before[-1]


@functools.lru_cache(maxsize=1 << 14)
def _words_and_numbers(token: str) -> tuple[str, tuple[int, ...]]:
    """A token with its numbers replaced, and the numbers: ``m#n#``, (8, 16)."""
    return _NUMBER.sub("#", token), tuple(map(int, _NUMBER.findall(token)))


def _same_words(one: str, other: str) -> bool:
    """Return whether two tokens differ in numbers alone."""
    return _words_and_numbers(one)[0] == _words_and_numbers(other)[0]


def _resized(one: str, other: str) -> bool:
    """Return whether two tokens differ in one number alone."""
    sizes = zip(_words_and_numbers(one)[1], _words_and_numbers(other)[1], strict=False)
    return _same_words(one, other) and sum(a != b for a, b in sizes) == 1


def _distance(one: str, other: str) -> int:
    """Return the distance between the numbers of two tokens."""
    return sum(abs(a - b) for a, b in zip(_words_and_numbers(one)[1], _words_and_numbers(other)[1], strict=True))


def _listed(sizes: list[int]) -> str:
    """Numbers as a list; of many, the first ones and the last."""
    shown = sizes if len(sizes) <= _FEW else [*sizes[:3], "…", sizes[-1]]
    return ", ".join(map(str, shown))


def _differences(tokens: list[str], closest: Instruction, known: set[str]) -> Iterator[str]:
    """Return the difference between a spelling and the closest instruction's, in words; ``known`` are the tokens of all instructions."""
    own = closest.canonical.split(".")
    missing = list((Counter(own) - Counter(tokens)).elements())
    extra = list((Counter(tokens) - Counter(own)).elements())
    for token in list(extra):
        other = next((other for other in missing if _alike(token, other, closest)), None)
        if other is None and len(extra) == len(missing):
            other = missing[0]
        if other is not None:
            extra.remove(token)
            missing.remove(other)
            where = "where the closest has" if token in known else "is in no covered instruction; the closest has"
            yield f"'.{token}' {where} '.{other}'"
    if missing:
        yield "it lacks " + ", ".join(f"'.{token}'" for token in dict.fromkeys(missing))
    for token in dict.fromkeys(extra):
        fault = "is there twice" if token in own else "does not belong" if token in known else "is in no covered instruction"
        yield f"'.{token}' {fault}"
    if sorted(tokens) == sorted(own):
        opcode = closest.variant.instruction.opcode or own[0]
        if not ".".join(tokens).startswith(f"{opcode}."):
            yield f"'{opcode}' must come first"
        else:
            groups = ordered_tokens(closest.variant.instruction)
            for group in sorted(set(groups.values())):
                ours, theirs = (".".join(token for token in text if groups.get(token) == group) for text in (tokens, own))
                if ours != theirs:
                    yield f"'.{ours}' is in another order than the closest's '.{theirs}'"


def _alike(token: str, other: str, closest: Instruction) -> bool:
    """Return whether ``token`` could replace ``other`` in the closest instruction."""
    instruction = closest.variant.instruction
    for entry in instruction.extents.values():
        if sizes_in(entry, other):
            return sizes_in(entry, token) is not None
    return any(value == other and token in qualifier_values(instruction, name) for name, value in closest.qualifiers.items())
