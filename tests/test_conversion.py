"""Fragments as other operands take them: every answer is executed on a register file and compared with the layouts of both operands."""

from __future__ import annotations

import collections
import ctypes
import itertools
import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxmma
from commands import invoke
from ptxmma.catalog.conversion import Arrange, Conversion, Side
from ptxmma.catalog.conversion.exchanges import expression
from ptxmma.catalog.instructions import Catalog, catalog
from ptxmma.catalog.operands.tensor_fragment import TensorFragment
from ptxmma.model import COPY

Fragment = ptxmma.Operand | TensorFragment
_WARP = 32


def _operand(spelling: str, name: str, **product: Any) -> ptxmma.Operand:
    return ptxmma.instruction(spelling, **product).operand(name)


def _fragments(catalog: Catalog) -> list[ptxmma.Operand]:
    """One operand of each layout that holds elements."""
    seen: dict[tuple[str, int], ptxmma.Operand] = {}
    for instruction in catalog.all():
        for operand in instruction.operands:
            if operand.layout is not None and operand.layout.kind == "fragment":
                seen.setdefault((operand.layout.name, operand.bits), operand)
    return list(seen.values())


def _places(side: Side) -> dict[str, Any]:
    """Every place of a side as arrays: a row for each thread, by CTA, warp and lane, and a column for each ``i``."""
    widths = {name: sum(place.name == name for place in side.places) for name in ("lane", "warp", "cta", "i")}
    thread = np.arange(_WARP << widths["warp"] + widths["cta"])[:, None]
    warp = thread // _WARP
    return {
        "lane": thread % _WARP,
        "warp": warp & (1 << widths["warp"]) - 1,
        "cta": warp >> widths["warp"],
        "i": np.arange(1 << widths["i"])[None, :],
    }


def _elements(side: Side, k: tuple[int, ...] = ()) -> Any:
    """The element at every place, as one number; with another order of K or of columns, the number that the source gives it."""
    numbers = side.coords(**_places(side))
    if k:
        numbers[side.ordered] = np.array(k)[numbers[side.ordered]]
    shape = np.broadcast_shapes(*(np.shape(part) for part in _places(side).values()))
    total = np.zeros(shape, np.int64)
    for axis in sorted(numbers):
        total = total * 4096 + numbers[axis]
    return total


def _agrees(operand: ptxmma.Operand, side: Side, shared: frozenset[str], *, transpose: bool = False) -> None:
    """Check that the operand's own layout gives the numbers of each tile, along the axes that both operands have."""
    layout = operand.layout
    assert layout is not None
    places = _places(side)
    thread = places["warp"] * _WARP + places["lane"]
    own = layout.to_axes.apply({"lane": thread % layout.threads, "i": places["i"] % (1 << side.elements)})
    told = side.coords(**places)
    names = dict(zip(layout.plane, ("row", "col"), strict=True))
    for axis, numbers in own.items():
        name = names.get(axis, axis)
        if name in shared:
            called = {"row": "col", "col": "row"}.get(name, name) if transpose else name
            assert (told.get(called, 0) % (1 + np.max(numbers)) == numbers).all()
    copies = [place for place, stride in side.places.items() if stride is not None and stride.axis == COPY]
    assert 1 << sum(place.name == "i" for place in copies) == operand.sizes.get(COPY, 1)  # and warps, where the other side has copies
    assert len(np.unique(_elements(side))) << len(copies) == _elements(side).size


def _run(conversion: Conversion, elements: Any) -> Any:
    """The elements of the target after the steps on a file of registers."""
    threads, inside = len(elements), 1 << conversion.source.inside
    files = elements.reshape(threads, -1, 1 if conversion.source.bits != conversion.target.bits else inside)
    landed: Any = None
    lane = np.arange(threads) % _WARP
    warp = np.arange(threads) - lane
    for step in conversion.steps:
        if isinstance(step, Arrange):
            files = (files if landed is None else landed).reshape(threads, -1)[:, np.array(step.registers)]
            landed = None
            continue
        sender, takes = np.array(step.lanes)[lane], np.array(step.takes)[lane]
        assert step.mask is None or np.array_equal(lane ^ step.mask, sender)
        if landed is None:
            landed = np.full((threads, sum(isinstance(each, type(step)) for each in conversion.steps), files.shape[2]), -1)
        assert (landed[np.arange(threads), takes] == -1).all()
        landed[np.arange(threads), takes] = files[warp + sender, np.array(step.sends)[sender]]
    files = files if landed is None else landed
    assert files.shape[2] == 1 << conversion.target.inside
    return files.reshape(threads, -1)


def _arrives(conversion: Conversion) -> None:
    """Every element of the target arrives, and the kind is what the places of both sides say."""
    given, wanted = _elements(conversion.source), _elements(conversion.target, conversion.k)
    assert np.array_equal(np.unique(given), np.unique(wanted))
    places = _places(conversion.target)
    found = {name: np.broadcast_to(part, wanted.shape) for name, part in conversion.find(**places).items()}
    warps = 1 << sum(place.name == "warp" for place in conversion.source.places)
    assert np.array_equal(given[(found["cta"] * warps + found["warp"]) * _WARP + found["lane"], found["i"]], wanted)
    lanes = bool(((found["cta"] == places["cta"]) & (found["warp"] == places["warp"])).all())
    quads = lanes and bool((found["lane"] // 4 == places["lane"] // 4).all())
    same = lanes and bool((found["lane"] == places["lane"]).all())
    kind = conversion.kind
    assert kind in ({"same", "registers", "prmt"} if same else {"quad"} if quads else {"warp"} if lanes else {"memory"})
    assert bool(conversion.why) is (not same)
    if kind != "memory":
        assert np.array_equal(_run(conversion, given), wanted)
    if kind == "same":
        (step,) = conversion.steps
        assert isinstance(step, Arrange)
        assert [number for register in step.registers for number in register] == list(range(wanted.shape[1]))
    if kind == "prmt":  # whole registers would not do
        inside = 1 << conversion.source.inside
        (step,) = conversion.steps
        assert isinstance(step, Arrange)
        assert any(register != tuple(range(register[0], register[0] + inside)) for register in step.registers)


def _verify(source: Fragment, target: Fragment, conversion: Conversion, *, transpose: bool = False) -> None:
    """Both sides are as the operands say, and every element arrives."""
    shared = conversion.source.axes & conversion.target.axes - {COPY}
    for operand, side, turned in ((source, conversion.source, transpose), (target, conversion.target, False)):
        if isinstance(operand, TensorFragment):
            _located(operand, side)
        else:
            _agrees(operand, side, shared, transpose=turned)
    _arrives(conversion)


def _checked(source: Fragment, target: Fragment, **options: bool) -> Conversion:
    conversion = ptxmma.convert(source, target, **options)
    for each in (conversion, conversion.permuted):
        if each is not None:
            _verify(source, target, each, **options)
    return conversion


def _mma(shape: str, types: str) -> dict[str, ptxmma.Operand]:
    instruction = ptxmma.instruction(f"mma.sync.aligned.{shape}.row.col.{types}")
    return {name: instruction.operand(name) for name in "dabc"}


@pytest.mark.parametrize("types", ["f32.f16.f16.f32", "f32.bf16.bf16.f32", "f16.f16.f16.f16"])
def test_an_accumulator_of_16_bit_products_is_an_a(types: str) -> None:
    """As in FlashAttention-2: of two accumulators side by side, element i of the thread is element i of A."""
    mma = _mma("m16n8k16", types)
    conversion = _checked(mma["d"], mma["a"])
    assert (conversion.kind, conversion.source.tiles, conversion.permuted) == ("same", 2, None)
    assert conversion.source.origins == [{"col": 0, "row": 0}, {"col": 8, "row": 0}]


def test_an_accumulator_of_fp8_products_needs_a_shuffle_or_another_order_of_k() -> None:
    """As in FlashAttention-3: without a shuffle, each thread of a quad has columns 0 1 8 9 of its own, and K follows."""
    mma = _mma("m16n8k32", "f32.e4m3.e4m3.f32")
    conversion = _checked(mma["d"], mma["a"])
    assert (conversion.kind, conversion.shuffles, conversion.source.tiles) == ("quad", 4, 4)
    free = conversion.permuted
    assert free is not None
    assert (free.kind, free.shuffles) == ("registers", 0)
    assert free.k[:16] == (0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)
    assert free.k[16:] == tuple(16 + k for k in free.k[:16])


@pytest.mark.parametrize(
    "instruction", ["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32"]
)
def test_an_accumulator_of_tf32_products(instruction: str) -> None:
    conversion = _checked(_operand(instruction, "d"), _operand(instruction, "a"))
    assert (conversion.kind, conversion.source.tiles) == ("quad", 1)
    assert conversion.permuted is not None
    assert (conversion.permuted.kind, conversion.permuted.k) == ("registers", (0, 2, 4, 6, 1, 3, 5, 7))


@pytest.mark.parametrize("n", [8, 96, 256])
def test_an_accumulator_of_wgmma_is_an_a_of_the_next(n: int) -> None:
    instruction = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16"
    conversion = _checked(_operand(instruction, "d"), _operand(instruction, "a"))
    assert (conversion.kind, conversion.source.tiles, conversion.target.tiles) == ("same", 2, 1)


@pytest.mark.parametrize(
    "source", ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"]
)
def test_accumulators_are_what_stmatrix_stores(source: str) -> None:
    """Two accumulators of 16 x 8 are four matrices; each warp of a warpgroup stores its own."""
    conversion = _checked(_operand(source, "d"), _operand("stmatrix.sync.aligned.m8n8.x4.shared.b16", "r"))
    assert (conversion.kind, conversion.source.tiles) == ("same", 2)


def test_a_transposition_is_a_shuffle_within_the_warp() -> None:
    matrix = _operand("movmatrix.sync.aligned.m8n8.trans.b16", "d")
    conversion = _checked(matrix, matrix, transpose=True)
    assert (conversion.kind, conversion.shuffles, conversion.permuted) == ("warp", 2, None)
    assert ptxmma.convert(matrix, matrix).kind == "same"
    load = _operand("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "r")
    store = _operand("stmatrix.sync.aligned.m8n8.x4.shared.b16", "r")
    assert _checked(load, store, transpose=True).kind == "same"
    assert _checked(load, store).kind == "warp"


def test_other_rows_of_a_warpgroup_go_through_memory() -> None:
    instruction = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    conversion = _checked(_operand(instruction, "d"), _operand(instruction, "a"), transpose=True)
    assert (conversion.kind, conversion.steps, conversion.shuffles) == ("memory", (), 0)
    assert "bit 1 of the warp is row 32 in the target, col 32 in the source" in str(conversion)


def test_pairs_of_the_whole_catalogue() -> None:
    """A sample of all pairs of layouts: every element of each, through every step."""
    draw = random.Random(7)
    small = [operand for operand in _fragments(catalog()) if operand.elements <= 64]
    kinds: set[str] = set()
    while not {"same", "registers", "quad", "warp", "memory"} <= kinds or draw.random() < 0.99:
        source, target = draw.choice(small), draw.choice(small)
        conversion = ptxmma.convert(source, target)
        if max(conversion.source.numbers, conversion.target.numbers) <= 6:
            conversion = _checked(source, target, transpose=draw.random() < 0.2)
            kinds |= {each.kind for each in (conversion, conversion.permuted) if each is not None}


_TYPES: Any = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}


def _tensor(name: str, n: int, through: str) -> TensorFragment:
    operand = _operand("tcgen05.mma.cta_group::1.kind::f16", name, m=128, n=n, **_TYPES)
    return operand.through(ptxmma.instruction(through))


def _located(fragment: TensorFragment, side: Side) -> None:
    """Check that every element of the first tile is where the fragment locates it.

    Scale factors that share a cell are blocks of several instructions.
    """
    where, bits = fragment.places, min(fragment.places.unit, fragment.registers.bits)
    axes = [*where.sizes]
    point: dict[str, Any] = dict(
        zip(axes, (grid.ravel() for grid in np.meshgrid(*map(np.arange, where.sizes.values()), indexing="ij")), strict=True)
    )
    pairs = set()
    for chosen in itertools.product(*where.selections.values()):
        selected = dict(zip(where.selections, chosen, strict=True))
        place = fragment.locate(**point, **selected)
        loads = {address: load for warp in range(4) for load, address in enumerate(fragment.addresses(warp))}
        load = np.array([loads[address] for address in np.broadcast_to(place.address, len(point[axes[0]])).tolist()])
        i = ((load * fragment.registers.registers + place.register) * 32 + place.bit) // bits
        told = side.coords(lane=place.lane, warp=place.warp, cta=place.cta, i=i)
        first = np.broadcast_to(i < 1 << side.elements, load.shape)
        names = {"block": "col" if "row" in axes else "row", "chunk": "col"}
        held = {
            names.get(axis, axis): number + sum(chosen) * (axis == "block")
            for axis, number in point.items()
            if axis not in where.layout.apart
        }
        for axis in held.keys() & told.keys():  # another axis is named as the other side has it
            assert (held[axis] == told[axis])[first].all()
        columns = [np.broadcast_to(part, load.shape)[first] for part in (*held.values(), *told.values())]
        pairs |= set(zip(*(column.tolist() for column in columns), strict=True))
    assert len({pair[: len(held)] for pair in pairs}) == len({pair[len(held) :] for pair in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("shape", "kind"), [("16x256b.x2", "same"), ("16x256b.x1", "same"), ("32x32b.x16", "warp"), ("16x128b.x4", "quad")]
)
def test_a_load_of_tensor_memory_to_stmatrix(shape: str, kind: str) -> None:
    """16x256b hands out the fragments of mma, which stmatrix takes; others need a shuffle."""
    source, target = (
        _tensor("d-tmem", 16, f"tcgen05.ld.sync.aligned.{shape}.b32"),
        _operand("stmatrix.sync.aligned.m8n8.x4.shared.b16", "r"),
    )
    conversion = ptxmma.convert(source, target)
    assert conversion.kind == kind
    _verify(source, target, conversion)


@pytest.mark.parametrize(
    ("load", "store", "kind"),
    [("32x32b.x32", "32x32b.x8", "same"), ("16x256b.x4", "16x128b.x2", "registers"), ("16x64b.x8", "16x128b.x2", "quad")],
)
def test_a_product_in_tensor_memory_as_a_of_the_next(load: str, store: str, kind: str) -> None:
    """32 columns of D become two A of 16 columns, of which two share a cell."""
    source = _tensor("d-tmem", 32, f"tcgen05.ld.sync.aligned.{load}.b32")
    target = _tensor("a-tmem", 32, f"tcgen05.st.sync.aligned.{store}.b32")
    conversion = ptxmma.convert(source, target)
    assert (conversion.kind, conversion.source.tiles, conversion.target.tiles) == (kind, 1, 2)
    _verify(source, target, conversion)


def test_columns_that_are_no_power_of_two() -> None:
    """192 columns are three tiles of 64, and each lane half of the warp has its own."""
    store = _operand("stmatrix.sync.aligned.m8n8.x4.shared.b16", "r")
    conversion = ptxmma.convert(_tensor("d-tmem", 192, "tcgen05.ld.sync.aligned.16x256b.x4.b32"), store)
    assert (conversion.kind, conversion.source.tiles, conversion.target.tiles) == ("same", 1, 4)
    with pytest.raises(ValueError, match="loads of 128 columns take more than the operand, which has 192"):
        ptxmma.convert(_tensor("d-tmem", 192, "tcgen05.ld.sync.aligned.32x32b.x128.b32"), store)


#: Products whose operands lie in tensor memory: spelling, M, N and types.
_PRODUCTS: list[tuple[str, list[int], list[int], tuple[str, ...]]] = [
    ("tcgen05.mma.cta_group::1.kind::f16", [64, 128], [16, 24, 48, 96, 112, 192], ("f32", "bf16", "bf16")),
    ("tcgen05.mma.cta_group::2.kind::f16", [128, 256], [32, 48, 96, 112, 192], ("f16", "f16", "f16")),
    ("tcgen05.mma.ws.cta_group::1.kind::f16", [32, 64, 128], [64, 128], ("f32", "bf16", "bf16")),
    ("tcgen05.mma.cta_group::1.kind::tf32", [64, 128], [24, 96], ("f32", "tf32", "tf32")),
    ("tcgen05.mma.cta_group::2.kind::f8f6f4", [128, 256], [32, 96], ("f32", "e4m3", "e4m3")),
    ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X", [128], [32, 96], ("f32", "e4m3", "e4m3", "ue8m0")),
    ("tcgen05.mma.cta_group::2.kind::mxf4.block_scale.scale_vec::2X", [256], [64, 96], ("f32", "e2m1", "e2m1", "ue8m0")),
]
_SHAPES = ("32x32b.x1", "32x32b.x8", "32x32b.x16", "16x64b.x4", "16x128b.x2", "16x256b.x1", "16x256b.x4", "32x32b.x4.pack::16b")


def _random_fragment(draw: random.Random, transfer: str) -> TensorFragment | None:
    """An operand in tensor memory through a load or store; None where these do not fit."""
    spelling, rows, columns, types = draw.choice(_PRODUCTS)
    named: Any = dict(zip(("dtype", "atype", "btype", "stype"), types, strict=False))
    product = ptxmma.instruction(spelling, m=draw.choice(rows), n=draw.choice(columns), **named)
    operand = draw.choice([operand for operand in product.operands if operand.memory is not None])
    shape = draw.choice(_SHAPES) if transfer == "ld" else draw.choice(_SHAPES).replace(".pack", ".unpack")
    try:
        return operand.through(ptxmma.instruction(f"tcgen05.{transfer}.sync.aligned.{shape}.b32"))
    except ValueError:
        return None


def _random_pair(draw: random.Random, fragments: list[ptxmma.Operand]) -> tuple[Fragment | None, Fragment | None]:
    """Operands of which one or both lie in tensor memory."""
    kind = draw.randrange(3)
    source = draw.choice(fragments) if kind == 0 else _random_fragment(draw, "ld")
    target = draw.choice(fragments) if kind == 1 else _random_fragment(draw, "st")
    return source, target


def _check_random_pair(source: Fragment, target: Fragment) -> str:
    """The kind of the conversion, after every element has arrived; or the reason of a refusal."""
    try:
        conversion = ptxmma.convert(source, target)
    except ValueError as error:
        return str(error)
    if max(conversion.source.numbers, conversion.target.numbers) > 6:
        return "large"
    for each in (conversion, conversion.permuted):
        if each is not None:
            _verify(source, target, each)
    return conversion.kind


def test_random_operands_in_tensor_memory() -> None:
    """Loads to stores, loads to fragments and fragments to stores, of N that are no powers of two, too, and of scale factors."""
    draw = random.Random(11)
    small = [operand for operand in _fragments(catalog()) if operand.elements <= 32]
    found: collections.Counter[str] = collections.Counter()
    for _ in range(200):
        source, target = _random_pair(draw, small)
        if source is not None and target is not None:
            found[_check_random_pair(source, target)] += 1
    assert {"same", "quad", "warp", "memory"} <= found.keys()
    refused = [text for text in found if " " in text]
    assert all(
        re.search("take more than the operand|nothing of the operand lies|of the other operand is not a multiple", text) for text in refused
    )


def test_what_has_no_elements_in_registers() -> None:
    store = ptxmma.instruction("stmatrix.sync.aligned.m8n8.x4.shared.b16")
    with pytest.raises(ValueError, match="is an address and holds no elements"):
        ptxmma.convert(store.operand("p"), store.operand("r"))
    d = _operand("tcgen05.mma.cta_group::1.kind::f16", "d-tmem", m=128, n=64, **_TYPES)
    with pytest.raises(ValueError, match=r"operand 'd-tmem' is in no registers; through\(\) says in which ones a load or store has it"):
        ptxmma.convert(d, store.operand("r"))
    with pytest.raises(TypeError, match="convert takes operands, and those in tensor memory through a load or store, not str"):
        ptxmma.convert("a", store.operand("r"))  # type: ignore[arg-type]


_FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"


def _layout(*arguments: str) -> tuple[int, str]:
    result = invoke("layout", *arguments)
    return result.exit_code, result.output


def test_the_command_says_what_the_library_does() -> None:
    mma = ptxmma.instruction(_FP8)
    conversion = ptxmma.convert(mma.operand("d"), mma.operand("a"))
    assert _layout(_FP8, "--operand", "d", "--as", _FP8) == (0, f"{conversion}\n")
    code, output = _layout(_FP8, "--operand", "D", "--as", _FP8, "--as-operand", "A", "--json")
    answer = json.loads(output)
    assert (code, answer["kind"], answer["shuffles"], answer["permuted"]["kind"]) == (0, "quad", 4, "registers")
    assert answer["permuted"]["k"][:6] == [0, 1, 8, 9, 2, 3]
    first, *shuffles, last = answer["steps"]
    assert first == {"type": "arrange", "registers": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]}
    assert last["registers"][0] == [0, 1, 4, 5]
    assert [step["lanes"][:4] for step in shuffles] == [[0, 2, 1, 3], [1, 3, 0, 2]] * 2


def test_the_command_reaches_tensor_memory() -> None:
    product = ["tcgen05.mma.cta_group::1.kind::f16", "--m", "128", "--n", "16", "--operand", "d-tmem"]
    product += ["--dtype", "f32", "--atype", "bf16", "--btype", "bf16"]
    load, store = "tcgen05.ld.sync.aligned.16x256b.x2.b32", "stmatrix.sync.aligned.m8n8.x4.shared.b16"
    code, output = _layout(*product, "--through", load, "--as", store)
    assert (code, output.splitlines()[0].rpartition(": ")[2]) == (0, "the same registers of the same threads")
    assert "to1 = from2 from3" in output
    code, output = _layout(*product, "--as", store)
    assert (code, "d-tmem lies in tensor memory: --as needs --through, the load of its registers" in output) == (2, True)


def test_the_command_takes_operands_in_tensor_memory_on_both_sides() -> None:
    """Registers to A of a product there; D there, through registers, to A of the next product, whose N is another."""
    store = ["--as-through", "tcgen05.st.sync.aligned.32x32b.x8.b32"]
    target = ["--as", "tcgen05.mma.cta_group::1.kind::f16", "--as-operand", "a-tmem"]
    types = "dtype=f32,atype=bf16,btype=bf16"
    mma = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    code, output = _layout(mma, "--operand", "d", *target, *store, "--as-product", f"m=128,n=64,{types}")
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=64, **_TYPES).operand("a-tmem")
    through = product.through(ptxmma.instruction(store[1]))
    assert (code, output) == (0, f"{ptxmma.convert(_operand(mma, 'd'), through)}\n")
    source = [
        "tcgen05.mma.cta_group::1.kind::f16",
        "--m",
        "128",
        "--n",
        "32",
        *types.replace("=", " ").replace("dtype", "--dtype").split(","),
    ]
    source = [word for part in source for word in part.replace("atype", "--atype").replace("btype", "--btype").split()]
    source += ["--operand", "d-tmem", "--through", "tcgen05.ld.sync.aligned.32x32b.x32.b32"]
    code, output = _layout(*source, *target, *store, "--as-product", "n=64")
    assert (code, output) == (0, f"{ptxmma.convert(_tensor('d-tmem', 32, source[-1]), through)}\n")
    for more, message in (
        ([*target, "--as-product", "n=64"], "a-tmem lies in tensor memory: --as needs --as-through, the store of its registers"),
        (
            [*target, *store, "--as-product", "rows=64"],
            "--as-product rows=64: write NAME=VALUE, separated by commas; the names are m, n, k",
        ),
        (["--as", mma, *store], f"--as-through is for an operand in tensor memory: a of {mma} is in registers"),
        (store, "--as-through is about the instruction of --as INSTRUCTION, which is missing"),
        (["--as", target[1], *store], "has no operand with elements in registers; it has: none; in tensor memory: d-tmem, a-tmem"),
    ):
        code, output = _layout(*source, *more)
        assert (code, message in output) == (2, True), output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--as", _FP8], "--as needs --operand with elements in registers: a, b, c, d"),
        (["--operand", "d", "--as", _FP8, "--as-operand", "e"], f"{_FP8} has no operand e in registers; it has: a, b, c, d"),
        (["--operand", "d", "--as", _FP8, "--lane", "5", "--bits"], "--as is about a whole operand: leave out --lane, --bits"),
        (
            ["--operand", "d", "--as", _FP8, "--format", "csv"],
            "--as prints text, with --json the same for programs, or with --format cuda a function",
        ),
        (["--operand", "d", "--format", "cuda"], "--format cuda is for --as"),
        (["--operand", "d", "--as-operand", "a"], "--as-operand is about the instruction of --as INSTRUCTION, which is missing"),
        (["--operand", "d", "--as", "tcgen05.wait::ld.sync.aligned"], "has no operand with elements in registers; it has: none"),
    ],
)
def test_mistakes_name_what_is_legal(arguments: list[str], message: str) -> None:
    code, output = _layout(_FP8, *arguments)
    assert (code, message in output) == (2, True), output


def test_formulas_of_lanes() -> None:
    """Each formula, evaluated for each lane, gives the number that it stands for."""
    draw = random.Random(3)
    for _ in range(50):
        bits, base = draw.sample(range(5), 5), draw.randrange(32)
        values = [base ^ sum((lane >> old & 1) << new for new, old in enumerate(bits)) & 0b11101 for lane in range(_WARP)]
        text = expression(values)
        assert [eval(text, {"lane": lane}) for lane in range(_WARP)] == values, text


#: Conversions of every kind, width and number of steps: source, target, transposed, with another order of K.
_FUNCTIONS = [
    (("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "d"), ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "a"), False, False),
    ((_FP8, "d"), (_FP8, "a"), False, False),
    ((_FP8, "d"), (_FP8, "a"), False, True),
    (
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "d"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "a"),
        False,
        False,
    ),
    (("movmatrix.sync.aligned.m8n8.trans.b16", "d"), ("movmatrix.sync.aligned.m8n8.trans.b16", "d"), True, False),
    (("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "r"), ("stmatrix.sync.aligned.m8n8.x4.shared.b16", "r"), False, False),
    (("stmatrix.sync.aligned.m16n8.x4.trans.shared.b8", "r"), ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "b"), False, True),
    (("stmatrix.sync.aligned.m16n8.x4.trans.shared.b8", "r"), ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "b"), False, False),
    (("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "a"), ("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "b"), False, False),
    (("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "a"), ("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "a"), True, False),
    (("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "d"), (_FP8, "a"), False, False),
]

_HOST = """#include <cstdint>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
#define __device__
#define __forceinline__ inline
static std::mutex guard;
static std::condition_variable all;
static unsigned waiting, turn;
static uint32_t values[32];
static thread_local uint32_t self;
static void meet() {
  std::unique_lock<std::mutex> lock(guard);
  const unsigned mine = turn;
  if (++waiting == 32) { waiting = 0; ++turn; all.notify_all(); }
  else all.wait(lock, [&] { return turn != mine; });
}
static uint32_t __shfl_sync(uint32_t, uint32_t value, int lane) {
  values[self] = value;
  meet();
  const uint32_t got = values[lane];
  meet();
  return got;
}
static uint32_t __shfl_xor_sync(uint32_t mask, uint32_t value, int other) {
  return __shfl_sync(mask, value, static_cast<int>(self) ^ other);
}
static uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
  const uint64_t both = static_cast<uint64_t>(y) << 32 | x;
  uint32_t made = 0;
  for (int place = 0; place < 4; place++) made |= static_cast<uint32_t>(both >> 8 * (selector >> 4 * place & 7) & 255) << 8 * place;
  return made;
}
"""
_DEVICE = "#include <cstdint>\n"

_CALL = """
template <uint32_t Bits>
struct packed {
  __device__ uint32_t operator()() const { return 0; }
  template <class... More>
  __device__ uint32_t operator()(uint32_t first, More... more) const {
    return first | (sizeof...(more) ? (*this)(more...) << Bits % 32 : 0);
  }
};
"""

_HOST_RUN = """
extern "C" void run@(const uint32_t* from, uint32_t* to) {
  std::vector<std::thread> threads;
  for (uint32_t lane = 0; lane < 32; lane++)
    threads.emplace_back([=] { self = lane; thread@(from, to, lane); });
  for (auto& each : threads) each.join();
}
"""

_DEVICE_RUN = """
__global__ void kernel@(const uint32_t* from, uint32_t* to) { thread@(from, to, threadIdx.x); }
extern "C" void run@(const uint32_t* from, uint32_t* to) {
  uint32_t *in, *out;
  cudaMalloc(&in, 32 * {old} * 4);
  cudaMalloc(&out, 32 * {new} * 4);
  cudaMemcpy(in, from, 32 * {old} * 4, cudaMemcpyHostToDevice);
  kernel@<<<1, 32>>>(in, out);
  cudaMemcpy(to, out, 32 * {new} * 4, cudaMemcpyDeviceToHost);
}
"""


def _program(conversions: list[Conversion], *, device: bool) -> str:
    """A function ``runN(from, to)`` for each conversion, which executes it for the 32 threads of a warp."""
    text = (_DEVICE if device else _HOST) + _CALL
    for number, conversion in enumerate(conversions):
        old, new = _sizes(conversion)
        more = f", packed<{conversion.target.bits}>()" if conversion.source.bits != conversion.target.bits else ""
        more += ", lane" if conversion.shuffles else ""
        text += f"""namespace n{number} {{
{conversion.to_cuda()}
}}
static __device__ void thread{number}(const uint32_t* from, uint32_t* to, uint32_t lane) {{
  uint32_t old[{old}], made[{new}];
  for (uint32_t each = 0; each < {old}; each++) old[each] = from[lane * {old} + each];
  n{number}::convert(made, old{more});
  for (uint32_t each = 0; each < {new}; each++) to[lane * {new} + each] = made[each];
}}
"""
        run = _DEVICE_RUN if device else _HOST_RUN
        text += run.replace("@", str(number)).replace("{old}", str(old)).replace("{new}", str(new))
    return text


def _sizes(conversion: Conversion) -> tuple[int, int]:
    """The array of the source, elements where the widths differ and registers otherwise, and the registers of the target."""
    source, target = conversion.source, conversion.target
    packs = source.bits != target.bits
    return 1 << source.numbers - (0 if packs else source.inside), 1 << target.numbers - target.inside


def _functions_convert(library: ctypes.CDLL, conversions: list[Conversion]) -> None:
    """Each function gives every element of the target the bits of the source's element, some bits of its number at a time."""
    lane, all_lanes = np.arange(_WARP)[:, None], _WARP
    for number, conversion in enumerate(conversions):
        source, target = conversion.source, conversion.target
        old, new = _sizes(conversion)
        elements = np.arange(all_lanes << source.numbers, dtype=np.uint32).reshape(all_lanes, -1)
        found = conversion.find(lane, np.arange(1 << target.numbers))
        wanted = elements[found["lane"], found["i"]]
        bits = target.bits
        for shift in range(0, int(elements.max()).bit_length(), bits):
            values = elements >> shift & (1 << bits) - 1
            given = np.ascontiguousarray(values if old == values.shape[1] else _words(values, source.bits, old), np.uint32)
            made = np.zeros((all_lanes, new), np.uint32)
            pointers = [array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)) for array in (given, made)]
            getattr(library, f"run{number}")(*pointers)
            assert np.array_equal(made, _words(wanted >> shift & (1 << bits) - 1, bits, new)), conversion


def _words(values: Any, bits: int, count: int) -> Any:
    parts = values.reshape(_WARP, count, -1).astype(np.uint64)
    return (parts << np.arange(parts.shape[-1], dtype=np.uint64) * np.uint64(bits)).sum(-1).astype(np.uint32)


def _conversions() -> list[Conversion]:
    made = []
    for source, target, transpose, permuted in _FUNCTIONS:
        conversion = ptxmma.convert(_operand(*source), _operand(*target), transpose=transpose)
        chosen = conversion.permuted if permuted else conversion
        assert chosen is not None
        made.append(chosen)
    return made


def test_functions_convert(cxx: str, tmp_path: Path) -> None:
    conversions = _conversions()
    assert {each.kind for each in conversions} == {"same", "registers", "prmt", "quad", "warp"}
    (tmp_path / "functions.cpp").write_text(_program(conversions, device=False))
    options = ["-std=c++14", "-O1", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-pthread", "-shared", "-fPIC"]
    done = subprocess.run([cxx, *options, "functions.cpp", "-o", "functions.so"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    _functions_convert(ctypes.CDLL(str(tmp_path / "functions.so")), conversions)


@pytest.mark.nvcc
@pytest.mark.gpu
def test_functions_convert_on_a_gpu(nvcc: str, gpu: str, tmp_path: Path) -> None:  # noqa: ARG001  # skips without one
    conversions = _conversions()
    (tmp_path / "functions.cu").write_text(_program(conversions, device=True))
    command = [nvcc, "-std=c++14", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "functions.cu", "-o", "functions.so"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    _functions_convert(ctypes.CDLL(str(tmp_path / "functions.so")), conversions)


def test_an_exchange_through_memory_has_no_function() -> None:
    instruction = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    conversion = ptxmma.convert(_operand(instruction, "d"), _operand(instruction, "a"), transpose=True)
    with pytest.raises(ValueError, match="no function without memory: bit 0 of the warp is"):
        conversion.to_cuda()
    code, output = _layout(instruction, "--operand", "d", "--as", instruction, "--transpose", "--format", "cuda")
    assert (code, "no function without memory" in output) == (2, True)
    assert _layout(_FP8, "--operand", "d", "--as", _FP8, "--format", "cuda") == (0, f"{_conversions()[1].to_cuda()}\n")


def test_families_of_other_axes_and_scopes(odd: Catalog) -> None:
    """Rows and columns are those of each family, and two warps may hold a matrix together."""
    fragments = _fragments(odd)
    assert {operand.layout.threads for operand in fragments if operand.layout} >= {32, 64}
    for source, target in zip(fragments, [*fragments[1:], fragments[0]], strict=True):
        assert _checked(source, source).kind == "same"
        _checked(source, target)
