"""The rules that findings name."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check import (
    architecture_guards,
    collectors,
    rules_of_asm,
    rules_of_costs,
    rules_of_opcodes,
    rules_of_operands,
    rules_of_tensor_memory,
    tensor_bounds,
)
from ptxmma.check.rule import Rule

#: Every rule by its code.
RULES: Mapping[str, Rule] = dict(
    sorted(
        {
            **architecture_guards.RULES,
            **collectors.RULES,
            **rules_of_asm.RULES,
            **rules_of_costs.RULES,
            **rules_of_opcodes.RULES,
            **rules_of_operands.RULES,
            **rules_of_tensor_memory.RULES,
            **tensor_bounds.RULES,
        }.items()
    )
)
