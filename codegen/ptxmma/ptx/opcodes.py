"""The first words of matrix instructions, and their places in a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ptxmma.model import Spec

#: Characters of words.
WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%.")
#: Bytes before an instruction that may hold its predicate, and bytes after its first word that may make it one.
BEFORE = 200
#: Letters at the end of a word that are searched for: of ``ldmatrix`` and ``stmatrix`` they are the same.
_ENDING = 6
#: The rest of a misspelt first word, ``ldmatrixx.sync``; no name goes on like that.
_SYNC = rb"(?:\.\w+){0,2}\.sync\b"
_MISSPELT = re.compile(rb"\w+" + _SYNC)
#: The rest of a first word with letters before it, ``_mma.sync``; and that word itself.
_MANGLED = rb"(?=\w{0,8}" + _SYNC + rb")"
_WORD = re.compile(rb"\w+\Z")


class Opcodes:
    """The first words of a spec's instructions.

    A word that is the name of a family (``wgmma``), or begins several of them (``tcgen05``), owns every instruction that begins with it,
    also one that does not exist.  Any other word (``fence.proxy``) owns the opcodes of the spec only.
    """

    def __init__(self, spec: Spec) -> None:
        families = {entry.family for entry in spec.instructions}
        first = {entry.syntax.split(".")[0] for entry in spec.instructions}
        leading = Counter(family.split(".")[0] for family in families)
        whole = {word for word in first if word in families or leading[word] > 1}
        opcodes = {entry.opcode or entry.syntax.split(".")[0] for entry in spec.instructions}
        exact = {opcode for opcode in opcodes if opcode.split(".")[0] not in whole}
        stems: dict[bytes, list[_Stem]] = {}  # the stems of each first word
        for text in sorted(whole | exact):
            stem = _Stem(text.encode(), text in exact)
            stems.setdefault(stem.first, []).append(stem)
        endings = {word[-_ENDING:] for word in stems}
        #: The substrings to search for: "mma" is also part of "wgmma".
        self._cores = [word for word in sorted(endings) if not any(other in word for other in endings - {word})]
        together = {entry.syntax.split(".")[0].encode() for entry in spec.instructions if "sync" in entry.syntax.split(".")}
        own = ({word: alike for word, alike in stems.items() if core in word} for core in self._cores)
        self._searches = [
            _Search(core, words, mangled=not together.isdisjoint(words)) for core, words in zip(self._cores, own, strict=True)
        ]

    def mentioned(self, text: bytes) -> bool:
        """Return whether a text may have an instruction: places() of what is made of it may not be empty."""
        return any(core in text for core in self._cores)

    def places(self, text: bytes) -> list[int]:
        """The places, ascending, of the words in a text without comments that begin an instruction."""
        return sorted(place for search in self._searches for place in search.places(text))


class _Search:
    """Searches for the words that have a substring; that is faster than to search for each of them."""

    def __init__(self, core: bytes, stems: Mapping[bytes, Sequence[_Stem]], *, mangled: bool) -> None:
        """With ``mangled`` it finds the words also where letters before them, or in them, are wrong, and ``.sync`` follows."""
        #: The length of each word before the substring, and the stems that begin with the word.
        self._words = [(word.rfind(core), alike) for word, alike in stems.items()]
        cuts = ((word, back + len(core)) for word, (back, _) in zip(stems, self._words, strict=True))
        ends = [rb"(?<=(?<![\w$%.])" + word[:cut] + b")" + word[cut:] + _ahead(stems[word]) for word, cut in cuts]
        self._pattern = re.compile(core + b"(?:" + b"|".join(end + b"()" for end in (*ends, *([_MANGLED] if mangled else []))) + b")")

    def places(self, text: bytes) -> Iterator[int]:
        """The places where a word begins an instruction."""
        for match in self._pattern.finditer(text):
            number = match.lastindex - 1  # type: ignore[operator]  # one of the words matched
            if number == len(self._words):
                yield from _mangled(text, match.start())
                continue
            back, stems = self._words[number]
            start = match.start() - back
            for stem in stems:
                end = stem.end(text, start)
                if end and (_follows(text, end, stem.exact) or _slips(text, start, end)):
                    yield start
                    break


def _ahead(stems: Sequence[_Stem]) -> bytes:
    """A pattern for what follows the first word of some stems, where it alone begins none: ``st`` is common, ``st.async`` is not."""
    return b"" if any(stem.rest is None for stem in stems) else b"(?=" + b"|".join(stem.rest.pattern for stem in stems if stem.rest) + b")"


class _Stem:
    """The first words of some instructions.

    Attributes:
        first: its first word.
        exact: whether other opcodes with this first word do not matter; what goes on where its last word ends is a misspelling of it.
        rest: a pattern for its other words; None without any.
    """

    def __init__(self, text: bytes, exact: bool) -> None:
        self.first, *rest = text.split(b".")
        self.exact = exact
        self.rest = re.compile(rb"".join(rb"\s*\." + re.escape(word) for word in rest)) if rest else None

    def end(self, text: bytes, start: int) -> int:
        """The end of a stem that starts at a place; 0 where other words follow the first.  Assemblers take blanks before most dots."""
        if self.rest is None:
            return start + len(self.first)
        match = self.rest.match(text, start + len(self.first))
        return match.end() if match else 0


def _follows(text: bytes, end: int, exact: bool) -> bool:
    """Return whether a word that ends there begins an instruction: modifiers follow, or operands, or nothing."""
    following = text[end : end + 1]
    if following.isspace():
        return exact or text[end : end + BEFORE].lstrip()[:1] in b".;{%"
    if following in (b".", b";") or text[end : end + 2] == b"::":
        return True
    if exact:
        return following != b"" and following[0] in WORD
    return following == b"%" or _MISSPELT.match(text, end, end + BEFORE) is not None


def _mangled(text: bytes, place: int) -> Iterator[int]:
    """The start of a word that begins a statement and goes on at a place, if there is one."""
    before = text[max(0, place - BEFORE) : place]
    word = _WORD.search(before)
    start = word.start() if word else len(before)
    if before[:start].rstrip()[-1:] in (b"", b";", b":", b"{", b"}"):
        yield place - len(before) + start


def _slips(text: bytes, start: int, end: int) -> bool:
    """Return whether a word begins a statement, and a comma follows where a dot should."""
    return text[end : end + 1] == b"," and text[max(0, start - BEFORE) : start].rstrip()[-1:] in (b";", b":")
