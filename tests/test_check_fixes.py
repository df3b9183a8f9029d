"""``ptxmma check --fix``: what is mended, and what is left alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxmma.cli import main

_MODULE = ".version 8.5\n.target sm_90a\n.visible .entry kernel()\n{\n    .reg .f32 %f<8>; .reg .b32 %r<8>; .reg .f64 %fd<8>;\n"
_SPARSE = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2, %r3}, {%f0, %f1, %f2, %f3}"


def check(file: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["check", *options, str(file)])


def mended(folder: Path, body: str, *options: str, name: str = "kernel.ptx", head: str = _MODULE) -> str:
    """The body of a kernel after ``--fix``."""
    file = folder / name
    file.write_text(f"{head}{body}\n}}\n")
    check(file, "--fix", *options)
    text = file.read_text()
    assert text.startswith(head)
    return text[len(head) : -len("\n}\n")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("wgmma.fence.sync;", "wgmma.fence.sync.aligned;"),
        ("wgmma .fence.sync.aligned;", "wgmma.fence.sync.aligned;"),
        ("wgmma.fence.sync.aligned.b8x16;", "wgmma.fence.sync.aligned;"),
        ("wgmma.fence.sync; /* 漢 */ wgmma.fence.sync; // old", "wgmma.fence.sync.aligned; /* 漢 */ wgmma.fence.sync.aligned; // old"),
        (f"{_SPARSE}, {{%r4}}, 0;", f"{_SPARSE}, %r4, 0;"),
        (f"{_SPARSE}, %r4, 0;", f"{_SPARSE}, %r4, 0;"),  # ordered metadata is for the author to know
        ("wgmma.fence.sync.unaligned;", "wgmma.fence.sync.unaligned;"),  # so is what was meant
        ("wgmma.fence\n.sync;", "wgmma.fence\n.sync;"),  # no token of one line
        ("wgmma.fence.sync; // ptxmma: ignore", "wgmma.fence.sync; // ptxmma: ignore"),
    ],
)
def test_what_keeps_its_meaning_is_mended(tmp_path: Path, before: str, after: str) -> None:
    assert mended(tmp_path, before) == after


_OPERANDS = "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mma.sync.aligned.m16n8k16.f32.f16.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("mma.sync.aligned.m16n8k16.row.f32.bf16.bf16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("mma.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("mma.sync.aligned.m8n8k4.f32.f16.f16.f32", ""),  # rows and columns are a choice there
        ("mma.sync.aligned.m16n8k16.col.f32.f16.f16.row.f32", ""),  # an order of its own
        ("mma.sync.aligned.m16n8k16.f32", ""),  # several have other types
    ],
)
def test_missing_modifiers_are_added_where_one_instruction_has_them(tmp_path: Path, before: str, after: str) -> None:
    assert mended(tmp_path, f"{before} {_OPERANDS}") == f"{after or before} {_OPERANDS}"


def test_what_the_author_must_know_needs_an_option(tmp_path: Path) -> None:
    assert mended(tmp_path, f"{_SPARSE}, %r4, 0;", "--unsafe-fixes") == f"{_SPARSE.replace('.sp.', '.sp::ordered_metadata.')}, %r4, 0;"


def test_nothing_is_mended_that_the_version_does_not_have(tmp_path: Path) -> None:
    body, head = f"{_SPARSE}, %r4, 0;", _MODULE.replace("8.5", "8.4")
    assert mended(tmp_path, body, "--unsafe-fixes", head=head) == body
    file = tmp_path / "kernel.ptx"
    assert check(file, "--fix", "--unsafe-fixes").stderr.endswith("0 findings; 1 note not shown\n")
    assert "1 fixed" in check(file, "--fix", "--unsafe-fixes", "--ptx", "8.5").stderr


def test_all_names_of_a_file_show_what_is_mended(tmp_path: Path) -> None:
    other = tmp_path / "other.ptx"
    other.touch()
    (tmp_path / "kernel.ptx").hardlink_to(other)
    assert mended(tmp_path, "wgmma.fence.sync;") == "wgmma.fence.sync.aligned;"
    assert other.read_text() == (tmp_path / "kernel.ptx").read_text()
    assert other.stat().st_nlink == 2


def test_only_what_is_selected_is_mended(tmp_path: Path) -> None:
    body = "wgmma.fence.sync; wgmma.fence.sync.aligned.b8x16;"
    assert mended(tmp_path, body, "--select", "undocumented") == "wgmma.fence.sync; wgmma.fence.sync.aligned;"
    assert mended(tmp_path, body, "--ignore", "undocumented") == "wgmma.fence.sync.aligned; wgmma.fence.sync.aligned.b8x16;"
    assert mended(tmp_path, body, "--severity", "warning") == "wgmma.fence.sync; wgmma.fence.sync.aligned;"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('asm("wgmma.fence.sync;");', 'asm("wgmma.fence.sync.aligned;");'),
        ('asm("wgmma.fence" ".sync;");', 'asm("wgmma.fence" ".sync;");'),  # the token goes over two literals
        ('asm("wgmma\\056fence.sync;");', 'asm("wgmma\\056fence.sync;");'),
    ],
)
def test_strings_are_mended_where_they_hold_the_token(tmp_path: Path, before: str, after: str) -> None:
    assert mended(tmp_path, before, name="kernel.cu", head="__device__ void fence() {\n") == after


def test_the_summary_counts_fixes(tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_text(f"{_MODULE}wgmma.fence.sync.aligned.b8x16;\n}}\n")
    file.chmod(0o640)
    assert check(file).stderr.endswith("1 finding; 1 can be fixed with --fix\n")
    done = check(file, "--fix")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith("0 findings; 1 fixed\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert check(file, "--fix").stderr.endswith("0 findings\n")


def test_what_is_not_utf_8_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    text = f"{_MODULE}// \N{LATIN SMALL LETTER E WITH ACUTE}\nwgmma.fence.sync;\n}}\n"
    file.write_bytes(text.encode("utf-16"))
    check(file, "--fix")
    assert file.read_bytes() == text.encode("utf-16")
    file.write_bytes(text.encode("latin-1"))
    check(file, "--fix")
    assert file.read_bytes() == text.replace(".sync;", ".sync.aligned;").encode("latin-1")


def test_the_standard_input_cannot_be_mended() -> None:
    assert CliRunner().invoke(main, ["check", "--fix"], input="").exit_code == 2


def test_unsafe_fixes_need_fix(tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_text(f"{_MODULE}{_SPARSE}, %r4, 0;\n}}\n")
    done = check(file, "--unsafe-fixes")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "Error: --unsafe-fixes says what --fix mends: add --fix")
    assert check(file, "--severity", "note").stderr.endswith("1 finding\n")  # --fix alone does not mend it
