"""The products that an opcode may have, as the rules that it can meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.variants import Variant
from ptxmma.model import (
    Condition,
    Facts,
    Granularity,
    ProductDepth,
    ProductLimit,
    ProductOption,
    ProductScale,
    ProductShape,
    ProductTypes,
    Spec,
    TensorLayout,
)

Rule = TypeVar("Rule", Granularity, ProductTypes, ProductDepth, ProductShape, ProductOption, ProductLimit, ProductScale, TensorLayout)


def in_words(spec: Spec, opcode: Variant) -> list[str]:
    """Return the choices of the instruction descriptor, a line for each rule; empty where the opcode states its shape.

    A product is legal if a line of each kind allows it: ``"D f32, A e4m3 or e5m2, B e4m3"``, ``"M 128 with N 8, 16, … 256"``.
    """
    rules = spec.tensor_products
    if rules is None or opcode.instruction.operation != resolution.OPERATION:
        return []
    facts = [facts_of(spec, opcode)]
    types = [product_rules.left(rules, row, facts[0]) for row in met(rules.types, facts)]
    lines = [f"D {_either(row.dtype)}, A {_either(row.atype)}, B {_either(row.btype)}{_where(row.of)}" for row in types]
    lines += [f"K {row.k}{_on(row.targets)}{_where(row.of)}" for row in met(rules.depths, facts)]
    deep: list[Facts] = [{**facts[0], "k": row.k} for row in met(rules.depths, facts)]
    lines += [f"{row.field} {row.value}{_on(row.targets)}{_where(row.of)}" for row in met(rules.options, deep)]
    lines += [f"M {_either(row.m)} with N {product_rules.ranges(row.n)}{_where(row.of)}" for row in met(rules.shapes, deep)]
    limits = met(rules.limits, facts)
    lines += [f"M {_either(row.m)} alone{_where(row.of)}" for row in limits if row.m]
    lines += [f"N {product_rules.ranges(row.n)} alone{_where(row.of)}" for row in limits if row.n]
    fields = ((row, name, values) for row in limits for name, values in row.fields.items() if name not in product_rules.TYPES)
    lines += [f"{name} {_either(values)} alone{_where(row.of)}" for row, name, values in fields]
    kept = "kept elements" if opcode.instruction.sparse else "elements"
    return lines + [
        f"scale factors {_either(row.stype)}, one for {row.block} {kept} along K{_on(row.targets)}{_where(row.of)}"
        for row in met(rules.scales, facts)
    ]


def sizes(spec: Spec, opcodes: Sequence[Variant]) -> dict[str, set[int]]:
    """Every M, N and K of the products that some opcodes may have; empty where their shapes state them."""
    rules, facts = spec.tensor_products, [facts_of(spec, each) for each in opcodes if each.instruction.operation == resolution.OPERATION]
    if rules is None or not facts:
        return {}
    shapes = admitting(rules.shapes, facts)
    return {
        "m": {number for row in shapes for number in row.m},
        "n": {number for row in shapes for number in product_rules.numbers(row.n)},
        "k": {row.k for row in admitting(rules.depths, facts)},
    }


def facts_of(spec: Spec, opcode: Variant) -> Facts:
    """Return the facts that an opcode states; a qualifier of products that it leaves out is ``""``."""
    entries = (entry for entry in spec.instructions if entry.operation == resolution.OPERATION)
    return {**{name: "" for entry in entries for name in entry.qualifiers}, **opcode.facts}


def _either(values: Sequence[object]) -> str:
    return " or ".join(map(str, values))


def _on(targets: Sequence[str]) -> str:
    return f" on {_either(targets)}" if targets else ""


def _where(conditions: Sequence[Condition]) -> str:
    texts = [" and ".join(f"{name} is {_either(values)}" for name, values in part.items()) for part in conditions]
    return f" where {'; or '.join(texts)}" if all(texts) and texts else ""


def met(rules: Sequence[Rule], opcodes: Sequence[Facts]) -> list[Rule]:
    """The rules that can hold for an opcode; of their conditions only what tells the opcodes apart."""
    met = []
    for rule in admitting(rules, opcodes):
        parts = [_telling(part, opcodes) for part in rule.of]
        met.append(msgspec.structs.replace(rule, of=tuple(parts) if all(parts) else ()))
    return met


def admitting(rules: Sequence[Rule], opcodes: Sequence[Facts]) -> list[Rule]:
    """The rules that can hold for an opcode; of their conditions only the alternatives and the values that some opcode has."""
    return [msgspec.structs.replace(rule, of=of) for rule in rules if (of := admitted(rule.of, opcodes)) is not None]


def admitted(conditions: Sequence[Condition], opcodes: Sequence[Facts]) -> tuple[Condition, ...] | None:
    """Of conditions, the alternatives and the values that some opcode has; None where none can hold."""
    alternatives = [part for part in conditions if any(_may_hold(part, facts) for facts in opcodes)]
    return tuple(_had(part, opcodes) for part in alternatives) if alternatives or not conditions else None


def _had(part: Condition, opcodes: Sequence[Facts]) -> Condition:
    """A condition without the values that no opcode has."""
    return {
        name: tuple(value for value in values if any(facts.get(name, value) == value for facts in opcodes)) for name, values in part.items()
    }


def _telling(part: Condition, opcodes: Sequence[Facts]) -> Condition:
    """A condition without what every opcode meets."""
    return {name: values for name, values in part.items() if not all(facts.get(name) in values for facts in opcodes)}


def _may_hold(part: Condition, facts: Facts) -> bool:
    """Return whether what an opcode states lets a condition hold; what it does not state may be anything."""
    return all(facts.get(name, values[0]) in values for name, values in part.items())
