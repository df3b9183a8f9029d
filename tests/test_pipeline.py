"""The guide to pipelines: its kernel has no finding, and each change that it shows has the finding that it shows."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from cuda_calls import Nvcc
from ptxmma.check import check

_BLOCK = r"((?:   .*\n|\n)+)"
_SHOWN = re.compile(rf"^\.\. code-block:: diff\n\n{_BLOCK}\.\. code-block:: none\n\n{_BLOCK}", re.MULTILINE)
_RULES = [
    "missing-proxy-fence",
    "missing-proxy-fence",
    "unpublished-barrier",
    "unmatched-mbarrier",
    "initialised-twice",
    "reused-source",
    "endless-wait",
    "refilled-stage",
    "unchanged-parity",
    "wrong-arrival-count",
]


def _findings(compiler: Nvcc, source: str, folder: Path) -> list[str]:
    """The findings on the kernel, as the command prints their first lines."""
    ptx = compiler.ptx_of(source.replace("#pragma once\n", ""), "sm_90a", folder)
    return [f"pipeline.ptx:{each.line}:{each.column}: {each.severity}: {each.message} [{each.rule}]" for each in check(ptx)]


def _numbered(text: str) -> str:
    """A text without the numbers of lines and registers, which change with the compiler."""
    return re.sub(r"\d+", "0", " ".join(text.split()))


@pytest.mark.nvcc
def test_the_guide_shows_what_check_says(compiler: Nvcc, root: Path, tmp_path: Path) -> None:
    page = (root / "docs/pipeline.rst").read_text(encoding="utf-8")
    kernel = (root / "docs/examples/pipeline_sm90.cuh").read_text(encoding="utf-8")
    assert not _findings(compiler, kernel, tmp_path)
    shown = _SHOWN.findall(page)
    assert len(shown) == len(_RULES)
    for (change, said), rule in zip(shown, _RULES, strict=True):
        lines = textwrap.dedent(change).strip("\n").split("\n")
        before, after = ("".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", mark)) for mark in "-+")
        assert kernel.count(before) == 1
        found = _findings(compiler, kernel.replace(before, after), tmp_path)
        assert found
        assert all(each.endswith(f"[{rule}]") for each in found)
        assert _numbered(" ".join(found)) == _numbered(said)
