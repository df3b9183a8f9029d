"""Block scaling."""

from __future__ import annotations

from ptxmma.model.conditions import Condition, Entry


class BlockScaling(Entry, frozen=True, kw_only=True):
    """Which scale vectors and scale types a kind admits."""

    kind: str  # "kind::mxf4"
    scale_vec: str  # "scale_vec::2X"
    stypes: tuple[str, ...]
    blocks: int  # scale factors along K
    source: str


class BlockFormat(Entry, frozen=True, kw_only=True):
    """A block-scaled number format: elements that share a scale factor, block by block."""

    name: str  # "mxfp8_e4m3"
    title: str  # "MXFP8 with E4M3 elements"
    element: str  # type of the elements: "e4m3"
    scale: str  # type of the scale factors: "ue8m0"
    block: int  # neighbouring elements that share one: 32
    of: tuple[Condition, ...]  # the instructions that multiply matrices of it
    source: str
