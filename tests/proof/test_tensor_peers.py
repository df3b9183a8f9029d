"""CuTe, TVM, Triton and JAX agree with the layouts of tensor memory, and contradict a wrong one; so do registers and sizes of products."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from installed_headers import cutlass

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.instructions import catalog as catalog_of
from ptxmma.generator.proven import attached
from ptxmma.model import Space
from ptxmma_proof.peers import (
    cute_loads,
    cute_tensor,
    mosaic_tensor,
    product_shapes,
    register_loads,
    tensor_cases,
    triton_tensor,
    tvm_tensor,
)
from ptxmma_proof.peers.recorded_tensor import Tensor
from ptxmma_proof.peers.register_loads import Load
from ptxmma_proof.peers.sources import Source
from ptxmma_proof.peers.tensor_cases import Axis, Case

#: What TVM's layout of M = 64 says, in the notation of its functions.
_OWN_LAYOUTS = """
_TMEM_DATAPATH_ROWS = {"F": 64}
def tmem_datapath_layout(datapath, rows, cols):
    lane, col = Axis.get("TLane"), Axis.get("TCol")
    return TileLayout(S[(4, 16, cols) : (32 @ lane, 1 @ lane, 1 @ col)])
"""
#: The registers of loads with a reduction that Triton compiles.
_REDUCED = "tcgen05_ld_red_32x32b_xN_r_b32"
_OWN_SCALES = """
def sf_tmem_layout(rows, count, each):
    atom = TileLayout(S[(32, each) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane])
    outer = TileLayout(S[(rows // 32, count // each) : (4 @ TCol, each @ TCol)])
    return atom.direct_sum(outer, left_shape=[rows // 32, count // each], right_shape=[32, each])
"""
_OWN_COPIES = """
_CP_SHAPE_MULTICASTS = {"64x128b": ("warpx2::01_23",)}
def _shape_dims(shape):
    return 64, 128
def _cp_lane_replica_pattern(shape, multicast):
    return [(2, 64), (32, 1)], [(2, 32)]
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
def memory(catalog: Catalog) -> Space:
    (memory,) = catalog.database.spec.tensor_memories
    return memory


def _scattered(places: np.ndarray) -> Case:
    """D of M = 64, N = 8, at given places."""
    numbers = {"m": 64, "n": 8, "ctas": 1, "bits": 32}
    facts = {"name": "tcgen05.mma", "cta_group": "cta_group::1"}
    return Case("own", "own", "tensor-accumulator", "d", facts, numbers, (Axis("row", 64), Axis("col", 8)), {}, places)


def _places() -> np.ndarray:
    row, col = np.arange(512) % 64, np.arange(512) // 64
    return np.asarray((row % 16 + 32 * (row // 16)) * (1 << tensor_cases.LANE_BITS) + 32 * col)


def test_a_case_that_agrees_agrees(memory: Space) -> None:
    (verdict,) = tensor_cases.compare(memory, [_scattered(_places())])
    assert (verdict.layout, verdict.wrong, verdict.of) == ("layout_f", 0, 512)


def test_a_place_that_differs_is_found(memory: Space) -> None:
    places = _places()
    places[64 + 17] += 32
    (verdict,) = tensor_cases.compare(memory, [_scattered(places)])
    assert verdict.wrong == 1
    assert verdict.theirs == "row 17, col 1: lane 33, column 2, bit 0"
    assert verdict.ours == "row 17, col 1: lane 33, column 1, bit 0"


def test_a_wrong_layout_of_ours_is_found(memory: Space) -> None:
    wrong = tuple(
        msgspec.structs.replace(each, at=each.at | {"lane": "row"}) if each.name == "layout_f" else each for each in memory.layouts
    )
    (verdict,) = tensor_cases.compare(msgspec.structs.replace(memory, layouts=wrong), [_scattered(_places())])
    assert verdict.wrong == 48 * 8


def test_functions_of_tvm_are_executed(memory: Space, tmp_path: Path) -> None:
    for file, text in ((tvm_tensor.LAYOUTS, _OWN_LAYOUTS), (tvm_tensor.SCALES, _OWN_SCALES), (tvm_tensor.COPIES, _OWN_COPIES)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"import tvm  # is not there\n{text}", encoding="utf-8")
    functions = tvm_tensor.functions(tmp_path)
    places = functions["tmem_datapath_layout"]("F", 64, 8).bits(32).reshape(64, 8)
    assert np.array_equal(places.reshape(-1, order="F"), _places())
    scales = functions["sf_tmem_layout"](128, 4, 2).bits(8).reshape(128, 4, 4)
    row, factor, copy = np.meshgrid(np.arange(128), np.arange(4), np.arange(4), indexing="ij")
    assert np.array_equal(scales, (row % 32 + 32 * copy) * (1 << tensor_cases.LANE_BITS) + 32 * (row // 32) + 8 * factor)
    (copied,) = tensor_cases.compare(memory, tvm_tensor.copies(functions))
    assert (copied.layout, copied.wrong, copied.of) == ("copy_64x128b_01_23", 0, 64 * 16 * 2)
    functions["_cp_lane_replica_pattern"] = lambda *_: ([(64, 1)], [(2, 64)])
    (other,) = tensor_cases.compare(memory, tvm_tensor.copies(functions))
    assert other.wrong == 2 * 32 * 16


def test_assertions_about_sizes_are_evaluated(catalog: Catalog, tmp_path: Path) -> None:
    rules = catalog.database.spec.tensor_products
    assert rules is not None
    for file, text in (("cute/arch/mma_sm100_umma.hpp", _OWN_ATOMS), ("cute/atom/mma_traits_sm100.hpp", "")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    stricter, same = (product_shapes.compare(rules, each) for each in product_shapes.cute(Source("CuTe", tmp_path, "0")))
    assert not stricter.only_theirs
    assert stricter.only_ours == {(128, n) for n in range(8, 257, 16)}
    assert not same.only_theirs
    assert not same.only_ours


def test_cute_agrees_on_every_place(memory: Space, nvcc: str) -> None:
    verdicts = tensor_cases.compare(memory, cute_tensor.read(cutlass(), nvcc))
    differing = {verdict.case.subject: verdict.layout for verdict in verdicts if verdict.wrong}
    sparse_pair = "D of SM100_MMA_F16BF16_2x1SM_SS_SPARSE, M = 128"
    assert differing == {f"{sparse_pair}, 64 x {n}": "layout_c" for n in (64, 256)}  # which verdicts.yaml explains
    assert len({verdict.layout for verdict in verdicts}) > 15


def test_cute_fills_every_register_alike(catalog: Catalog, nvcc: str) -> None:
    loaded = register_loads.compare(catalog, cute_loads.read(cutlass(), nvcc))
    assert {each.load.subject: each.ours for each in loaded if each.wrong} == {}
    assert {each.layout.name for each in loaded} >= _register_layouts(catalog)


def _register_layouts(catalog: Catalog) -> set[str]:
    """The layouts of the registers that dense loads and stores of tensor memory fill."""
    operands = (operand for one in catalog.all() if one.family in ("tcgen05.ld", "tcgen05.st") for operand in one.forms[0].operands)
    return {operand.layout.name for operand in operands if operand.layout is not None}


def test_triton_agrees_on_every_place(catalog: Catalog, memory: Space) -> None:
    pytest.importorskip("triton")
    verdicts = tensor_cases.compare(memory, triton_tensor.read())
    assert {verdict.case.subject: verdict.ours for verdict in verdicts if verdict.wrong} == {}
    assert {verdict.layout for verdict in verdicts} >= {
        "layout_a",
        "layout_b",
        "layout_d",
        "layout_f",
        "a_full",
        "a_half",
        "scales_a",
        "scales_b",
    }
    loaded = register_loads.compare(catalog, triton_tensor.loads())
    assert {each.load.subject: each.ours for each in loaded if each.wrong} == {}
    assert {each.layout.name for each in loaded} == _register_layouts(catalog)


def test_triton_fills_the_registers_of_reductions_alike(catalog: Catalog) -> None:
    pytest.importorskip("triton")
    loaded = register_loads.compare(catalog, triton_tensor.reductions())
    assert {(each.layout.name, each.wrong) for each in loaded} == {(_REDUCED, 0)}
    assert len({each.load.opcode for each in loaded}) == 5


def test_jax_agrees_on_every_place(catalog: Catalog, memory: Space) -> None:
    pytest.importorskip("jax")
    cases = mosaic_tensor.read(catalog)
    verdicts = tensor_cases.compare(memory, cases)
    assert {verdict.case.subject: verdict.ours for verdict in verdicts if verdict.wrong} == {}
    assert {case.selected["selector"] for case in cases if "selector" in case.selected} == {0, 1}
    wrong = tuple(
        msgspec.structs.replace(each, at=each.at | {"column": "1 - selector"}) if each.name == "metadata_narrow" else each
        for each in memory.layouts
    )
    differing = tensor_cases.compare(msgspec.structs.replace(memory, layouts=wrong), cases)
    assert {verdict.layout for verdict in differing if verdict.wrong} == {"metadata_narrow"}


@pytest.mark.parametrize(("column", "wrong"), [(3, 0), (4, 32)])
def test_a_register_that_differs_is_found(catalog: Catalog, column: int, wrong: int) -> None:
    """Four columns, of which the last one lies at ``column``."""
    lanes = np.arange(32)[:, np.newaxis] << tensor_cases.LANE_BITS
    load = Load("own", "own", "tcgen05.ld.sync.aligned.32x32b.x4.b32", 0, lanes + 32 * np.array([0, 1, 2, column]))
    (loaded,) = register_loads.compare(catalog, [load])
    assert (loaded.wrong, loaded.of) == (wrong, 128)
    assert loaded.theirs == ("" if not wrong else "thread 0, element 3: lane 0, column 4, bit 0")


def test_a_load_of_another_size_is_found(catalog: Catalog) -> None:
    load = Load("own", "own", "tcgen05.ld.sync.aligned.32x32b.x4.b32", 0, np.zeros((32, 2), np.int64))
    (loaded,) = register_loads.compare(catalog, [load])
    assert (loaded.theirs, loaded.ours) == ("2 elements in each of 32 threads", "4 elements in each of 32 threads")


def test_every_layout_has_a_witness(catalog: Catalog, memory: Space) -> None:
    witness = attached(catalog.database)[witnesses.TENSOR_MEMORY]
    agreeing = {line.layout for line in witness.of(witnesses.Laid) if line.agree}
    alone = {"scales_a_128_lanes"}  # kernels of sm_107 fill it; no release of a peer lays it out
    assert agreeing == {layout.name for layout in memory.layouts} - alone | _register_layouts(catalog) | {_REDUCED}


def test_recorded_answers_contradict_another_layout_and_other_sizes(catalog: Catalog, memory: Space, tmp_path: Path) -> None:
    read = Tensor.read()
    read.write(tmp_path)
    assert Tensor.read(tmp_path) == read
    known = Tensor(tuple(each for each in read.records if not [*Tensor((each,)).contradictions(catalog)]))
    assert {type(each).__name__ for each in known.records} == {"Operand", "Registers", "Sizes"}
    spec = catalog.database.spec
    assert spec.tensor_products is not None
    layouts = tuple(
        msgspec.structs.replace(each, at=each.at | {"lane": "row"}) if each.name == "layout_f" else each for each in memory.layouts
    )
    spaces = tuple(msgspec.structs.replace(each, layouts=layouts) if each == memory else each for each in spec.spaces)
    products = msgspec.structs.replace(spec.tensor_products, shapes=spec.tensor_products.shapes[1:])
    for wrong, kind in (({"spaces": spaces}, "operand"), ({"tensor_products": products}, "sizes")):
        other = catalog_of(msgspec.structs.replace(catalog.database, spec=msgspec.structs.replace(spec, **wrong)))
        assert {msgspec.json.decode(each.partition(": ")[2])["record"] for each in known.contradictions(other)} == {kind}
