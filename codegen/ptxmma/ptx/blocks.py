"""The blocks of a function, with the statements that order asynchronous instructions.

A branch over statements that order nothing is the same as a predicate on each of them: it makes no block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.ptx.flow_events import Event, Stretch
from ptxmma.ptx.outline import MISSING, Branch, Label, Mark, Ordered, Outline


class Blocked(NamedTuple):
    """Statements without a branch between them.

    Attributes:
        events: its statements that matter, and stretches of others.
        follows: the numbers of the blocks that may follow: first the targets of its branch, then the next block.
        branch: the branch at its end, if it ends with one.
        begin: its place in the text.
    """

    events: Sequence[Event | Stretch]
    follows: Sequence[int]
    branch: Branch | None
    begin: int


#: Bytes that may be between statements.
_BLANK = b"{} \t\n\r\f\v"
#: Branches of a function, the entries of a table counted each time: a function with more is not followed.
_MOST_BRANCHES = 200_000


class NotFollowedError(ValueError):
    """The function cannot be followed."""


class _Block:
    """Statements without a branch between them, and the blocks that may follow."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.events: list[Event | Stretch] = []
        self.targets: Sequence[int] = ()  # the places of labels
        self.branch: Branch | None = None


def blocks(outline: Outline) -> list[Blocked]:
    """The events of each block, and which blocks may follow; the first block is the entry.

    Raises:
        NotFollowedError: a label is missing, a brace is not closed, or there are too many branches.
    """
    folded = _Folded(outline)
    made = [_Block(outline.start)]
    labelled: dict[int, int] = {}  # places of labels -> blocks
    unread = outline.start
    for mark in (*folded.marks, Label(outline.scopes.stop, outline.scopes.stop)):
        if outline.text[unread : mark.begin].strip(_BLANK):
            made[-1].events.append(Stretch(outline.text, unread, mark.begin, outline.scopes, folded.skipped))
        unread = mark.stop
        if isinstance(mark, Ordered):
            made[-1].events.append(mark.event)
            if mark.event.kind == "fence":  # after it a loop often learns nothing new
                made.append(_Block(unread))
        elif isinstance(mark, Branch):
            made[-1].targets, made[-1].branch = folded.targets[mark.begin], mark
            made.append(_Block(unread))
        else:
            if made[-1].events:
                made.append(_Block(mark.begin))
            labelled[mark.begin] = len(made) - 1
    result: list[Blocked] = []
    for number, block in enumerate(made, 1):
        follows = [labelled[place] for place in block.targets]
        falls = (block.branch is None or block.branch.predicate) and number < len(made)
        result.append(Blocked(block.events, [*follows, number] if falls else follows, block.branch, block.begin))
    _lead(result)
    return result


def opposite(predicate: bytes) -> bytes:
    """The predicate that holds where another one does not: ``b"!%p1"`` of ``b"%p1"``."""
    return predicate[1:] if predicate.startswith(b"!") else b"!" + predicate


class _Folded:
    """The marks of a function, without branches over statements and their labels.

    Attributes:
        marks: the marks that are left.
        targets: the places of the labels of each branch, by its own place.
        skipped: starts and ends, ascending, of statements that a branch may skip.
    """

    def __init__(self, outline: Outline) -> None:
        self._text = outline.text
        self.marks: list[Mark] = []
        branches = [mark for mark in outline.marks if isinstance(mark, Branch)]
        if outline.scopes.lost or sum(len(mark.labels) for mark in branches) > _MOST_BRANCHES:
            raise NotFollowedError
        self.targets = {mark.begin: outline.targets(mark) for mark in branches}
        self.skipped: list[tuple[int, int]] = []
        self._uses = Counter(place for places in self.targets.values() for place in places)
        if MISSING in self._uses:
            raise NotFollowedError
        for mark in outline.marks:
            if isinstance(mark, Label):
                self._fold(mark.begin)
                if not self._uses[mark.begin]:
                    continue
            self.marks.append(mark)

    def _fold(self, label: int) -> None:
        """Leave out the branches over statements to a label; a branch over another one is that one with the opposite predicate."""
        while self._skips(-1, label):
            start = self.marks.pop().stop
            while self.skipped and self.skipped[-1][0] > start:
                self.skipped.pop()
            self.skipped.append((start, label))
            self._uses[label] -= 1
        last = self.marks[-1] if self._skips(-2, label) else None
        if isinstance(last, Branch) and not last.predicate:
            over = self.marks[-2]
            assert isinstance(over, Branch)  # it skips
            between = self._text[over.stop : last.begin] + self._text[last.stop : label]
            if not between.strip(_BLANK):
                self.marks[-2:] = [last._replace(predicate=opposite(over.predicate))]
                self._uses[label] -= 1

    def _skips(self, number: int, label: int) -> bool:
        """Return whether a mark is a branch that goes on with the next statement or with a label."""
        mark = self.marks[number] if len(self.marks) >= -number else None
        return isinstance(mark, Branch) and bool(mark.predicate) and self.targets[mark.begin] == [label]


def _lead(blocks: Sequence[Blocked]) -> None:
    """Mark the stretches after which an asynchronous instruction may come before a fence: what others write does not matter.

    Nor does what these write, if none of them names a register of such an instruction.
    """
    used: set[bytes] = set()
    marked: list[Stretch] = []
    before: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for after in block.follows:
            before[after].append(number)
    # Blocks that have to be looked at: those that issue instructions, then those from which one of these can be reached.
    leading = {number for number, block in enumerate(blocks) if any(event.kind == "issue" for event in block.events)}
    ends: set[int] = set()  # blocks whose end leads to an instruction
    while leading:
        number = leading.pop()
        leads = number in ends
        for event in reversed(blocks[number].events):
            if isinstance(event, Stretch):
                if leads and not event.leads:
                    event.leads = True
                    marked.append(event)
            elif event.kind == "issue":
                leads = True
                used.update(event.written, event.read)
            elif event.kind in ("fence", "call"):
                leads = False
        if leads:
            fresh = [other for other in before[number] if other not in ends]
            ends.update(fresh)
            leading.update(fresh)
    if not used or all(used.isdisjoint(stretch.names) for stretch in marked):
        for stretch in marked:
            stretch.leads = False
