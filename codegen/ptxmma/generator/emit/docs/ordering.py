"""The protocol as one page needs it: the threads that execute an instruction, its completion, and what comes before and after it."""

from __future__ import annotations

import re

from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.model import InstructionSet, Ordering, Protocol, Spec

_NAME = re.compile(r"[a-z]\w*(?:(?:\.|::)\w+)+")
#: The verb for what tells completion, by the role of its step.
_TELLS = {"commit": "signals its completion"}


def summary(spec: Spec, entry: InstructionSet) -> str:
    """A sentence or two: what the instruction does, who executes it, and what tells that an asynchronous one is complete."""
    return f"{rest.text(entry.title)}. {_executed(spec, entry)}.{_completed(spec, entry)}"


def _executed(spec: Spec, entry: InstructionSet) -> str:
    threads = spec.scopes[entry.scope]
    if threads > 1:
        return f"All {threads} threads of a {entry.scope} execute it together"
    protocol = _protocol(spec, entry)
    issuers = protocol.issuers if protocol else ()
    issuer = next((each for each in issuers if entry.name in each.instructions), None)
    if issuer is None:
        return f"Each {entry.scope} executes it by itself"
    alone = f"{issuer.alone[0].upper()}{issuer.alone[1:]} issues it"
    return f"{alone}; in a pair of thread blocks, {issuer.pair}" if issuer.pair else alone


def _completed(spec: Spec, entry: InstructionSet) -> str:
    """The instruction that waits for an asynchronous one, as a sentence."""
    protocol = _protocol(spec, entry)
    if not entry.asynchronous or protocol is None:
        return ""
    waits = [each.needs for each in protocol.orderings if each.needs and _mentions(each.earlier, entry)]
    if not waits:
        return " It runs asynchronously."
    role = next((step.role for step in protocol.steps if step.instruction == waits[0]), "")
    return f" It runs asynchronously: {_linked(spec, waits[0])} {_TELLS.get(role, 'waits for it')}."


def around(spec: Spec, entry: InstructionSet) -> tuple[str, str]:
    """The steps before and after the issue of an instruction, and what has to come between it and others; empty where nothing has to."""
    protocol = _protocol(spec, entry)
    if not entry.asynchronous or protocol is None:
        return "", ""
    known = {each.name for each in spec.instructions} | {step.instruction for step in protocol.steps}
    concerning = [each for each in protocol.orderings if _concerns(each, entry, known)]
    elsewhere = {each.needs for each in protocol.orderings} - {each.needs for each in concerning}
    steps = [step for step in protocol.steps if not step.instruction or step.instruction not in elsewhere]
    listed = "".join(
        f"#. {_linked(spec, step.instruction) if step.instruction else rest.text(step.name)}: {rest.text(step.text)}\n" for step in steps
    )
    table = struct_tables.table(
        concerning,
        titles={"needs": "Between them", "by": "Executed by", "text": "Why"},
        cells={"needs": lambda each: _linked(spec, each.needs) if each.needs else "nothing"},
        first=("earlier", "needs", "later", "by", "text"),
    )
    return listed, table


def _protocol(spec: Spec, entry: InstructionSet) -> Protocol | None:
    return next((each for each in spec.protocols if entry.family in each.families), None)


def _mentions(text: str, entry: InstructionSet) -> bool:
    """Return whether a text names an instruction, or one of which it is a kind: ``tcgen05.mma.sp`` is a ``tcgen05.mma``."""
    return any(_is_kind(entry.name, name) for name in _NAME.findall(text))


def _is_kind(name: str, of: str) -> bool:
    """Return whether a name is another one, or goes on after it."""
    return name == of or name.startswith(f"{of}.")


def _concerns(ordering: Ordering, entry: InstructionSet, known: set[str]) -> bool:
    """Return whether an ordering names an instruction, or names none, so that it is about every one."""
    text = f"{ordering.earlier} {ordering.later}"
    return _mentions(text, entry) or not any(_is_kind(name, each) for name in _NAME.findall(text) for each in known)


def _linked(spec: Spec, name: str) -> str:
    """The name of an instruction, with a link to its page where it has one."""
    return rest.link(name, rest.label("instruction", name)) if any(each.name == name for each in spec.instructions) else rest.code(name)
