"""Descriptors: their fields lie apart and inside, and conditions test the kind and fields that exist.

The layouts and examples of the shared memory that they describe name swizzles and types that exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmma.catalog.descriptors.column_masks import mask_problems
from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.variants import qualifier_values
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.matrices.shared.suspicions import NUMBERS, STRIDE_NUMBERS, WORDS, conditions
from ptxmma.model import DescriptorFormat, Majorness, Padded, SharedMemory

#: The fields of every descriptor of a matrix in shared memory.
_MATRIX = {"start_address", "swizzle"}


def problems(context: RuleContext) -> Iterator[Problem]:
    """Fields that share bits or names, values that a field cannot hold, and references that lead nowhere."""
    families = [entry.family for entry in context.spec.instructions]
    for number, format in enumerate(context.spec.descriptors):
        if not any(f"{family}.".startswith(f"{format.family}.") for family in families):
            yield from context.known("family", [format.family], families, "descriptors", number, "family")
        yield from _kinds(context, format, number)
        yield from _bits(context, format, number)
        yield from _cases(context, format, number)
    names = [format.name for format in context.spec.descriptors]
    for number, mask in enumerate(context.spec.column_masks):
        yield from (unknown := list(context.known("descriptor", [mask.descriptor], names, "column_masks", number, "descriptor")))
        for example, text in [] if unknown else mask_problems(context.spec, mask):
            yield Problem(context.at("column_masks", number, "examples", example), text)


def _kinds(context: RuleContext, format: DescriptorFormat, number: int) -> Iterator[Problem]:
    """The kinds of a format are values of its qualifier, and a matrix has the fields that lead to its elements."""
    readers = [entry for entry in context.spec.instructions if reads(entry.family, format.family)]
    if format.qualifier and readers:
        qualifiers = dict.fromkeys(name for entry in readers for name in entry.qualifiers)
        yield from (unknown := list(context.known("qualifier", [format.qualifier], qualifiers, "descriptors", number, "qualifier")))
        values = {value for entry in readers for value in qualifier_values(entry, format.qualifier)} if not unknown else set(format.kinds)
        yield from context.known("kind", format.kinds, sorted(values), "descriptors", number, "kinds")
    lacking = _MATRIX - {field.name for field in format.fields} if format.describes == "matrix" else set[str]()
    if lacking:
        text = f"a descriptor of a matrix has the fields {listed(sorted(_MATRIX))}; this one lacks {listed(sorted(lacking))}"
        yield Problem(context.at("descriptors", number, "fields"), text)


def _bits(context: RuleContext, format: DescriptorFormat, number: int) -> Iterator[Problem]:
    owners: dict[int, int] = {}
    place = ("descriptors", number, "fields")
    yield from context.twice(((field.name, (*place, index)) for index, field in enumerate(format.fields)), "{!r} is there twice")
    for index, field in enumerate(format.fields):
        here = context.at(*place, index)
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
    tested = {
        field.name: {key for case in field.cases for when in case.when for key in when} - {format.qualifier} for field in format.fields
    }
    for index, field in enumerate(format.fields):
        most = (1 << field.width + (field.upper is not None)) - 1
        place = ("descriptors", number, "fields", index)
        for key, stored in (("default", field.default), ("fixed", field.fixed)):
            if stored is not None and stored > most:
                yield Problem(context.at(*place, key), f"{field.name!r} holds at most {most}")
        legal = {stored for case in field.cases for stored in case.values.values()} | (
            {0} if all(case.when for case in field.cases) else set()
        )
        if field.default is not None and all(case.values for case in field.cases) and field.cases and field.default not in legal:
            text = f"{field.name!r} never holds {field.default}; its values hold {', '.join(map(str, sorted(legal)))}"
            yield Problem(context.at(*place, "default"), text)
        for count, case in enumerate(field.cases):
            here = (*place, "cases", count)
            for name, stored in case.values.items():
                if stored > most:
                    yield Problem(context.at(*here, "values", name), f"{field.name!r} holds at most {most}")
            for when in case.when:
                yield from context.known("kind", map(str, when.get(format.qualifier, ())), format.kinds, *here, "when")
                yield from context.known("field", when.keys() - {format.qualifier}, tested, *here, "when")
                if circle := [key for key in when if field.name in _reached(tested, key)]:
                    yield Problem(context.at(*here, "when"), f"{field.name!r} depends on itself: {circle[0]!r} depends on it")


def shared_memory(context: RuleContext) -> Iterator[Problem]:
    """References of shared memory, and of swizzles in descriptors, that lead nowhere."""
    memory = context.spec.shared_memory
    if memory is None:
        return
    swizzles = [entry.name for entry in memory.swizzles]
    families = [entry.family for entry in context.spec.instructions]
    modes = [
        ((layout.majorness, swizzle), ("shared_memory", "layouts", index, "swizzles"))
        for index, layout in enumerate(memory.layouts)
        for swizzle in layout.swizzles
    ]
    yield from context.twice(modes, "two canonical layouts are {0[0]}-major with swizzle {0[1]!r}")
    owners = dict(modes)
    yield from _suspicions(context, memory)
    read: dict[str, Sequence[Majorness | Padded]] = {"majorness": memory.majorness, "padded": memory.padded}
    for part, entries in read.items():
        for index, entry in enumerate(entries):
            if not any(reads(family, entry.family) for family in families):
                yield from context.known("family", [entry.family], families, "shared_memory", part, index, "family")
            for swizzle in entry.swizzles:
                if swizzle in swizzles and (entry.majorness, swizzle) not in owners:
                    text = f"no canonical layout is {entry.majorness}-major with swizzle {swizzle!r}; add one, or leave the swizzle out"
                    yield Problem(context.at("shared_memory", part, index, "swizzles"), text)
    for number, format in enumerate(context.spec.descriptors):
        for index, field in enumerate(format.fields):
            if format.describes == "matrix" and field.name == "swizzle":
                for count, case in enumerate(field.cases):
                    place = ("descriptors", number, "fields", index, "cases", count, "values")
                    yield from context.known("swizzle", case.values, swizzles, *place)


def _suspicions(context: RuleContext, memory: SharedMemory) -> Iterator[Problem]:
    """Rules for descriptors that read what nobody provides."""
    fields = [field.name for format in context.spec.descriptors if format.describes == "matrix" for field in format.fields]
    place = ("shared_memory", "suspicions", "rules")
    for mode in memory.swizzles[:1]:  # every mode has the same names
        for index, condition in enumerate(conditions(memory, mode)):
            rule = condition.rule
            known = NUMBERS if rule.field else NUMBERS | STRIDE_NUMBERS
            words = {name for _, name in condition.text if name in WORDS} if rule.field else set[str]()
            if unknown := sorted((condition.names - known) | words):
                message = f"unknown name {unknown[0]!r} (known here: {', '.join(sorted(known | memory.suspicions.let.keys()))})"
                yield Problem(context.at(*place, index), message)
            if rule.field:
                yield from context.known("field", [rule.field], fields, *place, index, "field")
