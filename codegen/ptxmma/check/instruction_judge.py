"""Judges the matrix instructions of a function one by one: their opcodes, operands, targets and versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import advice, asm_operands, costs, overwriting
from ptxmma.check.diagnosis import Diagnoses
from ptxmma.check.findings import Severity
from ptxmma.check.legality import Legality, accepted
from ptxmma.check.remarks import Remark, breaks, divides, of_opcode, of_predicate, place_of, spelling_of, unbroken
from ptxmma.check.rule import Rule
from ptxmma.ptx import operand_values
from ptxmma.ptx.operand_values import Value
from ptxmma.ptx.repeated import Repeated
from ptxmma.ptx.statements import Function, Statement, Token

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog

RULES: Mapping[str, Rule] = {
    "too-many": Rule(
        "The checker lists at most 65,536 findings of one function.",
        "A function with more has one cause that repeats.",
        "Repair what is listed first.",
    ),
}

#: Findings of one function that are shown.
_MOST_FOUND = 1 << 16
#: Different sound instructions that are remembered.
_MOST_SOUND = 1 << 13
#: An opcode, the values of its operands, a target and a version.
_Key = tuple[bytes, tuple[Value, ...], str, str]


class Tally:
    """The instructions and remarks of a function.

    Args:
        notes: whether remarks that are notes are kept; otherwise they are only counted.

    Attributes:
        instructions: the number of instructions.
        opcodes: their opcodes, and the opcodes of instructions that do not count.
        remarks: the remarks, each with the opcode that it is about.
        hidden: the number of notes that are only counted.
        noted: the rules of all notes.
    """

    def __init__(self, *, notes: bool) -> None:
        self._notes = notes
        self.instructions = 0
        self.opcodes = set[bytes]()
        self.remarks: list[tuple[Remark, bytes]] = []
        self.hidden = 0
        self.noted = set[str]()

    def add(self, remarks: Iterable[tuple[Remark, bytes]]) -> None:
        """Add remarks."""
        for pair in remarks:
            if pair[0].severity == "note":
                self.noted.add(pair[0].rule)
            if pair[0].severity == "note" and not self._notes:
                self.hidden += 1
            elif len(self.remarks) <= _MOST_FOUND:
                self.remarks.append(pair)
                if len(self.remarks) > _MOST_FOUND:
                    text = "this function has more findings, which are not shown"
                    self.remarks.append((Remark(pair[0].token, "note", "too-many", text), pair[1]))

    def shows(self, advised: Iterable[advice.SpellingRemark]) -> bool:
        """Return whether any of some advice is kept."""
        return any(self._notes or each.severity != "note" for each in advised)


class _Sound(NamedTuple):
    """The verdict on statements that are right."""

    opcode: bytes
    advised: tuple[advice.SpellingRemark, ...]
    shown: bool  # whether any of that is


class Judge:
    """Judges instructions by a database, and remembers what it has seen."""

    def __init__(self, catalog: Catalog) -> None:
        self._versions = {entry.version for entry in catalog.database.spec.isa_versions}
        self._legality = Legality(catalog)
        self._diagnoses = Diagnoses(catalog)
        self._advice = advice.Advice(catalog)
        self._emulation = costs.Emulation(catalog)
        self._overwritten = overwriting.Overwritten(catalog.database.spec)
        #: The remarks on an opcode with values of operands, for a target and version, if they are at most advice on the opcode.
        self._sound: dict[_Key, tuple[advice.SpellingRemark, ...]] = {}

    def of_function(self, function: Function, target: str, version: str, tally: Tally) -> None:
        """Count the instructions of a function, and add the remarks on each of them."""
        repeated: Repeated[_Sound] = Repeated(function)
        go_to, find = function.registers.at, repeated.find
        end = 0
        for start in function.places:
            if start < end:
                continue
            go_to(start)
            if again := find(start):
                end, sound = again
                tally.instructions += 1
                if sound.shown:
                    whole = Token(sound.opcode, start)
                    tally.add((Remark(whole, *advised), sound.opcode) for advised in sound.advised)
                else:
                    tally.hidden += len(sound.advised)
            elif statement := function.statement(start):
                end = statement.end
                tally.opcodes.add(statement.opcode)
                if not function.is_meant(statement):
                    continue
                tally.instructions += 1
                values = operand_values.values(statement.operands, function.registers)
                key = (statement.opcode, values, target, version)
                tally.add((remark, statement.opcode) for remark in self._remarks(function, statement, key))
                if key in self._sound and statement.broken is None and statement.predicate is None:
                    advised = self._sound[key]
                    repeated.remember(statement, _Sound(statement.opcode, advised, tally.shows(advised)))

    def judged(self, function: Function, target: str) -> Iterator[asm_operands.Judged]:
        """The instructions of a function that are what they should be, with the form of their operands."""
        for statement in function.statements():
            meaning = self._legality.find(spelling_of(statement.opcode), target)
            if meaning is None or statement.broken is not None:
                continue
            values = operand_values.values(statement.operands, function.registers)
            form = self._legality.form(meaning[0], values, target)
            if form is not None:
                yield statement, meaning[0], form

    def _remarks(self, function: Function, statement: Statement, key: _Key) -> Iterator[Remark]:
        """The remarks on one instruction."""
        _, values, target, version = key
        whole = Token(statement.opcode, statement.start)
        if statement.predicate is not None:
            yield from of_predicate(statement.predicate, function.registers)
        if key in self._sound and statement.broken is None:
            for advised in self._sound[key]:
                yield Remark(whole, *advised)
            return
        spelling = spelling_of(statement.opcode)
        if statement.broken is not None:
            yield Remark(Token(b"", statement.broken), "error", "syntax", breaks(function, statement))
            if divides(function, statement):
                return
        meaning = self._legality.find(spelling, target)
        if meaning is None:
            yield of_opcode(whole, self._diagnoses.unknown(spelling, target, version))
            return
        instruction, exact = meaning
        first = unbroken(instruction).encode()
        if not statement.opcode.startswith(first):
            yield Remark(whole, "error", "syntax", f"{first.decode()} must be written without blanks", spelling)
            return
        if not exact:
            text = f"the manual does not allow one of its modifiers, and assemblers ignore it; write {instruction.canonical}"
            yield Remark(whole, "warning", "undocumented", text, instruction.canonical)
        supported = accepted(instruction, target, version) and (not version or version in self._versions)
        if not supported:
            yield of_opcode(whole, self._diagnoses.unsupported(instruction, target, version))
        if statement.broken is not None:
            return
        faults = self._legality.faults(instruction, values, target, version)
        for fault in faults:
            token = place_of(function, statement, fault)
            name = token.text.decode(errors="replace")
            message = f"{name} is not declared here" if fault.rule == "undeclared" else fault.message
            severity: Severity = "error" if fault.severe else "note" if fault.rule == "list" else "warning"
            yield Remark(token, severity, fault.rule, message, name.strip("{} \t\r\n") if fault.braces else "")
        written = spelling if exact else instruction.canonical
        remarks: tuple[advice.SpellingRemark, ...] = self._advice.of_spelling(instruction, written, target, version)
        if emulated := self._emulation.remark(instruction, target) if supported else "":
            remarks = (*remarks, advice.SpellingRemark("note", "emulated", emulated))
        for remark in remarks:
            yield Remark(whole, *remark)
        erratum = self._overwritten.erratum(instruction, target) if supported else ""
        if erratum and (form := self._legality.form(instruction, values, target)) is not None:
            yield from overwriting.remarks(function, statement, form, erratum, target)
        placed = self._advice.of_memory(instruction, values) if not any(fault.severe for fault in faults) else ()
        for place, (severity, rule, message) in placed:
            yield Remark(function.operand(statement, place), severity, rule, message)
        if not instruction.variant.instruction.metadata:
            if exact and supported and not (faults or placed or erratum) and len(self._sound) < _MOST_SOUND:
                self._sound[key] = remarks
        elif not any(fault.severe for fault in faults):
            for place, message in self._advice.of_metadata(function, statement, instruction, values):
                yield Remark(function.operand(statement, place), "warning", "metadata", message)
