"""The pages and the README show what happens: every example is run, and its output is compared."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import ptxmma
from ptxmma import paths
from ptxmma.catalog.names.cplusplus import front_name

_PAGES = {
    path.stem: text for path in sorted((paths.CHECKOUT / "docs").glob("*.rst")) if ">>> " in (text := path.read_text(encoding="utf-8"))
}


def _run(text: str, name: str, names: dict[str, object]) -> int:
    """Run the examples of a text; the number of them."""
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not failed, "".join(report)
    return tried


@pytest.mark.parametrize("page", _PAGES)
def test_a_page_shows_what_happens(page: str) -> None:
    if ">>> import torch" in _PAGES[page]:
        pytest.importorskip("torch")
    assert _run(_PAGES[page], page, {})


def test_the_page_about_names_lists_fronts() -> None:
    text = _PAGES["names"]
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
