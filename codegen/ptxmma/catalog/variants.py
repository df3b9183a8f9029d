"""Variants: the instructions of each form of the spec, with their spellings and names.

A syntax line is the manual's own, with three kinds of parts: literal text, ``.{name}`` for a qualifier that is always there, and
``{.name}`` for one that a variant may lack::

    mma.sp.sync.aligned.{shape}.row.col{.satfinite}.{dtype}.{atype}.{btype}.{ctype}

Identifiers are built here and nowhere else: ``mma_sp_ordered_metadata_m16n8k32_f32_f16_f16_f32``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator, Mapping

from ptxmma.model import Extents, Facts, Form, InstructionSet, Observation, Requirement

_PART = re.compile(r"\.?\{\.?(\w+)\}")
_EXTENT = re.compile(r"\{(\w+)\}")


class Variant:
    """One instruction: a form with one value for every qualifier.

    Attributes:
        instruction, form: the entries of the spec.
        qualifiers: the value of each qualifier that the form gives, without its dot; ``""`` where it is absent.
        extents: the sizes that its qualifiers say: ``{"m": 16, "n": 8, "k": 16}``.
        facts: the facts that conditions test: extents, qualifiers, ``name`` and ``family``.
    """

    def __init__(self, instruction: InstructionSet, form: Form, templates: dict[str, str], point: dict[str, int]) -> None:
        """``templates`` may name extents in braces, for which ``point`` has the numbers."""
        self.instruction = instruction
        self.form = form
        self._templates = templates
        self.qualifiers = {name: spelled(value, point) for name, value in templates.items()} if point else templates
        self.extents = extents(instruction, self.qualifiers)
        self.facts: Facts = {**self.extents, **self.qualifiers, "name": instruction.name, "family": instruction.family}

    def __repr__(self) -> str:
        return f"Variant({self.canonical!r})"

    @functools.cached_property
    def canonical(self) -> str:
        """Its spelling in PTX, with every qualifier in the order of the syntax: ``mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32``."""
        return _spell(self.instruction.syntax, self.qualifiers, self.form.unspelled)

    @property
    def operand_lists(self) -> tuple[str, ...]:
        """The operand lists of its form, as the manual writes them: ``("d, a, b, c", "d, a-desc, b, c")``."""
        return self.instruction.operands.get(self.form.operands, ())

    @property
    def chosen(self) -> tuple[tuple[str, str | int], ...]:
        """The choices of a descriptor beyond its spelling, by name."""
        return ()

    @property
    def types(self) -> dict[str, str]:
        """The element type of each matrix, where a descriptor says it: ``{"d": "f32", "a": "bf16", "b": "bf16"}``."""
        return {}

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of its shape, ``{"m": 16, "n": 8, "k": 16}``; empty without one."""
        return sizes_in(self.instruction.extents[self.instruction.shape], self.shape) or {} if self.shape else {}

    @functools.cached_property
    def identifier(self) -> str:
        """Its name in generated code, before it is recased."""
        return "_".join([self.instruction.stem, *(token for _, token in telling_tokens(self.instruction, self.facts))])

    @functools.cached_property
    def ranging(self) -> dict[str, list[int]]:
        """The extents for which its form has many numbers, with all of them, ascending."""
        return ranging(self.form)

    @functools.cached_property
    def largest(self) -> dict[str, int]:
        """Its extents, with the largest number of each that ranges."""
        return self.extents | {name: numbers[-1] for name, numbers in self.ranging.items()}

    @property
    def shape(self) -> str:
        """The token that spells its sizes: ``m64n8k16``; ``""`` without one."""
        return self.qualifiers.get(self.instruction.shape, "")

    @functools.cached_property
    def shape_label(self) -> str:
        """Its shape, with a capital letter for an extent that ranges: ``m64nNk16``."""
        template = self._templates.get(self.instruction.shape, "")
        return spelled(template, self.extents | {extent: extent.upper() for extent in self.ranging}) if "{" in template else template

    @functools.cached_property
    def requires(self) -> tuple[Requirement, ...]:
        """The manual's rules that match it."""
        return self.instruction.requirements(self.facts)

    @functools.cached_property
    def observed(self) -> tuple[Observation, ...]:
        """The deviations of assemblers from the manual for it (at most one entry in a valid spec)."""
        return self.instruction.observations(self.facts)


def expand(instruction: InstructionSet) -> Iterator[Variant]:
    """Every variant of an instruction, in the order of its forms, shapes and qualifier values."""
    for number, _ in enumerate(instruction.forms):
        yield from of_form(instruction, number)


def of_form(instruction: InstructionSet, number: int) -> list[Variant]:
    """Every variant of the form with that index; the qualifiers that say sizes vary fastest, and extents that range faster still."""
    key = ("variants", number)
    if key not in instruction.memo:
        instruction.memo[key] = list(_expanded(instruction, instruction.forms[number]))
    made: list[Variant] = instruction.memo[key]
    return made


def representatives(instruction: InstructionSet, number: int) -> list[Variant]:
    """The variants of a form, the first of each group that differs only in extents that range."""
    return of_form(instruction, number)[:: len(points_of(instruction.forms[number]))]


def _expanded(instruction: InstructionSet, form: Form) -> Iterator[Variant]:
    free = {name: values for name, values in form.qualifiers.items() if not values[0].startswith("=")}
    copied = {name: values[0][1:] for name, values in form.qualifiers.items() if values[0].startswith("=")}
    order = sorted(free, key=lambda name: name in instruction.extents)
    points = points_of(form)
    for values in itertools.product(*(free[name] for name in order)):
        chosen = dict(zip(order, values, strict=True))
        templates = {name: chosen[copied.get(name, name)] for name in form.qualifiers}
        for point in points:
            yield Variant(instruction, form, templates, point)


def points_of(form: Form) -> list[dict[str, int]]:
    """Every choice of numbers for the extents that its values have in braces."""
    ranges = [[(name, number) for number in each_number(form, name)] for name in form.ranges]
    return [dict(point) for point in itertools.product(*ranges)]


def each_number(form: Form, extent: str) -> list[int]:
    """Every number of an extent in braces, ascending."""
    return sorted({number for span in form.ranges[extent] for number in range(span.first, span.last + 1, span.step)})


def ranging(form: Form) -> dict[str, list[int]]:
    """The extents for which a form has many numbers, with all of them, ascending."""
    numbers = {name: each_number(form, name) for name in form.ranges}
    return {name: all_of_it for name, all_of_it in numbers.items() if len(all_of_it) > 1}


def spelled(template: str, numbers: Mapping[str, int | str]) -> str:
    """A qualifier's value with its extents' numbers: ``m64n8k16`` for ``m64n{n}k16``; a name without a number stays as it is."""
    return _EXTENT.sub(lambda match: str(numbers.get(match[1], match[0])), template) if "{" in template else template


def extents(instruction: InstructionSet, qualifiers: Mapping[str, str]) -> dict[str, int]:
    """The sizes that the values of qualifiers say."""
    sizes: dict[str, int] = {}
    for name, entry in instruction.extents.items():
        if value := qualifiers.get(name):
            sizes |= sizes_in(entry, value) or {}
    return sizes


def sizes_in(entry: Extents, value: str) -> dict[str, int] | None:
    """The sizes that a value says: ``{"m": 16, "n": 8, "k": 16}`` for ``m16n8k16``; None where it says none."""
    if not entry.pattern:
        return entry.values.get(value)
    match = extents_pattern(entry.pattern).fullmatch(value)
    return {name: int(number) for name, number in match.groupdict().items()} if match else None


@functools.cache
def extents_pattern(pattern: str) -> re.Pattern[str]:
    """A regular expression for the values of a pattern such as ``m{m}n{n}k{k}``; a name that occurs twice has one number."""
    texts = []
    for index, part in enumerate(parts := _EXTENT.split(pattern)):
        number = f"(?P={part})" if part in parts[1:index:2] else f"(?P<{part}>[1-9][0-9]*)"
        texts.append(number if index % 2 else re.escape(part))
    return re.compile("".join(texts))


@functools.cache
def syntax_parts(syntax: str) -> tuple[tuple[str, str], ...]:
    """The syntax line as ``(literal text before, qualifier name)`` pairs; the last pair has no name."""
    parts: list[tuple[str, str]] = []
    end = 0
    for match in _PART.finditer(syntax):
        parts.append((syntax[end : match.start()], match[1]))
        end = match.end()
    return (*parts, (syntax[end:], ""))


@functools.cache
def placeholders(syntax: str) -> tuple[str, ...]:
    """The qualifiers that a syntax line names, in order."""
    return tuple(name for _, name in syntax_parts(syntax) if name)


@functools.cache
def fixed_tokens(syntax: str) -> tuple[str, ...]:
    """The tokens of a syntax line that every variant has."""
    return tuple(token for literal, _ in syntax_parts(syntax) for token in literal.split(".") if token)


def _spell(syntax: str, qualifiers: Mapping[str, str], unspelled: Collection[str]) -> str:
    text = []
    for literal, name in syntax_parts(syntax):
        text.append(literal)
        if name and qualifiers.get(name) and name not in unspelled:
            text.append(f".{qualifiers[name]}")
    return "".join(text)


def telling_tokens(instruction: InstructionSet, facts: Facts) -> list[tuple[str, str]]:
    """The parts of an identifier after its stem, as ``(qualifier, token)``: ``("shape", "m16n8k16"), ("dtype", "f32"), …``.

    Usual values are left out; the values of an ordered group together or not at all, so that ``row_row`` tells A's from B's.
    """
    usual = {name for name, value in _usual(instruction).items() if value == facts.get(name)}
    for group in instruction.ordered if usual else ():
        if not usual.issuperset(name for name in group if name in instruction.qualifiers and instruction.qualifiers[name].usual):
            usual.difference_update(group)
    named = ((name, str(facts.get(name, ""))) for name in placeholders(instruction.syntax) if name not in usual)
    return [(name, recased(value)) for name, value in named if value]


def _usual(instruction: InstructionSet) -> dict[str, str]:
    """The values that identifiers leave out, by qualifier."""
    made: dict[str, str] | None = instruction.memo.get("usual")
    if made is None:
        made = instruction.memo["usual"] = {name: entry.usual for name, entry in instruction.qualifiers.items() if entry.usual}
    return made


@functools.cache
def recased(token: str) -> str:
    """A token of PTX as part of an identifier: ``scale_vec_1x`` for ``scale_vec::1X``, ``sp_2_4`` for ``sp::2:4``."""
    return token.replace("::", "_").replace(":", "_").replace(".", "_").lower()


def qualifier_values(instruction: InstructionSet, name: str) -> frozenset[str]:
    """Every value that some form gives a qualifier."""
    made: frozenset[str] | None = instruction.memo.get(("values", name))
    if made is not None:
        return made
    values: set[str] = set()
    for form in instruction.forms:
        given = form.qualifiers.get(name, ())
        if given and given[0].startswith("="):
            given = form.qualifiers.get(given[0][1:], ())
        points = points_of(form) if any("{" in value for value in given) else [{}]
        values.update(spelled(value, point) for value in given if value for point in points)
    made = instruction.memo["values", name] = frozenset(values)
    return made
