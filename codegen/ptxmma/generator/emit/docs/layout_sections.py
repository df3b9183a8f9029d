"""The layouts of an instruction's operands: a table of them, and a section for each picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.expressions import both_ways
from ptxmma.catalog.instructions import Catalog, Instruction, operand_names
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.variants import Variant
from ptxmma.generator.emit.docs import mathematics, rest
from ptxmma.generator.emit.docs.boxes import boxes
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.formula_text import cases_to_latex, to_latex
from ptxmma.matrices import pictures
from ptxmma.model import InstructionSet, Layout, RegisterLayout, Spec, matches


class Use(NamedTuple):
    """A register operand with a layout, in one instruction."""

    instruction: str
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


def uses(catalog: Catalog, gallery: Gallery, entry: InstructionSet, representatives: Iterable[Instruction]) -> list[Use]:
    """Every register operand with a layout, in the order of the operand lists."""
    spec = catalog.database.spec
    distinct: dict[tuple[str, str, str, str], Use] = {}
    for instruction in representatives:
        variant = instruction.variant
        for form in instruction.forms:
            for operand in form.operands:
                layout = operand.layout
                if layout is None:
                    continue
                # Metadata has no elements of its own: what it describes are A's.
                element = operand.element_type or str(variant.facts.get("atype", ""))
                key = (layout.name, operand.name, variant.shape_label, element)
                if key in distinct:
                    continue
                endless = bool(layout.growing)
                distinct[key] = Use(
                    instruction=entry.name,
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


def _plan(spec: Spec, variant: Variant, operand: Operand) -> Plan:
    """The sizes that the formulas of an operand's layout see."""
    plan = layouts.plan(spec, variant, operand.name)
    assert plan is not None
    return plan


def _sizes(use: Use) -> str:
    """The size of what it lays out, and the modifiers that it is for: ``4 x 8 x 8, .x4.trans``."""
    return ", ".join(filter(None, [pictures.size(use.layout, bool(use.layout.growing)), use.modifiers]))


def _of_n(count: int, variant: Variant) -> str:
    """A number that grows with the extent that ranges: ``N / 2``."""
    name = next(iter(variant.ranging))
    ratio, letter = Fraction(count, variant.extents[name]), name.upper()
    over = f"{letter} / {ratio.denominator}" if ratio.denominator > 1 else letter
    return over if ratio.numerator == 1 else f"{ratio.numerator}{rest.TIMES}{over}"


def layout_table(uses: Sequence[Use]) -> str:
    """The table of layouts: which operand of which shapes and types has which picture."""
    alike: dict[tuple[object, ...], dict[str, list[Use]]] = {}
    for use in uses:
        key = (use.picture, use.modifiers, use.elements, use.registers)
        alike.setdefault(key, {}).setdefault(use.operand.name, []).append(use)
    lines: dict[tuple[str, ...], list[str]] = {}
    for by_operand in alike.values():
        for name, group in by_operand.items():
            for (shapes, elements), covered in boxes(((use.shape, use.element), use) for use in group):
                use = covered[0]
                cells = (
                    rest.codes(shapes),
                    rest.codes(elements),
                    rest.link(_sizes(use), _layout_label(use)),
                    use.elements,
                    use.registers,
                )
                lines.setdefault(cells, []).append(name)
    header = ("Operand", "Shape", "Type", "Layout", "Elements", "Registers")
    return rest.table(*rest.dense(header, ((rest.codes(names), *cells) for cells, names in lines.items())))


def _layout_label(use: Use) -> str:
    return rest.label("layout", use.instruction, use.picture)


def sections(spec: Spec, gallery: Gallery, uses: Sequence[Use]) -> list[dict[str, Any]]:
    """A section for each picture."""
    by_picture: dict[str, list[Use]] = {}
    for use in uses:
        by_picture.setdefault(use.picture, []).append(use)
    return [_section(spec, picture, gallery.width(picture), group) for picture, group in by_picture.items()]


def _section(spec: Spec, picture: str, width: int, group: Sequence[Use]) -> dict[str, Any]:
    """The section of one picture: all layouts that it shows."""
    use = group[0]
    entry = spec.register_layouts[use.layout.entry]
    used = boxes(((one.shape, one.element), one) for one in _unique(group))
    text = f" Contributing threads: {rest.text(entry.text)}." if entry.text else ""
    if entry.observed:
        text += f" The manual does not say this: it was measured on {rest.code(entry.observed)}."
    return {
        "label": _layout_label(use),
        "picture": picture,
        "width": width,
        "title": _title(use, group),
        "alt": f"Layout of {' and '.join(use.layout.operands)}",
        "of": "; ".join(filter(None, (" with ".join(rest.codes(part) for part in values if any(part)) for values, _ in used))),
        "names": rest.codes(dict.fromkeys(one.layout.name for one in group)),
        "math": _math(entry, use),
        "code": _code(use.layout),
        "warps": use.layout.threads > spec.scopes["warp"],
        "text": text,
        "sources": _sources(entry, group),
    }


def _title(use: Use, group: Iterable[Use]) -> str:
    """What a section is about: the operands, the sizes of what they hold, and the modifiers that they are for."""
    layout = use.layout
    names = [use.operand.name] if layout.kind != "fragment" else list(layout.operands)
    title = f"{' and '.join(map(rest.code, names))}: {pictures.size(layout, bool(layout.growing))}"
    modifiers = [rest.code(one) for one in dict.fromkeys(one.modifiers for one in group) if one]
    if modifiers:
        title += f", {' and '.join(modifiers)}"
    if use.operand.computations > 1:
        title += f", {use.operand.computations} computations"
    return f"{title}, {use.operand.elements_per_register} per register" if use.operand.elements else title


def _unique(group: Iterable[Use]) -> list[Use]:
    """One use for each shape and type, whichever operand it is."""
    return list({(use.shape, use.element): use for use in group}.values())


def _code(layout: Layout) -> list[str]:
    """A layout as bit operations, fragments both ways."""
    forward, back = both_ways(layout)
    shown = [*forward.items(), *(back.items() if layout.kind == "fragment" else ())]
    return [f"{name} = {expression};" for name, expression in shown if _matters(layout, name)]


def _matters(layout: Layout, name: str) -> bool:
    """Whether a reader needs to know the value: not of an axis that tells a single copy apart."""
    return name not in layout.apart or layout.axes[name] > 1


def _math(entry: RegisterLayout, use: Use) -> list[str]:
    """The formulas of a layout with its sizes put in, one line of mathematics each."""
    sizes = {name: value for name, value in use.plan.variables.items() if name not in use.ranging}
    written = mathematics.specialise(entry.let, entry.at, sizes)
    equations = [(to_latex(name), to_latex(text)) for name, text in written.let.items()]
    equations += [(to_latex(name), cases_to_latex(entries)) for name, entries in written.cases.items() if _matters(use.layout, name)]
    equals = "&=" if len(equations) > 1 else "="  # nothing to align in a single line, and Sphinx refuses to
    return [f"{name} {equals} {value}" for name, value in equations]


def _sources(entry: RegisterLayout, group: Sequence[Use]) -> str:
    """Where a formula comes from, and with which printed formulas it was compared."""
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
