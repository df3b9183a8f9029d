"""Choices of an instruction descriptor: resolves the arguments of a product against the rules of the spec.

The lists of rules are taken in order: element types, the depth K, further fields of the descriptor, the sizes M and N, scale factors.
An argument that the rules leave one value for may be left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ptxmma.arguments import integer
from ptxmma.catalog.citations import cited, elsewhere
from ptxmma.model import (
    Condition,
    Facts,
    ProductDepth,
    ProductOption,
    ProductScale,
    ProductShape,
    ProductTypes,
    Range,
    Requirement,
    Spec,
    TensorProducts,
    matches,
)

#: The arguments that are element types of matrices.
TYPES = ("dtype", "atype", "btype")
#: Fields on which the meaning or the place of an operand depends.
OPTIONS = ("sparsity_version", "scale_a_lanes")
#: Every argument that says what the opcode does not state.
ARGUMENTS = ("m", "n", "k", *TYPES, "stype", *OPTIONS)


class IllegalProductError(ValueError):
    """Arguments that no rule allows, or that are missing; the message lists what is legal.

    Attributes:
        problem: the mistake, without the opcode.
        legal: the legal values in its place; empty where the problem says so.
    """

    def __init__(self, opcode: str, problem: str, legal: str = "") -> None:
        super().__init__(opcode, problem, legal)
        self.problem, self.legal = problem, legal

    def __str__(self) -> str:
        opcode, problem, legal = self.args
        return f"{opcode} {problem}; legal: {legal}" if legal else f"{opcode} {problem}"


class Choice(NamedTuple):
    """A legal product: the value of each argument, and what it needs beyond its opcode.

    Attributes:
        values: ``{"dtype": "f32", "atype": "bf16", "btype": "bf16", "k": 16, "m": 128, "n": 256}``, with ``stype`` where it is scaled and
            each of :data:`OPTIONS` that it has.
        block: kept elements along K that share a scale factor; 0 where it is not scaled.
        requires: rules for targets that come with these values.
    """

    values: dict[str, str | int]
    block: int
    requires: tuple[Requirement, ...]


def choose(spec: Spec, opcode: str, facts: Facts, given: Mapping[str, str | int]) -> Choice:
    """The product that arguments choose.

    Args:
        spec: the spec, which has rules of products.
        opcode: the canonical spelling, for messages.
        facts: the facts of the opcode.
        given: some of :data:`ARGUMENTS`.

    Raises:
        IllegalProductError: an argument is missing, or no rule allows it.
        TypeError: ``m``, ``n`` or ``k`` is not an integer.
    """
    assert spec.tensor_products is not None
    rules, known = spec.tensor_products, dict(facts)
    types = _types([left(rules, row, known) for row in rules.fitting.types(known)], opcode, given)
    known |= types
    depth = _depth(rules, known, opcode, given)
    known["k"] = depth.k
    options = [_option(rows, opcode, given) for rows in _by_field(rules.fitting.options(known)).values()]
    known |= values_of(options)
    if without := [name for name in OPTIONS if name in given and name not in known]:
        raise IllegalProductError(opcode, f"has no {' and no '.join(without)}; leave it out")
    shape = _shape(rules.fitting.shapes(known), opcode, depth.k, given)
    known |= shape
    check_limits(spec, opcode, known)
    scales = rules.fitting.scales(known)
    if not scales and "stype" in given:
        raise IllegalProductError(opcode, "has no scale factors; leave out stype")
    scale, stype = _scale(scales, opcode, given) if scales else (None, "")
    return _choice({**types, "k": depth.k, **values_of(options), **shape}, depth, options, scale, stype)


def _choice(
    values: dict[str, str | int], depth: ProductDepth, options: Sequence[ProductOption], scale: ProductScale | None, stype: str
) -> Choice:
    """The choice of these types and sizes, by the rules for its depth, its further fields and its scale factors."""
    rules = [rule for rule in (depth, *options, scale) if rule is not None]
    requires = tuple([Requirement(targets=rule.targets, source=rule.source) for rule in rules if rule.targets])
    return Choice(values if scale is None else values | {"stype": stype}, 0 if scale is None else scale.block, requires)


def values_of(options: Iterable[ProductOption]) -> dict[str, str | int]:
    """The options as arguments."""
    return {option.field: option.value for option in options}


def _by_field(options: Iterable[ProductOption]) -> dict[str, list[ProductOption]]:
    """The options of each field."""
    fields: dict[str, list[ProductOption]] = {}
    for option in options:
        fields.setdefault(option.field, []).append(option)
    return fields


def _types(rows: Sequence[ProductTypes], opcode: str, given: Mapping[str, str | int]) -> dict[str, str]:
    """The element types; one that the others leave no choice of may be missing."""
    wanted = {name: str(given[name]) for name in TYPES if name in given}
    fitting = [row for row in rows if all(value in getattr(row, name) for name, value in wanted.items())]
    if not fitting:
        unknown = {name: value for name, value in wanted.items() if not any(value in getattr(row, name) for row in rows)}
        said = ", ".join(f"{name} = {value}" for name, value in (unknown or wanted).items()) or "any types"
        raise IllegalProductError(opcode, f"takes no {said}", _type_text(rows))
    legal = {name: sorted({value for row in fitting for value in getattr(row, name)}) for name in TYPES}
    if missing := [name for name in TYPES if name not in wanted and len(legal[name]) > 1]:
        listed = "; ".join(f"{name}: {', '.join(legal[name])}" for name in missing)
        raise IllegalProductError(opcode, f"does not state its types; say {', '.join(missing)} ({listed})")
    return {name: wanted.get(name, legal[name][0]) for name in TYPES}


def left(rules: TensorProducts, row: ProductTypes, facts: Facts) -> ProductTypes:
    """A rule for types, with the types that the limits leave."""
    limits = [limit.fields for limit in rules.fitting.limits(facts) if limit.fields]
    left = {
        name: [value for value in getattr(row, name) if all(value in fields.get(name, (value,)) for fields in limits)] for name in TYPES
    }
    return msgspec.structs.replace(row, **{name: tuple(values) for name, values in left.items()}) if limits else row


def _type_text(rows: Sequence[ProductTypes]) -> str:
    return "; ".join(", ".join(f"{name} {' or '.join(getattr(row, name))}" for name in TYPES) for row in rows)


def _depth(rules: TensorProducts, facts: Facts, opcode: str, given: Mapping[str, str | int]) -> ProductDepth:
    """The depth that was asked for, or the usual one."""
    rows = rules.fitting.depths(facts)
    if "k" not in given and rows:
        return rows[0]
    k = integer("k", given["k"]) if "k" in given else None
    for row in rows:
        if row.k == k:
            return row
    legal = [_depth_text(row) for row in rows]
    legal += [f"{_depth_text(row)} with {needed}" for row in rules.depths if row.k == k for needed in _needed(row, rows, facts)]
    raise IllegalProductError(opcode, f"with these types does not allow k = {k}", ", ".join(legal) or "none")


def _depth_text(row: ProductDepth) -> str:
    return f"{row.k} ({' or '.join(row.targets)})" if row.targets else str(row.k)


def _needed(row: ProductDepth, matching: Sequence[ProductDepth], facts: Facts) -> Iterator[str]:
    """Return the facts that a rule wants and that no matching rule reads: ``"block16 or block32"``."""
    read = {name for other in matching for condition in other.of for name in condition}
    for condition in row.of:
        failing = {name: values for name, values in condition.items() if facts.get(name, "") not in values}
        if failing and not failing.keys() & read:
            yield " and ".join(" or ".join(str(value) for value in values if value) for values in failing.values())


def _option(rows: Sequence[ProductOption], opcode: str, given: Mapping[str, str | int]) -> ProductOption:
    """The value of a field that was asked for, or the usual one."""
    field = rows[0].field
    value = given.get(field, rows[0].value)
    for row in rows:
        if str(row.value) == str(value):
            return row
    legal = ", ".join(f"{row.value} ({' or '.join(row.targets)})" if row.targets else str(row.value) for row in rows)
    raise IllegalProductError(opcode, f"does not allow {field} = {value}", legal)


def _shape(rows: Sequence[ProductShape], opcode: str, k: int, given: Mapping[str, str | int]) -> dict[str, int]:
    """M and N."""
    legal = "; ".join(f"m = {' or '.join(map(str, row.m))} with n = {ranges(row.n)}" for row in rows) or "none"
    if missing := [name for name in ("m", "n") if name not in given]:
        raise IllegalProductError(opcode, f"does not state its shape; say {' and '.join(missing)} ({legal})")
    m, n = integer("m", given["m"]), integer("n", given["n"])
    if not any(m in row.m and _among(n, row.n) for row in rows):
        raise IllegalProductError(opcode, f"with k = {k} does not allow m = {m} with n = {n}", legal)
    return {"m": m, "n": n}


def check_limits(spec: Spec, opcode: str, facts: Facts) -> None:
    """Check a legal product against the limits of its qualifiers, and of what its instruction descriptor says beyond shape and types.

    Args:
        spec: the spec; without rules of products there is nothing to check.
        opcode: the canonical spelling, for messages.
        facts: the facts of the opcode, the product and the fields of the descriptor, as far as they are known.

    Raises:
        IllegalProductError: M, N or a field is not legal with these facts; the message lists what is.
    """
    for row in spec.tensor_products.fitting.limits(facts) if spec.tensor_products else ():
        condition = next(each for each in row.of if matches((each,), facts))
        said = ", ".join(f"{name} = {facts[name]}" for name in condition if str(facts[name]) not in opcode.split("."))
        problem = f"with {said} does not allow" if said else "does not allow"
        source = f"(PTX ISA {cited(row.source, elsewhere(spec)).removeprefix('PTX ISA ')})"
        if row.m and facts["m"] not in row.m:
            raise IllegalProductError(opcode, f"{problem} m = {facts['m']}", f"{' or '.join(map(str, row.m))} {source}")
        if row.n and not _among(int(facts["n"]), row.n):
            raise IllegalProductError(opcode, f"{problem} n = {facts['n']}", f"{ranges(row.n)} {source}")
        for name, values in row.fields.items():
            if facts.get(name, values[0]) not in values:
                raise IllegalProductError(opcode, f"{problem} {name} = {facts[name]}", f"{' or '.join(map(str, values))} {source}")


def within_limits(rules: TensorProducts, facts: Facts, m: int | None, n: int | None) -> bool:
    """Return whether the limits that these facts meet leave M and N; None for any."""
    limits = rules.fitting.limits(facts)
    return all((not row.m or m in (None, *row.m)) and (not row.n or n is None or _among(n, row.n)) for row in limits)


def _among(number: int, spans: Sequence[Range]) -> bool:
    return any(number in range(span.first, span.last + 1, span.step) for span in spans)


def ranges(spans: Sequence[Range]) -> str:
    """Ranges as the manual prints them: ``8, 16, … 256``."""
    return ", ".join(_span(span) for span in spans)


def _span(span: Range) -> str:
    numbers = list(range(span.first, span.last + 1, span.step))
    return ", ".join(map(str, numbers)) if len(numbers) <= 4 else f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"


def _scale(rows: Sequence[ProductScale], opcode: str, given: Mapping[str, str | int]) -> tuple[ProductScale, str]:
    """The rule for the scale factors, and their type."""
    if "stype" not in given:
        if len(rows) == 1 and len(rows[0].stype) == 1:
            return rows[0], rows[0].stype[0]
        legal = dict.fromkeys(name for row in rows for name in row.stype)
        raise IllegalProductError(opcode, f"does not state the type of its scale factors; say stype ({', '.join(legal)})")
    for row in rows:
        if given["stype"] in row.stype:
            return row, str(given["stype"])
    raise IllegalProductError(opcode, f"does not allow stype = {given['stype']}", ", ".join(name for row in rows for name in row.stype))


def unstated(rules: TensorProducts, facts: Facts) -> list[str]:
    """The arguments that have more than one legal value for an opcode, in the order in which they are usually given."""
    return ["m", "n", *(name for name, values in types(rules, facts).items() if len(values) > 1)]


def types(rules: TensorProducts, facts: Facts) -> dict[str, set[str]]:
    """The legal values of each argument of an opcode that is a type: of D, A, B and the scale factors."""
    rows, scales = [left(rules, row, facts) for row in rules.fitting.types(facts)], rules.fitting.scales(facts)
    legal = {name: {value for row in rows for value in getattr(row, name)} for name in TYPES}
    return legal | {"stype": {value for row in scales for value in row.stype}}


def every(rules: TensorProducts, facts: Facts) -> Iterator[Choice]:
    """Every legal product of an opcode, with each type of A, B, D and of the scale factors."""
    for chosen in typed(rules, facts):
        yield from sized(rules, facts, chosen)


def typed(rules: TensorProducts, facts: Facts) -> Iterator[dict[str, str]]:
    """Every legal choice of the types of D, A and B."""
    yield from (chosen for _, chosen in _typed(rules, facts))


def _typed(rules: TensorProducts, facts: Facts) -> Iterator[tuple[ProductTypes, dict[str, str]]]:
    """The rule that allows each legal choice of types, and the choice."""
    for row in rules.fitting.types(facts):
        allowed = left(rules, row, facts)
        for chosen in itertools.product(*(getattr(allowed, name) for name in TYPES)):
            yield row, dict(zip(TYPES, chosen, strict=True))


def sized(rules: TensorProducts, facts: Facts, types: Mapping[str, str]) -> Iterator[Choice]:
    """Every legal product of an opcode with these types of D, A and B."""
    for deep, depth, options in _deep(rules, facts, types):
        for row in rules.fitting.shapes({**facts, **deep}):
            for m, n in itertools.product(row.m, numbers(row.n)):
                values = deep | {"m": m, "n": n}
                known = {**facts, **values}
                if not within_limits(rules, known, m, n):
                    continue
                scales = rules.fitting.scales(known)
                yield from (_choice(values, depth, options, scale, stype) for scale in scales for stype in scale.stype)
                if not scales:
                    yield _choice(values, depth, options, None, "")


def deep(rules: TensorProducts, facts: Facts) -> Iterator[dict[str, str | int]]:
    """Every legal choice of the types, of K, and of further fields."""
    for chosen in typed(rules, facts):
        for values, _, _ in _deep(rules, facts, chosen):
            yield values


def _deep(
    rules: TensorProducts, facts: Facts, types: Mapping[str, str]
) -> Iterator[tuple[dict[str, str | int], ProductDepth, tuple[ProductOption, ...]]]:
    for depth in rules.fitting.depths({**facts, **types}):
        values: dict[str, str | int] = {**types, "k": depth.k}
        for options in optional(rules, {**facts, **values}):
            yield values | values_of(options), depth, options


def optional(rules: TensorProducts, facts: Facts) -> Iterator[tuple[ProductOption, ...]]:
    """Every legal choice of the further fields of a product with these facts; one without any where it has none."""
    return itertools.product(*_by_field(rules.fitting.options(facts)).values())


class Rows(NamedTuple):
    """The rules that allow some products of an opcode, which differ in M, N and the type of the scale factors alone."""

    row: ProductTypes
    types: dict[str, str]
    depth: ProductDepth
    shape: ProductShape
    scales: tuple[ProductScale, ...]


def rows(rules: TensorProducts, facts: Facts) -> Iterator[Rows]:
    """The rules that allow the products of an opcode, for each choice of types."""
    for row, types in _typed(rules, facts):
        for depth in rules.fitting.depths({**facts, **types}):
            known = {**facts, **types, "k": depth.k}
            scales = rules.fitting.scales(known)
            yield from (Rows(row, types, depth, shape, scales) for shape in rules.fitting.shapes(known))


def has_sizes(rules: TensorProducts, facts: Facts, m: int | None, n: int | None, k: int | None) -> bool:
    """Return whether an opcode has a product of these sizes, with any types; None for any size."""
    for types in typed(rules, facts) if within_limits(rules, facts, m, n) else ():
        known = {**facts, **types}
        depths = [row.k for row in rules.fitting.depths(known) if k in (None, row.k)]
        shapes = (row for depth in depths for row in rules.fitting.shapes({**known, "k": depth}))
        if any((m is None or m in row.m) and (n is None or _among(n, row.n)) for row in shapes):
            return True
    return False


def numbers(spans: Sequence[Range]) -> list[int]:
    """Every number of some ranges."""
    return [number for span in spans for number in range(span.first, span.last + 1, span.step)]


def conditions(rules: TensorProducts) -> list[tuple[Condition, ...]]:
    """The conditions of every rule."""
    return [rule.of for rows in (rules.types, rules.depths, rules.shapes, rules.options, rules.limits, rules.scales) for rule in rows]
