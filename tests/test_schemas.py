"""The JSON Schemas of the spec's documents, and the short forms that they admit."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from commands import invoke
from ptxmma import paths
from ptxmma.generator import json_schema, short_forms
from ptxmma.generator.build import build
from ptxmma.generator.documents import KINDS
from ptxmma.generator.load import load
from ptxmma.generator.validity import predicate

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
    assert short_forms.every_list(written) == lists
    assert short_forms.folded(lists) == written


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


def test_the_quick_test_of_a_document_is_what_jsonschema_says() -> None:
    """Of every part of every schema, about parts of documents and slips for them."""
    wholes = [json_schema.inlined(schema, schema.get("$defs", {})) for schema in json_schema.schemas().values()]
    schemas = {json.dumps(part): part for whole in wholes for part in _parts(whole) if _is_schema(part)}
    values = {json.dumps(part): part for document in load(_TOY) for part in _parts(document.data)}
    values |= {json.dumps(slip): slip for part in [*values.values()] for slip in _slips(part)}
    values = dict(random.Random(5).sample([*values.items()], 150))
    value: Any
    for value in [
        "",
        "x" * 300,
        "1.0",
        0,
        -1,
        2,
        64,
        5000,
        1 << 40,
        True,
        None,
        [],
        [1, 2],
        [2, 2],
        ["b32", "b32"],
        [[]],
        {},
        {"is": "i"},
        [{"a": True}],
    ]:
        values[json.dumps(value)] = value
    verdicts = Counter[bool]()
    for schema in schemas.values():
        suits, validator = predicate(schema), jsonschema.Draft202012Validator(schema)
        for value in values.values():
            assert suits(value) == validator.is_valid(value), (schema, value)
            verdicts[suits(value)] += 1
    assert min(verdicts.values()) > 1000
    with pytest.raises(KeyError, match="multipleOf"):
        predicate({"multipleOf": 2})


def _is_schema(part: Any) -> bool:
    """Tell a schema from the mapping of ``properties``, of which one may be called ``type``."""
    return isinstance(part, dict) and not part.keys().isdisjoint(_TESTED) and not any(isinstance(part.get(name), dict) for name in _TESTED)


#: Keywords of which every schema has one.
_TESTED = {"type", "anyOf", "enum", "const"}


def _parts(data: Any) -> Iterator[Any]:
    """The data and every part of it."""
    yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _parts(part)


def _slips(data: Any) -> Iterator[Any]:
    """The data with a slip."""
    if isinstance(data, dict):
        yield data | {"colour": "red"}
        yield from ({key: value for key, value in data.items() if key != left_out} for left_out in data)
        yield from (data | {key: [data[key]]} for key in data)
    elif isinstance(data, list):
        yield [*data, True]
    elif isinstance(data, str):
        yield from (f".{data}", [data])
    else:
        yield str(data)


def test_schemas_are_written_elsewhere_only_when_asked_for(tmp_path: Path) -> None:
    """They describe this generator and do not belong in another spec."""
    arguments = ["generate", "--spec", str(_TOY), "--out", str(tmp_path)]
    assert invoke(*arguments).exit_code == 0
    assert not (tmp_path / "spec").exists()
    assert invoke(*arguments, "--only", "schemas").exit_code == 0
    here, there = (
        {path.name: path.read_bytes() for path in folder.glob("*.schema.json") if not path.name.startswith("evidence_")}
        for folder in (paths.SCHEMAS, tmp_path / "spec" / "schema")
    )
    assert here == there
