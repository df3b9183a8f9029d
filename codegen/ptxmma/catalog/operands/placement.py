"""Data that lies in a space, and the place of every part of it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ptxmma.arguments import Numbers, in_range, integer


class Placement:
    """Data that lies in a space: elements, scale factors or sparsity metadata, in registers or in tensor memory.

    The :attr:`axes` name a part of the data, as a row and a column name an element.  The coordinates of the space name the place of
    that part: ``lane`` and ``i`` of registers, ``lane`` and ``column`` of tensor memory.  A subclass has the map between them.

    Attributes:
        sizes: the size of each axis, also of those that tell copies apart: ``{"row": 16, "col": 8}``.
    """

    __slots__ = ()
    sizes: dict[str, int]

    @property
    def name(self) -> str:
        """The name that errors have: of the operand, or of its layout."""
        raise NotImplementedError

    @functools.cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes that name a part, in order: ``("row", "col")``; empty for an operand without a layout."""
        return tuple(axis for axis in self.sizes if axis not in self.apart and axis not in self.selections)

    @property
    def apart(self) -> tuple[str, ...]:
        """The axes that tell copies or independent products apart; each is 0 where it is not named."""
        return ()

    @property
    def selections(self) -> Mapping[str, Sequence[int]]:
        """The legal values of each number by which an instruction selects its part: ``{"byte_id": (0, 2)}``; the first is the default."""
        return {}

    def locate(self, *coordinates: Numbers, check: bool = True, **named: Numbers) -> Any:
        """Return the place of a part: ``locate(9, 3)``, ``locate(row=9, col=3)``.

        The coordinates are the numbers of :attr:`axes`, in order or by name.  They are integers or arrays; ``check=False`` leaves the range
        of arrays unchecked.  An axis of :attr:`apart` is 0, and one of :attr:`selections` its first legal value, unless it is named.

        Raises:
            TypeError: a number is neither an integer nor an array, missing, unknown or given twice.
            ValueError: a number is out of range or not legal.
        """
        return self._at(self._point(coordinates, named, check=check))

    def places(self, *coordinates: Numbers, **named: Numbers) -> list[Any]:
        """Return the place of every copy of a part, ascending.

        Raises:
            TypeError, ValueError: as :meth:`locate`.
        """
        return sorted(self._copies(coordinates, named))

    def _copies(self, coordinates: Sequence[Any], named: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the place of every copy, in the order of their numbers."""
        point = self._point(coordinates, named)
        given = {*(*self.axes, *self.apart)[: len(coordinates)], *named}
        open_axes = [axis for axis in self.apart if axis not in given]
        for numbers in itertools.product(*(range(self.sizes[axis]) for axis in open_axes)):
            yield self._at(point | dict(zip(open_axes, numbers, strict=True)))

    def _require(self) -> None:
        """Check that there is a layout; an operand may have none.

        Raises:
            ValueError: there is none.
        """

    def _at(self, point: Mapping[str, Any]) -> Any:
        """Return the place of a point: a number for each axis and each selection."""
        raise NotImplementedError

    def _point(self, coordinates: Sequence[Any], named: Mapping[str, Any], *, check: bool = True) -> dict[str, Any]:
        """Return the number of each axis and each selection, checked."""
        self._require()
        axes = (*self.axes, *self.apart)
        given = {**dict(zip(axes, coordinates, strict=False)), **named}
        wrong = [name for name in named if name in axes[: len(coordinates)] or (name not in axes and name not in self.selections)]
        missing = [axis for axis in self.axes if axis not in given]
        if wrong or missing or len(coordinates) > len(axes):
            if wrong:
                fault = f"{', '.join(wrong)} does not fit"
            elif missing:
                fault = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            else:
                fault = f"{len(coordinates)} coordinates were given"
            raise TypeError(f"{self.name}: {fault}; the coordinates are {', '.join((*axes, *self.selections))}")
        point = {axis: in_range(axis, given.get(axis, 0), self.sizes[axis], check=check) for axis in axes}
        return point | self._selected({name: given[name] for name in self.selections if name in given})

    def _selected(self, given: Mapping[str, Any]) -> dict[str, int]:
        """Return the value of each selection, checked.

        Raises:
            TypeError: an unknown selection, or a value that is not an integer.
            ValueError: a value that is not legal.
        """
        if unknown := given.keys() - self.selections.keys():
            raise TypeError(
                f"{self.name}: {', '.join(sorted(unknown))} does not fit; its selections: {', '.join(self.selections) or 'none'}"
            )
        chosen = {}
        for name, legal in self.selections.items():
            chosen[name] = integer(name, given.get(name, legal[0]))
            if chosen[name] not in legal:
                raise ValueError(f"{name} = {chosen[name]} is not legal: {', '.join(map(str, legal))}")
        return chosen
