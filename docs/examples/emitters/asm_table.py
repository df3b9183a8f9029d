"""A table for a compiler: each instruction with the constraints of its operands, as inline assembly in LLVM IR takes them."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma import Operand
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.templating import banner

FOLDERS = ("tables",)


def constraints(operand: Operand) -> list[str]:
    """``["=f", "=f", "=f", "=f"]`` of a result in four registers; an immediate has no register and one constraint."""
    return [("=" if operand.access == "write" else "") + operand.constraint] * max(operand.registers, 1)


def emit(catalog: Catalog) -> Iterator[Output]:
    """``MATRIX(identifier, "spelling", "constraints")`` for each instruction of two families."""
    lines = []
    for each in catalog.all():
        if each.family not in ("mma", "mma.sp"):
            continue
        text = ",".join(letter for operand in each.forms[0].operands for letter in constraints(operand))
        lines.append(f'MATRIX({each.identifier}, "{each.canonical}", "{text}")\n')
    yield Output("tables/matrix.def", banner("//", catalog, ["spec/"]) + "".join(lines))
