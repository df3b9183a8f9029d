"""PTX in functions of another project: it is read, compared with our wrappers, and still what the record says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmma import paths
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.proven import attached
from ptxmma_proof.peers import cccl_forms, wrapper_record
from ptxmma_proof.peers.forms import Ours
from ptxmma_proof.peers.sources import MissingPeerError, Source

_HEADER = r"""
_CCCL_DEVICE static inline ::cuda::std::uint32_t getctarank(space_cluster_t, const void* __addr)
{ asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(__dest) : "r"(__as_ptr_smem(__addr)) :); }
_CCCL_DEVICE static inline bool mbarrier_test_wait(::cuda::std::uint64_t* __addr, const ::cuda::std::uint64_t& __state)
{
  asm("{\n\t .reg .pred P_OUT; \n\t"
      "mbarrier.test_wait.shared.b64   P_OUT, [%1] , %2;  // 1. \n\t"
      "selp.b32 %0, 1, 0, P_OUT; \n"
      "}" : "=r"(__waitComplete) : "r"(__as_ptr_smem(__addr)), "l"(__state) : "memory");
}
_CCCL_DEVICE static inline void cp_async_bulk_tensor()
{ asm("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];" : : "l"(__map), "r"(__at), "r"(__from) : "memory");
  asm("cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, {%2}], [%3];"
      : : "r"(__to), "l"(__map), "r"(__at), "r"(__bar) : "memory"); }
_CCCL_DEVICE static inline void mbarrier_inval() { asm volatile("mbarrier.inval.shared.b64 [%0];" : : "l"(__addr) : "memory"); }
_CCCL_DEVICE static inline void mbarrier_skip() { asm volatile("mbarrier.skip.b64 [%0];" : : "r"(__addr) : "memory"); }
_CCCL_DEVICE static inline void tcgen05_shift() { asm volatile("tcgen05.shift.cta_group::1.down [%0];" : : "r"(__addr) : "memory"); }
_CCCL_DEVICE static inline void trap() { asm volatile("trap;" : : :); }
"""


def test_functions_are_read_and_compared(catalog: Catalog, tmp_path: Path) -> None:
    """Temporaries and white space do not count; a hint of ours is a modifier of theirs."""
    folder = tmp_path / cccl_forms.HEADERS
    folder.mkdir(parents=True)
    (folder / "all.h").write_text(_HEADER, encoding="utf-8")
    found = wrapper_record.run(catalog, {"cccl": Source("cccl", tmp_path, "1")}, "2026-01-01")
    assert found.rows == {"cccl": 6}
    assert found.totals == {"functions": 5, "equal": 3}
    assert found.lines == [
        witnesses.Wrapped(
            function="cp_async_bulk_tensor",
            texts=("cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes.cta_group::2 [r], [l, {r}], [r]",),
        ),
        witnesses.Wrapped(function="getctarank", texts=("getctarank.shared::cluster.u32 r, r",)),
        witnesses.Wrapped(function="mbarrier_test_wait", texts=("mbarrier.test_wait.shared.b64 t0, [r], l; selp.b32 r, 1, 0, t0",)),
    ]
    assert [(each.operand, each.theirs, each.ours) for each in found.differences] == [
        ("order", "its modifiers", "the same modifiers in another order"),
        ("operands", "mbarrier.inval.shared.b64 [l]", "mbarrier.inval.shared.b64 [r]"),
        ("function", "has one", "none"),
    ]


def test_a_checkout_without_headers_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(MissingPeerError, match="no headers; give a checkout of cccl"):
        wrapper_record.run(catalog, {"cccl": Source("cccl", tmp_path, "1")}, "2026-01-01")


def test_our_functions_have_the_recorded_text(catalog: Catalog) -> None:
    """Our headers have each text that the record says is equal to one of cccl's, and ours of each recorded difference."""
    witness = attached(catalog.database)[witnesses.WRAPPERS]
    assert witness.run is not None
    ours = {each.text for each in wrapper_record.ours(Ours.of(catalog))}
    equal = [(line.function, text) for line in witness.of(witnesses.Wrapped) for text in line.texts]
    assert len(equal) == witness.run.totals["equal"] > 0
    assert [each for each in equal if each[1] not in ours] == []
    differing = [line for line in witness.of(witnesses.Difference) if line.operand == "operands"]
    assert [line.ours for line in differing if line.ours not in ours or set(line.subjects) & ours] == []
    assert [line.subjects for line in witness.of(witnesses.Difference) if line.operand == "function"] == []


def test_the_guide_has_the_recorded_numbers(catalog: Catalog) -> None:
    run = attached(catalog.database)[witnesses.WRAPPERS].run
    assert run is not None
    said = " ".join((paths.CHECKOUT / "docs" / "peers.rst").read_text(encoding="utf-8").split())
    numbers = f"Of the {run.peers['cccl'].compared} texts in them, {run.totals['equal']} are equal"
    assert f"All {run.totals['functions']} functions of cccl have a counterpart. {numbers}" in said
