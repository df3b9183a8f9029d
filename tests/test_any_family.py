"""Any matrix instruction is data: families that have nothing in common with a multiplication, and an output in one line.

The families of ``tests/odd`` go through every generator, the library, the checker and the emulator.

What they must give is worked out here by hand, from formulas of this file alone.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

import header_programs
import ptxmma
import toy_output
from commands import invoke
from cuda_calls import Kernels, Nvcc, calls
from header_programs import EXTERNAL
from ptxmma import paths
from ptxmma.catalog.descriptors.lookup import of_product as instruction_of_product
from ptxmma.catalog.instructions import Catalog, UnknownInstruction, catalog
from ptxmma.catalog.names.product_family import product_of_type, type_of_product
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.check import check
from ptxmma.generator import pipeline
from ptxmma.generator.emit import EMITTERS, Emitter
from ptxmma.model import TensorLayout

_ODD = Path(__file__).parent / "odd"
Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the spec makes."""
    folder = tmp_path_factory.mktemp("odd") / "out"
    result = invoke("generate", "--spec", _ODD, "--out", folder)
    assert result.exit_code == 0, result.output
    result = invoke("generate", "--spec", _ODD, "--out", folder, "--only", "docs")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def database(out: Path) -> Path:
    return out / "generated/database/ptxmma.json"


# --- what there must be -----------------------------------------------------------------------------------------------------


class Held(NamedTuple):
    """The layout of a fragment: element ``i`` of thread ``lane`` is at ``at(lane, i)``, by axis."""

    axes: dict[str, int]
    threads: int
    elements: int
    at: Callable[[int, int], tuple[int, ...]]

    def places(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        for lane, i in itertools.product(range(self.threads), range(self.elements)):
            yield lane, i, self.at(lane, i)


class Given(NamedTuple):
    """The layout of an address: thread ``lane(*place)`` gives the address of a place."""

    axes: dict[str, int]
    lane: Callable[..., int]

    def places(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        for place in itertools.product(*map(range, self.axes.values())):
            yield self.lane(*place), place


_LOADED: dict[tuple[str, bool], tuple[int, Callable[[int, int], tuple[int, int, int]]]] = {
    ("r4c64", False): (8, lambda lane, i: (i // 8, lane // 8, lane % 8 * 8 + i % 8)),
    ("r4c64", True): (8, lambda lane, i: (i // 8, i % 4, lane + (32 if i % 8 >= 4 else 0))),
    ("r16c8", False): (4, lambda lane, i: (i // 4, lane // 2, lane % 2 * 4 + i % 4)),
    ("r16c8", True): (4, lambda lane, i: (i // 4, lane // 8 * 4 + i % 4, lane % 8)),
}
_SIZES = {"r4c64": (4, 64, "q8"), "r16c8": (16, 8, "q16")}
_SLABS = {"r4c64": (2, 8), "r16c8": (1, 2)}
_BOOKS = {"p8s16w4": (8, 16, 4), "p2s64w2": (2, 64, 2)}


def _in_turn(pages: int) -> Callable[[int, int], tuple[int, int, int]]:
    """Threads that hold a slot of each page in turn."""
    return lambda lane, i: (lane % pages, lane // pages, i)


def _by_halves(each: int) -> Callable[[int, int], tuple[int, int]]:
    """Pairs of threads that hold a lane of rack memory."""
    return lambda lane, i: (lane // 2, lane % 2 * each + i)


#: By the name of the layout.
HELD: dict[str, Held] = {}
GIVEN: dict[str, Given] = {}
#: The layouts of a fragment and of an address, by instruction.
LAYOUTS: dict[str, tuple[str, str]] = {}
for _tile, (_rows, _cols, _type) in _SIZES.items():
    for _slabs in _SLABS[_tile]:
        _stem = f"scoop_{_tile}_x{_slabs}"
        GIVEN[f"{_stem}_from"] = Given({"slab": _slabs, "row": _rows}, lambda slab, row, slabs=_slabs: row * slabs + slab)
        for _trans in (False, True):
            _each, _at = _LOADED[_tile, _trans]
            _name = f"{_stem}{'_trans' * _trans}_out"
            HELD[_name] = Held({"slab": _slabs, "row": _rows, "col": _cols}, 32, _each * _slabs, _at)
            LAYOUTS[f"scoop.{_tile}.x{_slabs}{'.trans' * _trans}.{_type}"] = _name, f"{_stem}_from"
for _book, (_pages, _slots, _words) in _BOOKS.items():
    HELD[f"stash_{_book}_in"] = Held({"page": _pages, "slot": _slots, "word": _words}, 128, _words, _in_turn(_pages))
    GIVEN[f"stash_{_book}_to"] = Given({"page": _pages}, lambda page: page)
    LAYOUTS[f"stash.{_book}.q32"] = f"stash_{_book}_in", f"stash_{_book}_to"


def _woven(shape: str, m: int, n: int, k: int) -> dict[str, str]:
    """Name the layouts of a product by operand: both warps hold a part of each matrix, and thread 32 is the first of the second warp."""
    held = {
        "warp": ({"row": m, "col": k}, lambda lane, i: (lane % 32 % m, 64 // m * i + 32 // m * (lane // 32) + lane % 32 // m)),
        "weft": ({"row": k, "col": n}, lambda lane, i: (k // 2 * (lane // 32) + 32 // n * i + lane % 32 // n, lane % n)),
        "sumsstart": ({"row": m, "col": n}, lambda lane, i: (m // 2 * (lane // 32) + 32 // n * i + lane % 32 // n, lane % n)),
    }
    names = {}
    for operand, (axes, at) in held.items():
        names[operand] = f"weave_{shape}_{operand}_b{32 if operand == 'sumsstart' else 8}"
        HELD[names[operand]] = Held(axes, 64, axes["row"] * axes["col"] // 64, at)
    return {operand: names.get(operand, names["sumsstart"]) for operand in ("sums", "warp", "weft", "start")}


#: The layouts of instructions that two warps execute, by operand.
WOVEN = {f"weave.{shape}.i32.i8": _woven(shape, *sizes) for shape, sizes in {"m16n8k32": (16, 8, 32), "m8n16k32": (8, 16, 32)}.items()}
#: The layout of what registers hold of rack memory, by instruction: a thread has half of the columns of a lane.
RACKED = {f"rack.{verb}.x{n}.q16": f"rack_x{n}_cells" for verb in ("get", "put") for n in (1, 4)}
for _n in (1, 4):
    HELD[f"rack_x{_n}_cells"] = Held({"row": 16, "col": 4 * _n}, 32, 2 * _n, _by_halves(2 * _n))
#: The depth of the products of an instruction that reads a descriptor.
PRESSED = {"press.sour": 32, "press.sweet": 64}
SPELLINGS = [*LAYOUTS, *WOVEN, *RACKED, *PRESSED]


def test_the_places_of_this_file_are_one_to_one() -> None:
    for layout in HELD.values():
        places = [place for *_, place in layout.places()]
        assert sorted(places) == sorted(itertools.product(*map(range, layout.axes.values())))


# --- C and C++ --------------------------------------------------------------------------------------------------------------


def test_the_c_macros_give_every_size(out: Path, cc: str, tmp_path: Path) -> None:
    source = '#include "ptxmma/ptxmma.h"\n'
    for name, layout in HELD.items():
        for axis, size in layout.axes.items():
            source += f"typedef char {name}_{axis}[PTXMMA_{name.upper()}_{axis.upper()}S == {size} ? 1 : -1];\n"
        source += f"typedef char {name}_elements[PTXMMA_{name.upper()}_ELEMENTS == {layout.elements} ? 1 : -1];\n"
    (tmp_path / "sizes.c").write_text(source, encoding="utf-8")
    header_programs.run(cc, "-fsyntax-only", "-I", out / "generated/include", tmp_path / "sizes.c")


def test_the_list_of_variants_can_be_included(out: Path, cc: str, tmp_path: Path) -> None:
    lists = "".join(f'#include "ptxmma/variants/{name}.def"\n' for name in ("press", "rack", "scoop", "stash", "weave"))
    source = f"#define PTXMMA_VARIANT(identifier, spelling, ...) spelling\n{lists}"
    (tmp_path / "lists.c").write_text(source, encoding="utf-8")
    header_programs.run(cc, "-E", "-P", "-I", out / "generated/include", tmp_path / "lists.c", "-o", tmp_path / "lists.i")
    assert re.findall('"(.*?)"', (tmp_path / "lists.i").read_text(encoding="utf-8")) == list(_in_order())


def _in_order() -> Iterator[str]:
    """The instructions as the forms list them: the qualifiers that say sizes vary fastest."""
    yield from PRESSED
    yield from RACKED
    for tile, (_, _, element) in _SIZES.items():
        for trans, slabs in itertools.product(("", ".trans"), _SLABS[tile]):
            yield f"scoop.{tile}.x{slabs}{trans}.{element}"
    yield from (f"stash.{book}.q32" for book in _BOOKS)
    yield from WOVEN


def test_the_typed_front_knows_registers_and_places_on_the_host(out: Path, cxx: str, tmp_path: Path) -> None:
    load, store = HELD["scoop_r16c8_x2_trans_out"], HELD["stash_p8s16w4_in"]
    source = f"""#include <ptxmma/ptxmma.cuh>
using load = ptxmma::scoop<ptxmma::shape<16, 8>, ptxmma::q16, ptxmma::x2, ptxmma::trans>;
using store = ptxmma::stash<ptxmma::shape<8, 16, 4>, ptxmma::q32>;
using product = ptxmma::weave<ptxmma::shape<16, 8, 32>, ptxmma::i32, ptxmma::i8>;
static_assert(product::m == 16 && product::warp::registers == 2 && product::weft::registers == 1, "");
static_assert(load::out::registers == 4 && load::out::elements == {load.elements}, "");
static_assert(store::in::registers == 4 && store::in::elements == {store.elements}, "");
int main() {{
  for (unsigned lane = 0; lane < 32; lane++)
    for (unsigned i = 0; i < {load.elements}; i++)
      if (load::out::col(lane, i) != lane % 8 || load::out::slab(lane, i) != i / 4) return 1;
  for (unsigned lane = 0; lane < 128; lane++)
    if (store::in::page(lane, 0) != lane % 8 || store::in::slot(lane, 3) != lane / 8) return 2;
  for (unsigned lane = 0; lane < 64; lane++)
    if (product::sums::row(lane, 1) != lane / 32 * 8 + 4 + lane % 32 / 8 || product::sums::col(lane, 1) != lane % 8) return 4;
  return store::to::lane(5) == 5 ? 0 : 3;
}}
"""
    (tmp_path / "front.cpp").write_text(source, encoding="utf-8")
    program = tmp_path / "front"
    header_programs.run(cxx, "-std=c++11", "-Wall", "-Werror", "-I", out / "generated/include", tmp_path / "front.cpp", "-o", program)
    assert subprocess.run([program], check=False).returncode == 0


#: Registers and address as nvcc writes them.
_ASSEMBLED = {"scoop": r"\{(%r\d+(?:, %r\d+)*)\}, \[%rd\d+\];", "stash": r"\[%rd\d+\], \{(%r\d+(?:, %r\d+)*)\};"}


@pytest.mark.nvcc
def test_the_cuda_wrappers_write_the_instruction(nvcc: str, odd: Catalog, out: Path, tmp_path: Path) -> None:
    kernels = Kernels("ptxmma/ptxmma.cuh")
    for instruction in odd.all():
        kernels.add(next(calls(odd, instruction)).of(f"ptxmma::{instruction.identifier}"), instruction.canonical)
    # No assembler knows them, so nvcc fails after it wrote the PTX, and keeps that only if asked to.
    done = Nvcc(nvcc, odd, out / "generated/include").run(kernels.source, "-ptx", "-arch=sm_90", "--keep", folder=tmp_path)
    assert "source.cu" not in done.stderr
    ptx = (tmp_path / "source.ptx").read_text(encoding="utf-8")
    counts = {}
    for spelling, names in WOVEN.items():
        lists = [", ".join([r"%r\d+"] * (HELD[name].elements * (32 if "sums" in name else 8) // 32)) for name in names.values()]
        listed = r",\s*".join(rf"\{{{each}\}}" for each in lists)
        assert len(re.findall(rf"^\s*{re.escape(spelling)} {listed}, 3;$", ptx, re.MULTILINE)) == 1
    for spelling, name in RACKED.items():
        listed = ", ".join([r"%r\d+"] * (HELD[name].elements // 2))
        texts = (rf"\{{{listed}\}}", r"\[%r\d+\]")
        assert len(re.findall(rf"^\s*{spelling} {', '.join(texts if '.get.' in spelling else texts[::-1])};$", ptx, re.MULTILINE)) == 1
    for spelling in PRESSED:
        assert len(re.findall(rf"^.*\b{spelling} \[%r\d+\], \[%r\d+\], \[%r\d+\], %r\d+, adds;.*$", ptx, re.MULTILINE)) == 1
    for spelling in LAYOUTS:
        (text,) = re.findall(rf"^\s*{re.escape(spelling)} {_ASSEMBLED[spelling.split('.')[0]]}$", ptx, re.MULTILINE)
        counts[spelling] = len(text.split(","))
    assert counts == {spelling: _registers(spelling) for spelling in LAYOUTS}


def _registers(spelling: str) -> int:
    """Registers of 32 bits that each thread has for the elements."""
    return HELD[LAYOUTS[spelling][0]].elements * int(spelling.rpartition("q")[2]) // 32


# --- the library ------------------------------------------------------------------------------------------------------------


def _operands(spelling: str, database: Path) -> tuple[Any, Any]:
    """The fragment and the address of an instruction."""
    instruction = ptxmma.instruction(spelling, database=database)
    names = ("out", "from") if instruction.family == "scoop" else ("in", "to")
    return instruction.operand(names[0]), instruction.operand(names[1])


@pytest.mark.parametrize("spelling", LAYOUTS)
def test_the_library_gives_every_place(spelling: str, database: Path) -> None:
    fragment, address = _operands(spelling, database)
    layout, given = HELD[LAYOUTS[spelling][0]], GIVEN[LAYOUTS[spelling][1]]
    assert (fragment.axes, fragment.sizes, fragment.elements) == (tuple(layout.axes), layout.axes, layout.elements)
    assert fragment.registers == _registers(spelling)
    for lane, i, place in layout.places():
        assert fragment.coords(lane, i) == place
        assert fragment.locate(*place) == (lane, i)
    lanes = dict(given.places())
    for lane in range(layout.threads):
        assert address.coords(lane) == lanes.get(lane)
    assert address.row_bytes == {"r4c64": 64, "r16c8": 16, "p8s16w4": 256, "p2s64w2": 512}[spelling.split(".")[1]]
    assert address.alignment == {"r4c64": 64, "r16c8": 16, "p8s16w4": 16, "p2s64w2": 16}[spelling.split(".")[1]]


@pytest.mark.parametrize("spelling", WOVEN)
def test_the_library_gives_every_place_of_two_warps(spelling: str, database: Path) -> None:
    instruction = ptxmma.instruction(spelling, database=database)
    for operand, name in WOVEN[spelling].items():
        fragment, layout = instruction.operand(operand), HELD[name]
        assert (fragment.sizes, fragment.elements) == (layout.axes, layout.elements)
        for lane, i, place in layout.places():
            assert fragment.coords(lane, i) == place
            assert fragment.locate(*place) == (lane, i)


def _numbered(layout: Held, bits: int) -> Array:
    """A tile of different numbers, as far as they fit."""
    count = int(np.prod(list(layout.axes.values())))
    return (np.arange(count) * 7919 % (1 << min(bits, 16))).astype(f"u{bits // 8}").reshape(list(layout.axes.values()))


def _in_registers(layout: Held, values: Array) -> Array:
    """The registers of all threads, element by element: the first in the lowest bits of the first."""
    flat = np.zeros((layout.threads, layout.elements), values.dtype)
    for lane, i, place in layout.places():
        flat[lane, i] = values[place]
    return flat.view(np.uint32)


# --- the emulator -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4])
def test_a_store_to_another_memory_comes_back(n: int, database: Path) -> None:
    """Rack memory has 64 lanes, cells of 16 bits, and addresses with the column above the lane."""
    put, get = (ptxmma.instruction(f"rack.{verb}.x{n}.q16", database=database) for verb in ("put", "get"))
    layout, image = HELD[f"rack_x{n}_cells"], np.arange(64 * 96, dtype=np.uint16).reshape(64, 96)
    values = _numbered(layout, 16)
    address = (20 << 8) + 32  # lane 32, column 20
    stored = ptxmma.emulate(put, address, _in_registers(layout, values), image).memory
    assert np.array_equal(stored[32:48, 20 : 20 + 4 * n], values)
    stored[32:48, 20 : 20 + 4 * n] = image[32:48, 20 : 20 + 4 * n]
    assert np.array_equal(stored, image)
    loaded = ptxmma.emulate(get, address, image)
    assert np.array_equal(loaded.registers, _in_registers(layout, image[32:48, 20 : 20 + 4 * n]))
    with pytest.raises(ValueError, match=r"is lane 40; rack.get.* takes 16 lanes of one warp, from lane 0, 16, 32 or 48"):
        ptxmma.emulate(get, (20 << 8) + 40, image)
    with pytest.raises(ValueError, match=r"rack memory is \(lanes, columns\) of 16-bit cells"):
        ptxmma.emulate(get, address, image.astype(np.uint32))


def test_places_of_another_memory(odd: Catalog) -> None:
    """A layout in rack memory: numbers, addresses and limits are those of this memory."""
    (memory,) = [memory for memory in odd.database.spec.tensor_memories if memory.name == "rack"]
    layout = msgspec.convert(_SHELF, TensorLayout)
    shelf = TensorPlaces(memory, layout, {"row": 32, "byte": 24}, {"ctas": 1}, {}, 8)
    assert str(shelf.digits({})) == "row:32:1@lane byte:(2,6,2):(8@bit,1@column,32@lane)"
    place = shelf.locate(5, 21)
    assert tuple(place) == (0, 37, 4, 8)
    assert shelf.coords(*place[1:]) == (5, 21)
    assert place.address((10 << 8) + 0) == (14 << 8) + 37
    assert shelf.columns == 6
    with pytest.raises(ValueError, match=r"the operand takes 6 columns; allowed: lane 0; column 0\.\.90 on sm_90"):
        place.address(91 << 8)
    with pytest.raises(ValueError, match="nothing of the operand lies at cta = 0, lane = 37, column = 6"):
        shelf.coords(37, 6)


_SHELF = {
    "name": "shelf",
    "title": "bytes of rows, each in two lanes",
    "operand": "tensor-copy",
    "of": [{"name": ["rack.fill"]}],
    "axes": {"row": "32", "byte": "24"},
    "at": {"lane": "row + 32 * (byte // 12)", "column": "byte // 2 % 6", "bit": "8 * (byte % 2)"},
    "unit": "8",
    "source": "7.2",
}


def test_another_memory_is_in_every_language(out: Path, database: Path) -> None:
    node = shutil.which("node") or pytest.skip("node is not installed")
    (memory,) = [each for each in json.loads(database.read_text(encoding="utf-8"))["spec"]["spaces"] if each["name"] == "rack"]
    assert memory["address"] == {"lane": 0, "column": 8}
    sizes = {name: [each["size"] for each in entries] for name, entries in memory["coordinates"].items()}
    assert sizes == {"lane": [64], "column": [96], "bit": [16]}
    header = (out / "generated/include/ptxmma/rack_memory.h").read_text(encoding="utf-8")
    assert re.findall(r"#define (PTXMMA_RACK_\w+) (\d+)", header) == [
        ("PTXMMA_RACK_LANES", "64"),
        ("PTXMMA_RACK_CELL_BITS", "16"),
        ("PTXMMA_RACK_WARP_LANES", "16"),
        ("PTXMMA_RACK_ALLOCATION", "8"),
    ]
    program = (
        f'import {{ address, lane_of }} from "{out}/generated/javascript/rack_memory.js";'
        f'import {{ tensorMemories }} from "{out}/generated/javascript/index.js";'
        "console.log(address(14, 37), lane_of(3621), tensorMemories.map((each) => each.name).join());"
    )
    done = subprocess.run([node, "--input-type=module", "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3621", "37", "vat,rack"]
    page = (out / "docs/reference/rack_memory.rst").read_text(encoding="utf-8")
    assert "Each CTA has rack memory of 64 lanes" in page


@pytest.mark.parametrize("spelling", WOVEN)
def test_a_product_is_summed_over_both_warps(spelling: str, database: Path) -> None:
    held = {operand: HELD[name] for operand, name in WOVEN[spelling].items()}
    numbers = np.random.default_rng(3)

    def matrix(operand: str, dtype: str) -> Array:
        return numbers.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, list(held[operand].axes.values()), dtype)

    a, b, c = matrix("warp", "int8"), matrix("weft", "int8"), matrix("start", "int32")
    instruction = ptxmma.instruction(spelling, database=database)
    given = {name: _in_registers(held[name], values) for name, values in (("warp", a), ("weft", b), ("start", c))}
    expected = (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32)
    done = ptxmma.emulate(instruction, **given)
    assert np.array_equal(done.matrix, expected)
    assert np.array_equal(done.d.view(np.uint32), _in_registers(held["sums"], expected))
    with pytest.raises(ValueError, match="64"):
        ptxmma.emulate(instruction, **given | {"warp": given["warp"][:32]})


# --- the reference ----------------------------------------------------------------------------------------------------------


def _written(out: Path, family: str) -> str:
    """The pages of a family and of its forms; a family with one form has one page."""
    own, forms = out / f"docs/reference/{family}.rst", sorted((out / f"docs/reference/{family}").iterdir())
    assert own.is_file() == (len(forms) > 1)
    return "".join(path.read_text(encoding="utf-8") for path in ([own, *forms] if own.is_file() else forms))


def test_the_pages_say_what_there_is(out: Path) -> None:
    assert {path.stem for path in (out / "docs/reference").glob("s*/*.rst")} == {"r4c64-q8", "r16c8-q16", "p8s16w4-q32", "p2s64w2-q32"}
    assert {path.stem for path in (out / "docs/reference/weave").iterdir()} == {"m16n8k32-i8", "m8n16k32-i8"}
    scoop, stash = (_written(out, family) for family in ("scoop", "stash"))
    assert "   scoop.tile.count{.trans}.type\n       out, [from];\n" in scoop
    assert "   scoop.r4c64.{x2|x8}.q8\n   scoop.r4c64.{x2|x8}.trans.q8\n       out, [from];\n" in scoop
    assert "   stash.book.type\n       [to], in;\n" in stash
    assert "The slabs need not lie one after another." in scoop
    assert "All 128 threads of a warpgroup execute it together. There are 2 variants" in stash
    weave = _written(out, "weave")
    assert "All 64 threads of a warppair execute it together. There are 2 variants" in weave
    assert "*warp* the warp's place in the warppair. In the code, ``lane`` runs over\nall threads of the warppair." in weave
    assert "All threads have the same tension. (over the warppair" in weave


def test_the_pages_show_every_layout_as_code_and_as_a_picture(out: Path) -> None:
    pages = "".join(_written(out, name) for name in ("rack", "scoop", "stash", "weave"))
    sections = re.split(r"In generated code: ", pages)[1:]
    shown = {re.match("``(.*?)``", section)[1]: section for section in sections}  # type: ignore[index]
    assert shown.keys() == HELD.keys() | GIVEN.keys()
    for name, section in shown.items():
        code = dict(re.findall(r"^ +(\w+) = (.*);$", section.partition("\nC++\n")[0], re.MULTILINE))
        if name in HELD:
            for lane, i, place in HELD[name].places():
                assert tuple(eval(code[axis], {"lane": lane, "i": i}) for axis in HELD[name].axes) == place, (name, lane, i)
                at = dict(zip(HELD[name].axes, place, strict=True))
                assert (eval(code["lane"], at), eval(code["i"], at)) == (lane, i), (name, place)
        else:
            for lane, place in GIVEN[name].places():
                assert eval(code["lane"], dict(zip(GIVEN[name].axes, place, strict=True))) == lane, (name, place)
        assert f"../pictures/{name}.svg" in pages
        assert (out / f"docs/reference/pictures/{name}.svg").is_file()


# --- products that a descriptor says ----------------------------------------------------------------------------------------


class Pressed(NamedTuple):
    """A product of ``press``, which states neither its sizes nor its types."""

    taste: str
    m: int
    n: int
    atype: str
    btype: str

    @property
    def k(self) -> int:
        return PRESSED[f"press.{self.taste}"]

    def recipe(self, salt: int = 0) -> int:
        """The descriptor: N counts eights, and its highest bit lies apart."""
        types = 3 << 12 | {"i8": 5, "n8": 2}[self.atype] << 14 | {"i8": 6, "n8": 1}[self.btype] << 17
        sizes = self.n // 8 % 64 << 3 | self.n // 512 << 31 | (self.m - 16) // 16 << 9 | (self.k == 32) << 11
        return types | sizes | 9 << 20 | {0: 0, 10: 2, 100: 3}[salt] << 24

    def resolved(self, database: Path) -> ptxmma.Instruction:
        opcode = f"press.{self.taste}"
        return ptxmma.instruction(opcode, m=self.m, n=self.n, atype=self.atype, btype=self.btype, database=database)

    @property
    def front(self) -> str:
        taste = "" if self.taste == "sour" else ", PTXMMA_PRESS_SWEET"  # the first of them may be left out
        return f"ptxmma::press<ptxmma::shape<{self.m}, {self.n}>, {self.types}{taste}>"

    @property
    def types(self) -> str:
        return f"ptxmma::i32, ptxmma::{self.atype}, ptxmma::{self.btype}"


EVERY_PRESSED = [Pressed(*each) for each in itertools.product(("sour", "sweet"), (16, 32), range(64, 513, 64), ("i8", "n8"), ("i8", "n8"))]


def test_the_library_writes_the_descriptor_of_every_product(database: Path) -> None:
    for each in EVERY_PRESSED:
        product = each.resolved(database)
        assert dict(product.variant.chosen) == {
            "dtype": "i32",
            **dict(zip(("atype", "btype"), each[3:], strict=True)),
            "k": each.k,
            "m": each.m,
            "n": each.n,
        }
        for salt in (0, 10, 100):
            assert instruction_of_product(product, salt=salt) == each.recipe(salt)
        assert type_of_product(product) == each.front
        assert product_of_type(catalog(database), each.front) == product
    with pytest.raises(
        ptxmma.IllegalProductError, match=r"does not allow m = 16 with n = 576; legal: m = 16 or 32 with n = 64, 128, … 512"
    ):
        ptxmma.instruction("press.sour", m=16, n=576, atype="i8", btype="i8", database=database)


def test_c_and_cpp_write_the_descriptor_of_every_product(out: Path, cxx: str, tmp_path: Path) -> None:
    lines = [
        f'static_assert({each.front}::instruction() == {each.recipe():#x}u && {each.front}::k == {each.k}, "");' for each in EVERY_PRESSED
    ]
    front = Pressed("sweet", 32, 512, "n8", "i8")
    bits, none = front.recipe(), front.recipe() ^ 1 << 31  # N = 0
    lines += [
        f'static_assert({front.front}::instruction({{3}}) == {front.recipe(100):#x}u, "");',
        f'static_assert(ptxmma_press_recipe_decode({bits:#x}u).n == 512 && ptxmma_press_recipe_is_legal({bits:#x}u), "");',
        f'static_assert(!ptxmma_press_recipe_is_legal({none:#x}u), "");',
    ]
    source = "".join(f"{line}\n" for line in ["#include <ptxmma/cuda/press_calls.cuh>", *lines])
    (tmp_path / "press.cpp").write_text(source, encoding="utf-8")
    warnings = ("-Wall", "-Wextra", "-Werror")
    header_programs.run(cxx, "-std=c++17", *warnings, "-fsyntax-only", "-I", out / "generated/include", tmp_path / "press.cpp")


def test_a_qualifier_of_any_name_decides_on_the_descriptor(cxx: str, tmp_path: Path) -> None:
    """With kinds, the taste of ``press`` decides on K in C, and comes after the shape in C++."""
    spec, out = tmp_path / "spec", tmp_path / "out"
    shutil.copytree(_ODD, spec)
    text = (spec / "instructions/press.yaml").read_text(encoding="utf-8")
    for old, new in (
        ('    bits: 32\n    spare: "zero"', '    qualifier: "taste"\n    kinds: ["sour", "sweet"]\n    bits: 32\n    spare: "zero"'),
        ('[{values: {"32": 1, "64": 0}}]', '[{when: {taste: "sour"}, values: {"32": 1}}, {when: {taste: "sweet"}, values: {"64": 0}}]'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (spec / "instructions/press.yaml").write_text(text, encoding="utf-8")
    result = invoke("generate", "--spec", spec, "--out", out)
    assert result.exit_code == 0, result.output
    lines = ["#include <ptxmma/cuda/press_calls.cuh>"]
    for each in (Pressed("sour", 16, 128, "i8", "n8"), Pressed("sweet", 32, 512, "n8", "i8")):
        product, other = each.resolved(out / "generated/database/ptxmma.json"), {"sour": "sweet", "sweet": "sour"}[each.taste]
        assert instruction_of_product(product) == each.recipe()
        front = type_of_product(product)
        assert front == f"ptxmma::press<ptxmma::shape<{each.m}, {each.n}>, PTXMMA_PRESS_{each.taste.upper()}, {each.types}>"
        own, wrong = (f"ptxmma_press_recipe_is_legal(PTXMMA_PRESS_{taste.upper()}, {each.recipe():#x}u)" for taste in (each.taste, other))
        lines.append(f'static_assert({front}::instruction() == {each.recipe():#x}u && {own} && !{wrong}, "");')
    (tmp_path / "press.cpp").write_text("\n".join(lines), encoding="utf-8")
    warnings = ("-Wall", "-Wextra", "-Werror")
    header_programs.run(cxx, "-std=c++17", *warnings, "-fsyntax-only", "-I", out / "generated/include", tmp_path / "press.cpp")


def test_javascript_reads_the_descriptor_of_every_product(out: Path) -> None:
    node = shutil.which("node") or pytest.skip("node is not installed")
    program = (
        f'import {{ descriptorFormats, explainedDescriptor }} from "{out}/generated/javascript/index.js";'
        'const format = descriptorFormats.find((each) => each.name === "press_recipe");'
        f"const rows = {[each.recipe(10) for each in EVERY_PRESSED]}.map((bits) => explainedDescriptor(format, '', BigInt(bits)));"
        "console.log(JSON.stringify(rows.map((fields) => fields.map((row) => [row.field.name, row.legal ? row.value : null]))));"
    )
    done = subprocess.run([node, "--input-type=module", "-e", program], capture_output=True, text=True, check=True)
    said = [dict(rows) for rows in json.loads(done.stdout)]
    assert said == [
        {"n": e.n, "m": e.m, "k": e.k, "dtype": "i32", "atype": e.atype, "btype": e.btype, "mark": 9, "salt": 10} for e in EVERY_PRESSED
    ]


@pytest.mark.parametrize("each", [Pressed("sour", 16, 512, "i8", "n8"), Pressed("sweet", 32, 64, "n8", "i8")])
def test_a_product_of_a_descriptor_is_executed(each: Pressed, database: Path) -> None:
    values = np.random.default_rng(5)
    types = {"i8": np.int8, "n8": np.uint8}
    a, b = (
        values.integers(-128, 256, shape).astype(types[name])
        for shape, name in (((each.m, each.k), each.atype), ((each.k, each.n), each.btype))
    )
    d = values.integers(-99, 99, (each.m, each.n), np.int32)
    said = ptxmma.emulate(each.resolved(database), a, b, d)
    assert np.array_equal(said.d, a.astype(int) @ b.astype(int) + d)


@pytest.mark.parametrize("each", [Pressed("sour", 16, 512, "i8", "n8"), Pressed("sweet", 32, 192, "n8", "i8")])
def test_the_matrices_of_a_product_lie_where_the_spec_says(each: Pressed, out: Path, database: Path, cc: str, tmp_path: Path) -> None:
    product, half = each.resolved(database), each.n // 2
    for row, col in itertools.product(range(each.m), range(0, each.n, 7)):
        lane, column = (row, col) if each.m == 32 else (row + 16 * (col // half), col % half)
        place = product.operand("sums").locate(row, col)
        assert (place.lane, place.column, place.bit) == (lane, column, 0)
        assert place.address(5 << 8) == (5 + column << 8) + lane
    place = product.operand("left").locate(9, 30)
    assert (place.lane, place.column, place.bit) == (9, 7, 16)
    place = product.operand("right").locate(30, 40)
    assert (place.lane, place.column, place.bit) == (8, 7 + each.k // 4, 16)
    library = header_programs.library(
        cc, '#include "ptxmma/press_products.h"\n', tmp_path, "-std=c99", *EXTERNAL, f"-I{out}/generated/include"
    )
    types = [1 + [element.name for element in product.database.spec.types.elements].index(name) for name in ("i32", each.atype, each.btype)]
    fields = [0, ["sour", "sweet"].index(each.taste), each.m, each.n, each.k, *types]
    given = type("Product", (ctypes.Structure,), {"_fields_": [(f"field_{number}", ctypes.c_uint32) for number in range(len(fields))]})(
        *fields
    )
    assert library.ptxmma_press_product_is_legal(given)
    for row, col in ((0, 0), (each.m - 1, each.n - 1), (7, half + 3)):
        place = product.operand("sums").locate(row, col)
        assert (
            library.ptxmma_press_product_d_row(given, 0, place.lane, place.column),
            library.ptxmma_press_product_d_col(given, 0, place.lane, place.column),
        ) == (row, col)


@pytest.mark.nvcc
def test_the_call_of_a_product_writes_its_descriptor(nvcc: str, odd: Catalog, out: Path, tmp_path: Path) -> None:
    product = Pressed("sweet", 32, 512, "n8", "i8")
    kernels = Kernels("ptxmma/cuda/press_calls.cuh")
    kernels.add(f"ptxmma::tensor_address d{{1}}, a{{2}}, b{{3}}; {product.front}::call(d, a, b, true, ptxmma::salt<100>());", "press.sweet")
    done = Nvcc(nvcc, odd, out / "generated/include").run(kernels.source, "-ptx", "-arch=sm_90", "--keep", "-std=c++17", folder=tmp_path)
    assert "source.cu" not in done.stderr
    ptx = (tmp_path / "source.ptx").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"press\.sweet \[%r\d+\], \[%r\d+\], \[%r\d+\], (%r\d+), adds;", ptx)
    (number,) = re.findall(rf"mov\.(?:u32|b32)\s+{recipe}, (-?\d+);", ptx)
    assert int(number) % (1 << 32) == product.recipe(100)


# --- the commands -----------------------------------------------------------------------------------------------------------


def _asked(*arguments: str | Path) -> Any:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_has_every_instruction(database: Path) -> None:
    assert {line["instruction"]: line["shape"] for line in _asked("list", "--database", database)} == {
        spelling: None if spelling in PRESSED else spelling.split(".")[2 if spelling in RACKED else 1] for spelling in SPELLINGS
    }
    assert [line["instruction"] for line in _asked("list", "--database", database, "--shape", "p2s64w2")] == ["stash.p2s64w2.q32"]
    assert len(_asked("list", "--database", database, "--target", "sm_80")) == 4


def test_show_describes_operands_and_layouts(database: Path) -> None:
    lines = invoke("show", "--all", "scoop.r4c64.x8.trans.q8", "--database", database).output
    assert "  scoop.r4c64.x8.trans.q8 out, [from]\n" in lines
    assert "  out: scoop_r4c64_x8_trans_out\n" in lines
    assert "  from: scoop_r4c64_x8_from\n    lane = (row << 3) | slab\n" in lines
    assert "  warp: weave_m16n8k32_warp_b8\n" in invoke("show", "--all", "weave.m16n8k32.i32.i8", "--database", database).output
    wrong = invoke("show", "scoop.r4c64.x1.q8", "--database", database)
    assert wrong.exit_code == 2
    assert "scoop.r4c64.x2.q8" in wrong.output


def test_layout_answers_about_one_place_and_one_thread(database: Path) -> None:
    def one(*arguments: str) -> Any:
        return _asked("layout", "stash.p8s16w4.q32", "--database", database, *arguments)

    assert one("--operand", "in", "--page", "6", "--slot", "9", "--word", "3") == {
        "page": 6, "slot": 9, "word": 3, "lane": 78, "register": 3, "element": 3, "bits": "31:0",
    }  # fmt: skip
    assert one("--operand", "in", "--lane", "78", "--element", "3")["slot"] == 9
    assert one("--operand", "to", "--lane", "5", "--element", "0")["page"] == 5
    ignored = invoke("layout", "stash.p8s16w4.q32", "--operand", "to", "--lane", "8", "--element", "0", "--database", database)
    assert "--lane 8 is outside 0..7" in ignored.output
    table = invoke("layout", "stash.p8s16w4.q32", "--operand", "to", "--by-lane", "--database", database).output.splitlines()
    assert [line.split() for line in table[2:] if line.split()[1:]] == [[str(page), str(page)] for page in range(8)]
    assert "page 6" in invoke("layout", "stash.p8s16w4.q32", "--operand", "in", "--format", "svg", "--database", database).output
    assert invoke("layout", "stash.p8s16w4.q32", "--operand", "in", "--page", "8", "--database", database).exit_code == 2


def test_trace_follows_an_element(database: Path) -> None:
    def moves(*arguments: str) -> Any:
        (move,) = _asked("trace", *arguments, "--database", database)["moves"]
        return move["from"], move["to"]

    names = LAYOUTS["scoop.r4c64.x2.q8"]
    places, given = HELD[names[0]].places(), GIVEN[names[1]].places()
    source, target = moves("scoop.r4c64.x2.q8", "--slab", "1", "--row", "3", "--col", "9")
    assert (target["lane"], target["element"]) == next((lane, i) for lane, i, place in places if place == (1, 3, 9))
    lane = next(lane for lane, place in given if place == (1, 3))
    assert source == {"address": "from", "lane": lane, "byte": 9, "bits": "7:0"}
    source, target = moves("stash.p8s16w4.q32", "--page", "6", "--slot", "9", "--word", "3")
    assert (source["lane"], source["register"]) == (78, 3)
    assert target == {"address": "to", "lane": 6, "byte": 4 * (9 * 4 + 3), "bits": "31:0"}
    trace = _asked("trace", "weave.m16n8k32.i32.i8", "--row", "3", "--col", "2", "--database", database)
    layouts = {operand: HELD[name] for operand, name in WOVEN["weave.m16n8k32.i32.i8"].items()}
    where = {operand: {place: (lane, i) for lane, i, place in layout.places()} for operand, layout in layouts.items()}
    assert (trace["d"]["lane"], trace["d"]["element"]) == where["sums"][3, 2]
    assert len(trace["terms"]) == 32
    for k, term in enumerate(trace["terms"]):
        assert (term["a"]["in"]["lane"], term["a"]["in"]["element"]) == where["warp"][3, k]
        (source,) = term["b"]
        assert (source["in"]["lane"], source["in"]["element"]) == where["weft"][k, 2]
    missing = invoke("trace", "scoop.r4c64.x2.q8", "--row", "1", "--col", "2", "--database", database)
    assert (missing.exit_code, "--slab is missing" in missing.output) == (2, True)


def test_export_has_the_instructions(database: Path) -> None:
    text = invoke("export", "--format", "csv", "--table", "variants", "--database", database).output
    assert all(spelling in text for spelling in SPELLINGS)


# --- the checker ------------------------------------------------------------------------------------------------------------

_FOUR = "{%r0,%r1,%r2,%r3}"
_PAIR = "{%r0,%r1}"


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (f"scoop.r4c64.x2.q8 {_FOUR}, [%rd0];", []),
        (f"scoop.r4c64.x2.q8 {_FOUR}, [%rd0+64];", []),
        ("scoop.r16c8.x1.trans.q16 {%r0,%r1}, [%rd0];", []),
        (f"stash.p8s16w4.q32 [%rd0], {_FOUR};", []),
        (f"scoop.r4c64.x4.q8 {_FOUR}, [%rd0];", ["unknown-instruction"]),
        (f"scoop.r8c32.x2.q8 {_FOUR}, [%rd0];", ["unknown-instruction"]),
        ("scoop.r4c64.x2.q8 {%r0,%r1}, [%rd0];", ["register-count"]),
        (f"stash.p2s64w2.q32 [%rd0], {_FOUR};", ["register-count"]),
        ("scoop.r4c64.x2.q8 {%f0,%f1,%f2,%f3}, [%rd0];", ["register-type"]),
        (f"scoop.r4c64.x2.q8 {_FOUR}, %rd0;", ["operand-kind"]),
        (f"stash.p8s16w4.q32 %rd0, {_FOUR};", ["operand-kind"]),
        (f"stash.p8s16w4.q32 {_FOUR}, [%rd0];", ["operand-kind", "list"]),
        (f"scoop.r4c64.x2.q8 {_FOUR}, [%rd0], 2;", ["operand-count"]),
        (f"weave.m16n8k32.i32.i8 {_PAIR}, {_PAIR}, {{%r4}}, {_PAIR}, 3;", []),
        (f"weave.m16n8k32.i32.i8 {_PAIR}, {{%r4}}, {_PAIR}, {_PAIR}, 3;", ["register-count", "register-count"]),
        (f"weave.m16n8k32.i32.i8 {_PAIR}, {_PAIR}, {{%r4}}, {_PAIR}, 4;", ["immediate"]),
    ],
)
def test_lines_of_ptx_are_judged(line: str, rules: list[str], database: Path) -> None:
    declared = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;"
    text = f".version 7.8\n.target sm_90\n.address_size 64\n.entry k() {{\n{declared}\n{line}\nret;\n}}\n"
    findings = check(text, database=database)
    assert sorted(finding.rule for finding in findings) == sorted(rules)
    assert {finding.line for finding in findings} <= {6}
    if not rules and ".trans" in line:
        assert [finding.rule for finding in check(text.replace("sm_90", "sm_80"), database=database)] == ["target"]


# --- many sizes in one form -------------------------------------------------------------------------------------------------

_SPREAD = """
kind: instruction
name: "spread"
family: "spread"
title: "Spread rows of any of many widths"
stem: "spread"
scope: "warp"
operation: "load"
memory: true
source: "5.1"
syntax: "spread.{width}.{type}"
qualifiers: {width: {title: "bytes of a row"}, type: {title: "type"}}
extents: {width: "w{cols}"}
operand_kinds:
  out: {kind: "fragment", title: "bytes", type: "type", access: "write", source: "5.1"}
  from: {kind: "address", title: "address of a row", of: "out", alignment: "16", row_bytes: "cols", source: "5.1"}
operands: "out, [from]"
forms:
  - {width: "w{cols}", ranges: {cols: {first: 32, last: 128, step: 32}}, type: "q8", source: "5.1"}
requires:
  - {ptx: "7.0", targets: ["sm_80"], source: "5.1"}
"""
_SPREAD_LAYOUTS = """
kind: register_layouts
register_layouts:
  - operands: ["out"]
    of: {family: "spread"}
    axes: {row: "4", col: "cols"}
    at: {row: "lane // 8", col: "lane % 8 + 8 * i"}
    source: "5.2"
  - operands: ["from"]
    name: "from"
    of: {family: "spread"}
    axes: {row: "4", part: "cols // 32"}
    at: {lane: "row + 4 * part"}
    source: "5.2"
---
kind: types
carriers:
  - {operands: ["out"], elements: ["q8"], when: {family: "spread"}, registers: ["b32"], source: "5.3"}
  - {operands: ["from"], elements: [], when: {family: "spread"}, registers: ["b64", "b32"], source: "5.3"}
"""


def test_an_extent_of_any_name_may_range(cxx: str, tmp_path: Path) -> None:
    spec = Path(shutil.copytree(_ODD, tmp_path / "odd"))
    (spec / "instructions/spread.yaml").write_text(_SPREAD, encoding="utf-8")
    (spec / "spread.yaml").write_text(_SPREAD_LAYOUTS, encoding="utf-8")
    out = tmp_path / "out"
    result = invoke("generate", "--spec", spec, "--out", out)
    assert result.exit_code == 0, result.output
    database = out / "generated/database/ptxmma.json"
    (line,) = (line for line in _asked("list", "--database", database) if line["instruction"].startswith("spread"))
    assert (line["instruction"], line["n"]) == ("spread.wCOLS.q8", [32, 64, 96, 128])
    for cols in (32, 64, 96, 128):
        expected = Held({"row": 4, "col": cols}, 32, cols // 8, lambda lane, i: (lane // 8, lane % 8 + 8 * i))
        fragment = ptxmma.instruction(f"spread.w{cols}.q8", database=database).operand("out")
        assert all(fragment.coords(lane, i) == place for lane, i, place in expected.places())
        values = _numbered(expected, 8)
        assert np.array_equal(fragment.pack(values), _in_registers(expected, values))
        address = ptxmma.instruction(f"spread.w{cols}.q8", database=database).operand("from")
        given = {lane: address.coords(lane) for lane in range(32)}
        assert given == {lane: (lane % 4, lane // 4) if lane < cols // 8 else None for lane in range(32)}
    assert invoke("generate", "--spec", spec, "--out", out, "--only", "docs").exit_code == 0
    page = _written(out, "spread")
    assert "COLS / 8" in page
    header = (out / "generated/include/ptxmma/spread.h").read_text(encoding="utf-8")
    assert "4 rows, cols columns" in header
    source = """#include <ptxmma/ptxmma.cuh>
static_assert(ptxmma::spread<ptxmma::shape<96>, ptxmma::q8>::out::elements == 12, "");
static_assert(ptxmma::spread<ptxmma::shape<96>, ptxmma::q8>::out::registers == 3, "");
static_assert(PTXMMA_SPREAD_WCOLS_OUT_B8_ELEMENTS(96) == 12, "");
"""
    (tmp_path / "spread.cpp").write_text(source, encoding="utf-8")
    header_programs.run(cxx, "-std=c++11", "-fsyntax-only", "-I", out / "generated/include", tmp_path / "spread.cpp")


# --- beside others ----------------------------------------------------------------------------------------------------------


def test_the_families_join_the_real_ones(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    shutil.copytree(_ODD / "instructions", overlay / "instructions")
    shutil.copy(_ODD / "layouts.yaml", overlay / "odd_layouts.yaml")
    types = (_ODD / "types.yaml").read_text(encoding="utf-8")
    registers = types[types.index("registers:") : types.index("carriers:")]
    (overlay / "odd_types.yaml").write_text(types.replace(registers, ""), encoding="utf-8")
    (overlay / "odd_spaces.yaml").write_text('kind: spaces\nscopes: {"warppair": 64}\n', encoding="utf-8")
    catalog = pipeline.read(paths.SPEC, overlay)
    assert {
        layout.name for layout in catalog.database.layouts if layout.family in ("rack", "scoop", "stash", "weave")
    } == HELD.keys() | GIVEN.keys()
    for spelling in SPELLINGS:
        assert catalog.find(spelling).canonical == spelling
    with pytest.raises(UnknownInstruction, match="scoop"):
        catalog.find("scoop.m8n8.x4.q8")


# --- a new output -----------------------------------------------------------------------------------------------------------


def test_an_output_takes_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("generate", "--spec", _ODD, "--out", out)
    assert invoke(*arguments).exit_code == 0
    with monkeypatch.context() as registered:
        registered.setitem(EMITTERS, "layouts_csv", Emitter(("generated/csv",), toy_output.__name__))
        table = out / "generated/csv/layouts.csv"
        assert "missing: generated/csv/layouts.csv" in invoke(*arguments, "--check").output
        assert invoke(*arguments).exit_code == 0
        lines = table.read_text(encoding="utf-8").splitlines()[2:]
        expected = {f"{name},{layout.threads},{'x'.join(map(str, layout.axes.values()))}" for name, layout in HELD.items()}
        assert expected < set(lines)
        assert len(lines) == len(HELD) + len(GIVEN)
        assert invoke(*arguments, "--check").exit_code == 0
        table.write_text(table.read_text(encoding="utf-8").replace("scoop", "sloop"), encoding="utf-8")
        (table.parent / "old.csv").write_text("# Generated by ptxmma (spec 0.0.1)\n", encoding="utf-8")
        stale = invoke(*arguments, "--check", "--only", "layouts_csv")
        assert stale.exit_code == 1
        assert "stale: generated/csv/layouts.csv" in stale.output
        assert "orphaned: generated/csv/old.csv" in stale.output
        assert invoke(*arguments, "--only", "layouts_csv").exit_code == 0
        assert [path.name for path in table.parent.iterdir()] == ["layouts.csv"]
    assert "'layouts_csv' is not an output" in invoke(*arguments, "--only", "layouts_csv").output
    assert "orphaned: generated/csv/layouts.csv" in invoke(*arguments, "--check").output
    assert invoke(*arguments).exit_code == 0
    assert not table.exists()
    assert invoke(*arguments, "--check").exit_code == 0
