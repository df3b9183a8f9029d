"""A simulator's products of tcgen05.mma: its decoder is read and asked, and its recorded answers contradict another rule."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma.model import Facts, TensorProducts
from ptxmma_proof.peers import product_record, product_shapes, tirx_products, tirx_program
from ptxmma_proof.peers.product_shapes import Typed
from ptxmma_proof.peers.recorded_products import Product, Products
from ptxmma_proof.peers.sources import MissingPeerError, Source


@pytest.fixture(scope="module")
def rules(catalog: Catalog) -> TensorProducts:
    assert catalog.database.spec.tensor_products is not None
    return catalog.database.spec.tensor_products


@pytest.mark.parametrize(("part", "unsaid"), [("types", 2), ("depths", 4), ("shapes", 0), ("limits", 4)])
def test_recorded_products_contradict_rules_that_lack_a_row(rules: TensorProducts, part: str, unsaid: int) -> None:
    """It says nothing of .ashift and tables of B, and differs on mixed types of 16 bits and on sparse products of twice the depth."""
    recorded = Products.read()
    assert list(recorded.contradictions(rules)) == []
    rows = getattr(rules, part)
    missed = [row for row in rows if not any(recorded.contradictions(msgspec.structs.replace(rules, **{part: _without(rows, row)})))]
    assert len(missed) == unsaid, missed


def _without(rows: tuple[object, ...], row: object) -> tuple[object, ...]:
    return tuple(each for each in rows if each is not row)


def test_sizes_and_types_that_differ_are_found(
    rules: TensorProducts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalog: Catalog
) -> None:
    facts: Facts = {"name": "tcgen05.mma", "cta_group": "cta_group::1", "kind": "kind::i8", "b_majorness": "MN", "k": 32}
    sizes = product_shapes.sizes(rules, facts)
    assert {n for _, n in sizes} == set(range(16, 257, 16))
    allowed = product_shapes.Allowed("TIRx-harness", "i8", facts, sizes | {(64, 8)}, reads_a=False)
    typed = Typed("TIRx-harness", "i8", facts, frozenset({("s32", "s8", "s8"), ("s32", "s8", "u8"), ("s32", "u8", "s8")}))
    monkeypatch.setattr(tirx_products, "ask", lambda _: ([allowed], [typed]))
    found = product_record.run(catalog, {"TIRx-harness": Source("TIRx-harness", tmp_path, "1")}, "2026-01-01")
    assert [(each.operand, each.theirs, each.ours) for each in found.differences] == [
        ("sizes", "alone allows M = 64 with N = 8", "allows no more"),
        ("types", "takes no more", "alone takes s32 u8 u8"),
    ]
    assert found.agreed == Products(())


def test_answers_are_written_and_read(tmp_path: Path) -> None:
    one = Product(peer="TIRx-harness", facts={"kind": "kind::f16", "k": 16}, sizes={"64": (8, 16)})
    Products((one,)).write(tmp_path)
    assert Products.read(tmp_path) == Products((one,))


def test_a_definition_is_read_up_to_its_last_brace() -> None:
    text = "struct A {\n    n: u8,\n}\n\nfn f() { if x { y } }\nfn g() {}\n"
    assert tirx_program._definition(text, "fn f") == "fn f() { if x { y } }"
    assert tirx_program._definition(text, "struct A") == "#[derive(Clone, Copy, Debug, PartialEq, Eq)]\nstruct A {\n    n: u8,\n}"
    with pytest.raises(MissingPeerError, match="its sources lack 'fn h'"):
        tirx_program._definition(text, "fn h")


def test_a_package_without_the_engine_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingPeerError):
        tirx_products.ask(Source("TIRx-harness", tmp_path, "1"))
