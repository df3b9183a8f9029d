"""The JSON Schemas of the spec's documents, and the short forms that they admit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from ptxmma import paths
from ptxmma.cli import main
from ptxmma.generator import optional_operands
from ptxmma.generator.build import build
from ptxmma.generator.documents import KINDS
from ptxmma.generator.load import load

_TOY = Path(__file__).parent / "toy"

# Short forms of the toy spec, and what each is short for.
_LONG = {
    "one value": ("layouts.yaml", 'of: {family: "toy"}', 'of: {family: ["toy"]}'),
    "one condition": ("layouts.yaml", 'of: {family: "toy"}', 'of: [{family: ["toy"]}]'),
    "one formula": ("layouts.yaml", 'col: "lane // 4"', 'col: [{is: "lane // 4"}]'),
    "a case without a condition": ("layouts.yaml", '{is: "group + 8"}', '"group + 8"'),
    "one value of a qualifier": ("instructions/toy.yaml", 'atype: "f16", btype', 'atype: ["f16"], btype'),
    "optional": ("instructions/toy.yaml", 'mood: ["", "mood"]', "mood: optional"),
}


@pytest.mark.parametrize("name", _LONG)
def test_a_short_form_says_what_its_long_form_says(tmp_path: Path, name: str) -> None:
    toy = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    file, short, long = _LONG[name]
    path = toy / file
    text = path.read_text(encoding="utf-8").replace('mood: ["", "happy", "sad"]', 'mood: ["", "mood"]')
    assert short in text, "the test is stale"
    path.write_text(text, encoding="utf-8")
    before, _ = build(load(toy))
    path.write_text(text.replace(short, long, 1), encoding="utf-8")
    after, _ = build(load(toy))
    assert after == before


@pytest.mark.parametrize(
    ("written", "lists"),
    [
        (["a, b"], ["a, b"]),
        (["a{, b}"], ["a", "a, b"]),
        (["a{, b}, c{, d}"], ["a, c", "a, b, c", "a, c, d", "a, b, c, d"]),
        (["[a], x{, y}", "b, x{, y}"], ["[a], x", "b, x", "[a], x, y", "b, x, y"]),
        (["a{, b}", "c"], ["a", "c", "a, b"]),
        (["a, {b, c}{, d}"], ["a, {b, c}", "a, {b, c}, d"]),
        (["a, b, c", "a, d"], ["a, b, c", "a, d"]),
        (["a", "a, b, c"], ["a", "a, b, c"]),  # not every list between them is there
    ],
)
def test_optional_operands_stand_for_every_list(written: list[str], lists: list[str]) -> None:
    assert optional_operands.written_out(written) == lists
    assert optional_operands.folded(lists) == written


def test_there_is_a_schema_for_each_kind_of_document() -> None:
    files = {path.name.removesuffix(".schema.json") for path in paths.SCHEMAS.glob("*.schema.json")}
    assert {name for name in files if not name.startswith("evidence_")} == set(KINDS)


def test_the_documents_match_the_published_schemas() -> None:
    """Editors read the files, and the loader their source; both follow the same references."""
    validators = {}
    for kind in KINDS:
        schema = json.loads((paths.SCHEMAS / f"{kind}.schema.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[kind] = jsonschema.Draft202012Validator(schema)
    for document in load(paths.SPEC):
        validators[document.data["kind"]].validate(document.data)
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        validators["targets"].validate({"kind": "targets", "targets": [{"name": "sm_80", "ptx": "7.0", "source": "2", "colour": "red"}]})


def test_schemas_are_written_elsewhere_only_when_asked_for(tmp_path: Path) -> None:
    """They describe this generator and do not belong in another spec."""
    arguments = ["generate", "--spec", str(_TOY), "--out", str(tmp_path)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert not (tmp_path / "spec").exists()
    assert CliRunner().invoke(main, [*arguments, "--only", "schemas"]).exit_code == 0
    here, there = (
        {path.name: path.read_bytes() for path in folder.glob("*.schema.json") if not path.name.startswith("evidence_")}
        for folder in (paths.SCHEMAS, tmp_path / "spec" / "schema")
    )
    assert here == there
