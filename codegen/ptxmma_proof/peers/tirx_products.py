"""The products of tcgen05.mma that TIRx-harness simulates: the instruction descriptors that its decoder takes.

A program asks them about one descriptor after another.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ptxmma_proof.peers import tirx_program
from ptxmma_proof.peers.product_shapes import Allowed, Typed
from ptxmma_proof.peers.sources import Source
from ptxmma_proof.peers.tirx_program import NAME

#: The definitions that are read from each source.
_READ = {
    "numpy_backend.rs": (
        *("pub enum NarrowFloatSpecials", "pub struct NarrowFloatFormat"),
        *(f"pub const {name}:" for name in ("FLOAT8_E4M3", "FLOAT8_E5M2", "FLOAT4_E2M1", "FLOAT6_E2M3", "FLOAT6_E3M2")),
    ),
    "runtime/tcgen_ops.rs": (
        *("pub(crate) enum RawTcgenMatrixDescriptorLayout", "pub(crate) enum RawTcgenMxf4ScaleSpelling", "impl RawTcgenMxf4ScaleSpelling"),
        *("pub(crate) fn raw_tcgen05_mxf4nvf4_vec4x_scale", "pub(crate) fn raw_tcgen05_mxf4nvf4_vec2x_scale", "fn raw_tcgen05_sfa_lanes"),
        *("struct RawTcgenMxf4InstructionDescriptor", "fn decode_raw_tcgen_mxf4_instruction_descriptor_for_cta_group"),
        *("fn decode_raw_tcgen_sparse_mxf4_instruction_descriptor", "struct RawTcgenDenseInstructionDescriptor"),
        *("struct RawTcgenF8f6f4InstructionDescriptor", "fn decode_raw_tcgen_f8f6f4_instruction_descriptor", "fn valid_b16_tf32_shape"),
        *("fn decode_raw_tcgen_tf32_instruction_descriptor", "fn decode_raw_tcgen_b16_instruction_descriptor", "enum RawMmaCellDtype"),
        *("struct RawTcgenMxf8f6f4InstructionDescriptor", "pub(crate) enum RawTcgenNarrowFormat"),
        "fn decode_raw_tcgen_mxf8f6f4_instruction_descriptor",
    ),
    "runtime/tcgen_ops/integer.rs": ("pub(crate) enum RawTcgenIntegerKind", "pub(crate) fn raw_tcgen05_integer_shape"),
}
#: Methods of types with others that need the whole engine.
_METHODS = {"RawTcgenNarrowFormat": ("fn decode(", "const fn format("), "RawMmaCellDtype": ("fn from_half(",)}
#: The program, to which the definitions are added.
_PROGRAM = Path(__file__).with_suffix(".rs")
#: Codes of types in the descriptors (PTX ISA 9.4, Tables 51 to 53).
_DTYPE_CODES = {"f16": 0, "f32": 1, "s32": 2}
_CODES = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "mxf8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
    "ti16": {"s1z4m11": 3},
    "mxf4": {"e2m1": 1},
    "mxf4nvf4.block32": {"e2m1": 1},
    "mxf4nvf4.block16": {"e2m1": 1},
}
_SPARSE, _B_MAJOR = 1 << 2, 1 << 16
#: The bits that choose a kind's other depths, with the targets that have them.
_DEEPER = {
    "f8f6f4": {"107": 1 << 29},
    "mxf8f6f4": {"107": 1 << 31},
    "mxf4": {"103": 1 << 31, "107": 1 << 3},
    "mxf4nvf4.block32": {"103": 1 << 31, "107": 1 << 3},
    "mxf4nvf4.block16": {"103": 1 << 31, "107": 1 << 3},
}
_MS, _NS = range(16, 272, 16), range(8, 264, 8)


class _Question(NamedTuple):
    """A descriptor, but for sizes and types, and the qualifiers of its opcode."""

    kind: str
    ctas: int
    ws: bool
    layout: str
    word: int

    def line(self, dtype: str, atype: str, btype: str, m: int, n: int) -> str:
        """The question about a product."""
        scaled = self.kind.startswith("mx")
        codes = _CODES[self.kind]
        word = self.word | codes[atype] << 7 | codes[btype] << 10 | n >> 3 << 17
        word |= (m >> 7 << 27 if scaled else m >> 4 << 24) | (0 if scaled else _DTYPE_CODES[dtype] << 4)
        return f"{self.kind} {self.ctas} {'ws' if self.ws else '-'} {self.layout} {word}"

    @property
    def facts(self) -> dict[str, str | int]:
        """The facts of the opcode, and how B lies."""
        kind, _, block = self.kind.partition(".")
        name = f"tcgen05.mma{'.ws' * self.ws}{'.sp' * bool(self.word & _SPARSE)}"
        b_majorness = "MN" if self.word & _B_MAJOR else "K"
        block = block or {"mxf4": "block32", "mxf8f6f4": "block32"}.get(kind, "")
        facts = {"name": name, "cta_group": f"cta_group::{self.ctas}", "kind": f"kind::{kind}", "b_majorness": b_majorness}
        return {**facts, "scale_vec": block} if block else {**facts}


def ask(package: Source) -> tuple[list[Allowed], list[Typed]]:
    """Return the sizes and the types of every kind of product that the simulator takes.

    Raises:
        MissingPeerError: a definition is not in the sources, or there is no compiler.
    """
    questions = list(_questions())
    lines: list[str] = []
    for one in questions:
        first = next(iter(_CODES[one.kind]))
        lines += [one.line(_dtypes(one.kind)[-1], first, first, m, n) for m in _MS for n in _NS]
        lines += [one.line(*each, 128 * one.ctas, 128) for each in _types(one.kind)]
    answers = iter(tirx_program.answers(package, _PROGRAM, _READ, _METHODS, lines))
    allowed, typed = [], []
    for one in questions:
        sizes = {tuple(map(int, said.split())) for _ in _MS for _ in _NS if (said := next(answers))}
        types = frozenset(each for each in _types(one.kind) if next(answers))
        for k in sorted({k for _, _, k in sizes}):
            facts = {**one.facts, "k": k}
            majorness = facts["b_majorness"]
            subject = f"{facts['name']}, {one.kind}, {one.ctas} CTA, B {majorness}-major, K = {k}, Sm{one.layout}"
            allowed.append(Allowed(NAME, subject, facts, frozenset((m, n) for m, n, _ in sizes), reads_a=False))
            if majorness == "K":  # the majorness of narrow types is another question
                typed.append(Typed(NAME, subject, facts, types))
    return allowed, typed


def _types(kind: str) -> list[tuple[str, str, str]]:
    return list(itertools.product(_dtypes(kind), _CODES[kind], _CODES[kind]))


def _dtypes(kind: str) -> tuple[str, ...]:
    return {"f16": ("f16", "f32"), "f8f6f4": ("f16", "f32"), "i8": ("s32",), "ti16": ("s32",)}.get(kind, ("f32",))


def _questions() -> Iterator[_Question]:
    for kind, ctas, ws, sparse, b_major in itertools.product(_CODES, (1, 2), (False, True), (0, _SPARSE), (0, _B_MAJOR)):
        scaled = kind.startswith("mx")
        mxf4 = kind.startswith("mxf4")
        if (ws and (ctas == 2 or scaled)) or (b_major and (mxf4 or kind == "ti16")) or (sparse and mxf4 and (ctas == 2 or kind != "mxf4")):
            continue  # no such product, or one that it does not simulate
        scale = 1 << 23 if scaled and kind != "mxf4nvf4.block16" else 0
        for layout, deeper in {"100": 0, **_DEEPER.get(kind, {})}.items():
            version = 1 << 12 if layout == "107" and mxf4 else 0
            yield _Question(kind, ctas, ws, layout, sparse | b_major | scale | deeper | version)
