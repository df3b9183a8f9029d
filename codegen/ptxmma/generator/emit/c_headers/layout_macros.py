"""The macros of a layout: its sizes."""

from __future__ import annotations

from ptxmma.catalog import layouts
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_headers.declarations import Macro, stem
from ptxmma.generator.emit.c_headers.layout_use import LayoutUse
from ptxmma.generator.emit.c_headers.layout_words import plural
from ptxmma.generator.emit.formula_text import to_c
from ptxmma.model import Layout, Spec


def macros(layout: Layout, use: LayoutUse, spec: Spec) -> list[Macro]:
    """The sizes of a layout, as one operand has them."""
    if layout.kind == "fragment":
        return _fragment_sizes(layout, use, spec)
    shown = layout.axes if layout.kind != "scale" else layout.coordinates
    sizes = {plural(axis): layout.axes[axis] for axis in shown}
    if layout.kind == "metadata":
        pattern = use.pattern(spec)
        sizes |= {"field_bits": pattern.width, "chunk": pattern.chunk, "kept": pattern.kept}
    if layout.kind == "address":
        sizes |= {"row_bytes": use.operand.row_bytes, "alignment": use.operand.alignment}
    return [Macro(f"{c_text.macro(stem(layout))}_{name.upper()}", str(size)) for name, size in sizes.items()]


def _fragment_sizes(layout: Layout, use: LayoutUse, spec: Spec) -> list[Macro]:
    """Rows, columns, elements and registers; macros of the extent that ranges where they depend on it."""
    operand, variant = use.operand, use.instruction.variant
    prefix = c_text.macro(stem(layout))
    own, texts = {}, spec.register_layouts[layout.entry].axes
    variables = variant.extents | layouts.variables(spec, variant, operand.name)
    for axis, size in operand.sizes.items():
        if axis in layout.growing:
            names = {name: str(value) for name, value in variables.items()} | {name: f"({name})" for name in variant.ranging}
            value = to_c(texts[axis], names)
            own[axis] = f"({value})" if " " in value else value
        else:
            own[axis] = str(size)
    sizes = {plural(axis): value for axis, value in own.items() if axis not in layout.apart}
    if not layout.growing:
        sizes |= {"elements": str(operand.elements), "registers": str(operand.registers)}
    else:
        sizes["elements"] = f"({' * '.join(own.values())} / {layout.threads})"
        each = operand.elements_per_register
        given = f"({next(iter(variant.ranging))})"
        sizes["registers"] = f"({prefix}_ELEMENTS{given} / {each})" if each > 1 else f"{prefix}_ELEMENTS{given}"
    sizes |= {plural(axis): value for axis, value in own.items() if axis in layout.apart}
    parameters = [f"({name})" for name in variant.ranging]
    return [Macro(f"{prefix}_{name.upper()}" + "".join(one for one in parameters if one in value), value) for name, value in sizes.items()]
