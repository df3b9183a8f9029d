"""Mutants against the stored answers of the assemblers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ptxmma import ptx
from ptxmma.instructions import Catalog, Instruction, OperandForm
from ptxmma.model import InstructionSet
from ptxmma.requirements import version_key
from ptxmma.variants import qualifier_values
from ptxmma.verify import report
from ptxmma.verify.legality import Legality
from ptxmma.verify.report import Report

#: Stands for any token.
_ANY = ""


class Assemblers:
    """The stored answers, ready to be held against many mutants.

    The report holds the answers to the usual line of each instruction.  Of its negative space, which are the lines one change away, it
    says that the assemblers agreed with the database, and where they did not: of those lines the answers are what that database says.

    Args:
        told: the report of the assemblers.
        asked: the catalog that it was made with.

    Raises:
        ValueError: the report was made with another catalog.
    """

    def __init__(self, told: Report, asked: Catalog) -> None:
        if stale := report.stale(told, asked):
            raise ValueError(f"the answers of the assemblers are about another spec ({', '.join(stale)}): ask again")
        self._told = told
        self._speakers = {target: entry["cuda"] for entry in _by_age(told) for target in entry["targets"]}
        self._said = {line: self._accepted(entry["accepted"]) for entry in told["answers"] for line in entry["lines"]}
        negative = told["negative"]
        self._disputed = {line for entry in [*negative["explained"], *negative["disagreements"]] for line in entry["lines"]}
        self._asked = {instruction.canonical: instruction for instruction in asked.all()}
        self._spellings = {entry.name: _spelling_facts(entry) for entry in asked.database.spec.instructions}
        self._space = _Space(self._asked)
        self._legality = Legality(asked)
        self._neighbour = functools.cache(self._legality.accepted_by)

    def _accepted(self, by_release: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        """Target -> first version, by the newest assembler that knows the target."""
        return {target: by_release[cuda][target] for target, cuda in self._speakers.items() if target in by_release.get(cuda, {})}

    def accepted_by(self, line: str) -> Mapping[str, str] | None:
        """The targets that accept a line, each with the first version that does; None for a line that nobody was asked about."""
        text = ptx.compact(line)
        if text in self._said:
            return self._said[text]
        spelling, _ = ptx.split(line)
        if text in self._disputed or spelling not in self._space:
            return None
        return self._neighbour(line)

    def contradiction(self, catalog: Catalog) -> str:
        """The first answer that a catalog contradicts, in words."""
        spec = catalog.database.spec
        for what, said, own in (
            ("version", self._told["versions"], {entry.version for entry in spec.isa_versions}),
            ("target", self._speakers, {entry.name for entry in spec.targets}),
        ):
            if unknown := set(said) - own:
                return f"an assembler knows {what} {min(unknown)}"
        return next(self._contradictions(catalog), "")

    def _contradictions(self, catalog: Catalog) -> Iterator[str]:
        lines: set[str] = set()
        changed = []
        for instruction in catalog.all():
            own = ptx.lines(instruction)
            lines.update(map(ptx.compact, own))
            accepted = instruction.accepted_by()
            yield from (text for line in own if (text := self._different(line, accepted)))
            before = self._asked.get(instruction.canonical)
            if before is not None and [_operand_facts(form) for form in before.forms] != [
                _operand_facts(form) for form in instruction.forms
            ]:
                changed.append(instruction)
        for line, accepted in self._said.items():
            if accepted and line not in lines:
                yield f"accepted: {line[:120]}"
        legality = Legality(catalog)
        banks = [entry.name for entry in catalog.database.spec.types.registers]
        for instruction in changed:
            for line in (line for form in ptx.operand_lists(instruction) for line in other_operands(instruction, form, banks)):
                yield from (text for text in [self._different(line, legality.accepted_by(line))] if text)
        for entry in catalog.database.spec.instructions:
            if self._spellings.get(entry.name) != _spelling_facts(entry):
                for line in (line for instruction in _two_of_each_form(catalog, entry) for line in other_spellings(instruction)):
                    yield from (text for text in [self._different(line, legality.accepted_by(line))] if text)

    def _different(self, line: str, accepted: Mapping[str, str]) -> str:
        """What the assemblers say of a line where that is something else."""
        said = self.accepted_by(line)
        if said is None or said == accepted:
            return ""
        for target in dict.fromkeys([*said, *accepted]):
            if said.get(target) != accepted.get(target):
                verdict = f"accepted from {said[target]} on" if target in said else "refused"
                return f"{verdict} on {target}: {line[:120]}"
        return ""


def _by_age(told: Report) -> list[Mapping[str, Any]]:
    return sorted(told["assemblers"], key=lambda entry: version_key(entry["cuda"]))


class _Space:
    """The negative space of some spellings, as far as spelling goes: what is one change away from one of them."""

    def __init__(self, spellings: Iterable[str]) -> None:
        self._known = {tuple(spelling.split(".")) for spelling in spellings}
        self._shorter = {shorter for tokens in self._known for shorter in _shorter(tokens)}
        self._opened = {opened for tokens in self._known for opened in _opened(tokens)}

    def __contains__(self, spelling: str) -> bool:
        tokens = tuple(spelling.split("."))
        return (
            tokens in self._shorter or any(each in self._known for each in _shorter(tokens)) or not self._opened.isdisjoint(_opened(tokens))
        )


def _shorter(tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The tokens without one of them."""
    return ((*tokens[:place], *tokens[place + 1 :]) for place in range(len(tokens)))


def _opened(tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The tokens with one of them left open, or all that are the same."""
    for place, token in enumerate(tokens):
        yield (*tokens[:place], _ANY, *tokens[place + 1 :])
        yield tuple(_ANY if other == token else other for other in tokens)


def _spelling_facts(entry: InstructionSet) -> tuple[object, ...]:
    """What decides which spellings mean an instruction, apart from its variants."""
    return entry.syntax, entry.opcode, entry.ordered, entry.repeatable, {name: part.default for name, part in entry.qualifiers.items()}


def _operand_facts(form: OperandForm) -> list[tuple[object, ...]]:
    """What decides which operands an assembler takes."""
    return [(operand.register_types, operand.registers, operand.immediates, operand.takes_register) for operand in form.operands]


def _two_of_each_form(catalog: Catalog, entry: InstructionSet) -> Iterator[Instruction]:
    """The first and the last variant of each form: one without and one with what is optional."""
    of_form: dict[int, list[Instruction]] = {}
    for instruction in catalog.of(entry.name):
        of_form.setdefault(id(instruction.variant.form), []).append(instruction)
    for found in of_form.values():
        yield from {found[0].canonical: found[0], found[-1].canonical: found[-1]}.values()


def other_operands(instruction: Instruction, form: OperandForm, banks: Iterable[str]) -> Iterator[str]:
    """The lines of an instruction in which one operand has another register type, another number of them, or another constant."""
    names = ptx.items(form.syntax)
    texts = [ptx.item(form, name) for name in names]
    for place, name in enumerate(names):
        inner = ptx.items(name[1:-1]) if name.startswith("{") else [name]
        parts = [ptx.operand(form.operand(part)) for part in inner]
        for number, part in enumerate(inner):
            operand = form.operand(part)
            counts = [operand.registers + 1, operand.registers * 2] if operand.elements else []
            others = [ptx.vector(bank, operand.registers) if operand.elements else ptx.register(bank) for bank in banks]
            others += [ptx.vector(operand.register_types[0], count) for count in counts]
            legal = operand.immediates or (0,)
            others += [] if operand.elements else map(str, sorted({*legal[:9], min(legal) - 1, max(legal), max(legal) + 1}))
            for other in others:
                text = "{" + ", ".join([*parts[:number], other, *parts[number + 1 :]]) + "}" if name.startswith("{") else other
                yield ptx.line(instruction.canonical, [*texts[:place], text, *texts[place + 1 :]])


def other_spellings(instruction: Instruction) -> Iterator[str]:
    """The lines of an instruction with a modifier dropped, written twice, or in the place of which another one of its kind stands."""
    entry = instruction.variant.instruction
    values = sorted({value for name in entry.qualifiers for value in qualifier_values(entry, name)})
    tokens = instruction.canonical.split(".")
    for line in ptx.lines(instruction):
        rest = line[len(instruction.canonical) :]
        for place, token in enumerate(tokens[1:], 1):
            for others in ([], [token, token], *([value] for value in (values if token in values else ()))):
                yield ".".join([*tokens[:place], *others, *tokens[place + 1 :]]) + rest
