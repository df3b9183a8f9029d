"""Every example of the manual through the newest assembler and the library: ``spec/evidence/reference.jsonl``.

Each example is assembled up to three times, as the body of an empty kernel, until it is accepted:

1. ``literal``: as printed.
2. ``declared``: with declarations of the registers that it uses and does not declare, of the types that the library names for the
   operands.  The first legal immediate replaces a name where only an immediate is allowed, and dots are left out.
3. ``redeclared``: with the library's declarations instead of its own.  If this one is accepted, the fault lies in the declarations.

The library judges the same instructions with the same types of registers.  The text itself is not kept: an example is named by its
section, its number there and a digest, its matrix instructions by their canonical spelling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog import evidence
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm, UnknownInstruction
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import register
from ptxmma.ptx import lines as ptx
from ptxmma_proof import bodies, matrix, reference, sweep
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.bodies import Attempt
from ptxmma_proof.line_legality import Legality
from ptxmma_proof.questions import Progress, quiet
from ptxmma_proof.reference import Example, Statement

#: The type of a register that no instruction determines.
_UNTYPED = "b32"
_HEXADECIMAL = re.compile(r"(?<![\w$%])0[xX][0-9a-fA-F]+")


class Record(NamedTuple):
    """One example and its attempts."""

    section: str
    ordinal: int  # among the examples of the section, from 1
    sha256: str  # the first 16 digits, over its lines without indentation
    cuda: str
    attempts: tuple[Attempt, ...]  # as printed; with the declarations that it lacks; with others than its own
    agrees: bool  # the library and the assembler, on the last attempt
    errata: tuple[str, ...]  # those that explain why the first two attempts fail

    @property
    def fails(self) -> bool:
        """True if it is refused even with the missing declarations."""
        return not any(attempt.accepted for attempt in self.attempts[:2])

    def __str__(self) -> str:
        said = next((f" ({said.text})" for attempt in reversed(self.attempts[:2]) for said in attempt.said), "")
        what = f"refused{said}" if self.fails else "accepted"
        return f"{self.section}, example {self.ordinal} ({self.sha256}): {what}" + ("" if self.agrees else ", the library differs")


class Outcome(NamedTuple):
    """The outcome for all examples."""

    records: list[Record]

    @property
    def unexplained(self) -> list[Record]:
        """The examples that fail without an erratum, or on which library and assembler differ."""
        return [record for record in self.records if not record.agrees or (record.fails and not record.errata)]

    @property
    def totals(self) -> dict[str, int]:
        """The number of examples by outcome."""
        first = Counter(next((number for number, attempt in enumerate(record.attempts) if attempt.accepted), 3) for record in self.records)
        ends = dict(zip(("literal", "declared", "redeclared", "refused"), map(first.__getitem__, range(4)), strict=True))
        return {"examples": len(self.records)} | ends | {"disagreements": sum(not record.agrees for record in self.records)}

    def __str__(self) -> str:
        totals = self.totals
        return (
            f"{totals['examples']} examples: {totals['literal']} accepted as printed, {totals['declared']} with declarations supplied, "
            f"{totals['redeclared']} with others than their own, {totals['refused']} refused; {len(self.unexplained)} without an erratum"
        )

    def record(self, catalog: Catalog, assemblers: Iterable[Assembler], date: str) -> list[Line]:
        """The run as lines of ``spec/evidence/reference.jsonl``."""
        asked = {record.cuda for record in self.records}
        tools = tuple(sweep.tool(each, date) for each in assemblers if each.cuda in asked)
        return [witnesses.Run(date=date, spec=catalog.database.spec.version, tools=tools, totals=self.totals)]


def run(catalog: Catalog, directory: Path, assemblers: Iterable[Assembler], progress: Progress = quiet) -> Outcome:
    """Assemble every example of a reference.

    Args:
        catalog: ours.
        directory: the reference, as :func:`ptxmma_proof.reference.find` reads it.
        assemblers: the assemblers; the newest that knows a target is asked.
        progress: called after every example.

    Raises:
        NoExamplesError: the directory has no example of a matrix instruction.
        AssemblerError: an assembler failed without naming a line.
        OSError: a file cannot be read.
    """
    examples = reference.find(directory, opcodes(catalog))
    asker = _Asker(catalog, matrix.newest(catalog, assemblers))
    records = []
    for example in examples:
        records.append(asker.record(example))
        progress(len(records), len(examples))
    return Outcome(records)


def opcodes(catalog: Catalog) -> list[str]:
    """The first words of the spellings of a catalog's instructions."""
    return sorted({entry.opcode or entry.name.split(".")[0] for entry in catalog.database.spec.instructions})


# --- one example ------------------------------------------------------------------------------------------------------------


class _Supply(NamedTuple):
    """The parts that an example lacks: registers to declare and immediates."""

    registers: dict[str, str]  # the registers, by name, with the type
    immediates: dict[str, str]

    def declarations(self) -> list[str]:
        return [f".reg .{bank} {name};" for name, bank in self.registers.items()]

    def put_in(self, text: str) -> str:
        """A text with immediates instead of their names."""
        for name, value in self.immediates.items():
            text = re.sub(rf"(?<![\w$%]){re.escape(name)}(?![\w$])", value, text)
        return text


class _Asker:
    """Asks about examples."""

    def __init__(self, catalog: Catalog, newest: Mapping[str, Assembler]) -> None:
        self._catalog = catalog
        self._newest = newest
        self._legality = Legality(catalog)
        self._sightings = evidence.of(catalog.database).sightings
        self._banks = matrix.banks(catalog)
        self._opcodes = tuple(f"{opcode}." for opcode in opcodes(catalog))

    def record(self, example: Example) -> Record:
        """Everything about one example."""
        own = [statement for statement in example.statements if f"{statement.spelling}.".startswith(self._opcodes)]
        target = self._target(own)
        assembler = self._newest[target]
        needed = self._needed(example.statements)
        missing = _Supply({name: bank for name, bank in needed.registers.items() if name not in example.declared}, needed.immediates)
        texts: list[Callable[[], tuple[list[str], list[str]]]] = [
            lambda: ([], example.text.splitlines()),
            lambda: (missing.declarations(), missing.put_in(example.whole).splitlines()),
            lambda: (needed.declarations(), [needed.put_in(str(statement)) for statement in example.statements]),
        ]
        attempts: list[Attempt] = []
        for text in texts:
            attempts.append(bodies.assemble(assembler, target, *text()))
            if attempts[-1].accepted:
                break
        types = needed.registers | ({} if len(attempts) == len(texts) else example.declared)
        refused = [statement.spelling for statement in own if not self._takes(statement, types, needed, target)]
        named = list(dict.fromkeys(seen.erratum for seen in self._sightings if seen.example == example.sha256))
        agrees = attempts[-1].accepted == (not refused)
        return Record(example.section, example.ordinal, example.sha256, assembler.cuda, tuple(attempts), agrees, tuple(named))

    def _target(self, statements: Iterable[Statement]) -> str:
        """The first target that accepts all instructions that the library knows, or the last target."""
        known = filter(None, (_find(self._catalog, statement.spelling) for statement in statements))
        accepting = [instruction.accepted_by() for instruction in known]
        return next((target for target in self._newest if accepting and all(target in one for one in accepting)), list(self._newest)[-1])

    def _needed(self, statements: Sequence[Statement]) -> _Supply:
        """A register type for every name, or an immediate."""
        registers: dict[str, list[str]] = {}
        immediates: dict[str, str] = {}
        for statement in statements:
            for name, operand in self._described(statement):
                if not operand.takes_register:
                    assert operand.immediates
                    immediates[name] = str(operand.immediates[0])
                    continue
                both = [bank for bank in registers.get(name, operand.register_types) if bank in operand.register_types]
                registers[name] = both or registers[name]  # no type fits both: the assembler will refuse
        # Other instructions take any type of the right size: they decide where no matrix instruction does.
        for statement in statements:
            for name in statement.names:
                if name not in immediates:
                    registers.setdefault(name, self._of(statement.spelling))
        return _Supply({name: banks[0] for name, banks in registers.items()}, immediates)

    def _of(self, spelling: str) -> list[str]:
        """The register type that another instruction names: ``mov.b32``."""
        return [token for token in reversed(spelling.split(".")) if token in self._banks][:1] or [_UNTYPED]

    def _described(self, statement: Statement) -> Iterator[tuple[str, Operand]]:
        """Each name of a statement with its operand, in the first form with as many operands and the same lists."""
        instruction = _find(self._catalog, statement.spelling)
        for form in ptx.operand_lists(instruction) if instruction else ():
            wanted = ptx.items(form.syntax)
            if [_opening(form, name) for name in wanted] == [text[0] if text[0] in "{[" else "" for text in statement.operands]:
                for name, text in zip(wanted, statement.operands, strict=True):
                    parts = ptx.items(text.strip("{}[]"))
                    operands = [name] * len(parts) if ptx.named(name) == [name] else ptx.named(name)
                    pairs = zip(parts, operands, strict=False)
                    yield from ((each, form.operand(one)) for each, one in pairs if reference.NAME.fullmatch(each))
                return

    def _takes(self, statement: Statement, types: Mapping[str, str], supply: _Supply, target: str) -> bool:
        """Return whether the library accepts a statement with registers of these types."""
        numbers = {name: number for number, name in enumerate(types)}

        def typed(match: re.Match[str]) -> str:
            return register(types[match[0]], numbers[match[0]]) if match[0] in types else match[0]

        operands = [_HEXADECIMAL.sub(lambda match: str(int(match[0], 16)), supply.put_in(text)) for text in statement.operands]
        line = ptx.line(statement.spelling, [reference.NAME.sub(typed, text) for text in operands])
        first = self._legality.accepted_by(line).get(target)
        return first is not None and first <= self._newest[target].ptx


def _find(catalog: Catalog, spelling: str) -> Instruction | None:
    try:
        return catalog.find(spelling)
    except UnknownInstruction:
        return None


def _opening(form: OperandForm, name: str) -> str:
    """The first character of an operand: ``"{"`` a list, ``"["`` an address, ``""`` a register or a constant."""
    if ptx.named(name) != [name]:
        return name[0]
    return "{" if form.operand(name).listed else ""
