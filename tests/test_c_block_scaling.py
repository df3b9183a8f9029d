"""The C header of block scaling equals the Python functions bit for bit, refuses the same input, and stays within its buffers."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import header_programs
from cuda_calls import Nvcc
from header_programs import EXTERNAL, WARNINGS, pointer, run
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices import scaling
from ptxmma.matrices.scaling import Format, float_codes
from ptxmma.model import BlockFormat

_OK, _SIZE, _RANGE, _NOT_FINITE, _NULL, _MULTIPLE, _TOO_LARGE = 0, 1, 3, 6, 7, 8, 9
_NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3")

_LIBRARY = """
#include "ptxmma/block_scaling.h"
typedef float (*decoder)(uint32_t);
typedef uint32_t (*encoder)(float);
void decode_all(decoder f, uint32_t count, float *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = f(i);
}
void encode_all(encoder f, const float *in, uint32_t count, uint32_t *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = f(in[i]);
}
"""

# Buffers of exactly the size that is needed, so that the sanitizers see every access beyond them.
_SANITIZED = """
#include <stdio.h>
#include <stdlib.h>
#include "ptxmma/block_scaling.h"
#define RUN(pair, narrow, block, axis, rows, cols)                                                          \\
  do {                                                                                                      \\
    const size_t size = (size_t)(rows) * (cols) / (narrow);                                                 \\
    float *values = malloc(sizeof(float) * (rows) * (cols));                                                \\
    uint8_t *elements = malloc(size), *scales = malloc((size_t)(rows) * (cols) / (block));                  \\
    for (size_t i = 0; i < (size_t)(rows) * (cols); i++) values[i] = ((float)i - 100.0f) * 0.37f;           \\
    memset(elements, 0, size);                                                                              \\
    if (ptxmma_quantise_##pair(values, rows, cols, block, axis, 1.0f, elements, scales)) return 1;          \\
    if (ptxmma_dequantise_##pair(elements, scales, rows, cols, block, axis, 1.0f, values)) return 2;        \\
    if (!(values[0] < values[(rows) * (cols) - 1])) return 3;                                               \\
    free(values);                                                                                           \\
    free(elements);                                                                                         \\
    free(scales);                                                                                           \\
  } while (0)
int main(void) {
  RUN(e4m3_ue8m0, 1, 32, 1, 3, 96);
  RUN(e4m3_ue8m0, 1, 32, 0, 96, 3);
  RUN(e5m2_ue8m0, 1, 64, 1, 2, 128);
  RUN(e3m2_ue8m0, 1, 32, 0, 32, 5);
  RUN(e2m3_ue8m0, 1, 32, 1, 5, 32);
  RUN(e2m1_ue8m0, 2, 32, 0, 64, 6);
  RUN(e2m1_ue4m3, 2, 16, 1, 7, 48);
  RUN(e2m1_ue4m3, 2, 16, 0, 48, 6);
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(cc: str, include: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return header_programs.library(cc, _LIBRARY, tmp_path_factory.mktemp("library"), "-std=c99", "-O2", *EXTERNAL, "-I", include)


def _decoded(library: ctypes.CDLL, name: str, count: int) -> Any:
    out = np.empty(count, np.float32)
    library.decode_all(ctypes.cast(getattr(library, f"ptxmma_decode_{name}"), ctypes.c_void_p), ctypes.c_uint32(count), pointer(out))
    return out


def _encoded(library: ctypes.CDLL, name: str, values: Any) -> Any:
    out = np.empty(values.size, np.uint32)
    function = ctypes.cast(getattr(library, f"ptxmma_encode_{name}"), ctypes.c_void_p)
    library.encode_all(function, pointer(values), ctypes.c_uint32(values.size), pointer(out))
    return out


def _floats() -> Any:
    """Floats of every exponent and sign, with all upper bits that rounding depends on; infinities, but no NaN."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = np.concatenate(
        [upper, upper | 1, upper | 0x8000, upper | 0xFFFF, np.random.default_rng(1).integers(0, 1 << 32, 1 << 16, np.uint32)]
    )
    values = bits.view(np.float32)
    return values[~np.isnan(values)].copy()


@pytest.mark.parametrize("name", _NARROW)
def test_every_code_is_decoded_as_in_python(catalog: Catalog, library: ctypes.CDLL, name: str) -> None:
    element = layouts.element_type(catalog.database.spec, name)
    count = 1 << element.exponent + element.mantissa + element.sign
    expected = float_codes.decoder(element)[:count]
    decoded = _decoded(library, name, count)
    np.testing.assert_array_equal(decoded, expected)
    finite = ~np.isnan(expected)
    np.testing.assert_array_equal(decoded[finite].view(np.uint32), expected[finite].view(np.uint32))


@pytest.mark.parametrize("name", _NARROW[:5])
def test_floats_are_rounded_as_in_python(catalog: Catalog, library: ctypes.CDLL, name: str) -> None:
    element = layouts.element_type(catalog.database.spec, name)
    values = _floats()
    np.testing.assert_array_equal(_encoded(library, name, values), float_codes.encode(values.copy(), element, float_codes.FLOAT32))
    nan = int(_encoded(library, name, np.array([np.nan], np.float32))[0])
    assert nan == ((1 << element.bits - 1) - 1 if element.nan else element.largest_code)


def test_scale_types_encode_as_their_kind_does(catalog: Catalog, library: ctypes.CDLL) -> None:
    values = _floats()
    ue4m3 = layouts.element_type(catalog.database.spec, "ue4m3")
    expected = np.where(np.signbit(values), 0, float_codes.encode(np.abs(values), ue4m3, float_codes.FLOAT32))
    np.testing.assert_array_equal(_encoded(library, "ue4m3", values), expected)
    with np.errstate(divide="ignore"):
        exponents = np.where(np.isinf(values) | (values == 0), np.where(values == 0, -127, 127), np.frexp(values)[1] - 1)
    np.testing.assert_array_equal(_encoded(library, "ue8m0", values), np.clip(exponents + 127, 0, 254))
    nan = np.array([np.nan], np.float32)
    assert (_encoded(library, "ue4m3", nan)[0], _encoded(library, "ue8m0", nan)[0]) == (0x7F, 0xFF)


# --- matrices ---------------------------------------------------------------------------------------------------------------


def _packed(codes: Any, form: Format) -> Any:
    """Codes as C stores them: two of 4 bits in a byte, the first one low."""
    flat = codes.view(np.uint8).reshape(-1)
    return flat[::2] | flat[1::2] << 4 if form.element.bits == 4 else flat


def _matrix(rows: int, cols: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    values = random.standard_normal((rows, cols)) * np.exp2(random.integers(-30, 30, (rows, 1)) + random.integers(-9, 9, (rows, cols)))
    return np.where(random.random((rows, cols)) < 0.1, 0, values).astype(np.float32)


def _clamped(matrix: Any, form: Format, tensor_scale: float = 1) -> Any:
    """The matrix for C where Python saturates."""
    most = np.float32(form.element.largest * form.scale.largest * tensor_scale) if form.scale.mantissa else np.float32(np.inf)
    return matrix.clip(-most, most)


def _entries(catalog: Catalog) -> list[tuple[BlockFormat, Format]]:
    named = scaling.formats(database=catalog.database)
    return [(entry, named[entry.name]) for entry in catalog.database.spec.block_formats]


@pytest.mark.parametrize("tensor_scale", [1.0, 0.3])
@pytest.mark.parametrize("axis", [1, 0])
def test_matrices_equal_those_of_python(catalog: Catalog, library: ctypes.CDLL, axis: int, tensor_scale: float) -> None:
    for entry, form in _entries(catalog):
        shape = (4, 3 * form.block) if axis else (3 * form.block, 6)
        matrix = _matrix(*shape, seed=axis)
        matrix[:, :2] = 0
        expected = scaling.quantise(matrix, form, axis=axis, tensor_scale=tensor_scale, saturate=True)
        matrix = _clamped(matrix, form, tensor_scale)
        elements = np.full(matrix.size // 2 if form.element.bits == 4 else matrix.size, 0xA5, np.uint8)
        scales = np.empty(expected.scales.shape, np.uint8)
        sizes = [ctypes.c_size_t(size) for size in (*shape, form.block)]
        last = (ctypes.c_uint32(axis), ctypes.c_float(tensor_scale))
        pair = f"{entry.element}_{entry.scale}"
        assert getattr(library, f"ptxmma_quantise_{pair}")(pointer(matrix), *sizes, *last, pointer(elements), pointer(scales)) == _OK
        np.testing.assert_array_equal(scales, expected.scales.view(np.uint8))
        np.testing.assert_array_equal(elements, _packed(expected.elements, form))
        back = np.empty_like(matrix)
        assert getattr(library, f"ptxmma_dequantise_{pair}")(pointer(elements), pointer(scales), *sizes, *last, pointer(back)) == _OK
        ours = scaling.dequantise(*expected, form, axis=axis, tensor_scale=tensor_scale)
        np.testing.assert_array_equal(back.view(np.uint32), ours.view(np.uint32))


def test_one_block_is_quantised_as_in_a_matrix(catalog: Catalog, library: ctypes.CDLL) -> None:
    for entry, form in _entries(catalog):
        matrix = _matrix(form.block, 3, seed=5)
        expected = scaling.quantise(matrix, form, axis=0, saturate=True)
        matrix = _clamped(matrix, form)
        elements, scale = np.empty(form.block, np.uint8), np.empty(1, np.uint8)
        function = getattr(library, f"ptxmma_quantise_block_{entry.element}_{entry.scale}")
        column = ctypes.c_void_p(matrix.ctypes.data + 4)
        sizes = (ctypes.c_size_t(3), ctypes.c_size_t(form.block), ctypes.c_float(1))
        assert function(column, *sizes, pointer(elements), pointer(scale)) == _OK
        assert scale[0] == expected.scales.view(np.uint8)[0, 1]
        np.testing.assert_array_equal(elements, expected.elements.view(np.uint8)[:, 1])


def test_impossible_blocks_are_refused(catalog: Catalog, library: ctypes.CDLL) -> None:
    for entry, form in _entries(catalog):
        function = getattr(library, f"ptxmma_quantise_block_{entry.element}_{entry.scale}")
        values = np.ones(form.block, np.float32)
        elements, scale = np.full(form.block, 0x5A, np.uint8), np.full(1, 0x5A, np.uint8)
        fine = [pointer(values), ctypes.c_size_t(1), ctypes.c_size_t(form.block), ctypes.c_float(1), pointer(elements), pointer(scale)]
        wrong: list[tuple[int, Any, int]] = [(place, None, _NULL) for place in (0, 4, 5)]
        wrong += [(2, ctypes.c_size_t(0), _SIZE), (3, ctypes.c_float(1e-39), _NOT_FINITE)]
        wrong += [(3, ctypes.c_float(tensor_scale), _RANGE) for tensor_scale in (0, -1, np.inf, np.nan)]
        for place, value, status in wrong:
            assert function(*fine[:place], value, *fine[place + 1 :]) == status, (entry.name, place, value)
        for bad in (np.nan, np.inf, -np.inf):
            values[-1] = bad
            assert function(*fine) == _NOT_FINITE
        assert set(elements.tolist() + scale.tolist()) == {0x5A}


def test_errors_write_nothing(catalog: Catalog, library: ctypes.CDLL) -> None:
    huge = 2 ** (8 * ctypes.sizeof(ctypes.c_size_t)) - 1
    for entry, form in _entries(catalog):
        pair, block = f"{entry.element}_{entry.scale}", form.block
        quantise, dequantise = (getattr(library, f"ptxmma_{verb}_{pair}") for verb in ("quantise", "dequantise"))

        def status(
            matrix: Any,
            rows: int = 4,
            cols: int = 4 * block,
            *,
            block: int = block,
            axis: int = 1,
            tensor_scale: float = 1.0,
            without: str = "",
            quantise: Any = quantise,
            dequantise: Any = dequantise,
        ) -> int:
            """The status of quantisation; dequantisation must return the same, unless it is about the numbers."""
            elements, scales, back = np.full(1024, 0x12, np.uint8), np.full(1024, 0x12, np.uint8), np.full(1024, 7, np.float32)
            sizes = [ctypes.c_size_t(size) for size in (rows, cols, block)]
            last = (ctypes.c_uint32(axis), ctypes.c_float(tensor_scale))
            codes = None if without == "elements" else pointer(elements)
            factors = None if without == "scales" else pointer(scales)
            returned = int(quantise(None if without == "values" else pointer(matrix), *sizes, *last, codes, factors))
            assert returned != _OK
            if returned != _NOT_FINITE:
                assert dequantise(codes, factors, *sizes, *last, None if without == "values" else pointer(back)) == returned
            assert set(elements.tolist() + scales.tolist()) == {0x12}
            assert set(back.tolist()) == {7.0}
            return returned

        fine = np.ones((4, 4 * block), np.float32)
        assert [status(fine, without=name) for name in ("values", "elements", "scales")] == [_NULL] * 3
        assert [status(fine, rows=rows) for rows in (0, 1 << 62, huge // 2, huge)] == [_SIZE] * 4
        assert [status(fine, cols=cols) for cols in (0, huge // 2, huge, huge // block * block)] == [_SIZE] * 4
        assert status(fine, cols=block + 2) == _MULTIPLE
        assert [status(fine, block=size) for size in (0, huge // 2, huge)] == [_SIZE, _MULTIPLE, _MULTIPLE]
        assert status(fine, rows=block + 2, cols=4, axis=0) == _MULTIPLE
        if form.element.bits == 4:  # two elements in a byte
            assert status(fine, rows=block, cols=3, axis=0) == _MULTIPLE
        assert [status(fine, axis=axis) for axis in (2, 2**32 - 1)] == [_RANGE] * 2
        assert [status(fine, tensor_scale=scale) for scale in (0.0, -1.0, np.inf, np.nan)] == [_RANGE] * 4
        assert status(fine, tensor_scale=1e-39) == _NOT_FINITE
        for bad in (np.nan, np.inf, -np.inf):
            wrong = fine.copy()
            wrong[-1, -1] = bad
            assert status(wrong) == _NOT_FINITE


def test_codes_beyond_their_type_are_refused(library: ctypes.CDLL) -> None:
    values = np.full((1, 32), 7, np.float32)
    sizes = [ctypes.c_size_t(size) for size in (1, 32, 32)]
    last = (ctypes.c_uint32(1), ctypes.c_float(1))
    elements, scales = np.zeros(32, np.uint8), np.zeros(1, np.uint8)
    elements[31] = 0x40
    assert library.ptxmma_dequantise_e3m2_ue8m0(pointer(elements), pointer(scales), *sizes, *last, pointer(values)) == _RANGE
    elements[31], scales[0] = 0, 0x80
    assert library.ptxmma_dequantise_e2m1_ue4m3(pointer(elements), pointer(scales), *sizes, *last, pointer(values)) == _RANGE
    assert np.all(values == 7)


def test_the_tensor_scale_is_that_of_python(catalog: Catalog, library: ctypes.CDLL) -> None:
    random = np.random.default_rng(3)
    compared = 0
    for entry, form in _entries(catalog):
        if not form.scale.mantissa:
            assert not hasattr(library, f"ptxmma_tensor_scale_{entry.element}_{entry.scale}")
            continue
        compared += 1
        function = getattr(library, f"ptxmma_tensor_scale_{entry.element}_{entry.scale}")
        scale = ctypes.c_float(7)
        for top in (0.0, -0.0, 1e-45, 1e-40, -1.2e-38, 3.2e-35, -1e-4, 2.5, -2688.0, 3e38, *random.standard_normal(50) * 1e3):
            values = np.array([0, top / 3, top, top / 2], np.float32)
            assert function(pointer(values), ctypes.c_size_t(4), ctypes.byref(scale)) == _OK
            assert np.float32(scale.value) == scaling.tensor_scale(values, form), top
        scale.value = 7
        for bad in (np.nan, np.inf, -np.inf):
            assert function(pointer(np.array([1, bad], np.float32)), ctypes.c_size_t(2), ctypes.byref(scale)) == _NOT_FINITE
        assert function(None, ctypes.c_size_t(4), ctypes.byref(scale)) == _NULL
        assert function(pointer(values), ctypes.c_size_t(4), None) == _NULL
        assert [function(pointer(values), ctypes.c_size_t(count), ctypes.byref(scale)) for count in (0, 2**63)] == [_SIZE] * 2
        assert scale.value == 7
    assert compared


def test_small_blocks_are_zeros_for_the_tensor_scale_that_is_given(catalog: Catalog, library: ctypes.CDLL) -> None:
    form = scaling.formats(database=catalog.database)["nvfp4"]
    values = np.full((1, 32), 1e-4, np.float32)
    sizes = [ctypes.c_size_t(size) for size in (1, 32, form.block)]
    codes = []
    for scale in (1.0, float(scaling.tensor_scale(values, form))):
        elements, scales = np.full(16, 0xA5, np.uint8), np.full(2, 0xA5, np.uint8)
        last = (ctypes.c_uint32(1), ctypes.c_float(scale))
        assert library.ptxmma_quantise_e2m1_ue4m3(pointer(values), *sizes, *last, pointer(elements), pointer(scales)) == _OK
        expected = scaling.quantise(values, form, tensor_scale=scale)
        np.testing.assert_array_equal(elements, _packed(expected.elements, form))
        np.testing.assert_array_equal(scales, expected.scales.view(np.uint8)[0])
        codes.append(bool(elements.any()))
    assert codes == [False, True]


# --- registers --------------------------------------------------------------------------------------------------------------


def test_blocks_that_would_saturate_are_refused(library: ctypes.CDLL) -> None:
    elements, scales = np.full(16, 0xA5, np.uint8), np.full(2, 0xA5, np.uint8)
    values = np.ones((1, 32), np.float32)
    block = [ctypes.c_size_t(1), ctypes.c_size_t(16)]
    sizes = [ctypes.c_size_t(size) for size in (1, 32, 16)]
    for top, scale, status in (
        (2784, 1, _OK),
        (-10_000, 1, _TOO_LARGE),
        (np.nextafter(np.float32(2784), 1e9), 1, _TOO_LARGE),
        (1, 1e-5, _TOO_LARGE),
    ):
        values[0, 20] = top
        outputs = (ctypes.c_float(scale), pointer(elements), pointer(scales))
        last = (ctypes.c_uint32(1), *outputs)
        assert library.ptxmma_quantise_block_e2m1_ue4m3(pointer(values[:, 16:]), *block, *outputs) == status
        assert library.ptxmma_quantise_e2m1_ue4m3(pointer(values), *sizes, *last) == status
        if status == _OK:
            assert scales[1] == 0x7E
            elements[:], scales[:] = 0xA5, 0xA5
        assert set(elements.tolist() + scales.tolist()) == {0xA5}, "nothing is written"


def test_scale_factors_are_where_the_formulas_say(catalog: Catalog, library: ctypes.CDLL, include: Path) -> None:
    header = (include / "ptxmma" / "block_scaling.h").read_text(encoding="utf-8")
    layouts = [layout for layout in catalog.database.layouts if layout.kind == "scale"]
    assert layouts
    for layout in layouts:
        byte_ids, thread_ids = (
            range(0, layout.axes[axis] * (step := layout.steps.get(axis, 1)), step) for axis in ("byte_id", "thread_id")
        )
        line, *_ = layout.axes  # "row" of A, "col" of B
        assert f" {layout.threads} threads for {layout.axes[line]} x {layout.axes['block']} factors." in header
        function = getattr(library, f"ptxmma_{layout.name.replace('.', '_')}_registers")
        unpack = getattr(library, f"ptxmma_{layout.name.replace('.', '_')}_unpack")
        scales = np.random.default_rng(1).integers(1, 255, (layout.axes[line], layout.axes["block"])).astype(np.uint8)
        for given, strides in ((scales, (scales.shape[1], 1)), (np.ascontiguousarray(scales.T), (1, scales.shape[0]))):
            steps = [ctypes.c_size_t(stride) for stride in strides]
            for byte_id in range(5):
                for thread_id in range(5):
                    registers = np.full(layout.threads, 0x5A5A5A5A, np.uint32)
                    last = (ctypes.c_uint32(byte_id), ctypes.c_uint32(thread_id))
                    status = function(pointer(given), *steps, ctypes.c_uint32(byte_id), ctypes.c_uint32(thread_id), pointer(registers))
                    if byte_id not in byte_ids or thread_id not in thread_ids:
                        assert status == _RANGE
                        assert np.all(registers == 0x5A5A5A5A)
                        back = np.full_like(given, 0x5A)
                        assert unpack(pointer(registers), *last, pointer(back), *steps) == _RANGE
                        assert np.all(back == 0x5A)
                        continue
                    assert status == _OK
                    ids = {"byte_id": byte_ids.index(byte_id), "thread_id": thread_ids.index(thread_id)}
                    expected = np.zeros(layout.threads, np.uint32)
                    for row, block in np.ndindex(scales.shape):
                        place = layout.map.apply({line: row, "block": block} | ids)
                        expected[place["lane"]] |= np.uint32(scales[row, block]) << np.uint32(8 * place["byte"])
                    np.testing.assert_array_equal(registers, expected)
                    full, back = expected.copy(), np.zeros_like(given)
                    full[expected == 0] = 0x5A5A5A5A  # bytes that the ids do not select are not read
                    assert unpack(pointer(full), *last, pointer(back), *steps) == _OK
                    np.testing.assert_array_equal(back, given)
        ids_of = [ctypes.c_uint32(ids[0]) for ids in (byte_ids, thread_ids)]
        registers = np.full(layout.threads, 0x5A5A5A5A, np.uint32)
        assert function(None, *steps, *ids_of, pointer(registers)) == _NULL
        assert function(pointer(scales), *steps, *ids_of, None) == _NULL
        assert unpack(None, *ids_of, pointer(scales), *steps) == unpack(pointer(registers), *ids_of, None, *steps) == _NULL
        assert np.all(registers == 0x5A5A5A5A)


# --- compilers --------------------------------------------------------------------------------------------------------------


def test_it_stays_within_its_buffers(cc: str, include: Path, tmp_path: Path) -> None:
    source = tmp_path / "sanitized.c"
    source.write_text(_SANITIZED, encoding="utf-8")
    flags = ["-std=c99", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    run(cc, *flags, *WARNINGS, "-I", include, source, "-o", tmp_path / "sanitized")
    run(tmp_path / "sanitized")


def test_nvcc_takes_it_for_host_and_device(compiler: Nvcc, tmp_path: Path) -> None:
    source = (
        '#include "ptxmma/block_scaling.h"\n'
        "__global__ void kernel(const float *values, uint8_t *elements, uint8_t *scale, uint32_t *registers) {\n"
        "  ptxmma_quantise_block_e2m1_ue4m3(values, 1, PTXMMA_NVFP4_BLOCK, 1.0f, elements, scale);\n"
        "  registers[threadIdx.x] = ptxmma_mma_m16n8k64_scale_a_scale_vec_4x_register(scale, 4, 1, 0, 1, threadIdx.x);\n"
        "}\n"
        "__global__ void others(const float *values, float *scale, const uint32_t *registers, uint8_t *scales) {\n"
        "  ptxmma_tensor_scale_e2m1_ue4m3(values, 32, scale);\n"
        "  ptxmma_mma_m16n8k64_scale_a_scale_vec_4x_unpack(registers, 0, 1, scales, 4, 1);\n"
        "}\n"
    )
    compiler.ptx_of(source, "sm_90", tmp_path)
