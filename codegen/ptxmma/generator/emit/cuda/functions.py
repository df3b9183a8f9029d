"""The wrapper functions of variants; those with like operands share their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.cplusplus import Body, body, hint_parameters, identifier, parameters, ways
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import ROLES, Operand, Parameter
from ptxmma.generator.emit.cuda.guards import Guard, Guards
from ptxmma.model import Spec


class Stub(NamedTuple):
    """What a pass that lacks a wrapper has in its place.

    Attributes:
        name: of the wrapper.
        parameters: how many; all of them take anything.
        template: template parameters that take any template arguments of the wrapper.
    """

    name: str
    parameters: int
    template: str


class Function(NamedTuple):
    """One wrapper.

    Attributes:
        name: of the function.
        spelling: of its instruction.
        guard: what it requires.
        remark: what a reader should know of it besides; empty if nothing.
        body: its text.
        stub: what is in its place where the requirement is not met.
    """

    name: str
    spelling: str
    guard: Guard
    remark: str
    body: Body
    stub: Stub


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
                stub = Stub(instruction.identifier, sum(bool(part.parameter) for part in parts), _any_arguments(parts, hints))
                yield Function(instruction.identifier, instruction.canonical, guard, remark, made, stub)

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


def stubs(functions: Iterable[Function]) -> list[Stub]:
    """The stubs of functions, each once: overloads with as many parameters share one."""
    return list(dict.fromkeys(function.stub for function in functions))


def _any_arguments(parts: Iterable[Parameter], hints: tuple[str, ...]) -> str:
    """Template parameters for any numbers, or for as many numbers as a function takes before its hints."""
    numbers = [part for part in parts if part.template]
    if numbers and not hints:
        return "int..."
    return ", ".join([*("int" for _ in numbers), "class..."])
