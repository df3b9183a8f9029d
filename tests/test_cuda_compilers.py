"""Compilers of CUDA beside nvcc: NVRTC compiles every header, clang those with device code."""

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


class Nvrtc:
    """NVIDIA's run-time compiler."""

    def __init__(self, library: str) -> None:
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


def test_nvrtc_compiles_a_kernel(nvrtc: Nvrtc) -> None:
    assert nvrtc.compile(_KERNEL, f"-I{paths.INCLUDE}", "-arch=sm_90a") == (True, "")


def test_nvrtc_refuses_the_chip_without_its_features(nvrtc: Nvrtc) -> None:
    """Unlike nvcc, it makes no second pass that would have to compile."""
    passed, log = nvrtc.compile(_KERNEL, f"-I{paths.INCLUDE}", "-arch=sm_90")
    assert not passed
    assert "ptxmma: this instruction needs sm_90a: compile with -gencode arch=compute_90a,code=sm_90a" in log


def test_clang_compiles_a_kernel(tmp_path: Path) -> None:
    clang = shutil.which("clang++") or pytest.skip("clang++ is not installed")
    options = [clang, "-x", "cuda", "--cuda-gpu-arch=sm_90a", "--cuda-device-only", "-S", "-std=c++17", "-Wall", "-Wextra"]
    options += [f"-I{paths.INCLUDE}", "-o", "output.s"]
    for name, source in (("empty.cu", ""), ("kernel.cu", _KERNEL)):
        (tmp_path / name).write_text(source)
        done = subprocess.run([*options, name], cwd=tmp_path, capture_output=True, text=True, check=False)
        if done.returncode and name == "empty.cu":
            pytest.skip(f"clang++ does not compile an empty file for sm_90a with this toolkit: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
    assert "wgmma.mma_async" in (tmp_path / "output.s").read_text()
