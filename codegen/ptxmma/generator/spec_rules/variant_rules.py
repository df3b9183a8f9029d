"""Variants: each exists once, is accepted by a target, and exactly one entry answers each question about it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

from ptxmma.catalog import layouts, requirements
from ptxmma.catalog.names.cplusplus import RESERVED, front_name, identifier
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.catalog.roles import ROLES, matrix_types, multiplicands
from ptxmma.catalog.variants import Variant, of_form, representatives
from ptxmma.generator.emit import header_names
from ptxmma.generator.problems import Position, Problem, clash
from ptxmma.generator.spec_rules.register_layout_rules import LayoutUses
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.model import Carrier, matches, operand_names
from ptxmma.model.formula import FormulaError


def problems(context: RuleContext) -> Iterator[Problem]:
    """Variants that exist twice, that no target accepts, or that a section covers with no entry or with two; families with one template."""
    yield from _front(context)
    yield from _templates(context)
    spellings: dict[str, Position] = {}
    identifiers: dict[str, str] = {}
    products = {identifier(entry.name) for entry in context.spec.instructions if entry.operation == OPERATION}
    layout_uses = LayoutUses(context)
    for index, entry in enumerate(context.spec.instructions):
        if index in context.broken:
            continue
        for number, form in enumerate(entry.forms):
            position = context.at("instructions", index, "forms", number)
            names = list(dict.fromkeys(name for text in entry.operands.get(form.operands, ()) for name in operand_names(text)))
            seen: set[object] = set()
            for variant in of_form(entry, number):
                name, spelling = variant.identifier, variant.canonical
                if spelling in spellings:
                    yield clash(f"another form has {spelling} too", position, spellings[spelling])
                    break
                if name in identifiers:
                    other = identifiers[name]
                    yield clash(f"{spelling} and {other} both get the identifier {name}", position, spellings[other])
                    break
                if name in products:
                    here = context.at("instructions", index, "stem")
                    yield Problem(
                        here, f"{spelling} would have a function {name}, which is the name of a type of products; change the stem"
                    )
                    break
                spellings[spelling] = position
                identifiers[name] = spelling
                yield from _requirements(context, variant, index, position)
                yield from _semantics(context, variant, index)
            for variant in representatives(entry, number):
                if not variant.canonical.startswith(entry.opcode):
                    message = f"{variant.canonical} does not start with {entry.opcode!r}; give the start of every spelling"
                    yield from context.once(context.at("instructions", index, "opcode"), message)
                if entry.operation == "multiply" and (key := layouts.key(variant)) not in seen:
                    seen.add(key)
                    yield from _factors(context, variant, position)
                for operand in names:
                    if (key := context.keys.shared(variant, operand)) not in seen:
                        seen.add(key)
                        yield from _operand(context, variant, operand, position, layout_uses)


def _front(context: RuleContext) -> Iterator[Problem]:
    """The typed front has templates for families and tags for types and qualifiers: their names differ, and C++ does not reserve them."""
    templates: dict[str, int] = {}
    tags: dict[str, Position] = {}
    for index, entry in enumerate(context.spec.instructions):
        for number, _ in enumerate(entry.forms) if index not in context.broken else ():
            here = context.at("instructions", index, "forms", number)
            for variant in representatives(entry, number):
                template, arguments = front_name(variant)
                templates.setdefault(template, index)
                for tag in arguments:
                    tags.setdefault(tag, here)
    taken = header_names.declared(context.spec)
    for template, index in templates.items():
        here = context.at("instructions", index, "stem")
        if template in RESERVED or template in taken:
            yield Problem(here, f"the stem gives the template {template!r} of the typed front, which C++ or the headers have; change it")
        elif template in tags:
            message = f"the stem gives the template {template!r} of the typed front, which is a modifier as well; change the stem"
            yield clash(message, here, tags[template])
    for tag, here in tags.items():
        if tag in taken:
            yield Problem(here, f"the modifier {tag!r} has the name of a template of the headers; {listed(sorted(taken))} are taken")


def _templates(context: RuleContext) -> Iterator[Problem]:
    """No two families have a template of one name in the typed front, as they may where they share a stem."""
    families: dict[str, set[str]] = {}
    for entry in context.spec.instructions:
        families.setdefault(entry.stem, set()).add(entry.family)
    templates: dict[str, int] = {}
    for index, entry in enumerate(context.spec.instructions):
        if index in context.broken or len(families[entry.stem]) == 1:
            continue
        for name in {front_name(variant)[0] for number, _ in enumerate(entry.forms) for variant in representatives(entry, number)}:
            first = templates.setdefault(name, index)
            if (other := context.spec.instructions[first].family) != entry.family:
                message = f"the stem {entry.stem!r} gives the families {other!r} and {entry.family!r} one template, {name!r}; change a stem"
                yield from context.once(
                    *clash(message, context.at("instructions", index, "stem"), context.at("instructions", first, "stem"))
                )


def _requirements(context: RuleContext, variant: Variant, index: int, position: Position) -> Iterator[Problem]:
    """The rules give a variant a version and a target, and at most one observation covers it."""
    if len(observed := requirements.observed(variant)) > 1:
        numbers = [variant.instruction.observed.index(entry) for entry in observed]
        first, second = (context.at("instructions", index, "observed", number) for number in numbers[:2])
        yield clash(f"two observations are for {variant.canonical}", second, first)
    elif not any(rule.ptx for rule in requirements.stated(variant)):
        yield from context.once(position, f"no rule under requires gives {variant.canonical} a PTX ISA version")
    elif not any(rule.targets for rule in requirements.stated(variant)):
        yield from context.once(position, f"no rule under requires gives {variant.canonical} a target")
    elif not requirements.accepting(context.spec, variant):
        rules = " and ".join(listed(rule.targets) for rule in requirements.stated(variant) if rule.targets)
        yield from context.once(position, f"the rules leave no target to {variant.canonical}: they ask for {rules}")


def _semantics(context: RuleContext, variant: Variant, index: int) -> Iterator[Problem]:
    """One entry says what a variant computes, if any does for its instruction."""
    place = ("instructions", index, "semantics")
    fitting = [number for number, entry in enumerate(variant.instruction.semantics) if matches(entry.when, variant.facts)]
    if not fitting and variant.instruction.semantics:
        yield from context.once(context.at(*place), f"no entry says what {variant.canonical} computes")
    if len(fitting) > 1:
        first, second = (context.at(*place, number) for number in fitting[:2])
        yield from context.once(second, f"two entries say what {variant.canonical} computes; see also {first}")


def _factors(context: RuleContext, variant: Variant, position: Position) -> Iterator[Problem]:
    """Elements of A and of B take up as many bits in a register or in memory, elements in a container the container's."""
    types = [matrix_types(variant)[name] for name in multiplicands(variant.instruction)]
    a, b = (layouts.container_bits(context.spec, name, variant.facts) for name in types)
    if a != b:
        said = f"{variant.canonical} multiplies elements of {a} bits ({types[0]}) by elements of {b} bits ({types[1]})"
        yield from context.once(position, f"{said}; both must take up the same number")


def _operand(context: RuleContext, variant: Variant, name: str, position: Position, layout_uses: LayoutUses) -> Iterator[Problem]:
    """An operand of a variant has one carrier, one pattern of sparsity and one layout, as far as its role needs them."""
    spec = context.spec
    entry = variant.instruction.operand_kinds[name]
    role = ROLES[entry.kind]
    what = f"operand {name!r} of {variant.canonical}"
    facts = layouts.operand_facts(spec, variant, name)
    element = str(variant.facts.get(entry.type, "")) if role.typed else ""
    if role.carried:
        fits = [
            index
            for index, carrier in context.carriers[name]
            if (element in carrier.elements if element else not carrier.elements) and matches(carrier.when, facts)
        ]
        yield from context.exactly_one(fits, spec.types.carriers, ("types", "carriers"), what, position, name)
        if role.layout_kind == "fragment" and len(fits) == 1 and "register_layouts" not in context.unsound:
            yield from _whole_registers(context, variant, name, spec.types.carriers[fits[0]], position)
    if role.layout_kind == "metadata" and "sparsity" not in context.unsound:
        fits = [spec.granularities.index(pattern) for pattern in spec.patterns(variant.facts)]
        yield from context.exactly_one(fits, spec.granularities, ("granularities",), variant.canonical, position)
    if role.layout_kind and "register_layouts" not in context.unsound:
        fits = [index for index, part in context.layouts[name] if matches(part.of, facts)]
        if fits or role.layout_kind != "address":  # an address may lead to a whole matrix
            yield from context.exactly_one(fits, spec.register_layouts, ("register_layouts",), what, position, name)
        if len(fits) == 1:
            yield from layout_uses.problems(fits[0], variant, name, facts, position)


def _whole_registers(context: RuleContext, variant: Variant, name: str, carrier: Carrier, position: Position) -> Iterator[Problem]:
    """The elements of a thread fill its registers."""
    with contextlib.suppress(FormulaError, LookupError):  # other rules report what has no layout
        plan = context.keys.plan(variant, name)
        width = {entry.name: entry.bits for entry in context.spec.types.registers}[carrier.registers[0]]
        bits = math.prod(plan.axes.values()) // plan.threads * plan.bits if plan else 0
        if bits % width:
            message = (
                f"operand {name!r} of {variant.canonical} has {bits} bits in each thread, and a register {carrier.registers[0]} {width}"
            )
            yield from context.once(position, f"{message}; a thread's elements must fill whole registers")
