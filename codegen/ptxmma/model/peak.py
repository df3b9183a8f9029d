"""Published peaks."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ptxmma.model.conditions import Condition, Entry
from ptxmma.model.fields import SOME, Positive, Source, TargetName, Text, like


class Rate(Entry, frozen=True, kw_only=True):
    """The peak rate of a chip's tensor cores for operands of some types; a multiplication and an addition count as two operations."""

    of: tuple[Condition, ...]  # the instructions: {"atype": ("f16",)}
    dense: Annotated[Positive, Meta(description="operations in each SM and clock")]  # 2048
    sparse: Annotated[Positive, Meta(description="operations in each SM and clock, zeros included")] = (
        0  # the same with a sparse A, its zeros counted as if they were multiplied; 0: not published
    )
    published: Annotated[  # the maker's own numbers: ("312", "624")
        tuple[Annotated[str, like(r"^[0-9]+(\.[0-9]+)?$", "a number in quotes")], ...],
        Meta(min_length=1, max_length=2, description="10**12 operations a second of the whole chip: dense, then sparse"),
    ]


class Throughput(Entry, frozen=True, kw_only=True):
    """The published peak of a chip at one clock."""

    chip: Text  # "NVIDIA A100 (SXM4)"
    target: TargetName  # "sm_80"
    sms: Positive  # 108
    clock: Annotated[Positive, Meta(description="MHz")]  # the clock of the published numbers: 1410
    rates: Annotated[tuple[Rate, ...], SOME]
    source: Source
