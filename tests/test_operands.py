"""Operands that variants share are what each variant would have alone."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptxmma
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.layouts import interop
from ptxmma.catalog.roles import ROLES
from ptxmma.catalog.roles.role import Context, Known
from ptxmma.matrices import scaling, shared_memory
from ptxmma.model import Kind


def test_each_kind_of_operand_has_a_role() -> None:
    assert list(ROLES) == list(typing.get_args(Kind))


def test_a_stride_steps_along_the_axis_that_its_layout_names(catalog: Catalog) -> None:
    for layout, order in (("row", ("row", "col")), ("col", ("col", "row"))):
        load = catalog.find(f"wmma.load.a.sync.aligned.{layout}.m16n16k16.f16")
        assert load.operand("stride").order == order
        assert load.operand("stride").default == load.operand("r").sizes[order[1]]


def test_representations_of_operands(catalog: Catalog) -> None:
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
    plan_of = functools.partial(layouts.plan, catalog.database.spec)  # of each variant by itself
    for instruction in catalog.all():
        for operand in {operand.name: operand for operand in instruction.operands}.values():
            entry = instruction.variant.instruction.operand_kinds[operand.name]
            alone: Known = {name: getattr(entry, name) for name in ("of", "within", "droppable", "access", "default", "uniform")}
            alone["bracketed"] = any(f"[{operand.name}{end}" in form.syntax for form in instruction.forms for end in "],")
            alone |= ROLES[entry.kind].describe(Context(catalog.database, instruction.variant, operand.name, entry, plan_of))
            assert operand == ROLES[entry.kind].operand_type(
                name=operand.name, kind=entry.kind, title=entry.title, source=entry.source, **alone
            )
            shared.add(id(operand))
            count += 1
    assert 5 * len(shared) < count, "most are shared"


_SPARSE = ptxmma.instruction("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
_A, _METADATA = _SPARSE.operand("a"), _SPARSE.metadata
_SCALES = ptxmma.instruction("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0").scales(
    "a"
)
_TILE, _WORDS, _FACTORS = np.full((16, 2), 0x44, np.uint8), np.full(32, 0x44444444, np.uint32), np.zeros((16, 2), np.uint8)
_SHARED = shared_memory.SharedLayout("f16", "K", "128B", 64, 64)
_DESCRIPTOR = _SHARED.descriptor()
_QUANTISED = scaling.quantise(np.ones((1, 32), np.float32), "mxfp4")


def _layout(**changed: Any) -> Any:
    sizes: dict[str, Any] = {"x": 64, "k": 64}
    return shared_memory.SharedLayout("f16", "K", "128B", **sizes | changed)


_INTEGERS: dict[str, Callable[[Any], object]] = {
    "lane": lambda given: _A.coords(given, 0),
    "i": lambda given: _A.coords(0, given),
    "row": lambda given: _A.locate(given, 0),
    "row of metadata": lambda given: _METADATA.locate(given, 0),
    "selector of metadata": lambda given: _METADATA.locate(0, 0, given),
    "lane of metadata": lambda given: _METADATA.fields(given),
    "selector of fields": lambda given: _METADATA.fields(0, given),
    "selector to pack": lambda given: _METADATA.pack(_TILE, given),
    "selector to unpack": lambda given: _METADATA.unpack(_WORDS, given),
    "selector of problems": lambda given: _METADATA.problems(_WORDS, given),
    "row of scales": lambda given: _SCALES.locate(given, 0),
    "byte_id": lambda given: _SCALES.locate(0, 0, byte_id=given),
    "thread_id": lambda given: _SCALES.locate(0, 0, thread_id=given),
    "byte_id to pack": lambda given: _SCALES.pack(_FACTORS, given),
    "thread_id to pack": lambda given: _SCALES.pack(_FACTORS, thread_id=given),
    "byte_id to unpack": lambda given: _SCALES.unpack(_WORDS, given),
    "thread_id of tiles": lambda given: _SCALES.unpack_tiles(_WORDS[None, None], thread_id=given),
    "block": lambda given: scaling.custom("e2m1", "ue8m0", given),
    "axis of a format": lambda given: scaling.custom("e2m1", "ue8m0", 16, axis=given),
    "x": lambda given: _layout(x=given),
    "k": lambda given: _layout(k=given),
    "start": lambda given: _layout(start=given),
    "base_offset": lambda given: _layout(base_offset=given),
    "x of a sub-tile": lambda given: _SHARED.descriptor(x=given),
    "k_extent": lambda given: _SHARED.steps(given),
    "x of an address": lambda given: _SHARED.address(given, 0),
    "start of a pattern": lambda given: shared_memory.base_offset("128B", given),
    "descriptor": lambda given: shared_memory.Descriptor.decode(given),
    "memory_start": lambda given: shared_memory.read_operand(_DESCRIPTOR, bytes(8192), "f16", 64, 64, "K", given),
    "k of an operand": lambda given: shared_memory.read_operand(_DESCRIPTOR, bytes(8192), "f16", 64, given, "K"),
    "width": lambda given: shared_memory.bank_conflicts(np.arange(32) * 16, given),
    "n": lambda given: interop.to_cute(_A.fragment(), given),
    "size": lambda given: interop.CuteLayout(given, 1),
    "coordinate": lambda given: interop.CuteLayout((8, 2), (1, 8))(given),
}
#: The value of an argument that is not given.
_OPTIONAL: dict[str, Callable[[Any], object]] = {
    "byte_id of tiles": lambda given: _SCALES.pack_tiles(_FACTORS, given),
    "selector of tiles": lambda given: _METADATA.pack_tiles(_TILE, given),
    "selector of all tiles": lambda given: _METADATA.unpack_tiles(_WORDS[None, None], given),
    "axis": lambda given: scaling.quantise(np.ones((1, 32), np.float32), "mxfp4", axis=given),
    "axis to dequantise": lambda given: scaling.dequantise(*_QUANTISED, "mxfp4", axis=given),
    "lbo": lambda given: _layout(lbo=given),
    "x_extent": lambda given: _SHARED.descriptor(x_extent=given),
}


@pytest.mark.parametrize("name", [*_INTEGERS, *_OPTIONAL])
def test_other_values_than_integers_are_type_errors_everywhere(name: str) -> None:
    """A wrong integer is a ``ValueError`` that says so; NumPy's integers are taken."""
    call = (_INTEGERS | _OPTIONAL)[name]
    for wrong in ["1", 0.0, np.float64(1), [0], *([None] if name in _INTEGERS and name != "n" else [])]:
        with pytest.raises(TypeError, match=r"must be (one|an) integer.*, not (str|float|float64|list|NoneType)$"):
            call(wrong)
    for negative in () if "axis" in name else (-1, np.int32(-3)):
        with pytest.raises(ValueError, match=rf"{negative}|{negative:#x}"):
            call(negative)


def test_an_array_is_not_an_id() -> None:
    wrong: list[dict[str, Any]] = [{"byte_id": np.array([0, 2])}, {"thread_id": np.array([0, 1])}]
    for ids in wrong:
        with pytest.raises(TypeError, match=r"_id must be one integer, not ndarray"):
            _SCALES.pack(_FACTORS, **ids)


@pytest.mark.parametrize("name", ["a-desc", "scale-d", "d"])
def test_an_operand_refuses_what_it_does_not_have(name: str) -> None:
    operand = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16").operand(name)
    with pytest.raises(ValueError, match=f"operand '{name}' does not lie in tensor memory; its role: "):
        operand.placed()
    with pytest.raises(ValueError, match=f"no load or store moves operand '{name}': it does not lie in tensor memory"):
        operand.through(ptxmma.instruction("tcgen05.ld.sync.aligned.32x32b.x8.b32"))
    asked = (operand.pack, operand.unpack, operand.pack_tiles, operand.unpack_tiles, operand.coords, operand.computation)
    for question in asked if name != "d" else ():
        with pytest.raises(ValueError, match=f"operand '{name}' holds no elements of a matrix; its role: "):
            question(0, 0)
