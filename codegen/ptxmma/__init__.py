"""ptxmma: a machine-readable specification of NVIDIA's PTX matrix instructions.

>>> import ptxmma
>>> ins = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
>>> ins.operand("a").coords(lane=5, i=3)
(9, 3)
"""

from ptxmma.instructions import Instruction, Metadata, OperandForm, UnknownInstruction, instruction, instructions
from ptxmma.operands import Operand

__version__ = "0.1.0"
__all__ = ["Instruction", "Metadata", "Operand", "OperandForm", "UnknownInstruction", "instruction", "instructions"]
