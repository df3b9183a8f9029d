"""Bank conflicts: numbers of registers in the lanes of a warp, and the notes on accesses that take longer than they must."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from ptxmma.check import check
from ptxmma.matrices.shared_memory import bank_conflicts
from ptxmma.ptx.conditions import Predicates
from ptxmma.ptx.lane_values import WARP, LaneValues
from ptxmma.ptx.variables import Variable

_MASK = (1 << 32) - 1
_OPERATIONS: dict[str, tuple[str, Callable[..., int]]] = {
    "add.s32": ("rr", lambda a, b: a + b),
    "sub.s32": ("rr", lambda a, b: a - b),
    "mul.lo.s32": ("rc", lambda a, b: a * b),
    "mad.lo.s32": ("rcr", lambda a, b, c: a * b + c),
    "shl.b32": ("rn", lambda a, b: a << b),
    "shr.u32": ("rn", lambda a, b: a >> b),
    "and.b32": ("rm", lambda a, b: a & b),
    "or.b32": ("rr", lambda a, b: a | b),
    "xor.b32": ("rr", lambda a, b: a ^ b),
    "bfe.u32": ("rnn", lambda a, b, c: a >> b & ((1 << c) - 1)),
    "bfi.b32": ("rrnn", lambda a, b, c, d: b & ~((1 << d) - 1 << c) | (a & ((1 << d) - 1)) << c),
}
_THREADS = 128


@pytest.mark.parametrize("seed", range(40))
def test_numbers_of_registers_are_true_whatever_is_unknown(seed: int) -> None:
    """A random program with random parameters: every register has the numbers that are known of it, plus the unknown multiples."""
    chance = random.Random(seed)
    lines = ["mov.u32 %r0, %tid.x;", "ld.param.u32 %r1, [p];", "mov.u32 %r2, tile;", "ld.global.u32 %r3, [%rd1];", "mov.u32 %r4, %ctaid.x;"]
    program = []
    for number in range(5, 25):
        name = chance.choice([*_OPERATIONS])
        kinds, _ = _OPERATIONS[name]
        operands = [_operand(chance, kind, number) for kind in kinds]
        program.append((name, number, operands))
        lines.append(f"{name} %r{number}, {', '.join(operands)};")
    text = (".entry kernel(.param .u32 p)\n{\n" + "\n".join(lines) + "\n}\n").encode()
    values = LaneValues(text, Predicates(text), lambda name: Variable("shared", "", 16) if name == b"tile" else None)
    for _ in range(3):
        same = [chance.randrange(1 << 32), 16 * chance.randrange(1 << 12), chance.randrange(1 << 16)]
        known = [[thread, same[0], same[1], chance.randrange(1 << 32), same[2]] for thread in range(_THREADS)]
        for name, _, operands in program:
            for registers in known:
                numbers = [registers[int(each[2:])] if each.startswith("%") else int(each) for each in operands]
                registers.append(_OPERATIONS[name][1](*numbers) & _MASK)
        for number in range(25):
            value = values.of(b"%%r%d" % number)
            apart = [(registers[number] - start) & _MASK for registers, start in zip(known, value.numbers, strict=True)]
            assert all(each % value.least == 0 if value.least else each == 0 for each in apart), (lines[number], value)
            if not value.uneven:
                assert all(len({*apart[first : first + WARP]}) == 1 for first in range(0, _THREADS, WARP)), (lines[number], value)


def _operand(chance: random.Random, kind: str, number: int) -> str:
    if kind == "r" and chance.random() < 0.8:
        return f"%r{chance.randrange(number)}"
    mask = chance.choice([7, 31, 127, 0x78, _MASK - 127, _MASK - 15])
    return str(mask if kind == "m" else chance.randrange(9) if kind == "n" else chance.choice([1, 2, 16, 20, 128, 144]))


_HEAD = (
    ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u32 p, .param .u64 q)\n{\n.reg .b32 %r<40>; "
    ".reg .b32 %x<9>; .reg .b64 %rd<9>; .reg .pred %p<9>; .shared .align 16 .b8 tile[8192];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, tile; and.b32 %r2, %r0, 31;\n"
)
_MATRIX = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%x0, %x1, %x2, %x3}, [%r9];"


def notes(*lines: str) -> list[str]:
    """The messages of the notes on bank conflicts."""
    text = _HEAD + "\n".join(lines) + "\nmovmatrix.sync.aligned.m8n8.trans.b16 %x0, %x1;\nret;\n}\n"
    assert not [each for each in check(text) if each.severity != "note"]
    return [each.message for each in check(text) if each.rule == "bank-conflict"]


@pytest.mark.parametrize(
    ("lines", "wavefronts"),
    [
        (("shl.b32 %r8, %r2, 7;", "add.u32 %r9, %r1, %r8;", _MATRIX), 32),
        (("mul.lo.u32 %r8, %r2, 144;", "add.u32 %r9, %r1, %r8;", _MATRIX), None),  # padded by 16 bytes
        (("shl.b32 %r8, %r2, 6;", "mad.lo.u32 %r9, %r2, 64, %r1;", _MATRIX), 16),
        (("shl.b32 %r8, %r2, 2;", "add.u32 %r9, %r1, %r8;", "ld.shared.b32 %x0, [%r9+12];"), None),
        (("shl.b32 %r8, %r2, 3;", "add.u32 %r9, %r1, %r8;", "st.shared.b32 [%r9], %x0;"), 2),
        (("shl.b32 %r8, %r2, 3;", "add.u32 %r9, %r1, %r8;", "st.shared.v2.b32 [%r9], {%x0, %x1};"), None),
        (("shl.b32 %r8, %r2, 5;", "add.u32 %r9, %r1, %r8;", "st.shared.v2.b32 [%r9], {%x0, %x1};"), 8),
        (("shl.b32 %r8, %r2, 5;", "add.u32 %r9, %r1, %r8;", "ld.shared.v4.b32 {%x0, %x1, %x2, %x3}, [%r9];"), 8),
        (("shl.b32 %r8, %r2, 5;", "add.u32 %r9, %r1, %r8;", "ld.shared.u8 %x0, [%r9];"), 8),
        (("shr.u32 %r8, %r2, 2;", "mad.lo.u32 %r9, %r8, 128, %r1;", "ld.shared.b32 %x0, [%r9];"), 8),  # fours read a word
        (("ld.param.u32 %r7, [p];", "add.u32 %r8, %r7, %r1;", "mad.lo.u32 %r9, %r2, 8, %r8;", "ld.shared.b32 %x0, [%r9];"), 2),
        (("ld.param.u32 %r7, [p];", "mul.lo.u32 %r8, %r2, %r7;", "add.u32 %r9, %r1, %r8;", "ld.shared.b32 %x0, [%r9];"), None),
        (("ld.global.u32 %r7, [%rd1];", "add.u32 %r8, %r7, %r1;", "mad.lo.u32 %r9, %r2, 8, %r8;", "ld.shared.b32 %x0, [%r9];"), None),
        (("shl.b32 %r8, %r2, 7;", "add.u32 %r9, %r1, %r8;", "setp.lt.u32 %p1, %r2, 4;", "@%p1 ld.shared.b32 %x0, [%r9];"), 4),
        (("shl.b32 %r8, %r2, 7;", "add.u32 %r9, %r1, %r8;", "setp.eq.u32 %p1, %r2, 4;", "@%p1 ld.shared.b32 %x0, [%r9];"), None),
        (  # a loop over stages
            (
                "mad.lo.u32 %r9, %r2, 8, %r1;",
                "on:",
                "ld.shared.b32 %x0, [%r9];",
                "add.u32 %r9, %r9, 36;",
                "setp.ne.u32 %p1, %x0, 0; @%p1 bra on;",
            ),
            2,
        ),
    ],
)
def test_wavefronts(lines: tuple[str, ...], wavefronts: int | None) -> None:
    found = notes(*lines)
    assert len(found) == (wavefronts is not None)
    assert not found or found[0].startswith(f"a warp takes {wavefronts} wavefronts for it, not ")


def test_wavefronts_are_those_of_the_library() -> None:
    """Random strides and swizzles of reads by a warp."""
    chance = random.Random(7)
    reads = {4: "ld.shared.b32 %x0, ", 8: "ld.shared.b64 %rd2, ", 16: "ld.shared.v4.b32 {%x0, %x1, %x2, %x3}, "}
    for width, read in reads.items():
        for _ in range(20):
            stride, mask, shift = width * chance.randrange(1, 40), chance.choice([0, 1, 3, 7]), chance.choice([4, 5])
            lines = [f"mul.lo.u32 %r3, %r2, {stride};"]
            lines += [f"and.b32 %r4, %r2, {mask};", f"shl.b32 %r5, %r4, {shift};", "xor.b32 %r6, %r3, %r5;"]
            addresses = [lane * stride ^ (lane & mask) << shift for lane in range(WARP)]
            known = bank_conflicts(np.array(addresses), width)
            found = notes(*lines, "add.u32 %r9, %r1, %r6;", f"{read}[%r9];")
            assert bool(found) == (known.wavefronts > known.least)
            assert not found or found[0].startswith(f"a warp takes {known.wavefronts} wavefronts for it, not {known.least}: ")


def test_one_note_for_a_pattern_names_the_swizzle() -> None:
    rows = ("shl.b32 %r8, %r2, 7;", "add.u32 %r9, %r1, %r8;", _MATRIX, "add.u32 %r9, %r9, 4096;", _MATRIX.replace("[%r9]", "[%r9+32]"))
    (message,) = notes(*rows)
    assert message == (
        "a warp takes 32 wavefronts for it, not 4: lanes 0 and 1 ask one bank for words that are 128 bytes apart; with the 128-byte "
        "swizzle it takes 4; 1 more of this pattern"
    )


def test_without_notes_nothing_is_looked_for() -> None:
    from ptxmma.check import Checker

    text = _HEAD + f"mad.lo.u32 %r9, %r2, 128, %r1;\n{_MATRIX}\nret;\n}}\n"
    assert Checker(notes=False).check(text).hidden == 0
    assert [each.rule for each in check(text)] == ["bank-conflict"]
    assert not check(text, follow=False).findings
