"""A spec that validates encodes: what a product may have and no descriptor of its own family can say is refused, with both places."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from commands import invoke
from header_programs import run, write_headers
from ptxmma import paths
from ptxmma.catalog.descriptors.lookup import codec_of, of_product
from ptxmma.catalog.instructions import Catalog
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


def _written(folder: Path, last: int, formats: Data | None) -> Path:
    """A folder with an overlay that adds tcgen06.mma, whose N goes up to a number."""
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
        (folder / f"{name}.yaml").write_text(json.dumps(data, indent=1), encoding="utf-8")
    return folder


def _problems(overlay: Path) -> list[str]:
    result = invoke("validate", "--overlay", overlay)
    assert result.exit_code in (0, 1), (result.output, result.exception)
    return result.stderr.splitlines()[:-1] if result.exit_code else []


def test_a_family_has_descriptors_of_its_own(tmp_path: Path) -> None:
    (problem,) = {each.partition(": ")[2] for each in _problems(_written(tmp_path, 512, None)) if "idesc" in each}
    assert problem == "'idesc' is a descriptor, but descriptors has no format of the family 'tcgen06.mma' that describes 'instruction'"


def test_a_size_without_an_encoding_is_refused_with_both_places(tmp_path: Path) -> None:
    (problem,) = _problems(_written(tmp_path, 512, _formats(6)))
    assert re.search(
        r"t6_products.yaml:\d+:\d+: an instruction descriptor cannot say what this rule allows: n = 512 has no encoding", problem
    )
    assert re.search(r"allowed: multiples of 8 from 0 to 504; see also .*t6_descriptors.yaml:\d+:\d+$", problem)
    assert not _problems(_written(tmp_path, 504, _formats(6)))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The spec with tcgen06.mma, whose format has room for N = 512."""
    return pipeline.read(paths.SPEC, _written(tmp_path_factory.mktemp("sound"), 512, _formats(7)))


def test_a_family_is_encoded_by_its_own_format(sound: Catalog) -> None:
    opcode = sound.find("tcgen06.mma.cta_group::1.kind::f16")
    product = opcode.resolved(m=128, n=512, dtype="f32", atype="bf16", btype="bf16")
    assert of_product(product) >> 17 & 0x7F == 64
    assert codec_of(product).format.family == "tcgen06"
    assert codec_of(sound.find("tcgen05.mma.cta_group::1.kind::f16")).format.family == "tcgen05"


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


def test_two_families_of_products_go_together_in_cpp(sound: Catalog, cxx: str, tmp_path: Path) -> None:
    include = write_headers(sound, tmp_path / "out")
    source = _BESIDE
    for name, family, n in (("NEW", 6, 512), ("OLD", 5, 256)):
        opcode = sound.find(f"tcgen0{family}.mma.cta_group::1.kind::f16")
        bits = of_product(opcode.resolved(m=128, n=n, dtype="f32", atype="bf16", btype="bf16"))
        source = source.replace(name, f"{bits:#x}u")
    (tmp_path / "beside.cpp").write_text(source, encoding="utf-8")
    run(cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{include}", tmp_path / "beside.cpp")


def test_the_place_that_an_author_wrote_is_named_first(tmp_path: Path) -> None:
    text = (paths.SPEC / "descriptors.yaml").read_text(encoding="utf-8")
    assert '"128B_ATOM_32B": 1, ' in text
    (tmp_path / "descriptors.yaml").write_text(text.replace('"128B_ATOM_32B": 1, ', ""), encoding="utf-8")
    said = r"descriptors.yaml:\d+:\d+: matrix descriptors of 'tcgen05' cannot say swizzle '128B_ATOM_32B'; .*shared_memory.yaml:\d+"
    assert any(re.search(said, problem) for problem in _problems(tmp_path))
