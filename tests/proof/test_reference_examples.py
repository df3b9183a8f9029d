"""The examples that a reference prints: found, completed, assembled; and what the errata say that tools answered."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.requirements import version_key
from ptxmma.evidence import facts
from ptxmma.generator.emit.database import rows
from ptxmma.generator.emit.docs import family
from ptxmma.model import Sighting
from ptxmma_proof import assemblers, errata, examples, reference
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.examples import Record
from ptxmma_proof.legality import Legality

_EVIDENCE = paths.SPEC / "evidence" / "examples.json"

#: Sections in our own words: code between fences, indented, and below a label.
_MARKDOWN = """
## 7.1. Adding up [link](#adding)

A first paragraph; mma.sync is no example here.

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
fence.sc.cta;
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
    # The same section as another page: nothing new but its last example.
    (tmp_path / "c.md").write_text(f"{_MARKDOWN}\n# 7.4. More\n\n```\nwgmma.fence.sync.aligned;\n```\n", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def pinned() -> list[Assembler]:
    found = assemblers.fetched()
    if not found:
        pytest.skip("no ptxas is fetched: run `make assemblers`")
    return found


@pytest.fixture(scope="module")
def evidence() -> examples.Report:
    return examples.load(_EVIDENCE)


# --- finding ----------------------------------------------------------------------------------------------------------------


def test_examples_are_found_in_every_kind_of_text(book: Path, catalog: Catalog) -> None:
    found = reference.find(book, examples.opcodes(catalog))
    assert [(one.section, one.ordinal, one.lines) for one in found] == [
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
    assert not whole.shortened
    assert bare.shortened
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
    told: list[tuple[int, int]] = []
    report = examples.run(catalog, book, pinned, "2001-02-03", lambda done, of: told.append((done, of)))
    assert told == [(number, 7) for number in range(1, 8)]
    whole, faulty, bare, wait, illegal, proxy, fence = report.examples
    assert whole.literal.accepted
    assert not whole.supplied
    assert fence.literal.accepted
    assert proxy.literal.accepted
    assert proxy.instructions == ("fence.proxy.async",)

    assert [attempt.accepted for attempt in faulty.attempts] == [False, False, True]
    assert faulty.fails
    assert (faulty.literal.said[0].line, "'far'" in faulty.literal.said[0].text) == (2, True)
    assert faulty.supplied == {"s32": 4, "b32": 3}

    assert [attempt.accepted for attempt in bare.attempts] == [False, True]
    assert bare.supplied == {"b32": 6, "f32": 4}
    assert bare.left_out

    assert [attempt.accepted for attempt in wait.attempts] == [False, True]
    assert wait.supplied == {"immediate": 1}
    assert wait.target == "sm_90a"

    assert [attempt.accepted for attempt in illegal.attempts] == [False] * 3
    assert illegal.library == illegal.instructions
    assert all(record.agrees for record in report.examples)
    assert report.unexplained == [faulty, illegal]
    assert "7.1, example 2" in str(faulty)
    assert report.counts == examples.Counts(examples=7, literal=3, declared=2, redeclared=1, refused=1, disagreements=0)
    assert report.date == "2001-02-03"


@pytest.mark.ptxas
def test_the_library_is_asked_with_the_types_of_the_text(tmp_path: Path, catalog: Catalog, pinned: list[Assembler]) -> None:
    """bf16 in f16x2 registers: assemblers refuse it, and the library says so."""
    operands = "{d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {d0, d1, d2, d3};"
    text = f".reg .f32 d<4>;\n.reg .f16x2 a<4>, b<2>;\nmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {operands}\n"
    (tmp_path / "page").write_text(f"1.1. One\n\n```\n{text}```\n", encoding="utf-8")
    (record,) = examples.run(catalog, tmp_path, pinned, "2001-02-03").examples
    assert [attempt.accepted for attempt in record.attempts] == [False, False, True]
    assert record.agrees
    legality = Legality(catalog)
    seen = Sighting(tool="", target="sm_80", asked=f"{record.instructions[0]} 4f32 4f16x2 2f16x2 4f32", answer="")
    assert errata.database(legality, seen, "9.0") == "refuses"


@pytest.mark.ptxas
def test_a_report_is_read_back_and_the_same_each_time(book: Path, tmp_path: Path, catalog: Catalog, pinned: list[Assembler]) -> None:
    report = examples.run(catalog, book, pinned[-1:], "2001-02-03")
    path = tmp_path / "report"
    path.write_text(examples.text(report), encoding="utf-8")
    assert examples.load(path) == report
    path.unlink()
    assert examples.text(examples.run(catalog, book, pinned[-1:], "2001-02-03")) == examples.text(report)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=str(path)):
        examples.load(path)


# --- what is checked in -----------------------------------------------------------------------------------------------------


def test_the_evidence_belongs_to_this_spec(evidence: examples.Report, catalog: Catalog) -> None:
    assert evidence.facts == facts.printed(catalog, (name for record in evidence.examples for name in record.instructions))
    assert evidence.document == catalog.database.spec.document
    assert evidence.counts.examples == len(evidence.examples) > 20


def test_the_schema_is_that_of_the_report() -> None:
    stored = json.loads((paths.SCHEMAS / "evidence_examples.schema.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(examples.schema()))


def _failing(evidence: examples.Report) -> list[Record]:
    return [record for record in evidence.examples if record.fails]


def test_every_failing_example_names_an_erratum(evidence: examples.Report, catalog: Catalog) -> None:
    known = {erratum.id for erratum in catalog.database.spec.errata}
    assert _failing(evidence)
    for record in _failing(evidence):
        assert record.errata, str(record)
        assert set(record.errata) <= known
    assert not evidence.unexplained


def test_errata_say_of_examples_what_the_evidence_says(evidence: examples.Report, catalog: Catalog) -> None:
    records = {record.sha256: record for record in evidence.examples}
    checked = 0
    for erratum in catalog.database.spec.errata:
        for seen in erratum.seen:
            if seen.example:
                record = records[seen.example]
                answers = {f"line {said.line}: {said.text}" for attempt in record.attempts for said in attempt.said}
                assert seen.answer in answers | ({errata.ACCEPTED} if not record.fails else set()), erratum.id
                assert (seen.tool, seen.target, record.section) == (f"ptxas {record.cuda}", record.target, erratum.section)
                assert erratum.id in record.errata
                checked += 1
    assert checked >= len(_failing(evidence))


def test_the_database_says_what_the_errata_say_of_it(catalog: Catalog) -> None:
    legality = Legality(catalog)
    versions = {entry.cuda: entry.version for entry in catalog.database.spec.isa_versions}
    checked = 0
    for erratum in catalog.database.spec.errata:
        for seen in erratum.seen:
            last = seen.tool.split()[-1]
            if not seen.tool.startswith("ptxas"):
                assert not seen.database
                continue
            # A release without a version of its own speaks the one before.
            spoken = max((v for cuda, v in versions.items() if version_key(cuda) <= version_key(last)), key=version_key)
            assert seen.database == errata.database(legality, seen, seen.ptx or spoken), (erratum.id, seen)
            checked += bool(seen.database)
    assert checked > 50


def test_the_page_and_the_tables_have_every_answer(catalog: Catalog) -> None:
    errata_of_the_spec = catalog.database.spec.errata
    assert all(bool(erratum.seen) != erratum.textual for erratum in errata_of_the_spec)
    seen = [one for erratum in errata_of_the_spec for one in erratum.seen]
    lines = [line for one in family.answers(errata_of_the_spec) for line in one["lines"]]
    assert [line for line in lines if not line.startswith(" ")]
    told = [line for line in lines if line.startswith(" ")]
    assert len(told) == len(seen)
    for line, one in zip(told, seen, strict=True):
        assert line.startswith(f"  {one.tool}, {one.target}")
        assert one.answer in line
    assert [row[1:] for row in rows.tables(catalog)["sightings"]] == [msgspec.structs.astuple(one) for one in seen]


@pytest.mark.ptxas
def test_assemblers_answer_what_the_errata_say(catalog: Catalog, pinned: list[Assembler]) -> None:
    """The oldest, the newest and one in between; ``python -m ptxmma_proof --reference`` asks all."""
    asked, found = errata.differences(catalog, pinned[::8])
    assert not list(map(str, found))
    assert asked > 50


@pytest.mark.ptxas
def test_an_answer_that_changed_is_told(catalog: Catalog, pinned: list[Assembler]) -> None:
    newest = pinned[-1]
    seen = Sighting(tool=f"ptxas {newest.cuda}", target="sm_80", asked="mma.sync.aligned.nothing 4f32 b32", answer=errata.ACCEPTED)
    erratum = msgspec.structs.replace(catalog.database.spec.errata[0], id="invented", seen=(seen,))
    spec = msgspec.structs.replace(catalog.database.spec, errata=(erratum,))
    asked, (found,) = errata.differences(Catalog(msgspec.structs.replace(catalog.database, spec=spec)), [newest])
    assert asked == 1
    assert found == errata.Difference("invented", seen, newest.cuda, "Unknown modifier '.nothing'")
    assert str(found).startswith(f"invented: CUDA {newest.cuda} on sm_80 says \"Unknown modifier '.nothing'\", not 'accepted': mma.")
