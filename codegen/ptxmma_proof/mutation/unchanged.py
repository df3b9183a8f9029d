"""The parts of a spec that a mutant leaves alone: what depends on no other part need not be compared again."""

from __future__ import annotations

from ptxmma.model import Spec


def parts(spec: Spec, *without: str) -> tuple[object, ...]:
    """All parts of a spec but the named ones, to compare with another spec's."""
    return tuple(getattr(spec, name) for name in spec.__struct_fields__ if name not in without)
