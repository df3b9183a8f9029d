"""The command: the checked-in files, staleness, orphans, overlays, specs of one's own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ptxmma
from commands import invoke
from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import EMITTERS, Output, c_text, header_names
from ptxmma.generator.write import ClashError, WriteError, compare, locked, write

_TOY = Path(__file__).parent / "toy"


@pytest.fixture(scope="module")
def toy_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the toy spec makes."""
    out = tmp_path_factory.mktemp("toy") / "out"
    result = invoke("generate", "--spec", _TOY, "--out", out)
    assert result.exit_code == 0, result.output
    result = invoke("generate", "--spec", _TOY, "--out", out, "--only", "docs")
    assert result.exit_code == 0, result.output
    return out


def test_the_checked_in_files_are_what_the_spec_makes() -> None:
    """Also with a hash seed that is not theirs: the bytes depend on nothing but the spec."""
    command = [sys.executable, "-m", "ptxmma", "generate", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONHASHSEED": "1"})
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_a_made_up_family_goes_through_every_generator(toy_out: Path) -> None:
    for name, emitter in EMITTERS.items():
        for folder in emitter.folders:
            made = any((toy_out / folder).rglob("*.*"))
            assert made != emitter.of_the_generator, f"{name} made {'something' if made else 'nothing'} in {folder}"
    for path, text in {
        "generated/include/ptxmma/toy.h": "ptxmma_toy_m16n8k16_a_b16_row",
        "generated/include/ptxmma/toy.cuh": "toy_m16n8k16_f32_f16_f16_f32_happy",
        "generated/include/ptxmma/variants/toy.def": "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.sad",
        "generated/python/ptxmma_layouts/toy.py": "def toy_m16n8k16_a_b16(",
        "generated/database/ptxmma.sql": "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.sad",
        "docs/reference/toy/m16n8k16-f16.rst": "A toy multiply-accumulate",
    }.items():
        assert text in (toy_out / path).read_text(encoding="utf-8"), path


def test_sizes_of_a_qualifier_by_another_name(tmp_path: Path) -> None:
    """Every valid spec can be generated: sizes need not come from a qualifier named shape."""
    spec = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    for path in (spec / "instructions" / "toy.yaml", spec / "layouts.yaml"):
        path.write_text(path.read_text(encoding="utf-8").replace("shape", "size"), encoding="utf-8")
    assert invoke("validate", "--spec", spec).exit_code == 0
    assert invoke("generate", "--spec", spec, "--out", tmp_path / "out").exit_code == 0
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "out/generated/include/ptxmma").rglob("*.*h")]
    assert any("toy_m16n8k16_f32_f16_f16_f32_happy(float (&d)[4]" in text for text in texts)
    assert any("PTXMMA_CONSTEXPR_FN uint32_t ptxmma_toy_m16n8k16_a_b16_row(" in text for text in texts)


def test_the_library_answers_from_a_database_of_ones_own(toy_out: Path) -> None:
    database = toy_out / "generated" / "database" / "ptxmma.json"
    sad = ptxmma.instruction("toy.sad.sync.aligned.m16n8k16.f32.f16.f16.f32", database=database)
    assert sad.accepted_by() == {"sm_90": "7.8"}
    assert sad.operand("a").coords(5, 3) == (9, 3)
    assert sad.operand("knob").immediates == range(4)
    assert len(list(ptxmma.instructions(database=database))) == 3
    with pytest.raises(ptxmma.UnknownInstruction):
        ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", database=database)


def test_an_overlay_adds_to_the_packaged_spec(catalog: Catalog, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    (overlay / "instructions").mkdir(parents=True)
    shutil.copy(_TOY / "instructions" / "toy.yaml", overlay / "instructions")
    shutil.copy(_TOY / "layouts.yaml", overlay / "toy_layouts.yaml")
    carriers = """kind: types
carriers:
  - {operands: ["a", "b"], elements: ["f16"], when: {family: "toy"}, registers: ["b32"], source: "1.3"}
  - {operands: ["c", "d"], elements: ["f32"], when: {family: "toy"}, registers: ["f32"], source: "1.3"}
"""
    (overlay / "toy_carriers.yaml").write_text(carriers, encoding="utf-8")
    result = invoke("generate", "--overlay", overlay, "--out", tmp_path / "out", "--only", "database")
    assert result.exit_code == 0, result.output
    database = tmp_path / "out" / "generated" / "database" / "ptxmma.json"
    families = {instruction.family for instruction in ptxmma.instructions(database=database)}
    assert families == {entry.family for entry in catalog.database.spec.instructions} | {"toy"}


def test_check_says_what_is_stale_missing_and_orphaned(toy_out: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(toy_out, out)
    arguments = ("generate", "--spec", _TOY, "--out", out)
    (out / "generated/database/ptxmma.json").unlink()
    (out / "generated/include/ptxmma/toy.h").write_text("// stale\n", encoding="utf-8")
    (out / "generated/include/ptxmma/old.h").write_text("// Generated by ptxmma (spec 0.0.0)\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    result = invoke(*arguments, "--check")
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
    assert invoke(*arguments).exit_code == 0
    assert not (out / "generated/include/ptxmma/old.h").exists()
    assert invoke(*arguments, "--check").exit_code == 0


def test_files_of_others_stay(toy_out: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(toy_out, out)
    mine = [out / "generated/cmake/mine.cmake", out / "generated/include/ptxmma/empty.h"]
    for path in mine:
        path.write_text("mine\n" if path.suffix == ".cmake" else "", encoding="utf-8")
    (out / "generated/cmake/old.cmake").write_text("# Generated by ptxmma (spec 0.0.0)\n", encoding="utf-8")
    left_over = out / "generated/include/ptxmma/.ptxmma-toy.h.12345678.tmp"
    left_over.write_text("half a he", encoding="utf-8")
    result = invoke("generate", "--spec", _TOY, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        "deleted: generated/cmake/old.cmake",
        f"deleted: {left_over.relative_to(out).as_posix()}",
        f"2 files changed in {out}",
    ]
    assert all(path.exists() for path in mine)
    assert invoke("generate", "--spec", _TOY, "--out", out, "--check").exit_code == 0


def test_generated_files_have_a_banner(toy_out: Path) -> None:
    """A file without the banner is never deleted, so every output needs it."""
    for folder in {folder for emitter in EMITTERS.values() for folder in emitter.folders}:
        for path in (toy_out / folder).rglob("*"):
            if path.is_file() and path.name != "py.typed" and path.suffix != ".sqlite":
                assert b"Generated by ptxmma" in path.read_bytes()[:400], path


def test_no_family_takes_the_name_of_another_file(catalog: Catalog, root: Path, toy_out: Path) -> None:
    """The emitters say the names of their files, and the rules keep them from families."""
    spec = catalog.database.spec
    families = {c_text.identifier(entry.family) for entry in spec.instructions}
    memories = {f"{memory.name}_memory" for memory in spec.tensor_memories}
    stems = {path.name.partition(".")[0] for path in (root / "generated/include/ptxmma").iterdir()}
    assert families & stems
    assert stems - families - {f"{family}_pack" for family in families} - memories == header_names.files(spec)
    toys = {path.name.partition(".")[0] for path in (toy_out / "generated/include/ptxmma").iterdir()}
    assert {"toy", "toy_pack"} < toys
    assert toys - {"toy", "toy_pack"} <= header_names.files(spec)


@pytest.mark.parametrize(("first", "second"), [("toy", "toy.pack"), ("toy_pack", "toy"), ("to.y", "to_y")])
def test_no_family_takes_the_files_of_another(tmp_path: Path, first: str, second: str) -> None:
    toy = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    text = (toy / "instructions/toy.yaml").read_text(encoding="utf-8")
    (toy / "instructions/toy.yaml").unlink()
    for number, family in enumerate((first, second)):
        changed = text.replace('family: "toy"', f'family: "{family}"').replace('name: "toy"', f'name: "toy{number}"')
        (toy / f"instructions/{number}.yaml").write_text(changed, encoding="utf-8")
    result = invoke("validate", "--spec", toy)
    assert result.exit_code == 1
    assert f"1.yaml:3:10: the families '{first}' and '{second}' would share their files" in result.stderr


def _tree(root: Path) -> dict[Path, tuple[bytes, int] | None]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else None for path in root.rglob("*")}


@pytest.mark.parametrize("call", ["replace", "unlink"])
def test_what_fails_half_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "old.h").write_bytes(b"// Generated by ptxmma \xff\n")
    (folder / "stale.h").write_bytes(b"// Generated by ptxmma caf\xe9\n")
    outputs = [Output("a/stale.h", "new"), Output("a/b/c/missing.h", "new"), Output("a/last.h", "new")]
    before = _tree(tmp_path)
    changes = compare(outputs, tmp_path, ["a"])
    assert [change.state for change in changes] == ["stale", "missing", "missing", "orphaned"]
    original = getattr(os, call)

    def failing(*names: str) -> None:
        if str(names[-1]).endswith("last.h" if call == "replace" else "old.h"):
            raise OSError(28, "No space left on device", names[-1])
        original(*names)

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(WriteError, match=r"cannot be written: No space left on device; nothing was changed$"):
        write(changes, tmp_path)
    assert _tree(tmp_path) == before


def _started(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ptxmma", "generate", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_a_second_run_waits_and_reads_the_spec_then(toy_out: Path, tmp_path: Path) -> None:
    """The run that ends last has read the spec last: no run undoes the files of a newer spec."""
    out, spec = shutil.copytree(toy_out, tmp_path / "out"), shutil.copytree(_TOY, tmp_path / "toy")
    with _started("--spec", spec, "--out", out) as second:
        assert second.stderr
        with locked(out, lambda: None):
            assert second.stderr.readline() == f"another ptxmma generate works on {out}; waiting until it ends\n"
            toy = spec / "instructions/toy.yaml"
            toy.write_text(toy.read_text(encoding="utf-8").replace("A toy", "A new toy"), encoding="utf-8")
            assert second.poll() is None
    assert second.returncode == 0
    assert "A new toy" in (out / "generated/database/ptxmma.json").read_text(encoding="utf-8")


def test_two_runs_at_once(tmp_path: Path) -> None:
    runs = [_started("--spec", _TOY, "--out", tmp_path / "out") for _ in range(2)]
    said = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert invoke("generate", "--spec", _TOY, "--out", tmp_path / "out", "--check").exit_code == 0


def test_a_directory_that_was_locked_only_is_not_left(tmp_path: Path) -> None:
    with locked(tmp_path / "a/b", pytest.fail):
        assert (tmp_path / "a/b").is_dir()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    with (
        pytest.raises(WriteError, match=r"file/out: cannot be written: Not a directory; nothing was changed$"),
        locked(tmp_path / "file/out", pytest.fail),
    ):
        pass


def test_a_large_file_is_refused_by_its_size(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    with (spec / "layouts.yaml").open("ab") as file:
        file.truncate(100 << 20)
    result = invoke("validate", "--spec", spec)
    assert result.exit_code == 1
    assert f"{spec}/layouts.yaml:1:1: 100.0 MB; a file of a spec has at most 10 MB: split it by family" in result.stderr


def test_a_database_that_cannot_be_refreshed(toy_out: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(toy_out, out)
    database = out / "generated/database/ptxmma.sqlite"
    database.unlink()
    (database / "x").mkdir(parents=True)
    os.utime(database, ns=(0, 0))
    result = invoke("generate", "--spec", _TOY, "--out", out)
    assert result.exit_code == 1
    assert f"the files are written, but {database} is not" in result.stderr


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "generated/include/ptxmma/toy.h").mkdir(parents=True)
    result = invoke("generate", "--spec", _TOY, "--out", tmp_path)
    assert result.exit_code == 1
    assert "toy.h: cannot be read: Is a directory; nothing was changed" in result.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_two_outputs_with_one_path(tmp_path: Path) -> None:
    with pytest.raises(ClashError, match=r"^two outputs claim a/b\.h$"):
        compare([Output("a/b.h", "x"), Output("a/b.h", "y")], tmp_path, [])


def test_the_command_that_mends_can_be_pasted(tmp_path: Path) -> None:
    out = tmp_path / "an out"
    result = invoke("generate", "--spec", _TOY, "--out", out, "--only", "cmake", "--check")
    assert result.exit_code == 1
    command = shlex.split(result.stderr.rpartition("mend with: ")[2])
    assert command == ["ptxmma", "generate", "--spec", str(_TOY), "--out", str(out), "--only", "cmake"]


def test_only_what_changed_is_written(toy_out: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in toy_out.rglob("*") if path.is_file()}
    result = invoke("generate", "--spec", _TOY, "--out", toy_out)
    assert "everything is up to date" in result.output
    assert {path: path.stat().st_mtime_ns for path in toy_out.rglob("*") if path.is_file()} == before


def test_only_one_output(tmp_path: Path) -> None:
    assert invoke("generate", "--spec", _TOY, "--out", tmp_path, "--only", "python_layouts").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["generated"]
    assert [path.name for path in (tmp_path / "generated").iterdir()] == ["python"]
    wrong = invoke("generate", "--only", "cobol")
    assert wrong.exit_code == 2
    assert f"'cobol' is not an output; the outputs are {', '.join(EMITTERS)}" in wrong.stderr


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
    for more in ((), ("--only", "docs")):
        subprocess.run([*command, *more], check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".sqlite"}
    expected = {path.relative_to(toy_out): path.read_bytes() for path in toy_out.rglob("*") if path.is_file() and path.suffix != ".sqlite"}
    assert made == expected


def test_directories(root: Path) -> None:
    assert invoke("--include-dir").output.strip() == str(root / "generated" / "include")
    assert (Path(invoke("--include-dir").output.strip()) / "ptxmma" / "mma.h").is_file()
    assert (Path(invoke("--cmake-dir").output.strip()) / "ptxmmaConfig.cmake").is_file()
    assert invoke("--version").output == f"ptxmma, version {ptxmma.__version__}\n"
    assert "generate" in invoke().output


def test_validate() -> None:
    result = invoke("validate")
    assert result.exit_code == 0
    assert result.output.startswith(f"{paths.SPEC}: valid; ")


def test_a_multiplication_may_call_its_operands_and_types_anything(toy_out: Path, tmp_path: Path) -> None:
    """The kinds of operands say what is multiplied, added and written; only the sizes m, n and k have fixed names."""
    spec = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    names = {"a": "left", "b": "right", "c": "base", "d": "out"}
    types = {"atype": "kind", "btype": "num", "ctype": "trans", "dtype": "type"}
    replaced = {f"\n  {old}: {{kind:": f"\n  {new}: {{kind:" for old, new in names.items()} | {
        "d, a, b, c, knob": "out, left, right, base, knob"
    }
    replaced |= {'["a", "b"]': '["left", "right"]', '["c", "d"]': '["base", "out"]', '["a"]': '["left"]', '["b"]': '["right"]'} | types
    for path in (spec / "types.yaml", spec / "layouts.yaml", spec / "instructions/toy.yaml"):
        text = path.read_text(encoding="utf-8")
        for old, new in replaced.items():
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    result = invoke("generate", "--spec", spec, "--out", out)
    assert result.exit_code == 0, result.output
    usual, other = (
        ptxmma.instruction("toy.sync.aligned.m16n8k16.f32.f16.f16.f32", database=folder / "generated/database/ptxmma.json")
        for folder in (toy_out, out)
    )
    assert [operand.name for operand in other.forms[0].operands] == ["out", "left", "right", "base", "knob"]
    for name in "abcd":
        mine, renamed = usual.operand(name), other.operand(names[name])
        assert renamed.layout is not None
        assert mine.layout is not None
        assert (renamed.layout.map, renamed.register_types) == (mine.layout.map, mine.register_types)
        assert other.matrix_types[names[name]] == usual.matrix_types[name]
    trace = invoke("trace", other.canonical, "--row", "3", "--col", "5", "--database", out / "generated/database/ptxmma.json")
    assert "left" in trace.output, trace.output
