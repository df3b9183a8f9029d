"""The element types that people mean: by their names, and by those of groups of the same width."""

from __future__ import annotations

from ptxmma.arguments import one_of
from ptxmma.model import Spec


def type_groups(spec: Spec) -> dict[str, list[str]]:
    """The element types by their names and by those of groups: ``fp8``, ``int4``."""
    groups: dict[str, list[str]] = {}
    for entry in spec.types.elements:
        groups[entry.name] = [entry.name]
        kind = {"float": "fp" if entry.sign else "", "signed": "int", "unsigned": "int"}.get(entry.form)
        if kind:
            groups.setdefault(f"{kind}{entry.bits}", []).append(entry.name)
    return groups


def types_named(spec: Spec, name: str) -> tuple[str, ...]:
    """The element types that a name selects: one type, or for ``fp8``, ``fp4``, ``int8`` … all signed floats or integers of that width.

    Raises:
        ValueError: an unknown type; the message names the closest.
    """
    groups = type_groups(spec)
    one_of("element type", name, groups)
    return tuple(groups[name])
