"""Judgement of an instruction as an assembler makes it: its spelling, its operands, its target and version.

Spellings, targets, versions, the numbers and types of registers, constants and addresses are judged as assemblers judge them; the rules
of the errata say where these deviate from the manual.  Operand lists follow the manual: registers of one type in braces, and
no braces around a single operand.  Some assemblers accept other lists on some targets; no compiler writes them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.instructions.spellings import has_opcode, without_ignored
from ptxmma.catalog.requirements import targets_of
from ptxmma.check import rule_examples as examples
from ptxmma.check.operand_faults import Fault, counted, in_words, of_list, of_single, wanted
from ptxmma.check.rule import Rule
from ptxmma.model import Facts, Ignored, Quirk, Version, matches
from ptxmma.ptx import lines as ptx
from ptxmma.ptx.operand_values import ANYTHING, NEGATED, PREDICATE, SINK, Address, Scalar, Several, Value

if TYPE_CHECKING:
    from ptxmma.catalog.operands import Operand
    from ptxmma.model import Spec

# --- the rules of the errata -----------------------------------------------------------------------------------------------

#: Registers of 32 bits, one of each class that assemblers tell apart; what takes all of them takes any register of 32 bits.
_EVERY_CLASS = {"b32", "u32", "f32", "f16x2"}
#: In the place of a register type: braces around a single register.
BRACES = "{}"


class Quirks:
    """The rules of a spec's errata: deviations of assemblers from the manual's text on an operand.

    Releases differ.  Each target is judged by the last release that knows it.
    """

    def __init__(self, spec: Spec) -> None:
        self._rules = [rule for erratum in spec.errata for rule in erratum.rules]
        self._targets = {target.name: target for target in spec.targets}
        self._of: dict[tuple[Instruction, str], list[Quirk]] = {}

    def accepts(self, instruction: Instruction, operand: Operand, value: Value, target: str) -> bool | None:
        """Return whether assemblers accept a value for an operand; None where no rule says so, and the manual holds.

        Args:
            instruction: the instruction.
            operand: one of its operands.
            value: the value that is written there.
            target: ``""`` for any target: a value that one of them accepts is accepted, a value that all refuse is refused.
        """
        rules = [rule for rule in self._about(instruction, operand) if _fits(rule, operand, value)]
        if target not in self._targets:
            refused = bool(rules) and {self.accepts(instruction, operand, value, name) for name in instruction.accepted_by()} == {False}
            return any(rule.accepted and not rule.until for rule in rules) or (False if refused else None)
        answers = [rule.accepted for rule in rules if self._holds(rule, target)]
        return answers[-1] if answers else None

    def generates(self, instruction: Instruction, operand: Operand, value: Value) -> bool:
        """Return whether every assembler that accepts a value for an operand generates code for it."""
        return any(rule.generates for rule in self._about(instruction, operand) if _fits(rule, operand, value))

    @staticmethod
    def applies(rule: Quirk, instruction: Instruction, operand: Operand) -> bool:
        """Return whether the conditions of a rule match an operand."""
        return matches(rule.when, _facts(instruction, operand))

    def _about(self, instruction: Instruction, operand: Operand) -> list[Quirk]:
        """The rules of which the conditions match an operand; remembered."""
        key = (instruction, operand.name)
        if key not in self._of:
            facts = _facts(instruction, operand)
            self._of[key] = [rule for rule in self._rules if matches(rule.when, facts)]
        return self._of[key]

    def _holds(self, rule: Quirk, name: str) -> bool:
        """Return whether a rule speaks of a target, and of the release that judges it."""
        target = self._targets[name]
        if rule.lowest and target.number < self._targets[rule.lowest].number:
            return False
        if rule.highest and target.number > self._targets[rule.highest].number:
            return False
        if not target.until:
            return not rule.until
        judge = Version(target.until)
        return judge >= rule.since and (not rule.until or judge <= rule.until)


def _facts(instruction: Instruction, operand: Operand) -> Facts:
    return {
        **instruction.variant.facts,
        "operand": operand.kind,
        "access": operand.access,
        "matrix": operand.of or operand.name,
        "takes": "any" if set(operand.register_types) >= _EVERY_CLASS else "",
    }


def _fits(rule: Quirk, operand: Operand, value: Value) -> bool:
    """Return whether a rule is about a value: a constant, a register, the register of an address, or a list of registers of one type."""
    if isinstance(value, Address) or operand.bracketed:
        register = value.base if isinstance(value, Address) and not rule.bare else value if rule.bare else None
        return register in rule.registers
    if rule.constants:
        if not isinstance(value, int) or value % rule.multiple:
            return False
        return (rule.least is None or rule.least <= value) and (rule.most is None or value <= rule.most)
    if isinstance(value, int) or isinstance(value, tuple) != operand.listed:
        return False
    elements = value if isinstance(value, tuple) else (value,)
    if len(elements) != (rule.count or operand.registers):
        return False
    if rule.registers == (SINK,):
        return SINK in elements
    types = set(elements) - {ANYTHING}
    return len(types) <= 1 and types <= set(rule.registers or operand.register_types)


# --- instructions ----------------------------------------------------------------------------------------------------------

RULES: Mapping[str, Rule] = {
    "operand-count": Rule(
        "The instruction has as many operands as its syntax.",
        "The assembler refuses it.",
        "Compare the operands with the syntax that ptxmma show prints.",
        examples.MMA.replace(", {%r4, %r5}", ""),
        examples.MMA,
    ),
}

#: Characters of the longest spelling that is looked up.
_LONGEST = 1000
#: Different opcodes and operand lists that are remembered.
_REMEMBERED = 1 << 13


class Legality:
    """A database's verdicts on spellings and operands; answers are remembered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._quirks = Quirks(catalog.database.spec)
        self._targets = targets_of(catalog.database.spec)
        self.find = functools.lru_cache(maxsize=_REMEMBERED)(self._find)
        self.faults = functools.lru_cache(maxsize=_REMEMBERED)(self._faults)
        self.form = functools.lru_cache(maxsize=_REMEMBERED)(self._form)

    def _find(self, spelling: str, target: str = "") -> tuple[Instruction, bool] | None:
        """The instruction of a spelling, and whether the database has the spelling; None where assemblers accept none for the target.

        This is where the quirks of spellings come in: modifiers in another order, twice, or ignored.
        """
        if len(spelling) > _LONGEST:
            return None
        if (instruction := self._catalog.meaning(spelling)) is not None:
            return instruction, True
        spec = self._catalog.database.spec
        for entry in spec.instructions:
            if not has_opcode(entry, spelling):
                continue
            for shorter, ignored in without_ignored(entry, spec.ignored, spelling):
                instruction = self._catalog.meaning(shorter)
                if instruction is None or instruction.variant.instruction is not entry:
                    continue
                if all(self._holds(each, instruction.variant.facts, target) for each in ignored):
                    return instruction, False
        return None

    def _holds(self, ignored: Ignored, facts: Facts, target: str) -> bool:
        names = {each.name for each in self._targets.including(ignored.targets)}
        return (not names or not target or target in names) and matches(ignored.when, facts)

    def _faults(self, instruction: Instruction, values: tuple[Value, ...], target: str, version: str = "") -> tuple[Fault, ...]:
        """The faults of an instruction's operands on a target in a version: the faults of the operand list that they fit best."""
        forms = ptx.operand_lists(instruction)
        names = [(form, ptx.items(form.syntax)) for form in forms]
        judged = [self._of_form(instruction, form, items, values, target, version) for form, items in names if len(items) == len(values)]
        if not judged:
            if other := _miscounted(forms, values):
                return (other,)
            lists = " or ".join(form.syntax or "no operands" for form in forms)
            return (Fault("operand-count", f"{counted(len(values), 'operand')} where it takes {lists}"),)
        best = min(judged, key=_weight)
        if any(fault.severe for fault in best) and (other := _miscounted(forms, values)):
            return (other,)
        return tuple(best)

    def _form(self, instruction: Instruction, values: tuple[Value, ...], target: str) -> OperandForm | None:
        """The operand list that operands fit; None where none takes them."""
        forms = (form for form in instruction.forms if len(ptx.items(form.syntax)) == len(values))
        judged = ((form, self._of_form(instruction, form, ptx.items(form.syntax), values, target)) for form in forms)
        return next((form for form, faults in judged if not any(fault.severe for fault in faults)), None)

    def accepts(self, instruction: Instruction, values: Sequence[Value], target: str = "", version: str = "") -> bool:
        """Return whether an instruction takes these operands on a target in a version; ``""``: on any, in any."""
        return not any(fault.severe for fault in self.faults(instruction, tuple(values), target, version))

    def _of_form(
        self, instruction: Instruction, form: OperandForm, names: list[str], values: tuple[Value, ...], target: str, version: str = ""
    ) -> list[Fault]:
        """The faults of as many operands as an operand list has."""
        faults: list[Fault] = []
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            if len(own := ptx.named(name)) > 1:
                faults += self._group(instruction, form, name, own, value, place, target)
            elif fault := self._fault(instruction, form.operand(name.strip("[]")), value, target):
                faults.append(fault._replace(operand=place))
        constants = {name: value for name, value in zip(names, values, strict=True) if isinstance(value, int)}
        if not faults and (operand := form.exceeding(constants)) is not None:
            text = f"{operand.name} must be at most {operand.within}, {constants[operand.within]}, not {constants[operand.name]}"
            faults.append(Fault("immediate", text, names.index(operand.name)))
        if target in instruction.accepted_by():
            single = {name: value for name, value in zip(names, values, strict=True) if isinstance(value, int | str)}
            faults += _demanded(instruction, form, single, target, version)
        return faults

    def _group(
        self, instruction: Instruction, form: OperandForm, syntax: str, names: list[str], value: Value, place: int, target: str
    ) -> Iterable[Fault]:
        """The faults of several operands in braces or in brackets, or of a pair."""
        if value == ANYTHING:
            return
        parts = value.parts if isinstance(value, Several) else value
        if not isinstance(parts, tuple) or isinstance(value, Several) != syntax.startswith("["):
            wanted = {"{": "a list in braces", "[": "an address with a list in its brackets"}.get(syntax[0], "a pair")
            yield Fault("list", f"{syntax} must be {wanted}, not {in_words(value)}", place)
        elif len(parts) != len(names):
            yield Fault("register-count", f"{syntax} must have {len(names)} elements, not {len(parts)}", place)
        else:
            start = 0
            for name, each in zip(names, parts, strict=True):
                if fault := self._fault(instruction, form.operand(name), each, target):
                    mixed = parts is value and fault.rule in ("register-type", "operand-kind") and len(set(map(_type, value))) > 1
                    yield fault._replace(rule="list" if mixed else fault.rule, operand=place, element=start + max(fault.element, 0))
                start += len(each) if isinstance(each, tuple) else 1

    def _fault(self, instruction: Instruction, operand: Operand, value: Value, target: str) -> Fault | None:
        """The fault of an operand, by the manual and by the assemblers' deviations from it."""
        if value == ANYTHING:
            return None
        if isinstance(value, tuple) and len(value) == 1 and operand.takes_register and not (operand.elements or operand.listed):
            inside, braces = self._fault(instruction, operand, value[0], target), self._of_braces(instruction, operand, target)
            return inside if braces is None or (inside is not None and (inside.severe or not braces.severe)) else braces
        if value == NEGATED and operand.takes_register:
            value = PREDICATE
        fault = of_list(operand, value) if operand.listed else of_single(operand, value)
        accepted = self._quirks.accepts(instruction, operand, value, target)
        if accepted is None or (fault is None and accepted):
            return fault
        if fault is None:
            where = f" for {target}" if target else ""
            if isinstance(value, tuple) and SINK in value:
                text = f"{operand.name} must be {wanted(operand)}: assemblers refuse _ here{where}"
                return Fault("sink", text, element=value.index(SINK))
            return Fault("register-type", f"{operand.name} must be {wanted(operand)}: assemblers refuse {in_words(value)} here{where}")
        if accepted and isinstance(value, int) and operand.immediates is None:
            if self._quirks.generates(instruction, operand, value):
                return None
            text = f"{operand.name} should be {wanted(operand)}: assemblers accept a constant, but not all generate code for it"
            return Fault("constant", text, severe=False)
        return fault._replace(severe=not accepted)

    def _of_braces(self, instruction: Instruction, operand: Operand, target: str) -> Fault | None:
        """The fault of braces around a single register, as CUTLASS writes them; None where assemblers accept them for every target."""
        accepted = {name: bool(self._quirks.accepts(instruction, operand, BRACES, name)) for name in instruction.accepted_by()}
        if all(accepted.values()):
            return None
        if accepted.get(target, any(accepted.values())):
            text = f"{operand.name} should be {wanted(operand)}, without braces, which assemblers refuse for other targets"
            return Fault("list", text, severe=False, braces=True)
        return Fault("list", f"{operand.name} must be {wanted(operand)}, without braces", braces=True)


def accepted(instruction: Instruction, target: str, version: str) -> bool:
    """Return whether a target has an instruction in a version; ``""`` for any target or version."""
    first_versions = instruction.accepted_by()
    first = [first_versions[target]] if target in first_versions else [] if target else list(first_versions.values())
    return any(not version or each <= version for each in first)


def _demanded(instruction: Instruction, form: OperandForm, values: Mapping[str, Scalar], target: str, version: str) -> Iterable[Fault]:
    """The faults of operands that need another target, or a later version, than their instruction."""
    if not (given := form.given(values)).requires:
        return
    first, named = instruction.accepted_by(form=given), dict.fromkeys(name for name, _ in form.of_values)
    what = ", ".join(f"{in_words(values[name])} as {name}" for name in named if name in values)
    what = what if given is not form else f"the operands {form.syntax}"
    if target not in first:
        yield Fault("target", f"{target} does not take {what}")
    elif version and first[target] > version >= instruction.accepted_by()[target]:
        yield Fault("version", f"PTX ISA {first[target]} is the first with {what} for {target}")


def _type(value: Scalar) -> str:
    """The type of a register, or one name for all integers."""
    return "integer" if isinstance(value, int) else value


def _miscounted(forms: Sequence[OperandForm], values: tuple[Value, ...]) -> Fault | None:
    """The fault of operands that are lists and single operands as in a form with more or fewer of them, and in no form with as many."""
    fitting = []
    for form in forms:
        lists = [len(ptx.named(name)) > 1 or form.operand(name.strip("[]")).listed for name in ptx.items(form.syntax)]
        if all(value == ANYTHING or isinstance(value, tuple | Several) == listed for value, listed in zip(values, lists, strict=False)):
            fitting.append((abs(len(lists) - len(values)), len(lists) < len(values), form.syntax))
    number, many, syntax = min(fitting, default=(0, False, ""))
    if not number:
        return None
    text = f"{counted(len(values), 'operand')}, {number} too {'many' if many else 'few'}, where it takes {syntax or 'none'}"
    return Fault("operand-count", text)


def _weight(faults: list[Fault]) -> tuple[int, int, int]:
    """The severe faults of single operands, then of the whole list: operands that fit need another target rather than other operands."""
    severe = [fault for fault in faults if fault.severe]
    return sum(fault.operand >= 0 for fault in severe), len(severe), len(faults)
