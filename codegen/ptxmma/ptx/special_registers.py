"""Special registers and variables: not registers of a program, though assemblers accept them in lists.

ptxas 11.7 to 13.5 take a member of a list that is a special register for bits of its size without a sign, or for a predicate; one that
is a variable of any state space, or an element of a vector of these, for a register of the variable's type; an array for none.  Where a
single register is wanted, all of them are refused; but ``%is_explicit_cluster`` is the predicate of an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The special registers, from PTX ISA 10, by what a list takes them for.
_SPECIAL = {
    "b32": re.compile(
        rb"%(?:(?:(?:n?(?:tid|ctaid|clusterid)|cluster_n?ctaid)\.[xyzwrgba])|laneid|n?warpid|n?smid|cluster_n?ctarank"
        rb"|lanemask_(?:eq|le|lt|ge|gt)|clock(?:_hi)?|pm[0-7]|envreg(?:[12]?\d|3[01])|globaltimer_(?:lo|hi)"
        rb"|reserved_smem_offset_(?:begin|end|cap|[01])|(?:total|aggr|dynamic)_smem_size)"
    ),
    "b64": re.compile(rb"%(?:gridid|clock64|pm[0-7]_64|globaltimer|current_graph_exec)"),
    "pred": re.compile(rb"%is_explicit_cluster"),
}
#: A state space, attributes, perhaps a vector, the type, and names up to the next parameter; state spaces of instructions follow a word.
_DECLARATION = re.compile(
    rb"\.(?<![\w:]\.)(?:param|global|const|shared|local)\b[^;{}=\[]{0,80}?(?:\.\s*(v[24])\s*)?\.\s*([busf]\d+(?:x2)?)\b"
    rb"([^;(){}]*?)(?=[;(){}]|,\s*\.|\Z)"
)
_VARIABLE = re.compile(rb"([\w$%]+)\s*(\[?)")


def special(name: bytes) -> str:
    """What a list takes a special register for, ``"b32"``; ``""`` for another name."""
    return next((kind for kind, pattern in _SPECIAL.items() if pattern.fullmatch(name)), "")


def variables(text: bytes) -> Iterator[tuple[bytes, str]]:
    """The variables that a text without comments declares, other than arrays, with their types: ``"f32"``, ``"v4.f32"``."""
    for match in _DECLARATION.finditer(text):
        kind = b".".join(filter(None, match.groups()[:2])).decode()
        for name, bracket in _VARIABLE.findall(match[3]):
            if not bracket:
                yield name, kind
