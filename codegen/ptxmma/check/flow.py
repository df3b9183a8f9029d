"""Follows the registers of asynchronous instructions through a function, and finds missing fences and waits.

Behaviour is undefined (PTX ISA 9.7.15.7) if an asynchronous instruction uses a register that was written after the last fence, or if
another instruction touches its accumulator, or writes the registers of its multiplicand, before a wait that covers it.  The database's
protocol says which instructions these are.

Only what is wrong on a definite path is reported:

- Where branches meet, a fact holds if it holds on every branch.
- A loop is examined twice, once as entered and once as repeated; both must be sound.
- A branch around a loop does not count where it meets branches that went through the loop: loops are meant to be entered.
- An instruction under a predicate may or may not have executed: it causes no finding later, but a wait or a fence counts.  So may
  statements over which a branch leads.
- ``mov`` from a register, whole or in parts, is a new name and not an access: what was written before a fence stays so under another
  name.  Compilers write many, and assemblers give both names the same register.
- A function that is called may fence and wait, so nothing is known after a call, nor at the start of a function that is not a kernel.

A fault is reported once, where it first shows; the rest of the path is followed as if it were fixed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.findings import Severity
from ptxmma.check.register_state import UNFENCED, Access, Operation, State, on_both, on_either, rename
from ptxmma.check.rule import Rule
from ptxmma.ptx.block_scopes import plain
from ptxmma.ptx.blocks import NotFollowedError, blocks
from ptxmma.ptx.flow_events import Asynchronous, Event, Stretch
from ptxmma.ptx.graphs import Graph
from ptxmma.ptx.outline import Outline, starts
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog
    from ptxmma.ptx.statements import Function

#: The steps of a protocol that order registers, by the roles that the spec gives them.
_FENCE, _COMMIT, _WAIT = "fence-registers", "commit", "wait"


class Protocol(NamedTuple):
    """The instructions to follow, and the manual's sections on the rules.

    Attributes:
        opcodes: the opcodes of the instructions.
        shape: the shape of an instruction, by its opcode: ``b"m64n8k16"``; ``b"unknown"`` for an opcode that is not an instruction.
        fence_source, wait_source: sections of the PTX ISA.
    """

    opcodes: Asynchronous
    shape: Callable[[bytes], bytes]
    fence_source: str
    wait_source: str


def protocol(catalog: Catalog) -> Protocol | None:
    """The protocol of asynchronous instructions with operands in registers: the one with a fence, a commit and a wait; None without one."""
    spec = catalog.database.spec
    protocols = ((entry, {step.role: step for step in entry.steps}) for entry in spec.protocols)
    followed, steps = next((pair for pair in protocols if {_FENCE, _COMMIT, _WAIT} <= pair[1].keys()), (None, {}))
    if followed is None:
        return None
    issues: dict[bytes, dict[int, str]] = {}
    for entry in spec.instructions:
        if entry.asynchronous and entry.family in followed.families:
            roles = issues.setdefault(entry.start, {})
            for names in (text.split(", ") for lists in entry.operands.values() for text in lists):
                kinds = ((place, entry.operand_kinds.get(name)) for place, name in enumerate(names))
                roles |= {place: kind.kind for place, kind in kinds if kind is not None and kind.kind in ("accumulator", "fragment")}
    fence, commit, wait = steps[_FENCE], steps[_COMMIT], steps[_WAIT]
    opcodes = Asynchronous(issues, fence.instruction.encode(), commit.instruction.encode(), wait.instruction.encode())

    @functools.lru_cache(maxsize=1 << 8)
    def shape(opcode: bytes) -> bytes:
        instruction = catalog.meaning(opcode.decode(errors="replace"))
        return instruction.variant.shape.encode() if instruction is not None else b"unknown"

    return Protocol(opcodes, shape, fence.source, wait.source)


_AGAIN = examples.WGMMA.replace("{%f0, %f1, %f2, %f3}", "{%f4, %f5, %f6, %f7}")
_COPY = "\n".join(f"mov.b32 %f{number + 4}, %f{number};" for number in range(4))
_DEBUGGED = (
    ".version 8.4\n.target sm_90a, debug\n.visible .entry kernel()\n{\n    .reg .f32 %f<4>;\n    .reg .b64 %rd<4>;\n"
    + "".join(f"    {line}\n" for line in f"{examples.ISSUED}\n{examples.WAIT}".splitlines())
    + "    ret;\n}\n"
)

RULES: Mapping[str, Rule] = {
    "copied-accumulator": Rule(
        "A wgmma.mma_async does not write a copy of an accumulator that another one may still write.",
        "The copy reads the accumulator, so that the assembler lets the instructions run one after the other. It says so with C7514.",
        "Use one accumulator for the whole group, or copy after wgmma.wait_group.",
        f"{examples.ISSUED}\n{_COPY}\n{examples.FENCE}\n{_AGAIN}\n{examples.COMMIT}\n{examples.WAIT}",
        f"{examples.ISSUED}\n{examples.WAIT}\n{_COPY}\n{examples.FENCE}\n{_AGAIN}\n{examples.COMMIT}\n{examples.WAIT}",
    ),
    "debug-build": Rule(
        "A module whose fences and waits are to be checked is compiled with optimisation.",
        "A compiler for debugging copies registers to memory and back between any two instructions. The checker cannot tell these copies "
        "from the author's, and does not follow registers through such a module.",
        "Check the PTX of a build without -G.",
        _DEBUGGED,
        _DEBUGGED.replace(", debug", ""),
    ),
    "missing-fence": Rule(
        "A wgmma.fence must come between the last write of a register and the wgmma.mma_async that uses it.",
        "Without it, the instruction may read the register before it is written. ptxas mends some cases and says so: C7519, C7520.",
        "Add wgmma.fence.sync.aligned before the first wgmma.mma_async, and after code that writes its registers.",
        f"{examples.WGMMA}\nwgmma.commit_group.sync.aligned;\n{examples.WAIT}",
        f"{examples.ISSUED}\n{examples.WAIT}",
    ),
    "missing-wait": Rule(
        "A wgmma.wait_group must come between a wgmma.mma_async and the first use of its accumulator.",
        "Until then the instruction may write the accumulator and read the registers of A. ptxas mends some cases: C7514, C7517, C7518.",
        "Add wgmma.commit_group after the instructions and wgmma.wait_group before their result is used.",
        f"{examples.ISSUED}\nst.global.f32 [%rd0], %f0;",
        f"{examples.ISSUED}\n{examples.WAIT}\nst.global.f32 [%rd0], %f0;",
    ),
}


class Hazard(NamedTuple):
    """Undefined behaviour at a place.

    Attributes:
        offset: byte offset of the token in the function's text.
        length: the length of the token, in bytes.
        rule: a key of :data:`ptxmma.check.rules.RULES`.
        instruction: the asynchronous instruction as it is written.
        message: the fault, and its repair.
        severity: the finding's severity.
    """

    offset: int
    length: int
    rule: str
    instruction: str
    message: str
    severity: Severity = "warning"


def first_issue(function: Function, rules: Protocol) -> Token | None:
    """The opcode of the first asynchronous instruction that a function issues; None where it issues none."""
    opcodes = (statement for statement in function.statements() if any(starts(statement.opcode, issue) for issue in rules.opcodes.issues))
    return next((Token(statement.opcode, statement.start) for statement in opcodes), None)


def hazards(function: Function, outline: Outline, rules: Protocol) -> list[Hazard]:
    """The faults of a function's asynchronous instructions, in the order of the text.

    A function that cannot be followed (a label is missing, a brace is not closed, branches without end) has no hazards.
    """
    try:
        return _Walk(function, outline, rules).hazards()
    except NotFollowedError:
        return []


class _Walk:
    """Carries what is known through the blocks of a function until nothing changes."""

    #: A fact goes round a loop at most this often; what is known is right after every time.
    _ROUNDS = 8
    #: Facts that are carried in one round: more are too many to hold.
    _MOST_WORK = 1_000_000

    def __init__(self, function: Function, outline: Outline, rules: Protocol) -> None:
        self._function, self._outline, self._rules = function, outline, rules
        self._blocks = blocks(outline)
        self._reported: dict[int, Hazard] = {}
        self._opcodes = {event.offset: event.opcode for block in self._blocks for event in block.events if isinstance(event, Event)}

    def hazards(self) -> list[Hazard]:
        """All hazards of the function.

        Raises:
            NotFollowedError: the function has too many branches.
        """
        follows = [block.follows for block in self._blocks]
        graph = Graph(follows)
        first = State(self._function.text.startswith(b".entry"))
        known: dict[int, State] = {}
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
                    state = functools.reduce(on_both, [known[other] for other in entering], state)
                    state = functools.reduce(on_either, [known[other] for other in repeating if other in known], state)
                    work += state.size() * (len(entering) + len(repeating))
                if events := self._blocks[number].events:
                    state = self._through(state, events)
                    work += state.size()
                if work > self._MOST_WORK:
                    raise NotFollowedError
                before = known.get(number)
                if before is not state and before != state:
                    known[number] = state
                    stale.update(follows[number])
            if not stale:
                break
        return [self._reported[offset] for offset in sorted(self._reported)]

    def _through(self, state: State, events: Sequence[Event | Stretch]) -> State:
        """The state after a block."""
        made = None
        for event in events:
            if not isinstance(event, Stretch) or self._concerns(made or state, event):
                made = made or state.copy()
                getattr(self, f"_{event.kind}")(made, event)
        return made or state

    def _concerns(self, state: State, stretch: Stretch) -> bool:
        """Return whether a stretch matters: an asynchronous instruction is at work on one of its registers, or follows."""
        busy = (operations.keys() for operations in (state.accumulators, state.fragments) if operations)
        return stretch.leads or any(not names.isdisjoint(stretch.names) for names in busy)

    def _stretch(self, state: State, stretch: Stretch) -> None:
        followed = self._outline.followed if stretch.leads else {*map(plain, (*state.accumulators, *state.fragments))}
        for event in stretch.events(followed):
            getattr(self, f"_{event.kind}")(state, event)
            if event.kind == "copy":
                followed.update(map(plain, event.written))

    def _call(self, state: State, _: Event) -> None:
        state.forget()

    def _fence(self, state: State, _: Event) -> None:
        state.fence()

    def _commit(self, state: State, _: Event) -> None:
        for operations in (state.accumulators, state.fragments):
            older = {at: at._replace(age=at.age + 1) for at in {*operations.values()}}
            for name, at in operations.items():
                operations[name] = older[at]

    def _wait(self, state: State, event: Event) -> None:
        for operations in (state.accumulators, state.fragments):
            for name in [name for name, at in operations.items() if at.age >= event.pending]:
                del operations[name]

    def _copy(self, state: State, event: Event) -> None:
        for name in event.read:
            if at := state.accumulators.get(name):
                state.accumulators[name] = at._replace(register=at.register or name)
                state.copied = True
        for target in event.written:
            rename(state.accumulators, target, event.read, event.predicated)
            rename(state.accessed, target, event.read, event.predicated)
            for accessed in state.alternatives:
                rename(accessed, target, event.read, event.predicated)
            state.fragments.pop(target, None)

    def _access(self, state: State, event: Event) -> None:
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
                state.settle([name])
            else:
                state.access([name], Access(b"", event.offset))

    def _issue(self, state: State, event: Event) -> None:
        shape = self._rules.shape(event.opcode)
        busy = next((name for name in event.read if name in state.accumulators), None)
        if busy is not None:
            self._early(state, event, busy, state.accumulators[busy], "is read", "write")
        self._order(state, event, shape)
        self._copied(state, event)
        if not event.predicated:
            operation = Operation(-1, event.offset)
            state.accumulators.update(dict.fromkeys(event.written, operation))
            state.fragments.update(dict.fromkeys(event.read, operation))
            state.access(event.written, Access(shape, event.offset))
            return
        for name in event.written:
            if name in state.accessed and state.accessed[name].shape != shape:
                del state.accessed[name]
        state.settle(event.written)

    # --- what is reported ---

    def _order(self, state: State, event: Event, shape: bytes) -> None:
        """Report a missing fence before an asynchronous instruction."""
        if not state.unfenced and state.shapes <= {shape}:
            return
        if state.unfenced:
            reasons = [self._reason(event, {UNFENCED: Access(b"", -1)}, shape)]
        elif reason := self._reason(event, state.accessed, shape):
            reasons = [reason]
        else:
            reasons = [self._reason(event, each, shape) for each in state.alternatives]
        if reasons and all(reasons):
            what = "; on another path, ".join(dict.fromkeys(reasons))
            self._report(event.offset, len(event.opcode), "missing-fence", event.opcode, what, self._rules.fence_source)
            state.fence()

    def _reason(self, event: Event, accessed: Mapping[bytes, Access], shape: bytes) -> str:
        """The reason that an instruction needs a fence after some accesses; empty without one."""
        fence = self._rules.opcodes.fence.decode()
        if UNFENCED in accessed:
            return f"no {fence} comes before the first {self._name(event)} of the kernel"
        names = (name for name in (*event.written, *event.read) if name in accessed and accessed[name].shape != shape)
        bad = next(names, None)
        if bad is None:
            return ""
        access = accessed[bad]
        how = f"an operation of shape {access.shape.decode()}" if access.shape else "an ordinary instruction"
        return f"{_plain(bad)} was last accessed by {how} in line {self._line(access.offset)}, without a {fence} in between"

    def _copied(self, state: State, event: Event) -> None:
        """Report an accumulator that is another one of an instruction at work, under a new name."""
        names = event.written if state.copied else ()
        busy = ((name, state.accumulators[name]) for name in names if name in state.accumulators)
        name, at = next(((name, at) for name, at in busy if at.register not in (b"", name)), (b"", None))
        if at is not None:
            text = f"{_plain(name)} is a copy of {_plain(at.register)}, which the {self._name(event)} of line {self._line(at.offset)} may "
            text += "still write: ptxas runs the two one after the other (C7514); use one accumulator, or wait first"
            hazard = Hazard(event.offset, len(event.opcode), "copied-accumulator", event.opcode.decode(), text, "note")
            self._reported.setdefault(event.offset, hazard)

    def _early(self, state: State, event: Event, name: bytes, at: Operation, how: str, does: str) -> None:
        """Report a missing wait."""
        opcode = self._opcodes[at.offset]
        wait, commit = self._rules.opcodes.wait.decode(), self._rules.opcodes.commit.decode()
        needed = f"{wait} {at.age}" if at.age > 0 else f"{wait} 0"
        missing = f"{commit} and {needed} are missing" if at.age < 0 else f"{needed} is missing"
        operation = f"the {_start(opcode, self._rules)} of line {self._line(at.offset)}"
        what = f"{_plain(name)} {how} while {operation} may still {does} it: {missing}"
        length = len(_plain(name)) if event.kind == "access" else len(event.opcode)
        self._report(event.offset, length, "missing-wait", opcode, what, self._rules.wait_source)
        state.accumulators.clear()
        state.fragments.clear()

    def _report(self, offset: int, length: int, rule: str, opcode: bytes, what: str, source: str) -> None:
        message = f"{what}; behaviour is undefined (PTX ISA {source})"
        self._reported.setdefault(offset, Hazard(offset, length, rule, opcode.decode(), message))

    def _name(self, event: Event) -> str:
        return _start(event.opcode, self._rules)

    def _line(self, offset: int) -> int:
        return self._function.position(offset)[0]


def _start(opcode: bytes, rules: Protocol) -> str:
    return next(issued for issued in rules.opcodes.issues if starts(opcode, issued)).decode()


def _plain(name: bytes) -> str:
    """A register's name as it is written."""
    return plain(name).decode("utf-8", "replace")
