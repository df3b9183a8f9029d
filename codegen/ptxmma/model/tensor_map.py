"""Tensor maps: the boxes that TMA copies between global and shared memory, and the rules of the driver."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ptxmma.model.fields import (
    SOME,
    CudaRelease,
    ElementName,
    Entry,
    Formula,
    Identifier,
    Name,
    Natural,
    Positive,
    Source,
    TargetName,
    Text,
    Token,
    like,
    names,
)
from ptxmma.model.memory import NewSwizzle

#: A name of the driver's enumerations.
CudaName = Annotated[str, like(r"^CU_TENSOR_MAP_[A-Z0-9_]+$", "a name of the driver, e.g. CU_TENSOR_MAP_INTERLEAVE_16B")]


#: A mode of tensor maps by name: "im2col".
ModeName = Annotated[Token, names("mode")]


class TensorMapMode(Entry, frozen=True, kw_only=True):
    """A kind of tensor map: how its copies walk through the tensor."""

    name: Token  # "tiled", "im2col::w"
    names: tuple[Token, ...] = ()  # other names, as PTX has them: "tile::scatter4"
    title: Text
    like: Annotated[str, names("mode")] = ""  # the mode whose rules hold, too
    corners: Natural = 0  # most dimensions of pixels in which a bounding box has corners: of W, H, D; 0: copies have boxes, not pixels
    pixels: Natural = 0  # pixels of every copy; 0: as many as the tensor map says
    halo_every: Natural = 0  # pixels after each of which the halo follows; 0: after all of them
    wide: Annotated[str, like(r"^(CU_TENSOR_MAP_IM2COL_WIDE_MODE_[A-Z0-9_]+)?$", "a name of the driver")] = ""  # the driver's ``mode``
    rows: Natural = 0  # rows of one copy, each with a coordinate of its own; 0: a copy has one coordinate for each dimension
    function: Name  # "cuTensorMapEncodeTiled"
    source: Source


class TensorMapType(Entry, frozen=True, kw_only=True):
    """A data type of tensor maps; element types name it as ``tma``."""

    name: CudaName  # "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"
    value: Natural
    bits: Positive  # an element's width
    group: Natural = 0  # elements that share 16 bytes of shared memory, padded; 0: elements follow each other without gaps
    float: bool = False
    elements: tuple[ElementName, ...] = ()  # element types narrower than a byte, whose ``tma`` is one of bytes
    targets: tuple[TargetName, ...] = ()  # these and those that include one of them; none: every target with TMA


class Interleave(Entry, frozen=True, kw_only=True):
    """An interleaved layout of a tensor: channels in slices of so many bytes."""

    name: NewSwizzle  # "16B"
    cuda: CudaName
    value: Natural
    unit: Natural  # bytes of a slice; 0: channels are not cut


class TensorMapSwizzle(Entry, frozen=True, kw_only=True):
    """A swizzle mode of tensor maps; one that matrix descriptors do not have brings its own formula."""

    name: NewSwizzle  # "128B"
    value: Natural
    cuda: Annotated[str, like(r"^(CU_TENSOR_MAP_SWIZZLE_[A-Z0-9_]+)?$", "a name of the driver")] = (
        ""  # none: the name in shared_memory.yaml
    )
    bytes: Natural = 0
    formula: Formula = ""  # the address after the swizzle, over ``address``
    targets: tuple[TargetName, ...] = ()


class Fill(Entry, frozen=True, kw_only=True):
    """The value of elements outside of the tensor."""

    name: Identifier  # "nan"
    cuda: CudaName
    value: Natural
    halfword: Annotated[int, Meta(ge=0, le=0xFFFF)] = 0  # each 16 bits of a filled element


class BoxLimits(Entry, frozen=True, kw_only=True):
    """The limits of the boxes that TMA writes to shared memory."""

    largest_box: Positive  # most elements of a box along any dimension: 256
    alignment: Positive  # bytes, of the address in shared memory to which a box goes: 128
    padded_box: Positive  # elements of a box along the contiguous dimension, where they lie padded: 128
    source: Source


class DriverDifference(Entry, frozen=True, kw_only=True):
    """The verdict of a driver, contrary to its documentation: it accepts what a rule refuses, or refuses what that allows."""

    tool: Name  # "driver"
    since: CudaRelease  # the first CUDA release whose driver was asked: "13.0"
    lowest: TargetName  # targets from this one's number on: "sm_90"
    highest: TargetName  # targets up to this one's number
    accepted: bool


class TensorMapRule(Entry, frozen=True, kw_only=True):
    """A condition on an argument of a tensor map or of a copy with it.

    Formulas and texts read ``rank``; of the type ``bits``, ``padded`` (1: 16 elements in each 16 bytes) and ``float``; ``unit`` of the
    interleave, ``swizzle`` (its number) and its ``span`` (0: none), ``fill`` (its number), ``address``, ``size`` (the box's bytes as the
    driver computes them), and the limits ``largest_box``, ``padded_box`` and ``alignment``; of im2col ``channels``, ``pixels``, ``limit``
    (of corners), ``wide`` (1: pixels along W alone) and ``halo``.  For each dimension ``i``, ``shape``, ``box`` and ``step``, for each
    stride ``stride``, for each dimension of pixels ``shape``, ``lower`` and ``upper``; of a copy ``at``, ``offset`` (of pixels),
    ``destination``, ``load`` and ``store`` (1: from, to global memory; both are 0 where the rules judge a map alone).
    """

    argument: Identifier  # "box"
    each: Literal["", "dimension", "stride", "pixel"] = ""
    modes: tuple[ModeName, ...] = ()  # none: every mode
    when: Formula = ""
    need: Formula
    text: Text
    drivers: tuple[DriverDifference, ...] = ()  # that depart from their documentation
    source: Source


class TensorMapNote(Entry, frozen=True, kw_only=True):
    """A fact in words."""

    text: Text
    modes: tuple[ModeName, ...] = ()  # whose copies it is about; none: every mode
    absent: Annotated[str, like(r"^[0-9A-Z_]*$", "a name that no table has, e.g. 96B")] = ""  # the note gives the reason
    source: Source


class TensorMaps(Entry, frozen=True, kw_only=True):
    """Everything about tensor maps."""

    modes: Annotated[tuple[TensorMapMode, ...], SOME]
    types: Annotated[tuple[TensorMapType, ...], SOME]
    interleaves: Annotated[tuple[Interleave, ...], SOME]
    swizzles: Annotated[tuple[TensorMapSwizzle, ...], SOME]
    fills: Annotated[tuple[Fill, ...], SOME]
    limits: BoxLimits
    rules: tuple[TensorMapRule, ...] = ()
    notes: tuple[TensorMapNote, ...] = ()
    source: Source
