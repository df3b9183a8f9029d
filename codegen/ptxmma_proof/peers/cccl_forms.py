"""Forms that cccl's ``cuda::ptx`` has: the inline assembly in its generated headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ptxmma_proof.peers import headers
from ptxmma_proof.peers.forms import Form, Ours
from ptxmma_proof.peers.sources import MissingPeerError

#: The generated headers below cccl's checkout; each comment states what the function below it needs.
HEADERS = Path("libcudacxx/include/cuda/__ptx/instructions/generated")
_FUNCTION = re.compile(r"/\*\n(?=// )")
_STATED = re.compile(r"PTX\s+ISA\s+(\d)(\d)((?:,\s+(?://\s+)?SM_(\d+)\w*)+)")
#: ``SM_100a`` is one target, ``SM_90`` every later one, too.
_EXACT = re.compile(r"SM_(\d+)([af])\b")


def read(checkout: Path) -> dict[Path, str]:
    """The text of each header.

    Raises:
        MissingPeerError: no header is there.
        OSError: a header cannot be read.
    """
    paths = sorted((checkout / HEADERS).glob("*.h"))
    if not paths:
        raise MissingPeerError(f"{checkout / HEADERS}: no headers; give a checkout of cccl")
    return {path: path.read_text(encoding="utf-8") for path in paths}


def forms(checkout: Path, ours: Ours) -> Iterator[Form]:
    """Yield the forms of our instructions.

    Raises:
        MissingPeerError: no header is there.
        OSError: a header cannot be read.
    """
    texts = read(checkout)
    named = frozenset(f"sm_{number}{suffix}" for text in texts.values() for number, suffix in _EXACT.findall(text))
    for path, text in texts.items():
        for function in _FUNCTION.split(text)[1:]:
            comment, _, body = function.partition("*/")
            if not ours.has(comment.removeprefix("// ").split()[0].rstrip(";")):
                continue
            stated = _STATED.search(comment)
            if stated is None:
                raise ValueError(f"{path}: a comment without a PTX version: {comment.splitlines()[0]}")
            version = f"{stated[1]}.{stated[2]}"
            exact = frozenset(f"sm_{number}{suffix}" for number, suffix in _EXACT.findall(stated[3]))
            later = ours.since(int(stated[4])) if not exact else frozenset[str]()
            for statement in headers.statements_of(body):
                yield Form("cccl", statement, version, exact or later, named if exact else frozenset(ours.targets))
