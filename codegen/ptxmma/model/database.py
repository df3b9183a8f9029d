"""The whole spec, and the database that is derived from it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ptxmma.model.bitmap import BitMap
from ptxmma.model.block_format import BlockFormat, BlockScaling
from ptxmma.model.conditions import Entry
from ptxmma.model.element import Types
from ptxmma.model.erratum import Erratum
from ptxmma.model.instruction import InstructionSet
from ptxmma.model.memory import SharedMemory
from ptxmma.model.peak import Throughput
from ptxmma.model.protocol import Protocol
from ptxmma.model.register_layout import Fragment, MetadataLayout, ScaleLayout
from ptxmma.model.sparsity import Choice, Granularity
from ptxmma.model.target import IsaVersion, Target

if TYPE_CHECKING:
    from ptxmma.catalog.evidence_summary import LayoutEvidence


class Spec(Entry, frozen=True, kw_only=True):
    """The whole spec, as its YAML files say it."""

    version: str  # semantic version of the spec: "1.0.0"
    document: str  # "PTX ISA 9.1"
    types: Types
    targets: tuple[Target, ...]
    isa_versions: tuple[IsaVersion, ...]
    instructions: tuple[InstructionSet, ...]
    fragments: tuple[Fragment, ...] = ()
    granularities: tuple[Granularity, ...] = ()
    choices: tuple[Choice, ...] = ()
    metadata: tuple[MetadataLayout, ...] = ()
    block_scaling: tuple[BlockScaling, ...] = ()
    scales: tuple[ScaleLayout, ...] = ()
    block_formats: tuple[BlockFormat, ...] = ()
    shared_memory: SharedMemory | None = None
    protocol: Protocol | None = None
    throughput: tuple[Throughput, ...] = ()
    errata: tuple[Erratum, ...] = ()

    def choice(self, pattern: Granularity) -> Choice:
        """Which fields describe the chunks of a pattern."""
        return next(entry for entry in self.choices if entry.units == pattern.units)


class Layout(Entry, frozen=True, kw_only=True, dict=True):
    """One derived layout: a formula of the spec for one shape and width, as the bit map that it was proven equal to.

    Inputs and outputs by ``kind``: fragments map ``(i, lane)`` to ``(row, col[, computation])``; metadata maps
    ``(row, chunk, selector)`` to ``(lane, bit)`` counted in fields; scales map ``(row, block …)`` to ``(lane, byte)``.
    """

    name: str  # "mma_m16n8k16_a_b16"
    kind: str  # "fragment", "metadata" or "scale"
    family: str
    operands: tuple[str, ...]
    shape: str  # "m16n8k16" or "m64nNk16"
    bits: int = 0  # container width of an element
    rows: int = 0
    cols: int = 0  # the largest, where N varies
    threads: int = 32
    entry: int  # index of the spec's entry: fragments, metadata or scales
    map: BitMap

    def __repr__(self) -> str:
        return f"<Layout {self.name}>"

    @property
    def field_bits(self) -> int:
        """Metadata only: bits of the field of one chunk; the fields of a thread fill its 32-bit register."""
        return 32 >> self.map.outputs["field"]

    @property
    def evidence(self) -> LayoutEvidence:
        """What stands behind it: which chips it was held against, how often, and whose definitions agree or differ.

        It is that of the database that the layout was read with; a layout of none has no evidence.
        """
        from ptxmma.catalog import evidence_summary as summary

        database = self.__dict__.get("database")
        return (summary.of(database) if database else summary.NOTHING).of_layout(self.name)

    def to_cute(self, n: int | None = None) -> str:
        """CuTe's ``shape:stride`` text, see :func:`ptxmma.matrices.interop.to_cute`; ``n``: columns, mandatory where N varies."""
        from ptxmma.matrices import interop

        return interop.to_cute(self, n)

    def to_triton(self, n: int | None = None) -> dict[str, list[list[int]]]:
        """Triton's linear-layout bases, see :func:`ptxmma.matrices.interop.to_triton`; ``n``: columns, mandatory where N varies."""
        from ptxmma.matrices import interop

        return interop.to_triton(self, n)


class Database(Entry, frozen=True, kw_only=True, dict=True):
    """What ``ptxmma.json`` holds: the spec, and every layout that its formulas derive."""

    generated: str = ""  # what made the file, from what
    spec: Spec
    layouts: tuple[Layout, ...]

    def __post_init__(self) -> None:
        """Let each layout know where it comes from; one that several databases share belongs to the first."""
        for layout in self.layouts:
            layout.__dict__.setdefault("database", self)

    @functools.cached_property
    def layout(self) -> dict[str, Layout]:
        """The layouts by name."""
        return {layout.name: layout for layout in self.layouts}

    @functools.cached_property
    def memo(self) -> dict[object, Any]:
        """What other modules have worked out about this database and need not work out again."""
        return {}
