"""Where assemblers do otherwise than the rules of a database say: the errata that have such an instruction, and what it stands for.

An erratum names single instructions, each on a target.  What it says of a register holds for all operands of that kind and those types;
what it says of a constant or a list, for all instructions whose operands come in the same registers and constants; what it says of braces
round a register, or of a register without them, for the instructions of its way (see :func:`_way`); what it refuses of a list that the
rules accept, for the lists of its way and registers whose elements have the same classes; all for the targets from its own up to the next
that another line names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ptxmma import ptx
from ptxmma.check import constants
from ptxmma.check.values import DOUBLE, FLOAT, PREDICATE, Scalar, Value, class_of
from ptxmma.requirements import version_key
from ptxmma.variants import SHAPE, placeholders

if TYPE_CHECKING:
    from ptxmma.check.legality import Fault, Legality
    from ptxmma.instructions import Catalog, Instruction, OperandForm
    from ptxmma.model import Sighting, Spec
    from ptxmma.operands import Operand

_TOOL = re.compile(r"ptxas (\d+\.\d+)(?: to (\d+\.\d+))?")

#: Stands for a register of an operand's own types where it takes a list.
_ITS_OWN = "its own"
#: Bits of floating-point types that assemblers treat alike.
_NARROW = 8
#: A family and its type of A, or what the type has in common with others.
_Kind = tuple[str, str]
#: See :func:`_way`.
_Way = tuple[_Kind, tuple[str, ...]]
#: The registers and constants of operands, the place of one among them, and its value.
_Key = tuple[tuple[tuple[object, ...], ...], int, Value]
#: A way, the registers and constants of operands, the place of a list among them, and the classes of its elements.
_Mixture = tuple[_Way, tuple[tuple[object, ...], ...], int, tuple[str, ...]]
#: The number of a target, and whether it takes what was asked.
_Answer = tuple[int, bool]


class _Row(NamedTuple):
    """A sighting of an instruction with operands of one list."""

    instruction: Instruction
    form: OperandForm
    values: tuple[Value, ...]
    faults: list[Fault]  # what the rules say of them
    answer: _Answer


class Sightings:
    """What the newest assembler was seen to take and to refuse."""

    def __init__(self, catalog: Catalog, legality: Legality) -> None:
        self._catalog = catalog
        self._legality = legality

    def takes(self, instruction: Instruction, form: OperandForm, place: int, value: Value, target: str) -> bool:
        """Whether assemblers take a value for an operand, though its rules refuse it."""
        seen = self._operands.get(_key(instruction, form, place, value), [])
        return bool(seen) and _answer(seen, self._numbers.get(target))

    def takes_braces(self, instruction: Instruction, target: str) -> bool:
        """Whether assemblers take braces round a register that may have any type: unless they were seen to refuse them."""
        seen = self._braces.get(_way(instruction), [])
        number = self._numbers.get(target)
        return not seen or _answer([(0, True), *seen], number)

    def refuses_mixture(self, instruction: Instruction, form: OperandForm, place: int, value: tuple[Scalar, ...], target: str) -> bool:
        """Whether assemblers were seen to refuse a list of such types, though its rules accept it."""
        classes = tuple(map(class_of, value))
        if len(set(classes)) == 1:
            return False
        seen = self._mixtures.get(_mixture(instruction, form, place, classes), [])
        return bool(seen) and not _answer([(0, True), *seen], self._numbers.get(target))

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {target.name: target.number for target in self._catalog.database.spec.targets}

    @functools.cached_property
    def _operands(self) -> dict[_Key, list[_Answer]]:
        """Structure, operand and value -> where they were asked about."""
        found: dict[_Key, list[_Answer]] = {}
        for row in self._rows():
            places = {fault.operand for fault in row.faults if fault.severe}
            if len(places) == 1:
                place = places.pop()
                found.setdefault(_key(row.instruction, row.form, place, row.values[place]), []).append(row.answer)
        return {key: sorted(answers) for key, answers in found.items() if any(accepted for _, accepted in answers)}

    @functools.cached_property
    def _braces(self) -> dict[_Way, list[_Answer]]:
        """Ways -> where braces round a register were asked about."""
        found: dict[_Way, list[_Answer]] = {}
        for row in self._rows():
            if row.faults and all(fault.rule == "list" and not fault.severe for fault in row.faults):
                found.setdefault(_way(row.instruction), []).append(row.answer)
        return {way: sorted(answers) for way, answers in found.items()}

    @functools.cached_property
    def _mixtures(self) -> dict[_Mixture, list[_Answer]]:
        """Lists of different classes that the rules accept -> where they were asked about."""
        found: dict[_Mixture, list[_Answer]] = {}
        for row in self._rows():
            for place, value in enumerate(() if row.faults else row.values):
                if isinstance(value, tuple):
                    classes = tuple(map(class_of, value))
                    found.setdefault(_mixture(row.instruction, row.form, place, classes), []).append(row.answer)
        return {mixture: sorted(answers) for mixture, answers in found.items()}

    def _rows(self) -> Iterator[_Row]:
        """The sightings of instructions that the database has, each with every operand list of as many operands."""
        for seen in _newest(self._catalog.database.spec):
            spelling, *texts = seen.asked.split(" ")
            instruction = self._catalog.meaning(spelling)
            values = tuple(map(value_of, texts))
            for form in ptx.operand_lists(instruction) if instruction is not None else ():
                faults = self._legality.of_form(form, values)
                if instruction is not None and faults is not None:
                    yield _Row(instruction, form, values, faults, (self._numbers[seen.target], seen.answer == "accepted"))


def _kind(instruction: Instruction) -> _Kind:
    """A family and a type of A; integers of one size are alike, and so are floating-point types of at most a byte."""
    name = instruction.variant.facts.get("atype")
    a = next((entry for entry in instruction.database.spec.types.elements if entry.name == name), None)
    if a is None:
        return instruction.family, ""
    if a.form != "float":
        return instruction.family, f"{a.bits} bits"
    return instruction.family, a.name if a.bits > _NARROW else "narrow"


def _way(instruction: Instruction) -> _Way:
    """What decides whether an assembler puts other instructions in the place of one: its kind, and the qualifiers before its shape."""
    names = placeholders(instruction.variant.instruction.syntax)
    before = names[: names.index(SHAPE)] if SHAPE in names else []
    return _kind(instruction), tuple(str(instruction.variant.facts.get(name)) for name in before)


def _newest(spec: Spec) -> Iterator[Sighting]:
    """The single instructions about which the newest assembler differs from the database, and their neighbours on other targets."""
    ranges = {seen: _TOOL.fullmatch(seen.tool) for entry in spec.errata for seen in entry.seen}
    last = {seen.tool: match[2] or match[1] for seen, match in ranges.items() if match}
    newest = max(last.values(), key=version_key, default="")
    for entry in spec.errata:
        for seen in entry.seen:
            if last.get(seen.tool) == newest and seen.asked and seen.database == "refuses" and not seen.asked.endswith(";"):
                yield seen


def _key(instruction: Instruction, form: OperandForm, place: int, value: Value) -> _Key:
    """A single register depends on its operand only; a list or a constant on the others, too; a register for a list on the way alone."""
    if isinstance(value, str):
        names = ptx.items(form.syntax)[place].strip("{}").split(", ")
        operand = form.operand(names[0])
        if not operand.elements:
            return tuple(_registers(form.operand(name)) for name in names), 0, value
        return (_way(instruction),), place, _ITS_OWN if value in (*operand.register_types, PREDICATE) else value
    return tuple(map(_registers, form.operands)), place, value


def _mixture(instruction: Instruction, form: OperandForm, place: int, classes: tuple[str, ...]) -> _Mixture:
    return _way(instruction), tuple(map(_registers, form.operands)), place, classes


def _registers(operand: Operand) -> tuple[object, ...]:
    return operand.kind, operand.registers, operand.register_types, str(operand.immediates)


def _answer(seen: list[_Answer], number: int | None) -> bool:
    if number is None:  # any target
        return any(accepted for _, accepted in seen)
    before = [accepted for other, accepted in seen if other <= number]
    return before[-1] if before else seen[0][1]


def value_of(text: str) -> Value:
    """The value of an operand as errata write it: ``4f32``, ``{b32,f32}``, ``0``."""
    if text.startswith("{"):
        return tuple(map(_scalar, text[1:-1].split(",")))
    digits = len(text) - len(text.lstrip("0123456789"))
    return (text[digits:],) * int(text[:digits]) if digits and text[digits:].isidentifier() else _scalar(text)


def _scalar(text: str) -> Scalar:
    number = constants.integer(text.encode())
    if number is not None:
        return number
    return {"f32": FLOAT, "f64": DOUBLE}.get(constants.floating(text.encode()), text)
