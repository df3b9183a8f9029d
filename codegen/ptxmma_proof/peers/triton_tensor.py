"""Triton's layouts of tensor memory, and the registers of its loads."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ptxmma_proof.peers import triton_compiler
from ptxmma_proof.peers.register_loads import Load
from ptxmma_proof.peers.tensor_cases import LANE_BITS, Axis, Case, Values

_CELL, _BYTE = 32, 8
#: The most that one load fills.
_REGISTERS = 128
#: The two CTAs of a pair, which share the rows.
_PAIR: dict[str, Any] = {"two_ctas": True, "cga_layout": [[1, 0]]}
#: CTAs, rows of a CTA.
_PATHS = ((1, 64), (1, 128), (2, 64), (2, 128))
_COLUMNS = (8, 16, 32, 64, 128, 256)
#: The factors of a row that instructions read, with the ids from which they may.
_READ = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,), 8: (0,)}
#: Loads that reduce, in PTX, a target that has them, and the rows of which Triton reduces each in one thread.
_REDUCING, _REDUCES, _ROWS = re.compile(r"tcgen05\.ld\.red[\w.:]*"), 103, 128
#: A of one product: bits of an element, K.
_DEPTHS = ((16, 16), (32, 8), (8, 32))


def read() -> list[Case]:
    """The operands that Triton lays out."""
    return [*_matrices(), *_scales()]


def _matrices() -> Iterator[Case]:
    """D, and A in one CTA; Triton lets a lane skip half of the cells of D of 16 bits, and packs A."""
    for (ctas, rows), n in itertools.product(_PATHS, _COLUMNS):
        for bits, skip in ((32, 1), (16, 2)):
            yield from _matrix("tensor-accumulator", "d", ctas, (rows, n), bits, skip, {"n": n})
    for (ctas, rows), (bits, k) in itertools.product(_PATHS, _DEPTHS):
        if (ctas, rows) != (2, 64):  # its layout of a pair with 64 rows each is D's
            yield from _matrix("tensor-matrix", "a", ctas, (rows, k), bits, 1, {"n": 64, "k": k})


def _matrix(kind: str, matrix: str, ctas: int, block: tuple[int, int], bits: int, skip: int, numbers: dict[str, int]) -> Iterator[Case]:
    own = triton_compiler.gluon().TensorMemoryLayout(block, col_stride=skip, **(_PAIR if ctas == 2 else {}))
    try:
        places = _places(*triton_compiler.in_memory(own, (ctas * block[0], block[1])), bits, block, copies=False)
    except ValueError:  # a size that Triton has not
        return
    facts = {"name": "tcgen05.mma", "cta_group": f"cta_group::{ctas}"}
    sizes = {"m": ctas * block[0], "ctas": ctas, "ratio": 1, "bits": bits, **numbers}
    subject = f"TensorMemoryLayout({block}, col_stride={skip}{', two_ctas=True' if ctas > 1 else ''}), {bits} bits"
    axes = (Axis("row", block[0]), Axis("col", block[1]))
    yield Case("Triton", subject, kind, matrix, facts, sizes, axes, {}, places.reshape(-1, order="F"))


def _scales() -> Iterator[Case]:
    """The factors that one instruction reads from an id on."""
    for (matrix, lines), (blocks, ids) in itertools.product((("a", 128), ("b", 128), ("b", 256)), _READ.items()):
        factors = max(blocks, 4)
        bases = triton_compiler.in_memory(triton_compiler.gluon().TensorMemoryScalesLayout(), (lines, factors))
        places = _places(*bases, _BYTE, (lines, factors), copies=True)
        for first in ids:
            axes = (Axis("row" if matrix == "a" else "col", lines), Axis("block", blocks), Axis("copy", 4))
            numbers = {"ctas": 1, "ratio": 1, "m": 128, "n": lines, "k": 32, "bits": _BYTE, "blocks": blocks}
            facts = {"name": "tcgen05.mma", "cta_group": "cta_group::1"}
            part = places[:, first : first + blocks].reshape(-1, order="F")
            subject = f"TensorMemoryScalesLayout(), {lines} x {factors}, factors {first} to {first + blocks - 1}"
            yield Case("Triton", subject, "tensor-scales", matrix, facts, numbers, axes, {"scale_id": first}, part)


def _places(lanes: triton_compiler.Bases, columns: triton_compiler.Bases, width: int, shape: tuple[int, int], *, copies: bool) -> Values:
    """The place of each element, (rows, columns), and last its copies in other lanes; what only pads a layout is left out."""
    moving = [number for number, basis in enumerate(lanes) if any(basis)]
    still = [number for number, basis in enumerate(lanes) if not any(basis)] if copies else []
    own = [number for number, basis in enumerate(columns) if any(basis)]
    reached = triton_compiler.spread([*(lanes[number] for number in moving), *(columns[number] for number in own)])
    steps = [1 << number + LANE_BITS for number in moving] + [width << number for number in own]
    here = _sums(steps)
    places = np.full((*shape, 1 << len(still)), -1, np.int64)
    places[reached[:, 0], reached[:, 1]] = here[:, np.newaxis] + _sums([1 << number + LANE_BITS for number in still])
    return places


def _sums(steps: list[int]) -> Values:
    """The sum of the steps whose bits a number has, for each number."""
    total = np.zeros(1, np.int64)
    for step in steps:
        total = np.concatenate([total, total + step])
    return total


#: The shapes of loads: Triton's and ours, the rows of a matrix of which a warp reads as many lanes as the shape has, and the registers of
#: one repetition.  With 64 rows each warp has 16, and Triton reads them as 32 lanes by the shape with two accesses.
_ATOMS = (
    ("32x32b", "32x32b", 128, 1),
    ("32x32b", "16x32bx2", 64, 1),
    ("16x64b", "16x64b", 64, 1),
    ("16x128b", "16x128b", 64, 2),
    ("16x256b", "16x256b", 64, 4),
)


def loads() -> Iterator[Load]:
    """The registers of each shape, of elements that fill a cell and of packed ones; Triton has one layout for loads and stores."""
    for (atom, shape, rows, registers), (element, skip, modifier), n in itertools.product(
        _ATOMS, (("float32", 1, ""), ("float16", 2, "pack::16b.")), (*_COLUMNS, 2, 4)
    ):
        layout = triton_compiler.gluon().TensorMemoryLayout((rows, n), col_stride=skip)
        try:
            fragment = triton_compiler.registers(element, (rows, n), layout, atom)
        except ValueError:  # a size that Triton has not
            continue
        split = n // 2 if shape == "16x32bx2" else 0
        if split and list(fragment.lane_bases[-1]) != [0, split]:  # too few columns for a second access
            continue
        places = _registers(fragment)
        repeats, left = divmod(places.shape[1] // skip, registers)
        if repeats and not left and repeats * registers <= _REGISTERS:  # else it is more than one instruction
            subject = f"compute_tmem_reg_layout({element}, {rows} x {n}, {atom!r})"
            for name, inverse in (("ld", ""), ("st", "un" if modifier else "")):
                opcode = f"tcgen05.{name}.sync.aligned.{shape}.x{repeats}.{inverse}{modifier}b32"
                yield Load("Triton", subject, opcode, split, places)


def _registers(layout: Any) -> Values:
    """The place of each element of each lane of the first warp, (lanes, elements)."""
    reached = triton_compiler.spread(layout.lane_bases)[:, np.newaxis] ^ triton_compiler.spread(layout.reg_bases)
    return (reached[..., 0] << LANE_BITS) + reached[..., 1] * _CELL


def reductions() -> Iterator[Load]:
    """The registers of loads with a reduction: the opcode is the one that Triton compiles for its layout of registers."""
    from ptxmma_proof.peers import triton_products as kernels  # only now is Triton needed

    for n in _COLUMNS:
        memory = kernels.bw.TensorMemoryLayout((_ROWS, n), col_stride=1)
        fragment = triton_compiler.registers("float32", (_ROWS, n), memory, "32x32b")
        constants = {"M": _ROWS, "N": n, "T": kernels.gl.float32, "MEMORY": memory, "REGISTERS": fragment}
        opcodes = _REDUCING.findall(kernels.compiled(kernels.reduced, _REDUCES, 1, constants, ["POINTER"]))
        if len(opcodes) == 1:  # else it is more than one instruction
            yield Load("Triton", f"load_min, {_ROWS} x {n}", opcodes[0], 0, _registers(fragment))
