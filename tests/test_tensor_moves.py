"""Accumulators from tensor memory to registers in C++: which thread receives D[row][col], as the library composes it, and the loads."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

import ptxmma
from cuda_calls import Nvcc
from header_programs import run
from ptxmma import paths

_F16 = "ptxmma::f16, ptxmma::f16, ptxmma::f16"
_F32 = "ptxmma::f32, ptxmma::bf16, ptxmma::bf16"
_I8 = "ptxmma::s32, ptxmma::s8, ptxmma::s8"
#: For each data path: the opcode, M, N, the types in C++, columns that are loaded at a time, and the load of the library.
_PARTS = {
    "a": ("tcgen05.mma.cta_group::2.kind::f16", 256, 96, _F32, 32, "32x32b.x32.b32"),
    "b": ("tcgen05.mma.cta_group::2.kind::f16", 128, 64, _F32, 16, "32x32b.x16.b32"),
    "c": ("tcgen05.mma.sp.cta_group::2.kind::f16", 128, 64, _F32, 32, "16x256b.x4.b32"),
    "d": ("tcgen05.mma.cta_group::1.kind::f16", 128, 256, _F32, 64, "32x32b.x64.b32"),
    "d packed": ("tcgen05.mma.cta_group::1.kind::f16", 128, 64, _F16, 32, "32x32b.x16.pack::16b.b32"),
    "e": ("tcgen05.mma.ws.cta_group::1.kind::f16", 64, 128, _F32, 64, "32x32b.x64.b32"),
    "f": ("tcgen05.mma.cta_group::1.kind::f16", 64, 64, _F32, 8, "16x256b.x1.b32"),
    "f packed": ("tcgen05.mma.cta_group::1.kind::f16", 64, 64, _F16, 32, "16x128b.x4.pack::16b.b32"),
    "g": ("tcgen05.mma.ws.cta_group::1.kind::i8", 32, 128, _I8, 16, "32x32b.x16.b32"),
}


def _product(name: str) -> str:
    opcode, m, n, types, *_ = _PARTS[name]
    front, group, kind = re.fullmatch(r"(.*)\.(cta_group::\d)\.(kind::\w+)", opcode).groups()  # type: ignore[union-attr]
    words = [f"PTXMMA_TCGEN05_{part.replace('::', '_').upper()}" for part in (kind, group)]
    return f"ptxmma::{front.replace('.', '_')}<ptxmma::shape<{m}, {n}>, {words[0]}, {types}, {words[1]}>"


@pytest.mark.parametrize("path", _PARTS)
def test_threads_receive_what_the_library_says(path: str, cxx: str, tmp_path: Path) -> None:
    """Every element of D: the thread, the element of its registers, and the way back."""
    opcode, m, n, types, columns, load = _PARTS[path]
    (tmp_path / "part.cpp").write_text(
        f"""#include <ptxmma/cuda/tensor_moves.cuh>
using Part = ptxmma::accumulator_part<{_product(path)}, {columns}>;
extern "C" {{
uint32_t row(uint32_t thread, uint32_t i, uint32_t cta) {{ return Part::row(thread, i, cta); }}
uint32_t col(uint32_t thread, uint32_t i, uint32_t first, uint32_t cta) {{ return Part::col(thread, i, first, cta); }}
uint32_t thread(uint32_t row, uint32_t col, uint32_t first) {{ return Part::thread(row, col, first); }}
uint32_t element(uint32_t row, uint32_t col, uint32_t first) {{ return Part::element(row, col, first); }}
uint32_t registers() {{ return sizeof(Part::type) / 4; }}
}}
""",
        encoding="utf-8",
    )
    built = tmp_path / "part.so"
    run(
        cxx,
        "-std=c++14",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{paths.INCLUDE}",
        "-shared",
        "-fPIC",
        tmp_path / "part.cpp",
        "-o",
        built,
    )
    part = ctypes.CDLL(str(built))
    dtype, atype, btype = (name.removeprefix("ptxmma::") for name in types.split(", "))
    product = ptxmma.instruction(opcode, m=m, n=n, dtype=dtype, atype=atype, btype=btype)
    transfer = ptxmma.instruction(f"tcgen05.ld.sync.aligned.{load}")
    d = product.operand("d-tmem")
    assert part.registers() == transfer.operand("r").registers
    rows, cols = (grid.ravel() for grid in np.meshgrid(np.arange(m), np.arange(n), indexing="ij"))
    place = d.through(transfer).locate(rows, cols)
    first = np.broadcast_to(place.address & 0xFFFF, rows.shape)
    per_register = 32 // transfer.operand("r").bits
    thread, element = (np.broadcast_to(each, rows.shape) for each in (32 * place.warp + place.lane, place.register * per_register))
    element = element + np.broadcast_to(place.bit, rows.shape) // transfer.operand("r").bits
    cta = np.broadcast_to(place.cta, rows.shape)
    numbers = zip(*(each.tolist() for each in (rows, cols, thread, element, first, cta)), strict=True)
    for row, col, whose, which, at, block in numbers:
        assert (part.thread(row, col, at), part.element(row, col, at)) == (whose, which)
        assert (part.row(whose, which, block), part.col(whose, which, at, block)) == (row, col)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("path", "columns", "loads"),
    [
        ("d", 256, ["32x32b.x128", "32x32b.x128"]),
        ("d", 100, ["32x32b.x64", "32x32b.x32", "32x32b.x4"]),
        ("d packed", 64, ["32x32b.x32.pack::16b"]),
        ("f", 56, ["16x256b.x4", "16x256b.x2", "16x256b.x1"]),
        ("f packed", 40, ["16x128b.x4.pack::16b", "16x128b.x1.pack::16b"]),
        ("g", 32, ["32x32b.x32"]),
    ],
)
def test_the_widest_loads_and_one_wait(path: str, columns: int, loads: list[str], compiler: Nvcc, tmp_path: Path) -> None:
    """Registers of loads are not read, and not copied either, before the wait."""
    source = f"""#include <ptxmma/cuda/tensor_moves.cuh>
using Part = ptxmma::accumulator_part<{_product(path)}, {columns}>;
extern "C" __global__ void kernel(ptxmma::tensor_address d, Part::register_type* to) {{
  Part::type part;
  Part::load(part, d, threadIdx.x);
#pragma unroll
  for (int i = 0; i < int(Part::registers); ++i) to[i * 128 + threadIdx.x] = part[i];
}}
"""
    ptx = compiler.ptx_of(source, "sm_100a", tmp_path)
    assert re.findall(r"tcgen05\.ld\.sync\.aligned\.(\S+)\.b32 ", ptx) == loads
    own = [register for names in re.findall(r"tcgen05\.ld\S* \{(.*?)\}", ptx) for register in names.split(", ")]
    assert len(set(own)) == len(own)
    before, after = ptx.split("tcgen05.wait::ld.sync.aligned;")
    between = before[before.index("tcgen05.ld") :]
    assert all(len(re.findall(rf"{re.escape(register)}\b", between)) == 1 for register in own)
    assert "tcgen05.ld" not in after


@pytest.mark.parametrize(
    ("path", "columns", "message"),
    [
        ("d", 257, "D has fewer columns in tensor memory"),
        ("f", 12, "a part has a multiple of 8 columns"),
        ("d packed", 3, "a part has a multiple of 8 columns; of D in all lanes any number of 32 bits, or an even one of 16"),
    ],
)
def test_parts_that_no_load_reads(path: str, columns: int, message: str, cxx: str, tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text(
        f"#include <ptxmma/cuda/tensor_moves.cuh>\nusing Part = ptxmma::accumulator_part<{_product(path)}, {columns}>;\n"
        "unsigned wrong() { return Part::registers; }\n",
        encoding="utf-8",
    )
    with pytest.raises(AssertionError, match=message):
        run(cxx, "-std=c++17", f"-I{paths.INCLUDE}", "-c", source, "-o", tmp_path / "wrong.o")
