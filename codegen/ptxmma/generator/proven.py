"""Stage 4, evidence: the files of ``spec/evidence/`` -> the evidence of each instruction and layout, and what is unproven.

A line covers the facts whose digest it has (:mod:`ptxmma.catalog.digest`).
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ptxmma.catalog import digest, evidence, witnesses
from ptxmma.catalog.evidence import Held, LayoutEvidence, Row, Summary
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.witnesses import Assembled, Compared, Executed, Witness
from ptxmma.model import Database

#: Names that a sentence lists.
_FEW = 3
#: "7.0 in 11.7 to 13.5; 7.1 in 13.6".
_ACCEPTED = re.compile(r"[\d.]+ in ([\d.]+)(?: to ([\d.]+))?")


def attach(catalog: Catalog, folder: Path) -> None:
    """Put the files of a folder beside a database; what they say is worked out when somebody asks."""
    every = {name: Witness(folder / f"{name}.jsonl") for name in witnesses.NAMES}
    catalog.database.memo.update(witnesses=every, evidence=functools.partial(summary, catalog, every))


def attached(database: Database) -> dict[str, Witness]:
    """The witnesses that :func:`attach` put beside a database, by :data:`ptxmma.catalog.witnesses.NAMES`; else none."""
    found: dict[str, Witness] = database.memo.get("witnesses", {})
    return found


# --- from spec/evidence/ ----------------------------------------------------------------------------------------------------


def summary(catalog: Catalog, every: Mapping[str, Witness]) -> Summary:
    """What witnesses say of each instruction and layout of a catalog."""
    asked, chip, peers = (every[name] for name in (witnesses.ASSEMBLER, witnesses.SILICON, witnesses.PEERS))
    assembled = {line.instruction: line for line in asked.of(Assembled)}
    executed = {line.instruction: line for line in chip.of(Executed)}
    compared: dict[str, list[Compared]] = defaultdict(list)
    for line in peers.of(Compared):
        compared[line.instruction].append(line)
    releases = [tool.name.removeprefix("CUDA ") for tool in asked.run.tools] if asked.run else []
    answers = {line.name: _by_release(line.accepted, releases) for line in asked.of(witnesses.Answer)}
    numbers = {name: number for number, name in enumerate(answers)}
    targets = frozenset(asked.run.targets) if asked.run else frozenset[str]()
    rows = {}
    for instruction in catalog.all():
        name = instruction.canonical
        if name not in assembled and name not in executed and name not in compared:
            continue
        answer, ran, definitions = assembled.get(name), executed.get(name), compared.get(name, [])
        stale = [witnesses.ASSEMBLER] if answer and answer.facts != digest.asked(instruction, targets) else []
        facts = digest.computed(instruction) if ran or definitions else ""
        stale += [witnesses.SILICON] if ran and ran.facts != facts else []
        stale += [witnesses.PEERS] if any(line.facts != facts for line in definitions) else []
        rows[name] = Row(
            assembled=numbers.get(answer.answer) if answer else None,
            executed=(evidence.Executed(chip=_chip(chip), launches=sum(ran.launches.values()), wrong=ran.wrong, machine=ran.machine),)
            if ran
            else (),
            # Of lists: only so does Python 3.10 make the one empty tuple that JSON leaves out as the default.
            peers=tuple([atom for line in definitions for atoms in line.agree.values() for atom in atoms if atom not in line.differ]),
            differing=tuple([atom for line in definitions for atom in line.differ]),
            stale=tuple(stale),
        )
    tools = tuple(tool for witness in (asked, chip, peers) if witness.run for tool in witness.run.tools)
    held = _layouts(catalog, rows, _chip(chip), executed, compared)
    return Summary(tools=tools, answers=tuple(answers.values()), held=held, instructions=rows)


def _by_release(accepted: Mapping[str, str], releases: list[str]) -> dict[str, tuple[str, ...]]:
    """CUDA release -> the targets on which it accepts."""
    found: dict[str, list[str]] = {release: [] for release in releases}
    for target, text in accepted.items():
        for first, last in _ACCEPTED.findall(text):
            if {first, last or first} <= found.keys():
                for release in releases[releases.index(first) : releases.index(last or first) + 1]:
                    found[release].append(target)
    return {release: tuple(targets) for release, targets in found.items() if targets}


def _chip(witness: Witness) -> str:
    return next((tool.name for tool in witness.run.tools if tool.kind == "chip"), "") if witness.run else ""


def _layouts(
    catalog: Catalog,
    rows: Mapping[str, Row],
    chip: str,
    executed: Mapping[str, Executed],
    compared: Mapping[str, list[Compared]],
) -> dict[str, LayoutEvidence]:
    """What is known of each layout from the instructions with an operand in it; of the others nothing is."""
    launches, wrong, instructions, agreeing = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    differing: dict[str, list[str]] = defaultdict(list)
    stale: dict[str, set[str]] = defaultdict(set)
    for instruction in catalog.all():
        name = instruction.canonical
        ran = executed.get(name)
        forms = {
            form.name: {operand.name: operand.layout.name for operand in form.operands if operand.layout} for form in instruction.forms
        }
        every = {layout for named in forms.values() for layout in named.values()}
        for layout in every:
            stale[layout] |= set(rows[name].stale if name in rows else ()) & {witnesses.SILICON, witnesses.PEERS}
            instructions[layout] += bool(ran)
            wrong[layout] += ran.wrong if ran else 0
        for form, named in forms.items():
            for layout in set(named.values()) if ran else ():
                launches[layout] += ran.launches.get(form, 0) if ran else 0
        for line in compared.get(name, ()):
            named = forms.get(line.form, {})
            for operands, atoms in line.agree.items():
                for one in operands.split():
                    if one in named:
                        agreeing[named[one]] += len(atoms)
            for atom, operands in line.differ.items():
                for one in operands.split():
                    if one in named:
                        differing[named[one]].append(atom)
    found = {}
    for layout in catalog.database.layout:
        if launches[layout] or agreeing[layout] or differing[layout]:
            held = Held(chip=chip, launches=launches[layout], wrong=wrong[layout], instructions=instructions[layout])
            found[layout] = LayoutEvidence(
                executed=(held,) if launches[layout] else (),
                agreeing={"CuTe": agreeing[layout]} if agreeing[layout] else {},
                differing=tuple(differing[layout]),
                stale=tuple(sorted(stale[layout], reverse=True)),
            )
    return found


def _named(form: OperandForm) -> dict[str, str]:
    """Operand -> the name of its layout."""
    return {operand.name: operand.layout.name for operand in form.operands if operand.layout}


# --- what is missing ----------------------------------------------------------------------------------------------------


def gaps(catalog: Catalog) -> Iterator[str]:
    """What is unproven or outdated, in sentences: no error, but worth knowing."""
    found = evidence.of(catalog.database)
    every = list(catalog.all())
    for name, witness in attached(catalog.database).items():
        if witness.fault:
            yield f"{witness.fault}: this witness counts for nothing until the file can be read"
        elif witness.run is None:
            yield f"{witness.path}: it is missing: nobody asked this witness"
        elif name in (witnesses.ASSEMBLER, witnesses.SILICON, witnesses.PEERS):
            yield from _gaps(witness, name, found, every, [target.name for target in catalog.database.spec.targets])


def _gaps(witness: Witness, name: str, found: Summary, every: Sequence[Instruction], targets: Sequence[str]) -> Iterator[str]:
    assert witness.run is not None
    asked = witness.run.targets
    if outdated := [one.canonical for one in every if name in found.of(one.canonical).stale]:
        yield f"{witness.path}: {len(outdated)} instructions have changed since: {_few(outdated)}"
    if name == witnesses.ASSEMBLER:
        unproven = [one.canonical for one in every if not found.of(one.canonical).assembled]
        new = [target for target in targets if target not in asked]
    else:
        runs = every if name == witnesses.SILICON else []
        unproven = [one.canonical for one in runs if not found.of(one.canonical).executed and one.accepted_by().keys() & set(asked)]
        new = []
    if unproven:
        yield f"{witness.path}: nobody asked about {len(unproven)} instructions: {_few(unproven)}"
    if new:
        yield f"{witness.path}: nobody asked about the targets {_few(new)}"
    lines: list[Assembled | Executed | Compared] = [*witness.of(Assembled), *witness.of(Executed), *witness.of(Compared)]
    if gone := sorted({line.instruction for line in lines} - {one.canonical for one in every}):
        yield f"{witness.path}: {len(gone)} of its instructions are not in the database: {_few(gone)}"


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_FEW]) + (f" and {len(listed) - _FEW} more" if len(listed) > _FEW else "")
