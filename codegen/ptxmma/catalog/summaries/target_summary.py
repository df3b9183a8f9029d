"""The abilities of a target: its families of instructions, the ones that it lacks, and what does the same there; two targets compared."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TypedDict

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.products import resolution
from ptxmma.model import InstructionSet, Spec, Version


class TargetFamily(TypedDict):
    """The instructions of a family that a target accepts."""

    family: str
    instructions: int
    ptx: Version
    types: list[str]


class LackedFamily(TypedDict):
    """A family that a target lacks, and the families that it has for the same work."""

    family: str
    instead: list[str]


class TargetFacts(TypedDict):
    """The first versions of a target, its products and its shared memory."""

    target: str
    gpus: list[str]
    ptx: str
    cuda: str
    driver: str
    until: str
    shared_memory: int | None
    features_of: list[str]


class TargetSummary(TargetFacts):
    """The abilities of a target."""

    families: list[TargetFamily]
    lacks: list[LackedFamily]


class TargetComparison(TypedDict):
    """Two targets: the instructions that both accept, and the ones that only one of them accepts."""

    targets: list[TargetFacts]
    both: int
    only: dict[str, list[TargetFamily]]


def summary(catalog: Catalog, name: str) -> TargetSummary:
    """A target in short.

    ``families`` has an entry for each family of which the target accepts an instruction: how many, since which PTX ISA version, and the
    types of A of its products.  ``lacks`` has the other families, with the ones that multiply or copy in their place.
    """
    families = _families(_accepted(catalog, name))
    return {
        **_facts(catalog.database.spec, name),
        "families": families,
        "lacks": _lacked(catalog, {each["family"] for each in families}),
    }


def comparison(catalog: Catalog, one: str, other: str) -> TargetComparison:
    """Two targets, and what only one of them has."""
    known = {name: _accepted(catalog, name) for name in (one, other)}
    both = known[one].keys() & known[other].keys()
    only = {name: {each: first for each, first in accepted.items() if each not in both} for name, accepted in known.items()}
    return {
        "targets": [_facts(catalog.database.spec, name) for name in known],
        "both": len(both),
        "only": {name: _families(accepted) for name, accepted in only.items()},
    }


def _facts(spec: Spec, name: str) -> TargetFacts:
    target = next(entry for entry in spec.targets if entry.name == name)
    plain = name.rstrip("af")
    release = next((entry for entry in spec.isa_versions if Version(entry.version) >= Version(target.ptx)), None)
    return {
        "target": name,
        "gpus": [product for gpu in spec.gpus if gpu.target.rstrip("af") == plain for product in gpu.names],
        "ptx": target.ptx,
        "cuda": release.cuda if release else "",
        "driver": release.driver if release else "",
        "until": target.until,
        "shared_memory": next((each.block for each in spec.capacities if plain in each.targets), None),
        "features_of": [each.name for each in spec.targets if each.name in target.includes],
    }


def _accepted(catalog: Catalog, name: str) -> dict[Instruction, Version]:
    """The instructions that a target accepts, each with the first PTX ISA version."""
    spec = catalog.database.spec
    every = ((each, requirements.accepted_by(spec, each.variant).get(name)) for each in catalog.all())
    return {each: first for each, first in every if first}


def _families(accepted: Mapping[Instruction, Version]) -> list[TargetFamily]:
    members: dict[str, list[Instruction]] = {}
    for each in accepted:
        members.setdefault(each.family, []).append(each)
    return [
        {
            "family": family,
            "instructions": len(own),
            "ptx": min(accepted[each] for each in own),
            "types": list(dict.fromkeys(type for each in own for type in _types_of_a(each))),
        }
        for family, own in sorted(members.items())
    ]


def _lacked(catalog: Catalog, accepted: Set[str]) -> list[LackedFamily]:
    """The families that are not accepted, each with the accepted ones that do the same: a sparse product also with the dense ones alone."""
    works: dict[str, set[tuple[str, bool]]] = {}
    for entry in catalog.database.spec.instructions:
        works.setdefault(entry.family, set()).update(_works(entry))

    def instead(family: str) -> list[str]:
        dense = {(work, False) for work, _ in works[family]}
        same = [other for other in sorted(accepted) if works[other] & works[family]]
        return same or [other for other in sorted(accepted) if works[other] & dense]

    return [{"family": family, "instead": instead(family)} for family in sorted(works.keys() - accepted)]


def _works(entry: InstructionSet) -> list[tuple[str, bool]]:
    """Work that others do in other ways, and whether it is on a sparse matrix: to multiply, or to copy asynchronously."""
    works = ["multiply"] * _multiplies(entry) + ["copy"] * (entry.asynchronous and entry.operation.startswith("copy"))
    return [(work, entry.sparse) for work in works]


def _multiplies(entry: InstructionSet) -> bool:
    return entry.operation.endswith("multiply")


def _types_of_a(instruction: Instruction) -> list[str]:
    """The element types of A that a product has, or that its descriptor may choose."""
    if not _multiplies(instruction.variant.instruction):
        return []
    chosen = resolution.types(instruction.database.spec, instruction.variant).get("atype", set())
    return [instruction.matrix_types["a"]] if "a" in instruction.matrix_types else sorted(chosen)
