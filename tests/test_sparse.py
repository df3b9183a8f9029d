"""Pruning, compressing and back, against brute force, the spec's own tables and PyTorch."""

from __future__ import annotations

import itertools
import math
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import ptxmma
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import catalog
from ptxmma.matrices import sparse
from ptxmma.matrices.sparse import blocks as sparse_blocks
from ptxmma.matrices.sparse import torch_format as torch_sparse
from ptxmma.model import Choice, ElementType, Granularity

_SPEC = catalog().database.spec
_ELEMENTS = [entry for entry in _SPEC.types.elements if entry.name != "ue8m0"]  # it has no zero
_PATTERNS = {entry.name: entry for entry in _SPEC.granularities}
_CHOICES = {entry.units: entry.fields for entry in _SPEC.choices}


def _random(seed: int, element: ElementType, rows: int, columns: int, zeros: float = 0.3) -> Array:
    """Random codes, with many zeros of both signs and many equal magnitudes, no NaN and no infinity."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << element.bits, (rows, columns), dtype=np.uint64)
    codes = np.where(rng.random(codes.shape) < 0.5, codes & np.uint64(0x8383838383838383), codes)
    kind = elements.bits_dtype(element)
    bits = (codes & np.uint64((1 << element.bits) - 1)).astype(kind)
    zero = np.array([0, 1 << element.bits - 1 if element.sign and element.form in ("float", "sign-magnitude") else 0], kind)
    bits = np.where(rng.random(bits.shape) < zeros, rng.choice(zero, bits.shape), bits)
    if element.form == "float":
        with np.errstate(invalid="ignore"):  # signalling NaN
            bits = np.where(np.isfinite(elements.numbers(bits, element)), bits, zero[0])
    if element.name == "ue4m3":
        bits &= kind.type(0x7F)
    if element.name == "s1z4m11":
        bits &= kind.type(0x87FF)
    matrix: Array = elements.typed(np.ascontiguousarray(bits), element)
    return matrix


def _bits(matrix: Array) -> Array:
    return matrix.view(f"u{matrix.dtype.itemsize}")


def _chunks(matrix: Array, pattern: Granularity, element: ElementType) -> list[list[list[Any]]]:
    """The units of every chunk as Python numbers, in the order of rows and chunks."""
    numbers = elements.numbers(_bits(matrix), element).reshape(-1, pattern.units, pattern.unit)
    chunks: list[list[list[Any]]] = numbers.tolist()
    return chunks


def _occupied(chunk: list[list[Any]]) -> int:
    return sum(any(value != 0 for value in unit) << place for place, unit in enumerate(chunk))


cases = pytest.mark.parametrize(
    ("name", "element"), [pytest.param(name, entry, id=f"{name}-{entry.name}") for name in _PATTERNS for entry in _ELEMENTS]
)


# --- against brute force --------------------------------------------------------------------------------------------------------


@cases
@settings(max_examples=6)
@given(seed=st.integers(0, 1 << 32), rows=st.integers(1, 4), groups=st.integers(1, 4))
def test_pruning_keeps_the_largest(name: str, element: ElementType, seed: int, rows: int, groups: int) -> None:
    pattern = _PATTERNS[name]
    matrix = _random(seed, element, rows, pattern.chunk * groups)
    pruned = sparse.prune(matrix, name, element=element)
    assert pruned.dtype == matrix.dtype
    for before, after, codes in zip(
        _chunks(matrix, pattern, element),
        _chunks(pruned, pattern, element),
        _bits(pruned).reshape(-1, pattern.units, pattern.unit),
        strict=True,
    ):
        sizes = [sum(abs(value) for value in unit) for unit in before]
        order = sorted(range(pattern.units), key=lambda place: (-sizes[place], place))
        kept = order[: pattern.kept // pattern.unit]
        assert after == [unit if place in kept else [0] * pattern.unit for place, unit in enumerate(before)]
        assert all(
            code == 0 for unit, values in zip(codes, after, strict=True) for code, value in zip(unit, values, strict=True) if not value
        )


@cases
@settings(max_examples=6)
@given(seed=st.integers(0, 1 << 32), rows=st.integers(1, 4), groups=st.integers(1, 3))
def test_a_round_trip(name: str, element: ElementType, seed: int, rows: int, groups: int) -> None:
    """Every field is the one that the spec's table has for the chunk, the values are what it keeps, and all comes back."""
    pattern = _PATTERNS[name]
    matrix = sparse.prune(_random(seed, element, rows, 2 * pattern.chunk * groups), name, element=element)
    sparse.check(matrix, name, element=element)
    values, metadata = sparse.compress(matrix, name, element=element)
    assert (values.dtype, metadata.dtype) == (matrix.dtype, np.uint8)
    assert values.shape == (rows, 2 * pattern.kept * groups)
    assert metadata.shape == (rows, groups)
    kept = _bits(values).reshape(-1, pattern.kept // pattern.unit, pattern.unit)
    fields = sparse.fields(metadata).reshape(-1)
    units = _bits(matrix).reshape(-1, pattern.units, pattern.unit)
    for chunk, codes, field, stored in zip(_chunks(matrix, pattern, element), units, fields, kept, strict=True):
        expected = _CHOICES[pattern.units][f"{_occupied(chunk):#0{2 + pattern.units}b}"]
        assert field == int(expected, 2)
        assert stored.tolist() == [codes[place].tolist() for place in pattern.kept_units(expected)]
    back = sparse.decompress(values, metadata, name)
    assert back.dtype == matrix.dtype
    assert np.array_equal(_bits(back), _bits(matrix))


@pytest.mark.parametrize("name", _PATTERNS)
def test_every_set_of_units_is_found_sparse_or_not(name: str) -> None:
    """In both halves of a byte of metadata, and after more than a block of sparse chunks."""
    pattern = _PATTERNS[name]
    limit = pattern.kept // pattern.unit
    sets = list(itertools.product(range(1 << pattern.units), repeat=2))
    matrix = np.zeros((len(sets), 2 * pattern.chunk), np.float16)
    for row, pair in enumerate(sets):
        for chunk, units in enumerate(pair):
            for unit in range(pattern.units):
                # The last element alone makes a unit non-zero.
                matrix[row, chunk * pattern.chunk + (unit + 1) * pattern.unit - 1] = units >> unit & 1
    for row, pair in enumerate(sets):
        crowded = [chunk for chunk, units in enumerate(pair) if units.bit_count() > limit]
        if not crowded:
            sparse.check(matrix[row : row + 1], name)
            continue
        with pytest.raises(sparse.NotSparseError) as caught:
            sparse.compress(np.vstack([np.zeros((70_000 // 16, 16), np.float16), np.tile(matrix[row], 16 // matrix.shape[1])]), name)
        error = caught.value
        assert (error.row, error.chunk, error.column) == (4375, crowded[0], crowded[0] * pattern.chunk)
        assert error.count == len(crowded) * 16 // matrix.shape[1]


@pytest.mark.parametrize("name", _PATTERNS)
@given(data=st.data())
def test_the_first_offending_chunk_is_named(name: str, data: st.DataObject) -> None:
    """Wherever the first chunk with too many units is, and however many follow."""
    pattern = _PATTERNS[name]
    full = data.draw(arrays(np.bool_, st.tuples(st.integers(1, 4), st.integers(1, 8).map(lambda pairs: 2 * pairs)), elements=st.booleans()))
    matrix = np.repeat(full, pattern.chunk, axis=1).astype(np.float16)
    if not full.any():
        sparse.check(matrix, name)
        return
    with pytest.raises(sparse.NotSparseError) as caught:
        sparse.check(matrix, name)
    row, chunk = np.argwhere(full)[0]
    assert (caught.value.row, caught.value.chunk, caught.value.column) == (row, chunk, chunk * pattern.chunk)
    assert caught.value.count == full.sum()


@pytest.mark.parametrize("name", _PATTERNS)
def test_every_legal_field_places_its_values(name: str) -> None:
    """The first index places the first value, in whichever order they are."""
    pattern = _PATTERNS[name]
    legal = dict.fromkeys(field for entry in _SPEC.granularities if entry.name == name for field in entry.legal)
    for first, second in itertools.product(legal, repeat=2):
        metadata = np.array([[int(first, 2) | int(second, 2) << 4]], np.uint8)
        values = np.arange(1, 2 * pattern.kept + 1, dtype=np.int8)[None]
        expected = np.zeros((2, pattern.units, pattern.unit), np.int8)
        stored = values.reshape(2, -1, pattern.unit)
        for chunk, field in enumerate((first, second)):
            for place, unit in enumerate(pattern.kept_units(field)):
                expected[chunk, unit] = stored[chunk, place]
        assert np.array_equal(sparse.decompress(values, metadata, name), expected.reshape(1, -1))


def test_a_mask() -> None:
    matrix = np.array([[1, -2, 3, 4, np.nan, 6, -0.0, 8]], np.float16)
    mask = np.array([[1, 1, 0, 0, 1, 0, 1, 0]], bool)
    pruned = sparse.prune(matrix, "2:4", mask)
    assert np.array_equal(pruned, np.array([[1, -2, 0, 0, np.nan, 0, 0, 0]], np.float16), equal_nan=True)
    assert not np.signbit(pruned[0, 6])
    assert np.array_equal(sparse.prune(matrix[:, :6], "2:4", mask[:, :6], pad=True), pruned[:, :6], equal_nan=True)
    pairs = np.array([[1, 0, 0, 1, 0, 0, 0, 0]], bool)
    assert np.array_equal(sparse.prune(matrix, "4:8", pairs), np.where(pairs, matrix, 0))
    with pytest.raises(
        sparse.NotSparseError,
        match=r"the mask keeps 3 of 4 elements in row 1, column 4 \(chunk 1 of the row\); 2:4 allows 2, and 1 chunk is like that$",
    ) as caught:
        sparse.prune(np.ones((2, 8), np.int8), "2:4", np.array([[0] * 8, [0, 0, 0, 1, 1, 1, 0, 1]], bool))
    assert (caught.value.row, caught.value.column, caught.value.chunk, caught.value.count) == (1, 4, 1, 1)


# --- worked by hand -------------------------------------------------------------------------------------------------------------


def test_the_example_of_the_manual() -> None:
    """PTX ISA 9.7.14.6.1: of tf32, 0b0100 says the first of two, 0b1110 the second; of 2:4, each index is the place in the chunk."""
    values, metadata = sparse.compress(np.array([[5, 0, 0, 7]], np.float32), "1:2")
    assert values.tolist() == [[5, 7]]
    assert sparse.fields(metadata).tolist() == [[0b0100, 0b1110]]
    values, metadata = sparse.compress(np.array([[0, 5, 0, 7, 3, 4, 0, 0]], np.float16), "2:4")
    assert values.tolist() == [[5, 7, 3, 4]]
    assert sparse.fields(metadata).tolist() == [[0b1101, 0b0100]]
    assert metadata.tolist() == [[0b0100_1101]]


def test_the_most_negative_integer_is_the_largest() -> None:
    assert sparse.prune(np.array([[127, -128, 127, -1]], np.int8), "2:4").tolist() == [[127, -128, 0, 0]]
    assert sparse.prune(np.array([[1, -(2**31)]], np.int32), "1:2").tolist() == [[0, -(2**31)]]
    pairs = np.array([[-8, 0, 7, 0, 4, 4, 1, 1]]).astype(ml_dtypes.int4)
    assert sparse.prune(pairs, "4:8").tolist() == [[-8, 0, 0, 0, 4, 4, 0, 0]]


def test_nan_and_infinity_are_not_zero() -> None:
    matrix = np.array([[np.nan, 0, -np.inf, -0.0, 0, 0, 0, 1]], np.float16)
    values, metadata = sparse.compress(matrix, "2:4")
    assert sparse.fields(metadata).tolist() == [[0b1000, 0b1110]]
    assert np.array_equal(values, np.array([[np.nan, -np.inf, 0, 1]]), equal_nan=True)


# --- what matrices may be -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", _PATTERNS)
@pytest.mark.parametrize("block", [1, 64, 1 << 16])
def test_strides_batches_and_blocks(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_blocks, "BLOCK", block)
    rng = np.random.default_rng(7)
    dense = rng.integers(-9, 9, (2, 3, 5, 48)).astype(np.float32)
    pruned = sparse.prune(dense, name)
    values, metadata = sparse.compress(pruned, name)
    assert values.shape[:-1] == metadata.shape[:-1] == (2, 3, 5)
    ways: list[Callable[[Array], Array]] = [lambda x: x.transpose(1, 0, 2, 3), lambda x: x[:, ::2], lambda x: x[0, 1, ::-1]]
    for way in ways:
        assert np.array_equal(sparse.prune(way(dense), name), way(pruned))
        packed = sparse.compress(way(pruned), name)
        assert np.array_equal(packed.values, way(values))
        assert np.array_equal(packed.metadata, way(metadata))
        assert np.array_equal(sparse.decompress(way(values), way(metadata), name), way(pruned))
    fortran = np.asfortranarray(pruned[0, 0])
    assert np.array_equal(sparse.compress(fortran, name).values, values[0, 0])
    pruned[1, 2, 4, 40:] = 1
    with pytest.raises(sparse.NotSparseError, match=r"in row 4, column 40 .* of matrix \(1, 2\);") as caught:
        sparse.check(pruned, name)
    assert caught.value.count == 8 // _PATTERNS[name].chunk


def test_the_matrix_stays_as_it_is() -> None:
    matrix = np.arange(64, dtype=np.float16).reshape(4, 16)
    before = matrix.copy()
    pruned = sparse.prune(matrix, "2:4")
    sparse.decompress(*sparse.compress(pruned, "2:4"), "2:4")
    assert np.array_equal(matrix, before)
    assert not np.shares_memory(pruned, matrix)


def test_raw_bits_with_their_type() -> None:
    matrix = _random(3, next(entry for entry in _ELEMENTS if entry.name == "e4m3"), 8, 32)
    pruned = sparse.prune(matrix, "2:4")
    raw = sparse.prune(_bits(matrix), "2:4", element="e4m3")
    assert raw.dtype == np.uint8
    assert np.array_equal(raw, _bits(pruned))
    signed = np.where(raw, raw, 0x80).astype(np.uint8)  # negative zeros
    assert np.array_equal(sparse.compress(signed, "2:4", element="e4m3").metadata, sparse.compress(pruned, "2:4").metadata)
    with pytest.raises(sparse.NotSparseError):
        sparse.check(signed, "2:4", element="u8")  # there 0x80 is not a zero


def test_padding() -> None:
    matrix = np.array([[1, 2, 0, 0, 5, 6]], np.float16)
    assert np.array_equal(sparse.prune(matrix, "2:4", pad=True), matrix)
    sparse.check(matrix, "2:4", pad=True)
    values, metadata = sparse.compress(matrix, "2:4", pad=True)
    assert np.array_equal(sparse.decompress(values, metadata, "2:4"), np.pad(matrix, [(0, 0), (0, 2)]))


@pytest.mark.parametrize("name", _PATTERNS)
@pytest.mark.parametrize("block", [1, 64, 1 << 16])
def test_padding_of_batches_goes_away(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any memory order, padding is as if zeros followed, and the shape crops them; so for masks."""
    monkeypatch.setattr(sparse_blocks, "BLOCK", block)
    dense = np.random.default_rng(8).integers(-9, 9, (3, 2, 5, 45)).astype(np.float16).transpose(1, 0, 2, 3)
    whole = np.pad(dense, [(0, 0)] * 3 + [(0, 3)])
    pruned = sparse.prune(whole, name)
    assert np.array_equal(sparse.prune(dense, name, pad=True), pruned[..., :45])
    assert np.array_equal(sparse.prune(dense, name, (pruned != 0)[..., :45], pad=True), pruned[..., :45])
    values, metadata = sparse.compress(pruned[..., :45], name, pad=True)
    expected = sparse.compress(pruned, name)
    assert np.array_equal(values, expected.values)
    assert np.array_equal(metadata, expected.metadata)
    for shape in ((2, 3, 5, 45), (5, 45)):
        back = sparse.decompress(values, metadata, name, shape)
        assert np.array_equal(back, pruned[..., :45])
        assert back.flags.c_contiguous


def test_an_instruction_knows_its_pattern() -> None:
    random = np.random.default_rng(0)
    for spelling, name in (
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "2:4"),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "1:2"),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32", "4:8"),
    ):
        ins = ptxmma.instruction(spelling)
        matrix = random.standard_normal((3, 64)).astype(np.float32)
        pruned = sparse.prune(matrix, ins)
        assert np.array_equal(pruned, sparse.prune(matrix, name))
        sparse.check(pruned, ins)
        values, metadata = sparse.compress(pruned, ins)
        assert np.array_equal(metadata, sparse.compress(pruned, name).metadata)
        assert np.array_equal(sparse.decompress(values, metadata, ins), pruned)
    with pytest.raises(ValueError, match="is not sparse: it has no metadata"):
        sparse.prune(matrix, ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"))


def test_codes_from_quantising_are_pruned_by_their_type() -> None:
    """torch has no dtype for e2m1: its codes are ``uint8``, in whose order -0.5 (0b1001) would be larger than 6 (0b0111)."""
    torch = pytest.importorskip("torch")
    codes = torch.tensor([[0b1001, 0b0111, 0b1001, 0b0110] * 16], dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"dtype uint8, which may hold the bits of e4m3, .* say which with element="):
        sparse.prune(codes, "2:4")
    assert sparse.prune(codes, "2:4", element="e2m1")[0, :4].tolist() == [0, 0b0111, 0, 0b0110]
    assert sparse.prune(codes, "2:4", element="u8")[0, :4].tolist() == [0b1001, 0, 0b1001, 0]


def test_torch_in_torch_out() -> None:
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(1)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn, torch.int8):
        dense = (torch.randn((32, 64), generator=generator) * 9).to(dtype)
        pruned = sparse.prune(dense, "2:4")
        values, metadata = sparse.compress(pruned, "2:4")
        assert (pruned.dtype, values.dtype, metadata.dtype) == (dtype, dtype, torch.uint8)
        back = sparse.decompress(values, metadata, "2:4")
        assert torch.equal(back.view(torch.uint8), pruned.view(torch.uint8))
        assert torch.equal(sparse.from_fields(sparse.fields(metadata)), metadata)
        mask = pruned.to(torch.float32) != 0
        assert torch.equal(sparse.prune(dense, "2:4", mask).view(torch.uint8), pruned.view(torch.uint8))


@settings(max_examples=20)
@given(st.integers(0, 1 << 32), st.integers(1, 4), st.integers(1, 4))
def test_fields_and_back(seed: int, rows: int, pairs: int) -> None:
    fields = np.random.default_rng(seed).integers(0, 16, (2, rows, 2 * pairs))
    metadata = sparse.from_fields(fields)
    assert metadata.shape == (2, rows, pairs)
    assert np.array_equal(metadata, fields[..., ::2] + 16 * fields[..., 1::2])
    assert np.array_equal(sparse.fields(metadata), fields)


def test_the_first_illegal_field_is_named() -> None:
    metadata = sparse.from_fields([[[0b0100, 0b0001], [0b0101, 0b1110]], [[0b1000, 0b1000], [0b1000, 0b1111]]] * np.array(1))
    with pytest.raises(
        ValueError,
        match=r"^the metadata of row 1, chunk 0 of matrix \(0,\) is 0b0101, equal indices in 2:4; the indices of a field must differ$",
    ):
        sparse.decompress(np.ones((2, 2, 4), np.int8), metadata, "2:4")
    with pytest.raises(ValueError, match=r"^the metadata of row 0, chunk 1 is 0b0001, illegal in 1:2; legal: 0b0100, 0b1110$"):
        sparse.decompress(np.ones((2, 2), np.float32), metadata[0], "1:2")


@pytest.mark.parametrize("name", _PATTERNS)
def test_every_illegal_field_is_refused(name: str) -> None:
    legal = {int(field, 2) for entry in _SPEC.granularities if entry.name == name for field in entry.legal}
    values = np.ones((1, 2 * _PATTERNS[name].kept), np.int8)
    for field in range(16):
        for other in legal:
            metadata = sparse.from_fields(np.array([[other, field]]))
            if field in legal:
                sparse.decompress(values, metadata, name)
            else:
                with pytest.raises(ValueError, match=f"^the metadata of row 0, chunk 1 is {field:#06b}, "):
                    sparse.decompress(values, metadata, name)


def test_fields_out_of_order_are_legal_where_the_instructions_for_a_type_take_them() -> None:
    """FP6 and FP4 exist with ordered metadata only, and so does an instruction that says so; the C functions refuse the same."""
    fields = sparse.from_fields(np.array([[0b0100, 0b0001]]))
    values = np.arange(1, 5, dtype=np.uint8)[None]
    assert sparse.decompress(values.astype(np.float16), fields, "2:4").tolist() == [[1, 2, 0, 0, 4, 3, 0, 0]]
    for element in ("e2m1", "e2m3", "e3m2"):
        kind = next(entry for entry in _SPEC.types.elements if entry.name == element)
        for stored in (elements.typed(values.copy(), kind), values):
            with pytest.raises(ValueError, match=r"^the metadata of row 0, chunk 1 is 0b0001, out of order in 2:4; legal: 0b0100, 0b1000"):
                sparse.decompress(stored, fields, "2:4", element=element)
    with pytest.raises(ValueError, match="out of order in 2:4"):
        sparse.decompress(elements.typed(values.copy(), kind), fields, "2:4")
    either = [ptxmma.instruction(f"mma.sp{how}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") for how in ("", "::ordered_metadata")]
    assert sparse.decompress(values.astype(np.float16), fields, either[0]).any()
    with pytest.raises(ValueError, match="out of order in 2:4"):
        sparse.decompress(values.astype(np.float16), fields, either[1])
    with pytest.raises(ValueError, match="element = 'f16' does not fit values of dtype uint8; that dtype holds "):
        sparse.decompress(values, fields, "2:4", element="f16")


def test_a_made_up_pattern() -> None:
    """A pattern is only what its spec says: here 1 of 4, with fields of its own."""
    database = catalog().database
    legal = ("0b0011", "0b0110", "0b1001", "0b1100")
    pattern = msgspec.structs.replace(_PATTERNS["1:2"], name="1:4", chunk=4, legal=legal)
    chosen = Choice(units=4, fields={"0b0000": legal[3], **{f"{1 << n:#06b}": legal[n] for n in range(4)}}, text="x", source="x")
    made_up = msgspec.structs.replace(database, spec=msgspec.structs.replace(_SPEC, granularities=(pattern,), choices=(chosen,)))
    one_of_four = sparse.pattern("1:4", database=made_up)
    matrix = np.array([[0, 3, 0, 0, 0, 0, 0, 0], [4, 0, 0, 0, 0, 0, 6, 0]], np.int8)
    values, metadata = sparse.compress(matrix, one_of_four)
    assert values.tolist() == [[3, 0], [4, 6]]
    assert sparse.fields(metadata).tolist() == [[0b0110, 0b1100], [0b0011, 0b1001]]
    assert np.array_equal(sparse.decompress(values, metadata, one_of_four), matrix)
    assert sparse.prune(matrix + 1, one_of_four).tolist() == [[0, 4, 0, 0, 1, 0, 0, 0], [5, 0, 0, 0, 0, 0, 7, 0]]
    with pytest.raises(ValueError, match="unknown pattern '2:4'; known: 1:4"):
        sparse.pattern("2:4", database=made_up)


def test_the_patterns_are_those_of_the_instructions() -> None:
    in_registers = [instruction for instruction in ptxmma.instructions(sparse=True) if instruction.variant.instruction.metadata]
    assert {instruction.family for instruction in in_registers} == {"mma.sp", "wgmma.sp"}
    for instruction in in_registers:
        metadata = instruction.metadata
        coding = sparse.pattern(metadata.granularity.name)
        assert {int(field, 2) for field in metadata.legal} <= set(np.flatnonzero(coding.legal).tolist())
        assert set(coding.fields.values()) <= {int(field, 2) for field in metadata.legal}


# --- PyTorch --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float32"])
@pytest.mark.parametrize("shape", [(32, 128), (96, 256), (64, 640)])
def test_pytorch_compresses_to_the_same_bits(dtype: str, shape: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    conversions = pytest.importorskip("torch.sparse._semi_structured_conversions")
    name = "1:2" if dtype == "float32" else "2:4"
    generator = torch.Generator().manual_seed(shape[1])
    dense = (torch.randn(shape, generator=generator) * 3).to(getattr(torch, dtype))
    dense[torch.rand(shape, generator=generator) < 0.4] = -0.0
    dense = torch.where(sparse.prune(dense, name) == 0, dense * 0, dense)  # zeros of both signs stay among the values
    packed, meta = conversions.sparse_semi_structured_from_dense_cutlass(dense)

    values, metadata = sparse.compress(dense, name)
    assert torch.equal(values.view(torch.uint8), packed.view(torch.uint8))
    ours = sparse.to_torch(values, metadata)
    assert ours.metadata.dtype == meta.dtype
    assert torch.equal(ours.metadata, meta)
    assert torch.equal(ours.values, values)
    back = sparse.from_torch(packed, meta)
    assert torch.equal(back.metadata, metadata)
    plain = sparse.from_torch(packed.numpy(), meta.numpy()) if dtype != "bfloat16" else back
    assert np.array_equal(plain.metadata, metadata.numpy())
    # Before the reordering: PyTorch's own words, gathered back through its offsets.
    offsets = conversions._calculate_meta_reordering_scatter_offsets(*meta.shape, meta.dtype, "cpu")
    assert torch.equal(metadata.view(meta.dtype), meta.reshape(-1)[offsets].reshape(meta.shape))


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch calls its sparse tensors a prototype
def test_pytorch_takes_what_we_make() -> None:
    torch = pytest.importorskip("torch")
    dense = sparse.prune(torch.randn((64, 128)).to(torch.float16), "2:4")
    packed, meta = sparse.to_torch(*sparse.compress(dense, "2:4"))
    tensor = torch.sparse.SparseSemiStructuredTensorCUTLASS(dense.shape, packed, meta, None, None, None)
    assert torch.equal(tensor.to_dense(), dense)


def test_pytorch_has_the_types_that_we_list() -> None:
    torch = pytest.importorskip("torch")
    types = {str(dtype).removeprefix("torch.") for dtype in torch.sparse.SparseSemiStructuredTensorCUTLASS._DTYPE_SHAPE_CONSTRAINTS}
    assert {dtype.name for dtype in torch_sparse._torch_patterns()} == types


def test_pytorch_shares_what_may_be_written() -> None:
    torch = pytest.importorskip("torch")
    values, metadata = sparse.compress(sparse.prune(np.ones((32, 64), np.float16), "2:4"), "2:4")
    packed, meta = sparse.to_torch(values, metadata)
    assert packed.data_ptr() == values.ctypes.data
    assert sparse.from_torch(packed, meta).values is packed
    values.flags.writeable = metadata.flags.writeable = False
    copied = sparse.to_torch(values, metadata)  # PyTorch would warn of memory that must not be written
    assert copied.values.data_ptr() != values.ctypes.data
    assert torch.equal(copied.values, packed)
    assert torch.equal(copied.metadata, meta)


def test_what_is_cached_cannot_be_written() -> None:
    for name in _PATTERNS:
        pattern = sparse.pattern(name)
        assert sparse.pattern(name) is pattern
        for table in vars(pattern).values():
            assert not isinstance(table, np.ndarray) or not table.flags.writeable


# --- bad input ------------------------------------------------------------------------------------------------------------------

_M = np.zeros((32, 64), np.float16)
_V, _E = np.zeros((32, 32), np.float16), np.full((32, 8), 0x44, np.uint8)
_BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no array": (
        lambda: sparse.compress([[0.0] * 8], "2:4"),
        r"must be a NumPy array, .* or an array with __dlpack__, not list",
    ),
    "a vector": (lambda: sparse.check(_M[0], "2:4"), r"the matrix has shape \(64,\); it needs rows and columns, at least one of each"),
    "no rows": (lambda: sparse.compress(_M[:0], "2:4"), r"the matrix has shape \(0, 64\); it needs rows and columns"),
    "no columns": (lambda: sparse.prune(_M[:, :0], "2:4"), r"the matrix has shape \(32, 0\)"),
    "half a byte": (
        lambda: sparse.compress(_M[:, :12], "2:4"),
        r"the matrix for 2:4 of shape \(32, 12\): the last size must be a multiple of 8, not 12; pad=True pads to 16",
    ),
    "half a chunk": (
        lambda: sparse.prune(_M[:, :10], "4:8"),
        r"the matrix for 4:8 of shape \(32, 10\): the last size must be a multiple of 8, not 10; pad=True pads to 16",
    ),
    "complex": (
        lambda: sparse.prune(_M.astype(np.complex64), "2:4"),
        r"the matrix has dtype complex64, which is not a number",
    ),
    "big-endian": (lambda: sparse.check(_M.astype(">f2"), "2:4"), r"dtype >f2, of the other byte order"),
    "another float": (
        lambda: sparse.check(_M.astype(np.longdouble), "2:4"),
        r"longdouble|float128|float96, which no element type has; allowed: float16, bfloat16",
    ),
    "a pattern of numbers": (lambda: sparse.compress(_M, [2, 4]), r"unknown pattern \[2, 4\]; known: 2:4, 1:2, 4:8"),  # type: ignore[arg-type]
    "a list of types": (lambda: sparse.check(_M, "2:4", element=["f16"]), r"unknown element type \['f16'\]; types"),  # type: ignore[arg-type]
    "raw bits": (
        lambda: sparse.check(_M.view(np.uint16), "2:4"),
        r"uint16, which may hold the bits of (\w+, )*f16, bf16, s1z4m11, b16: say which with element=",
    ),
    "bytes of any type": (
        lambda: sparse.prune(_E, "2:4"),
        r"uint8, which may hold the bits of e4m3, e5m2, e3m2, e2m3, e2m1, ue4m3, ue5m3, u8, s8, u4, s4, b1, b8, b8x16: say which with",
    ),
    "bytes with a mask": (lambda: sparse.prune(_E, "2:4", _E > 99), r"dtype uint8, which may hold .*: say which with element="),
    "bytes to check": (lambda: sparse.check(_E, "2:4"), r"dtype uint8, which may hold .*: say which with element="),
    "bytes to compress": (lambda: sparse.compress(_E, "2:4"), r"dtype uint8, which may hold .*: say which with element="),
    "a masked array": (
        lambda: sparse.prune(np.ma.masked_less(_M, 1), "2:4"),
        r"the matrix is a masked array, whose mask would be lost; .*: \.filled\(0\)",
    ),
    "an uncropped shape": (
        lambda: sparse.decompress(_V, _E, "2:4", (32, 48)),
        r"shape \(32, 48\) does not fit values that hold a matrix of shape \(32, 64\), .* 32 x 57\.\.64",
    ),
    "a shape of one size": (lambda: sparse.decompress(_V, _E, "2:4", (64,)), r"shape \(64,\) does not fit values"),
    "an unknown type": (
        lambda: sparse.check(_M, "2:4", element="f17"),
        r"unknown element type 'f17'; types with a zero: (\w+, )*f16, bf16",
    ),
    "a type without zero": (lambda: sparse.check(_E, "2:4", element="ue8m0"), r"unknown element type 'ue8m0'; types with a zero"),
    "another type": (lambda: sparse.check(_M, "2:4", element="bf16"), r"dtype float16; bf16 takes bfloat16, or uint16 for raw bits"),
    "a code too wide": (lambda: sparse.check(_E, "2:4", element="e2m1"), r"holds 0x44: e2m1 has 4 bits"),
    "an unknown pattern": (lambda: sparse.check(_M, "3:4"), r"unknown pattern '3:4'; known: 2:4, 1:2, 4:8"),
    "a mask of numbers": (
        lambda: sparse.prune(_M, "2:4", np.ones(_M.shape)),
        r"the mask must be bool of the matrix's shape \(32, 64\), not float64 of",
    ),
    "a small mask": (lambda: sparse.prune(_M, "2:4", np.ones((32, 8), bool)), r"the mask must be bool .* not bool of shape \(32, 8\)"),
    "infinity": (
        lambda: sparse.prune(_M + np.float16(np.inf), "4:8"),
        r"row 0, column 0 is inf, which has no magnitude to compare; give a mask",
    ),
    "values of another shape": (
        lambda: sparse.decompress(_V[:, :16], _E, "2:4"),
        r"metadata of shape \(32, 8\) describes values of shape \(32, 32\) in 2:4, not \(32, 16\)",
    ),
    "values of another pattern": (lambda: sparse.decompress(_V, _E, "1:2"), r"describes values of shape \(32, 16\) in 1:2, not \(32, 32\)"),
    "values of no type": (
        lambda: sparse.decompress(_V.astype(np.uint64).astype(np.int64), _E, "2:4"),
        r"values have dtype int64, which no element type has",
    ),
    "metadata of words": (
        lambda: sparse.decompress(_V, _E.view(np.int16), "2:4"),
        r"row-major metadata is uint8 \(..., rows, chunks / 2\), at least one; this is int16",
    ),
    "signed metadata": (lambda: sparse.decompress(_V, _E.view(np.int8), "2:4"), r"row-major metadata is uint8 .* this is int8"),
    "no metadata": (lambda: sparse.fields(_E[:0]), r"row-major metadata is uint8 .* of shape \(0, 8\)"),
    "an illegal field": (
        lambda: sparse.decompress(_V, _E + 1, "2:4"),
        r"the metadata of row 0, chunk 0 is 0b0101, equal indices in 2:4; the indices of a field must differ",
    ),
    "a row of metadata": (lambda: sparse.fields(_E[0]), r"row-major metadata is uint8"),
    "odd fields": (lambda: sparse.from_fields(np.zeros((2, 3), int)), r"3 chunks do not fill whole bytes; a row must have a multiple of 2"),
    "wide fields": (lambda: sparse.from_fields(np.array([[3, 16]])), r"fields must be 0..15; these are 3..16"),
    "negative fields": (lambda: sparse.from_fields(np.array([[-1, 2]])), r"fields must be 0..15; these are -1..2"),
    "fields of no integers": (
        lambda: sparse.from_fields(_M),
        r"fields are integers \(..., rows, chunks\), at least one; these are float16",
    ),
    "rows for PyTorch": (
        lambda: sparse.to_torch(_V[:8], _E[:8]),
        r"metadata has shape \(8, 8\); with values of float16 it needs a multiple of 32 rows and of 4 bytes in a row",
    ),
    "columns for PyTorch": (lambda: sparse.to_torch(_V[:, :8], _E[:, :2]), r"needs a multiple of 32 rows and of 4 bytes in a row"),
    "a batch for PyTorch": (lambda: sparse.to_torch(_V[None], _E[None]), r"values \(1, 32, 32\) and metadata .* must be matrices"),
    "narrow values for PyTorch": (
        lambda: sparse.to_torch(_V[:, :4], _E),
        r"metadata of shape \(32, 8\) describes values of shape \(32, 32\) in 2:4, not \(32, 4\)",
    ),
    "other rows for PyTorch": (lambda: sparse.to_torch(_V[:16], _E), r"describes values of shape \(32, 32\) in 2:4, not \(16, 32\)"),
    "another pattern for PyTorch": (
        lambda: sparse.to_torch(_V.astype(np.float32), _E),
        r"describes values of shape \(32, 16\) in 1:2, not \(32, 32\)",
    ),
    "illegal fields for PyTorch": (lambda: sparse.to_torch(_V, _E + 1), r"row 0, chunk 0 is 0b0101, equal indices"),
    "fp4 for PyTorch": (
        lambda: sparse.to_torch(_V.astype(ml_dtypes.float4_e2m1fn), _E),
        r"values have dtype float4_e2m1fn; PyTorch's SparseSemiStructuredTensorCUTLASS holds int8, float16, bfloat16, float32$",
    ),
    "int4 for PyTorch": (lambda: sparse.to_torch(_V.astype(ml_dtypes.int4), _E), r"values have dtype int4; PyTorch's"),
    "wide values for PyTorch": (
        lambda: sparse.to_torch(_V.astype(float), _E),
        r"values have dtype float64; PyTorch's",
    ),
    "fp8 for PyTorch": (lambda: sparse.to_torch(_V.astype(ml_dtypes.float8_e4m3fn), _E), r"values have dtype float8_e4m3fn; PyTorch's"),
    "bits for PyTorch": (lambda: sparse.to_torch(_V.view(np.uint16), _E), r"values have dtype uint16; PyTorch's .* holds int8, float16"),
    "bytes from PyTorch": (lambda: sparse.from_torch(_V, _E), r"meta has dtype uint8; with packed of float16 it is int16"),
    "words from PyTorch": (
        lambda: sparse.from_torch(_V.astype(np.int8), _E.view(np.int16)),
        r"meta has dtype int16; with packed of int8 it is int32",
    ),
    "narrow values from PyTorch": (
        lambda: sparse.from_torch(_V[:, :4], _E.view(np.int16)),
        r"metadata of shape \(32, 8\) describes values of shape \(32, 32\) in 2:4, not \(32, 4\)",
    ),
    "illegal fields from PyTorch": (
        lambda: sparse.from_torch(_V, np.zeros_like(_E).view(np.int16)),
        r"row 0, chunk 0 is 0b0000, equal indices",
    ),
    "fp4 from PyTorch": (
        lambda: sparse.from_torch(_V.astype(ml_dtypes.float4_e2m1fn), _E.view(np.int16)),
        r"packed have dtype float4_e2m1fn; PyTorch",
    ),
    "rows from PyTorch": (
        lambda: sparse.from_torch(_V[:8], _E[:8].view(np.int16)),
        r"meta has shape \(8, 4\); it needs a multiple of 32 rows and of 2 columns",
    ),
    "other rows from PyTorch": (
        lambda: sparse.from_torch(_V[:8], _E.view(np.int16)),
        r"packed \(8, 32\) and meta \(32, 4\) must be matrices",
    ),
}


@pytest.mark.parametrize("name", _BAD)
def test_bad_input(name: str) -> None:
    if "PyTorch" in name:
        pytest.importorskip("torch")
    call, message = _BAD[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("element", [entry for entry in _ELEMENTS if entry.infinity or entry.nan], ids=lambda entry: entry.name)
def test_the_first_number_without_a_magnitude_is_named(element: ElementType) -> None:
    everything = np.zeros((3, 8)).astype(elements.dtype(element))
    for number in [math.nan] + [math.inf, -math.inf] * element.infinity:
        matrix = everything.copy()
        matrix[1, 6] = matrix[2, 0] = number if elements.dtype(element).kind != "u" else element.largest_code + 1
        for name in _PATTERNS:
            with pytest.raises(ValueError, match=rf"^row 1, column 6 is {number}, which has no magnitude to compare; give a mask$"):
                sparse.prune(matrix, name, element=element)


def test_an_error_names_everything_that_offends() -> None:
    matrix = np.zeros((4, 16), np.float16)
    matrix[1, 8:11] = matrix[3, 12:] = 1
    message = (
        r"^the matrix has 3 of 4 elements that are not zero in row 1, column 8 \(chunk 2 of the row\); 2:4 allows 2, "
        r"and 2 chunks are like that; prune\(\) makes a matrix sparse$"
    )
    for function in (sparse.check, sparse.compress):
        with pytest.raises(sparse.NotSparseError, match=message) as caught:
            function(matrix, "2:4")
        again = pickle.loads(pickle.dumps(caught.value))
        for error in (caught.value, again):
            assert (error.row, error.column, error.chunk, error.count) == (1, 8, 2, 2)
        assert (type(again), str(again)) == (sparse.NotSparseError, str(caught.value))
    with pytest.raises(
        sparse.NotSparseError, match=r"has 4 of 4 groups of 2 elements that are not zero in row 0, column 0 .* 1 chunk is like"
    ):
        sparse.check(np.ones((1, 8), np.int8), "4:8")


# --- memory ---------------------------------------------------------------------------------------------------------------------


def test_working_memory_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of the matrix, whatever its strides and with padding: rows that are few and long, batches in another order, columns."""
    whole: Array = np.zeros((2048, 4096), np.float16)
    whole[..., ::2] = 1
    _working_memory_is_small(whole, pad=False)
    monkeypatch.setattr(sparse_blocks, "BLOCK", sparse_blocks.BLOCK >> 4)
    whole = np.ascontiguousarray(whole[::16]).reshape(2, 64, 4096)
    views = [whole, whole.transpose(1, 0, 2), np.asfortranarray(whole), whole.reshape(2, -1)[:, :-2], whole.reshape(4, -1)[::2]]
    for matrix, pad in itertools.product(views, (False, True)):
        matrix = matrix[..., :-2] if pad else matrix[..., : matrix.shape[-1] // 8 * 8]
        _working_memory_is_small(matrix, pad=pad)


def _working_memory_is_small(matrix: Array, *, pad: bool) -> None:
    values, metadata = sparse.compress(matrix, "2:4", pad=pad)
    turned, along = np.asfortranarray(values), np.asfortranarray(metadata)
    mask = matrix != 0
    measured: list[tuple[Callable[[], object], int]] = [
        (lambda: sparse.compress(matrix, "2:4", pad=pad), values.nbytes + metadata.nbytes),
        (lambda: sparse.decompress(values, metadata, "2:4", matrix.shape), matrix.nbytes),
        (lambda: sparse.decompress(turned, along, "2:4", matrix.shape), matrix.nbytes),
        (lambda: sparse.check(matrix, "2:4", pad=pad), 0),
        (lambda: sparse.prune(matrix, "2:4", pad=pad), matrix.nbytes),
        (lambda: sparse.prune(matrix, "2:4", mask, pad=pad), matrix.nbytes),
    ]
    for function, results in measured:
        tracemalloc.start()
        function()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak - results <= matrix.nbytes / 8
