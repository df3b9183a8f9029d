"""PTX instructions with all their forms, operands, requirements and semantics."""

from __future__ import annotations

import functools
import re
from typing import Annotated, Any, Literal

from msgspec import Meta

from ptxmma.model import formula
from ptxmma.model.decision_table import DecisionTable
from ptxmma.model.fields import (
    SOME,
    Condition,
    CudaRelease,
    ElementName,
    Entry,
    Formula,
    Identifier,
    Name,
    Natural,
    Positive,
    PtxVersion,
    ScopeName,
    Source,
    TargetName,
    Text,
    Token,
    like,
)

#: A size; larger ones are slips.  The rules judge the sizes that a value spells.
Extent = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": 4096})]
#: An integer that fits into 32 bits, signed or not.
Immediate = Annotated[int, Meta(ge=-(2**31), le=2**32 - 1)]
QualifierName = Annotated[str, like(r"^[a-z_]+$", "lower-case letters and '_'")]
OperandName = Annotated[
    str, like(r"^([A-Za-z][A-Za-z0-9-]*|_)$", "letters, digits and '-', a letter first; '_' for a result that is dropped")
]
#: The kinds of operands; ``ROLES`` of :mod:`ptxmma.catalog.operands` has a class for each.
Kind = Literal[
    "fragment", "accumulator", "descriptor", "address", "stride", "predicate", "metadata", "selector",
    "immediate", "majorness", "negation", "scale-data", "byte-id", "thread-id",
    "register", "sink", "location", "destination", "source", "tensormap", "number-list", "size", "cache-policy", "byte-mask", "lane-set",
    "shared-descriptor", "tensor-address", "columns", "cta-mask",
    "tensor-matrix", "tensor-accumulator", "tensor-metadata", "tensor-scales", "lookup-table",
    "instruction-descriptor", "lane-mask", "column-mask",
    "reduction", "indices", "vector", "sparsity-descriptor", "tensor-copy",
]  # fmt: skip
#: The operations of instructions; ``OPERATIONS`` of :mod:`ptxmma.matrices.operations` has a class for each.
Verb = Literal[
    "multiply", "load", "store", "transpose", "copy", "prefetch", "compute", "copy-box", "write", "allocate", "shift",
    "tensor-load", "tensor-reduce", "tensor-compress", "tensor-store", "tensor-copy", "tensor-multiply", "compress", "decompress",
    "synchronise",
]  # fmt: skip


@functools.cache
def operand_names(syntax: str) -> tuple[str, ...]:
    """The names in an operand list such as ``"d, a, scale-a-data, {byte-id-a, thread-id-a}"``."""
    return tuple(name.strip(" {}[]") for name in re.split("[,|]", syntax)) if syntax else ()


class Range(Entry, frozen=True, kw_only=True):
    """``first, first + step, … last``."""

    first: Extent
    last: Extent
    step: Extent

    def __post_init__(self) -> None:
        """The steps lead from the first number to the last."""
        if self.first > self.last:
            raise ValueError(f"a range from {self.first} to {self.last} is empty")
        if (self.last - self.first) % self.step:
            raise ValueError(f"steps of {self.step} from {self.first} do not reach {self.last}")


class Extents(Entry, frozen=True, kw_only=True):
    """The sizes that the values of a qualifier give; formulas read them by name."""

    pattern: str = ""  # "m{m}n{n}k{k}": the numbers are in the value itself
    values: dict[str, dict[Identifier, Extent]] = {}  # {"x4": {"num": 4}}: each value has its numbers


class Qualifier(Entry, frozen=True, kw_only=True):
    """The meaning of one placeholder of the syntax."""

    title: Text  # "element type of A"
    usual: Token = ""  # the value that identifiers leave out: "row"
    default: Annotated[tuple[QualifierDefault, ...], SOME] = ()  # the values that leaving it out means


class QualifierDefault(Entry, frozen=True, kw_only=True):
    """A qualifier that is left out means ``value`` where ``when`` holds."""

    value: Token  # "scale_vec::2X"
    when: tuple[Condition, ...] = ()
    source: Source


class Form(Entry, frozen=True, kw_only=True):
    """A set of variants: the product of its qualifiers' values, all with the same operands."""

    qualifiers: dict[str, tuple[str, ...]] = {}  # values without their dot; "": absent; "=dtype": as dtype; "m64n{n}k16": for every n
    unspelled: Annotated[tuple[QualifierName, ...], SOME] = ()  # qualifiers that the spelling leaves out, although the form gives them
    ranges: dict[Identifier, tuple[Range, ...]] = {}  # the numbers of each name in braces: {"n": 8, 16, … 256}
    operands: Name = ""  # key of the instruction's operand lists
    documented: bool = True  # False: assemblers take it, the manual does not have it
    source: Source


class OtherValues(Entry, frozen=True, kw_only=True):
    """The legal immediates where ``when`` holds."""

    when: tuple[Condition, ...]
    values: Annotated[tuple[Immediate, ...], SOME]
    source: Source


class OperandKind(Entry, frozen=True, kw_only=True):
    """One operand of an instruction; its kind decides which of the fields apply."""

    kind: Kind
    title: Text
    type: Name = ""  # qualifier that names its element type: "atype"
    of: Name = ""  # the operand that it describes: "a" for "a-desc"
    single: bool = False  # one register without braces, although it holds elements
    count: Formula = ""  # lists without elements: their registers, as a formula over extents: "4 * ctas"
    sparse: bool = False  # holds the kept elements of a sparse matrix only
    access: Literal["read", "write", "read-write"] = "read"
    values: Annotated[tuple[Immediate, ...], SOME] = ()  # legal immediates
    other_values: tuple[OtherValues, ...] = ()  # legal immediates of some forms, in place of `values`
    limit: Annotated[int, Meta(ge=0, le=2**32 - 1)] = -1  # legal immediates: the multiples from minimum to limit
    minimum: Natural = 0
    multiple: Positive = 1
    within: Name = ""  # the operand that an immediate must not exceed: "cp-size"
    droppable: bool = False  # results: "_" may take its place
    meanings: dict[Annotated[str, like(r"^[A-Za-z]+$", "a word")], int] = {}  # words for legal immediates: {"K": 0, "MN": 1}
    default: int | None = None  # value that wrappers assume
    immediate: bool = False  # an immediate is accepted
    register: bool = True  # a register is accepted
    uniform: ScopeName = ""  # scope over which it must have one value: "warp"
    alignment: Formula = ""  # addresses: bytes, as a formula over extents and bits: "16"
    memory_bits: Formula = ""  # addresses: bits of an element in memory, where registers have more: "packed"
    row_bytes: Formula = ""  # addresses: bytes of the row that begins there: "cols * bits // 8"
    unit: Text = ""  # strides: what they count: "elements"
    order: Name = ""  # strides: qualifier that says whether rows ("row") or columns ("col") lie one after another
    requires: tuple[OperandRequirement, ...] = ()  # requirements of operand lists with it, beyond the instruction's
    source: Source


class Requirement(Entry, frozen=True, kw_only=True):
    """A rule: variants that match need this PTX ISA version and one of these targets (or one that includes them)."""

    when: tuple[Condition, ...] = ()
    ptx: PtxVersion = ""
    targets: Annotated[tuple[TargetName, ...], SOME] = ()
    since: CudaRelease = ""  # first CUDA release whose assembler enforces it: "11.8"; empty: all do
    known: CudaRelease = ""  # first CUDA release whose assembler knows what it is about, though it does not enforce the rule: "12.8"
    note: Text = ""
    source: Source


class OperandRequirement(Requirement, frozen=True, kw_only=True):
    """A rule about operand lists with an operand, or about some of its constants or register types."""

    values: Annotated[tuple[Immediate | Name, ...], SOME] = ()  # the constants or register types that it is about; empty: all


class Observation(Entry, frozen=True, kw_only=True):
    """The behaviour of assemblers where it differs from the manual; it replaces the requirements of the variants that match."""

    when: tuple[Condition, ...] = ()
    ptx: PtxVersion = ""
    targets: Annotated[tuple[TargetName, ...], SOME] = ()
    releases: Text = ""  # differences between releases, in words
    source: Source

    def __post_init__(self) -> None:
        """It replaces something."""
        if not (self.ptx or self.targets):
            raise ValueError("an observation replaces the version or the targets that are required: give ptx, targets or both")


class Accumulation(Entry, frozen=True, kw_only=True):
    """A chip's way of summing, measured.

    Subnormal inputs count, but are not normalised.  Some sums keep fewer bits than the manual promises.
    """

    chip: Text  # "H200"
    target: TargetName  # the target whose instructions it runs: "sm_90a"
    fraction_bits: Positive = 0  # bits that each term keeps below the leading bit of the largest; 0: as many as the manual promises
    text: Text
    source: Source


class Semantics(Entry, frozen=True, kw_only=True):
    """The guarantees of the arithmetic of the matching variants."""

    when: tuple[Condition, ...] = ()
    multiply: Text  # "exact", "at least f32", …
    bitwise: Literal["", "and", "xor"] = ""  # single bits only: the operation on them in place of products
    accumulate: Text  # "at least f32", "s32"
    sums: ElementName  # type whose precision is the minimum for sums: "f32"
    overflow: Literal["", "wrap", "saturate"] = ""  # integers only
    rounds: Literal["", "nearest"] = ""  # rounding of the sums, where it is stated
    truncates: Natural = 0  # low bits of each input element that are ignored
    unspecified: tuple[Text, ...] = ()
    observed: tuple[Accumulation, ...] = ()
    text: Text
    source: Source


class Statement(Entry, frozen=True, kw_only=True):
    """A fact in words, for the variants that match: undefined behaviour, uniformity, notes."""

    when: tuple[Condition, ...] = ()
    text: Text
    over: ScopeName = ""  # scope that must be uniform: "warp"
    source: Source


class HintValue(Entry, frozen=True, kw_only=True):
    """One value of a hint."""

    text: Text  # "A is read and kept"
    when: tuple[Condition, ...] = ()  # the variants that take it


class Hint(Entry, frozen=True, kw_only=True):
    """A modifier that may follow an instruction and changes neither its operands nor its result: it has no variants of its own."""

    name: QualifierName  # "collector_a"
    title: Text
    values: Annotated[dict[Token, HintValue], Meta(min_length=1)]
    default: Annotated[Token, Meta(description="the value that leaving it out means; absent where it means none of them")] = ""
    when: tuple[Condition, ...] = ()  # the variants that take it
    requires: tuple[Requirement, ...] = ()  # requirements beyond the instruction's
    source: Source


class Ignored(Entry, frozen=True, kw_only=True):
    """Modifiers that belong to no form, and that assemblers accept and ignore where ``when`` holds, on one of the targets."""

    modifiers: Annotated[
        tuple[Annotated[str, like(r"^[A-Za-z0-9_:]+(\.[A-Za-z0-9_:]+)*$", "modifiers with dots between them")], ...],
        Meta(min_length=1, description='any of these; "and.popc" for two in a row'),
    ]
    behind: Annotated[Name, Meta(description="the qualifier that they follow; anywhere if absent")] = ""
    most: Annotated[Positive, Meta(description="how many of them are taken; any number if absent")] = 0
    when: tuple[Condition, ...] = ()
    targets: Annotated[tuple[TargetName, ...], SOME, Meta(description="these and those that include one of them; all if absent")] = ()
    source: Source


class InstructionSet(Entry, frozen=True, kw_only=True, dict=True):
    """One PTX instruction with all its forms."""

    name: Name  # "mma.sp"
    family: Annotated[
        str, like(r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$", "lower-case words of letters, digits and '_', with dots between them", 60)
    ]  # "mma.sp": the page and header it belongs to
    title: Text
    stem: Identifier  # "mma_sp": start of its identifiers
    scope: Annotated[ScopeName, Meta(description="a scope of spaces.yaml: the threads that execute it together")]
    operation: Annotated[
        Verb,
        Meta(description="what it does"),
    ]
    asynchronous: bool = False  # its results appear at a later wait
    memory: bool = False  # it orders or reads memory
    syntax: Annotated[  # "mma.{sparsity}.sync.aligned.{shape}…": see ptxmma.catalog.variants
        str,
        like(
            r"^[A-Za-z0-9_.:{}]+$",
            "the manual's syntax line: literal text, .{name} for a qualifier that is always there, {.name} for an optional one",
        ),
    ]
    opcode: Annotated[str, like(r"^[a-z0-9_.:]+$", "how every spelling starts, where that is more than the first token")] = ""
    ordered: Annotated[
        tuple[Annotated[tuple[Name, ...], SOME], ...],
        Meta(description="qualifiers, or modifiers that every form has, in the order that assemblers heed; all others may change places"),
    ] = ()
    repeatable: tuple[Token, ...] = ()  # tokens that assemblers take twice
    hints: tuple[Hint, ...] = ()  # hints in the manual's order
    ignored: Annotated[tuple[Ignored, ...], Meta(description="modifiers that belong to no form, and that assemblers take and ignore")] = ()
    qualifiers: dict[QualifierName, Qualifier] = {}
    extents: dict[Identifier, Extents] = {}  # the qualifiers that say sizes: {"shape": "m{m}n{n}k{k}"}
    operand_kinds: dict[OperandName, OperandKind] = {}
    operands: dict[str, tuple[str, ...]] = {}  # named operand lists, verbatim: {"": ("d, a, b, c, e, f",)}
    forms: Annotated[tuple[Form, ...], SOME]
    requires: Annotated[tuple[Requirement, ...], SOME]
    observed: tuple[Observation, ...] = ()
    semantics: tuple[Semantics, ...] = ()
    undefined: tuple[Statement, ...] = ()
    uniform: tuple[Statement, ...] = ()
    notes: tuple[Statement, ...] = ()
    source: Source

    @functools.cached_property
    def memo(self) -> dict[object, Any]:
        """A cache in which other modules keep what they have computed about this instruction."""
        return {}

    @functools.cached_property
    def requirements(self) -> DecisionTable[Requirement]:
        """The requirements of a variant, looked up by its facts."""
        return DecisionTable(self.requires, "when")

    @functools.cached_property
    def observations(self) -> DecisionTable[Observation]:
        """The observations of a variant, looked up by its facts."""
        return DecisionTable(self.observed, "when")

    @functools.cached_property
    def start(self) -> bytes:
        """The start of each of its opcodes in PTX: ``b"tcgen05.mma"``."""
        return (self.opcode or self.name).encode()

    @functools.cached_property
    def shape(self) -> str:
        """The qualifier that spells its sizes, as ``m16n8k16`` does: the first whose extents have a pattern; ``""`` without one."""
        return next((name for name, entry in self.extents.items() if entry.pattern), "")

    @functools.cached_property
    def extent_names(self) -> tuple[str, ...]:
        """The names of the sizes that the values of its qualifiers give."""
        entries = self.extents.values()
        tables = (sizes for entry in entries for sizes in (*entry.values.values(), formula.placeholders(entry.pattern)))
        return tuple(dict.fromkeys(name for sizes in tables for name in sizes))

    @functools.cached_property
    def sparse(self) -> bool:
        """True if one of its operands is a sparse matrix."""
        return any(operand.sparse for operand in self.operand_kinds.values())

    @functools.cached_property
    def metadata(self) -> str:
        """The operand with the metadata of a sparse matrix in registers; ``""`` without one: a sparse matrix may have it in memory."""
        return next((name for name, operand in self.operand_kinds.items() if operand.kind == "metadata"), "")
