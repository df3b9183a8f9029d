"""Stage 4, evidence: the files of ``spec/evidence/`` -> the evidence of instructions, layouts and errata, and what is unproven.

Each line stores a digest of the facts that it covers (:mod:`ptxmma.catalog.digest`).
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from ptxmma.catalog import digest, evidence
from ptxmma.catalog.evidence import LayoutEvidence, LayoutRuns, Row, Summary, witnesses
from ptxmma.catalog.evidence.witnesses import Assembled, Compared, Executed, Laid, Sighting, Tool, Witness, only
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.summaries.listing import few
from ptxmma.model import Database, Erratum

#: Names that a sentence lists.
_FEW = 3
#: "7.0 in 11.7 to 13.5; 7.1 in 13.6".
_ACCEPTED = re.compile(r"[\d.]+ in ([\d.]+)(?: to ([\d.]+))?")


def attach(catalog: Catalog, folder: Path) -> None:
    """Attach the files of a folder to a database; the summary is computed on first use."""
    every = {name: Witness(folder / f"{name}.jsonl") for name in witnesses.NAMES}
    catalog.database.memo.update(witnesses=every, evidence=functools.partial(summary, catalog, every))


def attached(database: Database) -> dict[str, Witness]:
    """The witnesses that :func:`attach` attached to a database, by :data:`ptxmma.catalog.evidence.witnesses.NAMES`; empty without them."""
    return cast("dict[str, Witness]", database.memo.get("witnesses", {}))


# --- from spec/evidence/ ----------------------------------------------------------------------------------------------------


def definitions(peers: Witness) -> dict[str, tuple[str, ...]]:
    """The definitions of other projects that agree with each instruction, by its canonical spelling."""
    agree: dict[str, list[str]] = defaultdict(list)
    for line in peers.of(Compared):
        agree[line.instruction] += [atom for atoms in line.agree.values() for atom in atoms if atom not in line.differ]
    return {instruction: tuple(atoms) for instruction, atoms in agree.items()}


def aliases(atoms: Witness, chip: Witness) -> dict[str, list[str]]:
    """The names that an instruction has elsewhere: of CuTe's atoms that lay nothing out, and of the one machine instruction it became."""
    names: dict[str, list[str]] = defaultdict(list)
    for line in atoms.of(witnesses.Named):
        names[line.instruction] += line.atoms
    for ran in chip.of(Executed):
        names[ran.instruction] += [code.removeprefix("1 ") for code in ran.machine if code.startswith("1 ")]
    return names


def summary(catalog: Catalog, every: Mapping[str, Witness]) -> Summary:
    """The evidence of each instruction, layout and erratum of a catalog."""
    assembler, chip, peers = (every[name] for name in (witnesses.ASSEMBLER, witnesses.SILICON, witnesses.PEERS))
    assembled = {line.instruction: line for line in assembler.of(Assembled)}
    executed = {line.instruction: line for line in chip.of(Executed)}
    compared: dict[str, list[Compared]] = defaultdict(list)
    for line in peers.of(Compared):
        compared[line.instruction].append(line)
    agree = definitions(peers)
    named = {line.instruction: line.atoms for line in every[witnesses.ATOMS].of(witnesses.Named)}
    releases = [tool.name.removeprefix("CUDA ") for tool in assembler.run.tools] if assembler.run else []
    answers = {line.name: _by_release(line.accepted, releases) for line in assembler.of(witnesses.Answer)}
    numbers = {name: number for number, name in enumerate(answers)}
    targets = frozenset(assembler.run.targets) if assembler.run else frozenset[str]()
    rows = {}
    for instruction in catalog.all():
        name = instruction.canonical
        if name not in assembled and name not in executed and name not in compared and name not in named:
            continue
        answer, ran, lines = assembled.get(name), executed.get(name), compared.get(name, [])
        stale = [witnesses.ASSEMBLER] if answer and answer.facts != digest.asked(instruction, targets) else []
        facts = digest.computed(instruction) if ran or lines else ""
        stale += [witnesses.SILICON] if ran and ran.facts != facts else []
        stale += [witnesses.PEERS] if any(line.facts != facts for line in lines) else []
        rows[name] = Row(
            assembled=numbers.get(answer.answer) if answer else None,
            executed=(evidence.Executed(chip=_chip(chip), launches=sum(ran.launches.values()), wrong=ran.wrong, machine=ran.machine),)
            if ran
            else (),
            peers=agree.get(name, ()),
            # From a list: only then does Python 3.10 return the one empty tuple, which JSON leaves out as the default.
            differing=tuple([atom for line in lines for atom in line.differ]),
            atoms=named.get(name, ()),
            stale=tuple(stale),
        )
    tools: dict[str, Tool] = {}
    for witness in (assembler, chip, peers, every[witnesses.TENSOR_MEMORY], every[witnesses.INTRINSICS]):
        for tool in witness.run.tools if witness.run else ():
            tools.setdefault(tool.name, tool)
    layouts = _layouts(catalog, rows, _chip(chip), executed, compared) | _tensor_layouts(catalog, every[witnesses.TENSOR_MEMORY])
    known = {erratum.id for erratum in catalog.database.spec.errata}
    return Summary(
        tools=tuple(tools.values()),
        answers=tuple(answers.values()),
        by_layout=layouts,
        instructions=rows,
        intrinsics=tuple(every[witnesses.INTRINSICS].of(witnesses.Intrinsic)),
        sightings=tuple(line for line in every[witnesses.ERRATA].of(Sighting) if line.erratum in known),
    )


def _by_release(accepted: Mapping[str, str], releases: list[str]) -> dict[str, tuple[str, ...]]:
    """CUDA release -> the targets on which it accepts."""
    accepting: dict[str, list[str]] = {release: [] for release in releases}
    for target, text in accepted.items():
        for first, last in _ACCEPTED.findall(text):
            if {first, last or first} <= accepting.keys():
                for release in releases[releases.index(first) : releases.index(last or first) + 1]:
                    accepting[release].append(target)
    return {release: tuple(targets) for release, targets in accepting.items() if targets}


def _chip(witness: Witness) -> str:
    return next((tool.name for tool in witness.run.tools if tool.kind == "chip"), "") if witness.run else ""


def _layouts(
    catalog: Catalog,
    rows: Mapping[str, Row],
    chip: str,
    executed: Mapping[str, Executed],
    compared: Mapping[str, list[Compared]],
) -> dict[str, LayoutEvidence]:
    """The evidence of each layout, from the instructions that have an operand in it; layouts without evidence are left out."""
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
                for operand in operands.split():
                    if operand in named:
                        agreeing[named[operand]] += len(atoms)
            for atom, operands in line.differ.items():
                for operand in operands.split():
                    if operand in named:
                        differing[named[operand]].append(atom)
    proofs = {}
    for layout in catalog.database.layout:
        if launches[layout] or agreeing[layout] or differing[layout]:
            runs = LayoutRuns(chip=chip, launches=launches[layout], wrong=wrong[layout], instructions=instructions[layout])
            proofs[layout] = LayoutEvidence(
                executed=(runs,) if launches[layout] else (),
                agreeing={"CuTe": agreeing[layout]} if agreeing[layout] else {},
                differing=tuple(differing[layout]),
                stale=tuple(sorted(stale[layout], reverse=True)),
            )
    return proofs


def _tensor_layouts(catalog: Catalog, witness: Witness) -> dict[str, LayoutEvidence]:
    """The evidence of each layout of tensor memory, and of the registers of its loads and stores."""
    database = catalog.database
    sources = {layout.name: (layout.source, digest.tensor_layout(layout)) for layout in database.spec.tensor_layouts}
    reading = {format.family for format in database.spec.descriptors if format.describes == "instruction"}
    for layout in database.layouts:
        if layout.family.partition(".")[0] in reading:
            sources[layout.name] = database.spec.register_layouts[layout.entry].source, digest.register_layout(database, layout)
    laid = {line.layout: line for line in witness.of(Laid)}
    found = {}
    for name, (source, facts) in sources.items() if witness.run is not None else ():
        line = laid.get(name)
        found[name] = LayoutEvidence(
            agreeing={peer: len(subjects) for peer, subjects in line.agree.items()} if line is not None else {},
            differing=line.differ if line is not None else (),
            stale=(witnesses.TENSOR_MEMORY,) if line is not None and facts != line.facts else (),
            origin=only(source, line.agree if line is not None else ()),
        )
    return dict(sorted(found.items()))


def one_source(catalog: Catalog) -> dict[str, str]:
    """The layouts and the fields of descriptors that have one source, each with that source, where other projects were asked."""
    spec, every = catalog.database.spec, attached(catalog.database)
    if not every:
        return {}
    alone = {name: proof.origin for name, proof in _tensor_layouts(catalog, every[witnesses.TENSOR_MEMORY]).items()}
    laid = {line.layout: line for line in every[witnesses.DESCRIPTORS].of(Laid)}
    for format in spec.descriptors:
        if format.name in laid:
            fields = laid[format.name].fields
            alone |= {f"{format.name}.{field.name}": only(field.source, fields.get(field.name, ())) for field in format.fields}
    return {name: origin for name, origin in alone.items() if origin}


# --- what is missing ----------------------------------------------------------------------------------------------------


def gaps(catalog: Catalog) -> Iterator[str]:
    """The evidence that is missing or outdated, in sentences.  None of it is an error."""
    proofs = evidence.of(catalog.database)
    every = list(catalog.all())
    for name, witness in attached(catalog.database).items():
        if witness.fault:
            yield f"{witness.fault}: this witness is ignored until the file can be read"
        elif witness.run is None:
            yield f"{witness.path}: the file is missing; this witness has not been run"
        elif name in (witnesses.ASSEMBLER, witnesses.SILICON, witnesses.PEERS):
            yield from _gaps(witness, name, proofs, every, [target.name for target in catalog.database.spec.targets])
        elif name == witnesses.ERRATA:
            yield from _errata(witness, catalog.database.spec.errata)
        elif name == witnesses.DESCRIPTORS and (alone := one_source(catalog)):
            yield f"{len(alone)} layouts and fields of descriptors have one source: {few([*alone], _FEW)}"


def _gaps(witness: Witness, name: str, proofs: Summary, every: Sequence[Instruction], targets: Sequence[str]) -> Iterator[str]:
    assert witness.run is not None
    covered = witness.run.targets
    if outdated := [entry.canonical for entry in every if name in proofs.of(entry.canonical).stale]:
        yield f"{witness.path}: {len(outdated)} instructions have changed since: {few(outdated, _FEW)}"
    if name == witnesses.ASSEMBLER:
        unproven = [entry.canonical for entry in every if not proofs.of(entry.canonical).assembled]
        new = [target for target in targets if target not in covered]
    else:
        testable = [entry for entry in every if entry.accepted_by().keys() & set(covered)] if name == witnesses.SILICON else []
        unproven = [entry.canonical for entry in testable if not proofs.of(entry.canonical).executed]
        new = []
    if unproven:
        yield f"{witness.path}: {len(unproven)} instructions are unproven: {few(unproven, _FEW)}"
    if new:
        yield f"{witness.path}: these targets are unproven: {few(new, _FEW)}"
    lines: list[Assembled | Executed | Compared] = [*witness.of(Assembled), *witness.of(Executed), *witness.of(Compared)]
    if gone := sorted({line.instruction for line in lines} - {entry.canonical for entry in every}):
        yield f"{witness.path}: {len(gone)} of its instructions are not in the database: {few(gone, _FEW)}"


def _errata(witness: Witness, errata: Sequence[Erratum]) -> Iterator[str]:
    asked = list(dict.fromkeys(line.erratum for line in witness.of(Sighting)))
    ids = [erratum.id for erratum in errata]
    if unproven := [erratum.id for erratum in errata if not erratum.textual and erratum.id not in asked]:
        yield f"{witness.path}: no tool was asked about {len(unproven)} errata: {few(unproven, _FEW)}"
    if gone := [erratum for erratum in asked if erratum not in ids]:
        yield f"{witness.path}: {len(gone)} of its errata are not in the database: {few(gone, _FEW)}"
