"""What is doubtful about the operands of an ``asm`` statement: an output that is read, one that is not used, one that takes two places.

A compiler accepts all of these, and what the instruction then computes is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ptxmma.check.remarks import Remark
from ptxmma.ptx import lines as ptx
from ptxmma.ptx import operand_values
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction, OperandForm
    from ptxmma.ptx.asm_operand import AsmOperand
    from ptxmma.ptx.statements import Function, Statement

#: Names of values whose places differ: an element of an array, a member, a name with a number.
_NUMBERED = re.compile(r"[\]\d]\W*\Z|\.\s*[xyzw]\W*\Z")
_NAMES = re.compile(rb"%\w+")
#: The fewest elements of a list that is read in which one value twice is a slip: two may be meant to be alike.
_FEWEST = 3

#: A matrix instruction of a statement and the form that its operands have.
Judged = tuple["Statement", "Instruction", "OperandForm"]


def of_operands(function: Function, judged: Sequence[Judged]) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on the operands of a statement, each with the opcode that it is about.

    Args:
        function: the text of the statement.
        judged: its instructions, in order.
    """
    if not function.operands or not judged:
        return
    named = {name.encode(): operand for number, operand in enumerate(function.operands) for name in operand.names(number)}
    for statement, _, form in judged:
        for remark in (*_read(function, statement, form, named), *_repeated(function, statement, form, named)):
            yield remark, statement.opcode
    first = judged[0][0]
    used = set(_NAMES.findall(function.text))
    tied = {operand.constraint for operand in function.operands}
    for number, operand in enumerate(function.operands):
        if operand.is_register and str(number) not in tied and used.isdisjoint(name.encode() for name in operand.names(number)):
            text = f"operand {number}, {operand}, is not used"
            yield Remark(Token(first.opcode, first.start), "warning", "unused-operand", text), first.opcode


def _lists(function: Function, statement: Statement, form: OperandForm) -> Iterator[tuple[str, list[Token]]]:
    """How the instruction accesses each of its lists, and the elements."""
    for place, name in enumerate(ptx.items(form.syntax)):
        if not name.startswith(("{", "[")) and form.operand(name).listed:
            yield form.operand(name).access, operand_values.elements(function.operand(statement, place))


def _read(function: Function, statement: Statement, form: OperandForm, named: Mapping[bytes, AsmOperand]) -> Iterator[Remark]:
    """Outputs that the instruction reads though nothing was written to them."""
    for access, elements in _lists(function, statement, form):
        read = access == "read" or (access == "read-write" and _accumulates(function, statement, form, named))
        for element in elements if read else ():
            operand = named.get(element.text)
            if operand is not None and operand.constraint.startswith("=") and element.text not in _before(function, statement):
                text = f'{operand} is read here, but its value is not passed: write "{operand.constraint.replace("=", "+")}"'
                yield Remark(element, "warning", "uninitialised-operand", text)
                return


def _accumulates(function: Function, statement: Statement, form: OperandForm, named: Mapping[bytes, AsmOperand]) -> bool:
    """Whether the instruction may add to what its result holds: its predicate depends on a register that the statement is given."""
    for place, name in enumerate(ptx.items(form.syntax)):
        if not name.startswith(("{", "[")) and form.operand(name).kind == "predicate":
            predicate = re.escape(statement.operands[place])
            compared = re.search(rb"setp\.\w+\.\w+\s+" + predicate + rb"\s*,\s*(%\w+)\s*,", function.text[: statement.start])
            return compared is not None and compared[1] in named and named[compared[1]].is_register
    return False


def _before(function: Function, statement: Statement) -> set[bytes]:
    """The operands that the text names before an instruction."""
    return set(_NAMES.findall(function.text, 0, statement.start))


def _repeated(function: Function, statement: Statement, form: OperandForm, named: Mapping[bytes, AsmOperand]) -> Iterator[Remark]:
    """Values that take two places of a list whose other elements differ."""
    for access, elements in _lists(function, statement, form):
        values = [named[element.text].expression if element.text in named else "" for element in elements]
        again = _doubled(values)
        if again is not None and _NUMBERED.search(values[again]) and (access != "read" or len(values) >= _FEWEST):
            first = values.index(values[again])
            text = f"{values[again].replace(' ', '')} takes places {first} and {again} of one list"
            yield Remark(elements[again], "warning", "repeated-operand", text)


def _doubled(values: Sequence[str]) -> int | None:
    """The second place of the only value that takes two; None if all differ, or several or unknown ones do not."""
    return next((place for place, value in enumerate(values) if value in values[:place]), None) if _one_short(values) else None


def _one_short(values: Iterable[str]) -> bool:
    listed = list(values)
    return all(listed) and len(set(listed)) == len(listed) - 1
