"""PTX that NVIDIA's compiler makes of CUTLASS's unit tests and examples.

The files are chosen for many matrix instructions in a minute of compiling; each is compiled once, to PTX only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ptxmma.evidence.corpus import Tool

#: Files by the target that they are compiled for.
FILES: dict[str, tuple[str, ...]] = {
    "80": (
        "test/unit/gemm/warp/gemm_sm80.cu",
        "test/unit/gemm/warp/gemm_sparse_sm80.cu",
        "test/unit/gemm/warp/gemm_mixed_input_sm80.cu",
        "test/unit/gemm/warp/gemm_complex_sm80.cu",
        "test/unit/gemm/warp/gemm_gaussian_complex_sm80.cu",
        "test/unit/gemm/threadblock/mma_multistage_sparse.cu",
        "test/unit/gemm/threadblock/mma_multistage.cu",
        "test/unit/gemm/threadblock/mma_multistage_slicedk.cu",
        "test/unit/gemm/threadblock/mma_pipelined_sm80.cu",
        "test/unit/gemm/threadblock/mma_planar_complex_sm80.cu",
    ),
    "90a": (
        "test/unit/gemm/warp/gemm_sm90.cu",
        "test/unit/gemm/device/sm90_gemm_f8_f8_f32_tensor_op_fp32.cu",
        "test/unit/gemm/device/sm90_sparse_gemm_f16_f16_f32_tensor_op_f32.cu",
        "test/unit/gemm/warp/gemm_complex_sm90.cu",
    ),
    "120a": (
        "examples/79_blackwell_geforce_gemm/79a_blackwell_geforce_nvfp4_bf16_gemm.cu",
        "examples/79_blackwell_geforce_gemm/79c_blackwell_geforce_mixed_mxfp8_mxfp6_bf16_gemm.cu",
        "examples/80_blackwell_geforce_sparse_gemm/80a_blackwell_geforce_mxfp8_bf16_sparse_gemm.cu",
        "examples/80_blackwell_geforce_sparse_gemm/80b_blackwell_geforce_nvfp4_nvfp4_sparse_gemm.cu",
        "examples/87_blackwell_geforce_gemm_blockwise/87a_blackwell_geforce_fp8_bf16_gemm_blockwise.cu",
    ),
}
_OPTIONS = ("-ptx", "-std=c++17", "--expt-relaxed-constexpr", "-w")
_INCLUDED = ("include", "tools/util/include", "test/unit", "test/unit/common", "examples/common")
#: Seconds for one file, after which it is left out.
_MOST_SECONDS = 600


class CompilerMissingError(RuntimeError):
    """There is no ``nvcc``."""


def build(folder: Path, cutlass: Path, googletest: Path | None) -> Iterator[str]:
    """Compile the files that were not compiled yet; a line about each.

    Args:
        folder: where to.
        cutlass: a checkout.
        googletest: a checkout, which the unit tests include; without it only the examples are compiled.

    Raises:
        CompilerMissingError: there is no ``nvcc``.
    """
    nvcc = _nvcc()
    for target, files in FILES.items():
        for file in files:
            place = folder / f"sm_{target}" / f"{file.removesuffix('.cu').replace('/', '_')}.ptx"
            if place.exists():
                yield str(place)
            elif googletest is not None or not file.startswith("test/"):
                place.parent.mkdir(parents=True, exist_ok=True)
                yield _compiled(nvcc, target, cutlass, googletest, file, place)


def _compiled(nvcc: str, target: str, cutlass: Path, googletest: Path | None, file: str, place: Path) -> str:
    included = [cutlass / folder for folder in _INCLUDED] + [(cutlass / file).parent]
    if googletest is not None:
        included.append(googletest / "googletest" / "include")
    part = place.with_suffix(".part")
    command = [nvcc, *_OPTIONS, f"-arch=compute_{target}", *(f"-I{folder}" for folder in included), str(cutlass / file), "-o", str(part)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{file}: not compiled within {_MOST_SECONDS} s"
    if done.returncode:
        return f"{file}: {done.stderr.strip()[:400]}"
    part.replace(place)
    return str(place)


def tools(cutlass: Path) -> Iterator[Tool]:
    """CUTLASS and the compiler."""
    header = (cutlass / "include" / "cutlass" / "version.h").read_text(encoding="utf-8")
    numbers = [re.search(rf"#define CUTLASS_{part}\s+(\d+)", header) for part in ("MAJOR", "MINOR", "PATCH")]
    yield Tool(name="CUTLASS", version=".".join(match[1] for match in numbers if match))
    said = subprocess.run([_nvcc(), "--version"], check=True, capture_output=True, text=True).stdout
    release = re.search(r"V(\d[\d.]*)", said)
    yield Tool(name="nvcc", version=release[1] if release else "")


def _nvcc() -> str:
    found = shutil.which("nvcc")
    if found is None:
        raise CompilerMissingError("nvcc is not on the PATH; it comes with the CUDA toolkit")
    return found
