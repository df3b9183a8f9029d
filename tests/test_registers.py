"""Matrices to registers and tensor memory and back: every element, field and scale factor is where the layouts say."""

from __future__ import annotations

import itertools
import math
import pickle
import re
import tracemalloc
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import ptxmma
from ptxmma.arrays import dlpack, elements, tiling
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog, Instruction, UnknownInstruction, catalog
from ptxmma.catalog.lookup import instruction
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.metadata import Metadata, Problem
from ptxmma.catalog.operands.register_operand import RegisterOperand
from ptxmma.catalog.operands.scales import Scales
from ptxmma.catalog.products import resolution
from ptxmma.generator import pipeline
from ptxmma.matrices import scaling, sparse
from ptxmma.model import COPY, ElementType

_DATABASE = catalog()
_F16 = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
_SPARSE = instruction("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
_ORDERED = instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
_SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::{}.f32.e2m1.e2m1.f32.{}"
_BLOCKS_2 = instruction(_SCALED.format("2X", "ue8m0"))
_BLOCKS_4 = instruction(_SCALED.format("4X", "ue4m3"))


def _held_in_registers(catalog: Catalog) -> Iterator[Operand]:
    """The operands with elements, each layout once; of those that range over n the smallest, the largest, and some between."""
    seen: set[object] = set()
    chosen: dict[object, int] = {}
    for candidate in catalog.all():
        if candidate.shape is None:
            continue
        key = (candidate.canonical.split(".")[0], layouts.key(candidate.variant))
        many = candidate.variant.ranging
        chosen[key] = chosen.get(key, -1) + 1
        if many and chosen[key] % 7 and candidate.extents["n"] != 256:
            continue
        for operand in (operand for operand in candidate.operands if operand.elements):
            assert operand.layout is not None
            same = (operand.layout.name, operand.element_type, operand.bits, operand.shift, operand.cols, operand.register_types)
            if same not in seen:
                seen.add(same)
                yield operand


_OPERANDS = list(_held_in_registers(_DATABASE))


def _layout(operand: Operand) -> str:
    assert operand.layout is not None
    return operand.layout.name


def _random(operand: Operand, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Random bits of the operand's type, in its own dtype."""
    assert operand.element is not None
    plain = elements.bits_dtype(operand.element)
    codes = np.random.default_rng(seed).integers(0, (1 << operand.element.bits) - 1, shape, plain, endpoint=True)
    return elements.typed(codes, operand.element)


def _matrices(operand: Operand) -> int:
    """The number of matrices in the operand."""
    assert operand.layout is not None
    return math.prod(size for axis, size in operand.sizes.items() if axis not in (*operand.layout.plane, COPY))


def _tile(operand: Operand, down: int = 1, across: int = 1) -> tuple[int, ...]:
    several = () if _matrices(operand) == 1 else (_matrices(operand),)
    return (*several, operand.rows * down, operand.cols * across)


def _bits(array: Any) -> Array:
    """The bits of an array as unsigned integers, so that NaN equals NaN."""
    memory = np.ascontiguousarray(elements.as_array(array))
    return memory.view(f"u{memory.dtype.itemsize}")


def test_the_operands_are_many() -> None:
    assert len(_OPERANDS) > 150
    assert {operand.element_type for operand in _OPERANDS} >= {
        "f16",
        "bf16",
        "tf32",
        "f64",
        "e4m3",
        "e3m2",
        "e2m1",
        "s8",
        "u4",
        "b1",
        "s32",
    }
    assert {operand.computations for operand in _OPERANDS} == {1, 4}
    assert {_matrices(operand) for operand in _OPERANDS} >= {1, 2, 4}
    assert {operand.sizes.get(COPY, 1) for operand in _OPERANDS} == {1, 2, 4}
    assert {operand.cols for operand in _OPERANDS if operand.rows == 64} > {8, 256}


def test_addresses_are_not_packed() -> None:
    address = instruction("ldmatrix.sync.aligned.m8n8.x4.shared.b16").operand("p")
    whole = instruction("wmma.load.a.sync.aligned.row.m16n16k16.f16").operand("p")
    for call in (Operand.pack, Operand.unpack, Operand.pack_tiles, Operand.unpack_tiles):
        with pytest.raises(ValueError, match="operand 'p' is an address and holds no elements: coords"):
            call(address, np.zeros((1, 1, 32, 1), np.uint32))
        with pytest.raises(ValueError, match="operand 'p' holds no elements of a matrix; its role: address of the matrix"):
            call(whole, np.zeros((1, 1, 32, 1), np.uint32))
    with pytest.raises(ValueError, match="operand 'p' is an address and holds no elements"):
        address.computation(0, 0)


def test_registers_have_the_type_of_the_wrappers() -> None:
    dtypes = {operand.register_types[0]: operand.pack(_random(operand, _tile(operand))).dtype.name for operand in _OPERANDS}
    assert dtypes == {"b32": "uint32", "u32": "uint32", "f32": "float32", "s32": "int32", "f64": "float64"}


_BY_LAYOUT = {name: list(same) for name, same in itertools.groupby(sorted(_OPERANDS, key=_layout), _layout)}


def test_every_fragment_has_an_operand() -> None:
    assert set(_BY_LAYOUT) == {layout.name for layout in _DATABASE.database.layouts if layout.kind == "fragment"}


@pytest.mark.parametrize("name", _BY_LAYOUT)
def test_matrices_of_every_layout_there_and_back(name: str) -> None:
    for seed, operand in enumerate(_BY_LAYOUT[name]):
        rows, cols = 2 * operand.rows, 3 * operand.cols
        matrix = _random(operand, (2, *_tile(operand, 2, 3)), seed)
        registers = operand.pack_tiles(matrix)
        assert registers.shape[1:3] == (2, 3)
        assert np.array_equal(_bits(operand.unpack_tiles(registers)), _bits(matrix)), operand
        part = matrix[..., : rows - 1, : cols - 1]
        padded = operand.pack_tiles(part, pad=True)
        assert np.array_equal(_bits(operand.unpack_tiles(padded, part.shape)), _bits(part)), operand
        assert np.array_equal(_bits(operand.unpack_tiles(padded, part.shape[-2:])), _bits(part)), operand
        whole = _bits(operand.unpack_tiles(padded))
        whole[..., : rows - 1, : cols - 1] = 0
        assert not whole.any(), "padding is zero"


@given(data=st.data())
def test_whole_matrices_there_and_back(data: st.DataObject) -> None:
    operand = data.draw(st.sampled_from(_OPERANDS))
    down, across = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    batch = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    matrix = _random(operand, (*batch, *_tile(operand, down, across)))
    arranged = data.draw(st.sampled_from(["rows", "columns", "slice"]))
    if arranged == "columns":
        matrix = np.ascontiguousarray(matrix.swapaxes(-1, -2)).swapaxes(-1, -2)
    elif arranged == "slice":
        matrix = np.repeat(np.repeat(matrix, 2, axis=-1), 3, axis=-2)[..., 1::3, ::2]
    given = _bits(matrix).copy()
    registers = operand.pack_tiles(matrix)
    assert operand.layout is not None
    assert registers.shape == (*batch, down, across, operand.layout.threads, operand.registers)
    row, col = data.draw(st.integers(0, down - 1)), data.draw(st.integers(0, across - 1))
    part = matrix[..., operand.rows * row : operand.rows * (row + 1), operand.cols * col : operand.cols * (col + 1)]
    assert np.array_equal(_bits(registers[..., row, col, :, :]), _bits(operand.pack(part)))
    assert np.array_equal(_bits(operand.unpack_tiles(registers)), given)
    assert np.array_equal(_bits(matrix), given), "what was given has changed"


def _tiling(operand: ptxmma.Operand) -> tiling.Tiling:
    """The order of an operand's elements in its registers."""
    assert isinstance(operand, ptxmma.RegisterOperand)
    return operand.tiling


def test_panels_of_wide_matrices_join(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = [operand for operand in _OPERANDS if operand.cols <= 64][::9]
    for operand in wide:
        matrix = _random(operand, (2, *_tile(operand, 2, 7)))
        at_once = operand.pack_tiles(matrix)
        with monkeypatch.context() as patch:
            patch.setattr(tiling, "_PANEL", 3 * _tiling(operand).order.size)
            assert np.array_equal(_bits(operand.pack_tiles(matrix)), _bits(at_once))
            assert np.array_equal(_bits(operand.unpack_tiles(at_once)), _bits(matrix))


def test_words_are_as_wide_as_the_layout_allows() -> None:
    """Elements that stay neighbours are moved together."""
    s8 = instruction("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
    assert _tiling(_F16.operand("a")).word == np.uint32
    assert _tiling(_F16.operand("b")).word == np.uint16
    assert _tiling(_F16.operand("b")).transposed.word == np.uint32
    assert _tiling(_F16.operand("c")).word == np.uint64
    assert _tiling(s8.operand("a")).word == np.uint32


def test_orders_that_are_kept_cannot_be_written() -> None:
    order = _tiling(_F16.operand("a"))
    for kept in (order.order, *order._places, order.transposed.order):
        assert not kept.flags.writeable


def test_bits_serve_as_elements_and_as_registers() -> None:
    operand = _F16.operand("c")
    matrix = _random(operand, _tile(operand))
    registers = operand.pack(matrix)
    assert np.array_equal(_bits(operand.pack(_bits(matrix))), _bits(registers))
    assert np.array_equal(_bits(operand.unpack(_bits(registers))), _bits(matrix))
    spread = np.repeat(registers, 2, axis=1)[:, ::2]
    assert not spread.flags.c_contiguous
    assert np.array_equal(_bits(operand.unpack(spread)), _bits(matrix))


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "a"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "b"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "a"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "d"),
        ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "a"),
    ],
)
def test_tensors_give_tensors(spelling: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    operand = instruction(spelling).operand(name)
    matrix = _random(operand, _tile(operand, 2, 2))
    tensor = elements.like(matrix.copy(), torch.zeros(1))
    assert elements.as_array(tensor).ctypes.data == tensor.data_ptr(), "its memory is used as it is"
    registers = operand.pack_tiles(tensor)
    assert isinstance(registers, torch.Tensor)
    assert np.array_equal(_bits(registers), _bits(operand.pack_tiles(matrix)))
    back = operand.unpack_tiles(registers)
    assert back.dtype == tensor.dtype
    assert np.array_equal(_bits(back), _bits(matrix))
    assert np.array_equal(
        _bits(operand.unpack_tiles(operand.pack_tiles(tensor[:-1, :-1], pad=True), tensor[:-1, :-1].shape)), _bits(matrix[:-1, :-1])
    )


@pytest.mark.parametrize(
    "spelling",
    [
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
        "mma.sync.aligned.m16n8k64.row.col.s32.u4.u4.s32",
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32",
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e3m2.f32",
    ],
)
def test_tensors_of_types_that_torch_cannot_use_hold_codes(spelling: str) -> None:
    """Torch has only the names ``torch.int4`` and ``torch.uint4``."""
    torch = pytest.importorskip("torch")
    operand = instruction(spelling).operand("a")
    codes = torch.from_numpy(_bits(_random(operand, _tile(operand))).copy())
    registers = operand.pack(codes)
    back = operand.unpack(registers)
    assert back.dtype == torch.uint8
    assert torch.equal(back, codes)
    assert torch.equal(operand.pack(back), registers)


@pytest.mark.parametrize(
    "element", [entry for entry in _DATABASE.database.spec.types.elements if 8 % entry.bits == 0], ids=lambda e: e.name
)
@given(data=st.data())
def test_elements_are_packed_in_bytes_low_bits_first(element: ElementType, data: st.DataObject) -> None:
    each = 8 // element.bits
    shape = (data.draw(st.integers(1, 3)), each * data.draw(st.integers(1, 5)))
    every = 1 << element.bits - (element.name == "ue4m3")  # whose highest bit is 0
    codes = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, every, shape, np.uint8)
    expected = [[sum(int(row[first + n]) << n * element.bits for n in range(each)) for first in range(0, shape[1], each)] for row in codes]
    packed = ptxmma.pack_bytes(elements.typed(codes.copy(), element), element.name)
    assert packed.dtype == np.uint8
    plain = codes.view(np.int8) if element.name == "s8" else codes  # bytes without a sign are numbers of u8
    assert packed.tolist() == expected == ptxmma.pack_bytes(plain, element).tolist()
    assert ptxmma.pack_bytes(np.asfortranarray(plain), element).tolist() == expected
    back = ptxmma.unpack_bytes(packed, element.name)
    assert back.dtype == elements.dtype(element)
    assert np.array_equal(_bits(back), codes)


def test_packed_fp4_of_torch_comes_in_and_goes_out() -> None:
    torch = pytest.importorskip("torch")
    codes = torch.arange(16, dtype=torch.uint8).reshape(2, 8)
    packed = ptxmma.pack_bytes(codes, "e2m1")
    assert packed.dtype == torch.uint8
    assert packed.tolist() == [[0x10, 0x32, 0x54, 0x76], [0x98, 0xBA, 0xDC, 0xFE]]
    theirs = packed.view(torch.float4_e2m1fn_x2)
    assert torch.equal(ptxmma.unpack_bytes(theirs, "e2m1"), codes)
    assert ptxmma.unpack_bytes(packed.numpy(), "e2m1").dtype == ml_dtypes.float4_e2m1fn
    with pytest.raises(ValueError, match=r"dtype torch.float4_e2m1fn_x2, two elements in a byte; ptxmma.unpack_bytes gives one in"):
        sparse.prune(theirs, "2:4", element="e2m1")
    with pytest.raises(ValueError, match=r"dtype torch.float4_e2m1fn_x2, two elements"):
        ptxmma.unpack_bytes(theirs, "s4")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ptxmma.pack_bytes(np.zeros((1, 3), np.uint8), "s4"),
            "shape (1, 3); the last size must be a multiple of 2, the s4 in a byte",
        ),
        (lambda: ptxmma.pack_bytes(np.zeros((0, 2), np.uint8), "s4"), "shape (0, 2); the last size must be a multiple of 2"),
        (lambda: ptxmma.pack_bytes(np.full((1, 8), 2, np.uint8), "b1"), "holds 0x2: b1 has 1 bit, so its codes are 0..0x1"),
        (lambda: ptxmma.pack_bytes(np.zeros((1, 4), np.uint8), "e3m2"), "not an element type that fills bytes; those that do: e4m3, "),
        (lambda: ptxmma.unpack_bytes(np.zeros((1, 4), np.uint8), _any(4)), "4 is not an element type that fills bytes"),
        (lambda: ptxmma.unpack_bytes(np.zeros((1, 4), np.int8), "s4"), "packed must be uint8 (..., bytes), at least one; this is int8"),
        (lambda: ptxmma.unpack_bytes(np.zeros((0, 4), np.uint8), "s4"), "this is uint8 of shape (0, 4)"),
    ],
)
def test_what_is_not_packed_in_bytes(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_arrays_with_a_meaning_of_their_own() -> None:
    """A mask would be lost silently, so it is refused; an array that reshapes in its own way is read as numbers."""
    with pytest.raises(ValueError, match=re.escape("a is a masked array, whose mask would be lost; fill the masked places")):
        _A.pack(np.ma.masked_equal(_ONE, 0))
    matrix = _random(_A, _tile(_A))
    own: Any = matrix.view(type("Own", (np.ndarray,), {"reshape": None}))
    assert np.array_equal(_A.pack(own), _A.pack(matrix))
    assert type(elements.as_array(own)) is np.ndarray


def _any(value: Any) -> Any:
    """An argument that the type checker would refuse."""
    return value


_A = _F16.operand("a")
_ONE = np.zeros((16, 16), np.float16)
_REGISTERS = np.zeros((32, 4), np.uint32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: _A.pack(np.zeros((16, 8), np.float16)),
            "a has shape (16, 8); one tile is (..., 16, 16): pack_tiles takes larger matrices",
        ),
        (lambda: _A.pack(_ONE[0]), "a has shape (16,); it takes (..., R, C)"),
        (lambda: _A.pack(_ONE.astype(np.float32)), "a has dtype float32; f16 takes float16, or uint16 for raw bits"),
        (lambda: _A.pack([[1.0]]), "a must be a NumPy array, a torch tensor or an array with __dlpack__, not list"),  # type: ignore[list-item]  # a list is not an array
        (lambda: _A.pack(np.zeros((0, 16, 16), np.float16)), "a: an array of shape (0, 16, 16) has no elements"),
        (
            lambda: _A.pack_tiles(_ONE[:15]),
            "a of shape (15, 16): the last two sizes must be multiples of 16 and 16, not 15 and 16; pad=True pads to 16 and 16",
        ),
        (lambda: _A.unpack(_REGISTERS[:, :3]), "registers have shape (32, 3); a takes (..., 32, 4): threads, registers of each"),
        (
            lambda: _A.unpack(_REGISTERS.astype(np.uint64)),
            "registers has dtype uint64; it takes uint32, or any dtype of 4 bytes, for its bits",
        ),
        (lambda: _A.unpack(_REGISTERS[None][:0]), "registers: an array of shape (0, 32, 4) has no elements"),
        (lambda: _A.unpack_tiles(_REGISTERS), "registers have shape (32, 4); a grid of tiles is (..., R/16, C/16, 32, 4)"),
        (
            lambda: _A.unpack_tiles(_REGISTERS[None, None], (17, 3)),
            "shape (17, 3) does not fit registers that hold a matrix of shape (16, 16), padding included",
        ),
        (
            lambda: _A.unpack_tiles(_REGISTERS[None, None].repeat(2, 0), (16, 16)),
            "shape (16, 16) does not fit registers that hold a matrix of shape (32, 16), padding included: "
            "the last two sizes are integers, 17..32 x 1..16",
        ),
        (lambda: _A.unpack_tiles(_REGISTERS[None, None], _any(16)), "shape 16 does not fit"),
        (lambda: _A.unpack_tiles(_REGISTERS[None, None], _any((16.0, 16.0))), "shape (16.0, 16.0) does not fit"),
        (lambda: _A.unpack_tiles(_REGISTERS[None, None], _any("ab")), "shape ab does not fit"),
        (lambda: _A.unpack(_REGISTERS.astype(">u4")), "registers has dtype >u4, of the other byte order"),
        (lambda: _A.unpack(_REGISTERS.astype("S4")), "registers has dtype |S4, which is not a number"),
        (lambda: _A.unpack_tiles(_REGISTERS[None, None], (2, 16, 16)), "the last two sizes are integers, 1..16 x 1..16"),
        (lambda: _F16.operand("d").pack(_ONE), "d has dtype float16; f32 takes float32"),
        (lambda: _SPARSE.operand("f").pack(_ONE), "operand 'f' holds no elements of a matrix"),
        (lambda: instruction("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32").operand("a").pack(_ONE[:8, :4]), "it takes (..., 4, R, C)"),
        (
            lambda: instruction("mma.sync.aligned.m16n8k64.row.col.s32.u4.u4.s32").operand("a").pack(np.full((16, 64), 16, np.uint8)),
            "a holds 0x10: u4 has 4 bits, so its codes are 0..0xf",
        ),
    ],
)
def test_bad_matrices_and_registers_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# --- sparsity metadata ------------------------------------------------------------------------------------------------------

#: One of each layout and set of legal fields.
_METADATA = list({
    (one.metadata.layout.name, one.metadata.legal): one.metadata
    for one in _DATABASE.all() if one.sparse and one.shape is not None
}.values())  # fmt: skip


def _packed(metadata: Metadata, *shape: int, down: int = 1, tiles: int = 1) -> Array:
    return np.random.default_rng(1).integers(0, 256, (*shape, metadata.rows * down, metadata.chunks // 2 * tiles), np.uint8)


@given(data=st.data())
def test_metadata_of_whole_matrices_there_and_back(data: st.DataObject) -> None:
    metadata = data.draw(st.sampled_from(_METADATA))
    down, tiles = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    batch = tuple(data.draw(st.lists(st.integers(1, 2), max_size=1)))
    packed = _packed(metadata, *batch, down=down, tiles=tiles)
    row, tile = data.draw(st.integers(0, down - 1)), data.draw(st.integers(0, tiles - 1))
    width = metadata.chunks // 2
    part = packed[..., metadata.rows * row : metadata.rows * (row + 1), width * tile : width * (tile + 1)]

    shared = metadata.pack_tiles(packed, check=False)
    assert shared.shape == (*batch, down, math.ceil(tiles / metadata.selectors), metadata.layout.threads)
    register, selector = divmod(tile, metadata.selectors)
    assert np.array_equal(metadata.unpack(shared[..., row, register, :], selector), part)
    assert np.array_equal(metadata.unpack_tiles(shared, shape=packed.shape), packed)

    chosen = data.draw(st.integers(0, metadata.selectors - 1))
    apart = metadata.pack_tiles(packed, chosen, check=False)
    assert apart.shape == (*batch, down, tiles, metadata.layout.threads)
    assert np.array_equal(apart[..., row, tile, :], metadata.pack(part, chosen, check=False))
    assert np.array_equal(metadata.unpack_tiles(apart, chosen), packed)


@given(data=st.data())
def test_padded_metadata_is_legal_and_goes_away(data: st.DataObject) -> None:
    metadata = data.draw(st.sampled_from(_METADATA))
    rows, width = data.draw(st.integers(1, 2 * metadata.rows)), data.draw(st.integers(1, 5 * metadata.chunks // 2))
    selector = data.draw(st.sampled_from([None, *range(metadata.selectors)]))
    packed = np.full((2, rows, width), int(metadata.legal[0], 2) * 0x11, np.uint8)
    registers = metadata.pack_tiles(packed, selector, pad=True)
    tiles = math.ceil(width / (metadata.chunks // 2))
    assert registers.shape[:3] == (2, math.ceil(rows / metadata.rows), math.ceil(tiles / metadata.selectors) if selector is None else tiles)
    assert np.array_equal(metadata.unpack_tiles(registers, selector, packed.shape), packed)
    assert np.array_equal(metadata.unpack_tiles(registers, selector, (rows, width)), packed)
    for one in range(metadata.selectors) if selector is None else [selector]:
        assert not metadata.problems(registers, one), "what fills up is legal too"


#: A sparse instruction for each layout of A and of its metadata.
_SPARSE_A = {
    f"{one.forms[0].operand('a').layout} {one.metadata.layout}": one
    for one in _DATABASE.all() if one.sparse and one.shape is not None
}  # fmt: skip


@pytest.mark.parametrize("variant", _SPARSE_A.values(), ids=lambda variant: variant.identifier)
def test_a_matrix_of_any_size_becomes_registers(variant: Instruction) -> None:
    """Pruned, compressed and packed with padding, and all the way back."""
    a, name = variant.forms[0].operand("a"), variant.metadata.granularity.name
    assert a.element is not None
    matrix = _random(a, (17, 33))
    if a.element.form == "float":
        matrix[~np.isfinite(elements.numbers(_bits(matrix), a.element))] = 1
    pruned = sparse.prune(matrix, name, element=a.element, pad=True)
    values, metadata = sparse.compress(pruned, name, element=a.element, pad=True)
    registers, words = a.pack_tiles(values, pad=True), variant.metadata.pack_tiles(metadata, 0, pad=True)
    assert registers.shape[:2] == words.shape[:2]
    assert not variant.metadata.problems(words)
    whole = _bits(sparse.decompress(a.unpack_tiles(registers), variant.metadata.unpack_tiles(words, 0), name))
    assert np.array_equal(whole[:17, :33], _bits(pruned))
    assert not whole[17:].any()
    assert not whole[:, 33:].any()
    back = sparse.decompress(a.unpack_tiles(registers, values.shape), variant.metadata.unpack_tiles(words, 0, metadata.shape), name)
    assert np.array_equal(_bits(back), whole[:17, : back.shape[1]])


def test_problems_are_named_and_placed() -> None:
    fields = np.full((16, 4), 0b0100, np.uint8)
    fields[3, 1], fields[9, 2] = 0b1010, 0b0001
    packed = fields[:, 0::2] | fields[:, 1::2] << 4
    registers = np.stack([_ORDERED.metadata.pack(np.full_like(packed, 0x44), 2), _ORDERED.metadata.pack(packed, 2, check=False)])
    registers[:, 0::4] = 0xFFFFFFFF  # threads of selector 0: not looked at
    problems = _ORDERED.metadata.problems(registers, 2)
    assert list(problems) == [
        Problem((1,), 4 * 3 + 2, 4, 3, 1, 0b1010, "equal indices"),
        Problem((1,), 4 * 1 + 2, 16 + 8, 9, 2, 0b0001, "out of order"),
    ]
    assert list(_SPARSE.metadata.problems(registers, 2)) == problems[:1] == [problems[-2]], "without ordered metadata any order is legal"
    assert len(_ORDERED.metadata.problems(registers, 0)) == 2 * 64
    assert repr(problems).startswith("<Problems: 2, the first Problem(tile=(1,), lane=14, ")
    assert repr(_ORDERED.metadata.problems(registers[0], 2)) == "<Problems: 0>"
    with pytest.raises(IndexError):
        problems[2]


def test_integers_in_bytes_are_taken_for_narrow_ones() -> None:
    ins = ptxmma.instruction("mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32")
    a = ins.operand("a")
    matrix = np.random.default_rng(0).integers(-8, 8, (16, 32)).astype(np.int8)
    assert np.array_equal(a.pack(matrix), a.pack(matrix.astype(ml_dtypes.int4)))
    assert np.array_equal(a.unpack(a.pack(matrix)).astype(np.int8), matrix)
    for wrong in (8, -9):
        matrix[3, 3] = wrong
        with pytest.raises(ValueError, match=rf"a reaches from {min(wrong, -8)} to {max(wrong, 7)}; s4 is -8..7"):
            a.pack(matrix)
    unsigned = ptxmma.instruction("mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32").operand("a")
    with pytest.raises(ValueError, match="a has dtype int8; u4 takes uint4, or uint8 for raw bits"):
        unsigned.pack(matrix)


def test_a_tensor_without_plain_memory_is_refused_with_words() -> None:
    torch = pytest.importorskip("torch")

    def refuse(_: type, function: object, *__: object) -> None:
        raise NotImplementedError(str(function))

    wrapped_class = type("Wrapped", (torch.Tensor,), {"__torch_dispatch__": classmethod(refuse)})
    a = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").operand("a")
    plain = torch.ones(16, 16, dtype=torch.float16)
    wrapped = torch.Tensor._make_wrapper_subclass(wrapped_class, (16, 16), dtype=torch.float16)
    with pytest.raises(ValueError, match="a is a Wrapped, whose memory is not that of a matrix; pass a plain tensor, such as its"):
        a.pack(wrapped)
    parameter = torch.nn.Parameter(plain)
    assert torch.equal(a.pack(parameter), a.pack(plain))


def test_fields_that_the_instruction_cannot_take_are_refused() -> None:
    refused = set()
    for metadata in _METADATA:
        legal = {int(field, 2) for field in metadata.legal}
        for value in range(16):
            fields = np.full((2, metadata.rows, metadata.chunks), int(metadata.padding, 2), np.uint8)
            fields[1, 3, 1] = value
            packed = sparse.from_fields(fields)
            registers = metadata.pack(packed, check=False)
            if value in legal:
                assert np.array_equal(metadata.pack(packed), registers)
                assert np.array_equal(metadata.pack_tiles(packed, 0)[:, 0, 0], registers)
                continue
            problem = metadata.problems(registers)[0].what
            message = rf"the field {value:#06b} at \(1, 3, 1\) of the metadata, .* not legal in this instruction: {problem}; legal: 0b"
            for pack in (metadata.pack, metadata.pack_tiles):
                with pytest.raises(ValueError, match=message):
                    pack(packed)
            refused.add(problem)
    assert refused == {"equal indices", "out of order", "illegal"}


def test_problems_of_a_whole_layer_are_counted_before_they_are_made() -> None:
    registers = np.zeros((256, 128, 32), np.uint32)  # of a matrix of 4096 x 4096
    tracemalloc.start()
    problems = _SPARSE.metadata.problems(registers)
    assert len(problems) == 256 * 128 * _SPARSE.metadata.rows * _SPARSE.metadata.chunks
    assert problems[0] == Problem((0, 0), 0, 0, 0, 0, 0, "equal indices")
    assert problems[-1].tile == (255, 127)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 16 * len(problems), "a number of 8 bytes for each, and not an object"


def test_every_value_is_judged_by_its_indices() -> None:
    seen = set()
    for metadata in _METADATA:
        fields = np.arange(metadata.rows * metadata.chunks).reshape(metadata.rows, -1).astype(np.uint8) % 16
        registers = metadata.pack(fields[:, 0::2] | fields[:, 1::2] << 4, check=False)
        what = {problem.value: problem.what for problem in metadata.problems(registers)}
        legal = {int(value, 2) for value in metadata.legal}
        assert set(what) == set(range(16)) - legal
        for value, word in what.items():
            expected = "illegal" if metadata.granularity.indices == 1 else "equal indices" if value & 3 == value >> 2 else "out of order"
            assert word == expected, value
            seen.add(word)
    assert seen == {"illegal", "equal indices", "out of order"}


_META = _SPARSE.metadata
_TILE = np.zeros((16, 2), np.uint8)
_WORDS = np.zeros(32, np.uint32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: _META.pack(np.zeros((16, 4), np.uint8)),
            "metadata has shape (16, 4); one tile is (..., 16, 2): pack_tiles takes larger matrices",
        ),
        (lambda: _META.pack(_TILE.astype(np.uint16)), "row-major metadata is uint8 (..., rows, chunks / 2), at least one; this is uint16"),
        (lambda: _META.pack(_TILE.view(np.int8)), "row-major metadata is uint8 (..., rows, chunks / 2), at least one; this is int8"),
        (lambda: _META.pack(_TILE[0]), "row-major metadata is uint8 (..., rows, chunks / 2), at least one; this is uint8 of shape (2,)"),
        (lambda: _META.pack(_TILE, 4), "selector = 4 is out of range: 0..3"),
        (lambda: _META.pack(_TILE, -1), "selector = -1 is out of range: 0..3"),
        (lambda: _META.unpack(_WORDS, 4), "selector = 4 is out of range: 0..3"),
        (lambda: _META.problems(_WORDS, 4), "selector = 4 is out of range: 0..3"),
        (
            lambda: _META.pack_tiles(np.zeros((16, 3), np.uint8)),
            "metadata of shape (16, 3): the last two sizes must be multiples of 16 and 2, not 16 and 3; pad=True pads to 16 and 4",
        ),
        (lambda: _META.pack_tiles(np.zeros((0, 2), np.uint8)), "at least one; this is uint8 of shape (0, 2)"),
        (lambda: _META.unpack(_WORDS[:31]), "registers have shape (31,); they are (..., 32): one of each thread"),
        (
            lambda: _META.unpack(_WORDS.astype(np.uint16)),
            "registers has dtype uint16; it takes uint32, or any dtype of 4 bytes, for its bits",
        ),
        (lambda: _META.unpack_tiles(_WORDS), "registers have shape (32,); a grid of tiles is (..., R/16, K-tiles, 32)"),
        (
            lambda: _META.unpack_tiles(_WORDS[None, None], shape=(16, 9)),
            "shape (16, 9) does not fit registers that hold a matrix of shape (16, 8), padding included: "
            "the last two sizes are integers, 1..16 x 1..8",
        ),
        (lambda: _META.unpack_tiles(_WORDS[None, None], 0, shape=(16, 4)), "1..16 x 1..2"),
    ],
)
def test_bad_metadata_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# --- scale factors ----------------------------------------------------------------------------------------------------------


def _scaled() -> dict[str, Scales]:
    """One of each layout and type."""
    by_layout = {}
    for block_scaled in (one for one in _DATABASE.all() if one.variant.facts.get("stype")):
        for matrix in "ab":
            scales = block_scaled.scales(matrix)
            by_layout[f"{scales.layout.name} {scales.element.name}"] = scales
    return by_layout


_SCALES = _scaled()


def _factors(scales: Scales, *shape: int, seed: int = 2) -> Array:
    codes = np.random.default_rng(seed).integers(0, 128, shape, np.uint8)
    return elements.typed(codes, scales.element)


@given(data=st.data())
def test_scale_factors_of_whole_matrices_there_and_back(data: st.DataObject) -> None:
    scales = _SCALES[data.draw(st.sampled_from(sorted(_SCALES)))]
    sizes = [data.draw(st.integers(1, 3 * size)) for size in scales.shape]
    byte_id, thread_id = data.draw(st.sampled_from(scales.byte_ids)), data.draw(st.sampled_from(scales.thread_ids))
    factors = _factors(scales, 2, *sizes)
    registers = scales.pack_tiles(factors, byte_id, thread_id, pad=True)
    grid = [math.ceil(size / step) for size, step in zip(sizes, scales.shape, strict=True)]
    assert registers.shape == (2, *grid, 32)
    assert np.array_equal(_bits(scales.unpack_tiles(registers, byte_id, thread_id, factors.shape)), _bits(factors))
    whole = [size // step for size, step in zip(sizes, scales.shape, strict=True)]
    assume(all(whole))
    row, col = (data.draw(st.integers(0, count - 1)) for count in whole)
    height, width = scales.shape
    tile = factors[:, row * height : (row + 1) * height, col * width : (col + 1) * width]
    assert np.array_equal(registers[:, row, col], scales.pack(tile, byte_id, thread_id))


def test_tiles_of_scale_factors_are_in_the_order_of_the_tiles_of_b() -> None:
    b, scales = _BLOCKS_2.operand("b"), _BLOCKS_2.scales("b")
    quantised = scaling.quantise(np.ones((3 * b.rows, 5 * b.cols), np.float32), scaling.of(_BLOCKS_2, "b"))
    assert scales.pack_tiles(quantised.scales).shape[:2] == b.pack_tiles(quantised.elements).shape[:2] == (3, 5)


_SCALE_A, _SCALE_B = _BLOCKS_2.scales("a"), _BLOCKS_2.scales("b")
_FACTORS = np.ones((16, 2), ml_dtypes.float8_e8m0fnu)
_NEGATIVE = np.ones((16, 4), ml_dtypes.float8_e4m3fn)
_NEGATIVE[7, 2] = -2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _SCALE_A.pack(_FACTORS, 1), "byte_id = 1 is not legal: 0, 2"),
        (lambda: _SCALE_A.pack(_FACTORS, 0, 2), "thread_id = 2 is not legal: 0, 1"),
        (lambda: _SCALE_A.unpack(_WORDS, 3), "byte_id = 3 is not legal: 0, 2"),
        (lambda: _SCALE_A.locate(0, 0, byte_id=5), "byte_id = 5 is not legal: 0, 2"),
        (lambda: _SCALE_A.locate(16, 0), "row = 16 is out of range: 0..15"),
        (lambda: _SCALE_A.pack(_FACTORS[:8]), "scales have shape (8, 2); one tile is (..., 16, 2): pack_tiles takes larger matrices"),
        (lambda: _SCALE_A.pack(_FACTORS[0]), "scales have shape (2,); they are (..., rows, blocks)"),
        (
            lambda: _SCALE_A.pack(np.ones((16, 2), np.float32)),
            "scales has dtype float32; ue8m0 takes float8_e8m0fnu, or uint8 for raw bits",
        ),
        (lambda: _SCALE_A.pack(_FACTORS, registers=_WORDS[None]), "registers have shape (1, 32); for scales of this shape they are (32,)"),
        (
            lambda: _SCALE_A.pack_tiles(_FACTORS[:9]),
            "the last two sizes must be multiples of 16 and 2, not 9 and 2; pad=True pads to 16 and 2",
        ),
        (lambda: _SCALE_A.unpack_tiles(_WORDS), "registers have shape (32,); a grid of tiles is (..., rows/16, blocks/2, 32)"),
        (lambda: _SCALE_A.unpack_tiles(_WORDS[None, None], shape=(17, 2)), "the last two sizes are integers, 1..16 x 1..2"),
        (lambda: _SCALE_B.pack(_FACTORS[:8]), "scales have shape (8, 2); one tile is (..., 2, 8): pack_tiles takes larger matrices"),
        (lambda: _SCALE_B.pack(_FACTORS[0]), "scales have shape (2,); they are (..., blocks, columns)"),
        (lambda: _SCALE_B.unpack_tiles(_WORDS), "registers have shape (32,); a grid of tiles is (..., blocks/2, columns/8, 32)"),
        (lambda: _BLOCKS_4.scales("a").pack(_NEGATIVE), "scales holds 0xc0: ue4m3 has no sign, so its codes are 0..0x7f"),
        (lambda: _BLOCKS_2.scales("d"), "has no scale factors for 'd'"),
        (lambda: _F16.scales("a"), "has no scale factors for 'a'"),
    ],
)
def test_bad_scale_factors_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# --- every space ------------------------------------------------------------------------------------------------------------


def _in_tensor_memory() -> Iterator[Operand]:
    """An operand of N = 64 for each layout and type in tensor memory."""
    seen = set()
    for opcode in _DATABASE.all(lambda entry: entry.operation == resolution.OPERATION):
        for product in (each for each in resolution.every(_DATABASE.database.spec, opcode.variant) if each.extents["n"] == 64):
            for operand in (operand for form in Instruction(_DATABASE.database, product).forms for operand in form.operands):
                if operand.tensor is not None and (key := (operand.tensor.layout.name, operand.element)) not in seen:
                    seen.add(key)
                    yield operand


@pytest.fixture(scope="module")
def every(odd: Catalog) -> list[Operand]:
    """Every kind of operand with data, in every space, and the operands of made-up families."""
    made_up = (_held_in_registers(each) for each in (pipeline.read(Path(__file__).parent / "toy"), odd))
    return [*_OPERANDS, *_METADATA, *_SCALES.values(), *_in_tensor_memory(), *itertools.chain.from_iterable(made_up)]


def _data(operand: Operand) -> tuple[Array, Array, int]:
    """Random data, their codes over the axes, and the bits of each."""
    sizes = [operand.sizes[axis] for axis in _named(operand)]
    element = None if isinstance(operand, Metadata) else operand.element
    if element is None:
        width = operand.width if isinstance(operand, Metadata) else operand.placed().unit
        packed = np.random.default_rng(1).integers(0, 256, (sizes[0], sizes[1] * width // 8), np.uint8)
        return packed, np.unpackbits(packed, axis=-1, bitorder="little").reshape(*sizes, width) @ (1 << np.arange(width)), width
    if isinstance(operand, RegisterOperand):
        matrix = _random(operand, _tile(operand))
        return matrix, _bits(matrix).reshape(sizes), element.bits
    # A matrix has its columns last; some bits of some types are always 0.
    turned = _named(operand)[0] == "col"
    own = element.exponent + element.mantissa if element.form == "float" and not element.sign else element.bits
    codes = np.random.default_rng(2).integers(0, 1 << own, sizes[::-1] if turned else sizes, np.uint64)
    if element.form == "sign-magnitude":
        codes &= np.uint64(1 << element.bits - 1 | (1 << element.mantissa) - 1)
    matrix = elements.typed(codes.astype(elements.bits_dtype(element)), element)
    return matrix, _bits(matrix).T if turned else _bits(matrix), element.bits


def _named(operand: Operand) -> list[str]:
    """The axes of data: a product of several that are independent has its own, a copy has not."""
    return [*(axis for axis in operand.apart if axis == "computation"), *operand.axes]


def _places(operand: Operand, place: Any) -> tuple[Any, Any, Any]:
    """Where the bits of parts lie: in which thread's registers or lane's cells, from which bit on; and the first of their container."""
    if isinstance(operand, Metadata):
        return place[0], place[1], place[1]
    if isinstance(operand, Scales):
        return place[0], 8 * place[1], 8 * place[1]
    if isinstance(operand, RegisterOperand):
        return place[0], place[1] * operand.bits + operand.shift, place[1] * operand.bits
    assert operand.tensor is not None
    low = place.column * operand.tensor.memory.cell + place.bit
    return place.cta * operand.tensor.memory.most("lane") + place.lane, low, low - operand.tensor.shift


def _coords(operand: Operand, place: Any, selected: dict[str, int]) -> Any:
    """The part at a place of ``locate``."""
    return operand.coords(*place[:2]) if operand.memory is None else operand.coords(*place[1:], place.cta, **selected)


def _selections(operand: Operand) -> Iterator[dict[str, int]]:
    legal = {"selector": range(operand.selectors)} if isinstance(operand, Metadata) else operand.selections
    yield from (dict(zip(legal, values, strict=True)) for values in itertools.product(*legal.values()))


def test_every_part_is_at_its_places(every: list[Operand]) -> None:
    """In every space, with every selection: each part is at all its places, and it is the part that lies there.

    What else was there stays, and nothing else than the first of its places is read.
    """
    for operand in every:
        data, codes, width = _data(operand)
        point, several = dict(zip(_named(operand), np.indices(codes.shape), strict=True)), np.arange(width, dtype=np.uint64)
        for selected in _selections(operand):
            held, before, container = _packed_over(operand, data, selected)
            threads = before.size if before.ndim == 1 else before.size // before.shape[-1]
            expected = np.unpackbits(before.reshape(threads, -1).view(np.uint8), axis=-1, bitorder="little")
            own = np.zeros_like(expected, bool)
            copies = [axis for axis in operand.apart if axis not in (*point, *selected)]
            places = []
            for numbers in itertools.product(*(range(operand.sizes[axis]) for axis in copies)):
                named: dict[str, Any] = {**point, **dict(zip(copies, numbers, strict=True)), **selected}
                place = operand.locate(**named)
                places.append([np.broadcast_to(each, codes.shape).reshape(-1)[[0, -1]].tolist() for each in place])
                back = _coords(operand, place, selected)
                for axis, number in zip((*operand.axes, *operand.apart, *operand.selections), back, strict=False):
                    assert np.all(number == named[axis]), (operand, axis)
                row, low, first = (np.broadcast_to(each, codes.shape)[..., None] for each in _places(operand, place))
                expected[row, first + np.arange(container)] = 0
                expected[row, low + np.arange(width)] = codes[..., None].astype(np.uint64) >> several & np.uint64(1)
                own[row, low + np.arange(width)] |= not any(numbers)
            for end in (0, -1):
                at = {axis: int(values.reshape(-1)[end]) for axis, values in point.items()}
                assert [list(each) for each in operand.places(**at, **selected)] == sorted([each[end] for each in one] for one in places)
            if isinstance(operand, RegisterOperand):
                assert codes.size * len(places) == operand.fragment().threads * operand.elements, "each element of a register is a part"
            made = np.unpackbits(held.reshape(threads, -1).view(np.uint8), axis=-1, bitorder="little")
            assert np.array_equal(made, expected), (operand, selected)
            noise = np.packbits(np.where(own, expected, 1 - expected), axis=-1, bitorder="little").view(held.dtype).reshape(held.shape)
            for one in (held, noise):
                back = operand.unpack(one, **selected)
                assert back.dtype == data.dtype
                assert np.array_equal(_bits(back), _bits(data)), (operand, selected)
        origin = [0] * len(operand.axes)
        by_name: dict[str, Any] = dict.fromkeys(operand.axes, 0)
        assert operand.locate(*origin) == operand.locate(**by_name)
        with pytest.raises(TypeError, match=f"^{operand.name}: {operand.axes[-1]} is missing; the coordinates are {operand.axes[0]}"):
            operand.locate(*origin[1:])
        with pytest.raises(TypeError, match=f"^{operand.name}: beside does not fit; the coordinates are"):
            operand.locate(*origin, beside=1)


def _packed_over(operand: Operand, data: Array, selected: dict[str, int]) -> tuple[Array, Array, int]:
    """Packed data, what was there before, and the bits of the container of each part, whose rest becomes zero."""
    if isinstance(operand, Metadata):
        held = operand.pack(data, **selected, check=False)
        return held, np.zeros_like(held), operand.width
    if isinstance(operand, RegisterOperand):
        held = operand.pack(data)
        return held, np.zeros_like(held), operand.bits
    before = np.full_like(operand.pack(data, **selected), 0x5A5A5A5A)
    if isinstance(operand, Scales):
        return operand.pack(data, **selected, registers=before), before, 8
    assert operand.tensor is not None
    return operand.pack(data, before.copy(), **selected), before, min(operand.tensor.unit, operand.tensor.memory.cell)


def test_every_layout_in_tensor_memory_is_there(every: list[Operand]) -> None:
    named = {operand.tensor.layout.name for operand in every if operand.tensor}
    assert named == {layout.name for layout in _DATABASE.database.spec.tensor_layouts if not layout.name.startswith("copy_")}
    assert {one.layout.name for one in _METADATA} == {each.name for each in _DATABASE.database.layouts if each.kind == "metadata"}


# --- errors -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32", "nothing"])
def test_what_is_unknown_can_be_pickled(spelling: str) -> None:
    with pytest.raises(UnknownInstruction) as caught:
        instruction(spelling)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is UnknownInstruction
    assert (again.spelling, again.reason, again.close) == (caught.value.spelling, caught.value.reason, caught.value.close)
    assert str(again) == str(caught.value)


# --- arrays of other libraries ----------------------------------------------------------------------------------------------------


#: Whether this NumPy knows the versions of DLPack.
_VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class _Offering:
    """An array of another library, which speaks DLPack as of some version."""

    def __init__(self, array: Any, *, versions: bool = True, device: tuple[int, int] = (1, 0), copies: bool = True) -> None:
        self.array, self.versions, self.device, self.copies = array, versions, device, copies

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **wanted: Any) -> Any:
        if wanted and not self.versions:
            raise TypeError("unexpected keyword arguments")
        if wanted.get("dl_device") and not self.copies:
            raise BufferError("cannot copy")
        capsule = self.array.__dlpack__(**({"max_version": (1, 0)} if self.versions and _VERSIONED else {}))
        return self.altered(capsule)

    def altered(self, capsule: Any) -> Any:
        return capsule


class _Coded(_Offering):
    """One whose elements have another code than NumPy gives them."""

    code = (4, 16, 1)

    def altered(self, capsule: Any) -> Any:
        tensor = dlpack.tensor_of(capsule)
        tensor.code, tensor.bits, tensor.lanes = self.code
        return capsule


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize(
    "view", [lambda array: array, lambda array: array.T, lambda array: array[::-1, ::2], lambda array: np.broadcast_to(array[:1], (16, 32))]
)
def test_arrays_come_through_dlpack(versions: bool, view: Callable[[Array], Array]) -> None:
    array = view(np.arange(512, dtype=np.float16).reshape(16, 32))
    array = (
        np.require(array, requirements="W") if not (versions and _VERSIONED) else array
    )  # older capsules cannot say that it may only be read
    taken = elements.as_array(_Offering(array, versions=versions))
    np.testing.assert_array_equal(taken, array, strict=True)
    assert not np.shares_memory(taken, array)


@pytest.mark.parametrize(
    ("code", "name"), [((4, 16, 1), "bfloat16"), ((10, 8, 1), "float8_e4m3fn"), ((12, 8, 1), "float8_e5m2"), ((14, 8, 1), "float8_e8m0fnu")]
)
def test_types_that_numpy_lacks_come_through_dlpack(code: tuple[int, int, int], name: str) -> None:
    bits = np.arange(256, dtype=f"u{code[1] // 8}").reshape(16, 16)
    taken = elements.as_array(type("Coded", (_Coded,), {"code": code})(bits))
    assert taken.dtype.name == name
    np.testing.assert_array_equal(taken.view(bits.dtype), bits)


def test_an_array_on_a_device_is_copied_or_refused() -> None:
    array = np.ones((16, 16), np.float16)
    assert _A.pack(_Offering(array, device=(2, 0))).shape == (32, 4)
    for refuses in ({"versions": False}, {"copies": False}):
        with pytest.raises(ValueError, match="a is a _Offering that is not in the host's memory, and its library does not copy it"):
            _A.pack(_Offering(array, device=(2, 0), **refuses))


@pytest.mark.parametrize("code", [(17, 4, 2), (5, 64, 1), (0, 16, 4), (2, 4, 1)])
def test_what_no_dtype_holds_is_refused(code: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=f"a has a DLPack type that no dtype holds: code {code[0]}, {code[1]} bits, {code[2]} in each"):
        _A.pack(type("Coded", (_Coded,), {"code": code})(np.ones((16, 16), np.uint64)))


def test_arrays_come_through_their_interface() -> None:
    array = np.arange(256, dtype=np.float16).reshape(16, 16)
    other = types.SimpleNamespace(__array_interface__=array.__array_interface__, kept=array)
    np.testing.assert_array_equal(_A.pack(other), _A.pack(array))


def test_tensors_come_through_dlpack_with_their_types() -> None:
    torch = pytest.importorskip("torch")
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int8", "bool"):
        tensor = torch.arange(64).remainder(2).reshape(8, 8).to(getattr(torch, name))
        taken = elements.as_array(_Offering(tensor.t()))
        assert taken.dtype.name == name
        np.testing.assert_array_equal(taken.astype(np.float64), tensor.t().double().numpy())
    with pytest.raises(ValueError, match="a is a tensor on the device meta, which has no elements"):
        _A.pack(torch.ones(16, 16, dtype=torch.float16, device="meta"))


def test_unsigned_integers_are_no_bits_of_signed_ones() -> None:
    """200 is a number of u8, and -56 as s8: which one is meant, the array's dtype says."""
    s8 = instruction("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
    pixels = np.full((16, 32), 200, np.uint8)
    with pytest.raises(ValueError, match=r"a has dtype uint8, s8 takes int8: .view\('int8'\) says that these are its bits"):
        s8.operand("a").pack(pixels)
    with pytest.raises(ValueError, match="c has dtype uint32, s32 takes int32"):
        s8.operand("c").pack(np.zeros((16, 8), np.uint32))
    assert (s8.operand("a").unpack(s8.operand("a").pack(pixels.view(np.int8))) == -56).all()
    assert instruction("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32").operand("a").pack(pixels).shape == (32, 4)


@pytest.mark.parametrize("matrix", ["a", "b"])
@pytest.mark.parametrize(
    "spelling",
    [
        _SCALED.format("2X", "ue8m0"),
        _SCALED.format("4X", "ue4m3"),
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
    ],
)
def test_k_tiles_share_registers_of_scale_factors(spelling: str, matrix: str) -> None:
    scales = instruction(spelling).scales(matrix)
    count, size = len(scales.byte_ids), (2, 3 * scales.rows, 5 * scales.blocks)
    factors = np.random.default_rng(0).integers(0, 127, size if matrix == "a" else (2, size[2], size[1])).astype(np.uint8)
    shared = scales.pack_tiles(factors, None)
    assert shared.shape == ((2, 3, -(-5 // count), 32) if matrix == "a" else (2, -(-5 // count), 3, 32))
    alone = scales.pack_tiles(factors)
    for tile in range(5):
        place = (slice(None), slice(None), tile // count) if matrix == "a" else (slice(None), tile // count)
        of_its_own = alone[:, :, tile] if matrix == "a" else alone[:, tile]
        np.testing.assert_array_equal(scales.unpack(shared[place], scales.byte_ids[tile % count]), scales.unpack(of_its_own))
    np.testing.assert_array_equal(scales.unpack_tiles(shared, None, shape=factors.shape).view(np.uint8), factors)


def test_a_text_is_no_coordinate() -> None:
    """Type checkers say so, too: without an error they would report these comments."""
    sparse = ptxmma.instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    operand = sparse.operand("a")
    with pytest.raises(TypeError, match="lane must be an integer or an array"):
        operand.coords(lane="5")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="row must be an integer or an array"):
        operand.locate("9", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bit must be an integer or an array"):
        sparse.metadata.coords(0, "1")  # type: ignore[arg-type]


def test_a_text_is_no_matrix() -> None:
    """Type checkers say so, too, and that a place is several numbers."""
    sparse = ptxmma.instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    with pytest.raises(ValueError, match="must be a NumPy array"):
        sparse.operand("a").pack("1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be a NumPy array"):
        sparse.metadata.pack("1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be a NumPy array"):
        ptxmma.emulate(sparse, "1", "1", metadata=np.zeros(32, np.uint32))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="concatenate tuple"):
        sparse.operand("a").coords(5, 3) + 1  # type: ignore[operator]
