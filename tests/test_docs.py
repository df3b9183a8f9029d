"""The reference: pictures show what the layouts say, pages say what the spec says."""

from __future__ import annotations

import csv
import doctest
import functools
import io
import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import docutils.nodes
import numpy as np
import pytest
from docutils.core import publish_doctree
from hypothesis import given
from hypothesis import strategies as st

from commands import invoke
from cuda_calls import Nvcc
from ptxmma.catalog import layouts
from ptxmma.catalog.citations import cited, elsewhere
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names import links
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.products import legal_products, resolution
from ptxmma.generator import short_forms
from ptxmma.generator.emit import docs
from ptxmma.generator.emit.docs import form_groups, form_page, mathematics, rest
from ptxmma.generator.emit.docs.family import boxes
from ptxmma.generator.emit.docs.form_groups import FormGroup
from ptxmma.generator.emit.docs.fragment_relations import Relations
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.matrices import pictures
from ptxmma.matrices.operations import operation
from ptxmma.model import Layout, Version, formula
from ptxmma.model.bitmap import domain

_SVG = "{http://www.w3.org/2000/svg}"
_MOST_BYTES = 5_000_000

_DASH = "\u2013"
#: Targets that examples are compiled for, the first that accepts one.
_COMPILED = ("sm_90a", "sm_120a", "sm_100a", "sm_75")
_STRIP = "the other warps, like warp 0"

Cells = dict[tuple[str, str, str], tuple[str, str]]
Labels = dict[tuple[str | None, int], str]
Operands = dict[str, tuple[Operand, Instruction]]


@pytest.fixture(scope="module")
def outputs(catalog: Catalog) -> dict[str, str]:
    return pages_of(catalog)


def pages_of(catalog: Catalog) -> dict[str, str]:
    """Every page and picture by its path below docs/reference."""
    return {output.path.removeprefix("docs/reference/"): output.text for output in docs.emit(catalog)}


@pytest.fixture(scope="module")
def operands(catalog: Catalog) -> Operands:
    return operands_of(catalog)


def operands_of(catalog: Catalog) -> Operands:
    """For each layout, an operand that has it and its instruction."""
    by_layout: Operands = {}
    for instruction in catalog.all():
        for operand in instruction.operands:
            if operand.layout is not None:
                by_layout.setdefault(operand.layout.name, (operand, instruction))
    return by_layout


@pytest.fixture(scope="module")
def shown(outputs: dict[str, str]) -> dict[str, str]:
    return pictures_of(outputs)


def pictures_of(outputs: dict[str, str]) -> dict[str, str]:
    """The picture of each layout, by the captions that name it; a section with formulas of the same page names it too."""
    by_name: dict[str, str] = {}
    for path, text in outputs.items():
        formulas = {name for section in formula_sections(text) for name in named(section)}
        for picture, caption in re.findall(r"figure:: \.\./(pictures/(?!tensor_)\S+\.svg)\n(?: +:.*\n)*\n +(.*\n)", text):
            names = re.findall(r"``([a-z0-9_N]+)``", caption.rpartition(". ")[2])
            assert names, path
            assert set(names) <= formulas, path
            for name in names:
                assert by_name.setdefault(name, picture) == picture
    return by_name


def formula_sections(text: str) -> list[str]:
    """The sections with the formulas of the layouts of a page."""
    sections = [section.partition("\nC++\n---")[0] for section in re.split(r"^\.\. _layout-", text, flags=re.M)[1:]]
    assert all(re.search(r"\.\. math::\n\n +\\mathrm", section) for section in sections)
    return sections


def named(section: str) -> list[str]:
    """The layouts of such a section, by their names in generated code."""
    return re.findall(r"``([a-z0-9_N]+)``", section.partition("In generated code: ")[2].partition(".")[0])


@pytest.fixture(scope="module")
def groups(catalog: Catalog) -> list[FormGroup]:
    """The groups of instructions that have a page each."""
    return form_groups.groups(catalog)


@functools.cache
def read_picture(text: str) -> Cells:
    """``(head, row, column) -> (first line, second line)`` of every cell of a picture, from the places of its texts."""
    root = ET.fromstring(text)
    texts = {element.get("id"): element for element in root.iter(f"{_SVG}text") if element.get("id")}
    cells: Cells = {}
    for panel in root.findall(f"{_SVG}g"):
        head = next((element.text or "" for element in panel.findall(f"{_SVG}text") if element.get("class") == "p"), "")
        col_names, row_names, _, *lines = panel.findall(f"{_SVG}g")
        cols = {element.get("x"): element.text or "" for element in col_names.findall(f".//{_SVG}tspan")}
        rows = [element.text or "" for element in row_names.findall(f"{_SVG}text")]
        labels: list[Labels] = [read_labels(group, texts, baseline) for group, baseline in zip(lines, (12, 22), strict=True)]
        assert labels[1].keys() in (labels[0].keys(), {}.keys())
        for (x, row), top in labels[0].items():
            key = (head, rows[row], cols[x])
            assert key not in cells, f"shown twice: {key}"
            cells[key] = (top, labels[1].get((x, row), ""))
    return cells


def read_labels(group: ET.Element, texts: dict[str | None, ET.Element], baseline: int) -> Labels:
    """``(x, row) -> text`` of one of the two lines in the cells; a text used again is at the place of its use."""
    labels: Labels = {}
    for element in group:
        used = element.tag == f"{_SVG}use"
        target = texts[(element.get("href") or "")[1:]] if used else element
        row, off = divmod(int(target.get("y") or 0) + used * int(element.get("y") or 0) - baseline, 26)
        assert off == 0
        for part in target:
            assert (part.get("x"), row) not in labels, "two labels in one place"
            labels[part.get("x"), row] = part.text or ""
    return labels


def test_every_layout_has_a_picture_and_a_formula(catalog: Catalog, shown: dict[str, str], outputs: dict[str, str]) -> None:
    assert shown.keys() == catalog.database.layout.keys()
    assert set(shown.values()) <= outputs.keys()


@pytest.mark.parametrize(
    ("spelling", "operand", "name"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "a", "mma_m16n8k16_a_b16"),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "metadata", "mma_sp_m16n8k16_metadata_b16"),
    ],
)
def test_the_command_draws_the_picture_of_the_page(
    shown: dict[str, str], outputs: dict[str, str], spelling: str, operand: str, name: str
) -> None:
    done = invoke("layout", spelling, "--operand", operand, "--format", "svg")
    opening, _, rest = done.output.partition("\n")
    assert outputs[shown[name]].startswith(opening)
    assert outputs[shown[name]].endswith(rest)


def test_a_reader_can_tell_the_layouts_of_an_operand_apart(outputs: dict[str, str], groups: list[FormGroup]) -> None:
    """Where an operand of one type has several layouts, the table says which is for which modifiers."""
    links: dict[tuple[str, ...], set[str]] = {}
    for group in groups:
        for row in rows(outputs[f"{group.path}.rst"].partition("\nVariants\n")[0].replace("\n      ", "\n")):
            for cell in row:
                if link := re.fullmatch(r":ref:`(.*) <layout-(.*)>`", cell):
                    rest_of_it = [other for other in row if other != cell]
                    links.setdefault((group.path, *rest_of_it, link[1]), set()).add(link[2])
    assert len(links) > 100
    assert not [key for key, labels in links.items() if len(labels) > 1]


def test_what_was_measured_says_so_wherever_it_is_shown(
    catalog: Catalog, shown: dict[str, str], outputs: dict[str, str], groups: list[FormGroup]
) -> None:
    observed = {layout.name: catalog.database.spec.register_layouts[layout.entry].observed for layout in catalog.database.layouts}
    sections = [section for group in groups for section in formula_sections(outputs[f"{group.path}.rst"])]
    assert any(observed.values())
    for name, target in observed.items():
        own = [section for section in sections if name in named(section)]
        assert own
        for section in own:
            assert ("Observed on" in outputs[shown[name]]) == (f"Observed on ``{target}``" in section) == bool(target)
        assert not target or f"Observed on {target}" in outputs[shown[name]]


def test_measured_fragments_are_made_of_those_of_mma(catalog: Catalog, operands: Operands) -> None:
    relations = Relations(catalog)
    registers = re.compile(r"(\d+)(?:\u2013(\d+))?(?: \((.*)\))?")
    places = re.compile(r"(\w+) (\d+)")
    related = 0
    for layout in catalog.database.layouts:
        whole, _ = operands[layout.name]
        made = relations.of(layout)
        assert (made is not None) == bool(whole.observed)
        if made is None:
            continue
        related += 1
        assert made.copies == (layout.axes.get("copy", 1) > 1)
        for block in made.blocks:
            match = registers.fullmatch(block)
            assert match is not None, block
            first, last = int(match[1]), int(match[2] or match[1])
            begin = {axis: int(place) for axis, place in places.findall(match[3] or "")}
            per_register = whole.elements_per_register
            assert (last - first + 1) * per_register == made.operand.elements
            for lane, i in itertools.product(range(layout.threads), range(made.operand.elements)):
                row, col = made.operand.coords(lane, i)[:: -1 if made.transposed else 1]
                assert whole.coords(lane, first * per_register + i) == (row + begin.get("row", 0), col + begin.get("col", 0))
    assert related


def test_examples_accumulate_in_f32_where_they_can(outputs: dict[str, str]) -> None:
    shown = [line for text in outputs.values() for line in re.findall(r"using (?:Multiply|Product) = (.*f16.*);", text)]
    assert any("tcgen05" in line for line in shown)
    assert any("wmma_mma" in line for line in shown)
    assert [line for line in shown if "ptxmma::f32" not in line] == []


def test_layouts_with_one_map_share_one_picture(outputs: dict[str, str]) -> None:
    pictures = Counter(text for path, text in outputs.items() if path.endswith(".svg"))
    assert not [text[:300] for text, count in pictures.items() if count > 1]


def test_the_order_of_families_moves_no_picture(catalog: Catalog) -> None:
    families = [list(group) for _, group in itertools.groupby(catalog.all(), key=lambda each: each.family)]
    there, back = (Gallery(itertools.chain.from_iterable(order)).files for order in (families, families[::-1]))
    assert there == back


def test_pictures_show_the_fragments(shown: dict[str, str], outputs: dict[str, str], operands: Operands) -> None:
    assert check_pictures(shown, outputs, operands) > 90


def test_pictures_show_fragments_of_any_axes(odd: Catalog) -> None:
    pages = pages_of(odd)
    assert check_pictures(pictures_of(pages), pages, operands_of(odd)) >= 6


def check_pictures(shown: dict[str, str], outputs: dict[str, str], operands: Operands) -> int:
    """The pictures of all fragments, cell by cell; the number of pictures."""
    checked = 0
    for name, picture in shown.items():
        operand, _ = operands[name]
        layout = operand.layout
        assert layout is not None
        if layout.kind != "fragment":
            continue
        cells = read_picture(outputs[picture])
        width = (
            layout.cols if "⋯" not in outputs[picture] else 1 + max(int(col.split(_DASH)[-1]) for head, _, col in cells if head != _STRIP)
        )
        expected: Cells = {}
        each = operand.elements_per_register
        down, across = layout.plane
        leads = [axis for axis, size in layout.axes.items() if axis not in (down, across, "copy") and size > 1]
        by_warp = layout.threads > 32 and layout.rows > 16
        per_warp = layout.rows // (layout.threads // 32) if by_warp else layout.rows
        merged = max(per_warp, width) > 16 and side_by_side(layout, each)
        letter = "i" if layout.operands[0] == "r" else layout.operands[0]
        for lane, i, place in places(layout):
            row, col = place.get(down, 0), place[across]
            if by_warp and lane >= 32:  # the other warps are alike: a strip names their rows and threads
                warp = lane // 32
                assert layout.map.apply({"lane": lane % 32, "i": i}) == place | {down: row - warp * per_warp}
                strip = _STRIP, f"{warp * per_warp}{_DASH}{(warp + 1) * per_warp - 1}", ""
                expected[strip] = f"T{32 * warp}{_DASH}T{32 * warp + 31}", f"as T0{_DASH}T31"
                continue
            if col >= width or (merged and i % each) or place.get("copy"):
                continue
            head = ", ".join(f"{axis} {place[axis]}" for axis in leads) or ("warp 0" if by_warp else "")
            if merged:
                end = layout.map.apply({"lane": lane, "i": i + each - 1})
                edge = [
                    f"{first}" if first == last else f"{first}{_DASH}{last}"
                    for first, last in ((row, end.get(down, 0)), (col, end[across]))
                ]
                expected[head, edge[0], edge[1]] = f"T{lane}", f"r{i // each} {letter}{i}{_DASH}{i + each - 1}"
            else:
                expected[head, str(row) if down else "", str(col)] = (
                    f"T{lane}",
                    f"{letter}{i}" if each == 1 else f"r{i // each} {letter}{i}",
                )
        assert cells == expected, name
        copies = re.search(r"hold (\d+) copies", outputs[picture])
        assert (int(copies[1]) if copies else 1) == layout.axes.get("copy", 1), name
        if width < layout.cols:
            check_continuation(layout, outputs[picture], width)
        checked += 1
    return checked


def side_by_side(layout: Layout, each: int) -> bool:
    """Whether the elements of a register are neighbours in a row or a column."""
    first, last = (layout.map.apply({"lane": 0, "i": i}) for i in (0, each - 1))
    apart = [int(last[axis]) - int(first[axis]) for axis in layout.plane if axis and last[axis] != first[axis]]
    return apart == [each - 1]


def test_pictures_show_the_addresses(shown: dict[str, str], outputs: dict[str, str], operands: Operands) -> None:
    assert check_addresses(shown, outputs, operands)


def test_pictures_show_addresses_of_any_axes(odd: Catalog) -> None:
    pages = pages_of(odd)
    assert check_addresses(pictures_of(pages), pages, operands_of(odd)) >= 6


def check_addresses(shown: dict[str, str], outputs: dict[str, str], operands: Operands) -> int:
    """The pictures of all addresses, cell by cell; the number of pictures."""
    seen = 0
    for name, (operand, _) in operands.items():
        layout = operand.layout
        if layout is None or layout.kind != "address":
            continue
        expected: Cells = {}
        for lane in range(layout.threads):
            place = operand.coords(lane)
            if place is not None:
                *line, last = map(str, place)
                expected["", " ".join(line), last] = (f"T{lane}", "")
        assert read_picture(outputs[shown[name]]) == expected, name
        seen += 1
    return seen


def check_continuation(layout: Layout, picture: str, width: int) -> None:
    """Check what a picture of the first columns says about the others."""
    words = re.sub(r"</text>\s*<text[^>]*>", " ", picture)  # a note on several lines
    said = re.search(r"(\d+) columns? further on the same thread has the element numbered (\d+) higher", words)
    assert said is not None
    period, step = int(said[1]), int(said[2])
    assert period <= width
    where = {(lane, i): (place["row"], place["col"]) for lane, i, place in places(layout)}
    for (lane, i), (row, col) in where.items():
        assert where.get((lane, i + step), (row, col + period)) == (row, col + period)


def places(layout: Layout) -> Iterator[tuple[int, int, dict[str, int]]]:
    """``(lane, i, place)`` of every element; the place has a number for each axis."""
    points = {name: np.array(column) for name, column in domain(layout.map.inputs).items()}
    at = {name: np.broadcast_to(column, points["i"].shape).tolist() for name, column in layout.map.apply(points).items()}
    for lane, i, *numbers in zip(points["lane"].tolist(), points["i"].tolist(), *at.values(), strict=True):
        yield lane, i, dict(zip(at, numbers, strict=True))


def test_brackets_show_the_windows_of_a_sparse_a(shown: dict[str, str], outputs: dict[str, str], operands: Operands) -> None:
    sparse = {name: operand for name, (operand, _) in operands.items() if operand.sparsity is not None}
    assert sparse
    for name, operand in sparse.items():
        brackets = re.findall(r'class="x" x="\d+" y="-21">(\d+)' + _DASH + r"(\d+)<", outputs[shown[name]])
        windows = {operand.window(lane, i) for lane in range(32) for i in range(operand.elements)}
        assert {(int(first), int(last)) for first, last in brackets} == windows, name


def test_pictures_show_the_metadata(shown: dict[str, str], outputs: dict[str, str], operands: Operands) -> None:
    for name, (operand, instruction) in operands.items():
        if operand.kind != "metadata":
            continue
        metadata = instruction.metadata
        expected: Cells = {}
        for selector in range(metadata.selectors):
            for row in range(metadata.rows):
                for chunk in range(metadata.chunks):
                    lane, bit, width = metadata.locate(row, chunk, selector)
                    head = f"selector {selector}" if metadata.selectors > 1 else ""
                    expected[head, str(row), str(chunk)] = (f"T{lane}", f"[{bit + width - 1}:{bit}]")
        assert read_picture(outputs[shown[name]]) == expected, name


def test_pictures_show_the_scale_factors(shown: dict[str, str], outputs: dict[str, str], operands: Operands) -> None:
    seen = 0
    for name, (operand, instruction) in operands.items():
        layout = operand.layout
        if layout is None or layout.kind != "scale":
            continue
        scales = instruction.scales(operand.of)
        expected: Cells = {}
        for thread_id, byte_id in itertools.product(scales.thread_ids, scales.byte_ids):
            for row, block in itertools.product(range(scales.rows), range(scales.blocks)):
                lane, byte = scales.locate(row, block, byte_id=byte_id, thread_id=thread_id)
                expected[f"byte-id {byte_id}, thread-id {thread_id}", str(row), str(block)] = (f"T{lane}", f"byte {byte}")
        assert read_picture(outputs[shown[name]]) == expected, name
        seen += 1
    assert seen


def test_storage_pictures_are_sparse_storage(catalog: Catalog, outputs: dict[str, str]) -> None:
    drawn = [text for path, text in outputs.items() if path.startswith("pictures/sparsity_")]
    assert len(drawn) == len({(entry.chunk, entry.kept, entry.unit) for entry in catalog.database.spec.granularities})
    for text in drawn:
        cells = read_picture(text)
        heads = {head for head, _, _ in cells}
        assert heads == {"a row of the matrix", "the row as it is stored", "its metadata"}
        full = {int(col): top for (head, _, col), (top, _) in cells.items() if head == "a row of the matrix"}
        packed = {int(col): top for (head, _, col), (top, _) in cells.items() if head == "the row as it is stored"}
        assert [packed[index] for index in range(len(packed))] == [full[col] for col in sorted(full) if full[col] != "0"]
        assert len(packed) * 2 == len(full)
        assert all(value in ("0", f"x{col}") for col, value in full.items())
        fields = {col: lines for (head, _, col), lines in cells.items() if head == "its metadata"}
        for index, (bits, (field, _)) in enumerate(fields.items()):
            assert bits == f"[{4 * index + 3}:{4 * index}]"
            places = [int(field, 2) & 3, int(field, 2) >> 2]  # two quarters of the chunk, whatever its elements
            chunk = len(full) // len(fields)
            kept = {quarter * chunk // 4 + part for quarter in places for part in range(max(chunk // 4, 1))}
            assert {col % chunk for col in range(index * chunk, index * chunk + chunk) if full[col] != "0"} == kept


def test_atom_pictures_are_the_swizzles(catalog: Catalog, outputs: dict[str, str]) -> None:
    memory = catalog.database.spec.shared_memory
    assert memory is not None
    for swizzle in memory.swizzles:
        for major in ("k", "mn") if all(swizzle.atom_k) else ("mn",):
            cells = read_picture(outputs[f"pictures/swizzle_{swizzle.name}_{major}.svg"])
            matrix = {(int(row), int(col)): lines for (head, row, col), lines in cells.items() if head == "in the matrix"}
            memory_of = {int(row) + int(col): lines[0] for (head, row, col), lines in cells.items() if head == "in shared memory"}
            assert len(matrix) == len(memory_of) == swizzle.atom_mn[1] * swizzle.bytes // 16
            across = swizzle.atom_k if major == "k" else swizzle.atom_mn
            said = f"an atom of {across[0]}{rest.TIMES}{across[1]} units"
            assert said in outputs[f"pictures/swizzle_{swizzle.name}_{major}.svg"]
            for (row, unit), (name, offset) in matrix.items():
                address = row * swizzle.bytes + 16 * unit
                atom = 32 if "ATOM_32B" in swizzle.tma else 16
                place = address ^ (address >> 7) % (swizzle.bytes // atom) * atom
                assert (name, int(offset)) == (f"{row},{unit}", place)
                assert memory_of[place] == name


def test_pictures_of_canonical_layouts_lead_to_each_byte(catalog: Catalog, outputs: dict[str, str]) -> None:
    memory = catalog.database.spec.shared_memory
    assert memory is not None
    for layout in memory.layouts:
        mode = next(each for each in memory.swizzles if each.name == layout.swizzles[0])
        text = outputs[f"pictures/canonical_{mode.name}_{layout.majorness.lower()}.svg"]
        lbo, sbo = map(int, re.findall(r"LBO (\d+), SBO (\d+)", text)[0])
        cells = read_picture(text)
        matrix = {(int(row), int(col)): int(top) for (head, row, col), (top, _) in cells.items() if head == "in the matrix"}
        held = {int(row) + int(col): top for (head, row, col), (top, _) in cells.items() if head == "in shared memory"}
        assert len(matrix) == len(held) == 2 * layout.lines * 2 * mode.bytes // 16
        for (line, unit), place in matrix.items():
            x, k = (line, 16 * unit) if layout.majorness == "K" else (16 * unit, line)
            names = {"x": x, "k": k, "lbo": lbo, "sbo": sbo, "span": mode.bytes}
            moved = names | {"address": formula.evaluate(formula.parse(layout.offset), names), "base_offset": 0}
            assert place == formula.evaluate(formula.parse(mode.formula or memory.swizzle_formula), moved)
            assert held[place] == f"{line},{unit}"


def test_pictures_are_well_formed_and_self_contained(outputs: dict[str, str]) -> None:
    for path, text in outputs.items():
        if path.endswith(".svg"):
            root = ET.fromstring(text)
            width, height = int(root.get("width") or 0), int(root.get("height") or 0)
            assert root.get("viewBox") == f"0 0 {width} {height}"
            assert root.find(f"{_SVG}title") is not None, path
            outside = [
                value for element in root.iter() for key, value in element.attrib.items() if key.endswith("href") and value[0] != "#"
            ]
            assert not outside, path


def test_every_picture_is_on_a_page(outputs: dict[str, str]) -> None:
    used = {name for text in outputs.values() for name in re.findall(r"figure:: \S*(pictures/\S+)", text)}
    assert used == {path for path in outputs if path.endswith(".svg")}


def test_the_reference_is_small(outputs: dict[str, str]) -> None:
    assert sum(len(text.encode()) for text in outputs.values()) < _MOST_BYTES


def test_pages_have_what_the_spec_has(catalog: Catalog, outputs: dict[str, str], groups: list[FormGroup]) -> None:
    numbered = elsewhere(catalog.database.spec)
    for group in groups:
        text = outputs[f"{group.path}.rst"]
        lists = short_forms.every_list(line.strip().rstrip(";") for line in text.splitlines() if line.endswith(";"))
        for instruction in group.members:
            statements = (*instruction.undefined(), *instruction.uniform(), *instruction.notes())
            for said in (*(one.text for one in statements), *(one.text for one in instruction.semantics())):
                assert cited(rest.text(said), numbered) in text, group.path
            for form in instruction.forms:
                assert form.syntax in lists, group.path
                for operand in form.operands:
                    assert f'"``{operand.name}``","{rest.text(operand.title)}"' in text, group.path
    for erratum in catalog.database.spec.errata:
        assert cited(rest.text(erratum.holds), numbered) in outputs["errata.rst"]


def test_every_instruction_has_a_page(catalog: Catalog, groups: list[FormGroup], outputs: dict[str, str]) -> None:
    """Each is on a page of its family and shape; the address that its type gives is that page's, or leads to one."""
    pages: dict[str, FormGroup] = {}
    for group in groups:
        for path in (group.path, *group.aliases):
            assert pages.setdefault(path, group) is group
        aliases = [*group.aliases, *([group.family] if form_groups.alone(group, groups) else [])]
        assert f"\n:aliases: {' '.join(aliases)}\n" in outputs[f"{group.path}.rst"] or not aliases
        assert {(one.family, one.variant.shape_label) for one in group.members} == {(group.family, group.own[0].variant.shape_label)}
    for instruction in catalog.all():
        assert instruction in pages[links.page(instruction)].members
    assert len({group.bits for group in groups if group.family == "mma"}) > 4


def test_pages_say_what_an_instruction_does(groups: list[FormGroup], outputs: dict[str, str]) -> None:
    for group in groups:
        before = outputs[f"{group.path}.rst"].partition("\nVariants")[0]
        for instruction in group.members:
            assert f"\n   {operation(instruction).statement(instruction)}\n" in before


def test_the_guide_to_the_headers_lists_every_header_that_packs(root: Path, outputs: dict[str, str]) -> None:
    headers = {path.name for path in (root / "generated" / "include" / "ptxmma").glob("*_pack.h")}
    assert headers
    assert set(re.findall(r"(\w+_pack\.h)", outputs["headers.txt"])) == headers


def test_errata_are_on_the_pages_that_they_concern(catalog: Catalog, groups: list[FormGroup], outputs: dict[str, str]) -> None:
    """Those of single forms on their pages, those of a whole family on its own."""
    for erratum in catalog.database.spec.errata:
        link = f"<{rest.label('erratum', erratum.id)}>"
        concerned = {group.path for group in groups if erratum.when and any(erratum in one.errata() for one in group.members)}
        assert concerned or not erratum.when, erratum.id
        concerned |= {group.path for group in groups if form_groups.alone(group, groups) and erratum.family == group.family}
        assert {group.path for group in groups if link in outputs[f"{group.path}.rst"].partition("\nErrata\n")[2]} == concerned
        own = outputs.get(f"{erratum.family}.rst", "")
        assert not own or (link in own) == (not erratum.when)


def rows(text: str) -> list[list[str]]:
    """The cells of every table of a page."""
    written = re.findall(r'^ {3}((?:"(?:[^"]|"")*",?)+)$', text, re.M)
    return [row for line in written for row in csv.reader(io.StringIO(line))]


def test_pages_have_what_chips_were_seen_to_do(groups: list[FormGroup], outputs: dict[str, str]) -> None:
    shown = 0
    for group in groups:
        table = rows(outputs[f"{group.path}.rst"].partition("Sums as observed on chips")[2].partition("\nEvery requirement")[0])
        for promise in {id(each): each for one in group.members for each in one.semantics()}.values():
            for seen in promise.observed:
                (row,) = (row for row in table if row[0] == seen.chip and row[2] == rest.text(seen.text))
                assert rest.condition(promise.when) in row[1]
                assert not seen.fraction_bits or row[3] == str(seen.fraction_bits)
                shown += 1
    assert shown


def test_the_page_of_sparsity_says_which_field_compression_writes(catalog: Catalog, outputs: dict[str, str]) -> None:
    spec = catalog.database.spec
    sections = re.split(r"^(?=\d\\:\d\n~+$)", outputs["sparsity.txt"].partition("Who holds the metadata")[0], flags=re.M)[1:]
    tables = {section.partition("\n")[0].replace("\\", ""): rows(section) for section in sections}
    assert tables.keys() == {pattern.name for pattern in spec.granularities}
    for pattern in spec.granularities:
        (choice,) = (entry for entry in spec.choices if entry.units == pattern.units)
        said: dict[int, int] = {}
        for field, kept, written in tables[pattern.name][1:]:
            for units in filter(str.isascii, written.split("; ")):  # a dash: never written
                numbers = [] if units == "none" else units.split(" and ")
                assert set(numbers) <= set(kept.split(", ")), "what is not zero is kept"
                said[sum(1 << int(unit) for unit in numbers)] = int(field.strip("`"), 2)
        assert said == {int(units, 2): int(field, 2) for units, field in choice.fields.items()}


def test_pages_name_what_libraries_call_it(catalog: Catalog, outputs: dict[str, str]) -> None:
    """The dtype of each type, the tensor map's mode of each swizzle, the formats of block-scaled matrices."""
    spec = catalog.database.spec
    assert spec.shared_memory
    dtypes = {row[0]: row[1] for row in rows(outputs["types.rst"].partition("The dtype of NumPy")[2].partition("Containers\n---")[0])[1:]}
    assert dtypes == {f"``{one.name}``": f"``{one.numpy}``" for one in spec.types.elements}
    modes = {row[0]: row[2] for row in rows(outputs["swizzles.rst"]) if len(row) == 3 and "TENSOR" in row[2]}
    assert modes == {one.title: f"``{one.tma}``" for one in spec.shared_memory.swizzles}
    section = outputs["block_scaling.txt"].partition("Formats with a name\n")[2].partition("Layout of the scale factors")[0]
    formats = {row[0]: tuple(row[2:5]) for row in rows(section)[1:]}
    assert formats == {f"``{one.name}``": (f"``{one.element}``", f"``{one.scale}``", str(one.block)) for one in spec.block_formats}


def _chip(cell: str) -> str:
    """The target of a link: ``:ref:`sm_90 <target-sm-90>```."""
    return cell.removeprefix(":ref:`").partition(" ")[0]


def test_the_targets_say_what_accepts_what(catalog: Catalog, groups: list[FormGroup], outputs: dict[str, str]) -> None:
    """For every instruction one column of its page has the first version of each chip; letters name the suffixes that it needs."""
    gpus = {name: gpu.target for gpu in catalog.database.spec.gpus for name in gpu.names}
    for group in groups:
        head, *body = rows(outputs[f"{group.path}.rst"].partition("\nTargets\n")[2].partition("\nOperands\n")[0])
        columns = [{_chip(row[0]): row[place] for row in body} for place in range(2, len(head))]
        for instruction in group.members:
            accepted: dict[str, list[tuple[Version, str]]] = {}
            for target, version in instruction.accepted_by().items():
                accepted.setdefault(target.rstrip("af"), []).append((version, target[-1] if target[-1] in "af" else ""))
            expected = {}
            for number, versions in accepted.items():
                plain = [str(version) for version, suffix in versions if not suffix]
                expected[number] = (
                    plain[0] if plain else ", ".join(f"{version}{rest.SPACE}{suffix}" for version, suffix in sorted(versions))
                )
            assert expected in [{number: cell for number, cell in column.items() if cell != rest.NOTHING} for column in columns], group.path
        for row in body:
            for name in filter(None, row[1].partition(": ")[2].partition(" and ")[0].split(", ")):
                assert gpus[name].rstrip("af") == _chip(row[0])


def test_forms_say_where_assemblers_differ_from_the_manual(groups: list[FormGroup], outputs: dict[str, str]) -> None:
    """A documented form that an observation changes names the manual's version below its own; no other page has the mark."""
    marked = 0
    for group in groups:
        text = outputs[f"{group.path}.rst"]
        differing = [
            one
            for one in group.members
            if one.documented
            and any(seen.ptx and seen.ptx not in {rule.ptx for rule in one.variant.requires} for seen in one.variant.observed)
        ]
        stated = {f"\u2020 PTX {max(Version(rule.ptx) for rule in one.variant.requires if rule.ptx)}, " for one in differing}
        assert all(version in text for version in stated), group.path
        assert bool(differing) <= ("\u2020" in text)
        marked += bool(differing)
    assert marked


def test_the_page_of_targets_says_where_releases_differ(catalog: Catalog, outputs: dict[str, str]) -> None:
    spec = catalog.database.spec
    for said in (*(target.releases for target in spec.targets), *(version.note for version in spec.isa_versions)):
        assert rest.text(said) in outputs["targets.rst"]


def test_one_page_has_every_form(catalog: Catalog, outputs: dict[str, str]) -> None:
    lines = re.findall(r"^   ([a-z]\w*[.{]\S+)(?:  \((N) = .*\))?$", outputs["all_instructions.rst"], re.M)
    patterns = []
    for line, ranges in lines:
        text = re.sub(r"[.:]", r"\\\g<0>", re.sub("(?<=[nx])N(?=[.k}|])", r"\\d+", line) if ranges else line)
        text = re.sub(r"\{=\w+\}", r"\\w+", text)
        patterns.append(re.compile(with_alternatives(text)))
    spellings = [instruction.canonical for instruction in catalog.all()]
    matched = {spelling: [pattern for pattern in patterns if pattern.fullmatch(spelling)] for spelling in spellings}
    assert not [spelling for spelling, matches in matched.items() if not matches]
    assert {pattern.pattern for matches in matched.values() for pattern in matches} == {pattern.pattern for pattern in patterns}


def with_alternatives(text: str) -> str:
    """``{a|b}`` as a regular expression, ``{.a}`` and ``{.{a|b}}`` as such that may be left out."""
    text = re.sub(r"\{\\\.\{([^{}]*)\}\}", r"(?:\\.(?:\1))?", text)
    text = re.sub(r"\{\\\.([^{}]*)\}", r"(?:\\.\1)?", text)
    return re.sub(r"\{([^{}]*)\}", r"(?:\1)", text)


# --- the parts --------------------------------------------------------------------------------------------------------------


def test_formulas_mean_the_same_with_sizes_put_in(catalog: Catalog, operands: Operands) -> None:
    spec = catalog.database.spec
    checked = set()
    for operand, instruction in operands.values():
        layout = operand.layout
        if layout is None or layout.kind != "fragment":
            continue
        entry = spec.register_layouts[layout.entry]
        plan = layouts.plan(spec, instruction.variant, operand.name)
        assert plan is not None
        written = mathematics.specialise(entry.let, entry.at, plan.variables)
        if (repr(written), repr(layout.map)) in checked:
            continue
        checked.add((repr(written), repr(layout.map)))
        inputs = {name: np.array(column) for name, column in domain(layout.map.inputs).items()}
        expected = layout.map.apply(inputs)
        values: dict[str, formula.Value] = {
            "i": inputs["i"].tolist(),
            "lane": (inputs["lane"] % 32).tolist(),
            "warp": (inputs["lane"] // 32).tolist(),
        }
        for name, text in written.let.items():
            values[name] = formula.evaluate(formula.parse(text), values)
        for name, cases in written.cases.items():
            parsed = [(formula.parse(case.when) if case.when else None, formula.parse(case.value)) for case in cases]
            assert formula.evaluate_cases(parsed, values, len(inputs["i"])) == expected[name].tolist(), (layout.name, name)
    assert checked


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from("123")), unique=True))
def test_boxes_cover_exactly_their_points(points: list[tuple[str, str, str]]) -> None:
    drawn = boxes((point, point) for point in points)
    covered = [(a, b, c) for (first, second, third), _ in drawn for a in first for b in second for c in third]
    assert sorted(covered) == sorted(points)
    assert sorted(member for _, members in drawn for member in members) == sorted(points)


_PIECES = st.sampled_from(
    [*"abA1 _*`:|<>[].-+#@()/\\&;,'\"=~^$%!?{}§", "http://x", "::", "..", "__", ":a:", "1. ", "a) ", "- ", ">>> ", "|a|"]
)


@given(st.lists(_PIECES, min_size=1, max_size=12).map(lambda pieces: " ".join("".join(pieces).split())).filter(bool))
def test_text_means_itself(plain: str) -> None:
    for shown in (rest.text(plain), rest.code(plain)):
        tree = publish_doctree(f"- {shown}\n", settings_overrides={"report_level": 1, "halt_level": 1})
        assert tree.astext().strip() == plain
        (item,) = tree.findall(docutils.nodes.list_item)
        assert [type(child) for child in item.children] == [docutils.nodes.paragraph]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((), ""),
        ((3,), "3"),
        ((-1, 1), "-1, 1"),
        ((0, 1, 2, 3), "0..3"),
        ((0, 2), "0, 2"),
        ((8, 16, 24, 32, 48, 64, 80), "8..32 step 8, 48..80 step 16"),
        (range(1 << 40), f"0..{(1 << 40) - 1}"),
    ],
)
def test_numbers(values: tuple[int, ...], shown: str) -> None:
    assert rest.numbers(values) == shown


def test_every_picture_of_a_layout_opens_the_explorer_with_its_instruction(
    catalog: Catalog, outputs: dict[str, str], groups: list[FormGroup]
) -> None:
    opened = 0
    for group in groups:
        text = outputs[f"{group.path}.rst"]
        for picture, state in re.findall(
            r"figure:: \.\./(pictures/(?!tensor_)\S+)\n(?: +:.*\n)*? +:target: \.\./\.\./explorer\.html#i=(\S+)", text
        ):
            instruction = catalog.find(state)
            operands = [operand for operand in instruction.operands if operand.layout is not None]
            drawn = re.sub(r"<!--.*?-->\n", "", outputs[picture])
            assert any(pictures.operand(operand) == drawn for operand in operands), (group.path, state)
            assert instruction in group.members
            opened += 1
        assert text.count("figure:: ../pictures/") == text.count(":target: ../../explorer.html#i="), group.path
        assert text.count("figure:: ") == text.count(":loading: lazy")
    assert opened > 100


def test_examples_in_python_say_what_the_library_says(groups: list[FormGroup], outputs: dict[str, str]) -> None:
    checked = 0
    for group in groups:
        section = outputs[f"{group.path}.rst"].partition("code-block:: pycon\n")[2].partition("\nRules\n")[0]
        example = doctest.DocTestParser().get_doctest(section, {}, group.path, None, 0)
        assert not doctest.DocTestRunner().run(example).failed
        checked += len(example.examples)
    assert checked > 300


def cuda_blocks(page: str) -> list[str]:
    """The examples of a page in CUDA."""
    return [textwrap.dedent(block) for block in re.findall(r"\.\. code-block:: cuda\n\n((?:   .*\n|\n)+)", page)]


@pytest.mark.nvcc
def test_examples_in_cuda_compile(compiler: Nvcc, groups: list[FormGroup], outputs: dict[str, str], tmp_path: Path) -> None:
    """Every example, in a namespace of its own, for a target that accepts it; assemblers see the asm statements too."""
    sources: dict[str, tuple[set[str], list[str]]] = {}
    for number, group in enumerate(groups):
        blocks = cuda_blocks(outputs[f"{group.path}.rst"])
        assert len(blocks) == 2, group.path
        shown = form_page.chosen(group.own)
        assert all(shown.identifier in block or shown.canonical in block for block in blocks)
        target = next((one for one in _COMPILED if shown.accepted_by().get(one, Version("99")) <= compiler.ptx), None)
        if target is None:
            continue
        includes, bodies = sources.setdefault(target, (set(), []))
        for way, block in enumerate(blocks):
            includes.update(re.findall(r"^#include .*$", block, re.M))
            body = re.sub(r"^#include .*$", "", block, flags=re.M)
            bodies.append(f"namespace example_{number}_{way} {{\n{body}\n}}")
    assert sum(len(bodies) for _, bodies in sources.values()) > 100
    for target, (includes, bodies) in sources.items():
        source = "\n".join([*sorted(includes), *bodies])
        compiler.build(source, "-rdc=true", "-cubin", f"-arch={target}", "-o", f"{target}.cubin", folder=tmp_path)


def test_every_picture_opens_the_explorer(outputs: dict[str, str]) -> None:
    for path, text in outputs.items():
        assert text.count("figure:: ") == len(re.findall(r":target: (?:\.\./)*explorer\.html", text)), path


def test_pages_of_products_list_what_is_legal(catalog: Catalog, groups: list[FormGroup], outputs: dict[str, str]) -> None:
    """Every M and N that an opcode may have, with the rules of that page alone."""
    for group in (group for group in groups if group.own[0].operation == resolution.OPERATION):
        text = outputs[f"{group.path}.rst"]
        section = text[text.index("Kinds\n---") : text.index("Operands in tensor memory\n---")]
        kinds = {str(one.qualifiers["kind"]) for one in group.own}
        assert set(re.findall(r"kind::\w+", section)) <= kinds
        sizes = {
            (product.sizes["m"], product.sizes["n"])
            for one in group.own
            for product in resolution.every(catalog.database.spec, one.variant)
        }
        listed: set[tuple[int, int]] = set()
        for of_m, of_n in re.findall(r',"([\d, ]+)","([\d, …]+)","', section):
            columns = {number for each in product_numbers(of_n) for number in each}
            listed |= {(int(m), n) for m in of_m.split(", ") for n in columns}
        assert {m for m, _ in sizes} == {m for m, _ in listed}
        assert sizes <= listed


def test_the_table_of_kinds_lists_every_product(catalog: Catalog, groups: list[FormGroup], outputs: dict[str, str]) -> None:
    """Each product of an opcode that no limit narrows is in one row, and each row says products that are legal."""
    spec = catalog.database.spec
    assert spec.tensor_products is not None
    listed: set[tuple[str, ...]] = set()
    legal: set[tuple[str, ...]] = set()
    for group in (group for group in groups if group.own[0].operation == resolution.OPERATION):
        header, *cells = rows(
            outputs[f"{group.path}.rst"].partition("\nKinds\n---")[2].partition("\n\nQualifiers")[0].partition(".. raw::")[0]
        )
        for row in cells:
            said = dict(zip(header, row, strict=True))
            names, (ab, ds, factors) = said["Kind"], (said.get(name, "") for name in ("A and B", "D", "Scale factors"))
            a, b = (re.findall(r"\w+", part) for part in (ab.partition("\u00d7")[0], ab.partition("\u00d7")[2] or ab))
            types = [
                *itertools.product(map(str.strip, names.split("\n\n")), a, b, re.findall(r"\w+", ds), re.findall(r"\w+", factors) or [""])
            ]
            for column in (name for name in header if "cta_group" in name):
                for of_m, of_n in re.findall(r"M ([\d or]+), N ([\d, …]+)", said[column]):
                    sizes = {(m, str(n)) for m in of_m.split(" or ") for each in product_numbers(of_n) for n in each}
                    listed |= {(column.strip("`"), said["K"], *one, *size) for one in types for size in sizes}
        for one in group.own:
            name = " ".join(f"``.{value}``" for key, value in one.qualifiers.items() if value and key != "cta_group")
            if one.documented and not spec.tensor_products.fitting.limits(legal_products.facts_of(spec, one.variant)):
                legal |= {
                    (
                        one.qualifiers["cta_group"],
                        str(facts["k"]),
                        name,
                        *(str(facts.get(key, "")) for key in _KIND),
                        str(facts["m"]),
                        str(facts["n"]),
                    )
                    for product in resolution.every(spec, one.variant)
                    for facts in [dict(product.chosen)]
                }
    assert len(legal) > 1000
    assert listed == legal


#: The arguments of a product in the order of the table of kinds.
_KIND = ("atype", "btype", "dtype", "stype")


def product_numbers(text: str) -> Iterator[range | list[int]]:
    """The numbers of ``8, 16, 24, 32, 48, 64, … 256``: an ellipsis continues the step before it."""
    before: list[int] = []
    for part in text.split(", "):
        if part.startswith("…"):
            yield range(before[-2], int(part[2:]) + 1, before[-1] - before[-2])
        else:
            before.append(int(part))
    yield before
