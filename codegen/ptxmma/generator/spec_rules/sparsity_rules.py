"""Sparsity: patterns of one name are equal, and compression has a legal field for every chunk that is sparse enough."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.model import Granularity


def problems(context: RuleContext) -> Iterator[Problem]:
    """Patterns with contradictory sizes, and chunks for which compression has no legal field."""
    places = [(choice.units, ("choices", index)) for index, choice in enumerate(context.spec.choices)]
    yield from context.twice(places, "another entry chooses fields for {} units")
    choices = {units: index for units, (_, index) in reversed(places)}
    named: dict[str, int] = {}
    for index, pattern in enumerate(context.spec.granularities):
        here = context.at("granularities", index)
        first = named.setdefault(pattern.name, index)
        if _sizes(context.spec.granularities[first]) != _sizes(pattern):
            yield clash(f"another pattern {pattern.name!r} has other sizes", here, context.at("granularities", first))
        if pattern.chunk % pattern.unit or pattern.kept % pattern.unit or pattern.units & (pattern.units - 1):
            message = f"chunk {pattern.chunk} and kept {pattern.kept} must be whole units of {pattern.unit}, chunk a power of two of them"
            yield Problem(here, message)
        elif pattern.units not in choices:
            yield Problem(here, f"no entry of choices says which field {pattern.name} compresses to: it has {pattern.units} units")
        else:
            yield from _choice(context, choices[pattern.units], pattern)


def _choice(context: RuleContext, index: int, pattern: Granularity) -> Iterator[Problem]:
    """The fields that compression writes suit a pattern."""
    choice, place = context.spec.choices[index], ("choices", index, "fields")
    most, ordered = pattern.kept // pattern.unit, pattern.ordered or pattern.legal
    for units in range(1 << pattern.units):
        key = f"{units:#0{2 + pattern.units}b}"
        if key not in choice.fields and units.bit_count() <= most:
            yield from context.once(context.at(*place), f"{key} has no field, and {pattern.name} keeps {most} units")
    for key, field in choice.fields.items():
        here = context.at(*place, key)
        units = int(key, 2)
        if len(key) != 2 + pattern.units:
            yield from context.once(here, f"{key} must have a digit for each of the {pattern.units} units")
        elif units.bit_count() > most:
            yield from context.once(here, f"{key} has more units than the {most} that {pattern.name} keeps")
        elif field not in ordered:
            yield from context.once(here, f"{field} is not a legal field of {pattern.name} in order; there are {listed(ordered)}")
        elif units & ~sum(1 << unit for unit in pattern.kept_units(field)):
            kept = listed(map(str, pattern.kept_units(field)))
            yield from context.once(here, f"{field} keeps the units {kept} of {pattern.name}, not all of {key}")


def _sizes(pattern: Granularity) -> tuple[int, ...]:
    return pattern.chunk, pattern.kept, pattern.unit, pattern.index_bits, pattern.indices
