"""What the instruction descriptor of a product may choose, as tables: element types, K, M and N, scale factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ptxmma.catalog import product_rules, resolution
from ptxmma.catalog.instructions import Instruction
from ptxmma.generator.emit.docs import struct_tables
from ptxmma.model import Condition, Facts, ProductDepth, ProductLimit, ProductScale, ProductShape, ProductTypes, Spec

_Rule = TypeVar("_Rule", ProductTypes, ProductDepth, ProductShape, ProductLimit, ProductScale)


def tables(spec: Spec, opcodes: Sequence[Instruction]) -> tuple[list[str], str]:
    """The rules that some opcodes of one instruction can meet, and those that narrow N further; nothing where they state their shape.

    A product is legal if a row of each table allows it.
    """
    rules = spec.tensor_products
    if rules is None or opcodes[0].operation != resolution.OPERATION:
        return [], ""
    facts = [opcode.variant.facts for opcode in opcodes]
    needs = {"targets": "Targets, and those that include one"}
    scales = {"stype": "Scale factors", "block": "Elements that share one", **needs}
    sizes: dict[str, Any] = {"titles": {"m": "M", "n": "N"}, "cells": {"n": lambda row: product_rules.ranges(row.n)}}
    chosen = [
        struct_tables.table(_met(rules.types, facts), titles={"dtype": "D", "atype": "A", "btype": "B"}),
        struct_tables.table(_met(rules.depths, facts), titles={"k": "K", **needs}),
        struct_tables.table(_met(rules.shapes, facts), **sizes),
        struct_tables.table(_met(rules.scales, facts), titles=scales),
    ]
    return list(filter(None, chosen)), struct_tables.table(_met(rules.limits, facts), **sizes)


def _met(rules: Sequence[_Rule], opcodes: Sequence[Facts]) -> list[_Rule]:
    """The rules that can hold for an opcode; of their conditions only what tells the opcodes apart."""
    met = []
    for rule in rules:
        if alternatives := [part for part in rule.of if any(_may_hold(part, facts) for facts in opcodes)]:
            parts = [_narrowed(part, opcodes) for part in alternatives]
            met.append(msgspec.structs.replace(rule, of=tuple(parts) if all(parts) else ()))
    return met


def _narrowed(part: Condition, opcodes: Sequence[Facts]) -> Condition:
    """A condition without the values that no opcode has, and without what every opcode meets."""
    narrowed = {
        name: tuple(value for value in values if any(facts.get(name, value) == value for facts in opcodes)) for name, values in part.items()
    }
    return {name: values for name, values in narrowed.items() if not all(facts.get(name) in values for facts in opcodes)}


def _may_hold(part: Condition, facts: Facts) -> bool:
    """Whether what an opcode states lets a condition hold; what it does not state may be anything."""
    return all(facts.get(name, values[0]) in values for name, values in part.items())
