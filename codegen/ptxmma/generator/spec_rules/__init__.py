"""Stage 3, rules: checks across entries that a schema cannot express; every problem is collected.

References resolve, names are unique, exactly one entry answers each question about a variant, and no two rules disagree.
Each module checks one subject: its ``problems`` yields the problems of that subject.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from ptxmma.generator.build import Positions
from ptxmma.generator.documents import KINDS
from ptxmma.generator.problems import Problem, SpecError
from ptxmma.generator.spec_rules import (
    address_rules,
    condition_rules,
    dequantisation_rules,
    descriptor_rules,
    encoding_rules,
    instruction_rules,
    name_rules,
    product_choice_rules,
    reach_rules,
    reference_rules,
    register_layout_rules,
    scaling_rules,
    space_rules,
    sparsity_rules,
    target_rules,
    tensor_map_rules,
    variant_rules,
)
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.model import Spec

_Find = Callable[[RuleContext], Iterator[Problem]]


class _Rules(NamedTuple):
    """The checks of one subject.

    Attributes:
        find: yields them.
        needs: the kinds of documents that must all be sound for it to judge.
        spoils: the kinds of documents that its problems make unsound.  Instructions are left out one by one: see ``RuleContext.broken``.
    """

    find: _Find
    needs: frozenset[str] = frozenset(KINDS)
    spoils: frozenset[str] = frozenset()


def _rules(find: _Find, needs: str = "", spoils: str = "") -> _Rules:
    return _Rules(find, frozenset(needs.split()), frozenset(spoils.split()))


#: The kinds of documents that wrong names make unsound: later rules look these names up.
_NAMED = ("types", "targets", "tensor_products", "throughput")
#: Each step needs what the steps before it accept: variants of a broken instruction would only repeat its problems, and what
#: variants reach is known only where each has its operands.  The first step is about entries, the others about variants.
_STEPS: tuple[tuple[_Rules, ...], ...] = (
    (
        _rules(name_rules.problems, spoils="instruction"),
        _rules(target_rules.problems, needs="targets isa_versions", spoils="targets"),
        _rules(reference_rules.types, needs="types instruction", spoils="types"),
        _rules(reference_rules.scopes, needs="spaces"),
        _rules(register_layout_rules.problems, needs="instruction errata", spoils="register_layouts"),
        _rules(space_rules.problems, needs="spaces targets instruction", spoils="spaces"),
        _rules(descriptor_rules.shared_memory, needs="types"),
        _rules(tensor_map_rules.problems, needs="types shared_memory tensor_maps"),
        _rules(descriptor_rules.problems, needs="instruction targets"),
        _rules(reference_rules.protocols, needs="instruction protocol"),
        _rules(reference_rules.sections, needs="spec sections"),
        _rules(sparsity_rules.problems, needs="sparsity", spoils="sparsity"),
        _rules(instruction_rules.problems, needs="spec types targets isa_versions"),
        _rules(condition_rules.of_instructions),
        _rules(condition_rules.problems, needs="instruction", spoils="types register_layouts sparsity spaces tensor_products"),
        *(_rules(functools.partial(reference_rules.problems, kind=kind), spoils=kind * (kind in _NAMED)) for kind in KINDS),
    ),
    (_rules(variant_rules.problems, spoils="instruction", needs="spec types targets isa_versions"),),
    (
        _Rules(address_rules.problems),
        _Rules(reach_rules.problems),
        _Rules(scaling_rules.problems),
        _Rules(target_rules.peaks),
        _Rules(space_rules.sizes_by_target),
        _Rules(product_choice_rules.problems),
        _Rules(encoding_rules.problems),
        _rules(dequantisation_rules.problems, needs="types dequantisation"),
        _Rules(reference_rules.words),
        _Rules(reference_rules.rules_of_check),
    ),
)


def check(spec: Spec, positions: Positions, incomplete: Collection[str] = ()) -> None:
    """Check the model across its entries, as far as it can be judged.

    Args:
        spec: the model.
        positions: the place of each part of it.
        incomplete: the kinds of documents of which some are wrong and missing from the model.

    Raises:
        SpecError: with every problem.
    """
    for check_variants in check_entries(spec, positions, incomplete):
        check_variants()


def check_entries(spec: Spec, positions: Positions, incomplete: Collection[str] = ()) -> list[Callable[[], None]]:
    """Check what :func:`check` does, but for the variants, and return the checks of the variants.

    They take most of the time, and give the later stages nothing but an error: they can run beside them, and beside each other.  The first
    that fails, in their order, has every problem.

    Raises:
        SpecError: with every problem, of the variants too.
    """
    context = RuleContext(spec, positions)
    context.unsound.update(incomplete)
    _check_from(context, 0)
    return [functools.partial(_check_from, context, number) for number in range(1, len(_STEPS))]


def _check_from(context: RuleContext, number: int) -> None:
    """Raise the problems that a step finds, with what the later steps find.  The steps before it have found none."""
    problems = _problems(context, _STEPS[number : number + 1])
    if problems or context.absent:
        problems += _problems(context, _STEPS[number + 1 :])
        raise SpecError(context.absent.values() or problems)  # the missing documents explain the other problems


def _problems(context: RuleContext, steps: Iterable[tuple[_Rules, ...]]) -> list[Problem]:
    problems: list[Problem] = []
    unsound = context.unsound
    for step in steps:
        spoiled: set[str] = set()
        for rules in step:
            if not rules.needs & unsound:
                new = list(rules.find(context))
                problems += new
                spoiled |= rules.spoils if new else set()
        unsound |= spoiled
        if context.broken:
            unsound.add("instruction")
    return problems
