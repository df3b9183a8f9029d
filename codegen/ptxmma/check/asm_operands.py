"""Doubtful operands of an ``asm`` statement: an output that is read, one that is not used, one that takes two places.

A compiler accepts all of these, and the instruction then computes wrong results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.ptx import lines as ptx
from ptxmma.ptx import operand_values
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction, OperandForm
    from ptxmma.ptx.statements import AsmOperand, Function, Statement

_EXAMPLE = """\
__device__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
"""

RULES: Mapping[str, Rule] = {
    "repeated-operand": Rule(
        "A value takes one place of a fragment.",
        "The compiler accepts the same expression twice. The instruction then multiplies with one element in two places and leaves out "
        "another; of a result, one element is lost.",
        "Write the expression that belongs to the place.",
        _EXAMPLE.replace('"r"(a[2])', '"r"(a[1])'),
        _EXAMPLE,
    ),
    "uninitialised-operand": Rule(
        'An operand that the instruction reads is an input, or an output with "+".',
        'The compiler does not pass the value of an output with "=". The register holds anything when the instruction reads it.',
        'Write "+f" for an accumulator that is read and written.',
        _EXAMPLE.replace("+f", "=f"),
        _EXAMPLE,
    ),
    "unused-operand": Rule(
        "Every register that is an operand of an asm statement occurs in its text.",
        "The compiler accepts operands that nobody uses. Behind one that is left over, all numbers are off by one.",
        "Remove the operand, or correct the numbers in the text.",
        _EXAMPLE.replace('"r"(a[0])', '"l"(d), "r"(a[0])').replace("{%4, %5, %6, %7}, {%8, %9}", "{%5, %6, %7, %8}, {%9, %10}"),
        _EXAMPLE,
    ),
}

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
        lists = [*_lists(statement, form)]
        for remark in (*_read(function, statement, form, named, lists), *_repeated(function, statement, named, lists)):
            yield remark, statement.opcode
    first = judged[0][0]
    used = {*_NAMES.findall(function.text)}
    if used.issuperset(named):
        return
    tied = {operand.constraint for operand in function.operands}
    for number, operand in enumerate(function.operands):
        if operand.is_register and str(number) not in tied and used.isdisjoint(name.encode() for name in operand.names(number)):
            text = f"operand {number}, {operand}, is not used"
            yield Remark(Token(first.opcode, first.start), "warning", "unused-operand", text), first.opcode


class _List(NamedTuple):
    """A list of an instruction.

    Attributes:
        place: the operand's place in the statement.
        access: the instruction's access to it.
        elements: their texts.
    """

    place: int
    access: str
    elements: list[bytes]

    def element(self, function: Function, statement: Statement, number: int) -> Token:
        """An element with its place."""
        return operand_values.elements(function.operand(statement, self.place))[number]


def _lists(statement: Statement, form: OperandForm) -> Iterator[_List]:
    """The lists of an instruction; a single register in the statement is a list of one element."""
    for place, name in enumerate(ptx.items(form.syntax)):
        if ptx.named(name) == [name] and (operand := form.operand(name)).listed:
            yield _List(place, operand.access, operand_values.element_texts(statement.operands[place]))


def _read(
    function: Function, statement: Statement, form: OperandForm, named: Mapping[bytes, AsmOperand], lists: Iterable[_List]
) -> Iterator[Remark]:
    """Outputs that the instruction reads though nothing was written to them."""
    for each in lists:
        doubtful = [number for number, text in enumerate(each.elements) if text in named and named[text].constraint.startswith("=")]
        if not doubtful or not (each.access == "read" or (each.access == "read-write" and _accumulates(function, statement, form, named))):
            continue
        written = _before(function, statement)
        for number in doubtful:
            if each.elements[number] not in written:
                operand = named[each.elements[number]]
                text = f'{operand} is read here, but its value is not passed: write "{operand.constraint.replace("=", "+")}"'
                yield Remark(each.element(function, statement, number), "warning", "uninitialised-operand", text)
                return


def _accumulates(function: Function, statement: Statement, form: OperandForm, named: Mapping[bytes, AsmOperand]) -> bool:
    """Return whether the instruction may add to what its result holds: its predicate depends on a register that the statement is given."""
    for place, name in enumerate(ptx.items(form.syntax)):
        if ptx.named(name) == [name] and form.operand(name).kind == "predicate":
            predicate = re.escape(statement.operands[place])
            compared = re.search(rb"setp\.\w+\.\w+\s+" + predicate + rb"\s*,\s*(%\w+)\s*,", function.text[: statement.start])
            return compared is not None and compared[1] in named and named[compared[1]].is_register
    return False


def _before(function: Function, statement: Statement) -> set[bytes]:
    """The operands that the text names before an instruction."""
    return set(_NAMES.findall(function.text, 0, statement.start))


def _repeated(function: Function, statement: Statement, named: Mapping[bytes, AsmOperand], lists: Iterable[_List]) -> Iterator[Remark]:
    """Values that take two places of a list whose other elements differ."""
    for each in lists:
        values = [named[text].expression if text in named else "" for text in each.elements]
        again = _doubled(values)
        if again is not None and _NUMBERED.search(values[again]) and (each.access != "read" or len(values) >= _FEWEST):
            first = values.index(values[again])
            text = f"{values[again].replace(' ', '')} takes places {first} and {again} of one list"
            yield Remark(each.element(function, statement, again), "warning", "repeated-operand", text)


def _doubled(values: Sequence[str]) -> int | None:
    """The second place of the only value that takes two; None if all differ, or several or unknown ones do not."""
    return next((place for place, value in enumerate(values) if value in values[:place]), None) if _one_short(values) else None


def _one_short(values: Sequence[str]) -> bool:
    return all(values) and len(set(values)) == len(values) - 1
