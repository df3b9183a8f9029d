"""The stages in their order."""

from __future__ import annotations

import contextlib
import gc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from types import MappingProxyType

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.build import build
from ptxmma.generator.derive import derive
from ptxmma.generator.emit import EMITTERS, Emitter, EmitterError, emit
from ptxmma.generator.load import examine
from ptxmma.generator.other_emitters import check_apart
from ptxmma.generator.problems import SpecError
from ptxmma.generator.processes import in_parallel
from ptxmma.generator.proven import attach
from ptxmma.generator.spec_rules import check
from ptxmma.generator.write import Change, compare

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
    """Load, build, check and derive a spec; its ``evidence/`` is read on first use.

    Raises:
        SpecError: every problem of the documents and every violation of a rule that the valid documents allow to check; without these,
            every problem of the formulas.
    """
    loaded = examine(spec, overlay)
    try:
        model, positions = build(loaded.documents, loaded.incomplete)
        check(model, positions, loaded.incomplete)
    except SpecError as error:
        raise SpecError([*loaded.problems, *error.problems]) from None
    if loaded.problems:
        raise SpecError(loaded.problems)
    catalog = Catalog(derive(model, positions))
    attach(catalog, spec / "evidence")
    return catalog


@_uncollected()
def changes(catalog: Catalog, out: Path, only: Sequence[str] = (), others: Mapping[str, Emitter] = MappingProxyType({})) -> list[Change]:
    """Return the changes below ``out`` that make it match the outputs of the spec.

    Args:
        catalog: the database of the spec.
        out: the output directory.
        only: the names of our outputs to make.
        others: the emitters of other packages to run.  Without these and without names, every output is made that is not on request.

    Raises:
        EmitterError: an emitter fails.
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
    try:
        made = in_parallel(lambda name: emit(catalog, name, chosen[name]), [*chosen])
    except BrokenExecutor:
        raise EmitterError(f"a process that made one of {', '.join(chosen)} was ended; the memory may not suffice") from None
    return compare(itertools.chain.from_iterable(made), out, sorted(folders))
