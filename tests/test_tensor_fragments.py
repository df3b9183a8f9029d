"""Operands in tensor memory through tcgen05.ld and tcgen05.st: which register of which thread takes which element."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
from typing import Any

import numpy as np
import pytest

import commands
import ptxmma
from commands import invoke
from ptxmma.catalog.operands.tensor_fragment import RegisterPlace, TensorFragment

_LOAD = "tcgen05.ld.sync.aligned.{}.b32"
_TYPES: dict[str, Any] = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
_SHAPES = ("32x32b.x8", "32x32b.x32", "16x64b.x4", "16x128b.x2", "16x256b.x4")
#: Data paths D, F, A and B: a CTA or a pair, and M.
_PATHS = (("1", 128), ("1", 64), ("2", 256), ("2", 128))


def _fragment(group: str, m: int, n: int, shape: str) -> TensorFragment:
    product = ptxmma.instruction(f"tcgen05.mma.cta_group::{group}.kind::f16", m=m, n=n, **_TYPES)
    d = product.operand("d-tmem")
    return d.through(ptxmma.instruction(_LOAD.format(shape)))


def test_the_register_of_an_element_in_an_epilogue() -> None:
    """D[37][200] of 128 x 256: warp 1 has rows 32 to 63, and the seventh load of 32 columns has 192 to 223."""
    fragment = _fragment("1", 128, 256, "32x32b.x32")
    assert fragment.locate(37, 200, base=64) == RegisterPlace(0, 1, 5, 8, 0, 32 << 16 | 64 + 192)
    assert fragment.addresses(1, base=64) == tuple(32 << 16 | 64 + first for first in range(0, 256, 32))
    assert fragment.coords(32 << 16 | 64 + 192, 5, 8, base=64) == (37, 200)


@pytest.mark.parametrize(("group", "m"), _PATHS)
@pytest.mark.parametrize("shape", _SHAPES)
def test_emulated_loads_give_the_elements_that_the_composition_says(group: str, m: int, shape: str) -> None:
    """D lies in the images of both CTAs as its layout says; every register of every load has the element that it should."""
    n, base = 64, 96
    fragment = _fragment(group, m, n, shape)
    load = ptxmma.instruction(_LOAD.format(shape))
    row, col = (grid.ravel() for grid in np.meshgrid(np.arange(m), np.arange(n), indexing="ij"))
    images = np.full((2, 128, 512), 0xFFFFFFFF, np.uint32)
    place = fragment.places.locate(row, col)
    images[np.broadcast_to(place.cta, row.shape), place.lane, base + place.column] = row << 16 | col
    cta, warp, lane, register, bit, address = (np.broadcast_to(part, row.shape) for part in fragment.locate(row, col, base=base))
    assert np.array_equal(fragment.coords(address, lane, register, bit, base=base, cta=cta), (row, col))
    assert not bit.any()
    assert np.array_equal(warp, address >> 21)
    assert len(set(zip(cta.tolist(), address.tolist(), lane.tolist(), register.tolist(), strict=True))) == m * n
    loads = set(zip(cta.tolist(), address.tolist(), strict=True))
    assert {at for _, at in loads} == {at for warp in range(4) for at in fragment.addresses(warp, base)}
    for block, at in loads:
        own = (cta == block) & (address == at)
        loaded: Any = ptxmma.emulate(load, at, images[block]).registers
        assert np.array_equal(loaded[lane[own], register[own]], row[own] << 16 | col[own])
        assert at in fragment.addresses(at >> 21, base)


@pytest.mark.parametrize(("group", "m"), [("1", 128), ("2", 256), ("2", 128)])
@pytest.mark.parametrize("shape", _SHAPES)
def test_bases_of_triton_add_up_to_every_element(group: str, m: int, shape: str) -> None:
    n = 64
    fragment = _fragment(group, m, n, shape)
    bases = [basis for part in fragment.to_triton().values() for basis in part]
    places = set()
    for chosen in itertools.product((0, 1), repeat=len(bases)):
        picked = [basis for bit, basis in zip(chosen, bases, strict=True) if bit]
        places.add(tuple(int(np.bitwise_xor.reduce([basis[axis] for basis in picked] or [0])) for axis in (0, 1)))
    assert places == set(itertools.product(range(m), range(n)))


def test_bases_have_an_example_whose_registers_wrap() -> None:
    bases = _fragment("1", 128, 16, "16x256b.x2").to_triton()
    assert bases == {
        "register": [[0, 1], [8, 0], [0, 8], [16, 0]],
        "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
        "warp": [[32, 0], [64, 0]],
    }


def test_packed_loads_have_two_elements_of_a_narrow_d_in_a_register() -> None:
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=64, dtype="f16", atype="f16", btype="f16")
    d, a = product.operand("d-tmem"), product.operand("a-tmem")
    packed = ptxmma.instruction(_LOAD.format("32x32b.x8.pack::16b"))
    fragment = d.through(packed)
    assert fragment.locate(3, 21) == RegisterPlace(0, 0, 3, 2, 16, 16)
    assert fragment.coords(16, 3, 2, 16) == (3, 21)
    with pytest.raises(ValueError, match="a register has lower halves only"):
        a.through(packed)
    plain = a.through(ptxmma.instruction(_LOAD.format("32x32b.x8")))
    assert plain.locate(40, 5) == RegisterPlace(0, 1, 8, 2, 16, 32 << 16)
    assert plain.coords(32 << 16, 8, 2, 16) == (40, 5)


def test_what_does_not_fit_is_refused() -> None:
    fragment = _fragment("1", 64, 64, "32x32b.x32")
    with pytest.raises(ValueError, match=r"nothing of the operand lies at .*; its layout is D "):
        fragment.coords(0, 16, 0)  # M = 64 leaves the upper half of a warp's lanes free
    with pytest.raises(ValueError, match=r"40 columns in loads of 32: Triton's linear layouts need powers of two"):
        _fragment("1", 128, 40, "32x32b.x32").to_triton()
    d = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=64, n=64, **_TYPES).operand("d-tmem")
    with pytest.raises(ValueError, match="immHalfSplitoff chooses"):
        d.through(ptxmma.instruction(_LOAD.format("16x32bx2.x4")))
    with pytest.raises(ValueError, match=r"does not move registers to or from tensor memory; tcgen05\.ld and tcgen05\.st do"):
        d.through(ptxmma.instruction("ldmatrix.sync.aligned.m8n8.x1.shared.b16"))
    opcode = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16").operand("d-tmem")
    with pytest.raises(ValueError, match="m, n"):
        opcode.through(ptxmma.instruction(_LOAD.format("32x32b.x4")))


@pytest.mark.parametrize("transfer", ["ld.sync.aligned.32x32b.x8.pack::16b.b32", "st.sync.aligned.32x32b.x8.unpack::16b.b32"])
def test_elements_wider_than_half_a_register_are_not_packed(transfer: str) -> None:
    d = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=64, **_TYPES).operand("d-tmem")
    with pytest.raises(ValueError, match=r"its elements have 32 bits; .* move the lower 16 bits of each column: take "):
        d.through(ptxmma.instruction(f"tcgen05.{transfer}"))


def test_only_an_instruction_moves_an_operand() -> None:
    d = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=64, **_TYPES).operand("d-tmem")
    text: Any = _LOAD.format("32x32b.x8")
    with pytest.raises(TypeError, match=r"must be a tcgen05\.ld or tcgen05\.st from ptxmma\.instruction, not str"):
        d.through(text)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (-3, r"base = -3 is out of range: 0\.\.8388607"),
        (128 << 16, r"out of range: 0\.\.8388607"),
        (321, r"base = 0x141: the operand takes 256 columns; allowed: lane 0; column 0\.\.320 on sm_107f, 0\.\.256 on sm_100f and sm_101f"),
        ((128 << 16) - 1, r"base = 0x7fffff: the operand takes 256 columns; allowed: lane 0;"),
        (1 << 16, "allowed: lane 0;"),
        (np.array([0, 400]), "base: the operand takes 256 columns"),
    ],
)
def test_an_operand_starts_where_it_fits(base: Any, message: str) -> None:
    fragment = _fragment("1", 128, 256, "32x32b.x32")
    with pytest.raises(ValueError, match=message):
        fragment.locate(37, 200, base=base)
    with pytest.raises(ValueError, match=message):
        fragment.coords(0, 0, 0, base=base)
    if isinstance(base, int):
        with pytest.raises(ValueError, match=message):
            fragment.addresses(1, base)


def test_an_operand_starts_at_the_last_column_and_lane_that_it_may() -> None:
    fragment = _fragment("1", 64, 64, "16x64b.x4")
    assert fragment.locate(3, 0, base=16 << 16 | 512).address == 16 << 16 | 512
    assert fragment.locate(3, 0, base=np.array([0, 16 << 16])).address.tolist() == [0, 16 << 16]
    with pytest.raises(ValueError, match="allowed: lane 0 or 16;"):
        fragment.locate(3, 0, base=np.array([0, 15 << 16]))


# --- the command ------------------------------------------------------------------------------------------------------------

_QUESTION = (
    "layout", "tcgen05.mma.cta_group::1.kind::f16", "--m", "128", "--n", "256", "--dtype", "f32", "--atype", "bf16", "--btype", "bf16",
    "--operand", "d-tmem", "--through", _LOAD.format("32x32b.x32"),
)  # fmt: skip


_ask = functools.partial(commands.ask, *_QUESTION)


def test_the_command_says_which_register() -> None:
    (answer,) = json.loads(_ask("--row", "37", "--col", "200", "--base", "64", "--json"))
    assert answer == {"row": 37, "col": 200, "cta": 0, "warp": 1, "lane": 5, "register": 8, "bit": 0, "address": "0x200100"}


def test_the_command_takes_a_base_in_tensor_memory() -> None:
    (answer,) = json.loads(_ask("--row", "37", "--col", "200", "--base", "0x40", "--json"))
    assert answer["address"] == "0x200100"
    assert "--base -3 is outside 0..8388607" in _ask("--row", "37", "--col", "200", "--base", "-3", code=2)
    assert "allowed: lane 0; column 0..320 on sm_107f" in _ask("--row", "37", "--col", "200", "--base", "400", code=2)
    assert "base = 0x7fffff: the operand takes 256 columns" in _ask("--base", "8388607", code=2)
    assert "--base takes a number, 0..8388607, not '0xg'" in _ask("--base", "0xg", code=2)


def test_the_command_says_what_a_register_holds() -> None:
    """The elements of a register of a thread, one for each load that the options leave."""
    fragment = _fragment("1", 128, 256, "32x32b.x32")
    rows = json.loads(_ask("--lane", "5", "--register", "8", "--base", "64", "--json"))
    assert len(rows) == 4 * 8
    for row in rows:
        address = int(row["address"], 16)
        assert (row["row"], row["col"]) == fragment.coords(address, 5, 8, base=64)
        assert address in fragment.addresses(row["warp"], 64)
    (only,) = json.loads(_ask("--lane", "5", "--register", "8", "--base", "64", "--address", "0x200100", "--json"))
    assert (only["row"], only["col"], only["warp"]) == (37, 200, 1)
    assert len(json.loads(_ask("--register", "8", "--warp", "2", "--json"))) == 32 * 8


def test_a_packed_register_holds_two_elements() -> None:
    question = [*_QUESTION[:-1], _LOAD.format("32x32b.x8"), "--lane", "3", "--register", "2", "--warp", "0", "--json"]
    question[question.index("d-tmem")] = "a-tmem"
    rows = json.loads(invoke(*question).output)
    assert [(row["row"], row["col"], row["bit"]) for row in rows] == [(3, 4, 0), (3, 5, 16)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lane", "32"), "--lane 32 is outside 0..31"),
        (("--register", "32"), "--register 32 is outside 0..31"),
        (("--warp", "4"), "--warp 4 is outside 0..3"),
        (
            ("--register", "8", "--address", "0x200003"),
            "no load has an element in register 8, address 0x200003; those of warp 1 have the taddr",
        ),
        (("--register", "8", "--row", "3", "--col", "5"), "or a register, not both: leave out --register, or the element"),
        (("--register", "8", "--by-lane"), "d-tmem lies in tensor memory: leave out --by-lane, for tables of registers"),
        (("--register", "8", "--format", "svg"), "--format svg is for a whole operand: leave out --through"),
    ],
)
def test_registers_that_hold_nothing(options: tuple[str, ...], message: str) -> None:
    assert message in _ask(*options, code=2)


def test_a_register_needs_its_load() -> None:
    result = invoke(*_QUESTION[:-2], "--lane", "5", "--register", "8")
    assert (result.exit_code, "--register needs --through, the load of the register" in result.output) == (2, True)


def test_the_command_lists_the_bases() -> None:
    rows = list(csv.DictReader(io.StringIO(_ask("--format", "csv"))))
    assert [(row["of"], row["number"], row["row"], row["col"]) for row in rows[:2]] == [
        ("register", "1", "0", "1"),
        ("register", "2", "0", "2"),
    ]
    assert len(rows) == 8 + 5 + 2


def test_the_command_says_what_is_missing() -> None:
    assert "name an element of d-tmem" in _ask("--row", "37", code=2)
    assert "--col is missing" in _ask("--row", "37", code=2)
    wrong = invoke("layout", "movmatrix.sync.aligned.m8n8.trans.b16", "--operand", "a", "--through", _LOAD.format("32x32b.x32"))
    assert (wrong.exit_code, "--through is for an --operand in tensor memory: this instruction has none" in wrong.output) == (2, True)


def test_bases_count_the_elements_within_a_register() -> None:
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=64, **_TYPES)
    a = product.operand("a-tmem")
    fragment = a.through(ptxmma.instruction(_LOAD.format("32x32b.x8")))
    assert fragment.to_triton()["register"] == [[0, 1], [0, 2], [0, 4], [0, 8]]
    assert fragment.coords(0, 0, 7, 16) == (0, 15)
