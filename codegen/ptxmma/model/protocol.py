"""The order of asynchronous instructions."""

from __future__ import annotations

from typing import Annotated, Literal

from ptxmma.model.fields import SOME, Entry, FamilyName, InstructionName, Name, Positive, Source, Text, Token, like, names


class Step(Entry, frozen=True, kw_only=True):
    """One step of the asynchronous protocol."""

    role: Annotated[str, like(r"^[a-z][a-z-]*$", "lower-case words with '-' between them")]  # "fence-registers": how code refers to it
    name: Text  # "fence registers": for readers
    instruction: InstructionName = ""
    text: Text
    source: Source


class Definition(Entry, frozen=True, kw_only=True):
    """A term with its formula."""

    name: Text  # "warp rank"
    formula: Text = ""
    text: Text
    source: Source


class Ordering(Entry, frozen=True, kw_only=True):
    """The instruction that must come between two events so that the second sees the first."""

    earlier: Text  # "access to a register"
    later: Text  # "wgmma.mma_async with it as accumulator or fragment of A"
    needs: Annotated[
        str, like(r"^[a-z0-9_.:]*$", "an instruction, or empty"), names("instruction")
    ]  # "wgmma.fence"; "": they are ordered anyway
    by: Text = ""  # the threads that execute it: "every warp of the warpgroup"
    text: Text
    source: Source


class Issuer(Entry, frozen=True, kw_only=True):
    """The threads that execute some instructions, so that these take effect once."""

    instructions: Annotated[tuple[InstructionName, ...], SOME]  # ("tcgen05.alloc", "tcgen05.dealloc")
    modifiers: tuple[Token, ...] = ()  # modifiers that they have, with or without more after "::": ("mbarrier",)
    alone: Text  # the threads in one thread block: "one warp"
    pair: Text = ""  # the threads in a pair of thread blocks: "one warp of each"
    once: Literal["", "always", "operands"] = ""  # whether more threads repeat it; "operands": if all of their operands are the same
    both: tuple[Token, ...] = ()  # modifiers with which both thread blocks of a pair execute them: ("cta_group::2",)
    lone: tuple[Token, ...] = ()  # modifiers with which one thread block of a pair executes them for both: ("cta_group::2",)
    text: Text
    source: Source


class SameQualifier(Entry, frozen=True, kw_only=True):
    """A qualifier that has one value in all instructions of a kernel."""

    qualifier: Name  # "cta_group"
    source: Source


class Transition(Entry, frozen=True, kw_only=True):
    """The effect of instructions on a state: another state, or a fault."""

    states: Annotated[tuple[Name, ...], SOME]  # the states in which it happens: ("allocated",)
    on: Annotated[tuple[Name, ...], SOME]  # the instructions, or "exit": ("tcgen05.dealloc",)
    modifiers: tuple[Token, ...] = ()  # modifiers that the instructions have, with or without more after "::": ("bulk_group",)
    without: tuple[Token, ...] = ()  # modifiers that they lack: ("global",)
    to: Name = ""  # the state after it; empty where the instructions are wrong in these states
    adds: Literal[-1, 0, 1] = 0  # objects that come or go, where several may exist; with none left the state changes
    counted: bool = False  # whether it happens only where more objects exist than the number that the instruction names
    keeps: bool = False  # whether the objects, and the instructions that led to the state, stay as they are
    full: bool = False  # whether it is wrong only where the object does not fit beside the others
    several: bool = False  # whether it is wrong only where several threads have executed the instruction that led to the state
    always: bool = False  # whether it is wrong only where no path comes to it at a right time
    by_others: tuple[Name, ...] = ()  # whether it is wrong only where other threads may execute one of these: ("tcgen05.ld",)
    after: tuple[Name, ...] = ()  # whether it counts only after the first of these, in any thread: ("tcgen05.ld",)
    before: tuple[Name, ...] = ()  # whether it counts only before the first of these, and others come after: ("tcgen05.mma",)
    of_all: bool = False  # whether it concerns every object, where each has a state of its own; otherwise the one that it names
    first: bool = False  # whether the object is the one that the first operand in brackets names, not the last
    rule: Name = ""  # the rule of the checker that the instructions break
    advice: bool = False  # whether that is only a note: others write it so, and the manual does not rule it out
    text: Text
    mend: str = ""  # the repair of what breaks the rule, in the imperative: "write tcgen05.commit after the last product"
    source: Source

    def __post_init__(self) -> None:
        if bool(self.rule) != bool(self.mend):
            raise ValueError("what breaks a rule needs mend, its repair, and nothing else has one")


class Lifecycle(Entry, frozen=True, kw_only=True):
    """The states of something that a kernel uses; instructions that no transition names leave the state as it is."""

    name: Text  # "allocation of tensor memory"
    #: The objects that have a state of their own. "place": an address that is always the same, which the last operand in brackets names.
    #: "ring": stages that a loop fills; a wait for a filled stage names it, an arrival that says that a stage is free, and a copy from one.
    #: "one ring": the same, of kernels in which arrivals free the stages of one ring alone.
    #: "result": the one mbarrier of which arrivals say that a result is complete, where all others say that a stage is free.
    each: Literal["", "place", "ring", "one ring", "result"] = ""
    shared: bool = False  # whether the threads of a thread block share the state; otherwise each thread has its own
    alone: bool = False  # whether it counts only in kernels into whose shared memory no bulk copy brings data
    of_cluster: bool = False  # whether it concerns other thread blocks of a cluster: nothing is wrong on a path of a cluster of one
    where: tuple[Name, ...] = ()  # it counts only in kernels with all of these instructions: ("barrier.cluster",)
    apart: tuple[Name, ...] = ()  # a fault counts only in threads that execute none of these: ("ldmatrix",)
    meets: tuple[Name, ...] = ()  # a barrier of some threads counts only if one of them executes such an instruction: ("mbarrier.init",)
    start: Name
    transitions: Annotated[tuple[Transition, ...], SOME]


class Counterpart(Entry, frozen=True, kw_only=True):
    """Instructions that are wrong in a kernel that lacks others on the same object."""

    on: Annotated[tuple[Name, ...], SOME]  # the instructions: ("mbarrier.try_wait",)
    modifiers: tuple[Token, ...] = ()  # modifiers that they have, with or without more after "::"
    unless: Token = ""  # the operand after the object with which they need none: "1"
    needs: Annotated[tuple[Name, ...], SOME]  # the others, of which the kernel has one at least: ("mbarrier.arrive",)
    each: bool = False  # whether each place of an array needs one, of which the instructions name any
    rule: Name  # the rule of the checker that the instructions break otherwise
    text: Text
    source: Source


class ByteCount(Entry, frozen=True, kw_only=True):
    """Bytes that instructions bring to an object, of which others say beforehand how many they are."""

    expects: Annotated[tuple[Name, ...], SOME]  # the number is the operand after the object: ("mbarrier.expect_tx",)
    brings: Annotated[tuple[Name, ...], SOME]  # the number is the operand before the object: ("cp.async.bulk",)
    stores: tuple[Name, ...] = ()  # the number is the product of their extents, in each thread: ("st.async",)
    answers: tuple[Name, ...] = ()  # their type gives the number: ("clusterlaunchcontrol.try_cancel",), whose type is .b128
    rule: Name  # the rule of the checker that other numbers break
    text: Text
    source: Source


class PhaseFault(Entry, frozen=True, kw_only=True):
    """A fault in the use of an object's phases."""

    #: "endless": no thread completes the phase before one waits for it; "early": the first wait is for the phase before the first;
    #: "unchanged": each round of a loop waits for the same parity; "few", "many": fewer or more arrive than a phase counts;
    #: "refilled": a loop copies to the same stage again before its readers can say that it is free; "overwritten": it writes a result
    #: again before; "untold": a thread block of a cluster waits, and nothing but commits with masks that do not name it arrives;
    #: "unheard": nothing waits at the end for arrivals in other thread blocks, which may have ended; "uneven": the parity changes after
    #: another number of rounds than a ring has places; "unarrived": a loop waits for one phase after the other, and no loop arrives;
    #: "unexpected": a loop brings bytes in each phase, and no loop expects them; "unawaited": a loop brings them, and no loop waits;
    #: "unanswered": a loop copies to several thread blocks again, of which no other can say that its readers are done.
    fault: Literal[
        "endless",
        "early",
        "unchanged",
        "uneven",
        "few",
        "many",
        "refilled",
        "overwritten",
        "untold",
        "unheard",
        "unarrived",
        "unexpected",
        "unawaited",
        "unanswered",
    ]
    rule: Name  # the rule of the checker that it breaks
    text: Text
    source: Source


class Pairing(Entry, frozen=True, kw_only=True):
    """The needs of objects, which the last operand in brackets of an instruction names."""

    name: Text  # "mbarriers"
    made: Annotated[tuple[Name, ...], SOME]  # the instructions that make them; kernels without these are not judged
    without: tuple[Token, ...] = ()  # modifiers with which the last operand in brackets is another object
    needs: Annotated[tuple[Counterpart, ...], SOME]
    counts: tuple[ByteCount, ...] = ()
    waits: tuple[Name, ...] = ()  # the instructions that wait for a phase, which the operand after the object names by its parity
    arrives: tuple[Name, ...] = ()  # the instructions of which every phase needs one at least
    orders: tuple[Name, ...] = ()  # other instructions by which threads may tell each other that a stage is free
    tracked: tuple[Name, ...] = ()  # asynchronous instructions of which only an arrival that tracks them says that they have read a stage
    reads: tuple[Name, ...] = ()  # the instructions that read the results of these: ("tcgen05.ld",)
    phases: tuple[PhaseFault, ...] = ()


class Race(Entry, frozen=True, kw_only=True):
    """Accesses of different threads to the same bytes of shared memory, which one of ``Spec.meetings`` has to order."""

    earlier: Annotated[tuple[Name, ...], SOME]  # ("st.shared",)
    later: Annotated[tuple[Name, ...], SOME]  # ("cp.async.bulk",)
    modifiers: tuple[Token, ...] = ()  # modifiers that the later ones have: ("bulk_group",)
    warps: bool = False  # whether only threads of different warps count
    resets: tuple[Name, ...] = ()  # waits of the thread itself, after which one of these comes: ("cp.async.wait_group",)
    rule: Name
    text: Text
    mend: Text
    source: Source


class Pool(Entry, frozen=True, kw_only=True):
    """Registers that the warps of a thread block give up and take."""

    takes: Name  # the instruction that waits until there are enough; its operand is the number for each thread: "setmaxnreg.inc"
    gives: Name  # the instruction that gives some up: "setmaxnreg.dec"
    size: Positive  # registers of a multiprocessor
    granule: Positive  # each thread has a multiple of so many at launch
    rule: Name  # the rule of the checker that asking for more breaks
    text: Text
    source: Source


class ProxyAccess(Entry, frozen=True, kw_only=True):
    """The proxy of an access to memory."""

    access: Text
    proxy: Literal["async", "generic", "tensormap"]
    source: Source


class Protocol(Entry, frozen=True, kw_only=True):
    """The order of some families' asynchronous instructions against registers and memory."""

    title: Text  # "wgmma"
    families: Annotated[tuple[FamilyName, ...], SOME]  # the families whose asynchronous instructions it orders
    definitions: tuple[Definition, ...]
    steps: tuple[Step, ...]
    orderings: tuple[Ordering, ...]
    proxies: tuple[ProxyAccess, ...]
    issuers: tuple[Issuer, ...] = ()
    same: tuple[SameQualifier, ...] = ()
    lifecycles: tuple[Lifecycle, ...] = ()
    pairings: tuple[Pairing, ...] = ()
    pools: tuple[Pool, ...] = ()
    races: tuple[Race, ...] = ()
    others: tuple[Name, ...] = ()  # instructions of transitions that the spec does not have: ("bar",)
    source: Source
