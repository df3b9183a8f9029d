"""References: every type, target and family that an entry names exists."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext


def problems(context: RuleContext) -> Iterator[Problem]:
    """Names that match no entry."""
    spec, elements = context.spec, context.elements
    for index, container in enumerate(spec.types.containers):
        yield from context.known("element type", container.elements, elements, "types", "containers", index, "elements")
    for index, carrier in enumerate(spec.types.carriers):
        yield from context.known("element type", carrier.elements, elements, "types", "carriers", index, "elements")
        yield from context.known("register type", carrier.registers, context.registers, "types", "carriers", index, "registers")
    for index, scaling in enumerate(spec.block_scaling):
        yield from context.known("element type", scaling.types, elements, "block_scaling", index, "types")
    for index, block in enumerate(spec.block_formats):
        yield from context.known("element type", [block.element], elements, "block_formats", index, "element")
        yield from context.known("element type", [block.scale], elements, "block_formats", index, "scale")
    for index, entry in enumerate(spec.instructions):
        for number, semantics in enumerate(entry.semantics):
            yield from context.known("element type", [semantics.sums], elements, "instructions", index, "semantics", number, "sums")
    for index, chip in enumerate(spec.throughput):
        yield from context.known("target", [chip.target], context.targets, "throughput", index, "target")
    families = dict.fromkeys(entry.family for entry in spec.instructions)
    for index, erratum in enumerate(spec.errata):
        if erratum.family:
            yield from context.known("family", [erratum.family], families, "errata", index, "family")
