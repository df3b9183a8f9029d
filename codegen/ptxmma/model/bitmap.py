"""Layouts as bit maps.

Every layout of registers is a map of bits: each bit of the inputs (lane, element …) becomes one bit of one output (row, column …).  The
map is the layout: its inverse, the code in every language and the layout algebra of other projects all follow from it.  Works on integers
and on whatever array type has ``>> << & |``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.model.digit_map import NOWHERE, Digit, DigitMap, LayoutMap


class NotLinearError(ValueError):
    """A function is not a permutation of bits; the message names the first point where it fails.

    ``output`` is the output whose value is out of range there; ``""`` where no single one is wrong.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Run(NamedTuple):
    """``width`` consecutive bits of input ``name`` from bit ``source`` on, placed at bit ``target`` of an output."""

    name: str
    source: int
    width: int
    target: int


class BitMap(LayoutMap, frozen=True, forbid_unknown_fields=True, dict=True):
    """A map of bits: the case of a :class:`~ptxmma.model.digit_map.DigitMap` that all sizes are 2, and the fast one.

    ``inputs`` and ``outputs`` are named fields with their widths in bits; ``bits`` says, for each input, which bit of which
    output each of its bits becomes, least significant first: ``{"lane": [["col", 1], ["col", 2], ["row", 0], …]}``; a bit of ``["", 0]``
    leads nowhere.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    bits: dict[str, tuple[tuple[str, int], ...]]

    @classmethod
    def of(cls, digits: DigitMap) -> BitMap:
        """The bit map of digits whose sizes and weights are powers of two.

        Raises:
            NotDigitsError: they are not, or the map does not begin at 0.
        """
        names = list(digits.coordinates)
        bits: dict[str, tuple[tuple[str, int], ...]] = {}
        for axis, bases in digits.bases().items():
            moved = [next(((names[at], number) for at, number in enumerate(base) if number), (NOWHERE, 1)) for base in bases]
            bits[axis] = tuple((name, number.bit_length() - 1) for name, number in moved)
        return cls(_widths(digits.axes), _widths(digits.coordinates), bits)

    def to_digits(self) -> DigitMap:
        """The same map in the fewest digits."""
        return self._digits

    @functools.cached_property
    def _digits(self) -> DigitMap:
        digits = [
            Digit(axis, 1 << bit, 2, output, 1 << place if output != NOWHERE else 0)
            for axis, targets in self.bits.items()
            for bit, (output, place) in enumerate(targets)
        ]
        axes, coordinates = ({name: 1 << width for name, width in widths.items()} for widths in (self.inputs, self.outputs))
        return DigitMap(axes, coordinates, tuple(digits)).coalesce()

    def inverse(self) -> BitMap:
        """The map from outputs back to inputs."""
        return self._inverse

    @functools.cached_property
    def _inverse(self) -> BitMap:
        back: dict[str, list[tuple[str, int]]] = {name: [(NOWHERE, 0)] * width for name, width in self.outputs.items()}
        for name, targets in self.bits.items():
            for bit, (output, position) in enumerate(targets):
                if output != NOWHERE:
                    back[output][position] = (name, bit)
        return BitMap(dict(self.outputs), dict(self.inputs), {name: tuple(bits) for name, bits in back.items()})

    def runs(self, output: str) -> list[Run]:
        """The bits of one output grouped into runs of consecutive bits of one input, lowest first."""
        runs: list[Run] = []
        for place, (name, bit) in enumerate(self.inverse().bits[output]):
            last = runs[-1] if runs else None
            if last and (last.name, last.source + last.width, last.target + last.width) == (name, bit, place):
                runs[-1] = last._replace(width=last.width + 1)
            elif name != NOWHERE:
                runs.append(Run(name, bit, 1, place))
        return runs

    def apply(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for the given inputs (integers or arrays)."""
        zero: Any = next(iter(point.values())) & 0  # a zero of the callers' own kind: an array where they pass arrays
        results = {}
        for output, steps in self._steps:
            result = zero
            for name, source, mask, target in steps:
                result = result | ((point[name] >> source & mask) << target)
            results[output] = result
        return results

    @functools.cached_property
    def _steps(self) -> list[tuple[str, list[tuple[str, int, int, int]]]]:
        """The steps of :meth:`apply` for each output: ``(input, lowest bit, mask, place)`` for each run; computed once."""
        return [
            (output, [(run.name, run.source, (1 << run.width) - 1, run.target) for run in self.runs(output)]) for output in self.outputs
        ]

    def evaluate(self, points: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
        """:meth:`apply` on plain lists, one entry per point."""
        count = min(map(len, points.values()), default=0)
        results = {}
        for output in self.outputs:
            values = [0] * count
            for name, source, width, target in self.runs(output):
                mask = (1 << width) - 1
                values = [value | (x >> source & mask) << target for value, x in zip(values, points[name], strict=True)]
            results[output] = values
        return results


def _widths(sizes: Mapping[str, int]) -> dict[str, int]:
    """The bits that count up to each size."""
    return {name: (size - 1).bit_length() for name, size in sizes.items()}


Points = Mapping[str, list[int]]


def domain(inputs: Mapping[str, int]) -> dict[str, list[int]]:
    """Every point of a domain, as one list per input; the first input runs fastest."""
    columns: dict[str, list[int]] = {}
    total = 1 << sum(inputs.values())
    below = 0
    for name, width in inputs.items():
        columns[name] = [point >> below & (1 << width) - 1 for point in range(total)]
        below += width
    return columns


#: Takes one list per input and returns one list per output.
Function = Callable[[Points], Mapping[str, Sequence[int]]]


def at_bits(inputs: Mapping[str, int], outputs: Mapping[str, int], function: Function) -> BitMap | None:
    """The bit map that agrees with ``function`` at each single bit of the inputs, and at 0; None where a bit moves no bit, or several.

    Only :func:`linear` knows whether they agree elsewhere.
    """
    owners = [(name, bit) for name, width in inputs.items() for bit in range(width)]
    values = function({name: [0, *(1 << bit if owner == name else 0 for owner, bit in owners)] for name in inputs})
    bits: dict[str, list[tuple[str, int]]] = {name: [] for name in inputs}
    for index, (name, _) in enumerate(owners, 1):
        moved = [(output, value.bit_length() - 1) for output in outputs if (value := values[output][index])]
        if len(moved) != 1 or values[moved[0][0]][index] != 1 << moved[0][1]:
            return None
        bits[name] += moved
    reached = {place for moved in bits.values() for place in moved}
    expected = {(output, bit) for output, width in outputs.items() for bit in range(width)}
    if reached != expected or len(owners) != len(expected) or any(values[output][0] for output in outputs):
        return None
    return BitMap(dict(inputs), dict(outputs), {name: tuple(moved) for name, moved in bits.items()})


def linear(inputs: Mapping[str, int], outputs: Mapping[str, int], function: Function) -> BitMap:
    """The bit map of ``function``, proven equal to it over the whole domain.

    Raises:
        NotLinearError: a value outside its output's range, a point reached twice, or no permutation of bits at all.
    """
    points = domain(inputs)
    values = function(points)

    def at(index: int) -> str:
        return ", ".join(f"{name}={column[index]}" for name, column in points.items())

    for name, width in outputs.items():
        if min(values[name]) < 0 or max(values[name]) >= 1 << width:
            index, value = next((i, value) for i, value in enumerate(values[name]) if not 0 <= value < 1 << width)
            raise NotLinearError(f"{name} = {value} at {at(index)} is outside 0..{(1 << width) - 1}", name)
    places = _packed(outputs, values)
    if len(set(places)) != len(places):
        seen: dict[int, int] = {}
        index = next(i for i, place in enumerate(places) if seen.setdefault(place, i) != i)
        where = ", ".join(f"{name}={values[name][index]}" for name in outputs)
        raise NotLinearError(f"{where} is owned twice: by {at(seen[places[index]])} and by {at(index)}")
    if missing := (1 << sum(outputs.values())) - len(places):
        raise NotLinearError(f"{missing} places of the matrix are owned by nobody")

    bits: dict[str, tuple[tuple[str, int], ...]] = {}
    basis: list[int] = []
    for name, width in inputs.items():
        targets: list[tuple[str, int]] = []
        for _ in range(width):
            index = 1 << len(basis)
            moved = [(output, values[output][index]) for output in outputs if values[output][index]]
            if len(moved) != 1 or moved[0][1] & (moved[0][1] - 1):
                raise NotLinearError(f"not a permutation of bits: {at(index)} gives {dict(moved)}")
            targets.append((moved[0][0], moved[0][1].bit_length() - 1))
            basis.append(places[index])
        bits[name] = tuple(targets)
    expected = [0]
    for place in basis:
        expected += [below | place for below in expected]
    if expected != places:
        index = next(i for i, (ours, theirs) in enumerate(zip(expected, places, strict=True)) if ours != theirs)
        where = ", ".join(f"{name}={values[name][index]}" for name in outputs)
        raise NotLinearError(f"not a permutation of bits: {at(index)} gives {where}, which its bits do not add up to")
    return BitMap(dict(inputs), dict(outputs), bits)


def _packed(fields: Mapping[str, int], values: Mapping[str, Sequence[int]]) -> list[int]:
    """The fields of every point side by side in one integer."""
    packed = [0] * len(next(iter(values.values())))
    below = 0
    for name, width in fields.items():
        packed = [place | value << below for place, value in zip(packed, values[name], strict=True)]
        below += width
    return packed
