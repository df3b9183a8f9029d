"""Images of tensor memory, and products that are added up in it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxmma
from ptxmma.matrices import scaling, sparse
from ptxmma.matrices.scaling import tensor_memory as tensor_scales
from ptxmma.matrices.scaling.tensor_memory import Step

_ONE, _PAIR = ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05.mma.cta_group::2.kind::f16")
_BF16: dict[str, Any] = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
_RNG = np.random.default_rng(5)


def _operand(opcode: str, name: str, **arguments: Any) -> ptxmma.Operand:
    return ptxmma.instruction(opcode, **arguments).operand(name)


def test_an_operand_lies_at_its_address() -> None:
    """What lies at address 0 is asked for every operand in ``test_registers.py``."""
    d = _operand(_ONE, "d-tmem", m=64, n=8, **_BF16)
    image = np.full((128, 512), 0xFFFFFFFF, np.uint32)
    assert d.pack(np.zeros((64, 8), np.float32), image, address=16 << 16 | 32) is not None
    assert not d.unpack(image, address=16 << 16 | 32).any()
    assert np.count_nonzero(image == 0) == 64 * 8
    assert (image[16:32, 32:40] == 0).all()


@pytest.mark.parametrize(
    ("address", "message"),
    [(1 << 16, r"address 0x10000 is lane 1; it must be lane 0 or 16"), (509, "columns reach from 509 to 516; the memory has 512")],
)
def test_addresses_are_checked(address: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _operand(_ONE, "d-tmem", m=64, n=8, **_BF16).pack(np.zeros((64, 8), np.float32), address=address)


def test_matrices_and_images_are_checked() -> None:
    d = _operand(_ONE, "d-tmem", m=64, n=8, **_BF16)
    with pytest.raises(ValueError, match=r"d-tmem has shape \(8, 64\); it takes \(64, 8\)"):
        d.pack(np.zeros((8, 64), np.float32))
    with pytest.raises(ValueError, match=r"memory has shape \(2, 128, 512\); it takes \(128, columns\) of 32 bits"):
        d.unpack(np.zeros((2, 128, 512), np.uint32))


# --- scale factors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "blocks"), [(128, 4), (128, 12), (256, 8), (72, 5)])
def test_scale_factors_lie_as_cp_copies_the_order_of_cublas(rows: int, blocks: int) -> None:
    """``tcgen05.cp.32x128b.warpx4`` puts 16 bytes, one after another, into four columns of a lane."""
    scales = _RNG.integers(1, 255, (rows, blocks), np.uint8)
    tiles = scaling.to_cublas(scales).reshape(-(-rows // 128), -(-blocks // 4), 32, 16)
    copied = np.concatenate([np.concatenate(list(tiles[:, group].view(np.uint32)), axis=1) for group in range(tiles.shape[1])], axis=1)
    assert np.array_equal(scaling.to_tensor_memory(scales), np.tile(copied, (4, 1)))
    assert np.array_equal(scaling.to_tensor_memory(scales.T, axis=-2), scaling.to_tensor_memory(scales))


@pytest.mark.parametrize(("rows", "blocks", "axis"), [(128, 4, -1), (256, 9, -1), (72, 5, -2), (1, 1, -2)])
def test_scale_factors_come_back_from_tensor_memory(rows: int, blocks: int, axis: int) -> None:
    scales = _RNG.integers(1, 255, (rows, blocks) if axis == -1 else (blocks, rows), np.uint8)
    image = scaling.to_tensor_memory(scales, axis)
    assert np.array_equal(scaling.from_tensor_memory(image, scales.shape, axis), scales)
    wider = np.concatenate([image, np.full((128, 8), 0xFFFFFFFF, np.uint32)], axis=1)
    assert np.array_equal(scaling.from_tensor_memory(wider, scales.shape, axis), scales)


@pytest.mark.parametrize(
    ("image", "shape", "axis", "message"),
    [
        ((128, 3), (128, 4), -1, r"image is uint32 of shape \(128, 3\); it takes \(128, 4\) or more of 32-bit cells"),
        ((64, 4), (128, 4), -1, r"image is uint32 of shape \(64, 4\)"),
        ((128, 64), (300, 4), -1, r"shape \(300, 4\) with axis -1 is not that of scale factors: \(rows, blocks\), 1 to 256 rows"),
        ((128, 64), (128,), -1, r"shape \(128,\) with axis -1"),
        ((128, 64), (128, 4), 0, r"axis = 0 is not legal: -1 for \(rows, blocks\) of A, -2 for \(blocks, columns\) of B"),
    ],
)
def test_images_that_hold_no_such_scale_factors(image: tuple[int, int], shape: tuple[int, ...], axis: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scaling.from_tensor_memory(np.zeros(image, np.uint32), shape, axis)


def test_steps_along_k_go_on_in_the_same_cells() -> None:
    assert [tensor_scales.step(128, 1, step) for step in (0, 3, 4)] == [Step(0, 0), Step(0, 3), Step(4, 0)]
    assert [tensor_scales.step(256, 2, step) for step in (1, 2)] == [Step(0, 2), Step(8, 0)]
    assert [tensor_scales.step(128, 3, step) for step in (1, 2, 3)] == [Step(0, 3), Step(4, 2), Step(8, 1)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"number": -1}, ValueError, "number = -1 is out of range: steps count from 0 on"),
        ({"number": 1.5}, TypeError, "number must be one integer, not float"),
        ({"factors": 5}, ValueError, "factors = 5: no instruction reads so many for a line; allowed: 1, 2, 3, 4, 6, 8$"),
        ({"factors": 0}, ValueError, "factors = 0: no instruction reads so many"),
        ({"lines": 0}, ValueError, r"lines = 0 is out of range: 1\.\.256"),
        ({"lines": 257}, ValueError, r"lines = 257 is out of range: 1\.\.256"),
    ],
)
def test_steps_that_no_instruction_takes_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    usual: dict[str, Any] = {"lines": 128, "factors": 1, "number": 0}
    with pytest.raises(error, match=message):
        tensor_scales.step(**usual | arguments)


def test_scale_factors_that_do_not_fit_are_refused() -> None:
    for wrong in (np.zeros((300, 4), np.uint8), np.zeros((4, 4), np.uint16), np.zeros(4, np.uint8)):
        with pytest.raises(ValueError, match="it takes \\(rows, blocks\\) of 8 bits, 1 to 256 rows"):
            scaling.to_tensor_memory(wrong)
    with pytest.raises(ValueError, match="axis = 3 is not legal: -1 for"):
        scaling.to_tensor_memory(np.zeros((128, 4), np.uint8), axis=3)


# --- products ---------------------------------------------------------------------------------------------------------------


def test_a_product_is_the_exact_sum_rounded() -> None:
    instruction = ptxmma.instruction(_ONE, m=64, n=16, **_BF16)
    a, b = (_RNG.integers(-8, 8, shape).astype(ml_dtypes.bfloat16) for shape in ((64, 16), (16, 16)))
    d = _RNG.integers(-9, 9, (64, 16)).astype(np.float32)
    result = ptxmma.emulate(instruction, a, b, d)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + d
    assert np.array_equal(result.matrix, wanted)
    assert np.array_equal(result.d, wanted.astype(np.float32))
    assert result.admits(result.d).all()
    wrong = result.d.copy()
    wrong[3, 4] += 1
    assert np.argwhere(~result.admits(wrong)).tolist() == [[3, 4]]
    assert np.array_equal(ptxmma.emulate(instruction, a, b, d, enable_input_d=False).matrix, wanted - d)
    assert np.array_equal(ptxmma.emulate(instruction, a, b, d, scale_input_d=2).matrix, wanted - d + d / 4)
    assert np.array_equal(ptxmma.emulate(instruction, a, b, d, negate_b=True).matrix, 2 * d - wanted)


_SPARSE = [
    ("tcgen05.mma.sp.cta_group::1.kind::i8", 128, "s32", "s8", np.int8),
    ("tcgen05.mma.ws.sp.cta_group::1.kind::i8", 64, "s32", "s8", np.int8),
    ("tcgen05.mma.sp.cta_group::1.kind::f16", 128, "f32", "bf16", ml_dtypes.bfloat16),
    ("tcgen05.mma.sp.cta_group::1.kind::tf32", 128, "f32", "tf32", np.float32),
]


@pytest.mark.parametrize(("opcode", "rows", "result", "factor", "dtype"), _SPARSE)
def test_a_sparse_product_reads_metadata_of_tensor_memory(opcode: str, rows: int, result: str, factor: str, dtype: Any) -> None:
    instruction = ptxmma.instruction(opcode, m=rows, n=64, dtype=result, atype=factor, btype=factor)
    m, n, k = (int(size) for size in instruction.shape or ())
    a, b = (_RNG.integers(-8, 9, shape).astype(dtype) for shape in ((m, k), (k, n)))
    kept = sparse.prune(a, instruction)
    values, metadata = sparse.compress(kept, instruction)
    operand = instruction.operand("sp-meta-tmem")
    image = operand.pack(metadata)
    assert np.array_equal(operand.unpack(image), metadata)
    done = ptxmma.emulate(instruction, values, b, metadata=operand.unpack(image))
    assert np.array_equal(done.matrix, kept.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(
    ("opcode", "types", "dtypes", "blocks"),
    [
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", {"atype": "e4m3", "btype": "e5m2"}, ("float8_e4m3fn", "float8_e5m2"), 1),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale", {}, ("float4_e2m1fn", "float4_e2m1fn"), 2),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32", {"k": 96}, ("float4_e2m1fn", "float4_e2m1fn"), 3),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", {"stype": "ue8m0"}, ("float4_e2m1fn", "float4_e2m1fn"), 4),
    ],
)
def test_a_block_scaled_product_reads_factors_of_tensor_memory(
    opcode: str, types: dict[str, Any], dtypes: tuple[str, str], blocks: int
) -> None:
    instruction = ptxmma.instruction(opcode, m=128, n=64, **({"k": 64} if "mxf4" in opcode else {}) | types)
    m, n, k = (int(size) for size in instruction.shape or ())
    a, b = (_RNG.integers(-2, 3, at).astype(getattr(ml_dtypes, name)) for at, name in zip(((m, k), (k, n)), dtypes, strict=True))
    scales = [np.exp2(_RNG.integers(-2, 3, at)).astype(ml_dtypes.float8_e8m0fnu) for at in ((m, blocks), (blocks, n))]
    image = None
    for name, scale, address in (("scale-A-tmem", scales[0], 0), ("scale-B-tmem", scales[1], 64)):
        image = instruction.operand(name).pack(scale, image, address=address)
    packed = [instruction.operand(f"scale-{name}-tmem").unpack(image, address=at) for name, at in (("A", 0), ("B", 64))]
    assert all(np.array_equal(np.asarray(one).view(np.uint8), scale.view(np.uint8)) for one, scale in zip(packed, scales, strict=True))
    done = ptxmma.emulate(instruction, a, b, scale_a=scales[0], scale_b=scales[1])
    size = k // blocks
    wanted = (a.astype(float) * scales[0].astype(float).repeat(size, 1)) @ (b.astype(float) * scales[1].astype(float).repeat(size, 0))
    assert np.array_equal(done.matrix, wanted)


_MXF8 = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
_NVF4 = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale"


@pytest.mark.parametrize(
    ("opcode", "arguments", "formats"),
    [
        (_MXF8, {"atype": "e4m3", "btype": "e5m2"}, "e4m3, ue8m0 for each 32; e5m2, ue8m0 for each 32"),
        (_MXF8, {"atype": "e2m3", "btype": "e2m1"}, "e2m3, ue8m0 for each 32; e2m1, ue8m0 for each 32"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale", {}, "e2m1, ue8m0 for each 32; e2m1, ue8m0 for each 32"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32", {"k": 96}, "e2m1, ue8m0 for each 32; e2m1, ue8m0 for each 32"),
        (f"{_NVF4}.block16", {"stype": "ue4m3"}, "e2m1, ue4m3 for each 16; e2m1, ue4m3 for each 16"),
        (f"{_NVF4}.scale_vec::2X", {"stype": "ue8m0"}, "e2m1, ue8m0 for each 32; e2m1, ue8m0 for each 32"),
    ],
)
def test_from_numbers_through_tensor_memory_to_a_product_and_back(opcode: str, arguments: dict[str, Any], formats: str) -> None:
    """Quantise both matrices, lay the factors of all K out, take those of each step, and add up: the product of what was quantised."""
    product = ptxmma.instruction(opcode, m=128, n=72, **arguments)
    (m, n, k), steps = product.shape or (), 3
    forms = scaling.of(product, "a"), scaling.of(product, "b")
    assert "; ".join(repr(form).removeprefix("<Format ").partition(" along")[0] for form in forms) == formats
    whole = [_RNG.normal(size=size).astype(np.float32) for size in ((m, steps * k), (steps * k, n))]
    quantised = [scaling.quantise(matrix, form) for matrix, form in zip(whole, forms, strict=True)]
    images = [scaling.to_tensor_memory(each.scales, form.axis) for each, form in zip(quantised, forms, strict=True)]
    memory = np.zeros((128, 512), np.uint32)
    starts = (100, 200)
    for image, start in zip(images, starts, strict=True):
        memory[:, start : start + image.shape[1]] = image
    d: Any = None
    for number in range(steps):
        taken = []
        for name, lines, start in (("A", m, starts[0]), ("B", n, starts[1])):
            step = tensor_scales.step(lines, k // forms[0].block, number)
            taken.append(product.operand(f"scale-{name}-tmem").unpack(memory, address=start + step.column, scale_id=step.scale_id))
        along = slice(number * k, (number + 1) * k)
        a, b = quantised[0].elements[:, along], quantised[1].elements[along]
        d = ptxmma.emulate(product, a, b, d, scale_a=taken[0], scale_b=taken[1]).d
    values = [scaling.dequantise(*each, form).astype(np.float64) for each, form in zip(quantised, forms, strict=True)]
    assert np.allclose(d, values[0] @ values[1], rtol=1e-5, atol=1e-5)  # sums are rounded to f32 after each step
    assert not np.allclose(d, np.asarray(d)[::-1], rtol=1e-5, atol=1e-5)
    for each, image, form in zip(quantised, images, forms, strict=True):
        back = scaling.from_tensor_memory(image, each.scales.shape, form.axis)
        assert np.array_equal(back, each.scales.view(np.uint8))


def test_formats_are_those_of_products_alone() -> None:
    with pytest.raises(ValueError, match=r"block_scale has its scale factors for 'a' in tensor memory: scale-A-tmem"):
        ptxmma.instruction(_MXF8).scales("a")
    with pytest.raises(ValueError, match=r"kind::f16 has no scale factors for 'b'"):
        scaling.of(ptxmma.instruction(_ONE, m=64, n=16, **_BF16), "b")
    with pytest.raises(ValueError, match=r"has no scale factors for 'd'; it has those for 'a' and 'b'"):
        scaling.of(ptxmma.instruction(_MXF8, m=128, n=16, atype="e4m3", btype="e4m3"), "d")
    sparse_product = ptxmma.instruction("tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale", m=128, n=64, atype="e4m3", btype="e4m3")
    assert scaling.of(sparse_product, "a").block == 64, "blocks count along the full K"


def test_the_bound_is_that_of_the_precision_of_sums() -> None:
    instruction = ptxmma.instruction(_ONE, m=64, n=16, **_BF16)
    a, b = (_RNG.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in ((64, 16), (16, 16)))
    result = ptxmma.emulate(instruction, a, b)
    assert (result.bound("f16") > result.bound("f32")).all()
    with pytest.raises(ValueError, match="unknown floating-point type 's32'; known: f16"):
        result.bound("s32")


def test_a_product_of_an_opcode_alone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"does not state m, n, dtype, atype, btype: give them to ptxmma.instruction\(opcode, m=..., "):
        ptxmma.emulate(_ONE, np.zeros((64, 16)), np.zeros((16, 16)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metadata": np.zeros((64, 4), np.uint8)}, "takes no metadata"),
        ({"scale_a": np.zeros((64, 1), np.uint8)}, "takes no scale_a"),
        ({"scale_input_d": 16}, r"scale_input_d = 16 is out of range: 0\.\.15"),
        ({"saturate": True}, "does not saturate"),
        ({"d": np.zeros((64, 8), np.float32)}, r"d has shape \(64, 8\); it takes \(..., 64, 16\)"),
    ],
)
def test_operands_of_a_product_are_checked(arguments: dict[str, Any], message: str) -> None:
    instruction = ptxmma.instruction(_ONE, m=64, n=16, **_BF16)
    a, b = np.zeros((64, 16), ml_dtypes.bfloat16), np.zeros((16, 16), ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match=message):
        ptxmma.emulate(instruction, a, b, **arguments)


@pytest.mark.parametrize(
    ("element", "kind", "low"), [("e2m1", "f8f6f4", 2), ("e3m2", "f8f6f4", 1), ("e4m3", "f8f6f4", 0), ("e2m1", "mxf4", 0)]
)
def test_locate_gives_the_bits_that_pack_fills(element: str, kind: str, low: int) -> None:
    """A narrow element sits in the middle of its container; all bits of the container lead to it."""
    scaled = kind == "mxf4"
    opcode = f"tcgen05.mma.cta_group::1.kind::{kind}{'.block_scale.block32' if scaled else ''}"
    types = {"dtype": "f32", "atype": element, "btype": element} | ({"stype": "ue8m0"} if scaled else {})
    a = _operand(opcode, "a-tmem", m=128, n=64, k=64 if scaled else 32, **types)
    assert a.element is not None
    codes = np.zeros((a.rows, a.cols), np.uint8)
    codes[5, 3] = (1 << a.element.bits) - 1
    image = a.pack(codes)
    lanes, columns = np.nonzero(image)
    place = a.locate(5, 3)
    assert (lanes.tolist(), columns.tolist()) == ([place.lane], [place.column])
    assert int(image[place.lane, place.column]) == ((1 << a.element.bits) - 1) << place.bit
    assert place.bit == 3 * a.bits % 32 + low
    for bit in range(3 * a.bits % 32, 3 * a.bits % 32 + a.bits):
        assert a.coords(place.lane, place.column, bit)[:2] == (5, 3)
