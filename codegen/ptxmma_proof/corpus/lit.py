"""PTX that LLVM writes for its own tests of the NVPTX backend.

A test says in its ``RUN`` lines how it is run: where it is a generator, ``%python %s ARGUMENTS > %t.ll`` writes the IR, and
``llc < %t.ll -mcpu=sm_90a -mattr=+ptx80`` lowers it.  Here the library that ``llvmlite`` carries stands for ``llc``, always for
``nvptx64``.  Conditions (``%if``: whether there is a ``ptxas``) and what reads the PTX are left out, and so are runs that shall fail
(``not llc``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma_proof.corpus import extraction, llvm

#: What the tests are called among the tools that made a corpus.
TOOL = "LLVM's tests"
#: Where the tests are in a checkout.
TESTS = Path("llvm", "test", "CodeGen", "NVPTX")
_VERSION = Path("cmake", "Modules", "LLVMVersion.cmake")
_LINE = re.compile(r"RUN:(.*)")
_CONDITIONAL = re.compile(r"%if\b.*?%\}")
_GENERATED = re.compile(r"%python %s (?P<arguments>[^|>]*)> *(?P<file>%t\S*)")
_LOWERED = re.compile(r"llc\b[^|]*?(?P<file>%[st][^\s|]*)")
_CHIP = re.compile(r"-mcpu=(\w+)")
_FEATURE = re.compile(r"-mattr=\+?ptx(\d+)")


class Lowering(NamedTuple):
    """What one ``llc`` of a test does.

    Attributes:
        command: as it stands in the test.
        arguments: of the test, which then is a program that writes IR; None where the test is the IR itself.
        known: whether it is one of the two; otherwise another program makes the IR.
        chip, version: LLVM's names of the target, ``"sm_90a"``, and of the version of PTX, ``"80"``; empty for LLVM's own choice.
    """

    command: str
    arguments: tuple[str, ...] | None
    known: bool
    chip: str
    version: str


def build(folder: Path, checkout: Path, stems: Sequence[str]) -> Iterator[str]:
    """Write a module for each ``llc`` of a test that makes one with a matrix instruction; a line about each, and about each that fails.

    Args:
        folder: where to.
        checkout: of LLVM, of the release that ``llvmlite`` has: others have tests that it cannot lower.
        stems: how matrix instructions begin; tests whose IR has none of these words are passed over.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for test in sorted((checkout / TESTS).iterdir()):
        if test.suffix in (".ll", ".py"):
            for number, lowering in enumerate(lowerings(test.read_text(encoding="utf-8"))):
                place = folder / f"{test.stem}_{number}.ptx"
                yield from [str(place)] if place.exists() else _made(place, test, lowering, stems)


def lowerings(text: str) -> Iterator[Lowering]:
    """What the ``RUN`` lines of a test lower."""
    made: dict[str, tuple[str, ...] | None] = {"%s": None}
    for command in _commands(text):
        if generated := _GENERATED.match(command):
            made[generated["file"]] = tuple(generated["arguments"].split())
        elif lowered := _LOWERED.match(command):
            chip, version = (match[1] if (match := rule.search(command)) else "" for rule in (_CHIP, _FEATURE))
            yield Lowering(command, made.get(lowered["file"]), lowered["file"] in made, chip, version)


def _commands(text: str) -> Iterator[str]:
    """The commands, where a line that ends with a backslash goes on in the next."""
    joined = "\n".join(line.strip() for line in _LINE.findall(text)).replace("\\\n", "")
    return (command.strip() for command in _CONDITIONAL.sub("", joined).split("\n"))


def _made(place: Path, test: Path, lowering: Lowering, stems: Sequence[str]) -> Iterator[str]:
    source = _source(test, lowering)
    if not any(stem in source for stem in stems):
        return
    if not lowering.known:
        yield f"{test.name}: neither the test nor Python makes the IR of {lowering.command}"
    elif not llvm.survives(source, lowering.chip, lowering.version):
        yield f"{test.name}: LLVM {llvm.version()} does not lower {lowering.command}"
    else:
        text = llvm.emit(source, lowering.chip, lowering.version)
        module = extraction.module(text, stems)
        if not _is_for(module, lowering):
            yield f"{test.name}: LLVM {llvm.version()} does not know the target or the version of {lowering.command}"
        elif module.instructions:
            place.write_text(text, encoding="utf-8")
            yield str(place)


def _is_for(module: extraction.Module, lowering: Lowering) -> bool:
    """Whether a module is for the target and the version that were asked for."""
    return lowering.chip in ("", module.target) and lowering.version in ("", module.version.replace(".", ""))


def _source(test: Path, lowering: Lowering) -> str:
    if lowering.arguments is None:
        return test.read_text(encoding="utf-8")
    command = [sys.executable, str(test.resolve()), *lowering.arguments]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # the checkout stays as it is
    with tempfile.TemporaryDirectory() as folder:  # some write files besides
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=folder).stdout


def version(checkout: Path) -> str:
    """The release of LLVM that the tests are of."""
    text = (checkout / _VERSION).read_text(encoding="utf-8")
    numbers = [re.search(rf"set\(LLVM_VERSION_{part} (\d+)\)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(match[1] for match in numbers if match)
