"""Follows the registers of asynchronous instructions through a function: is a fence or a wait missing?

Behaviour is undefined (PTX ISA 9.7.15.7) where an asynchronous instruction uses a register that was written after the last fence, and
where something else touches its accumulator, or writes its registers of A, before a wait that covers it.  Which instructions those
are is what the database's protocol says.

What is told holds on definite paths only:

- Where branches meet, something is known if it is so on every branch.  A test may stand for a condition under which all is well.
- A loop is looked at twice: entered from above, and repeated.  Both happen.
- Where a branch that goes round a loop meets others that went through it, it does not count: the loop is there to be entered.
- An instruction under a predicate may or may not have done its work: it raises no alarm later, and a wait or a fence counts.
- ``mov`` from a register that an asynchronous instruction uses, whole or in parts, is a new name for it, no access: compilers write many
  before the wait, and assemblers give both one register.
- A function that is called may fence and wait: all is forgotten.  So it is at the start of a function that is no kernel.

A fault is told once, at the first place that shows it; the rest of its path is looked at as if it were mended.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from ptxmma.check.reader import Function
    from ptxmma.model import Spec

_Found = TypeVar("_Found")

#: What each rule asks for.
RULES: Mapping[str, str] = {
    "missing-fence": "An asynchronous instruction uses a register that was written after the last fence, or comes before any fence.",
    "missing-wait": "A register is used while an asynchronous instruction may still read or write it.",
}


class Protocol(NamedTuple):
    """The instructions that are followed, and where the manual states the rules.

    Attributes:
        issues: the start of each asynchronous instruction's opcode -> the roles of its operands that may be lists of registers.
        fence, commit, wait: how the other instructions start.
        fence_source, wait_source: sections of the PTX ISA.
    """

    issues: Mapping[bytes, Mapping[int, str]]
    fence: bytes
    commit: bytes
    wait: bytes
    fence_source: str
    wait_source: str


class Hazard(NamedTuple):
    """Undefined behaviour at a place.

    Attributes:
        offset: byte offset of the token in the function's text.
        length: of the token, in bytes.
        rule: a key of :data:`RULES`.
        instruction: the asynchronous instruction as it is written.
        message: what is wrong and what to do.
    """

    offset: int
    length: int
    rule: str
    instruction: str
    message: str


def protocol(spec: Spec) -> Protocol | None:
    """What a database says of asynchronous instructions; None where it has none."""
    if spec.protocol is None:
        return None
    steps = {step.name: step for step in spec.protocol.steps}
    issues: dict[bytes, dict[int, str]] = {}
    for entry in spec.instructions:
        if entry.asynchronous:
            roles = issues.setdefault((entry.opcode or entry.name).encode(), {})
            for names in (text.split(", ") for lists in entry.operands.values() for text in lists):
                kinds = ((place, entry.operand_kinds.get(name)) for place, name in enumerate(names))
                roles |= {place: kind.kind for place, kind in kinds if kind is not None and kind.kind in ("accumulator", "fragment")}
    fence, wait = steps["fence registers"], steps["wait"]
    fenced, committed, waited = (step.instruction.encode() for step in (fence, steps["commit"], wait))
    return Protocol(issues, fenced, committed, waited, fence.source, wait.source)


def hazards(function: Function, rules: Protocol) -> list[Hazard]:
    """What is wrong with a function's asynchronous instructions, in the order of the text.

    A function that cannot be followed (a label is missing, a brace is not closed, branches without end) has no hazards.
    """
    if not any(opcode in function.text for opcode in rules.issues):
        return []
    try:
        return _Walk(function, _Parser(function.text, rules).parse(), rules).hazards()
    except _NotFollowedError:
        return []


# --- what matters in a function ------------------------------------------------------------------------------------------------


class _NotFollowedError(ValueError):
    """The function is no PTX that can be followed."""


class _Event(NamedTuple):
    """A statement that matters."""

    kind: str  # "issue", "fence", "commit", "wait", "call", "copy" or "access"
    offset: int  # of the opcode; of an access, of its first register that is followed
    predicated: bool
    opcode: bytes
    written: Sequence[bytes] = ()  # issue: its accumulators; copy: its targets
    read: Sequence[bytes] = ()  # issue: its registers of A; copy: its sources; access: all that it names
    pending: int = 0  # wait: the groups that may go on


class _Block:
    """Statements without a branch between them, and the blocks that may follow."""

    def __init__(self) -> None:
        self.events: list[_Event] = []
        self.branches: list[tuple[int, bytes]] = []  # labels, each with the scope from which it is looked up
        self.falls = True  # whether the next block may follow


_NAME = rb"[\w$%]+"
_WORDS = re.compile(_NAME).findall
#: Blanks for what stands between words.
_SEPARATED = bytes(byte if chr(byte).isalnum() or byte in b"_$%" or byte >= 0x80 else 0x20 for byte in range(256))
#: What may stand before an instruction: blanks, line information, scopes, labels.
_HEAD = re.compile(rb"\s+|\.(?:loc|file)\b[^\n]*|([{}])|(" + _NAME + rb")\s*:(?!:)")
_INSTRUCTION = re.compile(rb"\s*(@!?\s*" + _NAME + rb"\s+)?([a-z][\w.:]*)\s*")
_COPIED = rb"(\{[^{}]*\}|[\w$%]+)"
_COPY = re.compile(_COPIED + rb"\s*,\s*" + _COPIED + rb"\s*")
_COPIES = re.compile(rb"mov\.(?<![\w$%]mov\.)[a-z]\d+\s+" + _COPY.pattern).findall
#: A list in braces; a block has statements, or nothing.
_VECTOR = re.compile(rb"\{[^{};]*\}")
_OPERAND = re.compile(rb"\{[^{}]*\}|[^,{}]+")
_SHAPE = re.compile(rb"\.(m\d+n\d+k\d+)\b")
_DECLARED = re.compile(rb"(" + _NAME + rb")(?:<(\d+)>)?")
_ENDS = (b"ret", b"exit", b"trap")
#: Functions of the system (PTX Writer's Guide to Interoperability, 5): they have nothing to do with asynchronous instructions.
_SYSTEM = {b"vprintf", b"__assertfail", b"malloc", b"free"}
#: Bytes of statements whose words are looked at together.
_STRETCH = 512
_CONTROL = (b"bra", b"brx", b"call", *_ENDS)
#: Registers that an inner scope may declare; of more, it is not followed.
_MOST_DECLARED = 4096
#: Branches of a function, those that a table lists counted each time: of more, it is not followed.
_MOST_BRANCHES = 200_000


class _Parser:
    """Splits a function into blocks with the events that matter.

    Registers that an inner scope declares get names of their own; labels are looked up from the inside outwards.
    """

    def __init__(self, text: bytes, rules: Protocol) -> None:
        self._text, self._rules = text, rules
        self._followed = _followed(text, rules)
        self._blocks = [_Block()]
        self._labels: dict[tuple[int, bytes], int] = {}
        self._lists: dict[tuple[int, bytes], list[bytes]] = {}  # what brx.idx chooses from
        self._parents = [-1]  # of each scope
        self._scope = 0
        self._own: dict[int, set[bytes]] = {}  # names that an inner scope declares
        self._branches = 0
        self._kinds: dict[bytes, str] = {}  # of opcodes
        self._roles: dict[bytes, Mapping[int, str]] = {}  # of the operands of asynchronous instructions

    def parse(self) -> list[tuple[Sequence[_Event], Sequence[int]]]:
        """The events of each block, and which blocks may follow; the first block is the entry."""
        for chunk, place in self._mattering():
            self._statement(chunk, place)
            if self._scope < 0:  # the end of the function's body
                break
        if self._scope > 0:
            raise _NotFollowedError
        return [(block.events, self._after(number)) for number, block in enumerate(self._blocks)]

    def _mattering(self) -> Iterator[tuple[bytes, int]]:
        """The statements that may matter, without their semicolons, and where they stand.

        Most do not: a look at the words of some tells so of all of them, then one at the words of each.
        """
        words = {*self._followed, *_CONTROL}
        words |= {opcode.partition(b".")[0] for opcode in (*self._rules.issues, self._rules.fence, self._rules.commit, self._rules.wait)}
        text = self._text
        place = text.find(b"{") + 1 if text.startswith((b".entry", b".func")) else 0
        while place < len(text):
            stop = text.find(b";", place + _STRETCH) + 1 or len(text)
            stretch = text[place:stop]
            if _matters(stretch, words):
                for chunk in stretch.split(b";"):
                    if _matters(chunk, words):
                        yield chunk, place
                    place += len(chunk) + 1
            place = stop

    def _statement(self, chunk: bytes, start: int) -> None:
        match = _INSTRUCTION.match(chunk)
        if match is None or b":" in match[2] or chunk.startswith(b":", match.end()):
            match = self._headed(chunk)
        if match is not None:
            self._instruction(chunk, start, match)

    def _headed(self, chunk: bytes) -> re.Match[bytes] | None:
        """The instruction behind scopes, labels and a directive."""
        place, label = 0, b""
        while match := _HEAD.match(chunk, place):
            place = match.end()
            if match[1]:
                self._brace(match[1])
                if self._scope < 0:
                    return None
            elif match[2]:
                label = match[2]
                if self._blocks[-1].events:
                    self._blocks.append(_Block())
                self._labels[self._scope, label] = len(self._blocks) - 1
        if chunk.startswith(b".", place):
            self._directive(chunk[place:], label)
            return None
        return _INSTRUCTION.match(chunk, place)

    def _brace(self, brace: bytes) -> None:
        if brace == b"{":
            self._parents.append(self._scope)
            self._scope = len(self._parents) - 1
        else:
            self._scope = self._parents[self._scope]

    def _directive(self, text: bytes, label: bytes) -> None:
        name, _, rest = text.partition(b" ")
        if name == b".branchtargets":
            self._lists[self._scope, label] = _WORDS(rest)
        elif text.startswith(b".reg") and self._scope:
            own = self._own.setdefault(self._scope, set())
            for declared, count in _DECLARED.findall(text[4:]):
                if count and int(count) > _MOST_DECLARED:
                    raise _NotFollowedError
                own |= {b"%s%d" % (declared, number) for number in range(int(count))} if count else {declared}

    def _instruction(self, chunk: bytes, start: int, match: re.Match[bytes]) -> None:
        opcode = match[2]
        kind = self._kinds.get(opcode)
        if kind is None:
            kind = self._kinds[opcode] = self._kind(opcode)
        block, operands = self._blocks[-1], chunk[match.end() :]
        if kind == "access":
            self._access(operands, start, match)
        elif kind == "branch":
            if opcode.startswith(b"br"):
                label = _WORDS(operands)[-1:]
                block.branches += [(self._scope, name) for listed in label for name in self._listed(listed)]
                self._branches += len(block.branches)
                if self._branches > _MOST_BRANCHES:
                    raise _NotFollowedError
            block.falls = match[1] is not None
            self._blocks.append(_Block())
        elif kind != "call" or _SYSTEM.isdisjoint(_WORDS(operands)):
            written, read = self._lists_of(operands, self._roles[opcode]) if kind == "issue" else ([], [])
            number = operands.strip()
            pending = int(number) if kind == "wait" and number.isdigit() else 0
            block.events.append(_Event(kind, start + match.start(2), match[1] is not None, opcode, written, read, pending))

    def _kind(self, opcode: bytes) -> str:
        """What an instruction is: "branch", or the kind of an event."""
        name = opcode.partition(b".")[0]
        for issued, roles in self._rules.issues.items():
            if _is(opcode, issued):
                self._roles[opcode] = roles
                return "issue"
        if name in _ENDS or name in (b"bra", b"brx"):
            return "branch"
        known = {"fence": self._rules.fence, "commit": self._rules.commit, "wait": self._rules.wait, "call": b"call"}
        return next((kind for kind, start in known.items() if _is(opcode, start)), "access")

    def _access(self, operands: bytes, start: int, match: re.Match[bytes]) -> None:
        if self._followed.isdisjoint(_WORDS(operands)):
            return
        events, offset, predicated = self._blocks[-1].events, start + match.end(), match[1] is not None
        copy = _COPY.fullmatch(operands) if match[2].startswith(b"mov.") else None
        sources = _WORDS(copy[2]) if copy else []
        if copy and not self._followed.isdisjoint(sources):
            events.append(_Event("copy", offset, predicated, match[2], self._names(_WORDS(copy[1])), self._names(sources)))
            return
        found = [word for word in re.finditer(_NAME, operands) if word[0] in self._followed]
        first = _OPERAND.match(operands)
        written = self._names(_WORDS(first[0])) if first and not operands.startswith(b"[") else []
        read = self._names(word[0] for word in found)
        events.append(_Event("access", offset + found[0].start(), predicated, match[2], written, read))

    def _lists_of(self, operands: bytes, roles: Mapping[int, str]) -> tuple[list[bytes], list[bytes]]:
        """The accumulators and the registers of A of an asynchronous instruction."""
        found: dict[str, list[bytes]] = {"accumulator": [], "fragment": []}
        for place, operand in enumerate(text for text in _OPERAND.findall(operands) if text.strip()):
            if place in roles and operand.startswith(b"{"):
                found[roles[place]] += self._names(_WORDS(operand))
        return found["accumulator"], found["fragment"]

    def _names(self, names: Iterable[bytes]) -> list[bytes]:
        return [self._name(name) for name in names]

    def _name(self, name: bytes) -> bytes:
        """A register's name, told apart from those of other scopes."""
        scope = self._scope
        while scope > 0:
            if name in self._own.get(scope, ()):
                return b"%s in scope %d" % (name, scope)
            scope = self._parents[scope]
        return name

    def _listed(self, label: bytes) -> list[bytes]:
        found = self._looked_up(self._lists, self._scope, label)
        return [label] if found is None else found

    def _looked_up(self, table: Mapping[tuple[int, bytes], _Found], scope: int, label: bytes) -> _Found | None:
        while scope >= 0:
            if (scope, label) in table:
                return table[scope, label]
            scope = self._parents[scope]
        return None

    def _after(self, number: int) -> list[int]:
        block = self._blocks[number]
        found = [self._looked_up(self._labels, scope, label) for scope, label in block.branches]
        if None in found:
            raise _NotFollowedError
        follows = [place for place in found if place is not None]
        return [*follows, number + 1] if block.falls and number + 1 < len(self._blocks) else follows


def _matters(text: bytes, words: set[bytes]) -> bool:
    """Whether statements have one of some words, a label, or a brace that is none of a list."""
    if not words.isdisjoint(text.translate(_SEPARATED).split()):
        return True
    if b"{" in text or b"}" in text:
        text = _VECTOR.sub(b"", text)
        if b"{" in text or b"}" in text:
            return True
    return b":" in text and b":" in text.replace(b"::", b"")


def _is(opcode: bytes, start: bytes) -> bool:
    return opcode == start or opcode.startswith(start + b".")


def _followed(text: bytes, rules: Protocol) -> set[bytes]:
    """The registers in the lists of asynchronous instructions, and those that copies of them reach."""
    followed: set[bytes] = set()
    for opcode in rules.issues:
        for statement in re.findall(re.escape(opcode) + rb"[^;]*", text):
            for operand in re.findall(rb"\{[^{}]*\}", statement):
                followed.update(_WORDS(operand))
    copies: dict[bytes, list[bytes]] = {}
    for target, source in _COPIES(text):
        for name in _WORDS(source) if source.startswith(b"{") else (source,):
            copies.setdefault(name, []).append(target)
    reached = list(followed)
    while reached:
        targets = copies.pop(reached.pop(), ())
        fresh = [name for target in targets for name in _WORDS(target) if name not in followed]
        followed.update(fresh)
        reached += fresh
    return followed


# --- what is known at a place --------------------------------------------------------------------------------------------------


class _Operation(NamedTuple):
    """An asynchronous instruction that may still be at work: so many groups were committed after it, -1 before its own."""

    age: int
    offset: int


class _Access(NamedTuple):
    """What touched a register after the last fence: an asynchronous instruction of a shape, or an ordinary one (no shape)."""

    shape: bytes
    offset: int


class _State:
    """What is known at a place of a function.  States are not changed once another place shares them."""

    __slots__ = ("accessed", "accumulators", "fragments", "unfenced")

    def __init__(self, unfenced: bool) -> None:
        self.accumulators: dict[bytes, _Operation] = {}
        self.fragments: dict[bytes, _Operation] = {}
        self.accessed: dict[bytes, _Access] = {}
        self.unfenced = unfenced  # no fence since the kernel began

    def copy(self) -> _State:
        made = _State(self.unfenced)
        made.accumulators, made.fragments, made.accessed = dict(self.accumulators), dict(self.fragments), dict(self.accessed)
        return made

    def size(self) -> int:
        """How many facts there are."""
        return len(self.accumulators) + len(self.fragments) + len(self.accessed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _State) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def forget(self) -> None:
        """Whatever was wrong may be right now."""
        self.__init__(False)  # type: ignore[misc]


def _on_both(one: _State, other: _State) -> _State:
    """What is known whichever of two branches was taken."""
    if one is other:
        return one
    made = _State(one.unfenced and other.unfenced)
    made.accumulators = {name: max(at, other.accumulators[name]) for name, at in one.accumulators.items() if name in other.accumulators}
    made.fragments = {name: max(at, other.fragments[name]) for name, at in one.fragments.items() if name in other.fragments}
    for name, access in one.accessed.items():
        if name in other.accessed and other.accessed[name].shape == access.shape:
            made.accessed[name] = access
    return made


def _on_either(one: _State, other: _State) -> _State:
    """What is known when a loop is entered or repeated: both happen."""
    made = _State(one.unfenced or other.unfenced)
    made.accumulators = _earliest(one.accumulators, other.accumulators)
    made.fragments = _earliest(one.fragments, other.fragments)
    made.accessed = other.accessed | one.accessed
    return made


def _earliest(one: dict[bytes, _Operation], other: dict[bytes, _Operation]) -> dict[bytes, _Operation]:
    return one | {name: min(at, one.get(name, at)) for name, at in other.items()}


class _Walk:
    """Carries what is known through the blocks of a function until nothing changes."""

    #: A fact goes round a loop at most this often; what is known is right after every time.
    _ROUNDS = 8
    #: Facts that are carried in one round: more are too many to hold.
    _MOST_WORK = 1_000_000

    def __init__(self, function: Function, blocks: Sequence[tuple[Sequence[_Event], Sequence[int]]], rules: Protocol) -> None:
        self._function, self._blocks, self._rules = function, blocks, rules
        self._found: dict[int, Hazard] = {}
        self._opcodes = {event.offset: event.opcode for events, _ in blocks for event in events if event.kind == "issue"}

    def hazards(self) -> list[Hazard]:
        """Everything that is found.

        Raises:
            _NotFollowedError: the function has too many branches.
        """
        follows = [after for _, after in self._blocks]
        graph = _Graph(follows)
        first = _State(self._function.text.startswith(b".entry"))
        known: dict[int, _State] = {}
        stale = {*graph.order}
        for _ in range(self._ROUNDS):
            work = 0
            for number in graph.order:
                if number not in stale:
                    continue
                stale.remove(number)
                entering, repeating = graph.before[number]
                state = known[entering[0]] if entering else first
                if len(entering) > 1 or repeating:
                    state = functools.reduce(_on_both, [known[other] for other in entering], state)
                    state = functools.reduce(_on_either, [known[other] for other in repeating if other in known], state)
                    work += state.size() * (len(entering) + len(repeating))
                if events := self._blocks[number][0]:
                    state = self._through(state, events)
                    work += state.size()
                if work > self._MOST_WORK:
                    raise _NotFollowedError
                before = known.get(number)
                if before is not state and before != state:
                    known[number] = state
                    stale.update(follows[number])
            if not stale:
                break
        return [self._found[offset] for offset in sorted(self._found)]

    def _through(self, state: _State, events: Sequence[_Event]) -> _State:
        """What is known behind a block."""
        state = state.copy()
        for event in events:
            getattr(self, f"_{event.kind}")(state, event)
        return state

    def _call(self, state: _State, _: _Event) -> None:
        state.forget()

    def _fence(self, state: _State, _: _Event) -> None:
        state.unfenced = False
        state.accessed.clear()

    def _commit(self, state: _State, _: _Event) -> None:
        for held in (state.accumulators, state.fragments):
            for name, at in held.items():
                held[name] = _Operation(at.age + 1, at.offset)

    def _wait(self, state: _State, event: _Event) -> None:
        for held in (state.accumulators, state.fragments):
            for name in [name for name, at in held.items() if at.age >= event.pending]:
                del held[name]

    def _copy(self, state: _State, event: _Event) -> None:
        for target in event.written:
            _rename(state.accumulators, target, event.read, event.predicated)
            _rename(state.accessed, target, event.read, event.predicated)
            state.fragments.pop(target, None)

    def _access(self, state: _State, event: _Event) -> None:
        busy = next((name for name in event.read if name in state.accumulators), None)
        if busy is not None:
            self._early(state, event, busy, state.accumulators[busy], "is used", "write")
        else:
            busy = next((name for name in event.written if name in state.fragments), None)
            if busy is not None:
                self._early(state, event, busy, state.fragments[busy], "is written", "read")
        for name in event.written:
            if event.predicated:
                if name in state.accessed and state.accessed[name].shape:
                    del state.accessed[name]
            else:
                state.accessed[name] = _Access(b"", event.offset)

    def _issue(self, state: _State, event: _Event) -> None:
        shape = _shape(event.opcode)
        busy = next((name for name in event.read if name in state.accumulators), None)
        if busy is not None:
            self._early(state, event, busy, state.accumulators[busy], "is read", "write")
        self._order(state, event, shape)
        for name in event.written:
            self._hold(state.accumulators, name, _Operation(-1, event.offset), event.predicated)
            if not event.predicated:
                state.accessed[name] = _Access(shape, event.offset)
            elif name in state.accessed and state.accessed[name].shape != shape:
                del state.accessed[name]
        for name in event.read:
            self._hold(state.fragments, name, _Operation(-1, event.offset), event.predicated)

    def _hold(self, held: dict[bytes, _Operation], name: bytes, operation: _Operation, predicated: bool) -> None:
        if not predicated:
            held[name] = operation

    # --- what is told ---

    def _order(self, state: _State, event: _Event, shape: bytes) -> None:
        """Tells of a missing fence before an asynchronous instruction."""
        touched = [name for name in (*event.written, *event.read) if name in state.accessed]
        bad = next((name for name in touched if state.accessed[name].shape != shape), None)
        fence = self._rules.fence.decode()
        if state.unfenced:
            what = f"no {fence} comes before the first {self._name(event)} of the kernel"
        elif bad is not None:
            access = state.accessed[bad]
            how = f"an operation of shape {access.shape.decode()}" if access.shape else "an ordinary instruction"
            what = f"{_plain(bad)} was last accessed by {how} in line {self._line(access.offset)}, and no {fence} stands between"
        else:
            return
        self._tell(event.offset, len(event.opcode), "missing-fence", event.opcode, what, self._rules.fence_source)
        state.unfenced = False
        state.accessed.clear()

    def _early(self, state: _State, event: _Event, name: bytes, at: _Operation, how: str, does: str) -> None:
        """Tells of a missing wait."""
        opcode = self._opcodes[at.offset]
        wait, commit = self._rules.wait.decode(), self._rules.commit.decode()
        needed = f"{wait} {at.age}" if at.age > 0 else f"{wait} 0"
        missing = f"{commit} and {needed} are missing" if at.age < 0 else f"{needed} is missing"
        operation = f"the {_start(opcode, self._rules)} of line {self._line(at.offset)}"
        what = f"{_plain(name)} {how} while {operation} may still {does} it: {missing}"
        length = len(_plain(name)) if event.kind == "access" else len(event.opcode)
        self._tell(event.offset, length, "missing-wait", opcode, what, self._rules.wait_source)
        state.accumulators.clear()
        state.fragments.clear()

    def _tell(self, offset: int, length: int, rule: str, opcode: bytes, what: str, source: str) -> None:
        message = f"{what}; behaviour is undefined (PTX ISA {source})"
        self._found.setdefault(offset, Hazard(offset, length, rule, opcode.decode(), message))

    def _name(self, event: _Event) -> str:
        return _start(event.opcode, self._rules)

    def _line(self, offset: int) -> int:
        return self._function.position(offset)[0]


def _rename(held: dict[bytes, _Found], target: bytes, sources: Sequence[bytes], predicated: bool) -> None:
    """What holds of a source of a copy holds of its target."""
    known = next((held[source] for source in sources if source in held), None)
    if known is not None and (not predicated or held.get(target) == known):
        held[target] = known
    else:
        held.pop(target, None)


def _start(opcode: bytes, rules: Protocol) -> str:
    return next(issued for issued in rules.issues if _is(opcode, issued)).decode()


def _shape(opcode: bytes) -> bytes:
    match = _SHAPE.search(opcode)
    return match[1] if match else b"none"


def _plain(name: bytes) -> str:
    """A register's name as it is written."""
    return name.partition(b" ")[0].decode("utf-8", "replace")


class _Graph:
    """The blocks that can be reached, and how they are reached.

    Attributes:
        order: each block before those that follow it, except where a loop closes.
        before: for each block those that it may follow: first those from which it is entered, without branches round a loop that
            others went through, then those from which a loop is repeated.
    """

    #: Of more loops in a function it is not looked which blocks went through them.
    _MOST_LOOPS = 1000

    def __init__(self, follows: Sequence[Sequence[int]]) -> None:
        self.order = _reverse_postorder(follows)
        rank = {number: place for place, number in enumerate(self.order)}
        entering: dict[int, list[int]] = {number: [] for number in self.order}
        repeating: dict[int, list[int]] = {number: [] for number in self.order}
        for number in self.order:
            for after in follows[number]:
                (entering if rank[number] < rank[after] else repeating)[after].append(number)
        heads = {number for number in self.order if repeating[number]}
        if len(heads) > self._MOST_LOOPS:
            heads.clear()
        through: dict[int, frozenset[int]] = {}  # the loops that were entered on the way to a block
        shared: dict[frozenset[int], frozenset[int]] = {}
        self.before: dict[int, tuple[list[int], list[int]]] = {}
        for number in self.order:
            if len(entering[number]) > 1:
                most = {through[other] for other in entering[number]}
                entering[number] = [other for other in entering[number] if not any(through[other] < loops for loops in most)]
            common = functools.reduce(frozenset.__and__, [through[other] for other in entering[number]] or [frozenset[int]()])
            passed = common | {number} if number in heads else common
            through[number] = shared.setdefault(passed, passed)
            self.before[number] = entering[number], repeating[number]


def _reverse_postorder(follows: Sequence[Sequence[int]]) -> list[int]:
    """The blocks that can be reached, each before those that follow it except where a loop closes."""
    seen, order = {0}, []
    path: list[tuple[int, Iterator[int]]] = [(0, iter(follows[0]))]
    while path:
        number, rest = path[-1]
        for after in rest:
            if after not in seen:
                seen.add(after)
                path.append((after, iter(follows[after])))
                break
        else:
            order.append(number)
            path.pop()
    return order[::-1]
