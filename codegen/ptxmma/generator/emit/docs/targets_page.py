"""The page of targets and PTX ISA versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptxmma.generator.emit.docs import family, rest, struct_tables
from ptxmma.model import Spec, Version


def page(spec: Spec, forms: Mapping[str, Sequence[family.Row]]) -> dict[str, Any]:
    """What the page shows; ``forms`` are the :func:`family.rows` of each instruction."""
    cuda = {version.version: version.cuda for version in spec.isa_versions}
    accepted: dict[str, dict[str, Version]] = {entry.family: {} for entry in spec.instructions}
    for entry in spec.instructions:
        first = accepted[entry.family]
        for row in forms[entry.name]:
            for target, version in row.accepted.items():
                first[target] = min(first.get(target, version), version)
    return {
        "targets": struct_tables.table(
            spec.targets,
            titles={
                "name": "Target",
                "ptx": "First PTX ISA",
                "until": "Last CUDA",
                "releases": "Releases that differ",
                "cuda": "First CUDA",
            },
            cells={"cuda": lambda target: rest.text(cuda.get(target.ptx, ""))},
            code=("name",),
        ),
        "versions": struct_tables.table(
            spec.isa_versions,
            titles={"version": "PTX ISA", "new": "New targets"},
            cells={"new": lambda version: rest.codes(target.name for target in spec.targets if target.ptx == version.version)},
        ),
        "matrix": family.matrix(spec, {rest.link(name, rest.label("family", name)): first for name, first in accepted.items()}, "Family"),
    }
