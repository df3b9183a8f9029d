"""The results of loads, stores and transpositions, element by element and together with the multiplications that they serve."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import ptxmma
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Catalog, Instruction, Missing, catalog
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.places import operand_of
from ptxmma.model import ElementType

_START = 0x4000  # address of the first byte of an image
#: Bits between elements in memory, where registers have wider ones.
_PACKED = {"b6x16_p32": 6, "b4x16_p64": 4, "s4": 4}
_GARBAGE = np.uint32(0xDEADBEE1)


@functools.cache
def transferring(operation: str, *, by_row: bool = True) -> list[Instruction]:
    """Instructions of an operation in one state space: those with an address from each thread, or those with one address."""
    return chosen(ptxmma.instructions(), operation, by_row=by_row)


def chosen(instructions: Iterable[Instruction], operation: str, *, by_row: bool = True) -> list[Instruction]:
    """The instructions among some that :func:`transferring` describes."""
    transfers = [ins for ins in instructions if ins.operation == operation and not ins.qualifiers.get("space")]
    return [ins for ins in transfers if (operand_of(ins, "address").layout is not None) == by_row]


def bits_of(array: Any) -> int:
    """An image as one number: bit 0 of byte 0 is its lowest."""
    return int.from_bytes(np.ascontiguousarray(array).tobytes(), "little")


def random_rows(address: Operand, random: np.random.Generator) -> tuple[Array, Array]:
    """Addresses in any order, which do not overlap, with garbage where they are ignored; and an image that has room for them."""
    count = int(np.prod(list(address.sizes.values())))
    places = random.permutation(2 * count)[:count]
    step = -(-address.row_bytes // address.alignment) * address.alignment
    assert address.layout is not None
    p = np.full(address.layout.threads, _GARBAGE)
    p[:count] = _START + places * step
    return p, random.integers(0, 256, 2 * count * step, np.uint8)


def element_at(operand: Operand, registers: Array, lane: int, i: int) -> int:
    """The container of an element in the registers."""
    return bits_of(registers[lane]) >> i * operand.bits & (1 << operand.bits) - 1


def first_bit(address: Operand, fragment: Operand, p: Array, place: tuple[int, ...], width: int) -> int:
    """The lowest bit in the image of the element at a place: the axes that no address names lie one after another, the last one fastest."""
    at = dict(zip(fragment.axes, place, strict=True))
    index = 0
    for axis in fragment.axes:
        if axis not in address.axes:
            index = index * fragment.sizes[axis] + at[axis]
    return 8 * (int(p[address.locate(*(at[axis] for axis in address.axes))]) - _START) + width * index


def test_every_load_of_rows_reads_what_addresses_name(odd: Catalog) -> None:
    random = np.random.default_rng(0)
    assert len(transferring("load")) >= 20
    made_up = chosen(odd.all(), "load")
    assert made_up
    for ins in (*transferring("load"), *made_up):
        address, target = operand_of(ins, "address"), operand_of(ins, "fragment")
        stored = ins.qualifiers.get("from", "")
        width = _PACKED.get(stored, target.bits)
        p, memory = random_rows(address, random)
        registers = ptxmma.emulate(ins, p, memory, _START).registers
        assert registers.shape == (len(p), target.registers)
        image = bits_of(memory)
        for lane in range(len(p)):
            for i in range(target.elements):
                first = first_bit(address, target, p, target.coords(lane, i), width)
                value = image >> first & (1 << width) - 1
                if stored == "s4" and value >= 8:  # the sign fills the byte
                    value += 0xF0
                assert element_at(target, registers, lane, i) == value, (ins.canonical, lane, i)


def test_every_store_of_rows_writes_what_addresses_name_and_no_more(odd: Catalog) -> None:
    random = np.random.default_rng(0)
    assert len(transferring("store")) >= 9
    made_up = chosen(odd.all(), "store")
    assert made_up
    for ins in (*transferring("store"), *made_up):
        address, source = operand_of(ins, "address"), operand_of(ins, "fragment")
        p, memory = random_rows(address, random)
        registers = random.integers(0, 1 << 32, (len(p), source.registers), np.uint32)
        before = memory.copy()
        after = ptxmma.emulate(ins, p, registers, memory, _START).memory
        assert after is not None
        assert np.array_equal(memory, before), "what was given has changed"
        expected = bits_of(before)
        for lane in range(len(p)):
            for i in range(source.elements):
                first = first_bit(address, source, p, source.coords(lane, i), source.bits)
                mask = (1 << source.bits) - 1
                expected = expected & ~(mask << first) | element_at(source, registers, lane, i) << first
        assert bits_of(after) == expected, ins.canonical


# --- what kernels use them for ----------------------------------------------------------------------------------------------

_MMA = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"


def _random_f16(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float16)


def _rows(image: Array, blocks: list[tuple[int, int]]) -> Array:
    """The addresses of the rows of 8 x 8 blocks of a matrix, by their first row and column."""
    stride = image.shape[1] * 2
    starts = [_START + (row + r) * stride + col * 2 for row, col in blocks for r in range(8)]
    return np.array((starts * 4)[:32])


def test_ldmatrix_loads_the_fragments_of_mma() -> None:
    mma = ptxmma.instruction(_MMA)
    a, b = _random_f16((16, 16)), _random_f16((16, 8))
    four = ptxmma.emulate("ldmatrix.sync.aligned.m8n8.x4.b16", _rows(a, [(0, 0), (8, 0), (0, 8), (8, 8)]), a, _START).registers
    assert np.array_equal(four.view(np.uint32), mma.operand("a").pack(a).view(np.uint32))
    turned = np.ascontiguousarray(b.T)
    by_columns = ptxmma.emulate("ldmatrix.sync.aligned.m8n8.x2.b16", _rows(turned, [(0, 0), (0, 8)]), turned, _START).registers
    by_rows = ptxmma.emulate("ldmatrix.sync.aligned.m8n8.x2.trans.b16", _rows(b, [(0, 0), (8, 0)]), b, _START).registers
    for loaded in (by_columns, by_rows):
        assert np.array_equal(loaded.view(np.uint32), mma.operand("b").pack(b).view(np.uint32))


def test_stmatrix_stores_the_result_of_mma() -> None:
    d = _random_f16((16, 8))
    registers = ptxmma.instruction(_MMA).operand("d").pack(d)
    image = np.zeros((16, 8), np.float16)
    stored = ptxmma.emulate("stmatrix.sync.aligned.m8n8.x2.b16", _rows(image, [(0, 0), (8, 0)]), registers, image, _START).memory
    assert bits_of(stored) == bits_of(d)
    image = np.zeros((8, 16), np.float16)
    stored = ptxmma.emulate("stmatrix.sync.aligned.m8n8.x2.trans.b16", _rows(image, [(0, 0), (0, 8)]), registers, image, _START).memory
    assert bits_of(stored) == bits_of(d.T)


def test_movmatrix_makes_a_load_with_trans_of_one_without() -> None:
    matrix = _random_f16((8, 8))
    plain, turned = (
        ptxmma.emulate(f"ldmatrix.sync.aligned.m8n8.x1{trans}.b16", _rows(matrix, [(0, 0)]), matrix, _START).registers
        for trans in ("", ".trans")
    )
    moved = ptxmma.emulate("movmatrix.sync.aligned.m8n8.trans.b16", plain).registers
    assert np.array_equal(moved, turned)
    assert not np.array_equal(moved, plain)
    assert np.array_equal(
        ptxmma.emulate("movmatrix.sync.aligned.m8n8.trans.b16", np.stack([moved, plain])).registers, np.stack([plain, turned])
    )


# --- one address and a stride -----------------------------------------------------------------------------------------------


def _laid_out(matrix: Array, element: ElementType, order: str, stride: int, random: np.random.Generator) -> Array:
    """A matrix in memory, rows or columns ``stride`` elements apart, with random bits between them."""
    lines = elements.codes(matrix if order == "row" else np.ascontiguousarray(matrix.T), element)
    whole = random.integers(0, (1 << element.bits) - 1, (len(lines), stride), np.uint64, endpoint=True).astype(lines.dtype)
    whole[:, : lines.shape[1]] = lines
    return elements.joined(whole, element.bits).view(np.uint8).reshape(-1)


def _random_matrix(operand: Operand, random: np.random.Generator) -> Array:
    """Small numbers, so that products and sums are exact."""
    assert operand.element is not None
    low = -2 if operand.element.sign and operand.element.bits > 1 else 0
    return random.integers(low, 2, (operand.rows, operand.cols)).astype(elements.dtype(operand.element))


@pytest.mark.parametrize("gap", [0, 32])
def test_matrices_are_loaded_and_stored_as_they_lie(gap: int) -> None:
    random = np.random.default_rng(gap)
    loads, stores = transferring("load", by_row=False), transferring("store", by_row=False)
    assert len(loads) >= 80
    assert len(stores) >= 25
    for ins in (*loads, *stores):
        operand, order = ins.operand("r"), ins.qualifiers["layout"]
        assert operand.element is not None
        matrix = _random_matrix(operand, random)
        dense = operand.cols if order == "row" else operand.rows
        stride = {"stride": dense + gap} if gap else {}
        image = _laid_out(matrix, operand.element, order, dense + gap, random)
        memory = np.concatenate([np.full(32, 0xA5, np.uint8), image])
        if ins.operation == "load":
            loaded = ptxmma.emulate(ins, _START + 32, memory, _START, **stride).registers
            assert np.array_equal(loaded, operand.pack(matrix)), ins.canonical
        else:
            blank = np.concatenate(
                [memory[:32], _laid_out(np.zeros_like(matrix), operand.element, order, dense + gap, np.random.default_rng(9))]
            )
            wanted = np.concatenate([memory[:32], _laid_out(matrix, operand.element, order, dense + gap, np.random.default_rng(9))])
            stored = ptxmma.emulate(ins, _START + 32, operand.pack(matrix), blank, _START, **stride).memory
            assert np.array_equal(stored, wanted), ins.canonical


def _transfer(operation: str, matrix: str, like: Instruction, order: str, element: str) -> Instruction:
    """The load or store that goes with an operand of a multiplication."""
    return ptxmma.instruction(f"{like.family}.{operation}.{matrix}.sync.aligned.{order}.{like.variant.qualifiers['shape']}.{element}")


def test_matrices_go_from_memory_through_multiplication_to_memory() -> None:
    random = np.random.default_rng(0)
    families = {ins.family for ins in transferring("load", by_row=False)}
    with_loads = [ins for ins in ptxmma.instructions() if ins.operation == "multiply" and ins.family in families]
    assert len(with_loads) > 100
    for ins in with_loads:
        given, exact = {}, {}
        for name in "abc":
            order = ins.qualifiers.get(f"{name}layout", "col")
            load = _transfer("load", name, ins, order, ins.qualifiers[f"{name}type"])
            operand = load.operand("r")
            assert operand.element is not None
            exact[name] = _random_matrix(operand, random)
            stride = operand.cols if order == "row" else operand.rows
            given[name] = ptxmma.emulate(load, 0, _laid_out(exact[name], operand.element, order, stride, random)).registers
        d = ptxmma.emulate(ins, **given).d
        store = _transfer("store", "d", ins, "row", ins.qualifiers["dtype"])
        result = store.operand("r")
        assert result.element is not None
        image = ptxmma.emulate(store, 0, d, np.zeros(result.rows * result.cols * result.bits // 8, np.uint8)).memory
        assert image is not None
        a, b, c = (exact[name].astype(np.float64) for name in "abc")
        product = (a[:, :, None] != b[None]).sum(1) if ins.qualifiers["bitop"] == "xor" else a @ b
        assert np.array_equal(
            image.view(elements.dtype(result.element)).reshape(result.rows, result.cols).astype(np.float64), product + c
        ), ins


# --- bad operands -----------------------------------------------------------------------------------------------------------

_LOAD, _STORE = "ldmatrix.sync.aligned.m8n8.x2.b16", "stmatrix.sync.aligned.m8n8.x2.b16"
_WHOLE = "wmma.load.a.sync.aligned.row.m16n16k16.f16"
_P, _IMAGE = np.arange(32) * 16, np.zeros(512, np.uint8)


@pytest.mark.parametrize(
    ("spelling", "operands", "message"),
    [
        (_LOAD, {"p": _P[:16], "memory": _IMAGE}, r"p is int64 of shape \(16,\); it takes \(32,\) integers"),
        (_LOAD, {"p": _P.astype(np.float32), "memory": _IMAGE}, "p is float32"),
        (_LOAD, {"p": _P + 8, "memory": _IMAGE}, "address 0x8 of thread 0 is not a multiple of 16"),
        (_LOAD, {"p": _P, "memory": _IMAGE[:248]}, "address 0xf0 of thread 15 leaves the memory of 248 bytes"),
        (_LOAD, {"p": _P, "memory": _IMAGE, "memory_start": 16}, "address 0x0 of thread 0 leaves the memory"),
        (_LOAD, {"p": _P, "memory": _IMAGE, "stride": 8}, "takes no stride: each row has its own address"),
        (_LOAD, {"p": _P}, "missing a required argument: 'memory'; its operands are r, "),
        (_LOAD, {"p": _P, "memory": _IMAGE, "b": 0}, "got an unexpected keyword argument 'b'"),
        (_STORE, {"p": _P, "r": np.zeros((32, 1), np.uint32), "memory": _IMAGE}, r"registers have shape \(32, 1\); r takes \(..., 32, 2\)"),
        (_WHOLE, {"p": 16, "memory": _IMAGE}, "p = 0x10 is not a multiple of 32"),
        (_WHOLE, {"p": 32, "memory": _IMAGE}, "p = 0x20 with a stride of 16 elements leaves the memory of 512 bytes"),
        (_WHOLE, {"p": 0, "memory": _IMAGE, "stride": 17}, "with a stride of 17 elements leaves the memory"),
        (_WHOLE, {"p": 0, "memory": _IMAGE, "stride": 15}, "undefined with a stride of 15 elements: rows, or columns, have 16"),
        (_WHOLE, {"p": 480, "memory": _IMAGE, "stride": -16}, "undefined with a stride of -16 elements"),
        ("movmatrix.sync.aligned.m8n8.trans.b16", {"a": np.zeros((16, 1), np.uint32)}, r"registers have shape \(16, 1\)"),
        ("movmatrix.sync.aligned.m8n8.trans.b16", {"p": 0}, "missing a required argument: 'a'|unexpected keyword argument 'p'"),
    ],
)
def test_bad_operands_of_transfers(spelling: str, operands: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ptxmma.emulate(spelling, **operands)


@pytest.mark.parametrize("change", [{"p": 1.5}, {"p": "0"}, {"stride": 16.0}])
def test_addresses_and_strides_that_are_not_integers(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"p": 0, "memory": _IMAGE} | change
    with pytest.raises(TypeError, match=f"{next(iter(change))} must be one integer"):
        ptxmma.emulate(_WHOLE, **given)


# --- vectors of one thread --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling", ["b8.b2.sp::2:4.x4", "b8.b4.sp::4:16.x32", "b16.b4.sp::2:8.x1", "b16.b2.sp::1:2.x2", "b8.b4.sp::1:16.x2"]
)
def test_decompression_follows_the_loop_of_the_manual(spelling: str) -> None:
    """PTX ISA 9.4, 9.7.10.31: data[mdata[N][S]] = cdata[N][S], with the places in each group in any order."""
    instruction = ptxmma.instruction(f"spdecompress.{spelling}")
    width, index, kept, group, repeats = (instruction.extents[name] for name in ("width", "index", "kept", "group", "num"))
    random = np.random.default_rng(group)
    places = np.array([random.permutation(group)[:kept] for _ in range(repeats)])
    codes = random.integers(1, 1 << width, (repeats, kept))
    wanted = np.zeros((repeats, group), int)
    for number, slot in itertools.product(range(repeats), range(kept)):
        wanted[number, places[number, slot]] = codes[number, slot]

    def words(numbers: Any, bits: int) -> Any:
        text = sum(int(number) << bits * place for place, number in enumerate(numbers.reshape(-1)))
        return np.array([text >> 32 * place & 0xFFFFFFFF for place in range(-(-numbers.size * bits // 32))], np.uint32)

    done = ptxmma.emulate(instruction, mdata=words(places, index), cdata=words(codes, width)).registers
    np.testing.assert_array_equal(done, words(wanted, width))
    assert done.shape == (next(each.registers for each in instruction.forms[0].operands if each.name == "data"),)


def test_what_is_not_decompressed() -> None:
    three = np.array([0b11_10], np.uint32)
    with pytest.raises(ValueError, match=r"an index is 3; elements go to the places 0\.\.1"):
        ptxmma.emulate("spdecompress.b16.b2.sp::1:2.x2", mdata=three, cdata=three)
    with pytest.raises(ValueError, match=r"cdata has shape \(2,\); it takes \(\.\.\., 1\)"):
        ptxmma.emulate("spdecompress.b16.b2.sp::1:2.x2", mdata=three, cdata=np.zeros(2, np.uint32))
    with pytest.raises(Missing, match="no source says in which order cdata has the two kept elements"):
        ptxmma.emulate("spcompress.b8.b2.sp::2:4.x1", data=three)


def test_vectors_have_every_size_that_the_manual_allows() -> None:
    """PTX ISA 9.4, 9.7.10.31: the rules on the sizes of one decompression, in place of the list of forms."""
    every = {each.canonical for each in catalog().all(lambda entry: entry.name == "spdecompress")}
    wanted = set()
    for width, index, factor, n in itertools.product(
        (8, 16), (2, 4), ("1:2", "1:4", "1:8", "1:16", "2:4", "2:8", "2:16", "4:8", "4:16"), range(7)
    ):
        kept, group = map(int, factor.split(":"))
        sizes = [-(-(part << n) // 32) for part in (kept * index, kept * width, group * width)]
        fits = kept * width <= 32 and (index == 4 or group <= 4) and 32 <= group * width << n <= 4096 and sum(sizes) <= 253
        wanted |= {f"spdecompress.b{width}.b{index}.sp::{factor}.x{1 << n}"} if fits else set()
    assert every == wanted
