"""Quantised weights: narrow codes in the order in which the lanes of a warp read and convert them.

>>> import numpy as np
>>> from ptxmma import quantised
>>> weights = np.arange(16 * 64, dtype=np.uint8).reshape(16, 64) % 16
>>> words = quantised.permute(weights, "u4", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "a")
>>> words.shape, hex(words[0, 0, 0, 0])
((1, 1, 32, 4), '0x99118800')

A lane reads its four words at once.  ``dequantise_u4_f16`` of ``ptxmma/cuda/dequantise.cuh`` turns each into the registers of a fragment.
"""

from __future__ import annotations

from ptxmma.matrices.quantised.checkpoints import Stored as Stored  # all of these belong to what this package offers
from ptxmma.matrices.quantised.checkpoints import from_awq as from_awq
from ptxmma.matrices.quantised.checkpoints import from_gptq as from_gptq
from ptxmma.matrices.quantised.fragments import permute as permute
from ptxmma.matrices.quantised.fragments import permute_groups as permute_groups
from ptxmma.matrices.quantised.fragments import unpermute as unpermute
from ptxmma.matrices.quantised.fragments import unpermute_groups as unpermute_groups
