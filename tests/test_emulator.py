"""The emulator without a GPU: every instruction against the matrix product, the bound against sums in any order, bad operands."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxmma
from ptxmma import paths
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.generator import pipeline
from ptxmma.matrices import shared_memory, sparse
from ptxmma.matrices.operations import operation
from ptxmma.matrices.products import arithmetic
from ptxmma.matrices.products.arithmetic import Factors, Products
from ptxmma.matrices.products.guarantees import UnpromisedWarning
from ptxmma.model import ElementType, Spec
from random_operands import Draw, Operands, one_of_each
from random_rounding import Chip, Number, Rounding, added, drawn, floating

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
_SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"
_WGMMA_FP8 = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"


def numbers_of(instruction: Instruction, registers: Array) -> Array:
    return np.asarray(instruction.operand("d").unpack(registers)).astype(np.float64)


@pytest.mark.parametrize("number", range(4))
def test_every_instruction_multiplies(number: int) -> None:
    random = np.random.default_rng(number)
    for instruction in one_of_each()[number::4]:
        selectors = instruction.metadata.selectors if instruction.sparse else 1
        for selector, from_memory in itertools.product(range(selectors), (False, True)[: len(instruction.forms)]):
            operands = Operands(instruction, random, from_memory=from_memory, selector=selector)
            result, product = ptxmma.emulate(instruction, **operands.arguments), operands.product()
            assert (numbers_of(instruction, result.d) == product).all(), instruction.canonical
            assert (result.matrix == product).all()
            assert result.admits(result.d).all()


# --- integers and single bits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("saturate", "expected"), [(True, 2**31 - 1), (False, -(2**31) + 31 * 100 - 1 - 5)])
def test_overflow_saturates_or_wraps(saturate: bool, expected: int) -> None:
    ins = ptxmma.instruction(_S8.replace("col.", "col.satfinite.") if saturate else _S8)
    a, b = np.full((16, 32), 10, np.int8), np.full((32, 8), 10, np.int8)
    b[0] = 0
    c = np.full((16, 8), 2**31 - 1 - 5, np.int32)
    d = ins.operand("d").unpack(ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b), ins.operand("c").pack(c)).d)
    assert (d == expected).all()


# --- a chip that does what the manual says, in exact arithmetic ------------------------------------------------------------------


def places(admitted: Array, random: np.random.Generator, count: int) -> Iterator[tuple[int, ...]]:
    for _ in range(count):
        yield tuple(int(random.integers(size)) for size in admitted.shape)


def test_the_attributes_of_results_have_types() -> None:
    """mypy, which reads the tests, refuses the name: an ignore without a reason would be an error."""
    zeros = np.zeros((32, 1), np.uint32)
    with pytest.raises(AttributeError):
        ptxmma.emulate("movmatrix", zeros).register  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("where", ["middle", "smallest", "largest", "anywhere"])
def test_what_the_manual_allows_is_admitted(where: str) -> None:
    random = np.random.default_rng(1)
    ordinary = special = 0
    with np.errstate(all="raise"):
        for instruction in floating():
            with np.errstate(all="ignore"):
                operands = Operands(instruction, random, drawn(where))
            result = ptxmma.emulate(instruction, **operands.arguments)
            answers = np.asarray(instruction.operand("d").unpack(result.d)).copy()
            for place in places(result.matrix, random, 3):
                with np.errstate(all="ignore"):
                    answers[place] = Chip(instruction, operands, random).answer(place)
                assert result.admits(instruction.operand("d").pack(answers))[place], (instruction.canonical, place, answers[place])
                ordinary += int(0 < result.bound[place] < np.inf)
                special += int(not np.isfinite(result.matrix[place]) and result.bound[place] == 0)
    assert special if where == "anywhere" else ordinary  # not only sums of which nothing is promised


def filled(*numbers: float) -> Draw:
    """Draws matrices in turn, each full of one number."""
    each = iter(numbers)

    def draw(element: ElementType, shape: tuple[int, ...], _random: np.random.Generator) -> Array:
        return np.full(shape, next(each)).astype(elements.dtype(element))

    return draw


def test_a_sum_that_the_manual_allows_comes_close_to_the_bound() -> None:
    """Small products added to a large addend, each sum rounded up: a bound much wider than that would promise less than the manual."""
    random = np.random.default_rng(0)
    for instruction in floating():
        spec, semantics = instruction.database.spec, instruction.semantics()[0]
        qualifiers = instruction.qualifiers
        names = (qualifiers["atype"], qualifiers["btype"], semantics.sums, qualifiers["dtype"])
        a_type, b_type, sums, result = (layouts.element_type(spec, name) for name in names)
        addend = layouts.element_type(spec, qualifiers.get("ctype") or result.name)
        large = 2.0 ** (min(addend.emax, result.emax) - 3)
        left, right = (max(element.smallest_normal, 2.0**-16) for element in (a_type, b_type))
        if semantics.rounds == "nearest":
            left = large * sums.unit * (0.5 + 2.0**-9) / right  # the product is a little more than half a unit in the last place
        operands = Operands(instruction, random, filled(left, right, large, 1, 1))
        emulated = ptxmma.emulate(instruction, **operands.arguments)
        place = (0,) * emulated.matrix.ndim
        term = Fraction(left) * Fraction(right)
        count = int(operands.kept[place[:-1]].sum())
        round_up = Rounding(sums, result, how=semantics.rounds or "up", random=random)
        total: Number = Fraction(large)
        for _ in range(count):
            total = round_up(added(total, term))
        exact = Fraction(large) + count * term
        if result.mantissa < sums.mantissa:  # one rounding to D outweighs the rest: then the bound is one unit in its last place
            assert emulated.bound[place] <= 1.01 * result.unit * exact
            continue
        attained = Rounding(result, how="up", random=random)(total) - exact
        slack = 4 if sums.name == "f64" else 1.1 * (count + 1) / count  # for f64 the emulator's own precision counts as well
        assert attained <= emulated.bound[place] <= slack * attained, instruction.canonical


# --- where nothing, or just one answer, is promised ------------------------------------------------------------------------------


def answered(spelling: str, a: Any, b: Any, answer: float, chip: str | None = None) -> tuple[float, float, bool]:
    """Value and bound of D's first element for a row of A and a column of B, and whether it admits an answer."""
    ins = ptxmma.instruction(spelling)
    matrices = []
    for name, line in (("a", a), ("b", b)):
        operand = ins.operand(name)
        assert operand.element is not None
        matrix = np.zeros((operand.rows, operand.cols), elements.dtype(operand.element))
        line = np.asarray(line, np.float64).astype(matrix.dtype) if not isinstance(line, np.ndarray) else line
        if name == "a":
            matrix[0, : len(line)] = line
        else:
            matrix[: len(line), 0] = line
        matrices.append(operand.pack(matrix))
    with np.errstate(all="raise"):
        result = ptxmma.emulate(ins, *matrices)
        d = np.asarray(ins.operand("d").unpack(result.d)).copy()
        d[0, 0] = answer
        return float(result.matrix[0, 0]), float(result.bound[0, 0]), bool(result.admits(ins.operand("d").pack(d), chip)[0, 0])


_F64 = "mma.sync.aligned.m8n8k4.row.col.rz.f64.f64.f64.f64"
_BF16 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
_TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
_INF, _NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("spelling", "a", "b", "answer"),
    [
        (_F64, [1e200], [1e200], np.finfo(np.float64).max),  # the product overflows; .rz gives the largest number
        (_F64, [1.7e308, 1.7e308, -1.7e308], [1, 1, 1], 1.7e308),  # finite, or not, by the order
        (_F64, [1.7e308, 1.7e308, -1.7e308], [1, 1, 1], _INF),
        (_F64, [1e200, -1e200], [1e200, 1e200], 0),  # NaN, as in double precision
        (_F64, [1e200, -1e200], [1e200, 1e200], -_INF),
        (_BF16, [_INF, -3e38], [1, 3e38], _NAN),  # the finite product may overflow first
        (_BF16, [_INF], [1e-40], _NAN),  # a subnormal number may count as 0
        (_BF16, [_INF], [1e-40], _INF),
        (_TF32, np.array([0x7F800001], np.uint32).view(np.float32), [1], _INF),  # the bits that make it a NaN may be dropped
        (_TF32, np.array([0x7F800001], np.uint32).view(np.float32), [1], _NAN),
        (_TF32, np.array([0x7F7FFFFF], np.uint32).view(np.float32), [1e-10], _INF),  # rounding to tf32 overflows
        (_TF32, np.array([0x7F7FFFFF], np.uint32).view(np.float32), [0], _NAN),
    ],
)
def test_nothing_is_promised_where_the_manual_leaves_more_than_one_answer(spelling: str, a: Any, b: Any, answer: float) -> None:
    _, bound, admitted = answered(spelling, a, b, answer)
    assert bound == _INF
    assert admitted


@pytest.mark.parametrize(
    ("spelling", "a", "b", "value"),
    [
        (_F64, [_INF, 1e200], [1, 1], _INF),
        (_F64, [_INF, 1e200, 1e200], [1, 1e200, -1e200], None),  # finite terms may overflow
        (_F64, [_INF, _INF, 1e200], [1, -1, 1e200], _NAN),  # whatever the finite term does
        (_BF16, [_INF, -3e38], [1, 1], _INF),
        (_BF16, [_INF], [0], _NAN),
        (_BF16, [_NAN, 3e38], [1, 3e38], _NAN),
        (_BF16, [-_INF], [-1e-30], _INF),
        (_TF32, np.array([0x7FC00001], np.uint32).view(np.float32), [1], _NAN),
        (_TF32, [_INF], np.array([0x3F800001], np.uint32).view(np.float32), _INF),
    ],
)
def test_an_infinity_that_every_order_gives_is_promised(spelling: str, a: Any, b: Any, value: float | None) -> None:
    d, bound, admitted = answered(spelling, a, b, 7.0)
    assert admitted == (value is None)
    if value is not None:
        assert bound == 0
        np.testing.assert_equal(d, value)


def test_a_chip_on_which_subnormal_inputs_count_leaves_no_choice_there() -> None:
    assert answered(_BF16, [_INF], [1e-40], _INF, "H200")[2]
    assert not answered(_BF16, [_INF], [1e-40], _NAN, "H200")[2]


def test_a_narrower_d_adds_one_unit_in_the_last_place_of_the_result() -> None:
    """A unit of the result, not of the sum of magnitudes; half-precision sums, which a chip makes, are among the observations."""
    spelling = "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16"
    terms = [128, -128, 1], [128, 128, 1]
    value, bound, admitted = answered(spelling, *terms, 1.0)
    assert value == 1
    assert bound == pytest.approx(3 * 2.0**-23 * 32769 + 2.0**-10, rel=0.02)
    assert admitted
    with pytest.warns(UnpromisedWarning, match="within what an H200 computes: pass chip='H200'"):
        assert not answered(spelling, *terms, 9.0)[2]
    assert answered(spelling, *terms, 9.0, "H200")[2]


def test_more_digits_than_half_precision_reach_as_far_as_d() -> None:
    ins = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2")
    a = np.full((64, 32), 2.0**-14).astype(ml_dtypes.float8_e5m2)
    layout = shared_memory.SharedLayout("e5m2", "K", "none", 8, 32)
    result = ptxmma.emulate(ins, ins.operand("a").pack(a), layout.descriptor(), memory=layout.store_xk(a[:8]))
    assert (result.matrix == 2.0**-23).all()
    assert (result.bound < 0.04 * result.matrix).all()


def test_more_terms_than_a_type_counts_have_no_bound(spec: Spec) -> None:
    """With more than 1 / u terms, each may be rounded away, and the sum can be any number."""
    f16, f32 = (layouts.element_type(spec, name) for name in ("f16", "f32"))
    k = 1500
    ones = products(np.ones((1, k)), np.ones((k, 1)), None, f16, f32)
    assert np.isinf(arithmetic.bound(ones, f16, f32)).all()
    assert np.isfinite(arithmetic.bound(ones, f32, f32)).all()


# --- floating point ---------------------------------------------------------------------------------------------------------


def products(a: Array, b: Array, c: Array | None, element: ElementType, c_type: ElementType, kept: Array | None = None) -> Products:
    return Products(
        factors(a, element),
        np.ones(a.shape, bool) if kept is None else kept,
        factors(b, element),
        np.zeros((a.shape[0], b.shape[1])) if c is None else c,
        c_type,
    )


def factors(numbers: Array, element: ElementType) -> Factors:
    return Factors.of(elements.codes(numbers.astype(elements.dtype(element)), element), element)


def spread(random: np.random.Generator, k: int, element: ElementType, c_type: ElementType) -> Products:
    """Random terms with exponents far apart."""

    def numbers(*shape: int) -> Array:
        return random.choice([-1, 1], shape) * (1 + random.random(shape)) * 2.0 ** random.integers(-6, 7, shape)

    return products(numbers(4, k), numbers(k, 4), numbers(4, 4).astype(np.float32).astype(np.float64), element, c_type)


@pytest.fixture(scope="module")
def spec() -> Spec:
    return ptxmma.instruction(_F16).database.spec


def test_a_result_beyond_the_bound_is_not_admitted() -> None:
    ins = ptxmma.instruction(_F16)
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    result = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    assert result.bound.max() < 1e-4
    wrong = np.full((16, 8), 16, np.float32)
    wrong[3, 5] = 16.001
    admitted = result.admits(ins.operand("d").pack(wrong))
    assert not admitted[3, 5]
    assert admitted.sum() == 16 * 8 - 1


def test_more_terms_have_a_wider_bound_and_dropped_ones_none(spec: Spec) -> None:
    f16, f32 = (layouts.element_type(spec, name) for name in ("f16", "f32"))
    ones, kept = np.ones((1, 8)), np.arange(8)[None] < 4
    full = products(ones, ones.T, None, f16, f32)
    half = products(ones * kept, ones.T, None, f16, f32, kept)
    assert arithmetic.bound(full, f32, f32) > 2 * arithmetic.bound(half, f32, f32)
    assert half.count(np.zeros(())) == 4


def test_subnormal_inputs_may_count_for_nothing_or_do_count(spec: Spec) -> None:
    f16, f32 = (layouts.element_type(spec, name) for name in ("f16", "f32"))
    tiny = 2.0**-20
    terms = products(np.full((1, 1), tiny), np.full((1, 1), 1024.0), None, f16, f32)
    assert arithmetic.bound(terms, f32, f32)[0, 0] >= tiny * 1024
    assert arithmetic.bound(terms, f32, f32, subnormals=True)[0, 0] < tiny


def test_scale_factors_leave_the_bound_as_tight_as_it_is(spec: Spec) -> None:
    """Whether an element is subnormal, and how many bits it has, does not depend on its scale factor."""
    e2m1, ue4m3, f32 = (layouts.element_type(spec, name) for name in ("e2m1", "ue4m3", "f32"))
    a, ones = np.full((1, 64), 1.5), np.ones((64, 1))
    terms = Products(
        factors(a, e2m1).times(factors(np.full((1, 64), 1.125 * 2.0**-6), ue4m3)), a > 0, factors(ones, e2m1), np.zeros((1, 1)), f32
    )
    assert arithmetic.bound(terms, f32, f32) < terms.value * 2.0**-16
    tiny = Products(
        factors(a, e2m1).times(factors(np.full((1, 64), 1.25 * 2.0**-7), ue4m3)), a > 0, factors(ones, e2m1), np.zeros((1, 1)), f32
    )
    assert arithmetic.bound(tiny, f32, f32) >= tiny.value  # subnormal scale factors may count for nothing


@pytest.mark.parametrize("number", range(4))
def test_no_instruction_admits_another_result(number: int) -> None:
    """Every instruction refuses one unit more in one element, in spite of its bound."""
    random = np.random.default_rng(number)
    for instruction in one_of_each()[number::4]:
        operands = Operands(instruction, random)
        result = ptxmma.emulate(instruction, **operands.arguments)
        row, col = int(random.integers(result.matrix.shape[-2])), int(random.integers(result.matrix.shape[-1]))
        wrong = np.asarray(instruction.operand("d").unpack(result.d)).copy()
        wrong[..., row, col] += 1
        admitted = result.admits(instruction.operand("d").pack(wrong))
        assert not admitted[..., row, col].any(), instruction.canonical
        assert admitted.sum() == admitted.size - admitted[..., row, col].size


def test_nothing_is_promised_where_sums_overflow() -> None:
    ins = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
    a, b = np.full((16, 16), 200, np.float16), np.full((16, 8), 200, np.float16)
    result = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    assert np.isinf(result.bound).all()
    assert np.isinf(numbers_of(ins, result.d)).all()


def test_infinities_and_nans_spread_as_they_should() -> None:
    ins = ptxmma.instruction(_F16)
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    a[0, 0], a[1, 0], b[2, 3], a[4, 2] = np.inf, np.nan, -np.inf, -np.inf
    result = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    matrix = result.matrix
    assert matrix[0, 0] == np.inf
    assert np.isnan(matrix[0, 3])  # inf - inf
    assert np.isnan(matrix[1]).all()
    assert matrix[2, 3] == -np.inf
    assert matrix[2, 2] == 16
    assert matrix[4, 3] == np.inf  # -inf * -inf
    assert matrix[4, 0] == -np.inf
    assert result.admits(result.d).all()
    sevens = result.admits(ins.operand("d").pack(np.full((16, 8), 7, np.float32)))
    assert not sevens.any()  # IEEE 754 leaves no choice


def test_what_a_sparse_a_drops_does_not_meet_an_infinity() -> None:
    ins = ptxmma.instruction(_SPARSE)
    a = np.tile(np.array([1, 1, 0, 0], np.float16), (16, 8))
    b = np.ones((32, 8), np.float16)
    b[2::4] = np.inf
    values, metadata = sparse.compress(a, "2:4")
    result = ptxmma.emulate(ins, ins.operand("a").pack(values), ins.operand("b").pack(b), metadata=ins.metadata.pack(metadata))
    assert (result.matrix == 16).all()
    b[1] = np.inf
    result = ptxmma.emulate(ins, ins.operand("a").pack(values), ins.operand("b").pack(b), metadata=ins.metadata.pack(metadata))
    assert (result.matrix == np.inf).all()


def test_wgmma_drops_the_low_bits_of_tf32_and_mma_may() -> None:
    a = np.full((64, 8), 1 + 2.0**-12, np.float32)
    b = np.ones((8, 8), np.float32)
    ins = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32")
    layout = shared_memory.SharedLayout("tf32", "K", "none", 8, 8)
    result = ptxmma.emulate(ins, ins.operand("a").pack(a), layout.descriptor(), memory=layout.store_xk(b.T))
    assert (result.matrix == 8).all()
    assert result.bound.max() < 8 * 2.0**-12
    ins = ptxmma.instruction("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    result = ptxmma.emulate(ins, ins.operand("a").pack(a[:16]), ins.operand("b").pack(b))
    assert result.bound.min() >= 8 * 2.0**-12  # with the low bits or without


def hopper_fp8(products: Products) -> Array:
    """The sum of wgmma with FP8 as ``semantics.observed`` describes it."""

    def exponent(x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(x == 0, -1000, np.floor(np.log2(np.abs(x))))

    a, b = products.a.numbers, products.b.numbers
    terms = np.concatenate([a[:, :, None] * b[None], products.c[:, None]], axis=1)
    exponents = np.concatenate([exponent(a)[:, :, None] + exponent(b)[None], exponent(products.c)[:, None]], axis=1)
    step = 2.0 ** (exponents.max(1) - 13)
    total = np.trunc(terms / step[:, None]).sum(1) * step
    last = 2.0 ** (exponent(total) - 13)
    return np.asarray(np.trunc(total / last) * last)


def test_the_observed_sums_of_a_chip_have_their_own_bound(spec: Spec) -> None:
    e4m3, f32 = (layouts.element_type(spec, name) for name in ("e4m3", "f32"))
    outside = 0
    for seed in range(50):
        terms = spread(np.random.default_rng(seed), 32, e4m3, f32)
        error = np.abs(hopper_fp8(terms) - terms.value)
        assert (error <= arithmetic.cut_off_bound(terms, 13, f32)).all()
        outside += int((error > arithmetic.bound(terms, f32, f32)).sum())
    assert outside  # single precision would not admit it
    ins = ptxmma.instruction(_WGMMA_FP8)
    a, b = np.zeros((64, 32), elements.dtype(e4m3)), np.zeros((32, 8), elements.dtype(e4m3))
    a[:, 0], b[0], a[:, 1:], b[1:] = 256, 256, 1, 1
    layout = shared_memory.SharedLayout("e4m3", "K", "none", 8, 32)
    result = ptxmma.emulate(ins, ins.operand("a").pack(a), layout.descriptor(), memory=layout.store_xk(b.T))
    assert (result.matrix == 65567).all()
    assert result.admits(ins.operand("d").pack(np.full((64, 8), 65536, np.float32)), "H200").all()


# --- wgmma ------------------------------------------------------------------------------------------------------------------


def test_constants_and_majorness_of_wgmma() -> None:
    ins = ptxmma.instruction(_WGMMA)
    random = np.random.default_rng(0)
    bf16 = elements.dtype(layouts.element_type(ins.database.spec, "bf16"))
    a, b = random.integers(-4, 5, (64, 16)).astype(bf16), random.integers(-4, 5, (16, 16)).astype(bf16)
    c = random.integers(-4, 5, (64, 16)).astype(np.float32)
    first = shared_memory.SharedLayout("bf16", "MN", "128B", 64, 16)
    second = shared_memory.SharedLayout("bf16", "MN", "32B", 16, 16, start=first.size)
    memory = np.concatenate([first.store_xk(a), second.store_xk(b.T)])
    result = ptxmma.emulate(
        ins, first.descriptor(), second.descriptor(), ins.operand("d").pack(c), scale_d=False, imm_scale_a=-1, imm_trans_a=1, imm_trans_b=1,
        memory=memory,
    )  # fmt: skip
    assert (result.matrix == -(a.astype(np.float64) @ b.astype(np.float64))).all()
    both: dict[str, Any] = {"imm_scale_a": -1, "imm_scale_b": -1, "imm_trans_a": 1, "imm_trans_b": 1}
    again = ptxmma.emulate(ins, first.descriptor(), second.descriptor(), ins.operand("d").pack(c), memory=memory, **both)
    assert (again.matrix == a.astype(np.float64) @ b.astype(np.float64) + c).all()


@pytest.mark.parametrize("spelling", [_SPARSE, _SCALED, _WGMMA])
def test_operands_by_the_names_of_the_manual(spelling: str) -> None:
    """The manual's names of operands give the same result, with an underscore for a hyphen."""
    instruction = ptxmma.instruction(spelling)
    given = Operands(instruction, np.random.default_rng(3)).arguments
    manual = {parameter: name for name, parameter in operation(instruction).arguments(instruction).items()}
    renamed = {manual.get(name, name): value for name, value in given.items()}
    assert renamed.keys() != given.keys() or spelling == _SCALED, "its names are those of the emulator"
    assert np.array_equal(ptxmma.emulate(instruction, **renamed).d, ptxmma.emulate(instruction, **given).d)


def test_a_constant_that_is_left_out_is_what_wrappers_assume(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(paths.SPEC, tmp_path / "spec", ignore=shutil.ignore_patterns("evidence")))
    file = spec / "instructions" / "wgmma.yaml"
    text = file.read_text(encoding="utf-8")
    negated = text.replace("values: [-1, 1], default: 1", "values: [-1, 1], default: -1", 1)  # of imm-scale-a
    assert negated != text
    file.write_text(negated, encoding="utf-8")
    ours, theirs = ptxmma.instruction(_WGMMA), pipeline.read(spec).find(_WGMMA)
    random = np.random.default_rng(0)
    a = ours.operand("a").pack(random.integers(-4, 5, (64, 16)).astype(elements.dtype(layouts.element_type(ours.database.spec, "bf16"))))
    b = shared_memory.SharedLayout("bf16", "K", "32B", 16, 16)
    given: dict[str, Any] = {"memory": b.store_xk(random.integers(-4, 5, (16, 16)).astype(np.float32).astype(ml_dtypes.bfloat16))}
    expected = ptxmma.emulate(ours, a, b.descriptor(), **given).matrix
    assert expected.any()
    assert (ptxmma.emulate(theirs, a, b.descriptor(), **given).matrix == -expected).all()
    assert (ptxmma.emulate(theirs, a, b.descriptor(), imm_scale_a=1, **given).matrix == expected).all()


# --- batches and bad operands -----------------------------------------------------------------------------------------------


def test_leading_dimensions_are_a_batch() -> None:
    ins = ptxmma.instruction(_F16)
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (3, 1, 16, 16)).astype(np.float16), random.integers(-4, 5, (2, 16, 8)).astype(np.float16)
    result = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    assert result.d.shape == (3, 2, 32, 4)
    assert (result.matrix == a.astype(np.float64) @ b.astype(np.float64)).all()


def _registers(name: str, ins: Instruction) -> Array:
    operand = ins.operand(name)
    return np.zeros((32, operand.registers), np.uint32)


@pytest.mark.parametrize(
    ("spelling", "changes", "message"),
    [
        (_F16, {"a": np.zeros((32, 3), np.uint32)}, "3"),
        (_F16, {"a": np.zeros((16, 4), np.uint32)}, "16"),
        (_F16, {"a": np.zeros((32, 4), np.uint64)}, "uint64"),
        (_F16, {"a": 17}, "takes no descriptor"),
        (_F16, {"a": [[0]]}, "must be a NumPy array"),
        (_F16, {"b": None}, "needs b"),
        (_F16, {"memory": np.zeros(64, np.uint8)}, "reads no shared memory"),
        (_F16, {"a": np.zeros((2, 32, 4), np.uint32), "b": np.zeros((3, 32, 2), np.uint32)}, "batches do not fit together"),
        (_F16, {"a": np.zeros((32, 4), ">u4")}, "other byte order"),
        (_F16, {"selector": 1}, "no such operand"),
        (_F16, {"metadata": np.zeros(32, np.uint32)}, "takes no metadata"),
        (_F16, {"scale_a_data": np.zeros(32, np.uint32)}, "takes no scale_a_data"),
        (_SPARSE, {}, "needs metadata"),
        (_SPARSE, {"metadata": np.zeros(32, np.uint32)}, "undefined with this metadata"),
        (_SPARSE, {"metadata": np.full(32, 0xEEEEEEEE, np.uint32), "selector": 2}, "allowed: 0, 1"),
        (_SCALED, {}, "needs scale_a_data"),
        (_SCALED, {"byte_id_a": 1}, "byte_id_a = 1 is not allowed"),
        (_WGMMA, {"a": 0, "b": 0}, "pass the image of shared memory"),
        (_WGMMA, {"a": 0, "b": 0, "memory": np.zeros(64, np.uint8)}, "the memory holds"),
        (_WGMMA, {"a": 0, "b": 0, "imm_scale_a": 2}, "allowed: -1, 1"),
        (
            _WGMMA,
            {"a": np.zeros((128, 4), np.uint32), "b": np.zeros(128, np.uint64)},
            r"one descriptor for all threads, not an array of shape \(128,\)",
        ),
        (_WGMMA, {"a": True, "b": 0}, "must be a NumPy array"),
        (_WGMMA, {"a": 0, "b": None}, "needs b"),
        (_WGMMA, {"a": 0, "b": 0, "imm_scale_b": 0}, "allowed: -1, 1"),
        (_WGMMA, {"a": 0, "b": 0, "scale_b": 1}, "no such operand"),
        (
            _SPARSE,
            {"a": np.zeros((2, 32, 4), np.uint32), "metadata": np.full((3, 32), 0xEEEEEEEE, np.uint32)},
            r"fit together: a \(2,\).*metadata \(3,\)",
        ),
        (
            _SCALED,
            {"a": np.zeros((2, 32, 4), np.uint32), "scale_a_data": np.zeros((3, 32), np.uint32), "scale_b_data": np.zeros(32, np.uint32)},
            r"a \(2,\).*scale_a_data \(3,\)",
        ),
        ("wgmma.fence.sync.aligned", {"a": 0, "b": 0}, "neither loads, stores nor multiplies matrices"),
    ],
)
def test_bad_operands(spelling: str, changes: dict[str, Any], message: str) -> None:
    ins = ptxmma.instruction(spelling)
    arguments = {} if {"a", "b"} <= set(changes) else {"a": _registers("a", ins), "b": _registers("b", ins)}
    with pytest.raises(ValueError, match=message):
        ptxmma.emulate(ins, **(arguments | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b": True}, "b must be a descriptor.*not bool"),
        ({"b": np.bool_(True)}, "b must be a descriptor.*not bool"),
        ({"b": 1.5}, "b must be a descriptor.*not float"),
        ({"b": "0"}, "b must be a descriptor.*not str"),
        ({"scale_d": 0.5}, "scale_d must be one integer, not float"),
        ({"scale_d": None}, "scale_d must be one integer, not NoneType"),
        ({"imm_scale_a": np.float64(-1)}, "imm_scale_a must be one integer, not float64"),
        ({"imm_scale_a": np.bool_(True)}, "imm_scale_a must be one integer, not bool"),
    ],
)
def test_scalars_that_are_not_integers(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"a": 0, "b": 0, "memory": np.zeros(1 << 16, np.uint8)}
    with pytest.raises(TypeError, match=message):
        ptxmma.emulate(_WGMMA, **(arguments | changes))


def test_a_predicate_is_any_bool() -> None:
    ins = ptxmma.instruction(_WGMMA)
    layout = shared_memory.SharedLayout("bf16", "K", "none", 64, 16)
    arguments: dict[str, Any] = {"a": layout.descriptor(), "b": layout.descriptor(), "memory": np.zeros(layout.size, np.uint8)}
    c = ins.operand("d").pack(np.ones((64, 16), np.float32))
    for no, yes in ((False, True), (np.bool_(False), np.bool_(True)), (0, 1), (np.int8(0), np.uint64(1))):
        assert (ptxmma.emulate(ins, c=c, scale_d=no, **arguments).matrix == 0).all()
        assert (ptxmma.emulate(ins, c=c, scale_d=yes, **arguments).matrix == 1).all()


def test_illegal_metadata_is_reported_at_once_however_much_there_is() -> None:
    ins = ptxmma.instruction(_SPARSE)
    batch = 4000
    a, b = np.zeros((batch, 32, 4), np.uint32), _registers("b", ins)
    metadata = np.full((batch, 32), 0xEEEEEEEE, np.uint32)
    metadata[2:] = 0
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"tile=\(2,\), lane=0, bit=0"):
        ptxmma.emulate(ins, a, b, metadata=metadata)
    assert time.perf_counter() - start < 1


def test_batches_of_every_operand_go_together() -> None:
    ins = ptxmma.instruction(_SPARSE)
    random = np.random.default_rng(0)
    each = [Operands(ins, random) for _ in range(3)]
    packed: dict[str, Any] = {name: np.stack([operands.arguments[name] for operands in each]) for name in ("a", "b", "c", "metadata")}
    result = ptxmma.emulate(ins, **packed)
    assert (result.matrix == np.stack([operands.product() for operands in each])).all()
    shared = ptxmma.emulate(ins, **(packed | {"a": packed["a"][0]}))  # one A, with three kinds of metadata
    alone = [ptxmma.emulate(ins, packed["a"][0], packed["b"][i], packed["c"][i], metadata=packed["metadata"][i]) for i in range(3)]
    assert (shared.matrix == np.stack([one.matrix for one in alone])).all()
    with pytest.raises(ValueError, match=r"do not fit together: registers \(2,\), D \(3,\)"):
        result.admits(result.d[:2])


@pytest.mark.parametrize("spelling", [_F16, _S8, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", _F64])
def test_tensors_give_a_tensor(spelling: str) -> None:
    torch = pytest.importorskip("torch")
    ins = ptxmma.instruction(spelling)
    operands = Operands(ins, np.random.default_rng(0)).arguments
    plain = ptxmma.emulate(ins, **operands)
    assert isinstance(plain.d, np.ndarray)
    for name in ("a", "b", "c"):
        result = ptxmma.emulate(ins, **(operands | {name: elements.like(operands[name], torch.zeros(1))}))
        assert isinstance(result.d, torch.Tensor)
        assert np.array_equal(elements.as_array(result.d), plain.d)
        assert result.admits(result.d).all()


def test_a_chip_of_which_nothing_is_known() -> None:
    ins = ptxmma.instruction(_F16)
    result = ptxmma.emulate(ins, _registers("a", ins), _registers("b", ins))
    with pytest.raises(ValueError, match="known: H200"):
        result.admits(result.d, "H100")
