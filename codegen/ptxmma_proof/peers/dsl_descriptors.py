"""Descriptors as CuTe's Python DSL reads them: its own classes, executed on Python's integers in place of the compiler's.

They have the fields of sm_107, which CuTe's headers of the same checkout lack.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

from ptxmma.catalog.descriptors.bits import ones, width_of
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import descriptor_words
from ptxmma_proof.peers.descriptor_words import Words

NAME = "CuTe DSL"
#: The file below CUTLASS's checkout.
_FILE = Path("python/CuTeDSL/cutlass/experimental/primitives/descriptors.py")
#: Its property for each of our fields.
_MATRIX = {
    "start_address": "start_address", "leading_byte_offset": "leading_byte_offset", "stride_byte_offset": "stride_byte_offset",
    "base_offset": "base_offset", "swizzle": "layout_type",
}  # fmt: skip
_INSTRUCTION = {
    "sparse": "sparse_flag", "atype": "a_format", "btype": "b_format", "negate_a": "a_negate", "negate_b": "b_negate",
    "a_majorness": "a_major", "b_majorness": "b_major", "n": "n_dim", "m": "m_dim", "k": "k_dim",
}  # fmt: skip
_UNSCALED = {"sparsity_selector": "sparse_id2", "saturate": "saturate", "dtype": "c_format", "max_shift": "max_shift"}
_SCALED = {"scale_b_id": "b_sf_id", "scale_a_id": "a_sf_id", "scale_type": "scale_format", "scale_a_lanes": "a_sf_layout"}
#: Its class for each of our formats.
_CLASSES = {
    "descriptor": ("WgmmaSmemDesc", _MATRIX),
    "tcgen05_descriptor": ("Tcgen05SmemDesc", _MATRIX | {"version": "version"}),
    "tcgen05_instruction": ("Tcgen05InstrDesc", _INSTRUCTION | _UNSCALED),
    "tcgen05_instruction_mxf8f6f4": ("Tcgen05MxInstrDesc", _INSTRUCTION | _SCALED),
    "tcgen05_instruction_mxf4": ("Tcgen05MxOmmaInstrDesc", _INSTRUCTION | _SCALED | {"sparsity_version": "sparsity_version"}),
}
#: Its enumerators for the values of our fields, by the kind of the instruction.
ENUMERATORS = {
    ("tcgen05_descriptor", "", "swizzle"): (
        "Tcgen05SmemSwizzle",
        {"none": "NONE"} | {name: f"SWIZZLE_{name}" for name in ("128B_ATOM_32B", "128B", "64B", "32B")},
    ),
    ("tcgen05_instruction", "kind::f16", "dtype"): ("Tcgen05OutputFormat", {"f16": "F16", "f32": "F32"}),
    ("tcgen05_instruction", "kind::i8", "dtype"): ("Tcgen05OutputFormat", {"s32": "S32"}),
    ("tcgen05_instruction", "kind::f16", "atype"): ("Tcgen05InputFormat", {"f16": "F16", "bf16": "BF16"}),
    ("tcgen05_instruction", "kind::tf32", "atype"): ("Tcgen05InputFormat", {"tf32": "TF32"}),
    ("tcgen05_instruction", "kind::i8", "btype"): ("Tcgen05InputFormat", {"u8": "U8", "s8": "S8"}),
    ("tcgen05_instruction", "kind::f8f6f4", "btype"): (
        "Tcgen05InputFormat",
        {name: name.upper() for name in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")},
    ),
    ("tcgen05_instruction_mxf8f6f4", "kind::mxf8f6f4", "btype"): (
        "Tcgen05InputFormat",
        {name: name.upper() for name in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")},
    ),
    ("tcgen05_instruction_mxf4", "kind::mxf4nvf4", "scale_type"): ("MxScaleFormat", {"ue4m3": "UE4M3", "ue8m0": "E8M0", "ue5m3": "UE5M3"}),
}


class _Integer(int):
    """An integer of the compiler with a known value."""

    width = bytes = 0

    @property
    def value(self) -> int:
        return int(self)


def compare(catalog: Catalog, checkout: Path) -> Iterator[Words]:
    """Compare what the DSL reads in legal descriptors of every target, and its numbers of types, with a catalog.

    Raises:
        OSError: the file cannot be read.
    """
    dsl = _executed(checkout / _FILE)
    spec = catalog.database.spec
    for format in spec.descriptors:
        if format.name not in _CLASSES:
            continue
        name, properties = _CLASSES[format.name]
        for kind in format.kinds or ("",):
            codec = Codec(spec, format, kind)
            said = [
                (int(getattr(dsl[name](bits), properties[each.field.name])), each.stored, f"{each.field.name} of {bits:#x}")
                for bits in descriptor_words.drawn(codec, properties)
                for each in codec.explain(bits)
                if each.field.name in properties
            ]
            yield Words(NAME, format.name, f"{name}, {kind}".rstrip(", "), said, tuple(properties))
        for field in format.fields:
            if field.name in properties:
                whole = int(getattr(dsl[name](-1), properties[field.name])), ones(width_of(field)), "all its bits"
                yield Words(NAME, format.name, f"{name}.{properties[field.name]}", [whole], (field.name,))
        for (owner, kind, of), (enumeration, names) in ENUMERATORS.items():
            if owner == format.name:
                numbers = descriptor_words.numbers(Codec(spec, format, kind).field(of))
                said = [(int(dsl[enumeration][own]), numbers[value], f"{of} {value}") for value, own in names.items()]
                yield Words(NAME, format.name, f"{enumeration}, {kind}".rstrip(", "), said, (of,))


def _executed(path: Path) -> dict[str, Any]:
    """The functions and classes of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    chosen: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    known: dict[str, Any] = {"IntEnum": IntEnum, "Int32": _Integer, "Int64": _Integer, "dsl_user_op": lambda function: function}
    exec(compile(ast.Module(chosen, []), path.name, "exec", __future__.annotations.compiler_flag), known)  # annotations name the compiler
    return known
