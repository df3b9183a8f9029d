"""The peers and tools that agree with the database about a layout or a format, in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ptxmma.catalog.evidence import LayoutEvidence
from ptxmma.generator.emit.docs import rest


def sentence(proofs: Iterable[LayoutEvidence]) -> str:
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
    return f"{_projects(agreeing, alone=not chips) or asked}{differ}; {ran}.{stale}"


def _projects(agreeing: Counter[str], *, alone: bool) -> str:
    if not agreeing:
        return ""
    names = [f"{peer} ({count:,} {'definition' if count == 1 else 'definitions'})" for peer, count in agreeing.items()]
    return f"Agrees with {_listed(names)}" + (", the only witness" if alone and len(names) == 1 else "")


def _listed(words: list[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
