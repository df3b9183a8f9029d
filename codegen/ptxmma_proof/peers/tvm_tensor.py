"""TVM's layouts of tensor memory: its own Python functions, executed on stand-ins for the classes of its compiler.

The functions are pure: they make a ``TileLayout`` of a shape and strides on named axes.  The stand-ins evaluate it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ptxmma_proof.peers.tensor_cases import LANE_BITS, Axis, Case

#: The files below TVM's checkout, and the functions in them.
LAYOUTS, _PRIMITIVES = Path("python/tvm/tirx/layout.py"), Path("python/tvm/backend/cuda/tile_primitive")
SCALES, COPIES = _PRIMITIVES / "gemm_async/tcgen05.py", _PRIMITIVES / "copy_async/tcgen05_cp.py"
_NAMES = {
    LAYOUTS: ("_TMEM_DATAPATH_ROWS", "tmem_datapath_layout", "_mma_datapath_letter", "tmem_mma_operand_layout"),
    SCALES: ("sf_tmem_layout",),
    COPIES: ("_CP_SHAPE_MULTICASTS", "_shape_dims", "_cp_lane_replica_pattern"),
}
_CELL, _BYTE = 32, 8


class _Name:
    """An axis of memory; a number times it is a stride."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __rmatmul__(self, stride: int) -> tuple[int, str]:
        return stride, self.name

    @staticmethod
    def get(name: str) -> _Name:
        return _Name(name)


class _Spec:
    """A shape with its strides, and copies."""

    def __init__(self, shape: list[tuple[int, int, str]], copies: list[tuple[int, int, str]]) -> None:
        self.shape, self.copies = shape, copies

    def __add__(self, other: _Spec) -> _Spec:
        return _Spec(self.shape + other.shape, self.copies + other.copies)


class _Builder:
    """``S[shape : strides]`` or ``R[shape : strides]``."""

    def __init__(self, *, copies: bool) -> None:
        self.copies = copies

    def __getitem__(self, key: slice) -> _Spec:
        extents, strides = (
            each if isinstance(each, tuple) and not isinstance(each[-1], str) else (each,) for each in (key.start, key.stop)
        )
        iters = [(extent, *stride) for extent, stride in zip(extents, strides, strict=True)]
        return _Spec([], iters) if self.copies else _Spec(iters, [])


class _TileLayout:
    """A layout: the place of a point of its shape, first axis slowest, as (axis name -> number), for each copy."""

    def __init__(self, spec: _Spec) -> None:
        self.shape, self.copies = spec.shape, spec.copies

    def canonicalize(self) -> _TileLayout:
        return self

    def direct_sum(self, left: _TileLayout, left_shape: list[int], right_shape: list[int]) -> _TileLayout:
        """A layout over the interleaved shape (left 0, right 0, left 1, right 1, …)."""
        parts = []
        for one, two in zip(_grouped(left.shape, left_shape), _grouped(self.shape, right_shape), strict=True):
            parts += [*one, *two]
        return _TileLayout(_Spec(parts, self.copies + left.copies))

    def bits(self, width: int) -> Any:
        """The place of every point and copy as a number of bits, copies last; columns count elements of ``width`` bits."""
        total = np.zeros([extent for extent, *_ in (*self.shape, *self.copies)], np.int64)
        for number, (extent, stride, name) in enumerate((*self.shape, *self.copies)):
            step = stride * (1 << LANE_BITS if name == "TLane" else width)
            total += (np.arange(extent) * step).reshape([extent if number == at else 1 for at in range(total.ndim)])
        return total


def _grouped(shape: list[tuple[int, int, str]], sizes: list[int]) -> list[list[tuple[int, int, str]]]:
    """The parts of a shape whose products are the sizes."""
    groups, left = [], list(shape)
    for size in sizes:
        group, product = [], 1
        while product < size:
            group.append(left.pop(0))
            product *= group[-1][0]
        groups.append(group)
    return groups


def functions(checkout: Path) -> dict[str, Any]:
    """TVM's functions and tables from a checkout.

    Raises:
        OSError: a file cannot be read.
    """
    known: dict[str, Any] = {"S": _Builder(copies=False), "R": _Builder(copies=True), "TileLayout": _TileLayout}
    known |= {"Axis": _Name, "TLane": _Name("TLane"), "TCol": _Name("TCol")}
    for file, names in _NAMES.items():
        tree = ast.parse((checkout / file).read_text(encoding="utf-8"))
        chosen = [node for node in tree.body if _defines(node) in names]
        exec(compile(ast.Module(chosen, []), file.name, "exec"), known)
    return known


def _defines(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef):
        return node.name
    return node.targets[0].id if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else ""


def read(checkout: Path) -> list[Case]:
    """The operands that TVM lays out."""
    tvm = functions(checkout)
    return [*_accumulators(tvm), *_multiplicands(tvm), *_scales(tvm), *copies(tvm)]


#: The manual's letters with the instruction of each: name, CTAs, M, and the N that TVM and we compare.
_PATHS = {
    "A": ("tcgen05.mma", 2, 256, range(16, 257, 16)),
    "B": ("tcgen05.mma", 2, 128, range(16, 257, 16)),
    "C": ("tcgen05.mma.sp", 2, 128, range(16, 257, 16)),
    "D": ("tcgen05.mma", 1, 128, range(8, 257, 8)),
    "E": ("tcgen05.mma.ws", 1, 64, (64, 128, 256)),
    "F": ("tcgen05.mma", 1, 64, range(8, 257, 8)),
    "G": ("tcgen05.mma.ws", 1, 32, (64, 128, 256)),
}


def _accumulators(tvm: dict[str, Callable[..., Any]]) -> Iterator[Case]:
    for letter, (name, ctas, m, columns) in _PATHS.items():
        for n in columns:
            rows = m // ctas
            places = tvm["tmem_datapath_layout"](letter, rows, n).bits(_CELL).reshape(rows, n)
            facts = {"name": name, "cta_group": f"cta_group::{ctas}"}
            numbers = {"m": m, "n": n, "ctas": ctas, "ratio": 1, "bits": 32}
            subject = f"tmem_datapath_layout({letter!r}, {rows}, {n})"
            axes = (Axis("row", rows), Axis("col", n))
            yield Case("TVM", subject, "tensor-accumulator", "d", facts, numbers, axes, {}, places.reshape(-1, order="F"))


def _multiplicands(tvm: dict[str, Callable[..., Any]]) -> Iterator[Case]:
    k, bits = 16, 16
    for letter in "ABDEF":
        name, ctas, m, _ = _PATHS[letter]
        rows, ws = m // ctas, name.endswith(".ws")
        shape = (2, rows, k) if ws else (rows, k)
        layout = tvm["tmem_mma_operand_layout"]("A", shape, "float16", M=m, cta_group=ctas, ws=ws)
        places = layout.bits(bits)
        axes = [Axis("row", rows), Axis("col", k)]
        if ws:  # the bank comes first
            places = np.moveaxis(places, 0, -1)
        if places.size > rows * k:
            axes.append(Axis("copy", places.size // (rows * k)))
        facts = {"name": name, "cta_group": f"cta_group::{ctas}"}
        numbers = {"m": m, "n": 64, "k": k, "ctas": ctas, "ratio": 1, "bits": bits}
        subject = f"tmem_mma_operand_layout('A', {shape}, M={m}, cta_group={ctas}{', ws=True' if ws else ''})"
        yield Case("TVM", subject, "tensor-matrix", "a", facts, numbers, tuple(axes), {}, places.reshape(-1, order="F"))


def _scales(tvm: dict[str, Callable[..., Any]]) -> Iterator[Case]:
    """Each group of factors that one instruction reads, of those that share the first columns."""
    for (matrix, size), blocks in itertools.product((("a", 128), ("b", 128), ("b", 256)), (1, 2, 4)):
        places = tvm["sf_tmem_layout"](size, 4, blocks).bits(8).reshape(size, 4, 4)  # lines, factors, copies
        for first in range(0, 4, blocks):
            axes = (Axis("row" if matrix == "a" else "col", size), Axis("block", blocks), Axis("copy", 4))
            numbers = {"ctas": 1, "ratio": 1, "m": 128, "n": size, "k": 32, "bits": 8, "blocks": blocks}
            facts = {"name": "tcgen05.mma", "cta_group": "cta_group::1"}
            part = places[:, first : first + blocks].reshape(-1, order="F")
            subject = f"sf_tmem_layout({size}, 4, {blocks}), factors {first} to {first + blocks - 1}"
            yield Case("TVM", subject, "tensor-scales", matrix, facts, numbers, axes, {"scale_id": first}, part)


def copies(tvm: dict[str, Any]) -> Iterator[Case]:
    """The lanes and copies that TVM's planner demands of each shape; it wants the bytes of a row in neighbouring columns."""
    for shape, multicasts in tvm["_CP_SHAPE_MULTICASTS"].items():
        rows, bits = tvm["_shape_dims"](shape)
        for multicast in multicasts:
            lanes, repeated = ([(*each, "TLane") for each in part] for part in tvm["_cp_lane_replica_pattern"](shape, multicast))
            row = [*lanes, (bits // _BYTE, 1, "TCol")]
            places = _TileLayout(_Spec(row, repeated)).bits(_BYTE).reshape(rows, bits // _BYTE, -1)
            axes = (Axis("row", rows), Axis("byte", bits // _BYTE), *([Axis("copy", places.shape[-1])] if repeated else []))
            facts = {"name": "tcgen05.cp", "shape": shape, "multicast": multicast}
            subject = f"_cp_lane_replica_pattern({shape!r}, {multicast!r})"
            yield Case("TVM", subject, "tensor-copy", "", facts, {"ctas": 1}, axes, {}, places.reshape(-1, order="F"))
