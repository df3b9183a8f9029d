"""What a kernel that uses tensor memory forgets: to free it, to wait for loads, to fence after a barrier, or to keep to one group of CTAs.

A kernel is judged as a whole and not path by path: it is reported where it lacks an instruction altogether and calls nothing that may have
it.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ptxmma.check import tensor_allocations
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.ptx.calls import calls_others
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.check.findings import Severity
    from ptxmma.model import Protocol
    from ptxmma.ptx.known_bits import RegisterBits
    from ptxmma.ptx.statements import Function, Statement

_BARRIER_WAIT = re.compile(rb"mbarrier\.(?<![\w$%.]mbarrier\.)(?:try|test)_wait\b")
#: The steps of the protocol of tensor memory, by the roles that the spec gives them.
_ALLOCATE, _FREE, _COMMIT, _FENCE, _WAIT = "allocate", "free", "commit", "fence-after", "wait-loads"


class TensorKernels:
    """Judges kernels by the protocol that allocates tensor memory; of a spec without one, it passes all."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._meaning = functools.lru_cache(maxsize=1 << 8)(lambda opcode: catalog.meaning(spelling_of(opcode)))
        protocols = (entry for entry in catalog.database.spec.protocols if _ALLOCATE in {step.role for step in entry.steps})
        self._protocol: Protocol | None = next(protocols, None)
        self._steps = {step.role: step for step in self._protocol.steps} if self._protocol else {}
        families = self._protocol.families if self._protocol else ()
        entries = [entry for entry in catalog.database.spec.instructions if entry.family in families]
        self._opcodes = tuple((entry.opcode or entry.name).encode() for entry in entries)
        self._loads = tuple((entry.opcode or entry.name).encode() for entry in entries if entry.operation == "tensor-load")
        issued = ((entry.opcode or entry.name).encode() for entry in entries if entry.asynchronous)
        #: Instructions that may write tensor memory.
        self._others = tuple(opcode for opcode in issued if not opcode.startswith(self._loads))

    def of_kernel(self, function: Function, opcodes: Set[bytes], bits: RegisterBits) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on a kernel, each with the opcode that it is about.

        Args:
            function: the kernel.
            opcodes: of its matrix instructions.
            bits: of its registers.
        """
        text = function.text
        if self._protocol is None or not text.startswith(b".entry") or not any(opcode.startswith(self._opcodes) for opcode in opcodes):
            return
        statements = [each for each in function.statements() if each.opcode.startswith(self._opcodes)]
        yield from self._groups(self._protocol, function, statements)
        if calls_others(text):
            return
        allocated = self._first(self._opcode(_ALLOCATE), statements)
        yield from self._lacking(_FREE, allocated, text, "tensor-memory-kept", "it must free every allocation before it exits")
        if allocated is not None and _FREE in self._steps:
            yield from tensor_allocations.of_kernel(self._catalog, function, bits, self._steps[_ALLOCATE], self._steps[_FREE], statements)
        loaded = self._first(self._loads, statements)
        later = (
            [] if loaded is None else [each for each in statements if each.start > loaded.start and each.opcode.startswith(self._others)]
        )
        reason = "reading a loaded register waits for that register alone"
        if later:
            line, by = (
                function.position(later[0].start)[0],
                next(name for name in self._others if later[0].opcode.startswith(name)).decode(),
            )
            reason = f"{by} of line {line} may change the cells before they are read"
        yield from self._lacking(_WAIT, loaded, text, "unwaited-tensor-load", reason, severity="warning" if later else "note")
        committed, wait = self._first(self._opcode(_COMMIT), statements), _BARRIER_WAIT.search(text)
        if committed is not None and wait is not None:
            result = self._first(self._loads, [each for each in statements if each.start > wait.start()])
            reason = "it loads a result after it has waited for an mbarrier, and the load may come first"
            yield from self._lacking(_FENCE, result, text, "missing-thread-fence", reason, severity="note")

    def _opcode(self, role: str) -> tuple[bytes, ...]:
        return (self._steps[role].instruction.encode(),) if role in self._steps else ()

    @staticmethod
    def _first(opcodes: tuple[bytes, ...], statements: list[Statement]) -> Statement | None:
        return next((each for each in statements if each.opcode.startswith(opcodes)), None)

    def _lacking(
        self, role: str, because: Statement | None, text: bytes, rule: str, reason: str, severity: Severity = "warning"
    ) -> Iterator[tuple[Remark, bytes]]:
        """The remark that a kernel has no instruction of a step, which another instruction makes necessary."""
        step = self._steps.get(role)
        if because is not None and step is not None and step.instruction.encode() not in text:
            message = f"the kernel has no {step.instruction}: {reason} (PTX ISA {step.source})"
            yield Remark(Token(because.opcode, because.start), severity, rule, message), because.opcode

    def _groups(self, protocol: Protocol, function: Function, statements: list[Statement]) -> Iterator[tuple[Remark, bytes]]:
        """The first instruction with another value of a qualifier that all instructions of a kernel share."""
        for same in protocol.same:
            first: tuple[str, int] | None = None
            for each in statements:
                instruction = self._meaning(each.opcode)
                value = instruction.qualifiers.get(same.qualifier, "") if instruction is not None else ""
                if first is None and value:
                    first = value, each.start
                elif first is not None and value and value != first[0]:
                    other = f".{first[0]} of line {function.position(first[1])[0]}"
                    message = f"its .{value} differs from {other}: all instructions of a kernel have the same (PTX ISA {same.source})"
                    yield Remark(Token(each.opcode, each.start), "error", "mixed-cta-groups", message), each.opcode
                    break
