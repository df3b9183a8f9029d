"""Compares mutants with the stored results of a chip: the same words through the mutant's tables must give the same D."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.model import Spec
from ptxmma.model.formula import FormulaError
from ptxmma_proof.silicon import replay
from ptxmma_proof.silicon.replay import Launch, Words
from ptxmma_proof.silicon.transferred import Transfer


class Replayed:
    """The recorded launches of a chip, to compare many mutants with.

    Args:
        launched: the catalog of the spec.  It gives the words of each launch, and shows which instructions a mutant leaves alone, so that
            they need not be computed again.  No result comes from it.  Instructions with outdated evidence are left out.
        folder: ``spec/evidence/``, which lists what the chip executed.
    """

    def __init__(self, launched: Catalog, folder: Path) -> None:
        witness = witnesses.Witness(folder / f"{witnesses.SILICON}.jsonl")
        self._chip = next((tool.name for tool in witness.run.tools if tool.kind == "chip"), "") if witness.run else ""
        self._targets = set(witness.run.targets) if witness.run else set[str]()
        facts = {line.instruction: line.facts for line in witness.of(witnesses.Executed)}
        self._executed = {one.canonical: one for one in launched.all() if facts.get(one.canonical) == digest.computed(one)}
        self._facts = {spelling: _facts(one) for spelling, one in self._executed.items()}
        self._tables = launched.database.spec
        self._launches: dict[str, list[Launch]] = {}
        for launch in replay.read():
            if launch.instruction in self._executed:
                full = _in_full(self._executed[launch.instruction], launch)
                self._launches.setdefault(launch.instruction, []).append(full)
        self._words = functools.lru_cache(maxsize=64)(self._drawn)

    def contradiction(self, catalog: Catalog) -> str:
        """The first result that a catalog contradicts, in words."""
        own = {instruction.canonical: instruction for instruction in catalog.all()}
        tables = _same_tables(self._tables, catalog.database.spec)
        for spelling in self._executed:
            if spelling not in own or not self._targets & own[spelling].accepted_by().keys():
                return f"the chip ({self._chip}) runs {spelling}"
        changed = [own[spelling] for spelling in self._launches if not tables or self._facts[spelling] != _facts(own[spelling])]
        for instruction in _spread(changed):
            for number, launch in enumerate(self._launches[instruction.canonical]):
                if text := self._replayed(instruction, launch, number):
                    return text
        return ""

    def _replayed(self, instruction: Instruction, launch: Launch, number: int) -> str:
        drawn = self._words(instruction.canonical, number)  # as the chip saw them, whatever the mutant says
        before = replay.kernel_of(self._executed[instruction.canonical], launch).form
        try:
            kernel = replay.kernel_of(instruction, launch)
            if len(kernel.form.operands) != len(before.operands):
                return f"the chip ({self._chip}) runs {instruction.canonical} with {len(before.operands)} operands"
            names = {one.name: other.name for one, other in zip(before.operands, kernel.form.operands, strict=True)}
            result = replay.emulated(kernel, _renamed(launch, names), _renamed_operands(drawn, names))
        except (StopIteration, KeyError):
            return f"the chip ({self._chip}) runs {instruction.canonical} with these operands: {launch.form or 'its own'}"
        except FormulaError:  # nothing about the operands
            raise
        except ValueError as error:
            return f"the chip ({self._chip}) gave a result for {instruction.canonical}: {str(error).splitlines()[0][:120]}"
        return "" if result == launch.d else f"D of {instruction.canonical} by the chip ({self._chip}), seed {launch.seed}"

    def _drawn(self, spelling: str, number: int) -> Words | Transfer:
        launch = self._launches[spelling][number]
        return replay.drawn(replay.kernel_of(self._executed[spelling], launch), launch)


def _in_full(launched: Instruction, launch: Launch) -> Launch:
    """A launch with its default constants written out, since a mutant may have other defaults."""
    operands = (operand for form in launched.forms if form.name == launch.form for operand in form.operands)
    defaults = {operand.name: operand.default for operand in operands if operand.default is not None}
    return msgspec.structs.replace(launch, constants=defaults | launch.constants)


def _renamed(launch: Launch, names: Mapping[str, str]) -> Launch:
    """A launch under the mutant's names of the operands, which the chip knows by their order."""
    constants = {names[name]: value for name, value in launch.constants.items()}
    descriptors = {names[name]: value for name, value in launch.descriptors.items()}
    return msgspec.structs.replace(launch, constants=constants, descriptors=descriptors)


def _renamed_operands(drawn: Words | Transfer, names: Mapping[str, str]) -> Words | Transfer:
    registers = {names[name]: words for name, words in drawn.registers.items()}
    if isinstance(drawn, Transfer):
        return drawn._replace(registers=registers, given={names.get(name, name): value for name, value in drawn.given.items()})
    return drawn._replace(registers=registers)


def _facts(instruction: Instruction) -> tuple[object, ...]:
    """All that a result depends on."""
    order = [[operand.name for operand in form.operands] for form in instruction.forms]
    return digest.computed(instruction), order, instruction.semantics(), instruction.variant.instruction.scope


def _same_tables(one: Spec, other: Spec) -> bool:
    """Return whether the emulator's other tables are the same."""
    return (one.types, one.granularities, one.choices) == (other.types, other.granularities, other.choices)


def _spread(instructions: list[Instruction]) -> Iterator[Instruction]:
    """The instructions in an order that mixes all sorts."""
    step = max(1, len(instructions) // 16)
    for start in range(step):
        yield from instructions[start::step]
