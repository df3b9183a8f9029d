"""The modules of functions: layouts, and addresses in shared memory, each with its declarations for TypeScript."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import c_text, index_functions, tensor_functions
from ptxmma.generator.emit.formula_text import to_javascript
from ptxmma.generator.emit.index_functions import IndexFunction
from ptxmma.generator.emit.templating import render
from ptxmma.matrices.shared.suspicion_rules import WORDS, Condition, conditions, expanded
from ptxmma.model import SharedMemory, Space, Swizzle
from ptxmma.model.formula import names, parse

#: ``%`` takes the sign of the dividend.
_REMAINDER = """/** The remainder of a division that rounds down, so that it is never negative. */
const mod = (dividend, divisor) => dividend - divisor * Math.floor(dividend / divisor);

"""


def layouts(catalog: Catalog) -> tuple[str, str]:
    """``layouts.js`` and ``layouts.d.ts``: the functions of every layout."""
    made = [function for _, functions in index_functions.functions(catalog) for function in functions]
    document = catalog.database.spec.document
    return _module(made), _declarations(f"Which thread holds which element: the layouts of {document}.", made)


def shared_memory(memory: SharedMemory | None) -> tuple[str, str]:
    """``shared_memory.js`` and ``shared_memory.d.ts``: swizzles, offsets in canonical layouts, and the rules for descriptors."""
    made = list(_shared_memory(memory)) if memory is not None else []
    offsets: dict[str, dict[str, str]] = {}
    for layout in memory.layouts if memory is not None else ():
        for name in layout.swizzles:
            offsets.setdefault(layout.majorness, {})[name] = _offset(layout.majorness, name)
    swizzles: dict[str, str] = {}
    rules: list[str] = []
    starts: dict[str, str] = {}
    if memory is not None:
        for mode in memory.swizzles:
            usual = f"(address, base_offset = 0) => swizzle(address, {mode.bytes}, base_offset)"
            swizzles[mode.name] = _swizzle(mode) if mode.formula else usual
        rules = [_rule(each) for each in conditions(memory)]
        let = memory.suspicions.let
        starts = {name: to_javascript(expanded(name, let), _own(expanded(name, let))) for name in ("first", "phase")} if rules else {}
    values = {"offsets": offsets, "swizzles": swizzles, "rules": rules, "starts": starts}
    module = render("javascript/shared_memory.js.jinja", functions=_module(made), **values)
    declared = _declarations("Matrices in shared memory: swizzles and canonical layouts.", made)
    return module, declared + render("javascript/shared_memory.d.ts.jinja")


def _own(text: str) -> dict[str, str]:
    """The numbers of a descriptor that a formula reads, as members of an object."""
    return {name: f"v.{name}" for name in names(parse(text))}


def _rule(condition: Condition) -> str:
    """A rule as an object of JavaScript."""
    rule, read = condition.rule, sorted(condition.names)
    own = {name: f"v.{name}" for name in read}
    when = " && ".join(to_javascript(part, own) for part in condition.when)
    text = "".join(
        literal.replace("`", "\\`") + (f"${{words.{name}}}" if name in WORDS else f"${{{to_javascript(name, own)}}}" if name else "")
        for literal, name in condition.text
    )
    facts = f'rule: "{rule.rule}", field: "{rule.field}", severity: "{rule.severity}", names: {json.dumps(read)}'
    return f"{{ {facts}, when: (v) => {when}, text: (v, words) => `{text}` }}"


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
