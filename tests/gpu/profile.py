"""Joins what Nsight Compute saw with the sizes that the benchmarks printed, for ``profile.sh``; the arguments are the kernels."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

#: A launch of an example kernel; a product of a library may be several launches.
_OURS = re.compile(r"_sm[89]0::kernel")
_CYCLES = "sm__cycles_elapsed.max"
_BUSY = ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed")
_SECTORS = ("lts__t_sectors.sum", "dram__sectors.sum")
_SECTOR = 32  # bytes


def main() -> None:
    of_each = ("thousand cycles", "tensor cores busy (%)", "L2 busy (%)", "MB through L2", "MB of memory")
    print("kernel", "types", "size", *of_each, *(f"{name} of their best" for name in of_each), sep=",")
    for kernel in sys.argv[1:]:
        stem = Path("build") / f"profile_{kernel}"
        sizes = stem.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
        seen = stem.with_suffix(".csv").read_text(encoding="utf-8").splitlines()
        pairs: list[tuple[list[dict[str, str]], list[dict[str, str]]]] = []  # of ours, and of theirs
        for launch in csv.DictReader(line for line in seen if line.startswith('"')):
            if not launch["ID"]:
                continue  # the units
            if _OURS.search(launch["Kernel Name"]):
                pairs.append(([launch], []))
            else:
                pairs[-1][1].append(launch)
        for size, pair in zip(sizes, pairs, strict=True):
            print(size, *(figure for launches in pair for figure in _figures(launches)), sep=",")


def _figures(launches: list[dict[str, str]]) -> list[str]:
    """Return the sums of some launches; the shares are of all their cycles."""
    cycles = [_number(launch[_CYCLES]) for launch in launches]
    busy = (sum(_number(launch[share]) * count for launch, count in zip(launches, cycles, strict=True)) / sum(cycles) for share in _BUSY)
    megabytes = (sum(_number(launch[sectors]) for launch in launches) * _SECTOR * 1e-6 for sectors in _SECTORS)
    return [f"{sum(cycles) / 1000:.1f}", *(f"{share:.0f}" for share in busy), *(f"{size:.0f}" for size in megabytes)]


def _number(text: str) -> float:
    return float(text.replace(",", ""))


if __name__ == "__main__":
    main()
