"""The operands of an instruction: each has the fields that its kind needs, and the operand lists have a valid order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.catalog.operands import ROLES
from ptxmma.catalog.variants import qualifier_values
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import NUMBERS, Place, RuleContext, listed
from ptxmma.model import InstructionSet, OperandKind, formula, operand_names


def problems(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """Problems of the operands of the instruction at ``place``."""
    described = [(operand.kind, operand.of) for operand in entry.operand_kinds.values() if ROLES[operand.kind].alone]
    for kind, of in sorted({pair for pair in described if described.count(pair) > 1}):
        yield Problem(context.at(*place, "operand_kinds"), f"two operands of kind {kind} are of {of!r}")
    for name, operand in entry.operand_kinds.items():
        yield from _kind(context, entry, name, operand, (*place, "operand_kinds", name))
    named = {name for texts in entry.operands.values() for text in texts for name in operand_names(text)}
    for name in entry.operand_kinds:
        if name not in named:
            yield Problem(context.at(*place, "operand_kinds", name), f"no operand list has {name!r}; add it to one, or leave it out")
    taken = {form.operands for form in entry.forms}
    for key, texts in entry.operands.items():
        here = (*place, "operands", key)
        if key not in taken:
            message = f"no form takes the operand list {key!r}: say operands: {key} in a form, or leave the list out"
            yield Problem(context.at(*here), message)
        for text in sorted({text for text in texts if texts.count(text) > 1}):
            yield Problem(context.at(*here), f"the operand list {text!r} is there twice; leave one out")
        for text in texts:
            yield from context.known("operand", operand_names(text), entry.operand_kinds, *here)
            yield from _sequence(context, entry, text, here)
        yield from _alternatives(context, entry, texts, here)


def _kind(context: RuleContext, entry: InstructionSet, name: str, operand: OperandKind, place: Place) -> Iterator[Problem]:
    """An operand has the fields that its kind needs."""
    here = context.at(*place)
    if ROLES[operand.kind].typed:
        yield from context.known("qualifier", [operand.type], entry.qualifiers, *place, "type")
        if operand.type in entry.qualifiers:
            values = qualifier_values(entry, operand.type)
            if values.isdisjoint(context.elements):
                message = (
                    f"the values of {operand.type!r} are not element types: {listed(sorted(values))}; known: {listed(context.elements)}"
                )
                yield Problem(context.at(*place, "type"), message)
    if ROLES[operand.kind].sparse and not entry.sparse:
        yield Problem(here, f"{name!r} is for a sparse matrix; no operand of this instruction says sparse: true")
    for missing in ROLES[operand.kind].lacks(operand):
        yield Problem(here, f"{name!r} is of the kind {operand.kind}: {missing}")
    beside = ROLES[operand.kind].beside
    if beside and not any((other.kind, other.of) == (beside, operand.of) for other in entry.operand_kinds.values()):
        yield Problem(here, f"{name!r} is of the kind {operand.kind}: no operand of the kind {beside} is of {operand.of!r}")
    if operand.order:
        yield from context.known("qualifier", [operand.order], entry.qualifiers, *place, "order")
    if operand.of and ROLES[operand.kind].places:
        yield from context.known("operand", [operand.of], entry.operand_kinds, *place, "of")
    for key in ("alignment", "memory_bits", "row_bytes", "count"):
        yield from _size(context, entry, getattr(operand, key), (*place, key))


def _size(context: RuleContext, entry: InstructionSet, text: str, place: Place) -> Iterator[Problem]:
    """A formula for a number of bytes or bits reads the sizes of its instruction, and what formulas of layouts read."""
    sizes = set(entry.extent_names)
    try:
        unknown = sorted(formula.names(formula.parse(text)).keys() - sizes - NUMBERS) if text else []
    except formula.FormulaError as error:
        position = context.at(*place)
        yield Problem(position._replace(column=position.column + error.column), str(error))
        return
    for name in unknown:
        yield Problem(context.at(*place), f"unknown name {name!r}; known here: {listed(sorted(sizes | NUMBERS))}")


def _sequence(context: RuleContext, entry: InstructionSet, text: str, place: Place) -> Iterator[Problem]:
    """An operand that follows another one comes after the one of its own matrix: scale ids after the scale factors that they select."""
    latest: dict[str, str] = {}
    for name in operand_names(text):
        operand = entry.operand_kinds.get(name)
        if operand is None:
            continue
        role = ROLES[operand.kind]
        if role.follows and operand.of != latest.get(role.beside):
            after = latest.get(role.beside, "nothing")
            yield Problem(context.at(*place), f"{name!r} is of {operand.of!r}; in the list it follows the {role.beside} of {after!r}")
        latest[operand.kind] = operand.of


def _alternatives(context: RuleContext, entry: InstructionSet, texts: Sequence[str], place: Place) -> Iterator[Problem]:
    """The operand lists of one form differ in where their matrices are, and in the constants that go with it."""
    rests = []
    for text in texts:
        kinds = {name: entry.operand_kinds[name].kind for name in operand_names(text) if name in entry.operand_kinds}
        rests.append([name for name, kind in kinds.items() if not ROLES[kind].varies])
    for rest in rests[1:]:
        if rest != rests[0]:
            message = f"besides matrices and constants one list has {listed(rest)}, another {listed(rests[0])}: they are of two forms"
            yield Problem(context.at(*place), message)
