"""Exact arithmetic that rounds as an instruction may: what tests of the emulator and of whole products share."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.model import ElementType
from random_operands import Draw, Operands, one_of_each

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


@functools.cache
def floating() -> list[Instruction]:
    """One floating-point instruction for each kind of arithmetic that the spec states."""
    by_semantics: dict[object, Instruction] = {}
    for instruction in one_of_each():
        types = [instruction.qualifiers.get(name) for name in ("atype", "btype", "ctype", "dtype", "stype", "rounding", "scale_vec")]
        if instruction.semantics() and layouts.element_type(instruction.database.spec, str(types[0])).form == "float":
            assert instruction.shape is not None
            by_semantics.setdefault((instruction.variant.instruction.name, instruction.shape[2], *types), instruction)
    return list(by_semantics.values())


def drawn(where: str) -> Draw:
    """Random numbers: in the middle of a type's range, the smallest, the largest, or any bits, with infinities and NaNs."""

    def draw(element: ElementType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
        dtype = elements.dtype(element)
        if where == "anywhere":
            bits = element.bits if element.sign else element.exponent + element.mantissa
            return random.integers(0, (1 << bits) - 1, shape, np.uint64, endpoint=True).astype(elements.bits_dtype(element)).view(dtype)
        least = 1 - element.bias
        low, high = {"middle": (-6, 6), "smallest": (least - element.mantissa, least + 2), "largest": (element.emax - 2, element.emax)}[
            where
        ]
        exponents = random.integers(max(low, least - element.mantissa), min(high, element.emax), shape, endpoint=True)
        magnitudes = np.minimum((1 + random.random(shape)) * np.exp2(exponents), element.largest) * (random.random(shape) > 0.1)
        return np.asarray(magnitudes * random.choice([-1, 1] if element.sign else [1], shape)).astype(dtype)

    return draw


class Chip:
    """Sums terms in a random order, and makes every choice that the manual leaves open."""

    def __init__(self, instruction: Instruction, operands: Operands, random: np.random.Generator) -> None:
        spec, semantics = instruction.database.spec, instruction.semantics()[0]
        self._random, self._instruction, self._operands = random, instruction, operands
        self._types = {name: layouts.element_type(spec, instruction.qualifiers[f"{name}type"]) for name in "abd"}
        self._types["c"] = layouts.element_type(spec, instruction.qualifiers.get("ctype") or instruction.qualifiers["dtype"])
        stated = {"rz": "zero", "rm": "down", "rp": "up"}.get(instruction.qualifiers.get("rounding", ""), semantics.rounds)
        sums, f32 = (layouts.element_type(spec, name) for name in (semantics.sums, "f32"))
        self._round = Rounding(sums, self._types["d"], how=stated, random=random)
        self._to_d = Rounding(self._types["d"], how=stated, random=random)
        self._products = Rounding(f32, how="", random=random) if sums.bits <= 32 and random.integers(2) else (lambda exact: exact)
        self._flushes = "subnormal inputs" in semantics.unspecified and bool(random.integers(2))
        self._low_bits = "drop" if semantics.truncates else "keep"
        if any("low bits" in what for what in semantics.unspecified):
            self._low_bits = str(random.choice(["keep", "drop", "away", "nearest"]))

    def _read(self, numbers: Array, element: ElementType) -> list[float]:
        """Inputs as this chip reads them."""
        if element.name == "tf32":
            bits = numbers.view(np.uint32)
            rounding = {"keep": 0, "drop": 0, "away": 0x1FFF, "nearest": 0x1000}[self._low_bits]
            bits = np.where(np.isfinite(numbers), bits + np.uint32(rounding), bits)
            numbers = (bits if self._low_bits == "keep" else bits & np.uint32(0xFFFFE000)).view(np.float32)
        floats = numbers.astype(np.float64)
        if self._flushes:
            floats[np.abs(floats) < element.smallest_normal] = 0
        return [float(number) for number in floats.ravel()]

    def terms(self, place: tuple[int, ...]) -> list[Number]:
        """The products and the addend of one element of D."""
        operands, (row, col) = self._operands, place[-2:]
        b = np.ascontiguousarray(operands.b[place[:-2]][:, col])
        factors = [self._read(operands.a[place[:-1]], self._types["a"]), self._read(b, self._types["b"])]
        if operands.scales:
            stype = layouts.element_type(self._instruction.database.spec, self._instruction.qualifiers["stype"])
            factors += [self._read(operands.scales["a"][row], stype), self._read(operands.scales["b"][:, col], stype)]
        kept = itertools.compress(zip(*factors, strict=True), operands.kept[place[:-1]])
        products = [self._products(multiplied(*numbers)) for numbers in kept]
        c = self._read(np.asarray(operands.c[place]).reshape(1), self._types["c"])[0]
        return [term for term in [*products, multiplied(c)] if term != 0]

    def answer(self, place: tuple[int, ...]) -> float:
        """One element of D."""
        terms = self.terms(place)
        while len(terms) > 1:
            one, other = (terms.pop(int(self._random.integers(len(terms)))) for _ in range(2))
            terms.append(self._round(added(one, other)))
        return float(self._to_d(self._round(terms[0]))) if terms else 0.0
