"""JavaScript: a package of ES modules with the layouts and the database, and the explorer, a page that embeds them.

The page is one file without references to others: it works from ``file://``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output, tensor_functions
from ptxmma.generator.emit.javascript import compact_database, generated_modules
from ptxmma.generator.emit.javascript.bundle import bundled, styled
from ptxmma.generator.emit.templating import banner, render, source

_FOLDER = "generated/javascript"
_TEMPLATES = "javascript"
#: The hand-written modules; modules for the explorer alone are in a folder of their own.
_LIBRARY = (
    "index.js", "short_texts.js", "bit_maps.js", "layout_records.js", "instruction_sets.js", "instructions.js", "spellings.js",
    "arrangements.js", "conversions.js", "interop.js", "source_texts.js", "descriptors.js", "suspicions.js", "images.js",
    "bank_accesses.js", "sparsity.js", "formulas.js", "tensor_products.js", "tensor_places.js", "tensor_loads.js", "tensor_texts.js",
    "words.js", "mentions.js", "target_names.js", "lookup.js", "questions.js",
)  # fmt: skip


def emit(catalog: Catalog) -> Iterator[Output]:
    """The package, and ``explorer.html``."""
    head = banner("//", catalog, ["spec/"])
    database, on_one_line = map(_database, compact_database.texts(catalog))
    generated = _generated(catalog)
    made = {"database.js": database, **generated}
    modules = {name: text for name, text in made.items() if name.endswith(".js")} | {name: _template(name) for name in _LIBRARY}
    for name, text in {**made, **modules, "index.d.ts": _template("index.d.ts")}.items():
        yield Output(f"{_FOLDER}/{name}", head + text)
    version = catalog.database.spec.version
    functions = [name.removesuffix(".js") for name in generated if name.endswith(".js")]
    about = banner("", catalog, ["spec/"]).split("\n")[0].strip()
    yield Output(f"{_FOLDER}/package.json", render(f"{_TEMPLATES}/package.json.jinja", about=about, version=version, modules=functions))
    yield Output(f"{_FOLDER}/README.md", render(f"{_TEMPLATES}/README.md.jinja", about=about))
    yield Output(f"{_FOLDER}/explorer.html", _page(catalog, modules | {"database.js": on_one_line}))


def _generated(catalog: Catalog) -> dict[str, str]:
    """The other modules that hold what the spec says, and their declarations."""
    files: dict[str, str] = {}
    files["layouts.js"], files["layouts.d.ts"] = generated_modules.layouts(catalog)
    if (memory := catalog.database.spec.shared_memory) is not None:
        files["shared_memory.js"], files["shared_memory.d.ts"] = generated_modules.shared_memory(memory)
    if (maps := catalog.database.spec.tensor_maps) is not None:
        files["tensor_maps.js"], files["tensor_maps.d.ts"] = generated_modules.tensor_maps(catalog, maps)
    for space in catalog.database.spec.tensor_memories:
        name = tensor_functions.module(space)
        files[f"{name}.js"], files[f"{name}.d.ts"] = generated_modules.tensor_memory(space)
    return files


def _database(text: str) -> str:
    return f"export const database = {text};\n"


def _page(catalog: Catalog, modules: dict[str, str]) -> str:
    """The explorer: its modules as one script, inside of the page."""

    def read(path: str) -> str:
        return modules[path] if path in modules else _template(path)

    return render(
        f"{_TEMPLATES}/explorer/explorer.html.jinja",
        banner=banner("", catalog, ["spec/"]),
        style=styled(_template("explorer/explorer.css")),
        script=bundled("explorer/main.js", read).replace("</", "<\\/"),
    )


def _template(name: str) -> str:
    return source(f"{_TEMPLATES}/{name}")
