"""Formulas for where data lies in registers."""

from __future__ import annotations

import msgspec

from ptxmma.model.conditions import Condition, Entry


class Case(Entry, frozen=True, kw_only=True):
    """``is`` where ``when`` holds; the last case has no condition."""

    value: str = msgspec.field(name="is")
    when: str = ""


#: A formula, or guarded cases of which the first with a true condition holds.
Cases = tuple[Case, ...]


class Stated(Entry, frozen=True, kw_only=True):
    """The manual's own formula for one shape: it must agree with ours, or differ where ``erratum`` says so."""

    section: str
    of: tuple[Condition, ...]  # which instances
    let: dict[str, str] = {}
    row: Cases = ()
    col: Cases = ()
    first: Cases = ()  # sparse A: the window's first column
    last: Cases = ()
    registers: int = 0
    erratum: str = ""  # key in errata.yaml: the printed formula is known to be wrong


class Fragment(Entry, frozen=True, kw_only=True):
    """Which element of a matrix an element of a thread's registers is: one formula for a set of shapes and types."""

    operands: tuple[str, ...]  # ("c", "d")
    label: str = ""  # set apart in names: "row"
    of: tuple[Condition, ...]
    rows: str  # formula over m, n, k and ratio (2 for sparse A): "m"
    cols: str  # "k // ratio"
    computations: int = 1  # independent products that one instruction computes (m8n8k4 with f16: 4)
    let: dict[str, str] = {}
    row: Cases
    col: Cases
    computation: Cases = ()
    stated: tuple[Stated, ...] = ()
    source: str


class MetadataLayout(Entry, frozen=True, kw_only=True):
    """Where a chunk's field stands: thread and lowest bit as formulas over row, chunk and selector."""

    of: tuple[Condition, ...]
    selectors: int
    let: dict[str, str] = {}
    lane: Cases
    bit: Cases
    contributors: str  # which threads of each quad for which selector, in words
    source: str


class ScaleLayout(Entry, frozen=True, kw_only=True):
    """Where a scale factor stands: thread and byte as formulas over row (of A; column of B), block and the scale ids."""

    operand: str  # "a" or "b"
    of: tuple[Condition, ...]
    blocks: int  # scale factors along K
    byte_ids: tuple[int, ...]
    thread_ids: tuple[int, ...]
    let: dict[str, str] = {}
    lane: Cases
    byte: Cases
    source: str
