"""Variants: every instruction that a form of the spec stands for, its spellings and its names.

A syntax line is the manual's own, with three kinds of parts: literal text, ``.{name}`` for a qualifier that is always there, and
``{.name}`` for one that a variant may lack::

    mma.sp.sync.aligned.{shape}.row.col{.satfinite}.{dtype}.{atype}.{btype}.{ctype}

Identifiers are built here and nowhere else: ``mma_sp_ordered_metadata_m16n8k32_f32_f16_f16_f32``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator

from ptxmma.model import Facts, Form, Ignored, InstructionSet, Observation, Requirement, Shape, matches

_PART = re.compile(r"\.?\{\.?(\w+)\}")
SHAPE = "shape"


def shape_token(m: int, n: int | str, k: int) -> str:
    """``m16n8k16``; ``m64nNk16`` where n is the letter N."""
    return f"m{m}n{n}k{k}"


class Variant:
    """One instruction: a form with one value for every qualifier.

    ``facts`` holds the qualifiers and ``name``, ``family``, ``m``, ``n``, ``k``: what conditions are tested against.
    """

    def __init__(self, instruction: InstructionSet, form: Form, shape: Shape | None, n: int, qualifiers: dict[str, str]) -> None:
        self.instruction = instruction
        self.form = form
        self.shape = shape
        facts: dict[str, str | int] = {**qualifiers, "name": instruction.name, "family": instruction.family}
        if shape is not None:
            facts |= {"m": shape.m, "n": n, "k": shape.k, SHAPE: shape_token(shape.m, n, shape.k)}
        self.facts: Facts = facts
        self.canonical = _spell(instruction.syntax, facts)

    def __repr__(self) -> str:
        return f"Variant({self.canonical!r})"

    @functools.cached_property
    def identifier(self) -> str:
        """Its name in generated code, before it is recased."""
        return _identify(self.instruction, self.facts)

    @functools.cached_property
    def ranges_over_n(self) -> bool:
        """Whether its form has one entry for many values of n."""
        return self.shape is not None and self.shape.ranges_over_n

    @functools.cached_property
    def requires(self) -> tuple[Requirement, ...]:
        """The manual's rules that match it."""
        return tuple(rule for rule in self.instruction.requires if matches(rule.when, self.facts))

    @functools.cached_property
    def observed(self) -> tuple[Observation, ...]:
        """What assemblers do differently for it (at most one entry in a valid spec)."""
        return tuple(entry for entry in self.instruction.observed if matches(entry.when, self.facts))


def expand(instruction: InstructionSet) -> Iterator[Variant]:
    """Every variant of an instruction, in the order of its forms, shapes and qualifier values."""
    for form in instruction.forms:
        yield from expand_form(instruction, form)


def expand_form(instruction: InstructionSet, form: Form) -> Iterator[Variant]:
    """Every variant of one form."""
    free = {name: values for name, values in form.qualifiers.items() if not values[0].startswith("=")}
    copied = {name: values[0][1:] for name, values in form.qualifiers.items() if values[0].startswith("=")}
    shapes: Iterable[tuple[Shape | None, int]] = [(shape, n) for shape in form.shapes for n in shape.each_n()] or [(None, 0)]
    for values in itertools.product(*free.values()):
        qualifiers = dict(zip(free, values, strict=True))
        qualifiers |= {name: qualifiers[origin] for name, origin in copied.items()}
        for shape, n in shapes:
            yield Variant(instruction, form, shape, n, qualifiers)


@functools.cache
def syntax_parts(syntax: str) -> tuple[tuple[str, str], ...]:
    """The syntax line as ``(literal text before, qualifier name)`` pairs; the last pair has no name."""
    parts: list[tuple[str, str]] = []
    end = 0
    for match in _PART.finditer(syntax):
        parts.append((syntax[end : match.start()], match[1]))
        end = match.end()
    return (*parts, (syntax[end:], ""))


def placeholders(syntax: str) -> list[str]:
    """The qualifiers that a syntax line names, in order."""
    return [name for _, name in syntax_parts(syntax) if name]


def fixed_tokens(syntax: str) -> list[str]:
    """The tokens of a syntax line that every variant has."""
    return [token for literal, _ in syntax_parts(syntax) for token in literal.split(".") if token]


def _spell(syntax: str, facts: Facts) -> str:
    text = []
    for literal, name in syntax_parts(syntax):
        text.append(literal)
        if name and facts.get(name):
            text.append(f".{facts[name]}")
    return "".join(text)


def _identify(instruction: InstructionSet, facts: Facts) -> str:
    return "_".join([instruction.stem, *(token for _, token in telling_tokens(instruction, facts))])


def telling_tokens(instruction: InstructionSet, facts: Facts) -> list[tuple[str, str]]:
    """The parts of an identifier after its stem, as ``(qualifier, token)``: ``("shape", "m16n8k16"), ("dtype", "f32"), …``.

    Usual values are left out; those of an ordered group together or not at all, so that ``row_row`` tells A's from B's.
    """
    usual = {name for name, entry in instruction.qualifiers.items() if entry.usual and entry.usual == facts.get(name)}
    for group in instruction.ordered:
        if not usual.issuperset(name for name in group if name in instruction.qualifiers and instruction.qualifiers[name].usual):
            usual.difference_update(group)
    named = ((name, str(facts.get(name, ""))) for name in placeholders(instruction.syntax) if name not in usual)
    return [(name, value.replace("::", "_").lower()) for name, value in named if value]


# --- spellings --------------------------------------------------------------------------------------------------------------

#: A spelling without what assemblers ignore: its unordered tokens, sorted, and the tokens of each ordered group as they come.
SpellingKey = tuple[tuple[str, ...], ...]


def qualifier_values(instruction: InstructionSet, name: str) -> frozenset[str]:
    """Every value that some form gives a qualifier."""
    return frozenset(v for form in instruction.forms for v in form.qualifiers.get(name, ()) if v and not v.startswith("="))


def ordered_tokens(instruction: InstructionSet) -> dict[str, int]:
    """The tokens whose order counts, each with the number of its group."""
    return {
        token: index
        for index, names in enumerate(instruction.ordered)
        for name in names
        for token in (qualifier_values(instruction, name) if name in instruction.qualifiers else (name,))
    }


def without_ignored(instruction: InstructionSet, spelling: str, first: int = 0) -> Iterator[tuple[str, tuple[Ignored, ...]]]:
    """A spelling without the modifiers that assemblers ignore, by one entry or several from the first on, and these entries."""
    for number, entry in enumerate(instruction.ignored[first:], first + 1):
        start = _end(instruction, entry.behind, spelling) if entry.behind else 0
        rest, count = _modifiers(entry.modifiers).subn("", spelling[start:])
        if 0 < count <= (entry.most or count):
            shorter = spelling[:start] + rest
            yield shorter, (entry,)
            yield from ((shortest, (entry, *others)) for shortest, others in without_ignored(instruction, shorter, number))


def _end(instruction: InstructionSet, name: str, spelling: str) -> int:
    """Where the last value of a qualifier ends in a spelling; its length where there is none."""
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


class Spellings:
    """Finds the variant of any spelling that assemblers accept, for the variants of one instruction."""

    def __init__(self, instruction: InstructionSet, variants: Iterable[Variant]) -> None:
        self._instruction = instruction
        self._ordered = ordered_tokens(instruction)
        self._index = {self._key(variant.canonical.split(".")): variant for variant in variants}

    def find(self, spelling: str) -> Variant | None:
        """The variant that ``spelling`` means, or None."""
        opcode = self._instruction.opcode or self._instruction.syntax.split(".")[0]
        if not f"{spelling}.".startswith(f"{opcode}."):
            return None
        tokens = spelling.split(".")
        for token in self._instruction.repeatable:
            while tokens.count(token) > 1:
                tokens.remove(token)
        found = self._index.get(self._key(tokens))
        if found is not None:
            return found
        for fuller, name, value in with_defaults(self._instruction, tokens):
            found = self._index.get(self._key(fuller))
            if found is not None and any(
                default.value == value and matches(default.when, found.facts) for default in self._instruction.qualifiers[name].default
            ):
                return found
        return None

    def _key(self, tokens: list[str]) -> SpellingKey:
        loose: list[str] = []
        groups: list[list[str]] = [[] for _ in self._instruction.ordered]
        for token in tokens:
            group = self._ordered.get(token)
            (loose if group is None else groups[group]).append(token)
        return (tuple(sorted(loose)), *map(tuple, groups))
