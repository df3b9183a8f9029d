"""Times attention_sm90 against PyTorch's backends, in turn and in random order; prints a table with commas.

The first argument is the library that nvcc makes of ``bench_attention_sm90.cu``, the second the number of sustained rounds.
"""

from __future__ import annotations

import ctypes
import math
import random
import statistics
import sys
from collections.abc import Callable, Mapping
from time import sleep

import pynvml
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_TOKENS, _WIDTH = 16384, 2048  # elements of all heads
#: Types and elements of a head.
_KINDS = (("bf16", torch.bfloat16, 128), ("f16", torch.float16, 128), ("bf16", torch.bfloat16, 64))
#: FlashAttention-2 is what PyTorch calls flash.
_BACKENDS = {"FlashAttention-2": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
_ROWS = (512, 1024, 4096, 16384)
#: Seconds of each candidate in a round, as ``timing.cuh`` has them.
_WAYS = {"short": 5e-3, "sustained": 250e-3}


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    pynvml.nvmlInit()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for name, dtype, head in _KINDS:
        for causal in (False, True):
            label = f"{name}{' 64' if head == 64 else ''}{' causal' if causal else ''}"
            ratios: dict[str, list[list[float]]] = {way: [] for way in _WAYS}
            for rows in _ROWS:
                work = 4 * _TOKENS * rows * _WIDTH / (2 if causal else 1)
                candidates = _candidates(library, name, dtype, head, causal, rows)
                for way, seconds in _WAYS.items():
                    times, ours, best = _measure(candidates, seconds, rounds if way == "sustained" else 5 * rounds)
                    speeds = [work / times[one] * 1e-12 for one in ("ours", *_BACKENDS)]
                    ratios[way].append([speeds[0] / other for other in speeds[1:]])
                    numbers = [*(f"{speed:.0f}" for speed in speeds), *(f"{ratio:.3f}" for ratio in ratios[way][-1]), *ours, *best]
                    print("attention_sm90", label, f"{rows} rows", way, *numbers, sep=",", flush=True)
            for way, columns in ratios.items():
                means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*columns, strict=True)]
                print(f"attention_sm90,{label},geometric mean,{way},,,,{','.join(f'{mean:.3f}' for mean in means)},,,,", flush=True)


def _candidates(library: ctypes.CDLL, name: str, dtype: torch.dtype, head: int, causal: bool, rows: int) -> dict[str, Callable[[], object]]:
    """Ours and PyTorch's, on the same tensors; their results agree."""
    batch, heads = _TOKENS // rows, _WIDTH // head
    q, k, v = (torch.randn(batch, rows, heads, head, device="cuda", dtype=dtype) for _ in range(3))
    ours = torch.empty_like(q)
    counter = torch.zeros(1, device="cuda", dtype=torch.int32)
    function = getattr(library, f"{name}_{'causal' if causal else 'all'}_{head}")
    function.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p] * 6
    turned_q, turned_k, turned_v = (one.transpose(1, 2) for one in (q, k, v))

    def run() -> None:
        pointers = [one.data_ptr() for one in (q, k, v, ours, counter)]
        if status := function(batch, heads, rows, *pointers, torch.cuda.current_stream().cuda_stream):
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

    return candidates


def _watts() -> float:
    """The board's power at this moment, not the mean of the last second."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())
    return float(pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_POWER_INSTANT])[0].value.uiVal) / 1000


def _measure(
    candidates: Mapping[str, Callable[[], object]], seconds: float, rounds: int
) -> tuple[dict[str, float], tuple[str, str], tuple[str, str]]:
    """Return the median seconds of each, and clock (MHz) and power (W) while ours runs and while the best of the others does."""

    def time(one: str, launches: int, read: bool = False) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        for _ in range(launches):
            candidates[one]()
        stop.record()
        while read and not stop.query():  # type: ignore[no-untyped-call]
            clocks[one].append(torch.cuda.clock_rate())
            watts[one].append(_watts())
            sleep(0.01)
        stop.synchronize()
        return float(start.elapsed_time(stop)) * 1e-3 / launches

    times, clocks, watts = ({one: list[float]() for one in candidates} for _ in range(3))
    launches = {one: max(1, math.ceil(seconds / time(one, 2))) for one in candidates}
    order = list(candidates)
    for _ in range(rounds):
        random.shuffle(order)
        for one in order:
            time(one, launches[one])  # brings the clock to where this candidate's power leaves it
            times[one].append(time(one, launches[one], read=True))
    medians = {one: statistics.median(taken) for one, taken in times.items()}
    best = min(_BACKENDS, key=lambda one: medians[one])
    ours, theirs = ((f"{statistics.median(clocks[one]):.0f}", f"{statistics.median(watts[one]):.0f}") for one in ("ours", best))
    return medians, ours, theirs


if __name__ == "__main__":
    main()
