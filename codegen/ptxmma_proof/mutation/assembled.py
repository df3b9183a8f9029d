"""Mutants against the stored answers of the assemblers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.requirements import version_key
from ptxmma.evidence import facts
from ptxmma.evidence.assembler import Assembler
from ptxmma.evidence.claims import first_by, first_module, known_to
from ptxmma.ptx import lines as ptx
from ptxmma_proof.answers import Answers
from ptxmma_proof.legality import Legality


class Assemblers:
    """The stored answers, ready to be held against many mutants.

    Of an instruction every release said from which version on it accepts it, on every target.  One that only a mutant has may have
    been asked about as a neighbour of another.  Of a family of which a mutant changed the operands or the spellings, everything is
    looked up that was asked about its negative space.  Where the database itself differs from the assemblers, no answer counts.

    Args:
        told: the report of the assemblers.
        asked: the catalog that it was made with.

    Raises:
        ValueError: the report was made with another catalog.
    """

    def __init__(self, told: Assembler, asked: Catalog) -> None:
        if stale := facts.stale(told.facts, asked):
            raise ValueError(f"the answers of the assemblers are about another spec ({', '.join(stale)}): ask again")
        self._told = told
        self._answers = Answers(told, asked)
        self._disputed = {(line, target) for entry in told.disagreements for line in entry.lines for target in entry.targets}
        self._asked = {instruction.canonical: instruction for instruction in asked.all()}
        self._spellings = {entry.name: facts.spelling(entry) for entry in asked.database.spec.instructions}

    def contradiction(self, catalog: Catalog) -> str:
        """The first answer that a catalog contradicts, in words."""
        return next(self._contradictions(catalog), "")

    def _contradictions(self, catalog: Catalog) -> Iterator[str]:
        yield from self._of_targets(catalog)
        yield from self._of_instructions(catalog)
        yield from self._of_neighbours(catalog)

    def _of_targets(self, catalog: Catalog) -> Iterator[str]:
        spec = catalog.database.spec
        if unknown := set(self._told.versions) - {entry.version for entry in spec.isa_versions}:
            yield f"an assembler knows version {min(unknown)}"
        targets = {target.name: target for target in spec.targets}
        for entry in self._told.assemblers:
            for name in sorted(known_to(spec, entry.cuda) ^ entry.targets.keys()):
                yield f"CUDA {entry.cuda} {'knows' if name in entry.targets else 'does not know'} target {name}"
            versions = sorted(self._told.versions, key=version_key)
            for name in [name for name in entry.targets if name in targets]:
                claimed = first_module(targets[name], entry.cuda)
                if entry.targets[name] != next((version for version in versions if version_key(version) >= version_key(claimed)), ""):
                    yield f"CUDA {entry.cuda} takes target {name} from {entry.targets[name]} on"

    def _of_instructions(self, catalog: Catalog) -> Iterator[str]:
        differences: dict[object, str] = {}  # lines that were answered alike, and instructions with the same requirements, need one look
        lines = set()
        for instruction in catalog.all():
            required = requirements.floor(instruction.variant), *instruction.accepted_by().items()
            for text in ptx.lines(instruction):
                line = ptx.compact(text)
                lines.add(line)
                said = self._answers.of_instruction(line)
                if said is None:
                    yield from self._of_neighbour(text, instruction.accepted_by())
                    continue
                key = id(said), required
                if key not in differences:
                    differences[key] = self._difference(said, instruction)
                if differences[key]:
                    yield f"{differences[key]}: {line[:120]}"
        for entry in self._told.answers:
            if entry.accepted:
                yield from (f"accepted: {line[:120]}" for line in entry.lines if line not in lines)

    def _difference(self, said: Mapping[str, Mapping[str, str]], instruction: Instruction) -> str:
        """What the assemblers say of an instruction where its catalog says something else."""
        for entry in self._told.assemblers:
            accepted = said.get(entry.cuda, {})
            claimed = first_by(instruction, entry.cuda)
            for target in entry.targets:
                first = claimed.get(target)
                if accepted.get(target) != (first if first and version_key(first) <= version_key(entry.ptx) else None):
                    verdict = f"accepted from {accepted[target]} on" if target in accepted else "refused"
                    return f"{verdict} on {target} by CUDA {entry.cuda}"
        return ""

    def _of_neighbours(self, catalog: Catalog) -> Iterator[str]:
        legality = Legality(catalog)
        for line in (line for family in self._changed(catalog) for line in self._answers.asked.get(family, ())):
            yield from self._of_neighbour(line, legality.accepted_by(line))

    def _of_neighbour(self, line: str, accepted: Mapping[str, str]) -> Iterator[str]:
        """What the assemblers say of a line of the negative space where a catalog, which names first versions by target, does not."""
        for target, release, version, taken in self._answers.of_neighbour(line):
            first = accepted.get(target)
            claimed = first is not None and version_key(first) <= version_key(version)
            if claimed != taken and (ptx.compact(line), target) not in self._disputed:
                yield f"{'accepted' if taken else 'refused'} on {target} by CUDA {release}: {line[:120]}"

    def _changed(self, catalog: Catalog) -> dict[str, None]:
        """The families in which other operands or other spellings mean an instruction than in the catalog that was asked."""
        found: dict[str, None] = {}
        for entry in catalog.database.spec.instructions:
            if self._spellings.get(entry.name) != facts.spelling(entry):
                found[entry.family] = None
        for instruction in catalog.all():
            before = self._asked.get(instruction.canonical)
            if before is not None and _operand_facts(before) != _operand_facts(instruction):
                found[instruction.family] = None
        return found


def _operand_facts(instruction: Instruction) -> list[tuple[object, ...]]:
    """What decides which operands an assembler takes."""
    return [
        (form.syntax, [(one.register_types, one.registers, one.immediates, one.takes_register) for one in form.operands])
        for form in instruction.forms
    ]
