"""Matrices in shared memory: images, addresses, matrix descriptors and bank conflicts (PTX ISA 9.7.15.5.1.2).

A matrix has its rows (A) or columns (B) along x and its depth along k.  Its image in shared memory is an array of bytes,
``uint8``; ``start`` is the shared address of the first.  A :class:`SharedLayout` takes matrices (x, k); the image of an instruction's
operand, :func:`of`, takes them as they are multiplied: A (m, k), B (k, n).  Element types are named as in PTX (``"bf16"``), majorness is
``"K"`` or ``"MN"``, swizzles are ``"none"``, ``"32B"``, ``"64B"`` and ``"128B"``.

>>> layout = SharedLayout("f16", "K", "128B", x=64, k=128)
>>> layout
<SharedLayout f16 K-major 128B: 64 x 128 in 16384 bytes at 0, lbo 8192, sbo 1024>
>>> [step.start_address for step in layout.steps(16)]
[0, 32, 64, 96, 8192, 8224, 8256, 8288]
>>> layout.tma
TensorMapBox(swizzle='CU_TENSOR_MAP_SWIZZLE_128B', inner=64, outer=64, boxes=2, transaction_bytes=16384)
"""

from __future__ import annotations

from ptxmma.matrices.shared.box_readers import Reader as Reader  # all of these belong to what this module offers
from ptxmma.matrices.shared.box_readers import readers as readers
from ptxmma.matrices.shared.box_rules import IllegalBoxError as IllegalBoxError
from ptxmma.matrices.shared.conflicts import BankConflicts as BankConflicts
from ptxmma.matrices.shared.conflicts import bank_conflicts as bank_conflicts
from ptxmma.matrices.shared.copied_tile import CopiedTile as CopiedTile
from ptxmma.matrices.shared.copied_tile import Copy as Copy
from ptxmma.matrices.shared.copied_tile import Origin as Origin
from ptxmma.matrices.shared.descriptor import Descriptor as Descriptor
from ptxmma.matrices.shared.descriptor import base_offset as base_offset
from ptxmma.matrices.shared.image import SharedLayout as SharedLayout
from ptxmma.matrices.shared.image import TensorMapBox as TensorMapBox
from ptxmma.matrices.shared.operand import SharedOperand as SharedOperand
from ptxmma.matrices.shared.operand import of as of
from ptxmma.matrices.shared.readable_types import capacity as capacity
from ptxmma.matrices.shared.reading import operand_addresses as operand_addresses
from ptxmma.matrices.shared.reading import read_operand as read_operand
from ptxmma.matrices.shared.ring import Ring as Ring
from ptxmma.matrices.shared.ring import Round as Round
from ptxmma.matrices.shared.tensor_map import TensorMap as TensorMap
