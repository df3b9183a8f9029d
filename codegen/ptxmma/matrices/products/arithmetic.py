"""Sums of products: their exact value, and how far from it a result may be.

The PTX ISA leaves the order of accumulation, mostly the rounding of sums, and the handling of subnormal inputs open.  Of sums it
promises a precision: "Accumulation of the intermediate values is performed with at least single precision", for f16 "When both .ctype
and .dtype are specified as .f16, the accumulation is performed with at least half precision" (9.7.14.5.14, 9.7.14.6.3, 9.7.15.5.2,
9.7.15.6.3), "more than half and less than single" for wgmma with FP8 and D in f32 (release notes of PTX ISA 9.2).  Precision is read as a
number of digits; the range of exponents is the range of the sums' type or of D's, whichever is wider.  Products, and elements times their
scale factors, count as exact: they fit.

For N terms that are not zero (products and the addend), ``S`` the sum of their magnitudes, and ``u`` the distance from 1 to the next
number of the type whose precision sums have at least, the bound is the sum of

* ``S * N u / (1 - N u)``: N sums in any order, each rounded in any direction (half of ``u`` where the manual says to nearest), and N
  times the smallest number of that range;
* every term with a subnormal input, where the manual leaves open how those are handled;
* what one unit in the last place of an input changes, where the input has more bits than its type (a tf32 in 32 bits) and the manual
  leaves open what becomes of them;
* where D is narrower than the sums, one unit in the last place of D at the result: the sum is rounded once more, in any direction;
* how far the addend itself may be from C, where it is the result of other sums; S counts that too;
* what double precision loses here.

The bound is infinite, nothing is promised,

* where finite terms can leave the range of the sums, or the result the range of D;
* where a sum has an infinity or a NaN only if subnormal inputs, or bits beyond an input's type, are read in one of several ways.

It is 0 where infinities and NaNs among the inputs decide the sum, however it is done: then the value is what IEEE 754 says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import msgspec
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.model import ElementType

#: The error that double precision adds for each term: relative to S, and where a product underflows.
_OWN, _OWN_LEAST = 2.0**-52, 2.0**-1074
#: The bound of addends that are C itself.
_EXACT = np.zeros(())


class Factors(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The elements of A or B as instructions may read them, ``float64``.

    Attributes:
        numbers: the exact values.
        flushed: with zeros in place of subnormal numbers.
        cut: without the bits that an element has beyond its type.
        most: rounded away from zero where these bits are not zero.
        aligned: subnormal numbers as large as the smallest normal one.
    """

    numbers: Array
    flushed: Array
    cut: Array
    most: Array
    aligned: Array

    @classmethod
    def of(cls, codes: Array, element: ElementType, sign: int = 1) -> Factors:
        """Elements of a type, by their bits; a sign of -1 negates them."""
        with np.errstate(all="ignore"):
            numbers = sign * elements.numbers(codes, element)
            magnitudes, least = np.abs(numbers), element.smallest_normal
            flushed = aligned = cut = most = numbers
            if ((magnitudes < least) & (magnitudes != 0)).any():
                flushed = np.where(magnitudes < least, 0, numbers)
                aligned = np.where(magnitudes == 0, 0, np.copysign(np.maximum(magnitudes, least), numbers))
            spare = element.bits - 1 - element.exponent - element.mantissa  # low bits beyond the type: 13 of a tf32
            if spare > 0:
                short = codes >> spare << spare
                cut = sign * elements.numbers(short, element)
                most = np.where((codes == short) | np.isnan(numbers), numbers, np.copysign(_rounded_up(magnitudes, element), numbers))
            return cls(numbers, flushed, cut, most, aligned)

    def times(self, scales: Factors) -> Factors:
        """Each element with its scale factor."""
        with np.errstate(all="ignore"):
            return Factors(*(getattr(self, name) * getattr(scales, name) for name in self.__struct_fields__))

    def each(self, function: Callable[[Array], Array]) -> Factors:
        """A function of every reading; readings that are one array stay one."""
        made: dict[int, Array] = {}
        arrays: list[Array] = [getattr(self, name) for name in self.__struct_fields__]
        for array in arrays:
            if id(array) not in made:
                made[id(array)] = function(array)
        return Factors(*[made[id(array)] for array in arrays])

    @functools.cached_property
    def sizes(self) -> Factors:
        """The magnitudes, 0 for what is infinite or no number."""
        return self.each(_finite)

    @functools.cached_property
    def finite(self) -> bool:
        """True if no reading has an infinity or a NaN."""
        return bool(np.isfinite(self.numbers).all() and (self.most is self.numbers or np.isfinite(self.most).all()))

    @functools.cached_property
    def counts(self) -> Array:
        """1 for each element that is not zero, else 0."""
        return np.asarray((self.numbers != 0).astype(np.float64))

    @functools.cached_property
    def full(self) -> bool:
        """True if no element is zero."""
        return bool(self.counts.all())


def _rounded_up(magnitudes: Array, element: ElementType) -> Array:
    """The magnitudes and one unit in their last place; infinity beyond the largest number of the type."""
    exponents = np.frexp(np.maximum(magnitudes, element.smallest_normal))[1] - 1
    return np.where(magnitudes > element.largest, np.inf, magnitudes + np.ldexp(element.unit, exponents))


class Products(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The terms of a matrix product.

    Sums of magnitudes leave out the terms with infinities and NaNs.  Several bounds share what a product has computed once.

    Attributes:
        a: (..., m, k); kept: which elements of it take part, (..., m, k) too: the stored ones of a sparse A.
        b: (..., k, n).
        c: the addend, ``float64`` (..., m, n), and its type.
    """

    a: Factors
    kept: Array
    b: Factors
    c: Array
    c_type: ElementType

    @functools.cached_property
    def value(self) -> Array:
        """The sums, in double precision; infinite, or no number, where that overflows."""
        with np.errstate(all="ignore"):
            return self._sums(self.a.numbers, self.b.numbers, self.c)

    @functools.cached_property
    def most(self) -> float:
        """The largest magnitude of a sum; infinite where an input is."""
        finite = self.a.finite and self.b.finite
        return float(np.maximum(self.value.max(), -self.value.min())) if finite else np.inf

    def special(self, c_bound: Array, *, subnormals: bool) -> tuple[Array, Array]:
        """The sums that infinities and NaNs among the inputs decide, else 0; and which of them depend on how inputs are read.

        Inputs are read unchanged, without the bits beyond their type, rounded to their type and, unless ``subnormals`` count, without
        subnormal numbers.  An addend of which nothing is known decides nothing, and leaves only NaNs decided.
        """
        unknown, a, b = np.isinf(c_bound), self.a, self.b
        c = np.where(unknown, 0, self.c)
        if a.finite and b.finite and np.isfinite(c).all():
            return np.zeros(()), unknown
        readings = [(a.numbers, b.numbers), (a.cut, b.cut), (a.most, b.most)] + ([] if subnormals else [(a.flushed, b.flushed)])
        first, *others = [self._decided(*reading, c) for reading in readings]
        unsure = [(first != other) & ~(np.isnan(first) & np.isnan(other)) for other in others]
        return first, np.logical_or.reduce(unsure) | (unknown & ~np.isnan(first))

    def _decided(self, a: Array, b: Array, c: Array) -> Array:
        """Infinite and NaN sums; what is finite counts by its sign alone, so that nothing overflows."""
        signs = self._sums(*[np.where(np.isfinite(numbers), np.sign(numbers), numbers) for numbers in (a, b, c)])
        return np.where(np.isfinite(signs), 0, signs)

    def _sums(self, a: Array, b: Array, c: Array) -> Array:
        """``a @ b + c`` over the kept elements; an element that is left out adds nothing, even opposite an infinity."""
        if self.b.finite:
            return np.asarray(a @ b + c)
        special = np.flatnonzero(~np.isfinite(b).all(axis=tuple(axis for axis in range(b.ndim) if axis != b.ndim - 2)))
        finite = b.copy()
        finite[..., special, :] = 0
        rest = a.copy()
        rest[..., special] = 0
        result: Array = rest @ finite
        for k in special:
            result = result + np.where(self.kept[..., :, k, None], a[..., :, k, None] * b[..., k, None, :], 0)
        return result + c

    def count(self, c_bound: Array) -> Array:
        """Terms of each sum that are not zero; one number where all sums have as many."""
        known = (c_bound > 0).all() and c_bound.ndim
        return np.asarray(self._counted + (1 if known else (self.c != 0) | (c_bound > 0)), np.intp)

    @functools.cached_property
    def _counted(self) -> Array:
        """Products that are not zero; one number where all sums have as many."""
        if self.a.full and self.b.full and self.kept.all():
            return np.asarray(float(self.kept.shape[-1]))
        return np.asarray((self.kept * self.a.counts) @ self.b.counts)

    @functools.cached_property
    def magnitude(self) -> Array:
        """The sums of the products' magnitudes."""
        return np.asarray(self.a.sizes.numbers @ self.b.sizes.numbers)

    @functools.cached_property
    def beyond(self) -> Array:
        """The largest addition to :attr:`magnitude` by the bits beyond the inputs' types."""
        if self.a.most is self.a.numbers and self.b.most is self.b.numbers:
            return np.zeros(())
        return np.asarray(self.a.sizes.most @ self.b.sizes.most - self.magnitude)

    def subnormal(self, c_bound: Array) -> Array:
        """The sums of the magnitudes of those terms that have a subnormal input."""
        least = self.c_type.smallest_normal
        small = self.addend - c_bound < least
        if not small.any():
            return self._subnormal
        return np.asarray(self._subnormal + np.where(small, np.minimum(self.addend + c_bound, least), 0))

    @functools.cached_property
    def _subnormal(self) -> Array:
        """The same without the addend."""
        if self.a.flushed is self.a.numbers and self.b.flushed is self.b.numbers:
            return np.zeros(())
        return np.asarray(self.magnitude - self.a.sizes.flushed @ self.b.sizes.flushed)

    @functools.cached_property
    def aligned(self) -> Array:
        """The sums of the products' magnitudes as a chip sees them that does not normalise subnormal inputs."""
        if self.a.aligned is self.a.numbers and self.b.aligned is self.b.numbers:
            return self.magnitude
        return np.asarray(self.a.sizes.aligned @ self.b.sizes.aligned)

    @functools.cached_property
    def addend(self) -> Array:
        """The magnitudes of the addends, 0 for what is infinite or no number."""
        return _finite(self.c)

    def largest(self, c_bound: Array) -> Array:
        """The largest of these magnitudes in each sum."""
        a, b = self.a.sizes.aligned, self.b.sizes.aligned
        largest: Array = np.broadcast_to(self.addend + c_bound, self.value.shape).copy()
        product = np.empty_like(largest)
        for k in range(a.shape[-1]):
            np.multiply(a[..., :, k, None], b[..., k, None, :], out=product)
            np.maximum(largest, product, out=largest)
        return largest


def _finite(numbers: Array) -> Array:
    """Magnitudes, 0 for what is infinite or no number."""
    magnitudes = np.abs(numbers)
    return magnitudes if np.isfinite(magnitudes).all() else np.where(np.isfinite(numbers), magnitudes, 0)


def bound(
    products: Products,
    sums: ElementType,
    result: ElementType,
    *,
    c_bound: Array = _EXACT,
    nearest: bool = False,
    subnormals: bool = False,
) -> Array:
    """Return the largest distance from :attr:`Products.value` that the manual lets each element of D have.

    Args:
        products: the terms.
        sums: the type whose precision the sums have at least.
        result: the type of D.
        c_bound: the largest distance of each addend from C.
        nearest: sums are rounded to nearest; otherwise in any direction.
        subnormals: subnormal inputs count; otherwise they may or may not.
    """
    with np.errstate(all="ignore"):
        reach = products.magnitude + (products.addend + c_bound)
        reach = _added(reach, products.beyond)
        lost = _added(_rounding(products, c_bound, reach, sums, result, nearest=nearest), products.beyond, c_bound)
        if not subnormals:
            lost = _added(lost, products.subnormal(c_bound))
        summed = reach + lost
        if result.mantissa < sums.mantissa:
            lost = lost + _last_rounding(np.abs(products.value) + lost, result)
        sums_fit = summed <= _wider(sums, result).largest
        if products.most + lost.max() <= result.largest and sums_fit.all():
            return lost  # all is finite and fits
        return _promised(products, c_bound, lost, sums_fit, np.abs(products.value) + lost <= result.largest, subnormals=subnormals)


def chip_bound(products: Products, sums: ElementType, result: ElementType, *, c_bound: Array = _EXACT) -> Array:
    """The same for a chip on which subnormal inputs count, but align other terms as the smallest normal number does.

    Where D is narrower than the sums, each sum may be rounded to D's precision.
    """
    with np.errstate(all="ignore"):
        magnitude = products.aligned + (products.addend + c_bound)
        allowed = _added(_rounding(products, c_bound, magnitude, sums, sums), products.beyond, c_bound)
        if result.mantissa < sums.mantissa:
            allowed = allowed + _last_rounding(magnitude + allowed, result)
        return _within(products, c_bound, magnitude, allowed, result)


def cut_off_bound(products: Products, fraction_bits: int, result: ElementType, *, c_bound: Array = _EXACT) -> Array:
    """The same for a chip that cuts every term off ``fraction_bits`` below the leading bit of the largest, and the sum likewise."""
    with np.errstate(all="ignore"):
        magnitude, largest = products.magnitude + (products.addend + c_bound), products.largest(c_bound)
        step = np.where(largest > 0, np.exp2(np.floor(np.log2(largest)) - fraction_bits), 0)
        last = np.where(largest > 0, result.smallest_normal * result.unit, 0)
        allowed = products.count(c_bound) * step + magnitude * (2.0**-fraction_bits + result.unit) + last + c_bound
        return _within(products, c_bound, magnitude, allowed, result)


def _within(products: Products, c_bound: Array, magnitude: Array, allowed: Array, result: ElementType) -> Array:
    """A chip's bound: what is allowed where D's type has room for it."""
    if np.isfinite(products.most) and magnitude.max() + allowed.max() <= result.largest:
        return allowed
    return _promised(products, c_bound, allowed, magnitude + allowed <= result.largest)


def _added(first: Array, *others: Array) -> Array:
    """The sum, one after another; a single zero costs nothing."""
    for other in others:
        if other.ndim or other != 0:
            first = first + other
    return first


def _wider(sums: ElementType, result: ElementType) -> ElementType:
    """The one of two types that has the wider range: sums keep at least the digits of the one, and reach as far as either."""
    return max(sums, result, key=lambda element: element.exponent)


def _rounding(
    products: Products, c_bound: Array, magnitude: Array, sums: ElementType, result: ElementType, *, nearest: bool = False
) -> Array:
    """The largest error of sums in any order, each with at most one unit in its last place."""
    return rounding(
        products.count(c_bound), magnitude, sums.unit / 2 if nearest else sums.unit, _wider(sums, result).smallest_normal * sums.unit
    )


def rounding(count: Array, magnitude: Array, unit: float, least: float) -> Array:
    """The largest error of a sum, in any order.

    Args:
        count: terms, ``int``.
        magnitude: the sum of their magnitudes.
        unit: the loss of each addition, relative to its result.
        least: the smallest number that additions reach.
    """
    each = np.arange(count.max() + 1.0)  # counts are few: what follows from one is looked up
    relative = each * unit
    grown = np.where(relative < 1, relative / (1 - relative), np.inf)
    relative, absolute = grown + each * _OWN, each * (least * (1 + grown) + _OWN_LEAST)
    return np.asarray(magnitude * relative[count] + absolute[count])


def _last_rounding(magnitude: Array, result: ElementType) -> Array:
    """One unit in the last place of D at a magnitude."""
    unit: Array = (magnitude + result.smallest_normal) * result.unit
    return unit


def _promised(
    products: Products, c_bound: Array, allowed: Array, sums_fit: Array, result_fits: Array | bool = True, *, subnormals: bool = True
) -> Array:
    """The bound: what is allowed where finite numbers decide; else 0 where nothing else can come out, or infinite."""
    special, unsure = products.special(c_bound, subnormals=subnormals)
    cases = [unsure, np.isnan(special), ~sums_fit, np.isinf(special), np.logical_not(result_fits)]
    return np.select(np.broadcast_arrays(*cases), [np.inf, 0, np.inf, 0, np.inf], allowed)
