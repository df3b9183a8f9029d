"""Deviations of assemblers from the manual's text on an operand: the rules of the errata.

Releases differ.  Each target is judged by the last release that knows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxmma.model import Facts, Quirk, Version, matches
from ptxmma.ptx.operand_values import ANYTHING, SINK, Address, Value

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.model import Spec


#: Registers of 32 bits, one of each class that assemblers tell apart; what takes all of them takes any register of 32 bits.
_EVERY_CLASS = {"b32", "u32", "f32", "f16x2"}


#: In the place of a register type: braces around a single register.
BRACES = "{}"


class Quirks:
    """The rules of a spec's errata."""

    def __init__(self, spec: Spec) -> None:
        self._rules = [rule for erratum in spec.errata for rule in erratum.rules]
        self._targets = {target.name: target for target in spec.targets}
        self._of: dict[tuple[Instruction, str], list[Quirk]] = {}

    def accepts(self, instruction: Instruction, operand: Operand, value: Value, target: str) -> bool | None:
        """Return whether assemblers accept a value for an operand; None where no rule says so, and the manual holds.

        Args:
            instruction: the instruction.
            operand: one of its operands.
            value: the value that is written there.
            target: ``""`` for any target: a value that one of them accepts is accepted, a value that all refuse is refused.
        """
        rules = [rule for rule in self._about(instruction, operand) if _fits(rule, operand, value)]
        if target not in self._targets:
            refused = bool(rules) and {self.accepts(instruction, operand, value, name) for name in instruction.accepted_by()} == {False}
            return any(rule.accepted and not rule.until for rule in rules) or (False if refused else None)
        answers = [rule.accepted for rule in rules if self._holds(rule, target)]
        return answers[-1] if answers else None

    def generates(self, instruction: Instruction, operand: Operand, value: Value) -> bool:
        """Return whether every assembler that accepts a value for an operand generates code for it."""
        return any(rule.generates for rule in self._about(instruction, operand) if _fits(rule, operand, value))

    @staticmethod
    def applies(rule: Quirk, instruction: Instruction, operand: Operand) -> bool:
        """Return whether the conditions of a rule match an operand."""
        return matches(rule.when, _facts(instruction, operand))

    def _about(self, instruction: Instruction, operand: Operand) -> list[Quirk]:
        """The rules of which the conditions match an operand; remembered."""
        key = (instruction, operand.name)
        if key not in self._of:
            facts = _facts(instruction, operand)
            self._of[key] = [rule for rule in self._rules if matches(rule.when, facts)]
        return self._of[key]

    def _holds(self, rule: Quirk, name: str) -> bool:
        """Return whether a rule speaks of a target, and of the release that judges it."""
        target = self._targets[name]
        if rule.lowest and target.number < self._targets[rule.lowest].number:
            return False
        if rule.highest and target.number > self._targets[rule.highest].number:
            return False
        if not target.until:
            return not rule.until
        judge = Version(target.until)
        return judge >= rule.since and (not rule.until or judge <= rule.until)


def _facts(instruction: Instruction, operand: Operand) -> Facts:
    return {
        **instruction.variant.facts,
        "operand": operand.kind,
        "access": operand.access,
        "matrix": operand.of or operand.name,
        "takes": "any" if set(operand.register_types) >= _EVERY_CLASS else "",
    }


def _fits(rule: Quirk, operand: Operand, value: Value) -> bool:
    """Return whether a rule is about a value: a constant, a register, the register of an address, or a list of registers of one type."""
    if isinstance(value, Address) or operand.bracketed:
        return isinstance(value, Address) and value.base in rule.registers
    if rule.constants:
        if not isinstance(value, int) or value % rule.multiple:
            return False
        return (rule.least is None or rule.least <= value) and (rule.most is None or value <= rule.most)
    if isinstance(value, int) or isinstance(value, tuple) != operand.listed:
        return False
    elements = value if isinstance(value, tuple) else (value,)
    if len(elements) != (rule.count or operand.registers):
        return False
    if rule.registers == (SINK,):
        return SINK in elements
    types = set(elements) - {ANYTHING}
    return len(types) <= 1 and types <= set(rule.registers or operand.register_types)
