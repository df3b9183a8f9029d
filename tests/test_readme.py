"""The README's examples are what the library and the command print."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ptxmma
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.proven import one_source
from ptxmma.matrices import pictures
from shown_sessions import printed

_ANSWER = re.compile(r"^(?P<code>[^#]+?)\s+# (?P<answer>.+)$")


def _example(root: Path) -> str:
    blocks = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])


def test_every_answer_of_the_example(root: Path) -> None:
    names: dict[str, object] = {}
    answers = 0
    for line in _example(root).splitlines():
        match = _ANSWER.match(line)
        if match and not re.match(r"\w+ = ", line):
            answer = match["answer"].partition(": ")[0]
            assert eval(match["code"], names) == ast.literal_eval(answer), line
            answers += 1
        elif line:
            exec(line, names)
    assert answers >= 6


def test_the_refusal_reads_as_shown(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    spelling = re.search(r'>>> ptxmma.instruction\("(.*?)"\)', text)
    assert spelling
    with pytest.raises(ptxmma.UnknownInstruction) as caught:
        ptxmma.instruction(spelling[1])
    assert f"ptxmma.catalog.instructions.UnknownInstruction: {caught.value}" in text


def test_places_with_one_source_are_counted(root: Path, catalog: Catalog) -> None:
    count = re.search(r"^(\d+) layouts and fields of descriptors have one source", (root / "README.md").read_text(encoding="utf-8"), re.M)
    assert count
    assert int(count[1]) == len(one_source(catalog))
    assert "scales_a_128_lanes" in one_source(catalog)


def test_commands_import_what_the_tests_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "there.py").write_text("print('found')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    assert printed("python -m there", tmp_path) == "found"
    monkeypatch.delenv("PYTHONPATH")
    assert "No module named there" in printed("python -m there", tmp_path)


def test_the_picture_is_that_of_the_reference(root: Path) -> None:
    drawn = pictures.operand(ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").operand("d"))
    shown = (root / "docs/_static/mma_m16n8k16_d.svg").read_text(encoding="utf-8")
    assert re.sub(r"<!--.*?-->\n", "", shown) == drawn
