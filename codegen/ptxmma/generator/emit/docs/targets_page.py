"""The page of targets and PTX ISA versions: chips by the names of products, with all of their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptxmma.generator.emit.docs import family, form_targets, rest, struct_tables
from ptxmma.model import Spec, Target, Version


def page(spec: Spec, forms: Mapping[str, Sequence[family.Row]]) -> dict[str, Any]:
    """The values for the page's template; ``forms`` are the :func:`family.rows` of each instruction."""
    accepted: dict[str, dict[str, Version]] = {entry.family: {} for entry in spec.instructions}
    for entry in spec.instructions:
        first = accepted[entry.family]
        for row in forms[entry.name]:
            for target, version in row.accepted.items():
                first[target] = min(first.get(target, version), version)
    return {
        "chips": [_chip(spec, targets) for targets in form_targets.by_number(spec).values()],
        "versions": struct_tables.table(
            spec.isa_versions,
            titles={"version": "PTX ISA", "new": "New targets"},
            cells={"new": lambda version: rest.codes(target.name for target in spec.targets if target.ptx == version.version)},
        ),
        "matrix": form_targets.table(spec, {rest.link(name, rest.label("family", name)): first for name, first in accepted.items()}),
    }


def _chip(spec: Spec, targets: Sequence[Target]) -> dict[str, Any]:
    """A chip: its targets, and the products with it."""
    cuda = {version.version: version.cuda for version in spec.isa_versions}
    gpus = [gpu for gpu in spec.gpus if gpu.target in [target.name for target in targets]]
    names = [name for gpu in gpus for name in gpu.names]
    plain = targets[0].name
    return {
        "title": ", ".join(dict.fromkeys(gpu.architecture for gpu in gpus)) + f": {plain}" if gpus else plain,
        "labels": [rest.label("target", target.name) for target in targets] + [rest.label("gpu", name) for name in names],
        "names": rest.text(", ".join(names)),
        "compile": rest.codes(dict.fromkeys(gpu.target for gpu in gpus)),
        "targets": struct_tables.table(
            targets,
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
    }
