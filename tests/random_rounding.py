"""Exact arithmetic that rounds as an instruction may: what tests of the emulator and of whole products share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ptxmma.model import ElementType

#: A finite number, exact, or an infinity or NaN.
Number = Fraction | float


class Rounding:
    """Rounds to a type's digits in the range of the widest of some types: as stated for an instruction, else in any direction."""

    def __init__(self, digits: ElementType, *range_of: ElementType, how: str, random: np.random.Generator) -> None:
        widest = max([digits, *range_of], key=lambda element: element.exponent)
        self._mantissa, self._least, self._largest = digits.mantissa, 1 - widest.bias, Fraction(widest.largest)
        self._how, self._random = how, random

    def __call__(self, exact: Number) -> Number:
        if not isinstance(exact, Fraction) or not exact:
            return exact
        exponent = max(_exponent(abs(exact)), self._least)
        quantum = Fraction(2) ** (exponent - self._mantissa)
        steps = exact / quantum
        below, above = steps.__floor__(), steps.__ceil__()
        how = self._how or ("down", "up")[int(self._random.integers(2))]
        if how == "zero":
            how = "down" if exact > 0 else "up"
        rounded = quantum * (round(steps) if how == "nearest" else below if how == "down" else above)
        if abs(rounded) <= self._largest:
            return rounded
        beyond = how == "nearest" or how == ("up" if exact > 0 else "down")
        limit: Number = float("inf") if beyond else self._largest
        return limit if exact > 0 else -limit


def _exponent(positive: Fraction) -> int:
    guess = positive.numerator.bit_length() - positive.denominator.bit_length()
    return guess if Fraction(2) ** guess <= positive else guess - 1


def added(x: Number, y: Number) -> Number:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    return sum(value for value in (x, y) if not isinstance(value, Fraction))


def multiplied(*numbers: float) -> Number:
    if np.isfinite(numbers).all():
        product = Fraction(1)
        for number in numbers:
            product *= Fraction(number)
        return product
    signs = [float(np.sign(number)) if np.isfinite(number) else number for number in numbers]
    with np.errstate(invalid="ignore"):
        return float(np.prod(signs))
