"""The wheel carries everything, and everything in it works away from the checkout."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import venv
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import transcripts
from cuda_calls import Nvcc
from ptxmma import __version__
from ptxmma.catalog.instructions import Catalog

_SPELLING = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def _run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed; nothing of this checkout is on its path."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ptxmma_DIR", "PKG_CONFIG_PATH")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def _build(kind: str, source: Path, into: Path) -> Path:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: it is in the dependency group test")
    _run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", into, cwd=source)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build("wheel", root, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of a fresh environment that holds the wheel; its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    _run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "--no-deps", "--no-index", "--quiet", wheel, cwd=folder)
    site = _run(programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    # A plain entry: the .pth files in there, and with them the editable checkout, are not read.
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return programs


def test_the_wheel_carries_what_the_checkout_has(root: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, place in (
        ("spec", "ptxmma/data/spec"),
        ("generated/include", "ptxmma/data/generated/include"),
        ("generated/cmake", "ptxmma/data/generated/cmake"),
        ("generated/pkgconfig", "ptxmma/data/generated/pkgconfig"),
        ("generated/database", "ptxmma/data/generated/database"),
        ("generated/javascript", "ptxmma/data/generated/javascript"),
        ("generated/python/ptxmma_layouts", "ptxmma_layouts"),
        ("codegen/ptxmma", "ptxmma"),
    ):
        files = [path.relative_to(root / folder) for path in (root / folder).rglob("*") if path.is_file()]
        wanted = {f"{place}/{path.as_posix()}" for path in files if "__pycache__" not in path.parts}
        assert wanted, folder
        assert wanted <= names, folder
    assert "ptxmma/data/generated/database/ptxmma.sqlite" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests/", "codegen/"))]
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"ptxmma", "ptxmma_layouts"}  # not the proof
    (shared,) = {name.partition("/share/")[0] for name in names if ".data/data/share/" in name}
    prefixed = [path.relative_to(root / "generated") for path in (root / "generated" / "share").rglob("*") if path.is_file()]
    assert {f"{shared}/{path.as_posix()}" for path in prefixed} <= names


def test_a_source_archive_makes_the_same_wheel(root: Path, wheel: Path, tmp_path: Path) -> None:
    archive = _build("sdist", root, tmp_path / "sdist")
    _run(sys.executable, "-m", "tarfile", "--extract", archive, tmp_path / "source", cwd=tmp_path)
    (source,) = (tmp_path / "source").iterdir()
    again = _build("wheel", source, tmp_path / "again")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_the_command(installed: Path, tmp_path: Path) -> None:
    command = installed / "ptxmma"
    assert _run(command, "--version", cwd=tmp_path).strip().endswith(__version__)
    for option, file in (("--include-dir", "ptxmma/ptxmma.h"), ("--cmake-dir", "ptxmmaConfig.cmake"), ("--pkgconfig-dir", "ptxmma.pc")):
        folder = Path(_run(command, option, cwd=tmp_path).strip())
        assert installed.parent in folder.parents, "not the checkout"
        assert (folder / file).is_file()
    assert "valid" in _run(command, "validate", cwd=tmp_path)


def test_generating_from_an_installed_wheel_asks_where_to(installed: Path, tmp_path: Path) -> None:
    command = [str(installed / "ptxmma"), "generate", "--only", "cmake"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    asked = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (asked.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "this ptxmma is installed and has no checkout to write to: say where with --out DIRECTORY" in asked.stderr
    _run(*command, "--out", ".", cwd=tmp_path)
    assert sorted(path.relative_to(tmp_path / "generated").as_posix() for path in tmp_path.rglob("*") if path.is_file()) == [
        "cmake/ptxmmaConfig.cmake",
        "cmake/ptxmmaConfigVersion.cmake",
        "pkgconfig/ptxmma.pc",
        "share/cmake/ptxmma/ptxmmaConfig.cmake",
        "share/cmake/ptxmma/ptxmmaConfigVersion.cmake",
    ]


def test_the_library(installed: Path, tmp_path: Path) -> None:
    script = f"""
import sys
import ptxmma
from ptxmma_layouts.mma import mma_m16n8k16_a_b16
ins = ptxmma.instruction("{_SPELLING}")
print(ptxmma.__file__)
print(ins.operand("a").coords(5, 3), mma_m16n8k16_a_b16(5, 3))
print([name for name in ("yaml", "numpy", "jinja2", "jsonschema") if name in sys.modules])
"""
    where, places, imported = _run(installed / "python", "-c", script, cwd=tmp_path).splitlines()
    assert installed.parent in Path(where).parents
    assert places == "(9, 3) (9, 3)"
    assert imported == "[]"


_FAULT = ".version 8.0\n.target sm_90a\n.entry k()\n{\nmma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32 {%f0};\n}\n"


def _repository(root: Path, folder: Path, name: str) -> tuple[Path, Path]:
    """A repository with a kernel that has a fault, and a file that the guide to ``check`` shows."""
    shown = transcripts.write_files((root / "docs" / "check.rst").read_text(encoding="utf-8") + "\n", folder)[name]
    repository = folder / "repository"
    repository.mkdir()
    (repository / "k.ptx").write_text(_FAULT, encoding="utf-8")
    _run("git", "init", "--quiet", ".", cwd=repository)
    _run("git", "add", "--all", cwd=repository)
    return repository, shown


def test_the_hook_of_the_guide_runs_on_a_wheel(root: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pre_commit")
    folder, shown = _repository(root, tmp_path, ".pre-commit-config.yaml")
    text = re.sub(r"<address>/[^\"]*", str(wheel), shown.read_text(encoding="utf-8"))
    (folder / ".pre-commit-config.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_DEPS", "1")  # the wheel alone is installed; its dependencies are those of this environment
    monkeypatch.setenv("PYTHONPATH", sysconfig.get_path("purelib"))
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--all-files"], cwd=folder, capture_output=True, text=True, check=False
    )
    if "No matching distribution found for setuptools" in done.stdout:
        pytest.skip("pre-commit makes an environment with setuptools, and there is no index that has it")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "k.ptx:5:18: error:" in done.stdout


def test_the_action_of_the_guide_runs_on_a_wheel(root: Path, installed: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    folder, shown = _repository(root, tmp_path, ".github/workflows/ptx.yml")
    job = yaml.safe_load(shown.read_text(encoding="utf-8"))["jobs"]["check"]
    (install, *steps) = [step["run"] for step in job["steps"] if "run" in step]
    assert (install, [*job["env"]]) == ('pip install "$PTXMMA"', ["PTXMMA"])
    environment = {**os.environ, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
    annotated, logged = (
        subprocess.run(["bash", "-e", "-c", step], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        for step in steps
    )
    assert (annotated.returncode, logged.returncode) == (1, 0)
    assert "::error file=k.ptx,line=5," in annotated.stdout
    assert "k.ptx" in (folder / "ptxmma.sarif").read_text(encoding="utf-8")


def test_the_sqlite_file(installed: Path, tmp_path: Path) -> None:
    include = Path(_run(installed / "ptxmma", "--include-dir", cwd=tmp_path).strip())
    with closing(sqlite3.connect(include.parent / "database" / "ptxmma.sqlite")) as connection:
        query = "SELECT ptx FROM variant_targets WHERE canonical = ? AND target = 'sm_80'"
        assert connection.execute(query, (_SPELLING,)).fetchall() == [("7.0",)]


_C = """
#include <ptxmma/ptxmma.h>
int main(void) { return 0; }
"""


def test_cmake_finds_the_headers(installed: Path, tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    (tmp_path / "main.c").write_text(_C, encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\n"
        "project(app C)\n"
        f"find_package(ptxmma {__version__.rpartition('.')[0]} CONFIG REQUIRED)\n"
        "add_executable(app main.c)\n"
        "target_link_libraries(app PRIVATE ptxmma::ptxmma)\n",
        encoding="utf-8",
    )
    folder = _run(installed / "ptxmma", "--cmake-dir", cwd=tmp_path).strip()
    # From anywhere.
    _run("cmake", "-S", ".", "-B", "build", f"-Dptxmma_DIR={folder}", cwd=tmp_path)
    _run("cmake", "--build", "build", cwd=tmp_path)
    assert (tmp_path / "build" / "app").is_file()
    # In an activated environment nothing need be said.
    activated = os.environ | {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
    activated.pop("PYTHONPATH", None)
    configured = subprocess.run(
        ["cmake", "-S", ".", "-B", "again"], cwd=tmp_path, env=activated, capture_output=True, text=True, check=False
    )
    assert configured.returncode == 0, configured.stderr
    assert f"{installed.parent}/share/cmake/ptxmma" in (tmp_path / "again" / "CMakeCache.txt").read_text(encoding="utf-8")
    _run("cmake", "--build", "again", cwd=tmp_path)
    failed = tmp_path / "newer"
    failed.mkdir()
    (failed / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(app NONE)\nfind_package(ptxmma 99 CONFIG REQUIRED)\n"
    )
    done = subprocess.run(
        ["cmake", "-S", ".", "-B", "build", f"-Dptxmma_DIR={folder}"], cwd=failed, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0, "a version that is not there"
    assert "99" in done.stderr


def test_pkg_config_finds_the_headers(installed: Path, tmp_path: Path) -> None:
    command = shutil.which("pkg-config")
    if command is None:
        pytest.skip("pkg-config is not installed")
    include = Path(_run(installed / "ptxmma", "--include-dir", cwd=tmp_path).strip())
    folder_of_it = _run(installed / "ptxmma", "--pkgconfig-dir", cwd=tmp_path).strip()
    flags = _run(command, "--cflags", Path(folder_of_it) / "ptxmma.pc", cwd=tmp_path).split()
    (folder,) = (Path(flag.removeprefix("-I")) for flag in flags)
    assert folder.resolve() == include.resolve()


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("page", "program"),
    [
        *(
            (name, name)
            for name in ("gemm_sm90", "sparse_gemm_sm90", "attention_sm90", "gemm_sm80", "w4a16_sm80", "w4a16_sm90", "gemm_sm100")
        ),
        ("examples", "mma_sp"),
        ("examples", "wgmma"),
    ],
)
def test_the_line_that_a_page_gives_compiles_its_example(
    root: Path, installed: Path, nvcc: str, catalog: Catalog, page: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the headers of the installed wheel, in a folder of the files that the page offers above the line; and without a warning."""
    text = (root / f"docs/{page}.rst").read_text(encoding="utf-8")
    line = re.search(rf"^   (nvcc [^&]* -o {program}) &&", text, re.MULTILINE)
    assert line, program
    for file in re.findall(r":download:`[^<`]*<([^>`]*)>`", text[: line.start()]):
        shutil.copy(root / "docs" / file, tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PATH", f"{installed}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-Werror all-warnings -Xcompiler=-Wall,-Wextra")
    include = Path(_run(installed / "ptxmma", "--include-dir", cwd=tmp_path).strip())
    done = Nvcc(nvcc, catalog, include).run_line(line[1], tmp_path)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (tmp_path / program).is_file()


def test_an_editable_install_reads_the_checkout(root: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: it is in the dependency group test")
    build = "from hatchling.build import build_editable; import sys; build_editable(sys.argv[1])"
    _run(sys.executable, "-c", build, tmp_path, cwd=root)
    (editable,) = tmp_path.iterdir()
    archive = zipfile.ZipFile(editable)
    assert not [name for name in archive.namelist() if name.startswith("ptxmma/")], "a copy would go stale"
    (paths,) = (archive.read(name).decode().splitlines() for name in archive.namelist() if name.endswith(".pth"))
    assert {Path(path) for path in paths} == {root / "codegen", root / "generated" / "python"}


def test_links_of_the_readme_lead_somewhere(root: Path) -> None:
    """On GitHub each path is a file or folder of the repository; package indexes get addresses, or none."""
    for_an_index = runpy.run_path(str(root / "hatch_build.py"))["for_an_index"]
    readme = (root / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", readme)
    assert len(linked) > 10
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    assert not [path for path in linked if not any(each == path or each.startswith(f"{path.rstrip('/')}/") for each in tracked)]
    assert "](docs/" not in for_an_index(readme, "")
    absolute = for_an_index(readme, "https://example.org/ptxmma")
    assert "](docs/" not in absolute
    assert "![Which thread" in absolute
    assert "https://example.org/ptxmma/raw/main/docs/_static/mma_m16n8k16_d.svg" in absolute
    assert for_an_index("[a](https://b) ![c](d) [`e`](f)", "") == "[a](https://b)  `e`"
