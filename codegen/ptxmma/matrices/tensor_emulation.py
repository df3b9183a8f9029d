"""The result of a product that is added up in tensor memory; its operands are matrices.

Integers are exact.  Of floating point the manual promises no precision for ``tcgen05.mma``, so that any bound is what the reader assumes of
the sums: see :meth:`TensorEmulated.bound`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts, resolution
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.resolution import Product
from ptxmma.matrices import arithmetic, sparse
from ptxmma.matrices.arithmetic import Factors, Products
from ptxmma.matrices.guarantees import admitted, rounded
from ptxmma.model import ElementType, Granularity

#: The largest power of two that D is divided by.
_MOST_SCALE = 15


class TensorEmulated(msgspec.Struct, frozen=True, eq=False):
    """The result of a product in tensor memory.

    Attributes:
        instruction: the resolved instruction.
        d: D, (..., m, n), in the dtype of its type; a tensor if a, b or d was one.  Floating point: ``matrix``, rounded to nearest.
        matrix: D as numbers: ``int64``, or ``float64`` before that rounding.
        products: the terms of a floating-point product; None for integers, which are exact.
    """

    instruction: Instruction
    d: Any
    matrix: Array
    products: Any = None  # arithmetic.Products

    def bound(self, sums: str = "f32") -> Array:
        """How far from ``matrix`` each element may be, (..., m, n), if sums have at least the precision of a type; 0 for integers.

        The manual promises no precision.  The order of the sums, and what becomes of subnormal inputs, is left open.

        Raises:
            ValueError: no such type.
        """
        if self.products is None:
            return np.zeros(self.matrix.shape)
        spec = self.instruction.database.spec
        known = {entry.name: entry for entry in spec.types.elements if entry.form == "float"}
        if sums not in known:
            raise ValueError(f"unknown floating-point type {sums!r}; known: {', '.join(known)}")
        return arithmetic.bound(self.products, known[sums], _type(self.instruction, "dtype"))

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
) -> TensorEmulated:
    """Multiply; see :func:`ptxmma.emulate`."""
    product = instruction.variant
    if not isinstance(product, Product):
        missing = resolution.unstated(instruction.database.spec, product)
        raise ValueError(f"{instruction.canonical} does not state {', '.join(missing)}: give them to ptxmma.instruction()")
    m, n, k = product.sizes.values()
    pattern = layouts.granularity(instruction.database.spec, product)
    _refuse_options(instruction, {"metadata": metadata, "scale_a": scale_a, "scale_b": scale_b}, pattern, product)
    stored = k if pattern is None else k * pattern.kept // pattern.chunk
    codes = _codes(instruction, "atype", a, (m, stored), "a"), _codes(instruction, "btype", b, (k, n), "b")
    full, kept = codes[0], np.ones(codes[0].shape, bool)
    if pattern is not None:
        full, kept = _expanded(instruction, codes[0], metadata, pattern, k)
    result = _type(instruction, "dtype")
    addend = np.zeros((m, n)) if d is None or not enable_input_d else _numbers(_codes(instruction, "dtype", d, (m, n), "d"), result)
    if not 0 <= scale_input_d <= _MOST_SCALE:
        raise ValueError(f"scale_input_d = {scale_input_d} is out of range: 0..{_MOST_SCALE}")
    addend = addend / (1 << scale_input_d) if scale_input_d else addend
    if result.form != "float" and (negate_a or negate_b):
        raise ValueError(f"{instruction.canonical} negates neither A nor B: its elements are integers")
    if result.form == "float" and saturate:
        raise ValueError(f"{instruction.canonical} does not saturate: its elements are not integers")
    signs = -1 if negate_a else 1, -1 if negate_b else 1
    if result.form != "float":
        return _integers(instruction, (full, codes[1]), addend, saturate=saturate)
    factors = [
        Factors.of(bits, _type(instruction, name), sign)
        for bits, name, sign in zip((full, codes[1]), ("atype", "btype"), signs, strict=True)
    ]
    for number, (scales, axis) in enumerate(((scale_a, -1), (scale_b, -2))):
        if scales is not None:
            factors[number] = factors[number].times(_scales(instruction, scales, axis, (m, n, k), number))
    products = Products(factors[0], kept, factors[1], addend, result)
    value = products.value()
    tensor = next((operand for operand in (a, b, d) if elements.is_tensor(operand)), None)
    return TensorEmulated(instruction, elements.like(rounded(value, result), tensor), value, products)


def _refuse_options(instruction: Instruction, given: Mapping[str, Any], pattern: Granularity | None, product: Product) -> None:
    """Refuse metadata and scale factors where there are none, and their absence where there are."""
    needs = {"metadata": pattern is not None, "scale_a": bool(product.choice.block), "scale_b": bool(product.choice.block)}
    for name, value in given.items():
        if (value is not None) != needs[name]:
            raise ValueError(f"{instruction.canonical} {'needs' if needs[name] else 'takes no'} {name}")


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
    batch = np.broadcast_shapes(stored.shape[:-2], fields.shape[:-2])
    values, rows = (np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (stored, fields))
    return np.asarray(sparse.decompress(values, rows, coding)), kept


def _scales(instruction: Instruction, given: Any, axis: int, sizes: tuple[int, int, int], number: int) -> Factors:
    """A scale factor for each element of A (..., m, k) or B (..., k, n)."""
    m, n, k = sizes
    blocks = resolution.numbers(instruction.database.spec, _product(instruction), "a")["blocks"]
    shape, name = ((m, blocks), "scale_a") if number == 0 else ((blocks, n), "scale_b")
    codes = _codes(instruction, "stype", given, shape, name)
    return Factors.of(np.repeat(codes, k // blocks, axis=axis), _type(instruction, "stype"))


def _product(instruction: Instruction) -> Product:
    assert isinstance(instruction.variant, Product)
    return instruction.variant


def _integers(instruction: Instruction, codes: tuple[Array, Array], addend: Array, *, saturate: bool) -> TensorEmulated:
    """D of integers."""
    a, b = (_numbers(bits, _type(instruction, name)) for bits, name in zip(codes, ("atype", "btype"), strict=True))
    total = (a @ b).astype(np.int64) + addend.astype(np.int64)
    if saturate:
        limits = np.iinfo(np.int32)
        total = np.clip(total, limits.min, limits.max)
    d = total.astype(np.int32)
    return TensorEmulated(instruction, d, d.astype(np.int64))
