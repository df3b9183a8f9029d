"""Omissions of a kernel that uses tensor memory: it must free it, fence, wait, fill its buffers, and keep to one group of CTAs.

Omissions are judged in the kernel as a whole: it is reported where it lacks an instruction altogether and calls nothing that may have it.
The order of what it has is followed along its paths.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.check import lifecycles, shifted_operands
from ptxmma.check import rule_examples as examples
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.check.tensor_memory import COLUMN_BITS, TensorAddresses, TensorMemory
from ptxmma.check.transitions import EXIT
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Set

    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.check.findings import Severity
    from ptxmma.check.kernels import Kernel
    from ptxmma.check.misuses import Misuse
    from ptxmma.model import InstructionSet, Protocol
    from ptxmma.ptx.conditions import Predicates
    from ptxmma.ptx.known_bits import KnownBits
    from ptxmma.ptx.statements import Function, Statement

_POLL = "poll:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra poll;"
_AFTER = "tcgen05.fence::after_thread_sync;"
_STORED = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r3};"
_LOADED, _WAITED = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0];", "tcgen05.wait::ld.sync.aligned;"

_FILL = "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill [%r0], %rd0, %rd1, %r1, %p0;"
_USE = "tcgen05.mma.cta_group::1.kind::f16.collector::a::lastuse [%r2], %rd0, %rd1, %r1, %p0;"
RULES: Mapping[str, Rule] = {
    "missing-thread-fence": Rule(
        "Threads that use tensor memory one after the other fence: the first before the barrier or arrival, the other after its wait.",
        "The operations are asynchronous: without the fences nothing orders them before and after the barrier (PTX ISA 9.7.16.6.4.2). "
        "tcgen05.commit needs no fence before it. Some libraries leave the fences out, and chips may forgive it; the manual does not.",
        "Write tcgen05.fence::before_thread_sync before the barrier or arrival, and tcgen05.fence::after_thread_sync after the wait.",
        examples.tensor_kernel(examples.TENSOR_PRODUCT, examples.TENSOR_COMMIT, _POLL, _LOADED, _WAITED),
        examples.tensor_kernel(examples.TENSOR_PRODUCT, examples.TENSOR_COMMIT, _POLL, _AFTER, _LOADED, _WAITED),
    ),
    "mixed-cta-groups": Rule(
        "All tcgen05 instructions of a kernel have the same .cta_group.",
        "From CUDA 13.0 on, ptxas refuses such a kernel, whatever its .version; 12.8 and 12.9 accept it, and its behaviour is undefined: "
        "tcgen05.commit.cta_group::1 does not track operations of .cta_group::2, so that its mbarrier says nothing of them. The first "
        "instruction that differs is reported.",
        "Write the .cta_group of the kernel's tcgen05.alloc everywhere.",
        examples.tensor_kernel(examples.TENSOR_PRODUCT, examples.TENSOR_COMMIT.replace("cta_group::1", "cta_group::2")),
        examples.tensor_kernel(examples.TENSOR_PRODUCT, examples.TENSOR_COMMIT),
    ),
    "tensor-memory-kept": Rule(
        "A kernel frees the tensor memory that it has allocated.",
        "Columns that a kernel keeps are lost to the kernels that run after it on the multiprocessor. Behaviour is undefined.",
        "Write tcgen05.dealloc in the warp that allocated, after the last access and before the kernel exits.",
        examples.tensor_kernel(examples.TENSOR_ALLOCATION),
        examples.tensor_kernel(examples.TENSOR_ALLOCATION, "ld.shared.b32 %r0, [slot];", examples.TENSOR_FREE),
    ),
    "untracked-product": Rule(
        "A kernel that loads the result of a tcgen05 product commits the product and waits for the mbarrier.",
        "tcgen05.mma is asynchronous, and only an mbarrier of tcgen05.commit says that it is complete. A load that does not wait may read "
        "what was in tensor memory before.",
        "Write tcgen05.commit after the last product, in the same thread, and wait for the phase of its mbarrier before the first load.",
        examples.tensor_kernel(examples.TENSOR_PRODUCT, _LOADED, _WAITED),
        examples.tensor_kernel(examples.TENSOR_PRODUCT, examples.TENSOR_COMMIT, _POLL, _AFTER, _LOADED, _WAITED),
    ),
    "unwaited-tensor-load": Rule(
        "A kernel waits for its loads from tensor memory.",
        "tcgen05.ld is asynchronous. An instruction that reads a loaded register waits for that register, and orders nothing else (PTX ISA "
        "9.7.16.6.4.5). A tcgen05 product, copy, shift or store after the load may change the cells before the load has read them; a "
        "product with .ashift changes A, too: in each 32 lanes a lane receives the row of the next one. If one of these follows in the "
        "text of the kernel, the finding is a warning, otherwise a note. A store that is computed from all loaded registers cannot come "
        "too early. st.global and other uses of the registers, and tcgen05.dealloc, make no difference.",
        "Write tcgen05.wait::ld.sync.aligned after the last load, before the registers are used.",
        examples.tensor_kernel(_LOADED, _STORED),
        examples.tensor_kernel(_LOADED, _WAITED, _STORED),
    ),
    "empty-collector": Rule(
        "A kernel that uses a collector buffer fills it.",
        "With .collector::a::use or ::lastuse, the product may take A from the buffer, which holds A only after an earlier product with "
        ".collector::a::fill. Otherwise behaviour is undefined. The same holds for B and its buffers.",
        "Write ::fill at the first product with the matrix, or leave the modifier out.",
        examples.tensor_kernel(_USE, examples.TENSOR_COMMIT),
        examples.tensor_kernel(_FILL, _USE, examples.TENSOR_COMMIT),
    ),
}

_BARRIER_WAIT = re.compile(rb"mbarrier\.(?<![\w$%.]mbarrier\.)(?:try|test)_wait\b")
#: Stores of a kernel whose registers are followed back to loads; after more stores, nothing is reported.
_MOST_FOLLOWED = 64
#: The steps of the protocol of tensor memory, by the roles that the spec gives them.
_ALLOCATE, _FREE, _COMMIT, _FENCE, _WAIT = "allocate", "free", "commit", "fence-after", "wait-loads"


class TensorKernels:
    """Judges kernels by the protocol that allocates tensor memory; of a spec without one, it passes all."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        protocols = (entry for entry in catalog.database.spec.protocols if _ALLOCATE in {step.role for step in entry.steps})
        self._protocol: Protocol | None = next(protocols, None)
        self._steps = {step.role: step for step in self._protocol.steps} if self._protocol else {}
        families = self._protocol.families if self._protocol else ()
        entries = [entry for entry in catalog.database.spec.instructions if entry.family in families]
        #: The first words of opcodes: all instructions, loads, stores, products, and all but loads that may write tensor memory.
        self._opcodes = tuple(entry.start for entry in entries)
        self._loads = tuple(entry.start for entry in entries if entry.operation == "tensor-load")
        self._stores = tuple(entry.start for entry in entries if entry.operation == "tensor-store")
        self._products = tuple(entry.start for entry in entries if entry.operation == OPERATION)
        self._others = tuple(entry.start for entry in entries if entry.asynchronous and not entry.start.startswith(self._loads))

    def _statements(self, function: Function, opcodes: Set[bytes]) -> list[Statement]:
        """The instructions of the protocol in a kernel; none of another function."""
        if not function.text.startswith(b".entry") or not any(opcode.startswith(self._opcodes) for opcode in opcodes):
            return []
        return [each for each in function.statements() if each.opcode.startswith(self._opcodes)]

    def of_kernel(
        self, kernel: Kernel, product_of: Callable[[Statement, KnownBits, str], Instruction | None]
    ) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on a kernel, each with the opcode that it is about.

        Args:
            kernel: the kernel.
            product_of: the product that an instruction makes of its descriptor; None where it is not known.
        """
        function, text = kernel.function, kernel.text
        statements = kernel.statements(lambda opcode: opcode.startswith(self._opcodes)) if text.startswith(b".entry") else []
        if not statements or not kernel.is_closed:
            return
        memory = TensorMemory(self._catalog, kernel, self._steps[_ALLOCATE], self._steps.get(_FREE), statements)
        allocated = self._first(self._opcode(_ALLOCATE), statements)
        yield from self._lacking(_FREE, allocated, text, "tensor-memory-kept", "it must free every allocation before it exits")
        if allocated is not None and _FREE in self._steps:
            yield from memory.columns()
        yield from _empty_collectors(self._catalog.database.spec.instructions, statements)
        yield from memory.bounds(product_of)
        yield from shifted_operands.of_kernel(self._catalog, kernel, statements)
        loaded = self._first(self._loads, statements)
        unwaited, unordered = [], []
        if loaded is not None:
            unwaited = [*self._unwaited(kernel, statements, loaded)]
            unordered = [*self._unordered(function, statements, loaded)]
        yield from (*unwaited, *unordered)
        # A step that the kernel lacks is reported once.
        untracked = (*self._products, *self._opcode(_COMMIT)) if any(each.rule == "untracked-product" for each, _ in unordered) else ()
        lacking = (*(self._loads if unwaited else ()), *untracked)
        freed = self._has(_FREE, text)
        wrong: dict[tuple[int, str], Misuse] = {}
        begun = set[tuple[int, str]]()  # what is wrong before the end is not reported at the end again
        for misuse in self._at_a_wrong_time(kernel, memory, statements):
            at_exit, since = misuse.at.opcode == EXIT, misuse.since[-1:]
            lacks = not misuse.wrong.by_others and any(each.opcode.startswith(untracked if at_exit else lacking) for each in since)
            if not lacks and (freed or not at_exit):
                causes = {(each.offset, misuse.wrong.rule) for each in since} or {(-1, misuse.wrong.rule)}
                if not at_exit:
                    begun |= causes
                elif not begun.isdisjoint({*causes, (-1, misuse.wrong.rule)}):
                    continue
                wrong.setdefault((misuse.at.offset, misuse.wrong.rule), misuse)
        yield from lifecycles.remarks(function, wrong.values())

    def _at_a_wrong_time(self, kernel: Kernel, memory: TensorMemory, statements: list[Statement]) -> Iterator[Misuse]:
        """The instructions that allocate, free and use tensor memory in another order than a path may have."""
        protocol, limits = self._protocol, self._opcode(_ALLOCATE) + self._opcode(_FREE)
        if protocol is None or self._first(limits, statements) is None:
            return

        def size(statement: Statement) -> int | None:
            count = memory.count_of(statement)
            return count.columns if count is not None else None

        def column(operand: bytes) -> int | None:
            address = addresses.of(operand, exact=True)
            return address[0] % (1 << COLUMN_BITS) if address is not None else None

        addresses = TensorAddresses(kernel, statements)
        followed = [life for life in protocol.lifecycles if not life.alone]
        yield from lifecycles.of_kernel(kernel, followed, statements, size, memory.capacity, column)

    def _unwaited(self, kernel: Kernel, statements: list[Statement], loaded: Statement) -> Iterator[tuple[Remark, bytes]]:
        """The remark that a kernel does not wait for its loads."""
        if self._has(_WAIT, kernel.text):
            return
        reason = "reading a loaded register waits for that register alone"
        severity: Severity = "note"
        if changed := self._changed(kernel.registers, statements):
            loaded, later = changed
            by = next(start for start in self._others if later.opcode.startswith(start)).decode()
            reason = f"{by} of line {kernel.function.position(later.start)[0]} may change the cells before they are read"
            severity = "warning"
        yield from self._lacking(_WAIT, loaded, kernel.text, "unwaited-tensor-load", reason, severity)

    def _changed(self, registers: Predicates, statements: list[Statement]) -> tuple[Statement, Statement] | None:
        """The first load whose cells a later instruction may change before they are read, and that instruction.

        A store that is computed from all that was loaded cannot execute before the load has read its cells, and nor can what follows it.
        """
        followed = 0
        loads: list[Statement] = []  # since the last instruction that may change cells
        for each in statements:
            if each.opcode.startswith(self._loads):
                loads.append(each)
            elif loads and each.opcode.startswith(self._others) and followed < _MOST_FOLLOWED:
                stored = each.operands[-1] if each.operands and each.opcode.startswith(self._stores) else b""
                needed = registers.sources(words_of(stored))
                for load in loads:
                    if not load.operands or not needed >= {*words_of(load.operands[0])}:
                        return load, each
                loads.clear()
                followed += 1
        return None

    def _unordered(self, function: Function, statements: list[Statement], loaded: Statement) -> Iterator[tuple[Remark, bytes]]:
        """The remark that nothing orders a load after the product whose result it loads: no commit, no wait, or no fence."""
        text, product = function.text, self._first(self._products, statements)
        committed, wait = self._first(self._opcode(_COMMIT), statements), _BARRIER_WAIT.search(text)
        if committed is not None and wait is not None:
            result = self._first(self._loads, statements, wait.start())
            reason = "it loads a result after it has waited for an mbarrier, and the load may come first"
            yield from self._lacking(_FENCE, result, text, "missing-thread-fence", reason, "note")
        elif product is not None:
            reason = f"the product of line {function.position(product.start)[0]} may still write what it reads"
            after = "; write it after the last product, and mbarrier.try_wait for its mbarrier before the load"
            yield from self._lacking(_COMMIT, loaded, text, "untracked-product", reason + after)
            if committed is not None:
                step = self._steps[_COMMIT]
                message = f"the kernel waits for no mbarrier: {reason}, until that of {step.instruction} completes; "
                message += f"write mbarrier.try_wait for it before the load (PTX ISA {step.source})"
                yield Remark(Token(loaded.opcode, loaded.start), "warning", "untracked-product", message), loaded.opcode

    def _has(self, role: str, text: bytes) -> bool:
        """Return whether a text has an instruction of a step."""
        return role in self._steps and self._steps[role].instruction.encode() in text

    def _opcode(self, role: str) -> tuple[bytes, ...]:
        return (self._steps[role].instruction.encode(),) if role in self._steps else ()

    @staticmethod
    def _first(opcodes: tuple[bytes, ...], statements: list[Statement], after: int = -1) -> Statement | None:
        """The first statement after a place with one of some opcodes."""
        return next((each for each in statements if each.start > after and each.opcode.startswith(opcodes)), None)

    def _lacking(
        self, role: str, because: Statement | None, text: bytes, rule: str, reason: str, severity: Severity = "warning"
    ) -> Iterator[tuple[Remark, bytes]]:
        """The remark that a kernel has no instruction of a step, which another instruction makes necessary."""
        step = self._steps.get(role)
        if because is not None and step is not None and not self._has(role, text):
            message = f"the kernel has no {step.instruction}: {reason} (PTX ISA {step.source})"
            yield Remark(Token(because.opcode, because.start), severity, rule, message), because.opcode

    def mixed_groups(self, function: Function, opcodes: Set[bytes]) -> Iterator[tuple[Remark, bytes]]:
        """The first instruction with another value of a qualifier that all instructions of a kernel share.

        Args:
            function: the kernel.
            opcodes: the opcodes of its matrix instructions.
        """
        for same in self._protocol.same if self._protocol is not None else ():
            values = {opcode: self._value(opcode, same.qualifier) for opcode in opcodes if opcode.startswith(self._opcodes)}
            if len({*filter(None, values.values())}) <= 1:  # most kernels: their statements need not be read
                continue
            grouped = [(each, values[each.opcode]) for each in self._statements(function, opcodes) if values[each.opcode]]
            others = [(each, value) for each, value in grouped if value != grouped[0][1]]
            for each, value in others[:1]:
                other = f".{grouped[0][1]} of line {function.position(grouped[0][0].start)[0]}"
                differs = f", and that of {len(others) - 1} more, differ" if len(others) > 1 else " differs"
                message = f"its .{value}{differs} from {other}: all instructions of a kernel have the same (PTX ISA {same.source})"
                yield Remark(Token(each.opcode, each.start), "error", "mixed-cta-groups", message), each.opcode

    def _value(self, opcode: bytes, qualifier: str) -> str:
        """The value of a qualifier in an opcode; empty without one."""
        instruction = self._catalog.meaning(spelling_of(opcode))
        return instruction.qualifiers.get(qualifier, "") if instruction is not None else ""


_HINT = re.compile(rb"\.(collector::(\w+))::(fill|use|lastuse)(?![\w:])")


def _empty_collectors(instructions: Iterable[InstructionSet], statements: Iterable[Statement]) -> Iterator[tuple[Remark, bytes]]:
    """The first use of each buffer that no product of a kernel fills, with its opcode.

    Args:
        instructions: the spec's, which say where the manual has the buffers.
        statements: the instructions of the kernel.
    """
    hints = [(value.rpartition("::")[0], hint.source) for entry in instructions for hint in entry.hints for value in hint.values]
    sources = dict(reversed(hints))  # the first place of each
    filled = set[bytes]()
    used: dict[bytes, tuple[Statement, Token]] = {}
    for statement in statements:
        for hint in _HINT.finditer(statement.opcode):
            if hint[3] == b"fill":
                filled.add(hint[1])
            else:
                used.setdefault(hint[1], (statement, Token(hint[0][1:], statement.start + hint.start() + 1)))
    for buffer, (statement, token) in used.items():
        if buffer not in filled:
            name = buffer.decode()
            text = f"no product of the kernel fills this buffer with .{name}::fill: behaviour is undefined (PTX ISA {sources.get(name)})"
            yield Remark(token, "warning", "empty-collector", text), statement.opcode
