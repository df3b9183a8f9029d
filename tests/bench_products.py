"""Products of whole matrices against NumPy's in double precision, and packing to bytes against two slices; part of ``make bench``."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np

from bench_rounds import in_turn
from ptxmma.arrays import elements
from ptxmma.catalog.lookup import instruction
from ptxmma.matrices.packed_bytes import pack_bytes
from ptxmma.matrices.product_operands import product_operands
from ptxmma.matrices.products.whole import matmul

_SIZE = 512
_ROUNDS = 7
_PRODUCTS = (
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
)


def main() -> None:
    """Measure and print rows of the table."""
    random = np.random.default_rng(0)
    for spelling in _PRODUCTS:
        known = instruction(spelling)
        element = product_operands(known).a.element
        a, b = ((8 * random.standard_normal((_SIZE, _SIZE))).astype(elements.dtype(element)) for _ in "ab")
        left, right = a.astype(np.float64), b.astype(np.float64)
        what = f"matmul {known.family} {element.name}, {_SIZE}x{_SIZE}x{_SIZE} / float64"
        _ratio(what, lambda known=known, a=a, b=b: matmul(known, a, b), lambda left=left, right=right: left @ right, "10x")  # type: ignore[misc]
    codes = random.integers(0, 16, (4096, 4096), np.uint8)
    _ratio("pack_bytes e2m1, 4096x4096 / two slices", lambda: pack_bytes(codes, "e2m1"), lambda: codes[:, ::2] | codes[:, 1::2] << 4, "1x")


def _ratio(what: str, ours: Callable[[], object], theirs: Callable[[], object], limit: str) -> None:
    times = in_turn({"ours": ours, "theirs": theirs}, _ROUNDS)
    ratio = statistics.median(one / other for one, other in zip(times["ours"], times["theirs"], strict=True))
    print(f"{what:<58}{ratio:>8.1f}x  {limit}  ({statistics.median(times['ours']) * 1e3:.0f} ms)")


if __name__ == "__main__":
    main()
