"""The kinds of YAML documents: one struct for each ``kind``, with the keys that such a document has.

Instructions, types and shared memory are structs of the model; every other kind has lists of entries.
Documents of one kind are joined across files.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ptxmma.model import (
    BlockFormat,
    BlockScaling,
    Choice,
    ColumnMask,
    Dequantisation,
    DescriptorFormat,
    Entry,
    Erratum,
    Gpu,
    Granularity,
    Ignored,
    InstructionSet,
    IsaVersion,
    Message,
    Part,
    Preference,
    Protocol,
    Question,
    RegisterLayout,
    ScaleSteps,
    Section,
    SharedCapacity,
    SharedMemory,
    Space,
    Spec,
    Target,
    TensorLayout,
    TensorMaps,
    TensorProducts,
    Throughput,
    Topic,
    Types,
    UnknownPlace,
    Word,
)
from ptxmma.model.fields import SOME, Identifier, Name, Positive, Text, VersionText, like


class Version(Entry, frozen=True, kw_only=True):
    """The version of the spec."""

    version: Annotated[str, like(r"^[0-9]+\.[0-9]+\.[0-9]+$", "a semantic version")]  # "1.0.0"
    document: Text  # "PTX ISA 9.1"


class Spaces(Entry, frozen=True, kw_only=True):
    """The threads that execute together, and the spaces in which their data lies."""

    #: Threads of each scope: ``{"thread": 1, "warp": 32, "warpgroup": 128}``.
    scopes: Annotated[dict[Identifier, Positive], Meta(min_length=1)] = msgspec.field(default_factory=dict)
    spaces: tuple[Space, ...] = ()


class TensorLayouts(Entry, frozen=True, kw_only=True):
    """Layouts of data in an on-chip memory."""

    space: Identifier
    layouts: Annotated[tuple[TensorLayout, ...], SOME]
    unknown: tuple[UnknownPlace, ...] = ()


class Targets(Entry, frozen=True, kw_only=True):
    """Target architectures."""

    targets: Annotated[tuple[Target, ...], SOME]
    gpus: tuple[Gpu, ...] = ()
    older: tuple[Text, ...] = ()
    capacities: tuple[SharedCapacity, ...] = ()


class IsaVersions(Entry, frozen=True, kw_only=True):
    """PTX ISA versions."""

    isa_versions: Annotated[tuple[IsaVersion, ...], SOME]


class RegisterLayouts(Entry, frozen=True, kw_only=True):
    """Layouts of data in registers."""

    register_layouts: tuple[RegisterLayout, ...]


class Sparsity(Entry, frozen=True, kw_only=True):
    """Structured sparsity."""

    granularities: tuple[Granularity, ...] = ()
    choices: tuple[Choice, ...] = ()


class Scaling(Entry, frozen=True, kw_only=True):
    """Block scaling."""

    block_scaling: tuple[BlockScaling, ...]
    block_formats: tuple[BlockFormat, ...]


class Dequantisations(Entry, frozen=True, kw_only=True):
    """Conversions of narrow codes to numbers."""

    dequantisations: tuple[Dequantisation, ...] = ()
    scale_steps: tuple[ScaleSteps, ...] = ()


class Descriptors(Entry, frozen=True, kw_only=True):
    """Formats of descriptors: the meanings of their bits."""

    descriptors: Annotated[tuple[DescriptorFormat, ...], SOME]
    column_masks: tuple[ColumnMask, ...] = ()


class Errata(Entry, frozen=True, kw_only=True):
    """Contradictions of the manual: with itself, with an assembler or with a chip."""

    ignored: tuple[Ignored, ...] = ()
    errata: tuple[Erratum, ...]


class Sections(Entry, frozen=True, kw_only=True):
    """Sections of the manual."""

    sections: Annotated[tuple[Section, ...], SOME]


class Words(Entry, frozen=True, kw_only=True):
    """People's words for instructions."""

    words: tuple[Word, ...] = ()
    preferences: tuple[Preference, ...] = ()
    topics: tuple[Topic, ...] = ()
    operand_names: tuple[Part, ...] = ()
    axis_names: tuple[Part, ...] = ()
    questions: tuple[Question, ...] = ()


class Messages(Entry, frozen=True, kw_only=True):
    """Messages of assemblers."""

    messages: Annotated[tuple[Message, ...], SOME]


class Protocols(Entry, frozen=True, kw_only=True):
    """The order of asynchronous instructions."""

    protocols: Annotated[tuple[Protocol, ...], SOME]


class Peaks(Entry, frozen=True, kw_only=True):
    """Published peaks of tensor cores."""

    throughput: tuple[Throughput, ...]


_Digest = Annotated[str, like(r"^[0-9a-f]{64}$", "a SHA-256 digest")]


class Assembler(Entry, frozen=True, kw_only=True):
    """One pinned assembler: its source and its checksum."""

    cuda: VersionText
    ptx: VersionText  # the newest version that it speaks
    package: Name
    version: Annotated[str, like(r"^[0-9.]+$", "a version of the package")]
    wheel: Annotated[str, like(r"^[A-Za-z0-9_.+-]+\.whl$", "the file name of a wheel")]
    sha256: _Digest
    member: Annotated[str, like(r"^[A-Za-z0-9_./+-]+$", "a path inside the wheel")]
    binary_sha256: _Digest


class Assemblers(Entry, frozen=True, kw_only=True):
    """The pinned assemblers."""

    assemblers: tuple[Assembler, ...]


#: The struct of each kind of document.
KINDS: dict[str, type[Entry]] = {
    "assemblers": Assemblers,
    "block_scaling": Scaling,
    "dequantisation": Dequantisations,
    "descriptors": Descriptors,
    "errata": Errata,
    "register_layouts": RegisterLayouts,
    "instruction": InstructionSet,
    "isa_versions": IsaVersions,
    "messages": Messages,
    "protocol": Protocols,
    "sections": Sections,
    "shared_memory": SharedMemory,
    "spaces": Spaces,
    "sparsity": Sparsity,
    "spec": Version,
    "targets": Targets,
    "tensor_layouts": TensorLayouts,
    "tensor_maps": TensorMaps,
    "tensor_products": TensorProducts,
    "throughput": Peaks,
    "types": Types,
    "words": Words,
}


def kind_of(field: str) -> str:
    """The kind of document that gives a field of :class:`ptxmma.model.Spec`."""
    if field in KINDS:
        return field
    return next((kind for kind, struct in KINDS.items() if field in struct.__struct_fields__), "instruction")


#: The kinds that every spec must have.
MANDATORY = tuple(dict.fromkeys(kind_of(field.name) for field in msgspec.structs.fields(Spec) if field.required))
