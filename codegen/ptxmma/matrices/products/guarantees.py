"""Bounds of the distance between a floating-point result and its exact value: by the manual, and as chips were seen to compute."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices.product_operands import product_operands
from ptxmma.matrices.products import arithmetic
from ptxmma.matrices.products.arithmetic import Products
from ptxmma.model import ElementType

#: The largest distance of each sum from :attr:`Products.value`, by the products and by the largest distance of each addend from C.
Bound = Callable[[Products, Array], Array]
#: The manual's guarantee, among :func:`guarantees`.
MANUAL = ""


class UnpromisedWarning(UserWarning):
    """A number is further from the exact one than the manual promises, but a chip was seen to compute so."""


def guarantees(instruction: Instruction, assumed: str = "f32") -> dict[str, Bound]:
    """The bounds of a floating-point instruction: of the manual, as :data:`MANUAL`, and of chips that were observed, by their names.

    Where the manual promises no precision, as for products in tensor memory, sums are assumed to have the precision of a type at least.
    """
    result = product_operands(instruction).result_type
    if not instruction.semantics():
        least = float_type(instruction, assumed)
        return {MANUAL: lambda terms, spread: arithmetic.bound(terms, least, result, c_bound=spread)}
    semantics = instruction.semantics()[0]
    sums = layouts.element_type(instruction.database.spec, semantics.sums)
    nearest, known = semantics.rounds == "nearest", "subnormal inputs" not in semantics.unspecified
    bounds: dict[str, Bound] = {
        MANUAL: lambda terms, spread: arithmetic.bound(terms, sums, result, c_bound=spread, nearest=nearest, subnormals=known)
    }
    for chip in semantics.observed:
        if chip.target in instruction.accepted_by():
            bounds[chip.chip] = _observed(chip.fraction_bits, sums, result)
    return bounds


def float_type(instruction: Instruction, name: str) -> ElementType:
    """A floating-point type by its name.

    Raises:
        ValueError: no such type.
    """
    known = {entry.name: entry for entry in instruction.database.spec.types.elements if entry.form == "float"}
    if name not in known:
        raise ValueError(f"unknown floating-point type {name!r}; known: {', '.join(known)}")
    return known[name]


def _observed(fraction_bits: int, sums: ElementType, result: ElementType) -> Bound:
    """The bound of a chip that keeps so many bits below the leading one; 0: as many as the manual promises."""
    if fraction_bits:
        return lambda terms, spread: arithmetic.cut_off_bound(terms, fraction_bits, result, c_bound=spread)
    return lambda terms, spread: arithmetic.chip_bound(terms, sums, result, c_bound=spread)


def admitted(answer: Array, value: Array, bound: Array) -> Array:
    """Return which numbers are within a bound of the values; infinities and NaNs where the values are the same."""
    with np.errstate(all="ignore"):
        near = np.abs(answer - value) <= bound
    return np.asarray(near | (answer == value) | (np.isnan(answer) & np.isnan(value)) | np.isinf(bound))


def rounded(value: Array, element: ElementType) -> Array:
    """Numbers in the dtype of an element type, rounded to nearest."""
    with np.errstate(all="ignore"):
        return value.astype(elements.dtype(element))


def refuse_unobserved(chip: str | None, observed: Mapping[str, Array], instruction: Instruction) -> None:
    """Refuse a chip of which nothing is known.

    Raises:
        ValueError: the chip is not observed.
    """
    if chip is not None and chip not in observed:
        known = ", ".join(observed) or "none"
        raise ValueError(f"nothing is observed of {chip!r} that differs from the manual for {instruction.canonical}; known: {known}")


def judged(answer: Array, value: Array, bound: Array, observed: Mapping[str, Array], chip: str | None = None) -> Array:
    """Return which numbers are within the bound of a chip, by default of the manual; warn of numbers that only a chip was seen to give."""
    if chip is not None:
        return admitted(answer, value, observed[chip])
    right = admitted(answer, value, bound)
    for name, wider in {} if right.all() else observed.items():
        if computed := int((admitted(answer, value, wider) & ~right).sum()):
            numbers = f"{computed} of the refused numbers are" if computed > 1 else "1 of the refused numbers is"
            text = f"{numbers} beyond what the manual promises, but within what an {name} computes"
            warnings.warn(f"{text}: pass chip={name!r} to judge by that chip", UnpromisedWarning, stacklevel=3)
    return right
