"""Evidence: digests of facts, the lines of ``spec/evidence/``, and what is shown without them."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ptxmma
from commands import invoke
from ptxmma import paths
from ptxmma.catalog import digest, evidence
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Answer, Assembled, Compared, Executed, Laid, Run, Sighting, Tool, Witness
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline, proven
from ptxmma.generator.emit.docs import evidence_pages
from ptxmma.model.bitmap import BitMap

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_MMA_SP = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
_TENSOR = "tcgen05.mma.cta_group::1.kind::f16"
_SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
_TOY = "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.happy"


# --- digests ----------------------------------------------------------------------------------------------------------------


def _changed(thing: Any, path: str, value: Any) -> Any:
    """A structure with another value at a place such as ``"shared_memory.swizzles.1.bytes"``."""
    if not path:
        return value
    key, _, rest = path.partition(".")
    if isinstance(thing, tuple):
        return (*thing[: int(key)], _changed(thing[int(key)], rest, value), *thing[int(key) + 1 :])
    return msgspec.structs.replace(thing, **{key: _changed(getattr(thing, key), rest, value)})


def _with(catalog: Catalog, path: str, value: Any) -> Catalog:
    """A catalog whose spec has another value at a place."""
    return Catalog(msgspec.structs.replace(catalog.database, spec=_changed(catalog.database.spec, path, value)))


@pytest.mark.parametrize(
    ("spelling", "path", "value", "same"),
    [
        (_WGMMA, "shared_memory.swizzle_formula", "address", False),
        (_WGMMA, "shared_memory.base_offset", "0", False),
        (_WGMMA, "shared_memory.swizzles.1.bytes", 64, False),
        (_WGMMA, "shared_memory.layouts.0.offset", "0", False),
        (_WGMMA, "descriptors.0.fields.1.low", 17, False),
        (_WGMMA, "shared_memory.swizzles.1.title", "other words", True),
        (_MMA, "shared_memory.swizzle_formula", "address", True),
        (_MMA, "types.elements.0.title", "other words", True),
        (_MMA_SP, "granularities.0.legal", ("0b0100", "0b1000", "0b1001", "0b1100", "0b1101", "0b1110"), False),
        (_MMA_SP, "register_layouts.{metadata}.source", "elsewhere", True),
    ],
)
def test_facts_change_a_digest_and_words_do_not(catalog: Catalog, spelling: str, path: str, value: Any, same: bool) -> None:
    instruction = catalog.find(spelling)
    metadata = instruction.metadata.layout.entry if instruction.sparse else None
    changed = _with(catalog, path.format(metadata=metadata), value)
    assert (digest.computed(changed.find(spelling)) == digest.computed(catalog.find(spelling))) is same


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"title": "other words", "text": "other words", "source": "elsewhere"}, True),
        ({"name": "other_name"}, True),
        ({"at": {"lane": "row", "column": "col"}}, False),
        ({"of": ()}, False),
        ({"unit": "8"}, False),
    ],
)
def test_facts_change_the_digest_of_a_layout_of_tensor_memory(catalog: Catalog, change: dict[str, Any], same: bool) -> None:
    (layout,) = (each for each in catalog.database.spec.tensor_layouts if each.name == "layout_b")
    assert (digest.tensor_layout(msgspec.structs.replace(layout, **change)) == digest.tensor_layout(layout)) is same


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("title", "other words", True),
        ("fields.0.title", "other words", True),
        ("fields.0.source", "elsewhere", True),
        ("name", "other_name", True),
        ("spare", "ignored", False),
        ("fields.0.name", "other_name", False),
        ("fields.0.low", 1, False),
        ("fields.0.width", 1, False),
        ("fields.3.cases.0.values", {"f32": 3}, False),
        ("fields.3.cases.0.targets", ("sm_100a",), False),
    ],
)
def test_facts_change_the_digest_of_a_descriptor(catalog: Catalog, path: str, value: Any, same: bool) -> None:
    format = next(each for each in catalog.database.spec.descriptors if each.name == "tcgen05_instruction")
    assert (digest.descriptor_format(_changed(format, path, value)) == digest.descriptor_format(format)) is same


@pytest.mark.parametrize("spelling", [_MMA, _MMA_SP, _WGMMA, _SCALED])
def test_every_map_of_an_instruction_counts(catalog: Catalog, spelling: str) -> None:
    before = digest.computed(catalog.find(spelling))
    own = {operand.layout.name: operand.layout for operand in catalog.find(spelling).operands if operand.layout}
    assert own
    for name, layout in own.items():
        longest = max(layout.map.bits, key=lambda each: len(layout.map.bits[each]))
        turned = BitMap(layout.map.inputs, layout.map.outputs, layout.map.bits | {longest: layout.map.bits[longest][::-1]})
        other = msgspec.structs.replace(layout, map=turned)
        layouts = tuple(other if each.name == name else each for each in catalog.database.layouts)
        assert digest.computed(Catalog(msgspec.structs.replace(catalog.database, layouts=layouts)).find(spelling)) != before, name


def test_another_target_leaves_the_answers_about_others_as_they_are(catalog: Catalog) -> None:
    instruction = catalog.find(_MMA)
    some = list(instruction.accepted_by())[:4]
    assert digest.asked(instruction, some) == digest.asked(instruction, [*some, "sm_999"])
    assert digest.asked(instruction, some) != digest.asked(instruction, some[:3])


def test_every_instruction_has_digests_of_its_own(catalog: Catalog) -> None:
    every = list(catalog.all())
    assert len({digest.asked(each, ()) for each in every}) == len({digest.computed(each) for each in every}) == len(every)


# --- lines ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The toy spec with answers about one of its two instructions."""
    spec = Path(shutil.copytree(Path(__file__).parent / "toy", tmp_path / "toy"))
    (spec / "evidence").mkdir()
    instruction = pipeline.read(spec).find(_TOY)
    date = "2026-01-02"
    witnesses.write(
        spec / "evidence" / "assembler.jsonl",
        [
            Run(
                date=date,
                spec="1",
                tools=tuple(Tool(kind="assembler", name=f"CUDA {cuda}", date=date) for cuda in ("11.7", "11.8", "12.0")),
                targets=("sm_80", "sm_90"),
                totals={"answers": 3, "disagreements": 0, "neighbours": 0, "neighbour_answers": 0, "explained": 0, "unexplained": 0},
            ),
            Answer(name="a", accepted={"sm_80": "7.0 in 11.7; 7.1 in 11.8 to 12.0", "sm_90": "7.8 in 11.8"}),
            Assembled(instruction=_TOY, facts=digest.asked(instruction, ("sm_80", "sm_90")), answer="a"),
        ],
    )
    chip = Tool(kind="chip", name="A chip", date=date)
    witnesses.write(
        spec / "evidence" / "silicon.jsonl",
        [
            Run(
                date=date,
                spec="1",
                tools=(chip,),
                targets=("sm_80",),
                totals={"instructions": 1, "beside": 0, "launches": 4, "replays": 0, "failures": 1},
            ),
            Executed(instruction=_TOY, facts=digest.computed(instruction), launches={"": 4}, wrong=1, machine=("2 HMMA",)),
        ],
    )
    peer = Compared(instruction=_TOY, facts="0" * 12, agree={"a b": ("Good", "Bad")}, differ={"Bad": "d"})
    run = Run(date=date, spec="1", tools=(), totals=dict.fromkeys(("atoms", "places", "passes", "failures", "shapes", "lacking"), 1))
    witnesses.write(spec / "evidence" / "peers.jsonl", [run, peer])
    return spec


def test_lines_become_evidence(toy: Path) -> None:
    catalog = pipeline.read(toy)
    proof = catalog.find(_TOY).evidence
    assert proof.assembled == {"11.7": ("sm_80",), "11.8": ("sm_80", "sm_90"), "12.0": ("sm_80",)}
    [ran] = proof.executed
    assert (ran.chip, ran.launches, ran.wrong, ran.how) == ("A chip", 4, 1, "as several")
    assert (proof.peers, proof.differing, proof.stale) == (("Good",), ("Bad",), ("peers",))
    layout = catalog.find(_TOY).operand("a").layout
    assert layout is not None
    proof_of_layout = evidence.of(catalog.database).of_layout(layout.name)
    assert proof_of_layout.status == "A chip: 4 launches, 1 wrong"
    assert proof_of_layout.agreeing == {"CuTe": 2}
    other = next(each for each in catalog.all() if each.canonical != _TOY)
    assert other.evidence == evidence.Evidence()


def test_a_fact_that_changes_makes_its_own_lines_outdated(toy: Path) -> None:
    file = toy / "layouts.yaml"
    text = file.read_text(encoding="utf-8")
    before = dict(pipeline.read(toy).find(_TOY).evidence.assembled)
    own = 'row: "2 * (lane % 4) + i % 2 + 8 * (i // 2)"\n      col: "lane // 4"'
    assert own in text
    file.write_text(text.replace(own, own.replace("lane // 4", "lane % 8").replace("lane % 4", "lane // 8")), encoding="utf-8")
    changed = pipeline.read(toy).find(_TOY).evidence
    assert changed.stale == ("silicon", "peers")
    assert changed.assembled == before


def test_what_is_missing_or_broken_is_listed_and_no_error(toy: Path, tmp_path: Path) -> None:
    folder = toy / "evidence"
    (folder / "corpus.jsonl").write_text('{"record": "run"}\n', encoding="utf-8")
    targets = toy / "targets.yaml"
    targets.write_text(targets.read_text(encoding="utf-8") + '  - {name: "sm_99", ptx: "7.8", includes: ["sm_90"], source: "1"}\n')
    result = invoke("validate", "--spec", toy)
    assert result.exit_code == 0, result.output
    said = result.stderr.splitlines()
    assert f"{folder / 'mutation.jsonl'}: the file is missing; this witness has not been run" in said
    assert any(line.startswith(f"{folder / 'corpus.jsonl'}:1: ") for line in said)
    assert any(re.search(r"assembler.jsonl: \d+ instructions are unproven: toy\.", line) for line in said)
    assert f"{folder / 'assembler.jsonl'}: these targets are unproven: sm_99" in said
    assert any("peers.jsonl: 1 instructions have changed since: toy." in line for line in said)
    (folder / "assembler.jsonl").write_text("<<<<<<< HEAD\n", encoding="utf-8")
    assert invoke("generate", "--spec", toy, "--out", tmp_path / "out").exit_code == 0
    assert pipeline.read(toy).find(_TOY).evidence.assembled == {}


def test_lines_about_instructions_that_are_gone_are_listed(toy: Path) -> None:
    file = toy / "evidence" / "silicon.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace(".happy", ".angry"), encoding="utf-8")
    said = list(proven.gaps(pipeline.read(toy)))
    assert any("silicon.jsonl: 1 of its instructions are not in the database: toy." in line for line in said)


def test_answers_about_errata_are_evidence(toy: Path) -> None:
    facts = 'section: "1.1", says: "So.", holds: "Not so.", known: "It was seen.", bites: "refused"'
    ids = ('id: "asked"', 'id: "unasked"', 'id: "words", textual: true')
    entries = "".join(f"  - {{{each}, {facts}}}\n" for each in ids)
    (toy / "errata.yaml").write_text(f"kind: errata\nerrata:\n{entries}", encoding="utf-8")
    run = Run(date="2026-01-02", spec="1", tools=(), totals={})
    about = Sighting(erratum="asked", tool="H200", targets=("sm_80", "sm_90"), answer="accepted")
    other = msgspec.structs.replace(about, erratum="gone")
    witnesses.write(toy / "evidence" / "errata.jsonl", [run, other, about])
    catalog = pipeline.read(toy)
    assert evidence.of(catalog.database).sightings == evidence.of(catalog.database).of_erratum("asked") == (about,)
    said = [line.partition("errata.jsonl: ")[2] for line in proven.gaps(catalog) if "errata.jsonl: " in line]
    assert said == ["no tool was asked about 1 errata: unasked", "1 of its errata are not in the database: gone"]


def test_files_are_written_sorted_and_read_back(tmp_path: Path) -> None:
    run = Run(date="2026-01-02", spec="1", tools=(), totals={})
    lines = [Assembled(instruction=name, facts="0" * 12, answer="a") for name in ("b", "a")]
    witnesses.write(tmp_path / "it.jsonl", [*lines, run])
    read = witnesses.read(tmp_path / "it.jsonl")
    assert read == [run, lines[1], lines[0]]
    assert not Witness(tmp_path / "it.jsonl").fault
    witnesses.write(tmp_path / "it.jsonl", lines)
    assert "the first line must be the run" in Witness(tmp_path / "it.jsonl").fault


def test_the_files_of_the_spec_can_be_read_and_are_sorted() -> None:
    for name in witnesses.NAMES:
        path = paths.SPEC / "evidence" / f"{name}.jsonl"
        lines = witnesses.read(path)
        assert isinstance(lines[0], Run)
        instructions = [line.instruction for line in lines if isinstance(line, Assembled | Executed | Compared)]
        assert instructions == sorted(instructions)


# --- the checked-in database ------------------------------------------------------------------------------------------------


def test_show_lists_the_evidence_of_an_instruction() -> None:
    native = ptxmma.instruction(_WGMMA).evidence
    assert all("sm_90a" in targets for targets in native.assembled.values())
    assert [(ran.chip, ran.wrong, ran.native, ran.machine) for ran in native.executed] == [
        ("NVIDIA H200", 0, True, ("1 HGMMA.64x8x16.F32",))
    ]
    assert "SM90::GMMA::MMA_64x8x16_F32F16F16_SS" in native.peers
    replaced = ptxmma.instruction("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32").evidence
    assert [(ran.native, ran.machine) for ran in replaced.executed] == [(False, ("2 HMMA.16816.F32",))]
    later = ptxmma.instruction("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32").evidence
    assert later.assembled
    assert later.status == "not executed"


def test_show_lists_the_evidence_of_layouts_in_tensor_memory() -> None:
    lines = {line.layout: line for line in Witness(paths.SPEC / "evidence" / "tensor_memory.jsonl").of(Laid)}
    types = ["--atype", "bf16", "--btype", "bf16", "--dtype", "f32"]
    shown = invoke("show", "--evidence", _TENSOR, "--m", "64", "--n", "64", *types)
    assert shown.exit_code == 0, shown.output
    for operand, layout in (("d-tmem", "layout_f"), ("a-tmem", "a_half")):
        agreeing = ", ".join(f"{len(definitions)} definitions of {peer}" for peer, definitions in lines[layout].agree.items())
        assert f"{operand} in tensor memory ({layout}): the same layout in {agreeing}\n" in shown.output
    (other,) = lines["a_half"].differ
    assert f"a-tmem in tensor memory (a_half): another layout in {other}\n" in shown.output
    assert "in tensor memory (" not in invoke("show", "--evidence", _TENSOR).output  # nothing is known to lie anywhere
    assert "in tensor memory (" not in invoke("show", "--evidence", _MMA).output


def test_instructions_that_no_assembler_was_asked_about_are_shown_as_unproven(catalog: Catalog) -> None:
    proofs = evidence.of(catalog.database)
    unproven = [each.canonical for each in catalog.all() if not proofs.of(each.canonical).assembled]
    said = [line.partition("assembler.jsonl: ")[2] for line in proven.gaps(catalog)]
    counts = [int(line.split()[0]) for line in said if "instructions are unproven: " in line]
    assert counts == [len(unproven)] * bool(unproven)


def test_a_layout_has_its_evidence(catalog: Catalog) -> None:
    ran = ptxmma.instruction(_MMA).operand("a").layout
    assert ran is not None
    summary = evidence.of(catalog.database)
    proof = summary.of_layout(ran.name)
    (executed,) = proof.executed
    assert executed.chip == "NVIDIA H200"
    assert executed.instructions > 1
    assert proof.agreeing["CuTe"] > 1
    assert proof.status == f"NVIDIA H200: {executed.launches} launches"
    assert summary.of_layout("of no database").status == "not executed"


def test_a_spec_without_evidence_has_none(tmp_path: Path) -> None:
    spec = shutil.copytree(Path(__file__).parent / "toy", tmp_path / "spec", ignore=shutil.ignore_patterns("evidence"))
    assert pipeline.read(spec).find(_TOY).evidence == evidence.Evidence()


def test_the_sql_has_it_too(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "it.sqlite")
    database.executescript((paths.GENERATED / "database" / "ptxmma.sql").read_text(encoding="utf-8"))
    replaced = database.execute("SELECT canonical, machine FROM executions JOIN variants ON id = variant WHERE NOT native").fetchall()
    assert ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "2 HMMA.16816.F32") in replaced
    (launched,) = database.execute("SELECT count(*) FROM layout_launches").fetchone()
    assert launched > 100


@pytest.mark.parametrize(
    ("proofs", "sentence"),
    [
        (
            [{"agreeing": {"CuTe": 1}, "origin": "CUTLASS"}],
            "Agrees with CuTe (1 definition); not run on a chip. One source: CUTLASS.",
        ),
        (
            [{"agreeing": {"CuTe": 1200}}, {"agreeing": {"CuTe": 34, "TVM": 1, "JAX": 2}}],
            "Agrees with CuTe (1,234 definitions), TVM (1 definition) and JAX (2 definitions); not run on a chip.",
        ),
        (
            [{"agreeing": {"CuTe": 2}, "differing": ("an_atom",)}],
            "Agrees with CuTe (2 definitions); ``an_atom`` differs; not run on a chip.",
        ),
        ([{"differing": ("one", "two")}], "No other project agrees; ``one``, ``two`` differ; not run on a chip."),
        (
            [{"executed": (evidence.LayoutRuns(chip="A chip", launches=3, instructions=1),)}],
            "Compared with no other project; run on A chip.",
        ),
        (
            [{"agreeing": {"CuTe": 2}, "executed": (evidence.LayoutRuns(chip="A chip", launches=3, instructions=1),), "stale": ("peers",)}],
            "Agrees with CuTe (2 definitions); run on A chip. A formula has changed since.",
        ),
        ([], "Compared with no other project; not run on a chip."),
    ],
)
def test_pages_name_the_witnesses_of_a_layout(proofs: list[dict[str, Any]], sentence: str) -> None:
    assert evidence_pages.agreement(evidence.LayoutEvidence(**proof) for proof in proofs) == sentence
