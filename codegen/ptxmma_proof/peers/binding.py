"""Matches the operands of a peer's assembly statement with ours: the form of the instruction, and what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import register_type
from ptxmma.model import Spec
from ptxmma_proof.peers.headers import Bound, Statement

#: ``d0``, ``a12``: expressions that show the order of the registers; casts and members do not.
_NUMBERED = re.compile(r"\b([a-z]+?)(\d+)\b")


class Binding(NamedTuple):
    """A statement's places by our operands, in order, and in words where they do not fit."""

    form: OperandForm
    places: dict[str, tuple[Bound, ...]]
    faults: tuple[str, ...]


def bind(statement: Statement, instruction: Instruction) -> Binding | None:
    """The form with as many places as the statement that fits best, or None."""
    fitting = [
        _bound(statement, instruction, form) for form in instruction.forms if sum(map(width, form.operands)) == len(statement.places)
    ]
    return min(fitting, key=lambda binding: len(binding.faults), default=None)


def width(operand: Operand) -> int:
    """The places that an operand takes in a list."""
    return operand.registers if operand.elements or operand.listed else 1


def _bound(statement: Statement, instruction: Instruction, form: OperandForm) -> Binding:
    places, faults, at = {}, [], 0
    for operand in form.operands:
        own = statement.places[at : at + width(operand)]
        at += len(own)
        places[operand.name] = own
        faults += [f"{operand.name}: {fault}" for fault in _faults(instruction.database.spec, operand, own)]
    return Binding(form, places, tuple(faults))


def _faults(spec: Spec, operand: Operand, places: tuple[Bound, ...]) -> Iterator[str]:
    known = {register_type(spec, name).constraint for name in operand.register_types if operand.kind != "predicate"}
    for place in places:
        constraint = place.constraint.strip("=+&")
        immediate = constraint == "n" or (not constraint and re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", place.expression))
        if immediate and operand.immediates is None:
            yield f"{place.expression} is an immediate; it takes registers"
        elif not constraint and immediate and int(place.expression, 0) not in (operand.immediates or ()):
            yield f"{place.expression} is not among the legal values {', '.join(map(str, operand.immediates or ()))}"
        elif constraint and not immediate and constraint not in known:
            yield f"{place.expression} has the constraint {place.constraint!r}; it takes {', '.join(sorted(known)) or 'an immediate'}"
        if place.constraint and ("=" in place.constraint or "+" in place.constraint) != ("write" in operand.access):
            yield f"{place.expression} has the constraint {place.constraint!r}; the operand is {operand.access}"
    if operand.elements and operand.registers > 1:
        named = [_NUMBERED.fullmatch(place.expression) for place in places]
        order = [(match[1], int(match[2])) for match in named if match]
        if order != [(operand.name, number) for number in range(operand.registers)]:
            yield f"its registers are {', '.join(place.expression for place in places)}"
