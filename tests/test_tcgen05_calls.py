"""Calls of products of ``tcgen05.mma`` in C++: each picks the function of its opcode, makes its descriptor and passes its operands on."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest

from cuda_calls import Kernels, Nvcc, instructions_in
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.products import resolution
from ptxmma.catalog.variants import recased
from ptxmma.generator.emit.products import calls
from ptxmma.matrices.descriptors import of_product
from ptxmma.matrices.scaling import tensor_memory as tensor_scales

pytestmark = pytest.mark.nvcc

_HEADERS = [f"ptxmma/cuda/tcgen05_{name}_product.cuh" for name in ("mma", "mma_sp", "mma_ws", "mma_ws_sp")]


def _opcodes(catalog: Catalog, target: str) -> dict[Instruction, Instruction]:
    """A product of each opcode that a target has."""
    products = {}
    for opcode in catalog.all(lambda entry: entry.operation == resolution.OPERATION):
        if target in opcode.accepted_by() and not opcode.qualifiers.get("decompress"):
            every = [Instruction(opcode.database, each) for each in resolution.every(catalog.database.spec, opcode.variant)]
            products[opcode] = next(product for product in every if target in product.accepted_by())
    return products


def _type(product: Instruction) -> str:
    """The product as a type of C++."""
    qualifiers = product.qualifiers
    facts = dict(product.variant.chosen)
    shape = ", ".join(str(product.extents[name]) for name in "mnk")
    scale = recased(qualifiers.get("scale_vec") or "no_scale_vec").upper()
    types = ", ".join(f"ptxmma::{facts[name]}" for name in ("dtype", "atype", "btype"))
    name = product.variant.instruction.name.replace(".", "_")
    words = [f"PTXMMA_TCGEN05_{recased(qualifiers[each]).upper()}" for each in ("kind", "cta_group")]
    stype = f"ptxmma::{facts.get('stype', 'ue8m0')}"
    return f"ptxmma::{name}<ptxmma::shape<{shape}>, {words[0]}, {types}, {words[1]}, PTXMMA_TCGEN05_{scale}, {stype}>"


#: What a call is given for each kind of operand.
_GIVEN = {
    "tensor-accumulator": "ptxmma::tensor_address{1}",
    "tensor-matrix": "ptxmma::tensor_address{2}",
    "shared-descriptor": "ptxmma::tcgen05_descriptor<PTXMMA_MAJORNESS_K, TYPE>{3}",
    "tensor-metadata": "ptxmma::tensor_metadata{{4}, 0}",
    "tensor-scales": "ptxmma::tensor_scales{{5}, 0}",
    "predicate": "true",
    "lane-mask": "words",
    "column-mask": "uint64_t(6)",
}


def test_an_instruction_without_hints_takes_none(catalog: Catalog) -> None:
    instructions = [catalog.find("tcgen05.mma.cta_group::1.kind::f16"), catalog.find("wgmma.fence.sync.aligned")]
    assert calls.taken_hints(instructions) == "tcgen05.mma take CollectorA and CollectorB of <ptxmma/cuda/hints.cuh>; wgmma.fence take none"


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_every_form_of_every_opcode_is_called(target: str, compiler: Nvcc, catalog: Catalog, tmp_path: Path) -> None:
    """Of the PTX, the opcode, the number and kind of operands, and the instruction descriptor are those of the library."""
    kernels, texts = Kernels(*_HEADERS), {}
    for opcode, product in _opcodes(catalog, target).items():
        for form in opcode.forms:
            if target not in opcode.accepted_by(form=form):
                continue
            arguments = [
                _GIVEN[operand.kind].replace("TYPE", f"{_type(product)}::{operand.of}_type")
                for operand in form.operands
                if operand.kind in _GIVEN
            ]
            arguments += ["ptxmma::ashift{}"] * bool(opcode.qualifiers.get("ashift"))
            arguments += ["ptxmma::scale_input_d<7>{}"] * any(operand.kind == "immediate" for operand in form.operands)
            words = 4 * opcode.extents.get("ctas", 1) if "lane-mask" in {operand.kind for operand in form.operands} else 1
            name = f"kernel_{len(kernels.expected)}"
            kernels.add(
                f"const uint32_t words[{words}] = {{}}; (void)words; {_type(product)}::call({', '.join(arguments)});", opcode.canonical
            )
            texts[name] = (form.syntax, of_product(product))
    ptx = compiler.ptx_of(kernels.source, target, tmp_path)
    assert len(kernels.expected) > 100
    assert instructions_in(ptx, [opcode.canonical for opcode in _opcodes(catalog, target)]) == kernels.expected
    bodies = re.split(r"\.entry (\w+)\(", ptx)[1:]
    for name, body in zip(bodies[::2], bodies[1::2], strict=True):
        syntax, bits = texts[name]
        (operands,) = re.findall(r"tcgen05\.mma[\w.:]* (.*?);", body)
        places = [re.sub(r"[^\[\]{}]+", "x", part) for part in re.sub(r"\{.*?\}", "{}", operands).split(", ")]
        wanted = ["{}" if part == "disable-output-lane" else re.sub(r"[^\[\]]+", "x", part) for part in syntax.split(", ")]
        assert places == wanted, name
        assert re.search(rf"mov\.b32\s+%r\d+, {bits if bits < 2**31 else bits - 2**32};", body), name


_PROLOGUE = """#include <ptxmma/cuda/tcgen05_mma_product.cuh>
#include <ptxmma/cuda/tcgen05_mma_ws_product.cuh>
#include <ptxmma/cuda/tcgen05_mma_sp_product.cuh>
using namespace ptxmma;
using Half = tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16>;
using Short = tcgen05_mma<shape<64, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16>;
using Pair = tcgen05_mma<shape<256, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16, PTXMMA_TCGEN05_CTA_GROUP_2>;
using Bytes = tcgen05_mma_ws<shape<64, 128>, PTXMMA_TCGEN05_KIND_I8, s32, s8, u8>;
using Sparse = tcgen05_mma_sp<shape<128, 128>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16>;
using Scaled = tcgen05_mma<shape<128, 64>, PTXMMA_TCGEN05_KIND_MXF8F6F4, f32, e4m3, e2m1>;
using PairScaled = tcgen05_mma<shape<128, 64>, PTXMMA_TCGEN05_KIND_MXF8F6F4, f32, e4m3, e2m1, PTXMMA_TCGEN05_CTA_GROUP_2>;
using Small = tcgen05_mma<shape<128, 8>, PTXMMA_TCGEN05_KIND_F8F6F4, f32, e4m3, e4m3>;
"""
_KERNEL = """__global__ void NAME(tensor_address d, tensor_address a_tmem, tcgen05_descriptor<PTXMMA_MAJORNESS_K, PRODUCT::a_type> a,
                     tcgen05_descriptor<PTXMMA_MAJORNESS_MN, PRODUCT::b_type> b, bool accumulate) {
  const uint32_t words[4] = {};
  (void)words;
  CALL;
}
"""


#: The line of the call in the text of a kernel, whose first line is 1.
_CALL_LINE = _KERNEL.splitlines().index("  CALL;") + 1


def _kernel(name: str, call: str) -> str:
    product = re.findall(r"\b([A-Z]\w*)::", call)[0]
    return _KERNEL.replace("NAME", name).replace("PRODUCT", product).replace("CALL", call)


_OPTIONS = [
    ("Half::call(d, a, b, accumulate, collector_a_fill{}, negate_b{})", "kind::f16.collector::a::fill", 1 << 14 | 1 << 16),
    ("Half::call(d + 256, a_tmem, b, true, negate_a{})", "kind::f16", 1 << 13 | 1 << 16),
    ("Half::call(d, a, b, words, true, scale_input_d<15>{}, collector_a_lastuse{})", "kind::f16.collector::a::lastuse", 1 << 16),
    ("Half::call(d, a_tmem, b, true, ashift{})", "kind::f16.ashift", 1 << 16),
    (
        "Bytes::call(d, a, b, true, saturate{}, max_shift<16>{}, collector_b3_use{})",
        "kind::i8.collector::b3::use",
        2 << 30 | 1 << 16 | 8,
    ),
    ("Sparse::call(d, a, b, {a_tmem, 1}, true)", "kind::f16", 1 << 16 | 1),
    ("Scaled::call(d, a, b, {a_tmem, 3}, {a_tmem + 4, 2}, true)", "kind::mxf8f6f4.block_scale", 3 << 29 | 2 << 4 | 1 << 16),
]


def test_options_and_numbers_of_operands(compiler: Nvcc, tmp_path: Path) -> None:
    """They become modifiers, immediates, and bits of the instruction descriptor."""
    kernels = []
    for number, (call, _, _) in enumerate(_OPTIONS):
        product = call.split(":")[0]
        kernels.append(_kernel(f"call_{number}", call))
        kernels.append(_kernel(f"plain_{number}", f'asm volatile("// {{%0}}" : : "n"({product}::instruction()))'))
    parts = re.split(r"\.entry _Z\d+((?:call|plain)_\d+)", compiler.ptx_of(_PROLOGUE + "".join(kernels), "sm_100a", tmp_path))
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    for number, (call, opcode, bits) in enumerate(_OPTIONS):
        body = bodies[f"call_{number}"]
        assert re.findall(r"tcgen05\.mma[\w.]*\.cta_group::1\.(\S+) ", body) == [opcode], call
        (base,) = re.findall(r"// \{(-?\d+)\}", bodies[f"plain_{number}"])
        wanted = (int(base) | bits) & 0xFFFFFFFF
        assert re.search(rf"mov\.b32\s+%r\d+, {wanted if wanted < 2**31 else wanted - 2**32};", body), (call, hex(wanted), body)


_REFUSED = [
    ("Half::call(d, a, b, true, saturate{})", "saturate is for kind::i8"),
    ("Half::call(d, a, b, true, ashift{})", "ashift is for .*, and for A in tensor memory with M = 128 or 256"),
    ("Short::call(d, a_tmem, b, true, ashift{})", "ashift is for .*, and for A in tensor memory with M = 128 or 256"),
    ("Half::call(d, a, b, true, scale_input_d<16>{})", "scale_input_d is from 0 to 15"),
    ("Bytes::call(d, a, b, true, scale_input_d<1>{})",
     "scale_input_d is for tcgen05.mma and tcgen05.mma.sp with kind::f16, kind::tf32"),
    ("Bytes::call(d, a, b, true, max_shift<4>{})", "max_shift is one of 0, 8, 16, 32"),
    ("Half::call(d, a, b, true, collector_b0_fill{})", "for another instruction: tcgen05.mma and tcgen05.mma.sp take CollectorA"),
    ("Half::call(d, a, b, true, 3)",
     "of a call are saturate, negate_a, negate_b, sparsity_version, ashift, max_shift<Columns>, scale_a_lanes<Lanes>, scale_input_d<"),
    ("Pair::call(d, a, b, words, true)", "disable_output_lane has 4 words for each CTA"),
    ("Small::call(d, a, b, true)", "this product has no MN-major A or B"),
    ("Half::scales_a(d, 1)", "this product scales no blocks"),
    ("Scaled::call(d, a, b, {a_tmem, 0}, {a_tmem, 0}, true, scale_a_lanes<128>{})", "scale_a_lanes<128> needs sm_107f"),
    ("PairScaled::scales_b(d, 1)", "the scale factors of M = 128 in a pair of CTAs lie otherwise"),
    ("Half::call(d, 1u, b, true)", "no instance of overloaded function"),
    ("Half::call(d, tcgen05_descriptor<PTXMMA_MAJORNESS_K, f16>{}, b, true)", "no instance of overloaded function"),
    ("Sparse::call(d, a, b, true)", "no instance of overloaded function"),
]  # fmt: skip


def test_calls_that_do_not_compile(compiler: Nvcc, tmp_path: Path) -> None:
    """Each is refused in words, at its own line."""
    source = _PROLOGUE + "".join(_kernel(f"call_{number}", call) for number, (call, _) in enumerate(_REFUSED))
    said = compiler.refuse(source, "-cubin", "-gencode", "arch=compute_100a,code=sm_100a", folder=tmp_path)
    errors = re.split(r"^(?=\S+\(\d+\): error)", said, flags=re.MULTILINE)
    lines = source.splitlines()
    for number, (call, message) in enumerate(_REFUSED):
        line = next(place for place in range(len(lines)) if f" call_{number}(" in lines[place]) + _CALL_LINE
        own = [error for error in errors if re.search(rf"source\.cu\({line}\)|at line {line} of source\.cu", error)]
        assert any(re.search(message, error) for error in own), (call, own, said)


def test_a_product_without_its_header_says_which_to_include(compiler: Nvcc, tmp_path: Path) -> None:
    source = """#include <ptxmma/cuda/tcgen05_product.cuh>
using P = ptxmma::tcgen05_mma<ptxmma::shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
__global__ void kernel(ptxmma::tensor_address d) { P::call(d, d, d, true); }
"""
    done = compiler.run(source, "-cubin", "-gencode", "arch=compute_100a,code=sm_100a", folder=tmp_path)
    assert "include <ptxmma/cuda/tcgen05_mma_product.cuh>" in done.stderr


_BY_HAND = {
    "Half::call(d, a, b, accumulate)": "tcgen05.mma.cta_group::1.kind::f16 [%0], %2, %3, {Half}, p;",
    "Half::call(d, a_tmem, b, accumulate, ashift{})": "tcgen05.mma.cta_group::1.kind::f16.ashift [%0], [%1], %3, {Half}, p;",
    "Scaled::call(d, a, b, {a_tmem, 0}, {a_tmem + 4, 0}, accumulate)": (
        "add.u32 q, %1, 4; tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %2, %3, {Scaled}, [%1], [q], p;"
    ),
}


_STEPS = """extern "C" __global__ void NAME(tensor_address d, MatrixPRODUCT a, MatrixPRODUCT b, uint32_t number) {
  (void)number;
#pragma unroll
  for (uint32_t step = 0; step < 8; ++step) PRODUCT::call(d, a, b, SCALES, true);
}
"""
#: Kinds with the type of an element, the blocks, and the number of factors of a line.
_SCALED = {"MXF8F6F4": ("e4m3", "NO_SCALE_VEC", 1), "MXF4": ("e2m1", "BLOCK32", 2), "MXF4NVF4": ("e2m1", "BLOCK16", 4)}


def test_steps_along_k_read_factors_where_the_library_says(compiler: Nvcc, tmp_path: Path) -> None:
    """``scales_a`` and ``scales_b`` are ``tensor_scales.step``; an ID of one's own that is not legal ends the kernel."""
    lines = ["#include <ptxmma/cuda/tcgen05_mma_product.cuh>", "using namespace ptxmma;"]
    traps = {}
    for kind, (element, block, factors) in _SCALED.items():
        group = f"PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_{block}"
        lines.append(f"using {kind} = tcgen05_mma<shape<128, 192>, PTXMMA_TCGEN05_KIND_{kind}, f32, {element}, {element}, {group}>;")
        lines.append(f"using Matrix{kind} = tcgen05_descriptor<PTXMMA_MAJORNESS_K, {element}>;")
        for number, (side, count) in itertools.product(range(16), (("a", 128), ("b", 192))):
            step = tensor_scales.step(count, factors, number)
            given = f"{kind}::scales_{side}(tensor_address{{5}}, {number})"
            lines.append(f'static_assert({given}.address.bits == {5 + step.column} && {given}.id == {step.scale_id}, "");')
        for name, scales, trap in (
            ("counted", f"{kind}::scales_a({{8}}, step), {kind}::scales_b({{40}}, step)", False),
            ("first", "{{8}, 0}, {{40}, 0}", False),
            ("each", "{{8}, step}, {{40}, 0}", True),
            ("any", "{{8}, 0}, {{40}, number}", True),
        ):
            traps[f"{name}_{kind}"] = trap
            lines.append(_STEPS.replace("NAME", f"{name}_{kind}").replace("PRODUCT", kind).replace("SCALES", scales))
    parts = re.split(r"\.entry (\w+)\(", compiler.ptx_of("\n".join(lines), "sm_100a", tmp_path))[1:]
    assert {name: "trap;" in body for name, body in zip(parts[::2], parts[1::2], strict=True)} == traps


@pytest.mark.usefixtures("disassembler")
def test_calls_become_what_is_written_by_hand(compiler: Nvcc, tmp_path: Path) -> None:
    """The machine code is that of an asm statement with the instruction descriptor as a number."""
    kernels = []
    for number, (call, text) in enumerate(_BY_HAND.items()):
        product = call.split(":")[0]
        asm = text.replace(f"{{{product}}}", "%4")
        hand = (
            f'asm volatile("{{.reg .pred p; .reg .b32 q; setp.ne.b32 p, %5, 0; {asm}}}" : : "r"(d.bits), "r"(a_tmem.bits), "l"(a.bits), '
            f'"l"(b.bits), "n"({product}::instruction<PTXMMA_MAJORNESS_K, PTXMMA_MAJORNESS_MN>()), "r"(int(accumulate)) : "memory")'
        )
        for kind, body in (("typed", call), ("hand", hand)):
            kernels.append(_kernel(f"{kind}_{number}", body))
    arch = ("-gencode", "arch=compute_100a,code=sm_100a")
    compiler.build(_PROLOGUE + "".join(kernels), "-std=c++17", "-cubin", *arch, "-o", "kernels.cubin", folder=tmp_path)
    code = subprocess.run(["cuobjdump", "-sass", tmp_path / "kernels.cubin"], capture_output=True, text=True, check=True).stdout
    bodies = dict(re.findall(r"Function : _Z\d+(\w+?_\d)\w*\n(.*?)(?=Function : |\Z)", code, re.DOTALL))
    for number in range(len(_BY_HAND)):
        by_hand, by_call = (re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", bodies[f"{kind}_{number}"]) for kind in ("hand", "typed"))
        assert any(line.startswith("UTC") for line in map(_bare, by_hand))
        assert by_call == by_hand


def _bare(line: str) -> str:
    """A machine instruction without its predicate."""
    return re.sub(r"^@!?U?P\w+\s+", "", line)
