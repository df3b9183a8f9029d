"""Stage 4, evidence: the reports in ``spec/evidence/`` -> what stands behind each instruction and layout, and what is wrong or stale."""

from __future__ import annotations

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import msgspec
import yaml

from ptxmma import paths
from ptxmma.catalog.evidence_summary import Executed, Held, LayoutEvidence, Row, Summary, Tool
from ptxmma.catalog.instructions import Catalog, Instruction, UnknownInstruction
from ptxmma.catalog.requirements import version_key
from ptxmma.evidence import facts
from ptxmma.evidence.assembler import Assembler
from ptxmma.evidence.corpus import Corpus
from ptxmma.evidence.peers import Report as Peers
from ptxmma.evidence.silicon import Beside, Execution, Silicon
from ptxmma.model import Layout

#: Each report, ``<name>.json`` with the schema ``evidence_<name>.schema.json``, and what makes it.
MADE_BY = {
    "assembler": "make verify",
    "silicon": "python -m ptxmma_proof --silicon --report",
    "peers": "python -m ptxmma_proof --peers --report",
    "examples": "python -m ptxmma_proof --reference DIR --report",
    "mutation": "make mutate",
    "corpus": "make corpus",
}
#: The structures of those that have one; the others are plain data.
_STRUCTURES: dict[str, type[Assembler] | type[Silicon] | type[Peers] | type[Corpus]] = {
    "assembler": Assembler,
    "silicon": Silicon,
    "peers": Peers,
    "corpus": Corpus,
}
#: Beside the reports' folder: the assemblers that are asked.
PINS = "assemblers.yaml"
#: Names and faults that a message lists.
_FEW = 3
_MOST = 20
#: Targets by CUDA release.
_Answers = dict[str, tuple[str, ...]]


class Fault(NamedTuple):
    """What is wrong in a report, and where: ``"instructions/12/launches"``."""

    place: str
    what: str


class Finding(NamedTuple):
    """A sentence about a report; ``error``: it cannot be what a run made, or cannot be read.  Otherwise it is missing or stale."""

    text: str
    error: bool = False

    def __str__(self) -> str:
        return self.text


class EvidenceError(ValueError):
    """Reports that cannot be used; ``findings`` says everything that is wrong with them."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = list(findings)
        super().__init__("\n".join(map(str, self.findings)))


class Reports:
    """The reports of a folder; those that are not there are empty.

    Attributes:
        folder: where they lie.
        broken: what is wrong with those that cannot be used; they count as not there.
        missing: the names of those that are not there.
        examples, mutation: plain data.
        assembler, silicon, peers, corpus: None where they are not there.
    """

    def __init__(self, folder: Path) -> None:
        """Read them, and hold them against their schemas."""
        self.folder = folder
        told: dict[str, Any] = {}
        self.broken: list[Finding] = []
        self.missing: list[str] = []
        for name in MADE_BY:
            path = folder / f"{name}.json"
            if not path.is_file():
                self.missing.append(name)
                continue
            report, faults = _read(path, name)
            if faults:
                self.broken += _shown(path, faults, name)
            else:
                told[name] = report
        self.examples: dict[str, Any] = told.get("examples", {})
        self.mutation: dict[str, Any] = told.get("mutation", {})
        self.assembler: Assembler | None = told.get("assembler")
        self.silicon: Silicon | None = told.get("silicon")
        self.peers: Peers | None = told.get("peers")
        self.corpus: Corpus | None = told.get("corpus")


# --- reading ----------------------------------------------------------------------------------------------------------------


def _read(path: Path, name: str) -> tuple[Any, list[Fault]]:
    """A report as its structure, or else as plain data, and where it breaks its schema."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        return None, [Fault(f"line {error.lineno}, column {error.colno}", f"it is no JSON: {error.msg}")]
    except (OSError, UnicodeDecodeError) as error:
        return None, [Fault("", f"it cannot be read: {error}")]
    faults = [_fault(error) for error in _validator(name).iter_errors(told)]
    other = next((each for each in MADE_BY if each != name and _validator(each).is_valid(told)), "") if faults else ""
    if other:
        return told, [Fault("", f"it is a report of another kind, that of {other}.json")]
    if name in _STRUCTURES and not faults:
        try:
            return msgspec.convert(told, _STRUCTURES[name]), []
        except msgspec.ValidationError as error:  # to a schema 2.0 is an integer
            return told, [Fault("", str(error))]
    return told, faults


@functools.cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((paths.SCHEMAS / f"evidence_{name}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def _fault(error: jsonschema.ValidationError) -> Fault:
    """An error of a schema: the place, what stands there, and what is allowed."""
    place, wanted, schema = "/".join(map(str, error.absolute_path)), error.validator_value, error.schema
    if error.validator == "additionalProperties" and isinstance(error.instance, dict) and isinstance(schema, dict):
        allowed = list(schema.get("properties", {}))
        unknown = [key for key in error.instance if key not in allowed]
        return Fault(place, f"unknown key {', '.join(map(repr, unknown))}; allowed: {', '.join(allowed)}")
    if error.validator == "required" and isinstance(wanted, list) and isinstance(error.instance, dict):
        missing = [key for key in wanted if key not in error.instance]
        return Fault(place, f"it lacks {', '.join(map(repr, missing))}")
    allowed_here = {"type": "of type", "enum": "one of", "const": "exactly", "pattern": "what matches", "minimum": "at least"}
    shown = repr(error.instance)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    if error.validator in allowed_here:
        return Fault(place, f"{shown} is not allowed; it must be {allowed_here[error.validator]} {wanted}")
    return Fault(place, f"{shown}: {error.message if len(error.message) <= 200 else f'it breaks {error.validator} {wanted}'}")


def _shown(path: Path, faults: Iterable[Fault], name: str) -> Iterator[Finding]:
    """Faults of a file as sentences, each once: the first of many tell what is wrong with the rest."""
    found = list(dict.fromkeys(faults))
    for fault in found[:_MOST]:
        yield Finding(f"{path}: {fault.place or 'the whole'}: {fault.what}", error=True)
    if len(found) > _MOST:
        yield Finding(f"{path}: and {len(found) - _MOST} more places are wrong.", error=True)
    if found:
        yield Finding(f"{path}: a report is never edited; make it again with `{_command(path, name)}`.", error=True)


def _command(path: Path, name: str) -> str:
    command = MADE_BY[name]
    return f"{command} {path}" if command.endswith("--report") else command


# --- what is wrong, missing or stale ----------------------------------------------------------------------------------------


def findings(catalog: Catalog) -> list[Finding]:
    """What is to be said of the reports beside a database, in sentences: broken ones, stale ones, missing ones."""
    told: Reports | None = catalog.database.memo.get("reports")
    if told is None:
        return []
    found = list(told.broken)
    old = list(stale(catalog, told))
    for name, what in old:
        path = told.folder / f"{name}.json"
        found.append(Finding(f"{path}: it is stale: {what}; make it again with `{_command(path, name)}`."))
    if len(told.missing) == len(MADE_BY):
        return [Finding(f"{told.folder}: there are no reports: nobody was asked about this database.")]
    for name in told.missing:
        path = told.folder / f"{name}.json"
        found.append(Finding(f"{path}: it is missing, so that nothing of it is known; make it with `{_command(path, name)}`."))
    return found


def stale(catalog: Catalog, told: Reports) -> Iterator[tuple[str, str]]:
    """The reports that were made with other facts, by name, and about what the database says something else today."""
    if told.assembler:
        families = facts.stale(told.assembler.facts, catalog)
        if families:
            yield "assembler", f"the database asks something else today about {_few(families)}"
        if told.assembler.errata != facts.explaining(catalog):
            yield "assembler", "the errata say something else today of the lines on which assemblers and database differ"
        yield from (("assembler", what) for what in _stale_programs(told.assembler, told.folder.parent / PINS))
    if told.silicon:
        yield from (("silicon", what) for what in _stale_silicon(catalog, told.silicon))
    if told.peers:
        yield from (("peers", what) for what in _stale_peers(catalog, told.peers))
    if told.examples:
        spellings = [name for example in told.examples["examples"] for name in example["instructions"]]
        if told.examples["facts"] != facts.printed(catalog, spellings):
            yield "examples", "the database says something else today of the instructions in the manual's examples, or of the manual"
    if told.corpus and (families := facts.stale(told.corpus.facts, catalog)):
        yield "corpus", f"the database says something else today about {_few(families)}"


def _stale_programs(report: Assembler, path: Path) -> Iterator[str]:
    """The programs that are pinned beside the spec and are not those that were asked; nothing where none are pinned."""
    if not path.is_file():
        return
    pinned = {str(pin["cuda"]): pin["binary_sha256"] for pin in yaml.safe_load(path.read_text(encoding="utf-8"))["assemblers"]}
    asked = {tool.cuda: tool.sha256 for tool in report.assemblers}
    for cuda in sorted({*pinned, *asked}, key=version_key):
        if pinned.get(cuda) != asked.get(cuda):
            what = "another program" if cuda in pinned and cuda in asked else "no program that was asked" if cuda in pinned else "none"
            yield f"{path.name} pins {what} of CUDA {cuda}"


def _stale_silicon(catalog: Catalog, report: Silicon) -> Iterator[str]:
    ran = report.executed
    runs = [found for found in catalog.all() if report.target in found.accepted_by()]
    changed = [found.canonical for found in catalog.all() if found.canonical in ran and ran[found.canonical].facts != facts.executed(found)]
    if changed:
        yield f"the database says something else today of {len(changed)} of {len(ran)} instructions: {_few(changed)}"
    if lacking := [found.canonical for found in runs if found.canonical not in ran]:
        yield f"{report.target} runs {len(lacking)} instructions that it does not have: {_few(lacking)}"
    if refused := ran.keys() - {found.canonical for found in runs}:
        yield f"the database says that {report.target} does not run {len(refused)} instructions that it has: {_few(sorted(refused))}"


def _stale_peers(catalog: Catalog, report: Peers) -> Iterator[str]:
    known = {found.canonical: found for found in catalog.all()}
    changed = [
        atom.atom for atom in report.atoms if atom.instruction in known and atom.facts != _operands(known[atom.instruction], atom.form)
    ]
    if changed:
        yield f"the database says something else today of the operands of {len(changed)} of {len(report.atoms)} atoms: {_few(changed)}"
    if not report.assembled:
        yield "no assembler was asked about the atoms' text: `make assemblers` first"
    if report.facts != facts.shared_memory(catalog.database):
        yield "the database says something else today of matrices in shared memory"
    if report.pytorch and report.pytorch.facts != facts.compressed(catalog):
        yield "the database says something else today of sparsity, with which PyTorch's conversions were compared"
    held = []
    for entry in report.unknown:
        try:
            held.append(catalog.find(entry.instruction).canonical)
        except UnknownInstruction:
            continue
    if held:
        yield f"the database has {len(held)} instructions today that it calls unknown: {_few(held)}"


def _few(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:_FEW]) + (f" and {len(found) - _FEW} more" if len(found) > _FEW else "")


# --- what stands behind each instruction ------------------------------------------------------------------------------------


def attach(catalog: Catalog, folder: Path) -> None:
    """Put the reports of a folder beside a database.

    A broken report does not keep anybody from reading the database, so that the report can be made again: :func:`findings` says what
    is wrong, and whoever asks for the evidence gets an :class:`EvidenceError`.
    """
    told = Reports(folder)
    catalog.database.memo["reports"] = told
    catalog.database.memo["evidence"] = EvidenceError(told.broken) if told.broken else summary(catalog, told)


def attached(catalog: Catalog) -> Reports | None:
    """The reports that were put beside a database.

    Raises:
        EvidenceError: some cannot be used.
    """
    found: Reports | None = catalog.database.memo.get("reports")
    if found is not None and found.broken:
        raise EvidenceError(found.broken)
    return found


def summary(catalog: Catalog, told: Reports) -> Summary:
    """What the reports say of each instruction and layout of a catalog."""
    accepted = _accepted(told.assembler)
    classes: dict[tuple[tuple[str, tuple[str, ...]], ...], int] = {}
    asked_before = facts.stale(told.assembler.facts, catalog) if told.assembler else []
    executed = told.silicon.executed if told.silicon else {}
    atoms = _atoms(told.peers)
    differing = {(entry.subject, entry.instruction) for entry in told.peers.differences} if told.peers else set()
    rows = {}
    for instruction in catalog.all():
        name = instruction.canonical
        answers = tuple(accepted.get(name, {}).items())
        old = ["assembler"] if instruction.family in asked_before else []
        ran = executed.get(name)
        if ran and ran.facts != facts.executed(instruction):
            old.append("silicon")
        compared = atoms.get(name, {})
        if any(digest != _operands(instruction, form) for form, digest in compared.values()):
            old.append("peers")
        rows[name] = Row(
            assembled=classes.setdefault(answers, len(classes)),
            executed=(_executed(told.silicon, ran),) if told.silicon and ran else (),
            peers=tuple(atom for atom in compared if (atom, name) not in differing),
            differing=tuple(atom for atom in compared if (atom, name) in differing),
            stale=tuple(old),
        )
    return Summary(tools=tuple(_tools(told)), answers=tuple(map(dict, classes)), held=_layouts(catalog, told, rows), instructions=rows)


def _accepted(report: Assembler | None) -> dict[str, _Answers]:
    """The targets that accept all operand forms of an instruction, by CUDA release."""
    found: dict[str, list[_Answers]] = defaultdict(list)
    for entry in report.answers if report else ():
        targets = {cuda: tuple(told) for cuda, told in entry.accepted.items()}
        for line in entry.lines:
            found[line.partition(" ")[0]].append(targets)
    return {name: _common(forms) for name, forms in found.items()}


def _common(forms: list[_Answers]) -> _Answers:
    first, *others = forms
    kept = {cuda: tuple(name for name in names if all(name in form.get(cuda, ()) for form in others)) for cuda, names in first.items()}
    return {cuda: names for cuda, names in kept.items() if names}


def _atoms(report: Peers | None) -> dict[str, dict[str, tuple[str, str]]]:
    """Instruction -> atom -> operand form and digest of what the atom was compared with."""
    found: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for atom in report.atoms if report else ():
        found[atom.instruction][atom.atom] = atom.form, atom.facts
    return found


def _operands(instruction: Instruction, name: str) -> str:
    return next((facts.operands(instruction, form) for form in instruction.forms if form.name == name), "")


def _executed(report: Silicon, row: Execution | Beside) -> Executed:
    machine = row.machine if isinstance(row, Execution) else ()
    return Executed(chip=report.chip.name, launches=row.launches, wrong=row.wrong, machine=machine)


def _layouts(catalog: Catalog, told: Reports, rows: Mapping[str, Row]) -> dict[str, LayoutEvidence]:
    """What the reports say of each layout; those of which they say nothing are left out."""
    ran: Counter[str] = Counter()
    old: dict[str, set[str]] = defaultdict(set)
    for instruction in catalog.all():
        row = rows[instruction.canonical]
        for name in set().union(*_layouts_of(instruction)):
            ran[name] += bool(row.executed)
            old[name] |= set(row.stale) & {"silicon", "peers"}
    held = {row.layout: row for row in told.silicon.layouts} if told.silicon else {}
    agreeing, differing = _compared(catalog, told.peers)
    found = {}
    for name in catalog.database.layout:
        row_of = held.get(name)
        executed = (
            (Held(chip=told.silicon.chip.name, launches=row_of.launches, wrong=row_of.wrong, instructions=ran[name]),)
            if told.silicon and row_of
            else ()
        )
        peers = {"CuTe": agreeing[name]} if agreeing[name] else {}
        if executed or peers or differing[name]:
            found[name] = LayoutEvidence(
                executed=executed, agreeing=peers, differing=tuple(differing[name]), stale=tuple(sorted(old[name], reverse=True))
            )
    return found


def _layouts_of(instruction: Instruction) -> list[set[str]]:
    """The names of the layouts of each operand form."""
    return [{operand.layout.name for operand in form.operands if isinstance(operand.layout, Layout)} for form in instruction.forms]


def _compared(catalog: Catalog, report: Peers | None) -> tuple[Counter[str], dict[str, list[str]]]:
    """For each layout: how many atoms lay an operand out in the same way, and which do not."""
    agreeing: Counter[str] = Counter()
    differing: dict[str, list[str]] = defaultdict(list)
    if report is None:
        return agreeing, differing
    known = {found.canonical: found for found in catalog.all()}
    different = {(entry.subject, entry.operand) for entry in report.differences}
    for atom in report.atoms:
        form = next((form for form in known[atom.instruction].forms if form.name == atom.form), None) if atom.instruction in known else None
        for operand in form.operands if form else ():
            if operand.name in atom.layouts and operand.layout is not None:
                if (atom.atom, operand.name) in different:
                    differing[operand.layout.name].append(atom.atom)
                else:
                    agreeing[operand.layout.name] += 1
    return agreeing, differing


def _tools(told: Reports) -> Iterator[Tool]:
    if told.assembler:
        for each in told.assembler.assemblers:
            yield Tool(kind="assembler", name=f"CUDA {each.cuda}", version=each.build, sha256=each.sha256, date=told.assembler.date)
    if told.silicon:
        chip, compiler = told.silicon.chip, told.silicon.compiler
        date = told.silicon.date
        yield Tool(kind="chip", name=chip.name, version=f"driver {chip.driver}", date=date)
        version = f"CUDA {compiler.cuda}, nvcc {compiler.nvcc}; SHA-256 of its ptxas"
        yield Tool(kind="compiler", name=f"compiler for {chip.name}", version=version, sha256=compiler.ptxas_sha256, date=date)
    if told.peers:
        headers, torch, date = told.peers.cutlass, told.peers.pytorch, told.peers.date
        yield Tool(kind="peer", name=headers.package, version=headers.version, sha256=headers.sha256, date=date)
        yield Tool(kind="compiler", name=f"compiler for {headers.package}", version=headers.compiler, date=date)
        if torch:
            yield Tool(kind="peer", name="PyTorch", version=torch.version, date=date)
