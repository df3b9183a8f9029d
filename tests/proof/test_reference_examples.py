"""The examples of a reference: found, completed, assembled; and the sightings of the errata, asked again."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest

from ptxmma.catalog import evidence
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.docs import errata_page
from ptxmma.model import Version
from ptxmma_proof import assemblers, errata, examples, reference
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.line_legality import Legality

#: Sections in our own words: code between fences, indented, and below a label.
_MARKDOWN = """
## 7.1. Adding up [link](#adding)

A first paragraph; mma.sync is not an example here.

Syntax

```
mma.sync.aligned.shape.row.col.s32.s8.s8.s32  d, a, b, c;

.shape = {.m16n8k16, .m16n8k32};
```

Examples

```
// complete
.reg .s32 sum<4>;
.reg .b32 left<2>, right;
mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {sum0, sum1, sum2, sum3}, {left0, left1}, {right},
   {sum0, sum1, sum2, sum3};

// without the comma
.reg .s32 sum<4> far;
.reg .b32 left<2>, right;
mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {sum0, sum1, sum2, sum3}, {left0, left1}, {right}, {sum0, sum1, sum2, sum3};
```

### 7.1.1. Formulas

    row = 8 * (i / 2);

Nothing is declared:

    // a comment
    mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%s08, %s1, %s2, %s3}, {%u, %v}, {%w, %x},
        {%s08, %s1, %s2, %s3}, %meta, 0x1;
    ...
    mov.b32 %u, %fresh;
"""
_PLAIN = """7.2. Waiting

Examples

ptx
wgmma.wait_group.sync.aligned Most;

Examples of what cannot be

ptx
.reg .f32 sum<4>;
.reg .b32 a<4>, b<2>;
mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {sum0, sum1, sum2, sum3}, {a0, a1, a2, a3}, {b0, b1}, {sum0, sum1, sum2, sum3};

7.3. After

ptx
membar.cta;
mma_of_another_kind a, b;
add.s32 a, b, c;

Example

ptx
fence.proxy.async;
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text(_MARKDOWN, encoding="utf-8")
    (tmp_path / "b.txt").write_text(_PLAIN, encoding="utf-8")
    # The same section on another page, where only the last example is new.
    (tmp_path / "c.md").write_text(f"{_MARKDOWN}\n# 7.4. More\n\n```\nwgmma.fence.sync.aligned;\n```\n", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def pinned() -> list[Assembler]:
    fetched = assemblers.fetched()
    if not fetched:
        pytest.skip("no ptxas is fetched: run `make assemblers`")
    return fetched


# --- finding ----------------------------------------------------------------------------------------------------------------


def test_examples_are_found_in_every_kind_of_text(book: Path, catalog: Catalog) -> None:
    printed = reference.find(book, examples.opcodes(catalog))
    assert [(one.section, one.ordinal, one.lines) for one in printed] == [
        ("7.1", 1, 5),
        ("7.1", 2, 4),
        ("7.1.1", 1, 5),
        ("7.2", 1, 1),
        ("7.2", 2, 3),
        ("7.3", 1, 1),
        ("7.4", 1, 1),
    ]


def test_an_example_is_taken_apart(book: Path) -> None:
    whole, faulty, bare, *_ = reference.find(book, ["mma", "wgmma"])
    assert whole.declared == {**{f"sum{i}": "s32" for i in range(4)}, "left0": "b32", "left1": "b32", "right": "b32"}
    assert faulty.declared == {**whole.declared, "far": "s32"}
    assert "..." not in bare.whole
    assert len(bare.whole.splitlines()) == bare.lines
    assert [one.spelling for one in bare.statements] == ["mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mov.b32"]
    assert bare.statements[0].operands[1:3] == ("{%u, %v}", "{%w, %x}")
    assert bare.statements[1].names == ["%u", "%fresh"]
    assert str(bare.statements[1]) == "mov.b32 %u, %fresh;"


def test_a_digest_is_that_of_the_text_without_its_spaces(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        (tmp_path / "page").write_text(f"1.2. One\n\n{text}\n", encoding="utf-8")
        return reference.find(tmp_path, ["mma"])[0].sha256

    first = digest("```\nmma.x a,\n  b;\n```")
    assert first == digest("    mma.x a,\n\n    b;")
    assert first != digest("```\nmma.x b,\n  a;\n```")


def test_a_directory_without_examples_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("1.1. Nothing\n\n```\nadd.s32 a, b, c;\n```\n", encoding="utf-8")
    with pytest.raises(reference.NoExamplesError, match=rf"{tmp_path}: no example"):
        reference.find(tmp_path, ["mma"])


# --- assembling -------------------------------------------------------------------------------------------------------------


@pytest.mark.ptxas
def test_examples_are_completed_and_assembled(book: Path, catalog: Catalog, pinned: list[Assembler]) -> None:
    steps: list[tuple[int, int]] = []
    report = examples.run(catalog, book, pinned, lambda done, of: steps.append((done, of)))
    assert steps == [(number, 7) for number in range(1, 8)]
    whole, faulty, bare, wait, illegal, proxy, fence = report.records
    ends = {"whole": whole, "faulty": faulty, "bare": bare, "wait": wait, "illegal": illegal, "proxy": proxy, "fence": fence}
    assert {name: [attempt.accepted for attempt in record.attempts] for name, record in ends.items()} == {
        "whole": [True],
        "faulty": [False, False, True],
        "bare": [False, True],
        "wait": [False, True],
        "illegal": [False, False, False],
        "proxy": [True],
        "fence": [True],
    }
    literal = faulty.attempts[0]
    assert (literal.said[0].line, "'far'" in literal.said[0].text) == (2, True)
    assert all(record.agrees for record in report.records)
    assert report.unexplained == [faulty, illegal]
    assert "7.1, example 2" in str(faulty)
    assert report.totals == {"examples": 7, "literal": 3, "declared": 2, "redeclared": 1, "refused": 1, "disagreements": 0}
    [run] = report.record(catalog, pinned, "2001-02-03")
    assert isinstance(run, witnesses.Run)
    assert (run.date, run.totals) == ("2001-02-03", report.totals)


@pytest.mark.ptxas
def test_the_library_is_asked_with_the_types_of_the_text(tmp_path: Path, catalog: Catalog, pinned: list[Assembler]) -> None:
    """bf16 in f16x2 registers, which assemblers and the library refuse."""
    operands = "{d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {d0, d1, d2, d3};"
    text = f".reg .f32 d<4>;\n.reg .f16x2 a<4>, b<2>;\nmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {operands}\n"
    (tmp_path / "page").write_text(f"1.1. One\n\n```\n{text}```\n", encoding="utf-8")
    (record,) = examples.run(catalog, tmp_path, pinned).records
    assert [attempt.accepted for attempt in record.attempts] == [False, False, True]
    assert record.agrees
    legality = Legality(catalog)
    asked = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 4f32 4f16x2 2f16x2 4f32"
    seen = Sighting(erratum="", tool="", targets=("sm_80",), asked=asked, answer="")
    assert errata.database(legality, seen, "sm_80", "9.0") == "refuses"


def test_the_database_says_what_the_errata_say_of_it(catalog: Catalog) -> None:
    legality = Legality(catalog)
    versions = {entry.cuda: entry.version for entry in catalog.database.spec.isa_versions}
    checked = 0
    for seen in evidence.of(catalog.database).sightings:
        last = seen.tool.split()[-1]
        if not seen.tool.startswith("ptxas"):
            assert not seen.database
            continue
        # A release without a new version speaks the one before.
        spoken = max((v for cuda, v in versions.items() if Version(cuda) <= last), key=Version)
        for target in seen.targets:
            assert seen.database == errata.database(legality, seen, target, seen.ptx or spoken), seen
        checked += bool(seen.database)
    assert checked > 50


def test_each_erratum_has_answers_or_is_textual_and_the_page_has_them(catalog: Catalog) -> None:
    known = evidence.of(catalog.database)
    assert {seen.erratum for seen in known.sightings} == {erratum.id for erratum in catalog.database.spec.errata if not erratum.textual}
    for erratum in catalog.database.spec.errata:
        questions: list[str] = []
        said = []
        for indented, lines in itertools.groupby(errata_page.answers(known.of_erratum(erratum.id)), lambda line: line.startswith(" ")):
            if not indented:
                questions = [*lines]
                continue
            answers = []
            for line in lines:
                where, answer = line.strip().split(": ", 1)
                tool, *targets = where.partition(" compiled for ")[0].split(", ")
                answers.append((tool, tuple(target for target in targets if not target.startswith("PTX ISA ")), answer))
            said += [(question, *each) for question in questions for each in answers]
        left = [*known.of_erratum(erratum.id)]
        for asked, by, on, said_so in said:
            left.remove(
                next(
                    one
                    for one in left
                    if (by, on) == (one.tool, one.targets) and said_so.startswith(one.answer) and one.asked in ("", asked)
                )
            )
        assert not left, erratum.id


@pytest.mark.ptxas
def test_assemblers_answer_what_the_errata_say(catalog: Catalog, pinned: list[Assembler]) -> None:
    """The oldest, the newest and one in between; ``python -m ptxmma_proof reference`` asks all."""
    asked, differing = errata.differences(catalog, pinned[::8])
    assert not list(map(str, differing))
    assert asked > 50


@pytest.mark.ptxas
def test_an_answer_that_changed_is_a_difference(catalog: Catalog, pinned: list[Assembler]) -> None:
    newest = pinned[-1]
    seen = Sighting(
        erratum="invented",
        tool=f"ptxas {newest.cuda}",
        targets=("sm_80",),
        asked="mma.sync.aligned.nothing 4f32 b32",
        answer=errata.ACCEPTED,
    )
    summary = msgspec.structs.replace(evidence.of(catalog.database), sightings=(seen,))
    database = msgspec.structs.replace(catalog.database)
    database.memo["evidence"] = summary
    asked, (difference,) = errata.differences(Catalog(database), [newest])
    assert asked == 1
    assert difference == errata.Difference(seen, "sm_80", newest.cuda, "Unknown modifier '.nothing'")
    assert str(difference).startswith(f"invented: CUDA {newest.cuda} on sm_80 says \"Unknown modifier '.nothing'\", not 'accepted': mma.")
