"""The layouts on a page: which operands have them, and the section of each with its formula, names and evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.evidence import Summary
from ptxmma.catalog.instructions import Instruction, operand_names
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.layouts.expressions import both_ways
from ptxmma.catalog.names import links
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.variants import Variant
from ptxmma.generator.emit.docs import evidence_pages, mathematics, rest
from ptxmma.generator.emit.docs.family import boxes
from ptxmma.generator.emit.docs.form_groups import page_label
from ptxmma.generator.emit.docs.fragment_relations import Made, Relations
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.formula_text import cases_to_latex, to_latex
from ptxmma.matrices import pictures
from ptxmma.model import InstructionSet, Layout, RegisterLayout, Spec, matches

# --- operands and their layouts ---------------------------------------------------------------------------------------------


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
        for operand in instruction.operands:
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


# --- sections ---------------------------------------------------------------------------------------------------------------


def sections(spec: Spec, summary: Summary, relations: Relations, uses: Iterable[Use]) -> dict[str, dict[str, Any]]:
    """A section for each layout that differs, by its picture's name."""
    by_picture: dict[str, list[Use]] = {}
    for use in uses:
        by_picture.setdefault(use.picture, []).append(use)
    return {
        picture: _section(spec, group) | {"relation": _relation(relations.of(group[0].layout)), "witnesses": _witnesses(summary, group)}
        for picture, group in by_picture.items()
    }


def _section(spec: Spec, group: Sequence[Use]) -> dict[str, Any]:
    """The section of the layouts that one picture shows."""
    use = group[0]
    entry = spec.register_layouts[use.layout.entry]
    used = boxes(((member.element,), member) for member in {(use.shape, use.element): use for use in group}.values())
    return {
        "label": label(use),
        "title": _title(use, group),
        "of": "; ".join(filter(None, (" with ".join(rest.codes(part) for part in values if any(part)) for values, _ in used))),
        "names": rest.codes(dict.fromkeys(member.layout.name for member in group)),
        "math": _math(entry, use),
        "code": _code(use.layout),
        "warps_of": use.scope if use.layout.threads > spec.lanes else "",
        "threads": rest.text(entry.text),
        "observed": rest.code(entry.observed),
        "sources": _sources(entry, group),
    }


def _witnesses(summary: Summary, group: Iterable[Use]) -> str:
    """The witnesses that lay the operands out in the same way; empty where no witness was recorded at all."""
    names = dict.fromkeys(use.layout.name for use in group)
    return evidence_pages.agreement(map(summary.of_layout, names)) if summary.tools else ""


def _relation(made: Made | None) -> str:
    """A sentence that relates a measured fragment to stated ones."""
    if made is None:
        return ""
    stated = made.instruction
    shown = f"{made.operand.name} of {stated.family} {stated.variant.shape}"
    what = rest.link(shown, page_label(links.page(stated))) + (", transposed" if made.transposed else "")
    if len(made.blocks) == 1 and not made.copies:
        return f"It is {what}."
    several = "are each" if len(made.blocks) > 1 else "are"
    return f"Registers {' and '.join(made.blocks)} {several} {what}." + (" The other registers hold copies." if made.copies else "")


def _title(use: Use, group: Iterable[Use]) -> str:
    """The operands of a section, the sizes of their matrices, and the modifiers."""
    layout = use.layout
    names = [use.operand.name] if layout.kind != "fragment" else list(layout.operands)
    title = f"{' and '.join(map(rest.code, names))}: {pictures.size(layout, bool(layout.growing))}"
    modifiers = [rest.code(modifier) for modifier in dict.fromkeys(member.modifiers for member in group) if modifier]
    if modifiers:
        title += f", {' and '.join(modifiers)}"
    if use.operand.computations > 1:
        title += f", {use.operand.computations} computations"
    return f"{title}, {use.operand.elements_per_register} per register" if use.operand.elements else title


def _code(layout: Layout) -> list[str]:
    """A layout as bit operations, fragments both ways."""
    forward, back = both_ways(layout)
    shown = [*forward.items(), *(back.items() if layout.kind == "fragment" else ())]
    return [f"{name} = {expression};" for name, expression in shown if _matters(layout, name)]


def _matters(layout: Layout, name: str) -> bool:
    """Return whether a formula shows an axis: not one that counts a single copy."""
    return name not in layout.apart or layout.axes[name] > 1


def _math(entry: RegisterLayout, use: Use) -> list[str]:
    """The formulas of a layout with its sizes put in, one line of mathematics each."""
    sizes = {name: value for name, value in use.plan.variables.items() if name not in use.ranging}
    written = mathematics.specialise(entry.let, entry.at, sizes)
    equations = [(to_latex(name), to_latex(text)) for name, text in written.let.items()]
    for name, entries in written.cases.items():
        if _matters(use.layout, name):
            equations.append((to_latex(name), cases_to_latex(entries) if use.layout.axes.get(name) != 1 else "0"))
    equals = "&=" if len(equations) > 1 else "="  # nothing to align in a single line, and Sphinx refuses to
    return [f"{name} {equals} {value}" for name, value in equations]


def _sources(entry: RegisterLayout, group: Sequence[Use]) -> str:
    """The source of a formula, and the printed formulas with which it was compared."""
    agreeing: dict[str, None] = {}
    wrong: dict[str, None] = {}
    for use in group:
        for stated in entry.stated:
            if matches(stated.of, {**use.plan.facts, **use.plan.variables, "operand": use.operand.name}):
                (wrong if stated.erratum else agreeing).setdefault(stated.erratum or stated.section)
    text = rest.source(entry.source)
    if agreeing:
        text += f"; agrees with the formulas printed in {', '.join(map(rest.source, agreeing))}"
    if wrong:
        text += f"; differs from the manual where that errs: {', '.join(rest.link(name, rest.label('erratum', name)) for name in wrong)}"
    return text
