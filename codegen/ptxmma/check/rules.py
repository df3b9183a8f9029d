"""The rules that findings name, and what each requires."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check import flow

RULES: Mapping[str, str] = {
    "alignment": "The address of a matrix, and of each of its rows or columns, has the alignment that the manual requires.",
    "constant": "A constant replaces a register; the manual does not have it, and not all assemblers generate code for it.",
    "immediate": "A constant is in the range that the operand allows.",
    "list": "A list is registers of one type in braces, and a single operand has no braces. Some assemblers accept other lists.",
    "metadata": "Every field of sparsity metadata is one of the instruction's legal values.",
    "operand-count": "The instruction has as many operands as its syntax.",
    "operand-kind": "An operand is a register where a register is expected, and a constant where a constant is.",
    "predicate": "The predicate of an instruction is a declared register of type .pred.",
    "register-count": "A list has as many registers as the operand needs.",
    "register-type": "Registers have one of the types that assemblers accept for the operand.",
    "sink": "_ replaces elements of a result that are not needed, but not all of them, and nothing that is read.",
    "spelling": "The canonical spelling has every modifier, in the order of the manual.",
    "state-space": "The variable of an address lies in the state space of the instruction.",
    "stride": "The rows or columns of a matrix do not overlap.",
    "syntax": "An instruction has at most one predicate, commas between its operands, braces around lists, and a semicolon at its end.",
    "target": "The target has the instruction.",
    "too-many": "The function has more findings than are shown.",
    "undeclared": "Registers are declared before they are used, in a block that is open.",
    "undocumented": "The manual has the form; assemblers also accept some that it does not have.",
    "unknown-instruction": "The opcode and its modifiers are an instruction.",
    "unordered-metadata": "mma.sp with ordered metadata may be much faster.",
    "version": "The PTX ISA version exists and has the instruction on the target.",
    **flow.RULES,
}
