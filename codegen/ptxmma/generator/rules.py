"""Stage 3, rules: what no schema can say, checked across entries; every problem is collected."""

from __future__ import annotations

from ptxmma.generator.build import Positions
from ptxmma.model import Spec


def check(spec: Spec, positions: Positions) -> None:
    """Check the model across its entries; raises SpecError with every problem."""
