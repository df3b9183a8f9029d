"""Thread blocks of a cluster that instructions name by a mask or a rank, against the size that the kernel declares."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.kernels import OWN_RANK
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.ptx.lines import operands_by_count
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.catalog.operands import Operand
    from ptxmma.check.kernels import Kernel
    from ptxmma.ptx.known_bits import Bits
    from ptxmma.ptx.statements import Function

_COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster\n        [tile], [%rd0], 64, [bar], {};"
_MET = "barrier.cluster.arrive;\n    barrier.cluster.wait;"

RULES: Mapping[str, Rule] = {
    "outside-cluster": Rule(
        "A mask or a rank names thread blocks of the cluster, and a mask names one at least.",
        "What is sent to a thread block that does not exist goes to undefined places. With a mask of 0 nothing is sent, and an mbarrier "
        "that expects the bytes never completes. Judged are constants, against .reqnctapercluster or .maxclusterrank.",
        "Set the bits of the ranks from 0 to the number of thread blocks in the cluster, less one.",
        examples.cluster_kernel(_MET, _COPY.format(4)),
        examples.cluster_kernel(_MET, _COPY.format(3)),
    ),
}

#: An instruction on shared memory of its own thread block, and the register of the address.
_OWN = re.compile(
    rb"(?<![\w$%.:])((?:ld|st|atom|red|mbarrier|ldmatrix|stmatrix)\.(?:(?!async)[\w:]+\.)*?shared(?:::cta)?(?:\.[\w:]+)*)\s[^;\[]*\[\s*([\w$%]+)"
)
#: Instructions through which an address stays one of the same thread block, and most of them that are followed.
_COPYING, _MOST_COPIES = (b"mapa", b"mov.", b"add.", b"cvta.", b"cvt."), 16
#: The kind of an operand that is a mask of thread blocks, and the unit of one that is the rank of a thread block.
_MASK, _RANK = "cta-mask", "blocks"


class Mapped(NamedTuple):
    """A ``mapa``: its place in the text, and its operands, an address and the rank of a thread block."""

    at: int
    address: bytes
    rank: bytes


class Clusters:
    """Judges operands that name thread blocks by a database, and remembers which operands these are."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._mapping = next((each.source for each in catalog.database.spec.instructions if each.name == "mapa"), "")
        self._naming = functools.lru_cache(maxsize=1 << 10)(self._naming_operands)

    def of_kernel(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on masks and ranks of a kernel, each with the opcode that it is about."""
        if any(map(self._naming, kernel.opcodes)):
            yield from self._misplaced(kernel.function)
        for statement, place, operand in kernel.operands(self._naming):
            text = _fault(operand, kernel.bits.of(statement.operands[place]).within(32), kernel.cluster)
            if text:
                text += f" (PTX ISA {operand.source})"
                yield Remark(kernel.function.operand(statement, place), "warning", "outside-cluster", text), statement.opcode

    def _misplaced(self, function: Function) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions on the thread block's own shared memory by an address that ``mapa`` gives."""
        for each in _OWN.finditer(function.text) if b"mapa" in function.text else ():
            address = mapped(function, each[2], each.start())
            ranks = {write[2].strip() for write in function.predicates.writes(address.rank)} or {address.rank} if address else {OWN_RANK}
            if address is not None and ranks != {OWN_RANK}:
                line = function.position(address.at)[0]
                text = f"mapa of line {line} gives an address in another thread block, and .shared is memory of this one: behaviour is "
                text += f"undefined; write .shared::cluster, or do it in that thread block (PTX ISA {self._mapping})"
                yield Remark(Token(each[1], each.start(1)), "warning", "state-space", text), each[1]

    def _naming_operands(self, opcode: bytes) -> dict[int, list[tuple[int, Operand]]]:
        """The operands of an opcode that name thread blocks, with their places, by the number of operands; none of most opcodes."""
        instruction = self._catalog.meaning(spelling_of(opcode))
        return operands_by_count(instruction, _names) if instruction is not None else {}


def mapped(function: Function, name: bytes, at: int) -> Mapped | None:
    """The ``mapa`` from which the address in a register comes, at a place in the text; None where the text shows none."""
    registers, waiting = function.predicates, [(name, at)]
    for _ in range(_MOST_COPIES):
        name, at = waiting.pop()
        writes = registers.writes(name)
        write = writes[0] if len(writes) == 1 else registers.write_before(name, at)
        if write is not None and write[0].startswith(_COPYING):
            opcode, _, operands, at = write
            parts = [part.strip() for part in operands.split(b",")]
            if opcode.startswith(b"mapa"):
                return Mapped(at, parts[0], parts[1])
            waiting += [(part, at) for part in parts]
        if not waiting:
            return None
    return None


def _names(operand: Operand) -> bool:
    return operand.kind == _MASK or operand.unit == _RANK


def _fault(operand: Operand, bits: Bits, size: int) -> str:
    """The fault of a mask or a rank of thread blocks, in a cluster of a size, or of any size where it is 0; empty without one."""
    if operand.kind == _MASK and not (bits.value | bits.unknown):
        return f"{operand.name} is 0: it names no thread block; set the bit of each rank that it is for"
    if operand.kind == _MASK and size and (beyond := bits.value >> size):
        first = size + (beyond & -beyond).bit_length() - 1
        return f"{operand.name} names thread block {first}, but a cluster of this kernel has no more than {size}; clear this bit"
    if operand.unit == _RANK and size and bits.value >= size:
        return f"{operand.name} is {bits.value}, but the ranks in this kernel's cluster are 0 to {size - 1}; name one of them"
    return ""
