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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

import header_programs
from cuda_calls import Nvcc
from header_programs import EXTERNAL, WARNINGS, run, write_headers
from layout_functions import questions
from ptxmma import paths
from ptxmma.catalog import requirements
from ptxmma.catalog.descriptors.shared_formats import matrix_format
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline
from ptxmma.generator.emit import c_text, formula_text
from ptxmma.model import DescriptorField, formula

Array = npt.NDArray[np.uint32]

_STANDARDS = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++17")]
_DRIVERS = {"c": ("gcc", "clang"), "c++": ("g++", "clang++")}

#: Each calls a function of so many parameters at many points.
_SWEEPS = "".join(
    f"void sweep{count}(uint32_t (*f)({', '.join(['uint32_t'] * count)}), uint32_t n, const uint32_t *const *x, uint32_t *out) {{\n"
    f"  for (uint32_t i = 0; i < n; i++) out[i] = f({', '.join(f'x[{number}][i]' for number in range(count))});\n}}\n"
    for count in range(1, 8)
)
_COUNT = """
#include "ptxmma/ptxmma.h"
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

    def sweep(self, name: str, *columns: Any) -> Array:
        """The values of a function at every point of columns of arguments."""
        given = [np.ascontiguousarray(column, np.uint32).reshape(-1) for column in columns]
        out = np.empty_like(given[0])
        function = ctypes.cast(getattr(self.c, name), ctypes.c_void_p)
        addresses = (ctypes.c_void_p * len(given))(*(column.ctypes.data for column in given))
        getattr(self.c, f"sweep{len(given)}")(function, ctypes.c_uint32(out.size), addresses, out.ctypes.data_as(ctypes.c_void_p))
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
    return _library(compilers[request.param][0], core, tmp_path_factory.mktemp("library"), request.param)


def _library(compiler: str, core: Path, folder: Path, language: str) -> Library:
    source = folder / ("sweep.c" if language == "c" else "sweep.cpp")
    text = f"{_COUNT}{_SWEEPS}" if language == "c" else f'#include <stdint.h>\nextern "C" {{\n{_COUNT}{_SWEEPS}}}\n'
    source.write_text(text, encoding="utf-8")
    target = folder / "sweep.so"
    plain = "-std=c99" if language == "c" else "-std=c++11"  # from C++14 on the functions are constexpr, and so inline
    run(compiler, plain, "-shared", "-fPIC", *EXTERNAL, "-I", core, source, "-o", target)
    return Library(target)


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
    compiler.build(source, "-arch=sm_90", "-std=c++17", "-cubin", folder=tmp_path)


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


#: Functions of 32-bit integers that map no place: fields of registers and descriptors, elements in containers, and part of the swizzle.
_OTHERS = re.compile(r"ptxmma_(un)?pack_\w+|\w+_(insert|extract|legal|encode)|ptxmma_swizzle_128b_atom_32b_address")


def test_functions_equal_the_model(catalog: Catalog, library: Library, core: Path) -> None:
    _functions_equal_the_model(catalog, library, core)


def test_functions_of_made_up_families_equal_the_model(odd: Catalog, cc: str, tmp_path: Path) -> None:
    core = write_headers(odd, tmp_path, "c_headers")
    _functions_equal_the_model(odd, _library(cc, core, tmp_path, "c"), core)


def _functions_equal_the_model(catalog: Catalog, library: Library, core: Path) -> None:
    """Every function of layouts over its whole domain, in every space."""
    texts = "".join(path.read_text(encoding="utf-8") for path in (core / "ptxmma").glob("*.h"))
    declared = re.findall(r"^PTXMMA_CONSTEXPR_FN uint32_t (\w+)\(\s*([^)]*)\)", texts, re.MULTILINE)
    parameters = {name: [each.split()[-1] for each in listed.split(",")] for name, listed in declared}
    asked = set()
    for question in questions(catalog):
        for result, name in question.in_c.items():
            asked.add(name)
            made = library.sweep(name, *(question.arguments[parameter] for parameter in parameters[name]))
            assert np.array_equal(made, question.results[result].astype(np.uint32)), name
    assert {name for name in parameters if not _OTHERS.fullmatch(name)} == asked


def test_sizes_agree_with_the_model(catalog: Catalog, cc: str, core: Path, tmp_path: Path) -> None:
    """Registers and elements of every operand of every variant, as the compiler evaluates the macros."""
    lines: dict[str, None] = {}
    header = (core / "ptxmma" / "ptxmma.h").parent
    macros = "".join(path.read_text(encoding="utf-8") for path in header.glob("*.h"))
    of_n = set(re.findall(r"#define (\w+)\(n\)", macros))
    for instruction in catalog.all():
        for operand in instruction.operands:
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


def test_fields_go_into_a_register_and_come_out(catalog: Catalog, library: Library) -> None:
    every = (instruction.metadata for instruction in catalog.all() if instruction.variant.instruction.metadata)
    widths = {metadata.layout.name: metadata.width for metadata in every}
    assert widths.keys() == {layout.name for layout in catalog.database.layouts if layout.kind == "metadata"}
    for name, width in widths.items():
        stem = f"ptxmma_{name}"
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
    accepted = library.sweep("ptxmma_variant_ptx", *np.indices((count, len(names)))).reshape(count, len(names))
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
def fields(catalog: Catalog) -> tuple[DescriptorField, ...]:
    return matrix_format(catalog.database.spec, "wgmma").fields


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
