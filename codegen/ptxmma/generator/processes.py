"""Tasks in parallel processes that share what this one has read."""

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

#: The tasks of a process that :func:`in_parallel` started.
_tasks: Sequence[Callable[[], Any]]


def in_parallel(tasks: Sequence[Callable[[], _Answer]]) -> list[_Answer]:
    """Return the answer of each task, in their order; the first error in this order is raised.

    The processes are forks, which have what this one has read, and send pickled answers back.  With one processor, and on systems where a
    fork is not safe, the tasks run here, one after the other.
    """
    count = min(len(tasks), len(os.sched_getaffinity(0))) if sys.platform == "linux" else 1
    if count < 2:
        return [task() for task in tasks]
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings(), ProcessPoolExecutor(count, context, _start, (tasks,)) as pool:
        # Python 3.12 warns of forks beside threads; these are NumPy's, which wait for work and hold no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        return [*pool.map(_run, range(len(tasks)))]


def _start(tasks: Sequence[Callable[[], Any]]) -> None:
    global _tasks
    _tasks = tasks
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its processes
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _run(number: int) -> Any:
    return _tasks[number]()
