"""Published peaks."""

from __future__ import annotations

from ptxmma.model.conditions import Condition, Entry


class Rate(Entry, frozen=True, kw_only=True):
    """What a chip's tensor cores do at most with operands of some types; a multiplication and an addition count as two operations."""

    of: tuple[Condition, ...]  # the instructions: {"atype": ("f16",)}
    dense: int  # operations in each SM and clock: 2048
    sparse: int = 0  # the same with a sparse A, its zeros counted as if they were multiplied; 0: not published
    published: tuple[str, ...]  # the maker's own numbers for the whole chip in 10**12 a second, dense and sparse: ("312", "624")


class Throughput(Entry, frozen=True, kw_only=True):
    """The published peak of a chip at one clock."""

    chip: str  # "NVIDIA A100 (SXM4)"
    target: str  # "sm_80"
    sms: int  # 108
    clock: int  # MHz at which the published numbers hold: 1410
    rates: tuple[Rate, ...]
    source: str
