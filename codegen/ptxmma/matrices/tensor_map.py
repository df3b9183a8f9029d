"""The boxes with which TMA writes matrices to shared memory."""

from __future__ import annotations

from typing import NamedTuple

#: Elements along the contiguous dimension of a box of padded ones (CUDA Driver API, cuTensorMapEncodeTiled).
PADDED_BOX = 128


class TensorMapBox(NamedTuple):
    """How TMA writes the image: the tensor map's swizzle and box.

    For packed elements narrower than a byte the tensor map is one of bytes, and ``inner`` counts those.  For padded ones it has the type
    ``CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B`` or ``16U6_ALIGN16B``, and ``inner`` counts elements.  A
    note of ``spec/shared_memory.yaml`` has the sources of what an mbarrier counts for these.
    """

    swizzle: str  # "CU_TENSOR_MAP_SWIZZLE_128B"
    inner: int  # elements along the contiguous dimension; bytes, where elements are narrower
    outer: int  # elements along the other
    boxes: int  # boxes of which the image consists
    transaction_bytes: int  # that all boxes count on an mbarrier; padding does not count
