"""``ptxmma trace``: the elements that it names, read from the registers of a random product, must give the element of D."""

from __future__ import annotations

import csv
import functools
import io
import json
from typing import Any

import numpy as np
import pytest

import commands
import ptxmma
from commands import invoke
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Catalog, Instruction, Missing
from ptxmma.matrices import shared_memory
from ptxmma.matrices.arrangements import Place
from ptxmma.matrices.operations import OPERATIONS, operation
from ptxmma.matrices.tracing import MemoryPlace, Source, Trace, trace
from ptxmma.model import ElementType
from random_operands import Operands, one_of_each

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_QUADS = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
_SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"


def read(registers: Array, place: object, element: ElementType | None) -> Any:
    """The bits at a place, as a number if a type is given."""
    assert isinstance(place, Place)
    words = registers.reshape(len(registers), -1)
    code = int(words.view(f"u{words.dtype.itemsize}")[place.lane, place.register]) >> place.low & (1 << place.width) - 1
    if element is None:
        return code
    return float(elements.numbers(np.array([code], elements.bits_dtype(element)), element)[0])


def added_up(instruction: Instruction, operands: Operands, traced: Trace) -> float:
    """D by its trace: every value is read from the registers that it names, and matrices in shared memory by row and column."""
    given = operands.arguments
    types = {name: instruction.variant.facts[f"{name}type"] for name in "abc" if f"{name}type" in instruction.variant.facts}
    by_name = {entry.name: entry for entry in instruction.database.spec.types.elements}
    exclusive = instruction.qualifiers.get("bitop") == "xor"

    def value(source: Source, name: str) -> Any:
        if source.place is not None:
            number = read(given[name], source.place, by_name[str(types[name])])
        else:
            matrix = operands.b if name == "b" else operands.a
            number = float(matrix[source.row, source.col])
        if source.scale is not None:
            scales = instruction.scales(name)
            number *= read(given[f"scale_{name}_data"], source.scale, scales.element)
        return number

    total = 0.0
    for term in traced.terms:
        picked = term.b[0]
        if term.pick is not None:
            metadata = instruction.metadata
            assert isinstance(term.pick, Place)
            field = read(given["metadata"], term.pick._replace(low=term.pick.element * metadata.width, width=metadata.width), None)
            (picked,) = (source for source in term.b if field in [int(one, 2) for one in source.fields])
        a, b = value(term.a, "a"), value(picked, "b")
        total += (a != b) if exclusive else a * b
    addend = traced.c if traced.c is not None else traced.d
    kind = instruction.operand("c" if traced.c is not None else "d").element
    return float(total + read(given["c"], addend, kind))


@pytest.mark.parametrize("number", range(2))
def test_a_trace_adds_up_to_the_element(number: int) -> None:
    random = np.random.default_rng(number)
    kinds = set()
    for instruction in one_of_each()[number::2]:
        assert instruction.shape is not None
        selector = int(random.integers(instruction.metadata.selectors)) if instruction.sparse else None
        operands = Operands(instruction, random, selector=selector or 0)
        d = instruction.operand("d")
        computation = int(random.integers(d.computations))
        row, col = int(random.integers(d.rows)), int(random.integers(d.cols))
        ids = {name.replace("_", "-"): value for name, value in operands.arguments.items() if name.startswith(("byte_id", "thread_id"))}
        several = {"computation": computation} if d.computations > 1 else {}
        traced = trace(instruction, row, col, **several, selector=selector, scale_ids=ids)
        at = (computation, row, col) if d.computations > 1 else (row, col)
        product = operands.product()[at]
        assert added_up(instruction, operands, traced) == product, instruction.canonical
        assert read(ptxmma.emulate(instruction, **operands.arguments).d, traced.d, d.element) == product
        kinds.add((instruction.sparse, bool(ids), d.computations > 1, traced.c is None))
    assert len(kinds) >= 6


def test_every_term_occurs_once_and_indices_pick_within_their_chunk() -> None:
    for instruction in one_of_each():
        assert instruction.shape is not None
        traced = trace(instruction, 0, 0)
        places = [term.a.place for term in traced.terms]
        assert len(set(places)) == len(places)
        rows = {source.row for term in traced.terms for source in term.b}
        assert rows == set(range(instruction.shape[2]))
        for term in traced.terms:
            if term.pick is None:
                assert len(term.b) == 1
            else:
                fields = [field for source in term.b for field in source.fields]
                assert sorted(fields) == sorted(instruction.metadata.legal)


def test_a_trace_takes_what_its_operation_has() -> None:
    kinds = {ins.operation: ins for ins in ptxmma.instructions()}
    assert kinds.keys() == OPERATIONS.keys()
    for effect in ("allocate", "copy", "copy-box", "write", "prefetch", "compute", "synchronise"):
        with pytest.raises(Missing, match="neither loads, stores nor multiplies matrices"):
            trace(kinds[effect], 0, 0)
    with pytest.raises(Missing, match="moves rows of bytes, which have no elements to follow"):
        trace(kinds["shift"], 0, 0)
    with pytest.raises(Missing, match="copies bytes, which have no type: `ptxmma layout` with --operand taddr says"):
        trace(kinds["tensor-copy"], 0, 0)
    with pytest.raises(Missing, match="takes no selector; it takes row, col, stride"):
        trace(ptxmma.instruction("wmma.load.a.sync.aligned.row.m16n16k16.f16"), 0, 0, selector=1)
    with pytest.raises(Missing, match="takes no stride; it takes row, col, form, selector, scale_ids"):
        trace(ptxmma.instruction(_F16), 0, 0, stride=16)


# --- loads, stores, transpositions ------------------------------------------------------------------------------------------


def one_to_each_space() -> list[Instruction]:
    return [ins for ins in ptxmma.instructions() if ins.operation in ("load", "store") and not ins.qualifiers.get("space")]


def test_traced_moves_are_what_the_emulator_does() -> None:
    """An element has the same bits at the traced place in memory and at each traced place in registers."""
    random = np.random.default_rng(0)
    for instruction in one_to_each_space():
        operands = {operand.kind: operand for operand in instruction.operands}
        fragment = operands["fragment"]
        stride = 3 * operands["stride"].default if "stride" in operands else None  # type: ignore[operator]
        memory = random.integers(0, 256, 1 << 16, np.uint8)
        start = 4096
        given: Any = start if stride else start + random.permutation(32) * 256
        registers = random.integers(0, 1 << 32, (32, fragment.registers * (2 if fragment.constraint == "d" else 1)), np.uint32)
        registers = registers.view({"d": np.uint64}.get(fragment.constraint, np.uint32))
        more = {} if stride is None else {"stride": stride}
        if instruction.operation == "load":
            registers = ptxmma.emulate(instruction, given, memory, **more).registers
        else:
            memory = ptxmma.emulate(instruction, given, registers, memory, **more).memory
        for _ in range(8):
            at = {axis: int(random.integers(fragment.sizes[axis])) for axis in fragment.axes}
            traced = trace(instruction, **at, **more)
            assert (traced.operand, traced.at) == (fragment.name, at)
            for move in traced.moves:
                inside, place = (move.source, move.target) if instruction.operation == "load" else (move.target, move.source)
                first = int(given if inside.lane is None else given[inside.lane]) + inside.byte
                word = int.from_bytes(memory[first : first + 9].tobytes(), "little") >> inside.low & (1 << inside.width) - 1
                value = read(registers, place, None)
                signed = instruction.qualifiers.get("from") == "s4" and word >= 8
                assert value == (word | 0xF0 if signed else word), (instruction.canonical, at)
            assert len(traced.moves) == len(fragment.places(*at.values()))


def test_traced_transpositions() -> None:
    instruction = ptxmma.instruction("movmatrix.sync.aligned.m8n8.trans.b16")
    source = np.random.default_rng(0).integers(0, 1 << 32, (32, 1), np.uint32)
    target = ptxmma.emulate(instruction, source).registers
    for row in range(8):
        for col in range(8):
            (move,) = trace(instruction, row, col).moves
            assert read(target, move.target, None) == read(source, move.source, None)
            assert (move.target.lane, move.target.element) == instruction.operand("d").locate(row, col)


def test_products_of_single_bits_are_the_operation_of_the_spelling(catalog: Catalog) -> None:
    signs = {"and": "&", "xor": "^"}
    seen = set()
    for instruction in catalog.all(lambda entry: entry.operation == "multiply"):
        named = {token for token in instruction.canonical.split(".") if token in signs}
        bitwise = {statement.bitwise for statement in instruction.semantics()}
        assert bitwise == (named or {""}) or not instruction.semantics(), instruction.canonical
        for name in named:
            seen.add(name)
            assert f"popc(a[row][k] {signs[name]} b[k][col])" in operation(instruction).statement(instruction)
    assert seen == signs.keys()


def test_statements_say_what_the_emulator_computes() -> None:
    said = {
        _F16: "d[row][col] = c[row][col] + sum over k of a[row][k] * b[k][col]",
        _WGMMA: "d[row][col] = (scale-d ? d[row][col] : 0) + sum over k of a[row][k] * b[k][col]",
        _SPARSE: "d[row][col] = c[row][col] + sum over j of a[row][j] * b[k][col], where the metadata says the k of each stored j",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc": "… sum over k of popc(a[row][k] & b[k][col])",
        "ldmatrix.sync.aligned.m8n8.x4.b16": "r[matrix][row][col] = p[matrix][row][col]",
        "wmma.store.d.sync.aligned.col.m16n16k16.f32": "p[col * stride + row] = r[row][col]",
        "movmatrix.sync.aligned.m8n8.trans.b16": "d[row][col] = a[col][row]",
        "wgmma.fence.sync.aligned": "orders other instructions; no matrix changes",
    }
    for spelling, statement in said.items():
        instruction = ptxmma.instruction(spelling)
        assert operation(instruction).statement(instruction).endswith(statement.removeprefix("… "))


def test_a_from_shared_memory() -> None:
    traced = trace(ptxmma.instruction(_WGMMA), 1, 2, form="descriptor")
    assert all(term.a.place is None and term.b[0].place is None for term in traced.terms)
    assert trace(ptxmma.instruction(_WGMMA), 1, 2).terms[0].a.place is not None
    with pytest.raises(Missing, match="its operands come in one way only"):
        trace(ptxmma.instruction(_F16), 1, 2, form="descriptor")


# --- the command ------------------------------------------------------------------------------------------------------------


ask = functools.partial(commands.ask, "trace")


def test_the_table() -> None:
    lines = ask(_F16, "--row", "9", "--col", "3").splitlines()
    d = ptxmma.instruction(_F16).operand("d").locate(9, 3)
    assert lines[1:3] == [f"{name.upper()}[9][3]: lane {d[0]}, {name}{d[1]}[31:0]" for name in "dc"]
    assert lines[3].split() == ["A", "A", "in", "B", "B", "in"]
    assert len(lines) == 4 + 16
    assert lines[-1].split("  ") == ["A[9][15]", "lane 7, a3[31:16]", "B[15][3]", "lane 15, b1[31:16]"]


def test_a_sparse_table_has_the_rows_that_an_index_may_pick() -> None:
    head, *rows = csv.reader(io.StringIO(ask(_SPARSE, "--row", "9", "--col", "3", "--selector", "1", "--format", "csv")))
    assert head == ["A", "A in", "picked by", "if", "B", "B in", "D", "D in", "C", "C in"]
    assert {tuple(row[6:]) for row in rows} == {("D[9][3]", "lane 5, d3[31:0]", "C[9][3]", "lane 5, c3[31:0]")}
    assert rows[0][:6] == ["A[9][0]", "lane 4, a1[15:0]", "lane 5, e[17:16]", "0b0100 0b1000 0b1100", "B[0][3]", "lane 12, b0[15:0]"]
    assert rows[1][:3] == rows[0][:3]
    assert [row[4] for row in rows[:6]] == ["B[0][3]", "B[1][3]", "B[2][3]", "B[1][3]", "B[2][3]", "B[3][3]"]
    grid = ask(_SPARSE, "--row", "9", "--col", "3").splitlines()
    assert grid[5].split() == ["0b1001", "0b1101", "B[1][3]", "lane", "12,", "b0[31:16]"]
    assert "| A[9][0] |" in ask(_SPARSE, "--row", "9", "--col", "3", "--format", "markdown")


def test_the_table_of_a_move() -> None:
    load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
    lines = ask(load, "--matrix", "1", "--row", "3", "--col", "5").splitlines()
    assert lines[0] == load
    assert [line.split("  ") for line in lines[2:]] == [["r[1][3][5]", "p of lane 11 + 10 bytes, [15:0]", "lane 14, r1[31:16]"]]
    copies = "wmma.load.a.sync.aligned.row.m16n16k16.f16"
    lines = ask(copies, "--row", "3", "--col", "1", "--stride", "64").splitlines()
    assert lines[1] == "Observed on sm_90: the manual leaves this layout open."
    assert [line.split("  ")[1] for line in lines[3:]] == ["p + 386 bytes, [15:0]"] * 2
    head, *rows = csv.reader(io.StringIO(ask(copies, "--row", "3", "--col", "1", "--format", "csv")))
    assert (head[-1], {row[-1] for row in rows}) == ("observed", {"sm_90"})
    assert json.loads(ask(copies, "--row", "3", "--col", "1", "--json"))["observed"] == "sm_90"
    mma = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"
    assert "Observed on sm_90" in ask(mma, "--row", "3", "--col", "1")
    assert ask(mma, "--row", "3", "--col", "1", "--format", "csv").splitlines()[1].endswith(",sm_90")
    assert json.loads(ask(mma, "--row", "3", "--col", "1", "--json"))["observed"] == "sm_90"


def test_scale_factors_and_their_ids() -> None:
    plain, moved = (json.loads(ask(_SCALED, "--row", "3", "--col", "3", "--json", *more)) for more in ((), ("--thread-id-b", "2")))
    scales = ptxmma.instruction(_SCALED).scales("b")
    for k, (one, other) in enumerate(zip(plain["terms"], moved["terms"], strict=True)):
        assert one["a"]["scale"] == other["a"]["scale"]
        for answer, thread_id in ((one, 0), (other, 2)):
            lane, byte = scales.locate(3, k // 16, thread_id=thread_id)
            assert (answer["b"][0]["scale"]["lane"], answer["b"][0]["scale"]["element"]) == (lane, byte)
    for option in ("--byte-id-a", "--thread-id-a", "--byte-id-b"):
        assert "is not legal for scale-" in ask(_SCALED, "--row", "3", "--col", "3", option, "9", code=2)
    assert "A scaled by" in ask(_SCALED, "--row", "3", "--col", "3")


def test_json_of_a_sparse_trace() -> None:
    answer = json.loads(ask(_SPARSE, "--row", "9", "--col", "3", "--json"))
    assert (answer["instruction"], answer["row"], answer["col"]) == (_SPARSE, 9, 3)
    assert answer["d"] == {"lane": 5, "register": 3, "element": 3, "bits": "31:0"}
    assert len(answer["terms"]) == 8
    first = answer["terms"][0]
    assert first["picked_by"]["bits"] == "17:16"
    assert first["b"][0]["fields"] == ["0b0100", "0b1000", "0b1100"]


def test_computations_and_descriptors() -> None:
    answer = json.loads(ask(_QUADS, "--row", "3", "--col", "5", "--computation", "2", "--json"))
    assert answer["computation"] == 2
    operand = ptxmma.instruction(_QUADS).operand("b")
    assert [(term["b"][0]["in"]["lane"], term["b"][0]["in"]["element"]) for term in answer["terms"]] == [
        operand.locate(k, 5, 2) for k in range(4)
    ]
    text = ask(_WGMMA, "--row", "3", "--col", "5", "--a-from", "descriptor")
    assert "C[3][5]: the previous value of D[3][5]; scale-d may leave it out" in text
    assert "A is read through a descriptor: `ptxmma smem --type bf16 --major k --swizzle none --rows 64 --cols 16`" in text
    assert "B is read through a descriptor: `ptxmma smem --type bf16 --major k --swizzle none --rows 16 --cols 16`" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((_F16, "--row", "20", "--col", "3"), "--row 20 is outside 0..15"),
        ((_F16, "--row", "2", "--col", "8"), "--col 8 is outside 0..7"),
        ((_F16, "--row", "2"), f"name an element of d of {_F16}: --col is missing"),
        ((_F16,), f"name an element of d of {_F16}: --row, --col are missing"),
        ((_F16, "--row", "2", "--col", "3", "--computation", "1"), f"d of {_F16} has no --computation; its axes: --row 0..15, --col 0..7"),
        ((_QUADS, "--row", "2", "--col", "3", "--computation", "4"), "--computation 4 is outside 0..3"),
        ((_F16, "--row", "2", "--col", "3", "--selector", "0"), "is not sparse: it has no selector"),
        ((_SPARSE, "--row", "2", "--col", "3", "--selector", "4"), "selector = 4 is not legal for metadata: 0, 1, 2, 3"),
        ((_F16, "--row", "2", "--col", "3", "--byte-id-a", "0"), "has no byte-id-a"),
        ((_F16, "--row", "2", "--col", "3", "--a-from", "descriptor"), "its operands come in one way only"),
        (("wgmma.fence.sync.aligned", "--row", "2", "--col", "3"), "neither loads, stores nor multiplies matrices"),
        (
            ("tcgen05.mma.cta_group::1.kind::f16", "--row", "2", "--col", "3"),
            "the opcode does not state m, n, dtype, atype, btype; give --m,",
        ),
        ((_F16, "--row", "2", "--col", "3", "--base", "0"), "takes no base; it takes row, col, form, selector, scale_ids, images"),
    ],
)
def test_errors_say_what_is_legal(arguments: tuple[str, ...], said: str) -> None:
    assert said in ask(*arguments, code=2)


# --- addresses in shared memory -------------------------------------------------------------------------------------------------

_SPARSE_WGMMA = "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.bf16.bf16"


@pytest.mark.parametrize(
    ("spelling", "swizzle", "major_a", "major_b"),
    [
        (_WGMMA.replace("n16", "n64"), "128", "k", "k"),
        (_WGMMA.replace("n16", "n64"), "128", "mn", "mn"),
        (_WGMMA, "none", "k", "mn"),
        (_SPARSE_WGMMA, "64", "k", "k"),
        ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", "32", "k", "k"),
    ],
)
def test_addresses_are_those_of_the_image(spelling: str, swizzle: str, major_a: str, major_b: str) -> None:
    arguments = ["trace", spelling, "--row", "9", "--col", "3", "--swizzle", swizzle, "--a-from", "descriptor", "--json"]
    result = invoke(*arguments, "--major-a", major_a, "--major-b", major_b)
    assert result.exit_code == 0, result.output
    instruction = ptxmma.instruction(spelling)
    name = swizzle if swizzle == "none" else f"{swizzle}B"
    whole = 64 if swizzle == "128" else 32 if swizzle == "64" else None  # a panel of bf16 is deeper than the instruction
    images = {
        letter: shared_memory.of(instruction, letter, name, major.upper(), k=whole if major == "k" else None)
        for letter, major in (("a", major_a), ("b", major_b))
    }
    for term in json.loads(result.output)["terms"]:
        assert term["a"]["in"]["byte"] == images["a"].address(term["a"]["row"], term["a"]["col"])
        for source in term["b"]:
            assert source["in"]["byte"] == images["b"].address(source["col"], source["row"])
    traced = trace(instruction, 9, 3, form="descriptor", images=images)
    places = [term.a.place for term in traced.terms]
    assert [place.byte for place in places if isinstance(place, MemoryPlace)] == [
        term["a"]["in"]["byte"] for term in json.loads(result.output)["terms"]
    ]


def test_a_table_with_addresses() -> None:
    arguments = ["trace", _WGMMA, "--row", "9", "--col", "3", "--swizzle", "none"]
    lines = invoke(*arguments).output.splitlines()
    assert lines[4].split("  ")[-1].strip() == "byte 48"
    assert lines[-1] == (
        "B is read through a descriptor: bytes from the start of an image of 16 x 16 elements, K-major, swizzle none, LBO 256, SBO 128"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((_F16, "--swizzle", "128"), "reads no matrix through a descriptor: leave out --swizzle and --major"),
        ((_WGMMA, "--swizzle", "128", "--major-a", "mn"), "leave out --major-a; --a-from descriptor reads A there"),
        ((_WGMMA, "--major-b", "mn"), "--major-a and --major-b need --swizzle: none, 32, 64 or 128"),
        ((_WGMMA, "--major-b", "mn", "--swizzle", "128"), "B: x = 16 must be a multiple of 64"),
        ((_WGMMA, "--swizzle", "7"), "unknown swizzle '7B'; known: none, 32B"),
    ],
)
def test_no_addresses_without_an_image(arguments: tuple[str, ...], said: str) -> None:
    result = invoke("trace", *arguments, "--row", "9", "--col", "3")
    assert (result.exit_code, said in " ".join(result.output.split())) == (2, True), result.output


def test_elements_come_from_tensors() -> None:
    arguments = ["trace", _WGMMA.replace("n16", "n64"), "--row", "9", "--col", "3", "--swizzle", "128", "--a-from", "descriptor"]
    arguments += ["--tensor-a", "128x256", "--at-a", "64,128", "--tensor-b", "72x256"]
    lines = invoke(*arguments).output.splitlines()
    assert " ".join(lines[4].split()) == "A[9][0] byte 1168 from (64, 137) B[0][3] byte 432 from (0, 3)"
    terms = json.loads(invoke(*arguments, "--json", "--at-b", "64,-1").output)["terms"]
    assert terms[1]["a"]["in"]["tensor"] == {"at": [65, 137], "byte": 2 * (137 * 128 + 65)}
    assert terms[8]["b"][0]["in"]["tensor"] == {"at": [72, 2], "byte": None}


def test_the_second_block_of_a_pair_has_the_rows_after_the_first() -> None:
    opcode = "tcgen05.mma.cta_group::2.kind::f16"
    types = ["--m", "256", "--n", "64", "--dtype", "f32", "--atype", "bf16", "--btype", "bf16", "--row", "200", "--col", "40"]
    tensors = ["--swizzle", "128", "--tensor-a", "64x512", "--at-a", "0,256", "--tensor-b", "64x64"]
    result = invoke("trace", opcode, *types, *tensors)
    assert result.exit_code == 0, result.output
    assert "of CTA 1 from (0, 456)" in result.output
    assert "of CTA 1 from (0, 40)" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tensor-a", "64x64"), "--tensor-a needs A in shared memory, and --swizzle"),
        (("--at-b", "0,0"), "--at-b needs --tensor-b: the tensor's size along each dimension"),
        (("--tensor-b", "64x64", "--at-b", "3,0", "--swizzle", "32"), "--tensor-b, --at-b: at[0] = 3: 3 elements of 16 bits"),
        (("--tensor-b", "63x64", "--swizzle", "32"), "--tensor-b, --at-b: strides[0] = 126"),
    ],
)
def test_tensors_that_are_not_copied(arguments: tuple[str, ...], said: str) -> None:
    result = invoke("trace", _WGMMA, *arguments, "--row", "9", "--col", "3")
    assert (result.exit_code, said in " ".join(result.output.split())) == (2, True), result.output


def test_a_matrix_in_registers_has_no_image() -> None:
    wgmma = ptxmma.instruction(_WGMMA)
    with pytest.raises(Missing, match="reads a from registers: it has no image"):
        trace(wgmma, 9, 3, images={"a": shared_memory.of(wgmma, "a", "32B")})


def test_padded_types_are_traced_mn_major() -> None:
    """16 elements of e2m1 along the rows of A lie in 16 bytes: row 17 is the second of its group, SBO bytes from the first."""
    types = ("--m", "128", "--n", "64", "--dtype", "f32", "--atype", "e2m1", "--btype", "e4m3", "--row", "17", "--col", "0")
    opcode = "tcgen05.mma.cta_group::1.kind::f8f6f4"
    result = invoke("trace", opcode, *types, "--swizzle", "none", "--major-a", "mn")
    assert result.exit_code == 0
    assert "A[17][0] byte 512 [7:4] B[0][0] byte 0" in " ".join(result.output.split())
    assert "MN-major, swizzle none, LBO 128, SBO 512" in result.output
