"""Conditions: they test facts that exist, against values that some variant has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxmma.catalog.variants import qualifier_values
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext, listed
from ptxmma.model import Condition, InstructionSet

#: The lists of an instruction whose entries have a condition.
CONDITIONAL = ("ignored", "requires", "observed", "semantics", "undefined", "uniform", "notes")
#: Facts that conditions may test besides an instruction's qualifiers and the sizes that they give.
_COMMON_FACTS = {"name", "family"}
_OPERAND_FACTS = {"operand", "bits", "ratio", "chunk_size"}

#: The values of each qualifier.
_Values = dict[str, set[str]]


def problems(context: RuleContext) -> Iterator[Problem]:
    """Conditions on facts that nothing has, and on values that no variant has."""
    spec, common = context.spec, _COMMON_FACTS | context.extents
    everything: _Values = {}
    for index, entry in enumerate(spec.instructions):
        values = {name: set(qualifier_values(entry, name)) for name in dict.fromkeys([*entry.qualifiers, *entry.extents])}
        for name, some in values.items():
            everything.setdefault(name, set()).update(some)
        yield from _of_instruction(context, entry, values, ("instructions", index))
    for section in ("register_layouts", "granularities", "block_formats"):
        for number, part in enumerate(getattr(spec, section)):
            yield from _conditions(context, part.of, everything, common | _OPERAND_FACTS, (section, number, "of"))
    for index, chip in enumerate(spec.throughput):
        for number, rate in enumerate(chip.rates):
            yield from _conditions(context, rate.of, everything, common, ("throughput", index, "rates", number, "of"))
    for section in ("containers", "carriers"):
        for number, part in enumerate(getattr(spec.types, section)):
            yield from _conditions(context, part.when, everything, common | _OPERAND_FACTS, ("types", section, number, "when"))


def _of_instruction(context: RuleContext, entry: InstructionSet, values: _Values, place: Place) -> Iterator[Problem]:
    """The conditions of an instruction, and the values that its qualifiers have where a spelling leaves them out."""
    facts = _COMMON_FACTS | context.extents
    for name in CONDITIONAL:
        for number, rule in enumerate(getattr(entry, name)):
            yield from _conditions(context, rule.when, values, facts, (*place, name, number, "when"))
    for name, qualifier in entry.qualifiers.items():
        allowed = sorted(values[name])
        if qualifier.usual:
            yield from context.known(f"value of {name}", [qualifier.usual], allowed, *place, "qualifiers", name, "usual")
        for number, default in enumerate(qualifier.default):
            here = (*place, "qualifiers", name, "default", number)
            yield from _conditions(context, default.when, values, facts, (*here, "when"))
            yield from context.known(f"value of {name}", [default.value], allowed, *here, "value")


def _conditions(
    context: RuleContext, conditions: Iterable[Condition], values: _Values, others: set[str], place: Place
) -> Iterator[Problem]:
    """Conditions that may test qualifiers against their values, and other facts against any value."""
    for condition in conditions:
        for key, allowed in condition.items():
            if key not in values and key not in others:
                known = listed([*values, *sorted(others)])
                yield Problem(context.at(*place), f"the condition tests {key!r}, which is no fact here; known: {known}")
            for value in allowed if key in values else ():
                if value and value not in values[key]:
                    there = listed(sorted(values[key])) or "none"
                    yield Problem(context.at(*place), f"no form has {key} {value!r}; there are {there}")
