"""`ptxmma check`: what it reads, what it says of each instruction, and that ptxas says the same."""

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
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.requirements import version_key
from ptxmma.check import Checker, Findings, check, constants
from ptxmma.check.legality import Legality
from ptxmma.check.rules import RULES
from ptxmma.check.values import ANYTHING
from ptxmma.cli import main
from ptxmma.ptx import lines as ptx
from ptxmma_proof import assemblers, errata

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
D, A, B, C = "{%f0,%f1,%f2,%f3}", "{%r0,%r1,%r2,%r3}", "{%r4,%r5}", "{%f4,%f5,%f6,%f7}"
SOUND = f"{MMA} {D}, {A}, {B}, {C};"
SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SPARSE = f"{SP} {D}, {A}, {A}, {C}, %r0, 0;"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"

#: One register file for everything that is asked here.
DECLARED = """.reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %rd<9>; .reg .f64 %fd<9>; .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .u32 %u<9>;
.reg .s32 %s<9>; .reg .f16x2 %h<9>; .reg .u64 %ud<9>; .reg .s64 %sd<9>; .reg .u16 %us<9>;
.reg .v4 .b32 %v; .reg .v2 .b32 %v2; .reg .v4 .f32 %vf; .reg .f16 %hh<9>; .reg .b8 %b8; .reg .b128 %q<4>;
.shared .align 8 .b32 vb; .local .f32 vf, vg; .param .u64 vd; .shared .b8 va[4]; .global .u32 vu = 3;"""


def module(body: str, *, version: str = "9.5", target: str = "sm_90a") -> str:
    head = f".version {version}\n.target {target}\n.address_size 64\n.global .v4 .f32 vv;\n.func checked() {{\n{DECLARED}\n"
    return f"{head}{body}\nret;\n}}\n.visible .entry k() {{ ret; }}\n"


def found(body: str, **keys: str) -> Findings:
    return check(module(body, **keys), follow=False)


def told(body: str, **keys: str) -> list[tuple[str, str]]:
    """Severity and rule of what is found."""
    return [(each.severity, each.rule) for each in found(body, **keys)]


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
    assert found(text) == Findings(1, ())


@pytest.mark.parametrize(
    "text",
    [
        "// mma.bad;",
        "/* mma.bad; */",
        "/* // */ /* mma.bad;\n\n */",
        '.pragma "mma.bad;";',
        '.pragma "/*"; // mma.bad; */',
        ".reg .b32 mma; mov.b32 mma, 1; add.s32 mma , mma , mma;",
        "wmma.nonsense; tcgen05.mma.nonsense; fence.acq_rel.gpu; fence.proxy.alias; fence.proxy.async::generic.acquire;",
        "mma: bra mma;",
    ],
)
def test_what_is_no_matrix_instruction_is_passed_over(text: str) -> None:
    assert found(text) == Findings(0, ())


@pytest.mark.parametrize(
    "text", ['.pragma "a//b"; mma.bad;', "/* /* */ mma.bad;", "//*\nmma.bad; /*/*/", "/**/mma.bad;", "/* é */ mma.bad;"]
)
def test_what_follows_a_comment_or_string_is_read(text: str) -> None:
    assert told(text) == [("error", "unknown-instruction")]


def test_several_on_a_line() -> None:
    findings = found(f"{SOUND} mma.one; {SOUND} @%p1 mma.two;")
    assert findings.instructions == 4
    assert [each.instruction for each in findings] == ["mma.one", "mma.two"]


def test_place_of_a_finding() -> None:
    text = f"// é\n/* é */ {SOUND.replace('%r3', '%r99')}"
    finding = found(text).findings[0]
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


def test_findings_stand_in_the_order_of_their_places() -> None:
    unordered = SP.replace("::ordered_metadata", "")
    findings = found(f"mma.bad;\n@%r1 {SOUND.replace('%r3', '%r99').replace('%f7', '%f99')}\n{unordered} {D}, {A}, {A}, {C}, %r0, 7;")
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
    assert [each.rule for each in check(two, "sm_90a", "7.8", follow=False)] == ["version", "version"]


@pytest.mark.parametrize("version", ["9.9", "5.9", "8.9"])
def test_a_module_of_an_unknown_version(version: str) -> None:
    assert told(SOUND, version=version, target="sm_80") == [("error", "version")]
    message = found(SOUND, version="9.9").findings[0].message
    assert message.startswith("9.9 is no PTX ISA version of which the database knows; known: 6.0, ")


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
    finding = found(SOUND.replace(".sync", ".sycn")).findings[0]
    assert (finding.source[finding.caret :][:4], finding.length) == ("sycn", 4)
    assert "'.sycn'" in finding.message
    assert MMA in finding.message


def test_refused_target_names_the_first_one_and_the_closest() -> None:
    block = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
    finding = found(f"{block} {D}, {A}, {B}, {C}, %r0, {{0,0}}, %r1, {{0,0}};").findings[0]
    assert finding.rule == "target"
    assert "sm_120a from PTX ISA 8.7" in finding.message
    close = finding.message.rpartition(" is ")[2]
    assert found(f"{close} ;").findings[0].rule == "operand-count"  # it is legal there


def test_refused_version_names_the_first_one() -> None:
    finding = found(SPARSE, version="8.0").findings[0]
    assert finding.rule == "version"
    assert "PTX ISA 8.5" in finding.message


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (SPARSE.replace("::ordered_metadata", ""), [("note", "unordered-metadata")]),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0,%fd1},{%fd2},{%fd3},{%fd0,%fd1};", [("note", "spelling")]),
        (SOUND.replace("%r3", "0f00000000"), []),
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
        (SPARSE.replace(" %r0, 0;", " {%r0}, 0;"), [("note", "list")]),
    ],
)
def test_advice(text: str, rules: list[tuple[str, str]]) -> None:
    assert told(text) == rules


INTEGER = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("text", "target", "rules"),
    [
        # lists for a register
        (SPARSE.replace(" %r0, 0;", " {%r0,%f0,%r1,0}, 0;"), "sm_90a", [("note", "list")]),
        (SPARSE.replace(" %r0, 0;", " {%r0,%r1,%r2}, 0;"), "sm_90a", [("error", "list")]),
        (SPARSE.replace(" %r0, 0;", " {%s0,%f1}, 0;"), "sm_90a", [("note", "list"), ("error", "register-type")]),
        (SPARSE.replace(" %r0, 0;", " {0,0}, 0;"), "sm_90a", [("error", "operand-kind")]),
        (SPARSE.replace(" %r0, 0;", " {%zz}, 0;"), "sm_90a", [("error", "undeclared")]),
        (SPARSE.replace(" %r0, 0;", " %p0, 0;"), "sm_120a", [("warning", "register-type")]),
        (
            SPARSE.replace("::ordered_metadata", "").replace(" %r0, 0;", " %p0, 0;"),
            "sm_120a",
            [("note", "unordered-metadata"), ("error", "register-type")],
        ),
        # a register for a list
        (f"{INTEGER}, %f0, {A}, {A}, {A}, 0;", "sm_120a", [("warning", "list"), ("note", "list")]),
        (f"{INTEGER}, %rs0, {A}, {A}, {A}, 0;", "sm_120a", [("error", "list"), ("note", "list")]),
        (
            f"{INTEGER}, %r0, {A}, {A}, %r0, 0;".replace("::ordered_metadata", ""),
            "sm_120a",
            [("note", "unordered-metadata"), ("error", "list")],
        ),
        # constants beside a register
        (f"{SCALED} {D}, {A}, {B}, {C}, %r0, {{%rs0,1.0}}, %r1, {{0,0}};", "sm_120a", [("warning", "operand-kind")]),
        (f"{SCALED} {D}, {A}, {B}, {C}, %r0, {{%us0,1.0}}, %r1, {{0,0}};", "sm_120a", [("error", "operand-kind")]),
        (SOUND.replace(B, "{%f0,1.0}"), "sm_90a", []),
        (SOUND.replace(C, "{0F3F800000,%r0,%r0,1.0}"), "sm_90a", [("error", "operand-kind")]),
        # lists that an assembler lengthens
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1},{%r2},{%r3},{%r0,%f0};", "sm_90a", []),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1},{%r2},{%r3},{%r0,%f0};", "sm_120a", [("error", "register-type")]),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1},{%r2},{%r3},{%r0,%h0};", "sm_100a", [("error", "register-type")]),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1},{%r2},{%r3},{%f0,%r0};", "sm_120a", []),
        # lists whose members an assembler moves and adds
        (f"{FP8} {D}, {A}, {B}, {C};", "sm_90a", []),
        (f"{FP8} {{_,%f1,%f2,%f3}}, {A}, {B}, {C};", "sm_90a", [("error", "register-type")]),
        (f"{FP8} {{_,%f1,%f2,%f3}}, {A}, {B}, {C};", "sm_89", []),
        (f"{FP8} {{%f0,%f1,_,%f3}}, {A}, {B}, {C};", "sm_120a", []),
        (f"{FP8} {D}, {A}, {B}, {{%f0,%r0,2,%r1}};", "sm_110a", [("error", "register-type")]),
        (f"{FP8} {D}, {A}, {B}, {{%f0,%r0,2.0,%r1}};", "sm_110a", []),
        (f"{FP8} {D}, {A}, {{%r0,2.0}}, {C};", "sm_100a", [("error", "register-type")]),
        (f"{FP8} {{%u0,_,%h0,%r0}}, {A}, {B}, {C};", "sm_120a", [("error", "register-type")]),
        (f"{FP8} {{%u0,_,%r0,%h0}}, {A}, {B}, {C};", "sm_120a", []),
        # lists of constants alone
        (f"{FP8} {D}, {A}, {B}, {{2.0,2.0,2.0,2.0}};", "sm_90a", [("warning", "operand-kind")]),
        (f"{FP8} {D}, {A}, {{0F3F800000,0F3F800000}}, {C};", "sm_90a", []),
        (f"{FP8} {D}, {A}, {{2.0,2.0}}, {C};", "sm_89", [("error", "operand-kind")]),
        (SOUND.replace(B, "{0F3F800000,0F3F800000}"), "sm_90a", [("error", "operand-kind")]),
        # modifiers that are ignored
        (f"{WGMMA}.row.col {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;", "sm_90a", [("warning", "undocumented")]),
        (f"{WGMMA} {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;".replace(".aligned", ".row.aligned.col"), "sm_90a", [("warning", "undocumented")]),
        (f"{WGMMA}.row.col.row {D}, %rd1, %rd2, %p1, 1, 1, 0, 0;", "sm_90a", [("error", "unknown-instruction")]),
        (SOUND.replace(".f32 ", ".f32.s4.b1 ", 1), "sm_90a", [("warning", "undocumented")]),
        (SOUND.replace(".sync", ".sync.b1"), "sm_90a", [("error", "unknown-instruction")]),
        (SPARSE.replace("row.col", "col.row"), "sm_90a", [("error", "unknown-instruction")]),
    ],
)
def test_what_assemblers_take_besides(text: str, target: str, rules: list[tuple[str, str]]) -> None:
    assert told(text, target=target) == rules


def test_a_target_is_judged_by_the_last_release_that_knows_it() -> None:
    text = f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 {D}, {A}, {A}, {C}, %r0, 4294967296;"
    assert told(text, version="8.6", target="sm_101a") == [("warning", "immediate")]  # CUDA 12.9
    assert told(text, version="8.6", target="sm_100a") == [("error", "immediate")]  # CUDA 13.5


def test_a_placeholder_fits_in_every_list(catalog: Catalog) -> None:
    legality = Legality(catalog)
    short = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    floats, words = ("f32",) * 4, ("b32",) * 4
    for spelling, values in (
        (SP, (floats, words, words, floats, (ANYTHING,), 0)),
        (SP, (floats, words, words, floats, ("b32", ANYTHING), 0)),
        (short, (("s32", "s32"), ("b32",), ("b32",), ("b32", ANYTHING))),
        (short, (("s32", "s32"), (ANYTHING,), ANYTHING, (ANYTHING, "s32"))),
    ):
        found = legality.find(spelling)
        assert found is not None
        assert legality.accepts(found[0], values, "sm_120a")


def test_the_errata_are_judged_as_assemblers_answer_them(catalog: Catalog) -> None:
    """Few are not: an instruction of which no code is made, and what begins as none of ours does, so that nothing is said of it."""
    found = {seen.asked.split(" ")[0] for seen in errata.misjudged(catalog)}
    others = {"membar.proxy.async", *(f"fence.proxy.{space}.async" for space in ("global", "shared::cta", "shared::cluster"))}
    assert found == {"mma.sync.aligned.m8n8k4.row.col.f32.bf16.bf16.f32"} | others
    assert check(".version 9.4\n.target sm_90a\n" + "".join(f"{text};\n" for text in sorted(others))).findings == ()


def test_of_another_number_of_operands_the_list_is_told_whose_lists_stand_there() -> None:
    lists = "d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b"
    first = found(f"{WGMMA} {D}, %rd1, %rd2, %p0, 1, 1, 0;").findings[0]
    assert first.message == f"7 operands, 1 too few, where it takes {lists}, imm-trans-a, imm-trans-b"
    assert first.rule == "operand-count"
    first = found(f"{WGMMA} {D}, {A}, %rd2, %p0, 1, 1, 0, 0;").findings[0]
    assert first.message == "8 operands, 1 too many, where it takes d, a, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b"
    assert told(f"{WGMMA} {D}, {B}, %rd2, %p0, 1, 1, 0;") == [("error", "register-count")]


def test_undocumented_form() -> None:
    fp8 = "mma.sync.aligned.m16n8k16.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32"
    assert told(f"{fp8} {D}, {{%r0,%r1}}, {{%r2}}, {C};", target="sm_120a") == [("warning", "undocumented")]


def test_variables_and_special_registers_are_members_of_lists() -> None:
    head = ".version 8.5 .target sm_90a .global .attribute(.managed) .b32 gg; .const .align 8 .b32 c1, c2[4], c3 = 1;"
    parameters = ".param .u64 .ptr .global .align 8 p, .param .b32 pp, .param .align 4 .b8 bytes[16], .param .f32 pf"
    text = f"{head} .entry k({parameters}) {{ {DECLARED} ld.param.u64 %rd0, [p]; {SOUND} }}"
    for name in ("gg", "c1", "c3", "pp", "pf", "%laneid", "%tid.x"):
        assert not check(text.replace("%r0,", f"{name},")).findings
    for name in ("c2", "bytes", "nosuch", "%tid"):
        assert [each.rule for each in check(text.replace("%r0,", f"{name},"))] == ["undeclared"]
    assert [each.rule for each in check(text.replace("%r0,", "p,"))] == ["register-type"]
    message = check(text.replace(SOUND, SPARSE.replace(" %r0, 0;", " pp, 0;"))).findings[0].message
    assert message == "e is a .b32 or .u32 or .s32 or .f32 or .f16x2 register, not a special register or a variable"


@pytest.mark.parametrize(
    "text", ["mma.sync", f"{MMA} {{%f0,%f1", SOUND[:-1], f"{MMA} {D} {A};", f"{MMA} {D},,{A};", SOUND.replace(";", ",;"), f"{MMA} {D}}};"]
)
def test_broken_operands(text: str) -> None:
    assert "error" in {severity for severity, _ in told(text)}


@pytest.mark.parametrize("predicates", ["@%p0 @%p1", "@!%p0\n@ ! %p1", "@%p0 @%p1 @%p0"])
def test_an_instruction_has_one_predicate(predicates: str) -> None:
    first = found(f"{predicates} {SOUND}").findings[0]
    assert (first.rule, first.message) == ("syntax", "an instruction has one predicate")
    assert first.source[first.caret :].startswith(predicates.split("\n")[0])


def test_every_rule_is_described() -> None:
    named = set(
        re.findall(
            r'(?:Fault|Diagnosis|_Remark)\([^"\n]*"([a-z]+(?:-[a-z]+)*)"', Path(check.__code__.co_filename).read_text(encoding="utf-8")
        )
    )
    for name in ("legality", "diagnosis", "checker", "advice"):
        source = Path(check.__code__.co_filename).with_name(f"{name}.py").read_text(encoding="utf-8")
        named |= set(re.findall(r'(?:Fault|Diagnosis)\("([a-z-]+)"', source)) | set(
            re.findall(r'\("(?:note|warning)", "([a-z-]+)"', source)
        )
    assert named - {"error", "warning", "note"} <= set(RULES)


# --- the command -----------------------------------------------------------------------------------------------------------------


def run(*arguments: str, text: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(main, ["check", *arguments], input=text)
    return done.exit_code, done.output


def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As a shell runs it, with both streams."""
    return subprocess.run([sys.executable, "-m", "ptxmma", "check", *arguments], capture_output=True, text=True, check=False)


def test_exit_codes(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ptx"
    bad.write_text(module("mma.bad;"), encoding="utf-8")
    assert run(text=module(SOUND)) == (0, "")
    assert run("-", text=module(SPARSE.replace("::ordered_metadata", "")))[0] == 0  # a note
    assert run(str(bad))[0] == 1
    assert run(str(bad), text=module(SOUND))[0] == 1
    assert run(str(tmp_path / "none.ptx"))[0] == 2
    assert run(str(tmp_path))[0] == 2
    assert run("--target", "sm_1")[0] == 2
    assert run("--format", "xml")[0] == 2


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
@pytest.mark.parametrize("places", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_the_others_are_checked_where_files_cannot_be_read(tmp_path: Path, form: str, places: tuple[int, ...]) -> None:
    bad, folder = tmp_path / "bad.ptx", tmp_path / "folder"
    files = (bad, tmp_path / "none.ptx", folder)
    bad.write_text(module("mma.bad;"), encoding="utf-8")
    folder.mkdir()
    alone = ask("--format", form, str(bad))
    done = ask("--format", form, *(str(files[place]) for place in places))
    assert (done.returncode, done.stdout) == (2, alone.stdout)
    told = [f"{files[place]}: cannot be read: " for place in places if place]
    assert [line[: len(start)] for line, start in zip(done.stderr.splitlines(), told, strict=True)] == told


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_without_a_file_that_can_be_read_there_is_a_document(tmp_path: Path, form: str) -> None:
    done = ask("--format", form, str(tmp_path / "none.ptx"))
    assert done.returncode == 2
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
    assert constants.integer(text.encode()) == value


# --- ptxas -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ptxas() -> assemblers.Assembler:
    fetched = assemblers.fetched()
    if not fetched:
        pytest.skip("no ptxas is fetched: run `make assemblers`")
    return fetched[-1]


def refused(assembler: assemblers.Assembler, lines: list[str], target: str, scratch: Path) -> dict[str, str]:
    """The lines that an assembler refuses, with what it says.

    It makes its checks in two rounds, and the second only where the first found nothing; a syntax error hides all that follows.
    """
    left = list(lines)
    found: dict[str, str] = {}
    path = scratch / "module.ptx"
    command = [assembler.path, "--gpu-name", target.replace("sm_", "compute_"), "--output-file", str(scratch / "out"), str(path)]
    while True:
        path.write_text(module("\n".join(left), version=assembler.ptx, target=target), encoding="utf-8")
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return found
        first = module("\n".join(left)).splitlines().index(left[0]) + 1
        wrong = dict(re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", done.stderr + done.stdout))
        named = {left[int(number) - first]: said for number, said in wrong.items() if 0 <= int(number) - first < len(left)}
        assert named, done.stderr + done.stdout
        found |= named
        left = [line for line in left if line not in named]
        if not left:
            return found


def disagreements(assembler: assemblers.Assembler, lines: Iterable[str], target: str, scratch: Path) -> list[str]:
    asked = list(dict.fromkeys(lines))
    said = refused(assembler, asked, target, scratch)
    assert 0 < len(said) < len(asked)
    checker = Checker(target=target, ptx=assembler.ptx, follow=False)
    ours = {line: [each for each in checker.check(module(line)) if each.severity == "error"] for line in asked}
    return [f"{line}\n  ptxas: {said.get(line, 'accepted')}\n  check: {ours[line]}" for line in asked if (line in said) != bool(ours[line])]


_ITEMS = [
    "%r0",
    "%u0",
    "%s0",
    "%f0",
    "%h0",
    "%p0",
    "%rd0",
    "%rs0",
    "%fd0",
    "%ud0",
    "%us0",
    "%hh0",
    "0",
    "1",
    "0x7",
    "-1",
    "0f00000000",
    "nosuch",
]
_ITEMS += [
    "0d0000000000000000",
    "_",
    "%v.x",
    "1U",
    "(1)",
    "",
    "%r40",
    "%r039",
    "%f40",
    "{%r0}",
    "%r0 %r1",
    "[%r0]",
    "!%p0",
    "-%r0",
    "1u",
    "%v2.z",
    "%laneid",
    "%tid.y",
    "%tid",
    "%clock64",
    "%is_explicit_cluster",
    "%laneid.x",
    "vb",
    "vg",
    "vu",
    "vd",
    "va",
    "vv",
    "vv.x",
]
_IMMEDIATES = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "-1",
    "0x1",
    "0X0",
    "01",
    "08",
    "0b1",
    "1U",
    "1u",
    "1.0",
    "0f3f800000",
    "(1)",
    "1-1",
    "!0",
    "~0",
    "-0",
    "WARP_SZ",
]
_IMMEDIATES += [
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "%r0",
    "%p0",
    "%rs0",
    "nosuch",
    "1<<0",
    "3>>1",
    "1?0:1",
    "{1}",
    "",
]


def _dense() -> Iterator[str]:
    yield SOUND
    for item in _ITEMS:
        yield SOUND.replace("%f0", item, 1)
        yield SOUND.replace("%f2", item, 1)
        yield SOUND.replace("%r0", item, 1)
        yield SOUND.replace("%r3", item, 1)
        yield SOUND.replace("%r4", item, 1)
        yield SOUND.replace("%f4", item, 1)
        yield SOUND.replace("%f7", item, 1)
        for other in (
            ()
            if item.startswith(("%v", "%tid.")) or item == "0d0000000000000000"
            else ("%r1", "%u1", "%s1", "%f1", "%h1", "%rd1", "1", "0f00000000", "_")
        ):
            yield SOUND.replace(B, f"{{{item},{other}}}")
            yield f"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {{%s0,%s1}}, {{%r0}}, {{%r1}}, {{{other},{item}}};"
            if item not in ("0", "1", "0x7", "-1", "1U", "(1)", "0f00000000", "0d0000000000000000"):
                yield f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%fd0,%fd1}}, {{%fd0}}, {{%fd1}}, {{{item},{other}}};"
    for operand in (
        "%r0",
        "{%r0}",
        "{%r0,%r1}",
        "{%r0,%r1,%r2}",
        "{%r0,%r1,%r2,%r3,%r4}",
        "{}",
        "%v",
        "%vf",
        "%v2",
        "{%v}",
        "%r0,%r1",
        "{{%r0}}",
    ):
        yield SOUND.replace(A, operand)
        yield SOUND.replace(D, operand)
    for kind in ("%u", "%s", "%f", "%h", "%p", "%rd"):
        yield SOUND.replace(A, A.replace("%r", kind))
        yield SOUND.replace(D, D.replace("%f", kind))
    yield SOUND.replace(f", {C}", "")
    yield SOUND.replace(";", f", {C};")
    for predicate in (
        "@%p0 @%p1",
        "@!%p0\t@ !%p1 @%p2",
        "@%p0",
        "@!%p0",
        "@%r0",
        "@%p9",
        "@nosuch",
        "@%is_explicit_cluster",
        "@!%is_explicit_cluster",
        "@%laneid",
        "@vb",
    ):
        yield f"{predicate} {SOUND}"


def _special() -> Iterator[str]:
    """Every special register, and what looks like one, in a list of untyped registers, of integers and of 64 bits."""
    vectors = [f"{name}.{field}" for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid") for field in "xyzw"]
    vectors += ["cluster_ctaid.x", "cluster_nctaid.y", "tid.r", "ctaid.a"]
    plain = ["laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster"]
    plain += ["clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi", "current_graph_exec"]
    plain += ["total_smem_size", "aggr_smem_size", "dynamic_smem_size"]
    numbered = [f"{name}{number}" for name in ("envreg", "reserved_smem_offset_") for number in range(34)]
    numbered += [f"pm{number}{size}" for number in range(9) for size in ("", "_64")]
    named = [f"lanemask_{name}" for name in ("eq", "le", "lt", "ge", "gt", "ne")]
    named += [f"reserved_smem_offset_{name}" for name in ("begin", "end", "cap", "size")]
    for name in (*vectors, *plain, *numbered, *named, "tid", "envreg01", "laneid.x", "warp", "LANEID"):
        yield SOUND.replace("%r4", f"%{name}")
        yield SOUND.replace(B, f"{{%{name},%u1}}")
        yield f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%fd0,%fd1}}, {{%fd0}}, {{%fd1}}, {{%{name},%fd0}};"


def _plain() -> Iterator[str]:
    """Without the shapes that some targets replace by others, whose registers then count."""
    yield from (line for line in _dense() if MMA in line)


def _spellings() -> Iterator[str]:
    tokens = MMA.split(".")
    for place in range(1, len(tokens)):
        yield SOUND.replace(MMA, ".".join([*tokens[:place], *tokens[place + 1 :]]))
        for other in (
            tokens[place] * 2,
            f"{tokens[place]}.{tokens[place]}",
            "sycn",
            "f16",
            "bf16",
            "f32",
            "row",
            "satfinite",
            "M16N8K16",
            "m16n8k8",
        ):
            yield SOUND.replace(MMA, ".".join([*tokens[:place], other, *tokens[place + 1 :]]))
    for other in ("m16n8k32.col.row", "row.m16n8k32.col", "col.m16n8k32.row", "row.m16n8k32.f16.col"):
        yield SPARSE.replace("m16n8k32.row.col", other)
    for other in ("s32.s4.u4.s4.s32", "s32.bf16.s4.u4.s32", "s4.s32.s4.u4.s32"):
        yield f"mma.sync.aligned.m16n8k64.row.col.{other} {{%s0,%s1,%s2,%s3}}, {A}, {B}, {{%s0,%s1,%s2,%s3}};"
    yield from (
        SOUND.replace(".sync", " .sync"),
        SOUND.replace(".sync", ". sync"),
        SOUND.replace(".sync", "..sync"),
        SOUND.replace(".f32 {", ".f32. {"),
    )
    yield from (
        "wgmma;",
        "wgmma.fence;",
        "wgmma.mma_asnyc.sync.aligned;",
        "mma;",
        "mma %r0;",
        "wgmma.fence.sync.aligned 0;",
        "fence.proxy.async 0;",
    )
    yield from ("wgmma.fence.sync;", "fence.proxy.async.shared;", "fence.proxy.async.global;", "@%p0 wgmma.fence.sync.aligned;")


def _sparse() -> Iterator[str]:
    for item in _ITEMS:
        yield SPARSE.replace(" %r0, 0;", f" {item}, 0;")
    integers = SP.replace("f32.f16.f16.f32", "s32.s8.s8.s32")
    for e in ("%r0", "%f0", "%rd0"):
        yield f"{integers} {{%s0,%s1,%s2,%s3}}, {{%r0,%r1}}, {{%r0,%r1}}, {{%s0,%s1,%s2,%s3}}, {e}, 0;"
    for value in _IMMEDIATES:
        yield SPARSE.replace(" 0;", f" {value};")
        yield f"mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {D}, {A}, {A}, {C}, %r0, {value};"


def _wgmma() -> Iterator[str]:
    for value in _IMMEDIATES:
        yield f"{WGMMA} {D}, %rd0, %rd1, {value}, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, %rd1, %p0, {value}, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, %rd1, %p0, 1, 1, 0, {value};"
        yield f"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {D}, %rd0, %rd1, %r0, {value}, %p0, 1, 1, 0, 0;"
        if value not in ("4294967296", "18446744073709551616"):  # an erratum: assemblers take N of 63 bits
            yield f"wgmma.wait_group.sync.aligned {value};"
    for item in _ITEMS:
        yield f"{WGMMA} {D}, {item}, %rd1, %p0, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, {item}, %p0, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, %rd1, {item}, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, {A.replace('%r0', item)}, %rd1, %p0, 1, 1, 0;"
        yield f"{WGMMA} {D.replace('%f0', item)}, {A}, %rd1, %p0, 1, 1, 0;"
        yield f"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {D}, %rd0, %rd1, {item}, 0, %p0, 1, 1, 0, 0;"


def _scaled() -> Iterator[str]:
    opcode = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
    for item in [*_ITEMS, *_IMMEDIATES]:
        if item not in ("%hh0", "%v.x", "%v2.z", "%tid.y"):
            yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {{{item},0}}, %r1, {{0,0}};"
            yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {{0,{item}}}, %r1, {{0,0}};"
            yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {{0,0}}, %r1, {{0,{item}}};"
        yield f"{opcode} {D}, {A}, {B}, {C}, {item}, {{0,0}}, %r1, {{0,0}};"
    fp8 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.{}f32.e4m3.e4m3.f32"
    for e in ("%r0", "{%r0}", "%f0", "%rd0"):
        yield f"{fp8.format('')} {D}, {A}, {A}, {C}, {e}, 0;"
        scaled = fp8.format("kind::mxf8f6f4.block_scale.scale_vec::1X.")
        yield f"{scaled}.ue8m0 {D}, {A}, {A}, {C}, {e}, 0, %r0, {{0,0}}, %r1, {{0,0}};"
    for group in ("0", "0,0", "{0}", "{0,0,0}", "{%rs0,%us0}", "{%r0,%r1}"):
        yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {group}, %r1, {{0,0}};"


@pytest.mark.parametrize(
    ("lines", "target"),
    [
        (_dense, "sm_90a"),
        (_special, "sm_90a"),
        (_spellings, "sm_90a"),
        (_sparse, "sm_90a"),
        (_wgmma, "sm_90a"),
        (_scaled, "sm_120a"),
        (_plain, "sm_120a"),
    ],
)
def test_ptxas_says_the_same(ptxas: assemblers.Assembler, lines: object, target: str, tmp_path: Path) -> None:
    assert callable(lines)
    found = disagreements(ptxas, lines(), target, tmp_path)
    assert not found, "\n".join(found[:20]) + f"\n{len(found)} in all"


def test_ptxas_knows_the_same_versions(ptxas: assemblers.Assembler, tmp_path: Path) -> None:
    path = tmp_path / "module.ptx"
    for version in ("6.9", "7.0", "7.9", "8.0", "8.8", "8.9", "9.5", "9.9"):
        text = f".version {version}\n.target sm_80\n.address_size 64\n.entry k() {{ .reg .f32 %f<8>; .reg .b32 %r<8>; {SOUND} }}\n"
        path.write_text(text, encoding="utf-8")
        command = [ptxas.path, "--gpu-name", "sm_80", "--output-file", str(tmp_path / "out"), str(path)]
        done = subprocess.run(command, check=False, capture_output=True)
        assert (done.returncode == 0) == check(text).clean == (version in ("7.0", "8.0", "8.8", "9.5")), version


def test_every_instruction_of_the_database_is_sound(catalog: Catalog) -> None:
    """In each of its operand forms, on each kind of target that has it, and nowhere else."""
    checker = Checker(catalog.database, follow=False)
    for instruction in itertools.islice(catalog.all(), 0, None, 7):
        accepted = instruction.accepted_by()
        for line in ptx.lines(instruction):
            banks = "".join(f".reg .{bank} %{bank}_<512>;" for bank in {ptx.bank_of(word) for word in re.findall(r"%\w+", line)})
            for target in ("sm_80", "sm_90a", "sm_120a"):
                text = f".version 9.5\n.target {target}\n.entry k() {{ {banks} {line} }}"
                errors = [each for each in checker.check(text) if each.severity == "error"]
                legal = target in accepted and version_key(accepted[target]) <= version_key("9.5")
                assert bool(errors) != legal, (line, target, errors)
