"""The patterns of sparsity of a family: their legal fields in words and as masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_headers.declarations import Macro
from ptxmma.model import Granularity

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
