"""Quantised weights: the generated conversions in exact arithmetic, and permuted codes against the fragments of products."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ptxmma
from ptxmma import paths, quantised
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import catalog
from ptxmma.matrices.quantised import conversions, steps

_SPEC = catalog().database.spec
_ELEMENTS = {entry.name: entry for entry in _SPEC.types.elements}
_PAIRS = list(dict.fromkeys((entry.codes, entry.to) for entry in _SPEC.dequantisations))
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32"
_PRODUCTS = [_MMA, "mma.sync.aligned.m16n8k8.row.col.f32.{0}.{0}.f32", "wgmma.mma_async.sync.aligned.m64n64k16.f32.{0}.{0}"]
#: Numbers in both halves that mean a zero point z.
_BOTH = 0x00010001


# --- the asm of the header --------------------------------------------------------------------------------------------------


def _f16(bits: int) -> Fraction:
    return Fraction(struct.unpack("<e", struct.pack("<H", bits))[0])


def _bf16(bits: int) -> Fraction:
    return Fraction(struct.unpack("<f", struct.pack("<I", bits << 16))[0])


def _to_f16(number: Fraction) -> int:
    bits: int = struct.unpack("<H", struct.pack("<e", float(number)))[0]
    assert _f16(bits) == number, "rounded"
    return bits


def _to_bf16(number: Fraction) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", float(number)))[0]
    assert _bf16(bits >> 16) == number, "rounded"
    return bits >> 16


def _pairs(compute: Callable[..., Fraction], read: Callable[[int], Fraction], write: Callable[[Fraction], int]) -> Callable[..., int]:
    def operate(*words: int) -> int:
        low, high = (write(compute(*(read(word >> shift & 0xFFFF) for word in words))) for shift in (0, 16))
        return low | high << 16

    return operate


def _lop3(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> n & 1) << 2 | (b >> n & 1) << 1 | c >> n & 1) & 1) << n for n in range(32))


#: The instructions of the header, one number at a time and without rounding.
_PTX: dict[str, Callable[..., int]] = {
    "mov.b32": lambda a: a,
    "or.b32": lambda a, b: a | b,
    "shl.b32": lambda a, n: a << n & 0xFFFFFFFF,
    "shr.u32": lambda a, n: a >> n,
    "lop3.b32": _lop3,
    **{
        f"{name}.rn.{kind}x2": _pairs(compute, read, write)
        for kind, read, write in (("f16", _f16, _to_f16), ("bf16", _bf16, _to_bf16))
        for name, compute in (("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b), ("fma", lambda a, b, c: a * b + c))
    },
}


def _asm(function: str) -> tuple[list[str], list[str], list[str]]:
    """The statements of a function of the header, and the C++ expressions that are its outputs and inputs."""
    text = (paths.INCLUDE / "ptxmma/cuda/dequantise.cuh").read_text(encoding="utf-8")
    body = text[text.index(f"PTXMMA_FUNCTION {function}(") :].partition("asm(")[2].partition(");\n")[0]
    code, outputs, inputs = re.split(r"\n\s*: ", body)
    statements = "".join(re.findall(r'"([^"]*)"', code)).strip("{} ").split(";")
    parts = [statement.strip() for statement in statements if statement.strip(" }")]
    return parts, re.findall(r"\(([^()]+)\)", outputs), re.findall(r"\(([^()]+)\)", inputs)


def _evaluated(function: str, given: dict[str, int]) -> list[int]:
    """The outputs of a function of the header."""
    statements, outputs, inputs = _asm(function)
    registers = {f"%{len(outputs) + place}": given[expression] for place, expression in enumerate(inputs)}
    for statement in statements:
        if not statement.startswith(".reg"):
            opcode, _, operands = statement.partition(" ")
            target, *sources = operands.split(", ")
            registers[target] = _PTX[opcode](*(registers[name] if name in registers else int(name, 0) for name in sources))
    return [registers[f"%{place}"] for place in range(len(outputs))]


@pytest.mark.parametrize(("codes", "to"), _PAIRS)
def test_the_header_converts_every_code_at_every_place(codes: str, to: str) -> None:
    element, read = _ELEMENTS[codes], {"f16": _f16, "bf16": _bf16}[to]
    entry = conversions.conversions(_SPEC, codes, to)[0]
    count = 32 // element.bits
    numbers = [Fraction(int(n)) for n in elements.numbers(np.arange(1 << element.bits, dtype=np.uint8), element)]
    rng = np.random.default_rng(1)
    for code in range(1 << element.bits):
        for first in range(count):
            held = rng.integers(0, 1 << element.bits, count)
            held[first] = code
            zero = [int(z) for z in rng.integers(0, entry.largest_zero + 1, 2)] if entry.largest_zero else [0, 0]
            zero = [0, entry.largest_zero] if code == 0 else zero
            given = {"codes": sum(int(c) << element.bits * place for place, c in enumerate(held))}
            given |= {f"zero[{parity}]": z * _BOTH for parity, z in enumerate(zero)}
            out = _evaluated(f"dequantise_{codes}_{to}", given)
            got = [read(out[i // 2] >> i % 2 * 16 & 0xFFFF) for i in range(count)]
            order = conversions.order(entry, element.bits)
            assert got == [numbers[held[order[i]]] - zero[i // 2 % 2] for i in range(count)], hex(given["codes"])


def test_a_fragment_takes_the_codes_in_the_order_that_awq_has_too() -> None:
    entry = conversions.conversions(_SPEC, "u4", "f16")[0]
    assert conversions.held(entry, 4) == (0, 2, 4, 6, 1, 3, 5, 7)


@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_the_header_scales_and_adds(to: str) -> None:
    write = {"f16": _to_f16, "bf16": _to_bf16}[to]
    pair = write(Fraction(-3)) | write(Fraction(5, 2)) << 16
    given = {"values[r]": pair, "scale[r % 2]": write(Fraction(1, 2)) | write(Fraction(4)) << 16}
    assert _evaluated(f"scale_{to}", given) == [write(Fraction(-3, 2)) | write(Fraction(10)) << 16]


# --- the order of weights ---------------------------------------------------------------------------------------------------


def _codes(element: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 1 << _ELEMENTS[element].bits, shape).astype(np.uint8)


def _dequantised(words: Array, codes: str, to: str) -> Array:
    """The registers that the steps of the spec make of each word."""
    entry = conversions.conversions(_SPEC, codes, to)[0]
    zeros = dict.fromkeys(set(steps.inputs(entry.steps)) - {"codes"}, np.zeros_like(words))
    made = steps.run(entry.steps, {"codes": words, **zeros})
    return np.stack([made[name] for name in steps.results(entry.steps)], axis=-1)


@pytest.mark.parametrize("product", _PRODUCTS)
@pytest.mark.parametrize(("codes", "to"), _PAIRS)
@pytest.mark.parametrize("operand", ["a", "b"])
def test_what_lanes_read_and_convert_is_the_fragment(product: str, codes: str, to: str, operand: str) -> None:
    instruction = ptxmma.instruction(product.format(to))
    if operand == "b" and instruction.variant.instruction.family == "wgmma":
        pytest.skip("b of wgmma is in shared memory")
    element, number = _ELEMENTS[codes], _ELEMENTS[to]
    given = elements.typed(_codes(codes, (3, 256, 256)), element)
    words = quantised.permute(given, codes, instruction, operand)
    threads = instruction.operand(operand).fragment().threads
    assert words.dtype == np.uint32
    assert words.shape[-2:] == (threads, 4)
    assert words.nbytes * 8 == given.size * element.bits
    fragments = instruction.operand(operand).pack_tiles(elements.numbers(given.view(np.uint8), element).astype(elements.dtype(number)))
    if operand == "b":
        fragments = fragments.swapaxes(-3, -4)  # the tiles along K last
    registers = _dequantised(words, codes, to).reshape(*words.shape[:-1], -1, fragments.shape[-1])
    assert np.array_equal(np.moveaxis(registers, -2, -3).reshape(fragments.shape), fragments)
    assert np.array_equal(quantised.unpermute(words, codes, instruction, operand), given)


def test_a_matrix_that_is_not_whole_is_padded_with_codes_zero() -> None:
    codes = _codes("u4", (18, 70))
    words = quantised.permute(codes, "u4", _MMA.format("f16"), pad=True)
    whole = np.zeros((32, 128), np.uint8)
    whole[:18, :70] = codes
    assert np.array_equal(words, quantised.permute(whole, "u4", _MMA.format("f16")))
    assert np.array_equal(quantised.unpermute(words, "u4", _MMA.format("f16"), shape=(18, 70)).view(np.uint8), codes)


@pytest.mark.parametrize("product", _PRODUCTS)
@pytest.mark.parametrize("operand", ["a", "b"])
def test_scales_are_those_of_the_rows_in_the_registers(product: str, operand: str) -> None:
    instruction = ptxmma.instruction(product.format("f16"))
    if operand == "b" and instruction.variant.instruction.family == "wgmma":
        pytest.skip("b of wgmma is in shared memory")
    held = instruction.operand(operand)
    lines, threads = (held.rows if operand == "a" else held.cols), held.fragment().threads
    scales = np.random.default_rng(2).random((3, 2 * lines, 5)).astype(np.float16)
    given = scales if operand == "a" else scales.swapaxes(-1, -2)
    permuted = quantised.permute_groups(given, instruction, operand)
    sharing = threads // permuted.shape[-2]
    for lane in range(threads):
        for i in range(held.elements):
            line = held.coords(lane, i)["ab".index(operand)]
            of_register = permuted[..., lane // sharing, i // 2 % 2 % permuted.shape[-1]]
            assert np.array_equal(of_register, scales.reshape(3, 2, lines, 5)[:, :, line])
    assert np.array_equal(quantised.unpermute_groups(permuted, instruction, operand), given)


def _torch(value: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(value)


def test_a_tensor_gives_a_tensor() -> None:
    codes = _codes("u4", (16, 64))
    words = quantised.permute(_torch(codes), "u4", _MMA.format("f16"))
    assert np.array_equal(words.numpy().view(np.uint32), quantised.permute(codes, "u4", _MMA.format("f16")))


@pytest.mark.parametrize(
    ("shape", "element", "product", "operand", "message"),
    [
        ((16, 64), "u4", _MMA.format("tf32").replace("k16", "k8"), "a", "no conversion from u4 to tf32; there are u4 to f16"),
        ((16, 64), "u4", _MMA.format("f16"), "d", "d of .* is not one matrix that is summed over K in registers"),
        ((16, 64), "u4", "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "b-desc", "b-desc of .* is not one matrix"),
        ((16, 48), "u4", _MMA.format("f16"), "a", "multiples of 16 and 64, not 16 and 48; pad=True pads to 16 and 64"),
        ((64, 8), "u4", _MMA.format("f16"), "b", "multiples of 128 and 8, not 64 and 8"),
        ((64,), "u4", _MMA.format("f16"), "a", r"codes have shape \(64,\); they are \(\.\.\., M, K\)"),
        ((0, 64), "u4", _MMA.format("f16"), "a", "has no elements"),
    ],
)
def test_what_cannot_be_permuted(shape: tuple[int, ...], element: str, product: str, operand: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quantised.permute(np.zeros(shape, np.uint8), element, product, operand)


def test_a_code_of_more_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="u4 has 4 bits"):
        quantised.permute(np.full((16, 64), 16, np.uint8), "u4", _MMA.format("f16"))


def test_words_and_groups_of_another_shape() -> None:
    with pytest.raises(ValueError, match=r"they are \(\.\.\., tiles, steps, 32, 4\)"):
        quantised.unpermute(np.zeros((1, 1, 16, 4), np.uint32), "u4", _MMA.format("f16"))
    with pytest.raises(ValueError, match=r"they are \(\.\.\., tiles, groups, 8, 2\)"):
        quantised.unpermute_groups(np.zeros((1, 1, 8, 1), np.float16), _MMA.format("f16"))
