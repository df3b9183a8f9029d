"""The bits of a descriptor as a peer says them, and as we do."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.descriptors.bits import counted, ones, placed, taken, width_of
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.model import DescriptorField, DescriptorFormat

#: The fields that an image in shared memory shows.
IMAGE = ("leading_byte_offset", "stride_byte_offset", "swizzle")
#: Descriptors of each kind that are compared.
_COUNT = 1000
#: M of descriptors that leave out its lowest bits: of block-scaled products.
_SCALED_M, _M_SHIFT = (128, 256), 4


class Words(NamedTuple):
    """A definition of a peer for a format.

    Attributes:
        peer: ``"CuTe"``, ``"CuTe DSL"``, ``"CuTe 4.8"``, ``"Triton"`` or ``"JAX"``.
        format: its name.
        subject: the peer's definition.
        said: a pair for each question: the peer's number and ours, with the question.
        fields: the names of the fields that these numbers show.
    """

    peer: str
    format: str
    subject: str
    said: list[tuple[int, int, str]]
    fields: tuple[str, ...] = ()

    @property
    def differing(self) -> list[tuple[int, int, str]]:
        """The questions with two answers."""
        return [each for each in self.said if each[0] != each[1]]


def drawn(codec: Codec, fields: Collection[str], newer: str = "") -> Iterator[int]:
    """Legal descriptors by chance.

    Args:
        codec: the codec of the format and the kind.
        fields: the fields that vary; the others are 0 or fixed.
        newer: the beginning of the targets whose own values are left out; none without.
    """
    chance = random.Random(f"{codec.format.name} {codec.kind}")
    choices = [(field, sorted(_stored(codec, field, newer)) if field.name in fields else [0]) for field in codec.format.fields]
    found = 0
    while found < _COUNT:
        bits = sum(placed(field, chance.choice(numbers) if field.fixed is None else field.fixed) for field, numbers in choices)
        if not codec.mistakes(bits):
            found += 1
            yield bits


def _stored(codec: Codec, field: DescriptorField, newer: str) -> set[int]:
    """The numbers that a field may hold for the codec's kind on some target."""
    if field.name == "m" and field.shift > _M_SHIFT:
        return {m >> field.shift for m in _SCALED_M}
    known = [case for case in field.cases if not case.targets or not newer or any(not target.startswith(newer) for target in case.targets)]
    of_kind = [case for case in known if not case.when or any(codec.kind in when.get("kind", (codec.kind,)) for when in case.when)]
    every = range(ones(width_of(field)) + 1)
    if not field.cases:
        return set(every)
    return {stored for stored in every if any(case.admits(stored, counted(field, stored)) for case in of_kind)} or {0}


def filled(format: DescriptorFormat, words: Iterable[int]) -> tuple[str, ...]:
    """The fields that are not 0 in every word."""
    known = list(words)
    return tuple(field.name for field in format.fields if any(taken(field, word) for word in known))


def numbers(field: DescriptorField) -> dict[str, int]:
    """The number that a field holds for each of its values, whatever the condition."""
    return {name: stored for case in field.cases for name, stored in case.values.items()}
