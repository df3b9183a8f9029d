"""The stages in their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import evidence
from ptxmma.generator.build import build
from ptxmma.generator.derive import derive
from ptxmma.generator.emit import EMITTERS, OWNED, emit
from ptxmma.generator.load import load
from ptxmma.generator.rules import check
from ptxmma.generator.write import Change, compare


def read(spec: Path, overlay: Path | None = None) -> Catalog:
    """Load, build, check and derive a spec, and read what stands behind it.

    Raises:
        SpecError: with every problem that the first failing stage found.
        ValueError: a report in ``spec/evidence/`` that is none.
    """
    model, positions = build(load(spec, overlay))
    check(model, positions)
    catalog = Catalog(derive(model, positions))
    evidence.attach(catalog, spec / "evidence")
    return catalog


def changes(catalog: Catalog, out: Path, only: Sequence[str] = ()) -> list[Change]:
    """What has to change below ``out`` so that it holds exactly what the spec makes."""
    names = list(only) or list(EMITTERS)
    folders = {folder for name in names for folder in OWNED[name]}
    # A folder that two outputs share is swept only when both are made.
    shared = {folder for name, owned in OWNED.items() if name not in names for folder in owned}
    return compare(emit(catalog, names), out, sorted(folders - shared))
