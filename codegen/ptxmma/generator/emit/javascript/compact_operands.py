"""Operands as JavaScript reads them: what each is for, and how PTX and C++ take it."""

from __future__ import annotations

import re
from typing import Any

from ptxmma.catalog.cplusplus import identifier
from ptxmma.catalog.instructions import OperandForm
from ptxmma.catalog.operands import ROLES, Operand
from ptxmma.generator.emit.javascript.interned import without_empty

#: More legal values than these are written as a range.
_FEW = 16


def places_in(form: OperandForm) -> str:
    """The syntax of a list of operands with ``#`` for each of them.

    Raises:
        ValueError: it has other names than the operands, or another order.
    """
    places = re.sub(r"[\w-]+", "#", form.syntax)
    names = iter(form.operands)
    if re.sub("#", lambda _: next(names).name, places) != form.syntax:
        raise ValueError(f"{form.syntax!r} does not list its operands in their order")
    return places


def subject(operand: Operand) -> dict[str, Any]:
    """The purpose of an operand, whatever holds it."""
    return {"name": operand.name, "kind": operand.kind, "title": operand.title} | without_empty(
        of=operand.of,
        meanings=operand.meanings,
        single=operand.single,
        braced=operand.braced,
        sparse=operand.sparsity is not None,
        unit=operand.unit,
        identifier=called if (called := identifier(operand.name)) != operand.name else "",
    )


def role(operand: Operand) -> dict[str, Any]:
    """The form in which PTX takes an operand."""
    legal: Any = operand.immediates
    if legal is not None and len(legal) > _FEW:
        legal = {"first": legal[0], "last": legal[-1]}
    elif legal is not None:
        legal = list(legal)
    return without_empty(
        access=operand.access if operand.access != "read" else "",
        constraint=operand.constraint,
        immediates=legal,
        immediate_only=not operand.takes_register,
    )


def cpp(operand: Operand) -> dict[str, str]:
    """The usual way in which a C++ function takes it, with ``#`` for the numbers of registers and ``@`` for its identifier."""
    name = identifier(operand.name)
    way = ROLES[operand.kind].parameters(operand, name, operand.c_type)[0]
    many = operand.registers > 1 or operand.listed
    value = way.values[0].replace("[0]", "[#]") if many else way.values[0]
    parameter = way.parameter.replace(f"[{operand.registers}]", "[#]") if many else way.parameter
    text = "" if way.text == "{}" else way.text
    texts = without_empty(parameter=parameter, template=way.template, value=value, text=text, prologue=way.prologue)
    return {key: re.sub(rf"(?<!\")\b{name}\b", "@", each) for key, each in texts.items()}
