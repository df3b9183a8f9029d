"""Shared memory as JavaScript reads it: what instructions read through matrix descriptors."""

from __future__ import annotations

from typing import Any

import msgspec

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.shared_formats import matrix_format, read_by, swizzle_encoding
from ptxmma.matrices.canonical import canonical
from ptxmma.matrices.shared_types import memory_of, readable
from ptxmma.matrices.suspicions import stride_users, used_strides
from ptxmma.model import SharedMemory


def record(catalog: Catalog, memory: SharedMemory) -> dict[str, Any]:
    """The layouts and swizzles that ``wgmma`` reads, with the fields of its descriptor."""
    spec = catalog.database.spec
    kept = {"alignment", "banks", "tensor_map", "layouts"}
    own, encoded = read_by(spec, memory, "wgmma"), swizzle_encoding(spec, "wgmma")
    types = {layout.majorness: list(readable(layout.majorness, catalog.database)) for layout in own.layouts}
    return {key: value for key, value in msgspec.to_builtins(own).items() if key in kept} | {
        "swizzles": [msgspec.to_builtins(mode) | {"encoding": encoded[mode.name]} for mode in own.swizzles],
        "descriptor": msgspec.to_builtins(matrix_format(spec, "wgmma").fields),
        "readable": types,
        "strides": _strides(catalog),
    }


def _strides(catalog: Catalog) -> dict[str, dict[str, Any]]:
    """By majorness and swizzle: the strides that all operands use, and which operands use each at all."""
    memory = read_by(catalog.database.spec, memory_of(catalog.database), "wgmma")
    return {
        majorness: {
            name: {"all": sorted(used_strides(layout, catalog.database)), "users": stride_users(layout, catalog.database)}
            for each in memory.layouts
            if each.majorness == majorness
            for name in each.swizzles
            for layout in [canonical(memory, majorness, name)]
        }
        for majorness in dict.fromkeys(each.majorness for each in memory.layouts)
    }
