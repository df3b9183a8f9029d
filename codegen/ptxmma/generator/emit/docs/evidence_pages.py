"""The pages of the evidence, from ``spec/evidence/``: the witnesses, the questions and the answers; the other projects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ptxmma.catalog.evidence import Evidence, LayoutEvidence, Summary, witnesses
from ptxmma.catalog.evidence.witnesses import Memory, Observation, Tool, Unknown, Witness
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.docs import family, rest, struct_tables
from ptxmma.model import InstructionSet

# --- witnesses --------------------------------------------------------------------------------------------------------------


#: Of mutants, the totals of the witnesses that know nothing of the spec begin so; the others are checks of the spec's own consistency.
_INDEPENDENT, _OWN = "independent: ", "own: "
#: Digits of a digest that tell files apart.
_SHORT = 12


def evidence_page(catalog: Catalog, sources: Mapping[str, Witness], summary: Summary) -> dict[str, Any]:
    """The data of the page; parts whose witness was not asked are empty."""
    proofs = {instruction.canonical: summary.of(instruction.canonical) for instruction in catalog.all()}
    totals: dict[str, Any] = {name: rest.totals(witness.run) for name, witness in sources.items()}
    return totals | {
        "releases": sum(tool.kind == "assembler" for tool in summary.tools),
        "tools": witness_table(summary.tools),
        "families": rest.table(
            ("Family", "Instructions", "Assembled", "Run", "as one instruction", "CuTe agrees", "Not executed"), _families(catalog, proofs)
        ),
        "chip": _chip(catalog, sources[witnesses.SILICON], proofs, summary),
        "caught": _caught(sources["mutation"]),
        "stale": sum(bool(proof.stale) for proof in proofs.values()),
        "unproven": sum(not proof.assembled for proof in proofs.values()),
    }


def witness_table(tools: Iterable[Tool], *, without: Collection[str] = ()) -> str:
    """The witnesses; a digest is cut to its first digits."""
    return struct_tables.table(
        tools,
        titles={"name": "Witness", "sha256": "SHA-256", "date": "Asked on"},
        cells={"sha256": lambda tool: rest.code(tool.sha256[:_SHORT])},
        without=("kind", *without),
    )


def form_table(entry: InstructionSet, rows: Sequence[family.Row], summary: Summary) -> str:
    """The evidence for each form of an instruction, for the page of its family; empty without witnesses."""
    if not summary.tools:
        return ""
    header = ("Form", "Variants", "Assembled by CUDA", "On a chip", "CuTe")
    return rest.table(header, (_form(entry, row, summary) for row in rows), kind="evidence")


def _form(entry: InstructionSet, row: family.Row, summary: Summary) -> Sequence[str]:
    proofs = [summary.of(instruction.canonical) for instruction in row.members]
    releases = list(dict.fromkeys(cuda for proof in proofs for cuda in proof.assembled))
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}" if releases else "none"
    ways = Counter("not executed" if not proof.executed else " or ".join({run.how: None for run in proof.executed}) for proof in proofs)
    ran = _counted(dict(sorted(ways.items())), len(proofs))
    agree = _counted({"the same": sum(bool(proof.peers) for proof in proofs)}, len(proofs)) or rest.NOTHING
    return rest.code(family.pattern(entry, row)), str(len(proofs)), rest.text(span), ran, agree


def _counted(counts: dict[str, int], of: int) -> str:
    """``"as one instruction"`` where all are alike, otherwise ``"12 as one instruction, 4 not executed"``."""
    return ", ".join(what if count == of else f"{count} {what}" for what, count in counts.items() if count)


def _families(catalog: Catalog, proofs: dict[str, Evidence]) -> Iterator[Sequence[str]]:
    grouped: dict[str, list[Evidence]] = defaultdict(list)
    for instruction in catalog.all():
        grouped[instruction.family].append(proofs[instruction.canonical])
    for name, group in grouped.items():
        counts = (
            len(group),
            sum(bool(proof.assembled) for proof in group),
            sum(bool(proof.executed) for proof in group),
            sum(bool(proof.executed) and all(run.native for run in proof.executed) for proof in group),
            sum(bool(proof.peers) for proof in group),
            sum(not proof.executed for proof in group),
        )
        yield rest.link(name, rest.label("family", name)), *map(str, counts)


def _chip(catalog: Catalog, witness: Witness, proofs: dict[str, Evidence], summary: Summary) -> dict[str, Any]:
    """The values for a chip beside the totals; empty if none was asked."""
    if witness.run is None:
        return {}
    replaced = {name: run.machine for name, proof in proofs.items() for run in proof.executed if run.native is False}
    return {
        "name": rest.text(next(tool.name for tool in witness.run.tools if tool.kind == "chip")),
        "layouts": len(summary.layouts),
        "all_layouts": len(catalog.database.layouts),
        "replaced": rest.table(("Machine instructions", "Carry out"), _replaced(catalog, replaced)),
        "memory": struct_tables.table(
            witness.of(Memory), cells={"operand": lambda run: run.operand.upper(), "launches": lambda run: f"{run.launches:,}"}
        ),
        "observations": struct_tables.table(witness.of(Observation), first=("question", "instructions")),
    }


def _replaced(catalog: Catalog, replaced: dict[str, tuple[str, ...]]) -> Iterator[Sequence[str]]:
    """The machine instructions by family and shape, with the PTX instructions that they carry out."""
    grouped: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for instruction in catalog.all():
        if instruction.canonical in replaced:
            grouped[instruction.family, instruction.variant.shape][" or ".join(replaced[instruction.canonical])].append(
                instruction.canonical
            )
    for (kind, shape), machines in grouped.items():
        for machine, names in machines.items():
            shown = "ordinary instructions" if machine == "none" else rest.code(machine)
            instead = f"{rest.code(names[0])} and {len(names) - 1} more of {kind} {shape}" if len(names) > 1 else rest.code(names[0])
            yield shown, instead


def _caught(witness: Witness) -> dict[str, Any]:
    """The witnesses that contradict mutants first, and their shares; empty if none were tried."""
    if witness.run is None:
        return {}
    totals = witness.run.totals
    groups = {
        start: {name.removeprefix(start): count for name, count in totals.items() if name.startswith(start)}
        for start in (_INDEPENDENT, _OWN)
    }
    rows = [
        (rest.text(name), "yes" if start == _INDEPENDENT else "no", f"{count:,}")
        for start, counts in groups.items()
        for name, count in counts.items()
    ]
    return {
        "table": rest.table(("First contradicted by", "Independent of the spec", "Mutants"), rows),
        "independent": _share(sum(groups[_INDEPENDENT].values()), totals.get("tried", 0)),
        "own": _share(sum(groups[_OWN].values()), totals.get("tried", 0)),
    }


def _share(count: int, of: int) -> str:
    return f"{count:,} ({count / max(1, of):.0%})"


# --- other projects ---------------------------------------------------------------------------------------------------------


def peers(witness: Witness) -> dict[str, Any]:
    """The data of the page; the witness must have a run."""
    assert witness.run is not None
    return {
        "date": rest.text(witness.run.date),
        "tools": witness_table(witness.run.tools, without=("date",)),
        "totals": rest.totals(witness.run),
        "unknown": struct_tables.table(witness.of(Unknown), code=("instruction",)),
    }


# --- agreement on a layout --------------------------------------------------------------------------------------------------


def agreement(proofs: Iterable[LayoutEvidence]) -> str:
    """The witnesses of layouts that one picture shows: the other projects with their definitions, and the chips."""
    known = list(proofs)
    agreeing: Counter[str] = Counter()
    for proof in known:
        agreeing.update(proof.agreeing)
    differing = [definition for proof in known for definition in proof.differing]
    chips = dict.fromkeys(run.chip for proof in known for run in proof.executed)
    differ = f"; {rest.codes(differing)} {'differs' if len(differing) == 1 else 'differ'}" if differing else ""
    stale = " A formula has changed since." if any(proof.stale for proof in known) else ""
    ran = f"run on {_listed([rest.text(chip) for chip in chips])}" if chips else "not run on a chip"
    asked = "No other project agrees" if differing else "Compared with no other project"
    origins = dict.fromkeys(proof.origin for proof in known if proof.origin)
    alone = f" One source: {_listed([rest.text(origin) for origin in origins])}." if origins else ""
    return f"{_projects(agreeing) or asked}{differ}; {ran}.{alone}{stale}"


def _projects(agreeing: Counter[str]) -> str:
    names = [f"{peer} ({count:,} {'definition' if count == 1 else 'definitions'})" for peer, count in agreeing.items()]
    return f"Agrees with {_listed(names)}" if names else ""


def _listed(words: list[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
