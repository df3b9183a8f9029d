"""Tiles that products read from shared memory, in C and C++: their element types, swizzles and descriptors."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.descriptors.shared_formats import matrix_format, read_by
from ptxmma.catalog.names.product_family import ProductFamily
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_text import Fact, among, any_of
from ptxmma.generator.emit.products.facts import majorness_macro, passes_of, type_macro
from ptxmma.model import DescriptorFormat, SharedMemory, Spec


def values(spec: Spec, family: ProductFamily, facts: dict[str, Fact]) -> dict[str, Any]:
    """The values for matrices in shared memory; no ``descriptor`` where products read none, no ``tiles`` where they read no type so."""
    operands = [operand for opcode in family.callable for operand in opcode.operands]
    sides = {operand.of for operand in operands if operand.kind == "shared-descriptor"}
    if spec.shared_memory is None or not sides:
        return {"descriptor": "", "tiles": None}
    format = matrix_format(spec, family.formats[0].family)
    memory = read_by(spec, spec.shared_memory, format.family)
    readable = _readable(memory)
    tiles = {
        "sides": [side for side in "ab" if side in sides],
        "readable": readable,
        "pads": _pads(spec, family, facts) if memory.padded else "",
        "base": f"ptxmma_{matrix_format(spec).name}",
        "alignment": memory.alignment,
        "group": next((entry.group for entry in memory.padded), 0),
        "atoms": (atoms := _atoms(memory)),
        "unread": _unread(memory, atoms),
        "split": _split(spec, format),
    }
    return {"descriptor": f"ptxmma_{format.name}", "tiles": tiles if readable else None}


def _atoms(memory: SharedMemory) -> dict[str, Any] | None:
    """The swizzle mode with a formula of its own, and the types that are read with it, MN-major."""
    for mode in memory.swizzles:
        types = next((entry.elements for entry in memory.majorness if mode.name in entry.swizzles and entry.majorness == "MN"), ())
        if mode.formula and types:
            return {
                "name": c_text.macro(mode.name),
                "title": mode.title,
                "tma": mode.tma,
                "types": types,
                "reads": {side: among(f"{side}_atom_tile::type", type_macro, types) for side in "ab"},
            }
    return None


def _readable(memory: SharedMemory) -> list[tuple[str, str, str]]:
    """For each majorness, tests for the element types that can be read with it and the common swizzles, and for padded ones."""
    common = {mode.name for mode in memory.swizzles if not mode.formula}
    packed = {each.majorness: each.elements for each in memory.majorness if common.issuperset(each.swizzles)}
    padded = {each.majorness: each.elements for each in memory.padded}
    tests = [(name, *(among("type", type_macro, types.get(name, ())) or "0" for types in (packed, padded))) for name in packed]
    return [(majorness_macro(name), one, other) for name, one, other in tests]


def _unread(memory: SharedMemory, atoms: dict[str, Any] | None) -> str:
    """The reason why a product reads no tile of some types: in words."""
    legal = [f"{each.majorness}-major {', '.join(each.elements)}" for each in memory.majorness]
    only = f"; {', '.join(atoms['types'])} is MN-major only with 32-byte atoms: take a_atom_tile or b_atom_tile" if atoms else ""
    return f"tiles are {'; '.join(legal)}{only}"


def _pads(spec: Spec, family: ProductFamily, facts: dict[str, Fact]) -> str:
    """The condition that a product reads an element type from wider containers."""
    containers = [(entry, family.conditions(entry.when)) for entry in spec.types.containers]
    rows = [f"({among('type', type_macro, entry.elements)}) && ({any_of(when, facts)})" for entry, when in containers if when is not None]
    return " ||\n         ".join(f"({row})" for row in rows)


def _split(spec: Spec, format: DescriptorFormat) -> dict[str, str] | None:
    """The targets whose descriptors may have the address of a second part: in words, and a test for their passes."""
    cases = [case for field in format.fields if field.name == "leading_mode" for case in field.cases if "address" in case.values]
    return {"targets": " or ".join(cases[0].targets), "passes": passes_of(spec, cases[0].targets)} if cases else None


def padded_maps(spec: Spec) -> dict[str, str]:
    """The types of tensor maps that write elements padded, named after their width, each with a test for the types it is for."""
    padded = {name for entry in spec.shared_memory.padded for name in entry.elements} if spec.shared_memory else set()
    widths: dict[int, list[str]] = {}
    for element in spec.types.elements:
        if element.name in padded:
            widths.setdefault(element.bits, []).append(element.name)
    return {f"CU_TENSOR_MAP_DATA_TYPE_16U{bits}_ALIGN16B": among("(type)", type_macro, names) for bits, names in sorted(widths.items())}
