"""The spec as frozen structures: what ``spec/*.yaml`` says, checked, and nothing more.

The generator builds them from YAML and writes them, still factored, to ``ptxmma.json``; the library reads the same structures
back.  Everything else (variants, operands, targets) is derived from them by the modules beside this one.

Every ``source`` is a section number of the PTX ISA (``"9.7.14.6.3"``) or says who observed the fact (``"ptxas 13.5"``, ``"H200"``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ptxmma.model.bitmap import BitMap

if TYPE_CHECKING:
    from ptxmma.catalog.evidence_summary import LayoutEvidence

#: What a condition is tested against: qualifiers, ``family``, ``m``, ``n``, ``k``, ``bits`` … of one variant or operand.
Facts = Mapping[str, str | int]
#: Each key must have one of its listed values; several conditions in a list: any of them.
Condition = dict[str, tuple[str | int, ...]]


def matches(conditions: Sequence[Condition], facts: Facts) -> bool:
    """Whether any of the conditions holds; no condition at all always does.  A fact that is absent counts as ``""``."""
    if not conditions:
        return True
    for condition in conditions:
        for key, allowed in condition.items():
            if facts.get(key, "") not in allowed:
                break
        else:
            return True
    return False


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all entries: immutable, and a key that nobody reads is an error."""


# --- types ------------------------------------------------------------------------------------------------------------------


class ElementType(_Entry, frozen=True, kw_only=True):
    """One element type, e.g. e4m3: 8 bits, 4 of exponent (bias 7), 3 of mantissa, no infinity."""

    name: str  # "e4m3"
    title: str  # "FP8 with 4 exponent and 3 mantissa bits"
    form: str  # "float", "unsigned", "signed" or "bits"
    bits: int  # storage, e.g. 8; tf32 takes 32
    exponent: int = 0  # bits
    mantissa: int = 0  # explicit bits
    bias: int = 0
    sign: bool = True  # ue8m0 has none
    infinity: bool = False
    nan: bool = False
    numpy: str  # dtype of NumPy or ml_dtypes that holds one: "float8_e4m3fn"
    source: str

    @property
    def unit(self) -> float:
        """Floating point: the distance from 1 to the next number, e.g. 2**-10 for f16."""
        return float(2.0**-self.mantissa)

    @property
    def smallest_normal(self) -> float:
        """Floating point: the smallest number that is not subnormal; of a type without a mantissa, its smallest number."""
        return float(2.0 ** ((1 if self.mantissa else 0) - self.bias))

    @property
    def largest_code(self) -> int:
        """Floating point: the bits of the largest number."""
        magnitudes = 1 << self.exponent + self.mantissa
        # Infinity has the highest exponent to itself and to NaN; without infinity NaN is the last code alone.
        return magnitudes - 1 - ((1 << self.mantissa) if self.infinity else int(self.nan))

    @property
    def emax(self) -> int:
        """Floating point: the exponent of the largest number, e.g. 8 for e4m3."""
        return (self.largest_code >> self.mantissa) - self.bias

    @property
    def largest(self) -> float:
        """Floating point: the largest number, e.g. 448 for e4m3."""
        return float(2.0**self.emax * (1 + (self.largest_code & (1 << self.mantissa) - 1) * self.unit))


class Container(_Entry, frozen=True, kw_only=True):
    """How elements narrower than their container sit in it, e.g. e2m1 in bits 2..5 of a byte under ``.kind::f8f6f4``."""

    elements: tuple[str, ...]  # ("e2m1",)
    when: tuple[Condition, ...] = ()
    bits: int  # 8
    shift: int  # 2: lowest bit of the element in the container
    source: str


class RegisterType(_Entry, frozen=True, kw_only=True):
    """A PTX register type, e.g. f16x2: 32 bits, two f16 elements."""

    name: str  # "b32"
    title: str
    bits: int  # 32
    c_type: str  # "uint32_t"
    constraint: str  # inline-asm constraint: "r"
    source: str


class Carrier(_Entry, frozen=True, kw_only=True):
    """The register types that assemblers take for an operand, the one that wrappers use first."""

    operands: tuple[str, ...]  # ("a", "b")
    elements: tuple[str, ...]  # ("f16", "bf16"); empty: operands without elements
    when: tuple[Condition, ...] = ()
    registers: tuple[str, ...]  # ("b32", "f16x2", "u32", "s32")
    source: str


# --- targets and versions ---------------------------------------------------------------------------------------------------


class Target(_Entry, frozen=True, kw_only=True, cache_hash=True):
    """A target architecture, e.g. sm_120a, which has all features of sm_120f."""

    name: str  # "sm_120a"
    ptx: str  # first PTX ISA version that knows it: "8.7"
    includes: tuple[str, ...] = ()  # the targets whose features it has, nearest only: ("sm_120f",)
    ptx_in: tuple[ReleaseFloor, ...] = ()  # CUDA releases with another first version
    until: str = ""  # the last CUDA release that knows it: "12.9"
    releases: str = ""  # where releases of the assembler differ: which, and how
    source: str

    @property
    def number(self) -> int:
        """Compute capability times ten, e.g. 120."""
        return int(self.name.removeprefix("sm_").rstrip("af"))

    @property
    def suffix(self) -> str:
        """``"a"`` (this architecture only), ``"f"`` (its family) or ``""``."""
        return self.name[-1] if self.name[-1] in "af" else ""


class ReleaseFloor(_Entry, frozen=True, kw_only=True, cache_hash=True):
    """A CUDA release that takes a target from another version on than other releases."""

    cuda: str  # "13.0"
    ptx: str  # "7.3"


class IsaVersion(_Entry, frozen=True, kw_only=True):
    """A PTX ISA version and the CUDA release that brought it."""

    version: str  # "8.7"
    cuda: str  # "12.8"
    note: str = ""
    source: str


# --- instructions -----------------------------------------------------------------------------------------------------------


class Range(_Entry, frozen=True, kw_only=True):
    """``first, first + step, … last``."""

    first: int
    last: int
    step: int


class Shape(_Entry, frozen=True, kw_only=True):
    """An MxNxK shape; n is one number or the union of ranges."""

    m: int
    n: tuple[Range, ...]
    k: int

    def each_n(self) -> list[int]:
        """Every n, ascending."""
        return [n for span in self.n for n in range(span.first, span.last + 1, span.step)]

    @property
    def ranges_over_n(self) -> bool:
        """Whether it stands for many values of n."""
        return len(self.n) > 1 or self.n[0].first + self.n[0].step <= self.n[0].last


class Qualifier(_Entry, frozen=True, kw_only=True):
    """What one placeholder of the syntax means."""

    title: str  # "element type of A"
    usual: str = ""  # left out of identifiers where it has this value: "row"
    default: tuple[QualifierDefault, ...] = ()  # what leaving it out means


class QualifierDefault(_Entry, frozen=True, kw_only=True):
    """Left out, the qualifier means ``value`` wherever ``when`` holds."""

    value: str  # "scale_vec::2X"
    when: tuple[Condition, ...] = ()
    source: str


class Form(_Entry, frozen=True, kw_only=True):
    """A set of variants: the product of its shapes and qualifier values, all with the same operands."""

    shapes: tuple[Shape, ...] = ()
    qualifiers: dict[str, tuple[str, ...]] = {}  # values without their dot; "": absent; "=dtype": as dtype
    operands: str = ""  # key of the instruction's operand lists
    documented: bool = True  # False: assemblers take it, the manual does not have it
    source: str


class OperandKind(_Entry, frozen=True, kw_only=True):
    """One operand of an instruction; its kind decides what else is known of it."""

    kind: str  # see ptxmma.catalog.operands.KINDS
    title: str
    type: str = ""  # qualifier that names its element type: "atype"
    of: str = ""  # the operand that it describes: "a" for "a-desc"
    access: str = "read"  # "read", "write" or "read-write"
    values: tuple[int, ...] = ()  # legal immediates
    limit: int = -1  # legal immediates: 0..limit
    default: int | None = None  # value that wrappers assume
    immediate: bool = False  # may be an immediate
    register: bool = True  # may be a register
    uniform: str = ""  # "warp" or "warpgroup": must have one value over it
    source: str


class Requirement(_Entry, frozen=True, kw_only=True):
    """A rule: variants that match need this PTX ISA version and one of these targets (or one that includes them)."""

    when: tuple[Condition, ...] = ()
    ptx: str = ""
    targets: tuple[str, ...] = ()
    note: str = ""
    source: str


class Observation(_Entry, frozen=True, kw_only=True):
    """What assemblers do where it differs from the manual; it replaces what the requirements say for the variants that match."""

    when: tuple[Condition, ...] = ()
    ptx: str = ""
    targets: tuple[str, ...] = ()
    releases: str = ""  # where releases differ: which, and how
    source: str


class Accumulation(_Entry, frozen=True, kw_only=True):
    """How a chip was seen to sum: subnormal inputs count, but are not normalised; some sums keep fewer bits than the manual promises."""

    chip: str  # "H200"
    target: str  # the instructions that it runs are those of this target: "sm_90a"
    fraction_bits: int = 0  # bits that each term keeps below the leading bit of the largest; 0: as many as the manual promises
    text: str
    source: str


class Semantics(_Entry, frozen=True, kw_only=True):
    """What the arithmetic of the matching variants promises."""

    when: tuple[Condition, ...] = ()
    multiply: str  # "exact", "at least f32", …
    accumulate: str  # "at least f32", "s32"
    sums: str  # type whose precision the sums have at least: "f32"
    overflow: str = ""  # "wrap" or "saturate", integers only
    rounds: str = ""  # "nearest" where sums are known to round so
    truncates: int = 0  # low bits of each input element that are ignored
    unspecified: tuple[str, ...] = ()
    observed: tuple[Accumulation, ...] = ()
    text: str
    source: str


class Statement(_Entry, frozen=True, kw_only=True):
    """A fact in words, for the variants that match: undefined behaviour, uniformity, notes."""

    when: tuple[Condition, ...] = ()
    text: str
    over: str = ""  # uniformity: "warp" or "warpgroup"
    source: str


class Ignored(_Entry, frozen=True, kw_only=True):
    """Modifiers that belong to no form, and that assemblers take and ignore where ``when`` holds."""

    modifiers: tuple[str, ...]  # any of these, "and.popc" for two side by side
    behind: str = ""  # the qualifier behind which they stand; "": anywhere
    most: int = 0  # how many of them are taken; 0: any number
    when: tuple[Condition, ...] = ()
    source: str


class InstructionSet(_Entry, frozen=True, kw_only=True):
    """One PTX instruction with all its forms."""

    name: str  # "mma.sp"
    family: str  # "mma.sp": the page and header it belongs to
    title: str
    stem: str  # "mma_sp": start of its identifiers
    scope: str  # "warp", "warpgroup" or "thread": who executes it together
    sparse: bool = False
    asynchronous: bool = False  # its results appear at a later wait
    memory: bool = False  # it orders or reads memory
    syntax: str  # "mma.{sparsity}.sync.aligned.{shape}…": see ptxmma.catalog.variants
    opcode: str = ""  # how every spelling starts, where that is more than the first token: "wgmma.mma_async"
    ordered: tuple[tuple[str, ...], ...] = ()  # qualifiers, or tokens of the syntax, in the order that assemblers heed; all else may move
    repeatable: tuple[str, ...] = ()  # tokens that assemblers take twice
    ignored: tuple[Ignored, ...] = ()  # what they take besides
    qualifiers: dict[str, Qualifier] = {}
    operand_kinds: dict[str, OperandKind] = {}
    operands: dict[str, tuple[str, ...]] = {}  # named operand lists, verbatim: {"": ("d, a, b, c, e, f",)}
    forms: tuple[Form, ...]
    requires: tuple[Requirement, ...]
    observed: tuple[Observation, ...] = ()
    semantics: tuple[Semantics, ...] = ()
    undefined: tuple[Statement, ...] = ()
    uniform: tuple[Statement, ...] = ()
    notes: tuple[Statement, ...] = ()
    source: str


# --- layouts ----------------------------------------------------------------------------------------------------------------


class Case(_Entry, frozen=True, kw_only=True):
    """``is`` where ``when`` holds; the last case has no condition."""

    value: str = msgspec.field(name="is")
    when: str = ""


#: A formula, or guarded cases of which the first with a true condition holds.
Cases = tuple[Case, ...]


class Stated(_Entry, frozen=True, kw_only=True):
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


class Fragment(_Entry, frozen=True, kw_only=True):
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


#: What is wrong with a field of metadata; ``"out of order"``: with its indices in ascending order it would be legal.
Fault = Literal["equal indices", "out of order", "illegal"]


class Granularity(_Entry, frozen=True, kw_only=True):
    """A pattern of structured sparsity, e.g. 2:4: two of four elements are kept."""

    name: str  # "2:4"
    of: tuple[Condition, ...]
    chunk: int  # elements of the full matrix that one field describes: 4
    kept: int  # elements of them that are stored: 2
    unit: int  # elements that are kept or dropped together: 1
    index_bits: int  # bits of one index: 2
    indices: int  # indices in a field: 2
    legal: tuple[str, ...]  # field values, in binary: "0b0100"
    ordered: tuple[str, ...] = ()  # the legal ones where the indices must ascend
    ordered_when: tuple[Condition, ...] = ()  # which variants demand that
    text: str
    source: str

    @property
    def units(self) -> int:
        """Units of a chunk."""
        return self.chunk // self.unit

    def kept_units(self, field: str) -> tuple[int, ...]:
        """The units of a chunk that a legal field keeps, the one whose element stands first in the packed matrix first."""
        if self.indices == 1:  # too wide to be a place: the legal values stand for the places in their order
            return (self.legal.index(field),)
        return self._indices(int(field, 2))

    def faults(self, legal: Sequence[str]) -> dict[int, Fault]:
        """Every value that a field must not have where only those in ``legal`` are allowed, and why."""
        allowed = {int(field, 2) for field in legal}
        return {value: self._fault(value, allowed) for value in range(1 << self.index_bits * self.indices) if value not in allowed}

    def _fault(self, value: int, allowed: set[int]) -> Fault:
        indices = self._indices(value)
        if len(set(indices)) < len(indices):
            return "equal indices"
        ascending = sum(index << self.index_bits * place for place, index in enumerate(sorted(indices)))
        return "out of order" if ascending in allowed else "illegal"

    def _indices(self, value: int) -> tuple[int, ...]:
        return tuple(value >> self.index_bits * index & (1 << self.index_bits) - 1 for index in range(self.indices))


class Choice(_Entry, frozen=True, kw_only=True):
    """Which field describes a chunk, by the units of it that are not zero."""

    units: int  # units of a chunk: 4
    fields: dict[str, str]  # the units that are not zero, the first one lowest, to the field: {"0b0001": "0b1000", …}
    text: str
    source: str


class MetadataLayout(_Entry, frozen=True, kw_only=True):
    """Where a chunk's field stands: thread and lowest bit as formulas over row, chunk and selector."""

    of: tuple[Condition, ...]
    selectors: int
    let: dict[str, str] = {}
    lane: Cases
    bit: Cases
    contributors: str  # which threads of each quad for which selector, in words
    source: str


class ScaleLayout(_Entry, frozen=True, kw_only=True):
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


class BlockScaling(_Entry, frozen=True, kw_only=True):
    """Which scale vectors and scale types a kind admits."""

    kind: str  # "kind::mxf4"
    scale_vec: str  # "scale_vec::2X"
    stypes: tuple[str, ...]
    blocks: int  # scale factors along K
    source: str


class BlockFormat(_Entry, frozen=True, kw_only=True):
    """A block-scaled number format: elements that share a scale factor, block by block."""

    name: str  # "mxfp8_e4m3"
    title: str  # "MXFP8 with E4M3 elements"
    element: str  # type of the elements: "e4m3"
    scale: str  # type of the scale factors: "ue8m0"
    block: int  # neighbouring elements that share one: 32
    of: tuple[Condition, ...]  # the instructions that multiply matrices of it
    source: str


# --- shared memory ----------------------------------------------------------------------------------------------------------


class Swizzle(_Entry, frozen=True, kw_only=True):
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


class Banks(_Entry, frozen=True, kw_only=True):
    """The banks of shared memory: consecutive words lie in consecutive banks, and each bank serves one word at a time."""

    count: int  # 32
    bytes: int  # of a word: 4
    source: str


class TensorMap(_Entry, frozen=True, kw_only=True):
    """What TMA asks of the boxes with which it writes shared memory."""

    largest_box: int  # most elements of a box along any dimension: 256
    alignment: int  # bytes, of the address in shared memory to which a box goes: 128
    source: str


class CanonicalLayout(_Entry, frozen=True, kw_only=True):
    """How a matrix operand lies in shared memory for one majorness and one group of swizzle modes."""

    majorness: str  # "K" or "MN"
    swizzles: tuple[str, ...]
    cute: str  # the manual's shape:stride text
    offset: str  # bytes from the start, before the swizzle: formula over x, k, size, span, lbo, sbo
    lbo: str  # what the leading-dimension byte offset means
    sbo: str
    uses_lbo: bool
    source: str


class Majorness(_Entry, frozen=True, kw_only=True):
    """Which element types an instruction can read with which majorness."""

    majorness: str
    of: tuple[Condition, ...]
    text: str
    source: str


class DescriptorField(_Entry, frozen=True, kw_only=True):
    """A field of the 64-bit matrix descriptor."""

    name: str  # "start_address"
    title: str
    low: int  # lowest bit
    width: int
    shift: int = 0  # the field holds value >> shift
    unit: str = ""  # "bytes"
    source: str


class Example(_Entry, frozen=True, kw_only=True):
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


class SharedMemory(_Entry, frozen=True, kw_only=True):
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


# --- protocol ---------------------------------------------------------------------------------------------------------------


class Step(_Entry, frozen=True, kw_only=True):
    """One step of the asynchronous protocol."""

    name: str
    instruction: str = ""
    text: str
    source: str


class Definition(_Entry, frozen=True, kw_only=True):
    """A term with its formula."""

    name: str  # "warp rank"
    formula: str = ""
    text: str
    source: str


class Ordering(_Entry, frozen=True, kw_only=True):
    """What must stand between two events so that the second sees the first."""

    earlier: str  # "access to a register"
    later: str  # "wgmma.mma_async with it as accumulator or fragment of A"
    needs: str  # the instruction: "wgmma.fence"; "": they are ordered anyway
    by: str = ""  # who executes it: "every warp of the warpgroup"
    text: str
    source: str


class ProxyAccess(_Entry, frozen=True, kw_only=True):
    """Through which proxy an access to memory goes."""

    access: str
    proxy: str  # "async" or "generic"
    source: str


class Protocol(_Entry, frozen=True, kw_only=True):
    """How asynchronous instructions are ordered against registers and memory."""

    definitions: tuple[Definition, ...]
    steps: tuple[Step, ...]
    orderings: tuple[Ordering, ...]
    proxies: tuple[ProxyAccess, ...]
    source: str


# --- throughput -------------------------------------------------------------------------------------------------------------


class Rate(_Entry, frozen=True, kw_only=True):
    """What a chip's tensor cores do at most with operands of some types; a multiplication and an addition count as two operations."""

    of: tuple[Condition, ...]  # the instructions: {"atype": ("f16",)}
    dense: int  # operations in each SM and clock: 2048
    sparse: int = 0  # the same with a sparse A, its zeros counted as if they were multiplied; 0: not published
    published: tuple[str, ...]  # the maker's own numbers for the whole chip in 10**12 a second, dense and sparse: ("312", "624")


class Throughput(_Entry, frozen=True, kw_only=True):
    """The published peak of a chip at one clock."""

    chip: str  # "NVIDIA A100 (SXM4)"
    target: str  # "sm_80"
    sms: int  # 108
    clock: int  # MHz at which the published numbers hold: 1410
    rates: tuple[Rate, ...]
    source: str


# --- the whole --------------------------------------------------------------------------------------------------------------


class Sighting(_Entry, frozen=True, kw_only=True):
    """What a tool was asked, and its answer.

    An instruction is written without the names of its registers: ``"mma.sync… 4f32 4b32 2b32 4f32"``, lists by their length and type.
    What ends in a semicolon is PTX as it stands; nothing at all is a module without instructions.
    """

    tool: str  # "ptxas 12.0 to 13.5": every pinned release in between that knows the target and the version; "H200"
    target: str  # "sm_90a"
    ptx: str = ""  # version of the module; the newest that each release speaks where there is none
    compiled_for: str = ""  # another target than that of the module
    asked: str = ""
    example: str = ""  # instead: digest of an example of the reference, see spec/evidence/examples.json
    answer: str  # "accepted", or the exact message
    database: str = ""  # "accepts" or "refuses"; empty where it is not about a single instruction


class Erratum(_Entry, frozen=True, kw_only=True):
    """A place where the manual contradicts itself, the assembler or the chip."""

    id: str  # "f64-k16-a-col"
    section: str
    says: str
    holds: str
    known: str  # how that is known
    family: str = ""
    seen: tuple[Sighting, ...] = ()
    textual: bool = False  # the manual against itself, or against arithmetic: no tool takes part


class Types(_Entry, frozen=True, kw_only=True):
    """Element types, their containers, register types, and which carries which."""

    elements: tuple[ElementType, ...] = ()
    containers: tuple[Container, ...] = ()
    registers: tuple[RegisterType, ...] = ()
    carriers: tuple[Carrier, ...] = ()


class Spec(_Entry, frozen=True, kw_only=True):
    """The whole spec, as its YAML files say it."""

    version: str  # semantic version of the spec: "1.0.0"
    document: str  # "PTX ISA 9.1"
    types: Types
    targets: tuple[Target, ...]
    isa_versions: tuple[IsaVersion, ...]
    instructions: tuple[InstructionSet, ...]
    fragments: tuple[Fragment, ...] = ()
    granularities: tuple[Granularity, ...] = ()
    choices: tuple[Choice, ...] = ()
    metadata: tuple[MetadataLayout, ...] = ()
    block_scaling: tuple[BlockScaling, ...] = ()
    scales: tuple[ScaleLayout, ...] = ()
    block_formats: tuple[BlockFormat, ...] = ()
    shared_memory: SharedMemory | None = None
    protocol: Protocol | None = None
    throughput: tuple[Throughput, ...] = ()
    errata: tuple[Erratum, ...] = ()

    def choice(self, pattern: Granularity) -> Choice:
        """Which fields describe the chunks of a pattern."""
        return next(entry for entry in self.choices if entry.units == pattern.units)


class Layout(_Entry, frozen=True, kw_only=True, dict=True):
    """One derived layout: a formula of the spec for one shape and width, as the bit map that it was proven equal to.

    Inputs and outputs by ``kind``: fragments map ``(i, lane)`` to ``(row, col[, computation])``; metadata maps
    ``(row, chunk, selector)`` to ``(lane, bit)`` counted in fields; scales map ``(row, block …)`` to ``(lane, byte)``.
    """

    name: str  # "mma_m16n8k16_a_b16"
    kind: str  # "fragment", "metadata" or "scale"
    family: str
    operands: tuple[str, ...]
    shape: str  # "m16n8k16" or "m64nNk16"
    bits: int = 0  # container width of an element
    rows: int = 0
    cols: int = 0  # the largest, where N varies
    threads: int = 32
    entry: int  # index of the spec's entry: fragments, metadata or scales
    map: BitMap

    def __repr__(self) -> str:
        return f"<Layout {self.name}>"

    @property
    def field_bits(self) -> int:
        """Metadata only: bits of the field of one chunk; the fields of a thread fill its 32-bit register."""
        return 32 >> self.map.outputs["field"]

    @property
    def evidence(self) -> LayoutEvidence:
        """What stands behind it: which chips it was held against, how often, and whose definitions agree or differ.

        It is that of the database that the layout was read with; a layout of none has no evidence.
        """
        from ptxmma.catalog import evidence_summary as summary

        database = self.__dict__.get("database")
        return (summary.of(database) if database else summary.NOTHING).of_layout(self.name)

    def to_cute(self, n: int | None = None) -> str:
        """CuTe's ``shape:stride`` text, see :func:`ptxmma.matrices.interop.to_cute`; ``n``: columns, mandatory where N varies."""
        from ptxmma.matrices import interop

        return interop.to_cute(self, n)

    def to_triton(self, n: int | None = None) -> dict[str, list[list[int]]]:
        """Triton's linear-layout bases, see :func:`ptxmma.matrices.interop.to_triton`; ``n``: columns, mandatory where N varies."""
        from ptxmma.matrices import interop

        return interop.to_triton(self, n)


class Database(_Entry, frozen=True, kw_only=True, dict=True):
    """What ``ptxmma.json`` holds: the spec, and every layout that its formulas derive."""

    generated: str = ""  # what made the file, from what
    spec: Spec
    layouts: tuple[Layout, ...]

    def __post_init__(self) -> None:
        """Let each layout know where it comes from; one that several databases share belongs to the first."""
        for layout in self.layouts:
            layout.__dict__.setdefault("database", self)

    @functools.cached_property
    def layout(self) -> dict[str, Layout]:
        """The layouts by name."""
        return {layout.name: layout for layout in self.layouts}

    @functools.cached_property
    def memo(self) -> dict[object, Any]:
        """What other modules have worked out about this database and need not work out again."""
        return {}
