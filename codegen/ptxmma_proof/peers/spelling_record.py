"""Compares the spellings of instructions, and how many operands each has, with the tables of another project."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma_proof.peers import ptx_frontend, sources
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.forms import Ours
from ptxmma_proof.peers.ptx_frontend import NAME, Row
from ptxmma_proof.peers.sources import Source


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Compare a catalog with a checkout.

    Raises:
        MissingPeerError: the checkout or its tables are not there.
    """
    checkout = sources.checkout(given, NAME)
    rows = list(ptx_frontend.rows(checkout.folder, Ours.of(catalog)))
    return Findings((checkout.tool(date),), {NAME: len(rows)}, list(_differences(catalog, rows)))


def _differences(catalog: Catalog, rows: Sequence[Row]) -> Iterator[Difference]:
    """The differences of each row, and our instructions with an opcode of theirs that no row spells, for each family."""
    scope = Ours.of(catalog)
    spelled: set[str] = set()
    for row in rows:
        own = list(row.spellings(scope))
        meant = _meant(catalog, row, own)
        spelled.update(each.variant.canonical for each in meant.values())
        yield from _form(row, own, meant)
        yield from _operands(row, meant)
    begun = tuple({row.opcode for row in rows})
    families = {each.family for each in catalog.all() if each.canonical.startswith(begun)}
    lacking = [each for each in catalog.all() if each.family in families and each.documented and each.canonical not in spelled]
    for family, group in itertools.groupby(lacking, key=lambda each: each.family):
        names = [each.canonical for each in group]
        yield Difference(NAME, family, "unlisted", "spells fewer", f"{len(names)} more, {names[0]} for one", len(names), len(names))


def _meant(catalog: Catalog, row: Row, spellings: Sequence[str]) -> dict[str, Instruction]:
    """The instructions that spellings mean; a word that none of ours with this opcode has need not be looked up."""
    own = [each for each in catalog.all() if each.canonical.startswith(row.opcode)]
    words = {word for each in own for word in each.canonical.split(".")}
    words.update(value for each in own for hint in each.variant.instruction.hints for value in hint.values)
    known = [each for each in spellings if words.issuperset(each.split("."))]
    return {each: instruction for each in known if (instruction := catalog.meaning(each))}


def _form(row: Row, spellings: Sequence[str], meant: Mapping[str, Instruction]) -> Iterator[Difference]:
    unknown = [each for each in spellings if each not in meant]
    if unknown:
        theirs = f"has {len(spellings):,} spellings"
        ours = f"{len(unknown):,} of them are no instructions, {unknown[0]} for one"
        yield Difference(NAME, row.syntax, "form", theirs, ours, len(unknown), len(spellings))


def _operands(row: Row, meant: Mapping[str, Instruction]) -> Iterator[Difference]:
    least, most = row.operands
    theirs = set(range(least, most + 1))
    wrong = {text: own for text, each in meant.items() if (own := {len(form.operands) for form in each.forms} or {0}) != theirs}
    if wrong:
        text, own = next(iter(wrong.items()))
        yield Difference(NAME, row.syntax, "operands", _number(theirs), f"{_number(own)} in {text}", len(wrong), len(meant))


def _number(counts: set[int]) -> str:
    return f"{' or '.join(map(str, sorted(counts)))} operands"
