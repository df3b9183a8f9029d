"""Moves of fragments between registers and shared memory, and from one product to the next, against the emulator and the model of banks."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import header_programs
from cuda_calls import Nvcc
from ptxmma import convert, emulate, instruction, paths
from ptxmma.catalog.conversion import Arrange
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared_memory import SharedLayout, bank_conflicts

Array = npt.NDArray[np.int64]
_LEAST = 4  # wavefronts of 16 bytes in each of 32 lanes


class Move(NamedTuple):
    """A fragment and a tile."""

    multiply: str  # PTX
    front: str
    operand: str
    element: str  # of the tile
    majorness: str
    swizzle: str
    x: int
    k: int

    @property
    def types(self) -> str:
        """The two types as template arguments."""
        tile = f"shared_tile<{self.element}, PTXMMA_MAJORNESS_{self.majorness}, PTXMMA_SWIZZLE_{self.swizzle.upper()}, {self.x}, {self.k}>"
        return f"{self.front}::{self.operand}::layout, {tile}"


_F16 = ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma<shape<16, 8, 16>, f32, f16, f16, f32>")
_E4M3 = ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "mma<shape<16, 8, 32>, f32, e4m3, e4m3, f32>")
_TF32 = ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "mma<shape<16, 8, 8>, f32, tf32, tf32, f32>")
_WGMMA = ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "wgmma<shape<64, 128, 16>, f32, bf16, bf16>")
_NARROW = ("wgmma.mma_async.sync.aligned.m64n24k16.f32.bf16.bf16", "wgmma<shape<64, 24, 16>, f32, bf16, bf16>")
_LOADS = [
    *(Move(*_F16, operand, "f16", majorness, "128B", 64, 64) for operand in "ab" for majorness in ("K", "MN")),
    *(Move(*_F16, "a", "f16", majorness, swizzle, 64, 64) for majorness in ("K", "MN") for swizzle in ("64B", "32B", "none")),
    *(Move(*_E4M3, operand, "e4m3", "K", "128B", 64, 128) for operand in "ab"),
    *(Move(*_TF32, operand, "tf32", "K", "128B", 64, 32) for operand in "ab"),
    Move(*_WGMMA, "a", "bf16", "K", "128B", 64, 64),
    Move(*_WGMMA, "a", "bf16", "MN", "128B", 64, 64),
]
_STORES = [
    Move(*_WGMMA, "d", "bf16", "K", "128B", 64, 128),
    Move(*_WGMMA, "d", "bf16", "MN", "128B", 64, 128),
    Move(*_NARROW, "d", "bf16", "K", "none", 64, 24),
    Move(*_F16, "d", "f16", "K", "32B", 16, 16),
    Move(*_F16, "d", "f16", "MN", "32B", 16, 16),
]
_HEADERS = """#include <cstdio>
#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/mma/e4m3_e4m3.cuh>
#include <ptxmma/mma/f16_f16.cuh>
#include <ptxmma/mma/tf32_tf32.cuh>
#include <ptxmma/wgmma/bf16_bf16.cuh>
#include <ptxmma/wgmma/e4m3_e4m3.cuh>
#include <ptxmma/wgmma/tf32_tf32.cuh>
#include <ptxmma/wgmma_sp/e4m3_e4m3.cuh>
using namespace ptxmma;
"""


def run(source: str, folder: Path, dialect: str = "c++17") -> list[list[int]]:
    """The numbers on each line that a program prints."""
    compiler = shutil.which("g++") or shutil.which("clang++") or pytest.skip("no C++ compiler (g++ or clang++) is installed")
    (folder / "moves.cpp").write_text(source)
    options = (f"-std={dialect}", "-O1", "-Wall", "-Wextra", "-Werror", "-I", paths.INCLUDE)
    header_programs.run(compiler, *options, folder / "moves.cpp", "-o", folder / "moves")
    said = subprocess.run([folder / "moves"], check=True, capture_output=True, text=True).stdout
    return [list(map(int, line.split())) for line in said.splitlines()]


def offsets(moves: list[Move], kind: str, registers: list[int], threads: list[int], folder: Path) -> list[tuple[bool, list[Array]]]:
    """For each move: whether matrices are transposed, and for each four registers the offsets that the threads give."""
    parts = [
        f"""  std::printf("%d\\n", detail::{kind}<{move.types}>::transposed);
  for (unsigned first = 0; first < {count}; first += 4)
    for (unsigned lane = 0; lane < {lanes}; lane++)
      std::printf("%u%s", detail::{kind}<{move.types}>::offset(lane, first, 0, 0), lane == {lanes - 1} ? "\\n" : " ");"""
        for move, count, lanes in zip(moves, registers, threads, strict=True)
    ]
    lines = iter(run(_HEADERS + "int main() {\n" + "\n".join(parts) + "\n}\n", folder))
    return [(bool(next(lines)[0]), [np.array(next(lines)) for _ in range(0, count, 4)]) for count in registers]


def moved(name: str, transposed: bool, count: int) -> str:
    """PTX that moves so many matrices."""
    return f"{name}.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16"


def test_loads_fill_the_fragment_from_the_tile(tmp_path: Path) -> None:
    operands = [instruction(move.multiply).operand(move.operand) for move in _LOADS]
    threads = [128 if move.multiply.startswith("wgmma") else 32 for move in _LOADS]
    loaded = offsets(_LOADS, "matrix_load", [operand.registers for operand in operands], threads, tmp_path)
    rng = np.random.default_rng(1)
    for move, operand, (transposed, groups) in zip(_LOADS, operands, loaded, strict=True):
        layout = SharedLayout(move.element, move.majorness, move.swizzle, move.x, move.k)
        matrix = rng.integers(0, 100, (move.x, move.k)).astype(f"u{max(layout.element.bits // 8, 1)}")
        image = layout.store_xk(matrix)
        wanted = matrix[: operand.rows, : operand.cols] if move.operand == "a" else matrix[: operand.cols, : operand.rows].T
        expected = operand.pack(wanted)
        for first, addresses in zip(range(0, operand.registers, 4), groups, strict=True):
            count = min(4, operand.registers - first)
            for warp in range(len(addresses) // 32):
                given = addresses[32 * warp : 32 * warp + 32]
                load = emulate(moved("ldmatrix", transposed, count), address=given, memory=image)
                assert np.array_equal(load.registers.view(np.uint32), expected[32 * warp : 32 * warp + 32, first : first + count]), move
                if count == 4:
                    assert bank_conflicts(given, 16).wavefronts == _LEAST, move


@pytest.mark.parametrize("swizzle", ["128B", "none"])
def test_bytes_are_transposed_where_an_instruction_does_it(swizzle: str, tmp_path: Path) -> None:
    move = Move(*_E4M3, "a", "e4m3", "MN", swizzle, 128, 64)
    tile = move.types.partition("layout, ")[2]
    source = f"""{_HEADERS}int main() {{
  for (unsigned x = 0; x < 16; x++)
    for (unsigned k = 0; k < 32; k++) std::printf("%u%s", {tile}::offset(x, k), k == 31 ? "\\n" : " ");
  for (unsigned lane = 0; lane < 32; lane++) std::printf("%u ", detail::matrix_load<{move.types}>::offset(lane, 0, 0, 0));
  std::printf("\\n");
}}
"""
    *places, addresses = run(source, tmp_path)
    values = np.random.default_rng(1).integers(0, 100, (16, 32)).astype(np.uint8)
    image = np.zeros(128 * 64, np.uint8)
    image[np.array(places)] = values
    load = emulate("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8", address=np.array(addresses), memory=image)
    assert np.array_equal(load.registers.view(np.uint32), instruction(move.multiply).operand("a").pack(values))


def test_stores_write_the_fragment_to_the_tile(tmp_path: Path) -> None:
    operands = [instruction(move.multiply).operand(move.operand) for move in _STORES]
    threads = [128 if move.multiply.startswith("wgmma") else 32 for move in _STORES]
    stored = offsets(_STORES, "matrix_store", [operand.elements // 2 for operand in operands], threads, tmp_path)
    for move, operand, lanes, (transposed, groups) in zip(_STORES, operands, threads, stored, strict=True):
        layout = SharedLayout(move.element, move.majorness, move.swizzle, move.x, move.k)
        image = np.zeros(layout.size, np.uint8)
        values = np.arange(operand.rows * operand.cols).reshape(operand.rows, operand.cols).astype(np.uint16)
        lane, i = np.indices((lanes, operand.elements))
        packed = np.ascontiguousarray(values[operand.coords(lane, i)]).view(np.uint32)  # neighbours share a register
        for first, addresses in zip(range(0, operand.elements // 2, 4), groups, strict=True):
            count = min(4, operand.elements // 2 - first)
            for warp in range(lanes // 32):
                given = addresses[32 * warp : 32 * warp + 32]
                fragment = np.ascontiguousarray(packed[32 * warp : 32 * warp + 32, first : first + count])
                memory = emulate(moved("stmatrix", transposed, count), address=given, fragment=fragment, memory=image).memory
                assert memory is not None
                image = memory
                if count == 4:
                    assert bank_conflicts(given, 16).wavefronts == _LEAST, move
        assert np.array_equal(layout.load_xk(image).view(np.uint16)[: operand.rows, : operand.cols], values), move


def test_vectors_of_an_accumulator_lie_side_by_side(tmp_path: Path) -> None:
    tile = "shared_tile<f32, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_32B, 64, 128>"
    front = _WGMMA[1]
    move = f"detail::vector_move<{front}::d::layout, {tile}>"
    lines = run(
        f"""{_HEADERS}int main() {{
  std::printf("%u\\n", {move}::neighbours());
  for (unsigned i = 0; i < 64; i += 2)
    for (unsigned lane = 0; lane < 128; lane++)
      std::printf("%u%s", {tile}::offset({move}::x(lane, i), {move}::k(lane, i)), lane == 127 ? "\\n" : " ");
}}
""",
        tmp_path,
    )
    assert lines[0] == [2]
    operand, image = instruction(_WGMMA[0]).operand("d"), SharedLayout("tf32", "K", "32B", 64, 128)  # as wide as f32
    for i, addresses in zip(range(0, 64, 2), lines[1:], strict=True):
        lane = np.arange(128)
        assert np.array_equal(image.address(*operand.coords(lane, np.full(128, i))), addresses)
        assert bank_conflicts(np.array(addresses[:32]), 8).wavefronts == 2


def test_an_accumulator_is_carried_as_it_converts(catalog: Catalog, tmp_path: Path) -> None:
    """For every accumulator and every A of mma and wgmma of which no thread needs what another has: the elements and the order of K."""
    found: dict[str, dict[str, Operand]] = {"accumulator": {}, "fragment": {}}
    for known in catalog.all(lambda entry: entry.family in ("mma", "wgmma")):
        for operand in (operand for operand in known.operands if operand.name in ("a", "d")):
            if operand.layout is not None and operand.layout.axes.keys() == {"row", "col"}:
                found[operand.kind].setdefault(str(operand.layout.map.bits), operand)
    pairs = [(d, a, convert(d, a)) for d in found["accumulator"].values() for a in found["fragment"].values()]
    best = [(d, a, made.permuted or made) for d, a, made in pairs]
    free = [
        (d, a, made) for d, a, made in best if not made.why and made.target.tiles == 1 and not any(at["row"] for at in made.source.origins)
    ]
    assert {made.target.bits for _, _, made in free} >= {4, 8, 16, 32}

    def fragment(operand: Operand) -> str:
        assert operand.layout is not None
        return f"held<layout::{operand.layout.name}, {operand.elements}>"

    printed = "\n".join(f"  print<carried<{fragment(d)}, {fragment(a)}>, {a.elements}>();" for d, a, _ in free)
    source = f"""{_HEADERS}#include <ptxmma/mma/layouts.cuh>
#include <ptxmma/wgmma/layouts.cuh>
template <class Layout, int Elements>
struct held {{
  using layout = Layout;
  static constexpr uint32_t elements = Elements;
}};
template <class Carried, unsigned Elements>
void print() {{
  std::printf("%d", Carried::permuted());
  for (unsigned i = 0; i < Elements; i++) std::printf(" %u", Carried::source(i));
  for (unsigned k = 0; k < Carried::depth(); k++) std::printf(" %u", Carried::column(k));
  std::printf("\\n");
}}
int main() {{
{printed}
}}
"""
    for (d, a, made), (permuted, *numbers) in zip(free, run(source, tmp_path), strict=True):
        (step,) = made.steps
        assert isinstance(step, Arrange)
        columns = list(made.k or range(a.cols))
        assert numbers == [*(element for register in step.registers for element in register), *columns], (d.layout, a.layout)
        assert bool(permuted) is (columns != list(range(a.cols)))


_KERNELS = """
__global__ void load(uint32_t* out, uint32_t start) {
  using Multiply = mma<shape<16, 8, 16>, f32, f16, f16, f32>;
  using A = shared_tile<f16, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 64, 64>;
  using B = shared_tile<f16, PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_128B, 64, 64>;
  Multiply::a::type a;
  Multiply::b::type b;
  load_fragment<Multiply::a, A>(a, start, threadIdx.x);
  load_fragment<Multiply::b, B>(b, start, threadIdx.x, 8, 16);
  out[threadIdx.x] = a[0] + a[1] + a[2] + a[3] + b[0] + b[1];
}
__global__ void store(const uint32_t* from, const float* wide, uint32_t start) {
  using Multiply = wgmma<shape<64, 24, 16>, f32, bf16, bf16>;
  uint32_t packed[6];
  float d[12];
  for (int i = 0; i < 6; i++) packed[i] = from[128 * i + threadIdx.x];
  for (int i = 0; i < 12; i++) d[i] = wide[128 * i + threadIdx.x];
  store_fragment<Multiply::d, shared_tile<bf16, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_NONE, 64, 24>>(start, packed, threadIdx.x);
  store_fragment<Multiply::d, shared_tile<f32, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_32B, 64, 24>>(start, d, threadIdx.x);
}
__global__ void back(uint32_t* out, uint32_t start) {
  using Multiply = wgmma<shape<64, 32>, f32, bf16, bf16>;
  using Bytes = shared_tile<e4m3, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_32B, 64, 32>;
  uint32_t halves[8], bytes[4];
  load_fragment<Multiply::d, shared_tile<bf16, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_64B, 64, 32>>(halves, start, threadIdx.x);
  load_fragment<Multiply::d, Bytes>(bytes, start, threadIdx.x);
  for (int i = 0; i < 4; i++) out[128 * i + threadIdx.x] = halves[i] + halves[i + 4] + bytes[i];
  store_fragment<Multiply::d, Bytes>(start, bytes, threadIdx.x);
}
__global__ void some_columns(float* d, uint32_t start) {
  using Multiply = wgmma<shape<64, 24>, f32, bf16, bf16>;
  using Tile = shared_tile<f32, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_32B, 64, 8>;
  Multiply::d::type sums;
  for (int i = 0; i < 12; i++) sums[i] = d[128 * i + threadIdx.x];
  store_fragment<Multiply::d, Tile>(start, columns<Multiply::d, 8>(sums, 16), threadIdx.x);
  load_fragment<Multiply::d, Tile>(columns<Multiply::d, 8>(sums, 8), start, threadIdx.x);
  for (int i = 0; i < 12; i++) d[128 * i + threadIdx.x] = sums[i];
}
"""


@pytest.mark.nvcc
def test_moves_are_a_few_instructions(compiler: Nvcc, tmp_path: Path) -> None:
    ptx = compiler.ptx_of(_HEADERS + _KERNELS, "sm_90a", tmp_path)
    expected = {"m8n8.x4.shared": 4, "m8n8.x2.trans.shared": 1, "m8n8.x2.shared": 1, ".local": 0}
    expected |= {"st.shared.v2.b32": 6 + 2, "ld.shared.v2.b32": 2, "st.shared.b16": 8, "ld.shared.b16": 8}
    assert {text: ptx.count(text) for text in expected} == expected


_TILES = """
constexpr ptxmma_majorness K = PTXMMA_MAJORNESS_K, MN = PTXMMA_MAJORNESS_MN;
using Multiply = wgmma<shape<64, 176>, f32, bf16, bf16>;
static_assert(Multiply::k == 16 && wgmma_sp<shape<64, 8>, f32, e4m3, e4m3>::k == 64, "the depth follows from the types");
using BK = Multiply::b_tile<K, PTXMMA_SWIZZLE_128B, 176, 64>;
using BM = Multiply::b_tile<MN, PTXMMA_SWIZZLE_128B, 176, 64>;
static_assert(BK::x == 176 && BM::x == 192 && BM::bytes == 192 * 64 * 2, "MN-major rows are filled up to whole spans");
static_assert(BK::share<2>::outer == 88 && BK::share<2>::offset(0, 1) == BK::offset(88, 0) && BK::share<2>::x(0, 1) == 88, "");
static_assert(BM::share<2>::outer == 32 && BM::share<2>::offset(2, 1) == BM::offset(128, 32), "");
static_assert(BM::share<2>::x(2, 1) == 128 && BM::share<2>::k(2, 1) == 32 && BM::share<1>::k(2, 0) == 0, "");
"""


@pytest.mark.parametrize("dialect", ["c++14", "c++17"])
def test_constants_of_tiles(dialect: str, tmp_path: Path) -> None:
    body = 'const uint32_t& bytes = BK::bytes; std::printf("%u %u\\n", bytes, BK::steps + BM::boxes);'
    assert run(f"{_HEADERS}{_TILES}int main() {{ {body} }}\n", tmp_path, dialect) == [[176 * 64 * 2, 4 + 3]]


@pytest.mark.parametrize("dialect", ["c++14", "c++17"])
def test_tensors_whose_boxes_fill_a_tile(dialect: str, tmp_path: Path) -> None:
    """A tile takes the addresses and pitches that the rules of tensor maps allow."""
    asserted = []
    for element in ("bf16", "e4m3", "tf32"):
        tile = f"shared_tile<{element}, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 64, 128>"
        box = BoxGeometry(element, (1024, 64), (32, 64), swizzle="128B")
        for address, stride, first in itertools.product((0, 8, 16, 48), (4096, 4104, 4112), (-16, -4, 0, 3, 8, 16)):
            legal = not [*box.broken("address", address=address), *box.broken("strides", stride=stride), *box.broken("at", at=(first, 0))]
            asserted.append(f'static_assert({tile}::moves({address}, {stride}, {first}) == {str(legal).lower()}, "");')
    assert run(f'{_HEADERS}{_TILES}{chr(10).join(asserted)}\nint main() {{ std::printf("%d\\n", 1); }}\n', tmp_path, dialect) == [[1]]


def test_the_guide_shows_what_a_tile_has(root: Path, tmp_path: Path) -> None:
    shown = re.search(r"code-block:: cpp\n\n((?:   .*\n|\n)+)", (root / "docs" / "tma.rst").read_text(encoding="utf-8"))
    assert shown
    assert run(f'{textwrap.dedent(shown[1])}#include <cstdio>\nint main() {{ std::printf("%d\\n", 1); }}\n', tmp_path) == [[1]]


@pytest.mark.nvcc
@pytest.mark.usefixtures("disassembler")
def test_to_advance_a_descriptor_is_one_addition(compiler: Nvcc, tmp_path: Path) -> None:
    body = "__global__ void kernel(uint64_t* at) { at[1] = BM::advance({at[0]}, 3).bits; }"
    options = ("-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-cubin", "-o", "kernel.cubin")
    compiler.build(f"{_HEADERS}{_TILES}{body}\n", *options, folder=tmp_path)
    code = subprocess.run(["cuobjdump", "-sass", "kernel.cubin"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert re.search(r"LDG\S* [^\n]*\n[^\n]*\n\s+/\*\w+\*/\s+(IADD3|VIADD) [^\n]*\n[^\n]*\n\s+/\*\w+\*/\s+STG", code), code


@pytest.mark.nvcc
def test_what_kernels_need_of_tiles(compiler: Nvcc, tmp_path: Path) -> None:
    """Constants by reference, the address of an object, and the C++ types of elements; functions that check are for the host."""
    body = """__device__ uint32_t twice(const uint32_t& number) { return 2 * number; }
__global__ void kernel(uint32_t* out) {
  __shared__ storage<bf16> element[2];
  static_assert(sizeof element == 4 && sizeof(storage<s8>) == 1, "");
  out[threadIdx.x] = twice(BK::bytes) + shared_address(element + 1) - shared_address(element);
}
"""
    source = f"#include <ptxmma/cuda/storage.cuh>\n{_HEADERS}{_TILES}{body}"
    assert f", {2 * 176 * 64 * 2 + 2};" in compiler.ptx_of(source, "sm_90a", tmp_path)
    checked = f"{_HEADERS}__global__ void kernel(uint64_t* out) {{ ptxmma_descriptor_advance(*out, 32, out); }}\n"
    assert "__host__ function" in compiler.refuse(checked, "-arch=sm_90a", "-c", folder=tmp_path)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("target", "message"), [("sm_120a", ""), ("sm_90a", "ptxmma: this instruction needs sm_100f or sm_101f or sm_120f")]
)
def test_bytes_are_transposed_on_the_targets_that_do_it(compiler: Nvcc, target: str, message: str, tmp_path: Path) -> None:
    multiply = _E4M3[1]
    tile = "shared_tile<e4m3, PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_128B, 128, 64>"
    body = f"{multiply}::a::type a; load_fragment<{multiply}::a, {tile}>(a, start, threadIdx.x); *out = a[0] + a[1] + a[2] + a[3];"
    source = f"{_HEADERS}__global__ void kernel(uint32_t* out, uint32_t start) {{ {body} }}\n"
    if message:
        assert message in compiler.refuse(source, f"-arch={target}", "-c", folder=tmp_path)
    else:
        assert compiler.ptx_of(source, target, tmp_path).count("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8") == 1


@pytest.mark.nvcc
def test_a_move_that_no_instruction_makes_is_refused_in_words(compiler: Nvcc, tmp_path: Path) -> None:
    multiply = _E4M3[1]
    tile = "shared_tile<e4m3, PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_128B, 128, 64>"
    body = f"{multiply}::b::type b; load_fragment<{multiply}::b, {tile}>(b, 0, 0);"
    source = f"{_HEADERS}__global__ void kernel() {{ {body} }}\n"
    said = compiler.refuse(source, "-arch=sm_90a", "-c", folder=tmp_path)
    assert "ldmatrix and stmatrix do not move this fragment from or to a tile with this element type and majorness" in said


@pytest.mark.nvcc
def test_a_multiplicand_moves_with_tiles_of_its_own_type(compiler: Nvcc, tmp_path: Path) -> None:
    def kernel(multiply: str, operand: str, element: str, width: int) -> str:
        tile = f"shared_tile<{element}, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 64, {width}>"
        moves = f"load_fragment<{multiply}::{operand}, {tile}>(r, start, 0); store_fragment<{multiply}::{operand}, {tile}>(start, r, 0);"
        return f"__global__ void {operand}_{element}(uint32_t start) {{ {multiply}::{operand}::type r; {moves} }}\n"

    legal = [(_F16[1], "a", "f16", 64), (_F16[1], "b", "b16", 64), (_TF32[1], "a", "f32", 32), (_TF32[1], "b", "tf32", 32)]
    compiler.build(_HEADERS + "".join(kernel(*one) for one in legal), "-arch=sm_90a", "-c", folder=tmp_path)
    for held, wrong in (("f16", (_F16[1], "a", "bf16", 64)), ("tf32", (_TF32[1], "b", "s32", 32))):
        said = compiler.refuse(_HEADERS + kernel(*wrong), "-arch=sm_90a", "-c", folder=tmp_path)
        assert "ptxmma: fragment and tile have elements of one type, or the tile has f32 for tf32, or bits such as b16" in said
        assert re.search(rf"checked_move<.*fragment<ptxmma::{held}, .*shared_tile<ptxmma::{wrong[2]}, ", said)


@pytest.mark.nvcc
@pytest.mark.parametrize("tile", ["a_tile<K, PTXMMA_SWIZZLE_128B, 32, 64>", "b_tile<MN, PTXMMA_SWIZZLE_128B, 128, 64>"])
def test_a_tile_smaller_than_the_instruction_reads_is_refused(tile: str, compiler: Nvcc, tmp_path: Path) -> None:
    source = f"{_HEADERS}{_TILES}constexpr uint32_t bytes = Multiply::{tile}::bytes;\n"
    said = compiler.refuse(source, "-arch=sm_90a", "-c", folder=tmp_path)
    assert "ptxmma: the tile has fewer rows (A: at least M) or columns (B: at least N) than the instruction reads" in said


@pytest.mark.nvcc
def test_the_program_for_a_gpu_compiles_without_spills_and_serialised_products(compiler: Nvcc, root: Path, tmp_path: Path) -> None:
    """It runs in the test below; ptxas says what would make it slow."""
    said = _compiled(compiler, root, tmp_path)
    assert "C75" not in said
    assert "0 bytes spill stores" in said
    assert not [line for line in said.splitlines() if "spill" in line and "0 bytes spill stores, 0 bytes spill loads" not in line]


@pytest.mark.nvcc
def test_the_program_for_a_gpu(compiler: Nvcc, root: Path, gpu: str, tmp_path: Path) -> None:  # noqa: ARG001  # skips without one
    _compiled(compiler, root, tmp_path)
    done = subprocess.run([tmp_path / "cuda_moves"], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("OK\n"), done.stdout + done.stderr


def _compiled(compiler: Nvcc, root: Path, folder: Path) -> str:
    source = (root / "tests/cuda_moves.cu").read_text(encoding="utf-8")
    options = ("-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-Xptxas", "-v", "-o", "cuda_moves")
    return compiler.build(source, *options, folder=folder)
