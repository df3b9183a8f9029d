"""The state of registers at a place of a function: the asynchronous instructions that may still use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

_Known = TypeVar("_Known")


#: In place of a register: the first asynchronous instruction of a kernel needs a fence whatever it uses.
UNFENCED = b""
#: Paths that are told apart; of more, only the accesses that they share are known.
_MOST_ALTERNATIVES = 8


class Operation(NamedTuple):
    """An asynchronous instruction that may still be at work.

    Attributes:
        age: the number of groups that were committed after it; -1 before its own.
        offset: its place in the text.
        register: the register that the instruction names, where this is a copy that ``mov`` made of it; otherwise empty.
    """

    age: int
    offset: int
    register: bytes = b""


class Access(NamedTuple):
    """A use of a register after the last fence: by an asynchronous instruction of a shape, or by an ordinary one (no shape)."""

    shape: bytes
    offset: int


class State:
    """The facts at a place of a function.  States are not changed once another place shares them.

    Attributes:
        accumulators, fragments: registers that asynchronous instructions may still write, or read.
        accessed: the accesses to each register since the last fence.
        alternatives: other accesses since then, an entry for each path: the function came along one of these paths.
        shapes: the shapes of all accesses since then; there may be others among them.
        copied: whether an accumulator may have been copied.
        unfenced: whether no fence came since the kernel began.
    """

    __slots__ = ("accessed", "accumulators", "alternatives", "copied", "fragments", "shapes", "unfenced")

    def __init__(self, unfenced: bool) -> None:
        self.accumulators: dict[bytes, Operation] = {}
        self.fragments: dict[bytes, Operation] = {}
        self.accessed: dict[bytes, Access] = {}
        self.alternatives: tuple[dict[bytes, Access], ...] = ()
        self.shapes: frozenset[bytes] = frozenset()
        self.copied = False
        self.unfenced = unfenced

    def copy(self) -> State:
        """A state that may be changed."""
        made = State(self.unfenced)
        made.accumulators, made.fragments, made.accessed = dict(self.accumulators), dict(self.fragments), dict(self.accessed)
        made.alternatives = tuple(map(dict, self.alternatives))
        made.shapes, made.copied = self.shapes, self.copied
        return made

    def fence(self) -> None:
        """Order what came before."""
        self.unfenced = False
        self.accessed.clear()
        self.alternatives = ()
        self.shapes = frozenset()

    def access(self, names: Sequence[bytes], access: Access) -> None:
        """Note what accessed registers."""
        self.accessed.update(dict.fromkeys(names, access))
        self.shapes |= {access.shape}
        self.settle(names)

    def settle(self, names: Sequence[bytes]) -> None:
        """Forget the accesses to registers that only some path has."""
        if self.alternatives:
            for each in self.alternatives:
                for name in names:
                    each.pop(name, None)
            if not all(self.alternatives):
                self.alternatives = ()

    def size(self) -> int:
        """The number of facts."""
        return len(self.accumulators) + len(self.fragments) + len(self.accessed) + sum(map(len, self.alternatives))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def forget(self) -> None:
        """Forget everything: whether it was right is unknown from here on."""
        self.__init__(False)  # type: ignore[misc]


def on_both(one: State, other: State) -> State:
    """The facts that hold whichever of two branches was taken."""
    if one is other:
        return one
    made = State(one.unfenced and other.unfenced)
    made.accumulators = _latest(one.accumulators, other.accumulators)
    made.fragments = _latest(one.fragments, other.fragments)
    for name, access in one.accessed.items():
        if name in other.accessed and other.accessed[name].shape == access.shape:
            made.accessed[name] = access
    made.alternatives = _alternatives(one, other, made)
    made.shapes, made.copied = one.shapes | other.shapes, one.copied or other.copied
    return made


def _alternatives(one: State, other: State, both: State) -> tuple[dict[bytes, Access], ...]:
    """The accesses that only one of two branches makes, for each branch that makes any."""
    found: list[dict[bytes, Access]] = []
    for state in (one, other):
        alone = {name: access for name, access in state.accessed.items() if name not in both.accessed}
        if state.unfenced and not both.unfenced:
            alone[UNFENCED] = Access(b"", -1)
        for each in state.alternatives or ({},):
            if not alone and not each:
                return ()
            found.append(each | alone)
    return tuple(found) if len(found) <= _MOST_ALTERNATIVES else ()


def on_either(one: State, other: State) -> State:
    """The facts when a loop is entered or repeated: both happen."""
    made = State(one.unfenced or other.unfenced)
    made.accumulators = _earliest(one.accumulators, other.accumulators)
    made.fragments = _earliest(one.fragments, other.fragments)
    made.accessed = other.accessed | one.accessed
    made.alternatives = one.alternatives or other.alternatives
    made.shapes, made.copied = one.shapes | other.shapes, one.copied or other.copied
    return made


def _latest(one: dict[bytes, Operation], other: dict[bytes, Operation]) -> dict[bytes, Operation]:
    return one if one == other else {name: max(at, other[name]) for name, at in one.items() if name in other}


def _earliest(one: dict[bytes, Operation], other: dict[bytes, Operation]) -> dict[bytes, Operation]:
    return one if one == other else one | {name: min(at, one.get(name, at)) for name, at in other.items()}


def rename(facts: dict[bytes, _Known], target: bytes, sources: Sequence[bytes], predicated: bool) -> None:
    """Copy the facts about a source of a copy to its target."""
    known = next((facts[source] for source in sources if source in facts), None)
    if known is not None and (not predicated or facts.get(target) == known):
        facts[target] = known
    else:
        facts.pop(target, None)
