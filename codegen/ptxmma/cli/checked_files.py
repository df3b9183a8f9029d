"""Reads the files that ``ptxmma check`` is given, several at a time if they are large."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from ptxmma.check import Checker, Findings, formats
from ptxmma.check.compiled import SUFFIX, Compilation, CompiledSource, CompilerError, calls_wrappers
from ptxmma.check.configuration import Configuration, once
from ptxmma.check.files import MOST_ROUNDS, discover, fixable, fixed, rewrite
from ptxmma.ptx.languages import SUFFIXES

#: Bytes of files for which other processes pay.
_LARGE = 4 << 20


class Counts(msgspec.Struct):
    """The counts of a run.

    Attributes:
        files, instructions: the numbers of files and instructions that were checked.
        findings: the number of findings that are reported.
        hidden: notes that are not.
        fixed, fixable: findings that were, or can be, mended.
        uncovered: instructions that were not checked.
        skipped: files of directories that cannot be read.
        repeated: findings that are not reported because an earlier one of the file has the same cause.
        wrapped: files of C++, not compiled, that call wrappers.
        empty: compiled files whose PTX has no function.
    """

    files: int = 0
    instructions: int = 0
    findings: int = 0
    hidden: int = 0
    fixed: int = 0
    fixable: int = 0
    uncovered: int = 0
    skipped: int = 0
    repeated: int = 0
    wrapped: int = 0
    empty: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of a part of the run."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Task(NamedTuple):
    """A file to be read, in a language if one was named, and whether its own name was given."""

    file: str
    language: str
    named: bool


class Reader:
    """Checks files one by one, and selects what is reported.

    Args:
        checker: the checker of the files.
        configured: the configuration that selects the findings.
        fix: whether to mend them first.
        unsafe: whether mending may need the author's judgement.
        compilation: the compilation of a CUDA source, or None for one without; None if none is compiled.

    Attributes:
        compiles: whether CUDA sources are compiled.
    """

    def __init__(
        self,
        checker: Checker,
        configured: Configuration,
        *,
        fix: bool,
        unsafe: bool,
        compilation: Callable[[str], Compilation | None] | None,
    ) -> None:
        self._checker, self._configured, self._fix, self._unsafe = checker, configured, fix, unsafe
        self._compilation, self.compiles = compilation, compilation is not None

    def read(self, task: Task, counts: Counts) -> Iterator[Findings]:
        """The findings that are reported of a file, function by function.

        Raises:
            OSError: it cannot be read.
            ValueError: it is in a language that is not read, or cannot be compiled.
        """
        file, language, compilation = task.file, task.language, None
        if self._compilation and Path(file).suffix == SUFFIX and not language:
            compilation = self._compilation(file)
            if task.named and not compilation:
                raise CompilerError("the compilation database has no entry with nvcc for it")
        if compilation:
            sources = [CompiledSource(file, each.ptx(file)) for each in compilation.for_each_target()]
            counts.empty += not any(source.has_functions for source in sources)
            parts: Iterator[Findings] = chain.from_iterable(source.parts(self._checker) for source in sources)
        else:
            if self._fix:
                counts.fixed += self._mend(file, language)
            parts = self._checker.parts_of_file(file, language)
        causes = set[str]()
        for part in parts:
            counts.instructions += part.instructions
            counts.uncovered += part.uncovered
            selected = self._configured.selection.applied(part, self._configured.root)
            reported = once(selected, causes)
            counts.repeated += reported.repeated
            counts.findings += len(reported)
            counts.fixable += 0 if self._fix else sum(fixable(finding, unsafe=self._unsafe) for finding in reported)
            counts.hidden += part.hidden + _notes(part) - _notes(selected)
            yield reported
        counts.files += 1
        if not compilation and (language or SUFFIXES.get(Path(file).suffix)) == "c++" and file != "-":
            counts.wrapped += calls_wrappers(Path(file).read_bytes())

    def _mend(self, file: str, language: str) -> int:
        """Mend a file until nothing is left to mend; how many tokens were replaced."""
        selection, root = self._configured.selection.with_notes(), self._configured.root
        total = 0
        for _ in range(MOST_ROUNDS):
            findings = selection.applied(self._checker.check_file(file, language), root)
            wanted = [finding for finding in findings if fixable(finding, unsafe=self._unsafe)]
            text, count = fixed(Path(file).read_bytes(), wanted) if wanted else (b"", 0)
            if not count:
                break
            rewrite(file, text)
            total += count
        return total


class _Done(NamedTuple):
    """The findings of a process in a file; a reason if it could not be read to its end."""

    parts: list[Findings]
    counts: Counts
    reason: str


#: The reader of a process that another one started.
_reader: Reader | None = None


class Run:
    """Reads the files and directories that a command names.

    Args:
        reader: the reader of each of them.
        language: the language of named files; ``""`` where their names say it.

    Attributes:
        unread: whether a named file cannot be read.
    """

    def __init__(self, reader: Reader, language: str) -> None:
        self._reader, self._language = reader, language
        self._counts = Counts()
        self.unread = False

    def parts(self, names: Iterable[str]) -> Iterator[Findings]:
        """The findings, function by function; files that cannot be read are reported on standard error."""
        tasks = [*self._tasks(names)]
        processes = min(len(tasks), _processors())
        if processes > 1 and "-" not in names and sum(map(_size, tasks)) >= _LARGE:
            yield from self._in_processes(tasks, processes)
            return
        for task in tasks:
            try:
                yield from self._reader.read(task, self._counts)
            except (OSError, ValueError) as error:  # a name may have a NUL
                self._report(task, _reason(error))

    def _tasks(self, names: Iterable[str]) -> Iterator[Task]:
        for name in names:
            if name != "-" and Path(name).is_dir():
                try:
                    below = discover(name)
                except OSError as error:
                    self._report(Task(name, "", named=True), _reason(error))
                    continue
                self._counts.skipped += below.skipped
                yield from (Task(file, "", named=False) for file in below.files)
            else:
                yield Task(name, self._language, named=True)

    def _in_processes(self, tasks: list[Task], processes: int) -> Iterator[Findings]:
        """The same with several processes; in the order of the files."""
        # Most runs read one file: these cost more than it does.
        import concurrent.futures
        import multiprocessing

        global _reader  # what processes inherit
        _reader = self._reader
        with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
            for task, done in zip(tasks, pool.map(_read, tasks), strict=True):
                self._counts.add(done.counts)
                yield from done.parts
                if done.reason:
                    self._report(task, done.reason)

    def _report(self, task: Task, reason: str) -> None:
        word = "error" if task.named else "skipped"
        click.echo(f"{word}: {formats.printable(task.file)}: {reason}", err=True)
        if task.named:
            self.unread = True
        else:
            self._counts.skipped += 1

    def summary(self) -> str:
        """``3 files, 41 instructions checked, 0 findings; 14 not covered``."""
        met = self._counts
        counts = ((met.files, "file"), (met.instructions, "instruction"), (met.findings, "finding"))
        files, instructions, findings = (f"{count:,} {what}{'' if count == 1 else 's'}" for count, what in counts)
        rest = [f"{met.fixed:,} fixed"] if met.fixed else []
        rest += [f"{met.fixable:,} can be fixed with --fix"] if met.fixable else []
        rest += [f"{met.hidden:,} note{'' if met.hidden == 1 else 's'} not shown"] if met.hidden else []
        rest += [f"{met.repeated:,} of the same cause not shown"] if met.repeated else []
        rest += [f"{met.uncovered:,} not covered"] if met.uncovered else []
        rest += [f"{met.skipped:,} file{'' if met.skipped == 1 else 's'} skipped"] if met.skipped else []
        if met.wrapped:
            how = " not compiled" if self._reader.compiles else ""
            files_call = f"file{how} calls" if met.wrapped == 1 else f"files{how} call"
            rest.append(f"{met.wrapped:,} {files_call} wrappers, which are checked in PTX{'' if how else ': see --nvcc'}")
        if met.empty:
            of_files = f"{met.empty:,} file{'' if met.empty == 1 else 's'}"
            rest.append(f"the PTX of {of_files} has no kernel: nvcc compiles a template only where it is instantiated")
        return "; ".join([f"{files}, {instructions} checked, {findings}", *rest])


def _read(task: Task) -> _Done:
    """Read a file in a process of its own."""
    assert _reader is not None  # it was set before the process began
    counts = Counts()
    parts: list[Findings] = []
    try:
        parts.extend(part for part in _reader.read(task, counts) if part.findings)
    except (OSError, ValueError) as error:
        return _Done(parts, counts, _reason(error))
    return _Done(parts, counts, "")


def _notes(findings: Findings) -> int:
    return sum(finding.severity == "note" for finding in findings)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, CompilerError):
        return f"cannot be compiled: {error}"
    return f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"


def _processors() -> int:
    """The number of processes that may run at a time; one where a process cannot inherit what another one has read."""
    if not hasattr(os, "fork"):
        return 1
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _size(task: Task) -> int:
    with contextlib.suppress(OSError, ValueError):
        return Path(task.file).stat().st_size
    return 0
