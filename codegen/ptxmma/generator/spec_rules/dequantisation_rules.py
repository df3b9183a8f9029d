"""Dequantisation: every conversion is exact for every code, and conversions between the same types want one order of codes."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.model import Dequantisation


def problems(context: RuleContext) -> Iterator[Problem]:
    """Conversions that are not exact, or that want another order than the first between their types."""
    from ptxmma.matrices.quantised import conversions  # NumPy, which the other rules do without

    elements = {entry.name: entry for entry in reversed(context.spec.types.elements)}  # of two of one name, which is an error, the first
    first: dict[tuple[str, str], tuple[int, Dequantisation]] = {}
    for index, entry in enumerate(context.spec.dequantisations):
        here = ("dequantisations", index)
        if not {entry.codes, entry.to} <= elements.keys():
            continue
        if problem := conversions.problem(entry, elements[entry.codes], elements[entry.to]):
            yield Problem(context.at(*here, "steps"), f"{entry.codes} to {entry.to}: {problem}")
            continue
        number, other = first.setdefault((entry.codes, entry.to), (index, entry))
        bits = elements[entry.codes].bits
        if conversions.order(entry, bits) != conversions.order(other, bits):
            message = (
                f"the other conversion from {entry.codes} to {entry.to} wants its codes in another order, {conversions.order(other, bits)}"
            )
            yield clash(message, context.at(*here), context.at("dequantisations", number))
