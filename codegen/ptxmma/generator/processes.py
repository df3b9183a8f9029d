"""Calls in parallel processes that share what this one has read."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")

#: The call of a process that :func:`in_parallel` started.
_call: Callable[[Any], Any]


def in_parallel(call: Callable[[str], _Answer], names: Sequence[str]) -> list[_Answer]:
    """Return the answer of a call for each name, in their order; the first error is raised.

    The processes are forks, which have what this one has read, and send pickled answers back.  With one processor, and on systems where a
    fork is not safe, the calls run here, one after the other.
    """
    count = min(len(names), len(os.sched_getaffinity(0))) if sys.platform == "linux" else 1
    if count < 2:
        return [call(name) for name in names]
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings(), ProcessPoolExecutor(count, context, _start, (call,)) as pool:
        # Python 3.12 warns of forks beside threads; these are NumPy's, which wait for work and hold no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        return [*pool.map(_run, names)]


def _start(call: Callable[[Any], Any]) -> None:
    global _call
    _call = call
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its processes
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _run(name: str) -> Any:
    return _call(name)
