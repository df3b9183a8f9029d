"""``ptxmma layout``: every cell against the library's own answers, every option, every error."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import pty
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import ptxmma
from commands import ask
from ptxmma.catalog.instructions import Catalog, Instruction, Missing
from ptxmma.matrices.arrangements import arrangement, names

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_TF32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
_QUADS = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
_SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
_NARROW = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32"
_WIDE = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
_BITS = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"


def layout(instruction: str, operand: str, *more: str, code: int = 0) -> str:
    return ask("layout", instruction, "--operand", operand, *more, code=code)


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def arrangements(catalog: Catalog) -> Iterator[tuple[Instruction, str]]:
    """An operand of an instruction for each layout of the database."""
    seen = set()
    for instruction in catalog.all():
        for name in names(instruction):
            arranged = arrangement(instruction, name)
            key = (arranged.layout.name, arranged.operand.element_type, arranged.cols if "N" not in arranged.layout.shape else 0)
            if key not in seen:
                seen.add(key)
                yield instruction, name


# --- the library behind it --------------------------------------------------------------------------------------------------


def test_every_arrangement_is_what_the_operand_says(catalog: Catalog, odd: Catalog) -> None:
    """Every element of every layout, there and back, with every choice."""
    kinds = set()
    for instruction, name in (*arrangements(catalog), *arrangements(odd)):
        arranged = arrangement(instruction, name)
        kinds.add(arranged.layout.kind)
        for chosen in choices(arranged.legal):
            one = arrangement(instruction, name, **chosen)
            places = one.places(range(one.rows), range(one.cols))
            for row in range(one.rows):
                for col in range(0, one.cols, 1 if one.cols <= 64 else 7):
                    place = places[row][col]
                    assert place == one.locate(row, col)
                    assert expected(instruction, name, one.axes, row, col, chosen) == (place.lane, place.register, place.low, place.width)
                    assert one.at(place.lane, place.element) == named(one.axes, row, col) | chosen
    assert kinds == {"fragment", "metadata", "scale", "address"}


def choices(legal: dict[str, tuple[int, ...]]) -> list[dict[str, int]]:
    every: list[dict[str, int]] = [{}]
    for name, values in legal.items():
        every = [{**one, name: value} for one in every for value in values]
    return every


def named(axes: tuple[str, str], row: int, col: int) -> dict[str, Any]:
    """A place by its axes; a row of places has one axis, and the other is ``""``."""
    return {axis: number for axis, number in zip(axes, (row, col), strict=True) if axis}


def expected(
    instruction: Instruction, name: str, axes: tuple[str, str], row: int, col: int, chosen: dict[str, int]
) -> tuple[int, int, int, int]:
    """Lane, register, lowest bit and width by the methods of operands, metadata and scale factors."""
    if name == "metadata":
        lane, low, width = instruction.metadata.locate(row, col, chosen["selector"])
        return lane, 0, low, width
    if name.startswith("scale-"):
        scales = instruction.scales(name[-1])
        place = (row, col) if name[-1] == "a" else (col, row)
        lane, byte = scales.locate(*place, byte_id=chosen["byte_id"], thread_id=chosen["thread_id"])
        return lane, 0, 8 * byte, 8
    operand = instruction.operand(name)
    if operand.kind == "address":
        return operand.locate(**named(axes, row, col)), 0, 0, int(operand.register_types[0][1:])
    lane, i = operand.locate(check=True, **named(axes, row, col), **chosen)
    assert operand.element is not None
    register, slot = divmod(i, operand.elements_per_register)
    return lane, register, slot * operand.bits + operand.shift, operand.element.bits


def test_what_threads_hold_is_the_inverse(catalog: Catalog, odd: Catalog) -> None:
    for instruction, name in (*arrangements(catalog), *arrangements(odd)):
        arranged = arrangement(instruction, name)
        if arranged.rows * arranged.cols > 2048:
            continue
        contents = arranged.contents(range(arranged.threads), range(arranged.elements))
        back = {at: (lane, element) for lane, line in enumerate(contents) for element, at in enumerate(line) if at is not None}
        places = arranged.places(range(arranged.rows), range(arranged.cols))
        assert back == {(row, col): place[:2] for row, line in enumerate(places) for col, place in enumerate(line)}


def test_an_unknown_operand() -> None:
    with pytest.raises(Missing, match="operands with a layout: d, a, b, c"):
        arrangement(ptxmma.instruction(_F16), "e")
    with pytest.raises(ValueError, match="has no selector to choose"):
        arrangement(ptxmma.instruction(_F16), "a", selector=1)
    with pytest.raises(ValueError, match=r"selector = 4 is not legal for metadata: 0, 1, 2, 3"):
        arrangement(ptxmma.instruction(_SPARSE), "metadata", selector=4)


# --- one element ------------------------------------------------------------------------------------------------------------


_LDMATRIX = "ldmatrix.sync.aligned.m8n8.x4.b16"
_COPIES = "wmma.load.a.sync.aligned.row.m16n16k16.f16"


def test_one_of_several_matrices_or_copies() -> None:
    lane, i = ptxmma.instruction(_LDMATRIX).operand("r").locate(3, 2, 5)
    there = json.loads(layout(_LDMATRIX, "r", "--matrix", "3", "--row", "2", "--col", "5", "--json"))
    assert there == {"row": 2, "col": 5, "matrix": 3, "lane": lane, "register": 3, "element": i, "bits": "31:16"}
    back = json.loads(layout(_LDMATRIX, "r", "--lane", str(lane), "--element", str(i), "--json"))
    assert back == there
    places = ptxmma.instruction(_COPIES).operand("r").places(1, 3)
    assert len(places) == 2
    for copy, (lane, i) in enumerate(places):
        one = json.loads(layout(_COPIES, "r", "--copy", str(copy), "--row", "1", "--col", "3", "--json"))
        assert (one["copy"], one["lane"], one["element"]) == (copy, lane, i)
    assert "--matrix 4 is outside 0..3" in layout(_LDMATRIX, "r", "--matrix", "4", code=2)
    axes = "has no --copy; its axes: --matrix 0..3, --row 0..7, --col 0..7"
    assert f"r of {_LDMATRIX} {axes}" in layout(_LDMATRIX, "r", "--copy", "0", code=2)


def test_addresses_of_rows() -> None:
    two = "ldmatrix.sync.aligned.m8n8.x2{}.b16"
    assert table(layout(two.format(""), "p", "--format", "csv"))[2] == ["1", *(f"{lane}:p" for lane in range(8, 16))]
    for space in ("", ".shared"):
        there = json.loads(layout(two.format(space), "p", "--matrix", "1", "--row", "3", "--json"))
        assert there == {"matrix": 1, "row": 3, "lane": 11}
        assert json.loads(layout(two.format(space), "p", "--lane", "11", "--element", "0", "--json")) == there
    assert "--lane 16 is outside 0..15" in layout(two.format(""), "p", "--lane", "16", "--element", "0", code=2)
    assert table(layout(two.format(""), "p", "--lane", "11", "--format", "csv")) == [["lane", "matrix", "row"], ["11", "1", "3"]]
    assert f"operand 'p' of {_COPIES} has no layout; operands with a layout: r" in layout(_COPIES, "p", code=2)
    assert f"{_COPIES} has no operand 'q'; operands with a layout: r" in layout(_COPIES, "q", code=2)
    assert f"{two.format('')} has no operand 'q'; operands with a layout: r, p" in layout(two.format(""), "q", code=2)
    for wrong in (("--col", "3"), ("--choose", "3")):
        assert f"has no {wrong[0]}; its axes: --matrix 0..1, --row 0..7" in layout(two.format(""), "p", *wrong, code=2)
    one = json.loads(layout(two.format(""), "p", "--matrix", "1", "--json"))["elements"]
    assert [(each["row"], each["lane"]) for each in one] == [(row, 8 + row) for row in range(8)]


def test_one_element_both_ways() -> None:
    lane, i = ptxmma.instruction(_F16).operand("a").locate(9, 3)
    there = json.loads(layout(_F16, "a", "--row", "9", "--col", "3", "--json"))
    assert there == {"row": 9, "col": 3, "lane": lane, "register": 1, "element": i, "bits": "31:16"}
    back = json.loads(layout(_F16, "a", "--lane", str(lane), "--element", str(i), "--json"))
    assert (back["row"], back["col"]) == (9, 3)
    assert layout(_F16, "a", "--row", "9", "--col", "3").split() == [*there, *map(str, there.values())]
    assert table(layout(_F16, "a", "--row", "9", "--col", "3", "--format", "csv"))[1] == ["9", "3", "5", "1", "3", "31:16"]
    assert "| 9   | 3   | lane 5, a1[31:16] |" in layout(_F16, "a", "--row", "9", "--col", "3", "--bits", "--format", "markdown")


def test_bits_of_elements_in_wider_containers() -> None:
    element = ptxmma.instruction(_NARROW).operand("a")
    assert (element.bits, element.shift) == (8, 2)
    assert json.loads(layout(_NARROW, "a", "--row", "0", "--col", "1", "--json"))["bits"] == "13:10"


def test_a_sparse_element_says_where_it_may_come_from() -> None:
    assert json.loads(layout(_SPARSE, "a", "--row", "9", "--col", "3", "--json"))["from columns"] == "5 or 6 or 7"
    assert json.loads(layout(_TF32, "a", "--row", "9", "--col", "3", "--json"))["from columns"] == "6 or 7"


@pytest.mark.parametrize("spelling", [_SPARSE, _TF32, "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32"])
def test_metadata_of_one_element_both_ways(spelling: str) -> None:
    metadata = ptxmma.instruction(spelling).metadata
    pattern = metadata.granularity
    for selector in range(metadata.selectors):
        for col in range(metadata.chunks * pattern.kept):
            there = json.loads(layout(spelling, "metadata", "--row", "9", "--col", str(col), "--selector", str(selector), "--json"))
            lane, low, width = metadata.locate(9, col // pattern.kept, selector)
            assert (there["lane"], there["chunk"], there["field"]) == (lane, col // pattern.kept, f"{low + width - 1}:{low}")
            high, first = map(int, there["bits"].split(":"))
            assert low <= first <= high < low + width
            back = json.loads(layout(spelling, "metadata", "--lane", str(lane), "--bit", str(first), "--json"))
            assert (back["row"], back["chunk"], back["selector"], back["bits"]) == (9, there["chunk"], selector, there["bits"])
            cols = list(map(int, back["cols"].split(" to ")))
            assert cols[0] <= col <= cols[-1]


def test_metadata_as_bits() -> None:
    assert json.loads(layout(_SPARSE, "metadata", "--row", "9", "--col", "3", "--bits", "--json"))["place"] == "lane 4, e[23:22]"


def test_scale_factors_of_one_row() -> None:
    answer = json.loads(layout(_SCALED, "scale-b", "--block", "0", "--col", "5", "--byte-id", "2", "--thread-id", "3", "--json"))
    lane, byte = ptxmma.instruction(_SCALED).scales("b").locate(5, 0, byte_id=2, thread_id=3)
    assert (answer["lane"], answer["element"], answer["bits"]) == (lane, byte, f"{8 * byte + 7}:{8 * byte}")
    back = json.loads(layout(_SCALED, "scale-b", "--lane", str(lane), "--element", str(byte), "--json"))
    assert (back["block"], back["col"], back["byte_id"], back["thread_id"]) == (0, 5, 2, 3)
    assert "byte-id" in layout(_SCALED, "scale-b", "--lane", "0", "--element", "0")


def test_one_of_four_computations() -> None:
    operand = ptxmma.instruction(_QUADS).operand("d")
    answer = json.loads(layout(_QUADS, "d", "--row", "3", "--col", "5", "--computation", "2", "--json"))
    assert (answer["lane"], answer["element"]) == operand.locate(3, 5, 2)
    assert json.loads(layout(_QUADS, "d", "--lane", "20", "--element", "3", "--json"))["computation"] == operand.computation(20, 3)


# --- several elements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", [_F16, _SPARSE, _QUADS, _SCALED, _LDMATRIX, _COPIES])
def test_what_a_thread_holds(spelling: str) -> None:
    """Of every operand each element of the thread, in its register, at its place on every axis."""
    instruction = ptxmma.instruction(spelling)
    for lane in (0, 5):
        elements = json.loads(ask("layout", spelling, "--lane", str(lane), "--json"))["elements"]
        several = len(names(instruction)) > 1
        for name in names(instruction):
            table = arrangement(instruction, name)
            ours = [one for one in elements if not several or one["operand"] == name]
            assert len(ours) == table.elements
            for element, one in enumerate(ours):
                place = table.place(lane, element)
                where: dict[str, Any] = {"lane": lane}
                if table.layout.kind != "address":
                    where |= {"register": place.register, "element": element, "bits": place.bits}
                assert one == one | where | table.at(lane, element)
                assert table.layout.kind != "address" or "register" not in one


def test_rows_columns_and_registers_alone() -> None:
    operand = ptxmma.instruction(_F16).operand("a")
    row = json.loads(layout(_F16, "a", "--row", "9", "--json"))
    assert (row["instruction"], row["operand"]) == (_F16, "a")
    assert [(one["row"], one["col"]) for one in row["elements"]] == [(9, col) for col in range(16)]
    assert [(one["lane"], one["element"]) for one in row["elements"]] == [operand.locate(9, col) for col in range(16)]
    col = table(layout(_F16, "a", "--col", "3", "--format", "csv"))
    assert [line[:4:2] for line in col[1:]] == [[str(row), str(operand.locate(row, 3)[0])] for row in range(16)]
    both = json.loads(layout(_F16, "a", "--lane", "5", "--register", "1", "--json"))["elements"]
    assert [(one["row"], one["col"]) for one in both] == [operand.coords(5, 2), operand.coords(5, 3)]
    assert len(json.loads(layout(_F16, "a", "--register", "3", "--json"))["elements"]) == 64
    chunk = json.loads(layout(_SPARSE, "metadata", "--row", "9", "--chunk", "1", "--selector", "1", "--json"))
    lane, low, width = ptxmma.instruction(_SPARSE).metadata.locate(9, 1, 1)
    assert (chunk["lane"], chunk["bits"]) == (lane, f"{low + width - 1}:{low}")
    assert len(json.loads(layout(_SPARSE, "metadata", "--col", "3", "--json"))["elements"]) == 16


def test_operands_by_the_names_of_the_manual_in_any_case() -> None:
    for name in ("e", "E", "Metadata"):
        assert layout(_SPARSE, name, "--selector", "1") == layout(_SPARSE, "metadata", "--selector", "1")
    assert layout(_SCALED, "scale-a-data") == layout(_SCALED, "SCALE-A") == layout(_SCALED, "scale-a")
    assert layout(_F16, "A", "--row", "9", "--col", "3") == layout(_F16, "a", "--row", "9", "--col", "3")


def test_every_output_says_which_layouts_were_observed() -> None:
    sentence = "Observed on sm_90: the manual leaves this layout open."
    assert sentence in layout(_COPIES, "r")
    assert sentence in layout(_COPIES, "r", "--format", "svg").replace("</text>", "")
    assert sentence in layout(_COPIES, "r", "--copy", "1", "--format", "svg")
    assert table(layout(_COPIES, "r", "--format", "csv"))[0][0] == "row \\ col (observed on sm_90)"
    assert table(layout(_COPIES, "r", "--row", "1", "--format", "csv"))[1][-1] == "sm_90"
    for more in ((), ("--lane", "3"), ("--row", "1", "--col", "3")):
        assert '"observed": "sm_90"' in layout(_COPIES, "r", *more, "--json")
    assert "observed" not in layout(_F16, "a") + layout(_F16, "a", "--lane", "3")


# --- tables -----------------------------------------------------------------------------------------------------------------


def test_the_table_by_element() -> None:
    operand = ptxmma.instruction(_F16).operand("a")
    head, *rows = table(layout(_F16, "a", "--format", "csv"))
    assert head == ["row \\ col", *map(str, range(16))]
    for row, (name, *cells) in enumerate(rows):
        assert name == str(row)
        for col, cell in enumerate(cells):
            lane, i = operand.locate(row, col)
            assert cell == f"{lane}:r{i // 2} a{i}"


def test_the_table_by_lane_and_transposed() -> None:
    operand = ptxmma.instruction(_F16).operand("d")
    by_lane = table(layout(_F16, "d", "--by-lane", "--format", "csv"))
    assert by_lane[0] == ["lane \\ element", "d0", "d1", "d2", "d3"]
    assert [row[1:] for row in by_lane[1:]] == [
        [f"{row},{col}" for row, col in (operand.coords(lane, i) for i in range(4))] for lane in range(32)
    ]
    turned = table(layout(_F16, "d", "--by-lane", "--transpose", "--format", "csv"))
    assert turned[0][0] == "element \\ lane"
    assert [row[1:] for row in turned[1:]] == [list(column) for column in zip(*(row[1:] for row in by_lane[1:]), strict=True)]


@pytest.mark.parametrize(
    ("spelling", "operand", "head"),
    [
        (_F16, "a", ["a0[15:0]", "a0[31:16]", "a1[15:0]"]),
        (_F16, "d", ["d0[31:0]", "d1[31:0]", "d2[31:0]"]),
        (_SPARSE, "metadata", ["e[3:0]", "e[7:4]", "e[11:8]"]),
    ],
)
def test_bits_by_lane(spelling: str, operand: str, head: list[str]) -> None:
    named = table(layout(spelling, operand, "--by-lane", "--bits", "--format", "csv"))
    assert named[0][:4] == ["lane \\ bits", *head]
    assert named[1:] == table(layout(spelling, operand, "--by-lane", "--format", "csv"))[1:]
    places = {
        f"lane {lane}, {bits}": cell.split(",")
        for lane, *cells in named[1:]
        for bits, cell in zip(named[0][1:], cells, strict=True)
        if cell
    }
    rows = table(layout(spelling, operand, "--bits", "--format", "csv"))[1:]
    assert places == {cell: [row, str(col)] for row, *cells in rows for col, cell in enumerate(cells)}


def test_bits_and_other_formats() -> None:
    assert table(layout(_F16, "a", "--bits", "--format", "csv"))[10][4] == "lane 5, a1[31:16]"
    assert layout(_F16, "a", "--format", "markdown").splitlines()[2].startswith("| 0         | 0:r0 a0  | 0:r0 a1  |")
    grid = layout(_F16, "a").splitlines()
    assert grid[0] == f"a of {_F16}: 16 x 16"
    assert grid[2].split()[:5] == ["0", "0:r0", "a0", "0:r0", "a1"]
    assert table(layout(_SPARSE, "metadata", "--selector", "2", "--format", "csv"))[10][1:] == [
        "6:[19:16]",
        "6:[23:20]",
        "6:[27:24]",
        "6:[31:28]",
    ]
    by_lane = table(layout(_SPARSE, "metadata", "--by-lane", "--format", "csv"))
    assert by_lane[1][1] == "0,0"
    assert set(by_lane[2][1:]) == {""}, "lanes that the selector ignores hold nothing"
    assert table(layout(_SCALED, "scale-a", "--byte-id", "1", "--format", "csv"))[2][1] == "4:byte 1"


@pytest.mark.parametrize("more", [(), ("--by-lane",), ("--transpose",), ("--by-lane", "--transpose")])
def test_json_has_every_element_in_the_order_of_the_table(more: tuple[str, ...]) -> None:
    answer = json.loads(layout(_F16, "b", "--json", *more))
    assert (answer["instruction"], answer["operand"], answer["rows"], answer["cols"]) == (_F16, "b", 16, 8)
    operand = ptxmma.instruction(_F16).operand("b")
    for one in answer["elements"]:
        assert (one["lane"], one["element"]) == operand.locate(one["row"], one["col"])
    keys = [(one["lane"], one["element"]) if "--by-lane" in more else (one["row"], one["col"]) for one in answer["elements"]]
    assert len(set(keys)) == 128
    assert keys == sorted(keys, key=lambda key: key[::-1] if "--transpose" in more else key)


def test_a_wide_matrix_is_shortened_for_people_only() -> None:
    short = layout(_WIDE, "d").splitlines()
    assert len(short[1].split()) - 3 == 16
    said = re.search(r"Columns 16 to 255 go on like this: (\d+) columns further .* (\d+) higher", short[-1])
    assert said is not None
    period, step = map(int, said.groups())
    operand = ptxmma.instruction(_WIDE).operand("d")
    for col in range(0, 256 - period, 5):
        lane, i = operand.locate(37, col)
        assert operand.locate(37, col + period) == (lane, i + step)
    assert len(table(layout(_WIDE, "d", "--format", "csv"))[0]) == 257
    assert len(layout(_WIDE, "d", "--all").splitlines()[1].split()) == 256 + 3
    assert len(table(layout(_WIDE, "d", "--by-lane", "--format", "csv"))) == 129
    assert len(layout(_WIDE.replace("n256", "n8"), "d").splitlines()) == 66


def test_a_large_matrix_has_a_cell_for_each_register() -> None:
    lines = layout(_BITS, "a").splitlines()
    assert lines[1].split()[3:] == [f"{first}-{first + 31}" for first in range(0, 256, 32)]
    assert lines[2].split()[1:3] == ["0:r0", "1:r0"]
    assert lines[-1] == "A cell is a register of 32 elements. --all shows each element."
    assert layout(_BITS, "a", "--by-lane").splitlines()[2].split()[:2] == ["0", "0,0-31"]
    assert "lane 1, a0 " in layout(_BITS, "a", "--bits")
    assert layout(_BITS, "a", "--by-lane", "--bits").splitlines()[1].split()[2:5] == ["register", "a0", "a1"]
    assert len(layout(_BITS, "a", "--all").splitlines()[1].split()) == 256 + 3


# --- pictures and terminals -------------------------------------------------------------------------------------------------


def test_a_picture_of_another_table() -> None:
    drawn = layout(_F16, "a", "--by-lane", "--transpose", "--format", "svg")
    assert ">elem \\ lane<" in drawn
    head, *rows = table(layout(_F16, "a", "--by-lane", "--transpose", "--format", "csv"))
    shown = re.findall(r'<text(?: id="u\d+")? y="\d+">((?:<tspan x="\d+">[^<]*</tspan>)+)</text>', drawn)
    texts = [re.findall(r">([^<]+)</tspan>", line) for line in shown]
    panels = len(texts) // len(rows)  # side by side in the table, one after the other in the text
    assert [list(itertools.chain(*texts[row :: len(rows)])) for row in range(len(rows))] == [row[1:] for row in rows]
    assert panels * len(texts[0]) == len(head) - 1


def in_a_terminal(columns: int, *arguments: str, **environment: str) -> str:
    """What ``ptxmma`` prints to a terminal of that many columns."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "ptxmma", *arguments],
        stdout=theirs,
        env={**clean, "TERM": "xterm-256color", "COLORTERM": "truecolor", **environment},
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        output += part
    os.close(ours)
    assert process.wait() == 0
    return output.decode()


def test_a_terminal_gets_colours_and_parts_that_fit() -> None:
    text = in_a_terminal(80, "layout", _F16, "--operand", "a")
    assert "48;2;184;216;233m0:r0 a0" in text, "the first quad has one hue, in four strengths"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 80
    heads = [line.split()[3:] for line in plain.splitlines() if line.lstrip().startswith("row \\ col")]
    assert [name for head in heads for name in head] == list(map(str, range(16)))
    assert {len(head) for head in heads} == {4}, "as many as fit, in a power of two"
    cells = re.findall(r"\d+:r\d a\d", plain)
    assert len(cells) == 256


def test_a_terminal_of_256_colours_tells_lanes_apart() -> None:
    text = in_a_terminal(80, "layout", _F16, "--operand", "a", COLORTERM="")
    assert "48;2" not in text
    backgrounds = {int(lane): number for number, lane in re.findall(r"48;5;(\d+)m(\d+):r0 a0", text)}
    assert sorted(backgrounds) == list(range(32))
    assert len(set(backgrounds.values())) == 32


def test_no_color_is_respected() -> None:
    text = in_a_terminal(80, "layout", _F16, "--operand", "a", NO_COLOR="1")
    assert "48;2" not in text


def test_a_picture_of_one_of_several_tables() -> None:
    first, third = (layout(_LDMATRIX, "r", "--matrix", number, "--format", "svg") for number in ("0", "2"))
    assert "matrix 2" in third
    assert ">0:r2 i4<" in third
    assert ">0:r0 i0<" in first
    assert first != layout(_LDMATRIX, "r", "--format", "svg"), "without a choice all four are drawn"


def test_elements_of_r_are_not_registers() -> None:
    assert table(layout(_LDMATRIX, "r", "--matrix", "2", "--format", "csv"))[1][1] == "0:r2 i4"
    assert table(layout(_LDMATRIX, "r", "--by-lane", "--format", "csv"))[0][1:4] == ["r0 i0", "r0 i1", "r1 i2"]


# --- errors -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--operand", "a", "--row", "20", "--col", "3"), "--row 20 is outside 0..15"),
        (("--operand", "a", "--row", "2", "--col", "-1"), "--col -1 is outside 0..15"),
        (("--operand", "a", "--lane", "32", "--element", "0"), "--lane 32 is outside 0..31"),
        (("--operand", "a", "--lane", "3", "--element", "8"), "--element 8 is outside 0..7"),
        (("--operand", "a", "--register", "4"), "--register 4 is outside 0..3"),
        (("--operand", "a", "--lane", "3", "--bit", "3"), "--bit is for metadata, with --lane"),
        (("--operand", "a", "--row", "2", "--col", "3", "--format", "svg"), "are for whole tables"),
        (("--operand", "a", "--lane", "2", "--by-lane"), "are for whole tables"),
        (("--operand", "a", "--selector", "1"), f"a of {_F16} has no --selector; its axes: --row 0..15, --col 0..15"),
        (("--operand", "a", "--row"), "--row takes a number, 0..15"),
        (("--operand", "a", "--row=x"), "--row takes a number, 0..15, not 'x'"),
        (("--operand", "a", "--by-lan"), "has no --by-lan (is --by-lane meant?)"),
        (("--row", "2"), "say which --operand: d, a, b, c; or --lane N"),
        (("--operand", "metadata"), "operands with a layout: d, a, b, c"),
        ((), "say which --operand: d, a, b, c"),
    ],
)
def test_errors_say_what_is_legal(arguments: tuple[str, ...], said: str) -> None:
    assert said in ask("layout", _F16, *arguments, code=2)


def test_errors_of_metadata_and_computations() -> None:
    assert "--col 8 is outside 0..7" in layout(_SPARSE, "metadata", "--row", "0", "--col", "8", code=2)
    assert "--bit 32 is outside 0..31" in layout(_SPARSE, "metadata", "--lane", "0", "--bit", "32", code=2)
    assert "--bit is for metadata" in layout(_SPARSE, "metadata", "--lane", "0", "--element", "3", "--bit", "0", code=2)
    assert "a column of the packed A" in layout(_SPARSE, "metadata", "--lane", "0", "--col", "3", code=2)
    assert "--computation 4 is outside 0..3" in layout(_QUADS, "d", "--computation", "4", code=2)
    assert "--byte-id 7 is outside 0..3" in layout(_SCALED, "scale-a", "--byte-id", "7", code=2)


def test_an_operand_in_shared_memory_points_there() -> None:
    text = layout(_WIDE, "b", code=2)
    question = re.search(r"`ptxmma (smem [^`]*)`", text)
    assert question is not None
    assert "256 x 16" in ask(*question[1].split())
    assert "wgmma.fence.sync.aligned has no operands in registers" in ask("layout", "wgmma.fence.sync.aligned", code=2)
