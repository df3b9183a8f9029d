"""The structure of the code: imports run one way, files are short."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from ptxmma import paths

_SOURCE = paths.CHECKOUT / "codegen" / "ptxmma"
_PROOF = paths.CHECKOUT / "codegen" / "ptxmma_proof"

#: The packages and modules of the top, lowest first.  Each may import from itself and from what is above it in this list.
_ORDER = [
    {"paths", "arguments", "release", "model"},
    {"arrays"},
    {"catalog"},
    {"matrices", "ptx"},
    {"check"},
    {""},  # what `import ptxmma` gives
    {"generator"},
    {"cli"},
    {"__main__"},
]


def _imports(node: ast.AST, *, types: bool) -> Iterator[str]:
    """The modules that code imports, at once or when a function is called; ``types``: also those that only type checkers import."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        inside = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if _exists(name) else node.module for name in inside)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, types=types)


def _exists(module: str) -> bool:
    path = _SOURCE.parent.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _modules(*, types: bool) -> dict[str, set[str]]:
    """Every module of the package with the modules of the package that it imports; names are relative to the package."""
    files = sorted(_SOURCE.rglob("*.py"))
    assert files
    modules = {}
    for path in files:
        module = ".".join(path.relative_to(_SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        imported = _imports(ast.parse(path.read_text(encoding="utf-8")), types=types)
        modules[module] = {name.removeprefix("ptxmma").lstrip(".") for name in imported if name.split(".")[0] == "ptxmma"} - {module}
    return modules


def _rank(module: str) -> int:
    top = module.partition(".")[0]
    for number, names in enumerate(_ORDER):
        if top in names:
            return number
    raise AssertionError(f"{module} has no place: add it to _ORDER")


def test_imports_run_one_way() -> None:
    for module, imports in _modules(types=True).items():
        for imported in imports:
            same = module.partition(".")[0] == imported.partition(".")[0]
            assert same or _rank(imported) < _rank(module) or {module, imported} <= {"paths", "arguments", "release", "model"}, (
                f"{module or 'ptxmma'} imports {imported or 'ptxmma'}"
            )


def test_modules_have_no_circles() -> None:
    """No circle of imports, not even of those inside functions.  Only annotations may name a class that calls the module."""
    list(TopologicalSorter(_modules(types=False)).static_order())


def test_the_product_runs_without_its_proof() -> None:
    """Neither the package nor its tests import the proof, when they are loaded or later."""
    files = [*_SOURCE.rglob("*.py"), *Path(__file__).parent.glob("test_*.py"), Path(__file__).parent / "conftest.py"]
    for path in files:
        imported = _imports(ast.parse(path.read_text(encoding="utf-8")), types=True)
        assert not any(name.split(".")[0] == "ptxmma_proof" for name in imported), path
