"""`ptxmma.matmul`: whole matrices against NumPy's product, its bound against sums that round at random, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import ptxmma
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices import scaling, sparse
from ptxmma.matrices.product_operands import product_operands
from ptxmma.matrices.products import whole
from random_operands import Draw, one_of_each, small
from random_rounding import Chip, Number, Rounding, added, drawn, floating

_BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
_F16 = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
_S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
_FP8 = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


def _operands(instruction: Instruction, shape: tuple[int, int, int], random: np.random.Generator) -> tuple[dict[str, Any], Array]:
    """Matrices of small integers for an instruction, and their product."""
    m, n, k = shape
    product = product_operands(instruction)
    a, b = small(product.a.element, (m, k), random), small(product.b.element, (k, n), random)
    assert product.c.element is not None
    c = small(product.c.element, (m, n), random)
    given: dict[str, Any] = {"a": a, "b": b, "c": c}
    if instruction.sparse:
        fields = random.choice([int(field, 2) for field in instruction.metadata.legal], (m, k // instruction.metadata.granularity.chunk))
        given["metadata"] = sparse.from_fields(fields)
        pattern = instruction.metadata.granularity
        given["a"] = a[:, : k * pattern.kept // pattern.chunk]
        a = sparse.decompress(given["a"], given["metadata"], pattern.name)
    left, right, addend = (matrix.astype(np.float64) for matrix in (a, b, c))
    if instruction.qualifiers.get("bitop") == "xor":
        return given, (left[:, :, None] != right[None]).sum(1) + addend
    if instruction.qualifiers.get("block_scale"):
        for name, lines, axis in (("a", (m, -1), -1), ("b", (-1, n), -2)):
            layout = instruction.scales(name)
            block = instruction.extents["k"] // layout.blocks
            blocks = -(-k // block)
            scales = (2.0 ** random.integers(-2, 3, [blocks if size < 0 else size for size in lines])).astype(
                elements.dtype(layout.element)
            )
            given[f"scale_{name}"] = scales
            factors = np.take(scales.astype(np.float64), np.arange(k) // block, axis=axis)
            left, right = (left * factors, right) if name == "a" else (left, right * factors)
    return given, left @ right + addend


@pytest.mark.parametrize("number", range(4))
def test_every_instruction_multiplies_whole_matrices(number: int) -> None:
    """Of sizes that no tile divides but K, which ends within a step where nothing else forbids it."""
    random = np.random.default_rng(number)
    for instruction in one_of_each()[number::4]:
        step = instruction.extents["k"]
        c, d = product_operands(instruction).c.element, product_operands(instruction).d.element
        assert c
        assert d
        steps = 1 if c.bits < d.bits else 3
        ragged = 0 if instruction.sparse else step // 2 - 2  # where elements have scale factors, K ends within a block, too
        given, expected = _operands(instruction, (5, 3, steps * step - ragged), random)
        result = ptxmma.matmul(instruction, **given, split_k=min(2, steps))
        assert (result.matrix == expected).all(), instruction.canonical
        assert result.d.dtype == elements.dtype(d)
        assert result.admits(result.d).all()
        assert np.isfinite(result.bound).all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("spelling", [_BF16, _F16, _FP8, "mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16"])
def test_a_tile_of_rows_is_computed_as_all_rows_are(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and bounds are the same bits, zeros, subnormals, infinities and NaNs included."""
    random = np.random.default_rng(7)
    instruction = ptxmma.instruction(spelling)
    product = product_operands(instruction)
    dtype, k = elements.dtype(product.a.element), 3 * instruction.extents["k"] - 4
    a, b = random.standard_normal((2, 67, k)).astype(dtype), random.standard_normal((k, 300)).astype(dtype)
    a[0, 3, 5], b[7, 9], a[1, 40, 7], b[9, 11] = 0, float(product.a.element.smallest_normal) / 2, np.nan, np.nan
    results = []
    for cached in (1 << 10, whole._CACHED, 1 << 30):
        monkeypatch.setattr(whole, "_CACHED", cached)
        results.append(ptxmma.matmul(instruction, a, b, split_k=2 if product.c.element == product.d.element else 1))
    for result in results[1:]:
        np.testing.assert_array_equal(result.matrix, results[0].matrix)
        np.testing.assert_array_equal(result.bound, results[0].bound)
        for chip, bound in result.observed.items():
            np.testing.assert_array_equal(bound, results[0].observed[chip])


def test_one_step_is_what_the_emulator_does() -> None:
    random = np.random.default_rng(0)
    for spelling in (_BF16, _F16, _S8):
        instruction = ptxmma.instruction(spelling)
        m, n, k = (instruction.extents[extent] for extent in "mnk")
        given, _ = _operands(instruction, (m, n, k), random)
        whole = ptxmma.matmul(instruction, **given)
        one = ptxmma.emulate(instruction, **{name: instruction.operand(name).pack(matrix) for name, matrix in given.items()})
        for name in ("matrix", "bound"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(one, name))
        assert whole.observed.keys() == one.observed.keys()
        np.testing.assert_array_equal(whole.d, instruction.operand("d").unpack(one.d))


@pytest.mark.parametrize("spelling", [_BF16, _F16])
def test_the_bound_is_that_of_a_chain_of_instructions(spelling: str) -> None:
    """`c_bound` is the error of the addend: a chain by hand has the bound of the loop, but counts D's rounding twice."""
    random = np.random.default_rng(3)
    instruction = ptxmma.instruction(spelling)
    a, b, d = (instruction.operand(name) for name in "abd")
    assert a.element
    left, right = (random.standard_normal(shape).astype(elements.dtype(a.element)) for shape in ((16, 128), (128, 8)))
    c: Any = None
    spread: Any = 0
    for first in range(0, 128, 16):
        step = ptxmma.emulate(instruction, a.pack(left[:, first : first + 16]), b.pack(right[first : first + 16]), c, c_bound=spread)
        c, spread = step.d, step.d_bound
    whole = ptxmma.matmul(instruction, left, right)
    assert (whole.bound <= spread).all()
    assert (spread <= 2.5 * whole.bound).all()
    assert (np.abs(d.unpack(c).astype(np.float64) - whole.matrix) <= spread).all()


def test_c_bound_must_be_a_distance() -> None:
    instruction = ptxmma.instruction(_S8)
    a, b = (instruction.operand(name).pack(np.zeros(shape, np.int8)) for name, shape in (("a", (16, 32)), ("b", (32, 8))))
    with pytest.raises(ValueError, match="c_bound must be 0: sums of s8 are exact"):
        ptxmma.emulate(instruction, a, b, c_bound=1)
    for wrong in (-1, "far", np.zeros((3, 3)), np.nan):
        with pytest.raises(ValueError, match=r"c_bound says how far each addend may be from C: numbers, 0 or more, \(..., 16, 8\)"):
            ptxmma.emulate(instruction, a, b, c_bound=wrong)  # type: ignore[arg-type]  # a text


# --- a kernel that rounds as it likes -------------------------------------------------------------------------------------------


def _kernel(instruction: Instruction, a: Array, b: Array, split_k: int, random: np.random.Generator) -> Array:
    """A result that the manual admits: within a step in any order, rounded in any direction, each step rounded to D."""
    spec, semantics = instruction.database.spec, instruction.semantics()[0]
    d_type = product_operands(instruction).d.element
    assert d_type
    add = Rounding(layouts.element_type(spec, semantics.sums), d_type, how=semantics.rounds, random=random)
    to_d = Rounding(d_type, how="", random=random)
    step, answer = instruction.extents["k"], np.zeros((a.shape[0], b.shape[1]))
    steps = [range(first, min(first + step, a.shape[1])) for first in range(0, a.shape[1], step)]
    for row, col in np.ndindex(answer.shape):
        parts: list[Number] = []
        for part in range(split_k):
            total: Number = Fraction(0)
            for along in steps[len(steps) * part // split_k : len(steps) * (part + 1) // split_k]:
                terms: list[Number] = [total, *(Fraction(float(a[row, k])) * Fraction(float(b[k, col])) for k in along)]
                while len(terms) > 1:
                    one, other = (terms.pop(int(random.integers(len(terms)))) for _ in range(2))
                    terms.append(add(added(one, other)))
                total = to_d(terms[0])
            parts.append(total)
        while len(parts) > 1:
            one, other = (parts.pop(int(random.integers(len(parts)))) for _ in range(2))
            parts.append(to_d(added(one, other)))
        answer[row, col] = float(parts[0])
    return answer


@pytest.mark.parametrize("split_k", [1, 3])
@pytest.mark.parametrize("spelling", [_BF16, _F16, _FP8, "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16"])
def test_what_the_manual_allows_is_admitted(spelling: str, split_k: int) -> None:
    random = np.random.default_rng(split_k)
    instruction = ptxmma.instruction(spelling)
    for width in (0, 6):  # numbers of one size, and of many
        matrices = []
        for shape in ((3, 200), (200, 3)):
            exponents = random.integers(-width, width + 1, shape)
            matrices.append(
                (random.standard_normal(shape) * np.exp2(exponents)).astype(elements.dtype(product_operands(instruction).a.element))
            )
        result = ptxmma.matmul(instruction, *matrices, split_k=split_k)
        answer = _kernel(instruction, matrices[0], matrices[1], split_k, random)
        assert np.isfinite(result.bound).all()
        assert (np.abs(answer - result.matrix) > 0).any()
        assert result.admits(answer).all()


class _Slice(NamedTuple):
    """The operands of one step, as :class:`random_rounding.Chip` reads them."""

    a: Array
    b: Array
    c: Array
    kept: Array
    scales: dict[str, Array]


def _wild(instruction: Instruction, draw: Draw, random: np.random.Generator) -> tuple[dict[str, Any], Array, Array, dict[str, Array]]:
    """Operands of three steps, two rows and two columns; A without sparsity, what it keeps, and a scale factor for each element."""
    product, step = product_operands(instruction), instruction.extents["k"]
    a, b = draw(product.a.element, (2, 3 * step), random), draw(product.b.element, (3 * step, 2), random)
    assert product.c.element
    given: dict[str, Any] = {"a": a, "b": b, "c": draw(product.c.element, (2, 2), random)}
    kept, scales = np.ones(a.shape, bool), {}
    if instruction.sparse:
        pattern, legal = instruction.metadata.granularity, [int(field, 2) for field in instruction.metadata.legal]
        rows = sparse.from_fields(random.choice(legal, (2, 3 * step // pattern.chunk)).astype(np.uint8))
        given |= {"a": a[:, : 3 * step * pattern.kept // pattern.chunk], "metadata": rows}
        a = sparse.decompress(given["a"], rows, pattern.name)
        kept = sparse.decompress(np.ones(given["a"].shape, np.uint8), rows, pattern.name) > 0
    if instruction.qualifiers.get("block_scale"):
        for name, axis in (("a", -1), ("b", -2)):
            layout = instruction.scales(name)
            blocks = 3 * layout.blocks
            given[f"scale_{name}"] = draw(layout.element, (2, blocks) if name == "a" else (blocks, 2), random)
            scales[name] = np.repeat(given[f"scale_{name}"], step // layout.blocks, axis=axis)
    return given, a, kept, scales


@pytest.mark.filterwarnings("ignore::ptxmma.matrices.products.guarantees.UnpromisedWarning")  # of the elements that are not judged
@pytest.mark.parametrize("where", ["middle", "smallest", "largest", "anywhere"])
def test_three_steps_of_every_instruction_are_admitted_whatever_the_manual_leaves_open(where: str) -> None:
    random = np.random.default_rng(1)
    ordinary = special = 0
    for instruction in floating():
        c_type, d_type, step = product_operands(instruction).c.element, product_operands(instruction).d.element, instruction.extents["k"]
        assert c_type
        assert d_type
        if c_type.mantissa < d_type.mantissa:
            continue  # its result cannot be its next addend
        with np.errstate(all="ignore"):
            given, a, kept, scales = _wild(instruction, drawn(where), random)
            result = ptxmma.matmul(instruction, **given)
            place, choices = (int(random.integers(2)), int(random.integers(2))), int(random.integers(1 << 30))
            answer = given["c"]
            for first in range(0, 3 * step, step):
                along = slice(first, first + step)
                each = {name: factors[:, along] if name == "a" else factors[along] for name, factors in scales.items()}
                operands = _Slice(a[:, along], given["b"][along], answer.astype(elements.dtype(c_type)), kept[:, along], each)
                chip = Chip(instruction, operands, np.random.default_rng(choices))  # type: ignore[arg-type]  # what it reads of them
                answer = np.full((2, 2), chip.answer(place)).astype(elements.dtype(d_type))
            assert result.admits(answer)[place], (instruction.canonical, place, answer[place], result.matrix[place], result.bound[place])
        ordinary += int(0 < result.bound[place] < np.inf)
        special += int(not np.isfinite(result.matrix[place]) and result.bound[place] == 0)
    assert special if where == "anywhere" else ordinary


def test_a_long_sum_is_not_refused_and_a_lost_product_is_found() -> None:
    """The bound of the last instruction alone refuses elements of a correct kernel over K = 8192."""
    random = np.random.default_rng(8)
    instruction = ptxmma.instruction(_BF16)
    a, b = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((16, 8192), (8192, 8)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    kernel = np.zeros((16, 8), np.float32)
    for k in range(8192):  # one product after another, in single precision
        kernel += a[:, k : k + 1].astype(np.float32) * b[k : k + 1].astype(np.float32)
    result = ptxmma.matmul(instruction, a, b)
    assert np.abs(result.matrix - exact).max() < 1e-9
    assert result.admits(kernel).all()
    assert result.admits(kernel.astype(ml_dtypes.bfloat16)).all()
    last = ptxmma.emulate(
        instruction,
        instruction.operand("a").pack(a[:, -16:]),
        instruction.operand("b").pack(b[-16:]),
        instruction.operand("c").pack((exact - a[:, -16:].astype(np.float64) @ b[-16:].astype(np.float64)).astype(np.float32)),
    )
    assert last.admits(instruction.operand("d").pack(kernel)).mean() < 0.95
    for k in (0, 4000, 8191):
        row, col = np.unravel_index(np.argmax(np.abs(np.outer(a[:, k].astype(float), b[k].astype(float)))), (16, 8))
        lost = kernel.copy()
        lost[row, col] -= np.float32(a[row, k]) * np.float32(b[k, col])
        assert np.argwhere(~result.admits(lost)).tolist() == [[row, col]]


def test_a_narrower_result_may_be_rounded_once_more() -> None:
    instruction = ptxmma.instruction(_BF16)
    a, b = np.full((1, 16), 1 / 3).astype(ml_dtypes.bfloat16), np.full((16, 1), 1 / 3).astype(ml_dtypes.bfloat16)
    result = ptxmma.matmul(instruction, a, b)
    nearest = result.matrix.astype(ml_dtypes.bfloat16)
    unit = float(np.spacing(nearest)[0, 0])
    assert result.admits(nearest).all()
    assert not result.admits((nearest.astype(np.float64) + 2 * unit).astype(ml_dtypes.bfloat16)).any()
    assert not result.admits(nearest.astype(np.float32) + np.float32(unit)).any()  # in single precision that much is wrong
    huge = ptxmma.matmul(instruction, np.full((1, 16), 2.0**10, ml_dtypes.bfloat16), np.full((16, 1), 2.0**10, ml_dtypes.bfloat16))
    assert huge.admits(np.full((1, 1), np.inf, np.float16)).all()  # beyond float16


def test_infinities_and_nans_decide() -> None:
    instruction = ptxmma.instruction(_BF16)
    a, b = np.ones((3, 48), ml_dtypes.bfloat16), np.ones((48, 1), ml_dtypes.bfloat16)
    a[0, 3], a[1, 40], a[2, 3], a[2, 40] = np.inf, np.nan, np.inf, -np.inf
    for split_k in (1, 2, 3):
        result = ptxmma.matmul(instruction, a, b, split_k=split_k)
        np.testing.assert_array_equal(result.matrix, [[np.inf], [np.nan], [np.nan]])
        assert (result.bound == 0).all()
        assert not result.admits(np.full((3, 1), 7, np.float32)).any()
    a[0, 30], b[30] = 3e38, -3e38  # may overflow before it meets the infinity
    assert np.isinf(ptxmma.matmul(instruction, a, b, split_k=3).bound[0, 0])


def test_sums_of_integers_wrap_or_saturate() -> None:
    a, b = np.full((1, 64), 127, np.int8), np.full((64, 1), 127, np.int8)
    b[:32] = -127
    c = np.full((1, 1), 2**31 - 1, np.int32)
    assert ptxmma.matmul(_S8, a[:, 32:], b[32:], c).matrix == -(2**31) + 32 * 127 * 127 - 1
    saturating = _S8.replace("col.", "col.satfinite.")
    beyond = ptxmma.matmul(saturating, a, b, c)  # in this order nothing saturates, in another it does
    assert np.isinf(beyond.bound).all()
    assert (ptxmma.matmul(saturating, a, b).bound == 0).all()


# --- tensor memory -----------------------------------------------------------------------------------------------------------


def test_products_in_tensor_memory_go_along_k_as_the_emulator_does() -> None:
    """Dense, sparse, scaled and of integers: two steps are two of `emulate`, of any M and N, and the last block may be cut off."""
    random = np.random.default_rng(4)
    one = "tcgen05.mma.cta_group::1.kind::"
    types: dict[str, Any] = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
    dense = ptxmma.instruction(one + "f16", m=128, n=64, **types)
    a, b = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((128, 32), (32, 64)))
    whole, first = ptxmma.matmul(dense, a, b), ptxmma.emulate(dense, a[:, :16], b[:16])
    chained = ptxmma.emulate(dense, a[:, 16:], b[16:], first.d)
    assert whole.admits(chained.d).all()
    assert not whole.admits(chained.d + np.float32(0.01)).any()
    np.testing.assert_allclose(whole.matrix, a.astype(np.float64) @ b.astype(np.float64), atol=1e-9)
    assert ptxmma.matmul(dense, a[:5], b[:, :3]).d.shape == (5, 3)
    assert (ptxmma.matmul(dense, a, b, sums="f16").bound > 1000 * whole.bound).all()
    with pytest.raises(ValueError, match="unknown floating-point type 'f31'; known: "):
        ptxmma.matmul(dense, a, b, sums="f31")
    halved = ptxmma.instruction("tcgen05.mma.sp.cta_group::1.kind::f16", m=128, n=64, **types)
    pruned = sparse.prune(np.concatenate([a, a], -1), "2:4")
    values, metadata = sparse.compress(pruned, "2:4")
    long = np.concatenate([b, b])
    np.testing.assert_allclose(
        ptxmma.matmul(halved, values, long, metadata=metadata).matrix, pruned.astype(np.float64) @ long.astype(np.float64), atol=1e-9
    )
    scaled = ptxmma.instruction(one + "mxf8f6f4.block_scale", m=128, n=64, atype="e4m3", btype="e4m3")
    eights = np.ones((128, 80), ml_dtypes.float8_e4m3fn), np.ones((80, 64), ml_dtypes.float8_e4m3fn)
    factors = (2.0 ** np.arange(3)).astype(ml_dtypes.float8_e8m0fnu)
    result = ptxmma.matmul(scaled, *eights, scale_a=np.broadcast_to(factors, (128, 3)), scale_b=np.broadcast_to(factors[:, None], (3, 64)))
    assert (result.matrix == 32 + 32 * 4 + 16 * 16).all()
    integers = ptxmma.instruction(one + "i8", m=128, n=64, dtype="s32", atype="s8", btype="s8")
    left, right = random.integers(-128, 128, (9, 70)).astype(np.int8), random.integers(-128, 128, (70, 7)).astype(np.int8)
    np.testing.assert_array_equal(ptxmma.matmul(integers, left, right).d, left.astype(np.int64) @ right.astype(np.int64))
    with pytest.raises(ValueError, match="does not state"):
        ptxmma.matmul(ptxmma.instruction(one + "f16"), a, b)
    shifting = ptxmma.instruction(one + "f16.ashift", m=128, n=64, **types)
    plain = ptxmma.instruction(one + "f16", m=128, n=64, **types)
    np.testing.assert_array_equal(ptxmma.matmul(shifting, a, b).d, ptxmma.matmul(plain, a, b).d)


# --- sparse and scaled ----------------------------------------------------------------------------------------------------------


def test_a_sparse_matrix_as_compress_gives_it() -> None:
    random = np.random.default_rng(1)
    instruction = ptxmma.instruction(_SPARSE)
    weights = sparse.prune(random.standard_normal((20, 96)).astype(np.float16), instruction)
    x = random.standard_normal((96, 9)).astype(np.float16)
    values, metadata = sparse.compress(weights, instruction)
    result = ptxmma.matmul(instruction, values, x, metadata=metadata)
    np.testing.assert_allclose(result.matrix, weights.astype(np.float64) @ x.astype(np.float64), atol=1e-9)
    assert result.admits(weights.astype(np.float32) @ x.astype(np.float32)).all()
    with pytest.raises(ValueError, match=r"needs metadata: ptxmma\.sparse\.compress gives it"):
        ptxmma.matmul(instruction, values, x)
    with pytest.raises(ValueError, match="takes no metadata"):
        ptxmma.matmul(_BF16.replace("bf16", "f16"), weights, x, metadata=metadata)
    with pytest.raises(ValueError, match=r"the metadata of row 0, chunk 0 is 0b0001, out of order in 2:4; legal: 0b0100"):
        ptxmma.matmul(instruction, values, x, metadata=sparse.from_fields(np.full((20, 24), 0b0001, np.uint8)))


def test_a_scaled_matrix_as_quantise_gives_it() -> None:
    random = np.random.default_rng(2)
    instruction = ptxmma.instruction(_SCALED)
    weights, x = random.standard_normal((20, 160)).astype(np.float32), random.standard_normal((160, 9)).astype(np.float32)
    left, right = scaling.quantise(weights, scaling.of(instruction, "a")), scaling.quantise(x, scaling.of(instruction, "b"))
    result = ptxmma.matmul(instruction, left.elements, right.elements, scale_a=left.scales, scale_b=right.scales)
    exact = scaling.dequantise(*left, "nvfp4").astype(np.float64) @ scaling.dequantise(*right, scaling.of(instruction, "b"))
    np.testing.assert_allclose(result.matrix, exact, atol=1e-9)
    with pytest.raises(ValueError, match="needs scale_b"):
        ptxmma.matmul(instruction, left.elements, right.elements, scale_a=left.scales)
    with pytest.raises(ValueError, match=r"scale_a has shape \(20, 9\); a of shape \(20, 160\) has blocks of 16, which are \(20, 10\)"):
        ptxmma.matmul(instruction, left.elements, right.elements, scale_a=left.scales[:, 1:], scale_b=right.scales)


def test_the_observed_sums_of_a_chip() -> None:
    """FP8 on an H200 keeps 13 bits; adding to another accumulator every 128 elements of K keeps more."""
    random = np.random.default_rng(4)
    a, b = (random.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((8, 1024), (1024, 8)))
    once, often = ptxmma.matmul(_FP8, a, b), ptxmma.matmul(_FP8, a, b, split_k=8)
    assert (often.observed["H200"] < once.observed["H200"]).all()
    assert (often.bound < once.bound).all()
    assert once.admits(once.d, chip="H200").all()
    with pytest.raises(ValueError, match="nothing is observed of 'B200'"):
        once.admits(once.d, chip="B200")


# --- arguments ------------------------------------------------------------------------------------------------------------------


def test_batches_and_tensors() -> None:
    random = np.random.default_rng(5)
    a, b = (random.integers(-8, 8, shape).astype(np.float16) for shape in ((2, 3, 5, 40), (40, 7)))
    result = ptxmma.matmul("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", a, b, split_k=3)
    assert (result.matrix == a.astype(np.float64) @ b.astype(np.float64)).all()
    assert result.bound.shape == (2, 3, 5, 7)
    torch = pytest.importorskip("torch")
    tensors = ptxmma.matmul(_BF16, torch.ones(4, 32, dtype=torch.bfloat16), torch.ones(32, 4, dtype=torch.bfloat16))
    assert tensors.d.dtype == torch.float32
    assert tensors.admits(torch.full((4, 4), 32.0)).all()
    assert tensors.admits(torch.full((4, 4), 32.0, dtype=torch.bfloat16)).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"b": (17, 4)}, "a reaches over K = 16, b over K = 17: b is (..., K, N)"),
        ({"a": (16,)}, "a has shape (16,); it has rows and columns"),
        ({"c": (4, 3)}, "c has shape (4, 3); the product has (4, 4)"),
        ({"split_k": 2}, "split_k = 2 is out of range: K = 16 has 1 steps of 16"),
        ({"split_k": 0}, "split_k = 0 is out of range"),
        ({"scale_a": (4, 1)}, "takes no scale_a"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], said: str) -> None:
    arguments = {"a": (4, 16), "b": (16, 4)} | given
    made: dict[str, Any] = {
        name: np.zeros(value, np.float32 if name == "c" else ml_dtypes.bfloat16) if isinstance(value, tuple) else value
        for name, value in arguments.items()
    }
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message is looked at
        ptxmma.matmul(_BF16, **made)
    assert said in str(error.value)


def test_an_impossible_result_is_refused() -> None:
    result = ptxmma.matmul(_BF16, np.ones((2, 16), ml_dtypes.bfloat16), np.ones((16, 2), ml_dtypes.bfloat16))
    with pytest.raises(ValueError, match=r"d has shape \(2, 3\); the product has \(2, 2\)"):
        result.admits(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="d has dtype uint32; pass numbers, not bits"):
        result.admits(np.ones((2, 2), np.uint32))
    whole = ptxmma.matmul(_S8, np.ones((2, 32), np.int8), np.ones((32, 2), np.int8))
    with pytest.raises(ValueError, match="is integers"):
        whole.admits(np.ones((2, 2), np.float32))
    assert whole.admits(np.full((2, 2), 32)).all()


def test_only_products_multiply() -> None:
    with pytest.raises(ValueError, match="does not multiply"):
        ptxmma.matmul("movmatrix.sync.aligned.m8n8.trans.b16", np.ones((8, 8)), np.ones((8, 8)))
    narrow = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16"
    ones = np.ones((8, 8), np.float16)
    assert (ptxmma.matmul(narrow, ones[:, :4], ones[:4]).matrix == 4).all()
    with pytest.raises(ValueError, match="adds f16 and gives f32: its result cannot be its next addend; K = 8 needs 2 steps"):
        ptxmma.matmul(narrow, ones, ones)
