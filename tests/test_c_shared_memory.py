"""The C header of matrices in shared memory equals the Python library bit for bit, on host and device, and refuses the same input."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import header_programs
from cuda_calls import Nvcc
from header_programs import EXTERNAL, WARNINGS, pointer, run
from ptxmma import paths
from ptxmma.arrays import elements
from ptxmma.catalog.descriptors.shared_formats import matrix_formats, read_by
from ptxmma.catalog.instructions import load
from ptxmma.generator import pipeline
from ptxmma.generator.emit import shared_layout
from ptxmma.matrices.shared_memory import Descriptor, SharedLayout
from ptxmma.model import Swizzle

_OK, _SIZE, _ALIGNMENT, _RANGE, _NULL, _MULTIPLE = 0, 1, 2, 3, 7, 8
_SPEC = load(paths.DATABASE).spec
assert _SPEC.shared_memory is not None
_MEMORY = _SPEC.shared_memory
_FORMATS = {each.family: each for each in matrix_formats(_SPEC)}
_FIELDS = _FORMATS["wgmma"].fields
_MODES = {mode.name: mode for mode in _MEMORY.swizzles}
_HEADER = (paths.INCLUDE / "ptxmma" / "shared_memory.h").read_text(encoding="utf-8")
_ENCODING = {name: int(re.search(rf"PTXMMA_SWIZZLE_{name.upper()} = (\d+)", _HEADER)[1]) for name in _MODES}  # type: ignore[index]
_MAJORNESS: list[str] = list(dict.fromkeys(layout.majorness for layout in _MEMORY.layouts))
_ELEMENTS = {entry.name: entry for entry in _SPEC.types.elements}
_TYPES = {name: number for number, name in enumerate(_ELEMENTS, 1)}
#: Every family, type, majorness and swizzle that go together, packed and padded: packed types of less than a byte only K-major.
_READ = [
    *(
        (family, name, entry.majorness, _MODES[mode], 0)
        for family in _FORMATS
        for entry in read_by(_SPEC, _MEMORY, family).majorness
        for name in entry.elements
        for mode in entry.swizzles
        if _ELEMENTS[name].bits >= 8 or entry.majorness == "K"
    ),
    *(
        (family, name, entry.majorness, _MODES[mode], 1)
        for family in _FORMATS
        for entry in read_by(_SPEC, _MEMORY, family).padded
        for name in entry.elements
        for mode in entry.swizzles
    ),
]

_LIBRARY = """
#include "ptxmma/shared_layout.h"
void locate_all(const ptxmma_shared_layout *layout, uint32_t *out) {
  for (uint32_t x = 0; x < layout->x; x++)
    for (uint32_t k = 0; k < layout->k; k++) *out++ = ptxmma_shared_locate(layout, x, k);
}
"""

_DEVICE = """
#include <cuda_runtime.h>
#include "ptxmma/shared_layout.h"
__global__ void there_and_back(
    ptxmma_shared_layout layout, const void *matrix, unsigned char *image, size_t size, void *back, int *status) {
  extern __shared__ __align__(1024) unsigned char memory[];
  for (size_t i = threadIdx.x; i < size; i += blockDim.x) memory[i] = 0;
  __syncthreads();
  int worst = ptxmma_shared_store(&layout, matrix, memory, size, threadIdx.x, blockDim.x);
  __syncthreads();
  worst |= ptxmma_shared_load(&layout, memory, size, back, threadIdx.x, blockDim.x);
  for (size_t i = threadIdx.x; i < size; i += blockDim.x) image[i] = memory[i];
  if (worst) *status = worst;
}
extern "C" int on_device(
    const ptxmma_shared_layout *layout, const void *matrix, size_t bytes, void *image, size_t size, void *back) {
  unsigned char *matrix_d, *image_d, *back_d;
  int *status_d, worst = 0;
  cudaMalloc(&matrix_d, bytes);
  cudaMalloc(&image_d, size);
  cudaMalloc(&back_d, bytes);
  cudaMalloc(&status_d, 4);
  cudaMemset(status_d, 0, 4);
  cudaMemcpy(matrix_d, matrix, bytes, cudaMemcpyHostToDevice);
  there_and_back<<<1, 96, size>>>(*layout, matrix_d, image_d, size, back_d, status_d);
  cudaMemcpy(image, image_d, size, cudaMemcpyDeviceToHost);
  cudaMemcpy(back, back_d, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(&worst, status_d, 4, cudaMemcpyDeviceToHost);
  cudaFree(matrix_d), cudaFree(image_d), cudaFree(back_d), cudaFree(status_d);
  return cudaGetLastError() == cudaSuccess ? worst : -1;
}
"""

# Buffers of exactly the size that is needed, so that the sanitizers see every access beyond them.
_SANITIZED = """
#include <stdio.h>
#include <stdlib.h>
#include "ptxmma/shared_layout.h"
static int one(ptxmma_type type, ptxmma_majorness majorness, ptxmma_swizzle swizzle, uint32_t x, uint32_t k, uint32_t padding) {
  const size_t bytes = (size_t)x * k * ptxmma_describe_type(type).bits / 8;
  ptxmma_shared_layout layout;
  uint32_t size = 0, place, step;
  uint64_t descriptor = 0;
  /* Odd addresses: host code needs no alignment. */
  unsigned char *matrix = (unsigned char *)malloc(bytes + 1) + 1, *back = (unsigned char *)malloc(bytes + 1) + 1, *image;
  if (ptxmma_shared_layout_dense(type, majorness, swizzle, x, k, 4096, &layout)) return 1;
  if (layout.lbo > layout.sbo) layout.lbo += padding;
  else layout.sbo += padding;
  if (ptxmma_shared_size(&layout, &size)) return 2;
  image = (unsigned char *)calloc(size + 1, 1) + 1;
  for (size_t i = 0; i < bytes; i++) matrix[i] = (unsigned char)(i * 7 + i / 251);
  if (ptxmma_shared_store(&layout, matrix, image, size - 1, 0, 1) != PTXMMA_ERROR_SIZE) return 3;
  for (step = 0; step < 3; step++) {
    if (ptxmma_shared_store(&layout, matrix, image, size, step, 3)) return 4;
  }
  if (ptxmma_shared_load(&layout, image, size, back, 0, 1) || memcmp(matrix, back, bytes)) return 5;
  if (ptxmma_shared_address(&layout, x - 1, k - 1, &place) || place < 4096 || place >= 4096 + size) return 6;
  if (ptxmma_shared_descriptor(&layout, 0, 0, x, k, &descriptor)) return 7;
  free(matrix - 1);
  free(back - 1);
  free(image - 1);
  return 0;
}
int main(void) {
  static const ptxmma_swizzle swizzles[] = {PTXMMA_SWIZZLE_NONE, PTXMMA_SWIZZLE_32B, PTXMMA_SWIZZLE_64B, PTXMMA_SWIZZLE_128B};
  for (int i = 0; i < 4; i++) {
    for (uint32_t padding = 0; padding < 64; padding += 16) {
      int status = one(PTXMMA_TYPE_F16, PTXMMA_MAJORNESS_K, swizzles[i], 24, 128, padding);
      status |= one(PTXMMA_TYPE_B1, PTXMMA_MAJORNESS_K, swizzles[i], 8, 2048, padding);
      status |= one(PTXMMA_TYPE_TF32, PTXMMA_MAJORNESS_K, swizzles[i], 16, 32, padding);
      status |= one(PTXMMA_TYPE_BF16, PTXMMA_MAJORNESS_MN, swizzles[i], 128, 24, padding);
      if (status) {
        fprintf(stderr, "swizzle %d, padding %u: %d\\n", i, padding, status);
        return 1;
      }
    }
  }
  return 0;
}
"""


class _Layout(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint32) for name in ("type", "majorness", "swizzle", "x", "k", "lbo", "sbo", "start", "base_offset", "padded")
    ]

    @classmethod
    def of(cls, layout: SharedLayout) -> _Layout:
        kind, majorness, swizzle = _TYPES[layout.element.name], _MAJORNESS.index(layout.majorness), _ENCODING[layout.swizzle]
        strides = layout.lbo, layout.sbo, layout.start, layout.base_offset
        return cls(kind, majorness, swizzle, layout.x, layout.k, *strides, int(layout.padded))


class _Box(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("inner", "outer", "boxes", "transaction_bytes")]


class _Descriptor(ctypes.Structure):
    _fields_ = [(field.name, ctypes.c_uint32) for field in _FIELDS]


@pytest.fixture(scope="module")
def library(cc: str, include: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return header_programs.library(cc, _LIBRARY, tmp_path_factory.mktemp("library"), "-std=c99", "-O2", *EXTERNAL, "-I", include)


def _layouts() -> Iterator[SharedLayout]:
    """Every family, type, majorness and swizzle: dense, padded, with a start inside a pattern and a base offset."""
    for family, name, majorness, mode, padded in _READ:
        panel, lines = _panel(mode, name, padded), _lines(majorness, mode)
        for panels, groups, padding, start, shift in (
            (2, 3, 0, 1024, 0),
            (1, 1, 0, 0, 0),
            (3, 2, 16, mode.bytes * 3, 3),
            (2, 2, 128, 0, 1),
        ):
            x, k = (groups * lines, panels * panel) if majorness == "K" else (panels * panel, groups * lines)
            dense = SharedLayout(name, majorness, mode.name, x, k, family=family, padded=bool(padded))
            larger = "lbo" if dense.lbo > dense.sbo else "sbo"
            strides = {larger: getattr(dense, larger) + padding}
            yield SharedLayout(
                name,
                majorness,
                mode.name,
                x,
                k,
                start=start,
                base_offset=shift,
                lbo=strides.get("lbo"),
                sbo=strides.get("sbo"),
                family=family,
                padded=bool(padded),
            )


def _lines(majorness: str, mode: Swizzle) -> int:
    return mode.atom_k[0] if majorness == "K" else mode.atom_mn[1]


def _panel(mode: Swizzle, name: str, padded: int) -> int:
    """Elements in the bytes of a swizzle mode; padded, 16 of them lie in each 16 bytes."""
    return mode.bytes if padded else mode.bytes * 8 // _ELEMENTS[name].bits


def _matrix(layout: SharedLayout) -> tuple[Any, Any]:
    """A random matrix, and its bytes as C holds it."""
    kind = layout.element
    bits = np.random.default_rng(layout.size).integers(0, 1 << kind.bits, (layout.x, layout.k), np.uint64).astype(elements.bits_dtype(kind))
    if kind.form == "sign-magnitude":
        bits &= bits.dtype.type(1 << kind.bits - 1 | (1 << kind.mantissa) - 1)
    memory = elements.grouped(bits, kind.bits, 8, kind.bits) if kind.bits < 8 else bits
    return elements.typed(bits, kind), memory


def test_a_spec_without_shared_memory_has_no_such_header(root: Path) -> None:
    assert not list(shared_layout.emit(pipeline.read(root / "tests" / "toy")))


def test_dense_layouts(library: ctypes.CDLL) -> None:
    for family, name, majorness, mode, padded in _READ:
        panel = _panel(mode, name, padded)
        for inner, outer, start in ((panel, 8, 0), (2 * panel, 24, 1024)):
            x, k = (outer, inner) if majorness == "K" else (inner, outer)
            expected = _Layout.of(SharedLayout(name, majorness, mode.name, x, k, start=start, family=family, padded=bool(padded)))
            layout_c = _Layout()
            arguments = (expected.type, expected.majorness, expected.swizzle, x, k, start)
            make = library.ptxmma_shared_layout_padded if padded else library.ptxmma_shared_layout_dense
            assert make(*map(ctypes.c_uint32, arguments), ctypes.byref(layout_c)) == _OK
            assert bytes(layout_c) == bytes(expected), (name, majorness, mode.name)


def test_images_and_addresses(library: ctypes.CDLL) -> None:
    for layout in _layouts():
        given = ctypes.byref(_Layout.of(layout))
        size = ctypes.c_uint32()
        assert library.ptxmma_shared_size(given, ctypes.byref(size)) == _OK
        assert size.value == layout.size, layout

        addresses = np.empty((layout.x, layout.k), np.uint32)
        library.locate_all(given, pointer(addresses))
        np.testing.assert_array_equal(addresses, layout.address(np.arange(layout.x)[:, np.newaxis], np.arange(layout.k)))
        address = ctypes.c_uint32()
        assert library.ptxmma_shared_address(given, layout.x - 1, layout.k - 1, ctypes.byref(address)) == _OK
        assert address.value == addresses[-1, -1]

        matrix, memory = _matrix(layout)
        image, back = np.zeros(layout.size, np.uint8), np.zeros_like(memory)
        for thread in range(3):
            assert library.ptxmma_shared_store(given, pointer(memory), pointer(image), ctypes.c_size_t(layout.size), thread, 3) == _OK
        np.testing.assert_array_equal(image, layout.store_xk(matrix), str(layout))
        assert library.ptxmma_shared_load(given, pointer(image), ctypes.c_size_t(layout.size), pointer(back), 0, 1) == _OK
        np.testing.assert_array_equal(back, memory)


def test_the_boxes_of_a_tensor_map(library: ctypes.CDLL) -> None:
    """The boxes of Python, or an error."""
    outcomes = set()
    large = (SharedLayout("f16", "K", "128B", rows, 128) for rows in (8, 256, 264, 512, 1016))
    for layout in itertools.chain(_layouts(), large):
        box = _Box(7, 7, 7, 7)
        status = library.ptxmma_shared_tensor_map(ctypes.byref(_Layout.of(layout)), ctypes.byref(box))
        extents = (box.inner, box.outer, box.boxes, box.transaction_bytes)
        if status == _OK:
            expected = layout.tma
            assert extents == expected[1:], layout
        else:
            with pytest.raises(ValueError, match="base_offset|boxes of 128" if status == _RANGE else "would start at"):
                assert layout.tma
            assert extents == (7, 7, 7, 7)
        outcomes.add(status)
    assert outcomes == {_OK, _ALIGNMENT, _RANGE}
    assert library.ptxmma_shared_tensor_map(None, ctypes.byref(box)) == _NULL
    assert library.ptxmma_shared_tensor_map(ctypes.byref(_Layout.of(layout)), None) == _NULL


def test_the_swizzle_of_a_tensor_map(cc: str, include: Path, tmp_path: Path) -> None:
    own = read_by(_SPEC, _MEMORY, "wgmma").swizzles  # older releases of CUDA do not know the modes of others
    names = {mode.name: mode.tma for mode in own}
    source = tmp_path / "swizzle.c"
    enumerators = ", ".join(f"{name} = {number}" for number, name in enumerate(names.values(), 10))
    checks = " && ".join(f"PTXMMA_TENSOR_MAP_SWIZZLE(PTXMMA_SWIZZLE_{name.upper()}) == {number}" for number, name in enumerate(names, 10))
    source.write_text(
        f'#include "ptxmma/shared_layout.h"\nenum {{{enumerators}}};\nint main(void) {{ return !({checks}); }}\n', encoding="utf-8"
    )
    run(cc, "-I", include, source, "-o", tmp_path / "swizzle")
    run(tmp_path / "swizzle")


def test_descriptors_of_sub_tiles(library: ctypes.CDLL) -> None:
    """The bits of Python's descriptor, or an error; two of five places in each image, of which types of the same width have others."""
    outcomes = set()
    for number, layout in enumerate(_layouts()):
        given = ctypes.byref(_Layout.of(layout))
        make = getattr(library, f"ptxmma_shared_{_FORMATS[layout.family].name}")
        for at in ((0.0, 0.25, 0.34, 0.5, 0.75) * 2)[number % 5 :][:2]:
            x, k = int(layout.x * at), int(layout.k * at)
            for x_extent, k_extent in itertools.product({layout.x - x, 8, 3}, {layout.k - k, 16, 5}):
                descriptor = ctypes.c_uint64(7)
                status = make(given, x, k, x_extent, k_extent, ctypes.byref(descriptor))
                try:
                    expected = layout.descriptor(x, k, x_extent, k_extent).encode()
                except ValueError:
                    assert status in (_ALIGNMENT, _RANGE)
                    expected = 7
                else:
                    assert status == _OK, (layout, x, k, x_extent, k_extent)
                assert descriptor.value == expected
                outcomes.add(status)
    assert outcomes == {_OK, _ALIGNMENT, _RANGE}


def test_a_descriptor_is_for_a_family_that_reads_the_image(library: ctypes.CDLL) -> None:
    """Every type with every majorness and swizzle: what a family reads in Python it reads in C."""
    known = {
        family: {(name, majorness, mode.name, padded) for own, name, majorness, mode, padded in _READ if own == family}
        for family in _FORMATS
    }
    for name, majorness, mode, padded in itertools.product(_ELEMENTS, _MAJORNESS, _MODES.values(), (0, 1)):
        panel = _panel(mode, name, padded)
        x, k = (8, panel) if majorness == "K" else (panel, 8)
        layout, descriptor = _Layout(), ctypes.c_uint64()
        numbers = _TYPES[name], _MAJORNESS.index(majorness), _ENCODING[mode.name]
        make = library.ptxmma_shared_layout_padded if padded else library.ptxmma_shared_layout_dense
        dense = make(*map(ctypes.c_uint32, (*numbers, x, k, 0)), ctypes.byref(layout))
        readers = [family for family in _FORMATS if (name, majorness, mode.name, padded) in known[family]]
        assert (dense == _OK) == bool(readers), (name, majorness, mode.name)
        for family, format in _FORMATS.items():
            made = getattr(library, f"ptxmma_shared_{format.name}")(ctypes.byref(layout), 0, 0, x, k, ctypes.byref(descriptor))
            assert (made == _OK) == (family in readers), (family, name, majorness, mode.name)
            assert made in (_OK, _RANGE)


def test_descriptors_advance(library: ctypes.CDLL) -> None:
    layout = SharedLayout("f16", "K", "128B", 64, 128, start=2048)
    first = layout.descriptor(0, 0, 64, 16)
    for step in layout.steps(16):
        advanced = ctypes.c_uint64()
        distance = step.start_address - first.start_address
        assert library.ptxmma_descriptor_advance(ctypes.c_uint64(first.encode()), distance, ctypes.byref(advanced)) == _OK
        assert Descriptor.decode(advanced.value) == step
        assert library.ptxmma_descriptor_advance(ctypes.c_uint64(step.encode()), -distance, ctypes.byref(advanced)) == _OK
        assert advanced.value == first.encode()
    for distance, status in ((8, _ALIGNMENT), (1 << 18, _RANGE), (-4096, _RANGE)):
        advanced = ctypes.c_uint64(7)
        assert library.ptxmma_descriptor_advance(ctypes.c_uint64(first.encode()), distance, ctypes.byref(advanced)) == status
        assert advanced.value == 7


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"type": 0}, _RANGE),
        ({"type": _TYPES["f64"]}, _RANGE),
        ({"type": 999}, _RANGE),
        ({"type": _TYPES["tf32"], "majorness": 1}, _RANGE),
        ({"majorness": 2}, _RANGE),
        ({"swizzle": 4}, _RANGE),
        ({"swizzle": 5}, _RANGE),
        ({"x": 0}, _SIZE),
        ({"x": 12}, _MULTIPLE),
        ({"k": 0}, _SIZE),
        ({"k": 96}, _MULTIPLE),
        ({"k": 1 << 31}, _SIZE),
        ({"start": (1 << 19) - 2048}, _SIZE),
        ({"k": 1 << 15}, _SIZE),
        ({"start": 64}, _ALIGNMENT),
        ({"start": 0xFFFFFF80}, _SIZE),
        ({"lbo": 2056}, _ALIGNMENT),
        ({"sbo": 1032}, _ALIGNMENT),
        ({"lbo": 1024}, _RANGE),
        ({"lbo": 0}, _RANGE),
        ({"sbo": 0}, _RANGE),
        ({"sbo": 0xFFFFFFF0}, _SIZE),
        ({"base_offset": 8}, _RANGE),
    ],
)
def test_layouts_that_cannot_be_are_refused_and_nothing_is_written(library: ctypes.CDLL, changes: dict[str, int], status: int) -> None:
    layout = _Layout.of(SharedLayout("f16", "K", "128B", 16, 128))
    for name, value in changes.items():
        setattr(layout, name, value)
    given, image = ctypes.byref(layout), np.full(8192, 7, np.uint8)
    number, descriptor, buffer = ctypes.c_uint32(7), ctypes.c_uint64(7), pointer(image)
    assert library.ptxmma_shared_layout_check(given) == status
    assert library.ptxmma_shared_size(given, ctypes.byref(number)) == status
    assert library.ptxmma_shared_address(given, 0, 0, ctypes.byref(number)) == status
    assert library.ptxmma_shared_store(given, buffer, buffer, ctypes.c_size_t(8192), 0, 1) == status
    assert library.ptxmma_shared_load(given, buffer, ctypes.c_size_t(8192), buffer, 0, 1) == status
    assert library.ptxmma_shared_descriptor(given, 0, 0, 8, 16, ctypes.byref(descriptor)) == status
    assert (number.value, descriptor.value, set(image.tolist())) == (7, 7, {7})
    if not changes.keys() & {"lbo", "sbo", "base_offset"}:
        fields = (layout.type, layout.majorness, layout.swizzle, layout.x, layout.k, layout.start)
        before = bytes(layout)
        assert library.ptxmma_shared_layout_dense(*map(ctypes.c_uint32, fields), given) == status
        assert bytes(layout) == before


def test_strides_overlap_in_c_where_they_do_in_python(library: ctypes.CDLL) -> None:
    outcomes = set()
    for lbo, sbo in itertools.product(range(0, 4096, 208), range(0, 4096, 176)):
        layout = _Layout.of(SharedLayout("f16", "K", "32B", 24, 64))
        layout.lbo, layout.sbo = lbo, sbo
        try:
            SharedLayout("f16", "K", "32B", 24, 64, lbo=lbo, sbo=sbo)
            expected = _OK
        except ValueError:
            expected = _RANGE
        assert library.ptxmma_shared_layout_check(ctypes.byref(layout)) == expected, (lbo, sbo)
        outcomes.add(expected)
    assert outcomes == {_OK, _RANGE}


def test_images_end_where_descriptors_do(library: ctypes.CDLL) -> None:
    """The limit of the family whose descriptors reach furthest, as in Python."""
    layout_c = _Layout()
    outcomes = set()
    for x, start in itertools.product((2048, 4088, 4096), (0, 128, 1024, 1 << 18, (1 << 19) - 128)):
        arguments = (_TYPES["f16"], 0, _ENCODING["128B"], x, 64, start)
        status = library.ptxmma_shared_layout_dense(*map(ctypes.c_uint32, arguments), ctypes.byref(layout_c))
        if status == _OK:
            assert SharedLayout("f16", "K", "128B", x, 64, start=start, family="tcgen05").size == x * 128
        else:
            with pytest.raises(ValueError, match="descriptors reach"):
                SharedLayout("f16", "K", "128B", x, 64, start=start, family="tcgen05")
        outcomes.add(status)
    assert outcomes == {_OK, _SIZE}


def test_arguments_that_are_refused(library: ctypes.CDLL) -> None:
    layout = ctypes.byref(_Layout.of(SharedLayout("f16", "K", "128B", 16, 128)))
    image = np.full(4096, 7, np.uint8)
    fields = _Descriptor(*range(len(_FIELDS)))
    counted, encoded = ctypes.c_uint32(7), ctypes.c_uint64(7)
    buffer, number, descriptor, none = pointer(image), ctypes.byref(counted), ctypes.byref(encoded), None
    size = ctypes.c_size_t(4096)
    assert library.ptxmma_shared_layout_check(none) == _NULL
    assert library.ptxmma_shared_layout_dense(_TYPES["f16"], 0, 0, 8, 8, 0, none) == _NULL
    assert library.ptxmma_shared_size(layout, none) == _NULL
    assert library.ptxmma_shared_size(none, number) == _NULL
    assert library.ptxmma_shared_address(layout, 0, 0, none) == _NULL
    assert library.ptxmma_shared_address(none, 0, 0, number) == _NULL
    assert library.ptxmma_shared_address(layout, 16, 0, number) == _RANGE
    assert library.ptxmma_shared_address(layout, 0, 128, number) == _RANGE
    assert library.ptxmma_shared_store(layout, none, buffer, size, 0, 1) == _NULL
    assert library.ptxmma_shared_store(layout, buffer, none, size, 0, 1) == _NULL
    assert library.ptxmma_shared_store(none, buffer, buffer, size, 0, 1) == _NULL
    assert library.ptxmma_shared_load(none, buffer, size, buffer, 0, 1) == _NULL
    assert library.ptxmma_shared_load(layout, none, size, buffer, 0, 1) == _NULL
    assert library.ptxmma_shared_load(layout, buffer, size, none, 0, 1) == _NULL
    assert library.ptxmma_shared_load(layout, buffer, ctypes.c_size_t(0), buffer, 0, 1) == _SIZE
    assert library.ptxmma_shared_store(layout, buffer, buffer, ctypes.c_size_t(4095), 0, 1) == _SIZE
    assert library.ptxmma_shared_store(layout, buffer, buffer, size, 0, 0) == _RANGE
    assert library.ptxmma_shared_load(layout, buffer, size, buffer, 3, 3) == _RANGE
    assert library.ptxmma_shared_descriptor(layout, 0, 0, 0, 16, descriptor) == _SIZE
    assert library.ptxmma_shared_descriptor(layout, 0, 0, 16, 16, none) == _NULL
    assert library.ptxmma_shared_descriptor(layout, 0, 0, 16, 0, descriptor) == _SIZE
    assert library.ptxmma_shared_descriptor(none, 0, 0, 16, 16, descriptor) == _NULL
    assert library.ptxmma_shared_descriptor(layout, 8, 0, 16, 16, descriptor) == _RANGE
    assert library.ptxmma_shared_descriptor(layout, 16, 0, 1, 16, descriptor) == _RANGE
    for most in (2**31, 2**32 - 1):  # a sum with these would wrap around
        assert library.ptxmma_shared_address(layout, ctypes.c_uint32(most), 0, number) == _RANGE
        assert library.ptxmma_shared_descriptor(layout, 8, 0, ctypes.c_uint32(most), 16, descriptor) == _RANGE
        assert library.ptxmma_shared_descriptor(layout, 0, 16, 8, ctypes.c_uint32(most), descriptor) == _RANGE
    assert library.ptxmma_descriptor_advance(ctypes.c_uint64(0), 16, none) == _NULL
    assert library.ptxmma_descriptor_checked(_Descriptor(), none) == _NULL
    for unknown in (1 << 14, 1 << 53, 1 << 61):  # bits of no field
        assert library.ptxmma_descriptor_advance(ctypes.c_uint64(unknown), 16, descriptor) == _RANGE
        assert library.ptxmma_descriptor_read(ctypes.c_uint64(unknown), ctypes.byref(fields)) == _RANGE
    assert library.ptxmma_descriptor_read(ctypes.c_uint64(0), none) == _NULL
    assert bytes(fields) == bytes(_Descriptor(*range(len(_FIELDS))))
    assert library.ptxmma_descriptor_read(ctypes.c_uint64(0x4000004002000002), ctypes.byref(fields)) == _OK
    assert fields.start_address == 32
    for field in _FIELDS:
        if field.shift:
            assert library.ptxmma_descriptor_checked(_Descriptor(**{field.name: 1}), descriptor) == _ALIGNMENT
        for most in (1 << field.width + field.shift, 1 << 31):
            assert library.ptxmma_descriptor_checked(_Descriptor(**{field.name: most}), descriptor) == _RANGE
    assert set(image.tolist()) == {7}
    assert (counted.value, encoded.value) == (7, 7)


def test_nothing_is_accessed_out_of_bounds(cc: str, include: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "sanitized.c", tmp_path / "sanitized"
    source.write_text(_SANITIZED, encoding="utf-8")
    flags = ["-std=c99", "-g", "-O1", *WARNINGS, "-Wno-unused-function", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    run(cc, *flags, "-I", include, source, "-o", target)
    run(target)


@pytest.mark.nvcc
def test_device_code_may_call_the_functions(compiler: Nvcc, tmp_path: Path) -> None:
    compiler.build(_DEVICE, "-arch=sm_90", "-std=c++17", "-cubin", folder=tmp_path)


@pytest.mark.nvcc
def test_device_code_moves_vectors(compiler: Nvcc, tmp_path: Path) -> None:
    text = compiler.ptx_of(_DEVICE, "sm_90", tmp_path)
    for access in (r"ld(\.global)?\.v4", r"st(\.shared)?\.v4", r"ld(\.shared)?\.v4", r"st(\.global)?\.v4"):
        assert re.search(rf"\b{access}\.[bu]32", text), access


@pytest.mark.nvcc
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_block_stores_what_python_stores(nvcc: str, include: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "device.cu", tmp_path / "device.so"
    source.write_text(_DEVICE, encoding="utf-8")
    run(nvcc, "-arch=sm_90", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-I", include, source, "-o", target)
    library = ctypes.CDLL(str(target))
    for layout in _layouts():
        matrix, memory = _matrix(layout)
        image, back = np.zeros(layout.size, np.uint8), np.zeros_like(memory)
        sizes = ctypes.c_size_t(memory.nbytes), ctypes.c_size_t(layout.size)
        given = ctypes.byref(_Layout.of(layout))
        assert library.on_device(given, pointer(memory), sizes[0], pointer(image), sizes[1], pointer(back)) == _OK
        np.testing.assert_array_equal(image, layout.store_xk(matrix), str(layout))
        np.testing.assert_array_equal(back, memory)
