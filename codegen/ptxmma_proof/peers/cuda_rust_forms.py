"""Forms that cuda-rust knows: LLVM's records of instructions, as its importer wrote them down, and what its own lists expect.

The records are from LLVM's TableGen: what they select, before LLVM's verifier refuses anything.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ptxmma_proof.peers.forms import Form, Ours, statements
from ptxmma_proof.peers.headers import Bound, Statement

#: The file and the folder below cuda-rust's checkout.
IMPORTED, LISTS = Path("intrinsics/imported.json"), Path("intrinsics/overlay")
_NAME = "cuda-rust"
_TARGET = re.compile(r"\bsm_\d+[af]\b")
_PREDICATE = re.compile(r"Subtarget->get(SmVersion|PTXVersion)\(\) >= (\d+)")
#: LLVM's text for a word that it writes from PTX ISA 6.3 on.
_ALIGNED, _SINCE = "${ptx:aligned}", 63


def forms(checkout: Path, ours: Ours) -> Iterator[Form]:
    """Yield the form of each selection of LLVM, then of each list.

    Raises:
        OSError: a file cannot be read.
    """
    for intrinsic in json.loads((checkout / IMPORTED).read_text(encoding="utf-8"))["intrinsics"]:
        for selection, text in zip(intrinsic["selections"], selected(intrinsic), strict=True):
            yield from (Form(_NAME, each, *_stated(selection, ours)) for each in statements(text))
    tomllib = import_module("tomllib")  # since Python 3.11
    lists = [path.read_text(encoding="utf-8") for path in sorted((checkout / LISTS).glob("*.toml"))]
    named = frozenset(target for text in lists for target in _TARGET.findall(text))
    for entry in itertools.chain.from_iterable(tomllib.loads(text).get("intrinsic", []) for text in lists):
        if expected := entry.get("expected_ptx"):
            exact = frozenset(_TARGET.findall(entry["targets"]))
            yield Form(_NAME, _expected(expected), entry["minimum_ptx"], exact, named if exact else exact)


def selected(intrinsic: Mapping[str, Any]) -> list[str]:
    """The text of each selection of an intrinsic."""
    return [selection["asm"].replace(_ALIGNED, ".aligned") for selection in intrinsic["selections"]]


def _stated(selection: Mapping[str, Any], ours: Ours) -> tuple[str, frozenset[str], frozenset[str]]:
    """The version and the targets of a selection, and among which; a predicate that names a feature says nothing that can be compared."""
    stated = {match[1]: int(match[2]) for each in selection["predicates"] if (match := _PREDICATE.fullmatch(each))}
    if not len(stated) == len(selection["predicates"]) == 2:
        return "", frozenset(), frozenset()
    version = max(stated["PTXVersion"], _SINCE if _ALIGNED in selection["asm"] else 0)
    return f"{version // 10}.{version % 10}", ours.since(stated["SmVersion"]), frozenset(ours.targets)


def _expected(entry: Mapping[str, Any]) -> Statement:
    opcode = ".".join([entry["mnemonic"], *entry["modifiers"]])
    places = [Bound("", operand.get("value", "%r")) for operand in entry["operands"] for _ in range(_width(operand))]
    return Statement(opcode, tuple(places), opcode, ())


def _width(operand: Mapping[str, Any]) -> int:
    return int(operand.get("length", 2 if operand["kind"].endswith("_pair") else 1))
