"""The stages in their order, the outputs in parallel."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.build import build
from ptxmma.generator.derive import derive
from ptxmma.generator.emit import EMITTERS, Emitter, EmitterError, Output, check_apart, emit
from ptxmma.generator.load import examine
from ptxmma.generator.problems import SpecError
from ptxmma.generator.proven import attach
from ptxmma.generator.spec_rules import check_entries
from ptxmma.generator.write import Change, compare

_Answer = TypeVar("_Answer")

#: Folders that contain generated files only.
_GENERATED = "generated"


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Leave memory to reference counts: nearly everything stays in use, and a search for garbage takes a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_uncollected()
def read(spec: Path, overlay: Path | None = None) -> Catalog:
    """Load, build, check, derive and prove a spec; its ``evidence/`` is read on first use.

    Raises:
        SpecError: every problem of the documents and every violation of a rule that the valid documents allow to check; without these,
            every problem of the formulas.
    """
    catalog, checks = unproven(spec, overlay)
    for check in checks:
        check()
    return catalog


@_uncollected()
def unproven(spec: Path, overlay: Path | None = None) -> tuple[Catalog, list[Callable[[], None]]]:
    """Return what :func:`read` returns, and the checks that it would make last; :func:`changes` makes them beside the outputs."""
    loaded = examine(spec, overlay)
    try:
        model, positions = build(loaded.documents, loaded.incomplete)
        checks = check_entries(model, positions, loaded.incomplete)
        for check in checks if loaded.problems else ():
            check()
    except SpecError as error:
        raise SpecError([*loaded.problems, *error.problems]) from None
    if loaded.problems:
        raise SpecError(loaded.problems)
    try:
        derived = derive(model, positions)
    except Exception:
        for check in checks:  # their error comes first: it may be the cause
            check()
        raise
    catalog = Catalog(derived.database)
    attach(catalog, spec / "evidence")
    return catalog, [*checks, derived.prove]


@_uncollected()
def changes(
    catalog: Catalog,
    out: Path,
    only: Sequence[str] = (),
    others: Mapping[str, Emitter] = MappingProxyType({}),
    checks: Sequence[Callable[[], None]] = (),
) -> list[Change]:
    """Return the changes below ``out`` that make it match the outputs of the spec.

    Args:
        catalog: the database of the spec.
        out: the output directory.
        only: the names of our outputs to make.
        others: the emitters of other packages to run.  Without these and without names, every output is made that is not on request.
        checks: the last checks of a database that is unproven, see :func:`unproven`.

    Raises:
        SpecError: a check fails.
        EmitterError: the checks succeed, and an emitter fails.
    """
    ours = {folder for emitter in EMITTERS.values() for folder in emitter.folders}
    check_apart(others, {_GENERATED, *ours})
    at_home = (out / "spec" / "schema").resolve() == paths.SCHEMAS.resolve()
    usual = [name for name, emitter in EMITTERS.items() if not emitter.on_request and (at_home or not emitter.of_the_generator)]
    names = [*only] if only or others else usual
    chosen = {name: EMITTERS[name] for name in names} | dict(others)
    folders = {folder for emitter in chosen.values() for folder in emitter.folders}
    # A folder that two outputs share is swept only when both are made.
    folders -= {folder for name, emitter in EMITTERS.items() if name not in chosen for folder in emitter.folders}
    if names is usual:  # with the files of an output that is listed no more
        folders = {_GENERATED, *(folder for folder in folders if not folder.startswith(f"{_GENERATED}/"))}
    tasks = [functools.partial(_checked, check) for check in checks]  # the first: no emitter's error hides that the spec is wrong
    tasks += [functools.partial(emit, catalog, *each) for each in chosen.items()]
    try:
        made = in_parallel(tasks)
    except BrokenExecutor:
        raise EmitterError(f"a process that made one of {', '.join(chosen)} was ended; the memory may not suffice") from None
    return compare(itertools.chain.from_iterable(made), out, sorted(folders))


def _checked(check: Callable[[], None]) -> list[Output]:
    """Make a check, which gives no files."""
    check()
    return []


# --- parallel processes ------------------------------------------------------------------------------------------------------


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
