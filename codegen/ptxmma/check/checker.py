"""Checks the matrix instructions of PTX modules."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, Protocol

from ptxmma.catalog.citations import elsewhere
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.check import asm_operands, module_targets
from ptxmma.check.findings import Findings, Severity
from ptxmma.check.instruction_judge import Judge, Tally
from ptxmma.check.module_targets import Headers
from ptxmma.check.remarks import findings_of, folded
from ptxmma.ptx.languages import as_utf8, language_named, language_of_text, refuse_binary
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.statements import Function, functions

if TYPE_CHECKING:
    from ptxmma.check.bank_conflicts import BankConflicts
    from ptxmma.check.kernel_judge import KernelJudge

#: Bytes that are read at a time.
_CHUNK = 1 << 20
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class Stream(Protocol):
    """A source of bytes, such as a binary file."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most so many bytes, and none at the end."""


class Checker:
    """Checks modules against one database, and remembers what it has seen.

    Args:
        database: the database, in a form that :func:`ptxmma.instruction` takes.
        target, ptx: the target and version to use instead of the module's own.
        follow: whether to follow the registers of asynchronous instructions through each function.
        notes: whether findings that are notes are made; otherwise they are only counted, which is faster.

    Raises:
        ValueError: a target or version that the database does not have.
    """

    def __init__(
        self,
        database: DatabaseLike = None,
        *,
        target: str | None = None,
        ptx: str | None = None,
        follow: bool = True,
        notes: bool = True,
    ) -> None:
        entries = catalog(database)
        self._spec = spec = entries.database.spec
        _known("target", target, (entry.name for entry in spec.targets))
        _known("PTX ISA version", ptx, (entry.version for entry in spec.isa_versions))
        self._target, self._ptx, self._notes = target, ptx, notes
        self._opcodes = Opcodes(spec)
        self._judge = Judge(entries)
        self._headers = Headers(spec, target or "", ptx or "")
        self._catalog = entries
        self._numbered = elsewhere(spec)
        self._follow = follow
        families = {family for protocol in spec.protocols for family in protocol.families}
        #: The first words of the instructions that are followed through a kernel.
        self._ordered = tuple({entry.start for entry in spec.instructions if entry.family in families})

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
        """Check a file as :meth:`check_file` does, and yield the findings of each function when it is read."""
        name = os.fspath(path)
        if name == "-" and sys.stdin is None:
            raise OSError(errno.EBADF, "the standard input is closed")
        language = language or language_named(name)
        with contextlib.nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb", buffering=0) as stream:
            chunks = as_utf8(_chunks(stream))
            head = next(chunks, b"")
            refuse_binary(head)
            yield from self._parts(itertools.chain([head], chunks), name, language or language_of_text(head))

    def parts(self, stream: Stream, file: str, language: str = "") -> Iterator[Findings]:
        """Check a stream as :meth:`check_stream` does, and yield the findings of each function when it is read.

        A stream is PTX where neither the language nor its name says another.
        """
        yield from self._parts(as_utf8(_chunks(stream)), file, language or language_named(file) or "ptx")

    def functions(self, chunks: Iterable[bytes], language: str) -> Iterator[Function]:
        """The functions of a source in a language, one after the other, as they are checked."""
        if language == "ptx":
            return functions(chunks, self._opcodes)
        from ptxmma.ptx import inline_assembly  # PTX does not need the readers of other languages

        return inline_assembly.functions(chunks, language, self._opcodes, self._spec)

    def _parts(self, chunks: Iterable[bytes], file: str, language: str) -> Iterator[Findings]:
        for function in self.functions(chunks, language):
            findings = self.check_function(function, file)
            del function  # before the next one is read
            if findings.instructions or findings.uncovered or findings.findings or findings.hidden:
                yield findings

    def check_function(self, function: Function, file: str) -> Findings:
        """Check the matrix instructions of one function; of several texts that it may have, the one with the fewest findings counts."""
        choices = (self._check_text(text, file) for text in (function, *function.alternatives))
        best = next(choices)
        for other in choices:
            if not best.findings and not best.hidden:
                break
            best = min(best, other, key=lambda findings: len(findings) + findings.hidden)
        return best

    @functools.cached_property
    def _kernels(self) -> KernelJudge:
        from ptxmma.check.kernel_judge import KernelJudge  # most modules need none of what it loads

        return KernelJudge(self._catalog)

    @functools.cached_property
    def _banks(self) -> BankConflicts:
        from ptxmma.check.bank_conflicts import BankConflicts  # it is needed only for notes

        return BankConflicts(self._catalog)

    def _is_ordered(self, function: Function, opcodes: Set[bytes]) -> bool:
        """Return whether a function has instructions whose order matters, or copies in the same proxy."""
        return any(opcode.startswith(self._ordered) for opcode in opcodes) or b".async.bulk" in function.text

    def _check_text(self, function: Function, file: str) -> Findings:
        target = function.module.target if self._target is None else self._target
        version = function.module.version if self._ptx is None else self._ptx
        tally = Tally(notes=self._notes)
        self._judge.of_function(function, target, version, tally)
        tally.add(self._headers.of_text(function))
        if tally.instructions and function.whole and self._is_ordered(function, tally.opcodes):
            tally.add(self._kernels.mixed_groups(function, tally.opcodes))
            if self._follow:
                tally.add(folded(function, self._kernels.of_function(function, tally.opcodes, target)))
        elif tally.instructions and function.whole and self._follow and "alignment" in tally.noted:
            tally.add(self._kernels.misaligned(function, tally.opcodes))
        if tally.instructions and function.whole and self._follow and self._notes:
            tally.add(self._banks.of_function(function))
        if tally.instructions and function.operands:
            tally.add(asm_operands.of_operands(function, [*self._judge.judged(function, target)]))
        if tally.instructions and function.guard and not target:
            tally.add(module_targets.of_guard(self._spec, function.guard, self._judge.judged(function, target)))
        remarks = sorted(tally.remarks, key=lambda pair: (pair[0].token.offset, _SEVERITIES.index(pair[0].severity)))
        findings = tuple(findings_of(function, remarks, file, self._numbered))
        return Findings(tally.instructions, findings, function.uncovered, tally.hidden)


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
        target: the target to use instead of the module's own, ``"sm_90a"``.
        ptx: the version to use instead of the module's own, ``"8.0"``.
        file: the name of the file in findings.
        follow: whether to follow the registers of asynchronous instructions, too.
        database: the database, in a form that :func:`ptxmma.instruction` takes.

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
    counts = (sum(getattr(part, name) for part in whole) for name in ("uncovered", "hidden"))
    return Findings(sum(part.instructions for part in whole), findings, *counts)


def _known(what: str, value: str | None, allowed: Iterable[str]) -> None:
    names = list(allowed)
    if value is not None and value not in names:
        raise ValueError(f"unknown {what} {value!r}; known: {', '.join(names)}")
