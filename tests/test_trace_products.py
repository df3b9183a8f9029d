"""``trace`` of products in tensor memory: what it names, read from images of shared and tensor memory, must give the element of D."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import commands
import ptxmma
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands.tensor_fragment import RegisterPlace
from ptxmma.matrices import shared_memory, sparse
from ptxmma.matrices.tracing import MemoryPlace, Source, TensorPlace, Trace, trace
from ptxmma.model import ElementType

_RNG = np.random.default_rng(11)
_F16 = "tcgen05.mma.cta_group::1.kind::f16"
_BF16: dict[str, Any] = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
_LOAD = "tcgen05.ld.sync.aligned.32x32b.x32.b32"


class Memory:
    """Random operands of a product, as they lie in shared and tensor memory."""

    def __init__(self, product: Instruction, form: str, majors: str, swizzle: str, ids: Mapping[str, int], selector: int) -> None:
        m, n, k = product.shape or ()
        self.product, self.types = product, {entry.name: entry for entry in product.database.spec.types.elements}
        self.pattern = layouts.granularity(product.database.spec, product.variant)
        a, b = (self._numbers(name, size) for name, size in (("atype", (m, k)), ("btype", (k, n))))
        self.named: dict[str, Any] = {}
        self.tensor: dict[str, Array] = {}
        if self.pattern is not None:
            kept = sparse.prune(a, product, element=self.type("atype"))
            a, metadata = sparse.compress(kept, product, element=self.type("atype"))
            self.named["metadata"] = metadata
            operand = self.operand("tensor-metadata", "a")
            if operand.tensor is not None:
                self.tensor["metadata"] = operand.pack(metadata, **({"selector": selector} if operand.tensor.selections else {}))
        for letter, lines in (("a", m), ("b", n)):
            if product.variant.facts.get("stype"):
                operand = self.operand("tensor-scales", letter)
                shape = (lines, operand.sizes["block"]) if letter == "a" else (operand.sizes["block"], lines)
                scales = _RNG.integers(124, 131, shape).astype(np.uint8)
                self.named[f"scale_{letter}"] = scales
                self.tensor[f"scale-{letter}"] = operand.pack(scales, scale_id=ids.get(f"scale-id-{letter}", 0))
        self.images: dict[str, shared_memory.SharedOperand] = {}
        self.shared: dict[str, list[Array]] = {}
        for letter, matrix, major in (("a", a, majors[0]), ("b", b, majors[1])):
            if letter == "a" and form == "tensor":
                self.tensor["a"] = self.operand("tensor-matrix", "a").pack(matrix)
                continue
            axis = "ab".index(letter)
            halves = np.split(matrix, product.extents.get("ctas", 1), axis)
            self.images[letter] = image = self._image(letter, swizzle, major, matrix.shape[1 - axis])
            self.shared[letter] = [image.store(self._deeper(half, 1 - axis, image.k)) for half in halves]
        self.wanted = ptxmma.emulate(product, a, b, **self.named).matrix

    def _image(self, letter: str, swizzle: str, major: str, depth: int) -> shared_memory.SharedOperand:
        """The image of a matrix; K-major panels of a swizzle may be deeper than an instruction."""
        majorness = {"k": "K", "m": "MN"}[major]
        depths = [depth, *(whole for whole in (16, 32, 64, 128, 256) if whole > depth and major == "k")]
        for whole in depths[:-1]:
            try:
                return shared_memory.of(self.product, letter, swizzle, majorness, k=whole)
            except ValueError:
                continue
        return shared_memory.of(self.product, letter, swizzle, majorness, k=depths[-1])

    @staticmethod
    def _deeper(matrix: Array, axis: int, depth: int) -> Array:
        """A matrix with zeros behind it along K."""
        shape = [depth if place == axis else size for place, size in enumerate(matrix.shape)]
        whole = np.zeros(shape, matrix.dtype)
        whole[: matrix.shape[0], : matrix.shape[1]] = matrix
        return whole

    def type(self, argument: str) -> ElementType:
        return self.types[str(self.product.variant.facts[argument])]

    def operand(self, kind: str, of: str) -> ptxmma.Operand:
        every = (operand for form in self.product.forms for operand in form.operands)
        return next(operand for operand in every if (operand.kind, operand.of) == (kind, of))

    def _numbers(self, argument: str, shape: tuple[int, ...]) -> Any:
        element = self.type(argument)
        return _RNG.integers(0 if element.form == "unsigned" else -2, 3, shape).astype(elements.dtype(element))

    def bits(self, place: object, name: str) -> int:
        """The bits at a place; those of its copies must be the same."""
        if isinstance(place, MemoryPlace):
            first, last = place.byte, place.byte + (place.low + place.width + 7) // 8
            whole = int.from_bytes(self.shared[name][place.cta][first:last].tobytes(), "little")
            return whole >> place.low & (1 << place.width) - 1
        assert isinstance(place, TensorPlace)
        image = self.tensor[name].reshape(-1, *self.tensor[name].shape[-2:])
        (value,) = {int(image[each.cta, each.lane, each.column]) >> each.low & (1 << each.width) - 1 for each in (place, *place.copies)}
        return value

    def value(self, source: Source, letter: str) -> float:
        number = self._decoded(self.bits(source.place, letter), self.type(f"{letter}type"))
        if source.scale is not None:
            number *= self._decoded(self.bits(source.scale, f"scale-{letter}"), self.type("stype"))
        return number

    @staticmethod
    def _decoded(code: int, element: ElementType) -> float:
        return float(elements.numbers(np.array([code], elements.bits_dtype(element)), element)[0])

    def added_up(self, traced: Trace) -> float:
        total = 0.0
        for term in traced.terms:
            picked = term.b[0]
            if term.pick is not None:
                index = self.bits(term.pick, "metadata")
                pattern = self.pattern
                assert pattern is not None
                place = traced.terms.index(term) % pattern.kept // pattern.unit % pattern.indices
                low = place * pattern.index_bits
                rows = [one for one in term.b if any(int(field, 2) >> low & (1 << pattern.index_bits) - 1 == index for field in one.fields)]
                (picked,) = rows
            total += self.value(term.a, "a") * self.value(picked, "b")
        return total


_DENSE, _SPARSE = "tcgen05.mma.cta_group::{}.kind::{}", "tcgen05.mma.sp.cta_group::{}.kind::{}"


def _typed(d: str, a: str, b: str) -> dict[str, Any]:
    return {"dtype": d, "atype": a, "btype": b}


_MX = {"m": 128, "n": 128, "atype": "e4m3", "btype": "e5m2"}
#: Opcode, arguments, where A is, majorness of A and B, swizzle, scale IDs, selector.
_CASES: list[tuple[str, dict[str, Any], str, str, str, dict[str, int], int]] = [
    (_F16, {"m": 128, "n": 256, **_BF16}, "descriptor", "kk", "128B", {}, 0),
    (_F16, {"m": 64, "n": 64, **_BF16}, "descriptor", "mm", "128B", {}, 0),
    (_F16, {"m": 64, "n": 24, **_BF16}, "tensor", "kk", "none", {}, 0),
    (_DENSE.format(2, "f16"), {"m": 128, "n": 64, **_BF16}, "tensor", "kk", "none", {}, 0),
    (_DENSE.format(2, "f16"), {"m": 256, "n": 64, **_BF16}, "descriptor", "km", "64B", {}, 0),
    ("tcgen05.mma.ws.cta_group::1.kind::i8", {"m": 32, "n": 64, **_typed("s32", "u8", "s8")}, "descriptor", "kk", "32B", {}, 0),
    (_DENSE.format(1, "f8f6f4"), {"m": 128, "n": 64, **_typed("f32", "e2m3", "e2m1")}, "descriptor", "kk", "128B", {}, 0),
    (_DENSE.format(1, "f8f6f4"), {"m": 128, "n": 64, **_typed("f32", "e3m2", "e5m2")}, "tensor", "kk", "none", {}, 0),
    (_DENSE.format(1, "mxf4.block_scale"), {"m": 128, "n": 72, "k": 64}, "descriptor", "kk", "64B", {"scale-id-b": 2}, 0),
    (_DENSE.format(1, "mxf4.block_scale.block32"), {"m": 128, "n": 64, "k": 96}, "descriptor", "kk", "none", {"scale-id-a": 1}, 0),
    (_DENSE.format(2, "mxf8f6f4.block_scale"), _MX, "descriptor", "kk", "32B", {"scale-id-a": 3}, 0),
    (_SPARSE.format(1, "f16"), {"m": 128, "n": 64, **_BF16}, "descriptor", "kk", "32B", {}, 1),
    (_SPARSE.format(2, "tf32"), {"m": 256, "n": 64, **_typed("f32", "tf32", "tf32")}, "tensor", "kk", "none", {}, 0),
    (_SPARSE.format(1, "mxf4.block_scale"), {"m": 128, "n": 64}, "descriptor", "kk", "64B", {"scale-id-a": 2}, 0),
    ("tcgen05.mma.ws.sp.cta_group::1.kind::i8", {"m": 64, "n": 64, **_typed("s32", "s8", "s8")}, "tensor", "kk", "none", {}, 0),
]


@pytest.mark.parametrize(("opcode", "arguments", "form", "majors", "swizzle", "ids", "selector"), _CASES)
def test_a_trace_adds_up_to_the_element(
    opcode: str, arguments: dict[str, Any], form: str, majors: str, swizzle: str, ids: dict[str, int], selector: int
) -> None:
    product = ptxmma.instruction(opcode, **arguments)
    memory = Memory(product, form, majors, swizzle, ids, selector)
    m, n, _ = product.shape or ()
    chosen = {"selector": selector} if selector else {}
    for row, col in [(0, 0), (m - 1, n - 1), *zip(_RNG.integers(m, size=4).tolist(), _RNG.integers(n, size=4).tolist(), strict=True)]:
        traced = trace(product, row, col, form=form, images=memory.images, scale_ids=ids, **chosen)
        assert memory.added_up(traced) == memory.wanted[row, col]
        assert not traced.unknown
        d = memory.operand("tensor-accumulator", "d").locate(row, col)
        assert isinstance(traced.d, TensorPlace)
        assert (traced.d.cta, traced.d.lane, traced.d.column) == (d.cta, d.lane, d.column)


def test_a_load_puts_the_element_into_a_register() -> None:
    product, load = ptxmma.instruction(_F16, m=128, n=256, **_BF16), ptxmma.instruction(_LOAD)
    traced = trace(product, 37, 200, through=load, base=64)
    assert traced.register == RegisterPlace(cta=0, warp=1, lane=5, register=8, bit=0, address=0x200100)
    assert traced.d == TensorPlace(37, 264, 0, 0, 32)
    assert trace(product, 37, 200).register is None


def test_what_no_source_says_is_named() -> None:
    product = ptxmma.instruction(_SPARSE.format(1, "f16"), m=64, n=64, **_BF16)
    traced = trace(product, 3, 5)
    assert [why.partition(" of ")[0] for why in traced.unknown] == ["no source says where sp-meta-tmem"]
    assert {term.pick for term in traced.terms} == {None}
    assert traced.terms[0].b[2].fields == ("0b0110", "0b1110")
    assert "not known: no source says where sp-meta-tmem of" in ask(_SPARSE.format(1, "f16"), *_options(64, 64), "--row", "3", "--col", "5")


def test_indices_of_a_table_have_no_places() -> None:
    product = ptxmma.instruction(f"{_DENSE.format(1, 'f8f6f4')}.decompress::lut::b", m=128, n=64, **_typed("f32", "e4m3", "e4m3"))
    traced = trace(product, 3, 5, images={"a": shared_memory.of(product, "a", "32B")})
    assert traced.unknown == ("B is stored as indices of the table at b-decompress-metadata, and no source says where they lie",)
    assert {source.place for term in traced.terms for source in term.b} == {None}
    with pytest.raises(Missing, match="takes no descriptor of 'b'"):
        shared_memory.of(product, "b", "32B")


@pytest.mark.parametrize(
    ("opcode", "options", "message"),
    [
        (_F16, {"form": "registers"}, "has no form 'registers': it has descriptor and tensor"),
        (_F16, {"selector": 0}, "is not sparse: it has no selector"),
        (_F16, {"scale_ids": {"scale-id-a": 0}}, "has no scale-id-a: it scales no blocks"),
        (_F16, {"stride": 1}, "takes no stride; it takes row, col, form, selector, scale_ids, images, through, base"),
        (_F16, {"base": 1 << 16}, "allowed: lane 0; column"),
    ],
)
def test_options_that_a_product_does_not_take(opcode: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((Missing, ValueError), match=message):
        trace(ptxmma.instruction(opcode, m=128, n=256, **_BF16), 3, 5, **options)


def test_ids_that_an_instruction_does_not_take() -> None:
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::mxf4.block_scale", m=128, n=64, k=64)
    with pytest.raises(Missing, match="has no scale-id-c: it has scale-id-a, scale-id-b"):
        trace(product, 3, 5, scale_ids={"scale-id-c": 0})
    with pytest.raises(ValueError, match="scale-id-a = 1 is not legal: 0, 2"):
        trace(product, 3, 5, scale_ids={"scale-id-a": 1})


def test_an_opcode_alone_has_no_trace() -> None:
    with pytest.raises(ValueError, match=r"the opcode does not state m, n, dtype, atype, btype: give them to ptxmma\.instruction"):
        trace(ptxmma.instruction(_F16), 3, 5)


# --- the command --------------------------------------------------------------------------------------------------------------


ask = functools.partial(commands.ask, "trace")


def _options(m: int, n: int) -> list[str]:
    return ["--m", str(m), "--n", str(n), *(word for name, value in _BF16.items() for word in (f"--{name}", value))]


def test_the_command_prints_the_trace() -> None:
    swizzled = ("--row", "37", "--col", "200", "--swizzle", "128", "--through", _LOAD, "--base", "0x40")
    answer = json.loads(ask(_F16, *_options(128, 256), *swizzled, "--json"))
    assert answer["d"] == {"cta": 0, "lane": 37, "column": 264, "bits": "31:0"}
    assert answer["register"] == {"cta": 0, "warp": 1, "lane": 5, "register": 8, "bit": 0, "address": 0x200100}
    assert answer["m"], answer["atype"] == (128, "bf16")
    product = ptxmma.instruction(_F16, m=128, n=256, **_BF16)
    a, b = (shared_memory.of(product, letter, "128B", k=64) for letter in "ab")
    for k, term in enumerate(answer["terms"]):
        assert term["a"]["in"] == {"cta": 0, "byte": a.address(37, k), "bits": "15:0"}
        assert term["b"][0]["in"] == {"cta": 0, "byte": b.address(200, k), "bits": "15:0"}
    (first, *_) = csv.DictReader(io.StringIO(ask(_F16, *_options(128, 256), *swizzled, "--format", "csv")))
    assert first["D in registers"] == "taddr 0x200100: warp 1, lane 5, r8[31:0]"
    lines = ask(_F16, *_options(128, 256), *swizzled).splitlines()
    assert lines[3] == "  in registers, taddr 0x200100: warp 1, lane 5, r8[31:0]"
    assert lines[-1].startswith(
        "B is read through a descriptor: bytes from the start of an image of 256 x 64 elements, K-major, swizzle 128B"
    )


def test_the_command_says_whose_memory_it_is() -> None:
    pair = "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale"
    types = ["--m", "256", "--n", "128", "--atype", "e4m3", "--btype", "e2m1"]
    lines = ask(pair, *types, "--row", "200", "--col", "100", "--swizzle", "32").splitlines()
    assert lines[2] == "D[200][100]: lane 72, column 100, [31:0] of CTA 1"
    first = " ".join(lines[5].split())
    assert "lanes 8 40 72 104, column 2, [7:0] of CTA 1" in first
    assert "lanes 4 36 68 100, column 3, [7:0] of both CTAs" in first
    image = shared_memory.of(ptxmma.instruction(pair, m=256, n=128, atype="e4m3", btype="e2m1"), "b", "32B")
    assert f"byte {image.address(36, 0)} [3:0] of CTA 1" in first
    without = ask(pair, *types, "--row", "200", "--col", "100")
    assert "`ptxmma smem --family tcgen05 --type e2m1 --padded --major k --swizzle none --rows 64 --cols 32`" in without
