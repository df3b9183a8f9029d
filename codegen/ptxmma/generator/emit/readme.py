"""The coverage table of the README: what the database holds, counted."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.generator.emit import Output
from ptxmma.generator.proven import one_source


def emit(catalog: Catalog) -> Iterator[Output]:
    """The section ``coverage`` of README.md: one row for each family, and their sum."""
    families: dict[str, list[Instruction]] = {}
    for instruction in catalog.all():
        families.setdefault(instruction.family, []).append(instruction)
    rows = [_row(catalog, f"`{family}`", instructions, family) for family, instructions in families.items()]
    rows.append(_row(catalog, "all", [instruction for instructions in families.values() for instruction in instructions], ""))
    head = (
        "| family | PTX instructions | variants | of them undocumented | operand forms | layouts of threads |\n|---|--:|--:|--:|--:|--:|\n"
    )
    layouts = catalog.database.spec.tensor_layouts
    apart = f"\nLayouts of threads are registers and addresses. Tensor memory has {len(layouts)} layouts of its own.\n" if layouts else ""
    if alone := one_source(catalog):
        apart += f"{len(alone)} layouts and fields of descriptors have one source; `ptxmma validate` and their pages say so.\n"
    yield Output("README.md", head + "".join(rows) + apart, section="coverage")


def _row(catalog: Catalog, title: str, instructions: list[Instruction], family: str) -> str:
    names = {instruction.variant.instruction.name for instruction in instructions}
    undocumented = sum(not instruction.documented for instruction in instructions)
    forms = sum(max(len(instruction.forms), 1) for instruction in instructions)
    layouts = sum(layout.family == family or not family for layout in catalog.database.layouts)
    return f"| {title} | {len(names)} | {len(instructions)} | {undocumented} | {forms} | {layouts} |\n"
