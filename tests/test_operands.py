"""Operands that variants share are what each variant would have alone."""

from __future__ import annotations

from ptxmma.instructions import Catalog
from ptxmma.operands import KINDS, Known, Operand


def test_what_operands_look_like(catalog: Catalog) -> None:
    ins = catalog.find("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert repr(ins.operand("a")) == "<Operand a: 8 x f16 in 4 x b32>"
    assert repr(ins.operand("f")) == "<Operand f: selector>"
    assert repr(ins.operand("a").layout) == "<Layout mma_sp_m16n8k32_a_b16>"
    descriptor = catalog.find("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16").operand("b-desc")
    assert repr(descriptor) == "<Operand b-desc: descriptor in 1 x b64>"


def test_what_a_map_works_out_is_kept(catalog: Catalog) -> None:
    """Looking an element up must not group the bits anew."""
    bit_map = catalog.database.layouts[0].map
    assert bit_map.inverse() is bit_map.inverse()
    assert bit_map.inverse().inverse() == bit_map


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
