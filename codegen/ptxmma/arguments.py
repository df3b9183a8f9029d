"""Arguments, checked, and as messages quote them."""

from __future__ import annotations

import operator
from typing import Any


def in_range(name: str, value: Any, limit: int) -> Any:
    """A scalar, checked, as ``int``; arrays are taken as they are, since a check would cost more than the answer.

    Raises:
        TypeError: neither an integer nor an array.
        ValueError: a scalar outside 0..limit-1.
    """
    if type(value) is not int:
        if getattr(value, "shape", ()) != ():
            return value
        value = integer(name, value, "an integer or an array of integers")
    if not 0 <= value < limit:
        raise ValueError(f"{name} = {value} is out of range: 0..{limit - 1}")
    return value


def integer(name: str, value: Any, wanted: str = "one integer") -> int:
    """Any kind of integer (a NumPy scalar too) as ``int``; ``TypeError`` for all else."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}") from None


def shortened(text: str, most: int = 200) -> str:
    """A text as messages quote it: cut after ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
