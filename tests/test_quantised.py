"""Quantised weights: the generated conversions in exact arithmetic, and permuted codes against the fragments of products."""

from __future__ import annotations

import ctypes
import math
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxmma
from cuda_calls import Nvcc
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


def _f16(bits: int) -> float:
    number: float = struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]
    return number


def _bf16(bits: int) -> float:
    number: float = struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0]
    return number


def _to_f16(number: float) -> int:
    bits: int = struct.unpack("<H", struct.pack("<e", number))[0]
    assert _same(_f16(bits), number), "rounded"
    return bits


def _to_bf16(number: float) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
    assert _same(_bf16(bits >> 16), number), "rounded"
    return bits >> 16


def _same(number: float, other: float) -> bool:
    """Equal with the same sign, or both NaN."""
    return (number == other and math.copysign(1, number) == math.copysign(1, other)) or (number != number and other != other)


def _narrow(element: str) -> list[float]:
    """The number of each code, from the fields of its bits."""
    entry = _ELEMENTS[element]
    found = []
    for code in range(1 << entry.bits):
        if entry.form == "float":
            sign, exponent, fraction = (
                code >> entry.bits - 1,
                code >> entry.mantissa & (1 << entry.exponent) - 1,
                code % (1 << entry.mantissa),
            )
            number = math.ldexp(fraction + (1 << entry.mantissa) * (exponent > 0), max(exponent, 1) - entry.bias - entry.mantissa)
            if entry.infinity and exponent == (1 << entry.exponent) - 1:
                number = math.nan if fraction else math.inf
            if entry.nan and not entry.infinity and code & 0x7F == 0x7F:
                number = math.nan
            found.append(-number if sign else number)
        else:
            found.append(float(code - (code >> entry.bits - 1 << entry.bits) * (entry.form == "signed")))
    return found


def _pairs(compute: Callable[..., float], read: Callable[[int], float], write: Callable[[float], int]) -> Callable[..., int]:
    def operate(*words: int) -> int:
        low, high = (write(compute(*(read(word >> shift) for word in words))) for shift in (0, 16))
        return low | high << 16

    return operate


def _converted(element: str, write: Callable[[float], int]) -> Callable[[int], int]:
    bits, numbers = _ELEMENTS[element].bits, _narrow(element)
    return lambda word: write(numbers[word % (1 << bits)]) | write(numbers[word >> bits]) << 16


def _lop3(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> n & 1) << 2 | (b >> n & 1) << 1 | c >> n & 1) & 1) << n for n in range(32))


def _prmt(a: int, b: int, selector: int) -> int:
    each = (a | b << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(each[selector >> 4 * place & 7] for place in range(4)), "little")


_KINDS = (("f16", _f16, _to_f16), ("bf16", _bf16, _to_bf16))
#: The instructions of the header, one number at a time and without rounding.
_PTX: dict[str, Callable[..., int]] = {
    "mov.b32": lambda a: a,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, n: a << n & 0xFFFFFFFF,
    "shr.u32": lambda a, n: a >> n,
    "lop3.b32": _lop3,
    "prmt.b32": _prmt,
    "cvt.f32.f16": lambda a: int.from_bytes(struct.pack("<f", _f16(a)), "little"),
    **{
        f"{name}.rn.{kind}x2": _pairs(compute, read, write)
        for kind, read, write in _KINDS
        for name, compute in (("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b), ("fma", lambda a, b, c: a * b + c))
    },
    **{f"cvt.rn.{kind}x2.{name}x2": _converted(name, write) for kind, _, write in _KINDS for name in ("e4m3", "e5m2", "e2m1")},
}


def _bodies(function: str) -> list[tuple[list[str], list[str], list[str]]]:
    """The statements of each body of a function of the header, and the C++ expressions that are its outputs and inputs."""
    text = (paths.INCLUDE / "ptxmma/cuda/dequantise.cuh").read_text(encoding="utf-8")
    found = []
    for body in text[text.index(f"PTXMMA_FUNCTION {function}") :].partition("#endif")[0].split("asm(")[1:]:
        code, outputs, inputs = re.split(r"\n\s*: ", body.partition(");\n")[0])
        joined = "".join(re.findall(r'"([^"]*)"', code)).removeprefix("{ ").removesuffix("}")
        statements = [statement.strip() for statement in joined.split(";") if statement.strip()]
        found.append((statements, re.findall(r"\(([^()]+)\)", outputs), re.findall(r"\(([^()]+)\)", inputs)))
    return found


def _evaluated(body: tuple[list[str], list[str], list[str]], given: dict[str, int]) -> list[int]:
    """The outputs of a body."""
    statements, outputs, inputs = body
    registers = {f"%{len(outputs) + place}": given[expression] for place, expression in enumerate(inputs)}
    for statement in statements:
        if not statement.startswith(".reg"):
            opcode, target, rest = re.fullmatch(r"(\S+) (\{[^}]*\}|[^,]+), (.*)", statement).groups()  # type: ignore[union-attr]
            sources = [registers[name] if name in registers else int(name, 0) for name in rest.split(", ")]
            targets = target.strip("{}").split(", ")
            for place, name in enumerate(targets):
                bits = 32 // len(targets)
                registers[name] = _PTX[opcode](*sources) >> place * bits & (1 << bits) - 1
    return [registers[f"%{place}"] for place in range(len(outputs))]


@pytest.mark.parametrize(("codes", "to"), _PAIRS)
def test_the_header_converts_every_code_at_every_place(codes: str, to: str) -> None:
    element, read, numbers = _ELEMENTS[codes], {"f16": _f16, "bf16": _bf16}[to], _narrow(codes)
    entries = conversions.conversions(_SPEC, codes, to)
    count, order, largest = 32 // element.bits, conversions.order(entries[0], element.bits), entries[0].largest_zero
    bodies = _bodies(f"dequantise_{codes}_{to}(")
    assert len(bodies) == len(entries)
    rng = np.random.default_rng(1)
    for entry, body in zip(reversed(entries), bodies, strict=True):
        for code in range(1 << element.bits):
            for first in range(count):
                held = [int(other) for other in rng.integers(0, 1 << element.bits, count)]
                held[first] = code
                zero = [0, largest] if code == 0 else [int(z) for z in rng.integers(0, largest + 1, 2)]
                given = {"codes": sum(other << element.bits * place for place, other in enumerate(held))}
                given |= {f"zero[{parity}]": z * _BOTH for parity, z in enumerate(zero)}
                out = _evaluated(body, given)
                for i in range(count):
                    number = numbers[held[order[i]]]
                    got, wanted = read(out[i // 2] >> i % 2 * 16), number - zero[i // 2 % 2] if largest else number
                    assert _same(got, wanted) or (entry.finite and not math.isfinite(wanted) and got == math.copysign(480, wanted)), given


def test_the_order_of_four_bits_is_the_interleave_of_awq() -> None:
    entry = conversions.conversions(_SPEC, "u4", "f16")[0]
    assert conversions.held(entry, 4) == (0, 2, 4, 6, 1, 3, 5, 7)


@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_the_header_scales_and_adds(to: str) -> None:
    write = {"f16": _to_f16, "bf16": _to_bf16}[to]
    given = {"values[r]": write(-3) | write(2.5) << 16, "scale[r % 2]": write(0.5) | write(4) << 16}
    given["offset[r % 2]"] = write(1) | write(-2) << 16
    parameters = "uint32_t (&values)[Registers], const uint32_t (&scale)[2]"
    [body], [offset] = (_bodies(f"scale_{to}({parameters}{more})") for more in ("", ", const uint32_t (&offset)[2]"))
    assert _evaluated(body, given) == [write(-1.5) | write(10) << 16]
    assert _evaluated(offset, given) == [write(-0.5) | write(8) << 16]


# --- on a chip --------------------------------------------------------------------------------------------------------------


def _program() -> str:
    """A function ``run_*`` on the host for each conversion: words, two zero points and the registers that a kernel makes of them."""
    text = "#include <ptxmma/cuda/dequantise.cuh>\n"
    for codes, to in _PAIRS:
        entry = conversions.conversions(_SPEC, codes, to)[0]
        name, count = f"dequantise_{codes}_{to}", len(steps.results(entry.steps))
        text += f"""
__global__ void kernel_{name}(const uint32_t* words, uint32_t even, uint32_t odd, uint32_t* made, int count) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t zero[2] = {{even, odd}};
  (void)zero;
  if (i < count) {{
    uint32_t out[{count}];
    ptxmma::{name}(words[i], {"zero, " if entry.largest_zero else ""}out);
    for (int r = 0; r < {count}; r++) made[i * {count} + r] = out[r];
  }}
}}
extern "C" int run_{name}(const uint32_t* words, uint32_t even, uint32_t odd, uint32_t* made, int count) {{
  uint32_t *in, *out;
  cudaMalloc(&in, count * 4);
  cudaMalloc(&out, count * {count} * 4);
  cudaMemcpy(in, words, count * 4, cudaMemcpyHostToDevice);
  kernel_{name}<<<(count + 255) / 256, 256>>>(in, even, odd, out, count);
  cudaMemcpy(made, out, count * {count} * 4, cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
  return cudaGetLastError();
}}
"""
    return text


@pytest.mark.nvcc
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_89", "sm_100a", "sm_120f"])
def test_every_function_compiles(compiler: Nvcc, target: str, tmp_path: Path) -> None:
    program = _program() if target != "sm_75" else "#include <ptxmma/cuda/dequantise.cuh>\n"  # no bf16 there
    assert ("cvt.rn.f16x2.e2m1x2" in compiler.ptx_of(program, target, tmp_path)) == (target[-1] in "af")


@pytest.mark.nvcc
@pytest.mark.gpu
def test_a_chip_converts_as_the_steps_say(nvcc: str, gpu: str, tmp_path: Path) -> None:  # noqa: ARG001  # skips without one
    (tmp_path / "functions.cu").write_text(_program())
    command = [
        nvcc,
        "-std=c++14",
        "-arch=sm_90",
        f"-I{paths.INCLUDE}",
        "-shared",
        "-Xcompiler",
        "-fPIC",
        "functions.cu",
        "-o",
        "functions.so",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    library = ctypes.CDLL(str(tmp_path / "functions.so"))
    for codes, to in _PAIRS:
        entry = conversions.conversions(_SPEC, codes, to)[0]
        element, number = _ELEMENTS[codes], _ELEMENTS[to]
        count, order = 32 // element.bits, np.array(conversions.order(entry, element.bits))
        held = np.random.default_rng(8).integers(0, 1 << element.bits, (1 << 16, count)).astype(np.uint32)
        words = np.bitwise_or.reduce(held << np.arange(count, dtype=np.uint32) * element.bits, axis=1)
        for zero in {0, entry.largest_zero // 2, entry.largest_zero}:
            zeros = np.array([zero, entry.largest_zero - zero])
            made = np.zeros((len(words), count // 2), np.uint32)
            pointers = [array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)) for array in (words, made)]
            run = getattr(library, f"run_dequantise_{codes}_{to}")
            assert run(pointers[0], *(int(z) * _BOTH for z in zeros), pointers[1], len(words)) == 0
            right = np.array(_narrow(codes))[held[:, order]] - zeros[np.arange(count) // 2 % 2]
            assert np.array_equal(elements.numbers(made.view(np.uint16), number), right, equal_nan=True), (codes, to, zero)


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
    finite = np.flatnonzero(np.isfinite(_narrow(codes))).astype(np.uint8)
    given = elements.typed(np.random.default_rng(3).choice(finite, (3, 256, 256)), element)
    words = quantised.permute(given, codes, instruction, operand)
    threads = instruction.operand(operand).fragment().threads
    assert words.dtype == np.uint32
    assert words.shape[-2:] == (threads, 4)
    assert words.nbytes * 8 == given.size * element.bits
    with np.errstate(invalid="ignore"):
        fragments = instruction.operand(operand).pack_tiles(elements.numbers(given.view(np.uint8), element).astype(elements.dtype(number)))
    if operand == "b":
        fragments = fragments.swapaxes(-3, -4)  # the tiles along K last
    registers = _dequantised(words, codes, to).reshape(*words.shape[:-1], -1, fragments.shape[-1])
    assert np.array_equal(np.moveaxis(registers, -2, -3).reshape(fragments.shape), fragments)
    assert np.array_equal(quantised.unpermute(words, codes, instruction, operand).view(np.uint8), given.view(np.uint8))


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


def test_a_tensor_gives_a_tensor() -> None:
    codes = _codes("u4", (16, 64))
    words = quantised.permute(pytest.importorskip("torch").from_numpy(codes), "u4", _MMA.format("f16"))
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


@pytest.mark.parametrize(("given", "read"), [("uint8", "uint16"), ("int8", "int16"), ("uint16", "uint16"), ("float32", "float32")])
def test_zero_points_of_a_byte_are_widened_to_what_lanes_read(given: str, read: str) -> None:
    zeros = np.arange(32).reshape(16, 2).astype(given)
    permuted = quantised.permute_groups(zeros, _MMA.format("f16"))
    assert permuted.dtype == read
    assert np.array_equal(quantised.unpermute_groups(permuted, _MMA.format("f16")), zeros)


@pytest.mark.parametrize(("given", "wanted"), [("float64", "float16"), ("int64", "uint16"), ("int32", "uint16")])
def test_numbers_wider_than_lanes_read_are_refused(given: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=f"values have dtype {given}, .* convert them to {wanted}"):
        quantised.permute_groups(np.ones((16, 2), given), _MMA.format("f16"))


@pytest.mark.parametrize("given", ["float32", "int64"])
def test_words_of_another_dtype(given: str) -> None:
    with pytest.raises(ValueError, match=f"words have dtype {given}; they are uint32, or int32"):
        quantised.unpermute(np.zeros((1, 1, 32, 4), given), "u4", _MMA.format("f16"))


# --- checkpoints ------------------------------------------------------------------------------------------------------------


def _packed(codes: Array, bits: int, axis: int, columns: tuple[int, ...] = ()) -> Array:
    """Codes as ``int32`` words along an axis, one code at a time."""
    each = 32 // bits
    codes = codes if axis else codes.T
    words = np.zeros((codes.shape[0], codes.shape[1] // each), np.uint32)
    for row in range(codes.shape[0]):
        for word in range(words.shape[1]):
            for place in range(each):
                words[row, word] |= np.uint32(int(codes[row, word * each + (columns[place] if columns else place)]) << place * bits)
    return np.ascontiguousarray(words if axis else words.T).view(np.int32)


def _weights(bits: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 1 << bits, (64, 24))
    return codes, rng.integers(1, 1 << bits, (4, 24)), rng.random((4, 24)).astype(np.float16)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero_offset", [0, 1])
def test_gptq(bits: int, zero_offset: int) -> None:
    codes, zeros, scales = _weights(bits)
    stored = quantised.from_gptq(
        _packed(codes, bits, 0), _packed(zeros - zero_offset, bits, 1), scales, np.arange(64) // 16, bits=bits, zero_offset=zero_offset
    )
    assert np.array_equal(stored.codes, codes)
    assert np.array_equal(stored.zeros, zeros)
    assert np.array_equal(stored.scales, scales)
    assert (stored.group_size, stored.rows) == (16, None)


def test_gptq_with_ordered_activations_sorts_rows_by_group() -> None:
    codes, zeros, scales = _weights(4)
    groups = np.random.default_rng(6).permutation(np.arange(64) // 16)
    stored = quantised.from_gptq(_packed(codes, 4, 0), _packed(zeros - 1, 4, 1), scales, groups)
    x = np.random.default_rng(7).integers(-4, 5, (3, 64))
    weights = (codes - zeros[groups]) * scales[groups].astype(np.float64)
    reordered = (stored.codes.astype(int) - np.repeat(stored.zeros, 16, 0)) * np.repeat(stored.scales, 16, 0).astype(np.float64)
    assert np.allclose(x @ weights, x[:, stored.rows] @ reordered, rtol=0, atol=1e-9)


def test_awq() -> None:
    codes, zeros, scales = _weights(4)
    columns = (0, 2, 4, 6, 1, 3, 5, 7)
    stored = quantised.from_awq(_packed(codes, 4, 1, columns), _packed(zeros, 4, 1, columns), scales)
    assert np.array_equal(stored.codes, codes)
    assert np.array_equal(stored.zeros, zeros)
    words = quantised.permute(stored.codes.T, "u4", _MMA.format("f16"), pad=True)
    assert np.array_equal(quantised.unpermute(words, "u4", _MMA.format("f16"), shape=(24, 64)).view(np.uint8), codes.T)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 3}, "bits = 3; allowed: 4 and 8"),
        ({"zero_offset": -1}, "zero_offset = -1; allowed: 1, for .* and 0, for 'gptq_v2'"),
        ({"scales": np.ones((4, 16), np.float16)}, r"24 columns of codes need zero points and scales \(groups, 24\)"),
        ({"g_idx": np.arange(64) // 32}, "g_idx must have each of the groups 0 to 3 16 times"),
        ({"g_idx": np.arange(63)}, "g_idx is int64 of shape"),
        ({"qzeros": None}, r"qzeros is None; .* symmetric checkpoint are 8: give np.full\(\(groups, N // 8\), 0x77777777, np.uint32\)"),
        ({"qzeros": None, "bits": 8, "zero_offset": 0}, r"are 128: give np.full\(\(groups, N // 4\), 0x80808080, np.uint32\)"),
        ({"qweight": np.zeros((8, 24), np.int64)}, "qweight has dtype int64"),
        ({"qzeros": np.full((4, 6), -1, np.int32), "qweight": np.zeros((16, 24), np.int32), "bits": 8}, "a zero point is 256"),
    ],
)
def test_what_gptq_does_not_store(change: dict[str, Any], message: str) -> None:
    codes, zeros, scales = _weights(4)
    with pytest.raises(ValueError, match=message):
        quantised.from_gptq(**{"qweight": _packed(codes, 4, 0), "qzeros": _packed(zeros - 1, 4, 1), "scales": scales} | change)
