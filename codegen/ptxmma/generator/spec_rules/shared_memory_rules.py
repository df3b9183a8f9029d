"""Shared memory: layouts and examples name swizzles and types that exist, and fields of the descriptor lie apart."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext


def problems(context: RuleContext) -> Iterator[Problem]:
    """References that lead nowhere, and bits of the descriptor with two fields."""
    memory = context.spec.shared_memory
    if memory is None:
        return
    swizzles = [entry.name for entry in memory.swizzles]
    for index, canonical in enumerate(memory.layouts):
        yield from context.known("swizzle", canonical.swizzles, swizzles, "shared_memory", "layouts", index, "swizzles")
    for index, example in enumerate(memory.examples):
        yield from context.known("swizzle", [example.swizzle], swizzles, "shared_memory", "examples", index, "swizzle")
        yield from context.known("element type", [example.type], context.elements, "shared_memory", "examples", index, "type")
    for index, majorness in enumerate(memory.majorness):
        yield from context.known("element type", majorness.elements, context.elements, "shared_memory", "majorness", index, "elements")
    owners: dict[int, str] = {}
    for index, field in enumerate(memory.descriptor):
        for bit in range(field.low, field.low + field.width):
            if bit in owners:
                yield Problem(context.at("shared_memory", "descriptor", index), f"bit {bit} belongs to {owners[bit]!r} already")
                break
            owners[bit] = field.name
