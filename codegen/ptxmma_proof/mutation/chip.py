"""Mutants against the stored results of a chip: the same words through the mutant's tables must give the same D."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.evidence.silicon import Launch, Silicon
from ptxmma.model import Spec
from ptxmma.model.formula import FormulaError
from ptxmma_proof.silicon import replay
from ptxmma_proof.silicon.kernels import Kernel
from ptxmma_proof.silicon.replay import Words


class Results:
    """The launches of a chip's report, ready to be held against many mutants.

    Args:
        report: the report.
        launched: the catalog that the launches were made from.  It tells which words a launch was given, and for which
            instructions a mutant says the same as it, so that they need not be computed again; no result is taken from it.
    """

    def __init__(self, report: Silicon, launched: Catalog) -> None:
        self._chip, self._target = report.chip.name, report.target
        self._launched = {entry.instruction: launched.find(entry.instruction) for entry in report.instructions}
        self._beside = [entry.instruction for entry in report.beside]
        self._launches = {
            entry.instruction: [_in_full(self._launched[entry.instruction], launch) for launch in entry.replays]
            for entry in report.instructions
        }
        self._words = functools.lru_cache(maxsize=64)(self._drawn)

    def contradiction(self, catalog: Catalog) -> str:
        """The first result that a catalog contradicts, in words."""
        own = {instruction.canonical: instruction for instruction in catalog.all()}
        same = _Same()
        for spelling in (*self._launched, *self._beside):
            if spelling not in own or self._target not in own[spelling].accepted_by():
                return f"the chip ({self._chip}) runs {spelling}"
        changed = [own[spelling] for spelling, before in self._launched.items() if not same(before, own[spelling])]
        for instruction in _spread(changed):
            for number, launch in enumerate(self._launches[instruction.canonical]):
                if text := self._replayed(instruction, launch, number):
                    return text
        return ""

    def _replayed(self, instruction: Instruction, launch: Launch, number: int) -> str:
        drawn = self._words(instruction.canonical, number)  # those that the chip saw, not the mutant's
        before = _kernel(self._launched[instruction.canonical], launch).form
        try:
            kernel = _kernel(instruction, launch)
            if len(kernel.form.operands) != len(before.operands):
                return f"the chip ({self._chip}) runs {instruction.canonical} with {len(before.operands)} operands"
            names = {one.name: other.name for one, other in zip(before.operands, kernel.form.operands, strict=True)}
            found = replay.emulated(kernel, _renamed(launch, names), _renamed_words(drawn, names))
        except (StopIteration, KeyError):
            return f"the chip ({self._chip}) runs {instruction.canonical} with these operands: {launch.form or 'its own'}"
        except FormulaError:  # nothing about the operands
            raise
        except ValueError as error:
            return f"the chip ({self._chip}) gave a result for {instruction.canonical}: {str(error).splitlines()[0][:120]}"
        return "" if found == launch.d else f"D of {instruction.canonical} by the chip ({self._chip}), seed {launch.seed}"

    def _drawn(self, spelling: str, number: int) -> Words:
        launch = self._launches[spelling][number]
        return replay.words(_kernel(self._launched[spelling], launch), launch.seed, launch.image)


def _in_full(launched: Instruction, launch: Launch) -> Launch:
    """A launch with the constants that were left out, since a mutant may have other defaults; the chip knows none."""
    operands = (operand for form in launched.forms if form.name == launch.form for operand in form.operands)
    defaults = {operand.name: operand.default for operand in operands if operand.default is not None}
    return msgspec.structs.replace(launch, constants=defaults | launch.constants)


def _renamed(launch: Launch, names: Mapping[str, str]) -> Launch:
    """A launch under the names that a mutant has for the operands: the chip was given them in their order, without names."""
    constants = {names[name]: value for name, value in launch.constants.items()}
    descriptors = {names[name]: value for name, value in launch.descriptors.items()}
    return msgspec.structs.replace(launch, constants=constants, descriptors=descriptors)


def _renamed_words(words: Words, names: Mapping[str, str]) -> Words:
    return words._replace(registers={names[name]: held for name, held in words.registers.items()})


def _kernel(instruction: Instruction, launch: Launch) -> Kernel:
    """The kernel of a launch.

    Raises:
        StopIteration: the instruction has no such operand form.
    """
    return Kernel(
        instruction, next(form for form in instruction.forms or (OperandForm("", "", ()),) if form.name == launch.form), launch.constants
    )


class _Same:
    """Whether an instruction's results depend on the same facts in two catalogs; what many share is compared once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[bool, Any, Any]] = {}  # with the objects: no other may get their ids

    def __call__(self, before: Instruction, now: Instruction) -> bool:
        spec, other = before.database.spec, now.database.spec
        pairs: list[tuple[Any, Any]] = [
            *zip(_tables(spec), _tables(other), strict=True),
            (before.semantics(), now.semantics()),
            (before.variant.instruction.operands, now.variant.instruction.operands),
            (before.variant.instruction.scope, now.variant.instruction.scope),
        ]
        if len(before.forms) != len(now.forms) or before.sparse != now.sparse:
            return False
        for form, own in zip(before.forms, now.forms, strict=True):
            if form.syntax != own.syntax:
                return False
            pairs += zip(form.operands, own.operands, strict=True)
        if before.sparse:
            held, own_held = before.metadata, now.metadata
            pairs += [(held.layout, own_held.layout), (held.legal, own_held.legal), (held.selectors, own_held.selectors)]
        return all(self._same(one, two) for one, two in pairs)

    def _same(self, one: Any, two: Any) -> bool:
        key = id(one), id(two)
        if key not in self._known:
            self._known[key] = bool(one == two), one, two
        return self._known[key][0]


def _tables(spec: Spec) -> list[Any]:
    """What the emulator reads beside an instruction's own facts."""
    memory = spec.shared_memory
    found: list[Any] = [spec.types.elements, spec.types.containers, spec.types.registers, spec.granularities]
    if memory is None:
        return [*found, None, None, None, None, None]
    layouts = [(entry.majorness, entry.swizzles, entry.offset) for entry in memory.layouts]
    modes = [(entry.name, entry.encoding, entry.bytes) for entry in memory.swizzles]
    return [*found, memory.swizzle_formula, layouts, modes, memory.majorness, memory.descriptor]


def _spread(found: list[Instruction]) -> Iterator[Instruction]:
    """The instructions in another order, so that the first few are of all sorts."""
    step = max(1, len(found) // 16)
    for start in range(step):
        yield from found[start::step]
