"""The modules of functions: layouts, and addresses in shared memory, each with its declarations for TypeScript."""

from __future__ import annotations

from collections.abc import Iterable

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import c_text, index_functions, tensor_functions
from ptxmma.generator.emit.formula_text import to_javascript
from ptxmma.generator.emit.index_functions import IndexFunction
from ptxmma.model import SharedMemory, Space, Swizzle

#: ``%`` takes the sign of the dividend.
_REMAINDER = """/** The remainder of a division that rounds down, so that it is never negative. */
const mod = (dividend, divisor) => dividend - divisor * Math.floor(dividend / divisor);

"""


def layouts(catalog: Catalog) -> tuple[str, str]:
    """``layouts.js`` and ``layouts.d.ts``: the functions of every layout."""
    made = [function for _, functions in index_functions.functions(catalog) for function in functions]
    document = catalog.database.spec.document
    return _module(made), _declarations(f"Which thread holds which element: the layouts of {document}.", made)


def shared_memory(memory: SharedMemory) -> tuple[str, str]:
    """``shared_memory.js`` and ``shared_memory.d.ts``: swizzles, and offsets in canonical layouts."""
    made = list(_shared_memory(memory))
    return _REMAINDER + _module(made), _declarations("Matrices in shared memory: swizzles and canonical layouts.", made)


def tensor_memory(memory: Space) -> tuple[str, str]:
    """``tensor_memory.js`` and ``tensor_memory.d.ts``: addresses, and where operands lie."""
    made = [
        IndexFunction(
            each.name, each.parameters, each.optional, each.title, each.notes, each.source, (),
            {name: to_javascript(text) for name, text in each.results.items()},
        )
        for each in tensor_functions.functions(memory)
    ]  # fmt: skip
    return _REMAINDER + _module(made), _declarations(tensor_functions.title(memory), made)


def _shared_memory(memory: SharedMemory) -> Iterable[IndexFunction]:
    title = "Where the swizzle moves a byte of shared memory; done twice, it moves it back."
    notes = ("``address`` is absolute; ``span`` is the swizzle's bytes; ``base_offset`` is the descriptor's field.",)
    known = ("address", "span", "base_offset")
    yield _formula("swizzle", known, ("base_offset",), title, notes, memory.source, to_javascript(memory.swizzle_formula))
    for each in memory.swizzles:
        if each.formula:
            title = f"The same with the {each.title}."
            text = to_javascript(each.formula, {"span": str(each.bytes)})
            yield _formula(_swizzle(each), ("address", "base_offset"), ("base_offset",), title, (), each.source, text)
    title = "The descriptor's base offset for a swizzle pattern that starts at the absolute address ``start``."
    notes = ("``pattern`` is the number of bytes after which the swizzle repeats.",)
    yield _formula("base_offset_of", ("start", "pattern"), (), title, notes, memory.source, to_javascript(memory.base_offset))
    spans = {mode.name: mode.bytes for mode in memory.swizzles}
    for layout in memory.layouts:
        for mode in layout.swizzles:
            title = f"Offset in bytes of element (``x``, ``k``), before the swizzle: {layout.majorness}-major, swizzle {mode}."
            lines = (
                f"``x`` counts along m or n; ``bits`` is the width of an element. Canonical layout: {layout.cute}.",
                f"``lbo``: {layout.lbo}.",
                f"``sbo``: {layout.sbo}.",
            )
            text = to_javascript(layout.element_offset, {"span": str(spans[mode])})
            yield _formula(_offset(layout.majorness, mode), ("x", "k", "bits", "lbo", "sbo"), (), title, lines, layout.source, text)


def _swizzle(mode: Swizzle) -> str:
    return f"swizzle_{c_text.identifier(mode.name).lower()}"


def _offset(majorness: str, mode: str) -> str:
    return c_text.identifier(f"offset_{majorness}_major_{mode}").lower()


def _formula(
    name: str, parameters: tuple[str, ...], optional: tuple[str, ...], title: str, notes: tuple[str, ...], source: str, text: str
) -> IndexFunction:
    return IndexFunction(name, parameters, optional, title, notes, source, (), {"result": text})


# --- text -------------------------------------------------------------------------------------------------------------------


def _module(functions: Iterable[IndexFunction]) -> str:
    return "\n".join(map(_function, functions))


def _function(function: IndexFunction) -> str:
    """A function; a step that is a result is written in the return statement."""
    parameters = ", ".join(f"{name} = 0" if name in function.optional else name for name in function.parameters)
    expressions = dict(function.steps)
    if list(function.results.values()) == list(expressions):
        lines, results = [], list(expressions.values())
    else:
        lines, results = [f"  const {name} = {text};" for name, text in function.steps], list(function.results.values())
    result = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
    head = f"export function {c_text.identifier(function.name)}({parameters}) {{"
    return "\n".join([head, *lines, f"  return {result};", "}\n"])


def _declarations(title: str, functions: Iterable[IndexFunction]) -> str:
    declared = [f"/**\n * {title}\n *\n * Nothing is checked: arguments out of range give results without meaning.\n */\n"]
    for function in functions:
        optional = function.optional
        parameters = ", ".join(f"{name}{'?' if name in optional else ''}: number" for name in function.parameters)
        results = [f"{name}: number" for name in function.results]
        result = f"[{', '.join(results)}]" if len(results) > 1 else "number"
        text = [function.title, "", *function.notes, f"Source: {function.source}."]
        doc = "\n".join(f" * {line}".rstrip() for line in (c_text.comment(line).replace("``", "`") for line in text))
        declared.append(f"/**\n{doc}\n */\nexport function {c_text.identifier(function.name)}({parameters}): {result};\n")
    return "\n".join(declared)
