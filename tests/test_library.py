"""The Python library: looking up, asking, filtering, failing."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import ptxmma
from ptxmma.catalog.instructions import Catalog, Instruction, operand_names
from ptxmma.catalog.instructions.spellings import ordered_tokens
from ptxmma.catalog.operands import Operand
from ptxmma.model import Observation


@pytest.fixture(scope="module")
def everything(catalog: Catalog) -> list[Instruction]:
    return list(catalog.all())


def test_the_packaged_database_is_the_spec(everything: list[Instruction]) -> None:
    assert [instruction.canonical for instruction in ptxmma.instructions()] == [instruction.canonical for instruction in everything]


def test_the_example_of_the_readme() -> None:
    ins = ptxmma.instruction("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert ins.canonical == "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    assert ins.accepted_by()["sm_80"] == "7.1"
    assert ins.accepted_by()["A100"] == ins.accepted_by("a100")["a100"] == "7.1"
    with pytest.raises(KeyError, match="sm_70 does not accept the instruction; accepted by sm_"):
        ins.accepted_by()["V100"]
    with pytest.raises(KeyError, match="unknown target 'a101'"):
        ins.accepted_by()["a101"]
    assert ins.accepted_by()["sm_90a"] == "8.0"
    assert ins.documented
    a = ins.operand("a")
    assert a.coords(5, 3) == (9, 3)
    assert a.locate(9, 3) == (5, 3)
    assert (a.registers, a.elements, a.element_type, a.register_types[0], a.constraint) == (4, 8, "f16", "b32", "r")
    assert a.chunk(5, 3) == 4
    assert a.window(5, 3) == (4, 7)
    assert ins.metadata.locate(9, 5, selector=1) == (7, 20, 4)
    assert ins.metadata.fields(7, selector=1)[5] == (9, 5, 20)
    assert ins.metadata.fields(4, selector=1) == []
    assert ins.requirements()[0].source == "9.7.14.6.3"


def test_every_spelling_of_a_variant_is_found(everything: list[Instruction]) -> None:
    """Modifiers may come in nearly any order, as long as the types (and the two layouts) keep theirs."""
    for variant in everything[::7]:
        instruction = variant.variant.instruction
        words = variant.canonical.split(".")
        first = (instruction.opcode or words[0]).count(".") + 1
        opcode, tokens = ".".join(words[:first]), words[first:]
        ordered = ordered_tokens(instruction)
        loose = [token for token in tokens if token not in ordered]
        fixed = [token for token in tokens if token in ordered]
        for spelling in ([*loose, *fixed], [*fixed, *loose], [*reversed(loose), *fixed]):
            text = ".".join([opcode, *spelling])
            assert ptxmma.instruction(text).canonical == variant.canonical, text


def test_defaults_may_be_left_out() -> None:
    short = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    assert ptxmma.instruction(short).qualifiers["scale_vec"] == "scale_vec::2X"
    assert ptxmma.instruction("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64").qualifiers["rounding"] == "rn"
    with pytest.raises(ptxmma.UnknownInstruction):  # mxf4nvf4 has no default
        ptxmma.instruction("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")


@pytest.mark.parametrize(
    ("spelling", "reason", "close"),
    [
        (
            "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16",
            "N is a placeholder; write a number: 8, 16, 24, …, 256",
            "m64n8k16.f32.f16.f16",
        ),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "'.bf16' where the closest has '.f16'", "m16n8k16.row.col.f32.f16.f16.f32"),
        (
            "mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32",
            "'.m16n8k17' is in no covered instruction; the closest has '.m16n8k16'",
            "row.col.f32.f16.f16.f32",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8",
            "'.m64n40k32' where the closest has '.m64n32k32'",
            "wgmma.mma_async.sync.aligned.m64n",
        ),
        (
            "cp.async.bulk.tensor.6d",
            "it lacks '.5d', '.global', '.shared::cta', '.bulk_group'; '.6d' is in no covered instruction",
            "cp.async.bulk.tensor.5d",
        ),
        ("mma.aligned.m16n8k16.row.col.f32.f16.f16.f32", "it lacks '.sync'", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("mma.sync.aligned.m16n8k16.row.col.row.f32.f16.f16.f32", "'.row' is there twice", "m16n8k16.row.col.f32.f16.f16.f32"),
        ("mma.sync.aligned.m16n8k16.satfinite.row.col.f32.f16.f16.f32", "'.satfinite' does not belong", "m16n8k16.row.col.f32.f16.f16.f32"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.no", "'.no' is in no covered instruction", "m16n8k16.row.col.f32.f16.f16.f32"),
        (
            "mma.sync.aligned.m16n8k16.row.col.f16.f32.f16.f32",
            "'.f16.f32.f16.f32' is in another order than the closest's '.f32.f16.f16.f32'",
            "m16n8k16.row.col.f32.f16.f16.f32",
        ),
        (
            "mma.sp.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32",
            "'.col.row' is in another order than the closest's '.row.col'",
            "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        ),
        ("wgmma.sync.mma_async.aligned.m64n48k32.s32.s8.s8", "'wgmma.mma_async' must come first", "m64n48k32.s32.s8.s8"),
    ],
)
def test_unknown_instructions_say_why_and_what_is_close(spelling: str, reason: str, close: str) -> None:
    with pytest.raises(ptxmma.UnknownInstruction) as caught:
        ptxmma.instruction(spelling)
    assert caught.value.reason == reason
    assert any(close in text for text in caught.value.close)
    assert str(caught.value).startswith(f"{spelling}: {reason}; closest:")


def test_an_opcode_that_is_not_covered_is_near_one_that_is() -> None:
    with pytest.raises(ptxmma.UnknownInstruction) as caught:
        ptxmma.instruction("mm.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert re.fullmatch(r"'mm' is not covered; covered are (\w+, )+\w+", caught.value.reason)
    assert {"fence", "ldmatrix", "mma", "wgmma"} <= set(re.findall(r"\w+", caught.value.reason.partition("covered are")[2]))
    assert any("m16n8k16.row.col.f32.f16.f16.f32" in text for text in caught.value.close)


@pytest.mark.parametrize("spelling", ["add.s32", "", "x" * 5000])
def test_nothing_is_close_to_other_instructions(spelling: str) -> None:
    with pytest.raises(ptxmma.UnknownInstruction, match=r"is not covered; covered are [a-z, 0-9]*$") as caught:
        ptxmma.instruction(spelling)
    assert caught.value.spelling == spelling
    assert caught.value.close == []
    assert len(str(caught.value).partition("; covered are ")[0]) < 500


def test_long_spellings_are_cut_and_only_legal_ones_offered() -> None:
    with pytest.raises(ptxmma.UnknownInstruction) as caught:
        ptxmma.instruction("mma" + "".join(f".x{i}" for i in range(500)))
    assert len(str(caught.value).splitlines()[0]) < 500
    assert len(caught.value.close) == 3
    assert all(ptxmma.instruction(text).canonical == text for text in caught.value.close)


@pytest.mark.parametrize("spelling", [5, None, b"mma"])
def test_a_spelling_is_a_string(spelling: Any) -> None:
    with pytest.raises(TypeError, match="the spelling of an instruction must be a string, not"):
        ptxmma.instruction(spelling)


@pytest.mark.parametrize("content", [b"{}", b"no JSON", b"\xff\xfe", b""])
def test_a_file_that_is_not_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other\.json: not a database of this version of ptxmma"):
        ptxmma.instruction("mma", database=path)


def test_forms(everything: list[Instruction]) -> None:
    ins = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16")
    assert [form.name for form in ins.forms] == ["registers", "descriptor"]
    assert [operand.name for operand in ins.forms[1].operands] == [
        "d", "a-desc", "b-desc", "scale-d", "imm-scale-a", "imm-scale-b", "imm-trans-a", "imm-trans-b",
    ]  # fmt: skip
    assert ins.operand("a").registers == 4
    assert ins.operand("d").elements == ins.operand("d").registers == 12
    assert ins.operand("d").coords(127, 11) == (63, 23)
    assert ins.operand("a-desc").uniform == "warpgroup"
    with pytest.raises(KeyError, match="has no operand 'z'; it has d, a, b-desc"):
        ins.operand("z")
    for instruction in everything:
        for form in instruction.forms:
            assert tuple(operand.name for operand in form.operands) == operand_names(form.syntax)


def test_places_whose_addresses_threads_give(catalog: Catalog, odd: Catalog) -> None:
    """Each place that has an address has one thread; the addresses of the others are ignored."""
    counts = set()
    for operand in (*_addresses(catalog), *_addresses(odd)):
        assert operand.layout is not None
        sizes = [operand.sizes[axis] for axis in operand.axes]
        counts.add(count := math.prod(sizes))
        places = [operand.coords(lane) for lane in range(operand.layout.threads)]
        assert sorted(places[:count]) == list(itertools.product(*map(range, sizes)))
        assert places[count:] == [None] * (operand.layout.threads - count)
        for lane, place in enumerate(places[:count]):
            assert operand.locate(*place) == lane
            assert operand.places(*place) == [lane]
        lanes = np.arange(count)
        assert np.array_equal(operand.locate(*operand.coords(lanes)), lanes)
        with pytest.raises(ValueError, match=f"lane of operand '{operand.name}' names threads whose addresses the instruction ignores"):
            operand.coords(np.arange(count + 1), check=False)
    assert counts >= {2, 8, 16, 32}


def test_threads_of_ldmatrix_and_stmatrix_give_the_rows_in_turn(catalog: Catalog) -> None:
    addresses = list(_addresses(catalog, "ldmatrix", "stmatrix"))
    assert len(addresses) >= 4
    for operand in addresses:
        count = math.prod(operand.sizes.values())
        assert [operand.coords(lane) for lane in range(count)] == [divmod(lane, operand.sizes["row"]) for lane in range(count)]


def _addresses(known: Catalog, *families: str) -> Iterator[Operand]:
    """One operand for each layout of addresses, of all families or of some."""
    seen = set()
    for instruction in known.all():
        for operand in instruction.operands:
            ours = not families or instruction.variant.instruction.family in families
            if operand.kind == "address" and operand.layout is not None and ours and operand.layout.name not in seen:
                seen.add(operand.layout.name)
                yield operand


def test_metadata_round_trips(everything: list[Instruction]) -> None:
    for instruction in {layout.metadata.layout.name: layout for layout in everything if layout.variant.instruction.metadata}.values():
        metadata = instruction.metadata
        for selector in range(metadata.selectors):
            fields = {
                (row, chunk): (lane, bit, metadata.width)
                for lane in range(metadata.layout.threads)
                for row, chunk, bit in metadata.fields(lane, selector)
            }
            places = {(row, chunk) for row in range(metadata.rows) for chunk in range(metadata.chunks)}
            assert set(fields) == places
            assert all(metadata.locate(row, chunk, selector) == place for (row, chunk), place in fields.items())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("a.coords(32, 0)", r"lane = 32 is out of range: 0..31"),
        ("a.coords(0, 8)", r"i = 8 is out of range: 0..7"),
        ("a.coords(np.int64(32), 0)", r"lane = 32 is out of range"),
        ("a.coords(np.array(32), 0)", r"lane = 32 is out of range"),
        ("a.locate(16, 0)", r"row = 16 is out of range: 0..15"),
        ("a.locate(0, 16)", r"col = 16 is out of range: 0..15"),
        ("ins.metadata.locate(0, 8)", r"chunk = 8 is out of range: 0..7"),
        ("ins.metadata.locate(0, 0, 2)", r"selector = 2 is out of range: 0..1"),
        ("ins.metadata.fields(32)", r"lane = 32 is out of range"),
        ("a.coords(np.array([31, 32]), 0)", r"lane reaches from 31 to 32; allowed: 0..31"),
        ("a.coords(0, np.arange(-1, 3))", r"i reaches from -1 to 2; allowed: 0..7"),
        ("a.locate(np.array([[16, 3]]), 0)", r"row reaches from 3 to 16; allowed: 0..15"),
        ("a.places(0, np.array([0, 16]))", r"col reaches from 0 to 16; allowed: 0..15"),
        ("a.computation(np.array([0, 32]), 0)", r"lane reaches from 0 to 32; allowed: 0..31"),
        ("ins.metadata.locate(0, np.array([8, 0]))", r"chunk reaches from 0 to 8; allowed: 0..7"),
        ("scales.locate(np.array([16, 0]), 0)", r"row reaches from 0 to 16; allowed: 0..15"),
        ("ins.operand('b').window(0, 0)", "operand 'b' is not sparse"),
        ("ins.operand('f').coords(0, 0)", "operand 'f' holds no elements of a matrix"),
    ],
)
def test_out_of_range(call: str, message: str) -> None:
    ins = ptxmma.instruction("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    scaled = ptxmma.instruction("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0")
    with pytest.raises(ValueError, match=message):
        eval(call, {"np": np, "ins": ins, "a": ins.operand("a"), "scales": scaled.scales("a")})


def test_the_package_lists_what_it_has() -> None:
    assert dir(ptxmma) == sorted(ptxmma.__all__)
    assert all(hasattr(ptxmma, name) for name in dir(ptxmma))


def test_arrays_go_unchecked_where_that_is_asked_for() -> None:
    ins = ptxmma.instruction("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    a, beyond = ins.operand("a"), np.array([0, 99])
    assert [part[0] for part in a.coords(beyond, 0, check=False)] == [0, 0]
    assert a.locate(beyond, 0, check=False)[0][0] == 0
    assert ins.metadata.locate(beyond, 0, check=False)[0][0] == 0
    with pytest.raises(ValueError, match="lane = 32 is out of range"):
        a.coords(32, 0, check=False)  # scalars are always checked
    assert a.coords(np.zeros(0, int), 0)[0].shape == (0,)


def test_numpy_scalars_do_not_overflow() -> None:
    d = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16").operand("d")
    assert d.coords(np.int8(127), np.uint8(127)) == d.coords(127, 127) == (63, 255)


def test_undocumented_instructions_have_no_requirements(everything: list[Instruction]) -> None:
    assert {instruction.documented for instruction in everything if not instruction.requirements()} == {False}
    assert {instruction.documented for instruction in everything if instruction.requirements()} == {True}
    assert all(instruction.accepted_by() for instruction in everything)


def test_releases(catalog: Catalog) -> None:
    ins = catalog.find("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
    assert ins.releases()["sm_70"] == "dropped in CUDA 13.0"
    assert ins.releases().keys() <= ins.accepted_by().keys()
    differing = msgspec.structs.replace(
        ins.variant.instruction, observed=(Observation(ptx="6.4", targets=("sm_80",), releases="not in 12.0", source="ptxas"),)
    )
    spec = msgspec.structs.replace(catalog.database.spec, instructions=(differing,))
    again = Catalog(msgspec.structs.replace(catalog.database, spec=spec)).find(ins.canonical)
    assert again.releases()[ins.canonical] == "not in 12.0"
    assert "sm_70" not in again.releases()


def test_what_the_spec_says_of_a_variant(catalog: Catalog, everything: list[Instruction]) -> None:
    ins = catalog.find("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert [entry.accumulate for entry in ins.semantics()] == ["at least f32"]
    assert any("slower" in entry.text for entry in ins.notes())
    ordered = catalog.find("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert not any("slower" in entry.text for entry in ordered.notes())
    assert any("exited" in entry.text for entry in ins.undefined())
    assert {entry.over for entry in ins.uniform()} == {"warp"}
    assert ins.errata()
    assert {entry.family for entry in ins.errata()} == {"mma.sp"}
    for entry in {instruction.variant.instruction.name: instruction.variant.instruction for instruction in everything}.values():
        of = [instruction for instruction in everything if instruction.variant.instruction is entry]
        for stated, ask in (
            (entry.semantics, Instruction.semantics),
            (entry.undefined, Instruction.undefined),
            (entry.uniform, Instruction.uniform),
            (entry.notes, Instruction.notes),
        ):
            assert {one.text for instruction in of for one in ask(instruction)} == {one.text for one in stated}, entry.name


def test_legal_metadata(catalog: Catalog) -> None:
    spelling = "mma.{0}.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    loose, ordered = (catalog.find(spelling.format(variant)).metadata for variant in ("sp", "sp::ordered_metadata"))
    assert loose.legal == loose.granularity.legal
    assert ordered.legal == ordered.granularity.ordered
    assert set(ordered.legal) < set(loose.legal)
    fp6 = catalog.find("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e3m2.e3m2.f32").metadata
    assert fp6.legal == fp6.granularity.legal


def test_representations() -> None:
    ins = ptxmma.instruction("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert repr(ins.metadata) == "<Metadata: 16 rows x 8 chunks x 4 bits, selectors 0..1>"
    assert repr(ins.forms) == "(<OperandForm d, a, b, c, e, f>,)"
    wgmma = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.s8")
    assert repr(wgmma.forms[0]) == "<OperandForm registers: d, a, b-desc, scale-d>"


def test_dense_instructions_have_no_metadata() -> None:
    with pytest.raises(AttributeError, match="is not sparse: it has no metadata"):
        _ = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").metadata


def _names(instructions: Iterator[Instruction]) -> set[str]:
    return {ins.canonical for ins in instructions}


def test_filters(everything: list[Instruction]) -> None:
    whole = _names(iter(everything))
    for filters in ({"family": "mma.sp"}, {"target": "sm_89"}, {"ptx": "7.0"}, {"atype": "e4m3"}, {"sparse": True}):
        some = _names(ptxmma.instructions(**filters))
        assert some
        assert some < whole
    at_84 = _names(ptxmma.instructions(target="sm_89", ptx="8.4"))
    fp8 = "mma.sync.aligned.m16n8k32.row.col.{0}.e4m3.e4m3.{0}"
    assert fp8.format("f32") in at_84
    assert fp8.format("f16") not in at_84
    assert fp8.format("f32") not in _names(ptxmma.instructions(target="sm_89", ptx="8.3"))
    with pytest.raises(ValueError, match="unknown target 'sm_91'; closest: sm_90, "):
        ptxmma.instructions(target="sm_91")  # at the call


def test_importing_needs_neither_yaml_nor_numpy() -> None:
    script = (
        "import sys, ptxmma; i = ptxmma.instruction('mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64'); i.operand('a').coords(3, 0);"
        "print(sorted({'yaml', 'numpy', 'jinja2', 'jsonschema', 'click', 'ptxmma.generator'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "[]\n"


def _same() -> dict[str, Any]:
    """An object of each kind that compares by what it is, with one that differs."""
    mma = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    opcode = "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill"
    product = ptxmma.instruction(opcode, m=128, n=256, dtype="f32", atype="bf16", btype="bf16")
    wider = ptxmma.instruction(opcode, m=128, n=128, dtype="f32", atype="bf16", btype="bf16")
    image = ptxmma.shared_memory.of(product, "b", "32B")
    return {
        "instruction": (mma, ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")),
        "product": (product, wider),
        "operand": (mma.operand("a"), mma.operand("b")),
        "operand in tensor memory": (product.operand("d-tmem"), wider.operand("d-tmem")),
        "operand list": (mma.forms[0], product.forms[0]),
        "image": (image, ptxmma.shared_memory.of(product, "b", "none")),
        "image of any matrix": (ptxmma.shared_memory.SharedLayout("f16", "K", "32B", 8, 16), image),
    }


@pytest.mark.parametrize("kind", _same())
def test_pickles_and_copies_are_equal(kind: str) -> None:
    one, other = _same()[kind]
    copies = [pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)]  # our own bytes
    for made in copies:
        assert made == one
        assert hash(made) == hash(one)
    assert one not in (other, "text", None)
    assert len({one, other, *copies}) == 2


def test_a_pickle_of_an_instruction_is_its_spelling(catalog: Catalog) -> None:
    """The packaged database stays where it is; another one goes along."""
    packaged = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert len(pickle.dumps(packaged)) < 1000
    assert pickle.loads(pickle.dumps(packaged)) is packaged
    own = ptxmma.instruction(packaged.canonical, database=msgspec.structs.replace(catalog.database, generated="another"))
    assert pickle.loads(pickle.dumps(own)) == own != packaged
