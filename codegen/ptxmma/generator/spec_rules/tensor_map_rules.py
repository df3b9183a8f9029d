"""Tensor maps: rules read numbers that exist, swizzles have a formula, element types are known."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.matrices.shared.box_rules import NAMES
from ptxmma.model import formula


def problems(context: RuleContext) -> Iterator[Problem]:
    """References that lead nowhere, and shared memory without tensor maps."""
    maps, memory = context.spec.tensor_maps, context.spec.shared_memory
    if maps is None:
        if memory is not None:
            yield Problem(context.at("shared_memory"), "a spec with shared memory needs a document of the kind tensor_maps: TMA's boxes")
        return
    modes = [mode.name for mode in maps.modes]
    for index, mode in enumerate(maps.modes):
        yield from context.known("mode", [mode.like] if mode.like else [], modes, "tensor_maps", "modes", index, "like")
    for index, rule in enumerate(maps.rules):
        place = ("tensor_maps", "rules", index)
        yield from context.known("mode", rule.modes, modes, *place, "modes")
        known = NAMES[""] + NAMES[rule.each] if rule.each else NAMES[""]
        for part in ("when", "need"):
            if text := getattr(rule, part):
                yield from context.known("name", formula.names(formula.parse(text)), known, *place, part)
        yield from context.known("name", formula.placeholders(rule.text), known, *place, "text")
    swizzles = [mode.name for mode in memory.swizzles] if memory else []
    for index, swizzle in enumerate(maps.swizzles):
        if not swizzle.formula:
            yield from context.known("swizzle", [swizzle.name], swizzles, "tensor_maps", "swizzles", index, "name")
        elif not (swizzle.bytes and swizzle.cuda):
            yield Problem(
                context.at("tensor_maps", "swizzles", index),
                f"swizzle {swizzle.name} has a formula of its own, and so needs bytes and cuda",
            )
    names = [each.name for each in maps.types]
    for index, each in enumerate(maps.types):
        yield from context.known("element type", each.elements, context.elements, "tensor_maps", "types", index, "elements")
    for index, element in enumerate(context.spec.types.elements):
        if element.tma:
            yield from context.known("data type of tensor maps", [element.tma], names, "types", "elements", index, "tma")
