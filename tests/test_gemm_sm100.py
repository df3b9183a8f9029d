"""The kernel of ``docs/examples/gemm_sm100.cuh``, which no chip here runs: what it is made of, and how a pair runs its PTX."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxmma
from cuda_calls import Nvcc
from ptx_machine import Machine, MachineError, Schedule, Tensor
from ptxmma import paths, scaling, shared_memory
from ptxmma.check import Checker
from ptxmma.matrices.descriptors import of_product
from ptxmma.matrices.shared_memory import Descriptor, read_operand

pytestmark = pytest.mark.nvcc

_EXAMPLES = paths.CHECKOUT / "docs" / "examples"
_PRODUCT = ptxmma.instruction("tcgen05.mma.cta_group::2.kind::f16", m=256, n=256, dtype="f32", atype="bf16", btype="bf16")
_LOAD = ptxmma.instruction("tcgen05.ld.sync.aligned.32x32b.x64.b32")

#: Prints what the kernel works out, as JSON; it runs on the host.
_PROGRAM = """#include <cstddef>
#include <cstdio>
#include "gemm_sm100.cuh"
using namespace gemm_sm100;
using Part = Gemm<Bf16>::Part;
template <class Tile, class Row>
void print_tile(const char* name, size_t start, Row extra) {
  std::printf("\\"%s\\": {\\"start\\": %zu, \\"x\\": %u, \\"k\\": %u, ", name, start, +Tile::x, +Tile::k);
  std::printf("\\"inner\\": %u, \\"outer\\": %u, \\"box_bytes\\": %u, ", +Tile::box_inner, +Tile::box_outer, +Tile::box_bytes);
  std::printf("\\"transaction\\": %u, ", +Tile::transaction_bytes);
  std::printf("\\"boxes\\": [");
  for (uint32_t i = 0; i < Tile::boxes; ++i) std::printf("%s[%u, %u]", i ? ", " : "", Tile::box_x(i), Tile::box_k(i));
  std::printf("], \\"offsets\\": [");
  for (uint32_t i = 0; i < Tile::x * Tile::k; ++i) std::printf("%s%u", i ? ", " : "", Tile::offset(i / Tile::k, i % Tile::k));
  std::printf("], \\"steps\\": [");
  extra();
  std::printf("]},\\n");
}
template <class Tile>
void print_operand(const char* name, size_t start) {
  print_tile<Tile>(name, start, [=] {
    for (uint32_t i = 0; i < Tile::steps; ++i) {
      const unsigned long long bits = Tile::advance(Tile::descriptor(uint32_t(start)), i).bits;
      std::printf("%s%llu", i ? ", " : "", bits);
    }
  });
}
int main() {
  using Stage = Bf16::Stage;
  std::printf("{\\"instruction\\": %u, \\"columns\\": %u, ", Bf16::Product::instruction(), Bf16::Product::d_columns);
  std::printf("\\"shared\\": %zu,\\n", sizeof(Shared<Bf16>));
  print_operand<Bf16::A>("a", sizeof(Stage) + offsetof(Stage, a));
  print_operand<Bf16::B>("b", sizeof(Stage) + offsetof(Stage, b));
  print_tile<D>("d", offsetof(Shared<Bf16>, d), [] {});
  std::printf("\\"corners\\": [");
  for (int tile = 0; tile < 19 * 5; ++tile)
    std::printf("%s[%d, %d]", tile ? ", " : "", corner(tile, 19, 5).x / ROWS, corner(tile, 19, 5).y / COLUMNS);
  std::printf("],\\n\\"part\\": %u, \\"places\\": [", Part::columns);
  for (uint32_t first = 0; first < COLUMNS; first += Part::columns)
    for (uint32_t i = 0; i < WRITERS * Part::elements; ++i)
      std::printf("%s[%u, %u]", first + i ? ", " : "", Part::row(i / Part::elements, i % Part::elements),
                  Part::col(i / Part::elements, i % Part::elements, first));
  std::printf("]}\\n");
}
"""


def _copy_headers(folder: Path) -> None:
    for name in ("gemm_sm100.cuh", "gemm_sm100_operands.cuh"):
        shutil.copy(_EXAMPLES / name, folder)


@pytest.fixture(scope="module")
def kernel(compiler: Nvcc, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the kernel works out."""
    folder = tmp_path_factory.mktemp("gemm_sm100")
    _copy_headers(folder)
    options = ("-std=c++17", "-gencode", "arch=compute_100a,code=sm_100a", "-o", "print")
    compiler.build(_PROGRAM, *options, folder=folder)
    printed: dict[str, Any] = json.loads(subprocess.run([folder / "print"], capture_output=True, text=True, check=True).stdout)
    return printed


def test_descriptors_and_places_are_those_of_the_library(kernel: dict[str, Any]) -> None:
    assert kernel["instruction"] == of_product(_PRODUCT)
    assert kernel["shared"] <= 227 * 1024
    d: Any = _PRODUCT.operand("d-tmem")
    assert kernel["columns"] == d.columns
    for name in ("a", "b"):
        tile = kernel[name]
        image = shared_memory.of(_PRODUCT, name, "128B", x=tile["x"], k=tile["k"], start=tile["start"])
        assert tile["steps"] == [step.encode() for step in image.steps(16)]
        x, k = np.divmod(np.arange(tile["x"] * tile["k"]), tile["k"])
        assert np.array_equal(tile["offsets"], image.address(x, k) - tile["start"])
        assert (tile["inner"], tile["outer"], len(tile["boxes"]), tile["transaction"]) == image.tma[1:]
    rows, cols = np.array(kernel["places"]).T
    place = d.through(_LOAD).locate(rows, cols)
    chunk, thread, register = np.unravel_index(np.arange(len(rows)), (256 // kernel["part"], 128, kernel["part"]))
    assert np.array_equal(32 * place.warp + place.lane, thread)
    assert np.array_equal(place.register, register)
    assert np.array_equal(place.address, (thread // 32 * 32 << 16) + chunk * kernel["part"])
    assert not place.cta.any()  # the other block's threads have the same lanes of its own tensor memory


def test_tiles_in_the_order_of_bands(kernel: dict[str, Any]) -> None:
    """Each of 19 x 5 once: bands of eight rows of tiles, columns in each, and what is left."""
    bands = [range(0, 8), range(8, 16), range(16, 19)]
    assert kernel["corners"] == [[row, column] for band in bands for column in range(5) for row in band]


@dataclass(frozen=True)
class _Type:
    """A type of elements: what the kernel's name has of it, its product, and the code of each value from -2 to 2."""

    name: str
    product: ptxmma.Instruction
    element: str
    codes: tuple[int, ...]
    bits: int

    @property
    def depth(self) -> int:
        """Elements along k of a product: 32 bytes."""
        return 256 // self.bits

    def elements(self, values: Any) -> Any:
        """A matrix as it lies in global memory."""
        if self.bits == 16:
            return np.array(self.codes, np.uint16)[values + 2]
        codes = np.array(self.codes, np.uint8)[values + 2]
        return codes if self.bits == 8 else codes[:, ::2] | codes[:, 1::2] << 4


def _product(kind: str, element: str, **scale: Any) -> ptxmma.Instruction:
    return ptxmma.instruction(f"tcgen05.mma.cta_group::2.kind::{kind}", m=256, n=256, dtype="f32", atype=element, btype=element, **scale)


_TYPES = {
    "bf16": _Type("4bf16EL", _product("f16", "bf16"), "bf16", (0xC000, 0xBF80, 0, 0x3F80, 0x4000), 16),
    "e4m3": _Type("4e4m3EL", _product("f8f6f4", "e4m3"), "e4m3", (0xC0, 0xB8, 0, 0x38, 0x40), 8),
    "nvfp4": _Type("5Nvfp4E", _product("mxf4nvf4.block_scale.block16", "e2m1", stype="ue4m3"), "e2m1", (0xC, 0xA, 0, 2, 4), 4),
}
_COPY = ptxmma.instruction("tcgen05.cp.cta_group::1.32x128b.warpx4")  # of one block; each of a pair does the same with its own memory

_SCHEDULES = {
    "even": Schedule(0),
    "late products": Schedule(1, tensor=0),
    "late loads": Schedule(2, loads=0),
    "late stores": Schedule(3, stores=0, warps=9),
    "late leader": Schedule(4, late_leader=True),
}


class _Engines:
    """The library's emulator as the tensor cores of both blocks."""

    def __init__(self, of: _Type) -> None:
        self.of, self.instruction = of, of_product(of.product)
        self.d: Any = of.product.operand("d-tmem")
        self.scales: list[Any] = [of.product.operand(f"scale-{matrix}-tmem") for matrix in "AB"] if of.bits == 4 else []

    def multiply(self, images: Any, cells: Any, operands: list[int]) -> None:
        d, a, b, instruction, *scales, accumulate = operands
        assert instruction == self.instruction
        matrices = []
        for bits in (a, b):
            descriptor = Descriptor.decode(bits, family="tcgen05")  # the same in both blocks
            matrices.append(np.concatenate([read_operand(descriptor, image, self.of.element, 128, self.of.depth, "K") for image in images]))
        factors = [operand.unpack(cells, address=address) for operand, address in zip(self.scales, scales, strict=True)]
        given = {"scale_a": factors[0], "scale_b": factors[1]} if factors else {}
        before = self.d.unpack(cells, address=d) if accumulate else None
        product = ptxmma.emulate(self.of.product, a=matrices[0], b=matrices[1].T, d=before, **given).d
        cells[:] = self.d.pack(product, cells, address=d)

    @staticmethod
    def copy(image: Any, cells: Any, address: int, descriptor: int) -> None:
        rows = read_operand(Descriptor.decode(descriptor, family="tcgen05"), image, "u8", 32, 16, "K")
        cells[:] = ptxmma.emulate(_COPY, address, rows, cells).memory


def _bf16(values: Any) -> Any:
    """Values rounded to bf16, as codes."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def _run(ptx: str, of: _Type, schedule: Schedule, pairs: int = 1, rows: int = 264) -> bool:
    """Return whether the runs of all pairs end and D is right.

    By default a pair computes four tiles, none of them whole, in eight stages: the ring starts anew, and each accumulator is used twice.
    """
    rng = np.random.default_rng(0)
    m, n, k, alpha = rows, 272, 6 * 256 // of.bits + of.depth // 2, 0.5
    values = [rng.integers(-2, 3, (x, k)) for x in (m, n)]
    matrices = [of.elements(value) for value in values]
    tensors = [Tensor(matrix, (128, 128 // matrix.itemsize), swizzled=True) for matrix in matrices]
    if of.bits == 4:
        for matrix, value in enumerate(values):
            exponents = rng.integers(0, 2, (len(value), k // 16))
            factors = scaling.to_cublas((0x38 + 8 * exponents).astype(np.uint8)).reshape(-(-len(value) // 128), -1, 256)
            tensors.append(Tensor(factors, (1 + matrix, 8, 256), swizzled=False))
            values[matrix] = value << np.repeat(exponents, 16, axis=1)
    d = np.zeros((m, n), np.uint16)
    tensors.append(Tensor(d, (128, 64), swizzled=True))
    parameters = bytes(128 * len(tensors)) + struct.pack("<iiif", m, n, k, alpha)
    maps = {128 * number: tensor for number, tensor in enumerate(tensors)}
    for pair in range(pairs):
        machine = Machine(ptx, of.name, 6, 227 * 1024, parameters, maps, _Engines(of), (pair, pairs))
        try:
            machine.run(schedule)
        except MachineError:
            return False
    wanted = alpha * (values[0] @ values[1].T)
    assert np.abs(wanted).max() > 30
    return np.array_equal(d, _bf16(wanted))


@pytest.fixture(scope="module")
def ptx(compiler: Nvcc, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The PTX that nvcc makes of the program."""
    return _ptx(compiler, "sm_100a", tmp_path_factory.mktemp("gemm_sm100_ptx"))


def _ptx(compiler: Nvcc, target: str, folder: Path) -> str:
    _copy_headers(folder)
    return compiler.ptx_of((_EXAMPLES / "gemm_sm100.cu").read_text(encoding="utf-8"), target, folder)


def test_the_program_compiles_for_the_chip_without_its_features(compiler: Nvcc, tmp_path: Path) -> None:
    """``nvcc -arch=sm_100a`` makes a pass for compute_100, too: there each kernel ends with a message."""
    ptx = _ptx(compiler, "sm_100", tmp_path)
    assert "trap;" in ptx
    assert not re.search(r"tcgen05\.|\.cta_group", ptx)


@pytest.mark.parametrize(
    ("name", "schedule"), [*(("bf16", name) for name in _SCHEDULES), ("e4m3", "even"), ("nvfp4", "even"), ("nvfp4", "late products")]
)
def test_a_pair_of_blocks_that_runs_its_ptx(ptx: str, name: str, schedule: str) -> None:
    """From TMA's boxes to TMA's boxes, edges filled up: integers come out exactly, however late asynchronous work is done."""
    assert _run(ptx, _TYPES[name], _SCHEDULES[schedule])


@dataclass(frozen=True)
class _Fault:
    """A change of the kernel; the rule of the checker that finds it, or a schedule under which a run goes wrong."""

    old: str
    new: str = ""
    rule: str = ""
    schedule: str = ""


_FAULTS = {
    "no wait for full": _Fault("shared.barriers.wait_full(ring);", rule="unmatched-mbarrier"),
    "no wait for filled": _Fault("mbarrier_wait(&shared.filled[accumulator.stage], accumulator.parity);", rule="unmatched-mbarrier"),
    "the other parity of full": _Fault(
        "shared.barriers.wait_full(ring);", "mbarrier_wait(&shared.barriers.full[ring.stage], ring.parity ^ 1);", rule="early-wait"
    ),
    "the other parity of drained": _Fault("room.parity ^ 1)", "room.parity)", rule="endless-wait"),
    "a buffer that TMA reads": _Fault("if (thread == 0) ptxmma::cp_async_bulk_wait_group_read<1>();", rule="reused-source"),
    "no fence of the proxy": _Fault("ptxmma::fence_proxy_async_shared_cta();", rule="missing-proxy-fence"),
    "kept": _Fault("ptxmma::tcgen05_dealloc_cta_group_2(tensor_memory.bits, TENSOR_MEMORY);", rule="tensor-memory-kept"),
    "no wait for empty": _Fault("shared.barriers.wait_empty(ring);\n        if", "if", rule="refilled-stage"),
    "the bytes of one block": _Fault("PAIR * Operands::bytes", "uint32_t{Operands::bytes}", schedule="even"),
    "a barrier of its own": _Fault("ptxmma::map_shared_rank(shared.barriers.full, 0)", "shared.barriers.full", schedule="even"),
    "the leader alone is told": _Fault("BOTH = (1 << PAIR) - 1", "BOTH = 1", schedule="even"),
    "arrivals of one block": _Fault("PAIR * WRITERS);", "WRITERS);", schedule="even"),
    "both blocks issue": _Fault("warp == MULTIPLIER && gemm.rank == 0", "warp == MULTIPLIER", schedule="even"),
    "no fence after a wait": _Fault(
        "shared.barriers.wait_full(ring);\n        ptxmma::tcgen05_fence_after_thread_sync();",
        "shared.barriers.wait_full(ring);",
        schedule="even",
    ),
    "no fence before an arrival": _Fault(
        "ptxmma::tcgen05_fence_before_thread_sync();\n          ptxmma::mbarrier", "ptxmma::mbarrier", schedule="even"
    ),
    "no cluster barrier at the start": _Fault("ptxmma::cluster_sync();  // both blocks run", "//", rule="absent-block"),
    "no cluster barrier at the end": _Fault("ptxmma::cluster_sync();  // neither", "//", schedule="late leader"),
}


def test_pairs_that_share_the_tiles(ptx: str) -> None:
    """Three pairs for two tiles, of which the second block's rows are not there."""
    assert _run(ptx, _TYPES["bf16"], _SCHEDULES["even"], pairs=3, rows=100)


@pytest.mark.parametrize("name", _FAULTS)
def test_a_fault_is_found(compiler: Nvcc, name: str, tmp_path: Path) -> None:
    fault = _FAULTS[name]
    _copy_headers(tmp_path)
    header = tmp_path / "gemm_sm100.cuh"
    text = header.read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    header.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    source = """#include "gemm_sm100.cuh"
template __global__ void gemm_sm100::kernel<gemm_sm100::Bf16>(const __grid_constant__ gemm_sm100::Arguments<gemm_sm100::Bf16>);
"""
    ptx = compiler.ptx_of(source, "sm_100a", tmp_path)
    if fault.rule:
        assert {finding.rule for finding in Checker(notes=True).check(ptx)} == {fault.rule, "not-followed"}
    else:
        assert not _run(ptx, _TYPES["bf16"], _SCHEDULES[fault.schedule])


def test_the_checker_says_what_it_cannot_count(ptx: str) -> None:
    """No error, no warning, and one note for each kernel; each product has its instruction descriptor."""
    findings = Checker(notes=True).check(ptx)
    assert [finding.rule for finding in findings] == ["not-followed"] * 3
    assert all(finding.message.startswith("not counted: arrivals (") for finding in findings)
    assert (findings.instructions, findings.uncovered) == (253, 0)
    for of in _TYPES.values():
        products = re.findall(rf"{re.escape(of.product.canonical)} \[%r\d+\], %rd\d+, %rd\d+, (%r\d+),", ptx)
        assert len(products) == 4
        assert all(f"mov.b32 \t{register}, {of_product(of.product)};" in ptx for register in products)
