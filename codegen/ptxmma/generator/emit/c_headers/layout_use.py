"""The operands that have a layout, each with an instruction that has the operand."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.model import Granularity, Spec


class LayoutUse(NamedTuple):
    """An operand that has a layout, and an instruction that has the operand."""

    instruction: Instruction
    operand: Operand

    def pattern(self, spec: Spec) -> Granularity:
        """The pattern of sparsity of an instruction that has metadata."""
        pattern = layouts.granularity(spec, self.instruction.variant)
        assert pattern is not None  # or there would be no metadata
        return pattern
