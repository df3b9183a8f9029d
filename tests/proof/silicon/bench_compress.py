"""Compression on the GPU beside a plain copy, cuSPARSELt and PyTorch: ``python tests/proof/silicon/bench_compress.py``.

Prints one table, after comparing our kernels' results with the Python library's, bit for bit.
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import ptxmma
from ptxmma import paths
from ptxmma.matrices import sparse

_SIZE = 16384
_ROUNDS = 20
_INSTRUCTION = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_SOURCE = """
#include <ptxmma/cuda/sparse.cuh>
using namespace ptxmma::sparse;
extern "C" int row_major(size_t n, const void* matrix, void* values, void* metadata, fault_word* fault) {
  return compress<kind_2_4_f16>(n, n, matrix, n, values, n / 2, static_cast<uint8_t*>(metadata), n / 8, fault, nullptr);
}
extern "C" int registers(size_t n, const void* matrix, void* values, void* metadata, fault_word* fault) {
  return compress<kind_2_4_f16, LAYOUT>(n, n, matrix, n, values, n / 2, static_cast<uint32_t*>(metadata), fault, nullptr);
}
"""


def main() -> None:
    """Check and measure."""
    instruction = ptxmma.instruction(_INSTRUCTION)
    generator = torch.Generator("cuda").manual_seed(0)
    dense = torch.randn((_SIZE, _SIZE), dtype=torch.float16, device="cuda", generator=generator)
    chunks = dense.view(-1, 4)
    chunks.scatter_(1, torch.rand(chunks.shape, device="cuda", generator=generator).argsort(1)[:, :2], 0)
    values = torch.empty((_SIZE, _SIZE // 2), dtype=torch.float16, device="cuda")
    metadata = torch.empty((_SIZE, _SIZE // 8), dtype=torch.uint8, device="cuda")
    fault = torch.zeros(1, dtype=torch.int64, device="cuda")
    library = _library(instruction.metadata.layout.name)
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (dense, values, metadata, fault)]

    def run(function: str) -> None:
        status = library[function](ctypes.c_size_t(_SIZE), *pointers)
        assert status == 0, status

    expected = sparse.compress(dense.cpu().numpy(), "2:4")
    for function in ("row_major", "registers"):
        values.zero_(), metadata.zero_()
        run(function)
        assert fault.item() == -1
        assert np.array_equal(values.cpu().numpy(), expected.values)
        wanted = expected.metadata if function == "row_major" else instruction.metadata.pack_tiles(expected.metadata)
        assert np.array_equal(metadata.cpu().numpy().view(np.uint8).ravel(), np.ascontiguousarray(wanted).view(np.uint8).ravel())

    target = torch.empty_like(dense)
    moved = {"copy": 2 * dense.nbytes}
    ours = dense.nbytes + values.nbytes + metadata.nbytes
    functions: dict[str, Callable[[], object]] = {
        "copy": lambda: target.copy_(dense),
        "ours, row-major metadata": lambda: run("row_major"),
        "ours, metadata in registers": lambda: run("registers"),
        "cuSPARSELt": lambda: torch._cslt_compress(dense),
        "PyTorch": lambda: torch.sparse.SparseSemiStructuredTensorCUTLASS.from_dense(dense),
    }
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(_ROUNDS):
        for name, compress in functions.items():
            # torch has no annotations for its events
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            compress()
            start.record()
            compress()
            stop.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(stop))
    copy = statistics.median(times["copy"])
    for name, measured in times.items():
        median = statistics.median(measured)
        rate = moved.get(name, ours) / median / 1e9
        print(f"{name:<32}{median:>8.3f} ms{rate:>8.2f} TB/s{rate / (moved['copy'] / copy / 1e9):>8.2f} of the copy's bandwidth")


def _library(layout: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "compress.cu", Path(folder) / "compress.so"
        source.write_text(_SOURCE.replace("LAYOUT", layout), encoding="utf-8")
        options = ["-std=c++17", "-O3", "-gencode", "arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC"]
        subprocess.run(["nvcc", *options, "-I", str(paths.INCLUDE), str(source), "-o", str(built)], check=True)
        return ctypes.CDLL(str(built))


if __name__ == "__main__":
    main()
