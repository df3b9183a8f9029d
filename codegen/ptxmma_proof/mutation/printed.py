"""Mutants against the order in which the manual prints formulas: which section is about which instructions, and which formula is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.layouts import Plan
from ptxmma.generator import stated as manual
from ptxmma.generator.evaluation import evaluate_entry, numbers, thread
from ptxmma.model import Stated, formula, matches
from ptxmma.model.bitmap import domain
from ptxmma.model.formula import FormulaError

#: What an erratum says that the manual prints: "The column of element i < 64 of A is 32 * (lane % 4) + i."
_QUOTED = re.compile(r"The (row|column) of element (.+) of \w+ is (.+)\.")
_PARTS = {"row": "row", "column": "col"}
#: The operand after which a section is called to be about an instruction.
_FIRST = "a"


def contradictions(catalog: Catalog) -> Iterator[str]:
    """Where a printed formula is for other layouts than its section, or wrong in another way than its erratum says, in words."""
    yield from _single(catalog)
    yield from _sections(catalog)


def admitted_layouts(catalog: Catalog) -> dict[tuple[int, int, int], list[Plan]]:
    """The layouts that each condition of each printed formula admits, by entry, formula and condition."""
    plans = {plan.name: plan for held in _held(catalog) for plan in held.values()}
    return {
        (index, number, place): [
            plan
            for plan in plans.values()
            if plan.entry == index and any(matches((condition,), dict(plan.facts) | {"operand": name}) for name in fragment.operands)
        ]
        for index, fragment in enumerate(catalog.database.spec.fragments)
        for number, stated in enumerate(fragment.stated)
        for place, condition in enumerate(stated.of)
    }


def _held(catalog: Catalog) -> Iterator[dict[str, Plan]]:
    """The layouts of the operands in registers, by their names, for each set of variants that share them."""
    spec = catalog.database.spec
    for found in {layouts.key(found.variant): found for found in catalog.all()}.values():
        kinds = found.variant.instruction.operand_kinds
        plans = {
            name: layouts.fragment_plan(spec, found.variant, name, str(found.variant.facts[kind.type]))
            for name, kind in kinds.items()
            if kind.kind in ("fragment", "accumulator")
        }
        yield {name: plan for name, plan in plans.items() if plan is not None}


# --- one formula ------------------------------------------------------------------------------------------------------------


def _single(catalog: Catalog) -> Iterator[str]:
    """A printed formula is whole, and for one family, shape and width unless it lists several; a wrong one is wrong as its erratum says."""
    admitted = admitted_layouts(catalog)
    counts = any(stated.registers for fragment in catalog.database.spec.fragments for stated in fragment.stated)
    errata = {entry.id: entry for entry in catalog.database.spec.errata}
    for index, fragment in enumerate(catalog.database.spec.fragments):
        for number, stated in enumerate(fragment.stated):
            columns = stated.col or stated.first
            if bool(stated.row) != bool(columns) or bool(stated.first) != bool(stated.last) or (counts and not stated.registers):
                yield f"section {stated.section} prints a part of a formula"
            for place, condition in enumerate(stated.of):
                plans = admitted[index, number, place]
                for fact, key in (("family", "family"), ("bits", "bits"), ("k", "shape")):
                    if len({plan.facts[fact] for plan in plans}) > 1 and not {fact, key} & condition.keys():
                        yield f"section {stated.section} is printed for several values of {fact}"
            if stated.erratum:
                plans = [plan for place in range(len(stated.of)) for plan in admitted[index, number, place]]
                if _wrong_parts(catalog, stated, plans) != 1:
                    yield f"section {stated.section} is wrong in more than one place, which its erratum does not say"
                if quoted := _QUOTED.fullmatch(errata[stated.erratum].says):
                    yield from _wrong_otherwise(catalog, stated, plans, quoted)
                if errata[stated.erratum].section != stated.section:
                    yield f"the erratum {stated.erratum} is about another section than {stated.section}"


def _wrong_parts(catalog: Catalog, stated: Stated, plans: list[Plan]) -> int:
    """How many parts of a printed formula differ from ours: the number of registers, the row, the column …."""
    alone = {name: getattr(stated, name) for name in ("row", "col", "first", "last")}
    none = dict.fromkeys(alone, ())
    parts = [msgspec.structs.replace(stated, **none)]
    parts += [msgspec.structs.replace(stated, **(none | {name: cases}), registers=0) for name, cases in alone.items()]
    held = catalog.database.layout
    return sum(any(manual.difference(part, plan, held[plan.name].map) for plan in plans) for part in parts)


def _wrong_otherwise(catalog: Catalog, stated: Stated, plans: list[Plan], quoted: re.Match[str]) -> Iterator[str]:
    """Where a printed formula is wrong at other elements than its erratum says, or in another way."""
    part, where, printed = _PARTS[quoted[1]], quoted[2], quoted[3]
    try:
        condition, value = formula.parse(where), formula.parse(printed)
    except FormulaError:
        return
    for plan in plans:
        bit_map = catalog.database.layout[plan.name].map
        points = domain(bit_map.inputs)
        variables = numbers(plan) | {"i": points["i"]} | thread(points["lane"])
        theirs = evaluate_entry(stated.let, {part: getattr(stated, part)}, variables, len(points["i"]))[part]
        for point, ours in enumerate(bit_map.evaluate(points)[part]):
            here = {"i": points["i"][point], "lane": points["lane"][point]}
            meant = formula.evaluate(condition, here)
            if theirs[point] != (formula.evaluate(value, here) if meant else ours):
                yield f"section {stated.section}: {part} is {theirs[point]} at {here}, which its erratum does not say"
                return


# --- sections ---------------------------------------------------------------------------------------------------------------


class _Operand(NamedTuple):
    """An operand in registers of some variants, and where its formula is printed.

    Attributes:
        layout: its name.
        shape: of the instruction.
        sections: that print a formula for it; one that prints two stands twice.
        about: the sections that print these variants' A, and so are about them.
        width: bits of an element of A.
    """

    family: str
    name: str
    layout: str
    shape: str
    sections: tuple[str, ...]
    about: frozenset[str]
    width: int


def _operands(catalog: Catalog) -> list[_Operand]:
    fragments = catalog.database.spec.fragments
    found: dict[_Operand, None] = {}
    for held in _held(catalog):
        printed = {
            name: tuple(
                stated.section for stated in fragments[plan.entry].stated if matches(stated.of, dict(plan.facts) | {"operand": name})
            )
            for name, plan in held.items()
        }
        about, width = frozenset(printed.get(_FIRST, ())), held[_FIRST].bits if _FIRST in held else 0
        found |= {_Operand(plan.family, name, plan.name, plan.shape, printed[name], about, width): None for name, plan in held.items()}
    return list(found)


def _sections(catalog: Catalog) -> Iterator[str]:
    """A section prints all operands of those instructions of which it prints A, and of no others.

    A family may refer to the sections of another one for some of its operands.  Then that section prints such an operand whose own A has
    the same shape and elements of the same width; where there is none, a single section, or of several the one with the same width.
    """
    operands = _operands(catalog)
    homes = {(operand.family, section) for operand in operands for section in operand.about}
    widths = {(operand.width, section) for operand in operands for section in operand.about}
    alike: dict[tuple[str, int], set[str]] = {}
    for operand in operands:
        alike.setdefault((operand.shape, operand.width), set()).update(operand.about)
    printed = {(operand.family, operand.name) for operand in operands if operand.sections}
    referring = {operand.family for operand in operands for section in operand.sections if (operand.family, section) not in homes}
    for section in {stated.section for entry in catalog.database.spec.fragments for stated in entry.stated} - {name for _, name in homes}:
        yield f"section {section} prints {_FIRST} of no instruction"
    used: set[tuple[str, str]] = set()
    for operand in operands:
        chosen = [section for section in operand.sections if section in operand.about]
        if not chosen:
            chosen = [section for section in operand.sections if (operand.family, section) not in homes]
            same = alike[operand.shape, operand.width] - operand.about
            if same:
                chosen = [section for section in chosen if section in same]
            elif len(chosen) > 1:
                chosen = [section for section in chosen if (operand.width, section) in widths]
        needed = operand.sections or (operand.about and (operand.family, operand.name) in printed and operand.family not in referring)
        if len(chosen) > 1 or (needed and not chosen):
            here, there = _list(operand.sections), _list(operand.about)
            yield f"{operand.name} of {operand.layout} is printed in {here}, and A of its instructions in {there}"
        used.update((section, operand.layout) for section in chosen)
    for operand in operands:
        for section in operand.sections:
            if (section, operand.layout) not in used:
                yield f"section {section} is not about {operand.layout}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no section"
