"""Instructions as lines of a list, where all that differ in n alone share one, and a family in short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypedDict

import msgspec

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names import cplusplus
from ptxmma.catalog.products import legal_products
from ptxmma.catalog.variants import placeholders
from ptxmma.model import InstructionSet, Spec, Version

#: A number with more legal values has all that its register holds.
_MOST_LIMITED = 1 << 24


class Line(NamedTuple):
    """A line of the list: instructions that differ in n alone.

    Attributes:
        spelling: canonical; with the letter N, ``m64nNk16``, where the line has many.
        shape: ``"m16n8k16"`` or ``"m64nNk16"``; empty where they have none.
        types: the element types, and formats in memory, that the spelling names, in its order: ``("f32", "f16", "f16", "f32")``,
            ``("b8x16", "b6x16_p32")``.
        n: every n, ascending; empty where they multiply no matrices.
        accepted_by: every target that accepts them, with the first PTX ISA version.
        documented: true if the manual has them.
        instructions: they themselves.
    """

    spelling: str
    shape: str
    types: tuple[str, ...]
    n: tuple[int, ...]
    accepted_by: dict[str, Version]
    documented: bool
    instructions: tuple[Instruction, ...]


class LineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the list as plain data.

    Attributes:
        instruction: its spelling, with N in its shape where the line has several.
        shape: ``"m16n8k16"``; None for an instruction without one.
        types: the element types in the order of the spelling.
        n: every N of the line.
        ptx: the first PTX ISA version that has it, on the target that was asked for or on any.
        targets: the least targets; a ``+`` means that all targets with the same features accept it, too.
        documented: whether the manual has it.
    """

    instruction: str
    shape: str | None
    types: tuple[str, ...]
    n: tuple[int, ...]
    ptx: str
    targets: tuple[str, ...]
    documented: bool


def lines(instructions: Iterable[Instruction], *, merged: bool = True) -> list[Line]:
    """A line for each set of instructions that differ in n alone; with ``merged`` false a line for each instruction."""
    if not merged:
        return [_line([instruction]) for instruction in instructions]
    alike: dict[object, list[Instruction]] = {}
    for instruction in instructions:
        alike.setdefault((_spelling(instruction), instruction.documented), []).append(instruction)
    return [_line(entries) for candidates in alike.values() for entries in _by_acceptance(candidates)]


def _by_acceptance(candidates: Sequence[Instruction]) -> list[list[Instruction]]:
    """Instructions in sets of which each is accepted by the same targets from the same versions on."""
    sets: list[tuple[dict[str, Version], list[Instruction]]] = []
    for instruction in candidates:
        accepted = instruction.accepted_by()
        entries = next((entries for other, entries in sets if other == accepted), None)
        if entries is None:
            sets.append((accepted, [instruction]))
        else:
            entries.append(instruction)
    return [entries for _, entries in sets]


def _spelling(instruction: Instruction) -> str:
    """The canonical spelling with the letter N in place of n."""
    variant = instruction.variant
    return instruction.canonical.replace(f".{variant.shape}.", f".{variant.shape_label}.") if variant.shape else instruction.canonical


def _line(entries: Sequence[Instruction]) -> Line:
    first = entries[0]
    ranging = next(iter(first.variant.ranging), "n" if first.operation == "multiply" else "")
    numbers = tuple(sorted(entry.extents[ranging] for entry in entries if ranging))
    shape = first.variant.shape_label if len(numbers) > 1 else first.variant.shape
    spelling = _spelling(first) if len(numbers) > 1 else first.canonical
    return Line(spelling, shape, spelled_types(first), numbers, first.accepted_by(), first.documented, tuple(entries))


def spelled_types(instruction: Instruction) -> tuple[str, ...]:
    """The element types, and formats in memory, that an instruction's spelling names, in its order."""
    elements = {element.name for element in instruction.database.spec.types.elements}
    qualifiers, entry = instruction.qualifiers, instruction.variant.instruction
    types = {name for name, value in qualifiers.items() if value in elements}
    types |= {name for group in entry.ordered if types.intersection(group) for name in group}  # formats in memory: b6x16_p32
    return tuple(qualifiers[name] for name in placeholders(entry.syntax) if name in types and qualifiers[name])


def spans(numbers: Sequence[int]) -> str:
    """Ascending numbers as few words: ``"8..32 by 8, 48..256 by 16"``."""
    steps = {run: f" by {run.step}" * (run.step > 1) for run in runs(numbers)}
    return ", ".join(f"{run[0]}..{run[-1]}{step}" if len(run) > 2 else ", ".join(map(str, run)) for run, step in steps.items())


def few(names: Sequence[str], most: int) -> str:
    """The first names, and the number of the others: ``"sm_80, sm_86 and 7 more"``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def runs(numbers: Iterable[int]) -> list[range]:
    """Numbers as ranges of equal steps, ascending."""
    if isinstance(numbers, range):  # it may be too long to look at each
        return [numbers]
    found: list[range] = []
    for number in sorted(numbers):
        last = found[-1] if found else range(0)
        if len(last) == 1 or (last and number == last.stop - 1 + last.step):
            found[-1] = range(last.start, number + 1, number - last[-1])
        else:
            found.append(range(number, number + 1))
    return found


def least_targets(spec: Spec, names: Iterable[str]) -> list[str]:
    """The targets among ``names`` from which the others have their features; ``+`` follows one from which some do.

    ``["sm_80+"]`` for all that have the features of sm_80, ``["sm_90a"]`` for a target that no other includes.
    """
    targets = requirements.targets_of(spec)
    accepted = set(names)
    from_others = {name: targets.features(name) & accepted - {name} for name in accepted}
    parents = set().union(*from_others.values())
    return [name + "+" * (name in parents) for name in targets.by_name if name in accepted and not from_others[name]]


def first_version(accepted_by: dict[str, Version], target: str | None = None) -> Version:
    """The first PTX ISA version that has an instruction, on ``target`` or on any."""
    return accepted_by[target] if target else min(accepted_by.values())


class TypeSummary(TypedDict):
    """The instructions of a family that have the same element types."""

    types: list[str]
    shapes: list[str]
    ptx: Version
    targets: list[str]


class ErratumSummary(TypedDict):
    """An erratum in short."""

    id: str
    bites: str
    holds: str


class FamilySummary(TypedDict):
    """A family in short."""

    family: str
    titles: list[str]
    instructions: int
    documented: int
    sources: list[str]
    syntax: list[str]
    types: list[TypeSummary]
    headers: list[str]
    errata: list[ErratumSummary]
    threads: dict[str, int]
    sizes: dict[str, list[int]]
    limits: dict[str, str]


def members_of(catalog: Catalog, family: str) -> list[Instruction]:
    """The instructions of a family, or of an opcode."""
    return [instruction for entry in _entries(catalog, family) for instruction in catalog.of(entry.name)]


def _entries(catalog: Catalog, family: str) -> list[InstructionSet]:
    return [entry for entry in catalog.database.spec.instructions if family in (entry.family, entry.name)]


def summary(catalog: Catalog, family: str) -> FamilySummary:
    """A family in short, or the part of it that has one opcode, ``wgmma.mma_async``.

    ``types`` has an entry for each combination of element types: its shapes, the first PTX ISA version that has one of its
    instructions, and the lowest targets.  ``threads`` has the threads that execute each opcode together, ``sizes`` every M, N and K, and
    ``limits`` the legal numbers and the alignment of operands.
    """
    spec = catalog.database.spec
    entries = sorted(_entries(catalog, family), key=lambda entry: entry.operation != "multiply")  # what the others serve comes first
    members = members_of(catalog, family)
    groups: dict[tuple[str, ...], list[Line]] = {}
    for line in lines(members):
        groups.setdefault(line.types, []).append(line)
    return {
        "family": family,
        "titles": list(dict.fromkeys(entry.title for entry in entries)),
        "instructions": len(members),
        "documented": sum(member.documented for member in members),
        "sources": list(dict.fromkeys(form.source for entry in entries for form in entry.forms)),
        "syntax": list(dict.fromkeys(entry.syntax for entry in entries)),
        "types": [
            {
                "types": list(types),
                "shapes": list(dict.fromkeys(line.shape for line in lines if line.shape)),
                "ptx": min(first_version(line.accepted_by) for line in lines),
                "targets": least_targets(spec, {target for line in lines for target in line.accepted_by}),
            }
            for types, lines in groups.items()
        ],
        "headers": list(dict.fromkeys(f"ptxmma/{cplusplus.header(member)}" for member in members)),
        "errata": [
            {"id": entry.id, "bites": entry.bites, "holds": entry.holds} for entry in spec.errata if entry.family == entries[0].family
        ],
        "threads": {entry.name: spec.scopes[entry.scope] for entry in entries},
        "sizes": sizes(members),
        "limits": limits(members),
    }


def facts(answer: FamilySummary) -> list[tuple[str, str]]:
    """The threads, the sizes and the limits of a family as rows: ``("N", "8..256 by 8")``."""
    opcodes: dict[int, list[str]] = {}
    for opcode, count in answer["threads"].items():
        opcodes.setdefault(count, []).append(opcode)
    executed = [executed_by(count) + (f": {', '.join(each)}" if len(opcodes) > 1 else "") for count, each in opcodes.items()]
    operands: dict[str, list[str]] = {}
    for name, text in answer["limits"].items():
        operands.setdefault(text, []).append(name)
    return [
        *(("executed by", text) for text in executed),
        *((name.upper(), spans(numbers)) for name, numbers in answer["sizes"].items()),
        *((", ".join(names), text) for text, names in operands.items()),
    ]


def executed_by(threads: int) -> str:
    """The threads that execute an instruction together, in words."""
    return "one thread" if threads == 1 else f"{threads} threads together"


def sizes(members: Sequence[Instruction]) -> dict[str, list[int]]:
    """Every M, N and K that the shapes of instructions say, or their instruction descriptors may say."""
    chosen = legal_products.sizes(members[0].database.spec, [member.variant for member in members])
    stated = [member.shape_sizes for member in members if member.shape_sizes.keys() == {*"mnk"}]
    every = {name: {each[name] for each in stated} | chosen.get(name, set()) for name in "mnk"}
    return {name: sorted(numbers) for name, numbers in every.items() if numbers}


def limits(members: Sequence[Instruction]) -> dict[str, str]:
    """The legal numbers and the alignment of each operand that has some: ``{"nCols": "32, 64"}``."""
    numbers, alignments = dict[str, dict[Sequence[int], None]](), dict[str, set[int]]()
    for operand in (operand for member in members for operand in member.operands):
        legal = operand.immediates
        if legal is not None and (len(legal) < _MOST_LIMITED or (isinstance(legal, range) and legal.step > 1)):
            numbers.setdefault(operand.name, {})[legal] = None
        if operand.alignment:
            alignments.setdefault(operand.name, set()).add(operand.alignment)
    multiples = {name: f"multiple of {' or '.join(map(str, sorted(each)))} bytes" for name, each in alignments.items()}
    return {name: ", or ".join(map(spans, each)) for name, each in numbers.items()} | multiples
