"""Matrices in shared memory and their descriptors."""

from __future__ import annotations

from ptxmma.model.conditions import Condition, Entry
from ptxmma.model.instruction import Statement


class Swizzle(Entry, frozen=True, kw_only=True):
    """A swizzle mode of shared memory."""

    name: str  # "128B"
    title: str
    encoding: int  # descriptor bits 63:62
    bytes: int  # contiguous bytes that are permuted together: 16 for none
    pattern: int  # bytes after which the pattern repeats, and to which it is aligned
    cute: str  # "Swizzle<3,4,3>"
    atom_mn: tuple[int, int]  # atom in 128-bit units, MN-major: (leading, strided)
    atom_k: tuple[int, int]
    tma: str  # the same mode of a tensor map: "CU_TENSOR_MAP_SWIZZLE_128B"
    source: str


class Banks(Entry, frozen=True, kw_only=True):
    """The banks of shared memory: consecutive words lie in consecutive banks, and each bank serves one word at a time."""

    count: int  # 32
    bytes: int  # of a word: 4
    source: str


class TensorMap(Entry, frozen=True, kw_only=True):
    """What TMA asks of the boxes with which it writes shared memory."""

    largest_box: int  # most elements of a box along any dimension: 256
    alignment: int  # bytes, of the address in shared memory to which a box goes: 128
    source: str


class CanonicalLayout(Entry, frozen=True, kw_only=True):
    """How a matrix operand lies in shared memory for one majorness and one group of swizzle modes."""

    majorness: str  # "K" or "MN"
    swizzles: tuple[str, ...]
    cute: str  # the manual's shape:stride text
    offset: str  # bytes from the start, before the swizzle: formula over x, k, size, span, lbo, sbo
    lbo: str  # what the leading-dimension byte offset means
    sbo: str
    uses_lbo: bool
    source: str


class Majorness(Entry, frozen=True, kw_only=True):
    """Which element types an instruction can read with which majorness."""

    majorness: str
    of: tuple[Condition, ...]
    text: str
    source: str


class DescriptorField(Entry, frozen=True, kw_only=True):
    """A field of the 64-bit matrix descriptor."""

    name: str  # "start_address"
    title: str
    low: int  # lowest bit
    width: int
    shift: int = 0  # the field holds value >> shift
    unit: str = ""  # "bytes"
    source: str


class Example(Entry, frozen=True, kw_only=True):
    """A worked example of the manual (Figures 166-170): what it states, which the layouts must reproduce."""

    name: str
    majorness: str
    swizzle: str
    type: str
    m: int  # repeats
    k: int
    cute: str  # the exact layout
    lbo: int  # elements; 0: not applicable
    sbo: int
    lbo_encoding: int
    sbo_encoding: int
    source: str


class SharedMemory(Entry, frozen=True, kw_only=True):
    """Everything about matrix operands in shared memory."""

    alignment: int  # bytes
    banks: Banks
    tensor_map: TensorMap
    swizzle_formula: str  # address ^ …: formula over address, base_offset and span (swizzle bytes)
    base_offset: str  # formula over start (of the pattern) and pattern (its size in bytes)
    swizzles: tuple[Swizzle, ...]
    layouts: tuple[CanonicalLayout, ...]
    majorness: tuple[Majorness, ...]
    descriptor: tuple[DescriptorField, ...]
    examples: tuple[Example, ...]
    notes: tuple[Statement, ...] = ()
    source: str
