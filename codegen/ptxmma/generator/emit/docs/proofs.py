"""The page of the evidence: who was asked what, and what came of it, from the reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from ptxmma.catalog.evidence_summary import Evidence, Summary
from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence.assembler import Assembler
from ptxmma.evidence.silicon import Silicon
from ptxmma.generator.emit.docs import family, rest
from ptxmma.generator.evidence import Reports
from ptxmma.model import InstructionSet

#: Digits of a digest that tell files apart.
_SHORT = 12


def page(catalog: Catalog, told: Reports, summary: Summary) -> dict[str, Any]:
    """The data of the page; parts whose report is not there are empty."""
    proofs = {instruction.canonical: summary.of(instruction.canonical) for instruction in catalog.all()}
    return {
        "instructions": f"{len(proofs):,}",
        "tools": rest.table(("Witness", "Version", "SHA-256", "Asked on"), _tools(summary)),
        "families": rest.table(
            ("Family", "Instructions", "Assembled", "Run on a chip", "natively", "CuTe agrees", "Not executed"), _families(catalog, proofs)
        ),
        "assembler": _assembler(told.assembler) if told.assembler else {},
        "silicon": _silicon(catalog, told.silicon, proofs) if told.silicon else {},
        "examples": told.examples.get("counts", {}),
        "mutation": _mutation(told.mutation),
        "stale": sum(bool(proof.stale) for proof in proofs.values()),
    }


def forms(entry: InstructionSet, rows: Sequence[family.Row], told: Summary) -> str:
    """What stands behind each form of an instruction, for the page of its family; nothing where nobody was asked."""
    if not told.tools:
        return ""
    return rest.table(("Form", "Variants", "Assembled by CUDA", "On a chip", "CuTe"), (_form(entry, row, told) for row in rows))


def _form(entry: InstructionSet, row: family.Row, told: Summary) -> Sequence[str]:
    found = [told.of(instruction.canonical) for instruction in row.members]
    releases = list(dict.fromkeys(cuda for proof in found for cuda in proof.assembled))
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}" if releases else "none"
    ways = Counter("not executed" if not proof.executed else " or ".join({one.how: None for one in proof.executed}) for proof in found)
    ran = _counted(dict(sorted(ways.items())), len(found))
    agree = _counted({"the same": sum(bool(proof.peers) for proof in found)}, len(found)) or rest.NOTHING
    return rest.code(family.pattern(entry, row)), str(len(found)), rest.text(span), ran, agree


def _counted(counts: dict[str, int], of: int) -> str:
    """``"natively"`` where it is all of them, ``"12 natively, 4 not executed"`` else."""
    return ", ".join(what if count == of else f"{count} {what}" for what, count in counts.items() if count)


def _tools(summary: Summary) -> Iterator[Sequence[str]]:
    for tool in summary.tools:
        yield rest.text(tool.name), rest.text(tool.version), rest.code(tool.sha256[:_SHORT]), rest.text(tool.date)


def _families(catalog: Catalog, proofs: dict[str, Evidence]) -> Iterator[Sequence[str]]:
    grouped: dict[str, list[Evidence]] = defaultdict(list)
    for instruction in catalog.all():
        grouped[instruction.family].append(proofs[instruction.canonical])
    for name, found in grouped.items():
        counts = (
            len(found),
            sum(bool(proof.assembled) for proof in found),
            sum(bool(proof.executed) for proof in found),
            sum(bool(proof.executed) and all(one.native for one in proof.executed) for proof in found),
            sum(bool(proof.peers) for proof in found),
            sum(not proof.executed for proof in found),
        )
        yield rest.link(name, rest.label("family", name)), *map(str, counts)


def _assembler(report: Assembler) -> dict[str, str]:
    return {
        "answers": f"{sum(report.asked.values()):,}",
        "releases": str(len(report.assemblers)),
        "disagreements": str(sum(max(1, len(each.lines)) for each in report.differences)),
        "neighbours": f"{sum(space.lines for space in report.negative):,}",
        "neighbour_answers": f"{sum(space.lines * len(space.answers) for space in report.negative):,}",
        "unexplained": str(sum(len(each.lines) for each in report.disagreements if not each.erratum)),
        "explained": f"{sum(len(each.lines) for each in report.disagreements if each.erratum):,}",
    }


def _silicon(catalog: Catalog, report: Silicon, proofs: dict[str, Evidence]) -> dict[str, Any]:
    replaced = {name: one.machine for name, proof in proofs.items() for one in proof.executed if one.how == "through other code"}
    return {
        "chip": rest.text(report.chip.name),
        "launches": f"{sum(row.launches for row in report.instructions):,}",
        "replays": f"{sum(len(row.replays) for row in report.instructions):,}",
        "instructions": f"{len(report.instructions):,}",
        "beside": len(report.beside),
        "layouts": str(len(report.layouts)),
        "all_layouts": str(len(catalog.database.layouts)),
        "failures": str(len(report.failures)),
        "replaced": rest.table(("Machine instructions", "Instead of"), _replaced(catalog, replaced)),
        "replaced_count": len(replaced),
        "memory": rest.table(("Operand", "Majorness", "Swizzle", "Types", "Launches", "Base offsets"), _memory(report)),
        "held": rest.table(("Layout", "Launches"), _layouts(catalog, report)),
        "observations": rest.table(("Question", "Instructions", "Tried", "Seen"), _observations(report)),
    }


def _replaced(catalog: Catalog, replaced: dict[str, tuple[str, ...]]) -> Iterator[Sequence[str]]:
    """The machine instructions by family and shape, with the types that they stand for."""
    grouped: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for instruction in catalog.all():
        if instruction.canonical in replaced:
            shape = "m{}n{}k{}".format(*instruction.shape or ())
            grouped[instruction.family, shape][" or ".join(replaced[instruction.canonical])].append(instruction.canonical)
    for (kind, shape), machines in grouped.items():
        for machine, names in machines.items():
            shown = "no tensor-core instruction" if machine == "none" else rest.code(machine)
            instead = f"{rest.code(names[0])} and {len(names) - 1} more of {kind} {shape}" if len(names) > 1 else rest.code(names[0])
            yield shown, instead


def _memory(report: Silicon) -> Iterator[Sequence[str]]:
    grouped: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for row in report.shared_memory:
        grouped[row.operand, row.majorness, row.swizzle].append(row)
    for (operand, majorness, swizzle), rows in sorted(grouped.items()):
        offsets = sorted({offset for row in rows for offset in row.base_offsets})
        yield (
            operand.upper(),
            majorness,
            swizzle,
            rest.codes(row.type for row in rows),
            f"{sum(row.launches for row in rows):,}",
            rest.numbers(offsets),
        )


def _layouts(catalog: Catalog, report: Silicon) -> Iterator[Sequence[str]]:
    launches = {row.layout: row.launches for row in report.layouts}
    for layout in catalog.database.layouts:
        count = launches.get(layout.name)
        yield rest.code(layout.name), f"{count:,}" if count else "not executed"


def _observations(report: Silicon) -> Iterator[Sequence[str]]:
    grouped: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for answer in report.observations:
        grouped[answer.question, answer.tried, answer.seen].append(answer.instruction)
    for (question, tried, seen), names in grouped.items():
        yield rest.text(question), rest.codes(names), rest.text(tried), rest.text(seen)


def _mutation(report: dict[str, Any]) -> dict[str, Any]:
    if not report:
        return {}
    survivors, printed = report["survivors"], report["printed"]
    alive = [*survivors, *printed["survivors"]]
    killed = [(one["name"], one["independent"], sum(one["killed"].values()), one["killed"]) for one in report["witnesses"]]
    return {
        "tried": f"{report['tried']:,}",
        "of": f"{report['all']:,}",
        "contradicted": f"{sum(count for _, _, count, _ in killed):,}",
        "independent": f"{sum(count for _, independent, count, _ in killed if independent):,}",
        "same": len(report["unchanged"]) + len(report["reworded"]),
        "survived": len(survivors),
        "rate": f"{len(survivors) / max(1, report['tried'] - len(report['unchanged']) - len(report['reworded'])):.1%}",
        "unexplained": sum(not one.get("explained") for one in alive),
        "printed": {
            "tried": f"{printed['tried']:,}",
            "of": f"{printed['all']:,}",
            "contradicted": f"{sum(printed['killed'].values()):,}",
            "same": len(printed["unchanged"]) + len(printed["reworded"]),
            "survived": len(printed["survivors"]),
        },
        "killed": rest.table(
            ("First contradicted by", "Independent of the spec", "Mutants", "Checks"),
            (
                (
                    rest.text(name),
                    "yes" if independent else "no",
                    str(count),
                    rest.text(", ".join(f"{key} {n}" for key, n in checks.items())),
                )
                for name, independent, count, checks in killed
            ),
        ),
        "explanations": rest.table(
            ("Mutants", "Of all", "Survived", "Why"),
            (
                (", ".join(map(rest.code, one["mutants"])), str(one["covers"]), str(one["survived"]), rest.text(one["why"]))
                for one in report["explanations"]
            ),
        ),
        "survivors": rest.table(
            ("Mutant", "Why nothing contradicts it"),
            ((rest.code(one["mutant"]), rest.text(one.get("explained", "")) or rest.NOTHING) for one in alive),
        ),
    }
