"""The command ``ptxmma show``; ``generate`` and ``validate`` have their own tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxmma.cli import main
from ptxmma.instructions import Catalog

_SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


def _show(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["show", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def _block(text: str, title: str) -> list[str]:
    return text.split(f"\n{title}\n")[1].split("\n\n")[0].splitlines()


def test_everything_about_an_instruction() -> None:
    text = _show("mma.sp.sync.aligned.row.col.m16n8k32.f32.f16.f16.f32")
    assert text.startswith(f"{_SPARSE}\ndocumented\n")
    assert _block(text, "syntax") == [f"  {_SPARSE} d, a, b, c, e, f"]
    operands = {line.split()[0]: " ".join(line.split()) for line in _block(text, "operands")}
    assert list(operands) == ["d", "a", "b", "c", "e", "f"]
    assert operands["a"] == 'a fragment f16 4 x b32 "r" 8 elements'
    assert operands["f"] == 'f selector "n" immediate 0 or 1'
    assert _block(text, "requirements") == ["  PTX ISA 7.1, sm_80 (9.7.14.6.3)"]
    accepted = _block(text, "accepted by")
    assert accepted[0].startswith("  PTX ISA 7.1: sm_80 ")
    assert any(line.startswith("  sm_88: CUDA 13.0 takes it") for line in accepted)


def test_two_forms_and_an_undocumented_instruction(catalog: Catalog) -> None:
    assert len(_block(_show("wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.s8"), "syntax")) == 2
    undocumented = next(found for found in catalog.all() if not found.documented)
    assert "\nnot documented: " in _show(undocumented.canonical)


def test_every_instruction_can_be_shown(catalog: Catalog) -> None:
    for found in {found.variant.instruction.name: found for found in catalog.all()}.values():
        assert found.canonical in _show(found.canonical)


def test_an_unknown_instruction() -> None:
    result = CliRunner().invoke(main, ["show", "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32"])
    assert result.exit_code == 2
    assert "it lacks '.sync'; closest:\n  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n" in result.output


def test_another_database(root: Path, tmp_path: Path) -> None:
    packaged = root / "generated" / "database" / "ptxmma.json"
    assert _show(_SPARSE, "--database", str(packaged)) == _show(_SPARSE)
    (tmp_path / "other.json").write_text("{}")
    result = CliRunner().invoke(main, ["show", _SPARSE, "--database", str(tmp_path / "other.json")])
    assert result.exit_code == 2
    assert "no database" in result.output


@pytest.mark.parametrize("module", ["yaml", "jinja2", "jsonschema", "difflib", "sqlite3", "ptxmma.generator"])
def test_showing_imports_no_generator(module: str) -> None:
    script = f"import sys; sys.modules[{module!r}] = None; from ptxmma.cli import main; main(['show', {_SPARSE!r}])"
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.startswith(_SPARSE)
