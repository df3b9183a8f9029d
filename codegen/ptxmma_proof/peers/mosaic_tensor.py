"""Mosaic's operands in tensor memory: what its copies bring there from the order in which JAX wants them, and what each instruction reads.

Where a ``tcgen05.cp`` puts its rows is our layout of the copy, which is compared with CuTe's.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import tensor_places
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma_proof.peers import mosaic
from ptxmma_proof.peers.mosaic import Copied
from ptxmma_proof.peers.tensor_cases import LANE_BITS, Axis, Case, Values, instruction_codec

#: A recipe in the documentation of JAX's function: an expression that puts ``scales`` into the order of the copies.
_RECIPE = re.compile(r"::\n\n((?: {6}.*\n)+)")
_CELL, _BYTE, _INDEX = 32, 8, 2
#: Kinds with JAX's types of the elements and of the scale factors.
_SCALED = (("f8E4M3FN", "f8E8M0FNU"), ("f4E2M1FN", "f8E8M0FNU"), ("f4E2M1FN", "f8E4M3FN"))
_FACTORS = 8


def read(catalog: Catalog) -> list[Case]:
    """The operands that Mosaic lays out."""
    return [*_metadata(catalog), *_scales(catalog)]


def _metadata(catalog: Catalog) -> Iterator[Case]:
    """Metadata of M = 128 and of pairs with M = 256, as every step along K reads it."""
    for element, name, kind, k in (("f16", "float16", "f16", 32), ("f8E4M3FN", "int8", "f8f6f4", 64)):
        indices = 64 * (k // 32)  # the minimum that the copies take
        bytes_of = _ordered(128, indices, name)
        places = np.full((128, indices), -1, np.int64)
        for copy in mosaic.metadata_copies(128, indices):
            _put(catalog, copy, bytes_of, places.reshape(-1), _BYTE // _INDEX)
        for ctas in (1, 2):
            own = k // 2
            for step, issued in enumerate(mosaic.issued(element, "f32", 128, 64, indices // own, ctas=ctas, sparse=True)):
                selector = instruction_codec(catalog, issued.opcode).decode(issued.descriptor)["sparsity_selector"]
                part = places[:, step * own : (step + 1) * own] - issued.columns[0] * _CELL
                facts = {"name": "tcgen05.mma.sp", "cta_group": f"cta_group::{ctas}", "kind": f"kind::{kind}"}
                numbers = {"m": 128 * ctas, "n": 64, "k": k, "ctas": ctas, "bits": 256 // k * 2, "ratio": 2, "chunk_size": 4}
                axes = (Axis("row", 128), Axis("chunk", k // 4, 2))
                subject = f"async_copy_sparse_metadata_smem_to_tmem, {element}, {ctas} CTA{'s' * (ctas > 1)}, step {step}"
                selected = {"selector": int(selector)} if kind == "f16" else {}
                yield Case("JAX", subject, "tensor-metadata", "a", facts, numbers, axes, selected, part.reshape(-1, order="F"))


def _ordered(rows: int, indices: int, element: str) -> Values:
    """The number of the index of 2 bits that JAX puts at each place of shared memory; the order is found bit by bit of that number."""
    uint2 = np.dtype(__import__("ml_dtypes").uint2)
    numbers = np.arange(rows * indices).reshape(rows, indices // 2, 2)
    ordered = np.zeros(rows * indices, np.int64)
    for bit in range(numbers.size.bit_length()):
        shown = mosaic.metadata_order()((numbers >> bit & 1).astype(uint2), np.dtype(element))
        ordered |= np.asarray(shown).astype(np.int64).reshape(-1) << bit
    return ordered


def _scales(catalog: Catalog) -> Iterator[Case]:
    """Scale factors of pairs, of which M = 128 and M = 256 differ, as every step along K reads them."""
    plain, halved = _RECIPE.findall(mosaic.scale_documentation())
    for m, sizes, recipe, layout, copies in (
        (256, (128, 256), plain, "scales_layout", 4),
        (128, (64, 128, 192, 256), halved, "b_scales_m64_collective_layout", 2),
    ):
        for n in sizes:
            rows = m // 2
            a_places = _scattered(catalog, plain, "scales_layout", rows, 128, 4)
            padded = 256 if m == 128 else -(-n // 128) * 128  # as the layout wants it
            b_places = _scattered(catalog, recipe, layout, n, padded, copies)
            for element, scale in _SCALED:
                steps = 2 if scale == "f8E4M3FN" else 4
                for step, issued in enumerate(
                    mosaic.issued(element, "f32", rows, n // 2, steps, ctas=2, scale=scale, padded=(128, padded, layout))
                ):
                    yield from _read_scales(catalog, issued, (m, n), step, (a_places, b_places))


def _read_scales(catalog: Catalog, issued: mosaic.Issued, size: tuple[int, int], step: int, places: Sequence[Values]) -> Iterator[Case]:
    """The factors of A and of B that an instruction reads."""
    blocks = int(issued.opcode.rpartition("::")[2].removesuffix("X"))
    kind = next(part for part in issued.opcode.split(".") if part.startswith("kind"))
    ids = instruction_codec(catalog, issued.opcode).decode(issued.descriptor)
    for matrix, every, column in zip("ab", places, issued.columns, strict=True):
        part = every[:, step * blocks : (step + 1) * blocks] - column * _CELL
        axes = (Axis("row" if matrix == "a" else "col", every.shape[0]), Axis("block", blocks), Axis("copy", every.shape[2]))
        facts = {"name": "tcgen05.mma", "cta_group": "cta_group::2", "kind": kind}
        numbers = {"m": size[0], "n": size[1], "k": 32, "ctas": 2, "bits": _BYTE, "ratio": 1, "blocks": blocks}
        subject = f"async_copy_scales_smem_to_tmem, {issued.opcode}, M = {size[0]}, N = {size[1]}, {matrix.upper()}, step {step}"
        selected = {"scale_id": int(ids[f"scale_{matrix}_id"])}
        yield Case("JAX", subject, "tensor-scales", matrix, facts, numbers, axes, selected, part.reshape(-1, order="F"))


def _scattered(catalog: Catalog, recipe: str, layout: str, lines: int, padded: int, copies: int) -> Values:
    """The place of each factor, (lines, factors, copies)."""
    numbers = np.arange(1, lines * _FACTORS + 1).reshape(lines, _FACTORS)  # 0 is what pads
    known = {"jnp": np, "scales": numbers, "k": _FACTORS, "mn": lines, "pad_mn": padded, "columns_per_cta": lines // 64}
    ordered = eval(f"({textwrap.dedent(recipe)})", known).reshape(-1) - 1
    places = np.full((lines * _FACTORS, copies), -1, np.int64)
    for copy in mosaic.scale_copies(layout, padded, _FACTORS):
        _put(catalog, copy, ordered, places, 1)
    return places.reshape(lines, _FACTORS, copies)


def _put(catalog: Catalog, copy: Copied, ordered: Values, places: Values, each: int) -> None:
    """Note where a copy puts what lies in shared memory; a byte there has so many numbers, -1 where it only pads."""
    placed = _copy_layout(catalog, copy)
    rows, width = placed.sizes["row"], placed.sizes["byte"]
    numbers = ordered[copy.start * each :][: rows * width * each]
    at = np.arange(numbers.size)
    for number in range(placed.sizes.get("copy", 1)):
        extra = {"copy": np.full(numbers.size, number)} if "copy" in placed.sizes else {}
        place = placed.locate(**{"row": at // each // width, "byte": at // each % width, **extra})  # type: ignore[arg-type]  # axes, no check
        bits = np.asarray(place.bit) + at % each * (_BYTE // each)
        here = (np.asarray(place.lane) << LANE_BITS) + (np.asarray(place.column) + copy.column) * _CELL + bits
        target = places if places.ndim == 1 else places[:, number]
        target[numbers[numbers >= 0]] = here[numbers >= 0]


def _copy_layout(catalog: Catalog, copy: Copied) -> TensorPlaces:
    facts = {"name": "tcgen05.cp", "shape": copy.shape.removeprefix("shape_"), "multicast": copy.multicast.replace("_", "::", 1)}
    memory = catalog.database.spec.tensor_memory_of(facts)
    assert memory is not None
    placed = tensor_places.of(memory, "tensor-copy", "", facts, {"ctas": 1})
    assert placed is not None
    return placed
