"""The measurements behind the promises: ``make bench``.

Whole commands are timed cold, in turn, several times; the table gives medians and the limits that the project set itself.  Nothing
fails here: machines are shared and noisy, so read the ratios.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np
from ptxmma_layouts import mma

import bench_check
import bench_commands
import bench_explorer
import bench_products
import bench_registers
import bench_sparse
import bench_wheels
from ptxmma import paths

_LOOKUP = "import ptxmma; ptxmma.instruction('mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32').operand('a').coords(5, 3)"


def main() -> None:
    """Measure everything and print one table."""
    print(f"{'what':<58}{'median':>10}  limit")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        generate = [sys.executable, "-m", "ptxmma", "generate", "--out", str(out)]
        rounds = _in_turn({
            "ptxmma generate, into an empty directory": (generate, lambda: shutil.rmtree(out, ignore_errors=True)),
            "ptxmma generate --check, nothing to do": ([*generate, "--check"], lambda: None),
            "python -c pass": ([sys.executable, "-c", "pass"], lambda: None),
            "import ptxmma": ([sys.executable, "-c", "import ptxmma"], lambda: None),
            "import and look one operand up": ([sys.executable, "-c", _LOOKUP], lambda: None),
        })  # fmt: skip
    limits = {"ptxmma generate, into an empty directory": "2 s", "ptxmma generate --check, nothing to do": "2 s",
              "import ptxmma": "60 ms", "import and look one operand up": "200 ms"}  # fmt: skip
    for name, (walls, _) in rounds.items():
        print(f"{name:<58}{statistics.median(walls) * 1e3:>7.0f} ms  {limits.get(name, '')}")
    bench_commands.main()
    bench_explorer.main()
    bench_check.main()
    bench_wheels.main()
    _numpy()
    bench_registers.main()
    bench_products.main()
    bench_sparse.main()
    if shutil.which("nvcc"):
        _includes()
    else:
        print("include cost: skipped, nvcc is not installed")


Times = dict[str, tuple[list[float], list[float]]]


def _in_turn(commands: dict[str, tuple[list[str], Callable[[], None]]], rounds: int = 3) -> Times:
    """Wall and CPU seconds of each command, round by round; the first round warms up and does not count."""
    seconds: Times = {name: ([], []) for name in commands}
    for counted in [False] + [True] * rounds:
        for name, (command, before) in commands.items():
            before()
            used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            wall = time.perf_counter() - start
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            if counted:
                seconds[name][0].append(wall)
                seconds[name][1].append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    return seconds


def _numpy() -> None:
    """The generated layout function of m16n8k16 A against the best expression that one would write by hand."""
    lane, i = np.divmod(np.arange(1 << 20, dtype=np.int32) % 256, 8)

    def by_hand() -> tuple[object, object]:
        return (lane >> 2) | ((i & 2) << 2), ((lane & 3) << 1) | (i & 1) | ((i & 4) << 1)

    def generated() -> tuple[object, object]:
        places: tuple[object, object] = mma.mma_m16n8k16_a_b16(lane, i)
        return places

    times: dict[str, list[float]] = {"hand": [], "generated": []}
    for _ in range(9):
        times["hand"].append(timeit.timeit(by_hand, number=5))
        times["generated"].append(timeit.timeit(generated, number=5))
    ratio = statistics.median(times["generated"]) / statistics.median(times["hand"])
    print(f"{'m16n8k16 A on 2^20 NumPy elements, generated / by hand':<58}{ratio:>8.2f}x   1.5x")


def _includes() -> None:
    """CPU time of an empty CUDA file and of one that includes a header, or all of them, without using it."""
    everything = paths.INCLUDE / "ptxmma" / "ptxmma.cuh"
    largest = sorted(set(paths.INCLUDE.rglob("*.cuh")) - {everything}, key=lambda path: path.stat().st_size)[-6:]
    together = [everything.parent / "cuda" / f"{name}.cuh" for name in ("fragment_moves", "tensor_moves", "tcgen05_mma_product")]
    headers = [path.relative_to(paths.INCLUDE).as_posix() for path in (*largest, *together, everything)]
    with tempfile.TemporaryDirectory() as scratch:
        commands = {}
        for number, name in enumerate(["", *headers]):
            source = Path(scratch) / f"{number}.cu"
            source.write_text(f"#include <{name}>\n" if name else "", encoding="utf-8")
            flags = ["-gencode", "arch=compute_90a,code=sm_90a", "-I", str(paths.INCLUDE), "-c", str(source), "-o", f"{source}.o"]
            commands[name] = (["nvcc", *flags], lambda: None)
        cpu = {name: cpus for name, (_, cpus) in _in_turn(commands).items()}
    # Round by round: the speed of a shared machine changes between rounds more than within one.
    ratio = {name: statistics.median(ours / empty for ours, empty in zip(cpu[name], cpu[""], strict=True)) for name in headers}
    worst = max(headers[:-1], key=lambda name: ratio[name])
    print(f"{'empty .cu file, CPU time':<58}{statistics.median(cpu['']) * 1e3:>7.0f} ms")
    print(f"{'#include of the dearest: ' + worst:<58}{ratio[worst]:>8.2f}x   1.15x")
    print(f"{'#include of all headers':<58}{ratio[headers[-1]]:>8.2f}x   3.4x")
    size = sum(path.stat().st_size for path in paths.INCLUDE.rglob("*") if path.is_file())
    print(f"{'size of all headers':<58}{size / 1e6:>7.2f} MB  6 MB")


if __name__ == "__main__":
    main()
