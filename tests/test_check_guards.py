"""Conditions on the architecture round ``asm`` statements."""

from __future__ import annotations

import pytest

from ptxmma.check import Checker
from ptxmma.check.rules import RULES

_CODE = RULES["architecture-guard"].bad
_CONDITION = "#if __CUDA_ARCH__ >= 1200\n"


def said(text: str, target: str | None = None) -> list[str]:
    """The messages about guards."""
    return [each.message for each in Checker(target=target).check(text, "a.cu") if each.rule == "architecture-guard"]


def guarded(condition: str) -> str:
    assert _CONDITION in _CODE
    return _CODE.replace(_CONDITION, f"{condition}\n")


def test_a_guard_that_lets_a_plain_target_through() -> None:
    assert said(_CODE) == [
        "#if __CUDA_ARCH__ >= 1200 also holds for sm_120, which does not have it: compile for sm_120a "
        "(CMAKE_CUDA_ARCHITECTURES 120a), and ask for __CUDA_ARCH_FEAT_SM120_ALL"
    ]
    assert said(_CODE, "sm_120a") == said(_CODE, "sm_120") == []  # the target is known


@pytest.mark.parametrize(
    "condition",
    [
        "#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1200)",
        "#if (defined __CUDA_ARCH__ && __CUDA_ARCH__ > 1100)  // Blackwell",
        "#if __CUDA_ARCH__ == 1200 /* GeForce */",
        "#ifndef MMA_CUH_\n#ifdef __CUDA_ARCH__\n#if __CUDA_ARCH__ >= 1000",
        "#if __CUDA_ARCH__ >= 900\n#endif\n#if __CUDA_ARCH__ >= 1200",
    ],
)
def test_conditions_that_are_understood(condition: str) -> None:
    (message,) = said(guarded(condition))
    assert "also holds for sm_1" in message


@pytest.mark.parametrize(
    "condition",
    [
        "#if 1",
        "#ifdef __CUDA_ARCH__",
        "#if defined(__CUDA_ARCH_FEAT_SM120_ALL)",
        "#if __CUDA_ARCH__ >= 1200 && defined(__CUDA_ARCH_FEAT_SM120_ALL)",
        "#ifdef ENABLED\n#if __CUDA_ARCH__ >= 1200",  # it may ask for more
        "#if __CUDA_ARCH__ >= 1200 || defined(ANY)",
        "#if __CUDA_ARCH__ >= 1200 \\\n && ENABLED",
        "#if __CUDA_ARCH__ >= 1300\n#else",
        "#if __CUDA_ARCH__ >= 1200\n#endif",
        "#if __CUDA_ARCH__ < 900",  # no target has it: another fault
        "#if __CUDA_ARCH__ >= MINIMUM",
    ],
)
def test_others_are_passed_over(condition: str) -> None:
    assert said(guarded(condition)) == []


def test_an_instruction_of_plain_targets_needs_no_feature() -> None:
    line = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
    operands = ': "+d"(x), "+d"(y) : "d"(a), "d"(b)'
    assert said(f'#if __CUDA_ARCH__ >= 900\nvoid f() {{ asm("{line}" {operands}); }}\n#endif\n') == []
