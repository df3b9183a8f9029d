"""Chips and the forms that they take: a row for each chip generation, its targets and the products that people know."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.generator.emit.docs import rest
from ptxmma.model import Gpu, Spec, Target, Version

#: Products that a row names.
_FEW = 4


def by_number(spec: Spec) -> dict[int, list[Target]]:
    """The targets of each chip: the plain one and those with a suffix."""
    numbers: dict[int, list[Target]] = {}
    for target in spec.targets:
        numbers.setdefault(target.number, []).append(target)
    return numbers


def table(spec: Spec, accepted: Mapping[str, Mapping[str, Version]]) -> str:
    """The first PTX ISA version of each column on each chip that takes anything.

    ``accepted`` has the versions by target for each heading.
    """
    rows = []
    for targets in by_number(spec).values():
        cells = [_first(targets, versions) for versions in accepted.values()]
        if any(cells):
            gpus = [gpu for gpu in spec.gpus if gpu.target in [target.name for target in targets]]
            shown = rest.link(targets[0].name, rest.label("target", targets[0].name))
            rows.append([shown, _products(gpus), *(cell or rest.NOTHING for cell in cells)])
    return rest.table(["Target", "Chips", *accepted], rows, kind="targets")


def _first(targets: list[Target], versions: Mapping[str, Version]) -> str:
    """The first version on a plain target; else those with a suffix: ``8.7 a, 8.8 f``."""
    plain = next((versions[target.name] for target in targets if not target.suffix and target.name in versions), None)
    if plain is not None:
        return str(plain)
    special = sorted((versions[target.name], target.suffix) for target in targets if target.name in versions)
    return ", ".join(f"{version}{rest.SPACE}{suffix}" for version, suffix in special)


def _products(gpus: list[Gpu]) -> str:
    """``Hopper: H100, H200, GH200``."""
    names = [name for gpu in gpus for name in gpu.names]
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return rest.text(f"{gpus[0].architecture}: {', '.join(names[:_FEW])}{more}") if gpus else ""
