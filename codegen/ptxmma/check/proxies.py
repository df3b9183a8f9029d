"""Missing fences between ordinary stores to shared memory and the async proxy, which reads it.

Addresses are not followed.  A kernel is reported only if it has no such fence at all, calls nothing that may have one, and if what the
async proxy reads can come from ordinary stores only:

- by an instruction with a matrix descriptor: no bulk copy brings data into shared memory;
- by a bulk copy out of shared memory: the kernel computes with matrices, so that it stores results, or no bulk copy brings data, either.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.catalog.roles import matrices
from ptxmma.check import rule_examples as examples
from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.check.kernels import Kernel

#: The step of a protocol that orders shared memory, and the operands that say which of it an instruction reads.
_FENCE, _DESCRIPTORS = "fence-memory", ("descriptor", "shared-descriptor")
#: The step that orders the source of a bulk copy.
_FENCE_OF_SOURCE = "fence-source"
#: Writes to shared memory through the generic proxy; cp.async without .bulk is one (PTX ISA 9.7.9.25).
#: Each pattern begins with letters, and looks back over them for the text that may precede: so a search is ten times as fast.
_STORES = (
    re.compile(rb"st(?<![\w$%.]st)(?!\.async)(?:(?:\.\w+)*\.shared|matrix)\b"),
    re.compile(rb"cp\.async\.c(?<![\w$%.]cp\.async\.c)[ag]\.shared\b"),
)

RULES: Mapping[str, Rule] = {
    "missing-proxy-fence": Rule(
        "A fence.proxy.async is between ordinary stores to shared memory and what reads it through the async proxy.",
        "Wgmma and bulk copies read shared memory through another proxy than st, stmatrix and cp.async write it. Without the fence, they "
        "may read what was there before. A barrier does not order the two.",
        "Execute fence.proxy.async.shared::cta in every thread that stored, before the barrier that the reader waits for.",
        f"st.shared.b32 [tile], %r0;\nbar.sync 0;\n{examples.ISSUED}\n{examples.WAIT}",
        f"st.shared.b32 [tile], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n{examples.ISSUED}\n{examples.WAIT}",
    ),
}
#: A bulk copy into shared memory.
BULK_IN = re.compile(rb"cp\.async\.bulk(?<![\w$%.]cp\.async\.bulk)(?:\.(?!global\b)[\w:]+)*\.shared::")
_OPCODE = re.compile(rb"[\w.:]+")
_BULK_OUT = re.compile(rb"cp(?<![\w$%.]cp)(?:\.reduce)?\.async\.bulk(?:\.\w+)*\.global\.shared::[\w.:]*")


class Proxies:
    """Judges kernels by the protocols that have a fence between the proxies; of a spec without one, it passes all."""

    def __init__(self, catalog: Catalog) -> None:
        spec = catalog.database.spec
        steps = [(entry.families, step) for entry in spec.protocols for step in entry.steps if step.role == _FENCE]
        #: The fence that orders what an instruction reads, by how its opcode starts.
        self._fences = {
            entry.start: step
            for families, step in steps
            for entry in spec.instructions
            if entry.family in families and any(kind.kind in _DESCRIPTORS for kind in entry.operand_kinds.values())
        }
        #: The fence that orders what a bulk copy reads.
        self._of_source = next((step for entry in spec.protocols for step in entry.steps if step.role == _FENCE_OF_SOURCE), None)
        #: The starts of opcodes that compute with matrices.
        self._computing = tuple(entry.start for entry in spec.instructions if matrices(entry))

    def of_kernel(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remark that a kernel has no fence between the proxies, with the opcode that it is about."""
        text, opcodes = kernel.text, kernel.opcodes
        readers = [start for start in self._fences if any(opcode.startswith(start) for opcode in opcodes)]
        if not text.startswith(b".entry") or not self._fences or not (readers or b".async.bulk" in text):
            return  # nothing reads through the async proxy
        computes = any(opcode.startswith(self._computing) for opcode in opcodes)
        step = self._fences[readers[0]] if readers else next(iter(self._fences.values()))
        if step.instruction.encode() in text:
            return
        stores = [match for match in (each.search(text) for each in _STORES) if match]
        if not stores or not kernel.is_closed:
            return
        stored = min(stores, key=lambda match: match.start())
        out = _BULK_OUT.search(text, stored.end()) or _BULK_OUT.search(text)  # the warp that copies may come first in the text
        issues = (text.find(opcode + b".", stored.end()) for opcode in readers)
        issue = min((place for place in issues if place >= 0), default=-1)
        brings = bool(BULK_IN.search(text))
        if issue >= 0 and not brings:
            opcode = _OPCODE.match(text, issue)
            assert opcode  # it begins there
            reader = Token(opcode[0], issue)
        elif out is not None and (computes or not brings):
            reader, step = Token(out[0], out.start()), self._of_source or step
        else:
            return
        line = kernel.function.position(stored.start())[0]
        message = f"it reads shared memory to which ordinary stores such as that of line {line} wrote, and the kernel has no "
        message += f"{step.instruction}; write it in each thread that stores, between its stores and the barrier (PTX ISA {step.source})"
        yield Remark(reader, "warning", "missing-proxy-fence", message), reader.text
