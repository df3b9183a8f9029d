"""The instruction at a place of a source."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import NamedTuple

from ptxmma.ptx.statements import OPERAND, Function, Statement


class Spot(NamedTuple):
    """A place in an instruction.

    Attributes:
        function: the function that has the instruction.
        statement: the instruction, which need not be complete.
        offset: byte offset of the place in the function's text.
    """

    function: Function
    statement: Statement
    offset: int

    @property
    def in_opcode(self) -> bool:
        """True from the first character of the opcode up to the place after its last."""
        return self.offset <= self.statement.start + len(self.statement.opcode)

    @property
    def operand(self) -> int:
        """The index of the operand at the place, or of the one that would be written there."""
        before = self.function.text[self.statement.start + len(self.statement.opcode) : self.offset]
        opened = max(before.rfind(b"{"), before.rfind(b"["))
        if opened > max(before.rfind(b"}"), before.rfind(b"]")):
            before = before[:opened]
        return OPERAND.sub(b"", before).count(b",")


def spot(functions: Iterable[Function], line: int, column: int) -> Spot | None:
    """The instruction at a place; None where there is none.

    Args:
        functions: the functions of the source.
        line: the line, from 1.
        column: the column in characters, from 1.
    """
    place = line, column
    for function in functions:
        offset = bisect.bisect_left(range(len(function.text)), place, key=function.position)
        starts = function.places
        number = bisect.bisect_right(starts, offset)
        statement = function.statement(starts[number - 1]) if number else None
        if statement is not None and function.position(statement.start) <= place <= function.position(statement.end):
            return Spot(function, statement, offset)
    return None
