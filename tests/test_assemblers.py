"""The database against the assemblers that are here: the one on PATH, and those that ``make assemblers`` fetched.

``ptxmma verify --assembler`` asks all of them everything; here the oldest and the newest are asked, the newest on some targets.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxmma import ptx
from ptxmma.instructions import Catalog, Instruction
from ptxmma.requirements import version_key
from ptxmma.verify import assemblers, matrix, negative, questions
from ptxmma.verify.assemblers import Assembler
from ptxmma.verify.legality import Legality
from ptxmma.verify.negative import Neighbours
from ptxmma.verify.questions import Lines

pytestmark = pytest.mark.ptxas

#: Of the neighbours, every so many are asked about here.
_EVERY = 40
#: One target of each kind that has instructions of its own.
_TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_120a")


def _pinned(which: int) -> Assembler:
    found = assemblers.fetched()
    wanted = assemblers.pins()[which]["cuda"]
    if wanted not in {assembler.cuda for assembler in found}:
        pytest.skip(f"ptxas of CUDA {wanted} is not fetched: run `make assemblers`")
    return next(assembler for assembler in found if assembler.cuda == wanted)


@pytest.fixture(scope="module")
def newest() -> Assembler:
    return _pinned(-1)


@pytest.fixture(scope="module")
def space(catalog: Catalog) -> dict[str, Neighbours]:
    return negative.neighbours(catalog)


def _agrees(catalog: Catalog, assembler: Assembler, targets: Sequence[str], cache: Path) -> None:
    subject = matrix.Subject.of(catalog)
    columns = matrix.sweep(subject, [assembler], targets, cache, 2)
    assert sum(len(versions) for column in columns for versions in column.accepted) > 500
    differences = [each for each in matrix.differences(subject, columns) if not each.explained]
    assert not differences, "\n".join(map(str, differences))


def test_the_installed_assembler_agrees(catalog: Catalog, tmp_path: Path) -> None:
    path = shutil.which("ptxas")
    if path is None:
        pytest.skip("no ptxas on PATH")
    _agrees(catalog, assemblers.identify(path), _TARGETS[1:3], tmp_path)


def test_the_oldest_pinned_assembler_agrees(catalog: Catalog, tmp_path: Path) -> None:
    _agrees(catalog, _pinned(0), [target.name for target in catalog.database.spec.targets], tmp_path)


def test_the_newest_pinned_assembler_agrees(catalog: Catalog, newest: Assembler, tmp_path: Path) -> None:
    _agrees(catalog, newest, _TARGETS, tmp_path)


def test_the_newest_pinned_assembler_agrees_on_neighbours(
    catalog: Catalog, newest: Assembler, space: dict[str, Neighbours], tmp_path: Path
) -> None:
    # What an erratum says of one line explains others with the same change.
    known = {line for line, _ in negative.errata(catalog)}
    some = {
        family: {line: change for number, (line, change) in enumerate(found.items()) if number % _EVERY == 0 or line in known}
        for family, found in space.items()
    }
    assert sum(map(len, some.values())) > 5_000
    found = negative.disagreements(catalog, some, [newest], _TARGETS, tmp_path, 2)
    unexplained = [str(each) for each in found if not each.erratum]
    assert not unexplained, "\n".join(unexplained)


def test_assemblers_describe_themselves(newest: Assembler) -> None:
    pin = assemblers.pins()[-1]
    assert (newest.cuda, newest.build, newest.ptx) == (pin["cuda"], pin["version"], pin["ptx"])
    assert newest.sha256 == pin["binary_sha256"]
    assert set(_TARGETS) < set(newest.targets)


def _lines(catalog: Catalog) -> st.SearchStrategy[str]:
    """Lines from the grammar of the reference: a form's syntax, any values that any form has in its places, operands of any form."""
    vocabulary = negative.Vocabulary(catalog)
    instructions = list(catalog.all())
    operands: dict[str, dict[tuple[str, ...], None]] = {}
    for instruction in instructions:
        for line in ptx.lines(instruction):
            operands.setdefault(instruction.variant.instruction.name, {})[tuple(ptx.split(line)[1])] = None
    any_operands = {name: st.sampled_from(list(found)) for name, found in operands.items()}

    def of(instruction: Instruction) -> st.SearchStrategy[str]:
        values = [
            st.just(token) if not name else st.one_of(st.just(token), st.sampled_from(["", *vocabulary.values.get(name, [""])]))
            for name, token in negative.tokens(instruction)
        ]
        own = st.sampled_from([tuple(ptx.split(line)[1]) for line in ptx.lines(instruction)])
        texts = st.one_of(own, any_operands[instruction.variant.instruction.name])
        return st.builds(lambda tokens, texts: ptx.line(".".join(filter(None, tokens)), texts), st.tuples(*values), texts)

    return st.sampled_from(instructions).flatmap(of)


def test_random_lines_are_legal_where_the_newest_assembler_takes_them(
    catalog: Catalog, newest: Assembler, space: dict[str, Neighbours]
) -> None:
    legality = Legality(catalog)
    erratum = negative.explanations(catalog, space)

    @settings(max_examples=10, suppress_health_check=list(HealthCheck))
    @given(st.lists(_lines(catalog), min_size=50, max_size=400), st.sampled_from(_TARGETS))
    def agree(lines: list[str], target: str) -> None:
        batch = Lines.of(dict.fromkeys(lines), matrix.banks(catalog))
        refused = questions.by_line(questions.refusals(matrix.question(newest, target, newest.ptx, batch)))
        for number, line in enumerate(batch.texts):
            first = legality.accepted_by(line).get(target)
            legal = first is not None and version_key(first) <= version_key(newest.ptx)
            accepted = number not in refused
            assert legal == accepted or erratum(line, accepted), f"{target}: {line}: {refused.get(number, 'accepted')}"

    agree()
