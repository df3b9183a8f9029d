"""The work of ``ptxmma check`` grows with the text: twice the text, twice the operations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from growing_sources import SOURCES
from ptxmma.check import Checker

#: Instances of what repeats in the smaller of two sources.
_COUNT = 60


def _operations(run: Callable[[], object]) -> int:
    """How many operations of the interpreter a call takes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", SOURCES)
def test_twice_the_text_takes_twice_the_work(name: str) -> None:
    source = SOURCES[name]
    small, large = (source(count).encode() for count in (_COUNT, 2 * _COUNT))
    checker = Checker()
    checker.check(small, f"warm.{name.rpartition('.')[2]}")
    work = [_operations(lambda text=text: Checker().check(text, name)) for text in (small, large)]  # type: ignore[misc]
    assert work[1] / work[0] < 1.2 * len(large) / len(small)
