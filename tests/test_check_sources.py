"""PTX in the strings of other languages: what is found, where it stands, and what is passed over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmma.catalog.instructions import Catalog
from ptxmma.check import Checker, Finding
from ptxmma.ptx import inline_assembly
from ptxmma.ptx.statements import Opcodes

_D, _A, _B = "{%0, %1, %2, %3}", "{%4, %5, %6, %7}", "{%8, %9}"
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_OUT = ", ".join(f'"+f"(d[{number}])' for number in range(4))
_IN = ", ".join(f'"r"(a[{number}])' for number in range(6))


class Sources:
    """Checks sources as files of some ending."""

    def __init__(self, catalog: Catalog) -> None:
        self._checker = Checker(catalog.database)
        self._spec = catalog.database.spec
        self._opcodes = Opcodes(self._spec)

    def check(self, text: str, suffix: str = ".cu") -> tuple[int, list[Finding]]:
        """How many instructions there are, and what is found; the place of each finding is that of its token."""
        parts = [
            self._checker.check_function(function, "file")
            for function in inline_assembly.functions(text.encode(), suffix, self._opcodes, self._spec)
        ]
        found = [finding for part in parts for finding in part]
        lines = text.split("\n")
        for finding in found:
            assert (
                finding.source[finding.caret :]
                == lines[finding.line - 1].rstrip("\r")[finding.column - 1 :][: len(finding.source) - finding.caret]
            )
        return sum(part.instructions for part in parts), found

    def rules(self, text: str, suffix: str = ".cu") -> tuple[int, list[tuple[str, str]]]:
        """How many instructions there are, and the rule of each finding with the start of the source that it points at."""
        count, found = self.check(text, suffix)
        return count, [(finding.rule, finding.source[finding.caret :]) for finding in found]


@pytest.fixture(scope="module")
def held(catalog: Catalog) -> Sources:
    return Sources(catalog)


def asm(text: str = f"{_MMA} {_D}, {_A}, {_B}, {_D};", out: str = _OUT, into: str = _IN) -> str:
    return f'__device__ void f() {{\n  asm volatile("{text}"\n    : {out}\n    : {into});\n}}\n'


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("#if 0\n{}\n#endif\n", 0),
        ("#if 0 // old\n{}\n#endif\n{}", 1),
        ("  #  if 0 /* old */\n{}\n#else\n{}\n#endif\n", 1),
        ("#if 0\n#if 1\n{}\n#else\n{}\n#endif\n{}\n#endif\n{}", 1),
        ("#if 1\n{}\n#else\n{}\n#endif\n", 1),
        ("#ifdef A\n{}\n#elif B\n{}\n#else\n{}\n#endif\n", 3),
        ("#if 0x1\n{}\n#endif\n#endif\n{}", 2),
        ("// #if 0\n{}\n", 1),
        ('const char *text = "#if 0";\n{}\n', 1),
    ],
)
def test_code_that_is_switched_off_is_not_read(held: Sources, text: str, count: int) -> None:
    assert held.rules(text.replace("{}", asm()))[0] == count


def test_a_sound_statement_has_nothing_to_say(held: Sources) -> None:
    assert held.rules(asm()) == (1, [])


@pytest.mark.parametrize("keyword", ["asm", "asm volatile", "__asm__ __volatile__", "asm  /* why */ volatile", "__asm"])
def test_keywords(held: Sources, keyword: str) -> None:
    count, found = held.rules(asm(_MMA.replace("m16n8k16", "m16n8k15") + f" {_D}, {_A}, {_B}, {_D};").replace("asm volatile", keyword))
    assert count == 1
    assert [(rule, text[:8]) for rule, text in found] == [("unknown-instruction", "m16n8k15")]


def test_constraints_are_types_of_registers(held: Sources) -> None:
    count, found = held.rules(asm(into=_IN.replace('"r"', '"f"')))
    assert count == 1
    assert [rule for rule, _ in found] == ["register-type"] * 2
    assert held.rules(asm(out=_OUT.replace("+f", "=r"))) == (1, [])  # untyped bits pass as f32
    assert [rule for rule, _ in held.rules(asm(out=_OUT.replace("+f", "+l")))[1]] == ["register-type"] * 2


def test_registers_are_counted(held: Sources) -> None:
    _, found = held.rules(asm(f"{_MMA} {_D}, {_A}, {{%8}}, {_D};"))
    assert [(rule, text[:4]) for rule, text in found] == [("register-count", "{%8}")]


@pytest.mark.parametrize("number", [9, 10, 13, 99])
def test_a_number_that_no_operand_has(held: Sources, number: int) -> None:
    """An operand that is read and written counts once: nvcc says that %10 is requested of 10."""
    text = asm(f"{_MMA} {_D}, {_A}, {{%8,%{number}}}, {_D};")
    assert held.rules(text) == (1, [("undeclared", f'%{number}}}, {_D};"')] if number > 9 else [])
    assert held.rules(text.replace(_IN, "OPERANDS")) == (1, [])


def test_named_operands(held: Sources) -> None:
    text = asm(f"{_MMA} {_D}, {_A}, {{%8, %[last]}}, {_D};", into=_IN.replace('"r"(a[5])', '[last] "r"(a[5])'))
    assert held.rules(text) == (1, [])
    _, found = held.rules(text.replace('[last] "r"', '[last] "l"'))
    assert [rule for rule, _ in found] == ["list"]  # beside .b32


def test_an_operand_that_repeats_another_has_its_type(held: Sources) -> None:
    text = asm(f"{_MMA} {_D}, {_A}, {_B}, {{%10, %1, %2, %3}};", into=f'{_IN}, "0"(d[0])')
    assert held.rules(text) == (1, [])
    _, found = held.rules(text.replace('"0"(d[0])', '"5"(d[0])'))
    assert [rule for rule, _ in found] == ["list"]  # .b32 beside .f32
    _, found = held.rules(text.replace('"0"(d[0])', '"l"(d[0])'))
    assert [rule for rule, _ in found] == ["list"]  # .b64 beside .f32


def test_numbers_of_templates_are_unknown(held: Sources) -> None:
    text = "wgmma.wait_group.sync.aligned %0;"
    assert held.rules(f'asm volatile("{text}\\n" :: "n"(N) : "memory");') == (1, [])
    assert [rule for rule, _ in held.rules(f'asm volatile("{text}\\n" :: "r"(N) : "memory");')[1]] == ["operand-kind"]


def test_literals_are_joined_through_comments_and_lines(held: Sources) -> None:
    text = f"""asm volatile( // mma
        "{{\\n"  /* a
        comment */
        "mma.sync.aligned."
        "m16n8k16.row.col.f32."
        R"x(f16.f16.f32 )x" "{_D}, "
        u8"\\x7b%4, %5, %6, %7}}, \\
{_B}, \\173%0, %1, %2, %3}};\\n\\t"
        "}}\\n"
        : {_OUT} : {_IN});"""
    assert held.rules(text) == (1, [])
    _, found = held.rules(text.replace("m16n8k16.row.col.f32.", "m16n8k16.row.row.f32."))
    assert [text[:4] for _, text in found] == ["row."]
    _, found = held.rules(text.replace("{%8, %9}", "{%8}"))
    assert [(rule, text[:4]) for rule, text in found] == [("register-count", "{%8}")]


def test_places_go_through_escapes_and_wide_characters(held: Sources) -> None:
    text = 'asm("// 漢\\n\\t\\"\\" \\t wgmma.fence.sync.aligned;" "wgmma.fence.sync.unaligned;\\n");'
    count, found = held.check(text)
    assert count == 2
    (finding,) = found
    assert text[finding.column - 1 :].startswith("unaligned;")


def test_percent_signs(held: Sources) -> None:
    text = (
        """asm("{.reg .pred %%p; setp.ne.b32 %%p, %0, 0; @%%p wgmma.fence.sync.aligned; wgmma.wait_group.sync.aligned %|0%};" :: "r"(x));"""
    )
    assert [rule for rule, _ in held.rules(text)[1]] == ["syntax"]
    text = """asm("{.reg .b32 %%p; @%%p wgmma.fence.sync.aligned;}");"""
    _, found = held.rules(text)
    assert [(rule, text[:4]) for rule, text in found] == [("predicate", "@%%p")]


@pytest.mark.parametrize(
    "text",
    [
        'asm volatile("wgmma.fence." SYNC ".bad;");',
        'asm volatile("wgmma.fence."\n#if X\n".sync.aligned;"\n#else\n".bad;"\n#endif\n);',
        '#define FENCE(x) asm volatile("wgmma.fence." #x ".bad;")',
        '// asm("wgmma.fence.bad;");',
        "/* asm(\"wgmma.fence.bad;\"); */ int a = 1'000; char b = '\"';",
        'const char* text = "asm(\\"wgmma.fence.bad;\\");";',
        'const char* text = R"(asm("wgmma.fence.bad;");)";',
        'int wgmma_fence; asm("mov.b32 %0, %1;" : "=r"(a) : "r"(b));',
        "asm",
        "asm(",
        'asm("wgmma.fence.bad;',
        'asm volatile("wgmma.fence.bad;',
        "__asm { mma }",
        "",
    ],
)
def test_what_is_no_statement_or_cannot_be_known_is_passed_over(held: Sources, text: str) -> None:
    assert held.check(text) == (0, [])


@pytest.mark.parametrize("operands", ["OPERANDS(d)", '"+f"(d[0]), MORE', '"+f" d', '"+f"(d[0]'])
def test_operands_of_macros_are_unknown(held: Sources, operands: str) -> None:
    assert held.rules(asm(out=operands)) == (1, [])
    assert [rule for rule, _ in held.rules(asm(f"{_MMA} {_D}, {_A}, {{%8}}, {_D};", out=operands))[1]] == ["register-count"]


def test_names_of_other_statements_are_unknown(held: Sources) -> None:
    assert held.rules(f'asm("{_MMA} {{x0,x1,x2,x3}}, {{r0,r1,r2,r3}}, {{v.x,v.y}}, {{x0,x1,x2,x3}};");') == (1, [])


def test_a_macro_with_continued_lines(held: Sources) -> None:
    count, found = held.check('#define FENCE() \\\r\n  asm volatile( \\\r\n "wgmma.fence.sync" \\\r\n ".bad;" )\r\n')
    assert count == 1
    assert [(finding.line, finding.column) for finding in found] == [(4, 4)]


# --- Python ---


def test_strings_of_python(held: Sources) -> None:
    body = f"{_MMA.replace('row.col', 'row.row')} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$0,$1,$2,$3}};"
    text = f'x = tl.inline_asm_elementwise(\n    "{body[:40]}"\n    "{body[40:]}", "=f,=f,=f,=f,r,r,r,r,r,r", [a], dtype, True, 1)\n'
    count, found = held.rules(text, ".py")
    assert count == 1
    assert [(rule, text[:4]) for rule, text in found] == [("unknown-instruction", "row.")]
    assert held.rules(text.replace("row.row", "row.col"), ".py") == (1, [])


def test_constraints_of_python_are_types(held: Sources) -> None:
    text = f'f("{_MMA} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$0,$1,$2,$3}};", "=f,=f,=f,=f,r,r,r,r,r,l")'
    _, found = held.rules(text, ".py")
    assert [(rule, text[:2]) for rule, text in found] == [("list", "$9")]


def test_cuda_in_python(held: Sources) -> None:
    text = f"SOURCE = r'''\n{asm()}\n'''\nOTHER = '''{asm(_MMA + '.bad;').replace(chr(92), '')}'''\n"
    count, found = held.check(text, ".py")
    assert count == 2
    assert [(finding.rule, finding.line) for finding in found] == [("unknown-instruction", 10)]


def test_escapes_of_python(held: Sources) -> None:
    text = 'x = "\\n\\t\\x20\\N{SPACE}" if a else "wgmma.\\\nfence.\\x62ad.really;"\n'
    _, found = held.check(text, ".py")
    assert [(finding.line, text.split("\n")[1][finding.column - 1 :][:7]) for finding in found] == [(2, "\\x62ad.")]


@pytest.mark.parametrize(
    "text",
    [
        '"""wgmma.fence.bad.really;"""',
        'def f():\n    "wgmma.fence.bad.really;"\n',
        'class C:\n    """Uses\n\n    wgmma.fence.bad.really;\n    """\n    x = 1\n',
        'f"wgmma.fence.bad.{x};"',
        'x = f"wgmma.fence." "bad.really;"',
        'x = "wgmma.fence.bad." f"{x};"',
        'x = "wgmma.fence.bad.%s;" % x',
        'x = "wgmma.fence.bad.really;" + y',
        'x = y + "wgmma.fence.bad.really;"',
        'x = "wgmma.fence.bad.{};".format(x)',
        'x = "mma.sync.aligned.bad"',
        'x = "wgmma.fence; and more"',
        'x = "mma.sync.aligned.bad is none of ours;"',
        'x = "mma.sync.aligned.bad is;"',
        "# wgmma.fence.bad.really;",
        "x = (",
        "x = 'wgmma.fence.bad.really;\n",
        "\tx\n  y\n",
    ],
)
def test_python_that_is_passed_over(held: Sources, text: str) -> None:
    assert held.check(text, ".py")[1] == []


# --- everything ---


@given(
    st.lists(
        st.sampled_from(['"', "asm(", ")", ":", "mma.x;", "\\", "\n", "'", "/*", "*/", "//", 'R"(', "%0", "{", "[a]", "é"]), max_size=30
    ),
    st.sampled_from(sorted(inline_assembly.SUFFIXES)),
)
def test_any_source_is_read(catalog: Catalog, pieces: list[str], suffix: str) -> None:
    spec = catalog.database.spec
    for function in inline_assembly.functions("".join(pieces).encode(), suffix, Opcodes(spec), spec):
        for statement in function.statements():
            line, column = function.position(statement.start)
            assert line >= 1
            assert column >= 1
            function.source(statement.start)


@given(st.binary(max_size=60), st.sampled_from(sorted(inline_assembly.SUFFIXES)))
def test_any_bytes_are_read(catalog: Catalog, data: bytes, suffix: str) -> None:
    spec = catalog.database.spec
    for text in (data, b'asm("mma' + data + b';");', b"x = 'mma" + data + b";'"):
        list(inline_assembly.functions(text, suffix, Opcodes(spec), spec))
