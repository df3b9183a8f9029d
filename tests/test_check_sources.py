"""PTX in the strings of other languages: findings, their places, and what is passed over."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmma.catalog.instructions import Catalog
from ptxmma.check import Checker, Finding
from ptxmma.ptx import inline_assembly
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.python_strings import NotPythonError

_D, _A, _B = "{%0, %1, %2, %3}", "{%4, %5, %6, %7}", "{%8, %9}"
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_OUT = ", ".join(f'"+f"(d[{number}])' for number in range(4))
_LANGUAGES = ("c++", "python", "llvm")
_IN = ", ".join(f'"r"(a[{number}])' for number in range(6))


class Sources:
    """Checks sources as files of some language."""

    def __init__(self, catalog: Catalog) -> None:
        self._checker = Checker(catalog.database)
        self._spec = catalog.database.spec
        self._opcodes = Opcodes(self._spec)

    def uncovered(self, text: str, language: str = "c++") -> tuple[int, int]:
        """The numbers of instructions that are judged, and that are not."""
        parts = [
            self._checker.check_function(function, "file")
            for function in inline_assembly.functions([text.encode()], language, self._opcodes, self._spec)
        ]
        return sum(part.instructions for part in parts), sum(part.uncovered for part in parts)

    def check(self, text: str, language: str = "c++", chunks: list[bytes] | None = None) -> tuple[int, list[Finding]]:
        """The number of instructions, and the findings; each must be at the place of its token."""
        parts = [
            self._checker.check_function(function, "file")
            for function in inline_assembly.functions(chunks or [text.encode()], language, self._opcodes, self._spec)
        ]
        findings = [finding for part in parts for finding in part]
        lines = text.split("\n")
        for finding in findings:
            assert (
                finding.source[finding.caret :]
                == lines[finding.line - 1].rstrip("\r")[finding.column - 1 :][: len(finding.source) - finding.caret]
            )
        return sum(part.instructions for part in parts), findings

    def rules(self, text: str, language: str = "c++") -> tuple[int, list[tuple[str, str]]]:
        """The number of instructions, and the rule of each finding with the source that it points at."""
        count, findings = self.check(text, language)
        return count, [(finding.rule, finding.source[finding.caret :]) for finding in findings]


@pytest.fixture(scope="module")
def sources(catalog: Catalog) -> Sources:
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
def test_code_that_is_switched_off_is_not_read(sources: Sources, text: str, count: int) -> None:
    assert sources.rules(text.replace("{}", asm()))[0] == count


def test_a_sound_statement_has_nothing_to_say(sources: Sources) -> None:
    assert sources.rules(asm()) == (1, [])


@pytest.mark.parametrize("keyword", ["asm", "asm volatile", "__asm__ __volatile__", "asm  /* why */ volatile", "__asm"])
def test_keywords(sources: Sources, keyword: str) -> None:
    count, rules = sources.rules(asm(_MMA.replace("m16n8k16", "m16n8k15") + f" {_D}, {_A}, {_B}, {_D};").replace("asm volatile", keyword))
    assert count == 1
    assert [(rule, text[:8]) for rule, text in rules] == [("unknown-instruction", "m16n8k15")]


def test_constraints_are_types_of_registers(sources: Sources) -> None:
    count, rules = sources.rules(asm(into=_IN.replace('"r"', '"f"')))
    assert count == 1
    assert [rule for rule, _ in rules] == ["register-type"] * 2
    assert sources.rules(asm(out=_OUT.replace("+f", "+r"))) == (1, [])  # untyped bits pass as f32
    assert [rule for rule, _ in sources.rules(asm(out=_OUT.replace("+f", "+l")))[1]] == ["register-type"] * 2


def test_registers_are_counted(sources: Sources) -> None:
    _, rules = sources.rules(asm(f"{_MMA} {_D}, {_A}, {{%8}}, {_D};"))
    assert [(rule, text[:4]) for rule, text in rules] == [("register-count", "{%8}")]


@pytest.mark.parametrize("number", [9, 10, 13, 99])
def test_a_number_that_no_operand_has(sources: Sources, number: int) -> None:
    """An operand that is read and written counts once, as for nvcc."""
    text = asm(f"{_MMA} {_D}, {_A}, {{%8,%{number}}}, {_D};")
    assert sources.rules(text) == (1, [("undeclared", f'%{number}}}, {_D};"')] if number > 9 else [])
    assert sources.rules(text.replace(_IN, "OPERANDS")) == (1, [])


def test_named_operands(sources: Sources) -> None:
    text = asm(f"{_MMA} {_D}, {_A}, {{%8, %[last]}}, {_D};", into=_IN.replace('"r"(a[5])', '[last] "r"(a[5])'))
    assert sources.rules(text) == (1, [])
    _, rules = sources.rules(text.replace('[last] "r"', '[last] "l"'))
    assert [rule for rule, _ in rules] == ["list"]  # beside .b32


def test_an_operand_that_repeats_another_has_its_type(sources: Sources) -> None:
    text = asm(f"{_MMA} {_D}, {_A}, {_B}, {{%10, %1, %2, %3}};", into=f'{_IN}, "0"(d[0])')
    assert sources.rules(text) == (1, [])
    _, rules = sources.rules(text.replace('"0"(d[0])', '"5"(d[0])'))
    assert [rule for rule, _ in rules] == ["list"]  # .b32 beside .f32
    _, rules = sources.rules(text.replace('"0"(d[0])', '"l"(d[0])'))
    assert [rule for rule, _ in rules] == ["list"]  # .b64 beside .f32


def test_numbers_of_templates_are_unknown(sources: Sources) -> None:
    text = "wgmma.wait_group.sync.aligned %0;"
    assert sources.rules(f'asm volatile("{text}\\n" :: "n"(N) : "memory");') == (1, [])
    assert [rule for rule, _ in sources.rules(f'asm volatile("{text}\\n" :: "r"(N) : "memory");')[1]] == ["operand-kind"]


def test_literals_are_joined_through_comments_and_lines(sources: Sources) -> None:
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
    assert sources.rules(text) == (1, [])
    _, rules = sources.rules(text.replace("m16n8k16.row.col.f32.", "m16n8k16.row.row.f32."))
    assert [text[:4] for _, text in rules] == ["row."]
    _, rules = sources.rules(text.replace("{%8, %9}", "{%8}"))
    assert [(rule, text[:4]) for rule, text in rules] == [("register-count", "{%8}")]


@pytest.mark.parametrize(
    "written",
    [
        '"wgmma.fence.sync.bad;"',
        '"wg" "mma.fence.sync.bad;"',
        '"wg" \\\n "mma.fence.sync.bad;"',
        '"wg\\\nmma.fence.sync.bad;"',
        '"wg\\x6dma.fence.sync.bad;"',
        '"wg\\155ma.fence.sync.bad;"',
        '"wg" /* ) */ "mma.fence.sync.bad;"',
        '"wg" // )\n "mma.fence.sync.bad;"',
        'R"(wg)" "mma.fence.sync.bad;"',
        'u8"wg" "mma.fence.sync.bad;"',
        '""' * 2_000 + '"wgmma.fence.sync.bad;"',
    ],
)
def test_no_spelling_hides_an_instruction(sources: Sources, written: str) -> None:
    """A statement is passed over only if its strings together cannot have one."""
    count, findings = sources.check(f"asm volatile ( {written} :: ); // mma")
    assert (count, [finding.rule for finding in findings]) == (1, ["unknown-instruction"])


@pytest.mark.parametrize("operand", ['"n"(8*(4 /*)*/))', '"n"( (((9))) )', '[x] "n" (f(")"))', "[ x ]\"n\"(')')", 'u8"n"(x)', "#pragma"])
def test_operands_are_read_however_they_are_written(sources: Sources, operand: str) -> None:
    """What is behind an unusual operand is bound to the next number, unless nobody can know how many there are."""
    count, rules = sources.rules(asm(f"{_MMA} {_D}, {_A}, {_B}, {{%0, %1, %2, %11}};", into=f'{_IN}, {operand}, "r"(e)'))
    assert count == 1
    assert [rule for rule, _ in rules] == (["list"] if '"' in operand else [])


def test_places_go_through_escapes_and_wide_characters(sources: Sources) -> None:
    text = 'asm("// 漢\\n\\t\\"\\" \\t wgmma.fence.sync.aligned;" "wgmma.fence.sync.unaligned;\\n");'
    count, findings = sources.check(text)
    assert count == 2
    (finding,) = findings
    assert text[finding.column - 1 :].startswith("unaligned;")


def test_percent_signs(sources: Sources) -> None:
    text = (
        """asm("{.reg .pred %%p; setp.ne.b32 %%p, %0, 0; @%%p wgmma.fence.sync.aligned; wgmma.wait_group.sync.aligned %|0%};" :: "r"(x));"""
    )
    assert [rule for rule, _ in sources.rules(text)[1]] == ["syntax"]
    text = """asm("{.reg .b32 %%p; @%%p wgmma.fence.sync.aligned;}");"""
    _, rules = sources.rules(text)
    assert [(rule, text[:4]) for rule, text in rules] == [("predicate", "@%%p")]


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
def test_unknown_statements_are_passed_over(sources: Sources, text: str) -> None:
    assert sources.check(text) == (0, [])


@pytest.mark.parametrize("operands", ["OPERANDS(d)", '"+f"(d[0]), MORE', '"+f" d', '"+f"(d[0]'])
def test_operands_of_macros_are_unknown(sources: Sources, operands: str) -> None:
    assert sources.rules(asm(out=operands)) == (1, [])
    assert [rule for rule, _ in sources.rules(asm(f"{_MMA} {_D}, {_A}, {{%8}}, {_D};", out=operands))[1]] == ["register-count"]


def test_names_of_other_statements_are_unknown(sources: Sources) -> None:
    assert sources.rules(f'asm("{_MMA} {{x0,x1,x2,x3}}, {{r0,r1,r2,r3}}, {{v.x,v.y}}, {{x0,x1,x2,x3}};");') == (1, [])


def test_a_macro_with_continued_lines(sources: Sources) -> None:
    count, findings = sources.check('#define FENCE() \\\r\n  asm volatile( \\\r\n "wgmma.fence.sync" \\\r\n ".bad;" )\r\n')
    assert count == 1
    assert [(finding.line, finding.column) for finding in findings] == [(4, 4)]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_parts_of_a_long_source_make_no_difference(sources: Sources, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = asm(f"{_MMA} {_D}, {_A}, {{%8}}, {_D};")
    others = [
        '/* "wgmma */ const char *a = "/*"; // \\\n asm("wgmma.fence.bad;");\n',
        'R"(asm("wgmma.fence.bad;");\n)" "\\\n"\n',
        "#if 0\n" + broken + "#else\n" + broken.replace("asm", "asm /*\n*/") + "#endif\n",
        '#define F() asm( \\\n "wgmma.fence.sync" \\\n ".bad;")\n',
    ]
    text = "\n".join([broken, *others, "int 漢;", *others, broken])
    whole = sources.check(text)
    assert whole[0] == len(whole[1]) == 6
    monkeypatch.setattr(inline_assembly, "_PART", size)
    chunks = [text.encode()[start : start + size] for start in range(0, len(text.encode()), size)]
    assert sources.check(text, chunks=chunks) == whole


# --- what is not covered ---


@pytest.mark.parametrize(
    ("text", "language", "counts"),
    [
        ('asm volatile("wgmma.fence." SYNC ";");', "c++", (0, 1)),
        (
            'asm("wgmma.fence.sync.aligned;" MORE "wgmma.fence.sync.aligned;" : OUT(d) : "r"(a)); asm("wgmma.fence.sync.aligned;");',
            "c++",
            (1, 2),
        ),
        ('asm("mov.b32 %0, " X ";");', "c++", (0, 0)),
        ("// wgmma.fence\nint mma_sync;", "c++", (0, 0)),
        ('x = f"wgmma.wait_group.sync.aligned {n};"', "python", (0, 1)),
        ('x = "wgmma.wait_group.sync.aligned " + str(n) + ";"', "python", (0, 1)),
        ('x = "wgmma.wait_group.sync.aligned %d;" % n', "python", (0, 1)),
        ('x = "wgmma.fence.sync.aligned;"', "python", (1, 0)),
        ('raise ValueError(f"mma.sync wants {n}")', "python", (0, 0)),
        ('def f():\n    """Uses wgmma.fence.sync.aligned;"""\n', "python", (0, 0)),
        ('call void asm "mma.sync.aligned.m16n8k$0.bad {x}", "n"(i32 16)', "llvm", (0, 1)),
    ],
)
def test_instructions_that_are_not_judged_are_counted(sources: Sources, text: str, language: str, counts: tuple[int, int]) -> None:
    assert sources.uncovered(text, language) == counts


@pytest.mark.parametrize(
    ("text", "operand", "rules"),
    [
        ("m16n8k%10", '"n"(16)', []),
        ("m16n8k%[k]", '[k] "n"(0x10)', []),
        ("m16n8k%10", '"n"(15)', ["unknown-instruction"]),
        ("m%10n8k16", '"n"(8 * 2)', []),
    ],
)
def test_a_number_inside_an_opcode(sources: Sources, text: str, operand: str, rules: list[str]) -> None:
    """An opcode with a number in it is judged if the number is visible."""
    source = asm(f"{_MMA.replace('m16n8k16', text)} {_D}, {_A}, {_B}, {_D};", into=f"{_IN}, {operand}")
    assert [rule for rule, _ in sources.rules(source)[1]] == rules
    assert sources.uncovered(source) == (1, 0)
    for unknown in ('"n"(K)', '"C"(name)'):
        source = source.replace(operand, unknown if "[k]" not in operand else f"[k] {unknown}")
        operand = unknown
        assert sources.rules(source) == (0, [])
        assert sources.uncovered(source) == (0, 1)


@pytest.mark.parametrize(
    ("text", "operand", "rules"),
    [
        ("wgmma.wait_group.sync.aligned %0;", '"n"(0)', []),
        ("wgmma.wait_group.sync.aligned %0;", '"n"(-1)', ["immediate"]),
        ("wgmma.wait_group.sync.aligned %[left];", '[left] "n"(-1)', ["immediate"]),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [x], %0;", '"n"(64)', []),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [x], %0;", '"i"(96)', ["immediate"]),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [x], %0;", '"n"(COLUMNS)', []),
        ("tcgen05.mma.cta_group::1.kind::f16 [x], a, b, %0, p;", '"n"(0x10400490)', ["instruction-descriptor"]),
        ("tcgen05.mma.cta_group::1.kind::f16 [x], a, b, %0, p;", '"r"(0x10400490)', ["instruction-descriptor"]),
        ("tcgen05.mma.cta_group::1.kind::f16 [x], a, b, %0, p;", '"r"(0x08400490)', []),
        ("tcgen05.mma.cta_group::1.kind::f16 [x], a, b, %0, p;", '"r"(descriptor)', []),
        ("tcgen05.mma.cta_group::1.kind::f16 [x], a, b, %0, p;", '"f"(0x10400490)', ["register-type"]),  # converted to f32
    ],
)
def test_a_constant_that_is_an_operand(sources: Sources, text: str, operand: str, rules: list[str]) -> None:
    """A constant is judged as if it stood in the text."""
    assert [rule for rule, _ in sources.rules(asm(text, out="", into=operand))[1]] == rules


_NAMES = """
struct f16 { static constexpr const char value[] = "f16"; };
struct bf16 { static constexpr const char value[] = "bf16"; };
"""


@pytest.mark.parametrize(
    ("before", "operand", "rules"),
    [
        ("constexpr int K = 16;", '"n"(K)', []),
        ("#define K (8 * 2)", '"n"(K)', []),
        ("struct S { static const int K = 16; };", '"n"(S::K)', []),
        ("static constexpr int K = wide ? 16 : 8;", '"n"(K)', []),  # one of them is right
        ("constexpr int K = 15;", '"n"(K)', ["unknown-instruction"]),
        ("static constexpr int K = wide ? 15 : 17;", '"n"(K)', ["unknown-instruction"]),
        (_NAMES, '"C"(T::value)', ["unknown-instruction"]),
        ('constexpr char name[] = "16";', '"C"(name)', []),
    ],
)
def test_the_values_that_a_name_may_have_inside_an_opcode(sources: Sources, before: str, operand: str, rules: list[str]) -> None:
    """An instruction is wrong if it is with every value."""
    source = f"{before}\n" + asm(f"{_MMA.replace('m16n8k16', 'm16n8k%10')} {_D}, {_A}, {_B}, {_D};", into=f"{_IN}, {operand}")
    assert [rule for rule, _ in sources.rules(source)[1]] == rules
    assert sources.uncovered(source) == (1, 0)


def test_types_of_a_template_inside_an_opcode(sources: Sources) -> None:
    text = f"{_MMA.replace('f16.f16', '%10.%10')} {_D}, {_A}, {_B}, {_D};"
    source = _NAMES + asm(text, into=f'{_IN}, "C"(mma::type<is_bf16>::value)')
    assert sources.rules(source) == (1, [])
    assert [rule for rule, _ in sources.rules(source.replace("{%8, %9}", "{%8}"))[1]] == ["register-count"]


@pytest.mark.parametrize(
    "before",
    [
        "template <int K>",
        "template <typename T, int K = 16>",
        "template <int K> constexpr int N = 16; constexpr int K = 16;",
        "constexpr int K = size(x);",
        "constexpr int K = 16; struct S { static constexpr int K = f(); };",
        "extern int K;",
    ],
)
def test_a_value_that_only_a_compiler_knows(sources: Sources, before: str) -> None:
    source = f"{before}\n" + asm(f"{_MMA.replace('m16n8k16', 'm16n8k%10')} {_D}, {_A}, {_B}, {_D};", into=f'{_IN}, "n"(K)')
    assert sources.rules(source) == (0, [])
    assert sources.uncovered(source) == (0, 1)


# --- LLVM IR ---

_CALL = (
    'define void @f() {\n  %1 = call { float, float, float, float } asm sideeffect "TEXT;", '
    '"=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3,~{memory}"(i32 %0) ; asm "wgmma.fence.bad;"\n  ret void\n}\n'
)
_LLVM = f"{_MMA} {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, {{$8, $9}}, {{$10, $11, $12, $13}}"


def test_llvm(sources: Sources) -> None:
    text = _CALL.replace("TEXT", _LLVM)
    assert sources.rules(text, "llvm") == (1, [])
    _, rules = sources.rules(text.replace("row.col", "row.row"), "llvm")
    assert [(rule, token[:4]) for rule, token in rules] == [("unknown-instruction", "row.")]
    assert [rule for rule, _ in sources.rules(text.replace("r,r,0,1", "r,l,0,1"), "llvm")[1]] == ["list"]
    assert [rule for rule, _ in sources.rules(text.replace("$9", "$14"), "llvm")[1]] == ["undeclared"]


def test_llvm_escapes(sources: Sources) -> None:
    text = 'module asm ".reg"\n call void asm "\\09wgmma.fence\\2Esync.unaligned;\\0A\\22\\22", ""()\n@s = constant [4 x i8] c"asm \\22"\n'
    _, findings = sources.check(text, "llvm")
    assert [text.split("\n")[finding.line - 1][finding.column - 1 :][:9] for finding in findings] == ["unaligned"]


# --- Python ---


def test_strings_of_python(sources: Sources) -> None:
    body = f"{_MMA.replace('row.col', 'row.row')} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$0,$1,$2,$3}};"
    text = f'x = tl.inline_asm_elementwise(\n    "{body[:40]}"\n    "{body[40:]}", "=f,=f,=f,=f,r,r,r,r,r,r", [a], dtype, True, 1)\n'
    count, rules = sources.rules(text, "python")
    assert count == 1
    assert [(rule, text[:4]) for rule, text in rules] == [("unknown-instruction", "row.")]
    assert sources.rules(text.replace("row.row", "row.col"), "python") == (1, [])


def test_constraints_of_python_are_types(sources: Sources) -> None:
    text = f'f("{_MMA} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$0,$1,$2,$3}};", "=f,=f,=f,=f,r,r,r,r,r,l")'
    _, rules = sources.rules(text, "python")
    assert [(rule, text[:2]) for rule, text in rules] == [("list", "$9")]


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("movmatrix.sync.aligned.m8n8.trans.b16 {$w0}, {$r0};", []),
        ("@{$r1} movmatrix.sync.aligned.m8n8.trans.b16 {$w0}, {$r0};", []),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{$w0}, {$w1}}, [{$r0}];", []),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{$w0}, {$w1}}, [{$r0}];", [("register-count", "{{$")]),
        (f"{_MMA} {{{{$rw0}},{{$rw1}},{{$rw2}},{{$rw3}}}}, {{ {{$r0}}, {{$r1}}}}, {{{{$r2}}}}, {{{{$rw0}},{{$rw1}},{{$rw2}},{{$rw3}}}};",
         [("register-count", "{ {"), ("register-count", "{{$")]),
    ],
)  # fmt: skip
def test_operands_of_mlir(sources: Sources, line: str, rules: list[tuple[str, str]]) -> None:
    """``nvvm.inline_ptx`` writes them in braces, which make no list."""
    count, found = sources.rules(f'inline_ptx("{line}", read_only_args=[a])', "python")
    assert (count, [(rule, text[:3]) for rule, text in found]) == (1, rules)


def test_cuda_in_python(sources: Sources) -> None:
    text = f"SOURCE = r'''\n{asm()}\n'''\nOTHER = '''{asm(_MMA + '.bad;').replace(chr(92), '')}'''\n"
    count, findings = sources.check(text, "python")
    assert count == 2
    assert [(finding.rule, finding.line) for finding in findings] == [("unknown-instruction", 10)]


def test_escapes_of_python(sources: Sources) -> None:
    text = 'x = "\\n\\t\\x20\\N{SPACE}" if a else "wgmma.\\\nfence.\\x62ad.really;"\n'
    _, findings = sources.check(text, "python")
    assert [(finding.line, text.split("\n")[1][finding.column - 1 :][:7]) for finding in findings] == [(2, "\\x62ad.")]


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
def test_python_that_is_passed_over(sources: Sources, text: str) -> None:
    with contextlib.suppress(NotPythonError):
        assert sources.check(text, "python")[1] == []


@pytest.mark.parametrize("text", ["x = (", "\tx\n  y\n"])
def test_what_is_not_python_is_refused(sources: Sources, text: str) -> None:
    before = 'x = "wgmma.fence.sync.aligned;"\ny = "wgmma.fence.sync.aligned;"\n'
    with pytest.raises(NotPythonError, match=r"line [345] is not Python"):
        sources.check(before + text, "python")


# --- everything ---


@given(
    st.lists(
        st.sampled_from(['"', "asm(", ")", ":", "mma.x;", "\\", "\n", "'", "/*", "*/", "//", 'R"(', "%0", "{", "[a]", "é"]), max_size=30
    ),
    st.sampled_from(_LANGUAGES),
)
def test_any_source_is_read(catalog: Catalog, pieces: list[str], language: str) -> None:
    spec = catalog.database.spec
    with contextlib.suppress(NotPythonError):
        for function in inline_assembly.functions(["".join(pieces).encode()], language, Opcodes(spec), spec):
            assert function.uncovered >= 0
            for statement in function.statements():
                line, column = function.position(statement.start)
                assert line >= 1
                assert column >= 1
                function.source(statement.start)


@given(st.binary(max_size=60), st.sampled_from(_LANGUAGES))
def test_any_bytes_are_read(catalog: Catalog, data: bytes, language: str) -> None:
    spec = catalog.database.spec
    for text in (data, b'asm("mma' + data + b';");', b"x = 'mma" + data + b";'"):
        with contextlib.suppress(NotPythonError):
            list(inline_assembly.functions([text], language, Opcodes(spec), spec))
