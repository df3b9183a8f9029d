"""Block scaling: converts a matrix to narrow elements with a scale factor for each block, and back.

A block is a run of neighbouring elements along K that share one scale factor; the value of an element is its own number times that
factor.  The type of the factor decides how it is chosen:

* without a mantissa (ue8m0) it is the largest power of two in the block's magnitudes over the largest power of two among the
  elements' numbers, as the OCP Microscaling Formats v1.0, section 6.3, say;
* with one (ue4m3) it is the largest magnitude over the largest number of the elements, rounded to nearest even.

Elements are the numbers over the factor, rounded to nearest even and saturated: they are never NaN or infinite.  A block of zeros
gets the smallest factor.

Types with a mantissa have a small range: the factors of ue4m3 reach from 2**-9 to 448.  With them the whole matrix is divided by a
:func:`tensor_scale` first.  Without one, a block whose factor would be rounded to zero, so that its numbers were lost, is an error.  So
is, unless saturation is asked for, a block whose factor would be rounded to more than the largest.

>>> import numpy as np
>>> quantised = quantise(np.full((1, 32), 6.5, np.float32), "mxfp4")
>>> float(quantised.elements[0, 0]), float(quantised.scales[0, 0])
(6.0, 1.0)
"""

from __future__ import annotations

from ptxmma.matrices.scaling.cublas import from_cublas as from_cublas  # all of these belong to what this package offers
from ptxmma.matrices.scaling.cublas import to_cublas as to_cublas
from ptxmma.matrices.scaling.quantisation import Quantised as Quantised
from ptxmma.matrices.scaling.quantisation import dequantise as dequantise
from ptxmma.matrices.scaling.quantisation import quantise as quantise
from ptxmma.matrices.scaling.quantisation import tensor_scale as tensor_scale
from ptxmma.matrices.scaling.scale_formats import Format as Format
from ptxmma.matrices.scaling.scale_formats import custom as custom
from ptxmma.matrices.scaling.scale_formats import formats as formats
from ptxmma.matrices.scaling.scale_formats import of as of
from ptxmma.matrices.scaling.tensor_memory import from_tensor_memory as from_tensor_memory
from ptxmma.matrices.scaling.tensor_memory import to_tensor_memory as to_tensor_memory
