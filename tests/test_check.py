"""`ptxmma check`: the text that it reads, and its findings about instructions."""

from __future__ import annotations

import io
import itertools
import json
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.requirements import targets_of
from ptxmma.check import Checker, Findings, check
from ptxmma.check.legality import Legality
from ptxmma.check.rules import RULES
from ptxmma.cli import main
from ptxmma.ptx import asm_statements, inline_assembly, literals, statements
from ptxmma.ptx import lines as ptx
from ptxmma.ptx.operand_values import ANYTHING
from ptxmma.ptx.tokens import cleaned

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
D, A, B, C = "{%f0,%f1,%f2,%f3}", "{%r0,%r1,%r2,%r3}", "{%r4,%r5}", "{%f4,%f5,%f6,%f7}"
SOUND = f"{MMA} {D}, {A}, {B}, {C};"
SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SPARSE = f"{SP} {D}, {A}, {A}, {C}, %r0, 0;"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"

#: The registers of every module here.
DECLARED = """.reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %rd<9>; .reg .f64 %fd<9>; .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .u32 %u<9>;
.reg .s32 %s<9>; .reg .f16x2 %h<9>; .reg .u64 %ud<9>; .reg .s64 %sd<9>; .reg .u16 %us<9>;
.reg .v4 .b32 %v; .reg .v2 .b32 %v2; .reg .v4 .f32 %vf; .reg .f16 %hh<9>; .reg .b8 %b8; .reg .b128 %q<4>;
.shared .align 8 .b32 vb; .local .f32 vf, vg; .param .u64 vd; .shared .b8 va[4]; .global .u32 vu = 3;
.shared .align 32 .b8 vs[64]; .local .b8 vl[64]; .const .f32 vc;"""


def module(body: str, *, version: str = "9.5", target: str = "sm_90a") -> str:
    head = f".version {version}\n.target {target}\n.address_size 64\n.global .v4 .f32 vv;\n.func checked() {{\n{DECLARED}\n"
    return f"{head}{body}\nret;\n}}\n.visible .entry k() {{ ret; }}\n"


def checked(body: str, **keys: str) -> Findings:
    return check(module(body, **keys), follow=False)


def reported(body: str, **keys: str) -> list[tuple[str, str]]:
    """Severity and rule of each finding."""
    return [(each.severity, each.rule) for each in checked(body, **keys)]


def test_statements_that_differ_in_register_numbers_are_each_judged() -> None:
    first = SOUND.replace("%f0,", "%f10,")
    wrong = [
        first.replace("%f10", "%f40"),
        first.replace("%f10", "%q10"),
        first.replace("%r4,", "%r04x,"),
        f"{MMA.replace('k16', 'k17')}{first[len(MMA) :]}",
    ]
    body = "\n".join([first, first.replace("%f10", "%f39"), *wrong, f"@%r1 {first}", f"{{ .reg .b32 %f10; {first} }}", first])
    findings = checked(body)
    assert findings.instructions == 9
    assert [each.rule for each in findings] == ["undeclared", "undeclared", "undeclared", "unknown-instruction", "predicate", "list"]


def test_notes_on_repeated_statements_keep_their_places() -> None:
    load = "ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];"
    findings = checked("\n".join([load, load.replace("%r5", "%r9"), load.replace("%r1,", "%r7,")]))
    assert len(findings) == 3 == len({each.line for each in findings})
    assert {(each.rule, each.column) for each in findings} == {("spelling", 1)}


# --- reading ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        SOUND,
        f"@%p1 {SOUND}",
        f"@!%p1 {SOUND}",
        f"@ ! %p1\n{SOUND}",
        f"label: {SOUND}",
        f"$L__1:\n\t@%p1 {SOUND}",
        SOUND.replace(",", " ,\n\t"),
        SOUND.replace("{", "{ // begin\n").replace("}", "/* end */ }"),
        SOUND.replace(".f32 ", ".f32{", 1).replace("{{", "{"),
        f"{MMA.replace('.sync', ' .sync')} {D}, {A}, {B}, {C};",
        f".loc 1 2 3\n{SOUND}",
        f".loc 1 2 3 {SOUND}",
        f'.pragma "nounroll"; {SOUND}',
        f"{{ // callseq 0, 0\n.reg .b32 temp_param_reg;\n.param .b64 param0;\n{SOUND}\n}} // callseq 0",
        f"{{ .reg .b32 zz, yy<3>; {SOUND.replace('%r0', 'zz').replace('%r3', 'yy2')} }}",
        f".reg .align 4 .b32 zz; {SOUND.replace('%r0', 'zz')}",
        f"{{ .reg .b32 %f0; }} {SOUND}",
        SOUND.replace("%r0", "%v.x").replace("%r3", "%v.a"),
        SOUND.replace(A, "%v").replace(C, "%vf"),
    ],
)
def test_what_compilers_write_is_read(text: str) -> None:
    assert checked(text) == Findings(1, ())


@pytest.mark.parametrize(
    "text",
    [
        "// mma.bad;",
        "/* mma.bad; */",
        "/* // */ /* mma.bad;\n\n */",
        '.pragma "mma.bad;";',
        '.pragma "/*"; // mma.bad; */',
        ".reg .b32 mma; mov.b32 mma, 1; add.s32 mma , mma , mma;",
        "mma_loop: bra mma_loop; call mma_of_tiles, (mma_sync); mov.u32 wgmma_v.x, 1;",
        "membar.gl; membar.proxy.alias; membar .gl; multimem.red.relaxed.gpu.global.add.u32 [%rd0], 1;",
        "mma: bra mma;",
        "barrier.sync 1, 128; barrier.cta.sync.aligned 0; memcp.sync;",
    ],
)
def test_other_instructions_are_passed_over(text: str) -> None:
    assert checked(text) == Findings(0, ())


@pytest.mark.parametrize(
    "text", ['.pragma "a//b"; mma.bad;', "/* /* */ mma.bad;", "//*\nmma.bad; /*/*/", "/**/mma.bad;", "/* é */ mma.bad;"]
)
def test_what_follows_a_comment_or_string_is_read(text: str) -> None:
    assert reported(text) == [("error", "unknown-instruction")]


def test_several_on_a_line() -> None:
    findings = checked(f"{SOUND} mma.one; {SOUND} @%p1 mma.two;")
    assert findings.instructions == 4
    assert [each.instruction for each in findings] == ["mma.one", "mma.two"]


def test_place_of_a_finding() -> None:
    text = f"// é\n/* é */ {SOUND.replace('%r3', '%r99')}"
    finding = checked(text).findings[0]
    line = module(text).splitlines()[finding.line - 1]
    assert line[finding.column - 1 :][: finding.length] == "%r99"
    assert finding.source[finding.caret :][: finding.length] == "%r99"
    assert (finding.instruction, finding.rule, finding.severity) == (MMA, "undeclared", "error")
    assert "%r99" in finding.message


def test_place_in_a_very_long_line() -> None:
    text = module(f"{'add.s32 %r1, %r1, 1; ' * 200_000} /* é */ mma.bad;")
    finding = check(text, follow=False).findings[0]
    assert text.splitlines()[finding.line - 1][finding.column - 1 :].startswith("bad")
    assert finding.source[finding.caret :].startswith("bad")
    assert len(finding.source) < 500


def test_a_directive_inside_a_word_begins_nothing() -> None:
    assert check(f".entry k() {{ {DECLARED} mma.sync..entry ; {SOUND} }}", follow=False).instructions == 2


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_pieces_make_no_difference(size: int) -> None:
    body = "/* a **/ /**/ /*//*/ //*\n ///\n"
    body += f'{SOUND} // b\n.pragma "x"; @%p1 mma.bad; {{ .reg .b32 zz; }} {SOUND.replace("%r0", "zz")}\n{SPARSE}'
    data = (module(body) + module(body, target="sm_80", version="8.5")).encode()

    class Slow(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            return super().read(size)

    checker = Checker(follow=False)
    assert checker.check_stream(Slow(data), "x") == checker.check(data, "x")
    assert checker.check(data).instructions == 8


def test_findings_are_in_the_order_of_their_places() -> None:
    unordered = SP.replace("::ordered_metadata", "")
    findings = checked(f"mma.bad;\n@%r1 {SOUND.replace('%r3', '%r99').replace('%f7', '%f99')}\n{unordered} {D}, {A}, {A}, {C}, %r0, 7;")
    places = [(each.line, each.column) for each in findings]
    assert places == sorted(places)
    assert [each.rule for each in findings] == [
        "unknown-instruction",
        "predicate",
        "undeclared",
        "undeclared",
        "unordered-metadata",
        "immediate",
    ]


def test_target_and_version_are_those_of_the_module() -> None:
    two = module(f"{WGMMA} {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;", target="sm_80") + module(f"{WGMMA} {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;")
    assert [each.rule for each in check(two, follow=False)] == ["target"]
    assert [each.rule for each in check(two, "sm_90a", follow=False)] == []
    assert [each.rule for each in check(two, "sm_90", follow=False)] == ["target", "target"]
    assert [each.rule for each in check(two, "sm_90a", "7.8", follow=False) if each.severity == "error"] == ["version", "version"]


@pytest.mark.parametrize("version", ["9.9", "5.9", "8.9"])
def test_a_module_of_an_unknown_version(version: str) -> None:
    assert reported(SOUND, version=version, target="sm_80") == [("error", "version")]
    message = checked(SOUND, version="9.9").findings[0].message
    assert message.startswith("PTX ISA 9.9 is unknown; known versions: 6.0, ")


@pytest.mark.parametrize(("target", "version"), [("sm_1", None), (None, "1.0")])
def test_unknown_target_or_version(target: str | None, version: str | None) -> None:
    with pytest.raises(ValueError, match="unknown"):
        check("", target, version)


def test_text_without_a_module_is_checked_for_any_target() -> None:
    declared = "{ .reg .f32 %f<8>; .reg .b32 %r<8>; "
    assert check(f"{declared}{SOUND} }}") == Findings(1, ())
    assert [each.rule for each in check(f"{declared} }} {SOUND}")] == ["undeclared"] * 4


# --- what is said ----------------------------------------------------------------------------------------------------------------


def test_unknown_instruction_names_the_token_and_the_closest() -> None:
    finding = checked(SOUND.replace(".sync", ".sycn")).findings[0]
    assert (finding.source[finding.caret :][:4], finding.length) == ("sycn", 4)
    assert "'.sycn'" in finding.message
    assert MMA in finding.message


def test_refused_target_names_the_first_one_and_the_closest() -> None:
    block = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
    finding = checked(f"{block} {D}, {A}, {B}, {C}, %r0, {{0,0}}, %r1, {{0,0}};").findings[0]
    assert finding.rule == "target"
    assert "sm_120a from PTX ISA 8.7" in finding.message
    close = finding.message.rpartition(" is ")[2]
    assert checked(f"{close} ;").findings[0].rule == "operand-count"  # it is legal there


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.f32",
            "'.f32' should be one of '.f16', '.bf16', '.s8' or '.u8'; the closest is wmma.load.a.sync.aligned.row.m16n16k16.f16",
        ),
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.tf32",
            "'.m16n16k16' should be '.m16n16k8'; the closest is wmma.load.a.sync.aligned.row.m16n16k8.tf32",
        ),
        (
            "wmma.load.c.sync.aligned.row.m16n16k16.bf16",
            "'.bf16' should be '.f16'; the closest is wmma.load.c.sync.aligned.row.m16n16k16.f16",
        ),
        (
            "wmma.store.c.sync.aligned.row.m16n16k16.f32",
            "'.c' should be '.d'; the closest is wmma.store.d.sync.aligned.row.m16n16k16.f32",
        ),
        (
            "wmma.mma.sync.aligned.row.col.m16n16k16.f32.e4m3.e4m3.f32",
            "'.e4m3' should be '.bf16'; the closest is wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32",
        ),
        (
            "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.f16.f16",
            "'.f16' is not allowed here; the closest is wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16",
        ),
        ("movmatrix.sync.aligned.m8n8.b16", "'.trans' is missing; the closest is movmatrix.sync.aligned.m8n8.trans.b16"),
        ("movmatrix.sync.aligned.m8n8.trans.f16", "'.f16' should be '.b16'; the closest is movmatrix.sync.aligned.m8n8.trans.b16"),
        ("movmatrix.sync.aligned.m8n8.x4.trans.b16", "'.x4' is not allowed here; the closest is movmatrix.sync.aligned.m8n8.trans.b16"),
        (
            "ldmatrix.sync.aligned.m16n16.x1.b8",
            "'.trans' is missing; the closest is ldmatrix.sync.aligned.m16n16.x1.trans.b8, which sm_90a does not support;"
            " it supports ldmatrix.sync.aligned.m8n8.x1.b16",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x8.b16",
            "'.x8' should be one of '.x1', '.x2' or '.x4'; the closest is ldmatrix.sync.aligned.m8n8.x4.b16;"
            " assemblers accept '.x8' all the same: see erratum ldmatrix-x8",
        ),
        (
            "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
            "'.m16n8k32' should be '.m16n8k16'; the closest is mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        ),
        ("fence.foo", "'.foo' should be one of '.cta', '.cluster', '.gpu' or '.sys'; the closest is fence.cluster"),
        ("fence.clustr", "'.clustr' should be '.cluster'; the closest is fence.cluster"),
        ("fence.proxy.asynch.global", "'.asynch' should be '.async'; the closest is fence.proxy.async.global"),
        ("ldmatrixx.sync.aligned.m8n8.x4.b16", "'ldmatrixx' should be 'ldmatrix'; the closest is ldmatrix.sync.aligned.m8n8.x4.b16"),
        ("wgmmaa.fence.sync.aligned", "'wgmmaa' should be 'wgmma'; the closest is wgmma.fence.sync.aligned"),
        ("wgmma.wait.sync.aligned", "'.wait' should be '.wait_group'; the closest is wgmma.wait_group.sync.aligned"),
    ],
)
def test_the_closest_takes_the_fewest_changes(spelling: str, words: str) -> None:
    (finding,) = checked(f"{spelling};").findings
    assert finding.message == f"no such instruction: {words}"


@pytest.mark.parametrize(
    ("spelling", "wrong", "right"),
    [
        ("tcgen05.wait::foo.sync.aligned", "wait::foo", "wait::ld"),
        ("tcgen05.comit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64", "comit", "commit"),
        ("tcgen05.dealoc.cta_group::1.sync.aligned.b32", "dealoc", "dealloc"),
        ("tcgen05.mmaa.cta_group::1.kind::f16", "mmaa", "mma"),
        ("tcgen05.ldd.sync.aligned.32x32b.x1.b32", "ldd", "ld"),
    ],
)
@pytest.mark.parametrize("file", ["a.ptx", "a.cu", "a.py"])
def test_a_misspelt_instruction_of_several_families(spelling: str, wrong: str, right: str, file: str) -> None:
    around = {"a.ptx": "{};", "a.cu": 'void f() {{ asm("{};"); }}', "a.py": 'x = "{};"'}[file]
    findings = check(around.format(spelling), target="sm_100a", file=file)
    assert [each.message for each in findings] == [
        f"no such instruction: '.{wrong}' should be '.{right}'; the closest is {spelling.replace(wrong, right)}"
    ]


@pytest.mark.parametrize("before", ["", "_", "x", "my_"])
@pytest.mark.parametrize("behind", ["", "_"])
def test_letters_round_the_first_word_hide_no_instruction(before: str, behind: str) -> None:
    for spelling in ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "ldmatrix.sync.aligned.m8n8.x4.b16", "wgmma.fence.sync.aligned"):
        word = spelling.partition(".")[0]
        mangled = f"{before}{word}{behind}"
        messages = [each.message for each in checked(f"{spelling.replace(word, mangled, 1)};") if each.rule == "unknown-instruction"]
        assert messages == [f"no such instruction: '{mangled}' should be '{word}'; the closest is {spelling}"] * (mangled != word)
    assert not check(module("{ call a_mma.sync, (b_mma.sync); mov.b32 %r0, my_mma.sync; }"))


@pytest.mark.parametrize(
    "spelling",
    ["ldmatrix.sync.aligned.m16n16.x1.trans.b8", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", WGMMA, SP],
)
def test_the_targets_that_support_an_instruction_are_complete(catalog: Catalog, spelling: str) -> None:
    """The named targets imply all others, and the message has their number."""
    instruction = catalog.find(spelling)
    accepts = instruction.accepted_by()
    message = checked(f"{spelling};", version="9.4", target="sm_75").findings[0].message
    text = message.partition("supported: ")[2].partition(" [")[0]
    named = {
        name: version
        for names, version in re.findall(r"((?:sm_\w+(?:, | and )?)+) from PTX ISA (\S+?)(?=,|$)", text)
        for name in re.findall(r"sm_\w+", names)
    }
    assert named == {name: accepts[name] for name in named}
    more = re.search(r"and (\d+) more that include", text)
    assert len(named) + (int(more[1]) if more else 0) == len(accepts)
    features = targets_of(catalog.database.spec).features
    for name, first in accepts.items():
        assert name in named or any(other in features(name) and accepts[other] <= first for other in named), name


def test_refused_version_names_the_first_one() -> None:
    finding = checked(SPARSE, version="8.0").findings[0]
    assert finding.rule == "version"
    assert "PTX ISA 8.5" in finding.message


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (SPARSE.replace("::ordered_metadata", ""), [("note", "unordered-metadata")]),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0,%fd1},{%fd2},{%fd3},{%fd0,%fd1};", [("note", "spelling")]),
        (SOUND.replace("%r3", "0f00000000"), [("error", "list")]),
        (f"{WGMMA} {D}, 0, %rd1, %p1, 1, 1, 0, 0;", [("warning", "constant")]),
        (SPARSE.replace(" 0;", " 2;"), [("warning", "immediate")]),  # assemblers let it pass; undefined
        (SPARSE.replace(" 0;", " 4;"), [("error", "immediate")]),
        (f"mov.b32 %r9, 0x44444444; {SPARSE.replace('%r0, 0;', '%r9, 0;')}", []),
        (f"mov.b32 %r9, 0x44444440; {SPARSE.replace('%r0, 0;', '%r9, 0;')}", [("warning", "metadata")]),
        (f"mov.b32 %r9, 0x44444440; bar: {SPARSE.replace('%r0, 0;', '%r9, 0;')}", []),
        (f"mov.b32 %r9, 0x44444440; add.u32 %r9, %r9, 4; {SPARSE.replace('%r0, 0;', '%r9, 0;')}", []),
        (f"mov.b32 %r9, 0; mov.b32 %r8, %r9; {SPARSE.replace('%r0, 0;', '%r9, 0;')}", [("warning", "metadata")]),
        (f"@%p1 mov.b32 %r9, 0; {SPARSE.replace('%r0, 0;', '%r9, 0;')}", []),
        (f"{SOUND.replace('.f32 ', '.f32.b1 ', 1)}", [("warning", "undocumented")]),
        (SPARSE.replace(" %r0, 0;", " {%r0}, 0;"), []),
    ],
)
def test_advice(text: str, rules: list[tuple[str, str]]) -> None:
    assert reported(text) == rules


INTEGER = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
FP8_K16 = FP8.replace("k32", "k16")
F64 = "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rn {%ud0,%ud1,%ud2,%ud3}, {%fd0,%fd1}, {%fd2}, {%fd0,%fd1,%fd2,%fd3};"
PREDICATES = "{%p0,%p1,%p2,%p3}"
HALF = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r2,%r3}, {%r4}, {%r5,%r6};"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("text", "target", "rules"),
    [
        # braces around a register, as CUTLASS writes them
        (SPARSE.replace(" %r0, 0;", " {%r0}, 0;"), "sm_120a", []),
        (SPARSE.replace(" %r0, 0;", " {%rd0}, 0;"), "sm_120a", [("error", "register-type")]),
        (
            SPARSE.replace("::ordered_metadata", "").replace(" %r0, 0;", " {%r0}, 0;"),
            "sm_120a",
            [("note", "unordered-metadata"), ("error", "list")],
        ),
        (f"{SCALED} {D}, {A}, {B}, {C}, {{%r0}}, {{0,0}}, {{%r1}}, {{0,0}};", "sm_120a", []),
        (
            SPARSE.replace("::ordered_metadata", "").replace(" %r0, 0;", " {%r0}, 0;"),
            "sm_80",
            [("note", "unordered-metadata"), ("note", "list")],
        ),
        # predicates for registers of 32 bits
        (SPARSE.replace(" %r0, 0;", " %p0, 0;"), "sm_120a", [("warning", "register-type")]),
        (SPARSE.replace(" %r0, 0;", " !%p0, 0;"), "sm_120a", [("warning", "register-type")]),
        (
            SPARSE.replace("::ordered_metadata", "").replace(" %r0, 0;", " %p0, 0;"),
            "sm_120a",
            [("note", "unordered-metadata"), ("error", "register-type")],
        ),
        (f"{FP8} {D}, {PREDICATES}, {B}, {C};", "sm_89", [("warning", "register-type")]),
        (f"{FP8} {D}, {PREDICATES}, {B}, {C};", "sm_90a", [("note", "emulated"), ("error", "register-type")]),
        (SOUND.replace(A, PREDICATES), "sm_90a", [("error", "register-type")]),
        # registers of other types
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1},{%r2},{%f3},{%r0,%r1};", "sm_100a", [("warning", "register-type")]),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1},{%r2},{%f3},{%r0,%r1};", "sm_90a", [("error", "register-type")]),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1},{%f2},{%r3},{%r0,%r1};", "sm_100a", [("error", "register-type")]),
        (F64, "sm_90a", [("warning", "register-type")]),
        (F64, "sm_100a", [("error", "register-type")]),
        # more registers than needed
        (f"{FP8_K16} {D}, {B}, {B}, {C};", "sm_120a", [("error", "register-count")]),
        # results that are not needed
        (f"{FP8} {D}, {A}, {B}, {C};", "sm_90a", [("note", "emulated")]),
        (f"{FP8} {{_,%f1,%f2,%f3}}, {A}, {B}, {C};", "sm_90a", [("note", "emulated"), ("error", "sink")]),
        (f"{FP8} {{_,%f1,%f2,%f3}}, {A}, {B}, {C};", "sm_89", []),
        (f"{FP8} {{%f0,%f1,_,%f3}}, {A}, {B}, {C};", "sm_120a", []),
        # constants in C
        (SOUND.replace(f"{C};", "{0f00000000,0f00000000,0f00000000,0f00000000};"), "sm_80", [("note", "list")]),
        (SOUND.replace(f"{C};", "{0f3F800000,%f1,%r2,%f3};"), "sm_80", [("error", "list")]),
        (SOUND.replace(f"{C};", "{%f0,0f3F800000,%f1,%f2};"), "sm_120", [("note", "list")]),
        (SOUND.replace(f"{C};", "{%f0,1.5,%f1,0f00000000};"), "sm_90", [("warning", "constant")]),
        (SOUND.replace(f"{C};", "{%f0,-0.,%f1,0.};"), "sm_90", [("warning", "constant")]),
        (SOUND.replace(f"{C};", "{%f0,0.,%f1,0.0e3};"), "sm_90", [("note", "list")]),  # read as the 0 that it is
        (SOUND.replace(f"{C};", "{0.,0.,0d0000000000000000,0.};"), "sm_90", [("error", "list")]),
        # modifiers that are ignored
        (f"{WGMMA}.row.col {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;", "sm_90a", [("warning", "undocumented")]),
        (f"{WGMMA} {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;".replace(".aligned", ".row.aligned.col"), "sm_90a", [("warning", "undocumented")]),
        (f"{WGMMA}.row.col.row {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;", "sm_90a", [("error", "unknown-instruction")]),
        (SOUND.replace(".f32 ", ".f32.s4.b1 ", 1), "sm_90a", [("warning", "undocumented")]),
        (HALF.replace(".f16 ", ".f16.bf16 "), "sm_75", [("error", "unknown-instruction")]),
        (HALF.replace(".f16 ", ".f16.b1 "), "sm_75", [("warning", "undocumented")]),
        (HALF.replace(".f16 ", ".f16.bf16 "), "sm_80", [("warning", "undocumented")]),
        (SOUND.replace(".sync", ".sync.b6x16_p32"), "sm_90a", [("warning", "undocumented")]),
        ("wgmma.fence.sync.aligned.b8x16;", "sm_90a", [("warning", "undocumented")]),
        ("movmatrix.sync.aligned.m8n8.trans.b16.bf16 %r0, %r1;", "sm_80", [("warning", "undocumented")]),
        ("movmatrix.sync.aligned.m8n8.trans.b16.bf16 %r0, %r1;", "sm_75", [("error", "unknown-instruction")]),
        (SOUND.replace(".sync", ".sync.b1"), "sm_90a", [("error", "unknown-instruction")]),
        (SPARSE.replace("row.col", "col.row"), "sm_90a", [("error", "unknown-instruction")]),
    ],
)
def test_what_assemblers_take_besides(text: str, target: str, rules: list[tuple[str, str]]) -> None:
    assert reported(text, target=target) == rules


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (SPARSE.replace(" %r0, 0;", " {%r0,%r1}, 0;"), ["{%r0,%r1}"]),  # braces around a register
        (SPARSE.replace(" %r0, 0;", " {0,0}, 0;"), ["{0,0}"]),
        (SPARSE.replace(" 0;", " {0};"), ["{0}"]),
        (SPARSE.replace("%r0, 0;", "{%r0,%r1}, 0;"), ["{%r0,%r1}"]),
        (f"{INTEGER}, %f0, {A}, {A}, {A}, 0;", ["%f0", A]),  # no braces around a list
        (SOUND.replace(B, "{%r4,%f0}"), ["%f0"]),  # registers of two types
        (SOUND.replace(B, "{%r4,%u0}"), ["%u0"]),
        (SOUND.replace(B, "{%rd0,%r4}"), ["%r4"]),
        (SOUND.replace(B, "{%r4,1.0}"), ["1.0"]),  # constants
        (SOUND.replace(C, "{%f0,0,%f1,%f2}"), ["0"]),
        (SOUND.replace(C, "{1.5,1.5,1.5,1.5}"), ["1.5"]),
        (f"{SCALED} {D}, {A}, {B}, {C}, %r0, {{%rs0,1.0}}, %r1, {{0,0}};", ["1.0"]),
        (f"{SCALED} {D}, {A}, {B}, {C}, %r0, {{0,%r1}}, %r1, {{0,0}};", ["%r1"]),
        (f"{SCALED} {D}, {A}, {B}, {C}, %r0, 0, %r1, {{0,0}};", ["0"]),
    ],
)
def test_lists_are_as_the_manual_has_them(text: str, places: list[str]) -> None:
    """Even if some assembler accepts them on some target."""
    for target in ("sm_90a", "sm_120a") if SCALED not in text else ("sm_120a",):
        errors = [each for each in checked(text, target=target) if each.severity == "error"]
        assert [(each.rule, each.source[each.caret :][: each.length]) for each in errors] == [("list", place) for place in places]


def test_a_target_is_judged_by_the_last_release_that_knows_it() -> None:
    text = f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 {D}, {A}, {A}, {C}, %r0, 4294967296;"
    assert reported(text, version="8.6", target="sm_101a") == [("warning", "immediate")]  # CUDA 12.9
    assert reported(text, version="8.6", target="sm_100a") == [("error", "immediate")]  # CUDA 13.5


def test_a_placeholder_fits_in_every_list(catalog: Catalog) -> None:
    legality = Legality(catalog)
    short = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    floats, words = ("f32",) * 4, ("b32",) * 4
    for spelling, values in (
        (SP, (("f32", ANYTHING, "f32", ANYTHING), (ANYTHING, *words[1:]), words, floats, ANYTHING, 0)),
        (short, (("s32", "s32"), ("b32",), ("b32",), ("b32", ANYTHING))),
        (short, (("s32", "s32"), (ANYTHING,), ANYTHING, (ANYTHING, "s32"))),
    ):
        known = legality.find(spelling)
        assert known is not None
        assert legality.accepts(known[0], values, "sm_120a")


def test_another_number_of_operands_is_compared_with_the_closest_list() -> None:
    lists = "d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b"
    first = checked(f"{WGMMA} {D}, %rd1, %rd2, %p0, 1, 1, 0;").findings[0]
    assert first.message == f"7 operands, 1 too few, where it takes {lists}, imm-trans-a, imm-trans-b"
    assert first.rule == "operand-count"
    first = checked(f"{WGMMA} {D}, {A}, %rd2, %p0, 1, 1, 0, 0;").findings[0]
    assert first.message == "8 operands, 1 too many, where it takes d, a, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b"
    assert reported(f"{WGMMA} {D}, {B}, %rd2, %p0, 1, 1, 0;") == [("error", "register-count")]


def test_undocumented_form() -> None:
    fp8 = "mma.sync.aligned.m16n8k16.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32"
    assert reported(f"{fp8} {D}, {{%r0,%r1}}, {{%r2}}, {C};", target="sm_120a") == [("warning", "undocumented")]


def test_variables_and_special_registers_are_members_of_lists() -> None:
    head = ".version 8.5 .target sm_90a .global .attribute(.managed) .b32 gg; .const .align 8 .b32 c1, c2[4], c3 = 1;"
    parameters = ".param .u64 .ptr .global .align 8 p, .param .b32 pp, .param .align 4 .b8 bytes[16], .param .f32 pf"
    text = f"{head} .entry k({parameters}) {{ {DECLARED} ld.param.u64 %rd0, [p]; {SOUND} }}"
    for name in ("gg", "c1", "c3", "pp", "%laneid", "%tid.x"):
        assert not check(text.replace("%r0,", f"{name},")).findings
    for name in ("c2", "bytes", "nosuch", "%tid"):
        assert [each.rule for each in check(text.replace("%r0,", f"{name},"))] == ["undeclared"]
    for name in ("p", "pf"):
        assert [each.rule for each in check(text.replace("%r0,", f"{name},"))] == ["list"]
    message = check(text.replace(SOUND, SPARSE.replace(" %r0, 0;", " pp, 0;"))).findings[0].message
    assert message == "e must be a .b32, .u32, .s32, .f32 or .f16x2 register, not a variable in .param"


@pytest.mark.parametrize(
    "text", ["mma.sync", f"{MMA} {{%f0,%f1", SOUND[:-1], f"{MMA} {D} {A};", f"{MMA} {D},,{A};", SOUND.replace(";", ",;"), f"{MMA} {D}}};"]
)
def test_broken_operands(text: str) -> None:
    assert "error" in {severity for severity, _ in reported(text)}


@pytest.mark.parametrize("predicate", ["@%p0|", "@%p0|%p1", "@!%p0 & %p1", "@%p0+"])
def test_a_predicate_is_one_register(predicate: str) -> None:
    findings = checked(f"{predicate} {SOUND}")
    operator = next(mark for mark in predicate if mark in "|&+")
    assert findings.instructions == 1
    assert [(each.rule, each.message) for each in findings] == [("syntax", f"a predicate is one register: '{operator}' cannot follow it")]


@pytest.mark.parametrize("predicates", ["@%p0 @%p1", "@!%p0\n@ ! %p1", "@%p0 @%p1 @%p0"])
def test_an_instruction_has_one_predicate(predicates: str) -> None:
    first = checked(f"{predicates} {SOUND}").findings[0]
    assert (first.rule, first.message) == ("syntax", "an instruction can have only one predicate")
    assert first.source[first.caret :].startswith(predicates.split("\n")[0])


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("%p1 wgmma.fence.sync.aligned;", ["syntax"]),
        ("!%p1\nwgmma.fence.sync.aligned;", ["syntax"]),
        ("@!!%p1 wgmma.fence.sync.aligned;", ["syntax"]),
        ("@ wgmma.fence.sync.aligned;", ["syntax"]),
        ("wgmma .fence.sync.aligned;", ["syntax"]),
        ("fence .proxy.async;", ["syntax"]),
        ("fence.proxy.async::generic.acquire.cluster;", ["unknown-instruction"]),
        ("fence.proxy.async::global;", ["unknown-instruction"]),
        ("tcgen05.foo;", ["unknown-instruction"]),
        ("wmma.load .a.sync.aligned.row.m16n16k16.s8 {%r0,%r1}, [%rd0];", ["syntax"]),
        ("ret; mma,sync.aligned;", ["syntax"]),
        (SOUND.replace("row.col", "row,col"), ["syntax"]),
        ("wgmma.row.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1, 0, 0;", ["unknown-instruction"]),
    ],
)
def test_slips_that_assemblers_refuse(text: str, rules: list[str]) -> None:
    findings = checked(text)
    assert findings.instructions == 1
    assert [each.rule for each in findings] == rules


def test_what_is_missing_is_named() -> None:
    for text, place, message in (
        ("mma,sync.aligned;", ",", "a dot must be here, not a comma"),
        (SOUND.replace("row.col", "row,col"), ",col", "a dot must be here, not a comma"),
        (f"{SOUND.rstrip(';')}\nret;", C, "a semicolon is missing after the operands"),
        (f"{SOUND.rstrip(';')}\n@%p1 bra x;", C, "a semicolon is missing after the operands"),
    ):
        (finding,) = checked(text)
        assert (finding.rule, finding.message) == ("syntax", message)
        assert finding.source[finding.caret :].startswith(place)


def test_blanks_behind_the_opcode_are_allowed() -> None:
    assert checked("wgmma.fence .sync .aligned; fence.proxy.async .global; fence.proxy .async;") == Findings(3, ())


@pytest.mark.parametrize("form", ["acquire.sync_restrict::shared::cluster", "release.sync_restrict::shared::cta"])
def test_proxy_fences_of_one_direction(form: str) -> None:
    text = f"fence.proxy.async::generic.{form}.cluster;"
    assert checked(text, version="8.6") == Findings(1, ())
    assert reported(text, version="8.5") == [("error", "version")]


def test_every_rule_is_described() -> None:
    named = set(
        re.findall(
            r'(?:Fault|Diagnosis|Remark)\([^"\n]*"([a-z]+(?:-[a-z]+)*)"', Path(check.__code__.co_filename).read_text(encoding="utf-8")
        )
    )
    for name in ("legality", "operand_faults", "diagnosis", "checker", "advice"):
        source = Path(check.__code__.co_filename).with_name(f"{name}.py").read_text(encoding="utf-8")
        named |= set(re.findall(r'(?:Fault|Diagnosis)\("([a-z-]+)"', source)) | set(re.findall(r'"(?:note|warning)", "([a-z-]+)"', source))
    assert named - {"error", "warning", "note"} <= set(RULES)


# --- the command -----------------------------------------------------------------------------------------------------------------


def run(*arguments: str, text: str = "") -> tuple[int, str]:
    """The exit code, and what is on standard output."""
    done = CliRunner().invoke(main, ["check", *arguments], input=text)
    return done.exit_code, done.stdout


def ask(*arguments: str) -> Result:
    """The exit code, and both streams."""
    return CliRunner().invoke(main, ["check", *arguments])


def test_exit_codes(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ptx"
    bad.write_text(module("mma.bad;"), encoding="utf-8")
    assert run(text=module(SOUND)) == (0, "")
    assert run("-", text=module(SPARSE.replace("::ordered_metadata", "")))[0] == 0  # a note
    assert run(str(bad))[0] == 1
    assert run(str(bad), text=module(SOUND))[0] == 1
    assert run(str(tmp_path / "none.ptx"))[0] == 2
    assert run("--target", "sm_1")[0] == 2
    assert run("--format", "xml")[0] == 2


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
@pytest.mark.parametrize("places", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_the_others_are_checked_where_files_cannot_be_read(tmp_path: Path, form: str, places: tuple[int, ...]) -> None:
    bad, loop = tmp_path / "bad.ptx", tmp_path / "loop.ptx"
    files = (bad, tmp_path / "none.ptx", loop)
    bad.write_text(module("mma.bad;"), encoding="utf-8")
    loop.symlink_to(loop)
    alone = ask("--format", form, str(bad))
    done = ask("--format", form, *(str(files[place]) for place in places))
    assert (done.exit_code, done.stdout) == (2, alone.stdout)
    messages = [f"error: {files[place]}: cannot be read: " for place in places if place]
    assert [line[: len(start)] for line, start in zip(done.stderr.splitlines()[:-1], messages, strict=True)] == messages


def test_no_name_of_a_file_is_a_workflow_command(tmp_path: Path) -> None:
    name = "::error::a\n::error::b"
    done = subprocess.run([sys.executable, "-m", "ptxmma", "check", name], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "error: ::error::a\N{REPLACEMENT CHARACTER}::error::b: cannot be read: No such file or directory"
    Path(tmp_path, "::error::c").write_text(module("mma.bad;"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ptxmma", "check", "::error::c"], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.startswith("./::error::c:")


def test_a_closed_standard_input_cannot_be_read() -> None:
    command = f"{sys.executable} -m ptxmma check <&-"
    done = subprocess.run(command, check=False, capture_output=True, text=True, shell=True)  # the shell closes it
    assert done.returncode == 2
    assert done.stderr.startswith("error: -: cannot be read: the standard input is closed\n")


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_without_a_file_that_can_be_read_there_is_a_document(tmp_path: Path, form: str) -> None:
    done = ask("--format", form, str(tmp_path / "none.ptx"))
    assert done.exit_code == 2
    answer = json.loads(done.stdout)
    assert (answer["findings"] if form == "json" else answer["runs"][0]["results"]) == []


def test_text_names_the_place(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ptx"
    bad.write_text(module("mma.bad;"), encoding="utf-8")
    code, output = run(str(bad))
    line = module("mma.bad;").splitlines().index("mma.bad;") + 1
    assert output.startswith(f"{bad}:{line}:5: error: ")
    assert "mma.bad;" in output.splitlines()[1]
    assert code == 1


def test_json() -> None:
    code, output = run("--json", text=module(f"{SOUND} mma.bad;"))
    document = json.loads(output)
    assert (code, document["instructions"]) == (1, 2)
    (finding,) = document["findings"]
    assert set(finding) == {"file", "line", "column", "severity", "rule", "instruction", "message"}
    assert (finding["file"], finding["rule"], finding["instruction"]) == ("-", "unknown-instruction", "mma.bad")


def test_inline_assembly(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text('__global__ void k() { asm volatile("mma.sycn;"); }\n', encoding="utf-8")
    code, output = run("--json", str(source))
    (finding,) = json.loads(output)["findings"]
    assert (code, finding["line"], finding["instruction"]) == (1, 1, "mma.sycn")


@pytest.mark.parametrize("form", ["sarif", "github"])
def test_other_formats(form: str) -> None:
    code, output = run("--format", form, text=module("mma.bad;"))
    assert code == 1
    assert "unknown-instruction" in output


def test_target_and_version_options() -> None:
    text = module(SPARSE)
    assert run("--ptx", "8.4", text=text)[0] == 1
    assert run("--target", "sm_75", text=text)[0] == 1
    assert run("--target", "sm_80", "--ptx", "8.5", text=text)[0] == 0


def test_no_flow() -> None:
    text = module("").replace("{ ret; }", f"{{ {DECLARED} {WGMMA} {D}, %rd1, %rd2, 1, 1, 1, 0, 0; ret; }}")  # without wgmma.fence
    assert run(text=text)[0] == 1
    assert run("--no-flow", text=text) == (0, "")


# --- bad input -------------------------------------------------------------------------------------------------------------------

_FRAGMENTS = st.sampled_from([
    SOUND, SPARSE, WGMMA, MMA, "mma.", "wgmma.", "mma", "fence.proxy.async", "mov.b32 %r0, 0;", ".entry k() {", ".func", ".version ", "8.0",
    ".target ", "sm_90a", ".reg .b32 ", "%r<", "<9>", "%v.x", ".loc 1 2 3", "@", "@!%p1 ", "{", "}", "(", ")", "[", "]", ",", ";", ":",
    "/*", "*/", "//", "\n", '"', " ", "\0", "\xff", "é", "0x", "0b1", "_", "!", "-1", "0f00000000", "(((((", "1?2:3",
])  # fmt: skip


CHECKER = Checker()


@settings(max_examples=300)
@given(st.lists(_FRAGMENTS, max_size=40).map("".join), st.integers(1, 50))
def test_no_text_makes_it_fail(text: str, size: int) -> None:
    checker = CHECKER
    findings = checker.check(text)
    lines = text.split("\n")
    for finding in findings:
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1
        assert finding.rule in RULES
    data = io.BytesIO(text.encode("utf-8", "surrogateescape"))
    chunks = iter(lambda: data.read(size), b"")
    assert sum(part.instructions for part in checker.parts(_Stream(chunks), "x")) == findings.instructions


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    CHECKER.check(b".version 8.0\n.target sm_90a\n.entry k() { mma.sync " + data)


class _Stream:
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def read(self, _: int, /) -> bytes:
        return next(self._chunks, b"")


def _hostile() -> Iterable[tuple[str, bytes]]:
    size = 1 << 21
    yield "one line", b"add.s32 %r1, %r1, 1; " * (size // 21)
    yield "one line of ours", b"mma.a; " * (size // 70)
    yield "no blank", b"x" * size
    yield "NULs", b"\0" * size
    yield "deep", b".entry k() " + b"{" * size
    yield "deep and closed", b".entry k() " + b"{" * (size // 2) + b"}" * (size // 2)
    yield "deep with registers", b".entry k() " + b"{ .reg .b32 a; " * (size // 200)
    yield "open comment", b".entry k() { /* " + b"mma.a; " * (size // 7)
    yield "open string", b'.entry k() { "' + b"mma.a; " * (size // 7)
    yield "slashes", b"/" * size
    yield "quotes", b'"' * (size // 10)
    yield "stars", b"/*" + b"*" * size
    yield "open list", f".entry k() {{ {MMA} {{".encode() + b"%r1," * (size // 4)
    yield "open list without end", f".entry k() {{ {MMA} ".encode() + b"{" * size
    yield "dots", b"mma" + b"." * size
    yield "modifiers", b"mma" + b".a" * (size // 2)
    yield "blanks", b"mma" + b" " * size + b".x"
    yield "at signs", b"@" * size + b" mma.a;"
    yield "parentheses", f".entry k() {{ {SP} {D},{A},{A},{C},%r0,{'(' * 100_000}1;".encode()
    yield "digits", f".entry k() {{ {SP} {D},{A},{A},{C},%r{'9' * 100_000},{'1' * 100_000};".encode()
    yield "declarations", b".entry k() {" + b".reg .b32 a<3>, " * (size // 16)
    yield "functions", b".entry k() { mma.a; }" * 10_000
    yield "modules", b".version 8.0\n.target sm_90a\n.visible .entry k() { mma.a; }\n" * 10_000
    yield "unterminated", b".entry k() { mma.sync " * 1000


@pytest.mark.parametrize(("name", "data"), [pytest.param(name, data, id=name) for name, data in _hostile()])
def test_bad_input_takes_no_longer_than_good_input(name: str, data: bytes) -> None:
    start = time.process_time()
    Checker().check(data)
    assert time.process_time() - start < 5, name


def test_memory_is_that_of_the_longest_function() -> None:
    body = b"add.s32 %r1, %r1, 1;\n" * 100_000
    function = b".entry k() {\n.reg .b32 %r<9>; // a comment\n" + body + b"mma.a;\n}\n"
    chunks = iter([b".version 8.0\n.target sm_90a\n", *[function] * 20])
    tracemalloc.start()
    assert sum(part.instructions for part in Checker().parts(_Stream(chunks), "x")) == 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * len(function)


def test_memory_is_bounded_in_a_function_that_is_very_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in parts, with what it declares before; its registers are not followed."""
    monkeypatch.setattr(statements, "_MOST_INSIDE", 1 << 16)
    head = b".version 8.0\n.target sm_90a\n.visible .entry k()\n{\n.reg .b32 %r<9>; { .reg .f32 %f<9>; .shared .align 16 .b8 tile[64];\n"
    mma = f"{SOUND.replace('%f4,%f5,%f6,%f7', '%f4,%f5,%f6,%f8')}\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r0}}, [tile];\n".encode()
    block = b"add.s32 %r1, %r1, 1;\n" * 5_000 + mma
    tail = b"} " + mma + b"}\n.global .f32 after;\n" + b".entry other() { " + mma + b"}\n"
    chunks = iter([head, *[block] * 100, tail])
    tracemalloc.start()
    parts = list(Checker().parts(_Stream(chunks), "x"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20  # of 10 MB; the chunks are 1 MB long
    assert sum(part.instructions for part in parts) == 2 * 102
    errors = {(finding.line, finding.rule) for part in parts for finding in part if finding.severity == "error"}
    behind = 6 + 100 * 5_002  # the inner block is closed there; another function follows
    assert errors == {(behind, "undeclared"), (behind + 4, "undeclared"), (behind + 5, "undeclared")}


def test_memory_of_a_long_source_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """C++ is read in parts, and nothing of a part is kept: neither its text nor the constants, lines and statements in it."""
    monkeypatch.setattr(inline_assembly, "_PART", 1 << 18)
    operands = ", ".join(['"=f"(d)'] * 4) + " : " + ", ".join([*['"r"(a)'] * 6, *['"f"(c)'] * 4, '"n"(kDepth)'])
    text = "mma.sync.aligned.m16n8k%14.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
    block = "constexpr int kDepth = 16;\n" + "int sum = 0; // of tile NUMBER\n" * 80 + f'asm("{text}" : {operands});\n'

    def peak(blocks: int) -> int:
        checker = Checker()
        chunks = (block.replace("NUMBER", f"{number:06}").encode() for number in range(blocks))
        tracemalloc.start()
        assert sum(part.instructions for part in checker.parts(_Stream(chunks), "x.cu")) == blocks
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    short, long = peak(250), peak(1_000)
    assert long < short + (1 << 18)  # of 0.7 MB and 3 MB
    assert long < 8 << 18


@pytest.mark.parametrize("begin", ["/*", 'auto x = R"(', 'asm("mma.sync', 'asm(R"(mma.sync', "asm("])
def test_memory_of_what_is_never_closed(begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice its length, and what a part of a source takes."""
    monkeypatch.setattr(inline_assembly, "_PART", 1 << 18)
    monkeypatch.setattr(asm_statements, "LONGEST", 1 << 16)
    length = 3 << 20
    chunks = iter([begin.encode(), *[b"a " * (1 << 17)] * 12])
    tracemalloc.start()
    assert not list(Checker().parts(_Stream(chunks), "x.cu"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * length + (3 << 20)


def test_memory_of_a_long_word() -> None:
    tracemalloc.start()
    (finding,) = check(b".entry k() { mma" + b".sync" * 1_000_000 + b"; }").findings[:1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert finding.rule == "unknown-instruction"
    assert peak < 40 << 20


# --- constants -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("07", 7), ("08", None), ("0x1F", 31), ("0X1fU", 31), ("0b101", 5), ("0B1U", 1), ("1u", None),
        ("-1", -1), ("- 1", -1), ("+1", 1), ("~0", -1), ("!0", 1), ("!5", 0), ("(1)", 1), ("1+2*3", 7), ("(1+2)*3", 9),
        ("1<<4|1", 17), ("7/-2", -3), ("-7 % 4", -3), ("1/0", None), ("1?2:3", 2), ("0?2:3", 3), ("3>2&&1", 1), ("WARP_SZ", 32),
        ("18446744073709551615", -1), ("18446744073709551616", 0), ("", None), ("1 2", None), ("(1", None), ("1.0", None),
        ("%r1", None), ("x", None), ("(" * 199, None), ("1" * 5000, None),
    ],
)  # fmt: skip
def test_constant_expressions(text: str, value: int | None) -> None:
    assert literals.integer(text.encode()) == value


# --- the database ----------------------------------------------------------------------------------------------------------------


def test_every_instruction_of_the_database_is_sound(catalog: Catalog) -> None:
    """In each operand form, on each kind of target that has it, and on no other."""
    checker = Checker(catalog.database, follow=False)
    for instruction in itertools.islice(catalog.all(), 0, None, 7):
        for form, line in zip(ptx.operand_lists(instruction), ptx.lines(instruction), strict=True):
            accepted = instruction.accepted_by(form=form)
            banks = "".join(f".reg .{bank} %{bank}_<512>;" for bank in {ptx.bank_of(word) for word in re.findall(r"%\w+", line)})
            for target in ("sm_80", "sm_90a", "sm_120a"):
                text = f".version 9.5\n.target {target}\n.entry k() {{ {banks} {line} }}"
                errors = [each for each in checker.check(text) if each.severity == "error"]
                legal = target in accepted and accepted[target] <= "9.5"
                assert bool(errors) != legal, (line, target, errors)


_NVCC = ["\t// begin inline asm\n", "\t// end inline asm\n", "//\n", "/* ", "*/", "/", "*", '"', "\t", "wgmma.fence.sync.aligned;\n"]


@given(st.lists(st.sampled_from(_NVCC)), st.integers(1, 40))
def test_comments_are_blanked_out_wherever_the_text_is_cut(parts: list[str], size: int) -> None:
    """Those that nvcc repeats, too, for which there is a shorter way: with a blank more at their end they go the long one."""
    text = "\n".join(parts).encode()
    usual = re.sub(rb"(//[^\n]*)\n", rb"\1 \n", text)  # as long as text where that has no such comment
    chunks = [text[place : place + size] for place in range(0, len(text), size)]
    clean = b"".join(clean for _, clean in cleaned(chunks))
    assert [line.rstrip() for line in clean.split(b"\n")] == [
        line.rstrip() for line in b"".join(clean for _, clean in cleaned([usual])).split(b"\n")
    ]
    assert len(clean) == len(text)


def test_registers_of_a_block_are_visible_in_it_alone() -> None:
    block = "{ .reg .b32 %own<4>; mov.b32 {%h0, %h1}, %own1; }"
    used = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%own0,%own1,%own2,%own3},{%r4,%r5},{%f0,%f1,%f2,%f3};"
    body = f".reg .f32 %f<4>; .reg .b32 %r<9>; {block} {used} {{ .reg .b32 %own<4>; {used} }} {used}"
    findings = check(f".version 8.0\n.target sm_90\n.entry k() {{ {body} }}")
    assert findings.instructions == 3
    assert [finding.rule for finding in findings] == ["undeclared"] * 2


def test_notes_are_only_counted_on_demand() -> None:
    text = ".version 8.0\n.target sm_90a\n.entry k() { wgmma.fence.aligned.sync; ldmatrix.sync; }"
    with_notes, without = (Checker(notes=notes).check(text) for notes in (True, False))
    assert [finding.severity for finding in with_notes] == ["note", "error"]
    assert (without.hidden, [*without]) == (1, [finding for finding in with_notes if finding.severity == "error"])
