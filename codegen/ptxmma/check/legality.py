"""Whether an assembler takes an instruction: its spelling, its operands, its target and version.

How assemblers type operands, by ptxas 11.7 to 13.5:

- A list of registers of one type has that type.  One of mixed types passes as untyped bits if all have one size and no two neighbours
  have types that exclude each other: integer, floating point, f16x2.  Types without a sign (``b32``) go with any.
- Constants are elements of such lists too, integers of integer type and others of floating-point type: s64, f64 and, in hexadecimal, f32.
  A list of constants alone passes where it is mixed, or one of registers of their type would; one that begins with f32, with f32 only.
- Such a list of one, two, four or eight elements also passes for a single register of 32 bits that may have any
  type; not where an assembler puts other instructions in the place of one.  Instructions of a warpgroup take any number of elements.
- A predicate passes for 32 bits of a class of its own; where it stands for a single register, where a list of it would pass.
- ``_`` in a list means that an element of the result is not wanted; those on both sides of it are neighbours.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.requirements import version_key
from ptxmma.catalog.variants import without_ignored
from ptxmma.check.sightings import Sightings
from ptxmma.check.values import (
    ADDRESS,
    ANYTHING,
    BROKEN,
    DOUBLE,
    FLOAT,
    NEGATED,
    PREDICATE,
    SINK,
    UNDECLARED,
    UNREGISTERED,
    Scalar,
    Value,
    class_of,
)
from ptxmma.model import Facts, Ignored, matches
from ptxmma.ptx import lines as ptx

if TYPE_CHECKING:
    from ptxmma.catalog.operands import Operand

#: The type of a metadata register that is refused where an assembler puts other instructions in the place of one.
_REWRITTEN = "f32"
_CONSTANTS = (FLOAT, DOUBLE)
_OTHERS = frozenset({FLOAT, DOUBLE, UNDECLARED, SINK, NEGATED, ADDRESS, BROKEN, UNREGISTERED})

_BITS = re.compile(r"[a-z]+(\d+)(?:x(\d))?")
#: Bits of the registers in most lists, and of an f32 constant.
_SINGLE = 32
#: How many elements a list has that may stand where one register is wanted.
_IN_BRACES = (1, 2, 4, 8)
#: Characters of a spelling beyond which it is none, whatever it says.
_LONGEST = 1000
#: Different opcodes and operand lists that are remembered.
_REMEMBERED = 1 << 13


class Fault(NamedTuple):
    """What is wrong with an operand.

    Attributes:
        rule: short name of what is broken: a key of :data:`ptxmma.check.rules.RULES`.
        message: in words.
        operand: number of the operand in the instruction, from 0; -1 for the operands as a whole.
        element: number of the element in its list, from 0; -1 for all of the operand.
        severe: whether assemblers refuse it.
    """

    rule: str
    message: str
    operand: int = -1
    element: int = -1
    severe: bool = True


class Legality:
    """What a database says of spellings and operands; answers are remembered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._bits = {entry.name: entry.bits for entry in catalog.database.spec.types.registers}
        self._sightings = Sightings(self._catalog, self)
        self.find = functools.lru_cache(maxsize=_REMEMBERED)(self._find)
        self.faults = functools.lru_cache(maxsize=_REMEMBERED)(self._faults)

    def _find(self, spelling: str) -> tuple[Instruction, bool] | None:
        """The instruction of a spelling, and whether the database has the spelling; None where assemblers take none."""
        if len(spelling) > _LONGEST:
            return None
        if (found := self._catalog.meaning(spelling)) is not None:
            return found, True
        for entry in self._catalog.database.spec.instructions:
            for shorter, ignored in without_ignored(entry, spelling):
                found = self._catalog.meaning(shorter)
                if found is not None and found.variant.instruction is entry and _hold(ignored, found.variant.facts):
                    return found, False
        return None

    def _faults(self, instruction: Instruction, values: tuple[Value, ...], target: str) -> tuple[Fault, ...]:
        """What is wrong with the operands of an instruction on a target; those of the operand list that they fit best."""
        forms = ptx.operand_lists(instruction)
        found = [
            [self._as_seen(fault, instruction, form, values, target) for fault in faults] + self._mixed(instruction, form, values, target)
            for form in forms
            for faults in [self.of_form(form, values)]
            if faults is not None
        ]
        if not found:
            if other := _miscounted(forms, values):
                return (other,)
            lists = " or ".join(form.syntax or "no operands" for form in forms)
            return (Fault("operand-count", f"{_count(len(values), 'operand')} where it takes {lists}"),)
        best: list[Fault] = min(found, key=_weight)
        if any(fault.severe for fault in best) and (other := _miscounted(forms, values)):
            return (other,)
        return tuple(best)

    def accepts(self, instruction: Instruction, values: Sequence[Value], target: str = "") -> bool:
        """Whether assemblers take these operands on a target; ``""``: on any."""
        return not any(fault.severe for fault in self.faults(instruction, tuple(values), target))

    def _as_seen(self, fault: Fault, instruction: Instruction, form: OperandForm, values: tuple[Value, ...], target: str) -> Fault:
        """A fault that assemblers let pass is none that they refuse."""
        if fault.operand < 0:
            return fault
        value = values[fault.operand]
        braces = fault.rule == "list" and isinstance(value, tuple)
        if braces and not _stands_for_one(value, instruction):
            return fault._replace(severe=True)
        odd = braces or (fault.rule != "list" and value == PREDICATE)
        if not fault.severe:
            return fault._replace(severe=odd and not self._sightings.takes_braces(instruction, target))
        # What is odd passes where an assembler does not put other instructions in the place of one.
        taken = self._sightings.takes(instruction, form, fault.operand, _REWRITTEN if odd else value, target)
        if fault.rule == "list" and not braces:  # a register for a list: it, too
            taken = taken and self._sightings.takes_braces(instruction, target)
        return fault._replace(severe=not taken)

    def _mixed(self, instruction: Instruction, form: OperandForm, values: tuple[Value, ...], target: str) -> list[Fault]:
        """Lists of which assemblers refuse a member, though they take it elsewhere."""
        return [
            Fault("register-type", "assemblers put another instruction in the place of this one, which does not take all of these", place)
            for place, value in enumerate(values)
            if isinstance(value, tuple) and self._sightings.refuses_member(instruction, form, place, value, target)
        ]

    def of_form(self, form: OperandForm, values: tuple[Value, ...]) -> list[Fault] | None:
        """What is wrong with operands of one list; None where it has another number of them."""
        names = ptx.items(form.syntax)
        if len(names) != len(values):
            return None
        found: list[Fault] = []
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            if name.startswith("{"):
                found += self._group(form, ptx.items(name[1:-1]), value, place)
            elif form.operand(name).elements:
                found += self._list(form.operand(name), value, place)
            else:
                found += self._scalar(form.operand(name), value, place)
        return found

    def _group(self, form: OperandForm, names: list[str], value: Value, place: int) -> list[Fault]:
        """Several operands in braces."""
        if value == ANYTHING:
            return []
        if not isinstance(value, tuple):
            return [Fault("list", f"{{{', '.join(names)}}} takes a list in braces, not {_told(value)}", place)]
        if len(value) != len(names):
            return [Fault("register-count", f"{{{', '.join(names)}}} has {len(names)} elements, not {len(value)}", place)]
        found = []
        for element, (name, each) in enumerate(zip(names, value, strict=True)):
            operand = form.operand(name)
            for fault in self._scalar(operand, each, place):
                loose = _is_loose(value, element, operand.register_types)
                found.append(fault._replace(element=element, severe=fault.severe and not loose))
        return found

    def _scalar(self, operand: Operand, value: Value, place: int) -> list[Fault]:
        """An operand that is one register or constant."""
        if isinstance(value, tuple):
            return self._in_braces(operand, value, place)
        if value == ANYTHING:
            return []
        if isinstance(value, int):
            return self._integer(operand, value, place)
        if value in _OTHERS:
            if value == NEGATED and operand.takes_register:
                return self._scalar(operand, PREDICATE, place)
            if value == FLOAT and operand.takes_register and "f32" in operand.register_types:
                return [Fault("constant", f"{operand.name} is a constant; the manual has {self._wanted(operand)}", place, severe=False)]
            rule = "undeclared" if value == UNDECLARED else "syntax" if value == BROKEN else "operand-kind"
            return [Fault(rule, f"{operand.name} is {self._wanted(operand)}, not {_told(value)}", place)]
        if not operand.takes_register:
            return [Fault("operand-kind", f"{operand.name} is {self._wanted(operand)}, not a register", place)]
        if value in operand.register_types:
            return []
        odd = value == PREDICATE and self._takes_any(operand)
        return [Fault("register-type", f"{operand.name} takes {self._wanted(operand)}, not .{value}", place, severe=not odd)]

    def _in_braces(self, operand: Operand, value: tuple[Scalar, ...], place: int) -> list[Fault]:
        """A list where one register is wanted."""
        for element, each in enumerate(value):
            if each in _OTHERS and each not in _CONSTANTS:
                return [fault._replace(element=element) for fault in self._scalar(operand, each, place)]
        if not operand.takes_register or self._size(operand.register_types[0]) != _SINGLE:
            return [Fault("operand-kind", f"{operand.name} is {self._wanted(operand)}, no list", place)]
        value = _filled(operand, value)
        if len(kinds := set(_kinds(value))) == 1 and self._size(kinds.pop()) != _SINGLE:
            return [Fault("operand-kind", f"{operand.name} is {self._wanted(operand)}, no list of another size", place)]
        text = f"{operand.name} is {self._wanted(operand)}; braces round it pass in some assemblers only"
        return [*self._clash(operand, value, place), Fault("list", text, place, severe=not self._takes_any(operand))]

    def _integer(self, operand: Operand, value: int, place: int) -> list[Fault]:
        if operand.immediates is not None:
            if value in operand.immediates:
                return []
            return [Fault("immediate", f"{operand.name} is {self._wanted(operand)}, not {value}", place)]
        # An integer constant has 64 bits: it stands for a register of that size.
        if any(self._size(kind) == 64 and kind[0] in "us" for kind in operand.register_types):
            text = f"{operand.name} is a constant: assemblers take it, but not all make code of it; the manual has {self._wanted(operand)}"
            return [Fault("constant", text, place, severe=False)]
        return [Fault("operand-kind", f"{operand.name} is {self._wanted(operand)}, not {_told(value)}", place)]

    def _list(self, operand: Operand, value: Value, place: int) -> list[Fault]:
        """An operand that is a list of registers."""
        if value == ANYTHING:
            return []
        wanted = f"a list of {_count(operand.registers, f'{_types(operand)} register')}"
        if not isinstance(value, tuple):
            return [Fault("list", f"{operand.name} is {wanted}, not {_told(value)}", place)]
        if BROKEN in value:
            return [Fault("syntax", f"{operand.name} is {wanted}; this is no register", place, value.index(BROKEN))]
        if len(value) != operand.registers:
            return [Fault("register-count", f"{operand.name} is {wanted}; here are {len(value)}", place)]
        value = _filled(operand, value)
        first = value[0]
        if first in operand.register_types and value.count(first) == len(value):
            return []
        for element, each in enumerate(value):
            if each in (UNDECLARED, NEGATED, ADDRESS):
                rule = "undeclared" if each == UNDECLARED else "operand-kind"
                return [Fault(rule, f"{operand.name} is {wanted}, not {_told(each)}", place, element)]
            if operand.access != "write" and each == SINK:
                return [Fault("sink", f"{operand.name} is read: _ stands for results that are not wanted", place, element)]
            if operand.access != "read" and (isinstance(each, int) or each in _CONSTANTS):
                return [Fault("operand-kind", f"{operand.name} is written: it takes registers, not {_told(each)}", place, element)]
        return self._typed(operand, value, place, wanted)

    def _typed(self, operand: Operand, value: tuple[Scalar, ...], place: int, wanted: str) -> list[Fault]:
        """Whether the types in a list go together, and with its operand."""
        size = self._size(operand.register_types[0])
        kinds = _kinds(value)
        registers = [each for each in value if isinstance(each, str) and each not in _CONSTANTS and each != SINK]
        if not kinds:
            return [Fault("sink", f"{operand.name} has no element that is wanted", place)]
        converted = (isinstance(value[0], int) or value[0] in _CONSTANTS) and _constants_fit(kinds[:1], operand.register_types, size)
        if clash := self._clash(operand, value, place, converted):
            return clash
        if PREDICATE in registers:
            odd = len(set(kinds)) > 1 or self._takes_any(operand)
            return [Fault("register-type", f"{operand.name} is {wanted}, not .{PREDICATE}", place, value.index(PREDICATE), not odd)]
        if len(set(kinds)) > 1:
            return []
        if not registers:
            fits = _constants_fit(kinds, operand.register_types, size)
            return [] if fits else [Fault("operand-kind", f"{operand.name} is {wanted}, not constants", place)]
        if kinds[0] not in operand.register_types:
            return [Fault("register-type", f"{operand.name} is {wanted}, not .{kinds[0]}", place)]
        return []

    def _clash(self, operand: Operand, value: tuple[Scalar, ...], place: int, converted: bool = False) -> list[Fault]:
        """The first element of a list with another size than wanted, unless it is converted, or a type that its neighbour excludes."""
        size = self._size(operand.register_types[0])
        for element, each in enumerate(value):
            if not converted and isinstance(each, str) and each not in _OTHERS and self._size(each) != size:
                return [Fault("register-type", f"{operand.name} takes {self._wanted(operand)}, not .{each}", place, element)]
        wanted = [(element, each) for element, each in enumerate(value) if each != SINK]
        for (_, before), (element, each) in itertools.pairwise(wanted):
            one, other = class_of(before), class_of(each)
            if value[0] == FLOAT and (each == DOUBLE or isinstance(each, int)) and size == _SINGLE:
                text = f"{operand.name} begins with {_told(FLOAT)}, and {_told(each)} has another size"
                return [Fault("operand-kind", text, place, element)]
            if one and other and one != other:
                text = f"{operand.name} mixes {_told(before)} and {_told(each)}"
                return [Fault("register-type", text, place, element)]
        return []

    def _size(self, kind: str) -> int:
        """Bits of a register type, as lists of registers count them: assemblers let a predicate stand for 32."""
        if kind == PREDICATE:
            return 32
        if kind in self._bits:
            return self._bits[kind]
        match = _BITS.fullmatch(kind)
        return int(match[1]) * int(match[2] or 1) if match else 0

    def _takes_any(self, operand: Operand) -> bool:
        """Whether an operand takes 32 bits of every class."""
        classes = {class_of(kind) for kind in self._bits if kind != PREDICATE and self._size(kind) == 32}
        return classes == {class_of(kind) for kind in operand.register_types}

    def _wanted(self, operand: Operand) -> str:
        """What may stand there."""
        constant = ""
        if operand.immediates is not None:
            legal = operand.immediates
            values = f"{legal[0]}..{legal[-1]}" if isinstance(legal, range) or len(legal) > 4 else " or ".join(map(str, legal))
            constant = f"the constant {values}" if len(legal) == 1 else f"a constant, {values}"
        register = f"a {_types(operand)} register" if operand.takes_register else ""
        return " or ".join(filter(None, (register, constant)))


def _hold(ignored: Iterable[Ignored], facts: Facts) -> bool:
    return all(matches(each.when, facts) for each in ignored)


def accepted(instruction: Instruction, target: str, version: str) -> bool:
    """Whether a target takes an instruction in a version; an empty one stands for any."""
    found = instruction.accepted_by()
    first = [found[target]] if target in found else [] if target else list(found.values())
    return any(not version or version_key(each) <= version_key(version) for each in first)


def _filled(operand: Operand, value: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """A list with a register of the operand's own type for whatever fits."""
    return tuple(operand.register_types[0] if each == ANYTHING else each for each in value) if ANYTHING in value else value


def _stands_for_one(value: Value, instruction: Instruction) -> bool:
    """Whether a list has a length with which it may stand where an instruction wants one register: those of a warpgroup take any."""
    return isinstance(value, tuple) and (len(value) in _IN_BRACES or instruction.variant.instruction.scope == "warpgroup")


def _is_loose(value: tuple[Scalar, ...], element: int, types: Sequence[str]) -> bool:
    """Whether assemblers let an element of operands in braces pass that is none of the types."""
    each, others = value[element], [*value[:element], *value[element + 1 :]]
    if each in _CONSTANTS:  # beside registers of no class
        return all(other in types and class_of(other) == "" for other in others)
    # Behind an integer constant they look at registers of integers no more.
    return isinstance(value[0], int) and isinstance(each, str) and each not in _OTHERS and class_of(each) in ("", "integer")


def _constants_fit(kinds: list[str], types: Sequence[str], size: int) -> bool:
    """Whether a list of constants alone passes where registers of some types stand, the usual one first."""
    if size == 64:
        return True
    return set(kinds) == {"s64"} if types[0][0] in "us" else len(set(kinds)) == 1 and kinds[0] in types


def _kinds(value: tuple[Scalar, ...]) -> list[str]:
    """The types of a list's elements, constants as assemblers type them; without those that are not wanted."""
    found: list[str] = []
    for each in value:
        if isinstance(each, int):
            found.append("s64")
        elif each != SINK:
            found.append({FLOAT: "f32", DOUBLE: "f64"}.get(each, each))
    return found


def _told(value: Value) -> str:
    """A value in words."""
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, int):
        return f"the constant {value}"
    if value == UNDECLARED:
        return "a name that is not declared here"
    if value == BROKEN:
        return "this"
    if value in _CONSTANTS:
        return f"an {value[-3:]} constant"
    if value in _OTHERS:
        return {SINK: "_", NEGATED: "a negated predicate", ADDRESS: "an address", UNREGISTERED: "a special register or a variable"}[value]
    return f".{value}"


def _types(operand: Operand) -> str:
    return " or ".join(f".{kind}" for kind in operand.register_types)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _miscounted(forms: Sequence[OperandForm], values: tuple[Value, ...]) -> Fault | None:
    """What to say where lists and single operands stand as in no form of their number, but as in one that has more or fewer."""
    fitting = []
    for form in forms:
        lists = [name.startswith("{") or bool(form.operand(name).elements) for name in ptx.items(form.syntax)]
        if all(value == ANYTHING or isinstance(value, tuple) == listed for value, listed in zip(values, lists, strict=False)):
            fitting.append((abs(len(lists) - len(values)), len(lists) < len(values), form.syntax))
    number, many, syntax = min(fitting, default=(0, False, ""))
    if not number:
        return None
    text = f"{_count(len(values), 'operand')}, {number} too {'many' if many else 'few'}, where it takes {syntax or 'none'}"
    return Fault("operand-count", text)


def _weight(faults: list[Fault]) -> tuple[int, int]:
    return sum(fault.severe for fault in faults), len(faults)
