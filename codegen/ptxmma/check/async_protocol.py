"""The protocol of asynchronous instructions: which instructions issue, fence, commit and wait."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.ptx.flow_events import Asynchronous

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog


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
