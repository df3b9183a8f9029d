"""``python -m ptxmma_proof assembler``: its options, its record and its differences, with a made-up spec and assembler."""

from __future__ import annotations

import io
import json
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from ptxmma import paths
from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Answer, Assembled, Line, Part, Run, Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline
from ptxmma.ptx import lines as ptx
from ptxmma_proof import assemblers, matrix, neighbours, questions, records, sweep
from ptxmma_proof.commands import main
from ptxmma_proof.line_legality import Legality

_TESTS = Path(__file__).parent
_TOY = _TESTS.parent / "toy"
_HAPPY = "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.happy 4f32 4b32 2b32 4f32 0"
_SAD = _HAPPY.replace("happy", "sad")
#: A neighbour: one register too many.
_WIDE = _HAPPY.replace("2b32", "3b32")


class Fake:
    """A made-up assembler in a folder of its own."""

    def __init__(self, folder: Path, answers: dict[str, Any]) -> None:
        self.folder, self.answers = folder, answers
        self.path = folder / "ptxas"
        source = (_TESTS / "fake_ptxas.py").read_text(encoding="utf-8")
        self.path.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.change()

    def change(self, **more: Any) -> None:
        """Change what it answers."""
        self.answers |= more
        (self.folder / "answers.json").write_text(json.dumps(self.answers), encoding="utf-8")

    def accept(self, line: str, **first: str) -> None:
        """Accept a line on these targets from these versions on."""
        self.change(accepted=self.answers["accepted"] | {ptx.expanded(line): first})

    @property
    def log(self) -> list[str]:
        """The target and the version of each module that it was asked about."""
        log = self.folder / "log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@pytest.fixture(scope="module")
def toy() -> Catalog:
    return pipeline.read(_TOY)


@pytest.fixture(scope="module")
def answers(toy: Catalog) -> dict[str, Any]:
    """The answers of an assembler that agrees with the database."""
    legality = Legality(toy)
    lines = [line for lines_of in neighbours.neighbours(toy).values() for line in lines_of]
    lines += [line for instruction in toy.all() for line in ptx.lines(instruction)]
    accepted = {line: first for line in lines if (first := legality.accepted_by(line))}
    return {"cuda": "11.8", "ptx": "7.8", "targets": {"sm_80": "7.0", "sm_90": "7.8"}, "accepted": accepted}


@pytest.fixture
def fake(tmp_path: Path, answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.setattr(questions, "ANSWERS", tmp_path / "answers")
    return Fake(tmp_path, dict(answers))


def _verify(fake: Fake | None, *arguments: str, spec: Path = _TOY) -> Result:
    chosen = ["--ptxas", str(fake.path)] if fake else []
    return CliRunner().invoke(main, ["assembler", "--spec", str(spec), "--jobs", "2", *chosen, *arguments])


def test_an_assembler_that_agrees(fake: Fake) -> None:
    result = _verify(fake)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "matrix: 1 assemblers, 3 lines, 9 answers, 0 disagreements",
        f"negative space: {_neighbours(fake)} lines, {2 * _neighbours(fake)} answers, 0 disagreements",
    ]


def _neighbours(fake: Fake) -> int:
    assert fake.path.exists()
    return sum(map(len, neighbours.neighbours(pipeline.read(_TOY)).values()))


def test_a_line_that_is_accepted_too_late_is_found_and_recorded(fake: Fake, tmp_path: Path) -> None:
    fake.accept(_HAPPY, sm_80="7.8", sm_90="7.8")
    result = _verify(fake, "--record", str(tmp_path / "record.jsonl"), "--date", "2026-01-02")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[:2] == ["CUDA 11.8, sm_80: accepted from 7.8 on, the database says accepted from 7.0 on: 1 line", f"    {_HAPPY}"]
    assert lines[2] == "matrix: 1 assemblers, 3 lines, 9 answers, 1 disagreements"
    run, answer, *others = witnesses.read(tmp_path / "record.jsonl")
    assert isinstance(run, witnesses.Run)
    assert (run.date, run.targets, run.totals["disagreements"]) == ("2026-01-02", ("sm_80", "sm_90"), 1)
    answers = {line.name: line.accepted for line in [answer, *others] if isinstance(line, witnesses.Answer)}
    [happy] = [line for line in others if isinstance(line, witnesses.Assembled) and line.instruction.endswith(".happy")]
    assert answers[happy.answer] == {"sm_80": "7.8 in 11.8", "sm_90": "7.8 in 11.8"}
    assert happy.facts == digest.asked(pipeline.read(_TOY).find(happy.instruction), run.targets)


def test_a_line_that_is_refused_is_found_with_the_reason(fake: Fake) -> None:
    fake.accept(_SAD)
    result = _verify(fake)
    assert result.exit_code == 1
    assert "CUDA 11.8, sm_90: refused (Not today), the database says accepted from 7.8 on: 1 line" in result.stdout


def test_an_illegal_neighbour_that_is_accepted_is_found_and_recorded(fake: Fake, tmp_path: Path) -> None:
    fake.accept(_WIDE, sm_80="7.0")
    result = _verify(fake, "--record", str(tmp_path / "record.jsonl"))
    assert result.exit_code == 1
    assert f"CUDA 11.8 accepts in 7.8 on sm_80, the database refuses: {ptx.expanded(_WIDE)}" in result.stdout
    run = witnesses.Witness(tmp_path / "record.jsonl").run
    assert run is not None
    assert (run.totals["disagreements"], run.totals["unexplained"]) == (0, 1)


def test_a_line_at_which_the_assembler_crashes_is_found_among_all(fake: Fake) -> None:
    fake.change(crashes=[ptx.expanded(_HAPPY)])
    result = _verify(fake)
    assert result.exit_code == 1
    assert "sm_80: refused (the assembler crashed), the database says accepted from 7.0 on: 1 line" in result.stdout


def test_an_interrupted_run_goes_on_where_it_stopped(fake: Fake, tmp_path: Path, answers: dict[str, Any]) -> None:
    (tmp_path / "whole").mkdir()
    whole = Fake(tmp_path / "whole", dict(answers) | {"note": "another binary"})
    whole.path.write_text(whole.path.read_text(encoding="utf-8") + "# another binary\n", encoding="utf-8")
    assert _verify(whole).exit_code == 0
    fake.change(interrupted=len(whole.log) // 2)
    result = _verify(fake, "--jobs", "1")
    assert result.exit_code == 1
    assert "ended with -15" in result.stderr
    before = len(fake.log)
    fake.change(interrupted=0)
    assert _verify(fake).exit_code == 0
    again = len(fake.log) - before
    assert 0 < again < len(whole.log)
    asked = len(fake.log)
    assert _verify(fake).stdout == _verify(whole).stdout
    # Only the modifiers that it can read are asked about again.
    assert len(fake.log) - asked <= 2


def test_the_same_answers_give_the_same_report(fake: Fake, tmp_path: Path) -> None:
    for name in ("one.jsonl", "two.jsonl"):
        assert _verify(fake, "--record", str(tmp_path / name), "--date", "2026-01-02").exit_code == 0
        shutil.rmtree(tmp_path / "answers")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_a_report_that_cannot_be_written(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = _verify(fake, "--record", str(tmp_path / "file" / "record.jsonl"))
    assert result.exit_code == 2
    assert f"there is no directory {tmp_path / 'file'}" in result.stderr
    assert not fake.log  # refused before any question


def test_only_some_targets_and_families(fake: Fake, tmp_path: Path) -> None:
    result = _verify(fake, "--target", "sm_90", "--family", "toy", "--record", str(tmp_path / "record.jsonl"))
    assert result.exit_code == 0, result.output
    assert {line.split()[0] for line in fake.log} == {"sm_90"}
    run = witnesses.Witness(tmp_path / "record.jsonl").run
    assert run is not None
    assert run.targets == ("sm_90",)


def test_a_run_of_a_family_keeps_the_lines_of_others(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "assembler.jsonl"
    tools = (Tool(kind="assembler", name="CUDA 11.8", sha256="1" * 64, date="2026-01-01"),)
    spellings = {family: next(one.canonical for one in catalog.all() if one.family == family) for family in ("mma", "wgmma", "wmma")}

    def record(date: str, answers: dict[str, str], tools: tuple[Tool, ...] = tools) -> list[Line]:
        parts = {family: Part(date=date, totals={"answers": len(date + answer)}) for family, answer in answers.items()}
        run = Run(date=date, spec="1", tools=tools, targets=("sm_80",), totals=records.totals(parts), families=parts)
        assembled = [Assembled(instruction=spellings[family], facts="0" * 12, answer=answer) for family, answer in answers.items()]
        return [run, *assembled, *(Answer(name=name, accepted={"sm_80": name}) for name in sorted({*answers.values()}))]

    first = record("2026-01-01", {"mma": "a", "wgmma": "b"})
    assert records.updated(path, first, catalog) == first  # there is no file yet
    gone = Assembled(instruction="mma.gone", facts="0" * 12, answer="a")
    witnesses.write(path, [*first, gone])
    run, *lines = records.updated(path, record("2026-02-02", {"wgmma": "c", "wmma": "a"}), catalog)
    assert isinstance(run, Run)
    assert {family: part.date for family, part in run.families.items()} == {
        "mma": "2026-01-01",
        "wgmma": "2026-02-02",
        "wmma": "2026-02-02",
    }
    assert (run.date, run.totals) == ("2026-02-02", {"answers": 33})
    of = {line.instruction: line.answer for line in lines if isinstance(line, Assembled)}
    assert of == {spellings["mma"]: "a", spellings["wgmma"]: "c", spellings["wmma"]: "a"}
    assert [line.name for line in lines if isinstance(line, Answer)] == ["a", "c"]
    other = (msgspec.structs.replace(tools[0], sha256="2" * 64),)
    with pytest.raises(ValueError, match="is the record of other assemblers or targets; ask about every family: leave --family out"):
        records.updated(path, record("2026-02-02", {"wgmma": "c"}, other), catalog)
    whole = record("2026-02-02", {"mma": "a", "wgmma": "c"}, other)
    assert records.updated(path, whole, catalog) == whole  # nothing remains of the other assemblers


def test_the_record_of_a_family_is_updated(fake: Fake, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    for date in ("2026-01-02", "2026-01-03"):
        assert _verify(fake, "--family", "toy", "--record", str(path), "--date", date).exit_code == 0
        run = witnesses.Witness(path).run
        assert run is not None
        assert run.totals == run.families["toy"].totals
        assert run.families["toy"].date == date


def test_a_part_does_not_replace_the_evidence_of_the_whole() -> None:
    result = CliRunner().invoke(main, ["assembler", "--target", "sm_90a", "--record", str(paths.SPEC / "evidence" / "assembler.jsonl")])
    assert result.exit_code == 2
    assert "holds the evidence of the whole" in " ".join(result.stderr.split())


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


def test_a_program_that_is_not_an_assembler() -> None:
    result = CliRunner().invoke(main, ["assembler", "--ptxas", sys.executable])
    assert result.exit_code == 1
    assert f"{sys.executable}: no ptxas: its --version names no CUDA release" in result.stderr


def test_a_new_release_says_what_it_brings(fake: Fake) -> None:
    fake.change(cuda="12.0", ptx="8.0", targets=fake.answers["targets"] | {"sm_91a": "8.0", "sm_35": "3.0"})
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
    sweep.run(toy, [assemblers.identify(fake.path)])
    assert "negative space" in screen.getvalue()


def _toy_with(folder: Path, before: str, after: str) -> Path:
    """The toy with another table of targets."""
    spec = Path(shutil.copytree(_TOY, folder / "other"))
    text = (spec / "targets.yaml").read_text(encoding="utf-8")
    assert before in text
    (spec / "targets.yaml").write_text(text.replace(before, after), encoding="utf-8")
    return spec


def test_a_release_that_differs_must_differ_as_the_database_says(fake: Fake, tmp_path: Path) -> None:
    fake.change(targets={"sm_80": "7.0", "sm_90": "7.0"})
    fake.accept(_HAPPY, sm_80="7.0", sm_90="7.0")
    assert "CUDA 11.8, sm_90: accepted from 7.0 on, the database says accepted from 7.8 on: 1 line" in _verify(fake).stdout
    modules = "CUDA 11.8, sm_90: accepted from 7.0 on, the database says accepted from 7.8 on"
    assert modules in _verify(fake).stdout.splitlines()  # an empty module: the target itself
    words = _toy_with(tmp_path, 'name: "sm_90"', 'name: "sm_90", releases: "CUDA 11.8 takes it from 7.0 on"')
    assert _verify(fake, spec=words).exit_code == 1  # prose explains nothing
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
    fake.change(cuda="11.7", targets={"sm_80": "7.0"})
    assert _verify(fake, spec=gone).exit_code == 0
    fake.change(targets={"sm_90": "7.8"})
    assert "CUDA 11.7, sm_80: unknown, the database says known" in _verify(fake, spec=gone).stdout


# --- the negative space -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def space(catalog: Catalog) -> dict[str, neighbours.Neighbours]:
    return neighbours.neighbours(catalog, ["mma.sp", "fence.proxy"])


def test_the_negative_space_changes_one_thing_at_a_time(catalog: Catalog) -> None:
    sparse = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    operands = "4f32 4b32 4b32 4f32 b32 0"
    lines = set(map(ptx.compact, neighbours.Neighbourhood(catalog).of(catalog.find(sparse))))
    for spelling in (
        sparse.replace("m16n8k32", "m16n8k64"),  # a shape
        sparse.replace(".f32.f16.f16", ".f32.bf16.f16"),  # a type
        sparse.replace(".f16.f16.", ".s8.s8."),  # both types
        sparse.replace("f16.f32", "f16.f16"),  # an accumulator
        sparse.replace(".col", ".col.kind::mxf4"),  # a kind
        sparse.replace(".col", ".col.kind::mxf4.block_scale"),  # two modifiers that are adjacent elsewhere
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
    # The registers of a shape that no instruction has: 16x64 f16, half of them kept.
    assert f"{sparse.replace('m16n8k32', 'm16n8k64')} 4f32 8b32 8b32 4f32 b32 0" in lines


def test_one_of_the_operands_in_braces_changes(space: dict[str, neighbours.Neighbours]) -> None:
    assert any(ptx.compact(line).endswith("{b16,u16}") for line in space["mma.sp"])


def test_each_value_of_each_form_is_changed_at_least_once(catalog: Catalog) -> None:
    for entry in catalog.database.spec.instructions:
        every = [instruction for instruction in catalog.of(entry.name) if not instruction.variant.ranging]
        few = list(neighbours.representatives(every))
        shown, all_ = ({(id(one.variant.form), *pair) for one in chosen for pair in neighbours.tokens(one)} for chosen in (few, every))
        assert shown == all_, entry.name
    wmma = list(catalog.of("wmma.mma"))
    assert 0 < 3 * len(list(neighbours.representatives(wmma))) < len(wmma)


def test_no_neighbour_is_an_instruction(space: dict[str, neighbours.Neighbours], catalog: Catalog) -> None:
    lines = {line for group in space.values() for line in group}
    assert not any(line in lines for instruction in catalog.all() for line in ptx.lines(instruction))
    assert all(list(group) == sorted(group) for group in space.values())


def test_constants_in_hexadecimal_are_not_lists_of_registers() -> None:
    line = "mma.x {%b32_0, 0f3F800000}, 0f3F800000, 0;"
    assert ptx.expanded(ptx.compact(line)) == line


def test_compact_lines_are_the_lines(space: dict[str, neighbours.Neighbours], catalog: Catalog) -> None:
    lines = [line for one in catalog.all() for line in ptx.lines(one)] + [line for one in space.values() for line in list(one)[::3]]
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


def test_the_matrix_of_the_toy_has_every_version(toy: Catalog, fake: Fake) -> None:
    assembler = assemblers.identify(fake.path)
    assert matrix.versions_of(toy, assembler) == ["7.0", "7.8"]
    columns = matrix.sweep(matrix.Subject.of(toy), [assembler], ["sm_80", "sm_90"], questions.ANSWERS, 1)
    assert [column.accepted for column in columns] == [(("7.0", "7.8"), ("7.0", "7.8"), ()), (("7.8",), ("7.8",), ("7.8",))]
