"""The generated Python functions agree with the model, on integers and on arrays, forward and back."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layout_functions import questions
from ptxmma.catalog.descriptors.shared_formats import matrix_format
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline
from ptxmma.generator.emit import python_layouts
from ptxmma.generator.emit.index_functions import Sparsity, of_layout

_TOY = Path(__file__).parent / "toy"

Functions = Mapping[str, Callable[..., Any]]


def _texts(catalog: Catalog) -> dict[str, str]:
    return {Path(output.path).name: output.text for output in python_layouts.emit(catalog)}


def _functions(catalog: Catalog) -> dict[str, Any]:
    """Everything that the generated modules define."""
    names: dict[str, Any] = {}
    for name, text in _texts(catalog).items():
        module: dict[str, Any] = {"__name__": name}
        exec(compile(text, name, "exec"), module)
        names |= module
    return names


@pytest.fixture(scope="module")
def functions(catalog: Catalog) -> dict[str, Any]:
    return _functions(catalog)


def _same(ours: Any, theirs: Any) -> bool:
    ours, theirs = np.broadcast_arrays(ours, theirs)
    return bool((ours == theirs).all())


def _called(function: Callable[..., Any], arguments: Iterable[Any]) -> tuple[Any, ...]:
    """The results of a function; a function with one may return it alone."""
    results = function(*arguments)
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("spec", ["catalog", "odd"])
def test_functions_equal_the_model(spec: str, request: pytest.FixtureRequest) -> None:
    """In every space: arrays over the whole domain, integers at points that are spread over it, and 0 for what is left out."""
    catalog: Catalog = request.getfixturevalue(spec)
    functions, asked = _functions(catalog), set()
    for question in questions(catalog):
        function = functions[question.name]
        parameters = inspect.signature(function).parameters
        asked.add(question.name)
        results = _called(function, (question.arguments[name] for name in parameters))
        assert len(results) == len(question.results)
        for result, expected in zip(results, question.results.values(), strict=True):
            assert _same(result, expected), question.name
            assert isinstance(result, np.ndarray), "an array must come back, even where the result is always 0"
        some = question.spread(512)
        points = zip(*(some.arguments[name].tolist() for name in parameters), strict=True)
        assert [_called(function, point) for point in points] == list(zip(*(each.tolist() for each in some.results.values()), strict=True))
        assert all(parameter.default in (inspect.Parameter.empty, 0) for parameter in parameters.values())
    made = {name for name, value in functions.items() if callable(value) and not re.match(r"(en|de)code_", name)}
    assert asked == made


def test_a_layout_with_two_patterns_of_zeros_has_a_function_for_each(catalog: Catalog) -> None:
    layout = catalog.database.layout["mma_sp_m16n8k32_a_b16"]
    both = [Sparsity("2:4", 4, 2, 2), Sparsity("1:4", 4, 1, 2)]
    made = {function.name for function in of_layout(layout, both, "9.7")}
    assert {f"{layout.name}_{what}_{pattern}" for what in ("chunk", "window") for pattern in ("2_4", "1_4")} <= made


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint32, np.int64])
def test_arrays_keep_their_type_and_shape(functions: Functions, dtype: type) -> None:
    function = functions["mma_m16n8k16_a_b16"]
    lane: Any = np.arange(32, dtype=dtype)[:, None]
    i: Any = np.arange(8, dtype=dtype)[None, :]
    for result in function(lane, i):
        assert result.dtype == dtype
        assert result.shape == (32, 8)
    matrix = np.full((16, 16), -1)
    matrix[function(lane, i)] = 8 * np.arange(32)[:, None] + np.arange(8)
    assert sorted(matrix.ravel()) == list(range(256)), "every element of the matrix is owned once"


def test_torch_tensors(catalog: Catalog, functions: Functions) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    kinds = {layout.name: layout.kind for layout in catalog.database.layouts}
    for question in (each.spread(512) for each in questions(catalog) if kinds.get(each.name) == "fragment"):
        results = functions[question.name](*(torch.from_numpy(question.arguments[name]) for name in ("lane", "i")))
        assert all(_same(result.numpy(), expected) for result, expected in zip(results, question.results.values(), strict=True))


def test_modules_import_nothing(catalog: Catalog) -> None:
    texts = {name: text for name, text in _texts(catalog).items() if name.endswith(".py")}
    assert len(texts) > 2
    for name, text in texts.items():
        tree = ast.parse(text)
        assert not [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))], name
        allowed = (ast.FunctionDef, ast.Assign, ast.Expr)
        assert all(isinstance(node, allowed) for node in tree.body), name


def test_every_function_says_its_source(functions: Functions) -> None:
    made = [value for value in functions.values() if callable(value)]
    assert made
    for function in made:
        assert re.search(r"^ +Source: \S.*\.$", function.__doc__ or "", re.MULTILINE), function.__name__
        assert "  " not in (function.__doc__ or "").splitlines()[0]


def test_the_files_are_formatted(catalog: Catalog, root: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("ruff") is None and shutil.which("ruff") is None:
        pytest.skip("ruff is not installed")
    for name, text in _texts(catalog).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"] if importlib.util.find_spec("ruff") else ["ruff"]
    command = [*ruff, "format", "--check", "--diff", "--config", str(root / "pyproject.toml"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# --- shared memory ----------------------------------------------------------------------------------------------------------


def test_the_swizzle_permutes_each_pattern_and_undoes_itself(catalog: Catalog, functions: dict[str, Any]) -> None:
    memory = catalog.database.spec.shared_memory
    assert memory is not None
    for mode in memory.swizzles:
        assert functions["SWIZZLE_PATTERN"][mode.name] == mode.pattern
        for base_offset in range(8):
            addresses = np.arange(4 * mode.pattern)
            swizzle, span = (functions["swizzle_128b_atom_32b"], ()) if mode.formula else (functions["swizzle"], (mode.bytes,))
            moved = swizzle(addresses, *span, base_offset)
            assert _same(swizzle(moved, *span, base_offset), addresses)
            assert _same(np.sort(moved), addresses)
            assert _same(moved // 16 * 16 + addresses % 16, moved), "units of 16 bytes stay whole"
    swizzle = functions["swizzle"]
    assert swizzle(0x80, 128) == 0x90
    assert [swizzle(row * 128 + 0x70, 128) & 0x7F for row in range(8)] == [0x70, 0x60, 0x50, 0x40, 0x30, 0x20, 0x10, 0]
    begun = functions["base_offset"]
    assert [begun(*at) for at in ((0x100, 256), (0x100, 1024), (0x1180, 1024))] == [0, 2, 3]


@pytest.mark.parametrize(("family", "stem"), [("wgmma", ""), ("tcgen05", "tcgen05_")])
def test_descriptors_come_back(catalog: Catalog, functions: Functions, family: str, stem: str) -> None:
    every = matrix_format(catalog.database.spec, family).fields
    fields = [field for field in every if field.fixed is None]
    always = sum(field.fixed << field.low for field in every if field.fixed is not None)
    encode, decode = functions[f"encode_{stem}descriptor"], functions[f"decode_{stem}descriptor"]
    for field in fields:
        for value in (1 << field.shift, (1 << field.width) - 1 << field.shift):
            values = {other.name: value if other is field else 0 for other in fields}
            descriptor = encode(**values)
            assert descriptor == always | value >> field.shift << field.low
            assert decode(descriptor) == tuple(values.values())
    everything = [(1 << field.width) - 1 << field.shift for field in fields]
    arrays = [np.array([0, value], dtype=np.uint64) for value in everything]
    assert _same(encode(*arrays), np.array([always, encode(*everything)], dtype=np.uint64))
    assert all(_same(ours, theirs) for ours, theirs in zip(decode(encode(*arrays)), arrays, strict=True))


# --- specs of others --------------------------------------------------------------------------------------------------------


def test_text_of_a_spec_cannot_become_code(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    for path in spec.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        text = text.replace('document: "The Toy ISA 1.0"', 'document: \'"""; raise SystemExit #\'')
        path.write_text(text, encoding="utf-8")
    catalog = pipeline.read(spec)
    assert catalog.database.spec.document.startswith('"""')
    texts = _texts(catalog)
    for text in texts.values():
        assert all(isinstance(node, (ast.FunctionDef, ast.Assign, ast.Expr)) for node in ast.parse(text).body)
    assert _functions(catalog)["toy_m16n8k16_a_b16"](5, 3) == (9, 3)
