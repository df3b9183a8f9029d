"""Stage 3, rules: what no schema can say, checked across entries; every problem is collected.

References lead somewhere, names are unique, every variant has exactly one answer to every question, and no two rules disagree.
Each module here checks one subject: its ``problems`` yields whatever is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Problem, SpecError
from ptxmma.generator.spec_rules import (
    condition_rules,
    instruction_rules,
    name_rules,
    peak_rules,
    protocol_rules,
    reach_rules,
    reference_rules,
    register_layout_rules,
    scaling_rules,
    shared_memory_rules,
    sparsity_rules,
    target_rules,
    variant_rules,
)
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.model import Spec

#: Each step needs what the steps before it accept: variants of a broken instruction would only repeat its problems, and what
#: variants reach is known only where each has its operands.
_STEPS: tuple[tuple[Callable[[RuleContext], Iterator[Problem]], ...], ...] = (
    (
        name_rules.problems,
        target_rules.problems,
        reference_rules.problems,
        register_layout_rules.problems,
        shared_memory_rules.problems,
        protocol_rules.problems,
        sparsity_rules.problems,
        instruction_rules.problems,
        condition_rules.problems,
    ),
    (variant_rules.problems,),
    (reach_rules.problems, scaling_rules.problems, peak_rules.problems),
)


def check(spec: Spec, positions: Positions) -> None:
    """Check the model across its entries.

    Raises:
        SpecError: with every problem.
    """
    context = RuleContext(spec, positions)
    problems: list[Problem] = []
    for step in _STEPS:
        problems = [problem for find in step for problem in find(context)]
        if problems:
            break
    if problems or context.absent:  # what is missing explains the rest
        raise SpecError(context.absent.values() or problems)
