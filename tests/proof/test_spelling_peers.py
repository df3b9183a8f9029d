"""Tables of another project: their rows are read, and spellings and numbers of operands that differ are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import ptx_frontend, spelling_record
from ptxmma_proof.peers.forms import Ours
from ptxmma_proof.peers.sources import MissingPeerError, Source

_TABLE = """
- opcode: "add"
  variants: [{modifiers: {}, args: []}]
- opcode: "fence"
  variants:
    - modifiers:
        what: {kind: required, values: [{token: ".proxy.alias"}, {token: ".barrier"}]}
      args: []
- opcode: "tcgen05.wait"
  variants:
    - modifiers:
        which: {kind: required, values: !include _shared/which.yaml}
        sync: {kind: optional, values: [{token: ".sync"}]}
        aligned: {kind: fixed, fixed_value: ".aligned"}
      args: []
- opcode: "tcgen05.ld"
  variants: [{modifiers: {shape: {kind: required, values: !include _shared/none.yaml}}, args: []}]
- opcode: "mbarrier.inval"
  variants:
    - modifiers: {b64: {kind: fixed, fixed_value: ".b64"}}
      args: [{name: "addr", kind: addr}, {name: "count", kind: optional_reg}]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Source:
    folder = tmp_path / ptx_frontend.TABLES
    (folder / "_shared").mkdir(parents=True)
    (folder / "table.yaml").write_text(_TABLE, encoding="utf-8")
    (folder / "_shared" / "which.yaml").write_text('_which: [{token: ".ld"}, {token: ".st"}]', encoding="utf-8")
    return Source(ptx_frontend.NAME, tmp_path, "1")


def test_rows_are_read(catalog: Catalog, checkout: Source) -> None:
    ours = Ours.of(catalog)
    rows = {row.syntax: list(row.spellings(ours)) for row in ptx_frontend.rows(checkout.folder, ours)}
    assert rows == {
        "fence.{what}": ["fence.proxy.alias"],
        "tcgen05.wait.{which}{.sync}.aligned": [
            "tcgen05.wait.ld.aligned",
            "tcgen05.wait.ld.sync.aligned",
            "tcgen05.wait.st.aligned",
            "tcgen05.wait.st.sync.aligned",
        ],
        "tcgen05.ld.<_shared/none.yaml is missing>": ["tcgen05.ld.<_shared/none.yaml is missing>"],
        "mbarrier.inval.b64": ["mbarrier.inval.b64"],
    }


def test_spellings_and_operands_that_differ_are_found(catalog: Catalog, checkout: Source) -> None:
    found = spelling_record.run(catalog, {ptx_frontend.NAME: checkout}, "2026-01-01")
    assert found.rows == {ptx_frontend.NAME: 4}
    listed = [each for each in found.differences if each.operand != "unlisted"]
    assert [(each.subject, each.operand, each.places, each.of) for each in listed] == [
        ("tcgen05.wait.{which}{.sync}.aligned", "form", 4, 4),
        ("tcgen05.ld.<_shared/none.yaml is missing>", "form", 1, 1),
        ("mbarrier.inval.b64", "operands", 1, 1),
    ]
    assert (listed[-1].theirs, listed[-1].ours) == ("1 or 2 operands", "1 operands in mbarrier.inval.b64")
    lacking = {each.subject: each.ours for each in found.differences if each.operand == "unlisted"}
    assert "fence.proxy.alias" not in str(lacking)
    assert {"tcgen05.ld", "mbarrier"} <= lacking.keys()


def test_a_checkout_without_tables_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(MissingPeerError, match="no tables; give a checkout of ptx_frontend"):
        spelling_record.run(catalog, {ptx_frontend.NAME: Source(ptx_frontend.NAME, tmp_path, "1")}, "2026-01-01")
