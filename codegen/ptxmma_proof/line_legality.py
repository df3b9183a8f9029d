"""The verdict of the database alone, without the rules of the errata, on a whole line: spelling, operands, immediates."""

from __future__ import annotations

import functools

from ptxmma.catalog.instructions import Catalog, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.model import Version
from ptxmma.ptx import lines as ptx
from ptxmma.ptx.operand_values import SINK


class Legality:
    """Judges lines by a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._find = functools.lru_cache(maxsize=1 << 16)(catalog.meaning)

    def accepted_by(self, line: str) -> dict[str, Version]:
        """The targets that accept a line, each with its first version; none for an illegal line."""
        spelling, operands = ptx.split(line)
        instruction = self._find(spelling)
        forms = ptx.operand_lists(instruction) if instruction is not None else ()
        form = next((form for form in forms if _fits(form, operands)), None)
        if instruction is None or form is None:
            return {}
        banks = {name: bank for name, text in zip(ptx.items(form.syntax), operands, strict=True) if (bank := ptx.bank_of(text))}
        return instruction.accepted_by(form=form.given({**banks, **_constants(form, operands)}))


def _fits(form: OperandForm, texts: list[str]) -> bool:
    names = ptx.items(form.syntax)
    if len(names) != len(texts) or not all(_takes(form, name, text) for name, text in zip(names, texts, strict=True)):
        return False
    return form.exceeding(_constants(form, texts)) is None


def _constants(form: OperandForm, texts: list[str]) -> dict[str, int]:
    """The constants among the operands, by name."""
    return {name: int(text) for name, text in zip(ptx.items(form.syntax), texts, strict=True) if text.isdecimal()}


def _takes(form: OperandForm, name: str, text: str) -> bool:
    if "|" in name:
        return text.count("|") == name.count("|") and all(map(_takes_one, map(form.operand, name.split("|")), text.split("|")))
    if ptx.named(name) != [name]:  # operands in braces or brackets
        names, inside = ptx.named(name), ptx.items(text[1:-1])
        return (
            text.startswith(name[0]) and len(inside) == len(names) and all(_takes(form, *pair) for pair in zip(names, inside, strict=True))
        )
    parts = ptx.items(text[1:-1]) if text.startswith("{") else None
    operand = form.operand(name)
    if not operand.listed:
        return parts is None and _takes_one(operand, text)
    if parts is None or len(parts) != operand.registers:
        return False
    if operand.immediates is not None:  # each is a number of its own
        return all(_takes_one(operand, part) for part in parts)
    banks = {ptx.bank_of(part) for part in parts}
    return len(banks) == 1 and banks.pop() in operand.register_types


def _takes_one(operand: Operand, text: str) -> bool:
    if text == SINK or operand.kind == "sink":
        return text == SINK and (operand.kind == "sink" or operand.droppable)
    if bank := ptx.bank_of(text):
        return operand.takes_register and bank in operand.register_types
    return operand.immediates is not None and text.lstrip("-").isdecimal() and int(text) in operand.immediates
