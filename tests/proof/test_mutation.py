"""Mutants of the spec, and the witnesses that contradict them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ptxmma import paths
from ptxmma.catalog.evidence.witnesses import Run
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import load
from ptxmma.generator.yaml_document import Document
from ptxmma_proof.mutation import facts, formulas, trial
from ptxmma_proof.mutation import number_formats as formats
from ptxmma_proof.mutation.facts import Mutant
from ptxmma_proof.mutation.trial import INDEPENDENT, OWN, SURVIVED, UNASKED, Trial, Verdict


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return load.load(paths.SPEC)


@pytest.fixture(scope="module")
def every(documents: list[Document]) -> dict[str, Mutant]:
    return {mutant.identity: mutant for mutant in facts.mutants(documents)}


@pytest.fixture(scope="module")
def whole() -> Trial:
    try:
        return Trial(paths.SPEC)
    except ValueError as error:  # a fact has changed since the witness was asked, so mutants show nothing
        pytest.skip(str(error))


def _find(every: dict[str, Mutant], start: str) -> Mutant:
    return next(mutant for identity, mutant in every.items() if identity.startswith(start))


@pytest.mark.parametrize(
    ("start", "by"),
    [
        ("spec/targets.yaml: targets/3/ptx: 7.0 ->", f"{INDEPENDENT}assemblers"),
        ("spec/types.yaml: elements/0/bias: 15 ->", f"{INDEPENDENT}number formats"),
        ("spec/descriptors.yaml: descriptors/0/fields/0/width: ", f"{INDEPENDENT}CuTe"),
        ("spec/descriptors.yaml: descriptors/2/fields/0/low: ", f"{INDEPENDENT}peers on descriptors"),
        ("spec/tensor_memory.yaml: layouts/0/at/lane: ", f"{INDEPENDENT}peers on tensor memory"),
        ("spec/tensor_products.yaml: limits/4: ", f"{INDEPENDENT}peers on products"),
        ("spec/tensor_maps.yaml: rules/7: ", f"{INDEPENDENT}driver"),
        ("spec/isa_versions.yaml: isa_versions/3/cuda: ", f"{OWN}rules"),
    ],
)
def test_who_contradicts_a_mutant_first(whole: Trial, every: dict[str, Mutant], start: str, by: str) -> None:
    assert whole.judge(_find(every, start)).by == by


def test_own_rules_are_left_out(whole: Trial, every: dict[str, Mutant]) -> None:
    assert whole.judge(_find(every, "spec/isa_versions.yaml: isa_versions/3/cuda: "), rules=False) == Verdict(UNASKED)
    mutant = Mutant("a.yaml", 0, ("x",), 1, 2)
    totals = trial.Outcome(9, [(mutant, Verdict(UNASKED)), (mutant, Verdict(f"{INDEPENDENT}chip"))], "1").totals
    assert totals == {"of": 9, "tried": 2, "unasked": 1, "errata_tried": 0, "errata_unasked": 0, f"{INDEPENDENT}chip": 1}


def test_a_fact_without_a_witness_survives(whole: Trial, documents: list[Document]) -> None:
    number = next(number for number, document in enumerate(documents) if document.data["kind"] == "throughput")
    words = Mutant("spec/throughput.yaml", number, ("throughput", 0, "chip"), documents[number].data["throughput"][0]["chip"], "A chip")
    assert whole.judge(words) == Verdict(SURVIVED)


@pytest.mark.parametrize(
    ("start", "by"),
    [
        ("layouts/mma.yaml: register_layouts/0/at/row: ", f"{INDEPENDENT}CuTe"),
        ("layouts/wmma.yaml: register_layouts/0/at/row: ", f"{INDEPENDENT}chip"),
        ("layouts/tcgen05.yaml: register_layouts/2/at/row: ", f"{INDEPENDENT}peers on tensor memory"),
        ("layouts/mma.yaml: register_layouts/5/operands/0: b -> a", f"{INDEPENDENT}CuTe"),
        ("layouts/ldmatrix.yaml: register_layouts/2/at/row: ", f"{OWN}it cannot be built"),  # of sm_100: neither peer nor chip
    ],
)
def test_formulas_are_held_against_peers_whether_they_are_layouts_or_not(
    whole: Trial, every: dict[str, Mutant], start: str, by: str
) -> None:
    assert whole.judge(_find(every, start)).by == by


def test_the_chip_contradicts_another_layout(whole: Trial) -> None:
    assert whole.witnesses["chip"](whole.catalog) == ""
    # Two rows exchanged: a permutation, which can be built; CuTe would contradict it, too.
    number = next(number for number, document in enumerate(whole.documents) if document.data["kind"] == "register_layouts")
    col = whole.documents[number].data["register_layouts"][0]["at"]["col"]
    mutant = Mutant("it", number, ("register_layouts", 0, "at", "col"), col, col)
    assert whole.judge(mutant).by == SURVIVED  # the same formula in other words


def test_answers_about_errata_contradict_a_rule(whole: Trial) -> None:
    sighted = whole.witnesses["assemblers on errata"]
    assert sighted(whole.catalog) == ""
    spec = whole.catalog.database.spec
    without = msgspec.structs.replace(spec, errata=())
    assert sighted(Catalog(msgspec.structs.replace(whole.catalog.database, spec=without))).startswith("ptxas ")


def test_errata_have_mutants_and_words_have_none(every: dict[str, Mutant]) -> None:
    paths_of = [mutant.path for mutant in every.values()]
    assert any(mutant.file.endswith("errata.yaml") for mutant in every.values())
    assert not any({"source", "title", "says", "holds", "stated"} & set(path) for path in paths_of)


def test_a_mutant_changes_one_place(documents: list[Document], every: dict[str, Mutant]) -> None:
    for mutant in list(every.values())[::97]:
        changed = facts.applied(documents, mutant)
        differing = [number for number, (one, other) in enumerate(zip(documents, changed, strict=True)) if one.data != other.data]
        assert differing == [mutant.number]
        assert _leaves(documents[mutant.number].data) != _leaves(changed[mutant.number].data)


def _leaves(data: Any) -> list[Any]:
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else None
    return [data] if parts is None else [leaf for part in parts for leaf in _leaves(part)]


def test_a_sample_is_the_same_each_time_and_has_every_file(every: dict[str, Mutant]) -> None:
    mutants = list(every.values())
    some = facts.sample(mutants, 300, 1)
    assert some == facts.sample(mutants, 300, 1) != facts.sample(mutants, 300, 2)
    assert {mutant.file for mutant in some} == {mutant.file for mutant in mutants}
    assert facts.sample(mutants, 0, 1) == mutants


def test_formulas_change_in_one_place() -> None:
    texts = list(formulas.changed("lane // 4 + 8 * (i % 2)", ["bits", "i", "lane"]))
    assert "lane % 4 + 8 * (i % 2)" in texts
    assert "lane // 5 + 8 * (i % 2)" in texts
    assert "bits // 4 + 8 * (i % 2)" in texts
    assert len(texts) == len(set(texts))


def test_number_formats_are_those_of_the_libraries(catalog: Catalog) -> None:
    assert formats.types(catalog) == formats.c_types(catalog) == ""


def test_a_run_is_recorded() -> None:
    mutants = [Mutant("a.yaml", 0, ("x",), 1, 2)] * 4
    verdicts = [Verdict(f"{OWN}rules"), Verdict(f"{INDEPENDENT}chip"), Verdict(SURVIVED), Verdict(f"{INDEPENDENT}chip")]
    outcome = trial.Outcome(9, list(zip(mutants, verdicts, strict=True)), "1")
    errata = {"errata_tried": 0, "errata_survived": 0}
    assert outcome.totals == errata | {"of": 9, "tried": 4, "survived": 1, f"{INDEPENDENT}chip": 2, f"{OWN}rules": 1}
    assert next(iter(outcome.words())) == "survived: a.yaml: x: 1 -> 2"
    assert list(outcome.words())[-2:] == ["contradicted, independent: 2 of 4 (50%)", "contradicted, own: 1 of 4 (25%)"]
    [run] = outcome.record("2026-01-02")
    assert isinstance(run, Run)
    assert run.totals == outcome.totals
