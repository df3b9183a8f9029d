"""The explorer in a browser, from ``file://`` and without a network: every feature works and agrees with the library."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import itertools
import json
import re
import shutil
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxmma
from commands import invoke
from ptxmma import paths
from ptxmma.catalog.conversion import convert
from ptxmma.catalog.conversion.exchanges import TEXTS
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.instructions.user_names import target_named
from ptxmma.catalog.names.links import explorer
from ptxmma.cli.layout_tables import cell_text
from ptxmma.generator.emit import javascript
from ptxmma.generator.emit.docs import tensor_page
from ptxmma.matrices.arrangements import arrangement, names
from ptxmma.matrices.descriptors import Descriptor, suspicions
from ptxmma.matrices.pictures import colour
from ptxmma.matrices.shared_memory import SharedLayout
from ptxmma.matrices.tracing import trace
from test_questions import QUESTIONS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_MISSING = "Chromium" if CHROMIUM is None else "Playwright" if importlib.util.find_spec("playwright") is None else ""
pytestmark = pytest.mark.skipif(bool(_MISSING), reason=f"{_MISSING} is not installed")

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"
_LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
_BITS = "0x4000004000010040"
_PRODUCT = "tcgen05.mma.cta_group::1.kind::f16"
_FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
_STORE = "stmatrix.sync.aligned.m8n8.x4.shared.b16"
_TENSOR_LOAD = "tcgen05.ld.sync.aligned.32x32b.x32.b32"

#: The addresses that a page may load without a network.
_LOCAL = ("file:", "data:", "blob:")


@pytest.fixture(scope="module")
def address(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> str:
    page = tmp_path_factory.mktemp("explorer") / "explorer.html"
    (text,) = (output.text for output in javascript.emit(catalog) if output.path.endswith(".html"))
    page.write_text(text, encoding="utf-8")
    return page.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens pages; a message in the log or a request to a network is a failure."""
    faults: list[str] = []
    contexts = []

    def opened(state: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(5_000)
        contexts.append(context)
        context.add_init_script(path=Path(__file__).parent / "javascript" / "probes.js")
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.extend([request.url] * (not request.url.startswith(_LOCAL))))
        page.goto(f"{address}#{state}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page()


def _go(page: Any, state: str) -> None:
    """Another state of an open page, as if its link were followed."""
    page.evaluate("state => { location.hash = state; }", state)
    page.wait_for_function("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")


def _state(page: Any, key: str) -> str:
    state: str = page.evaluate("key => explorer.store.state[key]", key)
    return state


def _shown(catalog: Catalog) -> list[Instruction]:
    """An instruction for each set of layouts."""
    by_kinds: dict[tuple[object, ...], Instruction] = {}
    for instruction in catalog.all():
        operands = [operand for operand in instruction.operands if operand.layout is not None]
        layouts = ((operand.name, operand.layout, operand.registers) for operand in operands)
        key = tuple((name, layout.name, layout.growing or registers) for name, layout, registers in layouts if layout is not None)
        if key:
            by_kinds.setdefault(key, instruction)
    return list(by_kinds.values())


@pytest.mark.parametrize(
    ("spelling", "cited"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "PTX ISA 9.1, section 9.7.14.5.14 [9.4: 9.7.16.5.14]"),
        ("tcgen05.mma.cta_group::1.kind::f16", "PTX ISA 9.1, section 9.7.16.10.9.1 [9.4: 9.7.18.10.10.1]"),
        ("tcgen05.mma.cta_group::1.kind::ti16", "PTX ISA 9.4, 9.7.18.10.10.1"),
    ],
)
def test_an_instruction_cites_both_releases(open_page: Callable[..., Any], spelling: str, cited: str) -> None:
    assert open_page(f"i={spelling}").get_by_text(cited, exact=True).is_visible()


def test_every_layout_is_drawn_as_the_library_has_it(catalog: Catalog, page: Any) -> None:
    shown = [*_shown(catalog), catalog.find(_WGMMA)]
    seen = set()
    for instruction, tables in zip(shown, page.evaluate("probe.cells", [each.canonical for each in shown]), strict=True):
        drawn = set()
        for id_, cells in tables.items():
            name, _, number = id_.partition("/")
            if name not in names(instruction):  # in shared memory, without a lane
                assert all(cell == "  " for row in cells for cell in row)
                continue
            table = arrangement(instruction, name)
            if number:  # one of several tables, by the first axis beside rows and columns
                table = arrangement(instruction, name, **{next(iter(table.fixed)): int(number)})
            drawn.add(name)
            seen.add(table.layout.name)
            labels = [
                [
                    f"T{place.lane} {'' if table.layout.kind == 'address' else cell_text(place, table)} {colour(place.lane)}"
                    for place in line
                ]
                for line in table.places(range(table.rows), range(table.cols))
            ]
            assert cells == labels, (instruction.canonical, id_)
        alike = {arrangement(instruction, name).layout.name for name in drawn}
        assert all(arrangement(instruction, name).layout.name in alike for name in names(instruction)), instruction.canonical
    assert seen == {layout.name for layout in catalog.database.layouts}


def test_it_is_light_and_one_file(address: str, page: Any) -> None:
    text = Path(page.evaluate("() => decodeURIComponent(location.pathname)")).read_text(encoding="utf-8")
    assert len(text.encode()) < 330_000  # as make bench counts
    assert len(gzip.compress(text.encode())) < 90_000
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert page.title() == f"{_MMA} · ptxmma explorer"
    assert address.startswith("file:")


# --- finding ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (_SPARSE, {"i": _SPARSE}),
        ("m16n8k16 bf16", {"i": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"}),
        ("m64n129k16 tf32", {}),
        (f"  @p {_MMA} {{%f0, %f1, %f2, %f3}}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {{%f0, %f1, %f2, %f3}};", {"i": _MMA}),
        ('asm volatile("mma.sync.aligned.m16n8k16.row.col"\n   ".f32.f16.f16.f32 {%0, %1, %2, %3}, {%4}, {%5}, {%6};\\n"', {"i": _MMA}),
        ("ptxmma::mma_m16n8k16_f32_f16_f16_f32(d, a, b, c);", {"i": _MMA}),
        ("SM80_16x8x16_F32F16F16F32_TN", {"i": _MMA}),
        ("cute::SM90::GMMA::MMA_64x64x16_F32BF16BF16_SS", {"i": _WGMMA}),
        ("SM90_64x64x16_F32BF16BF16_RS", {"i": _WGMMA}),
        ("sm_90a", {"target": "sm_90a"}),
        ("NVIDIA H100 PCIe", {"target": "sm_90a"}),
        ("rtx 5090", {"target": "sm_120a"}),
        ("4090 fp8 m16n8k32", {"target": "sm_89"}),
        ("compute_90 m16n8k8 tf32", {"target": "sm_90", "i": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"}),
        ("fp8 m16n8k32 A[9][3]", {"at": "a:9,3"}),
        (f"{_WGMMA} lane 77", {"i": _WGMMA, "at": "lane:77"}),
        ("0x4000004000010040", {"v": "memory", "bits": "0x4000004000010040"}),
        (f"{_PRODUCT}.collector::a::fill", {"i": _PRODUCT, "v": "tensor"}),
        (f"@p {_PRODUCT}.collector::a::lastuse.ashift [%r0], [%r1], %rd1, %r2, %p1;", {"i": f"{_PRODUCT}.ashift"}),
        ("tcgen05.mma.ws.cta_group::1.kind::i8.collector::b2::use [d], a, b, i, p;", {"i": "tcgen05.mma.ws.cta_group::1.kind::i8"}),
        ("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%r0, %r1}, [%r2];", {"i": "tcgen05.ld.sync.aligned.16x64b.x2.b32", "v": "matrices"}),
        ("ptxmma::tcgen05_mma_cta_group_1_kind_f16<ptxmma::hint::collector_a_fill>(d, a, b, i, true);", {"i": _PRODUCT}),
        (f"{_PRODUCT} D[37][20]", {"i": _PRODUCT, "v": "tensor", "operand": "", "at": "d:37,20"}),
    ],
)
def test_the_box_understands(page: Any, text: str, state: dict[str, str]) -> None:
    page.get_by_role("combobox", name="Find an instruction").fill(text)
    if not state:
        assert "Nothing has all of these words" in page.get_by_role("listbox").inner_text()
        return
    page.keyboard.press("Enter")
    assert {key: _state(page, key) for key in state} == state


def test_the_box_answers_questions(page: Any) -> None:
    """The first answer to a question is the answer of Python and the command; a sample of the questions that are typed in one line."""
    asked = [text for text in QUESTIONS["instructions"] if re.search(r"^[a-z0-9.: _]+$", text)][::7]
    box, first = page.get_by_role("combobox", name="Find an instruction"), page.get_by_role("option").first.locator(".spelling")
    for text in asked:
        box.fill(text)
        assert first.inner_text() == QUESTIONS["instructions"][text], text


@pytest.mark.parametrize(
    ("text", "answer", "note", "state"),
    [
        ("C7510", "C7510", "wgmma pipeline crossing function boundary", {}),
        ("LBO", "leading dimension byte offset (LBO)", "Matrix descriptor of wgmma, bits 29:16", {}),
        ("64x32 bf16 tile 64B swizzle", "64 x 32 bf16, K-major", "4096 bytes to expect", {"v": "memory", "image": "bf16,K,64B,64,32"}),
        ("umma descriptor 64x64 e4m3", "64 x 64 e4m3, K-major", "4096 bytes to expect", {"v": "memory", "family": "tcgen05"}),
        ("tma box 64x32 half SW128", "32 x 64 f16, K-major", "4096 bytes to expect", {"v": "memory", "image": "f16,K,128B,32,64"}),
        ("idesc 0x8400490", "Descriptor 0x8400490", "kind::f16", {"descriptor": "tcgen05_instruction,kind::f16,0x8400490"}),
    ],
)
def test_the_box_answers_for_more_than_instructions(page: Any, text: str, answer: str, note: str, state: dict[str, str]) -> None:
    page.get_by_role("combobox", name="Find an instruction").fill(text)
    first = page.get_by_role("option").first
    assert first.locator(".spelling").inner_text().replace("\N{MULTIPLICATION SIGN}", "x") == answer
    assert note in first.locator(".note").inner_text()
    page.keyboard.press("Enter")
    assert {key: _state(page, key) for key in state} == state
    assert not "".join(page.locator("[role=alert]").all_inner_texts())


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("m16n8k16 bf16 d 9 3", "m16n8k16 bf16", "d:9,3"),
        ("which lane holds A(9, 3) of m16n8k16 bf16", "m16n8k16 bf16", "a:9,3"),
        ("row 9 col 3 of A m16n8k16 bf16", "m16n8k16 bf16", "a:9,3"),
        ("m16n8k16 bf16 accumulator [9][3]", "m16n8k16 bf16", "d:9,3"),
        ("m16n8k64 nvfp4 SFA 3 0", "m16n8k64 nvfp4", "scale-a:3,0"),
        ("scale factors of B 0 1 in m16n8k64 nvfp4", "m16n8k64 nvfp4", "scale-b:0,1"),
        ("mma.sp m16n8k32 f16 metadata[3][1]", "mma.sp m16n8k32 f16", "metadata:3,1"),
        ("thread 5 of m16n8k16 f16", "m16n8k16 f16", "lane:5"),
        ("layout of metadata of mma.sp m16n8k32 f16", "mma.sp m16n8k32 f16", ""),
    ],
)
def test_the_box_finds_elements_by_the_names_of_operands(page: Any, text: str, words: str, at: str) -> None:
    box = page.get_by_role("combobox", name="Find an instruction")
    box.fill(text)
    box.press("Enter")
    assert (_state(page, "i"), _state(page, "at")) == (ptxmma.instruction(words).canonical, at)
    assert not any(page.locator("[role=alert]").all_inner_texts())


def test_the_box_says_why_an_answer_is_the_first(page: Any) -> None:
    page.get_by_role("combobox", name="Find an instruction").fill("m16n8k8 tf32")
    notes = page.get_by_role("option").locator(".note").all_inner_texts()
    assert "dense before sparse" in notes[0]
    assert "dense" not in "".join(notes[1:])


def test_a_name_of_several_targets_lists_them(catalog: Catalog, page: Any) -> None:
    page.get_by_role("combobox", name="Find an instruction").fill("blackwell")
    shown = [text.split(" ")[0] for text in page.get_by_role("listbox").get_by_role("option").all_inner_texts()]
    assert shown == [gpu.target for gpu in catalog.database.spec.gpus if gpu.architecture == "Blackwell"]


def test_names_of_chips_mean_what_the_command_takes_them_for(catalog: Catalog, page: Any) -> None:
    for gpu in catalog.database.spec.gpus:
        for name in gpu.names:
            page.get_by_role("combobox", name="Find an instruction").fill(name)
            option = page.get_by_role("listbox").get_by_role("option")
            assert option.count() == 1, name
            assert option.inner_text().startswith(f"{target_named(catalog.database.spec, name)} "), name


def test_answers_are_chosen_by_keys_and_by_pointer(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("wgmma m64n64k16 f16")
    options = page.get_by_role("listbox").get_by_role("option")
    assert options.count() > 1
    second = options.nth(1).locator(".spelling").inner_text()
    page.keyboard.press("ArrowDown")
    assert options.nth(1).get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert page.locator(".canonical").inner_text() == second
    page.keyboard.press("/")
    page.keyboard.type("stmatrix x2")
    options.first.click()
    assert page.locator(".canonical").inner_text().startswith("stmatrix.sync.aligned.m8n8.x2")


def test_the_parts_lead_to_the_instruction(catalog: Catalog, page: Any) -> None:
    page.get_by_label("Target", exact=True).select_option("sm_90a")
    page.get_by_label("Instruction", exact=True).select_option("wgmma.mma_async")
    page.get_by_label("Type of A", exact=True).select_option("e4m3")
    instruction = catalog.find(page.locator(".canonical").inner_text())
    assert (instruction.family, instruction.qualifiers["atype"]) == ("wgmma", "e4m3")
    slider = page.get_by_role("slider", name="N")
    slider.focus()
    before = instruction.extents["n"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert catalog.find(page.locator(".canonical").inner_text()).extents["n"] == before + 16
    assert slider.evaluate("element => element === document.activeElement")
    page.get_by_label("Instruction", exact=True).select_option("mma.sp")
    assert catalog.find(page.locator(".canonical").inner_text()).sparse
    page.get_by_label("Target", exact=True).select_option("sm_70")
    assert "sm_70" in catalog.find(page.locator(".canonical").inner_text()).accepted_by()


# --- conversions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "source", "target"),
    [
        ({"i": _FP8}, (_FP8, "d"), (_FP8, "a")),
        ({"i": _FP8, "order": "1"}, (_FP8, "d"), (_FP8, "a")),
        ({"i": _WGMMA, "as": _STORE}, (_WGMMA, "d"), (_STORE, "r")),
        ({"i": _LOAD, "as": _MMA, "into": "b", "turned": "1"}, (_LOAD, "r"), (_MMA, "b")),
    ],
)
def test_a_conversion_is_that_of_the_library(
    catalog: Catalog, page: Any, state: dict[str, str], source: tuple[str, str], target: tuple[str, str]
) -> None:
    """Each element, before and after, is in the thread and register that the library says."""
    tables = page.evaluate("probe.conversion", state)
    ours = convert(*(catalog.find(spelling).operand(name) for spelling, name in (source, target)), transpose="turned" in state)
    kind = page.locator(".conversion .notes strong").inner_text()
    if "order" in state:
        assert ours.permuted is not None
        ours = ours.permuted
    assert kind.lower() == TEXTS[ours.kind]
    for name, side in (("source", ours.source), ("target", ours.target)):
        threads, numbers = (sum(place.name != "i" for place in side.places), side.numbers)
        held: dict[tuple[str, int, int], tuple[int, int]] = {}
        for thread, i in itertools.product(range(1 << threads), range(1 << numbers)):
            at = side.coords(lane=thread % 32, warp=thread // 32, i=i)
            others = ", ".join(f"{axis} {at[axis]}" for axis in sorted(at) if axis not in ("row", "col"))
            held.setdefault((f"{name}/{others}" if others else name, at["row"], at["col"]), (thread, i))
        for (table, row, col), (thread, i) in held.items():
            part = f".{i % (1 << side.inside)}" if side.inside else ""
            assert tables[table][row][col] == [f"T{thread}", f"{side.name}{i >> side.inside}{part}"]
        assert {id_ for id_ in tables if id_.startswith(name)} == {table for table, _, _ in held}


def test_a_link_opens_a_conversion_and_an_element_shows_both_places(open_page: Callable[..., Any]) -> None:
    page = open_page(f"v=convert&i={_FP8}&as={_FP8}&at=target:2,5")
    assert page.get_by_role("tab", selected=True).inner_text() == "Convert"
    assert (
        re.sub(r"\s+", " ", page.locator("#view-convert .details").inner_text())
        == "[2][5] Is in thread 10, d1 Goes to thread 9, a0.1 Way another thread of the warp"
    )
    assert page.evaluate("probe.lit", "conversion") == {"source": [[2, 5]], "target": [[2, 5]]}
    page.locator("#view-convert").get_by_role("button", name="Changed").click()
    assert page.evaluate("probe.lit", "conversion") == {"source": [[2, 3]], "target": [[2, 5]]}
    assert f"ptxmma layout {_FP8} --operand d --as {_FP8} --as-operand a" in page.locator(".command code").inner_text()
    field = page.get_by_label("of instruction")
    field.fill(_STORE)
    field.press("Enter")
    assert _state(page, "as") == _STORE
    _go(page, f"v=convert&i={_PRODUCT}")
    assert "has no elements in registers" in page.locator(".conversion .notes").inner_text()


# --- matrices ---------------------------------------------------------------------------------------------------------------


def _middle(page: Any, id_: str, row: int, col: int) -> tuple[float, float]:
    """The place of an element in the window, after scrolling to it."""
    at = page.evaluate("probe.middle", [id_, row, col])
    return at["x"], at["y"]


def test_an_element_says_where_it_is(page: Any) -> None:
    details = page.locator(".matrices .details")
    page.mouse.move(*_middle(page, "a", 9, 3))
    assert details.get_by_role("heading", level=2).inner_text() == "A[9][3]"
    text = details.inner_text()
    assert "a1[31:16]" in text
    assert "row = ((i & 2) << 2) | (lane >> 2) = 9" in text
    assert "col = e * thread + slot + 4 * e * (register // 2)" in text
    page.mouse.move(5, 5)
    assert details.get_by_role("heading", level=2).inner_text() == "Point at an element"
    page.mouse.click(*_middle(page, "a", 9, 3))
    assert _state(page, "at") == "a:9,3"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert _state(page, "at") == "a:10,4"
    assert page.get_by_role("status").first.inner_text() == "A[10][4]: lane 10, register a1[15:0], element 2"
    page.keyboard.press("l")
    assert _state(page, "at") == "lane:10"
    assert "b0\n[4][2]\n[5][2]" in re.sub(r"\s+", "\n", details.inner_text())
    page.keyboard.press("Escape")
    assert _state(page, "at") == ""


@pytest.mark.parametrize("spelling", [_MMA, _SPARSE, _SCALED, _WGMMA])
def test_what_feeds_an_element_of_d_lights_up(catalog: Catalog, page: Any, spelling: str) -> None:
    instruction = catalog.find(spelling)
    _go(page, f"i={spelling}&at=d:9,3")
    lit = page.evaluate("probe.lit", "board")
    product = trace(instruction, 9, 3)
    assert lit["d"] == [[9, 3]]
    sources = [source for term in product.terms for source in term.b]
    assert {tuple(place) for place in lit["b"]} == {(source.row, source.col) for source in sources}
    assert {tuple(place) for place in lit["a"]} == {(term.a.row, term.a.col) for term in product.terms}
    tables = {name: arrangement(instruction, name) for name in lit if name in names(instruction)}
    registers = {
        name: {(place.lane, place.register, place.low) for place in (table.locate(*at) for at in lit[name])}
        for name, table in tables.items()
    }
    if instruction.sparse:
        assert len(lit["metadata"]) == instruction.metadata.chunks
        assert {row for row, _ in lit["metadata"]} == {9}
    for matrix, ones in (("a", [term.a for term in product.terms]), ("b", sources)):
        scales = {(source.scale.lane, source.scale.register, source.scale.low) for source in ones if source.scale is not None}
        assert registers.get(f"scale-{matrix}", set()) == scales


def test_a_thread_shows_all_that_it_holds(catalog: Catalog, page: Any) -> None:
    page.get_by_label("Lane", exact=True).fill("5")
    page.keyboard.press("Enter")
    assert _state(page, "at") == "lane:5"
    text = page.locator(".matrices .details").inner_text()
    instruction = catalog.find(_MMA)
    for name in ("a", "b", "d"):
        table = arrangement(instruction, name)
        for element in range(table.elements):
            at = table.at(5, element)
            assert f"[{at['row']}][{at['col']}]" in text
    page.get_by_role("button", name="[9][3]", exact=True).first.click()
    assert _state(page, "at") in ("a:9,3", "d:9,3")


def test_colours_sizes_and_accumulators(page: Any) -> None:
    assert page.evaluate("probe.colours()") == 4, "a quad has a colour for each thread"
    page.get_by_role("button", name="Register", exact=True).click()
    assert _state(page, "colour") == "register"
    page.keyboard.press("c")
    assert _state(page, "colour") == "warp"
    size = page.evaluate("() => explorer.board.size")
    page.get_by_role("button", name="Larger").click()
    assert page.evaluate("() => explorer.board.size") > size
    page.keyboard.press("0")
    assert page.evaluate("() => explorer.board.size") == size
    _go(page, "i=mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32")
    assert page.get_by_role("group", name="Middle").count() == 0, "C lies as D does"
    _go(page, "i=mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16")
    page.get_by_role("group", name="Middle").get_by_role("button", name="C").click()
    assert page.evaluate("() => explorer.board.tables.map(table => table.id).includes('c')")
    page.get_by_label("Computation").select_option("2")
    assert _state(page, "choose") == "computation:2"


def test_loads_show_registers_and_addresses(page: Any) -> None:
    _go(page, f"i={_LOAD}&at=r/2:3,5")
    assert page.evaluate("probe.lit", "board") == {"r/0": [], "r/1": [], "r/2": [[3, 5]], "r/3": [], "p": [[2, 3]]}
    assert page.evaluate("explorer.board.tables.at(-1).cell(2, 3).top") == "T19"
    _go(page, f"i={_LOAD}&at=p:2,3")
    assert "the address of row 3 of matrix 2" in page.locator(".matrices .details").inner_text()


def test_a_layout_that_was_measured_says_so(page: Any) -> None:
    _go(page, "i=wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32")
    assert "Observed on sm_90. The manual leaves this layout open." in page.locator(".notes").first.inner_text()
    _go(page, f"i={_MMA}")
    assert "Observed" not in page.locator("main").inner_text()


# --- shared memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "type_", "majorness", "swizzle", "x", "k"),
    [
        (_WGMMA, "bf16", "K", "128B", 64, 64),
        (_WGMMA, "bf16", "K", "32B", 16, 64),
        (_WGMMA, "bf16", "MN", "64B", 64, 16),
        (_WGMMA, "bf16", "MN", "none", 32, 32),
        (_PRODUCT, "tf32", "MN", "128B_ATOM_32B", 64, 16),
        (_PRODUCT, "e2m3_padded", "K", "128B", 64, 128),
        (_PRODUCT, "e2m1", "K", "64B", 16, 128),
    ],
)
def test_the_image_is_that_of_the_library(page: Any, instruction: str, type_: str, majorness: str, swizzle: str, x: int, k: int) -> None:
    _go(page, f"i={instruction}&v=memory&image={type_},{majorness},{swizzle},{x},{k}")
    family = instruction.split(".", maxsplit=1)[0]
    element, *padded = type_.split("_")
    layout = SharedLayout(element, majorness, swizzle, x, k, family=family, padded=bool(padded))
    expected = {}
    for line, units in enumerate(layout.units()):
        for unit, place in enumerate(units):
            span = f"{unit * layout.per_unit}–{(unit + 1) * layout.per_unit - 1}"  # noqa: RUF001  # as the page has it
            expected[place] = f"{line}, {span}" if majorness == "K" else f"{span}, {line}"
    page.mouse.move(0, 0)
    cells = page.evaluate("probe.image()")
    flat = {128 * row + 16 * col: text for row, line in enumerate(cells) for col, text in enumerate(line) if text}
    assert flat == expected
    text = page.get_by_role("tabpanel").inner_text()
    assert f"{layout.descriptor().encode():#018x}" == page.get_by_label("Descriptor", exact=True).input_value()
    box = layout.tma
    assert f"{box.swizzle}, box of {box.inner} × {box.outer}" in text  # noqa: RUF001  # as the page has it
    for step in layout.steps(256 // layout.width):
        assert f"{step.encode():#018x}" in text


def test_accesses_and_their_conflicts(page: Any) -> None:
    _go(page, f"i={_WGMMA}&v=memory")
    page.get_by_role("button", name="one element of each of 32 lines").click()
    row = page.get_by_role("row", name=re.compile("one element of each"))
    assert row.inner_text().split("\t")[1:] == ["128", "4", "1"]
    assert len(page.evaluate("probe.lit", "memory")["image"]) == 32
    page.get_by_role("slider", name="Which access").focus()
    page.keyboard.press("ArrowRight")
    assert _state(page, "access") == "1,1"
    page.get_by_role("button", name="none", exact=True).click()
    page.get_by_role("button", name="whole lines, 16 bytes in each lane").click()
    assert page.locator(".banks figcaption").inner_text().startswith("words of each of 32 banks")
    page.get_by_label("Depth (k)").fill("7")
    page.keyboard.press("Enter")
    assert "k = 7 must be a multiple of 8" in page.get_by_role("alert").first.inner_text()


def test_every_family_that_reads_descriptors_is_offered(page: Any) -> None:
    """The family is the instruction's at first; a descriptor's bits may mark one, and a link may need one."""
    pressed = page.get_by_role("group", name="Read by").locator("[aria-pressed=true]")
    _go(page, f"i={_WGMMA}&v=memory")
    assert pressed.inner_text() == "wgmma"
    page.get_by_role("button", name="tcgen05", exact=True).click()
    assert _state(page, "family") == "tcgen05"
    page.get_by_role("button", name="MN-major").click()
    page.get_by_label("Type", exact=True).select_option("tf32")
    assert _state(page, "image").startswith("tf32,MN,128B_ATOM_32B")
    bits = Descriptor(start_address=2048, leading_byte_offset=16, stride_byte_offset=1024, swizzle="128B", family="tcgen05").encode()
    _go(page, f"v=memory&bits={bits | 1 << 60:#018x}")
    assert (pressed.inner_text(), _state(page, "i").split(".")[0]) == ("tcgen05", "tcgen05")
    said = page.get_by_label("Suspicions").locator("li").all_inner_texts()
    assert said == [each.text for each in suspicions(bits | 1 << 60, "K", family="tcgen05")] != []
    _go(page, "v=memory&image=,MN,128B_ATOM_32B")
    assert pressed.inner_text() == "tcgen05"


def test_what_is_suspicious_in_a_descriptor_is_said(page: Any) -> None:
    _go(page, f"i={_WGMMA}&v=memory&image=bf16,K,128B,64,64&bits=0x4000000100010041")
    said = page.get_by_label("Suspicions").locator("li").all_inner_texts()
    assert said == [each.text for each in suspicions(0x4000000100010041, "K")]
    assert said


def test_the_image_is_that_of_the_descriptor(catalog: Catalog, page: Any) -> None:
    """Without an instruction, one that takes a descriptor is shown."""
    bits = Descriptor(start_address=2048, leading_byte_offset=16, stride_byte_offset=512, swizzle="64B").encode()
    _go(page, f"v=memory&bits={bits:#018x}")
    assert "descriptor" in {operand.kind for operand in catalog.find(_state(page, "i")).operands}
    field = functools.partial(page.get_by_label, exact=True)
    assert [field(label).input_value() for label in ("Start", "LBO", "SBO")] == ["2048", "16", "512"]
    assert page.get_by_role("tabpanel").get_by_text("at 2048 · LBO 16, SBO 512").is_visible()
    assert page.get_by_role("button", name="The image's own").count() == 0
    field("Descriptor").fill(f"{bits + 2:#018x}")
    page.keyboard.press("Enter")
    assert "It starts 32 bytes after the image" in page.get_by_text("bytes after the image").inner_text()
    page.get_by_role("button", name="The image's own").click()
    assert Descriptor.decode(int(field("Descriptor").input_value(), 16)).start_address == 0


def test_a_descriptor_is_edited_both_ways(page: Any) -> None:
    _go(page, f"i={_WGMMA}&v=memory&bits=0x4000004000010040")
    field = functools.partial(page.get_by_label, exact=True)
    assert field("start of the matrix in shared memory").input_value() == "1024"
    assert field("leading dimension byte offset (LBO)").input_value() == "16"
    assert field("stride dimension byte offset (SBO)").input_value() == "1024"
    assert field("swizzle mode").input_value() == "128B"
    field("stride dimension byte offset (SBO)").fill("512")
    page.keyboard.press("Enter")
    known = Descriptor(start_address=1024, leading_byte_offset=16, stride_byte_offset=512, swizzle="128B").encode()
    assert int(field("Descriptor").input_value(), 16) == known
    page.get_by_role("button", name="bit 63, swizzle").click()
    assert int(field("Descriptor").input_value(), 16) == known ^ 1 << 63
    assert field("swizzle mode").input_value() == Descriptor.decode(known ^ 1 << 63).swizzle
    field("start of the matrix in shared memory").fill("8")
    page.keyboard.press("Enter")
    assert "start_address = 8 has no encoding" in page.get_by_text("has no encoding").inner_text()
    field("Descriptor").fill("0x4000004000010040")
    page.keyboard.press("Enter")
    assert [field(label).input_value() for label in ("Start", "LBO", "SBO", "Base offset")] == ["1024", "16", "1024", "0"]
    field("Descriptor").fill("descriptor")
    page.keyboard.press("Enter")
    assert "is not a 64-bit number" in page.get_by_text("is not a 64-bit number").inner_text()


# --- tensor memory ----------------------------------------------------------------------------------------------------------


def test_every_layout_of_tensor_memory_is_drawn_as_the_library_has_it(catalog: Catalog, page: Any) -> None:
    """Element of each cell, copies included, and the register of a load that takes it, where pages open a layout first."""
    uses = {use.places.layout.name: use for use in reversed(tensor_page.uses_of(catalog))}
    assert uses.keys() == {layout.name for layout in catalog.database.spec.tensor_layouts}
    for layout, use in uses.items():
        opened = dict(urllib.parse.parse_qsl(use.explorer.partition("#")[2]))
        product = dict(pair.split(":") for pair in opened.get("product", "").split(",") if pair)
        opcode = catalog.find(opened["i"])
        instruction = (
            opcode.resolved(**{name: int(value) if value.isdecimal() else value for name, value in product.items()}) if product else opcode
        )
        operand = next(each for each in instruction.operands if each.name == use.operand)
        placed = operand.placed()
        lane, column = placed.layout.align[-1], 64
        selected: dict[str, Any] = {name: values[-1] for name, values in placed.selections.items()}
        load = catalog.find("tcgen05.ld.sync.aligned.16x64b.x4.b32") if placed.columns >= 8 and product else None
        choose = ",".join(f"{name}:{value}" for name, value in selected.items())
        state = opened | {"base": f"{column},{lane}", "choose": choose}
        shown = page.evaluate("probe.tensor", state | {"load": load.canonical if load else ""})
        points = {axis: grid.ravel() for axis, grid in zip(placed.sizes, np.indices([*placed.sizes.values()]), strict=True)}
        places = np.stack(np.broadcast_arrays(*placed.locate(**points, **selected)), axis=-1).tolist()
        labels = [""] * len(places)
        if load is not None:
            taken = operand.through(load).locate(**points, **selected, base=lane << 16 | column)
            lists = [np.broadcast_to(part, len(places)).tolist() for part in (taken.lane, taken.register)]
            labels = [f"T{thread} r{register}" for thread, register in zip(*lists, strict=True)]
        numbers = [points[axis].tolist() for axis in placed.axes]
        each = max(1, 32 // placed.unit)
        expected = {id_: [[["", ""] for _ in row] for row in rows] for id_, rows in shown.items()}
        for (cta, at, cell, bit), first, second, label in zip(places, *numbers, labels, strict=True):
            warp, row = divmod(at + lane, 32)
            expected[f"{cta}/{warp}"][row][cell * each + bit // placed.unit] = [f"{first},{second}", label]
        assert shown == expected, layout
        assert {len(row) for rows in shown.values() for row in rows} == {placed.columns * each}
        text = page.locator(".tensor .details").inner_text()
        assert all(f"{axis} = {formula}" in text for axis, formula in (placed.layout.at | placed.layout.back).items()), layout


def test_a_cell_says_what_it_holds_and_who_loads_it(page: Any) -> None:
    state = f"i={_PRODUCT}&v=tensor&product=m:128,n:256,dtype:f32,atype:bf16,btype:bf16&base=64&load={_TENSOR_LOAD}"
    _go(page, state)
    details = page.locator(".tensor .details")
    assert "64–319" in details.inner_text()  # noqa: RUF001  # as the page has it
    at = page.evaluate("probe.tensorMiddle", ["0/1", 5, 20])
    page.mouse.click(at["x"], at["y"])
    assert _state(page, "at") == "d:37,20"
    _go(page, f"{state}&at=d:37,200")
    text = details.inner_text()
    assert details.get_by_role("heading", level=2).inner_text() == "D[37][200]"
    assert "37 · reached by warp 1 of a warpgroup" in text
    assert "264 · 200 from the operand's" in text
    assert "0x00250108" in text
    assert "5 of warp 1" in text
    assert "r8[31:0]" in text
    assert f"{_TENSOR_LOAD} {{r0, …}}, [0x00200100]" in text
    lit = page.evaluate("probe.lit", "tensor")
    assert lit == {"0/0": [], "0/1": [[5, col] for col in range(192, 224)], "0/2": [], "0/3": []}
    panel = page.get_by_role("tabpanel")
    panel.get_by_role("application").focus()
    page.keyboard.press("ArrowDown")
    assert _state(page, "at") == "d:38,200"
    assert panel.get_by_role("status").inner_text() == "D[38][200]: lane 38, column 264, bit 0; thread 6 of warp 1, register 8"


def test_a_product_is_chosen_by_what_its_descriptor_says(page: Any) -> None:
    _go(page, f"i={_PRODUCT}&v=matrices")
    page.get_by_role("button", name="Show tensor memory").click()
    panel = page.get_by_role("tabpanel")
    assert panel.get_by_label("Type of D", exact=True).input_value() == "f32"
    panel.get_by_label("M", exact=True).select_option("64")
    panel.get_by_label("N", exact=True).select_option("8")
    assert _state(page, "product") == "dtype:f32,atype:f16,btype:f16,k:16,m:64,n:8"
    assert "layout_f" in panel.inner_text()
    panel.get_by_label("Base lane", exact=True).select_option("16")
    panel.get_by_label("Base column", exact=True).fill("100")
    page.keyboard.press("Enter")
    assert _state(page, "base") == "100,16"
    panel.get_by_role("button", name="A", exact=True).click()
    assert _state(page, "operand") == "a"
    panel.get_by_role("button", name="Warp", exact=True).click()
    assert _state(page, "colour") == "warp"
    _go(page, "i=tcgen05.mma.sp.cta_group::2.kind::f16&v=tensor&product=m:128&operand=metadata")
    assert "No source says where Metadata lies with dtype = f32" in panel.inner_text()
    _go(page, "i=tcgen05.cp.cta_group::1.4x256b&v=tensor")
    assert '"3,1" is row 3, byte 1.' in panel.inner_text()
    _go(page, f"i={_TENSOR_LOAD}&v=tensor")
    panel.get_by_role("button", name=re.compile("^Show tcgen05.mma")).click()
    assert _state(page, "load") == _TENSOR_LOAD
    assert panel.get_by_label("Loaded by", exact=True).input_value() == _TENSOR_LOAD


def test_pages_open_their_layout_of_tensor_memory(catalog: Catalog, page: Any) -> None:
    """The links of pages name operands as PTX does."""
    for use in tensor_page.uses_of(catalog):
        _go(page, use.explorer.partition("#")[2])
        text = page.locator(".tensor .details").inner_text()
        assert re.search(rf"^{use.places.layout.name} · ", text, re.MULTILINE), use
        assert all(f"\n{axis} = {formula}" in f"\n{text}" for axis, formula in use.places.layout.at.items()), use
        assert page.evaluate("() => explorer.tensor.tables.length") == 4 * (
            use.places.numbers["ctas"] if "cta" in use.places.layout.at else 1
        )


def test_pages_open_a_product_in_the_registers_of_their_load(catalog: Catalog, page: Any) -> None:
    loads = [instruction for instruction in catalog.all(lambda entry: entry.operation == "tensor-load") if instruction.extents["n"] == 4]
    links = {load.canonical: tensor_page.loaded(catalog, load) for load in loads}
    assert {spelling for spelling, link in links.items() if not link} == {spelling for spelling in links if ".16x32bx2." in spelling}
    for spelling, link in links.items():
        if link:
            _go(page, link.partition("#")[2])
            assert page.locator(".tensor").get_by_label("Loaded by", exact=True).input_value() == spelling


def test_layouts_of_tensor_memory_are_copied(open_page: Callable[..., Any]) -> None:
    page = open_page(f"i={_PRODUCT}&v=tensor&product=m:128,n:8", permissions=["clipboard-read", "clipboard-write"])
    copy = page.get_by_role("group", name="Copy")
    expected = {
        "C": "static inline uint32_t layout_d_lane(uint32_t row, uint32_t col)",
        "Python": "def layout_d(row, col):\n    return row, col",
        "CSV": "row,col,cta,lane,column,bit\n0,0,0,0,0,0\n0,1,0,0,1,0\n",
    }
    for name, text in expected.items():
        copy.get_by_role("button", name=name, exact=True).click()
        copy.get_by_text("Copied").wait_for()
        assert text in page.evaluate("() => navigator.clipboard.readText()"), name
        copy.get_by_role("button", name=name, exact=True).wait_for()
    with page.expect_download() as download:
        copy.get_by_role("button", name="SVG").click()
    data = Path(download.value.path()).read_text(encoding="utf-8")
    assert data.startswith("<svg ")
    assert data.count("</text>") >= 128 * 8
    assert download.value.suggested_filename == "layout_d.svg"


# --- any layout -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spelling", "name"), [(_MMA, "a"), (_MMA, "d"), (_FP8, "a"), (_WGMMA, "d")])
def test_any_layout_is_drawn(catalog: Catalog, page: Any, spelling: str, name: str) -> None:
    """The layout of an operand, in either notation, is drawn as the operand is."""
    operand = catalog.find(spelling).operand(name)
    table = arrangement(catalog.find(spelling), name)
    held = [[(place.lane, place.element) for place in line] for line in table.places(range(table.rows), range(table.cols))]
    bases = json.dumps({key: operand.to_triton()[key] for key in ("register", "lane", "warp")})
    for text, letter in ((f"{operand.to_cute()} {table.rows}x{table.cols}", "v"), (bases, "r")):
        _go(page, f"v=layout&layout={urllib.parse.quote(text)}")
        drawn = page.evaluate("probe.layout()")
        assert drawn == [[[f"T{lane}", f"{letter}{element}"] for lane, element in line] for line in held]
    _go(page, f"v=layout&layout={urllib.parse.quote(operand.to_cute())}")
    assert page.locator("#view-layout .notes").inner_text().startswith("This is " if spelling != _WGMMA else ""), (
        "one N of wgmma is compared"
    )
    _go(page, "v=layout&layout=(2,(2,2)):(4,(1,2))")
    assert [[cell[0] for cell in line] for line in page.evaluate("probe.layout()")] == [["0", "1", "2", "3"], ["4", "5", "6", "7"]]


def test_an_element_of_any_layout_is_selected(page: Any) -> None:
    _go(page, "v=layout")
    place = page.evaluate("explorer.layout.middleOf('layout', 9, 3)")
    page.mouse.click(place["x"], place["y"])
    assert _state(page, "at") == "layout:9,3"
    assert page.locator("#view-layout").get_by_role("status").inner_text() == "[9][3]: T5 v3"
    assert page.evaluate("probe.lit('layout')") == {"layout": [[1, 2], [1, 3], [9, 2], [9, 3]]}
    page.get_by_role("tab", name="Matrices").click()
    assert _state(page, "at") == ""


# --- sparsity ---------------------------------------------------------------------------------------------------------------


def test_a_row_is_compressed_as_it_is_typed(page: Any) -> None:
    _go(page, f"i={_SPARSE}&v=sparsity")
    row = page.get_by_label("Values of a row, with blanks between them")
    row.fill("0 5 0 7 1 0 0 2")
    text = page.get_by_role("tabpanel").inner_text()
    assert re.search(r"Values\s+5 7 1 2\s+Metadata\s+0xcd", text)
    row.fill("1 2 3 4")
    assert "more than 2 of 4 are not zero" in page.get_by_role("tabpanel").inner_text()
    page.get_by_role("button", name="Prune").click()
    assert _state(page, "row") == "0 0 3 4"
    _go(page, f"i={_MMA}&v=sparsity")
    page.get_by_role("button", name=re.compile("^Show mma.sp")).click()
    assert _state(page, "i").startswith("mma.sp")


def test_a_word_of_metadata_is_read(catalog: Catalog, page: Any) -> None:
    metadata = catalog.find(_SPARSE).metadata
    for lane, selector in itertools.product((0, 6, 31), (0, 1)):
        _go(page, f"i={_SPARSE}&v=sparsity&word=0x44e94444&lane={lane}&choose=selector:{selector}")
        rows = page.locator("table.fields tbody tr").all_inner_texts()
        read = [row.split("\t")[2] for row in rows if "ignored" not in row]
        assert read == [f"row {row}, chunk {chunk}" for row, chunk, _ in metadata.fields(lane, selector)]
    _go(page, f"i={_SPARSE}&v=sparsity&word=0x444444e9")
    rows = page.locator("table.fields tbody tr").all_inner_texts()
    assert rows[0].endswith("keeps columns 1, 2")
    assert rows[1].endswith("keeps columns 6, 7")
    _go(page, f"i={_SPARSE}&v=sparsity&word=0x44444440")
    assert page.locator("table.fields tbody tr").first.inner_text().endswith("illegal")


# --- copying ----------------------------------------------------------------------------------------------------------------


def test_everything_can_be_copied(catalog: Catalog, page: Any) -> None:
    page.get_by_role("tab", name="Copy as").click()
    page.get_by_label("Copy as", exact=True)
    operand = catalog.find(_MMA).operand("a")
    csv = invoke("layout", _MMA, "--operand", "a", "--format", "csv").output
    expected = {
        "PTX": f"{_MMA} {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{%c0, %c1, %c2, %c3}};",
        "Inline asm": f'asm volatile("{_MMA} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%10, %11, %12, %13}};"',
        "C++ wrapper": "ptxmma::mma_m16n8k16_f32_f16_f16_f32(d, a, b, c);",
        "C functions": "static inline uint32_t mma_m16n8k16_a_b16_row(uint32_t lane, uint32_t i)",
        "Python functions": "def mma_m16n8k16_a_b16(lane, i):",
        "CuTe layout": operand.to_cute(),
        "Triton bases": f'"lane": {operand.to_triton()["lane"]}',
        "CSV": csv,
    }
    for name, text in expected.items():
        page.get_by_role("button", name=name, exact=True).click()
        if name == "C functions":
            page.get_by_label("Operand").select_option("a")
        assert text in page.get_by_label("Text to copy").evaluate("element => element.textContent"), name
        assert page.get_by_role("button", name="Copy", exact=True).is_visible()
    for name, start in (("SVG", b"<svg "), ("PNG", b"\x89PNG"), ("CSV", b"row \\ col,0,1")):
        page.get_by_role("button", name=name, exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download").click()
        data = Path(download.value.path()).read_bytes()
        assert data.startswith(start)
        assert download.value.suggested_filename == f"mma_m16n8k16_f32_f16_f16_f32_a.{name.lower()}"
        if name == "SVG":
            assert data.count(b">T5<") == 8, "an element for each cell of thread 5"


# --- the page ---------------------------------------------------------------------------------------------------------------


def test_a_link_shows_the_same(open_page: Callable[..., Any], page: Any) -> None:
    _go(page, f"i={_WGMMA}&at=d:9,3&colour=register")
    page.get_by_role("tab", name="Shared memory").click()
    other = open_page(page.evaluate("() => location.hash.slice(1)"))
    states = [each.evaluate("() => JSON.stringify(explorer.store.state)") for each in (page, other)]
    assert states[0] == states[1]
    page.go_back()
    assert page.get_by_role("tab", name="Matrices").get_attribute("aria-selected") == "true"


@pytest.mark.parametrize(
    ("state", "title"),
    [
        (f"i={_TF32}&at=c:9,3", "C[9][3] of mma m16n8k8 tf32: lane 5, c3"),
        ("i=m16n8k8+tf32&at=c:9,3", "C[9][3] of mma m16n8k8 tf32: lane 5, c3"),
        (f"i={_TF32}&at=A:9,3", "A[9][3] of mma m16n8k8 tf32: lane 7, a1"),
        (f"i={_TF32}&at=lane:5", "Lane 5 of mma m16n8k8 tf32"),
        (f"i={_SPARSE}&at=e:9,3", "Metadata[9][3] of mma.sp m16n8k32 f16: lane 4, e[31:28]"),
        (f"i={_WGMMA}&at=b:9,3", "B[9][3] of wgmma.mma_async m64n64k16 bf16: in shared memory"),
        (f"i={_PRODUCT}&at=d:37,20", f"D[37][20] of {_PRODUCT}: lane 37, column 20, bit 0"),
        (f"i={_PRODUCT}&at=d:37,200", f"D[37][200] of {_PRODUCT}: lane 37, column 200, bit 0"),
        ("v=convert&at=source:3,4", "[3][4] Is in thread 14, d0 Goes to thread 14, a0.0 Way it stays in its thread"),
        ("v=layout&at=layout:9,3", "[9][3]: T5 v3"),
        (f"bits={_BITS}", f"{_BITS}, wgmma: start_address 1024, leading_byte_offset 16, stride_byte_offset 1024, swizzle 128B"),
        (f"i={_WGMMA}&bits={_BITS}", f"{_BITS}, wgmma: start_address 1024, leading_byte_offset 16, stride_byte_offset 1024, swizzle 128B"),
    ],
)
def test_a_title_says_the_answer(open_page: Callable[..., Any], state: str, title: str) -> None:
    page = open_page(state)
    assert page.title() == f"{title} · ptxmma explorer"
    assert page.locator("body > .error").text_content() == ""


def test_a_link_to_bits_keeps_its_instruction(open_page: Callable[..., Any]) -> None:
    page = open_page(f"i=wgmma+m64n128k16+f16&bits={_BITS}")
    assert page.evaluate("explorer.store.state.i") == "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ("i=mma.sync.m1n1", f"No instruction is mma.sync.m1n1; this is {_MMA}."),
        ("v=matrix", "No view is matrix: there are matrices, memory, tensor, sparsity, descriptors, copy, convert, layout."),
        ("target=sm_1", "No target is sm_1; instructions of every target are shown."),
        ("v=memory&bits=0x12z", "0x12z is not a descriptor of 64 bits: write 0x and up to 16 hexadecimal digits."),
        ("at=a:99,3", "a:99,3: row = 99 is out of range: 0..15."),
        ("at=a:3", "a:3: write a:ROW,COL."),
        ("at=e:3,3", "e:3,3: mma has no matrix e: there are d, a, b."),
        ("at=lane:32", "lane:32: lane = 32 is out of range: 0..31."),
        ("v=layout&layout=((4,8)):(3", "((4,8)):(3: write shape:stride, as (4,8):(8,1)"),
        ("v=layout&layout=(4,8):(3,(2,1))", "(4,8):(3,(2,1)): shape and stride must be nested alike"),
        (f"i={_PRODUCT}&v=tensor&at=d:128,0", "d:128,0: D has row 0 to 127, col 0 to 63."),
        ("v=sparsity&at=a:9,3", "a:9,3 is not in this view."),
        ("v=tensor&at=a:9,3", "a:9,3 is not in this view."),
        ("v=convert&at=source:99,3", "source:99,3 is not in this view."),
        ("e:9,3", "A link has no e:9,3: write i=m16n8k16&at=a:9,3."),
        ("view=smem", "A link has no view: write i=m16n8k16&at=a:9,3."),
        ("colour=red", "No colour is red: there are lane, register, warp."),
        ("v=memory&family=mma", "No family is mma: there are wgmma, tcgen05."),
        ("i=nvfp4&target=sm_90", "sm_90 does not accept this instruction: sm_120f, sm_120a, sm_121f, sm_121a do."),
        ("zoom=900", "zoom = 900: write fit, or 6 to 60 pixels."),
        ("choose=selector:1", "No choose is selector: there is none."),
        (f"i={_SPARSE}&choose=selector:9", "No selector is 9: there are 0, 1."),
        ("middle=e", "No middle is e: there is d."),
        ("embed=e", "No embed is e: there are d, a, b."),
        ("v=memory&image=bf16,K,96B", "No image is 96B: there are none, 32B, 64B, 128B."),
        ("v=memory&image=bf16,K,128B,abc", "image = abc: write a whole number."),
        ("v=memory&access=99,0", "access = 99: write 0 to 3."),
        ("v=memory&depth=deep", "depth = deep: write a whole number."),
        (f"i={_PRODUCT}&v=tensor&product=m:100", "No m is 100: there are 64, 128."),
        (f"i={_PRODUCT}&v=tensor&product=x:100", "No product is x: there are dtype, atype, btype, k, m, n."),
        (f"i={_PRODUCT}&v=tensor&base=9999", "base = 9999: write 0 to 512."),
        (f"i={_PRODUCT}&v=tensor&operand=e", "No operand is e: there are d, d-tmem, a, a-tmem."),
        (f"i={_PRODUCT}&v=tensor&load={_LOAD}", "No load is"),
        ("v=copy&as=rust", "No as is rust: there are ptx, asm, cpp, c, python, cute, triton, csv, svg, png."),
        ("v=copy&as=c&operand=q", "No operand is q: there are d, a, b, c."),
        ("v=convert&as=nothing", f"No instruction is nothing; this is {_MMA}."),
        ("v=convert&into=q", "No into is q: there are a, b, c, d."),
        ("v=convert&turned=2&order=3", "No turned is 2: there is 1."),
        (f"i={_SPARSE}&v=sparsity&lane=99", "lane = 99: write 0 to 31."),
        (f"i={_SPARSE}&v=sparsity&word=zz", "word = zz: write 0x and up to 8 hexadecimal digits."),
        ("v=sparsity&row=a+b", "row = a b: write numbers with blanks between them."),
        ("v=descriptors&descriptor=none", "No descriptor is none: there are"),
        ("v=descriptors&descriptor=descriptor,,0x1g", "0x1g is not a number of 64 bits: write 0x and hexadecimal digits."),
        ("v=layout&at=layout:16,0", "layout:16,0: write layout:ROW,COL; the layout is 16 \u00d7 8."),
    ],
)
def test_a_link_to_nothing_says_so(open_page: Callable[..., Any], state: str, fault: str) -> None:
    assert open_page(state).get_by_role("alert").first.inner_text().startswith(fault)


def test_settings_that_an_action_outdates_are_given_up(open_page: Callable[..., Any]) -> None:
    """A link is answered; afterwards the page keeps no setting of an instruction or a view that it has left."""
    page = open_page(f"i={_SPARSE}&choose=selector:1&v=copy&as=cute")
    page.get_by_role("tab", name="Convert").click()
    assert _state(page, "as") == "ptx"
    page.evaluate("i => explorer.store.set({ i })", _MMA)
    page.get_by_role("tab", name="Matrices").click()
    assert _state(page, "choose") == ""
    assert page.locator("body > .error").text_content() == ""


def test_a_link_names_its_instruction(page: Any) -> None:
    assert page.evaluate("() => location.hash") == f"#i={_MMA}"


@pytest.mark.parametrize("spelling", [_MMA, _TF32, _FP8, _WGMMA])
def test_a_low_window_shows_a_b_and_d(open_page: Callable[..., Any], spelling: str) -> None:
    page = open_page(f"i={spelling}", viewport={"width": 1280, "height": 720})
    assert page.evaluate("() => scrollY") == 0
    for name, row in (("a", 0), ("b", -1 if spelling == _WGMMA else 0), ("d", 0)):
        at = page.evaluate("([id, row]) => explorer.board.middleOf(id, row < 0 ? 15 : row, 0)", [name, row])
        box = page.locator(".matrices .board").bounding_box()
        assert box["x"] < at["x"] < box["x"] + box["width"], name
        assert box["y"] < at["y"] < box["y"] + box["height"] <= 720, name


def test_fit_fits_both_ways_and_a_resize_redraws(open_page: Callable[..., Any]) -> None:
    page = open_page(f"i={_WGMMA}", viewport={"width": 1280, "height": 720})
    within = "({ scrollWidth, clientWidth, scrollHeight, clientHeight }) => scrollWidth <= clientWidth && scrollHeight <= clientHeight"
    board = page.locator(".matrices .board")
    assert not board.evaluate(within)
    page.get_by_role("button", name="Fit").click()
    assert board.evaluate(within)
    size = page.evaluate("() => explorer.board.size")
    page.set_viewport_size({"width": 1900, "height": 1300})
    page.wait_for_function("size => explorer.board.size > size", arg=size)
    assert board.evaluate(within)


def test_cells_outside_a_selection_can_be_read(open_page: Callable[..., Any]) -> None:
    for scheme in ("light", "dark"):
        page = open_page("at=a:9,3", color_scheme=scheme)
        ink, paper = page.evaluate("() => [explorer.board.colours.faint, explorer.board.colours.paper]")
        cell = _blended(page.evaluate("() => explorer.board.tables.find((table) => table.id === 'a').cell(0, 0).fill"), paper, 0.16)
        assert _contrast(ink, cell) > 4.5, scheme


def _blended(colour: str, paper: str, strength: float) -> str:
    pairs = ((int(colour[place : place + 2], 16), int(paper[place : place + 2], 16)) for place in (1, 3, 5))
    return "#" + "".join(f"{round(strength * one + (1 - strength) * other):02x}" for one, other in pairs)


def _contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2."""

    def luminance(colour: str) -> float:
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_one_matrix_is_embedded(open_page: Callable[..., Any]) -> None:
    page = open_page(f"i={_MMA}&embed=a", viewport={"width": 600, "height": 420})
    assert page.evaluate("() => explorer.board.tables.map((table) => table.id)") == ["a"]
    assert [each.evaluate("each => each.tagName") for each in page.locator("body > :visible").all()] == ["MAIN"]
    page.mouse.click(*_middle(page, "a", 9, 3))
    assert page.locator("p.caption").inner_text() == "A[9][3]: lane 5, register a1[31:16], element 3"
    assert page.get_by_role("link", name="Open in the explorer").get_attribute("href").endswith(f"#i={_MMA}&at=a:9,3")


def test_light_and_dark(open_page: Callable[..., Any]) -> None:
    background = "() => getComputedStyle(document.body).backgroundColor"
    dark, light = (open_page(color_scheme=scheme) for scheme in ("dark", "light"))
    assert dark.evaluate(background) != light.evaluate(background)
    before = light.evaluate(background)
    light.keyboard.press("t")
    assert light.evaluate(background) == dark.evaluate(background) != before


def test_keys_are_listed(page: Any) -> None:
    page.keyboard.press("?")
    assert "find an instruction" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    for key, view in (("2", "memory"), ("3", "tensor"), ("4", "sparsity"), ("5", "descriptors"), ("6", "copy"), ("1", "matrices")):
        page.keyboard.press(key)
        assert _state(page, "v") == view


def test_fingers_and_narrow_windows(open_page: Callable[..., Any]) -> None:
    page = open_page(f"i={_WGMMA}", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.touchscreen.tap(*_middle(page, "b", 0, 2))
    details = page.locator(".matrices .details").bounding_box()
    assert details["y"] + details["height"] <= 844, "what is said of the element is in sight"
    assert _state(page, "at") == "b:0,2"
    for view in ("matrices", "memory", "tensor", "sparsity", "descriptors", "copy"):
        page.evaluate("view => explorer.store.set({ v: view })", view)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390, view
    page.evaluate("state => explorer.store.set(state)", {"i": _PRODUCT, "v": "tensor", "load": _TENSOR_LOAD, "at": "d:37,20"})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    cell = page.locator(".tensor .details").bounding_box()
    assert cell["y"] + cell["height"] <= 844, "what is said of the cell is in sight"


def test_everything_has_a_name(page: Any) -> None:
    for view in ("matrices", "memory", "sparsity", "descriptors", "copy"):
        _go(page, f"i={_SPARSE}&v={view}&at=a:9,3")
        assert not page.evaluate("probe.nameless()"), view
    _go(page, f"i={_PRODUCT}&v=tensor&at=d:9,3")
    assert not page.evaluate("probe.nameless()")


# --- the command ------------------------------------------------------------------------------------------------------------


def test_the_command_names_the_page(monkeypatch: pytest.MonkeyPatch, page: Any) -> None:
    result = invoke("explore", "--print", _SPARSE)
    assert (result.exit_code, result.output) == (0, f"{paths.EXPLORER.as_uri()}#i={_SPARSE}\n")
    _go(page, explorer(i=_SPARSE, at="a:9,3"))
    assert (_state(page, "i"), _state(page, "at")) == (_SPARSE, "a:9,3")
    opened: list[str] = []

    def started(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", started)
    assert invoke("explore").exit_code == 0
    assert opened == [paths.EXPLORER.as_uri()]
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    failed = invoke("explore")
    assert failed.exit_code == 2
    assert "no browser could be started; open file://" in failed.output
