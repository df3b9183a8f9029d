"""The rules that findings name, and what each asks for."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check import flow

RULES: Mapping[str, str] = {
    "constant": "A constant stands where the manual has a register; not all assemblers make code of it.",
    "immediate": "A constant is out of its range.",
    "list": "Registers of a matrix stand in braces, single operands do not.",
    "metadata": "Every field of sparsity metadata must be one of the instruction's legal values.",
    "operand-count": "The instruction has another number of operands.",
    "operand-kind": "A register, or a constant, is expected.",
    "predicate": "The predicate of an instruction is a declared register of type .pred.",
    "register-count": "A list has as many registers as the operand needs.",
    "register-type": "Registers have one of the types that assemblers take for the operand.",
    "sink": "_ stands for elements of a result that are not wanted, not for all of it, and not for what is read.",
    "spelling": "The canonical spelling has every modifier, in the order of the manual.",
    "syntax": "An instruction has at most one predicate, commas between its operands, braces round lists, and a semicolon at its end.",
    "target": "The target does not have the instruction.",
    "too-many": "The function has more findings than are shown.",
    "undeclared": "Registers are declared before they are used, in a block that is open.",
    "undocumented": "The manual does not have the form, though assemblers take it.",
    "unknown-instruction": "There is no instruction with these modifiers.",
    "unordered-metadata": "mma.sp with ordered metadata may be much faster.",
    "version": "The PTX ISA version does not have the instruction on the target, or is none.",
    **flow.RULES,
}
