"""The C and CUDA examples of ``docs/headers.rst`` compile without a warning and do what the text around them says."""

from __future__ import annotations

import ctypes
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import header_programs
import ptxmma
from cuda_calls import Nvcc
from header_programs import pointer
from ptxmma import paths
from ptxmma.matrices import scaling, sparse
from ptxmma.matrices.shared_memory import SharedLayout

_WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror", "-Wno-unused-function"]


def _blocks(root: Path, language: str) -> list[str]:
    text = (root / "docs/headers.rst").read_text(encoding="utf-8")
    blocks = re.findall(rf"^\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks]


@pytest.fixture(scope="module")
def library(cc: str, root: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    blocks, folder = _blocks(root, "c"), tmp_path_factory.mktemp("docs")
    assert len(blocks) == 4
    return header_programs.library(cc, "\n".join(blocks), folder, "-std=c99", *_WARNINGS, "-I", paths.INCLUDE)


def test_compressed_and_packed(library: ctypes.CDLL) -> None:
    weights = np.random.default_rng(1).standard_normal((32, 128)).astype(np.float16)
    expected = sparse.compress(sparse.prune(weights, "2:4"), "2:4")
    values, metadata = np.zeros((32, 64), np.float16), np.zeros((32, 16), np.uint8)
    size = [ctypes.c_size_t(32), ctypes.c_size_t(128)]
    assert library.compress(pointer(weights), *size, pointer(values), pointer(metadata)) == 0
    assert np.array_equal(values, expected.values)
    assert np.array_equal(metadata, expected.metadata)

    instruction = ptxmma.instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    a, e = instruction.operand("a").pack_tiles(values), instruction.metadata.pack_tiles(metadata)
    got_a, got_e = np.zeros_like(a), np.zeros_like(e)
    assert library.pack(*size, pointer(values), pointer(metadata), pointer(got_a), pointer(got_e)) == 0
    assert np.array_equal(got_a, a)
    assert np.array_equal(got_e, e)


def test_staged(library: ctypes.CDLL) -> None:
    layout = SharedLayout("f16", "K", "128B", x=64, k=128, start=1024)
    tile, image, descriptor = np.arange(64 * 128).astype(np.float16).reshape(64, 128), np.zeros(layout.size, np.uint8), ctypes.c_uint64()
    address = ctypes.c_uint32(1024)
    assert library.stage(pointer(tile), pointer(image), ctypes.c_size_t(layout.size), address, ctypes.byref(descriptor)) == 0
    assert np.array_equal(image, layout.store_xk(tile))
    assert descriptor.value == layout.descriptor(k_extent=16).encode()


def test_quantised(library: ctypes.CDLL) -> None:
    matrix = (np.random.default_rng(2).standard_normal((4, 64)) * 1e-5).astype(np.float32)
    elements, scales, tensor_scale = np.zeros(128, np.uint8), np.zeros((4, 4), np.uint8), ctypes.c_float()
    size = [ctypes.c_size_t(4), ctypes.c_size_t(64)]
    assert library.quantise(pointer(matrix), *size, pointer(elements), pointer(scales), ctypes.byref(tensor_scale)) == 0
    expected = scaling.quantise(matrix, "nvfp4", tensor_scale=float(scaling.tensor_scale(matrix, "nvfp4")))
    assert np.array_equal(scales, expected.scales.view(np.uint8))
    assert scales.all()


@pytest.mark.nvcc
def test_the_device_examples_compile(compiler: Nvcc, root: Path, tmp_path: Path) -> None:
    blocks = _blocks(root, "cuda")
    assert len(blocks) == 11
    for block in blocks:
        target = "100a" if "tcgen05" in block else "90a"
        compiler.build(block, "-std=c++17", "-c", "-gencode", f"arch=compute_{target},code=sm_{target}", folder=tmp_path)
