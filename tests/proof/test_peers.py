"""CuTe and PyTorch agree with us, and contradict a wrong layout of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from installed_headers import cutlass

from ptxmma.catalog.descriptors.shared_formats import matrix_format
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.instructions import catalog as catalog_of
from ptxmma.generator.proven import attached
from ptxmma.matrices import sparse
from ptxmma.model import Layout
from ptxmma.model.bitmap import BitMap
from ptxmma_proof import errata
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.peers import binding, compared, headers, pytorch, recorded, register_record, sources, tinygrad_fragments, verdicts
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.headers import Atom
from ptxmma_proof.peers.sources import MissingPeerError, Source
from ptxmma_proof.peers.verdicts import Verdict


@pytest.fixture(scope="module")
def peer(catalog: Catalog) -> recorded.Peer:
    """The records of CuTe for instructions whose evidence is up to date."""
    read = recorded.read()
    known = {instruction.canonical for instruction in catalog.all()}
    atoms = (atom for atom in read.atoms if atom.instruction in known)
    return read._replace(atoms=tuple(atom for atom in atoms if not _contradictions(read, [atom], catalog)))


def _contradictions(peer: recorded.Peer, atoms: Sequence[recorded.AtomRecord], catalog: Catalog) -> list[compared.Difference]:
    return compared.compare(peer._replace(atoms=tuple(atoms), shared=(), fields={}), catalog).differences


def _with_layouts(catalog: Catalog, change: Callable[[Layout], Layout]) -> Catalog:
    database = catalog.database
    return catalog_of(msgspec.structs.replace(database, layouts=tuple(map(change, database.layouts))))


def _swapped(layout: Layout) -> Layout:
    """The same layout with the lowest and the highest bit of its longest input exchanged: still a permutation of bits, and wrong."""
    bits = dict(layout.map.bits)
    name = max(bits, key=lambda each: len(bits[each]))
    bits[name] = (bits[name][-1], *bits[name][1:-1], bits[name][0])
    return msgspec.structs.replace(layout, map=BitMap(layout.map.inputs, layout.map.outputs, bits))


# --- what is recorded -------------------------------------------------------------------------------------------------------


def test_what_is_recorded_is_written_as_it_is_read(tmp_path: Path) -> None:
    read = recorded.read()
    read.write(tmp_path)
    assert recorded.read(tmp_path) == read


@pytest.mark.parametrize("kind", ["fragment", "metadata", "scale"])
def test_a_wrong_layout_contradicts_the_peers(catalog: Catalog, peer: recorded.Peer, kind: str) -> None:
    using: dict[str, list[recorded.AtomRecord]] = {}
    for atom in peer.atoms:
        instruction = catalog.find(atom.instruction)
        for operand in (instruction.operand(name) for name in atom.layouts):
            if operand.layout is not None and operand.layout.kind == kind:
                using.setdefault(operand.layout.name, []).append(atom)
    assert using
    for name, own in using.items():
        wrong = _with_layouts(catalog, lambda layout, name=name: _swapped(layout) if layout.name == name else layout)  # type: ignore[misc]
        assert _contradictions(peer, own[:40], wrong), name


def test_a_wrong_descriptor_contradicts_the_peers(catalog: Catalog, peer: recorded.Peer) -> None:
    database = catalog.database
    memory = database.spec.shared_memory
    assert memory
    few = peer._replace(atoms=())

    def changed(**change: Any) -> list[compared.Difference]:
        spec = msgspec.structs.replace(database.spec, shared_memory=msgspec.structs.replace(memory, **change))
        return compared.compare(few, catalog_of(msgspec.structs.replace(database, spec=spec))).differences

    assert not changed()
    own = matrix_format(database.spec, "wgmma")
    moved = msgspec.structs.replace(own, fields=tuple(msgspec.structs.replace(field, width=field.width - 1) for field in own.fields))
    descriptors = tuple(moved if each is own else each for each in database.spec.descriptors)
    other = msgspec.structs.replace(database, spec=msgspec.structs.replace(database.spec, descriptors=descriptors))
    differences = compared.compare(few, catalog_of(other)).differences
    assert {entry.operand for entry in differences if entry.subject == "GmmaDescriptor"} == set(peer.fields)
    assert changed(swizzle_formula=memory.swizzle_formula.replace(">> 7", ">> 8"))
    exchanged = tuple(
        msgspec.structs.replace(layout, offset=layout.offset.replace("lbo", "x_").replace("sbo", "lbo").replace("x_", "sbo"))
        for layout in memory.layouts
    )
    assert changed(layouts=exchanged)


def test_an_instruction_that_is_gone_contradicts_the_peers(catalog: Catalog, peer: recorded.Peer) -> None:
    spec = catalog.database.spec
    left = tuple(entry for entry in spec.instructions if not entry.name.startswith("wgmma"))
    without = catalog_of(msgspec.structs.replace(catalog.database, spec=msgspec.structs.replace(spec, instructions=left)))
    gone = _contradictions(peer, peer.atoms, without)
    assert gone
    assert {entry.ours.partition(",")[0] for entry in gone} == {"no such instruction"}


def test_a_verdict_speaks_of_nothing_else() -> None:
    for entry in verdicts.read():
        other = compared.Difference(entry.peer, entry.subject.replace("*", "x"), entry.operand.replace("?", "a"), entry.theirs, "", 1, 1)
        if not re.search(r"[\[\]]", entry.subject):
            assert entry.speaks_of(other)
        assert not entry.speaks_of(other._replace(peer="another"))
        assert entry.operand == "*" or not entry.speaks_of(other._replace(operand="another operand"))


def _verdict(right: Literal["ours", "open"], **more: Any) -> Verdict:
    return Verdict(peer="CuTe", subject="f*", operand="a", right=right, why="because", **more)


def _found(*subjects: str) -> Findings:
    return Findings((), {"CuTe": 9}, [compared.Difference("CuTe", subject, "a", "theirs", "ours", 1, 2) for subject in subjects])


def test_alike_differences_are_one_line_of_evidence() -> None:
    judged = verdicts.judge(_found("first", "second", "fifth", "first"), [_verdict("ours")])
    together, apart = judged.differences
    assert (together.subjects, together.right, together.why) == (("first", "fifth"), "ours", "because")
    assert (apart.subjects, apart.right) == (("second",), "")
    assert not judged.agrees
    assert judged.tallies == {"CuTe": witnesses.Tally(compared=9, differing=3, settled=2)}
    assert list(judged.words())[2:] == [
        "CuTe, second, a: theirs; ours: ours",
        "    NO VERDICT",
        "CuTe: 9 compared, 3 differ, 2 of them settled",
    ]
    run, *lines = judged.record("2026-01-01", "1")
    assert isinstance(run, witnesses.Run)
    assert (run.peers, lines) == (judged.tallies, judged.differences)


def test_an_open_verdict_settles_nothing() -> None:
    judged = verdicts.judge(_found("first"), [_verdict("open")])
    assert judged.agrees
    assert judged.tallies["CuTe"].settled == 0


def test_verdicts_ask_the_assemblers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases that do not know the version are not asked; neighbours that say the same are one answer."""
    question = verdicts.Question(asked="movmatrix.sync.aligned.m8n8.trans.b16 b32 b32", target="sm_90", ptx="8.0")
    releases = [Assembler("", cuda, "", ptx, ("sm_90",), "") for cuda, ptx in (("11.8", "7.8"), ("12.0", "8.0"), ("12.1", "8.1"))]
    monkeypatch.setattr(errata, "ask", lambda *_: "accepted")
    judged = verdicts.judge(_found("first"), [_verdict("ours", questions=(question,))], releases)
    (answer,) = judged.differences[0].answers
    assert (answer.tool, answer.answer, answer.asked) == ("ptxas 12.0 to 12.1", "accepted", question.asked)


@pytest.mark.parametrize(
    "name",
    [
        witnesses.PEERS,
        witnesses.TENSOR_MEMORY,
        witnesses.PRODUCTS,
        witnesses.DESCRIPTORS,
        witnesses.FORMS,
        witnesses.SPELLINGS,
        witnesses.WRAPPERS,
    ],
)
def test_every_recorded_difference_is_judged(catalog: Catalog, name: str) -> None:
    """Faults of a peer have a report; each peer has its tally and says from which version it is."""
    witness = attached(catalog.database)[name]
    assert witness.run is not None
    differences = witness.of(witnesses.Difference)
    assert [each.subjects for each in differences if not each.right or not each.why] == []
    assert [each.subjects for each in differences if (each.right == "ours") != (each.report is not None)] == []
    named = {tool.name: tool.version for tool in witness.run.tools if tool.kind == "peer"}
    assert named.keys() == witness.run.peers.keys() >= {each.peer for each in differences}
    assert all(named.values())


def test_every_verdict_is_about_a_recorded_difference(catalog: Catalog) -> None:
    recorded = [
        compared.Difference(line.peer, subject, line.operand, line.theirs, line.ours, 1, 1)
        for witness in attached(catalog.database).values()
        for line in witness.of(witnesses.Difference)
        for subject in line.subjects
    ]
    assert [one for one in verdicts.read() if not any(map(one.speaks_of, recorded))] == []


def test_checkouts_are_named_with_their_commit(tmp_path: Path) -> None:
    (found,) = sources.checkouts([f"TVM={tmp_path}@0123456789abcdef"]).values()
    assert found.tool("2026-01-01") == witnesses.Tool(kind="peer", name="TVM", version="0123456789ab", date="2026-01-01")
    for text, said in (
        (f"TVM={tmp_path}", "not a checkout: say which commit"),
        ("TVM", "is not NAME=DIR"),
        ("TVM=/nowhere", "is not NAME=DIR"),
    ):
        with pytest.raises(ValueError, match=said):
            sources.checkouts([text])
    with pytest.raises(sources.MissingPeerError, match="give one with --checkout cccl=DIR"):
        sources.checkout({"TVM": found}, "cccl")


# --- tinygrad's emulator ---------------------------------------------------------------------------------------------------


def _emulator(first_of_b: str = "k % {e}") -> str:
    """An emulator with fragments of our own, in registers that hold e elements."""
    conditions = {2: "dims == (8, 16, 16)", 4: "dims == (8, 16, 32)"}
    cases = [*conditions.items(), *((e, f"dims == (8, 16, 8) and dtype_in == dtypes.{name}") for e, name in ((2, "half"), (1, "float")))]
    text = "if device == 'CUDA':\n def c_map(lane, i): return 2 * (lane % 4) + i % 2, lane // 4 + 8 * (i // 2)\n"
    for e, condition in cases:
        lane = f"[goff + 4 * {{}} + k // {e} % 4]"
        text += f" if {condition}:\n"
        text += (
            f"  def a_elem(x, k, row, goff): return x[k % {e} + {e} * (row // 8) + {2 * e} * (k // {4 * e})]{lane.format('(row % 8)')}\n"
        )
        text += f"  def b_elem(x, col, k, goff): return x[{first_of_b.format(e=e)} + {e} * (k // {4 * e})]{lane.format('col')}\n"
    return text


@pytest.mark.parametrize(("first_of_b", "differing"), [("k % {e}", set()), ("{e} - 1 - k % {e}", {"b"})])
def test_functions_of_tinygrad_are_executed(catalog: Catalog, tmp_path: Path, first_of_b: str, differing: set[str]) -> None:
    file = tmp_path / "tinygrad" / "runtime" / "ops_python.py"
    file.parent.mkdir(parents=True)
    file.write_text(_emulator(first_of_b), encoding="utf-8")
    found = tinygrad_fragments.compare(catalog, [*tinygrad_fragments.read(tmp_path)])
    assert {each.operand for each in found} == differing
    assert len(found) == (7 if differing else 0)  # the order within a register: there is none of tf32


# --- CUTLASS's headers ------------------------------------------------------------------------------------------------------


def test_the_compiler_says_what_is_recorded(catalog: Catalog, nvcc: str, tmp_path: Path) -> None:
    assert cutlass()
    found = register_record.run(
        catalog,
        {},
        "2026-01-02",
        choose=lambda atom: bool(re.search("sm(75|89|100)", atom.file) or re.search("64x24x16_F32F16|64x8x64_S32S8S8", atom.type)),
        types=["cute::half_t"],
        nvcc=nvcc,
    )
    assert found.totals["shapes"] > 0
    assert [each.subject for each in found.differences] == ["GMMA::Layout_K_SW32_Atom, 16 bits, 128 x 32"]  # which verdicts.yaml explains
    assert found.agreed is not None
    found.agreed.write(tmp_path)
    again, known = recorded.read(tmp_path), recorded.read()
    assert again.atoms
    assert set(map(str, again.atoms)) <= set(map(str, known.atoms))
    assert again.shared == tuple(operand for operand in known.shared if operand.bits == 16)
    assert found.totals["atoms"] > 12
    assert any(isinstance(line, witnesses.Compared) and line.agree for line in found.lines)


def test_without_headers_or_compiler_it_says_what_is_missing(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {"CUTLASS": Source("CUTLASS", tmp_path, "0")}
    with pytest.raises(MissingPeerError, match="/nowhere/nvcc: no such compiler"):
        register_record.run(catalog, given, "2026-01-01", nvcc="/nowhere/nvcc")
    monkeypatch.setattr(headers, "_PACKAGE", "nvidia-cutlass-of-nobody")
    with pytest.raises(MissingPeerError, match="CuTe is not installed: pip install"):
        register_record.run(catalog, {}, "2026-01-01")


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
    return headers.atoms(Source("CuTe", tmp_path, "0"))


def test_atoms_are_read_from_their_text(own: list[Atom]) -> None:
    assert [(atom.name, atom.file, len(atom.statements), atom.has_layouts) for atom in own] == [
        ("SM80::MMA_8x8x16", "cute/arch/mma_sm80.hpp", 1, True),
        ("SM80::Pair", "cute/arch/mma_sm80.hpp", 2, False),
        ("SM80::Scaled<float, 16>", "cute/arch/mma_sm80.hpp", 1, False),
        ("SM80::Scaled<float, 32>", "cute/arch/mma_sm80.hpp", 1, False),
    ]
    assert own[0].type == "cute::SM80::MMA_8x8x16<cute::SM90::GMMA::Major::K, cute::SM90::GMMA::ScaleIn::One>"
    assert own[0].statements[0].mnemonic == "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    assert [place.expression for place in own[0].statements[0].places] == ["d0", "d1", "a0", "b0", "int32_t(c0)", "c1"]
    assert own[2].statements[0].places[2] == headers.Bound("", "0x0")


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('"=r"(d0), "=r"(d1)', '"=r"(d1), "=r"(d0)', "d: its registers are d1, d0"),
        ('"=r"(d0), "=r"(d1)', '"=r"(d0), "=r"(c1)', "d: its registers are d0, c1"),
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
    statement = headers.atoms(Source("CuTe", tmp_path, "0"))[0].statements[0]
    bound = binding.bind(statement, catalog.find(statement.mnemonic))
    said = "no form" if bound is None else bound.faults[0] if bound.faults else None
    assert said == fault


# --- PyTorch ----------------------------------------------------------------------------------------------------------------


def test_pytorch_compresses_every_choice_alike(catalog: Catalog) -> None:
    pytest.importorskip("torch")
    comparison = pytorch.compare(catalog)
    assert comparison
    assert comparison.differences == []
    assert {conversion.dtype for conversion in comparison.conversions} == {
        f"torch.{name}" for name in ("float16", "bfloat16", "float32", "int8")
    }


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
    comparison = pytorch.compare(catalog)
    assert comparison
    assert [conversion.agrees for conversion in comparison.conversions] == [False] * 4
    assert all(entry.theirs.startswith("metadata, at ") for entry in comparison.differences)
