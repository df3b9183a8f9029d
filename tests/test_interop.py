"""Layouts in the notations of CuTe and Triton, against the bit maps and against those projects."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmma.catalog.instructions import Catalog, catalog
from ptxmma.catalog.layouts import interop
from ptxmma.catalog.layouts.interop import CuteLayout, Modes, Swizzle, from_cute
from ptxmma.catalog.operands import Operand
from ptxmma.model import COPY, Layout, formula
from ptxmma.model.bitmap import BitMap, domain

LAYOUTS = catalog().database.layout
RANGES = [name for name, layout in LAYOUTS.items() if layout.growing]
#: The most columns of each layout with an open number of them.
MOST = {name: LAYOUTS[name].cols for name in RANGES}
#: The layouts of elements, metadata fields and scale factors, which have places.
PLACED = [name for name, layout in LAYOUTS.items() if layout.kind != "address"]


def _ways(layout: Layout) -> tuple[dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Places, threads and values of the whole domain, from :meth:`BitMap.apply`."""
    points = {name: np.array(column) for name, column in domain(layout.map.inputs).items()}
    everything = points | layout.map.apply(points)
    value = next(everything[name] for name in ("i", "bit", "byte") if name in everything)
    return {name: everything[name] for name in layout.axes if name != COPY}, everything["lane"], value


@pytest.mark.parametrize("name", PLACED)
def test_cute_says_what_the_map_says(name: str) -> None:
    layout = LAYOUTS[name]
    places, lane, value = _ways(layout)
    order = list(places)
    if layout.kind == "fragment":  # several matrices lie one behind the other
        matrix = [axis for axis in (layout.plane[::-1] if "b" in layout.operands else layout.plane) if axis]
        order = matrix + [dimension for dimension in order if dimension not in matrix]
    expected, below = np.zeros_like(lane), 1
    for dimension in order:
        expected += places[dimension] * below
        below *= layout.axes[dimension]
    text = interop.to_cute(layout, MOST.get(name))
    parsed = from_cute(text)
    assert parsed.rank == 2
    assert parsed.size == len(lane) == len(set(expected.tolist())) * layout.axes.get(COPY, 1)
    np.testing.assert_array_equal(parsed(lane, value), expected)
    assert str(parsed) == text


@pytest.mark.parametrize("name", PLACED)
def test_triton_says_what_the_map_says(name: str) -> None:
    layout = LAYOUTS[name]
    places, lane, value = _ways(layout)
    order = list(places)
    if layout.kind == "fragment":  # the number of a matrix comes first
        order.sort(key=["row", "col"].__contains__)
    bases = interop.to_triton(layout, MOST.get(name))
    assert list(bases) == ["register", "lane", "warp"]
    assert len(bases["lane"]) == 5
    assert 32 << len(bases["warp"]) == layout.threads
    assert {len(base) for part in bases.values() for base in part} == {len(order)}
    for at, dimension in enumerate(order):
        coordinates = [(value, bases["register"]), (lane, bases["lane"]), (lane >> 5, bases["warp"])]
        bits = [(column >> bit & 1) * base[at] for column, part in coordinates for bit, base in enumerate(part)]
        np.testing.assert_array_equal(functools.reduce(operator.xor, bits), places[dimension])


@pytest.mark.parametrize("ask", [interop.to_cute, interop.to_triton])
def test_addresses_place_nothing(ask: Any) -> None:
    addresses = [layout for layout in LAYOUTS.values() if layout.kind == "address"]
    assert addresses
    for layout in addresses:
        with pytest.raises(ValueError, match=f"{layout.name} places no elements: it says which thread gives the address of which row"):
            ask(layout)


def test_several_matrices_and_copies() -> None:
    four = LAYOUTS["ldmatrix_m8n8_x4_r_b16"]
    assert from_cute(interop.to_cute(four)) == from_cute("((4,8),(2,4)):((16,1),(8,64))")
    assert interop.to_triton(four)["register"] == [[0, 0, 1], [1, 0, 0], [2, 0, 0]]
    twice = LAYOUTS["wmma_m16n16k16_a_f16_observed_sm_90"]
    assert from_cute(interop.to_cute(twice)) == from_cute("((4,8),(2,2,2,2)):((32,1),(16,8,128,0))")
    assert interop.to_triton(twice)["register"] == [[0, 1], [8, 0], [0, 8], [0, 0]]


def _with_n(catalog: Catalog) -> list[tuple[Operand, int]]:
    """Operands of all N, one for each layout and N."""
    by_size = {}
    for variant in catalog.all():
        for operand in variant.operands:
            if operand.layout is not None and operand.layout.name in RANGES:
                by_size[operand.layout.name, operand.cols] = operand
    return [(operand, n) for (_, n), operand in by_size.items()]


def test_every_n_that_instructions_have(catalog: Catalog) -> None:
    cases = _with_n(catalog)
    assert {operand.layout.name for operand, _ in cases if operand.layout} == set(RANGES)
    for operand, n in cases:
        assert operand.layout is not None
        assert operand.to_cute() == interop.to_cute(operand.layout, n)
        layout = from_cute(operand.to_cute())
        assert layout.size == math.prod(operand.sizes[axis] for axis in operand.axes)
        lane, i = (grid.ravel() for grid in np.meshgrid(np.arange(operand.layout.threads), np.arange(operand.elements), indexing="ij"))
        *several, row, col = operand.coords(lane, i)
        place = row + operand.rows * (col + n * (several[0] if several else 0))
        np.testing.assert_array_equal(layout(lane, i), place)
        if n & (n - 1):
            with pytest.raises(ValueError, match=f"n = {n}: Triton's linear layouts need a power of two"):
                operand.to_triton()
        else:
            bases = operand.to_triton()
            assert bases == interop.to_triton(operand.layout, n)
            assert bases["register"] == [list(operand.coords(0, 1 << bit)) for bit in range(operand.elements.bit_length() - 1)]


@pytest.mark.parametrize("ask", [interop.to_cute, interop.to_triton])
def test_columns_that_a_layout_lacks(ask: Any) -> None:
    accumulator = LAYOUTS["wgmma_m64nNk16_d_b32"]
    for n in (0, -8, 4, 12, 264):
        with pytest.raises(ValueError, match=f"n = {n}: wgmma_m64nNk16_d_b32 has a multiple of 8 columns, 256 at most"):
            ask(accumulator, n=n)
    with pytest.raises(ValueError, match="n = 8: wgmma_m64nNk16_a_b16 has 16 columns"):
        ask(LAYOUTS["wgmma_m64nNk16_a_b16"], n=8)
    with pytest.raises(ValueError, match="n = 16: mma_m16n8k16_cd_b32 has 8 columns"):
        ask(LAYOUTS["mma_m16n8k16_cd_b32"], n=16)
    with pytest.raises(ValueError, match="mma_sp_m16n8k32_metadata_b16 has no columns of N: leave n out"):
        ask(LAYOUTS["mma_sp_m16n8k32_metadata_b16"], n=8)
    with pytest.raises(TypeError, match="n must be one integer, not str"):
        ask(accumulator, n="8")
    with pytest.raises(ValueError, match="wgmma_m64nNk16_d_b32 serves every N: pass n, or ask the operand of an instruction"):
        ask(accumulator)


def test_operands_of_every_kind_know_their_columns(catalog: Catalog) -> None:
    """Metadata, scale factors and matrices of one size have the text of their layout; other operands have none."""
    operands = [operand for variant in catalog.all() for operand in variant.operands]
    by_layout = {operand.layout.name: operand for operand in operands if operand.layout is not None}
    assert set(by_layout) == set(LAYOUTS)
    for name, operand in by_layout.items():
        if name in PLACED and name not in RANGES:
            assert operand.to_cute() == interop.to_cute(LAYOUTS[name])
            assert operand.to_triton() == interop.to_triton(LAYOUTS[name])
    for operand in {operand.kind: operand for operand in operands if not operand.axes}.values():
        why = getattr(operand, "why", "") or f"operand '{operand.name}' has no layout"
        for ask in (operand.to_cute, operand.to_triton):
            with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
                ask()


def test_b_of_many_n() -> None:
    bits = {"i": (("col", 3),), "lane": (("row", 0), ("row", 1), ("col", 0), ("col", 1), ("col", 2))}
    bitmap = BitMap({"i": 1, "lane": 5}, {"row": 2, "col": 4}, bits)
    layout = Layout(
        name="toy",
        kind="fragment",
        family="toy",
        operands=("b",),
        shape="m16nNk4",
        axes={"row": 4, "col": 16},
        growing=("col",),
        summed="row",
        threads=32,
        entry=0,
        map=bitmap,
    )
    assert interop.to_cute(layout, n=16) == "((4,8),2):((16,1),8)"
    with pytest.raises(ValueError, match="toy serves every N: pass n"):
        interop.to_cute(layout)
    assert interop.to_cute(layout, n=8) == "((4,8),1):((8,1),0)"
    assert interop.to_triton(layout, n=8) == {"register": [], "lane": [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], "warp": []}
    with pytest.raises(ValueError, match="n = 12: toy has a multiple of 8 columns, 16 at most"):
        interop.to_cute(layout, n=12)


# Layouts of CUTLASS 4.2 (include/cute/atom/mma_traits_sm*.hpp), with its own names of the types: atom, our layout, N, its text.
CUTLASS = [
    ("SM80_16x8x16 A", "mma_m16n8k16_a_b16", None, "((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))"),
    ("SM80_16x8x16 B", "mma_m16n8k16_b_b16", None, "((_4,_8),(_2,_2)):((_16,_1),(_8,_64))"),
    ("SM80_16x8x16 C", "mma_m16n8k16_cd_b32", None, "((_4,_8),(_2,_2)):((_32,_1),(_16,_8))"),
    (
        "SM80_16x8x8 tf32 A",
        "mma_m16n8k8_a_b32",
        None,
        "Layout<Shape <Shape < _4,_8>,Shape <_2, _2>>, Stride<Stride<_16,_1>,Stride<_8,_64>>>",
    ),
    ("SM80_8x8x4 f64 A", "mma_m8n8k4_a_b64", None, "Layout<Shape<Shape<_4,_8>,_1>,Stride<Stride<_8,_1>,_0>>"),
    ("SM80_16x8x32 s8 A", "mma_m16n8k32_a_b8", None, "((4,8),(4,2,2)):((64,1),(16,8,256))"),
    ("SM80_16x8x256 b1 A", "mma_m16n8k256_a_b1", None, "((4,8),(32,2,2)):((512,1),(16,8,2048))"),
    ("SM90_16x8x16 f64 A", "mma_m16n8k16_a_b64", None, "((4,8),(2,4)):((16,1),(8,64))"),
    ("SM90 CLayout_64x8", "wgmma_m64nNk16_d_b32", 8, "((_4,_8,_4),(_2,_2,Int<1>)):((_128,_1,_16),(_64,_8,_512))"),
    ("SM90 CLayout_64x96", "wgmma_m64nNk16_d_b32", 96, "((_4,_8,_4),(_2,_2,Int<12>)):((_128,_1,_16),(_64,_8,_512))"),
    ("SM90 ALayout_64x8", "wgmma_m64nNk8_a_b32", None, "((4,8,4),(2,2)):((64,1,16),(8,256))"),
    ("SM90 ALayout_64x32", "wgmma_m64nNk32_a_b8", None, "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))"),
    ("SM120_16x8x64 fp4 B", "mma_m16n8k64_b_b4", None, "((4,8),(8,2)):((64,1),(8,256))"),
]


@pytest.mark.parametrize(("name", "n", "text"), [case[1:] for case in CUTLASS], ids=[case[0] for case in CUTLASS])
def test_cutlass_agrees(name: str, n: int | None, text: str) -> None:
    assert from_cute(text) == from_cute(interop.to_cute(LAYOUTS[name], n))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mma_m8n8k4_a_row_b16", "(8,4):(1,8)"),
        ("mma_m8n8k4_a_col_b16", "((4,2),4):((8,4),1)"),
        ("mma_m8n8k4_b_col_b16", "(8,4):(1,8)"),
        ("mma_m8n8k4_b_row_b16", "((4,2),4):((8,4),1)"),
        ("mma_m8n8k4_cd_b16", "(8,8):(1,8)"),
        ("mma_m8n8k4_cd_b32", "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))"),
    ],
)
def test_cutlass_agrees_on_quad_pairs(name: str, text: str) -> None:
    quad_pair, theirs, ours = from_cute("(4,2):(1,16)"), from_cute(text), from_cute(interop.to_cute(LAYOUTS[name]))
    for thread, value in itertools.product(range(8), range(theirs.size // 8)):
        for product in range(4):
            assert ours(quad_pair(thread) + 4 * product, value) == theirs(thread, value) + product * theirs.size


def test_cutlass_agrees_on_sparse_operands() -> None:
    # SM120_SPARSE_16x8x64: A and its metadata count the full matrix, of which every second element is stored.
    theirs = from_cute("((_4,_8),(_8,_2,_2)):((_128,_1),(_16,_8,_512))")
    ours = from_cute(interop.to_cute(LAYOUTS["mma_sp_m16n8k64_a_b8"]))
    metadata = from_cute("((_2,_2,_8),_32):((_8,_512,_1),_16)")
    chunks = from_cute(interop.to_cute(LAYOUTS["mma_sp_m16n8k64_metadata_b8"]))
    assert (theirs.size, metadata.size) == (2 * ours.size, 4 * chunks.size)
    for lane in range(32):
        for i in range(ours.size // 32):
            row, col = theirs(lane, 2 * i) % 16, theirs(lane, 2 * i) // 16
            assert ours(lane, i) == row + 16 * (col // 2)
        for field in range(chunks.size // 32):
            row, col = metadata(lane, 4 * field) % 16, metadata(lane, 4 * field) // 16
            assert chunks(lane, field) == row + 16 * (col // 4)


def test_triton_agrees() -> None:
    # The results of Triton 3.9's gluon.to_linear_layout for NVMMADistributedLayout and DotOperandLayout.
    quads = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]
    assert interop.to_triton(LAYOUTS["mma_m16n8k16_cd_b32"]) == {"register": [[0, 1], [8, 0]], "lane": quads, "warp": []}
    assert interop.to_triton(LAYOUTS["mma_m16n8k16_a_b16"]) == {"register": [[0, 1], [8, 0], [0, 8]], "lane": quads, "warp": []}
    assert interop.to_triton(LAYOUTS["mma_m16n8k32_b_b8"]) == {
        "register": [[1, 0], [2, 0], [16, 0]],
        "lane": [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]],
        "warp": [],
    }
    assert interop.to_triton(LAYOUTS["wgmma_m64nNk16_d_b32"], n=64) == {
        "register": [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]],
        "lane": quads,
        "warp": [[16, 0], [32, 0]],
    }


def test_triton_itself_agrees() -> None:
    ir = pytest.importorskip("triton._C.libtriton", reason="Triton is not installed").ir
    gluon_ir = pytest.importorskip("triton._C.libtriton").gluon_ir
    language = pytest.importorskip("triton.experimental.gluon.language")
    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)

    def check(name: str, layout: Any, shape: list[int], n: int | None = None) -> None:
        theirs = builder.to_linear_layout(layout._to_ir(builder), shape)
        assert interop.to_triton(LAYOUTS[name], n) == {"register": theirs.reg_bases, "lane": theirs.lane_bases, "warp": theirs.warp_bases}

    warp = language.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[1, 1], instr_shape=[16, 8])
    check("mma_m16n8k16_cd_b32", warp, [16, 8])
    for width, k in ((1, 8), (2, 16), (4, 32)):
        check(f"mma_m16n8k{k}_a_b{32 // width}", language.DotOperandLayout(0, warp, width), [16, k])
        check(f"mma_m16n8k{k}_b_b{32 // width}", language.DotOperandLayout(1, warp, width), [k, 8])
        group = language.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, k])
        check(f"wgmma_m64nNk{k}_a_b{32 // width}", language.DotOperandLayout(0, group, width), [64, k])
        for n in (8, 64, 256):
            group = language.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, n, k])
            check(f"wgmma_m64nNk{k}_d_b32", group, [64, n], n)


# --- CuTe's texts -----------------------------------------------------------------------------------------------------------

SHAPES: st.SearchStrategy[Any] = st.recursive(
    st.integers(1, 5), lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=5
)


def _same_nesting(shape: Any) -> st.SearchStrategy[Any]:
    return st.tuples(*map(_same_nesting, shape)) if isinstance(shape, tuple) else st.integers(0, 100)


SWIZZLES = st.builds(
    lambda bits, base, more, down: Swizzle(bits, base, -(bits + more) if down else bits + more),
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(0, 2),
    st.booleans(),
)
CUTE = SHAPES.flatmap(lambda shape: st.builds(CuteLayout, st.just(shape), _same_nesting(shape), st.none() | SWIZZLES, st.integers(0, 9)))


def _leaves(modes: Modes) -> list[int]:
    return [leaf for mode in modes for leaf in _leaves(mode)] if isinstance(modes, tuple) else [modes]


@given(CUTE)
def test_texts_round_trip(layout: CuteLayout) -> None:
    again = from_cute(str(layout))
    assert (again.shape, again.stride, again.swizzle, again.offset) == (layout.shape, layout.stride, layout.swizzle, layout.offset)
    assert again == layout
    assert hash(again) == hash(layout)


@given(CUTE)
def test_evaluation(layout: CuteLayout) -> None:
    """Coordinates of the leaves in CuTe's order, the first fastest."""
    sizes, strides = _leaves(layout.shape), _leaves(layout.stride)
    leaves = [place[::-1] for place in itertools.product(*(range(size) for size in reversed(sizes)))]
    linear = [layout.offset + sum(map(operator.mul, place, strides)) for place in leaves]
    expected = [layout.swizzle(index) if layout.swizzle else index for index in linear]
    assert layout.size == math.prod(sizes) == len(expected)
    if layout.rank != 1:
        assert [layout(index) for index in range(layout.size)] == expected
        np.testing.assert_array_equal(layout(np.arange(layout.size)), expected)
    flat = CuteLayout(tuple(sizes), tuple(strides), layout.swizzle, layout.offset)
    assert [flat(*place) for place in leaves] == expected


def _split(shape: Any, stride: Any) -> tuple[Any, Any]:
    """The same function with each even size in two."""
    if isinstance(shape, tuple):
        shapes, strides = zip(*map(_split, shape, stride), strict=True)
        return shapes, strides
    return ((2, shape // 2), (stride, 2 * stride)) if shape % 2 == 0 else (shape, stride)


@given(CUTE)
def test_equal_however_modes_are_split(layout: CuteLayout) -> None:
    one = CuteLayout((layout.shape,), (layout.stride,), layout.swizzle, layout.offset)
    other = CuteLayout(*_split(one.shape, one.stride), layout.swizzle, layout.offset)
    assert other == one
    assert hash(other) == hash(one)
    assert list(map(other, range(one.size))) == list(map(one, range(one.size)))


@given(CUTE, st.none() | SWIZZLES, st.data())
def test_equality_is_that_of_functions(layout: CuteLayout, swizzle: Swizzle | None, data: st.DataObject) -> None:
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    sizes = [math.prod(_leaves(mode)) for mode in shape]
    strides = [data.draw(st.sampled_from([0, 1, *_leaves(layout.stride)])) for _ in sizes]
    other = CuteLayout(tuple(sizes), tuple(strides), data.draw(st.sampled_from([layout.swizzle, swizzle])), layout.offset)
    places = itertools.product(*map(range, sizes))
    assert (layout == other) == all(layout(*place) == other(*place) for place in places)


def test_large_swizzled_layouts() -> None:
    """More places than are looked at together; the last one differs.  Too many, and only what needs no look has an answer."""
    one, other = from_cute("Sw<1,17,1> o 0 o (512,512):(1,512)"), from_cute("Sw<1,17,1> o 0 o ((256,2),512):((1,256),512)")
    assert one == other
    assert from_cute("Sw<2,17,2> o 0 o (512,512):(1,512)") == from_cute("(512,512):(1,512)")
    assert from_cute("Sw<1,17,1> o 1 o (512,512):(1,512)") != from_cute("Sw<2,30,2> o 1 o (512,512):(1,512)")
    huge = from_cute("Sw<3,4,3> o 0 o (65536,65536):(65536,1)")
    assert huge == from_cute("Sw<3,4,3> o 0 o (65536,(256,256)):(65536,(1,256))")
    with pytest.raises(ValueError, match="has 4294967296 places; swizzled layouts are compared place by place, up to 67108864 places"):
        _ = huge == from_cute("(65536,65536):(65536,1)")


def test_equal_and_not() -> None:
    assert from_cute("((4,2),3):((1,4),8)") == from_cute("(8,3):(1,8)")
    assert from_cute("(4,2):(1,4)") != from_cute("8:1")
    assert from_cute("(4,8):(8,1)") != from_cute("(8,4):(4,1)")
    assert from_cute("Sw<1,4,3> o 0 o (4,4):(1,4)") == from_cute("(4,4):(1,4)")  # sixteen places: none is moved
    assert from_cute("Sw<1,0,3> o 0 o (4,4):(1,4)") != from_cute("(4,4):(1,4)")
    assert from_cute("8:1") != "8:1"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" ( 4 , 8 ) : ( 8 , 1 ) ", "(4,8):(8,1)"),
        ("((4, 8), (2,)):((32, 1), (16,))", "((4,8),(2)):((32,1),(16))"),
        ("(Int<4>,C<8>,cute::C<2>,_3):(_1, 4, cute::Int<32>, _64)", "(4,8,2,3):(1,4,32,64)"),
        ("cute::Layout<cute::tuple<cute::C<8>, cute::C<2>>, cute::tuple<cute::C<1>, cute::C<8>>>", "(8,2):(1,8)"),
        ("Layout<_32,_1>", "32:1"),
        ("Sw<3,4,3> o _0 o (_8,_64):(_64,_1)", "Sw<3,4,3> o 0 o (8,64):(64,1)"),
        ("S<2,0,-2> o 7 o 8:1", "Sw<2,0,-2> o 7 o 8:1"),
        ("Sw<0,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)", "(8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o ((_128,_64),_1,_4):((_256,_1),_0,_64)", "Sw<3,3,3> o 0 o ((128,64),1,4):((256,1),0,64)"),
        ("Sw<3,4,3> o smem_ptr[4b](unset) o (_8,_256):(_256,_1)", "Sw<3,5,3> o 0 o (8,256):(256,1)"),
    ],
)
def test_spellings(text: str, canonical: str) -> None:
    assert str(from_cute(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'column 1: expected an integer of at most 18 digits or "(", not the end of the text'),
        ("(4,8)", 'column 6: expected ":" and the strides, not the end of the text'),
        ("(4,8):(1,4", 'column 11: expected "," or ")", not the end of the text'),
        ("(4,8):(1,4))", "column 12: expected the end of the text, not ')'"),
        ("(4,8):(1,4,32)", "the strides (1,4,32) do not fit the shape (4,8)"),
        ("(4,8): 1", "the strides 1 do not fit the shape (4,8)"),
        ("(4,-8):(1,4)", "column 4: expected an integer of at most 18 digits or \"(\", not '-8):(1,4)'"),
        ("(4,0):(1,4)", "(4,0):(1,4): sizes must be 1 or more, strides and offsets 0 or more"),
        ("(4,1234567890123456789):(1,4)", "column 4: expected an integer of at most 18 digits or \"(\", not '123456789012'"),
        ("():()", "column 2: expected an integer of at most 18 digits or \"(\", not '):()'"),
        ("(4,?):(1,4)", "column 4: expected an integer of at most 18 digits or \"(\", not '?):(1,4)'"),
        ("((8,m),(T,2k)):((1T,SBO),(1,LBO))", "column 5: expected an integer of at most 18 digits or \"(\", not 'm),(T,2k)):('"),
        ("Layout<Shape<_4,_8>>", "column 20: expected \",\" and the strides, not '>'"),
        ("Shape<_4,_8):(1,4)", 'column 12: expected "," or ">", not \'):(1,4)\''),
        ("Sw<3,4,3>", 'column 10: expected "o" after the swizzle, not the end of the text'),
        ("Sw<3,4,3> o ptr o 8:1", "column 13: expected an offset or smem_ptr[16b](unset), not 'ptr o 8:1'"),
        ("Sw<3,4,2> o 0 o 8:1", "Sw<3,4,2>: B and M must not be negative, and S must be B places or more"),
        ("Sw<3,4,3> o smem_ptr[6b](unset) o 8:1", "smem_ptr[6b]: Sw<3,4,3> does not keep elements of 6 bits whole"),
        ("Sw<3,0,3> o smem_ptr[0b](unset) o 8:1", "smem_ptr[0b]: Sw<3,0,3> does not keep elements of 0 bits whole"),
        ("Sw<3,0,3> o smem_ptr[16b](unset) o 8:1", "smem_ptr[16b]: Sw<3,0,3> does not keep elements of 16 bits whole"),
        ("(" * 10_000, "column 34: expected no more than 32 parentheses within each other, not '(((((((((((('"),
    ],
)
def test_bad_texts(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        from_cute(text)
    assert str(caught.value) == message


def _any(value: Any) -> Any:
    """What the type checker would not let pass."""
    return value


def test_bad_layouts_and_coordinates() -> None:
    with pytest.raises(TypeError, match="must be a string, not int"):
        from_cute(8)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the strides \(1\) do not fit the shape 8"):
        CuteLayout(8, (1,))
    with pytest.raises(ValueError, match="sizes must be 1 or more, strides and offsets 0 or more"):
        CuteLayout((4, 8), (1, -4))
    with pytest.raises(ValueError, match=f"its largest index, {(1 << 80) - 1}, has more than 63 bits"):
        CuteLayout((1 << 40, 1 << 40), (1, 1 << 40))
    with pytest.raises(ValueError, match=r"Sw<40,20,40>: it reaches beyond the 63 bits of an index"):
        Swizzle(40, 20, 40)
    wrong: list[tuple[Any, Any, str]] = [
        ([8, 4], (1, 8), "a size must be an integer or a tuple of them, not list"),
        ((8, 4.0), (1, 8), "a size must be an integer or a tuple of them, not float"),
        ((8, 4), (1, "8"), "a stride must be an integer or a tuple of them, not str"),
        ((8, 4), [1, 8], "a stride must be an integer or a tuple of them, not list"),
    ]
    for shape, stride, message in wrong:
        with pytest.raises(TypeError, match=message):
            CuteLayout(shape, stride)
    with pytest.raises(TypeError, match="offset must be one integer, not float"):
        CuteLayout(8, 1, offset=1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bits must be one integer, not NoneType"):
        Swizzle(None, 4, 3)  # type: ignore[arg-type]
    layout = CuteLayout(_any((np.int64(8), (True, 4))), _any((1, (np.uint8(0), 8))), Swizzle(*map(np.int32, (1, 3, 1))), np.int64(0))
    assert str(layout) == "Sw<1,3,1> o 0 o (8,(1,4)):(1,(0,8))"
    layout = from_cute("((4,8),2):((1,4),32)")
    assert layout((3, 7), 1) == layout(31, 1) == layout(63) == 63
    for coordinates, message in [
        ((64,), "coordinate = 64 is out of range: 0..63"),
        ((32, 0), "coordinate = 32 is out of range: 0..31"),
        (((4, 0), 0), "coordinate = 4 is out of range: 0..3"),
        ((0, -1), "coordinate = -1 is out of range: 0..1"),
        ((0, 0, 0), r"coordinates \(0, 0, 0\) do not fit the modes \(\(4,8\),2\): they take 2, or one number for all"),
        ((), r"coordinates \(\) do not fit"),
        ((0, (0, 0)), r"coordinates \(0, 0\) do not fit the mode 2: it takes one number"),
    ]:
        with pytest.raises(ValueError, match=message):
            layout(*coordinates)
    with pytest.raises(TypeError, match="coordinate must be an integer or an array of integers, not str"):
        layout("0", 0)


def test_swizzles_of_shared_memory(catalog: Catalog) -> None:
    memory = catalog.database.spec.shared_memory
    assert memory is not None
    addresses = range(4096)
    for mode in memory.swizzles:
        swizzle, rule = (
            from_cute(f"{mode.cute} o 0 o 1:0").swizzle or Swizzle(0, 4, 3),
            formula.parse(mode.formula or memory.swizzle_formula),
        )
        expected = [formula.evaluate(rule, {"address": address, "base_offset": 0, "span": mode.bytes}) for address in addresses]
        assert list(map(swizzle, addresses)) == expected
        elements = from_cute(f"{swizzle} o smem_ptr[16b](unset) o (2048):(1)")
        assert [2 * elements(i) for i in range(2048)] == expected[::2]
    for example in memory.examples:
        assert str(from_cute(example.cute)) == example.cute
