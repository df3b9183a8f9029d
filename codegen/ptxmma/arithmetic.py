"""Sums of products: their exact value, and how far from it a result may be.

Products are exact; the order of accumulation and mostly the rounding of sums are not specified.  For N terms that are not zero
(products and the addend), ``S`` the sum of their magnitudes, and ``u`` the distance from 1 to the next number of the type in which the
manual says that sums are kept at least, the bound is the sum of

* ``S * N u / (1 - N u)``: N sums in any order, each rounded in any direction (half of ``u`` where it says to nearest), and N times the
  smallest subnormal number;
* every term with a subnormal input, where the manual leaves open how those are handled;
* what one unit in the last place of an input changes, where the input has more bits than its type (a tf32 in 32 bits) and the manual
  leaves open what becomes of them;
* one unit in the last place of D's type where that is narrower.

It is infinite where finite numbers can leave the range of D's type: then nothing is promised.  It is 0 where an input is infinite
or no number: then the value is what IEEE 754 says.
"""

from __future__ import annotations

import msgspec
import numpy as np

from ptxmma.elements import Array
from ptxmma.model import ElementType

#: What computing the value in double precision can add to its error, relative to S, for each term.
_OWN = 2.0**-52


class Factors(msgspec.Struct, frozen=True, eq=False):
    """The elements of A or B.

    Attributes:
        numbers: ``float64``, as they count: with their scale factors.
        normal: the same with zeros in place of subnormal elements.
        most: the largest magnitudes that they may count with.
        aligned: magnitudes, of subnormal elements the smallest normal number's.
    """

    numbers: Array
    normal: Array
    most: Array
    aligned: Array

    @classmethod
    def of(cls, numbers: Array, element: ElementType, scales: Array | float = 1.0) -> Factors:
        """Elements of a type, each with its scale factor."""
        with np.errstate(invalid="ignore"):
            magnitudes, least = np.abs(numbers), element.smallest_normal
            normal = np.where(magnitudes < least, 0, numbers)
            aligned = np.where(magnitudes == 0, 0, np.maximum(magnitudes, least))
            return cls(numbers * scales, normal * scales, (magnitudes + _unsure(numbers, element)) * scales, aligned * scales)


def _unsure(numbers: Array, element: ElementType) -> Array:
    """One unit in the last place for every number that a type does not have because it has fewer bits, else 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.floor(np.log2(np.maximum(np.abs(numbers), element.smallest_normal)))
        ulp = np.exp2(exponents) * element.unit
        return np.where(np.isfinite(numbers) & (numbers % ulp != 0), ulp, 0)


class Products(msgspec.Struct, frozen=True, eq=False):
    """The terms of a matrix product.

    Attributes:
        a: (..., m, k); kept: which elements of it take part, the same shape: those of a sparse A that are stored.
        b: (..., k, n).
        c: the addend, ``float64`` (..., m, n), and its type.
    """

    a: Factors
    kept: Array
    b: Factors
    c: Array
    c_type: ElementType

    def value(self) -> Array:
        """The sums, in double precision."""
        with np.errstate(invalid="ignore"):
            return _dot(self.a.numbers, self.kept, self.b.numbers) + self.c

    def magnitude(self) -> Array:
        """The sums of the terms' magnitudes; of terms that are no finite numbers, as they come."""
        return self._magnitude(self.a.numbers, self.b.numbers, self.c)

    def count(self) -> Array:
        """Terms of each sum that are not zero."""
        counted: Array = (self.kept & (self.a.numbers != 0)).astype(np.float64) @ (self.b.numbers != 0) + (self.c != 0)
        return counted

    def subnormal(self) -> Array:
        """The sums of the magnitudes of those terms that have a subnormal input."""
        c = np.where(np.abs(self.c) < self.c_type.smallest_normal, 0, self.c)
        return self.magnitude() - self._magnitude(self.a.normal, self.b.normal, c)

    def unsure(self) -> Array:
        """What bits beyond the inputs' types can add."""
        return self._magnitude(self.a.most, self.b.most, self.c) - self.magnitude()

    def aligned(self) -> Array:
        """The sums of the terms' magnitudes as a chip sees them that does not normalise subnormal inputs."""
        return self._magnitude(self.a.aligned, self.b.aligned, self.c)

    def largest(self) -> Array:
        """The largest of these magnitudes in each sum."""
        found: Array = np.abs(self.c)
        for k in range(self.kept.shape[-1]):
            product = self.a.aligned[..., :, k, None] * self.b.aligned[..., k, None, :]
            found = np.maximum(found, np.where(self.kept[..., :, k, None], product, 0))
        return found

    def _magnitude(self, a: Array, b: Array, c: Array) -> Array:
        return _dot(np.abs(a), self.kept, np.abs(b)) + np.abs(c)


def _dot(a: Array, kept: Array, b: Array) -> Array:
    """``a @ b`` over the kept elements: one that is left out counts for nothing, even opposite an infinity."""
    special = np.flatnonzero(~np.isfinite(b).all(axis=tuple(axis for axis in range(b.ndim) if axis != b.ndim - 2)))
    finite = b.copy()
    finite[..., special, :] = 0
    rest = a.copy()
    rest[..., special] = 0
    result: Array = rest @ finite
    for k in special:
        result = result + np.where(kept[..., :, k, None], a[..., :, k, None] * b[..., k, None, :], 0)
    return result


def bound(products: Products, sums: ElementType, result: ElementType, *, nearest: bool = False, subnormals: bool = False) -> Array:
    """How far from :meth:`Products.value` the manual lets each element of D be.

    Args:
        products: the terms.
        sums: the type whose precision the sums have at least.
        result: the type of D.
        nearest: sums are rounded to nearest; otherwise in any direction.
        subnormals: subnormal inputs count; otherwise they may or may not.
    """
    with np.errstate(invalid="ignore"):
        magnitude = products.magnitude()
        allowed = _rounding(products, magnitude, sums.unit / 2 if nearest else sums.unit, sums) + products.unsure()
        if not subnormals:
            allowed = allowed + products.subnormal()
        if result.mantissa < sums.mantissa:
            allowed = allowed + (magnitude + allowed) * result.unit + result.smallest_normal * result.unit
    return _promised(allowed, magnitude, result.largest)


def chip_bound(products: Products, sums: ElementType, result: ElementType) -> Array:
    """The same for a chip on which subnormal inputs count, but align other terms as the smallest normal number does."""
    with np.errstate(invalid="ignore"):
        magnitude = products.aligned()
        allowed = _rounding(products, magnitude, sums.unit, sums) + products.unsure()
        if result.mantissa < sums.mantissa:
            allowed = allowed + (magnitude + allowed) * result.unit + result.smallest_normal * result.unit
    return _promised(allowed, magnitude, result.largest)


def _rounding(products: Products, magnitude: Array, unit: float, sums: ElementType) -> Array:
    """What sums in any order can lose, each at most ``unit`` of what has been summed."""
    count = products.count()
    relative = count * unit
    lost: Array = magnitude * (relative / (1 - relative) + count * _OWN) + count * sums.smallest_normal * sums.unit
    return lost


def cut_off_bound(products: Products, fraction_bits: int, result: ElementType) -> Array:
    """The same for a chip that cuts every term off ``fraction_bits`` below the leading bit of the largest, and the sum likewise."""
    with np.errstate(invalid="ignore", divide="ignore"):
        magnitude, largest = products.magnitude(), products.largest()
        step = np.where(largest > 0, np.exp2(np.floor(np.log2(largest)) - fraction_bits), 0)
        last = np.where(largest > 0, result.smallest_normal * result.unit, 0)
        allowed = products.count() * step + magnitude * (2.0**-fraction_bits + result.unit) + last
    return _promised(allowed, magnitude, result.largest)


def _promised(allowed: Array, magnitude: Array, limit: float) -> Array:
    """The bound: 0 where a term is not finite, infinite where finite terms may leave the range."""
    return np.where(np.isfinite(magnitude), np.where(magnitude + allowed <= limit, allowed, np.inf), 0)
