"""The evidence: reports that belong to the spec, and what the library, the database and the commands make of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import ptxmma
from ptxmma import paths
from ptxmma.cli import main
from ptxmma.evidence import reports, summary
from ptxmma.evidence.silicon import Launch, Silicon
from ptxmma.generator import pipeline
from ptxmma.instructions import Catalog
from ptxmma.verify.silicon import replay
from ptxmma.verify.silicon.kernels import Kernel, kernels

_SILICON = reports.FOLDER / "silicon.json"


@pytest.fixture(scope="module")
def silicon() -> Silicon:
    """What the chip did."""
    return reports.load(_SILICON, Silicon)


def test_the_schema_of_the_report_is_its_structure() -> None:
    schema = json.loads((paths.SCHEMAS / "evidence_silicon.schema.json").read_text(encoding="utf-8"))
    assert schema == reports.schema(Silicon, "What a chip did")


def test_a_report_is_written_as_it_was_read(silicon: Silicon) -> None:
    assert reports.text(silicon) == _SILICON.read_text(encoding="utf-8")


def test_the_chip_ran_whatever_it_can_without_a_wrong_element(silicon: Silicon, catalog: Catalog) -> None:
    chosen = [kernel.instruction for kernel in kernels(catalog, silicon.target)]
    assert [row.instruction for row in silicon.instructions] == list(dict.fromkeys(one.canonical for one in chosen))
    held = {operand.layout.name for one in chosen for form in one.forms for operand in form.operands if operand.layout}
    assert {row.layout for row in silicon.layouts} == held
    assert not silicon.failures
    assert not any(row.wrong for table in (silicon.instructions, silicon.layouts, silicon.shared_memory) for row in table)
    swizzles = {(row.majorness, row.swizzle) for row in silicon.shared_memory}
    assert catalog.database.spec.shared_memory is not None
    assert swizzles == {(majorness, mode.name) for majorness in ("K", "MN") for mode in catalog.database.spec.shared_memory.swizzles}


def _replays(silicon: Silicon) -> Iterator[tuple[str, Launch]]:
    return ((row.instruction, launch) for row in silicon.instructions for launch in row.replays)


def test_the_emulator_repeats_what_the_chip_did(silicon: Silicon, catalog: Catalog) -> None:
    """Bit by bit, from bare words in registers and memory.  Of wgmma's many N some; ``make mutate`` repeats all."""
    tried = 0
    for number, (name, launch) in enumerate(_replays(silicon)):
        instruction = catalog.find(name)
        if instruction.family.startswith("wgmma") and number % 12:
            continue
        form = next(form for form in instruction.forms if form.name == launch.form)
        assert replay.emulated(Kernel(instruction, form, launch.constants), launch) == launch.d, f"{name} {launch}"
        tried += 1
    assert tried > 400


def test_another_bit_is_another_digest(silicon: Silicon, catalog: Catalog) -> None:
    name, launch = next(_replays(silicon))
    instruction = catalog.find(name)
    other = msgspec.structs.replace(launch, seed=launch.seed + 1)
    assert replay.emulated(Kernel(instruction, instruction.forms[0], launch.constants), other) != launch.d


def test_an_instruction_tells_what_stands_behind_it() -> None:
    native = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16").evidence
    assert all("sm_90a" in targets for targets in native.assembled.values())
    assert [(ran.chip, ran.wrong, ran.native, ran.machine) for ran in native.executed] == [
        ("NVIDIA H200", 0, True, ("1 HGMMA.64x8x16.F32",))
    ]
    assert "SM90::GMMA::MMA_64x8x16_F32F16F16_SS" in native.peers
    replaced = ptxmma.instruction("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32").evidence
    assert [(ran.native, ran.machine) for ran in replaced.executed] == [(False, ("2 HMMA.16816.F32",))]
    later = ptxmma.instruction("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32").evidence
    assert later.assembled
    assert later.executed == ()


def test_nothing_that_is_checked_in_is_stale(catalog: Catalog) -> None:
    stale = {name: row.stale for name, row in summary.of(catalog.database).instructions.items() if row.stale}
    assert not stale


def test_evidence_about_another_spec_is_stale(tmp_path: Path) -> None:
    """A fact changes: what was said about its instructions no longer belongs to it, all else does."""
    spec = tmp_path / "spec"
    shutil.copytree(paths.SPEC, spec)
    file = spec / "instructions" / "wgmma_sp.yaml"
    text = file.read_text(encoding="utf-8")
    changed = text.replace('overflow: "wrap"', 'overflow: "saturate"')
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    found = pipeline.read(spec)
    stale = {name: row.stale for name, row in summary.of(found.database).instructions.items() if row.stale}
    assert set(stale.values()) == {("silicon",)}
    assert {found.find(name).qualifiers["dtype"] for name in stale} == {"s32"}
    done = CliRunner().invoke(main, ["validate", "--spec", str(spec)])
    assert done.exit_code == 0
    assert f"stale: silicon.json is about another spec for {len(stale)} of them" in done.output


@pytest.mark.parametrize("name", ["assembler", "silicon", "peers"])
def test_a_report_that_is_none_is_named(tmp_path: Path, name: str) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(paths.SPEC, spec)
    (spec / "evidence" / f"{name}.json").write_text("[1", encoding="utf-8")
    done = CliRunner().invoke(main, ["validate", "--spec", str(spec)])
    assert done.exit_code == 1
    assert f"{name}.json" in done.output


def test_a_spec_without_evidence_has_none(tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(paths.SPEC, spec)
    shutil.rmtree(spec / "evidence")
    found = pipeline.read(spec)
    told = summary.of(found.database).of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    assert told == summary.Evidence()


def test_the_sql_has_it_too(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "it.sqlite")
    database.executescript((paths.GENERATED / "database" / "ptxmma.sql").read_text(encoding="utf-8"))
    replaced = database.execute("SELECT canonical, machine FROM executions JOIN variants ON id = variant WHERE NOT native").fetchall()
    assert ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "2 HMMA.16816.F32") in replaced
    (never,) = database.execute("SELECT count(*) FROM layouts WHERE id NOT IN (SELECT layout FROM layout_launches)").fetchone()
    (held,) = database.execute("SELECT count(*) FROM layout_launches").fetchone()
    assert (held, never + held) == (109, 122)
