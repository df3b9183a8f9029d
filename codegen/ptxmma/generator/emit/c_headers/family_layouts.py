"""The layouts of one family as C: for each a comment with its formula, its sizes as macros, and its functions; patterns of sparsity."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_headers.layout_functions import (
    KINDS,
    Function,
    LayoutUse,
    Macro,
    axis,
    functions,
    macros,
    plural,
    reads,
    title,
)
from ptxmma.model import COPY, Granularity, Layout, RegisterLayout, Spec, matches

# --- layouts by shape -------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """The functions and macros of one layout in a header."""

    comment: list[str]
    macros: list[Macro]
    functions: list[Function]


class Section(NamedTuple):
    """The layouts of one shape."""

    title: str
    blocks: list[Block]


class Family:
    """Everything that the layouts of one family are used for, gathered from its instructions."""

    def __init__(self, catalog: Catalog, name: str) -> None:
        self.name = name
        self._spec = catalog.database.spec
        self._uses: dict[str, list[LayoutUse]] = {}
        #: True if some of its variants demand ascending indices, where others do not.
        self._ordered = False
        seen: set[int] = set()
        for instruction in catalog.all(lambda entry: entry.family == name):
            variant = instruction.variant
            self._ordered |= any(entry.ordered_when and matches(entry.ordered_when, variant.facts) for entry in self._spec.granularities)
            # Numbers of an extent that ranges share their layouts; the largest is taken.
            if variant.extents != variant.largest:
                continue
            for operand in instruction.operands:
                if operand.layout is not None and id(operand) not in seen:
                    seen.add(id(operand))
                    self._uses.setdefault(operand.layout.name, []).append(LayoutUse(instruction, operand))
        self._layouts = sorted((catalog.database.layout[used] for used in self._uses), key=_place)
        self.warp = self._spec.lanes
        #: Threads that execute one instruction together, at most; 0 for a family without layouts.
        self.threads = max((layout.threads for layout in self._layouts), default=0)
        self.kinds = frozenset(layout.kind for layout in self._layouts)
        planes = dict.fromkeys(axis for layout in self._layouts if layout.kind == "fragment" for axis in layout.plane if axis)
        #: The functions that say where in its matrix an element is: "`_row` and `_col`".
        self.places = " and ".join(f"`_{axis}`" for axis in planes)
        self.copies = any(layout.axes.get(COPY, 1) > 1 for layout in self._layouts)
        self.computations = any("computation" in layout.axes for layout in self._layouts)

    def sections(self) -> list[Section]:
        """Its layouts by shape."""
        sections: dict[str, Section] = {}
        for layout in self._layouts:
            section = sections.setdefault(layout.shape, Section(c_text.comment(layout.shape or "layouts"), []))
            section.blocks.append(self._block(layout))
        return list(sections.values())

    def patterns(self) -> list[Pattern]:
        """The patterns of sparsity, one for each entry of the spec that an operand follows."""
        operands = [use.operand for uses in self._uses.values() for use in uses if use.operand.sparsity is not None]
        types = [dict.fromkeys(str(one.element_type) for one in operands if one.sparsity == entry) for entry in self._spec.granularities]
        return [
            pattern(self.name, entry, names, ordered=self._ordered)
            for entry, names in zip(self._spec.granularities, types, strict=True)
            if names
        ]

    def _block(self, layout: Layout) -> Block:
        uses = self._uses[layout.name]
        entry, operand = self._spec.register_layouts[layout.entry], uses[0].operand
        declared = list(functions(layout, entry, operand))
        return Block(comment(layout, uses, self._spec), macros(layout, uses[0], self._spec), declared)


def _place(layout: Layout) -> tuple[object, ...]:
    """Sort key: by shape, then as one reads an instruction."""
    numbers = tuple(map(int, re.findall(r"\d+", layout.shape)))
    return (len(numbers), numbers, layout.shape, KINDS.index(layout.kind), layout.operands, layout.bits, layout.name)


# --- the comment above the functions of a layout ----------------------------------------------------------------------------


def comment(layout: Layout, uses: Sequence[LayoutUse], spec: Spec) -> list[str]:
    """The lines of the comment; ``uses`` are the operands that have the layout."""
    entry = spec.register_layouts[layout.entry]
    text = _subject(layout, uses, spec) + (f" Who holds it: {entry.text}." if entry.text else "")
    formula = _formula(entry, uses[0], layout, spec.lanes)
    return [*c_text.paragraph(text), *formula, *c_text.paragraph(f"Source: {entry.source}.")]


def _subject(layout: Layout, uses: Sequence[LayoutUse], spec: Spec) -> str:
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


# --- patterns of sparsity ---------------------------------------------------------------------------------------------------


#: A mask of legal field values is one 32-bit word.
_WIDEST_FIELD = 5


class Pattern(NamedTuple):
    """A pattern of sparsity: its legal fields in words and, for each element type, as masks with bit v set for value v."""

    comment: list[str]
    macros: list[Macro]


def pattern(family: str, entry: Granularity, types: Iterable[str], *, ordered: bool) -> Pattern:
    """A pattern of a family for these element types; ``ordered``: some variants of the family demand ascending indices."""
    types = list(types)
    macros = []
    if entry.index_bits * entry.indices <= _WIDEST_FIELD:
        for name in types:
            stem = f"PTXMMA_{c_text.macro(family)}_{c_text.macro(entry.name)}_{c_text.macro(name)}"
            macros.append(Macro(f"{stem}_LEGAL", _mask(entry.legal)))
            if ordered:
                macros.append(Macro(f"{stem}_LEGAL_ORDERED", _mask(entry.ordered or entry.legal)))
    values = f"Legal fields: {' '.join(entry.legal)}."
    if entry.ordered and ordered:
        values += f" With ordered metadata: {' '.join(entry.ordered)}."
    comment = [
        *c_text.paragraph(f"{entry.name} sparsity of {', '.join(types)}. {entry.text}"),
        *c_text.paragraph(values),
        *c_text.paragraph(f"Source: {entry.source}."),
    ]
    return Pattern(comment, macros)


def _mask(values: Iterable[str]) -> str:
    return f"{sum(1 << number for number in {int(value, 2) for value in values}):#06x}u"
