"""Operands: the roles that instructions are composed of, and the description of one operand of one variant.

The set of roles is closed: a family made of these is data alone.
"""

from __future__ import annotations

from ptxmma.catalog.operands.fragment_role import Accumulator, Fragment
from ptxmma.catalog.operands.immediate_role import Immediate, Majorness, Negation
from ptxmma.catalog.operands.memory_role import Address, Descriptor, Stride
from ptxmma.catalog.operands.metadata_role import MetadataWord, Selector
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.predicate_role import Predicate
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role, register, register_type, vector
from ptxmma.catalog.operands.scale_role import ByteId, ScaleData, ThreadId
from ptxmma.catalog.variants import Variant
from ptxmma.model import Database, InstructionSet, Spec, formula

__all__ = ["ROLES", "Operand", "Parameter", "Role", "describe", "register", "register_type", "vector"]

#: The roles by the name that the spec has for each.
ROLES: dict[str, Role] = {
    "fragment": Fragment(),
    "accumulator": Accumulator(),
    "descriptor": Descriptor(),
    "address": Address(),
    "stride": Stride(),
    "predicate": Predicate(),
    "metadata": MetadataWord(),
    "selector": Selector(),
    "immediate": Immediate(),
    "majorness": Majorness(),
    "negation": Negation(),
    "scale-data": ScaleData(),
    "byte-id": ByteId(),
    "thread-id": ThreadId(),
}


def describe(database: Database, variant: Variant, name: str) -> Operand:
    """Operand ``name`` of a variant; variants that agree in all that an operand can depend on share one object."""
    instruction, facts = variant.instruction, variant.facts
    place = (instruction.name, name)
    names = database.memo.get(place)
    if names is None:
        names = database.memo[place] = _decisive(database.spec, name, instruction)
    key = (place, variant.shape_label, *[facts.get(fact) for fact in names])
    operand: Operand | None = database.memo.get(key)
    if operand is None:
        entry = instruction.operand_kinds[name]
        known: Known = {"of": entry.of, "access": entry.access, "default": entry.default, "uniform": entry.uniform}
        known |= ROLES[entry.kind].describe(Context(database, variant, name, entry))
        operand = Operand(name=name, kind=entry.kind, title=entry.title, source=entry.source, **known)
        database.memo[key] = operand
    return operand


def _decisive(spec: Spec, name: str, instruction: InstructionSet) -> list[str]:
    """The facts of a variant, beside its shape's label, that an operand can depend on: those that conditions test and formulas read."""
    kinds = instruction.operand_kinds
    entry = kinds[name]
    related = {name, *(other for other, kind in kinds.items() if entry.of and entry.of in (other, kind.of))}
    parts = [part for part in spec.register_layouts if related.intersection(part.operands)]
    conditions = [
        *(container.when for container in spec.types.containers),
        *(carrier.when for carrier in spec.types.carriers if name in carrier.operands),
        *(pattern.of for pattern in spec.granularities),
        *(part.of for part in parts),
    ]
    names = {fact for condition in conditions for case in condition for fact in case}
    texts = [text for part in parts for text in (*part.axes.values(), *part.steps.values())]
    texts += [text for text in (entry.alignment, entry.row_bytes) if text]
    names |= {size for text in texts for size in formula.names(formula.parse(text))}
    names |= {fact for part in parts for fact in formula.placeholders(part.name)}
    names |= {kinds[other].type for other in related if other in kinds} | {entry.order}
    return sorted(names - {instruction.shape, ""})
