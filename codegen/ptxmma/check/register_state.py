"""What is known of registers at a place of a function: which asynchronous instructions may still use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

_Known = TypeVar("_Known")


class Operation(NamedTuple):
    """An asynchronous instruction that may still be at work.

    Attributes:
        age: how many groups were committed after it; -1 before its own.
        offset: its place in the text.
        register: the one that it names; ``mov`` may have given it others.
    """

    age: int
    offset: int
    register: bytes


class Access(NamedTuple):
    """What touched a register after the last fence: an asynchronous instruction of a shape, or an ordinary one (no shape)."""

    shape: bytes
    offset: int


class State:
    """What is known at a place of a function.  States are not changed once another place shares them."""

    __slots__ = ("accessed", "accumulators", "fragments", "unfenced")

    def __init__(self, unfenced: bool) -> None:
        self.accumulators: dict[bytes, Operation] = {}
        self.fragments: dict[bytes, Operation] = {}
        self.accessed: dict[bytes, Access] = {}
        self.unfenced = unfenced  # no fence since the kernel began

    def copy(self) -> State:
        """A state that may be changed."""
        made = State(self.unfenced)
        made.accumulators, made.fragments, made.accessed = dict(self.accumulators), dict(self.fragments), dict(self.accessed)
        return made

    def size(self) -> int:
        """How many facts there are."""
        return len(self.accumulators) + len(self.fragments) + len(self.accessed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def forget(self) -> None:
        """Forget everything: whether it was right is unknown from here on."""
        self.__init__(False)  # type: ignore[misc]


def on_both(one: State, other: State) -> State:
    """What is known whichever of two branches was taken."""
    if one is other:
        return one
    made = State(one.unfenced and other.unfenced)
    made.accumulators = {name: max(at, other.accumulators[name]) for name, at in one.accumulators.items() if name in other.accumulators}
    made.fragments = {name: max(at, other.fragments[name]) for name, at in one.fragments.items() if name in other.fragments}
    for name, access in one.accessed.items():
        if name in other.accessed and other.accessed[name].shape == access.shape:
            made.accessed[name] = access
    return made


def on_either(one: State, other: State) -> State:
    """What is known when a loop is entered or repeated: both happen."""
    made = State(one.unfenced or other.unfenced)
    made.accumulators = _earliest(one.accumulators, other.accumulators)
    made.fragments = _earliest(one.fragments, other.fragments)
    made.accessed = other.accessed | one.accessed
    return made


def _earliest(one: dict[bytes, Operation], other: dict[bytes, Operation]) -> dict[bytes, Operation]:
    return one | {name: min(at, one.get(name, at)) for name, at in other.items()}


def rename(facts: dict[bytes, _Known], target: bytes, sources: Sequence[bytes], predicated: bool) -> None:
    """What holds of a source of a copy holds of its target."""
    known = next((facts[source] for source in sources if source in facts), None)
    if known is not None and (not predicated or facts.get(target) == known):
        facts[target] = known
    else:
        facts.pop(target, None)
