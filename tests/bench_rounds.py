"""What the benchmarks of functions share: timing them in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def in_turn(functions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each function, round by round; the first round warms up and does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for counted in [False] + [True] * rounds:
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if counted:
                seconds[name].append(time.perf_counter() - start)
    return seconds
