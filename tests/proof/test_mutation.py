"""The mutation engine on the toy spec: mutants that each check must kill, and one that must survive."""

from __future__ import annotations

import functools
import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from ptxmma import paths
from ptxmma.arrays import elements
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.requirements import version_key
from ptxmma.evidence import facts, reports
from ptxmma.evidence.assembler import Alike, Asked, Assembler, Bits, Space, packed
from ptxmma.evidence.silicon import Chip, Compiler, Execution, Launch, Silicon
from ptxmma.generator import pipeline
from ptxmma.generator.build import build
from ptxmma.generator.derive import derive
from ptxmma.generator.load import load
from ptxmma.model.formula import FormulaError
from ptxmma.ptx import lines as ptx
from ptxmma_proof import negative
from ptxmma_proof.legality import Legality
from ptxmma_proof.mutation import formulas, prose, published
from ptxmma_proof.mutation import report as mutation_report
from ptxmma_proof.mutation import run as mutation
from ptxmma_proof.mutation.chip import Results
from ptxmma_proof.mutation.mutants import Mutant, applied, mutants, sample
from ptxmma_proof.mutation.trial import Evidence, Trial, Verdict
from ptxmma_proof.silicon import replay
from ptxmma_proof.silicon.kernels import Kernel

_TOY = Path(__file__).parent.parent / "toy"


def _answers(catalog: Catalog) -> Assembler:
    """The answers of an assembler that agrees with a catalog."""
    spec = catalog.database.spec
    newest = spec.isa_versions[-1]
    versions = tuple(entry.version for entry in spec.isa_versions)
    targets = {one.name: next(version for version in versions if version_key(version) >= version_key(one.ptx)) for one in spec.targets}
    legality = Legality(catalog)
    return Assembler(
        date="2026-01-01",
        spec=spec.version,
        assemblers=(Asked(cuda=newest.cuda, build="11.8.0", ptx=newest.version, sha256="0" * 64, targets=targets),),
        versions=versions,
        facts=facts.accepted(catalog),
        asked={},
        answers=tuple(
            Alike(accepted={newest.cuda: found.accepted_by()}, lines=tuple(map(ptx.compact, ptx.lines(found)))) for found in catalog.all()
        ),
        differences=(),
        negative=tuple(
            Space(
                family=family,
                lines=len(lines),
                sha256=facts.of_lines(lines),
                answers=tuple(
                    Bits(
                        target=target, cuda=newest.cuda, accepted=packed(target in legality.accepted_by(line) for line in lines), disputed=0
                    )
                    for target in targets
                ),
            )
            for family, lines in negative.neighbours(catalog).items()
        ),
        errata=facts.explaining(catalog),
        disagreements=(),
    )


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """An assembler that knows the toy instruction."""
    path = tmp_path_factory.mktemp("evidence") / "assembler.json"
    path.write_text(reports.text(_answers(pipeline.read(_TOY))), encoding="utf-8")
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


def test_an_invented_instruction_may_have_been_asked_about(trial: Trial, every: dict[str, Mutant]) -> None:
    invented = every["instructions/toy.yaml: forms/0/mood/2: sad -> nothing"]._replace(
        path=("forms", 0, "mood"), after=["", "happy", "sad", negative._INVENTED]
    )
    found = trial.judge(invented)
    assert found.check == "assemblers"
    assert found.fact.startswith("refused on sm_80 by CUDA ")
    assert negative._INVENTED in found.fact
    assert trial.judge(invented._replace(after=["", "happy", "sad", "never_asked"])).check == ""


def test_the_first_version_of_a_target_is_known(trial: Trial, every: dict[str, Mutant]) -> None:
    found = trial.judge(every["targets.yaml: targets/1/ptx: 7.8 -> 7.0"])
    assert found.check == "assemblers"
    assert found.fact.endswith("takes target sm_90 from 7.8 on")


def test_where_the_library_stumbles_nobody_contradicts(monkeypatch: pytest.MonkeyPatch, trial: Trial, every: dict[str, Mutant]) -> None:
    def stumble(catalog: Catalog) -> str:
        raise FormulaError(f"1 // 0 in {catalog.database.spec.version}")

    monkeypatch.setitem(trial.checks, "number formats", stumble)
    survivor = every["instructions/toy.yaml: operand_kinds/knob/default: 0 -> 1"]
    assert trial.judge(survivor) == Verdict("library stumbles", "number formats: FormulaError: 1 // 0 in 0.0.1")
    assert trial.judge(every["instructions/toy.yaml: operand_kinds/knob/limit: 3 -> 4"]).check == "assemblers"
    assert not mutation_report.WITNESSES["no answer"][0]


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
        list(every.values()),
        date="2026-01-01",
        spec="0.0.1",
        facts="",
        evidence={},
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
        compiler=Compiler(cuda="11.8", nvcc="", ptxas_sha256="0" * 64),
        instructions=(Execution(instruction=ran.canonical, facts="0" * 12, launches=1, machine=("HMMA",), replays=(launch,)),),
        beside=(),
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


def test_evidence_of_another_spec_is_refused(tmp_path: Path, evidence: Evidence) -> None:
    other = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    path = other / "instructions" / "toy.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("happy", "merry"), encoding="utf-8")
    with pytest.raises(ValueError, match="about another spec"):
        Trial(other, evidence)


def test_evidence_that_contradicts_the_spec_proves_nothing(tmp_path: Path) -> None:
    told = _answers(pipeline.read(_TOY))
    path = tmp_path / "assembler.json"
    path.write_text(reports.text(msgspec.structs.replace(told, versions=(*told.versions, "9.9"))), encoding="utf-8")
    with pytest.raises(ValueError, match=r"contradicts the spec itself.*knows version 9\.9"):
        Trial(_TOY, Evidence(assemblers=path))


# --- mutants ----------------------------------------------------------------------------------------------------------------


def test_mutants_change_one_thing_each_and_prose_never() -> None:
    documents = load(_TOY)
    found = mutants(documents)
    assert len({mutant.identity for mutant in found}) == len(found) > 200
    assert {mutant.kind for mutant in found} == {"number", "operator", "variable", "value", "list", "condition", "flag", "key"}
    for mutant in found:
        changed = applied(documents, mutant)
        assert [number for number, document in enumerate(changed) if document.data != documents[number].data] == [mutant.number]
        keys = [key for key in mutant.path if isinstance(key, str)]
        assert not prose.left_out(keys), mutant.identity


def test_every_fact_has_a_mutant() -> None:
    documents = load(paths.SPEC)
    changed = {(mutant.number, mutant.path) for mutant in mutants(documents)}
    facts_ = [(number, place) for number, document in enumerate(documents) for place in _places(document.data)]
    assert len(facts_) > 3000
    assert [place for place in facts_ if place not in changed] == []


def _places(data: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where the numbers, flags and texts of a document stand that are facts."""
    if isinstance(data, dict):
        return [place for key, part in data.items() for place in _places(part, (*path, key))]
    if isinstance(data, list):
        return [place for index, part in enumerate(data) for place in _places(part, (*path, index))]
    return [] if prose.left_out([key for key in path if isinstance(key, str)]) else [path]


def test_what_is_optional_is_dropped(trial: Trial, every: dict[str, Mutant]) -> None:
    dropped = every["instructions/toy.yaml: operand_kinds/knob/default: default: 0 -> nothing"]
    assert "default" not in applied(trial.documents, dropped)[dropped.number].data["operand_kinds"]["knob"]
    assert "fragments.yaml: fragments/0/rows: rows: m -> nothing" not in every  # the schema alone would say so


def test_a_text_without_another_value_loses_a_letter(every: dict[str, Mutant]) -> None:
    assert "instructions/toy.yaml: operand_kinds/a/type: atype -> btype" in every
    assert "targets.yaml: targets/1/includes/0: sm_80 -> sm_8" in every


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
        outer, _, key = name.rpartition(".")
        assert prose.LEFT_OUT.keys() & {outer, key}, f"{name} would be kept anyway"
        assert not prose.left_out([outer, key])


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


def test_lines_that_nobody_was_asked_about_contradict_nothing(tmp_path: Path, trial: Trial, every: dict[str, Mutant]) -> None:
    mutant = every["instructions/toy.yaml: operand_kinds/knob/limit: 3 -> 4"]
    assert trial.judge(mutant).check == "assemblers"
    told = _answers(pipeline.read(_TOY))
    [space] = told.negative
    path = tmp_path / "assembler.json"
    for negative_space in ((), (msgspec.structs.replace(space, sha256="0" * 64),)):
        path.write_text(reports.text(msgspec.structs.replace(told, negative=negative_space)), encoding="utf-8")
        assert Trial(_TOY, Evidence(assemblers=path)).judge(mutant).check != "assemblers"


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
        ("instructions/wgmma_sp.yaml: operand_kinds/b-desc/of: of: b -> nothing", "rules", "is a descriptor: say of:"),
        ("instructions/mma.yaml: observed/6/ptx: ptx: 9.4 -> nothing", "said twice", "and no target accepts it then"),
        ("targets.yaml: targets/7/includes/0: sm_88 -> sm_87", "said twice", "no later target has the features of sm_88"),
        ("fragments/mma.yaml: fragments/0/stated/16/first: first: thread * 16 -> nothing", "said twice", "prints a part of a formula"),
        ("fragments/mma.yaml: fragments/6/stated/12/of/family/1: mma.sp -> nothing", "said twice", "is printed in 9.7.14.5.8"),
        ("instructions/mma.yaml: operand_kinds/byte-id-b/of: b -> a", "rules", "stands after the scale factors of 'b'"),
        (
            "instructions/wgmma_sp.yaml: operands/integer/1: d, a-desc, b-desc, sp-meta, sp-sel, scale-d -> "
            "d, b-desc, a-desc, sp-meta, sp-sel, scale-d",
            "said twice",
            "are in another order",
        ),
        ("protocol.yaml: orderings/3: {needs: wgmma.wait_group} -> nothing", "said twice", "wgmma.wait_group is a step, and nothing"),
        ("instructions/wgmma.yaml: asynchronous: true -> false", "said twice", "its name says whether it is asynchronous"),
        ("instructions/wgmma.yaml: semantics/3/truncates: truncates: 13 -> nothing", "said twice", "That does not say 0"),
        ("instructions/wgmma.yaml: semantics/3/truncates: 13 -> 14", "number formats", "14 low bits are dropped"),
        ("shared_memory.yaml: alignment: 16 -> 32", "worked examples", ""),
        ("shared_memory.yaml: banks/count: 32 -> 64", "said twice", "the widest swizzle is not as wide as the banks"),
        ("shared_memory.yaml: swizzles/3/cute: Swizzle<3,4,3> -> Swizzle<2,4,3>", "said twice", "another permutation"),
        ("shared_memory.yaml: layouts/0/uses_lbo: true -> false", "said twice", "uses_lbo does not say what its offset does"),
        ("shared_memory.yaml: examples/1/sbo_encoding: 16 -> 17", "worked examples", "its stride dimension byte offset is encoded as 16"),
        ("sparsity.yaml: granularities/0/legal/0: 0b0001 -> nothing", "said twice", "neither all fields"),
        ("block_scaling.yaml: block_formats/0/element: e4m3 -> e5m2", "rules", "no format has elements of e4m3"),
        ("block_scaling.yaml: block_formats/4/element: e2m1 -> e2m3", "rules", "no format has elements of e2m1"),
        ("block_scaling.yaml: block_formats/4/of/1/kind/1: kind::mxf4nvf4 -> kind::mxf4", "rules", "multiplies such blocks too"),
        (
            "block_scaling.yaml: block_formats/5: {name: nvfp4, element: e2m1, scale: ue4m3, block: 16, of: {family: mma, "
            "kind: kind::mxf4nvf4, scale_… -> nothing",
            "rules",
            "no format has elements of e2m1 with scale factors ue4m3",
        ),
        ("fragments/mma.yaml: fragments/0/stated/9/col/0/when: i < 64 -> i < 65", "said twice", "which its erratum does not say"),
        (
            "fragments/mma.yaml: fragments/0/stated/9/col/0/is: thread * 32 + i -> thread * 33 + i",
            "said twice",
            "which its erratum does not say",
        ),
        ("fragments/mma.yaml: fragments/6/stated/10/of/0/bits: 32 -> 64", "said twice", "d of mma_m16n8k16_cd_b32 is printed in"),
        ("instructions/mma.yaml: semantics/6/multiply: specified precision -> and", "said twice", "'and'"),
        ("instructions/mma.yaml: semantics/11/multiply: exclusive or -> exact", "said twice", "That is not exact"),
        ("instructions/mma.yaml: semantics/10/overflow: overflow: saturate -> nothing", "said twice", "on overflow its name says saturate"),
        ("instructions/mma.yaml: semantics/7/rounds: rounds: nearest -> nothing", "said twice", "rounds to nothing"),
        ("instructions/mma.yaml: semantics/4/observed/0/fraction_bits: fraction_bits: 10 -> nothing", "said twice", "That is not 0 bits"),
        ("instructions/mma.yaml: semantics/0/unspecified/1: rounding -> nothing", "said twice", "Arithmetic of this kind leaves open"),
        ("instructions/mma.yaml: semantics/3/unspecified/3: the 13 low bits of a tf32 input -> nothing", "said twice", "(13, 'tf32')"),
        ("instructions/wgmma.yaml: operand_kinds/a-desc/uniform: warpgroup -> warp", "said twice", "over which threads a-desc is uniform"),
        ("instructions/wgmma.yaml: operand_kinds/a-desc/uniform: uniform: warpgroup -> nothing", "said twice", "over which threads a-desc"),
        ("instructions/mma.yaml: uniform/0/over: warp -> warpgroup", "said twice", "That is not over a warpgroup"),
        ("instructions/wgmma_sync.yaml: scope: warpgroup -> thread", "said twice", "is more than a thread"),
        ("protocol.yaml: definitions/2/formula: warpid % 4 -> warpid % 5", "said twice", "warp in the warpgroup is not warpid % 5"),
        ("types.yaml: containers/0/shift: 2 -> 1", "said twice", "a note says that e2m1 takes its bits 5 to 2"),
        ("types.yaml: elements/5/mantissa: 3 -> 2", "number formats", "e4m3"),
        ("instructions/mma.yaml: ignored/0/behind: behind: ctype -> nothing", "errata", "by ptxas 13.5"),
        ("instructions/wgmma.yaml: ignored/0/most: most: 2 -> nothing", "errata", "too many layout specifiers"),
        ("types.yaml: registers/3/c_type: uint32_t -> uint64_t", "C types", "b32 has 32 bits"),
        ("types.yaml: registers/3/constraint: r -> l", "said twice", "b64: constraint 'l' is for registers of other types"),
        ("types.yaml: registers/12/constraint: r -> l", "said twice", "pred: constraint 'l' is for registers of other types"),
        ("types.yaml: registers/12/bits: 1 -> 2", "said twice", "pred has 1 bits, in a bool"),
        (
            "instructions/wgmma.yaml: operand_kinds/imm-trans-a/default: 0 -> 1",
            "said twice",
            "the default of imm-trans-a is 0, elsewhere 1",
        ),
        ("instructions/wgmma.yaml: semantics/0/observed/0/target: sm_90a -> sm_90", "said twice", "H200 was observed on"),
        (
            "instructions/wgmma.yaml: semantics/0/observed/0: {chip: H200, target: sm_90a} -> nothing",
            "said twice",
            "is to be observed, once",
        ),
        ("throughput.yaml: throughput/5/rates/4/sparse: 1024 -> 1025", "said twice", "operations in a clock"),
        ("throughput.yaml: throughput/0/chip: NVIDIA A100 (SXM4) -> NVIDIA H100 SXM5", "said twice", "has another target or other SMs"),
        ("throughput.yaml: throughput/4/rates/0/of/atype: f64 -> f16", "said twice", "multiplies f16 at 4096 and at 256 operations"),
        ("throughput.yaml: throughput/3/clock: 1830 -> 1831", "said twice", "x 1831 MHz are not"),
        (
            "throughput.yaml: throughput/0/rates/4: {of: {atype: [s4, u4]}, dense: 8192, sparse: 16384, "
            "published: [1248, 2496]} -> nothing",
            "said twice",
            "other chips that have it have a peak for it, but not sm_80",
        ),
        (
            "throughput.yaml: throughput/5/rates/5: {of: {atype: tf32}, dense: 256, sparse: 512, published: [104.8, 209.5]} -> nothing",
            "said twice",
            "but not sm_120",
        ),
        (
            "throughput.yaml: throughput/1/rates/4: {of: {atype: [s4, u4]}, dense: 4096, sparse: 8192, published: [568, 1136]} -> nothing",
            "said twice",
            "but not sm_86",
        ),
        ("instructions/wgmma_sync.yaml#2: family: wgmma -> mma.sp", "said twice", "does not have the words of mma.sp in their order"),
        ("shared_memory.yaml: descriptor/2/unit: unit: bytes -> nothing", "said twice", "do not hold multiples of 16 bytes"),
        ("shared_memory.yaml: descriptor/2/unit: bytes -> byte", "schema", "one of bytes"),
        ("sparsity.yaml: granularities/2/legal: [0b0100, 0b1110] -> [0b0100, 0b1110, 0b0001]", "said twice", "3 fields are legal"),
        ("instructions/wgmma_sp.yaml: forms/4/btype: [u8, s8] -> [u8, s8, tf32]", "rules", "by elements of 32 bits (tf32)"),
    ],
)
def test_what_the_spec_says_twice(whole: Trial, identity: str, check: str, fact: str) -> None:
    mutant = next(mutant for mutant in mutants(whole.documents) if mutant.identity == identity)
    found = whole.judge(mutant)
    assert found.check == check
    assert fact in found.fact


@pytest.mark.parametrize(
    "identity",
    [
        "throughput.yaml: throughput/1/rates/0/of/atype: atype: f16 -> nothing",
        "instructions/mma_sp.yaml: qualifiers/scale_vec/default/0/when: when: {kind: kind::mxf8f6f4} -> nothing",
    ],
)
def test_the_same_in_other_words(whole: Trial, identity: str) -> None:
    mutant = next(mutant for mutant in mutants(whole.documents) if mutant.identity == identity)
    found = whole.judge(mutant)
    assert (found.check, found.reworded) == ("", True)


@pytest.mark.parametrize(
    ("identity", "fact"),
    [
        (
            "imm-scale-b, imm-trans-a, imm-trans-b -> d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b, imm-trans-a",
            "D of wgmma",
        ),
        ("imm-scale-b, imm-trans-a, imm-trans-b -> d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b", "with 8 operands"),
        (
            "imm-scale-b, imm-trans-a, imm-trans-b -> d, b-desc, a-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b",
            "wgmma",
        ),
    ],
)
def test_the_chip_knows_operands_by_their_order(whole: Trial, identity: str, fact: str) -> None:
    assert mutation.STORED.silicon is not None
    results = Results(reports.load(mutation.STORED.silicon, Silicon), whole.catalog)
    mutant = next(
        mutant for mutant in mutants(whole.documents) if "transposable/1" in mutant.identity and mutant.identity.endswith(identity)
    )
    model, positions = build(applied(whole.documents, mutant))
    found = results.contradiction(Catalog(derive(model, positions)))
    assert fact in found


# --- reports ----------------------------------------------------------------------------------------------------------------


def test_a_run_and_its_report(evidence: Evidence, tmp_path: Path) -> None:
    told = tmp_path / "explained.json"
    why = "whatever the knob is set to when it is left out"
    told.write_text(json.dumps([{"mutants": ["instructions/toy.yaml: operand_kinds/knob/default: *"], "why": why}]), encoding="utf-8")
    run: Callable[..., mutation.Mutation] = functools.partial(mutation.run, "2026-01-01", spec=_TOY, evidence=evidence, count=60, seed=3)
    seen: list[int] = []
    found = run(explained=told, jobs=1, progress=lambda done, of: seen.append(done * 1000 + of))
    assert seen[-1] == (found.tried + found.printed.tried) * 1001
    again = run(explained=told, jobs=2)
    assert reports.text(found).partition('"processes"')[0] == reports.text(again).partition('"processes"')[0]
    killed = sum(found.killed.values())
    assert killed + len(found.unchanged) + len(found.reworded) + len(found.survivors) == found.tried
    assert sum(count for fates in found.by_file.values() for count in fates.values()) == found.tried
    assert found.tried < found.all
    jsonschema.validate(json.loads(reports.text(found)), mutation_report.schema())
    assert any(str(found.tried) in line for line in mutation_report.lines(found))
    printed = found.printed
    assert 0 < printed.tried < found.tried
    assert found.all + printed.all == len(mutants(load(_TOY)))
    fates = [*printed.unchanged, *printed.reworded, *(survivor.mutant for survivor in printed.survivors)]
    assert sum(printed.killed.values()) + len(fates) == printed.tried
    alive = [*found.unchanged, *found.reworded, *(survivor.mutant for survivor in found.survivors)]
    assert not any("/stated/" in mutant for mutant in alive)
    assert all("/stated/" in mutant for mutant in fates)
    assert evidence.assemblers is not None
    files = (evidence.assemblers, told)
    assert found.evidence == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_what_the_manual_prints_counts_for_no_fact(every: dict[str, Mutant]) -> None:
    printed = every["fragments.yaml: fragments/0/stated/0/registers: 4 -> 5"]
    fact = every["types.yaml: elements/0/bits: 16 -> 17"]
    assert (printed.is_printed, fact.is_printed) == (True, False)
    judged = [(printed, Verdict("stated formulas")), (fact, Verdict("number formats")), (printed, Verdict("", outputs=("a",)))]
    about = {"date": "", "spec": "", "facts": "", "evidence": {}, "seed": 0, "processes": 1, "seconds": 0}
    made = mutation_report.compose(judged, [], list(every.values()), **about)
    assert (made.tried, made.killed, made.independent, made.survivors, made.rate) == (1, {"number formats": 1}, 1, (), 0)
    assert (made.printed.tried, made.printed.killed) == (2, {"stated formulas": 1})
    assert made.unexplained == list(made.printed.survivors)
    assert [survivor.mutant for survivor in made.unexplained] == [printed.identity]


def test_evidence_that_has_changed_makes_a_report_stale(tmp_path: Path) -> None:
    for name in ("one.json", "other.json", "third.json"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    told = mutation_report.sources([tmp_path / "one.json", tmp_path / "other.json", tmp_path / "third.json"])
    assert mutation_report.changed(told, tmp_path) == []
    (tmp_path / "one.json").write_text("forged", encoding="utf-8")
    (tmp_path / "other.json").unlink()
    assert mutation_report.changed(told, tmp_path) == ["one.json", "other.json"]


def test_the_schema_is_the_checked_in_one() -> None:
    path = paths.SCHEMAS / "evidence_mutation.schema.json"
    assert json.loads(path.read_text(encoding="utf-8")) == mutation_report.schema()


@pytest.fixture(scope="module")
def checked_in() -> mutation.Mutation:
    return reports.load(reports.FOLDER / "mutation.json", mutation.Mutation)


def test_the_checked_in_report_meets_its_goal(checked_in: mutation.Mutation) -> None:
    assert checked_in.tried >= 1000
    assert checked_in.printed.tried >= 200
    assert checked_in.rate <= 0.01
    assert not checked_in.unexplained
    assert {mutant.yaml for mutant in mutants(load(paths.SPEC))} == checked_in.by_file.keys()
    jsonschema.validate(json.loads(reports.text(checked_in)), mutation_report.schema())


def test_the_checked_in_report_is_about_this_spec(checked_in: mutation.Mutation) -> None:
    documents = load(paths.SPEC)
    found = mutants(documents)
    assert checked_in.facts == mutation_report.facts_sha256(documents)
    assert checked_in.all + checked_in.printed.all == len(found)
    assert not mutation_report.changed(checked_in.evidence, reports.FOLDER)
    assert checked_in.left_out == prose.LEFT_OUT
    written = mutation_report.explanations(reports.FOLDER / "mutation_explained.json")
    assert [(entry.mutants, entry.why) for entry in checked_in.explanations] == [(entry.mutants, entry.why) for entry in written]
    assert all(entry.covers for entry in checked_in.explanations), "an explanation of no mutant"


def test_the_counts_of_the_checked_in_report_add_up(checked_in: mutation.Mutation) -> None:
    alive = {
        "survived": len(checked_in.survivors),
        "changed nothing": len(checked_in.unchanged),
        "only reworded": len(checked_in.reworded),
    }
    fates = {name: count for name, count in alive.items() if count} | checked_in.killed
    for table in (checked_in.by_file, checked_in.by_kind):
        summed: dict[str, int] = {}
        for row in table.values():
            for fate, count in row.items():
                summed[fate] = summed.get(fate, 0) + count
        assert summed == fates
    assert sum(fates.values()) == checked_in.tried
    told = {check: count for witness in checked_in.witnesses for check, count in witness.killed.items()}
    assert told == checked_in.killed
    printed = checked_in.printed
    survivors = [*checked_in.survivors, *printed.survivors]
    assert sum(entry.survived for entry in checked_in.explanations) >= len(survivors) - len(checked_in.unexplained)
    assert sum(printed.killed.values()) + len(printed.unchanged) + len(printed.reworded) + len(printed.survivors) == printed.tried
    chosen = {mutant.identity: mutant for mutant in mutation.chosen(mutants(load(paths.SPEC)), mutation.COUNT, checked_in.seed)}
    assert len(chosen) == checked_in.tried + printed.tried
    for part, is_printed in ((checked_in, False), (printed, True)):
        alive_there = [*(entry.mutant for entry in part.survivors), *part.unchanged, *part.reworded]
        assert all(chosen[identity].is_printed == is_printed for identity in alive_there)


def test_mutants_fare_as_the_checked_in_report_says(checked_in: mutation.Mutation) -> None:
    trial = Trial(paths.SPEC, mutation.STORED)
    chosen = mutation.chosen(mutants(trial.documents), mutation.COUNT, checked_in.seed)
    parts = (checked_in, checked_in.printed)
    alive = {entry.mutant for part in parts for entry in part.survivors}
    reworded = {identity for part in parts for identity in (*part.reworded, *part.unchanged)}
    groups = (alive, reworded, {mutant.identity for mutant in chosen} - alive - reworded)
    for group, count in zip(groups, (2, 2, 10), strict=True):
        among = [mutant for mutant in chosen if mutant.identity in group]
        for mutant in random.Random(0).sample(among, min(count, len(among))):
            found = trial.judge(mutant)
            assert bool(found.check) == (group is groups[2]), f"{mutant.identity}: {found}"
            assert found.check or (found.reworded or not found.outputs) == (group is groups[1]), f"{mutant.identity}: {found}"


def test_facts_make_a_report_stale_and_words_do_not(tmp_path: Path) -> None:
    def facts_with(before: str, after: str) -> str:
        path = shutil.copytree(_TOY, tmp_path / str(len(list(tmp_path.iterdir()))))
        file = path / "instructions" / "toy.yaml"
        text = file.read_text(encoding="utf-8")
        assert before in text
        file.write_text(text.replace(before, after), encoding="utf-8")
        return mutation_report.facts_sha256(load(path))

    now = mutation_report.facts_sha256(load(_TOY))
    assert facts_with("a knob", "another knob") == now
    assert facts_with('source: "3.1"', 'source: "3.4"') == now
    assert facts_with("limit: 3", "limit: 4") != now
    assert facts_with('"happy"', '"merry"') != now


def test_every_check_is_asked_of_a_witness(whole: Trial) -> None:
    checks = [check for _, names in mutation_report.WITNESSES.values() for check in names]
    assert len(set(checks)) == len(checks)
    assert {*whole.checks, "assemblers", "chip", "CuTe", "schema", "model", "rules", "layouts", "stated formulas", "library stumbles"} == {
        *checks
    }


def test_explanations_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "explained.json"
    path.write_text('[{"mutants": "all of them"}]', encoding="utf-8")
    with pytest.raises(ValueError, match=r"explained\.json: .*it holds"):
        mutation_report.explanations(path)
