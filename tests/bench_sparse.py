"""Structured sparsity: our compression beside PyTorch's on the CPU and, in C, beside memcpy, round by round; part of ``make bench``."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench_rounds import in_turn
from ptxmma import paths
from ptxmma.matrices import sparse

_SIZE = 16384


def main() -> None:
    """Measure compression, decompression and the memory that they need."""
    _in_c()
    matrix = _matrix(_SIZE)
    _compress(matrix)
    _rest(matrix)


def _in_c() -> None:
    """``sparse.h`` on one core beside ``memcpy`` of the same matrix."""
    if shutil.which("gcc") is None:
        print("compression in C: skipped, gcc is not installed")
        return
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "bench_sparse"
        source = Path(__file__).with_name("bench_sparse.c")
        subprocess.run(["gcc", "-O3", "-march=native", "-I", paths.INCLUDE, source, "-o", program], check=True)
        done = subprocess.run([program, str(_SIZE), str(_SIZE)], check=True, capture_output=True, text=True)
    times = json.loads(done.stdout)
    what = f"C: compress {_SIZE} x {_SIZE} f16 to 2:4 / memcpy, GB/s"
    print(f"{what:<58}{times['compress/memcpy']:>8.2f}x   0.5x or more  ({times['compress']:.1f} GB/s)")


def _matrix(size: int) -> npt.NDArray[np.float16]:
    """A square matrix of random numbers, two of each four zero, made in parts to save memory."""
    rng = np.random.default_rng(0)
    matrix = np.empty((size, size), np.float16)
    for rows in np.split(matrix, 64):
        rows[:] = sparse.prune(rng.standard_normal(rows.shape, np.float32).astype(np.float16), "2:4")
    return matrix


def _compress(matrix: npt.NDArray[np.float16]) -> None:
    functions: dict[str, Callable[[], object]] = {"ours": lambda: sparse.compress(matrix, "2:4")}
    try:
        import torch
        from torch.sparse import _semi_structured_conversions as conversions
    except ImportError:
        print("PyTorch's compression: skipped, torch is not installed")
    else:
        tensor = torch.from_numpy(matrix)
        functions["theirs"] = lambda: conversions.sparse_semi_structured_from_dense_cutlass(tensor)  # type: ignore[no-untyped-call]
    # Theirs also reorders the metadata, which takes almost no time.
    times = in_turn(functions, 1)  # a round takes PyTorch some ten seconds
    what = f"compress {len(matrix)} x {len(matrix)} f16 to 2:4"
    print(f"{what:<58}{statistics.median(times['ours']) * 1e3:>7.0f} ms")
    if "theirs" in times:
        ratio = statistics.median(theirs / ours for theirs, ours in zip(times["theirs"], times["ours"], strict=True))
        print(f"{'  PyTorch on the CPU':<58}{statistics.median(times['theirs']) * 1e3:>7.0f} ms")
        print(f"{'  PyTorch / ours':<58}{ratio:>8.2f}x   5x or more")

    tracemalloc.start()
    values, metadata = sparse.compress(matrix, "2:4")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    share = (peak - values.nbytes - metadata.nbytes) / matrix.nbytes
    print(f"{'  memory beyond input and outputs / input':<58}{share:>8.4f}x   0.125x")


def _rest(matrix: npt.NDArray[np.float16]) -> None:
    quarter = np.ascontiguousarray(matrix[: len(matrix) // 4])
    values, metadata = sparse.compress(quarter, "2:4")
    functions: dict[str, Callable[[], object]] = {
        "copy": quarter.copy,
        "prune": lambda: sparse.prune(quarter, "2:4"),
        "check": lambda: sparse.check(quarter, "2:4"),
        "compress": lambda: sparse.compress(quarter, "2:4"),
        "decompress": lambda: sparse.decompress(values, metadata, "2:4"),
    }
    times = in_turn(functions, 5)
    for name in list(functions)[1:]:
        ratio = statistics.median(ours / copy for ours, copy in zip(times[name], times["copy"], strict=True))
        print(f"{f'{name} a quarter of it / copy of the same bytes':<58}{ratio:>8.2f}x")


if __name__ == "__main__":
    main()
