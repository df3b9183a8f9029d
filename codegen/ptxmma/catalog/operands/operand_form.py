"""Operand lists of instructions."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ptxmma.catalog.operands.operand import Operand
from ptxmma.model import OperandRequirement, Requirement


class Missing(ValueError, KeyError, AttributeError):
    """An instruction lacks an operand, sparsity metadata or scale factors.

    It is a ``ValueError``, a ``KeyError`` and an ``AttributeError``, so that ``hasattr(instruction, "metadata")`` works.
    """

    __str__ = Exception.__str__  # a KeyError would quote the message


class OperandForm(msgspec.Struct, frozen=True):
    """One operand list of an instruction.

    Attributes:
        name: ``"registers"`` or ``"descriptor"``, the source of A; ``""`` where there is one list only.
        syntax: the manual's text: ``"d, a, b-desc, scale-d"``.
        operands: the operands in order.
        requires: the requirements of these operands in addition to the instruction's.
        of_values: further requirements of some constants or register types of an operand, each with the operand's name.
    """

    name: str
    syntax: str
    operands: tuple[Operand, ...]
    requires: tuple[Requirement, ...] = ()
    of_values: tuple[tuple[str, OperandRequirement], ...] = ()

    def __repr__(self) -> str:
        return f"<OperandForm {self.name + ': ' if self.name else ''}{self.syntax}>"

    def operand(self, name: str) -> Operand:
        """Return the operand of that name.

        Raises:
            Missing: the form lacks it.
        """
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise Missing(f"no operand {name!r}; this form has {', '.join(operand.name for operand in self.operands)}")

    def given(self, values: Mapping[str, int | str]) -> OperandForm:
        """Return the form with the requirements of some operands' constants or register types among its own."""
        rules = tuple(rule for name, rule in self.of_values if values.get(name) in rule.values)
        return msgspec.structs.replace(self, requires=(*self.requires, *rules)) if rules else self

    def exceeding(self, immediates: Mapping[str, int]) -> Operand | None:
        """Return the first operand whose immediate exceeds the immediate of another, which it must not; None if none does."""
        limited = (operand for operand in self.operands if operand.name in immediates and operand.within in immediates)
        return next((operand for operand in limited if immediates[operand.name] > immediates[operand.within]), None)
