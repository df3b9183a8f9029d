"""Times attention_sm90 against PyTorch's backends, in turn and in random order; prints a table with commas.

The first argument is the library that nvcc makes of ``bench_attention_sm90.cu``, the second the number of rounds.
"""

from __future__ import annotations

import ctypes
import math
import random
import statistics
import sys
from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_TOKENS, _HEADS, _HEAD = 16384, 16, 128
_BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    for name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
        for causal in (False, True):
            ratios = []
            for rows in (4096, 16384):
                times, clock = _measure(library, name, dtype, causal, rows, rounds)
                work = 4 * _TOKENS * rows * _HEADS * _HEAD / (2 if causal else 1)
                speeds = [work / times[one] * 1e-12 for one in ("ours", "flash", "cuDNN")]
                ratios.append([speeds[0] / other for other in speeds[1:]])
                label = f"{name}{' causal' if causal else ''}"
                numbers = [*(f"{speed:.0f}" for speed in speeds), *(f"{ratio:.3f}" for ratio in ratios[-1]), f"{clock:.0f}"]
                print("attention_sm90", label, f"{rows} rows", *numbers, sep=",", flush=True)
            means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)]
            print("attention_sm90", label, "geometric mean", "", "", "", *(f"{mean:.3f}" for mean in means), "", sep=",", flush=True)


def _measure(library: ctypes.CDLL, name: str, dtype: torch.dtype, causal: bool, rows: int, rounds: int) -> tuple[dict[str, float], float]:
    """Median seconds of each implementation, and the clock in MHz while ours runs."""
    batch = _TOKENS // rows
    q, k, v = (torch.randn(batch, rows, _HEADS, _HEAD, device="cuda", dtype=dtype) for _ in range(3))
    ours = torch.empty_like(q)
    counter = torch.zeros(1, device="cuda", dtype=torch.int32)
    function = getattr(library, f"{name}_{'causal' if causal else 'all'}")
    function.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p] * 6
    turned_q, turned_k, turned_v = (one.transpose(1, 2) for one in (q, k, v))

    def run() -> None:
        pointers = [one.data_ptr() for one in (q, k, v, ours, counter)]
        if status := function(batch, _HEADS, rows, *pointers, torch.cuda.current_stream().cuda_stream):
            raise RuntimeError(f"CUDA error {status}")

    def torch_run(backend: SDPBackend) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(turned_q, turned_k, turned_v, is_causal=causal)

        return run

    candidates: dict[str, Callable[[], object]] = {"ours": run}
    for other, backend in _BACKENDS.items():
        candidates[other] = torch_run(backend)
    run()
    for other in _BACKENDS:
        theirs = candidates[other]()
        assert isinstance(theirs, torch.Tensor)
        difference = (theirs.transpose(1, 2).float() - ours.float()).abs().max().item()
        assert difference < 0.05, f"{other}: differs by {difference}"

    def time(candidate: Callable[[], object], launches: int) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        for _ in range(launches):
            candidate()
        stop.record()
        stop.synchronize()
        return float(start.elapsed_time(stop)) * 1e-3 / launches

    launches = {one: max(1, math.ceil(5e-3 / time(candidate, 2))) for one, candidate in candidates.items()}
    times: dict[str, list[float]] = {one: [] for one in candidates}
    clocks = []
    order = list(candidates)
    for _ in range(rounds):
        random.shuffle(order)
        for one in order:
            time(candidates[one], launches[one])  # brings the clock to where this candidate's power leaves it
            times[one].append(time(candidates[one], launches[one]))
            if one == "ours":
                run()
                clocks.append(torch.cuda.clock_rate())  # while that runs
    return {one: statistics.median(taken) for one, taken in times.items()}, statistics.median(clocks)


if __name__ == "__main__":
    main()
