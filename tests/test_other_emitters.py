"""Outputs of other packages: the examples of the guide, and emitters that fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import Result

from commands import invoke
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.write import locked
from shown_sessions import is_shown, printed, sessions

_TOY = Path(__file__).parent / "toy"
_HEAD = """
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.templating import banner

"""
_GOOD = (
    _HEAD
    + """
FOLDERS = ("mine",)

def emit(catalog):
    for each in catalog.all():
        yield Output(f"mine/{each.identifier}.txt", banner("#", catalog, ["spec/"]) + each.canonical + "\\n")
"""
)


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules in which the command runs."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def _module(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name.replace('.', '/')}.py"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text, encoding="utf-8")


def _generate(*arguments: str | Path) -> Result:
    return invoke("generate", "--spec", _TOY, *arguments)


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_module_is_an_output(modules: Path, tmp_path: Path) -> None:
    _module(modules, "package.good", _GOOD)
    out = tmp_path / "out"
    arguments = ("--emitter", "package.good", "--out", out)
    assert "missing: mine/" in _generate(*arguments, "--check").output
    assert not out.exists()
    assert _generate(*arguments).output == f"3 files changed in {out}\n"
    assert {path.split("/")[0] for path in _tree(out)} == {"mine"}  # and nothing of ours
    assert _generate(*arguments, "--check").exit_code == 0
    (stale, gone, _) = sorted((out / "mine").iterdir())
    stale.write_text(stale.read_text(encoding="utf-8") + "x", encoding="utf-8")
    gone.rename(gone.with_name("old.txt"))
    (out / "mine/by_hand.txt").write_text("mine\n", encoding="utf-8")
    check = _generate(*arguments, "--check")
    assert check.exit_code == 1
    for line in (f"stale: mine/{stale.name}", f"missing: mine/{gone.name}", "orphaned: mine/old.txt"):
        assert line in check.output
    assert f"mend with: ptxmma generate --spec {_TOY} --out {out} --emitter package.good" in check.stderr
    assert _generate(*arguments).output == f"deleted: mine/old.txt\n3 files changed in {out}\n"
    assert (out / "mine/by_hand.txt").exists()
    assert _generate("--out", out).exit_code == 0  # our own outputs leave it alone
    assert _generate(*arguments, "--check").exit_code == 0


def test_an_overlay_reaches_it(modules: Path, tmp_path: Path) -> None:
    _module(modules, "good", _GOOD)
    overlay = tmp_path / "overlay"
    shutil.copytree(_TOY / "instructions", overlay / "instructions")
    toy = overlay / "instructions/toy.yaml"
    toy.write_text(toy.read_text(encoding="utf-8").replace('"sad"', '"glum"'), encoding="utf-8")
    assert _generate("--emitter", "good", "--out", tmp_path / "out").exit_code == 0
    result = _generate("--emitter", "good", "--overlay", overlay, "--out", tmp_path / "out")
    assert result.output == f"deleted: mine/toy_m16n8k16_f32_f16_f16_f32_sad.txt\n2 files changed in {tmp_path / 'out'}\n"
    assert (tmp_path / "out/mine/toy_m16n8k16_f32_f16_f16_f32_glum.txt").exists()


@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        ("absent", None, "there is no module absent; install its package, or run in the directory that holds it"),
        ("package.absent", None, "there is no module package.absent"),
        ("bad.py", "", "there is no module bad.py; give the name without .py: bad"),
        ("bad", "import absent_package", "the emitter bad cannot be imported:.*No module named 'absent_package'"),
        ("bad", "def emit(:", "the emitter bad cannot be imported:.*SyntaxError"),
        ("bad", "raise SystemExit(0)", "the emitter bad cannot be imported:.*SystemExit: 0"),
        ("bad", "FOLDERS = ('mine',)", r"the emitter bad has no function emit\(catalog\)"),
        ("bad", "def emit(catalog): ...", r'the emitter bad has FOLDERS = None; it is a tuple of folders below --out, such as \("rust",\)'),
        ("bad", _GOOD.replace('("mine",)', '("mine")'), "the emitter bad has FOLDERS = 'mine'; it is a tuple"),
        ("bad", _GOOD.replace('"mine"', '"../mine"', 1), r"the emitter bad has FOLDERS = \('../mine',\); it is a tuple"),
        ("bad", _GOOD.replace('"mine"', '"/mine"', 1), r"the emitter bad has FOLDERS = \('/mine',\); it is a tuple"),
        ("bad", _GOOD.replace('"mine"', '"."', 1), r"the emitter bad has FOLDERS = \('.',\); it is a tuple"),
        ("bad", _GOOD.replace('"mine"', '"generated/mine"', 1), "the emitter bad owns generated/mine, and ptxmma owns generated; choose"),
        ("bad", _GOOD.replace('"mine"', '"docs"', 1), "the emitter bad owns docs, and ptxmma owns docs/reference; choose another folder"),
        ("bad", _GOOD.replace("mine/{each", "mine/../{each"), r"the emitter bad yields 'mine/\.\./.*'; its paths are plain"),
        ("bad", _GOOD.replace("mine/{each", "other/{each"), "the emitter bad yields 'other/.*; its paths .* below its folders: mine"),
        ("bad", _GOOD.replace("mine/{each", "/mine/{each"), "the emitter bad yields '/mine/"),
        ("bad", _GOOD.replace("mine/{each", "mine//{each"), "the emitter bad yields 'mine//"),
        ("bad", _GOOD.replace("mine/{each.identifier}", "mine/one"), "the emitter bad yields mine/one.txt twice; each path names one file"),
        ("bad", _GOOD.replace("yield Output(f", "yield (f"), r"the emitter bad yields \('mine/.*it must yield .*\.Output\(path, text\)"),
        ("bad", _GOOD + "        yield Output('mine/x', b'')", "the emitter bad yields Output.*of two strings"),
        ("bad", _GOOD.replace("yield Output", "Output"), "the emitter bad failed:.*'NoneType' object is not iterable"),
        ("bad", _GOOD + "    1 / 0", r"the emitter bad failed:.*bad\.py\", line 11, in emit.*ZeroDivisionError"),
        ("bad", _GOOD + "    exit()", "the emitter bad failed:.*SystemExit"),
    ],
)
def test_an_emitter_that_fails_leaves_every_file(modules: Path, tmp_path: Path, module: str, text: str | None, message: str) -> None:
    """Beside one that works, whose files are stale."""
    _module(modules, "good", _GOOD.replace("mine", "yours"))
    if text is not None:
        _module(modules, "bad", text)
    out = tmp_path / "out"
    assert _generate("--emitter", "good", "--out", out).exit_code == 0
    for path in (out / "yours").iterdir():
        path.write_text("# Generated by ptxmma: stale\n", encoding="utf-8")
    before = _tree(tmp_path / "out")
    result = _generate("--emitter", "good", "--emitter", module, "--out", out)
    assert result.exit_code == 2, result.output
    assert re.search(message, result.stderr, re.S), result.stderr
    assert result.stderr.endswith("nothing was changed\n")
    assert _tree(tmp_path / "out") == before


@pytest.mark.parametrize("processors", [1, 2])
def test_a_spec_whose_proof_fails_goes_before_an_emitter_that_fails(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    """The proofs run beside the emitters; no file is written."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
    _module(modules, "good", _GOOD)
    _module(modules, "bad", _GOOD.replace("mine", "yours") + "    1 / 0")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    layouts = (_TOY / "layouts.yaml").read_text(encoding="utf-8")
    (overlay / "layouts.yaml").write_text(layouts.replace("lane >> 2", "lane >> 3"), encoding="utf-8")
    result = _generate("--emitter", "good", "--emitter", "bad", "--overlay", overlay, "--out", tmp_path / "out")
    assert result.exit_code == 1
    problem, count = result.stderr.splitlines()
    assert re.search(r"layouts\.yaml:11:.*section 3\.3 differs", problem)
    assert count == "1 problem in the spec"
    assert not (tmp_path / "out").exists()


def test_two_emitters_own_no_folder_together(modules: Path, tmp_path: Path) -> None:
    _module(modules, "one", _GOOD)
    _module(modules, "two", _GOOD.replace('("mine",)', '("mine/inner",)').replace("mine/{", "mine/inner/{"))
    result = _generate("--emitter", "one", "--emitter", "two", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "the emitter two owns mine/inner, and one owns mine; choose another folder in FOLDERS" in result.stderr
    assert not (tmp_path / "out").exists()


def test_templates_that_a_wheel_lacks(modules: Path, tmp_path: Path) -> None:
    text = _HEAD + (
        "from pathlib import Path\nimport jinja2\nFOLDERS = ('mine',)\ndef emit(catalog):\n"
        "    loader = jinja2.FileSystemLoader(Path(__file__).parent / 'templates')\n"
        "    yield Output('mine/x', jinja2.Environment(loader=loader).get_template('x.jinja').render())\n"
    )
    _module(modules, "bare", text)
    result = _generate("--emitter", "bare", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert re.search(r"the emitter bare failed:.*TemplateNotFound: 'x\.jinja' not found in search path", result.stderr, re.S)


def _in_a_process(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ptxmma", "generate", "--spec", str(_TOY), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform != "linux", reason="no processes there")
def test_a_process_that_is_ended(modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    _module(modules, "good", _GOOD)
    _module(modules, "fatal", _GOOD.replace("mine", "yours") + "    import os; os._exit(0)\n")
    result = _generate("--emitter", "good", "--emitter", "fatal", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "a process that made one of good, fatal was ended" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="no processes there")
def test_processes_end_with_the_one_that_started_them(modules: Path, tmp_path: Path) -> None:
    """Also where that is killed: they would hold the lock of the directory."""
    _module(modules, "good", _GOOD)
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    wait = f"    import os, pathlib, time; pathlib.Path({str(pipe)!r}).write_text(str(os.getpid())); time.sleep(600)\n"
    _module(modules, "slow", _GOOD.replace("mine", "yours") + wait)
    with _in_a_process("--emitter", "good", "--emitter", "slow", "--out", tmp_path / "out") as started:
        child = int(pipe.read_text(encoding="utf-8"))
        assert child != started.pid
        started.kill()
    with locked(tmp_path / "out", lambda: None):  # returns once the child is gone
        assert not Path(f"/proc/{child}/cwd").exists()


def test_the_number_of_processors_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (1, 3):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, count=count: set(range(count)), raising=False)
        assert _generate("--out", tmp_path / str(count)).exit_code == 0
    made = [{path: data for path, data in _tree(tmp_path / count).items() if not path.endswith(".sqlite")} for count in ("1", "3")]
    assert made[0] == made[1] != {}


@pytest.fixture
def registered(modules: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that is installed: its metadata register an output."""
    site = modules.parent / "site"
    _module(site, "some_package.emitter", _GOOD)
    metadata = site / "some_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n", encoding="utf-8")
    points = "[ptxmma.emitters]\nmine = some_package.emitter\ndatabase = some_package.other\n"
    (metadata / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.mark.usefixtures("registered")
def test_an_installed_package_registers_its_output(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert _generate("--only", "mine", "--out", out).output == f"3 files changed in {out}\n"
    assert _generate("--only", "mine", "--only", "cmake", "--out", out, "--check").exit_code == 1
    assert "the outputs are database, " in _generate("--only", "cobol", "--out", out).stderr
    assert ", schemas, mine\n" in _generate("--only", "cobol", "--out", out).stderr
    assert _generate("--only", "database", "--out", out).exit_code == 0  # ours
    assert not any((tmp_path / "usual").rglob("mine"))


class _Guide(NamedTuple):
    """The guide's commands, each with what it shows and what it prints, and a folder of all files that they make."""

    sessions: list[tuple[str, str, str]]
    made: Path


@pytest.fixture(scope="module")
def guide(root: Path, tmp_path_factory: pytest.TempPathFactory) -> _Guide:
    folder = shutil.copytree(root / "docs/examples/emitters", tmp_path_factory.mktemp("guide") / "emitters")
    ran = _Guide([], folder.parent / "made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "modules", {**sys.modules})
        for command, shown in sessions((root / "docs/outputs.rst").read_text(encoding="utf-8")):
            ran.sessions.append((command, shown, printed(command, folder)))
            shutil.copytree(folder / "out", ran.made, dirs_exist_ok=True)
    return ran


def test_the_guide_shows_what_happens(guide: _Guide) -> None:
    assert len(guide.sessions) >= 8
    for command, shown, text in guide.sessions:
        files = re.compile(r"^\d+ files", re.M)  # one for each family
        assert is_shown(files.sub("some files", text), files.sub("some files", shown)), f"$ {command}\n{text}"


def test_rust_takes_the_constants_of_the_guide(guide: _Guide, catalog: Catalog, tmp_path: Path) -> None:
    source = guide.made / "rust/src"
    text = (source / "mma.rs").read_text(encoding="utf-8")
    assert 'ptx: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", targets: &[("sm_80", "7.0"), ' in text
    made = "".join(path.read_text(encoding="utf-8") for path in source.iterdir())
    assert all(f"pub const {each.identifier.upper()}: Instruction" in made for each in catalog.all())
    if shutil.which("rustc") is None:
        pytest.skip("rustc is not installed")
    command = ["rustc", "--edition", "2021", "-Dwarnings", "--crate-type", "lib", "--emit", "metadata", "-o", str(tmp_path / "lib")]
    subprocess.run([*command, str(source / "lib.rs")], check=True)


def test_the_table_of_the_guide(guide: _Guide, catalog: Catalog) -> None:
    text = (guide.made / "tables/matrix.def").read_text(encoding="utf-8")
    rows = re.findall(r'^MATRIX\((\w+), "(.*)", "(.*)"\)$', text, re.M)
    assert {(name, spelling) for name, spelling, _ in rows} == {
        (each.identifier, each.canonical) for each in catalog.all() if each.family in ("mma", "mma.sp")
    }
    answers = {name: constraints for name, _, constraints in rows}
    assert answers["mma_m16n8k16_f32_f16_f16_f32"] == "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"
    assert answers["mma_sp_ordered_metadata_m16n8k32_f32_f16_f16_f32"] == "=f,=f,=f,=f,r,r,r,r,r,r,r,r,f,f,f,f,r,n"


def test_the_guide_shows_the_examples(root: Path) -> None:
    page = (root / "docs/outputs.rst").read_text(encoding="utf-8")
    longest = {"rust_constants": 40, "asm_table": 30}
    shown = re.findall(r"literalinclude:: examples/emitters/(\w+)\.py", page)
    assert set(shown) == longest.keys() == {path.stem for path in (root / "docs/examples/emitters").glob("*.py")}
    for name in shown:
        assert len((root / f"docs/examples/emitters/{name}.py").read_text(encoding="utf-8").splitlines()) <= longest[name]
