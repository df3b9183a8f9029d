"""Errata: the table, and the questions that tools were asked about each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.model import (
    Erratum,
    Sighting,
    Spec,
)


def page(spec: Spec) -> dict[str, Any]:
    """What the page shows."""
    return {"errata": errata_table(spec.errata, labelled=True), "answers": answers(spec.errata)}


def errata_table(errata: Iterable[Erratum], *, labelled: bool = False) -> str:
    """Errata as a table.  On the page of all errata, each is a target of references and links to the answers of tools."""

    def section(erratum: Erratum) -> str:
        target = f".. _{rest.label('erratum', erratum.id)}:\n\n" if labelled else ""
        return f"{target}{rest.source(erratum.section)}\n\n{rest.code(erratum.id)}"

    def known(erratum: Erratum) -> str:
        answered = f"\n\n{rest.link('Asked and answered', _answers_label(erratum))}" if labelled and erratum.seen else ""
        return rest.text(erratum.known) + answered

    return struct_tables.table(
        errata,
        titles={"says": "The manual says", "holds": "What holds", "known": "How that is known"},
        cells={"section": section, "known": known},
        without=("id", "family", "textual"),
        kind="errata",
    )


def answers(errata: Iterable[Erratum]) -> list[dict[str, Any]]:
    """The questions about each erratum, each followed by the answers of the tools."""
    return [
        {
            "label": _answers_label(erratum),
            "link": rest.link(erratum.id, rest.label("erratum", erratum.id)),
            "lines": [
                line
                for question, sightings in itertools.groupby(erratum.seen, key=_question)
                for line in (question, *map(_answer, sightings))
            ],
        }
        for erratum in errata
        if erratum.seen
    ]


def _answers_label(erratum: Erratum) -> str:
    return rest.label("answers", erratum.id)


def _question(sighting: Sighting) -> str:
    return sighting.asked or (f"example {sighting.example}" if sighting.example else "a module without instructions")


def _answer(sighting: Sighting) -> str:
    where = ", ".join(filter(None, (sighting.tool, sighting.target, sighting.ptx and f"PTX ISA {sighting.ptx}")))
    compiled = f" compiled for {sighting.compiled_for}" if sighting.compiled_for else ""
    database = f" [the database {sighting.database} it]" if sighting.database else ""
    return f"  {where}{compiled}: {sighting.answer}{database}"
