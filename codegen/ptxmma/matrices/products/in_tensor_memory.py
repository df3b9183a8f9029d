"""One product that is added up in tensor memory; its operands are matrices.

Integers are exact.  Of floating point the manual promises no precision for products in tensor memory, so that any bound is what the reader
assumes of the sums: see :meth:`TensorEmulated.bound`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ptxmma.arguments import in_range, integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.descriptors import column_masks
from ptxmma.catalog.descriptors.lookup import codec, of_product
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.matrices.places import operand_of
from ptxmma.matrices.product_operands import (
    ADDEND,
    AS_MATRICES,
    METADATA,
    A,
    B,
    check_given,
    product_operands,
    scales_of,
)
from ptxmma.matrices.products.guarantees import MANUAL, admitted, guarantees, rounded
from ptxmma.matrices.products.matrices import Matrices, read

#: The largest power of two that D is divided by.
_MOST_SCALE = 15


class TensorEmulated(msgspec.Struct, frozen=True, eq=False):
    """The result of a product in tensor memory.

    Attributes:
        instruction: the resolved instruction.
        d: D, (..., m, n), in the dtype of its type; a tensor if a, b or d was one.  Floating point: ``matrix``, rounded to nearest.
        matrix: D as numbers: ``int64``, or ``float64`` before that rounding.
        products: the terms of a floating-point product; None for integers, which are exact.
        unwritten: the elements of D that keep their values because their lanes are disabled, bool (m, n); None for none.
        a: A in tensor memory after ``.ashift``, (..., m, k), of a sparse A the kept elements; None where the product does not write A.
    """

    instruction: Instruction
    d: Any
    matrix: Array
    products: Any = None  # arithmetic.Products
    unwritten: Any = None
    a: Any = None

    def bound(self, sums: str = "f32") -> Array:
        """Return the largest distance of each element from ``matrix``, if sums have at least the precision of a type; 0 for integers.

        The manual promises no precision.  The order of the sums, and what becomes of subnormal inputs, is left open.

        Raises:
            ValueError: no such type.
        """
        if self.products is None:
            return np.zeros(self.matrix.shape)
        bound = guarantees(self.instruction, sums)[MANUAL](self.products, np.zeros(()))
        return bound if self.unwritten is None else np.where(self.unwritten, 0, bound)

    def admits(self, d: Any, sums: str = "f32") -> Array:
        """Return which elements of D, (..., m, n), may have these values, if sums have at least the precision of a type.

        Raises:
            ValueError: another shape or dtype, or no such type.
        """
        element = product_operands(self.instruction).result_type
        answer = elements.numbers(elements.codes(d, element, "d"), element)
        return admitted(answer, self.matrix, self.bound(sums))


def multiply(
    instruction: Instruction,
    a: Any,
    b: Any,
    d: Any = None,
    *,
    metadata: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    enable_input_d: bool = True,
    scale_input_d: int = 0,
    negate_a: bool = False,
    negate_b: bool = False,
    saturate: bool = False,
    disable_output_lane: Any = None,
    d_tmem: int = 0,
    zero_column_mask_desc: int | None = None,
) -> TensorEmulated:
    """Multiply; see :func:`ptxmma.emulate`."""
    check_given(instruction, instruction.forms, AS_MATRICES, metadata=metadata, scale_a=scale_a, scale_b=scale_b)
    optional = {
        "disable_output_lane": disable_output_lane,
        "zero_column_mask_desc": zero_column_mask_desc,
        "scale_input_d": scale_input_d or None,
    }
    for name, value in optional.items():
        if value is not None:
            check_given(instruction, instruction.forms, AS_MATRICES, **{name: value})
    product, (m, n, k) = product_operands(instruction), (instruction.extents[extent] for extent in "mnk")
    floating = product.result_type.form == "float"
    _check_options(instruction, {"negate_a": negate_a, "negate_b": negate_b, "saturate": saturate})

    given = {A: a, B: b, ADDEND: d, METADATA: metadata, scales_of(A): scale_a, scales_of(B): scale_b}
    for name, matrix, shape in (("a", a, (m, product.a.depth)), ("b", b, (k, n)), ("d", d, (m, n))):
        if matrix is not None and (has := elements.as_array(matrix, name).shape)[-2:] != shape:
            raise ValueError(f"{name} has shape {has}; it takes (..., {shape[0]}, {shape[1]})")
    matrices = read(instruction, given, "d")
    if zero_column_mask_desc is not None:
        zero = _zero_columns(instruction, zero_column_mask_desc, m, n)
        matrices[B] = np.where(zero, matrices[B].dtype.type(0), matrices[B])
    before = matrices[ADDEND]
    unwritten = None if disable_output_lane is None else _disabled(instruction, disable_output_lane, d_tmem, m, n)
    if d is None and unwritten is not None and unwritten.any():
        raise ValueError(f"{instruction.canonical}: D keeps its values in lanes that disable_output_lane has: give d")
    power = in_range("scale_input_d", integer("scale_input_d", scale_input_d), _MOST_SCALE + 1)
    addend = before if enable_input_d else np.zeros_like(before)
    matrices[ADDEND] = addend / (1 << power) if power else addend

    negated = frozenset(part for part, negative in ((A, negate_a), (B, negate_b)) if negative)
    multiplied = Matrices.of(instruction, matrices, negated)
    terms = multiplied.terms() if floating else None
    value = terms.value if terms is not None else multiplied.integers(saturate=saturate)[0]
    sums = value if unwritten is None else np.where(unwritten, before, value)
    result = rounded(sums, product.result_type)
    after = _shifted(instruction, a) if instruction.qualifiers.get("ashift") else None
    return TensorEmulated(instruction, elements.like(result, a, b, d), sums, terms, unwritten, after)


def _shifted(instruction: Instruction, a: Any) -> Any:
    """Return A after a shift: in each part of the lanes that a warp reaches, a lane has the row of the next one, and the last its own.

    Raises:
        Missing: no source says where A lies, or what lies in the lanes between its rows.
    """
    operand, rows = operand_of(instruction, "tensor-matrix"), np.arange(instruction.extents["m"])
    if operand.tensor is None:
        raise Missing(operand.why)
    place = operand.locate(rows, 0)
    lanes = operand.tensor.memory.partition["lane"]
    moved = rows[place.lane % lanes != lanes - 1]
    following = operand.locate(np.minimum(moved + 1, rows[-1]), 0)
    if (following.lane != place.lane[moved] + 1).any():
        raise Missing(f"{instruction.canonical}: no source says what lies in the lanes between the rows of {operand.name}, which move, too")
    rows[moved] += 1
    return elements.like(elements.as_array(a, "a")[..., rows, :], a)


def _check_options(instruction: Instruction, options: Mapping[str, bool]) -> None:
    """Check that the instruction descriptor of a product has an encoding of the options that are chosen, by the names of its fields."""
    for name in (name for name, chosen in options.items() if chosen):
        try:
            of_product(instruction, **{name: 1})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{instruction.canonical} does not {name.replace('_', ' ')}: {error}") from None


def _disabled(instruction: Instruction, given: Any, address: int, m: int, n: int) -> Array:
    """Return which elements of D are in the lanes of a mask, whose first word has the lowest lanes (PTX ISA 9.7.16.10.9.1)."""
    mask, result = operand_of(instruction, "lane-mask"), product_operands(instruction).d
    width = 8 * mask.register_dtype.itemsize
    words = [in_range(mask.name, integer(mask.name, word), 1 << width) for word in np.asarray(given).tolist()]
    if len(words) != mask.registers:
        raise ValueError(f"{mask.name} has {len(words)} words; it takes {mask.registers}, the first of lanes 0 to {width - 1}")
    placed = result.placed()
    place, start = placed.locate(*np.indices((m, n))), placed.start(address)
    lane = place.lane + start.lane + placed.memory.most("lane") * place.cta
    return np.asarray(np.array(words, np.uint64)[lane // width] >> (lane % width).astype(np.uint64) & np.uint64(1), bool)


def _zero_columns(instruction: Instruction, descriptor: int, m: int, n: int) -> Array:
    """Return which columns of B count as zero."""
    zero = np.array(column_masks.zero_columns(descriptor, m=m, n=n, database=instruction.database))
    if zero.any() and codec("columns", instruction.family, database=instruction.database).decode(descriptor)["column_shift"]:
        raise Missing(f"{instruction.canonical}: no source says whether column_shift moves the columns that the mask zeroes, too")
    return zero
