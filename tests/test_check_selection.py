"""Which findings ``ptxmma check`` reports: options, configuration files, comments; and the rules' own pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxmma.catalog.instructions import catalog
from ptxmma.check import check
from ptxmma.check.rule_examples import module
from ptxmma.check.rules import FINDERS, RULES
from ptxmma.cli import main

_OPERANDS = "{%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2, %r3}, {%f0, %f1, %f2, %f3}, %r4, 4;"
#: A note, an error of the rule immediate, and one of unknown-instruction.
TEXT = module(f"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {_OPERANDS}\nmma.sync.bad;")


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if rule.bad])
def test_examples(code: str) -> None:
    """The example breaks its rule only, and once, and breaks none once mended."""
    file = f"example{RULES[code].language}"
    twice = code == "version"  # two instructions come with later versions
    assert [finding.rule for finding in check(module(RULES[code].bad), file=file)] == [code] * (1 + twice)
    assert not check(module(RULES[code].good), file=file).findings


def test_a_rule_lives_in_one_module() -> None:
    """The text of a rule is in a module that reports it, and no other one has the rule, too; the spec names some that are broken."""
    protocols = catalog(None).database.spec.protocols
    in_spec = {each.rule for protocol in protocols for life in protocol.lifecycles for each in life.transitions}
    in_spec |= {each.rule for protocol in protocols for pairing in protocol.pairings for each in pairing.needs}
    in_spec |= {each.rule for protocol in protocols for pairing in protocol.pairings for each in pairing.counts}
    in_spec |= {each.rule for protocol in protocols for pairing in protocol.pairings for each in pairing.phases}
    in_spec |= {pool.rule for protocol in protocols for pool in protocol.pools}
    in_spec |= {race.rule for protocol in protocols for race in protocol.races}
    codes = [code for finder in FINDERS for code in finder.RULES]
    assert sorted(codes) == [*RULES]
    for finder in FINDERS:
        text = Path(finder.__file__ or "").read_text(encoding="utf-8")
        missing = [code for code in finder.RULES if text.count(f'"{code}"') < 2 and code not in in_spec]
        assert missing == [code for code in ("debug-build", "emulated") if code in finder.RULES]


def test_texts() -> None:
    for rule in RULES.values():
        for text in (rule.what, rule.why, rule.fix):
            assert text.endswith(".")
            assert text[0].isupper() or text.startswith(("mma", "tcgen05"))
        assert bool(rule.bad) == bool(rule.good)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    file = tmp_path / "deep" / "a.ptx"
    file.write_text(TEXT, encoding="utf-8")
    return file


def ask(*arguments: str) -> tuple[int, list[str], str]:
    """The exit code, the rules that are reported, and the last line of standard error."""
    done = CliRunner().invoke(main, ["check", *arguments])
    rules = [line.rpartition("[")[2].rstrip("]") for line in done.stdout.splitlines() if line.endswith("]")]
    return done.exit_code, rules, done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "code", "rules"),
    [
        ([], 1, ["immediate", "unknown-instruction"]),
        (["--severity", "note"], 1, ["unordered-metadata", "immediate", "unknown-instruction"]),
        (["--severity", "error"], 1, ["immediate", "unknown-instruction"]),
        (["--select", "immediate"], 1, ["immediate"]),
        (["--select", "unordered-metadata"], 0, ["unordered-metadata"]),
        (["--select", "unordered-metadata", "--severity", "warning"], 0, []),
        (["--select", "immediate,unordered-metadata", "--ignore", "immediate"], 0, ["unordered-metadata"]),
        (["--ignore", "immediate", "--ignore", "unknown-instruction"], 0, []),
        (["--exit-zero"], 0, ["immediate", "unknown-instruction"]),
    ],
)
def test_options(file: Path, options: list[str], code: int, rules: list[str]) -> None:
    assert ask(*options, str(file))[:2] == (code, rules)


def test_hidden_notes_are_counted(file: Path) -> None:
    assert ask(str(file))[2] == "1 file, 2 instructions checked, 2 findings; 1 note not shown"


def test_statistics(file: Path) -> None:
    done = CliRunner().invoke(main, ["check", "--statistics", str(file), str(file)])
    rows = [("2", "error", "immediate"), ("2", "error", "unknown-instruction"), ("2", "note", "unordered-metadata")]
    assert [tuple(line.split()) for line in done.stdout.splitlines()] == rows
    assert done.exit_code == 1
    answer = CliRunner().invoke(main, ["check", "--statistics", "--json", str(file)])
    assert json.loads(answer.stdout)[0] == {"rule": "immediate", "severity": "error", "findings": 1}
    assert [row["rule"] for row in json.loads(answer.stdout)] == [rule for _, _, rule in rows]
    assert answer.exit_code == 1
    refused = CliRunner().invoke(main, ["check", "--statistics", "--format", "sarif", str(file)])
    assert (refused.exit_code, "leave out --format sarif" in refused.stderr) == (2, True)


@pytest.mark.parametrize("given", ["", ",", " "])
def test_a_selection_without_a_rule_is_refused(given: str) -> None:
    refused = CliRunner().invoke(main, ["check", f"--select={given}"], input="")
    assert (refused.exit_code, "--select names no rule" in refused.stderr) == (2, True)


def test_an_unknown_rule(file: Path) -> None:
    code, _, said = ask("--select", "imediate", str(file))
    assert (code, said) == (2, "Error: unknown rule 'imediate'; closest: immediate, predicate, metadata")


@pytest.mark.parametrize(("name", "table"), [("ptxmma.toml", "check"), ("pyproject.toml", "tool.ptxmma.check")])
def test_files_of_configuration(file: Path, name: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(name).write_text(f'[{table}]\nignore = ["immediate"]\nseverity = "note"\n', encoding="utf-8")
    assert ask(str(file))[1] == ["unordered-metadata", "unknown-instruction"]
    assert ask("--severity", "error", str(file))[1] == ["unknown-instruction"]
    assert ask("--ignore", "unknown-instruction", str(file))[1] == ["unordered-metadata"]
    monkeypatch.chdir(file.parent)
    assert ask("a.ptx")[1] == ["unordered-metadata", "unknown-instruction"]
    Path("pyproject.toml").write_text("[project]\nname = 'other'\n", encoding="utf-8")
    assert ask("a.ptx")[1] == ["unordered-metadata", "unknown-instruction"]
    Path("ptxmma.toml").write_text("", encoding="utf-8")
    assert ask("a.ptx")[1] == ["immediate", "unknown-instruction"]


@pytest.mark.parametrize(("pattern", "ignored"), [("deep/*", True), ("a.*", True), ("*.ptx", True), ("eep/*", False), ("b.ptx", False)])
def test_per_file_ignores(file: Path, pattern: str, ignored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ptxmma.toml").write_text(f'[check.per-file-ignores]\n"{pattern}" = ["immediate"]\n', encoding="utf-8")
    assert ("immediate" not in ask(str(file))[1]) == ignored
    monkeypatch.chdir(file.parent)
    assert ("immediate" not in ask("a.ptx")[1]) == ignored


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[check]\nselct = []\n", "selct"),
        ('[check]\nignore = ["imediate"]\n', "closest: immediate"),
        ('[check]\nseverity = "low"\n', "severity"),
        ("[check\n", ""),
    ],
)
def test_a_bad_configuration_is_an_error(file: Path, text: str, said: str) -> None:
    Path("ptxmma.toml").write_text(text, encoding="utf-8")
    code, _, message = ask(str(file))
    assert code == 2
    assert message.startswith(f"Error: {Path.cwd() / 'ptxmma.toml'}: ")
    assert said in message


@pytest.mark.parametrize(
    ("comment", "ignored"),
    [
        ("// ptxmma: ignore", True),
        ("// ptxmma: ignore[unknown-instruction]", True),
        ("/* ptxmma:ignore[target, unknown-instruction] */", True),
        ("// ptxmma: ignore[target]", False),
        ("// ptxmma: ignored", False),
        (f"{' ' * 1000}// ptxmma: ignore", True),
        (f"{' ' * 95}// ptxmma: ignore[target, unknown-instruction, version]", True),
        (f"{' ' * 95}// ptxmma: ignore[target]", False),
        ("// ptxmma: ignore[target", False),
        ("// ptxmma: ignore[unknown-instruction", True),
        ("// ignore", False),
    ],
)
def test_comments(file: Path, comment: str, ignored: bool) -> None:
    file.write_text(TEXT.replace("mma.sync.bad;", f"mma.sync.bad; {comment}"), encoding="utf-8")
    assert ("unknown-instruction" not in ask(str(file))[1]) == ignored
    assert "immediate" in ask(str(file))[1]


@pytest.mark.parametrize("blanks", [1, *range(85, 105), 1000])
def test_where_a_comment_lies_does_not_matter(file: Path, blanks: int) -> None:
    source = file.with_suffix(".cu")
    for path, text in ((file, TEXT), (source, 'void f() {\nasm("mma.sync.bad;");\n}')):
        for rule, ignored in (("unknown-instruction", True), ("missing-wait", False)):
            lines = (f"{line}{' ' * blanks}// ptxmma: ignore[{rule}]" if "bad" in line else line for line in text.splitlines())
            path.write_text("\n".join(lines), encoding="utf-8")
            assert ("unknown-instruction" not in ask(str(path))[1]) == ignored


def test_a_comment_with_an_unknown_rule(file: Path) -> None:
    file.write_text(TEXT.replace("mma.sync.bad;", "mma.sync.bad; // ptxmma: ignore[unknown-instrution]"), encoding="utf-8")
    said = CliRunner().invoke(main, ["check", "--select", "unknown-instruction", str(file)]).stdout.splitlines()[0]
    hint = "the comment on this line ignores the unknown rule 'unknown-instrution'; closest: unknown-instruction"
    assert f"; {hint}" in said
    assert said.endswith("[unknown-instruction]")


def test_comments_beside_strings(file: Path) -> None:
    source = file.with_suffix(".cu")
    source.write_text('asm("wgmma.fence.bad;"); // ptxmma: ignore[unknown-instruction]\n', encoding="utf-8")
    assert ask(str(source)) == (0, [], "1 file, 1 instruction checked, 0 findings")
    source = file.with_suffix(".py")
    source.write_text('x = "wgmma.fence.sync.bad;"  # ptxmma: ignore\n', encoding="utf-8")
    assert ask(str(source)) == (0, [], "1 file, 1 instruction checked, 0 findings")
