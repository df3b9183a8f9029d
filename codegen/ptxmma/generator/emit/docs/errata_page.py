"""Errata, by family, and the questions that tools were asked about each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import msgspec

from ptxmma.generator.emit.docs import rest
from ptxmma.model import Erratum, Sighting, Spec

#: The fate of code that follows the manual, as a reader asks: does it bite me?
_BITES = {
    "wrong data": "wrong data",
    "refused": "refused by assemblers",
    "accepted": "no: more is accepted",
    "misprint": "no: a misprint",
}


def page(spec: Spec) -> dict[str, Any]:
    """The values for the page's template: families in the order of their first instruction, then the errata of none."""
    families = dict.fromkeys(entry.family for entry in spec.instructions)
    return {
        "families": [
            {
                "title": rest.text(family or "Targets, versions and several families"),
                "label": rest.label("errata", family or "general"),
                "table": errata_list((erratum for erratum in spec.errata if erratum.family == family), labelled=True),
            }
            for family in (*families, "")
            if any(erratum.family == family for erratum in spec.errata)
        ],
    }


def errata_list(errata: Iterable[Erratum], *, labelled: bool = False) -> str:
    """Errata as a table.  On the page of all errata, each is a target of references, and says how it is known."""

    def row(erratum: Erratum) -> tuple[str, ...]:
        name = rest.label("erratum", erratum.id)
        says = f"{rest.text(erratum.says)} ({rest.source(erratum.section)})"
        if not labelled:
            return rest.link(_BITES[erratum.bites], name), says, rest.text(erratum.holds)
        known = f"*How that is known:* {rest.text(erratum.known)}"
        if erratum.seen:
            known += f"\n\n{_folded(answers(erratum))}"
        return f".. _{name}:\n\n**{_BITES[erratum.bites]}**\n\n{rest.code(erratum.id)}", says, f"{rest.text(erratum.holds)}\n\n{known}"

    return rest.table(("Does it bite?", "The manual says", "What holds"), map(row, errata), kind="errata")


def answers(erratum: Erratum) -> list[str]:
    """The questions about an erratum, a line each, followed by the answers of the tools in indented lines.

    Targets with the same answer share a line.
    """
    lines = []
    for question, sightings in itertools.groupby(erratum.seen, key=_question):
        alike: dict[Sighting, list[str]] = {}
        for each in sightings:
            alike.setdefault(msgspec.structs.replace(each, target=""), []).append(each.target)
        lines += [question, *(_answer(each, targets) for each, targets in alike.items())]
    return lines


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


def _answer(sighting: Sighting, targets: Iterable[str]) -> str:
    where = ", ".join(filter(None, (sighting.tool, *targets, sighting.ptx and f"PTX ISA {sighting.ptx}")))
    compiled = f" compiled for {sighting.compiled_for}" if sighting.compiled_for else ""
    database = f" [the database {sighting.database} it]" if sighting.database else ""
    return f"  {where}{compiled}: {sighting.answer}{database}"
