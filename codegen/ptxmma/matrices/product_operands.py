"""The operands of a multiplication by what they do: multiplicands, addend and result.

>>> import ptxmma
>>> operands = product_operands(ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"))
>>> operands.a.name, operands.b.name, operands.c.name, operands.d.name
('a', 'b', 'd', 'd')
>>> operands.b.element.name, operands.b.lines, operands.b.depth
('bf16', 16, 16)
"""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.model import ElementType


class Multiplicand(NamedTuple):
    """A matrix that is multiplied, in registers or in shared memory."""

    name: str  # what the instruction calls it, and what its descriptor describes: "a"
    element: ElementType
    lines: int  # rows of A, columns of B
    depth: int  # stored elements along K: of a sparse matrix fewer than K
    described: bool  # whether it may be in shared memory


class ProductOperands(NamedTuple):
    """D = A times B plus C."""

    a: Multiplicand
    b: Multiplicand
    c: Operand  # the addend; D itself where the instruction adds to what D holds
    d: Operand  # the result

    def letter(self, name: str) -> str:
        """``"a"`` or ``"b"`` of a multiplicand by its name."""
        return "a" if name == self.a.name else "b"


def product_operands(instruction: Instruction) -> ProductOperands:
    """The operands of an instruction that multiplies: A before B, as in its operand list."""
    operands = [operand for form in instruction.forms for operand in form.operands]
    accumulators = [operand for operand in operands if operand.kind == "accumulator"]
    a, b = instruction.variant.instruction.multiplicands
    m, n, _ = (instruction.extents[extent] for extent in "mnk")
    return ProductOperands(
        a=_multiplicand(instruction, a, m),
        b=_multiplicand(instruction, b, n),
        c=next(operand for operand in accumulators if operand.access != "write"),
        d=next(operand for operand in accumulators if operand.access != "read"),
    )


def _multiplicand(instruction: Instruction, name: str, lines: int) -> Multiplicand:
    kinds, depth = instruction.variant.instruction.operand_kinds, instruction.extents["k"]
    carriers = [entry for other, entry in kinds.items() if other == name or (entry.kind == "descriptor" and entry.of == name)]
    if any(entry.sparse for entry in carriers):
        pattern = instruction.metadata.granularity
        depth = depth * pattern.kept // pattern.chunk
    element = layouts.element_type(instruction.database.spec, instruction.matrix_types[name])
    return Multiplicand(name, element, lines, depth, any(entry.kind == "descriptor" for entry in carriers))


def argument(operands: ProductOperands, operand: Operand) -> str:
    """What the emulator calls an operand: ``"metadata"`` for ``e``, ``"scale_a_data"`` for ``scale-a-data``."""
    letter = operands.letter(operand.of or operand.name)
    names = {
        "fragment": letter,
        "descriptor": letter,
        "accumulator": "d" if operand.access == "write" else "c",
        "metadata": "metadata",
        "selector": "selector",
        "predicate": "scale_d",
        "scale-data": f"scale_{letter}_data",
        "byte-id": f"byte_id_{letter}",
        "thread-id": f"thread_id_{letter}",
        "negation": f"imm_scale_{letter}",
        "majorness": f"imm_trans_{letter}",
    }
    return names.get(operand.kind, operand.name.replace("-", "_"))
