"""The ``_pack.h`` headers: registers from memory and back agree with the layouts, element by element."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import header_programs
from cuda_calls import Nvcc
from header_programs import EXTERNAL, pointer, run
from ptxmma.arrays import elements
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.metadata import Metadata
from ptxmma.generator.emit import c_text

Bytes = npt.NDArray[np.uint8]
_OK, _SIZE, _ALIGNMENT, _RANGE, _FIELD, _NULL, _MULTIPLE = 0, 1, 2, 3, 4, 7, 8
_ALL = 2**32 - 1
_GUARD = 0xA5


class Function(NamedTuple):
    """The functions for one operand of one instruction.

    Attributes:
        stem: of their names; memory: bits between elements in memory; n: where they take it.
    """

    stem: str
    operand: Operand
    memory: int
    n: int | None


@pytest.fixture(scope="module")
def library(cc: str, include: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    headers = sorted(path.name for path in (include / "ptxmma").glob("*_pack.h"))
    assert headers
    source = "".join(f"#include <ptxmma/{name}>\n" for name in headers)
    # Addresses, shifts and bounds of the library itself are checked as well as it runs.
    checks = ["-fsanitize=undefined", "-fno-sanitize-recover=all", "-fsanitize-undefined-trap-on-error"]
    return header_programs.library(cc, source, tmp_path_factory.mktemp("library"), "-std=c99", *checks, *EXTERNAL, "-I", include)


@pytest.fixture(scope="module")
def functions(catalog: Catalog) -> list[Function]:
    """An operand for every layout and packing in memory; of many n the smallest, one between, and the largest.

    Only the families that multiply have functions; loads, stores and transpositions move matrices themselves.
    """
    by_name: dict[tuple[str, int | None], Function] = {}
    families = {entry.family for entry in catalog.database.spec.instructions if entry.operation == "multiply"}
    for instruction in catalog.all():
        if instruction.family not in families:
            continue
        ranging = instruction.variant.ranging
        if any(instruction.extents[name] not in (each[0], each[len(each) // 3], each[-1]) for name, each in ranging.items()):
            continue
        for operand in instruction.operands:
            if operand.layout is None or operand.layout.kind != "fragment":
                continue
            assert operand.element is not None
            memory = 8 if operand.element.bits == 6 else operand.element.bits
            stem = f"ptxmma_{c_text.identifier(operand.layout.name)}"
            if (memory, 0) != (operand.bits, operand.shift):
                stem += f"_{operand.element_type}"
            n = operand.cols if "col" in operand.layout.growing else None
            by_name.setdefault((stem, n), Function(stem, operand, memory, n))
    assert len({function.operand.layout.name for function in by_name.values() if function.operand.layout}) == sum(
        layout.kind == "fragment" and layout.family in families for layout in catalog.database.layouts
    )
    assert any("copy" in function.operand.sizes for function in by_name.values())
    return list(by_name.values())


def _put(memory: Bytes, at: int, bits: int, code: int) -> None:
    if bits < 8:
        byte, shift = at * bits // 8, at * bits % 8
        memory[byte] = int(memory[byte]) & ~(((1 << bits) - 1) << shift) & 255 | code << shift
    else:
        memory[at * bits // 8 : (at + 1) * bits // 8] = list(code.to_bytes(bits // 8, "little"))


def _at(place: tuple[int, ...], *strides: int) -> int:
    return sum(index * stride for index, stride in zip(place, strides, strict=True))


@pytest.mark.parametrize("column_major", [False, True])
def test_fragments_agree_with_their_layouts(library: ctypes.CDLL, functions: list[Function], column_major: bool) -> None:
    random = np.random.default_rng(3)
    for function in functions:
        operand, bits = function.operand, function.memory
        assert operand.layout is not None
        products, rows, cols = operand.computations, operand.rows, operand.cols
        row_stride, col_stride = (3, 3 * rows + 5) if column_major else (3 * cols + 4, 3)
        if bits < 8:  # neighbours, as in a packed matrix, with a line that does not end a byte
            row_stride, col_stride = (1, rows + 3) if column_major else (cols + 3, 1)
        product_stride = rows * row_stride + cols * col_stride
        codes = random.integers(0, 1 << min(bits, 62), (products, rows, cols)).tolist()
        memory = np.full(products * product_stride * max(bits, 1) // 8 + 64, _GUARD, np.uint8)
        for place in np.ndindex(products, rows, cols):
            _put(memory, _at(place, product_stride, row_stride, col_stride), bits, codes[place[0]][place[1]][place[2]])

        # The registers of every thread, element by element.
        threads, elements, element_bits = operand.layout.threads, operand.elements, operand.bits
        lane, i = np.indices((threads, elements))
        row, col = (np.broadcast_to(one, lane.shape) for one in operand.coords(lane, i))
        product = np.broadcast_to(operand.computation(lane, i), lane.shape)
        each = operand.elements_per_register
        width = element_bits * each
        expected = np.zeros((threads, operand.registers), f"u{width // 8}")
        for thread in range(threads):
            for element in range(elements):
                code = codes[product[thread, element]][row[thread, element]][col[thread, element]]
                expected[thread, element // each] |= expected.dtype.type((code << operand.shift) << (element % each * element_bits))

        strides = [product_stride] * (products > 1) + [row_stride, col_stride]
        sizes = [*map(ctypes.c_size_t, strides), *([ctypes.c_uint32(function.n)] if function.n is not None else [])]
        registers = np.full((threads + 1, operand.registers), 0xA5, expected.dtype)
        guard = registers[-1].copy()
        load, store = getattr(library, f"{function.stem}_load"), getattr(library, f"{function.stem}_store")
        thread = 5 * threads // 7
        load(pointer(memory), *sizes, ctypes.c_uint32(thread), pointer(registers))
        assert np.array_equal(registers[0], expected[thread]), function.stem
        assert getattr(library, f"{function.stem}_load_tile")(pointer(memory), *sizes, pointer(registers)) == _OK
        assert np.array_equal(registers[:-1], expected), function.stem
        assert np.array_equal(registers[-1], guard), function.stem

        # Back over other bits: the same elements, and nothing else changes.
        other = memory.copy()
        for place in np.ndindex(products, rows, cols):
            _put(other, _at(place, product_stride, row_stride, col_stride), bits, codes[place[0]][place[1]][place[2]] ^ 1)
        assert getattr(library, f"{function.stem}_store_tile")(pointer(other), *sizes, pointer(expected)) == _OK
        assert np.array_equal(other, memory), function.stem
        store(pointer(other), *sizes, ctypes.c_uint32(thread), pointer(np.zeros_like(expected)))
        assert (other != memory).any() == bool(expected[thread].any()), function.stem


def test_whole_matrices_are_their_tiles(library: ctypes.CDLL, functions: list[Function]) -> None:
    random = np.random.default_rng(8)
    compared = 0
    for function in functions:
        operand, bits = function.operand, function.memory
        assert operand.element is not None
        assert operand.layout is not None
        products, rows, cols = operand.computations, 2 * operand.rows, 3 * operand.cols
        codes = random.integers(0, 1 << min(bits, operand.element.bits, 62), (products, rows, cols), np.uint64)
        flat = codes.astype(f"u{max(bits, 8) // 8}")
        if bits < 8:
            memory = np.packbits((flat[..., None] >> np.arange(bits, dtype=np.uint8) & 1).reshape(-1), bitorder="little")
        else:
            memory = flat.view(np.uint8).reshape(-1)
        strides = [ctypes.c_size_t(rows * cols)] * (products > 1) + [ctypes.c_size_t(cols), ctypes.c_size_t(1)]
        last = [ctypes.c_uint32(function.n)] if function.n is not None else []
        size = [ctypes.c_size_t(rows), ctypes.c_size_t(cols)]
        word = operand.bits * operand.elements_per_register
        registers = np.full((7, operand.layout.threads, operand.registers), 0xA5, f"u{word // 8}")
        guard = registers[-1].copy()
        assert getattr(library, f"{function.stem}_load_tiles")(*size, pointer(memory), *strides, *last, pointer(registers)) == _OK
        assert np.array_equal(registers[-1], guard), function.stem
        one = np.zeros_like(guard)
        for tile in range(6):
            at = (tile // 3 * operand.rows * cols + tile % 3 * operand.cols) * bits // 8
            first = ctypes.c_void_p(memory.ctypes.data + at)
            assert getattr(library, f"{function.stem}_load_tile")(first, *strides, *last, pointer(one)) == _OK
            assert np.array_equal(registers[tile], one), function.stem
        if products == 1:
            typed = elements.typed(codes[0].astype(elements.bits_dtype(operand.element)), operand.element)
            python = np.asarray(operand.pack_tiles(typed)).view(one.dtype)
            assert np.array_equal(python, registers[:-1].reshape(2, 3, *one.shape)), function.stem
            compared += 1
        back = np.full_like(memory, _GUARD)
        assert getattr(library, f"{function.stem}_store_tiles")(*size, pointer(back), *strides, *last, pointer(registers)) == _OK
        assert np.array_equal(back, memory), function.stem
        if bits < 8:  # the second row of tiles would begin within a byte
            odd = [ctypes.c_size_t(1), ctypes.c_size_t(rows + 1)]
            assert getattr(library, f"{function.stem}_load_tiles")(*size, pointer(memory), *odd, *last, pointer(registers)) in (
                _OK,
                _ALIGNMENT,
            )
            assert getattr(library, f"{function.stem}_store_tiles")(*size, pointer(back), *odd, *last, None) == _NULL
    assert compared > 20


def test_a_tile_that_begins_within_a_byte_is_refused(library: ctypes.CDLL) -> None:
    memory = np.zeros(4096, np.uint8)

    def size(row_stride: int, col_stride: int, bits: int) -> int:
        sizes = map(ctypes.c_size_t, (32, 64, 16, 32, row_stride, col_stride))
        return int(library.ptxmma_tiles_size(*sizes, ctypes.c_uint32(bits), pointer(memory), pointer(memory)))

    assert [size(64, 1, bits) for bits in (1, 4, 8, 64)] == [_OK] * 4
    assert [size(64, step, 1) for step in (1, 2, 3)] == [_OK] * 3
    sizes = list(map(ctypes.c_size_t, (32, 64, 1, 1, 63, 1)))
    assert library.ptxmma_tiles_size(*sizes, ctypes.c_uint32(4), pointer(memory), pointer(memory)) == _ALIGNMENT


def test_only_an_n_of_an_instruction_is_taken(catalog: Catalog, library: ctypes.CDLL, functions: list[Function]) -> None:
    legal: dict[str, set[int]] = {}
    for instruction in catalog.all():
        for operand in (operand for operand in instruction.operands if operand.layout is not None):
            assert operand.layout is not None
            legal.setdefault(operand.layout.name, set()).add(operand.cols)
    memory, registers = np.zeros(64 * 256 * 8, np.uint8), np.zeros(64 * 256 * 8, np.uint8)
    outcomes = set()
    for function in functions:
        if function.n is not None:
            assert function.operand.layout is not None
            strides = [ctypes.c_size_t(256), ctypes.c_size_t(1)]
            for n in range(0, 280, 4):
                status = getattr(library, f"{function.stem}_load_tile")(pointer(memory), *strides, ctypes.c_uint32(n), pointer(registers))
                assert status == (_OK if n in legal[function.operand.layout.name] else _SIZE), (function.stem, n)
                outcomes.add((n, status))
    assert {(40, _OK), (40, _SIZE)} <= outcomes


def test_impossible_tiles_are_refused(library: ctypes.CDLL, functions: list[Function]) -> None:
    memory, registers = np.full(64, _GUARD, np.uint8), np.full(64, 0x5A, np.uint8)
    for function in functions:
        strides = [ctypes.c_size_t(1)] * (3 if function.operand.computations > 1 else 2)
        last = [ctypes.c_uint32(function.n)] if function.n is not None else []
        for verb in ("load_tile", "store_tile"):
            call = getattr(library, f"{function.stem}_{verb}")
            assert call(None, *strides, *last, pointer(registers)) == _NULL
            assert call(pointer(memory), *strides, *last, None) == _NULL
            if function.n is not None:
                for n in (0, 4, 264, 2**32 - 8):
                    assert call(pointer(memory), *strides, ctypes.c_uint32(n), pointer(registers)) == _SIZE
            tiles = getattr(library, f"{function.stem}_{verb}s")
            rows, cols = function.operand.rows, function.operand.cols

            def whole(
                rows: int,
                cols: int,
                imagery: Any,
                words: Any,
                *,
                step: int = 8,
                tiles: Any = tiles,
                count: int = len(strides),
                last: Any = last,
            ) -> int:
                steps = [ctypes.c_size_t(step)] * count
                return int(tiles(ctypes.c_size_t(rows), ctypes.c_size_t(cols), imagery, *steps, *last, words))

            image, words = pointer(memory), pointer(registers)
            assert whole(rows, cols, None, words) == whole(rows, cols, image, None) == _NULL
            assert whole(0, cols, image, words) == whole(rows, 0, image, words) == _SIZE
            assert whole(rows * 2**59, cols, image, words) == whole(rows, cols * 2**59, image, words) == _SIZE
            assert whole(2 * rows, cols, image, words, step=2**60) == _SIZE
            assert whole(rows + 1, cols, image, words) == _MULTIPLE
            assert whole(rows, cols + 1, image, words) == _MULTIPLE
    assert (memory == _GUARD).all()
    assert (registers == 0x5A).all()


# --- metadata ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse(catalog: Catalog) -> list[Instruction]:
    """An instruction for each metadata layout."""
    by_layout = {instruction.metadata.layout.name: instruction for instruction in catalog.all() if instruction.variant.instruction.metadata}
    assert len(by_layout) == sum(layout.kind == "metadata" for layout in catalog.database.layouts)
    return list(by_layout.values())


def _fields(metadata: Metadata, random: np.random.Generator, rows: int, tiles: int) -> npt.NDArray[np.uint32]:
    legal = [int(value, 2) for value in metadata.legal]
    return random.choice(np.array(legal, np.uint32), (rows, tiles * metadata.chunks))


def _row_major(fields: npt.NDArray[np.uint32], row_bytes: int) -> Bytes:
    memory = np.full((len(fields), row_bytes), _GUARD, np.uint8)
    memory[:, : fields.shape[1] // 2] = fields[:, ::2] | fields[:, 1::2] << 4
    return memory


def _legal(metadata: Metadata) -> ctypes.c_uint32:
    return ctypes.c_uint32(sum(1 << int(value, 2) for value in metadata.legal))


def test_metadata_registers_agree_with_the_layouts(library: ctypes.CDLL, sparse: list[Instruction]) -> None:
    random = np.random.default_rng(4)
    for instruction in sparse:
        metadata = instruction.metadata
        stem, threads = f"ptxmma_{metadata.layout.name}", metadata.layout.threads
        fields = _fields(metadata, random, metadata.rows, 1)
        memory = _row_major(fields, metadata.chunks // 2 + 3)
        row_bytes = ctypes.c_size_t(memory.shape[1])
        pack = getattr(library, f"{stem}_pack")
        pack.restype = ctypes.c_uint32
        for selector in range(metadata.selectors + 1):
            expected = np.zeros(threads, np.uint32)
            if selector < metadata.selectors:
                for row, chunk in np.ndindex(*fields.shape):
                    lane, bit, _ = metadata.locate(row, chunk, selector)
                    expected[lane] |= np.uint32(int(fields[row, chunk]) << bit)
            got = [pack(pointer(memory), row_bytes, ctypes.c_uint32(lane), ctypes.c_uint32(selector)) for lane in range(threads)]
            assert np.array_equal(got, expected), stem
            back = np.full_like(memory, _GUARD)
            status = getattr(library, f"{stem}_unpack")(
                pointer(expected), ctypes.c_uint32(selector), _legal(metadata), pointer(back), row_bytes, None
            )
            assert status == (_OK if selector < metadata.selectors else _RANGE)
            assert np.array_equal(back, memory if status == _OK else np.full_like(memory, _GUARD)), stem


@pytest.mark.parametrize("tiles", [1, 4, 7])
def test_metadata_of_whole_matrices(library: ctypes.CDLL, sparse: list[Instruction], tiles: int) -> None:
    random = np.random.default_rng(tiles)
    for instruction in sparse:
        metadata = instruction.metadata
        stem, threads, tile_rows = f"ptxmma_{metadata.layout.name}", metadata.layout.threads, 3
        fields = _fields(metadata, random, tile_rows * metadata.rows, tiles)
        memory = _row_major(fields, fields.shape[1] // 2 + 1)
        size = [ctypes.c_size_t(count) for count in fields.shape]
        row_bytes = ctypes.c_size_t(memory.shape[1])
        for selector in (*range(metadata.selectors), _ALL):
            share = metadata.selectors if selector == _ALL else 1
            expected = np.zeros((tile_rows, -(-tiles // share), threads), np.uint32)
            whole = np.full((len(fields), expected.shape[1] * share * metadata.chunks), int(metadata.padding, 2), np.uint32)
            whole[:, : fields.shape[1]] = fields
            for row, chunk in np.ndindex(*whole.shape):
                tile = chunk // metadata.chunks
                named = tile % share if selector == _ALL else selector
                lane, bit, _ = metadata.locate(row % metadata.rows, chunk % metadata.chunks, named)
                expected[row // metadata.rows, tile // share, lane] |= np.uint32(int(whole[row, chunk]) << bit)
            python = metadata.pack_tiles(memory[:, :-1], None if selector == _ALL else selector)
            assert np.array_equal(python, expected), stem
            got = np.full((expected.size + 4,), 77, np.uint32)
            pack, unpack = getattr(library, f"{stem}_pack_tiles"), getattr(library, f"{stem}_unpack_tiles")
            assert pack(*size, pointer(memory), row_bytes, ctypes.c_uint32(selector), pointer(got)) == _OK
            assert np.array_equal(got[:-4].reshape(expected.shape), expected), stem
            assert (got[-4:] == 77).all()

            back = np.full_like(memory, _GUARD)
            arguments = (*size, pointer(expected), ctypes.c_uint32(selector), _legal(metadata), pointer(back), row_bytes, None)
            assert unpack(*arguments) == _OK
            assert np.array_equal(back, memory), stem


def test_an_illegal_field_is_named_and_nothing_written(library: ctypes.CDLL, sparse: list[Instruction]) -> None:
    for instruction in sparse:
        metadata, stem = instruction.metadata, f"ptxmma_{instruction.metadata.layout.name}"
        fields = _fields(metadata, np.random.default_rng(6), metadata.rows, metadata.selectors)
        fields[metadata.rows - 2, 3] = 0b1111
        memory = _row_major(fields, fields.shape[1] // 2)
        size = [ctypes.c_size_t(count) for count in fields.shape]
        row_bytes, registers = ctypes.c_size_t(memory.shape[1]), np.zeros(metadata.layout.threads, np.uint32)
        pack, unpack = getattr(library, f"{stem}_pack_tiles"), getattr(library, f"{stem}_unpack_tiles")
        assert pack(*size, pointer(memory), row_bytes, ctypes.c_uint32(_ALL), pointer(registers)) == _OK
        back, place = np.full_like(memory, _GUARD), (ctypes.c_size_t * 3)()
        status = unpack(*size, pointer(registers), ctypes.c_uint32(_ALL), _legal(metadata), pointer(back), row_bytes, place)
        assert status == _FIELD
        assert list(place) == [metadata.rows - 2, 3 * metadata.granularity.chunk, 3]
        assert (back == _GUARD).all()


def test_impossible_metadata_is_refused(library: ctypes.CDLL, sparse: list[Instruction]) -> None:
    for instruction in sparse:
        metadata = instruction.metadata
        stem, rows, chunks = f"ptxmma_{metadata.layout.name}", metadata.rows, metadata.chunks
        memory, registers, place = np.full(64, _GUARD, np.uint8), np.full(64, 77, np.uint32), (ctypes.c_size_t * 3)(5, 5, 5)
        fine = (rows, chunks, chunks, 0)
        for given, without, status in (
            *(((count, *fine[1:]), "", _SIZE) for count in (0, rows * 2**58, 2**64 - rows)),
            *(((rows, count, *fine[2:]), "", _SIZE) for count in (0, 2**64 - chunks)),
            ((rows + 1, *fine[1:]), "", _MULTIPLE),
            *(((rows, count, *fine[2:]), "", _MULTIPLE) for count in (1, chunks + 2)),
            *(((rows, chunks, count, 0), "", _SIZE) for count in (0, chunks // 2 - 1, 2**63 // rows, 2**63, 2**64 - 1)),
            *(((*fine[:3], selector), "", _RANGE) for selector in (metadata.selectors, 2**32 - 2)),
            *((fine, without, _NULL) for without in ("memory", "registers")),
        ):
            size, row_bytes, selector = list(map(ctypes.c_size_t, given[:2])), ctypes.c_size_t(given[2]), ctypes.c_uint32(given[3])
            address = None if without == "memory" else pointer(memory)
            words = None if without == "registers" else pointer(registers)
            assert getattr(library, f"{stem}_pack_tiles")(*size, address, row_bytes, selector, words) == status, given
            arguments = (selector, _legal(metadata), address, row_bytes, place)
            assert getattr(library, f"{stem}_unpack_tiles")(*size, words, *arguments) == status, given
            if given[:2] == (rows, chunks):
                assert getattr(library, f"{stem}_unpack")(words, *arguments) == status, given
        every = (ctypes.c_uint32(_ALL), _legal(metadata), pointer(memory), ctypes.c_size_t(chunks), place)
        assert getattr(library, f"{stem}_unpack")(pointer(registers), *every) == _RANGE
        assert (memory == _GUARD).all()
        assert (registers == 77).all()
        assert list(place) == [5, 5, 5]


# --- sanitizers -------------------------------------------------------------------------------------------------------------

# Buffers of exactly the size that is needed; those of elements at odd addresses.
_SANITIZED = """
#include <stdlib.h>
#define BUFFER(name, bytes) \\
  unsigned char *name##_base = malloc((bytes) + 1), *name = name##_base + 1; \\
  for (size_t i = 0; i < (bytes); i++) name[i] = (unsigned char)(i * 7919u >> 3)
#define CHECK(before, after, bytes) \\
  do { if (memcmp(before, after, bytes)) return __LINE__; free(before##_base); free(after##_base); } while (0)
"""


def test_nothing_leaves_its_bounds(cc: str, include: Path, functions: list[Function], sparse: list[Instruction], tmp_path: Path) -> None:
    parts = []
    for function in functions:
        operand, n = function.operand, f"{function.n}, " if function.n is not None else ""
        assert operand.layout is not None
        strides = f"{operand.rows * operand.cols}, " * (operand.computations > 1) + f"{operand.cols}, 1, "
        matrix = operand.computations * operand.rows * operand.cols * function.memory // 8
        registers = operand.layout.threads * operand.registers * operand.elements_per_register * operand.bits // 8
        parts.append(
            f"  BUFFER(matrix, {matrix}); BUFFER(back, {matrix}); BUFFER(registers, {registers});\n  memset(back, 0, {matrix});\n"
            f"  if ({function.stem}_load_tile(matrix, {strides}{n}registers)) return __LINE__;\n"
            f"  if ({function.stem}_store_tile(back, {strides}{n}registers)) return __LINE__;\n"
            f"  free(registers_base);\n  CHECK(matrix, back, {matrix});\n"
        )
    for instruction in sparse:
        metadata, stem = instruction.metadata, f"ptxmma_{instruction.metadata.layout.name}"
        rows, chunks = 2 * metadata.rows, 3 * metadata.chunks
        words = 2 * -(-3 // metadata.selectors) * metadata.layout.threads
        size, packed = f"{rows}, {chunks}", rows * chunks // 2
        parts.append(
            f"  BUFFER(metadata, {packed}); BUFFER(back, {packed});\n  uint32_t *registers = malloc({4 * words});\n"
            f"  memset(metadata, {int(metadata.padding, 2) * 17}, {packed});\n"
            f"  if ({stem}_pack_tiles({size}, metadata, {chunks // 2}, PTXMMA_ALL_SELECTORS, registers)) return __LINE__;\n"
            f"  if ({stem}_unpack_tiles({size}, registers, PTXMMA_ALL_SELECTORS, {_legal(metadata).value}, back, {chunks // 2}, NULL))"
            f" return __LINE__;\n  free(registers);\n  CHECK(metadata, back, {packed});\n"
        )
    headers = sorted(path.name for path in (include / "ptxmma").glob("*_pack.h"))
    includes = "".join(f"#include <ptxmma/{name}>\n" for name in headers)
    numbered = [f"static int part_{number}(void) {{\n{part}  return 0;\n}}\n" for number, part in enumerate(parts)]
    calls = "".join(f"  if (part_{number}()) return 1;\n" for number in range(len(parts)))
    source, program = tmp_path / "driver.c", tmp_path / "driver"
    source.write_text(f"{includes}{_SANITIZED}{''.join(numbered)}int main(void) {{\n{calls}  return 0;\n}}\n", encoding="utf-8")
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    run(cc, "-std=c99", "-g", *checks, "-I", include, source, "-o", program)
    run(program)


# --- devices ----------------------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_device_code_may_call_every_function(
    compiler: Nvcc, include: Path, functions: list[Function], sparse: list[Instruction], tmp_path: Path
) -> None:
    calls = []
    for number, function in enumerate(functions):
        word = f"uint{function.operand.bits * function.operand.elements_per_register}_t"
        strides = "3, " * (function.operand.computations > 1) + "r, c, " + (f"{function.n}, " if function.n is not None else "")
        calls.append(
            f"__global__ void kernel_{number}(const void *from, void *to, size_t r, size_t c) {{\n"
            f"  {word} registers[{function.operand.registers}];\n"
            f"  {function.stem}_load(from, {strides}threadIdx.x, registers);\n"
            f"  {function.stem}_store(to, {strides}threadIdx.x, registers);\n}}\n"
        )
    for instruction in sparse:
        name = instruction.metadata.layout.name
        calls.append(
            f"__global__ void kernel_{name}(const uint8_t *from, uint32_t *to) {{\n"
            f"  to[threadIdx.x] = ptxmma_{name}_pack(from, 64, threadIdx.x, 1);\n}}\n"
        )
    headers = sorted(path.name for path in (include / "ptxmma").glob("*_pack.h"))
    source = "".join(f"#include <ptxmma/{name}>\n" for name in headers) + "".join(calls)
    said = compiler.build(source, "-std=c++17", "-arch=sm_90", "-cubin", "-Xptxas", "-v", folder=tmp_path)
    frames = {line.split()[0] for line in said.splitlines() if "bytes stack frame" in line}
    assert frames == {"0"}  # registers stay registers
