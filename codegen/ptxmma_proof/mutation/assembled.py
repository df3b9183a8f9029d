"""Mutants against the assemblers: stored answers about instructions, and new ones about lines that only a mutant has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.model import Version
from ptxmma.ptx import lines as ptx
from ptxmma_proof import assemblers, errata, matrix, negative_space, questions
from ptxmma_proof.mutation.answers import parts
from ptxmma_proof.questions import Lines

#: Parts of a spec that no line of PTX depends on; instructions are compared one by one.
_WITHOUT_LINES = (
    *("instructions", "descriptors", "tensor_maps", "tensor_products", "shared_memory", "block_scaling", "block_formats", "throughput"),
    *("protocols", "errata", "words", "preferences", "gpus"),
)
#: The most lines to ask about for each mutant.
_MOST = 200


class Assembled:
    """The stored answers about a spec, to compare its mutants with.

    ``spec/evidence/assembler.jsonl`` says that assemblers accept the lines of an instruction on its targets, each from its first version
    on, and nowhere else.  A mutant that lacks such a line, target or version is contradicted.  The newest assembler for each kind of target
    is asked about lines that only the mutant has, if it was fetched.
    """

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        witness = witnesses.Witness(folder / f"{witnesses.ASSEMBLER}.jsonl")
        targets = frozenset(witness.run.targets) if witness.run else frozenset[str]()
        facts = {line.instruction: line.facts for line in witness.of(witnesses.Assembled)}
        self._targets = targets
        #: The instructions whose stored answers are up to date.
        self._known = {one.canonical: one for one in catalog.all() if facts.get(one.canonical) == digest.asked(one, targets)}
        self._spec = catalog.database.spec
        self._lines = {line for one in self._known.values() for line in ptx.lines(one)}
        self._here = assemblers.fetched()

    def contradiction(self, catalog: Catalog) -> str:
        """The first answer that a catalog contradicts, in words."""
        return next(self._contradictions(catalog), "")

    def _contradictions(self, catalog: Catalog) -> Iterator[str]:
        spec = catalog.database.spec
        same = parts(spec, *_WITHOUT_LINES) == parts(self._spec, *_WITHOUT_LINES)
        unchanged = [entry for entry in self._spec.instructions if same and entry in spec.instructions]
        mutated = {one.canonical: one for one in catalog.all(lambda entry: entry not in unchanged)}
        left = {id(entry) for entry in self._spec.instructions} - {id(entry) for entry in unchanged}
        for name, before in self._known.items():
            if id(before.variant.instruction) not in left:
                continue
            now = mutated.get(name)
            if now is None:
                yield f"accepted: {name}"
                continue
            try:
                lost = set(ptx.lines(before)) - set(ptx.lines(now))
            except LookupError as error:  # it has no registers for an operand
                yield f"accepted: {name}, and {error}"
                continue
            yield from (f"accepted: {ptx.compact(line)}" for line in lost)
            if self._accepted(before) != self._accepted(now):
                yield f"accepted by other targets or in other versions: {name}"
        yield from self._new_lines(catalog, mutated)

    def _accepted(self, instruction: Instruction) -> dict[str, str]:
        return {target: first for target, first in instruction.accepted_by().items() if target in self._targets}

    def _new_lines(self, catalog: Catalog, mutated: Mapping[str, Instruction]) -> Iterator[str]:
        """Ask about the lines that only the mutant has."""
        new = {line: one for one in mutated.values() for line in ptx.lines(one) if line not in self._lines}
        if not new or not self._here:
            return
        texts = list(new)[:_MOST]
        lines = Lines.of(texts, matrix.banks(catalog))
        every = [target.name for target in catalog.database.spec.targets]
        for target, program in negative_space.speaking(catalog, self._here, every).items():
            question = matrix.question(program, target, program.ptx, lines, questions.unreadable(program, lines))
            (answer,) = questions.ask([question], questions.ANSWERS, 1)
            refused = questions.by_line(answer)
            for number, line in enumerate(texts):
                first = new[line].accepted_by().get(target)
                if (first is not None and Version(first) <= Version(program.ptx)) == (number in refused):
                    verdict = refused.get(number, errata.ACCEPTED)
                    yield f"CUDA {program.cuda} on {target}: {verdict}: {ptx.compact(line)}"
