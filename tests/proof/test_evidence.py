"""The evidence: reports that belong to the spec, and what the library, the database and the commands make of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ptxmma
from ptxmma import paths
from ptxmma.catalog import evidence_summary as summary
from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence import facts, reports
from ptxmma.evidence.peers import Report as Peers
from ptxmma.evidence.silicon import Launch, Silicon
from ptxmma.generator import evidence, pipeline
from ptxmma.model.bitmap import BitMap
from ptxmma_proof.silicon import replay
from ptxmma_proof.silicon.kernels import Kernel, kernels

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


def test_a_layout_tells_what_stands_behind_it() -> None:
    ran = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").operand("a").layout
    assert ran is not None
    launches = {row.layout: row.launches for row in reports.load(_SILICON, Silicon).layouts}
    (held,) = ran.evidence.executed
    assert (held.chip, held.launches, held.wrong) == ("NVIDIA H200", launches[ran.name], 0)
    assert held.instructions > 1
    assert ran.evidence.agreeing["CuTe"] > 1
    assert ran.evidence.differing == ()
    assert ran.evidence.status == f"NVIDIA H200: {held.launches} launches"
    scaled = ptxmma.instruction("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0")
    factors = scaled.scales("a").layout.evidence
    assert (factors.status, factors.executed) == ("not executed", ())
    assert [name[:14] for name in factors.differing] == ["SM120::BLOCKSC"]


def test_whatever_no_chip_ran_says_so(catalog: Catalog, silicon: Silicon) -> None:
    for instruction in catalog.all():
        assert (instruction.evidence.status == "not executed") == (instruction.canonical not in silicon.executed)
    held = {row.layout for row in silicon.layouts}
    for layout in catalog.database.layouts:
        assert (layout.evidence.status == "not executed") == (layout.name not in held)


def test_a_layout_keeps_to_the_database_that_it_was_read_with(catalog: Catalog) -> None:
    other = msgspec.structs.replace(catalog.database)
    assert "evidence" not in other.memo
    assert other.layouts[0].evidence == catalog.database.layouts[0].evidence != summary.LayoutEvidence()
    assert msgspec.structs.replace(other.layouts[0], name="of no database").evidence.status == "not executed"


def test_wrong_launches_are_told() -> None:
    held = summary.Held(chip="A chip", launches=5, wrong=2, instructions=1)
    assert summary.LayoutEvidence(executed=(held, held)).status == "A chip: 5 launches, 2 wrong; A chip: 5 launches, 2 wrong"


# --- digests ----------------------------------------------------------------------------------------------------------------


def _changed(thing: Any, path: str, value: Any) -> Any:
    """A structure with another value at a place such as ``"shared_memory.swizzles.1.bytes"``; a function makes it from the old one."""
    if not path:
        return value(thing) if callable(value) else value
    key, _, rest = path.partition(".")
    if isinstance(thing, tuple):
        index = int(key)
        return (*thing[:index], _changed(thing[index], rest, value), *thing[index + 1 :])
    if isinstance(thing, dict):
        return thing | {key: _changed(thing[key], rest, value)}
    return msgspec.structs.replace(thing, **{key: _changed(getattr(thing, key), rest, value)})


def _with(catalog: Catalog, path: str, value: Any) -> Catalog:
    """A catalog of which the spec says something else at a place; names stand for the number of the entry."""
    spec: Any = catalog.database.spec
    for part, names in (("types.elements", [e.name for e in spec.types.elements]), ("instructions", [e.name for e in spec.instructions])):
        for number, name in enumerate(names):
            path = path.replace(f"{part}.<{name}>", f"{part}.{number}")
    changed = _changed(spec, path, value)
    assert changed != spec
    return Catalog(msgspec.structs.replace(catalog.database, spec=changed))


_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_MMA_SP = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
_WGMMA_SP = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
_E4M3 = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
_E2M1 = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32"
_SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


def _semantics(name: str, key: str, value: Any) -> tuple[str, Any]:
    """Every entry of an instruction's semantics, changed."""
    return f"instructions.<{name}>.semantics", lambda entries: tuple(_changed(entry, key, value) for entry in entries)


_RELIED_ON: list[tuple[str, str, Any]] = [
    (_WGMMA, "shared_memory.swizzle_formula", lambda text: text.replace(">> 7", ">> 8")),
    (_WGMMA, "shared_memory.base_offset", lambda text: text.replace(">> 7", ">> 8")),
    (_WGMMA, "shared_memory.alignment", 32),
    (_WGMMA, "shared_memory.swizzles.1.encoding", 7),
    (_WGMMA, "shared_memory.swizzles.1.bytes", 64),
    (_WGMMA, "shared_memory.swizzles.1.pattern", 64),
    (_WGMMA, "shared_memory.swizzles.1.atom_k", (1, 1)),
    (_WGMMA, "shared_memory.layouts.0.offset", lambda text: text.replace("16", "32")),
    (_WGMMA, "shared_memory.layouts.1.uses_lbo", False),
    (_WGMMA, "shared_memory.descriptor.1.low", 17),
    (_WGMMA, "shared_memory.descriptor.1.width", 13),
    (_WGMMA, "shared_memory.descriptor.1.shift", 3),
    (_WGMMA, "shared_memory.majorness.1.of", lambda _: ({"atype": ("bf16",)},)),
    (_WGMMA_SP, "shared_memory.layouts.2.offset", lambda text: text.replace("16", "32")),
    (_WGMMA, "types.elements.<f16>.bias", 14),  # of B, which is in no operand
    (_E4M3, "types.elements.<e4m3>.infinity", True),
    (_MMA, "types.elements.<f32>.mantissa", 22),
    (_E2M1, "types.containers", lambda entries: tuple(_changed(entry, "shift", 1) for entry in entries)),
    (_MMA, "types.carriers.0.registers", ("b32",)),
    (_MMA, *_semantics("mma", "multiply", "never")),
    (_MMA, *_semantics("mma", "accumulate", "at least f16")),
    (_MMA, *_semantics("mma", "sums", "f16")),
    (_MMA, *_semantics("mma", "rounds", "up")),
    (_MMA, *_semantics("mma", "truncates", 5)),
    (_MMA, *_semantics("mma", "overflow", "wrap")),
    (_E4M3, *_semantics("wgmma.mma_async", "observed", lambda seen: tuple(_changed(one, "fraction_bits", 11) for one in seen))),
    (_MMA, *_semantics("mma", "observed", ())),
    (_MMA, "instructions.<mma>.scope", "warpgroup"),
    (_WGMMA, "instructions.<wgmma.mma_async>.asynchronous", False),
    (_MMA, "instructions.<mma>.operands", lambda lists: dict.fromkeys(lists, ("a, d, b, c",))),
    (_WGMMA, "instructions.<wgmma.mma_async>.operand_kinds.imm-scale-a.values", (1,)),
    (_MMA_SP, "granularities.0.legal", lambda legal: legal[1:]),
    (_MMA_SP, "granularities.0.index_bits", 3),
    (_MMA_SP, "choices.0.fields.0b0001", "0b1100"),
    (_MMA_SP, "metadata.0.selectors", 2),
    (_SCALED, "scales", lambda entries: tuple(_changed(entry, "byte_ids", (1,)) for entry in entries)),
]


@pytest.mark.parametrize(("spelling", "path", "value"), _RELIED_ON)
def test_a_run_is_stale_when_a_fact_changes_that_it_relied_on(catalog: Catalog, spelling: str, path: str, value: Any) -> None:
    before = facts.executed(catalog.find(spelling))
    changed = _with(catalog, path, value)
    assert facts.executed(changed.find(spelling)) != before


@pytest.mark.parametrize(
    ("spelling", "path", "value"),
    [
        (_WGMMA, "shared_memory.swizzles.1.title", "other words"),
        (_WGMMA, "shared_memory.layouts.0.lbo", "other words"),
        (_WGMMA, "shared_memory.tensor_map.largest_box", 1),
        (_WGMMA, "shared_memory.examples", ()),
        (_MMA, "shared_memory.swizzle_formula", "address"),
        (_MMA, "types.elements.<f16>.title", "other words"),
        (_MMA, "types.elements.<e4m3>.bias", 1),
        (_MMA, *_semantics("mma", "text", "Other words.")),
        (_MMA, "instructions.<mma>.operand_kinds.a.title", "other words"),
        (_MMA, "granularities.0.legal", ()),
        (_MMA_SP, "metadata.0.contributors", "other words"),
        (_MMA_SP, "metadata.0.source", "elsewhere"),
    ],
)
def test_words_and_facts_of_others_leave_a_run_as_it_is(catalog: Catalog, spelling: str, path: str, value: Any) -> None:
    changed = _with(catalog, path, value)
    assert facts.executed(changed.find(spelling)) == facts.executed(catalog.find(spelling))


@pytest.mark.parametrize("spelling", [_MMA, _MMA_SP, _WGMMA, _SCALED])
def test_every_map_of_an_instruction_counts_and_no_name(catalog: Catalog, spelling: str) -> None:
    before = facts.executed(catalog.find(spelling))
    forms = catalog.find(spelling).forms
    own = {operand.layout.name: operand.layout for form in forms for operand in form.operands if operand.layout is not None}
    assert len(own) > (spelling != _WGMMA)
    for name, layout in own.items():
        longest = max(layout.map.bits, key=lambda each: len(layout.map.bits[each]))
        turned = BitMap(layout.map.inputs, layout.map.outputs, layout.map.bits | {longest: layout.map.bits[longest][::-1]})
        for change, same in (({"map": turned}, False), ({"threads": 64}, False), ({"entry": 99}, True)):
            other = msgspec.structs.replace(layout, **change)
            database = msgspec.structs.replace(
                catalog.database, layouts=tuple(other if each.name == name else each for each in catalog.database.layouts)
            )
            assert (facts.executed(Catalog(database).find(spelling)) == before) is same, (name, change)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("types.carriers.0.registers", ("b32",)),
        ("types.elements.<f16>.form", "bits"),
        ("granularities.0.index_bits", 3),
        ("metadata.0.selectors", 2),
        ("instructions.<mma.sp>.operand_kinds.d.access", "read"),
    ],
)
def test_a_comparison_of_operands_is_stale_when_they_change(catalog: Catalog, path: str, value: Any) -> None:
    def digest(of: Catalog) -> str:
        found = of.find(_MMA_SP)
        return facts.operands(found, found.forms[0])

    assert digest(_with(catalog, path, value)) != digest(catalog)


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("shared_memory.descriptor.0.width", 13, False),
        ("shared_memory.majorness.1.of", (), False),
        ("shared_memory.swizzles.2.bytes", 16, False),
        ("shared_memory.notes", (), True),
        ("shared_memory.descriptor.0.title", "other words", True),
    ],
)
def test_a_comparison_of_shared_memory_is_stale_when_it_changes(catalog: Catalog, path: str, value: Any, same: bool) -> None:
    assert (facts.shared_memory(_with(catalog, path, value).database) == facts.shared_memory(catalog.database)) is same


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("choices.0.fields.0b0001", "0b1100", False),
        ("granularities.0.kept", 1, False),
        ("types.elements.<bf16>.mantissa", 6, False),
        ("types.elements.<f64>.mantissa", 6, True),
        ("choices.0.text", "Other words.", True),
    ],
)
def test_a_comparison_of_compression_is_stale_when_it_changes(catalog: Catalog, path: str, value: Any, same: bool) -> None:
    assert (facts.compressed(_with(catalog, path, value)) == facts.compressed(catalog)) is same


@pytest.mark.parametrize(
    ("path", "value", "families"),
    [
        ("targets", lambda each: (*each, msgspec.structs.replace(each[-1], name="sm_999")), "all"),
        ("isa_versions", lambda each: (*each, msgspec.structs.replace(each[-1], version="99.0")), "all"),
        ("instructions.<wgmma.mma_async>.operand_kinds.imm-scale-a.values", (1,), {"wgmma"}),
        ("instructions.<wgmma.mma_async>.requires", lambda rules: tuple(_changed(rule, "ptx", "9.0") for rule in rules), {"wgmma"}),
        ("types.carriers.0.registers", ("f16x2",), {"mma", "mma.sp", "wgmma", "wgmma.sp"}),
        ("targets.0.ptx", "6.1", "all"),
        ("instructions.<mma>.ordered", (), {"mma"}),
        ("instructions.<mma>.repeatable", ("sync",), {"mma"}),
        ("instructions.<wgmma.mma_async>.opcode", "wgmma", {"wgmma"}),
        ("types.carriers.0.source", "elsewhere", set()),
        ("instructions.<mma>.title", "other words", set()),
    ],
)
def test_answers_of_assemblers_are_stale_when_the_question_changes(catalog: Catalog, path: str, value: Any, families: Any) -> None:
    before = facts.accepted(catalog)
    found = set(facts.stale(before, _with(catalog, path, value)))
    assert found == (set(before) if families == "all" else families)


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("document", "PTX ISA 99.0", False),
        ("types.carriers.0.registers", ("f16x2",), False),
        ("instructions.<mma.sp>.requires", lambda rules: tuple(_changed(rule, "ptx", "9.0") for rule in rules), False),
        ("errata", lambda each: tuple(one for one in each if not any(seen.example for seen in one.seen)), False),
        ("instructions.<wgmma.mma_async>.requires", lambda rules: tuple(_changed(rule, "ptx", "9.0") for rule in rules), True),
        ("errata", lambda each: tuple(_changed(one, "says", "Other words.") for one in each), True),
    ],
)
def test_answers_about_examples_are_stale_when_the_question_changes(catalog: Catalog, path: str, value: Any, same: bool) -> None:
    spellings = [_MMA, _MMA_SP, "mma.of.no.kind"]
    assert (facts.printed(_with(catalog, path, value), spellings) == facts.printed(catalog, spellings)) is same


@pytest.mark.parametrize(
    ("key", "value", "same"),
    [
        ("seen", lambda seen: tuple(_changed(one, "answer", "Illegal modifier") for one in seen), False),
        ("seen", lambda seen: tuple(_changed(one, "target", "sm_75") for one in seen), False),
        ("seen", (), False),
        ("says", "Other words.", True),
    ],
)
def test_what_the_errata_explain_is_stale_when_they_say_something_else(catalog: Catalog, key: str, value: Any, same: bool) -> None:
    number = next(index for index, one in enumerate(catalog.database.spec.errata) if one.id == "wgmma-row-col")
    changed = _with(catalog, f"errata.{number}.{key}", value)
    assert (facts.explaining(changed) == facts.explaining(catalog)) is same


# --- what validation says ---------------------------------------------------------------------------------------------------


def _plain(name: str) -> Any:
    return json.loads((reports.FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def _refreshed(told: dict[str, Any], catalog: Catalog) -> dict[str, Any]:
    """The reports with today's digests, as if they had just been made."""
    for row in told["silicon"]["instructions"]:
        row["facts"] = facts.executed(catalog.find(row["instruction"]))
    for atom in told["peers"]["atoms"]:
        found = catalog.find(atom["instruction"])
        atom["facts"] = facts.operands(found, next(form for form in found.forms if form.name == atom["form"]))
    told["peers"]["facts"] = facts.shared_memory(catalog.database)
    told["peers"]["pytorch"]["facts"] = facts.compressed(catalog)
    told["assembler"]["errata"] = facts.explaining(catalog)
    told["assembler"]["facts"] = told["corpus"]["facts"] = facts.accepted(catalog)
    told["examples"]["facts"] = facts.printed(catalog, [name for one in told["examples"]["examples"] for name in one["instructions"]])
    return told


@pytest.fixture(scope="module")
def fresh(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec with evidence that is about it."""
    spec = tmp_path_factory.mktemp("fresh") / "spec"
    shutil.copytree(paths.SPEC, spec)
    for name, report in _refreshed({name: _plain(name) for name in evidence.MADE_BY}, catalog).items():
        (spec / "evidence" / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
    return spec


@pytest.fixture
def spec(fresh: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fresh, tmp_path / "spec"))


def _said(catalog: Catalog, folder: Path) -> list[evidence.Finding]:
    """What is said of the reports in a folder beside a database."""
    beside = Catalog(msgspec.structs.replace(catalog.database))
    evidence.attach(beside, folder)
    return evidence.findings(beside)


def test_nothing_that_is_checked_in_is_wrong_stale_or_missing(catalog: Catalog) -> None:
    assert list(map(str, evidence.findings(catalog))) == []
    stale = {name: row.stale for name, row in summary.of(catalog.database).instructions.items() if row.stale}
    assert not stale
    assert not [layout.name for layout in catalog.database.layouts if layout.evidence.stale]


def test_evidence_about_the_spec_has_nothing_to_say(catalog: Catalog, fresh: Path) -> None:
    assert _said(catalog, fresh / "evidence") == []


def test_evidence_about_another_spec_is_stale(spec: Path) -> None:
    """A fact changes: what was said about its instructions no longer belongs to it, all else does."""
    file = spec / "instructions" / "wgmma_sp.yaml"
    text = file.read_text(encoding="utf-8")
    changed = text.replace('overflow: "wrap"', 'overflow: "saturate"')
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    found = pipeline.read(spec)
    stale = {name: row.stale for name, row in summary.of(found.database).instructions.items() if row.stale}
    assert set(stale.values()) == {("silicon",)}
    assert {found.find(name).qualifiers["dtype"] for name in stale} == {"s32"}
    (said,) = evidence.findings(found)
    assert not said.error
    path = spec / "evidence" / "silicon.json"
    assert str(said).startswith(f"{path}: it is stale: the database says something else today of {len(stale)} of 1275 instructions: wgmma.")
    assert str(said).endswith(f"; make it again with `python -m ptxmma_proof --silicon --report {path}`.")
    layout = found.find(next(iter(stale))).operand("d").layout
    assert layout is not None
    assert layout.evidence.stale == ("silicon",)


def test_every_report_tells_when_it_is_stale(catalog: Catalog, fresh: Path, spec: Path) -> None:
    told = evidence.Reports(fresh / "evidence")
    changed = _with(catalog, "shared_memory.descriptor.0.width", 13)
    assert [name for name, _ in evidence.stale(changed, told)] == ["silicon", "peers"]
    changed = _with(catalog, "choices.0.fields.0b0001", "0b1100")
    assert [name for name, _ in evidence.stale(changed, told)] == ["silicon", "peers"]
    changed = _with(catalog, "document", "PTX ISA 99.0")
    assert [name for name, _ in evidence.stale(changed, told)] == ["examples"]
    changed = _with(catalog, "isa_versions", lambda each: (*each, msgspec.structs.replace(each[-1], version="99.0")))
    assert [name for name, _ in evidence.stale(changed, told)] == ["assembler", "corpus"]
    changed = _with(catalog, "errata", ())
    assert [name for name, _ in evidence.stale(changed, told)] == ["assembler", "examples"]
    # Other programs than those that were asked.
    pins = spec / evidence.PINS
    text = pins.read_text(encoding="utf-8")
    assert told.assembler is not None
    asked = told.assembler.assemblers[-1]
    pins.write_text(text.replace(asked.sha256, "0" * 64), encoding="utf-8")
    now = evidence.Reports(spec / "evidence")
    assert list(evidence.stale(catalog, now)) == [("assembler", f"assemblers.yaml pins another program of CUDA {asked.cuda}")]
    pins.write_text(text.replace(f'cuda: "{asked.cuda}"', 'cuda: "99.9"'), encoding="utf-8")
    assert [what for _, what in evidence.stale(catalog, now)] == [
        f"assemblers.yaml pins none of CUDA {asked.cuda}",
        "assemblers.yaml pins no program that was asked of CUDA 99.9",
    ]
    # Nobody was asked about the atoms' text.
    assert told.peers is not None
    silent = msgspec.structs.replace(told.peers, assembled=())
    assert list(evidence._stale_peers(catalog, silent)) == ["no assembler was asked about the atoms' text: `make assemblers` first"]
    # The chip runs what the report does not have, and does not run what it has.
    report = _plain("silicon")
    gone = report["instructions"].pop()["instruction"]
    (spec / "evidence" / "silicon.json").write_text(json.dumps(report), encoding="utf-8")
    texts = [what for _, what in evidence.stale(catalog, evidence.Reports(spec / "evidence"))]
    assert f"sm_90a runs 1 instructions that it does not have: {gone}" in texts
    other = _with(
        catalog, "instructions.<wgmma.mma_async>.requires", lambda rules: tuple(_changed(rule, "targets", ("sm_100a",)) for rule in rules)
    )
    assert any("the database says that sm_90a does not run" in what for _, what in evidence.stale(other, told))
    # An instruction of CuTe's that the database has by now.
    assert told.peers is not None
    unknown = msgspec.structs.replace(told.peers.unknown[0], instruction=_MMA)
    told.peers = msgspec.structs.replace(told.peers, unknown=(unknown,))
    assert list(evidence.stale(catalog, told)) == [("peers", f"the database has 1 instructions today that it calls unknown: {_MMA}")]


def test_a_report_that_is_missing_is_told(catalog: Catalog, spec: Path) -> None:
    folder = spec / "evidence"
    first, *others = evidence.MADE_BY
    for name in others:
        (folder / f"{name}.json").unlink()
    found = _said(catalog, folder)
    assert [str(one).partition(": it is missing")[0] for one in found] == [str(folder / f"{name}.json") for name in others]
    assert not any(one.error for one in found)
    assert [str(one).rpartition("make it with ")[2] for one in found[-2:]] == ["`make mutate`.", "`make corpus`."]
    (folder / f"{first}.json").unlink()
    assert list(map(str, _said(catalog, folder))) == [f"{folder}: there are no reports: nobody was asked about this database."]


@pytest.mark.parametrize("name", list(evidence.MADE_BY))
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "line 1, column 3: it is no JSON: "),
        ("[]", "the whole: [] is not allowed; it must be of type object"),
        ('{"x": 1}', "the whole: it lacks "),
        ('{"x": 1}', "the whole: unknown key 'x'; allowed: "),
    ],
)
def test_a_report_that_is_none_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / f"{name}.json"
    path.write_text(text, encoding="utf-8")
    broken = evidence.Reports(tmp_path).broken
    assert all(one.error for one in broken)
    assert any(str(one).startswith(f"{path}: {said}") for one in broken), str(broken)
    assert str(broken[-1]).startswith(f"{path}: a report is never edited; make it again with `")


def test_every_broken_report_is_told_at_once_and_keeps_nobody_from_making_it_again(spec: Path) -> None:
    for name in evidence.MADE_BY:
        (spec / "evidence" / f"{name}.json").write_text("{}", encoding="utf-8")
    read = pipeline.read(spec)
    found = evidence.findings(read)
    assert all(one.error for one in found)
    said = "\n".join(map(str, found))
    assert all(f"{spec / 'evidence' / name}.json: the whole: it lacks " in said for name in evidence.MADE_BY)
    for ask in (evidence.attached, lambda catalog: summary.of(catalog.database), lambda catalog: catalog.find(_MMA).evidence):
        with pytest.raises(evidence.EvidenceError, match="it lacks "):
            ask(read)


@pytest.mark.parametrize("name", list(evidence.MADE_BY))
def test_a_report_of_another_kind_is_told(tmp_path: Path, name: str) -> None:
    other = next(each for each in evidence.MADE_BY if each != name)
    shutil.copy(reports.FOLDER / f"{other}.json", tmp_path / f"{name}.json")
    first, *_ = evidence.Reports(tmp_path).broken
    assert str(first) == f"{tmp_path / name}.json: the whole: it is a report of another kind, that of {other}.json"


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("silicon", "instructions.3.launches", 0, "instructions/3/launches: 0 is not allowed; it must be at least 1"),
        ("silicon", "instructions.3.launches", "2", "instructions/3/launches: '2' is not allowed; it must be of type integer"),
        ("silicon", "layouts.3.launches", 0, "layouts/3/launches: 0 is not allowed"),
        ("silicon", "layouts.3.launches", 2.0, "the whole: Expected `int`, got `float` - at `$.layouts[3].launches`"),
        ("silicon", "instructions.3.facts", "none", "instructions/3/facts: 'none' is not allowed; it must be what matches"),
        ("silicon", "instructions.3.replays", [], "instructions/3/replays: "),
        ("silicon", "instructions.3.wrong", -1, "instructions/3/wrong: -1 is not allowed; it must be at least 0"),
        ("silicon", "chip.ptxas", "x", "chip: unknown key 'ptxas'; allowed: name, "),
        ("peers", "assembled.0.accepted", -1, "assembled/0/accepted: -1 is not allowed; it must be at least 0"),
        ("peers", "facts", "1", "facts: '1' is not allowed"),
        ("examples", "counts.literal", "1", "counts/literal: '1' is not allowed"),
        ("assembler", "kind", "silicon", "the whole: unknown key 'kind'; allowed: date, spec, assemblers, "),
        ("assembler", "asked.13<5", -4, "asked/13.5: -4 is not allowed"),
        ("mutation", "tried", "1", "tried: '1' is not allowed"),
    ],
)
def test_a_value_that_is_not_allowed_is_told(tmp_path: Path, name: str, path: str, value: Any, said: str) -> None:
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps(_forged(_plain(name), path, value)), encoding="utf-8")
    broken = evidence.Reports(tmp_path).broken
    assert str(broken[0]).startswith(f"{file}: {said}"), str(broken)


def _forged(thing: Any, path: str, value: Any) -> Any:
    """A report with another value at a place, ``<`` for a dot in a key; a function makes it from the old one."""
    key, _, rest = path.partition(".")
    at: Any = int(key) if isinstance(thing, list) else key.replace("<", ".")
    old = thing[at] if isinstance(thing, list) or at in thing else None
    thing[at] = _forged(old, rest, value) if rest else value(old) if callable(value) else value
    return thing


def _more(count: int) -> int:
    return count + 1


def _later(accepted: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Answers with another first version on a target, by the releases that speak it."""
    return {
        cuda: dict(told, sm_90a="9.1") if "sm_90a" in told and int(cuda.partition(".")[0]) > 13 - 1 and cuda != "13.0" else told
        for cuda, told in accepted.items()
    }


def _other_fate(table: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """A table of which a file has its mutants killed by another check."""
    name = next(name for name, row in table.items() if row.get("rules"))
    rest = {check: count for check, count in table[name].items() if check != "rules"}
    return table | {name: rest | {"schema": rest.get("schema", 0) + table[name]["rules"]}}


def test_every_tool_is_among_the_witnesses(catalog: Catalog) -> None:
    told = summary.of(catalog.database)
    peers, chip = reports.load(reports.FOLDER / "peers.json", Peers), reports.load(_SILICON, Silicon)
    assert peers.pytorch is not None
    assert {
        ("peer", "PyTorch", peers.pytorch.version, ""),
        ("peer", "nvidia-cutlass", peers.cutlass.version, peers.cutlass.sha256),
        ("compiler", "compiler for nvidia-cutlass", peers.cutlass.compiler, ""),
        ("chip", chip.chip.name, f"driver {chip.chip.driver}", ""),
    } < {(tool.kind, tool.name, tool.version, tool.sha256) for tool in told.tools}
    (made,) = [tool for tool in told.tools if tool.name == f"compiler for {chip.chip.name}"]
    assert made.sha256 == chip.compiler.ptxas_sha256
    assert made.version == f"CUDA {chip.compiler.cuda}, nvcc {chip.compiler.nvcc}; SHA-256 of its ptxas"


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
