"""Tiles that products of ``tcgen05.mma`` read from shared memory, in C and C++: which there are, and how they are described."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.descriptor_codec import Codec
from ptxmma.catalog.shared_formats import matrix_format, read_by, swizzle_encoding
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_conditions import Fact, among, any_of
from ptxmma.generator.emit.cuda.functions import Guards
from ptxmma.generator.emit.tcgen05_facts import FAMILY, type_macro
from ptxmma.model import Spec


def values(spec: Spec, facts: dict[str, Fact]) -> dict[str, Any]:
    """The values for tiles in the templates of products."""
    assert spec.shared_memory is not None
    (group,) = {entry.group for entry in spec.shared_memory.padded}
    return {
        "readable": _readable(spec, facts),
        "padded": _padded(spec, facts),
        "swizzles": _swizzles(spec),
        "alignment": spec.shared_memory.alignment,
        "group": group,
        "padded_maps": _padded_maps(spec),
        "atoms": _atoms(spec),
        "reach": Codec(spec, matrix_format(spec, FAMILY)).reach("start_address"),
        **_split(spec),
    }


def _swizzles(spec: Spec) -> dict[str, int]:
    """The swizzle modes that tiles in C have, with what the descriptors of this family hold for each."""
    return {name: stored for name, stored in swizzle_encoding(spec, FAMILY).items() if name in swizzle_encoding(spec, "wgmma")}


def _atoms(spec: Spec) -> dict[str, Any]:
    """The swizzle mode that tiles in C do not have, and the types that are read with it, MN-major."""
    assert spec.shared_memory is not None
    own = read_by(spec, spec.shared_memory, FAMILY)
    (mode,) = [mode for mode in own.swizzles if mode.name not in _swizzles(spec)]
    (types,) = [entry.elements for entry in own.majorness if mode.name in entry.swizzles and entry.majorness == "MN"]
    return {
        "name": c_text.identifier(mode.name).lower(),
        "title": mode.title,
        "tma": mode.tma,
        "bytes": mode.bytes,
        "pattern": mode.pattern,
        "lines": mode.atom_mn[1],
        "largest": spec.shared_memory.tensor_map.largest_box,
        "types": types,
        "reads": {side: among(f"{side}_atom_tile::type", type_macro, types) for side in "ab"},
    }


def _readable(spec: Spec, facts: dict[str, Fact]) -> list[tuple[str, str, str]]:
    """For each majorness, whether an element type can be read with it and any swizzle that tiles in C have, and whether one padded can."""
    assert spec.shared_memory is not None
    own = read_by(spec, spec.shared_memory, FAMILY)
    plain = {each.majorness: each.elements for each in own.majorness if set(each.swizzles) <= _swizzles(spec).keys()}
    padded = {each.majorness: each.elements for each in own.padded}
    tests = [(name, *(among("type", type_macro, types.get(name, ())) or "0" for types in (plain, padded))) for name in plain]
    return [(facts["a_majorness"][1](name), one, other) for name, one, other in tests]


def _padded(spec: Spec, facts: dict[str, Fact]) -> str:
    """Whether a product reads an element type from wider containers."""
    rows = (f"({among('type', type_macro, entry.elements)}) && ({any_of(entry.when, facts)})" for entry in spec.types.containers)
    return " ||\n         ".join(f"({row})" for row in rows) or "0"


def _split(spec: Spec) -> dict[str, str]:
    """The targets whose descriptors may have the address of a second part: in words, and a test for their passes."""
    (targets,) = [
        case.targets
        for field in matrix_format(spec, FAMILY).fields
        if field.name == "leading_mode"
        for case in field.cases
        if "address" in case.values
    ]
    return {"split_targets": " or ".join(targets), "split_passes": Guards(spec).passes(targets)}


def _padded_maps(spec: Spec) -> dict[str, str]:
    """The types of tensor maps that write elements padded, named after their width, each with a test for the types it is for."""
    assert spec.shared_memory is not None
    padded = {name for entry in spec.shared_memory.padded for name in entry.elements}
    widths: dict[int, list[str]] = {}
    for element in spec.types.elements:
        if element.name in padded:
            widths.setdefault(element.bits, []).append(element.name)
    return {f"CU_TENSOR_MAP_DATA_TYPE_16U{bits}_ALIGN16B": among("(type)", type_macro, names) for bits, names in sorted(widths.items())}
