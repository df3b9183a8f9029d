"""The instructions of a page in C++: header, function, typed front, and an asm statement."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog.cplusplus import shown
from ptxmma.catalog.product_types import type_of_product
from ptxmma.generator.emit.docs import rest
from ptxmma.generator.emit.docs.family import UNDOCUMENTED, Row


def functions(forms: Sequence[Row]) -> str:
    """A row for the first variant of each form, documented ones first: its header, its function, its name in the typed front."""
    rows = []
    for row in sorted(forms, key=lambda row: not row.form.documented):
        first = row.members[0]
        said = shown(first)
        spelling = rest.code(first.canonical) + ("" if row.form.documented else f" ({UNDOCUMENTED})")
        front = said.front or type_of_product(first)
        rows.append([spelling, rest.code(said.header), rest.code(f"ptxmma::{first.identifier}"), rest.code(front)])
    return rest.table(*rest.dense(("Variant", "Header", "Function", "Typed front"), rows))


def statement(forms: Sequence[Row]) -> list[str]:
    """The lines of the asm statement of the first variant, with all of its operands."""
    return shown(forms[0].members[0]).statements[-1].splitlines() if forms else []
