"""Compilers of CUDA beside nvcc: NVRTC and clang compile every header."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxmma import paths

_KERNEL = """
#include <ptxmma/mma/f16_f16.cuh>
#include <ptxmma/wgmma/bf16_bf16.cuh>
using namespace ptxmma;
__global__ void kernel(float* out) {
  float d[4] = {};
  wgmma_m64n8k16_f32_bf16_bf16(d, uint64_t(0), uint64_t(0), true);
  wgmma_wait_group<0>();
  out[threadIdx.x] = d[0];
}
"""

_MOVES = """
#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/mma/f16_f16.cuh>
using namespace ptxmma;
using Multiply = mma<shape<16, 8, 16>, f32, f16, f16, f32>;
using A = shared_tile<f16, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 64, 64>;
using B = shared_tile<f16, PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_128B, 64, 64>;
using Pair = side_by_side<Multiply, 2>;
__global__ void kernel(float* out) {
  float d[4] = {};
  Multiply::a::type a;
  Pair::type b;
  load_fragment<Multiply::a, A>(a, 0, threadIdx.x, 0, 0);
  load_fragment<Pair, B>(b, 8192, threadIdx.x, 0, 0);
  Multiply::call(d, a, {b[0], b[1]}, d);
  Multiply::call(d, a, {b[2], b[3]}, d);
  out[threadIdx.x] = d[0];
}
"""

_PRODUCT = """
#include <ptxmma/cuda/tcgen05_mma_product.cuh>
#include <ptxmma/cuda/tensor_moves.cuh>
using Product = ptxmma::tcgen05_mma<ptxmma::shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
using A = Product::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 128, 64>;
using B = Product::b_tile<PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_128B, 256, 64>;
using Part = ptxmma::accumulator_part<Product, 32>;
__global__ void kernel(ptxmma::tensor_address d, float* out) {
  Product::call(d, A::descriptor(0), B::descriptor(A::bytes), false, ptxmma::collector_a_lastuse{});
  Part::type part;
  Part::load(part, d, threadIdx.x);
  out[threadIdx.x] = part[31];
}
"""
_TYPE = """
using Product = ptxmma::tcgen05_mma<ptxmma::shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
static_assert(Product::n == 256 && Product::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 128, 64>::steps == 4, "");
"""

_COMPRESSION = """
#include <ptxmma/cuda/sparse.cuh>
using namespace ptxmma::sparse;
template cudaError_t ptxmma::sparse::compress<kind_2_4_f16>(
    size_t, size_t, const void*, size_t, void*, size_t, uint8_t*, size_t, fault_word*, cudaStream_t);
"""

#: Headers of the toolkit that clang 19 includes by itself. CUDA 13 has dropped the first, and the other comes with cuRAND.
_INCLUDED_BY_CLANG = ("texture_fetch_functions.h", "curand_mtgp32_kernel.h")


class Nvrtc:
    """NVIDIA's run-time compiler."""

    def __init__(self, library: str) -> None:
        for builtins in sorted(Path(library).parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins))  # NVRTC opens it by name alone, and no search path leads to PyPI's
        self._library = ctypes.CDLL(library)

    def compile(self, source: str, *options: str) -> tuple[bool, str]:
        """Whether it takes a source, and what it says."""
        library, program, size = self._library, ctypes.c_void_p(), ctypes.c_size_t()
        assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"source.cu", 0, None, None) == 0
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = library.nvrtcCompileProgram(program, len(options), given)
        assert library.nvrtcGetProgramLogSize(program, ctypes.byref(size)) == 0
        log = ctypes.create_string_buffer(size.value)
        assert library.nvrtcGetProgramLog(program, log) == 0
        assert library.nvrtcDestroyProgram(ctypes.byref(program)) == 0
        return not failed, log.value.decode()


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    return Nvrtc(next(_libraries(), "") or pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc"))


def _libraries() -> Iterator[str]:
    """The places of NVRTC: PyPI's package, and the toolkit beside nvcc."""
    package, nvcc = importlib.util.find_spec("nvidia"), shutil.which("nvcc")
    for folder in package.submodule_search_locations or () if package else ():
        yield from sorted(map(str, Path(folder).glob("*/lib/libnvrtc.so.*")))
    if nvcc:
        yield from sorted(map(str, (Path(nvcc).resolve().parent.parent / "lib64").glob("libnvrtc.so")))


def _headers() -> list[str]:
    return sorted(path.relative_to(paths.INCLUDE).as_posix() for path in paths.INCLUDE.rglob("*.*h"))


@pytest.mark.parametrize("dialect", ["c++11", "c++17"])
def test_nvrtc_compiles_every_header(nvrtc: Nvrtc, dialect: str) -> None:
    headers = _headers()
    assert {"ptxmma/ptxmma.cuh", "ptxmma/cuda/sparse.cuh", "ptxmma/wgmma_pack.h"} <= set(headers)
    for header in headers:
        passed, log = nvrtc.compile(f"#include <{header}>\n", f"-I{paths.INCLUDE}", "-arch=sm_90a", f"-std={dialect}")
        assert passed, f"{header}: {log[:2000]}"
        assert not log.strip("\0\n"), f"{header}: {log[:2000]}"


@pytest.mark.parametrize(("kernel", "arch"), [(_KERNEL, "90a"), (_MOVES, "90a"), (_PRODUCT, "100a")], ids=["wgmma", "moves", "tcgen05"])
def test_nvrtc_compiles_a_kernel(nvrtc: Nvrtc, kernel: str, arch: str) -> None:
    """To PTX: NVRTC of CUDA 13.0 crashes when it assembles any wgmma, also one in plain inline assembly."""
    assert nvrtc.compile(kernel, f"-I{paths.INCLUDE}", f"-arch=compute_{arch}", "-std=c++17") == (True, "")


def test_nvrtc_refuses_the_chip_without_its_features(nvrtc: Nvrtc) -> None:
    """Unlike nvcc, it makes no second pass that would have to compile."""
    passed, log = nvrtc.compile(_KERNEL, f"-I{paths.INCLUDE}", "-arch=sm_90")
    assert not passed
    assert "ptxmma: this instruction needs sm_90a: compile with -gencode arch=compute_90a,code=sm_90a" in log


@pytest.mark.parametrize(
    ("source", "instruction"),
    [
        (_KERNEL, "wgmma.mma_async"),
        (_MOVES, "ldmatrix.sync.aligned.m8n8.x4.trans"),
        ("".join(f"#include <{header}>\n" for header in _headers()) + _TYPE, ""),
        (_COMPRESSION, "ld.global.cs.v4"),
    ],
    ids=["wgmma", "moves", "headers", "compression"],
)
def test_clang_compiles(source: str, instruction: str, tmp_path: Path) -> None:
    clang = shutil.which("clang++") or pytest.skip("clang++ is not installed")
    (tmp_path / "last").mkdir()
    for header in _INCLUDED_BY_CLANG:
        (tmp_path / "last" / header).touch()
    options = [
        clang,
        "-x",
        "cuda",
        "--cuda-gpu-arch=sm_90a",
        "-S",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unknown-cuda-version",
    ]
    options += [f"-I{paths.INCLUDE}", "-idirafter", "last", "-o", "output.s"]
    for name, text, side in (("empty.cu", "", "device"), ("source.cu", source, "host"), ("source.cu", source, "device")):
        (tmp_path / name).write_text(text)
        done = subprocess.run([*options, f"--cuda-{side}-only", name], cwd=tmp_path, capture_output=True, text=True, check=False)
        if done.returncode and name == "empty.cu":
            pytest.skip(f"clang++ does not compile an empty file for sm_90a with this toolkit: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
    assert instruction in (tmp_path / "output.s").read_text()
