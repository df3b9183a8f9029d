"""Compares the PTX in our wrappers of data movement and synchronisation with the PTX in cccl's ``cuda::ptx``.

Two functions agree if they execute the same text with operands of the same constraints.  Names of temporary registers, their
declarations, braces and white space do not count.  The multiplications and ``tcgen05`` are left out: there our wrappers have arrays.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma import paths
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import cccl_forms, headers, sources
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.forms import Ours
from ptxmma_proof.peers.headers import Bound
from ptxmma_proof.peers.sources import Source

_NAME = "cccl"
#: The families of these opcodes are not compared.
_ARRAYS = ("tcgen05.", "mma.", "wmma.", "wgmma.", "ldmatrix.", "stmatrix.", "movmatrix.", "spcompress.")
_FUNCTION = re.compile(r"\b(?:_CCCL_DEVICE static inline|PTXMMA_FUNCTION)\b[^(){};]*?(\w+)\(")
#: A hint of ours: ``"…" PTXMMA_HINT("%5") "…"`` in the text, and its kind among the operands.
_HINT, _HINTED = re.compile(r'PTXMMA_HINT\("%\d+"\)'), re.compile(r"(?<!#define )PTXMMA_HINTED\((\w+)\)")
_TAG = re.compile(r'using hint = detail::(\w+);\s*static constexpr const char text\[\] = (?:PTXMMA_HINT_TEXT\()?"([^"]*)"')
_HOLE = "@"
_COMMENT = re.compile(r"//[^\n]*")
_DECLARED = re.compile(r"^\.reg \.\w+ (.*)$")


class Wrapper(NamedTuple):
    """A function's PTX: its instructions with the constraint of each operand in its place, and the opcode that is compared."""

    function: str
    opcode: str
    text: str


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Compare the generated headers with a checkout of cccl.

    Raises:
        MissingPeerError: the checkout or its headers are not there.
    """
    checkout, scope = sources.checkout(given, _NAME), Ours.of(catalog)
    theirs = list(dict.fromkeys(wrappers(cccl_forms.read(checkout.folder).values(), scope)))
    own = ours(scope)
    texts = {each.text for each in own}
    functions: dict[str, list[str]] = {}
    for each in theirs:
        if each.text in texts:
            functions.setdefault(each.function, []).append(each.text)
    lines = [witnesses.Wrapped(function=name, texts=tuple(sorted(same))) for name, same in sorted(functions.items())]
    differing = [each for each in theirs if each.text not in texts]
    totals = {"functions": len({each.function for each in theirs}), "equal": len(theirs) - len(differing)}
    return Findings((checkout.tool(date),), {_NAME: len(theirs)}, list(_differences(differing, own)), lines, totals)


def ours(scope: Ours, include: Path = paths.INCLUDE) -> list[Wrapper]:
    """Our wrappers, each with every hint that it takes and without one."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((include / "ptxmma").rglob("*.cuh"))]
    hints: dict[str, list[str]] = {}
    for kind, word in itertools.chain.from_iterable(map(_TAG.findall, texts)):
        hints.setdefault(kind, [""]).append(word)
    return list(wrappers(texts, scope, hints))


def wrappers(texts: Iterable[str], scope: Ours, hints: Mapping[str, Sequence[str]] | None = None) -> Iterator[Wrapper]:
    """Yield what the functions of headers execute; ``hints`` has the words of each kind of hint."""
    for text in texts:
        starts = [*_FUNCTION.finditer(text)]
        for begin, end in itertools.pairwise([*(each.start() for each in starts), len(text)]):
            function, body = _FUNCTION.match(text, begin), _HINT.sub(f'"{_HOLE}"', text[begin:end])
            words = [(hints or {})[kind] for kind in _HINTED.findall(body)]
            for assembly, operands in headers.assembly_of(body):
                found = _executed(assembly, operands, scope)
                if function and found:
                    for chosen in itertools.product(*words):
                        yield Wrapper(function[1], _filled(found[0], chosen), _filled(found[1], chosen))


def _filled(text: str, words: Iterable[str]) -> str:
    for word in words:
        text = text.replace(_HOLE, word, 1)
    return text


def _executed(assembly: str, operands: Sequence[Bound], scope: Ours) -> tuple[str, str] | None:
    """The opcode that is compared and the instructions of an assembly statement; None if no opcode is."""
    statements = [" ".join(each.strip(" {}\n").replace(" ,", ",").split()) for each in _COMMENT.sub("", assembly).split(";")]
    opcodes = [match[0] for each in statements if (match := re.match(rf"[a-z][\w.:{_HOLE}]*", each))]
    opcode = next((each for each in opcodes if scope.has(each) and not each.startswith(_ARRAYS)), None)
    if opcode is None:
        return None
    declared = [match[1].split(", ") for each in statements if (match := _DECLARED.match(each))]
    text = "; ".join(each for each in statements if each and not each.startswith("."))
    for number, name in enumerate(sorted(itertools.chain.from_iterable(declared), key=text.find)):
        text = re.sub(rf"(?<![.:\w]){name}\b", f"t{number}", text)
    return opcode, re.sub(r"(?<!%)%(\d+)", lambda match: operands[int(match[1])].constraint.lstrip("=+"), text)


def _differences(theirs: Iterable[Wrapper], own: Sequence[Wrapper]) -> Iterator[Difference]:
    """Each text of theirs that we lack, with our text of the same opcode, whatever the order of its modifiers."""
    known: dict[frozenset[str], list[Wrapper]] = {}
    for each in own:
        known.setdefault(frozenset(each.opcode.split(".")), []).append(each)
    for each in theirs:
        same = known.get(frozenset(each.opcode.split(".")), [])
        if not same:
            yield Difference(_NAME, each.text, "function", "has one", "none", 1, 1)
        elif any(one.text.replace(one.opcode, each.opcode) == each.text for one in same):
            yield Difference(_NAME, each.text, "order", "its modifiers", "the same modifiers in another order", 1, 1)
        else:
            yield Difference(_NAME, each.text, "operands", each.text, same[0].text, 1, 1)
