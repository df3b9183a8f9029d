"""Descriptors: the 32 or 64 bits that tell an instruction where a matrix lies, or what it computes.

:func:`codec` encodes, decodes, explains and judges the bits of any descriptor: matrix descriptors of ``wgmma`` and ``tcgen05``, the
instruction descriptor of ``tcgen05.mma`` for each kind, and the mask of columns of ``tcgen05.mma.ws``.  :func:`instruction_descriptor` is
short for the most common of these, :func:`of_product` takes its values from a product, and :func:`zero_columns` says what such a mask does.
:class:`Descriptor` is a matrix descriptor as an object.

>>> hex(instruction_descriptor("f16", dtype="f32", atype="bf16", btype="bf16", m=128, n=256))
'0x8400490'
>>> codec("instruction", kind="f16").mistakes(0x8400490 | 1 << 6)
[Mistake(field='', text='bit 6 must be 0')]
"""

from __future__ import annotations

from ptxmma.catalog.descriptors.bits import FieldValue as FieldValue
from ptxmma.catalog.descriptors.bits import Mistake as Mistake
from ptxmma.catalog.descriptors.codec import Codec as Codec
from ptxmma.catalog.descriptors.column_masks import zero_columns as zero_columns  # all of these belong to what this module offers
from ptxmma.catalog.descriptors.lookup import codec as codec
from ptxmma.catalog.descriptors.lookup import instruction_descriptor as instruction_descriptor
from ptxmma.catalog.descriptors.lookup import of_product as of_product
from ptxmma.matrices.shared.descriptor import Descriptor as Descriptor
from ptxmma.matrices.shared.descriptor import base_offset as base_offset
from ptxmma.matrices.shared.suspicions import Suspicion as Suspicion
from ptxmma.matrices.shared.suspicions import suspicions as suspicions
