"""Targets, PTX ISA versions with the sections of their manual, and the published peaks of chips."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ptxmma.model.fields import (
    SOME,
    Condition,
    CudaRelease,
    Entry,
    NewTarget,
    Positive,
    PtxVersion,
    Source,
    TargetName,
    Text,
    VersionText,
    like,
)


class Target(Entry, frozen=True, kw_only=True, cache_hash=True):
    """A target architecture, e.g. sm_120a, which has all features of sm_120f."""

    name: NewTarget  # "sm_120a"
    ptx: PtxVersion  # first PTX ISA version that knows it: "8.7"
    includes: tuple[TargetName, ...] = ()  # the targets whose features it has, nearest only: ("sm_120f",)
    ptx_in: Annotated[tuple[ReleaseFloor, ...], Meta(description="CUDA releases with another first version")] = ()
    until: Annotated[CudaRelease, Meta(description="the last CUDA release that knows it")] = ""  # "12.9"
    releases: Text = ""  # differences between releases of the assembler, in words
    source: Source

    @property
    def number(self) -> int:
        """Compute capability times ten, e.g. 120."""
        return int(self.name.removeprefix("sm_").rstrip("af"))

    @property
    def suffix(self) -> str:
        """``"a"`` (this architecture only), ``"f"`` (its family) or ``""``."""
        return self.name[-1] if self.name[-1] in "af" else ""


class Gpu(Entry, frozen=True, kw_only=True, cache_hash=True):
    """Products of one target, by the names that people use."""

    target: TargetName  # the target to compile for: "sm_90a", which has all features of the chip
    architecture: Text  # "Hopper"
    names: Annotated[tuple[Text, ...], SOME]  # ("H100", "H200")
    source: Source


class SharedCapacity(Entry, frozen=True, kw_only=True, cache_hash=True):
    """The shared memory of chips, in bytes."""

    targets: Annotated[tuple[TargetName, ...], SOME]  # the plain targets; those with a suffix have the same: ("sm_90", "sm_100")
    block: Positive  # the maximum of a thread block, which a kernel opts into: 232448
    sm: Positive  # the maximum of all thread blocks of an SM: 233472
    source: Source


class ReleaseFloor(Entry, frozen=True, kw_only=True, cache_hash=True):
    """A CUDA release that takes a target from another version on than other releases."""

    cuda: CudaRelease  # "13.0"
    ptx: PtxVersion  # "7.3"


class IsaVersion(Entry, frozen=True, kw_only=True):
    """A PTX ISA version and the CUDA release that brought it."""

    version: VersionText  # "8.7"
    cuda: VersionText  # "12.8"
    driver: Annotated[  # "570.26"
        str,
        like(r"^[0-9]+(\.[0-9]+)+$", 'the first driver for Linux, e.g. "570.26"'),
        Meta(description="the first driver for Linux that compiles it"),
    ] = ""
    note: Text = ""
    source: Source


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


class Section(Entry, frozen=True, kw_only=True):
    """A section of the manual, with its number in each release that has it."""

    title: Text  # "Matrix Shape"
    numbers: Annotated[  # {"9.1": "9.7.14.1", "9.4": "9.7.16.1"}
        dict[VersionText, Annotated[str, like(r"^[0-9]+(\.[0-9]+){2,}$", 'the number of a section, e.g. "9.7.14.1"')]],
        Meta(min_length=1, description="the number in each release of the manual"),
    ]
