"""The wrapper functions of variants; those with like operands share their bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog.cplusplus import Body, body, hint_parameters, identifier, parameters, ways
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import ROLES, Operand, Parameter
from ptxmma.generator.emit.cuda.guards import Guard, Guards
from ptxmma.model import Spec


class Function(NamedTuple):
    """One wrapper.

    Attributes:
        name: the name of the function.
        spelling: the spelling of its instruction.
        guard: the requirement.
        remark: a remark for the reader; empty without one.
        body: its text.
    """

    name: str
    spelling: str
    guard: Guard
    remark: str
    body: Body


class Functions:
    """Makes the functions of a spec and keeps what they share."""

    def __init__(self, spec: Spec) -> None:
        self._c_types = {entry.name: entry.c_type for entry in spec.types.registers}
        self._parts: dict[int, tuple[Parameter, ...]] = {}
        self._same: dict[Parameter, Parameter] = {}
        self._bodies: dict[tuple[object, ...], Body] = {}

    def c_type(self, operand: Operand) -> str:
        """The C type of the operand's registers."""
        return self._c_types[operand.register_types[0]] if operand.register_types else ""

    def of(self, instruction: Instruction, guards: Guards) -> Iterator[Function]:
        """The functions of a variant: one for each operand form and each way to pass its operands."""
        memory = instruction.variant.instruction.memory
        hints = hint_parameters(instruction)
        for form in instruction.forms or (OperandForm("", "", ()),):
            guard = guards.of(instruction, form)
            remark = "" if instruction.documented else "not in the manual"
            for parts in self.ways(form):
                key = (form.syntax, memory, hints, *map(id, parts))
                made = self._bodies.get(key)
                if made is None:
                    made = self._bodies[key] = body(form, parts, memory=memory, hints=hints, brief=True)
                yield Function(instruction.identifier, instruction.canonical, guard, remark, made)

    def ways(self, form: OperandForm) -> list[list[Parameter]]:
        """The ways to pass the operands of a form: a part of a signature for each operand."""
        return ways([self._ways(operand) for operand in form.operands])

    def _ways(self, operand: Operand) -> tuple[Parameter, ...]:
        """The ways to pass an operand; the database keeps its operands and gives like variants the same ones."""
        parts = self._parts.get(id(operand))
        if parts is None:
            either = ROLES[operand.kind].either(operand, identifier(operand.name), self.c_type(operand))
            made = (either,) if either is not None else parameters(operand, self.c_type(operand))
            parts = self._parts[id(operand)] = tuple(self._same.setdefault(part, part) for part in made)
        return parts
