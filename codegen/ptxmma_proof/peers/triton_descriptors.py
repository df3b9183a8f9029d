"""Descriptors as Triton's compiler writes them, with those that we make for the same products and the same images of shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices.shared.descriptor import Descriptor
from ptxmma.matrices.shared.reading import operand_addresses
from ptxmma_proof.peers import descriptor_words, triton_compiler
from ptxmma_proof.peers.descriptor_words import Words
from ptxmma_proof.peers.tensor_cases import Values, instruction_codec

#: Triton's types with ours, where their names differ.
_OURS = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32", "float8e4nv": "e4m3", "float8e5": "e5m2", "int8": "s8"}
_RESULTS = {"float16": "f16", "float32": "f32", "int32": "s32"}
_WIDTHS = {"float16": 16, "bfloat16": 16, "float32": 32, "float8e4nv": 8, "float8e5": 8, "int8": 8}
_BLACKWELL, _RUBIN = 100, 107
#: The most bits along K of a product without a bit that says K.
_USUAL_DEPTH = 256


class _Product(NamedTuple):
    """A product to compile: Triton's types of A and B and of D, the sizes of each CTA, and which axis is contiguous."""

    element: str
    result: str = "float32"
    m: int = 128
    n: int = 64
    k: int = 64
    a_mn: bool = False
    b_mn: bool = False
    ctas: int = 1
    capability: int = _BLACKWELL


class _Scaled(NamedTuple):
    """A block-scaled product to compile: our types of A, B and the scale factors, and the columns of A that share one."""

    a: str
    b: str
    scale: str
    vector: int
    n: int = 128
    k: int = 256
    capability: int = _BLACKWELL


_TYPES = (
    ("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32"), ("float32", "float32"), ("float8e4nv", "float32"),
    ("float8e4nv", "float16"), ("float8e5", "float32"), ("int8", "int32"),
)  # fmt: skip
_PRODUCTS = (
    *(_Product(element, result) for element, result in _TYPES),
    *(_Product(element, a_mn=True) for element in ("float16", "float8e4nv")),
    *(_Product(element, a_mn=a_mn, b_mn=True) for element in ("float16", "float8e4nv") for a_mn in (False, True)),
    *(_Product("float16", m=m, n=n) for m in (64, 128) for n in (16, 256)),
    *(_Product("float16", k=k) for k in (16, 32)),
    *(_Product("float16", n=n, k=16, b_mn=True) for n in (16, 32)),
    *(_Product("bfloat16", m=m, n=128, ctas=2) for m in (64, 128)),
    _Product("float8e4nv", k=128, capability=_RUBIN),
    _Product("float16", k=128, capability=_RUBIN),
)
_SCALED = (
    *(_Scaled(a, b, "ue8m0", 32) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *(_Scaled("e2m1", "e2m1", *scale) for scale in (("ue8m0", 32), ("ue4m3", 16))),
    _Scaled("e4m3", "e4m3", "ue8m0", 32, n=256),
    _Scaled("e4m3", "e4m3", "ue8m0", 32, capability=_RUBIN),
    *(_Scaled("e2m1", "e2m1", *scale, capability=_RUBIN) for scale in (("ue8m0", 32), ("ue4m3", 16))),
)
#: Triton's types of what holds elements in memory, and the elements in one.
_MEMORY = {"e4m3": ("float8e4nv", 1), "e5m2": ("float8e5", 1), "e2m1": ("uint8", 2)}


def compare(catalog: Catalog) -> Iterator[Words]:
    """Compile the products, and compare each descriptor."""
    for each in _PRODUCTS:
        yield from _product(catalog, each)
    for scaled in _SCALED:
        yield _scaled(catalog, scaled)


def _product(catalog: Catalog, each: _Product) -> Iterator[Words]:
    from ptxmma_proof.peers import triton_products as kernels  # only now is Triton needed

    m, n, k = each.m * each.ctas, each.n, each.k
    pairs: tuple[list[list[int]], list[list[int]]] = ([[1, 0]], [[0, 1]]) if each.ctas > 1 else ([], [])
    constants = {
        "M": m, "N": n, "K": k, "T": getattr(kernels.gl, each.element), "D": getattr(kernels.gl, each.result),
        "ACC": kernels.bw.TensorMemoryLayout(
            (each.m, n), col_stride=2 if each.result == "float16" else 1, cga_layout=pairs[0], two_ctas=each.ctas > 1
        ),
        "LA": kernels.shared((m, k), each.element, transposed=each.a_mn, pair=pairs[0]),
        "LB": kernels.shared((k, n), each.element, transposed=not each.b_mn, pair=pairs[1]),
    }  # fmt: skip
    made = kernels.made(kernels.product, each.capability, each.ctas, constants)
    subject = f"tcgen05_mma, {each.element} and {each.result}, {m} x {n} x {k}, sm_{each.capability}"
    subject += ", A MN-major" * each.a_mn + ", B MN-major" * each.b_mn
    codec = instruction_codec(catalog, made[0].opcode)
    depth = k // len(made)
    fields: dict[str, Any] = {"m": m, "n": n, "dtype": _RESULTS[each.result], "atype": _OURS[each.element], "btype": _OURS[each.element]}
    fields |= {f"{matrix}_majorness": "MN" for matrix, is_mn in (("a", each.a_mn), ("b", each.b_mn)) if is_mn}
    fields |= {"k": str(depth)} if depth * _WIDTHS[each.element] > _USUAL_DEPTH else {}
    ours = codec.encode(**fields)
    said = [(one.instruction, ours, f"step {i}") for i, one in enumerate(made)]
    yield Words("Triton", codec.format.name, subject, said, descriptor_words.filled(codec.format, [ours]))
    if each.ctas == 1:
        a = triton_compiler.in_shared(constants["LA"], (m, k))
        b = triton_compiler.in_shared(constants["LB"], (k, n)).T
        yield _image(catalog, each, f"{subject}, A", [one.a for one in made], a, "MN" if each.a_mn else "K")
        yield _image(catalog, each, f"{subject}, B", [one.b for one in made], b, "MN" if each.b_mn else "K")


def _image(catalog: Catalog, each: _Product, subject: str, words: list[int], numbers: Values, majorness: str) -> Words:
    """Triton's matrix descriptors of the steps: the elements lie where we find them through the same bits."""
    database = catalog.database
    element = next(one for one in database.spec.types.elements if one.name == _OURS[each.element])
    theirs, depth = numbers * element.bits // 8, each.k // len(words)
    descriptors = [Descriptor.decode(word, family="tcgen05", database=database) for word in words]
    said = []
    for step, descriptor in enumerate(descriptors):
        ours = operand_addresses(descriptor, theirs.shape[0], depth, element, majorness, database=database) - descriptors[0].start_address
        own = theirs[:, step * depth : (step + 1) * depth]
        said += [(int(own[at]), int(ours[at]), f"step {step}, element {at}") for at in np.ndindex(own.shape)]
    return Words("Triton", "tcgen05_descriptor", subject, said, descriptor_words.IMAGE)


def _scaled(catalog: Catalog, each: _Scaled) -> Words:
    from ptxmma_proof.peers import triton_products as kernels

    (a_memory, a_each), (b_memory, b_each) = _MEMORY[each.a], _MEMORY[each.b]
    constants = {
        "M": 128, "N": each.n, "K": each.k, "A": each.a, "B": each.b, "A_MEMORY": getattr(kernels.gl, a_memory),
        "B_MEMORY": getattr(kernels.gl, b_memory), "A_EACH": a_each, "B_EACH": b_each,
        "SCALE": getattr(kernels.gl, "uint8" if each.scale == "ue8m0" else "float8e4nv"), "VECTOR": each.vector,
        "ACC": kernels.bw.TensorMemoryLayout((128, each.n), col_stride=1),
        "LA": kernels.shared((128, each.k // a_each), a_memory, transposed=False),
        "LB": kernels.shared((each.k // b_each, each.n), b_memory, transposed=True),
    }  # fmt: skip
    made = kernels.made(kernels.scaled, each.capability, 1, constants)
    codec = instruction_codec(catalog, made[0].opcode)
    depth = each.k // len(made)
    factors = depth // each.vector
    fields: dict[str, Any] = {"m": 128, "n": each.n, "atype": each.a, "btype": each.b, "scale_type": each.scale}
    fields |= {"k": str(depth)} if depth * 8 // a_each > _USUAL_DEPTH else {}
    said = []
    for step, one in enumerate(made):
        first = step * factors % 4  # of the factors in a cell
        said.append((one.instruction, codec.encode(**fields, scale_a_id=first, scale_b_id=first), f"step {step}"))
    subject = (
        f"tcgen05_mma_scaled, {each.a} and {each.b} with {each.scale} for {each.vector}, 128 x {each.n} x {each.k}, sm_{each.capability}"
    )
    return Words("Triton", codec.format.name, subject, said, descriptor_words.filled(codec.format, (ours for _, ours, _ in said)))
