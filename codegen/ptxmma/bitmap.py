"""Layouts as bit maps.

Every layout of these instructions is a permutation of bits: each bit of the inputs (lane, element …) becomes one bit of one
output (row, column …).  The map is the layout: its inverse, the code in every language and the layout algebra of other
projects all follow from it.  Works on integers and on whatever array type has ``>> << & |``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec


class NotLinearError(ValueError):
    """A function that is not a permutation of bits; the message names the first point where it fails."""


class Run(NamedTuple):
    """``width`` consecutive bits of input ``name`` from bit ``source`` on, placed at bit ``target`` of an output."""

    name: str
    source: int
    width: int
    target: int


class BitMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A permutation of bits.

    ``inputs`` and ``outputs`` are named fields with their widths in bits; ``bits`` says, for each input, which bit of which
    output each of its bits becomes, least significant first: ``{"lane": [["col", 1], ["col", 2], ["row", 0], …]}``.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    bits: dict[str, tuple[tuple[str, int], ...]]

    def inverse(self) -> BitMap:
        """The map from outputs back to inputs."""
        back: dict[str, list[tuple[str, int]]] = {name: [("", 0)] * width for name, width in self.outputs.items()}
        for name, targets in self.bits.items():
            for bit, (output, position) in enumerate(targets):
                back[output][position] = (name, bit)
        return BitMap(dict(self.outputs), dict(self.inputs), {name: tuple(bits) for name, bits in back.items()})

    def runs(self, output: str) -> list[Run]:
        """The bits of one output grouped into runs of consecutive bits of one input, lowest first."""
        runs: list[Run] = []
        for name, bit in self.inverse().bits[output]:
            last = runs[-1] if runs else None
            if last and last.name == name and last.source + last.width == bit:
                runs[-1] = last._replace(width=last.width + 1)
            else:
                runs.append(Run(name, bit, 1, sum(run.width for run in runs)))
        return runs

    def apply(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for the given inputs (integers or arrays)."""
        return {output: self._gather(output, values) for output in self.outputs}

    def _gather(self, output: str, values: Mapping[str, Any]) -> Any:
        result: Any = 0
        for run in self.runs(output):
            result = result | ((values[run.name] >> run.source & (1 << run.width) - 1) << run.target)
        return result


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


def linear(
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    function: Callable[[Points], Mapping[str, Sequence[int]]],
) -> BitMap:
    """The bit map of ``function``, proven equal to it over the whole domain.

    ``function`` takes one list per input and returns one list per output.

    Raises:
        NotLinearError: a value outside its output's range, a point reached twice, or no permutation of bits at all.
    """
    points = domain(inputs)
    values = function(points)
    total = 1 << sum(inputs.values())

    def at(index: int) -> str:
        return ", ".join(f"{name}={column[index]}" for name, column in points.items())

    for name, width in outputs.items():
        for index, value in enumerate(values[name]):
            if not 0 <= value < 1 << width:
                raise NotLinearError(f"{name} = {value} at {at(index)} is outside 0..{(1 << width) - 1}")
    seen: dict[tuple[int, ...], int] = {}
    for index, place in enumerate(zip(*(values[name] for name in outputs), strict=True)):
        if place in seen:
            where = ", ".join(f"{name}={value}" for name, value in zip(outputs, place, strict=True))
            raise NotLinearError(f"{where} is owned twice: by {at(seen[place])} and by {at(index)}")
        seen[place] = index
    if len(seen) != 1 << sum(outputs.values()):
        raise NotLinearError(f"{(1 << sum(outputs.values())) - len(seen)} places of the matrix are owned by nobody")

    bits: dict[str, tuple[tuple[str, int], ...]] = {}
    below = 0
    for name, width in inputs.items():
        targets: list[tuple[str, int]] = []
        for bit in range(width):
            index = 1 << (below + bit)
            place = [(output, values[output][index]) for output in outputs if values[output][index]]
            if len(place) != 1 or place[0][1] & (place[0][1] - 1):
                raise NotLinearError(f"not a permutation of bits: {at(index)} gives {dict(place)}")
            targets.append((place[0][0], place[0][1].bit_length() - 1))
        bits[name] = tuple(targets)
        below += width
    result = BitMap(dict(inputs), dict(outputs), bits)
    image = result.apply({name: _Column(column) for name, column in points.items()})
    for name in outputs:
        column = image[name].values if isinstance(image[name], _Column) else [0] * total
        for index, (ours, theirs) in enumerate(zip(column, values[name], strict=True)):
            if ours != theirs:
                raise NotLinearError(f"not a permutation of bits: {name} = {theirs} at {at(index)}, where its bits give {ours}")
    return result


class _Column:
    """A list of integers with the four operators that :meth:`BitMap.apply` needs."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def __rshift__(self, count: int) -> _Column:
        return _Column([value >> count for value in self.values])

    def __lshift__(self, count: int) -> _Column:
        return _Column([value << count for value in self.values])

    def __and__(self, mask: int) -> _Column:
        return _Column([value & mask for value in self.values])

    def __or__(self, other: _Column) -> _Column:
        return _Column([a | b for a, b in zip(self.values, other.values, strict=True)])

    def __ror__(self, other: int) -> _Column:
        assert other == 0
        return self
