"""Sums of products: their exact value, and how far from it the manual lets a result be.

The products are exact; the order of accumulation and the rounding of sums are not specified.  With K products ``p``, the addend
``c``, ``S = |c| + sum |p|``, and ``u`` the distance from 1 to the next number of the type in which the manual says that sums are
kept at least, the bound is the sum of

* ``S * K u / (1 - K u)``: K sums in any order, each rounded in any direction, and K times the smallest subnormal number;
* ``|p|`` or ``|c|`` of every term with a subnormal input, where the manual leaves open how those are handled;
* what one unit in the last place of an input changes, where the input has more bits than its type (a tf32 in 32 bits) and the
  manual leaves open what becomes of them;
* one unit in the last place of D's type where that is narrower.

It is infinite where sums can leave the type's range: then nothing is promised.
"""

from __future__ import annotations

import msgspec
import numpy as np

from ptxmma.elements import Array
from ptxmma.model import ElementType

#: What computing the exact value in double precision can add to its error, relative to S and for each of K products.
_OWN = 2.0**-53


class Products(msgspec.Struct, frozen=True, eq=False):
    """The terms of a matrix product.

    Attributes:
        a: ``float64`` (..., m, k); kept: which elements of it take part, the same shape: those of a sparse A that are stored.
        b: ``float64`` (..., k, n).
        c: ``float64`` (..., m, n).
    """

    a: Array
    kept: Array
    b: Array
    c: Array

    def value(self) -> Array:
        """The sums, in double precision."""
        with np.errstate(invalid="ignore"):
            return _dot(self.a, self.kept, self.b) + self.c

    def magnitude(self) -> Array:
        """The sums of the terms' magnitudes."""
        with np.errstate(invalid="ignore"):
            return _dot(np.abs(self.a), self.kept, np.abs(self.b)) + np.abs(self.c)

    def count(self) -> int:
        """Products in each sum."""
        return int(self.kept.sum(-1).max())

    def largest(self) -> Array:
        """The largest magnitude among the terms of each sum."""
        found: Array = np.abs(self.c)
        for k in range(self.a.shape[-1]):
            product = np.abs(self.a[..., :, k, None] * self.b[..., k, None, :])
            found = np.maximum(found, np.where(self.kept[..., :, k, None], product, 0))
        return found

    def without_subnormals(self, types: tuple[ElementType, ElementType, ElementType]) -> Products:
        """The same with zeros in place of subnormal inputs, which have the types of A, B and C."""
        a, b, c = (np.where(np.abs(x) < smallest_normal(t), 0, x) for x, t in zip((self.a, self.b, self.c), types, strict=True))
        return Products(a, self.kept, b, c)


def unsure(numbers: Array, element: ElementType) -> Array:
    """One unit in the last place for every number that a type does not have because it has fewer bits, else 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ulp = np.exp2(np.floor(np.log2(np.abs(numbers)))) * unit(element)
        return np.where(np.isfinite(numbers) & (numbers != 0) & (numbers % ulp != 0), ulp, 0)


def _dot(a: Array, kept: Array, b: Array) -> Array:
    """``a @ b`` over the kept elements: one that is left out counts for nothing, even opposite an infinity."""
    finite = np.isfinite(b)
    result: Array = a @ np.where(finite, b, 0)
    special = np.flatnonzero(~finite.all(axis=tuple(axis for axis in range(b.ndim) if axis != b.ndim - 2)))
    for k in special:
        taken = kept[..., :, k, None] & ~finite[..., k, None, :]
        # where() evaluates both; the product replaces the zero that stood in for the infinity or NaN
        result = result + np.where(taken, a[..., :, k, None] * b[..., k, None, :], 0)
    return result


def unit(element: ElementType) -> float:
    """The distance from 1 to the next number of a type."""
    return 2.0**-element.mantissa


def smallest_normal(element: ElementType) -> float:
    """The smallest normal number of a floating-point type."""
    return float(2.0 ** (1 - element.bias))


def largest_number(element: ElementType) -> float:
    """The largest number of a floating-point type whose highest exponent stands for infinity and NaN."""
    return float((2 - unit(element)) * 2.0 ** ((1 << element.exponent) - 2 - element.bias))


def bound(products: Products, inputs: tuple[ElementType, ElementType, ElementType], sums: ElementType, result: ElementType) -> Array:
    """How far from :meth:`Products.value` the manual lets each element of D be; inf where nothing is promised.

    ``inputs`` are the types of A, B and C, ``sums`` the type whose precision the sums have at least, ``result`` that of D.
    """
    magnitude, k = products.magnitude(), products.count()
    ku = k * unit(sums)
    with np.errstate(invalid="ignore"):
        allowed = magnitude * (ku / (1 - ku) + k * _OWN) + k * smallest_normal(sums) * unit(sums)
        allowed = allowed + magnitude - products.without_subnormals(inputs).magnitude()
        a, b = (np.abs(x) + unsure(x, element) for x, element in zip((products.a, products.b), inputs, strict=False))
        allowed = allowed + Products(a, products.kept, b, np.abs(products.c)).value() - magnitude
        largest = magnitude + allowed
        if result.mantissa < sums.mantissa:
            allowed = allowed + largest * unit(result) + smallest_normal(result) * unit(result)
    limit = min(largest_number(sums), largest_number(result))
    return np.where(largest <= limit, allowed, np.inf)


def observed_bound(products: Products, fraction_bits: int, result: ElementType) -> Array:
    """The same for a chip that cuts every term off ``fraction_bits`` below the leading bit of the largest, and the sum likewise."""
    magnitude, largest = products.magnitude(), products.largest()
    with np.errstate(invalid="ignore", divide="ignore"):
        step = np.exp2(np.floor(np.log2(largest)) - fraction_bits)
        allowed = (products.count() + 1) * step + magnitude * (2.0**-fraction_bits + unit(result)) + smallest_normal(result) * unit(result)
    return np.where(largest > 0, np.where(magnitude + allowed <= largest_number(result), allowed, np.inf), 0)
