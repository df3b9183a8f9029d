"""Bit maps as expressions that are valid in C and in Python: for the generated functions and for display.

They work on unsigned integers of C, on integers of Python and on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.model import Layout
from ptxmma.model.bitmap import BitMap, Run


def gather(bit_map: BitMap, output: str, zeros: Mapping[str, int] | None = None, drop: int = 0) -> str:
    """The expression of one output over the inputs, e.g. ``(lane >> 2) | ((i & 2) << 2)``.

    Terms come in the order of the output's bits, highest first, as one reads a number.  ``zeros`` says how
    many bits lie below a field that the map leaves out since they are always 0: ``{"field": 2}`` where the program counts bits
    and the map fields of four bits, as input or as output.  ``drop`` forgets that many low bits of the map's output.
    """
    zeros = zeros or {}
    terms = []
    for run in reversed(bit_map.runs(output)):
        cut = max(drop - run.target, 0)
        if cut < run.width:
            below = zeros.get(run.name, 0)
            run = Run(run.name, run.source + cut + below, run.width - cut, run.target + cut + zeros.get(output, 0))
            terms.append(_term(run, bit_map.inputs[run.name] + below, run.name))
    if not terms:
        return "0"
    if len(terms) == 1:
        return terms[0]
    return " | ".join(f"({term})" if " " in term else term for term in terms)


def _term(run: Run, width: int, name: str) -> str:
    """Bits ``source .. source+width`` of an input, moved to ``target``; no mask where the input has nothing above or below."""
    mask = (1 << run.width) - 1
    down = run.source - run.target
    has_above = run.source + run.width < width
    has_below = run.source > 0
    if down >= 0:
        moved = f"{name} >> {down}" if down else name
        # The bits below the run fall off the end only if the run lands at bit 0.
        if has_above or (has_below and run.target > 0):
            return f"({moved}) & {mask << run.target}" if down else f"{moved} & {mask << run.target}"
        return moved
    if has_above or has_below:
        return f"({name} & {mask << run.source}) << {-down}"
    return f"{name} << {-down}"


def both_ways(layout: Layout) -> tuple[dict[str, str], dict[str, str]]:
    """A layout and its inverse as expressions, by the name of their result.

    Of a fragment ``(lane, i) -> (row, col)``, of metadata ``(row, chunk, selector) -> (lane, bit)``, of scale factors
    ``(row, block, byte_id, thread_id) -> (lane, byte)``.
    """
    zeros = layout.zeros
    forward, back = ({name: gather(way, name, zeros=zeros) for name in way.outputs} for way in (layout.map, layout.map.inverse()))
    return forward, back
