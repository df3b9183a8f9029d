"""The pages of structured sparsity and of block scaling."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.catalog.roles import ROLES
from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.formula_text import cases_to_latex, to_latex
from ptxmma.model import Choice, Granularity, InstructionSet, Spec


def page(catalog: Catalog, gallery: Gallery) -> dict[str, Any]:
    """The values for the page of sparsity."""
    spec = catalog.database.spec
    shown = {one.metadata.granularity.name: one.canonical for one in reversed([*catalog.all(lambda entry: bool(entry.metadata))])}
    alike: dict[str, list[Granularity]] = {}
    for pattern in spec.granularities:
        alike.setdefault(gallery.storage(pattern), []).append(pattern)
    return {
        "granularities": struct_tables.table(
            spec.granularities,
            titles={"name": "Pattern", "legal": "Legal fields", "ordered": "Legal with ordered metadata"},
            cells={
                "chunk": lambda pattern: f"{pattern.chunk} columns",
                "kept": lambda pattern: f"{pattern.kept}" + (f", {pattern.unit} by {pattern.unit}" if pattern.unit > 1 else ""),
                "ordered": lambda pattern: rest.codes(pattern.ordered) or "the same",
            },
            without=("unit", "index_bits", "indices", "ordered_when", "text"),
        ),
        "patterns": [
            {
                "name": rest.text(group[0].name),
                "text": rest.text(group[0].text),
                "picture": picture,
                "explorer": f"{EXPLORER}{explorer(v='sparsity', i=shown[group[0].name])}" if group[0].name in shown else "",
                "choices": [f"{rest.text(choice.text)} (source: {rest.source(choice.source)})" for choice in _choices(spec, group[0])],
                "fields": _field_table(spec, group[0]),
            }
            for picture, group in alike.items()
        ],
        "metadata": _layouts(spec, "metadata"),
        "families": _families(entry for entry in spec.instructions if entry.sparse),
    }


def block_scaling(spec: Spec) -> dict[str, Any]:
    """The values for the page of block scaling."""
    return {
        "names": [block.name for block in spec.block_formats],
        "formats": struct_tables.table(
            spec.block_formats,
            titles={"title": "Format", "element": "Elements", "scale": "Scale factors", "of": "Multiplied where"},
            code=("name", "element", "scale"),
        ),
        "combinations": struct_tables.table(
            spec.block_scaling,
            titles={"of": "Where", "types": "Scale types", "blocks": "Scale factors along K"},
            code=("types",),
        ),
        "scales": _layouts(spec, "scale"),
        "families": _families(
            entry for entry in spec.instructions if any(kind.kind == "scale-data" for kind in entry.operand_kinds.values())
        ),
    }


def _layouts(spec: Spec, kind: str) -> str:
    """The formulas of the layouts of one kind of operand."""
    operands = {name for entry in spec.instructions for name, each in entry.operand_kinds.items() if ROLES[each.kind].layout_kind == kind}
    return struct_tables.table(
        [entry for entry in spec.register_layouts if operands.intersection(entry.operands)],
        titles={"of": "Where", "axes": "Sizes", "at": "Place", "text": "Contributing threads"},
        cells={
            "axes": lambda layout: ", ".join(f"{axis} {size}" for axis, size in layout.axes.items()),
            "steps": lambda layout: ", ".join(f"{axis} {step}" for axis, step in layout.steps.items()),
            "let": lambda layout: "; ".join(f":math:`{to_latex(name)} = {to_latex(text)}`" for name, text in layout.let.items()),
            "at": lambda layout: "; ".join(f":math:`{to_latex(name)} = {cases_to_latex(cases)}`" for name, cases in layout.at.items()),
        },
        code=("operands",),
        without=("name", "apart", "stated"),
    )


def _families(entries: Iterable[InstructionSet]) -> str:
    return ", ".join(rest.link(name, rest.label("family", name)) for name in dict.fromkeys(entry.family for entry in entries))


def _choices(spec: Spec, pattern: Granularity) -> list[Choice]:
    """The choices of compression for chunks of this pattern."""
    return [choice for choice in spec.choices if choice.units == pattern.units]


def _field_table(spec: Spec, pattern: Granularity) -> str:
    """Each legal field, what it keeps, and where compression writes it."""
    units = "columns" if pattern.unit == 1 else f"groups of {pattern.unit} columns"
    written: dict[str, list[str]] = {}
    for choice in _choices(spec, pattern):
        for occupied, field in choice.fields.items():
            written.setdefault(field, []).append(" and ".join(map(str, _ones(occupied))) or "none")
    lines = (
        (rest.code(field), ", ".join(map(str, pattern.kept_units(field))), "; ".join(written.get(field, ()))) for field in pattern.legal
    )
    return rest.table(*rest.dense(("Field", f"Keeps {units}", f"Written where these {units} are not zero"), lines))


def _ones(number: str) -> list[int]:
    """The bits that are set in a number in binary: ``"0b0101"``."""
    return [place for place, bit in enumerate(reversed(number.removeprefix("0b"))) if bit == "1"]
