"""Products that an instruction descriptor chooses: each list has a row for every opcode, and one row allows each product."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.variants import Variant, expand
from ptxmma.generator.problems import Position, Problem, clash
from ptxmma.generator.spec_rules.reach_rules import unreached
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.model import Condition, Facts, TensorProducts

#: The lists of rules in the order in which they choose.
_SECTIONS = ("types", "depths", "options", "shapes", "limits", "scales")

#: The choices that a row allows.
_Values = Callable[[Any], Iterable[object]]


def problems(context: RuleContext) -> Iterator[Problem]:
    """Opcodes that a list has no row for, products that two rows allow, and values in conditions that no product has."""
    rules = context.spec.tensor_products
    walk = None if rules is None else _Walk(context, rules)
    for index, entry in enumerate(context.spec.instructions):
        for variant in expand(entry) if entry.operation == resolution.OPERATION else ():
            if walk is None:
                context.lacks_entries(("tensor_products",), entry.name)
                return
            yield from walk.opcode(variant, context.at("instructions", index))
    if walk is not None:
        yield from walk.idle()


class _Walk:
    """The choices of all opcodes; those that no condition tells apart are judged once."""

    def __init__(self, context: RuleContext, rules: TensorProducts) -> None:
        self._context, self._rules = context, rules
        self._reached: dict[str, dict[object, Facts]] = {section: {} for section in _SECTIONS}
        patterns = [key for pattern in context.spec.granularities for when in pattern.of for key in when]
        later: set[str] = set(patterns)
        self._tested: dict[str, list[str]] = {}  # by a list and those after it
        for section in reversed(_SECTIONS):
            later |= {key for row in getattr(rules, section) for when in row.of for key in when}
            self._tested[section] = sorted(later)

    def opcode(self, variant: Variant, here: Position) -> Iterator[Problem]:
        """The choices that an opcode leaves to its descriptor."""
        scaled = any(kind == "tensor-scales" for kind, _ in resolution.described(variant))
        if self._new("types", variant.facts, variant.instruction.name, scaled):
            yield from self._row("types", variant.facts, variant.canonical, here, _types)
            if self._fitting("types", variant.facts) and not any(True for _ in product_rules.typed(self._rules, variant.facts)):
                yield from self._context.once(here, f"the limits in tensor_products leave {variant.canonical} no types of D, A and B")
            for types in product_rules.typed(self._rules, variant.facts):
                known = {**variant.facts, **types}
                if self._new("depths", known, scaled):
                    yield from self._depths(variant, known, here, scaled=scaled)

    def _depths(self, variant: Variant, facts: Facts, here: Position, *, scaled: bool) -> Iterator[Problem]:
        what = f"{variant.canonical} with {_said(facts, product_rules.TYPES)}"
        yield from self._row("depths", facts, what, here, lambda row: [row.k])
        for depth in self._fitting("depths", facts):
            known = {**facts, "k": depth.k}
            self._new("options", known)
            yield from self._twice("options", known, what, lambda row: [f"{row.field} = {row.value}"])
            for options in product_rules.optional(self._rules, known):
                product = {**known, **product_rules.values_of(options)}
                if self._new("shapes", product, scaled):
                    yield from self._sizes(variant, product, here, scaled=scaled)

    def _sizes(self, variant: Variant, facts: Facts, here: Position, *, scaled: bool) -> Iterator[Problem]:
        what = f"{variant.canonical} with {_said(facts, (*product_rules.TYPES, 'k'))}"
        yield from self._row("shapes", facts, what, here, _shapes)
        shapes = list(itertools.chain.from_iterable(map(_shapes, self._fitting("shapes", facts))))
        self._new("limits", facts)
        if shapes and not any(product_rules.within_limits(self._rules, facts, m, n) for m, n in shapes):
            yield from self._context.once(here, f"the limits in tensor_products leave {what} no M and N")
        spec = self._context.spec
        patterns = spec.patterns(facts) if variant.instruction.sparse else ()
        if variant.instruction.sparse:
            places = [spec.granularities.index(pattern) for pattern in patterns]
            yield from self._context.exactly_one(places, spec.granularities, ("granularities",), what, here)
        pattern = next(iter(patterns), None)
        kept = int(facts["k"]) * pattern.kept // pattern.chunk if pattern else int(facts["k"])
        yield from self._scales(facts, what, here, kept, scaled=scaled)

    def _scales(self, facts: Facts, what: str, here: Position, kept: int, *, scaled: bool) -> Iterator[Problem]:
        """Products with operands for scale factors have a row, no others have one, and blocks fill the kept elements along K."""
        self._new("scales", facts)
        if scaled:
            yield from self._row("scales", facts, what, here, lambda row: row.stype)
        for row in self._fitting("scales", facts):
            place = ("tensor_products", "scales", self._rules.scales.index(row))
            if not scaled:
                yield from self._context.once(self._context.at(*place, "of"), f"{what} has no operand for scale factors")
            elif kept % row.block:
                text = f"blocks of {row.block} do not fill the {kept} elements along K that {what} has in each row; give a divisor"
                yield from self._context.once(self._context.at(*place, "block"), text)

    def idle(self) -> Iterator[Problem]:
        """Values in conditions that no product has."""
        fields = _field_values(self._context)
        for section in _SECTIONS:
            facts = list(self._reached[section].values())
            for number, row in enumerate(getattr(self._rules, section)):
                place = ("tensor_products", section, number, "of")
                for when in row.of:
                    rest = {key: values for key, values in when.items() if key not in fields}
                    yield from unreached(self._context, [rest] if rest else [], facts, place)
                    yield from self._known(fields, {key: when[key] for key in when.keys() - rest.keys()}, *place)
        limited = fields | {name: {value for row in self._rules.types for value in getattr(row, name)} for name in product_rules.TYPES}
        for number, limit in enumerate(self._rules.limits):
            place = ("tensor_products", "limits", number, "fields")
            yield from self._context.known("field", limit.fields, sorted(limited), *place)
            yield from self._known(limited, limit.fields, *place)

    def _known(self, fields: Mapping[str, set[str]], values: Condition, *place: str | int) -> Iterator[Problem]:
        """Values that fields do not have, of fields whose values have names."""
        for key, given in values.items():
            if known := fields.get(key):
                yield from self._context.known(f"value of {key}", map(str, given), sorted(known), *place)

    def _new(self, section: str, facts: Facts, *more: object) -> bool:
        """Note the facts with which a list chooses; False if the list and the lists after it have judged the same ones."""
        key = (*map(facts.get, self._tested[section]), *more)
        new = key not in self._reached[section]
        self._reached[section].setdefault(key, facts)
        return new

    def _fitting(self, section: str, facts: Facts) -> tuple[Any, ...]:
        return getattr(self._rules.fitting, section)(facts)  # type: ignore[no-any-return]

    def _row(self, section: str, facts: Facts, what: str, here: Position, values: _Values) -> Iterator[Problem]:
        """A list has a row for a product, and no two rows that allow the same."""
        if not self._fitting(section, facts):
            yield from self._context.once(here, f"no entry of tensor_products.{section} covers {what}; add one")
        yield from self._twice(section, facts, what, values)

    def _twice(self, section: str, facts: Facts, what: str, values: _Values) -> Iterator[Problem]:
        owners: dict[object, Any] = {}
        rows = getattr(self._rules, section)
        for row in self._fitting(section, facts):
            for value in values(row):
                if (first := owners.setdefault(value, row)) is not row:
                    said = listed(map(str, value)) if isinstance(value, tuple) else value
                    places = (self._context.at("tensor_products", section, rows.index(each)) for each in (row, first))
                    yield from self._context.once(*clash(f"two entries of tensor_products.{section} allow {said} of {what}", *places))
                    break


def _types(row: Any) -> Iterable[object]:
    return itertools.product(*(getattr(row, name) for name in product_rules.TYPES))


def _shapes(row: Any) -> Iterable[tuple[int, int]]:
    return itertools.product(row.m, product_rules.numbers(row.n))


def _said(facts: Facts, names: Iterable[str]) -> str:
    return ", ".join(f"{name} = {facts[name]}" for name in names)


def _field_values(context: RuleContext) -> dict[str, set[str]]:
    """The named values of each field of instruction descriptors that chooses no product; none of a field that holds any number."""
    fields: dict[str, set[str]] = {}
    for format in context.spec.descriptors:
        for field in format.fields if format.describes == "instruction" else ():
            if field.name not in product_rules.ARGUMENTS:
                fields.setdefault(field.name, set()).update(name for case in field.cases for name in case.values)
    return fields
