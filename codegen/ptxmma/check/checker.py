"""Checks the matrix instructions of PTX modules."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Protocol

from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.check import advice, asm_operands, async_protocol, costs, flow, proxies
from ptxmma.check.constant_descriptors import ConstantDescriptors
from ptxmma.check.diagnosis import Diagnoses
from ptxmma.check.findings import Findings, Severity
from ptxmma.check.legality import Legality, accepted
from ptxmma.check.remarks import Remark, finding_of, of_opcode, of_predicate, place_of, spelling_of, unbroken
from ptxmma.ptx import inline_assembly, operand_values
from ptxmma.ptx.languages import as_utf8, language_named, language_of_text
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.operand_values import Value
from ptxmma.ptx.repeated import Repeated
from ptxmma.ptx.statements import Function, Module, Statement, Token, functions

#: Bytes that are read at a time.
_CHUNK = 1 << 20
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
#: Findings of one function that are shown.
_MOST_FOUND = 1 << 16
#: Different sound instructions that are remembered.
_MOST_SOUND = 1 << 13
#: An opcode, the values of its operands, a target and a version.
_Key = tuple[bytes, tuple[Value, ...], str, str]


class Stream(Protocol):
    """Anything that can be read, such as a binary file."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most so many bytes, and none at the end."""


class Checker:
    """Checks modules against one database, and remembers what it has seen.

    Args:
        database: as :func:`ptxmma.instruction` takes it.
        target, ptx: instead of what modules declare.
        follow: whether to follow the registers of asynchronous instructions through each function.

    Raises:
        ValueError: a target or version that the database does not have.
    """

    def __init__(self, database: DatabaseLike = None, *, target: str | None = None, ptx: str | None = None, follow: bool = True) -> None:
        entries = catalog(database)
        self._spec = spec = entries.database.spec
        _known("target", target, (entry.name for entry in spec.targets))
        self._versions = {entry.version for entry in spec.isa_versions}
        _known("PTX ISA version", ptx, (entry.version for entry in spec.isa_versions))
        self._target, self._ptx = target, ptx
        self._opcodes = Opcodes(spec)
        self._legality = Legality(entries)
        self._diagnoses = Diagnoses(entries)
        self._advice = advice.Advice(entries)
        self._emulation = costs.Emulation(entries)
        self._descriptors = ConstantDescriptors(entries)
        self._protocol = async_protocol.protocol(entries) if follow else None
        self._debugged: Module | None = None  # the last module that was noted to be one for debugging
        #: What there is to say of an opcode with values of operands, for a target and version, if it is at most advice on the opcode.
        self._sound: dict[_Key, tuple[advice.SpellingRemark, ...]] = {}

    def check(self, text: str | bytes, file: str = "<text>") -> Findings:
        """Check a module's text."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return self.check_stream(io.BytesIO(data), file)

    def check_file(self, path: str | os.PathLike[str], language: str = "") -> Findings:
        """Check a file; ``"-"`` is the standard input.

        Args:
            path: the file.
            language: ``"ptx"``, ``"c++"``, ``"python"`` or ``"llvm"``; without it, the file's name decides, or else its text.

        Raises:
            OSError: it cannot be read.
            ValueError: it is in a language that is not read, or is not what its name says.
        """
        return _joined(self.parts_of_file(path, language))

    def check_stream(self, stream: Stream, file: str) -> Findings:
        """Check what a binary stream gives, piece by piece."""
        return _joined(self.parts(stream, file))

    def parts_of_file(self, path: str | os.PathLike[str], language: str = "") -> Iterator[Findings]:
        """As :meth:`check_file`, function by function, as they are read."""
        name = os.fspath(path)
        if name == "-" and sys.stdin is None:
            raise OSError(errno.EBADF, "the standard input is closed")
        language = language or language_named(name)
        with contextlib.nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb", buffering=0) as stream:
            chunks = as_utf8(_chunks(stream))
            head = next(chunks, b"")
            yield from self._parts(itertools.chain([head], chunks), name, language or language_of_text(head))

    def parts(self, stream: Stream, file: str) -> Iterator[Findings]:
        """As :meth:`check_stream`, function by function, as they are read.  What the name leaves open is PTX."""
        yield from self._parts(as_utf8(_chunks(stream)), file, language_named(file) or "ptx")

    def _parts(self, chunks: Iterable[bytes], file: str, language: str) -> Iterator[Findings]:
        if language == "ptx":
            parts = functions(chunks, self._opcodes)
        else:
            parts = inline_assembly.functions(chunks, language, self._opcodes, self._spec)
        for function in parts:
            findings = self.check_function(function, file)
            del function  # before the next one is read
            if findings.instructions or findings.uncovered:
                yield findings

    def check_function(self, function: Function, file: str) -> Findings:
        """Check the matrix instructions of one function; of several texts that it may have, the one with the fewest findings counts."""
        choices = (self._check_text(text, file) for text in (function, *function.alternatives))
        best = next(choices)
        for other in choices:
            if not best.findings:
                break
            best = min(best, other, key=len)
        return best

    def _check_text(self, function: Function, file: str) -> Findings:
        target = function.module.target if self._target is None else self._target
        version = function.module.version if self._ptx is None else self._ptx
        count = 0
        remarks: list[tuple[Remark, bytes]] = []
        for whole, fresh in self._by_statement(function, target, version):
            count += 1
            if len(remarks) <= _MOST_FOUND:
                remarks += ((remark, whole.text) for remark in fresh)
                if len(remarks) > _MOST_FOUND:
                    text = "this function has more findings, which are not shown"
                    remarks.append((Remark(whole, "note", "too-many", text), whole.text))
        if self._protocol is not None and count and function.whole:
            remarks += self._of_flow(function, self._protocol)
        if function.operands and count:
            remarks += asm_operands.of_operands(function, [*self._judged(function, target)])
        remarks.sort(key=lambda pair: (pair[0].token.offset, _SEVERITIES.index(pair[0].severity)))
        return Findings(count, tuple(finding_of(function, remark, opcode, file) for remark, opcode in remarks), function.uncovered)

    def _by_statement(self, function: Function, target: str, version: str) -> Iterator[tuple[Token, Iterable[Remark]]]:
        """The opcode of each instruction of a function, and the remarks on it."""
        repeated: Repeated[tuple[bytes, tuple[advice.SpellingRemark, ...]]] = Repeated(function)
        end = 0
        for start in function.places():
            if start < end:
                continue
            function.registers.at(start)
            if again := repeated.find(start):
                end, (opcode, remarks) = again
                whole = Token(opcode, start)
                yield whole, [Remark(whole, *advised) for advised in remarks]
            elif statement := function.statement(start):
                end = statement.end
                if not function.is_meant(statement):
                    continue
                values = operand_values.values(statement.operands, function.registers)
                key = (statement.opcode, values, target, version)
                yield Token(statement.opcode, start), self._remarks(function, statement, key)
                if key in self._sound and statement.broken is None and statement.predicate is None:
                    repeated.remember(statement, (statement.opcode, self._sound[key]))

    def _judged(self, function: Function, target: str) -> Iterator[asm_operands.Judged]:
        """The instructions of a function that are what they should be, with the form of their operands."""
        for statement in function.statements():
            meaning = self._legality.find(spelling_of(statement.opcode), target)
            if meaning is None or statement.broken is not None:
                continue
            values = operand_values.values(statement.operands, function.registers)
            form = self._legality.form(meaning[0], values, target)
            if form is not None:
                yield statement, meaning[0], form

    def _of_flow(self, function: Function, protocol: async_protocol.Protocol) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on the order of asynchronous instructions; of a module for debugging, the one that they are not followed."""
        if function.module.debug:
            first = flow.first_issue(function, protocol)
            if first is not None and function.module is not self._debugged:
                self._debugged = function.module
                text = "the module is compiled for debugging, where the compiler adds copies of its own: fences and waits are not checked"
                yield Remark(first, "note", "debug-build", text), first.text
            return
        for hazard in flow.hazards(function, protocol):
            token = Token(b" " * hazard.length, hazard.offset)
            yield Remark(token, hazard.severity, hazard.rule, hazard.message), hazard.instruction.encode()
        yield from proxies.of_kernel(function, protocol)
        yield from costs.of_loops(function, protocol)
        yield from self._descriptors.of_function(function, protocol)

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
            text = "the operands cannot be read from here on" if statement.operands else "a semicolon is missing after the operands"
            yield Remark(Token(b"", statement.broken), "error", "syntax", text)
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
        faults = self._legality.faults(instruction, values, target)
        for fault in faults:
            token = place_of(function, statement, fault)
            name = token.text.decode(errors="replace")
            message = f"{name} is not declared here" if fault.rule == "undeclared" else fault.message
            severity: Severity = "error" if fault.severe else "note" if fault.rule == "list" else "warning"
            yield Remark(token, severity, fault.rule, message, name.strip("{} \t\r\n") if fault.braces else "")
        remarks: tuple[advice.SpellingRemark, ...] = self._advice.of_spelling(instruction, spelling if exact else instruction.canonical)
        if emulated := self._emulation.remark(instruction, target) if supported else "":
            remarks = (*remarks, advice.SpellingRemark("note", "emulated", emulated))
        for remark in remarks:
            yield Remark(whole, *remark)
        placed = self._advice.of_memory(instruction, values) if not any(fault.severe for fault in faults) else ()
        for place, (severity, rule, message) in placed:
            yield Remark(function.operand(statement, place), severity, rule, message)
        if not instruction.sparse:
            if exact and supported and not (faults or placed) and len(self._sound) < _MOST_SOUND:
                self._sound[key] = remarks
        elif not any(fault.severe for fault in faults):
            for place, message in self._advice.of_metadata(function, statement, instruction, values):
                yield Remark(function.operand(statement, place), "warning", "metadata", message)


def check(
    text: str | bytes,
    target: str | None = None,
    ptx: str | None = None,
    *,
    file: str = "<text>",
    follow: bool = True,
    database: DatabaseLike = None,
) -> Findings:
    """Check the matrix instructions of a PTX module.

    Args:
        text: the module.
        target: instead of the one that it declares, ``"sm_90a"``.
        ptx: instead of the version that it declares, ``"8.0"``.
        file: how findings name it.
        follow: whether to follow the registers of asynchronous instructions, too.
        database: as :func:`ptxmma.instruction` takes it.

    Raises:
        ValueError: a target or version that the database does not have.
    """
    return Checker(database, target=target, ptx=ptx, follow=follow).check(text, file)


def _chunks(stream: Stream) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _joined(parts: Iterable[Findings]) -> Findings:
    whole = list(parts)
    findings = tuple(finding for part in whole for finding in part)
    return Findings(sum(part.instructions for part in whole), findings, sum(part.uncovered for part in whole))


def _known(what: str, value: str | None, allowed: Iterable[str]) -> None:
    names = list(allowed)
    if value is not None and value not in names:
        raise ValueError(f"unknown {what} {value!r}; known: {', '.join(names)}")
