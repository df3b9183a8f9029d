"""Is the fence missing between ordinary stores to shared memory and the async proxy, which reads it?

Addresses are not followed.  A kernel is reported only if it has no such fence at all, calls nothing that may have one, and if what the
async proxy reads can come from ordinary stores only:

- by an asynchronous instruction: no bulk copy brings data into shared memory;
- by a bulk copy out of shared memory: the kernel computes with matrices, so that it stores results.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.check.remarks import Remark
from ptxmma.ptx.calls import calls_others
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptxmma.check.async_protocol import Protocol
    from ptxmma.ptx.statements import Function

#: Writes to shared memory through the generic proxy; cp.async without .bulk is one (PTX ISA 9.7.9.25).
#: Each pattern begins with letters, and looks behind them for what may precede: so a search is ten times as fast.
_STORES = (
    re.compile(rb"st(?<![\w$%.]st)(?:(?:\.\w+)*\.shared|matrix)\b"),
    re.compile(rb"cp\.async\.c(?<![\w$%.]cp\.async\.c)[ag]\.shared\b"),
)
_BULK_IN = re.compile(rb"cp\.async\.bulk(?<![\w$%.]cp\.async\.bulk)(?:\.\w+)*\.shared::")
_BULK_OUT = re.compile(rb"cp(?<![\w$%.]cp)(?:\.reduce)?\.async\.bulk(?:\.\w+)*\.global\.shared::[\w.:]*")


def of_kernel(function: Function, protocol: Protocol, *, asynchronous: bool) -> Iterator[tuple[Remark, bytes]]:
    """The remark that a kernel has no fence between the proxies, with the opcode that it is about.

    Args:
        function: the kernel.
        protocol: of its asynchronous instructions.
        asynchronous: whether it has such instructions.
    """
    text, fence = function.text, protocol.memory_fence
    if not text.startswith(b".entry") or not fence or not (asynchronous or b".async.bulk" in text):
        return  # nothing reads through the async proxy
    if fence.encode() in text:
        return
    stores = [match for match in (each.search(text) for each in _STORES) if match]
    if not stores or calls_others(text):
        return
    stored = min(stores, key=lambda match: match.start())
    out = _BULK_OUT.search(text, stored.end())
    issues = (text.find(opcode + b".", stored.end()) for opcode in protocol.opcodes.issues)
    issue = min((place for place in issues if place >= 0), default=-1)
    if issue >= 0 and not _BULK_IN.search(text):
        opcode = re.compile(rb"[\w.:]+").match(text, issue)
        assert opcode  # it begins there
        reader = Token(opcode[0], issue)
    elif out is not None:
        reader = Token(out[0], out.start())
    else:
        return
    line = function.position(stored.start())[0]
    message = f"it reads shared memory to which ordinary stores such as that of line {line} wrote, and the kernel has no {fence}"
    message += f": behaviour is undefined (PTX ISA {protocol.memory_source})"
    yield Remark(reader, "warning", "missing-proxy-fence", message), reader.text
