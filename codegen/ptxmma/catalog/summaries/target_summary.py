"""The abilities of a target: its families of instructions, the families that it lacks, and the ones that do the same there."""

from __future__ import annotations

from typing import TypedDict

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.products import resolution
from ptxmma.model import InstructionSet, Version


class TargetFamily(TypedDict):
    """The instructions of a family that a target accepts."""

    family: str
    instructions: int
    ptx: Version
    types: list[str]


class LackedFamily(TypedDict):
    """A family that a target lacks."""

    family: str
    instead: list[str]


class TargetSummary(TypedDict):
    """The abilities of a target."""

    target: str
    gpus: list[str]
    ptx: str
    cuda: str
    driver: str
    until: str
    shared_memory: int | None
    features_of: list[str]
    families: list[TargetFamily]
    lacks: list[LackedFamily]


def summary(catalog: Catalog, name: str) -> TargetSummary:
    """A target in short.

    ``families`` has an entry for each family of which the target accepts an instruction: how many, since which PTX ISA version, and the
    types of A of its products.  ``lacks`` has the other families; products have the families with which the target multiplies instead.
    """
    spec = catalog.database.spec
    target = next(entry for entry in spec.targets if entry.name == name)
    plain = name.rstrip("af")
    accepted: dict[str, list[tuple[Instruction, Version]]] = {}
    for each in catalog.all():
        if first := requirements.accepted_by(spec, each.variant).get(name):
            accepted.setdefault(each.family, []).append((each, first))
    release = next((entry for entry in spec.isa_versions if Version(entry.version) >= Version(target.ptx)), None)
    families = dict.fromkeys(entry.family for entry in spec.instructions)
    products = {entry.family: entry.sparse for entry in spec.instructions if _multiplies(entry)}
    return {
        "target": name,
        "gpus": [product for gpu in spec.gpus if gpu.target.rstrip("af") == plain for product in gpu.names],
        "ptx": target.ptx,
        "cuda": release.cuda if release else "",
        "driver": release.driver if release else "",
        "until": target.until,
        "shared_memory": next((each.block for each in spec.capacities if plain in each.targets), None),
        "features_of": [each.name for each in spec.targets if each.name in target.includes],
        "families": [
            {
                "family": family,
                "instructions": len(members),
                "ptx": min(first for _, first in members),
                "types": list(dict.fromkeys(type for each, _ in members for type in _types_of_a(each))),
            }
            for family, members in sorted(accepted.items())
        ],
        "lacks": [
            {
                "family": family,
                "instead": [other for other in sorted(accepted) if other in products and products[other] == products.get(family)],
            }
            for family in sorted(families.keys() - accepted.keys())
        ],
    }


def _multiplies(entry: InstructionSet) -> bool:
    return entry.operation.endswith("multiply")


def _types_of_a(instruction: Instruction) -> list[str]:
    """The element types of A that a product has, or that its descriptor may choose."""
    if not _multiplies(instruction.variant.instruction):
        return []
    chosen = resolution.types(instruction.database.spec, instruction.variant).get("atype", set())
    return [instruction.matrix_types["a"]] if "a" in instruction.matrix_types else sorted(chosen)
