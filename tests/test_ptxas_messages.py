"""The guide to ptxas's messages: each program causes those that it is about, and ``ptxmma check`` says what the guide says it does."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cuda_calls import Nvcc
from ptxmma import paths
from ptxmma.catalog.instructions import catalog
from ptxmma.check import check

_PROGRAMS = paths.CHECKOUT / "docs" / "examples" / "ptxas_messages"


def _table(name: str) -> dict[str, dict[str, str]]:
    """A table of the guide: its rows by message, as cells by column."""
    with (_PROGRAMS / name).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    first = next(iter(rows[0]))
    return {row[first]: row for row in rows}


_TIMES, _RELEASES = _table("messages.csv"), _table("releases.csv")
_SAID = {message.code: message for message in catalog().database.spec.messages}


def _release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _column(ptxas: str) -> str:
    """The column of the table of releases for an assembler."""
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release (\d+\.\d+)", said)
    assert release
    for column in list(next(iter(_RELEASES.values())))[1:]:
        first, _, last = column.partition(" to ")
        if _release(first) <= _release(release[1]) <= _release(last or first):
            return column
    pytest.skip(f"the guide does not know ptxas {release[1]}")


def test_every_program_is_an_example_of_a_message() -> None:
    programs = {path.stem for path in _PROGRAMS.glob("*.cu")}
    assert {f"{'error_' * each.error}{each.code.lower()}" for each in _SAID.values() if each.example} == programs
    assert _TIMES.keys() == _RELEASES.keys() == {name.upper() for name in programs if not name.startswith("error_")}


@pytest.mark.nvcc
@pytest.mark.parametrize("message", sorted(_RELEASES))
def test_the_program_causes_its_message(compiler: Nvcc, message: str, tmp_path: Path) -> None:
    ptxas = shutil.which("ptxas")
    assert ptxas, "ptxas is not beside nvcc"
    shutil.copy(_PROGRAMS / "common.cuh", tmp_path)
    source, options = (_PROGRAMS / f"{message.lower()}.cu").read_text(encoding="utf-8"), ("-std=c++17", "-O3", "-ptx")
    arch = ("-gencode", "arch=compute_90a,code=compute_90a")
    compiler.build(source, *options, *arch, "-o", "program.ptx", folder=tmp_path)
    ptx = tmp_path / "program.ptx"

    column = _column(ptxas)
    done = subprocess.run([ptxas, "-arch=sm_90a", str(ptx), "-o", str(tmp_path / "cubin")], capture_output=True, text=True, check=True)
    said = done.stdout + done.stderr
    assert sorted(set(re.findall(r"\((C7\d+)\)", said))) == _RELEASES[message][column].split()
    assert "'right'" not in said
    if message in _RELEASES[message][column].split():
        first, _, rest = _SAID[message].text.partition("...")
        assert first.strip() in re.sub(r"\s+", " ", said)
        assert rest.strip() in re.sub(r"\s+", " ", said)

    text = ptx.read_text(encoding="utf-8")
    wrong, right = (text.splitlines().index(line) for line in re.findall(r"^\.visible \.entry (?:wrong|right)\($", text, re.MULTILINE))
    findings = check(text).findings
    assert {finding.rule for finding in findings} == set(_SAID[message].rules)
    assert all(wrong < finding.line <= right for finding in findings)


@pytest.mark.nvcc
def test_the_program_does_not_assemble(nvcc: str, tmp_path: Path) -> None:
    """C7602 is an error; the guide names the registers that are needed and those that are left."""
    command = [nvcc, "-std=c++17", "-O3", f"-I{paths.INCLUDE}", "-gencode", "arch=compute_90a,code=sm_90a", "-cubin"]
    program = _PROGRAMS / "error_c7602.cu"
    done = subprocess.run([*command, str(program), "-o", str(tmp_path / "cubin")], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = re.search(r"\(C7602\) Insufficient registers \((\d+)\) .* register target of (\d+) or higher", done.stderr)
    assert said, done.stderr
    left, needed = said.groups()
    assert f"leave each thread {left} registers, and one instruction needs {needed}." in program.read_text(encoding="utf-8")
    assert f"in f32 needs {needed} of them" in _SAID["C7602"].cause
