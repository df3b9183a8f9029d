"""``<ptxmma/sparse.h>`` and ``cuda/sparse.cuh``: they compile everywhere, agree with brute force, and write nothing on error."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import header_programs
from cuda_calls import Nvcc
from header_programs import EXTERNAL, WARNINGS, run
from ptxmma.arrays import elements
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import c_headers, c_text, cuda, matrices
from ptxmma.matrices import sparse
from ptxmma.model import ElementType, Granularity

Codes = npt.NDArray[np.uint64]

_OK, _SIZE, _ALIGNMENT, _RANGE, _FIELD, _NOT_SPARSE, _NOT_FINITE, _NULL, _MULTIPLE = range(9)
_GUARD = 0xA5


class Kind(NamedTuple):
    """A pattern and an element type."""

    pattern: Granularity
    element: ElementType

    @property
    def name(self) -> str:
        return f"ptxmma_sparse_{c_text.identifier(self.pattern.name)}_{self.element.name}"

    @property
    def bits(self) -> int:
        return 4 if self.element.bits == 4 else -(-self.element.bits // 8) * 8

    @property
    def units(self) -> int:
        return self.pattern.chunk // self.pattern.unit

    @property
    def kept(self) -> int:
        return self.pattern.kept // self.pattern.unit


class Place(ctypes.Structure):
    _fields_ = (("row", ctypes.c_size_t), ("col", ctypes.c_size_t), ("chunk", ctypes.c_size_t))


@pytest.fixture(scope="module")
def library(cc: str, include: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source, folder = "#include <ptxmma/sparse.h>\n", tmp_path_factory.mktemp("library")
    return header_programs.library(cc, source, folder, "-O3", *EXTERNAL, "-I", include)


@pytest.fixture(scope="module")
def kinds(catalog: Catalog) -> list[Kind]:
    by_type = {}
    for instruction in catalog.all():
        if instruction.variant.instruction.metadata:
            element = next(entry for entry in catalog.database.spec.types.elements if entry.name == instruction.qualifiers["atype"])
            kind = Kind(instruction.metadata.granularity, element)
            by_type[kind.name] = kind
    assert len(by_type) > 10
    return list(by_type.values())


# --- matrices in memory, and what the functions should do -------------------------------------------------------------------


def packed(codes: Codes, bits: int, stride: int) -> npt.NDArray[np.uint8]:
    """Rows of elements as bytes, low bits first, with guard bytes between the rows and 16 more after them."""
    rows, cols = codes.shape
    memory = np.full(rows * stride * bits // 8 + 16, _GUARD, np.uint8)
    flat = codes[..., None] >> np.arange(0, bits, 4, dtype=np.uint64) & np.uint64(15)
    nibbles = flat.reshape(rows, -1).astype(np.uint8)
    for row in range(rows):
        start = row * stride * bits // 8
        memory[start : start + cols * bits // 8] = nibbles[row, ::2] | nibbles[row, 1::2] << 4
    return memory


def numbers(kind: Kind, codes: Codes) -> npt.NDArray[np.float64]:
    typed = codes.astype(elements.bits_dtype(kind.element))
    return elements.numbers(typed, kind.element).astype(np.float64)


def finite_codes(kind: Kind, random: np.random.Generator, rows: int, cols: int) -> Codes:
    codes = random.integers(0, 1 << kind.element.bits, (rows, cols), dtype=np.uint64)
    codes[~np.isfinite(numbers(kind, codes))] = 0
    codes[random.random(codes.shape) < 0.2] = random.choice([0, codes[0, 0]])  # zeros and ties
    return codes


def typed(kind: Kind, codes: Codes) -> Any:
    return elements.typed(codes.astype(elements.bits_dtype(kind.element)), kind.element)


def pruned(kind: Kind, codes: Codes, mask: npt.NDArray[np.bool_] | None = None) -> Codes:
    """By the library, which ``test_sparse.py`` compares with brute force."""
    matrix = sparse.prune(typed(kind, codes), kind.pattern.name, mask, element=kind.element)
    result: Codes = matrix.view(elements.bits_dtype(kind.element)).astype(np.uint64)
    return result


class Call:
    """Calls with arrays for pointers and numbers for sizes."""

    def __init__(self, library: ctypes.CDLL, kind: Kind) -> None:
        self._library, self._kind = library, kind
        self.place = Place(77, 77, 77)

    def __call__(self, verb: str, *arguments: Any) -> int:
        def given(one: Any) -> Any:
            return one.ctypes.data_as(ctypes.c_void_p) if isinstance(one, np.ndarray) else ctypes.c_size_t(one) if one is not None else None

        self.place = Place(77, 77, 77)
        function = getattr(self._library, f"{self._kind.name}_{verb}")
        return int(function(*map(given, arguments), ctypes.byref(self.place)))

    @property
    def where(self) -> tuple[int, int, int]:
        return self.place.row, self.place.col, self.place.chunk


def strided(kind: Kind, cols: int, pad: int) -> int:
    """A stride with padding that ends a byte."""
    return cols + pad * (2 if kind.bits == 4 else 1)


# --- compiling --------------------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_the_device_code_compiles(compiler: Nvcc, root: Path, tmp_path: Path) -> None:
    source = (root / "tests/cuda_sparse.cu").read_text(encoding="utf-8")
    options = ("-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-Xptxas", "-v", "-cubin")
    said = compiler.build(source, *options, folder=tmp_path)
    frames = {line.split()[0] for line in said.splitlines() if "bytes stack frame" in line}
    assert frames == {"0"}  # a pattern is made of constants, not memory


# Errors come before a launch, so the test needs no device; addresses are never followed.
_REFUSED = """
#include <ptxmma/cuda/sparse.cuh>
using namespace ptxmma::sparse;
struct given {
  size_t rows, cols, stride, values_stride, metadata_stride;
  uintptr_t matrix = 4096, values = 4096, metadata = 4096, fault = 0;
};
template <class Kind> cudaError_t row_major(const given& g) {
  return compress<Kind>(g.rows, g.cols, (const void*)g.matrix, g.stride, (void*)g.values, g.values_stride, (uint8_t*)g.metadata,
                        g.metadata_stride, (fault_word*)g.fault);
}
template <class Kind, class Layout> cudaError_t registers(const given& g) {
  return compress<Kind, Layout>(g.rows, g.cols, (const void*)g.matrix, g.stride, (void*)g.values, g.values_stride, (uint32_t*)g.metadata,
                                (fault_word*)g.fault);
}
template <class Kind, class Layout> int wrong() {
  const cudaError_t size = cudaErrorInvalidValue, address = cudaErrorMisalignedAddress;
  const size_t vector = 128 / Kind::element_bits, rows = 2 * Layout::rows, cols = 4 * Layout::chunks * Kind::chunk_elements;
  const given fine = {rows, cols, cols, cols / 2, cols / Kind::chunk_elements / 2};
  given g = fine;
#define REFUSED(field, value, status)                                                                                     \\
  g.field = (value);                                                                                                       \\
  if (row_major<Kind>(g) != (status)) return __LINE__;                                                                     \\
  if (&g.field != &g.metadata_stride && registers<Kind, Layout>(g) != (status)) return __LINE__;                           \\
  g = fine;
  for (size_t huge : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 16 + 1}) {
    REFUSED(rows, huge - huge % rows, size)
    REFUSED(cols, huge - huge % cols, size)
    REFUSED(stride, huge, size)
    REFUSED(values_stride, huge, size)
    REFUSED(metadata_stride, huge, size)
  }
  REFUSED(rows, 0, size)
  REFUSED(cols, 0, size)
  REFUSED(cols, cols - 1, size)
  REFUSED(cols, cols - vector / 2, size)
  REFUSED(stride, cols - vector, size)
  REFUSED(values_stride, cols / 2 - vector, size)
  REFUSED(metadata_stride, 0, size)
  REFUSED(stride, cols + vector / 2, address)
  REFUSED(values_stride, cols / 2 + vector / 4, address)
  REFUSED(matrix, 0, size)
  REFUSED(values, 0, size)
  REFUSED(metadata, 0, size)
  REFUSED(matrix, 4096 + 8, address)
  REFUSED(values, 4096 + 4, address)
  REFUSED(fault, 4096 + 4, address)
  const size_t columns = 3 * vector;  /* values of rows that end with half a vector */
  const void *const from = (const void*)4096, *const to = (const void*)(4096 + 8);
  if (check_arguments<Kind>(8, 4, columns, from, columns, to, columns / 2, from) != cudaSuccess) return __LINE__;
  if (check_arguments<Kind>(16, 4, columns, from, columns, from, columns / 2, from) != address) return __LINE__;
  if (check_arguments<Kind>(16, 4, columns, from, columns, to, columns, from) != address) return __LINE__;
  const size_t odd = vector / 4;  /* the strides of one row do not matter */
  if (check_arguments<Kind>(16, 1, columns, from, columns + odd, from, columns / 2 + odd, from) != cudaSuccess) return __LINE__;
  g.rows = rows - 1;
  if (registers<Kind, Layout>(g) != size) return __LINE__;
  g = fine;
  g.metadata += 2;
  if (registers<Kind, Layout>(g) != address) return __LINE__;
  return 0;
}
extern "C" int first_wrong() {
  int line = wrong<kind_2_4_f16, mma_sp_m16n8k32_metadata_b16>();
  if (!line) line = wrong<kind_1_2_tf32, wgmma_sp_m64nNk16_metadata_b32>();
  if (!line) line = wrong<kind_2_4_e4m3, mma_sp_m16n8k64_metadata_b8>();
  return line ? line : wrong<kind_4_8_e2m1, mma_sp_m16n8k128_metadata_b4>();
}
"""


# Names that programs define as macros, and functions that are not `static`.
_UNUSUAL = """
#define M 1
#define N 2
#define K 3
#define PTXMMA_FN __host__ __device__ inline
#include <ptxmma/cuda/sparse.cuh>
#include <ptxmma/mma_sp/f16_f16.cuh>
#undef N
#undef M
#undef K
uint32_t front() {
  return ptxmma::mma_sp_ordered_metadata<ptxmma::shape<16, 8, 32>, ptxmma::f32, ptxmma::f16, ptxmma::f16, ptxmma::f32>::e::lane(1, 2, 0);
}
cudaError_t use() {
  return ptxmma::sparse::compress<ptxmma::sparse::kind_2_4_f16>(1, 8, nullptr, 8, nullptr, 8, nullptr, 1, nullptr);
}
uint32_t lane() { return ptxmma::sparse::mma_sp_m16n8k16_metadata_b16::row(3, 4); }
"""


@pytest.mark.nvcc
def test_macros_of_a_program_do_no_harm(compiler: Nvcc, tmp_path: Path) -> None:
    compiler.build(_UNUSUAL, "-std=c++17", "-arch=sm_90a", "-c", folder=tmp_path)


def test_device_headers_are_ascii(catalog: Catalog) -> None:
    for output in (*c_headers.emit(catalog), *matrices.emit(catalog), *cuda.emit(catalog)):
        assert output.text.isascii(), output.path


@pytest.mark.nvcc
def test_impossible_matrices_are_refused_before_a_launch(compiler: Nvcc, tmp_path: Path) -> None:
    compiler.build(_REFUSED, "-std=c++17", "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", "-o", "refused.so", folder=tmp_path)
    line = ctypes.CDLL(str(tmp_path / "refused.so")).first_wrong()
    assert not line, _REFUSED.splitlines()[line - 1]


# --- agreement --------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 5), chunks=st.integers(1, 70), pads=st.tuples(*[st.integers(0, 3)] * 4))
def test_functions_agree_with_the_library(
    library: ctypes.CDLL, kinds: list[Kind], seed: int, rows: int, chunks: int, pads: tuple[int, int, int, int]
) -> None:
    """Bit for bit, with gaps between rows that stay as they are."""
    random = np.random.default_rng(seed)
    kind = kinds[seed % len(kinds)]
    call, cols = Call(library, kind), 2 * chunks * kind.pattern.chunk
    kept, row_bytes = cols * kind.pattern.kept // kind.pattern.chunk, chunks + pads[3]
    stride, other, values_stride = strided(kind, cols, pads[0]), strided(kind, cols, pads[1]), strided(kind, kept, pads[2])

    codes = finite_codes(kind, random, rows, cols)
    dense, result = packed(codes, kind.bits, stride), packed(codes * 0, kind.bits, other)
    assert call("prune", rows, cols, dense, stride, result, other) == _OK
    thinned = pruned(kind, codes)
    assert np.array_equal(result, packed(thinned, kind.bits, other))

    # A mask keeps what it names, with infinities and NaNs, but turns negative zeros positive.
    every = random.integers(0, 1 << kind.element.bits, (rows, cols), dtype=np.uint64)
    every[random.random(every.shape) < 0.2] = 1 << (kind.element.bits - 1)
    named = random.random((rows, cols // kind.pattern.unit, 1)).reshape(rows, -1, kind.units).argsort(-1).argsort(-1) < kind.kept
    named = np.repeat(named.reshape(rows, -1), kind.pattern.unit, -1) & (random.random((rows, cols)) < 0.9)
    mask = np.zeros((rows, cols + pads[3]), np.uint8)
    mask[:, :cols] = named * random.integers(1, 256, named.shape)
    whole, masked = packed(every, kind.bits, stride), pruned(kind, every, named)
    assert call("prune_masked", rows, cols, whole, stride, mask, mask.shape[1], result, other) == _OK
    assert np.array_equal(result, packed(masked, kind.bits, other))
    assert call("prune_masked", rows, cols, whole, stride, mask, mask.shape[1], whole, stride) == _OK  # in place
    assert np.array_equal(whole, packed(masked, kind.bits, stride))
    assert call("prune", rows, cols, dense, stride, dense, stride) == _OK  # in place
    assert np.array_equal(dense, packed(thinned, kind.bits, stride))

    assert call("check", rows, cols, dense, stride) == _OK
    expected = sparse.compress(typed(kind, thinned), kind.pattern.name, element=kind.element)
    values = expected.values.view(elements.bits_dtype(kind.element)).astype(np.uint64)
    packed_values, metadata = packed(values * 0, kind.bits, values_stride), np.full(rows * row_bytes + 16, _GUARD, np.uint8)
    assert call("compress", rows, cols, dense, stride, packed_values, values_stride, metadata, row_bytes) == _OK
    assert np.array_equal(packed_values, packed(values, kind.bits, values_stride))
    wanted = np.full_like(metadata, _GUARD)
    for row in range(rows):
        wanted[row * row_bytes :][:chunks] = expected.metadata[row]
    assert np.array_equal(metadata, wanted)

    back = packed(codes * 0, kind.bits, other)
    assert call("decompress", rows, cols, packed_values, values_stride, metadata, row_bytes, back, other) == _OK
    assert np.array_equal(back, packed(thinned, kind.bits, other))


_SETS = """
#include <ptxmma/sparse.h>
/* The first of some chunks whose two sets differ, or their number. */
size_t first_difference(ptxmma_sparse_kind (*of)(void), const uint64_t *chunks, size_t count) {
  const ptxmma_sparse_kind kind = of();
  for (size_t i = 0; i < count; i++) {
    const uint64_t chunk = kind.chunk_bytes == 8 ? chunks[i] : chunks[i] & ((UINT64_C(1) << (8 * kind.chunk_bytes)) - 1);
    if (ptxmma_sparse_set(&kind, chunk) != ptxmma_sparse_set_of_halves(&kind, (uint32_t)chunk, (uint32_t)(chunk >> 32))) return i;
  }
  return count;
}
"""


def test_a_set_of_halves_is_that_of_the_chunk(cc: str, include: Path, kinds: list[Kind], tmp_path: Path) -> None:
    (tmp_path / "sets.c").write_text(_SETS, encoding="utf-8")
    options = ["-shared", "-fPIC", "-O1", "-DPTXMMA_HOST_FN=", "-DPTXMMA_FN="]
    run(cc, *options, "-I", include, tmp_path / "sets.c", "-o", tmp_path / "sets.so")
    library = ctypes.CDLL(str(tmp_path / "sets.so"))
    library.first_difference.restype = ctypes.c_size_t
    random = np.random.default_rng(7)
    chunks = random.integers(0, 2**64, 20000, dtype=np.uint64)
    for unit in (4, 8, 16, 32):  # with units that are zero, or have only their top or lowest bit
        for low in range(0, 64, unit):
            keep = random.choice(np.array([0, 1, 1 << (unit - 1), (1 << unit) - 1], np.uint64), len(chunks))
            chunks &= ~np.uint64(((1 << unit) - 1) << low) | keep << np.uint64(low)
        for kind in kinds:
            function = ctypes.cast(getattr(library, kind.name), ctypes.c_void_p)
            assert library.first_difference(function, ctypes.c_void_p(chunks.ctypes.data), ctypes.c_size_t(len(chunks))) == len(chunks)
        chunks = random.integers(0, 2**64, 20000, dtype=np.uint64)


def test_every_legal_field_is_decompressed(library: ctypes.CDLL, kinds: list[Kind]) -> None:
    for kind in kinds:
        call = Call(library, kind)
        for legal in kind.pattern.legal:
            field = int(legal, 2)
            values = np.arange(1, 2 * kind.pattern.kept + 1, dtype=np.uint64)[None] % 7 + 1
            expected = np.zeros((2, kind.units, kind.pattern.unit), np.uint64)
            for chunk in range(2):
                expected[chunk, list(kind.pattern.kept_units(legal))] = values.reshape(2, kind.kept, kind.pattern.unit)[chunk]
            cols = 2 * kind.pattern.chunk
            result, metadata = packed(np.zeros((1, cols), np.uint64), kind.bits, cols), np.array([field * 17], np.uint8)
            packed_values = packed(values, kind.bits, values.shape[1])
            assert call("decompress", 1, cols, packed_values, values.shape[1], metadata, 1, result, cols) == _OK
            assert np.array_equal(result, packed(expected.reshape(1, -1), kind.bits, cols)), (kind.name, legal)


# --- errors -----------------------------------------------------------------------------------------------------------------


def test_errors_name_the_first_place_and_write_nothing(library: ctypes.CDLL, kinds: list[Kind]) -> None:
    random = np.random.default_rng(5)
    for kind in kinds:
        call, chunk = Call(library, kind), kind.pattern.chunk
        rows, cols = 3, 6 * chunk
        kept = cols * kind.pattern.kept // chunk
        codes = pruned(kind, finite_codes(kind, random, rows, cols))
        codes[1, 4 * chunk : 5 * chunk] = 1
        codes[2, :chunk] = 1
        dense = packed(codes, kind.bits, cols)
        assert call("check", rows, cols, dense, cols) == _NOT_SPARSE
        assert call.where == (1, 4 * chunk, 4)
        values, metadata = packed(np.zeros((rows, kept), np.uint64), kind.bits, kept), np.full(rows * 3, _GUARD, np.uint8)
        before = values.copy(), metadata.copy()
        assert call("compress", rows, cols, dense, cols, values, kept, metadata, 3) == _NOT_SPARSE
        assert call.where == (1, 4 * chunk, 4)
        assert np.array_equal(values, before[0])
        assert np.array_equal(metadata, before[1])

        mask, result = np.zeros((rows, cols), np.uint8), packed(codes * 0, kind.bits, cols)
        mask[1, 4 * chunk : 5 * chunk] = mask[2, :chunk] = 1
        untouched = result.copy()
        assert call("prune_masked", rows, cols, dense, cols, mask, cols, result, cols) == _NOT_SPARSE
        assert call.where == (1, 4 * chunk, 4)
        assert np.array_equal(result, untouched)

        metadata[:] = int(kind.pattern.legal[0], 2) * 17
        metadata[4] = 0b1111 << 4 | int(kind.pattern.legal[0], 2)
        unchanged = dense.copy()
        assert call("decompress", rows, cols, values, kept, metadata, 3, dense, cols) == _FIELD
        assert call.where == (1, 3 * chunk, 3)
        assert np.array_equal(dense, unchanged)


def test_pruning_refuses_nan_and_infinity(library: ctypes.CDLL, kinds: list[Kind]) -> None:
    refused = 0
    for kind in kinds:
        call, chunk = Call(library, kind), kind.pattern.chunk
        every = np.arange(1 << min(kind.element.bits, 16), dtype=np.uint64) << np.uint64(max(kind.element.bits - 16, 0))
        bad = every[~np.isfinite(numbers(kind, every))]
        assert len(bad) == 0 or kind.element.nan
        refused += len(bad) > 0
        for code in random_few(bad):
            codes = np.zeros((2, 4 * chunk), np.uint64)
            codes[1, chunk + 1] = code
            dense, result = packed(codes, kind.bits, 4 * chunk), packed(codes * 0, kind.bits, 4 * chunk)
            unchanged = result.copy()
            assert call("prune", 2, 4 * chunk, dense, 4 * chunk, result, 4 * chunk) == _NOT_FINITE
            assert call.where == (1, chunk + 1, 1)
            assert np.array_equal(result, unchanged)
    assert refused > 3


def random_few(codes: Codes) -> Iterator[np.uint64]:
    """A few of many, the first and the last among them."""
    yield from dict.fromkeys(codes[:: max(len(codes) // 5, 1)].tolist() + codes[-1:].tolist())


def test_bits_above_those_of_the_type_are_refused(library: ctypes.CDLL, kinds: list[Kind]) -> None:
    narrow = [kind for kind in kinds if kind.element.bits < kind.bits]
    assert {kind.element.name for kind in narrow} == {"e2m3", "e3m2"}
    for kind in narrow:
        for bit in range(kind.element.bits, kind.bits):
            for verb, arguments in verbs(kind).items():
                call, given = Call(library, kind), [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
                stride, chunk = given[3], kind.pattern.chunk
                assert call(verb, *given) == _OK
                at = stride + (chunk + 1) * stride // given[1]  # in the second chunk of the second row, of values too
                given[2][at] |= 1 << bit
                before = [one.copy() for one in given if isinstance(one, np.ndarray)]
                assert call(verb, *given) == _RANGE, (kind.name, verb)
                assert call.where == (1, chunk, 1)
                assert all(map(np.array_equal, [one for one in given if isinstance(one, np.ndarray)], before))


def test_a_result_in_place_has_the_stride_of_its_input(library: ctypes.CDLL, kinds: list[Kind]) -> None:
    for kind in kinds:
        call, cols = Call(library, kind), 2 * kind.pattern.chunk
        dense, mask = packed(np.ones((2, cols), np.uint64), kind.bits, 2 * cols), np.ones((2, cols), np.uint8)
        mask[:, :: kind.units] = mask[:, 1 :: kind.units] = 0
        mask[:] = np.repeat(np.arange(cols // kind.pattern.unit) % kind.units < kind.kept, kind.pattern.unit)
        before = dense.copy()
        assert call("prune", 2, cols, dense, cols, dense, 2 * cols) == _RANGE
        assert call("prune_masked", 2, cols, dense, cols, mask, cols, dense, 2 * cols) == _RANGE
        metadata = np.full((2, 1), int(kind.pattern.legal[0], 2) * 17, np.uint8)
        zeros = np.zeros_like(dense)
        assert call("compress", 2, cols, zeros, cols, zeros, cols, metadata, 1) == _RANGE
        assert call("decompress", 2, cols, zeros, cols, metadata, 1, zeros, cols) == _RANGE
        assert np.array_equal(dense, before)
        assert not zeros.any()
        assert call("prune_masked", 1, cols, dense, cols, mask, cols, dense, 2 * cols) == _OK
        assert call("prune", 1, cols, dense, cols, dense, 2 * cols) == _OK


def verbs(kind: Kind) -> dict[str, list[Any]]:
    """Arguments of every function for two rows without gaps: rows, columns, then arrays, of bytes or packed, with the stride of each."""
    cols = 2 * kind.pattern.chunk
    kept, codes = cols * kind.pattern.kept // kind.pattern.chunk, np.zeros((2, cols), np.uint64)
    matrix, result = packed(codes, kind.bits, cols), packed(codes + np.uint64(5), kind.bits, cols)
    values, metadata = (
        packed(codes[:, :kept] + np.uint64(5), kind.bits, kept),
        np.full((2, 1), int(kind.pattern.legal[0], 2) * 17, np.uint8),
    )
    return {
        "check": [2, cols, matrix, cols],
        "prune": [2, cols, matrix, cols, result, cols],
        "prune_masked": [2, cols, matrix, cols, np.zeros((2, cols), np.uint8), cols, result, cols],
        "compress": [2, cols, matrix, cols, values, kept, metadata, 1],
        "decompress": [2, cols, values, kept, metadata, 1, result, cols],
    }


def test_impossible_arguments_are_refused(library: ctypes.CDLL, kinds: list[Kind]) -> None:
    huge = 2 ** (8 * ctypes.sizeof(ctypes.c_size_t)) - 1
    for kind in kinds:
        call = Call(library, kind)

        def refused(verb: str, arguments: list[Any], place: int, value: int | None, status: int, call: Call = call) -> None:
            given = [value if index == place else one for index, one in enumerate(arguments)]
            arrays = [one for one in given if isinstance(one, np.ndarray)]
            before = [one.copy() for one in arrays]
            assert call(verb, *given) == status, (verb, place, value)
            assert call.where == (77, 77, 77)
            assert all(map(np.array_equal, arrays, before)), (verb, place, value)

        for verb, arguments in verbs(kind).items():
            rows, cols = arguments[:2]
            multiple = kind.pattern.chunk * (2 if "compress" in verb else 1)
            wrong: dict[int, list[int | None]] = {
                0: [0, 2**62, huge // 2, huge],
                1: [0, cols + 1, cols + multiple, huge // cols * cols, huge],
            }
            refused(verb, arguments, 1, cols - 1, _MULTIPLE)
            for place in range(2, len(arguments), 2):
                least, bits = arguments[place + 1], 8 if arguments[place].ndim == 2 else kind.bits
                refused(verb, arguments, place, None, _NULL)
                wrong[place + 1] = [0, least - 1, 2**61, 2**64 // bits, huge // 2, huge]
            for place, values in wrong.items():
                for value in values:
                    refused(verb, arguments, place, value, _SIZE)
            refused(verb, [rows, huge // cols * cols, *[huge if isinstance(one, int) else one for one in arguments[2:]]], 0, rows, _SIZE)
            if "compress" in verb:  # half a byte of metadata
                refused(verb, arguments, 1, kind.pattern.chunk, _MULTIPLE)
            for place in range(2, len(arguments), 2):
                if kind.bits == 4 and arguments[place].ndim == 1:  # a row would end within a byte
                    refused(verb, arguments, place + 1, arguments[place + 1] + 1, _ALIGNMENT)
            assert call(verb, *arguments) == _OK

            sizes = [ctypes.c_size_t(one) if isinstance(one, int) else ctypes.c_void_p(one.ctypes.data) for one in arguments]
            assert getattr(library, f"ptxmma_sparse_{verb}")(None, *sizes, None) == _NULL
            no_kind = ctypes.create_string_buffer(256)
            assert getattr(library, f"ptxmma_sparse_{verb}")(no_kind, *sizes, None) == _SIZE


def test_sizes_stop_where_bits_could_no_longer_be_counted(library: ctypes.CDLL) -> None:
    most = 2 ** (8 * ctypes.sizeof(ctypes.c_size_t) - 1) - 1  # half of what size_t counts

    def size(rows: int, cols: int, stride: int, bits: int) -> int:
        sizes = map(ctypes.c_size_t, (rows, cols, stride))
        return int(library.ptxmma_sparse_size(*sizes, ctypes.c_uint32(bits), ctypes.c_size_t(4)))

    for bits in (4, 8, 16, 32):
        largest = most // max(bits, 8)  # elements from the first of a matrix to its last
        even = largest - largest % 8
        assert size(1, 4, largest, bits) == size(1, even, even, bits) == _OK
        assert size(1, 4, largest + 1, bits) == _SIZE
        assert size(3, 8, (even - 8) // 16 * 8, bits) == _OK
        assert size(3, 8, (even - 8) // 16 * 8 + 8, bits) == _SIZE
        assert size(largest // 8, 8, 8, bits) == _OK
        assert size(largest // 8 + 1, 8, 8, bits) == _SIZE


def test_every_status_has_a_text(library: ctypes.CDLL) -> None:
    library.ptxmma_status_text.restype = ctypes.c_char_p
    texts = [library.ptxmma_status_text(status) for status in range(9)]
    assert len(set(texts)) == 9
    assert library.ptxmma_status_text(9) not in texts


# --- sanitizers and speed ---------------------------------------------------------------------------------------------------

_DRIVER = """
#include <ptxmma/sparse.h>
#include <stdlib.h>
#define MUST(call, status) do { if ((call) != (status)) return __LINE__ % 250 + 1; } while (0)
static int run(ptxmma_sparse_kind kind, size_t rows, size_t chunks, size_t pad) {
  const size_t cols = chunks * kind.chunk_elements, stride = cols + 2 * pad, bits = kind.element_bits;
  const size_t kept = cols / 2, row = cols * bits / 8, line = stride * bits / 8;
  const size_t size = (rows - 1) * line + row; /* the last row has no padding: a byte more is out of bounds */
  unsigned char *matrix = malloc(size + 1), *copy = malloc(size + 1), *values = malloc(rows * row / 2);
  uint8_t *metadata = malloc(rows * chunks / 2), *mask = malloc((rows - 1) * (cols + pad) + cols);
  ptxmma_sparse_place place;
  for (size_t i = 1; i <= size; i++) matrix[i] = (unsigned char)((i * 7919u >> 3) & 0x33);
  MUST(ptxmma_sparse_prune(&kind, rows, cols, matrix + 1, stride, copy + 1, stride, NULL), PTXMMA_OK); /* odd addresses */
  for (size_t i = 0; i < (rows - 1) * (cols + pad) + cols; i++) mask[i] = 0;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c += kind.chunk_elements) mask[r * (cols + pad) + c] = (uint8_t)(1 + c % 255);
  MUST(ptxmma_sparse_prune_masked(&kind, rows, cols, matrix + 1, stride, mask, cols + pad, matrix + 1, stride, NULL), PTXMMA_OK);
  MUST(ptxmma_sparse_check(&kind, rows, cols, matrix + 1, stride, &place), PTXMMA_OK);
  MUST(ptxmma_sparse_check(&kind, rows, cols, NULL, stride, &place), PTXMMA_ERROR_NULL);
  memset(mask + (rows - 1) * (cols + pad) + cols - kind.chunk_elements, 1, kind.chunk_elements);
  MUST(ptxmma_sparse_prune_masked(&kind, rows, cols, matrix + 1, stride, mask, cols + pad, copy + 1, stride, &place),
       PTXMMA_ERROR_NOT_SPARSE);
  MUST(ptxmma_sparse_prune_masked(&kind, rows, cols, matrix + 1, stride, NULL, cols + pad, copy + 1, stride, NULL), PTXMMA_ERROR_NULL);
  MUST(ptxmma_sparse_compress(&kind, rows, cols, copy + 1, stride, values, kept, metadata, chunks / 2, &place), PTXMMA_OK);
  MUST(ptxmma_sparse_compress(&kind, rows, cols + 1, copy + 1, stride + 1, values, kept, metadata, chunks / 2, &place),
       PTXMMA_ERROR_MULTIPLE);
  MUST(ptxmma_sparse_compress(&kind, SIZE_MAX, cols, copy + 1, stride, values, kept, metadata, chunks / 2, &place), PTXMMA_ERROR_SIZE);
  MUST(ptxmma_sparse_decompress(&kind, rows, cols, values, kept - 1, metadata, chunks / 2, matrix + 1, stride, &place), PTXMMA_ERROR_SIZE);
  MUST(ptxmma_sparse_decompress(&kind, rows, cols, values, kept, metadata, chunks / 2, matrix + 1, stride, &place), PTXMMA_OK);
  for (size_t r = 0; r < rows; r++)
    for (size_t i = 0; i < row; i++) if (matrix[1 + r * line + i] != copy[1 + r * line + i]) return 2;
  memset(copy + 1 + size - kind.chunk_bytes, 0x11, kind.chunk_bytes);
  MUST(ptxmma_sparse_compress(&kind, rows, cols, copy + 1, stride, values, kept, metadata, chunks / 2, &place), PTXMMA_ERROR_NOT_SPARSE);
  MUST(place.row == rows - 1 && place.chunk == chunks - 1, 1);
  MUST(ptxmma_sparse_compress(&kind, rows, cols, copy + 1, stride, values, kept, metadata, chunks / 2, NULL), PTXMMA_ERROR_NOT_SPARSE);
  metadata[rows * chunks / 2 - 1] = 0xff;
  MUST(ptxmma_sparse_decompress(&kind, rows, cols, values, kept, metadata, chunks / 2, matrix + 1, stride, NULL), PTXMMA_ERROR_FIELD);
  if (kind.not_finite >> (kind.element_bits - 1) == 0) { /* all ones are a NaN */
    memset(matrix + 1 + size - 4, 0xff, 4);
    MUST(ptxmma_sparse_prune(&kind, rows, cols, matrix + 1, stride, copy + 1, stride, &place), PTXMMA_ERROR_NOT_FINITE);
    MUST(place.row == rows - 1 && place.chunk == chunks - 1, 1);
  }
  free(matrix); free(copy); free(values); free(metadata); free(mask);
  return 0;
}
int main(void) {
  const ptxmma_sparse_kind kinds[] = {KINDS};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    for (size_t chunks = 2; chunks < 140; chunks += 34)
      for (size_t pad = 0; pad < 3; pad++) {
        const int failed = run(kinds[i], 1 + pad, chunks, pad);
        if (failed) return failed;
      }
  return 0;
}
"""


def test_nothing_leaves_its_bounds(cc: str, include: Path, kinds: list[Kind], tmp_path: Path) -> None:
    source, program = tmp_path / "driver.c", tmp_path / "driver"
    source.write_text(_DRIVER.replace("KINDS", ", ".join(f"{kind.name}()" for kind in kinds)), encoding="utf-8")
    run(cc, "-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I", include, source, "-o", program)
    run(program)


def test_the_benchmark_runs(cc: str, root: Path, include: Path, tmp_path: Path) -> None:
    program = tmp_path / "bench_sparse"
    run(cc, "-std=c99", *WARNINGS, "-O3", "-march=native", "-I", include, root / "tests/bench_sparse.c", "-o", program)
    done = subprocess.run([program, "256", "512", "3"], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) >= {"memcpy", "check", "compress", "decompress", "compress/memcpy"}
