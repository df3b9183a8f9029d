"""PTX text for instructions: what an assembler is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ptxmma.instructions import Instruction, OperandForm
from ptxmma.operands import Operand

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
#: More registers of one type than any instruction has.
_BANK = 512


def line(spelling: str, form: OperandForm) -> str:
    """One instruction with registers, or the first legal immediate where there is no choice: ``mma.sync… {%b32_0}, …;``."""
    texts = {operand.name: _operand(operand) for operand in form.operands}
    operands = _NAME.sub(lambda match: texts[match[0]], form.syntax)
    return f"{spelling} {operands};".replace(" ;", ";")


def lines(instruction: Instruction) -> list[str]:
    """An instruction in each of its operand forms."""
    return [line(instruction.canonical, form) for form in instruction.forms] or [f"{instruction.canonical};"]


def _operand(operand: Operand) -> str:
    if not operand.takes_register:
        assert operand.immediates
        return str(operand.immediates[0])
    bank = operand.register_types[0]
    if not operand.elements:
        return f"%{bank}_0"
    return "{" + ", ".join(f"%{bank}_{number}" for number in range(operand.registers)) + "}"


def module(version: str, target: str, body: Iterable[str], banks: Iterable[str]) -> tuple[str, int]:
    """A module with one instruction a line, and the number of the first one's line."""
    head = [f".version {version}", f".target {target}", ".address_size 64", ".visible .entry kernel() {"]
    head += [f".reg .{bank} %{bank}_<{_BANK}>;" for bank in banks]
    return "\n".join([*head, *body, "ret;", "}", ""]), len(head) + 1
