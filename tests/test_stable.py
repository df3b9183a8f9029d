"""The product has every name that the page of stable names lists.  Names may be added without a word there."""

from __future__ import annotations

import importlib
import json
import pydoc
import re
import textwrap
from pathlib import Path

import click
import pytest

import ptxmma
import ptxmma.check
from commands import invoke
from ptxmma.check.rules import RULES
from ptxmma.cli import main

_KERNEL = ".version 8.0\n.target sm_90a\n.entry k()\n{\nmma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32 {%f0};\n}\n"


@pytest.fixture(scope="module")
def listed(root: Path) -> dict[str, str]:
    """The blocks of the page by their captions."""
    text = (root / "docs" / "stable.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"^   :caption: (.+)\n\n((?:   .*\n)+)", text, re.MULTILINE)
    return {caption: textwrap.dedent(block) for caption, block in blocks}


def _lacks(name: str, names: list[str]) -> str:
    return f"docs/stable.rst promises {name} {' '.join(names)}: keep them, or retire them as its last section says"


def _in_product(root: Path) -> dict[str, set[str]]:
    """The names of the product by the captions of the page."""
    include, database = root / "generated" / "include" / "ptxmma", root / "generated" / "database"
    headers = {path.relative_to(include).as_posix() + "/" * path.is_dir() for path in include.rglob("*")}
    data = json.loads((database / "ptxmma.json").read_text(encoding="utf-8"))
    package = json.loads((root / "generated" / "javascript" / "package.json").read_text(encoding="utf-8"))
    layouts = [path.stem for path in (root / "generated" / "python" / "ptxmma_layouts").glob("[a-z]*.py")]
    return {
        "C and C++": {word for path in include.rglob("*.*") for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))},
        "Python": {name for module in layouts for name in vars(importlib.import_module(f"ptxmma_layouts.{module}"))},
        "Headers": headers,
        "Modules of ptxmma_layouts": set(layouts),
        "Modules of the JavaScript package": {name.removeprefix("./") for name in package["exports"]},
        "ptxmma": set(ptxmma.__all__),
        "ptxmma.check": set(ptxmma.check.__all__),
        "Verbs": set(main.list_commands(click.Context(main))),
        "Codes": set(RULES),
        "Members of ptxmma.json": {*data, *(f"spec.{name}" for name in data["spec"])},
        "Views of ptxmma.sql": set(re.findall(r"^CREATE VIEW (\w+)", (database / "ptxmma.sql").read_text(encoding="utf-8"), re.MULTILINE)),
    }


def test_the_product_has_every_name_of_the_page(root: Path, listed: dict[str, str]) -> None:
    product = _in_product(root)
    assert {*listed} - {"Members of JSON"} == {*product}
    for caption, names in product.items():
        promised = listed[caption].split()
        assert promised, caption
        gone = [name for name in promised if name not in names]
        assert not gone, _lacks(caption, gone)


def test_commands_print_every_member_of_the_page(listed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(_KERNEL, encoding="utf-8")
    questions = re.findall(r"^ptxmma (.+)\n((?:   .*\n)+)", listed["Members of JSON"], re.MULTILINE)
    assert len(questions) > 10
    for question, members in questions:
        answer = json.loads(invoke(*question.split()).stdout)
        gone = [name for name in members.split() if name not in (answer[0] if isinstance(answer, list) else answer)]
        assert not gone, _lacks(question, gone)


def test_new_names_of_the_changelog_exist(root: Path) -> None:
    """A module that moves again leaves the table with a name that is not there."""
    table = re.findall(r"^\| Python \| .* \| (.*) \|$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = [name for cell in table for name in re.findall(r"`(ptxmma\.[\w.{}, ]*[\w}])(?:\(.*)?`", cell)]
    assert len(names) > 20
    for name in names:
        package, _, members = name.partition("{")
        for member in members.rstrip("}").split(", ") if members else [""]:
            assert pydoc.locate(package + member) is not None, f"CHANGELOG.md says that {package}{member} is a new name"
