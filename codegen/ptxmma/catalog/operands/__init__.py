"""Operands: data that lies in registers, in tensor memory or at addresses, one class for each way."""

from __future__ import annotations

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.register_operand import RegisterOperand
from ptxmma.catalog.operands.tensor_operand import TensorOperand

__all__ = ["Operand", "RegisterOperand", "TensorOperand"]
