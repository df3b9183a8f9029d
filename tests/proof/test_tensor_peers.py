"""CuTe and TVM agree with the layouts of tensor memory, and contradict a wrong one; so do the sizes of products."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from ptxmma.catalog import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.proven import attached
from ptxmma.model import TensorMemory
from ptxmma_proof.peers import cute_tensor, headers, product_shapes, tensor_cases, tvm_tensor
from ptxmma_proof.peers.headers import Cutlass
from ptxmma_proof.peers.tensor_cases import Axis, Case

#: What TVM's layout of M = 64 says, in the notation of its functions.
_OWN_LAYOUTS = """
_TMEM_DATAPATH_ROWS = {"F": 64}
def tmem_datapath_layout(datapath, rows, cols):
    lane, col = Axis.get("TLane"), Axis.get("TCol")
    return TileLayout(S[(4, 16, cols) : (32 @ lane, 1 @ lane, 1 @ col)])
"""
_OWN_SCALES = """
def sf_tmem_layout(rows, count, each):
    atom = TileLayout(S[(32, each) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane])
    outer = TileLayout(S[(rows // 32, count // each) : (4 @ TCol, each @ TCol)])
    return atom.direct_sum(outer, left_shape=[rows // 32, count // each], right_shape=[32, each])
"""
_OWN_ATOMS = """
struct SM100_MMA_TOY_SS
{
  static_assert(M == 64 || M == 128, "M");
  static_assert((M == 64 && (N % 8 == 0) && (8 <= N) && (N <= 256)) ||
                (M == 128 && (N % 16 == 0) && (16 <= N) && (N <= 256)), "N");
  static_assert(is_same_v<c_type, float>, "C");
  asm("tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;");
};
struct SM100_MMA_TOY_WHOLE_SS
{
  static_assert(M == 64 || M == 128, "M");
  static_assert((N % 8 == 0) && (8 <= N) && (N <= 256), "N");
  asm("tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;");
};
"""


@pytest.fixture(scope="module")
def memory(catalog: Catalog) -> TensorMemory:
    assert catalog.database.spec.tensor_memory is not None
    return catalog.database.spec.tensor_memory


def _scattered(places: np.ndarray) -> Case:
    """D of M = 64, N = 8, at given places."""
    numbers = {"m": 64, "n": 8, "ctas": 1, "bits": 32}
    facts = {"name": "tcgen05.mma", "cta_group": "cta_group::1"}
    return Case("own", "own", "tensor-accumulator", "d", facts, numbers, (Axis("row", 64), Axis("col", 8)), {}, places)


def _places() -> np.ndarray:
    row, col = np.arange(512) % 64, np.arange(512) // 64
    return np.asarray((row % 16 + 32 * (row // 16)) * (1 << tensor_cases.LANE_BITS) + 32 * col)


def test_a_case_that_agrees_agrees(memory: TensorMemory) -> None:
    (verdict,) = tensor_cases.compare(memory, [_scattered(_places())])
    assert (verdict.layout, verdict.wrong, verdict.of) == ("layout_f", 0, 512)


def test_a_place_that_differs_is_found(memory: TensorMemory) -> None:
    places = _places()
    places[64 + 17] += 32
    (verdict,) = tensor_cases.compare(memory, [_scattered(places)])
    assert verdict.wrong == 1
    assert verdict.theirs == "row 17, col 1: lane 33, column 2, bit 0"
    assert verdict.ours == "row 17, col 1: lane 33, column 1, bit 0"


def test_a_wrong_layout_of_ours_is_found(memory: TensorMemory) -> None:
    wrong = tuple(
        msgspec.structs.replace(each, at=each.at | {"lane": "row"}) if each.name == "layout_f" else each for each in memory.layouts
    )
    (verdict,) = tensor_cases.compare(msgspec.structs.replace(memory, layouts=wrong), [_scattered(_places())])
    assert verdict.wrong == 48 * 8


def test_functions_of_tvm_are_executed(tmp_path: Path) -> None:
    for file, text in ((tvm_tensor.LAYOUTS, _OWN_LAYOUTS), (tvm_tensor.SCALES, _OWN_SCALES)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"import tvm  # is not there\n{text}", encoding="utf-8")
    functions = tvm_tensor.functions(tmp_path)
    places = functions["tmem_datapath_layout"]("F", 64, 8).bits(32).reshape(64, 8)
    assert np.array_equal(places.reshape(-1, order="F"), _places())
    scales = functions["sf_tmem_layout"](128, 4, 2).bits(8).reshape(128, 4, 4)
    row, factor, copy = np.meshgrid(np.arange(128), np.arange(4), np.arange(4), indexing="ij")
    assert np.array_equal(scales, (row % 32 + 32 * copy) * (1 << tensor_cases.LANE_BITS) + 32 * (row // 32) + 8 * factor)


def test_assertions_about_sizes_are_evaluated(catalog: Catalog, tmp_path: Path) -> None:
    rules = catalog.database.spec.tensor_products
    assert rules is not None
    for file, text in (("cute/arch/mma_sm100_umma.hpp", _OWN_ATOMS), ("cute/atom/mma_traits_sm100.hpp", "")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    stricter, same = (product_shapes.compare(rules, each) for each in product_shapes.cute(Cutlass("0", tmp_path)))
    assert not stricter.only_theirs
    assert stricter.only_ours == {(128, n) for n in range(8, 257, 16)}
    assert not same.only_theirs
    assert not same.only_ours


def test_cute_agrees_on_every_place(memory: TensorMemory, nvcc: str) -> None:
    cutlass = headers.installed()
    if cutlass is None:
        pytest.skip("nvidia-cutlass is not installed")
    verdicts = tensor_cases.compare(memory, cute_tensor.read(cutlass, nvcc))
    assert {verdict.case.subject: verdict.ours for verdict in verdicts if verdict.wrong} == {}
    assert len({verdict.layout for verdict in verdicts}) > 15


def test_every_layout_has_a_witness(catalog: Catalog, memory: TensorMemory) -> None:
    witness = attached(catalog.database)[witnesses.TENSOR_MEMORY]
    agreeing = {line.layout for line in witness.of(witnesses.Laid) if line.agree}
    assert agreeing == {layout.name for layout in memory.layouts}
    assert all(difference.why for difference in witness.of(witnesses.Difference))
