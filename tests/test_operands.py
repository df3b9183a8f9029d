"""Operands that variants share are what each variant would have alone."""

from __future__ import annotations

from ptxmma.instructions import Catalog
from ptxmma.operands import KINDS, Known, Operand


def test_sharing_changes_nothing(catalog: Catalog) -> None:
    shared, count = set(), 0
    for instruction in catalog.all():
        for operand in {operand.name: operand for form in instruction.forms for operand in form.operands}.values():
            entry = instruction.variant.instruction.operand_kinds[operand.name]
            alone: Known = {"access": entry.access, "default": entry.default, "uniform": entry.uniform}
            alone |= KINDS[entry.kind](catalog.database, instruction.variant, operand.name, entry)
            assert operand == Operand(name=operand.name, kind=entry.kind, title=entry.title, source=entry.source, **alone)
            shared.add(id(operand))
            count += 1
    assert 5 * len(shared) < count, "most are shared"
