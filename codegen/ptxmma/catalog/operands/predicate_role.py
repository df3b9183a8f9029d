"""Truth values."""

from __future__ import annotations

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Parameter, Role


class Predicate(Role):
    """A predicate register."""

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A bool that becomes a predicate inside the asm statement, since there is no constraint for predicates."""
        predicate = Parameter(
            parameter=f"{c_type} {name}",
            values=(f'"{operand.constraint}"(int{{{name}}})',),
            text=name,
            prologue=f".reg .pred {name}; setp.ne.b32 {name}, {{}}, 0; ",
        )
        return (predicate,)
