"""Instructions: syntax, qualifiers, operands, forms and requirements of an instruction agree with each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ptxmma.catalog.variants import fixed_tokens, placeholders, qualifier_values
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules import form_rules
from ptxmma.generator.spec_rules.rule_context import COMMON_FACTS, NUMBERS, OPERAND_FACTS, PLACES, VARIABLES, Place, RuleContext, listed
from ptxmma.matrices.operations import OPERATIONS
from ptxmma.model import Condition, InstructionSet, Version, formula, operand_names


def problems(context: RuleContext) -> Iterator[Problem]:
    """Parts of an instruction that contradict each other."""
    for index, entry in enumerate(context.spec.instructions):
        for problem in _of_instruction(context, entry, ("instructions", index)):
            context.broken.add(index)
            yield problem


def _of_instruction(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    yield from _syntax(context, entry, place)
    yield from _extents(context, entry, place)
    yield from _modifiers(context, entry, place)
    yield from form_rules.operands(context, entry, place)
    for number, form in enumerate(entry.forms):
        yield from form_rules.forms(context, entry, form, (*place, "forms", number))
    if not entry.memory and all(operand.access == "read" for operand in entry.operand_kinds.values()):
        yield Problem(context.at(*place), f"{entry.name} writes nothing, so it must order something: say memory: true")
    yield from _requirements(context, entry, place)
    yield from _operation(context, entry, place)


def _operation(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """Each operand list has the operands that the operation needs."""
    lacking: dict[str, None] = {}  # each sentence once, whatever the number of lists
    for texts in entry.operands.values() or [()]:
        names = {name for text in texts for name in operand_names(text)}
        kinds = {name: operand for name, operand in entry.operand_kinds.items() if name in names}
        narrowed = msgspec.structs.replace(entry, operands={"": texts}, operand_kinds=kinds)
        lacking |= dict.fromkeys(OPERATIONS[entry.operation].lacks(narrowed))
    for message in lacking:
        yield Problem(context.at(*place, "operation"), message)


def _syntax(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """The syntax names every qualifier, and nothing else."""
    named = set(placeholders(entry.syntax))
    qualifiers = [*entry.qualifiers, *(name for name in entry.extents if name not in entry.qualifiers)]
    for name in sorted(named - set(qualifiers)):
        known = listed(qualifiers)
        yield Problem(context.at(*place, "syntax"), f"the syntax names {name!r}, which is not a qualifier; known: {known}")
    for name in sorted(set(qualifiers) - named):
        where = "qualifiers" if name in entry.qualifiers else "extents"
        yield Problem(context.at(*place, where, name), f"the syntax does not name qualifier {name!r}")
    for name in qualifiers:
        if name in COMMON_FACTS | OPERAND_FACTS:
            where = "qualifiers" if name in entry.qualifiers else "extents"
            message = f"a qualifier cannot be called {name!r}: conditions have a fact of this name; choose another name"
            yield Problem(context.at(*place, where, name), message)


def _extents(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """Sizes have names of their own, and some form has each value that gives sizes."""
    for qualifier, extents in entry.extents.items():
        here = (*place, "extents", qualifier)
        names = [*formula.placeholders(extents.pattern), *(name for sizes in extents.values.values() for name in sizes)]
        for name in dict.fromkeys(names):
            if name in VARIABLES | PLACES | NUMBERS:
                yield Problem(context.at(*here), f"{name!r} is a variable of formulas already; choose another name")
            elif name in COMMON_FACTS | OPERAND_FACTS:
                message = f"a size cannot be called {name!r}: conditions have a fact of this name; choose another name"
                yield Problem(context.at(*here), message)
        for value in extents.values:
            if value not in qualifier_values(entry, qualifier):
                yield Problem(context.at(*here, value), f"no form has {qualifier} {value!r}; leave it out")


def _modifiers(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """Entries about modifiers name modifiers of the instruction."""
    fixed, written = fixed_tokens(entry.syntax), re.split(r"[.{}]+", entry.syntax)
    for number, group in enumerate(entry.ordered):
        yield from context.known("qualifier or modifier", group, [*entry.qualifiers, *fixed], *place, "ordered", number)
        if (order := sorted(set(group).intersection(written), key=written.index)) != [name for name in group if name in written]:
            yield Problem(context.at(*place, "ordered", number), f"the syntax has another order: {listed(order)}")
    for number, ignored in enumerate(entry.ignored):
        if ignored.behind:
            yield from context.known("qualifier", [ignored.behind], entry.qualifiers, *place, "ignored", number, "behind")
    tokens = modifiers_of(entry)
    yield from context.known("modifier", entry.repeatable, sorted(tokens), *place, "repeatable")
    for number, hint in enumerate(entry.hints):
        if hint.name in entry.qualifiers:
            yield Problem(context.at(*place, "hints", number, "name"), f"{hint.name!r} is a qualifier already; choose another name")
        yield from context.known("value of the hint", filter(None, [hint.default]), hint.values, *place, "hints", number, "default")
        for value in tokens.intersection(hint.values):
            yield Problem(context.at(*place, "hints", number, "values", value), f"{value!r} is a modifier of the syntax already")


def modifiers_of(entry: InstructionSet) -> set[str]:
    """The modifiers that its forms have."""
    return {*fixed_tokens(entry.syntax), *(value for name in entry.qualifiers for value in qualifier_values(entry, name) if value)}


def _requirements(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """Requirements and observations name what exists, and no two requirements disagree."""
    for number, rule in enumerate(entry.requires):
        yield from _rule(context, rule.ptx, rule.targets, (*place, "requires", number))
        for before, other in enumerate(entry.requires[:number]):
            differ = (rule.ptx and other.ptx and rule.ptx != other.ptx) or (
                rule.targets and other.targets and rule.targets != other.targets
            )
            if differ and _normal(rule.when) == _normal(other.when):
                here, first = (context.at(*place, "requires", at) for at in (number, before))
                yield Problem(here, f"another rule has the same condition and asks for something else; see also {first}")
    for number, observed in enumerate(entry.observed):
        yield from _rule(context, observed.ptx, observed.targets, (*place, "observed", number))
    for number, hint in enumerate(entry.hints):
        for index, rule in enumerate(hint.requires):
            yield from _rule(context, rule.ptx, rule.targets, (*place, "hints", number, "requires", index))
    for name, operand in entry.operand_kinds.items():
        for index, rule in enumerate(operand.requires):
            yield from _rule(context, rule.ptx, rule.targets, (*place, "operand_kinds", name, "requires", index))


def _rule(context: RuleContext, ptx: str, targets: Sequence[str], place: Place) -> Iterator[Problem]:
    admitted = [Version(entry.ptx) for entry in context.spec.targets if {entry.name, *context.ancestors(entry.name)} & set(targets)]
    first = min(admitted, default=Version())
    if ptx and first and ptx < first:
        yield Problem(context.at(*place, "ptx"), f"PTX ISA {ptx} has none of the targets of this rule; the first of them came with {first}")


def _normal(conditions: Iterable[Condition]) -> frozenset[frozenset[tuple[str, frozenset[str | int]]]]:
    """Equal for conditions that differ in the order of their parts only."""
    return frozenset(frozenset((key, frozenset(values)) for key, values in condition.items()) for condition in conditions)
