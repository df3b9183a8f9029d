"""The result of a product that is added up in tensor memory; its operands are matrices.

Integers are exact.  Of floating point the manual promises no precision for ``tcgen05.mma``, so that any bound is what the reader assumes of
the sums: see :meth:`TensorEmulated.bound`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ptxmma.arguments import in_range, integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import column_masks, layouts, resolution
from ptxmma.catalog.descriptor_lookup import codec
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import TensorOperand
from ptxmma.catalog.resolution import Product
from ptxmma.matrices import arithmetic, sparse
from ptxmma.matrices.arithmetic import Factors, Products
from ptxmma.matrices.guarantees import admitted, float_type, rounded
from ptxmma.matrices.operations.operation import operand_of
from ptxmma.matrices.product_operands import product_operands, scale_blocks
from ptxmma.model import ElementType, Granularity

#: The largest power of two that D is divided by.
_MOST_SCALE = 15
#: The parameters for operands that only some instructions have, by the kinds of the operands.
_PARAMETERS = {"lane-mask": "disable_output_lane", "column-mask": "zero_column_mask_desc", "immediate": "scale_input_d"}


class TensorEmulated(msgspec.Struct, frozen=True, eq=False):
    """The result of a product in tensor memory.

    Attributes:
        instruction: the resolved instruction.
        d: D, (..., m, n), in the dtype of its type; a tensor if a, b or d was one.  Floating point: ``matrix``, rounded to nearest.
        matrix: D as numbers: ``int64``, or ``float64`` before that rounding.
        products: the terms of a floating-point product; None for integers, which are exact.
        unwritten: which elements of D keep their values, (m, n), because their lanes are disabled; None for none.
    """

    instruction: Instruction
    d: Any
    matrix: Array
    products: Any = None  # arithmetic.Products
    unwritten: Any = None

    def bound(self, sums: str = "f32") -> Array:
        """How far from ``matrix`` each element may be, (..., m, n), if sums have at least the precision of a type; 0 for integers.

        The manual promises no precision.  The order of the sums, and what becomes of subnormal inputs, is left open.

        Raises:
            ValueError: no such type.
        """
        if self.products is None:
            return np.zeros(self.matrix.shape)
        bound = arithmetic.bound(self.products, float_type(self.instruction, sums), _type(self.instruction, "dtype"))
        return bound if self.unwritten is None else np.where(self.unwritten, 0, bound)

    def admits(self, d: Any, sums: str = "f32") -> Array:
        """Which elements of D, (..., m, n), may have these values, if sums have at least the precision of a type.

        Raises:
            ValueError: another shape or dtype, or no such type.
        """
        element = _type(self.instruction, "dtype")
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
    product = instruction.variant
    if not isinstance(product, Product):
        missing = resolution.unstated(instruction.database.spec, product)
        raise ValueError(f"{instruction.canonical} does not state {', '.join(missing)}: give them to ptxmma.instruction()")
    m, n, k = product.sizes.values()
    pattern = layouts.granularity(instruction.database.spec, product)
    _refuse_options(instruction, {"metadata": metadata, "scale_a": scale_a, "scale_b": scale_b}, pattern, product)
    _refuse_foreign(
        instruction, {"lane-mask": disable_output_lane, "column-mask": zero_column_mask_desc, "immediate": scale_input_d or None}
    )
    stored = k if pattern is None else k * pattern.kept // pattern.chunk
    codes = _codes(instruction, "atype", a, (m, stored), "a"), _codes(instruction, "btype", b, (k, n), "b")
    full, kept = codes[0], np.ones(codes[0].shape, bool)
    if pattern is not None:
        full, kept = _expanded(instruction, codes[0], metadata, pattern, k)
    if zero_column_mask_desc is not None:
        codes = codes[0], np.where(_zero_columns(instruction, zero_column_mask_desc, m, n), codes[1].dtype.type(0), codes[1])
    result = _type(instruction, "dtype")
    before = np.zeros((m, n)) if d is None else _numbers(_codes(instruction, "dtype", d, (m, n), "d"), result)
    unwritten = None if disable_output_lane is None else _disabled(instruction, disable_output_lane, d_tmem, m, n)
    if d is None and unwritten is not None and unwritten.any():
        raise ValueError(f"{instruction.canonical}: D keeps its values in lanes that disable_output_lane has: give d")
    divisor = 1 << in_range("scale_input_d", integer("scale_input_d", scale_input_d), _MOST_SCALE + 1)
    addend = (before if enable_input_d else np.zeros((m, n))) / divisor
    tensor = next((operand for operand in (a, b, d) if elements.is_tensor(operand)), None)
    if result.form != "float":
        if negate_a or negate_b:
            raise ValueError(f"{instruction.canonical} negates neither A nor B: its elements are integers")
        total = _integers(instruction, (full, codes[1]), addend, saturate=saturate)
        matrix = total if unwritten is None else np.where(unwritten, before.astype(np.int64), total)
        return TensorEmulated(instruction, elements.like(matrix.astype(np.int32), tensor), matrix, None, unwritten)
    if saturate:
        raise ValueError(f"{instruction.canonical} does not saturate: its elements are not integers")
    signs = -1 if negate_a else 1, -1 if negate_b else 1
    factors = [
        Factors.of(bits, _type(instruction, name), sign)
        for bits, name, sign in zip((full, codes[1]), ("atype", "btype"), signs, strict=True)
    ]
    for number, (scales, axis) in enumerate(((scale_a, -1), (scale_b, -2))):
        if scales is not None:
            factors[number] = factors[number].times(_scales(instruction, scales, axis, (m, n, k), number))
    products = Products(factors[0], kept, factors[1], addend, result)
    matrix = products.value if unwritten is None else np.where(unwritten, before, products.value)
    return TensorEmulated(instruction, elements.like(rounded(matrix, result), tensor), matrix, products, unwritten)


def _refuse_options(instruction: Instruction, given: Mapping[str, Any], pattern: Granularity | None, product: Product) -> None:
    """Refuse metadata and scale factors where there are none, and their absence where there are."""
    needs = {"metadata": pattern is not None, "scale_a": bool(product.choice.block), "scale_b": bool(product.choice.block)}
    for name, value in given.items():
        if (value is not None) != needs[name]:
            raise ValueError(f"{instruction.canonical} {'needs' if needs[name] else 'takes no'} {name}")


def refuse_shift(instruction: Instruction) -> None:
    """Refuse a product that shifts A."""
    if instruction.qualifiers.get("ashift"):
        raise Missing(f"{instruction.canonical}: no source says what the row of A is that .ashift leaves without one")


def _refuse_foreign(instruction: Instruction, given: Mapping[str, Any]) -> None:
    """Refuse what no operand list of the instruction has, by the kinds of operands, and a shift of A whose direction is unknown."""
    refuse_shift(instruction)
    kinds = {operand.kind for form in instruction.forms for operand in form.operands}
    for kind, value in given.items():
        if value is not None and kind not in kinds:
            raise ValueError(f"{instruction.canonical} takes no {_PARAMETERS[kind]}")


def _disabled(instruction: Instruction, given: Any, address: int, m: int, n: int) -> Array:
    """Which elements of D are in the lanes of a mask, whose first word has the lowest lanes (PTX ISA 9.7.16.10.9.1)."""
    mask, result = operand_of(instruction, "lane-mask"), operand_of(instruction, "tensor-accumulator")
    assert isinstance(result, TensorOperand)
    words = [in_range(mask.name, integer(mask.name, word), 1 << 32) for word in np.asarray(given).tolist()]
    if len(words) != mask.registers:
        raise ValueError(f"{mask.name} has {len(words)} words; it takes {mask.registers}, the first of lanes 0 to 31")
    placed = result.placed()
    place, start = placed.locate(*np.indices((m, n))), placed.start(address)
    lane = place.lane + start.lane + placed.memory.lanes * place.cta
    return np.asarray(np.array(words, np.uint64)[lane // 32] >> (lane % 32).astype(np.uint64) & np.uint64(1), bool)


def _zero_columns(instruction: Instruction, descriptor: int, m: int, n: int) -> Array:
    """Which columns of B count as zero."""
    zero = np.array(column_masks.zero_columns(descriptor, m=m, n=n, database=instruction.database))
    if zero.any() and codec("columns", database=instruction.database).decode(descriptor)["column_shift"]:
        raise Missing(f"{instruction.canonical}: no source says whether column_shift moves the columns that the mask zeroes, too")
    return zero


def _type(instruction: Instruction, argument: str) -> ElementType:
    return layouts.element_type(instruction.database.spec, str(instruction.variant.facts[argument]))


def _codes(instruction: Instruction, argument: str, given: Any, shape: tuple[int, int], name: str) -> Array:
    codes = elements.codes(given, _type(instruction, argument), name)
    if codes.shape[-2:] != shape:
        raise ValueError(f"{name} has shape {codes.shape}; it takes (..., {shape[0]}, {shape[1]})")
    return codes


def _numbers(codes: Array, element: ElementType) -> Array:
    return elements.numbers(codes, element).astype(np.float64)


def _expanded(instruction: Instruction, stored: Array, metadata: Any, pattern: Granularity, k: int) -> tuple[Array, Array]:
    """The bits of the full A, with zeros for what it drops, and which elements it keeps."""
    coding = sparse.pattern(pattern.name, database=instruction.database)
    fields = elements.as_array(metadata, "metadata")
    kept = sparse.decompress(np.ones((*fields.shape[:-1], stored.shape[-1]), np.uint8), fields, coding).astype(bool)
    if kept.shape[-1] != k:
        raise ValueError(f"metadata has shape {fields.shape}; it takes (..., {stored.shape[-2]}, {k // pattern.chunk // 2})")
    refuse_undefined(instruction, fields)
    batch = np.broadcast_shapes(stored.shape[:-2], fields.shape[:-2])
    values, rows = (np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (stored, fields))
    return np.asarray(sparse.decompress(values, rows, coding)), kept


def refuse_undefined(instruction: Instruction, metadata: Array) -> None:
    """Refuse metadata with which the behaviour is undefined: tcgen05 takes fewer fields than mma."""
    fields, pattern = sparse.fields(metadata), layouts.granularity(instruction.database.spec, instruction.variant)
    assert pattern is not None
    wrong = ~np.isin(fields, [int(field, 2) for field in pattern.legal])
    if wrong.any():
        *_, row, chunk = place = tuple(map(int, np.argwhere(wrong)[0]))
        field, legal = int(fields[place]), ", ".join(pattern.legal)
        fault = pattern.faults(pattern.legal)[field]
        raise ValueError(f"the metadata of row {row}, chunk {chunk} is {field:#06b}, {fault} in {instruction.canonical}; legal: {legal}")


def _scales(instruction: Instruction, given: Any, axis: int, sizes: tuple[int, int, int], number: int) -> Factors:
    """A scale factor for each element of A (..., m, k) or B (..., k, n)."""
    m, n, k = sizes
    operands = product_operands(instruction)
    element, blocks = scale_blocks(instruction, operands.b if number else operands.a)
    shape, name = ((m, blocks), "scale_a") if number == 0 else ((blocks, n), "scale_b")
    codes = _codes(instruction, "stype", given, shape, name)
    return Factors.of(np.repeat(codes, k // blocks, axis=axis), element)


def _integers(instruction: Instruction, codes: tuple[Array, Array], addend: Array, *, saturate: bool) -> Array:
    """The sums of integers, as 32 bits hold them."""
    a, b = (_numbers(bits, _type(instruction, name)) for bits, name in zip(codes, ("atype", "btype"), strict=True))
    total = (a @ b).astype(np.int64) + addend.astype(np.int64)
    if saturate:
        limits = np.iinfo(np.int32)
        total = np.clip(total, limits.min, limits.max)
    return np.asarray(total.astype(np.int32), np.int64)
