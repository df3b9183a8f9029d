"""The README's Python example says what the library says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ptxmma

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
            told = match["answer"].partition(": ")[0]
            assert eval(match["code"], names) == ast.literal_eval(told), line
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
    assert f"ptxmma.instructions.UnknownInstruction: {caught.value}" in text
