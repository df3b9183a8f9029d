"""Triton's own compiler, through the Python bindings of its package: its layouts as linear functions.

No GPU is needed.  The package brings the compiler as a library, so that the comparison is with what Triton does, and not with what its
sources say.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxmma_proof.peers import sources
from ptxmma_proof.peers.sources import Source

PACKAGE, _FOLDER = "triton", "triton/_C"
#: The numbers that each bit of an input adds to the row and to the column; (0, 0) for a bit that moves nothing.
Bases = Sequence[Sequence[int]]


def find() -> Source:
    """Return the installed package, with the folder of its library.

    Raises:
        MissingPeerError: it is not installed.
    """
    return sources.installed("Triton", PACKAGE, _FOLDER, "libtriton.*")


@functools.cache
def gluon() -> Any:
    """The module with Triton's layouts of tensor memory."""
    return import_module("triton.experimental.gluon.language.nvidia.blackwell")


@functools.cache
def _context() -> Any:
    library = import_module("triton._C.libtriton")
    context = library.ir.context()
    library.ir.load_dialects(context)
    library.nvidia.load_dialects(context)
    return context


@functools.cache
def _builder() -> Any:
    return import_module("triton._C.libtriton").gluon_ir.GluonOpBuilder(_context())  # which does not keep its context alive


def in_memory(layout: Any, shape: Sequence[int]) -> tuple[Bases, Bases]:
    """The bases of the lanes and of the columns of one CTA for a matrix in tensor memory; a column has the bits of an element.

    Raises:
        ValueError: Triton has no such layout.
    """
    try:
        placed = _builder().to_linear_layout(layout._to_ir(_builder()), list(shape))
    except RuntimeError as error:
        raise ValueError(f"{error}".partition("\n")[0]) from None
    return placed.rows, placed.cols


def in_shared(layout: Any, shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """The number of each element of a matrix in shared memory of one CTA, in its shape."""
    placed = _builder().to_linear_layout(layout._to_ir(_builder()), list(shape))
    reached = spread(placed.offset_bases)
    numbers = np.full(tuple(shape), -1, np.int64)
    numbers[reached[:, 0], reached[:, 1]] = np.arange(len(reached))
    return numbers


def registers(element: str, shape: Sequence[int], layout: Any, atom: str) -> Any:
    """Triton's layout of the registers of four warps, which read or write a matrix by instructions of a shape.

    Its ``reg_bases`` and ``lane_bases`` belong to the elements and the lanes of the first warp.

    Args:
        element: its type in Triton: ``"float32"``.
        shape: rows and columns.
        layout: the layout of the matrix in tensor memory.
        atom: the shape: ``"16x256b"``.

    Raises:
        ValueError: Triton cannot read it so.
    """
    library, language = import_module("triton._C.libtriton"), import_module("triton.language")
    try:
        read = library.gluon_ir.compute_tmem_reg_layout(getattr(language, element), list(shape), list(shape), layout, 4, atom)
    except RuntimeError as error:
        raise ValueError(f"{error}".partition("\n")[0]) from None
    if read is None:
        raise ValueError(f"no {atom} for {shape}")
    return read


def spread(bases: Iterable[Sequence[int]]) -> npt.NDArray[np.int64]:
    """The row and the column at each number of an input, (numbers, 2)."""
    reached = np.zeros((1, 2), np.int64)
    for basis in bases:
        reached = np.concatenate([reached, reached ^ np.array(basis, np.int64)])
    return reached
