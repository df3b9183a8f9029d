"""Block scaling."""

from __future__ import annotations

from typing import Annotated

from ptxmma.model.conditions import Condition, Entry
from ptxmma.model.fields import SOME, Name, Positive, Source, Text


class BlockScaling(Entry, frozen=True, kw_only=True):
    """The scale factors of some instructions."""

    of: tuple[Condition, ...]  # the instructions: {"kind": ("kind::mxf4",), "scale_vec": ("scale_vec::2X",)}
    types: Annotated[tuple[Name, ...], SOME]  # ("ue8m0",)
    blocks: Positive  # scale factors of each row along K
    source: Source


class BlockFormat(Entry, frozen=True, kw_only=True):
    """A block-scaled number format: elements that share a scale factor, block by block."""

    name: Name  # "mxfp8_e4m3"
    title: Text  # "MXFP8 with E4M3 elements"
    element: Name  # type of the elements: "e4m3"
    scale: Name  # type of the scale factors: "ue8m0"
    block: Positive  # neighbouring elements that share one: 32
    of: tuple[Condition, ...]  # the instructions that multiply matrices of it
    source: Source
