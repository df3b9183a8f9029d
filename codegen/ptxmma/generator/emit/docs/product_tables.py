"""The choices of a product's instruction descriptor as tables: element types, K, M and N, scale factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxmma.catalog import product_rules, resolution
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.legal_products import facts_of, met
from ptxmma.generator.emit.docs import struct_tables
from ptxmma.model import Spec


def tables(spec: Spec, opcodes: Sequence[Instruction]) -> tuple[list[str], str]:
    """The rules that some opcodes of one instruction can meet, and those that narrow N further; nothing where they state their shape.

    A product is legal if a row of each table allows it.
    """
    rules = spec.tensor_products
    if rules is None or opcodes[0].operation != resolution.OPERATION:
        return [], ""
    facts = [facts_of(opcode) for opcode in opcodes]
    needs = {"targets": "Targets, and those that include one"}
    scales = {"stype": "Scale factors", "block": "Elements that share one", **needs}
    sizes: dict[str, Any] = {"titles": {"m": "M", "n": "N"}, "cells": {"n": lambda row: product_rules.ranges(row.n)}}
    chosen = [
        struct_tables.table(met(rules.types, facts), titles={"dtype": "D", "atype": "A", "btype": "B"}),
        struct_tables.table(met(rules.depths, facts), titles={"k": "K", **needs}),
        struct_tables.table(met(rules.sparsities, facts), titles={"version": "Version of sparsity", **needs}),
        struct_tables.table(met(rules.shapes, facts), **sizes),
        struct_tables.table(met(rules.scales, facts), titles=scales),
    ]
    return list(filter(None, chosen)), struct_tables.table(met(rules.limits, facts), **sizes)
