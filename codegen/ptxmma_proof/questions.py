"""Questions to assemblers, and their answers: the lines that an assembler refuses, and its reasons.

Answers are kept on disk, under the hash of the binary and of the question, so that nothing is asked twice.
"""

from __future__ import annotations

import hashlib
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import diskcache
import joblib

from ptxmma import paths
from ptxmma.ptx import lines as ptx
from ptxmma_proof.assemblers import Assembler

#: The folder of the answers.
ANSWERS = paths.CHECKOUT / ".cache" / "answers"

_FILE = "module.ptx"
_INSTRUCTION = re.compile(r"instruction '([^']*)'")
#: Signals of a program that fails on its input; any other comes from outside.
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGFPE, -signal.SIGBUS, -signal.SIGILL)
_CRASHED = "the assembler crashed"
#: An error: the file (another one where the module itself is refused), its line, the kind and the text.
_ERROR = re.compile(r"^ptxas (.+?), line (\d+); (error|fatal)\s*: (.*)$", re.MULTILINE)
#: A line with a 32-bit address for which ptxas needs 64 bits: it warns of the line, and its error names none.
_NARROW = re.compile(r"uses 32-bit address on line '(\d+)'")
_NARROW_ERROR = re.compile(r"fatal *: +(32-Bit .+)")
#: A modifier in several parts or one that starts with a digit (``.32x32b``), which old releases cannot read.
_UNUSUAL = re.compile(r"\.(\w+(?:::?\w+)+|\d+x\w+)")
#: A callback that takes the number of questions answered so far and the number of all.
Progress = Callable[[int, int], None]


def quiet(done: int, of: int) -> None:  # a Progress that shows none
    """No progress."""


#: The number of the module itself, as its lines have numbers.
MODULE = -1

#: Each message with the numbers of its lines.
Refusals = dict[str, list[int]]


class AssemblerError(RuntimeError):
    """An assembler failed without naming a line."""


class Lines(NamedTuple):
    """Lines, the register types that they need, and their hash: made once for many questions."""

    texts: tuple[str, ...]
    banks: tuple[str, ...]
    sha256: str

    @classmethod
    def of(cls, texts: Iterable[str], banks: Iterable[str]) -> Lines:
        """Lines with their hash."""
        texts, banks = tuple(texts), tuple(banks)
        return cls(texts, banks, hashlib.sha256("\n".join([*banks, "", *texts]).encode()).hexdigest())


class Question(NamedTuple):
    """The question which lines an assembler refuses in a module for a target in a version."""

    program: str
    program_sha256: str
    target: str
    version: str
    lines: Lines
    unreadable: tuple[str, ...] = ()  # tokens and operand lists that stop its parser, see unreadable()

    @property
    def key(self) -> str:
        """The hash under which the answer is kept."""
        module, _ = ptx.module(self.version, self.target, (), self.lines.banks)
        parts = (self.program_sha256, module, self.lines.sha256, *self.unreadable)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def ask(asked: Sequence[Question], cache: Path, jobs: int, progress: Progress = quiet) -> list[Refusals]:
    """The answers to many questions; those that are not on the disk are asked now and kept.

    Raises:
        AssemblerError: an assembler was interrupted, or failed without naming a line.
    """
    answers: dict[int, Refusals] = {}
    with diskcache.Cache(str(cache), disk=diskcache.JSONDisk, eviction_policy="none") as kept:
        for number, question in enumerate(asked):
            if (answer := kept.get(question.key)) is not None:
                answers[number] = answer
        calls = (joblib.delayed(_numbered)(number, each) for number, each in enumerate(asked) if number not in answers)
        progress(len(answers), len(asked))
        # Threads: each waits for a process of its own.
        for number, answer in joblib.Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")(calls):
            answers[number] = kept[asked[number].key] = answer
            progress(len(answers), len(asked))
    return [answers[number] for number in range(len(asked))]


def _numbered(number: int, question: Question) -> tuple[int, Refusals]:
    return number, refusals(question)


def refusals(question: Question) -> Refusals:
    """Ask an assembler now what it refuses."""
    texts = question.lines.texts
    said = {number: f"cannot read {stop}" for number, stop in _unread(texts, question.unreadable)}
    said |= _refused(question, [number for number in range(len(texts)) if number not in said])
    answer: Refusals = {}
    for number, text in sorted(said.items()):
        answer.setdefault(text, []).append(number)
    return answer


def _refused(question: Question, left: list[int]) -> dict[int, str]:
    """Ask until the remaining lines assemble: ptxas skips its second set of checks after an error of the first.

    If an error names an instruction that its line does not have, the line is asked alone.  If ptxas crashes, or names no line of the
    module (but one of its own expansion of an instruction), each half is asked alone, down to a single line.  Beside an address of 8 or 16
    bits ptxas lets one of 32 bits pass, so lines with these are asked without the others.
    """
    said: dict[int, str] = {}
    while True:  # without any line too: the module itself may be refused
        done = _assemble(question, [question.lines.texts[number] for number in left])
        if done.accepted:
            narrow = [left[index] for index in done.narrow]
            return said | _refused(question, narrow) if 0 < len(narrow) < len(left) else said
        if done.head or not left:
            return said | dict.fromkeys([MODULE, *left], done.head or done.elsewhere)
        if done.crashed or not done.errors:
            if len(left) == 1:
                return said | {left[0]: done.elsewhere or _CRASHED}
            middle = len(left) // 2
            return said | _refused(question, left[:middle]) | _refused(question, left[middle:])
        refused = {left[index]: text for index, (_, text) in done.errors.items()}
        left = [number for number in left if number not in refused]
        for number, text in refused.items():
            if done.lines > 1 and _is_of_another(text, question.lines.texts[number]):
                said |= _refused(question, [number])
            else:
                said[number] = text


def _is_of_another(said: str, line: str) -> bool:
    """Return whether an error is about the expansion of another line, for which ptxas names the wrong line."""
    named = _INSTRUCTION.search(said)
    return named is not None and line.split(".")[0] not in named[1].lower()


def by_line(answer: Refusals) -> dict[int, str]:
    """The message of each refused line, by its number."""
    return {number: text for text, numbers in answer.items() for number in numbers}


def unreadable(assembler: Assembler, lines: Lines) -> tuple[str, ...]:
    """The modifiers and the operand lists that stop the assembler's parser.

    A release older than such a modifier, or than braces in such a place, gives up the whole module there, so each is asked in a line of
    its own.
    """
    tokens = sorted({token for text in lines.texts for token in _UNUSUAL.findall(text)})
    operands = sorted({_operands(text) for text in lines.texts if "{" in text})
    question = Question(assembler.path, assembler.sha256, assembler.targets[-1], assembler.ptx, Lines.of((), lines.banks))
    stopping: list[str] = []
    left = [(token, f"probe.{token};") for token in tokens] + [(each, f"probe {each};") for each in operands]
    while left:
        errors = _assemble(question, [line for _, line in left]).errors
        stop = next((index for index, (kind, _) in errors.items() if kind == "fatal"), None)
        if stop is None:
            break
        stopping.append(left[stop][0])
        left = left[stop + 1 :]  # the parser has read what comes before
    return tuple(stopping)


def _unread(texts: Sequence[str], stopping: Sequence[str]) -> Iterator[tuple[int, str]]:
    stops = set(stopping)
    for number, text in enumerate(texts) if stops else ():
        if token := next((token for token in _UNUSUAL.findall(text) if token in stops), ""):
            yield number, f".{token}"
        elif (operands := _operands(text)) in stops:
            yield number, operands


def _operands(line: str) -> str:
    return line.partition(" ")[2].removesuffix(";")


class _Done(NamedTuple):
    """The end of an assembler's run."""

    lines: int
    accepted: bool
    head: str  # its message about the lines above the first
    elsewhere: str  # its message about the files of its expansions
    crashed: bool
    narrow: Sequence[int]  # the lines with a 32-bit address where it needs 64 bits
    errors: Mapping[int, tuple[str, str]]  # the errors, by line: "error" or "fatal" (the rest was not read), and the text


def _assemble(question: Question, lines: Sequence[str]) -> _Done:
    text, first = ptx.module(question.version, question.target, lines, question.lines.banks)
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, _FILE).write_text(text, encoding="utf-8")
        command = [question.program, "--gpu-name", question.target, "-O0", "--output-file", "out", _FILE]
        done = subprocess.run(command, cwd=scratch, check=False, capture_output=True, text=True, errors="replace")
    output = done.stdout + done.stderr
    said = _ERROR.findall(output)
    elsewhere = next((text for file, _, _, text in said if file != _FILE), "")
    placed = [(int(number) - first, kind, text) for file, number, kind, text in said if file == _FILE]
    narrow = [int(number) - first for number in _NARROW.findall(output)]
    if refused := _NARROW_ERROR.search(output):
        placed += [(index, "error", refused[1]) for index in narrow]
    head = next((text for index, _, text in placed if index < 0), "")
    errors: dict[int, tuple[str, str]] = {}
    for index, kind, text in placed:
        if 0 <= index < len(lines) and (index not in errors or kind == "fatal"):
            errors[index] = kind, text
    accepted = done.returncode == 0
    crashed = done.returncode in _CRASHES and bool(lines)
    if not (accepted or head or elsewhere or errors or crashed) or (done.returncode < 0 and not crashed):
        place = f"{question.program}, {question.target}, PTX ISA {question.version}"
        raise AssemblerError(f"{place}: it ended with {done.returncode} and named no line: {output[:400].strip() or 'no output'}")
    return _Done(len(lines), accepted, head, elsewhere, crashed, narrow, errors)
