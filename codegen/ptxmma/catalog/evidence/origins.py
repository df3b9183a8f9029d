"""Origins of a fact: the manual, and other projects that do not copy from each other."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Parts of one project; their definitions have the same authors.
_AUTHORS = dict.fromkeys(("CuTe", "CuTe DSL", "CuTe 4.8"), "CUTLASS")
#: The beginning of a source that is a section of the manual.
_SECTION = re.compile(r"(PTX ISA )?\d")


def only(source: str, peers: Iterable[str]) -> str:
    """Return the only origin of a fact, or nothing where there are several.

    Args:
        source: the source that the spec gives; sections of the manual come first.
        peers: the projects whose definitions agree.
    """
    named = ["the manual"] if _SECTION.match(source) else [source.partition(",")[0]]
    found = {_AUTHORS.get(name, name) for name in (*named, *peers)}
    return found.pop() if len(found) == 1 else ""
