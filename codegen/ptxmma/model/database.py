"""The whole spec, and the database that is derived from it."""

from __future__ import annotations

import functools
from typing import Any

from ptxmma.model.bitmap import BitMap
from ptxmma.model.decision_table import DecisionTable
from ptxmma.model.dequantisation import Dequantisation, ScaleSteps
from ptxmma.model.descriptor_format import ColumnMask, DescriptorFormat
from ptxmma.model.digits import Summand
from ptxmma.model.element import BlockFormat, BlockScaling, Types
from ptxmma.model.erratum import Erratum
from ptxmma.model.fields import Entry, Facts, Formula, Identifier, Name, Text, matches
from ptxmma.model.instruction import Ignored, InstructionSet
from ptxmma.model.memory import SharedMemory
from ptxmma.model.message import Message
from ptxmma.model.protocol import Protocol
from ptxmma.model.register_layout import RegisterLayout
from ptxmma.model.space import REGISTERS, Space
from ptxmma.model.sparsity import Choice, Granularity
from ptxmma.model.target import Gpu, IsaVersion, Section, SharedCapacity, Target, Throughput
from ptxmma.model.tensor_layout import TensorLayout
from ptxmma.model.tensor_map import TensorMaps
from ptxmma.model.tensor_product import TensorProducts
from ptxmma.model.vocabulary import Part, Preference, Question, Topic, Word


class Spec(Entry, frozen=True, kw_only=True, dict=True):
    """The whole spec: the content of all YAML files."""

    version: str  # semantic version of the spec: "1.0.0"
    document: str  # "PTX ISA 9.1"
    scopes: dict[str, int]  # threads that execute together: {"thread": 1, "warp": 32, "warpgroup": 128}
    spaces: tuple[Space, ...]
    types: Types
    targets: tuple[Target, ...]
    gpus: tuple[Gpu, ...] = ()
    older: tuple[Text, ...] = ()  # architectures without tensor cores, and products: ("Pascal", "GTX 1080")
    capacities: tuple[SharedCapacity, ...] = ()
    isa_versions: tuple[IsaVersion, ...]
    instructions: tuple[InstructionSet, ...]
    register_layouts: tuple[RegisterLayout, ...] = ()
    granularities: tuple[Granularity, ...] = ()
    choices: tuple[Choice, ...] = ()
    block_scaling: tuple[BlockScaling, ...] = ()
    block_formats: tuple[BlockFormat, ...] = ()
    dequantisations: tuple[Dequantisation, ...] = ()
    scale_steps: tuple[ScaleSteps, ...] = ()
    shared_memory: SharedMemory | None = None
    tensor_maps: TensorMaps | None = None
    tensor_products: TensorProducts | None = None
    descriptors: tuple[DescriptorFormat, ...] = ()
    column_masks: tuple[ColumnMask, ...] = ()
    meetings: tuple[Name, ...] = ()  # instructions by which threads may hear that others have accessed memory: ("bar",)
    protocols: tuple[Protocol, ...] = ()
    throughput: tuple[Throughput, ...] = ()
    ignored: tuple[Ignored, ...] = ()  # modifiers that assemblers ignore, after every opcode that does not have them
    errata: tuple[Erratum, ...] = ()
    sections: tuple[Section, ...] = ()
    messages: tuple[Message, ...] = ()
    words: tuple[Word, ...] = ()
    preferences: tuple[Preference, ...] = ()
    topics: tuple[Topic, ...] = ()
    operand_names: tuple[Part, ...] = ()
    axis_names: tuple[Part, ...] = ()
    questions: tuple[Question, ...] = ()

    @functools.cached_property
    def memo(self) -> dict[object, Any]:
        """A cache in which other modules keep what they have computed about this spec."""
        return {}

    @functools.cached_property
    def patterns(self) -> DecisionTable[Granularity]:
        """The sparsity patterns, looked up by the facts of an instruction."""
        return DecisionTable(self.granularities, "of")

    def space(self, name: str) -> Space:
        """The space of that name."""
        return next(space for space in self.spaces if space.name == name)

    @property
    def registers(self) -> Space:
        """The space of fragments."""
        return self.space(REGISTERS)

    @property
    def lanes(self) -> int:
        """The threads of a warp."""
        return self.registers.most("lane")

    @property
    def tensor_memories(self) -> tuple[Space, ...]:
        """The on-chip memories of lanes and columns: an address there has several coordinates."""
        return tuple(space for space in self.spaces if len(space.address) > 1)

    @property
    def tensor_layouts(self) -> tuple[TensorLayout, ...]:
        """The layouts of every tensor memory."""
        return tuple(layout for memory in self.tensor_memories for layout in memory.layouts)

    def tensor_memory_of(self, facts: Facts) -> Space | None:
        """The tensor memory that an instruction with these facts reaches; None where there is none."""
        named = (memory for memory in self.tensor_memories if memory.of and matches(memory.of, facts))
        return next(named, None) or next((memory for memory in self.tensor_memories if not memory.of), None)

    def choice(self, pattern: Granularity) -> Choice:
        """The fields that describe the chunks of a pattern."""
        return next(entry for entry in self.choices if entry.units == pattern.units)


class Layout(Entry, frozen=True, kw_only=True, dict=True):
    """One derived layout: the bit map of a formula of the spec for one shape and width, proven equal to it.

    The map goes the way of the formula: from ``(i, lane)`` to the axes, or from the axes to ``(lane, bit)`` or ``(lane, byte)``.
    """

    name: str  # "mma_m16n8k16_a_b16"
    kind: str  # "fragment", "metadata", "scale" or "address"
    family: str
    operands: tuple[str, ...]
    shape: str  # "m16n8k16" or "m64nNk16"
    bits: int = 0  # container width of an element
    axes: dict[str, int]  # the size of each, the largest where an extent ranges: {"row": 16, "col": 8}
    growing: tuple[str, ...] = ()  # axes whose size depends on an extent that ranges
    grown: str = ""  # their size in words: "N", "2N", "N / 2"
    summed: str = ""  # the axis along which a product adds up: "col" of A, "row" of B
    apart: tuple[str, ...] = ()  # axes that belong to no coordinates
    steps: dict[str, int] = {}  # inputs and outputs whose numbers are multiples of more than 1: {"bit": 4}
    threads: int
    warps: int = 1  # the warps that these threads are
    entry: int  # index of the spec's entry
    map: BitMap

    def __repr__(self) -> str:
        return f"<Layout {self.name}>"

    @functools.cached_property
    def coordinates(self) -> tuple[str, ...]:
        """The axes that name a place, in order."""
        return tuple(axis for axis in self.axes if axis not in self.apart)

    @property
    def to_axes(self) -> BitMap:
        """The map from ``(i, lane)``, or from ``(lane, bit)``, to the axes, in whichever direction the formula is written."""
        return self.map if self.map.outputs.keys() == self.axes.keys() else self.map.inverse()

    @property
    def lane_bits(self) -> int:
        """The bits of a thread's number that count within its warp; the bits above them count warps."""
        return (self.threads // self.warps).bit_length() - 1

    @property
    def zeros(self) -> dict[str, int]:
        """The number of low bits of inputs and outputs that are always 0, which the map leaves out."""
        return {name: step.bit_length() - 1 for name, step in self.steps.items()}

    @property
    def grows_by(self) -> int:
        """The number of columns by which a fragment grows; 0 if it does not.

        A fragment with a multiple of that many columns holds the first elements of the largest one.  The highest bits of ``i`` count
        that many columns at a time.
        """
        if len(self.growing) != 1 or "i" not in self.map.bits:
            return 0
        (axis,) = self.growing
        step = 1 << self.map.outputs[axis]
        for output, bit in reversed(self.map.bits["i"]):
            if (output, 1 << bit) != (axis, step // 2):
                break
            step //= 2
        return step

    @functools.cached_property
    def plane(self) -> tuple[str, str]:
        """The axes that are the rows and columns of a matrix: the last two coordinates of a fragment, whatever their names.

        A fragment with a single axis is a row of a matrix, and the axis of its rows is ``""``.
        """
        row, col = ("", *self.coordinates)[-2:] if self.kind == "fragment" else ("row", "col")
        return row, col

    @property
    def rows(self) -> int:
        """The size of the axis of its rows; 0 without one."""
        return self.axes.get(self.plane[0], int(self.kind == "fragment"))

    @property
    def cols(self) -> int:
        """The size of the axis of its columns; 0 without one."""
        return self.axes.get(self.plane[1], 0)


class LayoutDigits(Entry, frozen=True, kw_only=True):
    """The digits of a layout whose formulas serve many sizes, and the way back that follows from them."""

    layout: Name  # "layout_b", of tensor memory
    terms: tuple[Summand, ...]
    back: dict[Identifier, Formula]  # each axis from the coordinates: {"row": "lane % 64 + 64 * cta"}


class Database(Entry, frozen=True, kw_only=True, dict=True):
    """The content of ``ptxmma.json``: the spec and every layout that is derived from it."""

    generated: str = ""  # the generator that made the file, and its input
    spec: Spec
    layouts: tuple[Layout, ...]
    digit_layouts: tuple[LayoutDigits, ...] = ()

    @functools.cached_property
    def layout(self) -> dict[str, Layout]:
        """The layouts by name."""
        return {layout.name: layout for layout in self.layouts}

    @functools.cached_property
    def memo(self) -> dict[object, Any]:
        """A cache in which other modules keep what they have computed about this database."""
        return {}
