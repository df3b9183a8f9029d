"""The page of differences to other projects: a line for each project, and every difference with the verdict on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ptxmma.catalog.evidence.witnesses import Difference, Report, Witness
from ptxmma.catalog.summaries.listing import few
from ptxmma.generator.emit.docs import errata_page, rest

#: Subjects of a difference that the page names.
_FEW = 4
#: The headings of verdicts, in the order of the page.
_RIGHT = {
    "ours": "the other project errs",
    "theirs": "ptxmma errs",
    "open": "no source and no chip says",
    "both": "both hold",
}


def page(sources: Iterable[Witness]) -> dict[str, Any]:
    """The values for the page's template, from every witness that compares with other projects."""
    compared = [witness for witness in sources if witness.run is not None and witness.run.peers]
    differences: dict[str, list[Difference]] = defaultdict(list)
    for witness in compared:
        for each in witness.of(Difference):
            differences[each.peer].append(each)
    return {
        "peers": rest.table(("Project", "Version or commit", "Definitions compared", "Differ", "Settled"), _tallies(compared)),
        "projects": [
            {"name": peer, "label": rest.label("differences", peer), "differences": [_difference(each) for each in _sorted(found)]}
            for peer, found in sorted(differences.items())
        ],
    }


def _tallies(compared: Iterable[Witness]) -> Iterable[tuple[str, ...]]:
    versions: dict[str, dict[str, None]] = defaultdict(dict)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for witness in compared:
        assert witness.run is not None
        tools = {tool.name: tool.version for tool in witness.run.tools}
        for peer, tally in witness.run.peers.items():
            versions[peer][tools[peer]] = None
            for number, count in enumerate((tally.compared, tally.differing, tally.settled)):
                sums[peer][number] += count
    for peer, counts in sorted(sums.items()):
        yield rest.text(peer), rest.codes(versions[peer]), *(f"{count:,}" for count in counts)


def _sorted(found: Iterable[Difference]) -> list[Difference]:
    return sorted(found, key=lambda each: list(_RIGHT).index(each.right))


def _difference(each: Difference) -> Mapping[str, str]:
    return {
        "title": rest.text(f"{each.operand}: {_RIGHT[each.right]}"),
        "subjects": few([*map(rest.code, each.subjects)], _FEW),
        "theirs": rest.text(each.theirs),
        "ours": rest.text(each.ours),
        "why": rest.text(each.why),
        "answers": _indented(errata_page.answers(each.answers)),
        "report": _indented(_reported(each.report)) if each.report is not None else "",
    }


def _reported(report: Report) -> list[str]:
    """A report as an issue of the other project takes it."""
    return [report.title, "", f"Input: {report.input}", f"Expected: {report.expected}", f"Source: {report.source}"]


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"   {line}" if line else "" for line in lines)
