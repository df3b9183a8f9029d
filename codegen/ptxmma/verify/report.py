"""The answers of the assemblers as evidence: ``spec/evidence/assembler.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema

from ptxmma import paths, ptx
from ptxmma.evidence import facts
from ptxmma.instructions import Catalog
from ptxmma.verify import matrix, negative
from ptxmma.verify.assemblers import Assembler
from ptxmma.verify.matrix import Column, Difference, Subject
from ptxmma.verify.negative import Disagreement, Neighbours

SCHEMA = paths.SCHEMAS / "evidence_assembler.schema.json"

#: A report as plain data; its schema says what stands in it.
Report = Mapping[str, Any]


def stale(report: Report, catalog: Catalog) -> list[str]:
    """The families of a catalog that the report's answers are not, or no longer, about."""
    return facts.stale(report["facts"], catalog)


def compose(
    date: str,
    subject: Subject,
    columns: Sequence[Column],
    differences: Sequence[Difference],
    neighbours: Mapping[str, Neighbours],
    disagreements: Sequence[Disagreement],
) -> Report:
    """The report of a run; the same answers give the same report."""
    catalog = subject.catalog
    assemblers = list(dict.fromkeys(column.assembler for column in columns))
    targets = [column.target for column in columns]
    asked = {found.family for found in subject.instructions}
    return {
        "kind": "assembler evidence",
        "date": date,
        "assemblers": [_assembler(assembler, columns) for assembler in assemblers],
        "versions": list(dict.fromkeys(version for each in assemblers for version in matrix.versions_of(catalog, each))),
        "facts": {family: sha256 for family, sha256 in facts.accepted(catalog).items() if family in asked},
        "asked": dict(matrix.asked(columns)),
        "answers": _classes(subject, columns),
        "explained": [_difference(each) for each in differences if each.explained],
        "disagreements": [_difference(each) for each in differences if not each.explained],
        "negative": {
            "families": {
                family: {
                    "assemblers": {name: each.cuda for name, each in negative.asked_of(catalog, family, assemblers, targets).items()},
                    "lines": len(lines),
                    "sha256": facts.of_lines(lines),
                }
                for family, lines in neighbours.items()
            },
            "explained": _disagreements(each for each in disagreements if each.erratum),
            "disagreements": _disagreements(each for each in disagreements if not each.erratum),
        },
    }


def _assembler(assembler: Assembler, columns: Iterable[Column]) -> dict[str, Any]:
    targets = [column.target for column in columns if column.assembler == assembler]
    return {"cuda": assembler.cuda, "build": assembler.build, "ptx": assembler.ptx, "sha256": assembler.sha256, "targets": targets}


def _classes(subject: Subject, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """The lines by what was said of them: CUDA release -> target -> first version; a target that is not there refuses."""
    classes: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    versions = {column.assembler: matrix.versions_of(subject.catalog, column.assembler) for column in columns}
    for line, text in enumerate(subject.lines.texts):
        said = tuple(
            (column.assembler.cuda, column.target, _first(column.accepted[line], versions[column.assembler]))
            for column in columns
            if column.accepted[line]
        )
        classes.setdefault(said, []).append(ptx.compact(text))
    found = []
    for said, lines in classes.items():
        accepted: dict[str, dict[str, str]] = {}
        for cuda, target, first in said:
            accepted.setdefault(cuda, {})[target] = first
        found.append({"accepted": accepted, "lines": lines})
    return found


def _first(accepted: Sequence[str], versions: Sequence[str]) -> str:
    """The first of the versions that accept; all of them where one in between refuses."""
    return matrix.first_version(accepted, versions) or " ".join(accepted)


def _difference(each: Difference) -> dict[str, Any]:
    return {**each._asdict(), "lines": [ptx.compact(line) for line in each.lines]}


def _disagreements(found: Iterable[Disagreement]) -> list[dict[str, Any]]:
    """Lines that were answered alike, and that one erratum explains, stand together."""
    classes: dict[Disagreement, list[str]] = {}
    for each in found:
        classes.setdefault(each._replace(line=""), []).append(ptx.compact(each.line))
    return [
        {
            "erratum": said.erratum,
            "cuda": said.cuda,
            "version": said.version,
            "targets": " ".join(said.targets),
            "accepted": said.accepted,
            "said": said.said,
            "lines": lines,
        }
        for said, lines in classes.items()
    ]


def check(report: Report) -> None:
    """Hold a report against its schema.

    Raises:
        jsonschema.ValidationError: it does not fit.
    """
    jsonschema.validate(report, json.loads(SCHEMA.read_text(encoding="utf-8")))


def text(report: Report) -> str:
    """A report as JSON, checked; the same report gives the same text."""
    check(report)
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def read(path: Path) -> Report:
    """Read a report, checked.

    Raises:
        OSError: it cannot be read.
        jsonschema.ValidationError: it is no report.
    """
    report: Report = json.loads(path.read_text(encoding="utf-8"))
    check(report)
    return report
