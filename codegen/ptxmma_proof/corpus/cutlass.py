"""Compiles CUTLASS's unit tests and examples to PTX.

The files are chosen for many different matrix instructions in less than three minutes of compiling; each is compiled once, to PTX only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

#: The files for a target, as patterns: the tests of warps and thread blocks, of whole products one of each type of elements, the examples
#: of products and attention for Hopper, and all for GeForce.
PATTERNS: dict[str, tuple[str, ...]] = {
    "80": (
        "test/unit/gemm/warp/*_sm80.cu",
        "test/unit/gemm/threadblock/*_sm80.cu",
        "test/unit/gemm/threadblock/mma_multistage*.cu",
    ),
    "90a": (
        "test/unit/gemm/warp/*_sm90.cu",
        "test/unit/gemm/device/sm90_gemm_*_alignx_tensor_op_?32.cu",  # f16, bf16, tf32 and s8
        "test/unit/gemm/device/sm90_gemm_f8_f8_f32_tensor_op_fp32.cu",
        "test/unit/gemm/device/sm90_sparse_gemm_f16_*.cu",
        "examples/*_hopper_*_gemm/*.cu",
        "examples/*_hopper_fmha/*.cu",
    ),
    "120a": ("examples/*_blackwell_geforce_*/*.cu",),
}
_OPTIONS = ("-ptx", "-std=c++17", "--expt-relaxed-constexpr", "-w")
_INCLUDED = ("include", "tools/util/include", "test/unit", "test/unit/common", "examples/common")
#: The most seconds for one file; slower files are left out.
_MOST_SECONDS = 600


class CompilerMissingError(RuntimeError):
    """``nvcc`` is not installed."""


def build(folder: Path, cutlass: Path, googletest: Path | None) -> Iterator[str]:
    """Compile the files that have not been compiled, and yield a line about each.

    Args:
        folder: the folder for them.
        cutlass: a checkout.
        googletest: a checkout, which the unit tests include; without it only the examples are compiled.

    Raises:
        CompilerMissingError: ``nvcc`` is not installed.
    """
    nvcc = _nvcc()
    for target, patterns in PATTERNS.items():
        for file in sorted({path.relative_to(cutlass).as_posix() for pattern in patterns for path in cutlass.glob(pattern)}):
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


def versions(cutlass: Path) -> dict[str, str]:
    """The versions of CUTLASS and of the compiler."""
    header = (cutlass / "include" / "cutlass" / "version.h").read_text(encoding="utf-8")
    numbers = [re.search(rf"#define CUTLASS_{part}\s+(\d+)", header) for part in ("MAJOR", "MINOR", "PATCH")]
    said = subprocess.run([_nvcc(), "--version"], check=True, capture_output=True, text=True).stdout
    release = re.search(r"V(\d[\d.]*)", said)
    return {"CUTLASS": ".".join(match[1] for match in numbers if match), "nvcc": release[1] if release else ""}


def _nvcc() -> str:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise CompilerMissingError("nvcc is not on the PATH; it comes with the CUDA toolkit")
    return nvcc
