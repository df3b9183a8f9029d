"""Matrices in shared memory: images, addresses, descriptors and bank conflicts, against the spec's formulas and the manual."""

from __future__ import annotations

import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxmma
from ptxmma import paths, shared_memory
from ptxmma.arrays import elements
from ptxmma.catalog.descriptors.shared_formats import read_by, swizzle_encoding
from ptxmma.catalog.instructions import Missing, load
from ptxmma.generator import pipeline, shared_proof
from ptxmma.matrices.shared_memory import Descriptor, SharedLayout, bank_conflicts, base_offset, read_operand
from ptxmma.model import ElementType, SharedMemory, Spec, formula

_SPEC: Spec = load(paths.DATABASE).spec
assert _SPEC.shared_memory is not None
_MEMORY: SharedMemory = read_by(_SPEC, _SPEC.shared_memory, "wgmma")
_TYPES = {entry.name: entry for entry in _SPEC.types.elements}
_MODES = {mode.name: mode for mode in _MEMORY.swizzles}
#: Every type with every majorness that instructions read it with.
_READABLE = [(name, entry.majorness) for entry in _MEMORY.majorness for name in entry.elements]


def _random(element: ElementType, shape: tuple[int, ...], seed: int = 0) -> Any:
    """A matrix whose elements are any bits, NaNs included."""
    bits = np.random.default_rng(seed).integers(0, 1 << element.bits, shape, np.uint64)
    return elements.typed(bits.astype(elements.bits_dtype(element)), element)


def _same(one: Any, other: Any, element: ElementType) -> None:
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(elements.codes(np.ascontiguousarray(one), element), elements.codes(np.ascontiguousarray(other), element))


def _layout_formula(majorness: str, swizzle: str) -> Any:
    return formula.parse(next(e.element_offset for e in _MEMORY.layouts if e.majorness == majorness and swizzle in e.swizzles))


def _brute(layout: SharedLayout, x: int, k: int) -> int:
    """The address of one element by the formulas of the spec."""
    span = _MODES[layout.swizzle].bytes
    known: dict[str, Any] = {"x": x, "k": k, "bits": layout.element.bits, "lbo": layout.lbo, "sbo": layout.sbo, "span": span}
    address = layout.start + int(formula.evaluate(_layout_formula(layout.majorness, layout.swizzle), known))  # type: ignore[arg-type]
    known = {"address": address, "base_offset": layout.base_offset, "span": span}
    return int(formula.evaluate(formula.parse(_MEMORY.swizzle_formula), known))  # type: ignore[arg-type]


@st.composite
def _layouts(draw: st.DrawFn) -> SharedLayout:
    """Small layouts of every type, majorness, swizzle and start, some with padding."""
    name, majorness = draw(st.sampled_from(_READABLE))
    mode = draw(st.sampled_from(_MEMORY.swizzles))
    panels, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    inner, outer = panels * mode.bytes * 8 // _TYPES[name].bits, groups * 8
    x, k = (outer, inner) if majorness == "K" else (inner, outer)
    dense = SharedLayout(name, majorness, mode.name, x, k)
    strides: dict[str, Any] = {}
    if padding := draw(st.sampled_from([0, 16, 32, 128, 1024])):
        stride = draw(st.sampled_from(["lbo", "sbo"]))
        strides[stride] = getattr(dense, stride) + padding
    start = draw(st.integers(0, 20)) * mode.bytes
    shift = draw(st.sampled_from([0, base_offset(mode.name, start), 3]))
    return SharedLayout(name, majorness, mode.name, x, k, start=start, base_offset=shift, **strides)


# --- the formula language over arrays ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 200), min_size=1, max_size=9), st.integers(0, 200), st.integers(1, 9))
def test_formulas_over_arrays_are_pointwise(a: list[int], b: int, c: int) -> None:
    """Comparisons count as 0 and 1, in sums as well; arrays broadcast."""
    tree = formula.parse("(a + b) // c % 7 << 1 ^ (a < b) + (a != 3) + (1 < a <= c) - (not a) | (a and b or c)")
    column = np.array(a)[:, np.newaxis]
    values = formula.evaluate(tree, {"a": column, "b": np.array([b, b + 1]), "c": c})
    assert values.tolist() == [[formula.evaluate(tree, {"a": x, "b": y, "c": c}) for y in (b, b + 1)] for x in a]  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["1 // a", "a % (a - 1)", "1 << (a + 63)", "1 >> (a - 2)"])
def test_formulas_over_arrays_check_their_domain(text: str) -> None:
    with pytest.raises(formula.FormulaError, match=r"division by zero|shift outside"):
        formula.evaluate(formula.parse(text), {"a": np.array([[0, 1], [2, 3]])})


# --- images -----------------------------------------------------------------------------------------------------------------


@given(_layouts(), st.data())
def test_addresses_are_those_of_the_formulas(layout: SharedLayout, data: st.DataObject) -> None:
    x, k = data.draw(st.integers(0, layout.x - 1)), data.draw(st.integers(0, layout.k - 1))
    assert layout.address(x, k) == _brute(layout, x, k)
    assert layout.address(np.array([x, 0], np.uint8), np.array([k, 0], np.uint16)).tolist() == [_brute(layout, x, k), _brute(layout, 0, 0)]


@given(_layouts())
def test_no_two_elements_share_a_place(layout: SharedLayout) -> None:
    addresses = layout.address(np.arange(layout.x)[:, np.newaxis], np.arange(layout.k))
    _, counts = np.unique(addresses, return_counts=True)
    assert set(counts) == {max(1, 8 // layout.element.bits)}
    assert addresses.min() >= layout.start
    assert addresses.max() < layout.start + layout.size


@given(_layouts(), st.integers(0, 99))
def test_images_hold_every_element_at_its_address(layout: SharedLayout, seed: int) -> None:
    element = layout.element
    matrix = _random(element, (2, layout.x, layout.k), seed)
    image = layout.store_xk(matrix)
    assert image.shape == (2, layout.size)
    assert image.dtype == np.uint8
    _same(layout.load_xk(image), matrix, element)

    codes = elements.codes(matrix, element)
    addresses = layout.address(np.arange(layout.x)[:, np.newaxis], np.arange(layout.k)) - layout.start
    expected = np.zeros_like(image)
    if element.bits < 8:
        along = np.arange(layout.k) if layout.majorness == "K" else np.arange(layout.x)[:, np.newaxis]
        for batch in range(2):
            shifted = codes[batch] << (along * element.bits % 8).astype(np.uint8)
            np.bitwise_or.at(expected[batch], addresses, shifted)
    else:
        for byte in range(element.bits // 8):
            expected[:, addresses + byte] = codes >> 8 * byte & 0xFF
    np.testing.assert_array_equal(image, expected)


@given(_layouts(), st.integers(1, 40), st.integers(1, 200))
@settings(max_examples=50)
def test_whole_matrices_go_to_an_image_for_each_tile(layout: SharedLayout, rows: int, depth: int) -> None:
    matrix = _random(layout.element, (2, rows, depth), rows)
    images = layout.store_tiles_xk(matrix, pad=True)
    down, across = -(-rows // layout.x), -(-depth // layout.k)
    assert images.shape == (2, down, across, layout.size)
    full = np.zeros((2, down * layout.x, across * layout.k), matrix.dtype)
    full[:, :rows, :depth] = matrix
    for row, column in itertools.product(range(down), range(across)):
        tile = full[:, row * layout.x :, column * layout.k :][:, : layout.x, : layout.k]
        np.testing.assert_array_equal(images[:, row, column], layout.store_xk(tile))
    np.testing.assert_array_equal(layout.store_tiles_xk(full), images)
    _same(layout.load_tiles_xk(images), full, layout.element)
    _same(layout.load_tiles_xk(images, (rows, depth)), matrix, layout.element)
    _same(layout.load_tiles_xk(images, matrix.shape), matrix, layout.element)


def test_whole_matrices_that_do_not_fit() -> None:
    layout = SharedLayout("f16", "K", "128B", 16, 64)
    with pytest.raises(
        ValueError, match=r"shape \(32, 96\): the last two sizes must be multiples of 16 and 64, not 32 and 96; pad=True pads to 32 and 128"
    ):
        layout.store_tiles_xk(np.zeros((32, 96), np.float16))
    with pytest.raises(ValueError, match=r"it takes \(\.\.\., X, K\)"):
        layout.store_tiles_xk(np.zeros((64,), np.float16), pad=True)
    for shape in ((0, 64), (16, 0), (0, 16, 64)):
        with pytest.raises(ValueError, match=re.escape(f"the matrix: an array of shape {shape} has no elements")):
            layout.store_tiles_xk(np.zeros(shape, np.float16), pad=True)
    with pytest.raises(ValueError, match=r"store_tiles_xk takes larger matrices"):
        layout.store_xk(np.zeros((32, 64), np.float16))
    images = layout.store_tiles_xk(np.zeros((20, 100), np.float16), pad=True)
    unfitting: list[Any] = [(16, 100), (20, 129), (33, 100), (2, 20, 100), (20,), (-20, 100), (), 64, (20.0, 100.0), (1.5, "a"), "ab"]
    for cropped in unfitting:
        with pytest.raises(ValueError, match=r"does not fit images that hold a matrix of shape \(32, 128\), .* 17\.\.32 x 65\.\.128"):
            layout.load_tiles_xk(images, cropped)
    for wrong in (images[..., :-16].copy(), images[0], images[0, 0]):
        with pytest.raises(ValueError, match=r"this layout takes \(\.\.\., X/x, K/k, 2048\)"):
            layout.load_tiles_xk(wrong)


def test_bytes_are_memory_too() -> None:
    layout = SharedLayout("f16", "K", "128B", 16, 64)
    matrix = _random(layout.element, (16, 64))
    image = layout.store_xk(matrix).tobytes()
    for memory in (image, bytearray(image), memoryview(image), memoryview(bytearray(image))):
        _same(layout.load_xk(memory), matrix, layout.element)
        _same(read_operand(layout.descriptor(), memory, "f16", 16, 64, "K"), matrix, layout.element)


def test_matrices_may_have_any_strides_and_raw_bits() -> None:
    layout = SharedLayout("bf16", "MN", "64B", 64, 16)
    matrix = _random(layout.element, (16, 128)).T[::2]
    image = layout.store_xk(matrix)
    np.testing.assert_array_equal(image, layout.store_xk(np.ascontiguousarray(matrix)))
    np.testing.assert_array_equal(image, layout.store_xk(matrix.view(np.uint16)))


def test_tensors_become_tensors() -> None:
    torch = pytest.importorskip("torch")
    layout = SharedLayout("bf16", "MN", "128B", 64, 16)
    matrix = torch.arange(64 * 16).reshape(64, 16).to(torch.bfloat16)
    image = layout.store_xk(matrix)
    assert image.dtype == torch.uint8
    np.testing.assert_array_equal(image.numpy(), layout.store_xk(elements.as_array(matrix)))
    back = layout.load_xk(image)
    assert back.dtype == torch.bfloat16
    assert torch.equal(back, matrix)


def test_a_spec_without_shared_memory_says_so(root: Path) -> None:
    toy = pipeline.read(root / "tests" / "toy").database
    with pytest.raises(ValueError, match="says nothing about shared memory"):
        SharedLayout("f16", "K", "128B", 64, 64, database=toy)


def test_dense_images_are_what_tma_boxes_write() -> None:
    """Each box: ``outer`` lines of ``inner`` elements, one after the other, swizzled by absolute addresses."""
    for (name, majorness), mode in itertools.product(_READABLE, _MEMORY.swizzles):
        element = _TYPES[name]
        inner = 2 * mode.bytes * 8 // element.bits
        layout = SharedLayout(name, majorness, mode.name, *((24, inner) if majorness == "K" else (inner, 24)), start=1024)
        box = layout.tma
        assert box == (mode.tma, mode.bytes * 8 // max(element.bits, 8), 24, 2, layout.size)
        lines = np.arange(box.boxes * box.outer)
        offsets = (lines[:, np.newaxis] * mode.bytes + np.arange(0, mode.bytes, 16)).reshape(box.boxes, box.outer, -1)
        units = offsets ^ (offsets // 128 % (mode.bytes // 16) * 16)  # the start is a multiple of every pattern
        step = 128 // element.bits
        line, position = np.arange(24)[:, np.newaxis], np.arange(0, inner, step)
        addresses = layout.address(*((line, position) if majorness == "K" else (position, line)))
        np.testing.assert_array_equal(addresses - 1024, np.concatenate(list(units), axis=1))


@given(_layouts(), st.sampled_from([1, 2, 5, 31, 32, 33, 61, 64, 66]))
def test_boxes_are_what_tensor_maps_take(small: SharedLayout, groups: int) -> None:
    """No side above 256, starts at multiples of 128 bytes, and box after box each line of the image once."""
    inner = small.k if small.majorness == "K" else small.x
    extents = (8 * groups, inner) if small.majorness == "K" else (inner, 8 * groups)
    layout = SharedLayout(small.element, small.majorness, small.swizzle, *extents)
    box = layout.tma
    assert max(box.inner, box.outer) <= 256
    assert box.inner * max(layout.element.bits, 8) == _MODES[small.swizzle].bytes * 8
    assert box.outer % 8 == 0 == 8 * groups % box.outer
    assert box.boxes * box.outer * _MODES[small.swizzle].bytes == layout.size
    larger = [size for size in range(box.outer + 8, 257, 8) if 8 * groups % size == 0]
    assert not larger, "the largest box is taken"


def test_boxes_of_high_matrices_and_narrow_types() -> None:
    assert SharedLayout("f16", "K", "128B", 512, 64).tma == ("CU_TENSOR_MAP_SWIZZLE_128B", 64, 256, 2, 2 * 64 * 256 * 2)
    assert SharedLayout("f16", "MN", "64B", 64, 264).tma == ("CU_TENSOR_MAP_SWIZZLE_64B", 32, 88, 2 * 3, 64 * 264 * 2)
    assert SharedLayout("b1", "K", "128B", 64, 2048).tma == ("CU_TENSOR_MAP_SWIZZLE_128B", 128, 64, 2, 64 * 2048 // 8)  # bytes


def test_padding_between_groups_makes_smaller_boxes() -> None:
    padded = SharedLayout("f16", "K", "128B", 24, 128, sbo=2048)
    assert padded.tma == ("CU_TENSOR_MAP_SWIZZLE_128B", 64, 8, 6, 24 * 128 * 2)
    assert padded.lbo == 3 * 2048
    with pytest.raises(ValueError, match="TMA writes boxes to multiples of 128 bytes; one of this image would start at 1040"):
        _ = SharedLayout("f16", "K", "128B", 24, 64, sbo=1040).tma
    with pytest.raises(ValueError, match="TMA writes boxes to multiples of 128 bytes; one of this image would start at 48"):
        _ = SharedLayout("f16", "K", "none", 24, 64, start=48).tma
    with pytest.raises(ValueError, match="TMA swizzles by absolute addresses: with base_offset = 1"):
        _ = SharedLayout("f16", "K", "128B", 8, 64, start=128, base_offset=1).tma


def test_the_worked_examples_of_the_manual() -> None:
    """Figures 166 to 170: the exact layouts, with the strides that the figures give, and their encodings."""
    assert len(_MEMORY.examples) == 5
    for example in _MEMORY.examples:
        element = _TYPES[example.type]
        sizes, strides = (
            [list(map(int, mode.split(","))) for mode in re.findall(r"\(([\d,]+)\)", half)] for half in example.cute.split(":")
        )
        along_x, along_k = (
            [sum(a * b for a, b in zip(digits[::-1], stride, strict=True)) for digits in itertools.product(*map(range, size[::-1]))]
            for size, stride in zip(sizes, strides, strict=True)
        )
        if not example.lbo:  # the figure gives several elements one address beyond the span (erratum "figure-167")
            along_k = along_k[: _MODES[example.swizzle].bytes * 8 // element.bits]
        given: dict[str, Any] = {"sbo": example.sbo * element.bits // 8} | ({"lbo": example.lbo * element.bits // 8} if example.lbo else {})
        layout = SharedLayout(element, example.majorness, example.swizzle, len(along_x), len(along_k), **given)
        mode = _MODES[example.swizzle]
        linear = (np.array(along_x)[:, np.newaxis] + np.array(along_k)) * element.bits // 8
        expected = linear ^ (linear // 128 % (mode.bytes // 16) * 16)
        np.testing.assert_array_equal(layout.address(np.arange(layout.x)[:, np.newaxis], np.arange(layout.k)), expected, example.name)
        descriptor = layout.descriptor().encode()
        assert descriptor >> 32 & 0x3FFF == example.sbo_encoding
        assert not example.lbo or descriptor >> 16 & 0x3FFF == example.lbo_encoding


# --- the layout as digits ---------------------------------------------------------------------------------------------------


def _of_tcgen05() -> list[SharedLayout]:
    """Images that the formulas of wgmma do not reach: atoms of 32 bytes, padding, two elements in a byte."""
    return [
        SharedLayout("tf32", "MN", "128B_ATOM_32B", 64, 16, start=2048, family="tcgen05"),
        SharedLayout("e2m3", "K", "128B", 16, 256, padded=True, family="tcgen05"),
        SharedLayout("e2m1", "MN", "64B", 128, 16, padded=True, family="tcgen05"),
        SharedLayout("e2m1", "K", "32B", 8, 192, start=64, family="tcgen05"),
    ]


@given(st.one_of(_layouts(), st.sampled_from(_of_tcgen05())))
@settings(max_examples=60)
def test_every_bit_of_an_image_leads_back_to_its_element(layout: SharedLayout) -> None:
    """Each bit belongs to the element that address() and bit() place there, and to no other; the rest is padding."""
    x, k = np.meshgrid(np.arange(layout.x), np.arange(layout.k), indexing="ij")
    first = (layout.address(x, k) - layout.start) * 8 + layout.bit(x, k)
    owner = np.full(layout.size * 8, -1)
    for bit in range(layout.element.bits):
        owner[first + bit] = np.arange(layout.x * layout.k).reshape(first.shape)
    drawn = np.random.default_rng(layout.size).integers(0, layout.size * 8, 200)
    for place in map(int, drawn):
        found = layout.coords(layout.start + place // 8, place % 8)
        assert (-1 if found is None else found[0] * layout.k + found[1]) == owner[place], place
    assert layout.coords(layout.start - 1) is layout.coords(layout.start + layout.size) is None


@given(st.one_of(_layouts(), st.sampled_from(_of_tcgen05())))
@settings(max_examples=60)
def test_cute_places_every_element_alike(layout: SharedLayout) -> None:
    """An image that follows absolute addresses is a swizzled layout of CuTe, in elements, of padded ones in bytes."""
    if layout.base_offset:
        with pytest.raises(ValueError, match="subtracts base_offset"):
            layout.to_cute()
        return
    x, k = np.arange(layout.x)[:, np.newaxis], np.arange(layout.k)
    index, unit = layout.to_cute()(x, k), _MEMORY.alignment if layout.padded else 1  # padded elements are narrower than bytes
    np.testing.assert_array_equal(index * layout.width // 8 // unit, layout.address(x, k) // unit)


def test_layouts_are_printed_as_cute_prints_them() -> None:
    layout = SharedLayout("f16", "K", "128B", 64, 128)
    assert str(layout.digits) == "x:(8,8):(128,1024) k:(128,2):(1,8192)"
    assert str(layout.to_cute()) == "Sw<3,3,3> o 0 o ((8,8),(64,2)):((64,512),(1,4096))"
    assert str(SharedLayout("tf32", "K", "none", 8, 8).to_cute()) == "(8,(4,2)):(4,(1,32))"


def test_panels_between_groups_are_an_image_without_digits() -> None:
    layout = SharedLayout("bf16", "K", "64B", 16, 96, lbo=1024, sbo=1536)
    layout.store_xk(np.zeros((16, 96), np.uint16))
    for question in (lambda: layout.coords(0), layout.to_cute):
        with pytest.raises(ValueError, match="lbo = 1024, sbo = 1536: panels lie between groups"):
            question()


class _Nowhere:
    """Positions that name their parts."""

    def at(self, *parts: object) -> tuple[object, ...]:
        return parts


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ("(x // 8) * sbo + (x % 8) * span + k % span + (k // span) * sbo", "of which lbo moves one and sbo another"),
        ("(x // 8) * sbo + (x % 8) * 16 + k % span + (k // span) * lbo", "share one: x moves byte by 16, and the digits below it fill 32"),
        ("(x // 8) * sbo + (x % 8) * span + k % span // 2 + (k // span) * lbo", "a digit of k begins at 2"),
        ("(x // 4) * sbo + (x % 4) * span + k % span + (k // span) * lbo", "a group has 4 lines, and an atom of swizzle 32B 8"),
        ("x ^ k", "'x ^ k' is not a digit of one axis"),
    ],
)
def test_the_proof_refuses_a_canonical_layout_that_is_none(offset: str, message: str) -> None:
    assert _SPEC.shared_memory is not None
    first, second, *others = _SPEC.shared_memory.layouts
    memory = msgspec.structs.replace(_SPEC.shared_memory, layouts=(first, msgspec.structs.replace(second, offset=offset), *others))
    (problem,) = shared_proof.problems(msgspec.structs.replace(_SPEC, shared_memory=memory), _Nowhere())  # type: ignore[arg-type]
    assert tuple(problem.position) == ("shared_memory", "layouts", 1, "offset")
    assert message in problem.message


@pytest.mark.parametrize(
    ("swizzle", "message"),
    [
        ("address ^ (address % 32 // 8 << 4)", "does not lead back when it is applied twice"),
        ("address ^ (((address >> 7) % (span // 16)) << 3)", "or splits 16 that lie together"),
        ("address ^ (((address >> 8) % (span // 16)) << 4)", "does not repeat after 256 bytes"),
        ("address ^ row", "unknown name 'row'"),
    ],
)
def test_the_proof_refuses_a_swizzle_that_is_none(swizzle: str, message: str) -> None:
    assert _SPEC.shared_memory is not None
    memory = msgspec.structs.replace(_SPEC.shared_memory, swizzle_formula=swizzle)
    messages = [each.message for each in shared_proof.problems(msgspec.structs.replace(_SPEC, shared_memory=memory), _Nowhere())]  # type: ignore[arg-type]
    assert any(message in each for each in messages), messages


# --- descriptors ------------------------------------------------------------------------------------------------------------


@given(_layouts(), st.data())
def test_descriptors_of_sub_tiles_read_the_sub_tile(layout: SharedLayout, data: st.DataObject) -> None:
    """A sub-tile with a descriptor is read through its 64 bits as it was stored; the whole matrix and whole panels have one."""
    matrix = _random(layout.element, (layout.x, layout.k), 7)
    image = layout.store_xk(matrix)
    step = 128 // layout.element.bits
    steps = (8, step) if layout.majorness == "K" else (step, 8)
    x, k = data.draw(st.integers(0, layout.x // steps[0] - 1)) * steps[0], data.draw(st.integers(0, layout.k // steps[1] - 1)) * steps[1]
    rows, depth = data.draw(st.integers(1, layout.x - x)), data.draw(st.integers(1, layout.k - k))
    inner, extent = (k, depth) if layout.majorness == "K" else (x, rows)
    if (
        inner % layout.panel and inner % layout.panel + extent > layout.panel
    ):  # it leaves a panel into which it does not lead from its start
        with pytest.raises(ValueError, match="has no descriptor"):
            layout.descriptor(x, k, rows, depth)
        x, k, rows, depth = 0, 0, layout.x, layout.k
    descriptor = layout.descriptor(x, k, rows, depth)
    tile = read_operand(descriptor.encode(), image, layout.element, rows, depth, layout.majorness, layout.start)
    _same(tile, matrix[x : x + rows, k : k + depth], layout.element)


def test_every_step_of_every_instruction_shape_is_read_back() -> None:
    """32 bytes of depth for K-major, 16 columns for MN-major; the rows start at any group."""
    for (name, majorness), mode in itertools.product(_READABLE, _MEMORY.swizzles):
        element = _TYPES[name]
        depth = 256 // element.bits if majorness == "K" else 16
        panel = mode.bytes * 8 // element.bits
        layout = SharedLayout(name, majorness, mode.name, *((72, max(panel * 2, depth * 2)) if majorness == "K" else (128, 48)))
        matrix = _random(element, (layout.x, layout.k))
        image = layout.store_xk(matrix)
        x = 8 if majorness == "K" else 64 if mode.bytes <= 128 else 0
        for step, descriptor in enumerate(layout.steps(depth, x=x, x_extent=64)):
            tile = read_operand(descriptor, image, name, 64, depth, majorness)
            _same(tile, matrix[x : x + 64, step * depth :][:, :depth], element)


def test_steps_inside_an_atom_and_from_panel_to_panel() -> None:
    layout = SharedLayout("f16", "K", "128B", 64, 128, start=2048)
    assert [step.start_address for step in layout.steps(16)] == [2048 + at for at in (0, 32, 64, 96, 8192, 8224, 8256, 8288)]
    first, second = layout.steps(16)[:2]
    assert second.encode() - first.encode() == 32 >> 4


def test_a_start_in_the_middle_of_a_group_is_read_back() -> None:
    """Rows are equally far apart in a dense image, so that a sub-tile may start at any of them."""
    layout = SharedLayout("f16", "K", "128B", 32, 64)
    matrix = _random(layout.element, (32, 64))
    tile = read_operand(layout.descriptor(3, 16, 16, 16), layout.store_xk(matrix), "f16", 16, 16, "K")
    _same(tile, matrix[3:19, 16:32], layout.element)
    with pytest.raises(ValueError, match=r"16 x 16 at \(3, 16\) has no descriptor: counted from its start, its element \(5, 0\)"):
        SharedLayout("f16", "K", "128B", 32, 64, sbo=2048).descriptor(3, 16, 16, 16)


@given(
    st.integers(0, 0x3FFF),
    st.integers(0, 0x3FFF),
    st.integers(0, 0x3FFF),
    st.integers(0, 7),
    st.sampled_from(sorted(_MODES)),
    st.integers(0, 3),
)
def test_descriptors_survive_encoding(start: int, lbo: int, sbo: int, shift: int, swizzle: str, reserved: int) -> None:
    descriptor = Descriptor(
        start_address=start * 16, leading_byte_offset=lbo * 16, stride_byte_offset=sbo * 16, base_offset=shift, swizzle=swizzle
    )
    encoded = descriptor.encode()
    assert encoded == start | lbo << 16 | sbo << 32 | shift << 49 | swizzle_encoding(_SPEC, "wgmma")[swizzle] << 62
    assert Descriptor.decode(np.uint64(encoded | reserved << 14)) == descriptor


def test_base_offsets() -> None:
    assert [base_offset("128B", 128 * row) for row in (0, 1, 7, 8, 9)] == [0, 1, 7, 0, 1]
    assert [base_offset("64B", 128 * row) for row in (0, 1, 4, 5)] == [0, 1, 0, 5]
    assert base_offset("none", 208) == 0


def test_a_pattern_that_starts_with_the_image_moves_with_it() -> None:
    matrix = _random(_TYPES["f16"], (32, 64))
    plain = SharedLayout("f16", "K", "128B", 32, 64).store_xk(matrix)
    moved = SharedLayout("f16", "K", "128B", 32, 64, start=128 * 3, base_offset=base_offset("128B", 128 * 3))
    np.testing.assert_array_equal(moved.store_xk(matrix), plain)
    _same(read_operand(moved.descriptor(), plain, "f16", 32, 64, "K", 384), matrix, _TYPES["f16"])
    tma = SharedLayout("f16", "K", "128B", 32, 64, start=128 * 3).store_xk(matrix)
    assert not np.array_equal(tma, plain)


def test_operands_are_read_at_any_place_of_a_larger_memory() -> None:
    a, b = SharedLayout("e4m3", "K", "128B", 64, 128, start=1024), SharedLayout("e5m2", "K", "64B", 16, 64, start=1024 + 64 * 128)
    memory = np.full(a.size + b.size + 20, 0xFF, np.uint8)
    matrices = _random(a.element, (64, 128)), _random(b.element, (16, 64))
    for layout, matrix in zip((a, b), matrices, strict=True):
        memory[layout.start - 1024 :][: layout.size] = layout.store_xk(matrix)
    for layout, matrix in zip((a, b), matrices, strict=True):
        _same(read_operand(layout.descriptor(), memory, layout.element, layout.x, layout.k, "K", 1024), matrix, layout.element)


# --- bad input --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"element": "u8", "majorness": "MN"}, "wgmma cannot read u8 MN-major; it reads f16, bf16; tcgen05 can read u8"),
        ({"element": "f64"}, "wgmma and wgmma.sp have no f64; they read K-major: f16, bf16"),
        ({"element": "e2m1", "majorness": "MN"}, "wgmma and wgmma.sp have no e2m1; they read MN-major: f16, bf16$"),
        ({"element": "float15"}, "unknown element type 'float15'; known for K-major, named as in PTX: .*f16, bf16, "),
        ({"element": "f17", "majorness": "MN"}, "unknown element type 'f17'; known for MN-major, named as in PTX: f16, bf16"),
        ({"element": np.float16}, "unknown element type <class 'numpy.float16'>; known"),
        ({"element": np.dtype(np.bool_)}, r"unknown element type dtype\('bool'\); known"),
        ({"majorness": "N"}, "unknown majorness 'N'; known for swizzle '128B': K, MN"),
        ({"majorness": "k"}, "unknown majorness 'k'; known for swizzle '128B': K, MN"),
        ({"majorness": None}, "unknown majorness None; known for swizzle '128B': K, MN"),
        ({"swizzle": "256B"}, "unknown swizzle '256B'; known: none, 32B, 64B, 128B"),
        ({"x": 1 << 40}, r"image of 1099511627776 x 128 would reach from 0 to 281474976710656; .* below 262144: take smaller tiles"),
        ({"k": 1 << 40}, "would reach from 0 to 35184372088832; descriptors reach the addresses below 262144"),
        ({"start": 1 << 18}, "would reach from 262144 to 266240; descriptors reach the addresses below 262144"),
        ({"start": (1 << 18) - 2048}, "would reach from 260096 to 264192; descriptors reach the addresses below 262144"),
        (
            {"x": 12},
            r"x = 12 must be a multiple of 8, the lines of an atom; store_tiles_xk\(pad=True\) pads matrices of other sizes",
        ),
        ({"k": 100}, r"k = 100 must be a multiple of 64: .* 128 bytes; store_tiles_xk\(pad=True\) pads matrices of other sizes"),
        (
            {"k": 96},
            r"k = 96 must be a multiple of 64: swizzle 128B has panels of 128 bytes; swizzles that take 96: none, 32B, 64B",
        ),
        ({"x": 0}, "x = 0: an extent is at least 1"),
        ({"k": -64}, "k = -64: an extent is at least 1"),
        ({"start": 64}, "start = 64 must be a multiple of 128 bytes"),
        ({"start": -128}, "start = -128 must be a multiple of 128 bytes, 0 or more"),
        ({"lbo": 2056}, "leading_byte_offset = 2056 has no encoding in a descriptor; allowed: multiples of 16 from 0 to 262128"),
        ({"sbo": 1 << 18}, "stride_byte_offset = 262144 has no encoding"),
        ({"lbo": 1024}, r"lbo = 1024, sbo = 1024: elements \(.*\) and \(.*\) would lie at one address"),
        ({"sbo": 0}, r"sbo = 0: elements .* would lie at one address; without lbo and sbo the layout is dense"),
        ({"base_offset": 8}, r"base_offset = 8 has no encoding in a descriptor; allowed: 0\.\.7"),
    ],
)
def test_layouts_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"element": "f16", "majorness": "K", "swizzle": "128B", "x": 16, "k": 128}
    with pytest.raises(ValueError, match=message):
        SharedLayout(**usual | arguments)


@pytest.mark.parametrize("element", ["e2m1", "e2m3", "e3m2"])
@pytest.mark.parametrize(("kind", "more"), [("f8f6f4", {"dtype": "f32"}), ("mxf8f6f4.block_scale", {})])
@pytest.mark.parametrize("majorness", ["K", "MN"])
def test_narrow_types_that_tcgen05_pads_lie_as_bytes_do(element: str, kind: str, more: dict[str, Any], majorness: str) -> None:
    """A padded operand has the size, strides and descriptors of one of 8 bits, and each 16 bytes of it hold 16 elements."""
    instruction = ptxmma.instruction(f"tcgen05.mma.cta_group::1.kind::{kind}", m=128, n=8, atype=element, btype="e4m3", **more)
    image = shared_memory.of(instruction, "a", "128B", majorness, k=256)
    wide = SharedLayout("e4m3", majorness, "128B", 128, 256, family="tcgen05")
    assert image.padded
    assert not shared_memory.of(instruction, "b", "128B", k=256).padded
    assert (image.size, image.lbo, image.sbo, image.tma[:4]) == (wide.size, wide.lbo, wide.sbo, wide.tma[:4])
    assert image.tma.transaction_bytes == 128 * 256 * image.element.bits // 8, "padding does not count"
    assert image.steps(32) == wide.steps(32)
    bits = image.element.bits
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (128, 256), np.uint8)
    stored = image.store(codes)
    assert np.array_equal(np.asarray(image.load(stored)).view(np.uint8), codes)
    lines, along = (codes, (0, 1)) if majorness == "K" else (codes.T, (1, 0))
    for line, first in ((0, 0), (5, 48), (127, 112)):
        x, k = (line, first) if majorness == "K" else (first, line)
        start = int(image.address(x, k))
        assert start == wide.address(x, k)
        unit = int.from_bytes(stored[start : start + 16].tobytes(), "little")
        assert [unit >> bits * number & (1 << bits) - 1 for number in range(16)] == lines[line, first : first + 16].tolist()
        assert unit >> 16 * bits == 0, "the rest is padding"
        assert image.address(x + 5 * along[0], k + 5 * along[1]) == start + 5 * bits // 8


def test_padding_is_for_types_that_have_it() -> None:
    with pytest.raises(ValueError, match="tcgen05 reads no e4m3 with padding; K-major: e3m2, e2m3, e2m1"):
        SharedLayout("e4m3", "K", "128B", 64, 128, padded=True, family="tcgen05")
    with pytest.raises(ValueError, match="tcgen05 reads no e4m3 with padding; MN-major: e3m2, e2m3, e2m1"):
        SharedLayout("e4m3", "MN", "128B", 128, 64, padded=True, family="tcgen05")
    with pytest.raises(ValueError, match="tcgen05 reads no e2m3 with padding; MN-major: nothing"):
        SharedLayout("e2m3", "MN", "128B_ATOM_32B", 128, 64, padded=True, family="tcgen05")
    with pytest.raises(ValueError, match="wgmma reads no e2m1 with padding"):
        SharedLayout("e2m1", "K", "128B", 64, 128, padded=True)
    with pytest.raises(ValueError, match="TMA writes padded elements in boxes of 128; swizzle 64B has panels of 64"):
        _ = SharedLayout("e2m3", "K", "64B", 64, 128, padded=True, family="tcgen05").tma


def test_packed_e2m1_is_for_kinds_without_padding() -> None:
    instruction = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::mxf4.block_scale", m=128, n=8)
    assert shared_memory.of(instruction, "a", "128B", k=256).size == 128 * 256 // 2
    with pytest.raises(ValueError, match=r"tcgen05 reads e3m2 with padding; say so, with padded=True, or take one of f16, bf16"):
        SharedLayout("e3m2", "K", "128B", 64, 128, family="tcgen05")
    with pytest.raises(ValueError, match="the instructions of tcgen05 have no f64; they read K-major: f16, bf16"):
        SharedLayout("f64", "K", "128B", 64, 128, family="tcgen05")


def test_matrices_and_images_that_do_not_fit() -> None:
    layout = SharedLayout("f16", "K", "128B", 16, 64)
    with pytest.raises(ValueError, match=r"shape \(64, 16\); this layout takes \(\.\.\., 16, 64\)"):
        layout.store_xk(np.zeros((64, 16), np.float16))
    with pytest.raises(ValueError, match=r"dtype float32; f16 takes float16, or uint16 for raw bits"):
        layout.store_xk(np.zeros((16, 64), np.float32))
    with pytest.raises(ValueError, match="must be a NumPy array"):
        layout.store_xk([[0.0] * 64] * 16)
    with pytest.raises(ValueError, match=r"shape \(2047,\): this layout takes \(\.\.\., 2048\)"):
        layout.load_xk(np.zeros(2047, np.uint8))
    with pytest.raises(ValueError, match=r"array of uint8, not float16"):
        layout.load_xk(np.zeros(1024, np.float16))
    with pytest.raises(ValueError, match=r"not contiguous; pass a copy"):
        layout.load_xk(np.zeros(4096, np.uint8)[::2])
    with pytest.raises(ValueError, match=r"the matrix: an array of shape \(0, 16, 64\) has no elements"):
        layout.store_xk(np.zeros((0, 16, 64), np.float16))
    with pytest.raises(ValueError, match=r"image: an array of shape \(0, 2048\) has no elements"):
        layout.load_xk(np.zeros((0, 2048), np.uint8))
    with pytest.raises(ValueError, match=r"images: an array of shape \(0, 1, 2048\) has no elements"):
        layout.load_tiles_xk(np.zeros((0, 1, 2048), np.uint8))
    with pytest.raises(ValueError, match=r"memory: an array of shape \(0, 2048\) has no elements"):
        read_operand(layout.descriptor(), np.zeros((0, 2048), np.uint8), "f16", 16, 64, "K")
    image = memoryview(layout.store_xk(np.zeros((16, 64), np.float16)))
    with pytest.raises(ValueError, match=r"image is not contiguous; pass a copy"):
        layout.load_xk(image[::2])
    with pytest.raises(ValueError, match=r"image must be an array of uint8, not uint32"):
        layout.load_xk(image.cast("I"))


def test_a_layout_cannot_be_changed() -> None:
    layout = SharedLayout("f16", "K", "128B", 16, 64)
    matrix = _random(layout.element, (16, 64))
    for name in ("k", "start", "_units", "colour"):
        with pytest.raises(AttributeError, match=f"{name} of a SharedLayout cannot be changed; create another layout"):
            setattr(layout, name, 128)
    with pytest.raises(AttributeError, match="k of a SharedLayout cannot be deleted"):
        del layout.k
    again = pickle.loads(pickle.dumps(layout))
    np.testing.assert_array_equal(again.store_xk(matrix), layout.store_xk(matrix))
    assert repr(again) == repr(layout)


def test_positions_outside() -> None:
    layout = SharedLayout("f16", "K", "128B", 16, 64)
    with pytest.raises(ValueError, match=r"x = 16 is out of range: 0\.\.15"):
        layout.address(16, 0)
    with pytest.raises(ValueError, match=r"k reaches from -1 to 3; allowed: 0\.\.63"):
        layout.address(0, np.array([3, -1]))
    with pytest.raises(ValueError, match="k has dtype float64; positions are integers"):
        layout.address(0, np.array([1.0]))
    with pytest.raises(TypeError, match="x must be an integer or an array of integers, not str"):
        layout.address("1", 0)


def test_sub_tiles_without_a_descriptor() -> None:
    layout = SharedLayout("f16", "K", "128B", 64, 128)
    with pytest.raises(ValueError, match=r"64 x 112 at \(0, 16\) has no descriptor.* panels are 64 elements wide along k"):
        layout.descriptor(0, 16)
    with pytest.raises(ValueError, match=r"start_address = 2 has no encoding"):
        layout.descriptor(0, 1, 64, 16)
    with pytest.raises(ValueError, match=r"64 x 16 at \(8, 0\) does not lie in the matrix of 64 x 128"):
        layout.descriptor(8, 0, 64, 16)
    with pytest.raises(ValueError, match=r"k = 128 is out of range"):
        layout.descriptor(0, 128)
    with pytest.raises(ValueError, match=r"k = 128 is not a multiple of k_extent = 48"):
        layout.steps(48)


def test_an_image_may_end_where_the_reach_of_descriptors_ends() -> None:
    layout = SharedLayout("f16", "K", "128B", 16, 128, start=(1 << 18) - 4096)
    assert layout.start + layout.size == 1 << 18
    assert layout.descriptor(8, 112).encode() & 0x3FFF == 0x3FFF - 1024 // 16 + 1 + 96 // 16


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("start_address", 24, "start_address = 24 has no encoding in a descriptor; allowed: multiples of 16 from 0 to 262128"),
        ("stride_byte_offset", -16, "stride_byte_offset = -16"),
        ("leading_byte_offset", 1 << 18, "leading_byte_offset = 262144"),
        ("base_offset", 8, r"base_offset = 8 has no encoding in a descriptor; allowed: 0\.\.7"),
        ("swizzle", "16B", "swizzle = 16B is not legal; allowed: none, 128B, 64B, 32B"),
    ],
)
def test_fields_without_an_encoding(field: str, value: Any, message: str) -> None:
    descriptor = msgspec.structs.replace(Descriptor(start_address=0, leading_byte_offset=0, stride_byte_offset=0), **{field: value})
    with pytest.raises(ValueError, match=message):
        descriptor.encode()
    with pytest.raises(ValueError, match=message):
        read_operand(descriptor, np.zeros(64, np.uint8), "f16", 8, 8, "K")


def test_reads_that_leave_the_memory() -> None:
    layout = SharedLayout("f16", "K", "none", 8, 16, start=64)
    image = layout.store_xk(np.zeros((8, 16), np.float16))
    assert not read_operand(layout.descriptor(), image, "f16", 8, 16, "K", 64).any()
    for start, size in ((80, 256), (48, 256), (64, 255), (1 << 70, 256)):
        with pytest.raises(ValueError, match=rf"reads address \d+ for a K-major f16 matrix of 8 x 16; the memory holds {start}\.\."):
            read_operand(layout.descriptor(), image[:size], "f16", 8, 16, "K", start)
    for empty in (image[:0], b""):
        with pytest.raises(ValueError, match=r"memory: an array of shape \(0,\) has no elements"):
            read_operand(layout.descriptor(), empty, "f16", 8, 16, "K", 64)
    with pytest.raises(ValueError, match=r"memory_start = 8 must be a multiple of 16"):
        read_operand(layout.descriptor(), image, "f16", 8, 16, "K", 8)
    with pytest.raises(ValueError, match="is not a 64-bit number"):
        read_operand(1 << 64, image, "f16", 8, 16, "K")
    with pytest.raises(ValueError, match="wgmma cannot read s8 MN-major"):
        read_operand(layout.descriptor(), image, "s8", 8, 16, "MN", 64)
    with pytest.raises(ValueError, match="unknown majorness 'k'"):
        read_operand(layout.descriptor(), image, "f16", 8, 16, "k", 64)
    with pytest.raises(ValueError, match="memory must be an array of uint8"):
        read_operand(layout.descriptor(), image.view(np.uint16), "f16", 8, 16, "K", 64)


# --- bank conflicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "width", "wavefronts"),
    [(4, 4, 1), (0, 4, 1), (8, 4, 2), (128, 4, 32), (132, 4, 1), (8, 8, 2), (16, 8, 4), (256, 8, 32), (16, 16, 4), (0, 16, 4), (32, 16, 8)],
)
def test_known_conflicts(step: int, width: int, wavefronts: int) -> None:
    """Lanes ``step`` bytes apart."""
    conflicts = bank_conflicts(np.arange(32) * step, width)
    assert conflicts.wavefronts == wavefronts
    assert conflicts.least == width // 4


@given(
    st.lists(st.integers(0, 63), min_size=32, max_size=32),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.booleans(), min_size=32, max_size=32),
)
@settings(max_examples=100)
def test_conflicts_by_counting(places: list[int], width: int, active: list[bool]) -> None:
    """By counting, byte by byte, the words of each bank for the lanes that are served together."""
    addresses = np.array([[place * width if on else -1 for place, on in zip(places, active, strict=True)]] * 2)
    conflicts = bank_conflicts(addresses, width, np.array(active))
    lanes = min(32, 128 // width)
    wavefronts = 0
    for part in range(32 // lanes):
        asked: dict[int, set[int]] = {bank: set() for bank in range(32)}
        for lane, byte in itertools.product(range(part * lanes, (part + 1) * lanes), range(width)):
            if active[lane]:
                word = (places[lane] * width + byte) // 4
                asked[word % 32].add(word)
        wavefronts += max(map(len, asked.values()))
        assert conflicts.words[0, part].tolist() == [len(asked[bank]) for bank in range(32)]
    assert conflicts.wavefronts.tolist() == [wavefronts] * 2
    assert conflicts.words.shape[1] == conflicts.least == 32 // lanes
    both = bank_conflicts(addresses, width, np.array([active] * 2))
    np.testing.assert_array_equal(both.words, conflicts.words)
    if all(active):
        np.testing.assert_array_equal(bank_conflicts(addresses, width).words, conflicts.words)


def test_bytes_of_one_word_do_not_conflict() -> None:
    """A row of f16 or fp8, one element for each lane, and a column of 256 bytes a row."""
    assert bank_conflicts(np.arange(32) * 2, width=2).wavefronts == 1
    assert bank_conflicts(np.arange(32), width=1).wavefronts == 1
    assert bank_conflicts(np.arange(32) * 256, width=2).wavefronts == 32
    assert bank_conflicts(np.arange(32) * 256, 2, np.arange(32) < 5).wavefronts == 5
    assert bank_conflicts(np.arange(32) * 256, 2, np.zeros(32, bool)).wavefronts == 0


def test_the_swizzle_takes_the_conflicts_out_of_columns() -> None:
    """Eight rows of 128 bytes, 16 bytes of each, as ``ldmatrix`` reads them: 8-fold in row-major order, none with the swizzle."""
    row, column = np.arange(32) % 8, np.arange(32) // 8
    plain = bank_conflicts(row * 128 + column * 16, 16)
    assert plain.wavefronts == 8 * plain.least == 32
    assert plain.words.max() == 8
    for swizzle in _MODES:
        layout = SharedLayout("f16", "K", swizzle, 8, 64)
        conflicts = bank_conflicts(layout.address(row, column * 8), 16)
        assert conflicts.wavefronts == conflicts.least, swizzle


def test_impossible_accesses() -> None:
    lanes = np.arange(32) * 16
    with pytest.raises(ValueError, match=r"width = 3; a lane accesses 1, 2, 4, 8, 16 bytes"):
        bank_conflicts(lanes, 3)
    with pytest.raises(TypeError, match=r"width must be one integer, not float"):
        bank_conflicts(lanes, 4.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"addresses: an array of shape \(0, 32\) has no elements"):
        bank_conflicts(lanes[None][:0])
    for active in (lanes, np.ones(31, bool), np.ones((2, 32), bool)):
        with pytest.raises(ValueError, match=r"active must be bool of shape \(32,\)"):
            bank_conflicts(lanes, 4, active)
    with pytest.raises(ValueError, match=r"integers of shape \(\.\.\., 32\), not int64 of shape \(31,\)"):
        bank_conflicts(lanes[1:])
    with pytest.raises(ValueError, match=r"integers of shape \(\.\.\., 32\), not float64"):
        bank_conflicts(lanes.astype(np.float64))
    with pytest.raises(ValueError, match=r"address 24 of lane 3 is not a multiple of 16"):
        bank_conflicts(np.where(np.arange(32) == 3, 24, lanes), 16)
    with pytest.raises(ValueError, match=r"address -16 of lane 0"):
        bank_conflicts(lanes - 16)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.uint64])
def test_addresses_of_any_integer_type(dtype: Any) -> None:
    """The highest addresses of a type do not wrap."""
    top = np.iinfo(dtype).max + 1 - 32 * 4
    addresses = np.array([top + 4 * lane for lane in range(32)], dtype)
    assert bank_conflicts(addresses).wavefronts == 1
    np.testing.assert_array_equal(bank_conflicts(addresses).words, 1)
    with pytest.raises(ValueError, match=f"address {int(addresses[1])} of lane 1 is not a multiple of 8"):
        bank_conflicts(addresses, 8)


# --- the image of an operand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("majorness", ["K", "MN"])
def test_an_operand_lies_in_its_image_as_it_is_multiplied(majorness: str) -> None:
    wgmma = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16")
    random = np.random.default_rng(0)
    left, right = random.standard_normal((64, 64)).astype(np.float16), random.standard_normal((64, 64)).astype(np.float16)
    a = shared_memory.of(wgmma, "a", "128B", majorness, k=64)
    b = shared_memory.of(wgmma, "b", "128B", majorness, k=64, start=a.size)
    memory = np.concatenate([a.store(left), b.store(right)])
    options = {"imm_trans_a": 1, "imm_trans_b": 1} if majorness == "MN" else {}
    total = sum(
        ptxmma.emulate(wgmma, a.descriptor(0, k, k_extent=16), b.descriptor(0, k, k_extent=16), memory=memory, **options).matrix
        for k in range(0, 64, 16)
    )
    np.testing.assert_allclose(total, left.astype(np.float64) @ right.astype(np.float64), rtol=1e-12, atol=1e-12)
    assert np.array_equal(a.load(memory[: a.size]), left)
    assert np.array_equal(b.load(memory[a.size :]), right)


def test_tiles_of_an_operand_are_in_the_order_of_its_matrix() -> None:
    wgmma = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    b = shared_memory.of(wgmma, "b", "32B")
    assert b.shape == wgmma.shape[:0:-1] == (16, 8)  # type: ignore[index]
    matrix = np.arange(40 * 20).reshape(40, 20).astype(np.float16)  # k x n
    images = b.store_tiles(matrix, pad=True)
    assert images.shape == (3, 3, b.size)
    assert np.array_equal(images[1, 0], b.store(matrix[16:32, :8]))
    assert np.array_equal(b.load_tiles(images, (40, 20)), matrix)
    assert np.array_equal(b.load_tiles(images, matrix.shape), matrix)
    torch = pytest.importorskip("torch")
    tensor = b.store(torch.from_numpy(matrix[:16, :8].copy()))
    assert np.array_equal(tensor.numpy(), b.store(matrix[:16, :8]))
    assert np.array_equal(b.load(tensor).numpy(), matrix[:16, :8])


def test_an_operand_takes_no_other_orientation() -> None:
    wgmma = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    b = shared_memory.of(wgmma, "b", "32B")
    with pytest.raises(ValueError, match=r"the matrix has shape \(8, 16\); this operand takes \(..., 16, 8\)"):
        b.store(np.zeros((8, 16), np.float16))
    with pytest.raises(ValueError, match=r"images of shape \(512,\): this operand takes"):
        b.load_tiles(np.zeros(512, np.uint8))
    with pytest.raises(Missing, match="takes no descriptor of 'd'"):
        shared_memory.of(wgmma, "d", "32B")
    with pytest.raises(Missing, match="takes no descriptor of 'b'"):
        shared_memory.of(ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), "b", "32B")


def test_a_sparse_operand_is_as_deep_as_what_it_stores() -> None:
    sparse = ptxmma.instruction("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16")
    assert shared_memory.of(sparse, "a", "32B").shape == (64, 16)
    assert shared_memory.of(sparse, "b", "64B").shape == (32, 8)


def test_a_sparse_product_in_tensor_memory_reads_a_packed() -> None:
    product = ptxmma.instruction("tcgen05.mma.sp.cta_group::1.kind::f16", m=128, n=64, dtype="f32", atype="f16", btype="f16")
    assert [shared_memory.of(product, name, "32B").shape for name in "ab"] == [(128, 16), (32, 64)]


def test_steps_of_48_bytes_go_on_at_an_address() -> None:
    """K = 96 of e2m1: every step of a matrix of three panels of 128 bytes, some of which begin in one panel and end in the next."""
    layout = SharedLayout("e2m1", "K", "128B", x=16, k=768, start=4096, family="tcgen05")
    matrix = np.random.default_rng(9).integers(0, 16, (16, 768), np.uint8)
    image = layout.store_xk(matrix)
    for step in range(768 // 96):
        panel, inside = divmod(48 * step, 128)
        later = layout.start + layout.lbo * min(panel + 1, 2)  # of the last step nothing is read there
        descriptor = Descriptor(
            start_address=layout.start + layout.lbo * panel + inside,
            leading_byte_offset=later if inside > 80 else layout.start + layout.lbo * panel,
            stride_byte_offset=layout.sbo,
            swizzle="128B",
            family="tcgen05",
            leading_mode="address",
        )
        part = read_operand(descriptor, image, "e2m1", 16, 96, "K", layout.start)
        assert np.array_equal(np.asarray(part).view(np.uint8), matrix[:, 96 * step : 96 * step + 96])
    with pytest.raises(ValueError, match="is for K-major matrices with swizzle 128B and without a base offset"):
        read_operand(msgspec.structs.replace(descriptor, base_offset=1), image, "e2m1", 16, 96, "K", layout.start)
