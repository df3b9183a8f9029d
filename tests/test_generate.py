"""The command: the checked-in files, staleness, orphans, overlays, specs of one's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ptxmma
from ptxmma import paths
from ptxmma.cli import main
from ptxmma.generator.emit import EMITTERS, OWNED, Output
from ptxmma.generator.write import compare, write

_TOY = Path(__file__).parent / "toy"


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def toy_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the toy spec makes."""
    out = tmp_path_factory.mktemp("toy") / "out"
    result = _run("generate", "--spec", _TOY, "--out", out)
    assert result.exit_code == 0, result.output
    return out


def test_the_checked_in_files_are_what_the_spec_makes() -> None:
    result = _run("generate", "--check")
    assert result.exit_code == 0, result.output


def test_a_made_up_family_goes_through_every_generator(toy_out: Path) -> None:
    assert set(EMITTERS) == set(OWNED)
    for name, folders in OWNED.items():
        for folder in folders:
            assert any((toy_out / folder).rglob("*.*")), f"{name} made nothing in {folder}"
    for path, text in {
        "generated/include/ptxmma/toy.h": "ptxmma_toy_m16n8k16_a_b16_row",
        "generated/include/ptxmma/toy.cuh": "toy_m16n8k16_f32_f16_f16_f32_happy",
        "generated/include/ptxmma/variants/toy.def": "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.sad",
        "generated/python/ptxmma_layouts/toy.py": "def toy_m16n8k16_a_b16(",
        "generated/database/ptxmma.sql": "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.sad",
        "docs/reference/instructions/toy.rst": "A toy multiply-accumulate",
    }.items():
        assert text in (toy_out / path).read_text(encoding="utf-8"), path


def test_the_library_answers_from_a_database_of_ones_own(toy_out: Path) -> None:
    database = toy_out / "generated" / "database" / "ptxmma.json"
    sad = ptxmma.instruction("toy.sad.sync.aligned.m16n8k16.f32.f16.f16.f32", database=database)
    assert sad.accepted_by() == {"sm_90": "7.8"}
    assert sad.operand("a").coords(5, 3) == (9, 3)
    assert sad.operand("knob").immediates == range(4)
    assert len(list(ptxmma.instructions(database=database))) == 3
    with pytest.raises(ptxmma.UnknownInstruction):
        ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", database=database)


def test_an_overlay_adds_to_the_packaged_spec(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    (overlay / "instructions").mkdir(parents=True)
    shutil.copy(_TOY / "instructions" / "toy.yaml", overlay / "instructions")
    shutil.copy(_TOY / "fragments.yaml", overlay / "toy_fragments.yaml")
    carriers = """kind: types
carriers:
  - {operands: ["c", "d"], elements: ["f32"], when: {family: "toy"}, registers: ["f32"], source: "1.3"}
"""
    (overlay / "toy_carriers.yaml").write_text(carriers, encoding="utf-8")
    result = _run("generate", "--overlay", overlay, "--out", tmp_path / "out", "--only", "database")
    assert result.exit_code == 0, result.output
    database = tmp_path / "out" / "generated" / "database" / "ptxmma.json"
    families = {found.family for found in ptxmma.instructions(database=database)}
    assert families == {"mma", "mma.sp", "wgmma", "wgmma.sp", "toy"}


def test_check_says_what_is_stale_missing_and_orphaned(toy_out: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(toy_out, out)
    arguments = ("generate", "--spec", _TOY, "--out", out)
    (out / "generated/database/ptxmma.json").unlink()
    (out / "generated/include/ptxmma/toy.h").write_text("// stale\n", encoding="utf-8")
    (out / "generated/include/ptxmma/old.h").write_text("// old\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    result = _run(*arguments, "--check")
    assert result.exit_code == 1
    for line in (
        "missing: generated/database/ptxmma.json",
        "stale: generated/include/ptxmma/toy.h",
        "orphaned: generated/include/ptxmma/old.h",
    ):
        assert line in result.output
    assert "-// stale" in result.output
    assert f"mend with: ptxmma generate --spec {_TOY} --out {out}" in result.stderr
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert _run(*arguments).exit_code == 0
    assert not (out / "generated/include/ptxmma/old.h").exists()
    assert _run(*arguments, "--check").exit_code == 0


def test_only_what_changed_is_written(toy_out: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in toy_out.rglob("*") if path.is_file()}
    result = _run("generate", "--spec", _TOY, "--out", toy_out)
    assert "everything is up to date" in result.output
    assert {path: path.stat().st_mtime_ns for path in toy_out.rglob("*") if path.is_file()} == before


def test_only_one_output(tmp_path: Path) -> None:
    assert _run("generate", "--spec", _TOY, "--out", tmp_path, "--only", "python_layouts").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["generated"]
    assert [path.name for path in (tmp_path / "generated").iterdir()] == ["python"]
    wrong = _run("generate", "--only", "cobol")
    assert wrong.exit_code == 2
    assert f"'cobol' is no output; one of {', '.join(EMITTERS)}" in wrong.stderr


def test_a_section_of_a_hand_written_file(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("a\n<!-- begin table -->\nold\n<!-- end table -->\nz\n", encoding="utf-8")
    output = Output("README.md", "new\n", section="table")
    write(compare([output], tmp_path, []), tmp_path)
    assert page.read_text(encoding="utf-8") == "a\n<!-- begin table -->\nnew\n<!-- end table -->\nz\n"
    assert compare([output], tmp_path, []) == []
    assert compare([Output("NONE.md", "new\n", section="table")], tmp_path, []) == []


def test_the_bytes_do_not_depend_on_the_hash_seed(toy_out: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ptxmma", "generate", "--spec", str(_TOY), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".sqlite"}
    expected = {path.relative_to(toy_out): path.read_bytes() for path in toy_out.rglob("*") if path.is_file() and path.suffix != ".sqlite"}
    assert made == expected


def test_directories(root: Path) -> None:
    assert _run("--include-dir").output.strip() == str(root / "generated" / "include")
    assert (Path(_run("--include-dir").output.strip()) / "ptxmma" / "mma.h").is_file()
    assert (Path(_run("--cmake-dir").output.strip()) / "ptxmmaConfig.cmake").is_file()
    assert _run("--version").output == f"ptxmma, version {ptxmma.__version__}\n"
    assert "generate" in _run().output


def test_validate() -> None:
    result = _run("validate")
    assert result.exit_code == 0
    assert result.output.startswith(f"{paths.SPEC}: valid; ")
