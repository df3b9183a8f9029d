"""Everything that the database knows about one instruction, as plain data: what ``ptxmma show`` prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, cast, get_type_hints

import msgspec

from ptxmma.catalog import evidence
from ptxmma.catalog.descriptors.lookup import codec_of, of_product
from ptxmma.catalog.evidence import LayoutEvidence
from ptxmma.catalog.instructions import Instruction, Missing, OperandForm
from ptxmma.catalog.layouts.expressions import both_ways
from ptxmma.catalog.names import cplusplus, product_family
from ptxmma.catalog.names.product_family import family_of
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.catalog.products import legal_products
from ptxmma.catalog.summaries import throughput
from ptxmma.model import Erratum, Layout, Observation, Requirement, Semantics, Statement, Version

#: Fields of the spec's entries that select instructions; the description of one instruction leaves them out.
_SETTLED = {"when", "family"}
_Facts = TypeVar("_Facts")


if TYPE_CHECKING:  # mypy makes no types of values
    RequirementFacts: TypeAlias = dict[str, Any]
    ObservationFacts: TypeAlias = dict[str, Any]
    SemanticsFacts: TypeAlias = dict[str, Any]
    StatementFacts: TypeAlias = dict[str, Any]
    ErratumFacts: TypeAlias = dict[str, Any]
    PeakFacts: TypeAlias = dict[str, Any]
else:  # entries of the spec, as the database has them
    RequirementFacts, ObservationFacts, SemanticsFacts = Requirement, Observation, Semantics
    StatementFacts, ErratumFacts = Statement, Erratum
    PeakFacts = TypedDict("PeakFacts", get_type_hints(throughput.Peak))


class HintFacts(TypedDict):
    """A hint: the meaning of each value, and the value of this spelling."""

    name: str
    title: str
    value: str
    default: str
    values: dict[str, str]
    requirements: list[RequirementFacts]
    source: str


class DescriptorFacts(TypedDict):
    """The instruction descriptor of a product."""

    kind: str
    bits: str


class FormFacts(TypedDict):
    """One way to pass the operands, with the 32-bit registers of a thread that each takes."""

    name: str
    operands: str
    registers: dict[str, int]


class OperandFacts(TypedDict):
    """An operand."""

    name: str
    kind: str
    title: str
    access: str
    type: str | None
    bits: int
    shift: int
    rows: int
    cols: int
    computations: int
    elements: int
    registers: int
    register_types: list[str]
    c_type: str
    constraint: str
    immediates: list[int] | dict[str, int] | None
    takes_register: bool
    default: int | None
    alignment: int
    row_bytes: int
    unit: str
    uniform: str
    layout: str | None
    source: str


class LayoutFacts(TypedDict):
    """A layout in registers, as expressions in both directions."""

    name: str
    kind: str
    operands: list[str]
    forward: dict[str, str]
    back: dict[str, str]
    cute: str | None
    triton: dict[str, list[list[int]]] | None


class TensorLayoutFacts(TypedDict):
    """A layout in tensor memory: the formulas of both directions."""

    name: str
    title: str
    operands: list[str]
    axes: dict[str, int]
    selections: dict[str, list[int]]
    at: dict[str, str]
    back: dict[str, str]
    source: str


class MetadataFacts(TypedDict):
    """The sparsity metadata."""

    pattern: str
    selectors: int
    width: int
    legal: list[str]
    contributors: str


class ComparedLayout(TypedDict):
    """Other projects' answers about a layout."""

    name: str
    operands: list[str]
    space: str
    agreeing: dict[str, int]
    differing: list[str]
    stale: list[str]


class ExecutedFacts(TypedDict):
    """The execution of an instruction on a chip."""

    chip: str
    launches: int
    wrong: int
    machine: list[str]
    how: str


class EvidenceFacts(TypedDict):
    """The evidence of an instruction."""

    assembled: dict[str, list[str]]
    executed: list[ExecutedFacts]
    peers: list[str]
    differing: list[str]
    atoms: list[str]
    intrinsics: list[str]
    stale: list[str]
    layouts: list[ComparedLayout]


class CplusplusFacts(TypedDict):
    """An instruction in C++."""

    header: str
    functions: list[str]
    front: str
    statements: list[str]
    front_header: str


class Description(TypedDict):
    """An instruction; rules, notes and errata are as in the database."""

    instruction: str
    identifier: str
    title: str
    family: str
    documented: bool
    source: str
    shape: list[int] | None
    scope: str
    operation: str
    sparse: bool
    asynchronous: bool
    syntax: str
    qualifiers: dict[str, str]
    hints: list[HintFacts]
    product: dict[str, str | int]
    legal_products: list[str]
    instruction_descriptor: DescriptorFacts | None
    operations: int | None
    forms: list[FormFacts]
    operands: list[OperandFacts]
    layouts: list[LayoutFacts]
    tensor_layouts: list[TensorLayoutFacts]
    metadata: MetadataFacts | None
    requirements: list[RequirementFacts]
    observed: list[ObservationFacts]
    accepted_by: dict[str, Version]
    releases: dict[str, str]
    semantics: list[SemanticsFacts]
    undefined: list[StatementFacts]
    uniform: list[StatementFacts]
    notes: list[StatementFacts]
    throughput: list[PeakFacts]
    evidence: EvidenceFacts
    errata: list[ErratumFacts]
    cplusplus: CplusplusFacts


def describe(instruction: Instruction) -> Description:
    """Everything that the database knows about an instruction.

    Raises:
        ValueError: the evidence beside the database is of another version of ptxmma.
    """
    variant = instruction.variant
    return {
        "instruction": instruction.canonical,
        "identifier": instruction.identifier,
        "title": variant.instruction.title,
        "family": instruction.family,
        "documented": instruction.documented,
        "source": variant.form.source,
        "shape": list(instruction.shape) if instruction.shape else None,
        "scope": variant.instruction.scope,
        "operation": instruction.operation,
        "sparse": instruction.sparse,
        "asynchronous": variant.instruction.asynchronous,
        "syntax": variant.instruction.syntax,
        "qualifiers": {name: value for name, value in instruction.qualifiers.items() if value},
        "hints": _hints(instruction),
        "product": dict(variant.chosen),
        "legal_products": [] if variant.chosen else legal_products.in_words(instruction.database.spec, variant),
        "instruction_descriptor": _descriptor(instruction),
        "operations": _operations(instruction),
        "forms": [{"name": form.name, "operands": form.syntax, "registers": _registers(form)} for form in instruction.forms],
        "operands": [_operand(operand) for operand in _operands(instruction)],
        "layouts": _layouts(instruction),
        "tensor_layouts": [_tensor_layout(placed, names) for placed, names in _placed(instruction)],
        "metadata": _metadata(instruction),
        "requirements": _plain(instruction.requirements()),
        "observed": _plain(instruction.observed()),
        "accepted_by": instruction.accepted_by(),
        "releases": instruction.releases(),
        "semantics": _plain(instruction.semantics()),
        "undefined": _plain(instruction.undefined()),
        "uniform": _plain(instruction.uniform()),
        "notes": _plain(instruction.notes()),
        "throughput": [peak._asdict() for peak in throughput.peaks(instruction)],
        "evidence": _evidence(instruction),
        "errata": _plain(instruction.errata()),
        "cplusplus": _cplusplus(instruction),
    }


def _taken(kind: type[_Facts], source: object, **others: Any) -> _Facts:
    """Facts that are attributes of a source, by their names; the others are given.  JSON has lists, where sources have tuples."""
    facts = {name: others[name] if name in others else getattr(source, name) for name in kind.__annotations__}
    return cast("_Facts", {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()})


def _hints(instruction: Instruction) -> list[HintFacts]:
    """The hints that it takes, each with its values and what they mean, and the value of this spelling."""
    spelled = instruction.hints
    return [
        _taken(HintFacts, hint, value=spelled.get(hint.name, ""), values=values, requirements=_plain(hint.requires))
        for hint, values in instruction.possible_hints()
    ]


def _plain(entries: Iterable[msgspec.Struct]) -> list[dict[str, Any]]:
    """The spec's entries as JSON objects."""
    plain = (msgspec.json.decode(msgspec.json.encode(entry)) for entry in entries)
    return [{key: value for key, value in entry.items() if key not in _SETTLED} for entry in plain]


def _operands(instruction: Instruction) -> list[Operand]:
    """The operands of all forms, each once."""
    return list({operand.name: operand for operand in instruction.operands}.values())


def _operations(instruction: Instruction) -> int | None:
    """Multiplications and additions, those with the zeros of a sparse A too; None for an instruction that does not multiply."""
    if not instruction.shape_sizes.keys() >= set("mnk"):
        return None
    products = max(operand.computations for operand in _operands(instruction))
    return 2 * products * math.prod(instruction.extents[extent] for extent in "mnk")


def _registers(form: OperandForm) -> dict[str, int]:
    """Registers of 32 bits that each operand takes in a thread, those alone that hold matrices, metadata, scale factors or addresses."""
    widths = {"64": 2, "32": 1, "x2": 1}
    return {
        operand.name: operand.registers * widths[operand.register_types[0][-2:]]
        for operand in form.operands
        if operand.registers and operand.register_types[0][-2:] in widths
    }


def _operand(operand: Operand) -> OperandFacts:
    rows, cols = operand.plane
    layout, immediates = operand.layout.name if operand.layout else None, _immediates(operand.immediates)
    return _taken(OperandFacts, operand, type=operand.element_type, rows=rows, cols=cols, layout=layout, immediates=immediates)


def _immediates(legal: Sequence[int] | None) -> list[int] | dict[str, int] | None:
    """The legal constants as a list, or the first, last and step of a range; None if constants are not allowed."""
    if isinstance(legal, range):
        return {"first": legal[0], "last": legal[-1]} | ({"step": legal.step} if legal.step > 1 else {})
    return None if legal is None else list(legal)


def _layouts(instruction: Instruction) -> list[LayoutFacts]:
    """The layouts of its operands, each once, as expressions in both directions."""
    users: dict[str, tuple[Layout, list[Operand]]] = {}
    for operand in _operands(instruction):
        if operand.layout is not None:
            users.setdefault(operand.layout.name, (operand.layout, []))[1].append(operand)
    layouts: list[LayoutFacts] = []
    for layout, operands in users.values():
        forward, back = both_ways(layout)
        layouts.append(
            {
                "name": layout.name,
                "kind": layout.kind,
                "operands": [operand.name for operand in operands],
                "forward": forward,
                "back": back,
                "cute": _text(operands[0].to_cute),
                "triton": _text(operands[0].to_triton),
            }
        )
    return layouts


def _text(notation: Callable[[], Any]) -> Any:
    """A layout in another notation; None where that has no way to write it."""
    try:
        return notation()
    except ValueError:
        return None


def _evidence(instruction: Instruction) -> EvidenceFacts:
    proof = instruction.evidence
    assembled = {release: list(targets) for release, targets in proof.assembled.items()}
    executed = [_taken(ExecutedFacts, ran) for ran in proof.executed]
    return _taken(EvidenceFacts, proof, assembled=assembled, executed=executed, layouts=_compared_layouts(instruction))


def _placed(instruction: Instruction) -> list[tuple[TensorPlaces, list[str]]]:
    """The layouts in tensor memory, each once, with the names of their operands."""
    users: dict[str, tuple[TensorPlaces, list[str]]] = {}
    for operand in _operands(instruction):
        if operand.tensor is not None:
            users.setdefault(operand.tensor.layout.name, (operand.tensor, []))[1].append(operand.name)
    return list(users.values())


def _tensor_layout(placed: TensorPlaces, operands: list[str]) -> TensorLayoutFacts:
    """A layout in tensor memory: the formulas of both directions."""
    selections = {name: list(values) for name, values in placed.selections.items()}
    return _taken(TensorLayoutFacts, placed.layout, operands=operands, axes=placed.sizes, selections=selections)


def _compared_layouts(instruction: Instruction) -> list[ComparedLayout]:
    """Return other projects' answers about the layouts of its operands, in tensor memory and, where no atom was compared, in registers."""
    summary = evidence.of(instruction.database)
    users = {placed.layout.name: (operands, "tensor memory") for placed, operands in _placed(instruction)}
    for operand in () if instruction.evidence.peers else _operands(instruction):
        if operand.layout is not None and summary.of_layout(operand.layout.name) != LayoutEvidence():
            users.setdefault(operand.layout.name, ([], "registers"))[0].append(operand.name)
    return [_taken(ComparedLayout, summary.of_layout(name), name=name, operands=each, space=space) for name, (each, space) in users.items()]


def _descriptor(instruction: Instruction) -> DescriptorFacts | None:
    """The instruction descriptor of a product, with what it leaves open as 0; None without one."""
    if not instruction.variant.chosen:
        return None
    codec = codec_of(instruction)
    kind = next((short for short, kind in codec.format.short_kinds.items() if kind == codec.kind), "")
    return {"kind": kind, "bits": f"{of_product(instruction):#010x}"}


def _cplusplus(instruction: Instruction) -> CplusplusFacts:
    shown = cplusplus.shown(instruction)
    family, product = family_of(instruction), product_family.type_of_product(instruction)
    front_header = f"ptxmma/{family.calls_header(instruction)}" if family and product else shown.header if shown.front else ""
    return _taken(CplusplusFacts, shown, front=product or shown.front, front_header=front_header)


def _metadata(instruction: Instruction) -> MetadataFacts | None:
    """The sparsity metadata; None where there is none."""
    try:
        metadata = instruction.metadata
    except Missing:
        return None
    return _taken(MetadataFacts, metadata, pattern=metadata.granularity.name)
