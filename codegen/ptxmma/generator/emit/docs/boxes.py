"""Sets of variants as few products of values, such as "all shapes with either accumulator type"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Member = TypeVar("Member")
#: The values of each dimension.
Values = tuple[tuple[str, ...], ...]


def boxes(points: Iterable[tuple[tuple[str, ...], Member]]) -> list[tuple[Values, list[Member]]]:
    """Cover exactly the given points with few products, in the order of the points, each with its members.

    ``points`` are ``(coordinates, member)``, all with equally many coordinates; several members may share one point.
    """
    products: dict[Values, list[Member]] = {}
    for point, member in points:
        products.setdefault(tuple((coordinate,) for coordinate in point), []).append(member)
    for dimension in range(len(next(iter(products), ()))):
        merged: dict[Values, tuple[tuple[str, ...], list[Member]]] = {}
        for values, members in products.items():
            others = (*values[:dimension], *values[dimension + 1 :])
            along, before = merged.get(others, ((), []))
            merged[others] = (along + values[dimension], before + members)
        products = {(*others[:dimension], along, *others[dimension:]): members for others, (along, members) in merged.items()}
    return list(products.items())
