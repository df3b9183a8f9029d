"""Compares the forms of tcgen05 with the lists of cccl and LLVM, and records what came of it."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import peers
from ptxmma_proof.peers import explanations, forms
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.explanations import Explained
from ptxmma_proof.peers.forms import Form, Listed

#: The operand of a difference about what a peer leaves out.
_UNLISTED = "unlisted"


class Outcome(NamedTuple):
    """The outcome of a comparison."""

    catalog: Catalog
    compared: int
    differences: list[Explained]
    tools: tuple[Tool, ...]
    date: str

    @property
    def agrees(self) -> bool:
        """True if every difference is explained."""
        return not explanations.unexplained(self.differences)

    def words(self) -> Iterator[str]:
        """The comparison in words."""
        for line in explanations.lines(self.differences):
            yield f"{', '.join(line.subjects[:3])} ({len(line.subjects)}), {line.operand}: {line.theirs}; {line.ours}"
            yield f"    explained: {line.why}" if line.why else "    NOT EXPLAINED"
        yield f"{self.compared:,} forms, {len(self.differences)} differences, {explanations.unexplained(self.differences)} unexplained"

    @property
    def record(self) -> list[Line]:
        """The comparison as lines of ``spec/evidence/forms.jsonl``."""
        totals = {"forms": self.compared, "differences": len(self.differences)}
        run = witnesses.Run(date=self.date, spec=self.catalog.database.spec.version, tools=self.tools, totals=totals)
        return [run, *explanations.lines(self.differences)]


def run(catalog: Catalog, date: str, checkout: Path) -> Outcome:
    """Compare a catalog with a checkout of cccl and with the installed LLVM.

    Raises:
        MissingPeerError: cccl's headers or LLVM are not there.
    """
    try:
        from ptxmma_proof.corpus import llvm
        from ptxmma_proof.peers import llvm_forms

        lists = [list(forms.cccl(checkout)), llvm_forms.forms()]
        version = llvm.version()
    except (OSError, ImportError) as error:
        raise peers.MissingPeerError(f"{error}; LLVM comes with: pip install llvmlite") from None
    compared = [forms.compare(catalog, own) for own in lists]
    differences = [each for own, listed in zip(lists, compared, strict=True) for each in _all(own, listed)]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False).stdout
    tools = (Tool(kind="peer", name="cccl", version=commit.strip(), date=date), Tool(kind="peer", name="LLVM", version=version, date=date))
    return Outcome(catalog, sum(each.compared for each in compared), explanations.explain(differences), tools, date)


def _all(own: list[Form], listed: Listed) -> Iterator[Difference]:
    """The differences, and what the peer leaves out, for each family."""
    yield from listed.differences
    lacking: dict[str, list[str]] = defaultdict(list)
    for one in listed.lacking:
        lacking[one.family].append(one.canonical)
    for family, names in lacking.items():
        yield Difference(own[0].peer, family, _UNLISTED, "lists fewer", f"{len(names)} more, {names[0]} for one", len(names), len(names))
