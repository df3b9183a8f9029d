"""The rules that findings name: each lives in the module that finds what breaks it."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check import (
    advice,
    arrival_counts,
    asm_operands,
    bank_conflicts,
    clusters,
    costs,
    counterparts,
    descriptors,
    diagnosis,
    executions,
    flow,
    instruction_judge,
    legality,
    lifecycles,
    module_targets,
    operand_faults,
    overwriting,
    phases,
    proxies,
    register_pools,
    remarks,
    shared_races,
    shifted_operands,
    stages,
    tensor_kernels,
    tensor_memory,
    thread_orders,
)
from ptxmma.check.rule import Rule

#: The modules that find what breaks a rule; each has the texts of its rules.
FINDERS = (
    advice,
    arrival_counts,
    asm_operands,
    bank_conflicts,
    clusters,
    costs,
    counterparts,
    descriptors,
    diagnosis,
    executions,
    flow,
    instruction_judge,
    legality,
    lifecycles,
    module_targets,
    operand_faults,
    overwriting,
    phases,
    proxies,
    register_pools,
    shared_races,
    remarks,
    shifted_operands,
    stages,
    tensor_kernels,
    tensor_memory,
    thread_orders,
)
#: Every rule by its code.
RULES: Mapping[str, Rule] = dict(sorted(rule for finder in FINDERS for rule in finder.RULES.items()))
#: The rules that the parts of a spec's protocols may name: what finds them follows that part.
OF_PROTOCOLS: Mapping[str, frozenset[str]] = {
    "lifecycles": frozenset().union(*(finder.RULES for finder in (lifecycles, proxies, stages, tensor_kernels, thread_orders))),
    "pairings": frozenset().union(*(finder.RULES for finder in (arrival_counts, counterparts, phases, stages, thread_orders))),
}
