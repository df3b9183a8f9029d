"""Where assemblers do otherwise than the rules of a database say: the errata that have such an instruction, and what it stands for.

An erratum names single instructions, each on a target.  What it says of a register holds for all operands of that kind and those types;
what it says of a constant or a list, for all instructions whose operands come in the same registers and constants; what it says of braces
round a register, or of a register without them, for the instructions of its way (see :func:`_way`); what it says of a list that the rules
accept, for such members as no whole list of its operand may consist of, in lists of instructions of its kind, from their place up to the
next that another line names; all for the targets from its own up to the next that another line names.

Releases differ.  The one that judges a target is the last that knows it; where nobody asked it, a later one speaks for it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.catalog.requirements import version_key
from ptxmma.catalog.variants import SHAPE, placeholders
from ptxmma.check import constants
from ptxmma.check.values import ANYTHING, DOUBLE, FLOAT, PREDICATE, SINK, Scalar, Value, class_of
from ptxmma.ptx import lines as ptx

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
    from ptxmma.catalog.operands import Operand
    from ptxmma.check.legality import Fault, Legality
    from ptxmma.model import Sighting, Target

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
#: A kind, the registers of an operand, how it is accessed, and what a member of its list has in common with others.
_Member = tuple[_Kind, tuple[object, ...], str, str]
_Release = tuple[int, ...]


class _Answer(NamedTuple):
    """What releases said of something on a target."""

    number: int  # of the target
    accepted: bool
    first: _Release
    last: _Release
    place: int = 0  # of a member in its list


class _Row(NamedTuple):
    """A sighting of an instruction with operands of one list."""

    instruction: Instruction
    form: OperandForm
    values: tuple[Value, ...]
    faults: list[Fault]  # what the rules say of them
    answer: _Answer


class Sightings:
    """What assemblers were seen to take and to refuse, each target by the release that judges it."""

    def __init__(self, catalog: Catalog, legality: Legality) -> None:
        self._catalog = catalog
        self._legality = legality

    def takes(self, instruction: Instruction, form: OperandForm, place: int, value: Value, target: str) -> bool:
        """Whether assemblers take a value for an operand, though its rules refuse it."""
        return self._answer(self._operands.get(_key(instruction, form, place, value), []), target)

    def takes_braces(self, instruction: Instruction, target: str) -> bool:
        """Whether assemblers take braces round a register that may have any type: unless they were seen to refuse them."""
        return self._answer(self._braces.get(_way(instruction), []), target, below=True)

    def refuses_member(self, instruction: Instruction, form: OperandForm, place: int, value: Value, target: str) -> bool:
        """Whether assemblers were seen to refuse a member of a list, though its rules accept the list."""
        for index, member in _members(instruction, form, place, value):
            if not self._answer(_nearest(self._lists.get(member, []), index), target, below=True):
                return True
        return False

    def _answer(self, seen: list[_Answer], target: str, *, below: bool = False) -> bool:
        """What holds for a target: the answer about the nearest one up to it; for any target, whether one takes it.

        Args:
            seen: answers; where several are about one target, the last holds of those that its release gave.
            target: ``""``: any.
            below: the answer for targets below all of these; without it, that of the lowest.
        """
        found = self._targets.get(target)
        release = version_key(found.until) if found is not None and found.until else self._newest
        heard = sorted((each for each in seen if release <= each.last), key=lambda each: (each.number, each.first <= release))
        if found is None:
            return below or any(each.accepted for each in heard)
        up_to = [each.accepted for each in heard if each.number <= found.number]
        return up_to[-1] if up_to else below or (bool(heard) and heard[0].accepted)

    @functools.cached_property
    def _targets(self) -> dict[str, Target]:
        return {target.name: target for target in self._catalog.database.spec.targets}

    @functools.cached_property
    def _seen(self) -> list[tuple[Sighting, _Release, _Release]]:
        """Answers of assemblers about instructions that the database does not have, with the first and the last release that gave them."""
        every = [seen for entry in self._catalog.database.spec.errata for seen in entry.seen if seen.asked and seen.database == "refuses"]
        found = [(seen, _TOOL.fullmatch(seen.tool)) for seen in every if not seen.asked.endswith(";")]
        return [(seen, version_key(match[1]), version_key(match[2] or match[1])) for seen, match in found if match]

    @functools.cached_property
    def _newest(self) -> _Release:
        return max((last for _, _, last in self._seen), default=())

    @functools.cached_property
    def _operands(self) -> dict[_Key, list[_Answer]]:
        """Structure, operand and value -> where they were asked about."""
        found: dict[_Key, list[_Answer]] = {}
        for row in self._rows:
            places = {fault.operand for fault in row.faults if fault.severe}
            if len(places) == 1:
                place = places.pop()
                found.setdefault(_key(row.instruction, row.form, place, row.values[place]), []).append(row.answer)
        return {key: sorted(answers) for key, answers in found.items()}

    @functools.cached_property
    def _braces(self) -> dict[_Way, list[_Answer]]:
        """Ways -> where braces round a register were asked about."""
        found: dict[_Way, list[_Answer]] = {}
        for row in self._rows:
            if row.faults and all(fault.rule == "list" and not fault.severe for fault in row.faults):
                found.setdefault(_way(row.instruction), []).append(row.answer)
        return {way: sorted(answers) for way, answers in found.items()}

    @functools.cached_property
    def _lists(self) -> dict[_Member, list[_Answer]]:
        """Members of lists that the rules accept -> where they were asked about; of several, a refusal does not say which is meant."""
        found: dict[_Member, list[_Answer]] = {}
        for row in self._rows:
            values = enumerate(() if any(fault.severe for fault in row.faults) else row.values)
            members = [each for place, value in values for each in _members(row.instruction, row.form, place, value)]
            for index, member in members if row.answer.accepted or len(members) == 1 else []:
                found.setdefault(member, []).append(row.answer._replace(place=index))
        return found

    @functools.cached_property
    def _rows(self) -> list[_Row]:
        """The sightings of instructions that the database has, each with every operand list of as many operands."""
        judged = functools.cache(self._judged)  # most were asked on several targets
        return [
            _Row(*each, _Answer(self._targets[seen.target].number, seen.answer == "accepted", first, last))
            for seen, first, last in self._seen
            for each in judged(seen.asked)
        ]

    def _judged(self, asked: str) -> list[tuple[Instruction, OperandForm, tuple[Value, ...], list[Fault]]]:
        """What the rules say of an instruction with operands, once for every operand list of as many; nothing of one that is unknown."""
        spelling, *texts = asked.split(" ")
        instruction = self._catalog.meaning(spelling)
        if instruction is None:
            return []
        values = tuple(map(value_of, texts))
        judged = ((form, self._legality.of_form(form, values)) for form in ptx.operand_lists(instruction))
        return [(instruction, form, values, faults) for form, faults in judged if faults is not None]


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


def _key(instruction: Instruction, form: OperandForm, place: int, value: Value) -> _Key:
    """A single register depends on its operand only; a list or a constant on the others, too; a register for a list on the way alone."""
    if isinstance(value, str):
        names = ptx.items(form.syntax)[place].strip("{}").split(", ")
        operand = form.operand(names[0])
        if not operand.elements:
            return tuple(_registers(form.operand(name)) for name in names), 0, value
        return (_way(instruction),), place, _ITS_OWN if value in (*operand.register_types, PREDICATE) else value
    return tuple(map(_registers, form.operands)), place, value


def _members(instruction: Instruction, form: OperandForm, place: int, value: Value) -> Iterator[tuple[int, _Member]]:
    """The members of a list that no list of its operand may consist of, and their numbers in it."""
    name = ptx.items(form.syntax)[place]
    if not isinstance(value, tuple) or name.startswith("{") or not form.operand(name).elements:
        return
    operand = form.operand(name)
    for index, each in enumerate(value):
        if each not in (*operand.register_types, ANYTHING):
            yield index, (_kind(instruction), _registers(operand), operand.access, _alike(each))


def _nearest(seen: list[_Answer], index: int) -> list[_Answer]:
    """Answers about members of lists, the nearest one up to an index last."""
    return sorted(seen, key=lambda each: (each.place <= index, each.place))


def _alike(value: Scalar) -> str:
    """What a member of a list has in common with others: registers their class; constants of one type; ``_``."""
    if isinstance(value, int):
        return "constant"
    return value if value in (FLOAT, DOUBLE, SINK) else class_of(value)


def _registers(operand: Operand) -> tuple[object, ...]:
    return operand.kind, operand.registers, operand.register_types, str(operand.immediates)


def value_of(text: str) -> Value:
    """The value of an operand as errata write it: ``4f32``, ``{b32,f32}``, ``0``."""
    if text.startswith("{"):
        return tuple(map(_scalar, text[1:-1].split(",")))
    match = ptx.VECTOR.fullmatch(text)
    return (match[2],) * int(match[1]) if match else _scalar(text)


def _scalar(text: str) -> Scalar:
    number = constants.integer(text.encode())
    if number is not None:
        return number
    return {"f32": FLOAT, "f64": DOUBLE}.get(constants.floating(text.encode()), text)
