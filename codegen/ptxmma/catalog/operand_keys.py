"""Which variants have the same operand: keys of all that an operand can depend on."""

from __future__ import annotations

from ptxmma.catalog import resolution
from ptxmma.catalog.variants import Variant
from ptxmma.model import InstructionSet, RegisterLayout, Spec, formula
from ptxmma.model.formula import FormulaError


class OperandKeys:
    """The keys of the operands of a spec: variants of one instruction with equal keys have equal operands."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._decisive: dict[tuple[str, str], list[str]] = {}
        self._unstated: dict[str, tuple[str, ...]] = {}

    def exact(self, variant: Variant, operand: str) -> tuple[object, ...]:
        """Equal where all of the operand is, its sizes included."""
        place, facts = (variant.instruction.name, operand), variant.facts
        if variant.chosen:
            return (place, *facts.items())
        names = self._names(variant.instruction, place)
        return (place, variant.shape_label, *[facts.get(name) for name in names], *self._open(variant))

    def _open(self, variant: Variant) -> tuple[str, ...]:
        """The arguments that an opcode leaves open: an operand in tensor memory says which ones its layout needs."""
        if variant.canonical not in self._unstated:
            products = variant.instruction.operation == resolution.OPERATION
            self._unstated[variant.canonical] = tuple(resolution.unstated(self._spec, variant)) if products else ()
        return self._unstated[variant.canonical]

    def shared(self, variant: Variant, operand: str) -> tuple[object, ...]:
        """Equal where all but the sizes is: the numbers of an extent that ranges share a key."""
        place, facts, ranging = (variant.instruction.name, operand), variant.facts, variant.ranging
        names = self._names(variant.instruction, place)
        return (place, variant.shape_label, *[None if name in ranging else facts.get(name) for name in names])

    def _names(self, instruction: InstructionSet, place: tuple[str, str]) -> list[str]:
        names = self._decisive.get(place)
        if names is None:
            own = {*instruction.qualifiers, *instruction.extents, *instruction.extent_names}
            names = self._decisive[place] = sorted(own & _decisive(self._spec, instruction, place[1]))
        return names


def _decisive(spec: Spec, instruction: InstructionSet, operand: str) -> set[str]:
    """The facts of a variant, beside its shape's label, that an operand can depend on: those that conditions test and formulas read."""
    kinds = instruction.operand_kinds
    entry = kinds[operand]
    related = {operand, *(other for other, kind in kinds.items() if entry.of and entry.of in (other, kind.of))}
    parts = [part for part in spec.register_layouts if related.intersection(part.operands)]
    texts = [entry.alignment, entry.memory_bits, entry.row_bytes, entry.count, *(text for part in parts for text in _formulas(part))]
    elements = parts or any(texts) or any(kinds[other].type or kinds[other].sparse for other in related if other in kinds)
    conditions = [
        *(other.when for other in entry.other_values),
        *(container.when for container in spec.types.containers if elements),
        *(carrier.when for carrier in spec.types.carriers if operand in carrier.operands),
        *(pattern.of for pattern in spec.granularities if elements),
        *(part.of for part in parts),
        *(stated.of for part in parts for stated in part.stated),
        *(layout.of for layout in spec.tensor_layouts if layout.operand == entry.kind),
    ]
    names = {fact for condition in conditions for case in condition for fact in case}
    names.update(name for text in texts for name in _names(text))
    names.update(fact for part in parts for fact in formula.placeholders(part.name))
    names.update(kinds[other].type for other in related if other in kinds)
    return {*names, entry.order} - {instruction.shape}


def _formulas(part: RegisterLayout) -> list[str]:
    cases = [case for cases in part.at.values() for case in cases]
    return [*part.axes.values(), *part.steps.values(), *part.let.values(), *(text for case in cases for text in (case.value, case.when))]


def _names(text: str) -> list[str]:
    """The names that a formula reads; none of one that does not parse, which evaluation reports."""
    try:
        return list(formula.names(formula.parse(text))) if text else []
    except FormulaError:
        return []
