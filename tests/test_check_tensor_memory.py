"""What the checker says of kernels that use tensor memory."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_HEAD = ".version {}\n.target {}\n.address_size 64\n.visible .entry kernel() {{\n.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd0], 32;"
_FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;"
_LOAD, _WAIT = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0];", "tcgen05.wait::ld.sync.aligned;"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd0];"
_POLL = "mbarrier.try_wait.parity.b64 %p1, [%rd0], 0;"
_FENCE = "tcgen05.fence::after_thread_sync;"
_F16 = "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;"


def rules(*lines: str, target: str = "sm_100a") -> list[str]:
    """The rules that a kernel of these lines breaks."""
    text = _HEAD.format("9.4", target) + "\n".join(lines) + "\nret;\n}\n"
    return [each.rule for each in check(text)]


def test_a_kernel_that_calls_may_do_it_elsewhere() -> None:
    assert rules(_ALLOC) == ["tensor-memory-kept"]
    assert not rules(_ALLOC, "call.uni release;")
    assert rules(_ALLOC, "call.uni (%r1), vprintf, (%rd0, %rd1);") == ["tensor-memory-kept"]
    assert not rules(_LOAD, "call.uni wait;")


def test_a_kernel_is_judged_as_a_whole() -> None:
    """On which path it waits is not followed, and another thread may have allocated what it frees."""
    assert not rules(_FREE, _ALLOC)
    assert not rules(_LOAD, _WAIT, _LOAD)


def test_a_load_that_nothing_follows_needs_no_wait() -> None:
    """Reading its registers waits for them."""
    store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r3};"
    shift, copy = "tcgen05.shift.cta_group::1.down [%r0];", "tcgen05.cp.cta_group::1.128x256b [%r0], %rd0;"
    alone = "reading a loaded register waits for that register alone"
    for later, severity, reason in (
        ("", "note", alone),
        (_FREE, "note", alone),
        ("st.global.b32 [%rd0], %r2;", "note", alone),
        (store, "warning", "tcgen05.st of line 7 may change the cells before they are read"),
        (shift, "warning", "tcgen05.shift of line 7 may change the cells before they are read"),
        (copy, "warning", "tcgen05.cp of line 7 may change the cells before they are read"),
        (_F16, "warning", "tcgen05.mma of line 7 may change the cells before they are read"),
    ):
        (finding,) = check(_HEAD.format("9.4", "sm_100a") + f"{_LOAD}\n{later}\n{_COMMIT}\n{_POLL}\nret;\n}}\n")
        assert (finding.rule, finding.severity) == ("unwaited-tensor-load", severity)
        assert finding.message == f"the kernel has no tcgen05.wait::ld: {reason} (PTX ISA 9.7.16.6.2.1.2 [9.4: 9.7.18.6.2.1.2])"


@pytest.mark.parametrize(
    ("computed", "severity"),
    [
        (("add.f32 %r4, %r2, %r3;", "mul.f32 %r5, %r4, %r4;"), "note"),
        (("setp.gt.f32 %p1, %r2, 0f00000000;", "selp.b32 %r5, %r3, %r1, %p1;"), "note"),
        (("mov.b64 %rd2, {%r2, %r3};", "mov.b64 {%r4, %r6}, %rd2;", "cvt.rn.f16x2.f32 %r5, %r4, %r1;"), "note"),
        (("mul.f32 %r5, %r2, %r2;",), "warning"),  # %r3 may come later
        (("add.f32 %r4, %r2, %r3;", "mul.f32 %r5, %r1, %r1;"), "warning"),
        (("st.global.v2.b32 [%rd1], {%r2, %r3};", "ld.global.b32 %r5, [%rd1];"), "warning"),  # memory is not followed
    ],
)
@pytest.mark.parametrize("behind", [(), (_F16,)])
def test_a_store_that_is_computed_from_all_that_was_loaded_waits(computed: tuple[str, ...], severity: str, behind: tuple[str, ...]) -> None:
    """So does what follows the store."""
    load, store = _LOAD.replace("x1", "x2").replace("{%r2}", "{%r2, %r3}"), "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r5};"
    lines = "\n".join((load, *computed, store, *behind, _COMMIT, _POLL))
    (finding,) = check(_HEAD.format("9.4", "sm_100a") + f"{lines}\nret;\n}}\n")
    assert (finding.rule, finding.severity) == ("unwaited-tensor-load", severity)


@pytest.mark.parametrize(
    "lines",
    [
        (_F16,),
        (_COMMIT,),
        ("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r2};",),
    ],
)
def test_other_steps_are_not_missed(lines: tuple[str, ...]) -> None:
    """Neither the commit of a product that nothing loads, nor waits for it or for stores: docs/check_judged.rst says so."""
    assert not rules(*lines)


def test_only_a_load_behind_a_wait_for_a_commit_needs_the_fence() -> None:
    assert rules(_COMMIT, _POLL, _LOAD, _WAIT) == ["missing-thread-fence"]
    assert not rules(_COMMIT, _POLL, _FENCE, _LOAD, _WAIT)
    assert not rules(_POLL, _LOAD, _WAIT)
    assert not rules(_COMMIT, _LOAD, _WAIT, _POLL)


def test_a_product_that_is_loaded_is_committed_and_waited_for() -> None:
    said = "the product of line 6 may still write what it reads"
    mend = "write it after the last product, and mbarrier.try_wait for its mbarrier before the load"
    for lines, message in (
        ((_F16, _LOAD, _WAIT), f"the kernel has no tcgen05.commit: {said}; {mend} (PTX ISA 9.7.16.6.2.1.1 [9.4: 9.7.18.6.2.1.1])"),
        ((_F16, _POLL, _LOAD, _WAIT), f"the kernel has no tcgen05.commit: {said}; {mend} (PTX ISA 9.7.16.6.2.1.1 [9.4: 9.7.18.6.2.1.1])"),
        (
            (_F16, _COMMIT, _LOAD, _WAIT),
            f"the kernel waits for no mbarrier: {said}, until that of tcgen05.commit completes; "
            "write mbarrier.try_wait for it before the load (PTX ISA 9.7.16.6.2.1.1 [9.4: 9.7.18.6.2.1.1])",
        ),
    ):
        (finding,) = check(_HEAD.format("9.4", "sm_100a") + "\n".join(lines) + "\nret;\n}\n")
        assert (finding.rule, finding.severity, finding.message) == ("untracked-product", "warning", message)
    assert not rules(_F16, _COMMIT, _POLL, _FENCE, _LOAD, _WAIT)
    assert not rules(_F16, _LOAD, _WAIT, "call.uni wait;")
    assert not rules(_F16)  # nothing reads it here


def test_operands_in_shared_memory_need_the_fence_between_proxies() -> None:
    store, barrier = "st.shared.b32 [%r3], %r4;", "bar.sync 0;"
    copy = "tcgen05.cp.cta_group::1.128x256b [%r0], %rd0;"
    bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd3], 128, [%r4];"
    for reader in (_F16, copy):
        (finding,) = check(_HEAD.format("9.4", "sm_100a") + f"{store}\n{barrier}\n{reader}\nret;\n}}\n")
        assert (finding.rule, finding.line, finding.message[-51:]) == (
            "missing-proxy-fence",
            8,
            " the barrier (PTX ISA 9.7.16.6.5 [9.4: 9.7.18.6.5])",
        )
        assert not rules(store, "fence.proxy.async.shared::cta;", barrier, reader)
        assert not rules(bulk, store, barrier, reader)
        assert not rules(reader, store)


def test_groups_are_those_of_one_kernel() -> None:
    pair = _COMMIT.replace("cta_group::1", "cta_group::2")
    for follow in (True, False):  # assemblers refuse it
        (finding,) = check(_HEAD.format("9.4", "sm_100a") + f"{_COMMIT}\n{pair}\n{pair}\nret;\n}}\n", follow=follow)
        assert (finding.rule, finding.severity, finding.line) == ("mixed-cta-groups", "error", 7)
        assert finding.message.startswith("its .cta_group::2, and that of 1 more, differ from .cta_group::1 of line 6: all")
    (finding,) = check(_HEAD.format("9.4", "sm_100a") + f"{_COMMIT}\n{pair}\nret;\n}}\n")
    assert finding.message.startswith("its .cta_group::2 differs from .cta_group::1 of line 6: all")
    assert not rules(_COMMIT, _COMMIT)
    first, second = (_HEAD.format("9.4", "sm_100a") + line + "\nret;\n}\n" for line in (_COMMIT, pair))
    assert not check(first + second[second.index(".visible") :].replace("kernel", "other")).findings


_NVF4 = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p0;"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, 1, 1, 1, 0, 0;"


@pytest.mark.parametrize(
    ("target", "line", "advice"),
    [
        ("sm_120a", _F16, "sm_120a has no tensor memory; it multiplies with mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (
            "sm_120a",
            _NVF4,
            "sm_120a has no tensor memory; it multiplies with "
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
        ),
        ("sm_120a", _FREE, "sm_120a has no tensor memory"),
        ("sm_90a", _F16, "sm_90a has no tensor memory; it multiplies with wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"),
        ("sm_100", _F16, "compile for sm_100f or sm_100a"),
        ("sm_100a", _WGMMA, "sm_100a multiplies with tcgen05.mma.cta_group::1.kind::f16"),
        ("sm_120a", _WGMMA, "sm_120a multiplies with mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("sm_90", _WGMMA, "compile for sm_90a"),
    ],
)
def test_a_chip_without_an_instruction_has_another(target: str, line: str, advice: str) -> None:
    text = _HEAD.format("9.0", target) + line + "\nret;\n}\n"
    findings = [each for each in check(text, follow=False) if each.rule == "target"]
    assert [each.message.split("]; ")[-1] for each in findings] == [advice]


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("collector::a::bogus", "'.collector::a::bogus' is not allowed here"),
        ("collector::a:fill", "'.collector::a:fill' should be '.collector::a::fill'"),
        ("collector_a::last_use", "'.collector_a::last_use' should be '.collector::a::lastuse'"),
        ("collector::b0::fill", "'.collector::b0::fill' is not allowed here"),
        ("collector::a::fill.collector::a::use", "'.collector::a::fill' and '.collector::a::use' exclude each other"),
    ],
)
def test_a_wrong_hint_is_not_a_wrong_modifier(hint: str, said: str) -> None:
    opcode = "tcgen05.mma.cta_group::1.kind::f16"
    (finding,) = check(_HEAD.format("9.0", "sm_100a") + f"{opcode}.{hint} [%r0], %rd0, %rd1, %r1, %p0;\nret;\n}}\n")
    assert finding.message == f"no such instruction: {said}; {opcode} takes '.collector::a' with ::fill, ::use, ::lastuse or ::discard"


@pytest.mark.parametrize(
    ("opcode", "allowed"),
    [
        ("mma.ws.cta_group::1.kind::f16", "'.collector::b0', '.collector::b1', '.collector::b2' or '.collector::b3' with ::fill, "),
        ("mma.cta_group::1.kind::f16.ashift", "'.collector::a' with ::lastuse or ::discard"),
    ],
)
def test_hints_depend_on_the_instruction(opcode: str, allowed: str) -> None:
    """Weight-stationary products have four buffers for B; with .ashift, A can only be discarded."""
    text = f"tcgen05.{opcode}.collector::a::fill [%r0], [%r2], %rd1, %r1, %p0;\nret;\n}}\n"
    (finding,) = check(_HEAD.format("9.0", "sm_100a") + text)
    assert f"'.collector::a::fill' is not allowed here; tcgen05.{opcode} takes {allowed}" in finding.message


def test_columns_are_powers_of_two() -> None:
    line = _ALLOC.replace(" 32;", " 96;")
    (finding,) = check(_HEAD.format("9.4", "sm_100a") + f"{line}\n{_FREE}\nret;\n}}\n")
    assert finding.message.endswith("or a power of two from 32 to 512, not 96")


_TAKE = "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd0], {};"
_GIVE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, {};"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([_TAKE.format(64), _GIVE.format(32)], ["it frees 32 columns, and no tcgen05.alloc of the kernel has as many"]),
        ([_TAKE.format(64), _TAKE.format(32), _GIVE.format(32), _GIVE.format(64)], []),
        ([_TAKE.format(64), "mov.b32 %r1, 64;", _GIVE.format("%r1")], []),
        ([_TAKE.format(64), "mov.b32 %r1, 128;", _GIVE.format("%r1")], ["it frees 128 columns"]),
        (["mov.b32 %r1, 64;", _TAKE.format("%r1"), _GIVE.format(512)], ["it frees 512 columns"]),
        (
            ["mov.b32 %r1, 96;", _TAKE.format("%r1"), _GIVE.format("%r1")],
            ["nCols is 96 here; it must be a power of two from 32 to 512"] * 2,
        ),
        ([_TAKE.format("%r1"), _GIVE.format(32)], []),
        ([_TAKE.format(64), "call.uni other;", _GIVE.format(32)], []),
    ],
)
def test_columns_that_are_freed_were_allocated(lines: list[str], said: list[str]) -> None:
    text = _HEAD.format("9.4", "sm_100a") + "\n".join(lines) + "\nret;\n}\n"
    findings = [each for each in check(text) if each.severity != "note"]
    assert {each.rule for each in findings} <= {"tensor-memory-columns"}
    assert len(findings) == len(said)
    assert all(part in each.message for part, each in zip(said, findings, strict=True))


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a", ""])
def test_a_load_writes_all_of_its_registers(target: str) -> None:
    """Assemblers refuse a sink in tcgen05.ld for every target, though mma takes one."""
    directives = f".version 8.8\n.target {target}\n" if target else ""
    body = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, LAST}, [%r2]; tcgen05.wait::ld.sync.aligned;"
    module = f"{directives}.entry kernel() {{ .reg .b32 %r<4>; {body} }}"
    assert not check(module.replace("LAST", "%r1")).findings
    (finding,) = check(module.replace("LAST", "_"))
    assert (finding.rule, finding.severity, finding.source[finding.caret]) == ("sink", "error", "_")


_SHIFTING, _READING = (f"tcgen05.mma.cta_group::1.kind::f16{shift} [%r0], [%r2], %rd0, %r1, %p0;" for shift in (".ashift", ""))
_STORED = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r3};"


def shifted(*lines: str) -> list[str]:
    """The places at which a kernel of these lines reads A shifted, with the line of the product that shifted it."""
    findings = check(_HEAD.format("9.4", "sm_100a") + "\n".join(lines) + "\nret;\n}\n")
    notes = [each for each in findings if each.rule == "shifted-operand"]
    assert all(each.severity == "note" for each in notes)
    return [f"{each.line}:{each.column} {each.message.split(' has .ashift')[0]}" for each in notes]


def test_what_reads_a_after_a_shift_is_noted() -> None:
    after = "7:43 the product of line 6"
    assert shifted(_SHIFTING, _READING) == [after]
    assert shifted(_SHIFTING, _READING.replace("::f16", "::f16.collector::a::discard")) == ["7:65 the product of line 6"]
    assert shifted(_SHIFTING, _F16, _READING) == ["8:43 the product of line 6"]
    assert shifted("again:", _SHIFTING, "@%p1 bra again;") == ["7:50 the product of line 7"]
    elected = "elect.sync _|%p1, -1;"  # as 1cta_mma_a_from_tmem.py of CUTLASS issues both
    assert shifted(elected, "@!%p1 bra on;", _SHIFTING, "on:", elected, "@!%p1 bra end;", _READING, "end:") == [
        "12:43 the product of line 8"
    ]


def test_nothing_is_noted_where_a_may_be_another() -> None:
    assert not shifted(_READING, _SHIFTING)
    assert not shifted(_SHIFTING, _READING.replace("[%r2]", "[%r2+8]"))
    assert not shifted(_SHIFTING, _READING.replace("[%r2]", "[%r4]"), _F16)
    assert not shifted("mov.b32 %r2, 0;", _SHIFTING, "add.s32 %r2, %r2, 8;", _READING)
    for between in (
        _STORED,
        _POLL,
        "bar.sync 0;",
        "tcgen05.cp.cta_group::1.128x256b [%r2], %rd0;",
        "tcgen05.shift.cta_group::1.down [%r2];",
    ):
        assert not shifted(_SHIFTING, between, _READING)
    assert not shifted("@%p1 bra other;", _SHIFTING, "ret;", "other:", _READING)


_ROLES = (
    ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry kernel(.param .u32 n)\n.reqntid 160\n{{\n"
    ".reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .pred %p<9>; .shared .align 8 .b64 full; .shared .align 8 .b64 empty; "
    ".shared .align 8 .b8 slot[8];\n"
    "mov.u32 %r1, %tid.x; ld.param.u32 %r8, [n]; setp.ne.u32 %p1, %r1, 0; @%p1 bra on;\n"
    "mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [empty], 128;\n"
    "on: bar.sync 0; ld.shared.b32 %r0, [slot]; mov.u32 %r10, 0; setp.lt.u32 %p2, %r1, 128; @%p2 bra read; "
    "setp.ne.u32 %p3, %r1, 128; @%p3 bra done;\n"
    "issue: and.b32 %r11, %r10, 1; xor.b32 %r12, %r11, 1;\n{empty}\n{mma_after}\n"
    "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r2, 0;\n"
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [full];\n"
    "add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, %r8; @%p5 bra issue; bra done;\n"
    "read: and.b32 %r11, %r10, 1;\npoll: mbarrier.try_wait.parity.shared.b64 %p4, [full], %r11; @!%p4 bra poll;\n{load_after}\n"
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r0]; tcgen05.wait::ld.sync.aligned;\n{before}\n{told}\n"
    "add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, %r8; @%p5 bra read;\ndone: ret;\n}}\n"
)
_EMPTY = "spin: mbarrier.try_wait.parity.shared.b64 %p6, [empty], %r12; @!%p6 bra spin;"
_BEFORE, _AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"


@pytest.mark.parametrize("meeting", [(_EMPTY, "mbarrier.arrive.shared.b64 _, [empty];"), ("bar.sync 1, 160;", "bar.arrive 1, 160;")])
@pytest.mark.parametrize("missing", ["", "before", "mma_after", "load_after"])
def test_a_fence_between_two_roles(meeting: tuple[str, str], missing: str) -> None:
    fences = {"before": _BEFORE, "mma_after": _AFTER, "load_after": _AFTER} | ({missing: ""} if missing else {})
    found = check(_ROLES.format(empty=meeting[0], told=meeting[1], **fences))
    said = [each.message.split(" comes")[0] for each in found if each.rule == "missing-thread-fence"]
    assert said == ([f"no {(_BEFORE if missing == 'before' else _AFTER)[:-1]}"] if missing else [])


def test_a_barrier_that_no_product_follows_needs_no_fence() -> None:
    apart = _ROLES.format(empty=_EMPTY, told="mbarrier.arrive.shared.b64 _, [empty];", before=_BEFORE, mma_after=_AFTER, load_after=_AFTER)
    stored = apart.replace(_BEFORE, f"bar.sync 2, 128; {_BEFORE}")  # of the threads that load
    assert [each for each in check(stored) if each.rule == "missing-thread-fence"] == []


@pytest.mark.parametrize(("thread", "rules"), [(5, ["missing-thread-fence"]), (159, [])])
def test_a_fence_is_asked_of_threads_that_load_alone(thread: int, rules: list[str]) -> None:
    """Roles whose paths meet: the thread that tells is one of those that load, or another."""
    roles = _ROLES.format(empty=_EMPTY, told="", before="", mma_after=_AFTER, load_after=_AFTER)
    told = f"done: setp.ne.u32 %p7, %r1, {thread}; @%p7 bra end; mbarrier.arrive.shared.b64 _, [empty];\nend: ret;"
    found = check(roles.replace("[empty], 128", "[empty], 1").replace("done: ret;", told))
    assert [each.rule for each in found if each.rule == "missing-thread-fence"] == rules
