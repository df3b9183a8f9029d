"""The page of the peers: what CuTe and PyTorch say of the same instructions, from the report of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ptxmma.generator.emit.docs import rest

if TYPE_CHECKING:
    from ptxmma.evidence.peers import Difference, Report


def page(report: Report) -> dict[str, Any]:
    """The data of the page."""
    headers = report.cutlass
    return {
        "date": rest.text(report.date),
        "package": rest.code(f"{headers.package} {headers.version}"),
        "digest": rest.code(headers.sha256),
        "compiler": rest.text(headers.compiler),
        "atoms": len(report.atoms),
        "places": f"{report.places:,}",
        "asserted": f"{report.asserted:,}",
        "passes": f"{report.passes:,}",
        "shapes": f"{report.shapes:,}",
        "failures": report.failures,
        "agreement": rest.table(
            ("Header", "Atoms", "Instructions", "Operands compared", "Only their shape", "Operands that differ"), _by_header(report)
        ),
        "differences": rest.table(("What", "Operand", "The peer says", "We say", "Places that differ"), _grouped(report.differences)),
        "assembled": rest.table(
            ("Target", "CUDA release", "Accepted", "Refused"),
            (
                (rest.code(one.target), rest.text(one.cuda), str(one.accepted), rest.codes(one.refused) or "none")
                for one in report.assembled
            ),
        ),
        "unknown": rest.table(("Instruction", "Atoms"), _unknown(report)),
        "lacking": rest.table(("Instruction", "n"), ((rest.code(name), rest.numbers(each)) for name, each in report.lacking.items())),
        "lacking_count": sum(map(len, report.lacking.values())),
        "pytorch": _pytorch(report),
    }


def _by_header(report: Report) -> Iterator[Sequence[str]]:
    differing = {(entry.subject, entry.operand) for entry in report.differences}
    for header in dict.fromkeys(atom.file for atom in report.atoms):
        atoms = [atom for atom in report.atoms if atom.file == header]
        operands = [(atom.atom, operand) for atom in atoms for operand in atom.layouts]
        shapes = [(atom.atom, operand) for atom in atoms for operand in atom.shapes]
        yield (
            rest.code(header),
            str(len(atoms)),
            str(len({atom.instruction for atom in atoms})),
            str(len(operands)),
            str(len(shapes)),
            str(len(differing.intersection([*operands, *shapes]))),
        )
    shared = len(report.shared)
    subjects = {entry.subject for entry in report.differences} - {atom.atom for atom in report.atoms}
    wrong = sum(subject.startswith("GMMA::Layout") for subject in subjects)
    yield "layouts and descriptors in shared memory", str(shared), rest.NOTHING, str(shared), "0", str(wrong)


def _grouped(differences: Iterable[Difference]) -> Iterator[Sequence[str]]:
    """Differences that say the same, in one row."""
    groups: dict[tuple[str, str, str], list[Difference]] = {}
    for entry in differences:
        groups.setdefault((entry.operand, entry.theirs, entry.ours), []).append(entry)
    for (operand, theirs, ours), members in groups.items():
        subjects = "\n\n".join(rest.code(entry.subject) for entry in members)
        places = dict.fromkeys(f"{entry.places} of {entry.of}" for entry in members)
        yield subjects, rest.code(operand), rest.text(theirs), rest.text(ours), ", ".join(places)


def _unknown(report: Report) -> Iterator[Sequence[str]]:
    atoms: dict[str, list[str]] = {}
    for entry in report.unknown:
        atoms.setdefault(entry.instruction, []).append(entry.atom.partition("<")[0])
    for instruction, names in atoms.items():
        yield rest.code(instruction), rest.codes(dict.fromkeys(names))


def _pytorch(report: Report) -> dict[str, Any]:
    """PyTorch's conversions; without a version where it was not compared."""
    torch = report.pytorch
    if torch is None:
        return {"version": "", "conversions": "", "refused": ""}
    conversions = (
        (rest.code(one.dtype), rest.text(one.pattern), f"{one.chunks:,}", "yes" if one.agrees else "no") for one in torch.conversions
    )
    refused = ((rest.code(name), rest.text(said)) for name, said in torch.refused.items())
    return {
        "version": rest.text(torch.version),
        "conversions": rest.table(("Type", "Pattern", "Chunks", "Values and metadata agree"), conversions),
        "refused": rest.table(("Type", "PyTorch says"), refused),
    }
