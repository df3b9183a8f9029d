"""Stage 4, evidence: the reports in ``spec/evidence/`` -> what stands behind each instruction, and what of it is stale."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptxmma.evidence import facts, peers, reports
from ptxmma.evidence.peers import Report as Peers
from ptxmma.evidence.silicon import Silicon
from ptxmma.evidence.summary import Executed, Row, Summary, Tool
from ptxmma.instructions import Catalog, Instruction

#: Targets by CUDA release.
_Answers = dict[str, tuple[str, ...]]


class Reports:
    """The reports of a folder; those that are not there are empty."""

    def __init__(self, folder: Path) -> None:
        """Read them.

        Raises:
            ValueError: a file that is no such report.
        """
        assembler, silicon, others, printed, mutated = (
            folder / f"{name}.json" for name in ("assembler", "silicon", "peers", "examples", "mutation")
        )
        self.assembler = _json(assembler)
        self.silicon: Silicon | None = reports.load(silicon, Silicon) if silicon.is_file() else None
        self.peers: Peers | None = peers.load(others) if others.is_file() else None
        self.examples = _json(printed)
        self.mutation = _json(mutated)


def _json(path: Path) -> dict[str, Any]:
    """A report that is read as it is; nothing where there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path}: {error}; make it again with `ptxmma verify`") from None
    return found


def attach(catalog: Catalog, folder: Path) -> None:
    """Put the reports of a folder beside a database, for the emitters.

    Raises:
        ValueError: a file that is no such report.
    """
    told = Reports(folder)
    catalog.database.memo["reports"] = told
    catalog.database.memo["evidence"] = summary(catalog, told)


def attached(catalog: Catalog) -> Reports | None:
    """The reports that were put beside a database."""
    found: Reports | None = catalog.database.memo.get("reports")
    return found


def summary(catalog: Catalog, told: Reports) -> Summary:
    """What the reports say of each instruction of a catalog."""
    accepted = _accepted(told.assembler)
    classes: dict[tuple[tuple[str, tuple[str, ...]], ...], int] = {}
    stale = facts.stale(told.assembler["facts"], catalog) if told.assembler else []
    executed = {row.instruction: row for row in told.silicon.instructions} if told.silicon else {}
    atoms = _atoms(told.peers)
    differing = {(entry.subject, entry.instruction) for entry in told.peers.differences} if told.peers else set()
    rows = {}
    for instruction in catalog.all():
        name = instruction.canonical
        answers = tuple(accepted.get(name, {}).items())
        old = ["assembler"] if instruction.family in stale else []
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
    held = {row.layout: row.launches for row in told.silicon.layouts} if told.silicon else {}
    return Summary(tools=tuple(_tools(told)), answers=tuple(map(dict, classes)), layouts=held, instructions=rows)


def _accepted(report: dict[str, Any]) -> dict[str, _Answers]:
    """The targets that accept all operand forms of an instruction, by CUDA release."""
    found: dict[str, list[_Answers]] = defaultdict(list)
    for entry in report.get("answers", ()):
        targets = {cuda: tuple(told) for cuda, told in entry["accepted"].items()}
        for line in entry["lines"]:
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


def _executed(report: Silicon, row: Any) -> Executed:
    return Executed(chip=report.chip.name, launches=row.launches, wrong=row.wrong, machine=row.machine)


def _tools(told: Reports) -> Iterator[Tool]:
    for each in told.assembler.get("assemblers", ()):
        yield Tool(kind="assembler", name=f"CUDA {each['cuda']}", version=each["build"], sha256=each["sha256"], date=told.assembler["date"])
    if told.silicon:
        chip, compiler = told.silicon.chip, told.silicon.compiler
        version = f"driver {chip.driver}, CUDA {compiler.cuda}"
        yield Tool(kind="chip", name=chip.name, version=version, sha256=compiler.ptxas_sha256, date=told.silicon.date)
    if told.peers:
        headers = told.peers.cutlass
        yield Tool(kind="peer", name=headers.package, version=headers.version, sha256=headers.sha256, date=told.peers.date)
