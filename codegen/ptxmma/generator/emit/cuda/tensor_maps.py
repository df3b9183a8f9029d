"""Tensor maps in C++: types, swizzles, and the rules of the driver as conditions."""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Any

import msgspec

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.names.cplusplus import identifier
from ptxmma.generator.emit import tensor_map_rules
from ptxmma.matrices.shared.box import CORNER_BITS, spans
from ptxmma.matrices.shared.box_rules import ONE

#: The numbers that rules read, where C++ has other names.
_NAMES = {
    "padded": "type.padded", "float": "type.floating", "fill": "filled", "swizzle": "number", "shape": "length", "box": "extent",
    "pixels": "column", "lower": "low", "upper": "high",
}  # fmt: skip
#: The digits of an integer of 64 bits, with its sign.
_DIGITS = 20


def values(catalog: Catalog) -> dict[str, Any]:
    """The values for the template: for boxes and for pixels, the rules for the shape, the whole, and each dimension, stride and pixel."""
    maps = catalog.database.spec.tensor_maps
    assert maps is not None
    kinds = {"box": [mode for mode in maps.modes if not mode.corners], "pixels": [mode for mode in maps.modes if mode.corners]}
    modes = {mode.name: identifier(mode.name.replace("::", "_")) for mode in maps.modes}
    rules: dict[str, dict[str, list[tuple[str, str]]]] = {kind: {} for kind in kinds}
    longest = 0
    for each in tensor_map_rules.written(maps, _NAMES):
        about, argument = each.rule.each, each.rule.argument
        place = f"[{{i}}] = {{{ONE.get(argument, argument)}}}" if about else ""
        text = f"{argument}{place}: {tensor_map_rules.shown(each.rule, maps, '{{{}}}')}"
        longest = max(longest, len(text) + _DIGITS * text.count("{"))
        for kind, members in kinds.items():
            having = [f"mode == tensor_map_mode::{modes[mode.name]}" for mode in members if mode.name in each.modes]
            only = f"({' || '.join(having)}) && " if len(having) < len(members) else ""
            if having:
                order = about or ("shape" if argument == "shape" else "")
                rules[kind].setdefault(order, []).append((only + each.broken, ", ".join(_parts(text))))
    pixel_modes = [{"cpp": modes[mode.name], **msgspec.structs.asdict(mode)} for mode in kinds["pixels"]]
    return {
        "types": maps.types,
        "interleaves": maps.interleaves,
        "spans": spans(catalog.database),
        "rules": rules,
        "longest": longest,
        "modes": modes.values(),
        "pixel_modes": pixel_modes,
        "wide": [mode for mode in pixel_modes if mode["wide"]],
        "corner_bits": CORNER_BITS,
    }


def _parts(text: str) -> Iterator[str]:
    """The words and the numbers of a text as arguments in C++."""
    for words, name, _, _ in string.Formatter().parse(text):
        if words:
            yield f'"{words}"'
        if name:
            yield _NAMES.get(name, name)
