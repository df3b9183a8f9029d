"""The claims of the database about the assembler of one CUDA release: the targets it knows, and the versions in which it accepts them."""

from __future__ import annotations

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.model import Spec, Target, Version


def known_to(spec: Spec, cuda: str) -> set[str]:
    """The targets that the assembler of a CUDA release knows: from the release that introduced their version to their last one."""
    brought = {entry.version: entry.cuda for entry in spec.isa_versions}
    release = Version(cuda)
    return {target.name for target in spec.targets if release >= brought[target.ptx] and (not target.until or release <= target.until)}


def first_module(target: Target, cuda: str) -> str:
    """The first version in which the assembler of a CUDA release accepts a module for a target."""
    return next((floor.ptx for floor in target.ptx_in if floor.cuda == cuda), target.ptx)


def first_by(instruction: Instruction, form: OperandForm, cuda: str) -> dict[str, Version]:
    """The targets that accept an instruction in a form, each with the first version in which the assembler of a CUDA release does."""
    more = instruction.needs(form)
    accepted = dict(requirements.accepted_by(instruction.database.spec, instruction.variant, cuda, more))
    floor = requirements.floor(instruction.variant, cuda, more)
    for target in instruction.database.spec.targets:
        for release in target.ptx_in:
            if release.cuda == cuda and target.name in accepted:
                accepted[target.name] = max(floor, Version(release.ptx))
    return accepted
