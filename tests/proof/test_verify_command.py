"""What ``python -m ptxmma_proof`` takes, and says before it asks anybody; the witnesses have their own tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxmma import paths
from ptxmma_proof import commands
from ptxmma_proof.command import command


def _refused(*arguments: str, code: int = 2) -> str:
    result = CliRunner().invoke(command, [*arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_one_witness() -> None:
    for arguments in ([], ["--assembler", "--peers"]):
        assert "one of --assembler, --silicon, --peers, --reference" in _refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--silicon", "--ptxas", __file__), "--silicon takes no --ptxas; it takes --family, --jobs, --target"),
        (("--peers", "--target", "sm_90a"), "--peers takes no --target; it takes --ptxas"),
        (("--reference", str(Path(__file__).parent), "--family", "mma"), "--reference takes no --family"),
        (("--reference", "nowhere"), "'nowhere' does not exist"),
    ],
)
def test_options_that_a_witness_does_not_take(arguments: tuple[str, ...], said: str) -> None:
    assert said in _refused(*arguments)


@pytest.mark.parametrize("option", [("--target", "sm_90a"), ("--family", "wgmma"), ("--ptxas", __file__)])
def test_a_part_does_not_replace_the_evidence_of_the_whole(option: tuple[str, str]) -> None:
    report = paths.SPEC / "evidence" / "assembler.json"
    before = report.read_bytes()
    assert f"{option[0]} asks for a part" in _refused("--assembler", *option, "--report", str(report))
    assert report.read_bytes() == before


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--family", "wgma"), "there is no family 'wgma'; closest: wgmma"),
        (("--target", "sm_91"), "there is no target 'sm_91'; closest: sm_90"),
        (("--target", "sm_90", "--target", "sm_90a"), "one target at a time, not about sm_90, sm_90a"),
    ],
)
def test_a_chip_is_asked_for_names_that_there_are(option: tuple[str, ...], said: str) -> None:
    assert said in _refused("--silicon", *option, code=1)


@pytest.mark.parametrize("said", ["", "No devices were found"])
def test_a_driver_without_a_chip(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '{said}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert f"there is no GPU here: nvidia-smi says {said or 'nothing'}" in _refused("--silicon", code=1)


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A chip that is not the one of the evidence, as its driver tells."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA B200, 10.0, 600.1'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return "NVIDIA B200"


def test_the_report_of_another_chip_is_not_replaced(gpu: str, tmp_path: Path) -> None:
    report = tmp_path / "silicon.json"
    report.write_bytes((paths.SPEC / "evidence" / "silicon.json").read_bytes())
    before = report.read_bytes()
    said = " ".join(_refused("--silicon", "--report", str(report)).split())
    assert f"is the report of another chip, NVIDIA H200, and this is {gpu}: write it elsewhere" in said
    assert report.read_bytes() == before


@pytest.mark.parametrize("text", ["", "{}"])
def test_what_is_no_report_may_be_replaced(gpu: str, tmp_path: Path, text: str) -> None:
    (tmp_path / "silicon.json").write_text(text)
    commands._check_chip(tmp_path / "silicon.json", gpu)
    commands._check_chip(tmp_path / "none.json", gpu)
    commands._check_chip(None, gpu)
