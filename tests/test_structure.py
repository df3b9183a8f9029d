"""The structure of the code: imports run one way; and the English of its comments."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

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


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(path: Path, *, types: bool) -> set[str]:
    """The modules that a file imports, at once or when a function is called; ``types``: also the imports for type checkers alone."""
    modules, nodes = set[str](), list[ast.AST]([_tree(path)])
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            modules.update(name if _exists(name) else node.module for name in inside)
        elif types or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            nodes += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]  # statements hold imports
    return modules


@functools.cache
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
        imported = _imports(path, types=types)
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


def _rooms(package: str) -> dict[str, set[str]]:
    """The modules and packages directly inside of a package, with the ones that each imports from, also for annotations."""
    rooms: dict[str, set[str]] = {}
    for module, imports in _modules(types=True).items():
        if module.startswith(f"{package}."):
            room = module.split(".")[1]
            inside = {name.split(".")[1] for name in imports if name.startswith(f"{package}.")}
            rooms.setdefault(room, set()).update(inside - {room})
    return rooms


@pytest.mark.parametrize("package", ["arrays", "catalog", "check", "cli", "generator", "matrices", "model", "ptx"])
def test_rooms_have_no_circles(package: str) -> None:
    """The packages inside of a package have an order, too: a reader begins with the lowest."""
    list(TopologicalSorter(_rooms(package)).static_order())


def test_the_product_runs_without_its_proof() -> None:
    """Neither the package nor its tests import the proof, when they are loaded or later."""
    files = [*_SOURCE.rglob("*.py"), *Path(__file__).parent.glob("test_*.py"), Path(__file__).parent / "conftest.py"]
    for path in files:
        assert not any(name.split(".")[0] == "ptxmma_proof" for name in _imports(path, types=True)), path


# --- English -------------------------------------------------------------------------------------------------------------------

_FILES = [path for folder in (_SOURCE, _PROOF) for path in sorted(folder.rglob("*.py"))]
_SCRIPTS = [path for ending in ("js", "ts") for path in sorted((_SOURCE / "generator" / "templates" / "javascript").rglob(f"*.{ending}"))]
_SPEC = sorted((paths.CHECKOUT / "spec").rglob("*.yaml"))

_FAULTS = {
    "begins as an indirect question; begin with a noun or a verb": re.compile(
        r"\A(?:What|Where|Which|Who|Whose|Whether|How|Why)\b(?!.*\?)"
    ),
    "has no noun; write 'the text of the function', not 'of the function'": re.compile(
        r"^\s*[`*\w]+: (?:of|by|from|in|to|what|where|which|how)\b", re.MULTILINE
    ),
    "name the thing again, or use a possessive": re.compile(r"\b(?:those|that)\s+of\b", re.IGNORECASE),
    "write 'after' or 'beyond'": re.compile(r"\bbehind\b", re.IGNORECASE),
}


def _package(path: Path) -> str:
    """The package of the top in which a file lies: ``ptxmma.check``; ``ptxmma`` for a module beside the packages."""
    folder, *inside = path.relative_to(_SOURCE.parent).parent.parts
    return f"{folder}.{inside[0]}" if inside and folder == "ptxmma" else folder


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every docstring and comment with its line.

    Comments on successive lines are one text.  A comment beside a field reads like an attribute of a docstring: ``name: its text``.
    """
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text
    block: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        line, text = token.start[0], token.string.lstrip("#: ")
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            block.append(text)
        elif token.type == tokenize.COMMENT:
            field = re.match(r"\s+(\w+): ", token.line)
            yield line, f"{field[1]}: {text}" if field else text
        elif token.type != tokenize.NL and block:
            yield line - len(block), "\n".join(block)
            block = []


def _faults(path: Path, texts: Iterable[tuple[int, str]]) -> list[str]:
    """The faults of a file's texts, each with its place."""
    return [
        f"{path.relative_to(paths.CHECKOUT)}:{line}: {fault}: {found[0].strip()!r}"
        for line, text in texts
        for fault, pattern in _FAULTS.items()
        if (found := pattern.search(text))
    ]


@pytest.mark.parametrize("package", sorted({_package(path) for path in _FILES}))
def test_english_is_plain(package: str) -> None:
    files = [path for path in _FILES if _package(path) == package]
    assert not (faults := [fault for path in files for fault in _faults(path, _texts(path))]), "\n".join(faults)


#: A comment of JavaScript and TypeScript; addresses in texts have slashes, too.
_SCRIPT_COMMENT = re.compile(r"/\*\*?\s(.*?)\*/|(?<![:\"'`])// (.*?)$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda path: str(path.name))
def test_english_of_scripts_is_plain(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    comments = ((text.count("\n", 0, found.start()) + 1, (found[1] or found[2]).strip("* \n")) for found in _SCRIPT_COMMENT.finditer(text))
    assert not (faults := _faults(path, comments)), "\n".join(faults)


def test_english_of_the_spec_is_plain() -> None:
    """The comments and the texts of every document; the keys are the model's."""
    faults = []
    for path in _SPEC:
        lines = [re.sub(r"\b\w+:(?= )|^\s*#", "", line).strip() for line in path.read_text(encoding="utf-8").splitlines()]
        faults += _faults(path, enumerate(lines, 1))
    assert _SPEC
    assert not faults, "\n".join(faults)
