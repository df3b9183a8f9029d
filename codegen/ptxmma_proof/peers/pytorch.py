"""Compares PyTorch's compression of structured sparsity with ours, on the CPU.

It uses ``torch.sparse._semi_structured_conversions``, the functions that ``to_sparse_semi_structured`` calls with the CUTLASS back end.
For chunks with no more elements than are kept, both must give the same values and the same metadata.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices import sparse
from ptxmma.model import ElementType, Granularity
from ptxmma_proof.peers.compared import Difference

#: Rows and columns, in chunks, of the matrices: several groups of rows, several words of metadata.
_ROWS, _CHUNKS = 96, 64
_BYTE = 8
_CONVERSIONS = "torch.sparse._semi_structured_conversions"


class Conversion(NamedTuple):
    """PyTorch's compression of one type against ours."""

    dtype: str
    pattern: str  # "2:4"
    agrees: bool


class PyTorch(NamedTuple):
    """PyTorch's conversions of structured sparsity."""

    version: str
    conversions: list[Conversion]
    differences: list[Difference]


def compare(catalog: Catalog) -> PyTorch | None:
    """Compare every type that sparse instructions have and PyTorch compresses; None if PyTorch is not installed."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    conversions, differences = [], []
    for element, pattern in _types(catalog):
        dtype = _dtype(torch, element)
        if dtype is None:
            continue
        matrix = every_choice(torch, dtype, pattern, seed=1)
        try:
            difference = compress_both(torch, matrix, pattern.name)
        except RuntimeError:  # PyTorch does not compress the type
            continue
        conversions.append(Conversion(str(dtype), pattern.name, not difference))
        if difference:
            differences.append(Difference("PyTorch", str(dtype), pattern.name, *difference, 1, matrix.numel() // pattern.chunk))
    return PyTorch(torch.__version__.partition("+")[0], conversions, differences)


def _types(catalog: Catalog) -> Iterator[tuple[ElementType, Granularity]]:
    """The types of A in sparse instructions that fill bytes, each with its pattern."""
    elements = {element.name: element for element in catalog.database.spec.types.elements}
    by_name = {}
    for instruction in catalog.all():
        element = elements.get(str(instruction.variant.facts.get("atype")))
        if instruction.sparse and element and element.bits % _BYTE == 0 and element.name not in by_name:
            by_name[element.name] = element, instruction.metadata.granularity
    yield from by_name.values()


def _dtype(torch: Any, element: ElementType) -> Any:
    """PyTorch's type of an element: NumPy's name, with or without the suffix of types without infinities."""
    names = [element.numpy, f"{element.numpy}fn"]
    return next((getattr(torch, name) for name in names if name and isinstance(getattr(torch, name, None), torch.dtype)), None)


def every_choice(torch: Any, dtype: Any, pattern: Granularity, seed: int) -> Any:
    """A matrix with every pattern of non-zero elements that a chunk can keep, in every place of a word.

    The other elements are zeros, of both signs where the type has two.
    """
    generator = np.random.default_rng(seed)
    masks = np.array([mask for mask in np.ndindex(*[2] * pattern.units) if sum(mask) * pattern.unit <= pattern.kept])
    chosen = np.concatenate([np.roll(np.arange(_CHUNKS) % len(masks), row)[np.newaxis] for row in range(_ROWS)])
    occupied = np.repeat(masks[chosen].reshape(_ROWS, -1), pattern.unit, axis=1)
    numbers = generator.integers(1, 100, occupied.shape) * generator.choice([-1, 1], occupied.shape)
    zeros = torch.from_numpy(generator.choice([-0.0, 0.0], occupied.shape)).to(dtype)
    return torch.where(torch.from_numpy(occupied != 0), torch.from_numpy(numbers).to(dtype), zeros)


def compress_both(torch: Any, matrix: Any, pattern: str) -> tuple[str, str] | None:
    """The first difference between PyTorch's compression of a matrix and ours, in words, or None.

    Raises:
        RuntimeError: PyTorch refuses the type.
    """
    conversions = importlib.import_module(_CONVERSIONS)
    packed, meta = conversions.sparse_semi_structured_from_dense_cutlass(matrix)
    values, metadata = sparse.compress(matrix, pattern)
    ours = sparse.to_torch(values, metadata)
    back = sparse.from_torch(packed, meta)
    again = sparse.decompress(back.values, back.metadata, pattern)
    for what, theirs, own in (
        ("values", packed.view(torch.uint8), values.view(torch.uint8)),
        ("metadata", meta, ours.metadata),
        ("metadata, row-major", metadata, back.metadata),
        ("the matrix decompressed", conversions.sparse_semi_structured_to_dense_cutlass(packed, meta), again),
    ):
        if not torch.equal(theirs, own):
            at = tuple(map(int, np.argwhere(theirs.numpy() != own.numpy())[0]))
            return f"{what}, at {at}: {theirs[at]}", f"{own[at]}"
    return None
