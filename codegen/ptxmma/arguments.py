"""Checks arguments, and shortens them for messages."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, Protocol, SupportsIndex, TypeAlias


class Shaped(Protocol):
    """An array: whatever has a shape."""

    @property
    def shape(self) -> Any:
        """The number of entries along each of its axes."""


class Offered(Protocol):
    """An array of another library, which offers its memory."""

    def __dlpack__(self) -> Any:
        """Return a capsule with the memory."""


#: An integer or an array of integers: a coordinate, or many.
Numbers: TypeAlias = SupportsIndex | Shaped
#: So many names or fewer are listed in a message, however close one of them is.
_FEW = 8
#: A matrix or registers: an array of any library.
AnyArray: TypeAlias = Shaped | Offered


def in_range(name: str, value: Any, limit: int, *, check: bool = True) -> Any:
    """A scalar as ``int``, or an array (whatever has a shape), checked; ``check=False`` leaves the range of arrays unchecked.

    A NumPy array of integers of 8 or 16 bits comes back with 64: addresses that are computed from it do not fit the narrow type.

    Raises:
        TypeError: neither an integer nor an array.
        ValueError: a scalar, or an element of an array, outside 0..limit-1.
    """
    if type(value) is not int:
        shape = getattr(value, "shape", ())
        if shape != ():
            if check and math.prod(shape):
                low, high = int(value.min()), int(value.max())
                if low < 0 or high >= limit:
                    raise ValueError(f"{name} reaches from {low} to {high}; allowed: 0..{limit - 1}")
            narrow = type(value).__module__ == "numpy" and value.dtype.kind in "iu" and value.dtype.itemsize < 4
            return value.astype("int64") if narrow else value
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


def one_of(what: str, value: str | None, allowed: Iterable[str]) -> None:
    """Check that a name is one of some; None passes.

    Raises:
        ValueError: an unknown name; the message has the closest, or all of them where they are few.
    """
    if value is None:
        return
    names = list(dict.fromkeys(allowed))
    if value in names:
        return
    import difflib  # only when there is something to explain

    close = difflib.get_close_matches(value, names, 3) if len(names) > _FEW else []
    raise ValueError(f"unknown {what} {value!r}; " + (f"closest: {', '.join(close)}" if close else f"known: {', '.join(names)}"))


def shortened(text: str) -> str:
    """A text shortened for messages: cut after 200 characters."""
    return text if len(text) <= 200 else f"{text[:197]}..."
