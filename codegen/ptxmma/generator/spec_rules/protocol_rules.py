"""Protocols of asynchronous instructions: their steps are instructions, each once, and every one that synchronises is a step."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import RuleContext


def problems(context: RuleContext) -> Iterator[Problem]:
    """Steps without an instruction, steps that repeat one, families with two protocols, and instructions without a step."""
    protocols, instructions = context.spec.protocols, context.spec.instructions
    if not protocols:
        return
    names = [entry.name for entry in instructions]
    families = [entry.family for entry in instructions]
    first: dict[str, int] = {}
    for number, protocol in enumerate(protocols):
        yield from context.known("family", protocol.families, families, "protocols", number, "families")
        for family in protocol.families:
            if first.setdefault(family, number) != number:
                yield clash(
                    f"{family} has two protocols", context.at("protocols", number, "families"), context.at("protocols", first[family])
                )
        for section, key in (("steps", "instruction"), ("orderings", "needs")):
            for index, part in enumerate(getattr(protocol, section)):
                if value := getattr(part, key):
                    yield from context.known("instruction", [value], names, "protocols", number, section, index, key)
        for index, issuer in enumerate(protocol.issuers):
            yield from context.known("instruction", issuer.instructions, names, "protocols", number, "issuers", index, "instructions")
        qualifiers = {name for entry in instructions if entry.family in protocol.families for name in entry.qualifiers}
        for index, same in enumerate(protocol.same):
            yield from context.known("qualifier", [same.qualifier], sorted(qualifiers), "protocols", number, "same", index, "qualifier")
        steps = [step.instruction for step in protocol.steps if step.instruction]
        for index, step in enumerate(protocol.steps):
            if step.instruction and steps.count(step.instruction) > 1:
                yield Problem(context.at("protocols", number, "steps", index), f"{step.instruction} is two steps")
    steps = [step.instruction for protocol in protocols for step in protocol.steps]
    for index, entry in enumerate(instructions):
        if entry.operation == "synchronise" and entry.name not in steps:
            place = context.at("instructions", index, "name")
            yield Problem(place, f"{entry.name} only orders others, and is not a step of a protocol")
