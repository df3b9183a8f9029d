"""`ptxmma check` on addresses: registers, variables, offsets and strides."""

from __future__ import annotations

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma.check import check
from ptxmma.check.legality import Legality
from ptxmma.ptx import lines as ptx
from ptxmma.ptx.operand_values import Address, of_compact
from ptxmma.ptx.variables import Variable, declared

LOAD = "ldmatrix.sync.aligned.m8n8.x1{}.b16 {{%r0}}, {};"
STRIDED = "wmma.load.a.sync.aligned.{}.f16 {{%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}}, [%rd0], {};"
HEAD = """.version 9.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 status) prototype (.param .b64 text);
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .u32 table[2][2] = { {1, 2}, {3, 4} }, counter = 3, last;
.global .attribute(.unified(19,95)) .b64 attributed;
.const .f32 constant;
.visible .entry first(.param .u64 out) { ret; }
.shared .align 32 .b8 tile[4096], numbered<4>[16];
.shared .v4 .b32 vector;
.visible .entry kernel(.param .u64 .ptr .global .align 16 out)
{
.reg .b64 %rd<4>; .reg .u64 %ud<4>; .reg .b32 %r<9>; .reg .s32 %s<4>; .reg .b16 %rs<4>; .reg .f32 %f<4>; .reg .f64 %fd<4>; .reg .pred %p<4>;
.reg .v2 .b64 %v;
.local .align 16 .b8 stack[64];
{ .shared .b32 twice; } { .global .b32 twice; }
"""


def rules(line: str) -> list[str]:
    """Severity and rule of each finding about a line of a kernel."""
    return [f"{each.severity}: {each.rule}" for each in check(f"{HEAD}{line}\nret;\n}}\n", follow=False)]


def load(address: str, space: str = "") -> list[str]:
    return rules(LOAD.format(space, address))


@pytest.mark.parametrize("space", ["", ".shared", ".shared::cta"])
@pytest.mark.parametrize(
    "address",
    [
        "[%rd0]",
        "[%ud1]",
        "[%r1]",
        "[ %s0 + 16 ]",
        "[%rd0+-32]",
        "[%rd0 + 2*(8+8)]",
        "[%rd0+(.s64)16]",
        "[%rd0+18446744073709551616]",
        "[%laneid]",
        "[%clock64]",
        "[tile]",
        "[tile + 64]",
        "[dynamic+16]",
        "[vector]",
        "[numbered3]",
    ],
)
def test_addresses_that_assemblers_take(address: str, space: str) -> None:
    assert load(address, space) == []


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("[%f0]", "register-type"),
        ("[%fd0+16]", "register-type"),
        ("[%p0]", "register-type"),
        ("[%v]", "register-type"),
        ("[%is_explicit_cluster]", "register-type"),
        ("[nosuch]", "undeclared"),
        ("[%rd4]", "undeclared"),
        ("[numbered4]", "undeclared"),
        ("[constant]", "state-space"),
        ("[out]", "state-space"),
        ("[16]", "operand-kind"),
        ("[8+8]", "operand-kind"),
        ("%rd0", "operand-kind"),
        ("{%rd0}", "operand-kind"),
        ("tile", "operand-kind"),
        ("[]", "syntax"),
        ("[%r4+%r5]", "syntax"),
        ("[tile+%r1]", "syntax"),
        ("[%rd0-16]", "syntax"),
        ("[16+%rd0]", "syntax"),
        ("[%rd0+1.0]", "syntax"),
        ("[%rd0+]", "syntax"),
        ("[%tid.x]", "syntax"),
        ("[tile][0]", "syntax"),
        ("[[%rd0]]", "syntax"),
    ],
)
def test_addresses_that_every_assembler_refuses(address: str, rule: str) -> None:
    assert load(address) == load(address, ".shared") == [f"error: {rule}"]


@pytest.mark.parametrize(
    ("variable", "generic", "shared"),
    [("tile", True, True), ("table", True, False), ("last", True, False), ("attributed", True, False), ("stack", True, False)],
)
def test_the_state_space_of_a_variable_is_that_of_the_instruction(variable: str, generic: bool, shared: bool) -> None:
    def errors(rules: list[str]) -> list[str]:
        return [each for each in rules if each.startswith("error")]

    line = "wmma.load.a.sync.aligned.row.m16n16k16{}.s8 {{%r0,%r1}}, [{}];"
    assert (errors(load(f"[{variable}]")) == []) == generic
    assert (errors(load(f"[{variable}]", ".shared")) == []) == shared
    assert errors(rules(line.format(".global", variable))) == (
        [] if variable in ("table", "last", "attributed") else ["error: state-space"]
    )


def test_nothing_is_said_of_a_name_that_blocks_declare_in_two_state_spaces() -> None:
    assert load("[twice]") == load("[twice]", ".shared") == []


def test_variables_of_a_long_module_are_known() -> None:
    data = ", ".join(["17"] * 800_000)
    head = HEAD.replace("= 3, last;", f"= 3, last; .global .b8 data[800000] = {{{data}}};\n.shared .b8 behind[64];")
    for variable in ("dynamic", "tile", "behind"):
        assert check(head + LOAD.format(".shared", f"[{variable}]") + "\n}", follow=False).findings[1:] == ()


def test_sixteen_bits_are_enough_for_shared_memory_alone() -> None:
    assert load("[%rs0]", ".shared") == ["warning: register-type"]
    assert load("[%rs0]") == ["error: register-type"]


def test_a_narrow_address_says_where_the_space_goes() -> None:
    (finding,) = check(HEAD + "mbarrier.init.b64 [%r0], 1;\n}", follow=False).findings
    assert finding.message.endswith(
        "not of .b32; for an address of 32 bits write .shared, .shared::cta or .shared::cluster into the opcode"
    )
    assert not check(HEAD + "mbarrier.init.shared.b64 [%r0], 1;\n}", follow=False).findings


def test_the_place_of_a_fault_is_the_register() -> None:
    (finding,) = check(HEAD + LOAD.format("", "[ %f0+16 ]") + "\n}")
    assert finding.source[finding.caret :][: finding.length] == "%f0"
    assert finding.message.endswith("register or a variable in .shared, .global or .local, not of .f32")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("[%r0+8]", ["note: alignment"]),
        ("[%r0+-24]", ["note: alignment"]),
        ("[tile+8]", ["warning: alignment"]),
        ("[dynamic+40]", ["warning: alignment"]),
        ("[numbered0+1]", ["warning: alignment"]),
        ("[vector+16]", []),
    ],
)
def test_offsets_keep_the_alignment(address: str, expected: list[str]) -> None:
    assert load(address, ".shared") == expected


def test_a_variable_needs_the_alignment_of_the_address() -> None:
    assert rules("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [table];") == ["note: alignment"]


@pytest.mark.parametrize(
    ("form", "stride", "expected"),
    [
        ("row.m16n16k16", "16", []),
        ("row.m16n16k16", "32", []),
        ("row.m16n16k16", "%r0", []),
        ("row.m16n16k16", "%r0+8", []),
        ("row.m16n16k16", "24", ["note: alignment"]),
        ("row.m16n16k16", "8", ["warning: stride"]),
        ("row.m16n16k16", "0", ["warning: stride"]),
        ("col.m8n32k16", "8", []),  # the default, although it is less than the bytes of a fragment
        ("row.m16n16k16", "-16", ["warning: immediate"]),
        ("row.m16n16k16", "%rd0", ["error: register-type"]),
        ("row.m16n16k16", "%rs0", ["error: register-type"]),
        ("row.m16n16k16", "%laneid", ["error: operand-kind"]),
        ("row.m16n16k16", "1.0", ["error: operand-kind"]),
        ("row.m16n16k16", "[%rd0]", ["error: operand-kind"]),
    ],
)
def test_strides(form: str, stride: str, expected: list[str]) -> None:
    assert rules(STRIDED.format(form, stride)) == expected


def test_a_line_without_names_keeps_the_type_of_the_address(catalog: Catalog) -> None:
    assert of_compact("[b16]") == Address("b16")
    legality = Legality(catalog)
    for spelling, taken in (("ldmatrix.sync.aligned.m8n8.x1.shared.b16", True), ("ldmatrix.sync.aligned.m8n8.x1.b16", False)):
        instruction, _ = legality.find(spelling) or pytest.fail(spelling)
        assert legality.accepts(instruction, [of_compact("1b32"), of_compact("[b64]")])
        assert legality.accepts(instruction, [of_compact("1b32"), of_compact("[b16]")]) == taken
        assert not legality.accepts(instruction, [of_compact("1b32"), of_compact("[f32]")])


def test_every_address_of_the_database_takes_its_register_types(catalog: Catalog) -> None:
    legality = Legality(catalog)
    count = 0
    for instruction in catalog.all():
        for form in instruction.forms:
            for operand in form.operands:
                for kind in operand.register_types if operand.alignment else ():
                    texts = [ptx.item(form, name, {operand.name: f"%{kind}_0"}) for name in ptx.items(form.syntax)]
                    values = [of_compact(text) for text in ptx.compact(ptx.line(instruction.canonical, texts)).split(" ")[1:]]
                    assert legality.accepts(instruction, values), texts
                    count += 1
    assert count > 1000


def test_inline_assembly_has_the_types_of_its_constraints() -> None:
    source = 'asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%0}}, [%1 + {}];" : "=r"(d) : "{}"(p), "n"(N));'
    assert [each.rule for each in check(source.format("16", "f"), file="a.cu")] == ["register-type"]
    for offset, constraint in (("16", "r"), ("%2", "r"), ("%2*16", "l"), ("16", "Q")):
        assert check(source.format(offset, constraint), file="a.cu").findings == ()
    assert [each.rule for each in check(source.format("%1", "r"), file="a.cu")] == ["syntax"]


def test_declarations() -> None:
    text = b"""(.param .align 8 .b8 p[16], .param .f32 q) .shared .v4 .f32 a;
.global .align 2 .b8 b[4] = {1, {2}}, c<3>; ld.shared.u32 x, [y];
.const .u16 d = 1, e[2]; .global .texref f; .global .attribute(.managed) .s32 g; .local .f16x2 h;"""
    assert [(name.decode(), count.decode(), variable) for name, count, variable in declared(text)] == [
        ("p", "", Variable("param", "", 8)),
        ("q", "", Variable("param", "f32", 4)),
        ("a", "", Variable("shared", "v4.f32", 16)),
        ("b", "", Variable("global", "", 2)),
        ("c", "3", Variable("global", "b8", 2)),
        ("d", "", Variable("const", "u16", 2)),
        ("e", "", Variable("const", "", 2)),
        ("f", "", Variable("global", "", 1)),
        ("g", "", Variable("global", "s32", 4)),
        ("h", "", Variable("local", "f16x2", 4)),
    ]


@pytest.mark.parametrize(("offset", "expected"), [(8, ["alignment"]), (16, [])])
def test_registers_are_followed_from_an_offset_in_doubt(offset: int, expected: list[str]) -> None:
    """Nothing in this kernel is asynchronous."""
    body = "mov.u32 %r1, tile; shl.b32 %r2, %r3, 4; add.u32 %r4, %r1, %r2;"
    findings = check(f"{HEAD}{body} {LOAD.format('.shared', f'[%r4+{offset}]')} ret; }}")
    assert [each.rule for each in findings if each.severity == "warning"] == expected
    assert not [each for each in check(f"{HEAD}{LOAD.format('.shared', '[%r4+8]')} ret; }}") if each.severity == "warning"]


@pytest.mark.parametrize(("size", "expected"), [("4100", ["alignment"]), ("4096", [])])
def test_sizes_in_registers_are_multiples(size: str, expected: list[str]) -> None:
    head, reduce = HEAD.replace(".target sm_80", ".target sm_90"), "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"
    findings = check(f"{head}mov.u32 %r1, {size}; {reduce} [%rd1], [tile], %r1; ret; }}")
    assert [each.rule for each in findings if each.severity != "note"] == expected


@pytest.mark.parametrize(("offset", "expected"), [(8, ["alignment"]), (16, [])])
def test_registers_are_followed_without_mbarriers(offset: int, expected: list[str]) -> None:
    body = f"cp.async.wait_all; mov.u32 %r1, tile; shl.b32 %r2, %r3, 4; add.u32 %r4, %r1, %r2; add.u32 %r5, %r4, {offset};"
    findings = check(f"{HEAD}{body} {LOAD.format('.shared', '[%r5]')} ret; }}")
    assert [each.rule for each in findings if each.severity == "warning"] == expected
