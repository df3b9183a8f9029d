"""Products in C: the rules for their shapes and types, their instruction descriptors, and the places of D."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any, NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.descriptors.chosen_product import argument_of
from ptxmma.catalog.names.cplusplus import enumerator, identifier
from ptxmma.catalog.names.product_family import USUAL_SCALE, ProductFamily
from ptxmma.catalog.products.product_rules import TYPES
from ptxmma.generator.emit.c_text import Fact, all_of, among, any_of
from ptxmma.generator.emit.products.facts import coordinates, majorness_macro, open_fields, passes_of, scale_ids, writer
from ptxmma.generator.emit.tensor_functions import read_numbers
from ptxmma.model import (
    Condition,
    DescriptorField,
    DescriptorFormat,
    ProductDepth,
    ProductLimit,
    ProductScale,
    ProductShape,
    Range,
    Spec,
)

#: The number of options that a call may have in passes that know it by its name alone.
_OPTIONS = 6


class _Choice(NamedTuple):
    """Values that are legal under a condition, both in C."""

    condition: str
    legal: str


class _Need(NamedTuple):
    """A feature of some targets: products that need it and passes that have it, both in C, and the message for the user."""

    condition: str
    passes: str
    text: str


def values(spec: Spec, family: ProductFamily, facts: dict[str, Fact]) -> dict[str, Any]:
    """The values for the templates of products in C and as C++ types."""
    forms = [form for opcode in family.opcodes for form in opcode.forms]
    counts = [sum(each.kind not in ("immediate", "instruction-descriptor") for each in form.operands) for form in forms]
    return {
        "enums": {name: values for name, values in family.enumerators.items() if name != family.kind},  # descriptors.h has the kinds
        "titles": {name: each.title for opcode in family.opcodes[::-1] for name, each in opcode.variant.instruction.qualifiers.items()},
        "opcodes": _opcodes(family, facts),
        "rules": _rules(family, facts),
        "needs": _needs(spec, family, facts),
        "legal": _legal(family, facts),
        "sparse": among(*facts["name"], family.sparse),
        "ratio": _ratio(spec, family, facts),
        "scaled": _scaled(family),
        "type": _type(family),
        "layouts": _layouts(family, facts),
        "coordinates": coordinates(family),
        "formats": _formats(family, facts),
        "choices": {field.name: field for format in family.formats for field in open_fields(facts, format)},
        "calls": {"least": min(counts, default=0), "most": max(counts, default=0) + _OPTIONS},
        "factors": _factors(family, facts),
        "scale_ids": scale_ids(family),
        "ctas": facts["ctas"][0] if "ctas" in facts else "1",
    }


# --- rules ------------------------------------------------------------------------------------------------------------------


def _opcodes(family: ProductFamily, facts: dict[str, Fact]) -> list[str]:
    """The opcodes there are, as conditions: opcodes of one name with the same qualifiers together."""
    others = [name for name in family.qualifiers if name != family.kind]
    sets: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for opcode in family.opcodes:
        values = family.values(opcode)
        own = sets.setdefault((opcode.variant.instruction.name, values.get(family.kind, "")), {name: {} for name in others})
        for qualifier in others:
            own[qualifier][values[qualifier]] = None
    together: dict[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], list[str]] = {}
    for (name, kind), choices in sets.items():
        key = (name, tuple((qualifier, tuple(values)) for qualifier, values in choices.items()))
        together.setdefault(key, []).append(kind)
    rows: list[Condition] = [
        {"name": (name,), **({family.kind: tuple(kinds)} if family.kind else {}), **dict(choices)}
        for (name, choices), kinds in together.items()
    ]
    return [all_of(row, facts) for row in rows]


def _rules(family: ProductFamily, facts: dict[str, Fact]) -> dict[str, list[_Choice]]:
    """The lists of rules."""
    rules = family.rules
    types = [
        _Choice(any_of(row.of, facts), " && ".join(f"({among(*facts[name], getattr(row, name))})" for name in TYPES)) for row in rules.types
    ]
    shapes = [_Choice(any_of(row.of, facts), _sizes(row, facts)) for row in rules.shapes]
    limits = [
        _Choice(any_of(row.of, facts), _sizes(row, facts))
        for row in rules.limits
        if all(name in facts for condition in row.of for name in condition)  # others are about options of calls
    ]
    limits += [_Choice(f"p.{side}_majorness == {majorness_macro('MN')}", text) for side, text in _transposed(family, facts).items()]
    depths = [_Choice(any_of(row.of, facts), str(row.k)) for row in rules.depths]
    scales = [_Choice(any_of(row.of, facts), among(*facts["stype"], row.stype)) for row in rules.scales]
    return {"types": types, "depths": depths, "shapes": shapes, "limits": limits, "scales": scales}


def _sizes(row: ProductShape | ProductLimit, facts: dict[str, Fact]) -> str:
    """The condition that a rule allows M and N; a rule without one of them takes any."""
    return " && ".join(f"({text})" for text in (among(*facts["m"], row.m), _spans("p.n", row.n)) if text)


def _legal(family: ProductFamily, facts: dict[str, Fact]) -> dict[str, dict[str, str]]:
    """The messages about types and sizes that are not legal, each with the condition in C under which they are the legal ones."""
    types = ((row.of, ", ".join(f"{name[0].upper()} {' or '.join(getattr(row, name))}" for name in TYPES)) for row in family.rules.types)
    sizes = ((row.of, f"M {' or '.join(map(str, row.m))} with N {' or '.join(map(_multiples, row.n))}") for row in family.rules.shapes)
    legal: dict[str, dict[str, str]] = {}
    for name, what, rows in (("types", "types of this kind", types), ("sizes", "M and N with this CTA group and K", sizes)):
        choices: dict[str, list[str]] = {}
        for of, text in rows:
            choices.setdefault(any_of(of, facts), []).append(text)
        conditions: dict[str, list[str]] = {}
        for condition, texts in choices.items():
            conditions.setdefault(f"{what}: {'; or '.join(texts)}", []).append(condition)
        legal[name] = {text: each[0] if len(each) == 1 else " || ".join(f"({one})" for one in each) for text, each in conditions.items()}
    return legal


def _multiples(span: Range) -> str:
    return f"{span.first} to {span.last} in steps of {span.step}" if span.first < span.last else str(span.first)


def _needs(spec: Spec, family: ProductFamily, facts: dict[str, Fact]) -> list[_Need]:
    """The depths and types of scale factors that only some targets have."""
    rules = family.rules
    chosen: list[tuple[ProductDepth | ProductScale, str, str]] = [
        *((row, f"p.k == {row.k}", f"K = {row.k} of this kind needs") for row in rules.depths),
        *((row, among(*facts["stype"], row.stype), f"{' or '.join(row.stype)} with blocks of {row.block} needs") for row in rules.scales),
    ]
    needs = []
    for row, value, text in chosen:
        if row.targets:
            condition = f"({any_of(row.of, facts)}) && ({value})"
            needs.append(_Need(condition, passes_of(spec, row.targets), f"{text} {' or '.join(row.targets)}"))
    return needs


def _transposed(family: ProductFamily, facts: dict[str, Fact]) -> dict[str, str]:
    """The conditions under which matrices can be MN-major, as the formats of descriptors say."""
    texts: dict[str, list[str]] = {side: [] for side in family.sides}
    for format in family.formats:
        for side, legal in texts.items():
            cases = [case for field in format.fields if field.name == f"{side}_majorness" for case in field.cases if "MN" in case.values]
            whens = [f"({any_of(case.when, facts)})" for case in cases]
            if whens:
                legal.append(f"(({_kinds(format, facts)}) && ({' || '.join(whens)}))")
    return {side: " || ".join(legal) or "0" for side, legal in texts.items()}


def _kinds(format: DescriptorFormat, facts: dict[str, Fact]) -> str:
    """The condition that a product has one of the kinds of a format; of no kinds, any."""
    return among(*facts[format.qualifier], format.kinds) if format.kinds else "1"


def _spans(expression: str, spans: tuple[Range, ...]) -> str:
    texts = []
    for span in spans:
        low = f"{expression} >= {span.first} && {expression} <= {span.last}" if span.first < span.last else f"{expression} == {span.first}"
        step = f" && ({expression} - {span.first}) % {span.step} == 0" if span.first < span.last else ""
        texts.append(low + step)
    return " || ".join(f"({text})" for text in texts) if len(texts) > 1 else "".join(texts)


def _scaled(family: ProductFamily) -> str:
    """Return whether a product scales blocks, in C++ over the arguments of its type: by the first qualifier that says so."""
    opcodes: dict[bool, list[dict[str, str]]] = {False: [], True: []}
    for opcode in family.callable:
        kinds = {operand.kind for operand in opcode.operands}
        opcodes["tensor-scales" in kinds].append({**family.values(opcode), "name": opcode.variant.instruction.name})
    if not all(opcodes.values()):
        return "true" if opcodes[True] else "false"
    for name in (*family.qualifiers, "name"):
        plain, scaled = ({values[name]: None for values in opcodes[having]} for having in (False, True))
        if plain.keys().isdisjoint(scaled):
            parameters = {"name": ("Opcode", enumerator), **{each: (_parameter(each), writer(family, each)) for each in family.qualifiers}}
            return any_of([{name: tuple(scaled)}], parameters)
    raise ValueError(f"no qualifier of {family.stem} says whether a product scales blocks")


def _parameter(qualifier: str) -> str:
    """The template parameter of a qualifier: ``CtaGroup``."""
    return "".join(part.capitalize() for part in qualifier.split("_"))


def _type(family: ProductFamily) -> dict[str, str]:
    """The parts of the type of a product.

    ``parameters`` declares the template parameters and ``arguments`` lists them, with the opcode; ``named`` and ``names`` do so without it,
    with what a type may leave out.  ``members`` are the members of the product in C, ``majors`` the majornesses, and the others declare
    them.
    """
    others = {name: _parameter(name) for name in family.qualifiers if name != family.kind}
    kind = [_parameter(family.kind)] if family.kind else []
    first = ["class Shape", *(f"ptxmma_{family.stem}_{family.kind} {name}" for name in kind), "class D", "class A", "class B"]
    rest = [f"ptxmma_{family.stem}_{name} {text}" for name, text in others.items()]
    usual = [f"{text} = {family.enumerator(name, family.usual(name))}" for name, text in zip(others, rest, strict=True)]
    scale, stype = (["Scale"], ["detail::type_of<Scale>::value"]) if family.rules.scales else ([], [])
    names, majors = ["Shape", *kind, "D", "A", "B", *others.values(), *scale], [f"major_{side}" for side in family.sides]
    members = ["Opcode", *map(_parameter, family.qualifiers), *(f"sizes::{name}" for name in "mnk")]
    types = [*(f"detail::type_of<{name}>::value" for name in "DAB"), *stype, *majors]
    return {
        "parameters": _lines([f"ptxmma_{family.stem}_opcode Opcode", *first], [*rest, *(f"class {name}" for name in scale)], 10),
        "arguments": ", ".join(["Opcode", *names]),
        "named": _lines(first, [*usual, *(f"class {name} = {identifier(USUAL_SCALE)}" for name in scale)], 10),
        "names": ", ".join(names),
        "members": _lines(members, types, 31),
        "majors": ", ".join(majors),
        "k_majors": ", ".join(majorness_macro("K") for _ in majors),
        "major_parameters": ", ".join(f"ptxmma_majorness {name}" for name in majors),
        "usual_majors": ", ".join(f"ptxmma_majorness {name} = {majorness_macro('K')}" for name in majors),
        "descriptors": ", ".join(f"{family.stem}_descriptor<major_{side}, {side.upper()}>" for side in family.sides),
    }


def _lines(first: Sequence[str], second: Sequence[str], indent: int) -> str:
    """Two lists as one, on two lines."""
    return f",\n{' ' * indent}".join(", ".join(part) for part in (first, second) if part)


# --- descriptors ------------------------------------------------------------------------------------------------------------


def _formats(family: ProductFamily, facts: dict[str, Fact]) -> list[dict[str, Any]]:
    """The instruction descriptors, each with the fields that a product says, in C, and those that it leaves open."""
    rules = family.rules
    legal = {name: {value for row in rules.types for value in getattr(row, name)} for name in TYPES}
    legal |= {"stype": {value for row in rules.scales for value in row.stype}, "k": {str(row.k) for row in rules.depths}}
    every = []
    for format in family.formats:
        named = [(field, argument_of(field.name) or field.name) for field in format.fields]
        fields = {field.name: _stored(field, name, facts, legal.get(name)) for field, name in named if name in facts}
        every.append(
            {
                "name": f"ptxmma_{format.name}",
                "kinds": _kinds(format, facts),
                "fields": fields,
                "open": list(open_fields(facts, format)),
            }
        )
    return every


def _stored(field: DescriptorField, name: str, facts: dict[str, Fact], legal: Set[str] | None) -> str:
    """The C expression of a field's content, for the values that products have; numbers that it holds as they are stay so."""
    expression, write = facts[name]
    cases = [(value, stored, case.when) for case in field.cases for value, stored in case.values.items()]
    pairs = [(value, stored, when) for value, stored, when in cases if legal is None or value in legal]
    if not pairs:
        return expression
    meanings: dict[str, set[int]] = {}
    for value, stored, _ in pairs:
        meanings.setdefault(value, set()).add(stored)
    chosen = {}
    for value, stored, when in pairs:
        own = f"{expression} == {write(value)}"
        if stored:
            chosen[own if len(meanings[value]) == 1 else f"{own} && ({any_of(when, facts)})"] = stored
    return "".join(f"{condition} ? {stored}u : " for condition, stored in chosen.items()) + "0u"


# --- memory -----------------------------------------------------------------------------------------------------------------


def _layouts(family: ProductFamily, facts: dict[str, Fact]) -> list[dict[str, Any]]:
    """The places of D: a condition for each layout, its coordinates and the way back in C."""
    every = []
    for layout in family.layouts:
        assert family.memory is not None
        stem, given = f"ptxmma_{family.memory.name}_{layout.name}", list(layout.at)
        there, back = (_arguments(texts.values(), names, facts) for texts, names in ((layout.at, layout.axes), (layout.back, given)))
        places = [f"{stem}_{name}({there})" if name in layout.at else "0" for name in coordinates(family)]
        axes = {axis: f"{stem}_{axis}({back})" for axis in layout.back}
        every.append({"layout": layout, "condition": any_of(layout.of, facts), "places": places, "axes": axes})
    return every


def _arguments(formulas: Iterable[str], coordinates: Iterable[str], facts: dict[str, Fact]) -> str:
    """The arguments of a function of tensor memory: coordinates, then what its formulas read of the product."""
    given = tuple(coordinates)
    known = {"bits": "ptxmma_describe_type(p.dtype).bits", **{name: expression for name, (expression, _) in facts.items()}}
    return ", ".join([*given, *(known[name] for name in read_numbers(formulas, given))])


def _factors(family: ProductFamily, facts: dict[str, Fact]) -> dict[int, str]:
    """The products that have each number of elements along K that share a scale factor."""
    blocks: dict[int, list[Condition]] = {}
    for row in family.rules.scales:
        blocks.setdefault(row.block, []).extend(row.of)
    return {block: any_of(conditions, facts) for block, conditions in blocks.items()}


def _ratio(spec: Spec, family: ProductFamily, facts: dict[str, Fact]) -> str:
    """The number of elements along K of a sparse A for each that is kept."""
    ratios: dict[int, list[Condition]] = {}
    for opcode in family.callable:
        if pattern := layouts.granularity(spec, opcode.variant):
            values = {"name": opcode.variant.instruction.name, **family.values(opcode)}
            ratios.setdefault(pattern.chunk // pattern.kept, []).append({name: (value,) for name, value in values.items()})
    last, *others = ratios or [1]
    chain = "".join(f"{any_of(ratios[ratio], facts)} ? {ratio} : " for ratio in others)
    return f"({chain}{last})" if chain else str(last)
