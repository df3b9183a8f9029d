"""``--json-schema``: the schema of each verb's JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from commands import invoke
from json_answers import suits, validator
from ptxmma.cli import VERBS, answers, main

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_OBSERVED = "wmma.load.a.sync.aligned.row.m16n16k16.f16"
_PRODUCT = "tcgen05.mma f16 --m 128 --n 256 --dtype f32"
_MATRIX = "--type bf16 --major k --swizzle 128 --rows 64 --cols 64"
_WRONG = ".version 8.0\n.target sm_80\n.entry f() { mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0}, {%r0}, {%r1}, {%f0}; }\n"

#: Commands by verb, with an answer for each alternative of its schema.
_ASKED = {
    "list": ["m16n8k16 bf16", "--family stmatrix", "--family wgmma --type e4m3"],
    "show": [_MMA, _PRODUCT, "mma.sp m16n8k32 f16", "nvfp4 mma", _OBSERVED, "wgmma.fence", "wgmma", "tcgen05"],
    "resolve": ["m16n8k8 tf32", "umma bf16 m128n256"],
    "targets": ["sm_120a", "sm_90a sm_100a", ""],
    "explain": ["C7510", "missing-fence", "swizzle 128", "leading byte offset"],
    "diff": [],
    "check": ["-", "--statistics -"],
    "layout": [
        f"{_MMA} --operand a --row 9 --col 3",
        f"{_MMA} --operand a --lane 5",
        f"{_MMA} --lane 5",
        f"{_MMA} --operand d",
        f"{_OBSERVED} --operand r",
        "mma.sp m16n8k32 f16 --operand metadata",
        f"{_PRODUCT} --operand d --row 37 --col 200",
        f"{_MMA} --operand d --as {_MMA} --as-operand a",
        f"{_MMA} --operand d --as 'm16n8k32 e4m3' --as-operand a",
    ],
    "trace": [
        f"{_MMA} --row 9 --col 3",
        "mma.sp m16n8k32 f16 --row 9 --col 3",
        f"{_PRODUCT} --row 9 --col 3",
        "ldmatrix x4 --matrix 3 --row 2 --col 5",
    ],
    "descriptor encode": [f"--address 0x400 {_MATRIX}", f"--address 0x400 {_MATRIX} --depth 16"],
    "descriptor decode": ["0x4000004000010040", "0x4000004000010040 --type tf32", "0x4000004000010041 --major mn"],
    "descriptor instruction": ["f16 m=128 n=256 dtype=f32 atype=bf16 btype=bf16", "mxf4 0x8400490", "0x8400490"],
    "descriptor zero-column-mask": ["0x3028000000000", "0x3028000000000 --m 64 --n 32"],
    "descriptor sparsity": ["0"],
    "smem": [_MATRIX, f"{_MATRIX} --conflicts", f"{_MATRIX} --row 1 --col 1", f"{_MATRIX} --at 1026"],
    "tma": [
        "--shape 4096x4096 --box 64x128 --type bf16 --swizzle 128",
        "--shape 4096x4096 --box 64x128 --type bf16 --swizzle 128 --element 3,9 --at 64,-1",
        "--shape 64x56x56x8 --lower=-1,-1 --upper=-1,-1 --channels 64 --pixels 128 --type f16 --swizzle 128",
    ],
    "ring": ["--stages 4 --bytes 16384,22528", "--stages 4 --round 9", "--target H100 --bytes 16384,22528"],
}  # fmt: skip


def _commands(command: click.Command, words: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in VERBS if command is main else command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            yield from _commands(part, f"{words} {name}".strip())
    else:
        yield words, command


def _answers(verb: str, asked: str) -> Any:
    result = invoke(*verb.split(), *shlex.split(asked), "--json", input=_WRONG if verb == "check" else "")
    assert result.stdout, result.output
    return json.loads(result.stdout)


def test_every_verb_with_json_prints_its_schema() -> None:
    with_json = {words: command for words, command in _commands(main) if any("--json" in parameter.opts for parameter in command.params)}
    assert with_json.keys() == answers.ANSWERS.keys() == _ASKED.keys()
    for verb in with_json:
        result = invoke(*verb.split(), "--json-schema")
        assert (result.exit_code, json.loads(result.stdout)) == (0, answers.schema(verb))


@pytest.mark.parametrize("verb", _ASKED)
def test_answers_suit_the_schema_and_wrong_ones_do_not(verb: str, toy_database: Path) -> None:
    """Each alternative of a schema has an answer here; without a key, with another key or with a value of another type none suits."""
    asked = [f"{toy_database} {toy_database}"] if verb == "diff" else _ASKED[verb]
    schema = answers.schema(verb)
    met = set[int]()
    for line in asked:
        answer = _answers(verb, line)
        assert suits(verb, answer), (verb, line)
        for number, alternative in enumerate(schema["anyOf"]):
            alone = jsonschema.Draft202012Validator({**schema, "anyOf": [alternative]})
            met |= {number} if alone.is_valid(answer) else set()
        objects = answer if isinstance(answer, list) else [answer]
        assert not validator(verb).is_valid([{**objects[0], "unknown": None, "other": []}])
        assert not validator(verb).is_valid({**objects[0], "unknown": {"a": None}})
        for name in objects[0]:
            assert not validator(verb).is_valid({**objects[0], name: {"of another type": [1.5]}}), name
    assert met == {*range(len(schema["anyOf"]))}


def test_a_missing_key_does_not_suit() -> None:
    answer = _answers("ring", "--stages 2")
    for name in answer:
        assert not suits("ring", {key: value for key, value in answer.items() if key != name})
    del answer["rounds"][0]["phase"]
    assert not suits("ring", answer)
