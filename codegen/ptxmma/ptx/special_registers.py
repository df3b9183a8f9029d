"""Special registers: not registers of a program, though assemblers accept them in some places.

ptxas 11.7 to 13.5 take a special register in a list, or as the base of an address, for bits of its size without a sign, or for a
predicate.  They refuse it where a single register is expected, except for ``%is_explicit_cluster`` as the predicate of an instruction.
"""

from __future__ import annotations

import re

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


def special(name: bytes) -> str:
    """The type as which a list or an address takes a special register, ``"b32"``; ``""`` for another name."""
    return next((kind for kind, pattern in _SPECIAL.items() if pattern.fullmatch(name)), "")
