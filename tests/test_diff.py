"""``ptxmma diff`` on edited copies of specs: `pytest -n 0 tests/test_diff.py`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from click.testing import Result

from commands import invoke
from ptxmma import paths
from ptxmma.catalog import comparison
from ptxmma.catalog.comparison import Change
from ptxmma.catalog.comparison.fact_changes import same_formula
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline
from ptxmma.model import Database, Granularity, Layout
from ptxmma.model.bitmap import BitMap

_TOY = Path(__file__).parent / "toy"
_PLAIN = "toy.sync.aligned.m16n8k16.f32.f16.f16.f32"
_ALL = (_PLAIN, f"{_PLAIN}.happy", f"{_PLAIN}.sad")
_CD_ROW, _CD_COL = 'row: "lane // 4 + 8 * (i // 2)"', 'col: "2 * (lane % 4) + i % 2"'


class Edit(NamedTuple):
    """One change of the toy spec, and the expected differences."""

    file: str
    old: str
    new: str
    changes: list[Change]


_EDITS = {
    "a variant removed": Edit(
        "instructions/toy.yaml", '"happy", "sad"]', '"sad"]', [Change("instruction", "removed", True, (f"{_PLAIN}.happy",))]
    ),
    "a variant added": Edit(
        "instructions/toy.yaml", '"happy", "sad"]', '"happy", "sad", "wild"]', [Change("instruction", "added", False, (f"{_PLAIN}.wild",))]
    ),
    "targets narrowed": Edit(
        "instructions/toy.yaml",
        '{ptx: "7.0", targets: ["sm_80"], source: "3.2"}',
        '{ptx: "7.8", targets: ["sm_90"], source: "3.2"}',
        [
            Change("targets", "no longer accepted by sm_80", True, _ALL[:2]),
            Change("requirements", "the manual's rules are others, with the same result", False, _ALL[2:]),
        ],
    ),
    "targets widened": Edit(
        "instructions/toy.yaml",
        '{when: {mood: "sad"}, ptx: "7.8", targets: ["sm_90"], source: "3.2"}',
        '{when: {mood: "sad"}, ptx: "7.0", targets: ["sm_80"], source: "3.2"}',
        [Change("targets", "now accepted by sm_80", False, _ALL[2:])],
    ),
    "a later version": Edit(
        "instructions/toy.yaml",
        '{ptx: "7.0", targets: ["sm_80"], source: "3.2"}',
        '{ptx: "7.8", targets: ["sm_80"], source: "3.2"}',
        [
            Change("targets", "from PTX ISA 7.8 on instead of 7.0 on sm_80", True, _ALL[:2]),
            Change("requirements", "the manual's rules are others, with the same result", False, _ALL[2:]),
        ],
    ),
    "elements moved": Edit(
        "layouts.yaml",
        f"{_CD_ROW}\n      {_CD_COL}",
        'row: "lane // 4 + 8 * (i % 2)"\n      col: "2 * (lane % 4) + i // 2"',
        [Change("layout", f"{name}: 64 of 128 moved; i 1, lane 0 was row 0, col 1, is row 8, col 0", True, _ALL) for name in ("d", "c")],
    ),
    "a formula worded otherwise": Edit("layouts.yaml", _CD_COL, 'col: "((lane & 3) << 1) | (i & 1)"', []),
    "a title": Edit("instructions/toy.yaml", 'title: "A toy multiply-accumulate"', 'title: "Multiply and add"', []),
    "a register type": Edit(
        "types.yaml",
        'elements: ["f32"], when: {family: "toy"}, registers: ["f32"]',
        'elements: ["f32"], when: {family: "toy"}, registers: ["b32"]',
        [
            Change("operand", f"{name}: {text}", True, _ALL)
            for name in ("d", "c")
            for text in ("c type float is now uint32_t", "constraint f is now r", "register types f32 are now b32")
        ],
    ),
    "one more register type": Edit(
        "types.yaml",
        'elements: ["f16"], when: {family: "toy"}, registers: ["b32"]',
        'elements: ["f16"], when: {family: "toy"}, registers: ["b32", "f32"]',
        [Change("operand", f"{name}: register types b32 are now b32 f32", False, _ALL) for name in ("a", "b")],
    ),
    "fewer immediates": Edit(
        "instructions/toy.yaml", "limit: 3", "limit: 1", [Change("operand", "knob: immediates 0..3 are now 0..1", True, _ALL)]
    ),
    "more immediates": Edit(
        "instructions/toy.yaml",
        "limit: 3",
        "limit: 4294967295",
        [Change("operand", "knob: immediates 0..3 are now 0..4294967295", False, _ALL)],
    ),
    "another default": Edit(
        "instructions/toy.yaml", "default: 0", "default: 1", [Change("operand", "knob: default 0 is now 1", True, _ALL)]
    ),
    "another operand list": Edit(
        "instructions/toy.yaml",
        'operands: "d, a, b, c, knob"',
        'operands: "d, a, c, b, knob"',
        [Change("operand", "form 'd, a, b, c, knob' is now 'd, a, c, b, knob'", True, _ALL)],
    ),
    "identifiers renamed": Edit(
        "instructions/toy.yaml",
        'stem: "toy"',
        'stem: "game"',
        [
            Change(
                "function", f"identifier toy_m16n8k16_f32_f16_f16_f32{mood} is now game_m16n8k16_f32_f16_f16_f32{mood}", True, (spelling,)
            )
            for mood, spelling in zip(("", "_happy", "_sad"), _ALL, strict=True)
        ],
    ),
    "a layout renamed": Edit(
        "layouts.yaml",
        'operands: ["b"]',
        'operands: ["b"]\n    name: "b_col_b{bits}"',
        [Change("function", "is now toy_m16n8k16_b_col_b16", True, ("toy_m16n8k16_b_b16",))],
    ),
    "a type": Edit("types.yaml", "bias: 15", "bias: 14", [Change("element type", "bias 15 is now 14", True, ("f16",))]),
    "no longer documented": Edit(
        "instructions/toy.yaml",
        '"sad"], source: "3.1"',
        '"sad"], documented: false, source: "ptxas 13.5"',
        [Change("instruction", "is no longer documented", False, _ALL)],
    ),
    "behaviour undefined": Edit(
        "instructions/toy.yaml",
        "forms:",
        'undefined:\n  - {text: "The toy is broken.", source: "3.1"}\nforms:',
        [Change("undefined", "now stated: The toy is broken.", False, _ALL)],
    ),
    "order of tokens": Edit(
        "instructions/toy.yaml",
        'ordered: [["dtype", "atype", "btype", "ctype"]]',
        'ordered: [["dtype", "atype", "btype", "ctype"], ["mood"]]',
        [
            Change(
                "instruction",
                'ordered [["dtype","atype","btype","ctype"]] is now [["dtype","atype","btype","ctype"],["mood"]]',
                True,
                ("toy",),
            )
        ],
    ),
    "an erratum": Edit(
        "spaces.yaml",
        "coordinates: {warp: [], lane: 32, register: [], bit: 32}",
        "coordinates: {warp: [], lane: 32, register: [], bit: 32}\n---\nkind: errata\nerrata:\n"
        '  - {id: "lost", section: "3", says: "One.", holds: "Two.", known: "By counting.", bites: "misprint", textual: true}',
        [Change("erratum", "added", False, ("lost",))],
    ),
    "another manual": Edit(
        "spec.yaml", "ISA 1.0", "ISA 1.1", [Change("document", "instead of The Toy ISA 1.0", False, ("The Toy ISA 1.1",))]
    ),
    "a version": Edit(
        "isa_versions.yaml",
        'cuda: "11.8", source: "2"}',
        'cuda: "11.8", source: "2"}\n  - {version: "7.9", cuda: "11.9", source: "2"}',
        [Change("PTX ISA version", "added", False, ("7.9",))],
    ),
}


def _edited(folder: Path, edit: Edit) -> Path:
    shutil.copytree(_TOY, folder)
    path = folder / edit.file
    text = path.read_text(encoding="utf-8")
    assert edit.old in text
    path.write_text(text.replace(edit.old, edit.new, 1), encoding="utf-8")
    return folder


def _diff(*arguments: str) -> Result:
    return invoke("diff", *arguments)


@pytest.fixture(scope="module")
def toy() -> Catalog:
    return pipeline.read(_TOY)


@pytest.mark.parametrize("name", _EDITS)
def test_each_kind_of_change(name: str, toy: Catalog, tmp_path: Path) -> None:
    edit = _EDITS[name]
    other = pipeline.read(_edited(tmp_path / "spec", edit))
    assert sorted(comparison.compare(toy, other)) == sorted(edit.changes)
    breaking = any(change.breaking for change in edit.changes)
    result = _diff(str(_TOY), str(tmp_path / "spec"))
    assert result.exit_code == int(breaking), result.output
    for change in edit.changes:
        assert f"{change.kind}: {change.text}: {change.subjects[0]}" in result.output


def test_back_again_is_the_opposite(toy: Catalog, tmp_path: Path) -> None:
    other = pipeline.read(_edited(tmp_path / "spec", _EDITS["a variant removed"]))
    assert comparison.compare(other, toy) == [Change("instruction", "added", False, (f"{_PLAIN}.happy",))]


def test_nothing_differs(catalog: Catalog, toy: Catalog) -> None:
    assert comparison.compare(catalog, catalog) == comparison.compare(toy, toy) == []
    result = _diff(str(_TOY), str(_TOY))
    assert (result.exit_code, result.output) == (0, "both mean the same\n")


def test_facts_beside_the_instructions(catalog: Catalog, tmp_path: Path) -> None:
    """On the real spec, which has shared memory and errata."""
    edits = [
        ("shared_memory.yaml", "count: 32", "count: 64"),
        ("tensor_maps.yaml", "largest_box: 256", "largest_box: 512"),
        ("tensor_maps.yaml", 'i > 0 or unit != 0", need: "1 <= step <= 8"', 'i > 0 or unit != 0", need: "1 <= step <= 4"'),
        ("throughput.yaml", "sms: 108\n    clock: 1410", "sms: 54\n    clock: 2820"),
    ]
    shutil.copytree(paths.SPEC, tmp_path / "spec")
    for file, old, new in edits:
        path = tmp_path / "spec" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
    assert comparison.compare(catalog, pipeline.read(tmp_path / "spec")) == [
        Change("shared memory", "banks [32,4] is now [64,4]", True, ("shared memory",)),
        Change("box", "largest box 256 is now 512", True, ("limits of boxes",)),
        Change("rule of tensor maps", "removed", True, ("element_strides i > 0 or unit != 0 1 <= step <= 8",)),
        Change("rule of tensor maps", "added", False, ("element_strides i > 0 or unit != 0 1 <= step <= 4",)),
        Change("throughput", "removed", False, ("NVIDIA A100 (SXM4) at 1410 MHz",)),
        Change("throughput", "added", False, ("NVIDIA A100 (SXM4) at 2820 MHz",)),
    ]


def test_metadata_and_scale_factors_that_moved(catalog: Catalog) -> None:
    """Two lanes exchanged in every layout of a kind: the sparse, or the block-scaled instructions change, and no others."""

    def exchanged(layout: Layout) -> Layout:
        swapped = {("lane", 0): ("lane", 1), ("lane", 1): ("lane", 0)}
        bits = {name: tuple(swapped.get(target, target) for target in targets) for name, targets in layout.map.bits.items()}
        return msgspec.structs.replace(layout, map=BitMap(layout.map.inputs, layout.map.outputs, bits))

    for kind, qualifier in (("metadata", ""), ("scale", "scale_vec")):
        layouts = tuple(exchanged(layout) if layout.kind == kind else layout for layout in catalog.database.layouts)
        other = Catalog(Database(spec=catalog.database.spec, layouts=layouts))
        changes = comparison.compare(catalog, other)
        assert {(change.kind, change.breaking) for change in changes} == {("layout", True)}
        affected = {
            each.canonical
            for each in catalog.all()
            if each.operation == "multiply" and (each.qualifiers.get(qualifier) if qualifier else each.sparse)
        }
        assert {subject for change in changes for subject in change.subjects} == affected


def test_legal_metadata(catalog: Catalog) -> None:
    """Fewer legal fields break consumers, more do not."""

    def without_last(pattern: Granularity) -> Granularity:
        return msgspec.structs.replace(pattern, legal=pattern.legal[:-1], ordered=pattern.ordered[:-1])

    spec = catalog.database.spec
    fewer = msgspec.structs.replace(spec, granularities=tuple(map(without_last, spec.granularities)))
    other = Catalog(Database(spec=fewer, layouts=catalog.database.layouts))
    for old, new, breaking in ((catalog, other, True), (other, catalog, False)):
        changes = comparison.compare(old, new)
        assert {(change.kind, change.breaking) for change in changes} == {("metadata", breaking)}
        assert {subject for change in changes for subject in change.subjects} == {
            each.canonical for each in catalog.all() if each.variant.instruction.metadata
        }


def test_formulas_with_one_meaning() -> None:
    assert same_formula("x * 2 + k", "k + (x << 1)")
    assert not same_formula("x * 2 + k", "x * 2 + k + 1")
    assert not same_formula("x // 8", "x // 9")
    assert not same_formula("x", "x + 0 * y // (y - y)")  # cannot be evaluated


def test_databases(toy_database: Path, tmp_path: Path) -> None:
    edited = _edited(tmp_path / "spec", _EDITS["elements moved"])
    assert invoke("generate", "--spec", edited, "--out", tmp_path, "--only", "database").exit_code == 0
    other = tmp_path / "generated" / "database" / "ptxmma.json"
    assert _diff(str(toy_database), str(toy_database)).output == "both mean the same\n"
    result = _diff(str(toy_database), str(other), "--json")
    assert result.exit_code == 1
    assert json.loads(result.output) == {
        "breaking": True,
        "changes": [change._asdict() | {"subjects": list(change.subjects)} for change in _EDITS["elements moved"].changes],
    }
    mixed = _diff(str(toy_database), str(edited))
    assert (mixed.exit_code, mixed.output) == (1, _diff(str(toy_database), str(other)).output)


def _git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def _commit(top: Path, spec: Path) -> None:
    """A commit with the database that a spec makes."""
    assert invoke("generate", "--spec", spec, "--out", top, "--only", "database").exit_code == 0
    _git(top, "add", ".")
    _git(top, "commit", "--quiet", "--message", spec.name)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two revisions of the toy's database, and a folder in which the command is called."""
    top = tmp_path / "repository"
    _git(tmp_path, "init", "--quiet", str(top))
    _commit(top, _TOY)
    _commit(top, _edited(tmp_path / "edited", _EDITS["a variant removed"]))
    (top / "below").mkdir()
    monkeypatch.chdir(top / "below")
    return top


def test_git_revisions(repository: Path) -> None:
    result = _diff("HEAD~1", "HEAD")
    assert result.exit_code == 1
    assert f"instruction: removed: {_PLAIN}.happy" in result.output
    assert _diff("HEAD", str(repository / "generated/database/ptxmma.json")).output == "both mean the same\n"
    assert _diff("HEAD~1", str(_TOY)).output == "both mean the same\n"
    result = _diff("HEAD~7", "HEAD")
    assert result.exit_code == 2
    assert "'HEAD~7' is neither a file nor a directory nor a git revision" in " ".join(result.output.split())


def test_a_revision_of_another_version(repository: Path) -> None:
    file = repository / "generated" / "database" / "ptxmma.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"includes":', '"contains":'), encoding="utf-8")
    _git(repository, "commit", "--quiet", "--all", "--message", "third")
    result = _diff("HEAD", "HEAD~1")
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert "this version of ptxmma cannot read the database of revision 'HEAD', which another version wrote" in said
    assert "contains" in said


def test_a_revision_without_a_database(repository: Path) -> None:
    _git(repository, "rm", "-r", "--quiet", "generated")
    _git(repository, "commit", "--quiet", "--message", "third")
    result = _diff("HEAD~1", "HEAD")
    assert result.exit_code == 2
    assert "the revision 'HEAD' has no generated/database/ptxmma.json" in " ".join(result.output.split())


def test_outside_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    result = _diff("HEAD", "HEAD")
    assert result.exit_code == 2
    assert "this is not a git repository" in " ".join(result.output.split())


def test_a_spec_with_mistakes(tmp_path: Path) -> None:
    broken = _edited(tmp_path / "spec", Edit("targets.yaml", 'includes: ["sm_80"]', 'includes: ["sm_81"]', []))
    result = _diff(str(_TOY), str(broken))
    assert result.exit_code == 2
    assert "unknown target 'sm_81'" in result.output
    assert "the spec" in result.output
    (tmp_path / "no.json").write_text("{}")
    result = _diff(str(tmp_path / "no.json"), str(_TOY))
    assert result.exit_code == 2
    assert "not a database of this version" in " ".join(result.output.split())
