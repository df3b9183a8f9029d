"""``ptxmma show``, and what all verbs share: tables, terminals, completion; other verbs have their own tests.

Run with `pytest -n 0 tests/test_cli.py`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import click
import numpy as np
import pytest
from click.shell_completion import ShellComplete

from commands import invoke
from layout_functions import questions
from ptxmma import cli, paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.lookup import instruction
from ptxmma.catalog.names import cplusplus, mentions
from ptxmma.catalog.summaries import description, listing
from ptxmma.cli import VERBS, main, render
from ptxmma.cli.command import Command
from ptxmma.cli.render import Cell, Table
from ptxmma.matrices.operations import operation

_SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_COMMAND = shutil.which("ptxmma", path=str(Path(sys.executable).parent)) or "ptxmma"


def _show(*arguments: str) -> str:
    result = invoke("show", "--all", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def _block(text: str, title: str) -> list[str]:
    return text.split(f"\n{title}\n")[1].split("\n\n")[0].splitlines()


# --- show -------------------------------------------------------------------------------------------------------------------


def test_everything_about_an_instruction() -> None:
    text = _show("mma.sp.sync.aligned.row.col.m16n8k32.f32.f16.f16.f32")
    assert text.startswith(f"{_SPARSE}\nMatrix multiply-accumulate of a warp with a sparse A\ndocumented (9.7.14.6.3 [9.4: 9.7.16.6.3])\n")
    assert _block(text, "syntax") == [f"  {_SPARSE} d, a, b, c, e, f"]
    operands = {line.split()[0]: " ".join(line.split()) for line in _block(text, "operands")}
    assert list(operands) == ["d", "a", "b", "c", "e", "f"]
    assert operands["a"] == 'a fragment f16 4 x b32 "r" 8 elements of 16x16'
    assert operands["f"] == 'f selector "n" immediate 0 or 1'
    assert _block(text, "formulas")[5:10] == [
        "  a: mma_sp_m16n8k32_a_b16",
        "    row = ((i & 2) << 2) | (lane >> 2)",
        "    col = ((i & 4) << 1) | ((lane & 3) << 1) | (i & 1)",
        "    i = ((col >> 1) & 4) | ((row >> 2) & 2) | (col & 1)",
        "    lane = ((row & 7) << 2) | ((col >> 1) & 3)",
    ]
    assert _block(text, "metadata")[1] == "  selectors 0..1: two threads of each quad: T0 and T1 for selector 0, T2 and T3 for selector 1"
    assert _block(text, "requirements") == ["  PTX ISA 7.1, sm_80 (9.7.14.6.3 [9.4: 9.7.16.6.3])"]
    accepted = _block(text, "accepted by")
    assert accepted[0].startswith("  PTX ISA 7.1: sm_80 ")
    assert any(line.startswith("  sm_88: CUDA 13.0 takes it") for line in accepted)
    assert "  Products and sums have at least single precision. (9.7.14.6.3 [9.4: 9.7.16.6.3])" in _block(text, "semantics")
    assert "  A thread of the warp has exited. (9.7.14.6.3 [9.4: 9.7.16.6.3])" in _block(text, "undefined where")
    assert any(line.startswith("  .sync: a thread waits") for line in _block(text, "the same for all threads"))
    assert any("prefer that one" in line for line in _block(text, "notes"))
    assert any(
        "sm_80, NVIDIA A100 (SXM4): at most 4096 operations in each SM and clock, 624 * 10^12" in line
        for line in _block(text, "throughput")
    )
    assert any(line.startswith("  run on NVIDIA H200, as one instruction (1 HMMA.SP.16832.F32)") for line in _block(text, "evidence"))
    errata = _block(text, "errata of mma.sp")
    assert any(line.startswith("  sp-selector-range (9.7.14.6.3 [9.4: 9.7.16.6.3], refused). It says: ") for line in errata)
    assert not any("sp-kind-dot" in line for line in errata)  # it concerns other forms
    assert _block(text, "computes")[1] == "  8192 operations"
    assert _block(text, "registers of a thread") == ["  17 of 32 bits (d 4, a 4, b 4, c 4, e 1); 13 where d is the addend"]
    notations = _block(text, "CuTe and Triton")
    assert f"  a: {instruction(_SPARSE).operand('a').to_cute()}" in notations
    assert f"  d, c: {instruction(_SPARSE).operand('d').to_cute()}" in notations
    assert "  b: {register: [[1, 0], [8, 0], [16, 0]], lane: [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp: []}" in notations


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        *(("m16n8k16 f16", 24), ("mma.sp m16n8k32 f16", 26), ("ldmatrix x4", 22), ("wgmma n128 bf16", 28), ("tcgen05.alloc", 21)),
        *(("wgmma sparse n128 bf16", 30), ("umma bf16 m128n256", 28), ("umma nvfp4 m128n128", 30)),
    ],
)
def test_an_instruction_in_short(words: str, lines: int) -> None:
    """At most 30 lines; the rest is asked for."""
    short = invoke("show", words)
    assert short.exit_code == 0
    assert len(short.stdout.splitlines()) <= lines
    _, _, _, accepted, *blocks = [line for line in short.stdout.splitlines() if line and line[0] != " "]
    assert accepted.startswith("accepted by sm_")
    assert blocks == ["syntax", "computes", *["product"] * words.startswith("umma"), "operands", "C++", "more"]
    (every,) = re.findall("^  ptxmma (show .* --all)$", short.stdout, re.M)
    assert "\nevidence\n" in invoke(*every.split()).stdout
    proof = invoke("show", words, "--evidence").stdout
    assert [line for line in proof.splitlines() if line and line[0] != " "][3] == "evidence"


def test_a_bare_name_in_short(catalog: Catalog) -> None:
    """At most 30 lines for each family and opcode."""
    for name in {part for entry in catalog.database.spec.instructions for part in (entry.family, entry.name)}:
        assert len(invoke("show", name).stdout.splitlines()) <= 30, name
    assert len(invoke("show", "tcgen05.mma.sp", "nvfp4").stdout.splitlines()) <= 30


def test_addresses_and_strides_say_what_memory_they_want() -> None:
    def line(spelling: str, operand: str) -> str:
        section = _show(spelling).partition("\noperands\n")[2].partition("\n\n")[0]
        return next(line for line in section.splitlines() if line.split()[0] == operand)

    assert "multiple of 16 bytes, rows of 16 bytes" in line("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "p")
    load = "wmma.load.a.sync.aligned.row.m16n16k16.f16"
    assert line(load, "p").endswith("multiple of 32 bytes")
    assert "in elements, default 16" in line(load, "stride")
    assert "default" not in line("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "imm-scale-a")  # PTX always has it
    answer = json.loads(_show(load, "--json"))
    assert [(each["alignment"], each["row_bytes"], each["unit"]) for each in answer["operands"]] == [
        (0, 0, ""), (32, 0, ""), (0, 0, "elements"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spelling", "alias"),
    [
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "Load = ptxmma::ldmatrix<"),
        ("stmatrix.sync.aligned.m8n8.x4.shared.b16", "Store = ptxmma::stmatrix<"),
        ("movmatrix.sync.aligned.m8n8.trans.b16", "Transpose = ptxmma::movmatrix<"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "Multiply = ptxmma::mma<"),
    ],
)
def test_the_front_is_named_for_the_operation(spelling: str, alias: str) -> None:
    assert f"  using {alias}" in _show(spelling)


def test_two_forms_and_an_undocumented_instruction(catalog: Catalog) -> None:
    assert len(_block(_show("wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.s8"), "syntax")) == 2
    undocumented = next(each for each in catalog.all() if not each.documented)
    assert "\nnot documented: " in _show(undocumented.canonical)


def test_every_instruction_can_be_shown(catalog: Catalog) -> None:
    for each in {each.variant.instruction.name: each for each in catalog.all()}.values():
        assert each.canonical in _show(each.canonical)
    assert "immediate 0..4294967295" in _show("wgmma.wait_group.sync.aligned")


def test_json_has_what_the_library_says() -> None:
    shown = instruction(_SPARSE)
    answer = json.loads(_show(_SPARSE, "--json"))
    assert answer == description.describe(shown) | {"computes": operation(shown).statement(shown)}
    assert answer["accepted_by"] == shown.accepted_by()
    assert [operand["name"] for operand in answer["operands"]] == ["d", "a", "b", "c", "e", "f"]
    assert [operand["registers"] for operand in answer["operands"]] == [4, 4, 4, 4, 1, 0]
    assert [entry["id"] for entry in answer["errata"]] == [erratum.id for erratum in shown.errata()]
    assert answer["undefined"][2] == {"text": "A thread of the warp has exited.", "source": "9.7.14.6.3"}
    assert answer["evidence"]["executed"][0]["how"] == "as one instruction"
    assert answer["metadata"]["selectors"] == 2


def test_formulas_are_the_layouts(catalog: Catalog) -> None:
    """Every expression that any instruction shows, over its whole domain, there and back."""
    answers = {answer["name"]: answer for each in catalog.all() for answer in description._layouts(each)}
    assert answers.keys() == catalog.database.layout.keys()
    known = {question.name: question for question in questions(catalog)}
    for name, answer in answers.items():
        for expressions, question in ((answer["forward"], known[name]), (answer["back"], known[f"{name}_inverse"])):
            assert expressions.keys() == question.results.keys()
            for result, expression in expressions.items():
                made = np.broadcast_to(eval(expression, {}, question.arguments), question.results[result].shape)
                assert np.array_equal(made, question.results[result]), (name, result)


def test_an_unknown_instruction() -> None:
    result = invoke("show", "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert result.exit_code == 2
    assert "it lacks '.sync'; closest:\n  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n" in result.output


_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"


def test_every_function_and_type_of_the_headers_names_its_instruction(catalog: Catalog) -> None:
    for each in list(catalog.all())[::37]:
        shown = cplusplus.shown(each)
        assert mentions.named(catalog, shown.functions[0]) == [each]
        assert mentions.named(catalog, shown.statements[-1]) == [each]
        assert not shown.front or mentions.named(catalog, shown.front) == [each]


def test_a_name_of_several_instructions_and_one_of_none() -> None:
    several = invoke("show", "mma<shape<16, 8, 32>, f32>")
    assert several.exit_code == 2
    assert "5 instructions are meant; say which: they differ in atype (e4m3, e5m2, e3m2, e2m3, e2m1)\n  mma.sync" in several.output
    # PTX and CuTe have these.
    for text in ("discard.global.L2 [addr], 128;", "applypriority", "SM61_DP4A"):
        none = invoke("show", text)
        assert none.exit_code == 2
        assert re.search(r"is not covered; covered are (\w+, )*ldmatrix, (\w+, )*mma, (\w+, )*stmatrix, ", none.output)
        assert "no matrix instruction" not in none.output
    assert invoke("layout", "SM80_16x8x16_F32F16F16F32_TN", "--operand", "A", "--lane", "5").exit_code == 0


@pytest.mark.parametrize("family", ["mma", "mma.sp", "wgmma", "wgmma.sp", "wmma", "ldmatrix", "fence.proxy"])
def test_a_family_in_short(family: str, catalog: Catalog) -> None:
    members = [instruction for instruction in catalog.all() if instruction.family == family]
    answer = json.loads(_show(family, "--json"))
    assert answer["instructions"] == len(members)
    assert {" ".join(group["types"]) for group in answer["types"]} == {" ".join(line.types) for line in listing.lines(members)}
    assert set(answer["headers"]) == {cplusplus.shown(instruction).header for instruction in members}
    text = _show(family.upper())
    assert text.startswith(f"{family}\n{answer['titles'][0]}\n")
    assert f"{len(members)} instructions" in text
    assert all(shape in text for group in answer["types"] for shape in group["shapes"])
    assert text.endswith(f"ptxmma list --family {family}\n")
    assert len(text) < 15_000


def test_an_empty_instruction() -> None:
    result = invoke("show", "")
    assert result.exit_code == 2
    assert "Error: INSTRUCTION is empty; `ptxmma list` has all instructions" in result.output


def test_another_database(root: Path, toy_database: Path, tmp_path: Path) -> None:
    packaged = root / "generated" / "database" / "ptxmma.json"
    assert _show(_SPARSE, "--database", str(packaged)) == _show(_SPARSE)
    toy = _show("toy.sync.aligned.m16n8k16.f32.f16.f16.f32.happy", "--database", str(toy_database))
    assert _block(toy, "syntax") == ["  toy.sync.aligned.m16n8k16.f32.f16.f16.f32.happy d, a, b, c, knob"]
    assert "  row = " in "\n".join(_block(toy, "formulas"))
    (tmp_path / "other.json").write_text("{}")
    result = invoke("show", _SPARSE, "--database", tmp_path / "other.json")
    assert result.exit_code == 2
    assert "not a database" in result.output


def test_every_verb_has_an_example() -> None:
    for verb in VERBS:
        assert re.search(rf"Examples?:\n +ptxmma {verb} ", invoke(verb, "--help").output), verb


# --- tables -----------------------------------------------------------------------------------------------------------------

_TABLE = Table(("name", "n", "note"), [("a|b", 1, None), (Cell("c", "red"), 12, "two words")], title="a title")


def _drawn(form: str, capsys: pytest.CaptureFixture[str]) -> str:
    render.draw(_TABLE, form)
    return capsys.readouterr().out


def test_formats_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert _drawn("grid", capsys) == "a title\nname   n  note\na|b    1\nc     12  two words\n"
    assert list(csv.reader(io.StringIO(_drawn("csv", capsys)))) == [["name", "n", "note"], ["a|b", "1", ""], ["c", "12", "two words"]]
    assert _drawn("markdown", capsys).splitlines() == [
        "| name | n   | note      |",
        "|------|-----|-----------|",
        r"| a\|b | 1   |           |",
        "| c    | 12  | two words |",
    ]
    assert json.loads(_drawn("json", capsys)) == [{"name": "a|b", "n": 1, "note": None}, {"name": "c", "n": 12, "note": "two words"}]


# --- terminals --------------------------------------------------------------------------------------------------------------


def _terminal(arguments: list[str], columns: int, **environment: str) -> str:
    """The output of a command on a terminal of some width."""
    process, ours = pty.fork()
    if process == 0:
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
        os.execve(_COMMAND, [_COMMAND, *arguments], kept | {"TERM": "xterm-256color", "COLUMNS": str(columns)} | environment)
    out = b""
    with contextlib.suppress(OSError):  # Linux says so when the other side is closed
        while part := os.read(ours, 1 << 16):
            out += part
    os.close(ours)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    return out.decode().replace("\r\n", "\n")


_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_LIST = ["list", "--target", "sm_89", "--type", "e4m3", "--sparse"]


def test_a_wide_terminal_gets_a_line_for_each_row() -> None:
    text = _terminal(_LIST, 200)
    assert text.splitlines()[1:] == invoke(*_LIST).output.splitlines()[1:]


def test_a_narrow_terminal_gets_all_of_it_folded() -> None:
    """Lines break between words and fit, and every word occurs as often as in a wide table."""
    question = ["descriptor", "decode", "0x4000004000010040", "--type", "bf16", "--major", "k"]
    wide = invoke(*question).output
    for columns in (70, 80, 100):
        text = _ESCAPE.sub("", _terminal(question, columns))
        assert all(len(line) <= columns for line in text.splitlines())
        assert Counter(text.replace("\u2500", "").split()) == Counter(wide.split())


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_a_terminal_too_narrow_for_a_table_gets_paragraphs(columns: int) -> None:
    lines = _ESCAPE.sub("", _terminal(_LIST, columns)).splitlines()
    rows = json.loads(invoke(*_LIST, "--json").output)
    assert [line for line in lines if not line.startswith(" ")] == [row["instruction"] for row in rows], "spellings stay whole"
    assert all(len(line) <= columns for line in lines if line.startswith(" "))
    joined = " ".join(line.strip() for line in lines if line.startswith(" "))
    assert joined == " ".join(f"ptx: {row['ptx']}; targets: {' '.join(row['targets'])}" for row in rows)


def test_slow_commands_say_what_they_do_on_a_terminal_only(tmp_path: Path) -> None:
    spec, out = str(Path(__file__).parent / "toy"), str(tmp_path / "out")
    generate, validate = ["generate", "--spec", spec, "--out", out, "--only", "cmake"], ["validate", "--spec", spec]
    assert _terminal(generate, 200).splitlines() == [
        f"reading {spec} ...",
        "making the outputs ...",
        f"writing 5 files to {out} ...",
        f"5 files changed in {out}",
    ]
    assert _terminal([*generate, "--check"], 200).splitlines() == [f"reading {spec} ...", "making the outputs ..."]
    assert _terminal(validate, 200).splitlines()[0] == f"reading {spec} ..."
    for arguments in (generate, validate):
        assert "..." not in invoke(*arguments).stderr


@pytest.mark.parametrize("verb", VERBS)
def test_a_console_need_not_have_every_character(verb: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp437", "PYTHONUTF8": "0"}
    done = subprocess.run([_COMMAND, verb, "--help"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_messages_of_click_have_an_example() -> None:
    result = invoke("show")
    assert result.stderr.endswith(
        "Missing argument 'INSTRUCTION'.\nExample: ptxmma show mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n"
    )
    assert "Example: ptxmma list" in invoke("list", "--typ", "f16").stderr


def test_show_says_whether_a_target_accepts_it() -> None:
    spelling = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert "on sm_90a\n  accepted from PTX ISA 8.0 on\n" in invoke("show", spelling, "--target", "H100").stdout
    refused = invoke("show", spelling, "--target", "sm_75").stdout
    assert "on sm_75\n  sm_75 does not support it; supported: sm_80 from PTX ISA 7.0" in refused
    said = json.loads(invoke("show", spelling, "--target", "H100", "--json").stdout)
    assert said["on_target"] == {"target": "sm_90a", "ptx": "8.0", "text": "accepted from PTX ISA 8.0 on"}
    counted = json.loads(invoke("show", "wgmma", "--target", "sm_120", "--json").stdout)
    assert counted["on_target"] == {"target": "sm_120", "accepted": 0}
    family = invoke("show", "wgmma", "--target", "sm_120").stdout
    assert re.search(r"on sm_120\n  0 of \d{3} instructions accepted\n", family)


@pytest.mark.parametrize("family", ["mma", "mma.sp", "wgmma", "tcgen05.mma", "cp.async.bulk.tensor"])
def test_a_family_is_shown_in_short(family: str) -> None:
    shown, whole, errata = (invoke("show", family, *more).stdout for more in ([], ["--all"], ["--evidence"]))
    assert len(shown.splitlines()) <= 36
    assert f"ptxmma show {family} --all" in shown
    assert "errata" not in shown
    assert len(whole.splitlines()) >= len(shown.splitlines()) - 1
    assert errata.partition("\nerrata\n")[2].rstrip() in whole


def test_colour_and_no_colour() -> None:
    plain = _terminal(["show", _SPARSE, "--all"], 400, NO_COLOR="1")
    coloured = _terminal(["show", _SPARSE, "--all"], 400)
    assert not _ESCAPE.search(plain)
    assert _ESCAPE.search(coloured)
    assert _ESCAPE.sub("", coloured) == plain
    narrow = _terminal(["show", _SPARSE, "--all"], 60, NO_COLOR="1")
    prose = narrow.split("\nundefined where\n")[1].split("\n\n")[0]
    assert all(len(line) <= 60 for line in prose.splitlines())
    assert " ".join(prose.split()) == " ".join(plain.split("\nundefined where\n")[1].split("\n\n")[0].split())


@pytest.mark.parametrize("arguments", [["show", _SPARSE], ["list"]])
def test_a_pipe_gets_neither_colour_nor_folding(arguments: list[str]) -> None:
    environment = os.environ | {"COLUMNS": "40", "FORCE_COLOR": "", "TERM": "xterm-256color"}
    text = subprocess.run([_COMMAND, *arguments], check=True, capture_output=True, text=True, env=environment).stdout
    assert "\x1b" not in text
    assert text == invoke(*arguments).output
    assert max(map(len, text.splitlines())) > 100


def test_a_closed_pipe_is_not_an_error() -> None:
    done = subprocess.run(f"{_COMMAND} list --all | head -1", shell=True, check=True, capture_output=True, text=True)
    assert done.stderr == ""


_QUESTIONS = [
    ["list"],
    ["show", _SPARSE],
    ["layout", _SPARSE, "--operand", "a"],
    ["trace", _SPARSE, "--row", "0", "--col", "0"],
    ["descriptor", "decode", "0x4000004002000040"],
    ["smem", "--type", "bf16", "--major", "k", "--swizzle", "128", "--rows", "8", "--cols", "64"],
    ["tma", "--shape", "64x64", "--box", "64x8", "--type", "bf16"],
    ["ring", "--stages", "4"],
    ["export", "--format", "csv", "--table", "banks"],
    ["diff", str(paths.DATABASE), str(paths.DATABASE)],
]


@pytest.mark.parametrize("question", _QUESTIONS, ids=lambda question: question[0])
def test_an_output_that_is_closed_or_full(question: list[str]) -> None:
    closed, full = (
        subprocess.run(f"{shlex.join([_COMMAND, *question])} {where}", shell=True, capture_output=True, text=True)
        for where in (">&-", ">/dev/full")
    )
    assert (closed.returncode, closed.stderr) == (0, "")
    assert (full.returncode, full.stderr) == (2, "Error: the answer cannot be written: No space left on device\n")


# --- a plain installation ---------------------------------------------------------------------------------------------------


_MORE_QUESTIONS = [
    ["list", "--target", "sm_90a"],
    ["layout", _MMA, "--operand", "a", "--by-lane", "--format", "svg"],
    ["layout", _MMA, "--lane", "5"],
    ["trace", "ldmatrix.sync.aligned.m8n8.x4.b16", "--matrix", "1", "--row", "1", "--col", "2"],
    ["descriptor", "encode", "--swizzle", "128", "--type", "bf16", "--major", "k", "--rows", "64", "--cols", "64"],
]
_NEEDLESS = {"yaml", "jinja2", "jsonschema", "numpy", "ml_dtypes", "rich", "difflib", "sqlite3", "ptxmma.generator"}
_NEEDED = {"export": {"sqlite3"}, "diff": {"ptxmma.generator"}}


@pytest.mark.parametrize("question", [*_QUESTIONS, *_MORE_QUESTIONS], ids=lambda question: question[0])
def test_a_question_imports_only_what_it_needs(question: list[str]) -> None:
    hidden = _NEEDLESS - _NEEDED.get(question[0], set())
    script = f"import sys; sys.modules.update(dict.fromkeys({hidden})); from ptxmma.cli import main; main({question!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("question", [["diff", str(paths.SPEC), str(paths.SPEC)], ["generate"], ["validate"]])
def test_what_needs_an_extra_says_so(question: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "yaml" or name.startswith("ptxmma.generator")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "yaml", None)
    result = invoke(*question)
    assert (result.exit_code, result.output) == (
        2,
        "Error: this needs yaml, which is not installed: install ptxmma with its extra generate\n",
    )


def test_extras_are_those_of_the_package(root: Path) -> None:
    text = (root / "pyproject.toml").read_text(encoding="utf-8")  # Python 3.10 reads no TOML
    for module, extra in cli._EXTRAS.items():
        package = {"yaml": "PyYAML", "jinja2": "Jinja2", "anyio": "mcp"}.get(module, module)  # mcp requires anyio
        assert re.search(rf"^{extra} = \[.*\"{package}>=", text, re.M), module


# --- completion -------------------------------------------------------------------------------------------------------------


class _Bash:
    """A bash at a terminal with the completion; Ctrl-G prints its line."""

    def __init__(self) -> None:
        self._process, self._ours = pty.fork()
        if self._process == 0:
            path = f"{Path(_COMMAND).parent}{os.pathsep}{os.environ['PATH']}"
            environment = {"PATH": path, "TERM": "dumb", "HOME": "/nonexistent", "PS1": "$ "}
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self._ask('bind -x \'"\\C-g": printf "{{{%s}}}\\n" "$READLINE_LINE"\'; stty cols 500\n', "$ ")
        self._ask('eval "$(_PTXMMA_COMPLETE=bash_source ptxmma)"; echo rea""dy\n', "ready\n")

    def _ask(self, typed: str, answered: str) -> str:
        os.write(self._ours, typed.encode())
        out, end = "", time.monotonic() + 60
        while answered not in out and time.monotonic() < end:
            if select.select([self._ours], [], [], 0.2)[0]:
                out += os.read(self._ours, 1 << 16).decode().replace("\r", "")
        assert answered in out, out
        return out

    def complete(self, typed: str) -> str:
        """The line after a tab."""
        answer = self._ask(f"{typed}\t\x07", "}}}\n")
        os.write(self._ours, b"\x15")  # empties the line
        return answer.partition("{{{")[2].partition("}}}")[0]

    def close(self) -> None:
        os.close(self._ours)
        os.waitpid(self._process, 0)


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="no bash")
def test_completion_in_a_real_bash() -> None:
    bash = _Bash()
    ordered, scaled = "mma.sp::ordered_metadata.sync.aligned.m16n8k", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale"
    typed_and_found = {
        "ptxmma sho": "ptxmma show ",
        "ptxmma show wgm": "ptxmma show wgmma.",
        "ptxmma show 'mma.sp::ord": f"ptxmma show '{ordered}",
        f"ptxmma show '{ordered}8": f"ptxmma show '{ordered}8.row.col.f32.tf32.tf32.f32' ",
        f"ptxmma show '{scaled}": f"ptxmma show '{scaled}_vec::2X.f32.e2m1.e2m1.f32.ue8m0' ",
        "ptxmma show no.such": "ptxmma show no.such",
        "ptxmma list --family wgmma.s": "ptxmma list --family wgmma.sp ",
        "ptxmma list --target sm_90": "ptxmma list --target sm_90",
        "ptxmma list --type e4": "ptxmma list --type e4m3 ",
        "ptxmma list --ptx 9.": "ptxmma list --ptx 9.",
    }
    try:
        for typed, expected in typed_and_found.items():
            assert bash.complete(typed) == expected
    finally:
        bash.close()


def _completions(shell: str, words: list[str]) -> list[str]:
    """The completions for a shell, in Click's protocol."""
    environment = os.environ | {"_PTXMMA_COMPLETE": f"{shell}_complete", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        environment["COMP_CWORD"] = words[-1]
    out = subprocess.run([_COMMAND], check=True, capture_output=True, text=True, env=environment).stdout
    return out.split()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_in_other_shells(shell: str) -> None:
    answer = " ".join(_completions(shell, ["ptxmma", "show", "mma.sp::ord"]))
    assert "mma.sp::ordered_metadata.sync.aligned.m16n8k8" in answer
    assert "mma.sync" not in answer
    script = subprocess.run([_COMMAND], capture_output=True, text=True, env=os.environ | {"_PTXMMA_COMPLETE": f"{shell}_source"})
    assert script.returncode == 0
    assert "ptxmma" in script.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=script.stdout, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["list", "--target", "h"], ["H100", "H200", "H20", "H800"]),
        (["list", "--shape", "m64n64k"], ["m64n64k16", "m64n64k8", "m64n64k32", "m64n64k256", "m64n64k64"]),
        (["check", "--target", "sm_90"], ["sm_90", "sm_90a"]),
        (["check", "--ptx", "8.1"], ["8.1"]),
        (["check", "--ignore", "stride,metad"], ["stride,metadata"]),
        (["layout", _F16, "--operand", ""], ["d", "a", "b", "c"]),
        (["layout", _F16, "--operand", "d", "--as", _F16, "--as-operand", ""], ["a", "b", "c", "d"]),
        (["layout", _SPARSE, "--operand", "M"], ["metadata"]),
        (["trace", _WGMMA, "--swizzle", ""], ["none", "32", "64", "128"]),
        (["smem", "--swizzle", "6"], ["64"]),
        (["smem", "--major", "m"], ["mn"]),
        (["tma", "--swizzle", "128"], ["128", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"]),
        (["tma", "--interleave", ""], ["none", "16", "32"]),
        (["tma", "--fill", "n"], ["nan"]),
        (["descriptor", "encode", "--swizzle", "1"], ["128"]),
        (["export", "--table", "variant_t"], ["variant_targets"]),
        (["generate", "--only", "java"], ["javascript"]),
        (["explore", "movm"], ["movmatrix.sync.aligned.m8n8.trans.b16"]),
    ],
)
def test_every_option_with_known_values_is_completed(words: list[str], offered: list[str]) -> None:
    complete = ShellComplete(main, {}, "ptxmma", "_PTXMMA_COMPLETE")
    assert {item.value for item in complete.get_completions(words[:-1], words[-1])} == set(offered)


def _commands() -> list[click.Command | None]:
    """Those that take options: of a group its members."""
    verbs = [main.get_command(click.Context(main), verb) for verb in VERBS]
    return [each for verb in verbs for each in (verb.commands.values() if isinstance(verb, click.Group) else [verb])]


def test_every_command_refuses_an_option_that_is_given_twice() -> None:
    for command in _commands():
        assert isinstance(command, Command)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["layout", _F16, "--operand", "a", "--operand", "b"], "--operand"),
        (["layout", _F16, "--operand", "a", "--row", "1", "--row=2"], "--row"),
        (["trace", _F16, "--row", "1", "--col", "1", "--col", "1"], "--col"),
        (["smem", "--rows", "64", "--rows", "32"], "--rows"),
        (["descriptor", "encode", "--rows", "128", "--rows", "64"], "--rows"),
        (["descriptor", "instruction", "f16", "--target", "sm_100a", "--target", "sm_103a", "1"], "--target"),
        (["check", "--target", "sm_90a", "--target", "sm_100a"], "--target"),
    ],
)
def test_an_option_that_is_given_twice(arguments: list[str], option: str) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, f"{option} is given twice; give it once" in result.output) == (2, True), result.output


def test_two_options_for_one_value() -> None:
    for arguments in (["list", "--format", "csv", "--json"], ["check", "--json", "--format", "json", "-"]):
        result = invoke(*arguments, input="")
        assert result.exit_code == 2
        assert "--json" in result.output
        assert "say the same thing; give one of them" in result.output


def test_a_spelling_without_its_opcode() -> None:
    known = invoke("show", ".32x32b.x32")
    assert known.exit_code == 2
    assert re.search(r"it begins with a dot; the opcode comes first: (\w+, )*fence, (\w+, )*ldmatrix,", known.output)
    assert "closest:\n  tcgen05.ld.sync.aligned.32x32b.x32.b32\n" in known.output
    shared = invoke("show", ".sync.aligned.m16n8k16.f32")  # wgmma.fence.sync.aligned needs fewer changes
    assert "closest:\n  mma.sync.aligned.m16n8k16.row.col.f32." in shared.output
    unknown = invoke("show", ".kind::bogus")
    assert (unknown.exit_code, "closest" in unknown.output) == (2, False)


def test_some_options_may_be_repeated() -> None:
    result = invoke("check", "--ignore", "stride", "--ignore", "metadata", "-", input="")
    assert "twice" not in result.output


def test_no_option_is_left_without_completion() -> None:
    """Numbers, flags, files and texts of the user's own have none."""
    free = {"pattern", "old", "new", "descriptor", "modules", "as_product", "site", "nvcc"}
    for command in _commands():
        assert command
        for parameter in command.params:
            texts = parameter.type is click.STRING and not getattr(parameter, "is_flag", False)
            assert not texts or parameter.name in free or parameter._custom_shell_complete is not None, (command.name, parameter.name)


def test_completion_shows_few_words(catalog: Catalog) -> None:
    """Each step offers the text up to the next dot, and reaches every instruction."""
    from ptxmma.cli.show import command

    argument = next(parameter for parameter in command.params if parameter.name == "spelling")

    def offered(begun: str) -> list[str]:
        return [item.value for item in argument.shell_complete(command.make_context("show", [], resilient_parsing=True), begun)]

    assert offered("wg") == ["wgmma.mma_async", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"]
    for each in list(catalog.all())[::97]:
        begun, steps = "", 0
        while begun != each.canonical:
            words = offered(begun)
            fitting = [word for word in words if f"{each.canonical}.".startswith(f"{word}.")]
            begun = max(fitting, key=len, default="")  # a modifier that may be left out is offered with what comes before it, and without
            assert begun
            assert all(begun.startswith(word) for word in fitting)
            steps += 1
            begun = begun if begun == each.canonical else f"{begun}."
        assert steps < 16


def test_an_instruction_without_operands_in_short() -> None:
    short = invoke("show", "griddepcontrol.wait")
    assert (short.exit_code, "  ptxmma::griddepcontrol_wait();\n" in short.stdout) == (0, True)
