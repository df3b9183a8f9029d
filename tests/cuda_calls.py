"""What the CUDA tests share: calls of every wrapper, and what a compiler makes of them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import diskcache

from header_programs import files, included
from ptxmma import paths
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.names.cplusplus import identifier
from ptxmma.catalog.operands import Operand
from ptxmma.model import Version

INT_MAX = 2**31 - 1

#: What nvcc made of sources: those that were asked for last, of about ten spells of work on the headers.
_KEPT = paths.CHECKOUT / ".cache" / "nvcc"
_MOST_BYTES = 1 << 30
#: The statuses with which nvcc answers; with any other it could not do its work.
_ANSWERS = (0, 1, 2)


class Call(NamedTuple):
    """One way to call a wrapper.

    Attributes:
        declarations: C++ statements that declare its arguments; an array is full of zeros.
        immediates: template arguments.
        arguments: names of function arguments.
    """

    declarations: list[str]
    immediates: list[str]
    arguments: list[str]

    def of(self, function: str) -> str:
        """The statements that call ``function``."""
        template = f"<{', '.join(self.immediates)}>" if self.immediates else ""
        return f"{' '.join(self.declarations)} {function}{template}({', '.join(self.arguments)});"


def calls(catalog: Catalog, instruction: Instruction, target: str = "") -> Iterator[Call]:
    """A call for each operand form that a target takes, or for every form, and for each way to pass its operands.

    Scale ids are registers or immediates, shared addresses are numbers or pointers; a generic address is a pointer.
    """
    c_types = {entry.name: entry.c_type for entry in catalog.database.spec.types.registers}
    taken = [form for form in instruction.forms if not target or target in instruction.accepted_by(form=form)]
    for form in taken or [OperandForm("", "", ())]:
        more = {value for _, rule in form.of_values for value in rule.values}
        ways = [_ways(operand, c_types, more) for operand in form.operands]
        for way in range(max(map(len, ways), default=1)):
            parts = [each[min(way, len(each) - 1)] for each in ways]
            yield Call(*([text for part in parts for text in part[field]] for field in range(3)))


def front_calls(catalog: Catalog, instruction: Instruction) -> Iterator[Call]:
    """A call of the typed front for each operand form, and for each way to pass its addresses.

    Descriptors have a type; the selector and scale ids are numbers at run time; majorness comes with descriptors.
    """
    c_types = {entry.name: entry.c_type for entry in catalog.database.spec.types.registers}
    for operands in [form.operands for form in instruction.forms]:
        pointers = any(operand.kind == "address" and operand.constraint != "l" for operand in operands)
        for way in range(1 + pointers):
            parts = []
            for operand in operands:
                name = "the_" + operand.name.replace("-", "_")
                if operand.kind == "descriptor":
                    element = identifier(instruction.matrix_types[operand.of])
                    declared = f"ptxmma::matrix_descriptor<PTXMMA_MAJORNESS_K, ptxmma::{element}> {name} = {{}};"
                    parts.append(Call([declared], [], [name]))
                elif operand.kind == "selector":
                    assert operand.immediates
                    parts.append(Call([], [], [f"{operand.immediates[0]}u"]))
                elif operand.kind not in ("majorness", "negation"):
                    ways = _ways(operand, c_types)
                    ways = [one for one in ways if one.arguments] or ways
                    parts.append(ways[min(way, len(ways) - 1)])
            yield Call(*([text for part in parts for text in part[field]] for field in range(3)))


def _ways(operand: Operand, c_types: Mapping[str, str], more: Collection[int | str] = ()) -> list[Call]:
    """The ways to pass one operand; ``more``: immediates that need more than the instruction does."""
    name = "the_" + operand.name.replace("-", "_")
    if operand.kind == "sink":
        return [Call([], [], [])]
    ways = []
    if operand.kind in ("byte-id", "thread-id") or not operand.takes_register:
        assert operand.immediates
        value = next(value for value in reversed(operand.immediates) if value not in more)  # the largest: assemblers take it, too
        ways.append(Call([], [str(min(value, INT_MAX))], []))
    objects = {
        "address": "void",
        "destination": "void",
        "source": "void",
        "tensormap": "void",
        "location": f"uint{8 * operand.alignment}_t",
    }
    pointed = objects.get(operand.kind, "")
    if operand.takes_register and not (pointed and operand.constraint == "l"):
        values = operand.carrier.values if operand.carrier is not None else 1
        array = f"[{operand.registers * values}]" if operand.listed or values > 1 else ""
        result = operand.kind == "predicate" and operand.access == "write"
        ways.append(Call([f"{'uint32_t' if result else c_types[operand.register_types[0]]} {name}{array} = {{}};"], [], [name]))
    if pointed:
        ways.append(Call([f"{'' if operand.writes else 'const '}{pointed}* {name} = nullptr;"], [], [name]))
    return ways


class Kernels:
    """A translation unit of kernels with one instruction each."""

    def __init__(self, *headers: str) -> None:
        self._lines = [f"#include <{header}>" for header in headers]
        self.expected: dict[str, list[str]] = {}

    def add(self, statements: str, canonical: str) -> None:
        """A kernel of these statements."""
        name = f"kernel_{len(self.expected)}"
        self._lines.append(f'extern "C" __global__ void {name}() {{ {statements} }}')
        self.expected[name] = [canonical]

    @property
    def source(self) -> str:
        """The text."""
        return "\n".join(self._lines) + "\n"


class _Answer(NamedTuple):
    """One run of nvcc, and the files that it made, each with its mode and its bytes."""

    done: subprocess.CompletedProcess[str]
    made: list[tuple[str, int, bytes]]


class Nvcc:
    """The installed toolkit.

    Compiling takes a third of the time of all tests.  What the toolkit made of a source before is kept, as long as no header that it
    includes and no option differs.
    """

    def __init__(self, nvcc: str, catalog: Catalog, include: Path) -> None:
        self._nvcc, self.include = nvcc, include
        said = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
        release = re.search(r"release (\d+\.\d+)", said)
        assert release, said
        versions = catalog.database.spec.isa_versions
        self.ptx = max((e.version for e in versions if Version(e.cuda) <= release[1]), key=Version)
        host = subprocess.run(["gcc", "--version"], check=True, capture_output=True, text=True).stdout
        flags = sorted(item for item in os.environ.items() if item[0].startswith("NVCC_"))
        self._surroundings = (said, host, flags)

    def run(self, source: str, *options: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Compile a source in ``folder``; warnings are errors."""
        (folder / "source.cu").write_text(source, encoding="utf-8")
        return self._answer([self._nvcc, "-I", str(self.include), "-Werror", "all-warnings", *options, "source.cu"], options, folder)

    def build(self, source: str, *options: str, folder: Path) -> str:
        """Compile a source that must compile; what nvcc says of it."""
        done = self.run(source, *options, folder=folder)
        assert done.returncode == 0, done.stderr[:4000]
        return done.stderr

    def refuse(self, source: str, *options: str, folder: Path) -> str:
        """Compile a source that must not compile; its errors."""
        done = self.run(source, *options, folder=folder)
        assert done.returncode != 0
        return done.stderr

    def run_line(self, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the line of a shell that compiles files in ``folder`` with these headers."""
        return self._answer(["sh", "-c", line], (line,), folder)

    def _answer(self, command: list[str], words: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a command, unless one with these words was run on the same files."""
        given = files(folder)
        headers = included((folder / name for name in given), self.include)
        key = hashlib.sha256(repr((self._surroundings, words, given, headers)).encode()).hexdigest()
        with diskcache.Cache(str(_KEPT), size_limit=_MOST_BYTES) as kept:
            answer: _Answer | None = kept.get(key)
            if answer is None:
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
                made = [folder / name for name, digest in files(folder).items() if given.get(name) != digest]
                answer = _Answer(done, [(path.name, path.stat().st_mode, path.read_bytes()) for path in made])
                if done.returncode in _ANSWERS:
                    kept[key] = answer
        for name, mode, data in answer.made:
            (folder / name).write_bytes(data)
            (folder / name).chmod(mode)
        return answer.done

    def ptx_of(self, source: str, target: str, folder: Path) -> str:
        """The PTX that a source becomes for one target; with PTX as its only output, nvcc has the assembler check it."""
        arch = target.replace("sm_", "compute_")
        quiet = ["-Xptxas", "--suppress-async-bulk-multicast-advisory-warning"]  # that sm_90a would be faster
        done = self.run(source, "-ptx", "-gencode", f"arch={arch},code={arch}", *quiet, "-o", "source.ptx", folder=folder)
        said = "\n".join(line for line in done.stderr.splitlines() if "Advisory" not in line)
        assert done.returncode == 0, said[:4000]
        return (folder / "source.ptx").read_text(encoding="utf-8")


def instructions_in(ptx: str, canonical: Iterable[str]) -> dict[str, list[str]]:
    """For each kernel the instructions that share an opcode with one of the canonical spellings."""
    opcodes = "|".join(sorted({re.escape(spelling.split(".")[0]) for spelling in canonical}))
    pattern = re.compile(rf"(?<![\w.])(?:{opcodes})\.[\w.:]+")
    bodies = re.split(r"\.entry (\w+)\(", ptx)[1:]
    return {name: pattern.findall(body) for name, body in zip(bodies[::2], bodies[1::2], strict=True)}
