"""Instruction descriptors as JAX's Mosaic writes them, with those that we make for the same products."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import descriptor_words, mosaic
from ptxmma_proof.peers.descriptor_words import Words
from ptxmma_proof.peers.tensor_cases import instruction_codec

#: MLIR's types of A and B with ours, and the types of D.
_TYPES = {
    "f16": ("f16", {"f16": "f16", "f32": "f32"}), "bf16": ("bf16", {"f32": "f32"}), "i8": ("s8", {"i32": "s32"}),
    "f8E4M3FN": ("e4m3", {"f16": "f16", "f32": "f32"}), "f8E5M2": ("e5m2", {"f16": "f16", "f32": "f32"}), "f4E2M1FN": ("e2m1", {}),
}  # fmt: skip
_SCALES = {"f8E8M0FNU": "ue8m0", "f8E4M3FN": "ue4m3"}
#: Types of A and B with the types of scale factors.
_SCALED = (("f8E4M3FN", "f8E8M0FNU"), ("f8E5M2", "f8E8M0FNU"), ("f4E2M1FN", "f8E8M0FNU"), ("f4E2M1FN", "f8E4M3FN"))
_BOTH = (False, True)
_COLUMNS = (16, 64, 128)
_STEPS = 4


def compare(catalog: Catalog) -> Iterator[Words]:
    """Compare the descriptor of every step of every product that JAX makes of these types and sizes."""
    for element, (_, results) in _TYPES.items():
        for result in results:
            said: dict[str, list[tuple[int, int, str]]] = {}
            for m, n, ctas, a_mn, b_mn, sparse in itertools.product((64, 128), _COLUMNS, (1, 2), _BOTH, _BOTH, _BOTH):
                if not (sparse and m * ctas < 128):
                    options = {"ctas": ctas, "a_mn": a_mn, "b_mn": b_mn, "sparse": sparse}
                    _ask(catalog, said, (element, result), m, n, options)
            yield from (_words(catalog, format, f"create_instr_descriptor, {element} and {result}", own) for format, own in said.items())
    for element, scale in _SCALED:
        said = {}
        for m, n, ctas, sparse in itertools.product((64, 128), _COLUMNS, (1, 2), _BOTH):
            if n * ctas % 32 == 0 and m * ctas >= 128 and not (sparse and m * ctas == 128 and ctas == 2):
                _ask(catalog, said, (element, "f32"), m, n, {"ctas": ctas, "sparse": sparse, "scale": scale})
        subject = f"_create_scaled_instr_descriptor, {element} with {scale}"
        yield from (_words(catalog, format, subject, own) for format, own in said.items())


def _words(catalog: Catalog, format: str, subject: str, said: list[tuple[int, int, str]]) -> Words:
    described = next(each for each in catalog.database.spec.descriptors if each.name == format)
    return Words("JAX", format, subject, said, descriptor_words.filled(described, (ours for _, ours, _ in said)))


def _ask(
    catalog: Catalog, said: dict[str, list[tuple[int, int, str]]], types: tuple[str, str], m: int, n: int, options: dict[str, Any]
) -> None:
    """Add the descriptors of a product's steps: theirs, ours, and which."""
    element, result = types
    ours, results = _TYPES[element]
    m_all, n_all = m * options["ctas"], n * options["ctas"]
    for step, issued in enumerate(mosaic.issued(element, result, m, n, _STEPS, **options)):
        codec = instruction_codec(catalog, issued.opcode)
        fields: dict[str, Any] = {"m": m_all, "n": n_all, "atype": ours, "btype": ours, "sparse": int(options["sparse"])}
        fields |= {f"{matrix}_majorness": "MN" for matrix in "ab" if options.get(f"{matrix}_mn")}
        if scale := options.get("scale"):
            count = {"mxf8f6f4": 1, "mxf4": 2, "mxf4nvf4": 4}[codec.kind.removeprefix("kind::")]
            fields |= {"scale_type": _SCALES[scale], "scale_a_id": step * count % 4, "scale_b_id": step * count % 4}
        else:
            fields |= {"dtype": results[result]}
            if options["sparse"] and codec.kind == "kind::f16":
                fields["sparsity_selector"] = step % 2
        question = f"M = {m_all}, N = {n_all}, step {step}, {', '.join(name for name, on in options.items() if on is True)}"
        said.setdefault(codec.format.name, []).append((issued.descriptor, codec.encode(**fields), question.rstrip(", ")))
