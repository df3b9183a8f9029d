"""Shared memory: layouts, examples and descriptors name swizzles and types that exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.model import Majorness, Padded


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
