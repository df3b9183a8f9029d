"""The generated C headers: they compile everywhere, agree with the model, and compute layouts without a branch.

Most tests load the headers as a shared library: with ``PTXMMA_FN`` defined as nothing every function is external, and a few
lines of C sweep a function over its whole domain, so that a table comes back in one call.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

import header_programs
from cuda_calls import Nvcc
from header_programs import EXTERNAL, WARNINGS, run, write_headers
from ptxmma import paths
from ptxmma.catalog import requirements
from ptxmma.catalog.descriptors.shared_formats import matrix_format, read_by, swizzle_encoding
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.generator import pipeline
from ptxmma.generator.emit import c_text, formula_text
from ptxmma.model import Cases, DescriptorField, Layout, SharedMemory, formula

Array = npt.NDArray[np.uint32]

_STANDARDS = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++17")]
_DRIVERS = {"c": ("gcc", "clang"), "c++": ("g++", "clang++")}

_SWEEP = """
#include "ptxmma/ptxmma.h"
typedef uint32_t (*one)(uint32_t);
typedef uint32_t (*two)(uint32_t, uint32_t);
typedef uint32_t (*three)(uint32_t, uint32_t, uint32_t);
void sweep1(one f, uint32_t n, uint32_t *out) {
  for (uint32_t i = 0; i < n; i++) *out++ = f(i);
}
void sweep2(two f, uint32_t n, uint32_t m, uint32_t *out) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < m; j++) *out++ = f(i, j);
}
void sweep3(three f, uint32_t n, uint32_t m, uint32_t l, uint32_t *out) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < m; j++)
      for (uint32_t k = 0; k < l; k++) *out++ = f(i, j, k);
}
uint32_t count(int what) {
  const ptxmma_variant_info *info = ptxmma_describe_variant((ptxmma_variant)0);
  if (what == 4) return sizeof info->types / sizeof info->types[0];
  if (what == 5) return sizeof info->extents / sizeof info->extents[0];
  return what == 0 ? PTXMMA_TYPE_COUNT : what == 1 ? PTXMMA_TARGET_COUNT : what == 2 ? PTXMMA_ISA_COUNT : PTXMMA_VARIANT_COUNT;
}
"""


@pytest.fixture(scope="module")
def compilers() -> dict[str, list[str]]:
    """The compilers of this machine by their language."""
    installed = {language: [name for name in names if shutil.which(name)] for language, names in _DRIVERS.items()}
    return installed if all(installed.values()) else pytest.skip("no C and C++ compiler (gcc or clang) is installed")


@pytest.fixture(scope="module")
def core(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory to include ``ptxmma.h`` from, and nothing beside what it includes."""
    return write_headers(catalog, tmp_path_factory.mktemp("headers"), "c_headers")


class Library:
    """The headers as a shared library."""

    def __init__(self, path: Path) -> None:
        self.c = ctypes.CDLL(str(path))

    def table(self, name: str, *sizes: int) -> Array:
        """The values of a function over ``range(sizes[0])`` times ``range(sizes[1])`` …"""
        out = np.empty(sizes, dtype=np.uint32)
        function = ctypes.cast(getattr(self.c, name), ctypes.c_void_p)
        counts = map(ctypes.c_uint32, sizes)
        getattr(self.c, f"sweep{len(sizes)}")(function, *counts, out.ctypes.data_as(ctypes.c_void_p))
        return out

    def call(self, name: str, *arguments: int, result: Any = ctypes.c_uint32) -> Any:
        """The value of a function of ``uint32_t`` arguments."""
        function = getattr(self.c, name)
        function.restype = result
        return function(*map(ctypes.c_uint32, arguments))


@pytest.fixture(scope="module", params=["c", "c++"])
def library(
    request: pytest.FixtureRequest, compilers: dict[str, list[str]], core: Path, tmp_path_factory: pytest.TempPathFactory
) -> Library:
    language = request.param
    folder = tmp_path_factory.mktemp("library")
    source = folder / ("sweep.c" if language == "c" else "sweep.cpp")
    text = _SWEEP if language == "c" else f'#include <stdint.h>\nextern "C" {{\n{_SWEEP}}}\n'
    source.write_text(text, encoding="utf-8")
    target = folder / "sweep.so"
    plain = "-std=c99" if language == "c" else "-std=c++11"  # from C++14 on the functions are constexpr, and so inline
    run(compilers[language][0], plain, "-shared", "-fPIC", *EXTERNAL, "-I", core, source, "-o", target)
    return Library(target)


@pytest.fixture(scope="module")
def users(catalog: Catalog) -> dict[str, list[tuple[Instruction, Operand]]]:
    """For each layout, the instructions and operands that have it; of many n the smallest and the largest."""
    by_layout: dict[str, list[tuple[Instruction, Operand]]] = {layout.name: [] for layout in catalog.database.layouts}
    for instruction in catalog.all():
        ranging = instruction.variant.ranging
        if all(instruction.extents[name] in (numbers[0], numbers[-1]) for name, numbers in ranging.items()):
            for form in instruction.forms:
                for operand in form.operands:
                    if operand.layout is not None:
                        by_layout[operand.layout.name].append((instruction, operand))
    assert all(by_layout.values())
    return by_layout


def _kind(catalog: Catalog, kind: str) -> list[Layout]:
    layouts = [layout for layout in catalog.database.layouts if layout.kind == kind]
    assert layouts
    return layouts


def _grid(*sizes: int) -> tuple[Any, ...]:
    return tuple(np.indices(sizes).astype(np.uint32))


def _stem(layout: Layout) -> str:
    return f"ptxmma_{layout.name}"


# --- compiling --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "standard"), _STANDARDS)
def test_every_header_compiles_alone_and_with_all_others(
    language: str, standard: str, compilers: dict[str, list[str]], include: Path, tmp_path: Path
) -> None:
    headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.h"))
    assert len(headers) > 5
    sources = []
    for number, header in enumerate([*headers, " ".join(["ptxmma/ptxmma.h", *headers, *reversed(headers)])]):
        source = tmp_path / f"{number}.{'c' if language == 'c' else 'cpp'}"
        source.write_text("".join(f'#include "{name}"\n' for name in header.split()) + "int unused_file;\n", encoding="utf-8")
        sources.append(source)
    for compiler in compilers[language]:
        run(compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", include, *sources)


_CONSTANTS = """
#include <ptxmma/ptxmma.h>
#include <ptxmma/shared_layout.h>
static_assert(ptxmma_wgmma_m64nNk16_d_b32_row(37, 5) == 17 && ptxmma_mma_m16n8k16_a_b16_lane(9, 3) == 5, "");
static_assert(ptxmma_swizzle_address(PTXMMA_SWIZZLE_128B, ptxmma_offset_k_128b(9, 3, 16, 0, 1024), 0) == 1024 + 128 + (6 ^ 16), "");
static_assert(ptxmma_describe_type(PTXMMA_TYPE_E4M3).bits == 8 && ptxmma_describe_target(PTXMMA_TARGET_SM_90A).number == 90, "");
constexpr ptxmma_shared_layout layout() {
  ptxmma_shared_layout dense = {};
  ptxmma_shared_layout_dense(PTXMMA_TYPE_BF16, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 128, 128, 0, &dense);
  return dense;
}
constexpr uint64_t descriptor() {
  const ptxmma_shared_layout dense = layout();
  uint64_t bits = 0;
  return ptxmma_shared_descriptor(&dense, 0, 64, 64, 16, &bits) == PTXMMA_OK ? bits : 0;
}
static_assert(ptxmma_descriptor_decode(descriptor()).start_address == 128 * 128 && descriptor() >> 62 == 1, "");
constexpr uint32_t box_lines() {
  const ptxmma_shared_layout dense = layout();
  ptxmma_tensor_map_box box = {};
  return ptxmma_shared_tensor_map(&dense, &box) == PTXMMA_OK ? box.outer : 0;
}
char buffer[box_lines()];
static_assert(sizeof buffer == 128, "");
"""


@pytest.mark.parametrize("standard", ["c++14", "c++20"])
def test_functions_are_constant_expressions_from_cxx14_on(compilers: dict[str, list[str]], standard: str, tmp_path: Path) -> None:
    (tmp_path / "constants.cpp").write_text(_CONSTANTS)
    for compiler in compilers["c++"]:
        run(compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", paths.INCLUDE, tmp_path / "constants.cpp")


@pytest.mark.nvcc
def test_device_code_may_call_every_layout_function(compiler: Nvcc, core: Path, tmp_path: Path) -> None:
    calls = []
    for header in sorted((core / "ptxmma").glob("*.h")):
        for name, parameters in re.findall(
            r"^PTXMMA_CONSTEXPR_FN uint32_t (\w+)\(\s*((?:uint32_t \w+(?:, )?)+)\)", header.read_text(), re.MULTILINE
        ):
            calls.append(f"  sum += {name}({', '.join(['x'] * parameters.count('uint32_t'))});\n")
    assert len(calls) > 100
    body = "".join(calls) + "  sum += ptxmma_describe_type((ptxmma_type)x).bits + ptxmma_describe_target((ptxmma_target)x).number;\n"
    kernel = "__global__ void kernel(uint32_t *out) {\n  uint32_t x = threadIdx.x, sum = 0;\n"
    source = f'#include "ptxmma/ptxmma.h"\n{kernel}{body}  out[x] = sum;\n}}\n'
    done = compiler.run(source, "-arch=sm_90", "-std=c++17", "-cubin", folder=tmp_path)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="knows the branches of x86-64 only")
def test_every_function_compiles_without_a_branch(compilers: dict[str, list[str]], core: Path, tmp_path: Path) -> None:
    source = tmp_path / "all.c"
    source.write_text('#include "ptxmma/ptxmma.h"\n', encoding="utf-8")
    texts = "".join(path.read_text() for path in core.rglob("*.h"))
    declared = dict(re.findall(r"^PTXMMA_(?:HOST_|CONSTEXPR_)?FN .*?\b(ptxmma_\w+)\(\s*(\w+)", texts, re.MULTILINE))
    chooses = {name for name, first in declared.items() if first.startswith("ptxmma_") and first != "ptxmma_descriptor"}
    chooses |= {name for name in declared if name.endswith("_is_legal")}  # ends at the first field that is not
    chooses |= {name for name in declared if name.endswith("_mask_zeroes")}  # divides only where the mask has spans
    assert {"ptxmma_describe_swizzle", "ptxmma_swizzle_address"} <= chooses  # by an enumerator, in a switch
    for compiler in compilers["c"]:
        assembly = tmp_path / f"{compiler}.s"
        # Functions that compile alike must not become jumps to each other.
        quiet = ["-fno-ipa-icf"] if compiler == "gcc" else []
        run(compiler, "-O2", "-S", "-fcf-protection=none", *quiet, *EXTERNAL, "-I", core, source, "-o", assembly)
        seen: set[str] = set()
        name = ""
        for line in assembly.read_text(encoding="utf-8").splitlines():
            if label := re.match(r"(ptxmma_\w+):", line):
                name = label[1]
                seen.add(name)
            branch = name not in chooses and re.match(r"\s+(j[a-z]+|call\w*|loop\w*)\s", line)
            assert not branch, f"{compiler}: {name} has a branch: {line.strip()}"
        assert seen == declared.keys()


# --- layouts ----------------------------------------------------------------------------------------------------------------


def test_fragments_agree_with_the_model(catalog: Catalog, library: Library, users: dict[str, list[tuple[Instruction, Operand]]]) -> None:
    for layout in _kind(catalog, "fragment"):
        stem = _stem(layout)
        for operand in {id(operand): operand for _, operand in users[layout.name]}.values():
            lane, i = _grid(layout.threads, operand.elements)
            place = dict(zip(operand.axes, operand.coords(lane, i), strict=True))
            place |= {axis: layout.to_axes.apply({"lane": lane, "i": i})[axis] for axis in layout.apart}
            for axis, expected in place.items():
                assert np.array_equal(library.table(f"{stem}_{axis}", *lane.shape), np.broadcast_to(expected, lane.shape)), (stem, axis)
            if operand.sparsity is not None:
                first, last = operand.window(lane, i)
                assert np.array_equal(library.table(f"{stem}_chunk", *lane.shape), operand.chunk(lane, i)), stem
                assert np.array_equal(library.table(f"{stem}_window_first", *lane.shape), first), stem
                assert np.array_equal(library.table(f"{stem}_window_last", *lane.shape), last), stem
            size = tuple(operand.sizes[axis] for axis in place)
            owner, element = operand.locate(**dict(zip(place, _grid(*size), strict=True)))
            assert np.array_equal(library.table(f"{stem}_lane", *size), np.broadcast_to(owner, size)), stem
            assert np.array_equal(library.table(f"{stem}_element", *size), np.broadcast_to(element, size)), stem


def test_addresses_agree_with_the_model(catalog: Catalog, library: Library, users: dict[str, list[tuple[Instruction, Operand]]]) -> None:
    for layout in _kind(catalog, "address"):
        stem = _stem(layout)
        for _, operand in users[layout.name]:
            size = tuple(operand.sizes[axis] for axis in operand.axes)
            giver = operand.locate(*_grid(*size))
            assert np.array_equal(library.table(f"{stem}_lane", *size), np.broadcast_to(giver, size)), stem
            places = [operand.coords(lane) for lane in range(layout.threads)]
            given = [place for place in places if place is not None]
            assert len(given) == np.prod(size)
            for axis, expected in zip(operand.axes, zip(*given, strict=True), strict=True):
                assert library.table(f"{stem}_{axis}", len(given)).tolist() == list(expected), (stem, axis)


def test_sizes_agree_with_the_model(catalog: Catalog, cc: str, core: Path, tmp_path: Path) -> None:
    """Registers and elements of every operand of every variant, as the compiler evaluates the macros."""
    lines: dict[str, None] = {}
    header = (core / "ptxmma" / "ptxmma.h").parent
    macros = "".join(path.read_text(encoding="utf-8") for path in header.glob("*.h"))
    of_n = set(re.findall(r"#define (\w+)\(n\)", macros))
    for instruction in catalog.all():
        for form in instruction.forms:
            for operand in form.operands:
                if operand.layout is None or operand.layout.kind != "fragment":
                    continue
                stem = c_text.macro(f"ptxmma_{operand.layout.name}")
                row, col = (f"{axis}s".upper() for axis in operand.layout.plane)
                sizes = {row: operand.rows, col: operand.cols, "ELEMENTS": operand.elements, "REGISTERS": operand.registers}
                for name, value in sizes.items():
                    call = f"{stem}_{name}" + (f"({instruction.extents['n']})" if f"{stem}_{name}" in of_n else "")
                    lines[f'_Static_assert({call} == {value}, "{call}");'] = None
    assert len(lines) > 100
    source = tmp_path / "sizes.c"
    source.write_text('#include "ptxmma/ptxmma.h"\n' + "\n".join(lines) + "\n", encoding="utf-8")
    run(cc, "-std=c11", "-fsyntax-only", "-I", core, source)


def test_metadata_agrees_with_the_model(catalog: Catalog, library: Library, users: dict[str, list[tuple[Instruction, Operand]]]) -> None:
    for layout in _kind(catalog, "metadata"):
        stem = _stem(layout)
        metadata = users[layout.name][0][0].metadata
        size = (metadata.rows, metadata.chunks, metadata.selectors)
        lane, bit, width = metadata.locate(*_grid(*size))
        assert np.array_equal(library.table(f"{stem}_lane", *size), np.broadcast_to(lane, size)), stem
        assert np.array_equal(library.table(f"{stem}_bit", *size[:2]), np.broadcast_to(bit, size)[:, :, 0]), stem
        domain = (layout.threads, 32)
        back = {name: library.table(f"{stem}_{name}", *domain) for name in ("row", "chunk", "selector")}
        for thread, selector in itertools.product(range(layout.threads), range(metadata.selectors)):
            ours = [
                (int(back["row"][thread, low]), int(back["chunk"][thread, low]), low)
                for low in range(0, 32, width)
                if back["selector"][thread, low] == selector
            ]
            assert ours == metadata.fields(thread, selector), stem


def test_fields_go_into_a_register_and_come_out(
    catalog: Catalog, library: Library, users: dict[str, list[tuple[Instruction, Operand]]]
) -> None:
    for layout in _kind(catalog, "metadata"):
        stem, width = _stem(layout), users[layout.name][0][0].metadata.width
        word = 0xFFFFFFFF
        fields = {bit: (5 * bit // width + 3) % (1 << width) for bit in range(0, 32, width)}
        for bit, field in fields.items():
            word = library.call(f"{stem}_insert", word, bit, field)
        assert word == sum(field << bit for bit, field in fields.items()), stem
        assert {bit: library.call(f"{stem}_extract", word, bit) for bit in fields} == fields, stem


def test_legal_fields_agree_with_the_spec(catalog: Catalog, cc: str, core: Path, tmp_path: Path) -> None:
    lines: dict[str, None] = {}
    ordered = {instruction.family for instruction in catalog.all() if "::ordered_metadata" in instruction.canonical}
    for instruction in catalog.all():
        if not instruction.variant.instruction.metadata:
            continue
        pattern = instruction.metadata.granularity
        stem = c_text.macro(f"ptxmma_{instruction.family}_{pattern.name}_{instruction.qualifiers['atype']}")
        masks = {"LEGAL": pattern.legal}
        if instruction.family in ordered:
            masks["LEGAL_ORDERED"] = pattern.ordered or pattern.legal
        else:
            lines[f"#ifdef {stem}_LEGAL_ORDERED\n#error {stem}\n#endif"] = None
        for name, legal in masks.items():
            for value in range(1 << instruction.metadata.width):
                expected = int(f"0b{value:0{instruction.metadata.width}b}" in legal)
                lines[f'_Static_assert((({stem}_{name} >> {value}) & 1) == {expected}, "{stem} {value}");'] = None
    assert len(lines) > 100
    source = tmp_path / "legal.c"
    source.write_text('#include "ptxmma/ptxmma.h"\n' + "\n".join(lines) + "\n", encoding="utf-8")
    run(cc, "-std=c11", "-fsyntax-only", "-I", core, source)


def test_the_validity_function_reads_its_mask(catalog: Catalog, library: Library) -> None:
    for family in {entry.family for entry in catalog.database.spec.instructions if entry.metadata}:
        name = f"ptxmma_{c_text.identifier(family)}_legal"
        assert [library.call(name, 0b1010, field) for field in range(5)] == [0, 1, 0, 1, 0]


def test_scale_factors_agree_with_the_formulas(catalog: Catalog, library: Library) -> None:
    for layout in _kind(catalog, "scale"):
        stem, entry = _stem(layout), catalog.database.spec.register_layouts[layout.entry]
        line = "row" if layout.name.rpartition("_scale_vec")[0].endswith("scale_a") else "col"
        legal = [range(0, size * (step := layout.steps.get(axis, 1)), step) for axis, size in layout.axes.items()]
        for row, block, byte_id, thread_id in itertools.product(*legal):
            known: dict[str, formula.Value] = {line: row, "block": block, "byte_id": byte_id, "thread_id": thread_id}
            lane, byte = _value(entry.at["lane"], known), _value(entry.at["byte"], known)
            assert library.call(f"{stem}_lane", row, thread_id) == lane, stem
            assert library.call(f"{stem}_byte", block, byte_id) == byte, stem
            back = {name: library.call(f"{stem}_{name}", lane, byte) for name in (line, "block", "byte_id", "thread_id")}
            assert list(back.values()) == list(known.values()), stem


def _value(cases: Cases, known: dict[str, formula.Value]) -> int:
    parsed = [(formula.parse(case.when) if case.when else None, formula.parse(case.value)) for case in cases]
    return formula.evaluate_cases(parsed, known, 1)[0]


# --- tables -----------------------------------------------------------------------------------------------------------------

_U8, _U16, _U64, _TEXT, _ENUM = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int


def _rows(library: Library, function: str, count: int, *types: Any) -> list[list[Any]]:
    """The rows that a describing function returns for 0, 1 …; that of variants returns addresses."""
    structure: Any = type("Row", (ctypes.Structure,), {"_fields_": [(f"f{number}", kind) for number, kind in enumerate(types)]})
    if function == "ptxmma_describe_variant":
        rows = [library.call(function, index, result=ctypes.POINTER(structure)).contents for index in range(count)]
    else:
        rows = [library.call(function, index, result=structure) for index in range(count)]
    values = [[getattr(row, name) for name, *_ in structure._fields_] for row in rows]
    return [[value.decode() if isinstance(value, bytes) else value for value in row] for row in values]


def _ptx(version: str) -> int:
    major, minor = map(int, version.split("."))
    return 100 * major + minor


def _counts(library: Library) -> list[int]:
    return [library.call("count", what) for what in range(4)]


def test_the_table_of_types_is_the_spec(catalog: Catalog, library: Library) -> None:
    elements = catalog.database.spec.types.elements
    forms = ["", *dict.fromkeys(entry.form for entry in elements)]
    rows = _rows(library, "ptxmma_describe_type", _counts(library)[0], _TEXT, _ENUM, *[_U16] * 4, *[_U8] * 3)
    assert rows[0] == ["", 0, 0, 0, 0, 0, 0, 0, 0]
    assert rows[1:] == [
        [entry.name, forms.index(entry.form), entry.bits, entry.exponent, entry.mantissa, entry.bias, entry.sign, entry.infinity, entry.nan]
        for entry in elements
    ]


def test_narrow_elements_sit_in_their_containers(catalog: Catalog, library: Library) -> None:
    types = catalog.database.spec.types
    bits = {entry.name: entry.bits for entry in types.elements}
    names = [(entry, name) for entry in types.containers for name in entry.elements]
    stems: list[str] = []
    for entry, name in names:
        stem = f"{name}_b{entry.bits}"
        stems.append(stem if stem not in stems else f"{stem}_from_{entry.shift}")
    assert "e3m2_b8_from_1" in stems
    for (entry, name), stem in zip(names, stems, strict=True):
        for value in range(1 << bits[name]):
            container = library.call(f"ptxmma_pack_{stem}", value)
            assert container == value << entry.shift
            assert container < 1 << entry.bits
            assert library.call(f"ptxmma_unpack_{stem}", container) == value


def test_the_tables_of_targets_and_versions_are_the_spec(catalog: Catalog, library: Library) -> None:
    spec = catalog.database.spec
    targets = requirements.targets_of(spec)
    rows = _rows(library, "ptxmma_describe_target", _counts(library)[1], _TEXT, _TEXT, _U16, _U16, _U64)
    names = [target.name for target in spec.targets]
    assert [row[:4] for row in rows] == [[target.name, target.suffix, target.number, _ptx(target.ptx)] for target in spec.targets]
    for name, row in zip(names, rows, strict=True):
        assert {other for place, other in enumerate(names) if row[4] >> place & 1} == targets.features(name)
    versions = _rows(library, "ptxmma_describe_isa_version", _counts(library)[2], _TEXT, _U16)
    assert versions == [[entry.cuda, _ptx(entry.version)] for entry in spec.isa_versions]


def test_the_lists_of_variants_are_the_catalog(catalog: Catalog, library: Library) -> None:
    types = ["", *(entry.name for entry in catalog.database.spec.types.elements)]
    count = _counts(library)[3]
    rows = [_Variant(*row) for row in _rows(library, "ptxmma_describe_variant", count, *_variant_fields(library))]
    known = {instruction.identifier: instruction for instruction in catalog.all()}
    assert len(rows) == len(known) == len({row.identifier for row in rows})
    for row in rows:
        instruction = known[row.identifier]
        facts = instruction.variant.facts
        assert (row.spelling, row.family) == (instruction.canonical, instruction.family)
        sizes = dict(zip(row.extent_names.split(), row.extents, strict=False))
        assert {name: size for name, size in sizes.items() if size} == instruction.extents
        named = dict(zip(row.type_names.split(), row.types, strict=False))
        assert named == {name: types.index(str(facts.get(name) or "")) for name in named}
        assert (row.sparse, row.documented) == (instruction.sparse, instruction.documented)
        assert row.ptx == _ptx(requirements.floor(instruction.variant))
    assert {row.extent_names for row in rows} >= {"m n k", "rows cols num", ""}

    names = [target.name for target in catalog.database.spec.targets]
    accepted = library.table("ptxmma_variant_ptx", count, len(names))
    for row, versions in zip(rows, accepted, strict=True):
        assert {name: int(ptx) for name, ptx in zip(names, versions, strict=True) if ptx} == {
            name: _ptx(version) for name, version in known[row[0]].accepted_by().items()
        }


def test_types_and_qualifiers_of_the_lists_distinguish_variants(catalog: Catalog, library: Library) -> None:
    """The fields identify a variant: no two of an instruction agree in all of them, and each is right."""
    rows = [_Variant(*row) for row in _rows(library, "ptxmma_describe_variant", _counts(library)[3], *_variant_fields(library))]
    known = {instruction.identifier: instruction.variant for instruction in catalog.all()}
    seen = set()
    for row in rows:
        variant = known[row.identifier]
        qualifiers = dict(pair.split("=") for pair in row.qualifiers.split())
        assert qualifiers.items() <= variant.facts.items(), row.identifier
        seen.add((variant.instruction.name, tuple(row.types), tuple(row.extents), row.qualifiers))
    assert len(seen) == len(rows)
    assert any("kind=" in row.qualifiers for row in rows)


class _Variant(NamedTuple):
    """A row of the table of variants."""

    identifier: str
    spelling: str
    family: str
    extent_names: str
    type_names: str
    qualifiers: str
    types: Sequence[int]
    extents: Sequence[int]
    sparse: int
    documented: int
    ptx: int
    targets: int


def _variant_fields(library: Library) -> list[Any]:
    """The C types of a row."""
    types, extents = (library.call("count", what) for what in (4, 5))
    return [*[_TEXT] * 6, _ENUM * types, _U16 * extents, *[_U16] * 3, _U64]


def test_the_headers_carry_the_version_of_the_spec(catalog: Catalog, core: Path) -> None:
    version = catalog.database.spec.version
    assert f'#define PTXMMA_SPEC_VERSION "{version}"\n' in (core / "ptxmma" / "config.h").read_text(encoding="utf-8")


# --- shared memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def memory(catalog: Catalog) -> SharedMemory:
    spec = catalog.database.spec
    assert spec.shared_memory is not None
    return read_by(spec, spec.shared_memory, "wgmma")


@pytest.fixture(scope="module")
def fields(catalog: Catalog) -> tuple[DescriptorField, ...]:
    return matrix_format(catalog.database.spec, "wgmma").fields


@pytest.fixture(scope="module")
def encoding(catalog: Catalog) -> dict[str, int]:
    return swizzle_encoding(catalog.database.spec, "wgmma")


def _cute(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The ``(size, stride)`` pairs of both modes of a layout such as ``((8,2),(4,4)):((4,32),(1,64))``."""
    sizes, strides = ([list(map(int, mode.split(","))) for mode in re.findall(r"\(([\d,]+)\)", part)] for part in text.split(":"))
    first, second = (list(zip(size, stride, strict=True)) for size, stride in zip(sizes, strides, strict=True))
    return first, second


def _positions(mode: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The offsets along one mode, its first part running fastest."""
    for digits in itertools.product(*(range(size) for size, _ in reversed(mode))):
        yield sum(digit * stride for digit, (_, stride) in zip(reversed(digits), mode, strict=True))


def test_the_worked_examples_come_out(catalog: Catalog, memory: SharedMemory, library: Library, fields: Sequence[DescriptorField]) -> None:
    """Figures 166 to 170: the exact layout, and how the offsets are encoded."""
    bits = {entry.name: entry.bits for entry in catalog.database.spec.types.elements}
    assert memory.examples
    for example in memory.examples:
        width = bits[example.type]
        lbo, sbo = example.lbo * width // 8, example.sbo * width // 8
        function = f"ptxmma_offset_{example.majorness}_{example.swizzle}".lower()
        along_x, along_k = (list(_positions(mode)) for mode in _cute(example.cute))
        if not example.lbo:
            # Beyond the swizzle's span the figure gives several elements one address (erratum "figure-167").
            assert len({a + b for a in along_x for b in along_k}) < len(along_x) * len(along_k)
            span = next(mode.bytes for mode in memory.swizzles if mode.name == example.swizzle)
            del along_k[span * 8 // width :]
        for x, k in itertools.product(range(len(along_x)), range(len(along_k))):
            assert library.call(function, x, k, width, lbo, sbo) == (along_x[x] + along_k[k]) * width // 8, (example.name, x, k)
        encoded = _encode(fields, library, leading_byte_offset=lbo, stride_byte_offset=sbo)
        stored = {entry.name: encoded >> entry.low & (1 << entry.width) - 1 for entry in fields}
        assert stored["stride_byte_offset"] == example.sbo_encoding, example.name
        # Without a leading dimension the manual writes 1 by convention.
        assert stored["leading_byte_offset"] == (example.lbo_encoding if example.lbo else 0), example.name


def test_swizzles_are_those_of_cute(memory: SharedMemory, library: Library, encoding: dict[str, int]) -> None:
    for mode in memory.swizzles:
        bits, base, shift = map(int, re.findall(r"\d+", mode.cute))
        for address in range(0, 2 * mode.pattern, 16):
            expected = address ^ (address >> shift & ((1 << bits) - 1) << base)
            assert library.call("ptxmma_swizzle_address", encoding[mode.name], address + 5, 0) == expected + 5, mode.name


def test_a_base_offset_moves_the_pattern(memory: SharedMemory, library: Library, encoding: dict[str, int]) -> None:
    """A pattern off its grid is swizzled like one on it."""
    for mode in memory.swizzles:
        for start in range(0, 2048, 128):
            offset = library.call("ptxmma_base_offset", encoding[mode.name], start)
            assert offset == (start // 128 % 8 if start % mode.pattern else 0), mode.name
            assert offset == formula.evaluate(formula.parse(memory.base_offset), {"start": start, "pattern": mode.pattern}), mode.name
            for address in range(0, mode.pattern, 16):
                moved = library.call("ptxmma_swizzle_address", encoding[mode.name], start + address, offset)
                assert (moved ^ start + address) == (library.call("ptxmma_swizzle_address", encoding[mode.name], address, 0) ^ address), (
                    mode.name
                )


def _descriptor(fields: Sequence[DescriptorField]) -> Any:
    members = [(entry.name, ctypes.c_uint32 if entry.width + entry.shift <= 32 else ctypes.c_uint64) for entry in fields]
    return type("Descriptor", (ctypes.Structure,), {"_fields_": members})


def _encode(fields: Sequence[DescriptorField], library: Library, **values: int) -> int:
    function = library.c.ptxmma_descriptor_encode
    function.restype, function.argtypes = ctypes.c_uint64, [structure := _descriptor(fields)]
    return int(function(structure(**values)))


def test_descriptors_round_trip(fields: Sequence[DescriptorField], library: Library) -> None:
    decode = library.c.ptxmma_descriptor_decode
    decode.restype, decode.argtypes = _descriptor(fields), [ctypes.c_uint64]
    for entry in fields:
        for stored in (0, 1, 5 % (1 << entry.width), (1 << entry.width) - 1):
            encoded = _encode(fields, library, **{entry.name: stored << entry.shift})
            assert encoded == stored << entry.low, entry.name
            decoded = decode(encoded)
            assert {other.name: getattr(decoded, other.name) for other in fields} == {
                other.name: stored << entry.shift if other is entry else 0 for other in fields
            }
    everything = {entry.name: ((1 << entry.width) - 1) << entry.shift for entry in fields}
    decoded = decode(_encode(fields, library, **everything))
    assert {name: getattr(decoded, name) for name in everything} == everything


def test_values_too_large_for_a_field_leave_its_neighbours_alone(fields: Sequence[DescriptorField], library: Library) -> None:
    for entry in fields:
        size = 32 if entry.width + entry.shift <= 32 else 64
        encoded = _encode(fields, library, **{entry.name: (1 << size) - 1})
        assert encoded == ((1 << entry.width) - 1) << entry.low, entry.name


# --- other specs ------------------------------------------------------------------------------------------------------------


def test_a_made_up_family_needs_no_more_than_its_spec(root: Path, compilers: dict[str, list[str]], tmp_path: Path) -> None:
    """Without sparsity, block scaling and shared memory: their headers are missing, and the rest compiles."""
    catalog = pipeline.read(root / "tests" / "toy")
    core = write_headers(catalog, tmp_path, "c_headers")
    families = {c_text.identifier(entry.family) for entry in catalog.database.spec.instructions}
    names = {path.name for path in (core / "ptxmma").glob("*.h")}
    assert names == {"config.h", "types.h", "targets.h", "variants.h", "ptxmma.h"} | {f"{name}.h" for name in families}
    for language, standard in _STANDARDS:
        source = tmp_path / f"toy.{'c' if language == 'c' else 'cpp'}"
        source.write_text('#include "ptxmma/ptxmma.h"\nint unused_file;\n', encoding="utf-8")
        run(compilers[language][0], f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", core, source)


_HOSTILE = 'x */ injected; /* " \\ ??/ \n#error injected\u202e \u00e9 */ " injected; //'


def _poisoned(value: Any) -> Any:
    """A structure in which every sentence of the spec is hostile."""
    if isinstance(value, tuple):
        return tuple(map(_poisoned, value))
    if not isinstance(value, msgspec.Struct):
        return value
    poison = {"title", "text", "source", "document", "contributors", "cute", "lbo", "sbo", "note"}
    changed = {
        name: _HOSTILE if name in poison and isinstance(part, str) else _poisoned(part)
        for name in value.__struct_fields__
        if isinstance(part := getattr(value, name), (str, tuple, msgspec.Struct))
    }
    return msgspec.structs.replace(value, **changed)


def test_no_text_of_the_spec_becomes_code(catalog: Catalog, cc: str, tmp_path: Path) -> None:
    poisoned = Catalog(msgspec.structs.replace(catalog.database, spec=_poisoned(catalog.database.spec)))
    core = write_headers(poisoned, tmp_path, "c_headers")
    source = tmp_path / "all.c"
    source.write_text('#include "ptxmma/ptxmma.h"\nint unused_file;\n', encoding="utf-8")
    for standard in ("c99", "c11"):
        run(cc, f"-std={standard}", *WARNINGS, "-Dinjected=}}}", "-fsyntax-only", "-I", core, source)


_FORMULAS = [
    "x // 3 * y + x % 3",
    "x ^ (y << 2) & 6 | 1",
    "8 + -x",
    "x < 4",
    "(x < 4) * y",
    "1 <= x < 4 != y",
    "not x",
    "x and not y",
    "x > 5 or y and x == 2",
]


def test_formulas_mean_in_c_what_they_mean_in_the_spec(cc: str, tmp_path: Path) -> None:
    functions = [f"uint32_t f{n}(uint32_t x, uint32_t y) {{ return {formula_text.to_c(text)}; }}" for n, text in enumerate(_FORMULAS)]
    source = "\n".join(["#include <stdint.h>", *functions, ""])
    library = header_programs.library(cc, source, tmp_path, "-std=c99", "-Wall", "-Werror")
    for number, text in enumerate(_FORMULAS):
        for x, y in itertools.product(range(8), range(8)):
            ours = getattr(library, f"f{number}")(x, y)
            assert ours == formula.evaluate(formula.parse(text), {"x": x, "y": y}), (text, x, y)


@pytest.mark.parametrize("text", ["a */ b", "a **/ b /* c", "/*/", "*/*/", "*\u200b/", "two\nlines\r"])
def test_a_comment_cannot_be_left(text: str) -> None:
    shown = c_text.comment(text)
    assert "*/" not in shown
    assert "/*" not in shown
    assert shown.isprintable()


@pytest.mark.parametrize("text", ['"', "\\", "??/", "\n", "\x00", "\u00e9", "\\x41", "%d"])
def test_a_string_holds_its_text_and_nothing_else(text: str, cc: str, tmp_path: Path) -> None:
    library = header_programs.library(cc, f"const char text[] = {c_text.string(text)};\n", tmp_path, "-std=c99", "-Wall", "-Werror")
    wanted = text.encode("utf-8") + b"\0"
    assert bytes((ctypes.c_char * len(wanted)).in_dll(library, "text")) == wanted
