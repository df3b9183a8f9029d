"""Digests of what the database says, by which evidence knows whether it still belongs to it.

A digest is made of what its witness relied on, as the library reads it, and of nothing else: words for readers, citations, names of
layouts and conditions in other words for the same instructions leave it as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm, UnknownInstruction
from ptxmma.catalog.operands import Operand
from ptxmma.model import Database, InstructionSet, Layout, SharedMemory, matches
from ptxmma.ptx import lines as ptx

#: Fields that are words for readers or citations, of any structure.
_WORDS = frozenset({"title", "source", "text", "note", "notes", "releases", "contributors", "unspecified"})
#: Fields that say for which instructions an entry is; which entries an instruction has is in its digest.
_CONDITIONS = frozenset({"of", "when", "ordered_when"})
#: Of shared memory, what no instruction reads: the manual's notation and figures, and what concerns only TMA and bank conflicts.
_NOT_READ = frozenset({"banks", "tensor_map", "examples", "cute", "tma", "lbo", "sbo"})


def executed(instruction: Instruction) -> str:
    """What a run on a chip relies on of an instruction.

    Who executes it; its operand forms, with the registers, constants, number formats, layouts and sparsity of the operands; its
    metadata, with its legal fields, selectors and what compression chooses; its arithmetic, with what was observed; and, where it
    reads shared memory, the descriptor, the canonical layouts and the swizzles.
    """
    return _digest(
        [instruction.variant.instruction.scope, instruction.sparse, instruction.variant.instruction.asynchronous],
        _formats(instruction),
        [_form(instruction.database, form) for form in instruction.forms],
        _metadata(instruction),
        _compression(instruction),
        _plain(instruction.semantics()),
        _read_memory(instruction),
    )[:12]


def operands(instruction: Instruction, form: OperandForm) -> str:
    """What a peer's definition is compared with: the operands of a form, where each element stands, and the metadata."""
    return _digest(instruction.canonical, _form(instruction.database, form), _metadata(instruction))[:16]


def shared_memory(database: Database) -> str:
    """What a peer's layouts in shared memory are compared with: the descriptor, the canonical layouts and the swizzles."""
    memory = database.spec.shared_memory
    return _digest(_plain(memory, without=_WORDS | _NOT_READ))


def compressed(catalog: Catalog) -> str:
    """What a peer's compression is compared with: the types of a sparse A, each with its pattern and what compression chooses."""
    spec = catalog.database.spec
    found = {}
    for instruction in catalog.all():
        if instruction.sparse:
            held = instruction.metadata
            element = layouts.element_type(spec, str(instruction.variant.facts["atype"]))
            found[element.name, held.granularity.name] = [
                _plain(part) for part in (element, held.granularity, spec.choice(held.granularity))
            ]
    return _digest(sorted(found.items()))


def accepted(catalog: Catalog) -> dict[str, str]:
    """What the assemblers are asked, as a digest for each family.

    It is made of the targets (with their versions, and the releases that know them) and versions that there are, of what decides which
    spellings mean an instruction, and of its instructions: spelling, operand forms with their registers and constants, the targets that
    the database says accept it, each with the first version, and where it says that releases differ.
    """
    spec = catalog.database.spec
    targets = [[target.name, target.ptx, target.until, [[floor.cuda, floor.ptx] for floor in target.ptx_in]] for target in spec.targets]
    asked = [targets, [entry.version for entry in spec.isa_versions]]
    found: dict[str, list[object]] = {}
    for entry in spec.instructions:
        found.setdefault(entry.family, []).append(spelling(entry))
    for instruction in catalog.all():
        told = [instruction.canonical, _taken(instruction), sorted(instruction.accepted_by().items()), sorted(instruction.releases())]
        found[instruction.family].append(told)
    return {family: _digest(asked, told) for family, told in found.items()}


def spelling(entry: InstructionSet) -> tuple[object, ...]:
    """What decides which spellings mean an instruction, apart from its variants."""
    return entry.syntax, entry.opcode, entry.ordered, entry.repeatable, {name: part.default for name, part in entry.qualifiers.items()}


def explaining(catalog: Catalog) -> str:
    """What the errata say of lines on which assemblers and database differ."""
    return _digest(
        [
            [erratum.id, seen.asked, seen.target, seen.tool, seen.ptx, seen.answer, seen.database]
            for erratum in catalog.database.spec.errata
            for seen in erratum.seen
            if seen.database and not seen.compiled_for
        ]
    )


def stale(told: Mapping[str, str], catalog: Catalog) -> list[str]:
    """The families of a catalog of which answers with these digests do not, or no longer, speak."""
    return [family for family, digest in accepted(catalog).items() if told.get(family) != digest]


def printed(catalog: Catalog, spellings: Iterable[str]) -> str:
    """What the manual's examples are held against.

    It is made of what every example is searched for, of the instructions of these spellings (operands, constants, targets with their
    first versions; nothing for one that is none), and of the errata that name an example.
    """
    spec = catalog.database.spec
    told: list[object] = []
    for spelling in sorted(set(spellings)):
        try:
            found = catalog.find(spelling)
        except UnknownInstruction:
            told.append(spelling)
        else:
            told.append([spelling, found.canonical, _taken(found), sorted(found.accepted_by().items())])
    named = sorted((erratum.id, seen.example) for erratum in spec.errata for seen in erratum.seen if seen.example)
    return _digest(spec.document, sorted({entry.opcode or entry.name for entry in spec.instructions}), told, named)


def of_lines(lines: Iterable[str]) -> str:
    """The SHA-256 of lines of text, sorted."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _digest(*told: object) -> str:
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


def _plain(thing: Any, *, without: frozenset[str] = _WORDS | _CONDITIONS) -> Any:
    """A structure as plain data, without the fields of these names; of a layout its map, which the rest only names."""
    if isinstance(thing, Layout):
        return [thing.kind, thing.bits, thing.rows, thing.cols, thing.threads, thing.map]
    if isinstance(thing, msgspec.Struct):
        return {name: _plain(getattr(thing, name), without=without) for name in thing.__struct_fields__ if name not in without}
    if isinstance(thing, range):  # of constants: perhaps of all 32-bit numbers
        return repr(thing)
    if isinstance(thing, list | tuple):
        return [_plain(part, without=without) for part in thing]
    return thing


def _form(database: Database, form: OperandForm) -> list[object]:
    return [form.name, form.syntax, [_operand(database, operand) for operand in form.operands]]


def _operand(database: Database, operand: Operand) -> str:
    """The digest of an operand; many instructions share one."""
    key = "facts", id(operand)
    if key not in database.memo:
        database.memo[key] = _digest(_plain(operand)), operand  # with the operand: no other may get its id
    found: str = database.memo[key][0]
    return found


def _formats(instruction: Instruction) -> list[object]:
    """The element types in its spelling; those of a matrix in shared memory are in no operand."""
    types = {element.name: element for element in instruction.database.spec.types.elements}
    return [_plain(types[value]) for value in instruction.qualifiers.values() if value in types]


def _metadata(instruction: Instruction) -> list[object]:
    """Where the metadata stands, and what a field describes."""
    if not instruction.sparse:
        return []
    held = instruction.metadata
    return [held.selectors, _plain(held.layout), _plain(held.granularity)]


def _compression(instruction: Instruction) -> list[object]:
    """Which fields the instruction admits, and which of them compression chooses."""
    if not instruction.sparse:
        return []
    held = instruction.metadata
    return [held.legal, _plain(instruction.database.spec.choice(held.granularity))]


def _read_memory(instruction: Instruction) -> object:
    """What is known of shared memory, and in which order of elements the instruction can read it; nothing where it reads none."""
    memory: SharedMemory | None = instruction.database.spec.shared_memory
    if memory is None or not any(operand.kind == "descriptor" for form in instruction.forms for operand in form.operands):
        return None
    readable = [entry.majorness for entry in memory.majorness if matches(entry.of, instruction.variant.facts)]
    return [readable, _plain(memory, without=_WORDS | _CONDITIONS | _NOT_READ)]


def _taken(instruction: Instruction) -> list[object]:
    """The operand forms as an assembler sees them."""
    return [
        [form.syntax, [[one.name, one.register_types, one.registers, one.takes_register, repr(one.immediates)] for one in form.operands]]
        for form in ptx.operand_lists(instruction)
    ]
