"""``tensor_maps.js`` finds the broken rules of tensor maps that the library finds."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ptxmma import paths
from tensor_map_cases import broken, drawn, of_pixels

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

_COUNT = 2000
_SCRIPT = """
import { readFileSync } from "node:fs";
import { tensorMapFaults } from MODULE;
const answer = (given) => { try { return tensorMapFaults(given); } catch (error) { return `${error.name}: ${error.message}`; } };
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(answer)));
"""


def _asked(cases: list[dict[str, Any]], folder: Path) -> Any:
    module = (paths.CHECKOUT / "generated" / "javascript" / "tensor_maps.js").as_uri()
    (folder / "ask.mjs").write_text(_SCRIPT.replace("MODULE", json.dumps(module)), encoding="utf-8")
    assert NODE
    done = subprocess.run([NODE, str(folder / "ask.mjs")], input=json.dumps(cases), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_rules_are_judged_as_the_library_judges_them(tmp_path: Path) -> None:
    draw = random.Random(11)
    cases = [(of_pixels if number % 2 else drawn)(draw) for number in range(_COUNT)]
    names = {"element": "type", "element_strides": "elementStrides"}
    answers = _asked([{names.get(name, name): value for name, value in case.items()} for case in cases], tmp_path)
    legal = 0
    for case, answer in zip(cases, answers, strict=True):
        wanted = [(fault.rule.argument, fault.entry, fault.text) for fault in broken(case)]
        assert [(fault["argument"], fault.get("index"), fault["text"]) for fault in answer] == wanted, case
        legal += not wanted
    assert _COUNT / 20 < legal < _COUNT / 2


def test_dense_strides_and_errors(tmp_path: Path) -> None:
    tensor = {"type": "BFLOAT16", "shape": [64, 56, 8]}
    fitting, dense, unknown, absent, mode, short, six = _asked(
        [
            {**tensor, "box": [64, 8, 1], "swizzle": "128B"},
            {**tensor, "shape": [60, 56, 8], "box": [8, 8, 1]},
            {**tensor, "type": "BF16", "box": [64, 8, 1]},
            {**tensor, "swizzle": "96B", "box": [64, 8, 1]},
            {**tensor, "mode": "im2col_w", "box": [64, 8, 1]},
            {**tensor, "box": [64, 8]},
            {**tensor, "shape": [8, 8, 8, 8, 8, 8], "box": [64, 8]},
        ],
        tmp_path,
    )
    assert fitting == []
    assert [(fault["argument"], fault["index"]) for fault in dense] == [("strides", 0)]  # 120 bytes; 120 * 56 are whole 16 bytes
    assert unknown.startswith("RangeError: unknown type BF16; known: UINT8,")
    assert mode == "RangeError: unknown mode im2col_w; known: tiled, im2col, im2col::w, im2col::w::128, gather4"
    assert ". The driver makes no tensor map with the swizzle of 96 bytes" in absent
    assert six == [{"argument": "shape", "text": "6 dimensions; a tensor map has 1 to 5"}]
    assert short == "RangeError: box has 2 entries; it takes 3"
