"""CuTe's fragments of tensor memory, read from CUTLASS's headers by a program that prints the place of every element."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ptxmma_proof.peers import probe
from ptxmma_proof.peers.sources import Source
from ptxmma_proof.peers.tensor_cases import Axis, Case, Values

_ONE, _PAIR = {"name": "tcgen05.mma", "cta_group": "cta_group::1"}, {"name": "tcgen05.mma", "cta_group": "cta_group::2"}
_SPARSE = {"cta_group": "cta_group::1", "name": "tcgen05.mma.sp"}
_SPARSE_PAIR = _PAIR | {"name": "tcgen05.mma.sp"}
#: An atom of a sparse pair, and what its traits have for D; M and N are left open.
_SPARSE_ATOM = "SM100_MMA_F16BF16_2x1SM_SS_SPARSE"
_SPARSE_TRAITS = "UMMA::Major::K, UMMA::Major::K, UMMA::ScaleIn::One, UMMA::ScaleIn::One>>::FrgTypeC"
_SPARSE_D = f"MMA_Traits<{_SPARSE_ATOM}<half_t, half_t, float, {{}}, {{}}, {_SPARSE_TRAITS}"
_WS, _WS_SPARSE = _ONE | {"name": "tcgen05.mma.ws"}, _ONE | {"name": "tcgen05.mma.ws.sp"}
#: An element type of each width in C++, with K of a dense product.
_TYPES = {16: ("half_t", 16), 32: ("tfloat32_t", 8), 8: ("uint8_t", 32)}
#: The type by which CuTe picks the layout of metadata, with K of a sparse product, the columns of a chunk, and the kind.
_METADATA = {16: ("half_t", 32, 4, "f16"), 32: ("float", 16, 2, "tf32"), 8: ("uint8_t", 64, 4, "i8"), 4: ("float_e2m1_t", 128, 8, "mxf4")}

_SOURCE = (
    probe.INCLUDES
    + r"""
template <class Fragment, class Shape> void fragment() {
  auto const layout = make_tensor<Fragment>(Shape{}).layout();
  for (int i = 0; i < size(layout); ++i) std::printf("%lld ", (long long)layout(i));
  std::printf("\n");
}
template <class Traits, class Shape> void copied() {
  auto const bits = composition(typename Traits::ValID{}, typename Traits::DstLayout{}(0, _));
  for (int i = 0; i < size(bits); ++i) std::printf("%lld ", (long long)bits(i));
  std::printf("\n");
}
int main() {
"""
)


class _Asked(NamedTuple):
    """A fragment, or a copy: its type, its shape, the bits of one of its numbers (doubled), and the cases that its places make."""

    fragment: str
    shape: str
    twice_bits: int
    cases: Callable[[Values], list[Case]]
    function: str = "fragment"


def read(cutlass: Source, nvcc: str = "nvcc") -> list[Case]:
    """Compile and run the program.

    Raises:
        MissingPeerError: the compiler is not installed.
        CompilerError: it refuses the headers.
    """
    asked = list(_asked())
    source = _SOURCE + "".join(f"  {each.function}<{each.fragment}, {each.shape}>();\n" for each in asked) + "}\n"
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "tensor_memory"
        probe.compile_source(cutlass, source, Path(scratch), nvcc, program)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    cases = []
    for each, line in zip(asked, printed.splitlines(), strict=True):
        cases += each.cases(np.array(line.split(), np.int64) * each.twice_bits // 2)
    return cases


def _asked() -> Iterator[_Asked]:
    yield from _accumulators()
    yield from _multiplicands()
    yield from _metadata()
    yield from _scales()
    yield from _copies()


def _asking(
    fragment: str, shape: tuple[int, int], twice_bits: int, operand: tuple[str, str], facts: dict[str, str], numbers: dict[str, int],
    *axes: Axis, named: str = "",
) -> _Asked:  # fmt: skip
    """A fragment whose places are one case; ``named`` is what the subject calls it, if not by its type."""
    ctas = 2 if facts["cta_group"] == "cta_group::2" else 1
    case = Case(
        "CuTe",
        f"{named or fragment}, {shape[0]} x {shape[1]}",
        *operand,
        facts,
        {"ctas": ctas, "ratio": 1, **numbers},
        axes,
        {},
        np.array([]),
    )
    form = f"Shape<Shape<Int<{shape[0]}>, Int<{shape[1]}>>, _1, _1>"
    return _Asked(fragment, form, twice_bits, lambda places: [case._replace(places=places)])


def _accumulators() -> Iterator[_Asked]:
    """D of every shape in f32, and of the largest in f16."""
    groups = [
        (_ONE, "tmem_frg_1sm", (64, 128), 1, range(8, 257, 8)),
        (_PAIR, "tmem_frg_2sm", (128, 256), 2, range(16, 257, 16)),
        (_WS, "tmem_frg_ws_1sm", (32, 64, 128), 1, (64, 128, 256)),
    ]
    operand = ("tensor-accumulator", "d")
    for facts, name, sizes, ctas, columns in groups:
        for m in sizes:
            for n in columns:
                for type_, bits in (("float", 32), ("half_t", 16)) if n == max(columns) else (("float", 32),):
                    rows, numbers = m // ctas, {"m": m, "n": n, "bits": bits}
                    fragment = f"UMMA::{name}<{type_}>"
                    yield _asking(fragment, (rows, n), 2 * bits, operand, facts, numbers, Axis("row", rows), Axis("col", n))
    for m, n in itertools.product((128, 256), (64, 256)):
        numbers, axes = {"m": m, "n": n, "bits": 32}, (Axis("row", m // 2), Axis("col", n))
        named = f"D of {_SPARSE_ATOM}, M = {m}"
        yield _asking(_SPARSE_D.format(m, n), (m // 2, n), 64, operand, _SPARSE_PAIR, numbers, *axes, named=named)


def _multiplicands() -> Iterator[_Asked]:
    """A in tensor memory."""
    for bits, (type_, k) in _TYPES.items():
        for facts, m, name in ((_ONE, 64, "1sm"), (_ONE, 128, "1sm"), (_PAIR, 128, "2sm"), (_PAIR, 256, "2sm")):
            mode = "Duplicated" if facts is _PAIR else "NonInterleaved"
            fragment = f"UMMA::tmem_frg_{name}<{type_}, {type_}, UMMA::TmemAllocMode::{mode}>"
            rows = m // 2 if facts is _PAIR else m
            axes = [Axis("row", rows), *([Axis("copy", 2)] if (facts, m) == (_PAIR, 128) else []), Axis("col", k)]
            numbers = {"m": m, "n": 256, "k": k, "bits": bits}
            yield _asking(fragment, (rows, k), 2 * bits, ("tensor-matrix", "a"), facts, numbers, *axes)


def _metadata() -> Iterator[_Asked]:
    """Metadata of a sparse A; a number of CuTe's is a column of A, and a field of 4 bits describes a chunk of columns."""
    for bits, (type_, k, chunk, kind) in _METADATA.items():
        sizes = [(_SPARSE, "tmem_e_frg", 128)]
        if bits > 4:
            sizes += [(_WS_SPARSE, "tmem_e_frg_ws", m) for m in (32, 64, 128)]
        for facts, name, m in sizes:
            axes = [Axis("row", m), Axis("chunk", k // chunk, chunk), *([Axis("copy", 128 // m)] if m < 128 else [])]
            numbers = {"m": m, "n": 128, "k": k, "bits": bits, "chunk_size": chunk}
            known = facts | {"kind": f"kind::{kind}"}
            yield _asking(f"UMMA::{name}<{type_}>", (m, k), 8 // chunk, ("tensor-metadata", "a"), known, numbers, *axes)


#: The factors of a row that instructions read, with the ids from which they may.
_READ = {1: (0, 1, 2, 3), 2: (0, 2), 3: (0, 1, 2, 3), 4: (0,), 6: (0, 2)}
_CELL_READ = {blocks: ids for blocks, ids in _READ.items() if 4 % blocks == 0}  # of those that lie in one cell
_VECTOR, _TILES, _CELL_TILES = 32, 8, 4


def _scales() -> Iterator[_Asked]:
    """Scale factors: several after one another along K, of which an instruction reads some from its id on.

    CuTe takes the rows of one CTA and, of B, all columns.  In a pair with M = 128 instructions read no further than a cell.
    """
    for matrix, size, columns in (("a", 128, (128,)), ("b", 128, (8, 72, 128)), ("b", 256, (136, 256))):
        fragment = f"UMMA::tmem_sf_frg<float_ue8m0_t, {_VECTOR}, 1, {'true' if matrix == 'a' else 'false'}>"
        yield _scaled(
            fragment, matrix, size, _TILES, [(_ONE, {"m": 128, "n": n, "ctas": 1}, size if matrix == "a" else n) for n in columns]
        )
    for matrix, size in (("a", 64), ("b", 64), ("b", 128), ("b", 192), ("b", 256)):
        mode = "UMMA::TmemAllocMode::ScaleFactorDuplicated2by2"
        fragment = f"UMMA::tmem_sf_frg<float_ue8m0_t, {_VECTOR}, 2, {'true' if matrix == 'a' else 'false'}, {mode}>"
        sizes = {"m": 128, "n": 128 if matrix == "a" else size, "ctas": 2}
        yield _scaled(fragment, matrix, size, _CELL_TILES, [(_PAIR, sizes, size)])


def _scaled(fragment: str, matrix: str, size: int, tiles: int, products: list[tuple[dict[str, str], dict[str, int], int]]) -> _Asked:
    """The factors of so many rows or columns, as many tiles along K; the products that read some of their first lines."""

    def cases(places: Values) -> list[Case]:
        copies = places.size // (size * _VECTOR * tiles)
        grid = places.reshape((size, copies, _VECTOR, tiles), order="F")
        line, made = "row" if matrix == "a" else "col", []
        for facts, sizes, lines in products:
            for blocks, ids in (_CELL_READ if tiles == _CELL_TILES else _READ).items():
                for first in ids:
                    axes = (Axis(line, lines), Axis("copy", copies), Axis("", _VECTOR), Axis("block", blocks))
                    numbers = {**sizes, "ratio": 1, "k": 32, "bits": 8, "blocks": blocks}
                    part = grid[:lines, :, :, first : first + blocks].reshape(-1, order="F")
                    subject = f"{fragment}, {size} rows, factors {first} to {first + blocks - 1}"
                    made.append(Case("CuTe", subject, "tensor-scales", matrix, facts, numbers, axes, {"scale_id": first}, part))
        return made

    return _Asked(fragment, f"Shape<Shape<Int<{size}>, Shape<Int<{_VECTOR}>, _1>>, _1, Int<{tiles}>>", 16, cases)


#: CuTe's copies: the qualifiers of ours, rows, bytes of a row and copies.
_COPIED = {
    "128dp256bit": ({"shape": "128x256b"}, 128, 32, 1),
    "128dp128bit": ({"shape": "128x128b"}, 128, 16, 1),
    "4dp256bit": ({"shape": "4x256b"}, 4, 32, 1),
    "4x32dp128bit": ({"shape": "32x128b", "multicast": "warpx4"}, 32, 16, 4),
    "2x64dp128bitlw0213": ({"shape": "64x128b", "multicast": "warpx2::02_13"}, 64, 16, 2),
    "2x64dp128bitlw0123": ({"shape": "64x128b", "multicast": "warpx2::01_23"}, 64, 16, 2),
}
_BYTE, _HALF = 8, 32


def _copies() -> Iterator[_Asked]:
    """Copies of shared memory, bit by bit: rows first, then the bits of a row, then copies; CuTe numbers halves of rows after the bits."""
    for name, (facts, rows, width, copies) in _COPIED.items():
        axes = (Axis("row", rows), Axis("byte", width, _BYTE), *([Axis("copy", copies)] if copies > 1 else []))
        case = Case(
            "CuTe", f"SM100_UTCCP_{name}_1cta", "tensor-copy", "", {"name": "tcgen05.cp", **facts}, {"ctas": 1}, axes, {}, np.array([])
        )
        halves = rows // _HALF if name.endswith("0123") else 1

        def cases(places: Values, case: Case = case, bits: int = width * _BYTE, halves: int = halves, copies: int = copies) -> list[Case]:
            grid = places.reshape((-1, bits, halves, copies), order="F").transpose(0, 2, 1, 3)
            return [case._replace(places=grid.reshape(-1, order="F"))]

        yield _Asked(f"Copy_Traits<{case.subject}>", "_1", 2, cases, "copied")
