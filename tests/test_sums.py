"""Sums with quotients and remainders: what compilers write for ``i / n`` and ``i % n`` is recognised, and right for each number."""

from __future__ import annotations

import operator
import random
from functools import partial

import pytest

from ptxmma.ptx.sums import Quotient, Remainder, Rounds, Sum, Term

_ROUND = b"%round"


def value(total: Sum, numbers: dict[Term, int]) -> int:
    """The number that a sum is, by the numbers of its registers."""
    return total.constant + sum(times * _term(term, numbers) for term, times in total.terms.items())


def _term(term: Term, numbers: dict[Term, int]) -> int:
    if isinstance(term, bytes | Rounds):
        return numbers[term]
    number = value(Sum(dict(term.terms), term.constant), numbers)
    return number // term.divisor if isinstance(term, Quotient) else number % term.values


def reciprocals(divisor: int, bits: int) -> list[tuple[int, int]]:
    """Factors and shifts of products of numbers of 16 or 32 bits that divide by a constant: rounded up, as compilers choose them."""
    found = [(-(-(1 << bits + shift) // divisor), shift) for shift in range(divisor.bit_length())]
    return [(factor, shift) for factor, shift in found if factor * divisor - (1 << bits + shift) <= 1 << shift and factor < 1 << bits]


@pytest.mark.parametrize("divisor", range(2, 33))
@pytest.mark.parametrize(("bits", "step", "first"), [(16, 1, 0), (16, 1, 3), (32, 1, 0), (32, 1, 3), (32, 4, 0), (32, 4, 3)])
def test_the_high_half_of_a_product_is_a_quotient(bits: int, divisor: int, step: int, first: int) -> None:
    number = Sum({_ROUND: step}, first)
    quotients = [number.each(partial(operator.mul, factor)).divided(1 << bits + shift) for factor, shift in reciprocals(divisor, bits)]
    # Of divisors that have no 32-bit factor, compilers halve the number first.
    if divisor == 7:
        high = number.each(partial(operator.mul, 613566757)).divided(1 << 32)
        quotients.append(number.plus(high, -1).divided(2).plus(high).divided(4))
    for quotient in [*quotients, number.divided(divisor)]:
        assert [value(quotient, {_ROUND: each}) for each in range(300)] == [(step * each + first) // divisor for each in range(300)]
        ring = number.plus(quotient, -divisor).in_rings()
        assert {value(ring, {_ROUND: each}) for each in range(divisor)} == {(step * each + first) % divisor for each in range(divisor)}
        assert all(isinstance(term, Remainder) for term in ring.terms)  # and the number itself is gone


def test_a_mask_or_a_remainder_has_no_more_values_than_come() -> None:
    number = Sum({_ROUND: 4}, 1)
    assert number.remainder(4) == number.masked(3) == Sum({}, 1)
    assert number.remainder(8) == Sum({Remainder(frozenset({(_ROUND, 1)}), 0, 2): 4}, 1)
    assert number.masked(5) is None  # bits that are not neighbours


def test_any_sequence_of_operations_gives_the_number() -> None:
    chosen = random.Random(24)
    for _ in range(2000):
        total = Sum({_ROUND: chosen.randint(1, 9)}, chosen.randint(0, 9))
        numbers = [value(total, {_ROUND: each}) for each in range(40)]
        for _ in range(chosen.randint(1, 5)):
            by = chosen.randint(1, 12)
            kind = chosen.choice(["plus", "times", "divided", "remainder", "masked", "ring"])
            if kind == "plus":
                total, numbers = total.plus(Sum({_ROUND: 1}, by)), [each + number + by for number, each in enumerate(numbers)]
            elif kind == "times":
                total, numbers = total.each(partial(operator.mul, by)), [each * by for each in numbers]
            elif kind == "divided":
                total, numbers = total.divided(by), [each // by for each in numbers]
            elif kind == "remainder":
                total, numbers = total.remainder(by), [each % by for each in numbers]
            elif kind == "masked" and (masked := total.masked(-8)) is not None:
                total, numbers = masked, [each & -8 for each in numbers]
            elif kind == "ring":
                total = total.plus(total.divided(by), -by).in_rings()
                numbers = [each % by for each in numbers]
            assert [value(total, {_ROUND: each}) for each in range(40)] == numbers
