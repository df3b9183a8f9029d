"""Tensor memory: where operands of products lie, alike in Python, C and JavaScript, and what the instruction descriptor may choose."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import msgspec
import numpy as np
import pytest

import ptxmma
from ptxmma import descriptors
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.instructions.facts import Instruction
from ptxmma.catalog.operands.operand_form import Missing
from ptxmma.catalog.operands.tensor_places import Place, TensorPlaces
from ptxmma.catalog.products import resolution
from ptxmma.generator import tensor_proof
from ptxmma.generator.problems import Position
from ptxmma.matrices.pictures import tensor_memory as tensor_pictures
from ptxmma.model import Spec
from ptxmma.model.digits import NotDigitsError

_ONE, _PAIR = ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05.mma.cta_group::2.kind::f16")
_BF16: dict[str, Any] = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}


@pytest.fixture(scope="module")
def uses(catalog: Catalog) -> list[TensorPlaces]:
    return list(tensor_proof.uses(catalog.database.spec))


def _everywhere(placed: TensorPlaces) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Every place of an operand as flat arrays, and every choice of selections."""
    grid = np.meshgrid(*(np.arange(size) for size in placed.sizes.values()), indexing="ij")
    chosen = [dict(zip(placed.selections, values, strict=True)) for values in itertools.product(*placed.selections.values())]
    return {axis: values.reshape(-1) for axis, values in zip(placed.sizes, grid, strict=True)}, chosen


# --- answers ----------------------------------------------------------------------------------------------------------------


def test_triton_says_what_locate_says(uses: list[TensorPlaces]) -> None:
    asked = 0
    for placed in uses:
        axes, _ = _everywhere(placed)
        place = placed.locate(**{axis: axes[axis] for axis in axes})._asdict()
        try:
            bases = placed.to_triton()
        except NotDigitsError:
            continue
        asked += 1
        for at, axis in enumerate(placed.sizes):
            numbers = [np.where(place[name] >> bit & 1, base[at], 0) for name in bases for bit, base in enumerate(bases[name])]
            assert np.array_equal(np.bitwise_xor.reduce(np.broadcast_arrays(axes[axis], *numbers)[1:]), axes[axis])
    assert asked > len(uses) // 2


@pytest.mark.parametrize(
    ("opcode", "m", "place"),
    [
        (_ONE, 128, Place(0, 37, 200, 0)),
        (_ONE, 64, Place(0, 69, 200, 0)),
        (_PAIR, 256, Place(0, 37, 200, 0)),
        (_PAIR, 128, Place(0, 101, 72, 0)),
    ],
)
def test_an_element_of_d_lies_where_the_data_path_puts_it(opcode: str, m: int, place: Place) -> None:
    d = ptxmma.instruction(opcode, m=m, n=256, **_BF16).operand("d-tmem")
    assert d.locate(37, 200) == place
    assert d.coords(place.lane, place.column) == (37, 200)
    assert d.locate(37, 200).address(0x40) == (place.lane << 16) + place.column + 0x40


def test_the_second_cta_of_a_pair_has_the_second_half_of_the_rows() -> None:
    for m in (128, 256):
        d = ptxmma.instruction(_PAIR, m=m, n=32, **_BF16).operand("d-tmem")
        assert [d.locate(row, 0).cta for row in (0, m // 2 - 1, m // 2, m - 1)] == [0, 0, 1, 1]


def test_a_has_two_elements_of_16_bits_in_a_cell() -> None:
    a = ptxmma.instruction(_ONE, m=128, n=256, **_BF16).operand("a-tmem")
    assert (a.locate(3, 4), a.locate(3, 5)) == (Place(0, 3, 2, 0), Place(0, 3, 2, 16))
    assert isinstance(a, ptxmma.TensorOperand)
    assert a.columns == a.placed().columns == 8
    assert a.coords(3, 2, 16) == a.coords(3, 2, 31) == (3, 5)
    with pytest.raises(ValueError, match=r"nothing of the operand lies at .*; its layout is A "):
        a.coords(3, 8)


def test_places_outside_are_refused() -> None:
    d = ptxmma.instruction(_ONE, m=64, n=256, **_BF16).operand("d-tmem")
    with pytest.raises(ValueError, match=r"row = 64 is out of range: 0\.\.63"):
        d.locate(64, 0)
    with pytest.raises(
        ValueError,
        match=r"nothing of the operand lies at cta = 0, lane = 16, column = 0, bit = 0; its layout is D of M = 64 without \.ws: ",
    ):
        d.coords(16, 0)
    with pytest.raises(TypeError, match=r"^d-tmem: col is missing"):
        d.locate(3)
    with pytest.raises(TypeError, match=r"^d-tmem: half does not fit; the coordinates are row, col"):
        d.locate(3, 4, half=1)


# --- what a descriptor chooses ----------------------------------------------------------------------------------------------


def test_a_resolved_instruction_answers_as_any_other() -> None:
    instruction = ptxmma.instruction(_ONE, m=128, n=256, **_BF16)
    assert instruction.shape == (128, 256, 16)
    assert instruction.matrix_types == {"d": "f32", "a": "bf16", "b": "bf16"}
    assert instruction.accepted_by() == ptxmma.instruction(_ONE).accepted_by()
    d = instruction.operand("d-tmem")
    assert (d.element_type, d.rows, d.cols, d.axes) == ("f32", 128, 256, ("row", "col"))


def test_a_resolved_product_has_an_instruction_descriptor() -> None:
    product = ptxmma.instruction(_ONE, m=128, n=256, **_BF16)
    read = descriptors.codec("instruction", kind="kind::f16").decode(descriptors.of_product(product, b_majorness="MN", negate_a=True))
    assert {name: read[name] for name in ("k", "m", "n", *_BF16)} == {"k": 16, "m": 128, "n": 256, **_BF16}
    assert (read["sparse"], read["a_majorness"], read["b_majorness"], read["negate_a"]) == (0, "K", "MN", 1)
    with pytest.raises(Missing, match="does not state what its instruction descriptor says"):
        descriptors.of_product(ptxmma.instruction(_ONE))


@pytest.mark.parametrize(
    ("fields", "said"), [({"n": 264}, "n = 256"), ({"dtype": "f16"}, "dtype = f32"), ({"m": 64}, "m = 128"), ({"sparse": 1}, "sparse = 0")]
)
def test_a_product_says_its_own_fields_alone(fields: dict[str, Any], said: str) -> None:
    product = ptxmma.instruction(_ONE, m=128, n=256, **_BF16)
    with pytest.raises(TypeError, match=f"the product already says {said}; leave out {next(iter(fields))}"):
        descriptors.of_product(product, **fields)


@pytest.mark.parametrize(
    ("ctas", "kind", "types", "n", "said"),
    [
        (1, "f8f6f4", {"dtype": "f32", "atype": "e4m3", "btype": "e2m1"}, 24, "16, 32, … 256"),
        (1, "i8", {"atype": "s8", "btype": "u8"}, 8, "16, 32, … 256"),
        (2, "f8f6f4", {"dtype": "f16", "atype": "e4m3", "btype": "e5m2"}, 48, "32, 64, … 256"),
        (2, "mxf8f6f4.block_scale", {"atype": "e4m3", "btype": "e5m2"}, 80, "32, 64, … 256"),
    ],
)
def test_b_of_8_bits_leaves_fewer_n_where_it_is_mn_major(ctas: int, kind: str, types: dict[str, Any], n: int, said: str) -> None:
    """Table 52 of the manual."""
    opcode = f"tcgen05.mma.cta_group::{ctas}.kind::{kind}"
    product = ptxmma.instruction(opcode, m=128 * ctas, n=n, **types)
    assert descriptors.of_product(product, a_majorness="MN")
    with pytest.raises(
        ValueError, match=f"with b_majorness = MN does not allow n = {n}; legal: {said} .PTX ISA 9.7.16.10.1 .9.4: 9.7.18.10.1., Table 52"
    ):
        descriptors.of_product(product, b_majorness="MN")
    wider = ptxmma.instruction(opcode, m=128 * ctas, n=64, **types)
    assert descriptors.of_product(wider, b_majorness="MN") == descriptors.of_product(wider) | 1 << 16


def test_b_of_16_bits_has_every_n_mn_major() -> None:
    assert descriptors.of_product(ptxmma.instruction(_ONE, m=128, n=8, **_BF16), b_majorness="MN")


def test_only_an_instruction_has_the_descriptor_of_a_product() -> None:
    text: Any = _ONE
    with pytest.raises(TypeError, match=r"must be a tcgen05\.mma from ptxmma\.instruction, not str"):
        descriptors.of_product(text)


@pytest.mark.parametrize(("name", "value"), [("m", 128.5), ("m", "abc"), ("n", [128]), ("n", 64.0), ("k", 16.0), ("k", "16")])
def test_sizes_of_products_are_integers(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"m": 128, "n": 64, **_BF16, name: value}
    with pytest.raises(TypeError, match=f"{name} must be one integer, not {type(value).__name__}"):
        ptxmma.instruction(_ONE, **arguments)


@pytest.mark.parametrize("base", [-1, 128 << 16])
def test_places_are_added_to_addresses_alone(base: int) -> None:
    place = ptxmma.instruction(_ONE, m=128, n=256, **_BF16).operand("d-tmem").locate(37, 200)
    assert place.address(64) == 37 << 16 | 264
    with pytest.raises(ValueError, match=r"base = .* is out of range: 0\.\.8388607"):
        place.address(base)


@pytest.mark.parametrize("narrow", [np.int8, np.uint8, np.int16, np.uint16])
def test_addresses_do_not_overflow_in_narrow_integers(narrow: type) -> None:
    """Rows and columns of 8 and 16 bits have the addresses of wide ones, and of scalars."""
    d = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=256, dtype="f32", atype="bf16", btype="bf16").operand("d-tmem")
    rows, cols = [0, 5, 100, 127], [0, 127, 100, 3]
    row: np.ndarray[tuple[int, ...], Any] = np.array(rows, narrow)
    col: np.ndarray[tuple[int, ...], Any] = np.array(cols, narrow)
    wanted = [d.locate(r, c).address(64) for r, c in zip(rows, cols, strict=True)]
    assert d.locate(row, col).address(64).tolist() == wanted
    load = ptxmma.instruction("tcgen05.ld.sync.aligned.16x256b.x4.b32")
    each = [d.through(load).locate(r, c, base=64) for r, c in zip(rows, cols, strict=True)]
    assert d.through(load).locate(row, col, base=64).address.tolist() == [place.address for place in each]


@pytest.mark.parametrize("base", [400, np.array([0, 400])])
def test_an_operand_that_would_leave_tensor_memory_has_no_address(base: Any) -> None:
    place = ptxmma.instruction(_ONE, m=128, n=256, **_BF16).operand("d-tmem").locate(37, 200)
    with pytest.raises(ValueError, match=r"the operand takes 256 columns; allowed: lane 0; column 0\.\.320 on sm_107f, 0\.\.256"):
        place.address(base)
    assert place.address(np.array([0, 256])).tolist() == [37 << 16 | 200, 37 << 16 | 456]
    with pytest.raises(ValueError, match=r"base = 0x10000: .* allowed: lane 0; column"):
        place.address(1 << 16)
    assert place._replace(cta=1) == (1, 37, 200, 0)


def test_the_descriptor_of_every_legal_product_is_legal(catalog: Catalog) -> None:
    """The rules of products and the values of descriptors are stated apart; of the many legal N those at the ends are asked."""
    encoded, legal = 0, defaultdict[str, set[int]](set)
    for opcode in ptxmma.instructions():
        if opcode.variant.instruction.operation != resolution.OPERATION:
            continue
        kind = next(value for value in opcode.qualifiers.values() if value.startswith("kind::"))
        codec = descriptors.codec("instruction", kind=kind)
        products = [each for each in resolution.every(catalog.database.spec, opcode.variant) if each.extents["n"] in {8, 16, 24, 256}]
        codes = {descriptors.of_product(Instruction(catalog.database, product)): product.chosen for product in products}
        for code in codes.keys() - legal[kind]:  # opcodes of one kind share their descriptors
            assert codec.mistakes(code) == [], (opcode.canonical, codes[code])
        legal[kind].update(codes)
        encoded += len(products)
    assert encoded > 1000


def test_the_opcode_alone_says_what_it_does_not_state() -> None:
    instruction = ptxmma.instruction(_ONE)
    assert instruction.shape is None
    d = instruction.operand("d-tmem")
    with pytest.raises(
        ValueError,
        match=r"^d-tmem of tcgen05\.mma: the opcode does not state m, n, dtype, atype, btype: "
        r"give them to ptxmma\.instruction\(opcode, m=\.\.\., n",
    ):
        d.locate(37, 200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"m": 256, "n": 64, **_BF16}, r"does not allow m = 256 with n = 64; legal: m = 64 or 128 with n = 8, 16, … 256$"),
        ({"m": 128, "n": 12, **_BF16}, r"does not allow m = 128 with n = 12; legal"),
        ({"m": 128, "n": 64, "k": 32, **_BF16}, r"does not allow k = 32; legal: 16$"),
        ({"m": 128, **_BF16}, r"does not state its shape; say n \(m = 64 or 128 with"),
        (
            {"m": 128, "n": 64, "dtype": "f16", "atype": "bf16"},
            r"takes no dtype = f16, atype = bf16; legal: dtype f32, atype f16 or bf16, btype f16 or bf16; dtype f16,",
        ),
        ({"m": 128, "n": 64, **_BF16, "atype": "bf17"}, r"kind::f16 takes no atype = bf17; legal: dtype f32, atype f16 or bf16,"),
        ({"m": 128, "n": 64, "dtype": "f32"}, r"does not state its types; say atype, btype"),
        ({"m": 128, "n": 64, "stype": "ue8m0", **_BF16}, r"has no scale factors; leave out stype"),
    ],
)
def test_what_no_rule_allows_is_refused_with_what_is_legal(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ptxmma.IllegalProductError, match=message):
        ptxmma.instruction(_ONE, **arguments)


@pytest.mark.parametrize("qualifier", ["", ".block32"])
@pytest.mark.parametrize(("group", "m"), [(1, 128), (2, 256)])
def test_mxf4_has_blocks_of_32_by_default(qualifier: str, group: int, m: int) -> None:
    """PTX ISA 9.7.16.10.9.1; K of 96 needs them."""
    product = ptxmma.instruction(f"tcgen05.mma.cta_group::{group}.kind::mxf4.block_scale{qualifier}", m=m, n=32, k=96)
    assert product.shape == (m, 32, 96)
    assert sorted(product.accepted_by()) == ["sm_103a", "sm_107a"]


@pytest.mark.parametrize(
    ("kind", "k", "legal"),
    [
        ("mxf4.block_scale.scale_vec::2X", 96, "64, 96 (sm_103a or sm_107a) with block32"),
        ("mxf4.block_scale.scale_vec::2X", 128, "64, 128 (sm_107f) with block32"),
        ("mxf4nvf4.block_scale.scale_vec::4X", 96, "64, 96 (sm_103a or sm_107a) with block16 or block32"),
        ("mxf4.block_scale", 32, "64, 96 (sm_103a or sm_107a), 128 (sm_107f)"),
        ("f8f6f4", 64, "32, 64 (sm_107f) with e4m3 or e5m2"),
    ],
)
def test_a_depth_that_is_refused_names_the_qualifier_or_type_that_it_needs(kind: str, k: int, legal: str) -> None:
    types: dict[str, Any] = {"atype": "e3m2", "btype": "e4m3", "dtype": "f32"} if kind == "f8f6f4" else {"stype": "ue8m0"}
    with pytest.raises(ptxmma.IllegalProductError) as refused:
        ptxmma.instruction(f"tcgen05.mma.cta_group::1.kind::{kind}", m=128, n=32, k=k, **types)
    assert refused.value.legal == legal


@pytest.mark.parametrize("name", ["tcgen05.mma", "tcgen05.mma.sp"])
def test_a_shifted_a_has_128_rows_in_each_block_or_128_in_a_pair(name: str) -> None:
    """PTX ISA 9.7.16.10.9.1."""
    one, pair = (f"{name}.cta_group::{ctas}.kind::f16.ashift" for ctas in (1, 2))
    assert ptxmma.instruction(one, m=128, n=64, **_BF16).accepted_by()
    assert [ptxmma.instruction(pair, m=m, n=64, **_BF16).extents["m"] for m in (128, 256)] == [128, 256]
    with pytest.raises(
        ptxmma.IllegalProductError, match=r"m = 64; legal: 128 or 256 \(PTX ISA 9\.7\.16\.10\.9\.1 \[9\.4: 9\.7\.18\.10\.10\.1\]\)$"
    ):
        ptxmma.instruction(one, m=64, n=64, **_BF16)
    opcode = ptxmma.instruction(one)
    sizes = {product.extents["m"] for product in resolution.every(opcode.database.spec, opcode.variant)}
    assert sizes == {128}


def test_types_that_leave_no_choice_may_be_left_out() -> None:
    assert ptxmma.instruction(_ONE, m=64, n=8, dtype="f16").matrix_types == {"d": "f16", "a": "f16", "b": "f16"}


def test_other_instructions_take_no_arguments() -> None:
    with pytest.raises(ptxmma.IllegalProductError, match="states its shape and types itself; leave out m"):
        ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", m=16)


# --- the proof, and the generated functions ---------------------------------------------------------------------------------


def test_every_legal_product_is_proven(catalog: Catalog, uses: list[TensorPlaces]) -> None:
    """The proof leaves out products that others stand for; of the many legal N those at the ends are looked up."""
    spec = catalog.database.spec

    def key(placed: TensorPlaces) -> tuple[object, ...]:
        return (placed.layout.name, *tensor_proof._read(placed), *placed.selections.items())

    proven = {key(placed): math.prod(placed.sizes.values()) for placed in uses}
    asked = 0
    for opcode in (each.variant for each in catalog.all() if each.operation == resolution.OPERATION):
        for product in resolution.every(spec, opcode):
            if product.extents["n"] in {16, 256}:
                places = (resolution.places(spec, product, *operand) for operand in resolution.described(opcode))
                for placed in filter(None, places):
                    assert math.prod(placed.sizes.values()) <= proven[key(placed)], product
                    asked += 1
    assert asked > 1000


class _Nowhere:
    def at(self, *place: str | int) -> Position:
        return Position("/".join(map(str, place)))


def _with(spec: Spec, name: str, **fields: Any) -> Spec:
    spaces = tuple(
        msgspec.structs.replace(
            space, layouts=tuple(msgspec.structs.replace(each, **fields) if each.name == name else each for each in space.layouts)
        )
        for space in spec.spaces
    )
    return msgspec.structs.replace(spec, spaces=spaces)


@pytest.mark.parametrize(
    ("fields", "place", "message"),
    [
        ({"at": {"lane": "row", "column": "col + 300"}}, "at/column", "column reaches 555; allowed: 0..511"),
        ({"at": {"lane": "row", "column": "col // 2"}}, "at/column", "share one: a digit of col begins at 2, and those below it end at 1"),
        ({"at": {"lane": "row", "column": "col % 8"}}, "at", "two places of the operand share one"),
        ({"at": {"lane": "row % 64 + 32 * (row // 64)", "column": "col"}}, "at/lane", "row moves lane by 32, and the digits below it"),
        ({"at": {"lane": "row", "column": "wrong * col"}}, "at/column", "unknown name 'wrong'"),
        ({"at": {"lane": "row", "column": "col * col"}}, "at/column", "'col * col' multiplies axes"),
        ({"at": {"lane": "row", "column": "2 ^ col"}}, "at/column", "'2 ^ col' is not a digit of one axis"),
    ],
)  # fmt: skip
def test_the_proof_finds_what_is_wrong(catalog: Catalog, fields: dict[str, Any], place: str, message: str) -> None:
    (problem,) = tensor_proof.problems(_with(catalog.database.spec, "layout_d", **fields), _Nowhere())  # type: ignore[arg-type]
    assert problem.position.file.endswith(place)
    assert message in problem.message


def test_coordinates_have_one_order(catalog: Catalog) -> None:
    assert Place._fields == tuple(catalog.database.spec.space("tensor").coordinates)


def test_an_argument_that_no_instruction_has() -> None:
    message = "an instruction has no argument foo; what an instruction descriptor may choose: m, n, k, dtype, atype, btype, stype"
    call: Any = ptxmma.instruction
    with pytest.raises(TypeError, match=message):
        call(_ONE, foo=1)
    with pytest.raises(TypeError, match=message):
        ptxmma.instruction(_ONE).resolved(m=128, n=256, **_BF16, foo=1)


def test_blocks_of_pictures_hold_what_they_say(uses: list[TensorPlaces]) -> None:
    """Every place of every block, and no other place: one lane of each warp for what is only there."""
    for placed in uses:
        count = 0
        for row in tensor_pictures.listed(placed):
            spans = {name: [int(number) for number in text.split("\u2013")] for name, text in row.items()}
            lanes, columns, bits = (
                np.arange(span[0], span[-1] + 1, step)
                for span, step in ((spans["lane"], 1), (spans["column"], 1), (spans.get("bit", [0, placed.memory.cell - 1]), placed.unit))
            )
            lane, column, bit = (grid.ravel() for grid in np.meshgrid(lanes, columns, bits, indexing="ij"))
            chosen = {name: legal[0] for name, legal in placed.selections.items()}
            coordinates = placed.coords(lane, column, bit, spans.get("cta", [0])[0], **chosen)
            for axis, values in zip(placed.sizes, coordinates, strict=True):
                values = np.broadcast_to(values, lane.shape)
                assert [values.min(), values.max()] == [spans[axis][0], spans[axis][-1]], (placed.layout.name, row)
            count += lane.size
        assert count == math.prod(placed.sizes.values()), placed.layout.name


def test_a_selection_reads_the_factors_of_later_steps() -> None:
    two = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::mxf4.block_scale", m=128, n=64, k=64).operand("scale-B-tmem")
    assert [two.placed().selected_for("block", number) for number in (1, 2, 3, 4)] == [
        {"block": 1, "scale_id": 0},
        {"block": 0, "scale_id": 2},
        {"block": 1, "scale_id": 2},
        None,
    ]
