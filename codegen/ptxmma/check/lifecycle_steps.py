"""The instructions of a kernel that concern a lifecycle, object by object, and a quick look at whether any may come at a wrong time."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ptxmma.check.kernels import Kernel, threads_at
from ptxmma.check.transitions import EXIT, PARTIAL, Held, Machine, Step, is_made
from ptxmma.ptx import thread_values
from ptxmma.ptx.blocks import opposite
from ptxmma.ptx.graphs import spread
from ptxmma.ptx.outline import is_any
from ptxmma.ptx.thread_masks import ALL_THREADS

if TYPE_CHECKING:
    from ptxmma.model import Transition
    from ptxmma.ptx.flow_events import Event


def steps_of(kernel: Kernel, machine: Machine, objects: Mapping[int, Hashable]) -> Iterator[tuple[Hashable, list[list[Step]]]]:
    """The objects of a lifecycle, each with the instructions of each block that concern it."""
    of_objects: dict[Hashable, dict[int, list[Event]]] = {}
    of_all: dict[int, list[Event]] = {}
    for number, event in _concerning(kernel, machine):
        if not machine.life.each:
            of_all.setdefault(number, []).append(event)
        elif event.offset in objects:
            of_objects.setdefault(objects[event.offset], {}).setdefault(number, []).append(event)
        elif any(each.of_all for each in machine.on(event.opcode)):
            of_all.setdefault(number, []).append(event)
    shared = {number: [*machine.steps(kernel.text, events)] for number, events in of_all.items()}
    if not machine.life.each:
        yield None, [shared.get(number, []) for number in range(len(kernel.blocks))]
    for held, own in of_objects.items():
        if not _happens_once(kernel, machine, own):
            steps: list[list[Step]] = [[] for _ in kernel.blocks]
            for number in {*own, *shared}:
                steps[number] = sorted([*machine.steps(kernel.text, own.get(number, ())), *shared.get(number, ())])
            yield held, steps


def _concerning(kernel: Kernel, machine: Machine) -> Iterator[tuple[int, Event]]:
    """The instructions that concern a lifecycle, with the numbers of their blocks."""
    without = {*_apart(kernel, machine.life.meets)}
    made = functools.cache(lambda opcode: [each for each in machine.on(opcode) if not (each.before and _all_come_before(kernel, each))])
    for number, event in kernel.named(made):
        if event.offset not in without and any(_may_count(kernel, event, each) for each in made(event.opcode)):
            yield number, event


def _apart(kernel: Kernel, words: tuple[str, ...]) -> Iterator[int]:
    """The places of barriers that may not wait for the threads which execute some instructions.

    None of the threads that come to the barrier has executed one, or met one that has; or all threads of the block come to a barrier
    that waits for fewer.  Where a register names a barrier, it may be any.

    Args:
        kernel: the kernel.
        words: the first words of the instructions.
    """
    text, executed = kernel.text, kernel.executed if words else {}
    barriers = kernel.named(lambda opcode: opcode.startswith(b"bar")) if executed else []
    named = {place: match for _, (_, place, *_) in barriers if place in executed and (match := PARTIAL.match(text, place)) is not None}
    coming = {match[1]: 0 for match in named.values()}
    if not named or any(name.startswith(b"%") for name in coming):
        return
    for place, match in named.items():
        coming[match[1]] |= executed[place].threads
    met = 0
    for _, event in kernel.named(lambda opcode: is_any(opcode, words)):
        met |= threads_at(executed, event.offset)
    for _ in coming:  # in each round, one barrier more may have met them
        for threads in coming.values():
            met |= threads if threads & met else 0
    # The kernel is for blocks that have a thread which executes each instruction.
    first = max(each.threads & -each.threads for each in executed.values())
    exist = max(first, 1 << (thread_values.threads_of(text) - 1) if b".reqntid" in text[: text.find(b"{")] else 1)
    for place, match in named.items():
        if place not in kernel.executed_together:
            continue
        threads = kernel.executed_together[place].threads
        waits_for_fewer = match[2].isdigit() and (threads & (2 * exist - 1)).bit_count() > int(match[2])
        if waits_for_fewer or not coming[match[1]] & met:
            yield place


def _may_count(kernel: Kernel, event: Event, transition: Transition) -> bool:
    """Return whether an instruction comes before, or after, others in any thread, as a transition wants."""
    if transition.after and (event.offset in kernel.preceding(transition.after) or event.offset in kernel.own_waits()):
        return False
    return not transition.before or event.offset in kernel.preceding(transition.before)


def _all_come_before(kernel: Kernel, transition: Transition) -> bool:
    """Return whether none of a transition's instructions comes after the first of those that all are to come before."""
    early = kernel.preceding(transition.before)
    return all(event.offset in early for _, event in kernel.named(lambda opcode: is_made(transition, opcode)))


def _happens_once(kernel: Kernel, machine: Machine, events: Mapping[int, Sequence[Event]]) -> bool:
    """Return whether all that happens to an object, by the block, is one right instruction that no path repeats: most need no walk."""
    (number, (first, *others)), *more = events.items()
    start = machine.life.start
    may_end = machine.on(EXIT) or any(each.of_all and (each.rule or start in each.states) for each in machine.life.transitions)
    if others or more or may_end or machine.is_wrong(start, first.opcode):
        return False
    return not any(number in loop for loop in kernel.graph.loops)


def may_go_wrong(kernel: Kernel, machine: Machine, steps: Sequence[Sequence[Step]]) -> bool:
    """Return whether an instruction comes at a wrong time on any path that a thread may take.

    Args:
        kernel: the kernel.
        machine: the lifecycle.
        steps: the instructions of each block that concern it.
    """
    first: Held = (machine.life.start, 0)
    rank, threads_of = kernel.graph.rank, kernel.registers.threads
    # Objects of which more make no difference: one more than an instruction lets remain, and two.
    most = max((at.number + 1 for block in steps for at, _ in block), default=0) + 1
    wrong: dict[tuple[int, Held], int] = {}  # masks of threads for which an instruction comes at a wrong time

    def leaving(node: tuple[int, Held]) -> Iterator[tuple[tuple[int, Held], int]]:
        """The states with which threads leave a block that they enter in a state."""
        number, held = node
        states = {held: ALL_THREADS}
        for at, predicate in steps[number]:
            taking, skipping = (threads_of(predicate), threads_of(opposite(predicate))) if predicate else (ALL_THREADS, 0)
            after: dict[Held, int] = {}
            for held, threads in states.items():
                if done := threads & taking:
                    if machine.is_wrong(held[0], at.opcode):
                        wrong[node] = wrong.get(node, 0) | done
                    for to in machine.after(held, at, most):
                        after[to] = after.get(to, 0) | done
                if skipped := threads & skipping:
                    after[held] = after.get(held, 0) | skipped
            states = after
        if machine.harmless:
            states.pop(first, None)
        for following, taking in kernel.takers[number]:
            for held, threads in states.items():
                if following >= 0:
                    yield (following, held), threads & taking
                elif machine.is_wrong(held[0], EXIT):
                    wrong[node] = wrong.get(node, 0) | threads & taking

    # Only what leaves the first state counts if nothing is wrong in it: threads may come in it to every instruction.
    begins = [number for number in rank if steps[number]] if machine.harmless else [0]
    found = spread({(number, first): ALL_THREADS for number in begins}, leaving, rank=lambda node: rank[node[0]])
    return any(found[node] & threads for node, threads in wrong.items())
