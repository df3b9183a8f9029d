"""Emulated products of tcgen05.mma against arithmetic by hand: what each operand and qualifier does to an element of D."""

from __future__ import annotations

import contextlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxmma
from ptxmma import scaling, shared_memory, sparse
from ptxmma.catalog.descriptors.lookup import codec, of_product
from ptxmma.catalog.instructions import Missing
from ptxmma.catalog.operands import TensorOperand
from ptxmma.catalog.products import resolution
from ptxmma.catalog.products.product_rules import IllegalProductError
from ptxmma.check import check
from ptxmma.matrices.scaling import tensor_memory
from ptxmma.matrices.sparse.patterns import pattern_of

_BF16: dict[str, Any] = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
_S8: dict[str, Any] = {"dtype": "s32", "atype": "s8", "btype": "s8"}
_F16 = "tcgen05.mma.cta_group::{}.kind::f16"


def _sparse_row(kind: str, arguments: dict[str, Any], kept: list[float], fields: int, dtype: Any) -> ptxmma.Instruction | Any:
    """D[0] of a sparse product whose A has some kept elements in the first chunks of row 0, and whose B[k][0] is k + 1."""
    product = ptxmma.instruction(f"tcgen05.mma.sp.cta_group::1.kind::{kind}", m=128, n=64, **arguments)
    m, n, k = product.shape or ()
    a = np.zeros((m, k // 2), dtype)
    a[0, : len(kept)] = kept
    b = np.zeros((k, n), dtype)
    b[:4, 0] = [1, 2, 3, 4]
    metadata = np.full((m, product.operand("sp-meta-tmem").sizes["chunk"] // 2), 0xEE, np.uint8)
    metadata[0, 0] = 0xE0 | fields
    scales = {}
    if product.variant.facts.get("stype"):
        blocks = product.operand("scale-A-tmem").sizes["block"]
        scales = {"scale_a": np.full((m, blocks), 128, np.uint8), "scale_b": np.full((blocks, n), 127, np.uint8)}
    return ptxmma.emulate(product, a, b, metadata=metadata, **scales).matrix[0, 0]


@pytest.mark.parametrize(
    ("fields", "wanted"), [(0b0100, 5 * 1 + 7 * 2), (0b1110, 5 * 3 + 7 * 4), (0b1100, 5 * 1 + 7 * 4), (0b0110, 5 * 3 + 7 * 2)]
)
def test_a_field_of_2_to_4_says_which_rows_of_b_count(fields: int, wanted: int) -> None:
    """Index 0, the low two bits, is of the first kept element: 0b0110 puts it behind the second."""
    assert _sparse_row("f16", _BF16, [5, 7], fields, ml_dtypes.bfloat16) == wanted
    assert _sparse_row("i8", _S8, [5, 7], fields, np.int8) == wanted


@pytest.mark.parametrize(("fields", "wanted"), [(0b0100, 5 * 1), (0b1110, 5 * 2)])
def test_a_field_of_1_to_2_says_which_row_of_b_counts(fields: int, wanted: int) -> None:
    assert _sparse_row("tf32", {"dtype": "f32", "atype": "tf32", "btype": "tf32"}, [5], fields, np.float32) == wanted


@pytest.mark.parametrize(("fields", "wanted"), [(0b0100, 1 * 1 + 2 * 2 + 3 * 3 + 4 * 4), (0b1000, 1 * 1 + 2 * 2), (0b0001, None)])
def test_a_field_of_4_to_8_says_which_pairs_count_and_a_scale_is_of_kept_elements(fields: int, wanted: int | None) -> None:
    """Pairs of e2m1; each factor of A is 2."""
    if wanted is None:
        with pytest.raises(ValueError, match="0b0001"):
            _sparse_row("mxf4.block_scale", {}, [1, 2, 3, 4], fields, ml_dtypes.float4_e2m1fn)
    else:
        assert _sparse_row("mxf4.block_scale", {}, [1, 2, 3, 4], fields, ml_dtypes.float4_e2m1fn) == 2 * wanted


@pytest.mark.parametrize(
    ("opcode", "arguments", "blocks"),
    [
        ("mxf8f6f4.block_scale", {"atype": "e4m3", "btype": "e4m3"}, [32]),
        ("mxf4.block_scale", {"k": 64}, [32, 32]),
        ("mxf4nvf4.block_scale.block16", {"k": 64, "stype": "ue4m3"}, [16] * 4),
        ("mxf4nvf4.block_scale.block16", {"k": 96, "stype": "ue4m3"}, [16] * 6),
        ("mxf4.block_scale.block32", {"k": 96}, [32] * 3),
    ],
)
def test_each_block_has_its_own_factor(opcode: str, arguments: dict[str, Any], blocks: list[int]) -> None:
    """Factors of A are 1, 2, 4 …, those of B 1, 1/2, 1, 1/2 …; all elements are 1."""
    product = ptxmma.instruction(f"tcgen05.mma.cta_group::1.kind::{opcode}", m=128, n=64, **arguments)
    m, n, k = product.shape or ()
    element = ml_dtypes.float8_e4m3fn if "mxf8" in opcode else ml_dtypes.float4_e2m1fn
    scale = ml_dtypes.float8_e4m3fn if product.variant.facts["stype"] == "ue4m3" else ml_dtypes.float8_e8m0fnu
    of_a, of_b = [2.0**number for number in range(len(blocks))], [0.5 ** (number % 2) for number in range(len(blocks))]
    rows = np.tile(np.array(of_a), (m, 1)).astype(scale).view(np.uint8)
    columns = np.tile(np.array(of_b)[:, None], (1, n)).astype(scale).view(np.uint8)
    result = ptxmma.emulate(product, np.ones((m, k), element), np.ones((k, n), element), scale_a=rows, scale_b=columns)
    assert (result.matrix == sum(size * one * other for size, one, other in zip(blocks, of_a, of_b, strict=True))).all()


@pytest.mark.parametrize("factors", [np.full((128, 4), 0xB8, np.uint8), np.full((128, 4), -2, ml_dtypes.float8_e4m3fn)])
def test_a_factor_without_a_sign_is_not_negative(factors: Any) -> None:
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", m=128, n=64, k=64, stype="ue4m3")
    ones, positive = np.ones((128, 64), ml_dtypes.float4_e2m1fn), np.full((4, 64), 1, ml_dtypes.float8_e4m3fn)
    with pytest.raises(ValueError, match=r"scale_a holds 0x(b8|c0): ue4m3 has no sign, so its codes are 0\.\.0x7f"):
        ptxmma.emulate(product, ones, ones[:64].T, scale_a=factors, scale_b=positive)


@pytest.mark.parametrize("opcode", ["tcgen05.mma.cta_group::1.kind::f16", "tcgen05.mma.ws.cta_group::1.kind::f16"])
def test_the_descriptor_negates_and_the_operands_scale_and_leave_out_d(opcode: str) -> None:
    product = ptxmma.instruction(opcode, m=64, n=64, **_BF16)
    a, b = np.full((64, 16), 2, ml_dtypes.bfloat16), np.full((16, 64), 3, ml_dtypes.bfloat16)
    d = np.full((64, 64), 10, np.float32)
    sign = {"negate_a": True}, {"negate_b": True}, {"negate_a": True, "negate_b": True}
    assert [ptxmma.emulate(product, a, b, d, **options).d[0, 0] for options in ({}, *sign)] == [106, -86, -86, 106]
    assert ptxmma.emulate(product, a, b, d, enable_input_d=False).d[0, 0] == 96
    if ".ws" not in opcode:
        assert ptxmma.emulate(product, a, b, d, scale_input_d=2).d[0, 0] == 96 + 10 / 4
    else:
        with pytest.raises(ValueError, match="takes no scale_input_d"):
            ptxmma.emulate(product, a, b, d, scale_input_d=2)


def test_sums_of_integers_wrap_unless_the_descriptor_saturates_them() -> None:
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::i8", m=128, n=16, **_S8)
    a, b = np.full((128, 32), 127, np.int8), np.full((32, 16), 127, np.int8)
    d = np.full((128, 16), 2**31 - 1, np.int32)
    assert ptxmma.emulate(product, a, b, d).d[3, 5] == 32 * 127 * 127 - 1 - 2**31
    assert ptxmma.emulate(product, a, b, d, saturate=True).d[3, 5] == 2**31 - 1
    for options, message in (
        ({"scale_input_d": 1}, "takes no scale_input_d"),
        ({"negate_a": True}, "does not negate a: negate_a = 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ptxmma.emulate(product, a, b, d, **options)


# --- lanes and columns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "m", "d_tmem", "words", "kept"),
    [
        (1, 128, 0, [1 << 5, 0, 0, 1 << 31], [(5, slice(None)), (127, slice(None))]),
        (1, 64, 0, [0xFFFF0000, 0, 1, 0], [(32, slice(None))]),  # lanes 16 to 31 are not D's
        (1, 64, 16 << 16, [0xFFFF0000, 0, 1, 0], [(row, slice(None)) for row in range(16)]),
        (2, 128, 0, [0, 0, 1, 0, 1, 0, 0, 0], [(0, slice(16, 32)), (64, slice(0, 16))]),
        (2, 256, 0, [2, 0, 0, 0, 0, 0, 0, 4], [(1, slice(None)), (226, slice(None))]),
    ],
)
def test_disabled_lanes_keep_d(group: int, m: int, d_tmem: int, words: list[int], kept: list[tuple[int, slice]]) -> None:
    product = ptxmma.instruction(_F16.format(group), m=m, n=32, **_BF16)
    a, b = np.ones((m, 16), ml_dtypes.bfloat16), np.ones((16, 32), ml_dtypes.bfloat16)
    d = np.full((m, 32), 7, np.float32)
    wanted = np.full((m, 32), 16 + 7, np.float32)
    for place in kept:
        wanted[place] = 7
    result = ptxmma.emulate(product, a, b, d, disable_output_lane=words, d_tmem=d_tmem)
    assert np.array_equal(result.d, wanted)
    assert result.admits(wanted).all()
    changed = wanted.copy()
    changed[kept[0]] += np.float32(1e-6)
    assert not result.admits(changed)[kept[0]].any()
    overwritten = ptxmma.emulate(product, a, b, d, disable_output_lane=words, d_tmem=d_tmem, enable_input_d=False).d
    assert np.array_equal(overwritten, np.where(wanted == 7, 7, 16))


def test_disabled_lanes_of_integers_keep_d() -> None:
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::i8", m=128, n=16, **_S8)
    ones = np.ones((128, 32), np.int8), np.ones((32, 16), np.int8)
    result = ptxmma.emulate(product, *ones, np.full((128, 16), 5, np.int32), disable_output_lane=np.array([0, 2, 0, 0], np.uint32))
    assert (result.d[33] == 5).all()
    assert (np.delete(result.d, 33, axis=0) == 37).all()


@pytest.mark.parametrize(
    ("opcode", "options", "message"),
    [
        (_F16.format(1), {"disable_output_lane": [0] * 8}, "has 8 words; it takes 4, the first of lanes 0 to 31"),
        (_F16.format(1), {"disable_output_lane": [0, 0, 0, 1 << 32]}, "disable-output-lane = 4294967296 is out of range"),
        (_F16.format(1), {"disable_output_lane": [0] * 4, "d_tmem": 1 << 16}, "allowed: lane 0; column"),
        ("tcgen05.mma.ws.cta_group::1.kind::f16", {"disable_output_lane": [0] * 4}, "takes no disable_output_lane"),
        (_F16.format(1), {"zero_column_mask_desc": 0}, "takes no zero_column_mask_desc"),
        (
            "tcgen05.mma.ws.cta_group::1.kind::f16",
            {"zero_column_mask": 0},
            r"'zero_column_mask'; its operands are d-tmem,.* zero-column-mask-desc",
        ),
        (_F16.format(1), {"disable_output_lane": [1, 0, 0, 0]}, "D keeps its values in lanes that disable_output_lane has: give d"),
    ],
)
def test_what_a_product_does_not_take(opcode: str, options: dict[str, Any], message: str) -> None:
    product = ptxmma.instruction(opcode, m=128, n=64, **_BF16)
    a, b = np.ones((128, 16), ml_dtypes.bfloat16), np.ones((16, 64), ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match=message):
        ptxmma.emulate(product, a, b, **options)


@pytest.mark.parametrize(
    ("opcode", "m", "k"), [("mma.cta_group::1", 128, 64), ("mma.cta_group::2", 256, 64), ("mma.sp.cta_group::1", 128, 128)]
)
def test_fp6_of_twice_the_depth_has_no_container(opcode: str, m: int, k: int) -> None:
    """PTX ISA 9.4, Tables 48, 62 and 66: the product is legal, and no source says where its elements lie."""
    spelling = f"tcgen05.{opcode}.kind::mxf8f6f4.block_scale"
    product = ptxmma.instruction(spelling, m=m, n=64, k=k, dtype="f32", atype="e3m2", btype="e2m3", stype="ue8m0")
    assert set(product.accepted_by()) == {"sm_107f", "sm_107a"}
    bits = of_product(product)
    assert codec("instruction", kind="mxf8f6f4", target="sm_107a").mistakes(bits) == []
    for operand in "ab":
        with pytest.raises(ValueError, match=r"no source says how e.m. without padding lies in a tile: 16 bytes hold no whole number"):
            shared_memory.of(product, operand, "none")
    with pytest.raises(ValueError, match="no source says where a-tmem of"):
        product.operand("a-tmem").locate(0, 0)
    for matrix, count in ((0x4000404000010040, 0), (0x2000404000010040, 0), (0x4000004000010040, 1)):  # the last has no version
        kernel = [".reg .b32 %r<5>;", ".reg .b64 %d<3>;", ".reg .pred %p;", f"mov.b32 %r1, {bits:#x};", f"mov.b64 %d1, {matrix:#x};"]
        line = f"{spelling} [%r0], %d1, %d2, {'[%r4], ' if product.sparse else ''}%r1, [%r2], [%r3], %p;"
        findings = check("\n".join([".version 9.4", ".target sm_107a", ".func f()", "{", *kernel, line, "ret;", "}"]))
        assert len([each for each in findings if "descriptor" in each.rule]) == count
    half = ptxmma.instruction(spelling, m=m, n=64, k=k // 2, dtype="f32", atype="e3m2", btype="e2m3", stype="ue8m0")
    assert half.operand("a-tmem").locate(0, 1).bit == 8 + 1


@pytest.mark.parametrize(
    ("opcode", "m", "k"), [("mma.cta_group::1", 128, 64), ("mma.cta_group::2", 256, 64), ("mma.sp.cta_group::1", 128, 128)]
)
@pytest.mark.parametrize("other", ["e4m3", "e2m1"])
def test_fp4_of_twice_the_depth_is_packed(opcode: str, m: int, k: int, other: str) -> None:
    """PTX ISA 9.4, Table 48 and 9.7.18.10.4.4: no padding after 16 elements; of A in tensor memory Table 66 has half the depth alone."""
    spelling = f"tcgen05.{opcode}.kind::mxf8f6f4.block_scale"
    types: dict[str, Any] = {"dtype": "f32", "stype": "ue8m0"}
    product = ptxmma.instruction(spelling, m=m, n=64, k=k, atype="e2m1", btype=other, **types)
    assert set(product.accepted_by()) == {"sm_107f", "sm_107a"}
    stored = k // 2 if product.sparse else k
    a = shared_memory.of(product, "a", "32B")
    assert (a.padded, a.size) == (False, 128 * stored // 2)
    with pytest.raises(ValueError, match="tcgen05 cannot read e2m1 MN-major"):
        shared_memory.of(product, "a", "32B", "MN")
    with pytest.raises(ValueError, match="no source says where a-tmem of"):
        product.operand("a-tmem").locate(0, 0)
    half = ptxmma.instruction(spelling, m=m, n=64, k=k // 2, atype="e2m1", btype=other, **types)
    assert shared_memory.of(half, "a", "32B").padded
    assert half.operand("a-tmem").locate(0, 1).bit == 8 + 2
    if not product.sparse:
        with pytest.raises(ValueError, match="a_majorness = MN is not legal"):
            ptxmma.descriptors.of_product(product, a_majorness="MN")
    assert ptxmma.descriptors.of_product(half, a_majorness="MN") ^ ptxmma.descriptors.of_product(half) == 1 << 15


@pytest.mark.parametrize(("ctas", "m", "legal"), [(1, 64, "128"), (2, 128, "256")])
def test_the_table_of_b_needs_every_lane(ctas: int, m: int, legal: str) -> None:
    """PTX ISA 9.4, 9.7.18.10.10.1: it does not lie in the layouts B, C and F."""
    sizes: dict[str, Any] = {"n": 64, "dtype": "f32", "atype": "e4m3", "btype": "e4m3"}
    opcode = f"tcgen05.mma.cta_group::{ctas}.kind::f8f6f4.decompress::lut::b"
    with pytest.raises(IllegalProductError, match=rf"does not allow m = {m}; legal: {legal} \(PTX ISA 9\.4, 9\.7\.18\.10\.10\.1\)"):
        ptxmma.instruction(opcode, m=m, **sizes)
    assert ptxmma.instruction(opcode, m=int(legal), **sizes).accepted_by()


@pytest.mark.parametrize("kind", ["f8f6f4.decompress::lut::b", "mxf8f6f4.block_scale.decompress::lut::b.block32"])
def test_a_table_has_e4m3_of_b_untransposed(kind: str) -> None:
    """PTX ISA 9.4, 9.7.18.10.10.1: it is the only type allowed, and B does not support transpose."""
    opcode = f"tcgen05.mma.cta_group::1.kind::{kind}"
    sizes: dict[str, Any] = {"m": 128, "n": 64, "dtype": "f32", "atype": "e2m3"}
    with pytest.raises(IllegalProductError, match=r"takes no btype = e5m2; legal: .*, btype e4m3$"):
        ptxmma.instruction(opcode, btype="e5m2", **sizes)
    product = ptxmma.instruction(opcode, **sizes)
    assert product.variant.facts["btype"] == "e4m3"
    with pytest.raises(IllegalProductError, match=r"does not allow b_majorness = MN; legal: K \(PTX ISA 9\.4, 9\.7\.18\.10\.10\.1\)"):
        of_product(product, b_majorness="MN")
    assert of_product(product, a_majorness="MN") ^ of_product(product) == 1 << 15
    assert resolution.types(product.database.spec, product.variant)["btype"] == {"e4m3"}


@pytest.mark.parametrize(("kind", "element", "selects"), [("f16", "f16", True), ("f8f6f4", "e4m3", False), ("i8", "s8", False)])
def test_bytes_of_a_sparse_a_have_no_selector(kind: str, element: str, selects: bool) -> None:
    """PTX ISA 9.7.16.10.8.4.6: it must be 0 for kind::i8 and kind::f8f6f4."""
    types: dict[str, Any] = {"atype": element, "btype": element} | ({} if kind == "i8" else {"dtype": "f32"})
    product = ptxmma.instruction(f"tcgen05.mma.sp.cta_group::1.kind::{kind}", m=128, n=64, **types)
    bits, format = of_product(product), codec("instruction", kind=kind)
    assert (format.mistakes(bits | 1) == []) == selects
    if not selects:
        with pytest.raises(ValueError, match=r"sparsity_selector = 1 has no encoding in a descriptor with kind::.*; allowed: 0"):
            of_product(product, sparsity_selector=1)


def test_a_sparse_a_of_narrow_types_and_twice_the_depth_is_not_transposed() -> None:
    """PTX ISA 9.4, 9.7.18.10.10.1: with dense K = 64 and sparse K = 128, A has this for e4m3 and e5m2 alone."""
    format = codec("instruction", kind="mxf8f6f4")
    for k, element, legal in ((64, "e2m1", True), (128, "e4m3", True), (128, "e2m1", False), (128, "e3m2", False)):
        fields: dict[str, Any] = {"m": 128, "n": 64, "sparse": 1, "k": k, "atype": element, "btype": "e4m3", "a_majorness": "MN"}
        with contextlib.nullcontext() if legal else pytest.raises(ValueError, match="a_majorness = MN is not legal"):
            assert format.mistakes(format.encode(**fields)) == []


@pytest.mark.parametrize(("ctas", "m"), [(1, 128), (2, 128), (2, 256)])
def test_a_shift_writes_a_after_the_product(ctas: int, m: int) -> None:
    """As CUTLASS observed it: A[r + 1] in place of A[r], but for the last row of each 32 lanes; D is the product with A as it was."""
    a, b = np.arange(m * 16).reshape(m, 16).astype(ml_dtypes.bfloat16), np.eye(16, 64).astype(ml_dtypes.bfloat16)
    plain, shifting = (ptxmma.instruction(_F16.format(ctas) + shift, m=m, n=64, **_BF16) for shift in ("", ".ashift"))
    result = ptxmma.emulate(shifting, a, b)
    assert np.array_equal(result.d, ptxmma.emulate(plain, a, b).d)
    assert ptxmma.emulate(plain, a, b).a is None
    for row in range(m):
        assert np.array_equal(result.a[row], a[row if row % 32 == 31 else row + 1])


def test_a_shift_of_a_with_gaps_between_its_rows_is_not_known() -> None:
    """A of M = 128 in a pair, sparse, has 16 rows in each 32 lanes, or no layout."""
    opcode = "tcgen05.mma.sp.cta_group::2.kind::f16.ashift"
    product = ptxmma.instruction(opcode, m=128, n=64, **_BF16)
    a, b = np.ones((128, 16), ml_dtypes.bfloat16), np.ones((32, 64), ml_dtypes.bfloat16)
    with pytest.raises(Missing, match="no source says"):
        ptxmma.emulate(product, a, b, metadata=np.full((128, 4), 0x44, np.uint8))


@pytest.mark.parametrize("start", [8, 96 << 16 | 4])
def test_tcgen05_shift_moves_32_bytes_of_31_lanes(start: int) -> None:
    before = np.arange(128 * 16, dtype=np.uint32).reshape(128, 16)
    lane, column = start >> 16, start & 0xFFFF
    after = ptxmma.emulate("tcgen05.shift.cta_group::1.down", start, before).memory
    expected = before.copy()
    for row in range(31):
        expected[lane + row, column : column + 8] = before[lane + row + 1, column : column + 8]
    assert np.array_equal(after, expected)
    assert np.array_equal(before.ravel(), np.arange(128 * 16))


@pytest.mark.parametrize(("start", "message"), [(16 << 16, "is lane 16; .* takes multiples of 32"), (9, "column 9: from there .* leaves")])
def test_tcgen05_shift_refuses_an_address(start: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ptxmma.emulate("tcgen05.shift.cta_group::1.down", start, np.zeros((128, 16), np.uint32))


def test_columns_of_b_count_as_zero() -> None:
    """The mask of example 4 in PTX ISA 9.7.16.4.3 without its shift: four parts of N / 4 columns for M = 32."""
    product = ptxmma.instruction("tcgen05.mma.ws.cta_group::1.kind::f16", m=32, n=64, **_BF16)
    fields = {"start_count_1": 1, "start_count_2": 2, "start_count_3": 1, "first_span_0": 1, "first_span_1": 1}
    bits = codec("columns").encode(non_zero_mask=1, skip_span=3, use_span=4, **fields)
    a, b = np.ones((32, 16), ml_dtypes.bfloat16), np.ones((16, 64), ml_dtypes.bfloat16)
    zeros = ptxmma.descriptors.zero_columns(bits, m=32, n=64)
    assert 0 < sum(zeros) < 64
    result = ptxmma.emulate(product, a, b, np.ones((32, 64), np.float32), zero_column_mask_desc=bits)
    assert np.array_equal(result.d[0], np.where(zeros, 1, 17))
    with pytest.raises(Missing, match="no source says whether column_shift moves the columns that the mask zeroes"):
        ptxmma.emulate(product, a, b, zero_column_mask_desc=bits | 2 << 56)
    shifted = codec("columns").encode(column_shift=2, skip_span=1, use_span=1)
    assert (ptxmma.emulate(product, a, b, zero_column_mask_desc=shifted).d == 16).all()


@pytest.mark.parametrize(("arguments", "dtype"), [(_BF16, np.float32), (_S8, np.int32)])
def test_d_is_a_tensor_where_an_operand_is_one(arguments: dict[str, Any], dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    product = ptxmma.instruction(_F16.format(1) if arguments is _BF16 else "tcgen05.mma.cta_group::1.kind::i8", m=64, n=16, **arguments)
    m, n, k = product.shape or ()
    a, b = (np.ones(shape, ml_dtypes.bfloat16 if arguments is _BF16 else np.int8) for shape in ((m, k), (k, n)))
    d = ptxmma.emulate(product, a, b, torch.ones((m, n), dtype=getattr(torch, dtype.__name__))).d
    assert isinstance(d, torch.Tensor)
    assert d.numpy().dtype == dtype
    assert (d.numpy() == k + 1).all()


_SPARSE = "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale"


def test_scale_factors_of_a_lie_over_128_lanes_where_the_product_says_so() -> None:
    """A lane for each row of a CTA and no copies; the descriptor says so in a bit, and sm_107f alone has it."""
    opcode = "tcgen05.mma.cta_group::{}.kind::mxf4nvf4.block_scale.block16"
    sizes: dict[str, Any] = {"n": 128, "k": 128, "stype": "ue4m3"}
    usual, product = (ptxmma.instruction(opcode.format(2), m=256, scale_a_lanes=lanes, **sizes) for lanes in (32, 128))
    assert usual == ptxmma.instruction(opcode.format(2), m=256, **sizes) != product
    assert of_product(product) - of_product(usual) == 1 << 26
    assert set(product.accepted_by()) == {"sm_107f", "sm_107a"}
    scales = product.operand("scale-A-tmem")
    assert isinstance(scales, TensorOperand)
    assert (scales.axes, scales.apart, scales.columns) == (("row", "block"), (), 2)
    assert scales.locate(133, 6) == (1, 5, 1, 16)
    assert scales.coords(5, 1, 16, cta=1) == (133, 6)
    assert product.operand("scale-B-tmem").locate(33, 6) == usual.operand("scale-B-tmem").locate(33, 6)
    factors = np.arange(128 * 8, dtype=np.uint16).reshape(128, 8).astype(np.uint8) & 0x7F
    one = ptxmma.instruction(opcode.format(1), m=128, scale_a_lanes=128, **sizes).operand("scale-A-tmem")
    image = scaling.to_tensor_memory(factors, lanes=128)
    assert np.array_equal(image[:, :2], one.pack(factors)[:, :2])
    assert np.array_equal(scaling.from_tensor_memory(image, factors.shape, lanes=128), factors)
    assert tensor_memory.step(128, 2, 3, lanes=128) == (1, 2)
    with pytest.raises(ValueError, match="lanes = 128 is for scale factors of A alone"):
        scaling.to_tensor_memory(factors.T, axis=-2, lanes=128)
    with pytest.raises(ValueError, match=r"^lanes = 64: .*; legal: 32 or 128$"):
        scaling.to_tensor_memory(factors, lanes=64)
    with pytest.raises(IllegalProductError, match=r"does not allow scale_a_lanes = 64; legal: 32, 128 \(sm_107f\)"):
        ptxmma.instruction(opcode.format(1), m=128, scale_a_lanes=64, **sizes)
    narrow: dict[str, Any] = {"atype": "e4m3", "btype": "e4m3", "scale_a_lanes": 128}
    pair = ptxmma.instruction("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale", m=128, n=64, **narrow)
    with pytest.raises(ValueError, match="no source says where scale-A-tmem"):
        pair.operand("scale-A-tmem").locate(0, 0)


def test_versions_of_sparsity_follow_the_target() -> None:
    """sm_107a keeps two elements of four, earlier targets two pairs of eight; metadata, descriptors and compression follow the version."""
    old, new = (ptxmma.instruction(_SPARSE, m=128, n=64, sparsity_version=version) for version in ("v0", "v1"))
    assert old.variant.chosen == ptxmma.instruction(_SPARSE, m=128, n=64).variant.chosen
    assert ("sm_107a" in old.accepted_by(), set(new.accepted_by())) == (False, {"sm_107a"})
    assert of_product(new) - of_product(old) == 1 << 12
    assert (pattern_of(old).name, pattern_of(new).name) == ("4:8", "2:4")
    assert [each.operand("sp-meta-tmem").sizes["chunk"] for each in (old, new)] == [16, 32]
    with pytest.raises(IllegalProductError, match=r"does not allow sparsity_version = v2; legal: v0 \(sm_100a .*\), v1 \(sm_107a\)"):
        ptxmma.instruction(_SPARSE, m=128, n=64, sparsity_version="v2")
    with pytest.raises(IllegalProductError, match="has no sparsity_version; leave it out"):
        ptxmma.instruction(_SPARSE.replace(".sp", ""), m=128, n=64, sparsity_version="v1")


def test_sparse_products_of_sm_107a_are_emulated() -> None:
    """Elements 0 and 3 of each four, which no pair of pairs is."""
    product = ptxmma.instruction(_SPARSE, m=128, n=64, sparsity_version="v1")
    full = np.zeros((128, 128), np.uint8)
    full[:, ::4], full[:, 3::4] = 0x2, 0x4  # 1 and 2
    values, metadata = sparse.compress(full, product, element="e2m1")
    ones = np.full((128, 2), 127, np.uint8)
    done = ptxmma.emulate(product, values, np.full((128, 64), 0x2, np.uint8), metadata=metadata, scale_a=ones, scale_b=ones.T[:, :64])
    assert (done.matrix == 32 * 3).all()


def test_sparse_products_of_k_192_are_those_of_sm_107a() -> None:
    product = ptxmma.instruction(_SPARSE, m=128, n=64, k=192)
    assert (dict(product.variant.chosen)["sparsity_version"], set(product.accepted_by())) == ("v1", {"sm_107a"})
    assert of_product(product) >> 31 == 1
    with pytest.raises(IllegalProductError, match=r"sparsity_version = v0; legal: v1 \(sm_107a\)"):
        ptxmma.instruction(_SPARSE, m=128, n=64, k=192, sparsity_version="v0")


@pytest.mark.parametrize(
    ("opcode", "chosen", "targets", "blocks"),
    [
        ("mma.cta_group::1.kind::mxf8f6f4.block_scale", {"k": 64, "n": 8}, {"sm_107a", "sm_107f"}, 2),
        ("mma.cta_group::1.kind::mxf8f6f4.block_scale.block32", {"k": 64, "n": 256}, {"sm_107a", "sm_107f"}, 2),
        ("mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X", {"k": 64, "n": 64}, {"sm_107a"}, 2),
        ("mma.cta_group::2.kind::mxf8f6f4.block_scale", {"k": 64, "m": 256, "n": 16}, {"sm_107a", "sm_107f"}, 2),
        ("mma.sp.cta_group::1.kind::mxf8f6f4.block_scale", {"k": 128, "n": 64}, {"sm_107a", "sm_107f"}, 2),
        ("mma.sp.cta_group::2.kind::mxf8f6f4.block_scale.block32", {"k": 128, "m": 256, "n": 32}, {"sm_107a", "sm_107f"}, 2),
        ("mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::2X", {"k": 64, "n": 64, "stype": "ue4m3"}, {"sm_107a"}, 2),
    ],
)
def test_products_of_rubin(opcode: str, chosen: dict[str, Any], targets: set[str], blocks: int) -> None:
    """Twice the depth of FP8, and ue4m3 in blocks of 32 (PTX ISA 9.4, Tables 48 and 69 with their notes)."""
    element = "e2m1" if "mxf4" in opcode else "e4m3"
    given: dict[str, Any] = {"m": 128, "dtype": "f32", "atype": element, "btype": element} | chosen
    product = ptxmma.instruction(f"tcgen05.{opcode}", **given)
    assert set(product.accepted_by()) == targets
    assert product.operand("scale-A-tmem").sizes["block"] == blocks
    format = ptxmma.descriptors.codec("instruction", kind=product.qualifiers["kind"])
    assert not format.mistakes(ptxmma.descriptors.of_product(product))


@pytest.mark.parametrize(
    ("opcode", "chosen", "message"),
    [
        ("mma.cta_group::2.kind::mxf8f6f4.block_scale", {"k": 64, "m": 128}, "does not allow m = 128"),
        ("mma.sp.cta_group::2.kind::mxf8f6f4.block_scale", {"k": 128, "m": 128}, "does not allow m = 128"),
        ("mma.cta_group::1.kind::mxf8f6f4.block_scale", {"k": 128}, "k = 128"),
    ],
)
def test_what_rubin_does_not_take(opcode: str, chosen: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"m": 128, "n": 64, "dtype": "f32", "atype": "e4m3", "btype": "e4m3"} | chosen
    with pytest.raises(IllegalProductError, match=message):
        ptxmma.instruction(f"tcgen05.{opcode}", **given)


def test_ue5m3_factors_of_rubin_scale() -> None:
    """Factors of 2^-17, the smallest, and 114688, the largest (PTX ISA 9.4, 5.2.3: bias 15, NaN is 0xff)."""
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", m=128, n=8, k=64, stype="ue5m3")
    assert set(product.accepted_by()) == {"sm_107a", "sm_107f"}
    ones, factors = np.full((128, 64), 0x2, np.uint8), np.full((128, 4), 0x78, np.uint8)
    factors[0], factors[1] = 0x01, 0xFE
    result = ptxmma.emulate(product, ones, ones[:8].T, scale_a=factors, scale_b=factors[2:10].T)
    assert result.matrix[:3, 0].tolist() == [64 * 2.0**-17, 64 * 114688.0, 64]


@pytest.mark.parametrize(
    ("opcode", "m", "n", "extents"),
    [
        ("mma.cta_group::1", 64, 24, (64, 24, 16)),
        ("mma.cta_group::1", 128, 48, (128, 48, 16)),
        ("mma.cta_group::2", 256, 32, (256, 32, 16)),
        ("mma.ws.cta_group::1", 32, 64, (32, 64, 16)),
        ("mma.sp.cta_group::1", 128, 16, (128, 16, 32)),
    ],
)
def test_integers_of_a_sign_and_11_bits_multiply(opcode: str, m: int, n: int, extents: tuple[int, int, int]) -> None:
    product = ptxmma.instruction(f"tcgen05.{opcode}.kind::ti16", m=m, n=n)
    assert product.shape == extents
    k, random = extents[2], np.random.default_rng(11)
    a, b = (random.integers(-2047, 2048, shape).astype(np.int16) for shape in ((m, k), (k, n)))
    if ".sp" in opcode:
        a[:, 1::4] = a[:, 2::4] = 0
        values, metadata = sparse.compress(
            np.where(a < 0, 0x8000, 0).astype(np.uint16) | np.abs(a).astype(np.uint16), product, element="s1z4m11"
        )
        result = ptxmma.emulate(product, values, b, metadata=metadata)
    else:
        result = ptxmma.emulate(product, a, b)
    np.testing.assert_array_equal(result.matrix, a.astype(np.int64) @ b)
    if ".sp" not in opcode:  # the descriptor negates a matrix of these integers, which saturate no sum
        np.testing.assert_array_equal(ptxmma.emulate(product, a, b, negate_b=True).matrix, a.astype(np.int64) @ -b)
        np.testing.assert_array_equal(ptxmma.emulate(product, a, b, negate_a=True, negate_b=True).matrix, result.matrix)
        with pytest.raises(ValueError, match="does not saturate: saturate = 1 has no encoding"):
            ptxmma.emulate(product, a, b, saturate=True)
    assert not ptxmma.descriptors.codec("instruction", kind="kind::ti16").mistakes(of_product(product))


def test_what_integers_of_a_sign_and_11_bits_are_not() -> None:
    with pytest.raises(IllegalProductError, match="does not allow m = 128 with n = 24"):
        ptxmma.instruction("tcgen05.mma.cta_group::1.kind::ti16", m=128, n=24)
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::ti16", m=64, n=8)
    b = np.zeros((16, 8), np.uint16)
    assert ptxmma.emulate(product, np.full((64, 16), 0x8000, np.uint16), b).matrix.any() == np.False_
    with pytest.raises(ValueError, match="a holds 0x0800: the bits 0x7800 of s1z4m11 must be 0"):
        ptxmma.emulate(product, np.full((64, 16), 0x800, np.uint16), b)
    with pytest.raises(ValueError, match=r"a reaches from 2048 to 2048; s1z4m11 is -2047\.\.2047"):
        ptxmma.emulate(product, np.full((64, 16), 2048, np.int16), b)
