"""CuTe and PyTorch say the same of these instructions as we do, and a wrong layout of ours would be found."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.instructions import catalog as catalog_of
from ptxmma.evidence import facts
from ptxmma.evidence.peers import EXPLAINED, Difference, Explanation, Report, explanations
from ptxmma.generator.emit.docs import peers as page
from ptxmma.generator.emit.templating import render
from ptxmma.matrices import sparse
from ptxmma.matrices.interop import from_cute
from ptxmma.model import Database, Layout
from ptxmma.model.bitmap import BitMap
from ptxmma_proof import commands, peers
from ptxmma_proof.peers import assembly, assertions, binding, comparison, headers, places, probe, pytorch
from ptxmma_proof.peers.headers import Atom, Cutlass

_SCHEMA = paths.SCHEMAS / "evidence_peers.schema.json"


@pytest.fixture(scope="module")
def report() -> Report:
    return peers.load()


@pytest.fixture(scope="module")
def cutlass() -> Cutlass:
    found = headers.installed()
    if found is None:
        pytest.skip("nvidia-cutlass is not installed")
    return found


@pytest.fixture(scope="module")
def atoms(cutlass: Cutlass) -> list[Atom]:
    return headers.atoms(cutlass)


@pytest.fixture
def ptxas() -> dict[str, Path]:
    """The newest assembler that has been fetched."""
    found = sorted(paths.ASSEMBLERS.glob("*/ptxas"), key=lambda path: tuple(map(int, path.parent.name.split("."))))
    if not found:
        pytest.skip("no assemblers: run `make assemblers`")
    return {found[-1].parent.name: found[-1]}


def _sampled(atom: Atom) -> bool:
    """The smallest and largest n and one that is no power of two of each instruction for warpgroups; everything for warps."""
    return "gmma" not in atom.file or re.search(r"_64x(8|24|256)x", atom.type) is not None


def _with_layouts(catalog: Catalog, change: Callable[[Layout], Layout]) -> Catalog:
    database = catalog.database
    return catalog_of(msgspec.structs.replace(database, layouts=tuple(map(change, database.layouts))))


def _swapped(layout: Layout) -> Layout:
    """The same layout with the lowest and the highest bit of its longest input exchanged: still a permutation of bits, and wrong."""
    bits = dict(layout.map.bits)
    name = max(bits, key=lambda each: len(bits[each]))
    bits[name] = (bits[name][-1], *bits[name][1:-1], bits[name][0])
    return msgspec.structs.replace(layout, map=BitMap(layout.map.inputs, layout.map.outputs, bits))


# --- the report -------------------------------------------------------------------------------------------------------------


def test_the_schema_is_that_of_the_report() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    assert json.loads(_SCHEMA.read_text(encoding="utf-8")) == peers.schema()
    told = json.loads(peers.text(peers.load()))
    jsonschema.Draft202012Validator(peers.schema()).validate(told)
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        jsonschema.Draft202012Validator(peers.schema()).validate(told | {"colour": 1})


def test_the_report_is_written_as_it_is_read(report: Report) -> None:
    assert peers.text(report) == (paths.SPEC / "evidence" / "peers.json").read_text(encoding="utf-8")


def test_the_report_belongs_to_the_spec(catalog: Catalog, report: Report) -> None:
    assert facts.shared_memory(catalog.database) == report.facts
    assert report.pytorch is not None
    assert facts.compressed(catalog) == report.pytorch.facts
    for atom in report.atoms:
        found = catalog.find(atom.instruction)
        assert facts.operands(found, next(form for form in found.forms if form.name == atom.form)) == atom.facts, atom.atom


def test_what_was_recorded_is_what_is_found(catalog: Catalog, report: Report) -> None:
    assert peers.recorded(report, catalog) == [entry for entry in report.differences if entry.peer == "CuTe"]
    assert not peers.contradictions(report, catalog)


def test_every_atom_of_our_families_is_one_of_our_instructions(report: Report) -> None:
    assert report.unknown
    assert [entry for entry in report.unknown if entry.ours] == []
    assert {entry.instruction.split(".")[0] for entry in report.unknown} == {"tcgen05", "dp2a", "dp4a"}


def test_no_assembler_refuses_an_atom(report: Report) -> None:
    assert sum(entry.accepted for entry in report.assembled) > 2000
    assert [entry.refused for entry in report.assembled if entry.refused] == []


def test_where_a_peer_differs_it_contradicts_itself(catalog: Catalog, report: Report) -> None:
    """Nothing is taken for the peer's mistake because we say otherwise: each shows in the peer's own words."""
    atoms = {atom.atom: atom for atom in report.atoms}
    images = {comparison.subject(operand): operand for operand in report.shared}
    for entry in report.differences:
        if entry.subject in images:
            operand = images[entry.subject]
            found = comparison.addresses(operand, catalog)
            assert len(np.unique(found)) < found.size, f"{entry.subject}: its descriptor has room for all elements"
            continue
        atom = atoms[entry.subject]
        text = report.layouts[atom.layouts[entry.operand]]
        vector = re.search(r"scale_vec::(\d)X", entry.instruction)
        if "scale" in entry.operand:
            shape = catalog.find(atom.instruction).shape
            assert vector, entry.subject
            assert shape, entry.subject
            assert int(vector[1]) * atom.vector != shape[2], f"{entry.subject}: its own vector fits its own instruction"
        elif entry.theirs.startswith("no function"):
            with pytest.raises(ValueError, match="do not fit the shape"):
                from_cute(text)
        else:
            found = places.evaluated(from_cute(text))
            assert len(np.unique(found)) < found.size, f"{entry.subject}: no element is in two places"


def test_every_difference_is_explained_and_every_explanation_explains_some(report: Report) -> None:
    written = explanations(paths.SPEC / "evidence" / EXPLAINED)
    assert [entry.subject for entry in report.differences if not any(one.speaks_of(entry) for one in written)] == []
    assert [one.subject for one in written if not any(one.speaks_of(entry) for entry in report.differences)] == []


def test_an_explanation_speaks_of_nothing_else(report: Report, tmp_path: Path) -> None:
    first = report.differences[0]
    one = Explanation(peer="CuTe", subject="SM120*", operand="scale-?-data", theirs="* in blocks of 16", why="because")
    assert one.speaks_of(first)
    for other in ({"peer": "PyTorch"}, {"subject": "SM80"}, {"operand": "a"}, {"theirs": "64 columns in blocks of 17"}):
        assert not one.speaks_of(msgspec.structs.replace(first, **other))
    assert explanations(tmp_path / "none.json") == []
    (tmp_path / "wrong.json").write_text('[{"peer": "CuTe"}]', encoding="utf-8")
    with pytest.raises(ValueError, match=r"wrong\.json: .*subject.*it holds"):
        explanations(tmp_path / "wrong.json")


@pytest.mark.parametrize("explained", [True, False])
def test_the_command_ends_with_1_at_a_difference_that_nobody_explains(
    catalog: Catalog, report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, explained: bool
) -> None:
    monkeypatch.setattr(peers, "run", lambda *_, **__: report)
    path = tmp_path / EXPLAINED
    text = (paths.SPEC / "evidence" / EXPLAINED).read_text(encoding="utf-8")
    path.write_text(text if explained else text.replace("Layout_K_SW32_Atom", "Layout_K_SW64_Atom"), encoding="utf-8")
    found = commands.peers(catalog, "2026-01-01", (), path)
    said = list(found.lines)
    assert found.agrees is explained
    assert said.count("    NOT EXPLAINED") == (0 if explained else 3)
    assert sum(line.startswith("    explained: ") for line in said) == (19 if explained else 16)
    assert said[-1].endswith(f"19 differ, {0 if explained else 3} of them unexplained")


def test_of_an_operand_in_shared_memory_only_the_shape_counts(catalog: Catalog, report: Report) -> None:
    shapes = [atom for atom in report.atoms if atom.shapes]
    assert report.shapes == sum(len(atom.shapes) for atom in shapes) > 3000
    for atom in shapes:
        form = next(form for form in catalog.find(atom.instruction).forms if form.name == atom.form)
        assert {form.operand(name).kind for name in atom.shapes} == {"descriptor"}
        assert "descriptor" not in {form.operand(name).kind for name in atom.layouts}
    one = msgspec.structs.replace(shapes[0], layouts={})
    counted = comparison.compare(report.layouts, [one], (), {}, catalog)
    assert (counted.passes, counted.places, counted.shapes, counted.differences) == (0, 0, len(one.shapes), [])
    other = msgspec.structs.replace(one, shapes=dict.fromkeys(one.shapes, one.threads))
    counted = comparison.compare(report.layouts, [other], (), {}, catalog)
    assert (counted.shapes, len(counted.differences)) == (0, len(one.shapes))


@pytest.mark.parametrize("kind", ["fragment", "metadata", "scale"])
def test_a_wrong_layout_contradicts_the_peers(catalog: Catalog, report: Report, kind: str) -> None:
    using: dict[str, list[Any]] = {}
    for atom in report.atoms:
        found = catalog.find(atom.instruction)
        for operand in (found.operand(name) for name in atom.layouts):
            if operand.layout is not None and operand.layout.kind == kind:
                using.setdefault(operand.layout.name, []).append(atom)
    assert using
    silent = []
    for name, own in using.items():
        wrong = _with_layouts(catalog, lambda layout, name=name: _swapped(layout) if layout.name == name else layout)  # type: ignore[misc]
        # Some layouts have atoms only where CuTe's own is wrong: no witness.
        if not peers.contradictions(msgspec.structs.replace(report, atoms=tuple(own[:40]), shared=()), wrong):
            silent.append(name)
    witnesses = {(entry.subject, entry.operand) for entry in report.differences}
    assert all(
        (atom.atom, operand) in witnesses for name in silent for atom in using[name] for operand in atom.layouts if f"_{operand}_" in name
    ), silent


def test_a_wrong_descriptor_contradicts_the_peers(catalog: Catalog, report: Report) -> None:
    database = catalog.database
    memory = database.spec.shared_memory
    assert memory
    few = msgspec.structs.replace(report, atoms=())

    def changed(**change: Any) -> list[Difference]:
        spec = msgspec.structs.replace(database.spec, shared_memory=msgspec.structs.replace(memory, **change))
        return peers.contradictions(few, catalog_of(msgspec.structs.replace(database, spec=spec)))

    assert not changed()
    moved = tuple(msgspec.structs.replace(field, width=field.width - 1) for field in memory.descriptor)
    assert {entry.operand for entry in changed(descriptor=moved) if entry.subject == "GmmaDescriptor"} == set(report.descriptor_fields)
    assert changed(swizzle_formula=memory.swizzle_formula.replace(">> 7", ">> 8"))
    exchanged = tuple(
        msgspec.structs.replace(layout, offset=layout.offset.replace("lbo", "x_").replace("sbo", "lbo").replace("x_", "sbo"))
        for layout in memory.layouts
    )
    assert changed(layouts=exchanged)


def test_an_instruction_that_is_gone_contradicts_the_peers(catalog: Catalog, report: Report) -> None:
    spec = catalog.database.spec
    left = tuple(entry for entry in spec.instructions if not entry.name.startswith("wgmma"))
    database: Database = msgspec.structs.replace(catalog.database, spec=msgspec.structs.replace(spec, instructions=left))
    gone = peers.contradictions(report, catalog_of(database))
    assert {entry.ours.partition(",")[0] for entry in gone} == {"no such instruction"}
    assert len(gone) > 2000


# --- CUTLASS's headers ------------------------------------------------------------------------------------------------------


def test_the_headers_are_those_of_the_report(cutlass: Cutlass, report: Report) -> None:
    assert (cutlass.version, cutlass.digest()) == (report.cutlass.version, report.cutlass.sha256)


def test_the_compiler_says_what_the_report_says(catalog: Catalog, report: Report, nvcc: str, cutlass: Cutlass) -> None:
    assert cutlass
    again = peers.run(
        catalog,
        report.date,
        choose=lambda atom: atom.architecture in {"75", "89"} or "64x24x16_F32F16" in atom.type or "64x32x64_S32S8S8" in atom.type,
        types=["cute::half_t"],
        nvcc=nvcc,
    )
    known = {record.atom: record for record in report.atoms}
    assert len(again.atoms) > 12
    for record in again.atoms:
        before = known[record.atom]
        assert _resolved(again, record) == _resolved(report, before)
    assert again.shared == tuple(operand for operand in report.shared if operand.bits == 16)
    assert again.descriptor_fields == report.descriptor_fields
    assert again.asserted > 40
    assert [entry for entry in again.differences if entry not in report.differences] == []


def _resolved(report: Report, record: Any) -> Any:
    """A record with the texts of its layouts in the place of their numbers."""
    layouts, shapes = ({name: report.layouts[number] for name, number in held.items()} for held in (record.layouts, record.shapes))
    return msgspec.structs.replace(record, layouts=layouts, shapes=shapes, threads=report.layouts[record.threads])


def test_static_assertions_compile(catalog: Catalog, report: Report, cutlass: Cutlass, atoms: list[Atom], nvcc: str) -> None:
    chosen = [atom for atom in atoms if _sampled(atom)]
    assert peers.prove(catalog, report, chosen, cutlass, nvcc) > 1000


def test_a_wrong_layout_does_not_compile(
    catalog: Catalog, report: Report, cutlass: Cutlass, atoms: list[Atom], nvcc: str, tmp_path: Path
) -> None:
    wrong = _with_layouts(catalog, lambda layout: _swapped(layout) if layout.name == "mma_m16n8k16_a_b16" else layout)
    chosen = [atom for atom in atoms if atom.name in {"SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32F16F16F32_TN"}]
    assert len(chosen) == 2
    with pytest.raises(probe.CompilerError) as caught:
        probe.compile_source(cutlass, assertions.source(wrong, report, chosen), tmp_path, nvcc)
    assert re.findall(r"SM80_\w+: \w", str(caught.value)) == ["SM80_16x8x16_F32F16F16F32_TN: a"]


def test_without_headers_or_compiler_it_says_what_is_missing(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(headers, "installed", lambda: Cutlass("0", tmp_path))
    with pytest.raises(peers.MissingPeerError, match="/nowhere/nvcc: no such compiler"):
        peers.run(catalog, "2026-01-01", nvcc="/nowhere/nvcc")
    monkeypatch.setattr(headers, "installed", lambda: None)
    with pytest.raises(peers.MissingPeerError, match="pip install --no-deps nvidia-cutlass"):
        peers.run(catalog, "2026-01-01")


# --- a header of our own ----------------------------------------------------------------------------------------------------

_ARCH = """
namespace cute { namespace SM80 {  // } in a comment
template <GMMA::Major tnspA, GMMA::ScaleIn scaleA = GMMA::ScaleIn::One>
struct MMA_8x8x16
{
  using DRegisters = int[2];
  static void fma(int& d0, int& d1, unsigned const& a0, unsigned const& b0, int const& c0, int const& c1) {
    asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %4, 0;\\n"
      "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 "
      "{%0, %1}, {%2}, {%3}, {%4, %5};\\n}\\n"
      : "=r"(d0), "=r"(d1) : "r"(a0), "r"(b0), "r"(int32_t(c0)), "r"(c1));
  }
};
struct Pair { static void fma() { MMA_8x8x16::fma(1); MMA_8x8x16::fma(2); } };
template <int VS> struct Scaled<float, VS> {
  static void fma() { CUTE_STATIC_ASSERT(VS == 16 || VS == 32, "no"); asm("dp4a.s32.s32 %0, %1, 0x0;" : "=r"(d) : "r"(a)); }
};
template <class T> struct NoAtom { static void other(); };
} }
"""
_TRAITS = "using Alias = SM80::MMA_8x8x16<1>; struct MMA_Traits<Alias> {};"


@pytest.fixture
def own(tmp_path: Path) -> list[Atom]:
    for folder, name, text in (("arch", "mma_sm80.hpp", _ARCH), ("atom", "mma_traits_sm80.hpp", _TRAITS)):
        (tmp_path / "cute" / folder).mkdir(parents=True)
        (tmp_path / "cute" / folder / name).write_text(text, encoding="utf-8")
    return headers.atoms(Cutlass("0", tmp_path))


def test_atoms_are_read_from_their_text(own: list[Atom]) -> None:
    assert [(atom.name, atom.architecture, len(atom.statements), atom.has_layouts) for atom in own] == [
        ("SM80::MMA_8x8x16", "80", 1, True),
        ("SM80::Pair", "80", 2, False),
        ("SM80::Scaled<float, 16>", "80", 1, False),
        ("SM80::Scaled<float, 32>", "80", 1, False),
    ]
    assert own[0].type == "cute::SM80::MMA_8x8x16<cute::SM90::GMMA::Major::K, cute::SM90::GMMA::ScaleIn::One>"
    assert own[0].statements[0].mnemonic == "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    assert [place.expression for place in own[0].statements[0].places] == ["d0", "d1", "a0", "b0", "int32_t(c0)", "c1"]
    assert own[2].statements[0].places[2] == headers.Bound("", "0x0")


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('"=r"(d0), "=r"(d1)', '"=r"(d1), "=r"(d0)', "d: it stands for d1, d0"),
        ('"=r"(d0), "=r"(d1)', '"=r"(d0), "=r"(c1)', "d: it stands for d0, c1"),
        ('"=r"(d0)', '"r"(d0)', "d: d0 has the constraint 'r'; the operand is write"),
        ('"r"(a0)', '"d"(a0)', "a: a0 has the constraint 'd'; it takes r"),
        ("{%2}", "{7}", "a: 7 is an immediate; it takes registers"),
        ("int32_t(c0)", "c0", None),
        ("{%4, %5}", "{%4}", "no form"),
    ],
)
def test_wrong_operands_of_an_atom_are_found(catalog: Catalog, tmp_path: Path, before: str, after: str, fault: str | None) -> None:
    text = _ARCH.replace("int32_t(c0)", "c0")
    text = text.replace(before, after)
    (tmp_path / "cute" / "arch").mkdir(parents=True)
    (tmp_path / "cute" / "arch" / "mma_sm80.hpp").write_text(text, encoding="utf-8")
    statement = headers.atoms(Cutlass("0", tmp_path))[0].statements[0]
    found = binding.bind(statement, catalog.find(statement.mnemonic))
    said = "no form" if found is None else found.faults[0] if found.faults else None
    assert said == fault


def test_an_assembler_refuses_a_wrong_text(catalog: Catalog, own: list[Atom], ptxas: dict[str, Path]) -> None:
    right = own[0]
    wrong = right.statements[0]._replace(text=right.statements[0].text.replace("m8n8k16", "m8n8k17"))
    found = assembly.assemble(catalog, [right, Atom("wrong", "wrong", right.file, (wrong,), True)], ptxas)
    assert [(entry.target, entry.accepted, list(entry.refused)) for entry in found] == [("sm_80", 1, ["wrong"])]


# --- PyTorch ----------------------------------------------------------------------------------------------------------------


def test_pytorch_compresses_every_choice_alike(catalog: Catalog, report: Report) -> None:
    pytest.importorskip("torch")
    compared = pytorch.compare(catalog)
    assert compared
    found, differences = compared
    assert differences == []
    assert {conversion.dtype for conversion in found.conversions} == {
        f"torch.{name}" for name in ("float16", "bfloat16", "float32", "int8")
    }
    assert report.pytorch == found or report.pytorch is None or report.pytorch.version != found.version


@pytest.mark.parametrize("pattern", ["2:4", "1:2"])
def test_every_choice_has_every_set_in_every_place(catalog: Catalog, pattern: str) -> None:
    torch = pytest.importorskip("torch")
    entry = next(entry for entry in catalog.database.spec.granularities if entry.name == pattern)
    matrix = pytorch.every_choice(torch, torch.float16, entry, seed=0).numpy()
    occupied = (matrix != 0).reshape(matrix.shape[0], -1, entry.chunk)
    sets = occupied @ (1 << np.arange(entry.chunk))
    allowed = [number for number in range(1 << entry.chunk) if number.bit_count() <= entry.kept]
    for place in range(8):  # the fields of a word
        assert set(sets[:, place::8].ravel().tolist()) == set(allowed)
    assert (np.signbit(matrix) & (matrix == 0)).any()


def test_other_metadata_than_pytorchs_is_found(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    true = sparse.compress

    def other(matrix: Any, pattern: str) -> Any:
        """Metadata with the fields of each byte exchanged."""
        values, metadata = true(matrix, pattern)
        return values, metadata >> 4 | metadata << 4

    monkeypatch.setattr(sparse, "compress", other)
    compared = pytorch.compare(catalog)
    assert compared
    assert [conversion.agrees for conversion in compared[0].conversions] == [False] * 4
    assert all(entry.theirs.startswith("metadata, at ") for entry in compared[1])


# --- the page ---------------------------------------------------------------------------------------------------------------


def test_the_page_tells_what_was_found(report: Report) -> None:
    text = render("docs/peers.rst.jinja", banner="", **page.page(report))
    for entry in report.differences:
        assert f"``{entry.subject}``" in text
    for name in report.lacking:
        assert f"``{name}``" in text
    assert f"{report.shapes:,} operands in shared memory" in text
    assert shutil.which("nvcc") is None or report.cutlass.compiler in text
