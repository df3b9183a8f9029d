"""The corpus of PTX that nobody here wrote: how it is made, read, mutated and judged, and what the last run found."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence import corpus as evidence
from ptxmma.evidence import facts, reports
from ptxmma.ptx import lines as ptx
from ptxmma_proof import assemblers
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.corpus import cutlass, extraction, lit, llvm, makers, mutants
from ptxmma_proof.corpus.__main__ import main
from ptxmma_proof.corpus.judge import Outcome, UnjudgedError, judge
from ptxmma_proof.corpus.mutants import Vocabulary

_STEMS = ("mma", "wgmma")
#: As compilers write it: comments, scopes, an instruction over several lines, names without a percent sign.
_MODULE = """\
//
// mma.sync in a comment
//
.version 8.0
.target sm_90a, debug
.address_size 64

.visible .entry kernel(
\t.param .u64 kernel_param_0
)
.maxntid 128, 1, 1
{
\t.reg .pred \t%p<3>;
\t.reg .b32 \t%r<9>, x, y;
\t.reg .f32 \t%f<129>; /* .reg .f64 %f<129>; */
\t.reg .b64 \t%rd<4>;
\t.loc\t1 48 17
\tld.param.u64 \t%rd1, [kernel_param_0];
$L__BB0_1:
\t@%p1 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
\t\t{%f1, %f2, %f3, %f4},
\t\t{%r1, %r2, x, y},
\t\t{%r3, %r3},
\t\t{%f1, %f2, %f3, %f4};
\t// begin inline asm
\t{
\t.reg .pred p;
\tsetp.ne.b32 p, %r4, 0;
\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f5, %f6, %f7, %f8}, %rd2, %rd3, p, 1, -1, 0, 1;
\t}
\t// end inline asm
\twgmma.fence.sync.aligned;
\t{
\t.param .b32 p;
\tst.param.b32 [p], %r1;
\tcall.uni f, (p);
\t}
\tbra $L__BB0_1;
}
.section .debug_abbrev
{
.b8 1
}
"""
_READ = (
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
    "{%f32_0, %f32_1, %f32_2, %f32_3}, {%b32_0, %b32_1, %b32_2, %b32_3}, {%b32_4, %b32_4}, {%f32_0, %f32_1, %f32_2, %f32_3};",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f32_0, %f32_1, %f32_2, %f32_3}, %b64_0, %b64_1, %pred_0, 1, -1, 0, 1;",
    "wgmma.fence.sync.aligned;",
)
_VOCABULARY = Vocabulary(("bf16", "f32", "row", "sync", "unheard_of"), ("b16", "b32", "f32"))


# --- reading ----------------------------------------------------------------------------------------------------------------------


def test_instructions_are_read_with_the_types_of_their_registers() -> None:
    found = extraction.module(_MODULE, _STEMS)
    assert (found.version, found.target) == ("8.0", "sm_90a")
    assert tuple(each.line for each in found.instructions) == _READ
    assert [_MODULE[each.offset :].split(".")[0] for each in found.instructions] == ["mma", "wgmma", "wgmma"]


def test_an_inner_declaration_hides_an_outer_one() -> None:
    text = ".version 8.0\n.target sm_80\n.func f() { .reg .b32 r; { .reg .f32 r; mma.x r; } mma.y r; }"
    assert [each.line for each in extraction.module(text, _STEMS).instructions] == ["mma.x %f32_0;", "mma.y %b32_0;"]


def test_a_mutant_can_take_the_place_of_an_instruction() -> None:
    first = extraction.module(_MODULE, _STEMS).instructions[0]
    mutant = first.line.replace("row.col", "col.row").replace("%b32_4, %b32_4", "%b32_0, %b32_4")
    named = first.named(mutant)
    assert named
    assert "{%r1, %r3}" in named
    again = extraction.module(extraction.rewritten(_MODULE, {first.offset: named}), _STEMS)
    assert "col.row" in again.instructions[0].line
    assert [each.line for each in again.instructions[1:]] == list(_READ[1:])
    assert first.named(mutant.replace("%b32_0", "%b16_0")) is None


def test_text_that_is_no_module_is_refused() -> None:
    with pytest.raises(extraction.UnreadableError, match="cannot read '\\?\\?'"):
        extraction.module(".version 8.0\n??", _STEMS)


# --- mutants ----------------------------------------------------------------------------------------------------------------------


def test_each_mutant_differs_by_one_change() -> None:
    found = mutants.mutants(_READ[1], _VOCABULARY, most=1 << 20)
    assert len({mutant.line for mutant in found}) == len(found)
    kinds: dict[str, list[str]] = {}
    for mutant in found:
        assert mutant.line != _READ[1]
        kinds.setdefault(mutant.kind, []).append(mutant.line)
    spelling, operands = ptx.split(_READ[1])
    assert ptx.line(spelling.replace(".sync", ""), operands) in kinds["modifier dropped"]
    assert ptx.line(spelling.replace("f32.f16", "bf16.f16"), operands) in kinds["modifier replaced"]
    assert ptx.line(spelling.replace(".sync", ".sync.sync"), operands) in kinds["modifier twice"]
    assert ptx.line(f"{spelling}.unheard_of", operands) in kinds["modifier added"]
    assert ptx.line(spelling.replace("sync.aligned", "aligned.sync"), operands) in kinds["modifiers swapped"]
    assert ptx.line(spelling.replace("m64n8k16", "m64n16k16"), operands) in kinds["size changed"]
    assert ptx.line(spelling, operands[:-1]) in kinds["operand dropped"]
    assert ptx.line(spelling, [*operands, "0"]) in kinds["operand added"]
    assert ptx.line(spelling, [operands[0].replace(", %f32_3", ""), *operands[1:]]) in kinds["list shorter"]
    assert ptx.line(spelling, [operands[0].replace("f32_", "b16_"), *operands[1:]]) in kinds["registers of another type"]
    assert ptx.line(spelling, [*operands[:4], "2", *operands[5:]]) in kinds["immediate changed"]
    assert ptx.line(spelling, [*operands[:3], "1", *operands[4:]]) in kinds["immediate for a register"]


def test_a_sample_of_mutants_is_the_same_each_time_and_has_every_kind() -> None:
    every, some = (mutants.mutants(_READ[0], _VOCABULARY, most) for most in (1 << 20, 2))
    assert mutants.mutants(_READ[0], _VOCABULARY, 2) == some
    assert set(some) <= set(every)
    counts = {kind: sum(mutant.kind == kind for mutant in some) for kind in {mutant.kind for mutant in every}}
    assert set(counts.values()) <= {1, 2}


# --- judging ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def newest() -> Assembler:
    """The newest pinned assembler; tests that ask for it are skipped where there is none."""
    found = assemblers.fetched()
    if not found:
        pytest.skip("no assembler is here: make assemblers")
    return found[-1]._replace(targets=("sm_90a",))  # its others would be asked too


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one module, and the answers about it."""
    made = tmp_path_factory.mktemp("corpus")
    (made / "corpus" / "compiler").mkdir(parents=True)
    (made / "corpus" / "compiler" / "kernel.ptx").write_text(_MODULE, encoding="utf-8")
    return made


def _judged(catalog: Catalog, newest: Assembler, folder: Path) -> Outcome:
    return judge(catalog, folder / "corpus", [newest], 1, folder / "answers")


@pytest.mark.ptxas
def test_a_corpus_is_judged(catalog: Catalog, newest: Assembler, folder: Path) -> None:
    found = _judged(catalog, newest, folder)
    (source,) = found.sources
    assert (source.name, source.target, source.files, source.instructions, source.distinct) == ("compiler", "sm_90a", 1, 3, 3)
    assert (source.refused, found.counted, found.false_alarms) == (0, 3, 0)
    assert source.mutants >= 50
    assert source.in_place == 3
    assert found.mutants > source.mutants
    changes = {change.kind: change for change in found.changes}
    assert 0 < changes["modifier dropped"].refused <= changes["modifier dropped"].mutants
    assert found.disagreements == ()


@pytest.mark.ptxas
def test_a_checker_that_says_nothing_is_found_out(
    catalog: Catalog, newest: Assembler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptxmma.check import Checker, Findings

    monkeypatch.setattr(Checker, "check", lambda *_: Findings(0, ()))
    found = _judged(catalog, newest, folder)
    assert found.counted == 0
    assert found.false_alarms == 0
    refused = sum(change.refused for change in found.changes)
    assert len(found.disagreements) == refused
    assert {each.answer for each in found.disagreements} == {"refused"}


@pytest.mark.ptxas
def test_a_checker_that_calls_sound_instructions_errors_is_found_out(
    catalog: Catalog, newest: Assembler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptxmma.check import Checker, Finding, Findings

    def wrong(_: Checker, text: str) -> Findings:
        places = [number for number, line in enumerate(text.split("\n"), 1) if re.search(r"\bw?g?mma\.", line) and "//" not in line]
        told = {"file": "-", "column": 1, "severity": "error", "rule": "r", "instruction": "", "message": "no"}
        return Findings(len(places), tuple(msgspec.convert({**told, "line": line}, Finding) for line in places))

    monkeypatch.setattr(Checker, "check", wrong)
    found = _judged(catalog, newest, folder)
    assert found.false_alarms == 3
    assert {each.answer for each in found.disagreements} == {"accepted"}


def test_an_empty_corpus_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(UnjudgedError, match="make them with `python -m"):
        judge(catalog, tmp_path, [], 1, tmp_path / "answers")
    done = CliRunner().invoke(main, ["judge", "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert "there is no module with a matrix instruction" in done.output


def test_a_module_that_nobody_can_judge_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "kernel.ptx").write_text(_MODULE, encoding="utf-8")
    with pytest.raises(UnjudgedError, match=r"kernel\.ptx: no assembler that is here knows sm_90a"):
        judge(catalog, tmp_path, [], 1, tmp_path / "answers")


# --- making -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up CUTLASS, and a compiler that writes what it was asked."""
    program = tmp_path / "bin" / "nvcc"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "if '--version' in sys.argv: print('release 13.0, V13.0.88'); sys.exit()\n"
        "if 'warp' not in ' '.join(sys.argv): print('no such thing', file=sys.stderr); sys.exit(1)\n"
        "open(sys.argv[-1], 'w').write(' '.join(sys.argv[1:]))\n",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    for patterns in cutlass.PATTERNS.values():
        for pattern in patterns:
            file = tmp_path / "cutlass" / re.sub(r"[*?]", "x", pattern)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    header = tmp_path / "cutlass" / "include" / "cutlass" / "version.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 0\n", encoding="utf-8")
    return tmp_path / "cutlass"


def test_files_of_cutlass_are_compiled_for_their_targets(checkout: Path, tmp_path: Path) -> None:
    lines = list(cutlass.build(tmp_path / "out", checkout, tmp_path / "googletest"))
    assert len(lines) == sum(map(len, cutlass.PATTERNS.values()))
    made = sorted((tmp_path / "out").rglob("*.ptx"))
    assert {path.parent.name for path in made} <= {f"sm_{target}" for target in cutlass.PATTERNS}
    command = made[0].read_text(encoding="utf-8")
    assert f"-arch=compute_{made[0].parent.name.removeprefix('sm_')}" in command
    assert f"-I{tmp_path / 'googletest' / 'googletest' / 'include'}" in command
    assert any("no such thing" in line for line in lines)
    assert [tool.version for tool in cutlass.tools(checkout)] == ["4.2.0", "13.0.88"]


def test_what_is_there_is_not_made_again(checkout: Path, tmp_path: Path) -> None:
    made = set(cutlass.build(tmp_path / "out", checkout, tmp_path / "googletest"))
    place = next(Path(line) for line in made if line.endswith(".ptx") and Path(line).exists())
    place.write_text("as it was", encoding="utf-8")
    assert set(cutlass.build(tmp_path / "out", checkout, tmp_path / "googletest")) == made
    assert place.read_text(encoding="utf-8") == "as it was"


def test_without_googletest_only_examples_are_compiled(checkout: Path, tmp_path: Path) -> None:
    lines = list(cutlass.build(tmp_path / "out", checkout, None))
    assert lines
    assert not any("test_unit" in line or "test/unit" in line for line in lines)


def test_the_makers_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    monkeypatch.setattr(makers, "find_spec", lambda _: None)
    assert list(makers.build(tmp_path / "out", checkout, None, None))
    assert [(tool.name, tool.version) for tool in makers.recorded(tmp_path / "out")] == [("CUTLASS", "4.2.0"), ("nvcc", "13.0.88")]


def test_llvm_writes_every_matrix_intrinsic(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    place = next(iter(llvm.build(tmp_path)))
    text = place.read_text(encoding="utf-8")
    assert len(extraction.module(text, _STEMS).instructions) >= 12


_DRIVER = """\
# RUN: %python %s --ptx=80 > %t-ptx80.ll
# RUN: FileCheck %t-ptx80.ll < %t-ptx80.ll \\
# RUN:           --check-prefixes=INTRINSICS
# RUN: llc < %t-ptx80.ll -mtriple=nvptx64 -mcpu=sm_90a -mattr=+ptx80 \\
# RUN:           | FileCheck %t-ptx80.ll
# RUN: %if ptxas-sm_90a && ptxas-isa-8.0 %{ \\
# RUN: llc < %t-ptx80.ll -mtriple=nvptx64 -mcpu=sm_90a -mattr=+ptx80 \\
# RUN:           | %ptxas-verify -arch=sm_90a                         \\
# RUN: %}
import sys
open("list", "w").close()
print("declare void @llvm.nvvm.wgmma.fence.sync.aligned()")
print("define void @f() { call void @llvm.nvvm.wgmma.fence.sync.aligned() ret void } ;", *sys.argv[1:])
"""
_IR = """\
; RUN: llc < %s -march=nvptx64 -mcpu=sm_90a -mattr=+ptx80| FileCheck %s
; RUN: llc < %s -mcpu=sm_990 -mattr=+ptx80 | FileCheck %s
; RUN: llc -mcpu=sm_20 -o - %s | FileCheck %s
; RUN: not llc < %s -mcpu=sm_20 2>&1 | FileCheck %s
; RUN: sed s/a/b/ %s > %t.ll
; RUN: llc < %t.ll -mcpu=sm_90a -mattr=+ptx80
declare void @llvm.nvvm.wgmma.fence.sync.aligned()
define void @f() {
  call void @llvm.nvvm.wgmma.fence.sync.aligned()
  ret void
}
"""


@pytest.fixture
def tests_of_llvm(tmp_path: Path) -> Path:
    """A made-up checkout of LLVM: a generator, a module, and a module without a matrix instruction."""
    folder = tmp_path / "llvm" / lit.TESTS
    folder.mkdir(parents=True)
    for name, text in (("driver.py", _DRIVER), ("module.ll", _IR), ("other.ll", _IR.replace("wgmma.fence", "fence.proxy.alias"))):
        (folder / name).write_text(text, encoding="utf-8")
    numbers = tmp_path / "llvm" / "cmake" / "Modules" / "LLVMVersion.cmake"
    numbers.parent.mkdir(parents=True)
    numbers.write_text("".join(f"  set(LLVM_VERSION_{part} {number})\n" for part, number in (("MAJOR", 22), ("MINOR", 1), ("PATCH", 8))))
    return tmp_path / "llvm"


def test_the_run_lines_of_a_test_say_how_it_is_lowered() -> None:
    (generated,) = lit.lowerings(_DRIVER)
    assert (generated.arguments, generated.known, generated.chip, generated.version) == (("--ptx=80",), True, "sm_90a", "80")
    found = list(lit.lowerings(_IR))
    assert [each.arguments for each in found] == [None] * 4
    assert [(each.known, each.chip, each.version) for each in found] == [
        (True, "sm_90a", "80"),
        (True, "sm_990", "80"),
        (True, "sm_20", ""),
        (False, "sm_90a", "80"),
    ]


def test_tests_of_llvm_become_modules_and_none_is_lost_unnamed(
    tests_of_llvm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def emit(text: str, chip: str, version: str) -> str:
        """Stands for LLVM that knows one target only."""
        target, number = (chip, ".".join(version)) if chip == "sm_90a" else ("sm_75", "6.3")
        body = "wgmma.fence.sync.aligned;" if "wgmma" in text else ""
        return f"// {text.splitlines()[-1]}\n.version {number}\n.target {target}\n.func f() {{ {body} ret; }}"

    monkeypatch.setattr(llvm, "emit", emit)
    monkeypatch.setattr(llvm, "survives", lambda text, chip, version: chip != "sm_20")  # noqa: ARG005 - named as they are called
    monkeypatch.setattr(llvm, "version", lambda: "22.1.0")
    out = tmp_path / "out"
    lines = list(lit.build(out, tests_of_llvm, _STEMS))
    assert lines == [
        str(out / "driver_0.ptx"),
        str(out / "module_0.ptx"),
        "module.ll: LLVM 22.1.0 does not know the target or the version of llc < %s -mcpu=sm_990 -mattr=+ptx80 | FileCheck %s",
        "module.ll: LLVM 22.1.0 does not lower llc -mcpu=sm_20 -o - %s | FileCheck %s",
        "module.ll: neither the test nor Python makes the IR of llc < %t.ll -mcpu=sm_90a -mattr=+ptx80",
    ]
    assert "; --ptx=80" in (out / "driver_0.ptx").read_text(encoding="utf-8")  # the arguments came through
    (out / "module_0.ptx").write_text("as it was", encoding="utf-8")
    assert list(lit.build(out, tests_of_llvm, _STEMS)) == lines
    assert (out / "module_0.ptx").read_text(encoding="utf-8") == "as it was"
    assert lit.version(tests_of_llvm) == "22.1.8"
    assert not Path("list").exists()  # the generator wrote it


def test_llvm_lowers_its_tests(tests_of_llvm: Path, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    made = [Path(line) for line in lit.build(tmp_path / "out", tests_of_llvm, _STEMS) if line.endswith(".ptx")]
    assert [path.name for path in made] == ["driver_0.ptx", "module_0.ptx"]
    modules = [extraction.module(path.read_text(encoding="utf-8"), _STEMS) for path in made]
    assert {(module.target, module.version, len(module.instructions)) for module in modules} == {("sm_90a", "8.0", 1)}


def test_triton_writes_a_product(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    from ptxmma_proof.corpus import kernels

    text = next(iter(kernels.build(tmp_path))).read_text(encoding="utf-8")
    assert extraction.module(text, _STEMS).instructions


# --- the last run -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> evidence.Corpus:
    """What the last run found."""
    return evidence.load()


def test_the_schema_of_the_report_is_its_structure() -> None:
    schema = json.loads((paths.SCHEMAS / "evidence_corpus.schema.json").read_text(encoding="utf-8"))
    assert schema == evidence.schema()


def test_the_report_is_written_as_it_was_read(recorded: evidence.Corpus) -> None:
    assert reports.text(recorded) == evidence.PATH.read_text(encoding="utf-8")


def test_the_report_is_of_this_database(recorded: evidence.Corpus, catalog: Catalog) -> None:
    assert facts.stale(recorded.facts, catalog) == []


def test_no_false_alarm(recorded: evidence.Corpus) -> None:
    assert recorded.instructions >= 50_000
    assert recorded.counted == recorded.instructions == sum(source.instructions for source in recorded.sources)
    assert recorded.mutants >= 50_000
    assert recorded.false_alarms == 0
    assert {source.name for source in recorded.sources} == {"cutlass", "triton", "llvm", "llvm-tests"}


def test_no_disagreement(recorded: evidence.Corpus) -> None:
    assert recorded.disagreements == ()


def test_the_page_has_the_counts(recorded: evidence.Corpus, root: Path) -> None:
    page = " ".join((root / "docs" / "corpus.rst").read_text(encoding="utf-8").split())
    for each in recorded.sources:
        counts = (each.files, each.instructions, each.distinct, each.refused, each.mutants, each.in_place)
        assert f"* - {each.name} - ``{each.target}`` - " + " - ".join(f"{count:,}" for count in counts) in page
    assert f"{recorded.instructions:,} instructions" in page
    assert f"{recorded.mutants:,} mutants" in page
    assert f"Of the mutants, {len(recorded.disagreements)} are judged otherwise" in page


def test_the_command_describes_itself() -> None:
    done = subprocess.run([sys.executable, "-m", "ptxmma_proof.corpus", "--help"], capture_output=True, text=True, check=True)
    assert "build" in done.stdout
    assert "judge" in done.stdout
