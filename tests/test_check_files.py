"""Which files ``ptxmma check`` reads, in which language, and its messages about the others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxmma.check import Checker
from ptxmma.check.files import discover
from ptxmma.cli import checked_files, main
from ptxmma.ptx.languages import SUFFIXES, UNREAD

PTX = ".version 8.0\n.target sm_90a\n.entry k() { wgmma.fence.sync.aligned; }\n"
BAD = PTX.replace("aligned", "bad")
CUDA = '#include <mma.h>\n__global__ void k() { asm volatile("\\n\\twgmma.fence.sync.bad;"); }\n'
LLVM = 'define void @k() {\n  call void asm sideeffect "wgmma.fence.sync.bad;", ""()\n  ret void\n}\n'
PYTHON = f'import torch\n\nMODULE = """\n{BAD}"""\n'


def run(*arguments: str | Path, text: str = "") -> tuple[int, list[str], list[str]]:
    """The exit code, the lines of standard output that name a place, and those of standard error."""
    done = CliRunner().invoke(main, ["check", *map(str, arguments)], input=text)
    return done.exit_code, [line for line in done.stdout.splitlines() if "error:" in line], done.stderr.splitlines()


@pytest.mark.parametrize("suffix", sorted(SUFFIXES))
def test_every_ending_has_its_language(suffix: str, tmp_path: Path) -> None:
    text = {"ptx": BAD, "c++": CUDA, "llvm": LLVM, "python": 'x = "wgmma.fence.sync.bad;"\n'}[SUFFIXES[suffix]]
    file = tmp_path / f"kernel{suffix.upper()}"
    file.write_text(text, encoding="utf-8")
    code, findings, summary = run(file)
    assert (code, len(findings)) == (1, 1)
    assert summary == ["1 file, 1 instruction checked, 1 finding"]


@pytest.mark.parametrize("name", ["kernel", "kernel.tpp", "kernel.txt"])
@pytest.mark.parametrize(
    "text", [BAD, CUDA, LLVM, PYTHON, PYTHON.replace("import torch", "def f(x):\n    return x"), "  wgmma.fence.sync.bad;\n"]
)
def test_other_endings_are_recognised_by_their_text(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert run(tmp_path / name)[0] == 1
    assert run(text=text)[:2] == (1, [line.replace(str(tmp_path / name), "-") for line in run(tmp_path / name)[1]])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("name", ["kernel.ptx", "kernel.cu", "kernel"])
def test_encodings(name: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(CUDA if name.endswith("cu") else BAD, encoding=encoding)
    assert run(tmp_path / name)[0] == 1


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        *((f"kernel{suffix}", b"", f"it is {language}, which is not supported") for suffix, language in UNREAD.items()),
        ("kernel.cubin", b"\x7fELF\0\0", "it is not text"),
        ("kernel.ptx", b"\x7fELF\2\1\1\0\0", "it is not text"),
        ("kernel.cu", b"\x7fELF\2\1\1\0\0", "it is not text"),
        ("notes.md", b"# Notes\n\nSome prose about mma.\n", "it looks like neither PTX"),
        ("kernel.py", b'x = "wgmma.fence.sync.aligned;"\ny = (\n', "line 3 is not Python"),
    ],
)
def test_what_is_not_read_is_refused_by_name(name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    code, _, said = run(tmp_path / name)
    assert code == 2
    assert said[0].startswith(f"error: {tmp_path / name}: cannot be read: {reason}")


def test_a_language_may_be_named(tmp_path: Path) -> None:
    file = tmp_path / "kernel.rs"
    file.write_text(CUDA, encoding="utf-8")
    assert run("--language", "c++", file)[0] == 1
    assert run("--language", "python", text='x = "wgmma.fence.sync.bad;"')[0] == 1
    assert run("--language", "c++", text=BAD)[0] == 0


@pytest.mark.parametrize("text", ["", "\n", ".version 8.0\n.target sm_90a\n", "int main() { return 0; }\n"])
def test_files_without_matrix_instructions_are_clean(text: str, tmp_path: Path) -> None:
    file = tmp_path / ("a.cc" if "main" in text else "a.ptx")
    file.write_text(text, encoding="utf-8")
    assert run(file) == (0, [], ["1 file, 0 instructions checked, 0 findings"])


def test_the_summary_counts_what_is_not_covered(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text('asm("wgmma.fence." SYNC ";"); asm("wgmma.fence.sync.aligned;");', encoding="utf-8")
    assert run(tmp_path / "a.cu")[2] == ["1 file, 1 instruction checked, 0 findings; 1 not covered"]


@pytest.mark.parametrize(
    ("head", "rule", "of_head"),
    [(".version 8.0\n.target sm_90\n", "[target]", 0), (".version 7.8\n.target sm_90a\n", "[version]", 1)],
)
def test_one_wrong_target_or_version_is_one_finding_of_a_module(head: str, rule: str, of_head: int, tmp_path: Path) -> None:
    first, rest = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    file = tmp_path / "a.ptx"
    file.write_text(f"{head}.entry a()\n{{\n{first}\n{rest}}}\n.entry b()\n{{\n{first}\n{rest}}}\n", encoding="utf-8")
    code, findings, summary = run(file)
    assert (code, len(findings)) == (1, 1)
    assert findings[0].endswith(rule)
    assert summary == [f"1 file, 6 instructions checked, 1 finding; {5 + of_head} of the same cause not shown"]
    answer = json.loads(CliRunner().invoke(main, ["check", "--format", "json", str(file)]).stdout)
    assert (answer["repeated"], len(answer["findings"])) == (5 + of_head, 1)
    file.write_text(f"{head}.entry a()\n{{\n{first} // ptxmma: ignore\n{rest}}}\n", encoding="utf-8")
    assert run(file)[2] == [f"1 file, 3 instructions checked, 1 finding; {1 + of_head} of the same cause not shown"]


@pytest.mark.parametrize(
    ("head", "place"),
    [
        (".version 8.5\n.target sm_103a\n", "2:9"),
        ("// made by hand\n.version 8.5 .target sm_103a, debug\n.address_size 64\n", "2:22"),
        (".version 7.2\n.target sm_88\n", "2:9"),
        (".version 7.3\n.target sm_88\n", ""),  # CUDA 13.0 takes it
        (".version 8.8\n.target sm_103a\n", ""),
        (".version 8.5\n.target sm_999\n", ""),  # another database may have it
        (".version 8.5\n.address_size 64\n", ""),
        (".version 8.5\n.target texmode_independent, sm_103a\n", "2:30"),
        (".version 8.5\n.target\n", ""),
        ('.version 8.5\n.target sm_103a\n.file 1 "a.cu"\n.target', "2:9"),
    ],
)
@pytest.mark.parametrize("body", ["", ".entry k()\n{\nret;\n}\n"])
def test_a_version_that_does_not_know_the_target_is_a_finding_of_the_directive(head: str, place: str, body: str, tmp_path: Path) -> None:
    """Assemblers refuse the module, even without any instruction."""
    file = tmp_path / "a.ptx"
    file.write_text(head + body, encoding="utf-8")
    code, findings, _ = run(file)
    assert code == bool(place)
    assert [line.split(": ")[0].removeprefix(f"{file}:") for line in findings] == [place] * bool(place)
    assert run(file, "--target", "sm_90a")[0] == run(file, "--ptx", "8.8")[0] == 0


def test_a_module_of_a_version_that_drivers_do_not_know(tmp_path: Path) -> None:
    file = tmp_path / "a.ptx"
    file.write_text(PTX, encoding="utf-8")
    options = ("--severity", "note", "--format", "json")
    done = CliRunner().invoke(main, ["check", *options, "--ptx", "7.8", str(file)])
    note = json.loads(done.stdout)["findings"][0]
    assert (note["line"], note["column"], note["severity"], note["rule"]) == (1, 10, "note", "version")
    assert note["message"] == "drivers and assemblers of PTX ISA 7.8 refuse a module of PTX ISA 8.0, whatever is in it"
    assert json.loads(CliRunner().invoke(main, ["check", *options, "--ptx", "8.0", str(file)]).stdout)["findings"] == []


def test_a_target_that_is_asked_for_is_wrong_at_each_place_of_a_source(tmp_path: Path) -> None:
    """Each needs a guard of its own."""
    (tmp_path / "a.cu").write_text('asm("wgmma.fence.sync.aligned;");\nasm("wgmma.commit_group.sync.aligned;");\n', encoding="utf-8")
    assert len(run(tmp_path / "a.cu", "--target", "sm_90")[1]) == 2


def tree(root: Path) -> None:
    for name in ("a.ptx", "deep/er/b.cuh", "deep/c.mlir", "README.md", "build/d.ptx", ".hidden/e.ptx", "broken.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(CUDA if name.endswith("cuh") else BAD if "ptx" in name else '"wgmma.fence" (', encoding="utf-8")
    (root / ".gitignore").write_text("build/\n", encoding="utf-8")


def names(root: Path) -> set[str]:
    return {Path(file).relative_to(root).as_posix() for file in discover(str(root)).files}


def test_directories(tmp_path: Path) -> None:
    tree(tmp_path)
    assert names(tmp_path) == {"a.ptx", "build/d.ptx", "deep/er/b.cuh", "broken.py"}
    code, findings, said = run(tmp_path)
    assert (code, len(findings)) == (1, 3)
    assert said[0].startswith(f"skipped: {tmp_path / 'broken.py'}: cannot be read: line 2 is not Python")
    assert said[1:] == ["3 files, 3 instructions checked, 3 findings; 2 files skipped"]


def test_directories_of_git(tmp_path: Path) -> None:
    """Ignored files are left out, untracked ones are not, and a program in the repository's configuration does not run."""
    tree(tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "a.ptx"], check=True)
    subprocess.run(["git", "-C", tmp_path, "config", "core.fsmonitor", f"touch {tmp_path / 'ran'}; false"], check=True)
    assert names(tmp_path) == {"a.ptx", "deep/er/b.cuh", ".hidden/e.ptx", "broken.py"}
    assert names(tmp_path / "deep") == {"er/b.cuh"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("git", [False, True])
def test_a_link_that_leads_nowhere_is_counted(tmp_path: Path, git: bool) -> None:
    if git:
        subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "link.ptx").symlink_to("nowhere")
    said = [f"skipped: {tmp_path / 'link.ptx'}: cannot be read: No such file or directory"]
    assert run(tmp_path) == (0, [], [*said, "0 files, 0 instructions checked, 0 findings; 1 file skipped"])


def test_a_directory_without_anything_to_read(tmp_path: Path) -> None:
    assert run(tmp_path) == (0, [], ["0 files, 0 instructions checked, 0 findings"])


def test_checker_takes_a_language(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(CUDA, encoding="utf-8")
    checker = Checker()
    assert checker.check_file(tmp_path / "a.txt").instructions == 1
    assert checker.check_file(tmp_path / "a.txt", "ptx").instructions == 0


def test_several_processes_report_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same order, with the same counts, and files that cannot be read among them."""
    for number in range(6):
        (tmp_path / f"{number}.ptx").write_text(
            f".version 8.0\n.target sm_90a\n.entry k() {{ {'wgmma.fence.sync.bad; ' * number} wgmma.fence.sync; }}\n"
        )
    (tmp_path / "6.py").write_text("'wgmma.fence.sync.bad;' (")
    (tmp_path / "7.ptx").write_text("wgmma.fence.sync.bad;")
    names = [str(tmp_path), str(tmp_path / "missing.ptx"), str(tmp_path / "7.ptx")]
    alone = CliRunner().invoke(main, ["check", *names])
    monkeypatch.setattr(checked_files, "_LARGE", 0)
    monkeypatch.setattr(checked_files, "_processors", lambda: 3)
    together = CliRunner().invoke(main, ["check", *names])
    assert (together.exit_code, together.stdout, together.stderr) == (alone.exit_code, alone.stdout, alone.stderr)
    assert alone.exit_code == 2
    assert alone.stderr.count("cannot be read") == 2
