"""``cuda/sparse.cuh`` on the GPU: its kernels write what the host's functions write, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]


@pytest.fixture(scope="module")
def program(gpu: str, nvcc: str, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``cuda_sparse.cu``, compiled."""
    assert gpu
    target = tmp_path_factory.mktemp("compress") / "cuda_sparse"
    options = ["-std=c++17", "-O3", "-gencode", "arch=compute_90a,code=sm_90a", "-lineinfo", "-I", str(root / "generated/include")]
    done = subprocess.run(
        [nvcc, *options, str(root / "tests/cuda_sparse.cu"), "-o", str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    return target


def _run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_kernels_write_what_the_host_writes(program: Path) -> None:
    times = json.loads(_run(program, "2048"))
    assert times["cases"] > 500
    assert times["failures"] == 0


def test_the_kernels_stay_within_their_buffers(program: Path, nvcc: str) -> None:
    folders = [None, str(Path(nvcc).resolve().parent)]
    sanitizer = next(filter(None, (shutil.which("compute-sanitizer", path=folder) for folder in folders)), None)
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    _run(sanitizer, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "99", program, "256")
