"""Mutants' formulas of registers, place by place, against the layouts of peers and of a chip: whether they are layouts or not."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.variants import Variant
from ptxmma.generator.derive import placing
from ptxmma.generator.register_proof import EntryError
from ptxmma.model import Spec
from ptxmma.model.bitmap import domain
from ptxmma_proof.peers import recorded, recorded_tensor
from ptxmma_proof.silicon import replay


class _Use(NamedTuple):
    """An operand with a layout that a witness has, too."""

    witness: str
    variant: Variant
    operand: str


class Evaluated:
    """The layouts of the registers of peers' instructions and of a chip's launches, to compare the formulas of mutants with.

    They agree with the spec.  A formula that places an element elsewhere contradicts them, and so does an operand without a layout.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._spec = catalog.database.spec
        self._uses = dict(reversed(list(_uses(catalog))))
        planned = {name: layouts.plan(self._spec, use.variant, use.operand) for name, use in self._uses.items()}
        self._plans = {name: plan for name, plan in planned.items() if plan is not None}
        self._places = functools.cache(lambda name: _places(self._spec, self._plans[name]))

    def contradiction(self, spec: Spec) -> tuple[str, str]:
        """The first witness that the formulas of a spec contradict, and the layout; both empty if none does."""
        for name, before in self._plans.items():
            use = self._uses[name]
            try:
                now = layouts.plan(spec, use.variant, use.operand)
                if now is None or (now.axes, now.threads) != (before.axes, before.threads):
                    return use.witness, f"{name}: its axes are {before.axes}"
                same = spec.register_layouts[now.entry] == self._spec.register_layouts[before.entry] and now.variables == before.variables
                if not same and _places(spec, now) != self._places(name):
                    return use.witness, f"{name}: other places"
            except (ArithmeticError, EntryError, LookupError, StopIteration, ValueError):
                continue  # it says nothing that could be compared
        return "", ""


def _places(spec: Spec, plan: Plan) -> dict[str, list[int]]:
    function = placing(spec, plan)
    return function.at(domain(function.inputs))


def _uses(catalog: Catalog) -> Iterator[tuple[str, _Use]]:
    """The layouts by name, each with an operand that has it."""
    instructions = {one.canonical: one for one in catalog.all()}
    witnessed = [("CuTe", atom.instruction) for atom in recorded.read().atoms] + [("chip", one.instruction) for one in replay.read()]
    loads = [each.opcode for each in recorded_tensor.Tensor.read().records if isinstance(each, recorded_tensor.Registers)]
    witnessed += [("peers on tensor memory", catalog.find(opcode).canonical) for opcode in loads]
    for witness, spelling in dict.fromkeys(witnessed):
        one = instructions[spelling]
        for form in one.forms:
            yield from ((each.layout.name, _Use(witness, one.variant, each.name)) for each in form.operands if each.layout)
