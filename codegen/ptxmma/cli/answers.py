"""The JSON that each verb prints, as types: ``--json-schema`` prints them as a JSON Schema.

A key that is not always there is in a class with ``total=False``.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, get_type_hints

import msgspec

from ptxmma.catalog.comparison import Change
from ptxmma.catalog.conversion import ConversionFacts
from ptxmma.catalog.descriptors.bits import Mistake
from ptxmma.catalog.summaries.description import Description
from ptxmma.catalog.summaries.listing import FamilySummary, LineFacts
from ptxmma.catalog.summaries.target_summary import TargetComparison, TargetSummary
from ptxmma.check.findings import Severity
from ptxmma.matrices.shared.accesses import AccessPattern
from ptxmma.matrices.shared.box import Rows
from ptxmma.matrices.shared.suspicions import Suspicion

#: A row of a table, or an element with its place: the numbers of its axes, its lane, its register.
Row = dict[str, int | str | None]

if TYPE_CHECKING:  # mypy makes no types of values
    ChangeRecord: TypeAlias = dict[str, Any]
    MistakeRecord: TypeAlias = dict[str, Any]
    SuspicionRecord: TypeAlias = dict[str, Any]
    AccessRecord: TypeAlias = dict[str, Any]
    RowsRecord: TypeAlias = dict[str, Any]
else:

    def _record(fields: type) -> type:
        """A JSON object with the fields of a named tuple."""
        return TypedDict(fields.__name__, get_type_hints(fields))

    ChangeRecord, MistakeRecord, SuspicionRecord = _record(Change), _record(Mistake), _record(Suspicion)
    AccessRecord, RowsRecord = _record(AccessPattern), _record(Rows)


class OnTarget(TypedDict):
    """The first version in which a target accepts an instruction, ``""`` for none, and what it has instead."""

    target: str
    ptx: str
    text: str


class _Shown(Description):
    computes: str


class Shown(_Shown, total=False):
    """``show`` of an instruction; with ``--target`` also for that target."""

    on_target: OnTarget


class FamilyOnTarget(TypedDict):
    """The number of instructions of a family that a target accepts."""

    target: str
    accepted: int


class ShownFamily(FamilySummary, total=False):
    """``show`` of a family; with ``--target`` also for that target."""

    on_target: FamilyOnTarget


class Resolved(TypedDict):
    """``resolve``: the instruction that words mean, the sizes and types that they say of a product, and what else they may mean."""

    instruction: str
    product: dict[str, str | int]
    reasons: list[str]
    others: list[str]


class ListedTarget(TypedDict):
    """A line of ``targets`` without a target."""

    target: str
    ptx: str
    gpus: list[str]


class _Explained(TypedDict):
    code: str
    text: str
    cause: str
    remedy: str


class Explained(_Explained, total=False):
    """``explain``: a message of an assembler has its error, a rule of ``check`` its examples."""

    error: bool
    bad: str
    good: str


class ExplainedSwizzle(TypedDict):
    """``explain`` of a swizzle: its number in descriptors by family, and the types that are read with it by family and majorness."""

    code: str
    text: str
    span: int
    pattern: int
    formula: str
    cute: str
    tensor_map: str
    descriptors: dict[str, int]
    readers: dict[str, list[str]]


class ExplainedName(TypedDict):
    """``explain`` of a name: lines by title, and commands that say more."""

    code: str
    text: str
    facts: dict[str, list[str]]
    commands: list[str]


class Changes(TypedDict):
    """``diff``."""

    breaking: bool
    changes: list[ChangeRecord]


# --- the checker ------------------------------------------------------------------------------------------------------------


class CheckedPlace(TypedDict):
    """A finding; its line and its column count from 1."""

    file: str
    line: int
    column: int
    severity: Severity
    rule: str
    instruction: str
    message: str


class Checked(TypedDict):
    """``check``."""

    instructions: int
    uncovered: int
    repeated: int
    findings: list[CheckedPlace]


class CountedRule(TypedDict):
    """A line of ``check --statistics``."""

    rule: str
    severity: Severity
    findings: int


# --- places of elements -----------------------------------------------------------------------------------------------------


class _Elements(TypedDict):
    instruction: str
    elements: list[Row]


class Elements(_Elements, total=False):
    """``layout`` with some places: of several operands each element names its own."""

    operand: str


class _Table(TypedDict):
    instruction: str
    operand: str
    rows: int
    cols: int
    elements: list[Row]


class Table(_Table, total=False):
    """``layout`` of an operand, with the numbers that select one of its tables."""

    observed: str


class Origin(TypedDict):
    """An element of a tensor in global memory: its coordinates, and its first byte from the start of the tensor."""

    at: list[int]
    byte: int | None


class Place(TypedDict, total=False):
    """A place in registers, shared memory or tensor memory, with the coordinates of that memory."""

    cta: int
    lane: int | None
    register: int
    element: int
    column: int
    byte: int
    bits: str
    access: int
    operand: str
    address: str
    tensor_address: str
    tensor: Origin
    copies: list[Place]


_Source = TypedDict("_Source", {"row": int, "col": int, "in": "Place | None", "scale": "Place | None"})


class Source(_Source, total=False):
    """An element of A or B; the fields of metadata pick a sparse one."""

    fields: list[str]


class Term(TypedDict):
    """A product of a sum."""

    a: Source
    picked_by: Place | None
    b: list[Source]


class _Traced(TypedDict):
    instruction: str
    row: int
    col: int
    d: Place | None
    c: Place | None
    terms: list[Term]


class Traced(_Traced, total=False):
    """``trace`` of a product, with its further sizes and types, and the numbers of further axes."""

    observed: str
    register: dict[str, int]
    unknown: list[str]


Moved = TypedDict("Moved", {"from": Place, "to": Place})


class _Moves(TypedDict):
    instruction: str
    operand: str
    moves: list[Moved]


class Moves(_Moves, total=False):
    """``trace`` of an element that moves, with the numbers of its axes."""

    observed: str


# --- shared memory ----------------------------------------------------------------------------------------------------------


class _Image(TypedDict):
    family: str
    type: str
    major: str
    padded: bool
    swizzle: str
    rows: int
    cols: int
    address: int
    size: int
    lbo: int
    sbo: int
    base_offset: int
    descriptor: str
    accesses: list[AccessRecord]


class Image(_Image, total=False):
    """``smem`` of a matrix."""

    units: list[dict[str, int]]


class _ImagePlace(TypedDict):
    row: int
    col: int
    address: int
    offset: int
    bank: int


class ImagePlace(_ImagePlace, total=False):
    """``smem`` of an element."""

    bit: int


class _Field(TypedDict):
    field: str
    bits: str
    holds: int
    value: int | str
    unit: str


class Field(_Field, total=False):
    """A field of a descriptor; with a type, bytes are also counted in elements."""

    elements: int | None


class CanonicalLayout(TypedDict):
    """A canonical layout that fits a descriptor."""

    majorness: str
    swizzle: str
    cute: str
    lbo: str
    sbo: str
    used: list[str]
    users: dict[str, list[str]]


class _Matrix(TypedDict):
    descriptor: str
    fields: list[Field]
    layouts: list[CanonicalLayout]
    suspicions: list[SuspicionRecord]


class Matrix(_Matrix, total=False):
    """``descriptor encode`` and ``decode``."""

    steps: list[str]


class Fields(TypedDict):
    """The other descriptors."""

    descriptor: str
    fields: list[Field]
    mistakes: list[MistakeRecord]


class Mask(TypedDict):
    """``descriptor zero-column-mask`` of a product: 1 for a column of B that is taken as zeros."""

    m: int
    n: int
    zero: list[int]


class Reader(TypedDict):
    """A matrix descriptor that reads a box; without one its fault says why."""

    family: str
    major: str
    rows: int
    cols: int
    descriptor: str | None
    fault: str


class _TensorMap(TypedDict):
    type: str
    mode: str
    data_type: str
    padded: bool
    shape: list[int]
    strides: list[int]
    element_strides: list[int]
    swizzle: str
    interleave: str
    fill: str
    transaction_bytes: int
    size: int
    rows: RowsRecord
    alignments: dict[str, int]
    targets: dict[str, list[str]]
    notes: list[str]
    call: str
    readers: list[Reader]


class TensorMap(_TensorMap, total=False):
    """``tma``: a box, or the corners and extents of im2col."""

    box: list[int]
    lower: list[int]
    upper: list[int]
    channels: int
    pixels: int
    halo: int
    element: dict[str, int | str | list[int]]


class Round(TypedDict):
    """A use of a ring, with the parities for which its threads wait."""

    round: int
    stage: int
    phase: int
    empty: int
    full: int


class Room(TypedDict):
    """The shared memory of a thread block that holds a ring, in bytes."""

    target: str
    stage: int
    reserved: int
    used: int
    block: int


class Ring(TypedDict):
    """``ring``."""

    stages: int
    transaction_bytes: int
    shared_memory: Room | None
    rounds: list[Round]


#: The alternatives of each verb's JSON.
ANSWERS: dict[str, tuple[Any, ...]] = {
    "list": (list[LineFacts],),
    "show": (Shown, ShownFamily, list[FamilySummary]),
    "resolve": (Resolved,),
    "targets": (TargetSummary, TargetComparison, list[ListedTarget]),
    "explain": (Explained, ExplainedSwizzle, ExplainedName),
    "diff": (Changes,),
    "check": (Checked, list[CountedRule]),
    "layout": (Elements, Table, ConversionFacts, Row, list[Row]),
    "trace": (Traced, Moves),
    "descriptor encode": (Matrix,),
    "descriptor decode": (Matrix,),
    "descriptor instruction": (Fields,),
    "descriptor zero-column-mask": (Fields, Mask),
    "descriptor sparsity": (Fields,),
    "smem": (Image, ImagePlace, list[ImagePlace]),
    "tma": (TensorMap,),
    "ring": (Ring,),
}
#: Answers with the numbers of an operand's axes beside their own keys, and the sizes and types of a product.
_WITH_AXES = {"Table", "Traced", "Moves"}


def schema(verb: str) -> dict[str, Any]:
    """Return the JSON Schema of a verb's JSON.

    Raises:
        KeyError: a verb without JSON.
    """
    components = msgspec.json.schema_components(ANSWERS[verb], schema_hook=_string, ref_template="#/$defs/{name}")
    alternatives, definitions = msgspec.json.decode(msgspec.json.encode(components))  # defaults of structs are tuples
    for name, definition in definitions.items():
        if "properties" in definition:
            definition["additionalProperties"] = {"type": ["integer", "string"]} if name in _WITH_AXES else False
        if "description" in definition:  # from a docstring, whose indentation Python strips from 3.13 on
            definition["description"] = inspect.cleandoc(definition["description"]).replace("``", "")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ptxmma {verb} --json",
        "anyOf": list(alternatives),
        "$defs": definitions,
    }


def _string(_: type) -> dict[str, Any]:
    """The schema of a version, the only type of its own."""
    return {"type": "string"}
