"""``python -m ptxmma_proof --assembler``: its options, its report, and what it finds, with a made-up spec and a made-up assembler."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import joblib
import msgspec
import pytest
from click.testing import CliRunner, Result

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.requirements import version_key
from ptxmma.evidence import assembler as evidence
from ptxmma.evidence import facts, reports
from ptxmma.generator import pipeline
from ptxmma.ptx import lines as ptx
from ptxmma_proof import assemblers, matrix, negative, questions, run
from ptxmma_proof.answers import Answers
from ptxmma_proof.command import command
from ptxmma_proof.legality import Legality

_TESTS = Path(__file__).parent
_TOY = _TESTS.parent / "toy"
_HAPPY = "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.happy 4f32 4b32 2b32 4f32 0"
_SAD = _HAPPY.replace("happy", "sad")
#: A neighbour: one register too many.
_WIDE = _HAPPY.replace("2b32", "3b32")


class Fake:
    """A made-up assembler in a folder of its own."""

    def __init__(self, folder: Path, told: dict[str, Any]) -> None:
        self.folder, self.told = folder, told
        self.path = folder / "ptxas"
        source = (_TESTS / "fake_ptxas.py").read_text(encoding="utf-8")
        self.path.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.tell()

    def tell(self, **more: Any) -> None:
        """Change what it answers."""
        self.told |= more
        (self.folder / "told.json").write_text(json.dumps(self.told), encoding="utf-8")

    def accept(self, line: str, **first: str) -> None:
        """Accept a line on these targets from these versions on."""
        self.tell(accepted=self.told["accepted"] | {ptx.expanded(line): first})

    @property
    def log(self) -> list[str]:
        """What it was asked: target and version of each module."""
        log = self.folder / "log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@pytest.fixture(scope="module")
def toy() -> Catalog:
    return pipeline.read(_TOY)


@pytest.fixture(scope="module")
def told(toy: Catalog) -> dict[str, Any]:
    """An assembler that says what the database says."""
    legality = Legality(toy)
    lines = [line for found in negative.neighbours(toy).values() for line in found]
    lines += [line for found in toy.all() for line in ptx.lines(found)]
    accepted = {line: first for line in lines if (first := legality.accepted_by(line))}
    return {"cuda": "11.8", "ptx": "7.8", "targets": {"sm_80": "7.0", "sm_90": "7.8"}, "accepted": accepted}


@pytest.fixture
def fake(tmp_path: Path, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.setattr(questions, "ANSWERS", tmp_path / "answers")
    return Fake(tmp_path, dict(told))


def _verify(fake: Fake | None, *arguments: str, spec: Path = _TOY) -> Result:
    chosen = ["--ptxas", str(fake.path)] if fake else []
    return CliRunner().invoke(command, ["--assembler", "--spec", str(spec), "--jobs", "2", *chosen, *arguments])


def test_an_assembler_that_agrees(fake: Fake) -> None:
    result = _verify(fake)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "matrix: 1 assemblers, 3 lines, 9 answers, 0 disagreements",
        f"negative space: {_neighbours(fake)} lines, {2 * _neighbours(fake)} answers, 0 disagreements",
    ]


def _neighbours(fake: Fake) -> int:
    assert fake.path.exists()
    return sum(map(len, negative.neighbours(pipeline.read(_TOY)).values()))


def test_a_line_that_is_accepted_too_late_is_found_and_recorded(fake: Fake, tmp_path: Path) -> None:
    fake.accept(_HAPPY, sm_80="7.8", sm_90="7.8")
    result = _verify(fake, "--report", str(tmp_path / "report.json"), "--date", "2026-01-02")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[:2] == ["CUDA 11.8, sm_80: accepted from 7.8 on, the database says accepted from 7.0 on: 1 line", f"    {_HAPPY}"]
    assert lines[2] == "matrix: 1 assemblers, 3 lines, 9 answers, 1 disagreements"
    told = evidence.load(tmp_path / "report.json")
    assert told.date == "2026-01-02"
    [difference] = told.differences
    assert (difference.target, difference.lines) == ("sm_80", (_HAPPY,))
    assert (difference.assembler, difference.database) == ("accepted from 7.8 on", "accepted from 7.0 on")


def test_a_line_that_is_refused_is_found_with_the_reason(fake: Fake) -> None:
    fake.accept(_SAD)
    result = _verify(fake)
    assert result.exit_code == 1
    assert "CUDA 11.8, sm_90: refused (Not today), the database says accepted from 7.8 on: 1 line" in result.stdout


def test_an_illegal_neighbour_that_is_accepted_is_found_and_recorded(fake: Fake, tmp_path: Path) -> None:
    fake.accept(_WIDE, sm_80="7.0")
    result = _verify(fake, "--report", str(tmp_path / "report.json"))
    assert result.exit_code == 1
    assert f"CUDA 11.8 accepts in 7.8 on sm_80, the database refuses: {ptx.expanded(_WIDE)}" in result.stdout
    told = evidence.load(tmp_path / "report.json")
    assert told.differences == ()
    [found] = told.disagreements
    assert (found.lines, found.targets, found.answer, found.erratum) == ((_WIDE,), ("sm_80",), "accepted", "")


def test_a_line_at_which_the_assembler_crashes_is_found_among_all(fake: Fake) -> None:
    fake.tell(crashes=[ptx.expanded(_HAPPY)])
    result = _verify(fake)
    assert result.exit_code == 1
    assert "sm_80: refused (the assembler crashed), the database says accepted from 7.0 on: 1 line" in result.stdout


def test_an_interrupted_run_goes_on_where_it_stopped(fake: Fake, tmp_path: Path, told: dict[str, Any]) -> None:
    (tmp_path / "whole").mkdir()
    whole = Fake(tmp_path / "whole", dict(told) | {"note": "another binary"})
    whole.path.write_text(whole.path.read_text(encoding="utf-8") + "# another binary\n", encoding="utf-8")
    assert _verify(whole).exit_code == 0
    fake.tell(interrupted=len(whole.log) // 2)
    result = _verify(fake, "--jobs", "1")
    assert result.exit_code == 1
    assert "ended with -15" in result.stderr
    before = len(fake.log)
    fake.tell(interrupted=0)
    assert _verify(fake).exit_code == 0
    again = len(fake.log) - before
    assert 0 < again < len(whole.log)
    asked = len(fake.log)
    assert _verify(fake).stdout == _verify(whole).stdout
    # Which modifiers it can read is asked each time; everything else is known.
    assert len(fake.log) - asked <= 2


def test_the_same_answers_give_the_same_report(fake: Fake, tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        assert _verify(fake, "--report", str(tmp_path / name), "--date", "2026-01-02").exit_code == 0
        shutil.rmtree(tmp_path / "answers")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_a_report_that_cannot_be_written(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = _verify(fake, "--report", str(tmp_path / "file" / "report.json"))
    assert result.exit_code == 2
    assert f"there is no directory {tmp_path / 'file'}" in result.stderr
    assert not fake.log  # told before anything is asked


def test_only_some_targets_and_families(fake: Fake, tmp_path: Path) -> None:
    result = _verify(fake, "--target", "sm_90", "--family", "toy", "--report", str(tmp_path / "report.json"))
    assert result.exit_code == 0, result.output
    assert {line.split()[0] for line in fake.log} == {"sm_90"}
    told = evidence.load(tmp_path / "report.json")
    assert [entry.targets for entry in told.assemblers] == [{"sm_90": "7.8"}]
    assert [bits.target for space in told.negative for bits in space.answers] == ["sm_90"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "sm_8"), "there is no target 'sm_8'; closest: sm_80"),
        (("--target", "Hopper"), "there is no target 'Hopper'; known: sm_80, sm_90"),
        (("--family", "toys"), "there is no family 'toys'; closest: toy"),
    ],
)
def test_unknown_names(fake: Fake, arguments: tuple[str, str], said: str) -> None:
    result = _verify(fake, *arguments)
    assert result.exit_code == 1
    assert said in result.stderr
    assert not fake.log


def test_no_assemblers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "ASSEMBLERS", tmp_path)
    result = _verify(None)
    assert result.exit_code == 1
    assert "no assemblers are here: fetch the pinned ones with `make assemblers`, or name one with --ptxas PATH" in result.stderr


def test_a_program_that_is_no_assembler() -> None:
    result = CliRunner().invoke(command, ["--assembler", "--ptxas", sys.executable])
    assert result.exit_code == 1
    assert f"{sys.executable}: no ptxas: its --version names no CUDA release" in result.stderr


def test_something_to_hold_the_database_against_must_be_named() -> None:
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 2
    assert "--assembler" in result.stderr


def test_a_new_release_says_what_it_brings(fake: Fake) -> None:
    fake.tell(cuda="12.0", ptx="8.0", targets=fake.told["targets"] | {"sm_91a": "8.0", "sm_35": "3.0"})
    fake.accept(_HAPPY, sm_80="8.0", sm_90="7.8")
    result = _verify(fake)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "CUDA 12.0 knows what the database does not: target sm_91a, PTX ISA 8.0",
        "CUDA 12.0, sm_80: accepted from 8.0 on, the database says accepted from 7.0 on: 1 line",
    ]


def test_progress_is_for_terminals(fake: Fake, monkeypatch: pytest.MonkeyPatch, toy: Catalog) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert _verify(fake).stderr == ""
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    run.run(toy, [assemblers.identify(fake.path)])
    assert "negative space" in screen.getvalue()


def test_stored_answers(fake: Fake, tmp_path: Path, toy: Catalog) -> None:
    fake.accept(_WIDE, sm_80="7.0")
    assert _verify(fake, "--report", str(tmp_path / "report.json")).exit_code == 1
    told = evidence.load(tmp_path / "report.json")
    answers = Answers(told, toy)
    assert answers.answer(ptx.expanded(_HAPPY), "sm_80", "7.0", "11.8") == "accepted"
    assert answers.answer(_HAPPY, "sm_90", "7.0", "11.8") == "refused"
    assert answers.answer(_SAD, "sm_80", "7.8", "11.8") == "refused"
    assert answers.answer(_SAD, "sm_90", "7.8", "11.8") == "accepted"
    for place in (("sm_80", "7.8", "12.0"), ("sm_75", "7.8", "11.8"), ("sm_80", "7.9", "11.8")):
        assert answers.answer(_HAPPY, *place) == "never asked"
    assert answers.answer(_WIDE, "sm_80", "7.8", "11.8") == "accepted"
    assert answers.answer(ptx.expanded(_WIDE), "sm_90", "7.8", "11.8") == "refused"
    assert answers.answer(_WIDE, "sm_80", "7.0", "11.8") == "never asked"
    assert answers.answer(_HAPPY.replace("happy", "mad"), "sm_80", "7.8", "11.8") == "never asked"
    # Another negative space than the one that was asked answers nothing.
    assert list(answers.asked) == ["toy"]
    other = msgspec.structs.replace(told, negative=(msgspec.structs.replace(told.negative[0], sha256="0" * 64),))
    assert Answers(other, toy).answer(_WIDE, "sm_90", "7.8", "11.8") == "never asked"
    assert not Answers(other, toy).asked


def test_stored_answers_do_not_follow_the_database(fake: Fake, tmp_path: Path, toy: Catalog) -> None:
    """A catalog that wants another version makes the same lines; what was said of them stays what it was."""
    assert _verify(fake, "--report", str(tmp_path / "report.json")).exit_code == 0
    told = evidence.load(tmp_path / "report.json")
    before, after = Answers(told, toy), Answers(told, later := pipeline.read(_changed(tmp_path)))
    asked = [ptx.compact(line) for line in negative.neighbours(toy)["toy"]]
    legality = Legality(later), Legality(toy)
    changed = [
        text for text in asked if len({bool(each.accepted_by(ptx.expanded(text)).get("sm_80", "9") <= "7.7") for each in legality}) > 1
    ]
    assert changed
    for text in asked:
        said = before.answer(text, "sm_80", "7.8", "11.8")
        assert said == after.answer(text, "sm_80", "7.8", "11.8") != "never asked"


def test_bits_are_packed_and_unpacked() -> None:
    for count in (0, 1, 7, 8, 9, 1000):
        bits = [number % 3 == 0 for number in range(count)]
        assert evidence.unpacked(evidence.packed(bits), count) == bits
    with pytest.raises(ValueError, match="do not hold 17 bits"):
        evidence.unpacked(evidence.packed([True] * 9), 17)
    with pytest.raises(ValueError, match="no packed bits"):
        evidence.unpacked("AAAA", 8)


def _changed(folder: Path) -> Path:
    """The toy with another version for sm_80."""
    changed = folder / "toy"
    shutil.copytree(_TOY, changed)
    rule = changed / "instructions" / "toy.yaml"
    text = rule.read_text(encoding="utf-8")
    assert text.count('ptx: "7.0", targets: ["sm_80"]') == 1
    rule.write_text(text.replace('ptx: "7.0", targets: ["sm_80"]', 'ptx: "7.8", targets: ["sm_80"]'), encoding="utf-8")
    return changed


def test_evidence_about_other_facts_is_stale(fake: Fake, tmp_path: Path, toy: Catalog) -> None:
    assert _verify(fake, "--report", str(tmp_path / "report.json")).exit_code == 0
    told = evidence.load(tmp_path / "report.json")
    assert facts.stale(told.facts, toy) == []
    assert facts.stale(told.facts, pipeline.read(_changed(tmp_path))) == ["toy"]


def test_the_schema_of_the_report_is_its_structure() -> None:
    schema = json.loads((paths.SCHEMAS / "evidence_assembler.schema.json").read_text(encoding="utf-8"))
    assert schema == evidence.schema()


def test_a_report_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"date": "2026-01-02"}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"report\.json: .*missing required field.*python -m ptxmma_proof"):
        evidence.load(path)


# --- what releases differ in ------------------------------------------------------------------------------------------------


def _toy_with(folder: Path, before: str, after: str) -> Path:
    """The toy with another table of targets."""
    spec = Path(shutil.copytree(_TOY, folder / "other"))
    text = (spec / "targets.yaml").read_text(encoding="utf-8")
    assert before in text
    (spec / "targets.yaml").write_text(text.replace(before, after), encoding="utf-8")
    return spec


def test_a_release_that_differs_must_differ_as_the_database_says(fake: Fake, tmp_path: Path) -> None:
    fake.tell(targets={"sm_80": "7.0", "sm_90": "7.0"})
    fake.accept(_HAPPY, sm_80="7.0", sm_90="7.0")
    assert "CUDA 11.8, sm_90: accepted from 7.0 on, the database says accepted from 7.8 on: 1 line" in _verify(fake).stdout
    modules = "CUDA 11.8, sm_90: accepted from 7.0 on, the database says accepted from 7.8 on"
    assert modules in _verify(fake).stdout.splitlines()  # without any line: the target itself
    words = _toy_with(tmp_path, 'name: "sm_90"', 'name: "sm_90", releases: "CUDA 11.8 takes it from 7.0 on"')
    assert _verify(fake, spec=words).exit_code == 1  # words explain nothing
    shutil.rmtree(words)
    exact = _toy_with(tmp_path, 'name: "sm_90"', 'name: "sm_90", ptx_in: [{cuda: "11.8", ptx: "7.0"}]')
    result = _verify(fake, spec=exact)
    assert "accepted from 7.0 on, the database says" not in result.stdout
    assert modules not in result.stdout.splitlines()
    assert "CUDA 11.8, sm_90: accepted from 7.8 on, the database says accepted from 7.0 on: 1 line" in result.stdout  # the other form


def test_a_target_that_a_release_does_not_know_is_a_difference(fake: Fake, tmp_path: Path) -> None:
    late = _toy_with(tmp_path, 'name: "sm_90"', 'name: "sm_90", ptx_in: [{cuda: "11.8", ptx: "7.0"}]')
    said = "CUDA 11.8, sm_90: accepted from 7.8 on, the database says accepted from 7.0 on"
    assert said in _verify(fake, spec=late).stdout.splitlines()
    shutil.rmtree(late)
    gone = _toy_with(tmp_path, 'name: "sm_80"', 'name: "sm_80", until: "11.7"')
    result = _verify(fake, spec=gone)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "CUDA 11.8, sm_80: known, the database says unknown"
    fake.tell(cuda="11.7", targets={"sm_80": "7.0"})
    assert _verify(fake, spec=gone).exit_code == 0
    fake.tell(targets={"sm_90": "7.8"})
    assert "CUDA 11.7, sm_80: unknown, the database says known" in _verify(fake, spec=gone).stdout


@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_the_same_run_on_a_dask_cluster(fake: Fake, toy: Catalog, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    chosen = [assemblers.identify(fake.path)]
    here = run.run(toy, chosen, cache=tmp_path / "here")
    asked = len(fake.log)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        there = run.run(toy, chosen, cache=tmp_path / "there")
    assert len(fake.log) == 2 * asked
    assert there.report("2026-01-02") == here.report("2026-01-02")


# --- the negative space -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def space(catalog: Catalog) -> dict[str, negative.Neighbours]:
    return negative.neighbours(catalog, ["mma.sp", "fence.proxy"])


def test_the_negative_space_changes_one_thing_at_a_time(space: dict[str, negative.Neighbours]) -> None:
    sparse = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    operands = "4f32 4b32 4b32 4f32 b32 0"
    lines = set(map(ptx.compact, space["mma.sp"]))
    for spelling in (
        sparse.replace("m16n8k32", "m16n8k64"),  # a shape
        sparse.replace(".f32.f16.f16", ".f32.bf16.f16"),  # a type
        sparse.replace(".f16.f16.", ".s8.s8."),  # both types
        sparse.replace("f16.f32", "f16.f16"),  # an accumulator
        sparse.replace(".col", ".col.kind::mxf4"),  # a kind
        sparse.replace(".col", ".col.kind::mxf4.block_scale"),  # two modifiers that stand side by side elsewhere
        sparse.replace(".row", ".col"),  # a layout
        sparse.replace(".col", ".row"),
        sparse.replace(".sync", ""),  # dropped
        sparse.replace(".sync", ".sync.sync"),  # twice
        f"{sparse}.rn",  # rounding, from elsewhere
        sparse.replace(".f32.f16", ".satfinite.f32.f16"),
    ):
        assert f"{spelling} {operands}" in lines, spelling
    for other in ("4f32 4b32 4b32 4f32 b32", f"{operands} 0", operands[:-1] + "-1", operands[:-1] + "2", operands[:-1] + "b32"):
        assert f"{sparse} {other}" in lines, other
    for other in ("3f32", "5f32", "4u64"):
        assert f"{sparse} {operands.replace('4f32', other, 1)}" in lines, other
    assert any(line.endswith("{b16,u16}") for line in lines)  # one of the operands in braces
    # As many registers as a shape that no instruction has would fill: 16x64 f16, half of them kept.
    assert f"{sparse.replace('m16n8k32', 'm16n8k64')} 4f32 8b32 8b32 4f32 b32 0" in lines


def test_instructions_are_no_neighbours(space: dict[str, negative.Neighbours], catalog: Catalog) -> None:
    lines = {line for found in space.values() for line in found}
    assert not any(line in lines for found in catalog.all() for line in ptx.lines(found))
    assert all(list(found) == sorted(found) for found in space.values())


def test_constants_in_hexadecimal_are_no_lists_of_registers() -> None:
    line = "mma.x {%b32_0, 0f3F800000}, 0f3F800000, 0;"
    assert ptx.expanded(ptx.compact(line)) == line


def test_compact_lines_are_the_lines(space: dict[str, negative.Neighbours], catalog: Catalog) -> None:
    lines = [line for found in catalog.all() for line in ptx.lines(found)] + [line for found in space.values() for line in list(found)[::7]]
    assert len(lines) > 10_000
    for line in lines:
        assert ptx.expanded(ptx.compact(line)) == line
    assert max(len(ptx.compact(line)) for line in lines) < 250


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4f32 4b32 4b32 4f32 b32 1", "7.1"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4b32 4f16x2 4b32 4f32 u32 1", "7.1"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4f32 4b32 4b32 4f32 b32 2", None),  # selector
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4f32 4b32 4b32 4f32 b32 b32", None),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4f32 4b32 4b32 4f32 {b32} 1", None),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4f32 4b32 2b32 4f32 b32 1", None),  # registers
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4f32 4b32 4b32 4f32 b32", None),  # operands
        ("mma.sp.sync.aligned.row.col.m16n8k32.f32.f16.f16.f32 4f32 4b32 4b32 4f32 b32 1", "7.1"),  # another order
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f16 4f32 4b32 4b32 4f32 b32 1", None),
        ("wgmma.wait_group.sync.aligned 4294967295", "8.0"),
        ("wgmma.wait_group.sync.aligned 4294967296", None),
        ("wgmma.fence.sync.aligned", "8.0"),
        ("wgmma.fence.sync.aligned 0", None),
    ],
)
def test_what_the_library_says_of_a_line(catalog: Catalog, line: str, first: str | None) -> None:
    assert Legality(catalog).accepted_by(ptx.expanded(line)).get("sm_90a") == (first and max(first, "8.0"))


# --- the evidence -----------------------------------------------------------------------------------------------------------


def test_the_evidence_is_of_this_spec(catalog: Catalog) -> None:
    told = evidence.load()
    assert facts.stale(told.facts, catalog) == []
    assert set(told.facts) == {entry.family for entry in catalog.database.spec.instructions}
    assert [entry.sha256 for entry in told.assemblers] == [pin["binary_sha256"] for pin in assemblers.pins()]
    assert told.differences == ()
    assert all(each.erratum for each in told.disagreements)
    assert sum(space.lines for space in told.negative) >= 100_000
    assert reports.text(told) == evidence.PATH.read_text(encoding="utf-8")


def test_the_evidence_asks_about_every_kind_of_target(catalog: Catalog) -> None:
    """Every family on a target of each generation of chips and with each suffix, whatever the database says of them."""
    kinds = {target.name: (target.number // 10, target.suffix) for target in catalog.database.spec.targets}
    for space in evidence.load().negative:
        asked = [kinds[bits.target] for bits in space.answers]
        assert len(asked) == len(set(asked))
        assert set(asked) == set(kinds.values())


def test_the_evidence_answers_for_every_instruction(catalog: Catalog) -> None:
    """On each target, by the newest release that knows it: accepted in its first version, refused in the one before it."""
    told = evidence.load()
    answers = Answers(told, catalog)
    newest = {target: entry for entry in told.assemblers for target in entry.targets}
    assert set(newest) == {target.name for target in catalog.database.spec.targets}
    before = {later: version for version, later in itertools.pairwise(sorted(told.versions, key=version_key))}
    for found in catalog.all():
        accepted = found.accepted_by()
        for line in ptx.lines(found):
            for target, tool in newest.items():
                first = accepted.get(target)
                if first is None:
                    assert answers.answer(line, target, tool.ptx, tool.cuda) == "refused"
                    continue
                assert answers.answer(line, target, first, tool.cuda) == "accepted"
                if first in before:
                    assert answers.answer(line, target, before[first], tool.cuda) == "refused"


def test_the_evidence_answers_for_the_whole_negative_space(catalog: Catalog) -> None:
    """The library says the same of every seventh line, but where the report has a disagreement."""
    told = evidence.load()
    answers, legality = Answers(told, catalog), Legality(catalog)
    assert list(answers.asked) == list(dict.fromkeys(entry.family for entry in catalog.database.spec.instructions))
    disputed = {(line, target) for entry in told.disagreements for line in entry.lines for target in entry.targets}
    differing = set()
    for lines in answers.asked.values():
        for line in itertools.islice(lines, 0, None, 7):
            accepted = legality.accepted_by(line)
            verdicts = answers.of_neighbour(line)
            assert verdicts
            for target, _, version, taken in verdicts:
                first = accepted.get(target)
                if (first is not None and version_key(first) <= version_key(version)) != taken:
                    differing.add((ptx.compact(line), target))
    assert differing
    assert differing <= disputed


def test_the_matrix_of_the_toy_has_every_version(toy: Catalog, fake: Fake) -> None:
    assembler = assemblers.identify(fake.path)
    assert matrix.versions_of(toy, assembler) == ["7.0", "7.8"]
    columns = matrix.sweep(matrix.Subject.of(toy), [assembler], ["sm_80", "sm_90"], questions.ANSWERS, 1)
    assert [column.accepted for column in columns] == [(("7.0", "7.8"), ("7.0", "7.8"), ()), (("7.8",), ("7.8",), ("7.8",))]
