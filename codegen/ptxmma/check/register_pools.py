"""Registers that the warps of a kernel ask for, against the registers of its thread block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.ptx import thread_values
from ptxmma.ptx.outline import starts
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.check.kernels import Kernel
    from ptxmma.model import Pool, Spec

_ROLES = (
    ".version 8.0\n.target sm_90a\n.visible .entry kernel()\n    .maxntid 384\n{{\n    .reg .pred %p0;\n    .reg .b32 %r0;\n"
    "    mov.u32 %r0, %tid.x;\n    setp.ge.u32 %p0, %r0, 128;\n    @%p0 bra consumer;\n    setmaxnreg.dec.sync.aligned.u32 {};\n    ret;\n"
    "consumer:\n    setmaxnreg.inc.sync.aligned.u32 {};\n    ret;\n}}\n"
)

RULES: Mapping[str, Rule] = {
    "register-pool": Rule(
        "The registers that setmaxnreg asks for are there: those of all warps fit into what the thread block has at its launch.",
        "With setmaxnreg.inc, a warp waits until others have given up enough registers. It waits for ever if they do not. At launch, each "
        "thread has a multiple of 8 registers, and the thread block has no more than a multiprocessor does.",
        "Lower the number of setmaxnreg.inc or of setmaxnreg.dec, so that the sum over the warps fits.",
        _ROLES.format(80, 224),
        _ROLES.format(40, 232),
    ),
}

_NUMBER = re.compile(rb"\s*(\d+)\s*;")
#: The registers of each thread, and the thread blocks of a multiprocessor, that a kernel declares.
_REGISTERS, _BLOCKS = re.compile(rb"\.maxnreg\s+(\d+)"), re.compile(rb"\.minnctapersm\s+(\d+)")


class _Change(NamedTuple):
    """An instruction that changes the registers of each thread.

    Attributes:
        token: its opcode.
        registers: the number from then on.
        threads: a mask of the threads that may execute it.
    """

    token: Token
    registers: int
    threads: int


class RegisterPools:
    """Judges kernels by the pools of a spec's protocols."""

    def __init__(self, spec: Spec) -> None:
        self._pools = [pool for protocol in spec.protocols for pool in protocol.pools]
        self._warp = spec.scopes["warp"]

    def of_kernel(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that ask for more than there is, each with the opcode that it is about."""
        text = kernel.text
        for pool in self._pools:
            if pool.takes.encode() not in text:
                continue
            changes = [
                _Change(Token(each.opcode, each.offset), int(number[1]), each.threads)
                for each in kernel.executed.values()
                if starts(each.opcode, pool.takes.encode()) or starts(each.opcode, pool.gives.encode())
                if (number := _NUMBER.match(text, each.offset + len(each.opcode)))
            ]
            for change, message in _overdrawn(text, pool, changes, self._warp):
                yield Remark(change.token, "warning", pool.rule, f"{message} (PTX ISA {pool.source})"), change.token.text


def _overdrawn(text: bytes, pool: Pool, changes: Sequence[_Change], warp: int) -> Iterator[tuple[_Change, str]]:
    """The first instruction that asks for what is not there, and the reason."""
    head = text[: text.find(b"{")]
    taking = [each for each in changes if starts(each.token.text, pool.takes.encode())]
    if not taking:
        return
    launched = count = 0
    if thread_values.is_limited(text) and b"%tid.y" not in text and b"%tid.z" not in text:
        count = thread_values.threads_of(text)
        blocks = int(match[1]) if (match := _BLOCKS.search(head)) else 1
        launched = pool.size // blocks // count // pool.granule * pool.granule
        launched = min(launched, int(match[1])) if (match := _REGISTERS.search(head)) else launched
    if len(taking) == len(changes) and max(each.registers for each in taking) > launched:
        yield taking[0], f"it waits for registers, and no {pool.gives} of the kernel gives any up; write that in other warps"
        return
    asked = sum(_fewest(changes, first, warp) for first in range(0, count, warp)) * warp
    if asked > launched * count:
        has = f"{count} threads have no more than {launched} each at launch, {launched * count:,} in all; lower a number"
        yield taking[-1], f"the warps ask for {asked:,} registers together, and {has}"


def _fewest(changes: Sequence[_Change], first: int, warp: int) -> int:
    """The fewest registers that each thread of a warp may have at the end; 0 for one that may change nothing."""
    threads = (1 << warp) - 1 << first
    return min((each.registers for each in changes if each.threads & threads), default=0)
