"""The uses of layouts (operands of shapes and types), and the table of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction, operand_names
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.variants import Variant
from ptxmma.generator.emit.docs import rest
from ptxmma.generator.emit.docs.boxes import boxes
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.matrices import pictures
from ptxmma.model import InstructionSet, Layout, Spec


class Use(NamedTuple):
    """A register operand with a layout, in one instruction."""

    page: str  # the label of the page that shows it
    instruction: str  # the entry of the spec
    scope: str  # the scope whose threads execute it
    canonical: str  # the spelling of an instruction with this layout
    picture: str
    operand: Operand
    layout: Layout
    plan: Plan
    shape: str
    element: str
    modifiers: str
    elements: str
    registers: str
    ranging: tuple[str, ...]


def uses(spec: Spec, gallery: Gallery, page: str, entry: InstructionSet, representatives: Iterable[Instruction]) -> list[Use]:
    """Every register operand with a layout, in the order of the operand lists; ``page`` is the label of the page that shows them."""
    distinct: dict[tuple[str, str, str, str], Use] = {}
    for instruction in representatives:
        variant = instruction.variant
        for form in instruction.forms:
            for operand in form.operands:
                layout = operand.layout
                if layout is None:
                    continue
                element = _element(instruction, operand, layout)
                key = (layout.name, operand.name, variant.shape_label, element)
                if key in distinct:
                    continue
                endless = bool(layout.growing)
                distinct[key] = Use(
                    page=page,
                    instruction=entry.name,
                    scope=entry.scope,
                    canonical=instruction.canonical,
                    picture=gallery.layout(operand),
                    operand=operand,
                    layout=layout,
                    plan=_plan(spec, variant, operand),
                    shape=variant.shape_label,
                    element=element,
                    modifiers=layouts.modifiers(spec, variant, layout),
                    elements=_of_n(operand.elements, variant) if endless else str(operand.elements or ""),
                    registers=_of_n(operand.registers, variant) if endless else str(operand.registers),
                    ranging=tuple(variant.ranging),
                )
    order = list(dict.fromkeys(name for texts in entry.operands.values() for text in texts for name in operand_names(text)))
    return sorted(distinct.values(), key=lambda use: order.index(use.operand.name))


def _element(instruction: Instruction, operand: Operand, layout: Layout) -> str:
    """The type of the elements that an operand holds, or that it describes as metadata; empty for addresses, which are alike for all."""
    described = instruction.operand(operand.of) if layout.kind == "metadata" else operand
    return described.element_type or ""


def _plan(spec: Spec, variant: Variant, operand: Operand) -> Plan:
    """The sizes that the formulas of an operand's layout see."""
    plan = layouts.plan(spec, variant, operand.name)
    assert plan is not None
    return plan


def _sizes(use: Use) -> str:
    """The size of a matrix, and the modifiers that decide on its layout, which break at dots alone: ``4 x 8 x 8, .x4.trans``."""
    return ", ".join(filter(None, [pictures.size(use.layout, bool(use.layout.growing)), use.modifiers.replace(".", f"{rest.SOFT_BREAK}.")]))


def _of_n(count: int, variant: Variant) -> str:
    """A number that grows with the extent that ranges: ``N / 2``."""
    name = next(iter(variant.ranging))
    ratio, letter = Fraction(count, variant.extents[name]), name.upper()
    over = f"{letter} / {ratio.denominator}" if ratio.denominator > 1 else letter
    return over if ratio.numerator == 1 else f"{ratio.numerator}{rest.TIMES}{over}"


def layout_table(uses: Sequence[Use]) -> str:
    """The table of layouts: which operand of which types has which picture."""
    alike: dict[tuple[object, ...], dict[str, list[Use]]] = {}
    for use in uses:
        key = (use.picture, use.modifiers, use.elements, use.registers)
        alike.setdefault(key, {}).setdefault(use.operand.name, []).append(use)
    lines: dict[tuple[str, ...], list[str]] = {}
    for by_operand in alike.values():
        for name, group in by_operand.items():
            for (elements,), covered in boxes(((use.element,), use) for use in group):
                use = covered[0]
                cells = (
                    rest.codes(elements),
                    rest.link(_sizes(use), label(use)),
                    rest.text(use.operand.observed),
                    use.elements,
                    use.registers,
                )
                lines.setdefault(cells, []).append(name)
    header = ("Operand", "Type", "Layout", "Observed on", "Elements", "Registers")
    return rest.table(*rest.dense(header, ((rest.codes(names), *cells) for cells, names in lines.items())))


def label(use: Use) -> str:
    """The label of the section with a layout's formulas."""
    return rest.label("layout", use.page, use.picture)
