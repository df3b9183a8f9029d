"""CUDA sources as nvcc compiles them: the findings of the PTX, at their places in the source."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ptxmma import paths
from ptxmma.check.checker import Checker
from ptxmma.check.findings import Finding, Findings
from ptxmma.check.remarks import ignored_by
from ptxmma.ptx.source_lines import SourceLines, SourcePlace

#: The ending of the names of sources that are compiled.
SUFFIX = ".cu"
#: Options of a compilation database that say what nvcc writes, and whether a file's name follows.
_OUTPUTS: Mapping[str, bool] = {
    **dict.fromkeys(("-c", "--compile", "-dc", "--device-c", "-dw", "--device-w", "-MD", "-MMD", "-MP"), False),
    **dict.fromkeys(("-o", "--output-file", "-MF", "-MT", "-MQ"), True),
}
#: The option that names a target, which nvcc takes several times, but not to make PTX.
_TARGETS = ("-gencode", "--generate-code")
#: The head of a function in PTX.
_FUNCTION = re.compile(rb"^(?:\.\w+[ \t]+)*\.(?:entry|func)\b", re.MULTILINE)
#: A line of the module in the message of a finding.
_LINE = re.compile(r"\bline (\d+)")


#: Names of functions and types that are asm statements inside: of ptxmma, of the toolkit, and of CuTe.
_WRAPPERS = re.compile(rb"<ptxmma/[\w/]+\.cuh>|\bptxmma::|\bcuda::ptx\b|\bnvcuda::wmma\b|\bcute::")


def calls_wrappers(text: bytes) -> bool:
    """Return whether a source calls functions whose asm statements are elsewhere, as far as its names tell."""
    return _WRAPPERS.search(text) is not None


class _Entry(msgspec.Struct):
    """A call of a compiler in a compilation database: a list of arguments, or the same as one text."""

    directory: str
    file: str
    arguments: tuple[str, ...] = ()
    command: str = ""


class CompilerError(ValueError):
    """The compiler cannot be started, or refuses the source; what it says is on standard error."""


class Compilation(NamedTuple):
    """A call of nvcc without a source and without an output.

    Attributes:
        arguments: the program and its options.
        folder: the directory in which it runs.
    """

    arguments: tuple[str, ...]
    folder: str = "."

    def for_each_target(self) -> Iterator[Compilation]:
        """The calls for one target each, of a call for several: nvcc makes PTX for one."""
        starts = [place for place, argument in enumerate(self.arguments) if argument.partition("=")[0] in _TARGETS]
        options = [range(start, start + 1 + (self.arguments[start] in _TARGETS)) for start in starts]
        for kept in options or [range(0)]:
            others = {place for option in options if option != kept for place in option}
            yield self._replace(arguments=tuple(argument for place, argument in enumerate(self.arguments) if place not in others))

    def ptx(self, file: str) -> bytes:
        """The PTX of a source, with the places of its lines.

        Raises:
            CompilerError: nvcc cannot be started, or refuses the source.
        """
        with tempfile.TemporaryDirectory() as out:
            module = Path(out) / "module.ptx"
            command = [*self.arguments, "-lineinfo", "-ptx", "-o", str(module), str(Path(file).resolve())]
            try:
                done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=2, check=False)
            except OSError as error:
                raise CompilerError(f"{self.arguments[0]} cannot be started: {error.strerror}") from None
            if done.returncode:
                raise CompilerError(f"{self.arguments[0]} ends with {done.returncode}")
            return module.read_bytes()


def of_options(options: str) -> Compilation:
    """The call of the nvcc in the path with some options, written as in a shell.

    Raises:
        ValueError: a quotation is not closed, or the first is the command.
    """
    arguments = shlex.split(options)
    if arguments and Path(arguments[0]).stem == "nvcc":
        raise ValueError(f"takes the options of nvcc without the command: leave out {arguments[0]!r}")
    return Compilation(("nvcc", *arguments))


def of_database(path: str) -> dict[Path, Compilation]:
    """The calls of nvcc that a ``compile_commands.json`` has, by source.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a compilation database; the message begins with its path and the place.
    """
    compilations = {}
    for number, entry in enumerate(_entries(path)):
        try:
            arguments = entry.arguments or tuple(shlex.split(entry.command))
        except ValueError:
            raise ValueError(f"{path}: entry [{number}]: 'command' has a quotation that is not closed") from None
        if arguments and Path(arguments[0]).stem == "nvcc":
            source = Path(entry.directory, entry.file).resolve()
            compilations[source] = Compilation(tuple(_without_outputs(arguments, source, entry.directory)), entry.directory)
    return compilations


def _entries(path: str) -> list[_Entry]:
    try:
        return msgspec.convert(json.loads(Path(path).read_bytes()), list[_Entry])
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}:{error.colno}: not JSON from here on; let the build system write the file anew") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None
    except msgspec.ValidationError as error:
        entry = re.search(r"\$\[\d+\]", str(error))
        place = f"entry {entry[0][1:]}" if entry else "the document"
        raise ValueError(
            f"{path}: {place} is not as in a compilation database, a list of objects with the strings 'directory', 'file' and 'command', "
            "or 'arguments', a list of strings, in place of 'command'"
        ) from None


def _without_outputs(arguments: Sequence[str], source: Path, folder: str) -> Iterator[str]:
    rest = iter(arguments)
    for argument in rest:
        if argument in _OUTPUTS:
            if _OUTPUTS[argument]:
                next(rest, None)
        elif argument.startswith("-") or Path(folder, argument).resolve() != source:
            yield argument


class CompiledSource:
    """Findings of a module, at their places in the source.

    Args:
        file: the source, as the user names it.
        module: the PTX that nvcc made of it.
    """

    def __init__(self, file: str, module: bytes) -> None:
        self._file, self._module = file, module
        self._lines = SourceLines(module)
        self._texts: dict[str, list[str]] = {}

    @property
    def has_functions(self) -> bool:
        """False where nvcc made nothing of the source, such as of a template that nothing instantiates."""
        return _FUNCTION.search(self._module) is not None

    def parts(self, checker: Checker) -> Iterator[Findings]:
        """The findings of each function."""
        for part in checker.parts(io.BytesIO(self._module), self._file, "ptx"):
            yield msgspec.structs.replace(part, findings=tuple(map(self._placed, part)))

    def _placed(self, finding: Finding) -> Finding:
        """A finding at the innermost place in the author's files; its message says what is inlined there, and into what that is inlined."""
        places = self._lines.of(finding.line) or (SourcePlace(self._file, 1, 1),)
        place = next(filter(self._is_authors, places), places[-1])
        notes = [f"in {self._named(places[0])}"] if place != places[0] else []
        notes += [f"called from {self._named(call)}" for call in places[places.index(place) + 1 :]]
        message = _LINE.sub(lambda match: self._with_place(match[0], int(match[1])), finding.message)
        source = self._text(place)
        return msgspec.structs.replace(
            finding,
            file=self._shown(place.file),
            line=place.line,
            column=place.column,
            message=f"{message}; {''.join(f'{note}, ' for note in notes)}line {finding.line} of the PTX",
            length=1,
            source=source,
            caret=min(place.column - 1, len(source)),
            fix=None,  # it mends PTX
            cause=finding.cause or f"{place} {finding.rule}",  # a template is compiled several times
            ignored=ignored_by(source),
        )

    def _with_place(self, text: str, line: int) -> str:
        """A line of the module that a message names, with its place in the source."""
        places = self._lines.of(line)
        place = next(filter(self._is_authors, places), places[-1] if places else None)
        return f"{text} ({self._named(place)})" if place else text

    def _is_authors(self, place: SourcePlace) -> bool:
        """Return whether a place is in a file beside the source, or below the working directory, and not in ptxmma's own headers."""
        path = Path(place.file).resolve()
        return any(map(path.is_relative_to, (Path(self._file).resolve().parent, Path.cwd()))) and not path.is_relative_to(paths.INCLUDE)

    def _named(self, place: SourcePlace) -> str:
        return f"{self._shown(place.file)}:{place.line}"

    def _shown(self, file: str) -> str:
        """The name of a file: of the source as it was given, of others from the include or the working directory on."""
        path = Path(file).resolve()
        if path == Path(self._file).resolve():
            return self._file
        root = next(filter(path.is_relative_to, (paths.INCLUDE, Path.cwd())), None)
        return str(path.relative_to(root) if root else path)

    def _text(self, place: SourcePlace) -> str:
        """The line of a place; ``""`` where its file cannot be read."""
        if place.file not in self._texts:
            try:
                self._texts[place.file] = Path(place.file).read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                self._texts[place.file] = []
        lines = self._texts[place.file]
        return lines[place.line - 1] if 0 < place.line <= len(lines) else ""
