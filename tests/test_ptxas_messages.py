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
from ptxmma.cli.explain import message_of

_PROGRAMS = paths.CHECKOUT / "docs" / "examples" / "ptxas_messages"


def _table(name: str) -> dict[str, dict[str, str]]:
    """A table of the guide: its rows by message, as cells by column."""
    with (_PROGRAMS / name).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    first = next(iter(rows[0]))
    return {row[first]: row for row in rows}


_TIMES, _RELEASES = _table("messages.csv"), _table("releases.csv")
_SAID = {message.code: message for message in catalog().database.spec.messages}


def _mma(shape: str, types: str, a: str = "{%r1, %r2, %r3, %r4}") -> str:
    """A product with the registers of m16n8k16 in f16."""
    return f"mma.sync.aligned.{shape}.row.col.f32.{types}.{types}.f32 {{%f1, %f2, %f3, %f4}}, {a}, {{%r5, %r6}}, {{%f1, %f2, %f3, %f4}};"


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


#: Lines of ptxas 13.5, each with the statement and the target that cause it.
_REFUSED = {
    "Instruction 'wgmma.fence' not supported on .target 'sm_90'": ("not-on-target", "8.6", "sm_90", "wgmma.fence.sync.aligned;"),
    "Feature 'mma with FP8 floating point type' requires .target sm_89 or higher": (
        "needs-higher-target",
        "8.6",
        "sm_80",
        _mma("m16n8k32", "e4m3"),
    ),
    "Feature 'mma with FP8 floating point type' requires PTX ISA .version 8.4 or later": (
        "needs-later-version",
        "8.3",
        "sm_89",
        _mma("m16n8k32", "e4m3"),
    ),
    "PTX .version 8.6 does not support .target sm_120a": ("target-needs-later-version", "8.6", "sm_120a", _mma("m16n8k16", "f16")),
    "Argument vector size mismatch for instruction 'mma'": ("vector-size", "8.6", "sm_80", _mma("m16n8k16", "f16", a="{%r1, %r2}")),
    "Arguments mismatch for instruction 'mma'": ("arguments-mismatch", "8.6", "sm_80", _mma("m16n8k16", "f16", a="{%f1, %f2, %f3, %f4}")),
    "Illegal matrix shape '.m16n8k64' for instruction 'mma'": ("illegal-shape", "8.6", "sm_80", _mma("m16n8k64", "f16")),
    "Illegal blayout '.row' for instruction 'mma'": ("illegal-layout", "8.6", "sm_80", _mma("m16n8k16", "f16").replace(".col", ".row")),
    "Unknown modifier '.m16n8k17'": ("unknown-modifier", "8.6", "sm_80", _mma("m16n8k17", "f16")),
    "Shape modifier required for instruction 'mma'": ("shape-missing", "8.6", "sm_80", _mma("m16n8k17", "f16")),
    "Unexpected instruction types specified for 'mma'": ("instruction-types", "8.6", "sm_80", _mma("m16n8k16", "f31")),
}


@pytest.mark.parametrize("line", _REFUSED)
def test_check_finds_the_cause_of_a_refusal(line: str) -> None:
    code, version, target, statement = _REFUSED[line]
    message = message_of(catalog().database.spec, f"ptxas k.ptx, line 9; error   : {line}")
    assert message is not None
    assert message.code == code
    registers = ".reg .b32 %r<9>;\n.reg .f32 %f<9>;\n"
    found = check(f".version {version}\n.target {target}\n.address_size 64\n.entry k()\n{{\n{registers}{statement}\n}}\n").findings
    assert {each.rule for each in found if each.severity == "error"} & {*message.rules}


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
