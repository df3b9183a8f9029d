"""``ptxmma layout`` and ``show`` about products in tensor memory: what the options say, where elements lie, every error."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path

import pytest

import header_programs
import ptxmma
from commands import ask
from ptxmma.catalog import instructions
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.names.product_family import families, product_of_type, type_of_product
from ptxmma.catalog.products import resolution
from ptxmma.catalog.products.legal_products import in_words
from ptxmma.catalog.summaries.description import describe

_OPCODE = "tcgen05.mma.cta_group::1.kind::f16"
_HALF = ("--m", "64", "--n", "256", "--dtype", "f32", "--atype", "bf16", "--btype", "bf16")


def layout(*more: str, code: int = 0) -> str:
    return ask("layout", _OPCODE, *_HALF, "--operand", "d-tmem", *more, code=code)


def test_a_place_of_an_element() -> None:
    (answer,) = json.loads(layout("--row", "37", "--col", "200", "--json"))
    assert answer == {"row": 37, "col": 200, "cta": 0, "lane": 69, "column": 200, "bit": 0, "address": "base + 0x4500c8"}


def test_what_lies_in_a_cell() -> None:
    (answer,) = json.loads(layout("--lane", "69", "--column", "200", "--json"))
    assert answer == {"row": 37, "col": 200, "lane": 69, "column": 200, "bit": 0, "cta": 0}


_WHOLE = ("--m", "128", *_HALF[2:])
_SPARSE = "tcgen05.mma.sp.cta_group::1.kind::f16"


@pytest.mark.parametrize(
    ("opcode", "operand", "selections", "cell"),
    [
        (_OPCODE, "a-tmem", {}, (37, 2, 16)),
        (_OPCODE, "a-tmem", {}, (37, 2, 15)),
        (_OPCODE, "d-tmem", {}, (37, 2, 5)),
        (_SPARSE, "sp-meta-tmem", {"selector": 1}, (77, 1, 22)),
    ],
)
def test_the_bit_of_a_cell_chooses_what_lies_there(opcode: str, operand: str, selections: dict[str, int], cell: tuple[int, ...]) -> None:
    placed = ptxmma.instruction(opcode, m=128, n=256, dtype="f32", atype="bf16", btype="bf16").operand(operand)
    place = dict(zip(("lane", "column", "bit"), cell, strict=True))
    given = [word for name, value in {**place, **selections}.items() for word in (f"--{name}", str(value))]
    (answer,) = json.loads(ask("layout", opcode, *_WHOLE, "--operand", operand, *given, "--json"))
    axes = dict(zip(placed.sizes, placed.coords(*cell, **selections), strict=True))
    assert answer == {**axes, **place, "cta": 0}


def test_places_and_cells_of_an_operand_at_an_address() -> None:
    (answer,) = json.loads(layout("--row", "37", "--col", "200", "--base", "0x100040", "--json"))
    assert answer == {"row": 37, "col": 200, "cta": 0, "lane": 85, "column": 264, "bit": 0, "address": "0x550108"}
    (answer,) = json.loads(layout("--lane", "85", "--column", "264", "--base", "0x100040", "--json"))
    assert (answer["row"], answer["col"]) == (37, 200)
    assert "allowed: lane 0 or 16; column 0..320 on sm_107f, 0..256" in layout("--row", "0", "--col", "0", "--base", "0x50040", code=2)
    assert "its layout is D of M = 64" in layout("--lane", "85", "--column", "3", "--base", "0x100040", code=2)


def test_the_help_names_the_options_of_operands() -> None:
    text = ask("layout", "--help")
    for option in ("--row", "--col", "--block", "--copy", "--scale-id", "--selector", "--column", "--base"):
        assert option in text.partition("Options that depend on the operand:")[2], option


def test_blocks_hold_every_element_once() -> None:
    rows = list(csv.DictReader(io.StringIO(layout("--format", "csv"))))
    d = ptxmma.instruction(_OPCODE, m=64, n=256, dtype="f32", atype="bf16", btype="bf16").operand("d-tmem")
    seen = set()
    for row in rows:
        first = {name: int(text.partition("\u2013")[0]) for name, text in row.items()}
        last = {name: int(text.rpartition("\u2013")[2]) for name, text in row.items()}
        assert d.locate(first["row"], first["col"])[1:3] == (first["lane"], first["column"])
        assert d.locate(last["row"], last["col"])[1:3] == (last["lane"], last["column"])
        seen |= {(one, other) for one in range(first["row"], last["row"] + 1) for other in range(first["col"], last["col"] + 1)}
    assert len(seen) == 64 * 256


def test_what_lies_past_the_end_along_k() -> None:
    scaled = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
    product = ("layout", scaled, "--m", "128", "--n", "128", "--dtype", "f32", "--atype", "e4m3", "--btype", "e4m3", "--operand")
    past = "an instruction covers K = 32; a later step reads block 3 as --block 0 --scale-id 3"
    assert f"--block 3 is outside 0..0: {past}\n" in ask(*product, "scale-A-tmem", "--row", "3", "--block", "3", code=2)
    beyond = ask(*product, "scale-A-tmem", "--row", "3", "--block", "5", code=2)
    assert "--block 5 is outside 0..0: an instruction covers K = 32; another block along K belongs to a later step\n" in beyond
    assert "--row 128 is outside 0..127\n" in ask(*product, "scale-A-tmem", "--row", "128", "--block", "0", code=2)
    assert "--col 128 is outside 0..127\n" in ask(*product, "d-tmem", "--row", "3", "--col", "128", code=2)  # along N


def test_a_picture() -> None:
    assert layout("--format", "svg").startswith("<svg ")


def test_show_lists_the_families_that_begin_so() -> None:
    shown, answer = ask("show", "tcgen05", "--all"), json.loads(ask("show", "tcgen05", "--json"))
    families = dict.fromkeys(each.family for each in ptxmma.instructions() if each.family.startswith("tcgen05"))
    assert [each["family"] for each in answer] == list(families)
    rows = [line.split()[:2] for line in shown.splitlines() if line.startswith("  tcgen05.")]
    assert rows == [[each["family"], str(each["instructions"])] for each in answer]
    assert "tcgen05.cp" not in ask("show", "tcgen05.mma", "--all")  # a whole name is that family
    assert "--m, --n are for one instruction" in ask("show", "tcgen05.mma", "--m", "128", "--n", "64", code=2)
    assert "--k is for one instruction" in ask("show", "tcgen05", "--k", "32", code=2)
    assert "begins the names" not in ask("show", "tcgen06", code=2)


def test_show_counts_and_names_types() -> None:
    answer = json.loads(ask("show", _OPCODE, *_HALF, "--json"))
    assert answer["shape"] == [64, 256, 16]
    assert answer["operations"] == 2 * 64 * 256 * 16
    (d,) = (operand for operand in answer["operands"] if operand["name"] == "d-tmem")
    assert (d["type"], d["rows"], d["cols"]) == ("f32", 64, 256)
    assert answer["computes"] == "d[row][col] = (enable-input-d ? d[row][col] : 0) + sum over k of a[row][k] * b[k][col]"
    assert answer["cplusplus"]["front"] == _TYPED.replace("128", "64")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--row", "64", "--col", "0"), "--row 64 is outside 0..63"),
        (("--row", "3"), "name an element of d-tmem of tcgen05.mma.cta_group::1.kind::f16: --col is missing"),
        (("--row", "3", "--col", "0", "--chunk", "1"), "has no --chunk; its axes: --row 0..63, --col 0..255"),
        (("--lane", "128", "--column", "0"), "lane"),
        (("--lane", "3"), "--lane needs --column"),
        (("--lane", "3", "--column", "0", "--bit", "32"), "--bit 32 is outside 0..31"),
        (("--row", "3", "--col", "0", "--bit", "4"), "--bit needs --lane and --column"),
        (("--lane", "16", "--column", "0"), "bit = 0; its layout is D of M = 64 without .ws: 16 rows in each 32 lanes\n"),
    ],
)
def test_wrong_places_are_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in layout(*arguments, code=2)


def test_an_opcode_alone_says_which_options_it_needs() -> None:
    stated = "the place of d-tmem depends on m, n: give --m (64, 128), --n (8..256 by 8)\n"
    assert ask("layout", _OPCODE, "--operand", "d-tmem", code=2).endswith(stated)
    load = ("--through", "tcgen05.ld.sync.aligned.32x32b.x32.b32")
    assert ask("layout", _OPCODE, "--operand", "d-tmem", *load, code=2).endswith(stated)
    assert "say which --operand: d-tmem, a-tmem" in ask("layout", _OPCODE, *_HALF, code=2)


def test_a_place_asks_for_no_more_than_it_depends_on() -> None:
    """D with a lane for each row depends on M alone, D in two halves also on N where the column may be in either; the types never count."""
    where = ("--operand", "d", "--row", "37", "--col", "20")
    assert "the place of d-tmem depends on m: give --m (64, 128)\n" in ask("layout", _OPCODE, *where, code=2)
    pair = (_OPCODE.replace("::1", "::2"), "--m", "128")
    assert "the place of d-tmem depends on n: give --n (32..256 by 16)\n" in ask("layout", *pair, *where, code=2)
    for options in (("--m", "128"), ("--m", "128", "--atype", "bf16"), ("--m", "128", "--n", "64")):
        assert ask("layout", _OPCODE, *options, *where).splitlines()[1].split()[:5] == ["37", "20", "0", "37", "20"]
    assert "--row 137 is outside 0..127" in ask("layout", _OPCODE, "--operand", "d", "--row", "137", "--col", "0", code=2)


def test_a_layout_that_no_source_states_is_refused_once() -> None:
    said = ask("layout", _SPARSE, *_HALF, "--operand", "metadata", "--row", "37", "--chunk", "5", code=2)
    assert said.count(_SPARSE) == said.count("no source says where sp-meta-tmem of") == 1
    assert "--m" not in said


def test_an_operand_that_does_not_exist() -> None:
    said = ask("layout", _OPCODE, *_HALF, "--operand", "foo", code=2)
    assert f"{_OPCODE} has no operand 'foo'; no operand in registers has a layout; in tensor memory: d-tmem, a-tmem" in said


def test_a_selection_that_is_not_legal() -> None:
    scaled = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale"
    product = ("--m", "128", "--n", "128", "--dtype", "f32", "--atype", "e2m1", "--btype", "e2m1", "--operand", "scale-a")
    said = ask("layout", scaled, *product, "--row", "3", "--block", "0", "--scale-id", "1", code=2)
    assert "--scale-id 1 is not legal; allowed: 0 or 2" in said


def test_illegal_options_say_what_is_legal() -> None:
    said = ask("show", _OPCODE, "--m", "256", "--n", "64", "--dtype", "f16", code=2)
    assert "does not allow m = 256 with n = 64; legal: m = 64 or 128 with n = 8, 16, … 256" in said
    assert "leave out m" in ask("show", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "--m", "16", code=2)


@pytest.mark.parametrize("name", ["scale-A-tmem", "SCALE-a-tmem", "scale-a"])
def test_an_operand_goes_by_the_beginning_of_its_name(name: str) -> None:
    product = ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", "--m", "128", "--n", "256", "--atype", "e4m3", "--btype", "e4m3")
    assert ask("layout", *product, "--row", "77", "--block", "0", "--operand", name).split()[-3:] == ["base", "+", "0xd0002"]
    assert "in tensor memory: d-tmem, scale-A-tmem, scale-B-tmem, a-tmem" in ask("layout", *product, "--operand", "scale", code=2)


def test_metadata_goes_by_its_kind() -> None:
    product = ("tcgen05.mma.sp.cta_group::1.kind::f16", "--m", "128", "--n", "256", "--dtype", "f32", "--atype", "f16", "--btype", "f16")
    assert ask("layout", *product, "--operand", "metadata") == ask("layout", *product, "--operand", "sp-meta-tmem")


def test_metadata_of_a_column_of_the_packed_a() -> None:
    """A field of 2:4 describes two columns of the packed A."""
    question = ("layout", _SPARSE, *_WHOLE, "--operand", "metadata", "--json")
    (chunk,) = json.loads(ask(*question, "--row", "37", "--chunk", "4", "--selector", "1"))
    for col in (8, 9):
        (answer,) = json.loads(ask(*question, "--row", "37", "--col", str(col), "--selector", "1"))
        assert answer == chunk | {"col": col}
    assert "--col 16 is outside 0..15" in ask(*question, "--row", "37", "--col", "16", code=2)
    assert "leave out --chunk" in ask(*question, "--row", "37", "--col", "8", "--chunk", "4", code=2)
    assert "--row is missing" in ask(*question, "--col", "8", code=2)


def test_a_cell_of_another_selection_says_which() -> None:
    cell = ("--lane", "37", "--column", "1", "--bit", "5")
    assert ask("layout", _SPARSE, *_WHOLE, "--operand", "metadata", *cell, code=2).endswith("; something does with --selector 1\n")
    scaled = ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale", "--m", "128", "--n", "128", "--k", "64", "--operand", "scale-a")
    cell = ("--lane", "37", "--column", "1", "--bit", "16")
    assert ask("layout", *scaled, *cell, code=2).endswith("; something does with --scale-id 2\n")


# --- types of C++ -----------------------------------------------------------------------------------------------------------

_TYPED = "ptxmma::tcgen05_mma<ptxmma::shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>"
_NVCC = (
    'class "ptxmma::tcgen05_product<Opcode, Shape, Kind, D, A, B, CtaGroup, ScaleVec, Scale> [with Opcode=(ptxmma_tcgen05_opcode)1, '
    "Shape=ptxmma::shape<256, 64>, Kind=(ptxmma_tcgen05_kind)5, D=ptxmma::f32, A=ptxmma::e4m3, B=ptxmma::e2m1, "
    'CtaGroup=(ptxmma_tcgen05_cta_group)1, ScaleVec=(ptxmma_tcgen05_scale_vec)0, Scale=ptxmma::ue8m0]"'
)


@pytest.mark.parametrize(
    ("text", "opcode", "sizes", "types"),
    [
        (_TYPED, _OPCODE, (128, 256, 16), "f32 bf16 bf16"),
        (_TYPED.replace("ptxmma::", "").replace("256>", "64, 16>"), _OPCODE, (128, 64, 16), "f32 bf16 bf16"),
        (_NVCC, "tcgen05.mma.sp.cta_group::2.kind::mxf8f6f4.block_scale", (256, 64, 64), "f32 e4m3 e2m1"),
        (
            "tcgen05_product<PTXMMA_TCGEN05_MMA, ptxmma::shape<128, 64, 96>, PTXMMA_TCGEN05_KIND_MXF4NVF4, ptxmma::f32, ptxmma::e2m1, "
            "ptxmma::e2m1, PTXMMA_TCGEN05_CTA_GROUP_1, PTXMMA_TCGEN05_BLOCK16, ptxmma::ue4m3>::p",
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16",
            (128, 64, 96),
            "f32 e2m1 e2m1",
        ),
    ],
)
def test_a_type_of_a_product_names_it(text: str, opcode: str, sizes: tuple[int, int, int], types: str) -> None:
    answer = json.loads(ask("show", text, "--json"))
    assert (answer["instruction"], tuple(answer["shape"])) == (opcode, sizes)
    product = product_of_type(instructions.catalog(), text)
    assert product is not None
    assert " ".join(product.matrix_types[name] for name in "dab") == types


def test_a_type_of_no_legal_product_says_what_is_legal() -> None:
    assert "does not allow m = 128 with n = 264; legal: m = 64 or 128 with n = 8, 16, … 256" in ask(
        "show", _TYPED.replace("256", "264"), code=2
    )
    assert "takes no atype = e4m3; legal:" in ask("show", _TYPED.replace("::bf16,", "::e4m3,"), code=2)
    assert "is not covered" in ask("show", _TYPED.replace("F16", "F17"), code=2)


def test_show_names_the_type_of_a_product() -> None:
    opcode = "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X"
    answer = ask("show", opcode, "--all")
    assert "#include <ptxmma/cuda/tcgen05_mma_product.cuh>\n" in answer
    template = "ptxmma::tcgen05_mma<ptxmma::shape<{}>, PTXMMA_TCGEN05_KIND_MXF4NVF4, ptxmma::f32, ptxmma::e2m1, ptxmma::e2m1, "
    template += "PTXMMA_TCGEN05_CTA_GROUP_2, PTXMMA_TCGEN05_SCALE_VEC_4X{}>;\n"
    assert f"using TensorMultiply = {template.format('256, 256', '')}" in answer
    assert template.format("256, 64", ", ptxmma::ue4m3") in ask("show", opcode, "--m", "256", "--n", "64", "--stype", "ue4m3", "--all")


def test_the_type_of_every_opcode_names_it_and_compiles(root: Path, cxx: str, tmp_path: Path) -> None:
    """All but those with qualifiers that types leave out."""
    known = instructions.catalog()
    types = {each.canonical: type_of_product(each) for each in known.all()}
    named = {canonical: text for canonical, text in types.items() if text}
    assert len(named) > 60
    for canonical, text in named.items():
        product = product_of_type(known, text)
        assert product is not None
        assert (product.canonical, type_of_product(product)) == (canonical, text)
    lines = [f"static_assert(sizeof({text}), {json.dumps(canonical)});" for canonical, text in named.items()]
    source = tmp_path / "types.cpp"
    source.write_text("\n".join(["#include <ptxmma/cuda/tcgen05_product.cuh>", *lines]) + "\n", encoding="utf-8")
    header_programs.run(cxx, "-fsyntax-only", "-std=c++14", "-I", root / "generated/include", source)
    others = ("ashift", "decompress")
    opcodes = [each.canonical for each in known.all(lambda entry: entry.operation == "tensor-multiply")]
    assert [one for one in opcodes if one not in named] == [one for one in opcodes if any(other in one for other in others)]


def test_enumerators_are_those_of_the_headers(root: Path) -> None:
    (family,) = families(instructions.catalog())
    headers = "".join(
        (root / f"generated/include/ptxmma/{name}.h").read_text(encoding="utf-8") for name in ("tcgen05_products", "descriptors")
    )
    for what, names in family.enumerators.items():
        (members,) = re.findall(rf"typedef enum ptxmma_tcgen05_{what} {{(.*?)}}", headers, re.S)
        assert re.findall(r"\bPTXMMA_\w+", re.sub(r"/\*.*?\*/", "", members, flags=re.S)) == list(names)


# --- show -------------------------------------------------------------------------------------------------------------------


def test_show_lists_the_products_of_an_opcode() -> None:
    lines = ask("show", "tcgen05.mma.cta_group::1.kind::i8", "--all").splitlines()
    start = lines.index("products")
    assert lines[start + 1 : start + 5] == [
        "  D s32, A s8 or u8, B s8 or u8",
        "  K 32",
        "  M 64 or 128 with N 8, 16, 24, 32, 48, 64, … 256",
        "  N 16, 32, … 256 alone where b_majorness is MN",
    ]
    (question,) = lines[lines.index("more") + 1 :]
    assert "product" in ask(*question.split()[1:]).splitlines()


def test_show_has_the_layouts_and_the_descriptor_of_a_product() -> None:
    scaled = ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", "--m", "128", "--n", "64", "--atype", "e4m3", "--btype", "e2m1")
    text = ask("show", *scaled, "--all")
    product = ptxmma.instruction(scaled[0], m=128, n=64, atype="e4m3", btype="e2m1")
    assert f"instruction descriptor {ptxmma.descriptors.of_product(product):#010x}, with 0" in text
    assert "  scale-A-tmem: scales_a, scale factors of A\n" in text
    answer = json.loads(ask("show", *scaled, "--json"))
    assert [layout["name"] for layout in answer["tensor_layouts"]] == ["layout_d", "scales_a", "scales_b", "a_full"]
    assert answer["product"]["stype"] == "ue8m0"
    for question in text.splitlines()[text.splitlines().index("more") + 1 :]:
        ask(*question.split()[1:])


def test_show_lists_the_limit_of_m_of_a_shifted_a_alone() -> None:
    assert "  M 128 or 256 alone" in ask("show", "tcgen05.mma.cta_group::1.kind::i8.ashift", "--all").splitlines()
    assert "alone" not in ask("show", "tcgen05.mma.ws.cta_group::1.kind::f16", "--all")


@pytest.mark.parametrize(
    ("qualifiers", "products"),
    [
        ("mxf4.block_scale.scale_vec::2X", ["K 64", "M 128 or 256 with N 16, 32, … 256"]),
        (
            "mxf4.block_scale",
            [
                "K 64",
                "K 96 on sm_103a or sm_107a",
                "K 128 on sm_107f",
                "M 128 or 256 with N 16, 32, … 256 where k is 64",
                "M 256 with N 16, 32, … 256 where k is 128",
                "M 256 with N 16, 32, … 256 where k is 96",
            ],
        ),
    ],
)
def test_sizes_are_listed_for_the_depths_of_the_opcode(catalog: Catalog, qualifiers: str, products: list[str]) -> None:
    opcode = catalog.meaning(f"tcgen05.mma.cta_group::2.kind::{qualifiers}")
    assert opcode is not None
    assert [line for line in in_words(opcode.database.spec, opcode.variant) if line.startswith(("K", "M"))] == products


def test_show_of_a_load_names_the_witnesses_of_its_registers() -> None:
    assert "r in registers (tcgen05_ld_32x32b_xN_r_b32): the same layout in 8 definitions of CuTe" in ask(
        "show", "tcgen05.ld.sync.aligned.32x32b.x32.b32", "--all"
    )


def test_every_opcode_has_a_product_to_show(catalog: Catalog) -> None:
    for opcode in catalog.all(lambda entry: entry.operation == "tensor-multiply"):
        first = next(resolution.every(opcode.database.spec, opcode.variant), None)
        assert first is not None
        product = opcode.resolved(**dict(first.chosen))
        assert in_words(opcode.database.spec, opcode.variant)
        descriptor = describe(product)["instruction_descriptor"]
        assert descriptor is not None
        assert descriptor["bits"] == f"{ptxmma.descriptors.of_product(product):#010x}"


@pytest.mark.parametrize(
    "opcode", ["mma.cta_group::1.kind::f16", "mma.sp.cta_group::2.kind::mxf4nvf4.block_scale.block16", "mma.ws.cta_group::1.kind::i8"]
)
def test_the_commands_that_show_offers_run(opcode: str) -> None:
    def offered(text: str) -> list[str]:
        return re.findall(r"^  ptxmma (.+)$", text, re.M)

    (show,) = offered(ask("show", f"tcgen05.{opcode}", "--all"))
    (whole,) = offered(ask(*shlex.split(show)))
    questions = offered(ask(*shlex.split(whole)))
    assert [question.split()[0] for question in questions] == ["layout", "trace", "descriptor"]
    for question in questions:
        ask(*shlex.split(question))


@pytest.mark.parametrize(
    ("atom", "instruction"),
    [
        ("SM100_TMEM_LOAD_32dp32b32x", "tcgen05.ld.sync.aligned.32x32b.x32.b32"),
        ("cute::SM100_TMEM_STORE_16dp256b1x_16b", "tcgen05.st.sync.aligned.16x256b.x1.unpack::16b.b32"),
        ("SM100::SM100_UTCCP_4x32dp128bit_1cta", "tcgen05.cp.cta_group::1.32x128b.warpx4"),
        ("SM100_MMA_F16BF16_SS<bfloat16_t, bfloat16_t, float, 128, 256, UMMA::Major::K, UMMA::Major::K>", _OPCODE),
        ("SM100_MMA_F16BF16_2x1SM_SS_SPARSE", "tcgen05.mma.sp.cta_group::2.kind::f16"),
        ("SM75_U32x4_LDSM_N", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
    ],
)
def test_atoms_of_cute_name_instructions(atom: str, instruction: str) -> None:
    answer = json.loads(ask("show", atom, "--json"))
    assert answer["instruction"] == instruction
    assert atom.partition("<")[0].rpartition("::")[2] in answer["evidence"]["atoms"]
    assert f"in CuTe: {', '.join(answer['evidence']['atoms'])}" in ask("show", instruction, "--all")


def test_an_atom_of_several_instructions_lists_them() -> None:
    text = ask("show", "SM100_MMA_MXF4_SS", code=2)
    assert "4 instructions are meant; say which: they differ in scale_vec (scale_vec::2X, block32, scale_vec::4X, block16)" in text
    assert "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16" in text
