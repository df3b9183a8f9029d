"""The products that an opcode may have, as the rules that it can meet, and the product that an instruction descriptor chooses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ptxmma.catalog.descriptors.bits import Value
from ptxmma.catalog.instruction import Instruction
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.product_rules import IllegalProductError
from ptxmma.model import (
    Condition,
    Facts,
    Granularity,
    ProductDepth,
    ProductLimit,
    ProductScale,
    ProductShape,
    ProductSparsity,
    ProductTypes,
    TensorLayout,
)

Rule = TypeVar("Rule", Granularity, ProductTypes, ProductDepth, ProductSparsity, ProductShape, ProductLimit, ProductScale, TensorLayout)


def in_words(instruction: Instruction) -> list[str]:
    """What the instruction descriptor may choose, a line for each rule; empty where the opcode states its shape.

    A product is legal if a line of each kind allows it: ``"D f32, A e4m3 or e5m2, B e4m3"``, ``"M 128 with N 8, 16, … 256"``.
    """
    rules = instruction.database.spec.tensor_products
    if rules is None or instruction.operation != resolution.OPERATION:
        return []
    facts = [facts_of(instruction)]
    lines = [f"D {_either(row.dtype)}, A {_either(row.atype)}, B {_either(row.btype)}{_where(row.of)}" for row in met(rules.types, facts)]
    lines += [f"K {row.k}{_on(row.targets)}{_where(row.of)}" for row in met(rules.depths, facts)]
    lines += [f"sparsity {row.version}{_on(row.targets)}{_where(row.of)}" for row in met(rules.sparsities, facts)]
    deep: list[Facts] = [{**facts[0], "k": row.k} for row in met(rules.depths, facts)]
    lines += [f"M {_either(row.m)} with N {product_rules.ranges(row.n)}{_where(row.of)}" for row in met(rules.shapes, deep)]
    limits = met(rules.limits, facts)
    lines += [f"M {_either(row.m)} alone{_where(row.of)}" for row in limits if row.m]
    lines += [f"N {product_rules.ranges(row.n)} alone{_where(row.of)}" for row in limits if row.n]
    kept = "kept elements" if instruction.sparse else "elements"
    return lines + [
        f"scale factors {_either(row.stype)}, one for {row.block} {kept} along K{_on(row.targets)}{_where(row.of)}"
        for row in met(rules.scales, facts)
    ]


def facts_of(instruction: Instruction) -> Facts:
    """What an opcode states; a qualifier of products that it leaves out is ``""``."""
    entries = (entry for entry in instruction.database.spec.instructions if entry.operation == resolution.OPERATION)
    return {**{name: "" for entry in entries for name in entry.qualifiers}, **instruction.variant.facts}


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
    """Whether what an opcode states lets a condition hold; what it does not state may be anything."""
    return all(facts.get(name, values[0]) in values for name, values in part.items())


def product_of(opcode: Instruction, fields: Mapping[str, Value], target: str | None = None) -> Instruction:
    """The product that the fields of an instruction descriptor make of an opcode: the inverse of :func:`of_product`.

    Args:
        opcode: a ``tcgen05.mma``.
        fields: those of its descriptor.
        target: that must support the product, if it supports the opcode; any by default.

    Raises:
        IllegalProductError: no rule allows them together, or not on the target; the message lists what is legal.
    """
    rules, variant = opcode.database.spec.tensor_products, opcode.variant
    given = {argument: value for name, value in fields.items() if (argument := argument_of(name))}
    if not opcode.sparse:
        given.pop("sparsity_version", None)  # which versions of sparsity mean nothing to
    product = resolution.resolve(opcode.database.spec, variant, given)
    if rules is not None:
        product_rules.check_limits(rules, opcode.canonical, {**fields, **product.facts})
    chosen = Instruction(opcode.database, product)
    if target in opcode.accepted_by() and target not in (targets := chosen.accepted_by()):
        said = ", ".join(f"{name} = {value}" for name, value in product.chosen)
        raise IllegalProductError(opcode.canonical, f"with {said} is not supported by {target}", f"on {', '.join(targets)}")
    return chosen


def mistake(kind: str, opcodes: Iterable[Instruction], fields: Mapping[str, Value], target: str | None = None) -> str:
    """What is wrong with the fields of an instruction descriptor if none of the opcodes has such a product; empty if one does.

    Args:
        kind: ``"kind::f16"``, for the message.
        opcodes: of the kind; those that the target lacks, and those that multiply dense matrices if the fields say sparse ones, and the
            other way round, are passed over.
        fields: all of the descriptor.
        target: as of :func:`product_of`.
    """
    legal: dict[str, dict[str, None]] = {}
    for opcode in opcodes:
        if fields["sparse"] == opcode.sparse and (target is None or target in opcode.accepted_by()):
            try:
                product_of(opcode, fields, target)
            except IllegalProductError as error:
                legal.setdefault(error.problem, {})[error.legal] = None
            else:
                return ""
    return "; ".join(f"{kind} {problem}; legal: {'; '.join(known)}" for problem, known in legal.items())


def argument_of(field: str) -> str:
    """What :func:`ptxmma.instruction` calls a field that chooses a product; ``""`` for the others."""
    name = "stype" if field == "scale_type" else field
    return name if name in product_rules.ARGUMENTS else ""
