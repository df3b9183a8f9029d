"""Roles: the kinds of operands that instructions are composed of, and the description of one operand of one variant.

A family whose operands have these roles needs no Python.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import get_args

from ptxmma.catalog import layouts
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.operand_form import OperandForm
from ptxmma.catalog.products import resolution
from ptxmma.catalog.roles import memory, numbers, registers, tensor_memory  # noqa: F401  # their classes enter themselves
from ptxmma.catalog.roles.role import ROLE_OF, Context, Known, Parameter, Role, register, register_type, vector
from ptxmma.catalog.variants import Variant
from ptxmma.model import Database, InstructionSet, Kind, RegisterLayout, Spec, formula, matches, operand_names
from ptxmma.model.formula import FormulaError

__all__ = [
    "ROLES", "OperandKeys", "Parameter", "Role", "forms", "matrices", "matrix_types", "multiplicands", "register",
    "register_type", "vector",
]  # fmt: skip

_BRACKETED = re.compile(r"\[([^\],]+)[\],]")

#: The role of each kind of operand.
ROLES: dict[Kind, Role] = {kind: ROLE_OF[kind]() for kind in get_args(Kind)}


def forms(database: Database, variant: Variant) -> tuple[OperandForm, ...]:
    """The operand lists of a variant, A in registers before A by descriptor; variants that agree in what they can depend on share them."""
    keys = OperandKeys.of(database.spec)
    key = ("operand lists", keys.lists(variant))
    made: tuple[OperandForm, ...] | None = database.memo.get(key)
    if made is None:
        every = (_form(database, keys, variant, text) for text in variant.operand_lists)
        made = database.memo[key] = tuple(sorted(every, key=lambda form: form.name == "descriptor"))
    return made


def _form(database: Database, keys: OperandKeys, variant: Variant, text: str) -> OperandForm:
    instruction, names = variant.instruction, operand_names(text)
    described = tuple(_describe(database, keys, variant, name) for name in names)
    rules = [(name, rule) for name in names for rule in instruction.operand_kinds[name].requires]
    rules = [(name, rule) for name, rule in rules if matches(rule.when, variant.facts)]
    required = tuple(rule for _, rule in rules if not rule.values)
    of_values = tuple((name, rule) for name, rule in rules if rule.values)
    return OperandForm(_form_name(instruction, described), text, described, required, of_values)


def _form_name(instruction: InstructionSet, described: Iterable[Operand]) -> str:
    """``"registers"`` or ``"descriptor"`` where a matrix may come from either; ``""`` elsewhere."""
    kinds = instruction.operand_kinds
    either = {entry.of for entry in kinds.values() if entry.kind == "descriptor"} & kinds.keys()
    for operand in described:
        if operand.name in either:
            return "registers"
        if operand.kind == "descriptor" and operand.of in either:
            return "descriptor"
    return ""


def _describe(database: Database, keys: OperandKeys, variant: Variant, name: str) -> Operand:
    """Operand ``name`` of a variant; variants that agree in all that an operand can depend on share one object."""
    key = keys.exact(variant, name)
    operand: Operand | None = database.memo.get(key)
    if operand is None:
        entry = variant.instruction.operand_kinds[name]
        known: Known = {name: getattr(entry, name) for name in ("of", "within", "droppable", "access", "default", "uniform")}
        known["bracketed"] = name in _bracketed(variant.instruction)
        known |= ROLES[entry.kind].describe(Context(database, variant, name, entry, keys.plan))
        operand = ROLES[entry.kind].operand_type(name=name, kind=entry.kind, title=entry.title, source=entry.source, **known)
        database.memo[key] = operand
    return operand


def _bracketed(instruction: InstructionSet) -> frozenset[str]:
    """The operands that PTX has in brackets, alone or first."""
    made: frozenset[str] | None = instruction.memo.get("bracketed")
    if made is None:
        texts = itertools.chain.from_iterable(instruction.operands.values())
        made = instruction.memo["bracketed"] = frozenset(name for text in texts for name in _BRACKETED.findall(text))
    return made


def matrices(instruction: InstructionSet) -> dict[str, str]:
    """The qualifier with the element type of each matrix, wherever it lies: ``{"d": "dtype", "a": "atype", "b": "btype"}``.

    A matrix has the name of the operand that holds it, or that its descriptor is ``of``.
    """
    made: dict[str, str] | None = instruction.memo.get("matrices")
    if made is None:
        entries = [(name, entry) for name, entry in instruction.operand_kinds.items() if ROLES[entry.kind].matrix]
        made = instruction.memo["matrices"] = {entry.of or name: entry.type for name, entry in entries}
    return made


def matrix_types(variant: Variant) -> dict[str, str]:
    """The element type of each matrix: ``{"d": "f32", "a": "f16", "b": "f16"}``."""
    types = {name: str(variant.facts.get(qualifier, "")) for name, qualifier in matrices(variant.instruction).items()}
    return {name: element for name, element in types.items() if element}


def multiplicands(instruction: InstructionSet) -> tuple[str, ...]:
    """The matrices that it multiplies, in the order of its operand lists: A, B."""
    names = (name for texts in instruction.operands.values() for text in texts for name in operand_names(text))
    entries = ((name, instruction.operand_kinds[name]) for name in names if name in instruction.operand_kinds)
    return tuple(dict.fromkeys(entry.of or name for name, entry in entries if ROLES[entry.kind].multiplied))


class OperandKeys:
    """The keys of the operands of a spec, and their layouts: variants of one instruction with equal keys have equal operands."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._decisive: dict[tuple[str, str], list[str]] = {}
        self._listed: dict[tuple[str, str], list[str]] = {}
        self._unstated: dict[str, tuple[str, ...]] = {}
        self._plans: dict[tuple[object, ...], Plan | None] = {}

    @classmethod
    def of(cls, spec: Spec) -> OperandKeys:
        """The keys of a spec, made once."""
        made: OperandKeys | None = spec.memo.get("operand keys")
        if made is None:
            made = spec.memo["operand keys"] = cls(spec)
        return made

    def exact(self, variant: Variant, operand: str) -> tuple[object, ...]:
        """Equal where all of the operand is, its sizes included."""
        place, facts = (variant.instruction.name, operand), variant.facts
        if variant.chosen:
            return (place, *facts.items())
        names = self._names(variant.instruction, place)
        return (place, variant.shape_label, *[facts.get(name) for name in names], *self._open(variant))

    def lists(self, variant: Variant) -> tuple[object, ...]:
        """Equal where all operands of all operand lists are, and what these operands require."""
        instruction, facts = variant.instruction, variant.facts
        place = (instruction.name, variant.form.operands)
        if variant.chosen:
            return (place, *facts.items())
        names = self._listed.get(place)
        if names is None:
            operands = {name for text in variant.operand_lists for name in operand_names(text)}
            rules = (rule for name in operands for rule in instruction.operand_kinds[name].requires)
            tested = {fact for rule in rules for condition in rule.when for fact in condition}
            names = self._listed[place] = sorted(tested.union(*(self._names(instruction, (instruction.name, name)) for name in operands)))
        return (place, variant.shape_label, *[facts.get(name) for name in names], *self._open(variant))

    def _open(self, variant: Variant) -> tuple[str, ...]:
        """The arguments that an opcode leaves open: an operand in tensor memory says which ones its layout needs."""
        if variant.instruction.operation != resolution.OPERATION:
            return ()
        if variant.canonical not in self._unstated:
            self._unstated[variant.canonical] = tuple(resolution.unstated(self._spec, variant))
        return self._unstated[variant.canonical]

    def shared(self, variant: Variant, operand: str) -> tuple[object, ...]:
        """Equal where all but the sizes is: the numbers of an extent that ranges share a key."""
        place, facts, ranging = (variant.instruction.name, operand), variant.facts, variant.ranging
        names = self._names(variant.instruction, place)
        return (place, variant.shape_label, *[None if name in ranging else facts.get(name) for name in names])

    def plan(self, variant: Variant, operand: str) -> Plan | None:
        """The layout of an operand, or None where the spec has no formula for it; variants with equal keys share it."""
        if variant.chosen:
            return layouts.plan(self._spec, variant, operand)
        key = self.shared(variant, operand)
        if key not in self._plans:
            self._plans[key] = layouts.plan(self._spec, variant, operand)
        return self._plans[key]

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
        *(pattern.ordered_when for pattern in spec.granularities if ROLES[entry.kind].sparse),
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
