"""The rules of tensor maps and of copies with them, over plain numbers (CUDA Driver API; PTX ISA 5.5)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.model import TensorMapRule, formula

#: The numbers that rules read: every rule, and of each kind of dimension.
NAMES = {
    "": (
        "rank",
        "bits",
        "padded",
        "float",
        "unit",
        "swizzle",
        "span",
        "fill",
        "address",
        "channels",
        "pixels",
        "limit",
        "wide",
        "halo",
        "size",
        "destination",
        "store",
        "load",
        "largest_box",
        "padded_box",
        "alignment",
    ),
    "dimension": ("i", "shape", "box", "step", "at"),
    "stride": ("i", "stride"),
    "pixel": ("i", "shape", "lower", "upper", "at", "offset"),
}
#: The numbers that are never 0, so that rules may divide by them.
POSITIVE = ("bits", "largest_box", "padded_box", "alignment")
#: The name in rules of one entry of an argument that is a list.
ONE = {"strides": "stride", "element_strides": "step", "offsets": "offset"}
#: A nearest value is sought so far from the present one, and then from the bounds of the rules.
_FAR = 1024


class Broken(NamedTuple):
    """A rule that an argument breaks.

    Attributes:
        rule: the rule.
        entry: the dimension or stride; None where the rule is about the whole argument.
        place: the argument and the dimension: ``"box[0]"``.
        value: the argument's value there.
        text: the fault.
    """

    rule: TensorMapRule
    entry: int | None
    place: str
    value: int | str
    text: str
    fits: Callable[[int], bool] | None  # whether a value in this one's place breaks no rule of the argument; None for a whole list
    bounds: Collection[int] = ()  # with which the rules compare a value here

    @property
    def nearest(self) -> int | None:
        """The nearest value in this place that breaks no rule of the argument; None where there is none."""
        if self.fits is None or not isinstance(self.value, int):
            return None
        value = self.value
        starts = (value, *sorted(self.bounds, key=lambda bound: abs(bound - value)))
        near = (start + sign * distance for start in starts for distance in range(_FAR + 1) for sign in (-1, 1))
        return next(filter(self.fits, near), None)

    def __str__(self) -> str:
        return _sentence([self])


def _sentence(faults: Sequence[Broken]) -> str:
    """The faults of one place, and the nearest value there that breaks no rule."""
    first = faults[0]
    text = f"{first.place} = {first.value}: {'; '.join(each.text for each in faults)}"
    return text if first.nearest is None else f"{text}; the nearest legal one is {first.nearest}"


class IllegalBoxError(ValueError):
    """A tensor map that the driver refuses, or a copy that traps.

    Attributes:
        broken: the rules that it breaks.
        nearest: the nearest legal extents of the box, of im2col channels and pixels; empty where they are legal, or none are near.
    """

    def __init__(self, broken: Sequence[Broken], nearest: Sequence[int] = ()) -> None:
        super().__init__(broken, nearest)
        self.broken = tuple(broken)
        self.nearest = tuple(nearest)

    def __str__(self) -> str:
        of_place: dict[str, list[Broken]] = {}
        for each in self.broken:
            of_place.setdefault(each.place, []).append(each)
        text = "; ".join(map(_sentence, of_place.values()))
        if not self.nearest or (len(of_place) == 1 and self.broken[0].nearest is not None):
            return text
        extents = "channels and pixels are" if {"channels", "pixels"} & of_place.keys() else "box is"
        return f"{text}; the nearest legal {extents} {'x'.join(map(str, self.nearest))}"


def broken(
    rules: Sequence[TensorMapRule],
    arguments: Sequence[str],
    facts: Mapping[str, int],
    lists: Mapping[str, Mapping[str, Sequence[int]]],
    shown: Mapping[str, str],
) -> list[Broken]:
    """The rules about some arguments that are broken.

    Args:
        rules: the rules of the mode.
        arguments: the arguments to judge.
        facts: the numbers that every rule reads.
        lists: the numbers of each dimension, of each stride and of each dimension of pixels, under the names of :data:`NAMES`.
        shown: the values of arguments that are names or lists.
    """
    found = []
    for rule in rules:
        if rule.argument not in arguments:
            continue
        about = [each for each in rules if (each.argument, each.each) == (rule.argument, rule.each)]
        for index, own in _dimensions(rule, lists):
            names = {**facts, **own}
            if not _holds(rule, names):
                found.append(_explained(rule, about, index, names, shown))
    return found


def _dimensions(rule: TensorMapRule, lists: Mapping[str, Mapping[str, Sequence[int]]]) -> Iterator[tuple[int | None, dict[str, int]]]:
    """The dimensions about which a rule is, each with its numbers."""
    if not rule.each:
        yield None, {}
        return
    columns = {name: values for name, values in lists[rule.each].items() if values}
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        yield index, {"i": index, **dict(zip(columns, values, strict=True))}


def _explained(
    rule: TensorMapRule, about: Sequence[TensorMapRule], index: int | None, names: Mapping[str, int], shown: Mapping[str, str]
) -> Broken:
    """A broken rule, with the value of its argument."""
    text = rule.text.format_map(names)
    if index is None and rule.argument in shown:
        return Broken(rule, None, rule.argument, shown[rule.argument], text, None)
    name = rule.argument if index is None else ONE.get(rule.argument, rule.argument)
    place = rule.argument if index is None else f"{rule.argument}[{index}]"
    longer = name == "stride"  # with a shorter one, rows would overlap

    def fits(value: int) -> bool:
        return (value > names[name] or not longer) and all(_holds(each, {**names, name: value}) for each in about)

    return Broken(rule, index, place, names[name], text, fits, _bounds(about, name, names))


def _bounds(rules: Sequence[TensorMapRule], name: str, names: Mapping[str, int]) -> set[int]:
    """The values of the terms without this name that rules compare with others."""
    compared = (node for rule in rules for node in ast.walk(formula.parse(rule.need)) if isinstance(node, ast.Compare))
    terms = (term for node in compared for term in (node.left, *node.comparators))
    bounds: Iterator[Any] = (formula.evaluate(term, names) for term in terms if name not in formula.names(term))
    return {int(bound) for bound in bounds}


def _holds(rule: TensorMapRule, names: Mapping[str, int]) -> bool:
    """Tell whether a rule is obeyed or does not apply."""
    if rule.when and not formula.evaluate(formula.parse(rule.when), names):
        return True
    return bool(formula.evaluate(formula.parse(rule.need), names))
