"""The guides and the README show what happens: every example is run, and its output is compared."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import ptxmma
from ptxmma.catalog.names.cplusplus import front_name

_GUIDES = (
    "matrices",
    "sparsity",
    "shared_memory",
    "block_scaling",
    "descriptors",
    "tensor_memory",
    "emulator",
    "testing_kernels",
    "moving",
    "quantised_weights",
    "tma",
    "recipes",
)


def _run(text: str, name: str, names: dict[str, object]) -> int:
    """Run the examples of a text; the number of them."""
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not failed, "".join(report)
    return tried


@pytest.mark.parametrize("guide", _GUIDES)
def test_a_guide_shows_what_happens(root: Path, guide: str) -> None:
    text = (root / "docs" / f"{guide}.rst").read_text(encoding="utf-8")
    if ">>> import torch" in text:
        pytest.importorskip("torch")
    assert _run(text, guide, {}) >= 10


def test_every_example_is_in_a_page_that_a_test_runs(root: Path) -> None:
    """A page with examples is a guide, or has a test of its own; every guide is in the table of contents."""
    elsewhere = {"interop", "names", "reading"}
    shown = {path.stem for path in (root / "docs").glob("*.rst") if ">>> " in path.read_text(encoding="utf-8")}
    assert shown == elsewhere | set(_GUIDES)
    index = (root / "docs" / "index.rst").read_text(encoding="utf-8")
    assert set(_GUIDES) <= set(re.findall(r"^   (\w+)$", index, re.M))


def test_the_page_about_pictures_shows_what_happens(root: Path) -> None:
    assert _run((root / "docs" / "reading.rst").read_text(encoding="utf-8"), "reading", {})


def test_the_page_about_names_shows_what_happens(root: Path) -> None:
    text = (root / "docs" / "names.rst").read_text(encoding="utf-8")
    assert _run(text, "names", {}) >= 5
    typed = re.findall(r"^   \* - ``(\w+)<shape<([\d, ]+)>, (.*)>``\n     - ``(.*)``$", text, re.M)
    assert len(typed) == text.count("<shape<")
    for name, shape, arguments, spelling in typed:
        instruction = ptxmma.instruction(spelling)
        sizes = tuple(int(size) for size in shape.split(", "))
        assert (name, sizes, tuple(arguments.split(", "))) == (
            front_name(instruction.variant)[0],
            instruction.shape,
            front_name(instruction.variant)[1],
        )


def test_the_readme_shows_what_happens(root: Path) -> None:
    """The session continues after its first example."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    spelling = re.search(r'^ins = ptxmma.instruction\("(.*?)"\)', readme, re.M)
    blocks = re.findall(r"```pycon\n(.*?)```", readme, re.DOTALL)
    assert spelling
    assert blocks
    for block in blocks:
        assert _run(block, "README", {"ptxmma": ptxmma, "ins": ptxmma.instruction(spelling[1])})
