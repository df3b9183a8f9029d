"""Descriptors: their fields lie apart and inside, and conditions test the kind and fields that exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxmma.catalog.descriptors.column_masks import mask_problems
from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.model import DescriptorFormat


def problems(context: RuleContext) -> Iterator[Problem]:
    """Fields that share bits or names, values that a field cannot hold, and references that lead nowhere."""
    families = [entry.family for entry in context.spec.instructions]
    for number, format in enumerate(context.spec.descriptors):
        if not any(f"{family}.".startswith(f"{format.family}.") for family in families):
            yield from context.known("family", [format.family], families, "descriptors", number, "family")
        yield from _bits(context, format, number)
        yield from _cases(context, format, number)
    names = [format.name for format in context.spec.descriptors]
    for number, mask in enumerate(context.spec.column_masks):
        yield from (unknown := list(context.known("descriptor", [mask.descriptor], names, "column_masks", number, "descriptor")))
        for example, text in [] if unknown else mask_problems(context.spec, mask):
            yield Problem(context.at("column_masks", number, "examples", example), text)


def _bits(context: RuleContext, format: DescriptorFormat, number: int) -> Iterator[Problem]:
    owners: dict[int, int] = {}
    names: dict[str, int] = {}
    for index, field in enumerate(format.fields):
        here = context.at("descriptors", number, "fields", index)
        if (first := names.setdefault(field.name, index)) != index:
            yield clash(f"{field.name!r} is there twice", here, context.at("descriptors", number, "fields", first))
        bits = [*range(field.low, field.low + field.width), *([field.upper] if field.upper is not None else ())]
        if max(bits) >= format.bits:
            yield Problem(here, f"bit {max(bits)} is outside a descriptor of {format.bits} bits")
        if shared := [bit for bit in bits if bit in owners]:
            yield Problem(here, f"bit {shared[0]} belongs to {format.fields[owners[shared[0]]].name!r} already")
        owners |= {bit: index for bit in bits if bit not in owners}


def _reached(tested: Mapping[str, set[str]], name: str) -> set[str]:
    """A field, and the fields on which it depends."""
    found, left = {name}, [name]
    while left:
        new = tested.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def _cases(context: RuleContext, format: DescriptorFormat, number: int) -> Iterator[Problem]:
    tested = {field.name: {key for case in field.cases for when in case.when for key in when} - {"kind"} for field in format.fields}
    for index, field in enumerate(format.fields):
        most = (1 << field.width + (field.upper is not None)) - 1
        place = ("descriptors", number, "fields", index)
        for key, stored in (("default", field.default), ("fixed", field.fixed)):
            if stored is not None and stored > most:
                yield Problem(context.at(*place, key), f"{field.name!r} holds at most {most}")
        for count, case in enumerate(field.cases):
            here = (*place, "cases", count)
            yield from context.known("target", case.targets, context.targets, *here, "targets")
            for name, stored in case.values.items():
                if stored > most:
                    yield Problem(context.at(*here, "values", name), f"{field.name!r} holds at most {most}")
            for when in case.when:
                yield from context.known("kind", map(str, when.get("kind", ())), format.kinds, *here, "when")
                yield from context.known("field", when.keys() - {"kind"}, tested, *here, "when")
                if circle := [key for key in when if field.name in _reached(tested, key)]:
                    yield Problem(context.at(*here, "when"), f"{field.name!r} depends on itself: {circle[0]!r} depends on it")
