"""A spec that validates encodes: what a product may have and no descriptor of its own family can say is refused, with both places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import ptxmma
from header_programs import run, write_headers
from ptxmma import paths
from ptxmma.catalog.descriptors.lookup import codec_of, of_product
from ptxmma.cli import main
from ptxmma.generator import pipeline

Data = dict[str, Any]

_SYNTAX = {
    "kind": "instruction", "name": "tcgen06.mma", "family": "tcgen06.mma", "title": "Multiply", "stem": "tcgen06_mma", "scope": "thread",
    "operation": "tensor-multiply", "asynchronous": True, "memory": True, "source": "1",
    "syntax": "tcgen06.mma.{cta_group}.{kind}",
    "qualifiers": {"cta_group": {"title": "thread blocks"}, "kind": {"title": "types"}},
    "extents": {"cta_group": {"cta_group::1": {"ctas": 1}}},
    "operand_kinds": {
        "d-tmem": {"kind": "tensor-accumulator", "title": "D", "of": "d", "source": "1"},
        "a-desc": {"kind": "shared-descriptor", "title": "A", "of": "a", "source": "1"},
        "b-desc": {"kind": "shared-descriptor", "title": "B", "of": "b", "source": "1"},
        "idesc": {"kind": "instruction-descriptor", "title": "product", "source": "1"},
        "enable-input-d": {"kind": "predicate", "title": "adds D", "source": "1"},
    },
    "operands": "[d-tmem], a-desc, b-desc, idesc, enable-input-d",
    "forms": [{"cta_group": "cta_group::1", "kind": "kind::f16", "source": "1"}],
    "requires": [{"ptx": "8.6", "targets": ["sm_100f"], "source": "1"}],
}  # fmt: skip
_REGISTERS = {"b32": ["d-tmem", "idesc"], "b64": ["a-desc", "b-desc"], "pred": ["enable-input-d"]}


def _read(name: str) -> Data:
    data: Data = yaml.safe_load((paths.SPEC / name).read_text(encoding="utf-8"))
    return data


def _formats(width: int) -> Data:
    """The formats of tcgen05 for tcgen06, with so many bits for N."""
    real = {each["name"]: each for each in _read("descriptors.yaml")["descriptors"]}
    matrix, product = real["tcgen05_descriptor"], real["tcgen05_instruction"]
    product |= {"name": "tcgen06_instruction", "family": "tcgen06", "kinds": ["kind::f16"]}
    for field in product["fields"]:
        field["width"] = width if field["name"] == "n" else field["width"]
        cases = [case for case in field.pop("cases", ()) if "kind::f16" in case.get("when", {}).get("kind", "kind::f16")]
        field |= {"cases": [case | {"when": case["when"] | {"kind": "kind::f16"}} if "when" in case else case for case in cases]}
    return {"kind": "descriptors", "descriptors": [matrix | {"name": "tcgen06_descriptor", "family": "tcgen06"}, product]}


@pytest.fixture
def overlay(tmp_path: Path) -> Callable[..., Path]:
    """Writes an overlay with tcgen06.mma, whose N goes up to a number."""

    def write(last: int, formats: Data | None) -> Path:
        of = {"name": "tcgen06.mma"}
        rules = {
            "kind": "tensor_products",
            "types": [{"of": of, "dtype": ["f16"], "atype": ["bf16"], "btype": ["bf16"], "source": "1"}],
            "depths": [{"of": of, "k": 16, "source": "1"}],
            "shapes": [{"of": of, "m": [128], "n": [{"first": 8, "last": last, "step": 8}], "source": "1"}],
        }
        carriers = [
            {"operands": names, "elements": [], "when": {"family": "tcgen06.mma"}, "registers": [register], "source": "1"}
            for register, names in _REGISTERS.items()
        ]
        protocol = {"title": "tcgen06", "families": ["tcgen06.mma"], "source": "1"}
        order = {"kind": "protocol", "protocols": [protocol | {part: [] for part in ("definitions", "steps", "orderings", "proxies")}]}
        documents = {"t6_products": rules, "t6_types": {"kind": "types", "carriers": carriers}, "t6": _SYNTAX, "t6_order": order}
        for name, data in (documents | ({"t6_descriptors": formats} if formats else {})).items():
            (tmp_path / f"{name}.yaml").write_text(json.dumps(data, indent=1), encoding="utf-8")
        return tmp_path

    return write


def _problems(overlay: Path) -> list[str]:
    result = CliRunner().invoke(main, ["validate", "--overlay", str(overlay)])
    assert result.exit_code in (0, 1), (result.output, result.exception)
    return result.stderr.splitlines()[:-1] if result.exit_code else []


def test_a_family_has_descriptors_of_its_own(overlay: Callable[..., Path]) -> None:
    (problem,) = {each.partition(": ")[2] for each in _problems(overlay(512, None)) if "idesc" in each}
    assert problem == "'idesc' is a descriptor, but descriptors has no format of the family 'tcgen06.mma' that describes 'instruction'"


def test_a_size_without_an_encoding_is_refused_with_both_places(overlay: Callable[..., Path]) -> None:
    (problem,) = _problems(overlay(512, _formats(6)))
    assert re.search(
        r"t6_products.yaml:\d+:\d+: an instruction descriptor cannot say what this rule allows: n = 512 has no encoding", problem
    )
    assert re.search(r"allowed: multiples of 8 from 0 to 504; see also .*t6_descriptors.yaml:\d+:\d+$", problem)
    assert not _problems(overlay(504, _formats(6)))


def test_a_family_is_encoded_by_its_own_format(overlay: Callable[..., Path]) -> None:
    database = pipeline.read(paths.SPEC, overlay(512, _formats(7))).database
    opcode = ptxmma.instruction("tcgen06.mma.cta_group::1.kind::f16", database=database)
    product = opcode.resolved(m=128, n=512, dtype="f32", atype="bf16", btype="bf16")
    assert of_product(product) >> 17 & 0x7F == 64
    assert codec_of(product).format.family == "tcgen06"
    assert codec_of(ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", database=database)).format.family == "tcgen05"


_BESIDE = """
#include <ptxmma/cuda/tcgen05_mma_product.cuh>
#include <ptxmma/cuda/tcgen06_mma_product.cuh>
#include <ptxmma/cuda/tensor_moves.cuh>
using namespace ptxmma;
using New = tcgen06_mma<shape<128, 512>, PTXMMA_TCGEN06_KIND_F16, f32, bf16, bf16>;
using Old = tcgen05_mma<shape<128, 256>, PTXMMA_TCGEN05_KIND_F16, f32, bf16, bf16>;
static_assert(New::instruction<>() == NEW && (New::instruction<>() >> 17 & 0x7f) == 64, "N = 512");
static_assert(Old::instruction<>() == OLD, "N = 256");
static_assert(New::d(5, 300).lane == 5 && New::d(5, 300).column == 300 && New::d_col(0, 5, 300) == 300, "");
static_assert(accumulator_part<New, 64>::col(37, 3, 256) == 259 && accumulator_part<Old, 64>::row(37, 3) == 37, "");
"""


def test_two_families_of_products_go_together_in_cpp(overlay: Callable[..., Path], cxx: str, tmp_path: Path) -> None:
    entries = pipeline.read(paths.SPEC, overlay(512, _formats(7)))
    include = write_headers(entries, tmp_path / "out")
    source = _BESIDE
    for name, family, n in (("NEW", 6, 512), ("OLD", 5, 256)):
        opcode = ptxmma.instruction(f"tcgen0{family}.mma.cta_group::1.kind::f16", database=entries.database)
        bits = of_product(opcode.resolved(m=128, n=n, dtype="f32", atype="bf16", btype="bf16"))
        source = source.replace(name, f"{bits:#x}u")
    (tmp_path / "beside.cpp").write_text(source, encoding="utf-8")
    run(cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{include}", tmp_path / "beside.cpp")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "descriptors.yaml", '"128": 1, "64": 2, "32": 4}', '"128": 1, "64": 2}',
            r"descriptors.yaml:\d+:\d+: a mask of columns .* it has parts for M of 128, 64, not of 32; see also .*products.yaml:\d+",
        ),
        (
            "descriptors.yaml", '"128B_ATOM_32B": 1, ', "",
            r"descriptors.yaml:\d+:\d+: matrix descriptors of 'tcgen05' cannot say swizzle '128B_ATOM_32B'; .*shared_memory.yaml:\d+",
        ),
        (
            "descriptors.yaml", 'values: {"MN": 1}, source: "9.7.16.10.1, Table 51"}', 'values: {"K": 0}, source: "9.7.16.10.1, Table 51"}',
            r"descriptors.yaml:\d+:\d+: an instruction descriptor cannot say .*: a_majorness = MN is not legal.*shared_memory.yaml:\d+",
        ),
        (
            "descriptors.yaml", '{values: {"0": 0, "2": 2}}', '{values: {"0": 0}}',
            r"descriptors.yaml:\d+:\d+: an instruction descriptor cannot say .*: scale_b_id = 2 is not legal.*tensor_memory.yaml:\d+",
        ),
        (
            "descriptors.yaml", '"sm_100a", "sm_101a", "sm_103a", "sm_110a"', '"sm_100a", "sm_103a", "sm_110a"',
            r"descriptors.yaml:\d+:\d+: an instruction descriptor cannot say .*: sparsity_version .*; see also .*tensor_products.yaml:\d+",
        ),
        (
            "descriptors.yaml", 'name: "btype"', 'name: "other"',
            r"descriptors.yaml:\d+:\d+: an instruction descriptor has no field that says btype, of which tcgen05.*_products.yaml:\d+",
        ),
        (
            "instructions/tcgen05_mma.yaml", 'count: "4 * ctas"', 'count: "2 * ctas"',
            r"tcgen05_mma.yaml:\d+:\d+: 'disable-output-lane' of tcgen05.mma.* has 64 bits; D lies in 128 lanes",
        ),
        (
            "spaces.yaml", "address: {column: 0, lane: 16}", "address: {column: 0, lane: 9}",
            r"spaces.yaml:\d+:\d+: addresses have 9 bits for the column, which reach 512 of them; there are 576",
        ),
        (
            "shared_memory.yaml", 'when: "by_all and value == 0"', 'when: "by_all and length == 0"',
            r"shared_memory.yaml:\d+:\d+: unknown name 'length' \(known here: alignment, along_k, base_offset, by_all, end",
        ),
        (
            "shared_memory.yaml", "a base offset of {base_offset}, but nothing", "{name}: a base offset of {base_offset}, but nothing",
            r"shared_memory.yaml:\d+:\d+: unknown name 'name'",
        ),
        (
            "shared_memory.yaml", "(x // 8) * sbo + (x % 8) * 16 + (k // 16) * lbo", "(x // 8) * sbo + (x % 8) * 8 + (k // 16) * lbo",
            r"shared_memory.yaml:\d+:\d+: K-major: swizzle none: two places of the operand share one: x moves byte by 8",
        ),
    ],
)  # fmt: skip
def test_what_a_spec_says_of_memory_holds(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    text = (paths.SPEC / name).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
    problems = _problems(tmp_path)
    assert [problem for problem in problems if re.search(message, problem)], problems
