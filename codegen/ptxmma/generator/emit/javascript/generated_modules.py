"""The modules of functions: layouts, and addresses in shared memory, each with its declarations for TypeScript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import c_text, index_functions, shared_functions, tensor_functions, tensor_map_rules
from ptxmma.generator.emit.formula_text import to_javascript
from ptxmma.generator.emit.index_functions import IndexFunction
from ptxmma.generator.emit.templating import render, source
from ptxmma.matrices.shared.box import CORNER_BITS, spans
from ptxmma.model import SharedMemory, Space, TensorMaps, formula

#: ``%`` takes the sign of the dividend.
_REMAINDER = """/** The remainder of a division that rounds down, so that it is never negative. */
const mod = (dividend, divisor) => dividend - divisor * Math.floor(dividend / divisor);

"""
#: The names of functions that others have as the name of a parameter.
_NAMES = {"base_offset": "base_offset_of"}


def layouts(catalog: Catalog) -> tuple[str, str]:
    """``layouts.js`` and ``layouts.d.ts``: the functions of every layout."""
    made = [function for _, functions in index_functions.functions(catalog) for function in functions]
    document = catalog.database.spec.document
    return _module(made), _declarations(f"Which thread holds which element: the layouts of {document}.", made)


def shared_memory(memory: SharedMemory) -> tuple[str, str]:
    """``shared_memory.js`` and ``shared_memory.d.ts``: swizzles, and offsets in canonical layouts."""
    made = [
        *shared_functions.swizzles(memory, to_javascript),
        *(function for *_, function in shared_functions.offsets(memory, to_javascript)),
    ]
    made = [function._replace(name=_NAMES.get(function.name, function.name)) for function in made]
    return _REMAINDER + _module(made), _declarations("Matrices in shared memory: swizzles and canonical layouts.", made)


def tensor_memory(memory: Space) -> tuple[str, str]:
    """``tensor_memory.js`` and ``tensor_memory.d.ts``: addresses, and where operands lie."""
    made = [function.written(to_javascript) for function in tensor_functions.functions(memory)]
    return _REMAINDER + _module(made), _declarations(tensor_functions.title(memory), made)


def tensor_maps(catalog: Catalog, maps: TensorMaps) -> tuple[str, str]:
    """``tensor_maps.js`` and ``tensor_maps.d.ts``: the tables and the rules of tensor maps."""
    rules = []
    for each in tensor_map_rules.written(maps, {}):
        said = formula.placeholders(each.rule.text)
        read = [name for name in each.names if re.search(rf"\b{name}\b", each.broken)]
        rules.append(
            {
                "argument": each.rule.argument,
                "each": each.rule.each,
                "modes": json.dumps(each.modes),
                "broken": each.broken,
                "read": _taken(read),
                "text": tensor_map_rules.shown(each.rule, maps, "${{{}}}"),
                "said": _taken([name for name in each.names if name in said]),
            }
        )
    text = render(
        "javascript/tensor_maps.js.jinja",
        functions=list(dict.fromkeys(mode.function for mode in maps.modes)),
        modes=maps.modes,
        types={type.name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_"): type for type in maps.types},
        swizzles=maps.swizzles,
        spans=spans(catalog.database),
        interleaves=maps.interleaves,
        fills=maps.fills,
        absent=[note for note in maps.notes if note.absent],
        rules=rules,
        corner=CORNER_BITS,
    )
    return text, source("javascript/tensor_maps.d.ts")


def _taken(names: Sequence[str]) -> str:
    """The parameter of a function that reads some numbers."""
    return f"{{ {', '.join(names)} }}" if names else ""


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
