"""Neighbours: the lines one change away from a legal instruction.

One thing changes at a time:

* a modifier becomes another value that the spec knows for its place, or one from elsewhere; it is dropped, or written twice;
* two adjacent modifiers change places;
* modifiers that have one value together (A and B, or C and D, of one type) change together;
* a modifier from elsewhere joins, or two that are adjacent elsewhere;
* an operand is dropped or written twice, or one more follows;
* a list has one register less or one more; its registers have another type;
* an immediate leaves its range, a register replaces an immediate, or an immediate a register.

A changed spelling is asked with the operands that it had, with those that instructions of its new shape have, and with as many
registers as its new shape and types would fill.  Not every instruction is changed, but enough of them that each row of the spec's forms
is there with each value of each of its qualifiers; of a range of N only the ends count.  Some neighbours are legal: the library is asked
about each of them, the same as the assembler.  Predicates do not replace other registers here: ptxas takes some of them, and stumbles
over them ("Internal compiler error") when it makes code.

Each neighbour knows its change in words.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import register, vector
from ptxmma.catalog.roles.role import register_type
from ptxmma.catalog.variants import Variant, syntax_parts
from ptxmma.model import Spec
from ptxmma.ptx import lines as ptx

#: The qualifier that spells m, n and k.
SHAPE = "shape"
_NUMBER = re.compile(r"\d+")
#: A modifier that no instruction has.
_INVENTED = "unheard_of"
#: The step of that sample.
_EVERY = 5


class Vocabulary:
    """The values that a spec knows."""

    def __init__(self, catalog: Catalog) -> None:
        spec = catalog.database.spec
        self.banks = [entry.name for entry in spec.types.registers if entry.bits > 1 and not entry.read]
        self.elements = [entry.name for entry in spec.types.elements]
        self.values: dict[str, list[str]] = {}
        #: Values of adjacent qualifiers, by these qualifiers.
        self.pairs: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        for instruction in filter(_at_ends, catalog.all()):
            present = [(name, token) for name, token in tokens(instruction) if token]
            for name, token in present:
                if name and token not in self.values.setdefault(name, []):
                    self.values[name].append(token)
            for (first, one), (second, other) in itertools.pairwise(present):
                if first and second:
                    self.pairs.setdefault((first, second), {})[one, other] = None
        for entry in spec.instructions:
            for hint in entry.hints:
                self.values.setdefault(hint.name, []).extend(value for value in hint.values if value not in self.values[hint.name])
        #: A sample of the values that belong elsewhere.
        foreign = [*dict.fromkeys(values[0] for values in self.values.values()), *self.banks]
        self.strangers = [*foreign[::_EVERY], _INVENTED]
        #: Modifiers that may follow a spelling by mistake.
        self.joining = sorted({value for name, values in self.values.items() if name != SHAPE for value in values} | {_INVENTED})

    def others(self, name: str, token: str) -> list[str]:
        """The replacements of a token; ``name`` is its qualifier, or ``""`` for a token that all variants have."""
        names = [name] if name else [other for other, values in self.values.items() if token in values]
        known = [value for other in names for value in self.values.get(other, ())]
        if any(value in self.elements for value in known):
            known += self.elements
        return [value for value in dict.fromkeys([*known, *self.strangers]) if value != token]


def tokens(instruction: Instruction) -> list[tuple[str, str]]:
    """The parts of a canonical spelling, each with the name of its qualifier; an absent one is ``""``."""
    facts = instruction.variant.facts
    parts = []
    for literal, name in syntax_parts(instruction.variant.instruction.syntax):
        parts += [("", token) for token in literal.split(".") if token]
        if name:
            parts.append((name, str(facts.get(name, ""))))
    return parts


#: Neighbours, each with its change in words.
Neighbours = dict[str, str]


def neighbours(catalog: Catalog, families: Sequence[str] = ()) -> dict[str, Neighbours]:
    """Every neighbour of the :func:`representatives`, by family, each line once, sorted."""
    neighbourhood = Neighbourhood(catalog)
    legal = {line for instruction in catalog.all() for _, line in ptx.asked(instruction)}
    changes: dict[str, Neighbours] = {}
    for entry in catalog.database.spec.instructions:
        if not families or entry.family in families:
            lines = changes.setdefault(entry.family, {})
            for instruction in representatives(catalog.of(entry.name)):
                for line, change in neighbourhood.of(instruction).items():
                    lines.setdefault(line, change)
    return {family: {line: lines[line] for line in sorted(lines) if line not in legal} for family, lines in changes.items()}


class Neighbourhood:
    """The neighbours of single instructions of a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._vocabulary = Vocabulary(catalog)
        self._lists = functools.cache(lambda name: OperandLists(catalog.of(name)))

    def of(self, instruction: Instruction) -> Neighbours:
        """The lines with one change."""
        lines: Neighbours = {}
        for line, change in other_spellings(instruction, self._vocabulary, self._lists(instruction.variant.instruction.name)):
            lines.setdefault(line, change)
        for form in ptx.operand_lists(instruction):
            for line, change in other_operands(instruction, form, self._vocabulary):
                lines.setdefault(line, change)
        return lines


def representatives(instructions: Iterable[Instruction]) -> Iterator[Instruction]:
    """The first few instructions that together have every value of every qualifier in each form of the spec."""
    shown: set[tuple[int, str, str]] = set()
    for instruction in filter(_at_ends, instructions):
        form = id(instruction.variant.form)
        values = {(form, name, token) for name, token in tokens(instruction)}
        if not values <= shown:
            shown |= values
            yield instruction


def _at_ends(instruction: Instruction) -> bool:
    """Return whether each ranging extent is at an end of its range."""
    variant = instruction.variant
    return all(any(variant.extents[name] in (span.first, span.last) for span in variant.form.ranges[name]) for name in variant.ranging)


# --- spellings --------------------------------------------------------------------------------------------------------------

Operands = tuple[str, ...]


def _operands_of(instruction: Instruction) -> list[Operands]:
    return [tuple(ptx.split(line)[1]) for line in ptx.lines(instruction)]


class OperandLists:
    """The operands that a changed spelling is asked with; ``variants``: the instructions of the same name."""

    def __init__(self, variants: Iterable[Instruction]) -> None:
        self._by_shape: dict[str, set[Operands]] = {}
        for instruction in variants:
            self._by_shape.setdefault(str(instruction.variant.facts.get(SHAPE, "")), set()).update(_operands_of(instruction))
        #: The registers of an operand under another shape and other types: the same for many instructions.
        self._fillings: dict[tuple[object, ...], Callable[[str], str]] = {}

    def of(self, instruction: Instruction, changed: Mapping[str, str], own: Iterable[Operands]) -> set[Operands]:
        """The instruction's own operands, the operands of its new shape, and as many registers as it would fill."""
        return {*own, *(self._by_shape.get(changed[SHAPE], ()) if SHAPE in changed else ()), *self._filled(instruction, changed)}

    def _filled(self, instruction: Instruction, changed: Mapping[str, str]) -> Iterator[Operands]:
        """The operands with as many registers as other shapes and types would fill."""
        variant = instruction.variant
        other = Variant(
            variant.instruction, variant.form, {name: changed.get(name, value) for name, value in variant.qualifiers.items()}, {}
        )
        if not changed or other.extents.keys() != variant.extents.keys():
            return
        key = id(variant.form), *other.qualifiers.values()
        filling = self._fillings.get(key)
        if filling is None:
            filling = self._fillings[key] = functools.cache(functools.partial(_filling, instruction.database.spec, other))
        for form in instruction.forms:
            texts = [
                filling(names)
                if ptx.named(names) == [names] and form.operand(names).listed and form.operand(names).elements
                else ptx.item(form, names)
                for names in ptx.items(form.syntax)
            ]
            if all(texts):
                yield tuple(texts)


def other_spellings(instruction: Instruction, vocabulary: Vocabulary, lists: OperandLists) -> Iterator[tuple[str, str]]:
    """The lines of an instruction whose spelling has one change, each with the change in words."""
    own = _operands_of(instruction)
    for changed, texts, change in _spelled(instruction, vocabulary):
        spelling = ".".join(token for token in texts if token)
        yield from ((ptx.line(spelling, operands), change) for operands in lists.of(instruction, changed, own))


def _spelled(instruction: Instruction, vocabulary: Vocabulary) -> Iterator[tuple[dict[str, str], list[str], str]]:
    """Every changed spelling: the qualifiers that changed, the tokens, and the change in words."""
    parts = tokens(instruction)
    texts = [token for _, token in parts]
    for place, (name, token) in enumerate(parts):
        before, after = texts[:place], texts[place + 1 :]
        if place and token:  # without its first token it is another instruction
            yield {}, [*before, *after], f"without .{token}"
            yield {}, [*before, token, *texts[place:]], f".{token} twice"
        for other in (
            vocabulary.others(name, token) + (_sizes_near(token) if name in instruction.variant.instruction.extents else [])
            if place
            else ()
        ):
            yield {name: other}, [*before, other, *after], f".{other} for {name or f'.{token}'}"
    written = [place for place, token in enumerate(texts) if place and token]
    for first_place, second_place in itertools.pairwise(written):
        one, other = texts[first_place], texts[second_place]
        if one != other:
            swapped = {first_place: other, second_place: one}
            yield {}, [swapped.get(place, token) for place, token in enumerate(texts)], f".{one} and .{other} change places"
    for place, ((first, one), (second, other)) in enumerate(itertools.pairwise(parts)):
        for pair in vocabulary.pairs.get((first, second), ()) if not one and not other else ():
            yield dict(zip((first, second), pair, strict=True)), [*texts[:place], *pair, *texts[place + 2 :]], f".{'.'.join(pair)} joins"
    for together in _together(parts):
        names = [parts[place][0] for place in together]
        for other in vocabulary.others(*parts[together[0]]):
            changed = [other if place in together else token for place, token in enumerate(texts)]
            yield dict.fromkeys(names, other), changed, f".{other} for {' and '.join(names)}"
    for token in vocabulary.joining:
        yield {}, [*texts, token], f".{token} at the end"


def _together(parts: Sequence[tuple[str, str]]) -> list[list[int]]:
    """The places of qualifiers that share a value: the types of A and B, of C and D, …."""
    by_token: dict[str, list[int]] = {}
    for place, (name, token) in enumerate(parts):
        if name and token:
            by_token.setdefault(token, []).append(place)
    return [places for places in by_token.values() if len(places) > 1]


def _sizes_near(token: str) -> list[str]:
    """A shape, or another token with numbers, with one of them doubled or halved."""
    near = []
    for number in _NUMBER.finditer(token):
        for size in (int(number[0]) * 2, int(number[0]) // 2):
            near.append(f"{token[: number.start()]}{size}{token[number.end() :]}")
    return near


def _filling(spec: Spec, variant: Variant, name: str) -> str:
    """The text of an operand under another shape and type; ``""`` if its number of registers is unknown."""
    element = str(variant.facts[variant.instruction.operand_kinds[name].type])
    plan = layouts.plan(spec, variant, name) if element in {entry.name for entry in spec.types.elements} else None
    bank = next((entry.registers[0] for entry in spec.types.carriers if name in entry.operands and element in entry.elements), None)
    if plan is None or bank is None:
        return ""
    elements = math.prod(plan.axes.values()) // plan.threads
    return vector(bank, max(1, elements * plan.bits // register_type(spec, bank).bits))


# --- operands ---------------------------------------------------------------------------------------------------------------


def other_operands(instruction: Instruction, form: OperandForm, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """The lines of an instruction whose operands have one change, each with the change in words."""
    names = ptx.items(form.syntax)
    texts = [ptx.item(form, name) for name in names]
    line = functools.partial(ptx.line, instruction.canonical)
    for more in ("0", register(vocabulary.banks[0])):
        yield line([*texts, more]), f"{ptx.bank_of(more) or more} at the end"
    for place, name in enumerate(names):
        before, after = texts[:place], texts[place + 1 :]
        yield line([*before, *after]), f"without {name}"
        yield line([*before, texts[place], *texts[place:]]), f"{name} twice"
        for part in ptx.named(name):
            for other, change in operand_others(form.operand(part), vocabulary):
                yield line([*before, ptx.item(form, name, {part: other}), *after]), change


def operand_others(operand: Operand, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """The replacements of an operand, each with the change in words."""
    name = operand.name
    if operand.listed:
        usual = operand.register_types[0]
        counts = {operand.registers - 1, operand.registers + 1, operand.registers * 2, operand.registers // 2} - {operand.registers}
        yield from ((vector(usual, count), f"{count - operand.registers:+} registers for {name}") for count in sorted(counts))
        yield from ((vector(bank, operand.registers), f"{bank} for {name}") for bank in vocabulary.banks)
        return
    yield from ((register(bank), f"{bank} for {name}") for bank in dict.fromkeys([*vocabulary.banks, *operand.register_types]))
    if operand.immediates is None:
        yield "0", f"an immediate for {name}"
        return
    least, most = operand.immediates[0], operand.immediates[-1]
    few = operand.immediates if len(operand.immediates) <= 1 << 8 else ()
    for value in sorted({*few, least, most, least - 1, -1, most + 1, most + 2, 1 << 31, 1 << 32}):
        yield str(value), f"{value} for {name}"
