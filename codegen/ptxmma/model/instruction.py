"""PTX instructions with all their forms, operands, requirements and semantics."""

from __future__ import annotations

from ptxmma.model.conditions import Condition, Entry


class Range(Entry, frozen=True, kw_only=True):
    """``first, first + step, … last``."""

    first: int
    last: int
    step: int


class Shape(Entry, frozen=True, kw_only=True):
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


class Qualifier(Entry, frozen=True, kw_only=True):
    """What one placeholder of the syntax means."""

    title: str  # "element type of A"
    usual: str = ""  # left out of identifiers where it has this value: "row"
    default: tuple[QualifierDefault, ...] = ()  # what leaving it out means


class QualifierDefault(Entry, frozen=True, kw_only=True):
    """Left out, the qualifier means ``value`` wherever ``when`` holds."""

    value: str  # "scale_vec::2X"
    when: tuple[Condition, ...] = ()
    source: str


class Form(Entry, frozen=True, kw_only=True):
    """A set of variants: the product of its shapes and qualifier values, all with the same operands."""

    shapes: tuple[Shape, ...] = ()
    qualifiers: dict[str, tuple[str, ...]] = {}  # values without their dot; "": absent; "=dtype": as dtype
    operands: str = ""  # key of the instruction's operand lists
    documented: bool = True  # False: assemblers take it, the manual does not have it
    source: str


class OperandKind(Entry, frozen=True, kw_only=True):
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


class Requirement(Entry, frozen=True, kw_only=True):
    """A rule: variants that match need this PTX ISA version and one of these targets (or one that includes them)."""

    when: tuple[Condition, ...] = ()
    ptx: str = ""
    targets: tuple[str, ...] = ()
    note: str = ""
    source: str


class Observation(Entry, frozen=True, kw_only=True):
    """What assemblers do where it differs from the manual; it replaces what the requirements say for the variants that match."""

    when: tuple[Condition, ...] = ()
    ptx: str = ""
    targets: tuple[str, ...] = ()
    releases: str = ""  # where releases differ: which, and how
    source: str


class Accumulation(Entry, frozen=True, kw_only=True):
    """How a chip was seen to sum: subnormal inputs count, but are not normalised; some sums keep fewer bits than the manual promises."""

    chip: str  # "H200"
    target: str  # the instructions that it runs are those of this target: "sm_90a"
    fraction_bits: int = 0  # bits that each term keeps below the leading bit of the largest; 0: as many as the manual promises
    text: str
    source: str


class Semantics(Entry, frozen=True, kw_only=True):
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


class Statement(Entry, frozen=True, kw_only=True):
    """A fact in words, for the variants that match: undefined behaviour, uniformity, notes."""

    when: tuple[Condition, ...] = ()
    text: str
    over: str = ""  # uniformity: "warp" or "warpgroup"
    source: str


class Ignored(Entry, frozen=True, kw_only=True):
    """Modifiers that belong to no form, and that assemblers take and ignore where ``when`` holds."""

    modifiers: tuple[str, ...]  # any of these, "and.popc" for two side by side
    behind: str = ""  # the qualifier behind which they stand; "": anywhere
    most: int = 0  # how many of them are taken; 0: any number
    when: tuple[Condition, ...] = ()
    source: str


class InstructionSet(Entry, frozen=True, kw_only=True):
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
