"""Addresses that are not aligned as an instruction needs it, where the text shows their lowest bits; and tensor maps elsewhere.

An address is often a sum: of a variable, whose lowest bits its alignment clears, of multiples of a power of two, and of constants.  A bit
that is set below the alignment is a fault wherever the rest of the sum comes from.  A tensor map lies in parameter, constant or global
memory: the address of a copy in local memory is a fault, and so is a parameter's without ``cvta.param``.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.ptx.lines import operands_by_count
from ptxmma.ptx.literals import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.catalog.operands import Operand
    from ptxmma.check.kernels import Kernel
    from ptxmma.ptx.known_bits import KnownBits
    from ptxmma.ptx.statements import Function, Statement

_BASE = re.compile(rb"\[?\s*(%[\w$]+)\s*(?:\+\s*(-?\w+)\s*)?(?=[\],]|$)")

_TENSOR_MAP = "tensormap"
#: Instructions through which an address stays one of the same memory.
_COPIED = (b"mov.", b"add.", b"cvta.to.")


class Alignment:
    """Judges addresses in registers by a database, and remembers which operands are addresses."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._aligned = functools.lru_cache(maxsize=1 << 10)(self._aligned_operands)

    def of_kernel(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on addresses of a kernel, each with the opcode that it is about."""
        function, addressed = kernel.function, kernel.operands(self._aligned)
        for statement, place, text in _doubts(addressed, kernel.bits):
            yield Remark(function.operand(statement, place), "warning", "alignment", text), statement.opcode
        for statement, place, operand in addressed:
            base = _BASE.match(statement.operands[place])
            text = _misplaced(function, base[1]) if operand.kind == _TENSOR_MAP and base is not None else ""
            if text:
                text += f" (PTX ISA {operand.source})"
                yield Remark(function.operand(statement, place), "warning", "state-space", text), statement.opcode

    def _aligned_operands(self, opcode: bytes) -> dict[int, list[tuple[int, Operand]]]:
        """The operands of an opcode that are addresses with an alignment, with their places, by the number of operands."""
        instruction = self._catalog.meaning(spelling_of(opcode))
        return operands_by_count(instruction, lambda operand: _step(operand) > 1) if instruction is not None else {}


def _step(operand: Operand) -> int:
    """The number of which an operand is a multiple: an address of its alignment, a register of what its constants are."""
    constants = operand.immediates if operand.takes_register else None
    return max(operand.alignment, constants.step if isinstance(constants, range) else 1)


def _misplaced(function: Function, register: bytes) -> str:
    """The fault in a register as the generic address of a tensor map, if the text shows from where it comes; otherwise empty."""
    name, seen = register, set[bytes]()
    while name not in seen:
        seen.add(name)
        writes = function.predicates.writes(name)
        if len(writes) != 1:
            break
        opcode, _, operands, _ = writes[0]
        if opcode.startswith(b"cvta.local"):
            return "the tensor map is in local memory: of a const __grid_constant__ parameter the compiler makes no copy"
        if not opcode.startswith(_COPIED):
            return ""
        name = operands.partition(b",")[0].strip()
    variable = function.registers.variable(name)
    if name != register and variable is not None and variable.space == "param":
        return "the register has the address of a parameter in its own space: cvta.param makes the generic address of it"
    return ""


def _doubts(addressed: Sequence[tuple[Statement, int, Operand]], known: KnownBits) -> Iterator[tuple[Statement, int, str]]:
    for statement, place, operand in addressed:
        base = _BASE.match(statement.operands[place])
        offset = integer(base[2]) if base and base[2] else 0
        if base is None or offset is None:
            continue
        address = known.of(base[1]).plus(known.of(b"%d" % offset)) if offset else known.of(base[1])
        if over := address.value & (_step(operand) - 1):
            text = f"{operand.name} must be a multiple of {_step(operand)} bytes, and bit {(over & -over).bit_length() - 1} "
            named = "address" if operand.alignment > 1 else "number"
            yield statement, place, f"{text}of this {named} is always set: behaviour is undefined (PTX ISA {operand.source})"
