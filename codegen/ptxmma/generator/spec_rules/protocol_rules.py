"""The protocol of asynchronous instructions: its steps are instructions, each once, and every one that synchronises is a step."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext


def problems(context: RuleContext) -> Iterator[Problem]:
    """Steps without an instruction, steps that repeat one, and instructions without a step."""
    protocol, instructions = context.spec.protocol, context.spec.instructions
    if protocol is None:
        return
    names = [entry.name for entry in instructions]
    for section, key in (("steps", "instruction"), ("orderings", "needs")):
        for index, part in enumerate(getattr(protocol, section)):
            if value := getattr(part, key):
                yield from context.known("instruction", [value], names, "protocol", section, index, key)
    steps = [step.instruction for step in protocol.steps if step.instruction]
    for index, step in enumerate(protocol.steps):
        if step.instruction and steps.count(step.instruction) > 1:
            yield Problem(context.at("protocol", "steps", index), f"{step.instruction} is two steps")
    for index, entry in enumerate(instructions):
        if entry.operation == "synchronise" and entry.name not in steps:
            place = context.at("instructions", index, "name")
            yield Problem(place, f"{entry.name} only orders others, and is not a step of the protocol")
