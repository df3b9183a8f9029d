"""The tables of what is derived from the spec: variants with their targets, operand lists and rules; operands, and the bits of layouts.

A struct is a row.  Everything that is known of an instruction comes from the catalog.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit.database.relations import Relations
from ptxmma.generator.emit.database.sql_tables import Table, Value, table
from ptxmma.model import Layout
from ptxmma.model.decision_table import DecisionTable

# --- variants ---------------------------------------------------------------------------------------------------------------


VariantId = Annotated[int, Meta(extra={"key": True, "references": "variants"})]


class Support(msgspec.Struct):
    """The support of variants with the same requirements."""

    id: Id
    ptx: Annotated[
        str,
        Meta(description="the first PTX ISA version that has the instruction, whatever the target", extra={"references": "isa_versions"}),
    ]


class SupportTarget(msgspec.Struct):
    """The targets that accept such variants by the newest assembler."""

    support: Annotated[int, Meta(extra={"key": True, "references": "supports"})]
    target: Annotated[str, Meta(extra={"key": True, "references": "targets"})]
    ptx: Annotated[str, Meta(description="the first version that accepts them on it", extra={"references": "isa_versions"})]
    least: Annotated[bool, Meta(description="1: the target includes no other of these")]


class Variant(msgspec.Struct):
    """Every instruction: a form with one value for each qualifier."""

    id: Id
    identifier: Annotated[
        str, Meta(description="'mma_m16n8k16_f32_f16_f16_f32': unique, and a column of every view", extra={"unique": True})
    ]
    canonical: Annotated[str, Meta(description="its PTX spelling", extra={"unique": True})]
    instruction: Annotated[str, Meta(extra={"references": "instructions"})]
    documented: Annotated[bool, Meta(description="0: assemblers take it, the manual does not have it")]
    support: Annotated[int, Meta(extra={"references": "supports"})]
    source: str


class VariantExtent(msgspec.Struct):
    """The sizes of a variant."""

    variant: VariantId
    name: Annotated[str, Meta(description="'m'", extra={"key": True})]
    value: int


class VariantQualifier(msgspec.Struct):
    """The qualifiers that a variant has; an absent one has no row."""

    variant: VariantId
    qualifier: Annotated[int, Meta(extra={"key": True, "references": "qualifiers"})]
    value: Annotated[str, Meta(description="without its dot")]


class VariantOperandList(msgspec.Struct):
    """The operand lists of a variant."""

    variant: VariantId
    position: Position
    operand_list: Annotated[int, Meta(extra={"references": "operand_lists"})]


class ConditionalRequirement(msgspec.Struct):
    """The variants that match the condition of a requirement that has one; the view variant_requirements has all."""

    variant: VariantId
    requirement: Annotated[int, Meta(extra={"key": True, "references": "requirements"})]


class ConditionalObservation(msgspec.Struct):
    """The variants that match the condition of an observation that has one; the view variant_observations has all."""

    variant: VariantId
    observation: Annotated[int, Meta(extra={"key": True, "references": "observations"})]


class ConditionalSemantics(msgspec.Struct):
    """The variants that match the condition of semantics that have one; the view variant_semantics has all."""

    variant: VariantId
    semantics: Annotated[int, Meta(extra={"key": True, "references": "semantics"})]


class ConditionalStatement(msgspec.Struct):
    """The variants that match the condition of a statement that has one; the view variant_statements has all."""

    variant: VariantId
    statement: Annotated[int, Meta(extra={"key": True, "references": "statements"})]


#: The rules that hold for some variants of an instruction only, by the fields of the instruction that list them.
_RULES: dict[type[Any], tuple[str, ...]] = {
    ConditionalRequirement: ("requires",),
    ConditionalObservation: ("observed",),
    ConditionalSemantics: ("semantics",),
    ConditionalStatement: ("undefined", "uniform", "notes"),
}


def tables(catalog: Catalog, model: Relations) -> Iterator[Table]:
    """Every table of variants and operands; variants count from 1 in the order of the catalog."""
    variants: list[Variant] = []
    extents: list[VariantExtent] = []
    qualifiers: list[VariantQualifier] = []
    taken: list[VariantOperandList] = []
    supports = Numbers()
    operands = Operands(model)
    for number, instruction in enumerate(catalog.all(), 1):
        entry, accepted = instruction.variant.instruction, instruction.accepted_by()
        support = supports[requirements.floor(instruction.variant), tuple(accepted.items())]
        source = instruction.variant.form.source
        variants.append(Variant(number, instruction.identifier, instruction.canonical, entry.name, instruction.documented, support, source))
        extents += [VariantExtent(number, name, value) for name, value in instruction.extents.items()]
        values = instruction.qualifiers
        qualifiers += [VariantQualifier(number, model.number(entry.qualifiers[name]), value) for name, value in values.items() if value]
        taken += [VariantOperandList(number, position, operands.list_number(form)) for position, form in enumerate(instruction.forms)]
    yield table(Support, (Support(number, ptx) for (ptx, _), number in supports.items()))
    yield table(SupportTarget, (row for (_, accepted), number in supports.items() for row in _support(catalog, number, dict(accepted))))
    yield table(Variant, variants)
    yield table(VariantExtent, extents)
    yield table(VariantQualifier, qualifiers)
    yield from operands.tables()
    yield table(VariantOperandList, taken)
    for struct, names in _RULES.items():
        yield table(struct, (struct(*pair) for pair in _conditional(catalog, model, names)))


def _support(catalog: Catalog, support: int, accepted: dict[str, str]) -> Iterator[SupportTarget]:
    includes = {target.name: target.includes for target in catalog.database.spec.targets}
    for target, ptx in accepted.items():
        yield SupportTarget(support, target, ptx, not accepted.keys() & set(includes[target]))


def _conditional(catalog: Catalog, model: Relations, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Each variant with each rule of those fields whose condition it matches."""
    numbers = itertools.count(1)
    for entry in catalog.database.spec.instructions:
        conditional = DecisionTable([rule for name in names for rule in getattr(entry, name) if rule.when], "when")
        for instruction in catalog.of(entry.name):
            variant = next(numbers)
            if names == ("requires",) and not instruction.documented:  # the manual's rules are about what it has
                continue
            yield from ((variant, model.number(rule)) for rule in conditional(instruction.variant.facts))


# --- operands ---------------------------------------------------------------------------------------------------------------


#: A number that other rows know this one by.
Id = Annotated[int, Meta(extra={"key": True})]
Position = Annotated[int, Meta(extra={"key": True})]


class OperandRow(msgspec.Struct):
    """An operand of one or more operand lists."""

    id: Id
    name: Annotated[str, Meta(description="the manual's: 'a', 'b-desc'")]
    kind: str
    title: str
    access: Annotated[str, Meta(description="'read', 'write' or 'read-write'")]
    element_type: Annotated[str | None, Meta(extra={"references": "element_types"})]
    bits: Annotated[int, Meta(description="between neighbouring elements; 0 without elements, as the next four")]
    rows: int
    cols: int
    elements: Annotated[int, Meta(description="in each thread")]
    registers: Annotated[int, Meta(description="in each thread")]
    asm_constraint: Annotated[str, Meta(description="of inline assembly")]
    takes_register: bool
    takes_immediate: bool
    default: Annotated[int | None, Meta(description="immediate that wrappers assume")]
    uniform: Annotated[str, Meta(description="scope over which it must have one value; '' for none")]
    layout: Annotated[str | None, Meta(extra={"references": "layouts"})]
    granularity: Annotated[int | None, Meta(description="of a sparse A", extra={"references": "granularities"})]
    source: str


class OperandRegister(msgspec.Struct):
    """The register types that assemblers take, the usual one at position 0."""

    operand: Annotated[int, Meta(extra={"key": True, "references": "operands"})]
    position: Position
    register_type: Annotated[str, Meta(extra={"references": "register_types"})]


class OperandImmediate(msgspec.Struct):
    """The legal immediates: all values in these spans, ``step`` apart."""

    operand: Annotated[int, Meta(extra={"key": True, "references": "operands"})]
    first: Annotated[int, Meta(extra={"key": True})]
    last: int
    step: int


class OperandList(msgspec.Struct):
    """A list of operands as an instruction takes it."""

    id: Id
    form: Annotated[str, Meta(description="'registers' or 'descriptor', by where A comes from; '' where there is one list")]
    syntax: Annotated[str, Meta(description="'d, a, b, c'")]


class OperandListMember(msgspec.Struct):
    """The operands of a list in their order."""

    operand_list: Annotated[int, Meta(extra={"key": True, "references": "operand_lists"})]
    position: Position
    operand: Annotated[int, Meta(extra={"references": "operands"})]


class LayoutBit(msgspec.Struct):
    """A layout moves each bit of its inputs to one bit of one output."""

    layout: Annotated[str, Meta(extra={"key": True, "references": "layouts"})]
    input: Annotated[str, Meta(description="'lane'", extra={"key": True})]
    bit: Annotated[int, Meta(extra={"key": True})]
    output: Annotated[str, Meta(description="'row'")]
    output_bit: int


class Numbers(dict[Any, int]):
    """Numbers things from 1 in the order in which they are first asked for."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self) + 1
        return self[key]


class Operands:
    """The rows of operands and of lists of them, each distinct one once."""

    def __init__(self, model: Relations) -> None:
        self._model = model
        self._numbers, self._lists = Numbers(), Numbers()
        self._seen: dict[int, int] = {}  # many variants share one object

    def list_number(self, form: OperandForm) -> int:
        """The number of an operand list's row."""
        return self._lists[form.name, form.syntax, tuple([self._number(operand) for operand in form.operands])]

    def _number(self, operand: Operand) -> int:
        number = self._seen.get(id(operand))
        if number is None:
            key = (self._row(operand), operand.register_types, tuple(spans(operand.immediates or ())))
            number = self._seen[id(operand)] = self._numbers[key]
        return number

    def tables(self) -> Iterator[Table]:
        """The tables of the operands and lists whose numbers were asked for."""
        yield table(OperandRow, (OperandRow(number, *row) for (row, *_), number in self._numbers.items()), name="operands")
        registers = [(number, pair) for (_, types, _), number in self._numbers.items() for pair in enumerate(types)]
        yield table(OperandRegister, (OperandRegister(number, *pair) for number, pair in registers))
        immediates = [(number, span) for (*_, values), number in self._numbers.items() for span in values]
        yield table(OperandImmediate, (OperandImmediate(number, *span) for number, span in immediates))
        yield table(OperandList, (OperandList(number, form, syntax) for (form, syntax, _), number in self._lists.items()))
        places = [(number, pair) for (*_, members), number in self._lists.items() for pair in enumerate(members)]
        yield table(OperandListMember, (OperandListMember(number, *pair) for number, pair in places))

    def _row(self, operand: Operand) -> tuple[Value, ...]:
        """The columns of :class:`OperandRow` after the first."""
        layout = operand.layout.name if operand.layout is not None else None
        pattern = self._model.number(operand.sparsity) if operand.sparsity is not None else None
        what = (operand.name, operand.kind, operand.title, operand.access, operand.element_type, operand.bits, *operand.plane)
        carried = (operand.elements, operand.registers, operand.constraint, operand.takes_register, operand.immediates is not None)
        return (*what, *carried, operand.default, operand.uniform, layout, pattern, operand.source)


def spans(values: Sequence[int]) -> list[tuple[int, int, int]]:
    """The runs of neighbouring values, as first, last and step."""
    if isinstance(values, range):  # it may be too long to look at each
        return [(values[0], values[-1], values.step)]
    runs: list[tuple[int, int, int]] = []
    for value in values:
        if runs and runs[-1][1] + 1 == value:
            runs[-1] = (runs[-1][0], value, 1)
        else:
            runs.append((value, value, 1))
    return runs


def layout_bits(layouts: Sequence[Layout]) -> Table:
    """A row for each input bit of each layout."""
    return table(
        LayoutBit,
        (
            LayoutBit(layout.name, source, bit, output, place)
            for layout in layouts
            for source, targets in layout.map.bits.items()
            for bit, (output, place) in enumerate(targets)
        ),
    )
