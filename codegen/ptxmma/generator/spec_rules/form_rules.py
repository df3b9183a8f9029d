"""The operands and the forms of an instruction: each operand has the fields that its kind needs, and forms define all that these need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ptxmma.catalog.roles import ROLES
from ptxmma.catalog.variants import each_number, placeholders, qualifier_values, ranging, sizes_in, spelled
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import NUMBERS, Place, RuleContext, listed
from ptxmma.model import Extents, Form, InstructionSet, OperandKind, formula, operand_names

# --- operands ---------------------------------------------------------------------------------------------------------------


def operands(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
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
    if operand.values and operand.limit >= 0:
        yield Problem(context.at(*place, "limit"), "values and limit both say the legal immediates; leave one of them out")
    if operand.other_values and not operand.values:
        yield Problem(context.at(*place, "other_values"), "other_values replace values for some forms: give values, too")
    if operand.order:
        yield from context.known("qualifier", [operand.order], entry.qualifiers, *place, "order")
    yield from context.known("operand", filter(None, [operand.within]), entry.operand_kinds, *place, "within")
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


# --- forms ------------------------------------------------------------------------------------------------------------------


#: Far above what hardware has; larger numbers are slips, and would keep the generator busy for hours.
_LARGEST_SIZE = 4096
_MOST_VARIANTS = 100_000


def forms(context: RuleContext, entry: InstructionSet, form: Form, place: Place) -> Iterator[Problem]:
    """Problems of the form at ``place`` of an instruction."""
    wrong_sizes = list(_extents(context, entry, form, place))
    yield from wrong_sizes
    numbers = math.prod(max(len(each_number(form, extent)), 1) for extent in form.ranges) if not wrong_sizes else 1
    count = numbers * math.prod(len(values) for values in form.qualifiers.values())
    if count > _MOST_VARIANTS:
        yield Problem(context.at(*place), f"this form has {count} variants; at most {_MOST_VARIANTS} are allowed")
    yield from _typed_operands(context, entry, form, place)
    if form.documented != (form.source[0].isdigit() or form.source.startswith("PTX ISA ")):
        there = "is documented" if form.documented else "is not"
        message = f"{form.source!r} is not a source for a form that {there}: a section documents a form"
        yield Problem(context.at(*place, "source"), message)
    yield from _qualifiers(context, entry, form, place)
    if entry.operands or form.operands:
        yield from context.known("operand list", [form.operands], entry.operands, *place, "operands")


def _qualifiers(context: RuleContext, entry: InstructionSet, form: Form, place: Place) -> Iterator[Problem]:
    """A form gives qualifiers that exist, and all that the syntax needs."""
    types = {operand.type for operand in entry.operand_kinds.values()}
    for name, values in form.qualifiers.items():
        here = (*place, name)
        if name not in entry.qualifiers and name not in entry.extents:
            known = dict.fromkeys([*entry.qualifiers, *entry.extents])
            yield Problem(context.at(*here), f"unknown qualifier {name!r}; known: {listed(known)}")
        origin = values[0][1:] if values[0].startswith("=") else ""
        if origin and (origin not in form.qualifiers or form.qualifiers[origin][0].startswith("=")):
            yield Problem(context.at(*here), f"'={origin}' must name a qualifier of this form that has values of its own")
        if name in types and not origin:
            yield from context.known("element type", filter(None, values), context.elements, *here)
    optional = {name for name in placeholders(entry.syntax) if f"{{.{name}}}" in entry.syntax}
    for name in placeholders(entry.syntax):
        given = bool(form.qualifiers.get(name)) and "" not in form.qualifiers[name]
        if not given and name not in optional:
            yield Problem(context.at(*place), f"the syntax needs {name!r}, which this form does not give")


def _typed_operands(context: RuleContext, entry: InstructionSet, form: Form, place: Place) -> Iterator[Problem]:
    """A form gives all that the layouts of its instruction's operands are derived from."""
    used = {name for text in entry.operands.get(form.operands, ()) for name in operand_names(text)}
    for name, operand in entry.operand_kinds.items():
        if name in used and operand.type and "" in form.qualifiers.get(operand.type, ("",)):
            yield Problem(context.at(*place), f"operand {name!r} needs {operand.type!r}, which this form does not always give")


def _extents(context: RuleContext, entry: InstructionSet, form: Form, place: Place) -> Iterator[Problem]:
    """Values that give sizes match their pattern or are in their table, and each name in braces has numbers."""
    used = set()
    given: dict[str, str] = {}  # size -> the qualifier whose values give it
    for name, values in form.qualifiers.items():
        for size in _given(entry, form, name) if name in entry.extents else ():
            if (other := given.setdefault(size, name)) != name:
                message = f"{other!r} and {name!r} both give the size {size!r}; rename it in the extents of one of them"
                yield Problem(context.at(*place, name), message)
        for number, value in enumerate(values):
            here = (*place, name, number) if len(values) > 1 else (*place, name)
            braces = formula.placeholders(value)
            used |= set(braces)
            for extent in braces:
                if extent not in form.ranges:
                    message = f"{value} needs ranges: {{{extent}: ...}}, the numbers of {extent}"
                    yield Problem(context.at(*here), message)
            if braces:
                yield from _braces(context, name, entry.extents.get(name, Extents()), value, here)
            if name in entry.extents and value and all(extent in form.ranges for extent in braces):
                first = {extent: form.ranges[extent][0].first for extent in braces}
                yield from _sizes(context, entry, name, spelled(value, first), here)
    if len(many := ranging(form)) > 1:
        example = "shape: [m64n{n}k16, m128n{n}k16]"
        message = f"{' and '.join(many)} range; one extent of a form may: list the values of the others, as in {example}"
        yield Problem(context.at(*place, "ranges"), message)
    for extent in form.ranges:
        if extent not in used:
            yield Problem(context.at(*place, "ranges", extent), f"no value of this form contains {{{extent}}}")


def _braces(context: RuleContext, qualifier: str, extents: Extents, value: str, place: Place) -> Iterator[Problem]:
    """The names in braces in a value are sizes, each at its place in the pattern of the qualifier."""
    numbers = {extent: _LARGEST_SIZE + number for number, extent in enumerate(formula.placeholders(value), 1)}
    sizes = sizes_in(extents, spelled(value, numbers)) or {}
    if {extent: size for extent, size in sizes.items() if size in numbers.values()} != numbers:
        shown = " and ".join(f"{{{extent}}}" for extent in numbers)
        allowed = f"there: {extents.pattern}" if extents.pattern else f"in extents: give {qualifier} a pattern, or write each value out"
        yield Problem(context.at(*place), f"{value!r} has {shown}, which the sizes of {qualifier} do not have {allowed}")


def _given(entry: InstructionSet, form: Form, name: str) -> Iterable[str]:
    """The names of the sizes that a form's values of a qualifier give."""
    extents = entry.extents[name]
    tables = (extents.values.get(value, {}) for value in form.qualifiers[name])
    return formula.placeholders(extents.pattern) if extents.pattern else {size for table in tables for size in table}


def _sizes(context: RuleContext, entry: InstructionSet, name: str, value: str, place: Place) -> Iterator[Problem]:
    """A value gives sizes, and each is in range."""
    extents = entry.extents[name]
    sizes = sizes_in(extents, value)
    if sizes is None:
        wanted = f"it must look like {extents.pattern}" if extents.pattern else f"extents has {listed(extents.values)}"
        yield Problem(context.at(*place), f"{value!r} gives no sizes: {wanted}")
    for extent, size in (sizes or {}).items():
        if not 1 <= size <= _LARGEST_SIZE:
            yield Problem(context.at(*place), f"{extent} = {size} is out of range: 1..{_LARGEST_SIZE}")
