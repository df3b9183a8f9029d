"""Formats of block-scaled matrices: element type, type of the scale factors, and how many elements share one."""

from __future__ import annotations

from typing import Any

import msgspec

from ptxmma.arguments import integer
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import DatabaseLike, Instruction, catalog
from ptxmma.matrices.product_operands import scale_blocks
from ptxmma.model import ElementType


class Format(msgspec.Struct, frozen=True):
    """Elements and scale factors of a block-scaled matrix.

    Attributes:
        element: type of the elements.
        scale: type of the scale factors.
        block: neighbouring elements that share a scale factor.
        axis: along which they are neighbours: -1 for A (m x k), -2 for B (k x n).
    """

    element: ElementType
    scale: ElementType
    block: int
    axis: int = -1

    def __repr__(self) -> str:
        return f"<Format {self.element.name}, {self.scale.name} for each {self.block} along axis {self.axis}>"


def formats(*, database: DatabaseLike = None) -> dict[str, Format]:
    """The formats that have a name: ``"mxfp8_e4m3"``, ``"mxfp4"``, ``"nvfp4"`` … (OCP MX v1.0, table 1; PTX ISA 9.7.14.3)."""
    spec = catalog(database).database.spec
    return {
        entry.name: Format(layouts.element_type(spec, entry.element), layouts.element_type(spec, entry.scale), entry.block)
        for entry in spec.block_formats
    }


def custom(element_type: str, scale_type: str, block: int, *, axis: int = -1, database: DatabaseLike = None) -> Format:
    """A format without a name, e.g. ``custom("e2m1", "ue8m0", 16)``.

    Raises:
        TypeError: a block or an axis that is not an integer.
        ValueError: an element type that no named format has, a scale type that no instruction takes, or a block of no elements.
    """
    spec = catalog(database).database.spec
    known = {entry.element: layouts.element_type(spec, entry.element) for entry in spec.block_formats}
    products = spec.tensor_products.scales if spec.tensor_products else ()
    taken = [entry.types for entry in spec.block_scaling] + [entry.stype for entry in products]
    element = _one_of("element type", element_type, known)
    scale = _one_of("scale type", scale_type, {name: layouts.element_type(spec, name) for names in taken for name in names})
    size = integer("block", block)
    if size < 1:
        raise ValueError(f"block = {size}: a block has 1 element or more")
    return Format(element, scale, size, integer("axis", axis))


def of(instruction: Instruction, operand: str = "a") -> Format:
    """The format in which a block-scaled instruction reads ``"a"`` or ``"b"``: K / scale factors elements share one.

    For a sparse A the blocks count along the full K, zeros included: quantise first, then compress the elements (PTX ISA 9.7.14.3).

    Args:
        instruction: one that scales blocks; of ``tcgen05.mma`` with its shape and types.
        operand: ``"a"`` or ``"b"``.

    Raises:
        ValueError: the instruction has no scale factors for that operand, or does not state its shape and types.
    """
    spec = instruction.database.spec
    scale, blocks = scale_blocks(instruction, operand)
    element = layouts.element_type(spec, instruction.matrix_types[operand])
    return Format(element, scale, instruction.extents[layouts.SUMMED] // blocks, -1 if operand == "a" else -2)


def _one_of(what: str, name: str, known: dict[str, Any]) -> Any:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(known)}")
    return known[name]


def format_of(given: Format | str, axis: int | None, database: DatabaseLike) -> Format:
    """A format, or the one of that name, with its blocks along ``axis``."""
    chosen: Format = given if isinstance(given, Format) else _one_of("format", given, formats(database=database))
    return chosen if axis is None else msgspec.structs.replace(chosen, axis=axis)
