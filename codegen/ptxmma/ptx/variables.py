"""Names that are not registers of a program: variables, with their state spaces, types and alignments, and special registers."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

#: A state space, attributes, perhaps a vector, and the type; state spaces of instructions follow a word.
_DECLARATION = re.compile(
    rb"\.(?<![\w:]\.)(?P<space>param|global|const|shared|local)\b"
    rb"(?P<kinds>(?:\s*\.\s*(?:align\s+\d+|attribute\s*\((?:[^()]|\([^()]*\))*\)|\w+))+)"
)
_ALIGNED = re.compile(rb"\.\s*align\s+(\d{1,9})")
_TYPE = re.compile(rb"(?:\.\s*(v[248])\s*)?\.\s*([busf](\d{1,3})(x2)?)\b")
_VARIABLE = re.compile(rb"\s*([\w$%]+)\s*(?:<\s*(\w+)\s*>\s*)?((?:\[[^\[\]]*\]\s*)*)")
_BRACE = re.compile(rb"[{}]")
_VALUE = re.compile(rb"[^,;{}]*")
_BLANKS = re.compile(rb"\s*")


class Variable(NamedTuple):
    """A declared variable.

    Attributes:
        space: its state space, ``"shared"``; ``""`` where declarations of one name differ.
        kind: the type that a list of registers takes it for, ``"f32"`` or ``"v4.f32"``; ``""`` for an array or an opaque type.
        alignment: bytes to whose multiples it is aligned at least.
    """

    space: str
    kind: str
    alignment: int

    def merged(self, other: Variable) -> Variable:
        """The facts that hold whichever of the two declarations counts."""
        space = self.space if self.space == other.space else ""
        return Variable(space, other.kind, math.gcd(self.alignment, other.alignment))


def declared(text: bytes) -> Iterator[tuple[bytes, bytes, Variable]]:
    """The variables that a text without comments declares: name, count of ``name<count>`` (else empty), and the variable."""
    place = 0
    while match := _DECLARATION.search(text, place):
        place = match.end()
        space, kinds = match["space"].decode(), match["kinds"]
        kind, alignment = _kind(kinds)
        while name := _VARIABLE.match(text, place):
            yield name[1], name[2] or b"", Variable(space, "" if name[3] else kind, alignment)
            place = _after_value(text, name.end())
            if text[place : place + 1] != b",":
                break
            place += 1


@functools.lru_cache(maxsize=1 << 8)
def _kind(kinds: bytes) -> tuple[str, int]:
    """The type among the directives of a declaration, and the alignment in bytes, which is its size without another."""
    aligned, match = _ALIGNED.search(kinds), _TYPE.search(kinds)
    if match is None:
        return "", int(aligned[1]) if aligned else 1
    vector, name, bits, pair = match.groups()
    size = int(bits) * (2 if pair else 1) * (int(vector[1:]) if vector else 1) // 8
    return b".".join(filter(None, (vector, name))).decode(), int(aligned[1]) if aligned else max(size, 1)


def _after_value(text: bytes, place: int) -> int:
    """The place where a declaration goes on after the value of a variable, if it has one."""
    if text[place : place + 1] != b"=":
        return place
    place = _VALUE.match(text, place).end()  # type: ignore[union-attr]  # it matches everywhere
    depth = 0
    for brace in _BRACE.finditer(text, place) if text[place : place + 1] == b"{" else ():
        depth += 1 if brace[0] == b"{" else -1
        place = brace.end()
        if not depth:
            break
    return _BLANKS.match(text, place).end()  # type: ignore[union-attr]  # so does this


#: The special registers, from PTX ISA 10, by the type for which a list takes them.
#:
#: ptxas 11.7 to 13.5 take a special register in a list, or as the base of an address, for bits of its size without a sign, or for a
#: predicate.  They refuse it where a single register is expected, except for ``%is_explicit_cluster`` as the predicate of an instruction.
_SPECIAL = {
    "b32": re.compile(
        rb"%(?:(?:(?:n?(?:tid|ctaid|clusterid)|cluster_n?ctaid)\.[xyzwrgba])|laneid|n?warpid|n?smid|cluster_n?ctarank"
        rb"|lanemask_(?:eq|le|lt|ge|gt)|clock(?:_hi)?|pm[0-7]|envreg(?:[12]?\d|3[01])|globaltimer_(?:lo|hi)"
        rb"|reserved_smem_offset_(?:begin|end|cap|[01])|(?:total|aggr|dynamic)_smem_size)"
    ),
    "b64": re.compile(rb"%(?:gridid|clock64|pm[0-7]_64|globaltimer|current_graph_exec)"),
    "pred": re.compile(rb"%is_explicit_cluster"),
}


def special(name: bytes) -> str:
    """The type as which a list or an address takes a special register, ``"b32"``; ``""`` for another name."""
    return next((kind for kind, pattern in _SPECIAL.items() if pattern.fullmatch(name)), "")
