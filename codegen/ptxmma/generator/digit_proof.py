"""Proof that the formulas of a layout, which people read, say the same as its digits, over the whole domain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ptxmma.model import formula
from ptxmma.model.digit_map import DigitMap

Values = npt.NDArray[np.int64]


def difference(digits: DigitMap, at: Mapping[str, str], back: Mapping[str, str], numbers: Mapping[str, int]) -> tuple[str, str] | None:
    """The first formula that differs from the digits at some place; None where all say the same and the digits lead back.

    Args:
        digits: the layout.
        at: a formula for each coordinate, over the axes; a coordinate without one is 0.
        back: a formula for each axis, over the coordinates.
        numbers: the other numbers that the formulas read.

    Returns:
        The coordinate, ``""`` for a formula back, and the text of the formula.
    """
    grid = np.meshgrid(*(np.arange(size, dtype=np.int64) for size in digits.axes.values()), indexing="ij")
    axes: dict[str, Values] = {axis: values.reshape(-1) for axis, values in zip(digits.axes, grid, strict=True)}
    count = grid[0].size
    there = {name: np.broadcast_to(values, count) for name, values in digits.apply(axes).items()}
    for name in digits.coordinates:
        text = at.get(name, "0")
        if (evaluated(text, {**numbers, **axes}, count) != there[name]).any():
            return name, text
    read = digits.read(there)
    for axis, values in axes.items():
        text = back.get(axis, axis)
        if (read.point[axis] != values).any() or (axis in back and (evaluated(text, {**numbers, **there}, count) != values).any()):
            return "", text
    return None


def evaluated(text: str, known: Mapping[str, int | Values], count: int) -> Values:
    """The values of a formula at so many places."""
    return np.broadcast_to(np.asarray(formula.evaluate(formula.parse(text), known), dtype=np.int64), count)
