"""Examples of one instruction: a C++ function that calls it, the same as inline assembly, and a question in Python with its answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.names import cplusplus
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import Parameter

#: The name of a parameter: the last word before what says that it is an array.
_NAME = re.compile(r"(\w+)\)?(?:\[\d+\])*$")
_INDENT = "  "


class Examples(NamedTuple):
    """Lines of source text."""

    header: str
    cplusplus: list[str]
    assembly: list[str]
    python: list[str]


def chosen(instructions: tuple[Instruction, ...]) -> Instruction:
    """The variant that examples show: documented, and with the widest result; of many sizes the first."""
    return max(instructions, key=lambda instruction: (instruction.documented, _result_bits(instruction)))


def _result_bits(instruction: Instruction) -> int:
    written = (operand for form in instruction.forms for operand in form.operands if operand.access != "read")
    return max((operand.bits for operand in written), default=0)


def examples(instruction: Instruction) -> Examples:
    """The examples of an instruction, with the operands of its first form."""
    form = instruction.forms[0] if instruction.forms else OperandForm("", "", ())
    said = cplusplus.shown(instruction)
    # The first overload takes immediates as template arguments.
    parts = cplusplus.ways([cplusplus.parameters(operand, operand.c_type) for operand in form.operands])[0]
    parameters = [part.parameter for part in parts if part.parameter]
    function = f"__device__ void {instruction.operation.replace('-', '_')}({', '.join(parameters)})"
    return Examples(said.header, _call(instruction, form, parts, said, function), _assembly(said, function), python(instruction))


def _call(instruction: Instruction, form: OperandForm, parts: list[Parameter], said: cplusplus.Shown, function: str) -> list[str]:
    """A function that calls the wrapper, and the alias that names it in the typed front."""
    given = ", ".join(name[1] for part in parts if part.parameter and (name := _NAME.search(part.parameter)))
    constants = [str(cplusplus.usual(operand)) for operand, part in zip(form.operands, parts, strict=True) if _needed(operand, part)]
    template = f"<{', '.join(constants)}>" if constants else ""
    lines = [f"#include <{said.header}>", ""]
    if said.front:
        lines += [f"using {instruction.operation.title().replace('-', '')} = {said.front};", ""]
    return [*lines, f"{function} {{", f"{_INDENT}ptxmma::{instruction.identifier}{template}({given});", "}"]


def _needed(operand: Operand, part: Parameter) -> bool:
    """Return whether a template argument must be given."""
    return bool(part.template) and operand.default is None


def _assembly(said: cplusplus.Shown, function: str) -> list[str]:
    return ["#include <stdint.h>", "", f"{function} {{", *(_INDENT + line for line in said.statements[0].splitlines()), "}"]


def python(instruction: Instruction) -> list[str]:
    """An element of each fragment, and back; empty without fragments."""
    operands = {operand.name: operand for form in instruction.forms for operand in form.operands}
    shown = [operand for operand in operands.values() if operand.layout is not None and operand.layout.kind == "fragment"]
    if not shown:
        return []
    lines = [">>> import ptxmma", f'>>> instruction = ptxmma.instruction("{instruction.canonical}")']
    for operand in shown:
        lane, i = 5, operand.elements - 1
        place = operand.coords(lane, i)
        axes = ", ".join(f"{axis}={number}" for axis, number in zip(operand.axes, place, strict=True))
        lines += [
            f'>>> instruction.operand("{operand.name}").coords(lane={lane}, i={i})  # {", ".join(operand.axes)}',
            repr(place),
            f'>>> instruction.operand("{operand.name}").locate({axes})  # lane, i',
            repr(operand.locate(*place)),
        ]
    return lines
