"""The mutation engine on the toy spec: mutants that each check must kill, and one that must survive."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from ptxmma import elements, paths, ptx
from ptxmma.evidence import facts, reports
from ptxmma.evidence.silicon import Chip, Compiler, Execution, Launch, Silicon
from ptxmma.generator import pipeline
from ptxmma.generator.load import load
from ptxmma.instructions import Catalog
from ptxmma.verify import mutation
from ptxmma.verify import report as answers
from ptxmma.verify.mutation import formulas, prose, published
from ptxmma.verify.mutation import report as mutation_report
from ptxmma.verify.mutation.assembled import Assemblers
from ptxmma.verify.mutation.mutants import Mutant, applied, mutants, sample
from ptxmma.verify.mutation.trial import Evidence, Trial, Verdict
from ptxmma.verify.silicon import replay
from ptxmma.verify.silicon.kernels import Kernel

_TOY = Path(__file__).parent / "toy"


def _answers(catalog: Catalog) -> answers.Report:
    """The answers of an assembler that agrees with a catalog."""
    spec = catalog.database.spec
    newest = spec.isa_versions[-1]
    said = {found.canonical: found.accepted_by() for found in catalog.all()}
    return {
        "kind": "assembler evidence",
        "date": "2026-01-01",
        "assemblers": [
            {
                "cuda": newest.cuda,
                "build": "11.8.0",
                "ptx": newest.version,
                "sha256": "0" * 64,
                "targets": [one.name for one in spec.targets],
            }
        ],
        "versions": [entry.version for entry in spec.isa_versions],
        "facts": facts.accepted(catalog),
        "asked": {},
        "answers": [
            {"accepted": {newest.cuda: said[found.canonical]}, "lines": [ptx.compact(line) for line in ptx.lines(found)]}
            for found in catalog.all()
        ],
        "explained": [],
        "disagreements": [],
        "negative": {"families": {}, "explained": [], "disagreements": []},
    }


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """An assembler that knows the toy instruction."""
    path = tmp_path_factory.mktemp("evidence") / "assembler.json"
    path.write_text(json.dumps(_answers(pipeline.read(_TOY))), encoding="utf-8")
    return Evidence(assemblers=path)


@pytest.fixture(scope="module")
def trial(evidence: Evidence) -> Trial:
    return Trial(_TOY, evidence)


@pytest.fixture(scope="module")
def every(trial: Trial) -> dict[str, Mutant]:
    return {mutant.identity: mutant for mutant in mutants(trial.documents)}


@pytest.mark.parametrize(
    ("identity", "check"),
    {
        "targets.yaml: targets/0/name: sm_80 -> sm_90": "rules",
        "types.yaml: elements/0/bits: 16 -> 17": "number formats",
        "types.yaml: registers/0/name: b32 -> f32": "rules",
        "fragments.yaml: fragments/2/row: lane // 4 + 8 * (i // 2) -> lane // 4 + 9 * (i // 2)": "layouts",
        "fragments.yaml: fragments/0/stated/0/registers: 4 -> 5": "stated formulas",
        "types.yaml: elements/0/bias: 15 -> 16": "number formats",
        "types.yaml: registers/0/bits: 32 -> 64": "C types",
        "instructions/toy.yaml: requires/1/targets/0: sm_90 -> sm_80": "assemblers",
        "instructions/toy.yaml: operand_kinds/knob/limit: 3 -> 4": "assemblers",
        "instructions/toy.yaml: forms/0/mood/2: sad -> nothing": "rules",
    }.items(),
)
def test_what_kills_a_mutant(trial: Trial, every: dict[str, Mutant], identity: str, check: str) -> None:
    assert trial.judge(every[identity]).check == check


def test_a_fact_that_nothing_knows_survives(trial: Trial, every: dict[str, Mutant]) -> None:
    found = trial.judge(every["instructions/toy.yaml: operand_kinds/knob/default: 0 -> 1"])
    assert found.check == ""
    assert "generated/database/ptxmma.json" in found.outputs


def test_what_says_the_same_in_other_words_is_told_apart(trial: Trial, every: dict[str, Mutant]) -> None:
    """sm_90 has the features of sm_80 anyway."""
    mutant = every["instructions/toy.yaml: requires/0/targets: [sm_80] -> [sm_80, sm_90]"]
    found = trial.judge(mutant)
    assert (found.check, found.reworded) == ("", True)
    assert "generated/database/ptxmma.json" in found.outputs
    made = mutation_report.compose(
        [(mutant, found), (mutant, found._replace(reworded=False)), (mutant, Verdict(""))],
        [],
        date="2026-01-01",
        spec="0.0.1",
        evidence={},
        all=3,
        seed=0,
        processes=1,
        seconds=0,
    )
    assert made.reworded == made.unchanged == (mutant.identity,)
    assert [survivor.mutant for survivor in made.survivors] == [mutant.identity]


_SEMANTICS = """
semantics:
  - multiply: "at least f32"
    accumulate: "at least f32"
    sums: "f32"
    observed: [{chip: "toy", target: "sm_90", text: "It sums.", source: "toy"}]
    text: "Products and sums have at least single precision."
    source: "3.1"
"""


def test_the_chip_kills_what_it_computed_otherwise(tmp_path: Path) -> None:
    """A chip that computes as the toy spec says."""
    spec = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    with (spec / "instructions" / "toy.yaml").open("a", encoding="utf-8") as file:
        file.write(_SEMANTICS)
    catalog = pipeline.read(spec)
    ran = catalog.find("toy.sync.aligned.m16n8k16.f32.f16.f16.f32.sad")
    launch = Launch(seed=1, d="")
    launch = msgspec.structs.replace(launch, d=replay.emulated(Kernel(ran, ran.forms[0]), launch))
    made = Silicon(
        date="2026-01-01",
        spec="0.0.1",
        target="sm_90",
        chip=Chip(name="a toy", compute_capability="9.0", driver="1"),
        compiler=Compiler(cuda="11.8", nvcc="", ptxas_sha256=""),
        instructions=(Execution(instruction=ran.canonical, facts="", launches=1, machine=(), replays=(launch,)),),
        layouts=(),
        shared_memory=(),
        failures=(),
        observations=(),
    )
    path = tmp_path / "silicon.json"
    path.write_text(reports.text(made), encoding="utf-8")
    trial = Trial(spec, Evidence(silicon=path))
    every = {mutant.identity: mutant for mutant in mutants(trial.documents)}
    # B's rows in another order: every rule holds, no formula is printed for it.
    fragments = next(mutant for mutant in every.values() if mutant.path[:3] == ("fragments", 1, "row"))
    moved = trial.judge(fragments._replace(after="lane % 4 + 4 * (i % 2) + 8 * (i // 2)"))
    assert (moved.check, moved.fact) == ("chip", f"D of {ran.canonical} by the chip (a toy), seed 1")
    syntax = next(mutant for mutant in every.values() if mutant.path == ("syntax",) and ".{shape}.aligned." in mutant.after)
    taken = trial.judge(syntax)
    assert (taken.check, taken.fact) == ("chip", f"the chip (a toy) runs {ran.canonical}")
    unseen = trial.judge(every["instructions/toy.yaml: semantics/0/observed/0: {chip: toy, target: sm_90} -> nothing"])
    assert unseen.check == "chip"


def test_evidence_of_another_spec_is_refused(tmp_path: Path, evidence: Evidence) -> None:
    other = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    path = other / "instructions" / "toy.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("happy", "merry"), encoding="utf-8")
    with pytest.raises(ValueError, match="about another spec"):
        Trial(other, evidence)


def test_evidence_that_contradicts_the_spec_proves_nothing(tmp_path: Path) -> None:
    told = dict(_answers(pipeline.read(_TOY)))
    told["versions"] = [*told["versions"], "9.9"]
    path = tmp_path / "assembler.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(ValueError, match=r"contradicts the spec itself.*knows version 9\.9"):
        Trial(_TOY, Evidence(assemblers=path))


# --- mutants ----------------------------------------------------------------------------------------------------------------


def test_mutants_change_one_thing_each_and_prose_never() -> None:
    documents = load(_TOY)
    found = mutants(documents)
    assert len({mutant.identity for mutant in found}) == len(found) > 200
    assert {mutant.kind for mutant in found} == {"number", "operator", "variable", "value", "list", "condition", "flag"}
    for mutant in found:
        changed = applied(documents, mutant)
        assert [number for number, document in enumerate(changed) if document.data != documents[number].data] == [mutant.number]
        keys = [key for key in mutant.path if isinstance(key, str)]
        assert not prose.left_out(keys), mutant.identity


def test_the_list_and_the_sample_are_the_same_each_time() -> None:
    found = mutants(load(paths.SPEC))
    assert found == mutants(load(paths.SPEC))
    files = {mutant.yaml for mutant in found}
    chosen = sample(found, 1000, 1)
    assert chosen == sample(found, 1000, 1) != sample(found, 1000, 2)
    assert 1000 <= len(chosen) <= 1200
    assert {mutant.yaml for mutant in chosen} == files
    assert sample(found, 0, 1) == found


def test_every_reason_to_leave_something_out_is_needed() -> None:
    keys = {part for document in load(paths.SPEC) for part in _keys(document.data)}
    for name in prose.LEFT_OUT:
        assert name.rpartition(".")[2] in keys, f"{name} is in no document"
    for name in prose.KEPT:
        assert name.rpartition(".")[2] in prose.LEFT_OUT, f"{name} would be kept anyway"


def _keys(data: object) -> set[str]:
    if isinstance(data, dict):
        return set(data).union(*map(_keys, data.values()))
    return set().union(*map(_keys, data)) if isinstance(data, list) else set()


def test_formulas_change_in_one_place() -> None:
    assert list(formulas.changed("2 * lane % 4", ["i", "lane"])) == [
        ("number", "3 * lane % 4"),
        ("number", "1 * lane % 4"),
        ("number", "4 * lane % 4"),
        ("operator", "2 + lane % 4"),
        ("variable", "2 * i % 4"),
        ("operator", "2 * lane // 4"),
        ("number", "2 * lane % 5"),
        ("number", "2 * lane % 3"),
        ("number", "2 * lane % 8"),
    ]
    assert list(formulas.changed("i < 2 and not i", ["i"])) == [
        ("operator", "i <= 2 and not i"),
        ("number", "i < 3 and not i"),
        ("number", "i < 1 and not i"),
        ("number", "i < 4 and not i"),
        ("operator", "i < 2 or not i"),
    ]


# --- checks -----------------------------------------------------------------------------------------------------------------


def test_lines_that_nobody_was_asked_about_contradict_nothing() -> None:
    catalog = pipeline.read(_TOY)
    held = Assemblers(_answers(catalog), catalog)
    line = ptx.lines(next(catalog.all()))[0]
    assert held.accepted_by(line) == {"sm_80": "7.0", "sm_90": "7.8"}
    assert held.accepted_by(line.replace(".m16n8k16", ".m16n8k32")) == {}
    assert held.accepted_by(line.replace(".m16n8k16", ".m16n8k32").replace(".sync", ".async")) is None


def test_number_formats_decode_as_the_libraries_do(catalog: Catalog) -> None:
    for element in catalog.database.spec.types.elements:
        if element.form == "float" and element.bits <= 16 and element.sign:
            codes = np.arange(1 << element.bits).astype(elements.bits_dtype(element))
            np.testing.assert_array_equal(published._decoded(codes, element), elements.numbers(codes, element))


@pytest.fixture(scope="module")
def whole() -> Trial:
    """The whole spec, held against itself and against libraries alone."""
    return Trial(paths.SPEC, Evidence())


@pytest.mark.parametrize(
    ("identity", "check", "fact"),
    [
        ("block_scaling.yaml: block_scaling/0/blocks: 1 -> 2", "rules", "has 2 blocks here, and 1 in its layout"),
        ("block_scaling.yaml: block_scaling/3/stypes/1: ue4m3 -> nothing", "rules", "has the scale types ue4m3, ue8m0"),
        ("block_scaling.yaml: block_formats/5/block: 16 -> 17", "rules", "has 4 blocks along k, not of 17 elements"),
        (
            "protocol.yaml: steps/2/instruction: fence.proxy.async -> wgmma.commit_group",
            "rules",
            "only orders others, and is no step of the protocol",
        ),
        ("targets.yaml: targets/12/includes: [sm_100f] -> [sm_100f, sm_101]", "rules", "must include sm_100f and nothing else"),
        ("instructions/mma.yaml: requires/5/ptx: 7.8 -> 7.1", "rules", "no target that this rule admits is known to 7.1"),
        ("instructions/mma.yaml: operand_kinds/byte-id-a/immediate: true -> false", "rules", "may be an immediate"),
        ("instructions/wgmma.yaml: operand_kinds/a-desc/of: a -> b", "rules", "two operands of kind descriptor are of 'b'"),
        ("instructions/wgmma.yaml: asynchronous: true -> false", "said twice", "its name says whether it is asynchronous"),
        ("instructions/wgmma.yaml: semantics/3/truncates: 13 -> 14", "said twice", "That does not say 14"),
        ("shared_memory.yaml: alignment: 16 -> 17", "said twice", "do not hold multiples of 17 bytes"),
        ("shared_memory.yaml: banks/count: 32 -> 64", "said twice", "the widest swizzle is not as wide as the banks"),
        ("shared_memory.yaml: swizzles/1/cute: Swizzle<1,4,3> -> Swizzle<2,4,3>", "said twice", "another permutation"),
        ("shared_memory.yaml: layouts/0/uses_lbo: true -> false", "said twice", "uses_lbo does not say what its offset does"),
        ("shared_memory.yaml: examples/1/sbo_encoding: 16 -> 17", "worked examples", "its stride dimension byte offset is encoded as 16"),
        ("sparsity.yaml: granularities/0/legal/0: 0b0001 -> nothing", "said twice", "neither all fields"),
        ("types.yaml: elements/5/mantissa: 3 -> 2", "number formats", "e4m3"),
        ("types.yaml: registers/3/c_type: uint32_t -> uint64_t", "C types", "b32 has 32 bits"),
    ],
)
def test_what_the_spec_says_twice(whole: Trial, identity: str, check: str, fact: str) -> None:
    mutant = next(mutant for mutant in mutants(whole.documents) if mutant.identity == identity)
    found = whole.judge(mutant)
    assert found.check == check
    assert fact in found.fact


# --- reports ----------------------------------------------------------------------------------------------------------------


def test_a_run_and_its_report(evidence: Evidence, tmp_path: Path) -> None:
    told = tmp_path / "explained.json"
    why = "whatever the knob is set to when it is left out"
    told.write_text(json.dumps([{"mutants": ["instructions/toy.yaml: operand_kinds/knob/default: *"], "why": why}]), encoding="utf-8")
    run: Callable[..., mutation.Mutation] = functools.partial(mutation.run, "2026-01-01", spec=_TOY, evidence=evidence, count=60, seed=3)
    seen: list[int] = []
    found = run(explained=told, jobs=1, progress=lambda done, of: seen.append(done * 1000 + of))
    assert seen[-1] == found.tried * 1001
    again = run(explained=told, jobs=2)
    assert reports.text(found).partition('"processes"')[0] == reports.text(again).partition('"processes"')[0]
    killed = sum(found.killed.values())
    assert killed + len(found.unchanged) + len(found.reworded) + len(found.survivors) == found.tried
    assert sum(count for fates in found.by_file.values() for count in fates.values()) == found.tried
    assert found.tried < found.all
    jsonschema.validate(json.loads(reports.text(found)), mutation_report.schema())
    assert any(str(found.tried) in line for line in mutation_report.lines(found))


def test_the_schema_is_the_checked_in_one() -> None:
    path = paths.SCHEMAS / "evidence_mutation.schema.json"
    assert json.loads(path.read_text(encoding="utf-8")) == mutation_report.schema()


def test_the_checked_in_report_meets_its_goal() -> None:
    found = reports.load(reports.FOLDER / "mutation.json", mutation.Mutation)
    assert found.tried >= 1000
    assert found.rate <= 0.01
    assert not found.unexplained
    jsonschema.validate(json.loads(reports.text(found)), mutation_report.schema())


def test_explanations_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "explained.json"
    path.write_text('[{"mutants": "all of them"}]', encoding="utf-8")
    with pytest.raises(ValueError, match=r"explained\.json: .*it holds"):
        mutation_report.explanations(path)
