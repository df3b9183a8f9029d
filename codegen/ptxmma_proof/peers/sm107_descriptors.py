"""Instruction descriptors of sm_107 as the unions of CuTe 4.8 lay out their bits, read from the text of the header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ptxmma.catalog.descriptors.bits import ones, width_of
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import descriptor_words
from ptxmma_proof.peers.descriptor_words import Words

NAME = "CuTe 4.8"
_FILE = Path("include/cute/arch/mma_sm107_desc.hpp")
_COMMENT = re.compile(r"//[^\n]*")
#: A union with its structure of bit fields, and a field, which may have no name.
_UNION, _FIELD = re.compile(r"union\s+(\w+)\s*\{.*?struct\s*\{(.*?)\};", re.DOTALL), re.compile(r"(\w+)?\s*:\s*(\d+)\s*[,;]")
#: Its members for each of our fields, the lowest first.
_MEMBERS = {
    "sparse": ("sparse_flag_",), "atype": ("a_format_",), "btype": ("b_format_",), "negate_a": ("a_negate_",), "negate_b": ("b_negate_",),
    "a_majorness": ("a_major_",), "b_majorness": ("b_major_",), "n": ("n_dim_",), "m": ("m_dim_",), "scale_type": ("scale_format_",),
    "scale_a_id": ("a_sf_id_",), "scale_b_id": ("b_sf_id_",), "k": ("k_size_",),
}  # fmt: skip
_UNIONS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "tcgen05_instruction_mxf8f6f4": ("Sm107MXF8F6F4InstrDescriptor", {**_MEMBERS}),
    "tcgen05_instruction_mxf4": (
        "Sm107MXF4NVF4InstrDescriptor",
        {**_MEMBERS, "k": ("k_size_lower_", "k_size_upper_"), "sparsity_version": ("sparsity_ver_",)},
    ),
}


def compare(catalog: Catalog, checkout: Path) -> Iterator[Words]:
    """Compare the bits of legal descriptors with a catalog.

    Raises:
        OSError: the header cannot be read.
    """
    text = _COMMENT.sub("", (checkout / _FILE).read_text(encoding="utf-8"))
    places = {match[1]: _places(match[2]) for match in _UNION.finditer(text)}
    spec = catalog.database.spec
    for format in spec.descriptors:
        if format.name not in _UNIONS:
            continue
        union, members = _UNIONS[format.name]
        for kind in format.kinds:
            codec = Codec(spec, format, kind)
            said = [
                (
                    _read(bits, [places[union][member] for member in members[each.field.name]]),
                    each.stored,
                    f"{each.field.name} of {bits:#x}",
                )
                for bits in descriptor_words.drawn(codec, members)
                for each in codec.explain(bits)
                if each.field.name in members
            ]
            yield Words(NAME, format.name, f"{union}, {kind}", said, tuple(members))
        for field in format.fields:
            if field.name in members:
                whole = _read(-1, [places[union][member] for member in members[field.name]]), ones(width_of(field)), "all its bits"
                yield Words(NAME, format.name, f"{union}::{members[field.name][0]}", [whole], (field.name,))


def _places(fields: str) -> dict[str, tuple[int, int]]:
    """The lowest bit and the width of each field; compilers put the first field lowest."""
    places, low = {}, 0
    for name, width in _FIELD.findall(fields):
        places[name] = (low, int(width))
        low += int(width)
    return places


def _read(bits: int, places: list[tuple[int, int]]) -> int:
    """The number in several places, the lowest part first."""
    number = shift = 0
    for low, width in places:
        number |= (bits >> low & ones(width)) << shift
        shift += width
    return number
