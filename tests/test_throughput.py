"""Published peaks: those of an instruction, and those that a spec may not have.  `pytest -n 0 tests/test_throughput.py`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.lookup import instruction
from ptxmma.catalog.summaries import throughput
from ptxmma.generator import pipeline
from ptxmma.generator.problems import SpecError

_TOY = Path(__file__).parent / "toy"
_CHIP = """kind: throughput
throughput:
  - chip: "Toy 1"
    target: "sm_90"
    sms: 10
    clock: 1000
    rates:
      - {of: {atype: "f16"}, dense: 1000, sparse: 2000, published: ["10", "20"]}
    source: "a leaflet"
"""
_PLAIN = "toy.sync.aligned.m16n8k16.f32.f16.f16.f32"


def test_throughput_is_published(catalog: Catalog) -> None:
    """An instruction has the peaks of chips that have it, for its types and sparsity."""
    peaks = throughput.peaks(instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"))
    assert [(peak.chip, peak.operations) for peak in peaks][:2] == [("NVIDIA A100 (SXM4)", 2048), ("GeForce RTX 3090", 512)]
    spec = catalog.database.spec
    chips = {chip.chip for chip in spec.throughput}
    assert chips == {peak.chip for each in catalog.all() for peak in throughput.peaks(each)}
    for each in catalog.all():
        for peak in throughput.peaks(each):
            number = int(re.sub(r"\D", "", peak.target))
            assert any(int(re.sub(r"\D", "", name)) == number for name in each.accepted_by())
            assert float(peak.published) == pytest.approx(peak.operations * peak.sms * peak.clock / 1e6, rel=0.005)
    assert throughput.peaks(instruction("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc")) == []
    assert throughput.peaks(instruction("wgmma.fence.sync.aligned")) == []


def _toy(tmp_path: Path, text: str) -> Catalog:
    shutil.copytree(_TOY, tmp_path / "spec")
    (tmp_path / "spec" / "throughput.yaml").write_text(text, encoding="utf-8")
    return pipeline.read(tmp_path / "spec")


def test_a_made_up_chip(tmp_path: Path) -> None:
    (peak,) = throughput.peaks(_toy(tmp_path, _CHIP).find(_PLAIN))
    assert peak == ("Toy 1", "sm_90", 1000, 10, 1000, "10", "a leaflet")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('target: "sm_90"', 'target: "sm_91"', "unknown target 'sm_91'; known: sm_80, sm_90"),
        ("sms: 10", "sms: 11", r"1000 operations x 11 SMs x 1000 MHz are 11\.0 \* 10\*\*12 a second, not 10"),
        ('["10", "20"]', '["10", "19"]', r"2000 operations x 10 SMs x 1000 MHz are 20\.0 \* 10\*\*12 a second, not 19"),
        ('["10", "20"]', '["10"]', "give one number, or with sparse two: of dense and of sparse operands"),
        ('atype: "f16"', 'atype: "f17"', "no form has atype 'f17'; there are f16"),
        ('atype: "f16"', 'colour: "red"', "the condition tests 'colour', which is not a fact here"),
        ('atype: "f16"', 'atype: "f16", mood: ["happy", "sad"], k: 32', "nothing that this condition admits has"),
        ("clock: 1000", 'clock: "fast"', "'fast' is not of type integer: MHz"),
    ],
)
def test_an_impossible_chip(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in _CHIP
    with pytest.raises(SpecError, match=message):
        _toy(tmp_path, _CHIP.replace(old, new))
