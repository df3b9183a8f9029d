"""Descriptors: fields to bits and back, in Python and in C, at the command line."""

from __future__ import annotations

import ctypes
import itertools
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ptxmma
from commands import invoke
from header_programs import EXTERNAL, WARNINGS, library, run, write_headers
from ptxmma.catalog.descriptors.chosen_product import product_of
from ptxmma.catalog.instructions import catalog
from ptxmma.matrices.descriptors import Codec, codec, instruction_descriptor, zero_columns
from ptxmma.model import DescriptorField, DescriptorFormat

_SPEC = catalog().database.spec
#: Those that judge each field by itself, as C does.
_CODECS = [Codec(_SPEC, format, kind) for format in _SPEC.descriptors for kind in format.kinds or ("",)]


def _id(codec: Codec) -> str:
    return f"{codec.format.name}-{codec.kind}"


def _legal(codec: Codec, chance: random.Random, count: int) -> Iterator[int]:
    """Descriptors that are legal on some target, by chance: each has some fields of the one before."""
    fields = codec.format.fields
    bits = sum((min(codec.legal(field)) if field.fixed is None else field.fixed) << field.low for field in fields)
    assert not codec.mistakes(bits)
    for _ in range(count):
        for field in chance.choices(fields, k=8):
            mask = ((1 << field.width) - 1) << field.low | (1 << field.upper if field.upper is not None else 0)
            changed = bits & ~mask | chance.getrandbits(codec.format.bits) & mask
            bits = bits if codec.mistakes(changed) else changed
        yield bits


@pytest.mark.parametrize("codec", _CODECS, ids=_id)
def test_what_is_decoded_encodes_to_the_same_bits(codec: Codec) -> None:
    seen = set(_legal(codec, random.Random(1), 300))
    assert len(seen) > (100 if len(codec.format.fields) > 2 else 23)  # four operations of six types
    for bits in seen:
        assert codec.encode(**codec.decode(bits)) == bits


@pytest.mark.parametrize(
    ("kind", "fields", "bits"),
    [
        ("f16", {"dtype": "f32", "atype": "bf16", "btype": "bf16", "m": 128, "n": 256}, 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24),
        ("kind::tf32", {"m": 64, "n": 8, "a_majorness": "MN"}, 1 << 4 | 2 << 7 | 2 << 10 | 1 << 15 | 1 << 17 | 4 << 24),
        ("i8", {"atype": "s8", "btype": "u8", "m": 128, "n": 16, "saturate": True}, 1 << 3 | 2 << 4 | 1 << 7 | 2 << 17 | 8 << 24),
        ("f16", {"dtype": "f16", "atype": "f16", "btype": "bf16", "m": 64, "n": 8, "sparse": 1, "sparsity_selector": 2, "max_shift": 16},
         2 | 1 << 2 | 1 << 10 | 1 << 17 | 4 << 24 | 2 << 30),
        ("f8f6f4", {"dtype": "f16", "atype": "e2m1", "btype": "e5m2", "m": 64, "n": 8, "sparse": 1},
         1 << 2 | 5 << 7 | 1 << 10 | 1 << 17 | 4 << 24),
        ("mxf8f6f4", {"atype": "e4m3", "btype": "e3m2", "m": 256, "n": 96, "scale_a_id": 3, "scale_b_id": 1},
         1 << 4 | 4 << 10 | 12 << 17 | 1 << 23 | 2 << 27 | 3 << 29),
        ("f8f6f4", {"dtype": "f32", "atype": "e2m1", "btype": "e3m2", "m": 64, "n": 16, "a_majorness": "MN", "b_majorness": "MN"},
         1 << 4 | 5 << 7 | 4 << 10 | 3 << 15 | 2 << 17 | 4 << 24),
        ("mxf4nvf4", {"scale_type": "ue4m3", "m": 128, "n": 8, "k": 96}, 1 << 7 | 1 << 10 | 1 << 17 | 1 << 27 | 1 << 31),
        ("mxf4", {"m": 128, "n": 8, "k": 128}, 1 << 3 | 1 << 7 | 1 << 10 | 1 << 17 | 1 << 23 | 1 << 27),
    ],
)  # fmt: skip
def test_instruction_descriptors_by_the_tables_of_the_manual(kind: str, fields: dict[str, Any], bits: int) -> None:
    assert instruction_descriptor(kind, **fields) == bits
    decoded = codec("instruction", kind=kind).decode(bits)
    assert {name: decoded[name] for name in fields} == {name: int(value) if value is True else value for name, value in fields.items()}


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("f16", {"dtype": "f32", "atype": "e4m3"}, "atype = e4m3 is not legal with kind::f16; allowed: f16, bf16"),
        ("f16", {"m": 100}, "m = 100 has no encoding in a descriptor with kind::f16; allowed: multiples of 16 from 0 to 496"),
        ("f16", {"saturate": 1}, "saturate = 1 has no encoding in a descriptor with kind::f16; allowed: 0"),
        ("f16", {"sparsity_selector": 1}, "sparsity_selector = 1 has no encoding in a descriptor with kind::f16; allowed: 0"),
        ("f16", {"scale_type": "ue8m0"}, "has no field 'scale_type'; it has sparsity_selector, sparse,"),
        ("f16", {"dtype": None}, "needs dtype; allowed: f16, f32"),
        ("mxf4", {"a_majorness": "MN"}, "a_majorness = MN is not legal with kind::mxf4; allowed: K"),
        ("f17", {}, "unknown kind 'f17'; known: tf32, f16,"),
        ("", {}, "the descriptor depends on the kind; known: tf32, f16,"),
    ],
)  # fmt: skip
def test_errors_say_what_is_legal(kind: str, fields: dict[str, Any], message: str) -> None:
    given = {"m": 128, "n": 64} | ({"dtype": "f32", "atype": "f16", "btype": "f16"} if kind == "f16" else {})
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        instruction_descriptor(kind, **{name: value for name, value in (given | fields).items() if value is not None})


def test_targets_have_values_of_their_own() -> None:
    """K of 96 belongs to sm_103a and sm_107a; sm_107 has a second bit of K and another version of sparsity."""
    given = {"m": 128, "n": 64}
    assert codec("instruction", kind="mxf4", target="sm_103a").encode(**given, k=96) >> 31 == 1
    assert codec("instruction", kind="mxf4", target="Rubin").encode(**given, k=96) >> 31 == 1
    owners = "96 on sm_103a and sm_107a"  # not all of the family of sm_107
    for target, allowed in {"sm_100a": f"64; {owners}, 128 on sm_107f", "sm_107f": f"64, 128; {owners}"}.items():
        with pytest.raises(ValueError, match=f"k = 96 is not legal with kind::mxf4 on {target}; allowed: {allowed}$"):
            codec("instruction", kind="mxf4", target=target).encode(**given, k=96)
    sparse = {target: codec("instruction", kind="mxf4", target=target).encode(**given, sparse=1) for target in ("sm_100a", "sm_107a")}
    assert sparse["sm_107a"] - sparse["sm_100a"] == 1 << 12
    assert codec("instruction", kind="mxf4", target="sm_100a").mistakes(sparse["sm_107a"])
    assert not codec("instruction", kind="mxf4").mistakes(sparse["sm_107a"])


@pytest.mark.parametrize(
    ("describes", "arguments", "message"),
    [
        ("instruction", {"kind": "f16", "target": "sm_90a"}, "sm_90a has no instruction of tcgen05 with kind::f16; .*: sm_100f, sm_100a, "),
        ("instruction", {"kind": "i8", "target": "sm_103a"}, "with kind::i8; targets that have one: sm_100a, sm_101a, sm_110a$"),
        ("matrix", {"family": "wgmma", "target": "B200"}, "sm_100a has no instruction of wgmma; targets that have one: sm_90a$"),
        ("columns", {"target": "sm_90a"}, "sm_90a has no instruction of tcgen05"),
    ],
)
def test_targets_without_a_reader_have_no_descriptor(describes: str, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        codec(describes, **arguments)


def test_mistakes_name_the_field_and_the_bits() -> None:
    wrong = codec("instruction", kind="f16").mistakes(0x8400490 | 1 << 3 | 1 << 6 | 4 << 7 | 1 << 23)
    assert [(each.field, each.text) for each in wrong] == [
        ("saturate", "saturate holds 1; allowed: 0"),
        ("atype", "atype holds 5; allowed: 0 (f16), 1 (bf16)"),
        ("", "bit 6 must be 0"),
        ("", "bit 23 must be 0"),
    ]
    with pytest.raises(ValueError, match="not a 32-bit number"):
        codec("instruction", kind="f16").decode(1 << 32)


_BF16 = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (
            "f16",
            {"m": 128, "n": 264, **_BF16},
            "kind::f16 with k = 16 does not allow m = 128 with n = 264; legal: m = 64 or 128 with n = 8, 16, … 256; m =",
        ),
        ("f16", {"m": 192, "n": 64, **_BF16}, "does not allow m = 192 with n = 64"),
        ("f16", {"m": 0, "n": 0, **_BF16}, "does not allow m = 0 with n = 0"),
        (
            "f16",
            {"m": 128, "n": 64, **_BF16, "dtype": "f16"},
            "takes no dtype = f16, atype = bf16, btype = bf16; legal: dtype f32, atype f16 or bf16",
        ),
        ("f16", {"m": 32, "n": 64, **_BF16}, ""),  # of tcgen05.mma.ws
        ("f16", {"m": 32, "n": 256, **_BF16, "sparse": 1}, "does not allow m = 32 with n = 256"),  # tcgen05.mma.ws alone has it
        ("i8", {"m": 128, "n": 24, "atype": "s8", "btype": "u8"}, ""),
        ("i8", {"m": 128, "n": 24, "atype": "s8", "btype": "u8", "b_majorness": "MN"}, "with b_majorness = MN does not allow n = 24"),
        ("mxf8f6f4", {"m": 128, "n": 264, "atype": "e4m3", "btype": "e4m3"}, "does not allow m = 128 with n = 264"),
    ],
)
def test_fields_need_an_instruction_that_has_their_product(kind: str, fields: dict[str, Any], said: str) -> None:
    judged = codec("instruction", kind=kind, target="sm_100a")
    bits = judged.encode(**fields)
    assert judged.wrong_fields(bits) == []
    wrong = judged.mistakes(bits)
    assert [each.field for each in wrong] == [""] * bool(said)
    assert said in "".join(each.text for each in wrong)
    n = next(field for field in judged.parameters if field.name == "n")
    assert judged.mistakes(bits, 1 << n.low) == [], "N is not known"


def test_the_product_needs_the_target() -> None:
    """Scale factors of ue4m3 for blocks of 32 are those of sm_107f, and blocks of 16 have them everywhere."""
    opcode = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32")
    fields: dict[str, Any] = {"m": 128, "n": 64, "scale_type": "ue4m3"}
    with pytest.raises(ptxmma.IllegalProductError, match=r"stype = ue4m3 is not supported by sm_100a; legal: on sm_107f, sm_107a"):
        product_of(opcode, fields, "sm_100a")
    assert product_of(opcode, fields, "sm_107a").shape == (128, 64, 64)
    judged = codec("instruction", kind="mxf4nvf4", target="sm_100a")
    assert judged.mistakes(judged.encode(**fields)) == []


def test_masks_are_those_that_the_manual_prints() -> None:
    """The four examples, written out: bits of the descriptor and the columns that are zeros."""
    masks = codec("columns")
    plain = masks.encode(non_zero_mask=1, skip_span=3, use_span=4)
    assert plain == 1 << 39 | 2 << 40 | 3 << 48
    assert not any(zero_columns(masks.encode(skip_span=5, use_span=4), m=128, n=64))
    assert _text(zero_columns(plain, m=128, n=16)) == "0000111000011100"
    assert _text(zero_columns(plain | 1 << 32, m=64, n=32)) == "1110000111000011" + "0000111000011100"
    fourth = masks.encode(
        start_count_1=1, start_count_2=2, start_count_3=1, first_span_0=1, first_span_1=1, non_zero_mask=1, skip_span=3, use_span=4,
        column_shift=2,
    )  # fmt: skip
    assert fourth == 1 << 8 | 2 << 16 | 1 << 24 | 3 << 32 | 1 << 39 | 2 << 40 | 3 << 48 | 2 << 56
    assert _text(zero_columns(fourth, m=32, n=32)) == "11100001" + "11000011" + "00111000" + "00011100"
    with pytest.raises(ValueError, match="M of 128 or 64 or 32"):
        zero_columns(plain, m=256, n=64)
    with pytest.raises(ValueError, match="multiple of 4"):
        zero_columns(plain, m=32, n=6)


def _text(columns: tuple[bool, ...]) -> str:
    return "".join(str(int(zero)) for zero in columns)


# --- C ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def include(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_headers(catalog(), tmp_path_factory.mktemp("headers"), "c_headers")


@pytest.fixture(scope="module")
def headers(cc: str, include: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = '#include "ptxmma/descriptors.h"\n'
    return library(cc, source, tmp_path_factory.mktemp("library"), "-O1", "-std=c99", *WARNINGS, *EXTERNAL, f"-I{include}")


def _structure(format: DescriptorFormat) -> Any:
    fields: list[tuple[str, Any]] = [(field.name, ctypes.c_uint32) for field in format.fields if field.fixed is None]
    return type(format.name, (ctypes.Structure,), {"_fields_": fields})


def _unit(field: DescriptorField, stored: int) -> int:
    """What a member of the struct is where the field holds a number."""
    return (stored << field.shift) + field.less


def _some_product_has(codec: Codec, bits: int) -> bool:
    """Whether the rules have the M and N of an instruction descriptor, with any opcode of its kind."""
    assert _SPEC.tensor_products
    kind, fields = codec.kind, codec.decode(bits)
    if not any(kind in condition["kind"] for row in _SPEC.tensor_products.types for condition in row.of):
        return True
    forms = [(entry.name, form) for entry in _SPEC.instructions for form in entry.forms]
    names = {name for name, form in forms if kind in form.qualifiers.get("kind", ())}
    rows = [
        row
        for row in _SPEC.tensor_products.shapes
        if any(names & set(condition["name"]) and kind in condition.get("kind", kind) for condition in row.of)
    ]
    return any(
        fields["m"] in row.m
        and any(span.first <= int(fields["n"]) <= span.last and (int(fields["n"]) - span.first) % span.step == 0 for span in row.n)
        for row in rows
    )


def test_c_refuses_sizes_that_no_product_has(headers: ctypes.CDLL) -> None:
    """M = 80 and N = 320 fit the fields; M = 32 is a size of kind::f16, with N = 64 and not with N = 8."""
    wide = codec("instruction", kind="kind::f16")
    kinds = [kind for other in _SPEC.descriptors if other.family == wide.format.family for kind in other.kinds]
    for m, n, legal in (
        (128, 256, 1),
        (256, 16, 1),
        (64, 8, 1),
        (32, 64, 1),
        (80, 64, 0),
        (128, 320, 0),
        (32, 8, 0),
        (256, 8, 0),
        (0, 64, 0),
    ):
        bits = wide.encode(dtype="f32", atype="f16", btype="f16", m=m, n=n)
        assert headers.ptxmma_tcgen05_instruction_is_legal(ctypes.c_int(kinds.index("kind::f16")), ctypes.c_uint32(bits)) == legal, (m, n)


@pytest.mark.parametrize("codec", _CODECS, ids=_id)
def test_c_encodes_decodes_and_judges_as_python_does(codec: Codec, headers: ctypes.CDLL) -> None:
    """Legal descriptors, and the same with one bit changed."""
    format, chance = codec.format, random.Random(2)
    word: Any = {32: ctypes.c_uint32, 64: ctypes.c_uint64}[format.bits]
    structure = _structure(format)
    encode, decode = (getattr(headers, f"ptxmma_{format.name}_{verb}") for verb in ("encode", "decode"))
    encode.restype, encode.argtypes = word, [structure]
    decode.restype, decode.argtypes = structure, [word]
    judge = getattr(headers, f"ptxmma_{format.name}_is_legal", None)
    assert (judge is None) is (format.name == "descriptor"), "all bits are legal for wgmma"
    if judge is not None:
        judge.restype, judge.argtypes = ctypes.c_int, [*([ctypes.c_int] if format.kinds else ()), word]
    every = [kind for other in _SPEC.descriptors if other.family == format.family for kind in other.kinds]
    kind = [every.index(codec.kind)] if codec.kind else []
    for bits in _legal(codec, chance, 300):
        stored = {each.field.name: _unit(each.field, each.stored) for each in codec.explain(bits) if each.field.fixed is None}
        fields = decode(bits)
        assert {name: getattr(fields, name) for name in stored} == stored
        assert encode(fields) == bits
        changed = bits ^ 1 << chance.randrange(format.bits)
        if judge is not None:
            assert judge(*kind, bits) == _some_product_has(codec, bits), hex(bits)
            assert judge(*kind, changed) == (not codec.mistakes(changed) and _some_product_has(codec, changed)), hex(changed)


@pytest.mark.parametrize(("m", "n"), [(128, 64), (64, 128), (32, 256)])
def test_c_finds_the_columns_of_zeros_as_python_does(m: int, n: int, headers: ctypes.CDLL) -> None:
    zeroes = headers.ptxmma_tcgen05_zero_column_mask_zeroes
    zeroes.restype, zeroes.argtypes = ctypes.c_int, [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32]
    seen = set()
    for bits in _legal(codec("columns"), random.Random(m), 100):
        expected = zero_columns(bits, m=m, n=n)
        assert tuple(zeroes(bits, m, n, column) == 1 for column in range(n)) == expected, hex(bits)
        seen.add(expected)
    assert len(seen) > 20


def test_descriptors_are_constants_in_cpp(cxx: str, include: Path, tmp_path: Path) -> None:
    source = tmp_path / "constant.cpp"
    source.write_text(
        """#include "ptxmma/descriptors.h"
constexpr uint32_t bits() {
  ptxmma_tcgen05_instruction fields{};
  fields.dtype = PTXMMA_TCGEN05_INSTRUCTION_DTYPE_F32;
  fields.atype = fields.btype = PTXMMA_TCGEN05_INSTRUCTION_ATYPE_BF16;
  fields.m = 128;
  fields.n = 256;
  return ptxmma_tcgen05_instruction_encode(fields);
}
static_assert(bits() == 0x8400490, "");
static_assert(ptxmma_tcgen05_instruction_is_legal(PTXMMA_TCGEN05_KIND_F16, bits()), "");
static_assert(!ptxmma_tcgen05_instruction_is_legal(PTXMMA_TCGEN05_KIND_TF32, bits()), "");
static_assert(ptxmma_tcgen05_zero_column_mask_zeroes(0x3028000000000, 128, 16, 4), "");
static_assert(!ptxmma_tcgen05_zero_column_mask_zeroes(0x3028000000000, 128, 16, 7), "");
""",
        encoding="utf-8",
    )
    run(cxx, "-std=c++14", *WARNINGS, f"-I{include}", "-c", source, "-o", tmp_path / "constant.o")


# --- the command ------------------------------------------------------------------------------------------------------------


def _run(*arguments: str) -> tuple[int, str]:
    result = invoke("descriptor", *arguments)
    return result.exit_code, result.output


def test_the_command_makes_and_reads_instruction_descriptors() -> None:
    assert _run("instruction", "f16", "m=128", "n=256", "dtype=f32", "atype=bf16", "btype=bf16") == (0, "0x08400490\n")
    code, text = _run("instruction", "f16", "m=128", "n=264", "dtype=f32", "atype=bf16", "btype=bf16", "--target", "sm_100a")
    assert code == 1
    assert re.fullmatch(r"0x08420490\nwrong: kind::f16 with k = 16 does not allow m = 128 with n = 264; legal: .*\n", text)
    assert _run("instruction", "f16", "0x8420490", "--target", "sm_100a")[0] == 1
    code, text = _run("instruction", "f16", "0x8400490")
    assert code == 0
    assert re.search(r"^atype +9:7 +1 +bf16 +element type of A$", text, re.M), text
    code, text = _run("instruction", "mxf4", "0x8400490", "--json")
    answer = json.loads(text)
    assert code == 1
    assert [each["field"] for each in answer["mistakes"]] == ["scale_b_id", "scale_type"]
    assert next(each for each in answer["fields"] if each["field"] == "k") == {
        "field": "k", "bits": "3,31", "holds": 0, "value": 64, "unit": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("f17", "0"), "unknown kind 'f17'"),
        (("f16", "m=128"), "needs dtype"),
        (("f16", "m=128", "n=8", "m=64"), "m is given twice: 128 and 64"),
        (
            ("f16", "dtype=f32", "atype=f16", "btype=f16", "n=8", "m=abc"),
            "m must be an integer, not 'abc'; allowed: multiples of 16 from 0 to 496",
        ),
        (("f16", "m=128", "128"), "'128' is not a field; write field=value, or the bits alone"),
        (("f16", "0", "1"), "'1' follows the bits"),
        (("f16", "x"), "'x' is not an integer"),
        (("f16", "0x100000000"), "not a 32-bit number"),
        (("mxf4", "m=128", "n=8", "k=96", "--target", "sm_100a"), "k = 96 is not legal with kind::mxf4 on sm_100a"),
    ],
)
def test_the_command_refuses_what_is_not_a_descriptor(arguments: tuple[str, ...], message: str) -> None:
    code, text = _run("instruction", *arguments)
    assert code == 2
    assert message in text


def test_the_command_finds_nothing_wrong_with_a_depth_of_one_cta() -> None:
    """No option says how many CTAs there are: what one of them allows is right."""
    fields = ("m=128", "n=128", "k=128", "atype=e2m1", "btype=e2m1", "scale_type=ue4m3")
    bits = 1 << 27 | 1 << 10 | 1 << 7 | 128 >> 3 << 17 | 2 << 2
    assert _run("instruction", "mxf4nvf4", *fields) == (0, f"{bits:#010x}\n")
    code, text = _run("instruction", "mxf4nvf4", f"{bits:#x}")
    assert (code, "wrong" in text) == (0, False)


def test_the_command_shows_masks() -> None:
    code, text = _run("zero-column-mask", "non_zero_mask=1", "skip_span=3", "use_span=4", "first_span_0=1")
    assert (code, text) == (0, "0x0003028100000000\n")
    assert _run("zero-column-mask", text.strip(), "--m", "64", "--n", "32") == (0, "11100001110000110000111000011100\n")
    assert _run("zero-column-mask", "0", "--m", "64")[0] == 2


def test_the_library_offers_descriptors() -> None:
    assert ptxmma.descriptors.instruction_descriptor is instruction_descriptor


def test_scale_ids_of_k_96_are_those_of_three_factors() -> None:
    """Three factors of .block32 (K = 96, or 192 sparse) begin at any byte of a cell (PTX ISA 9.1, 9.7.16.10.7.2.4), others at 0 or 2."""
    given: dict[str, Any] = {"m": 128, "n": 64, "scale_type": "ue8m0"}
    format = codec("instruction", kind="mxf4")
    for name, k in itertools.product(("scale_a_id", "scale_b_id"), (64, 96, 128)):
        for number in range(4):
            if k == 96 or number in (0, 2):
                assert format.decode(format.encode(**given, k=k, **{name: number}))[name] == number
                assert not format.wrong_fields(format.encode(**given, k=k, **{name: number}))
            else:
                with pytest.raises(ValueError, match=f"{name} = {number} is not legal with kind::mxf4; allowed: 0, 2"):
                    format.encode(**given, k=k, **{name: number})
    low = format.field("scale_a_id").low
    assert not format.wrong_fields(format.encode(**given, k=192, sparse=True) | 1 << low)  # three factors of the elements that are kept
    wrong = format.wrong_fields(format.encode(**given, k=128, sparse=True) | 1 << low)  # K is another field of a sparse product
    assert [each.text for each in wrong] == ["scale_a_id holds 1; allowed: 0, 2"]
