"""Sums of registers times constants, with quotients and remainders, as compilers compute the stage of a ring from the number of a round.

A compiler writes ``i % 3`` as ``i - i / 3 * 3``, divides by taking the high half of a product, and steps the address itself from round to
round.  All of these become the same sum here.  Numbers of rounds are not negative, and fewer than :data:`_MOST`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeAlias

#: Numbers of rounds are smaller: so the high half of a product is an exact quotient.
_MOST = 1 << 16
#: The largest divisor for which a product with its reciprocal is taken.
_LARGEST_DIVISOR = 1 << 12


class Rounds(NamedTuple):
    """The number of times that a block of a loop was executed since the loop began, by their places."""

    loop: int
    block: int


class Quotient(NamedTuple):
    """A sum divided by a constant, rounded down; its fields come in another order than a remainder's, since equal tuples are equal."""

    divisor: int
    terms: frozenset[tuple[Term, int]]
    constant: int


class Remainder(NamedTuple):
    """The remainder of a sum divided by a constant, which has all values below that constant."""

    terms: frozenset[tuple[Term, int]]
    constant: int
    values: int


#: A register or a variable, or what a sum has in its place.
Term: TypeAlias = bytes | Rounds | Quotient | Remainder


class Sum(NamedTuple):
    """A sum of terms, each times a factor, and a constant."""

    terms: Mapping[Term, int]
    constant: int = 0

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """This and another sum times a factor."""
        terms = dict(self.terms)
        for name, times in other.terms.items():
            terms[name] = terms.get(name, 0) + factor * times
        return Sum({name: times for name, times in terms.items() if times}, self.constant + factor * other.constant)

    def each(self, change: Callable[[int], int]) -> Sum:
        """This sum with other factors and another constant."""
        changed = {term: change(times) for term, times in self.terms.items()}
        return Sum({term: times for term, times in changed.items() if times}, change(self.constant))

    def divided(self, divisor: int) -> Sum:
        """This sum divided by a constant and rounded down: the number itself, or its product with a reciprocal."""
        total, divisor = _unnested(self, divisor)
        if not total.terms:
            return Sum({}, total.constant // divisor)
        factors = (total.constant, *total.terms.values())
        common = math.gcd(*factors)
        ratio = Fraction(common, divisor).limit_denominator(_LARGEST_DIVISOR)
        # A reciprocal is rounded.  The quotient is exact if the error is small, and rounding down takes it away.
        error = common * ratio.denominator - ratio.numerator * divisor
        if 0 <= (error if max(factors) > 0 else -error) * _MOST <= divisor:
            total, divisor = total.each(lambda factor: factor // common * ratio.numerator), ratio.denominator
        return total if divisor == 1 else Sum({Quotient(divisor, frozenset(total.terms.items()), total.constant): 1})

    def remainder(self, divisor: int) -> Sum:
        """The remainder of this sum divided by a constant."""
        rings = {term: times for term, times in self.terms.items() if isinstance(term, Remainder) and times > 0}
        most = self.constant + sum(times * (term.values - 1) for term, times in rings.items() if isinstance(term, Remainder))
        if len(rings) == len(self.terms) and 0 <= self.constant <= most < divisor:
            return self
        left = self.each(lambda factor: factor % divisor)
        step = math.gcd(divisor, *left.terms.values())
        first, values = left.constant % step, divisor // step
        if values == 1:
            return Sum({}, first)
        counted = left.each(lambda factor: factor // step)
        return Sum({Remainder(frozenset(counted.terms.items()), counted.constant, values): step}, first)

    def masked(self, mask: int) -> Sum | None:
        """The bits of this sum under a mask of neighbouring bits, or of all but the lowest; None for another mask."""
        low = mask & -mask
        if mask < 0:
            return self.plus(self.remainder(low), -1) if mask == -low else None
        high = mask + low
        return self.remainder(high).plus(self.remainder(low), -1) if mask and not high & mask else None

    def in_rings(self) -> Sum:
        """This sum with remainders in place of what is divided, multiplied and taken away again."""
        total = self
        for term, times in self.terms.items():
            if isinstance(term, Quotient) and not times % term.divisor:
                number = Sum(dict(term.terms), term.constant)
                rest = number.plus(number.remainder(term.divisor), -1)
                changed = total.plus(Sum({term: times}), -1).plus(rest, times // term.divisor)
                total = total if changed.terms.keys() & number.terms.keys() else changed
        return total


def _unnested(total: Sum, divisor: int) -> tuple[Sum, int]:
    """A sum and its divisor; a quotient in it to which the number is added that it divides, or nothing, is one with the sum."""
    for term, times in total.terms.items():
        if times == 1 and isinstance(term, Quotient):
            number, rest = Sum(dict(term.terms), term.constant), total.plus(Sum({term: 1}), -1)
            if not rest.terms or rest.terms.keys() & number.terms.keys():
                return _unnested(number.plus(rest, term.divisor), divisor * term.divisor)
    return total, divisor
