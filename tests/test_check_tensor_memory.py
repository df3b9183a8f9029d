"""What the checker says of kernels that use tensor memory."""

from __future__ import annotations

import pytest

from ptxmma.check import check
from ptxmma.check.rules_of_tensor_memory import RULES

_HEAD = ".version {}\n.target {}\n.address_size 64\n.visible .entry kernel() {{\n.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd0], 32;"
_FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;"
_LOAD, _WAIT = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0];", "tcgen05.wait::ld.sync.aligned;"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd0];"
_POLL = "mbarrier.try_wait.parity.b64 %p1, [%rd0], 0;"
_FENCE = "tcgen05.fence::after_thread_sync;"


def rules(*lines: str, target: str = "sm_100a") -> list[str]:
    """The rules that a kernel of these lines breaks."""
    text = _HEAD.format("9.4", target) + "\n".join(lines) + "\nret;\n}\n"
    return [each.rule for each in check(text)]


@pytest.mark.parametrize("name", RULES)
def test_the_examples_of_a_rule_break_it_and_mend_it(name: str) -> None:
    assert [each.rule for each in check(RULES[name].bad)] == [name]
    assert not check(RULES[name].good).findings


def test_a_kernel_that_calls_may_do_it_elsewhere() -> None:
    assert rules(_ALLOC) == ["tensor-memory-kept"]
    assert not rules(_ALLOC, "call.uni free;")
    assert not rules(_LOAD, "call.uni wait;")


def test_a_kernel_is_judged_as_a_whole() -> None:
    """On which path it frees or waits is not followed."""
    assert not rules(_FREE, _ALLOC)
    assert not rules(_LOAD, _WAIT, _LOAD)


def test_only_a_load_behind_a_wait_for_a_commit_needs_the_fence() -> None:
    assert rules(_COMMIT, _POLL, _LOAD, _WAIT) == ["missing-thread-fence"]
    assert not rules(_COMMIT, _POLL, _FENCE, _LOAD, _WAIT)
    assert not rules(_POLL, _LOAD, _WAIT)
    assert not rules(_COMMIT, _LOAD, _WAIT, _POLL)


def test_groups_are_those_of_one_kernel() -> None:
    pair = _COMMIT.replace("cta_group::1", "cta_group::2")
    assert rules(_COMMIT, pair, pair) == ["mixed-cta-groups"]
    assert not rules(_COMMIT, _COMMIT)
    first, second = (_HEAD.format("9.4", "sm_100a") + line + "\nret;\n}\n" for line in (_COMMIT, pair))
    assert not check(first + second[second.index(".visible") :].replace("kernel", "other")).findings


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p0;",
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X",
        ),
    ],
)
def test_a_chip_without_tensor_memory_multiplies_in_registers(line: str, instead: str) -> None:
    text = _HEAD.format("9.0", "sm_120a") + line + "\nret;\n}\n"
    (finding,) = check(text)
    assert finding.rule == "target"
    assert f"sm_120a multiplies with {instead}" in finding.message


def test_columns_are_powers_of_two() -> None:
    line = _ALLOC.replace(" 32;", " 96;")
    (finding,) = check(_HEAD.format("9.4", "sm_100a") + f"{line}\n{_FREE}\nret;\n}}\n")
    assert finding.message.endswith("or a power of two from 32 to 512, not 96")
