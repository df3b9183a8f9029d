"""The CUDA headers: guards and checks with their messages, the typed front, the fences, the examples, every dialect of C++."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

import cuda_calls
from cuda_calls import Kernels, Nvcc, calls, front_calls, instructions_in
from header_programs import run, write_headers
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.cplusplus import aliases, front_name, identifier, parameters, shown
from ptxmma.catalog.variants import recased
from ptxmma.generator import pipeline
from ptxmma.generator.emit import header_names
from ptxmma.model import Version

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_MMA_SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"
_MMA_NAME, _WGMMA_NAME = "mma_m16n8k16_f32_f16_f16_f32", "wgmma_m64n64k16_f32_bf16_bf16"
_LD = "tcgen05.ld.sync.aligned.16x64b.x1.b32"
_F64 = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rz"
_SM_90A = ["-gencode", "arch=compute_90a,code=sm_90a"]
_SAME = "template <class, class> struct same { static constexpr bool value = false; };\n" + (
    "template <class T> struct same<T, T> { static constexpr bool value = true; };"
)


def kernel(catalog: Catalog, spelling: str, statements: str = "") -> str:
    """A kernel of these statements, or of a call of the wrapper, with the header of the wrapper."""
    header = shown(catalog.find(spelling)).header
    return f"#include <{header}>\n__global__ void kernel() {{ {statements or call(catalog, spelling)} }}\n"


def call(catalog: Catalog, spelling: str) -> str:
    """A call of a wrapper."""
    instruction = catalog.find(spelling)
    return next(calls(catalog, instruction)).of(f"ptxmma::{instruction.identifier}")


def front(instruction: Instruction) -> str:
    """The specialisation of the typed front for an instruction, inside namespace ptxmma."""
    name, arguments = front_name(instruction.variant)
    assert instruction.shape is not None
    return f"{name}<shape<{', '.join(map(str, instruction.shape))}>, {', '.join(arguments)}>"


def one_of_each_front(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The instructions with a shape; of those that differ only in n, the one with the largest."""
    by_front = {}
    for instruction in instructions:
        if instruction.shape is not None:
            by_front[front_name(instruction.variant), instruction.variant.shape_label] = instruction
    return list(by_front.values())


@pytest.mark.skipif(shutil.which("gcc") is None or os.name == "nt", reason="no gcc, or no scripts")
def test_a_source_is_compiled_again_only_where_a_header_or_an_option_differs(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_calls, "_KEPT", tmp_path / "kept")
    nvcc, header, log = tmp_path / "nvcc", tmp_path / "include/part/header.cuh", tmp_path / "log"
    log.touch()
    nvcc.write_text(f"#!/bin/sh\necho release 13.0\necho $* >> {log}\n[ $# = 1 ] || cp source.cu made; exit $STATUS\n")
    nvcc.chmod(0o755)
    header.parent.mkdir(parents=True)
    (tmp_path / "include/first.cuh").write_text('#include "part/header.cuh"\n')

    def compiles(text: str, *options: str, status: int = 0) -> bool:
        before = log.read_text().count("source.cu")
        header.write_text(text)
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        monkeypatch.setenv("STATUS", "0")
        compiler = Nvcc(str(nvcc), catalog, tmp_path / "include")
        monkeypatch.setenv("STATUS", str(status))
        done = compiler.run("#include <first.cuh>\n", *options, folder=folder)
        assert (done.returncode, (folder / "made").read_text()) == (status, "#include <first.cuh>\n")
        return log.read_text().count("source.cu") > before

    assert [compiles("1"), compiles("1"), compiles("2"), compiles("2", "-c"), compiles("1")] == [True, False, True, True, False]
    (tmp_path / "include/another.cuh").touch()
    assert not compiles("1")
    assert [compiles("3", status=2), compiles("3", status=2)] == [True, False]  # an error of the source is an answer
    assert [compiles("4", status=137), compiles("4", status=137)] == [True, True]  # it was killed


# --- names ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        (_MMA, "mma<shape<16, 8, 16>, f32, f16, f16, f32>"),
        (_MMA_SP, "mma_sp_ordered_metadata<shape<16, 8, 32>, f32, f16, f16, f32>"),
        (_WGMMA, "wgmma<shape<64, 64, 16>, f32, bf16, bf16>"),
        (_F64, "mma<shape<16, 8, 8>, f64, f64, f64, f64, rz>"),
        ("mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f16", "mma<shape<8, 8, 4>, f32, f16, f16, f16, row, row>"),
        ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc", "mma<shape<8, 8, 128>, s32, b1, b1, s32, and_>"),
    ],
)
def test_the_front_names_an_instruction_by_shape_types_and_what_is_unusual(catalog: Catalog, spelling: str, expected: str) -> None:
    assert front(catalog.find(spelling)) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("and", "and_"), ("requires", "requires_"), ("1x", "_1x"), ("scale-d", "scale_d"), ("N", "n")]
)
def test_every_name_of_a_spec_is_a_name_in_cplusplus(name: str, expected: str) -> None:
    assert identifier(name) == expected


def test_names_that_the_headers_have_are_kept_from_families_and_modifiers(catalog: Catalog, include: Path) -> None:
    declared = set()
    for path in sorted((include / "ptxmma").rglob("*.cuh")):
        depth = 0
        for line in path.read_text().splitlines():
            if depth == 1 and (name := re.match(r"(?:template <.*> )?(?:struct|using|namespace) (\w+)", line)):
                declared.add(name[1])
            depth += line.count("{") - line.count("}")
    spec = catalog.database.spec
    of_the_spec = {
        name for instruction in catalog.all() for template, tags in [front_name(instruction.variant)] for name in (template, *tags)
    }
    of_the_spec |= {identifier(entry.name) for entry in spec.types.elements}
    of_the_spec |= {recased(value) for entry in spec.instructions for hint in entry.hints for value in hint.values}
    kinds = [kind for entry in spec.instructions for kind in entry.operand_kinds.values()]
    of_the_spec |= {f"negate_{kind.of}" for kind in kinds if kind.kind == "negation"}
    assert declared - of_the_spec <= header_names.declared(spec)
    fields = {field.name for format in spec.descriptors for field in format.fields}
    assert header_names.declared(spec) - fields <= declared, "a name that no header declares"


def test_headers_of_one_family_are_split_by_the_types_of_the_multiplicands(include: Path) -> None:
    assert "wgmma_m64n64k16_f32_bf16_bf16(" in (include / "ptxmma/wgmma/bf16_bf16.cuh").read_text()
    assert "wgmma_m64n64k16_f32_f16_f16(" in (include / "ptxmma/wgmma/f16_f16.cuh").read_text()


def test_a_header_shows_each_instruction_whole_below_what_it_requires(catalog: Catalog, include: Path) -> None:
    headers = {path: path.read_text() for path in sorted((include / "ptxmma").rglob("*.cuh"))}
    shown_whole = set(re.findall(r'[" ]([a-z][\w.:]+)(?:" PTXMMA_HINT|[ ;])', "".join(headers.values())))
    assert not [instruction for instruction in catalog.all() if instruction.canonical not in shown_whole]
    text = headers[include / "ptxmma/mma/f16_f16.cuh"]
    below = re.findall(r"^// PTX ISA .*", text[: text.index(f'"{_MMA} {{')], re.MULTILINE)[-1]
    assert below == "// PTX ISA 7.0, sm_80 or newer"
    assert "// d, a, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b\n" in headers[include / "ptxmma/wgmma/bf16_bf16.cuh"]


def test_specialisations_with_equal_members_share_them(include: Path) -> None:
    """A header states each set of extents and fragments once: what it states is what every compiler reads."""
    text = (include / "ptxmma/wmma/f16.cuh").read_text()
    stated = re.findall(r"^struct \w+<.*> \{\n((?:  (?:static constexpr|using) .*\n)+)", text, re.MULTILINE)
    assert len(stated) == len(set(stated)) == 9  # A, B and the accumulator, of three shapes
    assert "struct wmma_load_a_row<shape<16, 16, 16>, f16, global> : wmma_load_a_row<shape<16, 16, 16>, f16> {\n" in text


# --- the host's compiler ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_each_header_compiles_alone_without_cuda(standard: str, include: Path, cxx: str, tmp_path: Path) -> None:
    """From C++17 on alone where a header has text for a dialect, as calls of products; and all together."""
    texts = {path.relative_to(include).as_posix(): path.read_text() for path in sorted(include.rglob("*.cuh"))}
    headers = [name for name, text in texts.items() if not re.search(r"#include <cuda(?:_runtime)?\.h>", text)]
    assert set(texts) - set(headers) == {"ptxmma/cuda/sparse.cuh", "ptxmma/cuda/tensor_map.cuh"}  # kernels; calls of the driver
    alone = [name for name in headers if standard == "c++11" or "__cplusplus" in texts[name]]
    assert len(alone) > 10
    for number, names in enumerate([headers, *([name] for name in alone)]):
        (tmp_path / f"{number}.cpp").write_text("".join(f"#include <{name}>\n" for name in names))
    warnings = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")
    run(cxx, "-fsyntax-only", f"-std={standard}", *warnings, "-I", include, *sorted(tmp_path.glob("*.cpp")))


def test_layouts_of_the_front_work_on_the_host(catalog: Catalog, include: Path, cxx: str, tmp_path: Path) -> None:
    lines, expected = [], []
    for instruction in one_of_each_front(catalog.all()):
        for operand in instruction.operands:
            if operand.layout is None or operand.layout.kind != "fragment":
                continue
            member = f"{front(instruction)}::{operand.name}"
            lines.append(f'std::printf("%d %d\\n", {member}::registers, {member}::elements);')
            expected.append(f"{operand.registers} {operand.elements}")
            for lane, i in ((operand.layout.threads - 1, operand.elements - 1), (5, operand.elements // 2), (1, 0)):
                values = ", ".join(f"{member}::{axis}({lane}u, {i}u)" for axis in operand.axes)
                lines.append(f'std::printf("{" %u" * len(operand.axes)}\\n", {values});')
                expected.append("".join(f" {number}" for number in operand.coords(lane, i)))
    assert len(expected) > 1000
    source = f"#include <cstdio>\n#include <ptxmma/ptxmma.cuh>\nusing namespace ptxmma;\nint main() {{\n{chr(10).join(lines)}\n}}\n"
    (tmp_path / "layouts.cpp").write_text(source)
    program = tmp_path / "layouts"
    run(cxx, "-std=c++11", "-I", include, tmp_path / "layouts.cpp", "-o", program)
    assert subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines() == expected


def test_a_wrapper_called_on_the_host_does_not_compile(catalog: Catalog, include: Path, cxx: str, tmp_path: Path) -> None:
    (tmp_path / "host.cpp").write_text(f"#include <ptxmma/ptxmma.cuh>\nint main() {{ {call(catalog, _MMA)} }}\n")
    done = subprocess.run([cxx, "-fsyntax-only", f"-I{include}", str(tmp_path / "host.cpp")], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ptxmma: this function is device code: compile it with nvcc" in done.stderr


def test_nvccs_pass_for_the_host_reads_no_bodies(include: Path, cxx: str, tmp_path: Path) -> None:
    """It emits no device code.  The signatures are those of the passes for devices."""
    (tmp_path / "all.cpp").write_text("#include <ptxmma/ptxmma.cuh>\n")
    run(cxx, "-E", "-P", "-D__CUDACC__", "-D__NVCC__", "-I", include, tmp_path / "all.cpp", "-o", tmp_path / "all.ii")
    text = (tmp_path / "all.ii").read_text(encoding="utf-8")
    assert f"{_WGMMA_NAME}(float (&d)[32], const uint32_t (&a)[4], uint64_t b_desc, bool scale_d) {{}}" in " ".join(text.split())
    assert not re.search(r"asm volatile\([^;]*(?:mma|matrix|tcgen05)", text)


_POLICIES = """
#include <cstdio>
#include <type_traits>
#include <utility>
#include <ptxmma/cuda/tcgen05_mma_product.cuh>
#include <ptxmma/mma/f16_f16.cuh>
#include <ptxmma/wgmma/bf16_bf16.cuh>
using namespace ptxmma;
using Warp = mma<shape<16, 8, 16>, f32, f16, f16, f32>;
using Group = wgmma<shape<64, 64, 16>, f32, bf16, bf16>;
using Product = tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16>;
using in_shared = matrix_descriptor<PTXMMA_MAJORNESS_K, bf16>;
using in_tensor = tcgen05_descriptor<PTXMMA_MAJORNESS_K, bf16>;
"""


def test_every_fragment_is_an_array(catalog: Catalog) -> None:
    """Code for any instruction declares ``T::a::type`` and passes it; a function that takes single registers takes arrays, too."""
    for instruction in catalog.all():
        for operand in instruction.operands:
            if operand.layout is not None and operand.layout.kind == "fragment":
                assert f"(&{identifier(operand.name)})[{operand.registers}]" in parameters(operand, operand.c_type)[0].parameter


def test_names_may_leave_out_what_ptx_may(catalog: Catalog) -> None:
    names = {instruction.identifier for instruction in catalog.all()}
    brief = {alias: instruction for instruction in catalog.all() for alias in aliases(instruction.variant)}
    assert not names & brief.keys()
    assert brief["mma_m8n8k4_f64_f64_f64_f64"].identifier == "mma_m8n8k4_f64_f64_f64_f64_rn"
    assert {instruction.family for instruction in brief.values()} == {"mma", "mma.sp", "wmma"}
    spelling = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    assert aliases(catalog.find(spelling).variant) == ("mma_m16n8k32_kind_mxf8f6f4_f32_e4m3_e4m3_f32_ue8m0",)


@pytest.mark.nvcc
def test_calls_without_defaults_and_with_arrays(compiler: Nvcc, tmp_path: Path) -> None:
    source = """#include <ptxmma/mma/f64_f64.cuh>
#include <ptxmma/movmatrix.cuh>
using Multiply = ptxmma::mma<ptxmma::shape<8, 8, 4>, ptxmma::f64, ptxmma::f64, ptxmma::f64, ptxmma::f64>;
using Transpose = ptxmma::movmatrix<ptxmma::shape<8, 8>, ptxmma::b16>;
__global__ void kernel(double* sums, uint32_t* registers) {
  Multiply::a::type a = {sums[0]};
  Multiply::b::type b = {sums[1]};
  Multiply::d::type d = {sums[2], sums[3]};
  Multiply::call(d, a, b, d);
  ptxmma::mma_m8n8k4_f64_f64_f64_f64(d, a, b, d);
  sums[0] = d[0];
  Transpose::a::type given = {registers[0]};
  Transpose::d::type got;
  Transpose::call(got, given);
  ptxmma::movmatrix_m8n8_b16(got, got);
  Transpose::call(got[0], got[0]);  // single registers
  registers[1] = got[0];
}
"""
    compiler.build(source, "-std=c++17", "-arch=sm_80", "-ptx", "-o", "kernel.ptx", folder=tmp_path)
    made = (tmp_path / "kernel.ptx").read_text()
    assert made.count("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn ") == 2
    assert made.count("movmatrix.sync.aligned.m8n8.trans.b16 ") == 3


@pytest.mark.nvcc
@pytest.mark.parametrize("options", [_SM_90A, ["-arch=sm_90a"]])  # the latter makes a pass for a target that lacks wgmma
def test_a_wrapper_and_a_call_of_the_front_have_an_address(compiler: Nvcc, options: list[str], tmp_path: Path) -> None:
    source = f"""{_POLICIES}
using of_warp = void (*)(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2], const float (&)[4]);
using of_group = void (*)(float (&)[32], in_shared, in_shared, bool);
__device__ of_warp wrapper = &{_MMA_NAME}, member = &Warp::call;
__device__ auto deduced = &{_MMA_NAME}<>;
template <of_warp multiply> __global__ void warp(float* to) {{
  float d[4] = {{}};
  const uint32_t a[4] = {{}}, b[2] = {{}};
  multiply(d, a, b, d);
  *to = d[0];
}}
template <of_group multiply> __global__ void group() {{
  float d[32];
  multiply(d, in_shared{{}}, in_shared{{}}, false);
}}
void launch(float* to) {{
  warp<{_MMA_NAME}><<<1, 32>>>(to);
  warp<Warp::call><<<1, 32>>>(to);
  group<Group::call><<<1, 128>>>();
}}
"""
    compiler.build(source, "-std=c++17", *options, "-c", folder=tmp_path)


@pytest.mark.nvcc
def test_which_calls_are_well_formed_is_the_same_in_every_pass(compiler: Nvcc, tmp_path: Path) -> None:
    source = f"""{_POLICIES}
template <class Policy, class Void, class... Operands> struct may : std::false_type {{}};
template <class Policy, class... Operands>
struct may<Policy, std::void_t<decltype(Policy::call(std::declval<Operands>()...))>, Operands...> : std::true_type {{}};
static_assert(may<Group, void, float (&)[32], in_shared, in_shared, bool>::value);
static_assert(!may<Group, void, int (&)[4], in_shared, in_shared, bool>::value);
static_assert(!may<Group, void, float (&)[32], in_shared, bool>::value);
static_assert(may<Product, void, tensor_address, tensor_address, in_tensor, bool>::value);
static_assert(!may<Product, void, tensor_address, in_shared, in_tensor, bool>::value);
template <class Registers> auto multiply(Registers& d, int) -> decltype({_WGMMA_NAME}(d, uint64_t(), uint64_t(), true), std::true_type());
template <class Registers> std::false_type multiply(Registers& d, long);
static_assert(decltype(multiply(std::declval<float (&)[32]>(), 0))::value);
static_assert(!decltype(multiply(std::declval<float (&)[31]>(), 0))::value);
"""
    compiler.build(source, "-std=c++17", *_SM_90A, "-c", folder=tmp_path)


@pytest.mark.nvcc
def test_a_template_for_host_and_device_links_and_runs_on_the_host(compiler: Nvcc, tmp_path: Path) -> None:
    source = f"""{_POLICIES}
template <class Number> __host__ __device__ Number step(Number x, bool device) {{
  Number d[4] = {{x}};
  const uint32_t a[4] = {{}}, b[2] = {{}};
  if (device) {{
    {_MMA_NAME}(d, a, b, d);
    Warp::call(d, a, b, d);
  }} else {{
    d[0] += 1;
  }}
  return d[0];
}}
int main() {{ std::printf("%g\\n", step(1.f, false)); }}
"""
    compiler.build(source, "-std=c++17", *_SM_90A, "-Xcompiler=-Wall,-Wextra,-Werror", "-o", "program", folder=tmp_path)
    assert subprocess.run([tmp_path / "program"], check=True, capture_output=True, text=True).stdout == "2\n"


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("spelling", "statements", "words"),
    [
        (_MMA, f"uint32_t a[4] = {{}}; float d[4]; ptxmma::{_MMA_NAME}(d, a, {{a[0], a[1]}}, {{1, 2, 3, 4}});", ""),
        (_MMA, f"uint32_t a[4] = {{}}; float d[3]; ptxmma::{_MMA_NAME}(d, a, {{a[0], a[1]}}, {{1, 2, 3, 4}});", "float (&d)[4]"),
        (_WGMMA, f"float d[31]; ptxmma::{_WGMMA_NAME}(d, uint64_t(0), uint64_t(0), true);", "float (&d)["),
        (_WGMMA, "float d[31]; Multiply::call(d, a, a, true);", "float (&d)["),
        (
            _WGMMA,
            "float d[32]; Multiply::call(d, a, matrix_descriptor<PTXMMA_MAJORNESS_K, f16>{}, true);",
            "(ptxmma_majorness)0, ptxmma::f16>",
        ),
        (_WGMMA, "float d[32]; Multiply::call(d, a, a, true, 5);", "ptxmma: the options of this call are negate_a, negate_b"),
    ],
)
def test_a_wrong_argument_is_answered_with_the_signature(
    compiler: Nvcc, catalog: Catalog, spelling: str, statements: str, words: str, tmp_path: Path
) -> None:
    """In a few lines; arguments in braces are right."""
    multiply = f"matrix_descriptor<PTXMMA_MAJORNESS_K, bf16> a = {{}}; using Multiply = {front(catalog.find(_WGMMA))};"
    before = f"using namespace ptxmma; {multiply if 'Multiply' in statements else ''}"
    done = compiler.run(kernel(catalog, spelling, f"{before} {statements}"), *_SM_90A, "-c", folder=tmp_path)
    assert (done.returncode != 0) == bool(words), done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) < 16


@pytest.mark.nvcc
@pytest.mark.parametrize("dialect", ["c++11", "c++20"])  # 14 and 17 are used below
def test_every_dialect(compiler: Nvcc, dialect: str, tmp_path: Path) -> None:
    options = [f"-std={dialect}", *_SM_90A, "-Xcompiler=-Wall,-Wextra", "-c"]
    compiler.build("#include <ptxmma/ptxmma.cuh>\n", *options, folder=tmp_path)


# --- guards -----------------------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("spelling", "arch", "message"),
    [
        (_WGMMA, "sm_80", "needs sm_90a: compile with -gencode arch=compute_90a,code=sm_90a"),
        (_WGMMA, "sm_100a", "needs sm_90a: compile with -gencode arch=compute_90a,code=sm_90a"),
        (_MMA, "sm_75", "needs sm_80 or newer: compile with -arch=sm_80 or newer"),
    ],
)
def test_another_chip_is_refused_in_words(compiler: Nvcc, catalog: Catalog, spelling: str, arch: str, message: str, tmp_path: Path) -> None:
    said = compiler.refuse(kernel(catalog, spelling), f"-arch={arch}", "-c", folder=tmp_path)
    assert f"ptxmma: this instruction {message}" in said
    assert catalog.find(spelling).identifier in said


@pytest.mark.nvcc
def test_an_old_toolkit_is_refused_in_words(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    old = "#undef __CUDACC_VER_MAJOR__\n#define __CUDACC_VER_MAJOR__ 11\n#undef __CUDACC_VER_MINOR__\n#define __CUDACC_VER_MINOR__ 8\n"
    said = compiler.refuse(old + kernel(catalog, _WGMMA), *_SM_90A, "-c", folder=tmp_path)
    assert "ptxmma: this instruction needs PTX ISA 8.0: compile with CUDA 12.0 or newer" in said
    compiler.build(old + kernel(catalog, _MMA), *_SM_90A, "-c", folder=tmp_path)


@pytest.mark.nvcc
def test_an_instruction_that_the_toolkit_does_not_know_yet_is_refused_in_words(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    known = {target.name for target in catalog.database.spec.targets if Version(target.ptx) <= compiler.ptx}
    newer = [
        (instruction, target, first)
        for instruction in catalog.all()
        for target, first in instruction.accepted_by().items()
        if target in known and first > compiler.ptx
    ]
    if not newer:
        pytest.skip("the installed toolkit knows every instruction of the targets that it knows")
    instruction, target, first = newer[0]
    said = compiler.refuse(kernel(catalog, instruction.canonical), f"-arch={target}", "-c", folder=tmp_path)
    assert f"ptxmma: this instruction needs PTX ISA {first}: compile with CUDA " in said


@pytest.mark.nvcc
def test_the_pass_without_features_compiles_and_stops_at_run_time(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    source = kernel(catalog, _WGMMA)
    compiler.build(source, "-arch=sm_90a", "-c", folder=tmp_path)
    ptx = compiler.ptx_of(source, "sm_90", tmp_path)
    assert "trap;" in ptx
    assert "wgmma" not in ptx


@pytest.mark.nvcc
def test_a_kernel_for_several_chips_guards_itself(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    source = kernel(catalog, _WGMMA, f"\n#if __CUDA_ARCH__ == 900\n{call(catalog, _WGMMA)}\n#endif\n")
    targets = ("arch=compute_80,code=sm_80", "arch=compute_90a,code=sm_90a")
    compiler.build(source, *(option for target in targets for option in ("-gencode", target)), "-c", folder=tmp_path)


# --- the typed front --------------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
@pytest.mark.parametrize(("target", "before"), [("sm_90a", ""), ("sm_120a", "sm_90a")])
def test_the_front_picks_function_and_fragments(compiler: Nvcc, catalog: Catalog, target: str, before: str, tmp_path: Path) -> None:
    """Of each instruction, for the first of the targets that accepts it."""
    c_types = {entry.name: entry.c_type for entry in catalog.database.spec.types.registers}
    kernels = Kernels("ptxmma/ptxmma.cuh")
    types = []
    targets = ((instruction, instruction.accepted_by()) for instruction in catalog.all())
    accepted = [instruction for instruction, accepting in targets if target in accepting and before not in accepting]
    for instruction in one_of_each_front(accepted):
        if instruction.accepted_by()[target] > compiler.ptx:
            continue
        name = front(instruction)
        for one in front_calls(catalog, instruction):
            kernels.add(one.of(f"{name}::call"), instruction.canonical)
        for operand in (operand for operand in instruction.operands if operand.layout is not None):
            array = f"[{operand.registers}]" if operand.layout and operand.layout.kind == "fragment" else ""
            member = f"{name}::{operand.name.replace('-', '_')}::type"
            types.append(f'static_assert(same<{member}, {c_types[operand.register_types[0]]}{array}>::value, "");')
    assert len(kernels.expected) > 100
    first, _, rest = kernels.source.partition("\n")
    source = "\n".join([first, "using namespace ptxmma;", _SAME, *types, rest])
    ptx = compiler.ptx_of(source, target, tmp_path)
    assert instructions_in(ptx, (instruction.canonical for instruction in catalog.all())) == kernels.expected


#: Illegal immediates, which a pass for a device refuses; and types of the front that no instruction has, which each pass refuses.
_IMMEDIATES = [
    (_MMA_SP, "2", "ptxmma: f is one of 0, 1"),
    (_WGMMA, "1, 0, 0", "ptxmma: imm_scale_b is one of -1, 1"),
    ("wgmma.wait_group.sync.aligned", "-1", "ptxmma: n is from 0 to 2147483647"),
]
_TYPES = [
    (_MMA, "mma<shape<16, 8, 17>, f32, f16, f16, f32>::d::type d;", "ptxmma: no mma has this shape, these types and qualifiers"),
    (_WGMMA, "wgmma<shape<64, 12, 16>, f32, bf16, bf16>::d::type d;", "ptxmma: N is from 8 to 256 in steps of 8"),
    (_LD, "tcgen05_ld<shape<16, 64, 5>, b32>::r::type r;", "ptxmma: N is one of 1, 2, 4, 8, 16, 32, 64, 128"),
]


@pytest.mark.nvcc
@pytest.mark.parametrize("refused", [_IMMEDIATES, _TYPES], ids=["immediates", "types"])
def test_what_there_is_not_is_refused_in_words(
    compiler: Nvcc, catalog: Catalog, refused: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    lines = [f"#include <{shown(catalog.find(spelling)).header}>" for spelling, _, _ in refused]
    for number, (spelling, wrong, _) in enumerate(refused):
        instruction = catalog.find(spelling)
        one = next(calls(catalog, instruction))._replace(immediates=[wrong]).of(f"ptxmma::{instruction.identifier}")
        lines.append(f"__global__ void kernel_{number}() {{ using namespace ptxmma; {wrong if refused is _TYPES else one} }}")
    said = compiler.refuse("\n".join(lines), "-std=c++17", *_SM_90A, "-c", folder=tmp_path)
    assert [message for _, _, message in refused if message not in said] == []


@pytest.mark.nvcc
def test_a_call_of_the_front_that_needs_a_newer_dialect_says_so(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    called = "wgmma<shape<64, 8, 16>, f32, bf16, bf16>::call(d, a, a, true);"
    statements = f"using namespace ptxmma; float d[4] = {{}}; matrix_descriptor<PTXMMA_MAJORNESS_K, bf16> a = {{}}; {called}"
    said = compiler.refuse(kernel(catalog, _WGMMA, statements), "-std=c++14", *_SM_90A, "-c", folder=tmp_path)
    assert "ptxmma: this call needs C++17, or call the function of its N instead" in said


# --- constants --------------------------------------------------------------------------------------------------------------


_CONSTANTS = """
#include <ptxmma/cuda/tcgen05_product.cuh>
#include <ptxmma/shared_memory.h>
#include <ptxmma/wgmma/bf16_bf16.cuh>
using namespace ptxmma;
using Multiply = wgmma<shape<64, 128>, f32, bf16, bf16>;
using Product = tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16>;
using A = Multiply::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 128, 64>;
using B = Product::b_tile<PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_64B, 256, 64>;
static_assert(Multiply::a::row(5, 3) == 9 && A::offset(1, 8) == 128 && Product::d(1, 2).column == 2, "");
static_assert(ptxmma_describe_swizzle(PTXMMA_SWIZZLE_128B).bytes == 128, "");
struct alignas(A::alignment) Stage { unsigned char a[A::bytes], b[B::bytes]; };
static_assert(sizeof(Stage) == 128 * 64 * 2 + 256 * 64 * 2, "");
__global__ void kernel(uint64_t* out, uint32_t x, uint32_t k) {
  out[0] = A::offset(x, k) + B::offset(x, k) + ptxmma_swizzle_address(PTXMMA_SWIZZLE_32B, x, k);
  out[1] = A::descriptor(x, k).bits + A::advance(A::descriptor(x), k).bits + B::descriptor(x, k).bits;
  out[2] = Multiply::d::row(x, k) + Multiply::a::lane(x, k) + Multiply::d::col(x, k) + Product::d(x, k).lane;
}
"""


@pytest.mark.nvcc
def test_what_a_type_knows_is_a_constant_and_needs_no_table(compiler: Nvcc, tmp_path: Path) -> None:
    """Static assertions, sizes of arrays, and device code that loads nothing but its parameters."""
    for target in ("sm_90a", "sm_100a"):
        ptx = compiler.ptx_of(_CONSTANTS, target, tmp_path)
        assert set(re.findall(r"\bld\.(\w+)", ptx)) == {"param"}
        assert not re.search(r"^\.(?:const|global)", ptx, re.M)


# --- fences -----------------------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_a_fence_keeps_plain_accesses_on_their_side_and_costs_nothing(compiler: Nvcc, tmp_path: Path) -> None:
    def body(fence: str) -> list[str]:
        statements = f"float d[2] = {{x[0], x[1]}}; {fence} x[2] = d[0] + d[1];"
        source = f"#include <ptxmma/cuda/config.cuh>\n__global__ void kernel(float* x) {{ {statements} }}\n"
        ptx = compiler.ptx_of(source, "sm_90a", tmp_path)
        lines = (line.strip().split("//")[0] for line in ptx[ptx.index("{") :].splitlines())
        return [line for line in lines if line.endswith(";") and not line.startswith(".")]

    assert len(body("ptxmma::fence_accumulator(d);")) == len(body(""))
    # The compiler may not carry a value across the fence: the constant is added after it.
    source = (
        "#include <ptxmma/cuda/config.cuh>\n"
        "__global__ void kernel(float* x) { float d[1] = {1}; ptxmma::fence_accumulator(d); x[0] = d[0] + 1; }\n"
    )
    assert "add.f32" in compiler.ptx_of(source, "sm_90a", tmp_path)


@pytest.mark.nvcc
def test_a_fence_exists_for_every_register_type(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    types = sorted({entry.c_type for entry in catalog.database.spec.types.registers if entry.bits > 1})
    statements = " ".join(f"{{ {c_type} d[3] = {{}}; ptxmma::fence_accumulator(d); }}" for c_type in types)
    compiler.ptx_of(f"#include <ptxmma/cuda/config.cuh>\n__global__ void kernel() {{ {statements} }}\n", "sm_80", tmp_path)


# --- families of the user's own ---------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_a_made_up_family_gets_wrappers(nvcc: str, root: Path, tmp_path: Path) -> None:
    toys = pipeline.read(root / "tests/toy")
    include = write_headers(toys, tmp_path)
    kernels = Kernels("ptxmma/toy.cuh")
    for toy in toys.all():
        for one in calls(toys, toy):
            kernels.add(one.of(f"ptxmma::{toy.identifier}"), toy.canonical)
        for one in front_calls(toys, toy):
            kernels.add(f"using namespace ptxmma; {one.of(f'{front(toy)}::call')}", toy.canonical)
    # No assembler knows a toy, so nvcc fails after it wrote the PTX, and keeps that only if asked to.
    done = Nvcc(nvcc, toys, include).run(kernels.source, "-ptx", "-arch=sm_90", "--keep", folder=tmp_path)
    assert "Not a name of any known instruction: 'toy'" in done.stderr
    assert "source.cu" not in done.stderr
    counts = instructions_in((tmp_path / "source.ptx").read_text(), (toy.canonical for toy in toys.all()))
    assert counts == kernels.expected


# --- what users are shown ---------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_the_statements_that_users_paste_make_the_instruction(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    """Each statement over the parameters of its function, for one variant of each instruction."""
    kernels = Kernels()
    seen = set()
    for instruction in catalog.all():
        first = instruction.accepted_by().get("sm_90a")
        if instruction.variant.instruction.name in seen or first is None or first > compiler.ptx:
            continue
        seen.add(instruction.variant.instruction.name)
        said = shown(instruction)
        assert f" {instruction.identifier}(" in (compiler.include / said.header).read_text()
        for signature, statement in zip(said.functions, said.statements, strict=True):
            parameters = signature[signature.index("(") + 1 : -1]
            declared = [_declared(one) for one in re.split(r", (?![^(]*\))", parameters) if one]
            kernels.add(f"{' '.join(declared)} {statement}", instruction.canonical)
    assert len(seen) > 15
    ptx = compiler.ptx_of("#include <stdint.h>\n#pragma nv_diag_suppress 550\n" + kernels.source, "sm_90a", tmp_path)
    assert instructions_in(ptx, (instruction.canonical for instruction in catalog.all())) == kernels.expected


def _declared(parameter: str) -> str:
    """A parameter as a variable of zeros: ``float (&d)[4]`` as ``float d[4] = {};``."""
    return re.sub(r"\(&(\w+)\)", r"\1", parameter.removeprefix("const ")).replace("& ", " ") + " = {};"


@pytest.mark.nvcc
def test_wrappers_and_calls_cost_what_the_statement_costs(compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    """The same SASS three times: the statement that a user would write, the function, and the typed front."""
    package = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in package.submodule_search_locations or ()] if package else []
    packaged = next((str(path) for folder in folders for path in folder.glob("*/bin/nvdisasm")), None)
    disassembler = shutil.which("nvdisasm") or packaged or pytest.skip("nvdisasm is not installed: pip install nvidia-cuda-nvdisasm")
    lines = ["#include <ptxmma/ptxmma.cuh>", "#pragma nv_diag_suppress 550"]
    names: list[tuple[str, str]] = []
    for instruction in one_of_each_front(catalog.all()):
        first, entry = instruction.accepted_by().get("sm_90a"), instruction.variant.instruction
        if first is None or first > compiler.ptx or entry.operation != "multiply" or sum(family == entry.name for family, _ in names) == 10:
            continue
        said, front_call = shown(instruction), next(front_calls(catalog, instruction))
        parameters = said.functions[0][said.functions[0].index("(") + 1 : -1]
        declared = " ".join(_declared(one) for one in re.split(r", (?![^(]*\))", parameters) if one)
        numbers = ", ".join(map(str, _needed(instruction)))
        called = ", ".join(re.findall(r"(\w+)\)?(?:\[\d+\])?(?:,|$)", parameters))
        result = next(operand.name for operand in instruction.operands if operand.access != "read")
        keep = f"out[threadIdx.x] = {{}}{'[0]' if f'(&{result})' in parameters else ''};"
        immediates = f"<{numbers}>" if numbers else ""
        before, after = ("wgmma_fence();", "wgmma_commit_group(); wgmma_wait_group<0>();") if entry.asynchronous else ("", "")
        for kind, body, kept in (
            ("statement", f"{declared} {said.statements[0]}", result),
            ("function", f"{declared} ptxmma::{instruction.identifier}{immediates}({called});", result),
            ("front", front_call.of(f"ptxmma::{front(instruction)}::call"), f"the_{result}"),
        ):
            name = f"{kind}_{len(names)}"
            statements = f"using namespace ptxmma; {before} {body} {after} {keep.format(kept)}"
            # A product through descriptors of zero would be optimised away.
            statements = re.sub(
                r"(uint64_t \w+|matrix_descriptor<[\w:, ]+> \w+) = {};", r"\1 = {reinterpret_cast<uint64_t>(out)};", statements
            )
            lines.append(f'extern "C" __global__ void {name}(float* out) {{ {statements} }}')
        names.append((entry.name, instruction.canonical))
    assert len(names) >= 30
    compiler.build("\n".join(lines), "-std=c++17", *_SM_90A, "-cubin", "-o", "kernels.cubin", folder=tmp_path)
    text = subprocess.run([disassembler, "-c", tmp_path / "kernels.cubin"], check=True, capture_output=True, text=True).stdout
    text = re.sub(r"\$__internal_\d+_|\w+_\d+(?=\) ;)|\.L_x_\d+(?!:)", "", text)  # names are numbered
    sections = dict(re.findall(r"^\.text\.(\w+):\n(.*?)(?=^\.text\.|\Z)", text, re.M | re.S))
    code = {name: re.findall(r"^\s+/\*\w+\*/\s+(.*?;)", section, re.M) for name, section in sections.items()}
    for number, (_, canonical) in enumerate(names):
        assert any("MMA" in line for line in code[f"statement_{number}"]), canonical
        assert code[f"function_{number}"] == code[f"statement_{number}"], canonical
        assert code[f"front_{number}"] == code[f"statement_{number}"], canonical


def _needed(instruction: Instruction) -> list[int]:
    """The first legal values of the immediates without a default, in the order of template parameters."""
    given = (one for one in instruction.forms[0].operands if one.immediates and not one.takes_register and one.default is None)
    return [one.immediates[0] for one in given if one.immediates]
