"""The emulator without a GPU: every instruction against the matrix product, the bound against sums in any order, bad operands."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptxmma
from ptxmma import arithmetic, elements, layouts, shared_memory, sparse
from ptxmma.arithmetic import Factors, Products
from ptxmma.elements import Array
from ptxmma.instructions import Instruction
from ptxmma.model import ElementType, Spec

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
_SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"
_WGMMA_FP8 = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"


def small(element: ElementType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Small integers that every type has, so that sums are exact."""
    numbers = random.integers(0 if not element.sign else -1, 2, shape)
    return numbers.astype(elements.dtype(element))


def one_of_each() -> list[Instruction]:
    """The instructions with a shape; of those that differ in n or in the order of metadata alone, one."""
    found: dict[object, Instruction] = {}
    for instruction in ptxmma.instructions():
        if instruction.shape is not None and instruction.shape[1] <= 16:
            facts = {name: value for name, value in instruction.variant.facts.items() if name not in ("spvariant", "aligned")}
            if instruction.variant.ranges_over_n:
                facts |= {"n": 0, "shape": ""}
            found.setdefault(tuple(facts.items()), instruction)
    return list(found.values())


class Operands:
    """Random small integers for one instruction, as registers or in an image, and the product that they have."""

    def __init__(self, instruction: Instruction, random: np.random.Generator, *, from_memory: bool = False, selector: int = 0) -> None:
        assert instruction.shape is not None
        m, n, k = instruction.shape
        spec = instruction.database.spec
        a_type, b_type = (layouts.element_type(spec, instruction.qualifiers[f"{name}type"]) for name in "ab")
        d = instruction.operand("d")
        addend = instruction.operand("c" if "c" in instruction.variant.instruction.operand_kinds else "d")
        assert addend.element is not None
        computations = (d.computations,) if d.computations > 1 else ()
        a, b = small(a_type, (*computations, m, k), random), small(b_type, (*computations, k, n), random)
        c = small(addend.element, (*computations, m, n), random)
        self.arguments: dict[str, Any] = {"c": addend.pack(c)}
        if instruction.sparse:
            pattern = instruction.metadata.granularity.name
            a = sparse.prune(a, pattern, element=a_type)
            values, metadata = sparse.compress(a, pattern, element=a_type)
            self.arguments |= {"metadata": instruction.metadata.pack(metadata, selector), "selector": selector}
        else:
            values = a
        self._place(instruction, "a", a_type, values, from_memory)
        self._place(instruction, "b", b_type, b, from_memory)
        if instruction.qualifiers.get("block_scale"):
            a, b = self._scale(instruction, random, a), self._scale(instruction, random, b.T).T
        wide = [np.asarray(x).astype(np.float64) for x in (a, b, c)]
        if instruction.qualifiers.get("bitop") == "xor":
            self.product = (wide[0][..., :, :, None] != wide[1][..., None, :, :]).sum(-2) + wide[2]
        else:
            self.product = wide[0] @ wide[1] + wide[2]

    def _place(self, instruction: Instruction, name: str, element: ElementType, matrix: Array, from_memory: bool) -> None:
        kinds = instruction.variant.instruction.operand_kinds
        if f"{name}-desc" not in kinds or (name == "a" and not from_memory):
            self.arguments[name] = instruction.operand(name).pack(matrix)
            return
        rows = matrix if name == "a" else matrix.T
        layout = shared_memory.SharedLayout(element.name, "K", "none", *rows.shape, start=self.arguments.get("memory", np.zeros(0)).size)
        held = self.arguments.get("memory", np.zeros(0, np.uint8))
        self.arguments["memory"] = np.concatenate([held, layout.store(rows), np.zeros(-layout.size % 1024, np.uint8)])
        self.arguments[name] = layout.descriptor().encode()

    def _scale(self, instruction: Instruction, random: np.random.Generator, matrix: Array) -> Array:
        """The matrix times random scale factors, which go into the arguments."""
        name = "b" if "scale_a_data" in self.arguments else "a"
        scales = instruction.scales(name)
        factors = (2.0 ** random.integers(-2, 3, (scales.rows, scales.blocks))).astype(elements.dtype(scales.element))
        byte_id, thread_id = int(random.choice(scales.byte_ids)), int(random.choice(scales.thread_ids))
        self.arguments |= {f"byte_id_{name}": byte_id, f"thread_id_{name}": thread_id}
        self.arguments[f"scale_{name}_data"] = scales.pack(factors if name == "a" else factors.T, byte_id, thread_id)
        spread: Array = np.repeat(factors.astype(np.float64), matrix.shape[-1] // scales.blocks, axis=-1)
        return matrix.astype(np.float64) * spread


def held(instruction: Instruction, registers: Array) -> Array:
    return np.asarray(instruction.operand("d").unpack(registers)).astype(np.float64)


@pytest.mark.parametrize("number", range(4))
def test_every_instruction_multiplies(number: int) -> None:
    random = np.random.default_rng(number)
    for instruction in one_of_each()[number::4]:
        selectors = instruction.metadata.selectors if instruction.sparse else 1
        for selector, from_memory in itertools.product(range(selectors), (False, True)[: len(instruction.forms)]):
            operands = Operands(instruction, random, from_memory=from_memory, selector=selector)
            found = ptxmma.emulate(instruction, **operands.arguments)
            assert (held(instruction, found.d) == operands.product).all(), instruction.canonical
            assert (found.matrix == operands.product).all()
            assert found.admits(found.d).all()


# --- integers and single bits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("saturate", "expected"), [(True, 2**31 - 1), (False, -(2**31) + 31 * 100 - 1 - 5)])
def test_overflow_saturates_or_wraps(saturate: bool, expected: int) -> None:
    ins = ptxmma.instruction(_S8.replace("col.", "col.satfinite.") if saturate else _S8)
    a, b = np.full((16, 32), 10, np.int8), np.full((32, 8), 10, np.int8)
    b[0] = 0
    c = np.full((16, 8), 2**31 - 1 - 5, np.int32)
    d = ins.operand("d").unpack(ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b), ins.operand("c").pack(c)).d)
    assert (d == expected).all()


# --- floating point ---------------------------------------------------------------------------------------------------------


def products(a: Array, b: Array, c: Array | None, element: ElementType, c_type: ElementType, kept: Array | None = None) -> Products:
    return Products(
        Factors.of(a, element),
        np.ones(a.shape, bool) if kept is None else kept,
        Factors.of(b, element),
        np.zeros((a.shape[0], b.shape[1])) if c is None else c,
        c_type,
    )


def spread(random: np.random.Generator, k: int, element: ElementType, c_type: ElementType) -> Products:
    """Random terms with exponents far apart."""

    def numbers(*shape: int) -> Array:
        found = random.choice([-1, 1], shape) * (1 + random.random(shape)) * 2.0 ** random.integers(-6, 7, shape)
        return found.astype(elements.dtype(element)).astype(np.float64)

    return products(numbers(4, k), numbers(k, 4), numbers(4, 4), element, c_type)


@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([4, 8, 16, 32]), upwards=st.booleans())
def test_sums_in_any_order_and_rounding_lie_within_the_bound(spec: Spec, seed: int, k: int, upwards: bool) -> None:
    random = np.random.default_rng(seed)
    f16, f32 = (layouts.element_type(spec, name) for name in ("f16", "f32"))
    held = spread(random, k, f16, f32)
    bound = arithmetic.bound(held, f32, f32)
    for row, col in itertools.product(range(4), range(4)):
        terms = [*(held.a.numbers[row] * held.b.numbers[:, col]), held.c[row, col]]
        random.shuffle(terms)
        total = np.float32(0)
        for term in terms:
            exact = float(total) + term  # exact enough: a double holds 29 bits more
            total = np.float32(exact)
            if float(total) != exact:  # the worst that any rounding can do
                total = np.nextafter(total, np.float32(np.inf if upwards else -np.inf)) if (float(total) < exact) == upwards else total
        assert abs(float(total) - held.value()[row, col]) <= bound[row, col]


@pytest.fixture(scope="module")
def spec() -> Spec:
    return ptxmma.instruction(_F16).database.spec


def test_a_result_beyond_the_bound_is_not_admitted() -> None:
    ins = ptxmma.instruction(_F16)
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    found = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    assert found.bound.max() < 1e-4
    wrong = np.full((16, 8), 16, np.float32)
    wrong[3, 5] = 16.001
    admitted = found.admits(ins.operand("d").pack(wrong))
    assert not admitted[3, 5]
    assert admitted.sum() == 16 * 8 - 1


def test_more_terms_have_a_wider_bound_and_dropped_ones_none(spec: Spec) -> None:
    f16, f32 = (layouts.element_type(spec, name) for name in ("f16", "f32"))
    ones, kept = np.ones((1, 8)), np.arange(8)[None] < 4
    full = products(ones, ones.T, None, f16, f32)
    half = products(ones * kept, ones.T, None, f16, f32, kept)
    assert arithmetic.bound(full, f32, f32) > 2 * arithmetic.bound(half, f32, f32)
    assert half.count() == 4


def test_subnormal_inputs_may_count_for_nothing_or_do_count(spec: Spec) -> None:
    f16, f32 = (layouts.element_type(spec, name) for name in ("f16", "f32"))
    tiny = 2.0**-20
    held = products(np.full((1, 1), tiny), np.full((1, 1), 1024.0), None, f16, f32)
    assert arithmetic.bound(held, f32, f32)[0, 0] >= tiny * 1024
    assert arithmetic.bound(held, f32, f32, subnormals=True)[0, 0] < tiny


def test_scale_factors_leave_the_bound_as_tight_as_it_is(spec: Spec) -> None:
    """Whether an element is subnormal, and how many bits it has, does not depend on its scale factor."""
    e2m1, f32 = (layouts.element_type(spec, name) for name in ("e2m1", "f32"))
    a, ones = np.full((1, 64), 1.5), np.ones((64, 1))
    scales = np.full((1, 64), 1.125 * 2.0**-8)
    held = Products(Factors.of(a, e2m1, scales), a > 0, Factors.of(ones, e2m1), np.zeros((1, 1)), f32)
    assert arithmetic.bound(held, f32, f32) < held.value() * 2.0**-16


@pytest.mark.parametrize("number", range(4))
def test_no_instruction_admits_another_result(number: int) -> None:
    """The bound is no excuse: one unit more in one element is refused, by every instruction."""
    random = np.random.default_rng(number)
    for instruction in one_of_each()[number::4]:
        operands = Operands(instruction, random)
        found = ptxmma.emulate(instruction, **operands.arguments)
        row, col = int(random.integers(operands.product.shape[-2])), int(random.integers(operands.product.shape[-1]))
        wrong = np.asarray(instruction.operand("d").unpack(found.d)).copy()
        wrong[..., row, col] += 1
        admitted = found.admits(instruction.operand("d").pack(wrong))
        assert not admitted[..., row, col].any(), instruction.canonical
        assert admitted.sum() == admitted.size - admitted[..., row, col].size


def test_nothing_is_promised_where_sums_overflow() -> None:
    ins = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
    a, b = np.full((16, 16), 200, np.float16), np.full((16, 8), 200, np.float16)
    found = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    assert np.isinf(found.bound).all()
    assert np.isinf(held(ins, found.d)).all()


def test_infinities_and_nans_spread_as_they_should() -> None:
    ins = ptxmma.instruction(_F16)
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    a[0, 0], a[1, 0], b[2, 3], a[4, 2] = np.inf, np.nan, -np.inf, -np.inf
    found = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    matrix = found.matrix
    assert matrix[0, 0] == np.inf
    assert np.isnan(matrix[0, 3])  # inf - inf
    assert np.isnan(matrix[1]).all()
    assert matrix[2, 3] == -np.inf
    assert matrix[2, 2] == 16
    assert matrix[4, 3] == np.inf  # -inf * -inf
    assert matrix[4, 0] == -np.inf
    assert found.admits(found.d).all()
    sevens = found.admits(ins.operand("d").pack(np.full((16, 8), 7, np.float32)))
    assert not sevens.any()  # IEEE 754 leaves no choice


def test_what_a_sparse_a_drops_does_not_meet_an_infinity() -> None:
    ins = ptxmma.instruction(_SPARSE)
    a = np.tile(np.array([1, 1, 0, 0], np.float16), (16, 8))
    b = np.ones((32, 8), np.float16)
    b[2::4] = np.inf
    values, metadata = sparse.compress(a, "2:4")
    found = ptxmma.emulate(ins, ins.operand("a").pack(values), ins.operand("b").pack(b), metadata=ins.metadata.pack(metadata))
    assert (found.matrix == 16).all()
    b[1] = np.inf
    found = ptxmma.emulate(ins, ins.operand("a").pack(values), ins.operand("b").pack(b), metadata=ins.metadata.pack(metadata))
    assert (found.matrix == np.inf).all()


def test_wgmma_drops_the_low_bits_of_tf32_and_mma_may() -> None:
    a = np.full((64, 8), 1 + 2.0**-12, np.float32)
    b = np.ones((8, 8), np.float32)
    ins = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32")
    layout = shared_memory.SharedLayout("tf32", "K", "none", 8, 8)
    found = ptxmma.emulate(ins, ins.operand("a").pack(a), layout.descriptor(), memory=layout.store(b.T))
    assert (found.matrix == 8).all()
    assert found.bound.max() < 8 * 2.0**-12
    ins = ptxmma.instruction("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    found = ptxmma.emulate(ins, ins.operand("a").pack(a[:16]), ins.operand("b").pack(b))
    assert found.bound.min() >= 8 * 2.0**-12  # with the low bits or without


def hopper_fp8(held: Products) -> Array:
    """The sum as semantics.observed of wgmma with FP8 tells it."""

    def exponent(x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(x == 0, -1000, np.floor(np.log2(np.abs(x))))

    a, b = held.a.numbers, held.b.numbers
    terms = np.concatenate([a[:, :, None] * b[None], held.c[:, None]], axis=1)
    exponents = np.concatenate([exponent(a)[:, :, None] + exponent(b)[None], exponent(held.c)[:, None]], axis=1)
    step = 2.0 ** (exponents.max(1) - 13)
    total = np.trunc(terms / step[:, None]).sum(1) * step
    last = 2.0 ** (exponent(total) - 13)
    return np.asarray(np.trunc(total / last) * last)


def test_what_a_chip_was_seen_to_do_has_a_bound_of_its_own(spec: Spec) -> None:
    e4m3, f32 = (layouts.element_type(spec, name) for name in ("e4m3", "f32"))
    outside = 0
    for seed in range(50):
        held = spread(np.random.default_rng(seed), 32, e4m3, f32)
        error = np.abs(hopper_fp8(held) - held.value())
        assert (error <= arithmetic.cut_off_bound(held, 13, f32)).all()
        outside += int((error > arithmetic.bound(held, f32, f32)).sum())
    assert outside  # single precision would not admit it
    ins = ptxmma.instruction(_WGMMA_FP8)
    a, b = np.zeros((64, 32), elements.dtype(e4m3)), np.zeros((32, 8), elements.dtype(e4m3))
    a[:, 0], b[0], a[:, 1:], b[1:] = 256, 256, 1, 1
    layout = shared_memory.SharedLayout("e4m3", "K", "none", 8, 32)
    found = ptxmma.emulate(ins, ins.operand("a").pack(a), layout.descriptor(), memory=layout.store(b.T))
    assert (found.matrix == 65567).all()
    assert found.admits(ins.operand("d").pack(np.full((64, 8), 65536, np.float32)), "H200").all()


# --- wgmma ------------------------------------------------------------------------------------------------------------------


def test_constants_and_majorness_of_wgmma() -> None:
    ins = ptxmma.instruction(_WGMMA)
    random = np.random.default_rng(0)
    bf16 = elements.dtype(layouts.element_type(ins.database.spec, "bf16"))
    a, b = random.integers(-4, 5, (64, 16)).astype(bf16), random.integers(-4, 5, (16, 16)).astype(bf16)
    c = random.integers(-4, 5, (64, 16)).astype(np.float32)
    first = shared_memory.SharedLayout("bf16", "MN", "128B", 64, 16)
    second = shared_memory.SharedLayout("bf16", "MN", "32B", 16, 16, start=first.size)
    memory = np.concatenate([first.store(a), second.store(b.T)])
    found = ptxmma.emulate(
        ins, first.descriptor(), second.descriptor(), ins.operand("d").pack(c), scale_d=False, imm_scale_a=-1, imm_trans_a=1, imm_trans_b=1,
        memory=memory,
    )  # fmt: skip
    assert (found.matrix == -(a.astype(np.float64) @ b.astype(np.float64))).all()
    both: dict[str, Any] = {"imm_scale_a": -1, "imm_scale_b": -1, "imm_trans_a": 1, "imm_trans_b": 1}
    again = ptxmma.emulate(ins, first.descriptor(), second.descriptor(), ins.operand("d").pack(c), memory=memory, **both)
    assert (again.matrix == a.astype(np.float64) @ b.astype(np.float64) + c).all()


# --- batches and bad operands -----------------------------------------------------------------------------------------------


def test_leading_dimensions_are_a_batch() -> None:
    ins = ptxmma.instruction(_F16)
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (3, 1, 16, 16)).astype(np.float16), random.integers(-4, 5, (2, 16, 8)).astype(np.float16)
    found = ptxmma.emulate(ins, ins.operand("a").pack(a), ins.operand("b").pack(b))
    assert found.d.shape == (3, 2, 32, 4)
    assert (found.matrix == a.astype(np.float64) @ b.astype(np.float64)).all()


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
        (_WGMMA, {"a": 0, "b": 0, "scale_d": 0.5}, "must be an integer"),
        ("wgmma.fence.sync.aligned", {"a": 0, "b": 0}, "multiplies no matrices"),
    ],
)
def test_bad_operands(spelling: str, changes: dict[str, Any], message: str) -> None:
    ins = ptxmma.instruction(spelling)
    arguments = {} if {"a", "b"} <= set(changes) else {"a": _registers("a", ins), "b": _registers("b", ins)}
    with pytest.raises(ValueError, match=message):
        ptxmma.emulate(ins, **(arguments | changes))


def test_a_chip_of_which_nothing_is_known() -> None:
    ins = ptxmma.instruction(_F16)
    found = ptxmma.emulate(ins, _registers("a", ins), _registers("b", ins))
    with pytest.raises(ValueError, match="known: H200"):
        found.admits(found.d, "H100")
