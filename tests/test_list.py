"""``ptxmma list``, and the lines of a list: `pytest -n 0 tests/test_list.py`."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

from commands import invoke
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.instructions.user_names import target_named
from ptxmma.catalog.lookup import instructions
from ptxmma.catalog.products import resolution
from ptxmma.catalog.summaries import listing
from ptxmma.generator import pipeline


def _invoke(*arguments: str) -> Result:
    return invoke("list", *arguments)


def _list(*arguments: str) -> list[dict[str, str]]:
    result = _invoke(*arguments, "--format", "csv")
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def _spellings(rows: list[dict[str, str]]) -> set[str]:
    return {row["instruction"] for row in rows}


@pytest.fixture(scope="module")
def everything() -> list[dict[str, str]]:
    return _list("--all")


def test_all_are_all(everything: list[dict[str, str]], catalog: Catalog) -> None:
    assert [row["instruction"] for row in everything] == [each.canonical for each in catalog.all()]


def test_lines_cover_every_instruction_once(catalog: Catalog) -> None:
    lines = listing.lines(catalog.all())
    assert [len(line.instructions) for line in lines] != [1] * len(lines)
    assert sorted(each.canonical for line in lines for each in line.instructions) == sorted(each.canonical for each in catalog.all())
    for line in lines:
        for each in line.instructions:
            assert each.accepted_by() == line.accepted_by
            assert each.documented == line.documented
            n = each.extents.get("n")
            assert each.canonical == line.spelling.replace("nNk", f"n{n}k").replace(".xN.", f".x{n}.")
        assert line.n == tuple(each.extents["n"] for each in line.instructions if each.operation == "multiply" or each.variant.ranging)


def test_groups_of_types() -> None:
    assert _spellings(_list("--type", "fp8")) == _spellings(_list("--type", "e4m3")) | _spellings(_list("--type", "e5m2"))
    assert _spellings(_list("--type", "int4")) == _spellings(_list("--type", "s4")) | _spellings(_list("--type", "u4"))
    assert _spellings(_list("--type", "fp4", "--sparse")) == _spellings(_list("--type", "e2m1", "--sparse"))
    wrong = _invoke("--type", "fp7")
    assert (wrong.exit_code, "unknown element type 'fp7'; closest: fp" in wrong.output) == (2, True)


def test_types_that_a_descriptor_chooses(catalog: Catalog) -> None:
    legal = _spellings(_list("--family", "tcgen05.mma", "--type", "bf16", "--target", "B200", "--all"))
    every = _spellings(_list("--family", "tcgen05.mma", "--target", "B200", "--all"))
    for opcode in every:
        takes = True
        try:
            catalog.find(opcode).resolved(m=128, n=128, atype="bf16", btype="bf16", dtype="f32")
        except ValueError:
            takes = False
        assert (opcode in legal) == takes, opcode
    assert {each.canonical for each in instructions(family="tcgen05.mma", target="sm_100a", atype="bf16")} == legal
    assert "no instruction passes" in _invoke("--family", "tcgen05.mma", "--type", "f64").output
    scales = _spellings(_list("--family", "tcgen05.mma", "--type", "ue4m3"))
    assert scales
    assert all("mxf4nvf4" in each for each in scales)


@pytest.mark.parametrize("shape", ["m64n64k16", "m128n256k16", "m256n32k96", "m128nNk8", "m32n24k16"])
def test_shapes_that_a_descriptor_chooses_count(catalog: Catalog, shape: str) -> None:
    spec, (m, n, k) = catalog.database.spec, re.findall(r"[0-9]+|N", shape)
    sizes = {(int(m), int(k), *([] if n == "N" else [int(n)]))}
    legal = set()
    for opcode in instructions(family="tcgen05.mma"):
        products = (each.sizes for each in resolution.every(spec, opcode.variant))
        if any((size["m"], size["k"], *([] if n == "N" else [size["n"]])) in sizes for size in products):
            legal.add(opcode.canonical)
    if legal:
        assert {each.canonical for each in instructions(family="tcgen05.mma", shape=shape)} == legal
        assert set(_spellings(_list("--family", "tcgen05.mma", "--shape", shape))) == legal
    else:
        assert f"unknown shape '{shape}'" in _invoke("--shape", shape).output


def test_formats_in_memory_are_types() -> None:
    rows = _list("--family", "ldmatrix", "--type", "b8x16")
    assert {row["types"] for row in rows} == {"b8x16 b6x16_p32", "b8x16 b4x16_p64"}
    assert {row["types"] for row in _list("--family", "wmma", "--type", "tf32")} == {"tf32", "f32 tf32 tf32 f32"}


def test_a_line_for_every_n() -> None:
    (row,) = _list("--shape", "m64nNk32", "--type", "u8", "--dense", "--ptx", "8.0")[:1]
    assert row["instruction"] == "wgmma.mma_async.sync.aligned.m64nNk32.s32.u8.u8"
    assert (row["shape"], row["types"], row["n"]) == ("m64nNk32", "s32 u8 u8", "8..32 by 8, 48..256 by 16")
    one = _list("--shape", "m64n48k32", "--type", "u8", "--dense", "--ptx", "8.0")
    assert "wgmma.mma_async.sync.aligned.m64n48k32.s32.u8.u8" in _spellings(one)
    assert {row["n"] for row in one} == {"48"}


@pytest.mark.parametrize("family", ["mma", "mma.sp", "wgmma", "wgmma.sp", "wmma", "ldmatrix", "stmatrix", "movmatrix"])
def test_family(family: str, catalog: Catalog) -> None:
    assert _spellings(_list("--all", "--family", family)) == {each.canonical for each in catalog.all() if each.family == family}


def test_target_and_version(catalog: Catalog) -> None:
    accepted = {each.canonical: each.accepted_by() for each in catalog.all()}
    for target, ptx in (("sm_90a", "8.0"), ("sm_89", "8.4"), ("sm_120a", "8.7"), ("sm_80", "7.0")):
        legal = {spelling for spelling, targets in accepted.items() if target in targets and targets[target] <= ptx}
        rows = _list("--all", "--target", target, "--ptx", ptx)
        assert legal == _spellings(rows)
        assert all(row["ptx"] == accepted[row["instruction"]][target] for row in rows)
        assert legal < _spellings(_list("--all", "--target", target))


def test_version_on_any_target(catalog: Catalog) -> None:
    legal = {each.canonical for each in catalog.all() if any(first in ("6.4", "6.5", "7.0") for first in each.accepted_by().values())}
    assert _spellings(_list("--all", "--ptx", "7.0")) == legal


def test_type_shape_and_sparsity(catalog: Catalog) -> None:
    rows = _list("--all", "--type", "e4m3", "--shape", "m16n8k64", "--sparse")
    assert rows
    for row in rows:
        assert row["instruction"].startswith("mma.sp")
        assert "e4m3" in row["types"].split()
        assert row["shape"] == "m16n8k64"
    dense, sparse = _spellings(_list("--all", "--dense")), _spellings(_list("--all", "--sparse"))
    assert dense | sparse == {each.canonical for each in catalog.all()}
    assert not dense & sparse
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in dense
    # of any operand: scale factors and accumulators too
    assert all("ue4m3" in row["types"] for row in _list("--type", "ue4m3") if row["types"])
    assert len(_list("--type", "f16")) > len(list(instructions(atype="f16", family="mma")))


@pytest.mark.parametrize(
    ("option", "wrong", "close"),
    [
        ("--family", "wgma", "closest: wgmma, wmma, wgmma.sp"),
        ("--target", "sm_90x", "closest: sm_90, "),
        ("--ptx", "8.10", "closest: 8.1, 8.0"),
        ("--type", "e4m4", "closest: e4m3"),
        ("--shape", "m16n8k33", "closest: m16n8k32"),
        ("--family", "zzz", "known: "),
    ],
)
def test_an_unknown_name_lists_the_closest(option: str, wrong: str, close: str) -> None:
    result = _invoke(option, wrong)
    assert result.exit_code == 2
    assert f"{wrong!r}; {close}" in result.output


def test_names_of_another_kind_say_their_command() -> None:
    assert "st.bulk is an instruction of the family st.async" in _invoke("--family", "st.bulk").output
    shown = invoke("show", "B200")
    assert (shown.exit_code, "B200 is a target: `ptxmma targets B200` shows it" in shown.output) == (2, True)


def test_a_family_that_nothing_resembles_lists_all(catalog: Catalog) -> None:
    families = dict.fromkeys(entry.family for entry in catalog.database.spec.instructions)
    assert f"'zzz'; known: {', '.join(families)}" in " ".join(_invoke("--family", "zzz").output.split())


def test_formats_say_the_same() -> None:
    arguments = ("--target", "sm_90a", "--ptx", "8.0", "--type", "e4m3")
    rows = _list(*arguments)
    assert len(rows) == 6
    text = _invoke(*arguments, "--format", "markdown").output
    assert all(value in text for row in rows for value in row.values())
    assert _invoke(*arguments).output == _invoke(*arguments, "--format", "grid").output
    for answer, row in zip(json.loads(_invoke(*arguments, "--format", "json").output), rows, strict=True):
        assert answer == {
            **row,
            "types": row["types"].split(),
            "n": [*range(8, 257, 8)],
            "targets": row["targets"].split(),
            "documented": row["documented"] == "yes",
        }


def test_patterns_are_parts_of_spellings(catalog: Catalog) -> None:
    """Parts that begin and end anywhere find what a search through all spellings finds."""
    spellings = [each.canonical for each in catalog.all()]
    for number, spelling in enumerate(spellings[::97]):
        begin = number % (len(spelling) - 3)
        part = spelling[begin : begin + 4 + number % 13]
        found = [each.canonical for each in instructions(pattern=part)]
        assert found == [each for each in spellings if part in each], part


def _count(*arguments: str) -> int:
    return len(_list("--all", *arguments))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("H100", "sm_90a"), ("h100 pcie", "sm_90a"), ("NVIDIA H200", "sm_90a"), ("hopper", "sm_90a"), ("90", "sm_90"), ("9.0", "sm_90"),
        ("compute_90a", "sm_90a"), ("SM_90A", "sm_90a"), ("100f", "sm_100f"), ("a100", "sm_80"), ("4090", "sm_89"), ("rtx 5090", "sm_120a"),
        ("GeForce RTX 5090", "sm_120a"), ("b200", "sm_100a"), ("Orin", "sm_87"), ("rtx_2080", "sm_75"), ("thor", "sm_110a"),
        ("rubin", "sm_107a"), ("vr200", "sm_107a"), ("R200", "sm_107a"), ("Vera Rubin", "sm_107a"),
        # as nvidia-smi prints them
        ("NVIDIA A100-SXM4-80GB", "sm_80"), ("NVIDIA H100 80GB HBM3", "sm_90a"), ("NVIDIA GH200 480GB", "sm_90a"), ("Tesla T4", "sm_75"),
        ("Tesla V100-SXM2-16GB", "sm_70"), ("NVIDIA RTX 6000 Ada Generation", "sm_89"), ("NVIDIA GeForce RTX 4070 Ti SUPER", "sm_89"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "sm_89"), ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120a"),
    ],
)  # fmt: skip
def test_targets_by_the_names_of_gpus(name: str, target: str, catalog: Catalog) -> None:
    assert target_named(catalog.database.spec, name) == target


def test_every_gpu_has_its_target(catalog: Catalog) -> None:
    spec = catalog.database.spec
    for gpu in spec.gpus:
        assert gpu.target in {entry.name for entry in spec.targets}
        for name in gpu.names:
            assert target_named(spec, name) == target_named(spec, name.upper()) == gpu.target
    rows = _list("--target", "h100", "--family", "wgmma")
    assert rows == _list("--target", "sm_90a", "--family", "wgmma")
    assert rows


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("blackwell", "may be one of several targets; name one: sm_100a: B200, GB200; sm_103a: B300, GB300"),
        ("rtx 6000", "sm_75: Quadro RTX 6000; sm_89: RTX 6000 Ada; sm_120a: RTX PRO 6000 Blackwell"),
        ("RTX6000", "sm_75: Quadro RTX 6000; sm_89: RTX 6000 Ada"),
        ("h1000", "unknown target 'h1000'; closest: H100"),
        ("pcie", "unknown target 'pcie'"),
    ],
)
def test_names_of_several_gpus_or_of_none(name: str, said: str) -> None:
    for verb in (["list"], ["check"]):
        result = invoke(*verb, "--target", name)
        assert (result.exit_code, said in result.output) == (2, True), result.output


def test_a_reader_that_stops_early_is_not_an_error() -> None:
    """The status is that of the command, not of what reads it."""
    command = f"{sys.executable} -m ptxmma list --all --format csv | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_legal_there() -> None:
    result = _invoke("--target", "sm_70", "--type", "e2m1", "--json")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "[]\n",
        f"no instruction passes these filters; without --target there are {_count('--type', 'e2m1')}, "
        f"without --type there are {_count('--target', 'sm_70')}, accepted by sm_100f+ sm_101f+ sm_120f+\n",
    )
    both = _invoke("--target", "sm_70", "--type", "e2m1", "--family", "movmatrix")
    assert "nor without any one of them" in both.stderr
    assert _invoke("--target", "sm_70", "--type", "e2m1").stdout == "instruction  ptx  targets\n"


def test_a_made_up_family(toy_database: Path) -> None:
    assert _invoke("--database", str(toy_database)).output.splitlines()[1:] == [
        "toy.sync.aligned.m16n8k16.f32.f16.f16.f32        7.0  sm_80+",
        "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.happy  7.0  sm_80+",
        "toy.sync.aligned.m16n8k16.f32.f16.f16.f32.sad    7.8  sm_90",
    ]
    assert "known: f16, f32" in _invoke("--database", str(toy_database), "--type", "q9").output


def test_a_grid_repeats_nothing_that_the_spelling_says() -> None:
    def columns(*arguments: str) -> list[str]:
        return _invoke(*arguments).output.splitlines()[0].split()

    assert columns("--family", "movmatrix") == ["instruction", "ptx", "targets"]
    assert columns("--family", "wgmma", "--type", "tf32") == ["instruction", "n", "ptx", "targets"]
    assert columns("--family", "wgmma", "--type", "tf32", "--all") == ["instruction", "ptx", "targets"]
    assert columns("--undocumented") == ["instruction", "ptx", "targets", "documented"]
    assert columns("--family", "movmatrix", "--format", "csv") == ["instruction,shape,types,n,ptx,targets,documented"]


def test_a_pattern_and_what_is_documented(everything: list[dict[str, str]]) -> None:
    def matching(*arguments: str) -> set[str]:
        return _spellings(_list("--all", *arguments))

    spellings = _spellings(everything)
    assert matching("m16n8k16") == {each for each in spellings if "m16n8k16" in each}
    assert matching("mma*k32.*.e4m3.") == {each for each in spellings if re.search(r"mma.*k32\..*\.e4m3\.", each)}
    assert matching("m16n8k16", "--family", "mma.sp") == {row["instruction"] for row in _list("--all", "m16n8k16", "--family", "mma.sp")}
    documented, others = matching("--documented"), matching("--undocumented")
    assert (documented | others, documented & others) == (spellings, set())
    assert {row["documented"] for row in _list("--undocumented")} == {"no"}
    assert others
    assert "without 'nope' there are" in _invoke("nope", "--target", "h100").stderr
    assert "without --undocumented there are" in _invoke("--undocumented", "--family", "movmatrix").stderr


def test_spans() -> None:
    assert listing.spans(()) == ""
    assert listing.spans((8,)) == "8"
    assert listing.spans((8, 16)) == "8, 16"
    assert listing.spans((8, 16, 24)) == "8..24 by 8"
    assert listing.spans((8, 16, 24, 40, 56, 60)) == "8..24 by 8, 40, 56, 60"
    assert listing.spans((8, 16, 24, 32, 48, 64, 80)) == "8..32 by 8, 48..80 by 16"


def test_least_targets(root: Path) -> None:
    spec = pipeline.read(root / "tests" / "toy").database.spec
    assert listing.least_targets(spec, ["sm_80", "sm_90"]) == ["sm_80+"]
    assert listing.least_targets(spec, ["sm_90"]) == ["sm_90"]
    assert listing.least_targets(spec, []) == []
