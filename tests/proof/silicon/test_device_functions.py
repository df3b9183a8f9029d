"""The generated C functions as device code, for every layout, format and pattern: bit for bit as in Python.

Each test also runs the same source on the host, which checks the calls on every machine.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import FIELDS
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.metadata import Metadata
from ptxmma.catalog.operands.scales import Scales
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.matrices import packing
from ptxmma.generator.emit.matrices.sparse_matrices import memory_bits
from ptxmma.matrices import scaling, sparse
from ptxmma.matrices.scaling import float_codes
from ptxmma.model import BlockFormat, ElementType, Granularity

#: Cases in one source file: few enough that the compiler's processes share the work.
_PER_FILE = 24
_SUPPORT = r"""
struct Arguments {
  void* buffers[6];
  unsigned long long numbers[6];
  unsigned threads;
};
template <class T> PTXMMA_FN T* at(const Arguments& a, int buffer) { return static_cast<T*>(a.buffers[buffer]); }
"""
_ON_HOST = r"""
template <class Case> void start(const Arguments& a) {
  for (unsigned thread = 0; thread < a.threads; ++thread) Case::run(a, thread);
}
"""
_ON_DEVICE = r"""
template <class Case> __global__ void kernel(Arguments a) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread < a.threads) Case::run(a, thread);
}
template <class Case> void start(const Arguments& a) { kernel<Case><<<(a.threads + 127) / 128, 128>>>(a); }
"""
_RUN_ON_HOST = r"""
extern "C" const char* run(int number, Arguments a, const size_t*, int) {
  cases[number](a);
  return nullptr;
}
"""
_RUN_ON_DEVICE = r"""
#define TRY(call) do { const cudaError_t status = (call); if (status != cudaSuccess) return cudaGetErrorString(status); } while (0)
extern "C" const char* run(int number, Arguments a, const size_t* bytes, int count) {
  Arguments there = a;
  for (int i = 0; i < count; ++i) {
    TRY(cudaMalloc(&there.buffers[i], bytes[i]));
    TRY(cudaMemcpy(there.buffers[i], a.buffers[i], bytes[i], cudaMemcpyHostToDevice));
  }
  cases[number](there);
  TRY(cudaGetLastError());
  for (int i = 0; i < count; ++i) {
    TRY(cudaMemcpy(a.buffers[i], there.buffers[i], bytes[i], cudaMemcpyDeviceToHost));
    TRY(cudaFree(there.buffers[i]));
  }
  return nullptr;
}
"""


class _Arguments(ctypes.Structure):
    _fields_ = (("buffers", ctypes.c_void_p * 6), ("numbers", ctypes.c_ulonglong * 6), ("threads", ctypes.c_uint))


class Machine:
    """Compiled cases, for the host or the device: C++ statements by name, which each thread runs."""

    def __init__(self, where: str, compiler: str, include: Path, folder: Path, cases: Mapping[str, str]) -> None:
        names = list(cases)
        self._places = {name: divmod(number, _PER_FILE) for number, name in enumerate(names)}
        device = where == "device"
        headers = sorted(path.name for path in (include / "ptxmma").glob("*_pack.h"))
        top = "".join(f"#include <ptxmma/{name}>\n" for name in (*headers, "block_scaling.h")) + _SUPPORT
        options = ["-std=c++17", "-shared", "-I", str(include)]
        if device:
            options += ["-gencode", "arch=compute_90a,code=sm_90a", "-Xcompiler", "-fPIC"]
        else:
            options += ["-fPIC", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-fsanitize-undefined-trap-on-error"]

        def build(first: int) -> ctypes.CDLL:
            own = names[first : first + _PER_FILE]
            source, library = folder / f"cases_{first}.{'cu' if device else 'cpp'}", folder / f"cases_{first}.so"
            bodies = [
                f"struct Case_{number} {{\n  PTXMMA_FN void run(const Arguments& a, unsigned thread) {{\n    {cases[name]}\n  }}\n}};\n"
                for number, name in enumerate(own, first)
            ]
            table = ", ".join(f"start<Case_{number}>" for number in range(first, first + len(own)))
            source.write_text(
                top + "".join(bodies) + (_ON_DEVICE if device else _ON_HOST)
                + f"static void (*const cases[])(const Arguments&) = {{{table}}};\n" + (_RUN_ON_DEVICE if device else _RUN_ON_HOST),
                encoding="utf-8",
            )  # fmt: skip
            done = subprocess.run([compiler, *options, str(source), "-o", str(library)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[:4000]
            loaded = ctypes.CDLL(str(library))
            loaded.run.restype = ctypes.c_char_p
            return loaded

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self._libraries = list(pool.map(build, range(0, len(names), _PER_FILE)))

    def run(self, name: str, threads: int, *buffers: Array, numbers: tuple[int, ...] = ()) -> None:
        """Run a case in some threads; it reads and writes the buffers."""
        library, number = self._places[name]
        assert all(buffer.flags.c_contiguous for buffer in buffers)
        arguments = _Arguments(threads=threads)
        arguments.buffers[: len(buffers)] = [buffer.ctypes.data for buffer in buffers]
        arguments.numbers[: len(numbers)] = numbers
        sizes = (ctypes.c_size_t * len(buffers))(*[buffer.nbytes for buffer in buffers])
        error = self._libraries[library].run(number, arguments, sizes, len(buffers))
        assert error is None, f"{name}: {error.decode()}"


# --- what there is ----------------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """An operand with its functions; with several n, one for each."""

    function: packing.Fragment
    operand: Operand


class Kind(NamedTuple):
    """A pattern for an element type."""

    pattern: Granularity
    element: ElementType

    @property
    def name(self) -> str:
        return f"ptxmma_sparse_{c_text.identifier(self.pattern.name)}_{self.element.name}"


@pytest.fixture(scope="module")
def pieces(catalog: Catalog) -> list[Piece]:
    """For every layout, every way of lying in memory, and every n an operand."""
    multiplying = [instruction for instruction in catalog.all() if instruction.operation == "multiply"]
    operands = {id(operand): operand for instruction in multiplying for operand in instruction.operands}
    by_layout: dict[tuple[str, int], Piece] = {}
    for operand in operands.values():
        if operand.layout is not None and operand.layout.kind == "fragment":
            function = packing.fragments([operand], {operand.layout.name: [operand.cols]})[0]
            by_layout.setdefault((function.stem, operand.cols), Piece(function, operand))
    covered = {piece.operand.layout.name for piece in by_layout.values() if piece.operand.layout}
    assert len(covered) > 100
    assert covered == {operand.layout.name for operand in operands.values() if operand.layout and operand.layout.kind == "fragment"}
    return list(by_layout.values())


@pytest.fixture(scope="module")
def metadata(catalog: Catalog) -> list[Metadata]:
    """Every metadata layout in registers."""
    with_metadata = catalog.all(lambda entry: bool(entry.metadata))
    by_layout = {instruction.metadata.layout.name: instruction.metadata for instruction in with_metadata}
    assert len(by_layout) == sum(layout.kind == "metadata" for layout in catalog.database.layouts)
    return list(by_layout.values())


@pytest.fixture(scope="module")
def scales(catalog: Catalog) -> list[Scales]:
    """Every layout of scale factors."""
    by_layout: dict[str, Scales] = {}
    for instruction in catalog.all():
        if any(operand.kind == "scale-data" for operand in instruction.operands):
            by_layout.update((own.layout.name, own) for own in map(instruction.scales, "ab"))
    assert len(by_layout) == sum(layout.kind == "scale" for layout in catalog.database.layouts)
    return list(by_layout.values())


@pytest.fixture(scope="module")
def formats(catalog: Catalog) -> list[BlockFormat]:
    """Every format of block scaling."""
    assert catalog.database.spec.block_formats
    return list(catalog.database.spec.block_formats)


@pytest.fixture(scope="module")
def kinds(catalog: Catalog) -> list[Kind]:
    """Every pattern for every type that it is of."""
    spec = catalog.database.spec
    by_name = {}
    for instruction in catalog.all(lambda entry: bool(entry.metadata)):
        kind = Kind(instruction.metadata.granularity, layouts.element_type(spec, instruction.qualifiers["atype"]))
        by_name[kind.name] = kind
    assert by_name
    return list(by_name.values())


# --- how each is called -----------------------------------------------------------------------------------------------------


def fragment_case(piece: Piece) -> str:
    """A tile from buffer 0 to registers in buffer 1, and from these to buffer 2; numbers: strides, n."""
    function = piece.function
    count = len(function.strides)
    strides = ", ".join(f"a.numbers[{place}]" for place in range(count))
    n = f"const uint32_t n = (uint32_t)a.numbers[{count}]; " if function.follows_n else ""
    passed = "n, " if function.follows_n else ""
    word = function.element.word
    return (
        f"{n}{word}* registers = at<{word}>(a, 1) + thread * ({function.registers}); "
        f"{function.stem}_load(at<void>(a, 0), {strides}, {passed}thread, registers); "
        f"{function.stem}_store(at<void>(a, 2), {strides}, {passed}thread, registers);"
    )


def metadata_cases(metadata: Metadata) -> Iterator[tuple[str, str]]:
    """Row-major metadata in buffer 0, registers in buffer 1, a byte for each field in buffer 2; numbers: bytes of a row, selector."""
    stem = f"ptxmma_{metadata.layout.name}"
    pack = f"at<uint32_t>(a, 1)[thread] {{}} {stem}_pack(at<const uint8_t>(a, 0) + {{}}, a.numbers[0], thread, {{}});"
    yield f"{stem} pack", pack.format("=", 0, "(uint32_t)a.numbers[1]")
    each = pack.format("|=", f"i * {metadata.chunks // FIELDS}", "i")
    yield f"{stem} pack all", f"for (uint32_t i = 0; i < {metadata.selectors}; ++i) {each}"
    row, chunk = f"thread / {metadata.chunks}", f"thread % {metadata.chunks}"
    field = f"{stem}_field(at<const uint32_t>(a, 1), {row}, {chunk}, (uint32_t)a.numbers[1])"
    yield f"{stem} field", f"at<uint8_t>(a, 2)[thread] = (uint8_t){field};"


def scales_cases(scales: Scales) -> Iterator[tuple[str, str]]:
    """Scale factors in buffer 0, registers in buffer 1, a status in buffer 2; numbers: strides of rows and blocks, byte id, thread id."""
    stem = f"ptxmma_{c_text.identifier(scales.layout.name)}"
    strides, ids = "a.numbers[0], a.numbers[1]", "(uint32_t)a.numbers[2], (uint32_t)a.numbers[3]"
    yield scales.layout.name, f"at<uint32_t>(a, 1)[thread] = {stem}_register(at<const uint8_t>(a, 0), {strides}, {ids}, thread);"
    unpack = f"{stem}_unpack(at<const uint32_t>(a, 1), {ids}, at<uint8_t>(a, 0), {strides})"
    yield f"{scales.layout.name} unpack", f"at<int>(a, 2)[thread] = {unpack};"


def scaling_cases(entry: BlockFormat) -> Iterator[tuple[str, str]]:
    """Numbers in buffer 0, the tensor scale in 1, elements in 2, scales in 3, statuses in 4; numbers: rows, cols, axis."""
    pair = f"{entry.element}_{entry.scale}"
    values, factor, codes, scale = "at<float>(a, 0)", "*at<float>(a, 1)", "at<uint8_t>(a, 2)", "at<uint8_t>(a, 3)"
    size = f"a.numbers[0], a.numbers[1], {entry.block}, (uint32_t)a.numbers[2], {factor}"
    yield f"quantise {entry.name}", f"at<int>(a, 4)[thread] = ptxmma_quantise_{pair}({values}, {size}, {codes}, {scale});"
    yield f"dequantise {entry.name}", f"at<int>(a, 4)[thread] = ptxmma_dequantise_{pair}({codes}, {scale}, {size}, {values});"
    block = f"{values} + thread * {entry.block}, 1, {entry.block}, {factor}, {codes} + thread * {entry.block}, {scale} + thread"
    yield f"block {entry.name}", f"at<int>(a, 4)[thread] = ptxmma_quantise_block_{pair}({block});"
    if scaling.formats()[entry.name].scale.mantissa:
        call = f"ptxmma_tensor_scale_{pair}({values}, a.numbers[0], at<float>(a, 1))"
        yield f"tensor scale {entry.name}", f"at<int>(a, 4)[thread] = {call};"


def number_cases(name: str) -> Iterator[tuple[str, str]]:
    """Codes in buffer 0, floats in buffer 1."""
    yield f"decode {name}", f"at<float>(a, 1)[thread] = ptxmma_decode_{name}(at<const uint32_t>(a, 0)[thread]);"
    yield f"encode {name}", f"at<uint32_t>(a, 0)[thread] = ptxmma_encode_{name}(at<const float>(a, 1)[thread]);"


_OUTPUTS = ("largest", "keep", "field", "fits", "masked", "same")


def sparse_case(kind: Kind) -> str:
    """A chunk in buffer 0, a byte for each of its elements in buffer 1, and the functions' results in buffer 2."""
    return (
        f"const ptxmma_sparse_kind kind = {kind.name}(); "
        "const uint64_t chunk = at<const uint64_t>(a, 0)[thread], largest = ptxmma_sparse_largest(&kind, chunk); "
        "const uint64_t set = ptxmma_sparse_set(&kind, largest), field = ptxmma_sparse_field(&kind, set); "
        "const uint64_t mask = ptxmma_sparse_masked(&kind, at<const uint8_t>(a, 1) + thread * kind.chunk_elements); "
        f"uint64_t* out = at<uint64_t>(a, 2) + thread * {len(_OUTPUTS)}; "
        "out[0] = largest; out[1] = ptxmma_sparse_keep(&kind, largest, field); out[2] = field; "
        "out[3] = ptxmma_sparse_fits(&kind, ptxmma_sparse_set(&kind, chunk)); out[4] = ptxmma_sparse_positive(&kind, chunk & mask); "
        "out[5] = set == ptxmma_sparse_set_of_halves(&kind, (uint32_t)largest, (uint32_t)(largest >> 32));"
    )


@pytest.fixture(scope="module", params=["host", pytest.param("device", marks=[pytest.mark.gpu, pytest.mark.nvcc])])
def machine(
    request: pytest.FixtureRequest,
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[Piece],
    metadata: list[Metadata],
    scales: list[Scales],
    formats: list[BlockFormat],
    kinds: list[Kind],
) -> Machine:
    """Every case, compiled; those of the device are skipped without one."""
    if request.param == "device":
        request.getfixturevalue("gpu")
        compiler = request.getfixturevalue("nvcc")
    else:
        compiler = shutil.which("g++")
        if compiler is None:
            pytest.skip("g++ is not installed")
    cases = {piece.function.stem: fragment_case(piece) for piece in pieces}
    for layout in metadata:
        cases.update(metadata_cases(layout))
    for factors in scales:
        cases.update(scales_cases(factors))
    for entry in formats:
        cases.update(scaling_cases(entry))
    for name in _numbers(formats):
        cases.update(number_cases(name))
    cases.update((kind.name, sparse_case(kind)) for kind in kinds)
    return Machine(request.param, compiler, root / "generated/include", tmp_path_factory.mktemp(request.param), cases)


def _numbers(formats: list[BlockFormat]) -> list[str]:
    return list(dict.fromkeys(name for entry in formats for name in (entry.element, entry.scale)))


# --- fragments --------------------------------------------------------------------------------------------------------------


def _in_memory(codes: Array, bits: int) -> Array:
    """Elements of any shape, in order, as bytes; those of fewer than 8 bits packed, low bits first."""
    if bits >= 8:
        return codes.astype(f"<u{bits // 8}").reshape(-1).view(np.uint8)
    each = codes.astype(np.uint8).reshape(-1, 8 // bits) << np.arange(0, 8, bits, dtype=np.uint8)
    packed: Array = np.bitwise_or.reduce(each, axis=-1)
    return packed


def _line_of_register(operand: Operand) -> bool:
    """Whether neighbours in a register are neighbours in a row of the matrix."""
    return operand.elements == 1 or bool(operand.coords(0, 1)[-1] != operand.coords(0, 0)[-1])


def test_fragments(machine: Machine, pieces: list[Piece]) -> None:
    random = np.random.default_rng(1)
    for function, operand in pieces:
        assert operand.layout is not None
        assert operand.element is not None
        bits, element = function.element.memory, operand.element
        tile = (operand.computations, operand.rows, operand.cols)
        for row_major in (True, False):
            if bits < 8 and row_major != _line_of_register(operand):
                continue  # two threads would store to one byte
            codes = random.integers(0, 1 << element.bits, tile, np.uint64).astype(elements.bits_dtype(element))
            lines = codes if row_major else codes.swapaxes(1, 2)
            padded = np.ones((*lines.shape[:2], lines.shape[2] + 16), codes.dtype)  # the padding is not part of the tile
            padded[..., :-16] = 0
            empty = _in_memory(padded, bits)
            padded[..., :-16] = lines
            memory = _in_memory(padded, bits)
            strides = (padded.shape[2], 1) if row_major else (1, padded.shape[2])
            if operand.computations > 1:
                strides = (padded[0].size, *strides)
            values = elements.typed(codes, element)
            expected = operand.pack(values if operand.computations > 1 else values[0])
            registers = np.full(expected.shape, 0x5A, expected.view(f"u{expected.itemsize}").dtype)
            numbers = (*strides, operand.cols) if function.follows_n else strides
            machine.run(function.stem, operand.layout.threads, memory.copy(), registers, empty, numbers=numbers)
            np.testing.assert_array_equal(registers, expected.view(registers.dtype), function.stem)
            np.testing.assert_array_equal(empty, memory, function.stem)
            back = operand.unpack(registers).view(codes.dtype)
            np.testing.assert_array_equal(back.reshape(tile), codes, function.stem)


# --- metadata and scale factors ---------------------------------------------------------------------------------------------


def test_metadata(machine: Machine, metadata: list[Metadata]) -> None:
    random = np.random.default_rng(2)
    for layout in metadata:
        stem, threads = f"ptxmma_{layout.layout.name}", layout.layout.threads
        packed = random.integers(0, 256, (layout.rows, layout.selectors * layout.chunks // FIELDS), np.uint8)
        registers = np.zeros(threads, np.uint32)
        machine.run(f"{stem} pack all", threads, packed, registers, numbers=(packed.shape[1],))
        np.testing.assert_array_equal(registers, layout.pack_tiles(packed, check=False)[0, 0], stem)
        for selector in range(layout.selectors):
            fields = np.zeros((layout.rows, layout.chunks), np.uint8)
            machine.run(f"{stem} field", fields.size, packed, registers, fields, numbers=(0, selector))
            unpacked = layout.unpack(registers, selector)
            np.testing.assert_array_equal(fields, sparse.fields(unpacked), stem)

            one = np.full(threads, 0x5A, np.uint32)
            machine.run(f"{stem} pack", threads, np.ascontiguousarray(unpacked), one, numbers=(unpacked.shape[1], selector))
            np.testing.assert_array_equal(one, layout.pack(unpacked, selector, check=False), stem)


def test_scale_factors(machine: Machine, scales: list[Scales]) -> None:
    random = np.random.default_rng(3)
    for layout in scales:
        factors = random.integers(1, 1 << layout.element.exponent + layout.element.mantissa, layout.shape, np.uint8)
        strides = (layout.blocks, 1) if layout.matrix == "a" else (1, layout.rows)
        for byte_id, thread_id in itertools.product(layout.byte_ids, layout.thread_ids):
            registers = np.full(layout.layout.threads, 0x5A, np.uint32)
            machine.run(layout.layout.name, len(registers), factors, registers, numbers=(*strides, byte_id, thread_id))
            np.testing.assert_array_equal(registers, layout.pack(factors, byte_id, thread_id), layout.layout.name)
            np.testing.assert_array_equal(layout.unpack(registers, byte_id, thread_id).view(np.uint8), factors)
            back, status = np.zeros_like(factors), np.full(1, 77, np.int32)
            machine.run(f"{layout.layout.name} unpack", 1, back, registers, status, numbers=(*strides, byte_id, thread_id))
            assert status[0] == 0
            np.testing.assert_array_equal(back, factors, layout.layout.name)


# --- block scaling ----------------------------------------------------------------------------------------------------------


def _spread(shape: tuple[int, int]) -> Array:
    """Numbers of every exponent that a float has, neighbours of like size, with zeros."""
    random = np.random.default_rng(shape)
    exponents = np.linspace(-148, 120, shape[0] * shape[1]).reshape(shape) + random.integers(-6, 1, shape)
    return np.where(random.random(shape) < 0.1, 0, random.standard_normal(shape) * np.exp2(exponents)).astype(np.float32)


@pytest.mark.parametrize("tensor_scale", [1.0, 0.3])
@pytest.mark.parametrize("axis", [1, 0])
def test_block_scaling(machine: Machine, catalog: Catalog, formats: list[BlockFormat], axis: int, tensor_scale: float) -> None:
    for entry in formats:
        shape = (16, 5 * entry.block) if axis else (5 * entry.block, 16)
        matrix, factor = _spread(shape), np.array([tensor_scale], np.float32)
        form = scaling.formats(database=catalog.database)[entry.name]
        if form.scale.mantissa:  # more would be an error
            most = np.float32(form.element.largest * form.scale.largest * tensor_scale)
            matrix = matrix.clip(-most, most)
        expected = scaling.quantise(matrix, form, axis=axis, tensor_scale=tensor_scale)
        codes, factors = (part.view(np.uint8) for part in expected)
        wanted = _in_memory(codes, memory_bits(layouts.element_type(catalog.database.spec, entry.element)))
        written, scale, status = np.full_like(wanted, 0x5A), np.full_like(factors, 0x5A), np.full(1, 77, np.int32)
        machine.run(f"quantise {entry.name}", 1, matrix, factor, written, scale, status, numbers=(*shape, axis))
        assert status[0] == 0
        np.testing.assert_array_equal(scale, factors, entry.name)
        np.testing.assert_array_equal(written, wanted, entry.name)

        back, status[0] = np.full_like(matrix, 77), 77
        machine.run(f"dequantise {entry.name}", 1, back, factor, written, scale, status, numbers=(*shape, axis))
        assert status[0] == 0
        numbers = scaling.dequantise(*expected, entry.name, axis=axis, tensor_scale=tensor_scale)
        np.testing.assert_array_equal(back.view(np.uint32), numbers.view(np.uint32), entry.name)

        if axis:  # each block by a thread of its own, a byte for each element
            written, scale, statuses = np.zeros_like(codes), np.zeros_like(factors), np.full(factors.size, 77, np.int32)
            machine.run(f"block {entry.name}", factors.size, matrix, factor, written, scale, statuses)
            assert not statuses.any()
            np.testing.assert_array_equal(scale, factors, entry.name)
            np.testing.assert_array_equal(written, codes, entry.name)


def test_tensor_scales(machine: Machine, formats: list[BlockFormat]) -> None:
    named = [entry.name for entry in formats if scaling.formats()[entry.name].scale.mantissa]
    assert named
    unused = np.zeros(1, np.uint8)
    for name, top in itertools.product(named, (0.0, 1e-42, 3e-36, -7e-5, 2.5, -3e38)):
        matrix, scale, status = np.array([top / 3, 0, top], np.float32), np.full(1, 77, np.float32), np.full(1, 77, np.int32)
        machine.run(f"tensor scale {name}", 1, matrix, scale, unused, unused, status, numbers=(3,))
        assert status[0] == 0
        assert scale[0] == scaling.tensor_scale(matrix, name), (name, top)


def test_numbers(machine: Machine, catalog: Catalog, formats: list[BlockFormat]) -> None:
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    floats = np.concatenate([upper, upper | 1, upper | 0x8000, upper | 0xFFFF]).view(np.float32)
    floats = floats[~np.isnan(floats)].copy()
    for name in _numbers(formats):
        element = layouts.element_type(catalog.database.spec, name)
        codes = np.arange(1 << element.exponent + element.mantissa + element.sign, dtype=np.uint32)
        decoded = np.zeros(codes.shape, np.float32)
        machine.run(f"decode {name}", codes.size, codes, decoded)
        numbers = elements.numbers(codes.astype(elements.bits_dtype(element)), element).astype(np.float32)
        finite = ~np.isnan(numbers)
        np.testing.assert_array_equal(decoded[finite].view(np.uint32), numbers[finite].view(np.uint32), name)
        assert np.isnan(decoded[~finite]).all()
        if element.sign:
            encoded = np.zeros(floats.shape, np.uint32)
            machine.run(f"encode {name}", floats.size, encoded, floats)
            np.testing.assert_array_equal(encoded, float_codes.encode(floats.copy(), element, float_codes.FLOAT32), name)


# --- structured sparsity ----------------------------------------------------------------------------------------------------


def _words(codes: Array, bits: int) -> Array:
    """Each row of elements as one word."""
    places = np.arange(0, bits * codes.shape[1], bits, dtype=np.uint64)
    words: Array = np.bitwise_or.reduce(codes.astype(np.uint64) << places, axis=-1)
    return words


def test_sparsity(machine: Machine, kinds: list[Kind]) -> None:
    random = np.random.default_rng(5)
    chunks = 2000
    for kind in kinds:
        pattern, element = kind.pattern, kind.element
        bits, plain = memory_bits(element), elements.bits_dtype(element)
        codes = random.integers(0, 1 << element.bits, (chunks, pattern.chunk), np.uint64).astype(plain)
        codes[~np.isfinite(elements.numbers(codes, element))] = 0
        codes[random.random(codes.shape) < 0.4] = 0
        codes[random.random(codes.shape) < 0.1] = 1 << (element.bits - 1)  # negative zeros
        units = random.random((chunks, pattern.units)).argsort(-1) < pattern.kept // pattern.unit
        mask = np.repeat(units, pattern.unit, axis=-1) & (random.random(codes.shape) < 0.9)
        outputs = np.zeros((chunks, len(_OUTPUTS)), np.uint64)
        machine.run(kind.name, chunks, _words(codes, bits), mask.astype(np.uint8), outputs)

        matrix, name = elements.typed(codes.reshape(1, -1), element), pattern.name
        largest = sparse.prune(matrix, name, element=element)
        values, packed = sparse.compress(largest, name, element=element)
        masked = sparse.prune(matrix, name, mask.reshape(1, -1), element=element)
        full = (elements.numbers(codes, element) != 0).reshape(chunks, pattern.units, pattern.unit).any(-1).sum(-1)
        expected = {
            "largest": _words(largest.view(plain).reshape(chunks, -1), bits),
            "keep": _words(values.view(plain).reshape(chunks, -1), bits),
            "field": sparse.fields(packed)[0],
            "fits": full * pattern.unit <= pattern.kept,
            "masked": _words(masked.view(plain).reshape(chunks, -1), bits),
            "same": np.ones(chunks, np.uint64),
        }
        for column, output in enumerate(_OUTPUTS):
            np.testing.assert_array_equal(outputs[:, column], expected[output], f"{kind.name}: {output}")
