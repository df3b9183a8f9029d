"""Citations of the manual: both numbers of a section, wherever a reader meets a source."""

from __future__ import annotations

import pytest

from ptxmma.catalog.citations import cited, elsewhere, renumbered
from ptxmma.catalog.instructions import catalog
from ptxmma.check import check

_NUMBERED = elsewhere(catalog().database.spec)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("9.7.14.5.14", "9.7.14.5.14 [9.4: 9.7.16.5.14]"),
        ("9.7.16.10.8.4.2", "9.7.16.10.8.4.2 [9.4: 9.7.18.10.9.4.2]"),
        ("9.7.16.2.1, Table 39", "9.7.16.2.1 [9.4: 9.7.18.2.1], Table 39"),
        ("9.7.14.6.3, 9.7.16.10.4.3", "9.7.14.6.3 [9.4: 9.7.16.6.3], 9.7.16.10.4.3 [9.4: 9.7.18.10.4.3]"),
        ("CUTLASS, manual_mma_128dp.py; PTX ISA 9.4, 9.7.18.10.7.2", "CUTLASS, manual_mma_128dp.py; PTX ISA 9.4, 9.7.18.10.7.2"),
        ("PTX ISA 9.4, 9.7.16.5.15", "PTX ISA 9.4, 9.7.16.5.15"),
        ("5.2.1", "5.2.1"),
        ("CuTe 4.2.0", "CuTe 4.2.0"),
    ],
)
def test_a_source_has_the_numbers_of_both_releases(source: str, shown: str) -> None:
    """A citation of the followed release gets the other number, once; one of another release, and other sources, stay."""
    assert cited(source, _NUMBERED) == shown
    assert cited(shown, _NUMBERED) == shown


def test_beginnings_give_every_section_its_other_number() -> None:
    """JavaScript has the beginnings alone: the last that a number has counts."""
    sections = catalog().database.spec.sections
    [(release, beginnings)] = renumbered(catalog().database.spec).items()
    for section in sections:
        if section.numbers.keys() >= {"9.1", release}:
            number = section.numbers["9.1"]
            begin = [each for each in beginnings if f"{number}.".startswith(f"{each}.")][-1]
            assert beginnings[begin] + number.removeprefix(begin) == section.numbers[release]
    assert len(beginnings) < len(sections) // 10


def test_check_cites_both_releases() -> None:
    """A finding's section is found in either release of the manual."""
    module = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k() {
  .reg .b64 a, b;
  .reg .f32 d<4>;
  .reg .pred p;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, a, b, p, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  st.global.f32 [a], d0;
  ret;
}
"""
    messages = [finding.message for finding in check(module)]
    assert any("[9.4: 9.7.17." in message for message in messages), messages
