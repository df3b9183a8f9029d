"""Zero-column masks in C: which columns of B a mask takes as zeros."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.generator.emit.formula_text import to_c
from ptxmma.model import ColumnMask, Spec, formula


class Mask(NamedTuple):
    """The function of a mask."""

    stem: str  # of the functions of its descriptor: "ptxmma_tcgen05_zero_column_mask"
    parts: str  # in C, over m
    sizes: str  # of M with a mask, in words
    own: list[tuple[str, str]]  # numbers that each part has of its own, and what they are in C, over `part` and `fields`
    zero: str  # in C, over `column` of the part, the numbers of the part and `fields`
    source: str


def mask(spec: Spec, entry: ColumnMask) -> Mask:
    """All that the template needs of a mask."""
    format = next(each for each in spec.descriptors if each.name == entry.descriptor)
    fields = {field.name for field in format.fields}
    read = set(formula.names(formula.parse(entry.zero)))
    last = max(entry.parts.values()) - 1
    own = [(name, _of_part(name, last)) for name in sorted(read) if f"{name}_{last}" in fields]
    *others, (_, last_count) = entry.parts.items()
    parts = "".join(f"m == {m} ? {count} : " for m, count in others) + str(last_count)
    zero = to_c(entry.zero, {name: f"fields.{name}" for name in read & fields})
    return Mask(f"ptxmma_{format.name}", parts, " or ".join(entry.parts), own, zero, entry.source)


def _of_part(name: str, last: int) -> str:
    text = f"fields.{name}_{last}"
    for part in reversed(range(last)):
        text = f"part == {part} ? fields.{name}_{part} : {text}"
    return text
