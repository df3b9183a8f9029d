"""Tensor maps in C++: types, swizzles, and the rules of the driver as conditions."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import tensor_map_rules
from ptxmma.matrices.shared.box import spans

#: The numbers that rules read, where C++ has other names.
_NAMES = {"padded": "type.padded", "float": "type.floating", "fill": "filled", "swizzle": "number", "shape": "length", "box": "extent"}


def values(catalog: Catalog, mode: str) -> dict[str, Any]:
    """The values for the template of tensor maps of a mode: the rules for the whole, for each dimension and for each stride."""
    maps = catalog.database.spec.tensor_maps
    assert maps is not None
    groups: dict[str, list[tuple[str, str]]] = {"": [], "dimension": [], "stride": [], "pixel": []}
    for each in tensor_map_rules.written(maps, _NAMES):
        if mode in each.modes:
            text = tensor_map_rules.shown(each.rule, maps, "<{}>")
            groups[each.rule.each].append((each.broken, f"{each.rule.argument}: {text}"))
    return {"types": maps.types, "interleaves": maps.interleaves, "spans": spans(catalog.database), "groups": groups}
