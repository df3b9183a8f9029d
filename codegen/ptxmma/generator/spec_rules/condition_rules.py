"""Conditions: they test facts that exist, against values that some variant has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from ptxmma.catalog.products.product_rules import ARGUMENTS
from ptxmma.catalog.variants import qualifier_values
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import COMMON_FACTS, OPERAND_FACTS, Place, RuleContext, listed
from ptxmma.model import Condition, InstructionSet

#: The lists of an instruction whose entries have a condition.
CONDITIONAL = ("ignored", "requires", "observed", "semantics", "undefined", "uniform", "notes")

#: A condition that says for whom it is, whoever that may be.
_ANYONE: Condition = {"family": ()}

#: The values of each qualifier.
_Values = dict[str, set[str]]


def conditions_beside(entry: InstructionSet) -> Iterator[tuple[Sequence[Condition], Place]]:
    """The conditions of an instruction outside its lists (in hints and in requirements of operands), each with its place."""
    for number, hint in enumerate(entry.hints):
        yield hint.when, ("hints", number, "when")
        for value, each in hint.values.items():
            yield each.when, ("hints", number, "values", value, "when")
        for index, rule in enumerate(hint.requires):
            yield rule.when, ("hints", number, "requires", index, "when")
    for name, operand in entry.operand_kinds.items():
        for index, rule in enumerate(operand.requires):
            yield rule.when, ("operand_kinds", name, "requires", index, "when")


def of_instructions(context: RuleContext) -> Iterator[Problem]:
    """Conditions of an instruction on facts that its variants lack, and on values that no variant has."""
    for index, entry in enumerate(context.spec.instructions):
        for problem in _of_instruction(context, entry, ("instructions", index)):
            context.broken.add(index)
            yield problem


def problems(context: RuleContext) -> Iterator[Problem]:
    """Conditions of entries that instructions share: on facts that no instruction has, and on values that no variant has."""
    spec = context.spec
    families: dict[str, _Values] = {}
    for entry in spec.instructions:
        values = families.setdefault(entry.family, {})
        for name, some in _values(entry).items():
            values[name] = values.get(name, set()) | some

    def judged(conditions: Iterable[Condition], extra: Set[str], *place: str | int) -> Iterator[Problem]:
        for condition in conditions:
            for key, names in (("family", families), ("name", [entry.name for entry in spec.instructions])):
                yield from context.known(key, map(str, condition.get(key, ())), names, *place)
            named = context.families(condition)
            if not named:
                continue
            values: _Values = {}
            for name, some in ((name, some) for family in named for name, some in families[family].items()):
                values[name] = values.get(name, set()) | some
            facts = COMMON_FACTS.union(extra, *(context.extents[family] for family in named))
            yield from _condition(context, condition, values, facts, place)

    for section in ("register_layouts", "granularities"):
        for number, part in enumerate(getattr(spec, section)):
            yield from _whose(context, part.of, section, number, "of")
            yield from judged(
                part.of, OPERAND_FACTS.union(ARGUMENTS) if section == "granularities" else OPERAND_FACTS, section, number, "of"
            )
    for number, carrier in enumerate(spec.types.carriers):
        yield from _whose(context, carrier.when, "types", "carriers", number, "when")
        yield from judged(carrier.when, OPERAND_FACTS, "types", "carriers", number, "when")
    for number, container in enumerate(spec.types.containers):
        yield from judged(container.when, OPERAND_FACTS.union(ARGUMENTS), "types", "containers", number, "when")
    for section in ("block_formats", "block_scaling"):
        for number, part in enumerate(getattr(spec, section)):
            yield from judged(part.of, OPERAND_FACTS, section, number, "of")
    product = {*OPERAND_FACTS, *ARGUMENTS, "blocks", "ctas"}
    for number, space in enumerate(spec.spaces):
        yield from judged(space.of, set(), "spaces", number, "of")
        for index, layout in enumerate(space.layouts):
            yield from judged(layout.of, product, "spaces", number, "layouts", index, "of")
            for count, selection in enumerate(layout.selections):
                yield from judged(selection.when, product, "spaces", number, "layouts", index, "selections", count, "when")
    fields = {field.name for format in spec.descriptors for field in format.fields}
    for section in type(spec.tensor_products).__struct_fields__ if spec.tensor_products else ():
        for number, row in enumerate(getattr(spec.tensor_products, section)):
            facts = product | fields if section == "limits" else product
            yield from judged(row.of, facts, "tensor_products", section, number, "of")
    for index, chip in enumerate(spec.throughput):
        for number, rate in enumerate(chip.rates):
            yield from judged(rate.of, set(), "throughput", index, "rates", number, "of")
    for index, erratum in enumerate(spec.errata):
        own = {"family": (erratum.family,)} if erratum.family else {}
        yield from _whose(context, [own | condition for condition in erratum.when] or [_ANYONE], "errata", index, "when")
        yield from judged((own | condition for condition in erratum.when), set(), "errata", index, "when")
        yield from judged((own | condition for condition in erratum.unsettled), product | fields, "errata", index, "unsettled")


def _whose(context: RuleContext, conditions: Sequence[Condition], *place: str | int) -> Iterator[Problem]:
    """An entry that names operands names their family or instruction, since names of operands are local to a family."""
    if not all(COMMON_FACTS & condition.keys() for condition in conditions or ({},)):
        yield Problem(context.at(*place), "each condition must have family: or name:, to say for whose operands the entry is")


def _values(entry: InstructionSet) -> _Values:
    """The values of each qualifier of an instruction."""
    return {name: set(qualifier_values(entry, name)) for name in dict.fromkeys([*entry.qualifiers, *entry.extents])}


def _of_instruction(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """The conditions of an instruction, and the values that its qualifiers have where a spelling leaves them out."""
    values = _values(entry)
    facts = COMMON_FACTS.union(entry.extent_names)
    for name in CONDITIONAL:
        for number, rule in enumerate(getattr(entry, name)):
            for condition in rule.when:
                yield from _condition(context, condition, values, facts, (*place, name, number, "when"))
    for conditions, where in conditions_beside(entry):
        for condition in conditions:
            yield from _condition(context, condition, values, facts, (*place, *where))
    for name, qualifier in entry.qualifiers.items():
        allowed = sorted(values[name])
        if qualifier.usual:
            yield from context.known(f"value of {name}", [qualifier.usual], allowed, *place, "qualifiers", name, "usual")
        for number, default in enumerate(qualifier.default):
            here = (*place, "qualifiers", name, "default", number)
            for condition in default.when:
                yield from _condition(context, condition, values, facts, (*here, "when"))
            yield from context.known(f"value of {name}", [default.value], allowed, *here, "value")


def _condition(context: RuleContext, condition: Condition, values: _Values, others: Set[str], place: Place) -> Iterator[Problem]:
    """A condition may test qualifiers against their values, and other facts against any value."""
    for key, allowed in condition.items():
        if key not in values and key not in others:
            known = listed([*values, *sorted(others)])
            yield Problem(context.at(*place), f"the condition tests {key!r}, which is not a fact here; known: {known}")
        for value in allowed if key in values else ():
            if value and value not in values[key]:
                there = listed(sorted(values[key])) or "none"
                yield Problem(context.at(*place), f"no form has {key} {value!r}; there are {there}")
