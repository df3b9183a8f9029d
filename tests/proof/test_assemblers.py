"""The database against the assembler on PATH and those that ``make assemblers`` fetched.

``python -m ptxmma_proof assembler`` asks all of them everything; these tests ask the oldest and the newest, the newest on some targets.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ptxmma.catalog import evidence
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.ptx import lines as ptx
from ptxmma_proof import assemblers, errata, matrix, negative_space, neighbours, questions
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.line_legality import Legality
from ptxmma_proof.negative_space import RULES, Explanations
from ptxmma_proof.neighbours import Neighbours
from ptxmma_proof.questions import Lines

pytestmark = pytest.mark.ptxas

#: The step through the neighbours.
_EVERY = 20
#: One target of each kind that has instructions of its own.
_TARGETS = ("sm_89", "sm_90a", "sm_107a", "sm_121a")
#: Random batches, and lines in each.
_EXAMPLES = 30
_LINES = 200


def _pinned(which: int) -> Assembler:
    fetched = assemblers.fetched()
    wanted = assemblers.pins()[which]["cuda"]
    if wanted not in {assembler.cuda for assembler in fetched}:
        pytest.skip(f"ptxas of CUDA {wanted} is not fetched: run `make assemblers`")
    return next(assembler for assembler in fetched if assembler.cuda == wanted)


@pytest.fixture(scope="module")
def newest() -> Assembler:
    return _pinned(-1)


@pytest.fixture(scope="module")
def space(catalog: Catalog) -> dict[str, Neighbours]:
    return neighbours.neighbours(catalog)


@pytest.fixture(scope="module")
def explained(catalog: Catalog, space: dict[str, Neighbours]) -> Explanations:
    return Explanations(catalog, space)


def _agrees(catalog: Catalog, assembler: Assembler, targets: Sequence[str], cache: Path) -> None:
    subject = matrix.Subject.of(catalog)
    columns = matrix.sweep(subject, [assembler], targets, cache, 2)
    assert sum(len(versions) for column in columns for versions in column.accepted) > 500
    unexplained = [str(each) for each in matrix.differences(subject, columns) if not each.explanation]
    assert not unexplained, "\n".join(unexplained)


def test_the_installed_assembler_agrees(catalog: Catalog, tmp_path: Path) -> None:
    path = shutil.which("ptxas")
    if path is None:
        pytest.skip("no ptxas on PATH")
    _agrees(catalog, assemblers.identify(path), ("sm_90a", "sm_120a"), tmp_path)


def test_the_oldest_pinned_assembler_agrees(catalog: Catalog, tmp_path: Path) -> None:
    _agrees(catalog, _pinned(0), [target.name for target in catalog.database.spec.targets], tmp_path)


def test_the_newest_pinned_assembler_agrees(catalog: Catalog, newest: Assembler, tmp_path: Path) -> None:
    _agrees(catalog, newest, _TARGETS, tmp_path)


def test_the_newest_pinned_assembler_agrees_on_neighbours(
    catalog: Catalog, newest: Assembler, space: dict[str, Neighbours], explained: Explanations, tmp_path: Path
) -> None:
    some = {family: dict(itertools.islice(lines.items(), 0, None, _EVERY)) for family, lines in space.items()}
    assert sum(map(len, some.values())) > 5_000
    batches = negative_space.sweep(catalog, some, [newest], _TARGETS, tmp_path, 2)
    assert {batch.target for batch in batches} == set(_TARGETS)
    unexplained = [str(each) for each in negative_space.disagreements(catalog, batches, explained) if not each.explanation]
    assert not unexplained, "\n".join(unexplained)


def test_an_assembler_answers_a_question_in_compact_form(newest: Assembler) -> None:
    asked = "movmatrix.sync.aligned.m8n8.trans.b16 b32 b32"
    seen = Sighting(erratum="", tool="", targets=("sm_90",), ptx="8.0", asked=asked, answer="")
    assert errata.ask(seen, "sm_90", newest) == errata.ACCEPTED


def test_a_line_that_stops_the_parser_is_refused_alone() -> None:
    """CUDA 11.7 gives up a module at braces in the middle of brackets; it still reads the lines after them."""
    oldest, banks = _pinned(0), ("b16", "b32", "b64", "s32")
    stopping = "[%b32_0], [%b64_0, %b64_0, {%b16_0, %b16_1}, {%b32_0}, %b16_0, {%s32_0, %s32_1}], [%b32_0]"
    lines = Lines.of([f"cp.async.bulk.tensor.2d {stopping};", "membar.cta;", f"prefetch.global {stopping};", "mov.b32 %b64_0;"], banks)
    unreadable = questions.unreadable(oldest, lines)
    assert unreadable == (stopping,)
    refused = questions.by_line(questions.refusals(matrix.question(oldest, "sm_80", oldest.ptx, lines, unreadable)))
    assert refused.keys() == {0, 2, 3}
    assert refused[0] == refused[2] == f"cannot read {stopping}"


def test_an_error_about_32_bit_addresses_is_about_the_lines_that_have_them(newest: Assembler) -> None:
    narrower = "mbarrier.inval.b64 [%b16_0];"  # beside it ptxas takes the first line
    texts = ["mbarrier.arrive_drop.release.cta.noComplete.b64 _, [%b32_0], %b32_0;", "membar.cta;", narrower]
    lines = Lines.of(texts, ("b16", "b32", "b64"))
    for target in ("sm_89", "sm_90"):
        refused = questions.by_line(questions.refusals(matrix.question(newest, target, newest.ptx, lines)))
        assert list(refused) == [0]
        assert refused[0].startswith("32-Bit")


def test_an_erratum_explains_its_change_on_its_targets_with_its_answer(
    catalog: Catalog, newest: Assembler, space: dict[str, Neighbours], explained: Explanations
) -> None:
    known = evidence.of(catalog.database)
    [seen] = [one for one in known.of_erratum("wgmma-row-col") if ".row " in one.asked and ".col" not in one.asked]
    target = seen.targets[0]
    line = ptx.expanded(seen.asked)
    assert line in space["wgmma"]
    assert explained.of_line(line, target, newest, "accepted") == "wgmma-row-col"
    assert explained.of_change("wgmma", ".row at the end", target, newest, "accepted") == "wgmma-row-col"
    assert not explained.of_line(line, "sm_120a", newest, "accepted")  # another target
    assert not explained.of_line(line, target, newest, "Illegal modifier")  # another answer
    unasked = newest._replace(cuda="11.8")
    assert not explained.of_change("wgmma", ".row at the end", target, unasked, "accepted")  # a release that was not asked
    assert not explained.of_change("wgmma.sp", ".rn at the end", target, newest, "accepted")  # another change
    # One row may speak of several targets.
    selector = "sp-k32-f16-selector"
    accepted = [one for one in known.of_erratum(selector) if one.answer == errata.ACCEPTED]
    asked = next(one.asked for one in accepted if one.database == "refuses")
    targets = {target for one in accepted if one.asked == asked for target in one.targets}
    assert len(targets) > 5
    for target in targets & set(newest.targets):
        assert explained.of_line(ptx.expanded(asked), target, newest, "accepted") == selector
    assert not explained.of_line(ptx.expanded(asked), "sm_75", newest, "accepted")


def test_the_rules_by_which_check_judges_explain_lines_that_no_erratum_has(newest: Assembler, explained: Explanations) -> None:
    moved = "movmatrix.sync.aligned.m8n8.trans.b16.{} %b32_0, %b32_1;"
    for modifiers, target, answer, explanation in (
        ("b8x16.row", "sm_90a", "accepted", RULES),
        ("b8x16.row", "sm_90a", "Illegal modifier", ""),
        ("bf16.row", "sm_80", "accepted", RULES),
        ("bf16.row", "sm_75", "accepted", ""),  # ignored from sm_80 on
        ("bf16.row", "sm_75", "Feature '.bf16' requires .target sm_80 or higher", RULES),
        ("s8.row", "sm_90a", "accepted", ""),
    ):
        assert explained.of_line(moved.format(modifiers), target, newest, answer) == explanation, (modifiers, target)


def test_assemblers_describe_themselves(newest: Assembler) -> None:
    pin = assemblers.pins()[-1]
    assert (newest.cuda, newest.build, newest.ptx) == (pin["cuda"], pin["version"], pin["ptx"])
    assert newest.sha256 == pin["binary_sha256"]
    assert set(_TARGETS) < set(newest.targets)


# --- random lines -----------------------------------------------------------------------------------------------------------


class Edit(NamedTuple):
    """Another text in one place of an instruction; an empty one removes it."""

    place: int  # of a token, or after the tokens of an operand
    text: str
    change: str  # in the words of the negative space


class Grammar:
    """Lines from the grammar of the reference: the syntax of an instruction, values from the whole spec, any operands."""

    def __init__(self, catalog: Catalog) -> None:
        self._vocabulary = neighbours.Vocabulary(catalog)
        self._of = {entry.name: catalog.of(entry.name) for entry in catalog.database.spec.instructions}

    def draw(self, random: Random) -> Candidate:
        """A line a few edits away from a legal one."""
        variants = self._of[random.choice(list(self._of))]
        instruction = random.choice(variants)
        giving = instruction if random.random() < 0.8 else random.choice(variants)  # operands of another instruction now and then
        form = random.choice(ptx.operand_lists(giving))
        edits = {edit.place: edit for _ in range(random.randrange(5)) for edit in [self._edit(random, instruction, form)]}
        return Candidate(instruction, giving, form, tuple(edits.values()))

    def _edit(self, random: Random, instruction: Instruction, form: OperandForm) -> Edit:
        parts, names = neighbours.tokens(instruction), ptx.items(form.syntax)
        opcode = instruction.variant.instruction.opcode.split(".")
        first = sum(not name for name, _ in parts[: len(opcode)])  # another opcode would be another instruction: ``fence.async``
        place = random.randrange(first, len(parts) + 1 + len(names))
        if place == len(parts):
            token = random.choice(self._vocabulary.joining)
            return Edit(place, token, f".{token} at the end")
        if place < len(parts):
            name, token = parts[place]
            if token and random.random() < 0.2:
                return random.choice([Edit(place, "", f"without .{token}"), Edit(place, f"{token}.{token}", f".{token} twice")])
            other = random.choice(self._vocabulary.others(name, token))
            return Edit(place, other, f".{other} for {name or f'.{token}'}")
        name = names[place - len(parts) - 1]
        text = ptx.item(form, name)
        if random.random() < 0.2:
            return random.choice([Edit(place, "", f"without {name}"), Edit(place, f"{text}, {text}", f"{name} twice")])
        chosen = random.choice(ptx.named(name))
        other, change = random.choice(list(neighbours.operand_others(form.operand(chosen), self._vocabulary)))
        return Edit(place, ptx.item(form, name, {chosen: other}), change)


class Candidate(NamedTuple):
    """An instruction, an operand list of an instruction of the same name, and the edits."""

    instruction: Instruction
    giving: Instruction
    form: OperandForm
    edits: tuple[Edit, ...]

    @property
    def line(self) -> str:
        tokens = [token for _, token in neighbours.tokens(self.instruction)]
        texts = [*tokens, "", *(ptx.item(self.form, name) for name in ptx.items(self.form.syntax))]
        for edit in self.edits:
            texts[edit.place] = edit.text
        spelling, operands = texts[: len(tokens) + 1], texts[len(tokens) + 1 :]
        return ptx.line(".".join(filter(None, spelling)), filter(None, operands))

    def foreign(self) -> list[str]:
        """The changes that turn the instruction that gives the operands into this one, and the operands that this one lacks, in words."""
        own = {name for form in ptx.operand_lists(self.instruction) for name in ptx.items(form.syntax)}
        changes = [f"without {name}" for name in own - set(ptx.items(self.form.syntax))]
        for (name, token), (_, other) in zip(neighbours.tokens(self.giving), neighbours.tokens(self.instruction), strict=True):
            if token != other:
                changes.append(f".{other} for {name}" if other else f"without .{token}")
        return changes


def test_random_lines_are_legal_where_the_newest_assembler_takes_them(catalog: Catalog, newest: Assembler, explained: Explanations) -> None:
    """The two agree on every line, apart from edits that an erratum explains."""
    legality, grammar, banks = Legality(catalog), Grammar(catalog), matrix.banks(catalog)
    counts: Counter[bool] = Counter()

    def differing(candidates: Iterable[Candidate], target: str) -> list[tuple[Candidate, str]]:
        by_line = {each.line: each for each in candidates}
        batch = Lines.of(by_line, banks)
        refused = questions.by_line(questions.refusals(matrix.question(newest, target, newest.ptx, batch)))
        lines = []
        for number, line in enumerate(batch.texts):
            first = legality.accepted_by(line).get(target)
            legal = first is not None and first <= newest.ptx
            counts[legal] += 1
            said = refused.get(number, errata.ACCEPTED)
            if legal == (number in refused) and not explained.of_line(line, target, newest, said):
                lines.append((by_line[line], said))
        return lines

    def mended(candidate: Candidate, target: str, said: str) -> Candidate:
        """The candidate without the edits that an erratum explains, or with operands of its own if it explains the foreign ones."""
        if any(explained.of_change(candidate.instruction.family, change, target, newest, said) for change in candidate.foreign()):
            own = candidate.instruction
            return candidate._replace(giving=own, form=ptx.operand_lists(own)[0], edits=())
        edits = []
        for edit in candidate.edits:
            alone = candidate._replace(edits=(edit,))
            by_change = explained.of_change(candidate.instruction.family, edit.change, target, newest, said)
            if not (by_change or explained.of_line(alone.line, target, newest, said)):
                edits.append(edit)
        assert len(edits) < len(candidate.edits), f"{target}: {said}: {candidate.line}"
        return candidate._replace(edits=tuple(edits))

    @settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
    @given(st.integers(0, 2**32 - 1), st.sampled_from(_TARGETS))
    def agree(seed: int, target: str) -> None:
        random = Random(seed)
        lines = differing((grammar.draw(random) for _ in range(_LINES)), target)
        if lines:
            again = differing([mended(candidate, target, said) for candidate, said in lines], target)
            assert not again, "\n".join(f"{target}: {said}: {candidate.line}" for candidate, said in again)

    agree()
    assert counts[True] > 100
    assert counts[False] > 1000
