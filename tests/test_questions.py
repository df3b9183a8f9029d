"""People's words: every question of ``questions.yaml`` has its answer, in Python and at the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import ptxmma
from commands import invoke
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.instructions.user_names import target_named, types_named
from ptxmma.cli import VERBS

#: Questions with their answers, of each kind.
QUESTIONS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("questions.yaml").read_text(encoding="utf-8"))


def _command(*arguments: str) -> tuple[int, str, str]:
    """The exit code, the answer and the messages of a command."""
    result = invoke(*arguments)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(("words", "answer"), QUESTIONS["instructions"].items())
def test_words_mean_an_instruction(words: str, answer: str) -> None:
    assert ptxmma.instruction(words).canonical == answer


def test_the_command_takes_the_same_words() -> None:
    """Words are one argument or several; what else matches is said beside the answer."""
    for words, answer in [pair for pair in QUESTIONS["instructions"].items() if " " in pair[0]][::7]:
        code, answered, said = _command("show", *words.split(), "--json")
        assert (code, json.loads(answered)["instruction"]) == (0, answer), words
        assert said == "" or said.startswith(f"{answer} is taken"), words
    _, _, said = _command("layout", "m16n8k8 tf32", "--operand", "a", "--lane", "5")
    assert said == (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 is taken (dense before sparse); also: "
        "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32, mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32\n"
    )
    assert _command("trace", "m16n8k8", "tf32", "--row", "9", "--col", "3")[0] == 0
    assert _command("list", "m16n8k8", "tf32")[1].count("tf32.tf32") == 3


@pytest.mark.parametrize(("words", "arguments"), QUESTIONS["products"].items())
def test_words_say_products(words: str, arguments: dict[str, str | int]) -> None:
    product = ptxmma.instruction(words)
    assert dict(product.variant.chosen) == arguments
    assert ptxmma.instruction(words, n=64).extents["n"] == 64  # an argument counts more


def test_an_operand_in_tensor_memory_has_short_names() -> None:
    names = {"D": "d-tmem", "d": "d-tmem", "scale-a": "scale-A-tmem", "a": "a-tmem"}
    scaled = ptxmma.instruction("umma nvfp4")
    assert {name: scaled.operand(name).name for name in names} == names
    assert ptxmma.instruction("umma sparse f16").operand("metadata").name == "sp-meta-tmem"
    with pytest.raises(KeyError, match=r"has no operand .scale.; it has d-tmem, "):
        scaled.operand("scale")  # of A, or of B


@pytest.mark.parametrize(("words", "facts"), QUESTIONS["several"].items())
def test_words_of_several_instructions_say_what_separates_them(words: str, facts: list[str]) -> None:
    with pytest.raises(ptxmma.AmbiguousInstruction) as caught:
        ptxmma.instruction(words)
    assert [*caught.value.differences] == facts
    assert all(len(values) > 1 for values in caught.value.differences.values())
    assert caught.value.close == [each.canonical for each in caught.value.instructions[: len(caught.value.close)]] != []


@pytest.mark.parametrize(("words", "reason"), QUESTIONS["none"].items())
def test_words_of_no_instruction_name_the_one_at_fault(words: str, reason: str) -> None:
    with pytest.raises(ptxmma.UnknownInstruction) as caught:
        ptxmma.instruction(words)
    assert caught.value.reason == reason
    assert caught.value.close


def test_names_of_gpus_mean_their_targets(catalog: Catalog) -> None:
    spec = catalog.database.spec
    assert {name: target_named(spec, name) for name in QUESTIONS["targets"]} == QUESTIONS["targets"]
    for name in QUESTIONS["older"]:
        with pytest.raises(ValueError, match=f"^'{name}' has no tensor cores; the first target with matrix instructions is sm_70$"):
            target_named(spec, name)


def test_names_mean_operands() -> None:
    for words, names in QUESTIONS["operands"].items():
        instruction = ptxmma.instruction(words)
        assert {name: instruction.operand(name).name for name in names} == names, words


def test_formats_of_blocks_select_their_products() -> None:
    for name, kind in (("nvfp4", "kind::mxf4nvf4"), ("MXFP8", "kind::mxf8f6f4")):
        kinds = {each.qualifiers["kind"] for each in ptxmma.instructions(type=name)}
        assert kinds == {each.qualifiers["kind"] for each in ptxmma.instructions(atype=name)} == {kind}


def test_names_of_swizzles_mean_modes() -> None:
    for name, mode in QUESTIONS["swizzles"].items():
        layout = ptxmma.shared_memory.SharedLayout("bf16", "K", name, 64, 64)
        assert (layout.swizzle, layout) == (mode, ptxmma.shared_memory.SharedLayout("bf16", "K", mode, 64, 64))
    tile = ptxmma.TensorMap(
        "bf16", (4096, 4096), box=(64, 128), swizzle="CU_TENSOR_MAP_SWIZZLE_128B", interleave="CU_TENSOR_MAP_INTERLEAVE_NONE"
    )
    assert (tile.swizzle, tile.interleave) == ("128B", "none")


def test_names_of_types_mean_element_types(catalog: Catalog) -> None:
    assert [*ptxmma.instructions(atype="torch.float16")] == [*ptxmma.instructions(atype="f16")] != []
    assert ptxmma.TensorMap("CUDA_R_16BF", (64, 64), box=(64, 64)).data_type == "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"
    assert {name: [*types_named(catalog.database.spec, name)] for name in QUESTIONS["types"]} == QUESTIONS["types"]


@pytest.mark.parametrize(("asked", "row"), QUESTIONS["commands"].items())
def test_commands_answer(asked: str, row: str) -> None:
    code, answer, _ = _command(*asked.split())
    assert code in (0, 1)  # 1: something in the descriptor is suspicious
    assert row in " ".join(answer.split())


def test_commands_of_topics_answer(catalog: Catalog) -> None:
    """Each topic is explained by each of its names, and each of its commands says something."""
    for topic in catalog.database.spec.topics:
        for name in topic.names:
            code, answer, said = _command(*(("explain",) if name in VERBS else ()), *name.split())
            assert (code, topic.text in " ".join(answer.split())) == (0, True), (name, said)
        for command in topic.commands:
            code, _, said = _command(*command.split()[1:])
            assert code in (0, 1), (command, said)


def test_each_code_that_is_listed_is_explained(catalog: Catalog) -> None:
    for message in catalog.database.spec.messages:
        code, answer, _ = _command("explain", message.code, "--json")
        assert (code, json.loads(answer)["text"]) == (0, message.text)


def test_the_first_meaning_of_a_word_is_taken_without_a_reason() -> None:
    _, _, said = _command("m16n8k64", "nvfp4")
    assert ".ue4m3 is taken; also: mma." in said


def test_words_without_a_verb_may_be_none() -> None:
    for words, message in (
        ("lits", "unknown command 'lits'; closest: list, lsp, validate"),
        ("chek kernel.ptx", "unknown command 'chek kernel.ptx'"),
        ("ldmatirx", "is 'ldmatrix' meant?"),
        ("tcgen5.mma f16", "is 'tcgen05.mma f16' meant?"),
        ("hoper", "is 'hopper' meant?"),
        ("m16n8k16 bfloat", "no instruction has bfloat (is bfloat16 meant?); closest:"),
        ("which colour has tcgen05.mma", "no instruction has colour; closest:"),
        ("the " * 1000, "the question has 4,000 characters; at most 3,000 are read"),
        ("MI300", "unknown command 'MI300', nor is it an instruction"),
        ("sm_90b", "unknown target 'sm_90b'; closest: sm_90, sm_90a"),
        ("m16n8k8 tf32 B[4][2] lane 7", "no element lies there and has this place"),
        ("smallest PTX version for wgmma fp8", "all are accepted by sm_90a, from PTX ISA 8.0 on"),
        ("frobnicate A[1][2][3]", "'frobnicate' is not covered"),
        ("r[1][3][2]", "r: name its instruction, too"),
        ("a", "'a' is an operand: name its instruction, too"),
        ("sm_61", "'sm_61' has no tensor cores"),
        ("wgmma n256 f16 latency", "no instruction has latency; closest:"),
        ("setmaxnreg 232", "no instruction has 232; closest:"),
        ("m16n8k16 A[1][2][3]", "A has the axes row, col: give a number for each, A[0][0]"),
        ("H100 longer", "unknown command 'H100 longer'"),
        ("sm_120 wgmma", "sm_120 accepts no instruction with wgmma; accepted by sm_90a"),
        ("hopper vs blackwell", "'blackwell' may be one of several targets"),
        ("CU_TENSOR_MAP_INTERLEAVE_32B", "unknown command 'CU_TENSOR_MAP_INTERLEAVE_32B'"),
        ("cvt.rn.bf16x2.f32", "'cvt' is not covered"),
        ("m16n8k16 blackwell", "'blackwell' may be one of several targets"),
        ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", "'.row' where the closest has '.col'; closest:"),
    ):
        code, _, said = _command(words)
        assert (code, message in said) == (2, True)
