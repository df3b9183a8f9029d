"""The C header of matrices in shared memory: images, copies and descriptors, on top of ``shared_memory.h``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.shared_formats import matrix_formats, read_by, swizzle_encoding
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output, c_text
from ptxmma.generator.emit.templating import banner, render
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.model import DescriptorFormat, ElementType, Padded, SharedMemory, Spec


class _Case(NamedTuple):
    """A majorness with a swizzle mode, and the function of ``shared_memory.h`` for them."""

    majorness: str
    swizzle: str
    function: str


class _Read(NamedTuple):
    """Element types that the instructions of a family read with a majorness and some swizzles."""

    majorness: str
    swizzles: tuple[str, ...]
    types: list[str]


class _Format(NamedTuple):
    """A format of matrix descriptors."""

    format: DescriptorFormat
    encoding: dict[str, int]  # the value of the swizzle field for each mode
    reads: list[_Read]
    pads: tuple[Padded, ...]


def emit(catalog: Catalog) -> Iterator[Output]:
    """``shared_layout.h``, where the spec has matrices in shared memory."""
    spec = catalog.database.spec
    memory = spec.shared_memory
    if memory is None:
        return
    assert spec.tensor_maps is not None
    cases = [
        _Case(layout.majorness, name, c_text.identifier(f"ptxmma_offset_{layout.majorness}_{name}").lower())
        for layout in memory.layouts
        for name in layout.swizzles
    ]
    types = {majorness: _types(spec, memory, majorness) for majorness in dict.fromkeys(case.majorness for case in cases)}
    complete = {majorness: sum(case.majorness == majorness for case in cases) == len(memory.swizzles) for majorness in types}
    formats = _formats(spec, memory)
    text = render(
        "c/shared_layout.h.jinja",
        c=c_text,
        spec=spec,
        memory=memory,
        boxes=spec.tensor_maps.limits,
        cases=cases,
        types=types,
        complete=complete,
        mapped=_mapped(spec),
        reach=_reach(spec),
        first=formats[0].format,
        formats=formats,
        padded=memory.padded,
        transposed=[entry for entry in memory.padded if entry.majorness != "K"],
        mapped_swizzles=[mode for mode in memory.swizzles if mode.name in formats[0].encoding],
        pieces=_pieces(spec, memory, types),
        device_words={1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint2", 16: "uint4"},
    )
    yield Output("generated/include/ptxmma/shared_layout.h", banner("//", catalog, ["spec/shared_memory.yaml"]) + text)


def _formats(spec: Spec, memory: SharedMemory) -> list[_Format]:
    """The formats of matrix descriptors with what their families read, the spec's first one first."""
    made = []
    for each in matrix_formats(spec):
        own = read_by(spec, memory, each.family)
        reads = [_Read(entry.majorness, entry.swizzles, _wide(spec, entry.majorness, entry.elements)) for entry in own.majorness]
        made.append(_Format(each, swizzle_encoding(spec, each.family), [read for read in reads if read.types], own.padded))
    return made


#: The constants of a tile, over its template arguments and what it measures.
_NUMBERS = {
    "x": "Extent",
    "k": "Depth",
    "steps": "Depth / Step",
    "bytes": "static_cast<uint32_t>(measures.bytes)",
    "lbo": "measures.layout.lbo",
    "sbo": "measures.layout.sbo",
    "box_inner": "measures.box.inner",
    "box_outer": "measures.box.outer",
    "boxes": "measures.box.boxes",
    "box_bytes": "measures.box.boxes == 0 ? 0 : static_cast<uint32_t>(measures.bytes) / measures.box.boxes",
    "transaction_bytes": "measures.box.transaction_bytes",
}


def tiles(catalog: Catalog) -> dict[str, Any]:
    """The values for the template of tiles as C++ types, where the spec has matrices in shared memory."""
    spec = catalog.database.spec
    assert spec.shared_memory is not None
    assert spec.tensor_maps is not None
    memory = spec.shared_memory
    first, *_ = _formats(spec, memory)
    types = {read.majorness: read.types for read in first.reads}
    box = BoxGeometry("UINT8", (128, 8), (128, 8), database=catalog.database)  # its first coordinate counts bytes
    return {
        "spec": spec,
        "memory": memory,
        "boxes": spec.tensor_maps.limits,
        "first": first.format,
        "widest": max((mode for mode in memory.swizzles if mode.name in first.encoding), key=lambda mode: mode.bytes),
        "start": next(field for field in first.format.fields if field.name == "start_address"),
        "fixed": any(field.fixed for field in first.format.fields),
        "types": types,
        "lines": " or ".join(map(str, sorted({layout.lines for layout in memory.layouts}))),
        "reach": _reach(spec),
        "numbers": _NUMBERS,
        "multiples": box.alignments,
    }


def _reach(spec: Spec) -> int:
    """The first address that no descriptor holds, of the family whose descriptors reach furthest."""
    return max(Codec(spec, each).reach("start_address") for each in matrix_formats(spec))


def _mapped(spec: Spec) -> list[ElementType]:
    """The element types with a type of tensor maps, those last that the most of them share."""
    shared = Counter(element.tma for element in spec.types.elements)
    common, _ = shared.most_common(1)[0]
    others = [element for element in spec.types.elements if element.tma and element.tma != common]
    return [*others, next(element for element in spec.types.elements if element.tma == common)]


def _pieces(spec: Spec, memory: SharedMemory, types: dict[str, list[str]]) -> list[int]:
    """Bytes that are copied at once, the largest first: what K-major lines keep together, padded or not, and single elements of others."""
    bits = {entry.name: entry.bits for entry in spec.types.elements}
    padded = {entry.group * bits[name] // 8 for entry in memory.padded for name in entry.elements}
    single = {bits[name] // 8 for majorness, names in types.items() if majorness != "K" for name in names}
    return sorted({memory.alignment, *single, *padded}, reverse=True)


def _types(spec: Spec, memory: SharedMemory, majorness: str) -> list[str]:
    """The element types that some instructions read with a majorness."""
    return _wide(spec, majorness, [name for entry in memory.majorness if entry.majorness == majorness for name in entry.elements])


def _wide(spec: Spec, majorness: str, names: Collection[str]) -> list[str]:
    """The element types among ``names`` that an image in C can have: narrower than a byte only as rows hold them, packed along k."""
    return [each.name for each in spec.types.elements if each.name in names and (each.bits >= 8 or majorness == "K")]
