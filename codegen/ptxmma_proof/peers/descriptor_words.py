"""The bits of a descriptor as a peer says them, and as we do."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """A definition of a peer for a format.

    Attributes:
        peer: ``"CuTe"``, ``"Triton"`` or ``"JAX"``.
        format: its name.
        subject: the peer's definition.
        said: a pair for each question: the peer's number and ours, with the question.
    """

    peer: str
    format: str
    subject: str
    said: list[tuple[int, int, str]]

    @property
    def differing(self) -> list[tuple[int, int, str]]:
        """The questions with two answers."""
        return [each for each in self.said if each[0] != each[1]]
