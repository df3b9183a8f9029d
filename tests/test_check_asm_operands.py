"""Operands of ``asm`` statements that a compiler accepts, and that make the instruction compute something else."""

from __future__ import annotations

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma.check import Checker
from ptxmma.ptx import inline_assembly
from ptxmma.ptx.opcodes import Opcodes

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_D, _A, _B, _C = "{%0, %1, %2, %3}", "{%4, %5, %6, %7}", "{%8, %9}", "{%10, %11, %12, %13}"
_OUT = '"=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])'
_IN = '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])'
_ADDED = '"f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3])'


@pytest.fixture(scope="module")
def checker(catalog: Catalog) -> Checker:
    return Checker(catalog.database)


def reported(checker: Checker, catalog: Catalog, text: str, out: str, into: str) -> list[tuple[str, str]]:
    """The rule of each finding, and the token that it is about."""
    spec = catalog.database.spec
    source = f'asm volatile("{text}" : {out} : {into});'
    functions = inline_assembly.functions([source.encode()], "c++", Opcodes(spec), spec)
    findings = [finding for function in functions for finding in checker.check_function(function, "file")]
    return [(each.rule, each.source[each.caret :][: each.length]) for each in findings]


_SOUND = f"{_MMA} {_D}, {_A}, {_B}, {_C};"


@pytest.mark.parametrize(
    ("text", "out", "into", "findings"),
    [
        (_SOUND, _OUT, f"{_IN}, {_ADDED}", []),
        (f"{_MMA} {_D}, {_A}, {_B}, {_D};", _OUT.replace("=", "+"), _IN, []),
        # an output that is read
        (f"{_MMA} {_D}, {_A}, {_B}, {_D};", _OUT, _IN, [("uninitialised-operand", "%0")]),
        (f"{_MMA} {_D}, {_A}, {_B}, {{%0, %1, %2, %3}};", _OUT.replace('"=f"(d[0])', '"+f"(d[0])'), _IN, [("uninitialised-operand", "%1")]),
        (f"{_MMA} {_D}, {_A}, {_B}, {_C}; {_MMA} {_D}, {_A}, {_B}, {_D};", _OUT, f"{_IN}, {_ADDED}", []),  # written before
        (f"mov.f32 %0, 0f00000000; {_MMA} {_D}, {_A}, {_B}, {{%0, %0, %0, %0}};", _OUT, _IN, []),
        (f"{_MMA} {_D}, {_A}, {_B}, {_C};", _OUT, f'{_IN}, "0"(d[0]), "1"(d[1]), "2"(d[2]), "3"(d[3])', []),
        # an operand that is not used
        (_SOUND, _OUT, f'{_IN}, {_ADDED}, "l"(x)', [("unused-operand", _MMA)]),
        (_SOUND.replace("%13", "%12"), _OUT, f"{_IN}, {_ADDED}", [("unused-operand", _MMA), ("repeated-operand", "%12")]),
        (_SOUND, _OUT, f'{_IN}, {_ADDED}, "m"(*x), "n"(8), [name] "i"(4)', []),
        (
            _SOUND.replace("%13", "%[last]"),
            _OUT,
            f"{_IN}, {_ADDED.replace(chr(34) + 'f' + chr(34) + '(c[3])', '[last] ' + chr(34) + 'f' + chr(34) + '(c[3])')}",
            [],
        ),
        # one value in two places
        (_SOUND, _OUT, f"{_IN.replace('a[2]', 'a[1]')}, {_ADDED}", [("repeated-operand", "%6")]),
        (_SOUND, _OUT.replace("d[3]", "d[2]"), f"{_IN}, {_ADDED}", [("repeated-operand", "%3")]),
        (
            _SOUND,
            _OUT,
            f"{_IN.replace('a[0]', 'a0').replace('a[1]', 'a1').replace('a[2]', 'a1').replace('a[3]', 'a3')}, {_ADDED}",
            [("repeated-operand", "%6")],
        ),
        (_SOUND, _OUT, f"{_IN.replace('b[1]', 'b[0]')}, {_ADDED}", []),  # two may be meant to be alike
        (_SOUND, _OUT, f"{_IN.replace('a[1]', 'a[0]').replace('a[3]', 'a[2]')}, {_ADDED}", []),
        (_SOUND, _OUT, f"{_IN.replace('a[2]', 'zero').replace('a[1]', 'zero')}, {_ADDED}", []),
        (_SOUND, _OUT, f"{_IN.replace('a[2]', 'f(x)').replace('a[1]', 'f(x)')}, {_ADDED}", []),
        # nobody knows the operands
        (f"{_MMA} {_D}, {_A}, {_B}, {_D};", _OUT, f"{_IN}, MORE", []),
        ("mov.b32 %0, 0;", '"=r"(x)', '"r"(y)', []),  # no matrix instruction
    ],
)
def test_operands(checker: Checker, catalog: Catalog, text: str, out: str, into: str, findings: list[tuple[str, str]]) -> None:
    assert reported(checker, catalog, text, out, into) == findings


_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;"


@pytest.mark.parametrize(
    ("out", "scale", "findings"),
    [
        ('"=f"', '"r"(scale)', [("uninitialised-operand", "%0")]),
        ('"+f"', '"r"(scale)', []),
        ('"=f"', '"n"(0)', []),  # it overwrites
    ],
)
def test_an_accumulator_is_read_where_a_register_decides(
    checker: Checker, catalog: Catalog, out: str, scale: str, findings: list[tuple[str, str]]
) -> None:
    text = f"{{.reg .pred p; setp.ne.b32 p, %6, 0; {_WGMMA}}}"
    outputs = ", ".join(f"{out}(d[{number}])" for number in range(4))
    assert reported(checker, catalog, text, outputs, f'"l"(a), "l"(b), {scale}') == findings
    assert reported(checker, catalog, text.replace("p, %6, 0", "p, 0, 0"), outputs, '"l"(a), "l"(b)') == []


def test_messages_name_the_operand(catalog: Catalog) -> None:
    source = f'asm("{_MMA} {_D}, {_A}, {_B}, {_D};" : {_OUT} : {_IN});'
    spec = catalog.database.spec
    (function,) = inline_assembly.functions([source.encode()], "c++", Opcodes(spec), spec)
    (finding,) = Checker(catalog.database).check_function(function, "file")
    assert finding.message == '"=f"(d[0]) is read here, but its value is not passed: write "+f"'
