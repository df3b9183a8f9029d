"""Layouts as digits: the general map from named axes to named coordinates, and the algebra of such maps.

An axis is split into digits, as CuTe splits a mode: ``row = 64 * high + low``.  Each digit moves one coordinate by its weight, and so the
place of everything is a sum.  ``row:(64,2):(1@lane,1@cta)`` says that 64 rows follow each other by lanes, and that the next 64 are in the
other CTA.  A :class:`~ptxmma.model.bitmap.BitMap` is the case that all sizes are 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from ptxmma.model import formula
from ptxmma.model.digits import NotDigitsError, Summand
from ptxmma.model.formula import FormulaError

#: The coordinate of a digit that leads nowhere: it numbers copies, or in an inverse the numbers between two digits.
NOWHERE = ""


class Digit(NamedTuple):
    """A digit of an axis: ``number // step % size`` moves a coordinate by ``weight`` each."""

    axis: str
    step: int
    size: int
    coordinate: str
    weight: int

    @property
    def end(self) -> int:
        """The step of the next digit of the axis."""
        return self.step * self.size


class Reading(NamedTuple):
    """The inverse of a :class:`DigitMap` at a place.

    Attributes:
        point: the number on each axis.
        rest: the distance of each coordinate from the place of that point: 0 at the place itself.
        fits: true where there is such a point.
    """

    point: dict[str, Any]
    rest: dict[str, Any]
    fits: Any


class LayoutMap(msgspec.Struct, frozen=True):
    """A map from numbers on named axes to coordinates, and the operations that all such maps have."""

    def to_digits(self) -> DigitMap:
        """The same map as digits."""
        raise NotImplementedError

    def apply(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The coordinates of a point on the axes: integers, or arrays that are wide enough."""
        raise NotImplementedError

    def inverse(self) -> LayoutMap:
        """The map from the coordinates back to the axes."""
        raise NotImplementedError

    def compose(self, outer: LayoutMap) -> DigitMap:
        """The map ``outer(self(point))``.

        Digits are split where the digits of ``outer`` end: ``i:16:1@lane`` and ``lane:(4,8):(1@col,1@row)`` give ``i:(4,4):(1@col,1@row)``.

        Raises:
            NotDigitsError: the coordinates of this map are not the axes of ``outer``, lie outside of them or where nothing is mapped, or
                a sum of two digits carries into the next digit of ``outer``: then the composition is not a map of digits.
        """
        return _composed(self.to_digits().coalesce(), outer.to_digits().coalesce())

    def coalesce(self) -> DigitMap:
        """The same map in the fewest digits."""
        digits = self.to_digits()
        return msgspec.structs.replace(digits, digits=tuple(digit for axis in digits.axes for digit in digits.modes(axis)))

    def difference(self, other: LayoutMap) -> dict[str, int] | None:
        """The first point, the first axis fastest, with other coordinates in ``other``; None where both are the same layout.

        Raises:
            ValueError: the axes of the maps, their sizes or their coordinates are not the same.
        """
        ours, theirs = self.to_digits(), other.to_digits()
        if ours.axes != theirs.axes or ours.coordinates.keys() != theirs.coordinates.keys():
            raise ValueError(f"{ours} and {theirs} do not map the same axes to the same coordinates")
        point = dict.fromkeys(ours.axes, 0)
        # Each axis adds its own part to the place of the origin: the first point that differs does so on one axis.
        for axis, size in ours.axes.items():
            for number in range(size):
                there = point | {axis: number}
                if ours.apply(there) != theirs.apply(there):
                    return there
        return None

    def bases(self, *coordinates: str) -> dict[str, list[list[int]]]:
        """Triton's bases: for each axis what each bit of its number adds to the coordinates, in this order or in their own.

        Raises:
            NotDigitsError: a size, a step or a weight is not a power of two, or the map does not begin at 0.
        """
        digits = self.to_digits()
        if any(digits.origin.values()) or any(digits.first.values()):
            raise NotDigitsError(f"{digits} does not begin at 0; linear layouts do")
        for name, size in digits.axes.items():
            if not _power(size):
                raise NotDigitsError(f"{name} = {size} is not a power of two; linear layouts have no other sizes")
        bases: dict[str, list[list[int]]] = {axis: [] for axis in digits.axes}
        for digit in digits.digits:
            if not _power(digit.size) or (digit.weight and not _power(digit.weight)):
                raise NotDigitsError(
                    f"{digit.axis} moves {digit.coordinate} {digit.size} times by {digit.weight}; linear layouts have powers of two",
                    digit.coordinate,
                )
            for bit in range(digit.size.bit_length() - 1):
                moved = {digit.coordinate: digit.weight << bit}
                bases[digit.axis].append([moved.get(name, 0) for name in coordinates or digits.coordinates])
        return bases

    def linear(self, *coordinates: str) -> DigitMap:
        """The map to a single coordinate, ``index``, that counts through the coordinates: the first, or the first of these, fastest."""
        digits = self.to_digits()
        order, stride, counted = coordinates or digits.coordinates, 1, []
        for name in order:
            counted.append(Digit(name, 1, digits.coordinates[name], "index", stride))
            stride *= digits.coordinates[name]
        sizes = {name: digits.coordinates[name] for name in order}
        return self.compose(DigitMap(sizes, {"index": stride}, tuple(digit for digit in counted if digit.size > 1)))

    def to_cute(self, *axes: str) -> str:
        """CuTe's ``shape:stride``, a mode for each axis, in this order or in their own: ``((16,4),256):((1@lane,32@lane),1@column)``.

        Strides of a map with a single coordinate are plain numbers.
        """
        digits = self.to_digits()
        shape, stride = zip(*map(digits.mode, axes or digits.axes), strict=True)
        return f"({','.join(shape)}):({','.join(stride)})"

    def __str__(self) -> str:
        """The modes of CuTe with the name of each axis: ``row:(16,4):(1@lane,32@lane) col:256:1@column``."""
        digits = self.to_digits()
        return " ".join(f"{axis}:{':'.join(digits.mode(axis))}" for axis in digits.axes)


class DigitMap(LayoutMap, frozen=True, dict=True):
    """A layout with its numbers: everything on the axes has a place of its own.

    Attributes:
        axes: the size of each axis: ``{"row": 128, "col": 24}``.
        coordinates: the size of each coordinate, in whole steps: ``{"cta": 1, "lane": 128, "column": 24, "bit": 1}``.
        digits: the digits of all axes, an axis after the other, the lowest first.
        first: axes that begin at a number other than 0: ``{"block": 2}`` where the instruction descriptor selects the third factor.
        origin: coordinates that begin at a number other than 0.
    """

    axes: dict[str, int]
    coordinates: dict[str, int]
    digits: tuple[Digit, ...]
    first: dict[str, int] = {}
    origin: dict[str, int] = {}

    @classmethod
    def of(cls, split: Sequence[Summand], axes: Mapping[str, int], coordinates: Iterable[str], numbers: Mapping[str, int]) -> DigitMap:
        """The map of terms whose formulas read ``numbers``.

        Args:
            split: the terms.
            axes: the size of each axis.
            coordinates: the names of the coordinates.
            numbers: the values of the names in the formulas.

        Raises:
            NotDigitsError: a formula that cannot be evaluated, or digits that do not tell the numbers of an axis apart, or that
                overlap in a coordinate.
        """

        def value(text: str, coordinate: str) -> int:
            try:
                number = formula.evaluate(formula.parse(text), numbers)
            except FormulaError as error:
                raise NotDigitsError(str(error), coordinate) from None
            assert isinstance(number, int)
            return number

        digits: list[Digit] = []
        origin: dict[str, int] = {}
        first = {term.axis: sum(numbers[name] for name in term.added) for term in split if term.added}
        for term in split:
            if not term.axis:
                origin[term.coordinate] = origin.get(term.coordinate, 0) + value(term.weight, term.coordinate)
                continue
            step = value(term.step, term.coordinate)
            if step < 1:
                raise NotDigitsError(f"{term.axis} is divided by {term.step} = {step}", term.coordinate)
            left = -(-(axes[term.axis] + first.get(term.axis, 0)) // step)
            size = min(left, value(term.size, term.coordinate)) if term.size else left
            digits.append(Digit(term.axis, step, size, term.coordinate, value(term.weight, term.coordinate)))
        return cls.made(axes, coordinates, digits, first, origin)

    @classmethod
    def made(
        cls,
        axes: Mapping[str, int],
        coordinates: Iterable[str],
        digits: Iterable[Digit],
        first: Mapping[str, int] = MappingProxyType({}),
        origin: Mapping[str, int] = MappingProxyType({}),
    ) -> DigitMap:
        """The map of digits, in any order; coordinates reach as far as the digits do.

        Raises:
            NotDigitsError: digits that do not tell the numbers of an axis apart, or that overlap in a coordinate.
        """
        moving = _ordered(axes, (digit for digit in digits if digit.size > 1))
        made = cls(dict(axes), dict.fromkeys(coordinates, 0), moving, dict(first), dict(origin))
        made._check()
        return msgspec.structs.replace(made, coordinates={name: made._whole(name) for name in made.coordinates})

    def _check(self) -> None:
        """Check that the digits of each axis continue each other, and that digits of one coordinate do not overlap."""
        for axis, size in self.axes.items():
            counted = 1
            for digit in self.of_axis(axis):
                if digit.step != counted:
                    message = f"a digit of {axis} begins at {digit.step}, and those below it end at {counted}"
                    raise NotDigitsError(f"two places of the operand share one: {message}", digit.coordinate)
                counted = digit.end
            if counted < size + self.first.get(axis, 0):
                raise NotDigitsError(f"two places of the operand share one: its digits tell {counted} numbers of {axis} apart, not {size}")
        for coordinate in self.coordinates:
            reach = 1
            for digit in self.moving(coordinate):
                if digit.weight < reach:
                    message = f"{digit.axis} moves {coordinate} by {digit.weight}, and the digits below it fill {reach}"
                    raise NotDigitsError(f"two places of the operand share one: {message}", coordinate)
                reach = digit.weight * (digit.size - 1) + reach

    def to_digits(self) -> DigitMap:
        """The map itself."""
        return self

    def of_axis(self, axis: str) -> list[Digit]:
        """The digits of an axis, the lowest first."""
        return [digit for digit in self.digits if digit.axis == axis]

    def moving(self, coordinate: str) -> list[Digit]:
        """The digits that move a coordinate, the smallest weight first."""
        return sorted((digit for digit in self.digits if digit.coordinate == coordinate), key=lambda digit: digit.weight)

    def modes(self, axis: str) -> Iterator[Digit]:
        """The digits of an axis, of which those that continue each other are one."""
        mode: Digit | None = None
        for digit in self.of_axis(axis):
            if mode and digit.coordinate == mode.coordinate and digit.weight == mode.weight * mode.size:
                mode = mode._replace(size=mode.size * digit.size)
                continue
            if mode:
                yield mode
            mode = digit
        if mode:
            yield mode._replace(size=min(mode.size, self._left(mode)))

    def _left(self, digit: Digit) -> int:
        """The values that a digit has as the highest of its axis."""
        return -(-(self.axes[digit.axis] + self.first.get(digit.axis, 0)) // digit.step)

    def apply(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The coordinates of a point on the axes: integers, or arrays that are wide enough."""
        place: dict[str, Any] = {name: self.origin.get(name, 0) for name in self.coordinates}
        for axis, step, size, coordinate, weight in self.digits:
            if coordinate != NOWHERE:
                number = point[axis] + self.first.get(axis, 0)
                place[coordinate] = place[coordinate] + number // step % size * weight
        return place

    def read(self, place: Mapping[str, Any]) -> Reading:
        """The digits read back from the coordinates of a place, integers or arrays; a digit that leads nowhere is 0."""
        point: dict[str, Any] = {axis: -self.first.get(axis, 0) for axis in self.axes}
        rest: dict[str, Any] = {}
        fits: Any = True
        for coordinate in self.coordinates:
            left = place[coordinate] - self.origin.get(coordinate, 0)
            for axis, step, size, _, weight in reversed(self.moving(coordinate)):
                digit = left // weight
                fits = fits & (digit >= 0) & (digit < size)
                left = left - digit * weight
                point[axis] = point[axis] + digit * step
            rest[coordinate] = left
        for axis, size in self.axes.items():
            fits = fits & (point[axis] >= 0) & (point[axis] < size)
        return Reading(point, rest, fits)

    def inverse(self) -> DigitMap:
        """The map from the coordinates back to the axes; a digit that leads nowhere is 0.

        Numbers of a coordinate between the places of two digits are a digit that leads nowhere.  Of a place at which nothing lies,
        :meth:`apply` of the inverse gives some point; :meth:`read` tells the two apart.

        Raises:
            NotDigitsError: a digit does not begin at a multiple of where the one below it ends.
        """
        back: list[Digit] = []
        for coordinate in self.coordinates:
            filled, below = 1, None
            for digit in self.moving(coordinate):
                apart, over = divmod(digit.weight, filled)
                if over:
                    # The values that the digit below lacks are beyond the end of its axis.
                    if below is None or digit.weight % below.weight or below != self.of_axis(below.axis)[-1]:
                        message = f"{digit.axis} moves {coordinate} by {digit.weight}, and the digits below it end at {filled}"
                        raise NotDigitsError(f"the inverse of {self} is not a map of digits: {message}", coordinate)
                    back[-1] = back[-1]._replace(size=digit.weight // below.weight)
                elif apart > 1:
                    back.append(Digit(coordinate, filled, apart, NOWHERE, 0))
                back.append(Digit(coordinate, digit.weight, digit.size, digit.axis, digit.step))
                filled, below = digit.weight * digit.size, digit
        first, origin = ({name: -number for name, number in begin.items()} for begin in (self.origin, self.first))
        return DigitMap(dict(self.coordinates), dict(self.axes), tuple(back), first, origin)

    def rename(self, **names: str) -> DigitMap:
        """The same map with other names of axes and coordinates: ``rename(row="lane")``."""
        axes, coordinates, first, origin = (
            {names.get(name, name): number for name, number in part.items()}
            for part in (self.axes, self.coordinates, self.first, self.origin)
        )
        digits = [
            digit._replace(axis=names.get(digit.axis, digit.axis), coordinate=names.get(digit.coordinate, digit.coordinate))
            for digit in self.digits
        ]
        return DigitMap(axes, coordinates, tuple(digits), first, origin)

    def drop(self, *coordinates: str) -> DigitMap:
        """The map without some coordinates: what differs in them alone are copies."""
        kept = {name: size for name, size in self.coordinates.items() if name not in coordinates}
        digits = tuple(digit if digit.coordinate in kept else digit._replace(coordinate=NOWHERE, weight=0) for digit in self.digits)
        return DigitMap(dict(self.axes), kept, digits, self.first, {name: self.origin[name] for name in kept if name in self.origin})

    def restrict(self, **sizes: int) -> DigitMap:
        """The same map on shorter axes: ``restrict(col=24)``."""
        made = msgspec.structs.replace(self, axes=self.axes | sizes)
        digits = [digit._replace(size=min(digit.size, made._left(digit))) for digit in self.digits]
        made = msgspec.structs.replace(made, digits=tuple(digit for digit in digits if digit.size > 1))
        return msgspec.structs.replace(made, coordinates={name: made._whole(name) for name in made.coordinates})

    def reach(self, coordinate: str) -> int:
        """The largest number of a coordinate."""
        return self.origin.get(coordinate, 0) + sum(self._most(axis, coordinate) for axis in self.axes)

    def _whole(self, coordinate: str) -> int:
        """The size of a coordinate: up to its largest number, in whole steps of the digit with the largest weight."""
        origin, moving = self.origin.get(coordinate, 0), self.moving(coordinate)
        step = moving[-1].weight if moving else 1
        return origin - (origin - self.reach(coordinate) - 1) // step * step

    def _most(self, axis: str, coordinate: str) -> int:
        """The most by which an axis moves a coordinate."""
        digits, first = self.of_axis(axis), self.first.get(axis, 0)
        last = first + self.axes[axis] - 1
        # The last number, or one whose digits below a place are all at their largest.
        numbers = [last, *((last + 1) // digit.step * digit.step - 1 for digit in digits)]
        moved = [[number // step % size * weight for _, step, size, name, weight in digits if name == coordinate] for number in numbers]
        return max(sum(each) for number, each in zip(numbers, moved, strict=True) if number >= first)

    def mode(self, axis: str) -> tuple[str, str]:
        """The shape and the stride of an axis as CuTe writes them."""
        sizes = [str(digit.size) for digit in self.of_axis(axis)] or ["1"]
        weights = [self._stride(digit) for digit in self.of_axis(axis)] or ["0"]
        return (sizes[0], weights[0]) if len(sizes) == 1 else (f"({','.join(sizes)})", f"({','.join(weights)})")

    def _stride(self, digit: Digit) -> str:
        linear = len(self.coordinates) == 1 or digit.coordinate == NOWHERE
        return str(digit.weight) if linear else f"{digit.weight}@{digit.coordinate}"


def _ordered(axes: Iterable[str], digits: Iterable[Digit]) -> tuple[Digit, ...]:
    """Digits an axis after the other, the lowest first."""
    order = {axis: place for place, axis in enumerate(axes)}
    return tuple(sorted(digits, key=lambda digit: (order[digit.axis], digit.step)))


def _power(number: int) -> bool:
    return number > 0 and not number & number - 1


def _composed(inner: DigitMap, outer: DigitMap) -> DigitMap:
    """See :meth:`LayoutMap.compose`; neither map has two digits that continue each other."""
    values = _digit_values(inner, outer)
    digits = []
    for digit in values.digits:
        target = outer.digits[int(digit.coordinate)] if digit.coordinate != NOWHERE else digit
        digits.append(digit._replace(coordinate=target.coordinate, weight=digit.weight * target.weight))
    origin = dict(outer.origin)
    for at, start in values.origin.items():
        target = outer.digits[int(at)]
        if start and target.coordinate != NOWHERE:
            origin[target.coordinate] = origin.get(target.coordinate, 0) + start * target.weight
    made = DigitMap(dict(inner.axes), dict(outer.coordinates), tuple(digits), inner.first, origin).coalesce()
    for name, size in made.coordinates.items():
        if made.reach(name) >= size:
            raise NotDigitsError(f"{inner} does not compose with {outer}: nothing lies at {name} = {made.reach(name)}", name)
    return made


def _digit_values(inner: DigitMap, outer: DigitMap) -> DigitMap:
    """The map to the values of the digits of ``outer``, whose numbers are its coordinates.

    Raises:
        NotDigitsError: it is not a map of digits.
    """
    if inner.coordinates.keys() != outer.axes.keys():
        ours, theirs = (", ".join(names) or "nothing" for names in (inner.coordinates, outer.axes))
        raise NotDigitsError(f"a map to {ours} does not compose with one from {theirs}")
    for name, size in outer.axes.items():
        low, high = inner.origin.get(name, 0), inner.reach(name)
        if low < 0 or low + outer.first.get(name, 0) < 0 or high >= size:
            raise NotDigitsError(f"{name} reaches from {low} to {high}; the outer map takes 0..{size - 1}", name)
    digits = [piece for digit in inner.digits for piece in _pieces(digit, inner, outer)]
    starts = [(inner.origin.get(axis, 0) + outer.first.get(axis, 0)) // step % size for axis, step, size, _, _ in outer.digits]
    sizes = {str(at): digit.size for at, digit in enumerate(outer.digits)}
    values = DigitMap(dict(inner.axes), sizes, tuple(digits), inner.first, dict(zip(sizes, starts, strict=True)))
    for at, (axis, step, size, coordinate, _) in enumerate(outer.digits):
        most = values.reach(str(at))
        if most >= size:
            message = f"its digits add up to {most} in a digit of {size} values from {axis} = {step} on"
            raise NotDigitsError(f"{inner} does not compose with {outer}: {message}", axis)
        if most and coordinate == NOWHERE:
            raise NotDigitsError(f"{inner} does not compose with {outer}: nothing lies at {axis} = {step}", axis)
    return values


def _pieces(digit: Digit, inner: DigitMap, outer: DigitMap) -> Iterator[Digit]:
    """A digit cut where the digits of ``outer`` end, each piece with the number of the digit of ``outer`` that it moves.

    Raises:
        NotDigitsError: a piece begins or ends within a digit of ``outer``.
    """

    def failed(message: str) -> NotDigitsError:
        moved = f"{digit.axis} moves {digit.coordinate} {digit.size} times by {digit.weight}"
        return NotDigitsError(f"{inner} does not compose with {outer}: {moved}, and {message}", digit.coordinate)

    left = digit
    for at, target in enumerate(outer.digits):
        if target.axis != digit.coordinate or left.weight >= target.end:
            continue
        times, over = divmod(left.weight, target.step)
        if over:
            raise failed(f"{target.step}, at which a digit of the outer map begins, does not divide it")
        size, over = divmod(target.size, times)
        if times * (left.size - 1) < target.size:
            yield left._replace(coordinate=str(at), weight=times)
            return
        if over or (left.size % size and digit != inner.of_axis(digit.axis)[-1]):
            raise failed(f"a digit of the outer map ends at {target.end}")
        yield left._replace(size=size, coordinate=str(at), weight=times)
        left = left._replace(step=left.step * size, size=-(-left.size // size), weight=target.end)
    if digit.coordinate != NOWHERE:
        raise failed("the outer map ends before")
    yield digit
