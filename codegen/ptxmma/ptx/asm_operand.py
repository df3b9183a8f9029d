"""An operand of an ``asm`` statement."""

from __future__ import annotations

from typing import NamedTuple

#: Constraints of operands that need not occur in the text: they say what the statement depends on.
_OTHERS = frozenset("mniCX")


class AsmOperand(NamedTuple):
    """An operand of an ``asm`` statement.

    Attributes:
        name: ``"x"`` of ``[x] "r"(value)``; ``""`` without one.
        constraint: the constraint as it is written, ``"=f"``.
        expression: the expression that is bound to it, with blanks between its tokens.
        type: the type of the register that its constraint asks for; anything where that cannot be seen.
        values: the constants that it may be, as the text writes them; none where that cannot be seen.
        passed: the number that its register has at first; None where that cannot be seen.
    """

    name: str
    constraint: str
    expression: str
    type: str
    values: tuple[str, ...]
    passed: int | None

    def names(self, number: int) -> list[str]:
        """Its names in PTX text, if it has this number."""
        return [f"%{number}", *([f"%_{self.name}_"] if self.name else [])]

    @property
    def is_register(self) -> bool:
        """True if it is a register of its own."""
        plain = self.constraint.lstrip("=+&%")
        return plain.isalpha() and _OTHERS.isdisjoint(plain)

    def __str__(self) -> str:
        return f'"{self.constraint}"({self.expression.replace(" ", "")})'
