"""Overlays: a mistake in an overlay is reported in the overlay's file, with the other place; one run shows every mistake."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from commands import invoke
from ptxmma import paths

_TOY = Path(__file__).parent / "toy"
_ODD = Path(__file__).parent / "odd"


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """Families of the tests as an overlay of the packaged spec: sizes, operands and qualifiers of many names, all their own."""
    folder = tmp_path / "overlay"
    for name, source in (("toy", _TOY), ("odd", _ODD)):
        shutil.copytree(source / "instructions", folder / "instructions", dirs_exist_ok=True)
        shutil.copy(source / "layouts.yaml", folder / f"a_{name}_layouts.yaml")  # first of all files by name
        types = (source / "types.yaml").read_text(encoding="utf-8")
        elements = types[types.index("elements:") : types.index("registers:")] if name == "odd" else ""
        carriers = types[types.index("carriers:") :]
        (folder / f"a_{name}_types.yaml").write_text(f"kind: types\n{elements}{carriers}", encoding="utf-8")
    (folder / "a_spaces.yaml").write_text('kind: spaces\nscopes: {"warppair": 64}\n', encoding="utf-8")
    return folder


def _problems(overlay: Path) -> list[str]:
    result = invoke("validate", "--overlay", overlay)
    assert result.exit_code in (0, 1), (result.output, result.exception)
    return result.stderr.splitlines()[:-1] if result.exit_code else []


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {path.name}: the test is stale"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_overlay_is_sound(overlay: Path) -> None:
    assert _problems(overlay) == []


def test_an_added_target_and_version_go_through_every_output_with_the_families(overlay: Path, tmp_path: Path) -> None:
    """The families of the overlay and of the spec share headers, and a second memory lies beside the memory of products."""
    (overlay / "a_targets.yaml").write_text(
        'kind: targets\ntargets:\n  - {name: "sm_130", ptx: "9.9", includes: ["sm_121"], source: "2"}\n', encoding="utf-8"
    )
    (overlay / "a_versions.yaml").write_text(
        'kind: isa_versions\nisa_versions:\n  - {version: "9.9", cuda: "13.9", source: "2"}\n', encoding="utf-8"
    )
    instructions = overlay / "instructions"
    text = (instructions / "rack.yaml").read_text(encoding="utf-8")
    (instructions / "rack.yaml").write_text(
        text.replace('ptx: "7.8", targets: ["sm_90"]', 'ptx: "9.9", targets: ["sm_130"]'), encoding="utf-8"
    )
    out = tmp_path / "out"
    done = invoke("generate", "--overlay", overlay, "--out", out)
    assert done.exit_code == 0, done.output
    made = {path.name for path in (out / "generated/include/ptxmma").iterdir()}
    assert {"toy.cuh", "toy_pack.h", "rack_memory.h", "rack.cuh", "mma", "tcgen05_products.h"} <= made
    assert '"sm_130"' in (out / "generated/include/ptxmma/targets.def").read_text(encoding="utf-8")
    unproven = invoke("validate", "--overlay", overlay).output
    assert "these targets are unproven: sm_130" in unproven
    assert "instructions are unproven: " in unproven


def test_names_of_the_spec_are_free_in_an_overlay(overlay: Path) -> None:
    """Operands, sizes and qualifiers with the names of those of `ldmatrix` and of the axes of `mma`'s layouts."""
    renamed = {
        r'"out, \[from\]"': '"r, [p]"', r'"out"': '"r"', r"\bout:": "r:", r'"from"': '"p"', r"\bfrom:": "p:",
        r"\* row\b": "* y", r"\brow:": "y:", r"\bcol:": "x:", r"\brows\b": "row", r"\bcols\b": "col", r"\bcount\b": "num",
        r"\btile\b": "kind",
    }  # fmt: skip
    for name in ("instructions/scoop.yaml", "a_odd_layouts.yaml", "a_odd_types.yaml"):
        path = overlay / name
        text = path.read_text(encoding="utf-8")
        for old, new in renamed.items():
            text = re.sub(old, new, text)
        path.write_text(text, encoding="utf-8")
    assert _problems(overlay) == []


# What is added to the overlay, and the problem: in the overlay, with the place in the spec.
_CLASHES = {
    "an instruction of the spec": (
        (_TOY / "instructions/toy.yaml").read_text(encoding="utf-8").replace('name: "toy"', 'name: "mma"'),
        r"/\d.yaml:1:1: 'mma' is there twice; see also \S*instructions/mma.yaml:\d+:\d+",
    ),
    "a family's file": (
        (_TOY / "instructions/toy.yaml").read_text(encoding="utf-8").replace('"toy"', '"mma_sp"').replace("toy.sync", "mma_sp.sync"),
        r"/\d.yaml:3:10: the families 'mma.sp' and 'mma_sp' would share their files; see also \S*instructions/mma_sp.yaml:\d+:\d+",
    ),
    "an element type of the spec": (
        'kind: types\nelements:\n  - {name: "f16", title: "x", form: "bits", bits: 16, numpy: "uint16", source: "x"}\n',
        r"/\d.yaml:3:\d+: 'f16' is there twice; see also \S*spec/types.yaml:\d+:\d+",
    ),
    "a carrier for operands of the spec": (
        'kind: types\ncarriers:\n'
        '  - {operands: ["p"], elements: [], when: {family: "ldmatrix", space: "shared"}, registers: ["b32"], source: "x"}\n',
        r"/\d.yaml:3:\d+: two entries of types.carriers cover operand 'p' of ldmatrix\S+; see also \S*spec/types.yaml:\d+:\d+",
    ),
    "a layout for operands of the spec": (
        'kind: register_layouts\nregister_layouts:\n'
        '  - {operands: ["a"], of: {family: "movmatrix"}, axes: {row: "8", col: "8"}, at: {row: "lane // 4", col: "i"}, source: "x"}\n',
        r"/\d.yaml:3:\d+: two entries of register_layouts cover operand 'a' of movmatrix\S+; see also \S*layouts/ldmatrix.yaml:\d+:\d+",
    ),
    "a second protocol": (
        (paths.SPEC / "protocol.yaml").read_text(encoding="utf-8"),
        r"/\d.yaml:\d+:\d+: wgmma has two protocols; see also \S*spec/protocol.yaml:\d+:\d+",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [
        ["an instruction of the spec", "a family's file", "an element type of the spec", "a second protocol"],
        ["a carrier for operands of the spec", "a layout for operands of the spec"],
    ],
    ids=["names", "operands"],
)
def test_a_clash_with_the_spec_is_a_problem_of_the_overlay(overlay: Path, names: list[str]) -> None:
    for number, name in enumerate(names):  # digits come first of all
        (overlay / f"{number}.yaml").write_text(_CLASHES[name][0], encoding="utf-8")
    problems = _problems(overlay)
    for name in names:
        assert any(re.search(_CLASHES[name][1], problem) for problem in problems), (name, problems)
    assert all(problem.startswith(str(overlay)) for problem in problems), problems


def test_a_new_size_that_a_formula_of_the_spec_does_not_fit(overlay: Path) -> None:
    """An instruction joins a family of the spec: its formulas hold for it too, and here they do not."""
    text = (_TOY / "instructions/toy.yaml").read_text(encoding="utf-8").replace('family: "toy"', 'family: "mma"')
    for key in ("name", "stem"):
        text = text.replace(f'{key}: "toy"', f'{key}: "joins"')
    (overlay / "a_joins.yaml").write_text(text.replace("m16n8k16", "m16n8k24"), encoding="utf-8")
    problems = _problems(overlay)
    assert problems
    assert all(problem.startswith(str(overlay / "a_joins.yaml")) and "see also" in problem for problem in problems), problems


def test_every_mistake_shows_in_one_run(overlay: Path) -> None:
    """Mistakes that schemas find hide neither each other nor those that rules find in the sound documents."""
    _edit(overlay / "instructions/weave.yaml", 'scope: "warppair"', 'scope: "warpair"')
    _edit(overlay / "instructions/scoop.yaml", 'stem: "scoop"', 'stem: "Scoop"')
    _edit(overlay / "a_odd_layouts.yaml", 'row: "lane // across"', "row: 1.5")
    _edit(overlay / "instructions/stash.yaml", '"[to], in"', '"[to], inn"')
    _edit(overlay / "instructions/stash.yaml", "book: {title", "boook: {title")
    _edit(overlay / "a_toy_types.yaml", 'operands: ["c", "d"]', 'operands: ["c", "dd"]')
    places = {re.sub(r":\d+: .*", "", problem).rpartition("/")[2] for problem in _problems(overlay)}
    lines = {
        f"{name}:{number}"
        for name, texts in {
            "weave.yaml": ('scope: "warpair"',),
            "scoop.yaml": ('stem: "Scoop"',), "a_odd_layouts.yaml": ("row: 1.5",), "toy.yaml": ("  - {shape",),
            "stash.yaml": ("inn", "boook:"),
        }.items()
        for number, line in enumerate(next(overlay.rglob(name)).read_text(encoding="utf-8").splitlines(), 1)
        if any(text in line for text in texts)
    }  # fmt: skip
    assert lines <= places, lines - places


def test_what_an_overlay_replaces_may_leave_parts_of_the_spec_unused(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    (overlay / "instructions").mkdir(parents=True)
    shutil.copy(_TOY / "instructions/toy.yaml", overlay / "instructions/wgmma_sync.yaml")
    problems = _problems(overlay)
    assert [problem for problem in problems if "leave it out" in problem] == []
