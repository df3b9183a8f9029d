"""The layouts of one family as C: for each a comment with its formula, its sizes as macros, and its functions."""

from __future__ import annotations

import re
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_headers import field_masks
from ptxmma.generator.emit.c_headers.declarations import Function, Macro
from ptxmma.generator.emit.c_headers.layout_comments import comment
from ptxmma.generator.emit.c_headers.layout_functions import functions
from ptxmma.generator.emit.c_headers.layout_macros import macros
from ptxmma.generator.emit.c_headers.layout_use import LayoutUse
from ptxmma.generator.emit.c_headers.layout_words import KINDS
from ptxmma.model import COPY, Layout, matches


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
        #: Whether some of its variants demand ascending indices, where others do not.
        self._ordered = False
        seen: set[int] = set()
        for instruction in catalog.all():
            variant = instruction.variant
            if instruction.family == name:
                self._ordered |= any(
                    entry.ordered_when and matches(entry.ordered_when, variant.facts) for entry in self._spec.granularities
                )
            # Numbers of an extent that ranges share their layouts; the largest is taken.
            if instruction.family != name or variant.extents != variant.largest:
                continue
            for form in instruction.forms:
                for operand in form.operands:
                    if operand.layout is not None and id(operand) not in seen:
                        seen.add(id(operand))
                        self._uses.setdefault(operand.layout.name, []).append(LayoutUse(instruction, operand))
        self._layouts = sorted((catalog.database.layout[used] for used in self._uses), key=_place)
        self.warp = self._spec.scopes["warp"]
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

    def patterns(self) -> list[field_masks.Pattern]:
        """The patterns of sparsity, one for each entry of the spec that an operand follows."""
        operands = [use.operand for uses in self._uses.values() for use in uses if use.operand.sparsity is not None]
        types = [dict.fromkeys(str(one.element_type) for one in operands if one.sparsity == entry) for entry in self._spec.granularities]
        return [
            field_masks.pattern(self.name, entry, names, ordered=self._ordered)
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
