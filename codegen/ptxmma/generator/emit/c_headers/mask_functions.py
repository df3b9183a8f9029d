"""Zero-column masks in C: which columns of B a mask takes as zeros."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.generator.emit.c_headers.descriptor_structs import decoded
from ptxmma.generator.emit.formula_text import to_c
from ptxmma.model import ColumnMask, DescriptorField, Spec, formula


class Mask(NamedTuple):
    """The function of a mask."""

    stem: str  # the stem of the functions of its descriptor: "ptxmma_tcgen05_zero_column_mask"
    parts: str  # the number of parts in C, over m
    sizes: str  # the values of M with a mask, in words
    numbers: list[tuple[str, str]]  # numbers that the formula reads, with their C expressions over `descriptor` and `part`
    zero: str  # the formula in C, over `column` of the part and the numbers
    source: str


def mask(spec: Spec, entry: ColumnMask) -> Mask:
    """All that the template needs of a mask."""
    format = next(each for each in spec.descriptors if each.name == entry.descriptor)
    fields = {field.name: field for field in format.fields}
    read = sorted(set(formula.names(formula.parse(entry.zero))))
    common = [(name, decoded(fields[name])) for name in read if name in fields]
    own = [(name, _of_part(fields[f"{name}_0"], fields[f"{name}_1"])) for name in read if f"{name}_0" in fields]
    *others, (_, last_count) = entry.parts.items()
    parts = "".join(f"m == {m} ? {count} : " for m, count in others) + str(last_count)
    return Mask(f"ptxmma_{format.name}", parts, " or ".join(entry.parts), common + own, to_c(entry.zero), entry.source)


def _of_part(first: DescriptorField, second: DescriptorField) -> str:
    """The field of a part, in C: the parts have theirs at equal distances."""
    step = second.low - first.low
    return decoded(first, f"(descriptor >> {f'{step} * part' if step > 1 else 'part'})")
