"""The JavaScript package says what the library says: every layout, instruction, notation and text, asked of node."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import json
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import invoke
from layout_functions import questions
from ptxmma import sparse
from ptxmma.catalog import layouts
from ptxmma.catalog.conversion import Conversion, convert
from ptxmma.catalog.conversion.exchanges import TEXTS
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.shared_formats import matrix_formats
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.layouts.expressions import both_ways
from ptxmma.catalog.names import links
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.products import resolution
from ptxmma.check import Checker
from ptxmma.generator.emit import index_functions, javascript, python_layouts
from ptxmma.generator.emit.javascript.bundle import bundled
from ptxmma.generator.emit.javascript.shortening import packed, template
from ptxmma.matrices.arrangements import arrangement, names
from ptxmma.matrices.descriptors import suspicions
from ptxmma.matrices.shared.accesses import access_patterns
from ptxmma.matrices.shared.readable_types import readable
from ptxmma.matrices.shared_memory import SharedLayout
from test_questions import QUESTIONS

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

#: Asks the package a list of questions; each is a dict with the name of the question under ``ask``.
Ask = Callable[[list[dict[str, Any]]], list[Any]]

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


def _write(catalog: Catalog, folder: Path) -> Path:
    for output in javascript.emit(catalog):
        (folder / Path(output.path).name).write_text(output.text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def package(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(catalog, tmp_path_factory.mktemp("javascript"))


def _asked(package: Path, questions: list[dict[str, Any]]) -> list[Any]:
    script = Path(__file__).parent / "javascript" / "answers.mjs"
    command = [str(NODE), str(script), str(package)]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


@pytest.fixture(scope="module")
def ask(package: Path) -> Ask:
    return functools.partial(_asked, package)


def _representatives(catalog: Catalog) -> list[Instruction]:
    """Of every form, the first and the last of those that differ in N alone; of all that share operands one pair."""
    groups: dict[tuple[object, ...], list[Instruction]] = {}
    for instruction in catalog.all():
        variant = instruction.variant
        operands = [id(operand) for operand in instruction.operands if operand.layout is not None]
        key = (variant.facts["name"], variant.shape_label, *(() if variant.ranging else operands))
        groups.setdefault(key, []).append(instruction)
    return [instruction for group in groups.values() for instruction in {id(each): each for each in (group[0], group[-1])}.values()]


# --- layouts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["catalog", "odd"])
def test_functions_equal_the_model(spec: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Every function of layouts, in every space, at points that are spread over its domain: Python's are asked for all."""
    catalog: Catalog = request.getfixturevalue(spec)
    package = _write(catalog, tmp_path)
    texts = "".join(path.read_text(encoding="utf-8") for path in package.glob("*.js"))
    listed = dict(re.findall(r"^export function (\w+)\(([a-z_0-9, =]*)\)", texts, re.MULTILINE))
    known = [each.spread(512) for each in questions(catalog) if each.in_javascript]
    asked = []
    for question in known:
        parameters = [parameter.partition("=")[0].strip() for parameter in listed[question.in_javascript].split(",")]
        points = np.stack([question.arguments[name] for name in parameters], axis=1).tolist()
        asked.append({"ask": "function", "name": question.in_javascript, "points": points})
    for question, answer in zip(known, _asked(package, asked), strict=True):
        wanted = np.stack([*question.results.values()], axis=1)
        assert np.array_equal(np.reshape(answer, wanted.shape), wanted), question.name


def test_every_function_of_python_is_there(catalog: Catalog, ask: Ask) -> None:
    (names,) = ask([{"ask": "functions"}])
    assert sorted(names) == sorted(function.name for _, functions in index_functions.functions(catalog) for function in functions)


def test_what_is_left_out_is_zero(ask: Ask) -> None:
    name = "mma_sp_m16n8k16_metadata_b16"
    short, full = ask([{"ask": "function", "name": name, "points": [[3, 1]]}, {"ask": "function", "name": name, "points": [[3, 1, 0]]}])
    assert short == full


def test_texts_of_functions_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    """Python's are those of ``ptxmma_layouts``; C's have the expressions of the bit maps."""
    written = {Path(output.path).name: output.text for output in python_layouts.emit(catalog)}
    text = re.sub(r'    """.*?"""\n', "", "".join(written.values()), flags=re.DOTALL)
    theirs = dict(re.findall(r"^def (\w+)(\(.*?\):\n(?:    .*\n)+)", text, re.MULTILINE))
    (answers,) = ask([{"ask": "indexFunctions"}])
    for layout, (in_c, in_python) in zip(catalog.database.layouts, answers, strict=True):
        texts = re.findall(r"^def (\w+)(\(.*?\):\n(?:    .*\n)+)", in_python, re.MULTILINE)
        assert [name for name, _ in texts] == [layout.name, f"{layout.name}_inverse"]
        assert all(theirs[name] == body for name, body in texts)
        expressions = {name: expression for way in both_ways(layout) for name, expression in way.items()}
        functions = dict(re.findall(rf"uint32_t {layout.name}_(\w+)\(.*?\) {{\n  return (.*);", in_c))
        assert {name: "0" if expression.endswith(" & 0") else expression for name, expression in functions.items()} == expressions


# --- instructions -----------------------------------------------------------------------------------------------------------


def _legal_fields(instruction: Instruction) -> list[str] | None:
    """The fields of metadata that an instruction admits: of metadata in tensor memory those of the pattern."""
    if instruction.variant.instruction.metadata:
        return list(instruction.metadata.legal)
    pattern = layouts.granularity(instruction.database.spec, instruction.variant)
    return None if pattern is None else list(pattern.legal)


def test_instructions_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    (answers,) = ask([{"ask": "instructions"}])
    for answer, instruction in zip(answers, catalog.all(), strict=True):
        assert answer == {
            "canonical": instruction.canonical,
            "identifier": instruction.identifier,
            "extents": instruction.extents,
            "documented": instruction.documented,
            "accepted": {target: str(version) for target, version in instruction.accepted_by().items()},
            "header": answer["header"],
            "peers": list(instruction.evidence.peers),
            "source": instruction.variant.form.source,
            "page": links.page(instruction),
            "forms": [
                {"name": form.name, "syntax": form.syntax, "operands": [operand.name for operand in form.operands]}
                for form in instruction.forms
            ],
            "legal": _legal_fields(instruction),
        }


def test_headers_have_the_functions(ask: Ask, root: Path) -> None:
    (answers,) = ask([{"ask": "instructions"}])
    texts: dict[str, set[str]] = {}
    for answer in answers:
        header = answer["header"]
        if header not in texts:
            texts[header] = set(re.findall(r"\w+", (root / "generated" / "include" / "ptxmma" / header).read_text(encoding="utf-8")))
        assert answer["identifier"] in texts[header], answer["canonical"]


def test_operands_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    shown = _representatives(catalog)
    answers = ask([{"ask": "operands", "spelling": instruction.canonical} for instruction in shown])
    for instruction, answer in zip(shown, answers, strict=True):
        ours = instruction.operands
        for operand, theirs in zip(ours, answer, strict=True):
            expected = {
                "name": operand.name, "kind": operand.kind, "title": operand.title, "of": operand.of, "access": operand.access,
                "type": operand.element_type or "", "bits": operand.bits, "shift": operand.shift, "elements": operand.elements,
                "registers": operand.registers, "constraint": operand.constraint, "meanings": operand.meanings, "default": operand.default,
                "immediateOnly": not operand.takes_register, "single": operand.single,
                "braced": operand.braced, "sparse": operand.sparsity is not None,
                "register": operand.register_types[0] if operand.register_types else "", "cType": operand.c_type,
                "rowBytes": operand.row_bytes, "alignment": operand.alignment, "layout": operand.layout.name if operand.layout else "",
                "sizes": operand.sizes if operand.layout else {},  # of layouts in registers; those in tensor memory are functions only
            }  # fmt: skip
            assert {key: theirs[key] for key in expected} == expected, (instruction.canonical, operand.name)
            legal = theirs["immediates"]
            assert (legal is None) == (operand.immediates is None)
            if operand.immediates is not None:
                assert (legal["first"], legal["last"]) == (operand.immediates[0], operand.immediates[-1])
                assert not legal["values"] or legal["values"] == list(operand.immediates)


def test_spellings_mean_what_assemblers_take(catalog: Catalog, ask: Ask) -> None:
    """Canonical ones, their tokens in another order, and what names no instruction."""
    shuffled = random.Random(3)
    spellings = []
    for instruction in _representatives(catalog):
        head, *rest = instruction.canonical.split(".")
        other = shuffled.sample(rest, len(rest))
        left_out = [token for token in rest if token != shuffled.choice(rest)]
        spellings += [instruction.canonical, ".".join([head, *other]), ".".join([head, *left_out])]
    (meanings,) = ask([{"ask": "meaning", "spellings": spellings}])
    meant = [catalog.meaning(spelling) for spelling in spellings]
    assert meanings == [None if instruction is None else instruction.canonical for instruction in meant]
    assert None in meanings


def test_hints_follow_the_instructions_that_take_them(catalog: Catalog, ask: Ask) -> None:
    """A hint is not a row: the instruction is that without it, and none where it does not take the hint."""
    asked = {}
    for instruction in catalog.of("tcgen05.mma")[:12] + catalog.of("tcgen05.mma.ws")[:2]:
        taken = {value for _, values in instruction.possible_hints() for value in values}
        for hint in (hint for entry in ("tcgen05.mma", "tcgen05.mma.ws") for hint in catalog.of(entry)[0].variant.instruction.hints):
            for value in hint.values:
                asked[f"{instruction.canonical}.{value}"] = instruction.canonical if value in taken else None
    (meanings,) = ask([{"ask": "meaning", "spellings": list(asked)}])
    assert meanings == list(asked.values())
    assert {*asked.values()} > {None}
    both = "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill.collector::a::use"
    assert ask([{"ask": "meaning", "spellings": [both]}]) == [[None]]


# --- tensor memory ----------------------------------------------------------------------------------------------------------


def _opcodes(catalog: Catalog) -> list[Instruction]:
    """Products of which no two differ in nothing that rules test."""
    tested = ("name", "cta_group", "kind", "scale_vec", "ashift", "decompress")
    known: dict[tuple[object, ...], Instruction] = {}
    for instruction in catalog.all(lambda entry: entry.operation == resolution.OPERATION):
        known.setdefault(tuple(instruction.variant.facts.get(name) for name in tested), instruction)
    return list(known.values())


def _in_tensor_memory(instruction: Instruction) -> dict[str, Operand]:
    """The operands of an instruction in tensor memory, by the names that JavaScript gives them."""
    named = {"tensor-metadata": "metadata", "tensor-copy": "copy"}
    operands = (operand for operand in instruction.operands if operand.memory is not None)
    return {
        f"scale-{operand.of}" if operand.kind == "tensor-scales" else named.get(operand.kind, operand.of): operand for operand in operands
    }


def test_products_are_those_of_the_rules(catalog: Catalog, ask: Ask) -> None:
    """Types, sizes and scale factors that the page offers are all that the rules allow."""
    opcodes = _opcodes(catalog)
    answers = ask([{"ask": "products", "spelling": opcode.canonical} for opcode in opcodes if _types(catalog, opcode)])
    asked = (opcode for opcode in opcodes if _types(catalog, opcode))
    for opcode, products in zip(asked, answers, strict=True):
        theirs = {tuple(sorted(product.items())) for product in products}
        assert theirs == {
            tuple(sorted(product.choice.values.items())) for product in resolution.every(catalog.database.spec, opcode.variant)
        }
        assert len(theirs) == len(products), opcode.canonical


def _types(catalog: Catalog, opcode: Instruction) -> bool:
    """Whether rules say what an opcode may choose."""
    return bool(resolution.types(catalog.database.spec, opcode.variant)["dtype"])


def _products(catalog: Catalog) -> Iterator[tuple[Instruction, dict[str, Any], Instruction]]:
    """Copies, and products with an operand whose layout and chunk few before have: the opcode, what it chooses, and both."""
    drawn = random.Random(15)
    counts: Counter[tuple[str, int]] = Counter()
    for instruction in catalog.of("tcgen05.cp"):
        yield instruction, {}, instruction
    for opcode in _opcodes(catalog):
        products = [product.choice.values for product in resolution.every(catalog.database.spec, opcode.variant)]
        for m, least in itertools.product(sorted({int(product["m"]) for product in products}), (8, 64)):
            product = drawn.choice([product for product in products if product["m"] == m and least <= int(product["n"]) <= 64])
            instruction = opcode.resolved(**product)
            placed = (operand.tensor for operand in _in_tensor_memory(instruction).values())
            laid = [(one.layout.name, one.numbers.get("chunk_size", 0)) if one else ("", 0) for one in placed]
            if any(counts[layout] < 2 for layout in laid):
                counts.update(laid)
                yield opcode, product, instruction


def test_places_in_tensor_memory_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    """Every place of every operand of some products of every opcode, the way back, and the registers of a load."""
    load = "tcgen05.ld.sync.aligned.16x64b.x2.b32"
    questions, known, seen = [], [], set()
    for opcode, product, instruction in _products(catalog):
        for name, operand in _in_tensor_memory(instruction).items():
            selected: dict[str, Any] = {key: values[-1] for key, values in operand.tensor.selections.items()} if operand.tensor else {}
            base = {"lane": operand.tensor.layout.align[-1] if operand.tensor else 0, "column": 32}
            about = {"spelling": opcode.canonical, "product": product, "operand": name, "selected": selected, "load": load, "base": base}
            questions.append({"ask": "tensor", **about})
            known.append((operand, selected, base["lane"] << 16 | base["column"]))
    transfer = catalog.find(load)
    for question, (operand, selected, address), answer in zip(questions, known, ask(questions), strict=True):
        if operand.tensor is None:
            assert answer is None, question
            continue
        placed = operand.tensor
        seen.add(placed.layout.name)
        assert answer["back"], question
        assert (answer["layout"], answer["sizes"], answer["columns"], answer["unit"]) == (
            placed.layout.name, placed.sizes, placed.columns, placed.unit,
        )  # fmt: skip
        assert answer["selections"] == {name: list(values) for name, values in placed.selections.items()}
        points = {axis: grid.ravel() for axis, grid in zip(placed.sizes, np.indices([*placed.sizes.values()]), strict=True)}
        there = np.stack(np.broadcast_arrays(*placed.locate(**points, **selected)), axis=-1)
        assert np.array_equal(answer["places"], there), question
        if operand.kind != "tensor-copy":
            registers = operand.through(transfer).locate(**points, **selected, base=address)
            assert np.array_equal(answer["registers"], np.stack(np.broadcast_arrays(*registers), axis=-1)), question
        functions: dict[str, Any] = {}
        exec(answer["python"], functions)
        ours = getattr(importlib.import_module("ptxmma_layouts.tensor_memory"), placed.layout.name)
        given = {name: placed.numbers[name] for name in ("n", "bits") if name in inspect.signature(ours).parameters}
        assert inspect.signature(ours).parameters.keys() == inspect.signature(functions[placed.layout.name]).parameters.keys()
        results = functions[placed.layout.name](**points, **given, **selected)
        assert all(np.array_equal(one, other) for one, other in zip(results, ours(**points, **given, **selected), strict=True))
        assert all(f"uint32_t {placed.layout.name}_{name}(" in answer["c"] for name in (*placed.layout.at, *placed.layout.back))
    assert seen == {layout.name for layout in catalog.database.spec.tensor_layouts}


def test_loads_take_whole_elements(catalog: Catalog, ask: Ask) -> None:
    """Those that the page offers are those that the library composes, as far as they do not reach behind the operand."""
    for dtype, types in (("f32", "bf16"), ("f16", "f16")):
        product: dict[str, Any] = {"m": 128, "n": 32, "dtype": dtype, "atype": types, "btype": types}
        opcode = catalog.find("tcgen05.mma.cta_group::1.kind::f16")
        operand = _in_tensor_memory(opcode.resolved(**product))["d"]
        expected = []
        for load in catalog.of("tcgen05.ld"):
            try:
                fragment = operand.through(load)
            except ValueError:
                continue
            if fragment.registers.cols <= 32:
                expected.append(load.canonical)
        assert ask([{"ask": "loads", "spelling": opcode.canonical, "product": product, "operand": "d"}]) == [expected]


# --- pictures ---------------------------------------------------------------------------------------------------------------


def test_places_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    """Every element of every matrix of the representatives, forward and back."""
    shown: dict[tuple[object, ...], tuple[Instruction, str]] = {}
    for instruction in _representatives(catalog):
        for name in names(instruction):
            operand = arrangement(instruction, name).operand
            key = (
                operand.layout and operand.layout.name,
                operand.elements,
                operand.registers,
                operand.shift,
                operand.bits,
                operand.element,
            )
            shown.setdefault(key, (instruction, name))
    spellings = list(dict.fromkeys(instruction.canonical for instruction, _ in shown.values()))
    answers = ask([{"ask": "places", "spelling": spelling} for spelling in spellings])
    known = {(spelling, table["name"]): table for spelling, answer in zip(spellings, answers, strict=True) for table in answer}
    for instruction, name in shown.values():
        theirs = known[instruction.canonical, name]
        table = arrangement(instruction, name)
        axes = [dict(zip(table.legal, values, strict=True)) for values in itertools.product(*table.legal.values())]
        assert theirs["choices"] == axes
        for chosen, rows in zip(axes, theirs["rows"], strict=True):
            places = arrangement(instruction, name, **chosen).places(range(table.rows), range(table.cols))
            assert rows == [[list(place) for place in line] for line in places], (instruction.canonical, name, chosen)
        assert theirs["back"] == [[table.at(lane, element) for element in range(table.elements)] for lane in range(table.threads)]
    assert {table.layout.name for table in (arrangement(*one) for one in shown.values())} == set(catalog.database.layout)


def test_notations_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    """Of operands in registers; of those in tensor memory JavaScript has none."""
    shown = _representatives(catalog)
    answers = ask([{"ask": "notations", "spelling": instruction.canonical} for instruction in shown])
    for instruction, answer in zip(shown, answers, strict=True):
        expected = [
            [operand.name, *(_or_none(text) if operand.layout else None for text in (operand.to_cute, operand.to_triton))]
            for form in instruction.forms
            for operand in form.operands
        ]
        assert answer == expected, instruction.canonical


def test_conversions_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    """The same bits of places, the same cost, and the same order of K where it is cheaper, for pairs of all layouts."""
    fragments = {
        (operand.layout.name, operand.bits): (instruction.canonical, operand)
        for instruction in catalog.all()
        for form in instruction.forms
        for operand in form.operands
        if operand.layout is not None and operand.layout.kind == "fragment"
    }
    draw = random.Random(5)
    chosen = [(draw.choice([*fragments.values()]), target, draw.random() < 0.2) for target in fragments.values() for _ in range(4)]
    pairs = [[[source[0], source[1].name], [target[0], target[1].name], transpose] for source, target, transpose in chosen]
    (answers,) = ask([{"ask": "conversions", "pairs": pairs}])
    kinds = list(TEXTS)
    for (source, target, transpose), answer in zip(chosen, answers, strict=True):
        ours = convert(source[1], target[1], transpose=transpose)
        places: list[Any] = [
            [[f"{place.name}{place.bit}", list(stride) if stride else None] for place, stride in side.places.items()]
            for side in (ours.source, ours.target)
        ]
        assert [dict(side) for side in answer["places"]] == [dict(side) for side in places]
        assert (answer["kind"], dict(answer["origin"])) == (ours.kind, _named(ours))
        cheaper = ours.permuted if ours.permuted and kinds.index(ours.permuted.kind) < kinds.index(ours.kind) else None
        if cheaper is None:
            assert answer["reordered"] is None
        else:
            theirs = answer["reordered"]
            assert (theirs["kind"], dict(theirs["origin"]), tuple(theirs["order"])) == (cheaper.kind, _named(cheaper), cheaper.k)


def _named(conversion: Conversion) -> dict[str, str]:
    return {f"{new.name}{new.bit}": f"{old.name}{old.bit}" for new, old in conversion.origin.items()}


def _or_none(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ValueError:
        return None


# --- texts ------------------------------------------------------------------------------------------------------------------


def test_texts_to_copy_pass_the_checker(catalog: Catalog, ask: Ask) -> None:
    """The PTX and the inline assembly of an instruction have no fault, on a target that accepts it."""
    shown = [instruction for instruction in _representatives(catalog) if instruction.extents.get("n", 0) <= 16]
    answers = ask([{"ask": "texts", "spelling": instruction.canonical} for instruction in shown])
    modules: dict[str, list[tuple[Instruction, dict[str, str]]]] = {}
    for instruction, forms in zip(shown, answers, strict=True):
        # Some operands need more than their instruction.
        taken = [
            target for target in instruction.accepted_by() if all(target in instruction.accepted_by(form=one) for one in instruction.forms)
        ]
        accepted = [target for target in taken if target in modules] or taken
        modules.setdefault(accepted[0], []).extend((instruction, form) for form in forms)
    for target, members in modules.items():
        version = max(str(catalog.database.spec.isa_versions[-1].version) for _ in members)
        ptx = "".join(f".entry k{number}() {{\n{form['ptx']}\n}}\n" for number, (_, form) in enumerate(members))
        module = f".version {version}\n.target {target}\n.address_size 64\n{ptx}"
        assert not _errors(Checker(follow=False).check(module)), target
        cuda = "".join(f"__global__ void k{number}() {{\n{form['assembly']}\n}}\n" for number, (_, form) in enumerate(members))
        findings = Checker(target=target, ptx=version, follow=False).check(cuda, "kernel.cu")
        assert not _errors(findings), target
        assert cuda.count("asm volatile") == len(members)
    assert len(modules) > 2


def _errors(findings: Any) -> list[str]:
    return [f"{finding.line}: {finding.message}" for finding in findings if finding.severity == "error"]


def test_a_call_names_the_include_the_function_and_its_arguments(ask: Ask) -> None:
    mma, wgmma, scaled, load = (
        answer[0]["call"]
        for answer in ask(
            [
                {"ask": "texts", "spelling": spelling}
                for spelling in (
                    _MMA,
                    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16",
                    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
                    "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                )
            ]
        )
    )
    assert mma.endswith("float d[4];\nuint32_t a[4];\nuint32_t b[2];\nfloat c[4];\nptxmma::mma_m16n8k16_f32_f16_f16_f32(d, a, b, c);")
    assert "#include <ptxmma/" in mma
    assert wgmma.endswith("uint64_t b_desc;\nbool scale_d;\nptxmma::wgmma_m64n8k16_f32_bf16_bf16(d, a, b_desc, scale_d);")
    assert "<0, 0, 0, 0>(d, a, b, c, scale_a_data, scale_b_data);" in scaled
    assert "uint32_t r[4];\nuint32_t p;\n" in load


def test_csv_is_that_of_the_command(ask: Ask) -> None:

    load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
    cases: list[tuple[str, str, dict[str, int]]] = [(_MMA, "a", {}), (_MMA, "d", {}), (_SPARSE, "metadata", {"selector": 1})]
    cases += [(load, "r", {"matrix": 2}), (load, "p", {})]
    answers = ask([{"ask": "csv", "spelling": spelling, "operand": operand, "chosen": chosen} for spelling, operand, chosen in cases])
    for (spelling, operand, chosen), answer in zip(cases, answers, strict=True):
        options = [part for axis, number in chosen.items() for part in (f"--{axis}", str(number))]
        result = invoke("layout", spelling, "--operand", operand, "--format", "csv", *options)
        assert (result.exit_code, answer) == (0, result.output), (spelling, operand)


# --- shared memory ----------------------------------------------------------------------------------------------------------


def _images() -> Iterator[dict[str, Any]]:
    """Options of images, some that fit and some that do not.

    Each family, type, majorness and swizzle comes with two of six sizes, of which types of the same width have others.
    """
    drawn = random.Random(5)
    for majorness, swizzle in itertools.product(("K", "MN"), ("none", "32B", "64B", "128B", "128B_ATOM_32B")):
        for family in ("wgmma", "tcgen05"):
            for padded in (False, True):
                for name in readable(majorness, None, family=family, padded=padded):
                    own = {"type": name, "majorness": majorness, "swizzle": swizzle, "family": family, "padded": padded}
                    yield {**own, **_size(drawn), "depth": 16}
                    strides = {"lbo": 16 * drawn.randrange(1, 600), "sbo": 128 * drawn.randrange(1, 80)}
                    yield {
                        **own,
                        **_size(drawn),
                        "depth": 32,
                        **strides,
                        "start": 1024 * drawn.randrange(9),
                        "baseOffset": drawn.choice((0, 0, 3)),
                    }
        yield {"type": "f16", "majorness": majorness, "swizzle": swizzle, "x": 64, "k": 64, "depth": 16, "start": 1024 * drawn.randrange(9)}
        yield {"type": "f16", "majorness": majorness, "swizzle": swizzle, "x": 64, "k": 64, "depth": 16, "lbo": 16384, "sbo": 2048}
        yield {"type": "f16", "majorness": majorness, "swizzle": swizzle, "x": 64, "k": 64, "depth": 16, "sbo": 16}
        for start in (24, 48):
            yield {"type": "f16", "majorness": majorness, "swizzle": swizzle, "x": 64, "k": 64, "depth": 16, "start": start}
        yield {"type": "f16", "majorness": majorness, "swizzle": swizzle, "x": 64, "k": 64, "depth": 16, "start": 128, "baseOffset": 1}


def _size(drawn: random.Random) -> dict[str, int]:
    return {"x": drawn.choice((8, 64)), "k": drawn.choice((32, 64, 256))}


def test_images_are_those_of_the_library(ask: Ask) -> None:
    images = list(_images())
    accepted = 0
    for options, answer in zip(images, ask([{"ask": "image", **options} for options in images]), strict=True):
        given = {key: options[key] for key in ("lbo", "sbo", "start", "padded") if key in options}
        try:
            layout = SharedLayout(
                options["type"], options["majorness"], options["swizzle"], options["x"], options["k"], **given,
                base_offset=options.get("baseOffset", 0), family=options.get("family", ""),
            )  # fmt: skip
        except ValueError:
            assert "error" in answer, options
            continue
        accepted += 1
        assert "error" not in answer, (options, answer)
        assert answer["size"] == layout.size
        assert answer["units"] == layout.units()
        assert answer["line"] == [*layout.address(0, np.arange(layout.k)), *layout.address(np.arange(layout.x), 0)]
        patterns = access_patterns(layout)
        assert answer["patterns"] == [[each.name, each.width, each.lanes, each.accesses, each.wavefronts, each.least] for each in patterns]
        assert int(answer["descriptor"], 16) == layout.descriptor().encode() if _or_none(layout.descriptor) else True
        steps = _or_none(functools.partial(layout.steps, options["depth"]))
        assert isinstance(answer["steps"], list) == (steps is not None), options
        if steps is not None:
            assert [int(step, 16) for step in answer["steps"]] == [step.encode() for step in steps]
        box = _or_none(functools.partial(getattr, layout, "tma"))
        assert (list(answer["tma"].values()) if isinstance(answer["tma"], dict) else None) == (None if box is None else list(box)), options
    assert accepted > 100


def test_the_script_of_the_explorer_is_javascript(root: Path, tmp_path: Path) -> None:
    """Modules that are right by themselves may not be in one script."""
    node = shutil.which("node") or pytest.skip("node is not installed")
    page = (root / "generated/javascript/explorer.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>\n(.*?)</script>", page, re.DOTALL)
    (tmp_path / "explorer.js").write_text(script, encoding="utf-8")
    done = subprocess.run([node, "--check", str(tmp_path / "explorer.js")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_suspicions_of_descriptors_are_those_of_the_library(catalog: Catalog, ask: Ask) -> None:
    """Descriptors of every family, by chance and with one field after the other."""
    drawn = random.Random(0)
    asked = []
    for format in matrix_formats(catalog.database.spec):
        swizzle = next(field for field in format.fields if field.name == "swizzle")
        modes = [stored for case in swizzle.cases for stored in case.values.values()]
        right = sum(field.fixed << field.low for field in format.fields if field.fixed)
        words = [drawn.getrandbits(64) & drawn.getrandbits(64) & drawn.getrandbits(64) for _ in range(150)]
        words += [drawn.choice((0, 1, 64, 4096)) | drawn.getrandbits(14) << 16 & ~63 << 16 | drawn.getrandbits(8) << 35 for _ in range(150)]
        words += [sbo << 32 | 1 << 16 for sbo in range(1, 80)]
        words = [word & ~(7 << 61) | right | drawn.choice(modes) << swizzle.low for word in words] + [0x4000004000010040, 0]
        words += [mode << swizzle.low | right | 1 << 52 | base << 49 | 64 << 32 for mode in modes for base in (0, 1)]
        words += [word ^ 1 << drawn.randrange(46, 61) for word in words[::3]]
        for word in words:
            majorness, element = drawn.choice((None, "K", "MN")), drawn.choice((None, None, "f16", "tf32", "e2m1", "f64"))
            asked.append({"bits": hex(word), "majorness": majorness, "element": element, "family": format.family})
    rules = set()
    for question, answer in zip(asked, ask([{"ask": "suspicions", **each} for each in asked]), strict=True):
        try:
            bits = int(str(question["bits"]), 16)
            expected = suspicions(bits, question["majorness"], element=question["element"], family=str(question["family"]))
        except ValueError:  # bits that name no swizzle mode, or a majorness that the mode does not have
            expected = []
        assert [tuple(each) for each in answer] == [tuple(each) for each in expected], question
        rules |= {each.rule for each in expected}
    assert rules == {"unused", "illegal", "type", "base", "pattern", "zero", "overlap", "phase", "bytes", "reach"}


def test_every_descriptor_is_explained_as_the_library_explains_it(catalog: Catalog, ask: Ask) -> None:
    """Bits by chance, and the same with few fields set, which are more often legal."""
    drawn = random.Random(8)
    asked = []
    for format in catalog.database.spec.descriptors:
        for kind in format.kinds or ("",):
            words = [drawn.getrandbits(format.bits) & (drawn.getrandbits(format.bits) | -(number % 2)) for number in range(100)]
            asked += [(Codec(catalog.database.spec, format, kind), bits) for bits in words]
    questions = [{"ask": "explain", "format": codec.format.name, "kind": codec.kind, "bits": str(bits)} for codec, bits in asked]
    legal = 0
    for (codec, bits), answer in zip(asked, ask(questions), strict=True):
        wrong = {each.field for each in codec.mistakes(bits)}
        expected = [[each.field.name, each.stored, each.value, each.field.name not in wrong] for each in codec.explain(bits)]
        assert [row if row[3] else [*row[:2], None, False] for row in answer] == [
            row if row[3] else [*row[:2], None, False] for row in expected
        ], (codec.format.name, codec.kind, hex(bits))
        legal += not wrong - {""}
    assert legal > 20


def test_descriptors_are_read_as_the_library_reads_them(catalog: Catalog, ask: Ask) -> None:
    drawn = random.Random(7)
    words = [0x4000004000010040, 0, 2**64 - 1, *(drawn.getrandbits(64) for _ in range(200))]
    for format in matrix_formats(catalog.database.spec):
        codec = Codec(catalog.database.spec, format)
        answers = ask([{"ask": "decode", "bits": str(bits), "family": format.family} for bits in words])
        assert [list(answer) for answer in answers] == [[field.name for field in codec.parameters]] * len(words)
        assert answers == [codec.decode(bits) for bits in words]


# --- sparsity ---------------------------------------------------------------------------------------------------------------


def test_rows_are_compressed_as_the_library_does(catalog: Catalog, ask: Ask) -> None:
    drawn = random.Random(11)
    questions, patterns = [], []
    for instruction in (each for each in _representatives(catalog) if each.variant.instruction.metadata):
        pattern = instruction.metadata.granularity
        for zeros in (0.0, 0.5):
            row = [0 if drawn.random() < zeros else drawn.randrange(-9, 10) for _ in range(4 * pattern.chunk)]
            questions.append({"ask": "compress", "spelling": instruction.canonical, "row": row})
            patterns.append(pattern.name)
    for question, name, answer in zip(questions, patterns, ask(questions), strict=True):
        given = np.array([question["row"]], np.float32)
        pruned = sparse.prune(given, name)
        values, metadata = sparse.compress(pruned, name)
        assert answer["pruned"] == pruned[0].tolist()
        assert answer["values"] == values[0].tolist()
        assert [int(field, 2) for field in answer["fields"]] == sparse.fields(metadata)[0].tolist()
        assert (answer["crowded"][:1], len(answer["crowded"])) == _crowded(given, name)


def _crowded(row: Any, pattern: str) -> tuple[list[int], int]:
    """The first chunk with too many values, and how many there are."""
    try:
        sparse.check(row, pattern)
    except sparse.NotSparseError as error:
        return [error.chunk], error.count
    return [], 0


# --- the package ------------------------------------------------------------------------------------------------------------


def test_places_outside_an_operand_are_refused(package: Path) -> None:
    """As in Python: a row or a column beyond the matrix has no lane."""
    program = (
        'import { arrangements, instruction, tensorOperands } from "./index.js";\n'
        f'const a = arrangements(instruction("{_MMA}")).get("a");\n'
        'const copy = tensorOperands(instruction("tcgen05.cp.cta_group::1.128x256b"), null).values().next().value;\n'
        "const refused = (ask) => { try { ask(); } catch (error) { return `${error.name}: ${error.message}`; } };\n"
        "const asked = [() => a.locate(15, 15), () => a.locate(99, 3), () => a.locate(-1, 3), () => a.locate(1.5, 3),\n"
        "  () => copy.locate({ row: 128, byte: 0 })];\n"
        "console.log(JSON.stringify(asked.map((ask) => refused(ask) ?? null)));\n"
    )
    done = subprocess.run([str(NODE), "--input-type=module", "-e", program], cwd=package, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        None,
        "RangeError: row = 99 is out of range: 0..15",
        "RangeError: row = -1 is out of range: 0..15",
        "RangeError: row = 1.5 is out of range: 0..15",
        "RangeError: row = 128 is out of range: 0..127",
    ]


def test_the_declarations_hold(package: Path, tmp_path: Path) -> None:
    """TypeScript accepts a program that uses the package, and refuses one that misuses it."""
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("tsc is not installed: npm install --global typescript")
    module = tmp_path / "node_modules" / "ptxmma"
    shutil.copytree(package, module)
    program = (
        'import { arrangements, instruction, toCute, type Place } from "ptxmma";\n'
        'import { mma_m16n8k16_a_b16 } from "ptxmma/layouts";\n'
        "const [row, col]: [number, number] = mma_m16n8k16_a_b16(5, 3);\n"
        f'const multiply = instruction("{_MMA}");\n'
        'const place: Place | undefined = multiply && arrangements(multiply).get("a")?.locate(row, col);\n'
        "export const text: string | undefined = multiply && toCute(multiply.forms[0].operands[1]);\nexport default place;\n"
    )
    (tmp_path / "right.ts").write_text(program, encoding="utf-8")
    (tmp_path / "wrong.ts").write_text(program.replace("(5, 3)", '("5")'), encoding="utf-8")
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler"]
    for name, right in (("right.ts", True), ("wrong.ts", False)):
        done = subprocess.run([compiler, *options, name], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == right, done.stdout  # the code of a failure differs between releases


def test_the_modules_are_typed(root: Path, tmp_path: Path) -> None:
    """The hand-written modules keep to their JSDoc types."""
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("tsc is not installed: npm install --global typescript")
    shutil.copytree(root / "codegen" / "ptxmma" / "generator" / "templates" / "javascript", tmp_path / "source")
    declared = 'export const database: import("./index.d.ts").DatabaseTables;\n'
    (tmp_path / "source" / "database.d.ts").write_text(declared, encoding="utf-8")
    options = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--target", "es2022", "--module", "es2022"]
    options += ["--moduleResolution", "bundler", "--allowImportingTsExtensions", "--lib", "es2022,dom,dom.iterable"]
    command = [compiler, *options, "index.js", "explorer/main.js"]
    done = subprocess.run(command, cwd=tmp_path / "source", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ({"main.js": 'import * as all from "./one.js";\n'}, "main.js: line 1 without comments cannot be bundled"),
        ({"main.js": 'import { a } from "./one.js";\nconst b = a;\n', "one.js": "export const a = 1;\nconst b = 2;\n"}, "both have b"),
        ({"main.js": "const text = `a\nb`;\n"}, "main.js: line 1 without comments cannot be bundled"),
        ({"main.js": "const half = 1 / 2; // a comment\n"}, "main.js: line 1 without comments cannot be bundled"),
    ],
)
def test_what_cannot_be_bundled_is_refused(texts: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        bundled("main.js", texts.__getitem__)


#: Names that mean several things: of variables, properties and methods, in patterns, in texts and beside regular expressions.
_NAMED = r"""
const table = [3, 1, 2];
export class Pile {
  #things;
  constructor(things, { scale = 2, shift: moved = scale + 1 } = {}) {
    this.#things = things;
    Object.assign(this, { scale, moved });
  }
  get things() {
    return this.#things.map((things) => things * this.scale);
  }
  sorted(order = (one, other) => one - other) {
    const sorted = [...this.#things].sort(order);
    return { sorted, order: typeof order, first: sorted[0] ? sorted[0] : table };
  }
}
function named(table, ...others) {
  const [first, , third = first] = table;
  const found = /(?<first>[a-z]+)\d/gi.exec("A1 first ${first}") ?? { groups: { first } };
  let text = `first ${first} {third} ${others.map((other) => `${other} ${third}`)} ${{ first }.first} "${text_of({ third })}"`;
  for (const { length: i, ...rest } of [table]) text += `${i}${Object.keys(rest)}`;
  for (const key in { first, third }) text += key === "first" ? first : key;
  try {
    null.first();
  } catch (first) {
    text += first instanceof TypeError;
  }
  return { text, ...found.groups, [third]: first, case: { class: first, if: third } };
}
const text_of = ({ third }) => `${third ? { third }.third : ""}`;
const { sorted: ordered, first } = new Pile(table).sorted();
console.log(JSON.stringify([named(table, "a", "b"), ordered, first, new Pile([1, 2], { scale: 5 }), new Pile(table).things]));
"""


def test_words_mean_the_instructions_of_the_library(ask: Ask) -> None:
    words, several = QUESTIONS["instructions"], QUESTIONS["several"]
    answers = iter(ask([{"ask": "resolve", "texts": texts} for texts in ([*words], [*several], [*QUESTIONS["none"]])]))
    assert dict(zip(words, next(answers), strict=True)) == {text: [canonical] for text, canonical in words.items()}
    for text, found in zip(several, next(answers), strict=True):
        assert (len(found) > 1) == (several[text] != ["n"]), text  # of instructions that differ in N alone there is one
    assert not any(next(answers))


def test_questions_have_the_parts_that_the_command_answers(ask: Ask, catalog: Catalog) -> None:
    """Operands by their names, the bytes of tiles, and the sentences about messages and topics."""
    named = {f"{words} {name}": operand for words, names in QUESTIONS["operands"].items() for name, operand in names.items()}
    tiles = {
        words: int(row.split()[0])
        for words, row in QUESTIONS["commands"].items()
        if row.endswith("count on the mbarrier") and "layout" not in words
    }
    spec = catalog.database.spec
    explained = {name: topic.text for topic in spec.topics for name in topic.names} | {each.code: each.text for each in spec.messages}
    answers = iter(ask([{"ask": "asked", "texts": [*texts]} for texts in (named, tiles, explained)]))
    told = {text: found["operand"] for text, found in zip(named, next(answers), strict=True)}
    metadata = dict.fromkeys(("e", "sp-meta"), "metadata")
    plain = {text: re.sub("-(?:data|tmem)$", "", operand).lower() for text, operand in named.items()}
    short = {text: metadata.get(operand, operand) for text, operand in plain.items()}
    assert {text: operand for text, operand in told.items() if operand and operand != short[text]} == {}
    assert sum(map(bool, told.values())) > len(told) / 2
    assert {text: found["tile"]["bytes"] for text, found in zip(tiles, next(answers), strict=True)} == tiles
    said = {text: [each["text"] for each in found["explanations"]] for text, found in zip(explained, next(answers), strict=True)}
    assert {text: said[text] for text, sentence in explained.items() if sentence not in said[text]} == {}


def test_a_bundled_script_does_the_same_under_short_names(tmp_path: Path) -> None:
    (tmp_path / "plain.mjs").write_text(_NAMED, encoding="utf-8")
    script = bundled("main.js", {"main.js": _NAMED}.__getitem__)
    (tmp_path / "short.js").write_text(script, encoding="utf-8")
    printed = [
        subprocess.run([str(NODE), str(tmp_path / name)], capture_output=True, text=True, check=True).stdout
        for name in ("plain.mjs", "short.js")
    ]
    assert printed[0] == printed[1] != ""
    assert not re.findall(r"\b(?:named|others|found|rest|Pile|text_of)\b|#things", script)


def test_a_text_with_braces_of_its_own_is_refused() -> None:
    assert template("F16BF16_f16", {"dtype": "f16", "atype": "bf16", "btype": "f16"}) == "{DTYPE}{ATYPE}_{btype}"
    with pytest.raises(ValueError, match=r"'MMA_\{n\}' has a brace, which stands for a value"):
        template("MMA_{n}", {"atype": "f16"})


def test_packed_data_is_the_data(tmp_path: Path) -> None:
    data = {
        "word": ["word", "a `${word}`\\", "Āǿ ~", "word"],
        "words": [["word"], ["word"], None, None],
        "texts": ["", "a|b"],
        "none": [[], ""],
    }
    (tmp_path / "data.mjs").write_text(f"console.log(JSON.stringify({packed(data)}));", encoding="utf-8")
    done = subprocess.run([str(NODE), str(tmp_path / "data.mjs")], capture_output=True, text=True, check=True, encoding="utf-8")
    assert json.loads(done.stdout) == data
    with pytest.raises(ValueError, match="'~a' begins as a list of texts does"):
        packed({"a": "~a"})
