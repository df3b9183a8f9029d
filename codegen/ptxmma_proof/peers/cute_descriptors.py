"""Descriptors as CuTe writes them: its bit fields filled with our values, its enumerators, its matrix descriptors of canonical layouts."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices.shared.descriptor import Descriptor
from ptxmma.matrices.shared.reading import operand_addresses
from ptxmma_proof.peers import descriptor_words, probe
from ptxmma_proof.peers.descriptor_words import Words
from ptxmma_proof.peers.sources import Source

#: CuTe's member for each of our fields, by the name of the format; members of several bits for fields of one bit have a place in them.
_INSTRUCTION = {
    "sparsity_selector": "sparse_id2_", "sparse": "sparse_flag_", "saturate": "saturate_", "dtype": "c_format_", "atype": "a_format_",
    "btype": "b_format_", "negate_a": "a_negate_", "negate_b": "b_negate_", "a_majorness": "a_major_", "b_majorness": "b_major_",
    "n": "n_dim_", "m": "m_dim_", "max_shift": "max_shift_", "scale_type": "scale_format_", "scale_a_id": "a_sf_id_",
    "scale_b_id": "b_sf_id_", "k": "k_size_",
}  # fmt: skip
_MATRIX = {
    "start_address": "start_address_", "leading_byte_offset": "leading_byte_offset_", "stride_byte_offset": "stride_byte_offset_",
    "version": "version_", "base_offset": "base_offset_", "leading_mode": "lbo_mode_", "swizzle": "layout_type_",
}  # fmt: skip
_MASK = {"non_zero_mask": "nzm_", "skip_span": "skip_span_", "use_span": "use_span_", "column_shift": "shift_"} | {
    f"start_count_{part}": f"start_count_[{part}]" for part in range(4)
}
_UNIONS = {
    "tcgen05_descriptor": ("UMMA::SmemDescriptor", "desc_", _MATRIX),
    "tcgen05_instruction": ("UMMA::InstrDescriptor", "desc_", {name: own for name, own in _INSTRUCTION.items() if name != "k"}),
    "tcgen05_instruction_mxf8f6f4": ("UMMA::InstrDescriptorBlockScaled", "desc_", _INSTRUCTION),
    "tcgen05_instruction_mxf4": ("UMMA::InstrDescriptorBlockScaled", "desc_", _INSTRUCTION),
    "tcgen05_zero_column_mask": ("UMMA::MaskAndShiftB", "uri", _MASK),
}
#: The unit of CuTe's m_dim_, in bits that are left out; block-scaled descriptors of the manual leave out more.
_M_SHIFT = 4
#: Targets that CuTe does not know yet.
_NEWER = "sm_107"
#: CuTe's enumerators by our field and value.
ENUMERATORS = {
    ("tcgen05_instruction", "kind::f16", "atype"): {"f16": "F16F32Format::F16", "bf16": "F16F32Format::BF16"},
    ("tcgen05_instruction", "kind::tf32", "atype"): {"tf32": "F16F32Format::TF32"},
    ("tcgen05_instruction", "kind::i8", "btype"): {"u8": "S8Format::UINT8", "s8": "S8Format::INT8"},
    ("tcgen05_instruction", "kind::f8f6f4", "atype"): {
        name: f"MXF8F6F4Format::{name.upper()}" for name in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
    },
    ("tcgen05_instruction_mxf8f6f4", "kind::mxf8f6f4", "atype"): {
        name: f"MXF8F6F4Format::{name.upper()}" for name in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
    },
    ("tcgen05_instruction", "kind::f8f6f4", "dtype"): {"f16": "CFormat::F16", "f32": "CFormat::F32"},
    ("tcgen05_instruction", "kind::i8", "dtype"): {"s32": "CFormat::S32"},
    ("tcgen05_instruction", "kind::f16", "max_shift"): {
        "0": "MaxShift::NoShift", "8": "MaxShift::MaxShift8", "16": "MaxShift::MaxShift16", "32": "MaxShift::MaxShift32",
    },
    ("tcgen05_instruction", "kind::f16", "a_majorness"): {"K": "Major::K", "MN": "Major::MN"},
    ("tcgen05_instruction_mxf4", "kind::mxf4", "atype"): {"e2m1": "MXF4Format::E2M1"},
    ("tcgen05_instruction_mxf4", "kind::mxf4nvf4", "scale_type"): {"ue4m3": "ScaleFormat::UE4M3", "ue8m0": "ScaleFormat::UE8M0"},
    ("tcgen05_descriptor", "", "swizzle"): {
        "none": "LayoutType::SWIZZLE_NONE", "128B_ATOM_32B": "LayoutType::SWIZZLE_128B_BASE32B", "128B": "LayoutType::SWIZZLE_128B",
        "64B": "LayoutType::SWIZZLE_64B", "32B": "LayoutType::SWIZZLE_32B",
    },
}  # fmt: skip
#: Types of CuTe and their sizes in bits, with the canonical layouts that they have MN-major.
_IMAGES = {
    "cute::uint8_t": (8, ("INTER", "SW32", "SW64", "SW128")),
    "cute::half_t": (16, ("INTER", "SW32", "SW64", "SW128")),
    "cute::tfloat32_t": (32, ("SW128_32B",)),
}
_K_MAJOR = ("INTER", "SW32", "SW64", "SW128")

_SOURCE = (
    probe.INCLUDES
    + r"""
#include <cute/arch/mma_sm100_desc.hpp>
#include <cute/atom/mma_traits_sm100.hpp>

template <class Type, UMMA::Major major, class Atom> void image(char const* name, int bits) {
  auto const layout = tile_to_shape(Atom{}, Shape<_128, Int<1024 / sizeof_bits_v<Type>>>{});
  constexpr int x = 128, k = 256 / sizeof_bits_v<Type>;
  auto const whole = make_tensor(make_smem_ptr(static_cast<Type*>(nullptr)), layout);
  auto const tile = local_tile(whole, Shape<Int<x>, Int<k>>{}, make_coord(0, 0));
  std::printf("\nimage %s %s %d %d %d %llu", name, major == UMMA::Major::K ? "K" : "MN", bits, x, k,
              (unsigned long long)UMMA::make_umma_desc<major>(tile).desc_);
  auto const plain = as_position_independent_swizzle_layout(layout);
  for (int row = 0; row < x; ++row)
    for (int column = 0; column < k; ++column) std::printf(" %d", int(plain(row, column)) * int(sizeof_bits_v<Type>) / 8);
  std::printf("\n");
}
"""
)


def compare(catalog: Catalog, cutlass: Source, nvcc: str = "nvcc") -> list[Words]:
    """Compare the formats of a catalog with CuTe's.

    Raises:
        MissingPeerError: the compiler is not installed.
        CompilerError: it refuses the headers.
    """
    codecs = [codec for codec in _codecs(catalog) if codec.format.name in _UNIONS]
    drawn = {(codec.format.name, codec.kind): list(descriptor_words.drawn(codec, _fields(codec), newer=_NEWER)) for codec in codecs}
    lines = [_filled(codec, drawn[codec.format.name, codec.kind]) for codec in codecs]
    enumerators = [f"UMMA::{text}" for names in ENUMERATORS.values() for text in names.values()]
    lines += [f'std::printf("number %d\\n", int({text}));' for text in enumerators]
    for name, (bits, atoms) in _IMAGES.items():
        for major, known in (("K", _K_MAJOR), ("MN", atoms)):
            lines += [f'image<{name}, UMMA::Major::{major}, UMMA::Layout_{major}_{atom}_Atom<{name}>>("{atom}", {bits});' for atom in known]
    source = _SOURCE + "int main() {\n" + "\n".join(lines) + "\n}\n"
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "descriptors"
        probe.compile_source(cutlass, source, Path(scratch), nvcc, program)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    rows: dict[str, list[list[str]]] = {}
    for line in printed.splitlines():
        what, _, rest = line.partition(" ")
        rows.setdefault(what, []).append(rest.split())
    words, numbers = iter(rows["word"]), iter(rows["number"])
    answers: list[Words] = []
    for codec in codecs:
        own = drawn[codec.format.name, codec.kind]
        said = [(int(next(words)[0]), bits, f"{codec.kind} {bits:#x}") for bits in own]
        answers.append(
            Words("CuTe", codec.format.name, f"{_UNIONS[codec.format.name][0]}, {codec.kind}".rstrip(", "), said, _fields(codec))
        )
    by_name = {(codec.format.name, codec.kind): codec for codec in codecs}
    for (format, kind, field), names in ENUMERATORS.items():
        codec = by_name[format, kind]
        ours = descriptor_words.numbers(codec.field(field))
        said = [(int(next(numbers)[0]), ours[name], f"{field} {name}") for name in names]
        answers.append(Words("CuTe", format, f"UMMA::{next(iter(names.values())).partition('::')[0]}", said, (field,)))
    return [*answers, *_images(catalog, rows["image"])]


def _codecs(catalog: Catalog) -> Iterator[Codec]:
    spec = catalog.database.spec
    for format in spec.descriptors:
        yield from (Codec(spec, format, kind) for kind in format.kinds or ("",))


def _fields(codec: Codec) -> tuple[str, ...]:
    """The fields that CuTe's union has."""
    members = _UNIONS[codec.format.name][2]
    return tuple(field.name for field in codec.format.fields if field.name in members or field.name.startswith("first_span"))


def _filled(codec: Codec, words: list[int]) -> str:
    """The statement that fills CuTe's fields with the values of descriptors, one after the other, and prints each word."""
    union, word, members = _UNIONS[codec.format.name]
    read = [codec.explain(bits) for bits in words]
    own = [place for place, each in enumerate(read[0]) if each.field.name in members]
    spans = [place for place, each in enumerate(read[0]) if each.field.name.startswith("first_span")]
    rows = []
    for each in read:
        values = [int(each[place].value) >> _M_SHIFT if each[place].field.name == "m" else each[place].stored for place in own]
        rows.append([*values, sum(each[place].stored << number for number, place in enumerate(spans))])
    filled = " ".join(f"d.{members[read[0][place].field.name]} = row[{number}];" for number, place in enumerate(own))
    if spans:
        filled += f" d.first_span_ = row[{len(own)}];"
    shown = "d.desc_" if word == "desc_" else "(d.uri[0] | (unsigned long long)d.uri[1] << 32)"
    zero = "d.desc_ = 0;" if word == "desc_" else "d.uri[0] = d.uri[1] = 0;"
    table = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in rows)
    return (
        f"{{ static unsigned const rows[][{len(own) + 1}] = {{{table}}}; "
        f'for (auto const& row : rows) {{ {union} d; {zero} {filled} std::printf("word %llu\\n", (unsigned long long){shown}); }} }}'
    )


def _images(catalog: Catalog, rows: list[list[str]]) -> Iterator[Words]:
    """CuTe's matrix descriptors: the elements lie where we find them through the same bits."""
    database = catalog.database
    for atom, majorness, width, x, k, word, *offsets in rows:
        descriptor = Descriptor.decode(int(word), family="tcgen05", database=database)
        element = next(each for each in database.spec.types.elements if each.bits == int(width) and each.name in ("u8", "f16", "tf32"))
        ours = operand_addresses(descriptor, int(x), int(k), element, majorness, database=database)
        theirs = np.array(list(map(int, offsets))).reshape(ours.shape)
        said = [(int(one), int(other), f"element {place}") for place, (one, other) in enumerate(zip(theirs.flat, ours.flat, strict=True))]
        yield Words(
            "CuTe",
            "tcgen05_descriptor",
            f"make_umma_desc, UMMA::Layout_{majorness}_{atom}_Atom, {width} bits",
            said,
            descriptor_words.IMAGE,
        )
