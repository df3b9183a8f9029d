"""The coverage of the README: what the database holds, counted."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.proven import one_source


def emit(catalog: Catalog) -> Iterator[Output]:
    """The section ``coverage`` of README.md: a sentence of numbers, and the places with one source."""
    spec, instructions = catalog.database.spec, list(catalog.all())
    families = {entry.family for entry in spec.instructions}
    undocumented = sum(not instruction.documented for instruction in instructions)
    text = (
        f"The database has {len(spec.instructions)} instructions of {len(families)} families in {len(instructions):,} variants, "
        f"{undocumented} of them beyond the manual,\nwith {len(catalog.database.layouts)} layouts of registers and addresses"
    )
    text += f" and {len(spec.tensor_layouts)} of tensor memory.\n" if spec.tensor_layouts else ".\n"
    if alone := one_source(catalog):
        text += f"{len(alone)} layouts and fields of descriptors have one source; `ptxmma validate` and their pages say so.\n"
    yield Output("README.md", text, section="coverage")
