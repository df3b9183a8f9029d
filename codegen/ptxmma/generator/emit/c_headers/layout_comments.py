"""The comment above a layout's functions: what the layout is of, in words, and its formula."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog import layouts
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_headers.layout_functions import reads
from ptxmma.generator.emit.c_headers.layout_use import LayoutUse
from ptxmma.generator.emit.c_headers.layout_words import axis, plural, title
from ptxmma.model import Layout, RegisterLayout, Spec


def comment(layout: Layout, uses: Sequence[LayoutUse], spec: Spec) -> list[str]:
    """The lines of the comment; ``uses`` are the operands that have the layout."""
    entry = spec.register_layouts[layout.entry]
    text = _text(layout, uses, spec) + (f" Who holds it: {entry.text}." if entry.text else "")
    formula = _formula(entry, uses[0], layout, spec.scopes["warp"])
    return [*c_text.paragraph(text), *formula, *c_text.paragraph(f"Source: {entry.source}.")]


def _text(layout: Layout, uses: Sequence[LayoutUse], spec: Spec) -> str:
    """The subject of a layout: its matrix, its shape, its types, its sizes."""
    operand, number = uses[0].operand, next(iter(uses[0].instruction.variant.ranging), "")
    grown = layout.grown.replace("N", number)
    sizes = [
        (grown if name in layout.growing else str(size), axis(name)) for name, size in layout.axes.items() if name in layout.coordinates
    ]
    listed = ", ".join(f"{size} {word if size == '1' else plural(word)}" for size, word in sizes)
    modifiers = "".join(dict.fromkeys(layouts.modifiers(spec, use.instruction.variant, layout) for use in uses))
    of = f" of {layout.shape}{modifiers}" if layout.shape or modifiers else ""
    types = ", ".join(dict.fromkeys(str(use.operand.element_type) for use in uses))
    if layout.kind == "metadata":
        pattern = uses[0].pattern(spec)
        types = ", ".join(dict.fromkeys(use.instruction.matrix_types[use.operand.of] for use in uses))
        says = f"A field of {pattern.width} bits for each chunk says which elements of it are kept: {pattern.kept} of {pattern.chunk}."
        return f"Metadata{of}, {layout.bits}-bit elements ({types}): {listed}. {says}"
    if layout.kind == "scale":
        ids = "; ".join(f"{plural(axis(name))}: {_numbers(layout, name)}" for name in layout.apart)
        return f"Scale factors of {title(operand.of)}{of} ({types}): {listed}. {ids.capitalize()}."
    if layout.kind == "address":
        return f"Addresses{of}: which thread gives that of which {axis(layout.coordinates[-1])}. {listed.capitalize()}."
    what = " and ".join(title(name) for name in layout.operands)
    packed = ", packed" if operand.sparsity is not None else ""
    products = f" of each of {operand.computations} computations" if operand.computations > 1 else ""
    return f"{what}{of}{packed}, {layout.bits}-bit elements ({types}): {listed}{products}."


def _numbers(layout: Layout, name: str) -> str:
    """The numbers of an axis."""
    return ", ".join(str(number * layout.steps.get(name, 1)) for number in range(layout.axes[name]))


def _formula(entry: RegisterLayout, use: LayoutUse, layout: Layout, lanes: int) -> list[str]:
    """The spec's formula as lines of a comment, with the values of what it takes from the instruction."""
    variables = set().union(*(reads(entry.let, cases) for cases in entry.at.values()))
    variant = use.instruction.variant
    facts = {"bits": layout.bits} | {name: size for name, size in variant.extents.items() if name not in variant.ranging}
    given = [f"{name} = {value}" for name, value in facts.items() if name in variables]
    if layout.threads > lanes and variables & {"lane", "warp"} and "lane" not in entry.at:
        given.append(f"warp = lane // {lanes}, lane = lane % {lanes}")
    helpers = [*given, *(f"{name} = {text}" for name, text in entry.let.items() if name in variables)]
    lines = c_text.listing(helpers)
    for name, cases in entry.at.items():
        parts = [case.value + (f" if {case.when}" if case.when else "") for case in cases]
        lines += c_text.listing([f"{name} = {'; '.join(parts)}"])
    return [" *", *lines, " *"]
