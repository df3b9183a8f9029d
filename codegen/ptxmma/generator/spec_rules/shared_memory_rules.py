"""Shared memory: layouts, examples and descriptors name swizzles and types that exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.matrices.shared.suspicion_rules import NUMBERS, STRIDE_NUMBERS, WORDS, conditions
from ptxmma.model import Majorness, Padded, SharedMemory


def problems(context: RuleContext) -> Iterator[Problem]:
    """References that lead nowhere."""
    memory = context.spec.shared_memory
    if memory is None:
        return
    swizzles = [entry.name for entry in memory.swizzles]
    for index, canonical in enumerate(memory.layouts):
        yield from context.known("swizzle", canonical.swizzles, swizzles, "shared_memory", "layouts", index, "swizzles")
    for index, example in enumerate(memory.examples):
        yield from context.known("swizzle", [example.swizzle], swizzles, "shared_memory", "examples", index, "swizzle")
        yield from context.known("element type", [example.type], context.elements, "shared_memory", "examples", index, "type")
    yield from _suspicions(context, memory)
    read: dict[str, Sequence[Majorness | Padded]] = {"majorness": memory.majorness, "padded": memory.padded}
    for part, entries in read.items():
        for index, entry in enumerate(entries):
            yield from context.known("element type", entry.elements, context.elements, "shared_memory", part, index, "elements")
            yield from context.known("swizzle", entry.swizzles, swizzles, "shared_memory", part, index, "swizzles")
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
