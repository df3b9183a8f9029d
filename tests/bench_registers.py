"""Packing whole matrices against NumPy's own transposing copy of the same bytes; part of ``make bench``."""

from __future__ import annotations

import statistics

import numpy as np

from bench_rounds import in_turn
from ptxmma.arrays import elements
from ptxmma.catalog.lookup import instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices import sparse

_SIZE = 8192
_ROUNDS = 3
_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
_S4 = "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
_B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


def main() -> None:
    """Measure and print rows of the table."""
    for spelling, name in (
        (_F16, "a"),
        (_F16, "b"),
        (_F16, "c"),
        (_S8, "a"),
        (_S8, "b"),
        (_S4, "a"),
        (_S4, "b"),
        (_B1, "a"),
        (_B1, "b"),
        (_WGMMA, "d"),
    ):
        _operand(instruction(spelling).operand(name), ".".join(spelling.split(".")[:1]))
    _metadata()


def _operand(operand: Operand, what: str) -> None:
    """Pack and unpack one matrix, row-major."""
    assert operand.element is not None
    dtype = elements.bits_dtype(operand.element)
    codes = np.random.default_rng(0).integers(0, 1 << min(operand.element.bits, 31), (_SIZE, _SIZE), dtype)
    matrix = elements.typed(codes, operand.element)
    packed = operand.pack_tiles(matrix)
    times = in_turn(
        {
            "copy": lambda: np.ascontiguousarray(codes.T),
            "pack": lambda: operand.pack_tiles(matrix),
            "unpack": lambda: operand.unpack_tiles(packed),
        },
        _ROUNDS,
    )
    label = f"{what} {operand.name} {operand.rows}x{operand.cols} {operand.element_type}, {_SIZE}x{_SIZE}: "
    for verb in ("pack", "unpack"):
        ratio = statistics.median(ours / theirs for ours, theirs in zip(times[verb], times["copy"], strict=True))
        print(f"{label + verb + ' / x.T copy':<58}{ratio:>8.2f}x   2x  ({statistics.median(times[verb]) * 1e3:.0f} ms)")


def _metadata() -> None:
    """The metadata of a 16384 x 16384 f16 matrix."""
    metadata = instruction(_SPARSE).metadata
    legal = np.array([int(value, 2) for value in metadata.legal], np.uint8)
    packed = sparse.from_fields(np.random.default_rng(0).choice(legal, (16384, 16384 // 4)))
    registers = metadata.pack_tiles(packed)
    functions = {
        "pack": lambda: metadata.pack_tiles(packed),
        "pack, unchecked": lambda: metadata.pack_tiles(packed, check=False),
        "unpack": lambda: metadata.unpack_tiles(registers),
    }
    for verb, times in in_turn(functions, _ROUNDS).items():
        print(f"{'metadata of 16384x16384 f16: ' + verb:<58}{statistics.median(times) * 1e3:>7.0f} ms  100 ms")


if __name__ == "__main__":
    main()
