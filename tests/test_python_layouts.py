"""The generated Python functions agree with the model, on integers and on arrays, forward and back."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxmma.catalog.descriptors.shared_formats import matrix_format, read_by
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline
from ptxmma.generator.emit import python_layouts
from ptxmma.generator.emit.index_functions import Sparsity, of_layout
from ptxmma.model import Layout, SharedMemory
from ptxmma.model.formula import evaluate, parse

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


def _points(inputs: Mapping[str, int]) -> dict[str, Any]:
    """Every point of a domain as flat arrays."""
    grids = np.meshgrid(*(np.arange(1 << width) for width in inputs.values()), indexing="ij")
    return {name: grid.ravel() for name, grid in zip(inputs, grids, strict=True)}


def _same(ours: Any, theirs: Any) -> bool:
    ours, theirs = np.broadcast_arrays(ours, theirs)
    return bool((ours == theirs).all())


def _agree(function: Callable[..., Any], points: list[Any], expected: list[Any]) -> None:
    """A function gives the expected results on arrays and, point by point, on integers."""
    results = function(*points)
    assert len(results) == len(expected)
    for result, values in zip(results, expected, strict=True):
        assert _same(result, values)
        assert isinstance(result, np.ndarray), "an array must come back, even where the result is always 0"
    columns = [np.broadcast_to(values, points[0].shape).tolist() for values in expected]
    scalars = list(zip(*(column.tolist() for column in points), strict=True))
    assert [function(*point) for point in scalars] == list(zip(*columns, strict=True))


def _layouts(catalog: Catalog, kind: str) -> list[Layout]:
    layouts = [layout for layout in catalog.database.layouts if layout.kind == kind]
    assert layouts
    return layouts


def test_fragments_equal_the_model(catalog: Catalog, functions: Functions) -> None:
    for layout in _layouts(catalog, "fragment"):
        points = _points(layout.map.inputs)
        place = layout.map.apply(points)
        there = [place[name] for name in layout.map.outputs]
        _agree(functions[layout.name], [points["lane"], points["i"]], there)
        full = [np.broadcast_to(values, points["i"].shape) for values in there]
        _agree(functions[f"{layout.name}_inverse"], full, [points["lane"], points["i"]])


def test_metadata_equals_the_model(catalog: Catalog, functions: Functions) -> None:
    by_layout = {
        instruction.metadata.layout.name: instruction.metadata for instruction in catalog.all() if instruction.variant.instruction.metadata
    }
    assert sorted(by_layout) == sorted(layout.name for layout in _layouts(catalog, "metadata"))
    for name, metadata in by_layout.items():
        points = _points({key: metadata.layout.map.inputs[key] for key in ("row", "chunk", "selector")})
        lane, bit, _ = metadata.locate(**points)
        _agree(functions[name], list(points.values()), [lane, bit])
        _agree(functions[f"{name}_inverse"], [lane, bit], list(points.values()))
        function = functions[name]
        assert function(3, 1) == function(3, 1, 0), "the selector is 0 unless it is given"


def test_scales_equal_the_model(catalog: Catalog, functions: Functions) -> None:
    """The functions take the ids themselves; the map counts the legal ones."""
    for layout in _layouts(catalog, "scale"):
        points = _points({axis: layout.map.inputs[axis] for axis in layout.axes})
        assert list(points)[1:] == ["block", "byte_id", "thread_id"]
        place = layout.map.apply(points)
        given = [numbers * layout.steps.get(axis, 1) for axis, numbers in points.items()]
        _agree(functions[layout.name], given, [place["lane"], place["byte"]])
        _agree(functions[f"{layout.name}_inverse"], [np.broadcast_to(place[key], given[0].shape) for key in ("lane", "byte")], given)


def test_chunks_and_windows_equal_the_model(catalog: Catalog, functions: Functions) -> None:
    seen = set()
    for instruction in catalog.all():
        operand = instruction.operand("a") if instruction.variant.instruction.metadata else None
        if operand is None or operand.layout is None or operand.layout.name in seen:
            continue
        seen.add(operand.layout.name)
        points = _points({"lane": operand.layout.map.inputs["lane"], "i": operand.layout.map.inputs["i"]})
        lane, i = points["lane"], points["i"]
        chunk = functions[f"{operand.layout.name}_chunk"]
        assert _same(chunk(lane, i), operand.chunk(lane, i))
        assert chunk(5, 1) == operand.chunk(5, 1)
        _agree(functions[f"{operand.layout.name}_window"], [lane, i], list(operand.window(lane, i)))
    assert seen


def test_a_layout_with_two_patterns_of_zeros_has_a_function_for_each(catalog: Catalog) -> None:
    layout = next(layout for layout in _layouts(catalog, "fragment") if layout.name == "mma_sp_m16n8k32_a_b16")
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
    for layout in catalog.database.layouts:
        if layout.kind == "fragment":
            points = {name: torch.from_numpy(values) for name, values in _points(layout.map.inputs).items()}
            results = functions[layout.name](points["lane"], points["i"])
            place = layout.map.apply(_points(layout.map.inputs))
            assert all(_same(result.numpy(), place[name]) for result, name in zip(results, layout.map.outputs, strict=True))


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


@pytest.fixture(scope="module")
def memory(catalog: Catalog) -> SharedMemory:
    spec = catalog.database.spec
    assert spec.shared_memory is not None
    return read_by(spec, spec.shared_memory, "wgmma")


def test_the_swizzle_permutes_each_pattern_and_undoes_itself(memory: SharedMemory, functions: Functions) -> None:
    for mode in memory.swizzles:
        for base_offset in range(8):
            addresses = np.arange(4 * mode.pattern)
            moved = functions["swizzle"](addresses, mode.bytes, base_offset)
            assert _same(functions["swizzle"](moved, mode.bytes, base_offset), addresses)
            assert _same(np.sort(moved), addresses)
            assert _same(moved // 16 * 16 + addresses % 16, moved), "units of 16 bytes stay whole"
    swizzle = functions["swizzle"]
    assert swizzle(0x80, 128) == 0x90
    assert [swizzle(row * 128 + 0x70, 128) & 0x7F for row in range(8)] == [0x70, 0x60, 0x50, 0x40, 0x30, 0x20, 0x10, 0]


def test_the_base_offset_is_the_spec_s(memory: SharedMemory, functions: dict[str, Any]) -> None:
    """0 at a multiple of the pattern, on integers and arrays; test_c_headers.py compares C with the same formula."""
    starts = np.arange(0, 4096, 16)
    for mode in memory.swizzles:
        expected = [evaluate(parse(memory.base_offset), {"start": start, "pattern": mode.pattern}) for start in starts.tolist()]
        pattern = functions["SWIZZLE_PATTERN"][mode.name]
        assert pattern == mode.pattern
        assert _same(functions["base_offset"](starts, pattern), expected)
        assert [functions["base_offset"](start, pattern) for start in starts.tolist()] == expected
    assert functions["base_offset"](0x100, 256) == 0
    assert functions["base_offset"](0x100, 1024) == 2
    assert functions["base_offset"](0x1180, 1024) == 3


def _cute(text: str) -> Callable[[int, int], int]:
    """The function of a CuTe layout of two modes, ``((8,2),(4,4)):((4,32),(1,64))``."""
    shape, stride = (ast.literal_eval(part) for part in text.split(":"))

    def place(*coordinates: int) -> int:
        total = 0
        for coordinate, sizes, steps in zip(coordinates, shape, stride, strict=True):
            for size, step in zip(sizes, steps, strict=True):
                total += coordinate % size * step
                coordinate //= size
        return total

    return place


def test_offsets_reproduce_the_worked_examples(catalog: Catalog, memory: SharedMemory, functions: Functions) -> None:
    bits = {entry.name: entry.bits for entry in catalog.database.spec.types.elements}
    spans = {mode.name: mode.bytes for mode in memory.swizzles}
    errata = {erratum.id for erratum in catalog.database.spec.errata}
    assert memory.examples
    for example in memory.examples:
        place = _cute(example.cute)
        width = bits[example.type]
        xs, ks = (range(int(np.prod(sizes))) for sizes in ast.literal_eval(example.cute.split(":")[0]))
        if len({place(x, k) for x in xs for k in ks}) < len(xs) * len(ks):  # as printed, elements share an address
            assert example.name.lower().replace(" ", "-") in errata
            ks = range(spans[example.swizzle] * 8 // width)
        offset = functions[f"offset_{example.majorness}_major_{example.swizzle}".lower()]
        for x, k in itertools.product(xs, ks):
            ours = offset(x, k, width, example.lbo * width // 8, example.sbo * width // 8)
            assert ours == place(x, k) * width // 8, (example.name, x, k)


def test_addresses_are_swizzled_offsets(memory: SharedMemory, functions: Functions) -> None:
    for layout in memory.layouts:
        for mode in memory.swizzles:
            if mode.name in layout.swizzles:
                stem = f"{layout.majorness}_major_{mode.name}".lower()
                points = _points({"x": 5, "k": 4})
                arguments = (*points.values(), 16, 512, 4096)
                plain = 2048 + functions[f"offset_{stem}"](*arguments)
                assert _same(functions[f"address_{stem}"](2048, *arguments), functions["swizzle"](plain, mode.bytes))


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


def test_a_made_up_family() -> None:
    catalog = pipeline.read(_TOY)
    functions = _functions(catalog)
    assert functions["toy_m16n8k16_a_b16"](5, 3) == (9, 3)
    assert functions["toy_m16n8k16_a_b16_inverse"](9, 3) == (5, 3)
    assert set(_texts(catalog)) == {"__init__.py", "py.typed", "toy.py"}


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
