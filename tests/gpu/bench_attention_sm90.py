"""Times attention_sm90 against PyTorch's backends, in turn and in random order; prints a table with commas.

The arguments are the library that nvcc makes of ``bench_attention_sm90.cu``, that of ``cutlass_fmha.cu`` or a dash, and the two of the
other benchmarks (``Options`` in ``bench.cuh``).
"""

from __future__ import annotations

import ctypes
import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import NamedTuple

import pynvml
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_TOKENS, _WIDTH = 16384, 2048  # elements of all heads


class _Kind(NamedTuple):
    name: str
    dtype: torch.dtype
    head: int  # elements


_KINDS = (
    _Kind("bf16", torch.bfloat16, 128),
    _Kind("f16", torch.float16, 128),
    _Kind("bf16", torch.bfloat16, 64),
    _Kind("f16", torch.float16, 64),
)
#: FlashAttention-2 is what PyTorch calls flash.
_BACKENDS = {"FlashAttention-2": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
_ROWS = (512, 1024, 4096, 16384)
#: Seconds of each candidate in a round, as ``timing.cuh`` has them.
_WAYS = {"short": 5e-3, "sustained": 250e-3}


#: The attention of CUTLASS's example 88, which takes f16.
_CUTLASS = "CUTLASS"


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    cutlass = ctypes.CDLL(sys.argv[2]) if sys.argv[2] != "-" else None
    pynvml.nvmlInit()
    rounds, choices = int(sys.argv[3]), Path(sys.argv[4])
    if rounds == 0:
        _profile(library, cutlass, dict(line.rsplit(",", 1) for line in choices.read_text(encoding="utf-8").splitlines()))
        return
    for kind in _KINDS:
        for causal in (False, True):
            label = _label(kind, causal)
            ratios: dict[str, list[list[float]]] = {way: [] for way in _WAYS}
            for rows in _ROWS:
                work = 4 * _TOKENS * rows * _WIDTH / (2 if causal else 1)
                candidates = _candidates(library, cutlass, kind, causal, rows)
                for way, seconds in _WAYS.items():
                    times, loads = _measure(library, candidates, seconds, rounds if way == "sustained" else 5 * rounds)
                    speeds = {one: work / taken * 1e-12 for one, taken in times.items()}
                    ratios[way].append([speeds["ours"] / speeds[other] for other in _BACKENDS])
                    best = max(_BACKENDS, key=lambda one: speeds[one])
                    if way == "sustained":
                        with choices.open("a", encoding="utf-8") as file:
                            file.write(f"attention_sm90,{label},{rows} rows,{best}\n")
                    _print(label, f"{rows} rows", way, [speeds[one] for one in ("ours", *_BACKENDS)], [*loads["ours"], *loads[best]])
                    if _CUTLASS in speeds:
                        compared = [speeds["ours"], speeds[_CUTLASS], speeds[_CUTLASS]]
                        _print(f"{label} and CUTLASS", f"{rows} rows", way, compared, [*loads["ours"], *loads[_CUTLASS]])
            for way, columns in ratios.items():
                means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*columns, strict=True)]
                print(f"attention_sm90,{label},geometric mean,{way},,,,{','.join(f'{mean:.3f}' for mean in means)},,,,", flush=True)


def _label(kind: _Kind, causal: bool) -> str:
    return f"{kind.name}{' 64' if kind.head == 64 else ''}{' causal' if causal else ''}"


def _profile(library: ctypes.CDLL, cutlass: ctypes.CDLL | None, choices: Mapping[str, str]) -> None:
    """Launch ours and the fastest other of each size, for ``profile.sh``."""
    for kind, causal, rows in itertools.product(_KINDS, (False, True), _ROWS):
        line = f"attention_sm90,{_label(kind, causal)},{rows} rows"
        if line in choices:
            candidates = _candidates(library, cutlass, kind, causal, rows)
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            for one in ("ours", choices[line]):
                candidates[one]()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            print(line, flush=True)


def _print(label: str, size: str, way: str, speeds: Sequence[float], loads: Sequence[str]) -> None:
    """Print a line: our speed and two of others, their ratios, and the clocks and powers."""
    ratios = [f"{speeds[0] / other:.3f}" for other in speeds[1:]]
    print("attention_sm90", label, size, way, *(f"{speed:.0f}" for speed in speeds), *ratios, *loads, sep=",", flush=True)


def _candidates(
    library: ctypes.CDLL, cutlass: ctypes.CDLL | None, kind: _Kind, causal: bool, rows: int
) -> dict[str, Callable[[], torch.Tensor]]:
    """Return ours, PyTorch's and CUTLASS's, on the same tensors; their results agree."""
    name, dtype, head = kind
    batch, heads = _TOKENS // rows, _WIDTH // head
    q, k, v = (torch.randn(batch, rows, heads, head, device="cuda", dtype=dtype) for _ in range(3))
    counter = torch.zeros(1, device="cuda", dtype=torch.int32)
    logarithms = torch.empty(batch, heads, rows, device="cuda")
    turned_q, turned_k, turned_v = (one.transpose(1, 2) for one in (q, k, v))

    def run(source: ctypes.CDLL, scratch: torch.Tensor) -> Callable[[], torch.Tensor]:
        function = getattr(source, f"{name}_{'causal' if causal else 'all'}_{head}")
        function.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p] * 6
        out = torch.empty_like(q)

        def run() -> torch.Tensor:
            pointers = [one.data_ptr() for one in (q, k, v, out, scratch)]
            if status := function(batch, heads, rows, *pointers, torch.cuda.current_stream().cuda_stream):
                raise RuntimeError(f"error {status}")
            return out.transpose(1, 2)

        return run

    def torch_run(backend: SDPBackend) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(turned_q, turned_k, turned_v, is_causal=causal)

        return run

    candidates = {"ours": run(library, counter)}
    for other, backend in _BACKENDS.items():
        candidates[other] = torch_run(backend)
    if cutlass is not None and name == "f16":
        candidates[_CUTLASS] = run(cutlass, logarithms)
    ours = candidates["ours"]()
    for other, candidate in candidates.items():
        difference = (candidate().float() - ours.float()).abs().max().item()
        assert difference < 0.05, f"{other}: differs by {difference}"
    return candidates


def _watts() -> float:
    """The board's power at this moment, not the mean of the last second."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())
    return float(pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_POWER_INSTANT])[0].value.uiVal) / 1000


def _measure(
    library: ctypes.CDLL, candidates: Mapping[str, Callable[[], object]], seconds: float, rounds: int
) -> tuple[dict[str, float], dict[str, tuple[str, str]]]:
    """Return the median seconds of each, and its clock (MHz) and power (W)."""
    moments = torch.empty((2, 256, 2), dtype=torch.int64, device="cuda")  # Moment of clock.cuh, of each multiprocessor

    def note(moment: torch.Tensor) -> None:
        library.note_the_moment(ctypes.c_void_p(moment.data_ptr()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))

    def time(one: str, launches: int, read: bool = False) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        if read:
            note(moments[0])
        start.record()
        for _ in range(launches):
            candidates[one]()
        stop.record()
        if read:
            note(moments[1])
        if read:
            watts[one].append(_watts())  # once at least: where the host takes as long for a launch as the chip does, all is done by now
            while not stop.query():  # type: ignore[no-untyped-call]
                sleep(0.01)
                watts[one].append(_watts())
        torch.cuda.synchronize()
        if read:
            counted = (moments[1] - moments[0])[(moments != 0).all(dim=(0, 2))]
            cycles, nanoseconds = counted.sum(dim=0).tolist()
            clocks[one].append(1000 * cycles / nanoseconds)
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
    return medians, {one: (f"{statistics.median(clocks[one]):.0f}", f"{statistics.median(watts[one]):.0f}") for one in candidates}


if __name__ == "__main__":
    main()
