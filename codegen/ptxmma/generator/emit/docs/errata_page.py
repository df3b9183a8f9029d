"""Errata, by family, and the questions that tools were asked about each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ptxmma.catalog.evidence import Summary
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.generator.emit.docs import rest
from ptxmma.model import Erratum, Spec

#: The fate of code that follows the manual, as a reader asks: does it bite me?
_BITES = {
    "wrong data": "wrong data",
    "refused": "refused by assemblers",
    "accepted": "no: more is accepted",
    "misprint": "no: a misprint",
}


def page(spec: Spec, summary: Summary) -> dict[str, Any]:
    """The values for the page's template: families in the order of their first instruction, then the errata of none."""
    families = dict.fromkeys(entry.family for entry in spec.instructions)
    return {
        "families": [
            {
                "family": family,
                "table": _table(_whole(erratum, summary) for erratum in spec.errata if erratum.family == family),
            }
            for family in (*families, "")
            if any(erratum.family == family for erratum in spec.errata)
        ],
    }


def errata_list(errata: Iterable[Erratum]) -> str:
    """Errata as a table whose rows refer to the page of all errata."""
    return _table(map(_brief, errata))


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    return rest.table(("Does it bite?", "The manual says", "What holds"), rows, kind="errata")


def _brief(erratum: Erratum) -> tuple[str, ...]:
    return rest.link(_BITES[erratum.bites], rest.label("erratum", erratum.id)), _says(erratum), rest.text(erratum.holds)


def _whole(erratum: Erratum, summary: Summary) -> tuple[str, ...]:
    """The row that references lead to, with the evidence."""
    known = f"*How that is known:* {rest.text(erratum.known)}"
    if lines := list(answers(summary.of_erratum(erratum.id))):
        known += f"\n\n{_folded(lines)}"
    name = f".. _{rest.label('erratum', erratum.id)}:\n\n**{_BITES[erratum.bites]}**\n\n{rest.code(erratum.id)}"
    return name, _says(erratum), f"{rest.text(erratum.holds)}\n\n{known}"


def _says(erratum: Erratum) -> str:
    return f"{rest.text(erratum.says)} ({rest.source(erratum.section)})"


def answers(sightings: Iterable[Sighting]) -> Iterator[str]:
    """The questions about an erratum, a line each; those with equal answers together, before the answers in indented lines."""
    asked: dict[tuple[str, ...], list[str]] = {}
    for question, alike in itertools.groupby(sightings, key=_question):
        asked.setdefault(tuple(map(_answer, alike)), []).append(question)
    for said, questions in asked.items():
        yield from questions
        yield from said


def _folded(lines: Iterable[str]) -> str:
    """Lines that are shown where a reader asks for them."""
    block = "".join(f"   {line}\n" for line in lines)
    return (
        ".. raw:: html\n\n   <details><summary>Asked and answered</summary>\n\n"
        f".. code-block:: text\n   :class: syntax\n\n{block}\n"
        ".. raw:: html\n\n   </details>"
    )


def _question(sighting: Sighting) -> str:
    return sighting.asked or (f"example {sighting.example}" if sighting.example else "a module without instructions")


def _answer(sighting: Sighting) -> str:
    where = ", ".join(filter(None, (sighting.tool, *sighting.targets, sighting.ptx and f"PTX ISA {sighting.ptx}")))
    compiled = f" compiled for {sighting.compiled_for}" if sighting.compiled_for else ""
    database = f" [the database {sighting.database} it]" if sighting.database else ""
    return f"  {where}{compiled}: {sighting.answer}{database}"
