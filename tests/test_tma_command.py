"""``ptxmma tma``: bytes, alignments and descriptors worked out by hand, and errors that name the option."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

import commands
import ptxmma
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.box_readers import readers
from ptxmma.matrices.shared.readable_types import capacity
from ptxmma.matrices.shared_memory import SharedLayout

_TILE = ("--shape", "4096x4096", "--box", "64x128", "--type", "bf16", "--swizzle", "128")


ask = functools.partial(commands.ask, "tma")


def answer(*arguments: str) -> Any:
    return json.loads(ask(*arguments, "--json"))


def test_a_tile_of_bf16() -> None:
    told = answer(*_TILE)
    assert (told["transaction_bytes"], told["size"]) == (16384, 16384)
    assert told["rows"] == {"number": 128, "pitch": 128, "length": 64}
    assert told["alignments"] == {"address": 16, "strides": 16, "destination": 128, "at": 8}
    assert told["strides"] == [8192]
    assert "cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, tensor," in told["call"]
    wanted = [
        (family, majorness, f"{layout.descriptor().encode():#018x}")
        for family in ("wgmma", "tcgen05")
        for majorness, x, k in (("K", 128, 64), ("MN", 64, 128))
        for layout in [SharedLayout("bf16", majorness, "128B", x, k, family=family)]
    ]
    assert [(each["family"], each["major"], each["descriptor"]) for each in told["readers"]] == wanted
    text = ask(*_TILE)
    assert all(descriptor in text for _, _, descriptor in wanted)
    assert "16384 count on the mbarrier" in text


def test_a_descriptor_begins_at_the_destination() -> None:
    told = answer(*_TILE, "--destination", "0x2000")["readers"][0]["descriptor"]
    assert ptxmma.shared_memory.Descriptor.decode(int(told, 16)).start_address == 0x2000


def test_boxes_narrower_than_the_swizzle_are_read_with_its_pitch() -> None:
    told = answer("--shape", "4096x4096", "--box", "32x64", "--type", "bf16", "--swizzle", "128")
    assert (told["transaction_bytes"], told["size"]) == (32 * 64 * 2, 128 * 64)
    assert [(each["rows"], each["cols"]) for each in told["readers"][:2]] == [(64, 64), (64, 64)]
    assert all(each["descriptor"] for each in told["readers"])


def test_the_first_element_that_differs() -> None:
    told = answer("--shape", "4096x4096", "--box", "64x128", "--type", "bf16")["readers"][0]
    assert told["descriptor"] is None
    assert told["fault"] == "row 0, column 8: the copy writes it to 16, the canonical layout has it at 2048"
    odd = answer("--shape", "4096x4096", "--box", "64x100", "--type", "bf16", "--swizzle", "128")["readers"][0]
    assert odd["fault"] == "rows 100 must be a multiple of 8, the lines of an atom"


def test_pixels_of_im2col_are_rows_of_a_matrix() -> None:
    corners = ("--lower", "-1,-1", "--upper", "-1,-1")
    told = answer("--shape", "64x56x56x8", *corners, "--channels", "64", "--pixels", "128", "--type", "f16", "--swizzle", "128")
    assert told["readers"][0] == answer(*_TILE[:4], "--type", "f16", "--swizzle", "128")["readers"][0]
    assert "cuTensorMapEncodeIm2col" in told["call"]


_WIDE = ("--shape", "128x9x7x64", "--type", "bf16", "--swizzle", "128", "--channels", "64", "--lower=0", "--upper=0")


def test_pixels_along_w_have_corners_along_w_and_a_halo() -> None:
    """The two examples of PTX ISA 5.5.5.3: 128 pixels and two of the halo, once and after every 32."""
    told = answer(*_WIDE, "--mode", "im2col::w", "--pixels", "128")
    assert (told["transaction_bytes"], told["size"], told["rows"]["number"]) == (128 * 128, 128 * 128, 128)
    assert told["readers"] == answer(*_TILE)["readers"]
    assert "cuTensorMapEncodeIm2colWide(" in told["call"]
    assert (
        "0, 0, 64, 128, (cuuint32_t[]){1, 1, 1, 1},\n    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, CU"
        in told["call"]
    )
    assert answer(*_WIDE, "--mode", "im2col::w", "--pixels", "128", "--halo", "2")["transaction_bytes"] == 130 * 128
    fixed = answer(*_WIDE, "--mode", "im2col::w::128", "--pixels", "8", "--halo", "2")
    assert (fixed["pixels"], fixed["transaction_bytes"]) == (128, (128 + 4 * 2) * 128)
    assert "CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128" in fixed["call"]


def test_the_place_of_a_pixel_along_w() -> None:
    at = ("--mode", "im2col::w", "--pixels", "8", "--at", "0,3,2,7", "--offsets", "1", "--element", "5,2")
    place = answer(*_WIDE, *at)["element"]
    assert place["coordinates"] == [5, 6, 2, 7]
    assert place["address"] == SharedLayout("bf16", "K", "128B", 8, 64).address(2, 5)
    strided = answer(*_WIDE, *at, "--element-strides", "1,2,1,1")["element"]
    assert strided["coordinates"] == [5, 8, 2, 7]
    assert answer(*_WIDE, *at[:-1], "5,6")["element"]["coordinates"] == [5, 1, 2, 8]  # in the next image, moved by wOffset
    left = ("--mode", "im2col::w::128", "--at", "0,-3,2,7", "--element")
    assert answer(*_WIDE, *left, "0,0")["element"]["global"] == "outside of the tensor"
    assert answer(*_WIDE, *left, "0,3")["element"]["coordinates"] == [0, 0, 2, 7]


def test_pixels_of_halos_are_those_after_32_and_lie_after_all_others() -> None:
    """TIRx-harness 0.1.2.post2 simulates these two copies so."""
    copies = functools.partial(BoxGeometry, "f32", (16, 4, 2, 160), channels=16, swizzle="64B", lower=(0,), upper=(0,))
    box = copies(mode="im2col::w", pixels=5, halo=1)
    assert [place[1:] for place in box.lines((0, 0, 1, 40), (1,))] == [*((w, 1, 40) for w in (1, 2, 3, 4)), (1, 1, 41), (2, 1, 41)]
    box = copies(mode="im2col::w::128", halo=2)
    halo = [place[1:] for place in box.lines((0, 0, 0, 80))][128:]
    assert halo == [*((0, 0, 80 + image) for image in (8, 16, 24, 32)), *((1, 0, 80 + image) for image in (8, 16, 24, 32))]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--mode", "im2col::w"), "--pixels = 0: a column has 1 to 1024 pixels"),
        (("--mode", "im2col::w", "--pixels", "8", "--halo", "512"), "--halo = 512: wHalo of im2col::w is from 0 to 511"),
        (("--mode", "im2col::w::128", "--halo", "32"), "--halo = 32: wHalo of im2col::w::128 is from 0 to 31"),
        (("--mode", "im2col::w::128", "--interleave", "16"), "--interleave = 16B: im2col::w and im2col::w::128 take no interleaved"),
        (("--mode", "im2col::w::128", "--at", "0,9,0,0"), "--at[0] = 9: the first pixel lies in the bounding box, or to its left"),
        (("--mode", "im2col::w::128", "--at", "0,0,0,0", "--offsets", "32"), "--offsets[0] = 32: wOffset is from 0 to 31"),
        (("--mode", "im2col::w::128", "--at", "0,0,0,0", "--store"), "--mode = im2col::w::128: a store has im2col_no_offs::w"),
        (("--mode", "im2col::w", "--pixels", "8", "--halo", "1", "--at", "0,0,0,0", "--store"), "--halo = 1: a store has no halo"),
        (("--mode", "im2col::w", "--pixels", "8", "--offsets", "1", "--at", "0,0,0,0", "--store"), "a store takes no offsets"),
        (("--mode", "im2col", "--pixels", "8", "--halo", "1"), "--lower has 1 entry; it takes 2: one along each of W, H, D"),
    ],
)
def test_pixels_along_w_that_a_text_refuses(given: tuple[str, ...], message: str) -> None:
    assert message in ask(*_WIDE, *given, code=2)


@pytest.mark.parametrize("swizzle", ["none", "32", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"])
def test_swizzles_that_no_map_of_pixels_along_w_has(swizzle: str) -> None:
    given = dict(zip(_WIDE[::2][:4], _WIDE[1::2][:4], strict=True)) | {"--swizzle": swizzle, "--mode": "im2col::w::128", "--channels": "8"}
    refused = ask(*(word for pair in given.items() for word in pair), *_WIDE[-2:], code=2)
    assert "im2col::w and im2col::w::128 go with 64B, 128B and 128B_ATOM_32B" in refused


def test_only_pixels_along_w_have_a_halo() -> None:
    assert "--halo = 1: only im2col::w and im2col::w::128 have a halo" in ask(*_TILE, "--halo", "1", code=2)


def test_one_element() -> None:
    told = answer(*_TILE, "--element", "3,9", "--at", "64,-1", "--address", "0x100")["element"]
    address = SharedLayout("bf16", "K", "128B", 128, 64).address(9, 3)
    assert told == {"d0": 3, "d1": 9, "address": address, "coordinates": [67, 8], "global": 0x100 + 2 * (8 * 4096 + 67)}
    assert answer(*_TILE, "--element", "3,0", "--at", "64,-1")["element"]["global"] == "outside of the tensor"


def test_a_pixel_at_an_offset() -> None:
    pixels = ("--shape", "64x9x9x2", "--lower=-1,-1", "--upper=-1,-1", "--channels", "64", "--pixels", "16", "--type", "f16")
    told = answer(*pixels, "--at", "0,6,7,0", "--offsets", "2,1", "--element", "5,2")["element"]
    assert told["coordinates"] == [5, 1, 0, 1]  # W 6, 7, then -1 of the next row, then 0; at the end of H the next image
    told = answer(*pixels, "--at", "0,6,6,0", "--offsets", "2,1", "--element", "5,2")["element"]
    assert told["coordinates"] == [5, 1, 8, 0]
    said = ask(*pixels, "--at", "0,6,6,0", "--offsets", "0,256", code=2)
    assert "--offsets[1] = 256: an offset with 4 dimensions is from 0 up to less than twice 128; the nearest legal one is 255" in said


def test_sources_are_the_elements_that_lines_begin() -> None:
    box = BoxGeometry("u8", (64, 9, 8), (16, 5, 4), element_strides=(1, 2, 3))
    lines = list(box.lines((16, 1, -2)))
    assert [box.source((16, 1, -2), point={"d0": 7, "d1": row % 3, "d2": row // 3}) for row in range(6)] == [
        (line[0] + 7, *line[1:]) for line in lines
    ]


def test_types_that_no_family_reads() -> None:
    assert readers(BoxGeometry("f64", (16, 16), (16, 16))) == []
    assert "none reads this type" in ask("--shape", "16x16", "--box", "16x16", "--type", "f64")
    assert "give an element type as --type" in ask("--shape", "16x16", "--box", "16x16", "--type", "UINT64")


def test_four_rows() -> None:
    told = answer(
        "--shape",
        "64x40",
        "--box",
        "64x1",
        "--type",
        "bf16",
        "--swizzle",
        "128",
        "--mode",
        "gather4",
        "--at",
        "0,9,8,7,6",
        "--element",
        "3,2",
    )
    assert (told["transaction_bytes"], told["rows"]["number"], told["element"]["coordinates"]) == (512, 4, [3, 7])


def test_a_store_takes_less() -> None:
    assert "--at[1] = -1: a store begins at coordinates from 0 on: the copy traps" in ask(*_TILE, "--at", "0,-1", "--store", code=2)
    assert "16384 count" in ask(*_TILE, "--at", "0,1", "--store")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--box", "72x128"), "--box[0] = 72: 72 elements of 16 bits are wider than the 128 bytes"),
        (("--box", "72x128"), "the nearest legal one is 64"),
        (("--box", "300x8"), "--box[0] = 300: a box has 1 to 256 elements along each dimension; 300 elements of 16 bits do not fill whole"),
        (("--box", "64"), "--box has 1 entry; it takes 2: one for each dimension"),
        (("--box", "64by8"), "'64by8' is not a list of integers; write 64x128"),
        (("--box", "64x8", "--at", "3,0"), "--at[0] = 3: 3 elements of 16 bits are not whole 16 bytes: the copy traps"),
        (("--box", "64x8", "--address", "8"), "--address = 8: the tensor starts at a multiple of 16 bytes; the nearest legal one is 0"),
        (("--box", "64x8", "--offsets", "1,1"), "--offsets and --store need --at: the coordinates of the copy"),
        (("--box", "64x8", "--at", "0,0", "--offsets", "1,1"), "--offsets has 2 entries; it takes 0"),
        (("--box", "64x8", "--destination", "64"), "--destination = 64"),
        (("--box", "64x8", "--element", "64,0"), "d0 = 64 is out of range: 0..63"),
        (("--box", "64x8", "--element", "64"), "--element takes a number for each of d0, d1; 1 given"),
        (("--box", "48x8", "--swizzle", "96"), "The driver makes no tensor map with the swizzle of 96 bytes"),
        (("--shape", "8x8x8x8x8x8", "--box", "8x8"), "--shape = 8 x 8 x 8 x 8 x 8 x 8: 6 dimensions; a tensor map has 1 to 5"),
        (
            ("--box", "64x8x8x8", "--shape", "64x9x9x8", "--channels", "64"),
            "--box has 4 entries; it takes 0: one for each dimension, or none",
        ),
        (("--box", "64x64", "--mode", "scatter4"), "--box[1] = 64: a box of gather4 and scatter4 is one row"),
        (("--box", "64x8", "--element-strides", "1,9"), "--element-strides[1] = 9"),
        (("--box", "64x8", "--fill", "one"), "unknown fill 'one'"),
        (("--box", "128x8", "--type", "e2m3"), "--padded"),
        ((), "give --box, or for im2col --channels"),
    ],
)
def test_errors_name_options(arguments: tuple[str, ...], message: str) -> None:
    given = {"--shape": "4096x4096", "--type": "bf16", "--swizzle": "128"} | dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert message in ask(*(word for pair in given.items() for word in pair), code=2)


def test_bytes_of_a_ring_are_no_product() -> None:
    assert "'2x16384' has an x; write a number for each copy" in commands.ask("ring", "--stages", "4", "--bytes", "2x16384", code=2)


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "H100", "B200", "rubin", "sm_120a"])
@pytest.mark.parametrize(("copies", "reserved"), [("8192,4096", 0), ("16384,22528", 32768), ("16384,16384,512", 1000)])
def test_a_ring_has_as_many_stages_as_fit(target: str, copies: str, reserved: int) -> None:
    """One stage more is one too many, and so is one byte more than is left."""
    block, stage = capacity(target).block, sum(map(int, copies.split(","))) + 16
    asked = ("ring", "--target", target, "--bytes", copies)
    if stage + reserved > block:
        assert f"no stage fits: it takes {stage} bytes" in commands.ask(*asked, "--reserve", str(reserved), code=2)
        return
    answer = json.loads(commands.ask(*asked, "--reserve", str(reserved), "--json"))
    stages, used = answer["stages"], answer["shared_memory"]["used"]
    assert used == stages * stage + reserved <= block < used + stage
    full = str(reserved + block - used)
    assert json.loads(commands.ask(*asked, "--reserve", full, "--json"))["stages"] == stages
    more = commands.ask(*asked, "--reserve", str(int(full) + 1), "--stages", str(stages), code=2)
    assert (f"a thread block of {target} has room for {stages - 1}" if stages > 1 else "no stage fits") in more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--bytes 1024", "give --stages, or --target and --bytes"),
        ("--target H100 --stages 4", "--bytes says how large one is"),
        ("--stages 4 --reserve 64", "--reserve takes shared memory from the stages: give --target, too"),
        ("--target H100 --bytes 64 --reserve -1", "reserved = -1: 0 bytes or more"),
    ],
)
def test_how_many_stages_fit_needs_a_target_and_their_bytes(arguments: str, message: str) -> None:
    assert message in commands.ask("ring", *arguments.split(), code=2)
