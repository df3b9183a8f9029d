"""The kernels of ``docs/examples``: they compile without a warning, and to the machine code that makes them fast."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ptxmma import paths

_EXAMPLES = paths.CHECKOUT / "docs" / "examples"
_GPU = paths.CHECKOUT / "tests" / "gpu"
_SM_90A = ["-gencode", "arch=compute_90a,code=sm_90a"]

#: Types, majornesses, width, whether A comes from registers, whether the consumers share a tile; and the machine instructions of the
#: kernel.  A stage is 128 bytes deep, four instructions along k for each part of a tile, of which a consumer has two where it has a tile
#: of its own; a chunk of D has 64 columns of 16 bits (four ``stmatrix`` of 16 columns) or 32 of 32 bits (eight stores of two sums).  From
#: registers, A takes one ``ldmatrix`` for each instruction; C takes one for every 16 columns.
_GEMMS = {
    ("bf16", "bf16", "K", "K", 176, 0, 0): {"HGMMA": 2 * 4, "STSM": 2 * 3 * 4, "LDSM": 2 * 11, "STS": 0},
    ("bf16", "bf16", "MN", "MN", 176, 0, 0): {"HGMMA": 2 * 4, "STSM": 2 * 3 * 4, "STS": 0},
    ("bf16", "bf16", "K", "K", 256, 0, 1): {"HGMMA": 4, "STSM": 4 * 4, "LDSM": 4 * 4, "STS": 0},
    ("bf16", "bf16", "K", "K", 176, 1, 0): {"HGMMA": 2 * 4, "STSM": 2 * 3 * 4, "LDSM": 2 * 4 + 2 * 11, "STS": 0},
    ("f16", "f16", "K", "MN", 112, 0, 0): {"HGMMA": 2 * 4, "STSM": 2 * 2 * 4, "STS": 0},
    ("e4m3", "bf16", "K", "K", 112, 0, 0): {"QGMMA": 2 * 4, "STSM": 2 * 2 * 4, "STS": 0},
    ("e4m3", "bf16", "K", "K", 176, 1, 0): {"QGMMA": 2 * 4, "STSM": 2 * 3 * 4, "LDSM": 2 * 4 + 2 * 11, "STS": 0},
    ("e4m3", "f32", "K", "K", 112, 0, 0): {"QGMMA": 2 * 4, "STSM": 0, "STS": 2 * 4 * 8},
    ("s8", "s32", "K", "K", 176, 0, 0): {"IGMMA": 2 * 4, "STSM": 0, "STS": 2 * 6 * 8},
}


def _compile(nvcc: str, source: Path, out: Path, *options: str) -> str:
    """What the compiler and the assembler say about a source."""
    command = [nvcc, "-std=c++17", "-O3", f"-I{paths.INCLUDE}", f"-I{_EXAMPLES}", *_SM_90A, *options, str(source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _counted(code: str) -> Counter[str]:
    """How often each machine instruction occurs."""
    return Counter(re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\d\s+)?([A-Z0-9]+)", code, re.MULTILINE))


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
@pytest.mark.parametrize(
    ("example", "target", "expected"),
    [("mma_sp", "80", {"HMMA": 1}), ("mma_sp", "120", {"HMMA": 1}), ("wgmma", "90a", {"HGMMA": 4})],
)
def test_the_machine_code_of_a_tile(nvcc: str, example: str, target: str, expected: dict[str, int], tmp_path: Path) -> None:
    """One tile becomes its multiplies, without spills and without advice from the assembler."""
    built = tmp_path / "tile.cubin"
    command = [nvcc, f"-I{paths.INCLUDE}", "-gencode", f"arch=compute_{target},code=sm_{target}", "-Xptxas=-v", "-cubin"]
    done = subprocess.run([*command, str(_EXAMPLES / f"{example}.cu"), "-o", str(built)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "C75" not in said
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said
    code = subprocess.run(["cuobjdump", "-sass", str(built)], capture_output=True, text=True, check=True).stdout
    counted = _counted(code)
    assert {instruction: counted[instruction] for instruction in expected} == expected
    assert counted["LDL"] == counted["STL"] == counted["CALL"] == 0


@pytest.mark.nvcc
def test_the_program_compiles_without_a_warning(nvcc: str, tmp_path: Path) -> None:
    strict = ["-Werror", "all-warnings", "-Xcompiler=-Wall,-Wextra"]
    assert _compile(nvcc, _EXAMPLES / "gemm_sm90.cu", tmp_path / "gemm", *strict) == ""


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
def test_the_machine_code_of_the_gemm(nvcc: str, tmp_path: Path) -> None:
    """No spills, no advice from the assembler (C75xx), and as many multiplies and stores as the tile needs."""
    names = {}
    lines = ['#include "gemm_sm90_operands.cuh"', "using namespace gemm_sm90;"]
    for (element, result, major_a, major_b, width, registers, together), expected in _GEMMS.items():
        majors = ", ".join(f"(ptxmma_majorness){int(major == 'MN')}" for major in (major_a, major_b))
        operands = f"gemm_sm90::Dense<ptxmma::{element}, {majors}, 128, {width}, (gemm_sm90::From){registers}>"
        name = f"gemm_sm90::Gemm<{operands}, ptxmma::{result}, {'true' if together else 'false'}>"
        names[name] = expected
        lines.append(f"auto get{len(names)}() {{ return kernel<{name}>; }}")
    source, built = tmp_path / "kernels.cu", tmp_path / "kernels.o"
    source.write_text("\n".join(lines), encoding="utf-8")
    said = _compile(nvcc, source, built, "-c", "-Xptxas=-v")
    assert "C75" not in said
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(_GEMMS)
    code = subprocess.run(["cuobjdump", "-sass", str(built)], capture_output=True, text=True, check=True).stdout
    code = subprocess.run(["c++filt"], input=code, capture_output=True, text=True, check=True).stdout
    bodies = dict(re.findall(r"Function : void gemm_sm90::kernel<(.*?>) ?>\((.*?)(?=Function : |\Z)", code, re.DOTALL))
    assert bodies.keys() == names.keys()
    for name, expected in names.items():
        counted = _counted(bodies[name])
        assert {instruction: counted[instruction] for instruction in expected} == expected, name
        assert counted["LDL"] == counted["STL"] == counted["CALL"] == 0, name


@pytest.mark.nvcc
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_the_gemm_multiplies(nvcc: str, tmp_path: Path) -> None:
    """All combinations of types and majornesses against a product in float64."""
    program = tmp_path / "check"
    _compile(nvcc, _GPU / "check_gemm_sm90.cu", program)
    done = subprocess.run([program, "6"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all right\n")
