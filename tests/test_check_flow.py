"""Fences and waits of asynchronous instructions: the missing ones, and nothing else, are reported."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_calls import Nvcc
from ptxmma.catalog.instructions import Catalog
from ptxmma.check import check, flow
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.outline import Outline
from ptxmma.ptx.statements import functions

_D = "{%f0, %f1, %f2, %f3}"
_MMA = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_D}, %d0, %d1, 1, 1, 1, 0, 0;"
_FROM_REGISTERS = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_D}, {{%r0, %r1, %r2, %r3}}, %d1, 1, 1, 1, 0;"
_OTHER_SHAPE = f"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {_D}, %d0, %d1, 1, 1, 1;"
_FENCE, _COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
_WAIT, _WAIT_1 = "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;"
_READ = "st.global.f32 [%d3], %f1;"
_WRITE = "mov.f32 %f1, 0f00000000;"
_WRITE_A = "add.u32 %r2, %r5, %r6;"
_SOUND = [_FENCE, _MMA, _COMMIT, _WAIT, _READ]


def module(body: list[str], kind: str = ".visible .entry") -> str:
    declarations = ".reg .f32 %f<128>; .reg .b32 %r<50>; .reg .b64 %d<50>; .reg .pred %p<50>;"
    return "\n".join([".version 8.2", ".target sm_90a", f"{kind} kernel()", "{", declarations, *body, "ret;", "}", ""])


def reported(*body: str, kind: str = ".visible .entry") -> list[tuple[str, str]]:
    """The rule and the line of each warning."""
    text = module(list(body), kind)
    lines = text.split("\n")
    findings = [finding for finding in check(text) if finding.severity != "note"]
    assert all(finding.severity == "warning" for finding in findings), findings
    assert all(finding.source[finding.caret :].startswith(lines[finding.line - 1][finding.column - 1 :]) for finding in findings)
    return [(finding.rule, lines[finding.line - 1]) for finding in findings]


_FENCE_MISSING, _WAIT_MISSING = "missing-fence", "missing-wait"


def test_the_order_of_the_manual_is_sound() -> None:
    assert reported(*_SOUND) == []
    assert reported(_WRITE, _FENCE, _MMA, _MMA, _COMMIT, _WAIT, _READ, _WRITE, _FENCE, _MMA, _COMMIT, _WAIT, _READ) == []


@pytest.mark.parametrize(
    ("body", "rule", "place"),
    [
        ([_MMA, _COMMIT, _WAIT, _READ], _FENCE_MISSING, 0),
        ([_FENCE, _WRITE, _MMA, _COMMIT, _WAIT], _FENCE_MISSING, 2),
        ([_FENCE, _MMA, _OTHER_SHAPE, _COMMIT, _WAIT], _FENCE_MISSING, 2),
        ([_FENCE, _WRITE_A, _FROM_REGISTERS, _COMMIT, _WAIT], _FENCE_MISSING, 2),
        ([_FENCE, "add.u32 %r20, %r21, %r22;", "mov.b32 %r0, %r20;", _FROM_REGISTERS, _COMMIT, _WAIT], _FENCE_MISSING, 3),
        ([_FENCE, "mov.u32 %r0, %tid.x;", _FROM_REGISTERS, _COMMIT, _WAIT], _FENCE_MISSING, 2),
        ([_FENCE, _MMA, _READ], _WAIT_MISSING, 2),
        ([_FENCE, _MMA, _COMMIT, _READ], _WAIT_MISSING, 3),
        ([_FENCE, _MMA, _WAIT, _READ], _WAIT_MISSING, 3),
        ([_FENCE, _MMA, _COMMIT, _WAIT_1, _READ], _WAIT_MISSING, 4),
        ([_FENCE, _MMA, _COMMIT, _WRITE, _WAIT], _WAIT_MISSING, 3),
        ([_FENCE, _FROM_REGISTERS, _COMMIT, _WRITE_A, _WAIT], _WAIT_MISSING, 3),
        ([_FENCE, _MMA, _COMMIT, "add.f32 %f9, %f8, %f3;", _WAIT], _WAIT_MISSING, 3),
        ([_FENCE, _MMA, _COMMIT, "@%p1 " + _READ, _WAIT], _WAIT_MISSING, 3),
        ([_FENCE, _MMA, _COMMIT, "mov.b32 %r9, %f2;", "add.u32 %r9, %r9, 1;", _WAIT], _WAIT_MISSING, 4),
        ([_FENCE, _MMA, _COMMIT, "mov.b64 %d8, {%f1, %f2};", "st.global.b64 [%d3], %d8;", _WAIT], _WAIT_MISSING, 4),
        ([_FENCE, _MMA.replace(_D, "{%r20, %r21, %r22, %r23}"), _FROM_REGISTERS.replace("%r0", "%r21"), _COMMIT, _WAIT], _WAIT_MISSING, 2),
    ],
)
def test_each_hazard_is_reported(body: list[str], rule: str, place: int) -> None:
    assert reported(*body) == [(rule, body[place])]


@pytest.mark.parametrize(
    "body",
    [
        [_FENCE, _MMA, _COMMIT, _FENCE, _MMA.replace("%f", "%f1"), _COMMIT, _WAIT_1, _READ, _WAIT],
        [_FENCE, _FROM_REGISTERS, _COMMIT, "add.u32 %r9, %r2, %r2;", _WAIT],  # A may be read meanwhile
        [_FENCE, _MMA, _FENCE, _OTHER_SHAPE, _COMMIT, _WAIT, _READ],
        [_FENCE, _MMA, _COMMIT, "call_is_no_call: mov.u32 %r7, %r8;", _WAIT, _READ],
        [_FENCE, _MMA, _COMMIT, "mov.f32 %f9, %f1;", _WAIT, "st.global.f32 [%d3], %f9;"],  # another name
        [_FENCE, _MMA, _COMMIT, "mov.f32 %f9, %f1;", "mov.f32 %f1, %f9;", _FENCE, _MMA, _COMMIT, _WAIT, _READ],
        [_FENCE, _MMA, _COMMIT, "mov.b64 {%f8, %f9}, %d8; mov.b64 %d8, {%f1, %f2};", _WAIT, "st.global.b64 [%d3], %d8;"],  # in parts
        [_FENCE, _MMA, _COMMIT, "call.uni (%r1), wait_for_it, (%r2);", _READ],
        ["add.u32 %r20, %r21, %r22;", _FENCE, "mov.b32 %r0, %r20;", _FROM_REGISTERS, _COMMIT, _WAIT],  # written before the fence
        ["add.u32 %r20, %r21, %r22;", _FENCE, "mov.b32 %f1, %r20;", _MMA, _COMMIT, _WAIT],
        ["ld.global.b64 %d9, [%d3];", _FENCE, "mov.b64 {%r0, %r1}, %d9;", _FROM_REGISTERS, _COMMIT, _WAIT],
        ["add.u32 %r20, %r21, %r22;", _FENCE, "mov.b32 %r19, %r20; mov.b32 %r0, %r19;", _FROM_REGISTERS, _COMMIT, _WAIT],
        [_FENCE, "{ .reg .f32 %f1; mov.f32 %f1, 0f00000000; }", _MMA, _COMMIT, "{ .reg .f32 %f<4>; add.f32 %f1, %f2, %f3; }", _WAIT],
        ["@%p1 bra A;", _FENCE, "A:", _MMA, _COMMIT, _WAIT],  # p1 may be true only after a fence
        [_FENCE, _MMA, _COMMIT, "@%p1 bra A;", _WAIT, "A:", "@%p1 bra B;", _READ, "B:", _WAIT],
        [_FENCE, _MMA, _COMMIT, "@%p1 wgmma.wait_group.sync.aligned 0;", "@%p1 " + _READ, _WAIT],
        [_FENCE, "@%p1 " + _WRITE, "@!%p1 " + _MMA, "@!%p1 " + _COMMIT, _WAIT],
        ["bra A;", _MMA, "A:"],  # unreachable
        [_FENCE, _MMA, _COMMIT, "@%p1 bra A;", "trap;", "A:", _WAIT, _READ],
    ],
)
def test_sound_code_has_no_findings(body: list[str]) -> None:
    assert reported(*body) == []


@pytest.mark.parametrize("name", ["vprintf", "__assertfail"])
def test_functions_of_the_system_wait_for_nothing(name: str) -> None:
    assert reported(_FENCE, _MMA, _COMMIT, f"call.uni (%r1), {name}, (%r2);", _READ) == [(_WAIT_MISSING, _READ)]


def test_a_function_may_have_been_called_behind_a_fence() -> None:
    assert reported(_MMA, _COMMIT, _WAIT, _READ, kind=".func") == []
    assert reported(_WRITE, _MMA, _COMMIT, _WAIT, _READ, kind=".func") == [(_FENCE_MISSING, _MMA)]


_LOOP = ["$L: mov.u32 %r1, %r2;", "{body}", "@%p1 bra $L;"]


def loop(*body: str) -> list[str]:
    return [_LOOP[0], *body, _LOOP[2]]


def test_loops() -> None:
    """The first round sees what came before the loop, the others what the loop left."""
    sound = [_FENCE, _MMA, _COMMIT, _WAIT_1]
    assert reported(*loop(*sound), _WAIT, _READ) == []
    assert reported(*loop(*sound), _READ, _WAIT) == [(_WAIT_MISSING, _READ)]
    assert reported(_FENCE, *loop(_MMA, _COMMIT, _WAIT), _READ) == []  # accumulators of one shape need no fence between
    assert reported(_FENCE, *loop(_MMA, _COMMIT, _WAIT, _WRITE), _READ) == [(_FENCE_MISSING, _MMA)]
    assert reported(_FENCE, _WRITE, *loop(_MMA, _COMMIT, _WAIT), _READ) == [(_FENCE_MISSING, _MMA)]
    assert reported(*loop(_READ, *sound), _WAIT) == [(_WAIT_MISSING, _READ)]
    assert reported(*loop(_FENCE, _FROM_REGISTERS, _COMMIT, _WAIT, _WRITE_A)) == []
    assert reported(*loop(_WRITE_A, _FENCE, _FROM_REGISTERS, _COMMIT, _WAIT_1)) == [(_WAIT_MISSING, _WRITE_A)]


def test_a_branch_round_a_loop_does_not_excuse_it() -> None:
    body = [_FENCE, _MMA, _COMMIT, "@%p2 bra $END;", *loop(_FENCE, _MMA, "{commit}", _WAIT_1), "$END:", _WAIT, _READ]
    assert reported(*(line.replace("{commit}", _COMMIT) for line in body)) == []
    assert reported(*(line.replace("{commit}", "") for line in body)) == [(_WAIT_MISSING, _READ)]


def test_nested_loops_and_tables_of_branches() -> None:
    inner = [line.replace("$L", "$M") for line in loop(_FENCE, _MMA, _COMMIT, _WAIT_1)]
    assert reported(*loop(*inner, _WAIT, _READ)) == []
    assert reported(*loop(*inner, _READ, _WAIT)) == [(_WAIT_MISSING, _READ)]
    table = ["$T: .branchtargets $A, $B;", "brx.idx %r1, $T;", "$A:", "{}", "bra.uni $END;", "$B:", _WAIT, "$END:", _READ]
    assert reported(_FENCE, _MMA, _COMMIT, *(line.replace("{}", "") for line in table)) == []
    assert reported(_FENCE, _MMA, _COMMIT, *(line.replace("{}", _READ) for line in table[:-1])) == [(_WAIT_MISSING, _READ)]


@pytest.mark.parametrize("nested", [False, True])
def test_a_branch_over_statements_is_a_predicate_on_them(nested: bool) -> None:
    """What they touch counts, what they write does not."""

    def skipped(*body: str) -> list[str]:
        inner = ["@%p2 bra B;", *body, "B:"] if nested else body
        return ["@%p1 bra A;", *inner, "A:"]

    assert reported(_FENCE, _MMA, _COMMIT, *skipped(_READ), _WAIT) == [(_WAIT_MISSING, _READ)]
    assert reported(_FENCE, *skipped(_WRITE), _MMA, _COMMIT, _WAIT) == []
    assert reported(_FENCE, *skipped("ret;"), _WRITE, _MMA, _COMMIT, _WAIT) == [(_FENCE_MISSING, _MMA)]
    assert reported(_FENCE, *skipped("bra C;"), _WRITE, "C:", _MMA, _COMMIT, _WAIT) == []
    assert reported(_FENCE, _MMA, _COMMIT, "C:", *skipped(), "@%p3 bra C;", _READ, _WAIT) == [(_WAIT_MISSING, _READ)]


def test_a_branch_over_a_branch_repeats_a_loop() -> None:
    repeated = ["$L:", _MMA, "{}", "@%p1 bra DONE;", "bra $L;", "DONE:", _COMMIT, _WAIT]
    assert reported(_FENCE, *(line.replace("{}", "") for line in repeated)) == []
    assert reported(_FENCE, *(line.replace("{}", _FENCE) for line in repeated)) == []
    late = [_FENCE, "$L:", _READ, _MMA, _COMMIT, "@%p1 bra DONE;", "bra $L;", "DONE:", _WAIT]
    assert reported(*late) == [(_WAIT_MISSING, _READ)]


def test_branches_that_need_the_fence_for_different_reasons() -> None:
    def either(one: str, other: str) -> list[str]:
        return ["@%p1 bra ONE;", other, "bra.uni END;", "ONE:", one, "END:"]

    other_write = "mov.f32 %f2, 0f00000000;"
    assert reported(_FENCE, *either(_WRITE, other_write), _MMA, _COMMIT, _WAIT) == [(_FENCE_MISSING, _MMA)]
    assert reported(*either(_FENCE + _WRITE, ""), _MMA, _COMMIT, _WAIT) == [(_FENCE_MISSING, _MMA)]  # none at all on the other one
    assert reported(_FENCE, *either(_OTHER_SHAPE, _WRITE), _MMA, _COMMIT, _WAIT) == [(_FENCE_MISSING, _MMA)]
    nested = [*either(_WRITE, other_write), *(line.replace("ONE", "TWO").replace("END", "OUT") for line in either(_FENCE + _WRITE, ""))]
    assert reported(_FENCE, *nested, _MMA, _COMMIT, _WAIT) == [(_FENCE_MISSING, _MMA)]
    assert reported(_FENCE, *either(_WRITE, ""), _MMA, _COMMIT, _WAIT) == []
    assert reported(_FENCE, *either(_WRITE, "mov.f32 %f9, 0f00000000;"), _MMA, _COMMIT, _WAIT) == []  # no register of the instruction
    assert reported(_FENCE, *either(_WRITE, other_write), _FENCE, _MMA, _COMMIT, _WAIT) == []
    assert reported(_FENCE, *either(_WRITE, other_write), "@%p2 " + _MMA, _COMMIT, _WAIT) == [(_FENCE_MISSING, "@%p2 " + _MMA)]
    (finding,) = check(module([_FENCE, *either(_WRITE, other_write), _MMA, _COMMIT, _WAIT]))
    assert finding.message == (
        "%f2 was last accessed by an ordinary instruction in line 8, without a wgmma.fence in between; on another path, "
        "%f1 was last accessed by an ordinary instruction in line 11, without a wgmma.fence in between; "
        "behaviour is undefined (PTX ISA 9.7.15.7.1 [9.4: 9.7.17.7.1])"
    )


def test_labels_of_blocks() -> None:
    """Compilers repeat a block, each with its own label of the same name."""
    block = "{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], %r2; @P1 bra DONE; bra LAB_WAIT; DONE: }"
    assert reported(block, _FENCE, block, _MMA, _COMMIT, block, _WAIT, block, _READ) == []
    assert reported(block, _FENCE, block, _MMA, _COMMIT, block, _READ, block) == [(_WAIT_MISSING, _READ)]


@pytest.mark.parametrize("body", [["bra NOWHERE;"], ["{"], ["}", "}"], ["{ A: }", "bra A;"]])
def test_what_cannot_be_followed_is_passed_over(body: list[str]) -> None:
    assert reported(_FENCE, _MMA, _READ, *body) in ([], [(_WAIT_MISSING, _READ)])


def test_messages_say_what_to_do() -> None:
    (finding,) = check(module([_FENCE, _MMA, _COMMIT, _WAIT_1, _READ]))
    assert finding.instruction == _MMA.split()[0]
    assert finding.message == (
        "%f1 is used while the wgmma.mma_async of line 7 may still write it: wgmma.wait_group 0 is missing; "
        "behaviour is undefined (PTX ISA 9.7.15.7.3 [9.4: 9.7.17.7.3])"
    )
    assert (finding.line, finding.column, finding.length) == (10, 22, 3)
    (finding,) = check(module([_FENCE, _WRITE, _MMA]))
    assert finding.message == (
        "%f1 was last accessed by an ordinary instruction in line 7, without a wgmma.fence in between; "
        "behaviour is undefined (PTX ISA 9.7.15.7.1 [9.4: 9.7.17.7.1])"
    )
    (finding,) = check(module([_FENCE, _FROM_REGISTERS, _WRITE_A]))
    assert (
        "is written while the wgmma.mma_async of line 7 may still read it: wgmma.commit_group and wgmma.wait_group 0 are" in finding.message
    )


def test_nothing_is_followed_if_it_is_not_wanted() -> None:
    assert not check(module([_MMA]), follow=False).findings


def test_a_module_for_debugging_has_one_note() -> None:
    """A compiler for debugging copies registers between any two instructions."""
    body = [_MMA, _READ]
    sound = module(body)
    twice = sound + sound[sound.index(".visible") :].replace("kernel", "other")
    assert [each.rule for each in check(twice)] == [_FENCE_MISSING, _WAIT_MISSING] * 2
    (note,) = check(twice.replace("sm_90a", "sm_90a, debug"))
    assert (note.severity, note.rule, note.line) == ("note", "debug-build", sound.split("\n").index(_MMA) + 1)
    assert not check(module(["ret;"]).replace("sm_90a", "sm_90a, debug")).findings


def test_families_of_other_specs_are_followed_by_what_their_spec_says(catalog: Catalog) -> None:
    """Instructions, roles and sections come from the database."""
    protocol = flow.protocol(catalog)
    assert protocol is not None
    sparse = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, %r8, 0, 1, 1, 1, 0, 0;"
    assert reported(sparse) == [(_FENCE_MISSING, sparse)]
    spec = msgspec.structs.replace(catalog.database.spec, protocols=())
    assert flow.protocol(Catalog(msgspec.structs.replace(catalog.database, spec=spec))) is None


def test_shapes_are_those_of_the_database(catalog: Catalog) -> None:
    protocol = flow.protocol(catalog)
    assert protocol is not None
    assert protocol.shape(b"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16") == b"m64n8k16"
    assert protocol.shape(b"wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16") == b"unknown"


@given(st.lists(st.sampled_from([*_SOUND, _WRITE, _WAIT_1, "@%p1 bra A;", "A:", "{", "}", "bra B;", "B:", "ret;", "@%p2"]), max_size=14))
def test_anything_is_followed_to_its_end(catalog: Catalog, body: list[str]) -> None:
    rules = flow.protocol(catalog)
    assert rules
    text = module([_MMA, *body]).encode()
    for function in functions([text], Opcodes(catalog.database.spec)):
        for hazard in flow.hazards(function, Outline(function.text, rules.opcodes), rules):
            assert function.text[hazard.offset : hazard.offset + hazard.length].strip()


def test_many_branches_take_no_time() -> None:
    """A function that would take too much memory is not followed."""
    accumulators = "{" + ", ".join(f"%f{number}" for number in range(128)) + "}"
    mma = f"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {accumulators}, %d0, %d1, 1, 1, 1, 0, 0;"
    body = [_FENCE, mma, *(f"$L{number}: mov.f32 %f{number % 128}, %f1; @%p1 bra $L{number // 2};" for number in range(20_000)), _READ]
    assert reported(*body) in ([], [(_WAIT_MISSING, _READ)])


def test_a_table_of_many_branches_is_passed_over() -> None:
    """Each branch may go to every target."""
    labels = [f"$L{number}" for number in range(1000)]
    body = [_FENCE, _MMA, f"$T: .branchtargets {', '.join(labels)};", *(f"{label}: brx.idx %r1, $T;" for label in labels), _READ]
    assert reported(*body) == []


_KERNEL = r"""
#include <cstdint>
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int N> __device__ void wait() { asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory"); }
__device__ void hold(float (&d)[4]) {
  for (int i = 0; i < 4; i++) asm volatile("" : "+f"(d[i])::"memory");
}
__device__ void mma(float (&d)[4], uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1, 0;\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__global__ void kernel(const uint32_t* in, float* out, uint64_t b, int tiles, int length) {
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float d[4] = {0, 0, 0, 0};
    uint32_t a[2][4];
    for (int i = 0; i < 4; i++) a[0][i] = in[tile * 4 + i];
    hold(d); fence(); mma(d, a[0], b); commit();
    for (int k = 1; k < length; k += 2) {
      for (int i = 0; i < 4; i++) a[1][i] = in[k * 4 + i];
      hold(d); fence(); mma(d, a[1], b + k); commit(); wait<1>(); hold(d);
      for (int i = 0; i < 4; i++) a[0][i] = in[k * 4 + i + 4];
      hold(d); fence(); mma(d, a[0], b + k); commit(); wait<0>(); hold(d);
    }
    wait<0>(); hold(d);
    if (threadIdx.x < length)
      for (int i = 0; i < 4; i++) out[tile * 512 + threadIdx.x * 4 + i] = d[i] * 2;
  }
}
"""


@pytest.mark.nvcc
def test_code_of_a_compiler(compiler: Nvcc, tmp_path: Path) -> None:
    """The compiler copies registers and turns branches round; the sound kernel stays sound, and each missing part is reported."""
    text = compiler.ptx_of(_KERNEL, "sm_90a", tmp_path)
    assert not check(text).findings
    parts = list(re.finditer(r"wgmma\.(?:fence|commit_group|wait_group)[^;]*;", text))
    assert len(parts) >= 9
    missed = 0
    for part in parts:
        findings = check(text[: part.start()] + text[part.end() :])
        missed += bool(findings.findings)
        assert {finding.rule for finding in findings} <= {"missing-fence", "missing-wait"}
    assert missed >= 6


def test_a_register_of_an_inner_scope_is_another_one() -> None:
    """It may have the name of an accumulator that is at work; outside the scope, the name is the accumulator's."""
    inner = "{ .reg .f32 %f<4>; add.f32 %f1, %f2, %f3; }"
    assert reported(_FENCE, _MMA, _COMMIT, inner, _WAIT) == []
    assert reported(_FENCE, _MMA, _COMMIT, inner, _READ, _WAIT) == [(_WAIT_MISSING, _READ)]


@pytest.mark.parametrize("head", ["LABEL:", ".loc 1 2 3\n", "{ }", "@%p1 bra LABEL; LABEL:"])
def test_what_precedes_an_access_does_not_hide_it(head: str) -> None:
    body = [_FENCE, _MMA, _COMMIT, f"{head} {_READ}", _WAIT]
    assert [rule for rule, _ in reported(*body)] == [_WAIT_MISSING]


@pytest.mark.parametrize(
    "between", ["ld.shared.v2.u32 { %r2, %r3 }, [%d3];", "{ { add.u32 %r5, %r6, %r7; } }", "{{LABEL: @%p1 bra LABEL;}}"]
)
def test_neither_lists_nor_scopes_end_a_function(between: str) -> None:
    body = [_FENCE, _MMA, _COMMIT, between, "{ .reg .pred %p<4>;", _READ, "}", _WAIT]
    assert reported(*body) == [(_WAIT_MISSING, _READ)]


def test_scopes_without_blanks() -> None:
    body = [_FENCE, _MMA, _COMMIT, "{add.u32 %r5, %r6, %r7;}", "{.reg .f32 %f<4>;add.f32 %f1, %f2, %f3;}", _WAIT, _READ]
    assert reported(*body) == []
