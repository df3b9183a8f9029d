"""The tables of what is derived from the spec: variants with their targets, operand lists and rules.

A struct is a row.  Everything that is known of an instruction comes from the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.database.operand_rows import Id, Numbers, Operands, Position
from ptxmma.generator.emit.database.relations import Relations
from ptxmma.generator.emit.database.sql_tables import Table, table
from ptxmma.model import matches

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
    for variant, instruction in enumerate(catalog.all(), 1):
        if names == ("requires",) and not instruction.documented:  # the manual's rules are about what it has
            continue
        for name in names:
            for rule in getattr(instruction.variant.instruction, name):
                if rule.when and matches(rule.when, instruction.variant.facts):
                    yield variant, model.number(rule)
