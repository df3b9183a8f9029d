"""``ptxmma smem``: addresses against the swizzle worked out by hand, costs against a count of words in banks."""

from __future__ import annotations

import csv
import functools
import io
import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commands
import ptxmma
from commands import invoke
from ptxmma.matrices.shared.accesses import Access, access_patterns, different
from ptxmma.matrices.shared.accesses import wavefronts as cost_of
from ptxmma.matrices.shared.canonical import Geometry
from ptxmma.matrices.shared.readable_types import memory_of
from ptxmma.matrices.shared_memory import SharedLayout, bank_conflicts, capacity

_K128 = ("--type", "bf16", "--major", "k", "--swizzle", "128", "--rows", "64", "--cols", "64")
_MN64 = ("--type", "f16", "--major", "mn", "--swizzle", "64", "--rows", "64", "--cols", "16")
_NONE = ("--type", "bf16", "--major", "k", "--swizzle", "none", "--rows", "64", "--cols", "64")


ask = functools.partial(commands.ask, "smem")


def table(*arguments: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(ask(*arguments, "--format", "csv"))))


def swizzled_128(row: int, unit: int) -> int:
    """Rows of 128 bytes, in which 16-byte units change places by the row's number."""
    return 128 * row + 16 * (unit ^ row % 8)


# --- the map ----------------------------------------------------------------------------------------------------------------


def test_the_map_of_a_swizzled_matrix() -> None:
    head, *rows = table(*_K128)
    assert head == ["row \\ col", "0-7", "8-15", "16-23", "24-31", "32-39", "40-47", "48-55", "56-63"]
    assert [row[0] for row in rows] == list(map(str, range(64)))
    assert [[int(cell) for cell in row[1:]] for row in rows] == [[swizzled_128(row, unit) for unit in range(8)] for row in range(64)]


def test_the_map_follows_start_and_strides() -> None:
    rows = table(*_K128, "--address", "0x2000", "--sbo", "2048")[1:]
    assert int(rows[17][3]) == 8192 + 2 * 2048 + swizzled_128(1, 2)
    panels = table("--type", "bf16", "--major", "k", "--swizzle", "none", "--rows", "16", "--cols", "16", "--lbo", "512", "--sbo", "128")[
        1:
    ]
    assert [int(panels[row][unit + 1]) for row, unit in ((0, 0), (1, 0), (8, 0), (0, 1), (9, 1))] == [0, 16, 128, 512, 512 + 128 + 16]
    moved = json.loads(ask(*_K128, "--address", "1152", "--base-offset", "1", "--json"))
    assert moved["units"][8]["address"] == 1152 + swizzled_128(1, 0)


def test_an_mn_major_matrix_has_columns_as_lines() -> None:
    layout = SharedLayout("f16", "MN", "64B", 64, 16)
    head, *rows = table(*_MN64)
    assert (head[0], len(head), len(rows)) == ("col \\ row", 1 + 8, 16)
    assert [[int(cell) for cell in row[1:]] for row in rows] == [[layout.address(8 * unit, k) for unit in range(8)] for k in range(16)]
    turned = table(*_MN64, "--transpose")
    assert turned[0][0] == "row \\ col"
    assert [row[1:] for row in turned[1:]] == [list(column) for column in zip(*(row[1:] for row in rows), strict=True)]


def test_other_formats() -> None:
    grid = ask(*_K128).splitlines()
    assert grid[0] == "bf16, K-major, swizzle 128B: 64 x 64 in 8192 bytes at 0, LBO 8192, SBO 1024"
    assert grid[3].split() == ["1", "144", "128", "176", "160", "208", "192", "240", "224"]
    assert grid[66] == ""
    assert grid[67].split()[0] == "access"
    assert ask(*_K128, "--format", "markdown").splitlines()[3].startswith("| 1         | 144  | 128  |")
    answer = json.loads(ask(*_K128, "--json"))
    assert (answer["lbo"], answer["sbo"], answer["size"]) == (8192, 1024, 8192)
    assert int(answer["descriptor"], 16) == SharedLayout("bf16", "K", "128B", 64, 64).descriptor().encode()
    assert {(one["row"], one["col"]): one["address"] for one in answer["units"]} == {
        (row, 8 * unit): swizzled_128(row, unit) for row in range(64) for unit in range(8)
    }


def test_one_element() -> None:
    answer = json.loads(ask(*_K128, "--address", "1024", "--row", "9", "--col", "12", "--json"))
    address = 1024 + swizzled_128(9, 1) + 8
    assert answer == {"row": 9, "col": 12, "address": address, "offset": address - 1024, "bank": address // 4 % 32}
    assert table(*_K128, "--row", "9", "--col", "12")[1][2] == str(address - 1024)
    bits = json.loads(
        ask("--type", "b1", "--major", "k", "--swizzle", "32", "--rows", "8", "--cols", "256", "--row", "1", "--col", "13", "--json")
    )
    assert (bits["address"], bits["bit"]) == (32 + 1, 5)
    narrow = ("--family", "tcgen05", "--type", "e2m3", "--padded", "--major", "k", "--swizzle", "none", "--rows", "8", "--cols", "32")
    bits = json.loads(ask(*narrow, "--row", "1", "--col", "21", "--json"))
    assert (bits["address"], bits["bit"]) == (128 + 16 + 5 * 6 // 8, 5 * 6 % 8), "16 elements and padding in each 16 bytes"
    narrow = ("--family", "tcgen05", "--type", "e2m1", "--padded", "--major", "mn", "--swizzle", "128", "--rows", "128", "--cols", "32")
    bits = json.loads(ask(*narrow, "--row", "21", "--col", "1", "--json"))
    assert (bits["address"], bits["bit"]) == (128 + 16 * (1 ^ 1) + 5 * 4 // 8, 5 * 4 % 8), "line 1 swaps the first two units"


def test_the_picture() -> None:
    drawn = ask(*_K128, "--format", "svg")
    root = ET.fromstring(drawn)
    assert root.tag.endswith("svg")
    texts = re.findall(r">([^<>]+)</tspan>", drawn)
    for row in range(64):
        for unit in range(8):
            assert str(swizzled_128(row, unit)) in texts
            assert f"{row},{8 * unit}" in texts
    padded = ask(*_K128, "--sbo", "2048", "--format", "svg")
    assert 'class="o"' in padded, "what nothing lies in is blank"
    assert 'class="o"' not in drawn


# --- bank conflicts ---------------------------------------------------------------------------------------------------------


def wavefronts(addresses: list[int], width: int) -> int:
    """Lanes are served together as long as they ask for 128 bytes; each bank gives one word of 4 bytes at a time."""
    together = min(32, 128 // max(width, 4))
    total = 0
    for first in range(0, len(addresses), together):
        words = {(address + byte) // 4 for address in addresses[first : first + together] for byte in range(width)}
        total += max(sum(1 for word in words if word % 32 == bank) for bank in range(32))
    return total


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize(
    ("name", "majorness", "x", "k"),
    [("bf16", "K", 64, 64), ("f16", "MN", 128, 32), ("e4m3", "K", 32, 128), ("tf32", "K", 16, 32), ("bf16", "K", 40, 64)],
)
def test_costs_are_those_of_the_banks(swizzle: str, name: str, majorness: str, x: int, k: int) -> None:
    layout = SharedLayout(name, majorness, swizzle, x, k)
    inner, outer = (k, x) if majorness == "K" else (x, k)

    def at(line: int, along: int) -> int:
        return int(layout.address(line, along) if majorness == "K" else layout.address(along, line))

    size, step = layout.element.bits // 8, layout.per_unit
    groups = [range(first, min(first + 32, outer)) for first in range(0, outer, 32)]
    units = [(number // (inner // step), number % (inner // step) * step) for number in range(outer * inner // step)]
    loads = max(wavefronts([at(line, along) for line in lines], 16) for lines in groups for along in range(0, inner, step))
    column = max(wavefronts([at(line, along) for line in lines], size) for lines in groups for along in range(inner))
    lines = max(wavefronts([at(*unit) for unit in units[first : first + 32]], 16) for first in range(0, len(units), 32))
    patterns = access_patterns(layout)
    assert [one.wavefronts for one in patterns[:3]] == [loads, column, lines]
    assert [one.lanes for one in patterns[:3]] == [min(32, outer), min(32, outer), 32]
    assert all(one.wavefronts >= one.least >= 1 for one in patterns)


_ACCESSES = st.lists(st.lists(st.one_of(st.none(), st.integers(0, 1023)), min_size=1, max_size=32), min_size=1, max_size=6)


@given(accesses=_ACCESSES, shifts=st.lists(st.integers(0, 7), min_size=6, max_size=6), width=st.sampled_from([1, 2, 4, 8, 16]))
def test_equal_accesses_are_counted_once_and_none_is_lost(accesses: list[list[int | None]], shifts: list[int], width: int) -> None:
    banks = memory_of(None).banks
    moved: list[Access] = [
        [None if address is None else address + shift * banks.count * banks.bytes for address in access]
        for access, shift in zip(accesses, shifts, strict=False)
    ]
    kept = different([*accesses, *moved], banks)
    assert kept == different(accesses, banks), "shifted by whole lines of the banks they lie alike"
    assert {cost_of(access, width, banks) for access in kept} == {cost_of(access, width, banks) for access in accesses}


@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_registers_of_a_fragment(swizzle: str) -> None:
    layout = SharedLayout("bf16", "K", swizzle, 64, 64)
    a = ptxmma.instruction("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32").operand("a")
    costs = []
    for x in range(0, 64, 16):
        for k in range(0, 64, 8):
            for i in (0, 2):
                places = [a.coords(lane, i) for lane in range(32)]
                costs.append(wavefronts([int(layout.address(x + row, k + col)) for row, col in places], 4))
    pattern = access_patterns(layout)[3]
    assert (pattern.wavefronts, pattern.accesses, pattern.width) == (max(costs), len(costs), 4)


@given(st.data(), st.sampled_from([1, 2, 4, 8, 16]))
def test_one_access_costs_what_it_costs_among_many(data: st.DataObject, width: int) -> None:
    """The counts with and without NumPy agree, wherever the idle lanes are."""
    addresses = data.draw(st.lists(st.none() | st.integers(0, 1 << 10).map(lambda unit: unit * width), min_size=32, max_size=32))
    active = np.array([address is not None for address in addresses])
    many = bank_conflicts(np.array([address or 0 for address in addresses]), width, active)
    assert cost_of(addresses, width, memory_of(None).banks) == many.wavefronts


def printed(strides: dict[str, Any], majorness: str, *, arrays: bool) -> Any:
    """The addresses of all units, or the error about the strides."""
    try:
        if not arrays:
            return Geometry("bf16", majorness, "128B", 128, 128, **strides).units()
        layout = SharedLayout("bf16", majorness, "128B", 128, 128, **strides)
    except ValueError as error:
        return str(error).split(":")[0]
    lines, units = np.arange(128)[:, np.newaxis], np.arange(0, 128, layout.per_unit)
    return layout.address(*((lines, units) if majorness == "K" else (units, lines))).tolist()


@pytest.mark.parametrize("strides", [{}, {"lbo": 32768}, {"sbo": 4096}, {"start": 3072}, {"sbo": 512}, {"lbo": 1024}])
def test_units_lie_where_their_elements_do(strides: dict[str, Any]) -> None:
    """The geometry without NumPy agrees with SharedLayout, on overlapping elements too."""
    for majorness in ("K", "MN"):
        assert printed(strides, majorness, arrays=False) == printed(strides, majorness, arrays=True)
    assert printed({"sbo": 512}, "K", arrays=False) == "lbo = 8192, sbo = 512"


def test_a_swizzle_pays() -> None:
    """Without a swizzle, whole lines cost eight times as much."""
    plain, swizzled = (json.loads(ask(*which, "--conflicts", "--json"))["accesses"] for which in (_NONE, _K128))
    assert [(one["wavefronts"], one["least"]) for one in (plain[2], swizzled[2])] == [(32, 4), (4, 4)]


def test_the_element_at_an_address() -> None:
    assert table(*_K128, "--at", "0x1234") == [["row", "col", "address", "offset", "bank"], ["36", "58", "4660", "4660", "13"]]
    assert table(*_K128, "--row", "36", "--col", "58") == table(*_K128, "--at", "4661")  # its second byte
    bits = json.loads(ask(*_k128(type="b1", cols="1024"), "--at", "100", "--json"))
    assert [(each["row"], each["col"], each["bit"]) for each in bits] == [(0, 800 + bit, bit) for bit in range(8)]


def test_only_the_conflicts() -> None:
    head, *rows = table(*_K128, "--conflicts")
    assert head == ["access", "lanes", "bytes each", "accesses", "wavefronts", "minimum"]
    assert rows[0] == ["16 bytes of each of 32 lines, as ldmatrix and stmatrix", "32", "16", "16", "4", "4"]
    assert ask(*_K128, "--conflicts").startswith("access")
    assert "units" not in json.loads(ask(*_K128, "--conflicts", "--json"))


def _k128(**other: str) -> tuple[str, ...]:
    """The options of ``_K128`` with other values for some."""
    options = dict(zip(_K128[::2], _K128[1::2], strict=True)) | {f"--{name}": value for name, value in other.items()}
    return tuple(word for option in options.items() for word in option)


# --- errors -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (_K128[:-2], "Missing option '--cols'"),
        ((*_K128, "--row", "64", "--col", "0"), "--row 64 is outside 0..63"),
        ((*_K128, "--row", "0", "--col", "-1"), "--col -1 is outside 0..63"),
        ((*_K128, "--row", "0"), "one element is --row and --col"),
        ((*_K128, "--row", "0", "--col", "0", "--format", "svg"), "one element is --row and --col"),
        ((*_K128[:-1], "60"), "--cols 60 must be a multiple of 64: swizzle 128B has panels of 128 bytes"),
        ((*_K128[:-3], "60", "--cols", "64"), "--rows 60 must be a multiple of 8, the lines of an atom"),
        ((*_K128, "--address", "100"), "--address 100 must be a multiple of 128 bytes, 0 or more"),
        ((*_K128, "--sbo", "512"), "--lbo 4096, --sbo 512: elements (4, 0) and (8, 0) would lie at one address"),
        ((*_K128, "--at", "8192"), "nothing lies at --at 8192; the matrix lies from 0 to 8191"),
        ((*_K128, "--at", "0", "--row", "0", "--col", "0"), "--at is without --row"),
        ((*_k128(swizzle="64"), "--lbo", "1536", "--sbo", "1024", "--at", "0"), "--lbo 1536, --sbo 1024: panels lie between groups"),
        (_k128(swizzle="256"), "unknown swizzle '256B'; known: none, 32B, 64B, 128B"),
        (_k128(type="f64"), "they read K-major: f16, bf16, tf32"),
        (("--family", "tcgen05", *_k128(type="e2m3")), "tcgen05 reads e2m3 with padding; say so, with --padded, or take one of f16"),
        ((*_K128, "--padded"), "wgmma reads no bf16 with padding; K-major: nothing"),
        (_k128(major="mn", type="tf32"), "wgmma cannot read tf32 MN-major; it reads f16, bf16; tcgen05 can read tf32"),
    ],
)
def test_errors_say_what_is_legal(arguments: tuple[str, ...], said: str) -> None:
    assert said in ask(*arguments, code=2)


def test_a_matrix_that_a_thread_block_has_no_room_for_is_refused() -> None:
    """A block of Rubin has 327 KB of shared memory, one of Hopper 227."""
    assert (capacity("rubin").block, capacity("sm_107f").sm, capacity("H100").block) == (327 << 10, 328 << 10, 227 << 10)
    large = ("smem", "--type", "bf16", "--major", "k", "--swizzle", "128", "--rows", "256", "--cols", "512", "--conflicts")
    assert ask(*large[1:], "--target", "rubin")
    result = invoke(*large, "--target", "h100")
    assert (result.exit_code, "lies from 0 to 262143; a thread block of h100 has at most 232448 bytes" in result.output) == (2, True)
    with pytest.raises(ValueError, match="no source gives the shared memory of sm_88; known: sm_70, sm_72, sm_75"):
        capacity("sm_88")
