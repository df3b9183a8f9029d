"""How matrix instructions begin, and where in a text they do."""

from __future__ import annotations

import re

from ptxmma.model import Spec

#: Characters of words.
WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%.")
#: Bytes before an instruction that are looked at for its predicate.
BEFORE = 200
#: Letters at the end of a word that are searched for: of ``ldmatrix`` and ``stmatrix`` they are the same.
_ENDING = 6


class Opcodes:
    """How the instructions of a spec begin.

    A family whose name is a single word owns every instruction that begins with this word, also one that does not exist; of the others
    (``fence.proxy``) only the opcodes that the spec has are meant.
    """

    def __init__(self, spec: Spec) -> None:
        families = {entry.family for entry in spec.instructions}
        first = {entry.syntax.split(".")[0] for entry in spec.instructions}
        whole = first & families
        opcodes = {entry.opcode or entry.syntax.split(".")[0] for entry in spec.instructions}
        exact = {opcode for opcode in opcodes if opcode.split(".")[0] not in whole}
        stems = [_Stem(stem.encode(), stem in exact) for stem in sorted(whole | exact)]
        endings = {stem.first[-_ENDING:] for stem in stems}
        cores = [word for word in sorted(endings) if not any(other in word for other in endings - {word})]
        #: The substrings to search for, "mma" is also part of "wgmma"; what has each of them, and how far before it that begins.
        self._cores = {core: [(stem.first.rfind(core), stem) for stem in stems if core in stem.first] for core in cores}

    def mentioned(self, text: bytes) -> bool:
        """Whether a text may have an instruction: places() of what is made of it may not be empty."""
        return any(core in text for core in self._cores)

    def places(self, text: bytes) -> list[int]:
        """The places, ascending, of the words in a text without comments that begin an instruction."""
        places = []
        for core, stems in self._cores.items():
            at = text.find(core)
            while at >= 0:
                for back, stem in stems:
                    start = at - back
                    if start >= 0 and text.startswith(stem.first, start) and (not start or text[start - 1] not in WORD):
                        end = stem.end(text, start)
                        if end and (_follows(text, end, stem.exact) or _slips(text, start, end)):
                            places.append(start)
                at = text.find(core, at + len(core))
        return sorted(places) if len(self._cores) > 1 else places


class _Stem:
    """How some instructions begin.

    Attributes:
        first: its first word.
        exact: whether other opcodes with this first word do not matter.
    """

    def __init__(self, text: bytes, exact: bool) -> None:
        self.first, *rest = text.split(b".")
        self.exact = exact
        self._rest = re.compile(rb"".join(rb"\s*\." + re.escape(word) for word in rest)) if rest else None

    def end(self, text: bytes, start: int) -> int:
        """Where a stem that starts at a place ends; 0 where other words follow the first.  Assemblers take blanks before most dots."""
        if self._rest is None:
            return start + len(self.first)
        match = self._rest.match(text, start + len(self.first))
        return match.end() if match else 0


def _follows(text: bytes, end: int, exact: bool) -> bool:
    """Whether a word that ends there begins an instruction: modifiers follow, or operands, or nothing."""
    following = text[end : end + 1]
    if following.isspace():
        return exact or text[end : end + BEFORE].lstrip()[:1] in b".;{%"
    return following in (b".", b";") or text[end : end + 2] == b"::" or (not exact and following == b"%")


def _slips(text: bytes, start: int, end: int) -> bool:
    """Whether a word begins a statement, and a comma follows where a dot should."""
    return text[end : end + 1] == b"," and text[max(0, start - BEFORE) : start].rstrip()[-1:] in (b";", b":")
