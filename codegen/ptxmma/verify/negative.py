"""The negative space: what lies next to a legal instruction, one change away, and what the assemblers say of it.

One thing changes at a time:

* a modifier becomes another value that the spec knows for its place, or one from elsewhere; it is dropped, or written twice;
* modifiers that have one value together (A and B, or C and D, of one type) change together;
* a modifier that belongs elsewhere joins, or two that stand side by side elsewhere;
* an operand is dropped or written twice, or one more follows;
* a list has one register less or one more; its registers have another type;
* an immediate leaves its range; a register stands for an immediate, or an immediate for a register.

A changed spelling is asked with the operands that it had, with those that instructions of its new shape have, and with as many
registers as its new shape and types would fill.  Of a range of N the ends stand for all.  Some neighbours are legal: the library is
asked about each of them, the same as the assembler.  Predicates do not stand for other registers here: ptxas takes some of them, and
stumbles over them ("Internal compiler error") when it makes code.

Each neighbour knows its change in words.  Where an entry of the errata has a neighbour on which assemblers and database differ, it
explains every neighbour of the family with the same change and the same answers.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma import layouts, operands, ptx
from ptxmma.instructions import Catalog, Instruction, OperandForm
from ptxmma.model import Range, Shape, Spec
from ptxmma.operands import Operand
from ptxmma.requirements import version_key
from ptxmma.variants import SHAPE, Variant, syntax_parts
from ptxmma.verify import matrix, questions
from ptxmma.verify.assemblers import Assembler
from ptxmma.verify.legality import Legality
from ptxmma.verify.questions import Lines, Progress, quiet

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
#: A modifier that no instruction has.
_INVENTED = "unheard_of"
#: Of all values that are foreign to a place, every so many are tried.
_EVERY = 5
#: Lines for one process of an assembler.
_BATCH = 5000


class Disagreement(NamedTuple):
    """A line of which the newest assembler that knows a target says something else than the database."""

    line: str
    cuda: str
    version: str
    targets: tuple[str, ...]
    accepted: bool  # by the assembler
    said: str  # why it refuses, on the first of the targets
    erratum: str  # the entry of the spec that has this line, with both answers; "" for a disagreement

    def __str__(self) -> str:
        assembler, database = ("accepts", "refuses") if self.accepted else (f"refuses ({self.said})", "accepts")
        return f"CUDA {self.cuda} {assembler} in {self.version} on {', '.join(self.targets)}, the database {database}: {self.line}"


class Vocabulary:
    """The values that a spec knows."""

    def __init__(self, catalog: Catalog) -> None:
        spec = catalog.database.spec
        self.banks = [entry.name for entry in spec.types.registers if entry.bits > 1]
        self.elements = [entry.name for entry in spec.types.elements]
        self.values: dict[str, list[str]] = {}
        #: Values that stand side by side, by the qualifiers that have them.
        self.pairs: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        for found in filter(_stands_for_others, catalog.all()):
            present = [(name, token) for name, token in tokens(found) if token]
            for name, token in present:
                if name and token not in self.values.setdefault(name, []):
                    self.values[name].append(token)
            for (first, one), (second, other) in itertools.pairwise(present):
                if first and second:
                    self.pairs.setdefault((first, second), {})[one, other] = None
        #: A few that stand for all that belongs elsewhere.
        foreign = [*dict.fromkeys(values[0] for values in self.values.values()), *self.banks]
        self.strangers = [*foreign[::_EVERY], _INVENTED]
        #: Whatever may follow a spelling by mistake.
        self.joining = sorted({value for name, values in self.values.items() if name != SHAPE for value in values} | {_INVENTED})

    def others(self, name: str, token: str) -> list[str]:
        """What may stand in the place of a token: ``name`` is its qualifier, or ``""`` for a token that all variants have."""
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
    """Every neighbour of every instruction, by family, each line once, sorted."""
    vocabulary = Vocabulary(catalog)
    found: dict[str, Neighbours] = {}
    legal = {line for instruction in catalog.all() for line in ptx.lines(instruction)}
    for entry in catalog.database.spec.instructions:
        if families and entry.family not in families:
            continue
        variants = catalog.of(entry.name)
        lists = _operands_by_shape(variants)
        lines = found.setdefault(entry.family, {})
        for instruction in filter(_stands_for_others, variants):
            for line, change in _other_spellings(instruction, vocabulary, lists):
                lines.setdefault(line, change)
            for form in ptx.operand_lists(instruction):
                for line, change in _other_operands(instruction, form, vocabulary):
                    lines.setdefault(line, change)
    return {family: {line: lines[line] for line in sorted(lines) if line not in legal} for family, lines in found.items()}


def _stands_for_others(instruction: Instruction) -> bool:
    """Whether it is at an end of its range of N, or has none."""
    variant = instruction.variant
    return variant.shape is None or any(variant.facts["n"] in (span.first, span.last) for span in variant.shape.n)


# --- spellings --------------------------------------------------------------------------------------------------------------

_Operands = tuple[str, ...]


def _operands_of(instruction: Instruction) -> list[_Operands]:
    return [tuple(ptx.split(line)[1]) for line in ptx.lines(instruction)]


def _operands_by_shape(variants: Iterable[Instruction]) -> dict[str, set[_Operands]]:
    found: dict[str, set[_Operands]] = {}
    for instruction in variants:
        found.setdefault(str(instruction.variant.facts.get(SHAPE, "")), set()).update(_operands_of(instruction))
    return found


def _other_spellings(instruction: Instruction, vocabulary: Vocabulary, lists: Mapping[str, set[_Operands]]) -> Iterator[tuple[str, str]]:
    own = _operands_of(instruction)
    for changed, texts, change in _spelled(instruction, vocabulary):
        spelling = ".".join(token for token in texts if token)
        candidates = {*own, *(lists.get(changed[SHAPE], ()) if SHAPE in changed else ()), *_filled(instruction, changed)}
        yield from ((ptx.line(spelling, operands), change) for operands in candidates)


def _spelled(instruction: Instruction, vocabulary: Vocabulary) -> Iterator[tuple[dict[str, str], list[str], str]]:
    """Every changed spelling: the qualifiers that changed, the tokens, and the change in words."""
    parts = tokens(instruction)
    texts = [token for _, token in parts]
    for place, (name, token) in enumerate(parts):
        before, after = texts[:place], texts[place + 1 :]
        if place and token:  # without its first token it is another instruction
            yield {}, [*before, *after], f"without .{token}"
            yield {}, [*before, token, *texts[place:]], f".{token} twice"
        for other in vocabulary.others(name, token) + (_shapes_near(token) if name == SHAPE else []) if place else ():
            yield {name: other}, [*before, other, *after], f".{other} for {name or f'.{token}'}"
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
    """The places of qualifiers that have one value: those of A and B, of C and D, …."""
    found: dict[str, list[int]] = {}
    for place, (name, token) in enumerate(parts):
        if name and token:
            found.setdefault(token, []).append(place)
    return [places for places in found.values() if len(places) > 1]


def _shapes_near(token: str) -> list[str]:
    """A shape with one of its numbers doubled or halved."""
    match = _SHAPE.fullmatch(token)
    assert match
    sizes = list(map(int, match.groups()))
    found = []
    for place in range(3):
        for size in (sizes[place] * 2, sizes[place] // 2):
            found.append("m{}n{}k{}".format(*sizes[:place], size, *sizes[place + 1 :]))
    return found


def _filled(instruction: Instruction, changed: Mapping[str, str]) -> Iterator[_Operands]:
    """The operands of an instruction that had other shapes or types, as many registers as these would fill."""
    variant = instruction.variant
    shape = _SHAPE.fullmatch(str(changed.get(SHAPE, variant.facts.get(SHAPE, ""))))
    if shape is None or not changed:
        return
    m, n, k = map(int, shape.groups())
    qualifiers = {name: changed.get(name, str(variant.facts.get(name, ""))) for name in variant.form.qualifiers}
    other = Variant(variant.instruction, variant.form, Shape(m=m, n=(Range(first=n, last=n, step=1),), k=k), n, qualifiers)
    for form in instruction.forms:
        texts = [_filling(instruction.database.spec, other, form, names) for names in ptx.items(form.syntax)]
        if all(texts):
            yield tuple(texts)


def _filling(spec: Spec, variant: Variant, form: OperandForm, names: str) -> str:
    """The text of an operand under another shape and type; ``""`` where nothing says how many registers it would take."""
    if names.startswith("{") or not form.operand(names).elements:
        return ptx.item(form, names)
    element = str(variant.facts[variant.instruction.operand_kinds[names].type])
    plan = layouts.fragment_plan(spec, variant, names, element) if element in {entry.name for entry in spec.types.elements} else None
    bank = next((entry.registers[0] for entry in spec.types.carriers if names in entry.operands and element in entry.elements), None)
    if plan is None or bank is None:
        return ""
    elements = plan.rows * plan.cols * spec.fragments[plan.entry].computations // plan.threads
    return ptx.vector(bank, max(1, elements * plan.bits // operands.register_type(spec, bank).bits))


# --- operands ---------------------------------------------------------------------------------------------------------------


def _other_operands(instruction: Instruction, form: OperandForm, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    names = ptx.items(form.syntax)
    texts = [ptx.item(form, name) for name in names]
    line = functools.partial(ptx.line, instruction.canonical)
    for more in ("0", ptx.register(vocabulary.banks[0])):
        yield line([*texts, more]), f"{ptx.bank_of(more) or more} at the end"
    for place, name in enumerate(names):
        before, after = texts[:place], texts[place + 1 :]
        yield line([*before, *after]), f"without {name}"
        yield line([*before, texts[place], *texts[place:]]), f"{name} twice"
        if name.startswith("{"):
            inner = ptx.items(name[1:-1])
            parts = [ptx.operand(form.operand(part)) for part in inner]
            for number, part in enumerate(inner):
                for other, change in _others(form.operand(part), vocabulary):
                    yield line([*before, "{" + ", ".join([*parts[:number], other, *parts[number + 1 :]]) + "}", *after]), change
        else:
            for other, change in _others(form.operand(name), vocabulary):
                yield line([*before, other, *after]), change


def _others(operand: Operand, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """What may stand in the place of an operand, and the change in words."""
    name = operand.name
    if operand.elements:
        usual = operand.register_types[0]
        counts = {operand.registers - 1, operand.registers + 1, operand.registers * 2, operand.registers // 2} - {operand.registers}
        yield from ((ptx.vector(usual, count), f"{count - operand.registers:+} registers for {name}") for count in sorted(counts))
        yield from ((ptx.vector(bank, operand.registers), f"{bank} for {name}") for bank in vocabulary.banks)
        return
    yield from ((ptx.register(bank), f"{bank} for {name}") for bank in vocabulary.banks)
    if operand.immediates is None:
        yield "0", f"an immediate for {name}"
        return
    least, most = operand.immediates[0], operand.immediates[-1]
    few = operand.immediates if len(operand.immediates) <= 1 << 8 else ()
    for value in sorted({*few, least, most, least - 1, -1, most + 1, most + 2, 1 << 31, 1 << 32}):
        yield str(value), f"{value} for {name}"


# --- asking -----------------------------------------------------------------------------------------------------------------


def disagreements(
    catalog: Catalog,
    space: Mapping[str, Neighbours],
    assemblers: Sequence[Assembler],
    targets: Sequence[str],
    cache: Path,
    jobs: int,
    progress: Progress = quiet,
) -> list[Disagreement]:
    """Where in a negative space the database and the newest assembler that knows a target differ, in its newest version."""
    banks = matrix.banks(catalog)
    lines = [line for found in space.values() for line in found]
    everything = Lines.of(lines, banks)
    unreadable = {assembler: questions.unreadable(assembler, everything) for assembler in assemblers}
    places = []
    for family, neighbours in space.items():
        held = list(neighbours)
        batches = [Lines.of(held[start : start + _BATCH], banks) for start in range(0, len(held), _BATCH)]
        speakers = asked_of(catalog, family, assemblers, targets)
        places += [(target, assembler, batch) for target, assembler in speakers.items() for batch in batches]
    asked = [matrix.question(assembler, target, assembler.ptx, batch, unreadable[assembler]) for target, assembler, batch in places]
    legality = Legality(catalog)
    accepted = {line: legality.accepted_by(line) for line in lines}
    found: dict[tuple[str, Assembler, bool], list[tuple[str, str]]] = {}
    for (target, assembler, batch), answer in zip(places, questions.ask(asked, cache, jobs, progress), strict=True):
        refused = questions.by_line(answer)
        for number, line in enumerate(batch.texts):
            first = accepted[line].get(target)
            legal = first is not None and version_key(first) <= version_key(assembler.ptx)
            if legal == (number in refused):
                found.setdefault((line, assembler, not legal), []).append((target, refused.get(number, "")))
    explained = explanations(catalog, space)
    return [
        Disagreement(line, assembler.cuda, assembler.ptx, tuple(target for target, _ in each), taken, each[0][1], explained(line, taken))
        for (line, assembler, taken), each in sorted(found.items(), key=lambda pair: (pair[0][0], pair[0][1].cuda))
    ]


def asked_of(catalog: Catalog, family: str, assemblers: Sequence[Assembler], targets: Sequence[str]) -> dict[str, Assembler]:
    """The targets that are asked about a family, each with the newest assembler that knows it.

    Of targets that accept the same of its instructions the first stands for all.
    """
    newest = {target: assembler for target, assembler in matrix.newest(catalog, assemblers).items() if target in targets}
    instructions = [found for found in catalog.all() if found.family == family]
    kinds: dict[tuple[Assembler, frozenset[str]], str] = {}
    for target, assembler in newest.items():
        accepted = frozenset(found.canonical for found in instructions if target in found.accepted_by())
        kinds.setdefault((assembler, accepted), target)
    return {target: newest[target] for target in kinds.values()}


def errata(catalog: Catalog) -> dict[tuple[str, bool], str]:
    """The errata that have a line on which assemblers and database differ, by the line and whether assemblers accept it."""
    found = {}
    for entry in catalog.database.spec.errata:
        for seen in entry.seen:
            accepted = seen.answer == "accepted"
            if seen.asked and seen.database == ("refuses" if accepted else "accepts"):
                found[ptx.expanded(seen.asked), accepted] = entry.id
    return found


def explanations(catalog: Catalog, space: Mapping[str, Neighbours]) -> Callable[[str, bool], str]:
    """What finds the erratum of a line and an assembler's answer: one that has it, or a neighbour of its family with the same change."""
    changes = {line: (family, change) for family, found in space.items() for line, change in found.items()}
    known = {(changes.get(line, line), accepted): name for (line, accepted), name in errata(catalog).items()}
    return lambda line, accepted: known.get((changes.get(line, line), accepted), "")
