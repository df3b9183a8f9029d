"""The kernels of ``docs/examples``: they compile without a warning, and to the machine code that makes them fast."""

from __future__ import annotations

import csv
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from ptxmma import paths
from ptxmma.check import check

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
    ("f16", "f16", "K", "K", 192, 0, 0): {"HGMMA": 2 * 4, "STSM": 2 * 3 * 4, "STS": 0},
    ("f16", "f16", "K", "MN", 128, 0, 0): {"HGMMA": 2 * 4, "STSM": 2 * 2 * 4, "STS": 0},
    ("e4m3", "bf16", "K", "K", 128, 0, 0): {"QGMMA": 2 * 4, "STSM": 2 * 2 * 4, "STS": 0},
    ("e4m3", "bf16", "K", "K", 176, 1, 0): {"QGMMA": 2 * 4, "STSM": 2 * 3 * 4, "LDSM": 2 * 4 + 2 * 11, "STS": 0},
    ("e4m3", "f32", "K", "K", 128, 0, 0): {"QGMMA": 2 * 4, "STSM": 0, "STS": 2 * 4 * 8},
    ("s8", "s32", "K", "K", 176, 0, 0): {"IGMMA": 2 * 4, "STSM": 0, "STS": 2 * 6 * 8},
}

#: With few rows: tiles of 64 columns of B and all rows of A, D column-major.  A row of f32 is two boxes wide.
_FLAT_GEMMS = {
    ("bf16", "bf16", 16): {"HGMMA": 4, "STSM": 1, "LDSM": 1, "UTMASTG": 1},
    ("e4m3", "f32", 64): {"QGMMA": 4, "STSM": 0, "UTMASTG": 2},
    ("s8", "s32", 128): {"IGMMA": 4, "STSM": 0, "UTMASTG": 2},
}

#: Of ``sparse_gemm_sm90``: types, majorness of B, height, width, whether the consumers share a tile.  A register of metadata, one
#: ``LDS``, is for one instruction of 8-bit types and two of 16-bit types.  Two stages take turns with two sets of registers; a third may
#: be left.  Tiles of 64 rows have stages twice as deep, and one ``LDS`` more, since k may be split.
_SPARSE_GEMMS = {
    ("f16", "f16", "K", 128, 176, 0): {"HGMMA": 3 * 2 * 2, "LDS": 3 * 2, "STSM": 2 * 3 * 4},
    ("bf16", "bf16", "MN", 128, 192, 0): {"HGMMA": 3 * 2 * 2, "LDS": 3 * 2, "STSM": 2 * 3 * 4},
    ("f16", "f32", "K", 128, 128, 0): {"HGMMA": 3 * 2 * 2, "LDS": 3 * 2 + 2 * 4 * 8, "STSM": 0, "STS": 2 * 4 * 8},
    ("f16", "f16", "K", 128, 256, 1): {"HGMMA": 3 * 2, "LDS": 3, "STSM": 4 * 4},
    ("e4m3", "bf16", "K", 128, 176, 0): {"QGMMA": 3 * 2 * 2, "LDS": 3 * 2 * 2, "STSM": 2 * 3 * 4},
    ("e4m3", "bf16", "K", 128, 256, 1): {"QGMMA": 3 * 2, "LDS": 3 * 2, "STSM": 4 * 4},
    ("f16", "f16", "K", 64, 64, 0): {"HGMMA": 3 * 4, "LDS": 3 * 2 + 1, "STSM": 4},
    ("e4m3", "bf16", "K", 64, 16, 0): {"QGMMA": 3 * 4, "LDS": 3 * 4 + 1, "STSM": 1},
}

#: Of ``gemm_sm80``: types, majornesses, whether A is sparse; and the machine instructions.  Fragments are fetched once before the loop and
#: twice in it, with four ``ldmatrix`` for A and four for B; a stage takes six copies, or four for B and two for A and one for the metadata.
#: There are as many stages less one before the loop.
_MMAS = {
    ("bf16", "bf16", "K", "K", False): {"HMMA": 2 * 4 * 8, "LDSM": 3 * 8, "LDGSTS": 4 * 6, "LDS": 0},
    ("f16", "f32", "MN", "MN", False): {"HMMA": 2 * 4 * 8, "LDSM": 3 * 8, "LDGSTS": 4 * 6, "LDS": 0},
    ("bf16", "bf16", "MN", "MN", False): {"HMMA": 2 * 4 * 8, "LDSM": 3 * 8, "LDGSTS": 4 * 6, "LDS": 0},
    ("s8", "s32", "K", "K", False): {"IMMA": 2 * 4 * 8, "LDSM": 3 * 8, "LDGSTS": 4 * 6, "LDS": 0},
    ("f16", "f16", "K", "MN", True): {"HMMA": 2 * 4 * 4, "LDSM": 3 * 8, "LDGSTS": 3 * 7, "LDS": 3 * 4},
}

#: Of ``attention_sm90``, whether it is causal, elements of a head, and keys of a block.
_ATTENTION = [("false", 128, 176), ("true", 128, 176), ("true", 128, 128), ("false", 64, 128), ("true", 64, 128)]


#: Of ``gemm_sm100``, by types: products of a stage, copies to its shared memory and of scale factors, prefetches of tensor maps.
_TCGEN05 = {
    "bf16": {"UTCHMMA": 4, "UTMALDG": 2, "UTCCP": 0, "UTMACCTL": 3},
    "e4m3": {"UTCQMMA": 4, "UTMALDG": 2, "UTCCP": 0, "UTMACCTL": 3},
    "Nvfp4": {"UTCOMMA": 4, "UTMALDG": 4, "UTCCP": 12, "UTMACCTL": 5},
}


def _compile(nvcc: str, source: Path, out: Path, *options: str) -> str:
    """What the compiler and the assembler say about a source; for ``sm_90a`` if no option says otherwise."""
    target = () if any(option.startswith(("-arch", "-gencode")) for option in options) else _SM_90A
    command = [nvcc, "-std=c++17", "-O3", f"-I{paths.INCLUDE}", f"-I{_EXAMPLES}", *target, *options, str(source), "-o", str(out)]
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
    [
        ("mma_sp", "80", {"HMMA": 1}),
        ("mma_sp", "120", {"HMMA": 1}),
        ("sparse_layer", "80", {"HMMA": 1}),
        ("wgmma", "90a", {"HGMMA": 4}),
    ],
)
def test_the_machine_code_of_a_tile(nvcc: str, example: str, target: str, expected: dict[str, int], tmp_path: Path) -> None:
    """One tile becomes its multiplies, without spills and without advice from the assembler."""
    built = tmp_path / "tile.cubin"
    command = [nvcc, f"-I{paths.INCLUDE}", "-gencode", f"arch=compute_{target},code=sm_{target}", "-Xptxas=-v", "-cubin"]
    command += ["-Werror", "all-warnings"]
    done = subprocess.run([*command, str(_EXAMPLES / f"{example}.cu"), "-o", str(built)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "C75" not in said
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said
    code = subprocess.run(["cuobjdump", "-sass", str(built)], capture_output=True, text=True, check=True).stdout
    counted = _counted(code)
    assert {instruction: counted[instruction] for instruction in expected} == expected
    assert counted["LDL"] == counted["STL"] == counted["CALL"] == 0


def _code(built: Path, kernel: str, *options: str) -> dict[str, str]:
    """The machine code of each kernel of this name, by its template arguments."""
    code = subprocess.run(["cuobjdump", "-sass", *options, str(built)], capture_output=True, text=True, check=True).stdout
    code = subprocess.run(["c++filt"], input=code, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(rf"Function : void {kernel}<(.*?) ?>\((.*?)(?=Function : |\Z)", code, re.DOTALL))


def _bodies(built: Path, kernel: str, *options: str) -> dict[str, Counter[str]]:
    """The machine instructions of each kernel of this name, by its template arguments."""
    return {arguments: _counted(body) for arguments, body in _code(built, kernel, *options).items()}


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
@pytest.mark.parametrize("target", ["100a", "103a"])
def test_the_machine_code_of_a_tcgen05_kernel(nvcc: str, root: Path, target: str, tmp_path: Path) -> None:
    """A stage has four steps along k, and four parts of 64 columns leave tensor memory; the page says what the assembler said."""
    built = tmp_path / "gemm.cubin"
    arch = ["-gencode", f"arch=compute_{target},code=sm_{target}"]
    said = _compile(nvcc, _EXAMPLES / "gemm_sm100.cu", built, "-cubin", "-Xptxas=-v", *arch)
    assert "C75" not in said
    page = (root / "docs" / "gemm_sm100.rst").read_text(encoding="utf-8")
    registers = set(re.findall(r"Used (\d+) registers", said))
    assert all(f"{count} registers" in page for count in registers)
    codes = _code(built, "gemm_sm100::kernel")
    shown = re.findall(r"^   (U[A-Z\d.]+) .*UR", page, re.MULTILINE)  # of bf16; other toolkits may take other registers
    assert shown[-1] == "UTCBAR.2CTA.MULTICAST"
    assert any(" ".join(shown) in " ".join(re.findall(r"\*/ +([A-Z][\w.]*) ", code)) for code in codes.values())
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(codes) == len(_TCGEN05)
    for arguments, code in codes.items():
        counted = _counted(code)
        [expected] = [expected for name, expected in _TCGEN05.items() if name in arguments]
        expected = {"LDTM": 4, "UTCBAR": 2, "UTMASTG": 4, "LDL": 0, "STL": 0, **expected}
        assert {instruction: counted[instruction] for instruction in expected} == expected
        assert counted["UTCATOMSWS"] > 0  # the allocation
        assert code.count("MMA.2CTA") == 4
        assert len(re.findall(r"UTMALDG\.[23]D\.2CTA ", code)) == expected["UTMALDG"]
        assert code.count("UTCBAR.2CTA.MULTICAST ") == 2
        assert code.count("LDTM.x64 ") == 4
        assert code.count("STS.128 ") == 4 * 64 // 8


def _checked_code(nvcc: str, source: str, counts: Mapping[str, Mapping[str, int]], folder: Path) -> dict[str, str]:
    """The machine code of kernels of ``gemm_sm90``, by their types: no spills, no advice from the assembler (C75xx), these instructions."""
    (folder / "kernels.cu").write_text(source, encoding="utf-8")
    said = _compile(nvcc, folder / "kernels.cu", folder / "kernels.cubin", "-cubin", "-Xptxas=-v")
    assert "C75" not in said
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(counts)
    bodies = _code(folder / "kernels.cubin", "gemm_sm90::kernel")
    assert bodies.keys() == counts.keys()
    for name, expected in counts.items():
        counted = _counted(bodies[name])
        assert {instruction: counted[instruction] for instruction in expected} == expected, name
        assert counted["LDL"] == counted["STL"] == counted["CALL"] == 0, name
    return bodies


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
def test_the_machine_code_of_the_gemm(nvcc: str, tmp_path: Path) -> None:
    """As many multiplies and stores as the tile needs."""
    names = {}
    lines = ['#include "gemm_sm90_operands.cuh"', "using namespace gemm_sm90;"]
    for (element, result, major_a, major_b, width, registers, together), expected in _GEMMS.items():
        majors = ", ".join(f"(ptxmma_majorness){int(major == 'MN')}" for major in (major_a, major_b))
        operands = f"gemm_sm90::Dense<ptxmma::{element}, {majors}, 128, {width}, (gemm_sm90::From){registers}>"
        names[f"gemm_sm90::Gemm<{operands}, ptxmma::{result}, {'true' if together else 'false'}, (ptxmma_majorness)0>"] = expected
    for (element, result, width), expected in _FLAT_GEMMS.items():
        operands = f"gemm_sm90::Dense<ptxmma::{element}, (ptxmma_majorness)0, (ptxmma_majorness)0, 64, {width}, (gemm_sm90::From)0>"
        names[f"gemm_sm90::Gemm<{operands}, ptxmma::{result}, false, (ptxmma_majorness)1>"] = expected
    lines += [f"auto get{number}() {{ return kernel<{name}>; }}" for number, name in enumerate(names)]
    for name, body in _checked_code(nvcc, "\n".join(lines), names, tmp_path).items():
        # Descriptors of a stage differ by additions: nothing is shifted into their fields between its multiplies.
        multiplies = re.search(r"GMMA\..*?gsb0", body, re.DOTALL)
        assert multiplies is not None
        assert _counted(multiplies[0])["USHF"] == 0, name


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
def test_the_machine_code_of_the_sparse_gemm(nvcc: str, tmp_path: Path) -> None:
    """No register of metadata is written to before the multiplications that read it are waited for."""
    names = {}
    lines = ['#include "sparse_gemm_sm90.cuh"', "using namespace gemm_sm90;"]
    for (element, result, major_b, height, width, together), expected in _SPARSE_GEMMS.items():
        operands = f"sparse_gemm_sm90::Sparse<ptxmma::{element}, (ptxmma_majorness){int(major_b == 'MN')}, {height}, {width}>"
        name = f"gemm_sm90::Gemm<{operands}, ptxmma::{result}, {'true' if together else 'false'}, (ptxmma_majorness)0>"
        names[name] = expected
        lines.append(f"auto get{len(names)}() {{ return kernel<{name}>; }}")
    for name, body in _checked_code(nvcc, "\n".join(lines), names, tmp_path).items():
        registers = names[name].get("QGMMA", 0) + names[name].get("HGMMA", 0) // 2
        assert len(_readers_of_metadata(body, registers)) >= registers * 2 // 3, name


def _readers_of_metadata(body: str, loads: int) -> dict[str, int]:
    """The registers of metadata, and which group of multiplications reads each last, after two rounds of the loop."""
    code = [line.split("*/", 1)[1].strip() for line in body.splitlines() if re.match(r"\s+/\*[0-9a-f]{4}\*/\s+\S", line)]
    multiplies = [number for number, line in enumerate(code) if "GMMA.SP" in line]
    first = next(number for number, line in enumerate(code) if line.startswith("LDS")) - loads
    last = next(number for number in range(multiplies[-1], len(code)) if "WARPGROUP.DEPBAR.LE gsb0" in code[number])
    issued = complete = 0  # groups
    readers: dict[str, int] = {}
    for line in 2 * code[first : last + 1]:
        if "GMMA.SP" in line:
            readers[re.findall(r", (R\d+)(?:, 0x\d)?(?:, gsb0)? ;", line)[-1]] = issued + 1
            issued += line.partition(";")[0].rstrip().endswith("gsb0")
        elif waited := re.match(r"WARPGROUP.DEPBAR.LE gsb0, 0x(\d)", line):
            complete = issued - int(waited[1])
        elif written := re.match(r"(?:@!?U?P\d )?[A-Z]\S* (R\d+)", line):
            assert readers.get(written[1], 0) <= complete, line
    return readers


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
@pytest.mark.parametrize("targets", [("80", "86"), ("100", "120")], ids=" and ".join)
def test_the_machine_code_of_the_gemm_from_ampere_on(nvcc: str, targets: tuple[str, ...], tmp_path: Path) -> None:
    """Of the PTX for the first target, on each of them."""
    names = {}
    lines = ['#include "gemm_sm80.cuh"']
    for (element, result, major_a, major_b, sparse), expected in _MMAS.items():
        majors = ", ".join(f"(ptxmma_majorness){int(major == 'MN')}" for major in (major_a, major_b))
        name = f"gemm_sm80::Gemm<ptxmma::{element}, ptxmma::{result}, {majors}, {str(sparse).lower()}>"
        names[name] = expected
        lines.append(f"auto get{len(names)}() {{ return gemm_sm80::kernel<{name}>; }}")
    source, built = tmp_path / "kernels.cu", tmp_path / "kernels.fatbin"
    source.write_text("\n".join(lines), encoding="utf-8")
    codes = ",".join(f"sm_{target}" for target in targets)
    said = _compile(nvcc, source, built, "-gencode", f"arch=compute_{targets[0]},code=[{codes}]", "-fatbin", "-Xptxas=-v")
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(targets) * len(_MMAS)
    for target in targets:
        bodies = _bodies(built, "gemm_sm80::kernel", "-arch", f"sm_{target}")
        assert bodies.keys() == names.keys()
        for name, expected in names.items():
            assert {instruction: bodies[name][instruction] for instruction in expected} == expected, (target, name)
            assert bodies[name]["LDL"] == bodies[name]["STL"] == 0, (target, name)


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
@pytest.mark.parametrize("targets", [("80", "86"), ("90", "120")], ids=" and ".join)
def test_the_machine_code_of_quantised_weights(nvcc: str, targets: tuple[str, ...], tmp_path: Path) -> None:
    """A step has eight instructions along k for each 16 columns and 8 rows, and converts eight codes for each: 128 ``lop3``, no shuffle."""
    shapes = {"8, 4, 2, 2, 4": 8 * 4, "16, 4, 2, 2, 3": 8 * 4 * 2, "32, 4, 2, 2, 3": 8 * 4 * 4}
    names = {
        f"w4a16_sm80::Product<ptxmma::{element}, ptxmma::s4, 128, w4a16_sm80::Shape<{shape}> >": count
        for shape, count in shapes.items()
        for element in ("f16", "bf16")
    }
    source, built = tmp_path / "kernels.cu", tmp_path / "kernels.fatbin"
    gets = [f"auto get{number}() {{ return w4a16_sm80::kernel<{name}>; }}" for number, name in enumerate(names)]
    source.write_text("\n".join(['#include "w4a16_sm80.cuh"', *gets]), encoding="utf-8")
    codes = ",".join(f"sm_{target}" for target in targets)
    said = _compile(nvcc, source, built, "-gencode", f"arch=compute_{targets[0]},code=[{codes}]", "-fatbin", "-Xptxas=-v")
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(targets) * len(names)
    for target in targets:
        bodies = _bodies(built, "w4a16_sm80::kernel", "-arch", f"sm_{target}")
        assert bodies.keys() == names.keys()
        for name, products in names.items():
            assert (bodies[name]["HMMA"], bodies[name]["SHFL"]) == (products, 0), (target, name)
            assert bodies[name]["LOP3"] >= 4 * 8 * 4


#: Instances of ``w4a16_sm90``: a stage has sixteen instructions along k.
_FEW_ROWS = [
    f"w4a16_sm90::Product<ptxmma::{element}, ptxmma::{code}, {span}, {rows}>"
    for element, code, span in (("f16", "s4", 128), ("bf16", "u4", 32))
    for rows in (8, 16, 32)
]


@pytest.fixture
def few_rows(tmp_path: Path) -> Path:
    """A source with kernels of ``w4a16_sm90``."""
    gets = [f"auto get{number}() {{ return w4a16_sm90::kernel<{name}>; }}" for number, name in enumerate(_FEW_ROWS)]
    source = tmp_path / "kernels.cu"
    source.write_text("\n".join(['#include "w4a16_sm90.cuh"', *gets]), encoding="utf-8")
    return source


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
def test_the_machine_code_of_quantised_weights_on_hopper(nvcc: str, few_rows: Path, tmp_path: Path) -> None:
    """No spills, no advice; between the ends of two groups of products, codes are converted for a third."""
    built = tmp_path / "kernels.cubin"
    said = _compile(nvcc, few_rows, built, "-cubin", "-Xptxas=-v")
    assert "C75" not in said
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(_FEW_ROWS)
    codes = _code(built, "w4a16_sm90::kernel")
    assert codes.keys() == set(_FEW_ROWS)
    for name, code in codes.items():
        counted = _counted(code)
        assert counted["HGMMA"] == 16, name
        assert counted["LDL"] == counted["STL"] == 0, name
        assert counted["LOP3"] >= 4 * 16, name
        beside = re.findall(r"DEPBAR\.LE gsb0, 0x1 (.*?)DEPBAR\.LE gsb0, 0x[01] ", code, re.DOTALL)
        assert any(stretch.count("LOP3") >= 4 * 2 for stretch in beside), name


@pytest.mark.nvcc
def test_the_checker_finds_nothing_in_quantised_weights(nvcc: str, few_rows: Path, tmp_path: Path) -> None:
    """No error, and no warning."""
    built = tmp_path / "kernels.ptx"
    _compile(nvcc, few_rows, built, "-ptx", "-gencode", "arch=compute_90a,code=compute_90a")
    findings = check(built.read_text(encoding="utf-8"))
    assert [finding for finding in findings if finding.severity != "note"] == []
    assert findings.instructions > 50 * len(_FEW_ROWS)


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
def test_the_machine_code_of_attention(nvcc: str, tmp_path: Path) -> None:
    """No spills, no advice; and most exponentials come before the wait for the second product, which they run beside."""
    names = {
        f"attention_sm90::Attention<ptxmma::{element}, {causal}, {head}, {keys}>": (head, keys)
        for element in ("bf16", "f16")
        for causal, head, keys in _ATTENTION
    }
    source, built = tmp_path / "kernels.cu", tmp_path / "kernels.cubin"
    gets = [f"auto get{number}() {{ return attention_sm90::kernel<{name}>; }}" for number, name in enumerate(names)]
    source.write_text("\n".join(['#include "attention_sm90.cuh"', *gets]), encoding="utf-8")
    said = _compile(nvcc, source, built, "-cubin", "-Xptxas=-v")
    assert "C75" not in said
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(names)
    codes = _code(built, "attention_sm90::kernel")
    assert codes.keys() == names.keys()
    for name, (head, keys) in names.items():
        counted = _counted(codes[name])
        # Scores: of the first block of the first tile and of later tiles, of blocks with a mask and without one. Values: beside three of
        # these, and the last. Two places write.
        assert counted["HGMMA"] == 4 * (head // 16 + keys // 16), name
        assert counted["STSM"] == 2 * 4 * (head // 64), name
        assert counted["LDL"] == counted["STL"] == counted["CALL"] == 0, name
        scores = 64 * keys // 128  # of a thread
        stretches = re.findall(r"DEPBAR\.LE gsb0, 0x1 (.*?)DEPBAR\.LE gsb0, 0x0 ", codes[name], re.DOTALL)
        beside = sorted(stretch.count("MUFU.EX2") for stretch in stretches)
        assert beside[1:] == [scores + 2] * 2, name  # and the factors of its two rows
        assert beside[0] > scores / 2, name  # the first block of a tile has the sums of the one before written beside the rest


def _rows(table: str, kernel: str) -> list[dict[str, str]]:
    """The rows of a kernel in a recorded table."""
    with (_EXAMPLES / table).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["kernel"] == kernel]


def _page(kernel: str) -> str:
    return (_EXAMPLES.parent / f"{kernel}.rst").read_text(encoding="utf-8")


@pytest.mark.parametrize("kernel", ["gemm_sm90", "sparse_gemm_sm90"])
def test_the_page_states_the_means_of_the_table(kernel: str) -> None:
    """Sustained and short, over the library's default, and over its best, in the table's order of types."""
    means = [row for row in _rows("speed.csv", kernel) if row["size"] == "geometric mean"]
    page = _page(kernel)
    for way in ("sustained", "short"):
        for ratio in ("ratio to theirs", "ratio to their best"):
            assert "\n     - ".join(["", *(row[ratio] for row in means if row["way"] == way)]) + "\n" in page, (way, ratio)


@pytest.mark.parametrize(
    ("kernel", "label", "sizes"),
    [
        *(("gemm_sm90", f"{rows} x 8192 x 8192", (f"{rows} x 8192 x 8192",)) for rows in (1, 16, 64, 128)),
        ("gemm_sm90", "4096 x 4096 x 4096 and 16 bytes more of k", ("4096 x 4096 x 4104", "4096 x 4096 x 4112")),
        *(("sparse_gemm_sm90", f"{columns} columns?", (f"8192 x {columns} x 8192",)) for columns in (1, 16, 64, 128)),
    ],
    ids=str,
)
def test_the_page_states_the_ratios_of_a_size(kernel: str, label: str, sizes: tuple[str, ...]) -> None:
    """Sustained, over the best, in the table's order of types."""
    ratios = [row["ratio to their best"] for row in _rows("speed.csv", kernel) if row["size"] in sizes and row["way"] == "sustained"]
    line = "\n     - ".join(["", *ratios]) + "\n"
    assert re.search(rf"   \* - {label}(?: \(goal: [\d.]+\))?{re.escape(line)}", _page(kernel))


def _short(types: str) -> str:
    """Types as the pages name them in tables of profiles."""
    return types.removeprefix("2:4 ").partition(" to ")[0]


def _profiles(kernel: str) -> dict[tuple[str, str], str]:
    """The figures of a page's table of profiles, by types and size."""
    stated = re.findall(r"   \* - ([\w ]+), (\d+ (?:x|rows).*)((?:\n     - [\d., ]+)+)\n", _page(kernel))
    return {(types, size): figures for types, size, figures in stated}


@pytest.mark.parametrize("kernel", ["gemm_sm80", "gemm_sm90", "sparse_gemm_sm90", "attention_sm90"])
def test_the_page_states_the_profiles(kernel: str) -> None:
    """Cycles, shares of the tensor cores and of L2, and bytes of L2, of the kernel and of the fastest other."""
    recorded = {(_short(row["types"]), row["size"]): row for row in _rows("profile.csv", kernel)}
    stated = _profiles(kernel)
    assert len(stated) > 10
    for (types, size), figures in stated.items():
        row = recorded[types, size]
        names = ("thousand cycles", "tensor cores busy (%)", "L2 busy (%)", "MB through L2")
        pairs = (f"{row[name]}, {row[f'{name} of their best']}" for name in names)
        assert figures == "\n     - ".join(["", *pairs]), (types, size)


_FIVE = ("4096 x 4096 x 4096", "8192 x 8192 x 8192", "4096 x 14336 x 4096", "2048 x 4096 x 7168", "16384 x 8192 x 1024")


@pytest.mark.parametrize(
    ("kernel", "sizes", "ratio", "goal"),
    [
        ("gemm_sm90", "geometric mean", "ratio to theirs", 1.03),
        ("gemm_sm90", "geometric mean", "ratio to their best", 1.00),
        ("gemm_sm90", r"(16|64|128) x 8192 x 8192", "ratio to their best", 0.95),
        ("gemm_sm90", r"4096 x 4096 x 41\d\d", "ratio to their best", 0.98),
        ("sparse_gemm_sm90", "geometric mean", "ratio to their best", 1.02),
        ("sparse_gemm_sm90", r"8192 x (16|64|128) x 8192", "ratio to their best", 0.95),
        ("attention_sm90", r"\d{4,} rows", "ratio to their best", 1.00),
    ],
)
def test_a_goal_that_is_missed_has_its_profile_on_the_page(kernel: str, sizes: str, ratio: str, goal: float) -> None:
    """Of a geometric mean, the profiles of its five sizes."""
    rows = [row for row in _rows("speed.csv", kernel) if row["way"] == "sustained" and re.fullmatch(sizes, row["size"])]
    assert rows
    profiled = _profiles(kernel)
    for row in rows:
        if float(row[ratio]) < goal:
            for size in _FIVE if row["size"] == "geometric mean" else (row["size"],):
                assert (_short(row["types"]), size) in profiled, (row["types"], size)


@pytest.mark.parametrize("kernel", ["gemm_sm80", "gemm_sm90", "sparse_gemm_sm90", "attention_sm90", "w4a16_sm80", "w4a16_sm90"])
def test_every_figure_of_a_page_has_a_row(kernel: str) -> None:
    """A number with a point is one of the tables', rounded as the page has it, or a goal of the page, or a version."""
    figures = {value for table in ("speed.csv", "profile.csv") for row in _rows(table, kernel) for value in row.values()}
    recorded = {float(figure) for figure in figures if re.fullmatch(r"[\d.]+", figure)}
    page = _page(kernel)
    goals = {"1.03", "1.00", "0.98", "0.95", "1.02", "0.75"}
    for figure in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", page):
        places = len(figure.partition(".")[2])
        assert figure in goals or any(f"{value:.{places}f}" == figure for value in recorded), figure


def test_the_page_of_attention_states_the_table() -> None:
    """Sustained and short, over cuDNN: a line for each number of rows, a column for heads of 128 and 64, causal or not."""
    measured = {(row["types"], row["size"], row["way"]): row["ratio to their best"] for row in _rows("speed.csv", "attention_sm90")}
    page = _page("attention_sm90")
    for rows in (512, 1024, 4096, 16384):
        pairs = (
            [float(measured[kind, f"{rows} rows", way]) for way in ("sustained", "short")]
            for kind in ("bf16", "bf16 causal", "bf16 64", "bf16 64 causal")
        )
        line = "\n     - ".join([f"   * - {rows}", *(f"{sustained:.2f} ({short:.2f})" for sustained, short in pairs)])
        assert f"\n{line}\n" in page, rows


_PROFILE = ("thousand cycles", "tensor cores busy (%)", "MB of memory")


@pytest.mark.parametrize("kernel", ["w4a16_sm80", "w4a16_sm90"])
def test_the_page_of_few_rows_states_the_table(kernel: str) -> None:
    """Sustained and short, over the 16-bit product and over a read: a line for each number of rows, and for each kind of codes and X."""
    measured = {(row["types"].partition(";")[0], row["size"], row["way"]): row["ratio to their best"] for row in _rows("speed.csv", kernel)}
    page = _page(kernel)
    lines = {types: (types, [f"{rows} x 28672 x 8192" for rows in (16, 64)]) for types, _, _ in measured if " in " not in types}
    for rows in ("1", "16", "32", "64"):
        lines[rows] = ("int4 by f16", [f"{rows} x {size}" for size in ("8192 x 8192", "28672 x 8192", "8192 x 28672")])
    for label, (types, sizes) in lines.items():
        ratios = (
            [float(measured[f"{types}{against}", size, way]) for way in ("sustained", "short")]
            for size in sizes
            for against in ("", " in GB/s")
        )
        line = "\n     - ".join([f"   * - {label}", *(f"{sustained:.2f} ({short:.2f})" for sustained, short in ratios)])
        assert f"\n{line}\n" in page, label
    for profile in _rows("profile.csv", kernel):
        if profile["types"].startswith("int4 by f16 in GB/s") and profile["size"].endswith(" x 28672 x 8192"):
            theirs = {name: profile[f"{name} of their best"] for name in ("thousand cycles", "MB of memory")}
            cells = (f"{profile[name]}, {theirs[name]}" if name in theirs else profile[name] for name in _PROFILE)
            assert "\n     - ".join([f"   * - {profile['size'].partition(' ')[0]}", *cells]) + "\n" in page


@pytest.mark.nvcc
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("kernel", "target"),
    [
        ("gemm_sm90", ()),
        ("sparse_gemm_sm90", ()),
        ("gemm_sm80", ("-arch=native",)),
        ("w4a16_sm80", ()),
        ("w4a16_sm90", ()),
        ("attention_sm90", ()),
    ],
    ids=lambda value: str(value),
)
def test_the_kernel_is_right(nvcc: str, kernel: str, target: tuple[str, ...], tmp_path: Path) -> None:
    """All combinations of types, majornesses and masks against float64."""
    program = tmp_path / "check"
    _compile(nvcc, _GPU / f"check_{kernel}.cu", program, *target)
    done = subprocess.run([program, "7"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all right\n")
