"""Products of ``tcgen05.mma`` in C and C++: what is legal, their descriptors and where D lies, as the library says."""

from __future__ import annotations

import ctypes
import itertools
import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ptxmma
from cuda_calls import Nvcc
from header_programs import EXTERNAL, WARNINGS, library, run, write_headers
from ptxmma import paths, shared_memory
from ptxmma.catalog.descriptors.lookup import codec_of
from ptxmma.catalog.instructions import Instruction, catalog
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.product_rules import IllegalProductError
from ptxmma.matrices.descriptors import of_product
from ptxmma.model import matches

_SPEC = catalog().database.spec
assert _SPEC.tensor_products is not None
_RULES = _SPEC.tensor_products
_OPCODES = {
    (entry.variant.instruction.name, entry.qualifiers["cta_group"], entry.qualifiers["kind"], entry.qualifiers.get("scale_vec", "")): entry
    for entry in catalog().all(lambda entry: entry.operation == resolution.OPERATION)
    if not entry.qualifiers.get("ashift") and not entry.qualifiers.get("decompress")
}
_NAMES = list(dict.fromkeys(name for name, *_ in _OPCODES))
_KINDS = list(dict.fromkeys(kind for format in _SPEC.descriptors for kind in format.kinds))
_TYPES = [element.name for element in _SPEC.types.elements]
_SCALE_VECTORS = ["", "block16", "block32", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X"]


_Values = dict[str, str | int]


class _Product(ctypes.Structure):
    """``ptxmma_tcgen05_product``; enumerators are numbered in the order of these lists, types from 1 on."""

    _fields_ = tuple(
        [(name, ctypes.c_int) for name in ("opcode", "cta_group", "kind", "scale_vec")]
        + [(name, ctypes.c_uint32) for name in "mnk"]
        + [(name, ctypes.c_int) for name in ("dtype", "atype", "btype", "stype", "a_majorness", "b_majorness")]
    )


class _Choices(ctypes.Structure):
    """``ptxmma_tcgen05_choices``."""

    _fields_ = tuple(
        (name, ctypes.c_uint32)
        for name in (
            *("sparsity_selector", "saturate", "negate_a", "negate_b", "max_shift", "scale_b_id", "scale_a_lanes", "scale_a_id"),
            "sparsity_version",
        )
    )


class _Place(ctypes.Structure):
    """``ptxmma_tcgen05_place``."""

    _fields_ = tuple((name, ctypes.c_uint32) for name in ("cta", "lane", "column"))


def _product(opcode: tuple[str, str, str, str], values: _Values) -> _Product:
    name, group, kind, scale_vec = opcode
    sizes = [int(values[extent]) for extent in "mnk"]
    types = [1 + _TYPES.index(str(values.get(key, "ue8m0"))) for key in ("dtype", "atype", "btype", "stype")]
    return _Product(_NAMES.index(name), int(group[-1]) - 1, _KINDS.index(kind), _SCALE_VECTORS.index(scale_vec), *sizes, *types, 0, 0)


@pytest.fixture(scope="module")
def headers(cc: str, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    include = write_headers(catalog(), tmp_path_factory.mktemp("headers"), "c_headers", "products")
    source = '#include "ptxmma/tcgen05_products.h"\n'
    made = library(cc, source, tmp_path_factory.mktemp("library"), "-O1", "-std=c99", *WARNINGS, *EXTERNAL, f"-I{include}")
    for name in ("is_legal", "k", "instruction", "d_columns", "d_row", "d_col", "a_depth", "scale_factors"):
        getattr(made, f"ptxmma_tcgen05_product_{name}").restype = ctypes.c_uint32
    made.ptxmma_tcgen05_product_d.restype = _Place
    return made


_JAVASCRIPT = """
const {{ instruction, tensorProduct }} = await import("{package}");
const ARGUMENTS = ["dtype", "atype", "btype", "k", "m", "n", "sparsity_version", "scale_a_lanes", "stype"];
const answers = {questions}.map(([spelling, given]) => {{
  const values = tensorProduct(instruction(spelling), given)?.values ?? {{}};
  return ARGUMENTS.every((name) => !(name in given) || (name in values && values[name] === given[name]));
}});
console.log(JSON.stringify(answers));
"""


def _legal(entry: Instruction, values: _Values) -> bool:
    """The verdict of the library."""
    chosen = {name: value for name, value in values.items() if name != "b_majorness"}
    try:
        product_rules.choose(_SPEC, entry.canonical, entry.variant.facts, chosen)
        product_rules.check_limits(_SPEC, entry.canonical, {**entry.variant.facts, **values})
    except IllegalProductError:
        return False
    return True


def _questions() -> Iterator[tuple[tuple[str, str, str, str], _Values]]:
    """Products of every opcode with one value changed, and a B that may be MN-major."""
    for opcode, entry in _OPCODES.items():
        chance = random.Random(str(opcode))
        majornesses = {
            value for case in codec_of(entry).field("b_majorness").cases for value in case.values if matches(case.when, entry.variant.facts)
        }
        for legal in chance.choices(list(resolution.every(_SPEC, entry.variant)), k=40):
            values = dict(legal.choice.values) | {"b_majorness": chance.choice(sorted(majornesses))}
            key = chance.choice([name for name in values if name not in ("sparsity_version", "scale_a_lanes", "b_majorness")])
            sizes = [8, 24, 32, 64, 96, 128, 256, 512]
            values[key] = chance.choice(_TYPES) if key in ("dtype", "atype", "btype", "stype") else chance.choice(sizes)
            yield opcode, values


def test_python_c_and_javascript_agree_on_what_is_legal(headers: ctypes.CDLL, root: Path) -> None:
    questions = list(_questions())
    python = [_legal(_OPCODES[opcode], values) for opcode, values in questions]
    assert 300 < sum(python) < len(python) - 300
    for said, (opcode, values) in zip(python, questions, strict=True):
        product = _product(opcode, values)
        product.b_majorness = int(values["b_majorness"] == "MN")
        assert bool(headers.ptxmma_tcgen05_product_is_legal(product)) == said, (opcode, values)
    node = shutil.which("node") or pytest.skip("node is not installed")
    asked = json.dumps([(_OPCODES[opcode].canonical, values) for opcode, values in questions])
    program = _JAVASCRIPT.format(package=root / "generated/javascript/index.js", questions=asked)
    done = subprocess.run([node, "--input-type=module"], input=program, capture_output=True, text=True, check=True)
    wrong = [question for question, one, other in zip(questions, json.loads(done.stdout), python, strict=True) if one != other]
    assert not wrong


@pytest.mark.parametrize("opcode", _OPCODES, ids=lambda opcode: ".".join(filter(None, opcode)))
def test_c_writes_the_descriptors_and_places_of_python(opcode: tuple[str, str, str, str], headers: ctypes.CDLL) -> None:
    entry = _OPCODES[opcode]
    for legal in random.Random(str(opcode)).choices(list(resolution.every(_SPEC, entry.variant)), k=40):
        _compare(Instruction(entry.database, legal), _product(opcode, dict(legal.choice.values)), headers)


def _compare(instruction: Instruction, product: _Product, headers: ctypes.CDLL) -> None:
    assert headers.ptxmma_tcgen05_product_is_legal(product)
    chosen = [name for name in ("scale_a_id", "scale_b_id") if "stype" in dict(instruction.variant.chosen)]
    legal = [number for number in range(6) if headers.ptxmma_tcgen05_product_scale_id_is_legal(product, number)]
    ids = {name: legal[-number] for number, name in enumerate(chosen)}
    held = {"v1": 1, 128: 1}
    options = {name: held.get(value, 0) for name, value in instruction.variant.chosen if name in product_rules.OPTIONS}
    for operand in instruction.forms[0].operands:
        if operand.kind != "tensor-scales" or operand.tensor is None:
            continue
        assert legal == [*operand.tensor.selections["scale_id"]]
        assert headers.ptxmma_tcgen05_product_scale_factors(product) == operand.tensor.sizes["block"]
        for number in {*range(4)} - {*legal}:
            with pytest.raises(ValueError, match=f"scale_{operand.of}_id = {number} is not legal"):
                of_product(instruction, **{f"scale_{operand.of}_id": number})
    assert headers.ptxmma_tcgen05_product_instruction(product, _Choices(**ids, **options)) == of_product(instruction, **ids)
    for name, value in (("negate_b", 1), ("saturate", 1), ("max_shift", 8), ("sparsity_selector", 1)):
        try:
            bits = of_product(instruction, **{name: value})
        except (TypeError, ValueError):
            continue
        assert headers.ptxmma_tcgen05_product_instruction(product, _Choices(**{name: min(value, 1)}, **options)) == bits, name
    usual = next(row.k for row in _RULES.depths if matches(row.of, {**instruction.variant.facts, "k": ""}))
    assert headers.ptxmma_tcgen05_product_k(product) == usual
    for side in ("a_majorness", "b_majorness"):
        setattr(product, side, 1)
        try:
            bits = of_product(instruction, **{side: "MN"})
        except ValueError:
            assert not headers.ptxmma_tcgen05_product_is_legal(product), side
        else:
            assert headers.ptxmma_tcgen05_product_is_legal(product), side
            assert headers.ptxmma_tcgen05_product_instruction(product, _Choices(**options)) == bits
        setattr(product, side, 0)
    d = _result(instruction)
    assert headers.ptxmma_tcgen05_product_d_columns(product) == d.placed().columns
    for row, col in ((0, 0), (product.m - 1, product.n - 1), (product.m // 3, product.n // 2), (product.m // 2, product.n // 3)):
        place = headers.ptxmma_tcgen05_product_d(product, row, col)
        assert (place.cta, place.lane, place.column) == d.locate(row, col)[:3]
        back = [
            getattr(headers, f"ptxmma_tcgen05_product_d_{axis}")(product, place.cta, place.lane, place.column) for axis in ("row", "col")
        ]
        assert back == [row, col]


def _result(instruction: Instruction) -> Operand:
    return instruction.operand("d-tmem")


def test_opcodes_that_do_not_exist_have_no_products(headers: ctypes.CDLL) -> None:
    plain: _Values = {"m": 128, "n": 128, "k": 16, "dtype": "f32", "atype": "f16", "btype": "f16"}
    assert headers.ptxmma_tcgen05_product_is_legal(_product(("tcgen05.mma.ws", "cta_group::1", "kind::f16", ""), plain))
    assert not headers.ptxmma_tcgen05_product_is_legal(_product(("tcgen05.mma.ws", "cta_group::2", "kind::f16", ""), plain))
    assert not headers.ptxmma_tcgen05_product_is_legal(_product(("tcgen05.mma", "cta_group::1", "kind::f16", "block32"), plain))


# --- C++ --------------------------------------------------------------------------------------------------------------------

_F16: tuple[str, _Values] = ("cta_group::1.kind::f16", {"m": 128, "n": 256, "dtype": "f32", "atype": "bf16", "btype": "bf16"})
_FRONTS: dict[str, tuple[str, str, _Values, str, int]] = {
    "tcgen05_mma<shape<128, 64>, PTXMMA_TCGEN05_KIND_F8F6F4, f32, e2m1, e3m2>": (
        "tcgen05.mma", "cta_group::1.kind::f8f6f4", {"m": 128, "n": 64, "dtype": "f32", "atype": "e2m1", "btype": "e3m2"}, "128B", 256,
    ),
    "tcgen05_mma_sp<shape<128, 64>, PTXMMA_TCGEN05_KIND_MXF8F6F4, f32, e2m3, e2m1>": (
        "tcgen05.mma.sp", "cta_group::1.kind::mxf8f6f4.block_scale", {"m": 128, "n": 64, "atype": "e2m3", "btype": "e2m1"}, "64B", 128,
    ),
    "tcgen05_mma<shape<128, 64, 96>, PTXMMA_TCGEN05_KIND_MXF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK32>": (
        "tcgen05.mma", "cta_group::1.kind::mxf4.block_scale.block32", {"m": 128, "n": 64, "k": 96}, "none", 192,
    ),
    "tcgen05_mma<shape<128, 128>, PTXMMA_TCGEN05_KIND_MXF8F6F4, f32, e3m2, e2m1>": (
        "tcgen05.mma", "cta_group::1.kind::mxf8f6f4.block_scale", {"m": 128, "n": 128, "atype": "e3m2", "btype": "e2m1"}, "128B", 128,
    ),
    "tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16>": ("tcgen05.mma", *_F16, "128B", 64),
    "tcgen05_mma<shape<256, 256, 32>, PTXMMA_TCGEN05_KIND_F8F6F4, f16, e4m3, e5m2, PTXMMA_TCGEN05_CTA_GROUP_2>": (
        "tcgen05.mma", "cta_group::2.kind::f8f6f4", {"m": 256, "n": 256, "dtype": "f16", "atype": "e4m3", "btype": "e5m2"}, "64B", 64,
    ),
    "tcgen05_mma_sp<shape<64, 64>, PTXMMA_TCGEN05_KIND_TF32, f32, tf32, tf32>": (
        "tcgen05.mma.sp", "cta_group::1.kind::tf32", {"m": 64, "n": 64}, "32B", 16,
    ),
    "tcgen05_mma_ws<shape<32, 128>, PTXMMA_TCGEN05_KIND_I8, s32, s8, u8>": (
        "tcgen05.mma.ws", "cta_group::1.kind::i8", {"m": 32, "n": 128, "atype": "s8", "btype": "u8"}, "none", 64,
    ),
    "tcgen05_mma<shape<128, 64>, PTXMMA_TCGEN05_KIND_MXF4NVF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK16, "
    "ue4m3>": (
        "tcgen05.mma", "cta_group::1.kind::mxf4nvf4.block_scale.block16", {"m": 128, "n": 64, "stype": "ue4m3"}, "128B", 256,
    ),
}  # fmt: skip


def _asserts(front: str, name: str, opcode: str, values: _Values, swizzle: str, depth: int) -> str:
    """What Python says of a product and its tiles, as assertions of C++."""
    product = ptxmma.instruction(f"{name}.{opcode}").resolved(**values)
    m, n, k = product.extents["m"], product.extents["n"], product.extents["k"]
    kept = depth // 2 if product.sparse else depth
    lines = [
        f"using P = {front};",
        f'static_assert(P::m == {m} && P::n == {n} && P::k == {k}, "");',
        f'static_assert(P::instruction() == {of_product(product):#x}, "");',
        f'static_assert(P::d_columns == {_result(product).placed().columns}, "");',
        f'static_assert(P::d({m - 1}, {n - 1}).lane == {_result(product).locate(m - 1, n - 1).lane}, "");',
    ]
    for matrix, extent, along, majorness in (("a", m, kept, "K"), ("b", n, depth, "K"), ("a", m, kept, "MN"), ("b", n, depth, "MN")):
        try:
            image = shared_memory.of(product, matrix, swizzle, majorness, x=extent, k=along, start=1024)
        except ValueError:
            assert majorness == "MN"
            continue
        tile = f"P::{matrix}_tile<PTXMMA_MAJORNESS_{majorness}, PTXMMA_SWIZZLE_{swizzle.upper()}, {extent}, {along}>"
        steps = [step.encode() for step in image.steps(k // 2 if matrix == "a" and product.sparse else k)]
        places = [(line, depth) for line in (0, 1, extent - 1) for depth in (0, 1, along // 3, along - 1)]
        lines += [
            f'static_assert({tile}::bytes == {image.size} && {tile}::sbo == {image.sbo}, "");',
            f'static_assert({tile}::steps == {len(steps)}, "");',
            *_transaction(tile, image),
            f'static_assert({tile}::descriptor(1024).bits == {steps[0]:#x}, "");',
            *(f'static_assert({tile}::offset({x}, {at}) == {image.address(x, at) - 1024}, "");' for x, at in places),
            f'static_assert({tile}::advance({tile}::descriptor(1024), {len(steps) - 1}).bits == {steps[-1]:#x}, "");',
        ]
    return "namespace ptxmma {\n" + "\n".join(lines) + "\n}\n"


def _transaction(tile: str, image: shared_memory.SharedLayout) -> list[str]:
    """That TMA counts as many bytes as the library says; nothing of a tile that TMA cannot write."""
    if image.padded and image.swizzle != "128B":
        return []
    return [f'static_assert({tile}::transaction_bytes == {image.x * image.k * image.element.bits // 8}, "");']


@pytest.mark.parametrize("front", _FRONTS)
def test_products_as_types_agree_with_the_library(front: str, cxx: str, tmp_path: Path) -> None:
    source = tmp_path / "product.cpp"
    source.write_text("#include <ptxmma/cuda/tcgen05_product.cuh>\n" + _asserts(front, *_FRONTS[front]), encoding="utf-8")
    for standard in ("c++14", "c++20"):
        run(cxx, f"-std={standard}", "-Wall", "-Wextra", "-Werror", f"-I{paths.INCLUDE}", "-c", source, "-o", tmp_path / "product.o")


@pytest.mark.nvcc
@pytest.mark.parametrize(("target", "fits"), [("103a", True), ("103", True), ("103f", False), ("100a", False)])
def test_descriptors_with_two_addresses_are_for_targets_that_have_them(target: str, fits: bool, compiler: Nvcc, tmp_path: Path) -> None:
    """``nvcc -arch=sm_103a`` makes a pass for compute_103, too."""
    source = """#include <ptxmma/cuda/tcgen05_product.cuh>
using namespace ptxmma;
using P = tcgen05_mma<shape<128, 64, 96>, PTXMMA_TCGEN05_KIND_MXF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK32>;
using A = P::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 128, 768>;
__global__ void kernel(uint64_t* to, uint32_t start) { *to = A::descriptor(start, 0, 192).bits; }
"""
    arch = f"arch=compute_{target},code=sm_{target}"
    done = compiler.run(source, "-std=c++17", "-gencode", arch, "-cubin", folder=tmp_path)
    assert (done.returncode == 0) == fits, done.stderr
    assert fits or "the descriptors of this K with a swizzle need sm_103a: take PTXMMA_SWIZZLE_NONE" in done.stderr


_SCALED: _Values = {"m": 128, "n": 128, "dtype": "f32", "atype": "e2m1", "btype": "e2m1"}
_ON_TARGETS: dict[str, tuple[str, _Values]] = {
    "128, 128, 96>, PTXMMA_TCGEN05_KIND_MXF4NVF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK16, ue4m3": (
        "kind::mxf4nvf4.block_scale.block16", {**_SCALED, "k": 96, "stype": "ue4m3"},
    ),
    "128, 128>, PTXMMA_TCGEN05_KIND_MXF4NVF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK32, ue4m3": (
        "kind::mxf4nvf4.block_scale.block32", {**_SCALED, "stype": "ue4m3"},
    ),
    "128, 128>, PTXMMA_TCGEN05_KIND_MXF4NVF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK32, ue8m0": (
        "kind::mxf4nvf4.block_scale.block32", {**_SCALED, "stype": "ue8m0"},
    ),
    "128, 128, 64>, PTXMMA_TCGEN05_KIND_F8F6F4, f32, e4m3, e4m3": (
        "kind::f8f6f4", {**_SCALED, "atype": "e4m3", "btype": "e4m3", "k": 64},
    ),
}  # fmt: skip


@pytest.mark.nvcc
@pytest.mark.parametrize("target", ["sm_100a", "sm_103a", "sm_103f"])
@pytest.mark.parametrize("front", _ON_TARGETS)
def test_a_product_compiles_for_the_targets_that_have_it(front: str, target: str, compiler: Nvcc, tmp_path: Path) -> None:
    opcode, values = _ON_TARGETS[front]
    product = ptxmma.instruction(f"tcgen05.mma.cta_group::1.{opcode}").resolved(**values)
    source = (
        "#include <ptxmma/cuda/tcgen05_product.cuh>\nnamespace ptxmma {\n__global__ void descriptor(uint32_t* to) "
        f"{{ *to = tcgen05_mma<shape<{front}>::instruction(); }}\n}}\n"
    )
    arch = f"arch={target.replace('sm_', 'compute_')},code={target}"
    done = compiler.run(source, "-std=c++17", "-gencode", arch, "-cubin", folder=tmp_path)
    has = any(target in product.accepted_by(form=form) for form in product.forms)
    assert (done.returncode == 0) == has, done.stderr
    assert has or ("needs sm_10" in done.stderr), done.stderr


def test_a_tile_of_a_pair_has_the_part_of_one_cta(cxx: str, tmp_path: Path) -> None:
    """Half of the rows of A and half of the columns of B; rows of D that are not constants compile."""
    source = tmp_path / "pair.cpp"
    source.write_text(
        "#include <ptxmma/cuda/tcgen05_product.cuh>\nnamespace ptxmma {\n"
        "using P = tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16, PTXMMA_TCGEN05_CTA_GROUP_2>;\n"
        'static_assert(P::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_32B, 64, 16>::steps == 1, "");\n'
        'static_assert(P::b_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_32B, 128, 16>::steps == 1, "");\n'
        "uint32_t lane(uint32_t row) { return P::d(row, 0).lane; }\n}\n",
        encoding="utf-8",
    )
    run(cxx, "-std=c++14", "-Wall", "-Wextra", "-Werror", f"-I{paths.INCLUDE}", "-c", source, "-o", tmp_path / "pair.o")


def test_tiles_with_32_byte_atoms(cxx: str, tmp_path: Path) -> None:
    """MN-major tf32: sizes, boxes, every element's byte, and every step's descriptor."""
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::tf32").resolved(m=128, n=72)
    lines = [
        "#include <ptxmma/cuda/tcgen05_product.cuh>\nusing namespace ptxmma;",
        "using P = tcgen05_mma<shape<128, 72>, PTXMMA_TCGEN05_KIND_TF32, f32, tf32, tf32>;",
    ]
    for matrix, extent in (("a", 128), ("b", 96)):
        image = shared_memory.of(product, matrix, "128B_ATOM_32B", "MN", x=extent, k=32, start=1024)
        tile = f"P::{matrix}_atom_tile<{128 if matrix == 'a' else 72}, 32>"
        box = image.tma
        lines += [
            f'static_assert({tile}::bytes == {image.size} && {tile}::lbo == {image.lbo} && {tile}::sbo == {image.sbo}, "");',
            f'static_assert({tile}::box_inner == {box.inner} && {tile}::box_outer == {box.outer} && {tile}::boxes == {box.boxes}, "");',
            f'static_assert({tile}::transaction_bytes == {box.transaction_bytes}, "");',
            *(
                f'static_assert({tile}::offset({x}, {k}) == {image.address(x, k) - 1024}, "");'
                for x in range(0, extent, 5)
                for k in range(32)
            ),
        ]
        for number, step in enumerate(image.steps(8)):
            lines.append(f'static_assert({tile}::descriptor(1024, 0, {8 * number}).bits == {step.encode():#x}, "");')
            lines.append(f'static_assert({tile}::advance({tile}::descriptor(1024), {number}).bits == {step.encode():#x}, "");')
    bits = of_product(product, a_majorness="MN", b_majorness="MN")
    both = "P::a_atom_tile<128, 8>::descriptor(0), P::b_atom_tile<72, 8>::descriptor(0)"
    lines.append(f'static_assert(P::instruction({both}) == {bits:#x}, "");')
    (tmp_path / "atoms.cpp").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run(cxx, "-std=c++14", "-Wall", "-Wextra", "-Werror", f"-I{paths.INCLUDE}", "-c", tmp_path / "atoms.cpp", "-o", tmp_path / "atoms.o")


def test_the_tile_of_scale_factors_is_512_bytes_in_a_row(cxx: str, tmp_path: Path) -> None:
    """As ``tcgen05.cp.32x128b.warpx4`` reads them: the tile that the page of headers shows."""
    image = shared_memory.SharedLayout("u8", "K", "none", 32, 16, start=1024, family="tcgen05")
    assert np.array_equal(image.address(*np.divmod(np.arange(512), 16)), 1024 + np.arange(512))
    source = tmp_path / "factors.cpp"
    source.write_text(
        "#include <ptxmma/cuda/tcgen05_product.cuh>\nusing namespace ptxmma;\n"
        "using Factors = tcgen05_tile<b8, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_NONE, 32, 16, 16>;\n"
        f'static_assert(Factors::bytes == 512 && Factors::descriptor(1024).bits == {image.descriptor().encode():#x}, "");\n',
        encoding="utf-8",
    )
    run(cxx, "-std=c++14", "-Wall", "-Wextra", "-Werror", f"-I{paths.INCLUDE}", "-c", source, "-o", tmp_path / "factors.o")


def test_descriptors_of_k_96_go_on_at_an_address(cxx: str, tmp_path: Path) -> None:
    """48 bytes along k, read across the 128 of the swizzle: the library reads the same elements through them."""
    source = tmp_path / "split.cpp"
    source.write_text(
        "#include <ptxmma/cuda/tcgen05_product.cuh>\nusing namespace ptxmma;\n"
        "using P = tcgen05_mma<shape<128, 64, 96>, PTXMMA_TCGEN05_KIND_MXF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, "
        "PTXMMA_TCGEN05_BLOCK32>;\n"
        "using A = P::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 256, 768>;\n"
        'extern "C" uint64_t made(uint32_t x, uint32_t k) { return A::descriptor(1024, x, k).bits; }\n'
        'extern "C" uint64_t advanced(uint32_t x, uint32_t step) { return A::advance(A::descriptor(1024, x), step).bits; }\n',
        encoding="utf-8",
    )
    run(cxx, "-std=c++14", "-Wall", "-Wextra", "-Werror", f"-I{paths.INCLUDE}", "-shared", "-fPIC", source, "-o", tmp_path / "split.so")
    tile = ctypes.CDLL(str(tmp_path / "split.so"))
    tile.made.restype = tile.advanced.restype = ctypes.c_uint64
    codes = np.random.default_rng(0).integers(0, 16, (256, 768), np.uint8)
    layout = shared_memory.SharedLayout("e2m1", "K", "128B", 256, 768, start=1024, family="tcgen05")
    image = layout.store_xk(codes)
    modes = []
    for x, step in itertools.product((0, 128), range(8)):
        bits = tile.made(x, 96 * step)
        assert tile.advanced(x, step) == bits
        descriptor = shared_memory.Descriptor.decode(bits, family="tcgen05")
        modes.append(descriptor.leading_mode)
        read = shared_memory.read_operand(descriptor, image, "e2m1", 128, 96, "K", 1024)
        assert np.array_equal(np.asarray(read).view(np.uint8) & 15, codes[x : x + 128, 96 * step : 96 * step + 96])
    assert modes == 2 * ["offset", "offset", "address", "offset", "offset", "address", "offset", "offset"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("P<shape<256, 256>>::m", "M and N with this CTA group and K: M 64 or 128 with N 8 to 256 in steps of 8"),
        ("P<shape<128, 12>>::m", "M and N with this CTA group and K: M 64 or 128 with N 8 to 256 in steps of 8"),
        ("P<shape<128>>::m", "the shape of a product is shape<m, n> or shape<m, n, k>"),
        ("tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, float, bf16>::m",
         "an element type is one of ptxmma's, such as ptxmma::f32"),
        ("P<shape<128, 256, 32>>::m", "there is no such product: .* lacks the opcode, a qualifier, K"),
        ("tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, e4m3, bf16>::m",
         "types of this kind: D f32, A f16 or bf16, B f16 or bf16; or D f16, A f16, B f16"),
        ("tcgen05_mma<shape<128, 64>, PTXMMA_TCGEN05_KIND_MXF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK32>"
         "::instruction<PTXMMA_MAJORNESS_MN>()", "this product has no MN-major A or B"),
        ("P<shape<128, 256>>::a_tile<PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_128B, 128, 64>::bytes", "does not read such an A"),
        ("tcgen05_mma<shape<128, 64>, PTXMMA_TCGEN05_KIND_MXF4, f32, e2m1, e2m1>::a_tile<PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_128B, 128, "
         "256>::bytes", "does not read such an A"),
        ("Half::b_atom_tile<256, 16>::bytes", "only tf32 has tiles with the 128-byte swizzle of 32-byte atoms: take b_tile"),
        ("P<shape<128, 256>>::a_atom_tile<128, 4>::bytes", "the depth of a tile is a multiple of an instruction's depth"),
        ("Padded::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 128, 128>::type", "inaccessible|private"),
        ("+Padded::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_64B, 128, 64>::box_inner", "inaccessible|private"),
        ("+Padded::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_64B, 128, 64>::transaction_bytes", "inaccessible|private"),
        ("tcgen05_mma<shape<128, 64, 96>, PTXMMA_TCGEN05_KIND_MXF4, f32, e2m1, e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK32>"
         "::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_64B, 128, 384>::bytes", "across the bytes of the swizzle: take PTXMMA_SWIZZLE_128B"),
        ("Half::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 32, 64>::bytes", "fewer rows than the product reads"),
        ("Half::b_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 112, 64>::bytes", "fewer columns than the product reads"),
        ("Half::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_NONE, 64, 8>::bytes", "less deep than the product"),
        ("Half::b_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_NONE, 128, 8>::bytes", "less deep than the product"),
        ("std::integral_constant<unsigned, Half::d(128, 0).lane>::value", "row_or_column_outside_of_d"),
        ("std::integral_constant<unsigned, Half::d(0, 256).lane>::value", "row_or_column_outside_of_d"),
    ],
)  # fmt: skip
def test_products_and_tiles_that_do_not_exist(wrong: str, message: str, cxx: str, tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text(
        "#include <type_traits>\n#include <ptxmma/cuda/tcgen05_product.cuh>\nnamespace ptxmma {\n"
        "using Half = tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16, PTXMMA_TCGEN05_CTA_GROUP_2>;\n"
        "using Padded = tcgen05_mma<shape<128, 64>, PTXMMA_TCGEN05_KIND_F8F6F4, f32, e2m1, e3m2>;\n"
        "template <class Shape>\n"
        f"using P = tcgen05_mma<Shape, PTXMMA_TCGEN05_KIND_TF32, f32, tf32, tf32>;\nunsigned wrong() {{ return {wrong}; }}\n}}\n",
        encoding="utf-8",
    )
    with pytest.raises(AssertionError, match=message):
        run(cxx, "-std=c++17", f"-I{paths.INCLUDE}", "-c", source, "-o", tmp_path / "wrong.o")
