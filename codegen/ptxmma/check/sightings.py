"""Where assemblers take what the rules of a database refuse: the errata that have such an instruction, and what it stands for.

An erratum names single instructions, each on a target.  What it says of a register holds for all operands of that kind and those types;
what it says of a list or a constant, for all instructions whose operands come in the same registers and constants; what it says of braces
round a register, or of a register without them, for the instructions of its way (see :func:`_way`); all for the targets from its own up to
the next that another line names.  What it says of a modifier holds for the instructions of its family that have its type of A or one like
it, and for the place at the end, or any other, where it stands; where it is refused, for those that have as many other modifiers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxmma import ptx
from ptxmma.check import constants
from ptxmma.requirements import version_key
from ptxmma.variants import SHAPE, placeholders

if TYPE_CHECKING:
    from ptxmma.check.legality import Legality, Value
    from ptxmma.instructions import Catalog, Instruction, OperandForm
    from ptxmma.model import Sighting, Spec
    from ptxmma.operands import Operand

_TOOL = re.compile(r"ptxas (\d+\.\d+)(?: to (\d+\.\d+))?")

#: Bits of floating-point types that assemblers treat alike.
_NARROW = 8
#: A family and its type of A, or what the type has in common with others.
_Kind = tuple[str, str]
#: See :func:`_way`.
_Way = tuple[_Kind, tuple[str, ...]]
#: The registers and constants of operands, the place of one among them, and its value.
_Key = tuple[tuple[tuple[object, ...], ...], int, "Value"]


class Sightings:
    """What the newest assembler was seen to take."""

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

    def without_ignored(self, spelling: str) -> Instruction | None:
        """The instruction that a spelling means without the modifiers that assemblers ignore, where it has some."""
        for shorter, removed, last in _shortened(spelling):
            if seen := self._ignored.get((removed, last)):
                found = self._legality.exactly(shorter)
                if found is not None and _kind(found) in seen and not self._clashes(removed, found):
                    return found
        return None

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {target.name: target.number for target in self._catalog.database.spec.targets}

    @functools.cached_property
    def _operands(self) -> dict[_Key, list[tuple[int, bool]]]:
        """Structure, operand and value -> numbers of targets, ascending, and whether they take it."""
        found: dict[_Key, list[tuple[int, bool]]] = {}
        for seen in _newest(self._catalog.database.spec):
            spelling, *texts = seen.asked.split(" ")
            instruction = self._legality.exactly(spelling)
            if instruction is None:
                continue
            values = tuple(map(_value, texts))
            for form in ptx.operand_lists(instruction):
                places = {fault.operand for fault in self._legality.of_form(form, values) or () if fault.severe}
                if len(places) == 1:
                    place = places.pop()
                    answers = found.setdefault(_key(instruction, form, place, values[place]), [])
                    answers.append((self._numbers[seen.target], seen.answer == "accepted"))
        return {key: sorted(answers) for key, answers in found.items() if any(accepted for _, accepted in answers)}

    @functools.cached_property
    def _braces(self) -> dict[_Way, list[tuple[int, bool]]]:
        """Ways -> numbers of targets, ascending, and whether they take braces round a register."""
        found: dict[_Way, list[tuple[int, bool]]] = {}
        for seen in _newest(self._catalog.database.spec):
            spelling, *texts = seen.asked.split(" ")
            instruction = self._legality.exactly(spelling)
            for form in ptx.operand_lists(instruction) if instruction is not None else ():
                faults = self._legality.of_form(form, tuple(map(_value, texts)))
                if instruction is not None and faults and all(fault.rule == "list" and not fault.severe for fault in faults):
                    found.setdefault(_way(instruction), []).append((self._numbers[seen.target], seen.answer == "accepted"))
        return {way: sorted(answers) for way, answers in found.items()}

    def _clashes(self, removed: str, instruction: Instruction) -> bool:
        """Whether assemblers refuse what they ignore elsewhere because of the instruction's other modifiers."""
        present = {name for name in instruction.qualifiers if instruction.variant.facts.get(name)}
        return any(kind == _kind(instruction) and names <= present for kind, names in self._refused.get(removed, ()))

    @functools.cached_property
    def _refused(self) -> dict[str, list[tuple[_Kind, set[str]]]]:
        """Modifiers -> families and types of A with which they were seen to be refused, and the qualifiers that were there."""
        found: dict[str, list[tuple[_Kind, set[str]]]] = {}
        for seen in _newest(self._catalog.database.spec):
            spelling = seen.asked.split(" ")[0]
            if seen.answer != "accepted" and self._legality.exactly(spelling) is None:
                for shorter, removed, _ in _shortened(spelling):
                    if (instruction := self._legality.exactly(shorter)) is not None:
                        names = {name for name in instruction.qualifiers if instruction.variant.facts.get(name)}
                        found.setdefault(removed, []).append((_kind(instruction), names))
        return found

    @functools.cached_property
    def _ignored(self) -> dict[tuple[str, bool], set[_Kind]]:
        """Modifiers that make no difference, and whether at the end -> families and types of A with which they were seen."""
        found: dict[tuple[str, bool], set[_Kind]] = {}
        for seen in _newest(self._catalog.database.spec):
            spelling = seen.asked.split(" ")[0]
            if seen.answer == "accepted" and self._legality.exactly(spelling) is None:
                for shorter, removed, last in _shortened(spelling):
                    if (instruction := self._legality.exactly(shorter)) is not None:
                        found.setdefault((removed, last), set()).add(_kind(instruction))
        return found


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
    """A single register depends on its operand only; a list or a constant on the others, too; a register for a list on the way as well."""
    if isinstance(value, str):
        names = ptx.items(form.syntax)[place].strip("{}").split(", ")
        if not form.operand(names[0]).elements:
            return tuple(_registers(form.operand(name)) for name in names), 0, value
        return (_way(instruction), *map(_registers, form.operands)), place, value
    return tuple(map(_registers, form.operands)), place, value


def _registers(operand: Operand) -> tuple[object, ...]:
    return operand.kind, operand.registers, operand.register_types, str(operand.immediates)


def _answer(seen: list[tuple[int, bool]], number: int | None) -> bool:
    if number is None:  # any target
        return any(accepted for _, accepted in seen)
    before = [accepted for other, accepted in seen if other <= number]
    return before[-1] if before else seen[0][1]


def _shortened(spelling: str) -> Iterator[tuple[str, str, bool]]:
    """A spelling without one modifier, or without two that stand side by side, what was taken out, and whether from the end."""
    tokens = spelling.split(".")
    for count in (1, 2):
        for place in range(1, len(tokens) - count + 1):
            rest = tokens[place + count :]
            yield ".".join(tokens[:place] + rest), ".".join(tokens[place : place + count]), not rest


def _value(text: str) -> Value:
    """The value of an operand as errata write it: ``4f32``, ``{b32,f32}``, ``0``."""
    if text.startswith("{"):
        return tuple(text[1:-1].split(","))
    number = constants.integer(text.encode())
    if number is not None:
        return number
    digits = len(text) - len(text.lstrip("0123456789"))
    return (text[digits:],) * int(text[:digits]) if digits else text
