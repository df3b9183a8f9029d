"""Structured sparsity: prune a matrix, check it, compress it to values and metadata, and back (PTX ISA 9.7.14.6.1).

A pattern is named as in the spec: of each chunk of 4 elements of a row ``"2:4"`` keeps 2, of each 2 ``"1:2"`` keeps 1, and of each
8, taken in pairs, ``"4:8"`` keeps 2 pairs.  A sparse matrix (..., R, C) is compressed to

- values (..., R, C * kept / chunk), of the matrix's own dtype, and
- row-major metadata, ``uint8`` (..., R, C / chunk / 2): a 4-bit field for each chunk, two in a byte, the earlier chunk in the low four
  bits.  Its bytes as little-endian 16-bit words are PyTorch's metadata before the reordering that :func:`to_torch` does.

Matrices are arrays of the dtype of an element type, or of unsigned integers that hold its bits, with ``element`` to say which type that
is; torch tensors on the CPU serve as well, and give torch tensors.  Negative zero counts as zero.  ``uint8`` is the dtype of u8 and
holds the bits of every other type of at most 8 bits: it always needs ``element``.

cuSPARSELt's compressed buffers are not converted: the values come first in them, but NVIDIA does not document the metadata that
follows and reserves to change it.  Go through the sparse matrix: for cuSPARSELt give :func:`decompress`'s result to its own compression.
"""

from __future__ import annotations

from ptxmma.arrays.metadata_bytes import fields as fields  # all of these belong to what this package offers
from ptxmma.arrays.metadata_bytes import from_fields as from_fields
from ptxmma.matrices.sparse.blocks import NotSparseError as NotSparseError
from ptxmma.matrices.sparse.compression import Compressed as Compressed
from ptxmma.matrices.sparse.compression import check as check
from ptxmma.matrices.sparse.compression import compress as compress
from ptxmma.matrices.sparse.compression import decompress as decompress
from ptxmma.matrices.sparse.compression import prune as prune
from ptxmma.matrices.sparse.patterns import Pattern as Pattern
from ptxmma.matrices.sparse.patterns import pattern as pattern
from ptxmma.matrices.sparse.torch_format import from_torch as from_torch
from ptxmma.matrices.sparse.torch_format import to_torch as to_torch
