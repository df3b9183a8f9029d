"""Tensor maps: rules read numbers that exist, swizzles have a formula, element types are known, and no value means two things."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.matrices.shared.box_rules import NAMES, POSITIVE
from ptxmma.model import TensorMaps, formula


def problems(context: RuleContext) -> Iterator[Problem]:
    """References that lead nowhere, and shared memory without tensor maps."""
    maps, memory = context.spec.tensor_maps, context.spec.shared_memory
    if maps is None:
        if memory is not None:
            yield Problem(context.at("shared_memory"), "a spec with shared memory needs a document of the kind tensor_maps: TMA's boxes")
        return
    for index, rule in enumerate(maps.rules):
        place = ("tensor_maps", "rules", index)
        known = NAMES[""] + NAMES[rule.each] if rule.each else NAMES[""]
        for part in ("when", "need"):
            if text := getattr(rule, part):
                names = formula.names(formula.parse(text))
                yield from context.known("name", names, known, *place, part)
                if not names:
                    yield Problem(context.at(*place, part), f"{text!r} reads no number of a tensor map; known: {listed(known)}")
                for divisor in formula.divisors(formula.parse(text)):
                    written, here = ast.unparse(divisor), context.at(*place, part)
                    if written not in POSITIVE and not (written.isdecimal() and int(written)):
                        message = f"{written} may be 0, and divides here; allowed: a number from 1 on, {listed(POSITIVE)}"
                        yield Problem(here._replace(column=here.column + divisor.col_offset), message)
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
    yield from _values(context, maps)
    widths = {each.name: each.bits for each in context.spec.types.elements}
    for index, each in enumerate(maps.types):
        at = ("tensor_maps", "types", index, "elements")
        for name in each.elements:
            if widths.get(name, each.bits) != each.bits:
                yield Problem(context.at(*at), f"{name} has {widths[name]} bits, and {each.name} has elements of {each.bits}")


def _values(context: RuleContext, maps: TensorMaps) -> Iterator[Problem]:
    """Numbers that mean two names of one enumeration of the driver, and names that are there twice."""
    for section in ("types", "interleaves", "swizzles", "fills"):
        for key in ("name", "value"):
            entries = ((getattr(entry, key), ("tensor_maps", section, index, key)) for index, entry in enumerate(getattr(maps, section)))
            yield from context.twice(entries, f"the {key} {{}} is there twice")
