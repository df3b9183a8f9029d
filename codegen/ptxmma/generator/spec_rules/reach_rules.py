"""Reach: every value in a condition, every operand and every type is used by some variant."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.products.product_rules import deep
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.catalog.roles import ROLES, matrix_types
from ptxmma.catalog.variants import expand, fixed_tokens, qualifier_values, representatives
from ptxmma.generator.problems import Position, Problem, clash, of_use
from ptxmma.generator.spec_rules.condition_rules import CONDITIONAL, conditions_beside
from ptxmma.generator.spec_rules.encoding_rules import DESCRIBES
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext, listed
from ptxmma.model import Carrier, Condition, Facts, InstructionSet, Kind, matches, operand_names

#: The bits of a predicate.
_PREDICATE = 1


class _OperandUse(NamedTuple):
    """An operand of a variant, with the facts that conditions test of it."""

    name: str
    kind: Kind
    element: str
    facts: Facts
    shape: str
    place: Position  # the instruction's place


def problems(context: RuleContext) -> Iterator[Problem]:
    """Values, operands and types of the spec that no variant uses."""
    spec = context.spec
    uses: list[_OperandUse] = []
    described: set[str] = set()  # types of matrices in shared memory
    everything: list[Facts] = []
    sparse: list[Facts] = []
    for index, entry in enumerate(spec.instructions):
        facts = [variant.facts for variant in expand(entry)]
        everything += facts
        sparse += [*facts, *_products(context, entry)] if entry.sparse else ()
        for name in CONDITIONAL:
            for number, rule in enumerate(getattr(entry, name)):
                yield from unreached(context, rule.when, facts, ("instructions", index, name, number, "when"))
        yield from _ignored(context, index)
        for conditions, where in conditions_beside(entry):
            yield from unreached(context, conditions, facts, ("instructions", index, *where))
        for name, qualifier in entry.qualifiers.items():
            for number, default in enumerate(qualifier.default):
                place = ("instructions", index, "qualifiers", name, "default", number, "when")
                yield from unreached(context, default.when, facts, place)
        matrices = {operand.of for operand in entry.operand_kinds.values() if operand.kind == "descriptor"}
        described.update(matrix_types(variant)[name] for variant in expand(entry) if matrices for name in matrices)
        uses += [*_uses(context, index), *_chosen(context, index)]
    yield from _carriers(context, uses)
    yield from _errata(context, everything)
    yield from _containers(context, uses)
    yield from _register_layouts(context, uses)
    for index, pattern in enumerate(spec.granularities):
        yield from unreached(context, pattern.of, sparse, ("granularities", index, "of"))
        yield from unreached(context, pattern.ordered_when, sparse, ("granularities", index, "ordered_when"))
    for index, part in enumerate(spec.block_formats):
        yield from unreached(context, part.of, everything, ("block_formats", index, "of"))
    for index, majorness in enumerate(spec.shared_memory.majorness if spec.shared_memory and described else ()):
        products = any(entry.operation == OPERATION and reads(entry.family, majorness.family) for entry in spec.instructions)
        chosen = spec.tensor_products.types if spec.tensor_products and products else ()
        read = described.union(*((*types.atype, *types.btype) for types in chosen)) if chosen else described
        yield from _unused(context, majorness.elements, read, ("shared_memory", "majorness", index, "elements"))


def unreached(context: RuleContext, conditions: Sequence[Condition], everything: Sequence[Facts], place: Place) -> Iterator[Problem]:
    """The values of conditions that nothing has which the condition admits, where there is anything to judge by."""
    for condition in conditions if everything else ():
        left = {(key, value) for key, allowed in condition.items() for value in allowed}
        for facts in everything:
            if not left:
                break
            if matches((condition,), facts):
                left -= {(key, facts.get(key, "")) for key in condition}
        for key, value in sorted(left, key=str):
            yield from _superfluous(context, f"nothing that this condition admits has {key} {value!r}; leave it out", place)


def _ignored(context: RuleContext, index: int) -> Iterator[Problem]:
    """Modifiers that assemblers ignore anywhere do not belong to the instructions for which they ignore them."""
    entry = context.spec.instructions[index]
    spelled = {value for name in entry.qualifiers for value in qualifier_values(entry, name)}
    for number, ignored in ((number, each) for number, each in enumerate(entry.ignored) if not each.behind):
        own = [value for value in ignored.modifiers if value in fixed_tokens(entry.syntax)]
        for value in spelled.intersection(ignored.modifiers):
            variants = (variant for variant in expand(entry) if matches(ignored.when, variant.facts))
            own += [value for variant in itertools.islice((each for each in variants if value in each.qualifiers.values()), 1)]
        for value in own:
            text = f"{value!r} is a modifier of {entry.name} itself where this entry applies; leave it out, or say when: it is ignored"
            yield Problem(context.at("instructions", index, "ignored", number, "modifiers"), text)


def _errata(context: RuleContext, everything: Sequence[Facts]) -> Iterator[Problem]:
    families: dict[object, list[Facts]] = {}
    for facts in everything:
        families.setdefault(facts["family"], []).append(facts)
    for index, erratum in enumerate(context.spec.errata):
        own = families.get(erratum.family, []) if erratum.family else everything
        yield from unreached(context, erratum.when, own, ("errata", index, "when"))


def _unused(context: RuleContext, names: Iterable[str], used: set[str], place: Place) -> Iterator[Problem]:
    for name in names:
        if name not in used:
            yield from _superfluous(context, f"no variant that this entry is for has {name!r}; leave it out", place)


def _superfluous(context: RuleContext, message: str, place: Place) -> Iterator[Problem]:
    """The problem of an unused part.

    With an overlay only the overlay's files are checked, since it may replace the files that use a part of the spec.
    """
    position = context.at(*place)
    if position.added or not context.overlaid:
        yield Problem(position, message)


def _uses(context: RuleContext, index: int) -> Iterator[_OperandUse]:
    """The operands of an instruction, those that differ, with the facts that conditions test of them."""
    spec, entry = context.spec, context.spec.instructions[index]
    here = context.at("instructions", index)
    seen: set[object] = set()
    for number, form in enumerate(entry.forms):
        names = dict.fromkeys(name for text in entry.operands.get(form.operands, ()) for name in operand_names(text))
        for variant in representatives(entry, number):
            for name in names:
                if (key := context.keys.shared(variant, name)) in seen:
                    continue
                seen.add(key)
                operand = entry.operand_kinds[name]
                facts = layouts.operand_facts(spec, variant, name)
                if layouts.entry_index(spec, facts) is not None:
                    facts = {**facts, **variant.largest}
                element = str(variant.facts.get(operand.type, "")) if ROLES[operand.kind].typed else ""
                yield _OperandUse(name, operand.kind, element, facts, variant.shape, here)


def _chosen(context: RuleContext, index: int) -> Iterator[_OperandUse]:
    """The multiplicands of an instruction whose types its descriptor chooses; they have no name that a carrier or a layout could have."""
    for facts in _products(context, context.spec.instructions[index]):
        for name in ("atype", "btype"):
            yield _OperandUse("", "tensor-matrix", str(facts[name]), facts, "", context.at("instructions", index))


def _products(context: RuleContext, entry: InstructionSet) -> Iterator[Facts]:
    """The facts of the products of an instruction whose types and depth its descriptor chooses."""
    rules = context.spec.tensor_products
    if rules is not None and entry.operation == OPERATION:
        for variant in expand(entry):
            yield from ({**variant.facts, **values} for values in deep(rules, variant.facts))


def _carriers(context: RuleContext, uses: Sequence[_OperandUse]) -> Iterator[Problem]:
    carried: dict[str, list[_OperandUse]] = defaultdict(list)
    for use in uses:
        if ROLES[use.kind].carried:
            carried[use.name].append(use)
    for index, carrier in enumerate(context.spec.types.carriers):
        place = ("types", "carriers", index)
        named = [use for name in carrier.operands for use in carried[name]]
        fitting = [use for use in named if (use.element in carrier.elements if use.element else not carrier.elements)]
        yield from unreached(context, carrier.when, [use.facts for use in fitting], (*place, "when"))
        admitted = [use for use in fitting if matches(carrier.when, use.facts)]
        yield from _unused(context, carrier.operands, {use.name for use in admitted}, (*place, "operands"))
        yield from _unused(context, carrier.elements, {use.element for use in admitted}, (*place, "elements"))
        yield from _widths(context, carrier, admitted, (*place, "registers"))


def _widths(context: RuleContext, carrier: Carrier, uses: Sequence[_OperandUse], place: Place) -> Iterator[Problem]:
    """The registers that carry an operand are predicates for a predicate, as wide as a descriptor, and else of one width.

    An address takes registers of 32 or of 64 bits, and so may a number of bytes.
    """
    bits = {entry.name: entry.bits for entry in context.spec.types.registers}
    for (kind, family), use in {(use.kind, use.facts["family"]): use for use in reversed(uses)}.items():
        formats = [each for each in context.spec.descriptors if reads(str(family), each.family)]
        wanted: set[int] = {each.bits for each in formats if each.describes == DESCRIBES.get(kind)}
        if kind == "predicate":
            wanted = {_PREDICATE}
        elif not wanted:
            several = carrier.spaces or ROLES[kind].layout_kind == "address" or ROLES[kind].several_widths
            wanted = {bits[register] for register in (carrier.registers if several else carrier.registers[:1])} - {_PREDICATE}
        if wrong := [register for register in carrier.registers if bits[register] not in wanted]:
            allowed = listed(register for register, width in bits.items() if width in (wanted or {*bits.values()} - {_PREDICATE}))
            text = f"which a register {wrong[0]} of {bits[wrong[0]]} bits cannot carry; allowed: {allowed}"
            yield from context.once(context.at(*place), f"{use.name!r} of {use.facts['name']} is of the kind {kind}, {text}")


def _containers(context: RuleContext, uses: Sequence[_OperandUse]) -> Iterator[Problem]:
    containers = context.spec.types.containers
    for index, container in enumerate(containers):
        place = ("types", "containers", index)
        fitting = [use for use in uses if use.element in container.elements]
        yield from unreached(context, container.when, [use.facts for use in fitting], (*place, "when"))
        admitted = [use for use in fitting if matches(container.when, use.facts)]
        yield from _unused(context, container.elements, {use.element for use in admitted}, (*place, "elements"))
        for before, other in enumerate(containers[:index]):
            for use in admitted:
                if use.element in other.elements and matches(other.when, use.facts):
                    tested = sorted({key for condition in (*container.when, *other.when) for key in condition})
                    where = " and ".join(f"{key} is {use.facts.get(key) or 'absent'}" for key in tested)
                    message = f"{use.element} has a container already where {where or 'it is used'}"
                    yield from context.once(*clash(message, context.at(*place, "elements"), context.at("types", "containers", before)))


def _register_layouts(context: RuleContext, uses: Sequence[_OperandUse]) -> Iterator[Problem]:
    laid: dict[str, list[_OperandUse]] = defaultdict(list)
    for use in uses:
        if ROLES[use.kind].layout_kind:
            laid[use.name].append(use)
    for index, layout in enumerate(context.spec.register_layouts):
        place = ("register_layouts", index)
        fitting = [use for name in layout.operands for use in laid[name]]
        yield from unreached(context, layout.of, [use.facts for use in fitting], (*place, "of"))
        admitted = [use for use in fitting if matches(layout.of, use.facts)]
        yield from _unused(context, layout.operands, {use.name for use in admitted}, (*place, "operands"))
        for number, stated in enumerate(layout.stated):
            yield from unreached(context, stated.of, [use.facts for use in admitted], (*place, "stated", number, "of"))
        for use in admitted if layout.stated else ():
            if not any(matches(stated.of, use.facts) for stated in layout.stated):
                facts = use.facts
                what = f"{use.shape or facts['name']} with {facts.get('bits', 0)} bits, family {facts['family']}"
                message = f"no printed formula under stated is for operand {use.name!r} of {what}"
                yield from context.once(*of_use(message, context.at(*place), use.place))
