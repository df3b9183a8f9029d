"""The corpus of PTX from other projects: how it is made, read, mutated and judged."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import assemblers
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.commands import main
from ptxmma_proof.corpus import cutlass, extraction, llvm, makers
from ptxmma_proof.corpus.judge import UnjudgedError, judge
from ptxmma_proof.corpus.samples import Samples
from ptxmma_proof.corpus.verdicts import Outcome
from ptxmma_proof.neighbours import Neighbourhood

_STEMS = ("mma", "wgmma")
#: A module as compilers write it: comments, scopes, an instruction over several lines, names without a percent sign.
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


# --- reading ----------------------------------------------------------------------------------------------------------------------


def test_instructions_are_read_with_the_types_of_their_registers() -> None:
    module = extraction.module(_MODULE, _STEMS)
    assert (module.version, module.target) == ("8.0", "sm_90a")
    assert tuple(each.line for each in module.instructions) == _READ
    assert [_MODULE[each.offset :].split(".")[0] for each in module.instructions] == ["mma", "wgmma", "wgmma"]


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


def test_text_that_is_not_a_module_is_refused() -> None:
    with pytest.raises(extraction.UnreadableError, match="cannot read '\\?\\?'"):
        extraction.module(".version 8.0\n??", _STEMS)


# --- mutants ----------------------------------------------------------------------------------------------------------------------


def test_a_sample_of_neighbours_is_the_same_each_time_and_has_every_kind(catalog: Catalog) -> None:
    spelling = _READ[1].partition(" ")[0]
    every, some = (Samples(catalog).of(spelling, most) for most in (1 << 20, 2))
    assert Samples(catalog).of(spelling, 2) == some
    assert some.items() <= every.items()
    assert set(every) == set(Neighbourhood(catalog).of(catalog.find(spelling)))
    counts = Counter(some.values())
    assert set(counts) == set(every.values())
    assert set(counts.values()) <= {1, 2}
    assert len(counts) > 5
    assert Samples(catalog).of("mma.nothing", 2) == {}


# --- judging ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def newest() -> Assembler:
    """The newest pinned assembler; tests that ask for it are skipped without one."""
    fetched = assemblers.fetched()
    if not fetched:
        pytest.skip("no assembler is here: make assemblers")
    return fetched[-1]._replace(targets=("sm_90a",))  # so that no other target is asked about


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one module, and the folder of its answers."""
    made = tmp_path_factory.mktemp("corpus")
    (made / "corpus" / "compiler").mkdir(parents=True)
    (made / "corpus" / "compiler" / "kernel.ptx").write_text(_MODULE, encoding="utf-8")
    return made


def _judged(catalog: Catalog, newest: Assembler, folder: Path) -> Outcome:
    return judge(catalog, folder / "corpus", [newest], 1, folder / "answers")


@pytest.mark.ptxas
def test_a_corpus_is_judged(catalog: Catalog, newest: Assembler, folder: Path) -> None:
    outcome = _judged(catalog, newest, folder)
    assert (len(outcome.modules), outcome.instructions, outcome.distinct) == (1, 3, 3)
    assert (outcome.refused, outcome.counted, outcome.false_alarms) == (0, 3, 0)
    assert outcome.mutants >= 20
    assert outcome.in_place == 3
    assert outcome.disagreements == []
    assert outcome.agrees


@pytest.mark.ptxas
def test_a_checker_that_reports_nothing_disagrees(
    catalog: Catalog, newest: Assembler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptxmma.check import Checker, Findings

    monkeypatch.setattr(Checker, "check", lambda *_: Findings(0, ()))
    outcome = _judged(catalog, newest, folder)
    assert outcome.counted == 0
    assert outcome.false_alarms == 0
    assert outcome.disagreements
    assert all(each.refused for each in outcome.disagreements)
    assert not outcome.agrees


@pytest.mark.ptxas
def test_a_checker_that_reports_sound_instructions_disagrees(
    catalog: Catalog, newest: Assembler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptxmma.check import Checker, Finding, Findings

    def wrong(_: Checker, text: str) -> Findings:
        places = [number for number, line in enumerate(text.split("\n"), 1) if re.search(r"\bw?g?mma\.", line) and "//" not in line]
        fields = {"file": "-", "column": 1, "severity": "error", "rule": "r", "instruction": "", "message": "no"}
        return Findings(len(places), tuple(msgspec.convert({**fields, "line": line}, Finding) for line in places))

    monkeypatch.setattr(Checker, "check", wrong)
    outcome = _judged(catalog, newest, folder)
    assert outcome.false_alarms == 3
    assert all(each.refused is None for each in outcome.disagreements)


def test_an_empty_corpus_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(UnjudgedError, match="make them with `python -m"):
        judge(catalog, tmp_path, [], 1, tmp_path / "answers")
    done = CliRunner().invoke(main, ["corpus", "judge", "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert "there is no module with a matrix instruction" in done.output or "no assemblers are here" in done.output


def test_a_module_for_an_unknown_target_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "kernel.ptx").write_text(_MODULE, encoding="utf-8")
    with pytest.raises(UnjudgedError, match=r"kernel\.ptx: no assembler that is here knows sm_90a"):
        judge(catalog, tmp_path, [], 1, tmp_path / "answers")


# --- making -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up CUTLASS, and a compiler that writes its arguments."""
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
    assert cutlass.versions(checkout) == {"CUTLASS": "4.2.0", "nvcc": "13.0.88"}


def test_existing_modules_are_not_made_again(checkout: Path, tmp_path: Path) -> None:
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
    assert list(makers.build(tmp_path / "out", checkout, None))
    tools = makers.recorded(tmp_path / "out", "2026-01-02")
    assert [(tool.name, tool.version) for tool in tools] == [("CUTLASS", "4.2.0"), ("nvcc", "13.0.88")]


def test_llvm_writes_every_matrix_intrinsic(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    place = next(iter(llvm.build(tmp_path)))
    text = place.read_text(encoding="utf-8")
    assert len(extraction.module(text, _STEMS).instructions) >= 12


def test_triton_writes_a_product(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    from ptxmma_proof.corpus import triton_kernels

    text = next(iter(triton_kernels.build(tmp_path))).read_text(encoding="utf-8")
    assert extraction.module(text, _STEMS).instructions
