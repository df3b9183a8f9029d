"""What the database says of the assembler of a CUDA release: which targets it knows, and from which version on it takes what."""

from __future__ import annotations

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.requirements import version_key
from ptxmma.model import Spec, Target


def known_to(spec: Spec, cuda: str) -> set[str]:
    """The targets that the assembler of a CUDA release knows: since the release that brought their version, until their last one."""
    brought = {entry.version: entry.cuda for entry in spec.isa_versions}
    release = version_key(cuda)
    return {
        target.name
        for target in spec.targets
        if version_key(brought[target.ptx]) <= release and (not target.until or release <= version_key(target.until))
    }


def first_module(target: Target, cuda: str) -> str:
    """The first version in which the assembler of a CUDA release takes a module for a target."""
    return next((floor.ptx for floor in target.ptx_in if floor.cuda == cuda), target.ptx)


def first_by(instruction: Instruction, cuda: str) -> dict[str, str]:
    """Every target that accepts an instruction, with the first version that does by the assembler of a CUDA release."""
    accepted = instruction.accepted_by()
    floor = requirements.floor(instruction.variant)
    for target in instruction.database.spec.targets:
        for release in target.ptx_in:
            if release.cuda == cuda and target.name in accepted:
                accepted[target.name] = max(floor, release.ptx, key=version_key)
    return accepted
