"""``ptxmma descriptor``: encoding, decoding, and suspicions."""

from __future__ import annotations

import functools
import itertools
import json
import re

import pytest

import commands
from commands import invoke
from ptxmma.catalog.descriptors.shared_formats import read_by
from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices.descriptors import Descriptor, suspicions
from ptxmma.matrices.shared.canonical import Geometry
from ptxmma.matrices.shared.readable_types import readable
from ptxmma.matrices.shared_memory import SharedLayout

_GOOD = 0x4000004000010040


ask = functools.partial(commands.ask, "descriptor")


def rules(descriptor: int, majorness: str | None = None) -> list[tuple[str, str]]:
    return [(each.field, each.rule) for each in suspicions(descriptor, majorness)]


def made(address: int = 0, lbo: int = 16, sbo: int = 1024, base: int = 0, swizzle: str = "128B") -> int:
    return Descriptor(start_address=address, leading_byte_offset=lbo, stride_byte_offset=sbo, base_offset=base, swizzle=swizzle).encode()


# --- suspicions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["wgmma", "tcgen05"])
def test_no_descriptor_of_a_dense_image_is_suspicious(catalog: Catalog, family: str) -> None:
    """Descriptors of the library raise no suspicion: every type, majorness and swizzle, every step along k, several sizes."""
    spec = catalog.database.spec
    assert spec.shared_memory is not None
    memory = read_by(spec, spec.shared_memory, family)
    asked = 0
    for majorness, mode in itertools.product(("K", "MN"), memory.swizzles):
        for element in readable(majorness, None, family=family, swizzle=mode.name).values():
            panel = mode.bytes * 8 // element.bits
            step = 256 // element.bits
            for lines, panels in itertools.product((64, 128), (1, 2, 4)):
                sizes = (lines, panels * max(panel, step)) if majorness == "K" else (panels * max(panel, 64), lines)
                if sizes[0] * sizes[1] * element.bits // 8 > 1 << 16:
                    continue
                layout = SharedLayout(element, majorness, mode.name, *sizes, start=4096, family=family)
                for descriptor in layout.steps(step):
                    asked += 1
                    assert not suspicions(descriptor.encode(), majorness, family=family), (layout, descriptor)
                    assert not suspicions(descriptor.encode(), family=family), (layout, descriptor)
    assert asked > 200


@pytest.mark.parametrize(
    ("descriptor", "expected"),
    [
        (made() | 1 << 14, [("", "unused")]),
        (made() | 1 << 46 | 1 << 60, [("", "unused"), ("", "unused")]),
        (made(base=1, sbo=128, lbo=256, swizzle="none"), [("base_offset", "base")]),
        (made(address=1152), [("start_address", "pattern")]),
        (made(address=1152, base=1), []),
        (made(address=1152, base=2), [("base_offset", "pattern")]),
        (made(address=1024 + 32), []),
        (made(address=512 + 32, sbo=512, swizzle="64B"), []),
        (made(address=512 + 128, sbo=512, swizzle="64B"), [("start_address", "pattern")]),
        (made(address=512 + 128, sbo=512, base=1, swizzle="64B"), []),
        (made(address=512 + 128, sbo=512, base=5, swizzle="64B"), []),
        (made(address=512 + 128, sbo=512, base=2, swizzle="64B"), [("base_offset", "pattern")]),
        (made(sbo=0), [("stride_byte_offset", "zero")]),
        (made(sbo=512), [("stride_byte_offset", "overlap")]),
        (made(sbo=1040), [("stride_byte_offset", "phase")]),
        (made(sbo=16384), [("stride_byte_offset", "bytes")]),
        (made(sbo=2048), []),
        (made(address=131072, sbo=65536), []),
        (made(address=131072, sbo=131072), [("stride_byte_offset", "reach"), ("stride_byte_offset", "bytes")]),
        (made(lbo=131072, sbo=1024), []),  # no K-major operand uses it
        (made(lbo=2048, sbo=32768, swizzle="none"), [("leading_byte_offset", "bytes")]),
        (made(lbo=2048, sbo=128, swizzle="none"), []),
        (made(lbo=0, sbo=128, swizzle="none"), [("leading_byte_offset", "zero")]),
    ],
)
def test_what_is_suspicious(descriptor: int, expected: list[tuple[str, str]]) -> None:
    assert rules(descriptor) == expected


def test_strides_are_judged_where_they_are_used() -> None:
    """The LBO of a swizzled K-major operand is not used, so any value is legal."""
    for lbo in (0, 16, 48, 16384):
        assert rules(made(lbo=lbo), "K") == []
    assert rules(made(lbo=0, sbo=512, swizzle="64B"), "MN") == [("leading_byte_offset", "zero")]
    assert rules(made(lbo=0, sbo=512, swizzle="64B")) == []


def test_the_operands_of_sparse_instructions_are_judged_too() -> None:
    """B of a sparse instruction has 64 bytes along k: with the 32-byte swizzle its second half is LBO bytes away."""
    assert rules(made(lbo=32768, sbo=256, swizzle="32B"), "K") == [("leading_byte_offset", "bytes")]  # 2048 bytes: 64 columns
    assert rules(made(lbo=1024, sbo=256, swizzle="32B"), "K") == []
    assert rules(made(lbo=65536, sbo=512, swizzle="64B"), "K") == []  # no operand is wider than that swizzle
    assert rules(made(lbo=32, sbo=256, swizzle="32B"), "K") == [("leading_byte_offset", "overlap")]
    (overlap,) = suspicions(0xC000001000020040, "K")
    assert overlap.text.endswith("they overlap; only B of wgmma.sp can use LBO here")
    for lbo in (0, 16):  # customary in descriptors of dense operands, which do not use it
        assert rules(made(lbo=lbo, sbo=256, swizzle="32B"), "K") == []
    assert rules(made(lbo=512, sbo=1024), "MN") == [("leading_byte_offset", "overlap")]  # A of wgmma is too narrow to use it, B may
    assert rules(made(lbo=16, sbo=1024), "MN") == []


def test_bytes_where_units_are_meant() -> None:
    """Several groups too: no matrix is so large that it needs such strides."""
    assert rules(made(lbo=131072, sbo=1024), "MN") == [("leading_byte_offset", "bytes")]  # 8192 bytes: 64 columns by 64
    assert rules(made(lbo=65536, sbo=1024), "MN") == []
    for rows in (64, 128):  # 16 bytes of each
        assert rules(made(lbo=rows * 256, sbo=128, swizzle="none"), "K") == [("leading_byte_offset", "bytes")]
        assert rules(made(lbo=rows * 16, sbo=128, swizzle="none"), "K") == []


def test_fields_are_read_in_bytes_and_elements() -> None:
    rows = {each["field"]: each for each in json.loads(ask("decode", hex(_GOOD), "--type", "tf32", "--json"))["fields"]}
    assert [rows["start_address"][key] for key in ("holds", "value", "elements")] == [64, 1024, 256]
    assert [rows["swizzle"][key] for key in ("holds", "value", "elements")] == [1, "128B", None]
    assert "elements" not in json.loads(ask("decode", hex(_GOOD), "--json"))["fields"][0]


# --- encode -----------------------------------------------------------------------------------------------------------------


def test_encode_fields() -> None:
    assert ask("encode", "--address", "0x400", "--swizzle", "128", "--lbo", "16", "--sbo", "1024") == "0x4000004000010040\n"
    encoded = ask("encode", "--address", "1152", "--swizzle", "128B", "--lbo", "16", "--sbo", "1024", "--base-offset", "1")
    assert int(encoded, 16) == made(address=1152, base=1)


@pytest.mark.parametrize(("major", "swizzle", "rows", "cols"), [("k", "128", 64, 128), ("mn", "64", 128, 32), ("k", "none", 64, 32)])
def test_encode_a_matrix(major: str, swizzle: str, rows: int, cols: int) -> None:
    asked = ["--type", "bf16", "--major", major, "--swizzle", swizzle, "--rows", str(rows), "--cols", str(cols), "--address", "2048"]
    name = f"{swizzle}B" if swizzle.isdigit() else swizzle
    layout = SharedLayout("bf16", major.upper(), name, rows, cols, start=2048)
    assert int(ask("encode", *asked), 16) == layout.descriptor().encode() == Descriptor.of(layout).encode()
    answer = json.loads(ask("encode", *asked, "--json"))
    assert int(answer["descriptor"], 16) == layout.descriptor().encode()
    assert [one["majorness"] for one in answer["layouts"]] == [major.upper()]
    assert answer["suspicions"] == []
    strides = Descriptor.decode(int(ask("encode", *asked, "--sbo", "4096"), 16))
    assert strides.stride_byte_offset == 4096


@pytest.mark.parametrize("element", ["e2m1", "e2m3"])
def test_padded_images_may_be_mn_major(element: str) -> None:
    """They have the descriptors of 8-bit elements; packed ones cannot be read so."""
    tile = ("encode", "--family", "tcgen05", "--major", "mn", "--swizzle", "128", "--rows", "256", "--cols", "32", "--type")
    assert ask(*tile, element, "--padded") == ask(*tile, "e4m3")


def test_encode_says_what_is_suspicious_and_encodes_all_the_same() -> None:
    result = invoke("descriptor", "encode", "--swizzle", "128", "--lbo", "16", "--sbo", "1040")
    assert result.exit_code == 1
    assert result.stdout == f"{made(sbo=1040):#018x}\n"
    assert result.stderr.startswith("suspicious: stride_byte_offset: SBO = 1040 is not a multiple of 1024")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "--address 0x408 --swizzle 128 --lbo 16 --sbo 1024",
            "--address 1032 has no encoding in a descriptor; allowed: multiples of 16 from 0 to",
        ),
        ("--address 262144 --swizzle 128 --lbo 16 --sbo 1024", "multiples of 16 from 0 to 262128"),
        ("--swizzle 128 --lbo 8 --sbo 1024", "--lbo 8 has no encoding"),
        ("--swizzle 128 --lbo 16 --sbo 1000", "--sbo 1000 has no encoding"),
        ("--swizzle 128 --lbo 16 --sbo 1024 --base-offset 8", "--base-offset 8 has no encoding in a descriptor; allowed: 0..7"),
        ("--swizzle 96 --lbo 16 --sbo 1024", "--swizzle 96B is not legal; allowed: none, 128B, 64B, 32B"),
        ("--swizzle 128 --lbo x --sbo 1024", "'x' is not an integer; hexadecimal starts with 0x"),
        ("--swizzle 128 --lbo 16", "give --lbo and --sbo, or the matrix in memory: --type, --major, --rows, --cols"),
        ("--swizzle 128 --type bf16 --rows 64", "--major and --cols missing"),
        (
            "--swizzle 128 --type bf16 --major k --rows 64 --cols 60",
            "--cols 60 must be a multiple of 64: swizzle 128B has panels",
        ),
        (
            "--swizzle 128 --type e4m3 --major mn --rows 128 --cols 64",
            "wgmma cannot read e4m3 MN-major; it reads f16, bf16; tcgen05 can read e4m3",
        ),
        ("--swizzle 128 --type bf16 --major k --rows 64 --cols 64 --address 64", "--address 64 must be a multiple of 128 bytes, 0 or more"),
    ],
)
def test_encode_errors_say_what_is_allowed(arguments: str, said: str) -> None:
    assert said in ask("encode", *arguments.split(), code=2)


# --- decode -----------------------------------------------------------------------------------------------------------------


def test_decode() -> None:
    text = ask("decode", hex(_GOOD), "--type", "bf16", "--major", "k")
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert lines["start_address"][1:5] == ["13:0", "64", "1024", "bytes"]
    assert lines["start_address"][5] == "512"
    assert lines["swizzle"][1:4] == ["63:62", "1", "128B"]
    assert "K-major, 128-byte swizzle: ((8,m),(T,2k)):((span/16 T,SBO),(1,T))" in text
    assert "MN-major" not in text
    assert "  SBO: from the first 8 rows to the next 8 along x" in text
    assert "MN-major, 128-byte swizzle" in ask("decode", str(_GOOD))


def test_decode_in_other_formats() -> None:
    assert (
        ask("decode", hex(_GOOD), "--format", "csv").splitlines()[1]
        == "start_address,13:0,64,1024 bytes,start of the matrix in shared memory"
    )
    assert "| swizzle " in ask("decode", hex(_GOOD), "--format", "markdown")
    answer = json.loads(ask("decode", hex(_GOOD), "--type", "bf16", "--json"))
    assert answer["fields"][2] == {
        "field": "stride_byte_offset", "bits": "45:32", "holds": 64, "value": 1024, "unit": "bytes", "elements": 512,
    }  # fmt: skip
    assert [one["majorness"] for one in answer["layouts"]] == ["K", "MN"]
    assert "lbo" not in answer["layouts"][0]["used"]
    assert "lbo" not in answer["layouts"][0]["users"]
    assert answer["layouts"][1]["users"]["lbo"] == ["B of wgmma", "B of wgmma.sp"]


def test_decode_says_which_operands_use_a_stride() -> None:
    assert "; only B of wgmma.sp can use it" in ask("decode", hex(made(lbo=0, sbo=256, swizzle="32B")), "--major", "k")
    assert "; operands do not use it" in ask("decode", hex(_GOOD), "--major", "k")


def test_decode_says_what_is_suspicious() -> None:
    wrong = made(sbo=16384) | 1 << 15
    text = ask("decode", hex(wrong), code=1)
    assert "suspicious: bits 15:14 are not 0; they are ignored; was start_address larger than the 262128 that its field holds?" in text
    assert (
        "SBO holds 1024, which means 16384 bytes, since the field counts units of 16: are 1024 bytes meant? They are 64 in the field"
        in text
    )
    suspicions = json.loads(ask("decode", hex(wrong), "--json", code=1))["suspicions"]
    assert [(one["field"], one["rule"]) for one in suspicions] == [("", "unused"), ("stride_byte_offset", "bytes")]


def test_decode_suggests_the_family_that_the_version_names() -> None:
    bits, hint = "0x4000404004000000", "the bits may be a descriptor of tcgen05: give --family tcgen05"
    assert hint in ask("decode", bits, code=1)
    assert hint not in ask("decode", bits, "--family", "tcgen05")
    assert "--family" not in ask("decode", hex(made(sbo=16384) | 1 << 15), code=1), "version 0"


def test_help_names_every_swizzle(catalog: Catalog) -> None:
    memory = catalog.database.spec.shared_memory
    assert memory is not None
    names = {mode.name.removesuffix("B") if mode.name[:-1].isdigit() else mode.name for mode in memory.swizzles}
    assert names <= set(re.findall(r"\w+", ask("encode", "--help")))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("0x10000000000000000",), "is not a 64-bit number"),
        (("none",), "'none' is not an integer; hexadecimal starts with 0x"),
        ((hex(_GOOD), "--type", "bf17"), "unknown --type bf17; known: "),
        ((hex(_GOOD), "--major", "x"), "'k', 'mn'"),
    ],
)
def test_decode_errors(arguments: tuple[str, ...], said: str) -> None:
    assert said in ask("decode", *arguments, code=2)


def test_a_geometry_is_that_of_the_image() -> None:
    one = Geometry("tf32", "K", "64B", 64, 32, start=512)
    other = SharedLayout("tf32", "K", "64B", 64, 32, start=512)
    assert (one.lbo, one.sbo, one.size, one.panel) == (other.lbo, other.sbo, other.size, other.panel)


@pytest.mark.parametrize(
    ("descriptor", "majorness", "said"),
    [
        (0x4010404000010040, "K", []),
        (0x8010404000010040, "K", ["leading_mode holds 1; allowed: 0 (offset)"]),
        (0x4010404000010040, "MN", ["leading_mode = address is for K-major matrices only"]),
        (0x4012404000010040, "K", ["leading_mode = address needs base offset 0, not 1"]),
    ],
)
def test_an_address_in_place_of_lbo_is_for_k_major_matrices_in_whole_lines(descriptor: int, majorness: str, said: list[str]) -> None:
    """PTX ISA 9.7.16.3.1.2.1."""
    assert [each.text for each in suspicions(descriptor, majorness, family="tcgen05") if each.field == "leading_mode"] == said
