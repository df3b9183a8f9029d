"""The house: imports run one way, every module is used, the schemas and the model agree."""

from __future__ import annotations

import ast
import json
from graphlib import TopologicalSorter
from pathlib import Path

import msgspec

from ptxmma import model, paths

_SOURCE = paths.CHECKOUT / "codegen" / "ptxmma"

#: The floors of the house, lowest first; a module may import from lower floors only.
_FLOORS = [
    {"model.bitmap", "model.formula", "paths"},
    {"model"},
    {"evidence.reports"},
    {"catalog.evidence_summary"},
    {"catalog.variants"},
    {"catalog.expressions", "catalog.layouts", "catalog.requirements"},
    {"catalog.operands"},
    {"catalog.metadata", "catalog.scales"},
    {"catalog.instructions"},
    {"matrices.arrangements", "matrices.canonical", "matrices.pictures"},
    {"matrices.accesses", "matrices.descriptors", "matrices.tracing"},
    {"ptx", "catalog.throughput", "catalog.listing", "catalog.exports"},
    {"arrays.elements"},
    {"arrays.shapes"},
    {"matrices.arithmetic", "matrices.interop", "matrices.scaling", "matrices.shared_memory", "matrices.sparse"},
    {"arrays"},
    {"matrices.emulator"},
    {"evidence"},
    {"check", "catalog.description", "catalog.comparison"},
    {"catalog", "matrices"},
    {""},  # the package itself: what users import
    {"generator.problems"},
    {"generator.load"},
    {"generator.build"},
    {"generator.rules", "generator.evaluation"},
    {"generator.stated"},
    {"generator.derive"},
    {"generator.evidence"},
    {"generator.emit"},
    {"generator.write", "generator.sqlite"},
    {"generator.pipeline", "generator.differences"},
    {"generator.revisions"},
    {"cli"},
    {"__main__"},
]


def _floor(module: str) -> tuple[int, str]:
    """The floor of a module, and the name under which it stands there."""
    best: tuple[int, str] | None = None
    for number, names in enumerate(_FLOORS):
        for name in names:
            if (module == name or (name and module.startswith(f"{name}."))) and (best is None or len(name) >= len(best[1])):
                best = number, name
    if best is not None:
        return best
    raise AssertionError(f"{module} has no floor: add it to _FLOORS")


def _imports(path: Path, *, at_once: bool = False) -> set[str]:
    """The modules of this package that a file imports, relative to it; ``at_once``: without those that functions import when called."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if at_once else ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if _exists(name) else node.module for name in inside]
        found |= {name.removeprefix("ptxmma").lstrip(".") for name in names if name.split(".")[0] == "ptxmma"}
    return found


def _exists(module: str) -> bool:
    path = _SOURCE.parent.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _modules() -> dict[str, set[str]]:
    """Every module of the package with the modules that it imports before anything is called.

    Methods of lower floors may hand on to the array modules above them, so that looking things up does not load NumPy.
    """
    files = sorted(_SOURCE.rglob("*.py"))
    assert files
    names = {path: ".".join(path.relative_to(_SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".") for path in files}
    return {names[path]: _imports(path, at_once=True) for path in files}


def test_imports_run_one_way() -> None:
    modules = _modules()
    for module, imports in modules.items():
        for imported in imports:
            (above, room), (below, other) = _floor(module), _floor(imported)
            assert below < above or room == other, f"{module or 'ptxmma'} imports {imported or 'ptxmma'}"
    # Modules of one package share a floor; among them there is no circle either.
    list(TopologicalSorter({module: imports - {module} for module, imports in modules.items()}).static_order())


def test_the_library_never_imports_the_generator() -> None:
    for path in _SOURCE.glob("*.py"):
        assert not any(name.startswith("generator") for name in _imports(path)), path.name


def test_the_model_has_every_key_of_the_schemas() -> None:
    """A key that a schema admits and no structure has would be lost."""
    structures = [entry for entry in vars(model).values() if isinstance(entry, type) and issubclass(entry, msgspec.Struct)]
    known = {field.encode_name for entry in structures for field in msgspec.structs.fields(entry)}
    known |= {"kind", "shape", "scales", "metadata"}
    schemas = sorted(paths.SCHEMAS.glob("*.schema.json"))
    assert schemas
    for path in schemas:
        if path.name == "assemblers.schema.json" or path.name.startswith("evidence_"):
            continue
        for key in _properties(json.loads(path.read_text(encoding="utf-8"))):
            assert key in known, f"{path.name}: {key}"


def _properties(schema: object) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_properties, schema))
    if not isinstance(schema, dict):
        return set()
    own = set(schema.get("properties", {})) if isinstance(schema.get("properties"), dict) else set()
    return own.union(*(_properties(part) for part in schema.values()))
