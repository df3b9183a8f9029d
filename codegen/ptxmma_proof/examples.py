"""Every example of the reference, asked of the newest assembler and of the library: ``spec/evidence/examples.json``.

Each example is assembled up to three times, as the body of an empty kernel, until it is accepted:

1. ``literal``: as it is printed.
2. ``declared``: what it uses and does not declare is declared, with the register types that the library names for the operands;
   a name where only an immediate can stand becomes the first legal one; dots for what is not printed are left out.
3. ``redeclared``: all of its own declarations are left out too, and the library's stand in their place.  This tells whether the
   fault lies in the declarations or in the instructions.

The library is asked about the same instructions with the same types of registers.  The text itself is not kept: an example is named by
its section, its number there and a digest, its matrix instructions by their canonical spelling.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ptxmma.catalog.instructions import Catalog, Instruction, UnknownInstruction
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.requirements import version_key
from ptxmma.evidence import facts
from ptxmma.ptx import lines as ptx
from ptxmma_proof import bodies, matrix, reference
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.bodies import Attempt
from ptxmma_proof.legality import Legality
from ptxmma_proof.questions import Progress, quiet
from ptxmma_proof.reference import Example, Statement

#: What carries a name of which nothing is known.
_UNTYPED = "b32"
_HEXADECIMAL = re.compile(r"(?<![\w$%])0[xX][0-9a-fA-F]+")


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Record(_Entry, frozen=True, kw_only=True):
    """One example and what came of it."""

    section: str
    ordinal: int  # among the examples of the section, from 1
    lines: int
    sha256: str  # the first 16 digits, over its lines without indentation
    instructions: tuple[str, ...]  # the matrix instructions in it, canonically spelt where the library knows them
    cuda: str
    target: str
    literal: Attempt
    declared: Attempt | None  # None: not needed
    redeclared: Attempt | None
    supplied: dict[str, int]  # how many registers of each type were declared; "immediate": how many names became one
    left_out: bool  # dots
    library: tuple[str, ...]  # instructions that the library refuses or does not know on that target, as they are spelt
    agrees: bool  # the library and the assembler, on the last attempt
    errata: tuple[str, ...]  # those that explain why it is not accepted as it stands, or with more declarations

    @property
    def attempts(self) -> list[Attempt]:
        """Those that were made."""
        return [attempt for attempt in (self.literal, self.declared, self.redeclared) if attempt is not None]

    @property
    def fails(self) -> bool:
        """Whether it is refused even with the declarations that it lacks."""
        return not any(attempt.accepted for attempt in self.attempts[:2])

    def __str__(self) -> str:
        said = next((f" ({said.text})" for attempt in reversed(self.attempts[:2]) for said in attempt.said), "")
        what = f"refused{said}" if self.fails else "accepted"
        return f"{self.section}, example {self.ordinal} ({self.sha256}): {what}" + ("" if self.agrees else ", the library differs")


class Program(_Entry, frozen=True, kw_only=True):
    """An assembler."""

    cuda: str
    build: str
    ptx: str
    sha256: str


class Counts(_Entry, frozen=True, kw_only=True):
    """How many examples ended how."""

    examples: int
    literal: int  # accepted as printed
    declared: int  # accepted with the declarations that they lack
    redeclared: int  # accepted with other declarations than their own
    refused: int
    disagreements: int  # between the library and the assembler


class Report(_Entry, frozen=True, kw_only=True):
    """What a run over a reference found."""

    kind: Literal["evidence_examples"] = "evidence_examples"
    date: str  # as the runner gives it
    spec: str  # version of our spec
    document: str  # the manual that section numbers refer to
    facts: str  # digest of what the library says of the instructions
    assemblers: tuple[Program, ...]
    counts: Counts
    examples: tuple[Record, ...]

    @property
    def unexplained(self) -> list[Record]:
        """The examples that fail without an erratum, or on which the library and the assembler differ."""
        return [record for record in self.examples if not record.agrees or (record.fails and not record.errata)]


def run(catalog: Catalog, directory: Path, assemblers: Iterable[Assembler], date: str, progress: Progress = quiet) -> Report:
    """Assemble every example of a reference.

    Args:
        catalog: ours.
        directory: the reference, as :func:`ptxmma_proof.reference.find` reads it.
        assemblers: of which the newest that knows a target is asked.
        date: of the run, as it shall stand in the report.
        progress: told after every example.

    Raises:
        NoExamplesError: the directory has no example of a matrix instruction.
        AssemblerError: an assembler failed without naming a line.
        OSError: a file cannot be read.
    """
    examples = reference.find(directory, opcodes(catalog))
    newest = matrix.newest(catalog, assemblers)
    asker = _Asker(catalog, newest)
    records = []
    for example in examples:
        records.append(asker.record(example))
        progress(len(records), len(examples))
    asked = sorted({record.cuda for record in records}, key=version_key)
    programs = {found.cuda: found for found in newest.values()}
    return Report(
        date=date,
        spec=catalog.database.spec.version,
        document=catalog.database.spec.document,
        facts=facts.printed(catalog, (spelling for record in records for spelling in record.instructions)),
        assemblers=tuple(Program(cuda=cuda, build=it.build, ptx=it.ptx, sha256=it.sha256) for cuda in asked for it in [programs[cuda]]),
        counts=_count(records),
        examples=tuple(records),
    )


def opcodes(catalog: Catalog) -> list[str]:
    """What the spellings of a catalog's instructions begin with."""
    return sorted({entry.opcode or entry.name.split(".")[0] for entry in catalog.database.spec.instructions})


def _count(records: Sequence[Record]) -> Counts:
    first = Counter(next((number for number, attempt in enumerate(record.attempts) if attempt.accepted), 3) for record in records)
    disagreements = sum(not record.agrees for record in records)
    return Counts(
        examples=len(records), literal=first[0], declared=first[1], redeclared=first[2], refused=first[3], disagreements=disagreements
    )


# --- one example ------------------------------------------------------------------------------------------------------------


class _Supply(NamedTuple):
    """What an example needs besides its text."""

    registers: dict[str, str]  # by name, with the type
    immediates: dict[str, str]

    def declarations(self) -> list[str]:
        return [f".reg .{bank} {name};" for name, bank in self.registers.items()]

    def put_in(self, text: str) -> str:
        """A text with the immediates in the places of their names."""
        for name, value in self.immediates.items():
            text = re.sub(rf"(?<![\w$%]){re.escape(name)}(?![\w$])", value, text)
        return text


class _Asker:
    """Asks about examples."""

    def __init__(self, catalog: Catalog, newest: Mapping[str, Assembler]) -> None:
        self._catalog = catalog
        self._newest = newest
        self._legality = Legality(catalog)
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
        attempts: list[Attempt | None] = [None, None, None]
        for number, text in enumerate(texts):
            made = attempts[number] = bodies.assemble(assembler, target, *text())
            if made.accepted:
                break
        literal, declared, redeclared = attempts
        assert literal is not None
        supply = needed if redeclared else missing if declared else _Supply({}, {})
        types = needed.registers | ({} if redeclared else example.declared)
        refused = [statement.spelling for statement in own if not self._takes(statement, types, needed, target)]
        accepted = any(attempt.accepted for attempt in attempts if attempt)
        return Record(
            section=example.section,
            ordinal=example.ordinal,
            lines=example.lines,
            sha256=example.sha256,
            instructions=tuple(sorted({self._canonical(statement.spelling) for statement in own})),
            cuda=assembler.cuda,
            target=target,
            literal=literal,
            declared=declared,
            redeclared=redeclared,
            supplied=dict(sorted(Counter([*supply.registers.values(), *("immediate" for _ in supply.immediates)]).items())),
            left_out=example.shortened and declared is not None,
            library=tuple(refused),
            agrees=accepted == (not refused),
            errata=tuple(
                erratum.id for erratum in self._catalog.database.spec.errata if any(one.example == example.sha256 for one in erratum.seen)
            ),
        )

    def _canonical(self, spelling: str) -> str:
        found = _find(self._catalog, spelling)
        return found.canonical if found else spelling

    def _target(self, statements: Iterable[Statement]) -> str:
        """The first target that takes all instructions that the library knows, or the last one of all."""
        known = filter(None, (_find(self._catalog, statement.spelling) for statement in statements))
        accepting = [found.accepted_by() for found in known]
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
                registers[name] = both or registers[name]  # nothing carries both: the assembler will tell
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
        """Each name of a statement with the operand that it is, in the first form that has as many operands and the same lists."""
        found = _find(self._catalog, statement.spelling)
        for form in ptx.operand_lists(found) if found else ():
            wanted = ptx.items(form.syntax)
            lists = [name.startswith("{") or form.operand(name).elements > 0 for name in wanted]
            if lists == [text.startswith("{") for text in statement.operands]:
                for name, text in zip(wanted, statement.operands, strict=True):
                    held = ptx.items(text.strip("{}"))
                    operands = ptx.items(name.strip("{}")) if name.startswith("{") else [name] * len(held)
                    pairs = zip(held, operands, strict=False)
                    yield from ((each, form.operand(one)) for each, one in pairs if reference.NAME.fullmatch(each))
                return

    def _takes(self, statement: Statement, types: Mapping[str, str], supply: _Supply, target: str) -> bool:
        """Whether the library accepts a statement with registers of these types."""
        numbers = {name: number for number, name in enumerate(types)}

        def typed(match: re.Match[str]) -> str:
            return ptx.register(types[match[0]], numbers[match[0]]) if match[0] in types else match[0]

        operands = [_HEXADECIMAL.sub(lambda match: str(int(match[0], 16)), supply.put_in(text)) for text in statement.operands]
        line = ptx.line(statement.spelling, [reference.NAME.sub(typed, text) for text in operands])
        first = self._legality.accepted_by(line).get(target)
        return first is not None and version_key(first) <= version_key(self._newest[target].ptx)


def _find(catalog: Catalog, spelling: str) -> Instruction | None:
    try:
        return catalog.find(spelling)
    except UnknownInstruction:
        return None


# --- the report as a file ---------------------------------------------------------------------------------------------------


def load(path: Path) -> Report:
    """Read a report.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no report of this version of ptxmma; the message names the path.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: no report of this version of ptxmma: {error}") from None


def text(report: Report) -> str:
    """A report as JSON, with one example on each line."""
    parts = []
    for name, value in msgspec.to_builtins(report).items():
        rows = isinstance(value, list) and value
        shown = "[\n" + ",\n".join(f"    {_json(row)}" for row in value) + "\n  ]" if rows else _json(value)
        parts.append(f"  {_json(name)}: {shown}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "evidence_examples.schema.json"}
    return title | {"title": "What an assembler and the library say of the examples of the reference"} | msgspec.json.schema(Report)
