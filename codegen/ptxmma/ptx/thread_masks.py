"""Masks of threads in which predicates hold, where a function computes them from one special register, or parameter, and constants."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable

from ptxmma.ptx import thread_values
from ptxmma.ptx.writes import Writes, named_in

#: A mask of all threads.
ALL_THREADS = -1
#: Instructions between a register and what it is computed from; beyond, it is not followed.
_DEEPEST = 24
_DIGITS = bytes.maketrans(b"\0\1", b"01")


class ThreadMasks:
    """The masks of a function's predicates.

    Args:
        registers: the function's registers.
        register: the special register, ``b"%tid.x"``; or a parameter as a load names it, ``b"[count]"``, for masks of its numbers.
        count: its values are the numbers below this one, in as many threads or thread blocks.
        is_uniform: whether all threads see the same of a predicate that is not known; then the first thread of each warp counts as the one
            that ``elect.sync`` elects.
        like: masks of the same function by the same register, of which the numbers are taken that it knows.

    Attributes:
        count: as given.
        everyone: a mask of all threads, or thread blocks, that there are.
    """

    def __init__(
        self,
        registers: Writes,
        register: bytes,
        count: int,
        is_uniform: Callable[[bytes], bool] | None = None,
        like: ThreadMasks | None = None,
    ) -> None:
        self._registers, self._register, self.count, self._is_uniform = registers, register, count, is_uniform
        self.everyone = (1 << count) - 1
        self._like, self._numbers = like, dict[bytes, list[int] | None]()
        self._held = functools.cache(self._not_zero)
        self._masks: dict[tuple[bytes, int | None], int] = {}  # by the predicate and the mask of what is not known

    def agreeing(self, is_uniform: Callable[[bytes], bool]) -> ThreadMasks:
        """Masks of the same numbers, where all threads see the same of other predicates that are not known."""
        made = copy.copy(self)
        made._is_uniform, made._masks = is_uniform, {}
        return made

    def threads(self, predicate: bytes) -> int:
        """A mask of the threads in which a predicate, ``b"!%p1"``, may hold."""
        return self._mask(predicate, ALL_THREADS)

    def surely(self, predicate: bytes) -> int:
        """A mask of the threads in which a predicate holds, whatever is not known of it."""
        return self._mask(predicate, 0)

    def together(self, predicate: bytes) -> int:
        """A mask of the threads in which a predicate holds in one and the same launch."""
        return self._mask(predicate, None)

    def _mask(self, predicate: bytes, unknown: int | None) -> int:
        """A mask of the threads in which a predicate holds, if one that is not known does in the threads of another mask.

        Without that mask, it does in all threads if they all see the same, and otherwise in none.
        """
        if not predicate:
            return ALL_THREADS
        if (predicate, unknown) not in self._masks:
            self._masks[predicate, unknown] = unknown or 0  # for a predicate that is computed from itself
            self._masks[predicate, unknown] = self._joint(predicate.lstrip(b"!"), unknown, holds=not predicate.startswith(b"!"))
        return self._masks[predicate, unknown]

    def _joint(self, name: bytes, unknown: int | None, *, holds: bool) -> int:
        held = self._held(name)
        if held is not None:
            return held if holds else held ^ self.everyone
        writes = self._registers.writes(name)
        opcode = writes[0][0] if len(writes) == 1 else b""
        if opcode in (b"and.pred", b"or.pred", b"not.pred"):
            plain = holds != (opcode == b"not.pred")
            masks = [self._mask(word if plain else b"!" + word, unknown) for word in named_in(writes[0][2])]
            return functools.reduce(operator.and_ if (opcode == b"and.pred") == holds else operator.or_, masks)
        if unknown is not None:
            return unknown
        return ALL_THREADS if self._is_uniform is not None and self._is_uniform(name) else 0

    def _not_zero(self, name: bytes) -> int | None:
        """A mask of the threads in which a register is not 0; None where its numbers are not known."""
        numbers = self._numbers_of(name)
        if numbers is None:
            return None
        if len(numbers) == 1:
            return self.everyone if numbers[0] else 0
        return int(bytes(map(bool, reversed(numbers))).translate(_DIGITS), 2)

    def numbers_of(self, name: bytes) -> list[int] | None:
        """The numbers of a register, or of a constant, in the threads; None where they are not known."""
        numbers = self._numbers_of(name)
        return numbers and numbers * (self.count // len(numbers))

    def _numbers_of(self, name: bytes, depth: int = 0) -> list[int] | None:
        """The same; a number that is the same in all threads stands once."""
        if name not in self._numbers:
            self._numbers[name] = None  # for a value that is computed from itself
            known = self._like._numbers_of(name) if self._like is not None else None
            self._numbers[name] = self._computed(name, depth) if known is None else known
        return self._numbers[name]

    def _computed(self, name: bytes, depth: int) -> list[int] | None:
        writes = self._registers.writes(name)
        if not writes:
            return [*range(self.count)] if name == self._register else thread_values.constant(name)
        if len(writes) > 1 or depth >= _DEEPEST:
            return None
        opcode, place, rest, offset = writes[0]
        if not place:
            words = (word.strip() for word in rest.split(b","))
            names = (self._registers.constant_before(word, offset) if len(self._registers.writes(word)) > 1 else word for word in words)
            operands = [self._numbers_of(each, depth + 1) for each in names]
            # A number that a warp shuffles is the same in its lanes; where the masks are of lanes, it need not be.
            same = opcode.startswith(b"ld.param.") or (opcode.startswith(b"shfl.") and self._register != thread_values.INDEX)
            return operands[0] if same else thread_values.result(opcode, operands)
        elected = self._is_uniform is not None and opcode == b"elect.sync" and self._register == thread_values.INDEX
        return [int(number % thread_values.WARP == 0) for number in range(self.count)] if elected else None
